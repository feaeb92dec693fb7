/*
 * test_nested.c
 *	  A load in which a few keys are nested deeper than a load can build: it gives back
 *	  all that it made, and says so at once; merged, the keys take about as much as
 *	  they would without those few.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_internal.h"
#include "model.h"

#define NESTED	250
#define LEN_MAX (NESTED + 8)

static ax_ctx cx;
static ax_tree *tree;
static uint64_t nkeys,
			seed = 4711;
static mkey *key;
static const uint8_t **k;
static uint32_t *len;

static int
cmp_void(const void *a, const void *b)
{
	return mt_cmp(a, b);
}

/* Random integers, and texts of which each is a prefix of the next. */
static void
make_keys(uint64_t random)
{
	nkeys = random + NESTED;
	key = malloc(nkeys * sizeof(*key));
	k = malloc(nkeys * sizeof(*k));
	len = malloc(nkeys * sizeof(*len));
	for (uint64_t i = 0; i < nkeys; i++)
	{
		uint32_t	at = 1;
		uint8_t    *p = calloc(1, LEN_MAX);

		if (i < random)
		{
			uint64_t	r = tap_rand(&seed);

			p[0] = 1;
			memcpy(p + 1, &r, 8);
			at = 9;
		}
		else
		{
			p[0] = 2;
			memset(p + 1, 'a', i - random);
			at = (uint32_t) (i - random) + 2;	/* and a zero byte */
		}
		for (int b = 0; b < AX_TID_BYTES; b++)
			p[at + (uint32_t) b] = (uint8_t) (i >> (8 * (AX_TID_BYTES - 1 - b)));
		key[i].p = p;
		key[i].len = at + AX_TID_BYTES;
	}
	qsort(key, nkeys, sizeof(*key), cmp_void);
	for (uint64_t i = 0; i < nkeys; i++)
	{
		k[i] = key[i].p;
		len[i] = key[i].len;
	}
}

static uint64_t
open_tree(ax_structure s)
{
	uint64_t	gen = 0;

	(void) ax_tree_open(&cx, tree, s, 0, 0, &gen);
	return gen;
}

static ax_tree_info
info(uint64_t gen)
{
	ax_tree_info ti;

	(void) ax_info(&cx, tree, gen, &ti);
	return ti;
}

static bool
is_empty(uint64_t gen)
{
	ax_tree_info ti = info(gen);

	return ti.entries == 0 && ti.leaves == 0 && ti.embedded == 0 && ti.inner_nodes == 0;
}

static void
one(ax_structure s, uint64_t random)
{
	const char *sync = ax_structure_sync(s);
	uint64_t	gen = open_tree(s);
	uint64_t	plain,
				merged,
				wrong = 0,
				refused = 0;
	ax_tree_info ti;
	ax_status	r;
	bool		good = false;
	char		msg[200] = "";

	/* those that are not nested */
	r = ax_load(&cx, tree, gen, &(ax_keys) {k, len, 0, random}, 90);
	plain = info(gen).bytes;
	ok(r == AX_OK, "%s: a load of %llu keys, %llu kB", sync, (unsigned long long) random,
	   (unsigned long long) plain / 1024);
	ax_tree_close(&cx, tree);

	gen = open_tree(s);
	r = ax_load(&cx, tree, gen, &(ax_keys) {k, len, 0, nkeys}, 90);
	ok(r == AX_EXISTS && is_empty(gen), "%s: with %d nested ones it is none, and nothing is left", sync, NESTED);
	r = mt_load_sorted(&cx, tree, gen, k, len, 0, nkeys, 90);
	merged = info(gen).bytes;
	/* singly they would take three times as much; some spans for the nested ones */
	ok(r == AX_OK && info(gen).entries == nkeys && merged < plain + plain / 2 + 256 * 1024, "%s: merged they take %llu kB",
	   sync, (unsigned long long) merged / 1024);
	r = tap_check(&cx, tree, gen, &ti, &good, msg, sizeof(msg));
	ok(r == AX_OK && good && ti.entries == nkeys, "%s: check %s", sync, msg);
	for (uint64_t i = 0; i < nkeys; i += 7)
		if (ax_contains(&cx, tree, gen, k[i], len[i]) != AX_OK)
			wrong++;
	ok(wrong == 0, "%s: all are there", sync);
	ax_tree_close(&cx, tree);

	/* without memory, wherever that is */
	for (uint64_t n = 1;; n += n / 4 + 1)
	{
		bool		reached;

		gen = open_tree(s);
		ax_body(&cx)->fail_alloc_at = n;
		r = ax_load(&cx, tree, gen, &(ax_keys) {k, len, 0, nkeys}, 90);
		reached = ax_body(&cx)->fail_alloc_at == 0;
		ax_body(&cx)->fail_alloc_at = 0;
		if (r != (reached ? AX_NOMEM : AX_EXISTS) || !is_empty(gen))
			wrong++;
		refused += r == AX_NOMEM;
		ax_tree_close(&cx, tree);
		if (!reached)
			break;
	}
	ok(wrong == 0 && refused > 10, "%s: %llu loads without memory left nothing", sync, (unsigned long long) refused);
	ok(tap_quiesce(&cx), "%s: quiescent", sync);
}

int
main(void)
{
	static const ax_structure engines[] = {AX_ART_OLC, AX_ART_ROWEX, AX_ART_OPTIQL, AX_ART_COARSE};
	uint64_t	random = 20000;

	ax_attach(&cx, tap_area((size_t) 256 << 20, 2, 1 << 20), 0, 1, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	make_keys(random);
	for (int i = 0; i < 4; i++)
		one(engines[i], random);
	for (uint64_t i = 0; i < nkeys; i++)
		free((void *) (uintptr_t) key[i].p);
	free(key);
	free(k);
	free(len);
	ax_detach(&cx);
	return tap_done();
}
