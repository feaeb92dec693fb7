/*
 * ax_estimate.c
 *	  The bytes that a bulk load would take, told from a sorted sample of its
 *	  keys; nothing is allocated and no area is needed.
 *
 * When the sample is the whole, the load of rt_bulk.c is repeated without
 * making anything.  There are the same groups, leaves and nodes, whose sizes
 * go through the same classes and spans, and the result is exact.
 *
 * When each key of the sample stands for "scale" keys, the top of the tree is
 * still in the sample.  It shows which digits occur at a node and how many
 * keys go each way.  Further down the sample of a group is too small to show
 * the structure: a leaf of 28 keys has three of them in a sample of one in
 * ten.  So the group is modelled:
 *
 * - The digits at a position are those that the nearest enclosing group with
 *	 enough of a sample has there, taken as independent of one another.
 * - Counts of few are smoothed: the number of different digits is what makes
 *	 the number seen the expected one, and the counts shrink to their mean as
 *	 far as their variance is that of sampling (empirical Bayes).
 * - Keys are distinct, so a digit that ends the columns is drawn without
 *	 replacement: that makes dense integers dense.  Where values repeat, the
 *	 number of different ones is the estimator of Haas and Stokes (IBM RJ
 *	 10025, the one ANALYZE uses).
 *
 * A build that sorts in several runs merges the later ones into leaves that
 * are there.  The TID tells which run a key comes with.  A node's slots are
 * then simulated run by run.  The part of their spans that replaced leaves
 * keep is estimated (est_bytes).
 *
 * Of many modelled siblings, which are alike, some are looked at and weighted.
 */
#include <math.h>

#include "core/base/ax_area.h"
#include "core/radix/rt_node.h"

#define EST_DEPTH		136		/* levels of the whole, as in rt_bulk.c */
#define EST_MODEL_DEPTH 48		/* of a part; the caller's memory is finite */
#define EST_OWN			32		/* samples of a group that show its digits */
#define EST_FEW			4		/* that show at least what they have in common */
#define EST_CONTEXT		256		/* that lend their digits to the groups below */
#define EST_LOOK		512		/* of a context looked at */
#define EST_SIBLINGS	4		/* modelled siblings looked at */
#define EST_MODELLED	20000	/* modelled nodes; then one sibling is: few digits
								 * make many levels, and nobody interrupts us */
#define EST_MANY		64		/* samples a digit that need no smoothing */
#define EST_RUNS		8		/* told apart; more of them do as these */
#define EST_LIGHT		8		/* a value met more often has as many rows as that
								 * says; the others are taken together */

typedef struct est
{
	const uint8_t *const *keys;
	const uint32_t *lens;
	uint32_t	len;
	int			fill;			/* entries a leaf should get */
	double		scale;			/* keys that one of the sample stands for */
	int			runs;			/* sorted loads, and how many heap blocks go */
	double		run_blocks;		/* into each */
	double		per_value;		/* rows of a light value */
	double		tid_common[AX_TID_BYTES];	/* of TIDs of one light value: share
											 * with so many bytes in common */
	uint64_t	rng;
	uint32_t	modelled;		/* nodes so far that the sample does not show */
	/* what the tree would have */
	double		objs[AX_NCLASSES];	/* objects in spans */
	double		were[EST_RUNS][AX_NCLASSES];	/* leaves after a run, and how many */
	double		stay[EST_RUNS][AX_NCLASSES];	/* of them the next leaves alone */
	double		big;			/* bytes in runs of their own */
	uint32_t	bump;			/* of the store's first page, and its end */
	uint32_t	bump_end;
	struct est_work *work;		/* the caller's memory, this struct included */
} est;

/* A range of the sample. */
typedef struct est_range
{
	uint64_t	first;
	uint64_t	n;
} est_range;

/* The digits at one position. */
typedef struct est_digits
{
	uint32_t	cnt[256];
	bool		end[256];		/* this digit is the last of the columns */
	uint32_t	n;				/* rows looked at */
	uint32_t	nend;			/* of them, whose digit is the last */
	uint32_t	ngoing;			/* the others, as counted in cnt */
	int			seen;
	double		rest;			/* mean length from here on, TID included, of
								 * those whose digit is not the last */
	bool		same;			/* all lengths are equal */
} est_digits;

/* Shares of the runs in the keys of a node. */
typedef struct est_runs
{
	double		share[EST_RUNS];
} est_runs;

/* The child at a byte value of a node. */
typedef enum est_kind
{
	EST_NOTHING = 0,			/* or what hangs further left goes on */
	EST_EMBED,
	EST_LEAF,
	EST_INNER
} est_kind;

/* The slots of a node. */
typedef struct est_slots
{
	est_kind	kind[256];
	bool		room[256];		/* a leaf has room for more than it holds */
} est_slots;

/* The state of a node while those below it are looked at. */
typedef struct est_level
{
	est_digits	d;
	double		r[256];			/* rows of each digit */
	double		v[256];			/* values, where they are known */
	est_runs	mine;
	est_slots	slots;
	int			nlater;
	struct
	{
		int			digit;
		double		rows;
	}			later[256];
} est_level;

/*
 * The caller's memory: a node's tables are too large for the stack of so many
 * levels.  "level" has one for each depth; the others serve one node at a time.
 */
typedef struct est_work
{
	est			e;
	est_digits	other;
	double		share[256];
	double		now[256], before[256];	/* est_load's */
	est_slots	old;
	est_level	level[EST_MODEL_DEPTH + 2];
} est_work;

_Static_assert(sizeof(est_work) <= AX_ESTIMATE_WORK, "the caller's memory suffices");

/* The keys that go into one leaf. */
typedef struct est_lump
{
	int			n;
	double		bytes;
	bool		same;
} est_lump;

static inline uint32_t
est_len(const est *E, uint64_t i)
{
	return E->lens ? E->lens[i] : E->len;
}

/* A random number from 0 to 1 (xorshift64*). */
static inline double
est_random(est *E)
{
	uint64_t	x = E->rng;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	E->rng = x;
	return (double) ((x * UINT64_C(0x2545F4914F6CDD1D)) >> 11) / 9007199254740992.0;
}

/* A count whose mean is this. */
static double
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

/* ---- objects ---------------------------------------------------------------- */

/* Count an object of a size; the first ones go to the store's page. */
static void
est_object(est *E, uint32_t size, double weight)
{
	int			cls = ax_class_of(size);

	if (cls == AX_BIG)
		E->big += weight * (ax_alloc_size(size) + sizeof(ax_span));
	else if (weight == 1 && E->objs[cls] == 0 &&
			 E->bump_end - E->bump >= ax_class_size(cls))
		E->bump += ax_class_size(cls);
	else
		E->objs[cls] += weight;
}

/* Bytes of the spans that so many objects of a class get: pages as in span_new. */
static double
est_spans(int cls, double left)
{
	double		bytes = 0;
	const uint32_t few = ax_span_objs(ax_span_pages(cls, 1), cls);

	for (uint32_t had = 0; left > 0;)
	{
		uint32_t	pages = ax_span_pages(cls, had == 0 ? 0 : had / few + 1);
		uint32_t	objs = ax_span_objs(pages, cls);
		double		spans = pages < ax_span_pages(cls, UINT32_MAX) ? 1 : ceil(left / objs);

		bytes += spans * ((double) pages * AX_PAGE);
		left -= spans * objs;
		had += objs;
	}
	return bytes;
}

/*
 * Bytes of spans of leaves of which some stay, each anywhere: a span goes back
 * when the last of them is gone, so that few hold many.
 */
static double
est_held(int cls, double were, double stay)
{
	uint32_t	objs = ax_span_objs(ax_span_pages(cls, UINT32_MAX), cls);

	if (stay >= were)
		return est_spans(cls, were);
	return est_spans(cls, were) * (1 - pow(1 - stay / were, objs));
}

/*
 * And of all classes.  Objects that a later run replaces leave holes.  New
 * leaves take them and hold spans too, but not each anywhere: a third of the
 * difference is what measurements show.
 */
static double
est_bytes(const est *E, double store)
{
	double		bytes = store + E->big;

	for (int cls = 0; cls < AX_NCLASSES; cls++)
	{
		double		most = est_spans(cls, E->objs[cls]);

		for (int k = 0; k < E->runs - 1; k++)
		{
			double		were = E->were[k][cls];
			double		stay = E->stay[k][cls];
			double		held;

			if (were <= 0)
				continue;
			for (int j = k + 1; j < E->runs - 1; j++)
				if (E->were[j][cls] > 0)
					stay *= E->stay[j][cls] / E->were[j][cls];
			held = est_held(cls, were, stay);
			if (E->objs[cls] > stay)
				held += (est_held(cls, were, E->objs[cls]) - held) / 3;
			most = held > most ? held : most;
		}
		bytes += most;
	}
	return bytes;
}

static void
est_inner(est *E, int children, uint32_t plen, double weight)
{
	unsigned	kind = children <= 4 ? RT_N4 : children <= 16 ? RT_N16 :
		children <= 48 ? RT_N48 : RT_N256;

	est_object(E, rt_node_size(kind, plen), weight);
}

static bool
lump_fixed(const est_lump *l)
{
	return l->same && l->bytes <= 255.0 * l->n;
}

/* As rt_leaf_fits. */
static bool
lump_fits(const est_lump *l)
{
	if (l->n == 1)
		return true;
	if (l->n > RT_LEAF_MAX)
		return false;
	if (lump_fixed(l))
		return rt_fix_size(l->n, (int) (l->bytes / l->n)) <= RT_FIX_BYTES;
	return rt_var_slots_off(l->n) + 4.0 * l->n + l->bytes <= RT_VAR_BYTES;
}

/* As rt_leaf_new, with room for cap entries. */
static uint32_t
est_leaf_size(const est_lump *l, int cap)
{
	double		each = l->bytes / l->n;
	uint32_t	size;

	if (cap < l->n)
		cap = l->n;
	if (lump_fixed(l))
	{
		while (cap > l->n && rt_fix_size(cap, (int) each) > RT_FIX_BYTES)
			cap--;
		size = rt_fix_size(cap, (int) each);
	}
	else if (l->n == 1 && rt_var_slots_off(4) + 16 + each > RT_VAR_BYTES / 4)
		size = 24 + (uint32_t) l->bytes;
	else
		while ((size = rt_var_slots_off(cap) + 4 * (uint32_t) cap +
				(uint32_t) (each * cap)) > RT_VAR_BYTES && cap > l->n)
			cap--;
	return size;
}

static void
est_leaf(est *E, const est_lump *l, int cap, double weight)
{
	est_object(E, est_leaf_size(l, cap), weight);
}

/* ---- the whole: rt_build_node without building ----------------------------- */

/* Add keys i to j to a group that may become one leaf. */
static void
lump_add(const est *E, est_lump *l, uint64_t i, uint64_t j, uint32_t off)
{
	uint32_t	len = est_len(E, i);

	if (l->n == 0)
	{
		l->bytes = 0;
		l->same = true;
	}
	else if (l->same && l->bytes != (double) l->n * (len - off))
		l->same = false;
	for (; i < j; i++, l->n++)
	{
		l->bytes += est_len(E, i) - off;
		if (est_len(E, i) != len)
			l->same = false;
	}
}

/* The first key from i on with another byte at "off". */
static uint64_t
est_group_end(const est *E, uint64_t i, uint64_t n, uint32_t off)
{
	uint8_t		c = E->keys[i][off];
	uint64_t	step = 1,
				lo = i,
				hi;

	while (lo + step < n && E->keys[lo + step][off] == c)
	{
		lo += step;
		step *= 2;
	}
	hi = lo + step < n ? lo + step : n;
	while (lo + 1 < hi)
	{
		uint64_t	mid = lo + (hi - lo) / 2;

		if (E->keys[mid][off] == c)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

/* First position from off on where the ends of a sorted range differ. */
static uint32_t
est_common(const est *E, const est_range *r, uint32_t off)
{
	const uint8_t *a = E->keys[r->first],
			   *z = E->keys[r->first + r->n - 1];
	uint32_t	alen = est_len(E, r->first),
				zlen = est_len(E, r->first + r->n - 1);
	uint32_t	max = alen < zlen ? alen : zlen;

	while (off < max && a[off] == z[off])
		off++;
	return off;
}

/* Entries that lie too deep for nodes to be looked at: leaves, half full. */
static void
est_deep(est *E, double n, double rest, double weight)
{
	est_lump	l = {.n = 1,.bytes = rest,.same = false};

	while (l.n < RT_LEAF_MAX / 2)
	{
		l.n++;
		l.bytes += rest;
		if (!lump_fits(&l))
		{
			l.n--;
			l.bytes -= rest;
			break;
		}
	}
	est_leaf(E, &l, 0, weight * n / l.n);
}

/* Count the node of some keys and all below it, as a load makes them. */
static void
exact_node(est *E, uint64_t first, uint64_t count, uint32_t off, int depth)
{
	est_range	r = {first, count};
	const uint64_t end = first + count;
	uint32_t	dd = est_common(E, &r, off);
	int			nc = 0;

	if (depth > EST_DEPTH)
	{
		est_deep(E, (double) count, est_len(E, first) - off, 1);
		return;
	}
	for (uint64_t i = first; i < end; nc++)
	{
		uint64_t	j = est_group_end(E, i, end, dd);
		est_lump	l = {.n = 0};

		if (j - i == 1 && est_len(E, i) - (dd + 1) == AX_TID_BYTES)
		{
			i = j;				/* embedded */
			continue;
		}
		if (j - i <= RT_LEAF_MAX)
		{
			lump_add(E, &l, i, j, dd);
			if (!lump_fits(&l))
				l.n = 0;
			while (l.n && j < end && l.n < E->fill)
			{
				est_lump	more = l;
				uint64_t	k;

				if (est_len(E, j) - (dd + 1) == AX_TID_BYTES)
					break;
				k = est_group_end(E, j, end, dd);
				if (k - i > (uint64_t) E->fill)
					break;
				lump_add(E, &more, j, k, dd);
				if (!lump_fits(&more))
					break;
				l = more;
				j = k;
			}
		}
		if (l.n)
			est_leaf(E, &l, 0, 1);
		else
			exact_node(E, i, j - i, dd + 1, depth + 1);
		i = j;
	}
	est_inner(E, nc, dd - off, 1);
}

/* ---- a part: groups known and modelled --------------------------------------- */

/*
 * The digits at a position of a range (all: of every one, else of some): p
 * counts from the key's beginning, or from its TID's.  distinct: several rows
 * of one value count once, except under its last digit.
 */
static void
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
		c = E->keys[i][at];
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
			memcmp(E->keys[last], E->keys[i], len - AX_TID_BYTES) == 0)
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

/* Shares of the digits that end no column.  Few counts are smoothed. */
static void
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
	 * Digits that were not met: as many as make the number seen the expected
	 * one; all of the range, if that is within twice the deviation.
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

/* Rows of the values that end at this position, over their digits. */
static void
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

/* So many things, each on its own, over digits with these shares. */
static void
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

/* The runs that the samples of a group came with. */
static void
est_runs_of(const est *E, const est_range *r, est_runs *out)
{
	uint64_t	step = r->n <= EST_LOOK ? 1 : r->n / EST_LOOK;
	double		n = 0;

	memset(out, 0, sizeof(*out));
	for (uint64_t i = r->first; i < r->first + r->n; i += step, n++)
	{
		uint64_t	block = ax_tid_at(E->keys[i] + est_len(E, i)) >> 16;
		int			k = (int) ((double) block / E->run_blocks);

		out->share[k < E->runs ? k : E->runs - 1]++;
	}
	for (int k = 0; k < E->runs; k++)
		out->share[k] /= n;
}

/* Rows r[lo..hi] as one lump. */
static est_lump
est_lump_of(const est_digits *d, double rest, const double r[256], int lo, int hi)
{
	est_lump	l = {.same = d->same};
	double		n = 0;
	bool		ends = true;

	for (int c = lo; c <= hi; c++)
	{
		n += r[c];
		l.bytes += r[c] * (d->end[c] ? 1 + AX_TID_BYTES : rest);
		ends &= r[c] == 0 || d->end[c];
	}
	l.same |= ends;
	l.n = n > 1000000 ? 1000000 : (int) n;
	return l;
}

/* The slots that rt_build_node makes for these rows. */
static void
est_pack(const est *E, const est_digits *d, double rest, const double r[256], est_slots *s)
{
	memset(s, 0, sizeof(*s));
	for (int c = 0; c < 256;)
	{
		int			next = c + 1;
		est_lump	l;

		if (r[c] < 1)
		{
			c++;
			continue;
		}
		if (r[c] == 1 && d->end[c])
			s->kind[c] = EST_EMBED;
		else
		{
			l = est_lump_of(d, rest, r, c, c);
			s->kind[c] = lump_fits(&l) ? EST_LEAF : EST_INNER;
			for (int k = next; s->kind[c] == EST_LEAF && k < 256 && l.n < E->fill; k++)
			{
				if (r[k] < 1)
					continue;
				l = est_lump_of(d, rest, r, c, k);
				if (d->end[k] || l.n > E->fill || !lump_fits(&l))
					break;
				next = k + 1;
			}
		}
		c = next;
	}
}

/*
 * The slots after a later run: now r rows, before b.  As rt_insert_sorted: a
 * leaf takes what falls into its range, and is cut when it cannot.
 */
static void
est_merge(const est_digits *d, double rest, const double b[256], const double r[256],
		  est_slots *s)
{
	int			left = -1;		/* the slot that covers c */

	for (int c = 0; c < 256; c++)
	{
		int			hi,
					i;
		bool		more = false;
		est_lump	l;

		if (s->kind[c] == EST_NOTHING)
		{
			/* nobody's: its own slot (a leaf is cut below, with all it has) */
			if (r[c] >= 1 && (left < 0 || s->kind[left] != EST_LEAF))
				s->kind[c] = r[c] == 1 && d->end[c] ? EST_EMBED : EST_LEAF;
			else
				continue;
		}
		left = c;
		if (s->kind[c] == EST_EMBED && r[c] > 1)
			s->kind[c] = EST_LEAF;
		if (s->kind[c] != EST_LEAF)
			continue;
		for (hi = c; hi < 255 && s->kind[hi + 1] == EST_NOTHING; hi++)
			;
		for (i = c; i <= hi; i++)
			more |= r[i] > b[i];
		if (!more)
			continue;
		l = est_lump_of(d, rest, r, c, hi);
		if (lump_fits(&l))
		{
			s->room[c] = true;
			continue;
		}
		/* rt_cut */
		{
			int			leaves = (l.n + RT_LEAF_MAX - 4) / (RT_LEAF_MAX - 3);
			int			fill = (l.n + leaves - 1) / leaves + 2;

			for (i = c; i <= hi;)
			{
				int			j = i + 1;

				if (r[i] < 1)
				{
					i++;
					continue;
				}
				l = est_lump_of(d, rest, r, i, i);
				for (int k = j; k <= hi && lump_fits(&l); k++)
				{
					est_lump	m = est_lump_of(d, rest, r, i, k);

					if (r[k] < 1)
						continue;
					if (m.n > fill || !lump_fits(&m))
						break;
					l = m;
					j = k + 1;
				}
				s->kind[i] = lump_fits(&l) ? EST_LEAF : EST_INNER;
				s->room[i] = true;
				if (i > c && s->kind[c] == EST_LEAF && r[c] < 1)
					s->kind[c] = EST_NOTHING;	/* the first piece's range */
				i = j;
			}
			c = left = hi;
			while (s->kind[left] == EST_NOTHING && left > 0)
				left--;
		}
	}
}

/* The leaves after run k, and which of them are as before, with rows b. */
static void
est_count_leaves(est *E, const est_digits *d, double rest, const double b[256],
				 const double r[256], const est_slots *old, const est_slots *s, int k,
				 double weight)
{
	for (int c = 0, hi; c < 256; c = hi + 1)
	{
		bool		same = true;
		est_lump	l;
		int			cls;

		for (hi = c; hi < 255 && old->kind[hi + 1] == EST_NOTHING; hi++)
			;
		if (old->kind[c] != EST_LEAF)
			continue;
		l = est_lump_of(d, rest, b, c, hi);
		cls = l.n > 0 ? ax_class_of(est_leaf_size(&l, old->room[c] ? rt_leaf_stepcap(l.n) : 0)) : AX_BIG;
		if (cls == AX_BIG)
			continue;
		for (int i = c; i <= hi; i++)
			same &= b[i] == r[i] && (i == c || s->kind[i] == EST_NOTHING);
		E->were[k][cls] += weight;
		if (same && s->kind[c] == EST_LEAF)
			E->stay[k][cls] += weight;
	}
}

/* All runs of the load, one after another. */
static void
est_load(est *E, const est_digits *d, double rest, const double r[256], const est_runs *runs,
		 est_slots *s, double weight)
{
	double	   *now = E->work->now, *before = E->work->before;
	double		share = 1;
	est_slots  *old = &E->work->old;
	int			last = -1;

	if (E->runs == 1)
	{
		est_pack(E, d, rest, r, s);
		return;
	}
	memset(now, 0, sizeof(E->work->now));
	for (int k = 0; k < E->runs; k++)
	{
		double		p = share <= 0 ? 1 : runs->share[k] / share;

		if (runs->share[k] == 0)
			continue;
		share -= runs->share[k];
		memcpy(before, now, sizeof(E->work->now));
		for (int c = 0; c < 256; c++)
		{
			double		left = r[c] - now[c];
			double		add = 0;

			if (left < 1)
				continue;
			if (p > 0.999 || share < 0.001)
				add = left;
			else if (left > 64)
				add = floor(left * p + 0.5);
			else
				for (int i = 0; i < (int) left; i++)
					add += est_random(E) < p;
			now[c] += add;
		}
		if (last < 0)
		{
			est_pack(E, d, rest, now, s);
			/* it came into a tree that was there */
			if (k > 0)
				memset(s->room, 1, sizeof(s->room));
		}
		else
		{
			*old = *s;
			est_merge(d, rest, before, now, s);
			for (; last < k; last++)
				est_count_leaves(E, d, rest, before, last == k - 1 ? now : before, old,
								 last == k - 1 ? s : old, last, weight);
		}
		last = k;
	}
}

/*
 * A node over "rows" keys of so many values, of which the sample has the range
 * own (maybe none); ctx lends its digits.  off: of the next byte, from the
 * key's beginning or the TID's.
 */
static void
est_node(est *E, est_range own, est_range ctx, uint32_t off, bool tid,
		 double rows, double values, const est_runs *runs, double weight, int depth)
{
	est_level  *const L = &E->work->level[depth];
	est_digits *const d = &L->d;
	double	   *const r = L->r;
	double	   *const v = L->v;
	uint32_t	p = off;
	uint32_t	columns = 0;	/* bytes of this node's prefix before the TID */
	bool		few;
	uint32_t	colend = 0;
	bool		from_own = false;
	int			nc = 0;
	uint64_t	at = own.first;
	double		rest;

	L->nlater = 0;
	if (own.n >= EST_FEW)
	{
		colend = est_len(E, own.first) - AX_TID_BYTES;
		p = est_common(E, &own, tid ? colend + off : off);
		if (!tid && p >= colend)
		{
			/* one value: the rest of the columns is this node's prefix too */
			columns = colend - off;
			off = 0;
			tid = true;
			p -= colend;
			if (p >= AX_TID_BYTES)
				p = AX_TID_BYTES - 1;
		}
		else if (tid)
			p -= colend;
		est_look(E, &own, p, tid, true, false, d);
		from_own = own.n >= EST_OWN || tid;
		for (int c = 0; c < 256 && !from_own; c++)
			from_own = d->end[c] && d->cnt[c] > EST_LIGHT;
		if (own.n >= EST_CONTEXT || tid)
			ctx = own;
	}
	if (!from_own)
	{
		est_digits *const o = &E->work->other;

		if (!tid && own.n < EST_FEW && values <= 1)
		{
			est_look(E, &ctx, p, false, false, false, o);
			columns = o->ngoing ? (uint32_t) o->rest - AX_TID_BYTES : o->n ? 1 : 0;
			off = p = 0;
			tid = true;
		}
		if (tid && off == 0 && own.n < EST_FEW)
		{
			/* a value's rows are as near to one another as others' are */
			double		x = est_random(E);

			while (p < AX_TID_BYTES - 1 && x >= E->tid_common[p])
				x -= E->tid_common[p++];
			if (E->per_value == 1)
				p = 0;
		}
		if (!tid && own.n < EST_FEW)
		{
			uint32_t	common = est_common(E, &ctx, 0);

			p = common > p ? common : p;
		}
		/* past what the context has in common, down to the TID if need be */
		for (;;)
		{
			est_look(E, &ctx, p, tid, false, false, o);
			if (o->n > 0 && (o->seen > 1 || (tid && p == AX_TID_BYTES - 1)))
				break;
			if (own.n >= EST_FEW)
				break;			/* they do differ here */
			if (!tid && (o->n == 0 || o->nend > 0))
			{
				tid = true;
				off = p = 0;
			}
			else
				p++;
		}
		if (own.n < EST_FEW || o->seen > 1)
			*d = *o;
		else
			from_own = true;
	}
	few = !tid && E->per_value > 1 && d->ngoing < (uint32_t) (EST_MANY * d->seen);
	if (few)
		est_look(E, from_own ? &own : &ctx, p, tid, from_own, true, d);
	rest = tid ? AX_TID_BYTES - p : d->rest;

	if (depth > EST_MODEL_DEPTH)
	{
		est_deep(E, rows, rest > 0 ? rest : 1 + AX_TID_BYTES, weight);
		return;
	}

	/* how many rows go where */
	memset(r, 0, sizeof(L->r));
	memset(v, 0, sizeof(L->v));
	if (tid && p == AX_TID_BYTES - 1)
	{
		/* the last digit of a TID is nobody else's */
		double		left = rows > 256 ? 256 : rows;

		for (int c = 0; c < 256; c++)
			if (est_random(E) * (256 - c) < left)
			{
				r[c] = 1;
				left--;
			}
	}
	else
	{
		double	   *const share = E->work->share;
		double		ending = rows * d->nend / d->n;
		double		going = rows - ending;

		if (from_own)
		{
			double		light = 0;

			for (int c = 0; c < 256; c++)
				if (d->end[c])
				{
					double		met = d->cnt[c] * (rows / d->n);

					if (d->cnt[c] > EST_LIGHT)
						r[c] = floor(met + 0.5);
					else
						light += met;
				}
			est_values(E, light, d, EST_LIGHT, r);
		}
		else
			est_values(E, ending, d, UINT32_MAX, r);
		if (going > 0)
		{
			est_shares(d, share);
			if (!few)
			{
				est_scatter(E, going, share, r);
				for (int c = 0; c < 256; c++)
					v[c] = ceil(r[c] / E->per_value);
			}
			else
			{
				/* values go their ways, and their rows with them */
				est_scatter(E, going / E->per_value < 1 ? 1 : going / E->per_value, share, v);
				for (int c = 0; c < 256; c++)
					if (v[c] > 0)
						r[c] = v[c] + est_draw(E, v[c] * (E->per_value - 1));
			}
		}
	}

	/* and what becomes of them */
	if (E->runs > 1 && own.n >= EST_FEW)
	{
		est_runs_of(E, &own, &L->mine);
		runs = &L->mine;
	}
	est_load(E, d, rest, r, runs, &L->slots, weight);
	for (int c = 0; c < 256; c++)
	{
		if (L->slots.kind[c] == EST_NOTHING)
			continue;
		nc++;
		if (L->slots.kind[c] == EST_LEAF)
		{
			est_lump	l;
			int			hi = c;

			while (hi < 255 && L->slots.kind[hi + 1] == EST_NOTHING)
				hi++;
			l = est_lump_of(d, rest, r, c, hi);
			if (l.n > 0)
				est_leaf(E, &l, L->slots.room[c] ? rt_leaf_stepcap(l.n) : 0, weight);
		}
		else if (L->slots.kind[c] == EST_INNER)
		{
			est_range	sub = {at, 0};

			/* the samples with this digit, if any */
			if (own.n >= EST_FEW)
			{
				uint32_t	pos = tid ? colend + p : p;
				uint64_t	end = own.first + own.n;

				while (at < end && E->keys[at][pos] < c)
					at = est_group_end(E, at, end, pos);
				sub.first = at;
				if (at < end && E->keys[at][pos] == c)
					sub.n = est_group_end(E, at, end, pos) - at;
			}
			if (sub.n >= EST_FEW)
				est_node(E, sub, ctx, d->end[c] ? 0 : p + 1, tid || d->end[c], r[c],
						 v[c], runs, weight, depth + 1);
			else
			{
				L->later[L->nlater].digit = c;
				L->later[L->nlater++].rows = r[c];
			}
		}
	}
	est_inner(E, nc, columns + p - off, weight);

	if (L->nlater > 0)
	{
		est_range	none = {0, 0};
		int			most = E->modelled < EST_MODELLED ? EST_SIBLINGS : 1;
		int			look = L->nlater < most ? L->nlater : most;
		double		all = 0,
					seen = 0;

		E->modelled += (uint32_t) look;
		for (int i = 0; i < L->nlater; i++)
			all += L->later[i].rows;
		for (int i = 0; i < look; i++)
			seen += L->later[(int64_t) i * L->nlater / look].rows;
		for (int i = 0; i < look; i++)
		{
			int			k = (int) ((int64_t) i * L->nlater / look);
			bool		end = d->end[L->later[k].digit];

			est_node(E, none, ctx, end ? 0 : p + 1, tid || end, L->later[k].rows,
					 v[L->later[k].digit], runs, weight * all / seen, depth + 1);
		}
	}
}

/*
 * The light values: how many rows each has, and how near to one another the
 * rows lie.  Heavy ones are left out of the estimator, which they mislead.
 */
static void
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
			   memcmp(E->keys[i], E->keys[j], len) == 0)
			j++;
		if (j - i <= EST_LIGHT)
		{
			distinct++;
			once += j - i == 1;
			rows += (double) (j - i);
			for (uint64_t k = i + 1; k < j; k++)
			{
				uint32_t	c = 0;

				while (c < AX_TID_BYTES - 1 && E->keys[k - 1][len + c] == E->keys[k][len + c])
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

/* See ax.h. */
uint64_t
ax_estimate(const uint8_t *const *keys, const uint32_t *lens, uint32_t len,
			uint64_t n, double total, int fill, double run, void *work)
{
	uint32_t	pages = (uint32_t) ((sizeof(ax_store) + AX_PAGE - 1) >> AX_PAGE_SHIFT);
	double		store = (double) pages * AX_PAGE;
	est		   *E = &((est_work *) work)->e;

	if (n == 0)
		return (uint64_t) store;
	*E = (est) {.keys = keys,.lens = lens,.len = len,.work = work};
	E->fill = fill * RT_LEAF_MAX / 100;
	E->fill = E->fill < 1 ? 1 : E->fill > RT_LEAF_MAX ? RT_LEAF_MAX : E->fill;
	E->rng = UINT64_C(0x9E3779B97F4A7C15);
	E->bump = (uint32_t) sizeof(ax_store);
	E->bump_end = pages * AX_PAGE;
	E->scale = total / (double) n;
	E->runs = 1;
	if (run > 0 && run < total)
	{
		uint64_t	blocks = 0;

		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t	b = (ax_tid_at(keys[i] + est_len(E, i)) >> 16) + 1;

			blocks = b > blocks ? b : blocks;
		}
		E->runs = total / run > EST_RUNS ? EST_RUNS : (int) ceil(total / run);
		E->run_blocks = (double) blocks * (total / run > EST_RUNS ? 1.0 / EST_RUNS : run / total);
	}
	if (E->scale < 1.001 && E->runs == 1)
	{
		est_lump	l = {.n = 0};

		if (n <= RT_LEAF_MAX)
			lump_add(E, &l, 0, n, 0);
		if (l.n && lump_fits(&l))
			est_leaf(E, &l, 0, 1);
		else
			exact_node(E, 0, n, 0, 0);
	}
	else
	{
		est_range	whole = {0, n};
		est_runs	runs;

		est_light(E, n);
		memset(&runs, 0, sizeof(runs));
		if (E->runs > 1)
			est_runs_of(E, &whole, &runs);
		est_node(E, whole, whole, 0, false, total, total, &runs, 1, 0);
	}
	return (uint64_t) est_bytes(E, store);
}
