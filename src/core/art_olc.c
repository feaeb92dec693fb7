/*
 * art_olc.c
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
 * could not bear what is done in place, they copy (art_rowex.c).
 */
#include "art_olc.h"

/*
 * The kind of the copy that takes node h's place if it is to get another child
 * at byte c; 0: it goes in as it is.
 */
static inline unsigned
kind_for_child(ax_store *s, art_hdr *h, uint8_t c, art_ref r)
{
	if (art_rowex(s))
		return art_rowex_copy_add(h, c, r);
	/* never a Node256: had it no place, the caller's snapshot is not valid */
	return h->kind != ART_N256 && ld(&h->count) >= art_node_slots(h->kind) ? h->kind + 1u : 0;
}

/*
 * Where in the byte range of leaf L (entries e[0..n), sorted, the new key
 * among them at index me) to split: e[0..*k) stay left of byte *sb.
 */
static void
choose_split(const art_ent *e, int n, uint32_t d, int me, int *k, uint8_t *sb)
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
cut_leaf(ax_ctx *cx, ax_store *s, const art_ent *e, int n, int me, art_ref old,
		 art_piece *p, art_ref *kept)
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
		p[1].r = art_leaf_new(cx, s, e + me, 1, 0, 4, false);
		return p[1].r ? 2 : 0;
	}
	if (art_leaf_fits(e, (uint64_t) k, 0) && art_leaf_fits(e + k, (uint64_t) (n - k), 0))
	{
		p[0].r = art_leaf_new(cx, s, e, k, 0, art_leaf_stepcap(k + 1), false);
		p[1].r = p[0].r ? art_leaf_new(cx, s, e + k, n - k, 0, art_leaf_stepcap(n - k + 1), false) : 0;
		if (p[1].r)
			return 2;
		art_drop_pieces(cx, s, p, 2, 0);
		return 0;
	}
	return art_cut(cx, s, e, n, ART_LEAF_MAX, p);
}

/*
 * The leaf has no room in place: a bigger one, several of them, or a node
 * below.  Everything is built privately from a validated copy, then published.
 */
static ax_status
leaf_overflow(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			  art_at *G, art_at *P, ax_guard *L, art_ref old, bool *again)
{
	uint8_t		buf[ART_VAR_BYTES];
	art_ent		e[ART_LEAF_MAX + 1];
	art_piece	p[ART_LEAF_MAX + 1];
	uint32_t	d = P->hdr ? P->d : 0;
	art_ref		kept = 0;
	int			n,
				me,
				np;

	/* entries count from depth d: e.p[0] is the byte at d */
	n = art_leaf_ents(ART_PTR(old), e, buf);
	if (!ax_guard_valid(L))
	{
		*again = true;
		return AX_OK;
	}
	e[n].p = key + d;
	e[n].len = len - d;
	e[n].fp = fp;
	n++;
	art_sort_ents(e, n);
	for (me = 0; e[me].p != key + d; me++)
		;

	if (P->hdr && e[0].p[0] != e[n - 1].p[0] && !art_leaf_fits(e, (uint64_t) n, 0))
		np = cut_leaf(cx, s, e, n, me, old, p, &kept);
	else
	{
		/* slots that are used up though free tell of removals: more will come */
		bool		worn = art_rowex(s) && ld(&((art_leaf *) ART_PTR(old))->used) >= n;

		/* keys that come in order leave full leaves behind */
		np = art_one_piece(cx, s, e, n, P->hdr != NULL, art_leaf_stepcap(worn ? n + 4 : n),
						   me == n - 1 ? ART_LEAF_MAX : 17, p);
	}
	if (np == 0)
		return AX_NOMEM;
	return art_publish(cx, s, key, G, P, L, old, p, np, kept, again);
}

/*
 * No slot covers the key's byte in node P: widen a neighbouring leaf over the
 * gap (*grew: then the caller finds it, in P or, under ROWEX, in P's copy, with *again),
 * or hang a new child.
 */
static ax_status
insert_child(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			 art_at *G, art_at *P, bool *again, bool *grew)
{
	art_hdr    *h = P->hdr;
	uint32_t	d = P->d;
	uint8_t		c = key[d];
	int			lo = c,
				hi = c,
				at;
	unsigned	kind;
	art_ref		r;
	art_hdr    *grown = NULL;
	art_ent		e;

	if (len - (d + 1) == AX_TID_BYTES)
		r = ART_EMBED_REF(ax_tid_at(key + len));
	else
	{
		/* the gap around c, and a leaf beside it */
		art_ref		beside = 0;
		int			bc = 0;

		if (h->kind <= ART_N16)
		{
			int			n = ld(&h->count);

			(void) art_find(h, h->kind, c, &at);
			/* a hole (ROWEX) takes a leaf where it is */
			if (at + 1 < n && at + 1 < art_node_slots(h->kind) && !art_rowex_hole(s, h, at))
			{
				beside = ldref(h->kind == ART_N4 ? &((art_n4 *) h)->child[at + 1] :
							   &((art_n16 *) h)->child[at + 1]);
				if (ART_TAG(beside) != ART_LEAF)
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
				if (art_rowex(s))
				{
					/* separators do not move: a copy of the node has the range */
					if (!art_leaf_room(ART_PTR(beside), len - d, true) &&
						((art_leaf *) ART_PTR(beside))->cap >= ART_LEAF_MAX)
						goto fresh;
					*again = true;
					grown = art_node_new(cx, s, h->kind, art_prefix(h), h->plen, false);
					if (!grown)
					{
						*again = false;
						return AX_NOMEM;
					}
					AX_POINT("art.widen.before_lock");
					if (!art_lock3(cx, AX_SITE_NODE_INSERT, &G->g, &P->g, NULL))
					{
						art_node_unalloc(cx, s, grown);
						return AX_OK;
					}
					bc = h->kind == ART_N4 ? art_n4_sep((art_n4 *) h, at + 1) : art_n16_sep((art_n16 *) h, at + 1);
					art_fill_grown(h, grown);
					art_node_del(grown, (uint8_t) bc);
					art_node_add(grown, c, 0, 0, beside);
					art_publish_grown(cx, s, key, G, P, grown);
					*grew = true;
					return AX_OK;
				}
				x = ax_guard_open(cx, &L, &((art_leaf *) ART_PTR(beside))->word, P->g.held);
				if (x == AX_BUSY)
					return x;
				/* a full leaf is better left alone: it would split at once */
				if (x == AX_OK && !art_leaf_room(ART_PTR(beside), len - d, false) &&
					((art_leaf *) ART_PTR(beside))->cap >= ART_LEAF_MAX)
				{
					ax_guard_close(cx, &L, false);
					goto fresh;
				}
				*again = true;
				if (x != AX_OK)
					return AX_OK;
				AX_POINT("art.widen.before_lock");
				if (!art_lock3(cx, AX_SITE_NODE_INSERT, &P->g, &L, NULL))
					return AX_OK;
				bc = h->kind == ART_N4 ? art_n4_sep((art_n4 *) h, at + 1) : art_n16_sep((art_n16 *) h, at + 1);
				art_node_del(h, (uint8_t) bc);
				art_node_add(h, c, 0, 0, beside);
				ax_guard_close(cx, &L, true);
				ax_guard_close(cx, &P->g, true);
				*again = false;
				*grew = true;
				return AX_OK;
			}
		}
		else
		{
#define SLOT(x) (h->kind == ART_N48 ? (art_ref) ld(&((art_n48 *) h)->index[x]) : ldref(&((art_n256 *) h)->child[x]))
			while (lo > 0 && !SLOT(lo - 1))
				lo--;
			while (hi < 255 && !SLOT(hi + 1))
				hi++;
			for (int side = 0; side < 2 && !beside; side++)
			{
				bc = side == 0 ? lo - 1 : hi + 1;
				if (bc < 0 || bc > 255)
					continue;
				beside = art_find(h, h->kind, (uint8_t) bc, &at);
				if (ART_TAG(beside) != ART_LEAF)
					beside = 0;
			}
#undef SLOT
			if (beside)
			{
				/* the range only grows over bytes nobody covers: no need to
				 * latch the leaf (see the head of the file) */
				*again = true;
				AX_POINT("art.widen.before_lock");
				if (!art_lock3(cx, AX_SITE_NODE_INSERT, &P->g, NULL, NULL))
					return AX_OK;
				for (int x = lo; x <= hi; x++)
				{
					AX_POINT("art.rowex.range");
					/* release: ROWEX reads the slot behind it, which others may have stored */
					if (h->kind == ART_N48)
						atomic_store_explicit(&((art_n48 *) h)->index[x], (uint8_t) (at + 1),
											  memory_order_release);
					else
						stref(&((art_n256 *) h)->child[x], beside);
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
		r = art_leaf_new(cx, s, &e, 1, 0, 4, false);
		if (!r)
			return AX_NOMEM;
	}

	AX_POINT("art.child.before_room");
	kind = kind_for_child(s, h, c, r);
	if (kind)
	{
		grown = art_node_new(cx, s, kind, art_prefix(h), h->plen, false);
		if (!grown)
		{
			if (ART_TAG(r) == ART_LEAF)
				art_free_private(cx, s, r);
			return AX_NOMEM;
		}
	}
	AX_POINT("art.child.before_lock");
	if (!art_lock3(cx, AX_SITE_NODE_INSERT, grown ? &G->g : NULL, &P->g, NULL))
	{
		if (ART_TAG(r) == ART_LEAF)
			art_free_private(cx, s, r);
		if (grown)
			art_node_unalloc(cx, s, grown);
		*again = true;
		return AX_OK;
	}
	if (grown)
	{
		art_fill_grown(h, grown);
		h = grown;
	}
	/* in Node4/16 a fresh leaf covers up to the next separator */
	if (!grown && art_rowex(s))
		art_rowex_add(h, c, lo, hi, r);
	else
		art_node_add(h, c, lo, hi, r);
	if (ART_TAG(r) == ART_EMBED)
		AX_COUNT(cx, s, embedded, 1);
	if (grown)
		art_publish_grown(cx, s, key, G, P, grown);
	else
		ax_guard_close(cx, &P->g, true);
	return AX_OK;
}

/*
 * The key leaves node N (guard g, depth off of its prefix) at prefix byte m:
 * a Node4 with the common part over a copy of N with the rest, and a leaf.
 * Headers are immutable, so readers never see a prefix that moves.
 */
static ax_status
split_prefix(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint8_t fp,
			 art_at *P, art_hdr *N, ax_guard *g, uint32_t off, uint32_t m, bool *again)
{
	const uint8_t *prefix = art_prefix(N);
	uint32_t	d = off + m;
	art_hdr    *top,
			   *rest;
	art_ref		r;

	top = art_node_new(cx, s, ART_N4, prefix, m, false);
	if (!top)
		return AX_NOMEM;
	rest = art_node_new(cx, s, N->kind, prefix + m + 1, N->plen - m - 1, false);
	if (!rest)
	{
		art_node_unalloc(cx, s, top);
		return AX_NOMEM;
	}
	if (len - (d + 1) == AX_TID_BYTES)
		r = ART_EMBED_REF(ax_tid_at(key + len));
	else
	{
		art_ent		e = {key + d, len - d, fp};

		r = art_leaf_new(cx, s, &e, 1, 0, 4, false);
		if (!r)
		{
			art_node_unalloc(cx, s, top);
			art_node_unalloc(cx, s, rest);
			return AX_NOMEM;
		}
	}
	AX_POINT("art.prefix.before_lock");
	if (!art_lock3(cx, AX_SITE_SPLIT, &P->g, g, NULL))
	{
		if (ART_TAG(r) == ART_LEAF)
			art_free_private(cx, s, r);
		art_node_unalloc(cx, s, top);
		art_node_unalloc(cx, s, rest);
		*again = true;
		return AX_OK;
	}
	{
		art_slot	slots[256];
		int			ns = art_node_slots_get(N, slots);

		art_node_fill(rest, slots, ns);
	}
	art_node_add(top, prefix[m], 0, 0, art_node_ref(rest));
	art_node_add(top, key[d], 0, 0, r);
	if (ART_TAG(r) == ART_EMBED)
		AX_COUNT(cx, s, embedded, 1);
	art_slot_set(s, P, key, art_node_ref(top));
	AX_POINT("art.rowex.prefix");
	ax_guard_kill(cx, g);
	ax_guard_close(cx, &P->g, true);
	art_node_retire(cx, s, N);
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
	art_at		G = {.hdr = NULL},
				P = {.hdr = NULL};
	ax_guard	N;
	art_ref		ref;
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
		ref = art_slot_get(s, &P, key, &at);
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
				 * On from the node, if it is none that went meanwhile: one that did not
				 * is where it was.  Whatever changes it validates what is above.
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
				art_ent		e = {key, len, fp};
				art_ref		r = art_leaf_new(cx, s, &e, 1, 0, 4, false);

				if (!r)
				{
					x = AX_NOMEM;
					goto out;
				}
				AX_POINT("art.root.before_lock");
				if (!art_lock3(cx, AX_SITE_NODE_INSERT, &P.g, NULL, NULL))
				{
					art_free_private(cx, s, r);
					goto over;
				}
				stref(&s->root, r);
				ax_guard_close(cx, &P.g, true);
				return AX_OK;
			}
		}
		if (ART_TAG(ref) == ART_LEAF)
		{
			art_leaf   *l = ART_PTR(ref);
			uint32_t	ld_ = P.hdr ? P.d : 0;
			bool		there,
						room;

			art_prefetch_leaf(ref);
			x = ax_guard_open_target(cx, s, &N, &l->word, pess);
			if (x != AX_OK)
				goto stale;
			AX_POINT("art.hop.after_child_version");
			if (!ax_guard_valid(&P.g))
			{
				ax_guard_close(cx, &N, false);
				goto over;
			}
			there = art_leaf_find(l, key + ld_, len - ld_, fp) >= 0;
			room = !there && art_leaf_room(l, len - ld_, art_rowex(s));
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
				(void) art_leaf_put(l, key + ld_, len - ld_, fp, art_rowex(s));
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
		if (ART_TAG(ref) == ART_EMBED)
		{
			/* the same columns: same row, or a duplicate that needs a leaf */
			uint64_t	tid = ax_tid_at(key + len);
			uint8_t		other[1 + AX_TID_BYTES];
			uint64_t	t = ART_EMBED_TID(ref);
			art_ent		e[2];
			art_ref		r;

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
			r = art_leaf_new(cx, s, e, 2, 0, 4, false);
			if (!r)
			{
				x = AX_NOMEM;
				goto out;
			}
			AX_POINT("art.embed.before_lock");
			if (!art_lock3(cx, AX_SITE_NODE_INSERT, &P.g, NULL, NULL))
			{
				art_free_private(cx, s, r);
				goto over;
			}
			art_node_set(P.hdr, key[P.d], r);
			AX_COUNT(cx, s, embedded, -1);
			ax_guard_close(cx, &P.g, true);
			x = AX_OK;
			goto out;
		}

		/* an inner node */
		{
			art_hdr    *h = ART_PTR(ref);
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
			plen = art_ref_plen(ref);
			if (plen)
				m = art_match(h, ART_TAG(ref), plen, key, len, d);
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

static ax_status
art_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = art_fp(key, len - AX_TID_BYTES);

	for (int tries = 0;; tries++)
	{
		bool		again,
					grew;
		ax_status	r = insert_pass(cx, s, key, len, fp, tries >= AX_MAX_RESTARTS, &again, &grew);

		if (!again)
		{
			if (r == AX_OK)
				AX_COUNT(cx, s, entries, 1);
			art_heed_contention(cx, s, key, len);
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
	.insert = art_insert,
	.remove = art_remove,
	.contains = art_contains,
	.lookup = art_lookup,
	.lookup_many = art_lookup_many,
	.scan = art_scan,
	.load = art_load,
	.insert_sorted = art_insert_sorted,
	.load_share = art_load_share,
	.compact = art_compact,
	.check = art_check,
	.object_bytes = art_object_bytes,
};

const ax_engine ax_engine_art_rowex = {
	.structure = "art",
	.sync = "rowex",
	.kind = AX_SYNC_ROWEX,
	.insert = art_insert,
	.remove = art_remove,
	.contains = art_rowex_contains,
	.lookup = art_rowex_lookup,
	.lookup_many = art_rowex_lookup_many,
	.scan = art_rowex_scan,
	.load = art_load,
	.insert_sorted = art_insert_sorted,
	.load_share = art_load_share,
	.compact = art_compact,
	.check = art_check,
	.object_bytes = art_object_bytes,
};

const ax_engine ax_engine_art_optiql = {
	.structure = "art",
	.sync = "optiql",
	.kind = AX_SYNC_OPTIQL,
	.insert = art_insert,
	.remove = art_remove,
	.contains = art_contains,
	.lookup = art_lookup,
	.lookup_many = art_lookup_many,
	.scan = art_scan,
	.load = art_load,
	.insert_sorted = art_insert_sorted,
	.load_share = art_load_share,
	.compact = art_compact,
	.check = art_check,
	.object_bytes = art_object_bytes,
	.settle = art_settle,
};
