/*
 * hy_change.c
 *	  HydraList: insertion, and splits.
 *
 * An insert latches its node only, and so does a split.  For the link back, of the node
 * behind, is under the same latch.  A change makes what it needs in private, from a copy of
 * the body.  The latch, taken at the version of the copy, then shows that it was a true one.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "hy_list.h"

/* A node on its way to more room.  About forty kilobytes. */
typedef struct room
{
	ax_ctx	   *cx;
	ax_store   *s;
	hy_at	   *at;
	int			n;
	int			mine;			/* the place of the new key */
	hy_entry	e[HY_SLOTS + 1];
	hy_body    *left;			/* NULL: the body stays */
	hy_body    *right;
	hy_node    *node;
	_Alignas(8) uint8_t copy[HY_MAX_BODY];
} room;

#define MORE	8				/* slots, about, that a fixed body grows by */

/* The entries of the copy and the new one, sorted. */
static void
collect(room *r, const uint8_t *key, uint32_t len, uint8_t fp, bt_blob *blob)
{
	const hy_body *b = (const hy_body *) (const void *) r->copy;

	r->n = hy_entries(b, r->e);
	hy_sort(r->e, r->n, b->plen);
	r->mine = hy_add(r->e, r->n++, key, len, fp, blob);
}

/*
 * Make the halves, cut before m, or one body when m is 0.  False: no memory.
 */
static bool
make(room *r, int m)
{
	hy_node    *n = r->at->n;
	const hy_body *b = (const hy_body *) (const void *) r->copy;
	uint32_t	plen = hy_range(n, r->at->end.next);
	bool		rising,
				stays;
	bt_view		anchor;
	/* a fixed one grows by a copy, which is little work */
	const int	spare = b->rest != HY_VAR || r->n / 2 < MORE ? MORE : r->n / 2;

	if (m == 0)
	{
		r->left = hy_make_body(r->cx, r->s, r->e, r->n, spare, n->anchor, plen, false);
		return r->left != NULL;
	}
	hy_separator(&r->e[m - 1].v, &r->e[m].v, &anchor);
	r->node = hy_make_node(r->cx, r->s, &anchor, false);
	if (!r->node)
		return false;
	rising = r->mine == r->n - 1 && m == r->mine;
	plen = hy_range(r->node, r->at->end.next);
	r->right = hy_make_body(r->cx, r->s, r->e + m, r->n - m, rising ? 3 * MORE : spare,
							r->node->anchor, plen, false);
	/* only the new key goes to the right: the body may stay */
	plen = hy_range(n, r->node);
	stays = rising && (plen - b->plen) * (uint32_t) m < HY_WORTH;
	if (r->right && !stays)
		r->left = hy_make_body(r->cx, r->s, r->e, m, rising ? 0 : spare, n->anchor, plen, false);
	return r->right && (r->left || stays);
}

/* The usual way to more room: all slots as they are, and more of them. */
static inline bool
may_grow(const room *r, uint32_t len, const bt_blob *blob)
{
	const hy_body *b = (const hy_body *) (const void *) r->copy;

	return b->rest != HY_VAR && b->cap < HY_SLOTS && !blob && len == (uint32_t) b->plen + b->rest;
}

/*
 * The change does not come about; x is returned.
 *
 * Latches: gives back the guard's, if it has one.
 */
static ax_status
forget(room *r, ax_status x)
{
	ax_guard_close(r->cx, &r->at->g, false);
	hy_drop_body(r->cx, r->s, r->left);
	hy_drop_body(r->cx, r->s, r->right);
	hy_drop_node(r->cx, r->s, r->node);
	return x;
}

/*
 * A body with room for the key in place of at's, or two nodes in place of one; the key
 * goes in on the way.  AX_OK: it is in.  AX_STALE: the node changed.  AX_NOMEM, AX_BUSY.
 *
 * Latches: on entry that of the guard, if it has one; none on return.
 * Arguments: a place, a key, and what was made of it.
 */
static __attribute__((noinline)) ax_status
make_room(ax_ctx *cx, ax_store *s, hy_list *t, hy_at *at, const uint8_t *key, uint32_t len,
		  uint8_t fp, bt_blob *blob)
{
	room		r;
	hy_node    *n = at->n;
	hy_body    *old = at->b;
	bool		split;
	int			m = 0;

	r.cx = cx;
	r.s = s;
	r.at = at;
	r.left = r.right = NULL;
	r.node = NULL;

	/* no latch while memory is taken: the version is still that under which all was read */
	ax_guard_close(cx, &at->g, false);
	if (!ax_guard_valid(&at->g) || !hy_copy(old, &at->g, r.copy))
		return AX_STALE;
	split = false;
	if (may_grow(&r, len, blob))
	{
		r.left = hy_grow(cx, s, (const hy_body *) (const void *) r.copy);
		if (!r.left)
			return forget(&r, AX_NOMEM);
		hy_put(r.left, key, len, fp, NULL);
	}
	else
	{
		collect(&r, key, len, fp, blob);
		split = r.n > HY_SLOTS || !hy_fits(r.e, r.n, hy_range(n, at->end.next));
		if (split)
			m = hy_cut(r.e, r.n, r.mine);
		if (!make(&r, m))
			return forget(&r, AX_NOMEM);
	}
	if (ax_retire_reserve(cx, 1) != AX_OK)
		return forget(&r, AX_BUSY);
	if (split)
	{
		atomic_store_explicit(&r.node->body, r.right, memory_order_relaxed);
		atomic_store_explicit(&r.node->prev, n, memory_order_relaxed);
		hy_set_next(r.node, at->end.next);
	}
	AX_POINT("hydra.split.before_lock");
	if (!ax_guard_lock(cx, &at->g))
		return forget(&r, AX_STALE);
	if (r.left)
		atomic_store_explicit(&n->body, r.left, memory_order_release);
	if (split)
	{
		hy_set_next(n, r.node);
		AX_POINT("hydra.split.linked");
		if (at->end.next)
			atomic_store_explicit(&at->end.next->prev, r.node, memory_order_release);
		hy_announce(t);
		hy_push(t, &r.node->come);
		AX_COUNT(cx, s, leaves, 1);
	}
	ax_guard_close(cx, &at->g, true);
	if (r.left)
		ax_retire(cx, s, old, old->size);
	/* the updater's, or the next change's */
	if (split)
		hy_told(cx, s, t, UINT64_MAX);
	return AX_OK;
}

/*
 * One try.  AX_STALE: something changed.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 * Arguments: a key, what was made of it, and how to take the node.
 */
static ax_status
try_insert(ax_ctx *cx, ax_store *s, hy_list *t, const uint8_t *key, uint32_t len, uint8_t fp,
		   bt_blob *blob, bool pess)
{
	hy_at		at;
	int			i;
	ax_status	x = hy_find(cx, s, t, NULL, key, len, HY_BEFORE, pess, true, &at);

	if (x != AX_OK)
		return x;
	i = hy_find_key(at.b, &at.g, key, len);
	AX_POINT("hydra.leaf_read");
	if (i != -1)
	{
		x = i >= 0 && ax_guard_valid(&at.g) ? AX_EXISTS : AX_STALE;
		ax_guard_close(cx, &at.g, false);
		return x;
	}
	if (!hy_room(at.b, len, blob != NULL))
		return make_room(cx, s, t, &at, key, len, fp, blob);
	AX_POINT("hydra.leaf_before_lock");
	if (!ax_guard_lock(cx, &at.g))
		return AX_STALE;
	hy_put(at.b, key, len, fp, blob);
	ax_guard_close(cx, &at.g, true);
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
ax_status
hy_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	const uint8_t fp = hy_fp(key, len - AX_TID_BYTES);
	bt_blob    *blob = NULL;
	hy_list    *t;
	ax_status	x = hy_begin(cx, s, &t);

	if (ax_unlikely(x != AX_OK))
		return x;
	/* before the change, of which it is then no part: done, or there is no memory */
	if (ax_unlikely(hy_waiting(t) >= HY_MARK))
		x = hy_apply(cx, s, t, 4 * HY_MARK);
	if (x != AX_OK && x != AX_BUSY)
		return x;
	if (len > HY_LONG && (blob = bt_blob_new(cx, s, key, len)) == NULL)
		return AX_NOMEM;
	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		x = try_insert(cx, s, t, key, len, fp, blob, tries >= AX_MAX_RESTARTS);
		if (ax_likely(x != AX_STALE))
			break;
	}
	if (x == AX_OK)
		AX_COUNT(cx, s, entries, 1);
	else if (blob)
		bt_blob_free(cx, s, blob);
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
