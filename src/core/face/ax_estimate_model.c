/*
 * ax_estimate_model.c
 *	  The tree that a bulk load would make of keys of which only a sample is there.
 *
 * When each key of the sample stands for "scale" keys, the top of the tree is
 * still in the sample.  It shows which digits occur at a node and how many
 * keys go each way.  Further down the sample of a group is too small to show the
 * structure.  A leaf of 28 keys has three of them in a sample of one in ten.  So
 * the group is modelled:
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
 *
 * src/core/face/README.md: Estimates
 */
#include "ax_estimate.h"

/* Rows r[lo..hi] as one lump. */
static est_lump
est_lump_of(const est_digits *d, const double r[256], int lo, int hi)
{
	est_lump	l = {.same = d->same};
	double		n = 0;
	bool		ends = true;

	for (int c = lo; c <= hi; c++)
	{
		n += r[c];
		l.bytes += r[c] * (d->end[c] ? 1 + AX_TID_BYTES : d->rest);
		ends &= r[c] == 0 || d->end[c];
	}
	l.same |= ends;
	l.n = n > 1000000 ? 1000000 : (int) n;
	return l;
}

/* The slots that rt_build_node makes for these rows. */
static void
est_pack(const est *E, const est_digits *d, const double r[256], est_slots *s)
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
			l = est_lump_of(d, r, c, c);
			s->kind[c] = est_fits(&l) ? EST_LEAF : EST_INNER;
			for (int k = next; s->kind[c] == EST_LEAF && k < 256 && l.n < E->fill; k++)
			{
				if (r[k] < 1)
					continue;
				l = est_lump_of(d, r, c, k);
				if (d->end[k] || l.n > E->fill || !est_fits(&l))
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
est_merge(const est_digits *d, const double b[256], const double r[256], est_slots *s)
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
		l = est_lump_of(d, r, c, hi);
		if (est_fits(&l))
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
				l = est_lump_of(d, r, i, i);
				for (int k = j; k <= hi && est_fits(&l); k++)
				{
					est_lump	m = est_lump_of(d, r, i, k);

					if (r[k] < 1)
						continue;
					if (m.n > fill || !est_fits(&m))
						break;
					l = m;
					j = k + 1;
				}
				s->kind[i] = est_fits(&l) ? EST_LEAF : EST_INNER;
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

/*
 * The leaves after run k, and which of them are as they were: in E->work, with
 * the slots "old" over the rows "before".
 */
static void
est_count_leaves(est *E, const est_digits *d, const double r[256], const est_slots *s, int k,
				 double weight)
{
	const double *const b = E->work->before;
	const est_slots *const old = &E->work->old;

	for (int c = 0, hi; c < 256; c = hi + 1)
	{
		bool		same = true;
		est_lump	l;
		int			cls;

		for (hi = c; hi < 255 && old->kind[hi + 1] == EST_NOTHING; hi++)
			;
		if (old->kind[c] != EST_LEAF)
			continue;
		l = est_lump_of(d, b, c, hi);
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
est_load(est *E, const est_digits *d, const double r[256], const est_runs *runs,
		 est_slots *s, double weight)
{
	double	   *now = E->work->now, *before = E->work->before;
	double		share = 1;
	int			last = -1;

	if (E->runs == 1)
	{
		est_pack(E, d, r, s);
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
			est_pack(E, d, now, s);
			/* it came into a tree that was there */
			if (k > 0)
				memset(s->room, 1, sizeof(s->room));
		}
		else
		{
			E->work->old = *s;
			est_merge(d, before, now, s);
			for (; last < k; last++)
				est_count_leaves(E, d, last == k - 1 ? now : before,
								 last == k - 1 ? s : &E->work->old, last, weight);
		}
		last = k;
	}
}

/* A group of keys, which a node is to be made of. */
typedef struct est_group
{
	est_range	own;			/* of the sample, maybe empty */
	est_range	ctx;			/* of the sample: lends its digits */
	uint32_t	off;			/* of the next byte, from the key's beginning or
								 * the TID's */
	bool		tid;
	double		rows;
	double		values;
} est_group;

/* A node: the group, further down once the prefix is known, and its digits. */
typedef struct est_place
{
	est_group	g;
	uint32_t	p;				/* of the byte that tells the children apart */
	uint32_t	columns;		/* bytes of this node's prefix before the TID */
	uint32_t	colend;			/* end of the columns of the group's keys */
	bool		from_own;		/* the digits are those of the group's samples */
	bool		few;			/* the digits show few ways to go */
} est_place;

/*
 * Looks at the group's own samples: the prefix that they have in common, and
 * the digits behind it.
 */
static void
est_look_own(est *E, est_place *at, est_digits *d)
{
	est_group  *const g = &at->g;

	at->colend = est_len(E, g->own.first) - AX_TID_BYTES;
	at->p = est_common(E, &g->own, g->tid ? at->colend + g->off : g->off);
	if (!g->tid && at->p >= at->colend)
	{
		/* one value: the rest of the columns is this node's prefix too */
		at->columns = at->colend - g->off;
		g->off = 0;
		g->tid = true;
		at->p -= at->colend;
		if (at->p >= AX_TID_BYTES)
			at->p = AX_TID_BYTES - 1;
	}
	else if (g->tid)
		at->p -= at->colend;
	est_look(E, &g->own, at->p, g->tid, true, false, d);
	at->from_own = g->own.n >= EST_OWN || g->tid;
	for (int c = 0; c < 256 && !at->from_own; c++)
		at->from_own = d->end[c] && d->cnt[c] > EST_LIGHT;
	if (g->own.n >= EST_CONTEXT || g->tid)
		g->ctx = g->own;
}

/*
 * Borrows the digits of the context, where the group's samples are too few to
 * show theirs.
 */
static void
est_look_context(est *E, est_place *at, est_digits *d)
{
	est_group  *const g = &at->g;
	est_digits *const o = &E->work->other;

	if (!g->tid && g->own.n < EST_FEW && g->values <= 1)
	{
		est_look(E, &g->ctx, at->p, false, false, false, o);
		at->columns = o->ngoing ? (uint32_t) o->rest - AX_TID_BYTES : o->n ? 1 : 0;
		g->off = at->p = 0;
		g->tid = true;
	}
	if (g->tid && g->off == 0 && g->own.n < EST_FEW)
	{
		/* a value's rows are as near to one another as others' are */
		double		x = est_random(E);

		while (at->p < AX_TID_BYTES - 1 && x >= E->tid_common[at->p])
			x -= E->tid_common[at->p++];
		if (E->per_value == 1)
			at->p = 0;
	}
	if (!g->tid && g->own.n < EST_FEW)
	{
		uint32_t	common = est_common(E, &g->ctx, 0);

		at->p = common > at->p ? common : at->p;
	}
	/* past what the context has in common, down to the TID if need be */
	for (;;)
	{
		est_look(E, &g->ctx, at->p, g->tid, false, false, o);
		if (o->n > 0 && (o->seen > 1 || (g->tid && at->p == AX_TID_BYTES - 1)))
			break;
		if (g->own.n >= EST_FEW)
			break;				/* they do differ here */
		if (!g->tid && (o->n == 0 || o->nend > 0))
		{
			g->tid = true;
			g->off = at->p = 0;
		}
		else
			at->p++;
	}
	if (g->own.n < EST_FEW || o->seen > 1)
		*d = *o;
	else
		at->from_own = true;
}

/* Where the node's keys part, and by which digits: *at and *d. */
static void
est_digits_of(est *E, est_place *at, est_digits *d)
{
	const est_group *g = &at->g;

	if (g->own.n >= EST_FEW)
		est_look_own(E, at, d);
	if (!at->from_own)
		est_look_context(E, at, d);
	at->few = !g->tid && E->per_value > 1 && d->ngoing < (uint32_t) (EST_MANY * d->seen);
	if (at->few)
		est_look(E, at->from_own ? &g->own : &g->ctx, at->p, g->tid, at->from_own, true, d);
	if (g->tid)
		d->rest = AX_TID_BYTES - at->p;
}

/* How many rows go where, r, and where it is known how many values, v. */
static void
est_rows(est *E, const est_place *at, est_digits *d, double r[256], double v[256])
{
	const double rows = at->g.rows;
	double	   *const share = E->work->share;
	double		ending = rows * d->nend / d->n;
	double		going = rows - ending;

	memset(r, 0, 256 * sizeof(double));
	memset(v, 0, 256 * sizeof(double));
	if (at->g.tid && at->p == AX_TID_BYTES - 1)
	{
		/* the last digit of a TID is nobody else's */
		double		left = rows > 256 ? 256 : rows;

		for (int c = 0; c < 256; c++)
			if (est_random(E) * (256 - c) < left)
			{
				r[c] = 1;
				left--;
			}
		return;
	}
	if (at->from_own)
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
		if (!at->few)
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

/* The group of the rows below digit c of the node *at, at depth. */
static est_group
est_below(const est *E, const est_place *at, int depth, int c)
{
	const est_level *L = &E->work->level[depth];
	bool		end = L->d.end[c];

	return (est_group) {
		.ctx = at->g.ctx,
		.off = end ? 0 : at->p + 1,
		.tid = at->g.tid || end,
		.rows = L->r[c],
		.values = L->v[c]
	};
}

/*
 * The samples of the node *at with digit c, if any.  *from is where those of
 * smaller digits, which the caller has asked for, end.
 */
static est_range
est_samples(const est *E, const est_place *at, int c, uint64_t *from)
{
	est_range	sub = {*from, 0};
	uint32_t	pos = at->g.tid ? at->colend + at->p : at->p;
	uint64_t	end = at->g.own.first + at->g.own.n;

	if (at->g.own.n < EST_FEW)
		return sub;
	while (*from < end && E->keys.p[*from][pos] < c)
		*from = est_group_end(E, *from, end, pos);
	sub.first = *from;
	if (*from < end && E->keys.p[*from][pos] == c)
		sub.n = est_group_end(E, *from, end, pos) - *from;
	return sub;
}

static void est_node(est *E, const est_group *group, const est_runs *runs, double weight,
					 int depth);

/* Children of the node that the sample does not show: some of them, for all. */
static void
est_siblings(est *E, const est_place *at, const est_runs *runs, double weight, int depth)
{
	est_level  *const L = &E->work->level[depth];
	int			most = E->modelled < EST_MODELLED ? EST_SIBLINGS : 1;
	int			look = L->nlater < most ? L->nlater : most;
	double		all = 0,
				seen = 0;

	E->modelled += (uint32_t) look;
	for (int i = 0; i < L->nlater; i++)
		all += L->r[L->later[i]];
	for (int i = 0; i < look; i++)
		seen += L->r[L->later[(int64_t) i * L->nlater / look]];
	for (int i = 0; i < look; i++)
	{
		int			k = (int) ((int64_t) i * L->nlater / look);
		est_group	sub = est_below(E, at, depth, L->later[k]);

		est_node(E, &sub, runs, weight * all / seen, depth + 1);
	}
}

/* The node of a group, and what hangs below it. */
static void
est_node(est *E, const est_group *group, const est_runs *runs, double weight, int depth)
{
	est_level  *const L = &E->work->level[depth];
	est_digits *const d = &L->d;
	est_place	at = {.g = *group, .p = group->off};
	uint64_t	from = group->own.first;
	int			nc = 0;

	L->nlater = 0;
	est_digits_of(E, &at, d);
	if (depth > EST_MODEL_DEPTH)
	{
		est_deep(E, group->rows, d->rest > 0 ? d->rest : 1 + AX_TID_BYTES, weight);
		return;
	}
	est_rows(E, &at, d, L->r, L->v);

	/* and what becomes of them */
	if (E->runs > 1 && at.g.own.n >= EST_FEW)
	{
		est_runs_of(E, &at.g.own, &L->mine);
		runs = &L->mine;
	}
	est_load(E, d, L->r, runs, &L->slots, weight);
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
			l = est_lump_of(d, L->r, c, hi);
			if (l.n > 0)
				est_leaf(E, &l, L->slots.room[c] ? rt_leaf_stepcap(l.n) : 0, weight);
		}
		else if (L->slots.kind[c] == EST_INNER)
		{
			est_group	sub = est_below(E, &at, depth, c);

			sub.own = est_samples(E, &at, c, &from);
			if (sub.own.n >= EST_FEW)
				est_node(E, &sub, runs, weight, depth + 1);
			else
				L->later[L->nlater++] = (uint8_t) c;
		}
	}
	est_inner(E, nc, at.columns + at.p - at.g.off, weight);
	if (L->nlater > 0)
		est_siblings(E, &at, runs, weight, depth);
}

void
est_model(est *E, const est_range *sample, double total)
{
	est_group	all = {.own = *sample, .ctx = *sample, .rows = total, .values = total};
	est_runs	runs;

	memset(&runs, 0, sizeof(runs));
	if (E->runs > 1)
		est_runs_of(E, sample, &runs);
	est_node(E, &all, &runs, 1, 0);
}
