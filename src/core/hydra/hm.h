/*
 * hm.h
 *	  Multi-version read-log-update over HydraList's data nodes (sync = mvrlu).
 *
 * A node's header leads to a chain of versions, the newest first.  A version says which
 * slots of which body are keys, and which node is behind.  It never gains a slot, and loses
 * one only when there is no memory for another version (hm_remove).  A slot is given once in
 * a body's life.  So an insert writes into a slot that no version has, and then makes a
 * version that has it.
 *
 * The list has a clock.  A commit adds to it, and the sum is the stamp of its versions.  A
 * reader reads it once, when it comes.  Of each node it takes the newest version with no
 * later stamp.  It finds all nodes as they were at that moment.
 *
 * src/core/hydra/README.md: Versions
 */
#ifndef HM_H
#define HM_H

#include "hy_list.h"

/*
 * A stamp that is none yet.  While it is PENDING no reader of now can be late for it: it
 * will be greater than every clock that was read.  While it is COMMITTING it may have been
 * drawn, and not be here yet.  A reader that meets that draws one itself, and the first counts.
 */
#define HM_PENDING		UINT64_MAX
#define HM_COMMITTING	(UINT64_MAX - 1)

/*
 * Its maker writes all of it before it is in a header.  After that the stamp changes, and
 * "live" where hm_remove says so.
 * The maker stores COMMITTING, and one CAS of anybody the number.  Of a version that is led
 * the maker stores the number.
 */
typedef struct hm_ver
{
	_Atomic uint64_t stamp;
	struct hm_ver *older;		/* what was before; for readers that came before the stamp */
	struct hm_ver *lead;		/* PENDING: whose stamp is ours, too; NULL: our own */
	hy_end		end;			/* without a body: where its keys are now */
	hy_body    *body;			/* NULL: the node is gone */
	_Atomic uint64_t live;		/* slots with a key */
} hm_ver;

/* A node that a writer found, its guard, and the version under that guard. */
typedef struct hm_at
{
	ax_guard	g;
	hy_node    *n;
	hm_ver	   *v;
} hm_at;

static inline hm_ver *
hm_newest(const hy_node *n)
{
	return hy_ld(&((hy_node *) (uintptr_t) n)->ver);
}

/* The moment that a reader is to see.  Inside its epoch, and before anything else is read. */
static inline uint64_t
hm_now(hy_list *t)
{
	return atomic_load_explicit(&t->clock, memory_order_acquire);
}

/* The slots with a key.  Another call may find fewer: what has to agree goes by one. */
static inline uint64_t
hm_live(const hm_ver *v)
{
	return atomic_load_explicit(&v->live, memory_order_relaxed);
}

static inline int
hm_count(const hm_ver *v)
{
	return __builtin_popcountll(hm_live(v));
}

/* Ask for what a search reads of a node, of which the header is not here yet.  Racy. */
AX_PREFETCHES static inline hy_body *
hm_ask_for(const hy_node *n)
{
	hy_node    *m = (hy_node *) (uintptr_t) n;
	hy_body    *b;

	b = bt_ld(&m->soon);
	ax_prefetch(bt_ld(&m->ver));
	hy_ahead(b);
	return b;
}

/* ---- hm_list.c ---- */

/*
 * Memory for a version, to be filled.
 *
 * Epoch: inside.
 * Returns: NULL when there is none.
 */
extern hm_ver *hm_make_ver(ax_ctx *cx, ax_store *s, bool may_reserve);

/* Give back a version that nobody saw; NULL: nothing. */
extern void hm_drop_ver(ax_ctx *cx, ax_store *s, hm_ver *v);

/*
 * Put a version in a header, pending; nobody takes it before its commit.  lead: the
 * version whose stamp decides of several, which was published before; NULL: its own.
 *
 * Latches: the node's is held, or nobody else knows of it.
 */
extern void hm_publish(hy_node *n, hm_ver *v, hm_ver *lead);

/*
 * All versions of a change are published, and are there from one moment on: marks the
 * lead, draws the next stamp, and puts it there.
 *
 * Latches: those of all nodes of the change are held.
 */
extern void hm_commit(hy_list *t, hm_ver *lead);

/*
 * After the commit: a version that was led gets the stamp itself, for the lead goes
 * its own way.
 *
 * Latches: the lead's node's is held.
 */
extern void hm_led(hm_ver *v);

/*
 * The node's version of a moment.  Ends a commit that it meets marked.
 *
 * Epoch: inside.
 * Returns: NULL, the node came later.
 */
extern hm_ver *hm_version(hy_list *t, const hy_node *n, uint64_t clock);

/*
 * The node in whose range the position was at the moment, and its version of then.
 * *n: a node near it, or NULL.
 *
 * Epoch: inside; the clock was read in it.
 * Latches: none; waits for nobody.
 */
extern hm_ver *hm_reach(ax_ctx *cx, ax_store *s, hy_list *t, hy_node **n, const ax_bound *pos,
						hy_side side, uint64_t clock);

/*
 * The node in whose range the position is now, for a process that wants to change it.
 *
 * Epoch: inside.
 * Latches: none on entry.  On AX_OK the node's guard is open: with pess it has the
 * latch.
 * Returns: AX_OK, *at holds if the guard is still valid afterwards; AX_STALE: start
 * over; AX_BUSY.
 */
extern ax_status hm_find(ax_ctx *cx, ax_store *s, hy_list *t, hy_node *from, const ax_bound *pos,
						 hy_side side, bool pess, hm_at *at);

/* The slot of a key of the node's range in a version, or -1. */
extern int	hm_slot_of(const hm_ver *v, const uint8_t *key, uint32_t len);

/* Copy all entries of a version to e, in no order; how many. */
extern int	hm_entries(const hm_ver *v, hy_entry *e);

/*
 * Give the nodes of a list that nobody else sees their versions, which are of before
 * all moments.
 *
 * Epoch: inside.
 * Returns: false when there is no memory, and none has one.
 */
extern bool hm_dress(ax_ctx *cx, ax_store *s, hy_node *first);

/* Take those versions back: the load comes to nothing. */
extern void hm_undress(ax_ctx *cx, ax_store *s, hy_node *first);

/* ---- hm_change.c, hm_remove.c, hm_compact.c ---- */

/* The engine's insert. */
extern ax_status hm_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/*
 * The engine's remove.  Without memory for a version it takes the slot out of the
 * newest one.
 */
extern ax_status hm_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/*
 * hy_merge() with versions: two new ones, of one stamp.
 *
 * Epoch: inside.
 * Latches: as hy_merge().
 * Returns: as hy_merge().
 */
extern ax_status hm_merge(ax_ctx *cx, ax_store *s, hy_list *t, hy_node *a, int most);

/*
 * Compact the node of the position.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 * Returns: AX_OK, the position is the node behind; AX_NOTFOUND, that was the last;
 * AX_STALE: once more; AX_BUSY.
 */
extern ax_status hm_compact_node(ax_ctx *cx, ax_store *s, hy_list *t, ax_compaction *c);

/* ---- hm_scan.c ---- */

/*
 * Write the slots of a version in the keys' order to perm; how many.  Leaves the order
 * in the body, for others.
 */
extern int	hm_order(const hm_ver *v, uint8_t *perm);

/* The engine's contains, as of when it came. */
extern ax_status hm_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* The engine's lookup, as of when it came. */
extern ax_status hm_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
						   ax_found *f);

/* The engine's scan: all of a batch is of one moment. */
extern ax_status hm_scan(ax_ctx *cx, ax_store *s, ax_batch *b);

/* ---- hm_check.c ---- */

/*
 * Check the node of the position, as it was at the moment.
 *
 * Epoch: inside; the clock was read in it.
 * Returns: AX_OK, AX_BUFFER.
 */
extern ax_status hm_check_node(ax_ctx *cx, ax_store *s, hy_list *t, ax_checking *c,
							   uint64_t clock);

#endif							/* HM_H */
