/*
 * bt_engine.c
 *	  The B+-tree as engines: the tables of what bt_tree.c and the files beside it
 *	  do.
 *
 * src/core/btree/README.md: The B+-tree
 */
#include "bt_tree.h"
#include "btree.h"

#define ENGINE(sync_name, how) { \
	.structure = "btree", \
	.sync = (sync_name), \
	.kind = (how), \
	.insert = bt_insert, \
	.remove = bt_remove, \
	.contains = bt_contains, \
	.lookup = bt_lookup, \
	.lookup_many = bt_lookup_many, \
	.look_ahead = bt_look_ahead, \
	.scan = bt_scan, \
	.load = bt_load, \
	.insert_sorted = bt_insert_sorted, \
	.compact = bt_compact, \
	.check = bt_check, \
	.object_bytes = bt_object_bytes \
}

const ax_engine ax_engine_btree_olc = ENGINE("olc", AX_SYNC_OLC);
const ax_engine ax_engine_btree_optiql = ENGINE("optiql", AX_SYNC_OPTIQL);
