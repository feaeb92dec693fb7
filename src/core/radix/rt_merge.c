/*
 * rt_merge.c
 *	  Sorted keys into a tree that has some already: all that belong to one leaf
 *	  go in with one descent, one copy and one publication, and so do those of
 *	  which nothing but the TID is left below one node.
 *
 * This is what a build does with every run but the first.  And the share that
 * one of several processes has in a load.  There all that go to one leaf may
 * be many thousands, and the leaf was only put in so that they find their
 * place.
 */
#include "rt_olc.h"

#define MERGE_KEYS 96			/* new keys a leaf takes in one go */
#define SHARE_KEYS 2048			/* a share's call ends behind so many */

/* How many of n rising keys begin with key's first d bytes and go on in lo..hi. */
static uint64_t
keys_of_slot(const uint8_t *const *keys, const uint32_t *lens, uint32_t len, uint64_t n,
			 uint32_t d, int lo, int hi)
{
	uint64_t	step = 1,
				a = 0,			/* the last one known to */
				z;

#define BELONGS(i) \
	((lens ? lens[i] : len) > d && memcmp(keys[i], keys[0], d) == 0 && \
	 keys[i][d] >= lo && keys[i][d] <= hi)

	while (a + step < n && BELONGS(a + step))
	{
		a += step;
		step *= 2;
	}
	z = a + step < n ? a + step : n;
	while (a + 1 < z)
	{
		uint64_t	mid = a + (z - a) / 2;

		if (BELONGS(mid))
			a = mid;
		else
			z = mid;
	}
	return z;
}

/*
 * Are all n entries, as they are from depth d on, among m rising keys?
 */
static bool
all_among(const rt_ent *have, int n, const uint8_t *const *keys, const uint32_t *lens,
		  uint32_t len, uint64_t m, uint32_t d)
{
	for (int i = 0; i < n; i++)
	{
		uint64_t	a = 0,
					z = m;
		bool		found = false;

		while (a < z && !found)
		{
			uint64_t	mid = a + (z - a) / 2;
			uint32_t	l = (lens ? lens[mid] : len) - d;
			int			c = memcmp(keys[mid] + d, have[i].p, l < have[i].len ? l : have[i].len);

			found = c == 0;
			if (c < 0)
				a = mid + 1;
			else
				z = mid;
		}
		if (!found)
			return false;
	}
	return true;
}

/*
 * All m keys of a slot, built as a load builds them, in place of a leaf whose
 * entries they include.  Returns how many pieces; 0: no memory, or *deep.
 */
static int
share_pieces(ax_ctx *cx, ax_store *s, const uint8_t *const *keys, const uint32_t *lens,
			 uint32_t len, uint64_t m, bool root, uint32_t d, int depth, int fill,
			 bool *deep, rt_piece *p)
{
	rt_view	v = {.keys = keys, .lens = lens, .len = len};
	rt_ref		child[256];
	uint8_t		lo[256];
	int			np;

	if (root)
	{
		p->lo = 0;
		p->r = rt_build_node(cx, s, &v, 0, m, 0, fill, true, 0, deep);
		return p->r != 0;
	}
	np = rt_build_children(cx, s, &v, 0, m, d, fill, true, depth, deep, child, lo);
	for (int i = 0; i < np; i++)
	{
		p[i].lo = lo[i];
		p[i].r = child[i];
	}
	return np;
}

/*
 * Nothing hangs in P where keys[0] goes, and there it would be but its TID: that one
 * and those that follow it into other empty slots of P, at once.  Then the node
 * has room for all of them, or a bigger copy.
 */
static ax_status
embed_run(ax_ctx *cx, ax_store *s, const uint8_t *const *keys, const uint32_t *lens,
		  uint32_t len, uint64_t n, rt_cursor *c, uint64_t *done)
{
	const uint8_t *key = keys[0];
	rt_change	ch = {.site = AX_SITE_NODE_INSERT, .node = true};
	rt_hdr    *h = c->P.hdr;
	uint32_t	d = c->P.d;
	unsigned	kind;
	int			m,
				at,
				total;
	ax_status	x;

	for (m = 1; (uint64_t) m < n && m < 256; m++)
	{
		if ((lens ? lens[m] : len) != d + 1 + AX_TID_BYTES ||
			keys[m][d] == keys[m - 1][d] || memcmp(keys[m], key, d) != 0 ||
			rt_find(h, h->kind, keys[m][d], &at) != 0)
			break;
	}
	/* a single one is nobody's business but the ordinary insert's */
	if (m == 1)
		return AX_OK;
	total = rt_node_children(h) + m;
	if (!ax_guard_valid(&c->P.g) || total > 256)
		return AX_STALE;
	kind = total <= 4 ? RT_N4 : total <= 16 ? RT_N16 : total <= 48 ? RT_N48 : RT_N256;
	/* the readers of ROWEX do not mind what appears in a Node256 */
	if (kind > h->kind || (rt_rowex(s) && h->kind != RT_N256))
		rt_plan_copy(cx, s, c, &ch, kind > h->kind ? kind : h->kind, false);
	ch.embedded = (int16_t) m;
	AX_POINT("art.run.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	for (int i = 0; i < m; i++)
	{
		int			b = keys[i][d];

		rt_node_add(rt_changing(c, &ch), (uint8_t) b, b, b,
					 RT_EMBED_REF(ax_tid_at(keys[i] + d + 1 + AX_TID_BYTES)));
	}
	rt_finish(cx, s, c, key, &ch);
	*done = (uint64_t) m;
	return AX_OK;
}

/*
 * One descent for keys[0] and those that follow it into the same leaf, or into the
 * same node.
 * *done: how many are in the tree now, *added: how many were not before.
 * AX_STALE: start over.  AX_OK with *done == 0: the key wants the
 * ordinary insert (no leaf where it goes, or nothing follows it).  fill: of a
 * share of a load, entries a leaf should get; 0: this is none.
 */
static ax_status
merge_pass(ax_ctx *cx, ax_store *s, const uint8_t *const *keys, const uint32_t *lens,
		   uint32_t len, uint64_t n, int fill, uint64_t *done, uint64_t *added)
{
	const uint8_t *key = keys[0];
	uint32_t	len0 = lens ? lens[0] : len;
	rt_cursor	c;
	uint32_t	d;
	int			lo = 0,
				hi = 255,
				m,
				old,
				k = 0;
	uint64_t	all = 0;
	ax_status	x;
	uint8_t		buf[RT_VAR_BYTES];
	rt_ent		have[RT_LEAF_MAX];
	rt_ent		e[RT_LEAF_MAX + MERGE_KEYS];
	rt_piece	p[256];
	int			np;

	*done = 0;
	*added = 0;
	x = rt_descend(cx, s, &c, key, len0, AX_OPTIMISTIC);
	if (x != AX_OK)
		return x == RT_PARTS ? AX_OK : x;
	if (c.ref == 0 && c.P.hdr && len0 == c.P.d + 1 + AX_TID_BYTES)
	{
		x = embed_run(cx, s, keys, lens, len, n, &c, done);
		*added = *done;
		return x;
	}
	if (RT_TAG(c.ref) != RT_LEAF)
		return AX_OK;

	/* the keys that go to this leaf: same path, byte within its range */
	d = c.d;
	rt_prefetch_leaf(c.ref);
	if (c.P.hdr)
		rt_node_range(c.P.hdr, key[d], &lo, &hi);
	if (!ax_guard_valid(&c.P.g))
		return AX_STALE;
	for (m = 1; (uint64_t) m < n && m < MERGE_KEYS; m++)
	{
		uint32_t	l = lens ? lens[m] : len;

		if (l <= d || memcmp(keys[m], key, d) != 0 || keys[m][d] < lo || keys[m][d] > hi)
			break;
	}
	if (m == 1)
		return AX_OK;
	if (fill)
		all = m < MERGE_KEYS ? (uint64_t) m : keys_of_slot(keys, lens, len, n, d, lo, hi);
	/* a root that stays a leaf is no node with one child */
	if (!c.P.hdr && all <= RT_LEAF_MAX)
		all = 0;

	x = rt_open_leaf(cx, &c, AX_OPTIMISTIC);
	if (x != AX_OK)
		return x;
	old = rt_leaf_ents(RT_PTR(c.ref), have, buf);
	if (!ax_guard_valid(&c.N))
		return AX_STALE;
	if (all > 0 && all_among(have, old, keys, lens, len, all, d))
	{
		bool		deep = false;

		np = share_pieces(cx, s, keys, lens, len, all, c.P.hdr == NULL, d,
						  (int) c.level - 1, fill,
						  &deep, p);
		if (np == 0 && !deep)
			return AX_NOMEM;
		if (np > 0)
		{
			x = rt_publish(cx, s, &c, key, p, np, 0);
			if (x == AX_OK)
			{
				*done = all;
				*added = all - (uint64_t) old;
			}
			return x;
		}
	}
	rt_sort_ents(have, old);

	/* merge; what is there already is not there twice */
	for (int i = 0, j = 0; i < old || j < m;)
	{
		rt_ent		y;
		int			cmp;

		if (j < m)
		{
			uint32_t	l = lens ? lens[j] : len;

			y.p = keys[j] + d;
			y.len = l - d;
			y.fp = 0;
			if (i < old)
			{
				uint32_t	q = have[i].len < y.len ? have[i].len : y.len;

				cmp = memcmp(have[i].p, y.p, q);
			}
			else
				cmp = 1;
			if (cmp == 0)
			{
				j++;
				continue;
			}
			if (cmp > 0)
			{
				y.fp = rt_fp(keys[j], l - AX_TID_BYTES);
				e[k++] = y;
				(*added)++;
				j++;
				continue;
			}
		}
		e[k++] = have[i++];
	}
	if (*added == 0)
	{
		*done = (uint64_t) m;
		return AX_OK;
	}

	if (c.P.hdr && e[0].p[0] != e[k - 1].p[0] && !rt_leaf_fits(e, (uint64_t) k, 0))
	{
		int			leaves = (k + RT_LEAF_MAX - 4) / (RT_LEAF_MAX - 3);

		np = rt_cut(cx, s, e, k, (k + leaves - 1) / leaves + 2, p);
	}
	else
		np = rt_one_piece(cx, s, e, k, c.P.hdr != NULL, rt_leaf_stepcap(k), RT_LEAF_MAX - 3, p);
	if (np == 0)
	{
		*added = 0;
		return AX_NOMEM;
	}
	x = rt_publish(cx, s, &c, key, p, np, 0);
	if (x == AX_OK)
		*done = (uint64_t) m;
	else
		*added = 0;
	return x;
}

/*
 * Sorted keys, leaf after leaf.  fill: see merge_pass; a share of a load ends
 * somewhere behind SHARE_KEYS.
 */
static ax_status
merge_keys(ax_ctx *cx, ax_store *s, const uint8_t *const *keys, const uint32_t *lens,
		   uint32_t len, uint64_t n, int fill, uint64_t *done, uint64_t *added)
{
	uint64_t	ahead = 0;
	uint64_t	stop = fill && n > SHARE_KEYS ? SHARE_KEYS : n;
	uint64_t	inserted = UINT64_MAX;

	*done = *added = 0;
	for (int tries = 0; *done < stop;)
	{
		uint64_t	one;
		uint64_t	new;
		bool		again = false;
		ax_status	x;

		/* sorted keys lie anywhere in memory */
		if (ahead < *done)
			ahead = *done;
		for (; ahead < n && ahead < *done + 2 * MERGE_KEYS; ahead++)
			ax_prefetch(keys[ahead]);
		x = merge_pass(cx, s, keys + *done, lens ? lens + *done : NULL, len,
					   n - *done, fill, &one, &new);

		if (x == AX_STALE)
		{
			again = true;
			x = AX_OK;
		}
		if (x != AX_OK)
		{
			/* it is in, and counted, though those that follow are not */
			if (inserted == *done)
				(*done)++;
			return x;
		}
		if (again && tries < AX_MAX_RESTARTS)
		{
			ax_restarted(cx, s, tries++);
			continue;
		}
		tries = 0;
		if (one > 0)
		{
			AX_COUNT(cx, s, entries, (int64_t) new);
			*added += new;
			*done += one;
			continue;
		}
		if (inserted != *done)
		{
			x = ax_inner(s)->insert(cx, s, keys[*done], lens ? lens[*done] : len);
			if (x != AX_OK && x != AX_EXISTS)
				return x;
			*added += x == AX_OK;
			inserted = *done;

			/* that made a leaf, perhaps, where all that follow go */
			if (fill && !again && *done + MERGE_KEYS < n)
				continue;
		}
		(*done)++;
	}
	return AX_OK;
}

ax_status
rt_insert_sorted(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
				 const uint32_t *lens, uint32_t len, uint64_t n,
				 uint64_t *done, uint64_t *added)
{
	return merge_keys(cx, s, keys, lens, len, n, 0, done, added);
}

/*
 * See rt_olc.h, ax_load_share.
 */
ax_status
rt_load_share(ax_ctx *cx, ax_store *s, const uint8_t *const *keys, const uint32_t *lens,
			  uint32_t len, uint64_t n, int fill, uint64_t *done, uint64_t *added)
{
	fill = fill * RT_LEAF_MAX / 100;
	if (fill < 1)
		fill = 1;
	if (fill > RT_LEAF_MAX)
		fill = RT_LEAF_MAX;
	return merge_keys(cx, s, keys, lens, len, n, fill, done, added);
}
