/*
 * ax_estimate_digits.c
 *	  What a sample of keys tells of all of them, for the estimate: the digits at
 *	  a position, their shares, the rows of a value.
 *
 * src/core/face/README.md: Estimates
 */
#include "ax_estimate.h"

/* ---- draws ---- */

double
est_random(est *E)
{
	uint64_t	x = E->rng;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	E->rng = x;
	return (double) ((x * UINT64_C(0x2545F4914F6CDD1D)) >> 11) / 9007199254740992.0;
}

double
est_draw(est *E, double mean)
{
	double		limit,
				p = 1;
	int			k = 0;

	if (mean >= 400)
		return floor(mean + 0.5);
	if (mean >= 30)
	{
		double		z = -6;

		for (int i = 0; i < 12; i++)
			z += est_random(E);
		z = floor(mean + z * sqrt(mean) + 0.5);
		return z < 0 ? 0 : z;
	}
	limit = exp(-mean);
	while ((p *= est_random(E)) > limit)
		k++;
	return k;
}

/* ---- digits ---- */

/*
 * The digits at a position of a range (all: of every one, else of some): p
 * counts from the key's beginning, or from its TID's.  distinct: several rows
 * of one value count once, except under its last digit.
 */
void
est_look(const est *E, const est_range *r, uint32_t p, bool tid, bool all, bool distinct,
		 est_digits *d)
{
	uint64_t	step = all || r->n <= EST_LOOK ? 1 : r->n / EST_LOOK;
	uint32_t	len0 = 0;
	uint64_t	last = UINT64_MAX;

	memset(d, 0, sizeof(*d));
	d->same = true;
	for (uint64_t i = r->first; i < r->first + r->n; i += step)
	{
		uint32_t	len = est_len(E, i);
		uint32_t	at = tid ? len - AX_TID_BYTES + p : p;
		uint8_t		c;

		if (!tid && at + AX_TID_BYTES >= len)
			continue;			/* its columns ended before */
		if (len0 == 0)
			len0 = len;
		else if (len != len0)
			d->same = false;
		c = E->keys.p[i][at];
		d->n++;
		d->seen += d->cnt[c] == 0;
		if (!tid && at + 1 + AX_TID_BYTES == len)
		{
			d->cnt[c]++;
			d->end[c] = true;
			d->nend++;
			continue;
		}
		if (distinct && last != UINT64_MAX && est_len(E, last) == len &&
			memcmp(E->keys.p[last], E->keys.p[i], len - AX_TID_BYTES) == 0)
			continue;
		last = i;
		d->cnt[c]++;
		d->rest += len - at;
		d->ngoing++;
	}
	if (d->ngoing)
		d->rest /= d->ngoing;
	if (tid)
		d->same = true;
}

/* Would so many draws from this many digits show so few different ones? */
static double
est_alphabet(uint32_t draws, int seen, int most)
{
	double		lo = seen,
				hi = most;

	if (hi <= lo)
		return lo;
	for (int i = 0; i < 20; i++)
	{
		double		a = (lo + hi) / 2;

		if (a * (1 - exp(-(double) draws / a)) < seen)
			lo = a;
		else
			hi = a;
	}
	return lo;
}

void
est_shares(const est_digits *d, double share[256])
{
	uint32_t	n = d->ngoing;
	int			lo = -1,
				hi = -1,
				seen = 0,
				extra,
				room,
				due = 0;
	double		mean,
				a,
				empty,
				var = 0,
				keep;

	for (int c = 0; c < 256; c++)
	{
		share[c] = 0;
		if (d->cnt[c] && !d->end[c])
		{
			if (lo < 0)
				lo = c;
			hi = c;
			seen++;
			share[c] = (double) d->cnt[c] / n;
		}
	}
	if (seen < 2 || n >= (uint32_t) (EST_MANY * seen))
		return;

	/*
	 * Digits that were not met are as many as make the number seen the expected
	 * one.  They are all of the range, if that is within twice the deviation.
	 */
	a = (double) n / (hi - lo + 1);
	empty = (hi - lo + 1) * exp(-a);
	if (seen >= hi - lo + 1 - empty - 2 * sqrt(empty * (1 - (1 + a) * exp(-a))))
	{
		/* and what may lie beyond its ends */
		int			beyond = (hi - lo + (int) n / 2) / (int) n;

		lo = lo < beyond ? 0 : lo - beyond;
		hi = hi + beyond > 255 ? 255 : hi + beyond;
		extra = hi - lo + 1 - seen;
	}
	else
		extra = (int) (est_alphabet(n, seen, hi - lo + 1) + 0.5) - seen;
	room = hi - lo + 1 - seen;

	/* the counts' variance beyond that of sampling, if it is beyond doubt */
	mean = (double) n / (seen + extra);
	for (int c = lo; c <= hi; c++)
		if (share[c] > 0)
			var += (d->cnt[c] - mean) * (d->cnt[c] - mean);
	var = (var + extra * mean * mean) / (seen + extra);
	keep = var <= mean * (1 + 2 * sqrt(2.0 / (seen + extra))) ? 0 : 1 - mean / var;
	for (int c = lo; c <= hi; c++)
	{
		double		x = share[c] * n;

		if (d->end[c])
			continue;
		if (share[c] == 0)
		{
			due += extra;
			if (due < room)
				continue;
			due -= room;
		}
		share[c] = (mean + keep * (x - mean)) / n;
	}
}

void
est_values(est *E, double rows, est_digits *d, uint32_t most_met, double out[256])
{
	double		values = floor(rows / E->per_value + est_random(E));
	int			slots[256],
				n = 0;

	if (rows <= 0)
		return;
	/* those met, then those between them, then any; nobody else's */
	for (int pass = 0; pass < 3; pass++)
	{
		int			lo = 256,
					hi = -1;

		for (int c = 0; c < 256; c++)
			if (d->cnt[c])
			{
				lo = c < lo ? c : lo;
				hi = c;
			}
		if (pass > 0 && (n >= values || d->nend < d->n))
			break;
		for (int c = 0; c < 256; c++)
		{
			bool		met = d->cnt[c] > 0;
			bool		between = c > lo && c < hi;

			if (pass == 0 ? met && d->end[c] && d->cnt[c] <= most_met :
				!met && between == (pass == 1))
				slots[n++] = c;
		}
	}
	if (n == 0)
		return;
	if (values < 1)
		values = 1;
	if (values > n)
		values = n;
	for (int i = 0, left = (int) values; i < n && left > 0; i++)
	{
		double		r = rows / values;	/* at least 1 */

		if (est_random(E) * (n - i) >= left)
			continue;
		left--;
		d->end[slots[i]] = true;
		out[slots[i]] = E->per_value == 1 ? 1 : 1 + est_draw(E, r - 1);
	}
}

void
est_scatter(est *E, double n, const double share[256], double out[256])
{
	if (n > 64)
	{
		for (int c = 0; c < 256; c++)
			if (share[c] > 0)
				out[c] = est_draw(E, share[c] * n);
		return;
	}
	for (int i = 0; i < (int) (n + 0.5); i++)
	{
		double		x = est_random(E);
		int			to = -1;

		for (int c = 0; c < 256 && (to < 0 || x >= 0); c++)
			if (share[c] > 0)
			{
				to = c;
				x -= share[c];
			}
		if (to >= 0)
			out[to]++;
	}
}

void
est_runs_of(const est *E, const est_range *r, est_runs *out)
{
	uint64_t	step = r->n <= EST_LOOK ? 1 : r->n / EST_LOOK;
	double		n = 0;

	memset(out, 0, sizeof(*out));
	for (uint64_t i = r->first; i < r->first + r->n; i += step, n++)
	{
		uint64_t	block = ax_tid_at(E->keys.p[i] + est_len(E, i)) >> 16;
		int			k = (int) ((double) block / E->run_blocks);

		out->share[k < E->runs ? k : E->runs - 1]++;
	}
	for (int k = 0; k < E->runs; k++)
		out->share[k] /= n;
}

/*
 * The light values: how many rows each has, and how near to one another the
 * rows lie.  Heavy ones are left out of the estimator, which they mislead.
 */
void
est_light(est *E, uint64_t n)
{
	double		once = 0,
				distinct = 0,
				rows = 0,
				pairs = 0;

	for (uint64_t i = 0; i < n;)
	{
		uint32_t	len = est_len(E, i) - AX_TID_BYTES;
		uint64_t	j = i + 1;

		while (j < n && est_len(E, j) - AX_TID_BYTES == len &&
			   memcmp(E->keys.p[i], E->keys.p[j], len) == 0)
			j++;
		if (j - i <= EST_LIGHT)
		{
			distinct++;
			once += j - i == 1;
			rows += (double) (j - i);
			for (uint64_t k = i + 1; k < j; k++)
			{
				uint32_t	c = 0;

				while (c < AX_TID_BYTES - 1 && E->keys.p[k - 1][len + c] == E->keys.p[k][len + c])
					c++;
				E->tid_common[c]++;
				pairs++;
			}
		}
		i = j;
	}
	for (int c = 0; c < AX_TID_BYTES && pairs > 0; c++)
		E->tid_common[c] /= pairs;
	E->per_value = 1;
	if (distinct > 0)
	{
		double		all = rows * distinct / (rows - once + once / E->scale);

		if (rows * E->scale > 1.05 * all)
			E->per_value = rows * E->scale / (all < distinct ? distinct : all);
	}
}

