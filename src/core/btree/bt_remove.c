/*
 * bt_remove.c
 *	  Removal of a key, and merging what removals leave nearly empty.
 *
 * A removal latches its leaf only.  A page that is less than a quarter full
 * afterwards is merged with a neighbour below the same parent into a new page,
 * and so on upwards.  An empty last leaf, and a root page with one child, go.
 * Merging is an economy: when there is no memory for the new page, it is left
 * to a later removal, and the removal itself never needs memory.
 */
#include "bt_tree.h"

/* Is a page so empty that it should be merged? */
static inline bool
underfull(const bt_page *p)
{
	return bt_used(p) < (p->size - BT_HEAD) / 4;
}

/*
 * Let frame 0 go if it is an empty leaf or has one child only.  AX_OK: it is
 * gone.  AX_NOTFOUND: there is nothing to do.
 *
 * Epoch: inside.
 * Latches: root word and frame 0, by one try each.  The caller closes the
 * guards unless AX_OK.
 */
static ax_status
drop_root(ax_ctx *cx, ax_store *s, bt_path *t)
{
	bt_page    *p = t->f[0].p;
	bool		look = bt_count(p) == 0;
	bt_page    *child;

	if (!look)
		return ax_guard_valid(&t->f[0].g) ? AX_NOTFOUND : AX_STALE;
	AX_POINT("bt.root_before_lock");
	if (!ax_guard_lock_at(cx, &t->root, AX_SITE_NODE_DELETE) ||
		!ax_guard_lock_at(cx, &t->f[0].g, AX_SITE_NODE_DELETE))
		return AX_STALE;
	child = p->level ? bt_ref(&bt_children(p)[0]) : NULL;
	bt_publish(s, t, 0, child);
	atomic_store_explicit(&s->height, child ? (uint32_t) child->level + 1 : 0,
						  memory_order_relaxed);
	ax_guard_kill(cx, &t->f[0].g);
	ax_guard_close(cx, &t->root, true);
	bt_retire(cx, s, p);
	return AX_OK;
}

/*
 * Merge frame k with a neighbour.  AX_OK: done.  AX_NOTFOUND: it is no use
 * (they do not fit, no memory).  AX_STALE: something changed.
 *
 * As in a split, the new page is made before anything is latched, from copies
 * of the two and of their parent.  The latches, taken at the versions of the
 * path, then show that they were true ones.
 *
 * Epoch: inside.
 * Latches: takes the parent, then both pages, by one try each.  The guards of
 * frames k - 1 and k are closed on return, but for AX_NOTFOUND or an error
 * before the other page was opened.
 */
static ax_status
merge(ax_ctx *cx, ax_store *s, bt_path *t, int k)
{
	bt_page    *parent = t->f[k - 1].p;
	int			i = t->f[k - 1].i;
	int			left = i < bt_count(parent) ? i : i - 1;
	int			level = t->f[k].p->level;
	bt_page    *other;
	bt_page    *first,
			   *second,
			   *m = NULL;
	_Alignas(AX_LINE) uint8_t copy[3][BT_MAX_SIZE];
	const bt_page *a,
			   *b,
			   *up;
	bool		built = false;
	ax_guard	og;
	ax_guard   *ga,
			   *gb;
	bt_view		v[2 * BT_MAX_CAP + 2];
	bt_page    *child[2 * BT_MAX_CAP + 4];
	bt_view		lo,
				hi;
	bool		has_lo,
				has_hi;
	uint8_t		pbuf[BT_MAX_PLEN];
	const uint8_t *prefix;
	uint32_t	plen;
	bt_blob    *sepblob = NULL;
	int			n = 0,
				nc = 0;
	ax_status	x;

	if (left < 0)
		return ax_guard_valid(&t->f[k - 1].g) ? AX_NOTFOUND : AX_STALE;
	other = bt_ref(&bt_children(parent)[left == i ? i + 1 : left]);
	if (!ax_guard_valid(&t->f[k - 1].g))
		return AX_STALE;
	m = bt_alloc(cx, s, level, true);
	if (!m)
		return AX_NOTFOUND;
	x = ax_guard_open(cx, &og, &other->word, t->pess);
	if (x != AX_OK)
	{
		bt_unalloc(cx, s, level, m);
		return x;
	}
	a = first = left == i ? t->f[k].p : other;
	b = second = left == i ? other : t->f[k].p;
	up = parent;
	ga = left == i ? &t->f[k].g : &og;
	gb = left == i ? &og : &t->f[k].g;

	/* as a rule they do not fit: then nothing is copied */
	if (bt_used(first) > 0 && bt_used(second) > 0 &&
		bt_used(first) + bt_used(second) > (first->size - BT_HEAD) / 4 * 3)
	{
		x = ax_guard_valid(&t->f[k - 1].g) && ax_guard_valid(ga) && ax_guard_valid(gb) ?
			AX_NOTFOUND : AX_STALE;
		goto out;
	}
	/* under a coarse latch, nobody changes them */
	if (s->sync != AX_SYNC_COARSE)
	{
		ax_copy_out(copy[0], (const uint8_t *) first, first->size);
		ax_copy_out(copy[1], (const uint8_t *) second, second->size);
		ax_copy_out(copy[2], (const uint8_t *) parent, parent->size);
		a = (const bt_page *) (const void *) copy[0];
		b = (const bt_page *) (const void *) copy[1];
		up = (const bt_page *) (const void *) copy[2];
	}
	AX_POINT("bt.merge.copied");
	x = AX_STALE;
	if (!ax_guard_valid(&t->f[k - 1].g) || !ax_guard_valid(ga) || !ax_guard_valid(gb))
		goto out;
	x = AX_NOTFOUND;

	for (int j = 0; j < bt_count(a); j++)
		bt_get(a, j, &v[n++]);
	if (level)
	{
		for (int j = 0; j <= bt_count(a); j++)
			child[nc++] = bt_ref(&bt_children(a)[j]);
		bt_get(up, left, &v[n++]);
		for (int j = 0; j <= bt_count(b); j++)
			child[nc++] = bt_ref(&bt_children(b)[j]);
	}
	else
	{
		bt_view		sep;

		bt_get(up, left, &sep);
		sepblob = sep.blob;
	}
	for (int j = 0; j < bt_count(b); j++)
		bt_get(b, j, &v[n++]);

	/* the range of both */
	has_lo = left > 0;
	if (has_lo)
		bt_get(up, left - 1, &lo);
	has_hi = left + 1 < bt_count(up);
	if (has_hi)
		bt_get(up, left + 1, &hi);
	prefix = bt_range_prefix(t, k, &lo, has_lo, &hi, has_hi, false, pbuf, &plen);
	if (!bt_fits(a->size, level > 0, v, n, plen))
		goto out;
	bt_build(cx, s, m, level, v, n, child, prefix, plen);
	built = true;

	AX_POINT("bt.merge.before_lock");
	x = AX_STALE;
	if (!ax_guard_lock_at(cx, &t->f[k - 1].g, AX_SITE_NODE_DELETE) ||
		!ax_guard_lock_at(cx, ga, AX_SITE_NODE_DELETE) || !ax_guard_lock_at(cx, gb, AX_SITE_NODE_DELETE))
		goto out;
	t->f[k - 1].i = left;
	bt_publish(s, t, k, m);
	AX_POINT("bt.merge.published");
	bt_del(parent, left);
	ax_guard_kill(cx, ga);
	ax_guard_kill(cx, gb);
	ax_guard_close(cx, &t->f[k - 1].g, true);
	m = NULL;
	bt_retire(cx, s, first);
	bt_retire(cx, s, second);
	if (sepblob)
		bt_blob_retire(cx, s, sepblob);
	x = AX_OK;

out:
	/* what is still held goes first: no memory is given back with a latch */
	ax_guard_close(cx, &t->f[k - 1].g, false);
	ax_guard_close(cx, &t->f[k].g, false);
	ax_guard_close(cx, &og, false);
	bt_drop(cx, s, level, m, built);
	return x;
}

/*
 * After a removal: merge what is nearly empty on the way to the key, from the
 * leaf upwards.  Gives up where it cannot have its way.
 */
void
bt_tidy(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	bt_path		t;

	t.pess = t.all = t.write = false;
	for (int rounds = 0; rounds < 3 * BT_LEVELS; rounds++)
	{
		ax_status	x = AX_NOTFOUND;

		if (ax_retire_reserve(cx, 4) != AX_OK)
			return;
		if (bt_descend(cx, s, &t, key, len, false) != AX_OK)
			continue;
		if (t.n == 0)
			return;
		for (int k = t.n - 1; k >= 0; k--)
		{
			if (!underfull(t.f[k].p))
			{
				if (!ax_guard_valid(&t.f[k].g))
				{
					x = AX_STALE;
					break;
				}
				continue;
			}
			x = k == 0 ? drop_root(cx, s, &t) : merge(cx, s, &t, k);
			if (x != AX_NOTFOUND)
				break;
		}
		bt_close(cx, &t, -1);
		if (x == AX_NOTFOUND || x == AX_BUSY)
			return;
	}
}

/*
 * Remove one key, TID included.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 * Returns: AX_BUSY or AX_NOMEM: nothing was removed.
 */
ax_status
bt_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	bt_path		t;
	bt_frame   *f;
	bt_view		v;
	bool		same;
	bool		empty;
	int			i;
	ax_status	x = ax_retire_reserve(cx, 4);

	if (x != AX_OK)
		return x;
	t.all = false;
	t.write = true;
	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		t.pess = tries >= AX_MAX_RESTARTS;
		x = bt_descend(cx, s, &t, key, len, false);
		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		if (t.n == 0)
		{
			/* the root's word was validated after its pointer was read */
			bt_close(cx, &t, -1);
			return AX_NOTFOUND;
		}
		f = &t.f[t.n - 1];
		i = bt_find(f->p, &f->g, key + f->p->plen, len - f->p->plen, false, &same);
		AX_POINT("bt.remove.leaf_read");
		if (i < 0 || !same)
		{
			bool		ok = i >= 0 && ax_guard_valid(&f->g);

			bt_close(cx, &t, -1);
			if (ok)
				return AX_NOTFOUND;
			continue;
		}
		if (ax_guard_lock_at(cx, &f->g, AX_SITE_LEAF_DELETE))
			break;
		bt_close(cx, &t, -1);
	}

	bt_get(f->p, i, &v);
	bt_del(f->p, i);
	empty = underfull(f->p);
	ax_guard_close(cx, &f->g, true);
	bt_close(cx, &t, -1);
	AX_COUNT(cx, s, entries, -1);
	if (v.blob)
		bt_blob_retire(cx, s, v.blob);
	if (empty)
		bt_tidy(cx, s, key, len);
	return AX_OK;
}
