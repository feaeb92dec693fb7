/*
 * rt_tidy.c
 *	  Order after removals: empty nodes go, a lonely child takes its node's place,
 *	  nodes shrink.
 *
 * Giving memory back may need some (a smaller copy), from the reserve if need
 * be, and is simply not done when there is none.
 *
 * src/core/radix/README.md: The tree
 */
#include "rt_olc.h"

/* The only child of a node is a TID: as a leaf of one that begins at depth "from". */
static rt_ref
collapse_tid(ax_ctx *cx, ax_store *s, const rt_cursor *c, const uint8_t *key,
			 const rt_slot *only, uint32_t from)
{
	uint8_t		wide[RT_VAR_BYTES / 4];
	uint8_t		tail[16];
	uint32_t	d = c->P.d;
	uint32_t	extra = d - from;
	uint32_t	n = d + 1 < 16 ? d + 1 : 16;
	uint64_t	tid = RT_EMBED_TID(only->r);
	rt_ent		e = {wide, extra + 1 + AX_TID_BYTES, 0};

	if (e.len > sizeof(wide))
		return 0;
	memcpy(tail, key + d + 1 - n, n - 1);
	tail[n - 1] = only->lo;
	e.fp = rt_fp(tail, n);
	memcpy(wide, key + from, extra);
	wide[extra] = only->lo;
	ax_put_tid(wide + extra + 1, tid);
	return rt_leaf_new(cx, s, &e, 1, 0, 4, true);
}

/* In place of a leaf (c->N): one whose entries have the bytes from depth "from" on. */
static rt_ref
collapse_leaf(ax_ctx *cx, ax_store *s, const rt_cursor *c, const uint8_t *key, uint8_t fp,
			  rt_leaf *l, uint32_t from)
{
	uint8_t		buf[RT_VAR_BYTES];
	uint8_t		wide[RT_VAR_BYTES];
	rt_ent		e[RT_LEAF_MAX];
	uint32_t	extra = c->P.d - from,
				used = 0;
	int			n = rt_leaf_ents(l, e, buf);
	bool		had = rt_leaf_has_fp(l) || (l->flags & RT_F_ONE);

	if (!ax_guard_valid(&c->P.g) || !ax_guard_valid(&c->N) || n == 0)
		return 0;
	for (int i = 0; i < n; i++)
	{
		if (used + extra + e[i].len > RT_VAR_BYTES)
			return 0;
		memcpy(wide + used, key + from, extra);
		memcpy(wide + used + extra, e[i].p, e[i].len);
		e[i].p = wide + used;
		e[i].len += extra;
		used += e[i].len;
		/* within the TID all share the columns of the key that went */
		if (!had)
			e[i].fp = fp;
	}
	if (!rt_leaf_fits(e, (uint64_t) n, 0))
		return 0;
	return rt_leaf_new(cx, s, e, n, 0, rt_leaf_stepcap(n + 1), true);
}

/* In place of a node: an empty one with the prefixes of both. */
static rt_ref
collapse_node(ax_ctx *cx, ax_store *s, rt_hdr *h, uint8_t byte, rt_hdr *below)
{
	uint32_t	plen = h->plen + 1 + below->plen;
	rt_hdr    *r;
	uint8_t    *p;

	if (plen > 64 * 1024)
		return 0;
	r = ax_alloc(cx, s, rt_node_size(below->kind, plen), true);
	if (!r)
		return 0;
	memset(r, 0, rt_node_base(below->kind));
	atomic_init(&r->word, AX_WORD_INIT);
	r->kind = below->kind;
	r->plen = plen;
	p = rt_prefix(r);
	memcpy(p, rt_prefix(h), h->plen);
	p[h->plen] = byte;
	memcpy(p + h->plen + 1, rt_prefix(below), below->plen);
	rt_count_node(cx, s, r->kind, 1);
	return rt_node_ref(r);
}

/*
 * P's node has one child left, in bytes of its own: ch->put is what its parent G can hold
 * in its place, 0: leave it as it is.  The child goes with the node, its guard, c->N, open
 * unless it is a TID.
 *
 * Latches: on entry those of the cursor; pessimistically the child's, too, on
 * return.
 */
static ax_status
collapse(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint8_t fp,
		 const ax_mode mode, rt_change *ch)
{
	rt_slot	only[256];
	uint32_t	from = c->G.hdr ? c->G.d : 0;
	rt_ref		child;
	rt_hdr    *h;
	ax_status	x;

	if (rt_node_slots_get(c->P.hdr, only) != 1 || !ax_guard_valid(&c->P.g))
		return AX_OK;
	child = only[0].r;
	h = RT_PTR(child);
	if (RT_TAG(child) == RT_EMBED)
	{
		ch->embedded = -1;
		ch->put = collapse_tid(cx, s, c, key, only, from);
		return AX_OK;
	}
	if (RT_IS_NODE(child) && h->kind > RT_N16)
		return AX_OK;
	/* the latch word is the first of either */
	x = ax_open(cx, &c->N, &h->word, mode);
	if (x != AX_OK)
		return x;
	ch->below = true;
	ch->goes = child;
	ch->put = RT_IS_NODE(child) ? collapse_node(cx, s, c->P.hdr, only[0].lo, h) :
		collapse_leaf(cx, s, c, key, fp, RT_PTR(child), from);
	return AX_OK;
}

/*
 * P's node is empty: it goes.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
drop_node(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, bool *more)
{
	rt_change	ch = {.site = AX_SITE_NODE_DELETE, .replace = true};
	ax_status	x;

	AX_POINT("art.empty.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	*more = c->G.hdr != NULL;
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * A node with one child: that takes its place.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
lift_child(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint8_t fp,
		   const ax_mode mode, bool *more)
{
	rt_change	ch = {.site = AX_SITE_NODE_DELETE, .replace = true};
	ax_status	x = collapse(cx, s, c, key, fp, mode, &ch);

	if (!ch.put)
		return x;
	(void) rt_made(&ch, ch.put);
	AX_POINT("art.collapse.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	if (RT_IS_NODE(ch.put))
		rt_fill_copy(RT_PTR(ch.put), RT_PTR(ch.goes));
	*more = c->G.hdr != NULL && rt_node_children(c->G.hdr) == 1;
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * A node has so few children that a smaller one has room for them.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
shrink_node(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key)
{
	rt_change	ch = {.site = AX_SITE_NODE_DELETE};
	ax_status	x;

	rt_plan_copy(cx, s, c, &ch, c->P.hdr->kind - 1u, true);
	AX_POINT("art.shrink.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x == AX_OK)
		rt_finish(cx, s, c, key, &ch);
	return x;
}

/*
 * After a removal: the deepest node on the key's path goes when it is empty,
 * is replaced by its only child, or shrinks.  Purely a matter of memory: gives
 * up rather than wait or fail.  *more: the node above may want the same.
 *
 * Latches: none on entry and on return.
 */
__attribute__((always_inline)) static inline ax_status
tidy_pass(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
		  bool *more, const ax_mode mode)
{
	rt_cursor	c;
	ax_status	x;
	int			n;

	*more = false;
	x = rt_descend(cx, s, &c, key, len, mode);
	if (x == RT_PARTS)
	{
		ax_guard_close(cx, &c.N, false);
		x = AX_OK;
	}
	if (x == AX_OK && c.P.hdr)
	{
		AX_POINT("art.tidy.before_look");
		n = rt_node_children(c.P.hdr);
		if (!ax_guard_valid(&c.P.g))
			x = AX_STALE;
		else if (n == 0)
			x = drop_node(cx, s, &c, key, more);
		else if (n == 1)
			x = lift_child(cx, s, &c, key, fp, mode, more);
		else
		{
			/* by the number that was valid: fewer are there now, perhaps */
			AX_POINT("art.tidy.looked");
			if (rt_wants_tidy(c.P.hdr, n))
				x = shrink_node(cx, s, &c, key);
		}
	}
	rt_close(cx, &c, mode);
	return x;
}

void
rt_tidy(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = rt_fp(key, len - AX_TID_BYTES);
	bool		more = true;
	int			tries = 0;

	while (more)
	{
		ax_status	x = ax_pessimistic(tries) ?
			tidy_pass(cx, s, key, len, fp, &more, AX_PESSIMISTIC) :
			tidy_pass(cx, s, key, len, fp, &more, AX_OPTIMISTIC);

		if (ax_start_over(cx, s, x, &tries))
			more = true;
		else if (x != AX_OK)
			break;
	}
}
