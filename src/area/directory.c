/*
 * directory.c
 *	  The directory: which structure belongs to which physical index.
 *
 * Entries are type-stable: they come from the area, are never given back to it, and are used
 * again when their index is gone.
 *
 * src/area/README.md: The directory
 */
#include "postgres.h"

#include <unistd.h>

#include "access/amapi.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "storage/sinval.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "area/crash_memory.h"
#include "area/shared_state.h"

#define ART_LOAD_PATIENCE_MS	10000	/* of those who wait for a loader that does
										 * not come */

/* this process made entries of temporary relations */
static bool made_temp = false;

void
art_locator(Relation index, ArtLocator *loc)
{
	loc->spc = ART_REL_SPC(index);
	loc->db = ART_REL_DB(index);
	loc->rel = ART_REL_NUMBER(index);
	loc->backend = ART_REL_BACKEND(index);
}

/*
 * Is the relation an index of our access method?
 */
bool
art_is_art_index(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_INDEX && rel->rd_indam != NULL &&
		rel->rd_indam->amoptions == artoptions;
}

void
art_form_locator(const FormData_pg_class *form, ArtLocator *loc)
{
	loc->spc = OidIsValid(form->reltablespace) ? form->reltablespace : MyDatabaseTableSpace;
	loc->db = MyDatabaseId;
	loc->rel = form->relfilenode;
	loc->backend = -1;
}

void
art_opening(Relation index, ArtOpening *o)
{
	char	   *schema = get_namespace_name(RelationGetNamespace(index));
	HeapTuple	heap = SearchSysCache1(RELOID, ObjectIdGetDatum(index->rd_index->indrelid));

	o->heap_spc = InvalidOid;
	o->heap_rel = 0;
	if (HeapTupleIsValid(heap))
	{
		ArtLocator	loc;

		art_form_locator((Form_pg_class) GETSTRUCT(heap), &loc);
		o->heap_spc = loc.spc;
		o->heap_rel = loc.rel;
		ReleaseSysCache(heap);
	}
	o->compared = art_index_compared(index);
	o->owner = index->rd_rel->relowner;
	o->limited = !superuser_arg(o->owner);
	o->persistence = index->rd_rel->relpersistence;
	namestrcpy(&o->schema, schema ? schema : "");
	namestrcpy(&o->name, RelationGetRelationName(index));
}

/* ---- making and forgetting entries ---- */

/*
 * A recycled or new entry, its tree handle closed.  NULL when the area is
 * full.  Takes the chunk lock inside the partition lock.
 *
 * Epoch: enters and leaves, under the locks.
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 */
static ArtEntry *
entry_alloc(void)
{
	ArtEntry   *e;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	if (art_shared->free_entries == NULL)
	{
		int			n = AX_PAGE / sizeof(ArtEntry);
		ArtEntry   *chunk = art_system_alloc(AX_PAGE);

		if (chunk)
			for (int i = 0; i < n; i++)
			{
				pg_atomic_init_u64(&chunk[i].word, 0);
				pg_atomic_init_u64(&chunk[i].blocks_done, 0);
				pg_atomic_init_u64(&chunk[i].blocks_total, 0);
				pg_atomic_init_u32(&chunk[i].used_at, 0);
				pg_atomic_init_u32(&chunk[i].uses, 0);
				chunk[i].next = art_shared->free_entries;
				art_shared->free_entries = &chunk[i];
			}
	}
	e = art_shared->free_entries;
	if (e && e->tree == NULL)
	{
		ax_ctx	   *cx = art_ctx();

		ART_CORE_BEGIN();
		e->tree = ax_tree_alloc(cx);
		ART_CORE_END();
		if (e->tree == NULL)
			e = NULL;
	}
	if (e)
		art_shared->free_entries = e->next;
	art_unlock(art_chunk_lock);
	return e;
}

/*
 * Put an entry, in no chain now, among those that are free.
 *
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 */
static void
entry_free(ArtEntry *e)
{
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	e->next = art_shared->free_entries;
	art_shared->free_entries = e;
	art_unlock(art_chunk_lock);
}

/*
 * For the postmaster while it starts, before any other process runs.  Makes an
 * entry of an index that is not open.  Its structure is empty and BUILDING,
 * owned by the loader of saved files.  Its memory comes fresh from the area,
 * hence zero, which is what a new entry has in every member that is not set
 * here.  NULL when the area is full or the index has an entry already.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive, and in it the chunk lock,
 * exclusive.
 */
ArtEntry *
art_entry_claim(Oid indexoid, const ArtLocator *loc, const ArtOpening *o,
				const ArtEngine *want, uint64 max_bytes)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);
	uint64		gen;

	e = e == NULL ? entry_alloc() : NULL;
	if (e != NULL)
	{
		e->loc = *loc;
		e->indexoid = indexoid;
		e->loading = true;
		if (art_entry_open_as(e, NULL, o, want, max_bytes, &gen) == AX_OK)
			art_chain_add(e);
		else
		{
			art_groups_leave(e);
			entry_free(e);
			e = NULL;
		}
	}
	art_unlock(lock);
	return e;
}

/*
 * Epoch: enters and leaves, if the structure was not ABSENT.
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 */
void
art_entry_forget(ArtEntry *e)
{
	(void) art_entry_absent(e, ART_WHY_DROPPED, NULL);
	art_chain_remove(e);

	/* the old structure of an index that was rewritten, or the new one */
	for (ArtEntry *o = art_chain(e->loc.db, e->indexoid); o != NULL; o = o->next)
	{
		if (o->indexoid == e->indexoid && o->loc.db == e->loc.db)
		{
			art_counts_inherit(o, e);
			break;
		}
	}
	art_aborts_forget(e);
	art_groups_leave(e);
	e->indexoid = InvalidOid;
	memset(&e->loc, 0, sizeof(e->loc));
	entry_free(e);
}

/*
 * A new entry: the index as it is now, and nothing known of it.  The handle stays, and so does
 * all before it.
 */
static void
entry_init(ArtEntry *e, Relation index, const ArtLocator *loc)
{
	memset(&e->tree + 1, 0, sizeof(*e) - offsetof(ArtEntry, tree) - sizeof(e->tree));
	e->loc = *loc;
	e->indexoid = RelationGetRelid(index);
	e->heapoid = index->rd_index->indrelid;
	e->unique = index->rd_index->indisunique || index->rd_index->indisexclusion;
	e->owner = index->rd_rel->relowner;
	e->persistence = index->rd_rel->relpersistence;
	pg_atomic_write_u64(&e->word, ART_WORD(0, ART_ABSENT));
}

/*
 * The subtransaction that gave the index its file, or altered its row; and what is to be
 * done when that aborts.  A parallel worker cannot tell.
 */
static SubTransactionId
subxact_of(Relation index, bool building, ArtPendingKind *kind)
{
	SubTransactionId subid = ART_REL_NEW_SUBID(index);

	if (IsParallelWorker())
		return InvalidSubTransactionId;
	if (subid == InvalidSubTransactionId)
		subid = index->rd_createSubid;
	if (subid == InvalidSubTransactionId && !building && art_is_uncommitted(index))
	{
		subid = GetCurrentSubTransactionId();
		/* others may use it all the time, if only its name is new */
		if (index->rd_rel->relpersistence != RELPERSISTENCE_TEMP)
			*kind = ART_PEND_RESET;
	}
	return subid;
}

/*
 * Find or make the entry of an open index.  building: the caller is ambuild,
 * which registers what its transaction's end must do by itself.  NULL when
 * there is no memory for an entry.
 *
 * Another entry of the same index under another locator is left from a change
 * that no hook shows (SET TABLESPACE copies the file).  When the locator is
 * new in this transaction the old one goes at commit.  Otherwise it is stale,
 * since we hold a lock on the index and the catalog says so.  A parallel
 * worker cannot tell the two apart and leaves it.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive, and in it the chunk lock,
 * exclusive.
 */
ArtEntry *
art_entry_create(Relation index, bool building)
{
	ArtLocator	loc;
	Oid			oid = RelationGetRelid(index);
	LWLock	   *lock;
	ArtEntry   *e;
	ArtPending *created = NULL;
	ArtLocator	others[8];
	int			nothers = 0;
	SubTransactionId subid;
	ArtPendingKind kind = ART_PEND_CREATED;

	art_require_preload(index);
	(void) art_ctx();
	art_locator(index, &loc);
	subid = subxact_of(index, building, &kind);
	if (!building && subid != InvalidSubTransactionId)
		created = art_pending_prepare();

	e = art_find_locked(oid, &loc, LW_EXCLUSIVE, &lock);
	if (e == NULL)
	{
		bool		stale = subid == InvalidSubTransactionId &&
			!IsParallelWorker() && !building;

		for (ArtEntry *o = art_chain(loc.db, oid), *next; o; o = next)
		{
			next = o->next;
			if (o->indexoid != oid || o->loc.db != loc.db)
				continue;
			if (stale)
				art_entry_forget(o);
			else if (!building && created && nothers < (int) lengthof(others))
				others[nothers++] = o->loc;
		}

		e = entry_alloc();
		if (e == NULL)
		{
			art_unlock(lock);
			if (created)
				pfree(created);
			return NULL;
		}
		entry_init(e, index, &loc);
		art_chain_add(e);
		pg_atomic_fetch_add_u32(&art_shared->unsettled, 1);
		if (loc.backend != -1)
			made_temp = true;
		if (created)
		{
			art_pending_add(created, kind, loc.db, oid, &loc, subid);
			created = NULL;
		}
	}
	art_unlock(lock);
	if (created)
		pfree(created);
	for (int i = 0; i < nothers; i++)
		art_pending_add(art_pending_prepare(), ART_PEND_DROP, loc.db, oid,
						&others[i], subid);
	return e;
}

/*
 * The entry of an open index, made if need be; NULL when there is no memory
 * for it.
 */
ArtEntry *
art_entry_try(Relation index)
{
	ArtEntry   *e = art_entry_if_exists(index);

	return e ? e : art_entry_create(index, false);
}

/*
 * The entry of an open index or NULL; never errs.
 *
 * Locks: takes the partition lock, shared.  The entry stays valid afterwards
 * as long as the caller holds a lock on the index.
 */
ArtEntry *
art_entry_if_exists(Relation index)
{
	ArtLocator	loc;
	Oid			oid = RelationGetRelid(index);
	LWLock	   *lock;
	ArtEntry   *e;

	if (art_shared == NULL)
		return NULL;
	art_locator(index, &loc);
	e = art_find_locked(oid, &loc, LW_SHARED, &lock);
	art_unlock(lock);
	if (e == NULL && art_noted_any)
		art_note_missed(oid);
	return e;
}

/*
 * Locks: takes the partition lock, exclusive, if it returns it.
 */
LWLock *
art_entry_lock(Relation index, const ArtEntry *e)
{
	ArtLocator	loc;
	LWLock	   *lock;

	art_locator(index, &loc);
	if (art_find_locked(RelationGetRelid(index), &loc, LW_EXCLUSIVE, &lock) == e)
		return lock;
	art_unlock(lock);
	return NULL;
}

ax_tree *
art_entry_tree(ArtEntry *e)
{
	return e->tree;
}

bool
art_entry_over_cap(const ArtEntry *e)
{
	return e->over_cap;
}

bool
art_entry_native(ArtEntry *e)
{
	return e->native;
}

/*
 * State and, unless ABSENT, generation.
 *
 * The barrier pairs with the one in art_entry_open.  So a caller that stored
 * its heap row and then sees ABSENT stored it before the builder's look at the
 * heap.
 */
ArtState
art_entry_state(ArtEntry *e, uint64 *gen)
{
	uint64		w;

	pg_memory_barrier();
	w = pg_atomic_read_u64(&e->word);
	pg_read_barrier();
	if (gen)
		*gen = ART_WORD_GEN(w);
	return ART_WORD_STATE(w);
}

/*
 * Note that a scan or a unique check uses the structure: at most one store a
 * second to a line that everybody reads.
 */
void
art_entry_touch(ArtEntry *e)
{
	uint32		now = (uint32) (GetCurrentStatementStartTimestamp() / USECS_PER_SEC);

	if (pg_atomic_read_u32(&e->used_at) != now)
	{
		pg_atomic_write_u32(&e->used_at, now);
		pg_atomic_fetch_add_u32(&e->uses, 1);
	}
}

/* Does this very process still run?  pid 0: none. */
static bool
process_lives(int slot, int pid)
{
	if (pid == 0 || slot < 0 || slot >= art_shared->nslots)
		return false;
	return GetPGProcByNumber(slot)->pid == pid;
}

/*
 * Locks: partition lock held, in any mode.
 */
bool
art_loading(const ArtEntry *e)
{
	uint32		pending = ART_LOAD_PENDING;
	uint64		asked;
	uint64		now;

	if (!e->loading)
		return false;
	switch (pg_atomic_read_u32(&art_shared->load_state))
	{
		case ART_LOAD_RUNNING:
			pg_read_barrier();
			return GetPGProcByNumber(art_shared->load_slot)->pid ==
				art_shared->load_pid;
		case ART_LOAD_PENDING:

			/*
			 * No free place for a worker, or no process could be made: then it
			 * never comes, and nobody says so.
			 */
			asked = pg_atomic_read_u64(&art_shared->load_asked);
			now = (uint64) GetCurrentTimestamp();
			if (asked == 0)
				(void) pg_atomic_compare_exchange_u64(&art_shared->load_asked,
													  &asked, now);
			else if (TimestampDifferenceExceeds((TimestampTz) asked, (TimestampTz) now,
												ART_LOAD_PATIENCE_MS) &&
					 pg_atomic_compare_exchange_u32(&art_shared->load_state,
													&pending, ART_LOAD_DONE))
			{
				(void) unlink(ART_LOADING_FILE);
				return false;
			}
			return true;
		default:
			return false;
	}
}

/*
 * Does the process that owns the build still run?
 *
 * Locks: partition lock held, in any mode.
 */
bool
art_owner_alive(const ArtEntry *e)
{
	if (e->loading)
		return art_loading(e);
	return process_lives(e->owner_slot, e->owner_pid);
}

/* ---- made concurrently ---- */

/* this process is, or was since its last abort, the maker of some entry */
static bool making = false;

/*
 * This process makes the index by CREATE INDEX CONCURRENTLY or the like, whose
 * transactions come one after the other, so the index may become valid.
 *
 * Locks: takes the partition lock, exclusive.
 */
void
art_making_begin(ArtEntry *e)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);

	art_lock(lock, LW_EXCLUSIVE);
	e->making_slot = ART_MY_PROCNO();
	e->making_pid = MyProcPid;
	art_unlock(lock);
	making = true;
}

/*
 * One REINDEX CONCURRENTLY may have begun any number of indexes.
 *
 * Locks: takes the partition locks, exclusive, one after the other.
 */
void
art_making_abort(void)
{
	ArtWalk		w = art_walk(LW_EXCLUSIVE, InvalidOid, InvalidOid);

	if (!making)
		return;
	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
		if (e->making_pid == MyProcPid)
			e->making_pid = 0;
	making = false;
}

bool
art_never_valid(Relation index, ArtEntry *e)
{
	if (index->rd_index->indisvalid ||
		(e != NULL && process_lives(e->making_slot, e->making_pid)))
		return false;

	/*
	 * Its maker may have made it valid, and gone, since this statement opened it:
	 * that was told before the maker went.
	 */
	AcceptInvalidationMessages();
	return !index->rd_index->indisvalid;
}

/* ---- ends of an index ---- */

/*
 * Drop the structures of a database, of one index (InvalidOid: of all), of one file (NULL: of
 * any).  forget: their entries too, which is right only when no process can have the index
 * open; else they stay, ABSENT.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive, or all of them, one after the other.
 */
static void
drop_where(Oid db, Oid indexoid, const ArtLocator *loc, bool forget)
{
	ArtWalk		w = art_walk(LW_EXCLUSIVE, db, indexoid);
	bool		was_ready = false;
	Oid			heapoid = InvalidOid;

	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		if (loc != NULL && !art_same_locator(&e->loc, loc))
			continue;
		heapoid = e->heapoid;
		if (forget)
			art_entry_forget(e);
		else
			was_ready |= art_entry_absent(e, ART_WHY_DROPPED, NULL);
	}
	/* nobody has plans of a database that is gone */
	if (was_ready && OidIsValid(indexoid))
		art_invalidate_heap(db, heapoid);
}

void
art_drop_locator(Oid indexoid, const ArtLocator *loc, bool forget)
{
	drop_where(loc->db, indexoid, loc, forget);
}

void
art_drop_index(Oid db, Oid indexoid, bool forget)
{
	drop_where(db, indexoid, NULL, forget);
}

void
art_drop_database(Oid db, bool forget)
{
	drop_where(db, InvalidOid, NULL, forget);
}

/*
 * This process exits: drop the structures of its temporary relations that are
 * left (normally none is: the relations were dropped before).
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition locks, exclusive, one after the other.
 */
void
art_drop_temp(void)
{
	ArtWalk		w = art_walk(LW_EXCLUSIVE, MyDatabaseId, InvalidOid);
	int			backend;

	if (!made_temp)
		return;
	made_temp = false;
#if PG_VERSION_NUM >= 170000
	backend = (int) MyProcNumber;
#else
	backend = (int) MyBackendId;
#endif
	if (backend == -1)
		return;
	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
		if (e->loc.backend == backend)
			art_entry_forget(e);
}

