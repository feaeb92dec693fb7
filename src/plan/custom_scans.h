/*
 * custom_scans.h
 *	  What the nodes of this room have in common.
 *
 * src/plan/README.md: The planner
 */
#ifndef ART_PLAN_CUSTOM_SCANS_H
#define ART_PLAN_CUSTOM_SCANS_H

#include "commands/explain.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/*
 * EXPLAIN: conditions as core shows them, and how many rows of a loop did not pass.  A
 * negative number: that is not shown.  "prefix": columns with the names of their tables.
 */
extern void art_explain_quals(const char *label, Node *quals, List *context, bool prefix,
							  double removed, ExplainState *es);

/*
 * Paths of one index for the table's conditions, as core makes them, partial ones too if
 * "parallel".  They are on a copy of the table, which keeps those that it has chosen.
 */
extern RelOptInfo *art_paths_of_index(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
									  bool parallel);

/*
 * Is the index's column (from 0) one value, by a condition of the index?  Of another type a
 * constant may equal several: two timestamps without time zone are one moment, where a clock
 * is put forward.
 */
extern bool art_column_is_fixed(const IndexPath *ipath, int column);

/* Do entries of an index (column from 0) that agree in the column have the very same value? */
extern bool art_column_is_exact(Oid indexid, int column);

#endif							/* ART_PLAN_CUSTOM_SCANS_H */
