/*
 * rt_olc.h
 *	  What the files of the radix tree share, whose writers all use optimistic
 *	  latch coupling: places on a descent, publishing, prefetching.
 *
 * src/core/radix/README.md: The tree
 * src/core/radix/README.md: Races
 */
#ifndef RT_OLC_H
#define RT_OLC_H

#include "radix.h"
#include "rt_node.h"
#include "core/elide/ax_guard.h"

/* A node on the way, and where in it the key goes on. */
typedef struct rt_at
{
	ax_guard	g;
	rt_hdr    *hdr;			/* NULL: the root pseudo-node, whose only slot is
								 * store->root and consumes no byte */
	uint32_t	d;				/* depth of the byte it decides on */
} rt_at;

/* Replace what hangs where key goes at p (latched). */
static inline void
rt_slot_set(ax_store *s, rt_at *p, const uint8_t *key, rt_ref r)
{
	if (!p->hdr)
		stref(&s->root, r);
	else
		rt_node_set(p->hdr, key[p->d], r);
}

static inline rt_own *
rt_own_of(const ax_store *s)
{
	return (rt_own *) (uintptr_t) s->own;
}

/* Do writers keep the rules that the readers of ROWEX impose: see rt_rowex.c? */
static inline bool
rt_rowex(const ax_store *s)
{
	return rt_own_of(s)->rowex;
}

/* The pieces that take the place of a leaf under its parent. */
typedef struct rt_piece
{
	rt_ref		r;
	uint8_t		lo;				/* first byte value */
} rt_piece;

/*
 * For ROWEX: r is to be hung where byte c has no child.  Racy: the latch decides for
 * good.
 *
 * Returns: the kind of the copy that takes h's place, 0: h takes it in place.
 */
extern unsigned rt_rowex_copy_add(rt_hdr *h, uint8_t c, rt_ref r);

/* Hang r in latched h, which has room for it in place; lo, hi as of rt_node_add(). */
extern void rt_rowex_add(rt_hdr *h, uint8_t c, int lo, int hi, rt_ref r);

/* Take away the child that covers c in latched h; needs no memory. */
extern void rt_rowex_clear(rt_hdr *h, uint8_t c);

/*
 * As rt_rowex_copy_add(), for np pieces in the place of the leaf that covers c; kept:
 * one that stays, or 0.
 */
extern unsigned rt_rowex_copy(rt_hdr *h, uint8_t c, const rt_piece *p, int np, rt_ref kept);

/*
 * Store the pieces in the place of the leaf that covers c, byte by byte, each store
 * right for its byte.
 *
 * Latches: h's and the leaf's are held.
 */
extern void rt_rowex_place(rt_hdr *h, uint8_t c, const rt_piece *p, int np, rt_ref kept);

/* Is slot i of Node4/16 a hole: a separator with nothing behind it?  Racy. */
static inline bool
rt_rowex_hole(const ax_store *s, rt_hdr *h, int i)
{
	return rt_rowex(s) && i >= 0 &&
		ld(h->kind == RT_N4 ? &((rt_n4 *) h)->child[i] : &((rt_n16 *) h)->child[i]) == 0;
}

/* Take away the child that hangs where key goes at p (latched). */
static inline void
rt_slot_clear(ax_store *s, rt_at *p, const uint8_t *key)
{
	if (!p->hdr)
		stref(&s->root, 0);
	else if (rt_rowex(s))
		rt_rowex_clear(p->hdr, key[p->d]);
	else
		rt_node_del(p->hdr, key[p->d]);
}

/* A node's prefix length: as a rule from the reference, before the node has come in. */
static inline uint32_t
rt_ref_plen(rt_ref r)
{
	uint32_t	n = RT_PLEN(r);

	return ax_likely(n < 255) ? n : ((rt_hdr *) RT_PTR(r))->plen;
}

/* How far the key follows the n bytes of the node's prefix; n when all of it. */
static inline uint32_t
rt_match(rt_hdr *h, unsigned kind, uint32_t n, const uint8_t *key, uint32_t len, uint32_t d)
{
	const uint8_t *p = rt_prefix_at(h, kind, n);
	uint32_t	i = 0;

	/*
	 * The key has eight bytes, and so has the node: at once.  How long the prefix
	 * is varies from node to node, which a loop's branches would foretell badly.
	 */
	if (n < 8 && len - d >= 8)
	{
		uint64_t	a,
					b;

		memcpy(&a, p, 8);
		memcpy(&b, key + d, 8);
		return (uint32_t) (__builtin_ctzll((a ^ b) | UINT64_C(1) << (8 * n)) >> 3);
	}
	if (n > len - d)
		n = len - d;
	while (i + 8 <= n)
	{
		uint64_t	a,
					b;

		memcpy(&a, p + i, 8);
		memcpy(&b, key + d + i, 8);
		if (a != b)
			return i + (uint32_t) (__builtin_ctzll(a ^ b) >> 3);
		i += 8;
	}
	while (i < n && p[i] == key[d + i])
		i++;
	return i;
}

/* A copy (private) takes over what its latched original holds. */
static inline void
rt_fill_copy(rt_hdr *copy, rt_hdr *h)
{
	rt_slot	slots[256];

	rt_node_fill(copy, slots, rt_node_slots_get(h, slots));
}

/*
 * The lines of a leaf at once, eight at most: which of them the key's entry is
 * in the first one tells.  Always eight prefetches, of the first line again
 * behind the leaf's end.  How many it has is known late.  A branch on it would
 * be taken wrongly for most leaves, and with it the beginning of the next
 * work.
 */
AX_PREFETCHES static inline void
rt_prefetch_leaf(rt_ref r)
{
	char	   *p = RT_PTR(r);
	char	   *end = p + 64 * ((r >> 48) & 255);

	ax_prefetch(p);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 8
#endif
	for (int i = 1; i < 8; i++)
	{
		char	   *q = p + 64 * i;

		q = q < end ? q : p;
#if defined(__GNUC__)
		__asm__("" : "+r"(q));	/* chosen by a move, not a branch */
#endif
		ax_prefetch(q);
	}
}

/*
 * The TIDs of a leaf's entries whose columns are the n bytes at p.  Returns how
 * many; the first max of them are in tids, in no order.  Racy.
 */
__attribute__((always_inline)) static inline uint32_t
rt_leaf_tids(rt_leaf *l, const uint8_t *p, uint32_t n, uint8_t fp, uint64_t *tids, uint32_t max)
{
	uint32_t	m = rt_leaf_live(l),
				k = 0;

	if (ax_likely(l->flags == 0))
	{
		uint32_t	w = l->w;
		const uint8_t *base = l->body + l->cap;

		if (w == n + AX_TID_BYTES)
		{
			m &= rt_fp_match(l->body, l->cap, fp);
			for (; m; m &= m - 1)
			{
				const uint8_t *q = base + (uint32_t) __builtin_ctz(m) * w;

				AX_POINT("art.lookup.matched");
				if (!ax_equal(q, p, n))
					continue;
				if (k < max)
					tids[k] = ax_tid_at(q + w);
				k++;
			}
		}
	}
	else
	{
		if (l->flags & RT_F_VAR)
			m &= rt_fp_match(rt_leaf_fp(l), l->cap, fp);
		for (; m; m &= m - 1)
		{
			uint32_t	w;
			const uint8_t *q = rt_leaf_entry(l, __builtin_ctz(m), &w);

			AX_POINT("art.lookup.matched");
			if (w != n + AX_TID_BYTES || !ax_equal(q, p, n))
				continue;
			if (k < max)
				tids[k] = ax_tid_at(q + w);
			k++;
		}
	}
	return k;
}

/* Sort a few TIDs in place, by insertion. */
static inline void
rt_sort_tids(uint64_t *tids, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
	{
		uint64_t	t = tids[i];
		uint32_t	j = i;

		for (; j > 0 && tids[j - 1] > t; j--)
			tids[j] = tids[j - 1];
		tids[j] = t;
	}
}

/*
 * Ask at once for all lines of a node that the key will touch.  Its byte at
 * depth d comes first in the node's prefix.  The reference knows kind and
 * prefix length, so the child's line is known before the header has come in.
 * For a caller that does something else meanwhile (rt_many.c).  When one goes
 * on at once its processor finds the lines as early by itself, and only has
 * more to do.  (Measured: look-ups of 10 M sparse keys took 15 per cent longer
 * with it.)
 */
AX_PREFETCHES static inline void
rt_prefetch_node(rt_ref r, const uint8_t *key, uint32_t len, uint32_t d)
{
	char	   *p = RT_PTR(r);
	uint8_t		c;

	ax_prefetch(p);
	d += RT_PLEN(r);
	c = d < len ? key[d] : 0;
	switch (RT_TAG(r))
	{
		case RT_N4:
			break;
		case RT_N16:
			ax_prefetch(p + 64);
			ax_prefetch(p + 128);
			break;
		case RT_N48:
			ax_prefetch(p + offsetof(rt_n48, index) + c);
			break;
		default:
			ax_prefetch(p + offsetof(rt_n256, child) + 8 * (size_t) c);
			break;
	}
}

/* ---- the cursor ----
 *
 * Every way down the tree by a key is a loop over rt_step().  That samples (or
 * latches) the node that was read, and validates where it was read from.  Then it
 * compares the prefix, and reads what hangs where the key goes on.  Scans, compaction and the
 * check, which do not follow a key, have ways of their own.
 */

/* A place in the tree: the slot of P's node where the key goes, or the root's. */
typedef struct rt_cursor
{
	rt_at		P;				/* the node whose slot it is */
	rt_ref		ref;			/* what hangs there */
	uint32_t	d;				/* the depth at which that begins (once the
								 * descent is over: a leaf's is one less) */
	/* of writers, but N of all who read a leaf: */
	uint32_t	m;				/* RT_PARTS: so much of ref's prefix is the key's */
	uint32_t	level;			/* nodes down to P */
	ax_guard	N;				/* of what ref leads to, once that is opened */
	rt_at		G;				/* the node above P */
} rt_cursor;

/* rt_step() returns these, beside AX_OK, AX_STALE (start over) and AX_BUSY. */
#define RT_PARTS AX_NOTFOUND	/* the key leaves ref's node within its prefix */
#define RT_ENDS AX_BUFFER		/* the key ends there */

/*
 * Let go of all that a descent has.
 *
 * Latches: gives back those of the cursor.
 */
__attribute__((always_inline)) static inline void
rt_close(ax_ctx *cx, rt_cursor *c, const ax_mode mode)
{
	if (!AX_WRITES(mode))
		return;
	if (mode == AX_PESSIMISTIC)
	{
		ax_guard_close(cx, &c->G.g, false);
		ax_guard_close(cx, &c->P.g, false);
	}
	if (c->N.held)
		ax_guard_close(cx, &c->N, false);
}

/*
 * To the root's slot.
 *
 * Latches: none on entry; pessimistically that of the root's word on AX_OK.
 */
__attribute__((always_inline)) static inline ax_status
rt_start(ax_ctx *cx, ax_store *s, rt_cursor *c, const ax_mode mode)
{
	ax_status	x;

	c->P.hdr = NULL;
	c->d = 0;
	if (AX_WRITES(mode))
	{
		c->G.hdr = NULL;
		c->G.g.w = NULL;
		c->G.g.held = c->P.g.held = c->N.held = false;
		c->level = 0;
		/* memory before the first latch: what any change retires but large ones */
		if (mode == AX_PESSIMISTIC && (x = ax_retire_reserve(cx, 3)) != AX_OK)
			return x;
	}
	x = ax_open(cx, &c->P.g, &s->root_word, mode);
	if (x != AX_OK)
		return x;
	/* after the sample: beside a latch it may be what is taken back (core/elide/README.md) */
	c->ref = ldref(&s->root);
	AX_POINT("art.hop.after_child_read");
	return !AX_WRITES(mode) || ax_valid(&c->P.g, mode) ? AX_OK : AX_STALE;
}

/*
 * Read what hangs where the key goes on in P's node, which is of this kind.  Writers
 * validate it here.  Look-ups validate it once, behind the sample of the child; where
 * there is nothing, or a TID, the caller does.
 */
__attribute__((always_inline)) static inline ax_status
rt_look(rt_cursor *c, const uint8_t *key, const unsigned kind, const ax_mode mode)
{
	c->ref = rt_child(c->P.hdr, kind, key[c->P.d]);
	c->d = c->P.d + 1;
	AX_POINT("art.hop.after_child_read");
	return !AX_WRITES(mode) || ax_valid(&c->P.g, mode) ? AX_OK : AX_STALE;
}

/*
 * From a slot with a node (which c->ref is) to the slot in that.
 *
 * Latches: pessimistically has those of P and G; then of the new ones.
 */
__attribute__((always_inline)) static inline ax_status
rt_step(ax_ctx *cx, rt_cursor *c, const uint8_t *key, uint32_t len, const ax_mode mode)
{
	const unsigned kind = RT_TAG(c->ref);
	rt_hdr    *h = RT_PTR(c->ref);
	uint32_t	plen;
	ax_guard	g;
	ax_status	x = ax_open(cx, &g, &h->word, mode);

	if (ax_unlikely(x != AX_OK))
		return x;
	AX_POINT("art.hop.after_child_version");
	if (!ax_valid(&c->P.g, mode))
		return AX_STALE;
	plen = rt_ref_plen(c->ref);
	if (plen)
	{
		uint32_t	m = rt_match(h, kind, plen, key, len, c->d);

		if (m < plen)
		{
			if (AX_WRITES(mode))
			{
				c->N = g;
				c->m = m;
			}
			return m < len - c->d ? RT_PARTS : RT_ENDS;
		}
	}
	if (AX_WRITES(mode))
	{
		if (mode == AX_PESSIMISTIC)
			ax_guard_close(cx, &c->G.g, false);
		else
			ax_map_unshare(c->G.g.w);
		c->G = c->P;
		c->level++;
	}
	c->P.g = g;
	c->P.hdr = h;
	c->P.d = c->d + plen;
	if (ax_unlikely(c->P.d >= len))
		return RT_ENDS;
	return rt_look(c, key, kind, mode);
}

/*
 * From where it is down to what is no node: a leaf, a TID, nothing.
 *
 * Latches: as rt_step().
 */
__attribute__((always_inline)) static inline ax_status
rt_go_down(ax_ctx *cx, rt_cursor *c, const uint8_t *key, uint32_t len, const ax_mode mode)
{
	ax_status	x = AX_OK;

	while (x == AX_OK && RT_IS_NODE(c->ref))
		x = rt_step(cx, c, key, len, mode);
	/* a leaf's entries keep the byte */
	if (RT_TAG(c->ref) == RT_LEAF && c->P.hdr)
		c->d--;
	return x;
}

/*
 * From the root down: rt_start() and rt_go_down().
 *
 * Latches: none on entry; pessimistically those of P and G on return.
 */
__attribute__((always_inline)) static inline ax_status
rt_descend(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len,
		   const ax_mode mode)
{
	ax_status	x = rt_start(cx, s, c, mode);

	return x == AX_OK ? rt_go_down(cx, c, key, len, mode) : x;
}

/*
 * The leaf that c->ref is, to be read.  (One that is to be written under OptiQL:
 * rt_open_target.)
 *
 * Latches: pessimistically has the cursor's; on AX_OK the leaf's, too.
 */
__attribute__((always_inline)) static inline ax_status
rt_open_leaf(ax_ctx *cx, rt_cursor *c, const ax_mode mode)
{
	ax_status	x = ax_open(cx, &c->N, &((rt_leaf *) RT_PTR(c->ref))->word, mode);

	if (ax_unlikely(x != AX_OK))
		return x;
	AX_POINT("art.hop.after_child_version");
	return ax_valid(&c->P.g, mode) ? AX_OK : AX_STALE;
}

/*
 * The same for a writer of the leaf.
 *
 * Latches: as rt_open_leaf(); under OptiQL the leaf's in any mode, and shared.
 */
__attribute__((always_inline)) static inline ax_status
rt_open_target(ax_ctx *cx, ax_store *s, rt_cursor *c, const ax_mode mode)
{
	ax_status	x;

	rt_prefetch_leaf(c->ref);
	AX_POINT("art.target.before_open");
	x = ax_guard_open_target(cx, s, &c->N, &((rt_leaf *) RT_PTR(c->ref))->word,
							 mode == AX_PESSIMISTIC);
	if (ax_unlikely(x != AX_OK))
		return x;
	AX_POINT("art.hop.after_child_version");
	return ax_valid(&c->P.g, mode) ? AX_OK : AX_STALE;
}

/* ---- a change ----
 *
 * Every change of the tree is planned from what was read and validated, with all that
 * it needs made in private.  Then rt_begin() latches, top-down, each guard at the
 * version that the plan rests on.  Then the operation stores.  Then rt_finish() lets go
 * of all, and retires what went.  Only these two reserve retire records, latch,
 * give up, open an elided section, or let go of what was changed.  Under pessimism
 * the guards are latches already, and the plan is the same.
 */

/* A leaf or node that goes, and its guard. */
typedef struct rt_gone
{
	ax_guard	g;
	rt_ref		r;
} rt_gone;

typedef struct rt_change
{
	ax_site		site;			/* AX_SITES: is never elided */
	bool		node;			/* the slots of P's node (the root) change, */
	bool		replace;		/* or it goes itself: what takes its place */
	bool		below;			/* what c->N guards changes, too, */
	bool		nomem;			/* something could not be made */
	int8_t		nmade;
	int16_t		embedded;		/* so many embedded TIDs more */
	int32_t		ngone;
	int32_t		npieces;
	rt_ref		goes;			/* .. or goes itself: this is it */
	rt_ref		put;			/* replace: takes its place in G, 0: nothing does; */
	rt_hdr    *copy;			/* or a copy of it, which rt_begin() fills */
	rt_ref		kept;			/* of the pieces, one that is not new */
	rt_piece  *pieces;			/* made, with all that is below them */
	rt_gone   *gone;			/* goes, too: no part of the cursor */
	rt_ref		made[3];		/* made, by itself */
} rt_change;

/* Remember what was made for the change (a TID needs nothing); 0: there was no memory. */
static inline rt_ref
rt_made(rt_change *ch, rt_ref r)
{
	ch->made[ch->nmade++] = r;
	ch->nomem |= r == 0;
	return r;
}

static inline rt_hdr *
rt_made_node(rt_change *ch, rt_hdr *h)
{
	(void) rt_made(ch, h ? rt_node_ref(h) : 0);
	return h;
}

/* P's node is to be replaced by a copy of this kind. */
static inline void
rt_plan_copy(ax_ctx *cx, ax_store *s, const rt_cursor *c, rt_change *ch, unsigned kind,
			 bool reserve)
{
	rt_hdr    *h = c->P.hdr;

	ch->replace = true;
	ch->copy = rt_made_node(ch, rt_node_new(cx, s, kind, rt_prefix(h), h->plen, reserve));
}

/*
 * A change does not come about.  Let go of what it and the cursor latched, "held" of
 * them from ch.gone.  Free what was made for it.
 *
 * Epoch: inside.
 * Returns: x.
 */
extern ax_status rt_give_up(ax_ctx *cx, ax_store *s, rt_cursor *c, rt_change ch, int held,
							ax_status x) __attribute__((cold));

/*
 * Latch all that the change wants.  AX_OK: the caller stores, and calls rt_finish().
 * Else nothing is latched any more, nothing was done, and what was made is freed:
 * AX_NOMEM, AX_STALE (start over), AX_BUSY (no retire record).
 *
 * Epoch: inside.
 * Latches: those of the plan, write-latched on AX_OK; else none of them.
 */
__attribute__((always_inline)) static inline ax_status
rt_begin(ax_ctx *cx, ax_store *s, rt_cursor *c, rt_change *ch)
{
	const int	goes = ch->replace + (ch->goes != 0) + ch->ngone;
	int			held = 0;
	ax_status	x = ch->nomem ? AX_NOMEM : goes > 0 ? ax_retire_reserve(cx, goes) : AX_OK;

	if (ax_unlikely(x != AX_OK))
		return rt_give_up(cx, s, c, *ch, 0, x);
	if ((ch->replace && !ax_guard_lock_at(cx, &c->G.g, ch->site)) ||
		((ch->node || ch->replace) && !ax_guard_lock_at(cx, &c->P.g, ch->site)) ||
		(ch->below && !ax_guard_lock_at(cx, &c->N, ch->site)))
		return rt_give_up(cx, s, c, *ch, 0, AX_STALE);
	for (; held < ch->ngone; held++)
		if (!ax_guard_lock(cx, &ch->gone[held].g))
			return rt_give_up(cx, s, c, *ch, held, AX_STALE);
	AX_POINT("art.rowex.latched");
	if (ch->site == AX_SITES)
		ax_elide_pass(cx);		/* latched, no section */
	if (ch->copy)
		rt_fill_copy(ch->copy, c->P.hdr);
	return AX_OK;
}

static inline void
rt_retire(ax_ctx *cx, ax_store *s, rt_ref r)
{
	if (RT_IS_NODE(r))
		rt_node_retire(cx, s, RT_PTR(r));
	else
		rt_leaf_retire(cx, s, RT_PTR(r));
}

/*
 * All is stored but what takes the place of P's node: that, and let go.
 *
 * Latches: has those of the plan; none of them on return.
 */
__attribute__((always_inline)) static inline void
rt_finish(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, const rt_change *ch)
{
	if (ch->replace)
	{
		rt_ref		put = ch->copy ? rt_node_ref(ch->copy) : ch->put;

		if (put)
			rt_slot_set(s, &c->G, key, put);
		else
			rt_slot_clear(s, &c->G, key);
		AX_POINT("art.rowex.copied");
	}
	if (ch->embedded)
		AX_COUNT(cx, s, embedded, ch->embedded);

	/*
	 * A node that goes must be obsolete.  For an insert that has widened a leaf
	 * goes on in its node without a look at what is above ("art.widened").  Of a
	 * leaf only the assertion of rt_leaf_retire() asks it.  Every operation that
	 * opens a leaf validates the node above afterwards, and that has changed.  But
	 * a process that waits for the leaf learns at once that it must start over.
	 */
	for (int i = 0; i < ch->ngone; i++)
		ax_guard_kill(cx, &ch->gone[i].g);
	if (ch->goes)
		ax_guard_kill(cx, &c->N);
	else if (ch->below)
		ax_guard_close(cx, &c->N, true);
	if (ch->replace)
	{
		ax_guard_kill(cx, &c->P.g);
		ax_guard_close(cx, &c->G.g, true);
	}
	else if (ch->node)
		ax_guard_close(cx, &c->P.g, true);
	/* of an elided section, when it is committed: not done before it is over */
	for (int i = 0; i < ch->ngone; i++)
		rt_retire(cx, s, ch->gone[i].r);
	if (ch->goes)
		rt_retire(cx, s, ch->goes);
	if (ch->replace)
		rt_node_retire(cx, s, c->P.hdr);
}

/* The node to change: P's, or its copy. */
static inline rt_hdr *
rt_changing(const rt_cursor *c, const rt_change *ch)
{
	return ch->copy ? ch->copy : c->P.hdr;
}

/* ---- rt_split.c ---- */

/* Sort the entries of a leaf, and at most one more, given from the leaf's depth on. */
extern void rt_sort_ents(rt_ent *e, int n);

/* Free private pieces, but not "kept". */
extern void rt_drop_pieces(ax_ctx *cx, ax_store *s, rt_piece *p, int np, rt_ref kept);

/*
 * One piece for all n entries b->e: a leaf with room for cap if all fit, else a node.
 * byte: they hang at a slot, whose byte a node consumes; else at the root.
 *
 * Returns: 1, or 0 when there is no memory.
 */
extern int	rt_one_piece(rt_build *b, int n, bool byte, int cap, rt_piece *p);

/*
 * Cut n sorted entries, which differ at the slot's byte, into leaves of byte ranges of
 * about fill entries.  There is a node where one byte value alone does not fit a leaf.
 *
 * Returns: how many pieces, 0 when there is no memory.
 */
extern int	rt_cut(ax_ctx *cx, ax_store *s, const rt_ent *e, int n, int fill, rt_piece *p);

/*
 * Put np pieces in the place of the leaf that the cursor is at, in P's node or in a
 * copy of it.  kept: the leaf's reference when it is one of the pieces.
 *
 * Epoch: inside.
 * Latches: on entry those of the cursor, the leaf's guard open; the caller lets go of
 * the rest.
 * Returns: AX_OK, or as rt_begin(), with the pieces freed.
 */
extern ax_status rt_publish(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key,
							rt_piece *p, int np, rt_ref kept);

/* ---- rt_merge.c ---- */

/*
 * The engines' insert_sorted.  All keys of one leaf go in with one descent, one copy
 * and one publication.
 */
extern ax_status rt_insert_sorted(ax_ctx *cx, ax_store *s, const ax_keys *keys,
								  uint64_t *done, uint64_t *added);

/*
 * The engines' load_share: as rt_insert_sorted(), but a leaf's keys are built as by a
 * load where the leaf has nothing else.
 */
extern ax_status rt_load_share(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill,
							   uint64_t *done, uint64_t *added);

/* ---- rt_tidy.c ---- */

/* Are n children too few for its kind? */
static inline bool
rt_wants_tidy(const rt_hdr *h, int n)
{
	return n <= 1 || (h->kind == RT_N256 && n <= 36) ||
		(h->kind == RT_N48 && n <= 12) || (h->kind == RT_N16 && n <= 3);
}

/*
 * After a removal: nodes on the key's path that are empty go, one with one child gives
 * way to it, large ones shrink.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 * Note: no failure of anything if it cannot be done.
 */
extern void rt_tidy(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* ---- rt_remove.c ---- */

/* The engines' remove, of latch coupling and of ROWEX.  Needs no memory. */
extern ax_status rt_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* ---- rt_lookup.c ---- */

/* The engines' contains, under latch coupling. */
extern ax_status rt_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/*
 * The engines' lookup, under latch coupling.  Goes over to a scan where the prefix
 * goes on into the TIDs.
 */
extern ax_status rt_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
						   ax_found *f);

/* ROWEX's contains: waits for nobody. */
extern ax_status rt_rowex_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* ROWEX's lookup: waits for nobody. */
extern ax_status rt_rowex_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix,
								 uint32_t len, ax_found *f);

/* ---- rt_many.c ---- */

/* The engines' lookup_many, under latch coupling. */
extern ax_status rt_lookup_many(ax_ctx *cx, ax_store *s, const ax_keys *keys, ax_found *f,
								uint32_t *counts, uint32_t *done);

/* ROWEX's lookup_many. */
extern ax_status rt_rowex_lookup_many(ax_ctx *cx, ax_store *s, const ax_keys *keys,
									  ax_found *f, uint32_t *counts, uint32_t *done);

/* The engines' look_ahead: asks for what inserts will read.  Decides nothing. */
extern void rt_look_ahead(ax_ctx *cx, ax_store *s, const ax_keys *keys);

/* ---- rt_scan.c ---- */

/* The engines' scan, under latch coupling. */
extern ax_status rt_scan(ax_ctx *cx, ax_store *s, ax_batch *b);

/* ROWEX's scan: waits for nobody and starts nothing over. */
extern ax_status rt_rowex_scan(ax_ctx *cx, ax_store *s, ax_batch *b);

/* ---- rt_bulk.c ---- */

/*
 * The engines' load.
 *
 * Epoch: inside; now and then another one.  On AX_STALE outside.
 * Latches: the root's word for the publication.
 */
extern ax_status rt_load(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill);

/* ---- rt_compact.c ---- */

/* The engines' compact. */
extern ax_status rt_compact(ax_ctx *cx, ax_store *s, ax_compaction *c);

/* ---- rt_expand.c ---- */

/*
 * After a write, with nothing held: take apart the leaf of the key, whose latch word
 * is "word" (NULL: whichever it is).  No failure of anything if it cannot be done.
 *
 * Epoch: inside.
 * Source: OptiQL (SIGMOD 2024), section 6.2.
 */
extern void rt_expand(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len,
					  ax_word *word);

/*
 * The bytes that lead to leaves that were expanded lately, from the node to which len
 * bytes of path lead: hot[].
 *
 * Returns: false when there is none, or somebody has the ring.
 */
extern bool rt_hot_bytes(ax_ctx *cx, ax_store *s, const uint8_t *path, uint32_t len,
						 bool hot[256]);

/*
 * The engines' settle under OptiQL: join what was expanded and has been quiet since
 * (all: whatever was expanded).
 *
 * Returns: AX_OK, also when others were in the way.
 */
extern ax_status rt_settle(ax_ctx *cx, ax_store *s, bool all);

/* After a write, with nothing held: was it to a leaf that this process often waits for? */
static inline void
rt_heed_contention(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	ax_word    *w = ax_body(cx)->hot_word;

	if (ax_unlikely(w != NULL) && s->sync == AX_SYNC_OPTIQL)
	{
		ax_body(cx)->hot_word = NULL;
		rt_expand(cx, s, key, len, w);
	}
}

/* ---- rt_check.c ---- */

/* The engines' check. */
extern ax_status rt_check(ax_ctx *cx, ax_store *s, ax_checking *c);

#endif							/* RT_OLC_H */
