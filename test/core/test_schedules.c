/*
 * test_schedules.c
 *	  Small programs of two to four threads on a few keys, each under a schedule that is
 *	  drawn at random, and every answer explained (schedule.h, history.h).
 *
 * A seed is a scene: which keys there are, who does what, who stops where, and when another
 * thread goes on.  It always gives the same history.  After the threads the tree is
 * checked, compared with the history, and closed: all memory must come back.
 *
 * Environment:
 *	SEED=n		this one alone; VERBOSE=1: with every change of threads
 *	FROM=n		the first seed (of the clock); the next ones are those behind it
 *	SECONDS=n	how long (2); COUNT=n: so many schedules instead
 *	SCENE=name	this kind of scenes alone
 *	AX_STRUCTURE=name	the engine
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ax_elide_test.h"
#include "cmpkit.h"
#include "core/base/ax_area.h"
#include "history.h"
#include "schedule.h"
#include "schedule_map.h"
#include "tap.h"

#define SLOTS_USED	(SCHED_THREADS + 2)
#define MAIN_SLOT	SCHED_THREADS
#define RESERVE		((size_t) 64 << 10)
#define KEY_BYTES	700
#define OPS			8			/* of a thread, at most */
#define TWICE		100			/* seeds that are run a second time */
#define WATCH		120			/* seconds: an endless loop without a step is ended */

typedef enum scene_kind
{
	PAIRS,						/* one changes a node that is full or poor, one looks there */
	POINTS,						/* single keys, side by side */
	SCANS,						/* and scans of them, both ways */
	SPLITS,						/* many keys: nodes come and go */
	MEMORY,						/* what goes is given back, by whom ever */
	TAIL,						/* rising keys, a tail buffer */
	ELIDED,						/* sections undone in the middle */
	CLOSED,						/* the tree is closed, and another is opened */
	SCENES
} scene_kind;

static const char *const scene_name[SCENES] =
{"pairs", "points", "scans", "splits", "memory", "tail", "elided", "closed"};

typedef enum op_kind
{
	INSERT, REMOVE, CONTAINS, LOOKUP, MANY, SCAN, SORTED, SEVERAL, CLEAR, APPEND,
	POLL, GIVE, GIVE_IDLE, LEAVE, COMPACT, SETTLE, CATCH_UP, TAIL_FLUSH, TAIL_CLOSE, CHECK, CLOSE,
	OP_KINDS
} op_kind;

/* Of a hundred operations of a scene so many are of each kind, in the order above. */
static const uint8_t weight[SCENES][OP_KINDS] = {
	[PAIRS] = {15, 15, 20, 15, 10, 25},
	[POINTS] = {32, 32, 20, 10, 6},
	[SCANS] = {28, 26, 2, 6, 3, 35},
	[SPLITS] = {17, 13, 7, 5, 3, 15, 17, 5, 13, 0, 0, 0, 0, 0, 3, 1, 1},
	[MEMORY] = {16, 18, 10, 6, 2, 6, 2, 0, 5, 0, 16, 3, 6, 3, 6, 1, 1},
	[TAIL] = {8, 15, 8, 8, 3, 13, 0, 2, 2, 24, 2, 0, 0, 0, 0, 0, 0, 10, 4, 1},
	[ELIDED] = {28, 28, 8, 6, 3, 12, 6, 0, 8, 0, 1},
	[CLOSED] = {24, 22, 6, 4, 2, 12, 5, 2, 6, 0, 10, 2, 2, 0, 3}
};

typedef struct op
{
	op_kind		kind;
	int			key;
	int			n;
	uint32_t	draw;			/* for what else is to be chosen */
} op;

typedef struct scene
{
	uint64_t	seed;
	scene_kind	kind;
	int			keys;
	uint32_t	len;			/* of a key */
	bool		crash;			/* all die between two calls, and others go on */
	int			nops[SCHED_THREADS];
	op			ops[SCHED_THREADS][OPS];
	sched_plan	plan;
} scene;

static scene s;
static ax_structure structure;
static bool compared,
			hydra,
			moments;
static ax_area *area;
static ax_tree *tree;
static uint64_t gen;
static worker thread[SLOTS_USED];
static bool attached[SLOTS_USED];
static uint8_t key[H_KEYS][KEY_BYTES];
static uint64_t rng;
static int	only_scene = -1;
static bool dead;				/* the crash has come */
static bool whole;				/* nobody stopped inside a call */

/* of all schedules */
static uint64_t schedules[SCENES],
			schedule_steps,
			stops,
			crashes,
			calls,
			busy;

static uint64_t
draw(uint64_t n)
{
	return tap_rand(&rng) % n;
}

static uint64_t
now_ns(void)
{
	return ax_port_default.now_ns();
}

/* ---- failures ---- */

static int	failed_key = -1;

static void
say(void)
{
	printf("# %s-%s, scene %s, %d keys of %u bytes, %d threads, kind %d, %d changes, every %u steps%s%s\n",
		   ax_structure_name(structure), ax_structure_sync(structure), scene_name[s.kind], s.keys,
		   s.len, s.plan.threads, (int) s.plan.kind, s.plan.changes, s.plan.mean,
		   s.plan.stop_at ? ", one stops" : "", s.crash ? ", all die" : "");
	printf("# again: AX_STRUCTURE=%s-%s SEED=%llu%s%s test/core/build/sched/test_schedules\n",
		   ax_structure_name(structure), ax_structure_sync(structure), (unsigned long long) s.seed,
		   only_scene >= 0 ? " SCENE=" : "", only_scene >= 0 ? scene_name[only_scene] : "");
	printf("# calls%s, from..to in the order of events:\n", failed_key >= 0 ? " about this key" : "");
	h_print(failed_key);
}

#define bad(...) sched_fail(0, UINT64_MAX, __VA_ARGS__)

static void
on_signal(int sig)
{
	bad("signal %d", sig);
}

static void
catch_signals(void)
{
	static char stack[64 << 10];
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER};

	sigaltstack(&(stack_t) {.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
	sigaction(SIGSEGV, &a, NULL);
	sigaction(SIGBUS, &a, NULL);
	sigaction(SIGABRT, &a, NULL);
	sigaction(SIGILL, &a, NULL);
	sigaction(SIGFPE, &a, NULL);
	sigaction(SIGALRM, &a, NULL);
}

/* ---- the keys: their order is that of their numbers ---- */

/* Bits of i, each a byte. */
static void
bits(uint8_t *k, int n, int i)
{
	for (int j = 0; j < n; j++)
		k[j] = (uint8_t) (i >> (n - 1 - j) & 1);
}

static void
make_keys(void)
{
	int			shape = (int) draw(7);
	uint32_t	plen = 4;

	for (int i = 0; i < s.keys; i++)
	{
		uint8_t    *k = key[i];

		memset(k, 0, KEY_BYTES);
		switch (shape)
		{
			case 0:				/* dense, across a byte's end */
				k[2] = (uint8_t) ((i + 200) >> 8);
				k[3] = (uint8_t) (i + 200);
				break;
			case 1:				/* all children of one node */
				k[0] = (uint8_t) (i * 256 / s.keys);
				k[3] = (uint8_t) i;
				break;
			case 2:				/* a node a bit */
				bits(k, 8, i);
				plen = 8;
				break;
			case 3:				/* of one value four */
				k[3] = (uint8_t) (i / 4);
				break;
			case 4:				/* long common parts */
				memset(k, 7, 20);
				bits(k + 20, 4, i >> 4);
				memset(k + 24, 9, 12);
				k[36] = (uint8_t) (i & 15);
				plen = 37;
				break;
			case 5:				/* long ones */
				k[0] = (uint8_t) i;
				memset(k + 1, i, 600);
				plen = 601;
				break;
			default:			/* far apart */
				k[0] = (uint8_t) (i / 64);
				k[1] = (uint8_t) ((i / 16 % 4) * 50);
				k[2] = (uint8_t) (i % 16 * 16);
				k[3] = 1;
		}
		ax_put_tid(k + plen, (uint64_t) i + 1);
	}
	s.len = plen + AX_TID_BYTES;
}

/* ---- attachments ---- */

static void
attach(int slot)
{
	worker	   *w = &thread[slot];

	if (attached[slot])
		bad("slot %d is in use", slot);
	sched_alone = true;
	ax_attach(&w->cx, area, slot, slot + 1, &sched_port);
	sched_alone = false;
	if (s.kind == ELIDED && slot != MAIN_SLOT)
	{
		static ax_hardware hw;

		ax_elide_setup(&w->cx, &hw, AX_ELIDE_ON, &ax_software, NULL);
	}
	attached[slot] = true;
}

/* What it keeps in memory of its own goes with it. */
static void
forget(int slot)
{
	if (attached[slot] && s.kind == ELIDED)
		ax_elide_setup(&thread[slot].cx, &(ax_hardware) {0}, AX_ELIDE_OFF, NULL, NULL);
	attached[slot] = false;
}

static void
detach(int slot)
{
	if (!attached[slot])
		return;
	attached[slot] = false;
	ax_detach(&thread[slot].cx);
}

/* ---- operations ---- */

static ax_status
counted(ax_status r, ax_ctx *cx)
{
	if (ax_latches_held(cx) != 0)
		bad("a call returns with a latch");
	calls++;
	busy += r == AX_BUSY;
	return r;
}

/* Number of the key of a TID. */
static int
of_tid(uint64_t tid)
{
	if (tid == 0 || tid > (uint64_t) s.keys)
		bad("TID %llu was never put in", (unsigned long long) tid);
	return (int) tid - 1;
}

/* Entries that were found, one way, of keys [from, to). */
static void
found(h_call *c, const uint64_t *tids, uint32_t n, bool back)
{
	for (uint32_t i = 0; i < n; i++)
	{
		int			k = of_tid(tids[i]);

		if (k < c->from || k >= c->to)
			bad("%s finds key %d, not of its range", c->name, k);
		if (i > 0 && (back ? tids[i] >= tids[i - 1] : tids[i] <= tids[i - 1]))
			bad("%s: key %d out of order", c->name, k);
		h_add(c->found, k);
	}
}

static void
change(int t, int k, bool in)
{
	worker	   *w = &thread[t];
	h_call	   *c = h_begin(in ? H_INSERT : H_REMOVE, in ? "insert" : "remove", t, k, k + 1);
	ax_status	r;

	if (compared)
		r = in ? ck_insert(w, key[k], s.len) : ck_remove(w, key[k], s.len);
	else
		r = in ? ax_insert(&w->cx, tree, gen, key[k], s.len) : ax_remove(&w->cx, tree, gen, key[k], s.len);
	if (r == AX_OK && in && s.kind == TAIL)
		c->kind = H_PUT;		/* a buffer does not know what the tree has */
	h_end(c, counted(r, &w->cx));
}

/* A read of keys [from, to); "scans": not by the key of one entry. */
static h_call *
begin_read(const char *name, int t, int from, int to, bool scans)
{
	h_call	   *c = h_begin(H_READ, name, t, from, to);

	c->loose = scans && structure == AX_ART_ROWEX;
	c->buffered = s.kind == TAIL;
	return c;
}

static bool
contains(int t, int k)
{
	worker	   *w = &thread[t];
	h_call	   *c = begin_read("contains", t, k, k + 1, false);
	ax_status	r = compared ? ck_contains(w, key[k], s.len) : ax_contains(&w->cx, tree, gen, key[k], s.len);

	if (r == AX_OK)
		h_add(c->found, k);
	h_end(c, counted(r, &w->cx) == AX_NOTFOUND ? AX_OK : r);
	return r == AX_OK;
}

/* Keys [*from, *to) have the same value as k. */
static void
same_value(int k, int *from, int *to)
{
	const size_t len = s.len - AX_TID_BYTES;

	for (*from = k; *from > 0 && memcmp(key[*from - 1], key[k], len) == 0; (*from)--)
		;
	for (*to = k + 1; *to < s.keys && memcmp(key[*to], key[k], len) == 0; (*to)++)
		;
}

static void
look_up(int t, int k)
{
	uint64_t	tids[16];
	ax_found	f = {.tids = tids, .max = 16};
	int			from,
				to;
	h_call	   *c;
	ax_status	r;

	same_value(k, &from, &to);
	c = begin_read("look-up", t, from, to, to > from + 1);
	r = counted(ax_lookup(&thread[t].cx, tree, gen, key[k], s.len - AX_TID_BYTES, &f), &thread[t].cx);
	if (r == AX_OK)
	{
		found(c, tids, f.n, false);
		if (f.more)
			r = AX_BUSY;		/* it does not know */
	}
	h_end(c, r);
}

/* Look-ups of n keys at once, of every second one from k on. */
static void
look_up_many(int t, int k, int n)
{
	uint64_t	tids[64];
	uint32_t	counts[8],
				done = 0,
				at = 0;
	const uint8_t *p[8];
	h_call	   *c[8];
	ax_found	f = {.tids = tids, .max = 64};
	ax_keys		keys = {.p = p, .len = s.len - AX_TID_BYTES};
	ax_status	r;

	for (; keys.n < (uint64_t) n && k < s.keys; keys.n++)
	{
		int			from;

		p[keys.n] = key[k];
		same_value(k, &from, &k);
		c[keys.n] = begin_read("look-up of many", t, from, k, k > from + 1);
	}
	r = counted(ax_lookup_many(&thread[t].cx, tree, gen, &keys, &f, counts, &done), &thread[t].cx);
	for (uint32_t i = 0; i < keys.n; i++)
	{
		if (r == AX_OK && i < done)
		{
			found(c[i], tids + at, counts[i], false);
			at += counts[i];
		}
		h_end(c[i], r == AX_OK && i < done ? AX_OK : AX_BUSY);
	}
}

/* Batches of a scan, each a call: keys [from, to), one way. */
static void
scan(int t, int from, int to, bool back, uint32_t max)
{
	uint64_t	tids[H_KEYS];
	uint8_t		last[4 * KEY_BYTES],
				at[4 * KEY_BYTES];
	ax_batch	b = {.backward = back, .max = max, .tids = tids, .lastkey = last,
		.lastkey_size = sizeof(last), .lo = {key[from], s.len, false}, .hi = {key[to - 1], s.len, true}};

	for (bool end = false; !end;)
	{
		h_call	   *c = begin_read(back ? "scan back" : "scan", t, from, to, true);
		ax_status	r = counted(ax_scan(&thread[t].cx, tree, gen, &b), &thread[t].cx);

		if (r != AX_OK && r != AX_BUSY && r != AX_STALE)
			bad("scan: status %d", (int) r);
		end = r != AX_OK || b.exhausted;
		if (r == AX_OK)
		{
			if (b.n == 0 && !b.exhausted)
				bad("scan: nothing, and there is more");
			found(c, tids, b.n, back);
			if (!b.exhausted)
			{
				int			k = of_tid(tids[b.n - 1]);

				if (b.lastlen != s.len || memcmp(last, key[k], s.len) != 0)
					bad("scan: a last key that is not key %d", k);
				memcpy(at, last, s.len);
				*(back ? &b.hi : &b.lo) = (ax_bound) {at, s.len, !back};
				*(back ? &c->from : &c->to) = back ? k : k + 1;
				*(back ? &to : &from) = back ? k : k + 1;
			}
			/* what was buffered is another moment's */
			c->one_moment = moments && s.kind != TAIL;
		}
		h_end(c, r);
	}
}

/* Keys [k, k + n), rising. */
static void
insert_sorted(int t, int k, int n, bool sorted)
{
	const uint8_t *p[H_KEYS];
	ax_keys		keys = {.p = p, .len = s.len, .n = (uint64_t) n};
	h_call	   *c = h_begin(H_PUT, sorted ? "sorted" : "insert many", t, k, k + n);
	uint64_t	done = 0,
				added = 0;
	uint32_t	few = 0;
	ax_status	r;

	for (int i = 0; i < n; i++)
		p[i] = key[k + i];
	if (sorted)
		r = ax_insert_sorted(&thread[t].cx, tree, gen, &keys, &done, &added);
	else
	{
		r = ax_insert_many(&thread[t].cx, tree, gen, &keys, &few);
		done = few;
	}
	(void) counted(r, &thread[t].cx);
	if (done > (uint64_t) n || added > done)
		bad("sorted: %llu of %d, %llu new", (unsigned long long) done, n, (unsigned long long) added);
	c->to = k + (int) done;
	h_end(c, AX_OK);
}

static void
compact(int t, int steps)
{
	static char *work[SLOTS_USED];
	ax_compaction c = {0};

	if (!work[t])
		work[t] = malloc(AX_COMPACT_WORK);
	c.work = work[t];
	for (int i = 0; i < steps && !c.done; i++)
		if (counted(ax_compact(&thread[t].cx, tree, gen, &c), &thread[t].cx) != AX_OK)
			break;
}

/* The tree is closed; another one has the handle, and nobody else writes there. */
static void
close_tree(int t)
{
	worker	   *w = &thread[t];
	uint64_t	second;

	ax_tree_close(&w->cx, tree);
	if (ax_tree_open(&w->cx, tree, structure, 0, 256, &second) != AX_OK)
		return;
	for (int i = 0; i < 3 && !compared; i++)
		if (ax_insert(&w->cx, tree, second, key[i], s.len) != AX_OK)
			bad("an insert into the second tree fails");
	for (int i = 0; i < 3 && !compared; i++)
		if (ax_contains(&w->cx, tree, second, key[i], s.len) != AX_OK ||
			ax_remove(&w->cx, tree, second, key[i], s.len) != AX_OK ||
			ax_contains(&w->cx, tree, second, key[i], s.len) != AX_NOTFOUND)
			bad("the second tree does not have what was put in");
}

/* Long: a list. */
static void
run_op(int t, const op *o)
{
	worker	   *w = &thread[t];
	ax_tree_info info;
	char		msg[256];
	bool		more,
				good;

	switch (o->kind)
	{
		case INSERT:
		case APPEND:
			change(t, o->key, true);
			break;
		case REMOVE:
			change(t, o->key, false);
			break;
		case CONTAINS:
			(void) contains(t, o->key);
			break;
		case LOOKUP:
			look_up(t, o->key);
			break;
		case MANY:
			look_up_many(t, o->key, 2 + (int) (o->draw % 6));
			break;
		case SCAN:
			scan(t, o->key, o->key + o->n, o->draw & 1, o->draw & 2 ? 2 + o->draw / 4 % 6 : H_KEYS);
			break;
		case SORTED:
		case SEVERAL:
			insert_sorted(t, o->key, o->n, o->kind == SORTED);
			break;
		case CLEAR:
			for (int i = 0; i < o->n; i++)
				change(t, o->key + i, false);
			break;
		case POLL:
			for (uint32_t i = 0; i <= o->draw % 3; i++)
				(void) ax_poll(&w->cx);
			break;
		case GIVE:
			ax_flush(&w->cx);
			break;
		case GIVE_IDLE:
			ax_flush_idle(&w->cx);
			break;
		case LEAVE:
			if (o->draw & 1)
				detach(t);
			forget(t);			/* else as if it had died here */
			attach(t);
			break;
		case COMPACT:
			compact(t, 1 + (int) (o->draw % 4));
			break;
		case SETTLE:
			(void) ax_settle(&w->cx, tree, gen, o->draw & 1);
			break;
		case CATCH_UP:
			(void) ax_catch_up(&w->cx, tree, gen);
			break;
		case TAIL_FLUSH:
			(void) counted(ax_tail_flush(&w->cx, tree, gen, &more), &w->cx);
			break;
		case TAIL_CLOSE:
			(void) counted(ax_tail_close(&w->cx, tree, gen, &more), &w->cx);
			break;
		case CHECK:
			if (tap_check(&w->cx, tree, gen, &info, &good, msg, sizeof(msg)) == AX_OK && !good)
				bad("a check beside others: %s", msg);
			break;
		case CLOSE:
			close_tree(t);
			break;
		case OP_KINDS:
			break;
	}
}

static void
run_thread(int t)
{
	if (!attached[t])
		attach(t);
	for (int i = 0; i < s.nops[t]; i++)
	{
		if (s.crash && !dead && draw(8) == 0)
			dead = true;
		if (dead)
			return;
		run_op(t, &s.ops[t][i]);
	}
}

/* ---- scenes ---- */

static op_kind
draw_kind(scene_kind k)
{
	int			sum = 0,
				at;

	for (int i = 0; i < OP_KINDS; i++)
		sum += weight[k][i];
	at = (int) draw((uint64_t) sum);
	for (int i = 0;; i++)
		if ((at -= weight[k][i]) < 0)
			return (op_kind) i;
}

/* What a compared tree has, too. */
static op_kind
compared_kind(op_kind k)
{
	static const op_kind instead[OP_KINDS] = {
		[INSERT] = INSERT, [REMOVE] = REMOVE, [CONTAINS] = CONTAINS, [LOOKUP] = CONTAINS,
		[MANY] = CONTAINS, [SCAN] = CONTAINS, [SORTED] = INSERT, [SEVERAL] = INSERT, [CLEAR] = CLEAR,
		[APPEND] = INSERT, [POLL] = POLL, [GIVE] = GIVE, [GIVE_IDLE] = GIVE_IDLE, [LEAVE] = LEAVE,
		[COMPACT] = POLL, [SETTLE] = POLL, [CATCH_UP] = POLL, [TAIL_FLUSH] = POLL,
		[TAIL_CLOSE] = POLL, [CHECK] = POLL, [CLOSE] = CLOSE
	};

	return compared ? instead[k] : k;
}

static void
make_ops(void)
{
	int			hot = 1 + (int) draw(6),
				first,
				rising = s.keys / 2;

	if (s.kind == SPLITS)
		hot = 2 + (int) draw((uint64_t) s.keys - 2);
	hot = hot < s.keys ? hot : s.keys;
	first = (int) draw((uint64_t) (s.keys - hot) + 1);
	if (s.kind == TAIL)
		first = rising - hot / 2 < 0 ? 0 : rising - hot / 2;
	for (int i = 0; i < OPS; i++)
		for (int t = 0; t < s.plan.threads; t++)
		{
			op		   *o = &s.ops[t][i];

			*o = (op) {.kind = compared_kind(draw_kind(s.kind)), .draw = (uint32_t) (tap_rand(&rng) >> 32)};
			o->key = draw(8) ? first + (int) draw((uint64_t) hot) : (int) draw((uint64_t) s.keys);
			o->n = 1 + (int) draw(o->kind == CLEAR ? 12 : o->kind == SCAN && draw(2) ? 190 : 24);
			if (o->kind == APPEND)
				o->key = rising < s.keys ? rising++ : s.keys - 1;
			if (o->kind == SCAN)
				o->key = o->key - (int) draw(4) < 0 ? 0 : o->key - (int) draw(2);
			if (o->key < 0)
				o->key = 0;
			if (o->n > s.keys - o->key)
				o->n = s.keys - o->key;
			if (i >= s.nops[t])
				o->kind = OP_KINDS;
		}
	/* the other one's are as drawn */
	for (int i = 0; i < s.nops[0] && s.kind == PAIRS; i++)
		s.ops[0][i].kind = compared_kind((op_kind[]) {INSERT, INSERT, REMOVE, SORTED, CLEAR, COMPACT, SETTLE, CATCH_UP}[draw(8)]);
	if (s.kind == CLOSED)
		s.ops[0][s.nops[0] - 1].kind = CLOSE;
}

static void
make_plan(void)
{
	static const uint32_t means[] = {1, 2, 4, 8, 20, 60, 200};
	sched_plan *p = &s.plan;
	int			nops = 0;

	*p = (sched_plan) {.seed = tap_rand(&rng), .run = run_thread};
	p->threads = s.kind == PAIRS ? 2 : 2 + (int) draw(2) + (draw(6) == 0);
	p->kind = (sched_kind) draw(3);
	p->mean = means[draw(7)];
	p->changes = 1 + (int) draw(4);
	for (int t = 0; t < p->threads; t++)
		nops += s.nops[t] = 1 + (int) draw(s.kind == PAIRS ? 2 : p->threads > 2 ? 4 : OPS - 1);
	p->length = (uint32_t) nops * (p->kind == SCHED_MARKED ? 12 : 60 + 4 * s.len);
	p->length = 1 + p->length / (1 + (uint32_t) draw(3));
	if (s.kind != CLOSED && draw(8) == 0)
	{
		/* those that compare start over for ever */
		if (!compared && draw(4))
		{
			p->stop_at = 1 + (uint32_t) draw((uint32_t) nops * (60 + 4 * s.len));
			p->goes_on = draw(2);
		}
		else
			s.crash = true;
	}
}

/* A scene that the engine has not. */
static bool
cannot_have(scene_kind k)
{
	return (k == ELIDED && (hydra || compared)) || (k == TAIL && compared);
}

static void
make_scene(uint64_t seed)
{
	static const int sizes[] = {3, 8, 24, 40, 70, 130, 190};
	static const int full[] = {4, 17, 33, 34, 35, 49, 50, 66, 67, 68};

	memset(&s, 0, sizeof(s));
	s.seed = seed;
	rng = (seed + 1) * UINT64_C(0xD6E8FEB86659FD93) | 1;
	for (int i = 0; i < 3; i++)
		(void) draw(2);
	do
	{
		s.kind = (scene_kind) (draw(4) ? draw(SCENES) : PAIRS);
		if (cannot_have(s.kind))
			s.kind = POINTS;
	} while (only_scene >= 0 && (int) s.kind != only_scene);
	s.keys = sizes[draw(s.kind == SPLITS ? 7 : 5)];
	if (s.kind == SPLITS && s.keys < 24)
		s.keys = 60;
	if (s.kind == PAIRS)
		s.keys = full[draw(10)];
	make_keys();
	make_plan();
	make_ops();
}

/* ---- one schedule ---- */

/* Some of the keys are there before the threads begin; s.kind TAIL: the lower half. */
static void
fill(void)
{
	const uint8_t *p[H_KEYS];
	ax_keys		keys = {.p = p, .len = s.len};
	uint64_t	present[H_WORDS] = {0};
	uint64_t	percent = s.kind == PAIRS ? 97 : (uint64_t[]) {0, 30, 70, 95, 100}[draw(5)];
	worker	   *w = &thread[MAIN_SLOT];
	bool		load = !compared && draw(2);

	for (int i = 0; i < (s.kind == TAIL ? s.keys / 2 : s.keys); i++)
		if (draw(100) < percent)
		{
			p[keys.n++] = key[i];
			h_add(present, i);
			if (!load && (compared ? ck_insert(w, key[i], s.len) :
						  ax_insert(&w->cx, tree, gen, key[i], s.len)) != AX_OK)
				bad("an insert into a tree of one thread fails");
		}
	if (load && keys.n > 0 && ax_load(&w->cx, tree, gen, &keys, s.kind == PAIRS ? 100 : 10 + (int) draw(91)) != AX_OK)
		bad("a load fails");
	h_start(s.keys, present);
}

static void
begin(void)
{
	uint32_t	page_size = draw(2) ? 256 : 512;

	sched_area(SCHED_BYTES, SLOTS_USED, RESERVE, &area);
	memset(attached, 0, sizeof(attached));
	dead = false;
	attach(MAIN_SLOT);
	tree = ax_tree_alloc(&thread[MAIN_SLOT].cx);
	if (!tree || ax_tree_open(&thread[MAIN_SLOT].cx, tree, structure, 0, page_size, &gen) != AX_OK)
		bad("no tree");
	ck_area = area;
	ck_tree = tree;
	ck_gen = gen;
	for (int i = 0; i < SLOTS_USED && compared; i++)
	{
		thread[i].losses = 0;
		if (!thread[i].buf)
			thread[i].buf = malloc(KEYBUF);
	}
	if (compared)
		for (int i = 0; i < SLOTS_USED; i++)
		{
			if (i != MAIN_SLOT)
				memcpy(&thread[i].cx, &thread[MAIN_SLOT].cx, sizeof(ax_ctx));
			ck_buffers(&thread[i]);
		}
	if (s.kind == TAIL)
	{
		(void) ax_tree_set_tail(&thread[MAIN_SLOT].cx, tree, gen, AX_TAIL_ON);
	}
	if (s.kind == ELIDED)
		(void) ax_tree_set_elision(&thread[MAIN_SLOT].cx, tree, gen, AX_ELIDE_ON);
	fill();
}

/* What is there in the end is what the calls left, whichever way it is looked at. */
static void
look_at_all(void)
{
	ax_tree_info info;
	char		msg[256];
	bool		good = false;
	int			there = 0;

	for (int k = 0; k < s.keys; k++)
		there += contains(MAIN_SLOT, k);
	if (compared)
	{
		if (whole && (ck_walk(&thread[MAIN_SLOT], false) != there || ck_walk(&thread[MAIN_SLOT], true) != there))
			bad("a walk does not find the %d entries", there);
		if (whole && !ck_check(&thread[MAIN_SLOT], (uint64_t) there, msg, sizeof(msg)))
			bad("the check in the end: %s", msg);
		return;
	}
	scan(MAIN_SLOT, 0, s.keys, false, H_KEYS);
	scan(MAIN_SLOT, 0, s.keys, true, 7);
	if (!whole)
		return;
	if (tap_check(&thread[MAIN_SLOT].cx, tree, gen, &info, &good, msg, sizeof(msg)) != AX_OK)
		bad("the check in the end does not end");
	if (!good)
		bad("the check in the end: %s", msg);
	if (s.kind != TAIL && info.entries != (uint64_t) there)
		bad("the check in the end: %llu entries, not %d", (unsigned long long) info.entries, there);
}

static void
give_all_back(void)
{
	ax_memory_info m;
	ax_ctx	   *cx = &thread[MAIN_SLOT].cx;
	ax_pending	pending = AX_PENDING_MORE;

	for (int i = 0; i < SCHED_THREADS; i++)
		for (int k = 0; k < AX_QNODES; k++)
			if (area->slots[i].queue[k].state != AX_Q_FREE)
				bad("a node of slot %d is still in a queue", i);
	for (int i = 0; i < SCHED_THREADS; i++)
		detach(i);
	ax_tree_close(cx, tree);
	for (int i = 0; i < 200 && pending != AX_PENDING_NOTHING; i++)
		pending = ax_poll(cx);
	ax_memory(cx, &m);
	if (pending != AX_PENDING_NOTHING || m.used_bytes != 0 || m.retired_bytes != 0)
		bad("%llu bytes are not given back, %llu of them retired", (unsigned long long) m.used_bytes,
			(unsigned long long) m.retired_bytes);
	detach(MAIN_SLOT);
}

/* All have died between two calls: the structure is kept, and others go on with it. */
static void
survive(void)
{
	for (int i = 0; i < SLOTS_USED; i++)
		forget(i);
	ax_area_survive(area);
	if (!ax_area_intact(area, SCHED_BYTES, SLOTS_USED))
		bad("the area is not intact");
	attach(MAIN_SLOT);
	crashes++;
	s.crash = false;
	dead = false;
	s.plan.seed = tap_rand(&rng);
	(void) sched_run(&s.plan);
}

/* One schedule; a number made of all that happened. */
static uint64_t
run_seed(uint64_t seed)
{
	uint64_t	from,
				to,
				steps,
				sum;

	if (seed % 64 == 0)
		alarm(WATCH);
	make_scene(seed);
	begin();
	steps = sched_steps();
	whole = sched_run(&s.plan) < 0;
	stops += s.plan.stop_at != 0;
	if (s.crash)
		survive();
	schedule_steps = steps = sched_steps() - steps;
	if (s.kind != CLOSED)
		look_at_all();
	if (!h_explained(&failed_key, &from, &to))
		sched_fail(from, to, "no order of the calls explains the answers about %s %d",
				   failed_key < 0 ? "keys of one moment" : "key", failed_key);
	sum = h_sum() ^ steps * UINT64_C(0x9E3779B97F4A7C15);
	if (whole)
		give_all_back();
	else
		for (int i = 0; i < SLOTS_USED; i++)
			forget(i);
	schedules[s.kind]++;
	return sum;
}

/* Which scene is to be tried alone; -1: all. */
static int
scene_asked_for(void)
{
	const char *name = getenv("SCENE");

	if (!name || !*name)
		return -1;
	for (int i = 0; i < SCENES; i++)
		if (strcmp(name, scene_name[i]) == 0 && !cannot_have((scene_kind) i))
			return i;
	fprintf(stderr, "SCENE=%s: this engine has no such scene\n", name);
	exit(2);
}

static uint64_t
number(const char *name, uint64_t without)
{
	const char *e = getenv(name);

	return e && *e ? strtoull(e, NULL, 10) : without;
}

/* The same seed gives the same history. */
static void
run_twice(uint64_t from)
{
	uint64_t	sum[TWICE],
				n = tap_scaled(TWICE),
				same = 0;

	n = n > TWICE ? TWICE : n;
	for (uint64_t i = 0; i < n; i++)
		sum[i] = run_seed(from + i);
	for (uint64_t i = 0; i < n; i++)
		same += sum[i] == run_seed(from + i);
	ok(same == n, "%llu of %llu seeds gave the same history twice", (unsigned long long) same,
	   (unsigned long long) n);
}

int
main(void)
{
	uint64_t	t0 = now_ns(),
				steps = 0,
				n = 0,
				from = number("FROM", t0 / 1000 % 1000000000 * 1000),
				count = number("COUNT", 0),
				ns = number("SECONDS", 2) * UINT64_C(1000000000);

	compared = getenv("AX_STRUCTURE") && strcmp(getenv("AX_STRUCTURE"), "btree-compared") == 0;
	structure = compared ? AX_BTREE_COMPARED : tap_structure();
	hydra = ax_structure_is_hydra(structure);
	moments = structure == AX_HYDRA_MVRLU;
	sched_verbose = getenv("VERBOSE") != NULL;
	sched_on_failure = say;
	only_scene = scene_asked_for();
	setvbuf(stdout, NULL, _IOLBF, 0);
	catch_signals();
	if (number("SEED", 0))
	{
		(void) run_seed(number("SEED", 0));
		h_print(-1);
		ok(true, "seed %s", getenv("SEED"));
		return tap_done();
	}
	run_twice(from);
	t0 = now_ns();
	while (count ? n < count : n == 0 || now_ns() - t0 < ns)
	{
		(void) run_seed(from + n++);
		steps += schedule_steps;
	}
	ok(n > 0, "%llu schedules, seeds %llu to %llu: every answer is explained", (unsigned long long) n,
	   (unsigned long long) from, (unsigned long long) (from + n - 1));
	for (int i = 0; i < SCENES; i++)
		tap_diag("%s: %llu schedules", scene_name[i], (unsigned long long) schedules[i]);
	tap_diag("%llu with one that stops, %llu where all die; %llu calls, %llu of them BUSY", (unsigned long long) stops,
			 (unsigned long long) crashes, (unsigned long long) calls, (unsigned long long) busy);
	tap_diag("%llu steps, %llu changes of threads, %.0f schedules a second; %llu histories of one moment not judged",
			 (unsigned long long) steps, (unsigned long long) sched_switches(), (double) n * 1e9 / (double) (now_ns() - t0),
			 (unsigned long long) h_unjudged);
	return tap_done();
}
