/*
 * custom_scans.c
 *	  What the nodes of this room have in common: an index's paths, and how EXPLAIN shows conditions.
 *
 * src/plan/README.md: The planner
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "art_compat.h"
#include "commands/explain.h"
#include ART_EXPLAIN_HEADER
#include "nodes/makefuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "am/am.h"
#include "key/key.h"
#include "plan/custom_scans.h"

void
art_explain_quals(const char *label, Node *quals, List *context, bool prefix,
				  double removed, ExplainState *es)
{
	if (quals == NULL)
		return;
	ExplainPropertyText(label,
						deparse_expression((Node *) make_ands_explicit((List *) quals),
										   context, prefix, false), es);
	if (removed > 0 || (removed == 0 && es->format != EXPLAIN_FORMAT_TEXT))
		ExplainPropertyFloat(psprintf("Rows Removed by %s", label), NULL, removed, 0, es);
}

RelOptInfo *
art_paths_of_index(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, bool parallel)
{
	RelOptInfo *scratch = palloc(sizeof(RelOptInfo));
	IndexOptInfo *alone = palloc(sizeof(IndexOptInfo));

	*scratch = *rel;
	*alone = *index;
	alone->amhasgetbitmap = false;
	alone->amcanparallel &= parallel;
	scratch->indexlist = list_make1(alone);
	scratch->pathlist = scratch->partial_pathlist = NIL;
	create_index_paths(root, scratch);
	return scratch;
}

bool
art_column_is_fixed(const IndexPath *ipath, int column)
{
	ListCell   *lc,
			   *lc2;

	foreach(lc, ipath->indexclauses)
	{
		const IndexClause *ic = lfirst_node(IndexClause, lc);

		if (ic->indexcol != column)
			continue;
		foreach(lc2, ic->indexquals)
		{
			const OpExpr *op = (const OpExpr *) lfirst_node(RestrictInfo, lc2)->clause;
			Oid			left,
						right;

			if (!IsA(op, OpExpr))
				continue;
			op_input_types(op->opno, &left, &right);
			if (left == right &&
				get_op_opfamily_strategy(op->opno, ipath->indexinfo->opfamily[column]) ==
				BTEqualStrategyNumber)
				return true;
		}
	}
	return false;
}

/*
 * Locks: takes none on the index, which get_relation_info() has locked.
 */
bool
art_column_is_exact(Oid indexid, int column)
{
	Relation	rel = index_open(indexid, NoLock);
	const ArtKeyDesc *kd = &art_relcache(rel)->kd;
	bool		exact = !kd->compared && !kd->cols[column].lossy;

	index_close(rel, NoLock);
	return exact;
}
