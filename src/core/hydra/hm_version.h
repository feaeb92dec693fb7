/*
 * hm_version.h
 *	  Multi-version read-log-update over HydraList's data nodes (sync = mvrlu).
 *
 * A node's header leads to a chain of versions, the newest first.  A version says which
 * slots of which body are keys, and which node is behind.  It never gains a slot, and loses
 * one only when there is no memory for another version (hy_remove).  A slot is given once in
 * a body's life.  So an insert writes into a slot that no version has, and then makes a
 * version that has it.
 *
 * The list has a clock.  A commit adds to it, and the sum is the stamp of its versions.  A
 * reader reads it once, when it comes.  Of each node it takes the newest version with no
 * later stamp.  It finds all nodes as they were at that moment.
 *
 * src/core/hydra/README.md: Versions
 */
#ifndef HM_VERSION_H
#define HM_VERSION_H

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
 * "live" where hy_remove says so.
 * The maker stores COMMITTING, and one CAS of anybody the number.  Of a version that is led
 * the maker stores the number.
 */
typedef struct hm_ver
{
	_Atomic uint64_t stamp;
	struct hm_ver *older;		/* what was before; for readers that came before the stamp */
	struct hm_ver *lead;		/* PENDING: whose stamp is ours, too; NULL: our own */
	hy_view		is;				/* what the node is */
} hm_ver;

_Static_assert(sizeof(hm_ver) == AX_LINE, "a version is one line");

static inline hm_ver *
hm_newest(const hy_node *n)
{
	return hy_ld(&((hy_node *) (uintptr_t) n)->ver);
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

/*
 * Memory for a version, to be filled.
 *
 * Epoch: inside.
 * Returns: NULL when there is none.
 */
extern hm_ver *hm_make_ver(const hy_call *h, bool may_reserve);

/* Give back a version that nobody saw. */
extern void hm_drop_ver(const hy_call *h, hm_ver *v);

/*
 * Put a version in a header, pending; nobody takes it before its commit.  lead: the
 * version whose stamp decides of several; NULL: its own.
 *
 * Latches: the node's is held, or nobody else knows of it.  A lead is published before
 * the versions of other nodes that somebody knows of.
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
 * The node's version of the call's moment.  Ends a commit that it meets marked.
 *
 * Epoch: inside.
 * Returns: NULL, the node came later.
 */
extern hm_ver *hm_version(const hy_call *h, const hy_node *n);

/*
 * Find the node in whose range the position was at the call's moment.  near: a node
 * near it, or NULL.
 *
 * Epoch: inside; the call was begun in it.
 * Latches: none; waits for nobody.
 */
extern void hm_reach(const hy_call *h, hy_node *near, const ax_bound *pos, hy_side side,
					 hy_at *at);

/*
 * Give the nodes of a list that nobody else sees their versions, which are of before
 * all moments.
 *
 * Epoch: inside.
 * Returns: false when there is no memory, and none has one.
 */
extern bool hm_dress(const hy_call *h, hy_node *first);

/* Take those versions of the nodes before "end" back: the load comes to nothing. */
extern void hm_undress(const hy_call *h, hy_node *first, const hy_node *end);

#endif							/* HM_VERSION_H */
