/*
 * test_tail.c
 *	  The tail buffer by one process: every call against the model while keys
 *	  rise, at many places of the key space; what "auto" makes of patterns of keys.
 *
 *	  test_tail [rounds [seed [kind]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static ax_ctx cx;
static ax_tree *tree;

static ax_tree_info
info(model *m)
{
	ax_tree_info i;

	if (ax_info(m->cx, m->t, m->gen, &i) != AX_OK)
		mt_die(m, "no counters");
	return i;
}

static void
flush_some(model *m, int steps)
{
	bool		more = true;

	while (more && steps-- > 0)
	{
		ax_status	r = ax_tail_flush(m->cx, m->t, m->gen, &more);

		if (r != AX_OK && r != AX_BUSY)
			mt_die(m, "flush: status %d", (int) r);
	}
}

/* Around a place that moves on: mostly new keys, but all else, too. */
static void
rise(model *m, uint64_t at, uint64_t n)
{
	for (uint64_t x = 0; x < n; x++)
	{
		uint64_t	r = tap_rand(&m->seed);
		uint64_t	near = at + (r >> 20) % 24;
		uint64_t	i;

		near = near > 12 ? near - 12 : 0;
		i = near < m->n ? near : m->n - 1;
		if (r % 8 < 3 && at < m->n)
			mt_insert(m, at++);
		else if (r % 64 == 3)
			at += (r >> 8) % 50;	/* a gap */
		else if (r % 16 == 4)
			mt_insert(m, i);
		else if (r % 16 == 5)
			mt_remove(m, i);
		else if (r % 8 == 6)
			mt_lookup(m, i);
		else if (r % 8 == 7)
			mt_contains(m, i);
		else if (r % 256 == 12)
			mt_scan_near(m, i, (r >> 8) % 300, (r >> 17) & 1);
		else if (r % 1024 == 20)
			mt_scan(m, (r >> 17) & 1);
		else if (r % 1024 == 28)
			flush_some(m, (int) (r >> 10) % 4 + 1);
		else if (r % 1024 == 36)
			mt_remove(m, (r >> 10) % m->n);
	}
}

static void
one_kind(keykind kind, uint64_t seed)
{
	model		m;
	uint64_t	n = kind == KK_LONG ? tap_scaled(200) : kind == KK_MIDDLE || kind == KK_NESTED ?
		tap_scaled(1000) : tap_scaled(5000);
	uint64_t	in = 0;
	ax_memory_info before,
				after;

	ax_memory(&cx, &before);
	mt_universe(&m, kind, n, seed);
	mt_open(&m, &cx, tree);
	if (seed & 1)
		mt_load(&m, 20, 90);
	for (int k = 0; k < 10; k++)
	{
		/* shut, and opened at another place, the old one full as it may be */
		mt_tail(&m, AX_TAIL_OFF);
		if (tap_rand(&m.seed) & 1)
			flush_some(&m, 1000);
		mt_tail(&m, k % 4 == 3 ? AX_TAIL_AUTO : AX_TAIL_ON);
		rise(&m, k == 0 ? 0 : tap_rand(&m.seed) % m.n, n / 2 + 100);
		if (k % 3 == 0)
			mt_compare_all(&m);
		if (k % 3 == 1)
			mt_check(&m, "after some rising");
	}
	in = info(&m).tail_inserts;
	flush_some(&m, 1000);
	if (info(&m).tail_entries)
		mt_die(&m, "flushed, and %llu are left", (unsigned long long) info(&m).tail_entries);
	mt_check(&m, "when flushed");
	mt_compare_all(&m);
	for (uint64_t i = 0; i < m.n; i++)
		if (m.in[i])
			mt_remove(&m, i);
	if (info(&m).entries)
		mt_die(&m, "all removed, and %llu are left", (unsigned long long) info(&m).entries);
	mt_close(&m);
	(void) tap_quiesce(&cx);
	ax_memory(&cx, &after);
	ok(kind != KK_DENSE || in > n / 10, "%s: as the model (%llu through a buffer)", m.name,
	   (unsigned long long) in);
	ok(after.used_bytes == before.used_bytes, "%s: memory is back", m.name);
	mt_free(&m);
}

int
main(int argc, char **argv)
{
	ax_area    *a = tap_area((size_t) 512 << 20, 4, 1 << 20);
	int			rounds = argc > 1 ? atoi(argv[1]) : 2;
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	int			only = argc > 3 ? atoi(argv[3]) : -1;

	ax_attach(&cx, a, 0, 1, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < KK_COUNT; k++)
			if (only < 0 || k == only)
				one_kind((keykind) k, seed + (uint64_t) i);
	ax_tree_release(&cx, tree);
	ax_detach(&cx);
	return tap_done();
}
