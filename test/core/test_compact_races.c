/*
 * test_compact_races.c
 *	  What others do at each pause of a compaction: no key is lost, none is there
 *	  twice, and the tree is sound.
 *
 * At the point, one thread does the whole of what another process could do there:
 * inserts into the leaf that is being merged, removes from it, splits it, takes
 * its node away.  A compaction that did not validate its samples, or latched less
 * than what goes, or at other versions, would lose or double what was done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_internal.h"
#include "keyset.h"
#include "tap.h"

#define KEYS	6000

static ax_ctx cx,
			other;
static ax_tree *tree;
static uint64_t gen;
static const char *at;			/* the point */
static int	skip;				/* so many times that it is passed before */
static int	what;
static bool busy;
static int	hits;
static uint64_t rng = 99;
static bool in[2 * KEYS];

static void
key_of(uint64_t i, uint8_t *k)
{
	/* neighbours share leaves, every third a small node's */
	ks_put8(k, i % 3 == 0 ? i << 8 : (i << 40) | 0x5500000000 | i);
	ks_put_tid(k + 8, ks_tid(i));
}

static void
put(uint64_t i)
{
	uint8_t		k[14];

	key_of(i, k);
	if (ax_insert(&other, tree, gen, k, sizeof(k)) == AX_OK)
		in[i] = true;
}

static void
take(uint64_t i)
{
	uint8_t		k[14];

	key_of(i, k);
	if (ax_remove(&other, tree, gen, k, sizeof(k)) == AX_OK)
		in[i] = false;
}

static void
hook(const char *name)
{
	if (busy || !at || strcmp(name, at) != 0 || skip-- > 0)
		return;
	busy = true;
	hits++;
	skip = 3;
	for (int i = 0; i < (what == 3 ? 400 : 12); i++)
	{
		uint64_t	r = tap_rand(&rng) % (2 * KEYS);

		switch (what)
		{
			case 0:
				put(r);
				break;
			case 1:
				take(r);
				break;
			case 2:
				if (in[r])
					take(r);
				else
					put(r);
				break;
			default:
				/* a whole range goes, or fills */
				r = tap_rand(&rng) % 20 * (2 * KEYS / 20) + (uint64_t) i;
				if (i % 400 < 200)
					take(r);
				else
					put(r);
		}
	}
	busy = false;
}

static void
one_point(const char *point, int kind)
{
	void	   *work = malloc(AX_COMPACT_WORK);
	uint64_t	n = 0,
				bad = 0;
	ax_tree_info ti;
	bool		sound;
	char		msg[256] = "";

	if (ax_tree_open(&cx, tree, tap_structure(), 0, AX_PAGE_SIZE_MIN, &gen) != AX_OK)
		exit(1);
	memset(in, 0, sizeof(in));
	for (uint64_t i = 0; i < KEYS; i++)
		put(i * 2);
	/* all is sparse, and then full and sparse in turn, where nothing is merged */
	for (uint64_t i = 0; i < KEYS; i++)
		if (i % 4 && (i < KEYS / 2 || i / 64 % 2))
			take(i * 2);
	what = kind;
	hits = 0;
	for (int pass = 0; pass < 6; pass++)
	{
		ax_compaction c = {.work = work};

		at = point;
		skip = pass;
		while (!c.done)
			if (ax_compact(&cx, tree, gen, &c) == AX_STALE)
				exit(1);
		at = NULL;
	}
	ok(hits > 0, "%s, %d: met", point, kind);
	for (uint64_t i = 0; i < 2 * KEYS; i++)
	{
		uint8_t		k[14];

		key_of(i, k);
		n += in[i];
		bad += (ax_contains(&cx, tree, gen, k, sizeof(k)) == AX_OK) != in[i];
	}
	ok(bad == 0, "%s, %d: every key is there or not, as it should be", point, kind);
	if (tap_check(&cx, tree, gen, &ti, &sound, msg, sizeof(msg)) != AX_OK || !sound)
		tap_diag("%s", msg);
	ok(sound && ti.entries == n, "%s, %d: sound, %llu entries", point, kind, (unsigned long long) n);
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	free(work);
}

/* ---- a long key comes below a small node that is to become a part of a leaf ---- */

#define LONG 1200

static uint8_t long_key[LONG];

static void
long_comes(const char *name)
{
	if (busy || strcmp(name, "art.compact.leaf_version") != 0)
		return;
	busy = true;
	hits++;
	if (ax_insert(&other, tree, gen, long_key, LONG) != AX_OK)
		tap_diag("the long key is refused");
}

/* Key i of those whose leaves are merged, or of the small node's. */
static uint32_t
sparse_key(uint64_t i, bool small, uint8_t *k)
{
	const uint32_t len = small ? 2 : 54;

	memset(k, 7, len);
	k[0] = small ? 0x80 : (uint8_t) (i / 4);
	k[1] = (uint8_t) (small ? i : i % 4);
	ks_put_tid(k + len, ks_tid(i + (small ? 1000 : 1)));
	return len + AX_TID_BYTES;
}

static void
test_long(void)
{
	enum {SPARSE = 320, SMALL = 60};
	ax_compaction c = {.work = malloc(AX_COMPACT_WORK)};
	uint64_t	n = 1;
	uint8_t		k[64];
	ax_tree_info ti;
	bool		sound;
	char		msg[256] = "";

	if (ax_tree_open(&cx, tree, tap_structure(), 0, AX_PAGE_SIZE_MIN, &gen) != AX_OK)
		exit(1);
	memset(long_key, 9, LONG);
	long_key[0] = 0x80;
	long_key[1] = 0xF0;
	ks_put_tid(long_key + LONG - AX_TID_BYTES, ks_tid(5000));
	for (int small = 0; small < 2; small++)
		for (uint64_t i = 0; i < (small ? SMALL : SPARSE); i++)
			if (ax_insert(&cx, tree, gen, k, sparse_key(i, small, k)) != AX_OK)
				exit(1);
	for (int small = 0; small < 2; small++)
		for (uint64_t i = 0; i < (small ? SMALL : SPARSE); i++)
		{
			if (small ? i < 20 : i % 3 == 0)
				n++;
			else if (ax_remove(&cx, tree, gen, k, sparse_key(i, small, k)) != AX_OK)
				exit(1);
		}
	hits = 0;
	busy = false;
	tap_point_hook = long_comes;
	while (!c.done)
		if (ax_compact(&cx, tree, gen, &c) == AX_STALE)
			exit(1);
	tap_point_hook = NULL;
	ok(hits == 1 && c.moved > 0, "a long key comes while its node is merged");
	ok(ax_contains(&cx, tree, gen, long_key, LONG) == AX_OK, "it is where it was put");
	if (tap_check(&cx, tree, gen, &ti, &sound, msg, sizeof(msg)) != AX_OK || !sound)
		tap_diag("%s", msg);
	ok(sound && ti.entries == n, "sound, %llu entries", (unsigned long long) n);
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
	free(c.work);
}

int
main(void)
{
	static const char *const art[] = {
		"art.compact.child_version", "art.compact.leaf_version", "art.compact.before_lock", NULL
	};
	static const char *const bt[] = {
		"bt.compact.copied", "bt.compact.child_copied", "bt.compact.before_lock", NULL
	};
	static const char *const hy[] = {"hydra.compact.before_lock", "hydra.merge.before_lock", NULL};
	const ax_structure is = tap_structure();
	const char *const *points = ax_structure_is_hydra(is) ? hy : ax_structure_is_btree(is) ? bt : art;
	ax_area    *area = tap_area((size_t) 64 << 20, 4, 1 << 20);
	bool		coarse = is == AX_ART_COARSE || is == AX_BTREE_COARSE || is == AX_HYDRA_COARSE;

	ax_attach(&cx, area, 0, 1, &ax_port_default);
	ax_attach(&other, area, 1, 2, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	tap_point_hook = hook;
	/* under a coarse latch nobody comes by */
	for (; *points && !coarse; points++)
		for (int kind = 0; kind < 4; kind++)
			one_point(*points, kind);
	if (coarse)
		ok(true, "nobody comes between");
	else if (!ax_structure_is_btree(is) && !ax_structure_is_hydra(is))
		test_long();
	ax_detach(&other);
	ax_detach(&cx);
	return tap_done();
}
