/*
 * bc_check.c
 *	  Verification of a tree whose order only the caller knows: layout, levels,
 *	  and what does not depend on order.
 *
 * Page after page, each a validated copy.  When the page above changes, the walk
 * looks for its place again from the root; if the page it stood on is gone, it
 * goes on nearby.  So it never waits for anybody and always ends; the counts
 * are exact when nobody writes.
 */
#include <stdio.h>

#include "ax_area.h"
#include "bc_page.h"

#define CHECK_BUSY	100

typedef struct walk
{
	ax_ctx	   *cx;
	ax_store   *s;
	uint32_t	size;
	char	   *msg;
	size_t		msglen;
	bool		bad;
	uint64_t	entries;
	uint64_t	leaves;
	uint64_t	inner;
	bool		moved;			/* something changed under the walk */
} walk;

static void
complain(walk *w, const char *what, const ax_image *m)
{
	if (!w->bad)
		snprintf(w->msg, w->msglen, "%s in a page of level %d with %d entries", what,
				 m->level, m->n);
	w->bad = true;
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
	for (uint32_t i = 0; i < m->n && !w->bad; i++)
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
	if (!w->bad && m->heap + bytes != w->size)
		complain(w, "a heap that does not add up", m);
}

/*
 * The subtree below a page whose copy is in image; g: its version.  The child
 * that comes next is found by its place, or, when the page has changed, behind
 * the child that came last.
 */
static ax_status
check_below(walk *w, bc_page *page, ax_guard *g, int level)
{
	uint8_t		image[BC_MAX];
	bc_page    *last = NULL;
	uint32_t	i = 0;
	ax_status	x;

	x = bc_copy(w->cx, page, g, image, w->size);
	if (x != AX_OK)
		return x;
	if (level < 0)
		level = bc_img(image)->level;
	check_image(w, image, level);
	if (level)
		w->inner++;
	else
	{
		w->leaves++;
		w->entries += bc_img(image)->n;
	}
	while (level && !w->bad && i < bc_img(image)->n)
	{
		ax_guard	below;
		bc_entry	e;

		bc_get(image, i, &e);
		if (ax_guard_valid(g))
		{
			uint64_t	entries = w->entries,
						leaves = w->leaves,
						inner = w->inner;

			x = check_below(w, e.child, &below, level - 1);
			if (x == AX_BUSY)
				return x;
			if (x == AX_OK)
			{
				last = e.child;
				i++;
				continue;
			}
			/* what it saw, or not, was no page of this one any more */
			w->entries = entries;
			w->leaves = leaves;
			w->inner = inner;
			if (ax_guard_valid(g))
				continue;		/* the child itself was being written */
		}
		w->moved = true;
		do
			x = bc_copy(w->cx, page, g, image, w->size);
		while (x == AX_STALE && !(ax_word_read(&page->word) & AX_OBSOLETE));
		if (x != AX_OK || bc_img(image)->level != level)
			return AX_OK;		/* gone: the rest is below its neighbour now */
		for (uint32_t j = 0; last && j < bc_img(image)->n; j++)
		{
			bc_get(image, j, &e);
			if (e.child == last)
				i = j + 1;
		}
	}
	return AX_OK;
}

/* See ax.h, ax_check. */
ax_status
bc_check(ax_ctx *cx, ax_store *s, ax_tree_info *out, bool *ok, char *msg, size_t msglen)
{
	walk		w = {.cx = cx, .s = s, .size = bc_size(s), .msg = msg, .msglen = msglen};
	ax_status	x = AX_STALE;
	int			height = 0;

	if (msglen)
		msg[0] = 0;
	for (int busy = 0; x != AX_OK && !w.bad;)
	{
		ax_guard	root,
					g;
		bc_page    *page;

		w.entries = w.leaves = w.inner = 0;
		x = ax_guard_open(cx, &root, &s->root_word, false);
		page = (bc_page *) (uintptr_t) atomic_load_explicit(&s->root, memory_order_acquire);
		if (x == AX_OK && !ax_guard_valid(&root))
			x = AX_STALE;
		if (x == AX_OK && page)
		{
			height = (int) atomic_load_explicit(&s->height, memory_order_relaxed);
			x = check_below(&w, page, &g, -1);
		}
		if (x == AX_BUSY && busy++ == CHECK_BUSY)
			return x;
	}
	memset(out, 0, sizeof(*out));
	*ok = !w.bad;
	out->entries = w.entries;
	out->leaves = w.leaves;
	out->n4 = w.inner;
	out->inner_nodes = w.inner;
	out->height = height;
	return AX_OK;
}
