/*
 * hydra.h
 *	  What this room offers: HydraList, as engines.
 *
 * src/core/hydra/README.md: HydraList
 */
#ifndef AX_HYDRA_H
#define AX_HYDRA_H

#include "core/base/ax_internal.h"

extern const ax_engine ax_engine_hydra_olc;
extern const ax_engine ax_engine_hydra_optiql;
extern const ax_engine ax_engine_hydra_mvrlu;

/* Tells of a store's list; nothing where there is none.  Inside an epoch. */
extern void ax_hydra_info(ax_store *s, ax_tree_info *out);

#endif							/* AX_HYDRA_H */
