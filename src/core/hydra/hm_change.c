/*
 * hm_change.c
 *	  HydraList with versions: insertion, and splits.
 *
 * A change makes what it needs in private.  It latches its node at the version of the latch
 * word under which it looked.  Then it publishes and commits, and gives the latch back.
 * So the newest version of a node that is not latched is committed.  Others can come to a new
 * node by its links only after the commit, and change it only then.
 *
 * src/core/hydra/README.md: Versions
 */
#include "hm.h"

#define CHURNED	4				/* slots that a body with dead ones is to have left, or it is split */
#define SLOTS	16				/* a new body has a multiple of that */

/* A change of one key, and what it may need. */
typedef struct change
{
	ax_ctx	   *cx;
	ax_store   *s;
	hy_list    *t;
	ax_bound	pos;
	uint8_t		fp;
	bt_blob    *blob;
	hm_ver	   *v;				/* not published yet */
} change;

/* A node on its way to more room.  About five kilobytes. */
typedef struct room
{
	int			n;
	int			mine;			/* the place of the new key */
	hy_entry	e[HY_SLOTS + 1];
	hy_body    *left;			/* NULL: the body stays */
	hy_body    *right;
	hy_node    *node;
	hm_ver	   *v;				/* of the new node */
} room;

/* ---- insertion ---- */

/* The entries and the new one, sorted. */
static void
collect(room *r, const change *c, const hm_ver *v)
{
	r->n = hm_entries(v, r->e);
	hy_sort(r->e, r->n, v->body->plen);
	r->mine = hy_add(r->e, r->n++, c->pos.key, c->pos.len, c->fp, c->blob);
}

/*
 * Free slots of a new body of n keys: half as many as keys, about.  Bodies have few sizes, so one
 * that is given up leaves room for another.
 */
static inline int
spare(int n)
{
	int			cap = (n + (n / 2 > 8 ? n / 2 : 8) + SLOTS - 1) / SLOTS * SLOTS;

	return (cap < HY_SLOTS ? cap : HY_SLOTS) - n;
}

/*
 * Make the halves, cut before m, or one body when m is 0.  False: no memory.
 */
static bool
make(room *r, const change *c, const hm_at *at, int m)
{
	hy_node    *n = at->n;
	const bool	rising = r->mine == r->n - 1 && m == r->mine;
	uint32_t	plen;
	bool		stays;
	bt_view		anchor;

	if (m == 0)
	{
		r->left = hy_make_body(c->cx, c->s, r->e, r->n, spare(r->n), n->anchor,
							   hy_range(n, at->v->end.next), false);
		return r->left != NULL;
	}
	hy_separator(&r->e[m - 1].v, &r->e[m].v, &anchor);
	r->v = hm_make_ver(c->cx, c->s, false);
	r->node = r->v ? hy_make_node(c->cx, c->s, &anchor, false) : NULL;
	if (!r->node)
		return false;
	r->right = hy_make_body(c->cx, c->s, r->e + m, r->n - m, rising ? 2 * SLOTS - 1 : spare(r->n - m),
							r->node->anchor, hy_range(r->node, at->v->end.next), false);
	/* only the new key goes to the right: the body may stay */
	plen = hy_range(n, r->node);
	stays = rising && (plen - at->v->body->plen) * (uint32_t) m < HY_WORTH;
	if (r->right && !stays)
		r->left = hy_make_body(c->cx, c->s, r->e, m, rising ? 0 : spare(m), n->anchor, plen, false);
	return r->right && (r->left || stays);
}

/*
 * The change does not come about; x is returned.
 */
static ax_status
forget(room *r, const change *c, ax_status x)
{
	hy_drop_body(c->cx, c->s, r->left);
	hy_drop_body(c->cx, c->s, r->right);
	hy_drop_node(c->cx, c->s, r->node);
	hm_drop_ver(c->cx, c->s, r->v);
	return x;
}

/* The slots 0 to n - 1. */
static inline uint64_t
first_slots(int n)
{
	return n == HY_SLOTS ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/*
 * A new body, or two nodes in place of one, with the key.  AX_OK: it is in.  AX_STALE: the
 * node changed.  AX_NOMEM.
 *
 * Latches: on entry that of the guard, if it has one; none on return.
 */
static __attribute__((noinline)) ax_status
make_room(change *c, hm_at *at)
{
	room		r = {.n = 0};
	hy_node    *n = at->n;
	hm_ver	   *old = at->v;
	hy_body    *body = old->body;
	int			dead = hy_count(body) - hm_count(old);
	int			m = 0;

	/* no latch while memory is taken: it is taken later at this version of its word */
	ax_guard_close(c->cx, &at->g, false);
	collect(&r, c, old);
	if (r.n > HY_SLOTS - (dead > 0 ? CHURNED : 0) || !hy_fits(r.e, r.n, hy_range(n, old->end.next)))
		m = hy_cut(r.e, r.n, r.mine);
	if (!make(&r, c, at, m))
		return forget(&r, c, AX_NOMEM);
	*c->v = (hm_ver) {.end = m ? hy_end_at(n, r.node) : old->end, .body = r.left ? r.left : body,
					  .live = r.left ? first_slots(m ? m : r.n) : hm_live(old)};
	if (m)
	{
		*r.v = (hm_ver) {.end = hy_end_at(r.node, old->end.next), .body = r.right, .live = first_slots(r.n - m)};
		r.node->origin = n;
		atomic_store_explicit(&r.node->prev, n, memory_order_relaxed);
		hm_publish(r.node, r.v, c->v);
	}
	AX_POINT("mvrlu.split.before_lock");
	if (!ax_guard_lock(c->cx, &at->g))
		return forget(&r, c, AX_STALE);
	if (m)
		hy_announce(c->t);
	hm_publish(n, c->v, NULL);
	hm_commit(c->t, c->v);
	c->v = NULL;
	if (m)
	{
		hm_led(r.v);
		/* writers may come to it from now on */
		AX_POINT("mvrlu.split.committed");
		if (old->end.next)
			atomic_store_explicit(&old->end.next->prev, r.node, memory_order_release);
		hy_push(c->t, &r.node->come);
		AX_COUNT(c->cx, c->s, leaves, 1);
	}
	ax_guard_close(c->cx, &at->g, true);
	ax_retire(c->cx, c->s, old, sizeof(hm_ver));
	if (r.left)
		ax_retire(c->cx, c->s, body, body->size);
	/* the updater's, or the next change's */
	if (m)
		hy_told(c->cx, c->s, c->t, UINT64_MAX);
	return AX_OK;
}

/*
 * One try.  AX_STALE: something changed.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
static ax_status
try_insert(change *c, bool pess)
{
	hm_at		at;
	hm_ver	   *old;
	ax_status	x = hm_find(c->cx, c->s, c->t, NULL, &c->pos, HY_BEFORE, pess, &at);

	if (x != AX_OK)
		return x;
	old = at.v;
	if (hm_slot_of(old, c->pos.key, c->pos.len) >= 0)
	{
		x = ax_guard_valid(&at.g) ? AX_EXISTS : AX_STALE;
		ax_guard_close(c->cx, &at.g, false);
		return x;
	}
	if (!hy_room(old->body, c->pos.len, c->blob != NULL))
		return make_room(c, &at);
	AX_POINT("mvrlu.leaf_before_lock");
	if (!ax_guard_lock(c->cx, &at.g))
		return AX_STALE;
	/* in a slot that no version has, so readers need not know */
	*c->v = (hm_ver) {.end = old->end, .body = old->body};
	c->v->live = hm_live(old) | (hy_used(old->body) + 1);
	hy_put(old->body, c->pos.key, c->pos.len, c->fp, c->blob);
	hm_publish(at.n, c->v, NULL);
	hm_commit(c->t, c->v);
	c->v = NULL;
	ax_guard_close(c->cx, &at.g, true);
	ax_retire(c->cx, c->s, old, sizeof(hm_ver));
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
ax_status
hm_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	change		c = {.cx = cx, .s = s, .pos = {key, len, false}, .fp = hy_fp(key, len - AX_TID_BYTES)};
	ax_status	x = hy_begin(cx, s, &c.t);

	if (ax_unlikely(x != AX_OK))
		return x;
	/* before the change, of which it is then no part: done, or there is no memory */
	if (ax_unlikely(hy_waiting(c.t) >= HY_MARK))
		x = hy_apply(cx, s, c.t, 4 * HY_MARK);
	if (x != AX_OK && x != AX_BUSY)
		return x;
	x = ax_retire_reserve(cx, 2);
	if (x != AX_OK)
		return x;
	if (len > HY_LONG && (c.blob = bt_blob_new(cx, s, key, len)) == NULL)
		return AX_NOMEM;
	c.v = hm_make_ver(cx, s, false);
	x = AX_NOMEM;
	for (int tries = 0; c.v; ax_restarted(cx, s, tries++))
	{
		x = try_insert(&c, tries >= AX_MAX_RESTARTS);
		if (ax_likely(x != AX_STALE))
			break;
	}
	hm_drop_ver(cx, s, c.v);
	if (x == AX_OK)
		AX_COUNT(cx, s, entries, 1);
	else if (c.blob)
		bt_blob_free(cx, s, c.blob);
	return x;
}
