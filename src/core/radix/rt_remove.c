/*
 * rt_remove.c
 *	  Removal under optimistic latch coupling, and what it leaves behind:
 *	  empty nodes go, a lonely child takes its node's place, nodes shrink.
 *
 * Removing an entry never needs memory: a slot is emptied in place.  Giving
 * memory back may need some (a smaller copy), from the reserve if need be, and
 * is simply not done when there is none.
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

/* One descent; *tidy: the node above lost a child. */
static ax_status
remove_pass(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			bool pess, bool *again, bool *tidy)
{
	rt_at		P = {.hdr = NULL};
	ax_guard	N;
	rt_ref		ref;
	int			at;
	ax_status	x;

	*again = false;
	x = ax_retire_reserve(cx, 2);
	if (x != AX_OK)
		return x;
	x = ax_guard_open(cx, &P.g, &s->root_word, pess);
	if (x != AX_OK)
		return x;

	for (;;)
	{
		ref = rt_slot_get(s, &P, key, &at);
		AX_POINT("art.remove.after_child_read");
		if (!ax_guard_valid(&P.g))
			goto over;
		x = AX_NOTFOUND;
		if (ref == 0)
			goto out;
		if (RT_TAG(ref) == RT_EMBED)
		{
			if (RT_EMBED_TID(ref) != ax_tid_at(key + len))
				goto out;
			AX_POINT("art.remove.before_lock");
			if (!ax_guard_lock_at(cx, &P.g, AX_SITE_NODE_DELETE))
				goto over;
			AX_POINT("art.rowex.latched");
			rt_slot_clear(s, &P, key);
			*tidy = wants_tidy(P.hdr);
			ax_guard_close(cx, &P.g, true);
			AX_COUNT(cx, s, embedded, -1);
			return AX_OK;
		}
		if (RT_TAG(ref) == RT_LEAF)
		{
			rt_leaf   *l = RT_PTR(ref);
			uint32_t	d = P.hdr ? P.d : 0;
			int			i,
						left;

			rt_prefetch_leaf(ref);
			x = ax_guard_open_target(cx, s, &N, &l->word, pess);
			if (x != AX_OK)
				goto stale;
			if (!ax_guard_valid(&P.g))
			{
				ax_guard_close(cx, &N, false);
				goto over;
			}
			AX_POINT("art.remove.after_child_version");
			i = rt_leaf_find(l, key + d, len - d, fp);
			left = __builtin_popcount(ld(&l->live)) - 1;
			if (!ax_guard_valid(&N))
				goto over;
			if (i < 0)
			{
				ax_guard_close(cx, &N, false);
				x = AX_NOTFOUND;
				goto out;
			}
			AX_POINT("art.remove.before_lock");
			if (left > 0 && (left * 4 > l->cap || l->cap <= 4))
			{
				if (!ax_guard_lock_at(cx, &N, AX_SITE_LEAF_DELETE))
					goto over;
				drop_entry(l, i);
				ax_guard_close(cx, &N, true);
				x = AX_OK;
				goto out;
			}
			if (ax_guard_shared(&N) && !pess)
				ax_guard_close(cx, &N, false);	/* no latch while memory is taken */
			if (left > 0)
			{
				/* sparse: a smaller copy, if there is memory for one */
				uint8_t		buf[RT_VAR_BYTES];
				rt_ent		e[RT_LEAF_MAX];
				int			n = rt_leaf_ents(l, e, buf),
							k = 0;
				rt_ref		r = 0;

				if (!ax_guard_valid(&N))
					goto over;
				for (int j = 0; j < n; j++)
					if (e[j].len != len - d || memcmp(e[j].p, key + d, e[j].len) != 0)
						e[k++] = e[j];
				r = rt_leaf_new(cx, s, e, k, 0, rt_leaf_stepcap(k + 1), true);
				if (r)
				{
					if (!rt_lock3(cx, AX_SITE_LEAF_DELETE, &P.g, &N, NULL))
					{
						rt_free_private(cx, s, r);
						goto over;
					}
					rt_slot_set(s, &P, key, r);
					ax_guard_kill(cx, &N);
					ax_guard_close(cx, &P.g, true);
					rt_leaf_retire(cx, s, l);
					return AX_OK;
				}
				if (!ax_guard_lock_at(cx, &N, AX_SITE_LEAF_DELETE))
					goto over;
				drop_entry(l, i);
				ax_guard_close(cx, &N, true);
				x = AX_OK;
				goto out;
			}
			/* the last one: the leaf goes */
			if (!rt_lock3(cx, AX_SITE_NODE_DELETE, &P.g, &N, NULL))
				goto over;
			rt_slot_clear(s, &P, key);
			if (P.hdr)
				*tidy = wants_tidy(P.hdr);
			AX_POINT("art.rowex.unlinked");
			ax_guard_kill(cx, &N);
			ax_guard_close(cx, &P.g, true);
			rt_leaf_retire(cx, s, l);
			return AX_OK;
		}

		/* an inner node */
		{
			rt_hdr    *h = RT_PTR(ref);
			uint32_t	d = P.hdr ? P.d + 1 : 0;

			x = ax_guard_open(cx, &N, &h->word, pess);
			if (x != AX_OK)
				goto stale;
			if (!ax_guard_valid(&P.g))
			{
				ax_guard_close(cx, &N, false);
				goto over;
			}
			if (rt_match_prefix(h, key, len, d) < h->plen)
			{
				ax_guard_close(cx, &N, false);
				x = AX_NOTFOUND;
				goto out;
			}
			ax_guard_close(cx, &P.g, false);
			P.g = N;
			P.hdr = h;
			P.d = d + h->plen;
		}
	}

stale:
	if (x == AX_STALE)
	{
over:
		*again = true;
		x = AX_OK;
	}
out:
	ax_guard_close(cx, &P.g, false);
	return x;
}

/*
 * A node with one child left, in bytes of its own: what its parent can hold
 * in its place.  key leads to the node; d is its byte's depth, from the depth
 * the new thing begins at.  0: leave it as it is.  *third: the child's guard,
 * open, when it must be latched too; *child, what goes with the node.
 */
static rt_ref
collapse(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
		 rt_hdr *h, ax_guard *N, uint32_t d, uint32_t from, bool pess,
		 ax_guard *C, rt_ref *child, ax_status *x)
{
	rt_slot	only[256];
	uint8_t		buf[RT_VAR_BYTES];
	uint8_t		wide[RT_VAR_BYTES];
	rt_ent		e[RT_LEAF_MAX];
	uint32_t	extra = d - from;

	*x = AX_OK;
	if (rt_node_slots_get(h, only) != 1 || !ax_guard_valid(N))
		return 0;
	*child = only[0].r;
	if (RT_TAG(*child) == RT_EMBED)
	{
		uint8_t		tail[16];
		uint32_t	n = d + 1 < 16 ? d + 1 : 16;
		uint64_t	tid = RT_EMBED_TID(*child);

		if (extra + 1 + AX_TID_BYTES > RT_VAR_BYTES / 4)
			return 0;
		memcpy(tail, key + d + 1 - n, n - 1);
		tail[n - 1] = only[0].lo;
		memcpy(wide, key + from, extra);
		wide[extra] = only[0].lo;
		for (int i = 0; i < AX_TID_BYTES; i++)
			wide[extra + 1 + (uint32_t) i] = (uint8_t) (tid >> (40 - 8 * i));
		e[0].p = wide;
		e[0].len = extra + 1 + AX_TID_BYTES;
		e[0].fp = rt_fp(tail, n);
		return rt_leaf_new(cx, s, e, 1, 0, 4, true);
	}
	if (RT_TAG(*child) == RT_LEAF)
	{
		rt_leaf   *l = RT_PTR(*child);
		uint32_t	used = 0;
		int			n;
		bool		had;

		*x = ax_guard_open(cx, C, &l->word, pess);
		if (*x != AX_OK)
			return 0;
		n = rt_leaf_ents(l, e, buf);
		had = rt_leaf_has_fp(l) || (l->flags & RT_F_ONE);
		if (!ax_guard_valid(N) || !ax_guard_valid(C) || n == 0)
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
	else
	{
		rt_hdr    *c = RT_PTR(*child),
				   *r;
		uint8_t    *p;

		if (c->kind > RT_N16)
			return 0;
		*x = ax_guard_open(cx, C, &c->word, pess);
		if (*x != AX_OK)
			return 0;
		if (h->plen + 1 + c->plen > 64 * 1024)
			return 0;
		r = ax_alloc(cx, s, rt_node_size(c->kind, h->plen + 1 + c->plen), true);
		if (!r)
			return 0;
		memset(r, 0, rt_node_base(c->kind));
		atomic_init(&r->word, AX_WORD_INIT);
		r->kind = c->kind;
		r->plen = h->plen + 1 + c->plen;
		p = rt_prefix(r);
		memcpy(p, rt_prefix(h), h->plen);
		p[h->plen] = only[0].lo;
		memcpy(p + h->plen + 1, rt_prefix(c), c->plen);
		rt_count_node(cx, s, r->kind, 1);
		return rt_node_ref(r);
	}
}

/*
 * After a removal: the deepest node on the key's path goes when it is empty,
 * is replaced by its only child, or shrinks.  Purely a matter of memory: gives
 * up rather than wait or fail.  *more: the node above may want the same.
 */
static ax_status
tidy_pass(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
		  bool pess, bool *again, bool *more)
{
	rt_at		P = {.hdr = NULL},
				N = {.hdr = NULL};
	ax_guard	C = {0};
	rt_ref		ref;
	int			at,
				n;
	ax_status	x;

	*again = *more = false;
	x = ax_retire_reserve(cx, 3);
	if (x != AX_OK)
		return x;
	x = ax_guard_open(cx, &N.g, &s->root_word, pess);
	if (x != AX_OK)
		return x;
	for (;;)
	{
		ax_guard	g;
		rt_hdr    *h;
		uint32_t	d = N.hdr ? N.d + 1 : 0;

		ref = rt_slot_get(s, &N, key, &at);
		if (!ax_guard_valid(&N.g))
			goto over;
		if (!RT_IS_NODE(ref))
			break;
		h = RT_PTR(ref);
		x = ax_guard_open(cx, &g, &h->word, pess);
		if (x != AX_OK)
			goto stale;
		if (!ax_guard_valid(&N.g))
		{
			ax_guard_close(cx, &g, false);
			goto over;
		}
		if (rt_match_prefix(h, key, len, d) < h->plen)
		{
			ax_guard_close(cx, &g, false);
			break;
		}
		ax_guard_close(cx, &P.g, false);
		P = N;
		N.g = g;
		N.hdr = h;
		N.d = d + h->plen;
	}
	if (!N.hdr)
		goto out;
	AX_POINT("art.tidy.before_look");
	n = rt_node_children(N.hdr);
	if (!ax_guard_valid(&N.g))
		goto over;
	if (n == 0)
	{
		AX_POINT("art.empty.before_lock");
		if (!rt_lock3(cx, AX_SITE_NODE_DELETE, &P.g, &N.g, NULL))
			goto over;
		rt_slot_clear(s, &P, key);
		*more = P.hdr != NULL;
		ax_guard_kill(cx, &N.g);
		ax_guard_close(cx, &P.g, true);
		rt_node_retire(cx, s, N.hdr);
		goto out;
	}
	if (n == 1)
	{
		rt_ref		child,
					r;
		bool		node;

		r = collapse(cx, s, key, len, fp, N.hdr, &N.g, N.d, P.hdr ? P.d : 0,
					 pess, &C, &child, &x);
		if (!r)
			goto stale;
		node = RT_IS_NODE(r);
		AX_POINT("art.collapse.before_lock");
		if (!rt_lock3(cx, AX_SITE_NODE_DELETE, &P.g, &N.g, C.w ? &C : NULL))
		{
			rt_free_private(cx, s, r);
			goto over;
		}
		if (node)
		{
			rt_slot	slots[256];
			int			ns = rt_node_slots_get(RT_PTR(child), slots);

			rt_node_fill(RT_PTR(r), slots, ns);
		}
		rt_slot_set(s, &P, key, r);
		AX_POINT("art.rowex.copied");
		if (RT_TAG(child) == RT_EMBED)
			AX_COUNT(cx, s, embedded, -1);
		else
			ax_guard_kill(cx, &C);
		ax_guard_kill(cx, &N.g);
		*more = P.hdr != NULL && rt_node_children(P.hdr) == 1;
		ax_guard_close(cx, &P.g, true);
		rt_node_retire(cx, s, N.hdr);
		if (RT_TAG(child) == RT_LEAF)
			rt_leaf_retire(cx, s, RT_PTR(child));
		else if (node)
			rt_node_retire(cx, s, RT_PTR(child));
		goto out;
	}
	if (wants_tidy(N.hdr))
	{
		rt_hdr    *h = rt_node_new(cx, s, N.hdr->kind - 1u, rt_prefix(N.hdr), N.hdr->plen, true);
		rt_slot	slots[256];

		if (!h)
			goto out;
		AX_POINT("art.shrink.before_lock");
		if (!rt_lock3(cx, AX_SITE_NODE_DELETE, &P.g, &N.g, NULL))
		{
			rt_node_unalloc(cx, s, h);
			goto over;
		}
		rt_node_fill(h, slots, rt_node_slots_get(N.hdr, slots));
		rt_slot_set(s, &P, key, rt_node_ref(h));
		AX_POINT("art.rowex.copied");
		ax_guard_kill(cx, &N.g);
		ax_guard_close(cx, &P.g, true);
		rt_node_retire(cx, s, N.hdr);
	}
	goto out;

stale:
	if (x == AX_STALE)
	{
over:
		*again = true;
		x = AX_OK;
	}
out:
	ax_guard_close(cx, &C, false);
	ax_guard_close(cx, &P.g, false);
	ax_guard_close(cx, &N.g, false);
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
	bool		again,
				tidy = true;

	for (int tries = 0; tidy; tries++)
	{
		if (tidy_pass(cx, s, key, len, fp, tries >= AX_MAX_RESTARTS, &again, &tidy) != AX_OK)
			break;
		if (again)
		{
			tidy = true;
			ax_restarted(cx, s, tries);
		}
	}
}

ax_status
rt_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = rt_fp(key, len - AX_TID_BYTES);
	bool		again,
				tidy = false;
	ax_status	r;

	for (int tries = 0;; tries++)
	{
		r = remove_pass(cx, s, key, len, fp, tries >= AX_MAX_RESTARTS, &again, &tidy);
		if (!again)
			break;
		ax_restarted(cx, s, tries);
	}
	if (r != AX_OK)
		return r;
	AX_COUNT(cx, s, entries, -1);
	/* the entry is gone: whatever happens from here on is no failure */
	if (tidy)
		rt_tidy(cx, s, key, len);
	rt_heed_contention(cx, s, key, len);
	return AX_OK;
}
