/*
 * ax_coarse.c
 *	  sync = coarse: one latch for the whole tree, shared by its readers.
 *
 * The simplest engine, against which the others are tested: a writer has the
 * tree to itself, readers share it.  What runs under the latch is the structure's
 * own code, whose latches nobody contends for.
 *
 * The latch is one word: 0 WRITER, 1 WANTED (a writer waits: no new readers, or
 * it would starve), 2 HUNGRY (a reader has waited while writers followed one
 * another: the next turn is such a reader's), the number of readers above.  Nobody
 * is woken: a waiter spins for about two microseconds, then naps, longer each time,
 * for at most 10 ms in all, upon which the call is BUSY.
 *
 * A hungry reader goes in although a writer waits, but not beside other readers,
 * or these could follow one another, too.  It naps briefly, for the writers wait;
 * but only for their first naps, about a millisecond: it may not be running.
 */
#include "ax_area.h"

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

static ax_status
lock_shared(ax_ctx *cx, ax_store *s)
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

/* Is the latch open to a reader, to a writer? */
bool
ax_coarse_open(ax_store *s, bool write)
{
	return (atomic_load_explicit(&s->coarse, memory_order_acquire) & (write ? ~WANTED : WRITER)) == 0;
}

/* Take it if it is open. */
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

static void
unlock_shared(ax_ctx *cx, ax_store *s)
{
	ax_map_coarse_given(&s->coarse, false);
	atomic_fetch_sub_explicit(&s->coarse, READER, memory_order_release);
	ax_body(cx)->latches--;
}

static ax_status
lock_exclusive(ax_ctx *cx, ax_store *s)
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

static void
unlock_exclusive(ax_ctx *cx, ax_store *s)
{
	ax_map_coarse_given(&s->coarse, true);
	/* WANTED and HUNGRY stay */
	atomic_fetch_and_explicit(&s->coarse, ~WRITER, memory_order_release);
	ax_body(cx)->latches--;
}

/* See ax_elide.h. */
void
ax_coarse_unlock(ax_ctx *cx, ax_store *s, bool write)
{
	if (write)
		unlock_exclusive(cx, s);
	else
		unlock_shared(cx, s);
}

/*
 * Each call of the inner engine, under the latch, or, where elision is on, first as
 * a section under no latch that others see; key: some key on its way, to touch what
 * it will.  That is a function of its own, so that the usual way does not pay for it.
 */
#define SHARED(call) \
	r = lock_shared(cx, s); \
	if (r == AX_OK) \
	{ \
		r = s->engine->inner->call; \
		unlock_shared(cx, s); \
	} \
	return r

#define EXCLUSIVE(call) \
	r = lock_exclusive(cx, s); \
	if (r == AX_OK) \
	{ \
		r = s->engine->inner->call; \
		unlock_exclusive(cx, s); \
	} \
	return r

#define COARSE(name, PARAMETERS, ARGUMENTS, LATCHED, write, key, len) \
static __attribute__((noinline)) ax_status \
elided_##name PARAMETERS \
{ \
	ax_status	r; \
\
	if (ax_elide_coarse(cx, s, write, __builtin_frame_address(0), key, len)) \
	{ \
		r = s->engine->inner->name ARGUMENTS; \
		ax_elide_coarse_end(cx, s); \
		return r; \
	} \
	LATCHED(name ARGUMENTS); \
} \
\
static ax_status \
coarse_##name PARAMETERS \
{ \
	ax_status	r; \
\
	if (ax_unlikely(ax_body(cx)->elide.on)) \
		return elided_##name ARGUMENTS; \
	LATCHED(name ARGUMENTS); \
}

COARSE(insert, (ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len),
	   (cx, s, key, len), EXCLUSIVE, true, key, len)
COARSE(remove, (ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len),
	   (cx, s, key, len), EXCLUSIVE, true, key, len)
COARSE(contains, (ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len),
	   (cx, s, key, len), SHARED, false, key, len)
COARSE(lookup, (ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
				uint64_t *tids, uint32_t max, uint32_t *n, bool *more),
	   (cx, s, prefix, len, tids, max, n, more), SHARED, false, NULL, 0)
COARSE(scan, (ax_ctx *cx, ax_store *s, ax_batch *b), (cx, s, b), SHARED, false, NULL, 0)
/* What a section by hand that was undone said is not put back, and BUSY says nothing. */
#define EXCLUSIVE_SORTED(call) \
	*done = *added = 0; \
	EXCLUSIVE(call)

COARSE(insert_sorted, (ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
					   const uint32_t *lens, uint32_t len, uint64_t n,
					   uint64_t *done, uint64_t *added),
	   (cx, s, keys, lens, len, n, done, added), EXCLUSIVE_SORTED, true, keys[0],
	   lens ? lens[0] : len)

/* Too many lines for a transaction. */
static ax_status
coarse_lookup_many(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
				   const uint32_t *lens, uint32_t len, uint32_t n, uint64_t *tids,
				   uint32_t max, uint32_t *counts, uint32_t *done)
{
	ax_status	r;

	SHARED(lookup_many(cx, s, keys, lens, len, n, tids, max, counts, done));
}

/* A whole load is too much for a transaction. */
static ax_status
coarse_load(ax_ctx *cx, ax_store *s, const uint8_t *const *keys, const uint32_t *lens,
			uint32_t len, uint64_t n, int fill)
{
	ax_status	r;

	EXCLUSIVE(load(cx, s, keys, lens, len, n, fill));
}

static ax_status
coarse_compact(ax_ctx *cx, ax_store *s, ax_compaction *c)
{
	ax_status	r;

	EXCLUSIVE(compact(cx, s, c));
}

/*
 * It looks at some leaves a call, so it can have the latch meanwhile, and must: what a
 * section changed can be undone, latch words and all, and the check of a B+-tree may
 * latch pages.  Too much for a transaction.
 */
static ax_status
coarse_check(ax_ctx *cx, ax_store *s, ax_checking *c)
{
	ax_status	r;

	SHARED(check(cx, s, c));
}

#define ENGINE(name, of) \
const ax_engine ax_engine_##name##_coarse = { \
	.structure = of, \
	.sync = "coarse", \
	.kind = AX_SYNC_COARSE, \
	.inner = &ax_engine_##name##_olc, \
	.insert = coarse_insert, \
	.remove = coarse_remove, \
	.contains = coarse_contains, \
	.lookup = coarse_lookup, \
	.lookup_many = coarse_lookup_many, \
	.scan = coarse_scan, \
	.load = coarse_load, \
	.insert_sorted = coarse_insert_sorted, \
	.compact = coarse_compact, \
	.check = coarse_check \
}

ENGINE(art, "art");
ENGINE(btree, "btree");
