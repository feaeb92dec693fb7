/*
 * views.h
 *	  Functions and views of SQL: what they share.
 *
 * src/views/README.md: Statistics
 */
#ifndef ART_VIEWS_H
#define ART_VIEWS_H

#include "fmgr.h"
#include "utils/rel.h"

#include "area/area.h"

/* ---- index_views.c ---- */

/*
 * Open an index by OID, its table locked first; ERROR 42809 when it is not one
 * of ours.  The end closes it and gives the locks back.
 */
extern Relation art_stat_open(Oid indexoid, Oid *heapoid);
extern void art_stat_close(Relation index, Oid heapoid);

/* artidx_index_size(regclass), as SQL calls it. */
extern PGDLLEXPORT Datum artidx_index_size(PG_FUNCTION_ARGS);

/* ---- wait_function.c ---- */

/* Will it be built, or on a standby be followed?  After a promotion, will it be handed over? */
extern bool art_will_be_there(ArtState state, ArtReason reason);

/* ---- estimate.c ---- */

/* artidx_estimate(regclass), as SQL calls it. */
extern PGDLLEXPORT Datum artidx_estimate_index(PG_FUNCTION_ARGS);

/* ---- check_after_crash.c ---- */

extern void art_recheck_init(void); /* from _PG_init, preloading */

#endif							/* ART_VIEWS_H */
