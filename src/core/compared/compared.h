/*
 * compared.h
 *	  What this room offers: the B+-tree whose order only the caller knows, as an
 *	  engine; its calls are in ax_cmp.h.
 *
 * src/core/compared/README.md: Keys that are compared
 */
#ifndef AX_COMPARED_H
#define AX_COMPARED_H

#include "core/base/ax_internal.h"

/*
 * The table of what needs no order: load, compaction, check.  Its other functions
 * panic; callers go by ax_cmp.h.
 */
extern const ax_engine ax_engine_btree_compared;

#endif							/* AX_COMPARED_H */
