/*
 * test_compact.c
 *	  What removals leave is given back: after a compaction a tree holds at most
 *	  half as much again as one that is loaded with the same keys.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_internal.h"
#include "keyset.h"
#include "tap.h"

#define SLACK	(224 * 1024)	/* of some fourteen classes the last small span stays, 16 KiB */

static ax_ctx cx;
static ax_tree *tree;
static void *work;

static void
die(const char *what)
{
	tap_diag("%s", what);
	exit(1);
}

/* Passes, as VACUUM makes them, until nothing more is to be had. */
static uint64_t
compact_all(ax_tree *t, uint64_t gen)
{
	uint64_t	moved = 0;

	for (int pass = 0; pass < 6; pass++)
	{
		ax_compaction c = {.work = work};
		ax_tree_info ti;

		while (!c.done)
			if (ax_compact(&cx, t, gen, &c) != AX_OK)
				die("a compaction fails");
		moved += c.moved;
		ax_flush(&cx);
		if (!tap_quiesce(&cx))
			die("retired objects do not come back");
		ax_flush(&cx);
		(void) ax_info(&cx, t, gen, &ti);
		if (c.moved == 0 || !ax_compact_due(ti.bytes, ti.live_bytes))
			break;
	}
	return moved;
}

static uint64_t
leaves_of(ax_tree *t, uint64_t gen)
{
	ax_tree_info ti;
	bool		sound;
	char		msg[256] = "";

	if (tap_check(&cx, t, gen, &ti, &sound, msg, sizeof(msg)) != AX_OK || !sound)
		die(msg);
	return ti.leaves;
}

/* Bytes and leaves of a tree that is loaded with these keys, sorted. */
static uint64_t
fresh_bytes(const uint8_t **keys, uint32_t len, uint64_t n, uint64_t *leaves)
{
	ax_tree    *t = ax_tree_alloc(&cx);
	ax_tree_info ti;
	uint64_t	gen;

	if (!t || ax_tree_open(&cx, t, tap_structure(), 0, tap_page_size(), &gen) != AX_OK ||
		ax_load(&cx, t, gen, &(ax_keys) {keys, NULL, len, n}, 90) != AX_OK)
		die("no memory for a fresh tree");
	*leaves = leaves_of(t, gen);
	(void) ax_info(&cx, t, gen, &ti);
	ax_tree_close(&cx, t);
	ax_tree_release(&cx, t);
	(void) tap_quiesce(&cx);
	return ti.bytes;
}

static void
check(ax_tree *t, uint64_t gen, uint64_t n, const char *name)
{
	ax_tree_info ti;
	bool		sound;
	char		msg[256] = "";

	if (tap_check(&cx, t, gen, &ti, &sound, msg, sizeof(msg)) != AX_OK || !sound)
		tap_diag("%s", msg);
	ok(sound && ti.entries == n, "%s: sound, with its %llu entries", name, (unsigned long long) n);
}

enum
{
	RANDOM, RANGES, SECOND, FEW, TENTHS, ALL_BUT_ONE, HALF, ONCE, TENFOLD
};
static const char *const pattern[] = {
	"90 % at random", "ranges", "every second", "all but every 50th", "99 % at random",
	"all but one range", "half at random", "each replaced", "each replaced ten times"
};

static bool
stays(int what, uint64_t rank, uint64_t n, uint64_t *seed)
{
	switch (what)
	{
		case RANDOM:
			return tap_rand(seed) % 10 == 0;
		case RANGES:
			return rank / (n / 40 + 1) % 8 == 0;
		case SECOND:
			return rank % 2 == 0;
		case FEW:
			return rank % 50 == 0;
		case TENTHS:
			return tap_rand(seed) % 100 == 0;
		case HALF:
			return tap_rand(seed) % 2 == 0;
		default:
			return rank < n / 10;
	}
}

/*
 * Of n keys, as many as are there at a time are the last that were inserted; one
 * at random goes for each that comes, until so many have been replaced.
 */
static uint64_t
replace(const keyset *ks, uint64_t n, uint64_t there, const uint8_t **kept, uint64_t gen,
		uint64_t *seed)
{
	for (uint64_t i = 0; i < there; i++)
	{
		kept[i] = ks_key(ks, i);
		if (ax_insert(&cx, tree, gen, kept[i], ks->len) != AX_OK)
			die("no insert");
	}
	for (uint64_t i = there; i < n; i++)
	{
		uint64_t	r = tap_rand(seed) % there;

		if (ax_remove(&cx, tree, gen, kept[r], ks->len) != AX_OK ||
			ax_insert(&cx, tree, gen, ks_key(ks, i), ks->len) != AX_OK)
			die("no replacement");
		kept[r] = ks_key(ks, i);
	}
	return there;
}

static int
by_bytes(const void *a, const void *b, void *len)
{
	return memcmp(*(const uint8_t *const *) a, *(const uint8_t *const *) b, *(uint32_t *) len);
}

/* Insert all, remove by the pattern, compact, compare. */
static void
one_pattern(const char *kind, int what, bool loaded, uint64_t seed)
{
	keyset		ks;
	uint64_t	n = tap_scaled(200000),
				left = 0,
				gen,
				held,
				fresh,
				fresh_leaves;
	const uint8_t **kept;
	ax_tree_info ti;
	char		name[128];

	ks_make(&ks, kind, n, &seed);
	ks_sort(&ks);
	kept = malloc(n * sizeof(*kept));
	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK)
		die("no tree");
	if (what >= ONCE)
	{
		left = replace(&ks, n, what == ONCE ? n / 2 : n / 11, kept, gen, &seed);
		qsort_r(kept, left, sizeof(*kept), by_bytes, &ks.len);
	}
	else if (loaded)
	{
		if (ax_load(&cx, tree, gen, &(ax_keys) {ks.sorted, NULL, ks.len, n}, 90) != AX_OK)
			die("no load");
	}
	else
		for (uint64_t i = 0; i < n; i++)
			if (ax_insert(&cx, tree, gen, ks_key(&ks, i), ks.len) != AX_OK)
				die("no insert");
	for (uint64_t i = 0; i < n && what < ONCE; i++)
	{
		if (stays(what, i, n, &seed))
			kept[left++] = ks.sorted[i];
		else if (ax_remove(&cx, tree, gen, ks.sorted[i], ks.len) != AX_OK)
			die("no removal");
	}
	(void) tap_quiesce(&cx);
	ax_flush(&cx);
	(void) ax_info(&cx, tree, gen, &ti);
	held = ti.bytes;
	compact_all(tree, gen);
	(void) ax_info(&cx, tree, gen, &ti);
	fresh = fresh_bytes(kept, ks.len, left, &fresh_leaves);
	snprintf(name, sizeof(name), "%s, %s, %s", kind, loaded && what < ONCE ? "loaded" : "inserted", pattern[what]);
	tap_diag("%s: %llu entries, %llu kB before, %llu after (%llu in use), fresh %llu", name,
			 (unsigned long long) left, (unsigned long long) held / 1024,
			 (unsigned long long) ti.bytes / 1024, (unsigned long long) ti.live_bytes / 1024,
			 (unsigned long long) fresh / 1024);
	ok(ti.bytes <= fresh + fresh / 2 + SLACK, "%s: no more than half as much again as fresh", name);
	check(tree, gen, left, name);
	for (uint64_t i = 0; i < left; i++)
		if (ax_contains(&cx, tree, gen, kept[i], ks.len) != AX_OK)
			die("a key is lost");
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	free(kept);
	ks_free(&ks);
}

/* Of leaves that are two thirds full no two go together into one, but three into two. */
static void
thirds(const char *kind)
{
	enum
	{
		N = 40000
	};
	const uint8_t *kept[N];
	uint64_t	seed = 77,
				left = 0,
				gen,
				leaves,
				fresh_leaves;
	keyset		ks;

	ks_make(&ks, kind, N, &seed);
	ks_sort(&ks);
	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK ||
		ax_load(&cx, tree, gen, &(ax_keys) {ks.sorted, NULL, ks.len, N}, 90) != AX_OK)
		die("no tree");
	for (int i = 0; i < N; i++)
	{
		if (i % 3)
			kept[left++] = ks.sorted[i];
		else if (ax_remove(&cx, tree, gen, ks.sorted[i], ks.len) != AX_OK)
			die("no removal");
	}
	compact_all(tree, gen);
	leaves = leaves_of(tree, gen);
	(void) fresh_bytes(kept, ks.len, left, &fresh_leaves);
	ok(leaves <= fresh_leaves + fresh_leaves / 6, "%s, every third: %llu leaves, fresh %llu", kind,
	   (unsigned long long) leaves, (unsigned long long) fresh_leaves);
	check(tree, gen, left, "every third");
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	ks_free(&ks);
}

/* ---- beside readers and writers ---- */

#define THREADS 8
#define SLOTS	4096

static ax_area *area;
static struct
{
	_Atomic bool end;
	uint64_t	gen;
	_Atomic uint64_t lost,
				passes;
}			shared;

/* Key i of a set that all know: some nested, some long, most short. */
static uint32_t
stress_key(uint64_t i, uint8_t *k)
{
	uint64_t	x = i * UINT64_C(0x9E3779B97F4A7C15);
	uint32_t	len = 8;

	ks_put8(k, i % 3 ? x : i << 20);
	if (i % 7 == 0)
	{
		memset(k + 8, 'a', 24);
		len = 32;
	}
	if (i % 501 == 0)
	{
		memset(k + len, 'b', 1500);
		len += 1500;
	}
	ks_put_tid(k + len, ks_tid(i));
	return len + AX_TID_BYTES;
}

/*
 * Threads 0 and 1 compact; the others insert and remove keys of their own, all but
 * those that are a multiple of 16, which stay and are looked for by all.
 */
static void
beside(void *arg, int me)
{
	static _Thread_local ax_ctx c;
	uint64_t	seed = (uint64_t) me * 977 + 5,
				n = tap_scaled(60000);
	uint8_t		k[2048];
	ax_batch	b = {0};
	uint64_t	tids[300];
	uint8_t		last[4096];

	ax_attach(&c, area, 1 + me, 100 + me, &ax_port_default);
	if (me < 2)
	{
		void	   *mine = malloc(AX_COMPACT_WORK);

		while (!atomic_load(&shared.end))
		{
			ax_compaction x = {.work = mine};

			while (!x.done && ax_compact(&c, tree, shared.gen, &x) != AX_STALE)
				;
			ax_flush_idle(&c);
			atomic_fetch_add(&shared.passes, 1);
		}
		free(mine);
	}
	else
	{
		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t	r = tap_rand(&seed) % SLOTS;
			uint64_t	own = r * THREADS + (uint64_t) me;
			uint32_t	len = stress_key(own, k);
			bool		grow = i / (n / 4) % 2 == 0;

			if (r % 16 == 0)
			{
				if (ax_contains(&c, tree, shared.gen, k, len) == AX_NOTFOUND)
					atomic_fetch_add(&shared.lost, 1);
				continue;
			}
			if (tap_rand(&seed) % 8 < (grow ? 6 : 1))
				while (ax_insert(&c, tree, shared.gen, k, len) == AX_BUSY)
					;
			else
				while (ax_remove(&c, tree, shared.gen, k, len) == AX_BUSY)
					;
			if (i % 512 == 0)
			{
				/* what stays lies in a whole scan, each once */
				uint64_t	found = 0;

				b.lo.len = 0;
				b.lo.after = false;
				b.hi.len = 0;
				b.hi.after = true;
				b.max = 300;
				b.tids = tids;
				b.backward = i % 1024 == 0;
				b.lastkey = last;
				b.lastkey_size = sizeof(last);
				for (uint8_t from[4096];;)
				{
					ax_status	x = ax_scan(&c, tree, shared.gen, &b);

					if (x == AX_BUSY)
						continue;
					if (x != AX_OK)
						die("a scan fails");
					for (uint32_t j = 0; j < b.n; j++)
						found += ks_row(tids[j]) / THREADS % 16 == 0;
					if (b.exhausted)
						break;
					memcpy(from, last, b.lastlen);
					if (b.backward)
						b.hi = (ax_bound) {from, b.lastlen, false};
					else
						b.lo = (ax_bound) {from, b.lastlen, true};
				}
				if (found != SLOTS / 16 * THREADS)
					atomic_fetch_add(&shared.lost, 1);
			}
		}
		if (me == 2)
			atomic_store(&shared.end, true);
	}
	ax_detach(&c);
}

static void
stress(void)
{
	uint8_t		k[2048];
	ax_tree_info ti;
	bool		sound;
	char		msg[256] = "";

	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &shared.gen) != AX_OK)
		die("no tree");
	for (uint64_t i = 0; i < SLOTS * THREADS; i++)
		if (ax_insert(&cx, tree, shared.gen, k, stress_key(i, k)) != AX_OK)
			die("no insert");
	tap_threads(THREADS, beside, NULL);
	ok(atomic_load(&shared.lost) == 0, "no key that stays is missed beside %llu passes",
	   (unsigned long long) atomic_load(&shared.passes));
	if (tap_check(&cx, tree, shared.gen, &ti, &sound, msg, sizeof(msg)) != AX_OK || !sound)
		tap_diag("%s", msg);
	ok(sound, "sound after compactions beside writers");
	ax_tree_close(&cx, tree);
	ok(tap_quiesce(&cx), "nothing is left");
}

/* A key of len bytes: a group, a rising number, and what all have. */
static const uint8_t *
group_key(uint8_t *k, uint64_t group, uint64_t i, uint32_t len)
{
	memset(k, 'f', len);
	k[0] = (uint8_t) (group >> 8);
	k[1] = (uint8_t) group;
	for (int b = 0; b < 8; b++)
		k[2 + b] = (uint8_t) (i >> (56 - 8 * b));
	ks_put_tid(k + len - AX_TID_BYTES, ks_tid(i));
	return k;
}

/*
 * Keys rise in many groups, so all leaves are full.  Of their groups most go.  What is left
 * in a span, one full leaf or two, can be moved.
 */
static void
full_leaves(uint32_t len)
{
	const uint64_t groups = 1000,
				each = tap_scaled(160);
	uint64_t	n = 0,
				gen,
				fresh,
				fresh_leaves;
	uint8_t    *bytes = malloc(groups * each * len);
	const uint8_t **kept = malloc(groups * each * sizeof(*kept));
	uint8_t		k[128];
	ax_tree_info ti;

	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK)
		die("no tree");
	for (uint64_t i = 0; i < each; i++)
		for (uint64_t g = 0; g < groups; g++)
			if (ax_insert(&cx, tree, gen, group_key(k, g, i, len), len) != AX_OK)
				die("no insert");
	for (uint64_t g = 0; g < groups; g++)
		for (uint64_t i = 0; i < each; i++)
		{
			if (g % 20 == 0)
				kept[n] = group_key(bytes + n * len, g, i, len), n++;
			else if (ax_remove(&cx, tree, gen, group_key(k, g, i, len), len) != AX_OK)
				die("no removal");
		}
	(void) tap_quiesce(&cx);
	compact_all(tree, gen);
	(void) ax_info(&cx, tree, gen, &ti);
	fresh = fresh_bytes(kept, len, n, &fresh_leaves);
	ok(ti.bytes <= fresh + fresh / 2 + SLACK, "full leaves of keys of %u bytes: %llu kB, fresh %llu", len,
	   (unsigned long long) ti.bytes / 1024, (unsigned long long) fresh / 1024);
	check(tree, gen, n, "full leaves");
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	free(kept);
	free(bytes);
}

#define LONG	3000

/* A long key has an object of its own, and short ones have leaves: these go with them. */
static void
gone_with_keys(uint32_t len)
{
	uint8_t		key[LONG];
	uint64_t	gen;
	ax_tree_info ti;
	bool		good = true;

	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK)
		die("no memory");
	memset(key, 'k', sizeof(key));
	for (int round = 0; round < 3; round++)
		for (int in = 1; in >= 0; in--)
			for (uint64_t i = 0; i < 200; i++)
			{
				ks_put8(key, i);
				ks_put_tid(key + len - 6, ks_tid(i));
				good = good && (in ? ax_insert : ax_remove) (&cx, tree, gen, key, len) == AX_OK;
			}
	(void) tap_quiesce(&cx);
	ax_flush(&cx);
	(void) ax_info(&cx, tree, gen, &ti);
	ok(good && ti.entries == 0 && ti.live_bytes < 40000, "keys of %u bytes have gone, and %llu bytes are left",
	   len, (unsigned long long) ti.live_bytes);
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

int
main(void)
{
	static const char *const kinds[] = {"random", "uuid", "text", "dense", "dups"};

	area = tap_area((size_t) 512 << 20, THREADS + 4, 1 << 20);
	work = malloc(AX_COMPACT_WORK);
	ax_attach(&cx, area, 0, 1, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	for (int k = 0; k < 5; k++)
		for (int what = RANDOM; what <= TENFOLD; what++)
			one_pattern(kinds[k], what, (k + what) % 2, 4711);
	thirds("random");
	thirds("uuid");
	for (uint32_t len = 64; len <= 72; len += 2)
		full_leaves(len);
	gone_with_keys(LONG);
	gone_with_keys(16);
	stress();
	ax_detach(&cx);
	return tap_done();
}
