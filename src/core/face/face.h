/*
 * face.h
 *	  What the files of the face share: trees under one latch, as engines.
 *
 * src/core/base/README.md: Latches, restarts, waiting
 */
#ifndef AX_FACE_H
#define AX_FACE_H

#include "core/base/ax_internal.h"

/* The adaptive radix tree under one latch: ax_engine_art_olc within. */
extern const ax_engine ax_engine_art_coarse;

/* The B+-tree under one latch: ax_engine_btree_olc within. */
extern const ax_engine ax_engine_btree_coarse;

/* HydraList under one latch: ax_engine_hydra_olc within. */
extern const ax_engine ax_engine_hydra_coarse;

#endif							/* AX_FACE_H */
