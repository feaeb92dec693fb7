/*
 * row_compare.c
 *	  (a, b) > (x, y) as a condition of an art index, before 18.
 *
 * The planner matches such a comparison to what it takes for a btree index, and
 * planner_hooks.c says that an art index is one.  From 18 on the executor makes
 * scan keys of it for any access method that orders.  Before, it does for btree
 * only, by the index itself.  So the finished plan gets a condition for each
 * member in its place, with an operator of the index's family.  A function that
 * no operator has marks it (art_compat.h); only the access method meets that.
 *
 * Only the conditions that the executor makes keys of are so.  It tests rows
 * with the comparison, and EXPLAIN prints that.  But of an index-only scan
 * EXPLAIN prints the former.  Where it may come, the plan states point to
 * a copy of the plan in which that is the comparison.  Nothing but EXPLAIN reads
 * it there, and Gather, which sends what is below it to its workers.  These
 * take it apart again.
 *
 * src/plan/README.md: The planner
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/parallel.h"
#include "catalog/pg_type.h"
#include "executor/execdesc.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "utils/guc.h"

#include "art_compat.h"
#include "area/area.h"
#include "plan/plan.h"

#ifdef ART_MARKS_ROWS

/* This process has made a path with such a condition. */
static bool rows_met = false;

/* Whether the process has a plan of an index-only scan with one. */
static bool rows_hidden = false;

/* A copy of the plan, its nodes by their numbers. */
typedef struct Shown
{
	Plan	  **nodes;
	int			n;
	bool		any;			/* with a comparison of rows to show */
} Shown;

/* ---- taking apart ---- */

/* Does one of the conditions compare rows? */
static bool
has_row(List *quals)
{
	ListCell   *lc;

	foreach(lc, quals)
	{
		if (IsA(lfirst(lc), RowCompareExpr))
			return true;
	}
	return false;
}

void
art_rowcmp_met(const struct IndexPath *path)
{
	ListCell   *lc,
			   *lc2;

	foreach(lc, path->indexclauses)
	{
		foreach(lc2, lfirst_node(IndexClause, lc)->indexquals)
			rows_met |= IsA(lfirst_node(RestrictInfo, lc2)->clause, RowCompareExpr);
	}
}

/* Append a condition for each member. */
static List *
append_members(List *quals, const RowCompareExpr *row)
{
	for (int i = 0; i < list_length(row->opnos); i++)
	{
		OpExpr	   *op = makeNode(OpExpr);

		op->opno = list_nth_oid(row->opnos, i);
		op->opfuncid = i == 0 ? ART_ROW_FIRST : ART_ROW_NEXT;
		op->opresulttype = BOOLOID;
		op->inputcollid = list_nth_oid(row->inputcollids, i);
		op->args = list_make2(list_nth(row->largs, i), list_nth(row->rargs, i));
		op->location = -1;
		quals = lappend(quals, op);
	}
	return quals;
}

/*
 * Are these conditions of an art index, with a comparison of rows among them?
 *
 * Locks: takes AccessShareLock on the index and gives it back.
 */
static bool
to_take_apart(List *quals, Oid indexid)
{
	Relation	index;
	bool		ours;

	if (!has_row(quals))
		return false;
	index = index_open(indexid, AccessShareLock);
	ours = art_is_art_index(index);
	index_close(index, AccessShareLock);
	return ours;
}

List *
art_rowcmp_apart(List *quals)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, quals)
	{
		Node	   *qual = (Node *) lfirst(lc);

		if (IsA(qual, RowCompareExpr))
			result = append_members(result, (RowCompareExpr *) qual);
		else
			result = lappend(result, qual);
	}
	return result;
}

/* A node of a plan that is nobody else's. */
static void
take_node_apart(Plan *plan, void *arg)
{
	List	  **quals;
	Oid			indexid;

	if (IsA(plan, IndexScan))
	{
		quals = &((IndexScan *) plan)->indexqual;
		indexid = ((IndexScan *) plan)->indexid;
	}
	else if (IsA(plan, IndexOnlyScan))
	{
		quals = &((IndexOnlyScan *) plan)->indexqual;
		indexid = ((IndexOnlyScan *) plan)->indexid;
	}
	else if (IsA(plan, BitmapIndexScan))
	{
		quals = &((BitmapIndexScan *) plan)->indexqual;
		indexid = ((BitmapIndexScan *) plan)->indexid;
	}
	else
		return;
	if (!to_take_apart(*quals, indexid))
		return;
	*quals = art_rowcmp_apart(*quals);
	rows_hidden |= IsA(plan, IndexOnlyScan);
}

void
art_rowcmp_take_apart(PlannedStmt *stmt)
{
	if (rows_met)
		art_plan_walk(stmt, take_node_apart, NULL);
}

/* ---- showing ---- */

/* A node of the copy: enter it, and let an index-only scan have what it tests rows with. */
static void
show_node(Plan *plan, void *arg)
{
	Shown	   *shown = arg;

	if (plan->plan_node_id >= 0 && plan->plan_node_id < shown->n)
		shown->nodes[plan->plan_node_id] = plan;
	if (IsA(plan, IndexOnlyScan) && has_row(((IndexOnlyScan *) plan)->recheckqual) &&
		!has_row(((IndexOnlyScan *) plan)->indexqual))
	{
		shown->any = true;
		((IndexOnlyScan *) plan)->indexqual = ((IndexOnlyScan *) plan)->recheckqual;
	}
}

static void
count_node(Plan *plan, void *arg)
{
	int		   *n = arg;

	*n = Max(*n, plan->plan_node_id + 1);
}

/* A walker: let the state point to the node of the copy. */
static bool
point_to_shown(PlanState *ps, void *arg)
{
	const Shown *shown = arg;
	const int	id = ps->plan->plan_node_id;

	if (id >= 0 && id < shown->n && shown->nodes[id] != NULL &&
		nodeTag(shown->nodes[id]) == nodeTag(ps->plan))
		ps->plan = shown->nodes[id];
	return planstate_tree_walker(ps, point_to_shown, arg);
}

/*
 * Is the plan, or may it be, printed?  auto_explain does not say so when a
 * statement begins.
 */
static bool
may_be_printed(const QueryDesc *queryDesc, int eflags)
{
	const char *logged;

	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) || queryDesc->instrument_options != 0)
		return true;
	logged = GetConfigOption("auto_explain.log_min_duration", true, false);
	return logged != NULL && strcmp(logged, "-1") != 0;
}

void
art_rowcmp_start(PlannedStmt *stmt)
{
	if (IsParallelWorker())
		art_plan_walk(stmt, take_node_apart, NULL);
}

void
art_rowcmp_show(QueryDesc *queryDesc, int eflags)
{
	Shown		shown = {NULL, 0, false};
	PlannedStmt *copy;

	if (!rows_hidden || IsParallelWorker() || queryDesc->planstate == NULL ||
		!may_be_printed(queryDesc, eflags))
		return;
	art_plan_walk(queryDesc->plannedstmt, count_node, &shown.n);
	shown.nodes = palloc0(shown.n * sizeof(Plan *));
	copy = copyObject(queryDesc->plannedstmt);
	art_plan_walk(copy, show_node, &shown);
	if (shown.any)
		(void) point_to_shown(queryDesc->planstate, &shown);
}

#endif
