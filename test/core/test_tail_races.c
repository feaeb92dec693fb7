/*
 * test_tail_races.c
 *	  The tail buffer's windows in time: one call stands at a pause point, others
 *	  go on around it.
 *
 * Each case says what would be lost without the cure, and fails without it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/ax_internal.h"
#include "tap.h"

#define LEN 15					/* marker, 8 bytes, TID */

static ax_ctx cx,				/* this thread's */
			vx;					/* the one that stands */
static ax_tree *tree;
static uint64_t gen;

static void
make_key(uint8_t *k, uint64_t x, uint64_t tid)
{
	k[0] = 1;
	for (int i = 0; i < 8; i++)
		k[1 + i] = (uint8_t) (x >> (56 - 8 * i));
	for (int i = 0; i < 6; i++)
		k[9 + i] = (uint8_t) (tid >> (40 - 8 * i));
}

#define BASE UINT64_C(1000000)

static ax_status
put(ax_ctx *c, uint64_t x, uint64_t tid)
{
	uint8_t		k[LEN];

	make_key(k, BASE + x, tid);
	return ax_insert(c, tree, gen, k, LEN);
}

static ax_status
take(ax_ctx *c, uint64_t x, uint64_t tid)
{
	uint8_t		k[LEN];

	make_key(k, BASE + x, tid);
	return ax_remove(c, tree, gen, k, LEN);
}

static ax_status
has(ax_ctx *c, uint64_t x, uint64_t tid)
{
	uint8_t		k[LEN];

	make_key(k, BASE + x, tid);
	return ax_contains(c, tree, gen, k, LEN);
}

/* How many TIDs of one number. */
static int
count_of(ax_ctx *c, uint64_t x)
{
	uint8_t		k[LEN];
	uint64_t	tids[8];
	ax_found	f = {.tids = tids, .max = 8};

	make_key(k, BASE + x, 0);
	if (ax_lookup(c, tree, gen, k, LEN - 6, &f) != AX_OK || f.more)
		return -1;
	return (int) f.n;
}

/* How many entries in all, one way or the other; -1: out of order. */
static int
count_all(ax_ctx *c, bool back)
{
	uint64_t	tids[50];
	uint32_t	off[51];
	uint8_t		buf[4096],
				last[256],
				at[LEN],
				prev[LEN];
	ax_batch	b = {.hi = {NULL, 0, true}, .backward = back, .want_keys = true, .max = 50, .tids = tids,
		.key_off = off, .keybuf = buf, .keybuf_size = sizeof(buf), .lastkey = last,
	.lastkey_size = sizeof(last)};
	int			n = 0;

	do
	{
		if (ax_scan(c, tree, gen, &b) != AX_OK)
			return -1;
		for (uint32_t i = 0; i < b.n; i++, n++)
		{
			int			d = n ? memcmp(buf + off[i], prev, LEN) : 0;

			if (n && (back ? d >= 0 : d <= 0))
				return -1;
			memcpy(prev, buf + off[i], LEN);
		}
		if (b.n)
		{
			memcpy(at, last, LEN);
			*(back ? &b.hi : &b.lo) = (ax_bound) {at, LEN, !back};
		}
	} while (!b.exhausted);
	return n;
}

static ax_tree_info
info(void)
{
	ax_tree_info i;

	if (ax_info(&cx, tree, gen, &i) != AX_OK)
		abort();
	return i;
}

static ax_status
flush(ax_ctx *c)
{
	bool		more = true;
	ax_status	r = AX_OK;

	for (int i = 0; more && i < 300 && r == AX_OK; i++)
		r = ax_tail_flush(c, tree, gen, &more);
	return r;
}

/* ---- the one that stands ---- */

static const char *volatile stand_at;
static atomic_int skip;			/* so many times not */
static sem_t stands,
			go_on;
static _Thread_local bool is_victim;
static void (*volatile deed) (void);
static pthread_t thread;
static ax_status said;
static int	counted;

static void
hook(const char *name)
{
	const char *p = stand_at;

	if (!is_victim || !p || strcmp(p, name) != 0 || atomic_fetch_sub(&skip, 1) > 0)
		return;
	stand_at = NULL;
	sem_post(&stands);
	while (sem_wait(&go_on))
		;
}

static void *
victim(void *arg)
{
	is_victim = true;
	deed();
	sem_post(&stands);
	return NULL;
}

/* Run what until it stands at the point; false: it never came there. */
static bool
begin(void (*what) (void), const char *point, int times)
{
	deed = what;
	atomic_store(&skip, times);
	stand_at = point;
	if (pthread_create(&thread, NULL, victim, NULL))
		abort();
	while (sem_wait(&stands))
		;
	return stand_at == NULL;
}

static void
finish(void)
{
	stand_at = NULL;
	sem_post(&go_on);
	(void) pthread_join(thread, NULL);
	while (sem_trywait(&stands) == 0)
		;
	while (sem_trywait(&go_on) == 0)
		;
}

/* A tree with entries 0..n-1, TID 7, of which the last are in a window. */
static void
fresh(uint64_t n)
{
	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK ||
		ax_tree_set_tail(&cx, tree, gen, AX_TAIL_ON) != AX_OK)
		abort();
	for (uint64_t i = 0; i < n; i++)
		if (put(&cx, i, 7) != AX_OK)
			abort();
}

static void
close_tree(void)
{
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

static void
do_put_50(void)
{
	said = put(&vx, 50, 7);
}

static void
do_flush(void)
{
	said = flush(&vx);
}

static void
do_take_30(void)
{
	said = take(&vx, 30, 7);
}

static void
do_has_30(void)
{
	said = has(&vx, 30, 7);
}

static void
do_count_30(void)
{
	counted = count_of(&vx, 30);
}

static void
do_count_all(void)
{
	counted = count_all(&vx, false);
}

static void
do_count_back(void)
{
	counted = count_all(&vx, true);
}

static void
do_put_600(void)
{
	said = put(&vx, 600, 7);
}

/* An inserter that found its slot is overtaken by the flusher: seal against insert. */
static void
sealed_under_inserter(void)
{
	fresh(50);
	ok(begin(do_put_50, "window.insert", 0), "an inserter stands before its slot");
	ok(flush(&cx) == AX_OK && info().tail_entries == 0, "the window is emptied and gone");
	ok(put(&cx, 51, 7) == AX_OK && has(&cx, 51, 7) == AX_OK, "and another made");
	finish();
	ok(said == AX_OK && has(&cx, 50, 7) == AX_OK && count_all(&cx, false) == 52,
	   "what it inserted is there");
	ok(flush(&cx) == AX_OK && count_all(&cx, true) == 52 && info().entries == 52,
	   "after a flush, too");
	close_tree();
}

/* An inserter fills the slot that the flusher is about to seal. */
static void
filled_under_sealer(void)
{
	fresh(50);
	/* slots follow one another: those before slot 50 are full, but the first window's begin */
	ok(begin(do_flush, "window.seal", 0), "a flusher stands before an empty slot");
	for (uint64_t i = 50; i < 600; i++)
		if (put(&cx, i, 7) != AX_OK)
			abort();
	finish();
	ok(said == AX_OK || said == AX_BUSY, "it goes on");
	ok(count_all(&cx, false) == 600 && count_all(&cx, true) == 600, "all that was inserted meanwhile is there");
	ok(flush(&cx) == AX_OK && info().entries == 600, "and is flushed");
	close_tree();
}

/* Readers that looked into the buffer before, and into the tree after, the flush. */
static void
flushed_under_reader(void)
{
	fresh(50);
	ok(begin(do_has_30, "window.insert", 0) == false && said == AX_OK, "an entry is found in the buffer");
	finish();
	ok(begin(do_count_30, "tail.looked", 0), "a look-up stands between the buffer and the tree");
	ok(flush(&cx) == AX_OK && info().tail_entries == 0, "all is flushed");
	finish();
	ok(counted == 1, "it finds the entry, once (%d)", counted);
	close_tree();

	for (int back = 0; back < 2; back++)
	{
		fresh(50);
		ok(begin(back ? do_count_back : do_count_all, "tail.looked", 0), "a scan stands between the buffer and the tree");
		ok(flush(&cx) == AX_OK && info().tail_entries == 0, "all is flushed");
		finish();
		ok(counted == 50, "it finds every entry, once (%d)", counted);
		close_tree();
	}
}

/* Half of a step is in the tree and half is not: readers see all of it. */
static void
reader_in_flush(void)
{
	static const char *const point[] = {"tail.flushing", "tail.flushed", "window.unlink"};

	for (int i = 0; i < 3; i++)
	{
		fresh(50);
		ok(begin(do_flush, point[i], 0), "a flusher stands at %s", point[i]);
		ok(count_all(&cx, false) == 50 && count_all(&cx, true) == 50 && count_of(&cx, 30) == 1 &&
		   has(&cx, 30, 7) == AX_OK, "all entries are seen, once");
		ok(put(&cx, 50, 7) == AX_OK && count_of(&cx, 50) == 1, "an insert meanwhile finds a place");
		ok(put(&cx, 30, 8) == AX_OK && count_of(&cx, 30) == 2, "of a number that is there, too");
		finish();
		ok(said == AX_OK || said == AX_BUSY, "the flusher goes on");
		ok(flush(&cx) == AX_OK && count_all(&cx, false) == 52 && info().entries == 52, "nothing is lost");
		close_tree();
	}
}

/* A removal during a flush: neither forgotten nor half done. */
static void
removal_in_flush(void)
{
	fresh(50);
	ok(begin(do_flush, "tail.flushing", 0), "a flusher stands, its entries on their way");
	ok(ax_latches_held(&vx) > 0, "as one that must not exit");
	ok(take(&cx, 30, 7) == AX_BUSY, "a removal of one of them is busy");
	ok(has(&cx, 30, 7) == AX_OK && count_of(&cx, 30) == 1, "and has done nothing");
	finish();
	ok(said == AX_OK && take(&cx, 30, 7) == AX_OK, "then it succeeds");
	ok(has(&cx, 30, 7) == AX_NOTFOUND && count_of(&cx, 30) == 0 && count_all(&cx, false) == 49,
	   "and the entry is gone");
	close_tree();

	/* the removal has looked, and found; the flusher passes by */
	fresh(50);
	ok(begin(do_take_30, "tail.remove.looked", 0), "a removal stands, its entry held");
	ok(flush(&cx) == AX_BUSY, "a flusher gets no further than that");
	ok(count_of(&cx, 30) == 1, "the entry is there");
	finish();
	ok(said == AX_OK && flush(&cx) == AX_OK && info().tail_entries == 0, "both go on");
	ok(has(&cx, 30, 7) == AX_NOTFOUND && count_all(&cx, false) == 49 && info().entries == 49,
	   "the entry did not come back");
	close_tree();

	/* it has not looked yet when the entry goes into the tree */
	fresh(50);
	ok(begin(do_take_30, "tail.cancel", 0), "a removal stands before its entry");
	ok(flush(&cx) == AX_OK, "the entry goes into the tree");
	finish();
	ok(said == AX_OK && has(&cx, 30, 7) == AX_NOTFOUND && count_all(&cx, false) == 49,
	   "it is removed there");
	close_tree();

	/* the tree is busy (HydraList's is not, when it has nothing) */
	if (strcmp(ax_structure_name(tap_structure()), "hydra") != 0)
	{
		ax_store   *st;
		uint64_t	v;

		fresh(50);
		ok(begin(do_take_30, "tail.remove.looked", 0), "a removal stands, its entry held");
		ok(ax_enter(&cx, tree, gen, &st) == AX_OK && ax_word_lock(&cx, &st->root_word, &v) == AX_OK,
		   "the tree's root is latched");
		finish();
		ax_word_unlock(&cx, &st->root_word, false);
		ax_leave(&cx);
		ok(said == AX_BUSY && has(&cx, 30, 7) == AX_OK && count_all(&cx, false) == 50,
		   "a removal that fails leaves the entry where it was");
		close_tree();
	}
}

/* A window is published after its number: who puts an entry in makes it visible. */
static void
half_made_window(void)
{
	fresh(50);
	ok(begin(do_put_600, "window.made", 0), "an inserter stands before it publishes a window");
	ok(put(&cx, 601, 7) == AX_OK && count_of(&cx, 601) == 1 && count_all(&cx, false) == 51,
	   "another goes beside it");
	finish();
	ok(said == AX_OK && count_of(&cx, 600) == 1 && count_all(&cx, true) == 52, "and it has its own");
	close_tree();
}

/* A closed buffer is unlinked while somebody reads it, and another is opened. */
static void
unlinked_under_reader(void)
{
	fresh(50);
	ok(begin(do_count_all, "tail.looked", 0), "a scan stands between the buffer and the tree");
	ok(ax_tree_set_tail(&cx, tree, gen, AX_TAIL_OFF) == AX_OK && flush(&cx) == AX_OK, "the buffer is shut and emptied");
	ok(ax_tree_set_tail(&cx, tree, gen, AX_TAIL_ON) == AX_OK && put(&cx, 50, 7) == AX_OK &&
	   strcmp(info().tail_mode, "window") == 0, "another is opened");
	for (int i = 0; i < 50; i++)
		(void) ax_poll(&cx);
	for (uint64_t i = 51; i < 3000; i++)
		(void) put(&cx, i, 7);
	finish();
	ok(counted >= 50 && counted <= 3000, "it has what was there when it began (%d)", counted);
	ok(count_all(&cx, false) == 3000, "and all is there after it");
	close_tree();
}

/* Who is on his way into a buffer that is shut meanwhile. */
static void
shut_under_inserter(void)
{
	fresh(50);
	ok(begin(do_put_600, "window.made", 0), "an inserter stands, making a window");
	ok(ax_tree_set_tail(&cx, tree, gen, AX_TAIL_OFF) == AX_OK, "the buffer is shut");
	(void) flush(&cx);
	finish();
	ok(said == AX_OK && count_of(&cx, 600) == 1 && count_all(&cx, false) == 51, "its entry is there");
	ok(flush(&cx) == AX_OK && info().tail_entries == 0 && info().entries == 51 && count_of(&cx, 600) == 1,
	   "and is flushed with the rest");
	ok(strcmp(info().tail_mode, "off") == 0, "the buffer is off");
	close_tree();
}

/* A flusher that has no memory, or stops half-way for good: entries stay where they are. */
static void
flusher_without_memory(void)
{
	ax_tree_info i;
	ax_status	r = AX_OK;
	uint64_t	n = 0;

	fresh(3000);
	i = info();
	ok(i.tail_entries > 0 && i.entries == 3000, "%llu of 3000 are in the buffer",
	   (unsigned long long) i.tail_entries);
	for (uint64_t k = 1; k < 400; k++)
	{
		bool		more = true;

		((ax_ctx_body *) (void *) cx.opaque)->fail_alloc_at = k % 7 + 1;
		r = ax_tail_flush(&cx, tree, gen, &more);
		n += r == AX_NOMEM;
		((ax_ctx_body *) (void *) cx.opaque)->fail_alloc_at = 0;
		if (info().entries != 3000 || count_of(&cx, 2990) != 1 || count_of(&cx, 2500) != 1)
			break;
		if (!more && r == AX_OK)
			break;
	}
	ok(info().entries == 3000 && count_all(&cx, false) == 3000, "allocations failed in its steps (%llu calls): all is there",
	   (unsigned long long) n);
	ok(flush(&cx) == AX_OK && info().tail_entries == 0 && info().entries == 3000 &&
	   count_all(&cx, true) == 3000, "and goes into the tree in the end");
	close_tree();
}

/* A window that there is no memory for is no failure of an insert that has its place. */
static void
no_memory_for_the_next(void)
{
	ax_ctx_body *b = (ax_ctx_body *) (void *) cx.opaque;
	uint64_t	x = 512 - BASE % 512 + 512 + 255;
	bool		failed;

	/* up to the middle of a window */
	fresh(x);
	b->fail_alloc_at = 1;
	while (b->fail_alloc_at && x < 4096)
		if (put(&cx, x++, 7) != AX_OK)
			break;
	failed = b->fail_alloc_at == 0;
	b->fail_alloc_at = 0;
	ok(failed && !b->alloc_injected && has(&cx, x - 1, 7) == AX_OK,
	   "no memory for a window ahead (number %llu): the insert is in, and nothing failed", (unsigned long long) x - 1);
	close_tree();
}

static uint64_t clock_is = 1000000000;

static uint64_t
standing_clock(void)
{
	return clock_is;
}

/* What planners ask for: as it was a moment ago, but nothing twice. */
static void
counted_about(void)
{
	ax_tree_info a;
	ax_port		slow = ax_port_default;
	const ax_port **port = &((ax_ctx_body *) (void *) cx.opaque)->port;
	const ax_port *was = *port;

	slow.now_ns = standing_clock;
	fresh(50);
	*port = &slow;
	ok(info().entries == 50 && ax_info_about(&cx, tree, gen, &a) == AX_OK && a.entries == 50,
	   "50 entries, counted and about");
	ok(put(&cx, 50, 7) == AX_OK && info().entries == 51, "another");
	ok(put(&cx, 51, 7) == AX_OK && ax_info_about(&cx, tree, gen, &a) == AX_OK && a.entries == 51 &&
	   a.tail_entries == 51, "one more is not counted at once");
	clock_is += 20000000;
	ok(ax_info_about(&cx, tree, gen, &a) == AX_OK && a.entries == 52, "but soon");
	ok(flush(&cx) == AX_OK && ax_info_about(&cx, tree, gen, &a) == AX_OK && a.entries == 52 &&
	   a.tail_entries == 0, "what went into the tree is not counted twice");
	ok(put(&cx, 52, 7) == AX_OK && take(&cx, 52, 7) == AX_OK &&
	   ax_info_about(&cx, tree, gen, &a) == AX_OK && a.entries == 52, "nor what was removed");
	*port = was;
	close_tree();
}

int
main(void)
{
	ax_area    *a = tap_area((size_t) 128 << 20, 4, 1 << 20);

	sem_init(&stands, 0, 0);
	sem_init(&go_on, 0, 0);
	ax_attach(&cx, a, 0, 1, &ax_port_default);
	ax_attach(&vx, a, 1, 2, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	tap_point_hook = hook;
	sealed_under_inserter();
	filled_under_sealer();
	flushed_under_reader();
	reader_in_flush();
	removal_in_flush();
	half_made_window();
	unlinked_under_reader();
	shut_under_inserter();
	flusher_without_memory();
	no_memory_for_the_next();
	counted_about();
	ax_tree_release(&cx, tree);
	ax_detach(&vx);
	ax_detach(&cx);
	return tap_done();
}
