/*
 * group_skip.c
 *	  Loose scans: from an entry to the first one behind its group, or to the group's last.
 *
 * A group is the entries that have the same leading columns.  Since a position is
 * the beginning of a key, "behind all that begins so" is one, whatever the columns'
 * types, directions and NULLs are.  The scan goes on from there as from the end of a
 * batch.  Where the batch has the next group already, nothing is searched for.
 *
 * A caller that skips wants no more rows of the group, and takes them as well.  So a
 * scan may always go on with the next entry.  It does where its keys are in no order
 * to rely on, and at the borders of the ranges that arrays make.
 *
 * src/scan/README.md: Loose scans
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "pgstat.h"

#include "am/am.h"
#include "art_compat.h"
#include "key/key.h"
#include "scan/open_scan.h"
#include "scan/scan.h"

/*
 * The batch has no keys: fetch it again, with them, and find the entry again that was
 * handed out last.  Its row is visible, so the entry is still there.
 */
static void
fetch_keys(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	const uint64 tid = so->cur.tids[so->cur.pos];
	const bool	backward = so->cur.backward;
	ArtFetch	what = ART_FETCH_SEEK;

	so->keep_keys = true;
	so->size = Max(so->cur.n, ART_BATCH_FIRST);
	while (art_scan_fetch(scan, what, backward))
	{
		for (uint32 i = 0; i < so->cur.n; i++)
		{
			if (so->cur.tids[i] == tid)
			{
				so->cur.pos = (int) i;
				return;
			}
		}
		what = ART_FETCH_NEXT;
	}
	elog(ERROR, "index \"%s\" has lost the entry of a visible row",
		 RelationGetRelationName(scan->indexRelation));
}

/*
 * The group of the entry handed out last, as the beginning of its key.  *key is good
 * until the next fetch.  False: it cannot be told.
 */
static bool
find_group(IndexScanDesc scan, int ncolumns, const uint8 **key, uint32 *len)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	scan->kill_prior_tuple = false;
	if (!so->started || so->cur.pos < 0 || so->kd.doubtful || so->par != NULL)
		return false;
	if (so->nkilled > 0)
		art_scan_kill(scan);
	/* the entries ahead are not those that will be wanted: a row that had to be read says nothing */
	so->read_ahead.distance = 0;
	art_scan_rows_end(so);
	so->read_ahead.reads = ART_READS();
	if (!so->plan.point && !so->cur.have_keys)
		fetch_keys(scan);
	*key = so->plan.point ? art_scan_point(so, (uint32) so->cur.pos, len) :
		art_scan_key(so, (uint32) so->cur.pos, len);
	*len = art_key_prefix_len(&so->kd, *key, *len, ncolumns);
	return true;
}

/* Is an entry of the batch one of the group? */
static bool
in_group(ArtScan *so, uint32 i, const uint8 *group, uint32 glen)
{
	uint32		len;
	const uint8 *key;

	if (so->plan.point)
	{
		/* equal keys of several ranges are the same bytes, or not passed over */
		key = art_scan_point(so, i, &len);
		return len >= glen && memcmp(key, group, glen) == 0;
	}
	key = art_scan_key(so, i, &len);
	if (so->kd.compared)
		return art_key_begins(&so->kd, key, len, group, glen);
	return len >= glen && memcmp(key, group, glen) == 0;
}

/*
 * The last entry of the batch that is one of the group of the present entry.  Groups may be
 * small: steps double before they are halved.
 */
static int
last_of_group(ArtScan *so, const uint8 *group, uint32 glen)
{
	int			last = so->cur.pos;
	int			beyond = (int) so->cur.n;
	int			step = 1;

	while (last + step < beyond && in_group(so, (uint32) (last + step), group, glen))
	{
		last += step;
		step *= 2;
	}
	beyond = Min(beyond, last + step);
	while (beyond - last > 1)
	{
		int			middle = last + (beyond - last) / 2;

		if (in_group(so, (uint32) middle, group, glen))
			last = middle;
		else
			beyond = middle;
	}
	return last;
}

/* The next batch begins at a position, and is read that way. */
static void
seek(IndexScanDesc scan, const ax_bound *at, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	art_scan_keep(so, &so->cur.fromkey, at->key, at->len);
	so->cur.from = ART_FROM_KEY;
	so->cur.from_after = at->after;
	ART_COUNT_SEARCH(scan);
	(void) art_scan_fetch(scan, ART_FETCH_SEEK, backward);
}

/* An empty batch, which ends the range. */
static void
end_range(ArtScan *so, const ax_bound *at, bool backward)
{
	art_scan_keep(so, &so->cur.fromkey, at->key, at->len);
	so->cur.from = ART_FROM_KEY;
	so->cur.from_after = at->after;
	so->cur.backward = backward;
	so->cur.exhausted = true;
	so->cur.several = false;
	so->cur.n = 0;
	so->cur.pos = -1;
}

void
art_scan_skip_group(IndexScanDesc scan, int ncolumns, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	const uint8 *group;
	uint32		len;
	ax_bound	behind;
	bool		same_way;

	if (!find_group(scan, ncolumns, &group, &len))
		return;
	same_way = so->cur.backward == backward;
	if (same_way)
	{
		int			before = so->cur.pos;

		so->cur.pos = last_of_group(so, group, len);
		if (so->cur.pos + 1 < (int) so->cur.n)
			return;
		/* a batch that had several groups: more will be wanted of the next */
		so->size = before > 0 ? Min(so->size * 4, ART_BATCH_MAX) : ART_BATCH_FIRST;
		if (so->cur.exhausted)
			return;
	}
	else
		so->size = ART_BATCH_FIRST;

	art_scan_goto_range(so, art_scan_range(so, (uint32) so->cur.pos));
	behind = (ax_bound) {group, len, !backward};
	if (art_scan_goes_on(so, &behind, backward))
		seek(scan, &behind, backward);
	else
		end_range(so, &behind, backward);
}

bool
art_scan_group_end(IndexScanDesc scan, int ncolumns, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	const uint8 *group;
	uint32		len;
	ax_bound	behind;
	bool		goes_on;

	if (!find_group(scan, ncolumns, &group, &len))
		return false;
	if (so->cur.backward == backward)
	{
		int			last = last_of_group(so, group, len);

		if (last + 1 < (int) so->cur.n)
		{
			so->cur.pos = last + 1;
			return true;
		}
	}

	art_scan_goto_range(so, art_scan_range(so, (uint32) so->cur.pos));
	behind = (ax_bound) {group, len, !backward};
	goes_on = art_scan_goes_on(so, &behind, backward);

	/* what is read on the way back has to be locked, as if it had been read on the way there */
	if (unlikely(IsolationIsSerializable()) && so->priv == NULL)
		(void) art_ssi_batch(&so->ssi, scan, &so->plan, backward, !goes_on, group, len);
	if (!goes_on)
		behind = backward ?
			(ax_bound) {so->plan.lo.data, so->plan.lo_len, so->plan.lo_after} :
			(ax_bound) {so->plan.hi.data, so->plan.hi_len, so->plan.hi_after};
	so->size = ART_BATCH_FIRST / 4;
	seek(scan, &behind, !backward);
	return true;
}

bool
art_scan_is_null(IndexScanDesc scan, int column)
{
	const uint8 *key;
	uint32		at;

	return find_group(scan, column, &key, &at) && key[at] != ART_MARK_VALUE;
}
