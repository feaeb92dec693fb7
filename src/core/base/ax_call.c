/*
 * ax_call.c
 *	  What calls of the face and engines have in common: their end, when memory
 *	  may come back; a look-up by a scan.
 *
 * src/core/base/README.md: Memory and epochs
 */
#include "ax_call.h"

#define NOMEM_EPOCHS	6
#define NOMEM_NAPS		10		/* of a millisecond, then AX_BUSY */

/*
 * With more processes than processors those inside an epoch may be off the
 * processor for many milliseconds.  All that is retired meanwhile waits for them.
 * So memory has run out only when it still has after everything that was retired at
 * the first failure has expired.  That takes two advances, and some more for the
 * others who try at the same time.
 */
ax_status
ax_try_for_memory(ax_ctx *cx, int *tries)
{
	ax_ctx_body *b = ax_body(cx);
	uint64_t	e = atomic_load(&b->area->epoch);
	uint64_t	freed;
	ax_pending	left;
	bool		pending;
	const bool	first = *tries == 0;	/* of this call */

	if (b->nomem_epoch == 0 || (first && !b->nomem_busy))
		b->nomem_epoch = e;
	b->nomem_busy = false;
	*tries += first;
	freed = ax_housekeep(cx, &left);
	pending = left != AX_PENDING_NOTHING || atomic_load(&b->area->freeing) > 0;
	/* a call that was to go on with another one may come late, and has not tried yet */
	if ((!freed && !pending) || (e >= b->nomem_epoch + NOMEM_EPOCHS && !(first && freed)))
	{
		b->nomem_epoch = 0;
		return AX_NOMEM;
	}
	if (!freed)
	{
		uint32_t	nobody = 0;

		if ((*tries)++ > NOMEM_NAPS)
		{
			b->nomem_busy = true;
			return AX_BUSY;
		}
		if (b->port->wait_begin)
			b->port->wait_begin();
		b->port->park(&nobody, 0, 1000);
		if (b->port->wait_end)
			b->port->wait_end();
	}
	return AX_OK;
}

void
ax_begin_anew(ax_ctx *cx)
{
	ax_body(cx)->nomem_epoch = 0;
}

bool
ax_again(ax_ctx *cx, ax_status *r, int *tries)
{
	ax_ctx_body *b = ax_body(cx);
	bool		injected = b->alloc_injected;

	if (*r == AX_NOMEM && b->alloc_busy)
		*r = AX_BUSY;			/* no latch to be had is no lack of memory */
	else if (*r == AX_BUSY && b->limbo_short)
		*r = AX_NOMEM;			/* no room for retire records is one */
	b->alloc_busy = b->alloc_injected = b->limbo_short = false;
	if (*r == AX_BUSY)
	{
		b->nomem_busy = true;
		ax_nap(cx, 0);			/* it may have been said at once: let others go on */
	}
	else if (*r != AX_NOMEM)
		b->nomem_epoch = 0;
	if (*r != AX_NOMEM || injected || ax_hurry(b))
		return false;
	*r = ax_try_for_memory(cx, tries);
	return *r == AX_OK;
}

/*
 * Epoch: leaves and enters, by the same handle and generation.
 */
bool
ax_breathe(ax_ctx *cx, ax_store *s)
{
	ax_tree    *t = s->tree;
	uint64_t	gen = s->gen;

	if (ax_body(cx)->latches != 0)
		return true;
	ax_leave(cx);
	AX_POINT("load.breath");
	/* a generation has one store: it is the same */
	return ax_enter(cx, t, gen, &s) == AX_OK;
}

ax_status
ax_lookup_scan(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f)
{
	uint8_t		buf[2048];
	ax_batch	b = {.max = f->max, .tids = f->tids, .lastkey = buf, .lastkey_size = sizeof(buf)};
	ax_status	x;

	b.lo.key = b.hi.key = prefix;
	b.lo.len = b.hi.len = len;
	b.hi.after = true;
	/* under the one latch already, when it is coarse */
	x = ax_inner(s)->scan(cx, s, &b);
	if (x == AX_BUFFER)
		x = AX_OK;				/* a long key: the caller's scan has the buffer */
	f->n = b.n;
	f->more = !b.exhausted;
	return x;
}
