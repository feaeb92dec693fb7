/*
 * bc_bulk.c
 *	  The sorted load of trees whose order only the caller knows.
 *
 * src/core/compared/README.md: Keys that are compared
 */
#include "core/base/ax_area.h"
#include "core/base/ax_call.h"
#include "bc_page.h"

/* ---- load ---- */

/* The rightmost page of each level, which nobody else sees yet. */
typedef struct load
{
	ax_ctx	   *cx;
	ax_store   *s;
	uint32_t	size;
	uint32_t	keep;			/* bytes of a leaf left free */
	int			levels;
	bc_page    *page[AX_CMP_LEVELS];
} load;

/*
 * An empty page of a level, counted.  NULL: no memory.
 */
static bc_page *
new_page(load *l, int level)
{
	bc_page    *p = bc_alloc(l->cx, l->s, false);

	if (p)
	{
		bc_ready(l->s, p);
		bc_clear(p->image, l->size, level);
		if (level)
			AX_COUNT(l->cx, l->s, n4, 1);
		else
			AX_COUNT(l->cx, l->s, leaves, 1);
	}
	return p;
}

/* All below a page that nobody has seen, and itself. */
static void
free_unseen(load *l, bc_page *p)
{
	ax_image   *m = bc_img(p->image);

	for (uint32_t i = 0; i < m->n; i++)
	{
		bc_entry	e;

		bc_get(p->image, i, &e);
		if (e.blob)
			bt_blob_free(l->cx, l->s, e.blob);
		if (m->level)
			free_unseen(l, e.child);
	}
	if (m->level)
		AX_COUNT(l->cx, l->s, n4, -1);
	else
		AX_COUNT(l->cx, l->s, leaves, -1);
	bc_unalloc(l->cx, l->s, p);
}

/*
 * Add an entry at the right end of a level; its key is the caller's.  False: no
 * memory; what was to be added is not in the tree.
 */
static bool
append_entry(load *l, int level, const uint8_t *key, uint32_t len, bc_page *child)
{
	bc_entry	e = {.child = child, .key = key, .len = len};
	ax_image   *m = bc_img(l->page[level]->image);
	bc_page    *p;

	if (len > bc_max_inline(l->s) && (e.blob = bt_blob_new(l->cx, l->s, key, len)) == NULL)
		return false;
	if ((m->n == 0 || bc_room(m) >= 4 + bc_bytes(level > 0, &e) + (level ? 0 : l->keep)) &&
		bc_put(l->page[level]->image, m->n, &e))
		return true;

	/* the next page of the level; what it begins with goes up */
	if (level + 1 == l->levels)
	{
		bc_entry	first = {.child = l->page[level]};
		bc_page    *top = l->levels < AX_CMP_LEVELS ? new_page(l, level + 1) : NULL;

		if (!top)
			goto fail;
		(void) bc_put(top->image, 0, &first);
		l->page[l->levels++] = top;
	}
	if ((p = new_page(l, level)) == NULL)
		goto fail;
	if (level)
	{
		/* its own entry begins below all keys */
		bc_entry	first = {.child = child};

		(void) bc_put(p->image, 0, &first);
		if (e.blob)
			bt_blob_free(l->cx, l->s, e.blob);
		e.blob = NULL;
	}
	else
		(void) bc_put(p->image, 0, &e);
	if (!append_entry(l, level + 1, key, len, p))
	{
		if (level)
			bc_img(p->image)->n = 0;	/* the child is the caller's still */
		free_unseen(l, p);
		return false;
	}
	l->page[level] = p;
	return true;

fail:
	if (e.blob)
		bt_blob_free(l->cx, l->s, e.blob);
	return false;
}

/*
 * Epoch: inside; now and then another one (ax_breathe).  On AX_STALE outside.
 * Latches: takes the root's word for the publication; none on return.
 * Returns: unless AX_OK, nothing was loaded and all is given back, or gone with the store.
 */
ax_status
bc_load(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill)
{
	load		l = {.cx = cx, .s = s, .size = bc_size(s)};
	bc_page    *root;
	uint64_t	w;
	ax_status	x;

	if (atomic_load_explicit(&s->root, memory_order_acquire))
		return AX_EXISTS;
	if (keys->n == 0)
		return AX_OK;
	l.keep = (l.size - BC_IMAGE) * (uint32_t) (100 - fill) / 100;
	if ((l.page[0] = new_page(&l, 0)) == NULL)
		return AX_NOMEM;
	l.levels = 1;
	x = AX_OK;
	for (uint64_t i = 0; i < keys->n && x == AX_OK; i++)
	{
		if (!append_entry(&l, 0, keys->p[i], ax_key_len(keys, i), NULL))
			x = AX_NOMEM;
		else if ((i + 1) % AX_BREATH_KEYS == 0 && !ax_breathe(cx, s))
			return AX_STALE;
	}
	root = l.page[l.levels - 1];
	if (x == AX_OK)
		x = ax_word_lock(cx, &s->root_word, &w);
	if (x == AX_OK && atomic_load_explicit(&s->root, memory_order_relaxed))
	{
		ax_word_unlock(cx, &s->root_word, false);
		x = AX_EXISTS;
	}
	if (x != AX_OK)
	{
		free_unseen(&l, root);
		return x;
	}

	atomic_store_explicit(&s->root, (uint64_t) (uintptr_t) root, memory_order_release);
	atomic_store_explicit(&s->height, (uint32_t) l.levels, memory_order_relaxed);
	ax_word_unlock(cx, &s->root_word, true);
	AX_COUNT(cx, s, entries, (int64_t) keys->n);
	return AX_OK;
}
