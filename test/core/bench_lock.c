/*
 * bench_lock.c
 *	  The latch beside other locks: throughput, fairness, waiting.
 *
 *	  bench_lock [-l lock,..] [-n locks,..] [-t threads,..] [-r reads,..]
 *				 [-s short|long,..] [-m milliseconds] [-k times]
 *
 * Every thread takes a lock at random again and again and counts in what it
 * guards, or (reads: per cent) only looks.  Locks without optimistic readers
 * are taken exclusively for that, but for the reader-writer lock.  "ok": of the
 * samples that admitted a reader, how many were valid in the end.  p99.9 and
 * worst: from one end of an operation to the next of the same thread, so with
 * more threads than processors a turn off the processor is in it.  Only ratios
 * of one run mean anything.  -k: the median of so many runs.  A lost update or a
 * torn read is a failure.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "core/base/ax_area.h"
#include "core/elide/ax_guard.h"
#include "tap.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64
#define WORDS 8
#define MAX_TIMES 15

typedef struct optiql_node
{
	_Alignas(128) _Atomic(struct optiql_node *) next;
	_Alignas(128) _Atomic uint64_t version;
} optiql_node;

typedef struct mcs_node
{
	_Alignas(128) _Atomic(struct mcs_node *) next;
	_Alignas(128) _Atomic uint32_t granted;
} mcs_node;

/* One lock and what it guards: a short section stays in the first line. */
typedef struct cell
{
	_Alignas(64) union
	{
		ax_word		w;
		_Atomic uint64_t optiql;
		_Atomic(mcs_node *) mcs;
		_Atomic uint32_t tas;
		pthread_mutex_t mutex;
		pthread_rwlock_t rw;
	};
	_Atomic uint64_t count;
	_Alignas(64) _Atomic uint64_t word[WORDS];
} cell;
_Static_assert(sizeof(cell) == 128, "two lines");

typedef struct worker
{
	_Alignas(128) ax_ctx cx;
	ax_store   *st;
	mcs_node	mcs;
	uint64_t	rng;
	int			i;
	/* what it did */
	uint64_t	ops;
	uint64_t	writes;
	uint64_t	reads;
	uint64_t	admitted;
	uint64_t	torn;
	uint64_t	busy;
	uint64_t	worst;
	uint64_t	hist[64];
	_Alignas(128) char pad;
} worker;

static ax_area *area;
static ax_tree *tree;
static uint64_t gen;
static cell *cells;
static uint64_t ncells;
static int	reads_pct;
static bool long_section;
static _Atomic bool stop;
static pthread_barrier_t start;
static worker *workers;
static optiql_node optiql_nodes[MAX_THREADS + 1];
static double ns_per_tick = 1.0;

static uint64_t
now_ns(void)
{
	return ax_port_default.now_ns();
}

static inline uint64_t
ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return now_ns();
#endif
}

static void
calibrate_ticks(void)
{
	struct timespec ts = {0, 20000000};
	uint64_t	n = now_ns(),
				t = ticks();

	nanosleep(&ts, NULL);
	ns_per_tick = (double) (now_ns() - n) / (double) (ticks() - t);
}

/* ---- sections ---- */

static inline uint64_t
load(_Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static inline void
store(_Atomic uint64_t *p, uint64_t v)
{
	atomic_store_explicit(p, v, memory_order_relaxed);
}

/* The search in a page, for short: some dependent work over its words. */
static inline uint64_t
search(cell *c)
{
	uint64_t	x = load(&c->word[0]);

	for (int i = 0; i < 48; i++)
		x = (x ^ load(&c->word[i % WORDS])) * UINT64_C(0x9E3779B97F4A7C15);
	return x;
}

static inline void
write_section(cell *c)
{
	if (long_section)
		for (int i = 0; i < WORDS; i++)
			store(&c->word[i], load(&c->word[i]) + 1);
	store(&c->count, load(&c->count) + 1);
}

/* False: what was seen is not of one moment. */
static inline bool
read_section(cell *c, uint64_t *x)
{
	bool		whole = true;

	*x = load(&c->count);
	if (long_section)
	{
		uint64_t	first = load(&c->word[0]);

		*x += search(c);
		for (int i = 1; i < WORDS; i++)
			whole &= load(&c->word[i]) == first;
	}
	return whole;
}

/* ---- the latch, through its queue, with and without adjustable reads ---- */

static inline void
queue_in(worker *t, cell *c)
{
	uint64_t	v;

	while (ax_word_acquire(&t->cx, &c->w, false, &v) != AX_OK)
		t->busy++;
}

static inline void
aor_in(worker *t, cell *c)
{
	uint64_t	v;

	while (ax_word_acquire(&t->cx, &c->w, true, &v) != AX_OK)
		t->busy++;
}

static inline void
aor_close(worker *t, cell *c)
{
	ax_word_close(&c->w);
}

static inline void
queue_out(worker *t, cell *c)
{
	ax_word_unlock(&t->cx, &c->w, true);
}

/* The same, by trying and waiting. */
static inline void
central_in(worker *t, cell *c)
{
	uint64_t	v;

	while (ax_word_lock(&t->cx, &c->w, &v) != AX_OK)
		t->busy++;
}

/* The same, as the optimistic engines lock: by a sample, or again. */
static inline void
upgrade_in(worker *t, cell *c)
{
	for (int tries = 1;; tries++)
	{
		uint64_t	v = ax_word_read(&c->w);

		if ((v & AX_FLAGS) && ax_word_sample(&t->cx, &c->w, &v) != AX_OK)
			t->busy++;
		else if (ax_word_trylock(&t->cx, &c->w, v))
			return;
		ax_restarted(&t->cx, t->st, tries);
	}
}

static inline bool
ours_begin(worker *t, cell *c, uint64_t *v, int tries)
{
	if (tries == 0)				/* as on entry */
		ax_body(&t->cx)->opportunistic = false;
	else
		ax_restarted(&t->cx, t->st, tries);
	*v = ax_word_read(&c->w);
	if ((*v & AX_FLAGS) && ax_word_sample(&t->cx, &c->w, v) != AX_OK)
	{
		t->busy++;
		return false;
	}
	return true;
}

static inline bool
ours_valid(cell *c, uint64_t v)
{
	return ax_word_valid(&c->w, v);
}

/* ---- OptiQL as its authors have it, with and without opportunistic reads ----
 *
 * LOCKED | OPREAD | tail (10) | version (52); FIFO hand-over by the releaser.
 */

#define OQ_LOCKED	(UINT64_C(1) << 63)
#define OQ_OPREAD	(UINT64_C(1) << 62)
#define OQ_ID_SHIFT 52
#define OQ_ID_MASK	(UINT64_C(0x3FF) << OQ_ID_SHIFT)
#define OQ_VERSION	((UINT64_C(1) << OQ_ID_SHIFT) - 1)

/* Version 0 means "not yet granted". */
static inline uint64_t
oq_next_version(uint64_t v)
{
	v = (v + 1) & OQ_VERSION;
	return v ? v : 1;
}

static inline void
oq_in(worker *t, cell *c, bool opread)
{
	uint64_t	id = (uint64_t) t->i + 1;
	optiql_node *q = &optiql_nodes[id];
	uint64_t	pred;

	atomic_store_explicit(&q->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&q->version, 0, memory_order_relaxed);
	pred = atomic_exchange_explicit(&c->optiql, OQ_LOCKED | id << OQ_ID_SHIFT, memory_order_acq_rel);
	if (!(pred & OQ_LOCKED))
		store(&q->version, oq_next_version(pred & OQ_VERSION));
	else
	{
		optiql_node *p = &optiql_nodes[(pred & OQ_ID_MASK) >> OQ_ID_SHIFT];

		atomic_store_explicit(&p->next, q, memory_order_release);
		while (atomic_load_explicit(&q->version, memory_order_acquire) == 0)
			;
		if (opread)
			atomic_fetch_and_explicit(&c->optiql, ~(OQ_OPREAD | OQ_VERSION), memory_order_acq_rel);
	}
	atomic_thread_fence(memory_order_release);
}

static inline void
oq_out(worker *t, cell *c, bool opread)
{
	uint64_t	id = (uint64_t) t->i + 1;
	optiql_node *q = &optiql_nodes[id];
	uint64_t	version = load(&q->version);
	uint64_t	mine = OQ_LOCKED | id << OQ_ID_SHIFT;
	optiql_node *next = atomic_load_explicit(&q->next, memory_order_acquire);

	if (!next)
	{
		if (atomic_compare_exchange_strong_explicit(&c->optiql, &mine, version,
													memory_order_release, memory_order_relaxed))
			return;
	}
	if (opread)
		atomic_fetch_or_explicit(&c->optiql, OQ_OPREAD | version, memory_order_release);
	while (!next)
		next = atomic_load_explicit(&q->next, memory_order_acquire);
	atomic_store_explicit(&next->version, oq_next_version(version), memory_order_release);
}

static inline void
optiql_in(worker *t, cell *c)
{
	oq_in(t, c, true);
}

static inline void
optiql_out(worker *t, cell *c)
{
	oq_out(t, c, true);
}

static inline void
nor_in(worker *t, cell *c)
{
	oq_in(t, c, false);
}

static inline void
nor_out(worker *t, cell *c)
{
	oq_out(t, c, false);
}

static inline bool
optiql_begin(worker *t, cell *c, uint64_t *v, int tries)
{
	*v = atomic_load_explicit(&c->optiql, memory_order_acquire);
	return (*v & (OQ_LOCKED | OQ_OPREAD)) != OQ_LOCKED;
}

static inline bool
optiql_valid(cell *c, uint64_t v)
{
	atomic_thread_fence(memory_order_acquire);
	return load(&c->optiql) == v;
}

/* ---- MCS, test-and-set, the C library's ---- */

static inline void
mcs_in(worker *t, cell *c)
{
	mcs_node   *pred;

	atomic_store_explicit(&t->mcs.next, NULL, memory_order_relaxed);
	atomic_store_explicit(&t->mcs.granted, 0, memory_order_relaxed);
	pred = atomic_exchange_explicit(&c->mcs, &t->mcs, memory_order_acq_rel);
	if (pred)
	{
		atomic_store_explicit(&pred->next, &t->mcs, memory_order_release);
		while (!atomic_load_explicit(&t->mcs.granted, memory_order_acquire))
			ax_pause();
	}
}

static inline void
mcs_out(worker *t, cell *c)
{
	mcs_node   *next = atomic_load_explicit(&t->mcs.next, memory_order_acquire);
	mcs_node   *me = &t->mcs;

	if (!next)
	{
		if (atomic_compare_exchange_strong_explicit(&c->mcs, &me, NULL, memory_order_release,
													memory_order_relaxed))
			return;
		while (!(next = atomic_load_explicit(&t->mcs.next, memory_order_acquire)))
			ax_pause();
	}
	atomic_store_explicit(&next->granted, 1, memory_order_release);
}

static inline void
tas_in(worker *t, cell *c)
{
	for (uint32_t wait = 4;; wait = wait < 1024 ? wait * 2 : wait)
	{
		if (!atomic_load_explicit(&c->tas, memory_order_relaxed) &&
			!atomic_exchange_explicit(&c->tas, 1, memory_order_acquire))
			return;
		for (uint32_t i = 0; i < wait; i++)
			ax_pause();
	}
}

static inline void
tas_out(worker *t, cell *c)
{
	atomic_store_explicit(&c->tas, 0, memory_order_release);
}

static inline void
mutex_in(worker *t, cell *c)
{
	pthread_mutex_lock(&c->mutex);
}

static inline void
mutex_out(worker *t, cell *c)
{
	pthread_mutex_unlock(&c->mutex);
}

static inline void
rw_in(worker *t, cell *c)
{
	pthread_rwlock_wrlock(&c->rw);
}

static inline void
rw_out(worker *t, cell *c)
{
	pthread_rwlock_unlock(&c->rw);
}

static inline void
none_in(worker *t, cell *c)
{
}

static inline void
none_out(worker *t, cell *c)
{
}

/* ---- the loop ---- */

static _Thread_local volatile uint64_t sink;

#define EXCLUSIVE_READ(name) do { \
	name##_in(t, c); \
	if (!read_section(c, &x)) \
		t->torn++; \
	name##_out(t, c); \
} while (0)

#define SHARED_READ() do { \
	pthread_rwlock_rdlock(&c->rw); \
	if (!read_section(c, &x)) \
		t->torn++; \
	pthread_rwlock_unlock(&c->rw); \
} while (0)

#define OPTIMISTIC_READ(name) do { \
	uint64_t v; \
	bool whole; \
	for (int tries = 0;; tries++) \
	{ \
		if (!name##_begin(t, c, &v, tries)) \
			continue; \
		t->admitted++; \
		whole = read_section(c, &x); \
		if (name##_valid(c, v)) \
			break; \
	} \
	if (!whole) \
		t->torn++; \
} while (0)

#define UNLOCKED_READ() ((void) read_section(c, &x))
#define NO_CLOSE ((void) 0)

#define LOOP(name, in, close, out, read) \
static void * \
loop_##name(void *arg) \
{ \
	worker	   *t = arg; \
	uint64_t	rng = t->rng; \
	uint64_t	last; \
	uint64_t	sum = 0; \
	pthread_barrier_wait(&start); \
	last = ticks(); \
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) \
	{ \
		uint64_t	r = tap_rand(&rng); \
		cell	   *c = &cells[ncells == 1 ? 0 : (r >> 32) * ncells >> 32]; \
		uint64_t	x = 0; \
		uint64_t	now; \
		if ((int) ((r & 0xFFFF) * 100 >> 16) < reads_pct) \
		{ \
			read; \
			t->reads++; \
		} \
		else \
		{ \
			in(t, c); \
			if (long_section) \
				x = search(c); \
			close; \
			write_section(c); \
			out(t, c); \
			t->writes++; \
		} \
		sum += x; \
		now = ticks(); \
		if (now - last > t->worst) \
			t->worst = now - last; \
		t->hist[63 - __builtin_clzll((now - last) | 1)]++; \
		last = now; \
	} \
	t->ops = t->reads + t->writes; \
	sink = sum; \
	return NULL; \
}

LOOP(queue, queue_in, NO_CLOSE, queue_out, OPTIMISTIC_READ(ours))
LOOP(aor, aor_in, aor_close(t, c), queue_out, OPTIMISTIC_READ(ours))
LOOP(central, central_in, NO_CLOSE, queue_out, OPTIMISTIC_READ(ours))
LOOP(upgrade, upgrade_in, NO_CLOSE, queue_out, OPTIMISTIC_READ(ours))
LOOP(optiql, optiql_in, NO_CLOSE, optiql_out, OPTIMISTIC_READ(optiql))
LOOP(nor, nor_in, NO_CLOSE, nor_out, OPTIMISTIC_READ(optiql))
LOOP(mcs, mcs_in, NO_CLOSE, mcs_out, EXCLUSIVE_READ(mcs))
LOOP(tas, tas_in, NO_CLOSE, tas_out, EXCLUSIVE_READ(tas))
LOOP(mutex, mutex_in, NO_CLOSE, mutex_out, EXCLUSIVE_READ(mutex))
LOOP(rw, rw_in, NO_CLOSE, rw_out, SHARED_READ())
LOOP(none, none_in, NO_CLOSE, none_out, UNLOCKED_READ())

static const struct kind
{
	const char *name;
	void	   *(*loop) (void *);
	bool		sound;			/* it excludes */
	const char *what;
}			kinds[] = {
	{"queue", loop_queue, true, "the latch, acquired through its queue"},
	{"queue-aor", loop_aor, true, "the same, readers admitted until the first store"},
	{"central", loop_central, true, "the latch without its queue: try, spin, yield, nap, sleep"},
	{"upgrade", loop_upgrade, true, "the latch as the optimistic engines lock: sample, upgrade, or restart"},
	{"optiql", loop_optiql, true, "OptiQL as published: FIFO hand-over, unbounded spinning"},
	{"optiql-nor", loop_nor, true, "the same without opportunistic reads"},
	{"mcs", loop_mcs, true, "MCS queue lock"},
	{"tas", loop_tas, true, "test-and-set with exponential backoff"},
	{"mutex", loop_mutex, true, "pthread adaptive mutex"},
	{"rwlock", loop_rw, true, "pthread reader-writer lock"},
	{"none", loop_none, false, "no lock at all: loses updates, an upper bound"},
};
#define KINDS ((int) (sizeof(kinds) / sizeof(kinds[0])))

static void
make_cells(const struct kind *k, uint64_t n)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	for (uint64_t i = 0; i < n; i++)
	{
		cell	   *c = &cells[i];

		memset((void *) c, 0, sizeof(*c));
		if (k->loop == loop_mutex)
			pthread_mutex_init(&c->mutex, &attr);
		else if (k->loop == loop_rw)
			pthread_rwlock_init(&c->rw, NULL);
		else if (k->loop == loop_optiql || k->loop == loop_nor)
			c->optiql = 1;
		else if (k->loop == loop_queue || k->loop == loop_aor ||
				 k->loop == loop_central || k->loop == loop_upgrade)
			c->w = AX_WORD_INIT;
	}
	pthread_mutexattr_destroy(&attr);
}

static uint64_t
total_count(void)
{
	uint64_t	sum = 0;

	for (uint64_t i = 0; i < ncells; i++)
		sum += load(&cells[i].count);
	return sum;
}

typedef struct result
{
	double		mops;
	double		spread;			/* most operations over fewest */
	double		ok;				/* per cent; negative: no optimistic read */
	double		p999_us;
	double		worst_us;
	uint64_t	busy;
	bool		good;
} result;

static result
measure(const struct kind *k, int threads, int ms)
{
	pthread_t	tid[MAX_THREADS];
	struct timespec ts = {ms / 1000, (long) (ms % 1000) * 1000000};
	uint64_t	before = total_count();
	uint64_t	t0,
				ns,
				ops = 0,
				writes = 0,
				reads = 0,
				admitted = 0,
				torn = 0,
				worst = 0,
				least = UINT64_MAX,
				most = 0,
				seen = 0;
	uint64_t	hist[64] = {0};
	result		res = {.ok = -1};

	atomic_store(&stop, false);
	pthread_barrier_init(&start, NULL, (unsigned) threads + 1);
	for (int i = 0; i < threads; i++)
	{
		worker	   *t = &workers[i];

		t->i = i;
		t->rng = ((uint64_t) i + 1) * UINT64_C(0x9E3779B97F4A7C15);
		t->ops = t->writes = t->reads = t->admitted = t->torn = t->busy = t->worst = 0;
		memset(t->hist, 0, sizeof(t->hist));
		if (pthread_create(&tid[i], NULL, k->loop, t))
		{
			perror("pthread_create");
			exit(2);
		}
	}
	pthread_barrier_wait(&start);
	t0 = now_ns();
	nanosleep(&ts, NULL);
	atomic_store(&stop, true);
	ns = now_ns() - t0;
	for (int i = 0; i < threads; i++)
	{
		worker	   *t = &workers[i];

		pthread_join(tid[i], NULL);
		ops += t->ops;
		writes += t->writes;
		reads += t->reads;
		admitted += t->admitted;
		torn += t->torn;
		res.busy += t->busy;
		worst = t->worst > worst ? t->worst : worst;
		least = t->ops < least ? t->ops : least;
		most = t->ops > most ? t->ops : most;
		for (int h = 0; h < 64; h++)
			hist[h] += t->hist[h];
	}
	pthread_barrier_destroy(&start);
	res.mops = (double) ops * 1000.0 / (double) ns;
	res.spread = (double) most / (double) (least ? least : 1);
	if (admitted)
		res.ok = 100.0 * (double) reads / (double) admitted;
	res.worst_us = (double) worst * ns_per_tick / 1000.0;
	for (int h = 0; h < 64; h++)
	{
		seen += hist[h];
		if (seen * 1000 >= ops * 999)
		{
			res.p999_us = (double) (UINT64_C(2) << h) * ns_per_tick / 1000.0;
			break;
		}
	}
	res.good = !k->sound || (torn == 0 && total_count() - before == writes);
	if (!res.good)
		printf("FAILED: %s, %llu locks, %d threads: %llu of %llu writes, %llu torn reads\n",
			   k->name, (unsigned long long) ncells, threads,
			   (unsigned long long) (total_count() - before), (unsigned long long) writes,
			   (unsigned long long) torn);
	return res;
}

static int
by_mops(const void *a, const void *b)
{
	double		x = ((const result *) a)->mops,
				y = ((const result *) b)->mops;

	return x < y ? -1 : x > y;
}

/* "1,5,30000" */
static int
numbers(const char *s, uint64_t *out, int max)
{
	int			n = 0;

	while (*s && n < max)
	{
		char	   *end;

		out[n++] = strtoull(s, &end, 10);
		if (end == s || (*end && *end != ','))
		{
			fprintf(stderr, "\"%s\": numbers, separated by commas\n", s);
			exit(2);
		}
		s = *end ? end + 1 : end;
	}
	return n;
}

static bool
listed(const char *list, const char *name)
{
	size_t		len = strlen(name);

	for (const char *p = list; p; p = strchr(p, ','))
	{
		p += *p == ',';
		if (strncmp(p, name, len) == 0 && (p[len] == 0 || p[len] == ','))
			return true;
	}
	return false;
}

int
main(int argc, char **argv)
{
	uint64_t	counts[16] = {1, 5, 30000, 1000000};
	uint64_t	threads[16] = {1, 2, 8, 16};
	uint64_t	reads[16] = {0, 50, 80, 100};
	int			ncounts = 4,
				nthreads = 4,
				nreads = 4;
	const char *locks = NULL,
			   *sections = "short,long";
	bool		whole = true;
	int			ms = 60,
				times = 1;
	uint64_t	most = 0;
	bool		good = true;
	int			opt;

	while ((opt = getopt(argc, argv, "l:n:t:r:s:m:k:")) != -1)
	{
		whole = whole && (opt == 'm' || opt == 'k');
		switch (opt)
		{
			case 'l':
				locks = optarg;
				break;
			case 'n':
				ncounts = numbers(optarg, counts, 16);
				break;
			case 't':
				nthreads = numbers(optarg, threads, 16);
				break;
			case 'r':
				nreads = numbers(optarg, reads, 16);
				break;
			case 's':
				sections = optarg;
				break;
			case 'm':
				ms = atoi(optarg);
				break;
			case 'k':
				times = atoi(optarg);
				times = times < 1 ? 1 : times > MAX_TIMES ? MAX_TIMES : times;
				break;
			default:
				fprintf(stderr, "usage: bench_lock [-l lock,..] [-n locks,..] [-t threads,..]\n"
						"\t[-r reads,..] [-s short|long,..] [-m milliseconds] [-k times]\n");
				for (int i = 0; i < KINDS; i++)
					fprintf(stderr, "\t%-11s%s\n", kinds[i].name, kinds[i].what);
				return 2;
		}
	}
	for (int i = 0; i < ncounts; i++)
		most = counts[i] > most ? counts[i] : most;
	for (int i = 0; i < nthreads; i++)
		if (threads[i] < 1 || threads[i] > MAX_THREADS)
		{
			fprintf(stderr, "1 to %d threads\n", MAX_THREADS);
			return 2;
		}

	calibrate_ticks();
	area = tap_area(32u << 20, MAX_THREADS + 1, 0);
	cells = tap_shared(most * sizeof(cell));
	workers = tap_shared(sizeof(worker) * MAX_THREADS);
	for (int i = 0; i < MAX_THREADS; i++)
	{
		worker	   *t = &workers[i];

		ax_attach(&t->cx, area, i, 1 + i, &ax_port_default);
		if (i == 0)
		{
			tree = ax_tree_alloc(&t->cx);
			if (!tree || ax_tree_open(&t->cx, tree, AX_ART_OPTIQL, 0, 0, &gen) != AX_OK)
			{
				fprintf(stderr, "no tree for the counters\n");
				return 2;
			}
		}
		if (ax_enter(&t->cx, tree, gen, &t->st) != AX_OK)
		{
			fprintf(stderr, "not entered\n");
			return 2;
		}
	}

	printf("%ld processors; %d ms each\n", sysconf(_SC_NPROCESSORS_ONLN), ms);
	printf("%-5s %8s %3s %5s %-10s %9s %7s %8s %6s %9s %10s %7s\n", "what", "locks", "thr", "reads",
		   "lock", "Mops", "/mutex", "max/min", "ok", "p99.9 us", "worst us", "busy");
	for (int s = 0; s < 2; s++)
	{
		if (!listed(sections, s ? "long" : "short"))
			continue;
		long_section = s;
		for (int n = 0; n < ncounts; n++)
		{
			result		tab[KINDS],
						all[KINDS][MAX_TIMES] = {0};

			if (whole && s && counts[n] > 5)
				continue;
			ncells = counts[n];
			for (int t = 0; t < nthreads; t++)
				for (int r = 0; r < nreads; r++)
				{
					double		mutex = 0;

					/* one lock right after the other: the machine's speed drifts */
					reads_pct = (int) reads[r];
					for (int i = 0; i < times; i++)
						for (int k = 0; k < KINDS; k++)
						{
							if (locks && !listed(locks, kinds[k].name))
								continue;
							make_cells(&kinds[k], ncells);
							all[k][i] = measure(&kinds[k], (int) threads[t], ms);
							good &= all[k][i].good;
						}
					for (int k = 0; k < KINDS; k++)
					{
						qsort(all[k], (size_t) times, sizeof(result), by_mops);
						tab[k] = all[k][times / 2];
					}
					for (int k = 0; k < KINDS; k++)
						if (kinds[k].loop == loop_mutex && (!locks || listed(locks, "mutex")))
							mutex = tab[k].mops;
					for (int k = 0; k < KINDS; k++)
					{
						result	   *x = &tab[k];
						char		okay[16] = "-";
						char		ratio[16] = "-";

						if (locks && !listed(locks, kinds[k].name))
							continue;
						if (x->ok >= 0)
							snprintf(okay, sizeof(okay), "%.1f", x->ok);
						if (mutex > 0)
							snprintf(ratio, sizeof(ratio), "%.2f", x->mops / mutex);
						printf("%-5s %8llu %3d %5d %-10s %9.3f %7s %8.2f %6s %9.1f %10.1f %7llu\n",
							   s ? "long" : "short", (unsigned long long) counts[n], (int) threads[t],
							   (int) reads[r], kinds[k].name, x->mops, ratio, x->spread, okay,
							   x->p999_us, x->worst_us, (unsigned long long) x->busy);
					}
				}
			fflush(stdout);
		}
	}
	for (int i = 0; i < MAX_THREADS; i++)
	{
		ax_leave(&workers[i].cx);
		if (i)
			ax_detach(&workers[i].cx);
	}
	{
		ax_tree_info info;

		if (ax_info(&workers[0].cx, tree, gen, &info) == AX_OK)
			printf("latch: %llu handovers, %llu turns abandoned, %llu waits, %llu parks, "
				   "%llu opportunistic reads, %llu of them failed\n",
				   (unsigned long long) info.handovers, (unsigned long long) info.abandoned,
				   (unsigned long long) info.latch_waits, (unsigned long long) info.parks,
				   (unsigned long long) info.opportunistic_reads,
				   (unsigned long long) info.opportunistic_failed);
	}
	ax_detach(&workers[0].cx);
	return good ? 0 : 1;
}
