/*
 * test_expand.c
 *	  Contention expansion of the radix tree under OptiQL: hot leaves are taken
 *	  apart, uniform use takes none apart, and what has cooled is put together.
 *
 * The keys lie 2^32 apart, so that leaves are packed.  Every process (thread)
 * removes and inserts keys of its own, from a few leaves that all share, or from
 * everywhere; each knows which of its keys are in.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_internal.h"
#include "core/radix/rt_olc.h"
#include "tap.h"

#define WORKERS 8
#define KEYS 40000
#define HOT 24					/* neighbouring keys: one leaf or two */

static ax_area *area;
static ax_tree *tree;
static uint64_t gen;
static uint64_t key_of[KEYS];
static bool in[KEYS];
static bool hot_run;
static _Atomic bool stop;
static _Atomic uint64_t wrong;

static void
make_key(uint64_t k, uint8_t *key)
{
	uint64_t	x = __builtin_bswap64(k << 32 | k);

	memcpy(key, &x, 8);
	memset(key + 8, 0, 6);
	key[13] = 1;
}

static uint64_t
expansions(ax_ctx *cx)
{
	ax_tree_info info;

	return ax_info(cx, tree, gen, &info) == AX_OK ? info.expansions : UINT64_MAX;
}

/*
 * A clock by which the machine is fast: a process that others keep from running is not waited
 * for again and again, and what was hot a moment ago has not cooled.
 */
static uint64_t
slow_clock(void)
{
	return ax_port_default.now_ns() / 100;
}

static ax_port slow;

static void
worker(void *arg, int me)
{
	static __thread ax_ctx cx;
	uint64_t	rng = 77 + (uint64_t) me;
	/* the hot run ends with the third expansion, however long that takes */
	uint64_t	n = (hot_run ? 40000000 : tap_scaled(1000000)) / WORKERS;

	ax_attach(&cx, area, 1 + me, 1, &slow);
	for (uint64_t i = 0; i < n && !stop; i++)
	{
		/* one of mine: the index modulo WORKERS is mine */
		uint64_t	r = tap_rand(&rng);
		uint64_t	k = hot_run ? KEYS / 2 + r % HOT : r % KEYS;
		uint8_t		key[14];
		ax_status	x;

		k = k - k % WORKERS + (uint64_t) me;
		make_key(key_of[k], key);
		while ((x = in[k] ? ax_remove(&cx, tree, gen, key, 14) :
				ax_insert(&cx, tree, gen, key, 14)) == AX_BUSY)
			;
		if (x != AX_OK)
			atomic_fetch_add(&wrong, 1);
		in[k] = !in[k];
		if (hot_run && (i & 1023) == 0 && expansions(&cx) >= 3)
			stop = true;
	}
	ax_detach(&cx);
}

/* Is in the tree exactly what should be? */
static bool
all_there(ax_ctx *cx)
{
	bool		good = true;

	for (int i = 0; i < KEYS; i++)
	{
		uint8_t		key[14];

		make_key(key_of[i], key);
		good = good && ax_contains(cx, tree, gen, key, 14) == (in[i] ? AX_OK : AX_NOTFOUND);
	}
	return good;
}

static bool
check(ax_ctx *cx, ax_tree_info *info)
{
	char		msg[200];
	bool		good;

	if (tap_check(cx, tree, gen, info, &good, msg, sizeof(msg)) != AX_OK)
		return false;
	if (!good)
		tap_diag("%s", msg);
	return good;
}

/* ---- windows ---- */

static const char *stop_at;
static int	met;
static ax_ctx other;

/* In the window, once: another process removes a hot key and inserts a new one. */
static void
meddle(const char *name)
{
	uint8_t		k[14];

	if (!stop_at || strcmp(name, stop_at) != 0)
		return;
	stop_at = NULL;
	met++;
	make_key(key_of[KEYS / 2 + 1], k);
	if (ax_remove(&other, tree, gen, k, 14) != AX_OK)
		wrong++;
	in[KEYS / 2 + 1] = false;
	make_key(key_of[KEYS / 2 + 2] + 1, k);
	if (ax_insert(&other, tree, gen, k, 14) != AX_OK)
		wrong++;
}

/* As if this process had waited often for the leaf of the key. */
static bool
expand_at(ax_ctx *cx, const uint8_t *k)
{
	ax_store   *s;

	if (ax_enter(cx, tree, gen, &s) != AX_OK)
		return false;
	rt_expand(cx, s, k, 14, NULL);
	ax_leave(cx);
	return true;
}

static void
races(ax_ctx *cx)
{
	uint8_t		k[14],
				added[14];
	uint64_t	before = expansions(cx);
	ax_tree_info info;

	ax_attach(&other, area, 1, 1, &ax_port_default);
	make_key(key_of[KEYS / 2], k);
	make_key(key_of[KEYS / 2 + 2] + 1, added);

	tap_point_hook = meddle;
	stop_at = "art.expand.before_publish";
	ok(expand_at(cx, k) && met == 1 && expansions(cx) == before + 1,
	   "expanded, although the leaf was written to meanwhile");
	ok(wrong == 0 && all_there(cx) && ax_contains(cx, tree, gen, added, 14) == AX_OK,
	   "what was written is there");
	ok(check(cx, &info), "check");

	/* the same again for what was expanded just now */
	while (ax_remove(cx, tree, gen, added, 14) == AX_BUSY)
		;
	{
		uint8_t		again[14];

		make_key(key_of[KEYS / 2 + 1], again);
		in[KEYS / 2 + 1] = ax_insert(cx, tree, gen, again, 14) == AX_OK;
	}
	stop_at = "art.join.before_lock";
	ok(ax_settle(cx, tree, gen, true) == AX_OK && met == 2, "joined, although a leaf was written to");
	tap_point_hook = NULL;
	ok(wrong == 0 && all_there(cx) && ax_contains(cx, tree, gen, added, 14) == AX_OK,
	   "what was written is there");
	ok(check(cx, &info), "check");
	ax_detach(&other);
}

/* ---- a leaf that is held for long ---- */

static _Thread_local bool holds;
static _Atomic bool held,
			let_go;

static void
hold(const char *name)
{
	if (!holds || strcmp(name, "guard.latched") != 0)
		return;
	holds = false;
	held = true;
	while (!let_go)
		sched_yield();
}

static void *
holder(void *arg)
{
	uint8_t	   *k = arg;
	static ax_ctx cx;

	ax_attach(&cx, area, 1, 1, &ax_port_default);
	holds = true;
	while (ax_remove(&cx, tree, gen, k, 14) == AX_BUSY)
		;
	while (ax_insert(&cx, tree, gen, k, 14) == AX_BUSY)
		;
	ax_detach(&cx);
	return NULL;
}

static void
in_the_way(ax_ctx *cx)
{
	uint8_t		k[14];
	pthread_t	th;
	ax_tree_info apart,
				info;

	make_key(key_of[KEYS / 2 + 3], k);
	ok(expand_at(cx, k) && check(cx, &apart), "expanded again");
	tap_point_hook = hold;
	pthread_create(&th, NULL, holder, k);
	while (!held)
		sched_yield();
	ok(ax_settle(cx, tree, gen, true) == AX_OK, "not joined while a leaf is held");
	let_go = true;
	pthread_join(th, NULL);
	tap_point_hook = NULL;
	ok(check(cx, &info) && info.leaves == apart.leaves, "nothing was (%llu leaves)",
	   (unsigned long long) info.leaves);
	ok(ax_settle(cx, tree, gen, true) == AX_OK && check(cx, &info) && info.leaves < apart.leaves,
	   "but the next time (%llu leaves)", (unsigned long long) info.leaves);
	ok(all_there(cx), "nothing is lost");
}

/* ---- remembering ---- */

static uint64_t ahead;			/* seconds that the clock has been put on */

static uint64_t
clock_ahead(void)
{
	return ax_port_default.now_ns() + ahead * UINT64_C(1000000000);
}

/* Expanded at key k; after how many times ten seconds it is joined. */
static int
cools_in(ax_ctx *cx, int k)
{
	uint8_t		key[14];
	uint64_t	before = expansions(cx);
	ax_tree_info info,
				hot;

	make_key(key_of[k], key);
	if (!expand_at(cx, key) || expansions(cx) != before + 1 || !check(cx, &hot))
		return -1;
	for (int n = 1; n <= 100; n++)
	{
		ahead += 10;
		if (ax_settle(cx, tree, gen, false) != AX_OK || !check(cx, &info))
			return -1;
		if (info.leaves < hot.leaves)
			return n;
	}
	return -1;
}

static void
cooling(ax_ctx *cx)
{
	ax_port		port = ax_port_default;
	ax_store   *s;
	uint8_t		k[14];
	int			once,
				twice;

	port.now_ns = clock_ahead;
	ax_body(cx)->port = &port;
	tree = ax_tree_alloc(cx);
	if (ax_tree_open(cx, tree, AX_ART_OPTIQL, 0, 0, &gen) != AX_OK)
		wrong++;
	for (int i = 0; i < 4000; i++)
	{
		make_key(key_of[i], k);
		if (ax_insert(cx, tree, gen, k, 14) != AX_OK)
			wrong++;
	}
	once = cools_in(cx, 2000);
	twice = cools_in(cx, 2001);
	ok(wrong == 0 && once == 1, "what has been quiet for ten seconds is joined (%d)", once);
	ok(twice == 2, "hot again by another of its keys: after twice that (%d)", twice);
	ax_tree_close(cx, tree);
	ax_tree_release(cx, tree);

	/* a leaf of another tree, at the address of one that was waited for */
	tree = ax_tree_alloc(cx);
	if (ax_tree_open(cx, tree, AX_ART_OLC, 0, 0, &gen) != AX_OK)
		wrong++;
	for (int i = 0; i < 10; i++)
	{
		make_key(key_of[9 - i], k);
		if (i == 9)
		{
			if (ax_enter(cx, tree, gen, &s) != AX_OK)
				wrong++;
			ax_body(cx)->hot_word = &((rt_leaf *) RT_PTR(atomic_load(&s->root)))->word;
			ax_leave(cx);
		}
		if (ax_insert(cx, tree, gen, k, 14) != AX_OK)
			wrong++;
	}
	ok(wrong == 0 && expansions(cx) == 0, "no leaf but OptiQL's is expanded");
	ax_body(cx)->hot_word = NULL;
	ax_body(cx)->port = &ax_port_default;
}

/* More are expanded than are remembered: what is forgotten is joined. */
static void
forgetting(ax_ctx *cx)
{
	uint8_t		k[14];
	ax_tree_info none,
				some,
				more;

	tree = ax_tree_alloc(cx);
	if (ax_tree_open(cx, tree, AX_ART_OPTIQL, 0, 0, &gen) != AX_OK)
		wrong++;
	for (int i = 0; i < 8000; i++)
	{
		make_key(key_of[i], k);
		if (ax_insert(cx, tree, gen, k, 14) != AX_OK)
			wrong++;
	}
	if (!check(cx, &none))
		wrong++;
	for (int i = 0; i < 40; i++)
	{
		make_key(key_of[200 * i], k);
		if (!expand_at(cx, k) || (i == 14 && !check(cx, &some)))
			wrong++;
	}
	ok(wrong == 0 && check(cx, &more) && expansions(cx) == 40, "more leaves are taken apart than are remembered");
	ok(more.leaves - some.leaves < some.leaves - none.leaves,
	   "and those that are forgotten are joined (%llu leaves, %llu with 15 taken apart, %llu with 40)",
	   (unsigned long long) none.leaves, (unsigned long long) some.leaves, (unsigned long long) more.leaves);
	ax_tree_close(cx, tree);
	ax_tree_release(cx, tree);
}

/* ---- compaction ---- */

/* Leaves after a whole pass; 0: something is wrong. */
static uint64_t
compacted(ax_ctx *cx)
{
	ax_compaction c = {.work = malloc(AX_COMPACT_WORK)};
	ax_tree_info info;
	int			calls = 0;

	while (!c.done && calls++ < 10000)
		if (ax_compact(cx, tree, gen, &c) != AX_OK)
			break;
	free(c.work);
	return c.done && check(cx, &info) ? info.leaves : 0;
}

/* What was taken apart lately is left so; key n of so many is. */
static void
kept_apart(ax_ctx *cx, const uint64_t *keys, int nkeys, int n, const char *what)
{
	ax_port		port = ax_port_default;
	uint8_t		k[14];
	ax_tree_info info;
	uint64_t	packed,
				apart,
				later;

	port.now_ns = clock_ahead;
	ax_body(cx)->port = &port;
	tree = ax_tree_alloc(cx);
	if (ax_tree_open(cx, tree, AX_ART_OPTIQL, 0, 0, &gen) != AX_OK)
		wrong++;
	for (int i = 0; i < nkeys; i++)
	{
		make_key(keys[i], k);
		if (ax_insert(cx, tree, gen, k, 14) != AX_OK)
			wrong++;
	}
	packed = compacted(cx);
	make_key(keys[n], k);
	if (!expand_at(cx, k) || !check(cx, &info))
		wrong++;
	apart = compacted(cx);
	ahead += 10000;
	later = compacted(cx);
	ok(wrong == 0 && info.leaves > packed, "%s, %llu leaves, is taken apart: %llu", what,
	   (unsigned long long) packed, (unsigned long long) info.leaves);
	ok(apart == info.leaves, "and compaction leaves it so (%llu)", (unsigned long long) apart);
	ok(later > 0 && later <= packed, "until it has been quiet (%llu)", (unsigned long long) later);
	ax_tree_close(cx, tree);
	ax_tree_release(cx, tree);
	ax_body(cx)->port = &ax_port_default;
}

static void
compaction(ax_ctx *cx)
{
	uint64_t	groups[400];

	for (int i = 0; i < 400; i++)
		groups[i] = (uint64_t) (1 + i / 20) << 56 | (uint64_t) (i % 20) << 48 | (uint64_t) i << 8;
	kept_apart(cx, key_of, 4000, 2000, "a leaf of several bytes");
	kept_apart(cx, groups, 400, 107, "a leaf of one byte");
}

int
main(void)
{
	static ax_ctx cx;
	ax_tree_info before,
				after;
	uint8_t		k[14];
	uint64_t	n;
	bool		good;

	area = tap_area(256 << 20, WORKERS + 2, 1 << 20);
	slow = ax_port_default;
	slow.now_ns = slow_clock;
	ax_attach(&cx, area, 0, 1, &slow);
	tree = ax_tree_alloc(&cx);
	ok(ax_tree_open(&cx, tree, AX_ART_OPTIQL, 0, 0, &gen) == AX_OK, "a tree");
	for (int i = 0; i < KEYS; i++)
	{
		key_of[i] = (uint64_t) i * 7919;
		make_key(key_of[i], k);
		in[i] = ax_insert(&cx, tree, gen, k, 14) == AX_OK;
	}
	ok(check(&cx, &before) && before.entries == KEYS, "%d keys", KEYS);

	tap_threads(WORKERS, worker, NULL);
	ok(wrong == 0 && all_there(&cx), "uniform writes by %d threads: all is there", WORKERS);
	ok(expansions(&cx) == 0, "and nothing was expanded");
	/* all in again, as before */
	for (int i = 0; i < KEYS; i++)
		if (!in[i])
		{
			make_key(key_of[i], k);
			in[i] = ax_insert(&cx, tree, gen, k, 14) == AX_OK;
		}
	ok(check(&cx, &before), "check");

	hot_run = true;
	tap_threads(WORKERS, worker, NULL);
	n = expansions(&cx);
	ok(wrong == 0 && all_there(&cx), "writes to %d neighbouring keys: all is there", HOT);
	ok(n > 0, "the leaf was expanded (%llu times)", (unsigned long long) n);
	for (int i = 0; i < KEYS; i++)
		if (!in[i])
		{
			make_key(key_of[i], k);
			in[i] = ax_insert(&cx, tree, gen, k, 14) == AX_OK;
		}
	ok(check(&cx, &after), "check");
	ok(after.leaves > before.leaves, "leaves: %llu, then %llu", (unsigned long long) before.leaves,
	   (unsigned long long) after.leaves);

	ok(ax_settle(&cx, tree, gen, false) == AX_OK, "what is still warm");
	ok(check(&cx, &before) && before.leaves == after.leaves, "stays");
	ok(ax_settle(&cx, tree, gen, true) == AX_OK, "all of it");
	good = check(&cx, &before);
	ok(good && before.leaves < after.leaves, "is joined: %llu leaves",
	   (unsigned long long) before.leaves);
	ok(all_there(&cx), "nothing is lost");

	ax_body(&cx)->port = &ax_port_default;
	races(&cx);
	in_the_way(&cx);
	ax_tree_close(&cx, tree);
	ax_tree_release(&cx, tree);
	forgetting(&cx);
	cooling(&cx);
	compaction(&cx);
	ax_tree_close(&cx, tree);
	ok(tap_quiesce(&cx), "memory comes back");
	ax_tree_release(&cx, tree);
	ax_detach(&cx);
	return tap_done();
}
