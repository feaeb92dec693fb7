/*
 * radix.h
 *	  What this room offers: the adaptive radix tree, as engines.
 *
 * src/README.md: The tree
 */
#ifndef AX_RADIX_H
#define AX_RADIX_H

#include "core/base/ax_internal.h"

extern const ax_engine ax_engine_art_olc;
extern const ax_engine ax_engine_art_rowex;
extern const ax_engine ax_engine_art_optiql;

#endif							/* AX_RADIX_H */
