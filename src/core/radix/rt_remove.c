/*
 * rt_remove.c
 *	  Removal under optimistic latch coupling.
 *
 * Removing an entry never needs memory: a slot is emptied in place.  rt_tidy.c
 * puts in order what a removal leaves behind.
 *
 * src/core/radix/README.md: The tree
 */
#include "rt_olc.h"

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
	*tidy = rt_wants_tidy(c->P.hdr, rt_node_children(c->P.hdr));
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
		*tidy = rt_wants_tidy(c->P.hdr, rt_node_children(c->P.hdr));
	AX_POINT("art.rowex.unlinked");
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}

/*
 * The key's leaf is there.  *tidy: it went, and the node above lost a child.
 *
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
__attribute__((always_inline)) static inline ax_status
remove_from_leaf(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
				 bool *tidy, const ax_mode mode)
{
	const uint8_t fp = rt_fp(key, len - AX_TID_BYTES);
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
remove_pass(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, bool *tidy,
			const ax_mode mode)
{
	rt_cursor	c;
	ax_status	x = rt_descend(cx, s, &c, key, len, mode);

	if (x == AX_OK)
		x = RT_TAG(c.ref) == RT_LEAF ? remove_from_leaf(cx, s, &c, key, len, tidy, mode) :
			remove_tid(cx, s, &c, key, len, tidy);
	rt_close(cx, &c, mode);
	return x;
}

static __attribute__((noinline, cold)) ax_status
remove_latched(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, bool *tidy)
{
	return remove_pass(cx, s, key, len, tidy, AX_PESSIMISTIC);
}

ax_status
rt_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	bool		tidy = false;
	int			tries = 0;
	ax_status	x;

	do
		x = ax_pessimistic(tries) ? remove_latched(cx, s, key, len, &tidy) :
			remove_pass(cx, s, key, len, &tidy, AX_OPTIMISTIC);
	while (ax_start_over(cx, s, x, &tries));
	if (x != AX_OK)
		return x;
	AX_COUNT(cx, s, entries, -1);
	/* the entry is gone: whatever happens from here on is no failure */
	if (tidy)
		rt_tidy(cx, s, key, len);
	rt_heed_contention(cx, s, key, len);
	return AX_OK;
}
