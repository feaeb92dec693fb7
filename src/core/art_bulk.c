/*
 * art_bulk.c
 *	  Sorted entries to a private subtree, bottom-up: the bulk load, and the
 *	  split of a leaf whose entries share the slot's byte.
 *
 * The order of the entries is trusted; nothing is latched, since nobody else
 * sees a node before one store publishes the whole.
 */
#include "art_olc.h"

/*
 * Deeper than this no load builds: stack is finite.  Its caller then merges, as into a
 * tree that is not empty.  More than the entries of a leaf and those merged into it
 * can nest, for there is no such way out for them.
 */
#define ART_BUILD_DEPTH 136

/* Keys fetched into the cache ahead of the node that they make. */
#define PREFETCH_KEYS 400

/* Free an unpublished subtree. */
void
art_free_private(ax_ctx *cx, ax_store *s, art_ref r)
{
	if (ART_TAG(r) == ART_LEAF)
		art_leaf_unalloc(cx, s, ART_PTR(r));
	else if (ART_TAG(r) == ART_EMBED)
		AX_COUNT(cx, s, embedded, -1);
	else if (ART_IS_NODE(r))
	{
		art_hdr    *h = ART_PTR(r);

		for (int c = 0; c < 256;)
		{
			int			at,
						lo,
						hi = c;
			art_ref		k = art_find(h, h->kind, (uint8_t) c, &at);

			if (k)
			{
				art_node_range(h, (uint8_t) c, &lo, &hi);
				art_free_private(cx, s, k);
			}
			c = hi + 1;
		}
		art_node_unalloc(cx, s, h);
	}
}

static inline const uint8_t *
view_key(const art_view *v, uint64_t i)
{
	return v->e ? v->e[i].p : v->keys[i];
}

static inline uint32_t
view_len(const art_view *v, uint64_t i)
{
	return v->e ? v->e[i].len : v->lens ? v->lens[i] : v->len;
}

static inline void
view_get(const art_view *v, uint64_t i, int n, art_ent *out)
{
	for (int k = 0; k < n; k++, i++)
	{
		if (v->e)
			out[k] = v->e[i];
		else
		{
			out[k].p = v->keys[i];
			out[k].len = view_len(v, i);
			out[k].fp = art_fp(out[k].p, out[k].len - AX_TID_BYTES);
		}
	}
}

/* First entry in [i, n) whose byte at off differs from c. */
static uint64_t
group_end(const art_view *v, uint64_t i, uint64_t n, uint32_t off, uint8_t c)
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
 * Sorted keys [first, end), which are equal before off, to what a node that
 * tells them apart by the byte at off has for children: leaves of byte ranges,
 * and a node where one byte value does not fit in a leaf.  Returns how many;
 * lo: the byte that each begins with.  0: no memory (or *deep), all given back.
 */
int
art_build_children(ax_ctx *cx, ax_store *s, const art_view *v, uint64_t first, uint64_t end,
				   uint32_t off, int fill, bool exact_caps, int depth, bool *deep,
				   art_ref *child, uint8_t *lo)
{
	art_ent		e[ART_LEAF_MAX];
	int			nc = 0;

	for (uint64_t i = first; i < end;)
	{
		uint8_t		c = view_key(v, i)[off];
		uint64_t	j = group_end(v, i, end, off, c);
		art_ref		r;

		if (j - i == 1 && view_len(v, i) - (off + 1) == AX_TID_BYTES && !v->sample)
		{
			r = ART_EMBED_REF(ax_tid_at(view_key(v, i) + view_len(v, i)));
			AX_COUNT(cx, s, embedded, 1);
		}
		else
		{
			int			n = 0;

			if (j - i <= ART_LEAF_MAX)
			{
				/* take in the groups that follow while they fit too */
				n = (int) (j - i);
				view_get(v, i, n, e);
				if (!art_leaf_fits(e, (uint64_t) n, off))
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
					if (!art_leaf_fits(e, k - i, off))
						break;
					n = (int) (k - i);
					j = k;
				}
			}
			if (n)
				r = art_leaf_new(cx, s, e, n, off,
								 exact_caps ? n : art_leaf_stepcap(n + 1), false);
			else
				r = art_build_node(cx, s, v, i, j - i, off + 1, fill, exact_caps, depth + 1, deep);
		}
		if (!r)
		{
			for (int k = 0; k < nc; k++)
				art_free_private(cx, s, child[k]);
			return 0;
		}
		child[nc] = r;
		lo[nc++] = c;
		i = j;
	}
	return nc;
}

art_ref
art_build_node(ax_ctx *cx, ax_store *s, const art_view *v, uint64_t first, uint64_t count,
			   uint32_t off, int fill, bool exact_caps, int depth, bool *deep)
{
	const uint64_t end = first + count;
	const uint8_t *a = view_key(v, first),
			   *z = view_key(v, end - 1);
	uint32_t	dd = off;
	uint32_t	alen = view_len(v, first),
				zlen = view_len(v, end - 1);
	uint32_t	max = alen < zlen ? alen : zlen;
	art_ref		child[256];
	uint8_t		lo[256];
	int			nc;
	unsigned	kind;
	art_hdr    *h;

	if (depth > ART_BUILD_DEPTH)
	{
		*deep = true;
		return 0;
	}
	/* sorted keys lie anywhere in memory: fetch a node's worth at once */
	if (v->keys && count <= PREFETCH_KEYS)
		for (uint64_t i = first; i < end; i++)
			ax_prefetch(v->keys[i]);
	if (exact_caps && (uint32_t) depth + 1 > ld(&s->height))
		st(&s->height, (uint32_t) depth + 1);	/* of a load: depth is the tree's */
	while (dd + 8 <= max && memcmp(a + dd, z + dd, 8) == 0)
		dd += 8;
	while (dd < max && a[dd] == z[dd])
		dd++;
	AX_ENSURE(ax_body(cx), dd < max);	/* prefix-free and rising */

	nc = art_build_children(cx, s, v, first, end, dd, fill, exact_caps, depth, deep, child, lo);
	if (nc == 0)
		return 0;
	kind = nc <= 4 ? ART_N4 : nc <= 16 ? ART_N16 : nc <= 48 ? ART_N48 : ART_N256;
	h = art_node_new(cx, s, kind, a + off, dd - off, false);
	if (!h)
	{
		for (int i = 0; i < nc; i++)
			art_free_private(cx, s, child[i]);
		return 0;
	}
	for (int i = 0; i < nc; i++)
	{
		int			hi = lo[i];

		if (ART_TAG(child[i]) == ART_LEAF)
			hi = i + 1 < nc ? lo[i + 1] - 1 : 255;
		art_node_add(h, lo[i], lo[i], hi, child[i]);
	}
	return art_node_ref(h);
}

/*
 * Bulk load of a whole run into an empty tree.  One epoch from beginning to
 * end: what others retire meanwhile waits for it.
 */
ax_status
art_load(ax_ctx *cx, ax_store *s, const uint8_t *const *keys, const uint32_t *lens,
		 uint32_t len, uint64_t n, int fill)
{
	art_view	v = {.keys = keys, .lens = lens, .len = len};
	bool		deep = false;
	art_ref		r = 0;
	uint64_t	w;
	ax_status	x;

	if (ldref(&s->root) != 0)
		return AX_EXISTS;
	if (n == 0)
		return AX_OK;
	v.sample = fill == 0;
	fill = v.sample ? ART_LEAF_MAX : fill * ART_LEAF_MAX / 100;
	if (fill < 1)
		fill = 1;
	if (fill > ART_LEAF_MAX)
		fill = ART_LEAF_MAX;
	if (n <= ART_LEAF_MAX)
	{
		art_ent		e[ART_LEAF_MAX];

		view_get(&v, 0, (int) n, e);
		if (art_leaf_fits(e, n, 0))
		{
			r = art_leaf_new(cx, s, e, (int) n, 0, (int) n, false);
			if (!r)
				return AX_NOMEM;
		}
	}
	if (!r)
		r = art_build_node(cx, s, &v, 0, n, 0, fill, true, 0, &deep);
	if (!r)
		return deep ? AX_EXISTS : AX_NOMEM;
	x = ax_word_lock(cx, &s->root_word, &w);
	if (x != AX_OK || ldref(&s->root) != 0)
	{
		if (x == AX_OK)
		{
			ax_word_unlock(cx, &s->root_word, false);
			x = AX_EXISTS;
		}
		art_free_private(cx, s, r);
		return x;
	}
	stref(&s->root, r);
	ax_word_unlock(cx, &s->root_word, true);
	AX_COUNT(cx, s, entries, (int64_t) n);
	return AX_OK;
}
