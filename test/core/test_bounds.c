/*
 * test_bounds.c
 *	  What a call does for others, and what a process keeps, is bounded: the freeing
 *	  of a large tree goes in parts, nobody frees or waits with a latch held, and what
 *	  an idle process keeps can be had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_area.h"
#include "core/base/ax_call.h"
#include "keyset.h"
#include "tap.h"

#define BIG (1 << 20)
#define PART ((uint64_t) AX_REAP_PAGES * AX_PAGE + BIG)

static ax_port port;
static _Atomic uint64_t yields;

static void
count_yield(void)
{
	atomic_fetch_add(&yields, 1);
	ax_port_default.yield();
}

static uint64_t
used(ax_ctx *cx)
{
	ax_memory_info m;

	ax_memory(cx, &m);
	return m.used_bytes;
}

/* A tree of so many bytes of objects of one size, all at once. */
static ax_tree *
large_tree(ax_ctx *cx, uint64_t bytes, uint32_t object)
{
	ax_tree    *t = ax_tree_alloc(cx);
	uint64_t	gen;
	ax_store   *st;

	if (ax_tree_open(cx, t, AX_ART_OLC, 0, 0, &gen) != AX_OK || ax_enter(cx, t, gen, &st) != AX_OK)
		return NULL;
	for (uint64_t n = 0; n < bytes; n += object)
		if (!ax_alloc(cx, st, object, false))
			break;
	ax_leave(cx);
	return t;
}

/* Close it, and let two epochs pass in which nobody comes by. */
static void
drop(ax_area *a, ax_ctx *cx, ax_tree *t)
{
	ax_tree_close(cx, t);
	ax_tree_release(cx, t);
	atomic_fetch_add(&a->epoch, 2);
}

static void
test_dropped(void)
{
	size_t		size = (size_t) 128 << 20;
	ax_area    *a = tap_area(size, 4, 1 << 20);
	static ax_ctx cx,
				other;
	uint64_t	before,
				now,
				most = 0;
	int			rounds = 0;
	ax_pending	left;

	ax_attach(&cx, a, 0, 1, &port);
	ax_attach(&other, a, 1, 2, &port);
	drop(a, &cx, large_tree(&cx, 20 << 20, 1000));
	drop(a, &cx, large_tree(&cx, 60 << 20, BIG - AX_PAGE));
	before = used(&cx);
	ok(before > 80 << 20, "two trees of %llu MB are dropped", (unsigned long long) before >> 20);

	/* what any process does now and then at the end of a call */
	ax_reclaim(&other);
	now = used(&cx);
	ok(now < before && before - now <= PART, "somebody who comes by frees %llu kB of them",
	   (unsigned long long) (before - now) / 1024);
	do
	{
		before = used(&cx);
		left = ax_poll(&other);
		now = used(&cx);
		if (before - now > most)
			most = before - now;
	} while (++rounds < 1000 && left == AX_PENDING_MORE);
	ok(rounds > 10 && most <= PART, "%d rounds of housekeeping, %llu kB at most in one", rounds,
	   (unsigned long long) most / 1024);
	ok(left == AX_PENDING_NOTHING && now == 0, "and then nothing is pending or left");
	ax_detach(&other);
	ax_detach(&cx);
	tap_unmap(a, size);
}

/* No page is left but those of a dropped tree, or on their way back. */
static void
test_latched(void)
{
	size_t		size = (size_t) 32 << 20;
	ax_area    *a = tap_area(size, 4, 1 << 20);
	static ax_ctx cx;
	ax_tree    *dropped,
			   *t;
	uint64_t	gen,
				w;
	ax_store   *st;
	ax_word		word = AX_WORD_INIT;
	void	   *p;

	ax_attach(&cx, a, 0, 1, &port);
	t = ax_tree_alloc(&cx);
	ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen);
	dropped = large_tree(&cx, size, 1000);
	drop(a, &cx, dropped);
	ax_enter(&cx, t, gen, &st);
	while (ax_alloc(&cx, st, 5000, false) && ax_stack_empty(&a->dying))
		;
	ax_leave(&cx);
	ok(!ax_stack_empty(&a->dying), "a shortage frees a part of a dropped tree only");

	/* all that it has freed is taken again, by a tree that stays */
	ax_enter(&cx, t, gen, &st);
	while ((p = ax_pages_take(&cx, 1, AX_OVERHEAD, 0, false, NULL)) != NULL)
		;
	(void) ax_word_lock(&cx, &word, &w);
	atomic_fetch_add(&a->freeing, 1);
	atomic_store(&yields, 0);
	p = ax_alloc(&cx, st, 20000, false);
	ok(p == NULL && atomic_load(&yields) == 0, "with a latch held it neither frees nor waits");
	ok(!ax_body(&cx)->alloc_busy, "and it is a lack of memory: the call looks for more outside");
	ax_word_unlock(&cx, &word, false);
	atomic_fetch_sub(&a->freeing, 1);
	p = ax_alloc(&cx, st, 20000, false);
	ok(p != NULL, "without one it does");
	ax_leave(&cx);
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx) && used(&cx) == 0, "quiescent");
	ax_detach(&cx);
	tap_unmap(a, size);
}

/* What a process keeps at hand, having used every class of many trees. */
static void
test_magazines(void)
{
	enum
	{
		TREES = 40
	};
	size_t		size = (size_t) 256 << 20;
	ax_area    *a = tap_area(size, 2, 1 << 20);
	static ax_ctx cx;
	ax_tree    *t[TREES];
	uint64_t	kept = 0;
	bool		good = true;

	ax_attach(&cx, a, 0, 1, &port);
	for (int i = 0; i < TREES; i++)
	{
		uint64_t	gen;
		ax_store   *st;

		t[i] = ax_tree_alloc(&cx);
		ax_tree_open(&cx, t[i], AX_ART_OLC, 0, 0, &gen);
		ax_enter(&cx, t[i], gen, &st);
		for (int cls = 0; cls < AX_NCLASSES; cls++)
		{
			void	   *p[20];

			for (int k = 0; k < 20; k++)
				good = (p[k] = ax_alloc(&cx, st, ax_class_size(cls), false)) != NULL && good;
			for (int k = 0; k < 20; k++)
				ax_unalloc(&cx, st, p[k], ax_class_size(cls));
		}
		ax_leave(&cx);
	}
	for (int i = 0; i < AX_MAGS; i++)
	{
		ax_magazine *m = &ax_body(&cx)->mags[i];

		kept += m->n * (uint64_t) ax_class_size((int) m->cls);
	}
	ok(good && kept > 0 && kept <= AX_MAGS * AX_MAG_BYTES && kept <= 128 << 10,
	   "a process keeps %llu bytes of free objects", (unsigned long long) kept);
	for (int i = 0; i < TREES; i++)
		ax_tree_close(&cx, t[i]);
	ok(tap_quiesce(&cx) && used(&cx) == 0, "quiescent");
	ax_detach(&cx);
	tap_unmap(a, size);
}

/*
 * What an idle process keeps at hand is given back by another, so that the spans go; in
 * a call it keeps it, and one that comes in at that moment waits.
 */
static ax_ctx idle,
			busy;
static ax_tree *theirs;
static uint64_t their_gen;
static bool waited;

static void
yield_once(void)
{
	waited = true;
	/* the other one's part, which stands still in our hook */
	atomic_store(&ax_body(&idle)->slot->emptied, 0);
}

/* At a point, come in; and at the first, when we were seen idle, stay. */
static const char *point;
static bool reads,				/* come in to read, and then allocate after all */
			read_waited;

static void
come_in(const char *name)
{
	ax_store   *st;

	if (strcmp(name, point) != 0)
		return;
	tap_point_hook = NULL;
	if (reads)
	{
		for (int i = 0; i < 2; i++)		/* the second by a plain store, where that can be */
		{
			if (i == 1)
				ax_leave(&idle);
			if (ax_enter_read(&idle, theirs, their_gen, &st) != AX_OK)
				return;
		}
		read_waited = waited;
		ax_epoch_change(&idle);
		ax_leave(&idle);
		return;
	}
	if (ax_enter(&idle, theirs, their_gen, &st) == AX_OK && strcmp(point, "epoch:emptying") == 0)
		ax_leave(&idle);
}

static void
keep(ax_store **st)
{
	void	   *p[6];

	if (ax_enter(&idle, theirs, their_gen, st) != AX_OK)
		return;
	for (int i = 0; i < 6; i++)
		p[i] = ax_alloc(&idle, *st, 512, false);
	for (int i = 0; i < 6; i++)
		ax_unalloc(&idle, *st, p[i], 512);
}

static uint32_t
kept(void)
{
	uint32_t	n = 0;

	for (int i = 0; i < AX_MAGS; i++)
		n += ax_body(&idle)->mags[i].n;
	return n;
}

static void
test_idle(void)
{
	size_t		size = (size_t) 16 << 20;
	ax_area    *a = tap_area(size, 3, 1 << 20);
	ax_port		once = ax_port_default;
	ax_store   *st;
	void	   *first,
			   *second;
	uint32_t	had;

	once.yield = yield_once;
	ax_attach(&idle, a, 0, 1, &once);
	ax_attach(&busy, a, 1, 2, &port);
	theirs = ax_tree_alloc(&busy);
	ax_tree_open(&busy, theirs, AX_ART_OLC, 0, 0, &their_gen);
	keep(&st);
	had = kept();
	ax_flush_idle(&busy);
	ok(had > 0 && kept() == had, "in a call a process keeps its %u free objects", had);
	first = ax_alloc(&idle, st, 512, false);
	ax_leave(&idle);
	ax_flush_idle(&busy);
	ok(kept() == 0, "an idle one's are given back");
	ok(atomic_load(&st->heap[ax_class_of(512)].live) == 1, "to their spans, but what is in use");
	ax_enter(&idle, theirs, their_gen, &st);
	second = ax_alloc(&idle, st, 512, false);
	ok(second && second != first, "and it takes others");
	ax_unalloc(&idle, st, first, 512);
	ax_unalloc(&idle, st, second, 512);
	ax_leave(&idle);
	had = kept();
	point = "epoch:seen_idle";
	tap_point_hook = come_in;
	ax_flush_idle(&busy);
	ok(!tap_point_hook && had > 0 && kept() == had, "who comes in before that keeps its");
	ax_leave(&idle);
	point = "epoch:emptying";
	tap_point_hook = come_in;
	ax_flush_idle(&busy);
	ok(!tap_point_hook && waited, "who comes in meanwhile waits");
	for (int joined = ax_body(&idle)->joined; joined >= 0; joined--)
	{
		ax_body(&idle)->joined = ax_body(&idle)->plain = joined;
		waited = false;
		reads = true;
		tap_point_hook = come_in;
		ax_flush_idle(&busy);
		ok(!tap_point_hook && !read_waited && waited,
		   "who comes in to read does not, until it allocates%s", joined ? "" : ", nor with no plain stores");
		reads = false;
	}
	ax_flush_idle(&busy);
	ok(atomic_load(&st->heap[ax_class_of(512)].live) == 0, "each went back once");
	ax_tree_close(&busy, theirs);
	ok(tap_quiesce(&busy) && used(&busy) == 0, "quiescent");
	ax_detach(&idle);
	ax_detach(&busy);
	tap_unmap(a, size);
}

/*
 * A limit is full, and what was closed goes when others have left: no call says then that there
 * is no memory.
 */
static void
test_on_its_way(void)
{
	enum {KEYS = 20000, LARGE = 300000};
	static _Atomic uint64_t limit;
	static ax_group group = {.limit = &limit};
	static uint8_t big[LARGE];
	ax_group   *groups[AX_GROUPS] = {&group};
	size_t		size = (size_t) 64 << 20;
	ax_area    *a = tap_area(size, 3, 1 << 18);
	ax_tree    *t[3];
	uint64_t	g[3];
	uint8_t		(*keys)[14] = malloc(KEYS * sizeof(*keys));
	const uint8_t **at = malloc(KEYS * sizeof(*at));
	ax_status	r;

	atomic_store(&limit, 1 << 20);
	ax_attach(&idle, a, 0, 1, &port);
	ax_attach(&busy, a, 1, 2, &port);
	for (int i = 0; i < 3; i++)
	{
		t[i] = ax_tree_alloc(&busy);
		ax_tree_set_groups(t[i], groups);
		if (i < 2)
			ax_tree_open(&busy, t[i], AX_ART_OLC, 0, 0, &g[i]);
	}
	for (uint64_t i = 0; i < KEYS; i++)
	{
		ks_put8(keys[i], i * 1000003);
		ks_put_tid(keys[i] + 8, ks_tid(i));
		at[i] = keys[i];
	}
	ks_put_tid(big + LARGE - AX_TID_BYTES, ks_tid(1));
	for (uint64_t i = 0; (r = ax_insert(&busy, t[0], g[0], keys[i % KEYS], 14)) == AX_OK ||
		 r == AX_EXISTS; i++)
		ks_put8(keys[i % KEYS], i * 0x9E3779B97F4A7C15u);
	ok(r == AX_NOMEM, "a limit is full");
	for (uint64_t i = 0; i < KEYS; i++)
		ks_put8(keys[i], i * 1000003);

	/* somebody is inside, for long */
	atomic_fetch_add(&a->epoch, 10);
	atomic_store(&ax_body(&idle)->slot->epoch, atomic_load(&a->epoch));
	ax_tree_close(&busy, t[0]);
	ok(ax_insert(&busy, t[1], g[1], big, LARGE) == AX_BUSY, "an insert says that memory is on its way");
	ok(ax_load(&busy, t[1], g[1], &(ax_keys) {at, NULL, 14, KEYS}, 100) == AX_BUSY, "so does a load");
	atomic_store(&limit, atomic_load(&group.bytes));
	ok(ax_tree_open(&busy, t[2], AX_ART_OLC, 0, 0, &g[2]) == AX_BUSY, "and the opening of a tree");
	ax_body(&busy)->nomem_epoch = 1;
	ax_body(&busy)->nomem_busy = false;
	ok(ax_tree_open(&busy, t[2], AX_ART_OLC, 0, 0, &g[2]) == AX_BUSY, "whatever a call met that has ended");
	ax_body(&busy)->nomem_epoch = 1;
	ax_begin_anew(&busy);
	ok(ax_tree_open(&busy, t[2], AX_ART_OLC, 0, 0, &g[2]) == AX_BUSY, "or one that nobody has gone on with");
	atomic_store(&ax_body(&idle)->slot->epoch, 0);

	/* when he has left there is some, also for a call that goes on with one that is long over */
	ax_body(&busy)->nomem_epoch = 1;
	ax_body(&busy)->nomem_busy = true;
	ok(ax_tree_open(&busy, t[2], AX_ART_OLC, 0, 0, &g[2]) == AX_OK, "when he has left there is some");
	for (int i = 1; i < 3; i++)
		ax_tree_close(&busy, t[i]);
	ok(tap_quiesce(&busy) && used(&busy) == 0, "quiescent");
	free(at);
	free(keys);
	ax_detach(&idle);
	ax_detach(&busy);
	tap_unmap(a, size);
}

/* Key i of a group of the radix tree that begins with that byte. */
static ax_status
in_group(ax_ctx *by, uint8_t group, uint64_t i, bool put)
{
	uint8_t		k[15] = {group};

	ks_put8(k + 1, i * 0x9E3779B97F4A7C15u);
	ks_put_tid(k + 9, ks_tid(i));
	return put ? ax_insert(by, theirs, their_gen, k, 15) : ax_remove(by, theirs, their_gen, k, 15);
}

static int	looked;

/* A child comes before a node is looked at, and goes behind that. */
static void
child_comes(const char *name)
{
	if (looked == 0 && strcmp(name, "art.tidy.before_look") == 0)
	{
		looked = 1;
		(void) in_group(&idle, 3, 1, true);
	}
	else if (looked == 1 && strcmp(name, "art.tidy.looked") == 0)
	{
		looked = 2;
		(void) in_group(&idle, 3, 1, false);
	}
}

/*
 * A removal finds that its node has two children, and one goes: the smallest of nodes does not
 * become smaller.
 */
static void
test_smallest(void)
{
	static const ax_structure all[] = {AX_ART_OLC, AX_ART_ROWEX, AX_ART_OPTIQL};
	size_t		size = (size_t) 16 << 20;
	ax_area    *a = tap_area(size, 3, 1 << 18);

	ax_attach(&idle, a, 0, 1, &port);
	ax_attach(&busy, a, 1, 2, &port);
	theirs = ax_tree_alloc(&busy);
	for (int e = 0; e < 3; e++)
	{
		ax_tree_info ti;
		bool		sound;
		char		msg[256];

		ax_tree_open(&busy, theirs, all[e], 0, 0, &their_gen);
		for (uint64_t i = 0; i < 80; i++)
			in_group(&busy, (uint8_t) (1 + i % 2), i, true);
		for (uint64_t i = 2; i < 80; i += 2)
			in_group(&busy, 1, i, false);
		looked = 0;
		tap_point_hook = child_comes;
		in_group(&busy, 1, 0, false);
		tap_point_hook = NULL;
		ok(looked == 2 && tap_check(&busy, theirs, their_gen, &ti, &sound, msg, sizeof(msg)) == AX_OK &&
		   sound && ti.entries == 40, "engine %d: a child goes while its node is looked at", (int) all[e]);
		ax_tree_close(&busy, theirs);
		(void) tap_quiesce(&busy);
	}
	ax_tree_release(&busy, theirs);
	ax_detach(&idle);
	ax_detach(&busy);
	tap_unmap(a, size);
}

/*
 * A B+-tree of short separators, some of which are longer: its inner pages stay few.
 */
static void
test_inner(void)
{
	size_t		size = (size_t) 64 << 20;
	ax_area    *a = tap_area(size, 2, 1 << 20);
	ax_tree    *t;
	uint64_t	gen,
				rng = 88172645463325252u;
	ax_tree_info ti;
	int			refused = 0;

	ax_attach(&busy, a, 0, 1, &port);
	t = ax_tree_alloc(&busy);
	ax_tree_open(&busy, t, AX_BTREE_OLC, 0, 1024, &gen);
	for (uint64_t i = 0; i < 60000; i++)
	{
		uint8_t		k[96];
		uint32_t	n = 4;
		uint64_t	x = tap_rand(&rng) % 12000;

		ks_put8(k, x << 32);
		if (x % 20 == 0)
		{
			memset(k + n, 'p', 60);
			n += 60;
		}
		ks_put8(k + n, tap_rand(&rng));
		ks_put_tid(k + n + 8, ks_tid(i));
		refused += ax_insert(&busy, t, gen, k, n + 8 + AX_TID_BYTES) != AX_OK;
	}
	ax_info(&busy, t, gen, &ti);
	ok(refused == 0 && ti.leaves > 1000 && ti.inner_nodes * 20 < ti.leaves,
	   "separators of two lengths: %llu inner pages above %llu leaves",
	   (unsigned long long) ti.inner_nodes, (unsigned long long) ti.leaves);
	ax_tree_close(&busy, t);
	ok(tap_quiesce(&busy) && used(&busy) == 0, "quiescent");
	ax_detach(&busy);
	tap_unmap(a, size);
}

/* Insert a key of len bytes, TID included: what it begins with, a number, and filling. */
static ax_status
put_of_length(ax_tree *t, uint64_t gen, const char *begin, unsigned number, uint32_t len)
{
	uint8_t		k[8192 / 4];
	size_t		n = strlen(begin);

	memset(k, 'f', sizeof(k));
	memcpy(k, begin, n);
	k[n] = (uint8_t) (number >> 8);
	k[n + 1] = (uint8_t) number;
	ks_put_tid(k + len - AX_TID_BYTES, ks_tid(number));
	return ax_insert(&busy, t, gen, k, len);
}

/*
 * Leaves are full of keys of one length, and a longer one comes into one, at any place.
 * Beside it each key takes more, so a half with it may be no page.
 */
static void
test_lengths(uint32_t page_size)
{
	static const ax_structure engines[] = {AX_BTREE_OLC, AX_BTREE_OPTIQL, AX_BTREE_COARSE};
	static const uint32_t lens[] = {8, 9, 10, 12, 16};
	size_t		size = (size_t) 64 << 20;
	ax_area    *a = tap_area(size, 2, 1 << 20);
	ax_tree    *t;
	int			trees = 0,
				bad = 0;

	ax_attach(&busy, a, 0, 1, &port);
	t = ax_tree_alloc(&busy);
	for (int v = 0; v < 5 * 3 * 2; v++)
	{
		/* short keys with a prefix or without, and a key from the longest down to half of it */
		const char *begin = v % 2 ? "common" : "";
		uint32_t	longer = page_size / 4 * (4 - (uint32_t) v / 2 % 3) / 4;
		uint32_t	len = lens[v / 6] + (uint32_t) strlen(begin);
		unsigned	n = (page_size - 32) / lens[v / 6];

		for (unsigned place = 0; place < 2 * n; place += n / 20 + 1)
		{
			uint64_t	gen;
			bool		sound;
			ax_tree_info ti;
			char		msg[256];

			ax_tree_open(&busy, t, engines[trees++ % 3], 0, page_size, &gen);
			for (unsigned i = 0; i < 4 * n; i++)
				bad += put_of_length(t, gen, begin, 2 * i + 2, len) != AX_OK;
			bad += put_of_length(t, gen, begin, 2 * place + 1, longer) != AX_OK;
			bad += tap_check(&busy, t, gen, &ti, &sound, msg, sizeof(msg)) != AX_OK || !sound ||
				ti.entries != 4 * n + 1;
			ax_tree_close(&busy, t);
			(void) ax_poll(&busy);
		}
	}
	ok(bad == 0, "pages of %u bytes: %d times a long key among short ones", page_size, trees);
	ok(tap_quiesce(&busy) && used(&busy) == 0, "quiescent");
	ax_detach(&busy);
	tap_unmap(a, size);
}

/*
 * A process dies outside, and the area survives: the next one in its slot has its
 * magazines, and one in another slot empties them.
 */
static void
test_heir(int slot)
{
	size_t		size = (size_t) 16 << 20;
	ax_area    *a = tap_area(size, 2, 1 << 20);
	ax_store   *st;
	ax_ctx		heir;

	ax_attach(&idle, a, 0, 1, &port);
	theirs = ax_tree_alloc(&idle);
	ax_tree_open(&idle, theirs, AX_ART_OLC, 0, 0, &their_gen);
	keep(&st);
	ax_leave(&idle);
	ok(kept() > 0 && atomic_load(&st->heap[ax_class_of(512)].live) > 0,
	   "a process dies, and has free objects");
	ax_area_survive(a);
	ax_attach(&heir, a, slot, 2, &port);
	ax_flush_idle(&heir);
	ok(atomic_load(&st->heap[ax_class_of(512)].live) == 0,
	   "one in %s slot gives them back", slot ? "another" : "its");
	ax_tree_close(&heir, theirs);
	ok(tap_quiesce(&heir) && used(&heir) == 0, "quiescent");
	ax_detach(&heir);

	ok(ax_area_intact(a, size, 2) && !ax_area_intact(a, size, 3) &&
	   !ax_area_intact(a, size - AX_PAGE, 2), "the header is that of this size");
	ok(ax_area_touched(a, size, 2) < size, "not all of it was touched");
	a->slots = (void *) ((char *) a->slots + AX_PAGE);
	ok(!ax_area_intact(a, size, 2) && ax_area_touched(a, size, 2) == size,
	   "a pointer that was written over is seen");
	tap_unmap(a, size);
}

/* A clock that is put forward by hand. */
static uint64_t clock_ns = 1000000000;

static uint64_t
stopped_clock(void)
{
	return clock_ns;
}

/* Retire so many objects 64 at a time, the clock going on; how far the epoch came. */
static uint64_t
epochs_of(ax_area *a, ax_ctx *cx, ax_tree *t, uint32_t size, int rounds, uint64_t ns)
{
	uint64_t	from = atomic_load(&a->epoch);

	for (int i = 0; i < rounds; i++)
	{
		ax_store   *st;

		ax_enter(cx, t, atomic_load(&t->gen), &st);
		for (int k = 0; k < 64; k++)
		{
			(void) ax_retire_reserve(cx, 1);
			ax_retire(cx, st, ax_alloc(cx, st, size, false), size);
		}
		ax_leave(cx);
		clock_ns += ns;
		ax_reclaim(cx);
	}
	return atomic_load(&a->epoch) - from;
}

static void
test_advances(void)
{
	size_t		size = (size_t) 32 << 20;
	ax_area    *a = tap_area(size, 2, 1 << 20);
	static ax_ctx cx;
	uint64_t	gen,
				n;
	ax_tree    *t;
	ax_port		p = port;

	p.now_ns = stopped_clock;
	ax_attach(&cx, a, 0, 1, &p);
	t = ax_tree_alloc(&cx);
	ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen);
	n = epochs_of(a, &cx, t, 64, 100, 0);
	ok(n <= 1, "6,400 objects retired at one moment: %llu advances", (unsigned long long) n);
	clock_ns += 1000000;
	n = epochs_of(a, &cx, t, 64, 100, 20000);
	ok(n == 10, "in two milliseconds: %llu", (unsigned long long) n);
	n = epochs_of(a, &cx, t, 64, 100, 200000);
	ok(n == 100, "in twenty: %llu", (unsigned long long) n);
	n = epochs_of(a, &cx, t, 1024, 100, 0);
	ok(n > 10, "at one moment, but of six megabytes: %llu", (unsigned long long) n);
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx) && used(&cx) == 0, "quiescent");
	ax_detach(&cx);
	tap_unmap(a, size);
}

/* Asked so often, it says from then on that this process is to end. */
static uint64_t asked;
static uint64_t hurry_after;

static bool
told_to_end(void)
{
	return ++asked > hurry_after;
}

enum
{
	LOADED = 400000, LOADED_KEY = 8 + AX_TID_BYTES
};

/* Keys of a load.  The bytes are those of the first. */
static const uint8_t **
keys_to_load(void)
{
	uint8_t    *bytes = malloc((size_t) LOADED * LOADED_KEY);
	const uint8_t **key = malloc(LOADED * sizeof(*key));

	for (uint64_t i = 0; i < LOADED; i++)
	{
		key[i] = bytes + i * LOADED_KEY;
		for (int k = 0; k < 8; k++)
			bytes[i * LOADED_KEY + (uint64_t) k] = (uint8_t) (i * 3 >> (56 - 8 * k));
		ax_put_tid(bytes + i * LOADED_KEY + 8, i + 1);
	}
	return key;
}

static void
free_keys(const uint8_t **key)
{
	free((void *) (uintptr_t) key[0]);
	free(key);
}

/*
 * A process that is told to end does so soon, though it loads much; and it takes
 * what is to be removed out all the same.
 */
static void
test_hurry(ax_structure engine, uint32_t page_size)
{
	const uint64_t at = 8;
	size_t		size = (size_t) 64 << 20;
	ax_area    *a = tap_area(size, 2, 1 << 20);
	const uint8_t **key = keys_to_load();
	static ax_ctx cx;
	uint64_t	gen,
				all;
	ax_tree    *t;
	ax_port		p = ax_port_default;
	ax_tree_info ti;

	p.hurry = told_to_end;
	asked = 0;
	hurry_after = UINT64_MAX;
	ax_attach(&cx, a, 0, 1, &p);
	t = ax_tree_alloc(&cx);
	ax_tree_open(&cx, t, engine, 0, page_size, &gen);

	asked = 0;
	hurry_after = at;
	ok(ax_load(&cx, t, gen, &(ax_keys) {key, NULL, LOADED_KEY, LOADED}, 90) == AX_NOMEM, "engine %d: a load is given up", (int) engine);
	ok(asked <= at + 8, "at once, when asked %llu times", (unsigned long long) asked);
	hurry_after = UINT64_MAX;
	asked = 0;
	ok(ax_load(&cx, t, gen, &(ax_keys) {key, NULL, LOADED_KEY, LOADED}, 90) == AX_OK, "else it goes on");
	all = asked;
	ok(all > 3 * at, "and is asked %llu times", (unsigned long long) all);
	asked = hurry_after = 0;
	for (uint64_t i = 0; i < LOADED; i += 7)
		if (ax_remove(&cx, t, gen, key[i], LOADED_KEY) != AX_OK)
			ok(false, "remove %llu", (unsigned long long) i);
	hurry_after = UINT64_MAX;
	ok(ax_info(&cx, t, gen, &ti) == AX_OK && ti.entries == LOADED - (LOADED + 6) / 7,
	   "what is to go is removed in a hurry, too");
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx) && used(&cx) == 0, "quiescent");
	ax_detach(&cx);
	tap_unmap(a, size);
	free_keys(key);
}

/* A load breathes: how often, and at which breath another process does what. */
static int	breaths,
			meddle_at;
static ax_ctx meddler;
static ax_tree *to_close,
		   *to_insert_into;
static uint64_t insert_gen,
			came_back;
static const uint8_t *early;
static bool put_by_load;
static ax_status inserted;

/* The first key: an insert, or a load of one where an insert wants a path (ax_cmp.h). */
static ax_status
put_early(ax_ctx *cx, ax_tree *t, uint64_t gen)
{
	return put_by_load ? ax_load(cx, t, gen, &(ax_keys) {&early, NULL, LOADED_KEY, 1}, 90) :
		ax_insert(cx, t, gen, early, LOADED_KEY);
}

static void
at_breath(const char *name)
{
	uint64_t	before;

	if (strcmp(name, "load.breath") != 0 || ++breaths != meddle_at)
		return;
	if (to_insert_into)
	{
		inserted = put_early(&meddler, to_insert_into, insert_gen);
		return;
	}
	before = used(&meddler);
	ax_tree_close(&meddler, to_close);
	for (int i = 0; i < 100; i++)
		(void) ax_poll(&meddler);
	came_back = before - used(&meddler);
}

/* What others free while a load goes on comes back meanwhile, and the load's own store may go. */
static void
test_breath(ax_structure engine)
{
	size_t		size = (size_t) 128 << 20;
	ax_area    *a = tap_area(size, 3, 1 << 20);
	const uint8_t **key = keys_to_load();
	static ax_ctx cx;
	int			all,
				at;
	uint64_t	gen;
	ax_tree    *t;
	ax_tree_info ti;

	ax_attach(&cx, a, 0, 1, &ax_port_default);
	ax_attach(&meddler, a, 1, 2, &ax_port_default);
	t = ax_tree_alloc(&cx);
	ax_tree_open(&cx, t, engine, 0, 0, &gen);
	to_close = large_tree(&meddler, 20 << 20, 1000);
	breaths = 0;
	meddle_at = 3;
	tap_point_hook = at_breath;
	ok(ax_load(&cx, t, gen, &(ax_keys) {key, NULL, LOADED_KEY, LOADED}, 90) == AX_OK, "engine %d: a load", (int) engine);
	all = breaths;
	ok(all >= LOADED / AX_BREATH_KEYS && came_back >= 20 << 20, "breathes %d times, and %llu MB of others come back meanwhile",
	   all, (unsigned long long) came_back >> 20);
	ok(ax_info(&cx, t, gen, &ti) == AX_OK && ti.entries == LOADED, "nothing is missing");

	/* in the end, too, where HydraList makes its search layer */
	for (int i = 0; i < 2; i++)
	{
		at = i == 0 ? 1 : all;
		ax_tree_close(&cx, t);
		ok(tap_quiesce(&cx) && used(&cx) == 0, "quiescent");
		ax_tree_open(&cx, t, engine, 0, 0, &gen);
		to_close = t;
		breaths = 0;
		meddle_at = at;
		ok(ax_load(&cx, t, gen, &(ax_keys) {key, NULL, LOADED_KEY, LOADED}, 90) == AX_STALE && breaths == at,
		   "its store is closed at breath %d", at);
	}
	tap_point_hook = NULL;
	ok(tap_quiesce(&cx) && used(&cx) == 0, "quiescent");
	ax_detach(&meddler);
	ax_detach(&cx);
	tap_unmap(a, size);
	free_keys(key);
}

/* A load that another's first insert meets, and loads that find no memory, leave nothing of their own behind. */
static void
test_load_fails(ax_structure engine, uint32_t page_size)
{
	size_t		size = (size_t) 128 << 20;
	ax_area    *a = tap_area(size, 3, 1 << 20);
	const uint8_t **key = keys_to_load();
	static ax_ctx cx;
	int			bad = 0;
	bool		fine;
	ax_status	x;
	uint64_t	gen,
				needs;
	ax_tree    *t;
	ax_tree_info ti;

	ax_attach(&cx, a, 0, 1, &ax_port_default);
	ax_attach(&meddler, a, 1, 2, &ax_port_default);
	t = ax_tree_alloc(&cx);
	ax_tree_open(&cx, t, engine, 0, page_size, &gen);
	early = key[LOADED / 2];
	put_by_load = engine == AX_BTREE_COMPARED;
	to_insert_into = t;
	insert_gen = gen;
	breaths = 0;
	meddle_at = 1;
	tap_point_hook = at_breath;
	ok(ax_load(&cx, t, gen, &(ax_keys) {key, NULL, LOADED_KEY, LOADED}, 90) == AX_EXISTS && inserted == AX_OK,
	   "engine %d, pages of %u: a load gives way to an insert that came first", (int) engine, page_size);
	tap_point_hook = NULL;
	to_insert_into = NULL;
	fine = tap_quiesce(&cx) && ax_info(&cx, t, gen, &ti) == AX_OK;
	ok(fine && ti.entries == 1 && ti.bytes < 1 << 20,
	   "whose key is there alone: %llu entries, %llu bytes", (unsigned long long) ti.entries, (unsigned long long) ti.bytes);
	ax_tree_close(&cx, t);

	ax_tree_open(&cx, t, engine, 0, page_size, &gen);
	if (ax_load(&cx, t, gen, &(ax_keys) {key, NULL, LOADED_KEY, LOADED}, 90) != AX_OK || ax_info(&cx, t, gen, &ti) != AX_OK)
		bad = 1000;
	needs = ti.bytes;
	ax_tree_close(&cx, t);
	for (int i = 1; i < 40; i += tap_scaled(100) < 100 ? 4 : 1)
	{
		(void) tap_quiesce(&cx);
		ax_tree_open(&cx, t, engine, needs * (uint64_t) i / 40, page_size, &gen);
		/* what HydraList's search layer gives up comes back first */
		for (int tries = 0; (x = ax_load(&cx, t, gen, &(ax_keys) {key, NULL, LOADED_KEY, LOADED}, 90)) == AX_BUSY; tries++)
			if (!tap_quiesce(&cx) || tries > 10)
				break;
		if (x != AX_NOMEM || !tap_quiesce(&cx) || ax_info(&cx, t, gen, &ti) != AX_OK || ti.entries != 0 || ti.bytes > 1 << 20 ||
			put_early(&cx, t, gen) != AX_OK)
		{
			tap_diag("%d of 40: %d", i, (int) x);
			bad++;
		}
		ax_tree_close(&cx, t);
	}
	ok(bad == 0, "of %llu bytes, a share is too few: nothing is loaded, and memory is back (%d)",
	   (unsigned long long) needs, bad);
	ok(tap_quiesce(&cx) && used(&cx) == 0, "quiescent");
	ax_detach(&meddler);
	ax_detach(&cx);
	tap_unmap(a, size);
	free_keys(key);
}

static ax_area *shared;

/* Large trees come and go, and all free them in parts. */
static void
come_and_go(void *arg, int i)
{
	ax_ctx		cx;

	ax_attach(&cx, shared, i, i + 1, &port);
	for (uint64_t n = 0; n < tap_scaled(40); n++)
	{
		ax_tree    *t = large_tree(&cx, 6 << 20, 1000);

		if (!t)
			continue;
		ax_tree_close(&cx, t);
		ax_tree_release(&cx, t);
		for (int k = 0; k < 3; k++)
			(void) ax_poll(&cx);
	}
	ax_detach(&cx);
}

static void
test_together(void)
{
	size_t		size = (size_t) 64 << 20;
	static ax_ctx cx;
	ax_memory_info m;

	shared = tap_area(size, 9, 1 << 20);
	tap_threads(8, come_and_go, NULL);
	ax_attach(&cx, shared, 8, 9, &port);
	ok(tap_quiesce(&cx), "eight free large trees at once: quiescent");
	ax_memory(&cx, &m);
	ok(m.used_bytes == 0 && atomic_load(&shared->ndying) == 0 && atomic_load(&shared->freeing) == 0,
	   "nothing is left");
	ax_detach(&cx);
	tap_unmap(shared, size);
}

int
main(void)
{
	port = ax_port_default;
	port.yield = count_yield;
	if (!tap_races_only())
	{
		test_dropped();
		test_latched();
		test_magazines();
		test_idle();
		test_on_its_way();
		test_inner();
		test_lengths(256);
		test_lengths(1024);
		test_lengths(8192);
		test_smallest();
		test_heir(0);
		test_heir(1);
		test_advances();
		test_hurry(AX_ART_OLC, 0);
		test_hurry(AX_BTREE_OLC, 4096);
		for (int e = 0; e < AX_STRUCTURES; e++)
			if (e != AX_ART_COARSE && e != AX_BTREE_COARSE && e != AX_HYDRA_COARSE)
			{
				test_breath((ax_structure) e);
				test_load_fails((ax_structure) e, 0);
			}
		test_load_fails(AX_BTREE_OLC, 256);
		test_load_fails(AX_BTREE_COMPARED, 256);
	}
	test_together();
	return tap_done();
}
