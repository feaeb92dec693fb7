/*
 * ax_tail.c
 *	  The tail buffer: inserts of rising keys go here first.
 */
#include "ax_area.h"
#include "ax_tail.h"

/* See ax.h. */
ax_status
ax_tree_set_tail(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tail_option option)
{
	return AX_OK;
}

/* See ax.h. */
ax_status
ax_tail_flush(ax_ctx *cx, ax_tree *t, uint64_t gen, bool *more)
{
	*more = false;
	return AX_OK;
}
