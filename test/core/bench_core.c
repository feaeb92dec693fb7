/*
 * bench_core.c
 *	  One thread, no PostgreSQL, against the goals: L, then every engine as a
 *	  multiple of it.
 *
 * Environment: N keys (10,000,000; QUICK=1: 500,000), L_MB over which L is
 * measured (2048), ENGINES, CSV.
 *
 * Keys carry the TID of their row; every answer is compared with it.  The keys
 * that are asked for lie in the order of asking, so that what is timed is the
 * tree's misses and not the test's own.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keyset.h"
#include "meter.h"
#include "tap.h"

typedef enum measure
{
	INSERT, INDEPENDENT, DEPENDENT, SCAN100, BYTES, MEASURES
} measure;

static const char *const measure_name[MEASURES] = {
	"insert", "look-up, independent", "look-up, dependent", "scan of 100 keys", "bytes a key"
};

static const char *const sets[] = {"random", "dense", "text"};
static const char *const set_title[] = {"sparse", "dense", "25-byte strings"};

#define SETS 3

/* Goals in L (bytes: bytes); 0: none. */
static const double goals[2][SETS][MEASURES] = {
	{							/* ART */
		{1.6, 0.9, 2.3, 13, 22},
		{0.7, 0.35, 1.1, 5, 11},
		{3.0, 2.0, 0, 0, 39}
	},
	{							/* B+-tree */
		{2.0, 1.9, 0, 5, 24},
		{0, 0, 0, 5, 0},
		{0, 0, 0, 0, 0}
	}
};

static ax_ctx cx;
static ax_structure engines[AX_STRUCTURES];
static int	nengines;
static uint64_t seed = 88172645463325252u;
static double results[AX_STRUCTURES][SETS][MEASURES];

/* What is asked for, in the order of asking: the key, and the TID it has. */
typedef struct asking
{
	uint64_t	n;
	uint8_t    *keys;
	uint64_t   *tids;
} asking;

static void
make_asking(asking *q, const keyset *ks)
{
	q->n = ks->n < 300000 || mr_quick() ? 300000 : 1000000;
	q->keys = malloc(q->n * ks->len);
	q->tids = malloc(q->n * sizeof(*q->tids));
	if (!q->keys || !q->tids)
		mr_die("no memory for %llu keys", (unsigned long long) q->n);
	for (uint64_t i = 0; i < q->n; i++)
	{
		uint64_t	r = tap_rand(&seed) % ks->n;

		memcpy(q->keys + i * ks->len, ks_key(ks, r), ks->len);
		q->tids[i] = ks_tid(r);
	}
}

/*
 * dependent: the address of the next key is computed from the TID that was
 * found (the difference to the right one, 0), which no processor guesses.  Two
 * loops: were it a condition within one, a conditional move could make both
 * dependent.
 */
static inline __attribute__((always_inline)) double
lookups(ax_tree *t, uint64_t gen, const keyset *ks, const asking *q, bool dependent)
{
	uint64_t	tids[16];
	ax_found	f = {.tids = tids, .max = 16};
	uint64_t	shift = 0,
				t0 = mr_now();

	for (uint64_t i = 0; i < q->n; i++)
	{
		const uint8_t *k = q->keys + i * ks->len + (dependent ? shift : 0);
		uint32_t	at = 0;
		uint64_t	wrong;

		mr_need(ax_lookup(&cx, t, gen, k, ks->len - 6, &f), AX_OK, "look-up");
		/* texts may be there twice */
		while (at + 1 < f.n && tids[at] != q->tids[i])
			at++;
		wrong = shift = f.n ? tids[at] ^ q->tids[i] : 1;
		/* the compiler must not learn from the test below that shift is 0 */
		__asm__ volatile("" : "+r"(shift));
		if (wrong)
			mr_die("%s: a key is not found by a look-up", ks->name);
	}
	return (double) (mr_now() - t0) / (double) q->n;
}

static double
scans(ax_tree *t, uint64_t gen, const keyset *ks, const asking *q)
{
	uint64_t	tids[100];
	uint8_t		last[512];
	uint64_t	n = mr_quick() ? 20000 : 50000,
				t0 = mr_now();

	for (uint64_t i = 0; i < n; i++)
	{
		const uint8_t *k = q->keys + i * ks->len;
		ax_batch	b = {.lo = {k, ks->len, false}, .hi = {NULL, 0, true},
			.max = 100, .tids = tids, .lastkey = last, .lastkey_size = sizeof(last)};

		mr_need(ax_scan(&cx, t, gen, &b), AX_OK, "scan");
		if (b.n == 0 || tids[0] != q->tids[i] || (b.n < 100 && !b.exhausted))
			mr_die("%s: a scan finds %u keys", ks->name, b.n);
	}
	return (double) (mr_now() - t0) / (double) n;
}

static void
run(ax_structure s, int set, const keyset *ks, const asking *q)
{
	ax_tree    *t = ax_tree_alloc(&cx);
	double	   *r = results[s][set],
				v[3];
	uint64_t	gen,
				t0;
	ax_tree_info ti;

	fprintf(stderr, "# %s, %s\n", mr_engine(s), set_title[set]);
	mr_need(ax_tree_open(&cx, t, s, 0, tap_page_size(), &gen), AX_OK, "open");
	t0 = mr_now();
	for (uint64_t i = 0; i < ks->n; i++)
		mr_need(ax_insert(&cx, t, gen, ks_key(ks, i), ks->len), AX_OK, "insert");
	r[INSERT] = (double) (mr_now() - t0) / (double) ks->n;
	mr_need(ax_info(&cx, t, gen, &ti), AX_OK, "info");
	if (ti.entries != ks->n)
		mr_die("%llu entries of %llu", (unsigned long long) ti.entries, (unsigned long long) ks->n);
	r[BYTES] = (double) ti.bytes / (double) ks->n;
	for (int m = INDEPENDENT; m <= SCAN100; m++)
	{
		for (int i = 0; i < 3; i++)
			v[i] = m == SCAN100 ? scans(t, gen, ks, q)
				: m == DEPENDENT ? lookups(t, gen, ks, q, true) : lookups(t, gen, ks, q, false);
		r[m] = mr_median(v, 3);
	}
	for (int m = 0; m < MEASURES; m++)
		mr_csv("core", "single", set_title[set], -1, mr_engine(s), 1, measure_name[m], r[m],
			   m == BYTES ? "bytes" : "ns");
	ax_tree_close(&cx, t);
	(void) tap_quiesce(&cx);
	ax_tree_release(&cx, t);
}

static void
print_table(bool btree, double load)
{
	int			met = 0,
				missed = 0;

	printf("\n%-38s %7s", btree ? "B+-tree" : "ART", "goal");
	for (int e = 0; e < nengines; e++)
		if (ax_structure_is_btree(engines[e]) == btree)
			printf(" %22s", mr_engine(engines[e]));
	printf("\n");
	for (int set = 0; set < SETS; set++)
		for (int m = 0; m < MEASURES; m++)
		{
			double		goal = goals[btree][set][m];
			char		title[80],
						g[20] = "";

			snprintf(title, sizeof(title), "%s, %s", measure_name[m], set_title[set]);
			if (goal > 0)
				snprintf(g, sizeof(g), "%.4g%s", goal, m == BYTES ? " B" : " L");
			printf("%-38s %7s", title, g);
			for (int e = 0; e < nengines; e++)
			{
				double		x = results[engines[e]][set][m];
				double		ratio = m == BYTES ? x : x / load;

				if (ax_structure_is_btree(engines[e]) != btree)
					continue;
				if (m == BYTES)
					printf(" %15.1f", x);
				else
					printf(" %7.1f %5.2f L", x, ratio);
				printf(" %-6s", goal == 0 ? "" : ratio <= goal ? "met" : "missed");
				met += goal > 0 && ratio <= goal;
				missed += goal > 0 && ratio > goal;
			}
			printf("\n");
		}
	printf("%d met, %d missed\n", met, missed);
}

int
main(void)
{
	uint64_t	n = (uint64_t) mr_env("N", mr_quick() ? 5e5 : 1e7);
	size_t		mb = (size_t) mr_env("L_MB", 2048);
	double		load,
				after;
	ax_area    *a;

	if (n < 1000 || mb == 0 || (mb & (mb - 1)))
		mr_die("N: at least 1000; L_MB: a power of two");
	nengines = mr_engines(engines);
	load = mr_load_ns(mb << 20);
	printf("L = %.1f ns: a load from a random line of %zu MB of shared 4 KiB pages, each waiting for the last\n",
		   load, mb);
	mr_csv("core", "single", "L", -1, "", 1, "load", load, "ns");
	printf("One thread, %llu keys a set; nanoseconds an operation, and as multiples of L.\n",
		   (unsigned long long) n);
	fflush(stdout);
	a = tap_area((size_t) 256 * n + (64 << 20), 4, 1 << 20);
	ax_attach(&cx, a, 0, 1, &ax_port_default);
	for (int set = 0; set < SETS; set++)
	{
		keyset		ks;
		asking		q;

		ks_make(&ks, sets[set], n, &seed);
		make_asking(&q, &ks);
		for (int e = 0; e < nengines; e++)
			run(engines[e], set, &ks, &q);
		free(q.keys);
		free(q.tids);
		ks_free(&ks);
	}
	ax_detach(&cx);
	after = mr_load_ns(mb << 20);
	if (after > load * 1.15 || after < load / 1.15)
		printf("L was %.1f ns before and is %.1f ns after: the machine is not quiet, and no ratio below is to be trusted. The smaller one counts.\n",
			   load, after);
	if (after < load)
		load = after;
	mr_csv("core", "single", "L", -1, "", 1, "load after", after, "ns");
	print_table(false, load);
	print_table(true, load);
	return 0;
}
