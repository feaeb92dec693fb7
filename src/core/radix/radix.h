/*
 * radix.h
 *	  What this room offers: the adaptive radix tree, as engines.
 *
 * src/core/radix/README.md: The tree
 */
#ifndef AX_RADIX_H
#define AX_RADIX_H

#include "core/base/ax_internal.h"

extern const ax_engine ax_engine_art_olc;
extern const ax_engine ax_engine_art_rowex;
extern const ax_engine ax_engine_art_optiql;

/* The TID of an entry next to a position, for a tree whose writers latch (rt_floor.c). */
extern ax_status rt_floor(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len,
						  bool after, bool waits, uint64_t *tid);

#endif							/* AX_RADIX_H */
