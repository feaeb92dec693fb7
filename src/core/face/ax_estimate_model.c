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
 * src/README.md: Estimates
 */
#include "ax_estimate.h"

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
			s->kind[c] = est_fits(&l) ? EST_LEAF : EST_INNER;
			for (int k = next; s->kind[c] == EST_LEAF && k < 256 && l.n < E->fill; k++)
			{
				if (r[k] < 1)
					continue;
				l = est_lump_of(d, rest, r, c, k);
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
				l = est_lump_of(d, rest, r, i, i);
				for (int k = j; k <= hi && est_fits(&l); k++)
				{
					est_lump	m = est_lump_of(d, rest, r, i, k);

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

/* See ax_estimate.h. */
void
est_model(est *E, const est_range *sample, double total)
{
	est_runs	runs;

	memset(&runs, 0, sizeof(runs));
	if (E->runs > 1)
		est_runs_of(E, sample, &runs);
	est_node(E, *sample, *sample, 0, false, total, total, &runs, 1, 0);
}
