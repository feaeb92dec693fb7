/*
 * test_lone.c
 *	  Restarts are counted for what others changed: one who is alone has none,
 *	  whatever grows and shrinks.  An insert for which the tree has grown goes on from
 *	  where it was, also when others change the place in between.  And pages of a B+-tree
 *	  that are too full to be merged are not copied first.
 */
#include <stdlib.h>
#include <string.h>

#include "keyset.h"
#include "tap.h"

static ax_ctx cx;
static ax_tree *tree;
static uint64_t gen;

static uint64_t
restarts(void)
{
	ax_tree_info i;

	(void) ax_info(&cx, tree, gen, &i);
	return i.restarts;
}

static uint32_t
make(uint8_t *k, uint64_t i)
{
	ks_put8(k, i);
	ks_put_tid(k + 8, ks_tid(i & 0xFFFFFF));
	return 14;
}

/* ---- others, where an insert goes on ---- */

#define RANGE 30000

static ax_ctx other;
static bool in[RANGE];			/* by the other */
static int	met;
static uint64_t seed = 4711;

/* Sparse, in nodes of all kinds, with rows of their own. */
static uint32_t
make_near(uint8_t *k, uint64_t i, int whose)
{
	ks_put8(k, i * 37 % 65536 << 24 | i % 5 << 16);
	ks_put_tid(k + 8, ks_tid(2 * i + (uint64_t) whose));
	return 14;
}

static void
busy(const char *name)
{
	if (strcmp(name, "art.widened") != 0)
		return;
	tap_point_hook = NULL;
	met++;
	for (uint64_t i = tap_rand(&seed) % RANGE, n = 0; n < 200; n++, i = (i + 1) % RANGE)
	{
		uint8_t		k[16];
		uint32_t	len = make_near(k, i, 1);

		if ((in[i] ? ax_remove(&other, tree, gen, k, len) : ax_insert(&other, tree, gen, k, len)) == AX_OK)
			in[i] = !in[i];
	}
	tap_point_hook = busy;
}

static void
test_others(void)
{
	uint8_t		k[16];
	ax_tree_info info;
	char		msg[200];
	bool		good;
	uint64_t	lost = 0,
				n = 0;

	/* under the coarse latch of the one nobody else gets in */
	if (strcmp(ax_structure_sync(tap_structure()), "coarse") == 0)
		return;
	tree = ax_tree_alloc(&cx);
	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK)
		abort();
	tap_point_hook = busy;
	for (uint64_t i = 0; i < RANGE; i++)
		while (ax_insert(&cx, tree, gen, k, make_near(k, i * 7919 % RANGE, 0)) == AX_BUSY)
			;
	tap_point_hook = NULL;
	for (uint64_t i = 0; i < RANGE; i++)
	{
		lost += ax_contains(&cx, tree, gen, k, make_near(k, i, 0)) != AX_OK;
		lost += ax_contains(&cx, tree, gen, k, make_near(k, i, 1)) != (in[i] ? AX_OK : AX_NOTFOUND);
		n += 1 + in[i];
	}
	good = tap_check(&cx, tree, gen, &info, &good, msg, sizeof(msg)) == AX_OK && good;
	ok(lost == 0 && good && info.entries == n, "others were there %d times, %llu keys are not right: %s",
	   met, (unsigned long long) lost, msg);
	if (tap_structure() == AX_ART_OLC)
		ok(met > 100, "often enough");
}

/* ---- merges: pages that are too full together are not copied for nothing ---- */

static int	copied,
			fitted;

static void
count(const char *name)
{
	copied += strcmp(name, "bt.merge.copied") == 0;
	fitted += strcmp(name, "bt.merge.before_lock") == 0;
}

static void
test_merges(void)
{
	uint64_t	x = 99;
	uint8_t		k[16];

	if (!ax_structure_is_btree(tap_structure()))
		return;
	tree = ax_tree_alloc(&cx);
	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK)
		abort();
	for (uint64_t i = 0; i < 20000; i++)
		(void) ax_insert(&cx, tree, gen, k, make(k, i * UINT64_C(0x9E3779B97F4A7C15)));
	tap_point_hook = count;
	for (uint64_t i = 0; i < 20000; i++)
		if (tap_rand(&x) % 100 < 85)
			(void) ax_remove(&cx, tree, gen, k, make(k, i * UINT64_C(0x9E3779B97F4A7C15)));
	tap_point_hook = NULL;
	ok(fitted > 50 && copied == fitted, "%d merges, %d times copied", fitted, copied);
	ax_tree_close(&cx, tree);
	ax_tree_release(&cx, tree);
}

int
main(void)
{
	static const char *const name[] = {"random", "rising", "clustered", "few", "falling", "spread"};
	const uint64_t n = tap_scaled(100000);

	ax_area    *area = tap_area((size_t) 128 << 20, 2, 1 << 20);

	ax_attach(&cx, area, 0, 1, &ax_port_default);
	for (int kind = 0; kind < 6; kind++)
	{
		uint64_t	x0 = 17;
		uint64_t   *keys = malloc(n * sizeof(*keys));
		uint8_t		k[16];
		bool		fine = true;
		uint64_t	after;

		tree = ax_tree_alloc(&cx);
		if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK)
			abort();
		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t	x = tap_rand(&x0);

			keys[i] = kind == 0 ? x : kind == 1 ? i : kind == 2 ? x % 50 << 40 | x % 7777 :
				kind == 3 ? x % 3000 : kind == 4 ? (n - i) * 100 : i % 7919 * 100000 + i;
		}
		for (uint64_t i = 0; i < n; i++)
		{
			ax_status	x = ax_insert(&cx, tree, gen, k, make(k, keys[i]));

			fine = fine && (x == AX_OK || x == AX_EXISTS);
		}
		after = restarts();
		for (uint64_t i = 0; i < n; i++)
			fine = fine && ax_contains(&cx, tree, gen, k, make(k, keys[i])) == AX_OK;
		ok(fine && after == 0, "%s: %llu inserts, %llu restarts", name[kind],
		   (unsigned long long) n, (unsigned long long) after);
		for (uint64_t i = 0; i < n; i += 2)
		{
			ax_status	x = ax_remove(&cx, tree, gen, k, make(k, keys[i]));

			fine = fine && (x == AX_OK || x == AX_NOTFOUND);
		}
		ok(fine && restarts() == after, "%s: %llu of removals", name[kind],
		   (unsigned long long) (restarts() - after));
		ax_tree_close(&cx, tree);
		ax_tree_release(&cx, tree);
		free(keys);
	}
	ax_attach(&other, area, 1, 2, &ax_port_default);
	test_others();
	test_merges();
	ax_detach(&other);
	ax_detach(&cx);
	return tap_done();
}
