/*
 * test_tree.c
 *	  Every operation of the tree against a sorted array, over keys that hit
 *	  every boundary of its layouts; memory comes back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static ax_ctx cx;
static ax_tree *tree;

/* How many keys of a kind: those that are long or slow to model, fewer. */
static uint64_t
how_many(keykind k)
{
	switch (k)
	{
		case KK_LONG:
			return tap_scaled(300);
		case KK_MIDDLE:
		case KK_LENGTHS:
			return tap_scaled(6000);
		case KK_NESTED:
			return tap_scaled(2000);
		default:
			return tap_scaled(20000);
	}
}

static void
remove_all(model *m, int order)
{
	uint64_t	step = 7919;

	if (m->n % step == 0)
		step = 1;
	for (uint64_t i = 0; i < m->n; i++)
	{
		uint64_t	k = order == 0 ? i : order == 1 ? m->n - 1 - i : i * step % m->n;

		if (m->in[k])
			mt_remove(m, k);
		if (i % (m->n / 4 + 1) == 0)
			mt_check(m, "while all is removed");
	}
}

/* Empty: no node, no leaf, and hardly a page. */
static void
expect_nothing(model *m, const char *when)
{
	ax_tree_info ti;

	mt_check(m, when);
	(void) ax_info(m->cx, m->t, m->gen, &ti);
	/* a list keeps its first node */
	if (strcmp(ti.structure, "hydra") == 0 && ti.leaves == 1)
		ti.leaves = 0;
	if (ti.entries || ti.n4 || ti.n16 || ti.n48 || ti.n256 || ti.leaves || ti.embedded)
		mt_die(m, "%s: %llu entries, nodes %llu %llu %llu %llu, %llu leaves, %llu embedded are left", when,
			   (unsigned long long) ti.entries, (unsigned long long) ti.n4, (unsigned long long) ti.n16,
			   (unsigned long long) ti.n48, (unsigned long long) ti.n256, (unsigned long long) ti.leaves,
			   (unsigned long long) ti.embedded);
	if (!tap_quiesce(m->cx))
		mt_die(m, "%s: retired objects do not come back", when);
}

static void
one_kind(keykind kind, uint64_t seed)
{
	model		m;
	uint64_t	n = how_many(kind);
	uint64_t	ops = kind == KK_NESTED ? n : n * 3;
	ax_memory_info before,
				after;

	ax_memory(&cx, &before);
	mt_universe(&m, kind, n, seed);

	/* by single insertions, up and down, down to nothing, and up again */
	mt_open(&m, &cx, tree);
	mt_check(&m, "when new");
	mt_scan(&m, false);
	mt_ops(&m, ops, 75);
	mt_check(&m, "after growing");
	mt_compare_all(&m);
	mt_ops(&m, ops, 20);
	mt_check(&m, "after shrinking");
	mt_compare_all(&m);
	mt_ops(&m, ops, 90);
	mt_check(&m, "after growing again");
	remove_all(&m, (int) (seed % 3));
	expect_nothing(&m, "after removing all");
	for (uint64_t i = 0; i < m.n; i++)
		mt_insert(&m, seed & 1 ? i : m.n - 1 - i);
	mt_check(&m, "after inserting in order");
	mt_compare_all(&m);
	for (int i = 0; i < 50; i++)
		mt_scan(&m, i & 1);
	remove_all(&m, (int) ((seed + 1) % 3));
	expect_nothing(&m, "after removing all again");

	/* by runs, each sorted, as a build in several parts does it */
	for (int i = 0; i < 5; i++)
	{
		mt_insert_sorted(&m, 0, m.n, i == 4 ? 100 : 25);
		mt_check(&m, "after a sorted run");
	}
	mt_compare_all(&m);
	mt_ops(&m, ops / 2, 30);
	mt_check(&m, "after sorted runs and more");
	mt_close(&m);
	if (ax_insert(&cx, tree, m.gen, m.key[0].p, m.key[0].len) != AX_STALE)
		mt_die(&m, "a closed generation takes an entry");
	(void) tap_quiesce(&cx);

	/* by bulk load */
	for (int i = 0; i < 4; i++)
	{
		static const int fills[] = {10, 70, 90, 100};
		static const int part[] = {100, 60, 3, 95};

		mt_open(&m, &cx, tree);
		mt_load(&m, part[(i + (int) seed) & 3], fills[i]);
		mt_check(&m, "after the load");
		mt_compare_all(&m);
		mt_ops(&m, ops / 4, 50);
		mt_check(&m, "after the load and more");
		mt_compare_all(&m);
		if (i == 0)
		{
			remove_all(&m, 2);
			expect_nothing(&m, "after removing what was loaded");
		}
		mt_close(&m);
	}

	/* by shares of a load */
	for (int i = 0; i < 4 && ax_can_load_share(tap_structure()); i++)
	{
		static const uint64_t step[] = {1000000, 100, 7, 1};
		static const int parts[] = {1, 3, 7, 2};

		mt_open(&m, &cx, tree);
		mt_load_shares(&m, i == 1 ? 60 : 100, 90, step[i], parts[(i + (int) seed) & 3]);
		mt_check(&m, "after the load by shares");
		mt_compare_all(&m);
		mt_ops(&m, ops / 4, 50);
		mt_check(&m, "after the load by shares and more");
		mt_compare_all(&m);
		mt_close(&m);
	}
	mt_free(&m);
	ok(tap_quiesce(&cx), "%s: nothing is pending after the close", m.name);
	ax_memory(&cx, &after);
	if (!ok(after.used_bytes == before.used_bytes && after.retired_bytes == 0,
			"%s: memory is back", m.name))
		tap_diag("used %llu, before %llu, retired %llu", (unsigned long long) after.used_bytes,
				 (unsigned long long) before.used_bytes, (unsigned long long) after.retired_bytes);
}

/* A leaf or two and no more: the smallest index.  Large pages take more. */
static void
smallest(void)
{
	model		m;
	ax_tree_info ti;

	mt_universe(&m, KK_DENSE, 10, 1);
	mt_open(&m, &cx, tree);
	for (uint64_t i = 0; i < m.n; i++)
		mt_insert(&m, i);
	(void) ax_info(&cx, tree, m.gen, &ti);
	/* elision's counters come on top */
	ok(ti.bytes <= (ti.page_size > 8192 ? 4096 + ti.page_size : 16384) + (getenv("AX_ELIDE") ? 20480 : 0), "ten rows take %llu bytes",
	   (unsigned long long) ti.bytes);
	mt_compare_all(&m);
	mt_close(&m);
	mt_free(&m);
	(void) tap_quiesce(&cx);
}

int
main(int argc, char **argv)
{
	ax_area    *a = tap_area((size_t) 512 << 20, 4, 1 << 20);
	int			rounds = argc > 1 ? atoi(argv[1]) : 1;
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	int			only = argc > 3 ? atoi(argv[3]) : -1;

	ax_attach(&cx, a, 0, 1, &ax_port_default);
	tap_elide(&cx);
	tree = ax_tree_alloc(&cx);
	smallest();
	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < KK_COUNT; k++)
			if (only < 0 || k == only)
				one_kind((keykind) k, seed + (uint64_t) i);
	ax_tree_release(&cx, tree);
	ax_detach(&cx);
	return tap_done();
}
