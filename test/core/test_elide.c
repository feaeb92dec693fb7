/*
 * test_elide.c
 *	  Elision: scripts, what is counted for each status, when it is tried again and
 *	  when not, switching off and on, and sections that are undone at every point.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_area.h"
#include "core/base/ax_coarse.h"
#include "core/elide/ax_elide.h"
#include "core/elide/ax_guard.h"
#include "core/tail/ax_tail.h"
#include "ax_elide_test.h"
#include "model.h"

static ax_ctx cx;
static ax_ctx other;
static ax_tree *tree;
static uint64_t gen;
static ax_store *store;
static ax_structure structure;
static ax_site ins;				/* what an insert that fits is */
static ax_hardware none;

static const char *
name(void)
{
	static char buf[40];

	snprintf(buf, sizeof(buf), "%s-%s", ax_structure_name(structure), ax_structure_sync(structure));
	return buf;
}

static void
key_of(uint32_t i, uint8_t *k)
{
	memset(k, 0, 10);
	for (int b = 0; b < 4; b++)
		k[b] = (uint8_t) (i >> (24 - 8 * b));
	k[9] = 1;
}

static ax_status
insert(ax_ctx *c, uint32_t i)
{
	uint8_t		k[10];

	key_of(i, k);
	return ax_insert(c, tree, gen, k, sizeof(k));
}

static ax_status
drop(ax_ctx *c, uint32_t i)
{
	uint8_t		k[10];

	key_of(i, k);
	return ax_remove(c, tree, gen, k, sizeof(k));
}

static ax_status
contains(ax_ctx *c, uint32_t i)
{
	uint8_t		k[10];

	key_of(i, k);
	return ax_contains(c, tree, gen, k, sizeof(k));
}

static ax_site_info
info(ax_site site)
{
	ax_site_info s[AX_SITES];

	if (ax_aborts(&cx, tree, gen, s) != AX_OK)
		abort();
	return s[site];
}

static void
script_as(ax_elide_option setting, const char *text)
{
	if (!ax_elide_script_ok(text))
		abort();
	ax_elide_setup(&cx, &none, setting, &ax_inject, text);
}

static void
script(const char *text)
{
	script_as(AX_ELIDE_ON, text);
}

/* An empty tree with one leaf in which there is room. */
static void
open_tree(void)
{
	if (ax_tree_open(&cx, tree, structure, 0, 0, &gen) != AX_OK)
		abort();
	store = atomic_load(&tree->store);
	for (uint32_t i = 0; i < 3; i++)
		if (insert(&cx, 10 * i) != AX_OK)
			abort();
}

static void
close_tree(void)
{
	ax_tree_close(&cx, tree);
	tap_quiesce(&cx);
}

/* ---- scripts ---- */

static void
test_scripts(void)
{
	static const char *const good[] = {
		"", "commit", "conflict*3 commit", " conflict , commit loop", "0x6", "0xff000001*2",
		"leaf_insert: conflict+retry; split: capacity*3 loop", "busy;", ";", "zero+retry*70000",
		"coarse_write:commit;coarse_read:zero;nested other explicit"
	};
	static const char *const bad[] = {
		"what", "commit*0", "commit*", "loop commit", "leaf: commit", "leaf_insert:", "leaf_insert: ;",
		"commit+retry", "0x", "0x123456789", "conflict+again", "commit; commit", "conflict*-1",
		"split: zero; split: zero", "0xg", "conflict*99999999999", "loop", "1", "*2", "commit:"
	};
	char		many[1000] = "";

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ok(ax_elide_script_ok(good[i]), "\"%s\" is a script", good[i]);
	ok(ax_elide_script_ok(NULL), "nothing is a script");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!ax_elide_script_ok(bad[i]), "\"%s\" is none", bad[i]);
	for (int i = 0; i < AX_ELIDE_ITEMS; i++)
		strcat(many, "zero ");
	ok(ax_elide_script_ok(many), "%d items are a script", AX_ELIDE_ITEMS);
	strcat(many, "zero");
	ok(!ax_elide_script_ok(many), "one more is none");
}

/* ---- what is counted ---- */

typedef struct expect
{
	const char *script;
	uint64_t	attempts,
				commits,
				fallbacks;
	uint64_t	conflict,
				capacity,
				explicit_,
				busy,
				nested,
				zero,
				other,
				hint;
} expect;

static const expect expected[] = {
	{"", 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	{"commit", 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	{"conflict", 2, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0},
	{"conflict+retry*5", 6, 1, 0, 5, 0, 0, 0, 0, 0, 0, 5},
	{"conflict*6", 6, 0, 1, 6, 0, 0, 0, 0, 0, 0, 0},
	{"capacity*2", 3, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0},
	{"capacity*3", 3, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0},
	{"explicit", 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0},
	{"busy*2", 3, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0},
	{"nested zero other", 4, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0},
	/* the first cause that holds, of several; the hint alone is no cause */
	{"0xff00003f 0x0c 0x24 0x02", 5, 1, 0, 1, 1, 0, 1, 0, 0, 1, 2},
	{"0x0100003d", 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0},
};

static void
test_counts(void)
{
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
	{
		const expect *e = &expected[i];
		char		text[200];
		ax_site_info s;

		open_tree();
		snprintf(text, sizeof(text), "%s%s%s", *e->script ? ax_site_name(ins) : "", *e->script ? ": " : "", e->script);
		script(text);
		if (insert(&cx, 5) != AX_OK || contains(&cx, 5) != AX_OK)
			ok(false, "%s: inserted", name());
		s = info(ins);
		if (!ok(s.sections == 1 && s.attempts == e->attempts && s.commits == e->commits &&
				s.fallbacks == e->fallbacks && s.conflict == e->conflict && s.capacity == e->capacity &&
				s.explicit_ == e->explicit_ && s.lock_busy == e->busy && s.nested == e->nested &&
				s.zero == e->zero && s.other == e->other && s.retry_hint == e->hint &&
				!strcmp(s.mode, "on"), "%s: \"%s\" is counted", name(), e->script))
			tap_diag("sections %d attempts %d commits %d fallbacks %d conflict %d capacity %d explicit %d busy %d nested %d zero %d other %d hint %d %s",
					 (int) s.sections, (int) s.attempts, (int) s.commits, (int) s.fallbacks, (int) s.conflict,
					 (int) s.capacity, (int) s.explicit_, (int) s.lock_busy, (int) s.nested, (int) s.zero,
					 (int) s.other, (int) s.retry_hint, s.mode);
		ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
		close_tree();
	}
}

/* ---- off, and why ---- */

static void
test_modes(void)
{
	ax_site_info s;
	ax_tree_info ti;
	ax_site		foreign = store->sync == AX_SYNC_COARSE ? AX_SITE_LEAF_INSERT : AX_SITE_COARSE_READ;

	ax_elide_setup(&cx, &none, AX_ELIDE_ON, NULL, NULL);
	(void) insert(&cx, 1);
	s = info(ins);
	(void) ax_info(&cx, tree, gen, &ti);
	ok(!strcmp(s.mode, "no-rtm") && s.sections == 0 && s.attempts == 0 && !ti.elided && !atomic_load(&store->elide),
	   "%s: without RTM nothing is tried, counted or allocated", name());
	ax_elide_setup(&cx, &none, AX_ELIDE_OFF, &ax_inject, NULL);
	(void) insert(&cx, 2);
	s = info(ins);
	ok(!strcmp(s.mode, "off") && s.sections == 0, "%s: off by the setting", name());
	script("");
	(void) ax_tree_set_elision(&cx, tree, gen, AX_ELIDE_OFF);
	(void) insert(&cx, 3);
	s = info(ins);
	(void) ax_info(&cx, tree, gen, &ti);
	ok(!strcmp(s.mode, "off") && s.sections == 0 && !ti.elided, "%s: off by the tree's option", name());
	(void) ax_tree_set_elision(&cx, tree, gen, AX_ELIDE_AUTO);
	(void) insert(&cx, 4);
	s = info(ins);
	(void) ax_info(&cx, tree, gen, &ti);
	ok(!strcmp(s.mode, "on") && s.sections == 1 && ti.elided && !strcmp(info(foreign).mode, "off"),
	   "%s: on, where there are such sections", name());
	ok(ax_tree_set_elision(&cx, tree, gen + 1, AX_ELIDE_ON) == AX_STALE, "%s: another generation's option", name());
}

/* A key goes and comes back: two sections. */
static void
write_twice(void)
{
	if (drop(&cx, 5) != AX_OK || insert(&cx, 5) != AX_OK)
		abort();
}

/* The tree anew, with nothing counted. */
static void
reopen(void)
{
	ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
	ax_tree_close(&cx, tree);
	open_tree();
	if (insert(&cx, 5) != AX_OK)
		abort();
	ax_body(&cx)->elide.tried = 0;
}

/* This process finds the coarse latch taken by the other. */
static void
find_taken(void)
{
	if (!ax_coarse_try(&other, store, true))
		abort();
	if (insert(&cx, 5) != AX_BUSY)
		ok(false, "%s: the latch is taken", name());
	ax_coarse_unlock(&other, store, true);
}

/* Where nobody insists: only under a coarse latch, and only where it is contended. */
static void
test_auto(void)
{
	ax_site_info s;
	ax_tree_info ti;

	reopen();
	script_as(AX_ELIDE_AUTO, "");
	write_twice();
	s = info(ins);
	(void) ax_info(&cx, tree, gen, &ti);
	if (store->sync != AX_SYNC_COARSE)
	{
		ok(!strcmp(s.mode, "off") && s.sections == 0 && !ti.elided,
		   "%s: auto tries nothing between latches", name());
		(void) ax_tree_set_elision(&cx, tree, gen, AX_ELIDE_ON);
		write_twice();
		s = info(ins);
		ok(!strcmp(s.mode, "on") && s.sections == 1, "%s: but what an option insists on", name());
		(void) ax_tree_set_elision(&cx, tree, gen, AX_ELIDE_AUTO);
		return;
	}
	ok(!strcmp(s.mode, "on") && s.sections == 0 && ti.elided, "%s: alone nobody tries", name());

	/* found taken: so many calls are tried, and then it is looked whether it still is */
	find_taken();
	for (int i = 0; i < AX_ELIDE_LOOK; i++)
		write_twice();
	s = info(ins);
	ok(s.sections == AX_ELIDE_LOOK && s.commits == s.sections, "%s: found taken, calls are tried for a while, %d of them", name(),
	   (int) s.sections);
	find_taken();
	write_twice();
	ok(info(ins).sections == s.sections + 2, "%s: found taken again, so are these", name());
	s = info(ins);
	ax_coarse_contended(store, false);
	write_twice();
	ok(info(ins).sections == s.sections, "%s: contended no more, and none is", name());

	/* one that meets others need not find out */
	ax_coarse_contended(store, true);
	ax_body(&cx)->elide.tried = AX_ELIDE_LOOK - 3;
	script_as(AX_ELIDE_AUTO, "commit conflict commit");
	write_twice();
	write_twice();
	ok(atomic_load(&store->contended), "%s: a conflict says that it is contended", name());
	ax_body(&cx)->elide.tried = AX_ELIDE_LOOK - 3;
	write_twice();
	write_twice();
	ok(!atomic_load(&store->contended), "%s: without one it is asked", name());
}

/* Where nobody insists, a coarse latch whose calls are aborted. */
static void
test_switch(void)
{
	ax_site_info s;
	uint64_t	n;

	if (store->sync == AX_SYNC_COARSE)
	{
		reopen();
		ax_coarse_contended(store, true);
		/* 15 of 64 are as good as any */
		script_as(AX_ELIDE_AUTO, "conflict commit conflict commit conflict commit conflict commit "
				  "conflict commit conflict commit conflict commit conflict commit conflict commit "
				  "conflict commit conflict commit conflict commit conflict commit conflict commit "
				  "conflict commit*50");
		for (int i = 0; i < AX_ELIDE_WINDOW / 2; i++)
			write_twice();
		s = info(ins);
		ok(s.sections == AX_ELIDE_WINDOW && s.conflict == 15 && s.switch_offs == 0,
		   "%s: 15 of %d aborted: goes on", name(), AX_ELIDE_WINDOW);
		/* 16 are not */
		script_as(AX_ELIDE_AUTO, "conflict*96 commit*48");
		for (int i = 0; i < AX_ELIDE_WINDOW / 2; i++)
			write_twice();
		s = info(ins);
		ok(s.sections == 2 * AX_ELIDE_WINDOW && s.fallbacks == 16 && s.switch_offs == 1 && s.switch_ons == 0 &&
		   !strcmp(s.mode, "adaptive-off"),
		   "%s: 16 of %d aborted: switched off", name(), AX_ELIDE_WINDOW);
		n = s.sections;
		for (int round = 1; round <= 2; round++)
		{
			script_as(AX_ELIDE_AUTO, "");
			for (int i = 0; i < round * AX_ELIDE_SKIP / 2; i++)
			{
				ax_coarse_contended(store, true);
				if (i == round * AX_ELIDE_SKIP / 2 - 1)
					ok(info(ins).switch_ons == (uint64_t) round - 1, "%s: off for that long, round %d", name(), round);
				write_twice();
			}
			s = info(ins);
			ok(s.switch_ons == (uint64_t) round && !strcmp(s.mode, "on") && s.sections == n,
			   "%s: on again, and what ran meanwhile is not counted, round %d", name(), round);
			script_as(AX_ELIDE_AUTO, "conflict*1000");
			for (int i = 0; i < AX_ELIDE_WINDOW / 2; i++)
				write_twice();
			s = info(ins);
			ok(s.switch_offs == (uint64_t) round + 1 && s.sections == n + AX_ELIDE_WINDOW,
			   "%s: as bad as before, round %d", name(), round);
			n = s.sections;
		}
	}

	/* insisted on, by the option, then by the setting */
	n = info(ins).switch_offs;
	(void) ax_tree_set_elision(&cx, tree, gen, AX_ELIDE_ON);
	script_as(AX_ELIDE_AUTO, "capacity loop");
	for (int i = 0; i < 2 * AX_ELIDE_WINDOW; i++)
		write_twice();
	s = info(ins);
	ok(s.switch_offs == n && !strcmp(s.mode, "on") && s.capacity >= 3 * AX_ELIDE_WINDOW,
	   "%s: never off by an option of on", name());
	(void) ax_tree_set_elision(&cx, tree, gen, AX_ELIDE_AUTO);
	script("other loop");
	for (int i = 0; i < 2 * AX_ELIDE_WINDOW; i++)
		write_twice();
	ok(info(ins).switch_offs == n && info(ins).other > s.other, "%s: nor by a setting of on", name());
}

/* ---- the lemming effect ---- */

static int	aborted;

/* After the first abort somebody else writes to the same leaf. */
static void
write_beside(const char *point)
{
	if (strcmp(point, "elide.aborted") == 0 && ++aborted == 1 && insert(&other, 7) != AX_OK)
		abort();
}

/* ... or latches it. */
static void
latch_beside(const char *point)
{
	if (strcmp(point, "elide.aborted") == 0 && ++aborted == 1 && !ax_coarse_try(&other, store, true))
		abort();
}

static void
test_lemming(void)
{
	ax_site_info s,
				t;

	/* a leaf of some keys, whose writes are of one site */
	for (uint32_t i = 1; i < 5; i++)
		(void) insert(&cx, i);
	aborted = 0;
	s = info(ins);
	if (store->sync == AX_SYNC_COARSE)
	{
		/* held before, and between two attempts: none is made */
		if (!ax_coarse_try(&other, store, true))
			abort();
		script("");
		ok(insert(&cx, 6) == AX_BUSY, "%s: the latch is held", name());
		t = info(ins);
		ok(t.attempts == s.attempts && t.sections == s.sections + 1 && t.fallbacks == s.fallbacks + 1,
		   "%s: no attempt while it is", name());
		ax_coarse_unlock(&other, store, true);
		script("conflict*4");
		tap_point_hook = latch_beside;
		ok(insert(&cx, 6) == AX_BUSY, "%s: latched after the first abort", name());
		tap_point_hook = NULL;
		s = info(ins);
		ok(s.attempts == t.attempts + 1 && s.fallbacks == t.fallbacks + 1, "%s: and not tried again", name());
		ax_coarse_unlock(&other, store, true);
		ok(insert(&cx, 6) == AX_OK, "%s: until it is free", name());
		return;
	}
	script("conflict*2");
	tap_point_hook = write_beside;
	ok(insert(&cx, 6) == AX_OK, "%s: somebody wrote there after the first abort", name());
	tap_point_hook = NULL;
	t = info(ins);
	/* one attempt for nothing, which is no section; then as one that begins anew */
	ok(aborted >= 1 && contains(&cx, 7) == AX_OK && contains(&cx, 6) == AX_OK &&
	   t.lock_busy == s.lock_busy && t.conflict >= s.conflict + 1 && t.sections <= s.sections + 1,
	   "%s: so it starts over", name());
}

/* ---- undone ---- */

/*
 * Every section is undone at a point drawn at random, and runs again; the tree is
 * compared with a model throughout.
 */
static void
test_undone(const char *text, int ops)
{
	model		m;
	ax_site_info s[AX_SITES];
	uint64_t	aborts = 0;

	mt_universe(&m, KK_MIDDLE, 800, 4711);
	m.cx = &cx;
	m.t = tree;
	if (ax_tree_open(&cx, tree, structure, 0, 512, &gen) != AX_OK || !ax_elide_script_ok(text))
		abort();
	ax_elide_setup(&cx, &none, AX_ELIDE_ON, &ax_software, text);
	m.gen = gen;
	mt_ops(&m, (uint64_t) ops, 60);
	mt_ops(&m, (uint64_t) ops, 20);
	mt_check(&m, "undone");
	mt_compare_all(&m);
	if (ax_aborts(&cx, tree, gen, s) != AX_OK)
		abort();
	for (int i = 0; i < AX_SITES; i++)
		aborts += s[i].attempts - s[i].commits;
	if (ax_body(&cx)->elide.provided)
		ok(aborts > 0, "%s, \"%s\": %llu sections undone, the tree is as the model", name(), text ? text : "",
		   (unsigned long long) aborts);
	else
		ok(!ax_body(&cx)->elide.on, "%s: no such transactions here", name());
	ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
	mt_free(&m);
	close_tree();
}

/* ---- what is everybody's stays when a section is undone -------------------------- */

#define BESIDE 4000

static uint64_t restarts_before;
static uint32_t next_beside,	/* the key that another process is to put in; 0: none */
			beside[BESIDE],
			nbeside;

static uint64_t
restarts(void)
{
	int64_t		n = 0;

	for (int i = 0; i < AX_SHARDS; i++)
		n += (int64_t) atomic_load(&store->shards[i].restarts);
	return (uint64_t) n;
}

/* Somebody else puts a key in while this process is in a section. */
static void
insert_beside(const char *point)
{
	if (next_beside && strcmp(point, "guard.release") == 0 && ax_body(&cx)->elide.open && nbeside < BESIDE)
	{
		uint32_t	key = next_beside;

		next_beside = 0;
		if (insert(&other, key) == AX_OK)
			beside[nbeside++] = key;
	}
}

/*
 * This process has to start over until it latches its way; later as above.  A radix
 * tree's merge starts over as often, before it leaves the key to the ordinary insert.
 */
static void
restart_first(const char *point)
{
	const uint64_t enough = (store->engine->load_share ? 2 : 1) * AX_MAX_RESTARTS;

	if (!ax_body(&cx)->elide.open && restarts() - restarts_before < enough)
		atomic_fetch_add(&store->root_word, AX_VERSION_ONE);
	else
		insert_beside(point);
}

static void
all_is_there(const char *what, uint32_t least)
{
	ax_tree_info ti;
	bool		good = false;
	char		msg[200] = "";
	int			lost = 0;
	ax_status	r = tap_check(&cx, tree, gen, &ti, &good, msg, sizeof(msg));

	for (uint32_t i = 0; i < nbeside; i++)
		lost += contains(&cx, beside[i]) != AX_OK;
	ok(nbeside >= least && lost == 0 && r == AX_OK && good,
	   "%s: %s: %d keys were put in beside sections, %d of them lost%s%s", name(), what, (int) nbeside, lost,
	   *msg ? "; " : "", msg);
	nbeside = next_beside = 0;
}

/*
 * A call puts two keys in, the first one with latches, as after many restarts.  What it
 * then publishes the section of the second key must leave alone, undone or not.
 */
static void
test_latched_first(void)
{
	const uint32_t lens[2] = {10, 10};

	open_tree();
	for (uint32_t i = 0; i < 400; i++)
		if (insert(&cx, 1000 * i + 1000) != AX_OK)
			abort();
	ax_elide_setup(&cx, &none, AX_ELIDE_ON, &ax_software, "conflict loop");
	tap_point_hook = restart_first;
	for (uint32_t i = 0; i < 300 && ax_body(&cx)->elide.provided; i++)
	{
		uint8_t		k[2][10];
		const uint8_t *const keys[2] = {k[0], k[1]};
		uint64_t	done,
					added;

		key_of(200001 + 3 * i, k[0]);
		key_of(350001 + 3 * i, k[1]);
		next_beside = 200002 + 3 * i;
		restarts_before = restarts();
		if (ax_insert_sorted(&cx, tree, gen, &(ax_keys) {keys, lens, 0, 2}, &done, &added) != AX_OK || added != 2)
			ok(false, "%s: both keys are in", name());
	}
	tap_point_hook = NULL;
	if (ax_body(&cx)->elide.provided)
		all_is_there("a tree that is latched first", 100);
	ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
	close_tree();
}

static uint32_t beside_made;	/* a key that goes where place was just made */

/* Place is made in the buffer: the call helps to empty it, and others come to the place. */
static void
place_made(const char *point)
{
	if (strcmp(point, "window.made") == 0 || strcmp(point, "append.renew") == 0)
	{
		next_beside = beside_made;
		ax_body(&cx)->tail_turn = UINT32_MAX;
	}
	insert_beside(point);
}

/*
 * Keys that rise go to a tail buffer.  A call that makes place in it for more and then
 * moves some of it to the tree must leave that place alone when a section is undone.
 * gap: between keys; ahead: how far the place is from the key; every so many calls help.
 */
static void
test_tail_beside(const char *what, uint32_t calls, uint32_t gap, uint32_t ahead, uint32_t every)
{
	uint32_t	framed = 0;

	open_tree();
	for (uint32_t i = 1; i < 100; i++)
		(void) insert(&cx, i * gap);
	if (ax_tree_set_tail(&cx, tree, gen, AX_TAIL_ON) != AX_OK)
		abort();
	ax_elide_setup(&cx, &none, AX_ELIDE_ON, &ax_software, "conflict loop");
	tap_point_hook = place_made;
	for (uint32_t i = 0; i < calls && ax_body(&cx)->elide.provided; i++)
	{
		uint32_t	key = (100 + 2 * i) * gap;

		next_beside = 0;
		beside_made = key + ahead;
		ax_body(&cx)->tail_turn = i % every == 0 ? UINT32_MAX : 0;
		if (insert(&cx, key) != AX_OK)
			abort();
		framed += ax_body(&cx)->elide.frame != NULL;
	}
	tap_point_hook = NULL;
	if (ax_body(&cx)->elide.provided)
	{
		all_is_there(what, 2);
		ok(framed == 0, "%s: %s: no call's stack is taken for the next one's", name(), what);
	}
	ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
	close_tree();
}

static bool to_shut;
static int	shut_beside;

/* A call opens a buffer, and helps to empty the one before; others shut it meanwhile. */
static void
tail_opened(const char *point)
{
	bool		had;

	if (strcmp(point, "tail.open") == 0)
	{
		to_shut = true;
		ax_body(&cx)->tail_turn = UINT32_MAX;
	}
	else if (to_shut && strcmp(point, "guard.release") == 0 && ax_body(&cx)->elide.open)
	{
		to_shut = false;
		shut_beside += ax_tail_close(&other, tree, gen, &had) == AX_OK && had;
	}
}

/* A buffer that was shut stays shut.  gap: between keys. */
static void
test_tail_shut(const char *what, uint32_t gap)
{
	int			open = 0;

	open_tree();
	for (uint32_t i = 1; i < 100; i++)
		(void) insert(&cx, i * gap);
	ax_elide_setup(&cx, &none, AX_ELIDE_ON, &ax_software, "conflict loop");
	shut_beside = 0;
	tap_point_hook = tail_opened;
	for (uint32_t i = 100; i < 4000 && ax_body(&cx)->elide.provided; i++)
	{
		int			before = shut_beside;
		ax_tail    *t;

		if (i % 400 == 100)
		{
			(void) ax_tree_set_tail(&cx, tree, gen, AX_TAIL_OFF);
			(void) ax_tree_set_tail(&cx, tree, gen, AX_TAIL_ON);
		}
		to_shut = false;
		ax_body(&cx)->tail_turn = i % 64 == 0 ? UINT32_MAX : 0;
		if (insert(&cx, i * gap) != AX_OK)
			abort();
		t = atomic_load(&store->tail);
		open += shut_beside > before && t && !atomic_load(&t->closed);
	}
	tap_point_hook = NULL;
	if (ax_body(&cx)->elide.provided)
		ok(shut_beside > 0 && open == 0, "%s: %s was shut %d times beside sections, %d are open again",
		   name(), what, shut_beside, open);
	ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
	close_tree();
}

static bool read_waited;

/* In place of the other process, which is done now. */
static void
wait_emptied(void)
{
	read_waited = true;
	atomic_store(&ax_body(&cx)->slot->emptied, 0);
}

static void
read_meanwhile(const char *point)
{
	if (strcmp(point, "epoch:emptying") != 0 || !atomic_load(&ax_body(&cx)->slot->emptied))
		return;
	tap_point_hook = NULL;
	if (contains(&cx, 1) != AX_NOTFOUND)
		abort();
}

/*
 * A tree that nobody writes to: its readers elide, too.  The first of them makes the
 * counters, and waits for whoever empties its magazines.
 */
static void
test_only_read(void)
{
	ax_site_info s;
	ax_port		port = ax_port_default;

	if (strcmp(ax_structure_sync(structure), "coarse") != 0)
		return;
	if (ax_tree_open(&cx, tree, structure, 0, 0, &gen) != AX_OK)
		abort();
	store = atomic_load(&tree->store);
	script("");
	port.yield = wait_emptied;
	ax_body(&cx)->port = &port;
	read_waited = false;
	tap_point_hook = read_meanwhile;
	ax_flush_idle(&other);
	ax_body(&cx)->port = &ax_port_default;
	s = info(AX_SITE_COARSE_READ);
	ok(s.sections == 1 && s.commits == 1, "%s: the first call is a read, and elided", name());
	ok(!tap_point_hook && read_waited, "%s: it waits before it allocates", name());
	ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
	close_tree();
}

/* By hand, a coarse call that wants memory is given up, and runs latched. */
static void
test_refused(void)
{
	ax_site_info s;

	open_tree();
	ax_elide_setup(&cx, &none, AX_ELIDE_ON, &ax_software, "commit");
	for (uint32_t i = 1000; i < 1600; i++)
		if (insert(&cx, i) != AX_OK)
			abort();
	s = info(ins);
	if (ax_body(&cx)->elide.provided && store->sync == AX_SYNC_COARSE)
		ok(s.explicit_ > 0 && s.explicit_ == s.fallbacks && s.commits > s.fallbacks && s.sections == 600,
		   "%s: %d of 600 inserts want memory", name(), (int) s.explicit_);
	for (uint32_t i = 1000; i < 1600; i++)
		if (contains(&cx, i) != AX_OK)
			ok(false, "%s: all are in", name());
	ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
	close_tree();
}

int
main(void)
{
	ax_area    *area = tap_area((size_t) 64 << 20, 4, 1 << 20);
	ax_hardware hw;

	ax_attach(&cx, area, 0, 1, &ax_port_default);
	ax_attach(&other, area, 1, 2, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	ax_hardware_probe(&hw);
	ok(hw.rtm_usable ? hw.rtm_cpuid && hw.probe_commits > 0 : true, "transactions: cpuid %d, always abort %d, %d of %d committed",
	   hw.rtm_cpuid, hw.rtm_always_abort, hw.probe_commits, hw.probe_attempts);
	ok(hw.rtm_cpuid || hw.probe_attempts == 0, "none is tried where CPUID says there are none");
	structure = AX_ART_OLC;
	ins = AX_SITE_LEAF_INSERT;
	open_tree();
	test_scripts();
	ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
	close_tree();
	for (int i = 0; i < AX_STRUCTURES; i++)
	{
		structure = (ax_structure) i;
		/* the others are never elided */
		if (structure == AX_BTREE_COMPARED || !strcmp(ax_structure_name(structure), "hydra"))
			continue;
		ins = !strcmp(ax_structure_sync(structure), "coarse") ? AX_SITE_COARSE_WRITE : AX_SITE_LEAF_INSERT;
		test_counts();
		open_tree();
		test_modes();
		test_auto();
		test_switch();
		test_lemming();
		ax_elide_setup(&cx, &none, AX_ELIDE_OFF, NULL, NULL);
		close_tree();
		test_undone(NULL, (int) tap_scaled(3000));
		test_undone("conflict+retry commit loop", (int) tap_scaled(1500));
		test_undone("zero*2 commit conflict*6 loop", (int) tap_scaled(1500));
		test_refused();
		test_only_read();
		/* a coarse latch keeps others out; under ROWEX nothing is undone behind a store */
		if (!strcmp(ax_structure_sync(structure), "coarse") || !strcmp(ax_structure_sync(structure), "rowex"))
			continue;
		test_latched_first();
		/* what a buffer does, it does with every engine; the radix tree's take long */
		if (strcmp(ax_structure_name(structure), "btree") != 0)
			continue;
		test_tail_beside("a window", 4000, 1, 513, 1);
		test_tail_beside("a log", 5000, 250000, 1, 64);
		test_tail_shut("a ring of windows", 1);
		test_tail_shut("a row of logs", 250000);
	}
	ax_detach(&other);
	ax_detach(&cx);
	return tap_done();
}
