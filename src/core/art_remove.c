/*
 * art_remove.c
 *	  Removal under optimistic latch coupling, and what it leaves behind:
 *	  empty nodes go, a lonely child takes its node's place, nodes shrink.
 *
 * Removing an entry never needs memory: a slot is emptied in place.  Giving
 * memory back may need some (a smaller copy), from the reserve if need be, and
 * is simply not done when there is none.
 */
#include "art_olc.h"

/* Too few children for its kind? */
static inline bool
wants_tidy(art_hdr *h)
{
	int			n = art_node_children(h);

	return n <= 1 || (h->kind == ART_N256 && n <= 36) ||
		(h->kind == ART_N48 && n <= 12) || (h->kind == ART_N16 && n <= 3);
}

/*
 * Of a latched leaf; its bytes stay as they are.  Release, for ROWEX: who reads this
 * bitmap must see the bytes of the entries that are left, which others stored.
 */
static inline void
drop_entry(art_leaf *l, int i)
{
	AX_POINT("art.rowex.drop");
	atomic_store_explicit(&l->live, ld(&l->live) & ~(1u << i), memory_order_release);
}

/* One descent; *tidy: the node above lost a child. */
static ax_status
remove_pass(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			bool pess, bool *again, bool *tidy)
{
	art_at		P = {.hdr = NULL};
	ax_guard	N;
	art_ref		ref;
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
		ref = art_slot_get(s, &P, key, &at);
		AX_POINT("art.remove.after_child_read");
		if (!ax_guard_valid(&P.g))
			goto over;
		x = AX_NOTFOUND;
		if (ref == 0)
			goto out;
		if (ART_TAG(ref) == ART_EMBED)
		{
			if (ART_EMBED_TID(ref) != ax_tid_at(key + len))
				goto out;
			AX_POINT("art.remove.before_lock");
			if (!ax_guard_lock_at(cx, &P.g, AX_SITE_NODE_DELETE))
				goto over;
			AX_POINT("art.rowex.latched");
			art_slot_clear(s, &P, key);
			*tidy = wants_tidy(P.hdr);
			ax_guard_close(cx, &P.g, true);
			AX_COUNT(cx, s, embedded, -1);
			return AX_OK;
		}
		if (ART_TAG(ref) == ART_LEAF)
		{
			art_leaf   *l = ART_PTR(ref);
			uint32_t	d = P.hdr ? P.d : 0;
			int			i,
						left;

			art_prefetch_leaf(ref);
			x = ax_guard_open_target(cx, s, &N, &l->word, pess);
			if (x != AX_OK)
				goto stale;
			if (!ax_guard_valid(&P.g))
			{
				ax_guard_close(cx, &N, false);
				goto over;
			}
			AX_POINT("art.remove.after_child_version");
			i = art_leaf_find(l, key + d, len - d, fp);
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
				uint8_t		buf[ART_VAR_BYTES];
				art_ent		e[ART_LEAF_MAX];
				int			n = art_leaf_ents(l, e, buf),
							k = 0;
				art_ref		r = 0;

				if (!ax_guard_valid(&N))
					goto over;
				for (int j = 0; j < n; j++)
					if (e[j].len != len - d || memcmp(e[j].p, key + d, e[j].len) != 0)
						e[k++] = e[j];
				r = art_leaf_new(cx, s, e, k, 0, art_leaf_stepcap(k + 1), true);
				if (r)
				{
					if (!art_lock3(cx, AX_SITE_LEAF_DELETE, &P.g, &N, NULL))
					{
						art_free_private(cx, s, r);
						goto over;
					}
					art_slot_set(s, &P, key, r);
					ax_guard_kill(cx, &N);
					ax_guard_close(cx, &P.g, true);
					art_leaf_retire(cx, s, l);
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
			if (!art_lock3(cx, AX_SITE_NODE_DELETE, &P.g, &N, NULL))
				goto over;
			art_slot_clear(s, &P, key);
			if (P.hdr)
				*tidy = wants_tidy(P.hdr);
			AX_POINT("art.rowex.unlinked");
			ax_guard_kill(cx, &N);
			ax_guard_close(cx, &P.g, true);
			art_leaf_retire(cx, s, l);
			return AX_OK;
		}

		/* an inner node */
		{
			art_hdr    *h = ART_PTR(ref);
			uint32_t	d = P.hdr ? P.d + 1 : 0;

			x = ax_guard_open(cx, &N, &h->word, pess);
			if (x != AX_OK)
				goto stale;
			if (!ax_guard_valid(&P.g))
			{
				ax_guard_close(cx, &N, false);
				goto over;
			}
			if (art_match_prefix(h, key, len, d) < h->plen)
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
static art_ref
collapse(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
		 art_hdr *h, ax_guard *N, uint32_t d, uint32_t from, bool pess,
		 ax_guard *C, art_ref *child, ax_status *x)
{
	art_slot	only[256];
	uint8_t		buf[ART_VAR_BYTES];
	uint8_t		wide[ART_VAR_BYTES];
	art_ent		e[ART_LEAF_MAX];
	uint32_t	extra = d - from;

	*x = AX_OK;
	if (art_node_slots_get(h, only) != 1 || !ax_guard_valid(N))
		return 0;
	*child = only[0].r;
	if (ART_TAG(*child) == ART_EMBED)
	{
		uint8_t		tail[16];
		uint32_t	n = d + 1 < 16 ? d + 1 : 16;
		uint64_t	tid = ART_EMBED_TID(*child);

		if (extra + 1 + AX_TID_BYTES > ART_VAR_BYTES / 4)
			return 0;
		memcpy(tail, key + d + 1 - n, n - 1);
		tail[n - 1] = only[0].lo;
		memcpy(wide, key + from, extra);
		wide[extra] = only[0].lo;
		for (int i = 0; i < AX_TID_BYTES; i++)
			wide[extra + 1 + (uint32_t) i] = (uint8_t) (tid >> (40 - 8 * i));
		e[0].p = wide;
		e[0].len = extra + 1 + AX_TID_BYTES;
		e[0].fp = art_fp(tail, n);
		return art_leaf_new(cx, s, e, 1, 0, 4, true);
	}
	if (ART_TAG(*child) == ART_LEAF)
	{
		art_leaf   *l = ART_PTR(*child);
		uint32_t	used = 0;
		int			n;
		bool		had;

		*x = ax_guard_open(cx, C, &l->word, pess);
		if (*x != AX_OK)
			return 0;
		n = art_leaf_ents(l, e, buf);
		had = art_leaf_has_fp(l) || (l->flags & ART_F_ONE);
		if (!ax_guard_valid(N) || !ax_guard_valid(C) || n == 0)
			return 0;
		for (int i = 0; i < n; i++)
		{
			if (used + extra + e[i].len > ART_VAR_BYTES)
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
		if (!art_leaf_fits(e, (uint64_t) n, 0))
			return 0;
		return art_leaf_new(cx, s, e, n, 0, art_leaf_stepcap(n + 1), true);
	}
	else
	{
		art_hdr    *c = ART_PTR(*child),
				   *r;
		uint8_t    *p;

		if (c->kind > ART_N16)
			return 0;
		*x = ax_guard_open(cx, C, &c->word, pess);
		if (*x != AX_OK)
			return 0;
		if (h->plen + 1 + c->plen > 64 * 1024)
			return 0;
		r = ax_alloc(cx, s, art_node_size(c->kind, h->plen + 1 + c->plen), true);
		if (!r)
			return 0;
		memset(r, 0, art_node_base(c->kind));
		atomic_init(&r->word, AX_WORD_INIT);
		r->kind = c->kind;
		r->plen = h->plen + 1 + c->plen;
		p = art_prefix(r);
		memcpy(p, art_prefix(h), h->plen);
		p[h->plen] = only[0].lo;
		memcpy(p + h->plen + 1, art_prefix(c), c->plen);
		art_count_node(cx, s, r->kind, 1);
		return art_node_ref(r);
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
	art_at		P = {.hdr = NULL},
				N = {.hdr = NULL};
	ax_guard	C = {0};
	art_ref		ref;
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
		art_hdr    *h;
		uint32_t	d = N.hdr ? N.d + 1 : 0;

		ref = art_slot_get(s, &N, key, &at);
		if (!ax_guard_valid(&N.g))
			goto over;
		if (!ART_IS_NODE(ref))
			break;
		h = ART_PTR(ref);
		x = ax_guard_open(cx, &g, &h->word, pess);
		if (x != AX_OK)
			goto stale;
		if (!ax_guard_valid(&N.g))
		{
			ax_guard_close(cx, &g, false);
			goto over;
		}
		if (art_match_prefix(h, key, len, d) < h->plen)
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
	n = art_node_children(N.hdr);
	if (!ax_guard_valid(&N.g))
		goto over;
	if (n == 0)
	{
		AX_POINT("art.empty.before_lock");
		if (!art_lock3(cx, AX_SITE_NODE_DELETE, &P.g, &N.g, NULL))
			goto over;
		art_slot_clear(s, &P, key);
		*more = P.hdr != NULL;
		ax_guard_kill(cx, &N.g);
		ax_guard_close(cx, &P.g, true);
		art_node_retire(cx, s, N.hdr);
		goto out;
	}
	if (n == 1)
	{
		art_ref		child,
					r;
		bool		node;

		r = collapse(cx, s, key, len, fp, N.hdr, &N.g, N.d, P.hdr ? P.d : 0,
					 pess, &C, &child, &x);
		if (!r)
			goto stale;
		node = ART_IS_NODE(r);
		AX_POINT("art.collapse.before_lock");
		if (!art_lock3(cx, AX_SITE_NODE_DELETE, &P.g, &N.g, C.w ? &C : NULL))
		{
			art_free_private(cx, s, r);
			goto over;
		}
		if (node)
		{
			art_slot	slots[256];
			int			ns = art_node_slots_get(ART_PTR(child), slots);

			art_node_fill(ART_PTR(r), slots, ns);
		}
		art_slot_set(s, &P, key, r);
		AX_POINT("art.rowex.copied");
		if (ART_TAG(child) == ART_EMBED)
			AX_COUNT(cx, s, embedded, -1);
		else
			ax_guard_kill(cx, &C);
		ax_guard_kill(cx, &N.g);
		*more = P.hdr != NULL && art_node_children(P.hdr) == 1;
		ax_guard_close(cx, &P.g, true);
		art_node_retire(cx, s, N.hdr);
		if (ART_TAG(child) == ART_LEAF)
			art_leaf_retire(cx, s, ART_PTR(child));
		else if (node)
			art_node_retire(cx, s, ART_PTR(child));
		goto out;
	}
	if (wants_tidy(N.hdr))
	{
		art_hdr    *h = art_node_new(cx, s, N.hdr->kind - 1u, art_prefix(N.hdr), N.hdr->plen, true);
		art_slot	slots[256];

		if (!h)
			goto out;
		AX_POINT("art.shrink.before_lock");
		if (!art_lock3(cx, AX_SITE_NODE_DELETE, &P.g, &N.g, NULL))
		{
			art_node_unalloc(cx, s, h);
			goto over;
		}
		art_node_fill(h, slots, art_node_slots_get(N.hdr, slots));
		art_slot_set(s, &P, key, art_node_ref(h));
		AX_POINT("art.rowex.copied");
		ax_guard_kill(cx, &N.g);
		ax_guard_close(cx, &P.g, true);
		art_node_retire(cx, s, N.hdr);
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
art_tidy(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = art_fp(key, len - AX_TID_BYTES);
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
art_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = art_fp(key, len - AX_TID_BYTES);
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
		art_tidy(cx, s, key, len);
	art_heed_contention(cx, s, key, len);
	return AX_OK;
}
