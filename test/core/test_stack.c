/*
 * test_stack.c
 *	  Every operation of every engine runs in 400 kB of stack.  PostgreSQL keeps 512
 *	  below max_stack_depth, and the callers check that that has not been passed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_internal.h"
#include "model.h"

/* A sanitizer's frames are several times as large. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STACK ((size_t) 4 << 20)
#else
#define STACK ((size_t) 400 << 10)
#endif

static ax_ctx cx;

/* Texts with much in common: separators are long, and small pages hold few. */
static void *
run(void *arg)
{
	ax_structure s = *(ax_structure *) arg;
	ax_tree    *t = ax_tree_alloc(&cx);
	model		m;

	mt_universe(&m, KK_SHARED, tap_scaled(60000), 3);
	m.cx = &cx;
	m.t = t;
	for (int i = 0; i < 2; i++)
	{
		if (ax_tree_open(&cx, t, s, 0, i ? AX_PAGE_SIZE_MAX : AX_PAGE_SIZE_MIN, &m.gen) != AX_OK)
			mt_die(&m, "open");
		if (i)
			mt_load(&m, 90, 90);
		else
			for (uint64_t k = 0; k < m.n; k++)
				mt_insert(&m, k * 7919 % m.n);
		mt_check(&m, "when full");
		for (uint64_t k = 0; k < m.n; k++)
			if (m.in[k * 4801 % m.n])
				mt_remove(&m, k * 4801 % m.n);
		mt_check(&m, "when emptied");
		mt_insert_sorted(&m, 0, m.n, 90);
		mt_scan(&m, false);
		ax_tree_close(&cx, t);
		(void) tap_quiesce(&cx);
		memset(m.in, 0, m.n * sizeof(m.in[0]));
		m.count = 0;
	}
	ax_tree_release(&cx, t);
	mt_free(&m);
	return NULL;
}

int
main(void)
{
	ax_attach(&cx, tap_area((size_t) 256 << 20, 2, 1 << 20), 0, 1, &ax_port_default);
	for (int s = 0; s < AX_STRUCTURES; s++)
	{
		ax_structure which = (ax_structure) s;
		pthread_attr_t attr;
		pthread_t	thread;
		int			rc;

		if (which == AX_BTREE_COMPARED)
			continue;
		/* a thread that needs more dies at its guard page, and the program with it */
		pthread_attr_init(&attr);
		rc = pthread_attr_setstacksize(&attr, STACK);
		if (rc == 0)
			rc = pthread_create(&thread, &attr, run, &which);
		if (rc == 0)
			rc = pthread_join(thread, NULL);
		ok(rc == 0, "%s-%s: all in %zu kB", ax_structure_name(which), ax_structure_sync(which),
		   STACK / 1024);
		pthread_attr_destroy(&attr);
	}
	ax_detach(&cx);
	return tap_done();
}
