/*
 * hy_compact.c
 *	  Compaction of HydraList: neighbouring nodes that are sparse are merged, bodies that
 *	  are larger than they need be are made anew, and objects in spans that are to become
 *	  empty are copied.  Then the same for the search layer.
 *
 * src/core/hydra/README.md: Compaction
 * src/core/hydra/README.md: Views
 */
#include "core/radix/radix.h"
#include "hy_view.h"

#define CALL_NODES	64
#define TRIES		8

enum
{
	LIST, LAYER					/* c->level */
};

/* ---- another body ---- */

/* A body on its way to another one.  About thirty kilobytes. */
typedef struct move
{
	hy_body    *old;
	hy_body    *body;			/* NULL: none was made */
	hy_edit		e;
	int			n;
	hy_entry	entries[HY_SLOTS];	/* what the old body has; in order, once there is another */
	int			nblobs;
	bt_blob    *goes[HY_SLOTS];
	bt_blob    *moved[HY_SLOTS];
	_Alignas(8) uint8_t copy[HY_MAX_BODY];
} move;

/* Long keys that are to move go elsewhere.  False: no memory. */
static bool
move_blobs(const hy_call *h, move *m)
{
	for (int i = 0; i < m->n; i++)
	{
		bt_view    *v = &m->entries[i].v;
		bt_blob    *b;

		if (!v->blob || !ax_draining(h->cx, h->s, v->blob))
			continue;
		b = bt_blob_new(h->cx, h->s, v->blob->bytes, v->blob->len);
		if (!b)
			return false;
		m->goes[m->nblobs] = v->blob;
		m->moved[m->nblobs++] = b;
		bt_key_view(NULL, b->len, b, v);
	}
	return true;
}

/* Give up what was made; x is returned. */
static ax_status
move_undo(const hy_call *h, move *m, ax_status x)
{
	while (m->nblobs > 0)
		bt_blob_free(h->cx, h->s, m->moved[--m->nblobs]);
	hy_drop_body(h->cx, h->s, m->body);
	hy_edit_drop(h, &m->e, 0);
	return x;
}

/* Is an object of the node to move, or is the body too large? */
static bool
is_to_move(const hy_call *h, const move *m, const hy_at *at)
{
	if (m->n + 16 <= m->old->cap || ax_draining(h->cx, h->s, m->old) ||
		(h->versions && ax_draining(h->cx, h->s, at->is)))
		return true;
	for (int i = 0; i < m->n; i++)
		if (m->entries[i].v.blob && ax_draining(h->cx, h->s, m->entries[i].v.blob))
			return true;
	return false;
}

/*
 * Another body in a node's place, if this one, a version or a key is to move, or it is too large.
 * AX_OK: there is; AX_NOTFOUND: it stays, or there is no memory.  AX_STALE, AX_BUSY.
 *
 * Latches: none on entry and on return; takes the node's by one try.
 */
static __attribute__((noinline)) ax_status
replace_body(const hy_call *h, hy_at *at)
{
	const hy_node *n = at->n;
	const uint32_t plen = hy_range(n, at->is->end.next);
	const hy_body *b;
	hy_view		is;
	move		m;

	m.old = at->is->body;
	m.body = NULL;
	m.e.n = m.nblobs = 0;
	b = hy_still(h, at, m.copy);
	if (!b)
		return AX_STALE;
	m.n = hy_entries(b, hy_live(at->is), m.entries);
	if (!is_to_move(h, &m, at) || !hy_fits(m.entries, m.n, plen))
		return AX_NOTFOUND;
	hy_sort(m.entries, m.n, plen);
	if (move_blobs(h, &m) && hy_edit_make(h, &m.e, 1, true))
		m.body = hy_make_body(h->cx, h->s,
							  &(hy_content) {m.entries, m.n, m.n ? 0 : 8, n->anchor, plen}, true);
	if (!m.body)
		return move_undo(h, &m, AX_NOTFOUND);
	if (hy_reserve(h, 1 + m.nblobs, 1) != AX_OK)
		return move_undo(h, &m, AX_BUSY);
	is = (hy_view) {.end = at->is->end, .body = m.body, .live = hy_used(m.body)};
	AX_POINT("hydra.compact.before_lock");
	if (!ax_guard_lock(h->cx, &at->g))
		return move_undo(h, &m, AX_STALE);
	hy_publish(h, &m.e, 0, at->n, &is);
	hy_commit(h, &m.e);
	ax_guard_close(h->cx, &at->g, true);
	hy_edit_done(h, &m.e);
	ax_retire(h->cx, h->s, m.old, m.old->size);
	for (int i = 0; i < m.nblobs; i++)
		bt_blob_retire(h->cx, h->s, m.goes[i]);
	return AX_OK;
}

/* ---- another header ---- */

/*
 * Latch the node before, and the node.  AX_STALE: something changed.
 *
 * Latches: both are taken on AX_OK, by one try each; none else.
 */
static ax_status
lock_both(const hy_call *h, hy_at *a, hy_at *at)
{
	const ax_bound pos = {at->n->anchor, at->n->alen, false};

	if (hy_find(h, hy_ld(&at->n->prev), &pos, HY_STRICT, 0, a) != AX_OK)
		return AX_STALE;
	if (a->is->end.next != at->n || !ax_guard_lock(h->cx, &a->g))
		return AX_STALE;
	if (ax_guard_lock(h->cx, &at->g))
		return AX_OK;
	ax_guard_close(h->cx, &a->g, false);
	return AX_STALE;
}

/*
 * Another header, of the same anchor, in the place of a node that is not the first.  AX_OK,
 * AX_NOTFOUND: no memory.  AX_STALE, AX_BUSY.
 *
 * The first stays where it is: a search by the list's head looks at no latch.  As a rule it is in
 * the store's first pages, which are not emptied.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; takes those of the node before and of the node by
 * one try each.
 */
static ax_status
replace_node(const hy_call *h, hy_at *at)
{
	hy_edit		e = {.n = 0};
	hy_at		a;
	hy_node    *old = at->n,
			   *n;
	hy_view		before,
				is;
	hy_view		gone;
	bt_view		anchor;
	ax_status	x = AX_NOTFOUND;

	bt_key_view(old->anchor, old->alen, NULL, &anchor);
	n = hy_make_node(h->cx, h->s, &anchor, true);
	if (n && hy_edit_make(h, &e, 3, true))
		x = hy_reserve(h, 0, 2);
	if (x == AX_OK)
		x = lock_both(h, &a, at);
	if (x != AX_OK)
	{
		hy_drop_node(h->cx, h->s, n);
		hy_edit_drop(h, &e, 0);
		return x;
	}
	is = (hy_view) {.end = at->is->end, .body = at->is->body, .live = hy_live(at->is)};
	gone = (hy_view) {.end.next = n};
	before = (hy_view) {.end = hy_end_at(a.n, n), .body = a.is->body, .live = hy_live(a.is)};
	if (h->versions)
		n->origin = old;
	/* versions of its word go on: without others the body says of which its order for scans is */
	atomic_store_explicit(&n->word, (at->g.v & AX_VERSION_MASK) + AX_VERSION_ONE, memory_order_relaxed);
	atomic_store_explicit(&n->prev, a.n, memory_order_relaxed);
	hy_announce(h->t);
	hy_announce(h->t);
	hy_publish(h, &e, 0, old, &gone);
	hy_publish(h, &e, 1, n, &is);
	hy_publish(h, &e, 2, a.n, &before);
	AX_POINT("hydra.header.between");
	hy_commit(h, &e);
	if (is.end.next)
		atomic_store_explicit(&is.end.next->prev, n, memory_order_release);
	hy_push(h->t, &old->go);
	hy_push(h->t, &n->come);
	ax_guard_kill(h->cx, &at->g);
	ax_guard_close(h->cx, &a.g, true);
	hy_edit_done(h, &e);
	return AX_OK;
}

/* ---- all nodes ---- */

/*
 * The node of the position.  AX_OK: done with, and the position is the one behind.
 * AX_NOTFOUND: that was the last, or its anchor is too long to be kept.  AX_STALE: once
 * more.  AX_BUSY.
 *
 * Latches: none on entry and on return.
 */
static ax_status
compact_node(const hy_call *h, ax_compaction *c)
{
	const ax_bound pos = {c->work, c->len, false};
	hy_at		at;
	hy_node    *next;
	ax_status	x = hy_find(h, NULL, &pos, HY_BEFORE, 0, &at);

	if (x != AX_OK)
		return x;
	next = at.is->end.next;
	/* the nodes behind, as long as there is room for their keys */
	x = hy_merge(h, at.n, HY_FULL);
	if (x == AX_NOTFOUND && at.n->alen > 0 && ax_draining(h->cx, h->s, at.n))
		x = replace_node(h, &at);
	if (x == AX_OK)
	{
		c->moved++;
		return AX_STALE;
	}
	if (x != AX_NOTFOUND)
		return x;
	x = replace_body(h, &at);
	if (x != AX_OK && x != AX_NOTFOUND)
		return x;
	c->moved += x == AX_OK;
	if (!next || next->alen > AX_COMPACT_WORK)
		return AX_NOTFOUND;
	c->len = next->alen;
	memcpy(c->work, next->anchor, c->len);
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
ax_status
hy_compact(ax_ctx *cx, ax_store *s, ax_compaction *c)
{
	hy_call		h;
	int			tries = 0;
	bool		busy = false;

	if (!hy_enter(&h, cx, s))
	{
		c->done = true;
		return AX_OK;
	}
	if (c->level == LIST && !c->started)
	{
		c->started = true;
		c->len = 0;
	}
	for (int nodes = 0; nodes < CALL_NODES && c->level == LIST && !busy; nodes++)
	{
		uint64_t	moved = c->moved;
		ax_status	x = compact_node(&h, c);

		busy = x == AX_BUSY || (x == AX_STALE && c->moved == moved && tries++ == TRIES);
		if (x == AX_OK || c->moved > moved)
			tries = 0;
		if (x == AX_NOTFOUND)
		{
			c->level = LAYER;
			c->started = false;
			c->len = 0;
		}
		ax_map_unshare_all();
	}
	hy_told(&h, 1);
	if (busy || c->level == LIST)
		return busy ? AX_BUSY : AX_OK;
	return ax_engine_art_olc.compact(cx, s, c);
}
