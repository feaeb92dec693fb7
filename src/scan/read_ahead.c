/*
 * read_ahead.c
 *	  Blocks of the table that a scan is going to want are asked for before it does.
 *
 * The scan knows the TIDs of its batch.  Where rows are not in shared buffers it
 * asks for their blocks some entries ahead, and so waits for many reads at once.
 *
 * The distance is what it learns from its own reads.  Nothing is asked for while
 * nothing had to be read, so a table that is in memory costs one comparison a row.
 * The first row that had to be read sets the distance to one entry.  Each row at which a
 * block was asked for that was not there doubles the distance, up to
 * effective_io_concurrency of the table's tablespace.  Each block that was there takes
 * one off.  A LIMIT of few rows wants few blocks in vain.
 *
 * Where nothing had to be read for a batch, the scan asks memory for the lines of the next one's
 * rows (row_pages.c), up to twelve ahead.  Of rows that are in the processor's caches that costs
 * more than it gives.  So the process looks how long whole batches of an index take with it
 * and without, and one in 32 goes the way that was the slower one.
 *
 * Index-only scans ask for nothing: most of their rows need no table.  Nor does a scan whose
 * skips are far (skips.c): most entries of its batches do not match.  A bitmap scan
 * and a batched join have ways of their own.
 *
 * src/scan/README.md: Reading ahead
 */
#include "postgres.h"

#include "access/relscan.h"
#include "executor/instrument.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/spccache.h"

#include "am/am.h"
#include "scan/open_scan.h"

/*
 * Blocks below this one exist.  The table's lock keeps VACUUM from cutting the file off
 * while the scan is open.
 */
static BlockNumber
blocks_of_table(IndexScanDesc scan)
{
	ArtReadAhead *ra = &((ArtScan *) scan->opaque)->read_ahead;

	if (ra->blocks == 0)
	{
		ra->blocks = RelationGetNumberOfBlocks(scan->heapRelation);
		ra->most = get_tablespace_io_concurrency(scan->heapRelation->rd_rel->reltablespace);
	}
	return ra->blocks;
}

/* Ask for the block of an entry; 1: it has to be read, -1: it is there, 0: it was asked for. */
static int
ask_for_block(IndexScanDesc scan, uint64 tid)
{
	ArtReadAhead *ra = &((ArtScan *) scan->opaque)->read_ahead;
	ItemPointerData ip;
	BlockNumber block;

	art_tid_unpack(tid, &ip);
	block = ItemPointerGetBlockNumber(&ip);
	if (block == ra->last || block >= ra->blocks)
		return 0;
	ra->last = block;
	return PrefetchBuffer(scan->heapRelation, MAIN_FORKNUM, block).initiated_io ? 1 : -1;
}

void
art_scan_read_ahead(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtReadAhead *ra = &so->read_ahead;
	int			until;
	int			farther = 0;

	ra->reads = ART_READS();
	art_scan_rows_end(so);
	if (scan->xs_want_itup || scan->heapRelation == NULL || (so->plan.skips && so->skips.far))
		return;
	if (blocks_of_table(scan) == 0 || ra->most <= 0)
		return;
	if (ra->distance <= 0)
		ra->distance = 1;
	if (ra->of != so->cur.serial || ra->asked < so->cur.pos)
	{
		ra->of = so->cur.serial;
		ra->asked = so->cur.pos;
	}
	until = Min(so->cur.pos + ra->distance, (int) so->cur.n - 1);
	while (ra->asked < until)
	{
		int			was = ask_for_block(scan, so->cur.tids[++ra->asked]);

		if (was > 0)
			farther = ra->distance;
		else
			ra->distance += was;
	}
	ra->distance = Min(ra->distance + farther, ra->most);
}

/* Batches that are too small to be timed. */
#define PACE_LEAST	64

/* Can the rows of this scan be asked of memory? */
static bool
rows_can_be_asked(IndexScanDesc scan)
{
	Relation	heap = scan->heapRelation;

	return !scan->xs_want_itup && heap != NULL && scan->xs_heapfetch != NULL &&
		!RelationUsesLocalBuffers(heap) &&
		get_tablespace_io_concurrency(heap->rd_rel->reltablespace) > 0;
}

/*
 * A batch begins that is not the first one, and nothing had to be read for the last: how long did that
 * take, and is memory to be asked for the rows of this one?
 */
static bool
pace_of_batch(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtReadAhead *ra = &so->read_ahead;
	ArtPace    *pace = &art_relcache(scan->indexRelation)->pace;
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	if (ra->paced >= PACE_LEAST)
	{
		uint32	   *ps = &pace->ps[ra->with];
		instr_time	took = now;
		double		sample;

		INSTR_TIME_SUBTRACT(took, ra->since);
		sample = Min(INSTR_TIME_GET_DOUBLE(took) * 1e12 / ra->paced, 1e9) + 1;
		/* others of this machine make a batch slow, and nobody makes it fast */
		*ps = *ps == 0 ? sample : sample < *ps ? (*ps + sample) / 2 : Min(sample, *ps * 1.125 + 1);
	}
	ra->paced = so->cur.n;
	ra->since = now;
	if (pace->ps[true] == 0 || pace->ps[false] == 0)
		return pace->ps[true] == 0;
	return (pace->ps[true] <= pace->ps[false]) == (++pace->batches % 32 != 0);
}

void
art_scan_rows_begin(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtReadAhead *ra = &so->read_ahead;

	if (ra->reads != ART_READS() || ra->distance > 0 || (so->plan.skips && so->skips.far))
	{
		art_scan_rows_end(so);
		return;
	}
	if (ra->can == 0)
		ra->can = rows_can_be_asked(scan) ? 1 : -1;
	ra->with = ra->can > 0 && pace_of_batch(scan);
	if (ra->with)
	{
		ra->pages = -1;
		memset(so->row_pages, 0, sizeof(so->row_pages));
	}
}

/*
 * Ask for the pages of the entries up to that one.  The first that is not in memory is read ahead,
 * and so is what follows.
 */
static void
ask_for_pages(IndexScanDesc scan, int until)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtReadAhead *ra = &so->read_ahead;

	while (ra->pages < until)
	{
		const ArtRowPage *before = &so->row_pages[ra->pages % ART_ROWS_RING];
		ArtRowPage *page = &so->row_pages[++ra->pages % ART_ROWS_RING];
		ItemPointerData ip;

		art_tid_unpack(so->cur.tids[ra->pages], &ip);
		page->block = ItemPointerGetBlockNumber(&ip);
		page->buffer = InvalidBuffer;
		if (page->block == before->block)
		{
			page->buffer = before->buffer;
			continue;
		}
		if (art_row_ask_page(scan->heapRelation, page->block, &page->buffer))
		{
			ra->distance = 1;
			ra->with = false;
			ra->of = so->cur.serial;
			ra->asked = ra->pages;
			ra->last = page->block;
			return;
		}
		art_row_ask_line(page->buffer, ItemPointerGetOffsetNumber(&ip));
	}
}

void
art_scan_rows_ahead(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtReadAhead *ra = &so->read_ahead;
	ArtRowPage *page = &so->row_pages[so->cur.pos % ART_ROWS_RING];
	BlockNumber block = ItemPointerGetBlockNumber(&scan->xs_heaptid);
	int			ahead = Min(so->cur.pos - ART_ROWS_BEFORE, ART_ROWS_AHEAD);

	if (ahead <= 0)
		return;
	if (ra->pages < so->cur.pos)
	{
		ra->pages = ra->tuples = so->cur.pos;
		*page = (ArtRowPage) {block, InvalidBuffer};
	}
	ask_for_pages(scan, Min(so->cur.pos + ahead, (int) so->cur.n - 1));
	while (ra->tuples < Min(so->cur.pos + ahead / 2, ra->pages))
	{
		const ArtRowPage *next = &so->row_pages[++ra->tuples % ART_ROWS_RING];
		ItemPointerData ip;

		art_tid_unpack(so->cur.tids[ra->tuples], &ip);
		if (next->block != block)
			art_row_ask_tuple(next->buffer, ItemPointerGetOffsetNumber(&ip));
	}
	/* after a restored mark the place may be another entry's: the buffer is another block's then */
	art_row_pin(scan, block, page->buffer, &ra->pins);
}
