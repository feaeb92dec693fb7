/*
 * skips.c
 *	  Skips: entries that cannot match are passed over, by a search where that pays.
 *
 * A batch begins with a search in any case, and a position is a value.  So the
 * batch behind an entry that fails may as well begin where the next entry can
 * match (art_skip_target).  That costs no more than to go on behind the entry.
 * Within a batch the entries before that position are passed over untested.
 *
 * The rest is how many entries a batch asks for.  Where the values
 * of the skipped columns have few entries each, whole batches are read and
 * tested, as ever.  Where they have many, most of a batch would be copied in
 * vain.  Then the scan is "far": it asks for one entry where the next value of
 * a skipped column begins, and for a few where the entries can match.  Each
 * batch that is not so small tells anew whether the next position was in it.
 * So a scan goes over from one way to the other as often as the keys change.
 *
 * A private scan only passes over, for its file is read by blocks.
 *
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "access/relscan.h"
#include "pgstat.h"

#include "key/key.h"
#include "scan/open_scan.h"
#include "scan/scan.h"

/*
 * Where to search for a position, or to find it in a batch, costs as much as to copy and test
 * what is before it (doc/internals/measured.md).  Keys that are compared are dear to search
 * for, and no dearer to test.
 */
typedef struct SkipLimits
{
	uint32		far;			/* entries that are worth a search */
	uint32		near;			/* fewer are not worth a look in the batch */
	uint32		size;			/* of a far scan's batch that begins where entries can match */
	uint32		size_max;		/* of one that is to tell more */
	uint32		enough;			/* entries passed over at its end tell that it is far */
} SkipLimits;

static const SkipLimits limits[] = {
	{40, 8, 32, 128, 24},		/* bytes */
	{160, 64, 128, 256, 96}		/* compared */
};

#define SKIP_PROBES		8		/* of so many batches of one entry one is larger, or none would tell */

static inline const SkipLimits *
limits_of(const ArtScan *so)
{
	return &limits[so->kd.compared ? 1 : 0];
}

/*
 * Does an entry of the batch lie at or beyond the position, in the batch's direction?
 */
static bool
reaches(ArtScan *so, uint32 i)
{
	const ArtSkips *sk = &so->skips;
	uint32		len;
	const uint8 *key = art_scan_key(so, i, &len);
	int			c;

	if (unlikely(so->kd.compared))
		c = art_key_cmp(&so->kd, key, len, sk->to.data, sk->to.len, sk->after, true);
	else
	{
		c = memcmp(key, sk->to.data, Min(len, sk->to.len));
		if (c == 0)
			c = sk->after ? -1 : 1;	/* it begins so */
	}
	return so->cur.backward ? c < 0 : c > 0;
}

/*
 * The first entry of the batch behind number i that reaches the position; the batch's last
 * one does.
 */
static uint32
first_reaching(ArtScan *so, uint32 i)
{
	uint32		lo = i;			/* does not reach it */
	uint32		hi = so->cur.n - 1;
	uint32		step = 1;

	while (lo + step < hi)
	{
		if (reaches(so, lo + step))
		{
			hi = lo + step;
			break;
		}
		lo += step;
		step *= 2;
	}
	while (lo + 1 < hi)
	{
		uint32		mid = lo + (hi - lo) / 2;

		if (reaches(so, mid))
			hi = mid;
		else
			lo = mid;
	}
	return hi;
}

/* The same entry's target, where comparison functions may leave something behind. */
static ArtSkip
target(ArtScan *so, const uint8 *key, uint32 len, bool backward)
{
	ArtSkips   *sk = &so->skips;

	if (sk->to.data == NULL)
		art_buf_init(&sk->to, so->cxt, 64);
	return art_skip_target(&so->plan, key, len - Min(len, AX_TID_BYTES), backward,
						   &sk->to, &sk->after);
}

/* art_scan_pass_over(), in a memory context that is reset. */
static uint32
pass_over(ArtScan *so, uint32 i)
{
	ArtSkips   *sk = &so->skips;
	uint32		len;
	const uint8 *key = art_scan_key(so, i, &len);
	uint32		last = so->cur.n - 1;

	if (sk->of != so->cur.serial)
	{
		sk->of = so->cur.serial;
		sk->near = sk->beyond = false;
		sk->tried = sk->passed = 0;
	}
	if (sk->near || target(so, key, len, so->cur.backward) == ART_SKIP_NONE)
	{
		sk->near = true;		/* what failed is no range */
		return i;
	}
	sk->tried++;
	if (reaches(so, last))
		last = first_reaching(so, i) - 1;
	else
		sk->beyond = true;
	sk->passed += last - i;
	sk->near = !sk->beyond && last - i < limits_of(so)->near;
	return last;
}

uint32
art_scan_pass_over(ArtScan *so, uint32 i)
{
	MemoryContext old;

	/* of the last one art_scan_skip() asks */
	if (i + 1 >= so->cur.n || (so->skips.near && so->skips.of == so->cur.serial))
		return i;
	old = MemoryContextSwitchTo(art_scan_recheck_cxt(so));
	i = pass_over(so, i);
	MemoryContextSwitchTo(old);
	MemoryContextReset(so->recheck_cxt);
	return i;
}

/*
 * What does the batch that ends tell of the distance from one position to the next?
 */
static void
judge(ArtScan *so)
{
	ArtSkips   *sk = &so->skips;
	const SkipLimits *lim = limits_of(so);

	if (sk->of != so->cur.serial || sk->tried == 0)
		return;
	if (sk->tried > 1 || !sk->beyond)
		sk->far = sk->passed >= sk->tried * lim->far;
	else if (sk->passed >= lim->enough)
		sk->far = true;
	else if (sk->far)
		sk->size = Min(sk->size * 2, lim->size_max);	/* so few do not tell */
	if (!sk->far)
		sk->size = lim->size;
}

/* Is the position at or beyond the end of the plan's range? */
static bool
beyond_range(const ArtScan *so, bool backward)
{
	const ArtSkips *sk = &so->skips;
	ax_bound	to = {sk->to.data, sk->to.len, sk->after};
	ax_bound	end = backward ?
		(ax_bound) {so->plan.lo.data, so->plan.lo_len, so->plan.lo_after} :
		(ax_bound) {so->plan.hi.data, so->plan.hi_len, so->plan.hi_after};
	int			c = art_bound_cmp(&so->kd, &to, &end);

	return backward ? c <= 0 : c >= 0;
}

/* art_scan_skip(), in a memory context that is reset. */
static ArtSkip
skip_from(ArtScan *so, bool backward, bool *beyond)
{
	ArtSkip		skip = target(so, so->cur.fromkey.data, so->cur.fromkey.len, backward);

	*beyond = skip != ART_SKIP_NONE && beyond_range(so, backward);
	return skip;
}

bool
art_scan_skip(IndexScanDesc scan, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtSkips   *sk = &so->skips;
	ArtBuf		swap = so->cur.fromkey;
	MemoryContext old;
	ArtSkip		skip;
	bool		beyond;

	if (so->priv != NULL)
		return true;
	if (sk->size == 0)
		sk->size = limits_of(so)->size;
	judge(so);

	old = MemoryContextSwitchTo(art_scan_recheck_cxt(so));
	skip = skip_from(so, backward, &beyond);
	MemoryContextSwitchTo(old);
	MemoryContextReset(so->recheck_cxt);
	if (beyond)
		return false;
	if (skip == ART_SKIP_NONE)
	{
		if (sk->far)
			so->size = Max(so->size, sk->size);
		return true;
	}
	so->cur.fromkey = sk->to;
	so->cur.from_after = sk->after;
	sk->to = swap;
	if (sk->far)
	{
		so->size = skip == ART_SKIP_TO || ++sk->probes % SKIP_PROBES == 0 ? sk->size : 1;
		ART_COUNT_SEARCH(scan);
	}
	return true;
}
