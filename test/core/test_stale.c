/*
 * test_stale.c
 *	  A place that one process has sampled, and another has cut, replaced or
 *	  rewritten since, is not believed.
 *
 * The operation meets a pause point, and there another attachment makes one known
 * change, so that the result is known exactly.  Each test fails when a step of the
 * radix tree's protocol is left out which chance (test_races.c) hardly tries.
 */
#include <stdlib.h>
#include <string.h>

#include "keyset.h"
#include "tap.h"

#define LONG 3000				/* columns of a key that no full leaf takes */
#define BELOW 40				/* keys that make a node of their first byte */

static ax_ctx cx,
			other;
static ax_tree *tree;
static uint64_t gen;
static const char *engine;
static uint64_t entries;		/* that the tree should have */
static int	wrong;

static const char *stop_at;
static int	nth,				/* .. when it is met so often */
			met;
static void (*meddle) (void);
static int	param;				/* of that */
static bool under;				/* keys have a byte before the others, all the same */

/* With a latch held the other would wait for it, and nothing stale could be read. */
static void
hook(const char *name)
{
	if (!stop_at || strcmp(name, stop_at) != 0 || ax_latches_held(&cx) > 0 || --nth > 0)
		return;
	stop_at = NULL;
	met++;
	meddle();
}

static void
stop(const char *name, int n, void (*what) (void))
{
	meddle = what;
	nth = n;
	stop_at = name;
}

/* "columns" bytes that begin with a and b, and a TID. */
static uint32_t
make(uint8_t *k, int a, int b, uint32_t columns, uint64_t tid)
{
	memset(k, 5, columns);
	k[under] = (uint8_t) a;
	k[under + 1] = (uint8_t) b;
	ks_put_tid(k + columns, ks_tid(tid));
	return columns + 6;
}

static void
put(ax_ctx *by, int a, int b, uint32_t columns, uint64_t tid)
{
	uint8_t		k[LONG + 6];
	uint32_t	len = make(k, a, b, columns, tid);

	wrong += ax_insert(by, tree, gen, k, len) != AX_OK;
	entries++;
}

static void
del(ax_ctx *by, int a, int b, uint32_t columns, uint64_t tid)
{
	uint8_t		k[LONG + 6];
	uint32_t	len = make(k, a, b, columns, tid);

	wrong += ax_remove(by, tree, gen, k, len) != AX_OK;
	entries--;
}

static bool
has(int a, int b, uint32_t columns, uint64_t tid)
{
	uint8_t		k[LONG + 6];
	uint32_t	len = make(k, a, b, columns, tid);

	return ax_contains(&cx, tree, gen, k, len) == AX_OK;
}

static void
node_of(int a)
{
	for (int b = 0; b < BELOW; b++)
		put(&cx, a, b, 8, 1);
}

static void
open_tree(ax_structure s)
{
	entries = 0;
	tree = ax_tree_alloc(&cx);
	if (ax_tree_open(&cx, tree, s, 0, 0, &gen) != AX_OK)
		abort();
}

/* The tree is sound, and has so many entries as it should. */
static void
close_tree(void)
{
	ax_tree_info ti;
	char		msg[200] = "";
	bool		good;

	stop_at = NULL;
	if (tap_check(&cx, tree, gen, &ti, &good, msg, sizeof(msg)) != AX_OK || !good ||
		ti.entries != entries)
	{
		if (wrong++ == 0)
			tap_diag("%s: %llu entries, should be %llu; %s", engine,
					 (unsigned long long) ti.entries, (unsigned long long) entries, msg);
	}
	ax_tree_close(&cx, tree);
	ax_tree_release(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* ---- a leaf is cut, and stays with a part of its range ---- */

/* A new maximum that has no room in the leaf: alone in one beside it. */
static void
cut(void)
{
	put(&other, 2 * param + 2, 0, LONG, 1);
}

/*
 * An insert is on its way to a leaf that has room for it, but for nothing long.  The
 * leaf is cut below the key, and is otherwise as it was.
 */
static void
leaf_cut(ax_structure s, const char *point, int n)
{
	met = wrong = 0;
	for (param = 34; param < 70; param++)
	{
		open_tree(s);
		for (int i = 1; i <= param; i++)
			put(&cx, 2 * i, 0, (uint32_t) (60 + i % 5 * 10), 1);
		stop(point, n, cut);
		put(&cx, 2 * param + 3, 0, 8, 1);
		wrong += !has(2 * param + 3, 0, 8, 1);
		close_tree();
	}
	ok(wrong == 0, "%s, a leaf that is cut at %s, %d (%d times): the insert behind goes where it belongs", engine, point, n, met);
	/* (OptiQL has latched the leaf by then) */
	ok(met > 0 || (s == AX_ART_OPTIQL && strcmp(point, "art.leaf.before_lock") == 0), "%s: it was met", engine);
}

/* ---- a node is replaced, where an insert goes on in it ---- */

static void
remove_leaf(void)
{
	del(&other, 30, 0, 8, 1);
}

/* .. and the node's prefix is split. */
static void
remove_leaf_split(void)
{
	remove_leaf();
	under = false;
	put(&other, 9, 0, 8, 1);
	under = true;
}

/*
 * An insert has widened a leaf over its key, and will find it in the same node.  The
 * leaf goes, and so does the node: its only child takes its place, or a smaller copy,
 * or one with a shorter prefix.
 */
static void
node_replaced(ax_structure s, int children, void (*how) (void), const char *what)
{
	met = wrong = 0;
	under = how == remove_leaf_split;
	open_tree(s);
	for (int i = 0; i < children; i++)
		node_of(10 + i);
	put(&cx, 30, 0, 8, 1);
	/* a Node16 with room to lose one */
	if (children == 4)
		for (int b = 0; b < BELOW; b++)
			del(&cx, 10, b, 8, 1);
	stop("art.widened", 1, how);
	put(&cx, 20, 0, 8, 1);
	ok(met == (s != AX_ART_ROWEX), "%s: an insert goes on in a node%s", engine, met ? "" : ", not here");
	ok(wrong == 0 && has(20, 0, 8, 1), "%s: not in one that %s", engine, what);
	under = false;
	close_tree();
	ok(wrong == 0, "%s: the tree is sound", engine);
}

/* ---- a node's children move while one is looked for ---- */

static void
remove_first(void)
{
	for (int b = 0; b < BELOW; b++)
		del(&other, 10, b, 8, 1);
}

/*
 * A reader knows which child is the key's, the last.  The first goes, so that all
 * move by one, before it reads that.
 */
static void
children_moved(ax_structure s)
{
	uint8_t		k[3][14];
	const uint8_t *many[3] = {k[0], k[1], k[2]};
	uint64_t	tids[8];
	uint32_t	counts[3],
				answered = 0;
	ax_found	f = {.tids = tids, .max = 8};

	met = wrong = 0;
	for (int way = 0; way < 3; way++)
	{
		open_tree(s);
		for (int a = 10; a <= 40; a += 10)
			node_of(a);
		for (int i = 0; i < 3; i++)
			make(k[i], 40, 5 + i, 8, 1);
		stop("art.find.slot", 1, remove_first);
		if (way == 0)
			ok(ax_contains(&cx, tree, gen, k[0], 14) == AX_OK, "%s: contains finds a child that moves", engine);
		else if (way == 1)
			ok(ax_lookup(&cx, tree, gen, k[0], 8, &f) == AX_OK && f.n == 1,
			   "%s: so does a look-up", engine);
		else
			ok(ax_lookup_many(&cx, tree, gen,
					&(ax_keys) {many, NULL, 8, 3}, &(ax_found) {.tids = tids, .max = 8}, counts, &answered) == AX_OK &&
			   answered == 3 && counts[0] == 1 && counts[1] == 1 && counts[2] == 1,
			   "%s: and one of many", engine);
		close_tree();
	}
	ok(met == 3 && wrong == 0, "%s: they all were stopped there", engine);
}

/* ---- a leaf's entries change while they are read ---- */

/* Their slots, one after the other, get other entries. */
static void
reuse_slots(void)
{
	del(&other, 1, 0, 8, 1);
	put(&other, 2, 0, 8, 5);
	del(&other, 1, 0, 8, 2);
	put(&other, 1, 0, 8, 4);
}

/* Rows 1 and 2 of a key are in, then 2, none, and 4.  There are never 1 and 4. */
static void
rows_changed(ax_structure s)
{
	uint8_t		k[14];
	const uint8_t *many[1] = {k};
	uint64_t	tids[8];
	uint32_t	counts[1],
				n,
				answered;
	ax_found	f = {.tids = tids, .max = 8};

	met = wrong = 0;
	for (int way = 0; way < 4; way++)
	{
		open_tree(s);
		put(&cx, 1, 0, 8, 1);
		put(&cx, 1, 0, 8, 2);
		put(&cx, 3, 0, 8, 3);
		make(k, 1, 0, 8, 0);
		stop("art.lookup.matched", 1 + way % 2, reuse_slots);
		if (way < 2)
		{
			wrong += ax_lookup(&cx, tree, gen, k, 8, &f) != AX_OK;
			n = f.n;
		}
		else
		{
			wrong += ax_lookup_many(&cx, tree, gen,
					&(ax_keys) {many, NULL, 8, 1}, &(ax_found) {.tids = tids, .max = 8}, counts, &answered) != AX_OK ||
				answered != 1;
			n = counts[0];
		}
		ok((n == 1 && (tids[0] == ks_tid(2) || tids[0] == ks_tid(4))) || n == 0 ||
		   (n == 2 && tids[0] == ks_tid(1) && tids[1] == ks_tid(2)),
		   "%s: a look-up%s finds rows that were there together (%u)", engine, way < 2 ? "" : " of many", n);
		close_tree();
	}
	ok(met == 4 && wrong == 0, "%s: they all were stopped there", engine);
}

/* In the slot of (1, row 1) comes (2, row 2), in the middle of a comparison. */
static void
reuse_slot(void)
{
	del(&other, 1, 0, 8, 1);
	put(&other, 2, 0, 8, 2);
}

/* An entry that was never there: half of one, and half of the next in its slot. */
static void
entry_changed(ax_structure s)
{
	met = wrong = 0;
	open_tree(s);
	put(&cx, 1, 0, 8, 1);
	put(&cx, 3, 0, 8, 3);
	put(&cx, 4, 0, 8, 4);
	stop("equal.half", 1, reuse_slot);
	ok(!has(1, 0, 8, 2) && met == 1, "%s: contains finds no entry that is made of two", engine);
	close_tree();

	/* (an insert of OptiQL has the leaf) */
	open_tree(s);
	put(&cx, 1, 0, 8, 1);
	put(&cx, 3, 0, 8, 3);
	put(&cx, 4, 0, 8, 4);
	stop("equal.half", 1, reuse_slot);
	put(&cx, 1, 0, 8, 2);
	ok(wrong == 0 && met == 1 + (s != AX_ART_OPTIQL), "%s: nor is it there for an insert", engine);
	close_tree();
	ok(wrong == 0, "%s: the tree is sound", engine);
}

int
main(void)
{
	static const ax_structure structures[] = {AX_ART_OLC, AX_ART_OPTIQL, AX_ART_ROWEX};
	ax_area    *area = tap_area((size_t) 64 << 20, 2, 1 << 20);

	tap_deadline(300);
	ax_attach(&cx, area, 0, 1, &ax_port_default);
	ax_attach(&other, area, 1, 2, &ax_port_default);
	tap_point_hook = hook;
	for (size_t i = 0; i < sizeof(structures) / sizeof(structures[0]); i++)
	{
		ax_structure s = structures[i];

		engine = ax_structure_sync(s);
		for (int n = 1; n <= 2; n++)
			leaf_cut(s, "art.hop.after_child_read", n);
		leaf_cut(s, "art.target.before_open", 1);
		for (int n = 1; n <= 2; n++)
			leaf_cut(s, "art.hop.after_child_version", n);
		leaf_cut(s, "art.leaf.before_lock", 1);
		node_replaced(s, 1, remove_leaf, "went for its only child");
		node_replaced(s, 4, remove_leaf, "a smaller one replaced");
		node_replaced(s, 2, remove_leaf_split, "was split in its prefix");
		children_moved(s);
		rows_changed(s);
		entry_changed(s);
	}
	ax_detach(&other);
	ax_detach(&cx);
	return tap_done();
}
