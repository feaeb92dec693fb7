/*
 * ax_system.c
 *	  Memory of the area for the caller's own shared objects.
 *
 * src/core/base/README.md: Memory and epochs
 */
#include "ax_area.h"

void *
ax_system_alloc(ax_ctx *cx, size_t bytes)
{
	uint32_t	pages = (uint32_t) ((bytes + AX_PAGE - 1) >> AX_PAGE_SHIFT);
	void	   *p = NULL;

	if (bytes == 0 || bytes > (size_t) AX_MAP_LEN << AX_PAGE_SHIFT)
		return NULL;

	/* what is still dying may be enough; each round frees what it can */
	for (int tries = 0; tries < 4; tries++)
	{
		ax_pending	left;

		p = ax_pages_take(cx, pages, AX_OVERHEAD, 0, false, NULL);
		if (p)
			break;
		left = ax_poll(cx);
		if (left == AX_PENDING_NOTHING && tries > 0)
			break;
	}

	/* a little of the reserve is worth it: it only ever takes single pages */
	if (!p && pages == 1)
		p = ax_pages_take(cx, pages, AX_OVERHEAD, 0, true, NULL);
	if (p)
		memset(p, 0, (size_t) pages << AX_PAGE_SHIFT);
	return p;
}
