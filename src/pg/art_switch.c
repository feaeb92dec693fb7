/*
 * art_switch.c
 *	  ALTER INDEX ... SET (structure, sync, page_size, max_memory): how a
 *	  structure comes to be what the options say.
 *
 * Another engine cannot be made of a structure, so it is dropped, upon which the
 * index is absent, out of plans, and built again like any other.  That is what a
 * drop always is: never unsafe, only slow.  So nothing has to be proved here
 * but that it happens, and not for a command that is rolled back:
 *
 * - Before the commit the new options are read, and at the commit, which the
 *   command's lock on the index outlives (AccessExclusiveLock), the structure is
 *   dropped if it has another engine, and plans are invalidated.
 * - A mark on the entry tells whoever opens the index next, who has its options
 *   in the relation cache and a lock against their being altered, to compare.
 *   Left where the options could not be read: by a rollback (the transaction
 *   may have built its own uncommitted idea of the index), by the claim of a
 *   saved file, by the sweeper after a prepared transaction.
 * - Within the transaction nothing is dropped: a rollback finds the structure
 *   as it was.
 *
 * A new max_memory needs no other structure; it is told to the present one.
 */
#include "artidx.h"

#include "access/parallel.h"
#include "catalog/pg_class.h"
#include "storage/lwlock.h"
#include "utils/syscache.h"

#include "pg/art_pg.h"

/*
 * See art_pg.h.
 */
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
	want->structure = art_engine(opts, &want->page_size);
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
 * Drop the structure if it is another than wanted; built again without
 * delay.  Partition lock held, exclusive; true when plans may depend on it.
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
	e->wanted = Max(e->wanted, ART_WANT_PLAN);
	e->not_before = 0;
	e->failed_at = 0;
	e->failed_free = 0;
	return was_ready;
}

/*
 * See art_pg.h.
 *
 * max_memory is not read here.  Whoever opens the index next has the new value
 * in the relation cache, for the command holds the index locked until others
 * can see the new catalog row, and tells the structure (art_apply_options).
 */
void
art_index_altered(Oid indexoid, const ArtEngine *want)
{
	LWLock	   *lock = art_partition(MyDatabaseId, indexoid);
	bool		wake = false;
	bool		was_ready = false;
	Oid			heapoid = InvalidOid;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (ArtEntry *e = art_chain(MyDatabaseId, indexoid); e; e = e->next)
	{
		if (e->indexoid != indexoid || e->loc.db != MyDatabaseId)
			continue;
		e->changed |= ART_CHANGED_CAP;
		if (want == NULL)
			e->changed |= ART_CHANGED_ENGINE;
		else
		{
			heapoid = e->heapoid;
			was_ready |= drop_other(e, want);
			wake |= e->altered;
		}
		if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT &&
			e->reason == ART_WHY_MEMORY &&
			(!e->sealed || e->sealed_cap != 0 || other_engine(e, want)))
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
			e->sealed_cap = 0;
			e->backoff_s = 0;
			e->not_before = 0;
			e->failed_at = 0;
			e->failed_free = 0;
			e->wanted = Max(e->wanted, ART_WANT_PLAN);
			wake = true;
		}
	}
	LWLockRelease(lock);

	/* after the state is stored: who plans from here on does without it */
	if (was_ready)
		art_invalidate_heap(MyDatabaseId, heapoid);
	if (wake)
		art_launcher_wake();
}

/*
 * See artidx.h.
 */
void
art_apply_options(Relation index, ArtEntry *e)
{
	uint8		changed;
	uint64		max;
	ArtEngine	want;
	bool		was_ready = false;
	bool		dropped = false;
	LWLock	   *lock;

	/* set before the lock was released that we then took */
	if (likely(e->changed == 0))
		return;

	/*
	 * What our own transaction altered, its commit decides; a parallel worker
	 * cannot tell whether its transaction did.
	 */
	changed = ART_CHANGED_CAP;
	if (!IsParallelWorker() && !art_pending_altered(RelationGetRelid(index)))
		changed |= ART_CHANGED_ENGINE;

	max = art_max_memory(index);
	want.structure = art_engine((ArtOptions *) index->rd_options, &want.page_size);
	lock = art_partition(e->loc.db, e->indexoid);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	changed &= e->changed;
	if (changed & ART_CHANGED_ENGINE)
	{
		was_ready = drop_other(e, &want);
		dropped = e->altered;
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
	}
	e->changed &= ~changed;
	LWLockRelease(lock);

	if (was_ready)
		art_invalidate_heap(e->loc.db, e->heapoid);
	if (dropped)
		art_launcher_wake();
}
