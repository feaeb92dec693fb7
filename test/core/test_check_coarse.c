/*
 * test_check_coarse.c
 *	  A check of a tree under one coarse latch keeps out while somebody writes: a section
 *	  can be undone in the middle, and would bring back latch words that a check had
 *	  changed meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/ax_coarse.h"
#include "core/base/ax_internal.h"
#include "tap.h"

int
main(void)
{
	static const ax_structure engines[] = {AX_BTREE_COARSE, AX_ART_COARSE};
	static ax_ctx writer,
				checker;

	for (int e = 0; e < 2; e++)
	{
		const char *name = ax_structure_name(engines[e]);
		ax_area    *area = tap_area((size_t) 16 << 20, 2, 1 << 20);
		ax_tree    *tree;
		uint64_t	gen;
		ax_store   *st;
		uint8_t		buf[512];
		ax_checking c = {.buf = buf, .size = sizeof(buf)};

		ax_attach(&writer, area, 0, 1, &ax_port_default);
		ax_attach(&checker, area, 1, 2, &ax_port_default);
		tree = ax_tree_alloc(&writer);
		(void) ax_tree_open(&writer, tree, engines[e], 0, 0, &gen);
		for (uint8_t i = 0; i < 200; i++)
		{
			uint8_t		k[1 + AX_TID_BYTES] = {i, 0, 0, 0, 0, 0, 1};

			if (ax_insert(&writer, tree, gen, k, sizeof(k)) != AX_OK)
				ok(false, "insert");
		}
		(void) ax_enter(&writer, tree, gen, &st);
		ok(ax_coarse_try(&writer, st, true), "%s: somebody writes", name);
		ok(ax_check(&checker, tree, gen, &c) == AX_BUSY && !c.done && !c.bad,
		   "%s: a check is to come back", name);
		ax_coarse_unlock(&writer, st, true);
		ax_leave(&writer);
		for (int i = 0; i < 1000 && !c.done && !c.bad; i++)
			(void) ax_check(&checker, tree, gen, &c);
		ok(c.done && !c.bad, "%s: and then done, all is well", name);
		ax_tree_close(&writer, tree);
		ok(tap_quiesce(&writer), "%s: quiescent", name);
		ax_detach(&checker);
		ax_detach(&writer);
	}
	return tap_done();
}
