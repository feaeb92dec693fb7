/*
 * mark_restore.c
 *	  Mark and restore: the batch of the marked entry is kept.
 *
 * A mark is the number of an entry of the current batch.  When the scan leaves
 * that batch, it changes places with a second one, and when the mark is
 * restored, back.  The snapshot is MVCC.  Rows added since the copy are
 * invisible to it.  Rows removed since are rejected by the heap.  In an
 * index-only scan the interlock with VACUUM does it, since the batch has the
 * deletion generation of its copy.
 *
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "access/relscan.h"

#include "scan/open_scan.h"
#include "area/area.h"
#include "scan/scan.h"

void
art_scan_leave_mark(ArtScan *so)
{
	ArtBatch	spare = so->marked;

	so->marked = so->cur;
	so->mark = ART_MARK_AWAY;
	if (so->plan.many)
	{
		if (so->marked_at == NULL)
			so->marked_at = MemoryContextAlloc(so->cxt,
											   INDEX_MAX_KEYS * sizeof(uint32));
		(void) art_scanplan_tell(&so->plan, so->marked_at);
	}

	spare.backward = so->cur.backward;
	spare.exhausted = so->cur.exhausted;
	spare.from = so->cur.from;
	spare.from_after = so->cur.from_after;
	spare.have_keys = so->cur.have_keys;
	art_scan_keep_first(so, &spare, &so->cur);
	spare.n = 0;
	spare.pos = -1;
	so->cur = spare;
	/* the point look-up has no other place to put its TIDs */
	art_scan_buffers(so, ART_BATCH_POINT, false);
	if (so->cur.from == ART_FROM_KEY)
		art_scan_keep(so, &so->cur.fromkey, so->marked.fromkey.data,
					  so->marked.fromkey.len);
	if (!so->cur.exhausted)
		art_scan_keep(so, &so->cur.last, so->marked.last.data,
					  so->marked.last.len);
}

/*
 * ammarkpos
 */
void
artmarkpos(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	so->mark = so->started && so->cur.pos >= 0 ? ART_MARK_HERE : ART_MARK_NONE;
	so->mark_pos = so->cur.pos;
}

/*
 * amrestrpos: the next entry is the one behind the mark, that way.
 *
 * An index-only scan may hand out an entry that it copied from the structure
 * only as long as it is published.  A scan that went private since does not
 * publish it.  So such a batch is copied again, behind the marked entry.
 */
void
artrestrpos(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtBatch	swap;
	uint32		len;
	const uint8 *key;

	if (so->nkilled > 0)
		art_scan_kill(scan);
	if (so->hazard != NULL)
		art_hazard_clear(so->hazard);
	art_scan_rows_end(so);
	so->started = so->mark != ART_MARK_NONE;
	if (so->mark == ART_MARK_AWAY)
	{
		if (so->plan.many)
			art_scanplan_goto(&so->plan, so->marked_at);
		swap = so->cur;
		so->cur = so->marked;
		so->marked = swap;
		so->mark = ART_MARK_HERE;
	}
	if (!so->started)
		return;
	so->cur.pos = so->mark_pos;
	if (so->priv != NULL && !so->cur.from_private && scan->xs_want_itup)
	{
		art_scan_goto_range(so, art_scan_range(so, (uint32) so->cur.pos));
		key = art_scan_key(so, (uint32) so->cur.pos, &len);
		art_scan_keep(so, &so->cur.last, key, len);
		so->cur.exhausted = false;
		so->cur.n = (uint32) so->cur.pos + 1;
	}
}
