/*
 * bench_epoch.c
 *	  What it costs to go into an epoch and out again, beside liburcu's readers.
 *
 *	  bench_epoch [rounds]
 *
 * Nanoseconds for one pair, the best of several runs, by one thread and by as
 * many as there are processors.  Ours is what every operation on an index does:
 * ax_enter_read() or ax_enter(), and ax_leave(), as they are called from the
 * dispatch.  liburcu's
 * are inlined.  Only some of them would do for processes that share an area:
 * memb and bp fence by a system call that reaches one process's threads only,
 * and under qsbr a process that rests between two calls holds everything back,
 * unless it goes offline and online each time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#define _LGPL_SOURCE 1

#include <urcu/urcu-bp.h>
#include <urcu/urcu-mb.h>
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/ax_area.h"
#include "tap.h"

#define RUNS 7
#define MAX_THREADS 16

typedef struct reader
{
	_Alignas(128) ax_ctx cx;
	double		best;
	uint64_t	sum;
} reader;

static ax_area *area;
static ax_tree *tree;
static uint64_t gen;
static uint64_t rounds = 2000000;
static _Atomic uint64_t shared_word;
static reader *readers;
static pthread_barrier_t start;

/* Something that is read inside, so that nothing is optimized away. */
static inline uint64_t
look(void)
{
	return atomic_load_explicit(&shared_word, memory_order_relaxed);
}

static inline void
nothing(void)
{
	__asm__ volatile("" ::: "memory");
}

static inline void
full_fence(void)
{
#if defined(__x86_64__)
	__asm__ volatile("mfence" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

static _Thread_local _Atomic uint64_t own;

static inline void
own_exchange(void)
{
	atomic_exchange_explicit(&own, 1, memory_order_seq_cst);
}

static inline void
own_store(void)
{
	atomic_store_explicit(&own, 0, memory_order_release);
}

static inline void
own_store_fence(void)
{
	atomic_store_explicit(&own, 1, memory_order_relaxed);
	full_fence();
}

#define LOOP(name, prepare, in, out, finish) \
static void * \
run_##name(void *arg) \
{ \
	reader	   *r = arg; \
	ax_store   *st = NULL; \
	uint64_t	sum = 0; \
	prepare; \
	for (int k = 0; k < RUNS; k++) \
	{ \
		uint64_t	t; \
		double		ns; \
		pthread_barrier_wait(&start); \
		t = ax_port_default.now_ns(); \
		for (uint64_t i = 0; i < rounds; i++) \
		{ \
			in; \
			sum += look(); \
			out; \
		} \
		ns = (double) (ax_port_default.now_ns() - t) / (double) rounds; \
		r->best = k == 0 || ns < r->best ? ns : r->best; \
	} \
	finish; \
	r->sum = sum + (st != NULL); \
	return NULL; \
}

LOOP(none,, nothing(), nothing(),)
LOOP(reads,, if (ax_enter_read(&r->cx, tree, gen, &st) != AX_OK) abort(), ax_leave(&r->cx),)
LOOP(changes,, if (ax_enter(&r->cx, tree, gen, &st) != AX_OK) abort(), ax_leave(&r->cx),)
LOOP(exchange,, own_exchange(), own_store(),)
LOOP(mfence,, own_store_fence(), own_store(),)
LOOP(mb, urcu_mb_register_thread(), urcu_mb_read_lock(), urcu_mb_read_unlock(), urcu_mb_unregister_thread())
LOOP(memb, urcu_memb_register_thread(), urcu_memb_read_lock(), urcu_memb_read_unlock(),
	 urcu_memb_unregister_thread())
LOOP(bp,, urcu_bp_read_lock(), urcu_bp_read_unlock(),)
LOOP(qsbr, urcu_qsbr_register_thread(), urcu_qsbr_read_lock(), urcu_qsbr_read_unlock(),
	 urcu_qsbr_unregister_thread())
LOOP(quiescent, urcu_qsbr_register_thread(), urcu_qsbr_read_lock(),
	 urcu_qsbr_read_unlock(); urcu_qsbr_quiescent_state(), urcu_qsbr_unregister_thread())
LOOP(online, (urcu_qsbr_register_thread(), urcu_qsbr_thread_offline()),
	 urcu_qsbr_thread_online(), urcu_qsbr_thread_offline(), urcu_qsbr_unregister_thread())

static const struct way
{
	const char *name;
	void	   *(*run) (void *);
	const char *what;
}			ways[] = {
	{"(none)", run_none, "the loop by itself"},
	{"reads", run_reads, "ax_enter_read, ax_leave"},
	{"changes", run_changes, "ax_enter, ax_leave"},
	{"xchg", run_exchange, "an exchange in, a store out, no more"},
	{"mfence", run_mfence, "a store and a fence in, a store out, no more"},
	{"urcu-mb", run_mb, "read lock, unlock"},
	{"urcu-memb", run_memb, "read lock, unlock"},
	{"urcu-bp", run_bp, "read lock, unlock"},
	{"urcu-qsbr", run_qsbr, "read lock, unlock: nothing at all"},
	{"qsbr-quiet", run_quiescent, "the same, and a quiescent state after each"},
	{"qsbr-online", run_online, "online, offline"},
};
#define WAYS ((int) (sizeof(ways) / sizeof(ways[0])))

/* The slowest thread's best. */
static double
measure(const struct way *w, int threads)
{
	pthread_t	t[MAX_THREADS];
	double		ns = 0;

	pthread_barrier_init(&start, NULL, (unsigned) threads);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, w->run, &readers[i]))
		{
			perror("pthread_create");
			exit(2);
		}
	for (int i = 0; i < threads; i++)
	{
		pthread_join(t[i], NULL);
		ns = readers[i].best > ns ? readers[i].best : ns;
	}
	pthread_barrier_destroy(&start);
	return ns;
}

int
main(int argc, char **argv)
{
	int			many = (int) sysconf(_SC_NPROCESSORS_ONLN);
	double		one[WAYS],
				all[WAYS];

	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	if (rounds == 0)
	{
		fprintf(stderr, "usage: bench_epoch [rounds]\n");
		return 2;
	}
	many = many > MAX_THREADS ? MAX_THREADS : many;
	area = tap_area(16u << 20, MAX_THREADS, 0);
	readers = tap_shared(sizeof(reader) * MAX_THREADS);
	for (int i = 0; i < MAX_THREADS; i++)
		ax_attach(&readers[i].cx, area, i, 1 + i, &ax_port_default);
	tree = ax_tree_alloc(&readers[0].cx);
	if (!tree || ax_tree_open(&readers[0].cx, tree, AX_ART_OLC, 0, 0, &gen) != AX_OK)
	{
		fprintf(stderr, "no tree\n");
		return 2;
	}
	for (int k = 0; k < WAYS; k++)
	{
		one[k] = measure(&ways[k], 1);
		all[k] = measure(&ways[k], many);
	}
	printf("ns in and out      1 thread %2d threads   less the loop\n", many);
	for (int k = 0; k < WAYS; k++)
		printf("%-14s %12.2f %10.2f %12.2f   %s\n", ways[k].name, one[k], all[k],
			   one[k] - one[0], ways[k].what);
	printf("goal: 5 ns or less, less the loop: reads %s, changes %s; the exchange of the latter "
		   "takes %.2f here\n", one[1] - one[0] <= 5.0 ? "met" : "missed",
		   one[2] - one[0] <= 5.0 ? "met" : "missed", one[3] - one[0]);
	for (int i = MAX_THREADS - 1; i >= 0; i--)
		ax_detach(&readers[i].cx);
	return 0;
}
