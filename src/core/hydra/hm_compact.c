/*
 * hm_compact.c
 *	  Compaction of HydraList with versions: neighbours are merged, bodies that are larger than
 *	  they need be are made anew, and so is what lies in spans that are to become empty.
 *
 * One thought with: hy_compact.c
 *
 * src/core/hydra/README.md: Compaction
 * src/core/hydra/README.md: Versions
 */
#include "hm.h"

/*
 * Another body and version in a node's place, if one of them is to move, or the body is too large.
 * AX_OK: there is; AX_NOTFOUND: it stays.  AX_STALE, AX_BUSY.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; takes the node's by one try.
 */
static __attribute__((noinline)) ax_status
replace_body(ax_ctx *cx, ax_store *s, hy_list *t, hm_at *at)
{
	hm_ver	   *old = at->v,
			   *v;
	hy_move		m = {.old = old->body};
	ax_status	x;

	m.n = hm_entries(old, m.e);
	x = hy_move_make(cx, s, &m, at->n, old->end.next, ax_draining(cx, s, old), 1);
	if (x != AX_OK)
		return x;
	v = hm_make_ver(cx, s, true);
	if (!v)
		return hy_move_undo(cx, s, &m, AX_NOTFOUND);
	*v = (hm_ver) {.end = old->end, .body = m.body, .live = hy_used(m.body)};
	AX_POINT("mvrlu.compact.before_lock");
	if (!ax_guard_lock(cx, &at->g))
	{
		hm_drop_ver(cx, s, v);
		return hy_move_undo(cx, s, &m, AX_STALE);
	}
	hm_publish(at->n, v, NULL);
	hm_commit(t, v);
	ax_guard_close(cx, &at->g, true);
	hy_move_done(cx, s, &m);
	ax_retire(cx, s, old, sizeof(hm_ver));
	return AX_OK;
}

/* A new header in the place of another; the versions of the node before, of the old and the new. */
typedef struct header
{
	hm_at		a;
	hy_node    *n;
	hm_ver	   *before;
	hm_ver	   *gone;
	hm_ver	   *v;
} header;

/* The new header and the versions; false: no memory. */
static bool
make_header(ax_ctx *cx, ax_store *s, header *h, const hy_node *old)
{
	bt_view		v;

	bt_key_view(old->anchor, old->alen, NULL, &v);
	h->n = hy_make_node(cx, s, &v, true);
	h->before = h->n ? hm_make_ver(cx, s, true) : NULL;
	h->gone = h->before ? hm_make_ver(cx, s, true) : NULL;
	h->v = h->gone ? hm_make_ver(cx, s, true) : NULL;
	return h->v != NULL;
}

/* Give up what was made; x is returned. */
static ax_status
drop_header(ax_ctx *cx, ax_store *s, header *h, ax_status x)
{
	hy_drop_node(cx, s, h->n);
	hm_drop_ver(cx, s, h->before);
	hm_drop_ver(cx, s, h->gone);
	hm_drop_ver(cx, s, h->v);
	return x;
}

/*
 * Latch the node before, and the node.
 *
 * Latches: both are taken on AX_OK, by one try each; none else.
 */
static ax_status
lock_both(ax_ctx *cx, ax_store *s, hy_list *t, header *h, hm_at *at)
{
	const ax_bound pos = {at->n->anchor, at->n->alen, false};

	if (hm_find(cx, s, t, hy_ld(&at->n->prev), &pos, HY_STRICT, false, &h->a) != AX_OK)
		return AX_STALE;
	if (h->a.v->end.next != at->n || !ax_guard_lock(cx, &h->a.g))
		return AX_STALE;
	if (ax_guard_lock(cx, &at->g))
		return AX_OK;
	ax_guard_close(cx, &h->a.g, false);
	return AX_STALE;
}

/*
 * Another header, of the same anchor, in the place of a node that is not the first (hy_compact.c).
 * AX_OK, AX_NOTFOUND: no memory.  AX_STALE, AX_BUSY.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; takes those of the node before and of the node by
 * one try each.
 */
static ax_status
replace_node(ax_ctx *cx, ax_store *s, hy_list *t, hm_at *at)
{
	header		h = {.n = NULL};
	hy_node    *old = at->n;
	ax_status	x;

	if (!make_header(cx, s, &h, old))
		return drop_header(cx, s, &h, AX_NOTFOUND);
	if (ax_retire_reserve(cx, 2) != AX_OK)
		return drop_header(cx, s, &h, AX_BUSY);
	x = lock_both(cx, s, t, &h, at);
	if (x != AX_OK)
		return drop_header(cx, s, &h, x);
	*h.v = (hm_ver) {.end = at->v->end, .body = at->v->body, .live = hm_live(at->v)};
	*h.gone = (hm_ver) {.end.next = h.n};
	h.n->origin = old;
	atomic_store_explicit(&h.n->prev, h.a.n, memory_order_relaxed);
	/* the lead first: who meets the others goes by its stamp */
	hm_publish(old, h.gone, NULL);
	hm_publish(h.n, h.v, h.gone);
	*h.before = (hm_ver) {.end = hy_end_at(h.a.n, h.n), .body = h.a.v->body, .live = hm_live(h.a.v)};
	hm_publish(h.a.n, h.before, h.gone);
	AX_POINT("mvrlu.header.between");
	hm_commit(t, h.gone);
	hm_led(h.v);
	hm_led(h.before);
	if (h.v->end.next)
		atomic_store_explicit(&h.v->end.next->prev, h.n, memory_order_release);
	hy_announce(t);
	hy_announce(t);
	hy_push(t, &old->go);
	hy_push(t, &h.n->come);
	ax_guard_kill(cx, &at->g);
	ax_guard_close(cx, &h.a.g, true);
	ax_retire(cx, s, at->v, sizeof(hm_ver));
	ax_retire(cx, s, h.a.v, sizeof(hm_ver));
	return AX_OK;
}

/*
 * Latches: none on entry and on return.
 */
ax_status
hm_compact_node(ax_ctx *cx, ax_store *s, hy_list *t, ax_compaction *c)
{
	const ax_bound pos = {c->work, c->len, false};
	hm_at		at;
	hy_node    *next;
	ax_status	x = hm_find(cx, s, t, NULL, &pos, HY_BEFORE, false, &at);

	if (x != AX_OK)
		return x;
	/* the nodes behind, as long as there is room for their keys */
	x = hm_merge(cx, s, t, at.n, HY_FULL);
	if (x == AX_NOTFOUND && at.n->alen > 0 && ax_draining(cx, s, at.n))
		x = replace_node(cx, s, t, &at);
	if (x == AX_OK)
	{
		c->moved++;
		return AX_STALE;
	}
	if (x != AX_NOTFOUND)
		return x;
	next = at.v->end.next;
	x = replace_body(cx, s, t, &at);
	if (x != AX_OK && x != AX_NOTFOUND)
		return x;
	c->moved += x == AX_OK;
	return hy_compact_on(c, next);
}
