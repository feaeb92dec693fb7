/*
 * test_rowex.c
 *	  The radix tree under ROWEX: its readers validate nothing, so each window
 *	  that a writer leaves open is gone through here.
 *
 *	  test_rowex [rounds [seed]]
 *
 * First known windows, one by one, with one known result: a reader is stopped
 * between two of its loads while writers change what it read, or a writer
 * between two of its stores while everything is read.  Then a writer is stopped
 * at any point where it holds latches, in trees of all kinds, thousands of times:
 * look-ups and scans both ways complete, are right, and neither wait nor
 * restart.  At last writers are processes that are stopped by a signal, anywhere.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/ax_area.h"
#include "model.h"

#define MAX_KEYS 4000

typedef enum op
{
	CONTAINS, LOOKUP, MANY, SCAN, SCAN_BACK, INSERT, REMOVE
} op;

static const char *const op_name[] = {"contains", "lookup", "lookup of many", "scan", "scan back", "insert", "remove"};

/* One process's calls and buffers. */
typedef struct caller
{
	ax_ctx		cx;
	uint64_t	tids[MAX_KEYS];
	uint32_t	off[MAX_KEYS + 1];
	uint8_t		keybuf[1 << 20];
	uint8_t		lastkey[16384];
} caller;

static caller me,
			other;
static ax_area *area;
static ax_tree *tree;
static uint64_t gen;

/* What the stopped thread does, and what came of it. */
static struct
{
	op			what;
	const mkey *key;			/* the universe; keys a..z are worked on */
	uint64_t	a,
				z;
	_Atomic uint64_t at;		/* the one it is at */
	ax_status	status;
	ax_status	each[MAX_KEYS];
	ax_batch	b;
	uint32_t	n;
	bool		more;
} v;

static sem_t go,
			stopped_or_done,
			resume;
static const char *volatile target; /* stop here; "*": wherever a latch is held */
static atomic_int countdown;	/* .. when met for the n-th time */
static const char *stopped_at;
static atomic_bool parked,
			quit;
static _Thread_local bool is_victim;

static void
hook(const char *name)
{
	const char *t = target;

	if (!is_victim || !t || (t[0] == '*' ? ax_latches_held(&other.cx) == 0 : strcmp(name, t) != 0))
		return;
	/* what is made in private has these points too */
	if (strncmp(name, "art.rowex.", 10) == 0 && ax_latches_held(&other.cx) == 0)
		return;
	if (atomic_fetch_sub(&countdown, 1) != 1)
		return;
	target = NULL;
	stopped_at = name;
	atomic_store(&parked, true);
	sem_post(&stopped_or_done);
	while (sem_wait(&resume))
		;
}

static uint64_t
tid_of(const mkey *k)
{
	uint64_t	t = 0;

	for (int i = 0; i < 6; i++)
		t = t << 8 | k->p[k->len - 6 + (uint32_t) i];
	return t;
}

static void
scan_batch(caller *c, ax_batch *b, const mkey *lo, const mkey *hi, bool back, uint32_t max)
{
	memset(b, 0, sizeof(*b));
	b->lo = (ax_bound) {lo->p, lo->len, false};
	b->hi = (ax_bound) {hi->p, hi->len, true};
	b->backward = back;
	b->want_keys = true;
	b->max = max;
	b->tids = c->tids;
	b->key_off = c->off;
	b->keybuf = c->keybuf;
	b->keybuf_size = sizeof(c->keybuf);
	b->lastkey = c->lastkey;
	b->lastkey_size = sizeof(c->lastkey);
}

static void
victim_op(void)
{
	const mkey *k = &v.key[v.a],
			   *e = &v.key[v.z];

	switch (v.what)
	{
		case INSERT:
		case REMOVE:
			for (uint64_t i = v.a; i <= v.z; i++)
			{
				atomic_store(&v.at, i);
				v.each[i] = v.what == INSERT ? ax_insert(&other.cx, tree, gen, v.key[i].p, v.key[i].len) :
					ax_remove(&other.cx, tree, gen, v.key[i].p, v.key[i].len);
			}
			atomic_store(&v.at, v.z + 1);
			break;
		case CONTAINS:
			v.status = ax_contains(&other.cx, tree, gen, k->p, k->len);
			break;
		case LOOKUP:
			{
				ax_found	f = {.tids = other.tids, .max = 100};

				v.status = ax_lookup(&other.cx, tree, gen, k->p, k->len - 6, &f);
				v.n = f.n;
				v.more = f.more;
				break;
			}
		case MANY:
			{
				/* one: its points are met as often as alone */
				uint32_t	done;

				v.status = ax_lookup_many(&other.cx, tree, gen,
						&(ax_keys) {&k->p, NULL, k->len - 6, 1}, &(ax_found) {.tids = other.tids, .max = 100}, &v.n, &done);
				v.more = done == 0;
				break;
			}
		default:
			scan_batch(&other, &v.b, k, e, v.what == SCAN_BACK, MAX_KEYS);
			v.status = ax_scan(&other.cx, tree, gen, &v.b);
			break;
	}
}

static void *
victim(void *arg)
{
	is_victim = true;
	for (;;)
	{
		while (sem_wait(&go))
			;
		if (atomic_load(&quit))
			return NULL;
		victim_op();
		sem_post(&stopped_or_done);
	}
}

/* Start it; true: it stands at the n-th "point" on its way. */
static bool
start(op what, const mkey *keys, uint64_t a, uint64_t z, const char *point, int n)
{
	v.what = what;
	v.key = keys;
	v.a = a;
	v.z = z;
	atomic_store(&parked, false);
	atomic_store(&countdown, n);
	target = point;
	sem_post(&go);
	while (sem_wait(&stopped_or_done))
		;
	target = NULL;
	return atomic_load(&parked);
}

/* Let it go on to its end. */
static void
finish(void)
{
	sem_post(&resume);
	while (sem_wait(&stopped_or_done))
		;
}

/* ---- a universe and its state ------------------------------------------------ */

typedef enum state
{
	OUT, IN, EITHER
} state;

static uint8_t keymem[MAX_KEYS][40];
static mkey uni[MAX_KEYS];
static state st[MAX_KEYS];
static uint64_t nuni;
static const char *scene;		/* what is being tested */
static uint8_t common[16];		/* all keys begin with so many of these bytes */
static uint32_t ncommon;
static bool mixed;				/* keys of several lengths */
static bool right;				/* as far as has been seen */

static void __attribute__((format(printf, 1, 2)))
wrong(const char *fmt,...)
{
	char		b[300];
	va_list		ap;

	va_start(ap, fmt);
	vsnprintf(b, sizeof(b), fmt, ap);
	va_end(ap);
	if (right)
		tap_diag("%s: %s", scene, b);
	right = false;
}

#define EMBED 1000				/* the key of one byte and a TID */
#define BRANCH 2000				/* leaves the common bytes at byte b */

static mkey
make(uint8_t *p, int b, int j)
{
	uint32_t	n = ncommon;

	memcpy(p, common, n);
	if (j >= BRANCH)
	{
		p[b]++;
		b = 77;
		j -= BRANCH;
	}
	p[n++] = (uint8_t) b;
	if (j != EMBED)
		p[n++] = (uint8_t) j;
	if (mixed)
		for (int x = 0; x < j % 3; x++)
			p[n++] = 0xAA;
	memset(p + n, 0, 6);
	p[n + 5] = j == EMBED ? 51 : (uint8_t) (j + 1);
	return (mkey) {p, n + 6};
}

static int
cmp(const void *a, const void *b)
{
	return mt_cmp(a, b);
}

static void
more_keys(int b, int j0, int j1)
{
	for (int j = j0; j <= j1; j++)
	{
		uni[nuni] = make(keymem[nuni], b, j);
		nuni++;
	}
}

static uint64_t
id(int b, int j)
{
	uint8_t		buf[40];
	mkey		k = make(buf, b, j);
	mkey	   *f = bsearch(&k, uni, nuni, sizeof(mkey), cmp);

	if (!f)
		abort();
	return (uint64_t) (f - uni);
}

static void
put(int b, int j0, int j1)
{
	for (int j = j0; j <= j1; j++)
	{
		uint64_t	i = id(b, j);

		if (ax_insert(&me.cx, tree, gen, uni[i].p, uni[i].len) != (st[i] == IN ? AX_EXISTS : AX_OK))
			wrong("insert of %d %d", b, j);
		st[i] = IN;
	}
}

static void
del(int b, int j0, int j1)
{
	for (int j = j0; j <= j1; j++)
	{
		uint64_t	i = id(b, j);

		if (ax_remove(&me.cx, tree, gen, uni[i].p, uni[i].len) != (st[i] == OUT ? AX_NOTFOUND : AX_OK))
			wrong("remove of %d %d", b, j);
		st[i] = OUT;
	}
}

static void
info(ax_tree_info *ti)
{
	if (ax_info(&me.cx, tree, gen, ti) != AX_OK)
		abort();
}

/* Is what the batch holds what is in key[a..z]?  *last: the last one of it. */
static bool
batch_right(const ax_batch *b, const mkey *key, const state *s, uint64_t a, uint64_t z, uint64_t *last)
{
	uint32_t	x = 0;

	for (uint64_t c = 0; c <= z - a; c++)
	{
		uint64_t	i = b->backward ? z - c : a + c;
		bool		hit;

		if (x == b->n && !b->exhausted)
			break;
		hit = x < b->n && b->key_off[x + 1] - b->key_off[x] == key[i].len &&
			memcmp(b->keybuf + b->key_off[x], key[i].p, key[i].len) == 0;
		if (s[i] != EITHER && hit != (s[i] == IN))
		{
			wrong("%s %s key %llu (entry %u of %u)", b->backward ? "scan back" : "scan",
				  hit ? "finds" : "misses", (unsigned long long) i, x, b->n);
			return false;
		}
		if (hit)
			*last = i;
		x += hit;
	}
	if (x < b->n)
		wrong("%s: entry %u of %u is out of order, or none of ours", b->backward ? "scan back" : "scan", x, b->n);
	return x == b->n;
}

static void
scan_all(const mkey *key, const state *s, uint64_t n, bool back, uint32_t max)
{
	uint64_t	a = 0,
				z = n - 1;

	for (;;)
	{
		ax_batch	b;
		uint64_t	last = 0;

		scan_batch(&me, &b, &key[a], &key[z], back, max);
		if (ax_scan(&me.cx, tree, gen, &b) != AX_OK || (b.n == 0 && !b.exhausted))
		{
			wrong("a scan does not complete");
			return;
		}
		if (!batch_right(&b, key, s, a, z, &last) || b.exhausted)
			return;
		if (back ? last == 0 : last == n - 1)
			return;
		*(back ? &z : &a) = back ? last - 1 : last + 1;
	}
}

/* Everything, in every way; nothing of it may wait or start over. */
static void
read_all(const mkey *key, const state *s, uint64_t n, bool wide)
{
	ax_tree_info before,
				after;

	info(&before);
	for (uint64_t i = 0; i < n; i++)
	{
		ax_status	x = ax_contains(&me.cx, tree, gen, key[i].p, key[i].len);
		ax_found	f = {.tids = me.tids, .max = MAX_KEYS};
		bool		there = false;

		if (x != AX_OK && x != AX_NOTFOUND)
			wrong("contains: status %d", (int) x);
		else if (s[i] != EITHER && (x == AX_OK) != (s[i] == IN))
			wrong("contains %s key %llu", x == AX_OK ? "finds" : "misses", (unsigned long long) i);
		if (!wide && i % 4)
			continue;
		x = ax_lookup(&me.cx, tree, gen, key[i].p, key[i].len - 6, &f);
		for (uint32_t k = 0; x == AX_OK && k < f.n; k++)
		{
			there |= me.tids[k] == tid_of(&key[i]);
			if (k && me.tids[k] <= me.tids[k - 1])
				wrong("lookup of key %llu: out of order", (unsigned long long) i);
		}
		if (x != AX_OK || (there ? s[i] == OUT : s[i] == IN && !f.more))
			wrong("lookup of key %llu: status %d, it %s", (unsigned long long) i, (int) x, there ? "finds" : "misses");
	}
	for (int back = 0; back < 2; back++)
	{
		scan_all(key, s, n, back, MAX_KEYS);
		scan_all(key, s, n, back, 7);
		if (wide)
			scan_all(key, s, n, back, 1);
	}
	info(&after);
	if (after.restarts != before.restarts || after.latch_waits != before.latch_waits ||
		after.parks != before.parks || after.pessimistic != before.pessimistic)
		wrong("a reader waited or started over: %llu restarts, %llu waits, %llu parks",
			  (unsigned long long) (after.restarts - before.restarts),
			  (unsigned long long) (after.latch_waits - before.latch_waits),
			  (unsigned long long) (after.parks - before.parks));
}

static void
open_tree(void)
{
	if (ax_tree_open(&me.cx, tree, AX_ART_ROWEX, 0, 0, &gen) != AX_OK)
		abort();
}

static void
close_tree(void)
{
	ax_tree_info ti;
	bool		good;
	char		msg[200] = "";

	if (tap_check(&me.cx, tree, gen, &ti, &good, msg, sizeof(msg)) != AX_OK || !good)
		wrong("check: %s", msg);
	ax_tree_close(&me.cx, tree);
	if (!tap_quiesce(&me.cx))
		wrong("something is still pending");
}

/* A scene begins: the universe is bytes[0..n) x j 0..99, and one key of each byte. */
static void
begin(const char *name)
{
	scene = name;
	right = true;
	nuni = 0;
}

/*
 * ... with j0..j1 of every b0, b0 + step .. (n of them) loaded at first, a leaf
 * for each if they are more than 16: a root of n children.
 */
static void
loaded(int b0, int step, int n, int j0, int j1)
{
	static const uint8_t *k[MAX_KEYS];
	static uint32_t len[MAX_KEYS];
	uint64_t	c = 0;

	qsort(uni, nuni, sizeof(mkey), cmp);
	memset(st, 0, sizeof(st));
	for (int i = 0; i < n; i++)
		for (int j = j0; j <= j1; j++)
		{
			uint64_t	x = id(b0 + i * step, j);

			st[x] = IN;
			k[c] = uni[x].p;
			len[c++] = uni[x].len;
		}
	open_tree();
	if (ax_load(&me.cx, tree, gen, &(ax_keys) {k, len, 0, c}, 100) != AX_OK)
		abort();
}

static void
nodes(unsigned n4, unsigned n16, unsigned n48, unsigned n256)
{
	ax_tree_info ti;

	info(&ti);
	if (ti.n4 != n4 || ti.n16 != n16 || ti.n48 != n48 || ti.n256 != n256)
		wrong("nodes: %llu %llu %llu %llu", (unsigned long long) ti.n4, (unsigned long long) ti.n16,
			  (unsigned long long) ti.n48, (unsigned long long) ti.n256);
}

static void
end(void)
{
	read_all(uni, st, nuni, true);
	close_tree();
	ok(right, "%s", scene);
}

/* Stopped there: or the scene is none. */
static void
stop(op what, int b, int j, int b2, int j2, const char *point, int n)
{
	if (!start(what, uni, id(b, j), id(b2, j2), point, n))
	{
		ok(false, "%s: the %s passes %s %d times", scene, op_name[what], point, n);
		(void) tap_done();
		exit(1);
	}
}

/* The reader goes on and returns what the universe holds, as s says. */
static void
reader_right(const state *s)
{
	uint64_t	last;

	finish();
	if (v.status != AX_OK && v.status != AX_NOTFOUND)
		wrong("status %d", (int) v.status);
	switch (v.what)
	{
		case CONTAINS:
			if (s[v.a] != EITHER && (v.status == AX_OK) != (s[v.a] == IN))
				wrong("contains %s it", v.status == AX_OK ? "finds" : "misses");
			break;
		case LOOKUP:
		case MANY:
			if (s[v.a] != EITHER && (v.n == 1) != (s[v.a] == IN))
				wrong("lookup returns %u", v.n);
			break;
		default:
			(void) batch_right(&v.b, uni, s, v.a, v.z, &last);
			break;
	}
}

/* The writer goes on, and its keys are in, or out. */
static void
writer_right(void)
{
	finish();
	for (uint64_t i = v.a; i <= v.z; i++)
	{
		if (v.each[i] != AX_OK)
			wrong("%s: status %d", op_name[v.what], (int) v.each[i]);
		st[i] = v.what == INSERT ? IN : OUT;
	}
}

/* The writer stands at its only key: that may be in or not, all else is known. */
static void
read_beside_writer(void)
{
	state		was = st[v.a];

	st[v.a] = EITHER;
	read_all(uni, st, nuni, true);
	st[v.a] = was;
}

/* ---- a reader between two of its loads ---------------------------------------- */

/*
 * Node4, Node16: separators are read, then the child.  A child that comes or
 * goes below it would move it.
 */
static void
membership(void)
{
	static const int children[] = {3, 12};

	for (int k = 0; k < 2; k++)
	{
		int			n = children[k];

		for (int what = CONTAINS; what <= MANY; what++)
		{
			begin("a separator comes between separators and child");
			more_keys(5, 0, 2);
			for (int i = 1; i <= n; i++)
				more_keys(10 * i, 0, 31);
			loaded(10, 10, n, 0, 31);
			nodes(n == 3, n == 12, 0, 0);
			stop((op) what, 20, 5, 20, 5, "art.find.slot", 1);
			put(5, 0, 2);
			reader_right(st);
			end();

			begin("a child goes between separators and child");
			for (int i = 1; i <= n; i++)
				more_keys(10 * i, 0, 19);
			loaded(10, 10, n, 0, 19);
			stop((op) what, 20, 5, 20, 5, "art.find.slot", 1);
			del(10, 0, 19);
			reader_right(st);
			nodes(n == 3, n == 12, 0, 0);
			end();
		}

		/*
		 * The separator would move down to 5, all of 10 go, and what is left
		 * become a node where it is: exact at 10 for who read the old separator.
		 */
		begin("a separator moves between separators and child");
		more_keys(5, 0, 60);
		more_keys(10, 0, 60);
		for (int i = 2; i <= n; i++)
			more_keys(10 * i, 0, 19);
		loaded(10, 10, n, 0, 19);
		stop(CONTAINS, 10, 50, 10, 50, "art.find.slot", 1);
		put(5, 0, 2);
		del(10, 0, 19);
		put(5, 3, 60);
		reader_right(st);
		end();

		/* all that is left has a byte above the separator, and becomes a node */
		begin("a leaf becomes a node above its separator, between separators and child");
		more_keys(10, 0, 7);
		more_keys(15, 0, 60);
		for (int i = 2; i <= n; i++)
			more_keys(10 * i, 0, 19);
		loaded(20, 10, n - 1, 0, 19);
		put(10, 0, 7);
		put(15, 0, 7);
		stop(CONTAINS, 15, 3, 15, 3, "art.find.slot", 1);
		del(10, 0, 7);
		put(15, 8, 60);
		reader_right(st);
		end();
	}
}

/* Node48: the index is read, then the slot. */
static void
slots(void)
{
	for (int what = CONTAINS; what <= MANY; what++)
	{
		begin("Node48: a leaf is cut between index and slot");
		for (int i = 1; i <= 30; i++)
			more_keys(4 * i, 0, 30);
		more_keys(6, 0, 20);
		loaded(4, 4, 30, 0, 19);
		nodes(0, 0, 1, 0);
		put(6, 0, 9);
		stop((op) what, 6, 3, 6, 3, "art.find.slot", 1);
		put(4, 20, 30);
		reader_right(st);
		nodes(0, 0, 1, 0);
		end();
	}

	begin("Node48: a leaf becomes a node between index and slot");
	for (int i = 1; i <= 30; i++)
		more_keys(4 * i, 0, i == 1 ? 60 : 19);
	more_keys(6, 40, 40);
	loaded(4, 4, 30, 0, 19);
	stop(CONTAINS, 6, 40, 6, 40, "art.find.slot", 1);
	put(4, 20, 60);
	reader_right(st);
	end();

	begin("Node48: a slot is given again between index and slot");
	for (int i = 1; i <= 30; i++)
		more_keys(4 * i, 0, 19);
	more_keys(2, EMBED, EMBED);
	more_keys(9, EMBED, EMBED);
	loaded(4, 4, 30, 0, 19);
	stop(CONTAINS, 9, EMBED, 9, EMBED, "art.find.slot", 1);
	del(8, 0, 19);
	put(2, EMBED, EMBED);
	reader_right(st);
	end();

	begin("Node48: all slots are given");
	for (int i = 1; i <= 30; i++)
		more_keys(4 * i, 0, 19);
	more_keys(2, EMBED, EMBED);
	loaded(4, 4, 30, 0, 19);
	for (int i = 0; i < 200; i++)
	{
		put(2, EMBED, EMBED);
		del(2, EMBED, EMBED);
	}
	nodes(0, 0, 1, 0);
	end();
}

/* A leaf: the live bitmap is read, then the entries. */
static void
entries(void)
{
	for (int back = 0; back < 2; back++)
	{
		static state was[MAX_KEYS];

		begin("a leaf's slot is free and full again, within a scan");
		for (int i = 1; i <= 3; i++)
			more_keys(10 * i, 0, 29);
		loaded(10, 10, 3, 0, 19);
		stop(back ? SCAN_BACK : SCAN, 10, 0, 30, 29, "art.scan.leaf_ordered", 2);
		memcpy(was, st, sizeof(st));
		del(20, 3, 3);
		put(20, 25, 25);
		reader_right(was);
		end();

		begin("the bytes of a removed entry, within a scan");
		mixed = true;
		for (int i = 1; i <= 3; i++)
			more_keys(10 * i, 0, 39);
		loaded(10, 10, 3, 0, 16);
		put(20, 17, 19);		/* its leaf has grown, and has room */
		stop(back ? SCAN_BACK : SCAN, 10, 0, 30, 39, "art.scan.leaf_ordered", 2);
		memcpy(was, st, sizeof(st));
		del(20, 19, 19);
		put(20, 20, 21);
		reader_right(was);
		end();
		mixed = false;
	}
	begin("a leaf's slot is free and full again, within a look-up");
	for (int i = 1; i <= 3; i++)
		more_keys(10 * i, 0, 29);
	loaded(10, 10, 3, 0, 19);
	stop(LOOKUP, 20, 5, 20, 5, "art.lookup.matched", 1);
	del(20, 6, 19);
	put(20, 20, 29);
	reader_right(st);
	end();
}

/*
 * The scan stands in a node that is out of date, and goes from a leaf that has
 * grown over its neighbour's bytes into that neighbour, as it was.
 */
static void
stale_scan(void)
{
	begin("a leaf has grown over its neighbour's bytes");
	more_keys(3, 0, 0);
	more_keys(5, 0, 0);
	more_keys(25, 7, 7);
	for (int i = 1; i <= 3; i++)
		more_keys(10 * i, 0, 19);
	loaded(10, 10, 3, 0, 19);
	stop(SCAN, 3, 0, 30, 19, "art.scan.leaf_version", 1);
	put(5, 0, 0);				/* the node is frozen now */
	del(20, 0, 19);
	put(3, 0, 0);				/* the hole goes; 5's leaf has its bytes */
	put(25, 7, 7);
	reader_right(st);
	end();

	/* the start lies in a leaf at the first look, and behind a node at the next */
	begin("a leaf at the start becomes a node before it");
	more_keys(10, 0, 60);
	more_keys(15, 0, 9);
	for (int i = 2; i <= 3; i++)
		more_keys(10 * i, 0, 19);
	loaded(20, 10, 2, 0, 19);
	put(10, 0, 9);
	put(15, 0, 9);
	stop(SCAN, 15, 0, 30, 19, "art.scan.slot", 1);
	del(15, 0, 9);
	put(10, 10, 60);
	reader_right(st);
	end();

	begin("holes at both ends and between");
	for (int i = 1; i <= 12; i++)
		more_keys(10 * i, 0, 19);
	more_keys(14, 5, 6);
	more_keys(10, EMBED, EMBED);
	loaded(10, 10, 12, 0, 19);
	for (int i = 1; i <= 12; i += 1 + (i % 3))
		del(10 * i, 0, 19);
	nodes(0, 1, 0, 0);
	read_all(uni, st, nuni, true);
	put(14, 5, 6);
	nodes(0, 1, 0, 0);
	end();
}

/* A prefix is split while a reader is on its way to the node. */
static void
prefixes(void)
{
	static const uint32_t where[] = {0, 3, 5, 9, 11};
	static const char *const at[] = {"art.hop.after_child_read", "art.hop.after_child_read",
		"art.hop.after_child_read",
	"art.scan.root", "art.scan.root"};

	ncommon = 12;
	memcpy(common, "a long start", 12);
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++)
		for (int what = CONTAINS; what <= SCAN_BACK; what++)
		{
			begin("a prefix is split behind a reader");
			for (int k = 1; k <= 3; k++)
				more_keys(10 * k, 0, 25);
			more_keys((int) where[i], BRANCH, BRANCH + 2);
			loaded(10, 10, 3, 0, 19);
			stop((op) what, 20, 3, 20, what < SCAN ? 3 : 19, at[what], 1);
			put((int) where[i], BRANCH, BRANCH + 2);
			put(30, 20, 25);
			reader_right(st);
			end();
			begin("a prefix is split, and that not finished");
			for (int k = 1; k <= 3; k++)
				more_keys(10 * k, 0, 19);
			more_keys((int) where[i], BRANCH, BRANCH);
			loaded(10, 10, 3, 0, 19);
			stop(INSERT, (int) where[i], BRANCH, (int) where[i], BRANCH,
				 what == CONTAINS ? "art.rowex.latched" : "art.rowex.prefix", 1);
			read_beside_writer();
			writer_right();
			end();
		}
	ncommon = 0;
}

/* ---- a writer between two of its stores ---------------------------------------- */

/* n children of a root, 4 bytes apart. */
static void
root_of(const char *name, int n)
{
	begin(name);
	for (int i = 1; i <= n; i++)
		more_keys(4 * i, 0, 40);
	more_keys(6, 0, 40);
	more_keys(2, EMBED, EMBED);
	loaded(4, 4, n, 0, 19);
	nodes(n <= 4, n > 4 && n <= 16, n > 16 && n <= 48, n > 48);
}

static void
stores(void)
{
	static const int children[] = {3, 12, 30, 60};

	for (int k = 0; k < 4; k++)
	{
		int			n = children[k];

		for (int nth = 1; nth <= 4; nth++)
		{
			const char *point = n < 17 ? "art.rowex.copied" : "art.rowex.place";

			if (n < 17 && nth > 1)
				break;
			root_of("a leaf is cut, store by store", n);
			put(6, 0, 11);
			stop(INSERT, 4, 20, 4, 20, point, nth);
			read_beside_writer();
			writer_right();
			end();

			root_of("a leaf gives way to a node, store by store", n);
			put(4, 20, 31);
			stop(INSERT, 4, 32, 4, 32, n < 17 ? "art.rowex.latched" : point, nth);
			read_beside_writer();
			writer_right();
			end();

			if (n > 48)
			{
				root_of("a leaf is replaced, store by store", n);
				put(4, 20, 25);
				stop(INSERT, 4, 26, 4, 26, "art.rowex.range", nth);
				read_beside_writer();
				writer_right();
				end();
			}
			if (n > 16)
			{
				root_of("a leaf goes, store by store", n);
				del(8, 1, 19);
				stop(REMOVE, 8, 0, 8, 0, "art.rowex.range", nth);
				read_beside_writer();
				writer_right();
				/* and another grows over its bytes */
				stop(INSERT, 8, 5, 8, 5, "art.rowex.range", nth);
				read_beside_writer();
				writer_right();
				end();
			}
		}

		root_of("a child comes", n);
		stop(INSERT, 2, EMBED, 2, EMBED, n < 17 ? "art.rowex.copied" : n < 49 ? "art.rowex.index" : "art.rowex.range", 1);
		read_beside_writer();
		writer_right();
		stop(REMOVE, 2, EMBED, 2, EMBED, "art.rowex.latched", 1);
		read_beside_writer();
		writer_right();
		end();
	}

	root_of("an entry comes", 3);
	stop(INSERT, 8, 20, 8, 20, "art.rowex.put", 1);
	/* not yet published: nobody finds it */
	read_all(uni, st, nuni, true);
	writer_right();
	stop(REMOVE, 8, 3, 8, 3, "art.rowex.drop", 1);
	read_all(uni, st, nuni, true);
	writer_right();
	del(12, 1, 19);
	stop(REMOVE, 12, 0, 12, 0, "art.rowex.unlinked", 1);
	st[v.a] = OUT;
	read_all(uni, st, nuni, true);
	writer_right();
	end();
}

/* ---- a writer stopped anywhere --------------------------------------------------- */

static const char *const latched_points[] = {
	"art.rowex.latched", "art.rowex.put", "art.rowex.index", "art.rowex.range", "art.rowex.place",
	"art.rowex.copied", "art.rowex.prefix", "art.rowex.drop", "art.rowex.unlinked"
};
#define NPOINTS ((int) (sizeof(latched_points) / sizeof(latched_points[0])))
static uint64_t met[NPOINTS];

static void
stopped_writer(keykind kind, uint64_t keys, uint64_t rounds, uint64_t seed)
{
	static state s[MAX_KEYS];
	model		m;
	uint64_t	stops = 0;

	mt_universe(&m, kind, keys, seed);
	if (m.n > MAX_KEYS)
		abort();
	scene = keykind_name[kind];
	right = true;
	memset(s, 0, sizeof(s));
	open_tree();
	for (uint64_t round = 0; round < rounds && right; round++)
	{
		uint64_t	r = tap_rand(&m.seed);
		op			what = (r & 1) ? INSERT : REMOVE;
		uint64_t	a = (r >> 8) % m.n;
		uint64_t	z = a + (r >> 24) % 100;
		const char *point = (r >> 40) & 3 ? latched_points[(r >> 42) % (uint64_t) NPOINTS] : "*";
		bool		stopped;

		/* another tree: nearly empty, nearly full, or between */
		if (round % 32 == 0)
			for (uint64_t i = 0; i < m.n; i++)
			{
				bool		in = tap_rand(&m.seed) % 100 < (r >> 16) % 5 * 25;
				ax_status	x = in ? ax_insert(&me.cx, tree, gen, m.key[i].p, m.key[i].len) :
					ax_remove(&me.cx, tree, gen, m.key[i].p, m.key[i].len);

				if (x != (in == (s[i] == IN) ? in ? AX_EXISTS : AX_NOTFOUND : AX_OK))
					wrong("%s of key %llu: status %d", in ? "insert" : "remove", (unsigned long long) i, (int) x);
				s[i] = in ? IN : OUT;
			}
		if (z >= m.n)
			z = m.n - 1;
		stopped = start(what, m.key, a, z, point, (int) (r >> 50) % (point[0] == '*' ? 200 : 12) + 1);
		if (stopped)
		{
			uint64_t	at = atomic_load(&v.at);
			state		was[MAX_KEYS];

			memcpy(was, s, sizeof(was));
			for (uint64_t i = a; i < at; i++)
				s[i] = what == INSERT ? IN : OUT;
			if (at <= z)
				s[at] = EITHER;
			for (int i = 0; i < NPOINTS; i++)
				met[i] += strcmp(latched_points[i], stopped_at) == 0;
			read_all(m.key, s, m.n, false);
			if (!right)
				tap_diag("while %s of keys %llu to %llu stood at %s, at key %llu", op_name[what],
						 (unsigned long long) a, (unsigned long long) z, stopped_at, (unsigned long long) at);
			stops++;
			memcpy(s, was, sizeof(was));
			finish();
		}
		for (uint64_t i = a; i <= z; i++)
		{
			if (v.each[i] != ((what == INSERT) != (s[i] == IN) ? AX_OK : what == INSERT ? AX_EXISTS : AX_NOTFOUND))
				wrong("%s of key %llu: status %d", op_name[what], (unsigned long long) i, (int) v.each[i]);
			s[i] = what == INSERT ? IN : OUT;
		}
		if (round % 16 == 0)
		{
			ax_tree_info ti;
			bool		good;
			char		msg[200] = "";

			if (tap_check(&me.cx, tree, gen, &ti, &good, msg, sizeof(msg)) != AX_OK || !good)
				wrong("check: %s", msg);
			(void) ax_poll(&me.cx);
		}
	}
	read_all(m.key, s, m.n, false);
	close_tree();
	ok(right && stops > 0, "%s: all was read beside a stopped writer %llu times", scene, (unsigned long long) stops);
	mt_free(&m);
}

/* ---- writers are processes, stopped by a signal ----------------------------------- */

#define WRITERS 2

typedef struct shared
{
	_Atomic uint64_t scans,
				looks,
				changes[WRITERS];
	_Atomic int latched[WRITERS];
	_Atomic int bad,
				done;
} shared;

static shared *sh;
static int	writer_no;

static void
writer_hook(const char *name)
{
	static uint64_t rng = 99;

	if (ax_latches_held(&me.cx) == 0)
		return;
	atomic_store(&sh->latched[writer_no], 1);
	if (tap_rand(&rng) % 64 == 0)
		nanosleep(&(struct timespec) {0, 100000}, NULL);
	atomic_store(&sh->latched[writer_no], 0);
}

static void
write_process(const model *m, int no)
{
	uint64_t	rng = (uint64_t) no * 77 + 5;

	memset(&me.cx, 0, sizeof(me.cx));
	ax_attach(&me.cx, area, 2 + no, 100u + (unsigned) no, &ax_port_default);
	writer_no = no;
	tap_point_hook = writer_hook;
	while (!atomic_load(&sh->done))
	{
		uint64_t	r = tap_rand(&rng);
		uint64_t	i = (r >> 8) % m->n;
		bool		insert = (r >> 1) & 1;

		for (uint64_t n = 0; n < 60 && i < m->n; n++, i++)
		{
			ax_status	x;

			if (i % 3 == 0)
				continue;
			x = insert ? ax_insert(&me.cx, tree, gen, m->key[i].p, m->key[i].len) :
				ax_remove(&me.cx, tree, gen, m->key[i].p, m->key[i].len);
			if (x == AX_NOMEM || x == AX_STALE)
				atomic_store(&sh->bad, 1);
			atomic_fetch_add(&sh->changes[no], 1);
		}
	}
	ax_detach(&me.cx);
	_exit(0);
}

static void
read_process(const model *m)
{
	static state s[MAX_KEYS];
	uint64_t	rng = 3;

	memset(&me.cx, 0, sizeof(me.cx));
	ax_attach(&me.cx, area, 2 + WRITERS, 200, &ax_port_default);
	tap_point_hook = NULL;
	for (uint64_t i = 0; i < m->n; i++)
		s[i] = i % 3 ? EITHER : IN;
	while (!atomic_load(&sh->done))
	{
		for (int i = 0; i < 300; i++)
		{
			const mkey *k = &m->key[tap_rand(&rng) % ((m->n + 2) / 3) * 3];
			ax_found	f = {.tids = me.tids, .max = MAX_KEYS};

			if (ax_contains(&me.cx, tree, gen, k->p, k->len) != AX_OK)
				wrong("contains misses a key");
			if (ax_lookup(&me.cx, tree, gen, k->p, k->len - 6, &f) != AX_OK || f.n == 0)
				wrong("lookup misses a key");
			atomic_fetch_add(&sh->looks, 1);
		}
		for (int back = 0; back < 2; back++)
		{
			scan_all(m->key, s, m->n, back, (tap_rand(&rng) & 1) ? MAX_KEYS : 50);
			atomic_fetch_add(&sh->scans, 1);
		}
		if (!right)
		{
			atomic_store(&sh->bad, 1);
			break;
		}
	}
	ax_detach(&me.cx);
	_exit(0);
}

static void
signals(keykind kind, uint64_t keys, uint64_t ms, uint64_t seed)
{
	model		m;
	pid_t		pid[WRITERS + 1];
	uint64_t	until = ax_port_default.now_ns() + ms * 1000000;
	uint64_t	stops = 0,
				inside = 0;
	bool		good = true;
	uint64_t	rng = seed;

	mt_universe(&m, kind, keys, seed);
	scene = "processes";
	right = true;
	open_tree();
	for (uint64_t i = 0; i < m.n; i += 3)
		if (ax_insert(&me.cx, tree, gen, m.key[i].p, m.key[i].len) != AX_OK)
			abort();
	sh = tap_shared(sizeof(*sh));
	fflush(NULL);
	for (int i = 0; i <= WRITERS; i++)
	{
		pid[i] = fork();
		if (pid[i] < 0)
			abort();
		if (pid[i] == 0)
		{
			if (i < WRITERS)
				write_process(&m, i);
			else
				read_process(&m);
		}
	}
	while (good && ax_port_default.now_ns() < until && !atomic_load(&sh->bad))
	{
		int			w = (int) (tap_rand(&rng) % WRITERS);
		int			status;
		uint64_t	looks,
					scans,
					deadline;

		nanosleep(&(struct timespec) {0, (long) (tap_rand(&rng) % 3000000)}, NULL);
		if (kill(pid[w], SIGSTOP) || waitpid(pid[w], &status, WUNTRACED) != pid[w] || !WIFSTOPPED(status))
		{
			good = false;
			break;
		}
		stops++;
		inside += (uint64_t) atomic_load(&sh->latched[w]);
		looks = atomic_load(&sh->looks);
		scans = atomic_load(&sh->scans);
		deadline = ax_port_default.now_ns() + UINT64_C(20000000000);
		/* look-ups, and a whole scan each way, all begun since */
		while (atomic_load(&sh->looks) < looks + 600 || atomic_load(&sh->scans) < scans + 3)
		{
			if (atomic_load(&sh->bad) || ax_port_default.now_ns() > deadline)
			{
				good = false;
				tap_diag("the reader stands: %llu look-ups, %llu scans while a writer is stopped",
						 (unsigned long long) (atomic_load(&sh->looks) - looks),
						 (unsigned long long) (atomic_load(&sh->scans) - scans));
				break;
			}
			nanosleep(&(struct timespec) {0, 200000}, NULL);
		}
		kill(pid[w], SIGCONT);
	}
	atomic_store(&sh->done, 1);
	for (int i = 0; i <= WRITERS; i++)
	{
		int			status;

		if (waitpid(pid[i], &status, 0) != pid[i] || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
			good = false;
	}
	good = good && !atomic_load(&sh->bad);
	close_tree();
	ok(good && right && (inside > 0 || stops < 30), "%s: a writer was stopped %llu times, %llu times with latches held; meanwhile %llu look-ups, %llu scans",
	   keykind_name[kind], (unsigned long long) stops, (unsigned long long) inside,
	   (unsigned long long) atomic_load(&sh->looks), (unsigned long long) atomic_load(&sh->scans));
	tap_unmap(sh, sizeof(*sh));
	mt_free(&m);
}

int
main(int argc, char **argv)
{
	static const struct
	{
		keykind		kind;
		uint64_t	keys;
	}			sets[] = {
		{KK_DENSE, 600}, {KK_SHARED, 300}, {KK_UUID, 800}, {KK_DUPS, 600}, {KK_DUPS_RANDOM, 600},
		{KK_TWO, 300}, {KK_TINY, 200}, {KK_LENGTHS, 200}, {KK_MIDDLE, 120}, {KK_PAIR, 600},
		{KK_STEP997, 1200}
	};
	pthread_t	thread;
	uint64_t	rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : tap_scaled(1500);
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	sem_init(&go, 0, 0);
	sem_init(&stopped_or_done, 0, 0);
	sem_init(&resume, 0, 0);
	area = tap_area((size_t) 128 << 20, 3 + WRITERS, 1 << 20);
	ax_attach(&me.cx, area, 0, 1, &ax_port_default);
	ax_attach(&other.cx, area, 1, 2, &ax_port_default);
	tree = ax_tree_alloc(&me.cx);
	tap_point_hook = hook;
	if (pthread_create(&thread, NULL, victim, NULL))
		abort();

	membership();
	slots();
	entries();
	stale_scan();
	prefixes();
	stores();
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		stopped_writer(sets[i].kind, sets[i].keys, rounds, seed * 100 + i);
	for (int i = 0; i < NPOINTS; i++)
		ok(met[i] > 0 || rounds < 1500, "%s: stopped %llu times", latched_points[i], (unsigned long long) met[i]);
	tap_point_hook = NULL;
	atomic_store(&quit, true);
	sem_post(&go);
	pthread_join(thread, NULL);
	ax_detach(&other.cx);
	ax_detach(&me.cx);
#ifdef __SANITIZE_ADDRESS__
	ax_poisoning = false;		/* each process has its own idea of what is free */
#endif
	area = tap_area((size_t) 128 << 20, 3 + WRITERS, 1 << 20);
	ax_attach(&me.cx, area, 0, 1, &ax_port_default);
	tree = ax_tree_alloc(&me.cx);
	signals(KK_DENSE, 600, tap_scaled(2000), seed);
	signals(KK_DUPS_RANDOM, 1500, tap_scaled(2000), seed + 1);
	ax_detach(&me.cx);
	return tap_done();
}
