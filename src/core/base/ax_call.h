/*
 * ax_call.h
 *	  The end of a call of the face that could change a tree.
 *
 * src/core/base/README.md: Memory and epochs
 */
#ifndef AX_CALL_H
#define AX_CALL_H

#include "ax_area.h"

#define AX_RECLAIM_OBJS		64	/* retired since the last look */
#define AX_RECLAIM_BYTES	65536

/*
 * After a call that found no memory: housekeeping, and perhaps a nap of a millisecond.
 * *tries: 0 at first, and of one call.
 *
 * Epoch: outside.
 * Latches: none held.
 * Returns: AX_OK when another try is worth it, AX_BUSY when it will be in a moment,
 * AX_NOMEM when there really is no memory.
 */
extern ax_status ax_try_for_memory(ax_ctx *cx, int *tries);

/*
 * The rare part of ax_finish(): what an answer means that was not AX_OK, and whether
 * to try again.
 *
 * Epoch: outside.
 * Returns: true to do the call again; else *r is the answer.
 */
extern bool ax_again(ax_ctx *cx, ax_status *r, int *tries);

/*
 * End a call that could change the tree: leave the epoch, then housekeeping.
 * True: out of memory, but something was pending that may help; do it again.
 *
 * Epoch: outside on return.
 * Latches: none may be held, nor a claim.
 */
static inline bool
ax_finish(ax_ctx *cx, ax_status *r, int *tries)
{
	ax_ctx_body *b = ax_body(cx);

	if (ax_likely(ax_inside(b)))
		ax_leave(cx);
	AX_ENSURE(b, (b->latches | b->claims) == 0);
	if (ax_unlikely(b->retired_since >= AX_RECLAIM_OBJS ||
					b->retired_bytes_since >= AX_RECLAIM_BYTES))
		ax_reclaim(cx);
	if (ax_unlikely(*r == AX_NOMEM || *r == AX_BUSY || b->nomem_epoch || b->limbo_short))
		return ax_again(cx, r, tries);
	return false;
}

/* A load makes so many keys' nodes in one epoch. */
#define AX_BREATH_KEYS	16384

/*
 * For a load, of which nobody else can see anything yet.  It leaves the epoch and enters again, so
 * that what others retired comes back to them.  False: the store was closed, and all that the load
 * made is gone with it.  The load touches nothing any more, and says AX_STALE.
 *
 * Epoch: inside on entry; on return inside, or on false outside.
 * Latches: under one, which is the coarse one, it does nothing.
 */
extern bool ax_breathe(ax_ctx *cx, ax_store *s);

/*
 * For engines: a look-up by one batch of the inner engine's scan, for a prefix that
 * goes on into the TIDs.
 *
 * Epoch: inside.
 * Returns: as ax_lookup(); f->more when that was not all of it.
 */
extern ax_status ax_lookup_scan(ax_ctx *cx, ax_store *s, const uint8_t *prefix,
								uint32_t len, ax_found *f);

#endif							/* AX_CALL_H */
