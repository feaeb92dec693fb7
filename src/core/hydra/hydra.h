/*
 * hydra.h
 *	  What this room offers: HydraList, as engines.
 *
 * src/core/hydra/README.md: HydraList
 */
#ifndef AX_HYDRA_H
#define AX_HYDRA_H

#include "core/base/ax_internal.h"

/* Optimistic latch coupling. */
extern const ax_engine ax_engine_hydra_olc;

/* Nodes are latched through a queue of writers. */
extern const ax_engine ax_engine_hydra_optiql;

/* Readers see all as it was when they came (hm_version.h). */
extern const ax_engine ax_engine_hydra_mvrlu;

#endif							/* AX_HYDRA_H */
