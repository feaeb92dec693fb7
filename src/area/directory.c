/*
 * directory.c
 *	  The directory: which structure belongs to which physical index, and in
 *	  what state it is.
 *
 *	  ABSENT --build--> BUILDING --> READY, and from any state back to ABSENT.
 *
 * State and generation are one atomic word.  It changes only under the
 * partition lock of its chain, exclusive, and that lock also serializes open
 * and close of the core's handle.  Entries are type-stable: they come from the
 * area, are never given back to it, and are used again when their index is
 * gone.
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

static inline uint32
bucket_of(Oid db, Oid indexoid)
{
	return hash_combine(murmurhash32(db), murmurhash32(indexoid)) & (ART_NBUCKETS - 1);
}

/*
 * The lock of the chain in which every structure of this index is.
 */
LWLock *
art_partition(Oid db, Oid indexoid)
{
	return &art_dir_locks[bucket_of(db, indexoid) & (ART_NPARTITIONS - 1)].lock;
}

/*
 * First entry of the chain; the caller skips entries of other indexes.
 *
 * Locks: partition lock held, in any mode.
 */
ArtEntry *
art_chain(Oid db, Oid indexoid)
{
	return art_shared->buckets[bucket_of(db, indexoid)];
}

/*
 * The entry with this OID and locator, or NULL.
 *
 * Locks: partition lock held, in any mode.
 */
ArtEntry *
art_find(Oid indexoid, const ArtLocator *loc)
{
	ArtEntry   *e;

	for (e = art_chain(loc->db, indexoid); e; e = e->next)
		if (e->indexoid == indexoid && art_same_locator(&e->loc, loc))
			return e;
	return NULL;
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
 * Close the structure and make the state ABSENT.  Returns whether it was READY
 * (then plans may depend on it: the caller sends the invalidation after it
 * released the lock).
 *
 * Epoch: enters and leaves.
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive, when
 * counted aborts are to be kept.
 * Order: the state is ABSENT before the core closes the generation.
 */
bool
art_entry_absent(ArtEntry *e, ArtReason why, const char *error)
{
	uint64		w = pg_atomic_read_u64(&e->word);

	if (ART_WORD_STATE(w) != ART_ABSENT)
	{
		ax_ctx	   *cx = art_ctx();

		art_counts_keep(e, ART_WORD_GEN(w));
		pg_atomic_write_u64(&e->word, ART_WORD(0, ART_ABSENT));
		ART_CORE_BEGIN();
		ax_tree_close(cx, e->tree);
		ART_CORE_END();
	}
	pg_atomic_fetch_add_u32(&art_shared->unsettled, 1);
	e->reason = why;
	e->altered = false;
	e->behind = e->unswept = false;
	if (why != ART_WHY_MEMORY)
		e->sealed = false;
	e->owner_pid = 0;
	e->resumable = false;
	e->loading = false;
	if (error)
		strlcpy(e->error, error, sizeof(e->error));
	else
		e->error[0] = '\0';
	return ART_WORD_STATE(w) == ART_READY || ART_WORD_STATE(w) == ART_FOLLOWED;
}

/* ---- what a structure is told ---- */

/*
 * Epoch: enters and leaves.
 * Locks: partition lock held, exclusive.
 */
void
art_tell(ArtEntry *e, uint64 gen)
{
	ax_ctx	   *cx = art_ctx();

	ART_CORE_BEGIN();
	/* compared keys have none, whatever is asked for */
	if (!e->compared)
		(void) ax_tree_set_tail(cx, e->tree, gen, e->tail);
	(void) ax_tree_set_elision(cx, e->tree, gen, e->elide);
	ART_CORE_END();
}

void
art_tell_options(ArtEntry *e, uint64 gen, Relation index)
{
	if (!e->told)
	{
		ArtEngine	want;

		art_engine_of(index ? (ArtOptions *) index->rd_options : NULL, &want);
		e->tail = want.tail;
		e->elide = want.elide;
	}
	e->changed &= ~ART_CHANGED_DRAIN;
	art_tell(e, gen);
}

/* ---- opening ---- */

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

/*
 * The entry gets to know its index; false when the area is full.
 *
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 */
static bool
entry_identify(ArtEntry *e, const ArtOpening *o)
{
	if (!art_groups_join(e, o->owner, o->limited))
		return false;
	e->compared = o->compared;
	e->owner = o->owner;
	e->persistence = o->persistence;
	e->schema = o->schema;
	e->name = o->name;
	e->heap_spc = o->heap_spc;
	e->heap_rel = o->heap_rel;
	e->over_cap = false;
	e->unchecked = false;
	e->born_lsn = InvalidXLogRecPtr;
	pg_atomic_write_u64(&e->spill_lsn, InvalidXLogRecPtr);
	return true;
}

/*
 * Open a new generation in state BUILDING, owned by this process.  The state
 * is ABSENT.
 *
 * Epoch: enters and leaves.
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive
 * (entry_identify).
 * Order: the word is written last, behind a write barrier.  The full barrier
 * after it comes before the heap is read, so the build finds every row whose
 * inserter saw ABSENT.
 * Returns: if not AX_OK, the state is ABSENT as before.
 */
ax_status
art_entry_open(ArtEntry *e, Relation index, const ArtOpening *o, bool native, uint64 *gen)
{
	ax_ctx	   *cx = art_ctx();
	uint64		max = art_max_memory(index);
	uint32		page_size;
	ax_structure engine = art_engine((ArtOptions *) index->rd_options, &page_size);
	ax_status	st;

	if (!entry_identify(e, o))
		return AX_NOMEM;
	ART_CORE_BEGIN();
	st = ax_tree_open(cx, e->tree, o->compared ? AX_BTREE_COMPARED : engine, max, page_size, gen);
	ART_CORE_END();
	if (st != AX_OK)
		return st;

	e->engine = engine;
	e->page_size = page_size;
	art_tell_options(e, *gen, index);
	e->native = native;
	e->loading = false;
	e->fill = art_fillfactor(index);
	e->owner_slot = ART_MY_PROCNO();
	e->owner_pid = MyProcPid;
	e->owner_build = pg_atomic_add_fetch_u64(&art_shared->build_number, 1);
	e->resumable = false;
	e->helpers = 0;
	e->nredo = 0;
	e->spent_ms = 0;
	e->load_key_us = 0;
	e->wanted_at = 0;
	pg_atomic_write_u64(&e->blocks_done, 0);
	pg_atomic_write_u64(&e->blocks_total, 0);
	pg_write_barrier();
	pg_atomic_write_u64(&e->word, ART_WORD(*gen, ART_BUILDING));
	pg_atomic_fetch_add_u32(&art_shared->unsettled, 1);

	/* an inserter that stored its row before it saw ABSENT is seen by us */
	pg_memory_barrier();
	return AX_OK;
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
				ax_structure engine, uint32 page_size, uint64 max_bytes)
{
	LWLock	   *lock = art_partition(loc->db, indexoid);
	ax_ctx	   *cx = art_ctx();
	ArtEntry   *e = NULL;
	ax_status	st;
	uint64		gen;

	art_lock(lock, LW_EXCLUSIVE);
	if (art_find(indexoid, loc) == NULL)
		e = entry_alloc();
	if (e != NULL)
	{
		e->loc = *loc;
		st = entry_identify(e, o) ? AX_OK : AX_NOMEM;
		if (st == AX_OK)
		{
			ART_CORE_BEGIN();
			st = ax_tree_open(cx, e->tree, engine, max_bytes, page_size, &gen);
			ART_CORE_END();
		}
		if (st != AX_OK)
		{
			art_groups_leave(e);
			art_lock(art_chunk_lock, LW_EXCLUSIVE);
			e->next = art_shared->free_entries;
			art_shared->free_entries = e;
			art_unlock(art_chunk_lock);
			e = NULL;
		}
	}
	if (e != NULL)
	{
		ArtEntry  **link = &art_shared->buckets[bucket_of(loc->db, indexoid)];

		e->indexoid = indexoid;
		e->engine = engine;
		e->page_size = page_size;
		art_tell_options(e, gen, NULL);
		e->reason = ART_WHY_RESTART;
		e->loading = true;
		pg_atomic_write_u64(&e->word, ART_WORD(gen, ART_BUILDING));
		e->next = *link;
		pg_write_barrier();
		*link = e;
		pg_atomic_fetch_add_u32(&art_shared->entries_changed, 1);
	}
	art_unlock(lock);
	return e;
}

/*
 * Epoch: enters and leaves, if the structure was not ABSENT.
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 */
void
art_entry_forget(ArtEntry **link)
{
	ArtEntry   *e = *link;

	(void) art_entry_absent(e, ART_WHY_DROPPED, NULL);
	*link = e->next;
	pg_atomic_fetch_add_u32(&art_shared->entries_changed, 1);

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

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	e->next = art_shared->free_entries;
	art_shared->free_entries = e;
	art_unlock(art_chunk_lock);
}

ArtEntry  **
art_chain_link(Oid db, Oid indexoid)
{
	return &art_shared->buckets[bucket_of(db, indexoid)];
}

/* A new entry: the index as it is now, and nothing known of it. */
static void
entry_init(ArtEntry *e, Relation index, const ArtLocator *loc)
{
	e->loc = *loc;
	e->indexoid = RelationGetRelid(index);
	e->heapoid = index->rd_index->indrelid;
	e->native = false;
	e->compared = false;
	e->unique = index->rd_index->indisunique || index->rd_index->indisexclusion;
	e->reason = ART_WHY_RESTART;
	e->owner_pid = 0;
	e->resumable = false;
	e->helpers = 0;
	e->nredo = 0;
	e->behind = e->unswept = false;
	e->heap_spc = InvalidOid;
	e->heap_rel = 0;
	e->wanted = ART_WANT_NOTHING;
	e->not_before = 0;
	e->size_hint = 0;
	e->doubt = false;
	e->sealed = false;
	e->seals = 0;
	e->last_bytes = 0;
	e->sealed_at = 0;
	e->backoff_s = 0;
	e->owner = index->rd_rel->relowner;
	e->persistence = index->rd_rel->relpersistence;
	e->over_cap = false;
	e->full = ART_FULL_AREA;
	e->told = false;
	e->changed = 0;
	e->altered = false;
	e->made_by = InvalidFullTransactionId;
	e->making_pid = 0;
	e->told_out = false;
	e->stuck = false;
	pg_atomic_write_u32(&e->used_at, 0);
	pg_atomic_write_u32(&e->uses, 0);
	e->builds = 0;
	e->last_build = 0;
	e->source = ART_BUILD_CREATE;
	e->last_ms = 0;
	e->failed_at = 0;
	e->failed_free = 0;
	e->failed_room = ART_ROOM_NONE;
	e->wanted_at = 0;
	e->error[0] = '\0';
	memset(e->counts, 0, sizeof(e->counts));
	e->stats_reset = 0;
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
 * Order: an entry is complete before the chain points to it.
 */
ArtEntry *
art_entry_create(Relation index, bool building)
{
	ArtLocator	loc;
	Oid			oid = RelationGetRelid(index);
	LWLock	   *lock;
	ArtEntry   *e;
	ArtEntry  **link;
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

	lock = art_partition(loc.db, oid);
	art_lock(lock, LW_EXCLUSIVE);
	e = art_find(oid, &loc);
	if (e == NULL)
	{
		bool		stale = subid == InvalidSubTransactionId &&
			!IsParallelWorker() && !building;

		for (link = art_chain_link(loc.db, oid); *link;)
		{
			ArtEntry   *o = *link;

			if (o->indexoid == oid && o->loc.db == loc.db)
			{
				if (stale)
				{
					art_entry_forget(link);
					continue;
				}
				if (!building && created && nothers < (int) lengthof(others))
					others[nothers++] = o->loc;
			}
			link = &o->next;
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
		link = art_chain_link(loc.db, oid);
		e->next = *link;
		pg_write_barrier();
		*link = e;
		pg_atomic_fetch_add_u32(&art_shared->entries_changed, 1);
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
	lock = art_partition(loc.db, oid);
	art_lock(lock, LW_SHARED);
	e = art_find(oid, &loc);
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
	lock = art_partition(loc.db, RelationGetRelid(index));
	art_lock(lock, LW_EXCLUSIVE);
	if (art_find(RelationGetRelid(index), &loc) == e)
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
	if (!making)
		return;
	for (int p = 0; p < ART_NPARTITIONS; p++)
	{
		art_lock(&art_dir_locks[p].lock, LW_EXCLUSIVE);
		for (int b = p; b < ART_NBUCKETS; b += ART_NPARTITIONS)
			for (ArtEntry *e = art_shared->buckets[b]; e; e = e->next)
				if (e->making_pid == MyProcPid)
					e->making_pid = 0;
		art_unlock(&art_dir_locks[p].lock);
	}
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

/* ---- ends of a build ---- */

/*
 * BUILDING -> READY, when the structure is still the one that was built.  So is
 * FOLLOWED -> READY, when the promotion of a standby is done.
 *
 * A structure may outlive a crash (crash_memory.h), and then it must be right for the
 * table as it is after that.  The build left out rows that were dead, and put in rows
 * of others who may not come to insert them.  So the WAL there is up to now must
 * survive.  Of committed DDL it is flushed here.  Of this transaction's own
 * ("uncommitted") its commit will tell (art_entry_born), which comes after all of it.
 *
 * Locks: takes the partition lock, exclusive.
 * Order: every member is written before the word says READY; the invalidation
 * is sent after the lock is released.
 * Returns: false if the generation is gone; then nothing was changed.
 */
bool
art_entry_publish_ready(ArtEntry *e, uint64 gen, ArtBuildSource source,
						double ms, bool uncommitted)
{
	Oid			db = e->loc.db;
	Oid			heapoid = e->heapoid;
	LWLock	   *lock = art_partition(db, e->indexoid);
	bool		done = false;
	XLogRecPtr	born = InvalidXLogRecPtr;

	if (art_rings != NULL && !uncommitted &&
		e->persistence == RELPERSISTENCE_PERMANENT)
		born = art_flush_all();

	if (art_shared->timeline == 0 && !RecoveryInProgress())
		art_shared->timeline = GetWALInsertionTimeLine();
	art_lock(lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&e->word) == ART_WORD(gen, ART_BUILDING) ||
		pg_atomic_read_u64(&e->word) == ART_WORD(gen, ART_FOLLOWED))
	{
		e->born_lsn = born;
		e->owner_pid = 0;
		e->resumable = false;
		e->wanted = ART_WANT_NOTHING;
		e->wanted_at = 0;
		e->loading = false;
		if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_BUILDING)
		{
			e->builds++;
			e->last_build = GetCurrentTimestamp();
			e->source = source == ART_BUILD_REBUILD && e->altered ? ART_BUILD_ALTER : source;
			e->last_ms = ms;
		}
		e->altered = false;
		e->behind = e->unswept = false;
		e->failed_at = 0;
		e->failed_free = 0;
		e->sealed = false;
		e->full = ART_FULL_AREA;
		e->error[0] = '\0';
		e->told_out = false;
		e->stuck = false;
		pg_write_barrier();
		pg_atomic_write_u64(&e->word, ART_WORD(gen, ART_READY));
		done = true;
	}
	art_unlock(lock);

	/* after the new state is stored: who plans from here on sees READY */
	if (done)
		art_invalidate_heap(db, heapoid);
	return done;
}

/*
 * The transaction that made the structure has committed, and its commit ends at lsn.
 *
 * Locks: takes the partition lock, exclusive.
 */
void
art_entry_born(Oid indexoid, const ArtLocator *loc, XLogRecPtr lsn)
{
	LWLock	   *lock = art_partition(loc->db, indexoid);
	ArtEntry   *e;

	art_lock(lock, LW_EXCLUSIVE);
	e = art_find(indexoid, loc);
	if (e != NULL && ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_READY)
		e->born_lsn = lsn;
	art_unlock(lock);
}

/*
 * BUILDING -> ABSENT, when the structure is still the one that failed.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
void
art_entry_fail(ArtEntry *e, uint64 gen, ArtReason why, const char *error)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	ax_memory_info mem;

	art_lock(lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&e->word) == ART_WORD(gen, ART_BUILDING))
	{
		ax_ctx	   *cx = art_ctx();

		(void) art_entry_absent(e, why, error);
		ART_CORE_BEGIN();
		ax_memory(cx, &mem);
		ART_CORE_END();
		e->failed_at = GetCurrentTimestamp();
		e->failed_free = mem.free_bytes;
	}
	art_unlock(lock);
}

/* ---- ends of an index ---- */

/*
 * Drop one structure.  forget: its entry too, which is right only when no
 * process can have the index open; else it stays, ABSENT.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
void
art_drop_locator(Oid indexoid, const ArtLocator *loc, bool forget)
{
	LWLock	   *lock = art_partition(loc->db, indexoid);
	ArtEntry  **link;
	bool		was_ready = false;
	Oid			heapoid = InvalidOid;

	art_lock(lock, LW_EXCLUSIVE);
	for (link = art_chain_link(loc->db, indexoid); *link; link = &(*link)->next)
	{
		ArtEntry   *e = *link;

		if (e->indexoid != indexoid || !art_same_locator(&e->loc, loc))
			continue;
		heapoid = e->heapoid;
		if (forget)
			art_entry_forget(link);
		else
			was_ready = art_entry_absent(e, ART_WHY_DROPPED, NULL);
		break;
	}
	art_unlock(lock);
	if (was_ready)
		art_invalidate_heap(loc->db, heapoid);
}

/*
 * Drop every structure of an index.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
void
art_drop_index(Oid db, Oid indexoid, bool forget)
{
	LWLock	   *lock = art_partition(db, indexoid);
	ArtEntry  **link;
	bool		was_ready = false;
	Oid			heapoid = InvalidOid;

	art_lock(lock, LW_EXCLUSIVE);
	for (link = art_chain_link(db, indexoid); *link;)
	{
		ArtEntry   *e = *link;

		if (e->indexoid != indexoid || e->loc.db != db)
			link = &e->next;
		else if (forget)
			art_entry_forget(link);
		else
		{
			heapoid = e->heapoid;
			was_ready |= art_entry_absent(e, ART_WHY_DROPPED, NULL);
			link = &e->next;
		}
	}
	art_unlock(lock);
	if (was_ready)
		art_invalidate_heap(db, heapoid);
}

/*
 * Drop what a test accepts, in every chain.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition locks, exclusive, one after the other.
 */
static void
drop_where(Oid db, int backend, bool forget)
{
	for (int p = 0; p < ART_NPARTITIONS; p++)
	{
		LWLock	   *lock = &art_dir_locks[p].lock;

		art_lock(lock, LW_EXCLUSIVE);
		for (int b = p; b < ART_NBUCKETS; b += ART_NPARTITIONS)
		{
			ArtEntry  **link = &art_shared->buckets[b];

			while (*link)
			{
				ArtEntry   *e = *link;

				if (e->loc.db != db || (backend != -1 && e->loc.backend != backend))
					link = &e->next;
				else if (forget)
					art_entry_forget(link);
				else
				{
					(void) art_entry_absent(e, ART_WHY_DROPPED, NULL);
					link = &e->next;
				}
			}
		}
		art_unlock(lock);
	}
}

/*
 * Drop every structure of a database.
 *
 * Locks: takes the partition locks, exclusive, one after the other.
 */
void
art_drop_database(Oid db, bool forget)
{
	drop_where(db, -1, forget);
}

/*
 * This process exits: drop the structures of its temporary relations that are
 * left (normally none is: the relations were dropped before).
 */
void
art_drop_temp(void)
{
	int			backend;

	if (!made_temp)
		return;
	made_temp = false;
#if PG_VERSION_NUM >= 170000
	backend = (int) MyProcNumber;
#else
	backend = (int) MyBackendId;
#endif
	if (backend != -1)
		drop_where(MyDatabaseId, backend, true);
}

/*
 * Invalidate plans and relcache entries of a heap in every process, now.
 * (CacheInvalidateRelcache() sends its messages at commit only, and not at all
 * when the transaction aborts.)
 */
void
art_invalidate_heap(Oid db, Oid heapoid)
{
	SharedInvalidationMessage msg;

	memset(&msg, 0, sizeof(msg));
	msg.rc.id = SHAREDINVALRELCACHE_ID;
	msg.rc.dbId = db;
	msg.rc.relId = heapoid;
	SendSharedInvalidMessages(&msg, 1);
}
