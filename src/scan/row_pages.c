/*
 * row_pages.c
 *	  Rows of the table that are going to be fetched: their lines are asked of memory before.
 *
 * A row that is in shared buffers, but not in the processor's caches, costs half a dozen waits
 * for memory, one after the other: the table of buffers, the buffer's state, the page's head,
 * the row's line pointer, the row.  The caller knows the next TIDs.  It asks for the pages of some, and
 * later, when their line pointers are there, for the tuples.  That looks the buffer up, and
 * so spares the row's fetch the look-up.
 *
 * The caller pins no page before its row's turn comes.  So the line pointer that it reads before may be
 * nonsense, which costs an address within the page for nothing.
 *
 * src/scan/README.md: Reading ahead
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "art_compat.h"
#include "scan/scan.h"

bool
art_row_ask_page(Relation heap, BlockNumber block, Buffer *buffer)
{
	PrefetchBufferResult result = PrefetchBuffer(heap, MAIN_FORKNUM, block);

	*buffer = InvalidBuffer;
	if (!result.initiated_io && result.recent_buffer > 0)
	{
		*buffer = result.recent_buffer;
		__builtin_prefetch(GetBufferDescriptor(result.recent_buffer - 1));
		__builtin_prefetch(BufferGetPage(result.recent_buffer));
	}
	return result.initiated_io;
}

void
art_row_ask_line(Buffer buffer, OffsetNumber line)
{
	if (buffer != InvalidBuffer && line <= MaxHeapTuplesPerPage)
		__builtin_prefetch(PageGetItemId(BufferGetPage(buffer), line));
}

void
art_row_ask_tuple(Buffer buffer, OffsetNumber line)
{
	if (buffer != InvalidBuffer && line <= MaxHeapTuplesPerPage)
	{
		Page		page = BufferGetPage(buffer);
		char	   *tuple = (char *) page +
			(ItemIdGetOffset(PageGetItemId(page, line)) & (BLCKSZ - 1));

		__builtin_prefetch(tuple);
		__builtin_prefetch(tuple + PG_CACHE_LINE_SIZE / 2);
	}
}

/*
 * The counts that the fetch would make are made here, and it would have pruned the page.  Such a
 * pin does not count as use of the page, so each fourth goes core's way: what is used often
 * stays in memory.
 */
void
art_row_pin(IndexScanDesc scan, BlockNumber block, Buffer buffer, uint32 *pins)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) scan->xs_heapfetch;

	if (buffer == InvalidBuffer ||
		scan->heapRelation->rd_tableam != GetHeapamTableAmRoutine() ||
		(BufferIsValid(fetch->xs_cbuf) && fetch->xs_cbuf == buffer) ||
		(*pins)++ % 4 == 0 ||
		!ReadRecentBuffer(ART_REL_LOCATOR(scan->heapRelation), MAIN_FORKNUM, block, buffer))
		return;
	if (BufferIsValid(fetch->xs_cbuf))
		ReleaseBuffer(fetch->xs_cbuf);
	art_fetch_set_page(fetch, buffer, block);
	pgstat_count_buffer_read(scan->heapRelation);
	pgstat_count_buffer_hit(scan->heapRelation);
	art_page_prune_opt(scan->heapRelation, fetch);
}
