/*
 * ax_latch.c
 *	  The slow side of the latch word: waiting and waking.
 *
 * Latches are held for nanoseconds, but their holders are processes that the
 * kernel may take off the processor at any instruction.  So a waiter spins for
 * about two microseconds, gives way three times (the holder may be queued
 * behind us on this very processor), and then sleeps on the word.  Whoever is
 * awake when the word opens takes it: no grant is ever handed to a sleeper,
 * which would make the rest wait for the scheduler.
 */
#include "ax_area.h"

#define WAIT_NS		UINT64_C(10000000)	/* then AX_BUSY */
#define WAIT_YIELDS 3

/* The half of the word that holds LOCKED, WAITERS and the owner. */
static inline uint32_t *
futex_half(ax_word *w)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (uint32_t *) (void *) w + 1;
#else
	return (uint32_t *) (void *) w;
#endif
}

/*
 * Wait until the word is not LOCKED.  *deadline is 0 at first; the caller who
 * waits several times for one purpose passes the same one again.  False when
 * it has passed.
 */
static bool
wait_unlocked(ax_ctx *cx, ax_word *w, uint64_t *v, uint64_t *deadline)
{
	ax_ctx_body *b = ax_body(cx);
	const ax_port *port = b->port;
	uint64_t	cur = ax_word_read(w);

	AX_ASSERT(b, !(cur & AX_LOCKED) ||
			  ((cur & AX_OWNER_MASK) >> AX_OWNER_SHIFT) != (uint64_t) (b->slotno + 1));

	for (uint32_t i = 0; i < b->spins; i++)
	{
		if (!(cur & AX_LOCKED))
			goto open;
		ax_pause();
		cur = ax_word_read(w);
	}
	if (b->cur && ax_inside(b))
		AX_COUNT(cx, b->cur, latch_waits, 1);
	if (*deadline == 0)
		*deadline = port->now_ns() + WAIT_NS;
	for (int i = 0; i < WAIT_YIELDS; i++)
	{
		if (!(cur & AX_LOCKED))
			goto open;
		port->yield();
		cur = ax_word_read(w);
	}
	while (cur & AX_LOCKED)
	{
		uint64_t	now = port->now_ns();

		if (now >= *deadline)
			return false;

		/*
		 * WAITERS only ever joins LOCKED, in one CAS, and every unlock is an
		 * exchange: the one that takes LOCKED away sees WAITERS and wakes.
		 * If the word changes before we sleep, park returns at once: a new
		 * holder's word has another owner or lacks WAITERS.
		 */
		if (!(cur & AX_WAITERS))
		{
			if (!atomic_compare_exchange_strong_explicit(w, &cur, cur | AX_WAITERS,
														 memory_order_acquire,
														 memory_order_acquire))
				continue;
			cur |= AX_WAITERS;
		}
		AX_POINT("latch:park");
		if (b->cur && ax_inside(b))
			AX_COUNT(cx, b->cur, parks, 1);
		if (port->wait_begin)
			port->wait_begin();
		port->park(futex_half(w), (uint32_t) cur,
				   (uint32_t) ((*deadline - now) / 1000 + 1));
		if (port->wait_end)
			port->wait_end();
		cur = ax_word_read(w);
	}
open:
	*v = cur;
	return true;
}

/* See ax_latch.h. */
ax_status
ax_word_wait(ax_ctx *cx, ax_word *w, uint64_t *v)
{
	uint64_t	deadline = 0;

	return wait_unlocked(cx, w, v, &deadline) ? AX_OK : AX_BUSY;
}

/* See ax_latch.h.  *v: the word as it was before. */
ax_status
ax_word_lock(ax_ctx *cx, ax_word *w, uint64_t *v)
{
	uint64_t	deadline = 0;
	uint64_t	cur = ax_word_read(w);

	for (;;)
	{
		if (cur & AX_OBSOLETE)
			return AX_STALE;
		if (!(cur & AX_LOCKED))
		{
			if (ax_word_trylock(cx, w, cur))
			{
				*v = cur;
				return AX_OK;
			}
			cur = ax_word_read(w);	/* somebody was faster */
			continue;
		}
		if (!wait_unlocked(cx, w, &cur, &deadline))
			return AX_BUSY;
	}
}

void
ax_word_wake(ax_ctx *cx, ax_word *w)
{
	ax_body(cx)->port->unpark_all(futex_half(w));
}

/*
 * The arena's own latches: never obsolete, and a failure to get one is no
 * reason to fail for good.  Tries for about "ms" milliseconds, 0: until it has
 * it (giving memory back cannot be put off).
 */
bool
ax_latch_arena(ax_ctx *cx, ax_word *w, int ms)
{
	uint64_t	v;

	for (int i = 0; ms == 0 || i < ms; i += 10)
	{
		if (ax_likely(ax_word_lock(cx, w, &v) == AX_OK))
			return true;
	}
	return false;
}
