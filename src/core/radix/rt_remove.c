/*
 * rt_remove.c
 *	  Removal under optimistic latch coupling, and what it leaves behind:
 *	  empty nodes go, a lonely child takes its node's place, nodes shrink.
 *
 * Removing an entry never needs memory: a slot is emptied in place.  Giving
 * memory back may need some (a smaller copy), from the reserve if need be, and
 * is simply not done when there is none.
 *
 * src/README.md: The tree
 */
#include "rt_olc.h"

/* Too few children for its kind? */
static inline bool
wants_tidy(rt_hdr *h)
{
	int			n = rt_node_children(h);

	return n <= 1 || (h->kind == RT_N256 && n <= 36) ||
		(h->kind == RT_N48 && n <= 12) || (h->kind == RT_N16 && n <= 3);
}

/*
 * Of a latched leaf; its bytes stay as they are.  Release, for ROWEX: who reads this
 * bitmap must see the bytes of the entries that are left, which others stored.
 */
static inline void
drop_entry(rt_leaf *l, int i)
{
	AX_POINT("art.rowex.drop");
	atomic_store_explicit(&l->live, ld(&l->live) & ~(1u << i), memory_order_release);
}

/*
 * A TID hangs in P's node.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
remove_tid(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
		   bool *tidy)
{
	rt_change	ch = {.site = AX_SITE_NODE_DELETE, .node = true, .embedded = -1};

	if (c->ref == 0 || RT_EMBED_TID(c->ref) != ax_tid_at(key + len))
		return AX_NOTFOUND;
	AX_POINT("art.remove.before_lock");
	if (rt_begin(cx, s, c, &ch) != AX_OK)
		return AX_STALE;
	rt_slot_clear(s, &c->P, key);
	*tidy = wants_tidy(c->P.hdr);
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * Entry i of a leaf, which stays.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static inline ax_status
remove_in_place(ax_ctx *cx, ax_store *s, rt_cursor *c, int i)
{
	rt_change	ch = {.site = AX_SITE_LEAF_DELETE, .below = true};

	if (rt_begin(cx, s, c, &ch) != AX_OK)
		return AX_STALE;
	drop_entry(RT_PTR(c->ref), i);
	rt_finish(cx, s, c, NULL, &ch);
	return AX_OK;
}

/*
 * Of a leaf that is sparse by then: into a smaller copy, if there is memory for one.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
remove_and_shrink(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
				  int at)
{
	rt_change	ch = {.site = AX_SITE_LEAF_DELETE, .node = true, .below = true, .goes = c->ref};
	uint8_t		buf[RT_VAR_BYTES];
	rt_ent		e[RT_LEAF_MAX];
	const uint8_t *rest = key + c->d;
	int			n = rt_leaf_ents(RT_PTR(c->ref), e, buf),
				k = 0;
	rt_ref		r;
	ax_status	x;

	if (!ax_guard_valid(&c->N))
		return AX_STALE;
	for (int i = 0; i < n; i++)
		if (e[i].len != len - c->d || memcmp(e[i].p, rest, e[i].len) != 0)
			e[k++] = e[i];
	r = rt_leaf_new(cx, s, e, k, 0, rt_leaf_stepcap(k + 1), true);
	if (!r)
		return remove_in_place(cx, s, c, at);
	(void) rt_made(&ch, r);
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	rt_slot_set(s, &c->P, key, r);
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * The last entry of a leaf: that goes.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
remove_leaf(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, bool *tidy)
{
	rt_change	ch = {.site = AX_SITE_NODE_DELETE, .node = true, .below = true, .goes = c->ref};
	ax_status	x = rt_begin(cx, s, c, &ch);

	if (x != AX_OK)
		return x;
	rt_slot_clear(s, &c->P, key);
	if (c->P.hdr)
		*tidy = wants_tidy(c->P.hdr);
	AX_POINT("art.rowex.unlinked");
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * The key's leaf is there.  *tidy: it went, and the node above lost a child.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 * Arguments: always inline; the mode is known to the compiler.
 */
__attribute__((always_inline)) static inline ax_status
remove_from_leaf(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
				 uint8_t fp, bool *tidy, const ax_mode mode)
{
	rt_leaf   *l = RT_PTR(c->ref);
	int			i,
				left;
	ax_status	x = rt_open_target(cx, s, c, mode);

	if (x != AX_OK)
		return x;
	i = rt_leaf_find(l, key + c->d, len - c->d, fp);
	left = __builtin_popcount(ld(&l->live)) - 1;
	if (!ax_guard_valid(&c->N))
		return AX_STALE;
	if (i < 0)
		return AX_NOTFOUND;
	AX_POINT("art.remove.before_lock");
	if (left > 0 && (left * 4 > l->cap || l->cap <= 4))
		return remove_in_place(cx, s, c, i);
	if (mode == AX_OPTIMISTIC && ax_guard_shared(&c->N))
		ax_guard_close(cx, &c->N, false);	/* no latch while memory is taken */
	return left > 0 ? remove_and_shrink(cx, s, c, key, len, i) :
		remove_leaf(cx, s, c, key, tidy);
}

/*
 * One descent; *tidy: the node above lost a child.
 *
 * Latches: none on entry and on return.
 */
__attribute__((always_inline)) static inline ax_status
remove_pass(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			bool *tidy, const ax_mode mode)
{
	rt_cursor	c;
	ax_status	x = rt_descend(cx, s, &c, key, len, mode);

	if (x == AX_OK)
		x = RT_TAG(c.ref) == RT_LEAF ? remove_from_leaf(cx, s, &c, key, len, fp, tidy, mode) :
			remove_tid(cx, s, &c, key, len, tidy);
	rt_close(cx, &c, mode);
	return x;
}

static __attribute__((noinline, cold)) ax_status
remove_latched(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			   bool *tidy)
{
	return remove_pass(cx, s, key, len, fp, tidy, AX_PESSIMISTIC);
}

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

/* It is a leaf (c->N): one whose entries have the bytes from depth "from" on. */
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

/* It is a node: an empty one with the prefixes of both. */
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
 * P's node has one child left, in bytes of its own: what its parent G can hold in
 * its place.  0: leave it as it is, or *x.  *child: what goes with the node, its guard,
 * c->N, open unless it is a TID.
 *
 * Latches: on entry those of the cursor; pessimistically the child's, too, on
 * return.
 * Arguments: a place, the mode, and two answers.
 */
static rt_ref
collapse(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint8_t fp,
		 const ax_mode mode, rt_ref *child, ax_status *x)
{
	rt_slot	only[256];
	uint32_t	from = c->G.hdr ? c->G.d : 0;
	rt_hdr    *h;

	*x = AX_OK;
	if (rt_node_slots_get(c->P.hdr, only) != 1 || !ax_guard_valid(&c->P.g))
		return 0;
	*child = only[0].r;
	h = RT_PTR(*child);
	if (RT_TAG(*child) == RT_EMBED)
		return collapse_tid(cx, s, c, key, only, from);
	if (RT_IS_NODE(*child) && h->kind > RT_N16)
		return 0;
	/* the latch word is the first of either */
	*x = ax_open(cx, &c->N, &h->word, mode);
	if (*x != AX_OK)
		return 0;
	return RT_IS_NODE(*child) ? collapse_node(cx, s, c->P.hdr, only[0].lo, h) :
		collapse_leaf(cx, s, c, key, fp, RT_PTR(*child), from);
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
 * It has one child: that takes its place.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
static ax_status
lift_child(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint8_t fp,
		   const ax_mode mode, bool *more)
{
	rt_change	ch = {.site = AX_SITE_NODE_DELETE, .replace = true};
	ax_status	x;
	rt_ref		child;

	ch.put = collapse(cx, s, c, key, fp, mode, &child, &x);
	if (!ch.put)
		return x;
	(void) rt_made(&ch, ch.put);
	if (RT_TAG(child) == RT_EMBED)
		ch.embedded = -1;
	else
	{
		ch.below = true;
		ch.goes = child;
	}
	AX_POINT("art.collapse.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	if (RT_IS_NODE(ch.put))
		rt_fill_copy(RT_PTR(ch.put), RT_PTR(child));
	*more = c->G.hdr != NULL && rt_node_children(c->G.hdr) == 1;
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * It has so few that a smaller one has room for them.
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
		else if (wants_tidy(c.P.hdr))
			x = shrink_node(cx, s, &c, key);
	}
	rt_close(cx, &c, mode);
	return x;
}

/*
 * Give back what is empty or too big on the key's path.  No failure of anything
 * if it cannot be done.
 */
void
rt_tidy(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = rt_fp(key, len - AX_TID_BYTES);
	bool		more = true;

	for (int tries = 0; more; tries++)
	{
		ax_status	x = tries < AX_MAX_RESTARTS ?
			tidy_pass(cx, s, key, len, fp, &more, AX_OPTIMISTIC) :
			tidy_pass(cx, s, key, len, fp, &more, AX_PESSIMISTIC);

		if (x == AX_STALE)
		{
			more = true;
			ax_restarted(cx, s, tries);
		}
		else if (x != AX_OK)
			break;
	}
}

ax_status
rt_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = rt_fp(key, len - AX_TID_BYTES);
	bool		tidy = false;

	for (int tries = 0;; tries++)
	{
		ax_status	x = ax_likely(tries < AX_MAX_RESTARTS) ?
			remove_pass(cx, s, key, len, fp, &tidy, AX_OPTIMISTIC) :
			remove_latched(cx, s, key, len, fp, &tidy);

		if (x == AX_OK)
			break;
		if (x != AX_STALE)
			return x;
		ax_restarted(cx, s, tries);
	}
	AX_COUNT(cx, s, entries, -1);
	/* the entry is gone: whatever happens from here on is no failure */
	if (tidy)
		rt_tidy(cx, s, key, len);
	rt_heed_contention(cx, s, key, len);
	return AX_OK;
}
