/*
 * row_compare.c
 *	  (a, b) > (x, y) on an art index.
 *
 * Core matches such a comparison only to what it takes for a btree index, and
 * its executor runs one only on a real one.  So the planner may match it
 * (planner_hooks.c says btree to it), and here it becomes what follows from it for
 * the first column, a >= x.  The comparison itself stays a filter.
 *
 * The cost function does it.  It is called for every path when that is made,
 * by core or by a module that makes core's paths again.
 *
 * src/plan/README.md: The planner
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"

#include "plan/plan.h"

/*
 * The column's part of a comparison, column on the left.
 */
static RestrictInfo *
first_column(PlannerInfo *root, RowCompareExpr *rc, Oid family)
{
	Oid			op = linitial_oid(rc->opnos);
	int			strategy;
	Oid			left,
				right;

	get_op_opfamily_properties(op, family, false, &strategy, &left, &right);
	if (strategy == BTLessStrategyNumber)
		strategy = BTLessEqualStrategyNumber;
	else if (strategy == BTGreaterStrategyNumber)
		strategy = BTGreaterEqualStrategyNumber;
	op = get_opfamily_member(family, left, right, strategy);
	if (!OidIsValid(op))
		elog(ERROR, "missing operator %d(%u,%u) in operator family %u",
			 strategy, left, right, family);
	return make_simple_restrictinfo(root,
									make_opclause(op, BOOLOID, false,
												  copyObject(linitial(rc->largs)),
												  copyObject(linitial(rc->rargs)),
												  InvalidOid,
												  linitial_oid(rc->inputcollids)));
}

/* Was one of the clauses made from a comparison of rows? */
static bool
compares_rows(IndexClause *clause)
{
	ListCell   *lc;

	foreach(lc, clause->indexquals)
	{
		if (IsA(lfirst_node(RestrictInfo, lc)->clause, RowCompareExpr))
			return true;
	}
	return false;
}

/* The clause with every such comparison simplified. */
static IndexClause *
simplify_clause(PlannerInfo *root, IndexOptInfo *index, IndexClause *clause)
{
	IndexClause *simple = makeNode(IndexClause);
	ListCell   *lc;

	*simple = *clause;
	simple->indexquals = NIL;
	simple->indexcols = NIL;
	simple->lossy = true;
	foreach(lc, clause->indexquals)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (IsA(rinfo->clause, RowCompareExpr))
			rinfo = first_column(root, (RowCompareExpr *) rinfo->clause,
								 index->opfamily[clause->indexcol]);
		simple->indexquals = lappend(simple->indexquals, rinfo);
	}
	return simple;
}

/*
 * Simplify the comparisons of rows among the path's clauses.  Paths of one
 * index share their clauses, so this one gets a list of its own.  Those made
 * later are still costed by the comparison itself, as btree's are.
 */
void
art_simplify_row_comparisons(PlannerInfo *root, IndexPath *path)
{
	List	   *shared = path->indexclauses;

	for (int i = 0; i < list_length(shared); i++)
	{
		IndexClause *clause = list_nth_node(IndexClause, shared, i);

		if (!compares_rows(clause))
			continue;
		if (path->indexclauses == shared)
			path->indexclauses = list_copy(shared);
		lfirst(list_nth_cell(path->indexclauses, i)) =
			simplify_clause(root, path->indexinfo, clause);
	}
}
