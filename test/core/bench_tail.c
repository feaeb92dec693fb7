/*
 * bench_tail.c
 *	  Inserts at the right end by many workers: the engines as they are, and three
 *	  ways to keep the workers apart.
 *
 *	  bench_tail [candidates|goals|reads ...]
 *
 * candidates: every kind of rising keys by every way.  none: into the tree.
 * window, append: through a buffer of that kind (core/tail/ax_window.c, ax_append.c).
 * combine: who has a latch of the bench's own inserts what the others have
 * written down meanwhile (a prototype that is kept to be measured against).
 * goals: tail inserts with tail_buffer = on against the same engine's one thread
 * without.  reads: look-ups of keys just inserted, with and without a buffer.
 *
 * Environment: CELL_SECONDS (0.3), REPS (3), ENGINES, KEYS ("sequence cached time uuid text"),
 * WAYS ("threads forks"), CSV, QUICK.
 *
 * Workers share one counter (a sequence's), or a clock; the bench's own part of
 * an insert is in all figures.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/ax_area.h"
#include "core/tail/ax_tail.h"
#include "keyset.h"
#include "meter.h"
#include "tap.h"

#define COUNT(a)	((int) (sizeof(a) / sizeof((a)[0])))
#define WORKERS_MAX	64
#define KEY_BYTES	48
#define FEW_KEYS	10000		/* a tail has something before it */
#define CACHE		32			/* of a sequence */
#define STATEMENT	20			/* rows with one timestamp */
#define A_MS		64			/* uuids that have the same millisecond: as on a busy server,
								 * which is not as fast as this bench */
#define REPS_MAX	9

typedef enum keys
{
	SEQUENCE, CACHED, TIME, UUID, TEXT, KEYS
} keys;

static const char *const keys_name[KEYS] = {"sequence", "cached", "time", "uuid", "text"};
static const char *const keys_title[KEYS] = {
	"a sequence", "a sequence with CACHE 32", "timestamps, 20 rows each", "uuidv7", "numbered texts"
};

typedef enum way
{
	NONE, WINDOW, APPEND, COMBINE, ON, NWAYS
} way;

static const char *const way_name[NWAYS] = {"none", "window", "append", "combine", "on"};

/* What a waiter wrote down, and what became of it. */
typedef struct wish
{
	_Alignas(64) _Atomic uint32_t state;
	uint32_t	len;
	uint8_t		key[KEY_BYTES];
} wish;

enum
{
	NO_WISH, WISH, GRANTED
};

typedef struct world
{
	ax_area    *area;
	ax_tree    *tree;
	uint64_t	gen;
	keys		kind;
	way			how;
	int			workers;
	_Atomic int ready;
	_Atomic uint64_t begin;		/* ticks; 0: not yet */
	uint64_t	ticks;
	_Alignas(64) _Atomic uint64_t next;
	_Alignas(64) _Atomic uint32_t combiner;
	wish		wishes[WORKERS_MAX];
	_Alignas(64) mr_hist hist[WORKERS_MAX];
	uint64_t	cpu[WORKERS_MAX];
} world;

typedef struct result
{
	double		mops,
				p999,
				slowest,
				cpu,			/* nanoseconds of processor an insert */
				beside;			/* share of the inserts */
} result;

static ax_ctx main_cx;
static world *wd;
static ax_structure engines[AX_STRUCTURES];
static int	nengines;
static double cell_seconds;
static int	reps;

/* ---- keys -------------------------------------------------------------------- */

/* What one worker needs to make rising keys. */
typedef struct maker
{
	keys		kind;
	uint64_t	me,
				rows,			/* made by this one */
				at,
				left,
				rng;
} maker;

static void
maker_init(maker *m, keys kind, int me)
{
	memset(m, 0, sizeof(*m));
	m->kind = kind;
	m->me = (uint64_t) me;
	m->rng = (uint64_t) (me + 1) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Key number i of a sequence, or of numbered texts; its length. */
static uint32_t
numbered(uint8_t *k, keys kind, uint64_t i)
{
	uint32_t	n;

	k[0] = 1;
	if (kind == TEXT)
	{
		memcpy(k + 1, "order-", 6);
		for (n = 20; n > 6; n--)
		{
			k[n] = (uint8_t) ('0' + i % 10);
			i /= 10;
		}
		n = 21;
		k[n++] = 0;
	}
	else
	{
		ks_put8(k + 1, i ^ UINT64_C(1) << 63);
		n = 9;
	}
	return n;
}

/* The next key, TID included; its length. */
static uint32_t
next_key(maker *m, uint8_t *k)
{
	uint64_t	row = m->me << 32 | m->rows++;
	uint32_t	n;

	switch (m->kind)
	{
		case SEQUENCE:
		case TEXT:
			row = atomic_fetch_add_explicit(&wd->next, 1, memory_order_relaxed);
			n = numbered(k, m->kind, row);
			break;
		case CACHED:
			if (m->left == 0)
			{
				m->at = atomic_fetch_add_explicit(&wd->next, CACHE, memory_order_relaxed);
				m->left = CACHE;
			}
			m->left--;
			row = m->at++;
			n = numbered(k, m->kind, row);
			break;
		case TIME:
			if (m->left == 0)
			{
				m->at = mr_now() / 1000;
				m->left = STATEMENT;
			}
			m->left--;
			n = numbered(k, m->kind, m->at);
			break;
		default:
			{
				uint64_t	ms = atomic_fetch_add_explicit(&wd->next, 1, memory_order_relaxed) / A_MS;

				ms += UINT64_C(1750000000000);
				k[0] = 1;
				ks_put8(k + 1, ms << 16 | (tap_rand(&m->rng) >> 20 & 0xFFF) | 0x7000);
				ks_put8(k + 9, tap_rand(&m->rng));
				n = 17;
			}
	}
	ks_put_tid(k + n, ks_tid(row));
	return n + 6;
}

/* ---- the ways ------------------------------------------------------------------ */

static void
tree_insert(ax_ctx *cx, const uint8_t *k, uint32_t len)
{
	ax_status	r;

	do
		r = ax_insert(cx, wd->tree, wd->gen, k, len);
	while (r == AX_BUSY);
	mr_need(r, AX_OK, "insert");
}

/*
 * Whoever has the latch inserts the wishes of all that are waiting for it, in
 * order, at once.
 */
static void
combine(ax_ctx *cx, int me, const uint8_t *k, uint32_t len)
{
	wish	   *mine = &wd->wishes[me];
	uint32_t	turns = 0;

	memcpy(mine->key, k, len);
	mine->len = len;
	atomic_store_explicit(&mine->state, WISH, memory_order_release);
	while (atomic_load_explicit(&mine->state, memory_order_acquire) != GRANTED)
	{
		const uint8_t *key[WORKERS_MAX];
		uint32_t	lens[WORKERS_MAX];
		int			who[WORKERS_MAX];
		int			n = 0;

		if (atomic_load_explicit(&wd->combiner, memory_order_relaxed) ||
			atomic_exchange_explicit(&wd->combiner, 1, memory_order_acquire))
		{
			if (++turns % 64 == 0)
				sched_yield();
			else
				ax_pause();
			continue;
		}
		for (int i = 0; i < wd->workers; i++)
		{
			wish	   *w = &wd->wishes[i];
			int			at = n;

			if (atomic_load_explicit(&w->state, memory_order_acquire) != WISH)
				continue;
			for (; at > 0 && memcmp(w->key, key[at - 1], w->len < lens[at - 1] ? w->len : lens[at - 1]) < 0; at--)
			{
				key[at] = key[at - 1];
				lens[at] = lens[at - 1];
				who[at] = who[at - 1];
			}
			key[at] = w->key;
			lens[at] = w->len;
			who[at] = i;
			n++;
		}
		for (int done = 0; done < n;)
		{
			uint64_t	some,
						added;
			ax_status	r = ax_insert_sorted(cx, wd->tree, wd->gen,
					&(ax_keys) {key + done, lens + done, 0, (uint64_t) (n - done)}, &some, &added);

			if (r != AX_BUSY)
				mr_need(r, AX_OK, "insert_sorted");
			done += (int) some;
		}
		for (int i = 0; i < n; i++)
			atomic_store_explicit(&wd->wishes[who[i]].state, GRANTED, memory_order_release);
		atomic_store_explicit(&wd->combiner, 0, memory_order_release);
	}
}

/* A tree with some keys, and its way. */
static void
open_tree(ax_structure s, keys kind, way how)
{
	uint8_t		k[KEY_BYTES];
	uint32_t	len = 0;
	maker		m;
	ax_store   *st;
	ax_tail    *t = NULL;

	memset(wd->wishes, 0, sizeof(wd->wishes));
	wd->kind = kind;
	wd->how = how;
	wd->tree = ax_tree_alloc(&main_cx);
	if (!wd->tree)
		mr_die("no tree");
	mr_need(ax_tree_open(&main_cx, wd->tree, s, 0, tap_page_size(), &wd->gen), AX_OK, "open");
	atomic_store(&wd->next, 1);
	maker_init(&m, kind, WORKERS_MAX);
	for (int i = 0; i < FEW_KEYS; i++)
	{
		len = next_key(&m, k);
		tree_insert(&main_cx, k, len);
	}
	/* a window that was outrun is closed, and another opened */
	if (how == ON || how == WINDOW)
		mr_need(ax_tree_set_tail(&main_cx, wd->tree, wd->gen, AX_TAIL_ON), AX_OK, "set_tail");
	if (how != WINDOW && how != APPEND)
		return;
	mr_need(ax_enter(&main_cx, wd->tree, wd->gen, &st), AX_OK, "enter");
	t = how == APPEND ? ax_append_new(&main_cx, st, k, len, 1) : ax_window_new(&main_cx, st, k, len, 0);
	atomic_store(&st->tail, t);
	ax_leave(&main_cx);
	if (!t)
		mr_die("no %s for %s", way_name[how], keys_name[kind]);
}

static void
info(ax_tree_info *ti)
{
	(void) tap_quiesce(&main_cx);
	mr_need(ax_info(&main_cx, wd->tree, wd->gen, ti), AX_OK, "info");
}

static void
close_tree(void)
{
	ax_tree_close(&main_cx, wd->tree);
	(void) tap_quiesce(&main_cx);
	ax_tree_release(&main_cx, wd->tree);
}

/* A forked process must not pay for its first sight of every page. */
static void
see_pages(ax_ctx *cx)
{
	ax_memory_info mi;
	volatile const char *p = (const char *) wd->area;

	ax_memory(cx, &mi);
	for (uint64_t at = 0; at < mi.touched_bytes; at += AX_PAGE)
		(void) p[at];
}

/* Of this thread: what others do on the machine is not in it, or hardly. */
static uint64_t
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

static void
work(void *arg, int me)
{
	bool		forks = *(bool *) arg;
	ax_ctx	   *cx = aligned_alloc(64, sizeof(ax_ctx));
	mr_hist    *h = calloc(1, sizeof(*h));
	maker		m;
	uint64_t	n = 0,
				last,
				end,
				cpu;

	if (!cx || !h)
		abort();
	ax_attach(cx, wd->area, me + 1, me + 1, &ax_port_default);
	if (forks)
		see_pages(cx);
	maker_init(&m, wd->kind, me);
	atomic_fetch_add(&wd->ready, 1);
	while ((last = atomic_load(&wd->begin)) == 0)
		usleep(50);
	end = last + wd->ticks;
	while (mr_ticks() < last)
		;
	cpu = cpu_ns();
	do
	{
		uint8_t		k[KEY_BYTES];
		uint32_t	len = next_key(&m, k);
		uint64_t	now;

		if (wd->how == COMBINE)
			combine(cx, me, k, len);
		else
			tree_insert(cx, k, len);
		if (++n % 1024 == 0)
			(void) ax_poll(cx);
		now = mr_ticks();
		mr_hist_add(h, now - last);
		last = now;
	} while (last < end);
	wd->cpu[me] = cpu_ns() - cpu;
	wd->hist[me] = *h;
	ax_detach(cx);
	free(h);
	free(cx);
}

static void
start_when_ready(void *arg, int i)
{
	if (i > 0)
	{
		work(arg, i - 1);
		return;
	}
	while (atomic_load(&wd->ready) < wd->workers)
		usleep(50);
	atomic_store(&wd->begin, mr_ticks() + (uint64_t) (1e6 / mr_tick_ns()));
}

/* One timed cell, on a tree of its own. */
static result
run(ax_structure s, keys kind, way how, int workers, bool forks)
{
	static mr_hist all;
	ax_tree_info ti;
	uint64_t	before,
				least = UINT64_MAX;
	bool		good;
	char		msg[200];
	result		r;

	open_tree(s, kind, how);
	info(&ti);
	before = ti.entries;
	wd->workers = workers;
	/* 16 workers must each have their turns on few processors */
	wd->ticks = (uint64_t) (cell_seconds * (workers > 2 ? 2 : 1) * 1e9 / mr_tick_ns());
	atomic_store(&wd->ready, 0);
	atomic_store(&wd->begin, 0);
	if (!forks)
		tap_threads(workers + 1, start_when_ready, &forks);
	else if (!tap_forks(workers + 1, start_when_ready, &forks))
		mr_die("a forked worker failed");
	memset(&all, 0, sizeof(all));
	r.cpu = 0;
	for (int i = 0; i < workers; i++)
	{
		r.cpu += (double) wd->cpu[i];
		mr_hist_merge(&all, &wd->hist[i]);
		if (wd->hist[i].n < least)
			least = wd->hist[i].n;
	}
	r.cpu /= (double) all.n;
	info(&ti);
	if (ti.entries != before + all.n)
		mr_die("%s, %s, %s: %llu entries after %llu and %llu inserts", mr_engine(s), keys_name[kind],
			   way_name[how], (unsigned long long) ti.entries, (unsigned long long) before,
			   (unsigned long long) all.n);
	r.beside = all.n ? (double) ti.tail_bypassed / (double) all.n : 0;
	/* all of it is in the tree in the end */
	mr_need(tap_check(&main_cx, wd->tree, wd->gen, &ti, &good, msg, sizeof(msg)), AX_OK, "check");
	if (!good || ti.entries != before + all.n)
		mr_die("%s, %s, %s: %s", mr_engine(s), keys_name[kind], way_name[how],
			   good ? "entries are missing" : msg);
	close_tree();
	r.mops = (double) all.n / ((double) wd->ticks * mr_tick_ns() / 1e9) / 1e6;
	r.p999 = (double) mr_hist_at(&all, 0.999) * mr_tick_ns() / 1000;
	r.slowest = (double) least * workers / (double) all.n;
	return r;
}

static result
median(result *r, int n)
{
	result		m;
	double		v[REPS_MAX];

#define MEDIAN(member) \
	do { \
		for (int i_ = 0; i_ < n; i_++) \
			v[i_] = r[i_].member; \
		m.member = mr_median(v, n); \
	} while (0)
	MEDIAN(mops);
	MEDIAN(p999);
	MEDIAN(slowest);
	MEDIAN(cpu);
	MEDIAN(beside);
#undef MEDIAN
	return m;
}

static bool
wanted(const char *variable, const char *name)
{
	const char *e = getenv(variable);

	return !e || !*e || strstr(e, name);
}

/* ---- the candidates -------------------------------------------------------------- */

static const int all_workers[] = {1, 2, 16};

static void
candidates(bool forks)
{
	const char *how_run = forks ? "forks" : "threads";

	if (!wanted("WAYS", how_run))
		return;
	for (int e = 0; e < nengines; e++)
		for (int kind = 0; kind < KEYS; kind++)
		{
			static result r[NWAYS][COUNT(all_workers)][REPS_MAX];
			double		alone = 0;

			if (!wanted("KEYS", keys_name[kind]))
				continue;
			for (int i = 0; i < reps; i++)
				for (int w = 0; w < COUNT(all_workers); w++)
					for (int how = NONE; how <= COMBINE; how++)
						if (how != WINDOW || kind <= CACHED)
							r[how][w][i] = run(engines[e], (keys) kind, (way) how, all_workers[w], forks);
			printf("\n%s, %s, %s\n%-10s %7s %7s %7s  %6s %6s  %7s %7s %7s  %8s %10s %8s\n", mr_engine(engines[e]),
				   keys_title[kind], how_run, "Mops/s", "1", "2", "16", "2", "16", "cpu ns", "2", "16",
				   "slowest", "p99.9 us", "beside");
			for (int how = NONE; how <= COMBINE; how++)
			{
				result		m[COUNT(all_workers)];

				if (how == WINDOW && kind > CACHED)
					continue;
				for (int w = 0; w < COUNT(all_workers); w++)
				{
					m[w] = median(r[how][w], reps);
					mr_csv("tail", how_run, keys_name[kind], -1, mr_engine(engines[e]), all_workers[w],
						   way_name[how], m[w].mops, "Mops/s");
				}
				if (how == NONE)
					alone = m[0].mops;
				printf("%-10s %7.2f %7.2f %7.2f  %6.2f %6.2f  %7.0f %7.0f %7.0f  %8.2f %10.0f %6.1f %%\n", way_name[how],
					   m[0].mops, m[1].mops, m[2].mops, m[1].mops / alone, m[2].mops / alone,
					   m[0].cpu, m[1].cpu, m[2].cpu,
					   m[2].slowest, m[2].p999, m[2].beside * 100);
			}
			fflush(stdout);
		}
}

/* ---- the goals ------------------------------------------------------------------- */

static void
goals(bool forks)
{
	const char *how_run = forks ? "forks" : "threads";
	int			met = 0,
				missed = 0;

	if (!wanted("WAYS", how_run))
		return;
	printf("\nTail inserts with a buffer on %s, Mops/s, against one worker without; goals: 2 workers at least 1.0, 16 at least 0.9, the slowest at least 1/4 of the mean\n"
		   "%-14s %7s %7s %7s %7s  %6s %6s  %8s  %8s %8s\n", how_run, "", "none 1", "1", "2", "16", "2",
		   "16", "slowest", "p99.9 us", "beside");
	for (int e = 0; e < nengines; e++)
	{
		static const int workers[] = {1, 1, 2, 16};
		result		r[4][REPS_MAX],
					m[4];
		double		slowest;
		bool		good[3];

		for (int i = 0; i < reps; i++)
			for (int w = 0; w < 4; w++)
				r[w][i] = run(engines[e], SEQUENCE, w == 0 ? NONE : ON, workers[w], forks);
		for (int w = 0; w < 4; w++)
			m[w] = median(r[w], reps);
		slowest = m[2].slowest < m[3].slowest ? m[2].slowest : m[3].slowest;
		good[0] = m[2].mops >= m[0].mops;
		good[1] = m[3].mops >= 0.9 * m[0].mops;
		good[2] = slowest >= 0.25;
		printf("%-14s %7.2f %7.2f %7.2f %7.2f  %6.2f %6.2f  %8.2f  %8.0f %6.1f %% ", mr_engine(engines[e]),
			   m[0].mops, m[1].mops, m[2].mops, m[3].mops, m[2].mops / m[0].mops,
			   m[3].mops / m[0].mops, slowest, m[3].p999, m[3].beside * 100);
		for (int i = 0; i < 3; i++)
		{
			printf(" %s", good[i] ? "met" : "missed");
			*(good[i] ? &met : &missed) += 1;
		}
		printf("\n");
		fflush(stdout);
	}
	printf("%d met, %d missed\n", met, missed);
}

/* ---- look-ups of keys just inserted ------------------------------------------------- */

#define LATEST	64

/* Nanoseconds a look-up of one of the last LATEST keys, while more are inserted. */
static double
latest(ax_structure s, keys kind, way how)
{
	uint8_t		k[LATEST][KEY_BYTES];
	uint32_t	len[LATEST];
	uint64_t	rng = 4711,
				n = 0,
				ticks = 0,
				rounds = mr_quick() ? 500 : 5000;
	maker		m;

	open_tree(s, kind, how);
	maker_init(&m, kind, 0);
	for (uint64_t i = 0; i < rounds; i++)
	{
		uint64_t	t0;

		for (int j = 0; j < LATEST; j++)
		{
			len[j] = next_key(&m, k[j]);
			tree_insert(&main_cx, k[j], len[j]);
		}
		t0 = mr_ticks();
		for (int j = 0; j < LATEST; j++)
		{
			uint64_t	x = tap_rand(&rng) >> 32;
			uint64_t	tids[64];
			ax_found	f = {.tids = tids, .max = 64};

			x = x * LATEST >> 32;
			mr_need(ax_lookup(&main_cx, wd->tree, wd->gen, k[x], len[x] - 6, &f),
					AX_OK, "look-up");
			if (f.n == 0 && !f.more)
				mr_die("%s, %s: a key just inserted is not found", keys_name[kind], way_name[how]);
		}
		ticks += mr_ticks() - t0;
		n += LATEST;
	}
	close_tree();
	return (double) ticks * mr_tick_ns() / (double) n;
}

static void
reads(void)
{
	printf("\nLook-ups of the last %d keys, ns, one thread; goal: at most 1.3 of those without a buffer\n"
		   "%-14s %-10s %9s %9s %9s  %6s %6s\n", LATEST, "", "", "none", "window", "append", "window",
		   "append");
	for (int e = 0; e < nengines; e++)
		for (int kind = 0; kind < KEYS; kind++)
		{
			double		v[3][REPS_MAX],
						m[3] = {0};

			if (!wanted("KEYS", keys_name[kind]))
				continue;
			for (int i = 0; i < reps; i++)
				for (int how = NONE; how <= APPEND; how++)
					if (how != WINDOW || kind <= CACHED)
						v[how][i] = latest(engines[e], (keys) kind, (way) how);
			for (int how = NONE; how <= APPEND; how++)
				if (how != WINDOW || kind <= CACHED)
					m[how] = mr_median(v[how], reps);
			printf("%-14s %-10s %9.1f %9.1f %9.1f  %6.2f %6.2f\n", mr_engine(engines[e]),
				   keys_name[kind], m[0], m[1], m[2], m[1] / m[0], m[2] / m[0]);
			fflush(stdout);
		}
}

int
main(int argc, char **argv)
{
	static char *all[] = {"candidates", "goals", "reads"};
	char	  **what = argc > 1 ? argv + 1 : all;
	int			n = argc > 1 ? argc - 1 : COUNT(all);

	cell_seconds = mr_env("CELL_SECONDS", mr_quick() ? 0.1 : 0.3);
	reps = (int) mr_env("REPS", mr_quick() ? 1 : 3);
	if (reps < 1 || reps > REPS_MAX)
		mr_die("REPS: 1 to %d", REPS_MAX);
	nengines = mr_engines(engines);
	wd = tap_shared(sizeof(*wd));
	wd->area = tap_area((size_t) 3 << 30, WORKERS_MAX + 1, 1 << 20);
	ax_attach(&main_cx, wd->area, 0, WORKERS_MAX + 1, &ax_port_default);
	(void) mr_tick_ns();
	for (int i = 0; i < n; i++)
		if (strcmp(what[i], "candidates") == 0)
		{
			candidates(false);
			candidates(true);
		}
		else if (strcmp(what[i], "goals") == 0)
		{
			goals(false);
			goals(true);
		}
		else if (strcmp(what[i], "reads") == 0)
			reads();
		else
			mr_die("no part \"%s\": candidates, goals, reads", what[i]);
	return 0;
}
