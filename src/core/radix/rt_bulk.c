/*
 * rt_bulk.c
 *	  Sorted entries to a private subtree, bottom-up: the bulk load, and the
 *	  split of a leaf whose entries share the slot's byte.
 *
 * The order of the entries is trusted; nothing is latched, since nobody else
 * sees a node before one store publishes the whole.
 *
 * src/core/radix/README.md: The tree
 */
#include "core/base/ax_call.h"
#include "rt_olc.h"

/*
 * Deeper than this no load builds: stack is finite.  Its caller then merges, as into a
 * tree that is not empty.  More than the entries of a leaf and those merged into it
 * can nest, for there is no such way out for them.
 */
#define RT_BUILD_DEPTH 136

/* Keys fetched into the cache ahead of the leaf that they make. */
#define PREFETCH_KEYS 256

void
rt_free_private(ax_ctx *cx, ax_store *s, rt_ref r)
{
	if (RT_TAG(r) == RT_LEAF)
		rt_leaf_unalloc(cx, s, RT_PTR(r));
	else if (RT_TAG(r) == RT_EMBED)
		AX_COUNT(cx, s, embedded, -1);
	else if (RT_IS_NODE(r))
	{
		rt_hdr    *h = RT_PTR(r);

		for (int c = 0; c < 256;)
		{
			int			at,
						lo,
						hi = c;
			rt_ref		k = rt_find(h, h->kind, (uint8_t) c, &at);

			if (k)
			{
				rt_node_range(h, (uint8_t) c, &lo, &hi);
				rt_free_private(cx, s, k);
			}
			c = hi + 1;
		}
		rt_node_unalloc(cx, s, h);
	}
}

static inline const uint8_t *
view_key(const rt_view *v, uint64_t i)
{
	return v->e ? v->e[i].p : v->keys[i];
}

static inline uint32_t
view_len(const rt_view *v, uint64_t i)
{
	return v->e ? v->e[i].len : v->lens ? v->lens[i] : v->len;
}

/* Get n entries from number i on, of either kind of input. */
static inline void
view_get(const rt_view *v, uint64_t i, int n, rt_ent *out)
{
	for (int k = 0; k < n; k++, i++)
	{
		if (v->e)
			out[k] = v->e[i];
		else
		{
			out[k].p = v->keys[i];
			out[k].len = view_len(v, i);
			out[k].fp = rt_fp(out[k].p, out[k].len - AX_TID_BYTES);
		}
	}
}

/* Sorted keys lie anywhere in memory, and are read in order: fetch some from i on. */
static inline void
view_fetch(rt_view *v, uint64_t i)
{
	uint64_t	end = i + PREFETCH_KEYS < v->n ? i + PREFETCH_KEYS : v->n;

	for (; v->fetched < end; v->fetched++)
	{
		ax_prefetch(v->keys[v->fetched]);
		ax_prefetch(v->keys[v->fetched] + view_len(v, v->fetched) - 1);
	}
}

/* First entry in [i, n) whose byte at off differs from c. */
static uint64_t
group_end(const rt_view *v, uint64_t i, uint64_t n, uint32_t off, uint8_t c)
{
	uint64_t	step = 1,
				lo = i,
				hi;

	/* gallop, then bisect: groups are one entry or millions */
	while (lo + step < n && view_key(v, lo + step)[off] == c)
	{
		lo += step;
		step *= 2;
	}
	hi = lo + step < n ? lo + step : n;
	while (lo + 1 < hi)
	{
		uint64_t	mid = lo + (hi - lo) / 2;

		if (view_key(v, mid)[off] == c)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

/*
 * Arguments: a range of keys, how to build, and what came of it.
 */
int
rt_build_children(ax_ctx *cx, ax_store *s, rt_view *v, uint64_t first, uint64_t end,
				  uint32_t off, int fill, bool exact_caps, int depth, bool *deep,
				  rt_ref *child, uint8_t *lo)
{
	rt_ent		e[RT_LEAF_MAX];
	int			nc = 0;

	for (uint64_t i = first; i < end;)
	{
		uint8_t		c;
		uint64_t	j;
		rt_ref		r;

		view_fetch(v, i);
		c = view_key(v, i)[off];
		j = group_end(v, i, end, off, c);

		if (j - i == 1 && view_len(v, i) - (off + 1) == AX_TID_BYTES && !v->sample)
		{
			r = RT_EMBED_REF(ax_tid_at(view_key(v, i) + view_len(v, i)));
			AX_COUNT(cx, s, embedded, 1);
		}
		else
		{
			int			n = 0;

			if (j - i <= RT_LEAF_MAX)
			{
				/* take in the groups that follow while they fit too */
				n = (int) (j - i);
				view_get(v, i, n, e);
				if (!rt_leaf_fits(e, (uint64_t) n, off))
					n = 0;
				while (n && j < end && n < fill)
				{
					uint64_t	k;

					if (view_len(v, j) - (off + 1) == AX_TID_BYTES && !v->sample)
						break;
					k = group_end(v, j, end, off, view_key(v, j)[off]);
					if (k - i > (uint64_t) fill)
						break;
					view_get(v, j, (int) (k - j), e + n);
					if (!rt_leaf_fits(e, k - i, off))
						break;
					n = (int) (k - i);
					j = k;
				}
			}
			if (n)
				r = rt_leaf_new(cx, s, e, n, off,
								exact_caps ? n : rt_leaf_stepcap(n + 1), false);
			else
				r = rt_build_node(cx, s, v, i, j - i, off + 1, fill, exact_caps, depth + 1, deep);
		}
		if (r && v->breath && j >= v->breath)
		{
			v->breath = j + AX_BREATH_KEYS;
			v->gone = !ax_breathe(cx, s);
		}
		if (v->gone)
			return 0;
		if (!r)
		{
			for (int k = 0; k < nc; k++)
				rt_free_private(cx, s, child[k]);
			return 0;
		}
		child[nc] = r;
		lo[nc++] = c;
		i = j;
	}
	return nc;
}

/*
 * Arguments: a range of keys, how to build, and what came of it.
 */
rt_ref
rt_build_node(ax_ctx *cx, ax_store *s, rt_view *v, uint64_t first, uint64_t count,
			  uint32_t off, int fill, bool exact_caps, int depth, bool *deep)
{
	const uint64_t end = first + count;
	const uint8_t *a = view_key(v, first),
			   *z = view_key(v, end - 1);
	uint32_t	dd = off;
	uint32_t	alen = view_len(v, first),
				zlen = view_len(v, end - 1);
	uint32_t	max = alen < zlen ? alen : zlen;
	rt_ref		child[256];
	uint8_t		lo[256];
	int			nc;
	unsigned	kind;
	rt_hdr    *h;

	if (depth > RT_BUILD_DEPTH)
	{
		*deep = true;
		return 0;
	}
	if (exact_caps && (uint32_t) depth + 1 > ld(&s->height))
		st(&s->height, (uint32_t) depth + 1);	/* of a load: depth is the tree's */
	while (dd + 8 <= max && memcmp(a + dd, z + dd, 8) == 0)
		dd += 8;
	while (dd < max && a[dd] == z[dd])
		dd++;
	AX_ENSURE(ax_body(cx), dd < max);	/* prefix-free and rising */

	nc = rt_build_children(cx, s, v, first, end, dd, fill, exact_caps, depth, deep, child, lo);
	if (nc == 0)
		return 0;
	kind = nc <= 4 ? RT_N4 : nc <= 16 ? RT_N16 : nc <= 48 ? RT_N48 : RT_N256;
	h = rt_node_new(cx, s, kind, a + off, dd - off, false);
	if (!h)
	{
		for (int i = 0; i < nc; i++)
			rt_free_private(cx, s, child[i]);
		return 0;
	}
	for (int i = 0; i < nc; i++)
	{
		int			hi = lo[i];

		if (RT_TAG(child[i]) == RT_LEAF)
			hi = i + 1 < nc ? lo[i + 1] - 1 : 255;
		rt_node_add(h, lo[i], lo[i], hi, child[i]);
	}
	return rt_node_ref(h);
}

/*
 * Epoch: inside; now and then another one (ax_breathe).  On AX_STALE outside.
 * Latches: takes the root's word for the publication; none on return.
 * Returns: unless AX_OK, nothing was loaded and all is given back, or gone with the store.
 */
ax_status
rt_load(ax_ctx *cx, ax_store *s, const uint8_t *const *keys, const uint32_t *lens,
		uint32_t len, uint64_t n, int fill)
{
	rt_view	v = {.keys = keys, .lens = lens, .len = len, .n = n, .breath = AX_BREATH_KEYS};
	bool		deep = false;
	rt_ref		r = 0;
	uint64_t	w;
	ax_status	x;

	if (ldref(&s->root) != 0)
		return AX_EXISTS;
	if (n == 0)
		return AX_OK;
	v.sample = fill == 0;
	fill = v.sample ? RT_LEAF_MAX : fill * RT_LEAF_MAX / 100;
	if (fill < 1)
		fill = 1;
	if (fill > RT_LEAF_MAX)
		fill = RT_LEAF_MAX;
	if (n <= RT_LEAF_MAX)
	{
		rt_ent		e[RT_LEAF_MAX];

		view_get(&v, 0, (int) n, e);
		if (rt_leaf_fits(e, n, 0))
		{
			r = rt_leaf_new(cx, s, e, (int) n, 0, (int) n, false);
			if (!r)
				return AX_NOMEM;
		}
	}
	if (!r)
		r = rt_build_node(cx, s, &v, 0, n, 0, fill, true, 0, &deep);
	if (!r)
		return v.gone ? AX_STALE : deep ? AX_EXISTS : AX_NOMEM;
	x = ax_word_lock(cx, &s->root_word, &w);
	if (x != AX_OK || ldref(&s->root) != 0)
	{
		if (x == AX_OK)
		{
			ax_word_unlock(cx, &s->root_word, false);
			x = AX_EXISTS;
		}
		rt_free_private(cx, s, r);
		return x;
	}
	stref(&s->root, r);
	ax_word_unlock(cx, &s->root_word, true);
	AX_COUNT(cx, s, entries, (int64_t) n);
	return AX_OK;
}
