/*
 * ax_batch.h
 *	  How every structure begins and ends a batch of a scan (ax_batch in ax.h): in
 *	  passes, each of which starts over by value.
 *
 * src/core/elide/README.md: Guards
 */
#ifndef AX_BATCH_H
#define AX_BATCH_H

#include "ax_guard.h"

/* How a step of a pass, or the pass, ended. */
typedef enum ax_step
{
	AX_SCAN_GO = AX_OK,				/* go on */
	AX_SCAN_BUSY = AX_BUSY,
	AX_SCAN_LOST = AX_STALE,			/* something changed: start over, or end early */
	AX_SCAN_BUFFER = AX_BUFFER,		/* not even one entry fits */
	AX_SCAN_END = 100,				/* exhausted */
	AX_SCAN_FULL,						/* the batch is full, or ends early */
	AX_SCAN_SKIP,						/* nothing here: on in the parent */
	AX_SCAN_SEEK						/* progress was made: another pass, from the new position */
} ax_step;

/*
 * An empty batch; from where a pass starts, and to where it goes.  False: the batch is to
 * have no entries, and that is the answer, AX_OK.
 */
static inline bool
ax_batch_begin(ax_batch *b, ax_bound *pos, const ax_bound **end)
{
	*pos = b->backward ? b->hi : b->lo;
	*end = b->backward ? &b->lo : &b->hi;
	b->n = 0;
	b->exhausted = false;
	b->need_bytes = 0;
	b->lastlen = 0;
	return b->max > 0;
}

/*
 * Fill the batch: pass after pass from where the scan is.  pass: a function, which
 * is given the scan, and whether it is to go with latches.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 * Returns: AX_OK with what there is; AX_BUSY only if nothing was copied; AX_BUFFER if not
 * even one entry fits.
 */
__attribute__((always_inline)) static inline ax_status
ax_batch_fill(ax_ctx *cx, ax_store *s, ax_batch *b, ax_step (*pass) (void *scan, bool pess),
			  void *scan)
{
	for (int tries = 0;;)
		switch (pass(scan, ax_pessimistic(tries)))
		{
			case AX_SCAN_END:
				b->exhausted = true;
				return AX_OK;
			case AX_SCAN_FULL:
				return AX_OK;
			case AX_SCAN_BUFFER:
				return AX_BUFFER;
			case AX_SCAN_BUSY:
				return b->n ? AX_OK : AX_BUSY;
			case AX_SCAN_SEEK:
				continue;
			default:
				if (b->n)
					return AX_OK;
				(void) ax_start_over(cx, s, AX_STALE, &tries);
		}
}

#endif							/* AX_BATCH_H */
