/*
 * join_points.c
 *	  Many point look-ups as one batch: the searches of a batched join, each of
 *	  which is a single key (plan/join_executor.c).
 *
 * The caller encodes the keys of many of its rows.  They are looked up together
 * (ax_lookup_many), and it fetches the rows of the table as it likes.  The
 * entries are those of the scan's current batch, as if they came from "= ANY".
 * So the dead ones among them are noted and removed as an index scan does it.
 * Of a parallel plan each process does so for itself, and shares nothing of it.
 * An index-only caller publishes each TID before it looks at the visibility map.
 *
 * Not of compared indexes.  Not under SERIALIZABLE, where a search locks what it
 * reaches, nor without a structure.  The caller does such searches one by one,
 * with an index scan.
 *
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "pgstat.h"

#include "am/am.h"
#include "scan/open_scan.h"
#include "area/area.h"
#include "area/tree_calls.h"
#include "core/ax.h"
#include "key/key.h"
#include "scan/scan.h"

bool
art_points_possible(IndexScanDesc scan)
{
	const ArtScan *so = (const ArtScan *) scan->opaque;

	return so->priv == NULL && !so->kd.compared && !IsolationIsSerializable() &&
		IsMVCCSnapshot(scan->xs_snapshot);
}

void
art_points_begin(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtRanges  *r = art_scan_ranges(so, &so->cur);

	if (so->nkilled > 0)
		art_scan_kill(scan);
	art_scan_room(so, &r->buf, 1024);
	r->buf.len = 0;
	r->n = 0;
	so->cur.several = false;
}

ArtPoint
art_points_add(IndexScanDesc scan, ScanKey keys, int nkeys)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtRanges  *r = so->cur.ranges;

	Assert(r->n < ART_POINTS_MAX && so->nkilled == 0);
	so->planned = false;
	art_scanplan_set(&so->plan, &so->kd, scan->indexRelation, keys, nkeys);
	if (so->plan.impossible)
		return ART_POINT_NOTHING;
	if (!so->plan.point)
		return ART_POINT_SINGLE;
	art_buf_reserve(&r->buf, so->plan.lo_len);
	memcpy(r->buf.data + r->buf.len, so->plan.lo.data, so->plan.lo_len);
	r->buf.len += so->plan.lo_len;
	r->lens[r->n++] = so->plan.lo_len;
	return ART_POINT_ADDED;
}

/* Say where the keys are, now that all have been added. */
static void
place_keys(ArtRanges *r)
{
	const uint8 *at = r->buf.data;

	for (uint32 i = 0; i < r->n; i++)
	{
		r->keys[i] = at;
		at += r->lens[i];
	}
}

/* Count searches as if each had been a scan's. */
static void
count_points(IndexScanDesc scan, uint32 n, uint32 ntids)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	art_entry_touch(so->entry);
	for (uint32 i = 0; i < n; i++)
		ART_COUNT_SEARCH(scan);
	pgstat_count_index_tuples(scan->indexRelation, ntids);
}

/*
 * Epoch: enters and leaves (art_tree_lookup_many).
 */
uint32
art_points_search(IndexScanDesc scan, uint32 from, const uint64 **tids, uint32 *counts)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtBatch   *b = &so->cur;
	ArtRanges  *r = b->ranges;
	uint32		done = 0;

	if (so->nkilled > 0)
		art_scan_kill(scan);
	b->several = false;
	if (so->priv != NULL)
		return 0;
	/* rows of the statement in which this query runs */
	art_queue_flush_of(scan->indexRelation);
	if (from == 0)
		place_keys(r);
	art_scan_buffers(so, ART_MANY_TIDS, false);

	while (done == 0)
	{
		ax_status	s;

		/* before the copy: any removal after that changes it */
		b->delgen = art_delgen(scan->indexRelation);
		s = art_tree_lookup_many(so->cx, so->tree, so->gen,
								 &(ax_keys) {r->keys + from, r->lens + from, 0, r->n - from},
								 &(ax_found) {.tids = b->tids, .max = ART_MANY_TIDS}, counts, &done);
		if (s == AX_BUSY)
			art_busy();
		else if (s == AX_STALE)
		{
			art_scan_ready(scan);
			if (so->priv != NULL)
				return 0;
		}
		else if (s != AX_OK)
			art_unexpected(scan->indexRelation, s, "a scan");
		else if (done == 0)
			return 0;			/* too many entries of the first key */
	}

	/* a batch like any other, for art_scan_kill() */
	b->n = 0;
	for (uint32 i = 0; i < done; i++)
	{
		for (uint32 j = 0; j < counts[i]; j++)
			r->of[b->n++] = (uint16) (from + i);
	}
	b->pos = -1;
	b->several = true;
	b->have_keys = false;
	b->from_private = false;
	b->exhausted = true;
	so->plan.point = true;
	so->guard = false;
	count_points(scan, done, b->n);
	*tids = b->tids;
	return done;
}

void
art_points_dead(IndexScanDesc scan, uint32 entry)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	scan->kill_prior_tuple = false;
	if (!so->cur.several || scan->xactStartedInRecovery)
		return;
	so->cur.pos = (int) entry;
	art_scan_note_kill(scan);
}

bool
art_points_publish(IndexScanDesc scan, uint32 entry)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	return art_hazard_publish(art_scan_hazard(scan), so->cur.tids[entry],
							  so->cur.delgen);
}

void
art_points_unpublish(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (so->hazard != NULL)
		art_hazard_clear(so->hazard);
}

void
art_points_values(IndexScanDesc scan, uint32 point, Datum *values, bool *isnull)
{
	const ArtScan *so = (const ArtScan *) scan->opaque;
	const ArtRanges *r = so->cur.ranges;

	art_decode(&so->kd, r->keys[point], r->lens[point], so->kd.natts, values, isnull);
}
