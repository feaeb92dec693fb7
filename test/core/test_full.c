/*
 * test_full.c
 *	  A Node256 that is full by the time its insert looks for room.
 *
 * An insert that found no child for its byte is stopped before it looks whether
 * the node has room; another then puts the last child there.  With 256 children
 * there is nothing that the node could grow into: the insert must begin again
 * and go below the new child.  (Growing it all the same reads sizes of a kind
 * that there is not: UBSan sees it wherever it happens to do no harm.)
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/ax_area.h"
#include "tap.h"

#define KEY_LEN 8				/* two bytes, TID */

static ax_ctx cx,
			victim_cx;
static ax_tree *tree;
static uint64_t gen;
static sem_t stopped,
			resume;
static atomic_bool armed;
static _Thread_local bool is_victim;
static ax_status victim_status;

static void
hook(const char *name)
{
	if (!is_victim || strcmp(name, "art.child.before_room") != 0 || !atomic_exchange(&armed, false))
		return;
	sem_post(&stopped);
	while (sem_wait(&resume))
		;
}

static void
make_key(uint8_t k[KEY_LEN], int byte, int tid)
{
	memset(k, 0, KEY_LEN);
	k[0] = 1;
	k[1] = (uint8_t) byte;
	k[KEY_LEN - 2] = (uint8_t) (tid >> 8);
	k[KEY_LEN - 1] = (uint8_t) tid;
}

static ax_status
insert(ax_ctx *c, int byte, int tid)
{
	uint8_t		k[KEY_LEN];

	make_key(k, byte, tid);
	return ax_insert(c, tree, gen, k, KEY_LEN);
}

/* 0: the other of the two inserts the last child while the victim waits. */
static void
run(void *arg, int i)
{
	int			byte = *(int *) arg;

	is_victim = i == 1;
	if (is_victim)
	{
		victim_status = insert(&victim_cx, byte, 2000);
		if (atomic_load(&armed))
			sem_post(&stopped);	/* it never came to the point */
		return;
	}
	while (sem_wait(&stopped))
		;
	ok(!atomic_load(&armed), "byte %d: stopped before it looks for room", byte);
	ok(insert(&cx, byte, 1000) == AX_OK, "byte %d: another takes the last place", byte);
	sem_post(&resume);
}

int
main(void)
{
	ax_area    *a = tap_area(16 << 20, 4, 1 << 16);

	tap_point_hook = hook;
	ax_attach(&cx, a, 0, 1, &ax_port_default);
	ax_attach(&victim_cx, a, 1, 2, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	for (int x = 0; x < 3 * 6; x++)
	{
		/* not coarse: whoever is stopped there stops all */
		static const ax_structure engines[] = {AX_ART_OLC, AX_ART_ROWEX, AX_ART_OPTIQL};
		int			byte = x % 6 * 51;
		ax_tree_info ti;
		bool		good = false;
		char		msg[200] = "";
		uint8_t		k[KEY_LEN];
		uint64_t	tids[4];
		ax_found	f = {.tids = tids, .max = 4};

		ok(ax_tree_open(&cx, tree, engines[x / 6], 0, 0, &gen) == AX_OK, "open art-%s",
		   ax_structure_sync(engines[x / 6]));
		/* several of a byte, so that each has a child of its own */
		for (int i = 0; i < 256; i++)
			for (int t = 1; t <= 300 && i != byte; t++)
				if (insert(&cx, i, t) != AX_OK)
					ok(false, "insert");
		ok(ax_info(&cx, tree, gen, &ti) == AX_OK && ti.n256 > 0, "byte %d: there is a Node256", byte);
		sem_init(&stopped, 0, 0);
		sem_init(&resume, 0, 0);
		atomic_store(&armed, true);
		tap_threads(2, run, &byte);
		ok(victim_status == AX_OK, "byte %d: the stopped insert succeeds", byte);
		make_key(k, byte, 0);
		ok(ax_lookup(&cx, tree, gen, k, KEY_LEN - 6, &f) == AX_OK && f.n == 2 &&
		   tids[0] == 1000 && tids[1] == 2000, "byte %d: both are there", byte);
		ok(tap_check(&cx, tree, gen, &ti, &good, msg, sizeof(msg)) == AX_OK && good &&
		   ti.entries == 255 * 300 + 2, "byte %d: check %s", byte, msg);
		ax_tree_close(&cx, tree);
		(void) tap_quiesce(&cx);
	}
	ax_tree_release(&cx, tree);
	ax_detach(&victim_cx);
	ax_detach(&cx);
	return tap_done();
}
