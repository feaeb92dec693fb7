/*
 * table_scan.c
 *	  The scan of a table for CREATE INDEX: core's, but for pages that are all-visible.
 *
 * Core's scan takes the page's lock once a row, and judges each row by the horizon.
 * The lock on the table keeps writers and VACUUM out.  So a page whose rows all can see
 * is read under one lock, and all its rows are live.  Tables that were vacuumed, or
 * loaded with COPY FREEZE, have hardly any other page.
 *
 * src/build/README.md: Builds
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/syncscan.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"

#include "build/build.h"

/* most pages in one call of core's scan, which reads through a ring of its own */
#define MOST_PAGES		1024

typedef struct BuildScan
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	IndexBuildCallback callback;
	void	   *arg;
	TupleTableSlot *slot;
	BufferAccessStrategy strategy;	/* NULL: the table is small */
	Buffer		map;			/* of the visibility map */
	BlockNumber nblocks;
	/* one process */
	BlockNumber start;
	BlockNumber done;
	/* several: NULL without */
	ParallelBlockTableScanDesc shared;
	ParallelBlockTableScanWorkerData worker;
} BuildScan;

/*
 * The next page of this process; InvalidBlockNumber: no more.  The order is core's.
 */
static BlockNumber
next_page(BuildScan *s)
{
	BlockNumber blkno;

	if (s->shared != NULL)
		return table_block_parallelscan_nextpage(s->heap, &s->worker, s->shared);
	if (s->done == s->nblocks)
		return InvalidBlockNumber;
	blkno = (BlockNumber) (((uint64) s->start + s->done++) % s->nblocks);
	if (s->strategy != NULL && synchronize_seqscans)
		ss_report_location(s->heap, blkno);
	return blkno;
}

/*
 * The rows of an all-visible page: how many.  The page stays pinned, as in core's scan,
 * and is not locked while rows are handed out.
 */
static double
visible_page(BuildScan *s, BlockNumber blkno)
{
	Buffer		buf = ReadBufferExtended(s->heap, MAIN_FORKNUM, blkno, RBM_NORMAL, s->strategy);
	Page		page = BufferGetPage(buf);
	OffsetNumber roots[MaxHeapTuplesPerPage];
	OffsetNumber maxoff;
	OffsetNumber orphan;
	int			n = 0;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	if (!PageIsAllVisible(page))
	{
		/* the map is wrong: go by the rows */
		UnlockReleaseBuffer(buf);
		return table_index_build_range_scan(s->heap, s->index, s->info, false, false, false,
											blkno, 1, s->callback, s->arg, NULL);
	}
	maxoff = PageGetMaxOffsetNumber(page);
	orphan = art_visible_roots(page, roots);
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
	if (orphan != InvalidOffsetNumber)
		art_report_orphan(s->heap, blkno, orphan);

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		HeapTupleData tup;
		ItemPointerData tid;
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];

		if (roots[off - 1] == InvalidOffsetNumber)
			continue;
		tup.t_data = (HeapTupleHeader) PageGetItem(page, lp);
		tup.t_len = ItemIdGetLength(lp);
		tup.t_tableOid = RelationGetRelid(s->heap);
		ItemPointerSet(&tup.t_self, blkno, off);
		ExecStoreHeapTuple(&tup, s->slot, false);
		FormIndexDatum(s->info, s->slot, NULL, values, isnull);
		ItemPointerSet(&tid, blkno, roots[off - 1]);
		s->callback(s->index, &tid, values, isnull, true, s->arg);
		n++;
	}
	ExecClearTuple(s->slot);
	ReleaseBuffer(buf);
	return n;
}

/* For pg_stat_progress_create_index, as core's scan. */
static void
show_progress(BuildScan *s)
{
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, s->shared == NULL ? s->done :
								 Min(pg_atomic_read_u64(&s->shared->phs_nallocated), s->nblocks));
}

/* The pages, one after the other.  Returns the rows that are live. */
static double
scan_pages(BuildScan *s, bool progress)
{
	/* so that nobody has much to do when the others are done */
	const BlockNumber most = Max(1, Min(MOST_PAGES, s->shared ? s->nblocks / 1024 : MOST_PAGES));
	BlockNumber blkno = next_page(s);
	double		rows = 0;

	while (blkno != InvalidBlockNumber)
	{
		BlockNumber first = blkno;
		BlockNumber n = 0;

		CHECK_FOR_INTERRUPTS();
		if (progress)
			show_progress(s);
		if (VM_ALL_VISIBLE(s->heap, blkno, &s->map))
		{
			rows += visible_page(s, blkno);
			blkno = next_page(s);
			continue;
		}
		do
		{
			n++;
			blkno = next_page(s);
		} while (blkno == first + n && n < most && !VM_ALL_VISIBLE(s->heap, blkno, &s->map));
		rows += table_index_build_range_scan(s->heap, s->index, s->info, false, false, false,
											 first, n, s->callback, s->arg, NULL);
	}
	return rows;
}

double
art_build_heap_scan(Relation heap, Relation index, IndexInfo *info, bool progress,
					IndexBuildCallback callback, void *arg, TableScanDesc scan)
{
	BuildScan	s = {.heap = heap, .index = index, .info = info, .callback = callback,
		.arg = arg, .map = InvalidBuffer};
	BlockNumber visible;
	double		rows;

	/* an expression or a predicate takes longer than what is saved */
	if (heap->rd_tableam != GetHeapamTableAmRoutine() || info->ii_Concurrent ||
		info->ii_Expressions != NIL || info->ii_Predicate != NIL)
		return table_index_build_scan(heap, index, info, true, progress, callback, arg, scan);
	if (scan != NULL)
		s.shared = (ParallelBlockTableScanDesc) scan->rs_parallel;
	s.nblocks = s.shared ? s.shared->phs_nblocks : RelationGetNumberOfBlocks(heap);
	visibilitymap_count(heap, &visible, NULL);
	if (visible < s.nblocks / 2)
		return table_index_build_scan(heap, index, info, true, progress, callback, arg, scan);

	s.slot = MakeSingleTupleTableSlot(RelationGetDescr(heap), &TTSOpsHeapTuple);
	if (s.shared != NULL)
		art_parallelscan_startblock(heap, &s.worker, s.shared);
	if (!RelationUsesLocalBuffers(heap) && s.nblocks > (BlockNumber) NBuffers / 4)
	{
		s.strategy = GetAccessStrategy(BAS_BULKREAD);
		if (s.shared == NULL && synchronize_seqscans)
			s.start = ss_get_location(heap, s.nblocks);
	}
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, s.nblocks);
	rows = scan_pages(&s, progress);
	if (progress)
		show_progress(&s);

	if (BufferIsValid(s.map))
		ReleaseBuffer(s.map);
	if (s.strategy != NULL)
		FreeAccessStrategy(s.strategy);
	ExecDropSingleTupleTableSlot(s.slot);
	if (scan != NULL)
		table_endscan(scan);
	return rows;
}
