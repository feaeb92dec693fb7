/*
 * test_latch.c
 *	  The latch word: versions, waiting, exclusion, wake-ups.
 */
#include "core/base/ax_area.h"
#include "tap.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define SLOTS 80
#define AREA (16u << 20)

static ax_area *area;

typedef struct shared
{
	_Alignas(64) ax_word w;
	_Alignas(64) ax_word w2;
	_Alignas(64) _Atomic uint64_t a;
	_Alignas(64) _Atomic uint64_t b;
	uint64_t	plain;			/* guarded by w */
	_Atomic uint64_t busy;
	_Atomic uint64_t torn;
	_Atomic int step;
	_Atomic int stop;
	uint64_t	rounds;
} shared;

static shared *sh;

static uint64_t
now_ns(void)
{
	return ax_port_default.now_ns();
}

static void
nap(long us)
{
	struct timespec ts = {0, us * 1000};

	nanosleep(&ts, NULL);
}

static void
test_words(void)
{
	ax_ctx		cx;
	uint64_t	v;
	ax_word    *w = &sh->w;

	ax_attach(&cx, area, 0, 1, &ax_port_default);
	atomic_store(w, AX_WORD_INIT);
	ok(ax_word_trylock(&cx, w, AX_WORD_INIT), "an open word can be locked");
	ok(ax_latches_held(&cx) == 1, "and is counted");
	ok(atomic_load(w) == (AX_WORD_INIT | AX_LOCKED | AX_CLOSED),
	   "locked, and closed to readers");
	ok(!ax_word_trylock(&cx, w, atomic_load(w)), "not twice");
	ax_word_unlock(&cx, w, false);
	ok(atomic_load(w) == AX_WORD_INIT, "nothing changed: the old version");
	ok(ax_word_valid(w, AX_WORD_INIT), "and readers do not notice");
	ok(ax_word_trylock(&cx, w, AX_WORD_INIT), "lock again");
	ax_word_unlock(&cx, w, true);
	ok(atomic_load(w) == AX_WORD_INIT + AX_VERSION_ONE, "changed: the next version");
	ok(!ax_word_valid(w, AX_WORD_INIT), "and readers notice");
	ok(!ax_word_trylock(&cx, w, AX_WORD_INIT), "an old sample does not lock");
	ok(ax_word_lock(&cx, w, &v) == AX_OK && v == AX_WORD_INIT + AX_VERSION_ONE,
	   "the pessimistic way");
	ax_word_unlock_obsolete(&cx, w);
	ok((atomic_load(w) & (AX_FLAGS)) == AX_OBSOLETE,
	   "obsolete is neither locked nor closed");
	ok(ax_word_lock(&cx, w, &v) == AX_STALE, "obsolete is final for lockers");
	ok(ax_word_wait(&cx, w, &v) == AX_OK && (v & AX_OBSOLETE), "and no reason to wait");
	ok(ax_word_sample(&cx, w, &v) == AX_STALE, "nor is it sampled");
	ok(ax_latches_held(&cx) == 0, "nothing held at the end");

	/* beside a holder who has not begun to write (the queue: see test_queue.c) */
	atomic_store(w, AX_WORD_INIT | AX_LOCKED);
	ok(ax_word_wait(&cx, w, &v) == AX_OK && (v & AX_LOCKED), "held, not closed: readers do not wait");
	ok(ax_word_sample(&cx, w, &v) == AX_OK && ax_word_valid(w, v), "and read");
	ax_word_close(w);
	ok(!ax_word_valid(w, v), "closed: what they read is not valid");
	atomic_store(w, AX_WORD_INIT);
	ok(ax_word_valid(w, v), "open again, nothing changed: it is");
	ok(!ax_word_trylock(&cx, w, v), "but is no ground for an upgrade: the latch was held then");

	/* the version wraps into nothing else */
	atomic_store(w, ~(AX_VERSION_ONE - 1));
	ok(ax_word_lock(&cx, w, &v) == AX_OK, "lock at the last version");
	ax_word_unlock(&cx, w, true);
	ok((atomic_load(w) & (AX_VERSION_ONE - 1)) == 0, "the version wraps by itself");
	ax_detach(&cx);
}

/* ---- waiting for a holder ---- */

static void
holder(void *arg, int i)
{
	ax_ctx		cx;
	uint64_t	v;

	ax_attach(&cx, area, i, 1 + i, &ax_port_default);
	if (i == 0)
	{
		ax_word_lock(&cx, &sh->w, &v);
		atomic_store(&sh->step, 1);
		while (atomic_load(&sh->step) < 4)
			nap(1000);			/* until the others gave up */
		ax_word_unlock(&cx, &sh->w, true);
	}
	else
	{
		uint64_t	t0;
		uint64_t	t;
		ax_status	r;

		while (atomic_load(&sh->step) < 1)
			sched_yield();
		t0 = now_ns();
		v = ax_word_read(&sh->w);
		r = i == 1 ? ax_word_wait(&cx, &sh->w, &v) : i == 2 ? ax_word_lock(&cx, &sh->w, &v) :
			ax_word_sample(&cx, &sh->w, &v);
		t = now_ns() - t0;
		atomic_fetch_add(&sh->step, 1);
		ok(r == AX_BUSY, "%s gives up", i == 1 ? "ax_word_wait" : i == 2 ? "ax_word_lock" : "ax_word_sample");
		ok(t > 9000000 && t < 500000000, "after about 10 ms (%.1f ms)", (double) t / 1e6);
		ok(ax_latches_held(&cx) == 0, "with nothing held");
		while (ax_word_wait(&cx, &sh->w, &v) == AX_BUSY)
			;
		ok(!(v & AX_LOCKED), "and gets it in the end");
	}
	ax_detach(&cx);
}

/* The holder lets go between the waiter's CAS of WAITERS and its sleep. */
static void
hook_park(const char *name)
{
	if (strcmp(name, "latch:park") == 0 && atomic_load(&sh->step) == 1)
	{
		atomic_store(&sh->step, 2);
		while (atomic_load(&sh->step) == 2)
			sched_yield();
	}
}

static void
lost_wake(void *arg, int i)
{
	ax_ctx		cx;
	uint64_t	v;

	ax_attach(&cx, area, i, 1 + i, &ax_port_default);
	if (i == 0)
	{
		ax_word_lock(&cx, &sh->w, &v);
		atomic_store(&sh->step, 1);
		while (atomic_load(&sh->step) == 1)
			sched_yield();
		ax_word_unlock(&cx, &sh->w, false);
		ok(!(atomic_load(&sh->w) & AX_WAITERS), "unlock takes WAITERS away");
		atomic_store(&sh->step, 3);
	}
	else
	{
		ax_status	r;

		while (atomic_load(&sh->step) < 1)
			sched_yield();
		/* off its processor for long, it may be too late to go to sleep at all */
		do
			r = ax_word_wait(&cx, &sh->w, &v);
		while (r == AX_BUSY && atomic_load(&sh->step) == 1);
		ok(r == AX_OK, "a word opened just before the sleep is not slept on");
	}
	ax_detach(&cx);
}

/* ---- waking ---- */

static _Atomic uint64_t opened_at;
static uint64_t slowest_wake,
			quickest_wake = UINT64_MAX;

/* Whoever sleeps on the word and is not woken sleeps a second, whatever it asked for. */
static void
park_long(uint32_t *word, uint32_t expected, uint32_t us)
{
	ax_port_default.park(word, expected, (void *) word == (void *) &sh->w ? 1000000 : us);
}

/* i == 1 sleeps until the holder, who waits for that, lets go. */
static void
wake(void *arg, int i)
{
	ax_ctx		cx;
	uint64_t	v;
	ax_port		port = ax_port_default;

	port.park = park_long;
	ax_attach(&cx, area, i, 1 + i, &port);
	for (int n = 0; n < 10; n++)
	{
		if (i == 0)
		{
			ax_word_lock(&cx, &sh->w, &v);
			atomic_store(&sh->step, 2 * n + 1);
			while (!(atomic_load(&sh->w) & AX_WAITERS))
				sched_yield();
			nap(500);
			atomic_store(&opened_at, now_ns());
			ax_word_unlock(&cx, &sh->w, true);
			while (atomic_load(&sh->step) != 2 * n + 2)
				sched_yield();
		}
		else
		{
			uint64_t	t;

			while (atomic_load(&sh->step) != 2 * n + 1)
				sched_yield();
			while (ax_word_wait(&cx, &sh->w, &v) != AX_OK)
				;
			t = now_ns() - atomic_load(&opened_at);
			quickest_wake = t < quickest_wake ? t : quickest_wake;
			slowest_wake = t > slowest_wake ? t : slowest_wake;
			atomic_store(&sh->step, 2 * n + 2);
		}
	}
	ax_detach(&cx);
}

/* ---- exclusion ---- */

static void
counter(void *arg, int i)
{
	ax_ctx		cx;
	uint64_t	v;

	ax_attach(&cx, area, i, 1 + i, &ax_port_default);
	for (uint64_t n = 0; n < sh->rounds; n++)
	{
		while (ax_word_lock(&cx, &sh->w, &v) != AX_OK)
			atomic_fetch_add(&sh->busy, 1);
		sh->plain++;
		if (n % 64 == 0)
			sched_yield();		/* be descheduled with the latch held */
		ax_word_unlock(&cx, &sh->w, true);
	}
	ax_detach(&cx);
}

/* Two words under one latch; readers see both of one moment, or retry. */
static void
seqlock(void *arg, int i)
{
	ax_ctx		cx;

	ax_attach(&cx, area, i, 1 + i, &ax_port_default);
	if (i < 2)
	{
		for (uint64_t n = 0; n < sh->rounds; n++)
		{
			uint64_t	v = ax_word_read(&sh->w);
			uint64_t	x;

			if (!ax_word_trylock(&cx, &sh->w, v))
				continue;
			x = atomic_load_explicit(&sh->a, memory_order_relaxed) + 1;
			atomic_store_explicit(&sh->a, x, memory_order_relaxed);
			atomic_store_explicit(&sh->b, x, memory_order_relaxed);
			ax_word_unlock(&cx, &sh->w, true);
		}
		atomic_fetch_add(&sh->stop, 1);
	}
	else
		while (atomic_load(&sh->stop) < 2)
		{
			uint64_t	v;
			uint64_t	x,
						y;

			if (ax_word_wait(&cx, &sh->w, &v) != AX_OK)
				continue;
			x = atomic_load_explicit(&sh->a, memory_order_relaxed);
			y = atomic_load_explicit(&sh->b, memory_order_relaxed);
			if (ax_word_valid(&sh->w, v) && x != y)
				atomic_fetch_add(&sh->torn, 1);
		}
	ax_detach(&cx);
}

/* ---- statistics ---- */

static void
stats(void *arg, int i)
{
	ax_tree    *t = arg;
	ax_ctx		cx,
				look;			/* with no latch held */
	uint64_t	v;
	ax_tree_info info;

	ax_attach(&cx, area, 10 + i, 1 + i, &ax_port_default);
	if (i == 0)
	{
		ax_word_lock(&cx, &sh->w, &v);
		atomic_store(&sh->step, 1);
		while (atomic_load(&sh->step) == 1)
			sched_yield();
		/* hold it until the other one sleeps, however long it waits for a processor */
		ax_attach(&look, area, 12, 3, &ax_port_default);
		for (int n = 0; n < 10000; n++)
		{
			nap(1000);
			if (ax_info(&look, t, atomic_load(&t->gen), &info) == AX_OK && info.parks > 0)
				break;
		}
		ax_detach(&look);
		ax_word_unlock(&cx, &sh->w, true);
	}
	else
	{
		ax_store   *st;
		ax_status	r;

		while (atomic_load(&sh->step) < 1)
			sched_yield();
		ok(ax_enter(&cx, t, atomic_load(&t->gen), &st) == AX_OK, "inside");
		atomic_store(&sh->step, 2);
		do
			r = ax_word_wait(&cx, &sh->w, &v);
		while (r == AX_BUSY);
		ok(r == AX_OK, "waited");
		ax_leave(&cx);
		ax_info(&cx, t, atomic_load(&t->gen), &info);
		ok(info.latch_waits >= 1, "the wait is counted");
		ok(info.parks >= 1, "so is the sleep");
	}
	ax_detach(&cx);
}

int
main(void)
{
	ax_ctx		cx;
	ax_tree    *t;
	uint64_t	gen;

#ifdef AX_ASAN
	ax_poisoning = false;		/* part of this forks: see test_epoch.c */
#endif
	area = tap_area(AREA, SLOTS, 0);
	sh = tap_shared(sizeof(*sh));

	test_words();

	atomic_store(&sh->w, AX_WORD_INIT);
	tap_threads(4, holder, NULL);

	atomic_store(&sh->w, AX_WORD_INIT);
	atomic_store(&sh->step, 0);
	tap_point_hook = hook_park;
	tap_threads(2, lost_wake, NULL);
	tap_point_hook = NULL;

	atomic_store(&sh->w, AX_WORD_INIT);
	atomic_store(&sh->step, 0);
	tap_threads(2, wake, NULL);
	ok(quickest_wake < 500000000, "a sleeper is woken, long before it would wake by itself (%.3f to %.3f ms)",
	   (double) quickest_wake / 1e6, (double) slowest_wake / 1e6);
	ok(!(atomic_load(&sh->w) & AX_FLAGS), "and no mark of it is left");

	atomic_store(&sh->w, AX_WORD_INIT);
	sh->rounds = tap_scaled(4000);
	sh->plain = 0;
	tap_threads(64, counter, NULL);
	ok(sh->plain == 64 * sh->rounds, "64 threads: no increment lost (%llu of %llu, %llu times busy)",
	   (unsigned long long) sh->plain, (unsigned long long) (64 * sh->rounds),
	   (unsigned long long) atomic_load(&sh->busy));

	sh->plain = 0;
	ok(tap_forks(8, counter, NULL), "8 processes ended well");
	ok(sh->plain == 8 * sh->rounds, "8 processes: no increment lost");

	sh->rounds = tap_scaled(2000000);
	tap_threads(5, seqlock, NULL);
	ok(atomic_load(&sh->torn) == 0, "no torn pair was ever valid");
	ok(atomic_load(&sh->a) == atomic_load(&sh->b) && atomic_load(&sh->a) > 0, "writers agreed");

	ax_attach(&cx, area, 0, 1, &ax_port_default);
	t = ax_tree_alloc(&cx);
	ok(t && ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen) == AX_OK, "a tree");
	atomic_store(&sh->step, 0);
	atomic_store(&sh->w, AX_WORD_INIT);
	tap_threads(2, stats, t);
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx), "quiescent");
	ax_detach(&cx);
	return tap_done();
}
