/*
 * rt_compact.c
 *	  Compaction of the radix tree: it merges what removals left sparse, and copies
 *	  what lies in spans that are to become empty.
 *
 * A pass goes over the inner nodes, children before their parents.  At each it
 * distributes the entries of neighbouring leaves over as few as a build would make.
 * The entries of a small node, which would fit into one leaf, count as a leaf's.
 * Then it copies the node with its new children: one publication above it.
 *
 * Bytes alone say where a pass is: they are the path of the last node done.  In
 * the order of a pass a node comes before another if its path is smaller, or if
 * it begins with the other's.  So nothing is held between two calls, and what
 * others change meanwhile is met or not, as in a scan.
 *
 * Everything is planned from validated samples and built in private.  Then these
 * are latched, top-down, each by one try, at the versions of the samples: parent,
 * node, and each leaf and small node that goes.  For the readers of ROWEX nothing
 * is changed in place but the parent's reference.
 *
 * src/core/radix/README.md: Compaction
 */
#include "rt_olc.h"

#define FILL		28			/* entries of a leaf, as a build makes it */
#define LEAF_BYTES	(RT_FIX_BYTES - 64)	/* and their bytes, about */
#define RUN			16			/* neighbours whose entries are distributed anew */
#define RUN_BYTES	(48 * 1024)	/* and their bytes, at most */
#define MOST		64			/* leaves and small nodes that go at once */
#define CALL_OBJS	96			/* a call ends after so many */
#define CALL_NODES	64			/* or having looked at so many nodes */
#define PATH_BYTES	16384		/* nodes further down are left as they are */
#define TRIES		8
#define ROUNDS		16			/* with one node, MOST at a time */

/* The contents of a slot of the node. */
typedef struct unit
{
	int			n;				/* entries, 0: it stays as it is */
	int			objs;			/* leaves and nodes */
	uint32_t	bytes;			/* of the entries, about */
	uint32_t	takes;			/* bytes of memory */
	bool		alone;			/* a leaf of one long entry */
	bool		poor;			/* to be made anew even by itself */
	bool		must;			/* whatever that gains */
} unit;

/* In the caller's memory. */
typedef struct work
{
	uint8_t		pos[PATH_BYTES];	/* the last node done */
	uint8_t		path[PATH_BYTES];	/* to the node at hand, */
	uint32_t	d;				/* which has that depth */
	rt_slot	slots[256];
	int			ns;
	rt_slot	out[256];			/* what it is to have */
	int			nout;
	rt_slot	sub[256];
	unit		unit[256];
	rt_gone		gone[MOST];
	int			ngone;
	int			fresh[256];		/* places in out of what was made here */
	int			nfresh;
	int			embedded;		/* TIDs that went into leaves */
	bool		apart[256];		/* slots that stay as they are */
	/* the entries of the leaves that are being made */
	uint8_t		taken[RUN_BYTES];
	uint8_t		bytes[RT_VAR_BYTES];
	rt_ent		e[RUN * RT_LEAF_MAX];
	int			ne;
	uint32_t	used;
} work;

_Static_assert(sizeof(work) <= AX_COMPACT_WORK, "a compaction's memory is too small");

/* ---- finding the node ---- */

/*
 * The first byte from "from" on at which an inner node hangs, and that node; or -1.  The
 * larger nodes are read from there only, for a pass comes by once a child.
 */
static int
inner_byte(rt_hdr *h, rt_slot *slots, int from, rt_ref *node)
{
	if (h->kind <= RT_N16)
	{
		const int	n = rt_node_slots_get(h, slots);

		for (int i = 0; i < n; i++)
			if (RT_IS_NODE(*node = slots[i].r) && slots[i].lo >= from)
				return slots[i].lo;
		return -1;
	}
	for (int c = from; c < 256; c++)
	{
		const int	i = h->kind == RT_N48 ? ld(&((rt_n48 *) h)->index[c]) : 0;

		*node = h->kind == RT_N256 ? ldref(&((rt_n256 *) h)->child[c]) :
			i > 0 ? ldref(&((rt_n48 *) h)->child[i - 1]) : 0;
		if (RT_IS_NODE(*node))
			return c;
	}
	return -1;
}

/*
 * The node behind w->pos (c->started), or the first: N, its parent P, its path in
 * w->path[0 .. N->d).  AX_NOTFOUND: there is none.  AX_STALE, AX_BUSY.
 *
 * Latches: none.
 */
static ax_status
next_node(ax_ctx *cx, ax_store *s, const ax_compaction *c, work *w, rt_at *P, rt_at *N)
{
	bool		follow = c->started;
	rt_ref		ref;
	ax_status	x;

	*P = *N = (rt_at) {.hdr = NULL};
	x = ax_guard_open(cx, &N->g, &s->root_word, false);
	if (x != AX_OK)
		return x;
	ref = ldref(&s->root);
	if (!ax_guard_valid(&N->g))
		return AX_STALE;
	if (!RT_IS_NODE(ref))
		return AX_NOTFOUND;
	for (;;)
	{
		rt_hdr    *h = RT_PTR(ref);
		uint32_t	d = N->hdr ? N->d + 1 : 0;
		uint32_t	e = d + h->plen;
		bool		over = e >= PATH_BYTES;
		int			from = 0,
					byte;
		ax_guard	g;

		x = ax_guard_open(cx, &g, &h->word, false);
		if (x != AX_OK)
			return x;
		AX_POINT("art.compact.child_version");
		if (!ax_guard_valid(&N->g))
			return AX_STALE;
		if (!over)
		{
			memcpy(w->path + d, rt_prefix(h), h->plen);
			if (follow)
			{
				uint32_t	m = (e < c->len ? e : c->len) - d;
				int			cmp = memcmp(w->path + d, w->pos + d, m);

				/* before the last one done, or that itself, or below it */
				over = cmp < 0 || (cmp == 0 && e >= c->len);
				follow = cmp == 0;
			}
		}
		if (over)
		{
			if (!N->hdr)
				return AX_NOTFOUND;
			from = w->path[N->d] + 1;
			follow = false;
		}
		else
		{
			*P = *N;
			N->g = g;
			N->hdr = h;
			N->d = e;
			if (follow)
				from = w->pos[e];
		}
		byte = inner_byte(N->hdr, w->slots, from, &ref);
		if (!ax_guard_valid(&N->g))
			return AX_STALE;
		if (byte < 0)
			return AX_OK;
		if (byte != from)
			follow = false;
		w->path[N->d] = (uint8_t) byte;
	}
}

/* ---- looking ---- */

static inline int
leaf_entries(rt_leaf *l)
{
	return __builtin_popcount(rt_leaf_live(l) & rt_all_live(l->cap));
}

/* Bytes that the entries of a leaf would take in another.  Racy. */
static uint32_t
leaf_bytes(rt_leaf *l)
{
	uint32_t	m = rt_leaf_live(l) & rt_all_live(l->cap);
	uint32_t	bytes = 0;

	if (!(l->flags & RT_F_VAR))
		return (uint32_t) __builtin_popcount(m) * (l->w + 1u);
	for (; m; m &= m - 1)
		bytes += ld(&rt_var_slot(l, __builtin_ctz(m))->len) + 5u;
	return bytes;
}

/*
 * The worth of a leaf in a merge: its entries, its bytes, and whether it had
 * better be replaced.
 */
static unit
look_at_leaf(ax_ctx *cx, ax_store *s, rt_leaf *l)
{
	unit		u = {.n = leaf_entries(l), .objs = 1};

	u.takes = ax_alloc_size(rt_leaf_size(l));
	u.poor = u.must = ax_draining(cx, s, l);
	if (l->flags & RT_F_ONE)
	{
		u.alone = true;
		u.n = u.must ? 1 : 0;
		return u;
	}
	u.bytes = leaf_bytes(l);
	/* room for a few more is worth its while, unless all hold too much */
	if (l->flags == 0 && u.n > 0 &&
		ax_alloc_size(rt_fix_size(u.n, l->w)) * 8 <= u.takes * (ax_body(cx)->drains ? 7 : 6))
		u.poor = true;
	return u;
}

/*
 * A node with nothing but leaves and TIDs that would fit into one leaf?  AX_OK,
 * with n == 0 if not; else as of an opened guard.
 *
 * Latches: none.
 */
static ax_status
look_at_node(ax_ctx *cx, work *w, rt_hdr *h, unit *u)
{
	ax_guard	g;
	ax_status	x;
	int			n;

	*u = (unit) {.objs = 1};
	if (rt_node_children(h) > FILL || h->plen > LEAF_BYTES / 2)
		return AX_OK;
	x = ax_guard_open(cx, &g, &h->word, false);
	if (x != AX_OK)
		return x;
	n = rt_node_slots_get(h, w->sub);
	if (!ax_guard_valid(&g))
		return AX_STALE;
	ax_guard_close(cx, &g, false);
	u->takes = ax_alloc_size(rt_node_size(h->kind, h->plen));
	for (int i = 0; i < n; i++)
	{
		rt_leaf   *l = RT_PTR(w->sub[i].r);

		if (RT_IS_NODE(w->sub[i].r))
		{
			u->n = 0;
			return AX_OK;
		}
		if (RT_TAG(w->sub[i].r) == RT_EMBED)
		{
			u->n++;
			u->bytes += AX_TID_BYTES + 2;
			continue;
		}
		if (l->flags & RT_F_ONE)
		{
			u->n = 0;
			return AX_OK;
		}
		u->n += leaf_entries(l);
		u->objs++;
		u->bytes += leaf_bytes(l);
		u->takes += ax_alloc_size(rt_leaf_size(l));
	}
	u->bytes += (uint32_t) u->n * (1 + h->plen);
	if (u->n > FILL || u->bytes > LEAF_BYTES)
		u->n = 0;
	u->poor = true;
	return AX_OK;
}

/*
 * Which slots of the node stay as they are, since contention took them apart
 * lately.  These are the inner nodes on the way there, and the leaves beside one.
 * Not leaves in spans that are to become empty.
 */
static void
mark_apart(ax_ctx *cx, ax_store *s, work *w, uint32_t d, int ns)
{
	bool		hot[256];
	bool		leaves = false;

	memset(w->apart, 0, sizeof(w->apart));
	if (!rt_hot_bytes(cx, s, w->path, d, hot))
		return;
	for (int i = 0; i < ns; i++)
	{
		for (int b = w->slots[i].lo; b <= w->slots[i].hi; b++)
			w->apart[i] |= hot[b];
		leaves |= w->apart[i] && RT_TAG(w->slots[i].r) == RT_LEAF;
	}
	for (int i = 0; i < ns; i++)
		if (RT_TAG(w->slots[i].r) == RT_LEAF)
			w->apart[i] = leaves && !ax_draining(cx, s, RT_PTR(w->slots[i].r));
}

/*
 * Sum up slot i and those behind it whose entries may be distributed together: at
 * most RUN slots, or so many as one leaf holds.  Returns the slot behind the last.
 */
static int
neighbours(work *w, int i, int ns, bool one, unit *all, bool *more)
{
	const unit *u = &w->unit[i];
	int			j = i + 1;

	*all = *u;
	all->must = false;
	for (; j < ns && j - i < RUN; j++)
	{
		const unit *v = &w->unit[j];

		if (u->n == 0 || u->alone || v->n == 0 || v->alone ||
			all->bytes + v->bytes > (one ? LEAF_BYTES : RUN_BYTES) ||
			(one && all->n + v->n > FILL))
			break;
		if (w->ngone + all->objs + v->objs > MOST)
		{
			*more = w->ngone > 0;
			break;
		}
		all->n += v->n;
		all->objs += v->objs;
		all->bytes += v->bytes;
		all->takes += v->takes;
	}
	return j;
}

/* Bytes of memory that so many entries would take, as a build packs them, about. */
static uint32_t
packed(const unit *all)
{
	uint32_t	each = all->bytes / (uint32_t) all->n + 1;
	uint32_t	fill = LEAF_BYTES / each;
	uint32_t	rest;

	if (fill > FILL)
		fill = FILL;
	if (fill == 0)
		return all->takes;
	rest = (uint32_t) all->n % fill;
	return (uint32_t) all->n / fill * ax_alloc_size(16 + fill * each) +
		(rest ? ax_alloc_size(16 + rest * each) : 0);
}

/* Is it worth its while to have "bytes" instead of what is taken now? */
static inline bool
gains(uint32_t bytes, uint32_t takes)
{
	return bytes * 8 <= takes * 7;
}

/* ---- fewer leaves of many ---- */

/*
 * One entry more: its bytes are those of a and of b, from the node's depth on.  hash: it
 * has none yet.  False: there is no room.
 */
static bool
add_taken(work *w, const uint8_t *a, uint32_t an, const uint8_t *b, uint32_t bn, bool hash,
		  uint8_t fp)
{
	const uint32_t d = w->d;
	uint32_t	len = an + bn;
	rt_ent    *e = &w->e[w->ne];

	if (w->ne == RUN * RT_LEAF_MAX || w->used + len > RUN_BYTES)
		return false;
	e->p = w->taken + w->used;
	if (an)
		memcpy(w->taken + w->used, a, an);
	memcpy(w->taken + w->used + an, b, bn);
	w->used += len;
	e->len = len;
	e->fp = fp;
	if (hash && len > AX_TID_BYTES)
	{
		/* of the last sixteen bytes of the columns, some of which are the path's */
		uint8_t		tail[16];
		uint32_t	cols = d + len - AX_TID_BYTES;
		uint32_t	n = cols < 16 ? cols : 16;

		for (uint32_t i = 0; i < n; i++)
		{
			uint32_t	at = cols - n + i;

			tail[i] = at < d ? w->path[at] : e->p[at - d];
		}
		e->fp = rt_fp(tail, n);
	}
	w->ne++;
	return true;
}

/* Something that goes: its guard, to be opened.  NULL: that would be too much. */
static ax_guard *
goes(work *w, rt_ref r)
{
	rt_gone    *x;

	if (w->ngone == MOST)
		return NULL;
	x = &w->gone[w->ngone++];
	x->r = r;
	x->g.held = false;
	return &x->g;
}

/*
 * The entries of a leaf, behind an bytes of a, in order.  AX_NOTFOUND: no room.
 *
 * Latches: none.
 */
static ax_status
take_leaf(ax_ctx *cx, work *w, const uint8_t *a, uint32_t an, rt_ref ref)
{
	rt_ent		e[RT_LEAF_MAX];
	rt_leaf    *l = RT_PTR(ref);
	ax_guard   *g = goes(w, ref);
	bool		hash = !rt_leaf_has_fp(l) && !(l->flags & RT_F_ONE);
	const int	first = w->ne;
	ax_status	r;
	int			n;

	if (!g)
		return AX_NOTFOUND;
	r = ax_guard_open(cx, g, &l->word, false);
	if (r != AX_OK)
		return r;
	AX_POINT("art.compact.leaf_version");
	n = rt_leaf_ents(l, e, w->bytes);
	if (!ax_guard_valid(g))
		return AX_STALE;
	if (l->flags & RT_F_ONE)
	{
		/* it came below a small node, after that was found to have none */
		if (an > 0)
			return AX_STALE;
		/* long, immutable, and by itself: from where it is */
		w->e[w->ne++] = e[0];
		return AX_OK;
	}
	for (int i = 0; i < n; i++)
		if (!add_taken(w, a, an, e[i].p, e[i].len, hash, e[i].fp))
			return AX_NOTFOUND;
	rt_sort_ents(w->e + first, w->ne - first);
	return n > 0 ? AX_OK : AX_STALE;
}

/*
 * All that is below a small node, which hangs at byte c.
 *
 * Latches: none.
 */
static ax_status
take_node(ax_ctx *cx, work *w, uint8_t c, rt_ref ref)
{
	uint8_t		a[LEAF_BYTES];
	rt_hdr	   *h = RT_PTR(ref);
	uint32_t	an = 1 + h->plen;
	ax_guard   *g = goes(w, ref);
	ax_status	r;
	int			n;

	if (!g)
		return AX_NOTFOUND;
	r = ax_guard_open(cx, g, &h->word, false);
	if (r != AX_OK)
		return r;
	n = rt_node_slots_get(h, w->sub);
	if (!ax_guard_valid(g))
		return AX_STALE;
	a[0] = c;
	memcpy(a + 1, rt_prefix(h), h->plen);
	for (int i = 0; i < n; i++)
	{
		rt_slot	one = w->sub[i];

		if (RT_IS_NODE(one.r))
			return AX_STALE;
		if (RT_TAG(one.r) == RT_EMBED)
		{
			uint8_t		b[1 + AX_TID_BYTES];

			b[0] = one.lo;
			ax_put_tid(b + 1, RT_EMBED_TID(one.r));
			if (!add_taken(w, a, an, b, sizeof(b), true, 0))
				return AX_NOTFOUND;
			w->embedded++;
			continue;
		}
		r = take_leaf(cx, w, a, an, one.r);
		if (r != AX_OK)
			return r;
	}
	return AX_OK;
}

/* Give up the leaves that were made for w->out, from place "out" on. */
static void
drop(ax_ctx *cx, ax_store *s, work *w, int out)
{
	while (w->nfresh > 0 && w->fresh[w->nfresh - 1] >= out)
		rt_free_private(cx, s, w->out[w->fresh[--w->nfresh]].r);
}

/*
 * Put the entries of slots [from, to) of the node into leaves of byte ranges, behind
 * what is in w->out.  A leaf has all entries of a byte value, as a
 * build's.  One leaf alone is copied: removals may have left entries of one length, of
 * which it has more than such a leaf takes.  AX_OK, with w->nout as it was if it would be
 * no gain, or there is no memory.
 */
static ax_status
repack(ax_ctx *cx, ax_store *s, work *w, int from, int to, const unit *all)
{
	const int	ngone = w->ngone;
	const int	embedded = w->embedded;
	const int	fill = to - from > 1 ? FILL : RT_LEAF_MAX;
	const bool	copy = to - from == 1 && !RT_IS_NODE(w->slots[from].r);
	uint32_t	bytes = 0;
	int			out = w->nout;
	bool		good;
	ax_status	x = AX_OK;

	w->ne = 0;
	w->used = 0;
	for (int i = from; i < to && x == AX_OK; i++)
		x = RT_IS_NODE(w->slots[i].r) ?
			take_node(cx, w, w->slots[i].lo, w->slots[i].r) :
			take_leaf(cx, w, NULL, 0, w->slots[i].r);
	good = x == AX_OK && w->ne > 0;
	for (int i = 0, j = 0; i < w->ne && good; i = j)
	{
		rt_ref		r;

		for (int k = i; k < w->ne; j = k)
		{
			uint8_t		c = w->e[k].p[0];

			while (k < w->ne && w->e[k].p[0] == c)
				k++;
			if (j > i && !copy &&
				(k - i > fill || !rt_leaf_fits(w->e + i, (uint64_t) (k - i), 0)))
				break;
		}
		good = out - w->nout < to - from &&
			(copy || rt_leaf_fits(w->e + i, (uint64_t) (j - i), 0)) &&
			(r = rt_leaf_new(cx, s, w->e + i, j - i, 0, j - i, true)) != 0;
		if (!good)
			break;
		bytes += ax_alloc_size(rt_leaf_size(RT_PTR(r)));
		w->fresh[w->nfresh++] = out;
		w->out[out].r = r;
		w->out[out].lo = i > 0 ? w->e[i].p[0] : w->slots[from].lo;
		w->out[out].hi = w->slots[to - 1].hi;
		if (i > 0)
			w->out[out - 1].hi = (uint8_t) (w->out[out].lo - 1);
		out++;
	}
	if (good && (all->must || gains(bytes, all->takes)))
		w->nout = out;
	else
	{
		drop(cx, s, w, w->nout);
		w->ngone = ngone;
		w->embedded = embedded;
	}
	return x == AX_NOTFOUND ? AX_OK : x;
}

/* ---- one node ---- */

/*
 * Look at each slot of the node, for w->unit.  Returns as look_at_node().
 *
 * Latches: none.
 */
static ax_status
look_at_child(ax_ctx *cx, ax_store *s, work *w)
{
	ax_status	x = AX_OK;

	mark_apart(cx, s, w, w->d, w->ns);
	for (int i = 0; i < w->ns && x == AX_OK; i++)
	{
		rt_ref		ref = w->slots[i].r;

		w->unit[i] = (unit) {.n = 0};
		if (w->apart[i])
			continue;
		if (RT_TAG(ref) == RT_LEAF)
			w->unit[i] = look_at_leaf(cx, s, RT_PTR(ref));
		else if (RT_IS_NODE(ref))
			x = look_at_node(cx, w, RT_PTR(ref), &w->unit[i]);
	}
	return x;
}

/*
 * Pack slot *i, and some of those behind it, behind what is in w->out.  *i is then the
 * slot behind them.  Of the slots before *seen many neighbours would gain too little.
 * Returns as repack().
 *
 * Latches: none.
 */
static ax_status
pack_some(ax_ctx *cx, ax_store *s, work *w, int *i, int *seen, bool *more)
{
	const int	from = *i;
	const unit *u = &w->unit[from];
	const int	before = w->nout;
	ax_status	x = AX_OK;

	/* many neighbours; where they would gain little, so many as make one leaf */
	for (bool one = from < *seen;; one = true)
	{
		unit		all;

		*i = neighbours(w, from, w->ns, one, &all, more);
		if (*i > from + 1 && (one || gains(packed(&all), all.takes)))
			x = repack(cx, s, w, from, *i, &all);
		if (x != AX_OK || w->nout > before)
			return x;
		if (one)
			break;
		*seen = *i;
	}
	*i = from + 1;
	if (u->n > 0 && u->poor)
	{
		if (w->ngone + u->objs > MOST)
			*more = w->ngone > 0;
		else
			x = repack(cx, s, w, from, *i, u);
	}
	if (x == AX_OK && w->nout == before)
		w->out[w->nout++] = w->slots[from];
	return x;
}

/*
 * Compact the node at->P below at->G.  AX_OK: *objs were replaced, 0: it is as it was;
 * *more: it was too much for once.  AX_STALE: others were in the way.
 *
 * Latches: none on entry and on return; takes G, P and what goes, by one try each.
 */
static ax_status
pack_node(ax_ctx *cx, ax_store *s, work *w, rt_cursor *at, int *objs, bool *more)
{
	rt_change	ch = {.site = AX_SITES, .replace = true, .gone = w->gone};
	rt_hdr	   *old = at->P.hdr,
			   *h;
	unsigned	kind;
	int			seen = 0;
	bool		moves;
	ax_status	x;

	*objs = 0;
	*more = false;
	w->ns = rt_node_slots_get(old, w->slots);
	w->d = at->P.d;
	w->nout = w->ngone = w->nfresh = w->embedded = 0;
	if (!ax_guard_valid(&at->P.g))
		return AX_STALE;
	moves = ax_draining(cx, s, old);
	x = look_at_child(cx, s, w);
	for (int i = 0; i < w->ns && x == AX_OK;)
		x = pack_some(cx, s, w, &i, &seen, more);
	/* the samples that the plan rests on */
	if (x == AX_OK && (!ax_guard_valid(&at->P.g) || !ax_guard_valid(&at->G.g)))
		x = AX_STALE;
	if (x == AX_OK)
	{
		kind = w->nout <= 4 ? RT_N4 : w->nout <= 16 ? RT_N16 :
			w->nout <= (rt_rowex(s) ? 44 : 48) ? RT_N48 : RT_N256;
		if (w->nfresh == 0 && kind >= old->kind && !moves)
			return AX_OK;
		h = rt_made_node(&ch, rt_node_new(cx, s, kind, rt_prefix(old), old->plen, true));
		if (h)
		{
			rt_node_fill(h, w->out, w->nout);
			ch.put = rt_node_ref(h);
		}
		ch.ngone = w->ngone;
		ch.embedded = (int16_t) -w->embedded;
		AX_POINT("art.compact.before_lock");
		x = rt_begin(cx, s, at, &ch);
	}
	if (x != AX_OK)
	{
		drop(cx, s, w, 0);
		return x == AX_NOMEM ? AX_OK : x;
	}
	/* all is as it was when it was copied */
	rt_finish(cx, s, at, w->path, &ch);
	*objs = w->ngone + 1;
	return AX_OK;
}

ax_status
rt_compact(ax_ctx *cx, ax_store *s, ax_compaction *c)
{
	work	   *w = c->work;
	int			objs = 0,
				tries = 0,
				rounds = 0;

	for (int nodes = 0; nodes < CALL_NODES && objs < CALL_OBJS; nodes++)
	{
		rt_cursor	at = {.ref = 0};
		int			did = 0;
		bool		more = false;
		ax_status	x = next_node(cx, s, c, w, &at.G, &at.P);
		bool		found = x == AX_OK;

		if (x == AX_NOTFOUND)
		{
			c->done = true;
			break;
		}
		if (found)
			x = pack_node(cx, s, w, &at, &did, &more);
		if (x == AX_BUSY || (!found && tries == TRIES))
			return AX_BUSY;
		objs += did;
		c->moved += (uint64_t) did;
		if (x == AX_STALE)
			ax_restarted(cx, s, tries++);
		ax_map_unshare_all();
		/* where somebody works all the time, a node is left to the next pass */
		if (x == AX_STALE && (tries < TRIES || !found))
			continue;
		tries = 0;
		if (more && did && ++rounds < ROUNDS)
			continue;
		rounds = 0;
		memcpy(w->pos, w->path, at.P.d);
		c->len = at.P.d;
		c->started = true;
	}
	return AX_OK;
}
