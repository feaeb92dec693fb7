/*
 * rt_rowex.c
 *	  The adaptive radix tree under read-optimized write exclusion: readers that
 *	  neither wait nor start over, and what that asks of the writers.  The readers
 *	  are in rt_lookup.c, rt_many.c and rt_scan.c, in the mode AX_ROWEX.
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
 *	leaf			an entry goes to a slot that never had one (rt_leaf.used), its
 *					bytes to heap that never held any; one store of the live
 *					bitmap publishes it, or takes it away.
 *
 * Writers descend and latch as those of optimistic latch coupling do, and from
 * the same code; what differs in a latched node is here.
 *
 * Why a key that is in the tree throughout is found, by a look-up and by a
 * scan.  An entry comes into a published leaf only by being inserted, and
 * leaves it only by being removed.  Else entries move from leaves that are
 * latched until they are obsolete into private ones.  A leaf that is cut and
 * stays (cut_leaf's kept) loses bytes of its range, but no entry.  A node or
 * leaf that a reader gets to was the key's place at some moment after the
 * reader began.  If the node that the reference was read from was in the tree
 * then, it was at that moment.  Else it was when that node was frozen, which
 * was after the reader got to it.  The entry was in that place then.  If the place
 * was frozen since, the entry is in it still.  If not, only its removal could take
 * it out.  And what is found in a leaf was in the tree at that moment, or when the
 * leaf was frozen.
 *
 * A child of a frozen node was in the tree when that was frozen, hence retired
 * later.  So it is not reused before the reader leaves its epoch.
 *
 * And scans: one load of the live bitmap gives all entries of the leaf's range
 * of that moment, which is contiguous.  When that has grown, over bytes where
 * nothing was, places further on may hold older entries of the same bytes.  Each
 * was removed since the scan began.  Entries that do not lie beyond the last key
 * returned are skipped.
 *
 * Calls that last.  An insertion that cuts or hangs a leaf changes the bytes of the
 * leaf's range one by one, and a removal of a leaf does so, too.  A look-up of the entry
 * goes by the byte of its key, a scan by the first byte of the range, or the last, and a
 * look-up of a value that several entries have is a scan.  So while the call lasts,
 * a scan may find the entry after a look-up did not, or the other way round.  When the
 * call has returned, all agree.  PostgreSQL relies on no more: nobody sees a row before
 * its insertion ends, and VACUUM removes entries only of rows that nobody sees.
 * [test_schedules: it met this, allows it, and nothing else]
 *
 * src/core/radix/README.md: ROWEX
 */
#include "rt_olc.h"
#include "core/base/ax_call.h"

void
rt_open_rowex(ax_store *s)
{
	rt_own_of(s)->rowex = true;
}

/* ---- writers: a latched node that readers may be in ------------------------ */

/*
 * Kept free when a Node48 is copied to have free slots again: with fewer it
 * would be copied soon after, so it becomes a Node256.
 */
#define SPARE48 4

/* The kind of a copy that has room for so many children. */
static unsigned
copied_kind(rt_hdr *h, int children)
{
	unsigned	kind = h->kind;

	if (kind == RT_N48)
		return children > 48 - SPARE48 ? RT_N256 : RT_N48;
	while (kind < RT_N256 && children > rt_node_slots(kind))
		kind++;
	return kind;
}

/* Are n slots of a Node48 left that never had a child?  They lie at the end. */
static inline bool
has_fresh48(rt_hdr *h, int n)
{
	return n == 0 || (n <= 48 && ld(&((rt_n48 *) h)->child[48 - n]) == 0);
}

unsigned
rt_rowex_copy_add(rt_hdr *h, uint8_t c, rt_ref r)
{
	int			at;

	if (h->kind == RT_N256 || (h->kind == RT_N48 && has_fresh48(h, 1)))
		return 0;
	if (h->kind <= RT_N16)
	{
		(void) rt_find(h, h->kind, c, &at);
		if (at >= 0)
		{
			uint8_t		sep = h->kind == RT_N4 ? rt_n4_sep((rt_n4 *) h, at) : rt_n16_sep((rt_n16 *) h, at);
			rt_ref		old = ldref(h->kind == RT_N4 ? &((rt_n4 *) h)->child[at] : &((rt_n16 *) h)->child[at]);

			/* a hole: a leaf takes all of its range */
			if (old == 0 && (RT_TAG(r) == RT_LEAF || sep == c))
				return 0;
		}
	}
	return copied_kind(h, rt_node_children(h) + 1);
}

void
rt_rowex_add(rt_hdr *h, uint8_t c, int lo, int hi, rt_ref r)
{
	if (h->kind <= RT_N16)
		rt_node_set(h, c, r);
	else
		rt_node_add(h, c, lo, hi, r);
}

void
rt_rowex_clear(rt_hdr *h, uint8_t c)
{
	int			lo,
				hi;

	if (h->kind <= RT_N16)
		rt_node_set(h, c, 0);
	else if (h->kind == RT_N256)
		rt_node_del(h, c);
	else
	{
		rt_node_range(h, c, &lo, &hi);
		for (int x = lo; x <= hi; x++)
		{
			AX_POINT("art.rowex.range");
			st(&((rt_n48 *) h)->index[x], 0);
		}
		st(&h->count, (uint16_t) (ld(&h->count) - 1));
	}
}

unsigned
rt_rowex_copy(rt_hdr *h, uint8_t c, const rt_piece *p, int np, rt_ref kept)
{
	const bool	leaf = np == 1 && RT_TAG(p[0].r) == RT_LEAF;
	int			at;

	if (leaf || h->kind == RT_N256 || (h->kind == RT_N48 && has_fresh48(h, np - (kept != 0))))
		return 0;
	if (np == 1 && h->kind <= RT_N16)
	{
		(void) rt_find(h, h->kind, c, &at);
		if (at >= 0 && p[0].lo == (h->kind == RT_N4 ? rt_n4_sep((rt_n4 *) h, at) :
								   rt_n16_sep((rt_n16 *) h, at)))
			return 0;
	}
	return copied_kind(h, rt_node_children(h) + np - 1);
}

/*
 * The pieces in the place of the leaf that covers c: one by one byte by byte,
 * each store right for its byte.  (The old leaf, latched, has all there is.)
 */
void
rt_rowex_place(rt_hdr *h, uint8_t c, const rt_piece *p, int np, rt_ref kept)
{
	uint8_t		slot[48];
	int			lo,
				hi,
				i = 0;

	if (h->kind <= RT_N16 || (np == 1 && RT_TAG(p[0].r) == RT_LEAF))
	{
		rt_node_set(h, c, p[0].r);
		return;
	}
	rt_node_range(h, c, &lo, &hi);
	if (h->kind == RT_N48)
	{
		rt_n48    *q = (rt_n48 *) h;
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
		leaf = RT_TAG(p[i].r) == RT_LEAF;
		mine = leaf || x == p[i].lo;
		AX_POINT("art.rowex.place");
		if (h->kind == RT_N256)
			stref(&((rt_n256 *) h)->child[x], mine ? p[i].r : 0);
		else
			atomic_store_explicit(&((rt_n48 *) h)->index[x], mine ? (uint8_t) (slot[i] + 1) : 0,
								  memory_order_release);
	}
	st(&h->count, (uint16_t) (ld(&h->count) + np - 1));
}
