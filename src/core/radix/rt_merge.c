/*
 * rt_merge.c
 *	  Inserts sorted keys into a tree that already has some.
 *
 * All keys of one leaf go in with one descent, one copy and one publication.
 * So do all keys below one node of which nothing but the TID is left.
 *
 * A build inserts every run but its first in this way.  Each process of a
 * parallel load inserts its share so, too.  There thousands of keys may belong
 * to one leaf, which was put there only to mark their place.
 *
 * src/core/radix/README.md: The tree
 */
#include "rt_olc.h"

#define MERGE_KEYS 96			/* new keys a leaf takes in one go */
#define SHARE_KEYS 2048			/* a share's call ends behind so many */

/* Does key i begin with the first one's d bytes, and go on in lo..hi? */
static inline bool
belongs(const ax_keys *in, uint64_t i, uint32_t d, int lo, int hi)
{
	const uint8_t *k = in->p[i];

	return ax_key_len(in, i) > d && memcmp(k, in->p[0], d) == 0 && k[d] >= lo && k[d] <= hi;
}

/* How many keys do. */
static uint64_t
keys_of_slot(const ax_keys *in, uint32_t d, int lo, int hi)
{
	uint64_t	step = 1,
				a = 0,			/* the last one known to */
				z;

	while (a + step < in->n && belongs(in, a + step, d, lo, hi))
	{
		a += step;
		step *= 2;
	}
	z = a + step < in->n ? a + step : in->n;
	while (a + 1 < z)
	{
		uint64_t	mid = a + (z - a) / 2;

		if (belongs(in, mid, d, lo, hi))
			a = mid;
		else
			z = mid;
	}
	return z;
}

/*
 * Are all n entries, as they are from depth d on, among the first m keys?
 */
static bool
all_among(const rt_ent *have, int n, const ax_keys *in, uint64_t m, uint32_t d)
{
	for (int i = 0; i < n; i++)
	{
		uint64_t	a = 0,
					z = m;
		bool		found = false;

		while (a < z && !found)
		{
			uint64_t	mid = a + (z - a) / 2;
			uint32_t	l = ax_key_len(in, mid) - d;
			int			c = memcmp(in->p[mid] + d, have[i].p, l < have[i].len ? l : have[i].len);

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
 * The first m keys, all of the cursor's slot, built as a load builds them, in place of
 * a leaf whose entries they include.  Returns how many pieces; 0: no memory, or b->deep.
 */
static int
share_pieces(rt_build *b, const rt_cursor *c, rt_piece *p)
{
	const uint64_t m = b->keys.n;
	rt_children below;
	int			np;

	if (!c->P.hdr)
	{
		p->lo = 0;
		p->r = rt_build_node(b, 0, m, 0, 0);
		return p->r != 0;
	}
	np = rt_build_children(b, 0, m, c->d, (int) c->level - 1, &below);
	for (int i = 0; i < np; i++)
	{
		p[i].lo = below.lo[i];
		p[i].r = below.r[i];
	}
	return np;
}

/*
 * Nothing hangs in P where keys[0] goes, and there it would be but its TID.  It
 * goes in, with those that follow it into other empty slots of P, at once.  Then
 * the node has room for all of them, or a bigger copy.
 *
 * Latches: none on entry and on return; takes P's, and G's for a copy.
 */
static ax_status
embed_run(ax_ctx *cx, ax_store *s, const ax_keys *in, rt_cursor *c, uint64_t *done)
{
	const uint8_t *const *keys = in->p;
	const uint8_t *key = keys[0];
	rt_change	ch = {.site = AX_SITE_NODE_INSERT, .node = true};
	rt_hdr    *h = c->P.hdr;
	uint32_t	d = c->P.d;
	unsigned	kind;
	int			m,
				at,
				total;
	ax_status	x;

	for (m = 1; (uint64_t) m < in->n && m < 256; m++)
	{
		if (ax_key_len(in, (uint64_t) m) != d + 1 + AX_TID_BYTES ||
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
 * Old entries and the first m keys from depth d on, each in order, to e; what is there
 * already is not there twice.  Returns how many; *added: of these keys.
 */
static int
merge_entries(const rt_ent *have, int old, const ax_keys *in, int m, uint32_t d, rt_ent *e,
			  uint64_t *added)
{
	int			k = 0;

	for (int i = 0, j = 0; i < old || j < m;)
	{
		int			cmp = j < m ? 1 : -1;
		const uint8_t *rest = NULL;
		uint32_t	len = 0;

		if (j < m)
		{
			rest = in->p[j] + d;
			len = ax_key_len(in, (uint64_t) j) - d;
		}
		if (i < old && j < m)
			cmp = memcmp(have[i].p, rest, have[i].len < len ? have[i].len : len);
		if (cmp > 0)
		{
			e[k++] = (rt_ent) {rest, len, rt_fp(in->p[j], d + len - AX_TID_BYTES)};
			++*added;
			j++;
		}
		else if (cmp < 0)
			e[k++] = have[i++];
		else
			j++;
	}
	return k;
}

/* Entries in the place of the cursor's leaf: another one, or several, or a node. */
static int
pieces_of(ax_ctx *cx, ax_store *s, const rt_cursor *c, const rt_ent *e, int n, rt_piece *p)
{
	int			leaves = (n + RT_LEAF_MAX - 4) / (RT_LEAF_MAX - 3);

	if (c->P.hdr && e[0].p[0] != e[n - 1].p[0] && !rt_leaf_fits(e, (uint64_t) n, 0))
		return rt_cut(cx, s, e, n, (n + leaves - 1) / leaves + 2, p);
	return rt_one_piece(&(rt_build) {.cx = cx,.s = s,.e = e,.fill = RT_LEAF_MAX - 3}, n,
						c->P.hdr != NULL, rt_leaf_stepcap(n), p);
}

/*
 * One descent for the first key and those that follow it into the same leaf, or into
 * the same node.
 * *done: how many are in the tree now, *added: how many were not before.
 * AX_STALE: start over.  AX_OK with *done == 0: the key wants the
 * ordinary insert (no leaf where it goes, or nothing follows it).  fill: of a
 * share of a load, entries a leaf should get; 0: this is none.
 *
 * Latches: none on entry and on return.
 */
static ax_status
merge_pass(ax_ctx *cx, ax_store *s, const ax_keys *in, int fill, uint64_t *done, uint64_t *added)
{
	const uint8_t *key = in->p[0];
	rt_build	b = {.cx = cx,.s = s,.fill = fill,.load = true};
	rt_cursor	c;
	int			lo = 0,
				hi = 255,
				m,
				old,
				np = 0;
	uint64_t	all = 0,		/* of a share: keys that are the leaf's */
				fresh = 0;
	ax_status	x;
	uint8_t		buf[RT_VAR_BYTES];
	rt_ent		have[RT_LEAF_MAX];
	rt_ent		e[RT_LEAF_MAX + MERGE_KEYS];
	rt_piece	p[256];

	*done = *added = 0;
	x = rt_descend(cx, s, &c, key, ax_key_len(in, 0), AX_OPTIMISTIC);
	if (x != AX_OK)
		return x == RT_PARTS ? AX_OK : x;
	if (c.ref == 0 && c.P.hdr && ax_key_len(in, 0) == c.P.d + 1 + AX_TID_BYTES)
	{
		x = embed_run(cx, s, in, &c, done);
		*added = *done;
		return x;
	}
	if (RT_TAG(c.ref) != RT_LEAF)
		return AX_OK;

	/* the keys that go to this leaf: same path, byte within its range */
	rt_prefetch_leaf(c.ref);
	if (c.P.hdr)
		rt_node_range(c.P.hdr, key[c.d], &lo, &hi);
	if (!ax_guard_valid(&c.P.g))
		return AX_STALE;
	for (m = 1; (uint64_t) m < in->n && m < MERGE_KEYS; m++)
		if (!belongs(in, (uint64_t) m, c.d, lo, hi))
			break;
	if (m == 1)
		return AX_OK;
	if (fill)
		all = m < MERGE_KEYS ? (uint64_t) m : keys_of_slot(in, c.d, lo, hi);
	/* a root that stays a leaf is no node with one child */
	if (!c.P.hdr && all <= RT_LEAF_MAX)
		all = 0;

	x = rt_open_leaf(cx, &c, AX_OPTIMISTIC);
	if (x != AX_OK)
		return x;
	old = rt_leaf_ents(RT_PTR(c.ref), have, buf);
	if (!ax_guard_valid(&c.N))
		return AX_STALE;
	if (all > 0 && all_among(have, old, in, all, c.d))
	{
		b.keys = ax_keys_from(in, 0, all);
		np = share_pieces(&b, &c, p);
		fresh = all - (uint64_t) old;
	}
	if (np == 0 && (fresh == 0 || b.deep))
	{
		all = (uint64_t) m;
		fresh = 0;
		rt_sort_ents(have, old);
		m = merge_entries(have, old, in, m, c.d, e, &fresh);
		if (fresh > 0)
			np = pieces_of(cx, s, &c, e, m, p);
	}
	x = np > 0 ? rt_publish(cx, s, &c, key, p, np, 0) : fresh > 0 ? AX_NOMEM : AX_OK;
	if (x == AX_OK)
	{
		*done = all;
		*added = fresh;
	}
	return x;
}

/*
 * Sorted keys, leaf after leaf.  fill: see merge_pass; a share of a load ends
 * somewhere behind SHARE_KEYS.
 */
static ax_status
merge_keys(ax_ctx *cx, ax_store *s, const ax_keys *in, int fill, uint64_t *done, uint64_t *added)
{
	const uint64_t n = in->n;
	uint64_t	ahead = 0;
	uint64_t	stop = fill && n > SHARE_KEYS ? SHARE_KEYS : n;
	uint64_t	inserted = UINT64_MAX;

	*done = *added = 0;
	for (int tries = 0; *done < stop;)
	{
		ax_keys		rest = ax_keys_from(in, *done, n - *done);
		uint64_t	one;
		uint64_t	new;
		bool		again;
		ax_status	x;

		/* sorted keys lie anywhere in memory */
		if (ahead < *done)
			ahead = *done;
		for (; ahead < n && ahead < *done + 2 * MERGE_KEYS; ahead++)
			ax_prefetch(in->p[ahead]);
		x = merge_pass(cx, s, &rest, fill, &one, &new);
		again = x == AX_STALE;
		if (again && !ax_pessimistic(tries))
		{
			(void) ax_start_over(cx, s, x, &tries);
			continue;
		}
		if (x != AX_OK && !again)
		{
			/* it is in, and counted, though those that follow are not */
			if (inserted == *done)
				(*done)++;
			return x;
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
			x = ax_inner(s)->insert(cx, s, rest.p[0], ax_key_len(&rest, 0));
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
rt_insert_sorted(ax_ctx *cx, ax_store *s, const ax_keys *keys, uint64_t *done,
				 uint64_t *added)
{
	return merge_keys(cx, s, keys, 0, done, added);
}

ax_status
rt_load_share(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill, uint64_t *done,
			  uint64_t *added)
{
	return merge_keys(cx, s, keys, rt_leaf_fill(fill), done, added);
}
