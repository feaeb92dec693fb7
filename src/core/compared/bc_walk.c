/*
 * bc_walk.c
 *	  A walk over all pages of a tree whose order only the caller knows, some pages a
 *	  call: for its check and its compaction.
 *
 * The path is remembered from call to call: pages, their versions, and how far the
 * walk is in them.  When a page above has changed, the next child is the one behind
 * the child that came last.  If the page is gone, the walk goes on nearby.  So it
 * never waits for anybody and always ends.
 *
 * src/core/compared/README.md: Keys that are compared
 */
#include "bc_page.h"

ax_status
bc_walk_on(ax_ctx *cx, ax_store *s, ax_walk *k, uint8_t *image)
{
	if (k->n > 0 && (uint64_t) (uintptr_t) k->f[0].page !=
		atomic_load_explicit(&s->root, memory_order_acquire))
		k->n = 0;
	for (int j = 0; j + 1 < k->n;)
	{
		ax_guard	g;
		bc_page    *p = k->f[j].page;
		ax_status	x = bc_copy(cx, p, &g, image, bc_size(s));

		if (x == AX_BUSY)
			return x;
		if (x == AX_OK && bc_has_child(image, k->f[j + 1].page))
			j++;
		else if (x == AX_OK || (ax_word_read(&p->word) & AX_OBSOLETE))
			k->n = j + 1;
	}
	return AX_OK;
}

/*
 * Latches: none.
 */
ax_status
bc_walk_next(ax_ctx *cx, ax_store *s, ax_walk *k, uint8_t *image, ax_guard *above,
			 bc_page **page)
{
	bc_page    *up;
	bc_entry	e;
	ax_status	x;
	int			j = k->n - 1;

	if (j < 0)
	{
		x = ax_guard_open(cx, above, &s->root_word, false);
		*page = (bc_page *) (uintptr_t) atomic_load_explicit(&s->root, memory_order_acquire);
		if (x == AX_OK && !ax_guard_valid(above))
			x = AX_STALE;
		return x == AX_OK && !*page ? AX_NOTFOUND : x;
	}
	up = k->f[j].page;
	x = bc_copy(cx, up, above, image, bc_size(s));
	if (x == AX_BUSY || (x == AX_STALE && !(ax_word_read(&up->word) & AX_OBSOLETE)))
		return x;
	if (x != AX_OK || bc_img(image)->level != k->f[j].level)
	{
		/* gone: the rest is below its neighbour now; or it was the root: once more */
		k->n--;
		return AX_STALE;
	}
	if (above->v != k->f[j].version)
	{
		for (uint32_t i = 0; k->f[j].last && i < bc_img(image)->n; i++)
		{
			bc_get(image, i, &e);
			if (e.child == k->f[j].last)
				k->f[j].i = i + 1;
		}
		k->f[j].version = above->v;
	}
	if (k->f[j].i >= bc_img(image)->n)
	{
		k->n--;
		return AX_NOTFOUND;
	}
	bc_get(image, k->f[j].i, &e);
	*page = e.child;
	return AX_OK;
}
