/*
 * art_rowex.c
 *	  The adaptive radix tree under read-optimized write exclusion: readers that
 *	  neither wait nor start over, and what that asks of the writers.
 *
 * The protocol of Leis et al., "The ART of Practical Synchronization" (DaMoN
 * 2016), section 4, over nodes whose headers are immutable.  A reader loads
 * each child reference once, follows it, and looks at no version; it stores
 * nothing but its epoch.  So every store of a writer must by itself take the
 * tree from one right state to another, for each key:
 *
 *	Node4, Node16	separators and their number never change.  A child is
 *					replaced in place by what hangs at the same separator;
 *					removed, it leaves a hole (0), which a leaf may fill again.
 *					All else is a copy of the node, published above it.
 *	Node48			a slot is stored before the first index byte that says so,
 *					and stays: what is replaced by something of another range
 *					of bytes, or removed, keeps its slot, for a reader may have
 *					read the index and not yet the slot.  The index changes byte
 *					by byte.  No slot left: a copy.
 *	Node256			a leaf's range changes byte by byte.
 *	leaf			an entry goes to a slot that never had one (art_leaf.used), its
 *					bytes to heap that never held any; one store of the live
 *					bitmap publishes it, or takes it away.
 *
 * Writers descend and latch as those of optimistic latch coupling do, and from
 * the same code; what differs in a latched node is here.
 *
 * Why a key that is in the tree throughout is found, by a look-up and by a scan:
 * an entry comes into a published leaf only by being inserted, and leaves it
 * only by being removed.  Else entries move from leaves that are latched until
 * they are obsolete into private ones; a leaf that is cut and stays (cut_leaf's
 * kept) loses bytes of its range, but no entry.  A node or leaf that a reader
 * gets to was the key's place at some moment after the reader began: it was when
 * the reference was read, if the node it was read from was in the tree then, and
 * else when that node was frozen, which was after the reader got to it.  The
 * entry was in that place then; if the place was frozen since, the entry is in it
 * still; if not, only its removal could take it out.  And what is found in a leaf
 * was in the tree at that moment, or when the leaf was frozen.
 *
 * What a frozen node points to was in the tree when it was frozen, hence
 * retired later, hence is not reused before the reader leaves its epoch.
 *
 * And scans: one load of the live bitmap gives all entries of the leaf's
 * range of that moment, which is contiguous.  When it has grown (over bytes
 * where nothing was), places further on may hold older entries of the same
 * bytes, each removed since the scan began; whatever does not lie beyond the
 * last key returned is skipped.
 */
#define ROWEX true
#include "art_scan_impl.h"
#include "ax_call.h"

/* ---- writers: a latched node that readers may be in ------------------------ */

/*
 * Kept free when a Node48 is copied to have free slots again: with fewer it
 * would be copied soon after, so it becomes a Node256.
 */
#define SPARE48 4

static unsigned
copied_kind(art_hdr *h, int children)
{
	unsigned	kind = h->kind;

	if (kind == ART_N48)
		return children > 48 - SPARE48 ? ART_N256 : ART_N48;
	while (kind < ART_N256 && children > art_node_slots(kind))
		kind++;
	return kind;
}

/* Are n slots of a Node48 left that never had a child?  They lie at the end. */
static inline bool
has_fresh48(art_hdr *h, int n)
{
	return n == 0 || (n <= 48 && ld(&((art_n48 *) h)->child[48 - n]) == 0);
}

/*
 * Of what kind must the copy of h be, into which r is to be hung where byte c
 * has no child?  0: h takes it in place.  Racy: decided for good by the latch.
 */
unsigned
art_rowex_copy_add(art_hdr *h, uint8_t c, art_ref r)
{
	int			at;

	if (h->kind == ART_N256 || (h->kind == ART_N48 && has_fresh48(h, 1)))
		return 0;
	if (h->kind <= ART_N16)
	{
		(void) art_find(h, h->kind, c, &at);
		if (at >= 0)
		{
			uint8_t		sep = h->kind == ART_N4 ? art_n4_sep((art_n4 *) h, at) : art_n16_sep((art_n16 *) h, at);
			art_ref		old = ldref(h->kind == ART_N4 ? &((art_n4 *) h)->child[at] : &((art_n16 *) h)->child[at]);

			/* a hole: a leaf takes all of its range */
			if (old == 0 && (ART_TAG(r) == ART_LEAF || sep == c))
				return 0;
		}
	}
	return copied_kind(h, art_node_children(h) + 1);
}

/* Hang r in h, which has room for it in place; lo, hi as of art_node_add. */
void
art_rowex_add(art_hdr *h, uint8_t c, int lo, int hi, art_ref r)
{
	if (h->kind <= ART_N16)
		art_node_set(h, c, r);
	else
		art_node_add(h, c, lo, hi, r);
}

/* Take away what covers c; needs no memory. */
void
art_rowex_clear(art_hdr *h, uint8_t c)
{
	int			lo,
				hi;

	if (h->kind <= ART_N16)
		art_node_set(h, c, 0);
	else if (h->kind == ART_N256)
		art_node_del(h, c);
	else
	{
		art_node_range(h, c, &lo, &hi);
		for (int x = lo; x <= hi; x++)
		{
			AX_POINT("art.rowex.range");
			st(&((art_n48 *) h)->index[x], 0);
		}
		st(&h->count, (uint16_t) (ld(&h->count) - 1));
	}
}

/* As art_rowex_copy_add, for the pieces in the place of the leaf that covers c. */
unsigned
art_rowex_copy(art_hdr *h, uint8_t c, const art_piece *p, int np, art_ref kept)
{
	const bool	leaf = np == 1 && ART_TAG(p[0].r) == ART_LEAF;
	int			at;

	if (leaf || h->kind == ART_N256 || (h->kind == ART_N48 && has_fresh48(h, np - (kept != 0))))
		return 0;
	if (np == 1 && h->kind <= ART_N16)
	{
		(void) art_find(h, h->kind, c, &at);
		if (at >= 0 && p[0].lo == (h->kind == ART_N4 ? art_n4_sep((art_n4 *) h, at) :
								   art_n16_sep((art_n16 *) h, at)))
			return 0;
	}
	return copied_kind(h, art_node_children(h) + np - 1);
}

/*
 * The pieces in the place of the leaf that covers c: one by one byte by byte,
 * each store right for its byte.  (The old leaf, latched, has all there is.)
 */
void
art_rowex_place(art_hdr *h, uint8_t c, const art_piece *p, int np, art_ref kept)
{
	uint8_t		slot[48];
	int			lo,
				hi,
				i = 0;

	if (h->kind <= ART_N16 || (np == 1 && ART_TAG(p[0].r) == ART_LEAF))
	{
		art_node_set(h, c, p[0].r);
		return;
	}
	art_node_range(h, c, &lo, &hi);
	if (h->kind == ART_N48)
	{
		art_n48    *q = (art_n48 *) h;
		int			fresh = ld(&h->count) - 1;

		for (int k = 0; k < np; k++)
		{
			if (kept && p[k].r == kept)
			{
				slot[k] = (uint8_t) (ld(&q->index[c]) - 1);
				continue;
			}
			while (ld(&q->child[fresh]) != 0)
				fresh++;
			stref(&q->child[fresh], p[k].r);
			slot[k] = (uint8_t) fresh;
		}
	}
	for (int x = lo; x <= hi; x++)
	{
		bool		leaf,
					mine;

		while (i + 1 < np && x >= p[i + 1].lo)
			i++;
		/* nothing is beside what is exact */
		leaf = ART_TAG(p[i].r) == ART_LEAF;
		mine = leaf || x == p[i].lo;
		AX_POINT("art.rowex.place");
		if (h->kind == ART_N256)
			stref(&((art_n256 *) h)->child[x], mine ? p[i].r : 0);
		else
			atomic_store_explicit(&((art_n48 *) h)->index[x], mine ? (uint8_t) (slot[i] + 1) : 0,
								  memory_order_release);
	}
	st(&h->count, (uint16_t) (ld(&h->count) + np - 1));
}

/*
 * ---- readers ----
 *
 * Their pause points have the names that they have under optimistic latch
 * coupling, where the child's version is sampled: so the same test goes through
 * them (test_races).
 */

ax_status
art_rowex_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = art_fp(key, len - AX_TID_BYTES);
	art_ref		ref = ldref(&s->root);
	uint32_t	d = 0;
	int			at;

	for (;;)
	{
		AX_POINT("art.contains.after_child_read");
		if (ART_IS_NODE(ref))
		{
			art_hdr    *h = ART_PTR(ref);

			AX_POINT("art.contains.after_child_version");
			if (art_match_prefix(h, key, len, d) < h->plen)
				return AX_NOTFOUND;
			d += h->plen;
			ref = art_find(h, ART_TAG(ref), key[d], &at);
			if (ART_TAG(ref) != ART_LEAF)
				d++;
			continue;
		}
		if (ART_TAG(ref) == ART_LEAF)
		{
			bool		there;

			art_prefetch_leaf(ref);
			AX_POINT("art.contains.after_child_version");
			there = art_leaf_find(ART_PTR(ref), key + d, len - d, fp) >= 0;
			AX_POINT("art.contains.leaf_read");
			return there ? AX_OK : AX_NOTFOUND;
		}
		return ref && ART_EMBED_TID(ref) == ax_tid_at(key + len) ? AX_OK : AX_NOTFOUND;
	}
}

/* See art_lookup. */
ax_status
art_rowex_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
				 uint64_t *tids, uint32_t max, uint32_t *n, bool *more)
{
	art_ref		ref = ldref(&s->root);
	uint32_t	d = 0,
				k;

	*n = 0;
	*more = false;
	while (ART_IS_NODE(ref))
	{
		art_hdr    *h = ART_PTR(ref);
		uint32_t	plen;

		AX_POINT("art.lookup.after_child_read");
		AX_POINT("art.lookup.after_child_version");
		plen = art_ref_plen(ref);
		if (plen)
		{
			uint32_t	m = art_match(h, ART_TAG(ref), plen, prefix, len, d);

			if (m < plen && m < len - d)
				return AX_OK;
			d += plen;
		}
		if (ax_unlikely(d >= len))
			goto scan;
		ref = art_child(h, ART_TAG(ref), prefix[d]);
		if (ART_TAG(ref) == ART_LEAF)
			break;
		d++;
		if (ART_TAG(ref) == ART_EMBED)
		{
			if (ax_unlikely(d != len))
				goto scan;
			if (max == 0)
				*more = true;
			else
				tids[(*n)++] = ART_EMBED_TID(ref);
			return AX_OK;
		}
	}
	if (ref == 0)
	{
		AX_POINT("art.lookup.absent");
		return AX_OK;
	}
	art_prefetch_leaf(ref);
	AX_POINT("art.lookup.after_child_read");
	AX_POINT("art.lookup.after_child_version");
	k = art_leaf_tids(ART_PTR(ref), prefix + d, len - d, art_fp(prefix, len), tids, max);
	AX_POINT("art.lookup.leaf_read");
	if (k > max)
		goto scan;				/* which are the first needs order */
	art_sort_tids(tids, k);
	*n = k;
	return AX_OK;

scan:
	return ax_lookup_scan(cx, s, prefix, len, tids, max, n, more);
}

ax_status
art_rowex_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	return scan_batch(cx, s, b);
}
