/*
 * test_fair.c
 *	  Whoever waits: sync = coarse, a reader is not kept out for ever by writers
 *	  that follow one another, nor a writer by readers; and naps inside an epoch.
 *
 * One writer after the other: whenever the reader is about to look again, the
 * writer that is inside is let go on, and stopped as soon as the next is inside.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/ax_area.h"
#include "core/base/ax_coarse.h"
#include "tap.h"

static ax_area *area;
static ax_tree *tree;
static uint64_t gen;
static sem_t go,
			there;
static _Atomic bool over;
static _Atomic int waits,		/* of the reader */
			yields;				/* of the writer */
static _Thread_local enum
{
	NOBODY, READER, WRITER
}			me;
static _Thread_local bool stopped;	/* in this call */

static void
make_key(uint64_t k, uint8_t *key)
{
	uint64_t	x = __builtin_bswap64(k);

	memcpy(key, &x, 8);
	memset(key + 8, 0, 6);
	key[13] = 1;
}

static void
hook(const char *name)
{
	if (atomic_load(&over))
		return;
	if (me == READER && strcmp(name, "coarse.shared_wait") == 0)
	{
		atomic_fetch_add(&waits, 1);
		sem_post(&go);
		sem_wait(&there);
	}
	else if (me == WRITER && !stopped &&
			 (strcmp(name, "guard.latched") == 0 || strcmp(name, "coarse.exclusive_wait") == 0))
	{
		stopped = true;
		if (*name == 'c')
			atomic_fetch_add(&yields, 1);
		sem_post(&there);
		sem_wait(&go);
	}
}

static void *
writer(void *arg)
{
	static ax_ctx cx;
	uint8_t		key[14];

	me = WRITER;
	ax_attach(&cx, area, 1, 2, &ax_port_default);
	make_key(50, key);
	while (!atomic_load(&over))
	{
		stopped = false;
		while (ax_insert(&cx, tree, gen, key, 14) == AX_BUSY)
			;
		stopped = false;
		while (ax_remove(&cx, tree, gen, key, 14) == AX_BUSY)
			;
	}
	ax_detach(&cx);
	return NULL;
}

/* Many of both: that all come to their end, and how far the slowest was behind. */
static _Atomic uint64_t done[8];

static void
crowd(void *arg, int i)
{
	static __thread ax_ctx cx;
	uint64_t	n = 0;
	uint8_t		key[14];
	uint64_t	end = ax_port_default.now_ns() + 1000000000;
	uint64_t	tid;
	ax_found	f = {.tids = &tid, .max = 1};

	ax_attach(&cx, area, i + 1, i + 2, &ax_port_default);
	make_key(100 + (uint64_t) i, key);
	for (; ax_port_default.now_ns() < end; n++)
		if (i % 2)
			while ((n % 2 ? ax_remove : ax_insert) (&cx, tree, gen, key, 14) == AX_BUSY)
				;
		else
			while (ax_lookup(&cx, tree, gen, key, 8, &f) == AX_BUSY)
				;
	atomic_store(&done[i], n);
	ax_detach(&cx);
}

static void
test(ax_ctx *cx, ax_structure s)
{
	uint8_t		key[14];
	uint64_t	tid;
	ax_found	f = {.tids = &tid, .max = 1};
	pthread_t	th;
	ax_status	x = AX_BUSY;
	uint64_t	least[2] = {UINT64_MAX, UINT64_MAX};

	tree = ax_tree_alloc(cx);
	if (ax_tree_open(cx, tree, s, 0, 0, &gen) != AX_OK)
		return;
	for (uint64_t i = 0; i < 100; i += 3)
	{
		make_key(i, key);
		(void) ax_insert(cx, tree, gen, key, 14);
	}
	over = false;
	waits = yields = 0;
	sem_init(&go, 0, 0);
	sem_init(&there, 0, 0);
	tap_point_hook = hook;
	pthread_create(&th, NULL, writer, NULL);
	sem_wait(&there);			/* one is inside */
	me = READER;
	make_key(3, key);
	/* on a busy machine its time may be over before it has looked often enough */
	for (int i = 0; i < 20; i++)
		if ((x = ax_lookup(cx, tree, gen, key, 8, &f)) != AX_BUSY)
			break;
	me = NOBODY;
	over = true;
	sem_post(&go);
	pthread_join(th, NULL);
	tap_point_hook = NULL;
	ok(x == AX_OK && f.n == 1 && yields > 0,
	   "%s: a reader has its turn after %d others' (status %d, %d let it go first)", ax_structure_name(s), waits, (int) x, yields);

	tap_threads(8, crowd, NULL);
	for (int i = 0; i < 8; i++)
		if (done[i] < least[i % 2])
			least[i % 2] = done[i];
	ok(least[0] > 20 && least[1] > 20, "%s: in a crowd for a second the slowest reader had %llu turns, the slowest writer %llu",
	   ax_structure_name(s), (unsigned long long) least[0], (unsigned long long) least[1]);
	ax_tree_close(cx, tree);
	ax_tree_release(cx, tree);
}

/* ---- who keeps whom out ---- */

static ax_ctx reader[2];
static ax_store *store;
static int	looks;
static bool came_in;

/* The writer waits for the first reader: the second one must not come in before it. */
static void
look_in(const char *name)
{
	if (strcmp(name, "coarse.exclusive_wait") != 0 || looks++ > 0)
		return;
	came_in = ax_coarse_try(&reader[1], store, false);
	if (came_in)
		ax_coarse_unlock_shared(&reader[1], store);
	ax_coarse_unlock_shared(&reader[0], store);
}

static void
test_kept_out(ax_ctx *cx)
{
	ax_status	x;

	tree = ax_tree_alloc(cx);
	if (ax_tree_open(cx, tree, AX_ART_COARSE, 0, 0, &gen) != AX_OK)
		return;
	ax_attach(&reader[0], area, 1, 2, &ax_port_default);
	ax_attach(&reader[1], area, 2, 3, &ax_port_default);
	ok(ax_enter(&reader[0], tree, gen, &store) == AX_OK && ax_enter(&reader[1], tree, gen, &store) == AX_OK &&
	   ax_enter(cx, tree, gen, &store) == AX_OK, "two readers and a writer");
	ok(ax_coarse_lock_shared(&reader[0], store) == AX_OK, "a reader is inside");
	tap_point_hook = look_in;
	x = ax_coarse_lock_exclusive(cx, store);
	tap_point_hook = NULL;
	ok(x == AX_OK && looks > 0 && !came_in, "no other comes in before the writer that waits");
	ok(ax_coarse_lock_shared(&reader[0], store) == AX_BUSY, "nor beside it");
	ax_coarse_unlock_exclusive(cx, store);
	ax_leave(cx);
	for (int i = 0; i < 2; i++)
	{
		ax_leave(&reader[i]);
		ax_detach(&reader[i]);
	}
	ax_tree_close(cx, tree);
	ax_tree_release(cx, tree);
}

/* ---- naps inside an epoch ---- */

static ax_ctx napper;
static ax_word word;
static int	parks;
static bool moves;

/* A clock that runs only while this thread sleeps, and as long as that was asked for. */
static uint64_t tick = 1000000000;

static uint64_t
ticks(void)
{
	return tick += 100;
}

/* While one sleeps, the epoch moves on as far as it lets it. */
static void
park_and_move(uint32_t *at, uint32_t expected, uint32_t us)
{
	parks++;
	tick += us * UINT64_C(1000);
	if (moves && atomic_load(&area->epoch) == atomic_load(&ax_body(&napper)->slot->epoch))
		atomic_fetch_add(&area->epoch, 1);
	ax_port_default.park(at, expected, us);
}

/*
 * Whoever napped inside, and the epoch has moved meanwhile, naps no more: neither
 * waiting for a latch, nor for the sake of others.
 */
static void
test_overstay(ax_ctx *cx)
{
	ax_port		p = ax_port_default;
	ax_store   *s;

	tree = ax_tree_alloc(cx);
	if (ax_tree_open(cx, tree, AX_ART_OPTIQL, 0, 0, &gen) != AX_OK)
		return;
	p.park = park_and_move;
	p.now_ns = ticks;
	ax_attach(&napper, area, 1, 2, &p);
	atomic_init(&word, AX_WORD_INIT | AX_LOCKED | AX_CLOSED);
	for (int i = 0; i < 2; i++)
	{
		uint64_t	v;
		ax_status	x;

		moves = i == 1;
		if (ax_enter(&napper, tree, gen, &s) != AX_OK)
			return;
		ax_body(&napper)->spins = 0;
		ax_body(&napper)->credit_until = UINT64_MAX;	/* the latch's own naps only */
		parks = 0;
		x = ax_word_acquire(&napper, &word, true, &v);
		ok(x == AX_BUSY && (moves ? parks == 1 : parks > 1),
		   "the epoch %s: busy after %d naps", moves ? "moves" : "stands", parks);
		ax_leave(&napper);

		if (ax_enter(&napper, tree, gen, &s) != AX_OK)
			return;
		parks = 0;
		for (int k = 0; k < 5; k++)
		{
			ax_body(&napper)->credit_until = 0;
			ax_body(&napper)->contended_at = tick;
			ax_contended(&napper);
		}
		ok(parks == (moves ? 1 : 5), "the epoch %s: %d naps of five for others",
		   moves ? "moves" : "stands", parks);
		ax_leave(&napper);
	}
	ax_detach(&napper);
	ax_tree_close(cx, tree);
	ax_tree_release(cx, tree);
}

int
main(void)
{
	static ax_ctx cx;

	area = tap_area((size_t) 16 << 20, 12, 1 << 20);
	ax_attach(&cx, area, 0, 1, &ax_port_default);
	test(&cx, AX_ART_COARSE);
	test(&cx, AX_BTREE_COARSE);
	test_kept_out(&cx);
	test_overstay(&cx);
	ax_detach(&cx);
	return tap_done();
}
