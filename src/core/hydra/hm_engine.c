/*
 * hm_engine.c
 *	  HydraList with versions as an engine.
 *
 * src/core/hydra/README.md: Versions
 */
#include "hm.h"
#include "hydra.h"

const ax_engine ax_engine_hydra_mvrlu = {
	.structure = "hydra",
	.sync = "mvrlu",
	.kind = AX_SYNC_MVRLU,
	.logs = true,
	.open = rt_open_rowex,		/* readers search the layer below without latches */
	.insert = hm_insert,
	.remove = hm_remove,
	.contains = hm_contains,
	.lookup = hm_lookup,
	.scan = hm_scan,
	.load = hy_load,
	.insert_sorted = hy_insert_sorted,
	.compact = hy_compact,
	.check = hy_check,
	.settle = hy_settle,
	.info = hy_info
};
