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
