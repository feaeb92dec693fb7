/*
 * hy_engine.c
 *	  HydraList as engines: the tables of what hy_list.c and the files beside it do.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "hydra.h"
#include "hy_list.h"

#define ENGINE(name, sync_name, how) \
const ax_engine ax_engine_hydra_##name = { \
	.structure = "hydra", \
	.sync = sync_name, \
	.kind = how, \
	.insert = hy_insert, \
	.remove = hy_remove, \
	.contains = hy_contains, \
	.lookup = hy_lookup, \
	.scan = hy_scan, \
	.load = hy_load, \
	.insert_sorted = hy_insert_sorted, \
	.compact = hy_compact, \
	.check = hy_check, \
	.settle = hy_settle \
}

ENGINE(olc, "olc", AX_SYNC_OLC);
ENGINE(optiql, "optiql", AX_SYNC_OPTIQL);
ENGINE(mvrlu, "mvrlu", AX_SYNC_MVRLU);
