/*
 * bench_hash.c
 *	  What a hash table does of all this: liburcu's cds_lfht under urcu-memb,
 *	  beside the trees, inserting and looking up sparse 8-byte keys on threads.
 *
 * Environment: N keys (10,000,000; QUICK=1: 300,000), MIX_SECONDS of
 * look-ups (0.3), ENGINES, CSV.
 *
 * The table has its final size from the beginning, and its nodes lie in one
 * array, so that it pays for neither growth nor allocation.  It has no order:
 * no ranges, no tail.  Every structure is measured in a process of its own.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#define URCU_API_MAP
#define RCU_MEMBARRIER
#define URCU_INLINE_SMALL_FUNCTIONS 1
#include <urcu/urcu-memb.h>
#include <urcu/rculfhash.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keyset.h"
#include "meter.h"
#include "tap.h"

#define MAX_WORKERS 16

typedef struct node
{
	struct cds_lfht_node link;
	uint64_t	key;
	uint64_t	tid;
} node;

static uint64_t keys;
static double seconds;
static int	nworkers;
static bool looking;
static struct
{
	_Alignas(64) uint64_t ops;
	uint64_t	begin,
				end;
}			done[MAX_WORKERS];

/* one of the two */
static struct cds_lfht *table;
static node *nodes;
static ax_area *area;
static ax_tree *tree;
static uint64_t gen;

static uint64_t
key_of(uint64_t i)
{
	uint64_t	s = i * UINT64_C(0x9E3779B97F4A7C15) + 1;

	return tap_rand(&s);
}

/* Half of the work of a good hash; the keys are random already. */
static unsigned long
hash(uint64_t key)
{
	key *= UINT64_C(0xD6E8FEB86659FD93);
	return (unsigned long) (key ^ key >> 32);
}

static int
match(struct cds_lfht_node *n, const void *key)
{
	return caa_container_of(n, node, link)->key == *(const uint64_t *) key;
}

static void
hash_insert(uint64_t i)
{
	node	   *n = &nodes[i];

	cds_lfht_node_init(&n->link);
	n->key = key_of(i);
	n->tid = ks_tid(i);
	rcu_read_lock();
	cds_lfht_add(table, hash(n->key), &n->link);
	rcu_read_unlock();
}

static void
hash_lookup(uint64_t i)
{
	uint64_t	key = key_of(i),
				tid = 0;
	struct cds_lfht_iter it;
	struct cds_lfht_node *n;

	rcu_read_lock();
	cds_lfht_lookup(table, hash(key), match, &key, &it);
	n = cds_lfht_iter_get_node(&it);
	if (n)
		tid = caa_container_of(n, node, link)->tid;
	rcu_read_unlock();
	if (tid != ks_tid(i))
		mr_die("cds_lfht: key %llu is not found", (unsigned long long) i);
}

static void
tree_key(uint8_t k[15], uint64_t i)
{
	k[0] = 1;
	ks_put8(k + 1, key_of(i));
	ks_put_tid(k + 9, ks_tid(i));
}

static void
tree_insert(ax_ctx *cx, uint64_t i)
{
	uint8_t		k[15];
	ax_status	r;

	tree_key(k, i);
	do
		r = ax_insert(cx, tree, gen, k, 15);
	while (r == AX_BUSY);
	mr_need(r, AX_OK, "insert");
}

static void
tree_lookup(ax_ctx *cx, uint64_t i)
{
	uint8_t		k[15];
	uint64_t	tid;
	ax_found	f = {.tids = &tid, .max = 1};
	ax_status	r;

	tree_key(k, i);
	do
		r = ax_lookup(cx, tree, gen, k, 9, &f);
	while (r == AX_BUSY);
	if (r != AX_OK || f.n != 1 || tid != ks_tid(i))
		mr_die("look-up: status %d, key %llu is not found", (int) r, (unsigned long long) i);
}

static void
work(void *arg, int me)
{
	ax_ctx	   *cx = NULL;
	uint64_t	rng = (uint64_t) (me + 1) * UINT64_C(0x9E3779B97F4A7C15),
				n = 0,
				t0;

	if (table)
		rcu_register_thread();
	else
	{
		cx = aligned_alloc(64, sizeof(*cx));
		if (!cx)
			mr_die("no memory");
		ax_attach(cx, area, me + 1, me + 1, &ax_port_default);
	}
	t0 = mr_now();
	if (!looking)
		for (uint64_t i = (uint64_t) me; i < keys; i += (uint64_t) nworkers, n++)
			if (table)
				hash_insert(i);
			else
				tree_insert(cx, i);
	else
		/* the clock once in 64: some 0.3 ns each */
		for (; n % 64 || (double) (mr_now() - t0) < seconds * 1e9; n++)
		{
			uint64_t	i = (uint64_t) ((unsigned __int128) tap_rand(&rng) * keys >> 64);

			if (table)
				hash_lookup(i);
			else
				tree_lookup(cx, i);
		}
	done[me].ops = n;
	done[me].begin = t0;
	done[me].end = mr_now();
	if (table)
		rcu_unregister_thread();
	else
	{
		ax_detach(cx);
		free(cx);
	}
}

/* Mops/s of all workers, from the first beginning to the last end. */
static double
rate(bool look)
{
	uint64_t	ops = 0,
				begin = UINT64_MAX,
				end = 0;

	looking = look;
	tap_threads(nworkers, work, NULL);
	for (int i = 0; i < nworkers; i++)
	{
		ops += done[i].ops;
		if (done[i].begin < begin)
			begin = done[i].begin;
		if (done[i].end > end)
			end = done[i].end;
	}
	return (double) ops * 1000 / (double) (end - begin);
}

/* Engine s, or cds_lfht (-1): in a process of its own. */
static void
measure(void *arg, int unused)
{
	int			s = *(const int *) arg;
	const char *name = s < 0 ? "cds_lfht" : mr_engine((ax_structure) s);
	static const int workers[] = {1, 2, 16};
	double		bytes = 0;

	printf("%-14s", name);
	for (int w = 0; w < 3; w++)
	{
		ax_ctx	   *cx = NULL;
		double		in,
					look;

		nworkers = workers[w];
		if (s < 0)
		{
			unsigned long buckets = 1;

			while (buckets < keys)
				buckets *= 2;
			nodes = calloc(keys, sizeof(*nodes));
			table = cds_lfht_new(buckets, buckets, 0, 0, NULL);
			if (!nodes || !table)
				mr_die("no memory for %llu keys", (unsigned long long) keys);
			bytes = (double) sizeof(*nodes) + (double) buckets * sizeof(struct cds_lfht_node) / (double) keys;
		}
		else
		{
			size_t		size = (size_t) 256 * keys + (64 << 20);

			area = tap_area(size, MAX_WORKERS + 1, 1 << 20);
			cx = aligned_alloc(64, sizeof(*cx));
			if (!cx)
				mr_die("no memory");
			ax_attach(cx, area, 0, MAX_WORKERS + 1, &ax_port_default);
			tree = ax_tree_alloc(cx);
			mr_need(ax_tree_open(cx, tree, (ax_structure) s, 0, tap_page_size(), &gen), AX_OK, "open");
		}
		in = rate(false);
		look = rate(true);
		if (s < 0)
		{
			/* the table is given up as it is: emptying it takes longer */
			free(nodes);
			table = NULL;
		}
		else
		{
			ax_tree_info ti;

			mr_need(ax_info(cx, tree, gen, &ti), AX_OK, "info");
			if (ti.entries != keys)
				mr_die("%llu entries of %llu", (unsigned long long) ti.entries, (unsigned long long) keys);
			if (w == 0)
				bytes = (double) ti.bytes / (double) keys;
			ax_detach(cx);
			free(cx);
			tap_unmap(area, (size_t) 256 * keys + (64 << 20));
		}
		printf("   %8.2f %8.2f", in, look);
		mr_csv("hash", "threads", "sparse", 0, name, nworkers, "insert", in, "Mops/s");
		mr_csv("hash", "threads", "sparse", 100, name, nworkers, "look-up", look, "Mops/s");
		if (w == 0)
			mr_csv("hash", "threads", "sparse", -1, name, nworkers, "bytes a key", bytes, "bytes");
		if (w == 2)
			printf("   %9.1f\n", bytes);
	}
	fflush(stdout);
}

int
main(void)
{
	ax_structure engines[AX_STRUCTURES];
	int			n = mr_engines(engines);

	keys = (uint64_t) mr_env("N", mr_quick() ? 3e5 : 1e7);
	seconds = mr_env("MIX_SECONDS", mr_quick() ? 0.1 : 0.3);
	if (keys < 1000)
		mr_die("N: at least 1000");
	printf("Point operations beside a hash table (cds_lfht, urcu-memb, of its final size), %llu sparse keys, Mops/s on 1, 2 and 16 threads\n%-14s",
		   (unsigned long long) keys, "");
	for (int w = 0; w < 3; w++)
		printf("   %8s %8s", "insert", "look-up");
	printf("   %9s\n", "bytes/key");
	for (int e = -1; e < n; e++)
	{
		int			s = e < 0 ? -1 : (int) engines[e];

		if (!tap_forks(1, measure, &s))
			mr_die("%s failed", s < 0 ? "cds_lfht" : mr_engine((ax_structure) s));
	}
	return 0;
}
