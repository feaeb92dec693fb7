/*
 * hy_change.c
 *	  HydraList: insertion, and splits.
 *
 * An insert latches its node only, and so does a split.  For the link back, of the node
 * behind, is under the same latch.  A change makes what it needs in private, of what it
 * saw.  The latch, taken at the version of its word under which it looked, then shows that
 * this was true.
 *
 * With versions it publishes and commits before it gives the latch back.  So the newest
 * version of a node that is not latched is committed.  Others can come to a new node by its
 * links only after the commit, and change it only then.
 *
 * src/core/hydra/README.md: HydraList
 * src/core/hydra/README.md: Views
 */
#include "hy_view.h"

/* An insert, and what it may need. */
typedef struct change
{
	hy_call		h;
	ax_bound	pos;
	uint8_t		fp;
	bt_blob    *blob;
	hy_edit		e;
} change;

/* A node on its way to more room.  About thirty kilobytes. */
typedef struct room
{
	const change *c;
	hy_node    *n;				/* it, */
	hy_view		is;				/* .. what it was, */
	const hy_body *b;			/* .. and its keys, which nobody writes */
	int			count;
	int			mine;			/* the place of the new key */
	hy_entry	e[HY_SLOTS + 1];
	hy_body    *left;			/* NULL: the body stays */
	hy_body    *right;
	hy_node    *node;
	_Alignas(8) uint8_t copy[HY_MAX_BODY];
} room;

#define MORE	8				/* slots, about, that a body grows by, at least */
#define CHURNED	4				/* slots that a body with dead ones is to have left, or it is split */
#define SLOTS	16				/* with versions a new body has a multiple of that */

/* The entries and the new one, sorted. */
static void
collect(room *r)
{
	const change *c = r->c;

	r->count = hy_entries(r->b, hy_live(&r->is), r->e);
	hy_sort(r->e, r->count, r->b->plen);
	r->mine = hy_add(r->e, r->count++, c->pos.key, c->pos.len, c->fp, c->blob);
}

/*
 * Free slots of a new body of n keys.  A fixed one grows by a copy, which is little work.  With
 * versions a slot is given once, so there are half as many as keys, about.  These bodies have
 * few sizes, so one that is given up leaves room for another.
 */
static inline int
spare(const room *r, int n)
{
	int			cap;

	if (!r->c->h.versions)
		return r->b->rest != HY_VAR || r->count / 2 < MORE ? MORE : r->count / 2;
	cap = (n + (n / 2 > MORE ? n / 2 : MORE) + SLOTS - 1) / SLOTS * SLOTS;
	return (cap < HY_SLOTS ? cap : HY_SLOTS) - n;
}

/*
 * Make the halves, cut before m, or one body when m is 0.  False: no memory.
 */
static bool
make(room *r, int m)
{
	const hy_call *h = &r->c->h;
	const bool	rising = r->mine == r->count - 1 && m == r->mine;
	hy_node    *n = r->n;
	uint32_t	plen = hy_range(n, r->is.end.next);
	bool		stays;
	bt_view		anchor;

	if (m == 0)
	{
		r->left = hy_make_body(h->cx, h->s,
							   &(hy_content) {r->e, r->count, spare(r, r->count), n->anchor, plen}, false);
		return r->left != NULL;
	}
	hy_separator(&r->e[m - 1].v, &r->e[m].v, &anchor);
	r->node = hy_make_node(h->cx, h->s, &anchor, false);
	if (!r->node)
		return false;
	plen = hy_range(r->node, r->is.end.next);
	r->right = hy_make_body(h->cx, h->s,
							&(hy_content) {r->e + m, r->count - m,
										   !rising ? spare(r, r->count - m) : h->versions ? 2 * SLOTS - 1 : 3 * MORE,
										   r->node->anchor, plen}, false);
	/* only the new key goes to the right: the body may stay */
	plen = hy_range(n, r->node);
	stays = rising && (plen - r->b->plen) * (uint32_t) m < HY_WORTH;
	if (r->right && !stays)
		r->left = hy_make_body(h->cx, h->s,
							   &(hy_content) {r->e, m, rising ? 0 : spare(r, m), n->anchor, plen}, false);
	return r->right && (r->left || stays);
}

/* The usual way to more room: all slots as they are, and more of them. */
static inline bool
may_grow(const room *r)
{
	return !r->c->h.versions && r->b->rest != HY_VAR && r->b->cap < HY_SLOTS && !r->c->blob &&
		r->c->pos.len == (uint32_t) r->b->plen + r->b->rest;
}

/*
 * Make a larger body with the key, or two; *m: where the keys are cut, 0: nowhere.  AX_NOMEM, AX_BUSY.
 *
 * Returns: on AX_OK there is room to retire what the change replaces.
 */
static ax_status
prepare_room(room *r, change *c, int *m)
{
	const hy_call *h = &c->h;

	*m = 0;
	if (may_grow(r))
	{
		r->left = hy_grow(h->cx, h->s, r->b);
		if (!r->left)
			return AX_NOMEM;
		hy_put(r->left, c->pos.key, c->pos.len, c->fp, NULL);
	}
	else
	{
		const bool	dead = hy_used(r->b) != hy_live(&r->is);

		collect(r);
		if (r->count > HY_SLOTS - (dead ? CHURNED : 0) || !hy_fits(r->e, r->count, hy_range(r->n, r->is.end.next)))
			*m = hy_cut(r->e, r->count, r->mine);
		if ((*m && !hy_edit_make(h, &c->e, 2, false)) || !make(r, *m))
			return AX_NOMEM;
	}
	return hy_reserve(h, 1, 1);
}

/*
 * The change does not come about; x is returned.
 *
 * Latches: gives back the guard's, if it has one.
 */
static ax_status
forget(room *r, change *c, ax_guard *g, ax_status x)
{
	ax_guard_close(c->h.cx, g, false);
	hy_drop_body(c->h.cx, c->h.s, r->left);
	hy_drop_body(c->h.cx, c->h.s, r->right);
	hy_drop_node(c->h.cx, c->h.s, r->node);
	/* one stays, for the next try */
	hy_edit_drop(&c->h, &c->e, 1);
	return x;
}

/*
 * A body with room for the key in place of at's, or two nodes in place of one; the key
 * goes in on the way.  AX_OK: it is in.  AX_STALE: the node changed.  AX_NOMEM, AX_BUSY.
 *
 * Latches: on entry that of the guard, if it has one; none on return.
 */
static __attribute__((noinline)) ax_status
make_room(change *c, hy_at *at)
{
	const hy_call *h = &c->h;
	hy_node    *n = at->n,
			   *behind = at->is->end.next;
	hy_body    *old = at->is->body;
	hy_view		left;
	room		r;
	int			m;
	ax_status	x;

	r.c = c;
	r.n = n;
	r.is = (hy_view) {.end = at->is->end, .body = old, .live = hy_live(at->is)};
	r.left = r.right = NULL;
	r.node = NULL;
	/* no latch while memory is taken: it is taken later at this version of its word */
	ax_guard_close(h->cx, &at->g, false);
	r.b = hy_still(h, at, r.copy);
	if (!r.b)
		return AX_STALE;
	x = prepare_room(&r, c, &m);
	if (x != AX_OK)
		return forget(&r, c, &at->g, x);
	left = (hy_view) {.end = r.is.end, .body = r.left ? r.left : old,
		.live = r.left ? hy_used(r.left) : hy_live(&r.is)};
	if (m)
	{
		const hy_view right = {.end = hy_end_at(r.node, behind), .body = r.right, .live = hy_used(r.right)};

		left.end = hy_end_at(n, r.node);
		if (h->versions)
			r.node->origin = n;
		atomic_store_explicit(&r.node->prev, n, memory_order_relaxed);
		hy_publish(h, &c->e, 1, r.node, &right);
	}
	AX_POINT("hydra.split.before_lock");
	if (!ax_guard_lock(h->cx, &at->g))
		return forget(&r, c, &at->g, AX_STALE);
	if (m)
		hy_announce(h->t);
	hy_publish(h, &c->e, 0, n, &left);
	hy_commit(h, &c->e);
	if (m)
	{
		/* writers may come to it from now on */
		AX_POINT("hydra.split.committed");
		if (behind)
			atomic_store_explicit(&behind->prev, r.node, memory_order_release);
		hy_push(h->t, &r.node->come);
		AX_COUNT(h->cx, h->s, leaves, 1);
	}
	ax_guard_close(h->cx, &at->g, true);
	hy_edit_done(h, &c->e);
	if (r.left)
		ax_retire(h->cx, h->s, old, old->size);
	/* the updater's, or the next change's */
	if (m)
		hy_told(h, UINT64_MAX);
	return AX_OK;
}

/*
 * One try.  AX_STALE: something changed.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
static ax_status
try_insert(change *c, int tries)
{
	const hy_call *h = &c->h;
	hy_at		at;
	hy_body    *b;
	int			i;
	ax_status	x = hy_find(h, NULL, &c->pos, HY_BEFORE, hy_way(tries) | HY_TO_WRITE, &at);

	if (x != AX_OK)
		return x;
	b = at.is->body;
	i = hy_find_key(at.is, hy_guard(h, &at), c->pos.key, c->pos.len);
	AX_POINT("hydra.leaf_read");
	if (i != -1)
	{
		x = i >= 0 && ax_guard_valid(&at.g) ? AX_EXISTS : AX_STALE;
		ax_guard_close(h->cx, &at.g, false);
		return x;
	}
	if (!hy_room(b, c->pos.len, c->blob != NULL))
		return make_room(c, &at);
	AX_POINT("hydra.leaf_before_lock");
	if (!ax_guard_lock(h->cx, &at.g))
		return AX_STALE;
	if (h->versions)
	{
		/* in a slot that no version has, so readers need not know */
		const hy_view is = {.end = at.is->end, .body = b, .live = hy_live(at.is) | (hy_used(b) + 1)};

		hy_put(b, c->pos.key, c->pos.len, c->fp, c->blob);
		hy_publish(h, &c->e, 0, at.n, &is);
		hy_commit(h, &c->e);
	}
	else
		hy_put(b, c->pos.key, c->pos.len, c->fp, c->blob);
	ax_guard_close(h->cx, &at.g, true);
	hy_edit_done(h, &c->e);
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
ax_status
hy_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	change		c;
	ax_status	x = AX_OK;

	if (ax_unlikely(!hy_enter(&c.h, cx, s)))
		x = hy_begin(&c.h);
	if (ax_unlikely(x != AX_OK))
		return x;
	/* before the change, of which it is then no part: done, or there is no memory */
	if (ax_unlikely(hy_waiting(c.h.t) >= HY_MARK))
		x = hy_apply(&c.h, 4 * HY_MARK);
	if (x == AX_OK || x == AX_BUSY)
		x = hy_reserve(&c.h, 0, 1);
	if (x != AX_OK)
		return x;
	c.pos = (ax_bound) {key, len, false};
	c.fp = hy_fp(key, len - AX_TID_BYTES);
	c.blob = NULL;
	c.e.n = 0;
	if (len > HY_LONG && (c.blob = bt_blob_new(cx, s, key, len)) == NULL)
		return AX_NOMEM;
	x = hy_edit_make(&c.h, &c.e, 1, false) ? AX_STALE : AX_NOMEM;
	for (int tries = 0; x == AX_STALE; tries++)
	{
		if (tries)
			ax_restarted(cx, s, tries - 1);
		x = try_insert(&c, tries);
	}
	hy_edit_drop(&c.h, &c.e, 0);
	if (x == AX_OK)
		AX_COUNT(cx, s, entries, 1);
	else if (c.blob)
		bt_blob_free(cx, s, c.blob);
	return x;
}

ax_status
hy_insert_sorted(ax_ctx *cx, ax_store *s, const ax_keys *keys, uint64_t *done,
				 uint64_t *added)
{
	*done = *added = 0;
	while (*done < keys->n)
	{
		ax_status	x = ax_inner(s)->insert(cx, s, keys->p[*done], ax_key_len(keys, *done));

		if (x != AX_OK && x != AX_EXISTS)
			return *done ? AX_OK : x;
		*added += x == AX_OK;
		++*done;
	}
	return AX_OK;
}
