/*
 * mixes.c
 *	  See mixes.h.
 *
 * Every key has one entry that stays, with the TID of its row: a read looks the
 * key up and must find it.  An update, as a non-HOT UPDATE and the removal of
 * its dead version would, inserts another TID of the same key and removes it;
 * the TID is the worker's own, so that both must succeed whoever else is at the
 * key.  It counts as one operation.
 *
 * Nothing outside the tree is shared while a cell runs, but the counter of
 * MX_TAIL.  The clock is read once an operation; the time between two readings
 * is the latency, a worker's being off its processor included.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "mixes.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "keyset.h"
#include "tap.h"

#define KEY_LEN		15			/* marker, 8 bytes, TID */
#define TEXT_LEN	30			/* 24 bytes, TID */
#define SCAN_KEYS	100			/* of one scan, at most */
#define THETA		0.99
#define RANGE_KEYS	100
#define TAIL_KEYS	10000		/* a tail has something before it */

const char *const mx_load_name[MX_LOADS] = {"uniform", "skew", "hot range", "tail inserts",
	"zipf, numbers", "zipf, strings"};

typedef struct worker_state
{
	_Alignas(64) mr_hist hist;
} worker_state;

typedef struct world
{
	ax_area    *area;
	ax_tree    *tree[MX_WORKERS_MAX];
	uint64_t	gen[MX_WORKERS_MAX];
	int			trees;
	uint64_t	keys;			/* in each */
	uint32_t	len;			/* bytes of a key */
	double		zeta,			/* of the keys, for THETA, */
				eta;			/* and how the rest is drawn */
	mx_cell		cell;
	_Atomic int ready;
	_Atomic uint64_t begin;		/* ticks; 0: not yet */
	uint64_t	ticks;			/* so long */
	uint64_t	begun;			/* keys that were there before */
	_Alignas(64) _Atomic uint64_t next; /* key of MX_TAIL, and that YCSB inserts */
	_Alignas(64) worker_state w[MX_WORKERS_MAX];
} world;

static ax_ctx main_cx;
static world *wd;				/* shared with forked workers */

/* Any order of 64 bits that has nothing to do with that of the numbers. */
static uint64_t
scramble(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xD6E8FEB86659FD93);
	x ^= x >> 32;
	x *= UINT64_C(0xD6E8FEB86659FD93);
	x ^= x >> 32;
	return x;
}

/*
 * Key i.  The last RANGE_KEYS are adjacent, so are those of MX_TAIL; all
 * others lie anywhere.
 */
static void
make_key(uint8_t *k, uint64_t i, uint64_t tid)
{
	if (wd->cell.load == MX_ZIPF_TEXT)
	{
		static const char hex[] = "0123456789abcdef";
		uint64_t	x = scramble(i);

		memcpy(k, "user0000", 8);
		for (int d = 0; d < 16; d++)
			k[8 + d] = (uint8_t) hex[x >> (60 - 4 * d) & 15];
		ks_put_tid(k + TEXT_LEN - 6, tid);
		return;
	}
	k[0] = 1;
	if (wd->cell.load == MX_TAIL)
		ks_put8(k + 1, i ^ UINT64_C(1) << 63);
	else if (i >= wd->keys && wd->cell.load != MX_ZIPF)
		ks_put8(k + 1, UINT64_C(0x7123456789ABC000) + (i - wd->keys));
	else
		ks_put8(k + 1, scramble(i));
	ks_put_tid(k + KEY_LEN - 6, tid);
}

static void
insert(ax_ctx *cx, int tree, const uint8_t *k)
{
	ax_status	r;

	do
		r = ax_insert(cx, wd->tree[tree], wd->gen[tree], k, wd->len);
	while (r == AX_BUSY);
	mr_need(r, AX_OK, "insert");
}

static void
update(ax_ctx *cx, int tree, int me, uint64_t i)
{
	uint8_t		k[TEXT_LEN];
	ax_status	r;

	make_key(k, i, (UINT64_C(0xF0000000) + (uint64_t) me) << 16 | 1);
	insert(cx, tree, k);
	do
		r = ax_remove(cx, wd->tree[tree], wd->gen[tree], k, wd->len);
	while (r == AX_BUSY);
	mr_need(r, AX_OK, "remove");
}

static void
lookup(ax_ctx *cx, int tree, uint64_t i)
{
	uint8_t		k[TEXT_LEN];
	uint64_t	tids[16];
	ax_found	f = {.tids = tids, .max = 16};
	ax_status	r;

	make_key(k, i, ks_tid(i));
	do
		r = ax_lookup(cx, wd->tree[tree], wd->gen[tree], k, wd->len - 6, &f);
	while (r == AX_BUSY);
	mr_need(r, AX_OK, "look-up");
	/* its number was taken, and it may not be there yet */
	if (f.n == 0 && !f.more && i >= wd->begun)
		return;
	/* the worker's TIDs are larger: it comes first */
	if (f.n ? tids[0] != ks_tid(i)
		: !f.more || ax_contains(cx, wd->tree[tree], wd->gen[tree], k, wd->len) != AX_OK)
		mr_die("look-up: key %llu is not found", (unsigned long long) i);
}

/* Keys from number i on, in order: the first is that one, perhaps behind a worker's own. */
static void
scan(ax_ctx *cx, int tree, uint64_t i, uint32_t max)
{
	uint8_t		k[TEXT_LEN],
				last[512];
	uint64_t	tids[SCAN_KEYS];
	ax_batch	b = {.lo = {k, wd->len - 6, false}, .hi = {NULL, 0, true}, .max = max,
		.tids = tids, .lastkey = last, .lastkey_size = sizeof(last)};
	ax_status	r;

	make_key(k, i, ks_tid(i));
	do
		r = ax_scan(cx, wd->tree[tree], wd->gen[tree], &b);
	while (r == AX_BUSY);
	mr_need(r, AX_OK, "scan");
	if (b.n == 0 || tids[0] != ks_tid(i))
		mr_die("scan: key %llu is not found", (unsigned long long) i);
}

/* A number below n, the small ones more often: Zipf's law, drawn as YCSB draws it. */
static uint64_t
zipf(uint64_t r)
{
	const double u = (double) (r >> 11) * 0x1p-53;
	const double n = (double) wd->keys;
	uint64_t	i;

	if (u * wd->zeta < 1)
		return 0;
	if (u * wd->zeta < 1 + pow(0.5, THETA))
		return 1;
	i = (uint64_t) (n * pow(wd->eta * u - wd->eta + 1, 1 / (1 - THETA)));
	return i < wd->keys ? i : wd->keys - 1;
}

static void
zipf_begin(void)
{
	const double n = (double) wd->keys;

	wd->zeta = 0;
	for (uint64_t i = wd->keys; i > 0; i--)
		wd->zeta += pow((double) i, -THETA);
	wd->eta = (1 - pow(2 / n, 1 - THETA)) / (1 - (1 + pow(0.5, THETA)) / wd->zeta);
}

/* One operation of a mix of YCSB. */
static void
ycsb(ax_ctx *cx, int tree, int me, uint64_t *rng)
{
	const uint64_t kind = (tap_rand(rng) >> 32) % 100;
	const char	mix = wd->cell.mix;
	uint64_t	i = zipf(tap_rand(rng));

	if (kind >= (mix == 'A' ? 50 : mix == 'C' ? 100 : 95))
	{
		uint8_t		k[TEXT_LEN];

		if (mix < 'D')
		{
			update(cx, tree, me, i);
			return;
		}
		i = atomic_fetch_add_explicit(&wd->next, 1, memory_order_relaxed);
		make_key(k, i, ks_tid(i));
		insert(cx, tree, k);
	}
	else if (mix == 'E')
		scan(cx, tree, i, 1 + (uint32_t) ((tap_rand(rng) >> 32) % SCAN_KEYS));
	else
		lookup(cx, tree, mix == 'D' ?
			   atomic_load_explicit(&wd->next, memory_order_relaxed) - 1 - i : i);
}

/* Which key next: r is random. */
static uint64_t
choose(uint64_t r)
{
	switch (wd->cell.load)
	{
		case MX_SKEW:
			{
				/* log(0.2) / log(0.8) */
				double		x = pow((double) (r >> 11) * 0x1p-53, 7.212567439);

				return (uint64_t) (x * (double) wd->keys);
			}
		case MX_RANGE:
			return wd->keys + (r >> 32) * RANGE_KEYS / (UINT64_C(1) << 32);
		default:
			return (uint64_t) ((unsigned __int128) r * wd->keys >> 64);
	}
}

/* A forked process must not pay for its first sight of every page. */
static void
see_pages(ax_ctx *cx)
{
	ax_memory_info mi;
	volatile const char *p = (const char *) wd->area;

	ax_memory(cx, &mi);
#ifdef MADV_POPULATE_WRITE
	if (madvise((void *) (uintptr_t) p, mi.touched_bytes / AX_PAGE * AX_PAGE, MADV_POPULATE_WRITE) == 0)
		return;
#endif
	for (uint64_t at = 0; at < mi.touched_bytes; at += AX_PAGE)
		(void) p[at];
}

static void
work(void *arg, int me)
{
	ax_ctx	   *cx = aligned_alloc(64, sizeof(ax_ctx));
	mr_hist    *h = calloc(1, sizeof(*h));	/* ours, until the end */
	const mx_cell *c = &wd->cell;
	int			tree = c->own_trees ? me : 0;
	uint64_t	rng = (uint64_t) (me + 1) * UINT64_C(0x9E3779B97F4A7C15),
				n = 0,
				last,
				end;

	if (!cx || !h)
		abort();
	ax_attach(cx, wd->area, me + 1, me + 1, &ax_port_default);
	tap_elide(cx);
	if (c->forks)
		see_pages(cx);
	atomic_fetch_add(&wd->ready, 1);
	while ((last = atomic_load(&wd->begin)) == 0)
		usleep(50);
	end = last + wd->ticks;
	while (mr_ticks() < last)
		;
	do
	{
		uint64_t	now;

		if (c->load == MX_TAIL)
		{
			uint8_t		k[KEY_LEN];
			uint64_t	i = atomic_fetch_add_explicit(&wd->next, 1, memory_order_relaxed);

			make_key(k, i, ks_tid(i));
			insert(cx, tree, k);
		}
		else if (c->mix)
			ycsb(cx, tree, me, &rng);
		else
		{
			uint64_t	i = choose(tap_rand(&rng));

			if (c->reads == 100 || (c->reads && (int) ((tap_rand(&rng) >> 32) % 100) < c->reads))
				lookup(cx, tree, i);
			else
				update(cx, tree, me, i);
		}
		if (++n % 1024 == 0)
			(void) ax_poll(cx);
		now = mr_ticks();
		mr_hist_add(h, now - last);
		last = now;
	} while (last < end);
	wd->w[me].hist = *h;
	if (ax_latches_held(cx))
		mr_die("a latch is held");
	ax_detach(cx);
	free(h);
	free(cx);
}

typedef struct fill_job
{
	int			workers;
} fill_job;

static void
fill(void *arg, int me)
{
	fill_job   *j = arg;
	ax_ctx	   *cx = aligned_alloc(64, sizeof(ax_ctx));
	uint8_t		k[TEXT_LEN];

	if (!cx)
		abort();
	ax_attach(cx, wd->area, me + 1, me + 1, &ax_port_default);
	tap_elide(cx);
	for (int t = 0; t < wd->trees; t++)
		for (uint64_t i = (uint64_t) me; i < wd->keys + RANGE_KEYS; i += (uint64_t) j->workers)
		{
			make_key(k, i, ks_tid(i));
			insert(cx, t, k);
		}
	ax_detach(cx);
	free(cx);
}

void
mx_setup(uint64_t keys)
{
	size_t		size = (size_t) 256 * keys + ((size_t) 3 << 30);

	wd = tap_shared(sizeof(*wd));
	wd->area = tap_area(size, MX_WORKERS_MAX + 1, 1 << 20);
	ax_attach(&main_cx, wd->area, 0, MX_WORKERS_MAX + 1, &ax_port_default);
	(void) mr_tick_ns();
}

double
mx_open(ax_structure s, uint32_t page_size, mx_load load, uint64_t keys, int own)
{
	fill_job	j = {load == MX_TAIL ? 1 : 2};
	ax_tree_info ti;

	wd->cell.load = load;
	wd->trees = own ? own : 1;
	wd->keys = load == MX_TAIL ? TAIL_KEYS : keys / (uint64_t) wd->trees;
	wd->len = load == MX_ZIPF_TEXT ? TEXT_LEN : KEY_LEN;
	if (load >= MX_ZIPF)
		zipf_begin();
	for (int t = 0; t < wd->trees; t++)
	{
		wd->tree[t] = ax_tree_alloc(&main_cx);
		if (!wd->tree[t])
			mr_die("no tree");
		mr_need(ax_tree_open(&main_cx, wd->tree[t], s, 0, page_size, &wd->gen[t]), AX_OK, "open");
	}
	tap_threads(j.workers, fill, &j);
	atomic_store(&wd->next, wd->keys + RANGE_KEYS);
	mx_info(&ti);
	if (ti.entries != wd->keys + RANGE_KEYS)
		mr_die("%llu entries of %llu", (unsigned long long) ti.entries, (unsigned long long) wd->keys);
	return (double) ti.bytes / (double) ti.entries;
}

void
mx_info(ax_tree_info *ti)
{
	/* what only waits for its epoch to be free is no part of the tree */
	(void) tap_quiesce(&main_cx);
	mr_need(ax_info(&main_cx, wd->tree[0], wd->gen[0], ti), AX_OK, "info");
}

void
mx_close(void)
{
	for (int t = 0; t < wd->trees; t++)
		ax_tree_close(&main_cx, wd->tree[t]);
	(void) tap_quiesce(&main_cx);
	for (int t = 0; t < wd->trees; t++)
		ax_tree_release(&main_cx, wd->tree[t]);
}

/* Waits for the workers to be ready, then tells them when to begin. */
static void
start_when_ready(void *arg, int i)
{
	if (i > 0)
	{
		work(arg, i - 1);
		return;
	}
	while (atomic_load(&wd->ready) < wd->cell.workers)
		usleep(50);
	/* long enough for all of them to wake up */
	atomic_store(&wd->begin, mr_ticks() + (uint64_t) (1e6 / mr_tick_ns()));
}

mx_result
mx_run(const mx_cell *c)
{
	static mr_hist all;
	ax_tree_info ti;
	mx_result	r;
	double		us = mr_tick_ns() / 1000;
	uint64_t	before,
				least = UINT64_MAX,
				most = 0;

	if (c->workers < 1 || c->workers > MX_WORKERS_MAX || (c->own_trees && wd->trees < c->workers))
		mr_die("%d workers on %d trees", c->workers, wd->trees);
	wd->cell = *c;
	wd->ticks = (uint64_t) (c->seconds * 1e9 / mr_tick_ns());
	atomic_store(&wd->ready, 0);
	atomic_store(&wd->begin, 0);
	mx_info(&ti);
	before = ti.entries;
	wd->begun = atomic_load(&wd->next);
	if (!c->forks)
		tap_threads(c->workers + 1, start_when_ready, NULL);
	else if (!tap_forks(c->workers + 1, start_when_ready, NULL))
		mr_die("a forked worker failed");
	memset(&all, 0, sizeof(all));
	for (int i = 0; i < c->workers; i++)
	{
		const mr_hist *h = &wd->w[i].hist;

		mr_hist_merge(&all, h);
		if (h->n < least)
			least = h->n;
		if (h->n > most)
			most = h->n;
	}
	/* nothing got lost, nothing was counted that was not done */
	mx_info(&ti);
	if (ti.entries != before + (atomic_load(&wd->next) - wd->begun))
		mr_die("%llu entries after %llu and %llu operations", (unsigned long long) ti.entries,
			   (unsigned long long) before, (unsigned long long) all.n);
	r.mops = (double) all.n / (c->seconds * 1e6);
	r.p50 = (double) mr_hist_at(&all, 0.5) * us;
	r.p99 = (double) mr_hist_at(&all, 0.99) * us;
	r.p999 = (double) mr_hist_at(&all, 0.999) * us;
	r.max = (double) all.max * us;
	r.slowest_to_mean = (double) least * c->workers / (double) all.n;
	r.slowest_to_fastest = (double) least / (double) most;
	return r;
}
