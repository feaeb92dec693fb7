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
 */
#include "radix.h"
#include "rt_olc.h"

/*
 * The kind of the copy that takes node h's place if it is to get another child
 * at byte c; 0: it goes in as it is.
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
 * Where in the byte range of leaf L (entries e[0..n), sorted, the new key
 * among them at index me) to split: e[0..*k) stay left of byte *sb.
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
 * at the slot's byte: two halves as a rule.  *kept is the old leaf's reference
 * when it stays as one of the two pieces.  0: no memory.
 */
static int
cut_leaf(ax_ctx *cx, ax_store *s, const rt_ent *e, int n, int me, rt_ref old,
		 rt_piece *p, rt_ref *kept)
{
	int			k;
	uint8_t		sb;

	choose_split(e, n, 0, me, &k, &sb);
	*kept = 0;
	p[0].lo = e[0].p[0];
	p[1].lo = sb;
	p[0].r = p[1].r = 0;
	if (k == n - 1 && me == n - 1)
	{
		/* the new entry alone beside the old leaf */
		p[0].r = *kept = old;
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
leaf_overflow(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			  rt_at *G, rt_at *P, ax_guard *L, rt_ref old, bool *again)
{
	uint8_t		buf[RT_VAR_BYTES];
	rt_ent		e[RT_LEAF_MAX + 1];
	rt_piece	p[RT_LEAF_MAX + 1];
	uint32_t	d = P->hdr ? P->d : 0;
	rt_ref		kept = 0;
	int			n,
				me,
				np;

	/* entries count from depth d: e.p[0] is the byte at d */
	n = rt_leaf_ents(RT_PTR(old), e, buf);
	if (!ax_guard_valid(L))
	{
		*again = true;
		return AX_OK;
	}
	e[n].p = key + d;
	e[n].len = len - d;
	e[n].fp = fp;
	n++;
	rt_sort_ents(e, n);
	for (me = 0; e[me].p != key + d; me++)
		;

	if (P->hdr && e[0].p[0] != e[n - 1].p[0] && !rt_leaf_fits(e, (uint64_t) n, 0))
		np = cut_leaf(cx, s, e, n, me, old, p, &kept);
	else
	{
		/* slots that are used up though free tell of removals: more will come */
		bool		worn = rt_rowex(s) && ld(&((rt_leaf *) RT_PTR(old))->used) >= n;

		/* keys that come in order leave full leaves behind */
		np = rt_one_piece(cx, s, e, n, P->hdr != NULL, rt_leaf_stepcap(worn ? n + 4 : n),
						  me == n - 1 ? RT_LEAF_MAX : 17, p);
	}
	if (np == 0)
		return AX_NOMEM;
	return rt_publish(cx, s, key, G, P, L, old, p, np, kept, again);
}

/*
 * No slot covers the key's byte in node P.  Widen a neighbouring leaf over the
 * gap (*grew: then the caller finds it, in P or, under ROWEX, in P's copy,
 * with *again), or hang a new child.
 */
static ax_status
insert_child(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			 rt_at *G, rt_at *P, bool *again, bool *grew)
{
	rt_hdr    *h = P->hdr;
	uint32_t	d = P->d;
	uint8_t		c = key[d];
	int			lo = c,
				hi = c,
				at;
	unsigned	kind;
	rt_ref		r;
	rt_hdr    *grown = NULL;
	rt_ent		e;

	if (len - (d + 1) == AX_TID_BYTES)
		r = RT_EMBED_REF(ax_tid_at(key + len));
	else
	{
		/* the gap around c, and a leaf beside it */
		rt_ref		beside = 0;
		int			bc = 0;

		if (h->kind <= RT_N16)
		{
			int			n = ld(&h->count);

			(void) rt_find(h, h->kind, c, &at);
			/* a hole (ROWEX) takes a leaf where it is */
			if (at + 1 < n && at + 1 < rt_node_slots(h->kind) && !rt_rowex_hole(s, h, at))
			{
				beside = ldref(h->kind == RT_N4 ? &((rt_n4 *) h)->child[at + 1] :
							   &((rt_n16 *) h)->child[at + 1]);
				if (RT_TAG(beside) != RT_LEAF)
					beside = 0;
			}
			if (beside)
			{
				ax_guard	L;
				ax_status	x;

				if (!ax_guard_valid(&P->g))
				{
					*again = true;
					return AX_OK;
				}
				if (rt_rowex(s))
				{
					/* separators do not move: a copy of the node has the range */
					if (!rt_leaf_room(RT_PTR(beside), len - d, true) &&
						((rt_leaf *) RT_PTR(beside))->cap >= RT_LEAF_MAX)
						goto fresh;
					*again = true;
					grown = rt_node_new(cx, s, h->kind, rt_prefix(h), h->plen, false);
					if (!grown)
					{
						*again = false;
						return AX_NOMEM;
					}
					AX_POINT("art.widen.before_lock");
					if (!rt_lock3(cx, AX_SITE_NODE_INSERT, &G->g, &P->g, NULL))
					{
						rt_node_unalloc(cx, s, grown);
						return AX_OK;
					}
					bc = h->kind == RT_N4 ? rt_n4_sep((rt_n4 *) h, at + 1) : rt_n16_sep((rt_n16 *) h, at + 1);
					rt_fill_grown(h, grown);
					rt_node_del(grown, (uint8_t) bc);
					rt_node_add(grown, c, 0, 0, beside);
					rt_publish_grown(cx, s, key, G, P, grown);
					*grew = true;
					return AX_OK;
				}
				x = ax_guard_open(cx, &L, &((rt_leaf *) RT_PTR(beside))->word, P->g.held);
				if (x == AX_BUSY)
					return x;
				/* a full leaf is better left alone: it would split at once */
				if (x == AX_OK && !rt_leaf_room(RT_PTR(beside), len - d, false) &&
					((rt_leaf *) RT_PTR(beside))->cap >= RT_LEAF_MAX)
				{
					ax_guard_close(cx, &L, false);
					goto fresh;
				}
				*again = true;
				if (x != AX_OK)
					return AX_OK;
				AX_POINT("art.widen.before_lock");
				if (!rt_lock3(cx, AX_SITE_NODE_INSERT, &P->g, &L, NULL))
					return AX_OK;
				bc = h->kind == RT_N4 ? rt_n4_sep((rt_n4 *) h, at + 1) : rt_n16_sep((rt_n16 *) h, at + 1);
				rt_node_del(h, (uint8_t) bc);
				rt_node_add(h, c, 0, 0, beside);
				ax_guard_close(cx, &L, true);
				ax_guard_close(cx, &P->g, true);
				*again = false;
				*grew = true;
				return AX_OK;
			}
		}
		else
		{
#define SLOT(x) (h->kind == RT_N48 ? (rt_ref) ld(&((rt_n48 *) h)->index[x]) : ldref(&((rt_n256 *) h)->child[x]))
			while (lo > 0 && !SLOT(lo - 1))
				lo--;
			while (hi < 255 && !SLOT(hi + 1))
				hi++;
			for (int side = 0; side < 2 && !beside; side++)
			{
				bc = side == 0 ? lo - 1 : hi + 1;
				if (bc < 0 || bc > 255)
					continue;
				beside = rt_find(h, h->kind, (uint8_t) bc, &at);
				if (RT_TAG(beside) != RT_LEAF)
					beside = 0;
			}
#undef SLOT
			if (beside)
			{
				/* the range only grows over bytes nobody covers: no need to
				 * latch the leaf (see the head of the file) */
				*again = true;
				AX_POINT("art.widen.before_lock");
				if (!rt_lock3(cx, AX_SITE_NODE_INSERT, &P->g, NULL, NULL))
					return AX_OK;
				for (int x = lo; x <= hi; x++)
				{
					AX_POINT("art.rowex.range");
					/* release: ROWEX reads the slot behind it, which others may have stored */
					if (h->kind == RT_N48)
						atomic_store_explicit(&((rt_n48 *) h)->index[x], (uint8_t) (at + 1),
											  memory_order_release);
					else
						stref(&((rt_n256 *) h)->child[x], beside);
				}
				ax_guard_close(cx, &P->g, true);
				*again = false;
				*grew = true;
				return AX_OK;
			}
		}
fresh:
		e.p = key + d;
		e.len = len - d;
		e.fp = fp;
		r = rt_leaf_new(cx, s, &e, 1, 0, 4, false);
		if (!r)
			return AX_NOMEM;
	}

	AX_POINT("art.child.before_room");
	kind = kind_for_child(s, h, c, r);
	if (kind)
	{
		grown = rt_node_new(cx, s, kind, rt_prefix(h), h->plen, false);
		if (!grown)
		{
			if (RT_TAG(r) == RT_LEAF)
				rt_free_private(cx, s, r);
			return AX_NOMEM;
		}
	}
	AX_POINT("art.child.before_lock");
	if (!rt_lock3(cx, AX_SITE_NODE_INSERT, grown ? &G->g : NULL, &P->g, NULL))
	{
		if (RT_TAG(r) == RT_LEAF)
			rt_free_private(cx, s, r);
		if (grown)
			rt_node_unalloc(cx, s, grown);
		*again = true;
		return AX_OK;
	}
	if (grown)
	{
		rt_fill_grown(h, grown);
		h = grown;
	}
	/* in Node4/16 a fresh leaf covers up to the next separator */
	if (!grown && rt_rowex(s))
		rt_rowex_add(h, c, lo, hi, r);
	else
		rt_node_add(h, c, lo, hi, r);
	if (RT_TAG(r) == RT_EMBED)
		AX_COUNT(cx, s, embedded, 1);
	if (grown)
		rt_publish_grown(cx, s, key, G, P, grown);
	else
		ax_guard_close(cx, &P->g, true);
	return AX_OK;
}

/*
 * The key leaves node N (guard g, depth off of its prefix) at prefix byte m.
 * Make a Node4 with the common part over a copy of N with the rest, and a
 * leaf.  Headers are immutable, so readers never see a prefix that moves.
 */
static ax_status
split_prefix(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			 rt_at *P, rt_hdr *N, ax_guard *g, uint32_t off, uint32_t m, bool *again)
{
	const uint8_t *prefix = rt_prefix(N);
	uint32_t	d = off + m;
	rt_hdr    *top,
			   *rest;
	rt_ref		r;

	top = rt_node_new(cx, s, RT_N4, prefix, m, false);
	if (!top)
		return AX_NOMEM;
	rest = rt_node_new(cx, s, N->kind, prefix + m + 1, N->plen - m - 1, false);
	if (!rest)
	{
		rt_node_unalloc(cx, s, top);
		return AX_NOMEM;
	}
	if (len - (d + 1) == AX_TID_BYTES)
		r = RT_EMBED_REF(ax_tid_at(key + len));
	else
	{
		rt_ent		e = {key + d, len - d, fp};

		r = rt_leaf_new(cx, s, &e, 1, 0, 4, false);
		if (!r)
		{
			rt_node_unalloc(cx, s, top);
			rt_node_unalloc(cx, s, rest);
			return AX_NOMEM;
		}
	}
	AX_POINT("art.prefix.before_lock");
	if (!rt_lock3(cx, AX_SITE_SPLIT, &P->g, g, NULL))
	{
		if (RT_TAG(r) == RT_LEAF)
			rt_free_private(cx, s, r);
		rt_node_unalloc(cx, s, top);
		rt_node_unalloc(cx, s, rest);
		*again = true;
		return AX_OK;
	}
	{
		rt_slot	slots[256];
		int			ns = rt_node_slots_get(N, slots);

		rt_node_fill(rest, slots, ns);
	}
	rt_node_add(top, prefix[m], 0, 0, rt_node_ref(rest));
	rt_node_add(top, key[d], 0, 0, r);
	if (RT_TAG(r) == RT_EMBED)
		AX_COUNT(cx, s, embedded, 1);
	rt_slot_set(s, P, key, rt_node_ref(top));
	AX_POINT("art.rowex.prefix");
	ax_guard_kill(cx, g);
	ax_guard_close(cx, &P->g, true);
	rt_node_retire(cx, s, N);
	return AX_OK;
}

/*
 * One descent.  *again: the key is not in, start over; *grew: because the tree has grown
 * for it, not because of anybody else.
 */
static ax_status
insert_pass(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			bool pess, bool *again, bool *grew)
{
	rt_at		G = {.hdr = NULL},
				P = {.hdr = NULL};
	ax_guard	N;
	rt_ref		ref;
	uint32_t	d = 0,
				level = 0;
	int			at;
	ax_status	x;

	*again = *grew = false;
	x = ax_retire_reserve(cx, 4);
	if (x != AX_OK)
		return x;
	x = ax_guard_open(cx, &P.g, &s->root_word, pess);
	if (x != AX_OK)
		return x;				/* the root is never obsolete: BUSY */

	for (;;)
	{
		ref = rt_slot_get(s, &P, key, &at);
		AX_POINT("art.hop.after_child_read");
		if (!ax_guard_valid(&P.g))
			goto over;
		if (ref == 0)
		{
			if (P.hdr)
			{
				x = insert_child(cx, s, key, len, fp, &G, &P, again, grew);
				if (x != AX_OK || *again || !*grew)
					goto out;

				/*
				 * On from the node, if it is none that went meanwhile: one
				 * that did not is where it was.  Every change of it validates
				 * the nodes above.
				 */
				*grew = false;
				AX_POINT("art.widened");
				x = ax_guard_open(cx, &P.g, &P.hdr->word, pess);
				if (x != AX_OK)
					goto stale;
				continue;
			}
			else
			{
				rt_ent		e = {key, len, fp};
				rt_ref		r = rt_leaf_new(cx, s, &e, 1, 0, 4, false);

				if (!r)
				{
					x = AX_NOMEM;
					goto out;
				}
				AX_POINT("art.root.before_lock");
				if (!rt_lock3(cx, AX_SITE_NODE_INSERT, &P.g, NULL, NULL))
				{
					rt_free_private(cx, s, r);
					goto over;
				}
				stref(&s->root, r);
				ax_guard_close(cx, &P.g, true);
				return AX_OK;
			}
		}
		if (RT_TAG(ref) == RT_LEAF)
		{
			rt_leaf   *l = RT_PTR(ref);
			uint32_t	ld_ = P.hdr ? P.d : 0;
			bool		there,
						room;

			rt_prefetch_leaf(ref);
			x = ax_guard_open_target(cx, s, &N, &l->word, pess);
			if (x != AX_OK)
				goto stale;
			AX_POINT("art.hop.after_child_version");
			if (!ax_guard_valid(&P.g))
			{
				ax_guard_close(cx, &N, false);
				goto over;
			}
			there = rt_leaf_find(l, key + ld_, len - ld_, fp) >= 0;
			room = !there && rt_leaf_room(l, len - ld_, rt_rowex(s));
			if (there)
			{
				bool		ok = ax_guard_valid(&N);

				ax_guard_close(cx, &N, false);
				if (!ok)
					goto over;
				x = AX_EXISTS;
				goto out;
			}
			if (room)
			{
				AX_POINT("art.leaf.before_lock");
				if (!ax_guard_lock_at(cx, &N, AX_SITE_LEAF_INSERT))
					goto over;
				(void) rt_leaf_put(l, key + ld_, len - ld_, fp, rt_rowex(s));
				ax_guard_close(cx, &N, true);
				x = AX_OK;
				goto out;
			}
			if (ax_guard_shared(&N) && !pess)
				ax_guard_close(cx, &N, false);	/* no latch while memory is taken */
			x = leaf_overflow(cx, s, key, len, fp, &G, &P, &N, ref, again);
			ax_guard_close(cx, &N, false);
			goto out;
		}
		if (RT_TAG(ref) == RT_EMBED)
		{
			/* the same columns: same row, or a duplicate that needs a leaf */
			uint64_t	tid = ax_tid_at(key + len);
			uint8_t		other[1 + AX_TID_BYTES];
			uint64_t	t = RT_EMBED_TID(ref);
			rt_ent		e[2];
			rt_ref		r;

			if (t == tid)
			{
				x = AX_EXISTS;
				goto out;
			}
			other[0] = key[P.d];
			for (int i = 0; i < AX_TID_BYTES; i++)
				other[1 + i] = (uint8_t) (t >> (40 - 8 * i));
			e[0].p = other;
			e[1].p = key + P.d;
			e[0].len = e[1].len = 1 + AX_TID_BYTES;
			e[0].fp = e[1].fp = fp;
			r = rt_leaf_new(cx, s, e, 2, 0, 4, false);
			if (!r)
			{
				x = AX_NOMEM;
				goto out;
			}
			AX_POINT("art.embed.before_lock");
			if (!rt_lock3(cx, AX_SITE_NODE_INSERT, &P.g, NULL, NULL))
			{
				rt_free_private(cx, s, r);
				goto over;
			}
			rt_node_set(P.hdr, key[P.d], r);
			AX_COUNT(cx, s, embedded, -1);
			ax_guard_close(cx, &P.g, true);
			x = AX_OK;
			goto out;
		}

		/* an inner node */
		{
			rt_hdr    *h = RT_PTR(ref);
			uint32_t	plen,
						m = 0;

			x = ax_guard_open(cx, &N, &h->word, pess);
			if (x != AX_OK)
				goto stale;
			AX_POINT("art.hop.after_child_version");
			if (!ax_guard_valid(&P.g))
			{
				ax_guard_close(cx, &N, false);
				goto over;
			}
			if (P.hdr)
				d = P.d + 1;
			plen = rt_ref_plen(ref);
			if (plen)
				m = rt_match(h, RT_TAG(ref), plen, key, len, d);
			if (m < plen)
			{
				x = split_prefix(cx, s, key, len, fp, &P, h, &N, d, m, again);
				ax_guard_close(cx, &N, false);
				goto out;
			}
			ax_guard_close(cx, &G.g, false);
			G = P;
			P.g = N;
			P.hdr = h;
			P.d = d + m;
			/* a hint for the planner: the longest path met */
			if (ax_unlikely(++level > ld(&s->height)))
				st(&s->height, level);
		}
	}

stale:
	/* the child went while its reference was read, or nobody let it go */
	if (x == AX_STALE)
	{
over:
		*again = true;
		x = AX_OK;
	}
out:
	ax_guard_close(cx, &G.g, false);
	ax_guard_close(cx, &P.g, false);
	return x;
}

/*
 * Insert a key: optimistically at first, with latches all the way after
 * AX_MAX_RESTARTS tries.
 *
 * Latches: none on entry and on return.
 * Returns: AX_BUSY or AX_NOMEM: nothing was changed.
 */
static ax_status
rt_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = rt_fp(key, len - AX_TID_BYTES);

	for (int tries = 0;; tries++)
	{
		bool		again,
					grew;
		ax_status	r = insert_pass(cx, s, key, len, fp, tries >= AX_MAX_RESTARTS, &again, &grew);

		if (!again)
		{
			if (r == AX_OK)
				AX_COUNT(cx, s, entries, 1);
			rt_heed_contention(cx, s, key, len);
			return r;
		}
		if (grew)
			ax_map_unshare_all();
		else
			ax_restarted(cx, s, tries);
	}
}

const ax_engine ax_engine_art_olc = {
	.structure = "art",
	.sync = "olc",
	.kind = AX_SYNC_OLC,
	.insert = rt_insert,
	.remove = rt_remove,
	.contains = rt_contains,
	.lookup = rt_lookup,
	.lookup_many = rt_lookup_many,
	.scan = rt_scan,
	.load = rt_load,
	.insert_sorted = rt_insert_sorted,
	.load_share = rt_load_share,
	.compact = rt_compact,
	.check = rt_check,
	.object_bytes = rt_object_bytes,
};

const ax_engine ax_engine_art_rowex = {
	.structure = "art",
	.sync = "rowex",
	.kind = AX_SYNC_ROWEX,
	.insert = rt_insert,
	.remove = rt_remove,
	.contains = rt_rowex_contains,
	.lookup = rt_rowex_lookup,
	.lookup_many = rt_rowex_lookup_many,
	.scan = rt_rowex_scan,
	.load = rt_load,
	.insert_sorted = rt_insert_sorted,
	.load_share = rt_load_share,
	.compact = rt_compact,
	.check = rt_check,
	.object_bytes = rt_object_bytes,
};

const ax_engine ax_engine_art_optiql = {
	.structure = "art",
	.sync = "optiql",
	.kind = AX_SYNC_OPTIQL,
	.insert = rt_insert,
	.remove = rt_remove,
	.contains = rt_contains,
	.lookup = rt_lookup,
	.lookup_many = rt_lookup_many,
	.scan = rt_scan,
	.load = rt_load,
	.insert_sorted = rt_insert_sorted,
	.load_share = rt_load_share,
	.compact = rt_compact,
	.check = rt_check,
	.object_bytes = rt_object_bytes,
	.settle = rt_settle,
};
