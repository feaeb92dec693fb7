/*
 * test_calls.c
 *	  What ax.h promises of every call, whatever the structure: a generation that is gone
 *	  is refused, nothing to do is done, and what only the caller's processes use.
 */
#include <stdlib.h>
#include <string.h>

#include "core/ax_cmp.h"
#include "core/base/ax_area.h"
#include "keyset.h"
#include "tap.h"

#define SLOTS 3
#define COLUMNS 9
#define LONGEST 900				/* columns of a key that no page of 1,024 bytes takes */

static ax_ctx cx;
static ax_tree *tree;
static uint64_t gen;
static int	woken;

static void
wake(void)
{
	woken++;
}

static void
make(uint8_t *k, uint64_t i)
{
	memset(k, 1, COLUMNS);
	ks_put8(k, i);
	ks_put_tid(k + COLUMNS, ks_tid(i));
}

/* The same of a key that may be long, by its number; its length. */
static uint32_t
make_long(uint8_t *k, uint64_t i, bool longs)
{
	uint32_t	columns = longs ? 300 + (uint32_t) (i % 7) * 100 : COLUMNS;

	memset(k, 1, columns);
	ks_put8(k, i * UINT64_C(0x9E3779B97F4A7C15));
	ks_put_tid(k + columns, ks_tid(i));
	return columns + AX_TID_BYTES;
}

/* ---- generations ---- */

/*
 * Every call that names a generation, of keys that the tree has and has not: how many
 * are not refused, and the last of them.
 */
static int
not_stale(uint64_t of, const char **which)
{
	uint8_t		k[COLUMNS + AX_TID_BYTES],
				buf[64];
	const uint8_t *p[1] = {k};
	const ax_keys keys = {p, NULL, sizeof(k), 1};
	const ax_keys prefixes = {p, NULL, COLUMNS, 1};
	uint64_t	tid[4],
				done = 0,
				added = 0,
				bytes,
				live;
	uint32_t	some = 0,
				size = 0,
				counts[1];
	bool		flag = false;
	int			n = 0;
	ax_found	f = {.max = 4,.tids = tid};
	ax_batch	b = {.max = 4,.tids = tid,.lastkey = buf,.lastkey_size = sizeof(buf)};
	ax_compaction compaction = {.work = NULL};
	ax_checking checking = {.buf = buf,.size = sizeof(buf)};
	ax_site_info sites[AX_SITES];
	ax_tree_info info;
	ax_cpath	path = {.n = 0};

#define CALL(what) \
	do { \
		if ((what) != AX_STALE) \
		{ \
			n++; \
			*which = #what; \
		} \
	} while (0)
	for (uint64_t i = 0; i < 2; i++)
	{
		make(k, i);
		CALL(ax_insert(&cx, tree, of, k, sizeof(k)));
		CALL(ax_insert_many(&cx, tree, of, &keys, &some));
		CALL(ax_insert_sorted(&cx, tree, of, &keys, &done, &added));
		CALL(ax_load(&cx, tree, of, &keys, 90));
		CALL(ax_load_share(&cx, tree, of, &keys, 90, &done, &added));
		CALL(ax_remove(&cx, tree, of, k, sizeof(k)));
		CALL(ax_contains(&cx, tree, of, k, sizeof(k)));
		CALL(ax_lookup(&cx, tree, of, k, COLUMNS, &f));
		CALL(ax_lookup_many(&cx, tree, of, &prefixes, &f, counts, &some));
		CALL(ax_scan(&cx, tree, of, &b));
		CALL(ax_settle(&cx, tree, of, true));
		CALL(ax_catch_up(&cx, tree, of));
		CALL(ax_compact(&cx, tree, of, &compaction));
		CALL(ax_held(&cx, tree, of, &bytes, &live));
		CALL(ax_check(&cx, tree, of, &checking));
		CALL(ax_info(&cx, tree, of, &info));
		CALL(ax_info_about(&cx, tree, of, &info));
		CALL(ax_aborts(&cx, tree, of, sites));
		CALL(ax_tree_set_cap(&cx, tree, of, 1));
		CALL(ax_tree_set_tail(&cx, tree, of, AX_TAIL_ON));
		CALL(ax_tree_set_elision(&cx, tree, of, AX_ELIDE_ON));
		CALL(ax_tail_close(&cx, tree, of, &flag));
		CALL(ax_tail_flush(&cx, tree, of, &flag));
		CALL(ax_cmp_size(&cx, tree, of, &size));
		CALL(ax_cmp_root(&cx, tree, of, &path));
	}
#undef CALL
	if (done || added || some || f.n || b.n)
		n++;
	return n;
}

static void
test_generations(ax_structure s)
{
	const char *which = "";
	uint64_t	old;
	uint8_t		k[COLUMNS + AX_TID_BYTES];
	ax_tree_info info;
	int			n;

	if (ax_tree_open(&cx, tree, s, 0, 1024, &old) != AX_OK)
		abort();
	ax_tree_close(&cx, tree);
	n = not_stale(old, &which);
	ok(n == 0, "%s-%s: %d calls to a tree that is closed are not refused %s",
	   ax_structure_name(s), ax_structure_sync(s), n, which);

	/* the next life has one of the two keys, and keeps it, and its options */
	if (ax_tree_open(&cx, tree, s, 0, 1024, &gen) != AX_OK)
		abort();
	make(k, 0);
	if (s != AX_BTREE_COMPARED && ax_insert(&cx, tree, gen, k, sizeof(k)) != AX_OK)
		abort();
	n = not_stale(old, &which);
	ok(n == 0 && gen != old, "nor %d of those that name its life before %s", n, which);
	ok(ax_info(&cx, tree, gen, &info) == AX_OK && info.entries == (s != AX_BTREE_COMPARED),
	   "and they have changed nothing: %llu entries", (unsigned long long) info.entries);
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* ---- nothing to do ---- */

static void
test_nothing(ax_structure s)
{
	const ax_keys none = {NULL, NULL, COLUMNS, 0};
	uint64_t	done = 1,
				added = 1;
	uint32_t	some = 1;
	ax_found	f = {.max = 0};
	ax_tree_info info;
	bool		good = false;
	char		why[256] = "";

	if (ax_tree_open(&cx, tree, s, 0, 1024, &gen) != AX_OK)
		abort();
	ok(ax_load(&cx, tree, gen, &none, 90) == AX_OK &&
	   ax_insert_many(&cx, tree, gen, &none, &some) == AX_OK && some == 0 &&
	   ax_insert_sorted(&cx, tree, gen, &none, &done, &added) == AX_OK && done == 0 && added == 0 &&
	   ax_lookup_many(&cx, tree, gen, &none, &f, NULL, &some) == AX_OK && some == 0,
	   "%s-%s: no keys, none loaded, inserted, found", ax_structure_name(s), ax_structure_sync(s));
	ok(tap_check(&cx, tree, gen, &info, &good, why, sizeof(why)) == AX_OK && good && info.entries == 0,
	   "and the tree is sound, with %llu entries %s", (unsigned long long) info.entries, why);
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* ---- compaction ---- */

/*
 * Of few keys that are left all over the tree: it gives back most of what it held, also of long
 * keys, which are objects of their own and are moved, too.
 */
static void
test_compacted(ax_structure s, bool longs)
{
	const uint64_t n = longs ? 6000 : 20000;
	void	   *work = malloc(AX_COMPACT_WORK);
	ax_tree_info info;
	uint8_t		k[LONGEST + AX_TID_BYTES];
	uint64_t	before,
				held,
				live,
				wrong = 0;
	bool		good = false;
	char		why[256] = "";

	if (ax_tree_open(&cx, tree, s, 0, 1024, &gen) != AX_OK)
		abort();
	for (uint64_t i = 0; i < n; i++)
		wrong += ax_insert(&cx, tree, gen, k, make_long(k, i, longs)) != AX_OK;
	for (uint64_t i = 0; i < n; i++)
		if (i % 16)
			wrong += ax_remove(&cx, tree, gen, k, make_long(k, i, longs)) != AX_OK;
	wrong += ax_settle(&cx, tree, gen, true) != AX_OK;
	(void) tap_quiesce(&cx);
	wrong += ax_held(&cx, tree, gen, &before, &live) != AX_OK || live > before;
	for (int pass = 0; pass < 12; pass++)
	{
		ax_compaction c = {.work = work};

		for (int calls = 0; calls < 100000 && !c.done; calls++)
		{
			ax_status	x = ax_compact(&cx, tree, gen, &c);

			wrong += x != AX_OK && x != AX_BUSY;
		}
		wrong += !c.done;
		(void) tap_quiesce(&cx);
	}
	wrong += ax_held(&cx, tree, gen, &held, &live) != AX_OK || live > held;
	ok(wrong == 0 && (longs ? held < before / 4 : held + 65536 < before),
	   "%s-%s%s is compacted: %llu bytes before, %llu after, of which %llu are in use", ax_structure_name(s),
	   ax_structure_sync(s), longs ? " of long keys" : "", (unsigned long long) before, (unsigned long long) held,
	   (unsigned long long) live);
	ok(tap_check(&cx, tree, gen, &info, &good, why, sizeof(why)) == AX_OK && good && info.entries == n / 16,
	   "and is sound: %llu entries %s", (unsigned long long) info.entries, why);
	for (uint64_t i = 0; i < n; i++)
		wrong += ax_contains(&cx, tree, gen, k, make_long(k, i, longs)) != (i % 16 ? AX_NOTFOUND : AX_OK);
	ok(wrong == 0, "and has what it had");
	ax_tree_close(&cx, tree);
	free(work);
	(void) tap_quiesce(&cx);
}

/* ---- the updater ---- */

static void
test_updater(void)
{
	ax_updater_begin(&cx);
	ok(!ax_updater_wanted(&cx) && ax_updater_sleep(&cx), "nothing is logged: the updater may sleep");
	ax_tell_updater(&cx);
	ok(woken == 1 && ax_updater_wanted(&cx), "something is, and it is woken");
	ax_tell_updater(&cx);
	ok(woken == 1 && ax_updater_wanted(&cx), "once");
	ok(!ax_updater_sleep(&cx), "news: it does not sleep");
	ax_tell_updater(&cx);
	ok(woken == 1, "and nobody wakes it, for it is awake");
	ax_updater_begin(&cx);
	ok(!ax_updater_wanted(&cx) && ax_updater_sleep(&cx), "all of it is done: it sleeps again");
	ax_tell_updater(&cx);
	ok(woken == 2, "and is woken again");
}

/* ---- the caller's own objects ---- */

static void
test_objects(ax_area *area, size_t size)
{
	uint8_t    *a = ax_system_alloc(&cx, 1),
			   *b = ax_system_alloc(&cx, 3 * AX_PAGE - 1);
	bool		zero = a && b;

	for (size_t i = 0; zero && i < 3 * AX_PAGE; i++)
		zero = b[i] == 0 && (i >= AX_PAGE || a[i] == 0);
	ok(zero && ((uintptr_t) a | (uintptr_t) b) % AX_PAGE == 0 && (b >= a + AX_PAGE || b + 3 * AX_PAGE <= a),
	   "objects of the caller: zero, on pages of their own");
	ok(!ax_system_alloc(&cx, 0) && !ax_system_alloc(&cx, SIZE_MAX) && !ax_system_alloc(&cx, size),
	   "none of nothing, and none that is too large");
	ok(!ax_area_init((uint8_t *) area + 1, size, SLOTS, 0) && !ax_area_init(area, size, 0, 0) &&
	   !ax_area_init(area, ax_area_min_size(SLOTS) - 1, SLOTS, 0), "no area that begins anywhere, is for nobody, or is too small");
	ok(ax_nslots(area) == SLOTS, "the area says how many processes it is for");
}

int
main(void)
{
	static const ax_structure structures[] = {AX_ART_OLC, AX_ART_ROWEX, AX_ART_COARSE, AX_BTREE_OPTIQL,
		AX_HYDRA_OLC, AX_HYDRA_MVRLU, AX_BTREE_COMPARED};
	const size_t size = (size_t) 64 << 20;
	ax_area    *area = tap_area(size, SLOTS, 1 << 20);
	ax_port		port = ax_port_default;

	tap_deadline(300);
	port.wake_updater = wake;
	ax_attach(&cx, area, 0, 1, &port);
	tree = ax_tree_alloc(&cx);
	test_objects(area, size);
	test_updater();
	for (size_t i = 0; i < sizeof(structures) / sizeof(structures[0]); i++)
	{
		test_generations(structures[i]);
		if (structures[i] != AX_BTREE_COMPARED)
			test_nothing(structures[i]);
	}
	test_compacted(AX_ART_COARSE, false);
	test_compacted(AX_BTREE_COARSE, false);
	test_compacted(AX_HYDRA_COARSE, false);
	for (size_t i = 0; i < sizeof(structures) / sizeof(structures[0]); i++)
		if (structures[i] != AX_BTREE_COMPARED)
			test_compacted(structures[i], true);
	ax_detach(&cx);
	return tap_done();
}
