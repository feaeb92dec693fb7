/*
 * hy_node.h
 *	  HydraList's data nodes: layout, search, and what changes them in place.
 *
 * A node is two objects.  The header is what others point to: latch word, links, and the
 * anchor, which never changes.  The body has the keys, in no order:
 *
 *	fixed	header | fp[cap] | perm[cap] | keys[cap], "rest" bytes each | prefix
 *	else	header | fp[cap] | perm[cap] | slots[cap] | free | heap | prefix
 *
 * The bytes that all keys of the node's range have in common (its prefix) are stored
 * once.  A byte of each key is its fingerprint, of all but the TID: a look-up does not know
 * the TID, and goes by it, too.  A long key is an object of its own (bt_blob).
 *
 * The layout of a body is immutable.  Where it has no place for a key, another body
 * takes its place, under the node's latch, and the old one is retired.
 *
 * src/core/hydra/README.md: HydraList
 */
#ifndef HY_NODE_H
#define HY_NODE_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "core/base/ax_stack.h"
#include "core/btree/bt_page.h"
#include "core/radix/radix.h"

#define HY_SLOTS	64			/* keys of a node, at most */
#define HY_VAR		0xFFFF		/* rest: keys of several lengths */
#define HY_BLOB		0xFFFF		/* slot's length: the heap has a pointer */
#define HY_LONG		512			/* longer keys are blobs */
#define HY_MAX_REST 128			/* of a fixed body */
#define HY_MAX_BODY 24576
#define HY_MAX_PLEN 255

/*
 * Its maker writes all of it before it is published.  Then used, heap, dead, fp and data
 * are written under the node's latch.  Those who scan write perm_of and perm, by the rules of
 * hy_told_order().  The rest is immutable.
 */
typedef struct hy_body
{
	_Atomic uint64_t used;		/* slots with a key */
	_Atomic uint64_t perm_of;	/* perm is that of this version of the node; 0: none,
								 * HY_PERM_BUSY: being written */
	_Atomic uint16_t heap;		/* lowest byte in use of the heap */
	_Atomic uint16_t dead;		/* bytes of the heap that nothing refers to */
	uint16_t	rest;			/* HY_VAR, or bytes of each key behind the prefix */
	uint8_t		plen;
	uint8_t		cap;			/* slots */
	uint32_t	size;
	uint32_t	unused;
	uint8_t		fp[];			/* then the slots in the keys' order, then the keys */
} hy_body;

#define HY_HEAD			((uint32_t) offsetof(hy_body, fp))
#define HY_LEAST		(HY_HEAD + HY_SLOTS)	/* bytes of a body: so many are compared */
#define HY_PERM_BUSY	UINT64_C(1)

typedef struct hy_node hy_node;

/*
 * A header, of one line where the anchor has eight bytes or fewer.  The latch of a node guards
 * its "right", "bound" and "shared", and "prev" of the node behind it: who has it writes all of
 * these.  "come" and "go" are its entries in the log.  The one who pushes them writes them, with the
 * latch of the node before, and then the applier.
 */
struct hy_node
{
	ax_word		word;
	union
	{
		_Atomic(hy_body *) body;
		_Atomic(struct hm_ver *) ver;	/* under mvrlu: the newest version (hm_version.h) */
	};
	union
	{
		_Atomic(hy_node *) right;	/* the next; NULL: the last.  hy_set_next() alone */
		hy_node    *origin;		/* under mvrlu, of one that no load made: where its keys were
								 * before there was this one */
	};
	union
	{
		_Atomic uint64_t bound;		/* what is known of the next: see hy_end */
		_Atomic(hy_body *) soon;	/* under mvrlu: the newest version's body, to ask for it
									 * before the version is here; not followed */
		ax_stack_node go;			/* of one that goes; a late reader takes it for the above */
	};
	_Atomic uint32_t shared;
	uint32_t	alen;			/* 0: below all keys */
	_Atomic(hy_node *) prev;	/* NULL: the first.  Of an obsolete node: one to the left */
	ax_stack_node come;			/* its next is HY_TOLD when it is in the log no more */
	uint8_t		anchor[];		/* its range begins there */
};

_Static_assert(offsetof(hy_node, anchor) + 8 == AX_LINE, "a header with a short anchor is one line");

#define HY_TOLD	((ax_stack_node *) 1)

/* Where a node's range ends: at the anchor of the next. */
typedef struct hy_end
{
	hy_node    *next;			/* NULL: there is none */
	uint64_t	bound;			/* eight bytes of its anchor, from "shared" on */
	uint32_t	shared;			/* bytes that both anchors begin with; UINT32_MAX: no next */
	uint32_t	unused;			/* 0, so that a copy has no byte that nobody wrote */
} hy_end;

/*
 * A view of a node: which slots of which body have keys, and where its range ends.  Each version
 * has one.  Without versions a reader makes one, under the node's guard.
 */
typedef struct hy_view
{
	hy_end		end;			/* without a body: where the node's keys are now */
	hy_body    *body;			/* NULL: the node is gone */
	_Atomic uint64_t live;		/* slots with a key */
} hy_view;

/* Of one store.  Made with its first node; freed with the store. */
typedef struct hy_list
{
	hy_node    *head;			/* the first node, which stays */
	_Alignas(AX_LINE) ax_stack log;	/* pushed in the order of the changes */
	_Atomic uint64_t pushed;	/* ever, raised before the push */
	_Atomic uint64_t applied;	/* ever, raised when the search layer has it */
	_Atomic uint32_t longest;	/* nodes that a search passed; a hint, any process stores */
	_Alignas(AX_LINE) _Atomic uint64_t clock;	/* mvrlu: of the last commit; added to by all */
	_Atomic uint64_t passed;	/* older versions that readers took; added to by all */
	_Atomic uint64_t helped;	/* commits that a reader ended; added to by all */
	_Alignas(AX_LINE) _Atomic uint32_t applying;	/* claimed by an exchange */
	ax_stack_node *todo;		/* taken from the log, in order: the claim's */
} hy_list;

/* One key on its way from one body to another, or into one. */
typedef struct hy_entry
{
	bt_view		v;
	uint64_t	head;			/* the first bytes behind what the range has in common */
	uint8_t		fp;
} hy_entry;

#define hy_ld(p)	atomic_load_explicit(p, memory_order_acquire)

static inline uint8_t *
hy_perm(const hy_body *b)
{
	return (uint8_t *) (uintptr_t) b->fp + b->cap;
}

static inline uint8_t *
hy_data(const hy_body *b)
{
	return (uint8_t *) (uintptr_t) b->fp + 2u * b->cap;
}

/* The node behind; NULL: none. */
static inline hy_node *
hy_next(const hy_node *n)
{
	return hy_ld(&((hy_node *) (uintptr_t) n)->right);
}

/* .. and what is known of it.  Racy. */
static inline hy_end
hy_end_of(const hy_node *n)
{
	hy_node    *m = (hy_node *) (uintptr_t) n;
	hy_end		end = {.next = hy_next(n)};

	AX_POINT("hydra.end_read");
	end.bound = bt_ld(&m->bound);
	end.shared = bt_ld(&m->shared);
	return end;
}

/* In the list's place while a load tells the search layer of one that is not there yet. */
#define HY_LOADING		((void *) 1)

/* HydraList keeps this in its store (ax_store.own). */
typedef struct hy_own
{
	rt_own		search;			/* the search layer's, which is a radix tree */
	_Atomic(void *) list;		/* a CAS from NULL; or a load's mark, which the load
								 * replaces by either */
} hy_own;

_Static_assert(sizeof(hy_own) <= AX_OWN, "a store has room for it");

static inline hy_own *
hy_own_of(ax_store *s)
{
	return (hy_own *) (void *) s->own;
}

static inline hy_list *
hy_list_of(ax_store *s)
{
	void	   *t = atomic_load_explicit(&hy_own_of(s)->list, memory_order_acquire);

	return ax_likely(t != HY_LOADING) ? (hy_list *) t : NULL;
}

static inline _Atomic uint32_t *
hy_slots(const hy_body *b)
{
	return (_Atomic uint32_t *) (void *) hy_data(b);
}

static inline const uint8_t *
hy_prefix(const hy_body *b)
{
	return (const uint8_t *) b + b->size - b->plen;
}

static inline uint64_t
hy_used(const hy_body *b)
{
	return atomic_load_explicit(&((hy_body *) (uintptr_t) b)->used, memory_order_acquire);
}

/* The slots with a key.  Another call may find fewer: what has to agree goes by one. */
static inline uint64_t
hy_live(const hy_view *is)
{
	return atomic_load_explicit(&((hy_view *) (uintptr_t) is)->live, memory_order_relaxed);
}

static inline int
hy_count(const hy_view *is)
{
	return __builtin_popcountll(hy_live(is));
}

/* A fixed body whose keys have all of their TIDs behind the prefix: read where it is. */
static inline bool
hy_is_fixed(const hy_body *b)
{
	return b->rest != HY_VAR && b->rest >= AX_TID_BYTES;
}

/*
 * Ask for all lines of a usual body, of which one has the key.  The lines behind a smaller one, and
 * those of NULL, do no harm: nobody reads them, and an address is no pointer into an object.
 */
AX_PREFETCHES static inline void
hy_ahead(const hy_body *b)
{
	for (uintptr_t i = 0; i < 12; i++)
		ax_prefetch((const void *) ((uintptr_t) b + i * AX_LINE));
}

/* Fingerprint of a key without its TID. */
static inline uint8_t
hy_fp(const uint8_t *key, uint32_t len)
{
	uint64_t	h = len;

	while (len >= 8)
	{
		uint64_t	x;

		memcpy(&x, key, 8);
		h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
		h ^= h >> 29;
		key += 8;
		len -= 8;
	}
	if (len)
		h = (h ^ ax_be8(key, len)) * UINT64_C(0x9E3779B97F4A7C15);
	return (uint8_t) (h >> 56);
}

/* Slots whose fingerprint is fp, used or not; of slots that a body does not have, any. */
static inline uint64_t
hy_match(const hy_body *b, uint8_t fp)
{
#if defined(__SSE2__) && !defined(AX_TSAN)
	const __m128i x = _mm_set1_epi8((char) fp);
	uint64_t	m = 0;

	for (int i = 0; i < 4; i++)
		m |= (uint64_t) (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(x,
			_mm_loadu_si128((const __m128i *) (const void *) (b->fp + 16 * i)))) << (16 * i);
	return m;
#else
	uint64_t	m = 0;

	for (int i = 0; i < HY_SLOTS; i++)
		m |= (uint64_t) (ax_load1(&b->fp[i]) == fp) << i;
	return m;
#endif
}

/*
 * The bytes behind the prefix in slot i: *rest, *len of them.  A blob: all of it, whole.  False:
 * the node changed.  g: NULL when nobody else writes.
 */
static inline bool
hy_rest(const hy_body *b, const ax_guard *g, int i, const uint8_t **rest, uint32_t *len,
		bt_blob **blob)
{
	uint32_t	slot,
				off;

	*blob = NULL;
	if (ax_likely(b->rest != HY_VAR))
	{
		*rest = hy_data(b) + (uint32_t) i * b->rest;
		*len = b->rest;
		return true;
	}
	slot = bt_ld(&hy_slots(b)[i]);
	off = slot & 0xFFFF;
	if (ax_unlikely(slot >> 16 == HY_BLOB))
	{
		uint64_t	x;

		if (off + 8 > b->size)
			return false;
		x = ax_load8((const uint8_t *) b + off);
		if (g && !ax_guard_valid(g))
			return false;
		*blob = (bt_blob *) (uintptr_t) x;
		*rest = (*blob)->bytes;
		*len = (*blob)->len;
		return true;
	}
	*len = slot >> 16;
	*rest = (const uint8_t *) b + off;
	return off + *len <= b->size;
}

/*
 * Is the key of "rest" the prefix, a position in the body's range, and a TID?  The bytes that begin all keys
 * of the range begin the position, too, and need not be compared.  Racy.
 */
static inline bool
hy_is_entry(const hy_body *b, const uint8_t *rest, uint32_t k, const bt_blob *blob,
			const uint8_t *prefix, uint32_t len)
{
	const uint32_t skip = blob ? 0 : b->plen;

	return skip <= len && skip + k == len + AX_TID_BYTES && ax_equal(rest, prefix + skip, len - skip);
}

/* One more of n TIDs, in their order. */
static inline void
hy_take_tid(uint64_t tid, uint64_t *tids, int *n)
{
	int			j;

	for (j = (*n)++; j > 0 && tids[j - 1] > tid; j--)
		tids[j] = tids[j - 1];
	tids[j] = tid;
}

/* ---- hy_node.c ---- */

/*
 * The slot of a key of the node's range, among those that are live.  g: NULL when
 * nobody writes these.
 *
 * Returns: -1, it is not there; -2, the node changed.
 */
extern int	hy_find_key(const hy_view *is, const ax_guard *g, const uint8_t *key, uint32_t len);

/* The key in slot i of a body that nobody writes, in pieces that point there. */
extern void hy_get(const hy_body *b, int i, bt_view *v);

/*
 * Is there a place for a key of so many bytes, or for the address of a long one?
 * Racy.
 */
extern bool hy_room(const hy_body *b, uint32_t len, bool blob);

/*
 * Put a key for which there is room (hy_room) into the first free slot; the bitmap
 * publishes it.
 *
 * Latches: the node's is held, or nobody else sees it.
 */
extern void hy_put(hy_body *b, const uint8_t *key, uint32_t len, uint8_t fp, bt_blob *blob);

/*
 * Take slot i's key out; a long key's object is the caller's.
 *
 * Latches: the node's is held.
 */
extern void hy_del(hy_body *b, int i);

/* Copy the entries in a body's live slots, which nobody writes, to e, in no order; how many. */
extern int	hy_entries(const hy_body *b, uint64_t live, hy_entry *e);

/* Sort n entries, all of which begin with the same "skip" bytes. */
extern void hy_sort(hy_entry *e, int n, uint32_t skip);

/* Put a key in its place among n sorted entries; the place. */
extern int	hy_add(hy_entry *e, int n, const uint8_t *key, uint32_t len, uint8_t fp, bt_blob *blob);

/*
 * Where to cut n sorted entries of which the one at "mine" is new: how many stay left.
 * Rising keys leave the node full.
 */
extern int	hy_cut(const hy_entry *e, int n, int mine);

/* How a key in pieces compares with one in one: below 0, 0, above 0. */
extern int	hy_cmp_view(const bt_view *v, const uint8_t *key, uint32_t len);

/*
 * Copy a body, whose node g guards, to HY_MAX_BODY bytes.
 *
 * Returns: false, the node changed.
 */
extern bool hy_copy(const hy_body *b, const ax_guard *g, uint8_t *to);

/*
 * Write the slots "used" in the keys' order to perm.  Of a fixed body that changes
 * meanwhile the order is any.
 */
extern void hy_order(const hy_body *b, uint64_t used, uint8_t *perm);

/*
 * Copy the order that somebody wrote down of this version of the node, in which the
 * slots were "used".
 *
 * Returns: false, nobody did, or it is being replaced.
 */
extern bool hy_told_order(hy_body *b, uint64_t version, uint64_t used, uint8_t *perm);

/*
 * Write an order down in the place of that of "of", if that is still there.  The
 * caller knows that this version is later.
 */
extern void hy_tell_order(hy_body *b, uint64_t of, uint64_t version, const uint8_t *perm, int n);

/*
 * A private copy of a fixed body that nobody writes, with eight slots more, 64 at
 * most.
 *
 * Epoch: inside.
 * Returns: NULL when there is no memory.
 */
extern hy_body *hy_grow(ax_ctx *cx, ax_store *s, const hy_body *from);

/* The entries of a body, and about how many free slots it has.  The prefix begins all keys of the range. */
typedef struct hy_content
{
	const hy_entry *e;
	int			n;
	int			spare;
	const uint8_t *prefix;
	uint32_t	plen;
} hy_content;

/*
 * A private body of entries that must fit.  Takes long keys over.
 *
 * Epoch: inside.
 * Returns: NULL when there is no memory.
 */
extern hy_body *hy_make_body(ax_ctx *cx, ax_store *s, const hy_content *of, bool may_reserve);

/* Do n entries fit into one body of a range of which plen bytes are known? */
extern bool hy_fits(const hy_entry *e, int n, uint32_t plen);

/*
 * A private header without a body; anchor NULL: below all keys.
 *
 * Epoch: inside.
 * Returns: NULL when there is no memory.
 */
extern hy_node *hy_make_node(ax_ctx *cx, ax_store *s, const bt_view *anchor, bool may_reserve);

/* Give back a body that nobody saw, but not its long keys; NULL: nothing. */
extern void hy_drop_body(ax_ctx *cx, ax_store *s, hy_body *b);

/* Give back a header that nobody saw, but not its body; NULL: nothing. */
extern void hy_drop_node(ax_ctx *cx, ax_store *s, hy_node *n);

/* Bytes of a header whose anchor has so many. */
extern uint32_t hy_node_size(uint32_t alen);

/*
 * Write bytes as the search layer has them: groups of eight, each with a ninth that
 * tells whether more follow.  They sort as they did, and none begins another.  whole:
 * not only the beginning of others.
 *
 * Returns: how many bytes were written.
 */
extern uint32_t hy_encode(const uint8_t *key, uint32_t len, bool whole, uint8_t *buf);

/*
 * How many bytes all keys from one anchor up to another begin with, HY_MAX_PLEN at
 * most; hi NULL: none.
 */
extern uint32_t hy_range(const hy_node *lo, const hy_node *hi);

/* The end of a node's range, with another node behind it, or NULL. */
extern hy_end hy_end_at(const hy_node *n, hy_node *next);

/*
 * Without versions: n's range ends there.
 *
 * Latches: n's is held, or nobody else sees it.
 */
extern void hy_set_end(hy_node *n, const hy_end *end);

/*
 * Link n to the node behind, and note what a search wants to know of its anchor.
 *
 * Latches: n's is held, or nobody else sees it.
 */
extern void hy_set_next(hy_node *n, hy_node *next);

/*
 * Of two keys that rise, the shortest beginning of the right one that is behind the
 * left one.
 */
extern void hy_separator(const bt_view *left, const bt_view *right, bt_view *anchor);

#endif							/* HY_NODE_H */
