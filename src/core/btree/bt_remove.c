/*
 * bt_remove.c
 *	  Removal of a key, and merging what removals leave nearly empty.
 *
 * A removal latches its leaf only.  A page that is less than a quarter full
 * afterwards is merged with a neighbour below the same parent into a new page.  The
 * same is done on the levels above.  An empty last leaf, and a root page with one
 * child, go.  Merging is an economy.  When there is no memory for the new page, it
 * is left to a later removal.  The removal itself never needs memory.
 *
 * src/core/btree/README.md: The B+-tree
 */
#include "bt_tree.h"

/* Is a page so empty that it should be merged? */
static inline bool
page_underfull(const bt_page *p)
{
	return bt_used(p) < (p->size - BT_HEAD) / 4;
}

/*
 * Let frame 0 go if it is an empty leaf or has one child only.  AX_OK: it is
 * gone.  AX_NOTFOUND: there is nothing to do.
 *
 * Epoch: inside.
 * Latches: root word and frame 0, by one try each; none on return.
 */
static ax_status
drop_root(ax_ctx *cx, ax_store *s, bt_path *t)
{
	bt_change	ch = {.site = AX_SITE_NODE_DELETE, .t = t};
	bt_page    *p = t->f[0].p;
	bt_page    *child;
	ax_status	x;

	if (bt_count(p) > 0)
		return ax_guard_valid(&t->f[0].g) ? AX_NOTFOUND : AX_STALE;
	bt_plan(&ch, &t->root, NULL);
	bt_plan(&ch, &t->f[0].g, p);
	AX_POINT("bt.root_before_lock");
	x = bt_begin(cx, s, &ch, NULL);
	if (x != AX_OK)
		return x;
	child = p->level ? bt_ref(&bt_children(p)[0]) : NULL;
	bt_publish(s, t, 0, child);
	atomic_store_explicit(&s->height, child ? (uint32_t) child->level + 1 : 0,
						  memory_order_relaxed);
	bt_finish(cx, s, &ch, NULL);
	return AX_OK;
}

/* Two neighbours, and the page above. */
typedef struct pair
{
	bt_change	ch;
	ax_guard	og;				/* of the one that is not on the path */
	bt_page    *page[3];		/* left, right, above */
	ax_guard   *g[3];
	int			left;			/* its place above */
	_Alignas(AX_LINE) uint8_t copy[3][BT_MAX_SIZE];
	const bt_page *from[3];		/* the copies, or the pages */
	int			n;
	bt_view		v[2 * BT_MAX_CAP + 2];
	bt_page    *child[2 * BT_MAX_CAP + 4];
} pair;

static inline bool
pair_valid(const pair *m)
{
	return ax_guard_valid(m->g[2]) && ax_guard_valid(m->g[0]) && ax_guard_valid(m->g[1]);
}

/* Reads both into m.  AX_NOTFOUND: as a rule that is too much for one page. */
static ax_status
read_pair(ax_store *s, pair *m)
{
	const bt_page *a,
			   *b;
	int			nc = 0;

	if (bt_used(m->page[0]) > 0 && bt_used(m->page[1]) > 0 &&
		bt_used(m->page[0]) + bt_used(m->page[1]) > (m->page[0]->size - BT_HEAD) / 4 * 3)
		return pair_valid(m) ? AX_NOTFOUND : AX_STALE;
	for (int i = 0; i < 3; i++)
	{
		m->from[i] = m->page[i];
		/* under a coarse latch, nobody changes them */
		if (s->sync == AX_SYNC_COARSE)
			continue;
		ax_copy_out(m->copy[i], (const uint8_t *) m->page[i], m->page[i]->size);
		m->from[i] = (const bt_page *) (const void *) m->copy[i];
	}
	AX_POINT("bt.merge.copied");
	if (!pair_valid(m))
		return AX_STALE;
	a = m->from[0];
	b = m->from[1];
	m->n = 0;
	for (int j = 0; j < bt_count(a); j++)
		bt_get(a, j, &m->v[m->n++]);
	if (a->level)
	{
		for (int j = 0; j <= bt_count(a); j++)
			m->child[nc++] = bt_ref(&bt_children(a)[j]);
		bt_get(m->from[2], m->left, &m->v[m->n++]);
		for (int j = 0; j <= bt_count(b); j++)
			m->child[nc++] = bt_ref(&bt_children(b)[j]);
	}
	else
	{
		bt_view		sep;

		bt_get(m->from[2], m->left, &sep);
		m->ch.goes_blob = sep.blob;
	}
	for (int j = 0; j < bt_count(b); j++)
		bt_get(b, j, &m->v[m->n++]);
	return AX_OK;
}

/* As one page, of the range of both.  False: they do not fit. */
static bool
make_one(ax_ctx *cx, ax_store *s, bt_path *t, int k, pair *m)
{
	const bt_page *up = m->from[2];
	bt_contents of = {.level = m->from[0]->level,.n = m->n,.v = m->v,.child = m->child};
	bt_view		lo,
				hi;
	bool		has_lo = m->left > 0,
				has_hi = m->left + 1 < bt_count(up);
	uint8_t		buf[BT_MAX_PLEN];

	if (has_lo)
		bt_get(up, m->left - 1, &lo);
	if (has_hi)
		bt_get(up, m->left + 1, &hi);
	of.prefix = bt_range_prefix(t, k, has_lo ? &lo : NULL, has_hi ? &hi : NULL, false, buf,
								&of.plen);
	if (!bt_fits(m->from[0]->size, of.level > 0, of.v, of.n, of.plen))
		return false;
	bt_build(cx, s, m->ch.made[0].p, &of);
	m->ch.made[0].built = true;
	return true;
}

/*
 * Merge frame k with a neighbour.  AX_OK: done.  AX_NOTFOUND: it is no use
 * (they do not fit, no memory).  AX_STALE: something changed.  Nothing is latched.
 *
 * As in a split, the new page is made before anything is latched, from copies
 * of the two and of their parent.  The latches, taken at the versions of the
 * path, then show that they were true ones.
 *
 * Epoch: inside.
 * Latches: takes the parent, then both pages, by one try each; none on return.
 */
static ax_status
merge_page(ax_ctx *cx, ax_store *s, bt_path *t, int k)
{
	bt_frame   *f = &t->f[k],
			   *up = &t->f[k - 1];
	pair		m;
	bool		first = up->i < bt_count(up->p);	/* of the two */
	ax_status	x;

	m.ch = (bt_change) {.site = AX_SITE_NODE_DELETE, .t = t};
	m.og = (ax_guard) {0};
	m.left = first ? up->i : up->i - 1;
	if (m.left < 0)
		return ax_guard_valid(&up->g) ? AX_NOTFOUND : AX_STALE;
	m.page[first ? 0 : 1] = f->p;
	m.page[first ? 1 : 0] = bt_ref(&bt_children(up->p)[first ? up->i + 1 : m.left]);
	m.page[2] = up->p;
	m.g[first ? 0 : 1] = &f->g;
	m.g[first ? 1 : 0] = &m.og;
	m.g[2] = &up->g;
	if (!ax_guard_valid(&up->g))
		return AX_STALE;
	if (!bt_make(cx, s, &m.ch, f->p->level, true))
		return AX_NOTFOUND;
	x = ax_open(cx, &m.og, &m.page[first ? 1 : 0]->word, AX_OPTIMISTIC);
	if (x == AX_OK)
		x = read_pair(s, &m);
	if (x == AX_OK && !make_one(cx, s, t, k, &m))
		x = AX_NOTFOUND;
	if (x == AX_NOTFOUND)
	{
		/* the path is still good */
		ax_guard_close(cx, &m.og, false);
		bt_forget(cx, s, &m.ch);
		return x;
	}
	if (x != AX_OK)
		return bt_give_up(cx, s, m.ch, x);
	bt_plan(&m.ch, &up->g, NULL);
	bt_plan(&m.ch, m.g[0], m.page[0]);
	bt_plan(&m.ch, m.g[1], m.page[1]);
	AX_POINT("bt.merge.before_lock");
	x = bt_begin(cx, s, &m.ch, NULL);
	if (x != AX_OK)
		return x;
	up->i = m.left;
	bt_publish(s, t, k, m.ch.made[0].p);
	AX_POINT("bt.merge.published");
	bt_del(up->p, m.left);
	bt_finish(cx, s, &m.ch, NULL);
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
void
bt_tidy(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	bt_path		t;

	t.pess = t.all = t.write = false;
	for (int rounds = 0; rounds < 3 * BT_LEVELS; rounds++)
	{
		ax_status	x = AX_NOTFOUND;

		if (bt_descend(cx, s, &t, key, len, false) != AX_OK)
			continue;
		if (t.n == 0)
			return;
		for (int k = t.n - 1; k >= 0; k--)
		{
			if (!page_underfull(t.f[k].p))
			{
				if (!ax_guard_valid(&t.f[k].g))
				{
					x = AX_STALE;
					break;
				}
				continue;
			}
			x = k == 0 ? drop_root(cx, s, &t) : merge_page(cx, s, &t, k);
			if (x != AX_NOTFOUND)
				break;
		}
		bt_close(cx, &t, -1);
		if (x == AX_NOTFOUND || x == AX_BUSY)
			return;
	}
}

/*
 * One try to remove a key; *empty: the leaf is nearly so.
 *
 * Latches: none on entry and on return.
 */
static inline ax_status
remove_key(ax_ctx *cx, ax_store *s, bt_path *t, const uint8_t *key, uint32_t len, bool *empty)
{
	bt_change	ch = {.site = AX_SITE_LEAF_DELETE, .t = t};
	bt_frame   *f;
	bt_view		v;
	bool		same;
	int			i;
	ax_status	x = bt_descend(cx, s, t, key, len, false);

	if (x != AX_OK)
		return x;
	if (t->n == 0)
	{
		/* the root's word was validated after its pointer was read */
		bt_close(cx, t, -1);
		return AX_NOTFOUND;
	}
	f = &t->f[t->n - 1];
	i = bt_find(f->p, &f->g, key + f->p->plen, len - f->p->plen, false, &same);
	AX_POINT("bt.remove.leaf_read");
	if (i < 0 || !same)
	{
		x = i >= 0 && ax_guard_valid(&f->g) ? AX_NOTFOUND : AX_STALE;
		bt_close(cx, t, -1);
		return x;
	}
	bt_plan(&ch, &f->g, NULL);
	x = bt_begin(cx, s, &ch, NULL);
	if (x != AX_OK)
		return x;
	bt_get(f->p, i, &v);
	bt_del(f->p, i);
	*empty = page_underfull(f->p);
	ch.goes_blob = v.blob;
	bt_finish(cx, s, &ch, NULL);
	bt_close(cx, t, -1);
	return AX_OK;
}

/*
 * Epoch: inside.
 * Returns: AX_BUSY or AX_NOMEM: nothing was removed.
 */
ax_status
bt_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	bt_path		t;
	bool		empty = false;
	int			tries = 0;
	ax_status	x = AX_OK;

	/* a long key has an object of its own, which goes with it */
	if (len > bt_max_inline(s->page_size))
		x = ax_retire_reserve(cx, 1);
	if (x != AX_OK)
		return x;
	t.all = false;
	t.write = true;
	do
	{
		t.pess = ax_pessimistic(tries);
		x = remove_key(cx, s, &t, key, len, &empty);
	} while (ax_start_over(cx, s, x, &tries));
	if (x != AX_OK)
		return x;
	AX_COUNT(cx, s, entries, -1);
	if (empty)
		bt_tidy(cx, s, key, len);
	return AX_OK;
}
