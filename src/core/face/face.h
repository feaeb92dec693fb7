/*
 * face.h
 *	  What the files of the face share: trees under one latch, as engines.
 *
 * src/core/base/README.md: Latches, restarts, waiting
 */
#ifndef AX_FACE_H
#define AX_FACE_H

#include "core/base/ax_internal.h"

extern const ax_engine ax_engine_art_coarse;
extern const ax_engine ax_engine_btree_coarse;
extern const ax_engine ax_engine_hydra_coarse;

#endif							/* AX_FACE_H */
