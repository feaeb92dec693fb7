/*
 * art_join.h
 *	  Batched joins: what their planner and their executor share.
 *
 * src/README.md: Batched joins
 */
#ifndef ART_JOIN_H
#define ART_JOIN_H

#include "nodes/extensible.h"
#include "nodes/nodes.h"
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
	ART_BATCH_LIMIT				/* of the query's rows, or 0 */
} ArtBatchNumber;

/* And of custom_exprs: */
typedef enum ArtBatchExprs
{
	ART_BATCH_ARGUMENTS,		/* the right sides of the index's conditions */
	ART_BATCH_INDEX_QUALS,		/* those conditions, for EXPLAIN */
	ART_BATCH_JOIN_QUALS,		/* what else makes a match */
	ART_BATCH_FILTERS			/* above the join */
} ArtBatchExprs;

/* ---- art_joinexec.c ---- */
extern const CustomScanMethods art_batch_scan_methods;

#endif							/* ART_JOIN_H */
