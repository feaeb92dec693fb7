/*
 * ax_tail.h
 *	  The tail buffer: what the files of this room know of one another: when there is
 *	  one (ax_tail_auto.c), who uses it (ax_tail.c), who empties it
 *	  (ax_tail_empty.c), and its kinds (ax_window.c, ax_append.c).
 *
 * store->tail is a chain of buffers: the first takes inserts, the one behind
 * it (if any) is closed and being emptied.  An ax_tail is an object of the
 * arena; its kind embeds it as its first member.  It and all that hangs on it
 * never changes its identity.  It is published by one store of a pointer,
 * unlinked by another, retired through the epoch, never used again for
 * anything else.  So whoever met it inside his epoch may go on reading it.
 *
 * Every entry has a word, which says in its low bits how far it is:
 *
 *	EMPTY -> FULL			by the inserter, one CAS: this is its insert
 *	EMPTY -> SEALED			by the flusher: who comes late goes to the tree
 *	FULL -> CANCELLING		by ax_remove, while it looks into the tree, which may be busy:
 *							then FULL again
 *	CANCELLING -> REMOVED	final
 *	FULL -> FLUSHING		by the flusher, who now puts it into the tree
 *	FLUSHING -> FLUSHED		it is in the tree; final
 *	FLUSHING -> FULL		the tree had no room, or no time: as before
 *
 * FULL, FLUSHING and CANCELLING are there, for every reader.  The last two
 * last no longer than the call of the core that made them so.  A reader that
 * sees anything else goes on to the tree, where a FLUSHED entry has been since
 * before it was FLUSHED.  So a reader looks here first and into the tree
 * afterwards, and misses nothing.  An entry may be in both: all who merge drop
 * what is the same key and TID.  No entry needs a version: it is unique with
 * its TID, and never overwritten.
 *
 * src/core/tail/README.md: The tail buffer
 */
#ifndef AX_TAIL_H
#define AX_TAIL_H

#include "core/elide/ax_elide.h"

typedef _Atomic uint64_t ax_tail_word;

enum
{
	AX_T_EMPTY = 0,
	AX_T_FULL,
	AX_T_FLUSHING,
	AX_T_CANCELLING,
	AX_T_FLUSHED,
	AX_T_REMOVED,
	AX_T_SEALED
};
#define AX_T_STATE	UINT64_C(7)	/* the bits above are the kind's own */

static inline bool
ax_tail_is_there(uint64_t v)
{
	return (v & AX_T_STATE) - AX_T_FULL <= AX_T_CANCELLING - AX_T_FULL;
}

/* For one call of the core; nobody waits for it. */
static inline bool
ax_tail_claim(ax_ctx *cx, _Atomic uint32_t *w)
{
	ax_ctx_body *b = ax_body(cx);
	uint32_t	nobody = 0;

	if (atomic_load_explicit(w, memory_order_relaxed) != 0 ||
		!atomic_compare_exchange_strong_explicit(w, &nobody, (uint32_t) b->slotno + 1,
												 memory_order_acquire,
												 memory_order_relaxed))
		return false;
	b->claims++;
	return true;
}

static inline void
ax_tail_unclaim(ax_ctx *cx, _Atomic uint32_t *w)
{
	atomic_store_explicit(w, 0, memory_order_release);
	ax_body(cx)->claims--;
}

#define AX_TAIL_KEY_MAX	128		/* longest key that a buffer takes, with its TID */
#define AX_TAIL_STEP	64		/* entries that one step moves, at most */
#define AX_TAIL_ELIDED	8		/* and one section of it: a transaction is small */

typedef struct ax_tail_kind ax_tail_kind;
typedef struct ax_tail ax_tail;

/* One entry met by a reader, good till the end of its epoch. */
typedef struct ax_tail_item
{
	const uint8_t *key;			/* whole, in the buffer; NULL: ask kind->key */
	uint32_t	len;
	uint32_t	unused;
	uint64_t	num;			/* the kind's own */
	uint64_t	tid;
} ax_tail_item;

struct ax_tail
{
	/* immutable but for floor8, plain_len, closed and next */
	const ax_tail_kind *kind;
	_Atomic uint64_t floor8;	/* see ax_tail_may_have; its kind raises it: the
								 * flusher, or who has a window's "maker" */
	uint32_t	need_len;		/* 0: any */
	uint32_t	off;
	_Atomic uint32_t plain_len;	/* need_len, when that and eight bytes at off is all there
								 * is to ask; else no length; written with "next" */
	uint32_t	size;			/* of the object, for ax_retire */
	_Atomic bool closed;		/* takes nothing more; set once, by anybody */
	_Atomic(ax_tail *) next;	/* an older one, closed; by the holder of tail_changer */

	/* who flushes, for the length of one call of the core: 0 or slot + 1 */
	_Alignas(AX_LINE) _Atomic uint32_t flusher;
};

/*
 * Can an entry of this column prefix be here?  A test that must never say no
 * wrongly, and be cheap.  It compares eight bytes of the key as a number with
 * a floor.  (The key is whole without its TID; so "len" and "off" count
 * without it.)  Keys of less than eight bytes: four, and of less than four, no
 * test.
 */
static inline bool
ax_tail_may_have(const ax_tail *t, const uint8_t *prefix, uint32_t len)
{
	uint64_t	x;

	if (t->need_len && len != t->need_len)
		return false;
	if (ax_likely(len >= t->off + 8))
	{
		memcpy(&x, prefix + t->off, 8);
		x = __builtin_bswap64(x);
	}
	else if (len >= t->off + 4)
	{
		uint32_t	y;

		memcpy(&y, prefix + t->off, 4);
		x = __builtin_bswap32(y);
		if (!t->need_len)
			x = x << 32 | UINT32_MAX;
	}
	else
		return true;
	return x >= atomic_load_explicit(&((ax_tail *) (uintptr_t) t)->floor8, memory_order_acquire);
}

/*
 * ax_tail_near() where the lengths of keys differ, or there are two buffers: asks each
 * of the chain.
 *
 * Epoch: inside.
 */
extern bool ax_tail_chain_near(const ax_tail *t, const uint8_t *prefix, uint32_t len);

/*
 * The same of it and the one behind it.  plain_len is changed with "next", by
 * the one that changes the chain.  A reader of the older of the two looks at more than it must.
 */
static inline bool
ax_tail_near(const ax_tail *t, const uint8_t *prefix, uint32_t len)
{
	if (ax_likely(len == atomic_load_explicit(&((ax_tail *) (uintptr_t) t)->plain_len,
											  memory_order_acquire)))
	{
		uint64_t	x;

		memcpy(&x, prefix + t->off, 8);
		return __builtin_bswap64(x) >=
			atomic_load_explicit(&((ax_tail *) (uintptr_t) t)->floor8, memory_order_acquire);
	}
	return ax_tail_chain_near(t, prefix, len);
}

/* For who changes the chain, before a buffer is published and when "next" goes. */
static inline void
ax_tail_set_next(ax_tail *t, ax_tail *next)
{
	/* "next" goes when all that is behind is in the tree, so the order is all one */
	atomic_store_explicit(&t->next, next, memory_order_release);
	atomic_store_explicit(&t->plain_len, next || !t->need_len || t->need_len < t->off + 8 ?
						  UINT32_MAX : t->need_len, memory_order_release);
}

struct ax_tail_kind
{
	const char *name;			/* as tail_mode shows it */

	/*
	 * Put the key in.  AX_OK; AX_EXISTS: this very key and TID is here; AX_CHANGED: it
	 * is for the tree.  Never waits.  May be called on a closed one.
	 */
	ax_status	(*insert) (ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *key, uint32_t len);

	/*
	 * The word of this very key and TID, when it is there, else NULL.  Where there can
	 * be several: the next one behind "last" (NULL: the first).
	 */
	ax_tail_word *(*find) (ax_tail *t, const uint8_t *key, uint32_t len, ax_tail_word *last);

	/*
	 * The TIDs that are there with this prefix (a whole key without its TID), rising and
	 * distinct: the lowest "max" of them.  *more: there are others.
	 */
	uint32_t	(*lookup) (ax_tail *t, const uint8_t *prefix, uint32_t len,
						   uint64_t *tids, uint32_t max, bool *more);

	/*
	 * The entries between two positions, in the order of the direction,
	 * distinct: the first "max" of them.  *more: there are others.
	 */
	uint32_t	(*collect) (ax_tail *t, const ax_bound *lo, const ax_bound *hi, bool backward,
							ax_tail_item *items, uint32_t max, bool *more);

	/* The whole key of an item whose key is NULL, into AX_TAIL_KEY_MAX bytes. */
	uint32_t	(*key) (ax_tail *t, const ax_tail_item *item, uint8_t *buf);

	/*
	 * A position, at most AX_TAIL_KEY_MAX bytes: nothing is, or will be, here that
	 * lies before it (but what was flushed meanwhile).
	 */
	uint32_t	(*floor) (ax_tail *t, uint8_t *buf);

	/* How many are there. */
	uint64_t	(*live) (ax_tail *t);

	/* Would flush(.., false, ..) find something to do?  Cheap. */
	bool		(*due) (ax_tail *t);

	/*
	 * Move up to AX_TAIL_STEP entries into the tree (ax_tail_drain), the caller
	 * having the claim.  It stops before one that is CANCELLING (AX_BUSY, when that
	 * is the first).  all: those that would better wait, too.  *more: there is more
	 * to do (of what "all" says).  AX_OK, AX_BUSY, AX_NOMEM.
	 */
	ax_status	(*flush) (ax_ctx *cx, ax_store *s, ax_tail *t, bool all, bool *more);

	/*
	 * Closed: is nothing there, has all that hung on it been retired (by the steps of
	 * flush), and can nothing come any more?  The caller has the claim, and unlinks and
	 * retires the ax_tail itself.
	 */
	bool		(*finished) (ax_ctx *cx, ax_tail *t);
};

#define AX_WINDOW_SHIFT_MAX 13

/*
 * ax_window.c: a new window buffer for keys like this.  2^shift values of their number
 * share a slot; the number is the last eight, or four, bytes before the TID.  Not
 * published.
 *
 * Epoch: inside.
 * Returns: NULL when the key has no such number, or there is no memory.
 */
extern ax_tail *ax_window_new(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len,
							  int shift);

/*
 * ax_append.c: a new append buffer for keys from floor on that share their first "off"
 * bytes with it; behind these ax_tail_may_have() finds its number.  Not published.
 *
 * Epoch: inside.
 * Returns: NULL when there is no memory.
 */
extern ax_tail *ax_append_new(ax_ctx *cx, ax_store *s, const uint8_t *floor, uint32_t len,
							  uint32_t off);

/*
 * For kind->flush: put keys, strictly rising, whose words this caller made
 * FLUSHING, into the tree.  Then make those that are in FLUSHED and the others FULL
 * again.  *done: how many of the first are in.
 */
extern ax_status ax_tail_drain(ax_ctx *cx, ax_store *s, const ax_keys *keys,
							   ax_tail_word *const *words, uint32_t *done);

/* The order of two positions. */
static inline int
ax_bound_cmp(const ax_bound *a, const ax_bound *b)
{
	uint32_t	n = a->len < b->len ? a->len : b->len;
	int			c = n ? memcmp(a->key, b->key, n) : 0;

	if (c)
		return c;
	if (a->len < b->len)
		return a->after ? 1 : -1;
	if (a->len > b->len)
		return b->after ? -1 : 1;
	return (int) a->after - (int) b->after;
}

/* ---- for the dispatch, when there is a buffer: ax_tail*.c ---- */

/*
 * Insert a key into the buffer, or, if that does not take it, into the tree.  Every
 * 16th insert of a process also moves a step.
 *
 * Epoch: inside.
 * Latches: none on entry and on return, nor a claim.
 * Returns: as ax_insert(), but AX_OK also where the tree has the key.
 */
extern ax_status ax_tail_insert(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *key,
								uint32_t len);

/*
 * Remove a key from the buffers and from the tree.  An entry of a buffer is held while
 * the tree is asked.
 *
 * Epoch: inside.
 * Latches: none on entry and on return, nor a claim.
 * Returns: AX_OK, AX_NOTFOUND, or what the tree said, and then nothing was removed.
 */
extern ax_status ax_tail_remove(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *key,
								uint32_t len);

/*
 * Is this very key in a buffer or in the tree?  The buffers are asked first.
 *
 * Epoch: inside.
 * Returns: AX_OK, AX_NOTFOUND, AX_BUSY.
 */
extern ax_status ax_tail_contains(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *key,
								  uint32_t len);

/*
 * ax_lookup() in the buffers and then in the tree, merged.
 *
 * Epoch: inside.
 */
extern ax_status ax_tail_lookup(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *prefix,
								uint32_t len, ax_found *f);

/*
 * ax_scan() of the buffers and the tree, merged.  Below the buffers' floors all is the
 * tree's alone.
 *
 * Epoch: inside.
 */
extern ax_status ax_tail_scan(ax_ctx *cx, ax_store *s, ax_tail *t, ax_batch *b);

/*
 * Add what the buffers hold, and the counters of the tail, to *out, which has the
 * tree's own counts.  about: the entries as of some 10 ms ago, for counting them reads
 * every line that inserters write.
 *
 * Epoch: inside.
 */
extern void ax_tail_info(ax_ctx *cx, ax_store *s, ax_tree_info *out, bool about);

/*
 * Of an insert, now and then: should there be a buffer, or should there not?  Opens
 * one, or closes one.
 *
 * Epoch: inside.
 * Latches: none held; tries claims.
 * Returns: the buffer that the insert goes to, or NULL.
 */
extern ax_tail *ax_tail_sample(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/*
 * Move as much of the buffers as can be had now into the tree.  No failure of anything
 * if it cannot be done.
 *
 * Epoch: inside.
 * Latches: none held; tries claims.
 */
extern void ax_tail_empty(ax_ctx *cx, ax_store *s);

/*
 * An inserter's share of the emptying: a step of the closed buffer, or of this one if
 * something is due.
 *
 * Epoch: inside.
 * Latches: none held; tries claims.
 */
extern void ax_tail_help(ax_ctx *cx, ax_store *s, ax_tail *t);

/* A try that was nobody's request: what it met is nobody's concern. */
static inline void
ax_tail_forget_failure(ax_ctx *cx)
{
	ax_ctx_body *b = ax_body(cx);

	b->alloc_busy = b->alloc_injected = b->limbo_short = false;
}

/*
 * ax_settle()'s part: give up a buffer that nothing has gone into, or past, since the
 * last time (all: any).  One that the option insists on stays.
 *
 * Epoch: inside.
 * Latches: none held; tries claims.
 */
extern void ax_tail_settle(ax_ctx *cx, ax_store *s, bool all);

#endif							/* AX_TAIL_H */
