/*
 * kill_entries.c
 *	  Removal of the entries that a scan met and whose rows are dead to everybody.
 *
 * They are noted while the batch is handed out, and removed when it is left.
 *
 * src/scan/README.md: Scans
 * src/survive/README.md: WAL that is lost
 */
#include "postgres.h"

#include "access/relscan.h"

#include "am/am.h"
#include "scan/open_scan.h"
#include "area/tree_calls.h"

/* Note that an entry of the batch is to go. */
static void
note_at(ArtScan *so, int pos)
{
	if (so->nkilled == so->killed_cap)
	{
		if (so->nkilled >= ART_BATCH_MAX)
			return;				/* a cursor that goes to and fro */
		if (so->killed == NULL)
		{
			so->killed_cap = 32;
			so->killed = MemoryContextAlloc(so->cxt,
											so->killed_cap * sizeof(uint32));
		}
		else
		{
			so->killed_cap *= 2;
			so->killed = repalloc(so->killed, so->killed_cap * sizeof(uint32));
		}
	}
	so->killed[so->nkilled++] = (uint32) pos;
}

void
art_scan_note_kill(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (so->cur.pos < 0)
		return;
	if (art_dead_seen(scan->indexRelation, &so->kd, so->gen, so->cur.delgen,
					  so->cur.tids[so->cur.pos], scan->heapRelation,
					  scan->xs_heapfetch) == ART_DEATH_GO)
		note_at(so, so->cur.pos);
	else
		art_dead_flush();
}

bool
art_scan_known_dead(ArtScan *so, int pos)
{
	switch (art_dead_known(so->gen, so->cur.delgen, so->cur.tids[pos]))
	{
		case ART_DEATH_UNKNOWN:
			return false;
		case ART_DEATH_GO:
			note_at(so, pos);
			break;
		case ART_DEATH_WAIT:
			art_dead_flush();
			break;
	}
	return true;
}

/*
 * Remove one entry, if its TID cannot have been recycled since the batch was
 * copied.  False: it can, and so can all others of the batch.
 */
static bool
art_scan_kill_one(IndexScanDesc scan, uint64 tid, const uint8 *key, uint32 len)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (!art_hazard_publish(so->hazard, tid, so->cur.delgen))
		return false;
	(void) art_tree_remove(&so->kd, so->cx, so->tree, so->gen, key, len);
	return true;
}

/*
 * Kill entries of a batch that has no keys: read its stretch again with keys,
 * and let the batches to come carry them.
 */
static void
art_scan_kill_keyless(IndexScanDesc scan, int nkilled)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ax_batch	b;
	uint64	   *tids = MemoryContextAlloc(so->cxt, so->cur.n * sizeof(uint64));
	uint64	   *dead = MemoryContextAlloc(so->cxt, nkilled * sizeof(uint64));
	ArtBuf		last = {0};
	ax_status	s;

	for (int i = 0; i < nkilled; i++)
		dead[i] = so->cur.tids[so->killed[i]];
	art_scan_buffers(so, so->cur.n, true);
	art_buf_init(&last, so->cxt, so->cur.last.cap);
	for (;;)
	{
		memset(&b, 0, sizeof(b));
		art_scan_bounds(so, so->cur.backward, &b);
		b.backward = so->cur.backward;
		b.want_keys = true;
		b.max = so->cur.n;
		b.tids = tids;
		b.key_off = so->cur.key_off;
		b.keybuf = so->cur.keys.data;
		b.keybuf_size = so->cur.keys.cap;
		b.lastkey = last.data;
		b.lastkey_size = last.cap;
		s = art_tree_scan(&so->kd, so->cx, so->tree, so->gen, &b);
		if (s != AX_BUFFER)
			break;
		art_scan_room(so, &so->cur.keys, b.need_bytes);
		art_scan_room(so, &last, b.need_bytes);
	}
	if (s == AX_OK)
	{
		int			at = 0;

		for (uint32 i = 0; i < b.n; i++)
		{
			int			k;

			/* in the same order, as a rule: look from where we are */
			for (k = 0; k < nkilled; k++)
			{
				if (dead[(at + k) % nkilled] == tids[i])
					break;
			}
			if (k == nkilled)
				continue;
			at = (at + k + 1) % nkilled;
			if (!art_scan_kill_one(scan, tids[i],
								   so->cur.keys.data + b.key_off[i],
								   b.key_off[i + 1] - b.key_off[i]))
				break;
		}
	}
	so->keep_keys = true;
	pfree(tids);
	pfree(dead);
	pfree(last.data);
}

/* The entry behind which a scan of a doubtful class goes on stays, to be found again. */
static void
spare_last(ArtScan *so)
{
	int			n = 0;

	if (so->cur.exhausted)
		return;
	for (int i = 0; i < so->nkilled; i++)
	{
		if (so->killed[i] + 1 < so->cur.n)
			so->killed[n++] = so->killed[i];
	}
	so->nkilled = n;
}

void
art_scan_kill(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	int			nkilled;

	/*
	 * A query that has ended has no snapshot, which a comparison function may want.
	 * Dead entries are only noted to save work.
	 */
	if (unlikely(so->kd.compared && !ActiveSnapshotSet()))
	{
		so->nkilled = 0;
		return;
	}
	if (unlikely(so->kd.doubtful))
	{
		spare_last(so);
		/* the batch is not read again: where it ends is remembered */
		if (!so->cur.have_keys)
		{
			so->keep_keys = true;
			so->nkilled = 0;
		}
	}
	nkilled = so->nkilled;
	so->nkilled = 0;
	if (nkilled == 0)
		return;
	(void) art_scan_hazard(scan);

	if (so->plan.point || so->cur.have_keys)
	{
		for (int i = 0; i < nkilled; i++)
		{
			uint32		len;
			const uint8 *key = art_scan_key(so, so->killed[i], &len);

			if (!art_scan_kill_one(scan, so->cur.tids[so->killed[i]], key, len))
				break;
		}
	}
	else
		art_scan_kill_keyless(scan, nkilled);
	art_hazard_clear(so->hazard);
}
