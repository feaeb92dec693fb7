/*
 * hy_compact.c
 *	  Compaction of HydraList: neighbouring nodes that are sparse are merged, bodies that
 *	  are larger than they need be are made anew, and objects in spans that are to become
 *	  empty are copied.  Then the same for the search layer.
 *
 * One thought with: hm_compact.c
 *
 * src/core/hydra/README.md: Compaction
 */
#include "core/radix/radix.h"
#include "hm.h"

#define CALL_NODES	64
#define TRIES		8

enum
{
	LIST, LAYER					/* c->level */
};

/* Long keys that are to move go elsewhere.  False: no memory. */
static bool
move_blobs(ax_ctx *cx, ax_store *s, hy_move *m)
{
	for (int i = 0; i < m->n; i++)
	{
		bt_blob    *old = m->e[i].v.blob,
				   *b;

		if (!old || !ax_draining(cx, s, old))
			continue;
		b = bt_blob_new(cx, s, old->bytes, old->len);
		if (!b)
			return false;
		m->goes[m->nblobs] = old;
		m->moved[m->nblobs++] = b;
		bt_key_view(NULL, b->len, b, &m->e[i].v);
	}
	return true;
}

ax_status
hy_move_undo(ax_ctx *cx, ax_store *s, hy_move *m, ax_status x)
{
	while (m->nblobs > 0)
		bt_blob_free(cx, s, m->moved[--m->nblobs]);
	hy_drop_body(cx, s, m->body);
	m->body = NULL;
	return x;
}

/*
 * Make m->body, of the entries, for node n.  That is done if "must", if an object is to move, or
 * if the old body is too large.  AX_NOTFOUND: it stays, or there is no memory.  AX_BUSY.
 *
 * Latches: none.
 * Returns: on AX_OK there is room to retire the old body, the keys and so many objects more.
 */
ax_status
hy_move_make(ax_ctx *cx, ax_store *s, hy_move *m, const hy_node *n, const hy_node *next,
			 bool must, int more)
{
	uint32_t	plen = hy_range(n, next);

	must = must || ax_draining(cx, s, m->old) || m->n + 16 <= m->old->cap;
	for (int i = 0; i < m->n && !must; i++)
		must = m->e[i].v.blob && ax_draining(cx, s, m->e[i].v.blob);
	if (!must || !hy_fits(m->e, m->n, plen))
		return AX_NOTFOUND;
	hy_sort(m->e, m->n, plen);
	if (move_blobs(cx, s, m))
		m->body = hy_make_body(cx, s, m->e, m->n, m->n ? 0 : 8, n->anchor, plen, true);
	if (!m->body)
		return hy_move_undo(cx, s, m, AX_NOTFOUND);
	if (ax_retire_reserve(cx, 1 + m->nblobs + more) != AX_OK)
		return hy_move_undo(cx, s, m, AX_BUSY);
	return AX_OK;
}

ax_status
hy_compact_on(ax_compaction *c, const hy_node *next)
{
	if (!next || next->alen > AX_COMPACT_WORK)
		return AX_NOTFOUND;
	c->len = next->alen;
	memcpy(c->work, next->anchor, c->len);
	return AX_OK;
}

void
hy_move_done(ax_ctx *cx, ax_store *s, hy_move *m)
{
	ax_retire(cx, s, m->old, m->old->size);
	for (int i = 0; i < m->nblobs; i++)
		bt_blob_retire(cx, s, m->goes[i]);
}

/*
 * The node before "n", as it was a moment ago: its guard.  NULL: something changed.
 *
 * Latches: none.
 */
static hy_node *
before(ax_ctx *cx, ax_store *s, hy_list *t, hy_node *n, ax_guard *g)
{
	hy_at		at;

	if (hy_find(cx, s, t, hy_ld(&n->prev), n->anchor, n->alen, HY_STRICT, false, false, &at) != AX_OK)
		return NULL;
	*g = at.g;
	return at.end.next == n ? at.n : NULL;
}

/*
 * Another header, of the same anchor, in the place of a node that is not the first.  AX_OK,
 * AX_NOTFOUND: no memory.  AX_STALE, AX_BUSY.
 *
 * The first stays where it is: a search by the list's head looks at no latch.  As a rule it is in
 * the store's first pages, which are not emptied.
 *
 * Latches: none on entry and on return; takes those of the node before and of the node by
 * one try each.
 */
static ax_status
replace_node(ax_ctx *cx, ax_store *s, hy_list *t, hy_node *old)
{
	ax_guard	ga,
				g;
	hy_node    *a,
			   *n,
			   *next;
	bt_view		v;
	ax_status	x;

	bt_key_view(old->anchor, old->alen, NULL, &v);
	n = hy_make_node(cx, s, &v, true);
	if (!n)
		return AX_NOTFOUND;
	a = before(cx, s, t, old, &ga);
	x = a ? ax_guard_open(cx, &g, &old->word, false) : AX_STALE;
	if (x == AX_OK && !ax_guard_lock(cx, &ga))
		x = AX_STALE;
	if (x == AX_OK && !ax_guard_lock(cx, &g))
	{
		ax_guard_close(cx, &ga, false);
		x = AX_STALE;
	}
	if (x != AX_OK)
	{
		hy_drop_node(cx, s, n);
		return x;
	}
	next = hy_next(old);
	atomic_store_explicit(&n->body, hy_ld(&old->body), memory_order_relaxed);
	/* versions go on: the body says of which its order for scans is */
	atomic_store_explicit(&n->word, (g.v & AX_VERSION_MASK) + AX_VERSION_ONE, memory_order_relaxed);
	hy_set_next(n, next);
	atomic_store_explicit(&n->prev, a, memory_order_relaxed);
	hy_set_next(a, n);
	if (next)
		atomic_store_explicit(&next->prev, n, memory_order_release);
	hy_announce(t);
	hy_announce(t);
	hy_push(t, &old->go);
	hy_push(t, &n->come);
	ax_guard_kill(cx, &g);
	ax_guard_close(cx, &ga, true);
	return AX_OK;
}

/*
 * Another body in a node's place, if this one is to move or too large.  AX_OK: there is;
 * AX_NOTFOUND: it stays.  AX_STALE, AX_BUSY.
 *
 * Latches: none on entry and on return; takes the node's by one try.
 */
static __attribute__((noinline)) ax_status
replace_body(ax_ctx *cx, ax_store *s, hy_at *at)
{
	hy_move		m = {.old = at->b};
	_Alignas(8) uint8_t copy[HY_MAX_BODY];
	ax_status	x;

	if (!hy_copy(at->b, &at->g, copy))
		return AX_STALE;
	m.n = hy_entries((const hy_body *) (const void *) copy, m.e);
	x = hy_move_make(cx, s, &m, at->n, at->end.next, false, 0);
	if (x != AX_OK)
		return x;
	AX_POINT("hydra.compact.before_lock");
	if (!ax_guard_lock(cx, &at->g))
		return hy_move_undo(cx, s, &m, AX_STALE);
	atomic_store_explicit(&at->n->body, m.body, memory_order_release);
	ax_guard_close(cx, &at->g, true);
	hy_move_done(cx, s, &m);
	return AX_OK;
}

/*
 * The node of the position.  AX_OK: done with, and the position is the one behind.
 * AX_NOTFOUND: that was the last.  AX_STALE, AX_BUSY.
 *
 * Latches: none on entry and on return.
 */
static ax_status
compact_node(ax_ctx *cx, ax_store *s, hy_list *t, ax_compaction *c)
{
	hy_at		at;
	ax_status	x = hy_find(cx, s, t, NULL, c->work, c->len, HY_BEFORE, false, false, &at);

	if (x != AX_OK)
		return x;
	/* the nodes behind, as long as there is room for their keys */
	x = hy_merge(cx, s, t, at.n, HY_FULL);
	if (x == AX_OK)
	{
		c->moved++;
		return AX_STALE;
	}
	if (x == AX_BUSY)
		return x;
	if (at.n->alen > 0 && ax_draining(cx, s, at.n))
	{
		x = replace_node(cx, s, t, at.n);
		if (x == AX_OK)
		{
			c->moved++;
			return AX_STALE;
		}
		if (x != AX_NOTFOUND)
			return x;
	}
	x = replace_body(cx, s, &at);
	if (x != AX_OK && x != AX_NOTFOUND)
		return x;
	c->moved += x == AX_OK;
	return hy_compact_on(c, at.end.next);
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
ax_status
hy_compact(ax_ctx *cx, ax_store *s, ax_compaction *c)
{
	hy_list    *t = hy_list_of(s);
	int			tries = 0;
	bool		busy = false;

	if (!t)
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
		ax_status	x = s->sync == AX_SYNC_MVRLU ? hm_compact_node(cx, s, t, c) :
			compact_node(cx, s, t, c);

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
	hy_told(cx, s, t, 1);
	if (busy || c->level == LIST)
		return busy ? AX_BUSY : AX_OK;
	return ax_engine_art_olc.compact(cx, s, c);
}
