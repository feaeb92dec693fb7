/*
 * entry_states.c
 *	  The states of an entry: what each change of state sets and resets.
 *
 *	  ABSENT --build--> BUILDING --> READY, and from any state back to ABSENT.
 *
 * State and generation are one atomic word.  It changes only here, and only under the
 * partition lock of the entry's chain, exclusive.  That lock also serializes open and close
 * of the core's handle.
 *
 * src/area/README.md: The directory
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "area/crash_memory.h"
#include "area/shared_state.h"

/*
 * The entry is about to come into that state: what the state before has left there goes.  Here
 * is said what a change of state resets, and nowhere else.
 *
 * Locks: partition lock held, exclusive.
 */
static void
reset_for(ArtEntry *e, ArtState state)
{
	/* of any build, and of any follower */
	e->resumable = false;
	e->behind = e->unswept = false;
	if (state == ART_BUILDING)
	{
		e->helpers = 0;
		e->nredo = 0;
		e->spent_ms = 0;
		e->load_key_us = 0;
		pg_atomic_write_u64(&e->blocks_done, 0);
		pg_atomic_write_u64(&e->blocks_total, 0);
		return;
	}
	e->owner_pid = 0;
	e->loading = false;
	e->altered = false;
	e->error[0] = '\0';
	if (state == ART_ABSENT)
		return;

	/* it is there: nobody wants it, and no failure counts */
	e->wanted = ART_WANT_NOTHING;
	e->wanted_at = 0;
	e->failed_at = 0;
	e->failed_free = 0;
	e->sealed = false;
	e->full = ART_FULL_AREA;
	e->told_out = false;
	e->stuck = false;
}

/*
 * The state is another from here on.
 *
 * Order: every member is written before the word.
 */
static void
set_state(ArtEntry *e, uint64 gen, ArtState state)
{
	pg_write_barrier();
	pg_atomic_write_u64(&e->word, ART_WORD(gen, state));
}

/* ---- to ABSENT ---- */

/*
 * Epoch: enters and leaves.
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive, when
 * counted aborts are to be kept.
 * Order: the state is ABSENT before the core closes the generation.
 */
bool
art_entry_absent(ArtEntry *e, ArtReason why, const char *error)
{
	uint64		w = pg_atomic_read_u64(&e->word);

	reset_for(e, ART_ABSENT);
	e->reason = why;
	if (why != ART_WHY_MEMORY)
		e->sealed = false;
	if (error)
		strlcpy(e->error, error, sizeof(e->error));
	if (ART_WORD_STATE(w) != ART_ABSENT)
	{
		ax_ctx	   *cx = art_ctx();

		art_counts_keep(e, ART_WORD_GEN(w));
		set_state(e, 0, ART_ABSENT);
		ART_CORE_BEGIN();
		ax_tree_close(cx, e->tree);
		ART_CORE_END();
	}
	pg_atomic_fetch_add_u32(&art_shared->unsettled, 1);
	return ART_WORD_STATE(w) == ART_READY || ART_WORD_STATE(w) == ART_FOLLOWED;
}

/*
 * Epoch: enters and leaves.
 * Locks: partition lock held, exclusive.
 */
void
art_entry_discard(ArtEntry *e)
{
	char		error[sizeof(e->error)];

	strlcpy(error, e->error, sizeof(error));
	(void) art_entry_absent(e, e->reason, error);
}

void
art_entry_again(ArtEntry *e)
{
	e->wanted = Max(e->wanted, ART_WANT_PLAN);
	e->not_before = 0;
	e->failed_at = 0;
	e->failed_free = 0;
}

/*
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

/*
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
void
art_entry_stuck(ArtEntry *e, uint64 gen)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);

	art_lock(lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&e->word) == ART_WORD(gen, ART_BUILDING))
	{
		(void) art_entry_absent(e, ART_WHY_ERROR, ART_STUCK_TEXT);
		art_stuck_note(e);
	}
	art_unlock(lock);
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

/* ---- to BUILDING ---- */

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
 * Locks: partition lock held, exclusive.
 */
void
art_entry_own(ArtEntry *e)
{
	e->loading = false;
	e->owner_slot = ART_MY_PROCNO();
	e->owner_pid = MyProcPid;
	e->owner_build = pg_atomic_add_fetch_u64(&art_shared->build_number, 1);
	e->wanted_at = 0;
}

/*
 * Epoch: enters and leaves.
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive
 * (entry_identify).
 * Order: the full barrier after the word comes before the heap is read, so the build finds
 * every row whose inserter saw ABSENT.
 */
ax_status
art_entry_open_as(ArtEntry *e, Relation index, const ArtOpening *o, const ArtEngine *want,
				  uint64 max_bytes, uint64 *gen)
{
	ax_ctx	   *cx = art_ctx();
	ax_status	st;

	if (!entry_identify(e, o))
		return AX_NOMEM;
	ART_CORE_BEGIN();
	st = ax_tree_open(cx, e->tree, o->compared ? AX_BTREE_COMPARED : want->structure,
					  max_bytes, want->page_size, gen);
	ART_CORE_END();
	if (st != AX_OK)
		return st;

	reset_for(e, ART_BUILDING);
	e->engine = want->structure;
	e->page_size = want->page_size;
	art_tell_options(e, *gen, index);
	if (index == NULL)
		e->loading = true;
	else
		art_entry_own(e);
	set_state(e, *gen, ART_BUILDING);
	pg_atomic_fetch_add_u32(&art_shared->unsettled, 1);

	/* an inserter that stored its row before it saw ABSENT is seen by us */
	pg_memory_barrier();
	return AX_OK;
}

/*
 * Epoch: enters and leaves.
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive
 * (entry_identify).
 */
ax_status
art_entry_open(ArtEntry *e, Relation index, const ArtOpening *o, bool native, uint64 *gen)
{
	ArtEngine	want;

	art_engine_of((ArtOptions *) index->rd_options, &want);
	e->native = native;
	e->fill = art_fillfactor(index);
	return art_entry_open_as(e, index, o, &want, art_max_memory(index), gen);
}

/* ---- to READY and FOLLOWED ---- */

/*
 * BUILDING -> READY or FOLLOWED, or FOLLOWED -> READY.  False if the generation is gone; then
 * nothing was changed.
 *
 * Locks: partition lock held, exclusive.
 */
static bool
publish(ArtEntry *e, uint64 gen, ArtState state, ArtBuildSource source, double ms,
		bool behind, XLogRecPtr born)
{
	uint64		w = pg_atomic_read_u64(&e->word);

	if (w != ART_WORD(gen, ART_BUILDING) &&
		(w != ART_WORD(gen, ART_FOLLOWED) || state == ART_FOLLOWED))
		return false;
	if (ART_WORD_STATE(w) == ART_BUILDING)
	{
		e->builds++;
		e->last_build = GetCurrentTimestamp();
		e->source = source == ART_BUILD_REBUILD && e->altered ? ART_BUILD_ALTER : source;
		e->last_ms = ms;
	}
	reset_for(e, state);
	e->behind = behind;
	e->born_lsn = born;
	set_state(e, gen, state);
	return true;
}

/*
 * A structure may outlive a crash (crash_memory.h), and then it must be right for the
 * table as it is after that.  The build left out rows that were dead, and put in rows
 * of others who may not come to insert them.  So the WAL there is up to now must
 * survive.  Of committed DDL it is flushed here.  Of this transaction's own
 * ("uncommitted") its commit will tell (art_entry_born), which comes after all of it.
 *
 * Locks: takes the partition lock, exclusive.
 */
bool
art_entry_publish_ready(ArtEntry *e, uint64 gen, ArtBuildSource source,
						double ms, bool uncommitted)
{
	Oid			db = e->loc.db;
	Oid			heapoid = e->heapoid;
	LWLock	   *lock = art_partition(db, e->indexoid);
	bool		done;
	XLogRecPtr	born = InvalidXLogRecPtr;

	if (art_rings != NULL && !uncommitted &&
		e->persistence == RELPERSISTENCE_PERMANENT)
		born = art_flush_all();

	if (art_shared->timeline == 0 && !RecoveryInProgress())
		art_shared->timeline = GetWALInsertionTimeLine();
	art_lock(lock, LW_EXCLUSIVE);
	done = publish(e, gen, ART_READY, source, ms, false, born);
	art_unlock_changed(lock, done, db, heapoid);
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
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);

	if (e != NULL && ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_READY)
		e->born_lsn = lsn;
	art_unlock(lock);
}

/*
 * Locks: takes the partition lock, exclusive.
 */
bool
art_followed_publish(Oid indexoid, const ArtLocator *loc, uint64 gen, double ms, bool behind)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);
	Oid			heapoid = e != NULL ? e->heapoid : InvalidOid;
	bool		done = e != NULL && publish(e, gen, ART_FOLLOWED, ART_BUILD_REBUILD, ms,
											behind, InvalidXLogRecPtr);

	art_unlock_changed(lock, done, loc->db, heapoid);
	return done;
}

/*
 * Locks: takes the partition lock, exclusive.
 */
bool
art_followed_mark(Oid indexoid, const ArtLocator *loc, uint64 gen, bool behind, bool unswept)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);
	bool		done = e != NULL && pg_atomic_read_u64(&e->word) == ART_WORD(gen, ART_FOLLOWED);

	if (done)
	{
		e->behind = behind;
		e->unswept = unswept;
	}
	art_unlock(lock);
	return done;
}

/*
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
bool
art_followed_close(Oid indexoid, const ArtLocator *loc, uint64 gen, ArtReason why,
				   const char *error)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);
	Oid			heapoid = e != NULL ? e->heapoid : InvalidOid;
	bool		there = e != NULL && ART_WORD_GEN(pg_atomic_read_u64(&e->word)) == gen &&
		ART_WORD_STATE(pg_atomic_read_u64(&e->word)) != ART_ABSENT &&
		ART_WORD_STATE(pg_atomic_read_u64(&e->word)) != ART_READY;

	if (there)
	{
		(void) art_entry_absent(e, why, error);
		if (why == ART_WHY_MEMORY)
			e->full = art_what_is_full(NULL);
		if (why == ART_WHY_ERROR && art_watch_end() == ART_END_STUCK)
			art_stuck_note(e);
	}
	art_unlock_changed(lock, there, loc->db, heapoid);
	return there;
}

/* ---- over a crash ---- */

void
art_entry_keep(ArtEntry *e)
{
	reset_for(e, ART_READY);
	e->not_before = 0;
	e->making_pid = 0;
	e->made_by = InvalidFullTransactionId;
	e->told = false;
	e->changed |= ART_CHANGED_CAP | ART_CHANGED_ENGINE | ART_CHANGED_TAIL;
	e->source = ART_BUILD_KEPT;
	e->unchecked = true;
}
