/*
 * test_stress.c
 *	  Many at once on one tree: threads, then processes.
 *
 *	  test_stress [threads|forks ...]
 *
 * Environment: SECONDS in all (5), WORKERS (32), PHASE: only this one,
 * SEED: these keys again.
 *
 * Every key is permanent (in from the beginning to the end), or owned by one
 * worker, who knows at any time whether it is in, or shared by all, counted by
 * who put it in or took it out.  So every look-up and every scan, whatever the
 * others do, is compared with what must and what must not be there.  In the
 * end the whole tree is.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/ax_area.h"
#include "model.h"

#define AREA_BYTES ((size_t) 256 << 20)
#define MAX_WORKERS 128

typedef struct phase
{
	keykind		kind;
	uint64_t	keys;
} phase;

static const phase share_phases[] = {
	{KK_DENSE, 30000}, {KK_UUID, 50000}, {KK_DUPS, 20000}, {KK_SHARED, 20000}, {KK_MIDDLE, 4000}
};

static const phase phases[] = {
	{KK_DENSE, 300}, {KK_SHARED, 100}, {KK_DUPS, 500}, {KK_TWO, 64},
	{KK_UUID, 50000}, {KK_MIDDLE, 1500}, {KK_DUPS_RANDOM, 20000}, {KK_SHARED, 20000}
};

/* With a tail buffer: keys that rise are what it takes. */
static const phase tail_phases[] = {
	{KK_DENSE, 300}, {KK_DENSE, 10000}, {KK_STEP997, 10000}, {KK_UUID, 20000}, {KK_DUPS, 5000},
	{KK_SHARED, 20000}, {KK_PAIR, 20000}
};

/* One key, in shared memory. */
typedef struct kstate
{
	_Atomic int in;				/* shared: insertions minus removals */
	int			owner;			/* -1: shared, -2: permanent */
} kstate;

typedef struct world
{
	ax_area    *area;
	ax_tree    *tree;
	uint64_t	gen;
	model		m;				/* the universe; not its state */
	kstate	   *ks;
	int			workers;
	bool		same_tids;		/* so only the whole key tells entries apart */
	bool		tail;			/* a buffer: what is new is not always known */
	bool		shares;			/* of a load: own keys are a range of all */
	uint64_t	until_ns;
	_Atomic uint64_t *ops;
} world;

static ax_ctx main_cx;
static _Thread_local ax_ctx *this_cx;	/* for the last words */

/*
 * On few processors threads hardly ever meet: so at the pause points give way
 * now and then, and sometimes for longer.
 */
static void
jostle(const char *name)
{
	static _Thread_local uint64_t rng;
	uint64_t	r;

	if (rng == 0)
		rng = ((uint64_t) (uintptr_t) &rng ^ (uint64_t) getpid() << 20) | 1;
	r = tap_rand(&rng);
	if (r % 64 == 0)
		sched_yield();
	else if (r % 4096 == 1)
		nanosleep(&(struct timespec) {0, (long) (r >> 32) % 200000}, NULL);
}

static uint64_t
now_ns(void)
{
	return ax_port_default.now_ns();
}

static void
fail(world *w, int me, const char *what, uint64_t i, int status)
{
	fprintf(stderr, "# %s, worker %d: %s, key %llu, status %d\n", w->m.name, me, what,
			(unsigned long long) i, status);
	if (this_cx && i < w->m.n)
	{
		const mkey *k = &w->m.key[i];
		ax_tree_info ti;
		bool		good = true;
		char		msg[200] = "";

		fprintf(stderr, "# owner %d, in %d; contains now: %d;", w->ks[i].owner, atomic_load(&w->ks[i].in),
				(int) ax_contains(this_cx, w->tree, w->gen, k->p, k->len));
		(void) tap_check(this_cx, w->tree, w->gen, &ti, &good, msg, sizeof(msg));
		fprintf(stderr, " check: %s\n", good ? "clean" : msg);
	}
	fflush(stderr);
	abort();
}

static uint64_t
tid_of(const mkey *k)
{
	uint64_t	t = 0;

	for (int i = 0; i < 6; i++)
		t = t << 8 | k->p[k->len - 6 + (uint32_t) i];
	return t;
}

/* Must it be there (1), must it not (0), or may it be (-1)? */
static int
expected(world *w, int me, uint64_t i)
{
	kstate	   *k = &w->ks[i];

	if (k->owner == -2)
		return 1;
	if (k->owner == me)
		return atomic_load_explicit(&k->in, memory_order_relaxed);
	return -1;
}

static void
change(world *w, ax_ctx *cx, int me, uint64_t i, bool insert)
{
	const mkey *k = &w->m.key[i];
	ax_status	r;
	int			e = expected(w, me, i);

	do
	{
		r = insert ? ax_insert(cx, w->tree, w->gen, k->p, k->len)
			: ax_remove(cx, w->tree, w->gen, k->p, k->len);
		if (ax_latches_held(cx))
			fail(w, me, "a latch is held", i, (int) r);
	} while (r == AX_BUSY);
	if (r != AX_OK && r != (insert ? AX_EXISTS : AX_NOTFOUND))
		fail(w, me, insert ? "insert" : "remove", i, (int) r);
	if (w->tail && insert && e == 1 && r == AX_OK)
		return;					/* in the tree, and now in the buffer, too */
	if (e >= 0 && (r == AX_OK) != (e != (int) insert))
		fail(w, me, insert ? "insert of an own key" : "remove of an own key", i, (int) r);
	if (r == AX_OK)
		atomic_fetch_add_explicit(&w->ks[i].in, insert ? 1 : -1, memory_order_relaxed);
}

/* Own keys of a stretch, by one sorted insertion, as a share of a load, or many at once. */
static void
change_sorted(world *w, ax_ctx *cx, int me, uint64_t i, uint64_t stretch)
{
	const uint8_t **k = malloc(stretch * sizeof(*k));
	uint32_t   *len = malloc(stretch * sizeof(*len));
	uint64_t   *which = malloc(stretch * sizeof(*which));
	uint64_t	at = 0;
	uint64_t	n = 0;

	if (!k || !len || !which)
		abort();
	for (uint64_t x = i; x < w->m.n && x < i + stretch; x++)
		if (w->ks[x].owner == me)
		{
			k[n] = w->m.key[x].p;
			len[n] = w->m.key[x].len;
			which[n++] = x;
		}
	while (at < n)
	{
		uint64_t	done,
					added,
					fresh = 0;
		uint32_t	some;
		bool		many = !w->shares && (i & 1);
		ax_status	r = w->shares ?
			ax_load_share(cx, w->tree, w->gen,
					&(ax_keys) {k + at, len + at, 0, n - at}, 90, &done, &added) :
			many ? ax_insert_many(cx, w->tree, w->gen,
					&(ax_keys) {k + at, len + at, 0, (uint32_t) (n - at)}, &some) :
			ax_insert_sorted(cx, w->tree, w->gen,
					&(ax_keys) {k + at, len + at, 0, n - at}, &done, &added);

		if (many)
			done = some;
		if ((r != AX_OK && r != AX_BUSY) || done > n - at || ax_latches_held(cx))
			fail(w, me, "sorted insertion", i, (int) r);
		for (uint64_t x = at; x < at + done; x++)
			fresh += atomic_exchange_explicit(&w->ks[which[x]].in, 1, memory_order_relaxed) == 0;
		if (!many && (w->tail ? added < fresh : fresh != added))
			fail(w, me, "sorted insertion: as new are counted", i, (int) added);
		at += done;
	}
	free(k);
	free(len);
	free(which);
}

/* Is that what a look-up of key i may say? */
static void
tids_right(world *w, int me, uint64_t i, const uint64_t *tids, uint32_t n, bool more)
{
	const mkey *k = &w->m.key[i];
	int			e = expected(w, me, i);
	bool		there = false;

	if (n > 40)
		fail(w, me, "lookup: too many", i, (int) n);
	for (uint32_t x = 0; x < n; x++)
	{
		if (x && tids[x] <= tids[x - 1])
			fail(w, me, "lookup: TIDs out of order", i, (int) x);
		there |= tids[x] == tid_of(k);
	}
	if (there ? e == 0 : (e == 1 && (!more || (n && tids[n - 1] > tid_of(k)))))
		fail(w, me, there ? "lookup finds what is not there" : "lookup misses", i, (int) n);
}

static void
look(world *w, ax_ctx *cx, int me, uint64_t i, uint64_t company)
{
	const mkey *k = &w->m.key[i];
	uint64_t	tids[40];
	uint32_t	n;
	bool		more;
	ax_found	f = {.tids = tids, .max = 40};
	ax_status	r;
	int			e = expected(w, me, i);

	do
		r = ax_contains(cx, w->tree, w->gen, k->p, k->len);
	while (r == AX_BUSY);
	if ((r != AX_OK && r != AX_NOTFOUND) || (e >= 0 && (r == AX_OK) != (e == 1)))
		fail(w, me, "contains", i, (int) r);
	do
		r = ax_lookup(cx, w->tree, w->gen, k->p, k->len - 6, &f);
	while (r == AX_BUSY);
	if (r != AX_OK)
		fail(w, me, "lookup", i, (int) r);
	tids_right(w, me, i, tids, f.n, f.more);
	do
		r = mt_company(cx, w->tree, w->gen, w->m.key, w->m.n, i, company, tids, 40, &n, &more);
	while (r == AX_BUSY);
	if (r != AX_OK)
		fail(w, me, "lookup in company", i, (int) r);
	tids_right(w, me, i, tids, n, more);
}

static uint64_t
find_key(world *w, const uint8_t *p, uint32_t len)
{
	mkey		k = {p, len};
	uint64_t	lo = 0,
				hi = w->m.n;

	while (lo < hi)
	{
		uint64_t	mid = (lo + hi) / 2;

		if (mt_cmp(&w->m.key[mid], &k) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Keys a..z of the universe, both included, one way or the other. */
static void
scan(world *w, ax_ctx *cx, int me, uint64_t *rng)
{
	static const uint32_t maxes[] = {1, 5, 40, 300};
	uint64_t	r = tap_rand(rng);
	bool		back = r & 1,
				keys = (r & 6) != 0 || w->same_tids;
	uint32_t	max = maxes[(r >> 4) & 3];
	uint64_t	a = (r >> 8) % w->m.n;
	uint64_t	z = a + (max < 40 ? 20 : (r >> 32) % w->m.n) % 3000;
	uint64_t	tids[300];
	uint32_t	off[301];
	uint32_t	room = 64 * w->m.longest > (32u << 10) ? 4 * w->m.longest : 32u << 10;
	uint8_t    *keybuf = malloc(room),
			   *last = malloc(2 * w->m.longest + 16),
			   *from = malloc(w->m.longest + 8);
	ax_batch	b = {.backward = back, .want_keys = keys, .max = max, .tids = tids,
		.key_off = off, .keybuf = keybuf, .keybuf_size = room,
	.lastkey = last, .lastkey_size = 2 * w->m.longest + 16};
	int64_t		at,
				stop;

	if (!keybuf || !last || !from)
		abort();
	if (z >= w->m.n)
		z = w->m.n - 1;
	b.lo = (ax_bound) {w->m.key[a].p, w->m.key[a].len, false};
	b.hi = (ax_bound) {w->m.key[z].p, w->m.key[z].len, true};
	at = back ? (int64_t) z : (int64_t) a;
	stop = back ? (int64_t) a - 1 : (int64_t) z + 1;
	for (;;)
	{
		ax_status	x;
		uint32_t	k = 0;
		int64_t		end;

		do
			x = ax_scan(cx, w->tree, w->gen, &b);
		while (x == AX_BUSY);
		if (x != AX_OK || b.n > max || (b.n == 0 && !b.exhausted))
			fail(w, me, "scan", a, (int) x);
		/* what this batch has covered */
		end = stop;
		if (!b.exhausted)
		{
			uint64_t	l = find_key(w, last, b.lastlen);

			if (l >= w->m.n || w->m.key[l].len != b.lastlen || memcmp(w->m.key[l].p, last, b.lastlen) != 0)
				fail(w, me, "scan: the last key is none of ours", l, (int) b.n);
			end = (int64_t) l + (back ? -1 : 1);
		}
		for (; at != end; at += back ? -1 : 1)
		{
			const mkey *q = &w->m.key[at];
			int			e = expected(w, me, (uint64_t) at);
			bool		hit = k < b.n && tids[k] == tid_of(q);

			if (keys && hit)
				hit = off[k + 1] - off[k] == q->len && memcmp(keybuf + off[k], q->p, q->len) == 0;
			if (hit && e == 0)
				fail(w, me, back ? "scan back finds what is not there" : "scan finds what is not there",
					 (uint64_t) at, (int) k);
			if (!hit && e == 1)
				fail(w, me, back ? "scan back misses" : "scan misses", (uint64_t) at, (int) k);
			if (hit)
				k++;
		}
		/* each entry was met on the way: so they are ordered, and distinct */
		if (k < b.n)
			fail(w, me, "scan: an entry out of order, or none of ours", (uint64_t) at, (int) k);
		if (b.exhausted)
			break;
		memcpy(from, last, b.lastlen);
		*(back ? &b.hi : &b.lo) = (ax_bound) {from, b.lastlen, !back};
	}
	free(keybuf);
	free(last);
	free(from);
}

static uint64_t
own_key(world *w, int me, uint64_t r)
{
	for (int i = 0; i < 200; i++)
	{
		uint64_t	k = (r + (uint64_t) i) % w->m.n;

		if (w->ks[k].owner == me)
			return k;
	}
	return r % w->m.n;
}

/* The buffer is shut, opened where the next key is, or emptied a little. */
static void
tail_op(world *w, ax_ctx *cx, uint64_t r)
{
	bool		more;
	ax_status	x;

	if (r % 8 == 0)
		x = ax_tree_set_tail(cx, w->tree, w->gen, AX_TAIL_OFF);
	else if (r % 8 == 1)
		x = ax_tree_set_tail(cx, w->tree, w->gen, AX_TAIL_AUTO);
	else if (r % 8 < 5)
		x = ax_tree_set_tail(cx, w->tree, w->gen, AX_TAIL_ON);
	else
		x = ax_tail_flush(cx, w->tree, w->gen, &more);
	if ((x != AX_OK && x != AX_BUSY) || ax_latches_held(cx))
		fail(w, -1, "tail buffer", r % 8, (int) x);
}

static void
worker(void *arg, int me)
{
	world	   *w = arg;
	ax_ctx	   *cx = aligned_alloc(64, sizeof(ax_ctx));
	uint64_t	rng = (uint64_t) (me + 1) * UINT64_C(0x9E3779B97F4A7C15) + w->until_ns;
	uint64_t	n = 0;

	if (!cx)
		abort();
	this_cx = cx;
	ax_attach(cx, w->area, me + 1, me + 1, &ax_port_default);
	tap_elide(cx);
	if (w->shares)
		change_sorted(w, cx, me, 0, w->m.n);
	while ((n & 15) || now_ns() < w->until_ns)
	{
		uint64_t	r = tap_rand(&rng);
		uint64_t	i = (r >> 20) % w->m.n;

		n++;
		if (w->tail && (r & 128))
		{
			/* all about a place that rises with time */
			i = now_ns() / 20000 % w->m.n + (r >> 20) % 64;
			i = i >= 32 ? i - 32 : 0;
			i = own_key(w, me, i < w->m.n ? i : w->m.n - 1);
		}
		if (w->tail && (r >> 50) % 256 == 0)
			tail_op(w, cx, r >> 20);
		if ((r & 7) < 3 && !(w->tail && (r & 128)))
			i = own_key(w, me, i);
		if (w->ks[i].owner != -1 && w->ks[i].owner != me)
			look(w, cx, me, i, tap_rand(&rng));
		else
			switch ((r >> 3) & 15)
			{
				case 0:
				case 1:
				case 2:
				case 3:
				case 4:
				case 5:
					change(w, cx, me, i, true);
					break;
				case 6:
				case 7:
				case 8:
				case 9:
				case 10:
				case 11:
					change(w, cx, me, i, false);
					break;
				case 12:
					if ((r >> 8) % 4 == 0)
						scan(w, cx, me, &rng);
					break;
				case 13:
					if ((r >> 8) % 8 == 0)
						change_sorted(w, cx, me, i, w->shares ? (r >> 12) % 3000 + 1 : 500);
					break;
				default:
					look(w, cx, me, i, tap_rand(&rng));
					break;
			}
		/* now and then leave for good, and another comes */
		if (n % 2048 == 0 && me % 4 == 1)
		{
			ax_detach(cx);
			ax_attach(cx, w->area, me + 1, me + 1, &ax_port_default);
			tap_elide(cx);
		}
		if (n % 1024 == 0 && me % 4 == 2)
			(void) ax_poll(cx);
		if (n % 4096 == 0 && me == 3)
		{
			ax_tree_info ti;
			bool		good;
			char		msg[200];
			ax_status	x = tap_check(cx, w->tree, w->gen, &ti, &good, msg, sizeof(msg));

			if (x != AX_OK || !good)
			{
				fprintf(stderr, "# check beside writers: %s\n", msg);
				fail(w, me, "check", 0, (int) x);
			}
		}
	}
	ax_detach(cx);
	free(cx);
	atomic_fetch_add(w->ops, n);
}

/* Everything against what it must be, with nobody else there. */
static void
verify(world *w)
{
	model	   *m = &w->m;

	m->cx = &main_cx;
	m->t = w->tree;
	m->gen = w->gen;
	m->tail = w->tail;
	m->count = 0;
	for (uint64_t i = 0; i < m->n; i++)
	{
		int			in = atomic_load(&w->ks[i].in);

		if (in != 0 && in != 1)
			mt_die(m, "key %llu was put in %d times more than taken out", (unsigned long long) i, in);
		m->in[i] = in == 1;
		m->count += (uint64_t) in;
	}
	mt_check(m, "in the end");
	mt_compare_all(m);
	for (uint64_t i = 0; i < m->n; i++)
		mt_contains(m, i);
}

/* What a load by shares begins with: some of the keys that will be of it. */
static void
load_sample(world *w)
{
	const uint8_t **k = malloc(w->m.n * sizeof(*k));
	uint32_t   *len = malloc(w->m.n * sizeof(*len));
	uint64_t	n = 0;

	if (!k || !len)
		abort();
	for (uint64_t i = 7; i < w->m.n; i += 100)
		if (w->ks[i].owner >= 0)
		{
			k[n] = w->m.key[i].p;
			len[n++] = w->m.key[i].len;
			atomic_store(&w->ks[i].in, 1);
		}
	if (ax_load(&main_cx, w->tree, w->gen, &(ax_keys) {k, len, 0, n}, 0) != AX_OK)
		abort();
	free(k);
	free(len);
}

static void
world_begin(world *w, const phase *p, int workers, void *mem, uint64_t seed, bool shares)
{
	memset(w, 0, sizeof(*w));
	w->workers = workers;
	w->shares = shares;
	w->area = ax_area_init(mem, AREA_BYTES, MAX_WORKERS + 1, 1 << 20);
	if (!w->area)
		abort();
	mt_universe(&w->m, p->kind, shares ? tap_scaled(p->keys) : p->keys, seed);
	w->ks = tap_shared(w->m.n * sizeof(kstate) + 64);
	w->ops = (void *) &w->ks[w->m.n];
	w->ops = (void *) (((uintptr_t) w->ops + 7) & ~(uintptr_t) 7);
	ax_attach(&main_cx, w->area, 0, 999, &ax_port_default);
	tap_elide(&main_cx);
	w->tree = ax_tree_alloc(&main_cx);
	if (!w->tree || ax_tree_open(&main_cx, w->tree, tap_structure(), 0, tap_page_size(), &w->gen) != AX_OK)
		abort();
	w->tail = tap_tail() != AX_TAIL_OFF;
	if (w->tail && ax_tree_set_tail(&main_cx, w->tree, w->gen, tap_tail()) != AX_OK)
		abort();
	w->same_tids = p->kind == KK_TWO || p->kind == KK_NESTED || p->kind == KK_DUPS_RANDOM;
	for (uint64_t i = 0; i < w->m.n; i++)
	{
		uint64_t	r = tap_rand(&w->m.seed);

		w->ks[i].owner = r % 8 == 0 ? -2 : r % 8 < 3 && !w->tail ? -1 : (int) ((r >> 8) % (uint64_t) workers);
		/* loaded side by side: where nobody else writes, and where others do */
		if (shares && (w->ks[i].owner >= 0 || i / 1000 % 2 == 0))
			w->ks[i].owner = (int) (i * (uint64_t) workers / w->m.n);
	}
	if (shares)
		load_sample(w);
	for (uint64_t i = 0; i < w->m.n; i++)
	{
		if (w->ks[i].owner == -2)
		{
			if (ax_insert(&main_cx, w->tree, w->gen, w->m.key[i].p, w->m.key[i].len) != AX_OK)
				abort();
			atomic_store(&w->ks[i].in, 1);
		}
	}
}

static void
world_end(world *w)
{
	tap_unmap(w->ks, w->m.n * sizeof(kstate) + 64);
	mt_free(&w->m);
}

static void
run_phase(const phase *p, int workers, bool forked, uint64_t ns, uint64_t seed, bool shares)
{
	void	   *mem = tap_shared(AREA_BYTES);
	world		w;
	bool		good = true;
	ax_tree_info ti;
	ax_memory_info mi;

	world_begin(&w, p, workers, mem, seed, shares);
	w.until_ns = now_ns() + ns;
	if (forked)
		good = tap_forks(workers, worker, &w);
	else
		tap_threads(workers, worker, &w);
	if (ok(good, "%s, %llu keys: %d %s%s, %llu operations", w.m.name, (unsigned long long) w.m.n, workers,
		   forked ? "processes" : "threads", shares ? " that load shares" : "", (unsigned long long) atomic_load(w.ops)))
	{
		verify(&w);
		ok(tap_elide_counts(&main_cx, w.tree, w.gen), "elided where that is asked for, and there only");
		(void) ax_info(&main_cx, w.tree, w.gen, &ti);
		if (w.tail)
			tap_diag("tail buffer: %s, %llu inserts, %llu beside it, %llu flushed in %llu steps, %llu there",
					 ti.tail_mode, (unsigned long long) ti.tail_inserts, (unsigned long long) ti.tail_bypassed,
					 (unsigned long long) ti.tail_flushed, (unsigned long long) ti.tail_flushes,
					 (unsigned long long) ti.tail_entries);
		tap_diag("restarts %llu, pessimistic %llu, waits %llu, parks %llu", (unsigned long long) ti.restarts,
				 (unsigned long long) ti.pessimistic, (unsigned long long) ti.latch_waits,
				 (unsigned long long) ti.parks);
		ax_tree_close(&main_cx, w.tree);
		ok(tap_quiesce(&main_cx), "nothing is pending after the close");
		ax_memory(&main_cx, &mi);
		if (!ok(mi.used_bytes == 0 && mi.retired_bytes == 0, "memory is back"))
			tap_diag("used %llu, retired %llu", (unsigned long long) mi.used_bytes, (unsigned long long) mi.retired_bytes);
		ax_tree_release(&main_cx, w.tree);
	}
	ax_detach(&main_cx);
	world_end(&w);
	tap_unmap(mem, AREA_BYTES);
}

int
main(int argc, char **argv)
{
	const char *e = getenv("WORKERS");
	int			workers = e ? atoi(e) : 32;
	double		seconds = (e = getenv("SECONDS")) ? atof(e) : 5;
	const phase *ph = tap_tail() == AX_TAIL_OFF ? phases : tail_phases;
	int			np = (int) (ph == phases ? sizeof(phases) / sizeof(phases[0]) :
							sizeof(tail_phases) / sizeof(tail_phases[0]));
	bool		threads = argc < 2,
				forks = argc < 2;
	int			nshares = (int) (sizeof(share_phases) / sizeof(share_phases[0]));
	int			first = 0;
	uint64_t	seed = now_ns() / 1000000 % 1000000;
	uint64_t	each;

	for (int i = 1; i < argc; i++)
	{
		threads |= !strcmp(argv[i], "threads");
		forks |= !strcmp(argv[i], "forks");
	}
	if (workers < 1 || workers > MAX_WORKERS)
		workers = 32;
#if defined(AX_TSAN)
	forks = false;				/* threads only */
	if (workers > 8)
		workers = 8;
#endif
	if ((e = getenv("SEED")) != NULL)
		seed = strtoull(e, NULL, 10);
	tap_point_hook = jostle;
	tap_diag("seed %llu", (unsigned long long) seed);
	if ((e = getenv("PHASE")) != NULL && atoi(e) >= 0 && atoi(e) < np)
	{
		first = atoi(e);
		np = 1;
		nshares = 0;
	}
	if (!ax_can_load_share(tap_structure()))
		nshares = 0;
	each = (uint64_t) (seconds * 1e9 / (np * (int) threads + np * (int) forks + 1));
	if (threads)
		for (int i = 0; i < np; i++)
			run_phase(&ph[first + i], workers, false, each, seed + (uint64_t) i, false);
#ifdef AX_ASAN
	ax_poisoning = false;		/* shadow memory is each process's own */
#endif
	if (forks)
		for (int i = 0; i < np; i++)
			run_phase(&ph[first + i], workers, true, each, seed + 100 + (uint64_t) i, false);
	for (int i = 0; i < nshares; i++)
		for (int f = 0; f < 2; f++)
			if (f ? forks : threads)
				run_phase(&share_phases[i], workers, f, each / 2, seed + 200 + (uint64_t) i, true);
	return tap_done();
}
