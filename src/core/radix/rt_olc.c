/*
 * rt_olc.c
 *	  The adaptive radix tree under optimistic latch coupling: the protocol,
 *	  and insert.
 *
 * Protocol after Leis et al., "The ART of Practical Synchronization" (DaMoN
 * 2016), section 3, with these rules:
 *
 *	- every exit validates, "not found" too;
 *	- the parent is validated after the child's version was sampled;
 *	- a leaf whose place or range changes is latched or made obsolete, so an
 *	  inserter that latches it at the version it sampled, having validated the
 *	  parent in between, knows that the entry belongs there.  (A range that only
 *	  grows over values nobody covers needs no latch on the leaf: what belonged
 *	  there still does.)
 *	- memory is taken and copies are made before the first latch, from
 *	  validated data; under latches there are only stores.
 *
 * The writers of ROWEX are these, too; where its readers, who validate nothing,
 * could not bear what is done in place, they copy (rt_rowex.c).
 *
 * src/core/radix/README.md: The tree
 * src/core/radix/README.md: Differences from the papers
 */
#include "rt_olc.h"

/*
 * The kind of the copy that takes node h's place if it is to get another child at
 * byte c.  0: the child goes in as h is.
 */
static inline unsigned
kind_for_child(ax_store *s, rt_hdr *h, uint8_t c, rt_ref r)
{
	if (rt_rowex(s))
		return rt_rowex_copy_add(h, c, r);
	/* never a Node256: had it no place, the caller's snapshot is not valid */
	return h->kind != RT_N256 && ld(&h->count) >= rt_node_slots(h->kind) ? h->kind + 1u : 0;
}

/*
 * Where in the byte range of leaf L to split: e[0..*k) stay left of byte *sb.  Its
 * entries are e[0..n), sorted, the new key among them at index me.
 */
static void
choose_split(const rt_ent *e, int n, uint32_t d, int me, int *k, uint8_t *sb)
{
	int			best = -1,
				dist = n + 1;

	if (me == n - 1)
	{
		/*
		 * A new maximum: keys come in rising order.  Leave the rest together,
		 * as full as it is.
		 */
		int			i = me;

		while (e[i - 1].p[d] == e[me].p[d])
			i--;
		*k = i;
		*sb = e[i].p[d];
		return;
	}
	for (int i = 1; i < n; i++)
		if (e[i].p[d] != e[i - 1].p[d] && abs(2 * i - n) < dist)
		{
			dist = abs(2 * i - n);
			best = i;
		}
	*k = best;
	*sb = e[best].p[d];
}


/*
 * Cut the entries of a full leaf and a new one (e[me]), sorted, which differ
 * at the slot's byte: two halves as a rule.  The old leaf may stay, as the first.  0: no
 * memory.
 */
static int
cut_leaf(ax_ctx *cx, ax_store *s, const rt_ent *e, int n, int me, rt_ref old, rt_piece *p)
{
	int			k;
	uint8_t		sb;

	choose_split(e, n, 0, me, &k, &sb);
	p[0].lo = e[0].p[0];
	p[1].lo = sb;
	p[0].r = p[1].r = 0;
	if (k == n - 1 && me == n - 1)
	{
		/* the new entry alone beside the old leaf */
		p[0].r = old;
		p[1].r = rt_leaf_new(cx, s, e + me, 1, 0, 4, false);
		return p[1].r ? 2 : 0;
	}
	if (rt_leaf_fits(e, (uint64_t) k, 0) && rt_leaf_fits(e + k, (uint64_t) (n - k), 0))
	{
		p[0].r = rt_leaf_new(cx, s, e, k, 0, rt_leaf_stepcap(k + 1), false);
		p[1].r = p[0].r ? rt_leaf_new(cx, s, e + k, n - k, 0, rt_leaf_stepcap(n - k + 1), false) : 0;
		if (p[1].r)
			return 2;
		rt_drop_pieces(cx, s, p, 2, 0);
		return 0;
	}
	return rt_cut(cx, s, e, n, RT_LEAF_MAX, p);
}

/*
 * The leaf has no room in place: a bigger one, several of them, or a node
 * below.  Everything is built privately from a validated copy, then published.
 */
static ax_status
leaf_overflow(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
			  uint8_t fp)
{
	uint8_t		buf[RT_VAR_BYTES];
	rt_ent		e[RT_LEAF_MAX + 1];
	rt_piece	p[RT_LEAF_MAX + 1];
	rt_leaf   *l = RT_PTR(c->ref);
	const uint8_t *rest = key + c->d;
	rt_ref		kept = 0;
	int			n,
				me,
				np;

	/* entries count from the leaf's depth: e.p[0] is the byte there */
	n = rt_leaf_ents(l, e, buf);
	if (!ax_guard_valid(&c->N))
		return AX_STALE;
	e[n].p = rest;
	e[n].len = len - c->d;
	e[n].fp = fp;
	n++;
	rt_sort_ents(e, n);
	for (me = 0; e[me].p != rest; me++)
		;

	if (c->P.hdr && e[0].p[0] != e[n - 1].p[0] && !rt_leaf_fits(e, (uint64_t) n, 0))
	{
		np = cut_leaf(cx, s, e, n, me, c->ref, p);
		if (np > 0 && p[0].r == c->ref)
			kept = c->ref;
	}
	else
	{
		/* slots that are used up though free tell of removals: more will come */
		bool		worn = rt_rowex(s) && ld(&l->used) >= n;
		rt_build	b = {.cx = cx,.s = s,.e = e};

		/* keys that come in order leave full leaves behind */
		b.fill = me == n - 1 ? RT_LEAF_MAX : 17;
		np = rt_one_piece(&b, n, c->P.hdr != NULL, rt_leaf_stepcap(worn ? n + 4 : n), p);
	}
	if (np == 0)
		return AX_NOMEM;
	return rt_publish(cx, s, c, key, p, np, kept);
}

#define GREW AX_CHANGED			/* the tree has for the key: go on, or start over */

/* A leaf with the key, from depth d on, alone; 0: no memory. */
static rt_ref
leaf_of(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint32_t d, uint8_t fp)
{
	rt_ent		e = {key + d, len - d, fp};

	return rt_leaf_new(cx, s, &e, 1, 0, 4, false);
}

/*
 * Below a node where the key's byte is at depth d: its TID, if no more of it is left,
 * else a leaf.  0: no memory.
 */
static rt_ref
reference_child(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint32_t d, uint8_t fp)
{
	if (len - (d + 1) == AX_TID_BYTES)
		return RT_EMBED_REF(ax_tid_at(key + len));
	return leaf_of(cx, s, key, len, d, fp);
}

static inline uint8_t
leaf_separator(rt_hdr *h, int i)
{
	return h->kind == RT_N4 ? rt_n4_sep((rt_n4 *) h, i) : rt_n16_sep((rt_n16 *) h, i);
}

/* A full leaf is better left alone: it would split at once. */
static inline bool
is_full(rt_leaf *l, uint32_t len, bool append)
{
	return !rt_leaf_room(l, len, append) && l->cap >= RT_LEAF_MAX;
}

/*
 * No slot of P's node, a Node4 or Node16, covers the key's byte: widen the leaf
 * above the gap over it.  GREW, or AX_NOTFOUND: there is none.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
widen_sorted(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
			 const bool pess)
{
	rt_change	ch = {.site = AX_SITE_NODE_INSERT, .node = true};
	rt_hdr    *h = c->P.hdr;
	uint8_t		byte = key[c->P.d];
	uint32_t	left = len - c->P.d;
	rt_ref		beside;
	ax_status	x;
	int			n = ld(&h->count),
				at;

	(void) rt_find(h, h->kind, byte, &at);
	/* a hole (ROWEX) takes a leaf where it is */
	if (at + 1 >= n || at + 1 >= rt_node_slots(h->kind) || rt_rowex_hole(s, h, at))
		return AX_NOTFOUND;
	at++;
	beside = ldref(h->kind == RT_N4 ? &((rt_n4 *) h)->child[at] : &((rt_n16 *) h)->child[at]);
	if (RT_TAG(beside) != RT_LEAF)
		return AX_NOTFOUND;
	if (!ax_guard_valid(&c->P.g))
		return AX_STALE;
	if (rt_rowex(s))
	{
		/* separators do not move: a copy of the node has the range */
		if (is_full(RT_PTR(beside), left, true))
			return AX_NOTFOUND;
		rt_plan_copy(cx, s, c, &ch, h->kind, false);
	}
	else
	{
		x = ax_guard_open(cx, &c->N, &((rt_leaf *) RT_PTR(beside))->word, pess);
		if (x != AX_OK)
			return x;
		if (is_full(RT_PTR(beside), left, false))
		{
			ax_guard_close(cx, &c->N, false);
			return AX_NOTFOUND;
		}
		ch.below = true;
	}
	AX_POINT("art.widen.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	/* (where it is in the copy, which has no holes, another place) */
	rt_node_del(rt_changing(c, &ch), leaf_separator(h, at));
	rt_node_add(rt_changing(c, &ch), byte, 0, 0, beside);
	rt_finish(cx, s, c, key, &ch);
	return GREW;
}

/* Is there anything at byte x of a Node48 or Node256?  Racy. */
static inline bool
taken(rt_hdr *h, int x)
{
	return h->kind == RT_N48 ? ld(&((rt_n48 *) h)->index[x]) != 0 :
		ldref(&((rt_n256 *) h)->child[x]) != 0;
}

/*
 * The same of a Node48 or Node256, where the leaf on either side may do; else *lo and
 * *hi are the ends of the gap.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
widen_indexed(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, int *lo, int *hi)
{
	rt_change	ch = {.site = AX_SITE_NODE_INSERT, .node = true};
	rt_hdr    *h = c->P.hdr;
	rt_ref		beside = 0;
	int			at = 0;

	while (*lo > 0 && !taken(h, *lo - 1))
		--*lo;
	while (*hi < 255 && !taken(h, *hi + 1))
		++*hi;
	if (*lo > 0)
		beside = rt_find(h, h->kind, (uint8_t) (*lo - 1), &at);
	if (RT_TAG(beside) != RT_LEAF && *hi < 255)
		beside = rt_find(h, h->kind, (uint8_t) (*hi + 1), &at);
	if (RT_TAG(beside) != RT_LEAF)
		return AX_NOTFOUND;

	/*
	 * The range only grows over bytes nobody covers: no need to latch the leaf (see
	 * the head of the file).
	 */
	AX_POINT("art.widen.before_lock");
	if (rt_begin(cx, s, c, &ch) != AX_OK)
		return AX_STALE;
	for (int x = *lo; x <= *hi; x++)
	{
		AX_POINT("art.rowex.range");
		/* release: ROWEX reads the slot behind it, which others may have stored */
		if (h->kind == RT_N48)
			atomic_store_explicit(&((rt_n48 *) h)->index[x], (uint8_t) (at + 1),
								  memory_order_release);
		else
			stref(&((rt_n256 *) h)->child[x], beside);
	}
	rt_finish(cx, s, c, key, &ch);
	return GREW;
}

/*
 * Hang a child at the key's byte in P's node, over all of its range if it is a leaf.
 * kind: of the copy that takes the node's place, 0: none; compiled for both.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
__attribute__((always_inline)) static inline ax_status
hang_child(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, const rt_slot *child,
		   const unsigned kind)
{
	const rt_ref r = child->r;
	const int	lo = child->lo,
				hi = child->hi;
	rt_change	ch = {.site = AX_SITE_NODE_INSERT, .node = true};
	uint8_t		byte = key[c->P.d];
	ax_status	x;

	(void) rt_made(&ch, r);
	ch.embedded = RT_TAG(r) == RT_EMBED;
	if (kind)
		rt_plan_copy(cx, s, c, &ch, kind, false);
	AX_POINT("art.child.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	/* in Node4/16 a fresh leaf covers up to the next separator */
	if (!kind && rt_rowex(s))
		rt_rowex_add(c->P.hdr, byte, lo, hi, r);
	else
		rt_node_add(rt_changing(c, &ch), byte, lo, hi, r);
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * No slot covers the key's byte in P's node.  Widen a neighbouring leaf over the
 * gap, or hang a new child.  GREW: the caller finds that leaf, in P or, under ROWEX,
 * in P's copy.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
insert_child(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
			 uint8_t fp, const bool pess)
{
	rt_hdr    *h = c->P.hdr;
	uint8_t		byte = key[c->P.d];
	int			lo = byte,
				hi = byte;
	unsigned	kind;
	rt_ref		r;
	rt_slot		child;
	ax_status	x;

	if (len - (c->P.d + 1) != AX_TID_BYTES)
	{
		x = h->kind <= RT_N16 ? widen_sorted(cx, s, c, key, len, pess) :
			widen_indexed(cx, s, c, key, &lo, &hi);
		if (x != AX_NOTFOUND)
			return x;
	}
	r = reference_child(cx, s, key, len, c->P.d, fp);
	AX_POINT("art.child.before_room");
	kind = kind_for_child(s, h, byte, r);
	child = (rt_slot) {r, (uint8_t) lo, (uint8_t) hi};
	return ax_unlikely(kind) ? hang_child(cx, s, c, key, &child, kind) :
		hang_child(cx, s, c, key, &child, 0);
}

/*
 * The key leaves the node that c->ref is (guard N) at byte m of its prefix.  In its
 * place comes a Node4 with the common part, over a copy with the rest, and a leaf.
 * Headers are immutable, so readers never see a prefix that moves.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
split_prefix(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
			 uint8_t fp)
{
	rt_change	ch = {.site = AX_SITE_SPLIT, .node = true, .below = true, .goes = c->ref};
	rt_hdr    *h = RT_PTR(c->ref);
	const uint8_t *prefix = rt_prefix(h);
	uint32_t	m = c->m;
	uint8_t		byte = key[c->d + m];
	rt_hdr    *top = rt_made_node(&ch, rt_node_new(cx, s, RT_N4, prefix, m, false));
	rt_hdr    *rest = rt_made_node(&ch, rt_node_new(cx, s, h->kind, prefix + m + 1,
													   h->plen - m - 1, false));
	rt_ref		r = rt_made(&ch, reference_child(cx, s, key, len, c->d + m, fp));
	ax_status	x;

	ch.embedded = RT_TAG(r) == RT_EMBED;
	AX_POINT("art.prefix.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	rt_fill_copy(rest, h);
	rt_node_add(top, prefix[m], 0, 0, rt_node_ref(rest));
	rt_node_add(top, byte, 0, 0, r);
	rt_slot_set(s, &c->P, key, rt_node_ref(top));
	AX_POINT("art.rowex.prefix");
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * The tree is empty.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
insert_root(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
			uint8_t fp)
{
	rt_change	ch = {.site = AX_SITE_NODE_INSERT, .node = true};
	rt_ref		r = rt_made(&ch, leaf_of(cx, s, key, len, 0, fp));
	ax_status	x;

	AX_POINT("art.root.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	stref(&s->root, r);
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * A TID is there: the same columns, so the same row, or a duplicate that needs a leaf.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
insert_beside_tid(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
				  uint8_t fp)
{
	rt_change	ch = {.site = AX_SITE_NODE_INSERT, .node = true, .embedded = -1};
	uint8_t		other[1 + AX_TID_BYTES];
	const uint8_t *rest = key + c->P.d;
	uint64_t	t = RT_EMBED_TID(c->ref);
	rt_ent		e[2];
	rt_ref		r;
	ax_status	x;

	if (t == ax_tid_at(key + len))
		return AX_EXISTS;
	other[0] = rest[0];
	ax_put_tid(other + 1, t);
	e[0] = (rt_ent) {other, sizeof(other), fp};
	e[1] = (rt_ent) {rest, sizeof(other), fp};
	r = rt_made(&ch, rt_leaf_new(cx, s, e, 2, 0, 4, false));
	AX_POINT("art.embed.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	rt_node_set(c->P.hdr, rest[0], r);
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * The key's leaf is there.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
__attribute__((always_inline)) static inline ax_status
insert_into_leaf(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
				 uint8_t fp, const ax_mode mode)
{
	rt_leaf   *l = RT_PTR(c->ref);
	const uint8_t *rest = key + c->d;
	ax_status	x = rt_open_target(cx, s, c, mode);

	if (x != AX_OK)
		return x;
	if (rt_leaf_find(l, rest, len - c->d, fp) >= 0)
		return ax_guard_valid(&c->N) ? AX_EXISTS : AX_STALE;
	if (rt_leaf_room(l, len - c->d, rt_rowex(s)))
	{
		rt_change	ch = {.site = AX_SITE_LEAF_INSERT, .below = true};

		AX_POINT("art.leaf.before_lock");
		if (rt_begin(cx, s, c, &ch) != AX_OK)
			return AX_STALE;
		(void) rt_leaf_put(l, rest, len - c->d, fp, rt_rowex(s));
		rt_finish(cx, s, c, key, &ch);
		return AX_OK;
	}
	if (mode == AX_OPTIMISTIC && ax_guard_shared(&c->N))
		ax_guard_close(cx, &c->N, false);	/* no latch while memory is taken */
	return leaf_overflow(cx, s, c, key, len, fp);
}

/*
 * One descent.  AX_STALE, or GREW: start over.
 *
 * Latches: none on entry and on return.
 */
__attribute__((always_inline)) static inline ax_status
insert_pass(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			const ax_mode mode)
{
	const bool	pess = mode == AX_PESSIMISTIC;
	rt_cursor	c;
	ax_status	x = rt_descend(cx, s, &c, key, len, mode);

	for (;;)
	{
		if (x == RT_PARTS)
			x = split_prefix(cx, s, &c, key, len, fp);
		else if (x == AX_OK && RT_TAG(c.ref) == RT_LEAF)
			x = insert_into_leaf(cx, s, &c, key, len, fp, mode);
		else if (x == AX_OK && c.ref != 0)
			x = insert_beside_tid(cx, s, &c, key, len, fp);
		else if (x == AX_OK)
			x = c.P.hdr ? insert_child(cx, s, &c, key, len, fp, pess) :
				insert_root(cx, s, &c, key, len, fp);
		if (x != GREW || rt_rowex(s))
			break;

		/*
		 * On from the node, unless it went meanwhile.  One that did not go is where
		 * it was.  A change of it validates what is above.
		 */
		AX_POINT("art.widened");
		x = ax_open(cx, &c.P.g, &c.P.hdr->word, mode);
		if (x == AX_OK)
			x = rt_look(&c, key, c.P.hdr->kind, mode);
		if (x == AX_OK)
			x = rt_go_down(cx, &c, key, len, mode);
	}
	rt_close(cx, &c, mode);
	/* a hint for the planner: the longest path met */
	if (ax_unlikely(c.level > ld(&s->height)))
		st(&s->height, c.level);
	return x;
}

static __attribute__((noinline, cold)) ax_status
insert_latched(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp)
{
	return insert_pass(cx, s, key, len, fp, AX_PESSIMISTIC);
}

/*
 * After a pass that ended with x, which is AX_STALE or GREW.  AX_STALE: an optimistic one
 * is next.  A function of its own, so that the first pass keeps its registers.
 *
 * Latches: none on entry and on return.
 */
static __attribute__((noinline, cold)) ax_status
insert_again(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			 ax_status x, int *tries)
{
	do
	{
		if (!ax_start_over(cx, s, x, tries))
			ax_map_unshare_all();
		if (!ax_pessimistic(*tries))
			return AX_STALE;
		x = insert_latched(cx, s, key, len, fp);
	} while (x == AX_STALE || x == GREW);
	return x;
}

/* Insert one key, TID included: optimistically, and after too many restarts with latches. */
static ax_status
rt_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = rt_fp(key, len - AX_TID_BYTES);
	int			tries = 0;
	ax_status	x;

	do
	{
		x = ax_pessimistic(0) ? insert_latched(cx, s, key, len, fp) :
			insert_pass(cx, s, key, len, fp, AX_OPTIMISTIC);
		if (ax_unlikely(x == AX_STALE || x == GREW))
			x = insert_again(cx, s, key, len, fp, x, &tries);
	} while (ax_unlikely(x == AX_STALE));
	if (x == AX_OK)
		AX_COUNT(cx, s, entries, 1);
	rt_heed_contention(cx, s, key, len);
	return x;
}

#define ENGINE(sync_name, how, ...) { \
	.structure = "art", \
	.sync = sync_name, \
	.kind = how, \
	.insert = rt_insert, \
	.remove = rt_remove, \
	.look_ahead = rt_look_ahead, \
	.load = rt_load, \
	.insert_sorted = rt_insert_sorted, \
	.load_share = rt_load_share, \
	.compact = rt_compact, \
	.check = rt_check, \
	.object_bytes = rt_object_bytes, \
	__VA_ARGS__ \
}

/* The readers under latch coupling. */
#define READERS .contains = rt_contains, .lookup = rt_lookup, .lookup_many = rt_lookup_many, .scan = rt_scan

const ax_engine ax_engine_art_olc = ENGINE("olc", AX_SYNC_OLC, READERS);
const ax_engine ax_engine_art_optiql = ENGINE("optiql", AX_SYNC_OPTIQL, READERS, .settle = rt_settle);
const ax_engine ax_engine_art_rowex =
	ENGINE("rowex", AX_SYNC_ROWEX, .open = rt_open_rowex, .contains = rt_rowex_contains,
		   .lookup = rt_rowex_lookup, .lookup_many = rt_rowex_lookup_many, .scan = rt_rowex_scan);
