/*
 * ax_coarse.c
 *	  The latch of a whole tree, shared by its readers.
 *
 * The latch is one word: 0 WRITER, 1 WANTED, 2 HUNGRY, the number of readers
 * above.  WANTED: a writer waits; no new readers, or it would starve.  HUNGRY:
 * a reader has waited while writers followed one another, and the next turn is
 * such a reader's.  Nobody is woken.  A waiter spins for about two microseconds,
 * then naps, longer each time.  After at most 10 ms in all the call is BUSY.
 *
 * A process that finds it taken, or others at its line, says so.  Then calls are tried
 * without it, where the processor has transactions (ax_elide.c).
 *
 * A hungry reader goes in although a writer waits, but not beside other readers,
 * or these could follow one another, too.  It naps briefly, for the writers wait;
 * but only for their first naps, about a millisecond: it may not be running.
 *
 * src/core/base/README.md: Latches, restarts, waiting
 */
#include "ax_coarse.h"

#define WRITER	UINT64_C(1)
#define WANTED	UINT64_C(2)
#define HUNGRY	UINT64_C(4)
#define READER	UINT64_C(8)

#define HUNGRY_NAPS 3			/* a reader is, after so many */
#define YIELD_NAPS	5			/* for which a writer lets it go first */

#define WAIT_NS UINT64_C(10000000)	/* then AX_BUSY */

/* One turn of waiting, naps of which are at most this long; false when the time is over. */
static bool
wait_turn(ax_ctx *cx, ax_store *s, uint32_t *turn, uint32_t longest, uint64_t *deadline)
{
	ax_ctx_body *b = ax_body(cx);
	uint64_t	now;

	if ((*turn)++ < b->spins)
	{
		ax_pause();
		return true;
	}
	now = b->port->now_ns();
	if (*deadline == 0)
	{
		AX_COUNT(cx, s, latch_waits, 1);
		*deadline = now + WAIT_NS;
	}
	if (now >= *deadline)
		return false;
	ax_nap(cx, *turn - b->spins < longest ? *turn - b->spins : longest);
	return true;
}

void
ax_coarse_contended(ax_store *s, bool now)
{
	if (atomic_load_explicit(&s->contended, memory_order_relaxed) != now)
		atomic_store_explicit(&s->contended, now, memory_order_relaxed);
}

ax_status
ax_coarse_lock_shared(ax_ctx *cx, ax_store *s)
{
	uint32_t	turn = 0;
	uint64_t	deadline = 0;

	for (;;)
	{
		uint64_t	w = atomic_load_explicit(&s->coarse, memory_order_relaxed);

		bool		hungry = turn > ax_body(cx)->spins + HUNGRY_NAPS;

		/* whoever comes in takes the mark away: others who starve renew it */
		while (!(w & WRITER) && (!(w & WANTED) || (hungry && w < READER)))
			if (atomic_compare_exchange_weak_explicit(&s->coarse, &w, (w & ~HUNGRY) + READER,
													  memory_order_acquire,
													  memory_order_relaxed))
			{
				ax_body(cx)->latches++;
				ax_map_coarse_taken(&s->coarse, false);
				return AX_OK;
			}
			else
				ax_coarse_contended(s, true);
		ax_coarse_contended(s, true);
		if (hungry && !(w & HUNGRY))
			atomic_fetch_or_explicit(&s->coarse, HUNGRY, memory_order_relaxed);
		AX_POINT("coarse.shared_wait");
		if (!wait_turn(cx, s, &turn, hungry ? 0 : UINT32_MAX, &deadline))
		{
			atomic_fetch_and_explicit(&s->coarse, ~HUNGRY, memory_order_relaxed);
			return AX_BUSY;
		}
	}
}

bool
ax_coarse_open(ax_store *s, bool write)
{
	return (atomic_load_explicit(&s->coarse, memory_order_acquire) & (write ? ~WANTED : WRITER)) == 0;
}

bool
ax_coarse_try(ax_ctx *cx, ax_store *s, bool write)
{
	uint64_t	w = atomic_load_explicit(&s->coarse, memory_order_relaxed);

	while (!(w & (write ? ~WANTED : WRITER | WANTED)))
		if (atomic_compare_exchange_weak_explicit(&s->coarse, &w, write ? WRITER : w + READER,
												  memory_order_acquire, memory_order_relaxed))
		{
			ax_body(cx)->latches++;
			ax_map_coarse_taken(&s->coarse, write);
			return true;
		}
	return false;
}

void
ax_coarse_unlock_shared(ax_ctx *cx, ax_store *s)
{
	ax_map_coarse_given(&s->coarse, false);
	atomic_fetch_sub_explicit(&s->coarse, READER, memory_order_release);
	ax_body(cx)->latches--;
}

ax_status
ax_coarse_lock_exclusive(ax_ctx *cx, ax_store *s)
{
	uint32_t	turn = 0;
	uint64_t	deadline = 0;

	for (;;)
	{
		uint64_t	w = atomic_load_explicit(&s->coarse, memory_order_relaxed);

		while (!(w & ~(WANTED | HUNGRY)) &&
			   (!(w & HUNGRY) || turn > ax_body(cx)->spins + YIELD_NAPS))
			if (atomic_compare_exchange_weak_explicit(&s->coarse, &w, WRITER | (w & HUNGRY),
													  memory_order_acquire,
													  memory_order_relaxed))
			{
				ax_body(cx)->latches++;
				ax_map_coarse_taken(&s->coarse, true);
				return AX_OK;
			}
		ax_coarse_contended(s, true);
		/* whoever gets the latch takes the mark away: others renew it */
		if (!(w & WANTED))
			atomic_fetch_or_explicit(&s->coarse, WANTED, memory_order_relaxed);
		AX_POINT("coarse.exclusive_wait");
		if (!wait_turn(cx, s, &turn, UINT32_MAX, &deadline))
		{
			atomic_fetch_and_explicit(&s->coarse, ~WANTED, memory_order_relaxed);
			return AX_BUSY;
		}
	}
}

void
ax_coarse_unlock_exclusive(ax_ctx *cx, ax_store *s)
{
	ax_map_coarse_given(&s->coarse, true);
	/* WANTED and HUNGRY stay */
	atomic_fetch_and_explicit(&s->coarse, ~WRITER, memory_order_release);
	ax_body(cx)->latches--;
}

/*
 * Latches: gives the coarse latch back, as it was taken.
 */
void
ax_coarse_unlock(ax_ctx *cx, ax_store *s, bool write)
{
	if (write)
		ax_coarse_unlock_exclusive(cx, s);
	else
		ax_coarse_unlock_shared(cx, s);
}
