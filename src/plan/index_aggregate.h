/*
 * index_aggregate.h
 *	  Aggregates from an index alone: what their planner and their executor share.
 *
 * src/plan/README.md: Aggregates from an index
 */
#ifndef ART_PLAN_INDEX_AGGREGATE_H
#define ART_PLAN_INDEX_AGGREGATE_H

#include "nodes/extensible.h"

#define ART_AGG_NAME	"Index Aggregate"

/*
 * The scan tuple of the node is the results below, then columns of the table, which are
 * never read.  They are there for the conditions of the index, as EXPLAIN prints them.
 */
typedef enum ArtAggKind
{
	ART_AGG_GROUP,				/* no aggregate: a column of GROUP BY */
	ART_AGG_ROWS,				/* count(*) */
	ART_AGG_COUNT,				/* of a column that is not NULL */
	ART_AGG_SUM,				/* of int2, int4: an int8 */
	ART_AGG_SUM_BIG,			/* of int8: a numeric */
	ART_AGG_AVG,				/* of all three: a numeric */
	ART_AGG_AVG_STATE,			/* of int2, int4, below Gather: an array of count and sum */
	ART_AGG_BIG_STATE,			/* of int8, below Gather: sum's and avg's state, written down */
	ART_AGG_MIN,
	ART_AGG_MAX
} ArtAggKind;

/* The elements of custom_private, each a list: */
typedef enum ArtAggPrivate
{
	ART_AGG_NUMBERS,			/* ArtAggNumber */
	ART_AGG_OIDS,				/* the index */
	ART_AGG_KINDS,				/* ArtAggKind of each result */
	ART_AGG_COLUMNS,			/* and its column of the index, from 0; -1: none */
	ART_AGG_QUAL_COLUMNS		/* the same, of the left sides of the index's conditions */
} ArtAggPrivate;

typedef enum ArtAggNumber
{
	ART_AGG_BACKWARD,
	ART_AGG_PREFIX				/* columns of the index that are one value in a group; -1: no GROUP BY */
} ArtAggNumber;

/* ---- aggregate_executor.c ---- */

/* The custom scan, as core knows it by its name. */
extern const CustomScanMethods art_agg_scan_methods;

/* ---- aggregate_states.c ---- */

/* avg(int4)'s state of n values with this sum, in the current memory context. */
extern Datum art_agg_int4_state(uint64 n, int128 sum);

/* avg(int8)'s and sum(int8)'s, as it passes through Gather; n is not 0. */
extern Datum art_agg_int8_state(uint64 n, int128 sum);

#endif							/* ART_PLAN_INDEX_AGGREGATE_H */
