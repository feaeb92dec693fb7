/*
 * insert.c
 *	  aminsert: encode, then insert unless the structure is absent.
 *
 * The order makes a later build sound (src/live/README.md, Residency).  The heap
 * tuple is there already.  The key is encoded and every refusal raised before
 * anything else.  Only then is the state read, from shared memory.  An insert
 * that reads ABSENT may leave the row to the next build, which reads the
 * heap's size after it has published BUILDING.
 *
 * src/live/README.md: Residency
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "am/predicate_locks.h"
#include "area/area.h"
#include "area/crash_memory.h"
#include "area/tree_calls.h"
#include "build/build.h"
#include "limits/limits.h"

/*
 * The state that a statement keeps from row to row.
 */
static ArtInsertState *
art_insert_state(Relation index, IndexInfo *indexInfo)
{
	ArtInsertState *st;
	ArtRelCache *rc;
	MemoryContext cxt;

	if (indexInfo != NULL && indexInfo->ii_AmCache != NULL)
		return (ArtInsertState *) indexInfo->ii_AmCache;

	cxt = indexInfo != NULL ? indexInfo->ii_Context : CurrentMemoryContext;
	rc = art_relcache(index);
	st = MemoryContextAlloc(cxt, sizeof(ArtInsertState));
	st->kd = rc->kd;
	st->entry = rc->entry;
	/* reads catalogs: rc may be gone */
	art_keydesc_own(&st->kd, cxt);
	st->keylen = st->collen = 0;
	st->limit = st->kd.fixed ? ART_LIMIT_NONE : ART_LIMIT_UNKNOWN;
	st->ring = art_outlives(index) && !st->kd.compared;
	st->waits = indexInfo != NULL && index->rd_index->indisvalid &&
		!index->rd_index->indisexclusion && !st->kd.compared;
	st->validates = indexInfo != NULL && indexInfo->ii_Concurrent;
	st->rows = 0;
	st->hazard = NULL;
	st->cxt = cxt;
	art_buf_init(&st->key, cxt, st->kd.fixed ?
				 st->kd.fixed_len + AX_TID_BYTES : 64);
	if (indexInfo != NULL)
		indexInfo->ii_AmCache = st;
	return st;
}

/*
 * aminsert
 *
 * Arguments: those of aminsert.
 */
bool
artinsert(Relation index, Datum *values, bool *isnull, ItemPointer heap_tid,
		  Relation heap, IndexUniqueCheck checkUnique, bool indexUnchanged,
		  IndexInfo *indexInfo)
{
	ArtInsertState *st = art_insert_state(index, indexInfo);
	bool		hasnull;
	bool		result = false;

	check_stack_depth();		/* the core takes up to 400 kB */
	art_check_btree_limit(heap, index, &st->limit, values, isnull, heap_tid);
	if (checkUnique != UNIQUE_CHECK_EXISTING && index->rd_index->indisunique)
	{
		ArtEntry   *e = st->entry != NULL ? st->entry : art_relcache_entry(index);

		if (e != NULL && unlikely(art_entry_over_cap(e)))
			art_refuse_over_cap(index, e);
	}

	hasnull = art_encode(&st->kd, values, isnull, &st->key);
	st->keylen = st->key.len;
	st->collen = art_cols_len(&st->kd, st->key.data, st->keylen);
	art_buf_reserve(&st->key, AX_TID_BYTES);
	ax_put_tid(st->key.data + st->keylen, art_tid_pack(heap_tid));

	if (checkUnique == UNIQUE_CHECK_NO)
	{
		if (indexUnchanged || !st->waits || !art_queue_put(index, st))
			art_insert_plain(index, st);
		if (indexUnchanged)
			art_churn(index, heap, st, heap_tid);
	}
	else if (hasnull && !index->rd_index->indnullsnotdistinct)
	{
		/* a NULL is equal to nothing */
		if (checkUnique != UNIQUE_CHECK_EXISTING)
		{
			art_insert_plain(index, st);
			if (indexUnchanged)
				art_churn(index, heap, st, heap_tid);
		}
		result = true;
	}
	else if (unlikely(!index->rd_index->indisvalid) &&
			 art_relcache_entry(index) == NULL && art_never_valid(index, NULL))
		result = true;			/* nobody needs it, and there may be no room */
	else
	{
		art_require_preload(index);
		result = art_insert_unique(index, st, values, isnull, heap_tid, heap,
								   checkUnique);
	}

	/* after the entry is there: predicate_locks.c */
	if (IsolationIsSerializable() && checkUnique != UNIQUE_CHECK_EXISTING)
		art_ssi_inserted(index, &st->kd, st->key.data, st->collen,
						 st->keylen + AX_TID_BYTES);

	return result;
}
