/*
 * test_bt_races.c
 *	  The B+-tree's races, one by one: an operation is stopped at a pause point,
 *	  the tree is changed around it on purpose (that leaf split, this one merged,
 *	  the root grown, all of it removed), it goes on, and what it must return is
 *	  known exactly.
 *
 * Everything is done for leaves of one key length, which are split in place, and
 * of several, which are copied; for the smallest pages and for the default.
 * Every pause point of the B+-tree must have been met.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/btree/bt_tree.h"
#include "tap.h"

#define STEP	4				/* of the universe's keys, every fourth is in at first */
#define MAX_U	40000
#define MAX_LEN 64

typedef enum op
{
	INSERT, REMOVE, CONTAINS, LOOKUP, MANY, SCAN, SCAN_BACK, NOPS
} op;

static const char *const op_name[NOPS] = {"insert", "remove", "contains", "look-up", "look-up of many", "scan", "scan back"};

static const char *const points[] = {
	"bt.root_read", "bt.child_read", "bt.child_version", "bt.slot_read", "bt.leaf_read",
	"bt.leaf_before_lock", "bt.first.before_lock", "bt.split.copied", "bt.split.before_lock", "bt.split.published",
	"bt.merge.copied", "bt.merge.before_lock", "bt.merge.published", "bt.remove.leaf_read",
	"bt.root_before_lock",
	"bt.contains.leaf_read", "bt.lookup.leaf_read", "bt.scan.leaf_found", "bt.scan.leaf_read",
	"bt.scan.advance", "bt.scan.child_read"
};
#define NPOINTS ((int) (sizeof(points) / sizeof(points[0])))
static uint64_t met[NPOINTS];

/* ---- the tree and what it should hold ---- */

static ax_ctx cx;
static ax_tree *tree;
static uint64_t gen;
static bool mixed;				/* keys of several lengths */
static uint32_t page_bytes;
static int	universe;			/* keys are numbered from 0 */
static bool in[MAX_U];
static bool before[MAX_U];		/* .. when the operation was stopped */
static char doing[200];

static void die(const char *fmt,...) __attribute__((format(printf, 1, 2), noreturn));
static void
die(const char *fmt,...)
{
	char		b[300];
	va_list		ap;

	va_start(ap, fmt);
	vsnprintf(b, sizeof(b), fmt, ap);
	va_end(ap);
	ok(false, "%s: %s", doing, b);
	(void) tap_done();
	exit(1);
}

/* Key i: a marker, its number, perhaps some bytes more, and a TID. */
static uint32_t
make_key(int i, uint8_t *k)
{
	uint32_t	len = 9 + (mixed ? (uint32_t) (i * 7 % 5) * 4 : 0);
	uint64_t	x = __builtin_bswap64((uint64_t) i * 3);

	memset(k, 'x', len);
	k[0] = 1;
	memcpy(k + 1, &x, 8);
	memset(k + len, 0, 4);
	k[len + 4] = (uint8_t) (i >> 8);
	k[len + 5] = (uint8_t) i;
	return len + 6;
}

static int
key_number(const uint8_t *k)
{
	uint64_t	x;

	memcpy(&x, k + 1, 8);
	return (int) (__builtin_bswap64(x) / 3);
}

/* Keys put in since it was set to 0. */
static int	put_log[MAX_U];
static int	nput;

static void
put(int i)
{
	uint8_t		k[MAX_LEN];
	uint32_t	len = make_key(i, k);
	ax_status	x = ax_insert(&cx, tree, gen, k, len);

	if (x != (in[i] ? AX_EXISTS : AX_OK))
		die("insert of key %d: status %d", i, (int) x);
	if (nput < MAX_U)
		put_log[nput++] = i;
	in[i] = true;
}

static void
del(int i)
{
	uint8_t		k[MAX_LEN];
	uint32_t	len = make_key(i, k);
	ax_status	x = ax_remove(&cx, tree, gen, k, len);

	if (x != (in[i] ? AX_OK : AX_NOTFOUND))
		die("remove of key %d: status %d", i, (int) x);
	in[i] = false;
}

static void
open_tree(int n)
{
	if (n > MAX_U)
		abort();
	universe = n;
	memset(in, 0, sizeof(in));
	if (ax_tree_open(&cx, tree, AX_BTREE_OLC, 0, page_bytes, &gen) != AX_OK)
		die("open");
}

static void
close_tree(void)
{
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* A tree of three levels, every STEP-th key in it, put in at random. */
static void
fill_tree(void)
{
	static int	order[MAX_U / STEP + 1];
	uint64_t	seed = 4711;
	int			m;

	open_tree(page_bytes == 256 ? 6000 : 34000);
	m = universe / STEP;
	for (int i = 0; i < m; i++)
		order[i] = i * STEP;
	for (int i = m - 1; i > 0; i--)
	{
		int			j = (int) (tap_rand(&seed) % (uint64_t) (i + 1));
		int			x = order[i];

		order[i] = order[j];
		order[j] = x;
	}
	for (int i = 0; i < m; i++)
		put(order[i]);
	nput = 0;
}

/* ---- looking at its pages; nobody writes ---- */

static bt_page *
root_page(void)
{
	return bt_ref(&atomic_load(&tree->store)->root);
}

static int
height(void)
{
	bt_page    *p = root_page();

	return p ? p->level + 1 : 0;
}

/* The page of a level that key i belongs to. */
static bt_page *
page_of(int i, int level)
{
	uint8_t		k[MAX_LEN];
	uint32_t	len = make_key(i, k);
	bt_page    *p = root_page();

	while (p && p->level > level)
		p = bt_ref(&bt_children(p)[bt_child_inside(p, NULL, k, len, false)]);
	return p;
}

static int
entry_number(const bt_page *p, int i)
{
	bt_view		v;
	uint8_t		k[9];

	bt_get(p, i, &v);
	bt_view_bytes(&v, 0, 9, k);
	return key_number(k);
}

static int
first_in(const bt_page *p)
{
	return entry_number(p, 0);
}

static int
last_in(const bt_page *p)
{
	return entry_number(p, bt_count(p) - 1);
}

/* All leaves from left to right. */
static bt_page *leaf[MAX_U];
static int	nleaves;

static void
collect(bt_page *p)
{
	if (p->level == 0)
		leaf[nleaves++] = p;
	else
		for (int i = 0; i <= bt_count(p); i++)
			collect(bt_ref(&bt_children(p)[i]));
}

static void
list_leaves(void)
{
	nleaves = 0;
	if (root_page())
		collect(root_page());
}

static bt_page *
parent(int i)
{
	return page_of(first_in(leaf[i]), 1);
}

/*
 * The number of a leaf in the middle that, like its neighbours, can be split
 * without more ado.  They have the same parent, or, d 1 or -1, the neighbour on
 * that side is the first to have another.
 */
static int
middle_leaf(int d)
{
	list_leaves();
	for (int i = nleaves / 4; i + 2 < nleaves; i++)
	{
		bool		good = bt_count(parent(i)) + 2 < parent(i)->cap;

		for (int j = i - 2; j <= i + 2; j++)
			good = good && bt_count(leaf[j]) * 3 >= leaf[j]->cap &&
				(parent(j) == parent(i)) == !((d > 0 && j > i) || (d < 0 && j < i));
		if (good)
			return i;
	}
	die("no leaf in the middle");
}

/* ---- changes made on purpose ---- */

/* Split the leaf that ends with key i by keys beside it: i goes elsewhere. */
static void
split_leaf(int i)
{
	bt_page    *p = page_of(i, 0);
	int			from = first_in(p);

	for (int x = i - 1; page_of(i, 0) == p; x--)
	{
		if (x <= from)
			die("the leaf of key %d was not split", i);
		if (!in[x])
			put(x);
	}
}

/* The same from the other side: keys are put in at its beginning. */
static void
split_leaf_left(int i)
{
	bt_page    *p = page_of(i, 0);
	int			n = bt_count(page_of(i, 1));
	int			to = last_in(p);

	for (int x = first_in(p) + 1; bt_count(page_of(i, 1)) == n; x++)
	{
		if (x >= to)
			die("the leaf of key %d was not split", i);
		if (!in[x])
			put(x);
	}
}

/* Take out what lies about key i, but not i, until its leaf is merged. */
static void
merge_leaf(int i)
{
	bt_page    *p = page_of(i, 0);

	for (int d = 1; page_of(i, 0) == p; d++)
	{
		if (i - d < 0 && i + d >= universe)
			die("the leaf of key %d was not merged", i);
		if (i - d >= 0 && in[i - d])
			del(i - d);
		if (i + d < universe && in[i + d])
			del(i + d);
	}
}

static void
all_but(int keep, bool to)
{
	for (int i = 0; i < universe; i++)
		if (i != keep && in[i] != to)
			to ? put(i) : del(i);
}

/* ---- the operation that is stopped ---- */

static struct
{
	ax_ctx		cx;
	op			what;
	int			key;
	ax_status	status;
	uint32_t	n;
	uint64_t	tid;
	int			got[MAX_U];		/* a scan's keys */
	int			ngot;
} v;

static sem_t go,
			stopped_or_done,
			resume;
static int	target = -1;		/* stop here .. */
static int	countdown;			/* .. when met for the n-th time */
static bool parked,
			quit;
static _Thread_local bool is_victim;
static void (*own_hook) (const char *name);	/* for the other thread's operations */

static void
hook(const char *name)
{
	if (!is_victim)
	{
		if (own_hook)
			own_hook(name);
		return;
	}
	if (target < 0 || strcmp(name, points[target]) != 0 || --countdown > 0)
		return;
	met[target]++;
	target = -1;
	parked = true;
	sem_post(&stopped_or_done);
	while (sem_wait(&resume))
		;
}

static void
victim_scan(void)
{
	static uint64_t tids[MAX_U];
	static uint32_t off[MAX_U + 1];
	static uint8_t keybuf[MAX_U * MAX_LEN];
	uint8_t		last[4 * MAX_LEN],
				from[MAX_LEN];
	bool		back = v.what == SCAN_BACK;
	ax_batch	b = {.lo = {from, 0, false}, .hi = {from, 0, true}, .backward = back,
		.want_keys = true, .max = MAX_U, .tids = tids, .key_off = off, .keybuf = keybuf,
	.keybuf_size = sizeof(keybuf), .lastkey = last, .lastkey_size = sizeof(last)};

	v.ngot = 0;
	do
	{
		v.status = ax_scan(&v.cx, tree, gen, &b);
		if (v.status != AX_OK)
			return;
		for (uint32_t i = 0; i < b.n && v.ngot < MAX_U; i++)
			v.got[v.ngot++] = key_number(keybuf + off[i]);
		if (b.n)
		{
			memcpy(from, last, b.lastlen);
			*(back ? &b.hi : &b.lo) = (ax_bound) {from, b.lastlen, !back};
		}
	} while (!b.exhausted);
}

static void *
victim(void *arg)
{
	is_victim = true;
	for (;;)
	{
		uint8_t		k[MAX_LEN];
		uint32_t	len;
		ax_found	f = {.tids = &v.tid, .max = 1};

		while (sem_wait(&go))
			;
		if (quit)
			return NULL;
		len = make_key(v.key, k);
		switch (v.what)
		{
			case INSERT:
				v.status = ax_insert(&v.cx, tree, gen, k, len);
				break;
			case REMOVE:
				v.status = ax_remove(&v.cx, tree, gen, k, len);
				break;
			case CONTAINS:
				v.status = ax_contains(&v.cx, tree, gen, k, len);
				break;
			case LOOKUP:
				v.status = ax_lookup(&v.cx, tree, gen, k, len - 6, &f);
				v.n = f.n;
				if (v.status == AX_OK && v.n == 0)
					v.status = AX_NOTFOUND;
				break;
			case MANY:
				{
					/* one: its points are met as often as alone */
					const uint8_t *one = k;
					uint32_t	n,
								done;

					v.status = ax_lookup_many(&v.cx, tree, gen,
							&(ax_keys) {&one, NULL, len - 6, 1}, &(ax_found) {.tids = &v.tid, .max = 1}, &n, &done);
					if (v.status == AX_OK && (done != 1 || n == 0))
						v.status = done == 1 ? AX_NOTFOUND : AX_BUFFER;
					break;
				}
			default:
				victim_scan();
				break;
		}
		sem_post(&stopped_or_done);
	}
}

/* Begin; true: it stands at the point, met for the nth time. */
static bool
begin(op what, int key, const char *point, int nth)
{
	v.what = what;
	v.key = key;
	memcpy(before, in, sizeof(in));
	for (target = 0; target < NPOINTS && strcmp(points[target], point); target++)
		;
	if (target == NPOINTS)
		abort();
	countdown = nth;
	parked = false;
	sem_post(&go);
	while (sem_wait(&stopped_or_done))
		;
	target = -1;
	return parked;
}

static void
must_begin(op what, int key, const char *point, int nth)
{
	if (!begin(what, key, point, nth))
		die("%s was not met %d times", point, nth);
}

/* All of the tree is as it should be. */
static void
check_tree(void)
{
	ax_tree_info ti;
	char		msg[200];
	bool		good;
	int			n = 0;

	if (tap_check(&cx, tree, gen, &ti, &good, msg, sizeof(msg)) != AX_OK || !good)
		die("check: %s", msg);
	for (int i = 0; i < universe; i++)
	{
		uint8_t		k[MAX_LEN];
		uint32_t	len = make_key(i, k);
		ax_status	x;

		n += in[i];
		/* with the count and the check, these say it all */
		if (in[i] == before[i] && i != v.key && i % 16)
			continue;
		x = ax_contains(&cx, tree, gen, k, len);
		if (x != (in[i] ? AX_OK : AX_NOTFOUND))
			die("key %d afterwards: status %d", i, (int) x);
	}
	if (ti.entries != (uint64_t) n)
		die("%llu entries instead of %d", (unsigned long long) ti.entries, n);
}

/*
 * Go on, and look at what came of it.  want: the status; a scan's keys are
 * those of before up to key "edge" in its direction, and of now from there on.
 */
static void
finish(ax_status want, int edge)
{
	sem_post(&resume);
	while (sem_wait(&stopped_or_done))
		;
	if (v.status != want)
		die("status %d instead of %d", (int) v.status, (int) want);
	if (v.what == INSERT && want == AX_OK)
		in[v.key] = true;
	if (v.what == REMOVE && want == AX_OK)
		in[v.key] = false;
	if (v.what >= SCAN)
	{
		bool		back = v.what == SCAN_BACK;
		int			x = 0;

		for (int c = 0; c < universe; c++)
		{
			int			i = back ? universe - 1 - c : c;
			bool		is = (back ? i >= edge : i <= edge) ? before[i] : in[i];
			bool		hit = x < v.ngot && v.got[x] == i;

			if (hit != is)
				die("%s key %d (entry %d of %d), all to key %d were done", hit ? "finds" : "misses",
					i, x, v.ngot, edge);
			x += hit;
		}
		if (x != v.ngot)
			die("entry %d of %d is out of order, or twice", x, v.ngot);
	}
	check_tree();
}

static const char *
sort_of(void)
{
	static char b[60];

	snprintf(b, sizeof(b), "%s pages, %s keys", page_bytes == 256 ? "256-byte" : "default",
			 mixed ? "mixed" : "equal");
	return b;
}

/*
 * In a shortened run the larger pages, whose trees take long to build, get every
 * seventh of the cases; the smallest get them all, and every twelfth under TSan: the
 * two threads of a case take turns, and what orders these hides most races from it.
 */
static bool
left_out(void)
{
	static uint64_t cases;
#if defined(__SANITIZE_THREAD__)
	const int	small = 12;
#else
	const int	small = 1;
#endif

	return tap_shortened() && cases++ % (uint64_t) (page_bytes == 0 ? 7 * small : small) != 0;
}

/* ---- descents ---- */

typedef enum change
{
	SPLIT, SPLIT_LEFT, MERGE, EMPTIED, REFILLED, TURNED, UNDONE, NCHANGES
} change;

static const char *const change_name[NCHANGES] = {
	"its leaf is split", "its leaf is split on the left", "its leaf is merged",
	"all else is removed", "all is removed, and it put in again",
	"another takes it out or puts it in", "the same, and back again"
};

/* What the others do while an operation on key k stands. */
static void
make_change(change c, int k)
{
	int			near = last_in(page_of(k, 0));

	switch (c)
	{
		case SPLIT:
			split_leaf(near);
			break;
		case SPLIT_LEFT:
			split_leaf_left(near);
			break;
		case MERGE:
			merge_leaf(in[k] ? k : near);
			break;
		case EMPTIED:
			all_but(k, false);
			break;
		case REFILLED:
			{
				bool		is = in[k];

				all_but(-1, false);
				if (is)
					put(k);
				break;
			}
		case TURNED:
		case UNDONE:
			in[k] ? del(k) : put(k);
			if (c == UNDONE)
				in[k] ? del(k) : put(k);
			break;
		default:
			abort();
	}
}

static ax_status
now_expected(op what, int k)
{
	if (what == INSERT)
		return in[k] ? AX_EXISTS : AX_OK;
	return in[k] ? AX_OK : AX_NOTFOUND;
}

/*
 * An operation on one key stands at a point of its descent, at each level, or in
 * its leaf, when the tree changes.
 */
static void
descents(void)
{
	static const struct
	{
		op			what;
		const char *point;
		bool		levels;		/* met at every level */
	}			at[] = {
		{CONTAINS, "bt.root_read", false}, {CONTAINS, "bt.child_read", true},
		{CONTAINS, "bt.child_version", true}, {CONTAINS, "bt.slot_read", true},
		{CONTAINS, "bt.contains.leaf_read", false},
		{LOOKUP, "bt.root_read", false}, {LOOKUP, "bt.child_read", true},
		{LOOKUP, "bt.child_version", true}, {LOOKUP, "bt.slot_read", true},
		{LOOKUP, "bt.lookup.leaf_read", false},
		{MANY, "bt.root_read", false}, {MANY, "bt.child_read", true},
		{MANY, "bt.child_version", true}, {MANY, "bt.slot_read", true},
		{MANY, "bt.lookup.leaf_read", false},
		{INSERT, "bt.root_read", false}, {INSERT, "bt.child_read", true},
		{INSERT, "bt.child_version", true}, {INSERT, "bt.slot_read", true},
		{INSERT, "bt.leaf_read", false}, {INSERT, "bt.leaf_before_lock", false},
		{REMOVE, "bt.root_read", false}, {REMOVE, "bt.child_read", true},
		{REMOVE, "bt.child_version", true}, {REMOVE, "bt.slot_read", true},
		{REMOVE, "bt.remove.leaf_read", false}
	};
	uint64_t	n = 0;

	for (size_t a = 0; a < sizeof(at) / sizeof(at[0]); a++)
		for (change c = 0; c < NCHANGES; c++)
			for (int there = 0; there < 2; there++)
			{
				int			levels = 1;

				/* no latch for what is done already */
				if (there && !strcmp(at[a].point, "bt.leaf_before_lock"))
					continue;
				for (int nth = 1; nth <= levels; nth++)
				{
					bool		splits = c == SPLIT || c == SPLIT_LEFT;
					int			k,
								m = 0;

					if (at[a].levels)
						levels = strcmp(at[a].point, "bt.slot_read") ? 3 : 2;
					if (left_out())
						continue;
					fill_tree();
					if (height() != 3)
						die("a tree of %d levels", height());
					k = last_in(leaf[middle_leaf(0)]);
					if (!there)
						k -= 1; /* between the last two: it goes right, too */
					snprintf(doing, sizeof(doing), "%s: %s of key %d at %s (%d), %s", sort_of(),
							 op_name[at[a].what], k, at[a].point, nth, change_name[c]);
					if (splits)
					{
						/* once to learn by which keys, so that the last one alone is left */
						if (!there)
							in[k] = true;	/* not this one */
						make_change(c, k);
						m = nput - 1;
						close_tree();
						fill_tree();
						for (int i = 0; i < m; i++)
							put(put_log[i]);
					}
					must_begin(at[a].what, k, at[a].point, nth);
					if (splits)
						put(put_log[m]);
					else
						make_change(c, k);
					finish(now_expected(at[a].what, k), 0);
					close_tree();
					n++;
				}
			}
	ok(n > 0, "%s: split, merge, removal of everything, the same key, against descent and before the latch (%llu)",
	   sort_of(), (unsigned long long) n);
}

/* ---- the root ---- */

/* How many rising keys make a tree of so many levels? */
static int
keys_for(int levels)
{
	int			n = 0;

	open_tree(MAX_U);
	while (height() < levels)
		put(n++);
	close_tree();
	return n;
}

/* The root splits above a descent: it is a leaf, or an inner page. */
static void
root_growth(void)
{
	static const struct
	{
		op			what;
		const char *point;
	}			at[] = {
		{CONTAINS, "bt.root_read"}, {CONTAINS, "bt.child_read"}, {CONTAINS, "bt.child_version"},
		{LOOKUP, "bt.root_read"}, {LOOKUP, "bt.child_read"}, {LOOKUP, "bt.child_version"},
		{MANY, "bt.root_read"}, {MANY, "bt.child_read"}, {MANY, "bt.child_version"},
		{INSERT, "bt.root_read"}, {INSERT, "bt.child_read"}, {INSERT, "bt.child_version"},
		{REMOVE, "bt.root_read"}, {REMOVE, "bt.child_read"}, {REMOVE, "bt.child_version"},
		{SCAN, "bt.root_read"}, {SCAN, "bt.child_read"}, {SCAN, "bt.child_version"},
		{SCAN_BACK, "bt.root_read"}, {SCAN_BACK, "bt.child_read"}, {SCAN_BACK, "bt.child_version"}
	};

	for (int levels = 2; levels <= 3; levels++)
	{
		int			m = keys_for(levels);

		for (size_t a = 0; a < sizeof(at) / sizeof(at[0]); a++)
		{
			/* in a leaf, cut in the middle: the last key goes right, and stays in place */
			bool		cut = levels == 2;
			int			k;

			open_tree(cut ? 4 * m : m + 1);
			for (int i = 0; i < m - 1; i++)
				put(cut ? 4 * i : i);
			k = cut ? 4 * (m - 2) : m - 2;
			if (at[a].what == INSERT)
				k = cut ? k - 1 : m;
			snprintf(doing, sizeof(doing), "%s: %s of key %d at %s, the root of %d levels is split",
					 sort_of(), op_name[at[a].what], k, at[a].point, levels - 1);
			if (height() != levels - 1)
				die("a tree of %d levels", height());
			must_begin(at[a].what, k, at[a].point, 1);
			for (int x = cut ? k - 2 : m - 1; height() < levels; x -= 1)
				if (!in[x])
					put(x);
			finish(at[a].what >= SCAN ? AX_OK : now_expected(at[a].what, k),
				   at[a].what == SCAN_BACK ? universe : -1);
			close_tree();
		}
		ok(true, "%s: root growth against descent, the root is %s", sort_of(),
		   levels == 2 ? "a leaf" : "an inner page");
	}
}

/* The root goes, or is about to, when the tree grows again. */
static void
root_shrinks(void)
{
	for (int c = 0; c < 3; c++)
	{
		int			k;

		fill_tree();
		snprintf(doing, sizeof(doing), "%s: removals at bt.root_before_lock, %s", sort_of(),
				 c == 0 ? "all is put in again" : c == 1 ? "all is removed" : "the rest of it is removed but one");
		for (k = universe - STEP; k >= 0; k -= STEP)
		{
			if (begin(REMOVE, k, "bt.root_before_lock", 1))
				break;
			in[k] = false;
		}
		if (k < 0)
			die("the root was never about to go");
		in[k] = false;			/* it is out already */
		before[k] = false;
		if (c == 0)
			all_but(-1, true);
		else
			all_but(c == 1 ? -1 : 0, false);
		if (c == 2 && !in[0])
			put(0);
		v.what = CONTAINS;		/* whose key is judged by the check */
		finish(AX_OK, 0);
		all_but(-1, true);
		check_tree();
		close_tree();
	}
	ok(true, "%s: the root shrinks against growth, and against another's removals", sort_of());
}

/* An insert is stopped on the root leaf that the removal of the last key left. */
static bool drop_seen;

static void
on_drop(const char *name)
{
	if (strcmp(name, "bt.root_before_lock") == 0 && !drop_seen)
	{
		drop_seen = true;
		in[0] = false;
		must_begin(INSERT, 8, "bt.leaf_before_lock", 1);
	}
}

static void
last_key(void)
{
	static const struct
	{
		op			what;
		const char *point;
	}			at[] = {
		{CONTAINS, "bt.root_read"}, {CONTAINS, "bt.child_read"}, {CONTAINS, "bt.child_version"},
		{CONTAINS, "bt.contains.leaf_read"}, {LOOKUP, "bt.child_read"}, {LOOKUP, "bt.lookup.leaf_read"},
		{MANY, "bt.child_read"}, {MANY, "bt.lookup.leaf_read"},
		{REMOVE, "bt.child_read"}, {REMOVE, "bt.remove.leaf_read"},
		{SCAN, "bt.root_read"}, {SCAN, "bt.child_version"}, {SCAN, "bt.scan.leaf_read"},
		{SCAN_BACK, "bt.root_read"}, {SCAN_BACK, "bt.child_version"}, {SCAN_BACK, "bt.scan.leaf_found"}
	};

	for (size_t a = 0; a < sizeof(at) / sizeof(at[0]); a++)
		for (int again = 0; again < 3; again++)
		{
			open_tree(16);
			put(4);
			snprintf(doing, sizeof(doing), "%s: %s at %s, the last key is removed%s", sort_of(), op_name[at[a].what],
					 at[a].point, again == 0 ? "" : again == 1 ? " and put in again" : ", another put in");
			must_begin(at[a].what, 4, at[a].point, 1);
			del(4);
			if (again)
				put(again == 1 ? 4 : 9);
			finish(at[a].what >= SCAN ? AX_OK : now_expected(at[a].what, 4), at[a].what == SCAN_BACK ? universe : -1);
			close_tree();
		}

	open_tree(16);
	put(0);
	snprintf(doing, sizeof(doing), "%s: insert at bt.leaf_before_lock, the removal of the last key takes its leaf",
			 sort_of());
	drop_seen = false;
	own_hook = on_drop;
	in[0] = true;
	{
		uint8_t		k[MAX_LEN];
		uint32_t	len = make_key(0, k);

		if (ax_remove(&cx, tree, gen, k, len) != AX_OK || !drop_seen)
			die("the last key was not removed");
	}
	own_hook = NULL;
	if (root_page() != NULL)
		die("the root is still there");
	finish(AX_OK, 0);
	close_tree();

	for (int c = 0; c < 3; c++)
	{
		open_tree(16);
		snprintf(doing, sizeof(doing), "%s: insert at bt.first.before_lock, %s", sort_of(),
				 c == 0 ? "another key comes first" : c == 1 ? "another inserts it" : "one comes and goes");
		must_begin(INSERT, 4, "bt.first.before_lock", 1);
		put(c == 1 ? 4 : 9);
		if (c == 2)
			del(9);
		finish(c == 1 ? AX_EXISTS : AX_OK, 0);
		close_tree();
	}
	ok(true, "%s: removal of the last key, and insert of the first", sort_of());
}

/* ---- splits and merges that stand ---- */

/* Insert keys into the leaf that k is the last of until one stands at the point. */
static int
fill_until(int k, const char *point)
{
	for (int x = k - 1; x > first_in(page_of(k, 0)); x--)
		if (!in[x])
		{
			if (begin(INSERT, x, point, 1))
				return x;
			in[x] = true;
		}
	die("%s was not met", point);
}

/* The same with removals of its keys but k. */
static int
drain_until(int k, const char *point)
{
	for (int x = k - 1; x >= 0; x--)
		if (in[x])
		{
			if (begin(REMOVE, x, point, 1))
			{
				in[x] = before[x] = false;	/* it is out, and the merge comes after */
				return x;
			}
			in[x] = false;
		}
	die("%s was not met", point);
}

/* While a leaf's parent is latched: what is below it must wait, all else goes on. */
static void
neighbours_wait(int k, int far)
{
	uint8_t		key[MAX_LEN];
	uint32_t	len = make_key(k, key);
	ax_status	x = ax_contains(&cx, tree, gen, key, len);

	if (x != AX_BUSY)
		die("a look-up of key %d, under the latches: status %d", k, (int) x);
	len = make_key(far, key);
	x = ax_contains(&cx, tree, gen, key, len);
	if (x != (in[far] ? AX_OK : AX_NOTFOUND))
		die("a look-up of key %d, elsewhere: status %d", far, (int) x);
}

static void
standing(void)
{
	static const char *const what[] = {
		"its leaf is split by another", "its leaf is merged", "the leaf beside it is split",
		"all else is removed", "a leaf before it is split", "its parent is split"
	};

	for (int c = 0; c < 12; c++)
	{
		const char *point = c < 6 ? "bt.split.before_lock" : "bt.split.copied";
		int			i,
					k,
					x;
		bt_page    *up;

		fill_tree();
		i = middle_leaf(0);
		k = last_in(leaf[i]);
		snprintf(doing, sizeof(doing), "%s: insert at %s, %s", sort_of(), point, what[c % 6]);
		x = fill_until(k, point);
		up = page_of(k, 1);
		switch (c % 6)
		{
			case 0:
				split_leaf(k);
				break;
			case 1:
				merge_leaf(k);
				break;
			case 2:
				split_leaf(last_in(page_of(k + STEP, 0)));
				break;
			case 3:
				all_but(x, false);
				break;
			case 4:
				split_leaf(last_in(leaf[i - 2]));
				break;
			default:
				for (int y = 0; page_of(k, 1) == up && y < universe; y++)
					if (y != x && !in[y] && page_of(y, 0) != page_of(k, 0))
						put(y);
				break;
		}
		finish(now_expected(INSERT, x), 0);
		close_tree();
		if (c >= 6)
			continue;

		for (int p = 0; p < 2; p++)
		{
			static const char *const at[] = {"bt.merge.copied", "bt.merge.before_lock"};

			fill_tree();
			i = middle_leaf(0);
			k = last_in(leaf[i]);
			snprintf(doing, sizeof(doing), "%s: removal at %s, %s", sort_of(), at[p], what[c]);
			x = drain_until(k, at[p]);
			up = page_of(k, 1);
			switch (c)
			{
				case 0:
					for (int y = x; page_of(k, 0) == page_of(x, 0) && y < k; y++)
						put(y);
					break;
				case 1:
					merge_leaf(k);
					break;
				case 2:
					split_leaf(last_in(page_of(k + STEP, 0)));
					break;
				case 3:
					all_but(-1, false);
					break;
				case 4:
					split_leaf(last_in(leaf[i - 2]));
					break;
				default:
					for (int y = 0; page_of(k, 1) == up && y < universe; y++)
						if (!in[y] && page_of(y, 0) != page_of(k, 0))
							put(y);
					break;
			}
			v.what = CONTAINS;
			finish(AX_OK, 0);
			close_tree();
		}
	}

	fill_tree();
	{
		int			k = last_in(leaf[middle_leaf(0)]);
		int			x,
					far;

		for (far = 0; page_of(far, 1) == page_of(k, 1); far += STEP)
			;
		snprintf(doing, sizeof(doing), "%s: insert at bt.split.published", sort_of());
		x = fill_until(k, "bt.split.published");
		neighbours_wait(k, far);
		neighbours_wait(x, far);
		finish(AX_OK, 0);
		snprintf(doing, sizeof(doing), "%s: removal at bt.merge.published", sort_of());
		k = last_in(leaf[middle_leaf(0)]);
		x = drain_until(k, "bt.merge.published");
		neighbours_wait(k, far);
		neighbours_wait(x, far);
		v.what = CONTAINS;
		finish(AX_OK, 0);
	}
	close_tree();
	ok(true, "%s: splits and merges that stand before their latches, and with them", sort_of());
}

/* ---- scans ---- */

typedef enum beside
{
	B_SPLIT_THIS, B_SPLIT_NEXT, B_SPLIT_NEXT_LEFT, B_SPLIT_LAST, B_MERGE_THIS, B_MERGE_NEXT,
	B_MERGE_LAST, B_NEXT_GOES, B_EMPTIED, B_FILLED, NBESIDES
} beside;

static const char *const beside_name[NBESIDES] = {
	"this leaf is split", "the next leaf is split", "the next leaf is split on the left",
	"the leaf behind is split", "this leaf is merged", "the next leaf is merged",
	"the leaves behind are merged", "the next leaf's keys are removed", "all is removed",
	"all is put in"
};

static void
scans(void)
{
	static const struct
	{
		const char *point;
		int			cross;		/* from one parent to the next: which hop */
		const char *where;
	}			at[] = {
		{"bt.scan.leaf_found", 0, ""}, {"bt.scan.leaf_read", 0, ""}, {"bt.scan.advance", 0, ""},
		{"bt.scan.advance", 1, ", to the next parent"}, {"bt.scan.advance", 2, ", in the next parent"},
		{"bt.scan.child_read", 0, ""}, {"bt.scan.child_read", 1, ", to the next parent"},
		{"bt.scan.child_read", 2, ", in the next parent"}
	};

	for (int back = 0; back < 2; back++)
	{
		for (int a = 0; a < 8; a++)
			for (beside c = 0; c < NBESIDES; c++)
			{
				int			i,
							nth,
							d = back ? -1 : 1;
				int			edge,
							first,
							last;
				bool		advance = a >= 2;

				if (left_out())
					continue;
				fill_tree();
				i = middle_leaf(at[a].cross ? d : 0);
				nth = back ? nleaves - i : i + 1;
				/* a hop more wherever the parent changes on the way */
				for (int x = back ? nleaves - 1 : 0; advance && x != i; x += d)
					nth += parent(x) != parent(x + d);
				if (at[a].cross == 2)
					nth++;
				snprintf(doing, sizeof(doing), "%s: %s at %s (%d)%s, %s", sort_of(), op_name[back ? SCAN_BACK : SCAN],
						 at[a].point, nth, at[a].where, beside_name[c]);
				/* what is done: the leaves before this one, or with it */
				if (advance)
					edge = back ? first_in(leaf[i]) : last_in(leaf[i]);
				else
					edge = back ? first_in(leaf[i + 1]) : last_in(leaf[i - 1]);
				must_begin(back ? SCAN_BACK : SCAN, 0, at[a].point, nth);
				switch (c)
				{
					case B_SPLIT_THIS:
						split_leaf(last_in(leaf[i]));
						break;
					case B_SPLIT_NEXT:
						split_leaf(last_in(leaf[i + d]));
						break;
					case B_SPLIT_NEXT_LEFT:
						split_leaf_left(last_in(leaf[i + d]));
						break;
					case B_SPLIT_LAST:
						split_leaf(last_in(leaf[i - d]));
						break;
					case B_MERGE_THIS:
						merge_leaf(last_in(leaf[i]));
						break;
					case B_MERGE_NEXT:
						merge_leaf(last_in(leaf[i + d]));
						break;
					case B_MERGE_LAST:
						merge_leaf(last_in(leaf[i - 2 * d]));
						break;
					case B_NEXT_GOES:
						first = first_in(leaf[i + d]);
						last = last_in(leaf[i + d]);
						for (int x = first; x <= last; x++)
							if (in[x])
								del(x);
						break;
					case B_EMPTIED:
						all_but(-1, false);
						break;
					default:
						all_but(-1, true);
						break;
				}
				finish(AX_OK, edge);
				close_tree();
			}
		ok(true, "%s: split, merge and removal against %s scan", sort_of(), back ? "backward" : "forward");
	}
}

int
main(void)
{
	ax_area    *a = tap_area((size_t) 64 << 20, 2, 1 << 20);
	pthread_t	thread;

	sem_init(&go, 0, 0);
	sem_init(&stopped_or_done, 0, 0);
	sem_init(&resume, 0, 0);
	ax_attach(&cx, a, 0, 1, &ax_port_default);
	ax_attach(&v.cx, a, 1, 2, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	tap_point_hook = hook;
	if (pthread_create(&thread, NULL, victim, NULL))
		abort();
	for (int big = 0; big < 2; big++)
		for (int mix = 0; mix < 2; mix++)
		{
			page_bytes = big ? 0 : 256;
			mixed = mix;
			descents();
			root_growth();
			root_shrinks();
			last_key();
			standing();
			scans();
		}
	quit = true;
	sem_post(&go);
	pthread_join(thread, NULL);
	for (int i = 0; i < NPOINTS; i++)
		ok(met[i] > 0, "%s: stopped %llu times", points[i], (unsigned long long) met[i]);
	ax_detach(&v.cx);
	ax_detach(&cx);
	return tap_done();
}
