/*
 * bc_check.c
 *	  Verification of a tree whose order only the caller knows: layout, levels,
 *	  and what does not depend on order, some pages a call.
 *
 * Page after page, each a validated copy.  The path is remembered from call to call:
 * pages, their versions, and how far the walk is in them.  When a page above has
 * changed, the next child is the one behind the child that came last.  If the page
 * is gone, the walk goes on nearby.  So it never waits for anybody and always ends;
 * the counts are exact when nobody writes.
 *
 * src/README.md: Keys that are compared
 * src/README.md: The check
 */
#include <stdio.h>

#include "core/base/ax_area.h"
#include "bc_page.h"

typedef struct walk
{
	ax_ctx	   *cx;
	ax_store   *s;
	ax_checking *c;
	uint32_t	size;
} walk;

_Static_assert(AX_CHECK_LEVELS >= AX_CMP_LEVELS, "a place for every page of a path");

static void
complain(walk *w, const char *what, const ax_image *m)
{
	if (!w->c->bad)
		snprintf(w->c->msg, sizeof(w->c->msg), "%s in a page of level %d with %d entries", what,
				 m->level, m->n);
	w->c->bad = true;
}

/* One page as it was at one moment. */
static void
check_image(walk *w, const uint8_t *image, int level)
{
	const ax_image *m = (const ax_image *) (const void *) image;
	uint32_t	bytes = 0;

	if (m->level != level)
		complain(w, "a wrong level", m);
	else if (BC_IMAGE + 4u * m->n > m->heap || m->heap > w->size)
		complain(w, "impossible layout", m);
	else if (level && m->n == 0)
		complain(w, "no child", m);
	for (uint32_t i = 0; i < m->n && !w->c->bad; i++)
	{
		uint32_t	off = m->slot[i] & 0xFFFF;
		uint32_t	len = m->slot[i] >> 16;
		uint32_t	stored = len == AX_CMP_LONG ? 8 : len;
		bc_entry	e;

		if (off < m->heap + (level ? 8u : 0) || off + stored > w->size)
		{
			complain(w, "a key outside of the heap", m);
			break;
		}
		bytes += stored + (level ? 8 : 0);
		bc_get(image, i, &e);
		if (level && !e.child)
			complain(w, "a missing child", m);
		else if (level && i == 0 && len != 0)
			complain(w, "a key before the first child", m);
		else if ((!level || i > 0) && len < AX_TID_BYTES)
			complain(w, "a key without a TID", m);
		else if (len != AX_CMP_LONG && len > bc_max_inline(w->s))
			complain(w, "a key too long to be in place", m);
	}
	if (!w->c->bad && m->heap + bytes != w->size)
		complain(w, "a heap that does not add up", m);
}

/*
 * The page that comes next: the root, or the next child of the lowest page of the
 * path; *above guards the pointer to it.  AX_NOTFOUND: there is none, and the path is
 * shorter by one.  AX_STALE: something changed.  AX_BUSY.
 *
 * Latches: none.
 */
static ax_status
next_page(walk *w, uint8_t *image, ax_guard *above, bc_page **page)
{
	ax_checking *c = w->c;
	bc_page    *up;
	bc_entry	e;
	ax_status	x;
	int			k = c->n - 1;

	if (k < 0)
	{
		x = ax_guard_open(w->cx, above, &w->s->root_word, false);
		*page = (bc_page *) (uintptr_t) atomic_load_explicit(&w->s->root, memory_order_acquire);
		if (x == AX_OK && !ax_guard_valid(above))
			x = AX_STALE;
		return x == AX_OK && !*page ? AX_NOTFOUND : x;
	}
	up = c->f[k].page;
	x = bc_copy(w->cx, up, above, image, w->size);
	if (x == AX_BUSY || (x == AX_STALE && !(ax_word_read(&up->word) & AX_OBSOLETE)))
		return x;
	if (x != AX_OK || bc_img(image)->level != c->f[k].level)
	{
		/* gone: the rest is below its neighbour now; or it was the root: once more */
		c->n--;
		return AX_STALE;
	}
	if (above->v != c->f[k].version)
	{
		for (uint32_t j = 0; c->f[k].last && j < bc_img(image)->n; j++)
		{
			bc_get(image, j, &e);
			if (e.child == c->f[k].last)
				c->f[k].i = j + 1;
		}
		c->f[k].version = above->v;
	}
	if (c->f[k].i >= bc_img(image)->n)
	{
		c->n--;
		return AX_NOTFOUND;
	}
	bc_get(image, c->f[k].i, &e);
	*page = e.child;
	return AX_OK;
}

/* See bc_page.h, ax_check. */
ax_status
bc_check(ax_ctx *cx, ax_store *s, ax_checking *c)
{
	walk		w = {.cx = cx, .s = s, .c = c, .size = bc_size(s)};
	uint8_t		image[BC_MAX];

	for (int work = 0; work < AX_CHECK_WORK && !c->done && !c->bad; work++)
	{
		ax_guard	above,
					g;
		bc_page    *page = NULL;
		ax_status	x = next_page(&w, image, &above, &page);
		int			level;

		if (x == AX_BUSY)
			return x;
		if (x == AX_NOTFOUND)
			c->done = c->n <= 0;
		if (x != AX_OK)
			continue;
		x = bc_copy(cx, page, &g, image, w.size);
		if (x == AX_BUSY)
			return x;
		/* pages are used again: only below the same page is it the one that was meant */
		if (x != AX_OK || !ax_guard_valid(&above))
			continue;
		level = c->n ? c->f[c->n - 1].level - 1 : bc_img(image)->level;
		check_image(&w, image, level);
		if (c->bad)
			break;
		if (c->n)
		{
			c->f[c->n - 1].last = page;
			c->f[c->n - 1].i++;
		}
		else
		{
			memset(&c->info, 0, sizeof(c->info));
			c->info.height = (int) atomic_load_explicit(&s->height, memory_order_relaxed);
		}
		if (level == 0)
		{
			c->info.leaves++;
			c->info.entries += bc_img(image)->n;
			c->done = c->n == 0;
			continue;
		}
		c->info.n4++;
		if (c->n == AX_CHECK_LEVELS)
		{
			complain(&w, "too many levels above", bc_img(image));
			break;
		}
		c->f[c->n].page = page;
		c->f[c->n].last = NULL;
		c->f[c->n].version = g.v;
		c->f[c->n].i = 0;
		c->f[c->n].level = level;
		c->n++;
	}
	return AX_OK;
}
