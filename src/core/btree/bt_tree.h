/*
 * bt_tree.h
 *	  What the files of the B+-tree share: descents.
 */
#ifndef BT_TREE_H
#define BT_TREE_H

#include "bt_page.h"

#define BT_PREFETCH 2048		/* bytes of a page that are asked for at once */

typedef struct bt_frame
{
	ax_guard	g;
	bt_page    *p;
	int			i;				/* inner: the child that was taken */
} bt_frame;

/*
 * A descent: frame 0 is the root page, the last one the leaf.  The root
 * pointer's own word is guarded by "root".
 */
typedef struct bt_path
{
	ax_guard	root;
	int			n;				/* frames; 0: the tree is empty */
	bool		pess;			/* latched, not sampled */
	bool		all;			/* pessimistic: all the way, not only two */
	bool		write;			/* the leaf is to be written */
	bt_frame	f[BT_LEVELS];
} bt_path;

/*
 * A page on its way in: its lines at once, so that the search waits for memory
 * once.  (Pages are at least four lines.)
 */
AX_PREFETCHES static inline void
bt_prefetch(const bt_page *p, uint32_t size)
{
	const char *at = (const char *) p;
	const char *end = at + (size < BT_PREFETCH ? size : BT_PREFETCH);

	for (; at < end; at += 4 * AX_LINE)
	{
		ax_prefetch(at);
		ax_prefetch(at + AX_LINE);
		ax_prefetch(at + 2 * AX_LINE);
		ax_prefetch(at + 3 * AX_LINE);
	}
}

static inline bt_page *
bt_ref(_Atomic uint64_t *slot)
{
	return (bt_page *) (uintptr_t) atomic_load_explicit(slot, memory_order_acquire);
}

/* The guard of the pointer to frame k. */
static inline ax_guard *
bt_above(bt_path *t, int k)
{
	return k > 0 ? &t->f[k - 1].g : &t->root;
}

/* ---- bt_tree.c ---- */
extern void bt_close(ax_ctx *cx, bt_path *t, int from);
extern ax_status bt_descend(ax_ctx *cx, ax_store *s, bt_path *t, const uint8_t *key,
							uint32_t len, bool after);
extern const uint8_t *bt_range_prefix(bt_path *t, int k, const bt_view *lo, bool has_lo,
									  const bt_view *hi, bool has_hi, bool within,
									  uint8_t *buf, uint32_t *plen);
extern void bt_drop(ax_ctx *cx, ax_store *s, int level, bt_page *p, bool built);
extern void bt_publish(ax_store *s, bt_path *t, int k, bt_page *p);

extern ax_status bt_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);
extern ax_status bt_insert_sorted(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
								  const uint32_t *lens, uint32_t len, uint64_t n,
								  uint64_t *done, uint64_t *added);

/* ---- bt_remove.c ---- */
extern ax_status bt_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);
extern void bt_tidy(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* ---- bt_compact.c ---- */
extern ax_status bt_compact(ax_ctx *cx, ax_store *s, ax_compaction *c);

/* ---- bt_scan.c ---- */
extern ax_status bt_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);
extern ax_status bt_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
						   uint64_t *tids, uint32_t max, uint32_t *n, bool *more);
extern ax_status bt_lookup_many(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
								const uint32_t *lens, uint32_t len, uint32_t n,
								uint64_t *tids, uint32_t max, uint32_t *counts,
								uint32_t *done);
extern ax_status bt_scan(ax_ctx *cx, ax_store *s, ax_batch *b);

/* ---- bt_bulk.c, bt_check.c ---- */
extern ax_status bt_load(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
						 const uint32_t *lens, uint32_t len, uint64_t n, int fill);
extern ax_status bt_check(ax_ctx *cx, ax_store *s, ax_checking *c);

#endif							/* BT_TREE_H */
