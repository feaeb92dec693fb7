/*
 * entry_batches.c
 *	  The entries of a search, a batch at a time, for a caller that counts them and
 *	  wants no tuples (plan/aggregate_executor.c).
 *
 * The caller asks the visibility map about the pages of a batch first, and then
 * whether the deletion generation is still that of the batch.  If so, no VACUUM had
 * ended its work on the index when the map was read, and no bit of the map was set
 * because of an entry that it removed.  So no TID is published.  Otherwise the caller
 * asks the heap about each row.
 *
 * src/area/README.md: VACUUM and readers
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "access/relscan.h"
#include "pgstat.h"

#include "am/am.h"
#include "scan/open_scan.h"
#include "area/area.h"
#include "scan/scan.h"

/*
 * The shared memory is that of core's parallel index scans, without a snapshot: each process
 * has its statement's.
 */
#define ART_SHARED_HEAD MAXALIGN(offsetof(ParallelIndexScanDescData, ps_snapshot_data))

Size
art_entries_shared_size(void)
{
	return ART_SHARED_HEAD + sizeof(ArtParallel);
}

/*
 * Locks: initializes the spinlock (artinitparallelscan).
 */
void
art_entries_share(void *shared)
{
	((ParallelIndexScanDesc) shared)->ART_PS_OFFSET = ART_SHARED_HEAD;
	artinitparallelscan((char *) shared + ART_SHARED_HEAD);
}

void
art_entries_attach(IndexScanDesc scan, void *shared)
{
	scan->parallel_scan = (ParallelIndexScanDesc) shared;
}

const ArtKeyDesc *
art_entries_desc(IndexScanDesc scan)
{
	return &((const ArtScan *) scan->opaque)->kd;
}

bool
art_entries_next(IndexScanDesc scan, bool backward, bool keys, ArtEntries *e)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (!so->started)
	{
		if (!art_scan_search(scan, true))
			return false;
		so->guard = false;
		so->keep_keys |= keys;
		so->started = art_scan_fetch(scan, ART_FETCH_FIRST, backward);
	}
	else
		so->started = art_scan_fetch(scan, ART_FETCH_NEXT, backward);
	if (!so->started)
	{
		if (so->hazard != NULL)
			art_hazard_clear(so->hazard);
		return false;
	}

	e->n = so->cur.n;
	e->tids = so->cur.tids;
	e->certain = so->cur.from_private;
	e->tested = so->plan.nresidual > 0 || so->some_dead;
	e->keys = NULL;
	if (so->cur.have_keys && art_scan_no_null(so))
	{
		e->keys = so->cur.keys.data + so->cur.key_off[0];
		e->stride = so->kd.fixed_len + AX_TID_BYTES;
	}
	pgstat_count_index_tuples(scan->indexRelation, e->n);
	return true;
}

bool
art_entries_pass(IndexScanDesc scan, uint32 i, uint32 *last)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	*last = i;
	if (so->plan.nresidual > 0 && !art_scan_passes(scan, i))
	{
		if (so->plan.skips)
			*last = art_scan_pass_over(so, i);
		return false;
	}
	return !so->some_dead || !art_scan_known_dead(so, (int) i);
}

const uint8 *
art_entries_key(IndexScanDesc scan, uint32 i, uint32 *len)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	const uint8 *key;

	if (so->plan.point)
		return art_scan_point(so, i, len);
	key = art_scan_key(so, i, len);
	*len -= AX_TID_BYTES;
	return key;
}

bool
art_entries_current(IndexScanDesc scan)
{
	const ArtScan *so = (const ArtScan *) scan->opaque;

	/* the map is read before the generation */
	pg_read_barrier();
	return art_delgen(scan->indexRelation) == so->cur.delgen;
}

void
art_entries_dead(IndexScanDesc scan, uint32 i)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	scan->kill_prior_tuple = false;
	if (scan->xactStartedInRecovery || so->priv != NULL)
		return;
	so->cur.pos = (int) i;
	art_scan_note_kill(scan);
	so->cur.pos = -1;
}
