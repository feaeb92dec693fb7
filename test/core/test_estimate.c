/*
 * test_estimate.c
 *	  ax_estimate against the bytes of the tree that is then loaded: exact when
 *	  it has every key, near enough when it has a sample.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* the longest span of small objects (ax_arena.c) */
#define SPAN_BYTES	65536.0

static ax_ctx cx;
static ax_tree *tree;
static uint64_t seed = 20251121;
static _Alignas(8) unsigned char work[AX_ESTIMATE_WORK];

/* The number of a key's row: make_set's TIDs. */
static uint64_t
row_of(const mkey *k)
{
	const uint8_t *t = k->p + k->len - AX_TID_BYTES;

	return (((uint64_t) t[2] << 8 | t[3]) * 180) + t[5] - 1;
}

static uint64_t
real_bytes(const uint8_t *const *keys, const uint32_t *lens, uint64_t n, int fill)
{
	uint64_t	gen;
	ax_tree_info ti;
	ax_status	x = ax_tree_open(&cx, tree, AX_ART_OLC, 0, 0, &gen);

	if (x == AX_OK)
		x = mt_load_sorted(&cx, tree, gen, keys, lens, 0, n, fill);
	if (x != AX_OK || ax_info(&cx, tree, gen, &ti) != AX_OK)
	{
		printf("Bail out! the load failed: %d\n", (int) x);
		exit(1);
	}
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	return ti.bytes;
}

/* The same, run keys at a time in the order of their rows. */
static uint64_t
real_bytes_runs(const mkey *key, uint64_t n, uint64_t run)
{
	const uint8_t **keys = malloc(n * sizeof(*keys));
	uint32_t   *lens = malloc(n * sizeof(*lens));
	uint64_t	gen;
	ax_tree_info ti;
	ax_status	x = ax_tree_open(&cx, tree, AX_ART_OLC, 0, 0, &gen);

	for (uint64_t from = 0; from < n && x == AX_OK; from += run)
	{
		uint64_t	m = 0,
					at = 0;

		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t	row = row_of(&key[i]);

			if (row >= from && row < from + run)
			{
				keys[m] = key[i].p;
				lens[m++] = key[i].len;
			}
		}
		if (from == 0)
			x = mt_load_sorted(&cx, tree, gen, keys, lens, 0, m, 90);
		while (from > 0 && at < m && x == AX_OK)
		{
			uint64_t	done,
						added;

			x = ax_insert_sorted(&cx, tree, gen,
					&(ax_keys) {keys + at, lens + at, 0, m - at}, &done, &added);
			at += done;
			if (x == AX_BUSY)
				x = AX_OK;
		}
	}
	if (x != AX_OK || !tap_quiesce(&cx) || ax_info(&cx, tree, gen, &ti) != AX_OK || ti.entries != n)
	{
		printf("Bail out! the loads failed: %d\n", (int) x);
		exit(1);
	}
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	free(keys);
	free(lens);
	return ti.bytes;
}

/* All keys: to the byte. */
static void
test_exact(void)
{
	static const int fills[] = {10, 70, 90, 100};
	static const uint64_t sizes[] = {1, 2, 20, 33, 500, 12000};

	for (int kind = 0; kind < KK_COUNT; kind++)
	{
		bool		all = true;

		/* keys nested beyond the depth of the bulk load are merged */
		bool		nested = kind == KK_NESTED || kind == KK_LENGTHS || kind == KK_MIDDLE;

		for (int f = 0; f < 4; f++)
			for (int s = 0; s < 6; s++)
			{
				model		m;
				const uint8_t **keys;
				uint32_t   *lens;
				uint64_t	want,
							got;

				if (nested && sizes[s] > 100)
					continue;
				mt_universe(&m, (keykind) kind, kind == KK_LONG && sizes[s] > 100 ? 100 : sizes[s], seed);
				keys = malloc(m.n * sizeof(*keys));
				lens = malloc(m.n * sizeof(*lens));
				for (uint64_t i = 0; i < m.n; i++)
				{
					keys[i] = m.key[i].p;
					lens[i] = m.key[i].len;
				}
				want = real_bytes(keys, lens, m.n, fills[f]);
				got = ax_estimate(&(ax_keys) {keys, lens, 0, m.n}, (double) m.n, fills[f], 0, work);
				if (got != want)
				{
					all = false;
					tap_diag("%s, %llu keys, fill %d: %llu, not %llu", keykind_name[kind],
							 (unsigned long long) m.n, fills[f], (unsigned long long) got,
							 (unsigned long long) want);
				}
				free(keys);
				free(lens);
				mt_free(&m);
			}
		ok(all, "%s: the whole, to the byte", keykind_name[kind]);
	}
	ok(ax_estimate(&(ax_keys) {NULL, NULL, 0, 0}, 0, 90, 0, work) == 4096, "no keys: one page");
}

/* ---- samples -------------------------------------------------------------- */

typedef struct set
{
	uint64_t	n;
	mkey	   *key;
} set;

static void
put8(uint8_t *p, uint64_t x)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t) (x >> (56 - 8 * i));
}

static const char *const set_name[] = {
	"dense integers", "every third integer", "random integers", "timestamps, one a second",
	"timestamps at random", "uuid", "hexadecimal text", "words and numbers",
	"1,000 values anywhere", "values of 20 rows anywhere", "values of 100 rows in a row",
	"half as many values as rows", "nine NULLs of ten", "integer of 50 values and text",
	"random integers below ten times the rows", "text of several lengths",
};
#define SETS ((int) (sizeof(set_name) / sizeof(set_name[0])))

/* Row i of n: its columns into k; their length. */
static uint32_t
columns(int which, uint64_t i, uint64_t n, uint8_t *k)
{
	static const char *const words[] = {"customer", "invoice", "north", "west", "alpha",
	"delta", "orange", "paper"};
	uint64_t	r = tap_rand(&seed);
	const uint64_t sign = UINT64_C(1) << 63;

	k[0] = 1;
	switch (which)
	{
		case 0:
			put8(k + 1, i ^ sign);
			return 9;
		case 1:
			put8(k + 1, (3 * i) ^ sign);
			return 9;
		case 2:
			put8(k + 1, r);
			return 9;
		case 3:
			put8(k + 1, (UINT64_C(800000000000000) + i * 1000000) ^ sign);
			return 9;
		case 4:
			put8(k + 1, (UINT64_C(800000000000000) + r % (n * 300000)) ^ sign);
			return 9;
		case 5:
			put8(k + 1, r);
			put8(k + 9, tap_rand(&seed));
			return 17;
		case 6:
			snprintf((char *) k + 1, 40, "%016llx%09llx", (unsigned long long) r,
					 (unsigned long long) tap_rand(&seed) >> 28);
			return 27;
		case 7:
			return 2 + (uint32_t) snprintf((char *) k + 1, 60, "%s-%s-%llu", words[r & 7],
										   words[(r >> 3) & 7], (unsigned long long) (r >> 20) % (n * 4));
		case 8:
			put8(k + 1, (r % 1000) ^ sign);
			return 9;
		case 9:
			put8(k + 1, (r % (n / 20)) ^ sign);
			return 9;
		case 10:
			put8(k + 1, (i / 100 * 7919) ^ sign);
			return 9;
		case 11:
			put8(k + 1, (r % (n / 2) * 1000) ^ sign);
			return 9;
		case 12:
			if (r % 10)
			{
				k[0] = 2;
				return 1;
			}
			put8(k + 1, tap_rand(&seed) ^ sign);
			return 9;
		case 13:
			put8(k + 1, (r % 50) ^ sign);
			k[9] = 1;
			return 11 + (uint32_t) snprintf((char *) k + 10, 40, "%s %llx", words[(r >> 8) & 7],
											(unsigned long long) tap_rand(&seed) >> 24);
		case 14:
			put8(k + 1, (r % (10 * n)) ^ sign);
			return 9;
		default:
			{
				uint32_t	len = 5 + (uint32_t) (r % 40);

				for (uint32_t j = 0; j < len; j++)
					k[1 + j] = (uint8_t) ('a' + tap_rand(&seed) % 26);
				k[1 + len] = 0;
				return len + 2;
			}
	}
}

static int
cmp(const void *a, const void *b)
{
	return mt_cmp(a, b);
}

static void
make_set(set *s, int which, uint64_t n)
{
	s->n = n;
	s->key = malloc(n * sizeof(mkey));
	for (uint64_t i = 0; i < n; i++)
	{
		uint8_t		k[128];
		uint32_t	len = columns(which, i, n, k);
		uint64_t	tid = (i / 180) << 16 | (i % 180 + 1);
		uint8_t    *p = malloc(len + AX_TID_BYTES);

		for (int j = 0; j < AX_TID_BYTES; j++)
			k[len + (uint32_t) j] = (uint8_t) (tid >> (40 - 8 * j));
		memcpy(p, k, len + AX_TID_BYTES);
		s->key[i].p = p;
		s->key[i].len = len + AX_TID_BYTES;
	}
	qsort(s->key, n, sizeof(mkey), cmp);
}

static void
test_samples(void)
{
	static const int part[] = {3, 10, 100};
	uint64_t	n = tap_scaled(400000);

	for (int which = 0; which < SETS; which++)
	{
		set			s;
		const uint8_t **keys;
		uint32_t   *lens;
		double		real;

		make_set(&s, which, n);
		keys = malloc(n * sizeof(*keys));
		lens = malloc(n * sizeof(*lens));
		for (uint64_t i = 0; i < n; i++)
		{
			keys[i] = s.key[i].p;
			lens[i] = s.key[i].len;
		}
		real = (double) real_bytes(keys, lens, n, 90);
		for (int p = 0; p < 3; p++)
		{
			uint64_t	m = 0;
			double		got;

			if (n / (uint64_t) part[p] < 3000)
				continue;		/* too few to tell */
			for (uint64_t i = 0; i < n; i++)
				if (tap_rand(&seed) % (uint64_t) part[p] == 0)
				{
					keys[m] = s.key[i].p;
					lens[m++] = s.key[i].len;
				}
			got = (double) ax_estimate(&(ax_keys) {keys, lens, 0, m}, (double) n, 90, 0, work);
			tap_diag("%s, 1 of %d: %.2f of %.2f bytes a key, %+.1f %%", set_name[which], part[p],
					 got / (double) n, real / (double) n, 100 * (got / real - 1));
			/* one span more or less is luck, and of a small tree much */
			ok(fabs(got - real) < 0.15 * real + SPAN_BYTES, "%s, one of %d: near",
			   set_name[which], part[p]);
		}
		for (int runs = 2; runs <= 6; runs += 4)
		{
			uint64_t	m = 0;
			double		run = ceil((double) n / (runs - 0.5));
			double		got;

			real = (double) real_bytes_runs(s.key, n, (uint64_t) run);
			for (uint64_t i = 0; i < n; i++)
				if (tap_rand(&seed) % 10 == 0)
				{
					keys[m] = s.key[i].p;
					lens[m++] = s.key[i].len;
				}
			if (m < 3000)
				continue;
			got = (double) ax_estimate(&(ax_keys) {keys, lens, 0, m}, (double) n, 90, run, work);
			tap_diag("%s, %d loads: %.2f of %.2f bytes a key, %+.1f %%", set_name[which], runs,
					 got / (double) n, real / (double) n, 100 * (got / real - 1));
			/* what lies free in spans cannot be told as well, least when they are few */
			ok(fabs(got / real - 1) < (n / (uint64_t) runs < 50000 ? 0.6 : 0.25), "%s, %d loads: near",
			   set_name[which], runs);
		}
		for (uint64_t i = 0; i < n; i++)
			free((void *) (uintptr_t) s.key[i].p);
		free(s.key);
		free(keys);
		free(lens);
	}
}

int
main(void)
{
	ax_attach(&cx, tap_area((size_t) 256 << 20, 4, 1 << 20), 0, 1, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	test_exact();
	test_samples();
	ax_detach(&cx);
	return tap_done();
}
