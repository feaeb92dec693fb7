/*
 * hy_engine.c
 *	  HydraList as engines: the tables of what hy_list.c and the files beside it do.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "hydra.h"
#include "hy_list.h"

#define ENGINE(sync_name, how, ...) { \
	.structure = "hydra", \
	.sync = sync_name, \
	.kind = how, \
	.logs = true, \
	.insert = hy_insert, \
	.remove = hy_remove, \
	.contains = hy_contains, \
	.lookup = hy_lookup, \
	.scan = hy_scan, \
	.load = hy_load, \
	.insert_sorted = hy_insert_sorted, \
	.compact = hy_compact, \
	.check = hy_check, \
	.settle = hy_settle, \
	.info = hy_info, \
	__VA_ARGS__ \
}

const ax_engine ax_engine_hydra_olc = ENGINE("olc", AX_SYNC_OLC,);
const ax_engine ax_engine_hydra_optiql = ENGINE("optiql", AX_SYNC_OPTIQL,);
/* readers search the layer below without latches */
const ax_engine ax_engine_hydra_mvrlu = ENGINE("mvrlu", AX_SYNC_MVRLU, .open = rt_open_rowex);
