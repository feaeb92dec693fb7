/*
 * test_mvrlu.c
 *	  HydraList with versions: a batch is of one moment, whatever others do meanwhile and
 *	  wherever one of them is stopped; commits that are not finished; a search layer that is
 *	  being changed; old versions; no memory.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hydra/hm_version.h"
#include "tap.h"

#define LEN 15
#define MANY 3000

static ax_area *area;
static ax_ctx cx,				/* reads */
			other;				/* changes */
static ax_tree *tree;
static uint64_t gen;
static bool in[MANY];			/* what there is */

static void
key_of(uint64_t i, uint64_t tid, uint8_t *k)
{
	uint64_t	be = __builtin_bswap64(i);

	k[0] = 0;
	memcpy(k + 1, &be, 8);
	ax_put_tid(k + 9, tid);
}

static ax_status
change(ax_ctx *by, uint64_t i, bool put)
{
	uint8_t		k[LEN];
	ax_status	x;

	key_of(i, i, k);
	do
		x = put ? ax_insert(by, tree, gen, k, LEN) : ax_remove(by, tree, gen, k, LEN);
	while (x == AX_BUSY);
	if (x == AX_OK && by == &other)
		in[i] = put;
	return x;
}

static ax_status
contains(uint64_t i)
{
	uint8_t		k[LEN];

	key_of(i, i, k);
	return ax_contains(&cx, tree, gen, k, LEN);
}

/* How many a scan gives in tids, in rising order; -1: it fails, or they do not rise (or fall). */
static int
scan(bool back, uint64_t *tids)
{
	uint8_t		last[1200];
	ax_batch	b = {.backward = back, .max = MANY, .tids = tids, .lastkey = last, .lastkey_size = sizeof(last)};

	b.hi.after = true;
	if (ax_scan(&cx, tree, gen, &b) != AX_OK || (!b.exhausted && b.n < MANY))
		return -1;
	for (uint32_t i = 0; back && i < b.n / 2; i++)
	{
		uint64_t	x = tids[i];

		tids[i] = tids[b.n - 1 - i];
		tids[b.n - 1 - i] = x;
	}
	for (uint32_t i = 1; i < b.n; i++)
		if (tids[i] <= tids[i - 1])
			return -1;
	return (int) b.n;
}

/* Are these all there were, but for one key that may be there or not? */
static bool
same(const bool *were, const uint64_t *tids, int n, uint64_t but)
{
	int			k = 0;

	for (uint64_t i = 0; i < MANY; i++)
	{
		bool		there = k < n && tids[k] == i;

		if (there != were[i] && i != but)
			return false;
		k += there;
	}
	return k == n;
}

static void
open_list(void)
{
	if (ax_tree_open(&cx, tree, AX_HYDRA_MVRLU, 0, 0, &gen) != AX_OK)
		abort();
	memset(in, 0, sizeof(in));
}

static bool
close_list(void)
{
	ax_tree_info is;
	bool		fine;
	char		msg[256];

	fine = tap_check(&cx, tree, gen, &is, &fine, msg, sizeof(msg)) == AX_OK && fine;
	ax_tree_close(&cx, tree);
	return tap_quiesce(&cx) && fine;
}

static void
info(ax_tree_info *ti)
{
	if (ax_info(&other, tree, gen, ti) != AX_OK)
		abort();
}

/* ---- everything changes while a reader is on its way ---- */

static const char *here;
static int	skip,
			met;

/* Nodes are merged, split and replaced, all is settled, and the epoch goes as far as it can. */
static void
upheaval(const char *name)
{
	if (strcmp(name, here) != 0 || skip-- > 0)
		return;
	tap_point_hook = NULL;
	met++;
	for (uint64_t i = 0; i < MANY; i++)
		if (i / 100 % 3 == 0)
			(void) change(&other, i, false);
		else if (i / 100 % 3 == 1)
			(void) change(&other, i, true);
	/* one node, many times */
	for (uint64_t i = 0; i < 300; i++)
		(void) change(&other, 1050, i % 2);
	(void) ax_settle(&other, tree, gen, true);
	for (int i = 0; i < 6; i++)
		(void) ax_poll(&other);
	for (uint64_t i = 0; i < MANY; i += 2)
		(void) change(&other, i, true);
	for (int i = 0; i < 6; i++)
		(void) ax_poll(&other);
}

static void
test_moment(void)
{
	static const char *const at[] = {"hydra.scan.entered", "mvrlu.node_read", "hydra.scan.next", "mvrlu.walk", "hydra.perm_told", NULL};
	static uint64_t tids[MANY];
	const int	rounds = tap_scaled(24) < 8 ? 8 : (int) tap_scaled(24);

	for (const char *const *p = at; *p; p++)
	{
		int			wrong = 0,
					times = 0;
		bool		sound = true;

		here = *p;
		for (int round = 0; round < rounds; round++)
		{
			bool		were[MANY];
			uint64_t	seed = (uint64_t) round + 7;
			int			n;

			open_list();
			for (int i = 0; i < MANY; i++)
				(void) change(&other, tap_rand(&seed) % MANY, true);
			(void) scan(round & 1, tids);
			memcpy(were, in, sizeof(in));
			skip = strcmp(here, "hydra.scan.entered") == 0 ? 0 : round * 3 / 2;
			met = 0;
			tap_point_hook = upheaval;
			n = scan(round & 1, tids);
			tap_point_hook = NULL;
			wrong += !same(were, tids, n, MANY);
			n = scan(round & 1, tids);
			wrong += !same(in, tids, n, MANY);
			times += met;
			sound = close_list() && sound;
		}
		ok(times >= rounds / 3 && wrong == 0 && sound, "%s: %d upheavals, %d batches of more than one moment", here, times, wrong);
	}
}

/* ---- a writer is stopped ---- */

static __thread bool writer;
static const char *stop_at;
static _Atomic int stops;		/* the writer stops the n-th time */
static _Atomic bool stopped,
			go,
			done;
static int	until;				/* the reader lets it go at its n-th step; -1: never */
#define MEETS (-2)				/* .. at the first one after it met what is not committed */
static bool compacts;			/* the writer does that, and changes no key */
static uint64_t the_key;
static bool put_it;

static void
both(const char *name)
{
	if (writer)
	{
		if (strcmp(name, stop_at) != 0 || atomic_fetch_sub(&stops, 1) != 1)
			return;
		atomic_store(&stopped, true);
		while (!atomic_load(&go))
			sched_yield();
	}
	else if (strcmp(name, "mvrlu.unstamped") == 0 && until == MEETS)
		until = 0;
	else if (strcmp(name, "hydra.scan.next") == 0 && until >= 0 && until-- == 0)
	{
		atomic_store(&go, true);
		while (!atomic_load(&done))
			sched_yield();
	}
}

/* Until it was stopped there. */
static void
compact(void)
{
	void	   *work = malloc(AX_COMPACT_WORK);

	for (int pass = 0; pass < 6 && !atomic_load(&stopped); pass++)
	{
		ax_compaction c = {.work = work};

		while (!c.done && ax_compact(&other, tree, gen, &c) != AX_STALE)
			;
		if (!atomic_load(&stopped))
			(void) tap_quiesce(&other);
	}
	free(work);
}

static void *
write_one(void *arg)
{
	writer = true;
	if (compacts)
		compact();
	else
		(void) change(&other, the_key, put_it);
	atomic_store(&done, true);
	return NULL;
}

/*
 * The writer changes the_key, and is stopped the n-th time at a point.  Scans and look-ups go on
 * beside it.  False: it did not come there.
 */
static bool
beside(int n, int steps, bool back, int *wrong)
{
	static uint64_t tids[MANY];
	bool		were[MANY];
	pthread_t	th;
	int			k;
	bool		came,
				seen = false;

	memcpy(were, in, sizeof(in));
	atomic_store(&stops, n);
	atomic_store(&stopped, false);
	atomic_store(&go, false);
	atomic_store(&done, false);
	until = steps;
	tap_point_hook = both;
	if (pthread_create(&th, NULL, write_one, NULL) != 0)
		abort();
	while (!atomic_load(&stopped) && !atomic_load(&done))
		sched_yield();
	came = atomic_load(&stopped);
	k = scan(back, tids);
	*wrong += !same(were, tids, k, the_key);
	for (int i = 0; i < k; i++)
		seen = seen || tids[i] == the_key;
	/* what one has seen, all see who come later; and what was not there, the next two agree on */
	if (seen == put_it)
		*wrong += (contains(the_key) == AX_OK) != put_it;
	seen = contains(the_key) == AX_OK;
	if (seen == put_it)
	{
		k = scan(!back, tids);
		were[the_key] = put_it;
		*wrong += !same(were, tids, k, MANY);
	}
	atomic_store(&go, true);
	(void) pthread_join(th, NULL);
	tap_point_hook = NULL;
	*wrong += (contains(the_key) == AX_OK) != put_it;
	k = scan(back, tids);
	*wrong += !same(in, tids, k, MANY);
	return came;
}

/*
 * A node of few keys in the middle, so that the removal of one merges it; or a full one, so
 * that an insert splits it.
 */
static void
prepare(bool split)
{
	open_list();
	for (uint64_t i = 0; i < 400; i++)
		(void) change(&other, 2 * i, true);
	if (split)
		for (uint64_t i = 300; i < 320; i++)
			(void) change(&other, i, true);
	else
		for (uint64_t i = 258; i < 700; i += 2)
			if (i % 8)
				(void) change(&other, i, false);
	(void) ax_settle(&other, tree, gen, true);
}

static void
test_stopped(void)
{
	static const char *const at[] = {"mvrlu.published", "mvrlu.marked", "mvrlu.drawn", "mvrlu.committed",
	"hydra.split.committed", "hydra.merge.between", NULL};
	ax_tree_info ti;

	for (const char *const *p = at; *p; p++)
	{
		int			wrong = 0,
					times = 0;
		uint64_t	helped = 0;
		bool		sound = true;

		stop_at = *p;
		for (int kind = 0; kind < 4; kind++)
			for (int n = 1; n <= 2; n++)
				for (int steps = -1; steps < 10; steps += tap_scaled(12) < 12 ? 4 : 1)
				{
					put_it = kind & 1;
					prepare(put_it);
					the_key = put_it ? 321 : 400;
					for (int more = 0; more < 40; more++)
					{
						times += beside(n, steps, kind & 2, &wrong);
						the_key += put_it ? 2 : 8;
						while (in[the_key] == put_it && the_key < MANY - 1)
							the_key++;
					}
					info(&ti);
					helped += ti.commits_helped;
					sound = close_list() && sound;
				}
		ok(times > 4 && wrong == 0 && sound, "%s: stopped %d times, %d wrong; %llu were helped", stop_at, times, wrong,
		   (unsigned long long) helped);
		ok((helped > 0) == (strcmp(stop_at, "mvrlu.marked") == 0 || strcmp(stop_at, "mvrlu.drawn") == 0),
		   "%s: helped when it is marked", stop_at);
	}
}

/* A header moves: of 32 keys one is left, and their memory is wanted back. */
static void
test_moved(void)
{
	const uint64_t keys = 40000;
	uint8_t		k[LEN];
	int			wrong = 0,
				times = 0;
	bool		fine = true;

	stop_at = "hydra.header.between";
	compacts = true;
	put_it = false;
	the_key = MANY - 1;
	for (int n = 1; n <= 5; n += 2)
		for (int back = 0; back < 2; back++)
		{
			open_list();
			for (uint64_t i = 0; i < 2 * keys; i++)
			{
				uint64_t	x = i * 7919 % keys;

				key_of(x, x / 32, k);
				if (i < keys)
					(void) ax_insert(&other, tree, gen, k, LEN);
				else if (x % 32)
					(void) ax_remove(&other, tree, gen, k, LEN);
				in[x / 32] = true;
			}
			(void) tap_quiesce(&other);
			times += beside(n, MEETS, back, &wrong);
			fine = close_list() && fine;
		}
	compacts = false;
	ok(times == 6 && wrong == 0 && fine, "%s: stopped %d times, %d wrong", stop_at, times, wrong);
}

/* ---- a node that is not committed ---- */

static bool began;
static pthread_t splitter;

/*
 * On a writer's way through a node another one splits that, and is stopped before its commit.
 * Where the first one waits for the latch, the other goes on.
 */
static void
late(const char *name)
{
	if (writer && strcmp(name, "mvrlu.published") == 0)
	{
		atomic_store(&stopped, true);
		while (!atomic_load(&go))
			sched_yield();
	}
	else if (!writer && strcmp(name, "hydra.node_version") == 0 && !began)
	{
		began = true;
		if (pthread_create(&splitter, NULL, write_one, NULL) != 0)
			abort();
		while (!atomic_load(&stopped))
			sched_yield();
	}
	else if (!writer && strcmp(name, "latch:park") == 0)
		atomic_store(&go, true);
}

static void
test_uncommitted(void)
{
	ax_status	there;

	open_list();
	for (uint64_t i = 1; i <= HY_SLOTS; i++)
		(void) change(&other, 2 * (i * 7 % HY_SLOTS), true);
	the_key = HY_SLOTS + 1;
	put_it = true;
	began = false;
	atomic_store(&stopped, false);
	atomic_store(&go, false);
	tap_point_hook = late;
	(void) change(&cx, 2 * HY_SLOTS - 3, true);
	there = contains(2 * HY_SLOTS - 3);
	atomic_store(&go, true);
	tap_point_hook = NULL;
	ok(began && pthread_join(splitter, NULL) == 0 && there == AX_OK,
	   "nobody changes a node that is not committed: what was inserted there is found");
	ok(close_list(), "all is sound");
}

/* ---- the search layer is being changed ---- */

#define LAYER_KEYS 50000

static _Atomic int applied;		/* keys that are there, and told of */

/* Numbers of eight bytes that are spread evenly: below one node of the search layer hang many leaves. */
static void
layer_key(int i, uint8_t *k)
{
	key_of((uint64_t) i * UINT64_C(0x9E3779B97F4A7C15), (uint64_t) i, k);
}

/* The process that changes the search layer stops where it holds a latch there. */
static void
in_layer(const char *name)
{
	if (!writer || strncmp(name, "art.rowex.", 10) != 0 || ax_latches_held(&other) == 0 ||
		atomic_fetch_sub(&stops, 1) > 1)
		return;
	atomic_store(&stopped, true);
	while (!atomic_load(&go))
		sched_yield();
	atomic_store(&go, false);
}

/* Each key comes, and the search layer is told at once of a node that came with it. */
static void *
fill_layer(void *arg)
{
	uint8_t		k[LEN];

	writer = true;
	for (int i = 0; i < LAYER_KEYS; i++)
	{
		layer_key(i, k);
		while (ax_insert(&other, tree, gen, k, LEN) == AX_BUSY)
			;
		(void) ax_settle(&other, tree, gen, true);
		atomic_store(&applied, i + 1);
	}
	atomic_store(&done, true);
	return NULL;
}

/*
 * Readers take no step back and wait for nothing.  The search layer leads them to the very node,
 * or to the one before it when the node is that which is being told of.
 */
static void
test_layer(void)
{
	pthread_t	th;
	const ax_shard *of;
	uint64_t	before,
				waited,
				most = 0;
	uint8_t		k[LEN];
	int			times = 0,
				lost = 0;

	open_list();
	of = &atomic_load(&tree->store)->shards[0];
	waited = atomic_load(&of->restarts) + atomic_load(&of->pessimistic) + atomic_load(&of->latch_waits) + atomic_load(&of->parks);
	atomic_store(&applied, 0);
	atomic_store(&stops, 40);
	atomic_store(&stopped, false);
	atomic_store(&go, false);
	atomic_store(&done, false);
	tap_point_hook = in_layer;
	if (pthread_create(&th, NULL, fill_layer, NULL) != 0)
		abort();
	while (!atomic_load(&done))
	{
		const int	n = atomic_load(&applied);

		if (!atomic_load(&stopped))
		{
			sched_yield();
			continue;
		}
		for (int i = times % 50; i < n; i += 50)
		{
			layer_key(i, k);
			before = atomic_load(&of->walk_steps);
			lost += ax_contains(&cx, tree, gen, k, LEN) != AX_OK;
			before = atomic_load(&of->walk_steps) - before;
			most = before > most ? before : most;
		}
		times++;
		atomic_store(&stops, tap_scaled(100) < 100 ? 23 : 7);
		atomic_store(&stopped, false);
		atomic_store(&go, true);
	}
	(void) pthread_join(th, NULL);
	tap_point_hook = NULL;
	waited = atomic_load(&of->restarts) + atomic_load(&of->pessimistic) + atomic_load(&of->latch_waits) +
		atomic_load(&of->parks) - waited;
	ok(times > 50 && lost == 0 && waited == 0,
	   "whoever changes the search layer was stopped %d times: %d keys not found, %llu waits", times, lost,
	   (unsigned long long) waited);
	ok(most <= 1, "it led readers to their node all the same, or to the one before: %llu too far", (unsigned long long) most);
	ok(close_list(), "all is sound");
}

/* ---- no memory while a reader stays ---- */

static uint64_t turns;
static bool refused;

static void
fill(const char *name)
{
	ax_tree_info a,
				b;

	if (strcmp(name, "hydra.scan.entered") != 0)
		return;
	tap_point_hook = NULL;
	info(&a);
	for (turns = 0; turns < 1000000 && !refused; turns++)
	{
		uint8_t		k[LEN];
		ax_status	x;

		key_of(7, 7, k);
		x = turns % 2 ? ax_insert(&other, tree, gen, k, LEN) : ax_remove(&other, tree, gen, k, LEN);
		refused = x == AX_NOMEM || x == AX_BUSY;
		if (x == AX_OK)
			in[7] = turns % 2;
	}
	info(&b);
	tap_diag("%llu changes, %llu bytes, then %llu", (unsigned long long) turns, (unsigned long long) a.bytes,
			 (unsigned long long) b.bytes);
}

static void
test_full(void)
{
	static uint64_t tids[MANY];
	bool		were[MANY];
	ax_tree_info ti;
	int			n;

	if (ax_tree_open(&cx, tree, AX_HYDRA_MVRLU, 1 << 20, 0, &gen) != AX_OK)
		abort();
	memset(in, 0, sizeof(in));
	for (uint64_t i = 0; i < 500; i++)
		(void) change(&other, i, true);
	memcpy(were, in, sizeof(in));
	tap_point_hook = fill;
	n = scan(false, tids);
	tap_point_hook = NULL;
	info(&ti);
	ok(refused && turns > 1000 && same(were, tids, n, MANY), "versions that a reader keeps fill the cap, and are refused");
	ok(ti.versions_passed >= turns - 2, "the reader passed %llu of them", (unsigned long long) ti.versions_passed);
	ok(tap_quiesce(&cx) && change(&other, 7, true) != AX_NOMEM && change(&other, 8, false) == AX_OK &&
	   change(&other, 8, true) == AX_OK, "it leaves, and there is room");
	ok(close_list(), "all is sound");
}

/* All keys come and go, again and again: what they took is given back, and so are all versions. */
static void
test_given_back(void)
{
	uint64_t	first = 0;
	ax_tree_info ti;

	open_list();
	for (int round = 0; round < 16; round++)
	{
		for (int in = 1; in >= 0; in--)
			for (uint64_t i = 0; i < MANY; i++)
				(void) change(&other, i, in);
		(void) ax_settle(&other, tree, gen, true);
		(void) tap_quiesce(&other);
		info(&ti);
		if (round == 0)
			first = ti.live_bytes;
	}
	/* one version of each node that went would be some fifty kilobytes */
	ok(ti.live_bytes < first + 16384, "an empty list has %llu bytes, and after sixteen times as many changes %llu",
	   (unsigned long long) first, (unsigned long long) ti.live_bytes);
	ok(close_list(), "all is sound");
}

/* ---- tokens: readers count them under many writers ---- */

#define WRITERS 16
#define READERS 2
#define RANGE 20000

static _Atomic uint64_t scans,
			looks,
			moves,
			bad;

/* Writer "me" has a token among the keys: there is always one, and two while it is moved. */
static void
work(void *arg, int me)
{
	bool		reads = me >= WRITERS;
	ax_ctx	   *my = aligned_alloc(64, sizeof(ax_ctx));
	uint64_t   *tids = malloc(sizeof(*tids) * (RANGE + 3 * WRITERS));
	uint64_t	seed = (uint64_t) me + 1,
				at = 0;
	uint64_t	end = ax_port_default.now_ns() + UINT64_C(1000000) * tap_scaled(3000);
	uint8_t		k[LEN];

	/* a shard of counters for the readers alone */
	ax_attach(my, area, reads ? 8 * (me - WRITERS) + 7 : 8 + me + me / 7, me + 10, &ax_port_default);
	while (ax_port_default.now_ns() < end && !atomic_load(&bad))
	{
		uint64_t	to = tap_rand(&seed) % (RANGE / 10) * 10 + 5;
		uint8_t		last[1200];
		uint32_t	tokens[WRITERS] = {0},
					fillers = 0;
		ax_batch	b = {.backward = to & 64, .max = RANGE + 3 * WRITERS, .tids = tids, .lastkey = last, .lastkey_size = sizeof(last)};

		if (!reads)
		{
			key_of(to, (uint64_t) (RANGE + me), k);
			if (to == at || ax_insert(my, tree, gen, k, LEN) != AX_OK)
				continue;
			key_of(at, (uint64_t) (RANGE + me), k);
			while (at && ax_remove(my, tree, gen, k, LEN) == AX_BUSY)
				;
			at = to;
			atomic_fetch_add(&moves, 1);
			continue;
		}
		b.hi.after = true;
		if (ax_scan(my, tree, gen, &b) != AX_OK || !b.exhausted)
			atomic_store(&bad, 1);
		for (uint32_t i = 0; i < b.n; i++)
			if (tids[i] < RANGE)
				fillers++;
			else
				tokens[tids[i] - RANGE]++;
		for (int i = 0; i < WRITERS; i++)
			if (tokens[i] > 2)
				atomic_store(&bad, 2);
		if (fillers != RANGE / 10)
			atomic_store(&bad, 3);
		/* once all had one, none is without */
		for (int i = 0; i < WRITERS; i++)
			if (tokens[i] == 0 && at)
				atomic_store(&bad, 4);
		for (int i = 0, all = 1; i < WRITERS; i++)
		{
			all = all && tokens[i] > 0;
			if (i == WRITERS - 1 && all)
				at = 1;
		}
		atomic_fetch_add(&scans, 1);
		for (int i = 0; i < 100; i++)
		{
			uint64_t	key = tap_rand(&seed) % (RANGE / 10) * 10;

			key_of(key, key, k);
			if (ax_contains(my, tree, gen, k, LEN) != AX_OK)
				atomic_store(&bad, 5);
			atomic_fetch_add(&looks, 1);
		}
	}
	ax_detach(my);
	free(tids);
	free(my);
}

static void
test_tokens(void)
{
	const ax_shard *of;
	ax_tree_info ti;
	uint64_t	n;

	open_list();
	for (uint64_t i = 0; i < RANGE; i += 10)
	{
		uint8_t		k[LEN];

		key_of(i, i, k);
		(void) ax_insert(&other, tree, gen, k, LEN);
	}
	tap_threads(WRITERS + READERS, work, NULL);
	of = &atomic_load(&tree->store)->shards[7];
	n = atomic_load(&of->restarts) + atomic_load(&of->pessimistic) + atomic_load(&of->latch_waits) + atomic_load(&of->parks);
	info(&ti);
	ok(atomic_load(&bad) == 0 && atomic_load(&scans) > 0, "%llu whole scans beside %llu moved tokens: each of one moment (%llu)",
	   (unsigned long long) atomic_load(&scans), (unsigned long long) atomic_load(&moves), (unsigned long long) atomic_load(&bad));
	ok(n == 0, "readers beside %d writers: %llu restarts and waits", WRITERS, (unsigned long long) n);
	tap_diag("%llu look-ups; of all: %llu restarts, %llu versions passed, %llu commits helped", (unsigned long long) atomic_load(&looks),
			 (unsigned long long) ti.restarts, (unsigned long long) ti.versions_passed, (unsigned long long) ti.commits_helped);
	ok(close_list(), "all is sound");
}

int
main(void)
{
	tap_deadline(300);
	area = tap_area((size_t) 256 << 20, 64, 1 << 20);
	ax_attach(&cx, area, 0, 1, &ax_port_default);
	ax_attach(&other, area, 1, 2, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	test_moment();
	test_stopped();
	test_moved();
	test_uncommitted();
	test_layer();
	test_full();
	test_given_back();
	test_tokens();
	return tap_done();
}
