/*
 * radix.h
 *	  What this room offers: the adaptive radix tree, as engines.
 *
 * src/core/radix/README.md: The tree
 */
#ifndef AX_RADIX_H
#define AX_RADIX_H

#include "core/base/ax_internal.h"

/* A radix tree keeps this in its store (ax_store.own), also as a part of another structure. */
typedef struct rt_own
{
	_Atomic uint64_t hot;		/* under OptiQL: what was expanded (rt_expand.c); a CAS
								 * from 0, once */
	bool		rowex;			/* rt_open_rowex() alone */
} rt_own;

_Static_assert(sizeof(rt_own) <= AX_OWN, "a store has room for it");

/*
 * The engines' open where some readers validate nothing: the writers of this tree keep
 * the rules of ROWEX (rt_rowex.c).
 */
extern void rt_open_rowex(ax_store *s);

/* Optimistic latch coupling. */
extern const ax_engine ax_engine_art_olc;

/*
 * The same writers, which keep the rules of ROWEX; readers neither wait nor start
 * over.
 */
extern const ax_engine ax_engine_art_rowex;

/* Leaves are latched through a queue of writers; hot leaves are taken apart. */
extern const ax_engine ax_engine_art_optiql;

/*
 * rt_floor.c: the TID of the last entry that is not behind a position, or of a near
 * one beside writers.  It was in the tree during the call.  The position is before
 * (after: behind) what begins with key; columns are compared, without TIDs.
 *
 * Epoch: inside.
 * Latches: none.
 * Returns: AX_OK; AX_NOTFOUND: there is none; AX_BUSY.  AX_STALE: too much changes, or
 * the entry is too far back.  Or, unless "waits", one try met a latch or a change.
 */
extern ax_status rt_floor(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len,
						  bool after, bool waits, uint64_t *tid);

#endif							/* AX_RADIX_H */
