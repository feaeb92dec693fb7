/*
 * rt_node.h
 *	  The adaptive radix tree's layouts: child references, inner nodes, packed
 *	  leaves, and the accessors that racing readers use.
 *
 * Inner nodes after Leis et al., "The Adaptive Radix Tree" (ICDE 2013), with
 * two changes.  Headers are immutable: kind and prefix never change after
 * publication; a change of prefix copies the node.  And below a node a slot is
 * exact or a packed leaf.  In an exact one an inner node or an embedded TID
 * hangs at one byte value, which is consumed.  A packed leaf covers a range of
 * byte values and consumes none: its entries keep the byte.  In Node4/16,
 * which are sorted, slot i is a separator: a leaf there covers [sep[i], sep[i
 * + 1] - 1].  In Node48/256 the same index or reference repeats over the
 * range.
 *
 * A packed leaf holds up to 32 entries under a live bitmap, unsorted.  An
 * entry is the suffix of the key from the depth of the leaf's slot, TID
 * included.  Each has a one-byte hash of the column part of the key, compared
 * by SIMD.
 *
 * Readers race with writers on the mutable fields.  Those are C11 atomics
 * (relaxed; the latch word orders them) except the bytes of leaf entries.
 * These are copied with plain loads and thrown away unless the leaf's word
 * validates.  Under ThreadSanitizer they are read byte by byte atomically.
 * The readers of ROWEX validate nothing (rt_rowex.c).  For them release and
 * acquire order the words that publish: child references, the index of Node48
 * and the live bitmap of a leaf.  Nothing else of a published node or entry
 * ever changes.
 *
 * src/core/radix/README.md: The tree
 * src/core/radix/README.md: Differences from the papers
 */
#ifndef RT_NODE_H
#define RT_NODE_H

#if defined(__SSE2__) && !defined(AX_NO_SIMD)
#include <emmintrin.h>
#endif

#include "core/base/ax_internal.h"
#include "core/base/ax_racy.h"

/* ---- child references ---------------------------------------------------
 *
 * 0: none.  Else the tag in the low four bits:
 *	embedded	63..16 TID
 *	leaf		63..56 unused, 55..48 lines to prefetch, 47..6 address
 *	node		63..56 prefix length (255: see the header), 47..6 address
 */
typedef uint64_t rt_ref;

#define RT_TAG(r)		((unsigned) ((r) & 15))
#define RT_EMBED		1u
#define RT_LEAF		2u
#define RT_N4			4u
#define RT_N16			5u
#define RT_N48			6u
#define RT_N256		7u
#define RT_IS_NODE(r)	(((r) & 12) == 4)
#define RT_ADDR_MASK	UINT64_C(0x0000FFFFFFFFFFC0)
#define RT_PTR(r)		((void *) (uintptr_t) ((r) & RT_ADDR_MASK))
#define RT_PLEN(r)		((uint32_t) ((r) >> 56))
#define RT_EMBED_REF(tid)	(((uint64_t) (tid) << 16) | RT_EMBED)
#define RT_EMBED_TID(r)	((r) >> 16)

/* ---- inner nodes --------------------------------------------------------- */

/*
 * A node's maker writes all of it before it is published.  Then only the atomic members
 * change, under "word", until the node is obsolete; prefixes never do.
 */
typedef struct rt_hdr
{
	ax_word		word;			/* by the latch's own rules (ax_latch.h) */
	_Atomic uint16_t count;		/* children (distinct), 0 transiently */
	uint8_t		kind;			/* immutable */
	uint8_t		pad;
	uint32_t	plen;			/* immutable */
} rt_hdr;

#define RT_INLINE4 12
#define RT_INLINE16 32
#define RT_INLINE48 48
#define RT_INLINE256 48

typedef struct rt_n4
{
	rt_hdr		h;
	_Atomic uint32_t sep;		/* byte i: separator i, sorted; ROWEX: immutable */
	uint8_t		prefix[RT_INLINE4];
	_Atomic uint64_t child[4];
} rt_n4;

typedef struct rt_n16
{
	rt_hdr		h;
	_Atomic uint64_t sep[2];	/* as of a Node4 */
	uint8_t		prefix[RT_INLINE16];
	_Atomic uint64_t child[16];
} rt_n16;

typedef struct rt_n48
{
	rt_hdr		h;
	uint8_t		prefix[RT_INLINE48];
	_Atomic uint8_t index[256]; /* slot + 1, 0: none */
	_Atomic uint64_t child[48]; /* 0: free slot */
} rt_n48;

typedef struct rt_n256
{
	rt_hdr		h;
	uint8_t		prefix[RT_INLINE256];
	_Atomic uint64_t child[256];
} rt_n256;

_Static_assert(sizeof(rt_hdr) == 16, "header is two words");
_Static_assert(sizeof(rt_n4) == 64, "Node4 is one line");
_Static_assert(sizeof(rt_n16) == 192, "Node16 is three lines");
_Static_assert(sizeof(rt_n48) == 704, "Node48 is eleven lines");
_Static_assert(sizeof(rt_n256) == 2112, "Node256 is 33 lines");

static inline uint32_t
rt_node_base(unsigned kind)
{
	static const uint16_t size[4] = {64, 192, 704, 2112};

	return size[kind - RT_N4];
}

static inline uint32_t
rt_node_inline(unsigned kind)
{
	static const uint8_t len[4] = {RT_INLINE4, RT_INLINE16, RT_INLINE48, RT_INLINE256};

	return len[kind - RT_N4];
}

static inline int
rt_node_slots(unsigned kind)
{
	static const uint16_t n[4] = {4, 16, 48, 256};

	return n[kind - RT_N4];
}

/* Bytes to allocate: a prefix too long for its place lies behind the node. */
static inline uint32_t
rt_node_size(unsigned kind, uint32_t plen)
{
	return rt_node_base(kind) + (plen > rt_node_inline(kind) ? plen : 0);
}

/* Where the prefix of a node of this kind is, if it has plen bytes. */
static inline uint8_t *
rt_prefix_at(rt_hdr *h, unsigned kind, uint32_t plen)
{
	static const uint8_t where[4] = {20, 32, 16, 16};

	if (plen > rt_node_inline(kind))
		return (uint8_t *) h + rt_node_base(kind);
	return (uint8_t *) h + where[kind - RT_N4];
}

static inline uint8_t *
rt_prefix(rt_hdr *h)
{
	return rt_prefix_at(h, h->kind, h->plen);
}

static inline rt_ref
rt_node_ref(rt_hdr *h)
{
	return (uint64_t) (uintptr_t) h | h->kind |
		((uint64_t) (h->plen > 255 ? 255 : h->plen) << 56);
}

#define ld(p)		atomic_load_explicit(p, memory_order_relaxed)
#define st(p, v)	atomic_store_explicit(p, v, memory_order_relaxed)
/* child references publish what they point to */
#define ldref(p)	atomic_load_explicit(p, memory_order_acquire)
#define stref(p, v)	atomic_store_explicit(p, v, memory_order_release)

/* ---- leaves --------------------------------------------------------------- */

#define RT_LEAF_MAX 32			/* entries */
#define RT_FIX_BYTES 2048		/* of a leaf of more than one entry */
#define RT_VAR_BYTES 4096

#define RT_F_VAR 1				/* entries of several lengths: slot array */
#define RT_F_ONE 2				/* a single long entry */

/*
 * Its maker writes all of it before it is published.  Then live, used and the entries
 * are written under "word", until the leaf is obsolete.  Under ROWEX an entry is written
 * only while its bit in "live" has never been set.
 */
typedef struct rt_leaf
{
	ax_word		word;			/* by the latch's own rules (ax_latch.h) */
	_Atomic uint32_t live;		/* bitmap */
	uint8_t		cap;			/* immutable, as are the next two */
	uint8_t		w;				/* entry width, 0 unless fixed */
	uint8_t		flags;
	_Atomic uint8_t used;		/* rowex: slots ever given; else as built */
	uint8_t		body[];
} rt_leaf;

/*
 * Fixed: [fp[cap] if w > 6] entries[cap][w].
 * VAR:   u32 size, u32 used, fp[cap], pad to 4, {u16 off, u16 len}[cap], heap.
 * ONE:   u32 size, u32 len, bytes.
 * Suffixes of at most six bytes are within the TID: no hash then.
 */
_Static_assert(offsetof(rt_leaf, body) == 16, "leaf header is two words");

/* Where an entry of a VAR leaf lies; written with the entry. */
typedef struct rt_slot16
{
	_Atomic uint16_t off;
	_Atomic uint16_t len;
} rt_slot16;

static inline uint32_t *
rt_leaf_u32(rt_leaf *l, int i)
{
	return (uint32_t *) (void *) l->body + i;
}

static inline bool
rt_leaf_has_fp(const rt_leaf *l)
{
	return (l->flags & RT_F_VAR) || (l->flags == 0 && l->w > AX_TID_BYTES);
}

static inline uint8_t *
rt_leaf_fp(rt_leaf *l)
{
	return l->flags & RT_F_VAR ? l->body + 8 : l->body;
}

static inline uint32_t
rt_var_slots_off(int cap)
{
	return 24 + (((uint32_t) cap + 3) & ~3u);
}

static inline rt_slot16 *
rt_var_slot(rt_leaf *l, int i)
{
	return (rt_slot16 *) (void *) ((uint8_t *) l + rt_var_slots_off(l->cap)) + i;
}

/* Where the entries of a fixed leaf are. */
static inline uint8_t *
rt_fix_entries(rt_leaf *l)
{
	return l->body + (l->w > AX_TID_BYTES ? l->cap : 0);
}

static inline uint32_t
rt_fix_size(int cap, int w)
{
	return 16 + (uint32_t) cap * (uint32_t) (w + (w > AX_TID_BYTES));
}

/* Bytes that were asked of the allocator for this leaf. */
static inline uint32_t
rt_leaf_size(rt_leaf *l)
{
	if (l->flags)
		return *rt_leaf_u32(l, 0);
	return rt_fix_size(l->cap, l->w);
}

static inline uint32_t
rt_all_live(int cap)
{
	return cap >= 32 ? 0xFFFFFFFFu : (1u << cap) - 1;
}

/* Which slots hold an entry, all of its bytes stored before. */
static inline uint32_t
rt_leaf_live(rt_leaf *l)
{
	return atomic_load_explicit(&l->live, memory_order_acquire);
}

/*
 * One-byte hash of the column part of a key (len bytes, TID not counted): of
 * its last sixteen bytes.  It does not depend on the depth, so it moves with
 * the entry from leaf to leaf.
 */
static inline uint8_t
rt_fp(const uint8_t *key, uint32_t len)
{
	uint64_t	h;

	if (len >= 8)
	{
		memcpy(&h, key + len - 8, 8);
		if (len >= 16)
		{
			uint64_t	g;

			memcpy(&g, key + len - 16, 8);
			h ^= (g << 23) | (g >> 41);
		}
	}
	else
	{
		h = len;
		for (uint32_t i = 0; i < len; i++)
			h = (h << 8) | key[i];
	}
	h ^= h >> 32;
	return (uint8_t) ((h * UINT64_C(0x9E3779B97F4A7C15)) >> 56);
}

/* Bitmap of the fingerprints equal to f.  May read up to 32 bytes at fp. */
static inline uint32_t
rt_fp_match(const uint8_t *fp, int cap, uint8_t f)
{
#if defined(__SSE2__) && !defined(AX_NO_SIMD) && !defined(AX_TSAN)
	__m128i		v = _mm_set1_epi8((char) f);
	uint32_t	m;

	m = (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_loadu_si128((const __m128i *) (const void *) fp)));
	if (cap > 16)
		m |= (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_loadu_si128((const __m128i *) (const void *) (fp + 16)))) << 16;
	return m;
#else
	uint32_t	m = 0;

	for (int i = 0; i < cap; i++)
		m |= (uint32_t) (ax_load1(fp + i) == f) << i;
	return m;
#endif
}

/* ---- slots of a node ------------------------------------------------------ */

/* In sorted separators: how many of the first n are <= c. */
static inline int
rt_n4_rank(uint32_t sep, int n, uint8_t c)
{
#if defined(__SSE2__) && !defined(AX_NO_SIMD)
	/* no branch that hangs on how many there are */
	__m128i		v = _mm_cvtsi32_si128((int) (c * UINT32_C(0x01010101)));
	__m128i		q = _mm_cvtsi32_si128((int) sep);
	uint32_t	m = (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, q), q));

	return __builtin_ctz(~(m & ((1u << n) - 1)));
#else
	int			r = 0;

	for (int i = 0; i < n; i++)
		r += (uint8_t) (sep >> (8 * i)) <= c;
	return r;
#endif
}

/* How many of the n sorted separators are not above c. */
static inline int
rt_n16_rank(uint64_t s0, uint64_t s1, int n, uint8_t c)
{
#if defined(__SSE2__) && !defined(AX_NO_SIMD)
	__m128i		v = _mm_set1_epi8((char) c);
	__m128i		q = _mm_set_epi64x((long long) s1, (long long) s0);
	uint32_t	m = (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, q), q));

	/* they are sorted, so the bits lie together; a popcount may be a call */
	return __builtin_ctz(~(m & ((1u << n) - 1)));
#else
	int			r = 0;

	for (int i = 0; i < n; i++)
		r += (uint8_t) ((i < 8 ? s0 >> (8 * i) : s1 >> (8 * (i - 8)))) <= c;
	return r;
#endif
}

static inline uint8_t
rt_n16_sep(rt_n16 *n, int i)
{
	return (uint8_t) (ld(&n->sep[i >> 3]) >> (8 * (i & 7)));
}

static inline uint8_t
rt_n4_sep(rt_n4 *n, int i)
{
	return (uint8_t) (ld(&n->sep) >> (8 * (i & 3)));
}

/*
 * The slot that covers byte c: its reference (0: none) and where it is.  That
 * is a slot in Node4/16/48, a byte in Node256.  For Node4/16 without a match
 * *at is the last slot below c, or -1.  Racy: the caller validates the node.
 */
__attribute__((always_inline)) static inline rt_ref
rt_find_inlined(rt_hdr *h, unsigned kind, uint8_t c, int *at)
{
	rt_ref		r;
	int			i,
				n;

	switch (kind)
	{
		case RT_N4:
			{
				rt_n4	   *p = (rt_n4 *) h;
				uint32_t	sep = ld(&p->sep);

				n = ld(&h->count);
				i = rt_n4_rank(sep, n > 4 ? 4 : n, c) - 1;
				*at = i;
				if (i < 0)
					return 0;
				AX_POINT("art.find.slot");
				r = ldref(&p->child[i]);
				if (RT_TAG(r) != RT_LEAF && (uint8_t) (sep >> (8 * i)) != c)
					return 0;
				return r;
			}
		case RT_N16:
			{
				rt_n16    *p = (rt_n16 *) h;
				uint64_t	s0 = ld(&p->sep[0]);
				uint64_t	s1 = ld(&p->sep[1]);

				n = ld(&h->count);
				i = rt_n16_rank(s0, s1, n > 16 ? 16 : n, c) - 1;
				*at = i;
				if (i < 0)
					return 0;
				AX_POINT("art.find.slot");
				r = ldref(&p->child[i]);
				if (RT_TAG(r) != RT_LEAF &&
					(uint8_t) ((i < 8 ? s0 >> (8 * i) : s1 >> (8 * (i - 8)))) != c)
					return 0;
				return r;
			}
		case RT_N48:
			{
				rt_n48    *p = (rt_n48 *) h;

				i = atomic_load_explicit(&p->index[c], memory_order_acquire);
				*at = i - 1;
				if (i == 0 || i > 48)
					return 0;
				AX_POINT("art.find.slot");
				return ldref(&p->child[i - 1]);
			}
		default:
			*at = c;
			return ldref(&((rt_n256 *) h)->child[c]);
	}
}

static inline rt_ref
rt_find(rt_hdr *h, unsigned kind, uint8_t c, int *at)
{
	return rt_find_inlined(h, kind, c, at);
}

/* The reference alone, for look-ups: without a call, and where it is drops out. */
__attribute__((always_inline)) static inline rt_ref
rt_child(rt_hdr *h, unsigned kind, uint8_t c)
{
	int			at;

	return rt_find_inlined(h, kind, c, &at);
}

/* ---- rt_node.c / rt_bulk.c: building and changing ----------------------- */

/* An entry on its way into a leaf: its bytes from some common depth on. */
typedef struct rt_ent
{
	const uint8_t *p;
	uint32_t	len;			/* bytes at p, TID included */
	uint8_t		fp;
} rt_ent;

/*
 * A private, empty node with this prefix, counted.  reserve: as ax_alloc()'s
 * may_reserve.
 *
 * Epoch: inside.
 * Returns: NULL when there is no memory.
 */
extern rt_hdr *rt_node_new(ax_ctx *cx, ax_store *s, unsigned kind,
						   const uint8_t *prefix, uint32_t plen, bool reserve);

/* Give a private node back; nothing below it. */
extern void rt_node_unalloc(ax_ctx *cx, ax_store *s, rt_hdr *h);

/*
 * Retire an obsolete node; nothing below it.
 *
 * Epoch: inside; a record is reserved.
 */
extern void rt_node_retire(ax_ctx *cx, ax_store *s, rt_hdr *h);

/* Count d nodes of this kind more. */
extern void rt_count_node(ax_ctx *cx, ax_store *s, unsigned kind, int d);

/*
 * Add a child to a private or latched node with room.  It is exact at c, or a leaf
 * that covers [lo, hi] (Node48/256) or begins at c (Node4/16).  In a Node48 the slot
 * is stored before the index.
 */
extern void rt_node_add(rt_hdr *h, uint8_t c, int lo, int hi, rt_ref child);

/*
 * Replace the child that covers c, over its whole range, by r.  The node is private or
 * latched.
 */
extern void rt_node_set(rt_hdr *h, uint8_t c, rt_ref r);

/*
 * Replace the leaf that covers c by r, exact at byte b.  The node is private or
 * latched; under ROWEX private, for this takes several stores.
 */
extern void rt_node_narrow(rt_hdr *h, uint8_t c, uint8_t b, rt_ref r);

/*
 * Remove the child that covers c.  The node is private or latched; under ROWEX a
 * latched one is a Node256.
 */
extern void rt_node_del(rt_hdr *h, uint8_t c);

/* How many children it has, the holes of a Node4/16 under ROWEX not counted.  Racy. */
extern int	rt_node_children(rt_hdr *h);

/*
 * The range of byte values that the slot covering c has: *lo to *hi; c alone where
 * that is exact or nothing.  Racy.
 */
extern void rt_node_range(rt_hdr *h, uint8_t c, int *lo, int *hi);

/* Can n entries, from byte off on of each, live in one leaf?  One always can. */
extern bool rt_leaf_fits(const rt_ent *e, uint64_t n, uint32_t off);

/* How many entries a leaf should get that is to be so full, in per cent. */
static inline int
rt_leaf_fill(int percent)
{
	int			n = percent * RT_LEAF_MAX / 100;

	return n < 1 ? 1 : n > RT_LEAF_MAX ? RT_LEAF_MAX : n;
}

/* Entries that a growing leaf of n gets room for: 4, 8, 16, 24, 32. */
extern int	rt_leaf_stepcap(int n);

/*
 * A private leaf with entries e[0..n), from byte off on of each, counted; with room
 * for cap entries if that can be.
 *
 * Epoch: inside.
 * Returns: its reference, 0 when there is no memory.
 */
extern rt_ref rt_leaf_new(ax_ctx *cx, ax_store *s, const rt_ent *e, int n,
						  uint32_t off, int cap, bool reserve);

/* Give a private leaf back. */
extern void rt_leaf_unalloc(ax_ctx *cx, ax_store *s, rt_leaf *l);

/*
 * The bytes of the leaf or node whose latch word this is, for elision.  A leaf is told
 * by "used", which is never 0 there.
 */
extern uint32_t rt_object_bytes(const ax_word *w);

/*
 * Retire an obsolete leaf.
 *
 * Epoch: inside; a record is reserved.
 */
extern void rt_leaf_retire(ax_ctx *cx, ax_store *s, rt_leaf *l);

/* The slot of this very suffix, or -1.  Racy. */
extern int	rt_leaf_find(rt_leaf *l, const uint8_t *suffix, uint32_t len, uint8_t fp);

/*
 * Put an entry into a latched or private leaf; its bit in the live bitmap publishes
 * it.  append: only in a slot that never had one (ROWEX).
 *
 * Returns: false when there is no room in place.
 */
extern bool rt_leaf_put(rt_leaf *l, const uint8_t *suffix, uint32_t len, uint8_t fp, bool append);

/* Would rt_leaf_put() find room for an entry of len bytes?  Racy. */
extern bool rt_leaf_room(rt_leaf *l, uint32_t len, bool append);
/*
 * All live entries, copied to buf (RT_VAR_BYTES; a long single entry stays
 * where it is: it is immutable).  Racy: the caller validates the leaf before
 * it looks at them.
 */
extern int	rt_leaf_ents(rt_leaf *l, rt_ent *e, uint8_t *buf);

/* The slots of a node in order: lo, hi (equal when exact), child; no holes. */
typedef struct rt_slot
{
	rt_ref		r;
	uint8_t		lo,
				hi;
} rt_slot;

/*
 * Copy the slots of a node in order to out[256]: range and child; no holes.  Racy.
 *
 * Returns: how many.
 */
extern int	rt_node_slots_get(rt_hdr *h, rt_slot *out);	/* out[256] */

/* Add n slots to a private, empty node that has room for them. */
extern void rt_node_fill(rt_hdr *to, const rt_slot *s, int n);

/* The entries of a leaf where all have the same width, w; else NULL. */
static inline const uint8_t *
rt_leaf_fixed(rt_leaf *l)
{
	return l->flags != 0 ? NULL : rt_fix_entries(l);
}

/* Where entry i is; bounded even when read torn. */
static inline const uint8_t *
rt_leaf_entry(rt_leaf *l, int i, uint32_t *len)
{
	const uint8_t *fixed = rt_leaf_fixed(l);

	if (ax_likely(fixed != NULL))
	{
		*len = l->w;
		return fixed + (uint32_t) i * l->w;
	}
	if (l->flags & RT_F_VAR)
	{
		rt_slot16 *sl = rt_var_slot(l, i);
		uint32_t	size = *rt_leaf_u32(l, 0);
		uint32_t	off = ld(&sl->off);
		uint32_t	n = ld(&sl->len);

		if (off + n > size)		/* torn: keep the reader inside the object */
			off = n = 0;
		*len = n;
		return (uint8_t *) l + off;
	}
	*len = *rt_leaf_u32(l, 1);
	return l->body + 8;
}

/*
 * A build: of an array of entries, or of whole keys (then the hashes are computed on
 * the way); sorted.
 */
typedef struct rt_build
{
	ax_ctx	   *cx;
	ax_store   *s;
	const rt_ent *e;			/* or: */
	ax_keys		keys;
	int			fill;			/* entries a leaf should get */
	bool		load;			/* or a share of one: leaves have no room for more, and
								 * depths are the tree's */
	bool		sample;			/* of keys that are to come: no embedded TIDs, for
								 * where one is no leaf takes others */
	uint64_t	fetched;		/* keys before it are on their way to the cache */
	uint64_t	breath;			/* of a load: where it breathes next; 0: of others */
	bool		deep;			/* out: they are nested too deeply */
	bool		gone;			/* out: the store was closed, at a breath */
} rt_build;

/*
 * Build entries [first, first + n), strictly rising from off on, as a private subtree.
 * Its top is an inner node at depth off (the slot's byte is consumed), the depth-th on
 * its path.  A load breathes within (ax_breathe).
 *
 * Epoch: inside, perhaps another one afterwards; outside where b->gone is set.
 * Returns: 0 when there is no memory (nothing is left behind), when b->deep is set, or
 * when the store is gone.
 */
extern rt_ref rt_build_node(rt_build *b, uint64_t first, uint64_t n, uint32_t off, int depth);

/* The children of a node, and the byte with which each begins. */
typedef struct rt_children
{
	rt_ref		r[256];
	uint8_t		lo[256];
} rt_children;

/*
 * The children of such a node, private: entries [first, end), equal before off, by
 * their bytes at off.
 *
 * Epoch: as rt_build_node().
 * Returns: how many; 0 as rt_build_node().
 */
extern int	rt_build_children(rt_build *b, uint64_t first, uint64_t end, uint32_t off,
							  int depth, rt_children *out);

/* Give a private subtree back: leaf, TID or node with all below it. */
extern void rt_free_private(ax_ctx *cx, ax_store *s, rt_ref r);

#endif							/* RT_NODE_H */
