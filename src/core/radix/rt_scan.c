/*
 * rt_scan.c
 *	  Scans under optimistic latch coupling.
 *
 * src/README.md: The tree
 */
#define ROWEX false
#include "rt_scan_impl.h"

ax_status
rt_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	return scan_batch(cx, s, b);
}
