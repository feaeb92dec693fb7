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
build_key(const rt_build *b, uint64_t i)
{
	return b->e ? b->e[i].p : b->keys.p[i];
}

static inline uint32_t
build_len(const rt_build *b, uint64_t i)
{
	return b->e ? b->e[i].len : ax_key_len(&b->keys, i);
}

/* Get n entries from number i on, of either kind of input. */
static inline void
get_entries(const rt_build *b, uint64_t i, int n, rt_ent *out)
{
	for (int k = 0; k < n; k++, i++)
	{
		if (b->e)
			out[k] = b->e[i];
		else
		{
			out[k].p = b->keys.p[i];
			out[k].len = ax_key_len(&b->keys, i);
			out[k].fp = rt_fp(out[k].p, out[k].len - AX_TID_BYTES);
		}
	}
}

/* Sorted keys lie anywhere in memory, and are read in order: fetch some from i on. */
static inline void
prefetch_keys(rt_build *b, uint64_t i)
{
	const ax_keys *k = &b->keys;
	uint64_t	end = i + PREFETCH_KEYS < k->n ? i + PREFETCH_KEYS : k->n;

	for (; b->fetched < end; b->fetched++)
	{
		ax_prefetch(k->p[b->fetched]);
		ax_prefetch(k->p[b->fetched] + ax_key_len(k, b->fetched) - 1);
	}
}

/* First entry in [i, n) whose byte at off differs from c. */
static uint64_t
group_end(const rt_build *b, uint64_t i, uint64_t n, uint32_t off, uint8_t c)
{
	uint64_t	step = 1,
				lo = i,
				hi;

	/* gallop, then bisect: groups are one entry or millions */
	while (lo + step < n && build_key(b, lo + step)[off] == c)
	{
		lo += step;
		step *= 2;
	}
	hi = lo + step < n ? lo + step : n;
	while (lo + 1 < hi)
	{
		uint64_t	mid = lo + (hi - lo) / 2;

		if (build_key(b, mid)[off] == c)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

int
rt_build_children(rt_build *b, uint64_t first, uint64_t end, uint32_t off, int depth,
				  rt_children *out)
{
	ax_ctx	   *cx = b->cx;
	ax_store   *s = b->s;
	rt_ent		e[RT_LEAF_MAX];
	int			nc = 0;

	for (uint64_t i = first; i < end;)
	{
		uint8_t		c;
		uint64_t	j;
		rt_ref		r;

		prefetch_keys(b, i);
		c = build_key(b, i)[off];
		j = group_end(b, i, end, off, c);

		if (j - i == 1 && build_len(b, i) - (off + 1) == AX_TID_BYTES && !b->sample)
		{
			r = RT_EMBED_REF(ax_tid_at(build_key(b, i) + build_len(b, i)));
			AX_COUNT(cx, s, embedded, 1);
		}
		else
		{
			int			n = 0;

			if (j - i <= RT_LEAF_MAX)
			{
				/* take in the groups that follow while they fit too */
				n = (int) (j - i);
				get_entries(b, i, n, e);
				if (!rt_leaf_fits(e, (uint64_t) n, off))
					n = 0;
				while (n && j < end && n < b->fill)
				{
					uint64_t	k;

					if (build_len(b, j) - (off + 1) == AX_TID_BYTES && !b->sample)
						break;
					k = group_end(b, j, end, off, build_key(b, j)[off]);
					if (k - i > (uint64_t) b->fill)
						break;
					get_entries(b, j, (int) (k - j), e + n);
					if (!rt_leaf_fits(e, k - i, off))
						break;
					n = (int) (k - i);
					j = k;
				}
			}
			if (n)
				r = rt_leaf_new(cx, s, e, n, off, b->load ? n : rt_leaf_stepcap(n + 1), false);
			else
				r = rt_build_node(b, i, j - i, off + 1, depth + 1);
		}
		if (r && b->breath && j >= b->breath)
		{
			b->breath = j + AX_BREATH_KEYS;
			b->gone = !ax_breathe(cx, s);
		}
		if (b->gone)
			return 0;
		if (!r)
		{
			for (int k = 0; k < nc; k++)
				rt_free_private(cx, s, out->r[k]);
			return 0;
		}
		out->r[nc] = r;
		out->lo[nc++] = c;
		i = j;
	}
	return nc;
}

rt_ref
rt_build_node(rt_build *b, uint64_t first, uint64_t n, uint32_t off, int depth)
{
	ax_ctx	   *cx = b->cx;
	ax_store   *s = b->s;
	const uint64_t end = first + n;
	const uint8_t *a = build_key(b, first),
			   *z = build_key(b, end - 1);
	uint32_t	dd = off;
	uint32_t	alen = build_len(b, first),
				zlen = build_len(b, end - 1);
	uint32_t	max = alen < zlen ? alen : zlen;
	rt_children below;
	int			nc;
	unsigned	kind;
	rt_hdr    *h;

	if (depth > RT_BUILD_DEPTH)
	{
		b->deep = true;
		return 0;
	}
	if (b->load && (uint32_t) depth + 1 > ld(&s->height))
		st(&s->height, (uint32_t) depth + 1);
	while (dd + 8 <= max && memcmp(a + dd, z + dd, 8) == 0)
		dd += 8;
	while (dd < max && a[dd] == z[dd])
		dd++;
	AX_ENSURE(ax_body(cx), dd < max);	/* prefix-free and rising */

	nc = rt_build_children(b, first, end, dd, depth, &below);
	if (nc == 0)
		return 0;
	kind = nc <= 4 ? RT_N4 : nc <= 16 ? RT_N16 : nc <= 48 ? RT_N48 : RT_N256;
	h = rt_node_new(cx, s, kind, a + off, dd - off, false);
	if (!h)
	{
		for (int i = 0; i < nc; i++)
			rt_free_private(cx, s, below.r[i]);
		return 0;
	}
	for (int i = 0; i < nc; i++)
	{
		const uint8_t lo = below.lo[i];
		int			hi = lo;

		if (RT_TAG(below.r[i]) == RT_LEAF)
			hi = i + 1 < nc ? below.lo[i + 1] - 1 : 255;
		rt_node_add(h, lo, lo, hi, below.r[i]);
	}
	return rt_node_ref(h);
}

/*
 * Epoch: inside; now and then another one (ax_breathe).  On AX_STALE outside.
 * Latches: takes the root's word for the publication; none on return.
 * Returns: unless AX_OK, nothing was loaded and all is given back, or gone with the store.
 */
ax_status
rt_load(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill)
{
	const uint64_t n = keys->n;
	rt_build	b = {
		.cx = cx,.s = s,.keys = *keys,.fill = rt_leaf_fill(fill),.load = true,
		.sample = fill == 0,.breath = AX_BREATH_KEYS
	};
	rt_ref		r = 0;
	uint64_t	w;
	ax_status	x;

	if (ldref(&s->root) != 0)
		return AX_EXISTS;
	if (n == 0)
		return AX_OK;
	if (b.sample)
		b.fill = RT_LEAF_MAX;
	if (n <= RT_LEAF_MAX)
	{
		rt_ent		e[RT_LEAF_MAX];

		get_entries(&b, 0, (int) n, e);
		if (rt_leaf_fits(e, n, 0))
		{
			r = rt_leaf_new(cx, s, e, (int) n, 0, (int) n, false);
			if (!r)
				return AX_NOMEM;
		}
	}
	if (!r)
		r = rt_build_node(&b, 0, n, 0, 0);
	if (!r)
		return b.gone ? AX_STALE : b.deep ? AX_EXISTS : AX_NOMEM;
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
