/*
 * index_scan.c
 *	  Scans: batches copied out of the core, and re-seeks by value.
 *
 * A batch is the entries strictly between a position ("from") and the end of
 * the scan's range, up to a number.  They are in scan order, as they were at
 * one moment.  Nothing of the structure is held between batches.  Stepping off
 * the end of a batch fetches the next one behind its last key.  Stepping off
 * its beginning, after a change of direction, fetches the entries on the other
 * side of "from".  So a direction change needs no key of the current entry.
 *
 * Index-only scans and scans under a snapshot that is not MVCC publish every
 * TID before they hand it out (src/area/README.md, VACUUM and readers).  When a
 * VACUUM has gone by since the batch was copied they drop it, and seek again
 * behind the last entry they looked at.
 *
 * Arrays make several ranges (array_keys.c), which are scanned one after the
 * other.  Behind the last entry of one lies the first of the next.  Before the
 * first entry of one lies the last of the one before.
 *
 * A mark keeps its batch, in the place of the current one when that moves on.
 * So restoring costs nothing.  The snapshot is MVCC, so entries that came to
 * the index since are not wanted.  In a parallel scan each batch is what
 * follows a position that the participants share (parallel_scan.c).
 *
 * When there is no structure to be had, from the beginning or in the middle, a
 * scan goes private (private_scan.c).  Its batches come from there.  The rest
 * is the same, since a position is a value.
 *
 * src/area/README.md: VACUUM and readers
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "limits/limits.h"
#include "scan/open_scan.h"
#include "am/predicate_locks.h"
#include "area/area.h"
#include "area/tree_calls.h"
#include "live/live.h"
#include "scan/scan.h"

/*
 * Whom the TIDs of this scan must be published to: who trusts them.
 */
static bool
art_scan_guard(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (so->priv != NULL)
		return art_private_guard(so->priv);
	return scan->xs_want_itup || !IsMVCCSnapshot(scan->xs_snapshot);
}

/*
 * Go private.  Notes of dead entries are forgotten then, and nothing of the
 * structure is left in anybody's hands.
 */
static void
art_scan_private(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	so->priv = art_private_begin(scan, &so->kd, &so->plan, so->cxt);
	so->nkilled = 0;
	if (so->hazard != NULL)
		art_hazard_clear(so->hazard);
	so->guard = art_scan_guard(scan);
}

/*
 * (Re-)read which structure to scan, building it if need be; if that cannot
 * be, go private.
 */
void
art_scan_ready(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtEntry   *e = art_relcache_entry(scan->indexRelation);
	ArtState	state = ART_ABSENT;

	if (likely(e != NULL))
	{
		art_apply_options(scan->indexRelation, e);
		state = art_entry_state(e, &so->gen);
	}
	so->followed = state == ART_FOLLOWED &&
		art_followed_ready(scan->indexRelation, e, &so->gen, ART_FOLLOW_SCAN_MS);
	if (state == ART_READY || so->followed ||
		art_try_ready(scan->indexRelation, &so->gen))
	{
		so->cx = art_ctx();
		if (e == NULL)
			e = art_entry(scan->indexRelation);
		so->entry = e;
		so->tree = art_entry_tree(e);
		return;
	}
	art_scan_private(scan);
}

bool
art_scan_is_private(IndexScanDesc scan)
{
	return ((const ArtScan *) scan->opaque)->priv != NULL;
}

/*
 * ambeginscan: often one per look-up, so nothing is made here that a look-up
 * can do without, and the scan is one chunk.  The description of the keys is
 * copied.  The one in rd_amcache may go at any catalog access.
 */
IndexScanDesc
artbeginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan;
	const ArtKeyDesc *kd;
	Size		kd_size;
	ArtScan    *so;

	Assert(norderbys == 0);
	scan = RelationGetIndexScan(index, nkeys, norderbys);

	kd = &art_relcache(index)->kd;
	kd_size = offsetof(ArtKeyDesc, cols) + kd->nall * sizeof(ArtKeyCol);
	so = palloc(offsetof(ArtScan, kd) + kd_size);
	memset(so, 0, offsetof(ArtScan, plan));
	memcpy((char *) so + offsetof(ArtScan, kd), kd, kd_size);
	so->cxt = CurrentMemoryContext;
	so->cur.tids = so->first_tids;
	so->cur.tids_cap = ART_BATCH_POINT;
	so->cur.pos = -1;
	scan->opaque = so;
	/* not in cxt, which may be a whole statement's that begins a scan for each of its rows */
	if (unlikely(so->kd.compared))
		art_keydesc_own(&so->kd, art_scan_own(so));
	art_scanplan_init(&so->plan, so->cxt);

	art_scan_ready(scan);
	scan->xs_itupdesc = RelationGetDescr(index);
	scan->xs_hitupdesc = RelationGetDescr(index);
	return scan;
}

/*
 * amrescan: one per outer row of a nested loop, so no allocation and no
 * catalog access, but for the first time while "old_snapshot_threshold" is set.  The
 * keys are looked at when the first entry is fetched, as by nbtree: some callers change
 * their arguments until then.
 */
void
artrescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
		  int norderbys)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (so->nkilled > 0)
		art_scan_kill(scan);
	if (so->hazard != NULL)
		art_hazard_clear(so->hazard);
	/* early pruning could hide rows (refusals.c), but not from a constraint's check */
	if (ART_OLD_SNAPSHOT_IN_USE() && so->priv == NULL && IsMVCCSnapshot(scan->xs_snapshot))
		art_scan_private(scan);
	if (unlikely(so->priv != NULL))
		art_private_search_end(so->priv);
	so->started = false;
	so->mark = ART_MARK_NONE;
	so->par = scan->parallel_scan ? art_parallel(scan) : NULL;
	so->agreed = so->claimed = so->limited = so->rest = false;
	so->ahead = 0;

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	so->planned = false;
}

/*
 * A search begins: what do the keys mean?
 */
static inline void
art_scan_plan(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (so->planned)
		return;
	art_scanplan_set(&so->plan, &so->kd, scan->indexRelation, scan->keyData,
					 scan->numberOfKeys);
	so->planned = true;
}

/*
 * Free what a batch has allocated, but not the TIDs that are part of the scan.
 */
static void
art_batch_free(ArtScan *so, ArtBatch *b)
{
	if (b->tids != NULL && b->tids != so->first_tids)
		pfree(b->tids);
	if (b->key_off != NULL)
		pfree(b->key_off);
	if (b->keys.data != NULL)
		pfree(b->keys.data);
	if (b->last.data != NULL)
		pfree(b->last.data);
	if (b->fromkey.data != NULL)
		pfree(b->fromkey.data);
	art_scan_ranges_free(b);
}

/*
 * amendscan
 */
void
artendscan(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (so->nkilled > 0)
		art_scan_kill(scan);
	if (so->hazard != NULL)
		art_hazard_release(so->hazard);
	if (so->priv != NULL)
		art_private_end(so->priv);
	if (so->own != NULL)
		MemoryContextDelete(so->own);

	art_batch_free(so, &so->cur);
	art_batch_free(so, &so->marked);
	if (so->marked_at != NULL)
		pfree(so->marked_at);
	if (so->limit.data != NULL)
		pfree(so->limit.data);
	if (so->tmpkey.data != NULL)
		pfree(so->tmpkey.data);
	if (so->skips.to.data != NULL)
		pfree(so->skips.to.data);
	if (so->killed != NULL)
		pfree(so->killed);
	if (so->bitmap_tids != NULL)
		pfree(so->bitmap_tids);
	art_ssi_end(&so->ssi);
	art_scanplan_free(&so->plan);
	pfree(so);
	scan->opaque = NULL;
}

/* ---- batches ---- */

/*
 * Buffers at least as large as the core asks for.
 */
static void
art_scan_grow(ArtScan *so, uint32 need)
{
	art_scan_room(so, &so->cur.last, need);
	if (so->cur.keys.data != NULL)
		art_scan_room(so, &so->cur.keys, need);
}

/* The TIDs of a batch in the other order. */
static void
art_scan_reverse(ArtScan *so)
{
	for (uint32 i = 0, j = so->cur.n - 1; i < j; i++, j--)
	{
		uint64		t = so->cur.tids[i];

		so->cur.tids[i] = so->cur.tids[j];
		so->cur.tids[j] = t;
	}
}

/*
 * Look the one key of a point up.  *done: that sufficed, and the batch is
 * there.  A long list of TIDs backward, or of a long key, must be read in order.
 * Many keys at once can be several batches (so->cur.several).
 */
static inline ax_status
art_scan_copy_point(IndexScanDesc scan, bool backward, bool *done)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ax_found	f;
	ax_status	s;

	*done = false;
	if (so->plan.many)
	{
		s = art_scan_copy_many(scan, backward);
		*done = so->cur.several;
		if (*done)
			return AX_OK;
		if (s != AX_OK)
			return s;
	}
	f = (ax_found) {.tids = so->cur.tids, .max = ART_BATCH_POINT};
	s = art_tree_lookup(&so->kd, so->cx, so->tree, so->gen, so->plan.lo.data,
						so->plan.lo_len, &f);
	if (s != AX_OK)
		return s;
	so->cur.n = f.n;
	so->cur.have_keys = false;
	so->cur.from_private = false;
	so->cur.exhausted = true;
	if (!f.more)
	{
		if (backward && so->cur.n > 1)
			art_scan_reverse(so);
		*done = true;
	}
	else if (!backward && so->cur.n > 0)
	{
		art_scan_room(so, &so->cur.last, so->plan.lo_len + AX_TID_BYTES);
		memcpy(so->cur.last.data, so->plan.lo.data, so->plan.lo_len);
		ax_put_tid(so->cur.last.data + so->plan.lo_len,
				   so->cur.tids[so->cur.n - 1]);
		so->cur.last.len = so->plan.lo_len + AX_TID_BYTES;
		so->cur.exhausted = false;
		*done = true;
	}
	return AX_OK;
}

/*
 * Read a batch in order, from the structure or what this scan keeps of its own.
 * AX_CHANGED: what was locked does not suffice for it; read it again.
 * AX_BUFFER: *need bytes.
 */
static inline ax_status
art_scan_copy_ordered(IndexScanDesc scan, bool backward, uint32 *need)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	bool		keys = so->want_keys && !so->plan.point;
	ax_batch	b;
	ax_status	s;

	memset(&b, 0, sizeof(b));
	art_scan_bounds(so, backward, &b);
	art_scan_buffers(so, so->size, keys);
	b.backward = backward;
	b.want_keys = keys;
	b.max = so->size;
	b.tids = so->cur.tids;
	b.key_off = so->cur.key_off;
	b.keybuf = so->cur.keys.data;
	b.keybuf_size = so->cur.keys.cap;
	b.lastkey = so->cur.last.data;
	b.lastkey_size = so->cur.last.cap;

	if (unlikely(so->priv != NULL))
		s = art_private_scan(so->priv, &b);
	else
		s = art_tree_scan(&so->kd, so->cx, so->tree, so->gen, &b);
	*need = b.need_bytes;
	if (s != AX_OK)
		return s;
	so->cur.n = b.n;
	so->cur.exhausted = b.exhausted;
	so->cur.have_keys = keys;
	so->cur.from_private = so->priv != NULL;
	so->cur.last.len = b.lastlen;

	/* only what was locked before it was read may be used */
	if (unlikely(IsolationIsSerializable()) && so->priv == NULL)
	{
		const ArtBuf *end = so->limited && b.exhausted ?
			&so->limit : &so->cur.last;

		if (!art_ssi_batch(&so->ssi, scan, &so->plan, backward,
						   b.exhausted && !so->limited, end->data,
						   end->len > AX_TID_BYTES ?
						   end->len - AX_TID_BYTES : 0))
			return AX_CHANGED;
	}
	return AX_OK;
}

/*
 * Copy a batch from where it is to begin, in the direction given.  Returns
 * false when the range has nothing more that way.
 */
static bool
art_scan_copy(IndexScanDesc scan, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	bool		lookup = so->plan.point && so->cur.from == ART_FROM_START &&
		!so->limited;

	so->cur.backward = backward;
	so->cur.pos = -1;
	so->cur.several = false;
	so->cur.serial = ++so->serial;

	/* rows of the statement in which this query runs */
	art_queue_flush_of(scan->indexRelation);

	so->some_dead = scan->ignore_killed_tuples && so->priv == NULL &&
		art_dead_any(so->gen);

	/* a private scan locks the index before it reads the table */
	if (unlikely(IsolationIsSerializable()) && so->priv == NULL)
		art_ssi_range(&so->ssi, scan, &so->plan, backward,
					  so->cur.from == ART_FROM_START, so->bitmap_tids != NULL,
					  so->cxt);

	for (;;)
	{
		ax_status	s;
		bool		done = true;
		uint32		need = 0;

		/* before the copy: any removal after that changes it */
		so->cur.delgen = art_delgen(scan->indexRelation);

		if (lookup && so->priv == NULL)
			s = art_scan_copy_point(scan, backward, &done);
		else
			s = art_scan_copy_ordered(scan, backward, &need);

		switch (s)
		{
			case AX_OK:
				if (done)
					return so->cur.n > 0;
				lookup = false;
				break;
			case AX_CHANGED:
				break;
			case AX_BUSY:
				art_busy();
				break;
			case AX_STALE:

				/*
				 * The structure went away.  A new one, or the table, holds
				 * every entry that our snapshot sees, and the position is a
				 * value, good in any structure.
				 */
				art_scan_ready(scan);
				if (so->priv != NULL && so->claimed)
					art_scan_take_rest(so);
				break;
			case AX_BUFFER:
				art_scan_grow(so, need);
				break;
			default:
				art_unexpected(scan->indexRelation, s, "a scan");
		}
	}
}

/* The first batch of a range; a bitmap wants the whole range. */
static inline uint32
art_first_batch_size(const ArtScan *so)
{
	return so->bitmap_tids != NULL && !so->plan.skips ? ART_BATCH_MAX : ART_BATCH_FIRST;
}

/*
 * Nothing of the range is left that way: go to the next one.  Returns false
 * when there is none.
 */
static bool
art_scan_onward(IndexScanDesc scan, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	CHECK_FOR_INTERRUPTS();
	if (unlikely(so->par != NULL) && !so->claimed && !so->rest)
	{
		if (so->ahead == 0)
			return art_scan_claim(scan, backward);
		so->ahead--;
	}
	if (!so->plan.many || !art_scanplan_next(&so->plan, backward))
	{
		if (so->claimed)
			art_scan_take_rest(so);
		return false;
	}
	so->cur.from = ART_FROM_START;
	so->size = art_first_batch_size(so);
	ART_COUNT_SEARCH(scan);
	return true;
}

bool
art_scan_fetch(IndexScanDesc scan, ArtFetch what, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	bool		here = true;	/* the range may have something */

	if (so->nkilled > 0)
		art_scan_kill(scan);
	if (unlikely(so->mark == ART_MARK_HERE))
		art_scan_leave_mark(so);

	so->want_keys = so->guard || scan->xs_want_itup ||
		so->plan.nresidual > 0 || so->keep_keys;

	switch (what)
	{
		case ART_FETCH_FIRST:
			so->cur.from = ART_FROM_START;
			so->size = art_first_batch_size(so);
			so->together = so->bitmap_tids != NULL ? ART_BATCH_MAX : ART_BATCH_FIRST;
			if (unlikely(so->par != NULL))
			{
				if (so->rest)
					return false;	/* and was returned */
				here = false;
			}
			else if (so->plan.many && !art_scanplan_first(&so->plan, backward))
				return false;
			break;
		case ART_FETCH_NEXT:
			if (so->cur.exhausted)
				here = false;
			else
			{
				ArtBuf		swap = so->cur.fromkey;

				so->cur.fromkey = so->cur.last;
				so->cur.last = swap;
				so->cur.from = ART_FROM_KEY;
				so->cur.from_after = !backward;
				so->size = art_next_batch_size(so->size);
				here = !so->plan.skips || art_scan_skip(scan, backward);
			}
			break;
		case ART_FETCH_TURN:
			art_scan_goto_range(so, 0);
			if (so->cur.from == ART_FROM_START)
				here = false;
			so->size = ART_BATCH_FIRST;
			break;
		case ART_FETCH_SEEK:
			if (so->cur.from == ART_FROM_START)
				art_scan_goto_range(so, 0);
			break;
	}

	while (!here || !art_scan_copy(scan, backward))
	{
		here = true;
		if (!art_scan_onward(scan, backward))
			return false;
	}
	if (unlikely(so->claimed))
		art_scan_publish(so);
	return true;
}

/* ---- fetching ---- */

/*
 * Does the scan look for what a unique index would refuse, as ON CONFLICT does?  That is
 * what the comparison function calls equal.  If the "=" of a doubtful class says something
 * else, the statement would never get on: it finds nothing in its way, and is refused.
 */
static inline bool
art_scan_for_unique(IndexScanDesc scan)
{
	const ArtScan *so = (const ArtScan *) scan->opaque;
	const Form_pg_index form = scan->indexRelation->rd_index;

	return unlikely(so->kd.doubtful) && form->indisunique && !form->indisexclusion &&
		scan->xs_snapshot->snapshot_type == SNAPSHOT_DIRTY &&
		so->plan.nprefix == so->kd.natts;
}

bool
art_scan_passes(IndexScanDesc scan, uint32 i)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	MemoryContext old;
	const uint8 *key;
	uint32		len;
	bool		pass;

	if (so->plan.nnulls > 0 && so->plan.nresidual == so->plan.nnulls && art_scan_no_null(so))
		return true;
	key = art_scan_key(so, i, &len);
	if (so->plan.nnulls > 0)
	{
		if (art_scan_null(&so->plan, key, len - AX_TID_BYTES))
			return false;
		if (so->plan.nresidual == so->plan.nnulls)
			return true;
	}
	old = MemoryContextSwitchTo(art_scan_recheck_cxt(so));
	if (art_scan_for_unique(scan))
		pass = art_key_begins(&so->kd, key, len, so->plan.lo.data, so->plan.lo_len);
	else
		pass = art_scan_recheck(&so->plan, &so->kd, key, len - AX_TID_BYTES);
	MemoryContextSwitchTo(old);
	MemoryContextReset(so->recheck_cxt);
	return pass;
}

/*
 * Private, and what is handed out is published: is the entry still one?
 */
static bool
art_scan_still(ArtScan *so, uint32 i)
{
	uint32		len;
	const uint8 *key = art_scan_key(so, i, &len);

	return art_private_still(so->priv, so->cur.delgen, key, len, so->cur.tids[i]);
}

/*
 * The end, that way: the next fetch starts over, from either end.
 */
static bool
art_scan_end(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (so->nkilled > 0)
		art_scan_kill(scan);
	if (so->hazard != NULL)
		art_hazard_clear(so->hazard);
	if (unlikely(so->priv != NULL))
		art_private_search_end(so->priv);
	so->started = false;
	return false;
}

/*
 * A scan begins: count its search, for the statistics and for those who decide which
 * structure is worth its memory.  A parallel scan counts where it takes a range.
 */
static inline void
art_scan_count(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (likely(so->entry != NULL))
		art_entry_touch(so->entry);
	if (likely(so->par == NULL && !so->plan.impossible))
		ART_COUNT_SEARCH(scan);
}

bool
art_scan_search(IndexScanDesc scan, bool trusts)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	art_scan_plan(scan);
	art_scan_count(scan);
	/* a follower's sweep publishes nothing to those who trust a TID */
	if (unlikely(so->followed) && so->priv == NULL && trusts)
		art_scan_private(scan);
	so->nkilled = 0;
	return !so->plan.impossible && (so->priv == NULL || !art_private_nothing(so->priv));
}

/*
 * A VACUUM went by since the copy: what is left of the batch may be recycled.  Go on
 * behind the last entry looked at; with none, the batch begins where it began.  False: no
 * entry follows.
 */
static bool
art_scan_fetch_again(IndexScanDesc scan, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	so->nkilled = 0;
	art_scan_rows_end(so);
	if (so->cur.pos >= 0)
	{
		uint32		len;
		const uint8 *key = art_scan_key(so, (uint32) so->cur.pos, &len);
		uint32		range = art_scan_range(so, (uint32) so->cur.pos);

		if (so->mark == ART_MARK_HERE)
			art_scan_leave_mark(so);	/* key stays where it is */
		art_scan_goto_range(so, range);
		art_scan_keep(so, &so->cur.fromkey, key, len);
		so->cur.from = ART_FROM_KEY;
		so->cur.from_after = !backward;
	}
	else
	{
		/* no entry of it was looked at: same direction, same start */
		Assert(backward == so->cur.backward);
	}
	return art_scan_fetch(scan, ART_FETCH_SEEK, backward);
}

/* amgettuple */
bool
artgettuple(IndexScanDesc scan, ScanDirection dir)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	bool		backward = ScanDirectionIsBackward(dir);

	scan->xs_recheck = false;

	if (!so->started)
	{
		if (!art_scan_search(scan, art_scan_guard(scan)))
			return false;
		so->guard = art_scan_guard(scan);
		so->read_ahead.reads = ART_READS();
		art_scan_rows_end(so);
		if (!art_scan_fetch(scan, ART_FETCH_FIRST, backward))
			return art_scan_end(scan);
		so->started = true;
	}
	else if (scan->kill_prior_tuple && !scan->xactStartedInRecovery &&
			 so->priv == NULL)
		art_scan_note_kill(scan);

	for (;;)
	{
		int			next = so->cur.pos + (backward == so->cur.backward ? 1 : -1);
		uint64		tid;

		if (next < 0)
		{
			if (!art_scan_fetch(scan, ART_FETCH_TURN, backward))
				return art_scan_end(scan);
			art_scan_rows_end(so);
			continue;
		}
		if (next >= (int) so->cur.n)
		{
			if (!art_scan_fetch(scan, ART_FETCH_NEXT, backward))
				return art_scan_end(scan);
			art_scan_rows_begin(scan);
			CHECK_FOR_INTERRUPTS();
			continue;
		}

		if (so->plan.nresidual > 0 && !art_scan_passes(scan, (uint32) next))
		{
			so->cur.pos = next;
			if (so->plan.skips && backward == so->cur.backward)
				so->cur.pos = (int) art_scan_pass_over(so, (uint32) next);
			continue;
		}

		tid = so->cur.tids[next];
		if (so->guard && unlikely(so->priv != NULL) &&
			!art_scan_still(so, (uint32) next))
		{
			so->cur.pos = next;
			continue;
		}
		if (so->guard &&
			!art_hazard_publish(art_scan_hazard(scan), tid, so->cur.delgen))
		{
			if (!art_scan_fetch_again(scan, backward))
				return art_scan_end(scan);
			continue;
		}

		so->cur.pos = next;
		if (unlikely(so->some_dead) && art_scan_known_dead(so, next))
			continue;
		art_tid_unpack(tid, &scan->xs_heaptid);
		if (scan->xs_want_itup && !art_scan_itup(scan, (uint32) next))
			return art_scan_end(scan);
		if (unlikely(so->read_ahead.reads != ART_READS() || so->read_ahead.distance > 0))
			art_scan_read_ahead(scan);
		else if (so->read_ahead.with)
			art_scan_rows_ahead(scan);
		return true;
	}
}

/*
 * Must the heap scan be told to look at every row again?  Older minor releases
 * leave out pages that are visible to all, with none but rows to be looked at
 * again excepted.  The server may be older than the headers, so it is asked.
 */
static bool
bitmap_needs_recheck(void)
{
	static int	answer = -1;

	if (answer < 0)
	{
		const char *version = GetConfigOption("server_version", false, false);
		const char *dot = strchr(version, '.');

		answer = (dot != NULL ? atoi(dot + 1) : 0) < ART_BITMAP_VISITS_HEAP_FROM;
	}
	return answer;
}

/*
 * amgetbitmap: whole batches.  The heap is always visited under an MVCC
 * snapshot, so no interlock is needed.
 */
int64
artgetbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	bool		recheck = bitmap_needs_recheck();
	int64		ntids = 0;

	if (!art_scan_search(scan, false))
		return 0;
	so->guard = false;
	if (so->bitmap_tids == NULL)
		so->bitmap_tids = MemoryContextAlloc(so->cxt, ART_MANY_TIDS *
											 sizeof(ItemPointerData));

	if (!art_scan_fetch(scan, ART_FETCH_FIRST, false))
		return 0;
	do
	{
		int			m = 0;

		for (uint32 i = 0; i < so->cur.n; i++)
		{
			if (so->plan.nresidual > 0 && !art_scan_passes(scan, i))
			{
				if (so->plan.skips)
					i = art_scan_pass_over(so, i);
				continue;
			}
			art_tid_unpack(so->cur.tids[i], &so->bitmap_tids[m++]);
		}
		if (m > 0)
			tbm_add_tuples(tbm, so->bitmap_tids, m, recheck);
		ntids += m;
		CHECK_FOR_INTERRUPTS();
	} while (art_scan_fetch(scan, ART_FETCH_NEXT, false));

	return ntids;
}
