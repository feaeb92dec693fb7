/*
 * ax_coarse.h
 *	  The latch of a whole tree: shared by readers, or a writer's alone.
 *
 * src/core/base/README.md: Latches, restarts, waiting
 */
#ifndef AX_COARSE_H
#define AX_COARSE_H

#include "ax_internal.h"

/*
 * Take the latch for a reader.  Not beside a writer, nor past one that waits, but for
 * a reader that has waited through several naps.
 *
 * Returns: AX_OK, or AX_BUSY after 10 ms.
 */
extern ax_status ax_coarse_lock_shared(ax_ctx *cx, ax_store *s);

/*
 * Take the latch for a writer, which keeps new readers out while it waits.
 *
 * Returns: AX_OK, or AX_BUSY after 10 ms.
 */
extern ax_status ax_coarse_lock_exclusive(ax_ctx *cx, ax_store *s);

/* Give a reader's latch back. */
extern void ax_coarse_unlock_shared(ax_ctx *cx, ax_store *s);

/* Give a writer's latch back; marks of those that wait stay. */
extern void ax_coarse_unlock_exclusive(ax_ctx *cx, ax_store *s);

/* Give the latch back, as it was taken: write, or not. */
extern void ax_coarse_unlock(ax_ctx *cx, ax_store *s, bool write);

/* Is it open to a reader, or (write) to a writer?  Takes nothing. */
extern bool ax_coarse_open(ax_store *s, bool write);

/* Take it if it is open, and wait for nobody. */
extern bool ax_coarse_try(ax_ctx *cx, ax_store *s, bool write);

/*
 * A hint for elision.  now: somebody found the latch taken, or others at its line.
 * Else the mark is taken away, and whoever finds the latch taken renews it.
 */
extern void ax_coarse_contended(ax_store *s, bool now);

#endif							/* AX_COARSE_H */
