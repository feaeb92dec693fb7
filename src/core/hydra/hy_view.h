/*
 * hy_view.h
 *	  A node's view, read and replaced, of lists with versions and without.
 *
 * A reader of a node gets a view of it, and a change puts another one there.  With versions that
 * is another version, and all versions of a change are committed at once.  Without them the
 * latches of the nodes make the change one.  The files that change, scan, compact and check a
 * list need not know which kind it is, but for what a body's slots allow.
 *
 * src/core/hydra/README.md: Views
 */
#ifndef HY_VIEW_H
#define HY_VIEW_H

#include "hm_version.h"

/* ---- reading ---- */

/*
 * See a node as it is now.  The view holds if the node's guard does.  ahead: without
 * versions the body is asked for.
 *
 * Epoch: inside.
 */
AX_PREFETCHES static inline void
hy_see(const bool versions, hy_node *n, const bool ahead, hy_at *at)
{
	at->n = n;
	if (versions)
		at->is = &hm_newest(n)->is;
	else
	{
		at->seen.body = hy_ld(&n->body);
		if (ahead)
			hy_ahead(at->seen.body);
		at->seen.end = hy_end_of(n);
		atomic_store_explicit(&at->seen.live, hy_used(at->seen.body), memory_order_relaxed);
		at->is = &at->seen;
	}
}

/* The node behind, as of now.  Racy. */
static inline hy_node *
hy_behind(const hy_call *h, const hy_node *n)
{
	return h->versions ? hm_newest(n)->is.end.next : hy_next(n);
}

/*
 * Find the node of a position, only to read it: as of the call's moment, or as of now.
 *
 * Epoch: inside.
 * Latches: none on entry.  Without versions as hy_find(), and on AX_OK hy_read_ok() is to
 * come.
 * Returns: as hy_find(); with versions AX_OK.
 */
static inline ax_status
hy_read(const hy_call *h, hy_node *near, const ax_bound *pos, hy_side side, int tries, hy_at *at)
{
	if (!h->versions)
		return hy_find(h, near, pos, side, hy_way(tries), at);
	hm_reach(h, near, pos, side, at);
	return AX_OK;
}

/*
 * Was all that was read since hy_read() true?
 *
 * Latches: gives back the guard's, if it has one.
 */
static inline bool
hy_read_ok(const hy_call *h, hy_at *at)
{
	bool		ok;

	if (h->versions)
		return true;
	ok = ax_guard_valid(&at->g);
	ax_guard_close(h->cx, &at->g, false);
	return ok;
}

/* The guard that reading a body needs; NULL: nobody writes the slots of the view. */
static inline const ax_guard *
hy_guard(const hy_call *h, const hy_at *at)
{
	return h->versions ? NULL : &at->g;
}

/*
 * The body whose live slots nobody writes: of a version its own, else a copy, in
 * HY_MAX_BODY bytes.
 *
 * Returns: NULL, the node changed.
 */
static inline const hy_body *
hy_still(const hy_call *h, const hy_at *at, uint8_t *copy)
{
	if (h->versions)
		return at->is->body;
	return hy_copy(at->is->body, &at->g, copy) ? (const hy_body *) (const void *) copy : NULL;
}

/* The keys' order in a view, which a body keeps for one view. */
typedef struct hy_order_of
{
	uint64_t	live;			/* the view's slots, */
	int			n;				/* so many */
	uint8_t		perm[HY_SLOTS]; /* .. in the keys' order */
	uint64_t	as;				/* the view's name: its slots; without versions the guard's version */
	uint64_t	was;			/* of which view the body had the order */
	bool		told;			/* it had this one */
} hy_order_of;

/* hy_recall() with versions: is the order of the slots o->was, or a part of it, that of o->live? */
extern bool hy_recall_slots(hy_body *b, hy_order_of *o);

/*
 * The order that the body has, if it is of use for the view: o->told.  Without
 * versions it holds if the guard does.
 */
static inline void
hy_recall(const hy_call *h, const hy_at *at, hy_order_of *o)
{
	hy_body    *b = at->is->body;

	o->live = hy_live(at->is);
	o->n = __builtin_popcountll(o->live);
	o->as = h->versions ? o->live : at->g.v & AX_VERSION_MASK;
	o->was = hy_ld(&b->perm_of);
	o->told = h->versions ? hy_recall_slots(b, o) :
		o->was == o->as && hy_told_order(b, o->as, o->live, o->perm);
}

/* Leave a view's order in the body, for others, if it had none or an earlier one. */
static inline void
hy_leave(const hy_call *h, const hy_at *at, const hy_order_of *o)
{
	if (ax_unlikely(!o->told) &&
		(h->versions ? o->as > o->was : o->was == 0 || (int64_t) (o->as - o->was) > 0))
		hy_tell_order(at->is->body, o->was, o->as, o->perm, o->n);
}

/* ---- changing ---- */

/* A change of some nodes, of which others see all or nothing. */
typedef struct hy_edit
{
	int			n;				/* versions, which nobody saw */
	hm_ver	   *v[3];			/* the first leads */
} hy_edit;

/*
 * With versions: memory for those of n nodes.  Else nothing.
 *
 * Epoch: inside.
 * Returns: false when there is none; what there is stays in the edit.
 */
static inline bool
hy_edit_make(const hy_call *h, hy_edit *e, int n, bool may_reserve)
{
	for (; h->versions && e->n < n; e->n++)
		if ((e->v[e->n] = hm_make_ver(h, may_reserve)) == NULL)
			return false;
	return true;
}

/* Give back all but n of the versions that nobody saw. */
static inline void
hy_edit_drop(const hy_call *h, hy_edit *e, int n)
{
	while (e->n > n)
		hm_drop_ver(h, e->v[--e->n]);
}

/*
 * Before a change latches: room to retire so many objects, and the versions of so many
 * nodes.
 *
 * Returns: as ax_retire_reserve().
 */
static inline ax_status
hy_reserve(const hy_call *h, int objects, int nodes)
{
	const int	n = objects + (h->versions ? nodes : 0);

	return n ? ax_retire_reserve(h->cx, n) : AX_OK;
}

/*
 * A node becomes what the view says; without a body: it goes.  With versions this is
 * pending up to hy_commit(), and i is the version's number.  The node of number 0 comes
 * first, but for nodes that nobody else knows of.
 *
 * Latches: the node's is held, or nobody else knows of it.
 */
extern void hy_publish(const hy_call *h, hy_edit *e, int i, hy_node *n, const hy_view *is);

/*
 * All nodes of the change were published.
 *
 * Latches: those of all nodes of the change are held.
 */
extern void hy_commit(const hy_call *h, hy_edit *e);

/* After the latches: retire the versions that the change replaced.  The edit is empty then. */
static inline void
hy_edit_done(const hy_call *h, hy_edit *e)
{
	for (int i = 0; i < e->n; i++)
		if (e->v[i]->older)
			ax_retire(h->cx, h->s, e->v[i]->older, sizeof(hm_ver));
	e->n = 0;
}

#endif							/* HY_VIEW_H */
