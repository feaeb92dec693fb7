/*
 * art_rowcompare.c
 *	  (a, b) > (x, y) on an art index.
 *
 * Core matches such a comparison only to what it takes for a btree index, and
 * its executor runs one only on a real one.  So the planner may match it
 * (art_planner.c says btree to it), and here, before a path is chosen, it becomes
 * what follows from it for the first column, a >= x.  The comparison itself stays
 * a filter.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"

#include "artidx.h"

static set_rel_pathlist_hook_type prev_set_rel_pathlist_hook = NULL;

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

static void
simplify_index_path(PlannerInfo *root, IndexPath *path)
{
	ListCell   *lc,
			   *q;

	if ((void *) path->indexinfo->amcostestimate != (void *) artcostestimate)
		return;
	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		List	   *quals = NIL;
		bool		found = false;

		foreach(q, clause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, q);

			if (IsA(rinfo->clause, RowCompareExpr))
			{
				rinfo = first_column(root, (RowCompareExpr *) rinfo->clause,
									 path->indexinfo->opfamily[clause->indexcol]);
				found = true;
			}
			quals = lappend(quals, rinfo);
		}
		if (!found)
			continue;
		clause->indexquals = quals;
		clause->indexcols = NIL;
		clause->lossy = true;
	}
}

/* An index scan, or those that a bitmap is made of. */
static void
simplify_path(PlannerInfo *root, Path *path)
{
	List	   *below = NIL;
	ListCell   *lc;

	if (IsA(path, IndexPath))
		simplify_index_path(root, (IndexPath *) path);
	else if (IsA(path, BitmapHeapPath))
		simplify_path(root, ((BitmapHeapPath *) path)->bitmapqual);
	else if (IsA(path, BitmapAndPath))
		below = ((BitmapAndPath *) path)->bitmapquals;
	else if (IsA(path, BitmapOrPath))
		below = ((BitmapOrPath *) path)->bitmapquals;
	foreach(lc, below)
		simplify_path(root, (Path *) lfirst(lc));
}

/* set_rel_pathlist_hook */
static void
art_set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	bool		ours = false;
	ListCell   *lc;

	foreach(lc, rel->indexlist)
		ours |= (void *) lfirst_node(IndexOptInfo, lc)->amcostestimate == (void *) artcostestimate;
	if (ours)
	{
		foreach(lc, rel->pathlist)
			simplify_path(root, (Path *) lfirst(lc));
		foreach(lc, rel->partial_pathlist)
			simplify_path(root, (Path *) lfirst(lc));
	}
	if (prev_set_rel_pathlist_hook)
		prev_set_rel_pathlist_hook(root, rel, rti, rte);
}

/* Put the hook in; from _PG_init, in every process that loads the library. */
void
art_rowcompare_install(void)
{
	prev_set_rel_pathlist_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = art_set_rel_pathlist;
}
