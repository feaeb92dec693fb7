/*
 * hy_list.h
 *	  What the files of HydraList share: finding a node, and the log.
 *
 * src/core/hydra/README.md: HydraList
 */
#ifndef HY_LIST_H
#define HY_LIST_H

#include "hy_node.h"

#define HY_MARK		8			/* logged changes that make a writer apply them */
#define HY_POOR		16			/* a node with fewer keys is merged */
#define HY_FULL		52			/* keys of a merged one, at most */
#define HY_WORTH	64			/* bytes for which a body is made anew */
#define HY_PATH		8000		/* bytes of an anchor that the search layer has, at most */
#define HY_CODED	(HY_PATH / 8 * 9 + AX_TID_BYTES)	/* bytes of the longest one there */

/* Which nodes a position is behind: those whose anchor is */
typedef enum hy_side
{
	HY_BEFORE,					/* not behind the position's bytes */
	HY_AFTER,					/* the same, or begins with them */
	HY_STRICT					/* before them */
} hy_side;

/* How a search takes the node that it finds. */
#define HY_LATCHED	1			/* latched, and the nodes on the way, too; else sampled */
#define HY_TO_WRITE	2			/* to change it: under OptiQL latched in the queue */

/* The way of the n-th try. */
static inline int
hy_way(int tries)
{
	return ax_unlikely(tries >= AX_MAX_RESTARTS) ? HY_LATCHED : 0;
}

/* A call of the engine. */
typedef struct hy_call
{
	ax_ctx	   *cx;
	ax_store   *s;
	hy_list    *t;				/* NULL: there is none yet */
	bool		versions;		/* of sync = mvrlu */
	uint64_t	clock;			/* versions: the moment that it sees, if it only reads */
} hy_call;

/*
 * Begin a call.  Of one that reads this is the moment.
 *
 * Epoch: inside, and nothing else was read in it.
 * Returns: false, there is no list.
 */
static inline bool
hy_enter(hy_call *h, ax_ctx *cx, ax_store *s)
{
	h->cx = cx;
	h->s = s;
	h->t = hy_list_of(s);
	h->versions = s->sync == AX_SYNC_MVRLU;
	if (h->versions && h->t)
		h->clock = atomic_load_explicit(&h->t->clock, memory_order_acquire);
	return h->t != NULL;
}

/* A node that a call has found. */
typedef struct hy_at
{
	ax_guard	g;				/* of nothing where versions are read */
	hy_node    *n;
	const hy_view *is;			/* what it is; a version's, or: */
	hy_view		seen;			/* .. what was read under the guard, and holds if that does */
} hy_at;

/* Does the node's range begin before the position? */
static inline bool
hy_is_left(const hy_node *n, const uint8_t *key, uint32_t len, hy_side side)
{
	uint32_t	m = n->alen < len ? n->alen : len;
	int			c = m ? memcmp(n->anchor, key, m) : 0;

	if (c)
		return c < 0;
	if (n->alen < len)
		return true;
	if (side == HY_STRICT)
		return false;
	return n->alen == len || side == HY_AFTER;
}

/*
 * Is the position in the node's range (0), left or right of it?  As a rule without a look at
 * the next node: what is known of its anchor is compared.  Racy.
 */
__attribute__((always_inline)) static inline int
hy_where(const hy_node *n, const hy_end *end, const uint8_t *key, uint32_t len, hy_side side)
{
	const uint32_t m = n->alen < len ? n->alen : len;
	uint32_t	c = 0;

	while (c < m && n->anchor[c] == key[c])
		c++;
	if (c < m ? n->anchor[c] > key[c] :
		n->alen > len ? side != HY_AFTER : n->alen > 0 && n->alen == len && side == HY_STRICT)
		return -1;
	if (ax_likely(side != HY_AFTER && end->shared <= len))
	{
		uint64_t	x = ax_be8(bt_key_behind(key, end->shared), len - end->shared);

		/* both anchors begin so, and the key is behind the first */
		if (c < end->shared)
			return 1;
		if (x != end->bound)
			return x > end->bound;
	}
	return end->next && hy_is_left(end->next, key, len, side);
}

/*
 * Are there perhaps, in the nodes behind, keys that begin as a position of this one?  The next
 * anchor then does, too.  Racy.
 */
static inline bool
hy_goes_on(const hy_end *end, const uint8_t *key, uint32_t len)
{
	if (ax_likely(end->shared < len))
	{
		const uint32_t n = len - end->shared;
		const uint64_t differs = ax_be8(key + end->shared, n) ^ end->bound;

		if (ax_likely(n < 8 ? differs >> (64 - 8 * n) != 0 : differs != 0))
			return false;
	}
	return end->next && hy_is_left(end->next, key, len, HY_AFTER);
}

/* Is a key behind a position? */
static inline bool
hy_is_behind(const bt_view *v, const ax_bound *at)
{
	uint32_t	len = bt_len(v);

	if (len >= at->len)
	{
		/* keys that begin so are on the side that it says */
		uint32_t	an = v->an < at->len ? v->an : at->len;
		int			c = an ? memcmp(v->a, at->key, an) : 0;

		if (c == 0 && at->len > an)
			c = memcmp(v->r, at->key + an, at->len - an);
		return c ? c > 0 : !at->after;
	}
	return hy_cmp_view(v, at->key, at->len) > 0;
}

/*
 * Is it likely that a batch goes on behind a node whose body is not here yet?  Its end is compared
 * with what is known of the next anchor.  Racy.
 */
static inline bool
hy_scan_goes_on(const ax_batch *b, const hy_end *end)
{
	return b->max - b->n > HY_SLOTS / 4 && (b->backward || end->shared >= b->hi.len ||
		ax_be8(b->hi.key + end->shared, b->hi.len - end->shared) >= end->bound);
}

/* ---- hy_list.c ---- */

/*
 * A private list of nodes that nobody else sees.  With versions these get theirs.
 *
 * Epoch: inside.
 * Returns: NULL when there is no memory, and the nodes are as they were.
 */
extern hy_list *hy_make_list(const hy_call *h, hy_node *first);

/* Give back a private list, but not its nodes, which lose their versions. */
extern void hy_drop_list(const hy_call *h, hy_list *t);

/*
 * A call has found no list: make one, of one empty node, if there is still none.
 *
 * Epoch: inside.
 * Returns: AX_OK, AX_NOMEM; AX_BUSY: a load is about to make it.
 */
extern ax_status hy_begin(hy_call *h);

/*
 * The node in whose range the position lies now.  from: a node near it, NULL: ask the
 * search layer.  way: HY_LATCHED, HY_TO_WRITE.
 *
 * Epoch: inside.
 * Latches: none on entry.  On AX_OK the node's guard is open: if HY_LATCHED, and under
 * OptiQL HY_TO_WRITE, it has the latch.
 * Returns: AX_OK, *at holds if the guard is still valid when all is read; AX_STALE:
 * start over; AX_BUSY.
 */
extern ax_status hy_find(const hy_call *h, hy_node *from, const ax_bound *pos, hy_side side,
						 int way, hy_at *at);

/* A change is going to be logged; before anybody can see it. */
extern void hy_announce(hy_list *t);

/*
 * Log a change that was announced.
 *
 * Latches: that of the node before the one that comes or goes is held: a coming is
 * then logged before its going.
 */
extern void hy_push(hy_list *t, ax_stack_node *l);

/* How many changes the search layer does not have yet. */
extern uint64_t hy_waiting(hy_list *t);

/*
 * Apply up to "most" of the changes logged, in their order, unless somebody else is at
 * it.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; those of the search layer.
 * Returns: AX_OK, AX_NOMEM, AX_BUSY: some are left.
 */
extern ax_status hy_apply(const hy_call *h, uint64_t most);

/*
 * Something is logged.  Where at least "mark" changes wait, some are applied; the rest
 * is the updater's.
 *
 * Epoch: inside.
 * Latches: none on entry and on return, but a coarse tree's.
 */
extern void hy_told(const hy_call *h, uint64_t mark);

/*
 * A load comes to nothing: take the nodes behind "first" out of the search layer.
 *
 * Epoch: inside.
 */
extern void hy_forget(const hy_call *h, hy_node *first);

/*
 * The engines' settle: applies a piece of the log, 256 changes.  AX_BUSY: some are
 * left.
 */
extern ax_status hy_settle(ax_ctx *cx, ax_store *s, bool all);

/*
 * The engines' info: log, walks, commits.
 *
 * Epoch: inside.
 */
extern void hy_info(ax_store *s, ax_tree_info *out);

/* ---- hy_jump.c ---- */

/* Count a search that passed so many nodes behind the one that the search layer told. */
extern void hy_walked(const hy_call *h, uint32_t steps);

/*
 * A node near the position, by the search layer; it may be obsolete, or, with versions,
 * have come later.  A call with versions waits for nobody.
 *
 * Epoch: inside.
 * Returns: AX_OK; without versions AX_BUSY.
 */
extern ax_status hy_jump(const hy_call *h, const ax_bound *pos, hy_side side, hy_node **n);

/* ---- hy_change.c ---- */

/* The engines' insert. */
extern ax_status hy_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* The engines' insert_sorted. */
extern ax_status hy_insert_sorted(ax_ctx *cx, ax_store *s, const ax_keys *keys,
								  uint64_t *done, uint64_t *added);

/* ---- hy_remove.c ---- */

/* The engines' remove.  Needs no memory, but records of what it retires. */
extern ax_status hy_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/*
 * Node a takes in the one behind it, if both together have at most so many keys.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; takes both nodes', left to right, by one try
 * each.
 * Returns: AX_OK; AX_NOTFOUND: there is none, or too many keys, or no memory;
 * AX_STALE, AX_BUSY.
 */
extern ax_status hy_merge(const hy_call *h, hy_node *a, int most);

/* ---- hy_scan.c ---- */

/* The engines' contains. */
extern ax_status hy_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* The engines' lookup. */
extern ax_status hy_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
						   ax_found *f);

/* The engines' scan.  With versions all of a batch is of one moment. */
extern ax_status hy_scan(ax_ctx *cx, ax_store *s, ax_batch *b);

/* ---- hy_batch.c ---- */

/* How many of n keys of a body, in their order, lie before a position.  Racy. */
extern int	hy_before(const hy_body *b, const uint8_t *perm, int n, const ax_bound *at);

/*
 * Take up to "count" keys into the batch, in its direction, from place i of their
 * order on.  "lastkey" is the caller's.  Racy, of a fixed body.
 *
 * Returns: for how many there was room; if fewer, need_bytes is set.
 */
extern int	hy_take(ax_batch *b, const hy_body *body, const uint8_t *perm, int i, int count);

/* Make the key in slot i the batch's lastkey.  The body is one that nobody writes. */
extern void hy_take_last(ax_batch *b, const hy_body *body, int i);

/* ---- hy_bulk.c, hy_check.c, hy_compact.c ---- */

/*
 * The engines' load.
 *
 * Epoch: inside; now and then another one.  On AX_STALE outside.
 */
extern ax_status hy_load(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill);

/* The engines' check. */
extern ax_status hy_check(ax_ctx *cx, ax_store *s, ax_checking *c);

/* The engines' compact: the list, then the search layer. */
extern ax_status hy_compact(ax_ctx *cx, ax_store *s, ax_compaction *c);

#endif							/* HY_LIST_H */
