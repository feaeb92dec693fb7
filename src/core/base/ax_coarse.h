/*
 * ax_coarse.h
 *	  The latch of a whole tree: shared by readers, or a writer's alone.
 *
 * src/core/base/README.md: Latches, restarts, waiting
 */
#ifndef AX_COARSE_H
#define AX_COARSE_H

#include "ax_internal.h"

/* Wait for it: AX_OK, or AX_BUSY after 10 ms. */
extern ax_status ax_coarse_lock_shared(ax_ctx *cx, ax_store *s);
extern ax_status ax_coarse_lock_exclusive(ax_ctx *cx, ax_store *s);
extern void ax_coarse_unlock_shared(ax_ctx *cx, ax_store *s);
extern void ax_coarse_unlock_exclusive(ax_ctx *cx, ax_store *s);
extern void ax_coarse_unlock(ax_ctx *cx, ax_store *s, bool write);

/* Is it open to a reader, to a writer?  And: take it if it is open. */
extern bool ax_coarse_open(ax_store *s, bool write);
extern bool ax_coarse_try(ax_ctx *cx, ax_store *s, bool write);

/* Somebody found it taken, or finds out whether it still is so often. */
extern void ax_coarse_contended(ax_store *s, bool now);

#endif							/* AX_COARSE_H */
