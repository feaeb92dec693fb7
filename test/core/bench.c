/*
 * bench.c
 *	  What the tree itself costs, one thread, no PostgreSQL: nanoseconds an
 *	  operation and bytes a key.
 *
 *	  bench [keys [set ...]]		sets: dense random uuid text dups
 *
 * load: sorted bulk load.  insert: into an empty tree, in the set's own order
 * (dense and dups come in heap order); of many: by ax_insert_many, 64 at a time.  look-up: ax_lookup of random keys,
 * each independent of the one before, or chosen by the TID the one before
 * returned; of many: by ax_lookup_many, 64 at a time.  scan100: 100 entries from a random key on.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ax.h"
#include "keyset.h"
#include "meter.h"
#include "tap.h"

#define MANY 64

static ax_ctx cx;
static uint64_t seed = 88172645463325252u;

static double
per(uint64_t t0, uint64_t n)
{
	return (double) (mr_now() - t0) / (double) n;
}

static void
report(const keyset *ks, const char *what, double v, const char *unit)
{
	printf("%-8s %-22s %10.1f %s\n", ks->name, what, v, unit);
	fflush(stdout);
}

static void
sizes(ax_tree *t, uint64_t gen, const keyset *ks, const char *when)
{
	ax_tree_info ti;
	char		what[64];

	mr_need(ax_info(&cx, t, gen, &ti), AX_OK, "info");
	if (ti.entries != ks->n)
	{
		fprintf(stderr, "%llu entries of %llu\n", (unsigned long long) ti.entries, (unsigned long long) ks->n);
		exit(1);
	}
	snprintf(what, sizeof(what), "bytes after %s", when);
	report(ks, what, (double) ti.bytes / (double) ks->n, "B/key");
	printf("%-8s   n4 %llu n16 %llu n48 %llu n256 %llu leaves %llu embedded %llu\n", ks->name,
		   (unsigned long long) ti.n4, (unsigned long long) ti.n16, (unsigned long long) ti.n48,
		   (unsigned long long) ti.n256, (unsigned long long) ti.leaves, (unsigned long long) ti.embedded);
}

static void
lookups(ax_tree *t, uint64_t gen, const keyset *ks)
{
	static uint64_t many[16 * MANY];
	uint64_t	tids[16];
	uint32_t	n;
	ax_found	f = {.tids = tids, .max = 16};
	uint64_t	ops = ks->n < 2000000 ? ks->n : 2000000;
	uint64_t	t0,
				found = 0,
				r = 1;
	uint32_t   *order = malloc(ops * sizeof(*order));

	if (!order)
		exit(2);
	for (uint64_t i = 0; i < ops; i++)
		order[i] = (uint32_t) (tap_rand(&seed) % ks->n);
	t0 = mr_now();
	for (uint64_t i = 0; i < ops; i++)
	{
		const uint8_t *k = ks_key(ks, order[i]);

		mr_need(ax_lookup(&cx, t, gen, k, ks->len - 6, &f), AX_OK, "lookup");
		found += f.n;
	}
	report(ks, "look-up independent", per(t0, ops), "ns");
	t0 = mr_now();
	for (uint64_t i = 0; i + MANY <= ops; i += MANY)
	{
		const uint8_t *k[MANY];
		uint32_t	counts[MANY];

		for (int j = 0; j < MANY; j++)
			k[j] = ks_key(ks, order[i + (uint64_t) j]);
		mr_need(ax_lookup_many(&cx, t, gen,
				&(ax_keys) {k, NULL, ks->len - 6, MANY}, &(ax_found) {.tids = many, .max = 16 * MANY}, counts, &n), AX_OK, "look-up of many");
		found -= n == MANY ? 0 : ops;
	}
	report(ks, "look-up of many", per(t0, ops), "ns");
	t0 = mr_now();
	for (uint64_t i = 0; i < ops; i++)
	{
		const uint8_t *k = ks_key(ks, r);

		mr_need(ax_lookup(&cx, t, gen, k, ks->len - 6, &f), AX_OK, "lookup");
		r = (ks_row(f.n ? tids[0] : 0) + order[i]) % ks->n;
	}
	report(ks, "look-up dependent", per(t0, ops), "ns");
	t0 = mr_now();
	for (uint64_t i = 0; i < ops; i++)
		mr_need(ax_contains(&cx, t, gen, ks_key(ks, order[i]), ks->len), AX_OK, "contains");
	report(ks, "contains", per(t0, ops), "ns");
	t0 = mr_now();
	for (uint64_t i = 0; i < ops; i++)
		r += ks->keys[(uint64_t) order[i] * ks->len + 5];
	report(ks, "(the test's own miss)", per(t0, ops), "ns");
	if (found < ops || r == 0)
	{
		fprintf(stderr, "%llu found of %llu\n", (unsigned long long) found, (unsigned long long) ops);
		exit(1);
	}
	free(order);
}

static void
scans(ax_tree *t, uint64_t gen, const keyset *ks)
{
	static uint64_t tids[1000];
	static uint32_t off[1001];
	static uint8_t keybuf[64000],
				last[512],
				from[512];
	uint64_t	ops = ks->n < 200000 ? ks->n : 200000;
	uint64_t	t0,
				n = 0;

	for (int keys = 0; keys < 2; keys++)
	{
		t0 = mr_now();
		n = 0;
		for (uint64_t i = 0; i < ops; i++)
		{
			const uint8_t *k = ks_key(ks, tap_rand(&seed) % ks->n);
			ax_batch	b = {.lo = {k, ks->len - 6, false}, .hi = {NULL, 0, true},
				.max = 100, .tids = tids, .want_keys = keys, .key_off = off,
				.keybuf = keybuf, .keybuf_size = sizeof(keybuf),
			.lastkey = last, .lastkey_size = sizeof(last)};

			mr_need(ax_scan(&cx, t, gen, &b), AX_OK, "scan");
			n += b.n;
		}
		report(ks, keys ? "scan100 with keys" : "scan100", per(t0, ops), "ns");
	}
	for (int back = 0; back < 2; back++)
	{
		ax_batch	b = {.lo = {from, 0, false}, .hi = {from, 0, true}, .backward = back,
			.max = 1000, .tids = tids,
		.lastkey = last, .lastkey_size = sizeof(last)};

		t0 = mr_now();
		n = 0;
		for (;;)
		{
			mr_need(ax_scan(&cx, t, gen, &b), AX_OK, "scan");
			n += b.n;
			if (b.exhausted)
				break;
			memcpy(from, last, b.lastlen);
			*(back ? &b.hi : &b.lo) = (ax_bound) {from, b.lastlen, !back};
		}
		if (n != ks->n)
		{
			fprintf(stderr, "%llu scanned of %llu\n", (unsigned long long) n, (unsigned long long) ks->n);
			exit(1);
		}
		report(ks, back ? "whole scan back, a key" : "whole scan, a key", per(t0, n), "ns");
	}
}

static void
run(const char *name, uint64_t n)
{
	keyset		ks;
	ax_tree    *t = ax_tree_alloc(&cx);
	uint64_t	gen,
				t0;
	bool		good;
	char		msg[200];
	ax_tree_info ti;

	ks_make(&ks, name, n, &seed);
	ks_sort(&ks);

	mr_need(ax_tree_open(&cx, t, tap_structure(), 0, tap_page_size(), &gen), AX_OK, "open");
	t0 = mr_now();
	mr_need(ax_load(&cx, t, gen, &(ax_keys) {ks.sorted, NULL, ks.len, n}, 90), AX_OK, "load");
	report(&ks, "load", per(t0, n), "ns");
	sizes(t, gen, &ks, "load");
	lookups(t, gen, &ks);
	ax_tree_close(&cx, t);
	(void) tap_quiesce(&cx);

	mr_need(ax_tree_open(&cx, t, tap_structure(), 0, tap_page_size(), &gen), AX_OK, "open");
	t0 = mr_now();
	for (uint64_t i = 0; i < n; i++)
		mr_need(ax_insert(&cx, t, gen, ks_key(&ks, i), ks.len), AX_OK, "insert");
	report(&ks, "insert", per(t0, n), "ns");
	ax_tree_close(&cx, t);
	(void) tap_quiesce(&cx);

	mr_need(ax_tree_open(&cx, t, tap_structure(), 0, tap_page_size(), &gen), AX_OK, "open");
	t0 = mr_now();
	for (uint64_t i = 0; i < n; i += MANY)
	{
		const uint8_t *k[MANY];
		uint32_t	lens[MANY],
					some = n - i < MANY ? (uint32_t) (n - i) : MANY,
					done;

		for (uint32_t j = 0; j < some; j++)
		{
			k[j] = ks_key(&ks, i + j);
			lens[j] = ks.len;
		}
		mr_need(ax_insert_many(&cx, t, gen, &(ax_keys) {k, lens, 0, some}, &done), AX_OK, "insert of many");
	}
	report(&ks, "insert of many", per(t0, n), "ns");
	sizes(t, gen, &ks, "insert");
	lookups(t, gen, &ks);
	scans(t, gen, &ks);
	t0 = mr_now();
	mr_need(tap_check(&cx, t, gen, &ti, &good, msg, sizeof(msg)), AX_OK, "check");
	if (!good)
	{
		fprintf(stderr, "check: %s\n", msg);
		exit(1);
	}
	report(&ks, "check, a key", per(t0, n), "ns");
	t0 = mr_now();
	for (uint64_t i = 0; i < n; i++)
		mr_need(ax_remove(&cx, t, gen, ks_key(&ks, i * 7919 % n), ks.len), AX_OK, "remove");
	report(&ks, "remove", per(t0, n), "ns");
	ax_tree_close(&cx, t);
	(void) tap_quiesce(&cx);
	ax_tree_release(&cx, t);
	ks_free(&ks);
}

int
main(int argc, char **argv)
{
	static const char *const all[] = {"dense", "random", "uuid", "text", "dups"};
	uint64_t	n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	ax_area    *a = tap_area((size_t) 256 * n + (64 << 20), 4, 1 << 20);

	if (n % 7919 == 0)
		n++;					/* the order of removal is a permutation */
	ax_attach(&cx, a, 0, 1, &ax_port_default);
	tap_elide(&cx);
	if (argc > 2)
		for (int i = 2; i < argc; i++)
			run(argv[i], n);
	else
		for (int i = 0; i < 5; i++)
			run(all[i], n);
	ax_detach(&cx);
	return 0;
}
