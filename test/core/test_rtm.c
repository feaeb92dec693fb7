/*
 * test_rtm.c
 *	  Elision by the processor's own transactions, over every engine: as far as it
 *	  has them, and the counters' account of it.
 *
 *	  test_rtm [force]
 *
 * Where transactions work: threads insert, remove and look up under them.  Where
 * they do not, nothing may be tried, and the views say so.  force: they are tried
 * although CPUID shows none.  That is for an emulator that aborts them all
 * (qemu-user does, and faults at XTEST and XEND); on a processor without them it
 * is an illegal instruction.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_area.h"
#include "core/base/ax_coarse.h"
#include "tap.h"

#define WORKERS 3
#define KEYLEN (8 + AX_TID_BYTES)

typedef struct world
{
	ax_area    *area;
	ax_tree    *tree;
	uint64_t	gen;
	uint64_t	keys;			/* of each worker */
	const ax_hardware *hw;
	ax_elide_option option;
	_Atomic int wrong;
} world;

/* Neighbours belong to different workers. */
static void
make_key(uint8_t *key, uint64_t n)
{
	for (int i = 0; i < 8; i++)
		key[i] = (uint8_t) (n >> (56 - 8 * i));
	for (int i = 0; i < AX_TID_BYTES; i++)
		key[8 + i] = (uint8_t) (n >> (40 - 8 * i));
}

/* AX_BUSY is for who wants to look at interrupts. */
#define CALL(r, call) do (r) = (call); while ((r) == AX_BUSY)

static void
work(void *arg, int me)
{
	world	   *w = arg;
	static _Thread_local ax_ctx cx;
	uint8_t		key[KEYLEN];
	ax_status	r;

	ax_attach(&cx, w->area, 1 + me, 1 + me, &ax_port_default);
	ax_elide_setup(&cx, w->hw, w->option, NULL, NULL);
	for (uint64_t i = 0; i < w->keys; i++)
	{
		make_key(key, i * WORKERS + me);
		CALL(r, ax_insert(&cx, w->tree, w->gen, key, KEYLEN));
		w->wrong += r != AX_OK;
		CALL(r, ax_insert(&cx, w->tree, w->gen, key, KEYLEN));
		w->wrong += r != AX_EXISTS;
		if (i % 3 == 2)
		{
			CALL(r, ax_remove(&cx, w->tree, w->gen, key, KEYLEN));
			w->wrong += r != AX_OK;
			CALL(r, ax_remove(&cx, w->tree, w->gen, key, KEYLEN));
			w->wrong += r != AX_NOTFOUND;
		}
		make_key(key, i / 2 * WORKERS + me);
		CALL(r, ax_contains(&cx, w->tree, w->gen, key, KEYLEN));
		w->wrong += r != (i / 2 % 3 == 2 ? AX_NOTFOUND : AX_OK);
	}
	ax_detach(&cx);
}

static void
engine(ax_structure s, const ax_hardware *hw, bool always_aborts, ax_elide_option option)
{
	static ax_ctx cx;
	/* where nothing is tried, the other tests look at the rest */
	world		w = {.hw = hw, .option = option,
	.keys = tap_scaled(!hw->rtm_usable ? 500 : option == AX_ELIDE_ON ? 6000 : 20000)};
	ax_site_info site[AX_SITES],
				sum = {0};
	ax_tree_info info;
	uint64_t	expected = 0;
	ax_status	r;
	bool		clean = false,
				modes = true,
				coarse = strcmp(ax_structure_sync(s), "coarse") == 0,
				tried = hw->rtm_usable && strcmp(ax_structure_name(s), "hydra") != 0 &&
				(coarse || option == AX_ELIDE_ON);
	char		name[64],
				msg[256];

	snprintf(name, sizeof(name), "%s-%s %s", ax_structure_name(s), ax_structure_sync(s),
			 option == AX_ELIDE_ON ? "on" : "auto");
	w.area = tap_area((size_t) 256 << 20, WORKERS + 1, 1 << 20);
	ax_attach(&cx, w.area, 0, 100, &ax_port_default);
	ax_elide_setup(&cx, hw, option, NULL, NULL);
	w.tree = ax_tree_alloc(&cx);
	ok(w.tree != NULL && ax_tree_open(&cx, w.tree, s, 0, 0, &w.gen) == AX_OK, "%s: opened", name);
	/* "auto" tries what was found taken: chance would not always have them meet */
	ax_coarse_contended(atomic_load(&w.tree->store), true);
	tap_threads(WORKERS, work, &w);
	ok(w.wrong == 0, "%s: every answer is right (%d are not)", name, w.wrong);

	for (uint64_t i = 0; i < w.keys; i++)
		expected += i % 3 == 2 ? 0 : WORKERS;
	CALL(r, tap_check(&cx, w.tree, w.gen, &info, &clean, msg, sizeof(msg)));
	ok(r == AX_OK && clean, "%s: clean: %s", name, r == AX_OK && !clean ? msg : "");
	ok(info.entries == expected, "%s: %llu entries", name, (unsigned long long) info.entries);

	ok(ax_aborts(&cx, w.tree, w.gen, site) == AX_OK, "%s: counters", name);
	for (int i = 0; i < AX_SITES; i++)
	{
		const ax_site_info *x = &site[i];

		sum.sections += x->sections;
		sum.attempts += x->attempts;
		sum.commits += x->commits;
		sum.zero += x->zero;
		sum.fallbacks += x->fallbacks;
		sum.switch_offs += x->switch_offs;
		/* a tree has only some of the sites, the others are off */
		if (strcmp(x->mode, hw->rtm_usable ? "on" : "no-rtm") != 0 &&
			!(option == AX_ELIDE_AUTO && strcmp(x->mode, "adaptive-off") == 0) &&
			!(hw->rtm_usable && x->sections == 0 && strcmp(x->mode, "off") == 0))
			modes = false;
	}
	ok(modes, "%s: modes", name);
	tap_diag("%s: %llu sections, %llu attempts, %llu commits, %llu switched off", name,
			 (unsigned long long) sum.sections, (unsigned long long) sum.attempts,
			 (unsigned long long) sum.commits, (unsigned long long) sum.switch_offs);
	if (!tried)
		ok(sum.sections == 0 && sum.attempts == 0 && sum.switch_offs == 0, "%s: nothing is tried", name);
	else if (always_aborts)
	{
		ok(sum.commits == 0 && sum.fallbacks == sum.sections && sum.sections > 0,
		   "%s: nothing commits, everything falls back", name);
		ok(sum.zero > 0 && sum.zero == sum.attempts, "%s: aborts without a cause", name);
		if (option == AX_ELIDE_ON)
			ok(sum.switch_offs == 0, "%s: never switched off", name);
		else
			ok(sum.switch_offs > 0 && sum.sections < w.keys * WORKERS / 4,
			   "%s: switched off, and few are tried", name);
	}
	else
		ok(sum.commits > 0, "%s: some commit", name);
	ax_tree_close(&cx, w.tree);
	ax_detach(&cx);
	tap_unmap(w.area, (size_t) 256 << 20);
}

int
main(int argc, char **argv)
{
	bool		force = argc > 1 && strcmp(argv[1], "force") == 0;
	ax_hardware hw;

	ax_hardware_probe(&hw);
	tap_diag("RTM: cpuid %d, always aborts %d, %d of %d tried committed", hw.rtm_cpuid,
			 hw.rtm_always_abort, hw.probe_commits, hw.probe_attempts);
	ok(hw.rtm_cpuid || (hw.probe_attempts == 0 && !hw.rtm_usable),
	   "no transaction is begun where CPUID shows none");
	ok(hw.rtm_usable == (hw.probe_commits > 0), "usable when some commit");
	ok(hw.probe_commits <= hw.probe_attempts, "no more commit than are tried");
	/* an emulator that has the instructions aborts every transaction */
	if (force && !hw.rtm_usable)
		hw.rtm_usable = true;
	else
		force = false;
	if (!hw.rtm_usable)
		tap_diag("no RTM here");

	for (int s = 0; s < AX_STRUCTURES; s++)
	{
		if (s == AX_BTREE_COMPARED)
			continue;			/* its sections are another's */
		engine((ax_structure) s, &hw, force, AX_ELIDE_ON);
		engine((ax_structure) s, &hw, force, AX_ELIDE_AUTO);
	}
	return tap_done();
}
