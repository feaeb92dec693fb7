/*
 * art_scan.c
 *	  Scans under optimistic latch coupling.
 */
#define ROWEX false
#include "art_scan_impl.h"

ax_status
art_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	return scan_batch(cx, s, b);
}
