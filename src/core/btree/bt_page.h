/*
 * bt_page.h
 *	  The B+-tree's pages: layout, search, and what changes them in place.
 *
 * A page keeps its keys sorted.  The bytes that all keys of its range have in
 * common (its prefix) are stored once.  The next eight bytes of each key, as a
 * number, are its "head", and heads lie side by side.  So a search is a binary
 * search over words and touches other bytes only where heads tie.  (As in
 * Graefe and Larson, "B-tree indexes and CPU caches", ICDE 2001: poor man's
 * normalized keys.)
 *
 *	fixed leaf	header | heads[cap] | tails[cap * tail] | prefix
 *	leaf		header | heads[cap] | slots[cap] | free | heap | prefix
 *	inner		header | heads[cap] | slots[cap] | child[cap + 1] | free | heap | prefix
 *
 * In a fixed leaf all keys have the same length; "tail" bytes of each follow
 * its head.  Else a slot says where the rest lies in the heap and how long the
 * key is behind the prefix.  Keys of more than a quarter of a page are objects
 * of their own (blobs, immutable), to which the heap points.
 *
 * An inner page has n separators and n + 1 children; child i holds the keys k
 * with separator[i - 1] <= k < separator[i].  Separators are as short as they
 * can be.
 *
 * There are no links between neighbours, for a scan goes on in the parent.  So no
 * link can dangle, and pages can be merged in either direction.
 *
 * Everything but n, heap, dead, and the contents is immutable.  A page whose layout
 * no longer fits is copied, and the copy published in its parent.
 *
 * src/core/btree/README.md: The B+-tree
 */
#ifndef BT_PAGE_H
#define BT_PAGE_H

#include "core/elide/ax_guard.h"
#include "core/base/ax_racy.h"

#define BT_VAR		0xFFFF		/* tail: keys of several lengths */
#define BT_IS_BLOB	0xFFFF		/* slot's length: the heap has a pointer */
#define BT_HEAD		32			/* bytes before the heads */
#define BT_LEVELS	24
#define BT_MAX_SIZE 16384
#define BT_MAX_PLEN 255
#define BT_MAX_CAP	1360

/*
 * Its maker writes all of it before it is published.  Then n, heap, dead and body are
 * written under "word", until the page is obsolete.  The rest is immutable.
 */
typedef struct bt_page
{
	ax_word		word;			/* by the latch's own rules (ax_latch.h) */
	_Atomic uint16_t n;			/* keys, or separators */
	_Atomic uint16_t heap;		/* lowest byte in use of the heap */
	_Atomic uint16_t dead;		/* bytes of the heap that nothing refers to */
	uint16_t	cap;			/* slots */
	uint16_t	tail;			/* BT_VAR, or bytes of each key behind its head */
	uint8_t		plen;
	uint8_t		level;			/* 0: leaf */
	uint32_t	size;
	_Alignas(BT_HEAD) uint8_t body[];	/* so that no head is in two lines */
} bt_page;

_Static_assert(offsetof(bt_page, body) == BT_HEAD, "page header is half a line");

/* A long key.  Immutable from its making to its retirement. */
typedef struct bt_blob
{
	uint32_t	len;			/* of the whole key */
	uint8_t		bytes[];
} bt_blob;

/*
 * One key, in pieces: bytes a, then hn bytes of the head, then bytes r.  A
 * blob is whole in a.
 */
typedef struct bt_view
{
	const uint8_t *a;
	const uint8_t *r;
	uint64_t	head;
	uint32_t	an;
	uint32_t	hn;
	uint32_t	rn;
	bt_blob    *blob;			/* NULL: none */
} bt_view;

#define bt_ld(p)	atomic_load_explicit(p, memory_order_relaxed)
#define bt_st(p, v) atomic_store_explicit(p, v, memory_order_relaxed)

static inline uint32_t
bt_len(const bt_view *v)
{
	return v->an + v->hn + v->rn;
}

/*
 * Bytes of a page.  Inner ones are twice as large as leaves: half as many, one
 * level less now and then.  Being of another size class, they lie together in
 * pages of memory of their own, which address translation is short of.
 * Multiples of 4 KiB give up a line, or a span would hold one less.
 */
static inline uint32_t
bt_page_size(const ax_store *s, int level)
{
	uint32_t	size = level ? 2 * s->page_size : s->page_size;

	if (size > BT_MAX_SIZE)
		size = BT_MAX_SIZE;
	return size % 4096 ? size : size - AX_LINE;
}

/*
 * Keys longer than this are blobs, in pages of the tree's page size.  An inner page has room
 * for four such separators, or the tree grows a level with every few splits.
 */
static inline uint32_t
bt_max_inline(uint32_t size)
{
	const uint32_t most = (BT_MAX_SIZE - AX_LINE - BT_HEAD - 8) / 4 - 12;

	return size / 4 < most ? size / 4 : most;
}

static inline _Atomic uint64_t *
bt_heads(const bt_page *p)
{
	return (_Atomic uint64_t *) (uintptr_t) p->body;
}

static inline uint8_t *
bt_tails(const bt_page *p)
{
	return (uint8_t *) (uintptr_t) p->body + 8u * p->cap;
}

/* offset | length << 16 */
static inline _Atomic uint32_t *
bt_slots(const bt_page *p)
{
	return (_Atomic uint32_t *) (void *) bt_tails(p);
}

static inline _Atomic uint64_t *
bt_children(const bt_page *p)
{
	return (_Atomic uint64_t *) (uintptr_t) (p->body + 12u * p->cap);
}

static inline const uint8_t *
bt_prefix(const bt_page *p)
{
	return (const uint8_t *) p + p->size - p->plen;
}

/* First byte behind the arrays. */
static inline uint32_t
bt_arrays_end(const bt_page *p)
{
	if (p->tail != BT_VAR)
		return BT_HEAD + (8u + p->tail) * p->cap;
	return BT_HEAD + 12u * p->cap + (p->level ? 8u * (p->cap + 1u) : 0);
}

/* The count, never beyond the arrays whatever is being stored. */
static inline int
bt_count(const bt_page *p)
{
	/* what the places below n point to was stored before n */
	int			n = atomic_load_explicit(&((bt_page *) (uintptr_t) p)->n,
										 memory_order_acquire);

	return n > p->cap ? p->cap : n;
}

/* Bytes [off, off + len) of the page, never beyond it (racy). */
static inline const uint8_t *
bt_bytes(const bt_page *p, uint32_t off, uint32_t len)
{
	if (ax_unlikely(off + len > p->size))
		off = 0;
	return (const uint8_t *) p + off;
}

/*
 * The blob of a slot.  Its address may be torn, so it is followed only if the
 * guard still holds: NULL if not.
 */
static inline bt_blob *
bt_blob_of(const bt_page *p, const ax_guard *g, uint32_t slot)
{
	uint64_t	x = ax_load8(bt_bytes(p, slot & 0xFFFF, 8));

	if (g && !ax_guard_valid(g))
		return NULL;
	return (bt_blob *) (uintptr_t) x;
}

/*
 * Does entry i, whose head is the key's, come before the position?  k: the
 * position behind the prefix.  -1: the page changed.
 */
static inline int
bt_tie_before(const bt_page *p, const ax_guard *g, int i, const uint8_t *k,
			  uint32_t len, bool after)
{
	uint32_t	elen,
				m;
	const uint8_t *rest;
	int			c = 0;

	if (p->tail != BT_VAR)
	{
		elen = 8u + p->tail;
		rest = bt_tails(p) + (uint32_t) i * p->tail;
	}
	else
	{
		uint32_t	slot = bt_ld(&bt_slots(p)[i]);

		elen = slot >> 16;
		if (ax_unlikely(elen == BT_IS_BLOB))
		{
			bt_blob    *b = bt_blob_of(p, g, slot);

			if (!b)
				return -1;
			elen = b->len - p->plen;
			rest = b->bytes + p->plen + 8;
		}
		else
			rest = bt_bytes(p, slot & 0xFFFF, elen > 8 ? elen - 8 : 0);
	}
	if (len <= 8)
	{
		if (after)
			return 1;			/* the position's bytes begin the entry */
		return elen < len;
	}
	if (elen < 8)
		return 1;				/* the entry begins the position */
	m = (elen < len ? elen : len) - 8;
	for (uint32_t x = 0; x < m && c == 0; x++)
		c = (int) ax_load1(rest + x) - (int) k[8 + x];
	if (c)
		return c < 0;
	return elen < len || after;
}

/*
 * The last eight bytes of entry i of a fixed leaf, as a number.  Its tail and
 * what lies before it are read at once: there are always eight bytes, of other
 * tails or of the heads.
 */
static inline uint64_t
bt_last8(const bt_page *p, int i)
{
	uint32_t	tail = p->tail;
	uint64_t	x = __builtin_bswap64(ax_load8(bt_tails(p) + (uint32_t) (i + 1) * tail - 8));

	if (tail >= 8)
		return x;
	/* the shift by 64 of an empty tail is made of two */
	return bt_ld(&bt_heads(p)[i]) << (8 * tail) |
		((x << 1) << (63 - 8 * tail)) >> 1 >> (63 - 8 * tail);
}

/* Is entry i, whose head is the key's, the key?  -1: the page changed. */
static inline int
bt_same(const bt_page *p, const ax_guard *g, int i, const uint8_t *k, uint32_t len)
{
	if (p->tail != BT_VAR)
	{
		if (len != 8u + p->tail)
			return 0;
		if (p->tail <= 8)
			return bt_last8(p, i) == ax_be8(k + len - 8, 8);
		return ax_equal(bt_tails(p) + (uint32_t) i * p->tail, k + 8, p->tail);
	}
	else
	{
		uint32_t	slot = bt_ld(&bt_slots(p)[i]);
		uint32_t	elen = slot >> 16;

		if (ax_unlikely(elen == BT_IS_BLOB))
		{
			bt_blob    *b = bt_blob_of(p, g, slot);

			if (!b)
				return -1;
			return b->len - p->plen == len && memcmp(b->bytes + p->plen, k, len) == 0;
		}
		return elen == len &&
			(len <= 8 || ax_equal(bt_bytes(p, slot & 0xFFFF, len - 8), k + 8, len - 8));
	}
}

/*
 * Does entry i of a page begin with k, whose head is h, and how long is it?
 * Both given and told behind the page's prefix.  -1: the page changed.
 */
static inline int
bt_begins(const bt_page *p, const ax_guard *g, int i, const uint8_t *k, uint32_t len,
		  uint64_t h, uint32_t *elen)
{
	uint64_t	x = bt_ld(&bt_heads(p)[i]) ^ h;
	const uint8_t *rest;

	if (len < 8)
	{
		if (len && x >> (64 - 8 * len))
			return 0;
	}
	else if (x)
		return 0;
	if (ax_likely(p->tail != BT_VAR))
	{
		*elen = 8u + p->tail;
		rest = bt_tails(p) + (uint32_t) i * p->tail;
	}
	else
	{
		uint32_t	slot = bt_ld(&bt_slots(p)[i]);

		*elen = slot >> 16;
		if (ax_unlikely(*elen == BT_IS_BLOB))
		{
			bt_blob    *b = bt_blob_of(p, g, slot);

			if (!b)
				return -1;
			*elen = b->len - p->plen;
			rest = b->bytes + p->plen + 8;
		}
		else
			rest = bt_bytes(p, slot & 0xFFFF, *elen > 8 ? *elen - 8 : 0);
	}
	if (*elen < len)
		return 0;
	return len <= 8 || ax_equal(rest, k + 8, len - 8);
}

/* A position behind its first n bytes.  By address: the key of an empty one may be NULL. */
static inline const uint8_t *
bt_key_behind(const uint8_t *key, uint32_t n)
{
	return (const uint8_t *) ((uintptr_t) key + n);
}

/*
 * The first eight bytes of a position as a head: padded so that no entry it
 * begins is on the wrong side.
 */
static inline uint64_t
bt_head_of(const uint8_t *k, uint32_t len, bool after)
{
	uint64_t	x = 0;

	if (ax_likely(len >= 8))
	{
		memcpy(&x, k, 8);
		return __builtin_bswap64(x);
	}
	for (uint32_t i = 0; i < len; i++)
		x |= (uint64_t) k[i] << (56 - 8 * i);
	return after ? x | (UINT64_MAX >> (8 * len)) : x;
}

/*
 * How many of n heads are below h.  No branch but the loop's, whose count
 * hangs on n alone: which half it is, is anybody's guess.  (Cutting in four at
 * a time is no faster: it touches more lines.)
 */
static inline int
bt_below(_Atomic uint64_t *heads, int n, uint64_t h)
{
	_Atomic uint64_t *at = heads;

	if (ax_unlikely(n == 0))
		return 0;
	while (n > 1)
	{
		int			half = n / 2;

		at += bt_ld(&at[half - 1]) < h ? half : 0;
		n -= half;
	}
	return (int) (at - heads) + (bt_ld(at) < h);
}

/* The bytes of the page whose latch word this is, for elision. */
extern uint32_t bt_object_bytes(const ax_word *w);

/*
 * Entries from base on have the position's head, h: bt_find() among them.
 *
 * Returns: twice the place, and one more if the entry there is k itself; -1: the page
 * changed.
 */
extern int	bt_find_tie(const bt_page *p, const ax_guard *g, int base, uint64_t h,
						const uint8_t *k, uint32_t len, bool after);

/*
 * How many entries lie before the position (k, len, after), given behind the
 * page's prefix.  *same: the entry there is k itself (never with after).
 * -1: the page changed.
 */
static inline int
bt_find(const bt_page *p, const ax_guard *g, const uint8_t *k, uint32_t len,
		bool after, bool *same)
{
	_Atomic uint64_t *heads = bt_heads(p);
	uint64_t	h = bt_head_of(k, len, after);
	int			n = bt_count(p);
	int			base = bt_below(heads, n, h);

	*same = false;
	if (base == n || bt_ld(&heads[base]) != h)
		return base;
	base = bt_find_tie(p, g, base, h, k, len, after);
	*same = base & 1;
	return base >> 1;
}

/* The same for a position that may not share the page's prefix. */
static inline int
bt_find_bound(const bt_page *p, const ax_guard *g, const uint8_t *key, uint32_t len,
			  bool after, bool *same)
{
	uint32_t	plen = p->plen;

	if (plen)
	{
		uint32_t	m = len < plen ? len : plen;
		int			c = m ? memcmp(key, bt_prefix(p), m) : 0;

		*same = false;
		if (c)
			return c < 0 ? 0 : bt_count(p);
		if (len < plen)
			return after ? bt_count(p) : 0;
	}
	return bt_find(p, g, bt_key_behind(key, plen), len - plen, after, same);
}

/*
 * The child in which the entries next to the position are: those behind it begin there.  A
 * separator equal to the position belongs to the right.  The position is in the page's
 * range, as in a descent.  It begins with the page's prefix, so the line where that lies is
 * left alone.
 */
static inline int
bt_child_inside(const bt_page *p, const ax_guard *g, const uint8_t *key, uint32_t len,
				bool after)
{
	uint32_t	plen = p->plen;
	bool		same;
	int			i;

	if (ax_unlikely(len < plen))
		return -1;				/* no such position is */
	i = bt_find(p, g, key + plen, len - plen, after, &same);
	return i < 0 ? i : i + same;
}

/* ---- bt_page.c: pages that are latched, or nobody else's yet ---- */

/*
 * Entry i of a page that is latched, private or a copy, in pieces.  A key in pieces
 * points into the page.
 */
extern void bt_get(const bt_page *p, int i, bt_view *v);

/* Copy bytes [from, from + len) of a key in pieces to out. */
extern void bt_view_bytes(const bt_view *v, uint32_t from, uint32_t len, uint8_t *out);

/* How many bytes two keys begin with alike. */
extern uint32_t bt_common(const bt_view *a, const bt_view *b);

/* A key of bytes, or (blob not NULL) of a long key's object, as pieces. */
extern void bt_key_view(const uint8_t *key, uint32_t len, bt_blob *blob, bt_view *v);

/*
 * Put a key at place i of a latched or private page, in its layout; right: the child
 * behind it (inner), or NULL.
 *
 * Returns: false when the layout has no room for it; the entries are as they were.
 */
extern bool bt_put(bt_page *p, int i, const bt_view *v, bt_page *right);

/*
 * Take entry i out of a latched or private page; of an inner one with the child behind
 * it.  Its long key is the caller's.
 */
extern void bt_del(bt_page *p, int i);

/* Bytes of a page that its entries take. */
extern uint32_t bt_used(const bt_page *p);

/* Do n entries fit into a page of "size" bytes, of whose range plen bytes are known? */
extern bool bt_fits(uint32_t size, bool inner, const bt_view *v, int n, uint32_t plen);

/*
 * Memory for a page of this level, not a page yet.
 *
 * Epoch: inside.
 * Returns: NULL when there is none.
 */
extern bt_page *bt_alloc(ax_ctx *cx, ax_store *s, int level, bool may_reserve);

/* Give such memory back, or a page that nobody saw; NULL: nothing. */
extern void bt_unalloc(ax_ctx *cx, ax_store *s, int level, bt_page *p);

/* The making of a page. */
typedef struct bt_contents
{
	int			level;
	int			n;				/* entries that fit (bt_fits) */
	const bt_view *v;
	bt_page    *const *child;	/* n + 1; of a leaf NULL */
	const uint8_t *prefix;		/* all of its range begins with these plen bytes; in a
								 * small page fewer are used */
	uint32_t	plen;
	uint32_t	spare;			/* bytes of the heap that are to be left free */
} bt_contents;

/* Make memory a page, in the layout that suits its entries.  Takes long keys over.  Counted. */
extern void bt_build(ax_ctx *cx, ax_store *s, bt_page *p, const bt_contents *of);

/* Give a page back that nobody saw; its long keys are not its own. */
extern void bt_unbuild(ax_ctx *cx, ax_store *s, bt_page *p);

/*
 * Retire an obsolete page; its long keys are not retired.
 *
 * Epoch: inside; a record is reserved.
 */
extern void bt_retire(ax_ctx *cx, ax_store *s, bt_page *p);

/*
 * The shortest key that is behind "left" and not behind "right", as pieces that point
 * to buf or to an object of its own.
 *
 * Returns: false when there is no memory.
 */
extern bool bt_separator(ax_ctx *cx, ax_store *s, const bt_view *left, const bt_view *right,
						 uint8_t *buf, bt_view *sep);

/*
 * An object for a long key.
 *
 * Epoch: inside.
 * Returns: NULL when there is no memory.
 */
extern bt_blob *bt_blob_new(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* Give back a long key that nobody saw. */
extern void bt_blob_free(ax_ctx *cx, ax_store *s, bt_blob *b);

/*
 * Retire a long key that was unlinked.
 *
 * Epoch: inside; a record is reserved.
 */
extern void bt_blob_retire(ax_ctx *cx, ax_store *s, bt_blob *b);

#endif							/* BT_PAGE_H */
