/*
 * switch_options.c
 *	  ALTER INDEX ... SET (structure, sync, page_size, max_memory, tail_buffer,
 *	  elision): how a structure comes to be what the options say.
 *
 * A structure cannot become one of another engine, so it is dropped.  Its
 * index is then absent, hidden from plans, and built again like any other.  A
 * drop is never unsafe, only slow.  So only two things must hold: the drop
 * happens, and it does not happen for a command that is rolled back.
 *
 * - The options are read just before the commit.  The commit drops a structure
 *   of another engine and invalidates plans.  The command holds its
 *   AccessExclusiveLock on the index until after that.
 * - Where the options could not be read, the entry is marked.  The next process
 *   to open the index compares the structure with the options.  It has them in
 *   its relation cache, and a lock that keeps others from altering them.  A
 *   rollback leaves the mark, too: its transaction may have built the index by
 *   options that never were.  So do the claim of a saved file, and the sweeper
 *   after a prepared transaction.
 * - Within the transaction nothing is dropped, so a rollback finds the
 *   structure as it was.
 *
 * A new max_memory needs no other structure; the present one is told.  If that
 * already holds more, the index is sealed just before the commit, or else when
 * a process next opens it.  A unique index takes no row instead, until it
 * holds less.
 *
 * The present structure is told tail_buffer and elision, too.  Their command
 * lets readers and writers go on (ShareUpdateExclusiveLock), with the old
 * values in their relation caches for long.  So the commit tells the
 * structure, and the entry keeps the values for the structures to come.  Some
 * structures have never been told by a commit.  Either a saved file was
 * claimed, or the transaction that opened the structure altered its index and
 * was rolled back.  Then the next process to open the index looks the options
 * up.
 *
 * src/live/README.md: Switching
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "storage/lwlock.h"
#include "utils/syscache.h"

#include "limits/limits.h"
#include "live/background.h"
#include "live/live.h"

#define ART_DRAIN_STEPS	1000	/* of some dozens of entries each */

/*
 * Tell the entry which options are asked for now.
 *
 * Locks: partition lock held, exclusive.
 */
static void
tell_other(ArtEntry *e, const ArtEngine *want)
{
	uint64		w = pg_atomic_read_u64(&e->word);
	bool		tail = e->tail != want->tail;
	bool		elide = e->elide != want->elide;

	e->tail = want->tail;
	e->elide = want->elide;
	if (ART_WORD_STATE(w) == ART_ABSENT || (!tail && !elide))
		return;
	art_tell(e, ART_WORD_GEN(w));
	if (tail && e->tail == AX_TAIL_OFF)
		e->changed |= ART_CHANGED_DRAIN;
}

bool
art_catalog_engine(Oid indexoid, ArtEngine *want)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	ArtOptions *opts = NULL;
	Datum		reloptions;
	bool		isnull;

	if (!HeapTupleIsValid(tup))
		return false;			/* dropped in the same transaction */
	reloptions = SysCacheGetAttr(RELOID, tup, Anum_pg_class_reloptions, &isnull);
	if (!isnull)
		opts = (ArtOptions *) artoptions(reloptions, false);
	art_engine_of(opts, want);
	ReleaseSysCache(tup);
	return true;
}

/* The core's default stands for 0, of an engine that is asked for no pages. */
static uint32
page_bytes(uint32 page_size)
{
	return page_size != 0 ? page_size : AX_PAGE_SIZE_DEFAULT;
}

/*
 * Was the structure that an entry had last another than is wanted (NULL: not
 * known)?  Keys that are compared have one engine, whatever is asked for.
 */
static bool
other_engine(const ArtEntry *e, const ArtEngine *want)
{
	if (want == NULL)
		return false;
	if (e->compared)
		return page_bytes(e->page_size) != page_bytes(want->page_size);
	return e->page_size != want->page_size || e->engine != want->structure;
}

/*
 * Drop the structure if it is another than wanted; it is built again without
 * delay.  True when plans may depend on it.
 *
 * Epoch: enters and leaves.
 * Locks: partition lock held, exclusive.
 */
static bool
drop_other(ArtEntry *e, const ArtEngine *want)
{
	bool		was_ready;
	bool		other = other_engine(e, want);

	if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT)
		return false;
	e->engine = want->structure;
	if (!other)
		return false;
	was_ready = art_entry_absent(e, ART_WHY_ALTERED, NULL);
	e->altered = true;
	art_entry_again(e);
	return was_ready;
}

/*
 * max_memory is not read here.  The next process to open the index tells the
 * structure (art_apply_options).  It has the new value in the relation cache,
 * for the command holds the index locked until others can see the new catalog
 * row.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
void
art_index_altered(Oid indexoid, const ArtEngine *want)
{
	ArtWalk		w = art_walk(LW_EXCLUSIVE, MyDatabaseId, indexoid);
	bool		wake = false;
	bool		was_ready = false;
	Oid			heapoid = InvalidOid;

	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		e->changed |= ART_CHANGED_CAP;
		if (want == NULL)
			e->changed |= ART_CHANGED_ENGINE | (e->told ? 0 : ART_CHANGED_TAIL);
		else
		{
			e->told = true;
			e->changed &= ~ART_CHANGED_TAIL;
			tell_other(e, want);
			heapoid = e->heapoid;
			was_ready |= drop_other(e, want);
			wake |= e->altered;
		}
		if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT &&
			e->reason == ART_WHY_MEMORY &&
			(!e->sealed || e->full == ART_FULL_CAP || other_engine(e, want)))
		{
			/*
			 * It may fit now, for all we know; and of another engine nobody
			 * knows what it will take.
			 */
			if (other_engine(e, want))
			{
				e->engine = want->structure;
				e->page_size = want->page_size;
				e->last_bytes = 0;
			}
			e->full = ART_FULL_AREA;
			e->backoff_s = 0;
			art_entry_again(e);
			wake = true;
		}
	}

	/* after the state is stored: who plans from here on does without it */
	if (was_ready)
		art_invalidate_heap(MyDatabaseId, heapoid);
	if (wake)
		art_launcher_wake();
}

/*
 * Compare the index, which is open, with its entry.  committing: what this
 * transaction altered is about to be committed.
 *
 * Epoch: enters and leaves, under the lock; the buffer is drained after it was
 * released.
 * Locks: takes the partition lock, exclusive, if anything has changed.
 */
static void
apply_options(Relation index, ArtEntry *e, bool committing)
{
	uint8		changed;
	uint64		max;
	ArtEngine	want;
	bool		was_ready = false,
				dropped = false;
	uint64		drain = 0, over = 0;	/* generations */
	LWLock	   *lock;

	/* set before the lock was released that we then took */
	if (likely(e->changed == 0))
		return;

	/*
	 * Where our own transaction altered options, its commit decides; a
	 * parallel worker cannot tell whether its transaction did.
	 */
	changed = ART_CHANGED_CAP | ART_CHANGED_DRAIN;
	if (!IsParallelWorker() && !art_pending_altered(RelationGetRelid(index)))
		changed |= ART_CHANGED_ENGINE | ART_CHANGED_TAIL;

	max = art_max_memory(index);
	art_engine_of((ArtOptions *) index->rd_options, &want);
	lock = art_entry_lock(index, e);
	if (lock == NULL)
		return;
	changed &= e->changed;
	if (changed & ART_CHANGED_ENGINE)
	{
		was_ready = drop_other(e, &want);
		dropped = e->altered;
	}
	if (changed & ART_CHANGED_TAIL)
		tell_other(e, &want);
	if ((changed | e->changed) & ART_CHANGED_DRAIN)
	{
		uint64		w = pg_atomic_read_u64(&e->word);

		changed |= ART_CHANGED_DRAIN;
		if (ART_WORD_STATE(w) != ART_ABSENT)
			drain = ART_WORD_GEN(w);
	}
	if (changed & ART_CHANGED_CAP)
	{
		uint64		w = pg_atomic_read_u64(&e->word);
		ax_ctx	   *cx = art_ctx();

		if (ART_WORD_STATE(w) != ART_ABSENT)
		{
			ART_CORE_BEGIN();
			(void) ax_tree_set_cap(cx, e->tree, ART_WORD_GEN(w), max);
			ART_CORE_END();
		}
		e->over_cap = false;
		if (ART_WORD_STATE(w) == ART_FOLLOWED)
			changed &= ~ART_CHANGED_CAP;	/* once more when it is handed over */
		else if (max != 0 && ART_WORD_STATE(w) == ART_READY &&
			art_structure_bytes(e, ART_WORD_GEN(w)) > max)
		{
			e->over_cap = index->rd_index->indisunique;
			over = ART_WORD_GEN(w);
		}
	}
	e->changed &= ~changed;
	art_unlock_changed(lock, was_ready, e->loc.db, e->heapoid);
	if (dropped)
		art_launcher_wake();
	if (drain != 0)
		art_tail_drain(e, drain);

	/* not for what may be rolled back: the commit looks again */
	if (over != 0 && !e->over_cap && (committing || (!IsParallelWorker() &&
		 !art_pending_altered(RelationGetRelid(index)))))
		art_seal_for(index, e, over, ART_FULL_CAP);
}

void
art_apply_options(Relation index, ArtEntry *e)
{
	apply_options(index, e, false);
}

/*
 * Locks: AccessShareLock on the index, to the end of the transaction.
 */
void
art_apply_cap(Oid indexoid)
{
	Relation	index = try_relation_open(indexoid, AccessShareLock);
	ArtEntry   *e = NULL;

	if (index == NULL)
		return;					/* dropped in the same transaction */
	if (art_is_art_index(index) && !RELATION_IS_OTHER_TEMP(index))
		e = art_entry_if_exists(index);
	if (e != NULL)
		apply_options(index, e, true);
	relation_close(index, NoLock);
}

/*
 * A conversion makes the index of an exclusion constraint before it is the
 * constraint's.  Nothing is known to change how keys are made: another
 * operator class or collation makes another file.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
void
art_apply_kind(Relation index, ArtEntry *e, bool compared)
{
	const bool	unique = index->rd_index->indisunique || index->rd_index->indisexclusion;
	LWLock	   *lock;
	bool		was_ready = false;
	bool		dropped = false;

	if (likely(e->compared == compared && e->unique == unique))
		return;
	lock = art_entry_lock(index, e);
	if (lock == NULL)
		return;
	e->unique = unique;
	if (e->compared != compared &&
		ART_WORD_STATE(pg_atomic_read_u64(&e->word)) != ART_ABSENT)
	{
		was_ready = art_entry_absent(e, ART_WHY_ALTERED, NULL);
		art_entry_again(e);
		dropped = true;
	}
	art_unlock_changed(lock, was_ready, e->loc.db, e->heapoid);
	if (dropped)
	{
		art_launcher_wake();
		ereport(LOG,
				(errmsg("art index \"%s\" was dropped from memory, since its keys are no longer %s",
						RelationGetRelationName(index),
						compared ? "encoded" : "compared")));
	}
}

/*
 * Epoch: enters and leaves, once a step.
 * Locks: none.
 */
void
art_tail_drain(ArtEntry *e, uint64 gen)
{
	ax_ctx	   *cx = art_ctx();
	bool		more = true;
	ax_status	s = AX_OK;

	/* inserters can go on filling it */
	for (int i = 0; i < ART_DRAIN_STEPS && s == AX_OK && more &&
		 !INTERRUPTS_PENDING_CONDITION(); i++)
	{
		ART_CORE_BEGIN();
		s = ax_tail_flush(cx, e->tree, gen, &more);
		ART_CORE_END();
	}
}
