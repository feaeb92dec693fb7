/*
 * array_points.c
 *	  Many point look-ups as one batch: the ranges of "= ANY", each of which is a
 *	  single key.
 *
 * The entries of several ranges, one range behind the other in the scan's
 * direction, make a batch like any other.  It remembers the key of each range,
 * of which range an entry is, and where the plan stood at the first range.
 * While it is the current batch, the plan stands at its last range, so that
 * the next batch is found as ever.  A step the other way, or on from an entry
 * in the middle, sets the plan back first.
 *
 * The keys are looked up together (ax_lookup_many), which is what this is for.
 *
 * Not under SERIALIZABLE, where what is locked is what is reached.
 *
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "pgstat.h"

#include "scan/open_scan.h"
#include "area/tree_calls.h"
#include "core/ax.h"
#include "key/key.h"

ArtRanges *
art_scan_ranges(ArtScan *so, ArtBatch *b)
{
	if (b->ranges == NULL)
	{
		b->ranges = MemoryContextAlloc(so->cxt, sizeof(ArtRanges));
		b->ranges->buf.data = NULL;
	}
	return b->ranges;
}

void
art_scan_ranges_free(ArtBatch *b)
{
	if (b->ranges == NULL)
		return;
	if (b->ranges->buf.data != NULL)
		pfree(b->ranges->buf.data);
	pfree(b->ranges);
}

void
art_scan_goto_range(ArtScan *so, uint32 range)
{
	if (!so->cur.several)
		return;
	/* those of a parallel scan's share that are to be looked up again */
	if (so->par != NULL && !so->rest)
		so->ahead += so->cur.ranges->n - 1 - range;
	art_scanplan_goto(&so->plan, so->cur.ranges->first_at);
	art_scanplan_skip(&so->plan, so->cur.backward, range);
}

void
art_scan_keep_first(ArtScan *so, ArtBatch *b, const ArtBatch *from)
{
	b->several = from->several;
	if (b->several)
		memcpy(art_scan_ranges(so, b)->first_at, from->ranges->first_at,
			   sizeof(from->ranges->first_at));
}

/*
 * May the range that begins here be looked up together with those behind it?
 */
static inline bool
together(const ArtScan *so)
{
	return so->plan.many && so->priv == NULL && !so->claimed && !so->kd.compared &&
		!IsolationIsSerializable();
}

/* Turn the order of the TIDs round. */
static inline void
reverse(uint64 *tids, uint32 n)
{
	for (uint32 i = 0, j = n - 1; i < j; i++, j--)
	{
		uint64		t = tids[i];

		tids[i] = tids[j];
		tids[j] = t;
	}
}

ax_status
art_scan_copy_many(IndexScanDesc scan, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtBatch   *b = &so->cur;
	ArtRanges  *r;
	uint32		counts[ART_BATCH_MAX];
	uint32		n = so->together;
	uint32		m,
				done;
	ax_status	s;

	if (so->par != NULL && !so->rest)
		n = Min(n, so->ahead + 1);	/* those that are ours */
	if (n < 2 || !together(so))
	{
		so->together = Min(so->together * 2, ART_BATCH_MAX);
		return AX_OK;
	}

	r = art_scan_ranges(so, b);
	art_scan_buffers(so, ART_MANY_TIDS, false);
	art_scan_room(so, &r->buf, 64);
	(void) art_scanplan_tell(&so->plan, r->first_at);
	m = art_scanplan_points(&so->plan, backward, n, &r->buf, r->keys, r->lens);
	s = art_tree_lookup_many(so->cx, so->tree, so->gen, &(ax_keys) {r->keys, r->lens, 0, m},
							 &(ax_found) {.tids = b->tids, .max = ART_MANY_TIDS}, counts, &done);
	if (done == 0)
	{
		so->together = 1;
		return s;
	}
	so->together = done < m ? done : Min(so->together * 4, ART_BATCH_MAX);
	art_scanplan_skip(&so->plan, backward, done - 1);

	b->n = 0;
	for (uint32 i = 0; i < done; i++)
	{
		if (backward && counts[i] > 1)
			reverse(b->tids + b->n, counts[i]);
		for (uint32 j = 0; j < counts[i]; j++)
			r->of[b->n++] = (uint16) i;
	}
	r->n = done;
	b->several = true;
	b->have_keys = false;
	b->from_private = false;
	b->exhausted = true;
	if (so->par != NULL && !so->rest)
		so->ahead -= done - 1;

	/* the first one has been counted */
	for (uint32 i = 1; i < done; i++)
		ART_COUNT_SEARCH(scan);
	return AX_OK;
}
