/*
 * test_queue.c
 *	  The queue of writers on a latch word: what it promises, and every window
 *	  in which a process can lose its processor.
 *
 * The five things the authors of OptiQL ask of a lock are D1 to D5 below.  The
 * rest replays, one thread stopped at a pause point and the others driven past
 * it, what their lock leaves out: that anybody may be stopped anywhere.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "core/base/ax_area.h"
#include "core/elide/ax_guard.h"
#include "core/radix/rt_node.h"
#include "tap.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 80
#define AREA (16u << 20)
#define FOR_EVER (1u << 30)		/* pauses: minutes */
#define ACTORS 8

static ax_area *area;
static ax_tree *tree;
static uint64_t gen;
static ax_word *w;				/* the only thing on its page */
static ax_ctx me;				/* this thread's attachment, slot 0 */
static ax_store *store;

static uint64_t
now_ns(void)
{
	return ax_port_default.now_ns();
}

static void
nap(long us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

/* ---- actors: threads that acquire the word once, stopped where one likes ---- */

enum
{
	SWAPPED = 1, LINKED = 2, HEAD = 4, UNLINKED = 8, BEFORE_PASS = 16, PARKED = 32
};

typedef struct actor
{
	int			slot;
	uint32_t	spins;			/* 0: leaves at once */
	bool		shared;
	bool		keep;			/* holds the word until told to let go */
	bool		stubborn;		/* as head it waits for ever, whatever spins says */
	_Atomic int stop_at;		/* a point */
	_Atomic int seen;			/* points passed, or stopped at */
	_Atomic bool stopped;
	_Atomic bool has_it;
	_Atomic bool let_go;
	_Atomic bool done;
	ax_status	r;
	int			turn;			/* the how manieth it got the word */
	pthread_t	tid;
	ax_ctx		cx;
} actor;

static actor cast[ACTORS];
static _Atomic int turns;
static _Thread_local actor *self;

static int
point_of(const char *name)
{
	return !strcmp(name, "queue.swapped") ? SWAPPED :
		!strcmp(name, "queue.linked") ? LINKED :
		!strcmp(name, "queue.head") ? HEAD :
		!strcmp(name, "queue.unlinked") ? UNLINKED :
		!strcmp(name, "queue.before_pass") ? BEFORE_PASS : 0;
}

static void
reached(int point)
{
	if (!self || !point)
		return;
	if (point == HEAD && self->stubborn)
		ax_body(&self->cx)->spins = FOR_EVER;
	if (atomic_load(&self->stop_at) == point)
		atomic_store(&self->stopped, true);
	atomic_fetch_or(&self->seen, point);
	while (atomic_load(&self->stopped))
		sched_yield();
}

static void
hook(const char *name)
{
	reached(point_of(name));
}

static _Atomic int parks;

/* A sleeper that is stopped sleeps on. */
static void
park(uint32_t *word, uint32_t expected, uint32_t us)
{
	parks++;
	reached(PARKED);
	ax_port_default.park(word, expected, us);
}

static ax_port port;

static void
attach(ax_ctx *cx, int slot, ax_store **st)
{
	ax_attach(cx, area, slot, 1 + slot, &port);
	if (ax_enter(cx, tree, gen, st) != AX_OK)
	{
		fprintf(stderr, "cannot enter\n");
		exit(2);
	}
}

static void
leave(ax_ctx *cx)
{
	ax_leave(cx);
	ax_detach(cx);
}

/* Until it is so, for up to 20 s. */
#define until(cond) \
	do { \
		uint64_t t0_ = now_ns(); \
		while (!(cond)) \
		{ \
			if (now_ns() - t0_ > UINT64_C(20000000000)) \
			{ \
				ok(cond, "line %d: waited 20 s for it", __LINE__); \
				exit(tap_done()); \
			} \
			sched_yield(); \
		} \
	} while (0)

static void *
play(void *arg)
{
	actor	   *a = arg;
	ax_store   *st;
	uint64_t	v;

	attach(&a->cx, a->slot, &st);
	ax_body(&a->cx)->spins = a->spins;
	self = a;
	a->r = ax_word_acquire(&a->cx, w, a->shared, &v);
	if (a->r == AX_OK)
	{
		a->turn = atomic_fetch_add(&turns, 1);
		atomic_store(&a->has_it, true);
		while (a->keep && !atomic_load(&a->let_go))
			sched_yield();
		if (a->shared)
			ax_word_close(w);
		ax_word_unlock(&a->cx, w, true);
	}
	atomic_store(&a->done, true);
	self = NULL;
	leave(&a->cx);
	return NULL;
}

/* Actor i (slot i) goes for the word; stop_at: 0 or a point. */
static actor *
enter(int i, uint32_t spins, int stop_at)
{
	actor	   *a = &cast[i];

	memset((void *) a, 0, sizeof(*a));
	a->slot = i;
	a->spins = spins;
	atomic_store(&a->stop_at, stop_at);
	return a;
}

static actor *
start(actor *a)
{
	if (pthread_create(&a->tid, NULL, play, a))
	{
		perror("pthread_create");
		exit(2);
	}
	return a;
}

static void
go_on(actor *a, int next_stop)
{
	atomic_store(&a->stop_at, next_stop);
	atomic_store(&a->stopped, false);
}

static void
curtain(actor *a)
{
	pthread_join(a->tid, NULL);
}

#define at(a, point) (atomic_load(&(a)->stopped) && (atomic_load(&(a)->seen) & (point)))
#define passed(a, point) ((atomic_load(&(a)->seen) & (point)) != 0)

static uint32_t
node_state(int slot, int k)
{
	return atomic_load(&area->slots[slot].queue[k].state);
}

static int
nodes_in_use(void)
{
	int			n = 0;

	for (int s = 0; s < SLOTS; s++)
		for (int k = 0; k < AX_QNODES; k++)
			n += node_state(s, k) != AX_Q_FREE;
	return n;
}

static int
tail_slot(void)
{
	return (int) (((atomic_load(w) & AX_TAIL_MASK) >> AX_TAIL_SHIFT) - 1) / AX_QNODES;
}

static void
fresh(void)
{
	atomic_store(w, AX_WORD_INIT);
	atomic_store(&turns, 0);
}

static void
clean(const char *what)
{
	ok((atomic_load(w) & (AX_FLAGS & ~AX_OBSOLETE)) == 0, "%s: the word is open and has no queue", what);
	ok(nodes_in_use() == 0, "%s: every node is free again", what);
}

static void
hold(bool shared)
{
	uint64_t	v;

	if (ax_word_acquire(&me, w, shared, &v) != AX_OK)
		ok(false, "an open word cannot be had");
}

/* ax_info enters by itself */
static ax_tree_info
counters(void)
{
	ax_tree_info i;

	ax_leave(&me);
	ax_info(&me, tree, gen, &i);
	if (ax_enter(&me, tree, gen, &store) != AX_OK)
		exit(2);
	return i;
}

/* ---- D1 to D5 ---- */

static void
test_compact(void)
{
	ok(sizeof(ax_word) == 8, "D1: a latch is eight bytes, its queue included");
	ok(AX_QNODES * (UINT64_C(1) << 18) + 1 <= AX_TAIL_MASK >> AX_TAIL_SHIFT,
	   "D1: the tail has room for the nodes of every process a server can have");
	ok((AX_OBSOLETE | AX_LOCKED | AX_WAITERS | AX_CLOSED | AX_TAIL_MASK | AX_VERSION_MASK) == UINT64_MAX &&
	   (AX_TAIL_MASK & AX_VERSION_MASK) == 0, "D1: no bit is lost, none is used twice");
}

/* The word's page is read-only while it is read. */
static void
test_silent(void)
{
#ifndef AX_TSAN					/* its validation is a read-modify-write */
	static const struct
	{
		uint64_t	bits;
		const char *what;
	}			words[] = {{0, "an open word"}, {AX_LOCKED, "a word held by one who does not write yet"},
	{UINT64_C(5) << AX_TAIL_SHIFT, "an open word with a queue"}};

	for (int i = 0; i < 3; i++)
	{
		ax_guard	g;
		bool		good;

		atomic_store(w, AX_WORD_INIT | words[i].bits);
		mprotect((void *) w, AX_PAGE, PROT_READ);
		good = ax_guard_open(&me, &g, w, false) == AX_OK && ax_guard_valid(&g);
		mprotect((void *) w, AX_PAGE, PROT_READ | PROT_WRITE);
		ok(good, "D2: reading %s writes nothing there", words[i].what);
	}
#endif
	fresh();
}

static void
test_fifo(void)
{
	ax_tree_info i0,
				i1;
	bool		good = true;

	fresh();
	i0 = counters();
	hold(false);
	for (int i = 1; i <= 5; i++)
	{
		start(enter(i, FOR_EVER, 0));
		until(passed(&cast[i], i == 1 ? HEAD : LINKED));
	}
	ok(nodes_in_use() == 5 && tail_slot() == 5, "D3: five wait");
	ax_word_unlock(&me, w, true);
	for (int i = 1; i <= 5; i++)
	{
		curtain(&cast[i]);
		good = good && cast[i].r == AX_OK && cast[i].turn == i - 1;
	}
	ok(good, "D3: who waits in the queue gets the latch in the order of coming");
	i1 = counters();
	ok(i1.handovers - i0.handovers == 5, "D3: five handovers are counted");
	ok(i1.abandoned == i0.abandoned, "D3: and no turn given up");
	ok(atomic_load(w) == AX_WORD_INIT + 6 * AX_VERSION_ONE, "D3: six versions on");
	clean("D3");
}

/* The word's page is out of reach while they wait. */
static void
test_local(void)
{
	fresh();
	hold(false);
	start(enter(1, FOR_EVER, HEAD));
	until(at(&cast[1], HEAD));
	for (int i = 2; i <= 3; i++)
	{
		start(enter(i, FOR_EVER, 0));
		until(passed(&cast[i], LINKED));
	}
	mprotect((void *) w, AX_PAGE, PROT_NONE);
	nap(20000);
	mprotect((void *) w, AX_PAGE, PROT_READ | PROT_WRITE);
	ok(node_state(2, 0) == AX_Q_WAITING && node_state(3, 0) == AX_Q_WAITING,
	   "D4: who waits behind the head touches its own node only, never the word");
	ax_word_unlock(&me, w, true);
	ok(!(atomic_load(w) & AX_LOCKED), "D4: a release waits for nobody, not even a head that is stopped");
	go_on(&cast[1], 0);
	for (int i = 1; i <= 3; i++)
		curtain(&cast[i]);
	ok(cast[1].turn == 0 && cast[2].turn == 1 && cast[3].turn == 2, "D4: and all have their turns");
	clean("D4");
}

static void
test_interface(void)
{
	uint64_t	v,
				x;

	fresh();
	v = ax_word_read(w);
	ok(ax_word_trylock(&me, w, v), "D5: a sample is upgraded");
	ok(ax_latches_held(&me) == 1, "D5: and counts as a latch held");
	ax_word_unlock(&me, w, true);
	ok(!ax_word_trylock(&me, w, v), "D5: not when something changed since");
	ok(ax_word_lock(&me, w, &x) == AX_OK && x == v + AX_VERSION_ONE, "D5: the same word is locked outright");
	ax_word_unlock(&me, w, false);
	ok(ax_word_acquire(&me, w, false, &x) == AX_OK && x == v + AX_VERSION_ONE &&
	   (atomic_load(w) & (AX_LOCKED | AX_CLOSED)) == (AX_LOCKED | AX_CLOSED), "D5: or through its queue");
	ax_word_unlock(&me, w, false);
	ok(ax_word_acquire(&me, w, true, &x) == AX_OK &&
	   (atomic_load(w) & (AX_LOCKED | AX_CLOSED)) == AX_LOCKED, "D5: or with readers let in");
	ax_word_release(&me, w);
	ok(ax_latches_held(&me) == 0, "D5: all given back");
	clean("D5");
}

/* Released, a queue, and its head does not run: readers and upgrades go on. */
static void
test_opportunistic(void)
{
	ax_tree_info i0,
				i1;
	ax_guard	g,
				g2;
	uint64_t	v;

	fresh();
	i0 = counters();
	hold(false);
	start(enter(1, FOR_EVER, HEAD));
	until(at(&cast[1], HEAD));
	ax_word_unlock(&me, w, true);
	v = ax_word_read(w);
	ok(!(v & AX_LOCKED) && (v & AX_TAIL_MASK), "D5: released, the next one has not entered yet");
	ok(ax_guard_open(&me, &g, w, false) == AX_OK, "D5: a reader is let in");
	ok(ax_guard_valid(&g), "D5: what it read is valid");
	ok(ax_guard_open(&me, &g2, w, false) == AX_OK && ax_guard_lock(&me, &g2),
	   "D5: and may be the ground of an upgrade, past the queue");
	ax_guard_close(&me, &g2, false);
	ok(ax_guard_valid(&g), "D5: which changes nothing, so the reader is none the wiser");
	go_on(&cast[1], 0);
	curtain(&cast[1]);
	ok(!ax_guard_valid(&g), "D5: the next one changes something: no longer valid");
	ax_restarted(&me, store, 1);
	i1 = counters();
	ok(i1.opportunistic_reads - i0.opportunistic_reads == 2, "D5: two opportunistic reads are counted");
	ok(i1.opportunistic_failed - i0.opportunistic_failed == 1, "D5: one of them failed");
	clean("D5");

	/* an opportunistic read that was right, and a start over for something else */
	i0 = counters();
	hold(true);
	ok(ax_guard_open(&me, &g, w, false) == AX_OK && ax_guard_valid(&g), "D5: read beside a writer");
	ax_restarted(&me, store, 1);
	ax_word_release(&me, w);
	i1 = counters();
	ok(i1.opportunistic_reads - i0.opportunistic_reads == 1 &&
	   i1.opportunistic_failed == i0.opportunistic_failed, "D5: no failure of the read");
}

/* ---- upgrades ---- */

static void
test_upgrade(void)
{
	uint64_t	before,
				beside;

	fresh();
	before = ax_word_read(w);
	enter(1, FOR_EVER, 0)->shared = true;
	cast[1].keep = true;
	start(&cast[1]);
	until(atomic_load(&cast[1].has_it));
	beside = ax_word_read(w);
	ok((beside & AX_LOCKED) && ax_word_valid(w, beside), "upgrade: a sample beside a holder who does not write");
	ok(!ax_word_trylock(&me, w, beside), "upgrade: is no ground for an upgrade: he holds the latch");
	ok(!ax_word_trylock(&me, w, before), "upgrade: nor is an older one, while he does");
	ok(ax_latches_held(&me) == 0, "upgrade: nothing was taken from him");
	atomic_store(&cast[1].let_go, true);
	curtain(&cast[1]);
	ok(!ax_word_trylock(&me, w, beside) && !ax_word_trylock(&me, w, before),
	   "upgrade: and afterwards something has changed");

	/* held and given back unchanged: the older sample is good, his is refused */
	fresh();
	hold(true);
	beside = ax_word_read(w);
	ax_word_release(&me, w);
	ok(!ax_word_trylock(&me, w, beside), "upgrade: a sample taken beside a holder stays no ground for one");
	ok(ax_word_trylock(&me, w, before), "upgrade: one from before is, as nothing changed");
	ax_word_unlock(&me, w, false);

	/* a queue that came meanwhile holds nothing */
	hold(true);
	start(enter(1, FOR_EVER, HEAD));
	until(at(&cast[1], HEAD));
	ax_word_release(&me, w);
	ok(ax_word_trylock(&me, w, before), "upgrade: those who joined the queue since do not matter");
	ok(atomic_load(w) & AX_TAIL_MASK, "upgrade: and are still there");
	ax_word_unlock(&me, w, true);
	go_on(&cast[1], 0);
	curtain(&cast[1]);
	clean("upgrade");
}

/* ---- the windows ---- */

/* Swapped in as tail, not linked: nobody waits for that. */
static void
test_unlinked(void)
{
	ax_tree_info i0,
				i1;
	uint64_t	v;

	fresh();
	i0 = counters();
	hold(false);
	start(enter(1, FOR_EVER, HEAD));
	until(at(&cast[1], HEAD));
	start(enter(2, FOR_EVER, SWAPPED));
	until(at(&cast[2], SWAPPED));
	ok(tail_slot() == 2, "late link: the second has swapped itself in and not linked itself");
	ax_word_unlock(&me, w, true);
	go_on(&cast[1], 0);
	curtain(&cast[1]);
	ok(cast[1].r == AX_OK, "late link: the head takes the latch, passes on, lets go: it waits for nobody");
	ok(node_state(1, 0) != AX_Q_FREE, "late link: its node is left to the one who has yet to link");
	ok(ax_word_acquire(&me, w, false, &v) == AX_OK, "late link: others go ahead");
	ax_word_unlock(&me, w, true);
	go_on(&cast[2], 0);
	curtain(&cast[2]);
	ok(cast[2].r == AX_OK && passed(&cast[2], HEAD) && !passed(&cast[2], LINKED),
	   "late link: when it links it finds that it is the head");
	i1 = counters();
	ok(i1.handovers - i0.handovers == 2 && i1.abandoned == i0.abandoned,
	   "late link: both had the latch as heads");
	clean("late link");
}

/* The same, with a third behind, and the slot of the first used by another. */
static void
test_unlinked_reuse(void)
{
	uint64_t	v;

	fresh();
	hold(false);
	start(enter(1, FOR_EVER, HEAD));
	until(at(&cast[1], HEAD));
	start(enter(2, FOR_EVER, SWAPPED));
	until(at(&cast[2], SWAPPED));
	start(enter(3, FOR_EVER, 0));
	until(passed(&cast[3], LINKED));
	ax_word_unlock(&me, w, true);
	go_on(&cast[1], 0);
	curtain(&cast[1]);
	/* the first one's process comes back at once, and queues again */
	ok(ax_word_acquire(&me, w, false, &v) == AX_OK, "late link, reuse: taken past the queue");
	start(enter(1, FOR_EVER, 0));
	until(passed(&cast[1], LINKED));
	ok(node_state(1, 0) != AX_Q_FREE && node_state(1, 1) == AX_Q_WAITING,
	   "late link, reuse: it waits with another node");
	ax_word_unlock(&me, w, true);
	go_on(&cast[2], 0);
	for (int i = 1; i <= 3; i++)
		curtain(&cast[i]);
	ok(cast[2].turn < cast[3].turn && cast[3].turn < cast[1].turn && cast[1].r == AX_OK,
	   "late link, reuse: all get it, in the order of coming");
	clean("late link, reuse");
}

/* Headship passes to one who is about to leave, in both orders. */
static void
test_leave(bool pass_first)
{
	const char *what = pass_first ? "headship, then leaving" : "leaving, then headship";
	ax_tree_info i0,
				i1;

	fresh();
	i0 = counters();
	hold(false);
	start(enter(1, FOR_EVER, BEFORE_PASS));
	until(passed(&cast[1], HEAD));
	enter(2, 0, LINKED)->stubborn = true;
	start(&cast[2]);
	until(at(&cast[2], LINKED));
	ax_word_unlock(&me, w, true);
	until(at(&cast[1], BEFORE_PASS));
	ok(atomic_load(w) & AX_LOCKED, "%s: the head has the latch and is about to pass on", what);
	if (pass_first)
	{
		go_on(&cast[1], 0);
		curtain(&cast[1]);
		ok(node_state(2, 0) == AX_Q_HEAD, "%s: the next is the head", what);
		go_on(&cast[2], 0);
		curtain(&cast[2]);
		i1 = counters();
		ok(passed(&cast[2], HEAD) && i1.abandoned == i0.abandoned,
		   "%s: its leaving comes too late, it has to act as head", what);
		ok(i1.handovers - i0.handovers == 2, "%s: and gets the latch", what);
	}
	else
	{
		go_on(&cast[2], PARKED);
		until(at(&cast[2], PARKED));
		ok(node_state(2, 0) == AX_Q_LEFT, "%s: it left its node behind", what);
		go_on(&cast[1], 0);
		curtain(&cast[1]);
		ok(cast[1].r == AX_OK, "%s: the head passes over it", what);
		ok(nodes_in_use() == 0, "%s: and gives the node back", what);
		ok((atomic_load(w) & AX_FLAGS) == 0, "%s: it was the tail: the queue is gone", what);
		go_on(&cast[2], 0);
		curtain(&cast[2]);
		i1 = counters();
		ok(i1.abandoned - i0.abandoned == 1, "%s: one turn given up is counted", what);
	}
	ok(cast[2].r == AX_OK, "%s: it gets the latch in the end", what);
	clean(what);
}

/* One in the middle went to sleep: the one behind it is next. */
static void
test_skip(void)
{
	fresh();
	hold(false);
	start(enter(1, FOR_EVER, HEAD));
	until(at(&cast[1], HEAD));
	start(enter(2, 0, PARKED));
	until(at(&cast[2], PARKED));
	start(enter(3, FOR_EVER, 0));
	until(passed(&cast[3], LINKED));
	ok(node_state(2, 0) == AX_Q_LEFT && node_state(3, 0) == AX_Q_WAITING, "skip: the one in the middle sleeps");
	ax_word_unlock(&me, w, true);
	go_on(&cast[1], 0);
	curtain(&cast[1]);
	curtain(&cast[3]);
	ok(cast[1].turn == 0 && cast[3].turn == 1 && cast[3].r == AX_OK && passed(&cast[3], HEAD),
	   "skip: the one behind it gets the latch as head");
	ok(!atomic_load(&cast[2].done), "skip: while it sleeps on");
	go_on(&cast[2], 0);
	curtain(&cast[2]);
	ok(cast[2].r == AX_OK, "skip: it gets the latch when it wakes");
	clean("skip");
}

/* A head that gives up while the latch stays held passes headship on. */
static void
test_head_leaves(void)
{
	fresh();
	hold(false);
	start(enter(1, 0, HEAD));
	until(at(&cast[1], HEAD));
	start(enter(2, FOR_EVER, 0));
	until(passed(&cast[2], LINKED));
	go_on(&cast[1], PARKED);
	until(at(&cast[1], PARKED));
	until(passed(&cast[2], HEAD));
	ok(node_state(1, 0) == AX_Q_FREE, "a head gives up: its node is free");
	ax_word_unlock(&me, w, true);
	curtain(&cast[2]);
	ok(cast[2].r == AX_OK && cast[2].turn == 0, "a head gives up: the next gets the latch");
	go_on(&cast[1], 0);
	curtain(&cast[1]);
	ok(cast[1].r == AX_OK, "a head gives up: and so does it, later");
	clean("a head gives up");
}

/* The head is off its processor, the word open: the others do not wait. */
static void
test_barge(void)
{
	uint64_t	best = UINT64_MAX,
				v;
	bool		good = true;

	fresh();
	hold(false);
	start(enter(1, FOR_EVER, HEAD));
	until(at(&cast[1], HEAD));
	ax_word_unlock(&me, w, true);
	for (int i = 0; i < 200; i++)
	{
		uint64_t	t = now_ns();

		good = good && ax_word_acquire(&me, w, false, &v) == AX_OK;
		t = now_ns() - t;
		best = t < best ? t : best;
		if (good)
			ax_word_unlock(&me, w, true);
	}
	ok(good, "stopped head: 200 times others go ahead");
	ok(best < 50000, "stopped head: after %.1f us", (double) best / 1e3);
	ok(node_state(1, 0) != AX_Q_FREE && tail_slot() == 1, "stopped head: it is still the head");
	go_on(&cast[1], 0);
	curtain(&cast[1]);
	ok(cast[1].r == AX_OK, "stopped head: and has its turn when it runs");
	clean("stopped head");
}

/* Headship falls to one who is off its processor and could not leave. */
static void
test_barge_waiting(void)
{
	uint64_t	v;
	bool		good = true;

	fresh();
	hold(false);
	start(enter(1, FOR_EVER, 0));
	until(passed(&cast[1], HEAD));
	start(enter(2, FOR_EVER, LINKED));
	until(at(&cast[2], LINKED));
	ax_word_unlock(&me, w, true);
	curtain(&cast[1]);
	ok(node_state(2, 0) == AX_Q_HEAD, "stopped waiter: headship fell to it");
	for (int i = 0; i < 20; i++)
	{
		good = good && ax_word_acquire(&me, w, false, &v) == AX_OK;
		if (good)
			ax_word_unlock(&me, w, true);
	}
	ok(good, "stopped waiter: others go ahead");
	go_on(&cast[2], 0);
	curtain(&cast[2]);
	ok(cast[2].r == AX_OK, "stopped waiter: it takes its turn when it runs");
	clean("stopped waiter");
}

/* The node dies under its queue. */
static void
test_obsolete(void)
{
	uint64_t	v;
	bool		stale = true;

	fresh();
	hold(false);
	start(enter(1, FOR_EVER, 0));
	until(passed(&cast[1], HEAD));
	start(enter(2, FOR_EVER, 0));
	until(passed(&cast[2], LINKED));
	start(enter(3, 0, PARKED));
	until(at(&cast[3], PARKED));
	start(enter(4, FOR_EVER, 0));
	until(passed(&cast[4], LINKED));
	start(enter(5, FOR_EVER, SWAPPED));
	until(at(&cast[5], SWAPPED));
	start(enter(6, FOR_EVER, 0));
	until(passed(&cast[6], LINKED));
	ax_word_unlock_obsolete(&me, w);
	for (int i = 1; i <= 4; i++)
		if (i != 3)
			curtain(&cast[i]);
	ok(cast[1].r == AX_STALE && cast[2].r == AX_STALE && cast[4].r == AX_STALE,
	   "obsolete: everybody in the queue learns it");
	ok(ax_word_acquire(&me, w, false, &v) == AX_STALE, "obsolete: and who comes later");
	go_on(&cast[3], 0);
	go_on(&cast[5], 0);
	curtain(&cast[3]);
	curtain(&cast[5]);
	curtain(&cast[6]);
	for (int i = 1; i <= 6; i++)
		stale = stale && cast[i].r == AX_STALE;
	ok(stale, "obsolete: the one who slept, the one who linked late, the one behind it");
	clean("obsolete");
}

/* All of a process's nodes are left behind in one queue. */
static void
test_exhausted(void)
{
	ax_tree_info i0,
				i1;
	actor	   *a;
	int			calls = 0;

	fresh();
	i0 = counters();
	hold(false);
	start(enter(1, FOR_EVER, HEAD));
	until(at(&cast[1], HEAD));
	/* a call that was off its processor meanwhile may end before it used all of them */
	do
	{
		a = start(enter(2, 0, 0));
		curtain(a);
	} while (a->r == AX_BUSY && node_state(2, AX_QNODES - 1) != AX_Q_LEFT && ++calls < 1000);
	ok(a->r == AX_BUSY, "no node left: busy after a while, no worse");
	for (int k = 0; k < AX_QNODES; k++)
		ok(node_state(2, k) == AX_Q_LEFT, "no node left: number %d is behind in the queue", k);
	a = start(enter(2, 0, 0));
	curtain(a);
	ok(a->r == AX_BUSY && !passed(a, SWAPPED), "no node left: it waits without one");
	ax_word_unlock(&me, w, true);
	a = start(enter(2, 0, 0));
	curtain(a);
	ok(a->r == AX_OK, "no node left: and gets the latch when it is open");
	go_on(&cast[1], 0);
	curtain(&cast[1]);
	ok(cast[1].r == AX_OK, "no node left: the head has its turn and passes over all of them");
	i1 = counters();
	ok(i1.abandoned - i0.abandoned == AX_QNODES, "no node left: so many turns were given up");
	clean("no node left");
	a = start(enter(2, FOR_EVER, 0));
	curtain(a);
	ok(a->r == AX_OK, "no node left: all is as before");
}

/* A process goes away with nodes left behind; its slot has a new owner. */
static void
test_slot_reuse(void)
{
	actor	   *a;

	fresh();
	hold(false);
	start(enter(1, FOR_EVER, HEAD));
	until(at(&cast[1], HEAD));
	a = start(enter(2, 0, 0));
	curtain(a);
	ok(a->r == AX_BUSY && node_state(2, 0) == AX_Q_LEFT, "slot reuse: gone, its nodes still in the queue");
	a = start(enter(2, 0, 0));
	curtain(a);
	ok(a->r == AX_BUSY && node_state(2, 0) == AX_Q_LEFT, "slot reuse: the slot's next owner leaves them alone");
	ax_word_unlock(&me, w, true);
	go_on(&cast[1], 0);
	curtain(&cast[1]);
	clean("slot reuse");
}

/* ---- readers beside a holder ---- */

static void
test_adjustable(void)
{
	ax_guard	early,
				late;
	uint64_t	v;

	fresh();
	enter(1, FOR_EVER, 0)->shared = true;
	cast[1].keep = true;
	start(&cast[1]);
	until(atomic_load(&cast[1].has_it));
	ok(ax_guard_open(&me, &early, w, false) == AX_OK && ax_guard_valid(&early),
	   "adjustable: before the first store readers are let in, and valid");
	ax_word_close(w);			/* in its name */
	ok(!ax_guard_valid(&early), "adjustable: from then on what they read is not");
	ok(ax_guard_open(&me, &late, w, false) == AX_BUSY, "adjustable: and nobody is let in");
	ok(ax_word_wait(&me, w, &v) == AX_BUSY, "adjustable: he waits and gives up");
	atomic_store(&cast[1].let_go, true);
	curtain(&cast[1]);
	ok(ax_guard_open(&me, &late, w, false) == AX_OK && ax_guard_valid(&late), "adjustable: until it is over");
	ok(!ax_guard_valid(&early), "adjustable: the early reader has to start over");

	/* changes nothing: restarts nobody */
	ok(ax_guard_open(&me, &early, w, false) == AX_OK, "unchanged: a reader");
	hold(true);
	ok(ax_guard_valid(&early), "unchanged: somebody holds the latch, readers go on");
	ax_word_release(&me, w);
	ok(ax_guard_valid(&early), "unchanged: he gives it back as it was");
	hold(true);
	ax_word_close(w);
	ok(!ax_guard_valid(&early), "unchanged: somebody is about to write");
	ax_word_unlock(&me, w, false);
	ok(ax_guard_valid(&early), "unchanged: and thinks better of it");
	ok(ax_word_trylock(&me, w, early.v), "unchanged: a sample from before is upgraded");
	ax_word_unlock(&me, w, true);
	ok(!ax_guard_valid(&early), "unchanged: this time it did change");
	clean("unchanged");
}

static void
test_wrap(void)
{
	uint64_t	v;

	fresh();
	atomic_store(w, AX_VERSION_MASK);
	hold(false);
	start(enter(1, FOR_EVER, 0));
	until(passed(&cast[1], HEAD));
	start(enter(2, FOR_EVER, 0));
	until(passed(&cast[2], LINKED));
	v = AX_VERSION_MASK;
	ax_word_unlock(&me, w, true);
	curtain(&cast[1]);
	curtain(&cast[2]);
	ok(cast[1].r == AX_OK && cast[2].r == AX_OK && cast[1].turn == 0, "wrap: the queue is none the worse");
	ok(atomic_load(w) == 2 * AX_VERSION_ONE, "wrap: after the last version comes 0, and then 1, 2");
	ok(!ax_word_valid(w, v), "wrap: which is another one");
	clean("wrap");
}

/* ---- stress ---- */

#define CROWD 16

typedef struct crowd
{
	_Alignas(64) uint64_t x,	/* plain, guarded by the latch */
				y;
	_Alignas(64) _Atomic uint64_t a,
				b;				/* what readers look at */
	_Atomic bool stop;
	_Atomic uint64_t unequal;
	_Atomic uint64_t torn;
	_Atomic uint64_t busy;
	_Atomic uint64_t read;
	struct
	{
		_Alignas(64) _Atomic uint64_t n;
	}			did[CROWD];
} crowd;

static crowd *cr;

static void
crowd_member(void *arg, int i)
{
	ax_ctx		cx;
	ax_store   *st;
	uint64_t	rng = (uint64_t) i + 1;
	uint64_t	mine = 0;

	attach(&cx, 10 + i, &st);
	while (!atomic_load_explicit(&cr->stop, memory_order_relaxed))
	{
		uint64_t	r = tap_rand(&rng);
		uint64_t	v;

		if (r % 4 == 0)
		{
			uint64_t	a,
						b;
			ax_guard	g;

			if (ax_guard_open(&cx, &g, w, false) != AX_OK)
				continue;
			a = atomic_load_explicit(&cr->a, memory_order_relaxed);
			b = atomic_load_explicit(&cr->b, memory_order_relaxed);
			if (ax_guard_valid(&g))
			{
				atomic_fetch_add_explicit(&cr->read, 1, memory_order_relaxed);
				if (a != b)
					atomic_fetch_add(&cr->torn, 1);
			}
			continue;
		}
		if (r % 4 == 1)
		{
			v = ax_word_read(w);
			if (!ax_word_trylock(&cx, w, v))
				continue;
		}
		else
		{
			bool		shared = r % 4 == 2;

			if (ax_word_acquire(&cx, w, shared, &v) != AX_OK)
			{
				atomic_fetch_add_explicit(&cr->busy, 1, memory_order_relaxed);
				/* as every call does that is told so */
				ax_leave(&cx);
				if (ax_enter(&cx, tree, gen, &st) != AX_OK)
					return;
				continue;
			}
			if (shared)
			{
				if (r >> 8 & 1)
				{
					ax_word_release(&cx, w);
					continue;
				}
				ax_word_close(w);
			}
		}
		if (cr->x != cr->y)
			atomic_fetch_add(&cr->unequal, 1);
		cr->x++;
		if ((r >> 20) % 1024 == 0)
			sched_yield();		/* be descheduled with the latch held */
		cr->y++;
		atomic_store_explicit(&cr->a, cr->x, memory_order_relaxed);
		atomic_store_explicit(&cr->b, cr->x, memory_order_relaxed);
		ax_word_unlock(&cx, w, true);
		mine++;
		atomic_store_explicit(&cr->did[i].n, mine, memory_order_relaxed);
	}
	leave(&cx);
}

static uint64_t
crowd_total(uint64_t *least)
{
	uint64_t	sum = 0;

	*least = UINT64_MAX;
	for (int i = 0; i < CROWD; i++)
	{
		uint64_t	n = atomic_load(&cr->did[i].n);

		sum += n;
		*least = n < *least ? n : *least;
	}
	return sum;
}

static void
crowd_verdict(const char *what)
{
	uint64_t	least,
				sum = crowd_total(&least);

	ok(cr->x == sum && cr->y == sum, "%s: no update lost of %llu", what, (unsigned long long) sum);
	ok(atomic_load(&cr->unequal) == 0, "%s: never two in the section", what);
	ok(atomic_load(&cr->torn) == 0 && atomic_load(&cr->read) > 0, "%s: %llu reads were valid, none torn", what,
	   (unsigned long long) atomic_load(&cr->read));
	ok(least > 0, "%s: everybody got on (the slowest %llu times, %llu times busy)", what,
	   (unsigned long long) least, (unsigned long long) atomic_load(&cr->busy));
	clean(what);
}

/* A second, and as long as somebody has had no turn: on a busy machine he may not have run. */
static void *
end_crowd(void *arg)
{
	uint64_t	t0 = now_ns();
	uint64_t	least;

	do
		nap(1000000);
	while (crowd_total(&least) > 0 && least == 0 && now_ns() - t0 < UINT64_C(60000000000));
	atomic_store(&cr->stop, true);
	return NULL;
}

static void
test_crowd_threads(void)
{
	pthread_t	t;

	fresh();
	memset((void *) cr, 0, sizeof(*cr));
	pthread_create(&t, NULL, end_crowd, NULL);
	tap_threads(CROWD, crowd_member, NULL);
	pthread_join(t, NULL);
	crowd_verdict("16 threads");
}

/* Processes, one of them stopped at any moment, perhaps with the latch. */
static void
test_crowd_processes(void)
{
	pid_t		pid[CROWD];
	uint64_t	rng = 99,
				last = 0,
				least,
				stops = 0,
				stuck = 0,
				t0;
	bool		good = true;

	fresh();
	memset((void *) cr, 0, sizeof(*cr));
	fflush(stdout);
	for (int i = 0; i < CROWD; i++)
	{
		pid[i] = fork();
		if (pid[i] == 0)
		{
			crowd_member(NULL, i);
			_exit(0);
		}
		if (pid[i] < 0)
		{
			perror("fork");
			exit(2);
		}
	}
	for (int i = 0; i < CROWD; i++)
		until(atomic_load(&cr->did[i].n) > 0);
	t0 = now_ns();
	/* for 2.5 seconds, and on a busy machine longer */
	while (now_ns() - t0 < UINT64_C(2500000000) ||
		   (stops <= 50 && now_ns() - t0 < UINT64_C(60000000000)))
	{
		int			k = (int) (tap_rand(&rng) % CROWD);
		int			status;

		kill(pid[k], SIGSTOP);
		if (waitpid(pid[k], &status, WUNTRACED) != pid[k] || !WIFSTOPPED(status))
		{
			good = false;
			break;
		}
		stops++;
		/* it may have the latch itself, then it must run; if not, the others get on */
		for (int j = 0; j < 3; j++)
		{
			uint64_t	now;

			nap(1000 + (long) (tap_rand(&rng) % 2000));
			now = crowd_total(&least);
			if (now == last && !(atomic_load(w) & AX_LOCKED))
				stuck++;
			last = now;
		}
		kill(pid[k], SIGCONT);
	}
	atomic_store(&cr->stop, true);
	for (int i = 0; i < CROWD; i++)
	{
		int			status;

		kill(pid[i], SIGCONT);
		if (waitpid(pid[i], &status, 0) != pid[i] || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
			good = false;
	}
	ok(good, "16 processes: all ended well");
	ok(stops > 50, "16 processes: %llu times one was stopped", (unsigned long long) stops);
	ok(stuck <= stops / 20, "16 processes: the open latch was taken meanwhile (%llu times not within 3 ms)",
	   (unsigned long long) stuck);
	crowd_verdict("16 processes");
}

/* The head of the queue is a process that stops itself there. */
static void
stop_hook(const char *name)
{
	if (strcmp(name, "queue.head") == 0)
		raise(SIGSTOP);
}

static void
test_stopped_process(void)
{
	pid_t		pid;
	int			status;
	uint64_t	v;
	bool		good = true;

	fresh();
	hold(false);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
	{
		ax_ctx		cx;
		ax_store   *st;

		attach(&cx, 9, &st);
		tap_point_hook = stop_hook;
		if (ax_word_acquire(&cx, w, false, &v) != AX_OK)
			_exit(1);
		ax_word_unlock(&cx, w, true);
		leave(&cx);
		_exit(0);
	}
	ok(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status),
	   "SIGSTOP: the head of the queue is stopped");
	ok(tail_slot() == 9, "SIGSTOP: it is in the queue");
	ax_word_unlock(&me, w, true);
	for (int i = 0; i < 100; i++)
	{
		good = good && ax_word_acquire(&me, w, false, &v) == AX_OK;
		if (good)
			ax_word_unlock(&me, w, true);
	}
	ok(good, "SIGSTOP: others have the latch 100 times");
	kill(pid, SIGCONT);
	ok(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
	   "SIGSTOP: it goes on and has it, too");
	clean("SIGSTOP");
}

/* Who holds a latch does not nap for others' sake. */
static void
test_nap(void)
{
	uint64_t	t0;
	int			before = parks;

	fresh();
	hold(false);
	for (t0 = now_ns(); now_ns() - t0 < 2000000;)
		ax_contended(&me);
	ok(parks == before, "contention met with a latch held: no nap");
	ax_word_unlock(&me, w, true);
	for (t0 = now_ns(); now_ns() - t0 < 2000000;)
		ax_contended(&me);
	ok(parks > before, "and with none: naps");
	clean("nap");
}

/* ---- the pessimistic way ---- */

static ax_ctx rival;
static int	meetings;
static bool too_late,
			too_early;

/* The leaf is about to be replaced: somebody else goes for its latch. */
static void
rival_hook(const char *name)
{
	ax_word    *leaf;
	bool		got;

	if (strcmp(name, "art.publish.before_lock") != 0 || meetings > AX_MAX_RESTARTS)
		return;
	leaf = &((rt_leaf *) RT_PTR(atomic_load(&store->root)))->word;
	got = ax_word_trylock(&rival, leaf, ax_word_read(leaf));
	if (got)
		ax_word_unlock(&rival, leaf, true);
	if (++meetings > AX_MAX_RESTARTS)
		too_late = too_late || got;
	else
		too_early = too_early || !got;
}

/* After enough restarts a writer keeps the leaf, and cannot be made to start over. */
static void
test_pessimistic(void)
{
	ax_store   *st;
	bool		good = true;

	ax_leave(&me);
	attach(&rival, 1, &st);
	tap_point_hook = rival_hook;
	for (uint8_t i = 0; i < 33 && meetings == 0; i++)
	{
		uint8_t		key[14] = {0, i, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1};

		good = good && ax_insert(&me, tree, gen, key, 14) == AX_OK;
	}
	tap_point_hook = hook;
	leave(&rival);
	ok(good, "pessimistic: all inserted");
	ok(!too_early && meetings == AX_MAX_RESTARTS + 1, "pessimistic: after %d restarts (%d)",
	   AX_MAX_RESTARTS, meetings - 1);
	ok(!too_late, "pessimistic: the leaf's latch is kept while memory is taken");
	if (ax_enter(&me, tree, gen, &store) != AX_OK)
		exit(2);
}

int
main(void)
{
#ifdef AX_ASAN
	ax_poisoning = false;		/* part of this forks: see test_epoch.c */
#endif
	tap_deadline(300);			/* a latch that is never got is a failure, too */
	port = ax_port_default;
	port.park = park;
	area = tap_area(AREA, SLOTS, 0);
	w = tap_shared(AX_PAGE);
	cr = tap_shared(sizeof(*cr));
	ax_attach(&me, area, 0, 1, &port);
	tree = ax_tree_alloc(&me);
	if (!tree || ax_tree_open(&me, tree, AX_ART_OPTIQL, 0, 0, &gen) != AX_OK)
	{
		fprintf(stderr, "no tree\n");
		return 2;
	}
	if (ax_enter(&me, tree, gen, &store) != AX_OK)
		return 2;
	tap_point_hook = hook;

	test_compact();
	test_silent();
	test_fifo();
	test_local();
	test_interface();
	test_opportunistic();
	test_upgrade();
	test_unlinked();
	test_unlinked_reuse();
	test_leave(true);
	test_leave(false);
	test_skip();
	test_head_leaves();
	test_barge();
	test_barge_waiting();
	test_obsolete();
	test_exhausted();
	test_slot_reuse();
	test_adjustable();
	test_wrap();
	test_nap();
	test_pessimistic();
	tap_point_hook = NULL;
	test_crowd_threads();
	test_stopped_process();
	test_crowd_processes();

	ax_leave(&me);
	ax_tree_close(&me, tree);
	ok(tap_quiesce(&me), "quiescent");
	ax_detach(&me);
	return tap_done();
}
