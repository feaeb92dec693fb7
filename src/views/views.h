/*
 * views.h
 *	  Functions and views of SQL: what they share.
 *
 * src/views/README.md: Statistics
 */
#ifndef ART_VIEWS_H
#define ART_VIEWS_H

#include "utils/rel.h"

/* ---- index_views.c ---- */

/*
 * Open an index by OID, its table locked first; ERROR 42809 when it is not one
 * of ours.  The end closes it and gives the locks back.
 */
extern Relation art_stat_open(Oid indexoid, Oid *heapoid);
extern void art_stat_close(Relation index, Oid heapoid);

/* ---- check_after_crash.c ---- */

extern void art_recheck_init(void); /* from _PG_init, preloading */

#endif							/* ART_VIEWS_H */
