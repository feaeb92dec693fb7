/*
 * bc_check.c
 *	  Verification of a tree whose order only the caller knows: layout, levels,
 *	  and what does not depend on order, some pages a call.
 *
 * Page after page (bc_walk.c), each a validated copy.  The counts are exact when nobody
 * writes.
 *
 * src/core/compared/README.md: Keys that are compared
 * src/views/README.md: The check
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
complain_of_image(walk *w, const char *what, const ax_image *m)
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
		complain_of_image(w, "a wrong level", m);
	else if (BC_IMAGE + 4u * m->n > m->heap || m->heap > w->size)
		complain_of_image(w, "impossible layout", m);
	else if (level && m->n == 0)
		complain_of_image(w, "no child", m);
	for (uint32_t i = 0; i < m->n && !w->c->bad; i++)
	{
		uint32_t	off = m->slot[i] & 0xFFFF;
		uint32_t	len = m->slot[i] >> 16;
		uint32_t	stored = len == AX_CMP_LONG ? 8 : len;
		bc_entry	e;

		if (off < m->heap + (level ? 8u : 0) || off + stored > w->size)
		{
			complain_of_image(w, "a key outside of the heap", m);
			break;
		}
		bytes += stored + (level ? 8 : 0);
		bc_get(image, i, &e);
		if (level && !e.child)
			complain_of_image(w, "a missing child", m);
		else if (level && i == 0 && len != 0)
			complain_of_image(w, "a key before the first child", m);
		else if ((!level || i > 0) && len < AX_TID_BYTES)
			complain_of_image(w, "a key without a TID", m);
		else if (len != AX_CMP_LONG && len > bc_max_inline(w->s))
			complain_of_image(w, "a key too long to be in place", m);
	}
	if (!w->c->bad && m->heap + bytes != w->size)
		complain_of_image(w, "a heap that does not add up", m);
}

ax_status
bc_check(ax_ctx *cx, ax_store *s, ax_checking *c)
{
	walk		w = {.cx = cx, .s = s, .c = c, .size = bc_size(s)};
	_Alignas(8) uint8_t image[BC_MAX];
	ax_walk    *k = &c->walk;
	ax_status	x = bc_walk_on(cx, s, k, image);

	if (x != AX_OK)
		return x;
	for (int work = 0; work < AX_CHECK_WORK && !c->done && !c->bad; work++)
	{
		ax_guard	above,
					g;
		bc_page    *page = NULL;
		int			level;

		x = bc_walk_next(cx, s, k, image, &above, &page);
		if (x == AX_BUSY)
			return x;
		if (x == AX_NOTFOUND)
			c->done = k->n <= 0;
		if (x != AX_OK)
			continue;
		x = bc_copy(cx, page, &g, image, w.size);
		if (x == AX_BUSY)
			return x;
		if (x != AX_OK || !ax_guard_valid(&above))
			continue;
		level = k->n ? k->f[k->n - 1].level - 1 : bc_img(image)->level;
		check_image(&w, image, level);
		if (c->bad)
			break;
		if (k->n)
		{
			k->f[k->n - 1].last = page;
			k->f[k->n - 1].i++;
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
			c->done = k->n == 0;
			continue;
		}
		c->info.n4++;
		if (k->n == AX_CHECK_LEVELS)
		{
			complain_of_image(&w, "too many levels above", bc_img(image));
			break;
		}
		k->f[k->n].page = page;
		k->f[k->n].last = NULL;
		k->f[k->n].version = g.v;
		k->f[k->n].i = 0;
		k->f[k->n].level = level;
		k->n++;
	}
	return AX_OK;
}
