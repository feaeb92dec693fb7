/*
 * btree.h
 *	  What this room offers: the B+-tree, as engines.
 *
 * src/core/btree/README.md: The B+-tree
 */
#ifndef AX_BTREE_H
#define AX_BTREE_H

#include "core/base/ax_internal.h"

/* Optimistic latch coupling. */
extern const ax_engine ax_engine_btree_olc;

/* Leaves are latched through a queue of writers. */
extern const ax_engine ax_engine_btree_optiql;

#endif							/* AX_BTREE_H */
