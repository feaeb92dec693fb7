/*
 * rt_floor.c
 *	  A descent to an entry next to a position, of which it tells the TID and nothing else.
 *
 * It is for HydraList's search layer, which only wants to begin somewhere near.  So it copies no
 * key.  It compares the columns of an entry, without its TID.  Each node is validated as in
 * any descent, but not all of the way at once.  So beside writers the entry may not be the
 * nearest one any more.  It was in the tree during the call.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "radix.h"
#include "rt_olc.h"

#define DEEP 32					/* nodes of a way that it can go back to */
#define NONE UINT64_MAX			/* no entry */
#define TIED (UINT64_MAX - 1)	/* heads do not say */

/* A node on the way; the position goes on in it by its byte at d. */
typedef struct place
{
	ax_guard	g;
	rt_hdr    *h;
	uint32_t	d;
} place;

typedef struct way
{
	const uint8_t *key;
	uint32_t	len;
	bool		after;			/* the position is behind what begins with key */
	bool		waits;			/* for a latch; else AX_STALE */
	bool		all;			/* all that is below here lies before it */
	bool		lost;			/* the way is longer than p */
	int			n;
	place		p[DEEP];
} way;

/* The child in slot i, or at byte i. */
static inline rt_ref
child_in(rt_hdr *h, unsigned kind, int i)
{
	if (kind == RT_N4)
		return ldref(&((rt_n4 *) h)->child[i]);
	if (kind == RT_N16)
		return ldref(&((rt_n16 *) h)->child[i]);
	return rt_child(h, kind, (uint8_t) i);
}

/* The last child in a small node's slots up to i; 0: none.  ROWEX leaves holes.  Racy. */
static rt_ref
child_up_to(rt_hdr *h, unsigned kind, int i)
{
	rt_ref		q = 0;

	for (; i >= 0 && q == 0; i--)
		q = child_in(h, kind, i);
	return q;
}

/* The last child before the one for byte c; 0: none.  Racy. */
static rt_ref
child_before(rt_hdr *h, unsigned kind, uint8_t c)
{
	int			at;
	rt_ref		r = rt_find(h, kind, c, &at),
				q;

	if (kind <= RT_N16)
		return child_up_to(h, kind, at - (r != 0));
	for (int b = (int) c - 1; b >= 0; b--)
		if ((q = child_in(h, kind, b)) != 0 && q != r)
			return q;
	return 0;
}

/* A node's last child; 0: it is changing.  Racy. */
static rt_ref
child_last(rt_hdr *h, unsigned kind)
{
	rt_ref		q;
	int			n = ld(&h->count);

	if (kind <= RT_N16)
		return n > rt_node_slots(kind) ? 0 : child_up_to(h, kind, n - 1);
	for (int b = 255; b >= 0; b--)
		if ((q = child_in(h, kind, b)) != 0)
			return q;
	return 0;
}

/* How n bytes compare with m, of which the first eight are the same.  Racy. */
static int
compare_entry(const uint8_t *a, uint32_t n, const uint8_t *b, uint32_t m)
{
	for (uint32_t i = 8; i < n && i < m; i++)
	{
		int			c = (int) ax_load1(a + i) - (int) ax_load1(b + i);

		if (c)
			return c;
	}
	return n < m ? -1 : n > m;
}

/*
 * leaf_floor() of a leaf of entries that are all as long.  TIED: of those that have this head more must
 * be compared.  deep: their columns are longer than the heads, and several may have the same.
 * Of an entry behind the position the difference of the heads is above kh.
 */
__attribute__((always_inline)) static inline uint64_t
fixed_floor(rt_leaf *l, uint64_t kh, uint32_t cols, const bool deep, uint64_t *head)
{
	const uint32_t w = l->w;
	const uint8_t *base = l->body + l->cap;
	const uint8_t *best = NULL;
	const uint64_t mask = deep ? UINT64_MAX : ~(uint64_t) 0 << (64 - 8 * cols);
	uint64_t	near = UINT64_MAX;
	uint32_t	twice = 0;
	uint32_t	live = rt_leaf_live(l) & rt_all_live(l->cap);

	/* no branch that hangs on which entries are before the position */
	for (const uint8_t *p = base; live; live >>= 1, p += w)
	{
		uint64_t	far;

		if (ax_unlikely(!(live & 1)))
			continue;
		far = kh - (__builtin_bswap64(ax_load8(p)) & mask);
		if (deep)
			twice = (twice & (uint32_t) (far >= near)) | (uint32_t) (far == near);
		best = far <= near ? p : best;
		near = far <= near ? far : near;
	}
	*head = kh - near;
	if (!best || near > kh)
		return NONE;
	return near == 0 || (deep && twice) ? TIED : ax_tid_at(best + w);
}

/* The same of a leaf of entries of several lengths. */
static uint64_t
var_floor(rt_leaf *l, uint64_t kh, uint64_t *head)
{
	const uint8_t *best = NULL;
	uint64_t	near = UINT64_MAX;
	uint32_t	twice = 0;

	for (uint32_t m = rt_leaf_live(l) & rt_all_live(l->cap); m; m &= m - 1)
	{
		uint32_t	n;
		const uint8_t *p = rt_leaf_entry(l, __builtin_ctz(m), &n);
		const uint32_t cut = n < 8 + AX_TID_BYTES ? 8 * (8 + AX_TID_BYTES - n) : 0;
		uint64_t	far;

		/* of the TID a part is in the path: another entry does, too */
		if (ax_unlikely(n < AX_TID_BYTES))
			continue;
		far = kh - (cut < 64 ? ax_be8(p, n) & UINT64_MAX << cut : 0);
		twice = (twice & (uint32_t) (far >= near)) | (uint32_t) (far == near);
		best = far <= near ? p + n : best;
		near = far <= near ? far : near;
	}
	*head = kh - near;
	if (!best || near > kh)
		return NONE;
	return near == 0 || twice ? TIED : ax_tid_at(best);
}

/*
 * leaf_floor() of entries whose heads are not before this one: of few, as a rule.
 *
 * Arguments: of leaf_floor(), and what it found out.
 */
static uint64_t
slow_floor(const way *w, rt_leaf *l, const uint8_t *k, uint32_t n, uint64_t kh, uint64_t head)
{
	const uint8_t *best = NULL;
	uint32_t	best_cols = 0;

	for (uint32_t m = rt_leaf_live(l) & rt_all_live(l->cap); m; m &= m - 1)
	{
		uint32_t	cols;
		const uint8_t *p = rt_leaf_entry(l, __builtin_ctz(m), &cols);
		uint64_t	h = ax_be8(p, cols);

		/* of the TID a part is in the path: another entry does, too */
		if (cols < AX_TID_BYTES)
			continue;
		cols -= AX_TID_BYTES;
		if (cols < 8)
			h &= cols ? ~(UINT64_MAX >> (8 * cols)) : 0;
		if (h < head)
			continue;
		if (!w->all)
		{
			if (h > kh)
				continue;
			/* the position is behind all that begins so, or before all that is longer */
			if (h == kh && compare_entry(p, cols, k, n) > 0 &&
				!(w->after && cols > n && compare_entry(p, n, k, n) == 0))
				continue;
		}
		if (best && h == head && compare_entry(p, cols, best, best_cols) < 0)
			continue;
		best = p;
		head = h;
		best_cols = cols;
	}
	return best ? ax_tid_at(best + best_cols + AX_TID_BYTES) : NONE;
}

/*
 * The TID of a leaf's last entry whose columns are not behind the position.  The entries go on at
 * depth d.  Racy.
 */
static uint64_t
leaf_floor(const way *w, rt_leaf *l, uint32_t d)
{
	const uint8_t *k = w->all ? NULL : w->key + d;
	const uint32_t n = w->all ? 0 : w->len - d;
	const uint64_t kh = w->all ? UINT64_MAX : (n ? ax_be8(k, n) : 0) |
		(n < 8 && w->after ? UINT64_MAX >> (8 * n) : 0);
	uint64_t	head = 0,
				tid = TIED;

	if (ax_likely(l->flags == 0 && l->w >= 8))
	{
		const uint32_t cols = l->w - AX_TID_BYTES;

		tid = cols > 8 ? fixed_floor(l, kh, cols, true, &head) :
			fixed_floor(l, kh, cols, false, &head);
	}
	else if (l->flags == RT_F_VAR)
		tid = var_floor(l, kh, &head);
	if (ax_unlikely(tid == TIED))
		tid = slow_floor(w, l, k, n, kh, head);
	/* those with this head are behind the position */
	if (ax_unlikely(tid == NONE && head > 0 && head <= kh))
		tid = slow_floor(w, l, k, n, kh, 0);
	return tid;
}

/*
 * As ax_open.
 *
 * Latches: none.
 */
static inline ax_status
open_word(ax_ctx *cx, const way *w, ax_guard *g, ax_word *word)
{
	return w->waits ? ax_open(cx, g, word, AX_READ) : ax_open(cx, g, word, AX_TRY);
}

/*
 * From a node, which "parent" is the guard of what leads to, to what hangs in it; 0: nothing.
 *
 * Latches: none.
 */
static ax_status
enter(ax_ctx *cx, way *w, rt_ref *ref, uint32_t *d, ax_guard *parent)
{
	const unsigned kind = RT_TAG(*ref);
	rt_hdr    *h = RT_PTR(*ref);
	uint32_t	plen,
				m;
	ax_guard	g;
	ax_status	x = open_word(cx, w, &g, &h->word);

	if (x != AX_OK)
		return x;
	AX_POINT("art.floor.node");
	if (!ax_valid(parent, AX_READ))
		return AX_STALE;
	*parent = g;
	plen = rt_ref_plen(*ref);
	*ref = 0;
	if (!w->all && plen && (m = rt_match(h, kind, plen, w->key, w->len, *d)) < plen)
	{
		if (m < w->len - *d ? rt_prefix_at(h, kind, plen)[m] > w->key[*d + m] : !w->after)
			return AX_OK;		/* all of it is behind */
		w->all = true;
	}
	*d += plen;
	if (!w->all && *d >= w->len)
	{
		if (!w->after)
			return AX_OK;
		w->all = true;
	}
	if (!w->all)
	{
		w->lost |= w->n == DEEP;
		if (w->n == DEEP)
			memmove(&w->p[0], &w->p[1], sizeof(place) * (size_t) --w->n);
		w->p[w->n++] = (place) {g, h, *d};
		*ref = rt_child(h, kind, w->key[*d]);
	}
	else
		*ref = child_last(h, kind);
	return AX_OK;
}

/*
 * One try.  AX_OK, AX_NOTFOUND: no entry is before the position.  AX_CHANGED: nor is one in the
 * last nodes of a long way.  AX_STALE, AX_BUSY.
 *
 * Latches: none.
 */
static ax_status
one_way(ax_ctx *cx, ax_store *s, way *w, uint64_t *tid)
{
	uint32_t	d = 0;
	rt_ref		ref;
	ax_guard	g,
				leaf;
	ax_status	x = open_word(cx, w, &g, &s->root_word);

	if (x != AX_OK)
		return x;
	ref = ldref(&s->root);
	for (;;)
	{
		if (RT_IS_NODE(ref))
		{
			x = enter(cx, w, &ref, &d, &g);
			if (x != AX_OK)
				return x;
			/* what hangs there begins behind its byte, but a leaf, which keeps it */
			d += ref != 0 && RT_TAG(ref) != RT_LEAF;
		}
		else if (RT_TAG(ref) == RT_LEAF)
		{
			rt_prefetch_leaf(ref);
			x = open_word(cx, w, &leaf, &((rt_leaf *) RT_PTR(ref))->word);
			if (x != AX_OK)
				return x;
			AX_POINT("art.floor.leaf");
			if (!ax_valid(&g, AX_READ))
				return AX_STALE;
			*tid = leaf_floor(w, RT_PTR(ref), d);
			if (!ax_valid(&leaf, AX_READ))
				return AX_STALE;
			if (*tid != NONE)
				return AX_OK;
			ref = 0;
		}
		else if (ref != 0)
		{
			*tid = RT_EMBED_TID(ref);
			return ax_valid(&g, AX_READ) ? AX_OK : AX_STALE;
		}
		/* nothing here: what lies before it, in the nodes that led here */
		while (ref == 0)
		{
			place	   *p;

			if (!ax_valid(&g, AX_READ))
				return AX_STALE;
			if (w->n == 0)
				return w->lost ? AX_CHANGED : AX_NOTFOUND;
			p = &w->p[--w->n];
			g = p->g;
			ref = child_before(p->h, p->h->kind, w->key[p->d]);
			d = p->d + (RT_TAG(ref) != RT_LEAF);
			w->all = true;
		}
	}
}

/*
 * Epoch: inside.
 * Latches: none.
 */
ax_status
rt_floor(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, bool after, bool waits,
		 uint64_t *tid)
{
	int			tries = 0;

	while (!ax_pessimistic(tries))
	{
		way			w;
		ax_status	x;

		w.key = key;
		w.len = len;
		w.after = after;
		w.waits = waits;
		w.all = w.lost = false;
		w.n = 0;
		x = one_way(cx, s, &w, tid);
		if (ax_unlikely(x == AX_CHANGED))
			return AX_STALE;
		if (!waits || !ax_start_over(cx, s, x, &tries))
			return x;
	}
	return AX_STALE;
}
