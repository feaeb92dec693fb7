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

/* A node, what it is guarded by, and what was read under that guard. */
typedef struct hy_at
{
	ax_guard	g;
	hy_node    *n;
	hy_end		end;
	hy_body    *b;
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
static inline int
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
		uint64_t	x = ax_be8(key + end->shared, len - end->shared);

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
extern ax_status hy_find(ax_ctx *cx, ax_store *s, hy_list *t, hy_node *from, const uint8_t *key,
						 uint32_t len, hy_side side, bool pess, bool write, hy_at *at);
extern ax_status hy_begin(ax_ctx *cx, ax_store *s, hy_list **t);
extern void hy_announce(hy_list *t);
extern void hy_push(hy_list *t, ax_stack_node *l);
extern uint64_t hy_waiting(hy_list *t);
extern ax_status hy_apply(ax_ctx *cx, ax_store *s, hy_list *t, uint64_t most);
extern void hy_told(ax_ctx *cx, ax_store *s, hy_list *t, uint64_t mark);
extern void hy_forget(ax_ctx *cx, ax_store *s, hy_node *first);
extern ax_status hy_settle(ax_ctx *cx, ax_store *s, bool all);

/* ---- hy_jump.c ---- */
extern void hy_walked(ax_ctx *cx, ax_store *s, hy_list *t, uint32_t steps);
extern ax_status hy_jump(ax_ctx *cx, ax_store *s, hy_list *t, const uint8_t *key, uint32_t len,
						 hy_side side, hy_node **n);

/* ---- hy_change.c ---- */
extern ax_status hy_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);
extern ax_status hy_insert_sorted(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
								  const uint32_t *lens, uint32_t len, uint64_t n,
								  uint64_t *done, uint64_t *added);

/* ---- hy_remove.c ---- */
extern ax_status hy_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);
extern ax_status hy_merge(ax_ctx *cx, ax_store *s, hy_list *t, hy_node *a, int most);

/* ---- hy_scan.c ---- */
extern ax_status hy_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);
extern ax_status hy_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
						   uint64_t *tids, uint32_t max, uint32_t *n, bool *more);
extern ax_status hy_scan(ax_ctx *cx, ax_store *s, ax_batch *b);

/* ---- hy_batch.c: for both kinds of lists ---- */
extern int	hy_before(const hy_body *b, const uint8_t *perm, int n, const ax_bound *at);
extern int	hy_take(ax_batch *b, const hy_body *body, const uint8_t *perm, int i, int count);
extern void hy_take_last(ax_batch *b, const hy_body *body, int i);

/* ---- hy_compact.c: another body in a node's place, for both kinds of lists ---- */

typedef struct hy_move
{
	hy_body    *old;
	int			n;
	hy_entry	e[HY_SLOTS];	/* what the old body has; in order, once there is another */
	int			nblobs;
	bt_blob    *goes[HY_SLOTS];
	bt_blob    *moved[HY_SLOTS];
	hy_body    *body;			/* NULL: none was made */
} hy_move;

extern ax_status hy_move_make(ax_ctx *cx, ax_store *s, hy_move *m, const hy_node *n,
							  const hy_node *next, bool must, int more);
extern ax_status hy_move_undo(ax_ctx *cx, ax_store *s, hy_move *m, ax_status x);
extern void hy_move_done(ax_ctx *cx, ax_store *s, hy_move *m);
extern ax_status hy_compact_on(ax_compaction *c, const hy_node *next);

/* ---- hy_bulk.c, hy_check.c, hy_compact.c ---- */
extern ax_status hy_load(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
						 const uint32_t *lens, uint32_t len, uint64_t n, int fill);
extern ax_status hy_check(ax_ctx *cx, ax_store *s, ax_checking *c);
extern void hy_complain(ax_checking *c, const char *what, const hy_body *b);
extern void hy_check_end(ax_checking *c, const hy_body *b, const hy_node *n, const hy_end *end);
extern void hy_check_keys(ax_checking *c, const hy_body *b, const uint8_t *perm, int n,
						  const hy_node *node, const hy_node *next);
extern bool hy_check_layout(ax_checking *c, const hy_body *b, uint64_t used, const hy_node *node,
							const hy_node *next, bool whole);
extern void hy_check_on(ax_checking *c, const hy_node *next);
extern ax_status hy_compact(ax_ctx *cx, ax_store *s, ax_compaction *c);

#endif							/* HY_LIST_H */
