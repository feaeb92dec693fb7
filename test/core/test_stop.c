/*
 * test_stop.c
 *	  Processes that are stopped, anywhere and with latches held: the others go on
 *	  as far as the structure allows, and nobody waits for ever.
 *
 *	  test_stop [seed]
 *
 * More processes than processors, each with a range of keys of its own, some more
 * among those of all others, and a model of them.  First restarts are forced, until the pessimistic way ends them.
 * Then one process at a time stops itself with exactly its leaf latched: all
 * others must go on in their ranges (but not under one coarse latch), and what
 * needs that leaf must be told so, BUSY, in about 10 ms.  Then all of them stop so:
 * ROWEX must answer everything, and restart nothing.  Last, SIGSTOP at random
 * moments and at latches.  In the end every key must be where it belongs.
 *
 * Environment: SECONDS of the last part (2).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/ax_area.h"
#include "tap.h"

#define AREA_BYTES ((size_t) 256 << 20)
#define PROCS	12
#define KEYS	600				/* of each process */
#define COMMON	240				/* side by side, each with one of the processes */
#define ALL		(PROCS * KEYS + COMMON)
#define KEYLEN	16
#define EVERYBODY 254
#define NOBODY	255
#define PATIENCE_NS UINT64_C(20000000000)	/* beyond that it is a hang */

enum
{
	LEAF_OWN, LEAF_COMMON, QUEUE	/* the leaf of a key latched; head of the queue for it */
};

/* Of one process, written by it; in shared memory. */
typedef struct proc
{
	_Alignas(64) _Atomic uint64_t calls;	/* that returned */
	_Atomic uint64_t busy;		/* of these: BUSY */
	_Atomic int doing;			/* own key that is being changed; -1: none */
} proc;

typedef struct world
{
	ax_area    *area;
	ax_tree    *tree;
	uint64_t	gen;
	uint64_t	seed;
	proc		p[PROCS];
	_Atomic int order;			/* 256 times a number, and who stops with a latch held:
								 * a process, EVERYBODY or NOBODY */
	_Atomic int where;			/* with which: */
	_Atomic int common;			/* LEAF_COMMON, QUEUE: number of the common key */
	_Atomic int missed;			/* the order whose victim met no latch to wait for */
	_Atomic bool random_stops;
	_Atomic bool quit;
	_Atomic bool in[ALL];
} world;

static world *w;
static uint8_t key[ALL][KEYLEN];	/* sorted: each process's lie together */
static ax_structure structure;
static bool coarse,
			hydra,
			rowex,
			optiql;
static ax_ctx cx,
			other;				/* moves versions under the forced restarts */
static int	me = -1;			/* process, -1: the controller */
static pid_t pid[PROCS];
static bool stopped[PROCS];
static uint64_t rng = 1;

static uint64_t
now_ns(void)
{
	return ax_port_default.now_ns();
}

static void
sleep_ms(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static void
die(const char *what, int k, int status)
{
	printf("# process %d: %s, key %d, status %d\n", me, what, k, status);
	fflush(stdout);
	_exit(1);
}

static int
cmp_keys(const void *a, const void *b)
{
	return memcmp(a, b, KEYLEN);
}

static void
make_keys(uint64_t seed)
{
	for (int i = 0; i < ALL; i++)
	{
		uint8_t    *k = key[i];
		uint64_t	r = tap_rand(&seed);

		k[0] = 1;
		k[1] = (uint8_t) (i / KEYS * 5 + 3);
		memcpy(k + 2, &r, 8);
		memset(k + 10, 0, 6);
		k[14] = (uint8_t) (i >> 8);
		k[15] = (uint8_t) i;
	}
	qsort(key, ALL, KEYLEN, cmp_keys);
}

static uint64_t
tid_of(int i)
{
	return (uint64_t) key[i][14] << 8 | key[i][15];
}

/* ---- one call each ---- */

static ax_status
counted(ax_status r, int k)
{
	if (me >= 0)
	{
		if (r == AX_BUSY)
			atomic_fetch_add(&w->p[me].busy, 1);
		atomic_fetch_add(&w->p[me].calls, 1);
	}
	if (ax_latches_held(&cx))
		die("a latch is held", k, (int) r);
	return r;
}

static ax_status
look(int k)
{
	ax_status	r = counted(ax_contains(&cx, w->tree, w->gen, key[k], KEYLEN), k);
	uint64_t	tids[4];
	ax_found	f = {.tids = tids, .max = 4};

	if (r == AX_BUSY || tap_rand(&rng) % 2)
		return r;
	r = counted(ax_lookup(&cx, w->tree, w->gen, key[k], KEYLEN - 6, &f), k);
	if (r == AX_OK && (f.n > 1 || f.more || (f.n == 1 && tids[0] != tid_of(k))))
		die("look-up finds something else", k, (int) f.n);
	return r == AX_OK && f.n == 0 ? AX_NOTFOUND : r;
}

static bool found;				/* HydraList: the latch is no search layer's, nor one of a walk */
static volatile sig_atomic_t armed;	/* 1 + with which latch to stop next, or 0 */
static int	seen;				/* the order of the time */

/*
 * Insert or remove; false: BUSY till the end, or till there is a new order.  A
 * process that is to become the head of a queue gives up after 100 times BUSY:
 * another may have been stopped with what this key needs besides its leaf.
 */
static bool
change(int k, bool insert)
{
	ax_status	r;
	int			refused = 0;

	atomic_store(&w->p[me].doing, k);
	do
		r = counted(insert ? ax_insert(&cx, w->tree, w->gen, key[k], KEYLEN) :
					ax_remove(&cx, w->tree, w->gen, key[k], KEYLEN), k);
	while (r == AX_BUSY && !atomic_load(&w->quit) && atomic_load(&w->order) == seen &&
		   (armed != QUEUE + 1 || ++refused < 100));
	if (r != AX_BUSY)
	{
		if (r != (atomic_load(&w->in[k]) == insert ? insert ? AX_EXISTS : AX_NOTFOUND : AX_OK))
			die(insert ? "insert" : "remove", k, (int) r);
		atomic_store(&w->in[k], insert);
	}
	atomic_store(&w->p[me].doing, -1);
	return r != AX_BUSY;
}

static int
owner_of(int k)
{
	return k < PROCS * KEYS ? k / KEYS : k % PROCS;
}

/* Is the key in?  -1: its owner is at it. */
static int
expected(int k)
{
	int			owner = owner_of(k);

	if (owner != me && atomic_load(&w->p[owner].doing) == k)
		return -1;
	return atomic_load(&w->in[k]);
}

/*
 * Keys a..z, one way or the other, against what their owners say.  AX_OK, or
 * AX_BUSY when that was said "patience" times.
 */
static ax_status
scan(int a, int z, bool back, int patience)
{
	uint64_t	tids[50];
	uint8_t		last[4 * KEYLEN],
				from[KEYLEN];
	ax_batch	b = {.backward = back, .max = 50, .tids = tids,
		.lastkey = last, .lastkey_size = sizeof(last)};
	int			at = back ? z : a,
				stop = back ? a - 1 : z + 1;

	b.lo = (ax_bound) {key[a], KEYLEN, false};
	b.hi = (ax_bound) {key[z], KEYLEN, true};
	for (;;)
	{
		uint32_t	i = 0;
		int			end = stop;
		ax_status	r = counted(ax_scan(&cx, w->tree, w->gen, &b), a);

		if (r == AX_BUSY)
		{
			if (--patience <= 0 || atomic_load(&w->quit))
				return r;
			continue;
		}
		if (r != AX_OK)
			die("scan", a, (int) r);
		if (!b.exhausted)
		{
			for (end = at; end != stop && memcmp(key[end], last, KEYLEN) != 0; end += back ? -1 : 1)
				;
			if (end == stop || b.lastlen != KEYLEN)
				die("scan: a last key that is none", a, (int) b.n);
			end += back ? -1 : 1;
		}
		for (; at != end; at += back ? -1 : 1)
		{
			int			e = expected(at);
			bool		hit = i < b.n && tids[i] == tid_of(at);

			if (e >= 0 && hit != (e == 1))
				die(hit ? "scan finds what is not there" : "scan misses", at, (int) back);
			i += hit;
		}
		if (i < b.n)
			die("scan: an entry out of order", at, (int) i);
		if (b.exhausted)
			return AX_OK;
		memcpy(from, last, KEYLEN);
		*(back ? &b.hi : &b.lo) = (ax_bound) {from, KEYLEN, !back};
	}
}

/* ---- a process ---- */

/*
 * Stop ourselves: armed, with our last latch, about to be released; at random,
 * with whatever a tree's operation holds.
 */
static void
stop_here(const char *name)
{
	int			held = ax_latches_held(&cx) - coarse;

	if (strncmp(name, "hydra.leaf", 10) == 0)
		found = true;
	else if (strcmp(name, "hydra.node_read") == 0)
		found = false;
	if (armed == QUEUE + 1 && held == 0 && strcmp(name, "queue.head") == 0)
	{
		armed = 0;
		raise(SIGSTOP);
	}
	if (held <= 0)
		return;
	if (armed)
	{
		if (armed <= QUEUE && held == 1 && (found || !hydra) && strcmp(name, "guard.release") == 0)
		{
			armed = 0;
			raise(SIGSTOP);
		}
	}
	else if (atomic_load_explicit(&w->random_stops, memory_order_relaxed) &&
			 strncmp(name, "latch:", 6) != 0 && tap_rand(&rng) % 2000 == 0)
		raise(SIGSTOP);
}

/*
 * Take a key out and put it back: the leaf then has room, so the leaf is all
 * that is latched.  Not near the ends of the range, whose leaves others may share.
 */
static bool
be_victim(uint64_t r, int order)
{
	int			where = atomic_load(&w->where);
	int			k = me * KEYS + KEYS / 4 + (int) (r % (KEYS / 2));
	bool		did;

	if (where != LEAF_OWN)
		k = PROCS * KEYS + atomic_load(&w->common) * PROCS + me;
	if (where == QUEUE)
	{
		armed = QUEUE + 1;
		(void) change(k, !atomic_load(&w->in[k]));
		if (armed)
			atomic_store(&w->missed, order);
		armed = 0;
		return true;
	}
	if (!atomic_load(&w->in[k]) && !change(k, true))
		return false;
	if (!change(k, false))
		return false;
	armed = where + 1;
	found = false;
	(void) change(k, true);
	did = !armed;
	armed = 0;
	return did;
}

static void
run(void)
{
	int			obeyed = 0;

	rng = (w->seed * 977 + (uint64_t) me) * UINT64_C(0x9E3779B97F4A7C15) | 1;
	tap_point_hook = stop_here;
	while (!atomic_load(&w->quit))
	{
		uint64_t	r = tap_rand(&rng);
		int			k = me * KEYS + (int) ((r >> 32) % KEYS);
		int			order = atomic_load(&w->order);
		ax_status	x;

		seen = order;
		if (order != obeyed && (order % 256 == me || order % 256 == EVERYBODY))
		{
			if (be_victim(r >> 8, order))
				obeyed = order;
			continue;
		}
		if (r % 16 < 3)
		{
			k = PROCS * KEYS + (int) ((r >> 32) % (COMMON / PROCS)) * PROCS + me;
			(void) change(k, !atomic_load(&w->in[k]));
		}
		else if (r % 16 < 11)
			(void) change(k, !atomic_load(&w->in[k]));
		else if (r % 16 < 14)
		{
			/* one that is stopped with this leaf may wait until we obey */
			do
				x = look(k);
			while (x == AX_BUSY && !atomic_load(&w->quit) && atomic_load(&w->order) == seen);
			if (x != AX_BUSY && x != (atomic_load(&w->in[k]) ? AX_OK : AX_NOTFOUND))
				die("look-up of an own key", k, (int) x);
		}
		else if (r % 16 == 14)
		{
			int			z = k + 30 < (me + 1) * KEYS ? k + 30 : (me + 1) * KEYS - 1;

			(void) scan(k, z, r >> 60 & 1, 1);
		}
		else
		{
			/* anybody's */
			k = (int) ((r >> 32) % ALL);
			x = look(k);
			if (x != AX_OK && x != AX_NOTFOUND && x != AX_BUSY)
				die("look-up", k, (int) x);
		}
	}
	tap_point_hook = NULL;
	ax_detach(&cx);
}

/* ---- the controller ---- */

static void
begin(void)
{
	fflush(stdout);
	for (int i = 0; i < PROCS; i++)
	{
		atomic_store(&w->p[i].doing, -1);
		pid[i] = fork();
		if (pid[i] == 0)
		{
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			me = i;
			memset(&cx, 0, sizeof(cx));
			ax_attach(&cx, w->area, i + 2, 100 + i, &ax_port_default);
			run();
			_exit(0);
		}
		if (pid[i] < 0)
		{
			perror("fork");
			exit(2);
		}
	}
}

/* What was heard of the processes: who stopped, who ended though nobody said so. */
static bool
listen_to(void)
{
	int			st;
	pid_t		p;

	while ((p = waitpid(-1, &st, WNOHANG | WUNTRACED)) > 0)
		for (int i = 0; i < PROCS; i++)
			if (pid[i] == p)
			{
				if (!WIFSTOPPED(st))
				{
					pid[i] = 0;
					tap_diag("process %d ended: %x", i, (unsigned) st);
					return false;
				}
				stopped[i] = true;
			}
	return true;
}

static void
go_on(int i)
{
	stopped[i] = false;
	if (pid[i] > 0)
		kill(pid[i], SIGCONT);
}

static bool
wait_stopped(int i, uint64_t ns)
{
	uint64_t	t = now_ns();

	while (!stopped[i])
	{
		if (!listen_to() || now_ns() - t > ns)
			return false;
		sleep_ms(1);
	}
	return true;
}

static void
stop_with_latch(int who, int where)
{
	atomic_store(&w->where, where);
	atomic_store(&w->order, (atomic_load(&w->order) / 256 + 1) * 256 + who);
}

static uint64_t
restarts(void)
{
	ax_tree_info ti;

	(void) ax_info(&cx, w->tree, w->gen, &ti);
	return ti.restarts;
}

/* All but v: so many more calls that succeed, and so many that are BUSY. */
static bool
others_go_on(int v, uint64_t done, uint64_t refused)
{
	uint64_t	calls[PROCS],
				busy[PROCS],
				t = now_ns();

	for (int i = 0; i < PROCS; i++)
	{
		calls[i] = atomic_load(&w->p[i].calls);
		busy[i] = atomic_load(&w->p[i].busy);
	}
	for (int i = 0; i < PROCS; i++)
		while (i != v)
		{
			uint64_t	b = atomic_load(&w->p[i].busy) - busy[i],
						c = atomic_load(&w->p[i].calls) - calls[i];

			if (b >= refused && c >= b + done)
				break;
			if (!listen_to() || now_ns() - t > PATIENCE_NS)
			{
				tap_diag("process %d: %llu calls, %llu of them BUSY, while %d is stopped", i,
						 (unsigned long long) c, (unsigned long long) b, v);
				return false;
			}
			sleep_ms(1);
		}
	return true;
}

/*
 * One stops with its leaf latched.  The others must each come back from their
 * calls, and, but for coarse, succeed in their ranges.
 */
static bool
one_stops(int v)
{
	int			k;
	bool		good;

	stop_with_latch(v, LEAF_OWN);
	if (!wait_stopped(v, PATIENCE_NS))
		return ok(false, "process %d stops with a latch held", v);
	good = others_go_on(v, coarse ? 0 : 30, coarse ? 3 : 0);

	/* the key whose leaf is latched: BUSY in 10 ms, and no sooner */
	k = atomic_load(&w->p[v].doing);
	if (k < 0)
		good = false;
	else
	{
		uint64_t	best = UINT64_MAX;

		for (int i = 0; i < 5 && good; i++)
		{
			uint64_t	t0 = now_ns();
			ax_status	r = ax_contains(&cx, w->tree, w->gen, key[k], KEYLEN);

			t0 = now_ns() - t0;
			best = t0 < best ? t0 : best;
			if (rowex ? r != AX_OK && r != AX_NOTFOUND : r != AX_BUSY)
			{
				good = false;
				tap_diag("look-up in the latched leaf: status %d", (int) r);
			}
		}
		if (!rowex && (best < 9000000 || best > 500000000))
		{
			good = false;
			tap_diag("BUSY after %llu ns", (unsigned long long) best);
		}
	}
	stop_with_latch(NOBODY, LEAF_OWN);
	go_on(v);
	return good;
}

/*
 * The head of a leaf's queue stops, then the latch is released: nobody else may
 * wait for the head, and the others pass it.
 */
static bool
head_stops(int a)
{
	const int	b = (a + 1) % PROCS;
	int			order;

	for (int i = 0; i < 50; i++)
	{
		bool		good;

		atomic_store(&w->common, (int) (tap_rand(&rng) % (COMMON / PROCS)));
		stop_with_latch(a, LEAF_COMMON);
		if (!wait_stopped(a, PATIENCE_NS))
			return false;
		stop_with_latch(b, QUEUE);
		order = atomic_load(&w->order);
		while (!stopped[b] && atomic_load(&w->missed) != order)
		{
			if (!listen_to())
				return false;
			sleep_ms(1);
		}
		go_on(a);
		if (!stopped[b])
			continue;			/* its key is in another leaf */
		good = others_go_on(b, 300, 0);
		stop_with_latch(NOBODY, LEAF_OWN);
		go_on(b);
		return good;
	}
	return false;
}

/*
 * All stop with latches held (under a coarse latch one does, and the others are
 * stopped).  Who reads now?
 */
static void
all_stop(void)
{
	uint64_t	before;
	int			answered = 0,
				wrong = 0,
				n = 0;

	stop_with_latch(EVERYBODY, LEAF_OWN);
	for (int i = 0; i < PROCS; i++)
		if (!wait_stopped(i, coarse ? 300000000 : PATIENCE_NS))
		{
			if (!coarse)
			{
				ok(false, "process %d stops with a latch held", i);
				return;
			}
			kill(pid[i], SIGSTOP);
			(void) wait_stopped(i, PATIENCE_NS);
		}
	before = restarts();
	for (int k = 0; k < ALL; k += rowex ? 1 : coarse ? 2000 : 40)
	{
		ax_status	r = look(k);
		int			e = expected(k);

		n++;
		answered += r != AX_BUSY;
		if (r != AX_BUSY && (e >= 0 ? r != (e ? AX_OK : AX_NOTFOUND) : r != AX_OK && r != AX_NOTFOUND))
			wrong++;
	}
	ok(wrong == 0, "every writer stopped: of %d look-ups %d are answered, right", n, answered);
	if (rowex)
	{
		ok(answered == n, "ROWEX: all are");
		ok(scan(0, ALL - 1, false, 1) == AX_OK, "ROWEX: a scan of all keys completes");
		ok(scan(0, ALL - 1, true, 1) == AX_OK, "ROWEX: and one back");
		ok(restarts() == before, "ROWEX: and nothing restarted");
	}
	else if (coarse)
		ok(answered == 0, "one latch for all: none");
	else
	{
		/* what the stopped ones hold is a leaf each */
		ok(answered >= n / 2, "most leaves can be read");
	}
	stop_with_latch(NOBODY, LEAF_OWN);
	for (int i = 0; i < PROCS; i++)
		go_on(i);
}

static void
random_stops(double seconds)
{
	uint64_t	end = now_ns() + (uint64_t) (seconds * 1e9),
				go_at[PROCS] = {0};
	int			stops = 0,
				self = 0;
	bool		good = true;

	atomic_store(&w->random_stops, true);
	while (good && now_ns() < end)
	{
		int			n = 0;

		good = listen_to();
		for (int i = 0; i < PROCS; i++)
		{
			if (!stopped[i])
				continue;
			if (go_at[i] == 0)
			{
				self++;
				go_at[i] = now_ns() + tap_rand(&rng) % 30000000;
			}
			if (now_ns() >= go_at[i])
			{
				go_at[i] = 0;
				go_on(i);
			}
			else
				n++;
		}
		if (n < PROCS / 2)
		{
			int			i = (int) (tap_rand(&rng) % PROCS);

			if (!stopped[i] && go_at[i] == 0)
			{
				kill(pid[i], SIGSTOP);
				go_at[i] = now_ns() + tap_rand(&rng) % 30000000;
				stops++;
			}
		}
		nanosleep(&(struct timespec) {0, (long) (tap_rand(&rng) % 2000000)}, NULL);
	}
	atomic_store(&w->random_stops, false);
	ok(good && stops + self > 0, "%d times somebody was stopped, %d times stopped with a latch", stops, self);
}

static void
finish_all(void)
{
	uint64_t	t = now_ns();
	int			left = PROCS;
	bool		good = true;
	ax_tree_info ti;
	char		msg[200] = "";
	uint64_t	n = 0;

	atomic_store(&w->quit, true);
	while (left > 0 && now_ns() - t < PATIENCE_NS)
	{
		left = 0;
		for (int i = 0; i < PROCS; i++)
		{
			int			st;

			if (pid[i] <= 0)
				continue;
			kill(pid[i], SIGCONT);
			if (waitpid(pid[i], &st, WNOHANG) == pid[i])
			{
				pid[i] = 0;
				if (!WIFEXITED(st) || WEXITSTATUS(st) != 0)
					good = false;
			}
			else
				left++;
		}
		sleep_ms(2);
	}
	for (int i = 0; i < PROCS; i++)
		if (pid[i] > 0)
			kill(pid[i], SIGKILL);
	ok(good && left == 0, "all processes come to their end, each right about its own keys");
	if (left)
		return;					/* killed with latches, perhaps */
	atomic_store(&w->quit, false);
	for (int k = 0; k < ALL; k++)
	{
		n += atomic_load(&w->in[k]);
		if (ax_contains(&cx, w->tree, w->gen, key[k], KEYLEN) !=
			(atomic_load(&w->in[k]) ? AX_OK : AX_NOTFOUND))
			good = false;
	}
	ok(good, "every key is in or not, as its owner says");
	ok(scan(0, ALL - 1, false, 1) == AX_OK && scan(0, ALL - 1, true, 1) == AX_OK, "scans say the same");
	if (!ok(tap_check(&cx, w->tree, w->gen, &ti, &good, msg, sizeof(msg)) == AX_OK && good &&
			ti.entries == n, "check finds nothing, and %llu entries", (unsigned long long) n))
		tap_diag("%s; %llu entries", msg, (unsigned long long) ti.entries);
	(void) ax_info(&cx, w->tree, w->gen, &ti);
	tap_diag("restarts %llu, pessimistic %llu, waits %llu, parks %llu, handovers %llu, abandoned %llu",
			 (unsigned long long) ti.restarts, (unsigned long long) ti.pessimistic,
			 (unsigned long long) ti.latch_waits, (unsigned long long) ti.parks,
			 (unsigned long long) ti.handovers, (unsigned long long) ti.abandoned);
}

/* ---- forced restarts ---- */

static uint64_t moved;

/* The root's version moves whenever somebody is about to rely on it. */
static void
move_root(const char *name)
{
	ax_store   *s = atomic_load(&w->tree->store);
	uint64_t	v;

	if (ax_latches_held(&cx) > coarse || ax_latches_held(&other) ||
		(strncmp(name, "art.", 4) != 0 && strncmp(name, "bt.", 3) != 0))
		return;
	if (ax_word_lock(&other, &s->root_word, &v) == AX_OK)
	{
		ax_word_unlock(&other, &s->root_word, true);
		moved++;
	}
}

static void
forced_restarts(void)
{
	static const char *const name[] = {"contains", "look-up", "scan", "scan back", "remove", "insert"};
	int			k = ALL / 2;

	while (!atomic_load(&w->in[k]))
		k++;
	for (int i = 0; i < 6; i++)
	{
		ax_tree_info a,
					b;
		uint64_t	tids[4];
		uint8_t		last[4 * KEYLEN];
		ax_found	f = {.tids = tids, .max = 4};
		ax_batch	batch = {.backward = i == 3, .max = 4, .tids = tids, .lastkey = last,
			.lastkey_size = sizeof(last), .lo = {key[k], KEYLEN, false}, .hi = {key[k], KEYLEN, true}};
		ax_status	r = AX_STALE;
		bool		right;
		uint64_t	m = moved;

		(void) ax_info(&cx, w->tree, w->gen, &a);
		tap_point_hook = move_root;
		if (i == 0)
			r = ax_contains(&cx, w->tree, w->gen, key[k], KEYLEN);
		else if (i == 1)
			r = ax_lookup(&cx, w->tree, w->gen, key[k], KEYLEN - 6, &f);
		else if (i < 4)
			r = ax_scan(&cx, w->tree, w->gen, &batch);
		else if (i == 4)
			r = ax_remove(&cx, w->tree, w->gen, key[k], KEYLEN);
		else
			r = ax_insert(&cx, w->tree, w->gen, key[k], KEYLEN);
		tap_point_hook = NULL;
		(void) ax_info(&cx, w->tree, w->gen, &b);
		right = r == AX_OK && (i != 1 || (f.n == 1 && tids[0] == tid_of(k))) &&
			(i < 2 || i > 3 || (batch.n == 1 && tids[0] == tid_of(k)));
		m = moved - m;
		if (rowex && (i < 4 || structure == AX_HYDRA_MVRLU))	/* whose writers go by that, too */
			ok(right && b.restarts == a.restarts, "%s: the root moves %llu times, and ROWEX does not care",
			   name[i], (unsigned long long) m);
		else if (!ok(right && m > 0 && b.restarts - a.restarts >= 24 && b.pessimistic > a.pessimistic,
					 "%s: the root moves %llu times, %llu restarts, then the pessimistic way", name[i],
					 (unsigned long long) m, (unsigned long long) (b.restarts - a.restarts)))
			tap_diag("status %d, pessimistic %llu", (int) r,
					 (unsigned long long) (b.pessimistic - a.pessimistic));
	}
}

int
main(int argc, char **argv)
{
	const char *e = getenv("SECONDS");
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : now_ns() / 1000000 % 1000000;
	int			rounds = (int) tap_scaled(4);
	bool		good = true;
#ifdef AX_TSAN
	const bool	processes = false;	/* of which it sees one */
#else
	const bool	processes = true;
#endif

	tap_deadline(120);
	structure = tap_structure();
	coarse = strcmp(ax_structure_sync(structure), "coarse") == 0;
	hydra = strcmp(ax_structure_name(structure), "hydra") == 0;
	optiql = strcmp(ax_structure_sync(structure), "optiql") == 0;
	/* both have readers who wait for nobody */
	rowex = strcmp(ax_structure_sync(structure), "rowex") == 0 || structure == AX_HYDRA_MVRLU;
	tap_diag("seed %llu", (unsigned long long) seed);
	make_keys(seed + 1);
	w = tap_shared(sizeof(*w));
	w->seed = rng = seed | 1;
	w->area = tap_area(AREA_BYTES, PROCS + 4, 1 << 20);
	atomic_store(&w->order, NOBODY);
#ifdef AX_ASAN
	ax_poisoning = false;		/* shadow memory is each process's own */
#endif
	ax_attach(&cx, w->area, 0, 1, &ax_port_default);
	ax_attach(&other, w->area, 1, 2, &ax_port_default);
	w->tree = ax_tree_alloc(&cx);
	if (!w->tree || ax_tree_open(&cx, w->tree, structure, 0, tap_page_size(), &w->gen) != AX_OK)
		abort();
	for (int k = 0; k < ALL; k++)
		if (k % 4)
		{
			if (ax_insert(&cx, w->tree, w->gen, key[k], KEYLEN) != AX_OK)
				abort();
			atomic_store(&w->in[k], true);
		}
	forced_restarts();
	ax_detach(&other);
	if (processes)
	{
		begin();
		for (int i = 0; i < rounds && good; i++)
			good = one_stops((int) (tap_rand(&rng) % PROCS));
		ok(good, "one stopped with its leaf latched, %d times: %s", rounds,
		   coarse ? "all others are told in time" : "all others go on");
		if (optiql)
		{
			for (int i = 0; i < rounds && good; i++)
				good = head_stops((int) (tap_rand(&rng) % PROCS));
			ok(good, "the head of a queue stopped, %d times: the others pass it", rounds);
		}
		all_stop();
		random_stops((e ? atof(e) : 2) * (double) tap_scaled(100) / 100);
		finish_all();
	}
	ax_tree_close(&cx, w->tree);
	ax_detach(&cx);
	return tap_done();
}
