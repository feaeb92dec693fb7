/*
 * benchcount.c
 *	  A fixed piece of work by one process, whose instructions callgrind counts:
 *	  see count.sh.
 *
 *	  benchcount [keys [set]]		sets: those of keyset.h
 *
 * Dumps one count for each of: insert, in the set's order; contains, lookup, scan
 * (100 entries) and remove, in another.
 */
#include <stdio.h>
#include <stdlib.h>

#include "keyset.h"
#include "tap.h"

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif
#ifndef CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_TOGGLE_COLLECT ((void) 0)
#define CALLGRIND_ZERO_STATS ((void) 0)
#define CALLGRIND_DUMP_STATS_AT(name) ((void) 0)
#endif

#define BEGIN() \
	do { CALLGRIND_ZERO_STATS; CALLGRIND_TOGGLE_COLLECT; } while (0)
#define END(what, ops) \
	do { \
		CALLGRIND_TOGGLE_COLLECT; \
		CALLGRIND_DUMP_STATS_AT(what); \
		printf("%s %llu\n", what, (unsigned long long) (ops)); \
	} while (0)

static ax_ctx cx;

static void
must(bool it)
{
	if (!it)
	{
		fprintf(stderr, "benchcount: a wrong result\n");
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	uint64_t	n = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000;
	const char *set = argc > 2 ? argv[2] : "random";
	keyset		ks;
	uint64_t	seed = 88172645463325252u,
				gen,
				tids[100];
	ax_found	f = {.tids = tids, .max = 100};
	bool		good = true;
	ax_tree    *t;
	uint8_t		last[256];

	ks_make(&ks, set, n, &seed);
	ax_attach(&cx, tap_area((size_t) 64 << 20, 4, 1 << 20), 0, 1, &ax_port_default);
	t = ax_tree_alloc(&cx);
	must(t && ax_tree_open(&cx, t, tap_structure(), 0, tap_page_size(), &gen) == AX_OK);
	must(ax_tree_set_tail(&cx, t, gen, tap_tail()) == AX_OK);

	BEGIN();
	for (uint64_t i = 0; i < n; i++)
		good &= ax_insert(&cx, t, gen, ks_key(&ks, i), ks.len) == AX_OK;
	END("insert", n);
	BEGIN();
	for (uint64_t i = 0; i < n; i++)
		good &= ax_contains(&cx, t, gen, ks_key(&ks, i * 7919 % n), ks.len) == AX_OK;
	END("contains", n);
	BEGIN();
	for (uint64_t i = 0; i < n; i++)
		good &= ax_lookup(&cx, t, gen, ks_key(&ks, i * 7919 % n), ks.len - AX_TID_BYTES, &f) == AX_OK;
	END("lookup", n);
	BEGIN();
	for (uint64_t i = 0; i < n / 20; i++)
	{
		ax_batch	b = {.max = 100, .tids = tids, .lastkey = last, .lastkey_size = sizeof(last)};

		b.lo = (ax_bound) {ks_key(&ks, i * 7919 % n), ks.len, false};
		b.hi = (ax_bound) {NULL, 0, true};
		good &= ax_scan(&cx, t, gen, &b) == AX_OK;
	}
	END("scan", n / 20);
	BEGIN();
	for (uint64_t i = 0; i < n; i++)
		good &= ax_remove(&cx, t, gen, ks_key(&ks, i * 7919 % n), ks.len) == AX_OK;
	END("remove", n);
	must(good);
	ax_detach(&cx);
	return 0;
}
