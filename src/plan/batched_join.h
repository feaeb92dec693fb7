/*
 * batched_join.h
 *	  Batched joins: what their planner and their executor share.
 *
 * src/plan/README.md: Batched joins
 */
#ifndef ART_PLAN_BATCHED_JOIN_H
#define ART_PLAN_BATCHED_JOIN_H

#include "nodes/extensible.h"
#include "nodes/nodes.h"
#include "executor/tuptable.h"
#include "nodes/plannodes.h"

#define ART_BATCH_NAME		"Batched Nested Loop"

/* Entries of a key: with more, a join that wants one match finds it sooner alone. */
#define ART_BATCH_DENSE		16

/*
 * The scan tuple of the node is the outer tuple's columns, then columns of the
 * inner table, then its ctid.  That is never read, and tells the table's number.
 *
 * The elements of custom_private, each a list:
 */
typedef enum ArtBatchPrivate
{
	ART_BATCH_NUMBERS,			/* ArtBatchNumber */
	ART_BATCH_OIDS,				/* the index */
	ART_BATCH_OPERATORS,		/* of each condition of the index */
	ART_BATCH_COLLATIONS,
	ART_BATCH_COLUMNS,			/* index columns, from 1 */
	ART_BATCH_TYPES				/* of the operators' left side */
} ArtBatchPrivate;

typedef enum ArtBatchNumber
{
	ART_BATCH_JOINTYPE,
	ART_BATCH_SINGLE_MATCH,		/* one match of a row suffices */
	ART_BATCH_INDEX_ONLY,
	ART_BATCH_OUTER_COLUMNS,
	ART_BATCH_LIMIT,			/* of the query's rows, or 0 */
	ART_BATCH_ALL				/* all of them are wanted */
} ArtBatchNumber;

/* And of custom_exprs: */
typedef enum ArtBatchExprs
{
	ART_BATCH_ARGUMENTS,		/* the right sides of the index's conditions */
	ART_BATCH_INDEX_QUALS,		/* those conditions, for EXPLAIN */
	ART_BATCH_JOIN_QUALS,		/* what else makes a match */
	ART_BATCH_FILTERS			/* above the join */
} ArtBatchExprs;

/* ---- join_rows.c ---- */

/*
 * Rows of few columns, in memory that serves again and again.  The join reads
 * them where they lie.
 */
typedef struct ArtRows
{
	int			ncolumns;
	const AttrNumber *from;		/* of the slots they come from; NULL: the same */
	AttrNumber	last_from;		/* the highest */
	int			nrefs;			/* columns by reference */
	int		   *refs;
	int16	   *lens;			/* of all columns' types */
	Size		limit;			/* bytes in all, roughly */
	uint32		nrows;
	uint32		most;			/* rows; behind them is a spare one */
	bool		full;			/* no room for another */
	Datum	   *values;			/* of a row after the other */
	bool	   *isnull;
	char	   *room;			/* for values by reference */
	Size		size;			/* of the room */
	Size		used;			/* and beyond it */
	MemoryContext cxt;			/* of all that */
	MemoryContext more;			/* NULL, or what did not fit into the room */
} ArtRows;

/*
 * No rows yet, of the columns described, at most so many (max), and at most half
 * of work_mem.  "from" says which columns of a slot they are, and stays.
 */
extern void art_rows_init(ArtRows *r, TupleDesc desc, const AttrNumber *from, uint32 max);

/* Forget all rows, not the memory. */
extern void art_rows_reset(ArtRows *r);

/* Keep a row.  Returns false when there is no room, unless it must be. */
extern bool art_rows_keep(ArtRows *r, TupleTableSlot *slot, bool must);

/* The columns of a slot's row. */
static inline void
art_rows_columns(const ArtRows *r, TupleTableSlot *slot, Datum *values, bool *isnull)
{
	slot_getsomeattrs(slot, r->last_from);
	for (int i = 0; i < r->ncolumns; i++)
	{
		int			at = r->from != NULL ? r->from[i] - 1 : i;

		values[i] = slot->tts_values[at];
		isnull[i] = slot->tts_isnull[at];
	}
}

/* A kept row in a virtual slot, which points there from now on. */
static inline void
art_rows_show(const ArtRows *r, uint32 row, TupleTableSlot *slot)
{
	slot->tts_values = r->values + (Size) row * r->ncolumns;
	slot->tts_isnull = r->isnull + (Size) row * r->ncolumns;
}

/* ---- join_executor.c ---- */

/* The custom scan of a batched join, as core knows it by its name. */
extern const CustomScanMethods art_batch_scan_methods;

#endif							/* ART_PLAN_BATCHED_JOIN_H */
