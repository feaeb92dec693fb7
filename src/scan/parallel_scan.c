/*
 * parallel_scan.c
 *	  What the participants of a parallel scan share: a position, and the right
 *	  to move it.
 *
 * A participant claims the position, fetches the batch that follows it, moves
 * it behind that batch and lets go.  Then it works on the batch alone.  It
 * never holds the claim while it returns a row.  A participant waits for room
 * in its queue to the leader; if the leader waited for the claim, both would
 * wait for ever.  The position is a value, so it does not matter in which
 * structure it was found.  Ranges of arrays are told by number, and a key says
 * what lies behind it.  Both mean something only to a plan of the same keys.
 *
 * Each process evaluates the values of its scan keys itself.  A function that is
 * labelled STABLE PARALLEL SAFE may lie, and give each process another value.
 * So the first participant publishes what its keys are, and how long its lists
 * are.  A participant whose own differ takes no part.  It returns no row, and
 * the first one scans to the end.  So the rows are those of one process's keys,
 * each once, as if the function had been called once.  nbtree returns some mix
 * here, for each participant tests the pages that it happens to read by keys of
 * its own.  An ERROR would be new to queries that have an answer there.  The
 * lists' lengths are compared themselves, since they keep a position within
 * bounds.  The values are compared by their hash.
 *
 * A participant that has to go private declares the position its own for good,
 * and returns all beyond it.  The others find that nothing is left when they
 * come back.  One that errs while it has the claim leaves it so: its leader
 * ends the others, whose waits are interruptible.
 *
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "access/relscan.h"
#include "common/hashfn.h"
#include "pgstat.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "scan/open_scan.h"
#include "scan/scan.h"

/* ArtParallel.claim */
#define ART_CLAIM_FREE	0
#define ART_CLAIM_HELD	1
#define ART_CLAIM_DONE	2		/* nothing is left */

/* Of many point look-ups, a participant of a parallel scan takes so many. */
#define ART_PARALLEL_POINTS	32
#define ART_PARALLEL_SHARES	64	/* or this part of all of them */

static uint32 wait_event_claim = 0;

/*
 * amestimateparallelscan
 */
#if PG_VERSION_NUM >= 180000
Size
artestimateparallelscan(Relation index, int nkeys, int norderbys)
#elif PG_VERSION_NUM >= 170000
Size
artestimateparallelscan(int nkeys, int norderbys)
#else
Size
artestimateparallelscan(void)
#endif
{
	return sizeof(ArtParallel);
}

/*
 * aminitparallelscan
 *
 * Locks: initializes the spinlock.
 */
void
artinitparallelscan(void *target)
{
	ArtParallel *p = (ArtParallel *) target;

	SpinLockInit(&p->mutex);
	ConditionVariableInit(&p->freed);
	p->claim = ART_CLAIM_FREE;
	p->kind = ART_PARALLEL_BEGIN;
	p->keylen = 0;
}

ArtParallel *
art_parallel(IndexScanDesc scan)
{
	return (ArtParallel *) OffsetToPointer(scan->parallel_scan,
										   scan->parallel_scan->ART_PS_OFFSET);
}

/*
 * amparallelrescan: before the workers of another round are started.
 *
 * Locks: takes the spinlock.
 */
void
artparallelrescan(IndexScanDesc scan)
{
	ArtParallel *p = art_parallel(scan);

	SpinLockAcquire(&p->mutex);
	p->claim = ART_CLAIM_FREE;
	p->kind = ART_PARALLEL_BEGIN;
	SpinLockRelease(&p->mutex);
}

/*
 * Claim the position, waiting for the one that has it.  False: nothing is left.
 *
 * Locks: takes the spinlock for a moment.  With true the claim is this
 * process's, until art_parallel_release(); it is no lock, and an ERROR leaves
 * it as it is.
 */
static bool
art_parallel_claim(ArtParallel *p)
{
	int			was;
	bool		slept = false;

	for (;;)
	{
		SpinLockAcquire(&p->mutex);
		was = p->claim;
		if (was == ART_CLAIM_FREE)
			p->claim = ART_CLAIM_HELD;
		SpinLockRelease(&p->mutex);
		if (was != ART_CLAIM_HELD)
			break;
		ConditionVariableSleep(&p->freed,
							   ART_WAIT_EVENT(wait_event_claim, "ArtidxParallelScan"));
		slept = true;
	}
	if (slept)
		ConditionVariableCancelSleep();
	return was == ART_CLAIM_FREE;
}

/*
 * Let go; done: nobody is to claim it again.
 *
 * Locks: the claim is this process's; takes the spinlock for a moment.
 */
static void
art_parallel_release(ArtParallel *p, bool done)
{
	SpinLockAcquire(&p->mutex);
	p->claim = done ? ART_CLAIM_DONE : ART_CLAIM_FREE;
	SpinLockRelease(&p->mutex);
	if (done)
		ConditionVariableBroadcast(&p->freed);
	else
		ConditionVariableSignal(&p->freed);
}

/* ---- whose position it is ---- */

/* One key as a number. */
static uint64
hash_key(Relation index, ScanKey k)
{
	uint64		h = ((uint64) k->sk_flags << 32) | ((uint32) k->sk_attno << 16) | k->sk_strategy;
	int16		typlen = -1;	/* an array's */
	bool		typbyval = false;

	if (k->sk_flags & SK_ISNULL)
		return h;
	if (!(k->sk_flags & SK_SEARCHARRAY))
		get_typlenbyval(OidIsValid(k->sk_subtype) ? k->sk_subtype :
						index->rd_opcintype[k->sk_attno - 1],
						&typlen, &typbyval);
	return hash_combine64(h, datum_image_hash(k->sk_argument, typbyval, typlen));
}

/*
 * The scan's keys as a number.  Values that are equal but not the same bytes
 * count as different, which costs a participant and no row.
 */
static uint64
hash_keys(IndexScanDesc scan)
{
	uint64		h = scan->numberOfKeys;

	for (int i = 0; i < scan->numberOfKeys;)
	{
		ScanKey		keys = &scan->keyData[i];
		int			n = art_row_members(keys, scan->numberOfKeys - i, &keys);

		for (int j = 0; j < Max(n, 1); j++)
			h = hash_combine64(h, hash_key(scan->indexRelation, &keys[j]));
		i += ART_ROW_KEYS(n);
	}
	return h;
}

/*
 * Does the shared position belong to keys like ours?  Where nobody has begun,
 * ours are published.
 *
 * Locks: the claim is held.
 */
static bool
same_keys(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtParallel *par = so->par;
	uint32		lens[INDEX_MAX_KEYS];
	int			n;
	uint64		hash;

	if (so->agreed && par->kind != ART_PARALLEL_BEGIN)
		return true;			/* neither changes before a rescan */
	n = art_scanplan_lengths(&so->plan, lens);
	hash = hash_keys(scan);
	if (par->kind == ART_PARALLEL_BEGIN)
	{
		par->nlens = n;
		memcpy(par->lens, lens, n * sizeof(uint32));
		par->hash = hash;
	}
	so->agreed = par->nlens == n && par->hash == hash &&
		memcmp(par->lens, lens, n * sizeof(uint32)) == 0;
	return so->agreed;
}

/* ---- the part of a scan ---- */

/*
 * Nobody else is to find anything: what is left, if anything, is ours.
 *
 * Locks: the claim is held, and given up for good.
 */
void
art_scan_take_rest(ArtScan *so)
{
	art_parallel_release(so->par, true);
	so->claimed = false;
	so->rest = true;
}

/*
 * Take the shared position, to fetch from there.  Returns false when there is
 * nothing left, or nothing for keys like ours.
 *
 * Point look-ups, when there are many, are taken several at a time, and the
 * position moved at once.
 *
 * Locks: takes the claim, waiting for it.  On return it is held if so->claimed
 * is set.
 */
bool
art_scan_claim(IndexScanDesc scan, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtParallel *par = so->par;
	bool		more = true;

	so->limited = false;
	if (!art_parallel_claim(par))
		return false;
	if (!same_keys(scan))
	{
		art_parallel_release(par, false);
		return false;
	}
	so->claimed = true;
	so->cur.from = ART_FROM_START;
	switch (par->kind)
	{
		case ART_PARALLEL_BEGIN:
			if (so->plan.many)
				more = art_scanplan_first(&so->plan, backward);
			break;
		case ART_PARALLEL_BEHIND_RANGE:
			art_scanplan_goto(&so->plan, par->at);
			more = art_scanplan_next(&so->plan, backward);
			so->size = ART_BATCH_FIRST;
			break;
		case ART_PARALLEL_BEHIND_KEY:
			art_scanplan_goto(&so->plan, par->at);
			art_scan_keep(so, &so->cur.fromkey, par->key, par->keylen);
			so->cur.from = ART_FROM_KEY;
			so->cur.from_after = !backward;
			so->size = Min(so->size * 4, ART_BATCH_MAX);
			if (so->plan.skips && !art_scan_skip(scan, backward))
			{
				so->cur.from = ART_FROM_START;
				so->size = ART_BATCH_FIRST;
				more = so->plan.many && art_scanplan_next(&so->plan, backward);
			}
			break;
	}

	/* the range is searched here for the first time */
	if (more && so->cur.from == ART_FROM_START)
		ART_COUNT_SEARCH(scan);
	if (!more || so->priv != NULL)
		art_scan_take_rest(so);
	else if (so->plan.many && so->plan.point && so->cur.from == ART_FROM_START)
	{
		double		each = art_scanplan_count(&so->plan) / ART_PARALLEL_SHARES;

		if (each >= 2)
		{
			uint32		at[INDEX_MAX_KEYS];
			uint32		n = (uint32) Min(each, ART_PARALLEL_POINTS);

			(void) art_scanplan_tell(&so->plan, at);
			while (so->ahead + 1 < n && art_scanplan_next(&so->plan, backward))
				so->ahead++;
			par->kind = ART_PARALLEL_BEHIND_RANGE;
			(void) art_scanplan_tell(&so->plan, par->at);
			art_parallel_release(par, false);
			so->claimed = false;
			art_scanplan_goto(&so->plan, at);
		}
	}
	return more;
}

/*
 * A batch was fetched: the shared position is behind it, and ours no more.  Of
 * a key that is too long for it only the beginning is published.  All of the
 * range that begins so is our part.
 *
 * Locks: the claim is held, and given up.
 */
void
art_scan_publish(ArtScan *so)
{
	ArtParallel *par = so->par;

	if (so->cur.exhausted)
	{
		if (!so->plan.many)
		{
			art_parallel_release(par, true);
			so->claimed = false;
			return;
		}
		par->kind = ART_PARALLEL_BEHIND_RANGE;
	}
	else
	{
		uint32		len = so->cur.last.len;

		if (len > ART_PARALLEL_KEY)
		{
			len = ART_PARALLEL_KEY;
			if (so->kd.compared)
			{
				/* whole columns only */
				len = 0;
				for (int i = 1; i <= so->kd.natts; i++)
				{
					uint32		upto = art_key_prefix_len(&so->kd, so->cur.last.data,
														  so->cur.last.len, i);

					if (upto > ART_PARALLEL_KEY)
						break;
					len = upto;
				}
				if (len == 0)
				{
					art_scan_take_rest(so);
					return;
				}
			}
		}
		par->kind = ART_PARALLEL_BEHIND_KEY;
		par->keylen = len;
		memcpy(par->key, so->cur.last.data, len);
		so->limited = len == so->cur.last.len ||
			art_scan_goes_on(so, &(ax_bound) {so->cur.last.data, len, !so->cur.backward},
							 so->cur.backward);
		if (so->limited)
			art_scan_keep(so, &so->limit, so->cur.last.data, len);
		so->cur.exhausted = len == so->cur.last.len;
	}
	(void) art_scanplan_tell(&so->plan, par->at);
	art_parallel_release(par, false);
	so->claimed = false;
}
