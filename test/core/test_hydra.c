/*
 * test_hydra.c
 *	  HydraList's own windows: the order that a scan writes down, a node that goes while
 *	  somebody is on the way to it, links that are followed while nodes come and go, the log, and
 *	  lists of no key and of one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hydra/hm_version.h"
#include "tap.h"

#define LEN 15

static ax_ctx cx,
			other;
static ax_tree *tree;
static uint64_t gen;
static ax_structure engine = AX_HYDRA_OLC;
static uint64_t tids[2000];		/* of the last scan */
static uint32_t ntids;

static void
key_of(uint64_t i, uint8_t *k)
{
	uint64_t	be = __builtin_bswap64(i);

	k[0] = 0;
	memcpy(k + 1, &be, 8);
	ax_put_tid(k + 9, i);
}

static ax_status
change(ax_ctx *by, uint64_t i, bool in)
{
	uint8_t		k[LEN];

	key_of(i, k);
	return in ? ax_insert(by, tree, gen, k, LEN) : ax_remove(by, tree, gen, k, LEN);
}

static ax_status
contains(uint64_t i)
{
	uint8_t		k[LEN];

	key_of(i, k);
	return ax_contains(&cx, tree, gen, k, LEN);
}

/* How many a scan gives, 0 if they do not rise (or fall). */
static uint32_t
scan_by(ax_ctx *by, bool back)
{
	uint8_t		last[1200];
	ax_batch	b = {.backward = back, .max = 2000, .tids = tids, .lastkey = last,.lastkey_size = sizeof(last)};

	b.hi.after = true;
	if (ax_scan(by, tree, gen, &b) != AX_OK || !b.exhausted)
		return 0;
	ntids = b.n;
	for (uint32_t i = 1; i < b.n; i++)
		if (back ? tids[i] >= tids[i - 1] : tids[i] <= tids[i - 1])
			return 0;
	return b.n;
}

static uint32_t
scan(bool back)
{
	return scan_by(&cx, back);
}

static void
open_list(void)
{
	if (ax_tree_open(&cx, tree, engine, 0, 0, &gen) != AX_OK)
		abort();
}

static bool
sound(void)
{
	ax_tree_info is;
	bool		fine;
	char		msg[256];

	return tap_check(&cx, tree, gen, &is, &fine, msg, sizeof(msg)) == AX_OK && fine;
}

static void
test_few(void)
{
	open_list();
	ok(scan(false) == 0 && scan(true) == 0 && contains(0) == AX_NOTFOUND && sound(), "no list yet");
	ok(change(&cx, 0, false) == AX_NOTFOUND, "and nothing to remove");
	ok(change(&cx, 0, true) == AX_OK && contains(0) == AX_OK && scan(false) == 1 && scan(true) == 1,
	   "one key, of zeros");
	ok(change(&cx, 0, true) == AX_EXISTS, "which is there");
	ok(change(&cx, 0, false) == AX_OK && contains(0) == AX_NOTFOUND && scan(false) == 0 && sound(),
	   "an empty list");
	ax_tree_close(&cx, tree);
}

/* A slot gets another key: the bitmap is the same, and the order is not. */
static void
test_order(void)
{
	uint32_t	n = 0;

	open_list();
	for (uint64_t i = 1; i <= 30; i++)
		(void) change(&cx, 2 * i, true);
	ok(scan(false) == 30 && scan(false) == 30, "an order is written down, and read");
	for (uint64_t i = 1; i <= 30; i++)
	{
		(void) change(&cx, 2 * i, false);
		(void) change(&cx, 2 * (31 - i) + 1, true);
		n += scan(i & 1) == 30;
	}
	ok(n == 30, "a change makes it another one: %u of 30 scans", n);
	ax_tree_close(&cx, tree);
}

static const char *here;
static int	met;

/* Keys of two lengths, in the order of i. */
static ax_status
put(ax_ctx *by, uint64_t i)
{
	uint8_t		k[LEN + 1] = {0};

	key_of(i, k);
	ax_put_tid(k + 9 + i % 2, i);
	return ax_insert(by, tree, gen, k, LEN + i % 2);
}

/* There is another key before all others, and its order is written down. */
static void
reorder(const char *name)
{
	if (strcmp(name, here) != 0)
		return;
	tap_point_hook = NULL;
	met += put(&other, 1) == AX_OK && scan_by(&other, false) == 21;
}

/* A reader found an order, and reads it when it is that of more keys than it knows. */
static void
test_reordered(void)
{
	static const ax_structure both[] = {AX_HYDRA_OLC, AX_HYDRA_MVRLU};

	here = "hydra.perm_told";
	for (int e = 0; e < 2; e++)
	{
		uint32_t	n;

		engine = both[e];
		met = 0;
		open_list();
		for (uint64_t i = 2; i < 22; i++)
			(void) put(&cx, i);
		n = scan(false);
		tap_point_hook = reorder;
		ok(n == 20 && scan(false) == 20 && tids[0] == 2 && tids[19] == 21 && met == 1 && scan(true) == 21,
		   "%s: an order is replaced while it is read", ax_structure_name(engine));
		tap_point_hook = NULL;
		ax_tree_close(&cx, tree);
		(void) tap_quiesce(&cx);
	}
	engine = AX_HYDRA_OLC;
}

/* The key of number 5 behind a first byte, with a TID. */
static void
five(uint8_t first, uint64_t tid, uint8_t *k)
{
	key_of(5, k);
	k[0] = first;
	ax_put_tid(k + 9, tid);
}

/* Half of an entry has been compared: its slot gets another one, with the same second half. */
static void
reuse_slot(const char *name)
{
	uint8_t		k[LEN];

	if (strcmp(name, "equal.half") != 0)
		return;
	tap_point_hook = NULL;
	five(0, 1, k);
	met = ax_remove(&other, tree, gen, k, LEN) == AX_OK;
	five(1, 2, k);
	met += ax_insert(&other, tree, gen, k, LEN) == AX_OK;
}

/* A search meets an entry that becomes another one under its eyes. */
static void
test_torn(void)
{
	uint8_t		k[LEN];
	uint64_t	tid;
	ax_found	f = {.tids = &tid, .max = 1};

	for (int look_up = 0; look_up < 2; look_up++)
	{
		ax_status	x;

		met = 0;
		open_list();
		five(0, 1, k);
		(void) ax_insert(&cx, tree, gen, k, LEN);
		/* so many others that the body stays */
		for (uint64_t i = 100; i < 130; i++)
			(void) change(&cx, i, true);
		five(0, 2, k);
		tap_point_hook = reuse_slot;
		x = look_up ? ax_lookup(&cx, tree, gen, k, 9, &f) : ax_contains(&cx, tree, gen, k, LEN);
		tap_point_hook = NULL;
		ok(met == 2 && (look_up ? x == AX_OK && f.n == 0 : x == AX_NOTFOUND),
		   "%s of half of one entry and half of another", look_up ? "a look-up" : "a search");
		ax_tree_close(&cx, tree);
		(void) tap_quiesce(&cx);
	}
}

/* Another scans while the order has been written and not told. */
static void
scan_meanwhile(const char *name)
{
	if (strcmp(name, "hydra.perm_written") != 0)
		return;
	tap_point_hook = NULL;
	met += scan_by(&other, false) == 20;
}

/* An order is told when it has been written, and to nobody before. */
static void
test_order_told(void)
{
	static const ax_structure both[] = {AX_HYDRA_OLC, AX_HYDRA_MVRLU};

	for (int e = 0; e < 2; e++)
	{
		engine = both[e];
		met = 0;
		open_list();
		for (uint64_t i = 20; i > 0; i--)
			(void) change(&cx, i, true);
		tap_point_hook = scan_meanwhile;
		ok(scan(false) == 20 && met == 1, "%s: a scan while an order is written down", ax_structure_name(engine));
		tap_point_hook = NULL;
		ax_tree_close(&cx, tree);
		(void) tap_quiesce(&cx);
	}
	engine = AX_HYDRA_OLC;
}

/*
 * Anchors of many lengths that have much in common.  While no change waits, the search layer leads to the
 * very node.
 */
static void
test_floor(void)
{
	uint64_t	seed = 11,
				there = 0,
				absent = 0;
	ax_tree_info is[2];

	open_list();
	for (int pass = 0; pass < 3; pass++, seed = 11)
	{
		for (uint64_t i = 1; i <= 20000; i++)
		{
			uint8_t		k[40];
			uint32_t	len = 1 + (uint32_t) (tap_rand(&seed) % 30);

			for (uint32_t j = 0; j < len; j++)
				k[j] = j < 3 ? 'x' : (uint8_t) ('a' + (tap_rand(&seed) % 5 == 0));
			k[len++] = 0;
			ax_put_tid(k + len, pass < 2 ? i : 0);
			if (pass == 0)
				(void) ax_insert(&cx, tree, gen, k, len + AX_TID_BYTES);
			else
				*(pass == 1 ? &there : &absent) += ax_contains(&cx, tree, gen, k, len + AX_TID_BYTES) == AX_OK;
		}
		if (pass == 0)
			(void) ax_settle(&cx, tree, gen, true);
		if (pass != 1 && ax_info(&cx, tree, gen, &is[pass / 2]) != AX_OK)
			abort();
	}
	ok(there == 20000 && absent == 0 && is[0].leaves > 300 && is[1].walks == is[0].walks && sound(),
	   "the search layer leads to the very node: %llu of 40000 searches walk", (unsigned long long) (is[1].walks - is[0].walks));
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* Nearly all goes, and is applied; others move the epoch as far as they can. */
static void
clear(const char *name)
{
	if (strcmp(name, here) != 0)
		return;
	tap_point_hook = NULL;
	met++;
	for (uint64_t i = 0; i < 1000; i++)
		if (i % 100)
			(void) change(&other, i, false);
	(void) ax_settle(&other, tree, gen, true);
	for (int i = 0; i < 10; i++)
		(void) ax_poll(&other);
	for (uint64_t i = 0; i < 1000; i += 2)
		(void) change(&other, i, true);
	(void) ax_settle(&other, tree, gen, true);
}

static void
test_gone(void)
{
	static const char *const at[] = {"hydra.node_read", "hydra.node_version", "hydra.copied", "hydra.scan.next", NULL};

	for (const char *const *p = at; *p; p++)
	{
		int			wrong = 0;

		here = *p;
		met = 0;
		for (uint64_t round = 0; round < 20; round++)
		{
			uint32_t	n;

			open_list();
			for (uint64_t i = 0; i < 1000; i++)
				(void) change(&cx, i * 7 % 1000, true);
			tap_point_hook = clear;
			wrong += contains(round * 100 % 1000) != AX_OK;
			if (met == (int) round)
			{
				n = scan(round & 1);
				wrong += n < 10;
			}
			tap_point_hook = NULL;
			wrong += scan(false) != 500 || scan(true) != 500 || !sound();
			ax_tree_close(&cx, tree);
			(void) tap_quiesce(&cx);
		}
		ok(met == 20 && wrong == 0, "%s: nodes go and come, %d times, %d wrong", here, met, wrong);
	}
}

/* ---- keys that stay are found by each way, at whichever step others come and go ---- */

#define STAY	200				/* keys, every fourth */

static int	skip;
static bool fill;

/* Is that the point, after so many that are passed over?  It is met once. */
static bool
is_here(const char *name)
{
	if (strcmp(name, here) != 0 || skip-- > 0)
		return false;
	tap_point_hook = NULL;
	met++;
	return true;
}

/* The keys between come, or go, and all is settled. */
static void
crowd(const char *name)
{
	if (!is_here(name))
		return;
	for (uint64_t i = 0; i < 4 * STAY; i++)
		if (i % 4)
			(void) change(&other, i, fill);
	(void) ax_settle(&other, tree, gen, true);
	for (int i = 0; i < 6; i++)
		(void) ax_poll(&other);
}

/* Is a key that stays missing?  how: a scan, one that goes back, a look-up. */
static bool
misses(int how)
{
	uint32_t	n = 0;

	if (how == 2)
		return contains(4 * (STAY - 1)) != AX_OK;
	if (scan(how == 1) == 0)
		return true;
	for (uint32_t i = 0; i < ntids; i++)
		n += tids[i] % 4 == 0;
	return n != STAY;
}

static void
test_stays(void)
{
	static const char *const at[] = {"hydra.node_read", "hydra.node_version", "hydra.end_read", "hydra.link_read", "hydra.copied",
	"hydra.scan.next", NULL};

	for (const char *const *p = at; *p; p++)
	{
		int			wrong = 0,
					times = 0;

		here = *p;
		for (int kind = 0; kind < 6; kind++)
			for (int n = 0, before = -1; times > before; n++)
			{
				before = times;
				open_list();
				fill = kind & 1;
				for (uint64_t i = 0; i < 4 * STAY; i++)
					if (i % 4 == 0 || !fill)
						(void) change(&cx, i * 7 % (4 * STAY), true);
				for (uint64_t i = 0; i < 4 * STAY; i++)
					if (i % 4 == 0)
						(void) change(&cx, i, true);
					else if (fill)
						(void) change(&cx, i, false);
				(void) ax_settle(&cx, tree, gen, true);
				skip = n;
				met = 0;
				tap_point_hook = crowd;
				wrong += misses(kind / 2);
				tap_point_hook = NULL;
				times += met;
				wrong += misses(0) || misses(1) || misses(2) || !sound();
				ax_tree_close(&cx, tree);
				(void) tap_quiesce(&cx);
			}
		ok(times > 3 && wrong == 0, "%s: others come and go, %d times, %d wrong", here, times, wrong);
	}
}

/* Another process changes the node between its being read and its latch, or the last look. */
static void
beside(const char *name)
{
	if (strcmp(name, here) != 0)
		return;
	tap_point_hook = NULL;
	met++;
	if (strcmp(here, "hydra.scan.ordered") == 0)
		for (uint64_t i = 1; i <= 30; i++)
		{
			(void) change(&other, 2 * i, false);
			(void) change(&other, 2 * (31 - i) + 1, true);
		}
	else if (strcmp(here, "hydra.leaf_before_lock") == 0)
		(void) change(&other, 1001, true);
	else if (strcmp(here, "hydra.merge.before_lock") == 0)
		(void) change(&other, 1001, true);
	else
		(void) change(&other, 20, false);
}

/* A key comes, and no order is written down. */
static void
another(const char *name)
{
	if (strcmp(name, here) != 0)
		return;
	tap_point_hook = NULL;
	met += change(&other, 500, true) == AX_OK;
}

static void
test_beside(void)
{
	ax_status	x;

	met = 0;
	open_list();
	for (uint64_t i = 1; i <= 30; i++)
		(void) change(&cx, 2 * i, true);
	here = "hydra.scan.ordered";
	tap_point_hook = beside;
	ok(scan(false) == 30 && met == 1, "slots get other keys while they are taken: the scan begins again");
	here = "hydra.scan.found";
	tap_point_hook = another;
	ok(scan(true) == 31 && met == 2, "one comes: the scan has more slots than the order, and begins again");
	here = "hydra.leaf_before_lock";
	tap_point_hook = beside;
	x = change(&cx, 1001, true);
	ok(x == AX_EXISTS && met == 3, "the same key comes before the latch: it is there");
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	open_list();
	here = "hydra.split.before_lock";
	for (uint64_t i = 0; i < 64; i++)
		(void) change(&cx, (i * 7) % 64 + 1, true);
	tap_point_hook = beside;
	x = change(&cx, 0, true);
	tap_point_hook = NULL;
	ok(x == AX_OK && met == 4 && contains(20) == AX_NOTFOUND && scan(false) == 64 && sound(),
	   "a key goes before the latch of a split: it does not come back");
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	open_list();
	here = "hydra.merge.before_lock";
	for (uint64_t i = 0; i < 100; i++)
		(void) change(&cx, i, true);
	tap_point_hook = beside;
	for (uint64_t i = 0; i < 60; i++)
		(void) change(&cx, i, false);
	tap_point_hook = NULL;
	ok(met == 5 && contains(1001) == AX_OK && scan(false) == 41 && sound(),
	   "a key comes to the right node before the latches of a merge: it stays");
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* From the fourth merge on, all nodes change before it latches its own. */
static void
no_more(const char *name)
{
	if (strcmp(name, "hydra.merge.before_lock") != 0 || ++met < 4)
		return;
	tap_point_hook = NULL;
	for (uint64_t i = 0; i < 4000; i += 20)
		for (int in = 1; in >= 0; in--)
			(void) change(&other, 4 * i + 1, in);
	tap_point_hook = no_more;
}

/* A compaction that gives up for now: what it changed before is told. */
static void
test_given_up(void)
{
	void	   *work = malloc(AX_COMPACT_WORK);
	ax_compaction c = {.work = work};
	ax_status	x;

	open_list();
	for (uint64_t i = 0; i < 16000; i++)
		(void) change(&cx, (i * 7919) % 16000, true);
	for (uint64_t i = 0; i < 16000; i++)
		if (i % 4 == 1 || i % 4 == 3)
			(void) change(&cx, i, false);
	(void) ax_settle(&cx, tree, gen, true);
	met = 0;
	tap_point_hook = no_more;
	x = ax_compact(&cx, tree, gen, &c);
	tap_point_hook = NULL;
	ok(x == AX_BUSY && met > 4 && c.moved > 0 && hy_waiting(hy_list_of(atomic_load(&tree->store))) == 0 && sound(),
	   "a compaction gives up after %llu changes, and the search layer has them", (unsigned long long) c.moved);
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	free(work);
}

/* Rising keys: new nodes are logged, and the log stays short. */
static void
test_log(void)
{
	hy_list    *t;
	uint64_t	most = 0;

	open_list();
	for (uint64_t i = 0; i < 20000; i++)
	{
		(void) change(&cx, i, true);
		t = hy_list_of(atomic_load(&tree->store));
		most = hy_waiting(t) > most ? hy_waiting(t) : most;
	}
	ok(most > 1 && most <= HY_MARK, "%llu changes wait at most", (unsigned long long) most);
	atomic_store(&t->applying, 1);
	for (uint64_t i = 20000; i < 30000; i++)
		(void) change(&cx, i, true);
	ok(hy_waiting(t) > 100 && contains(29999) == AX_OK && contains(20000) == AX_OK,
	   "the applier is away: %llu wait, and all is found", (unsigned long long) hy_waiting(t));
	for (uint64_t i = 20000; i < 30000; i++)
		(void) change(&cx, i, false);
	ok(sound() && contains(19999) == AX_OK && contains(20000) == AX_NOTFOUND, "what comes and goes, too");
	atomic_store(&t->applying, 0);
	ok(ax_settle(&cx, tree, gen, true) == AX_BUSY && hy_waiting(t) > 0 && hy_waiting(t) < 156, "it is back, and does a piece");
	ok(ax_settle(&cx, tree, gen, true) == AX_OK && hy_waiting(t) == 0 && sound(), "then nothing waits");
	ax_tree_close(&cx, tree);
}

/* Another process applies the log, and finds no memory for the first that comes. */
static void
apply_without(void)
{
	ax_body(&other)->fail_alloc_at = 1;
	(void) ax_settle(&other, tree, gen, true);
	ax_body(&other)->fail_alloc_at = 0;
}

static bool going;
static uint64_t still_waiting;

/* A node's going is logged, and the node is latched still: so its word does not say it. */
static void
going_logged(const char *point)
{
	if (strcmp(point, "hydra.push") == 0)
		going = true;
	else if (going && strcmp(point, "guard.release") == 0)
	{
		tap_point_hook = NULL;
		met++;
		apply_without();
		still_waiting = hy_waiting(hy_list_of(atomic_load(&tree->store)));
	}
}

/* A node comes, for which there is no memory; then it goes. */
static void
test_late(void)
{
	hy_list    *t;
	uint64_t	n = 0;

	open_list();
	do
	{
		(void) change(&cx, n++, true);
		t = hy_list_of(atomic_load(&tree->store));
	} while (hy_waiting(t) == 0);
	apply_without();
	ok(hy_waiting(t) == 1 && t->todo, "a node comes, and there is no memory");
	met = 0;
	going = false;
	still_waiting = UINT64_MAX;
	tap_point_hook = going_logged;
	for (uint64_t i = n; i > 5; i--)
		(void) change(&cx, i - 1, false);
	tap_point_hook = NULL;
	ok(met == 1 && still_waiting == 0, "it goes, and neither waits: %d, %llu", met, (unsigned long long) still_waiting);
	for (int i = 0; i < 10; i++)
	{
		(void) ax_poll(&cx);
		(void) ax_poll(&other);
	}
	for (uint64_t i = 5; i < 1500; i++)
		(void) change(&cx, i, true);
	ok(ax_settle(&cx, tree, gen, true) == AX_OK && scan(false) == 1500 && sound(), "nothing of it is left in the log");
	ax_tree_close(&cx, tree);
}

/* There is no memory for any coming that is told of. */
static void
starve(const char *point)
{
	if (strcmp(point, "hydra.apply") == 0)
		ax_body(&other)->fail_alloc_at = 1;
}

/* Of more comings than are applied at once nobody can tell.  The goings behind them are told all the same. */
static void
test_all_late(void)
{
	hy_list    *t;
	uint64_t	late,
				goings;

	open_list();
	for (uint64_t i = 0; i < 2000; i++)
		(void) change(&cx, i, true);
	(void) ax_settle(&cx, tree, gen, true);
	t = hy_list_of(atomic_load(&tree->store));
	atomic_store(&t->applying, 1);
	for (uint64_t i = 2000; i < 30000; i++)
		(void) change(&cx, i, true);
	atomic_store(&t->applying, 0);
	tap_point_hook = starve;
	(void) ax_settle(&other, tree, gen, true);
	late = hy_waiting(t);
	/* some of those that were told go */
	atomic_store(&t->applying, 1);
	for (uint64_t i = 100; i < 1500; i++)
		(void) change(&cx, i, false);
	goings = hy_waiting(t) - late;
	atomic_store(&t->applying, 0);
	(void) ax_settle(&other, tree, gen, true);
	tap_point_hook = NULL;
	ax_body(&other)->fail_alloc_at = 0;
	ok(late > 256 && goings > 10 && hy_waiting(t) <= late, "%llu nodes come without memory, and behind them go %llu: %llu wait",
	   (unsigned long long) late, (unsigned long long) goings, (unsigned long long) hy_waiting(t));
	for (int i = 0; i < 10 && hy_waiting(t) > 0; i++)
		(void) ax_settle(&cx, tree, gen, true);
	ok(hy_waiting(t) == 0 && contains(99) == AX_OK && contains(29999) == AX_OK && sound(), "with memory they are told of");
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* Anchors that are longer than what a compaction could remember of a position, once. */
static void
test_long(void)
{
	static const ax_structure all[] = {AX_HYDRA_OLC, AX_HYDRA_OPTIQL, AX_HYDRA_MVRLU};
	const uint32_t len = 5000;
	void	   *work = malloc(AX_COMPACT_WORK);
	uint8_t    *k = malloc(len + AX_TID_BYTES);

	for (int e = 0; e < 3; e++)
	{
		ax_compaction c = {.work = work};
		uint64_t	seed = 1;
		int			calls = 0,
					there = 0;

		engine = all[e];
		open_list();
		for (int pass = 0; pass < 2; pass++, seed = 1)
			for (uint64_t i = 0; i < 300; i++)
			{
				memset(k, 'x', len);
				for (uint32_t j = 4500; j < len; j++)
					k[j] = (uint8_t) ('a' + tap_rand(&seed) % 26);
				ax_put_tid(k + len, i + 1);
				if (pass == 0)
					(void) ax_insert(&cx, tree, gen, k, len + AX_TID_BYTES);
				else if (i % 3)
					(void) ax_remove(&cx, tree, gen, k, len + AX_TID_BYTES);
				else
					there += ax_contains(&cx, tree, gen, k, len + AX_TID_BYTES) == AX_OK;
			}
		while (!c.done && calls < 1000 && ax_compact(&cx, tree, gen, &c) != AX_STALE)
			calls++;
		ok(c.done && there == 100 && sound(), "%s: anchors of 4,500 bytes: compaction ends after %d calls, %d keys are there",
		   ax_structure_name(engine), calls, there);
		ax_tree_close(&cx, tree);
		(void) tap_quiesce(&cx);
	}
	engine = AX_HYDRA_OLC;
	free(work);
	free(k);
}

static int	pushed,
			bare;

/* Whoever logs something has the latch of the node before, or another could log sooner what came later. */
static void
logged(const char *name)
{
	hy_node    *n;

	if (strcmp(name, "hydra.push") != 0)
		return;
	pushed++;
	n = hy_list_of(atomic_load(&tree->store))->head;
	while (n && !(atomic_load(&n->word) & AX_LOCKED))
		n = engine == AX_HYDRA_MVRLU ? hm_newest(n)->is.end.next : hy_next(n);
	bare += n == NULL;
}

static void
test_logged(void)
{
	static const ax_structure both[] = {AX_HYDRA_OLC, AX_HYDRA_MVRLU};
	void	   *work = malloc(AX_COMPACT_WORK);
	const uint64_t keys = 40000;

	for (int e = 0; e < 2; e++)
	{
		int			splits,
					merges,
					moves = 0;
		hy_node    *second;

		engine = both[e];
		open_list();
		bare = pushed = 0;
		tap_point_hook = logged;
		for (uint64_t i = 0; i < keys; i++)
			(void) change(&cx, i * 7919 % keys, true);
		splits = pushed;
		for (uint64_t i = 0; i < keys; i++)
			if (i % 32)
				(void) change(&cx, i, false);
		merges = pushed - splits;
		for (int pass = 0; pass < 4; pass++)
		{
			ax_compaction c = {.work = work};

			second = hy_list_of(atomic_load(&tree->store))->head;
			second = e ? hm_newest(second)->is.end.next : hy_next(second);
			while (!c.done && ax_compact(&cx, tree, gen, &c) != AX_STALE)
				;
			tap_point_hook = NULL;
			(void) tap_quiesce(&cx);
			tap_point_hook = logged;
		}
		moves = pushed - splits - merges;
		tap_point_hook = NULL;
		ok(splits > 100 && merges > 100 && moves > 10 && bare == 0 && second && sound(),
		   "%s: %d splits, %d merges, %d in compactions are logged under a latch, %d are not",
		   e ? "mvrlu" : "olc", splits, merges, moves, bare);
		ax_tree_close(&cx, tree);
		(void) tap_quiesce(&cx);
	}
	engine = AX_HYDRA_OLC;
	free(work);
}

/* A node that rising keys have left behind has its prefix once, and no free slots. */
static void
test_rising(void)
{
	static const ax_structure both[] = {AX_HYDRA_OLC, AX_HYDRA_MVRLU};
	const uint64_t n = 20000;
	ax_tree_info is;

	for (int e = 0; e < 2; e++)
	{
		engine = both[e];
		open_list();
		for (uint64_t i = 0; i < n; i++)
			(void) change(&cx, i, true);
		(void) ax_settle(&cx, tree, gen, true);
		(void) tap_quiesce(&cx);
		(void) ax_info(&cx, tree, gen, &is);
		ok(is.live_bytes < 17 * n, "%s: %.1f bytes a rising key", e ? "mvrlu" : "olc", (double) is.live_bytes / (double) n);
		ax_tree_close(&cx, tree);
		(void) tap_quiesce(&cx);
	}
	engine = AX_HYDRA_OLC;
}

/*
 * Keys just short of a blob fill a body's bytes before its slots.  What fits into one without
 * free slots need not fit with them.
 */
static void
test_large(void)
{
	static uint8_t k[512];
	uint64_t	seed = 1;
	uint64_t	in = 0;
	bool		fine = true;
	ax_tree_info is;
	char		msg[256];

	open_list();
	for (uint32_t i = 0; i < 48; i++)
	{
		memset(k, 0, sizeof(k));
		k[0] = (uint8_t) (i + 1);
		ax_put_tid(k + (i < 46 ? 504 : 512) - AX_TID_BYTES, i + 1);
		fine = fine && ax_insert(&cx, tree, gen, k, i < 46 ? 504 : 512) == AX_OK;
	}
	ok(fine && sound() && scan(false) == 48, "forty-eight keys of one body, but for the free slots");
	ax_tree_close(&cx, tree);

	open_list();
	for (uint64_t i = 1; i <= tap_scaled(4000); i++)
	{
		uint32_t	len = 430 + (uint32_t) (tap_rand(&seed) % 83);
		uint64_t	be = tap_rand(&seed);

		memset(k, 0, sizeof(k));
		memcpy(k, &be, 8);
		ax_put_tid(k + len - AX_TID_BYTES, i);
		fine = fine && ax_insert(&cx, tree, gen, k, len) == AX_OK;
		in++;
		/* every third is gone again, and leaves its bytes in the heap */
		if (i % 3 == 0)
		{
			fine = fine && ax_remove(&cx, tree, gen, k, len) == AX_OK;
			in--;
		}
	}
	ok(fine && tap_check(&cx, tree, gen, &is, &fine, msg, sizeof(msg)) == AX_OK && fine && is.entries == in, "keys of nearly as many bytes as a body keeps");
	ax_tree_close(&cx, tree);
}

/* "len" times 'b', and eight letters behind a 'c', or another one. */
static uint32_t
nested_key(uint32_t len, char then, uint64_t rest, uint64_t tid, uint8_t *k)
{
	memset(k, 'b', len);
	k[len++] = (uint8_t) then;
	for (int i = 0; i < 8; i++)
		k[len++] = (uint8_t) ('a' + (rest >> 4 * i) % 16);
	ax_put_tid(k + len, tid);
	return len + AX_TID_BYTES;
}

/*
 * The search layer's way to a key is longer than what a search remembers of it, and nothing in the
 * rest lies before the key.  The search must not go through the list.
 */
static void
test_nested(void)
{
	enum {DEPTH = 60, EACH = 150, BEFORE = 6000};
	static const ax_structure all[] = {AX_HYDRA_OLC, AX_HYDRA_OPTIQL, AX_HYDRA_MVRLU};

	for (int e = 0; e < 3; e++)
	{
		uint8_t		k[128];
		uint64_t	seed = 1,
					tid = 1;
		int			there = 0;
		ax_tree_info was,
					is;

		engine = all[e];
		open_list();
		for (uint64_t i = 0; i < BEFORE; i++)
			(void) ax_insert(&cx, tree, gen, k, nested_key(0, 'a', i, tid++, k));
		for (uint32_t depth = 1; depth <= DEPTH; depth++)
			for (int i = 0; i < EACH; i++)
				(void) ax_insert(&cx, tree, gen, k, nested_key(depth, 'c', tap_rand(&seed), tid++, k));
		for (uint64_t i = 0; i < 20; i++)
			(void) ax_insert(&cx, tree, gen, k, nested_key(DEPTH + 1, 'a', i, tid++, k));
		while (ax_catch_up(&cx, tree, gen) == AX_BUSY)
			;
		(void) ax_info(&cx, tree, gen, &was);
		tid -= 20;
		for (uint64_t i = 0; i < 20; i++)
			there += ax_contains(&cx, tree, gen, k, nested_key(DEPTH + 1, 'a', i, tid++, k)) == AX_OK;
		(void) ax_info(&cx, tree, gen, &is);
		ok(there == 20 && is.leaves > 200 && is.walk_steps - was.walk_steps < 40,
		   "%s: a way of many nodes: %d keys are there, %llu steps in %llu nodes", ax_structure_name(engine), there,
		   (unsigned long long) (is.walk_steps - was.walk_steps), (unsigned long long) is.leaves);
		ax_tree_close(&cx, tree);
		(void) tap_quiesce(&cx);
	}
	engine = AX_HYDRA_OLC;
}

/* ---- a check beside others ---- */

static int	checks,
			wrong;

/* Somebody checks all. */
static void
checks_all(const char *name)
{
	ax_tree_info is;
	char		msg[256] = "";
	bool		fine;

	if (strcmp(name, here) != 0)
		return;
	tap_point_hook = NULL;
	checks++;
	if (tap_check(&other, tree, gen, &is, &fine, msg, sizeof(msg)) == AX_OK && !fine && wrong++ == 0)
		tap_diag("%s", msg);
	tap_point_hook = checks_all;
}

/* Nodes come and go, and a check finds the list so far and the search layer. */
static void
test_check_changes(const char *point)
{
	here = point;
	engine = AX_HYDRA_MVRLU;
	checks = wrong = 0;
	open_list();
	for (int pass = 0; pass < 2; pass++)
		for (uint64_t i = 1; i <= 300; i++)
		{
			(void) ax_catch_up(&cx, tree, gen);
			tap_point_hook = checks_all;
			(void) change(&cx, i, pass == 0);
			tap_point_hook = NULL;
		}
	ok(checks > 2 && wrong == 0, "%s: a check beside that, %d times, %d wrong", point, checks, wrong);
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	engine = AX_HYDRA_OLC;
}

static ax_compaction packs;
static int	leaves_seen;

/* In the middle of the search layer somebody packs it. */
static void
packs_layer(const char *name)
{
	if (strcmp(name, "art.check.leaf") != 0 || leaves_seen-- != 0)
		return;
	tap_point_hook = NULL;
	for (int i = 0; i < 100 && !packs.done; i++)
		(void) ax_compact(&other, tree, gen, &packs);
}

static void
test_check_packs(ax_structure e)
{
	enum {N = 60000, RUN = 57};
	const uint64_t rounds = 6;
	uint64_t	packed = 0,
				bad = 0;
	uint8_t		(*mem)[LEN] = malloc(N * sizeof(*mem));
	const uint8_t **keys = malloc(N * sizeof(*keys));

	for (uint64_t i = 0; i < N; i++)
	{
		key_of(i + 1, mem[i]);
		keys[i] = mem[i];
	}
	engine = e;
	for (uint64_t round = 0; round < rounds; round++)
	{
		ax_checking k = {.buf = malloc(4096), .size = 4096};

		open_list();
		if (ax_load(&cx, tree, gen, &(ax_keys) {keys, NULL, LEN, N}, 90) != AX_OK)
			abort();
		for (uint64_t i = 1; i <= N; i++)
			if (i / RUN % 4)
				(void) change(&cx, i, false);
		while (ax_catch_up(&cx, tree, gen) == AX_BUSY)
			;
		(void) tap_quiesce(&cx);
		/* the list is done with, the layer is next */
		packs = (ax_compaction) {.work = malloc(AX_COMPACT_WORK), .level = 1};
		leaves_seen = (int) (1 + 7 * round);
		while (!k.done && !k.bad)
		{
			/* the walk's second part */
			tap_point_hook = k.walk.n == 2 && !packs.done ? packs_layer : NULL;
			if (ax_check(&cx, tree, gen, &k) == AX_STALE)
				abort();
		}
		tap_point_hook = NULL;
		packed += packs.moved > 0;
		bad += k.bad;
		if (k.bad)
			tap_diag("%s", k.msg);
		free(packs.work);
		free(k.buf);
		ax_tree_close(&cx, tree);
		(void) tap_quiesce(&cx);
	}
	ok(packed > 0 && bad == 0, "%s: the search layer is packed beside a check, %llu times, %llu wrong",
	   ax_structure_name(engine), (unsigned long long) packed, (unsigned long long) bad);
	free(keys);
	free(mem);
	engine = AX_HYDRA_OLC;
}

#define MANY 2000

static ax_status said;

/* Somebody's insert, of an odd key. */
static void
first_insert(const char *name)
{
	if (is_here(name))
		said = change(&other, 3001, true);
}

/*
 * A load of even keys beside the first insert.  The search layer has names of its nodes before the list
 * is there, and a search of another list would come to them.
 */
static void
test_load(const char *at, ax_structure e)
{
	static uint8_t bytes[MANY][LEN];
	const uint8_t *keys[MANY];
	const bool	before = strcmp(at, "hydra.load") == 0;
	ax_tree_info is,
				walk;
	bool		fine;
	char		msg[256] = "";
	uint64_t	done = 0;
	ax_status	x;

	for (uint64_t i = 0; i < MANY; i++)
	{
		key_of(2 * i, bytes[i]);
		keys[i] = bytes[i];
	}
	engine = e;
	open_list();
	here = at;
	met = 0;
	skip = before ? 0 : 25;
	tap_point_hook = first_insert;
	x = ax_load(&cx, tree, gen, &(ax_keys) {keys, NULL, LEN, MANY}, 90);
	tap_point_hook = NULL;
	ok(met == 1 && x == (before ? AX_EXISTS : AX_OK) && said == (before ? AX_OK : AX_BUSY),
	   "%s, engine %d: a load beside an insert, of which the first to be there stays", at, (int) e);
	for (uint64_t d, a; before && done < MANY; done += d)
		if (ax_insert_sorted(&cx, tree, gen,
				&(ax_keys) {keys + done, NULL, LEN, MANY - done}, &d, &a) != AX_OK)
			abort();
	if (!before)
		(void) change(&other, 3001, true);
	ok(contains(3001) == AX_OK && contains(3000) == AX_OK, "the keys of both are there");
	ok(tap_check(&cx, tree, gen, &walk, &fine, msg, sizeof(msg)) == AX_OK && fine &&
	   ax_info(&cx, tree, gen, &is) == AX_OK && walk.entries == MANY + 1 && is.entries == MANY + 1,
	   "and are counted: %llu, %llu %s", (unsigned long long) walk.entries,
	   (unsigned long long) is.entries, msg);
	ax_tree_close(&cx, tree);
	engine = AX_HYDRA_OLC;
}

int
main(void)
{
	static const ax_structure all[] = {AX_HYDRA_OLC, AX_HYDRA_OPTIQL, AX_HYDRA_MVRLU};
	ax_area    *area = tap_area((size_t) 64 << 20, 4, 1 << 20);

	ax_attach(&cx, area, 0, 1, &ax_port_default);
	ax_attach(&other, area, 1, 2, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	test_few();
	test_order();
	test_reordered();
	test_order_told();
	test_torn();
	test_floor();
	test_gone();
	test_stays();
	test_beside();
	test_given_up();
	test_log();
	test_late();
	test_all_late();
	engine = AX_HYDRA_MVRLU;
	test_late();
	test_all_late();
	engine = AX_HYDRA_OLC;
	test_long();
	test_logged();
	test_rising();
	test_large();
	test_nested();
	test_check_changes("hydra.split.committed");
	test_check_changes("hydra.push");
	test_check_packs(AX_HYDRA_OLC);
	test_check_packs(AX_HYDRA_MVRLU);
	for (int e = 0; e < 3; e++)
	{
		test_load("hydra.load", all[e]);
		test_load("hydra.apply", all[e]);
	}
	return tap_done();
}
