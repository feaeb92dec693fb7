/*
 * join_paths.c
 *	  Batched joins: where the planner may take one, and its price.
 *
 * A batched join is a nested loop whose inner side is a look-up of whole keys
 * in an art index.  It takes many outer rows, and looks all their keys up at
 * once.  It fetches the rows in the order of the table's blocks, and gives the
 * results out in the order of the outer side (join_executor.c).
 *
 * So beside each such nested loop that core has made and kept we offer ours, for
 * less.  Conditions and row counts are those of the nested loop.  Where core has
 * none, nothing is done.
 *
 * artidx.batched_joins = off has the planner do without.
 *
 * Left out: joins that EvalPlanQual may run again, parameterized joins, joins of
 * partitions, placeholders, policies that do not let conditions come in any order, and
 * inner rows as a whole.
 *
 * src/plan/README.md: Batched joins
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/am.h"
#include "art_compat.h"
#include "plan/batched_join.h"
#include "plan/plan.h"
#include "scan/scan.h"

/* With fewer outer rows there is little to gain, and planning takes its time. */
#define ART_BATCH_WORTH		200.0

/*
 * While batches are small there is nothing to gain.  So many rows' price is part
 * of the start.  So a LIMIT takes a batched join only if it wants more of them.
 */
#define ART_BATCH_START		64.0

/*
 * Rows are kept.  If they are wider than this, and the table is in memory, that
 * costs more than batches save.
 */
#define ART_BATCH_WIDE_OUTER	640
#define ART_BATCH_WIDE_INNER	200

/*
 * A batch saves so much of the work for a look-up, and of reading the table.
 */
#define ART_BATCH_CPU_SAVED	0.30
#define ART_BATCH_IO_SAVED	0.25

/* The price of a row's part in a batch, in units of cpu_operator_cost. */
#define ART_BATCH_ROW_COST	2.0

static bool batched_joins = true;
static set_join_pathlist_hook_type prev_set_join_pathlist_hook = NULL;

/* ---- paths ---- */

/*
 * Conditions of the join and of the inner table are tested in the order of their price.  May
 * they be?  Not if one that could tell of a row comes before one that hides it.
 */
static bool
order_is_free(const RelOptInfo *innerrel, const List *restrictlist)
{
	List	   *all = list_concat_copy(innerrel->baserestrictinfo, restrictlist);
	Index		least = UINT_MAX;
	ListCell   *lc;

	foreach(lc, all)
		least = Min(least, lfirst_node(RestrictInfo, lc)->security_level);
	foreach(lc, all)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->security_level > least && !rinfo->leakproof)
			return false;
	}
	return true;
}

/*
 * May this join be a batched one, whatever its paths are?
 */
static bool
join_will_do(PlannerInfo *root, const RelOptInfo *joinrel, const RelOptInfo *innerrel,
			 JoinType jointype, const List *restrictlist)
{
	Bitmapset  *columns = NULL;
	ListCell   *lc;

	if (jointype != JOIN_INNER && jointype != JOIN_LEFT && jointype != JOIN_SEMI &&
		jointype != JOIN_ANTI)
		return false;
	if (innerrel->reloptkind != RELOPT_BASEREL || innerrel->rtekind != RTE_RELATION ||
		joinrel->reloptkind != RELOPT_JOINREL)
		return false;

	/* EvalPlanQual would ask the inner table for one row of its choice */
	if (root->rowMarks != NIL ||
		(root->parse->commandType != CMD_SELECT && root->parse->commandType != CMD_INSERT))
		return false;
	if (root->placeholder_list != NIL ||
		(root->qual_security_level > 0 && !order_is_free(innerrel, restrictlist)) ||
		!bms_is_empty(joinrel->lateral_relids) || !bms_is_empty(innerrel->lateral_relids))
		return false;

	/* core would evaluate these once, above the join or the scan */
	foreach(lc, restrictlist)
	{
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return false;
	}
	foreach(lc, innerrel->baserestrictinfo)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->pseudoconstant)
			return false;
		pull_varattnos((Node *) rinfo->clause, innerrel->relid, &columns);
	}

	/* plain columns of the inner table only */
	if (columns != NULL &&
		bms_next_member(columns, -1) <= -FirstLowInvalidHeapAttributeNumber)
		return false;
	foreach(lc, innerrel->reltarget->exprs)
	{
		const Var  *var = lfirst(lc);

		if (!IsA(var, Var) || var->varattno <= 0)
			return false;
	}
	return true;
}

/*
 * Are keys of the index such that ax_lookup_many finds them?
 *
 * Locks: takes none on the index, which get_relation_info() has locked.
 */
static bool
index_has_points(Oid indexid)
{
	Relation	index = index_open(indexid, NoLock);
	const ArtKeyDesc *kd = &art_relcache(index)->kd;
	bool		points = !kd->compared && kd->images && !kd->payload;

	index_close(index, NoLock);
	return points;
}

/*
 * Is the path a search of an art index for one key of each outer row?
 */
static bool
path_will_do(const Path *path, const RelOptInfo *outerrel)
{
	const IndexPath *ipath = (const IndexPath *) path;
	const IndexOptInfo *index;
	int			equal = 0;		/* leading columns */
	ListCell   *lc,
			   *lc2;

	if (!IsA(path, IndexPath) || path->param_info == NULL || path->parallel_aware ||
		!bms_is_subset(PATH_REQ_OUTER(path), outerrel->relids))
		return false;
	index = ipath->indexinfo;
	if ((void *) index->amcostestimate != (void *) artcostestimate ||
		index->hypothetical || ipath->indexorderbys != NIL)
		return false;

	foreach(lc, ipath->indexclauses)
	{
		const IndexClause *ic = lfirst_node(IndexClause, lc);

		if (ic->lossy)
			return false;
		foreach(lc2, ic->indexquals)
		{
			const OpExpr *op = (const OpExpr *) lfirst_node(RestrictInfo, lc2)->clause;

			if (!IsA(op, OpExpr) || list_length(op->args) != 2 ||
				get_op_opfamily_strategy(op->opno, index->opfamily[ic->indexcol]) !=
				BTEqualStrategyNumber ||
				contain_volatile_functions(lsecond(op->args)))
				return false;
		}
		if (ic->indexcol == equal)
			equal++;
		else if (ic->indexcol > equal)
			return false;
	}
	return equal == index->nkeycolumns && index_has_points(index->indexoid);
}

/*
 * The costs of the nested loop, with what a batch saves.
 *
 * A look-up's price is the index's and the executor's for each entry.  The rest
 * of the inner side's is for reading the table.
 */
static void
set_costs(Path *path, const NestPath *nest, const IndexPath *inner)
{
	const Path *outer = nest->jpath.outerjoinpath;
	double		rows = clamp_row_est(outer->rows);
	double		entries = Max(inner->path.rows, 1.0);
	Cost		index = inner->indextotalcost;
	Cost		io = inner->path.total_cost - index - entries * cpu_tuple_cost;
	Cost		all = nest->jpath.path.total_cost - nest->jpath.path.startup_cost;
	Cost		saved;

	saved = (index + entries * cpu_tuple_cost) * ART_BATCH_CPU_SAVED +
		Max(io, 0) * ART_BATCH_IO_SAVED - ART_BATCH_ROW_COST * cpu_operator_cost;
	saved = Max(saved, 0) * (rows - ART_BATCH_START / 2);

	/* never for nothing, nor for most of it: core may have counted less */
	saved = Min(saved, all * 0.3);
	path->total_cost = nest->jpath.path.total_cost - saved;
	path->startup_cost = nest->jpath.path.startup_cost +
		(all - saved) * Min(ART_BATCH_START / rows, 1.0);
}

/* The planner's methods of a path. */
static Plan *plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
					   List *tlist, List *clauses, List *custom_plans);

static const CustomPathMethods path_methods = {
	.CustomName = ART_BATCH_NAME,
	.PlanCustomPath = plan_path,
};

/*
 * May the nested loop be a batched one, as far as its two sides are concerned?
 */
static bool
sides_will_do(const NestPath *nest)
{
	const Path *outer = nest->jpath.outerjoinpath;
	const IndexPath *inner = (const IndexPath *) nest->jpath.innerjoinpath;
	JoinType	jointype = nest->jpath.jointype;
	const RelOptInfo *table;
	double		entries;

	if (outer->rows < ART_BATCH_WORTH || outer->param_info != NULL ||
		!path_will_do(&inner->path, outer->parent))
		return false;

	/* a look-up finds all entries of a key */
	table = inner->path.parent;
	entries = inner->indexselectivity * table->tuples;
	if (entries > (jointype == JOIN_SEMI || jointype == JOIN_ANTI ? ART_BATCH_DENSE :
				   ART_POINTS_TIDS / 2))
		return false;

	return table->pages >= (BlockNumber) NBuffers ||
		(outer->pathtarget->width <= ART_BATCH_WIDE_OUTER &&
		 (inner->path.pathtype == T_IndexOnlyScan ||
		  table->reltarget->width <= ART_BATCH_WIDE_INNER));
}

/*
 * Nested loops among these paths of the pair of relations that may be batched
 * ones.  They are copied, for a cheaper path makes core free them.
 */
static List *
find_nested(const List *pathlist, const RelOptInfo *outerrel, const RelOptInfo *innerrel)
{
	List	   *found = NIL;
	ListCell   *lc;

	foreach(lc, pathlist)
	{
		const NestPath *nest = (const NestPath *) lfirst(lc);

		if (IsA(nest, NestPath) && nest->jpath.outerjoinpath->parent == outerrel &&
			nest->jpath.innerjoinpath->parent == innerrel && sides_will_do(nest))
		{
			NestPath   *copy = palloc(sizeof(NestPath));

			*copy = *nest;
			found = lappend(found, copy);
		}
	}
	return found;
}

/* A batched join in the nested loop's place. */
static Path *
batched_path(NestPath *nest)
{
	CustomPath *path = makeNode(CustomPath);

	path->path = nest->jpath.path;
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make1(nest->jpath.outerjoinpath);
	path->custom_private = list_make1(nest);
	path->methods = &path_methods;
	set_costs(&path->path, nest, (const IndexPath *) nest->jpath.innerjoinpath);
	return &path->path;
}

/* Is one of the conditions volatile, of those that concern no other relations than these? */
static bool
some_volatile(const List *conditions, Relids relids)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (bms_is_subset(rinfo->required_relids, relids) &&
			contain_volatile_functions((Node *) rinfo->clause))
			return true;
	}
	return false;
}

/* Does a query lock rows, or change some?  A walker. */
static bool
locks_rows(Node *node, void *context)
{
	const Query *query = (const Query *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, locks_rows, context);
	return query->rowMarks != NIL || query->commandType != CMD_SELECT ||
		query_tree_walker((Query *) node, locks_rows, context, 0);
}

/* The query of a subquery or of WITH; NULL if it is none, or is not found. */
static Query *
query_of(PlannerInfo *root, const RangeTblEntry *rte)
{
	ListCell   *lc;

	if (rte->rtekind == RTE_SUBQUERY)
		return rte->subquery;
	for (Index up = 0; up < rte->ctelevelsup && root != NULL; up++)
		root = root->parent_root;
	if (root == NULL)
		return NULL;
	foreach(lc, root->parse->cteList)
	{
		const CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		if (strcmp(cte->ctename, rte->ctename) == 0)
			return (Query *) cte->ctequery;
	}
	return NULL;
}

/*
 * Would somebody see that rows of these relations are read before they are wanted?  Rows
 * may be locked, or a volatile function may do something.
 */
static bool
reading_is_seen(PlannerInfo *root, Relids relids)
{
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		const RangeTblEntry *rte = planner_rt_fetch(relid, root);
		const RelOptInfo *rel = root->simple_rel_array[relid];

		if (rte->rtekind == RTE_SUBQUERY || rte->rtekind == RTE_CTE)
		{
			Query	   *query = query_of(root, rte);

			if (query == NULL || locks_rows((Node *) query, NULL) ||
				contain_volatile_functions((Node *) query))
				return true;
		}
		if (contain_volatile_functions((Node *) rte->functions) ||
			contain_volatile_functions((Node *) rte->values_lists) ||
			contain_volatile_functions((Node *) rte->tablefunc) ||
			contain_volatile_functions((Node *) rte->tablesample))
			return true;
		if (rel != NULL && (some_volatile(rel->baserestrictinfo, relids) ||
							some_volatile(rel->joininfo, relids)))
			return true;
	}
	return false;
}

/*
 * set_join_pathlist_hook.  The cheap tests come first, for most
 * joins have few rows, or no such path.
 */
static void
offer_batched(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			  RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	List	   *nested;
	List	   *partial;
	ListCell   *lc;

	if (prev_set_join_pathlist_hook)
		prev_set_join_pathlist_hook(root, joinrel, outerrel, innerrel, jointype, extra);
	if (!batched_joins || outerrel->rows < ART_BATCH_WORTH || innerrel->indexlist == NIL ||
		ART_JOIN_IS_ADVISED(root, extra))
		return;
	nested = find_nested(joinrel->pathlist, outerrel, innerrel);
	partial = find_nested(joinrel->partial_pathlist, outerrel, innerrel);
	if ((nested == NIL && partial == NIL) || art_costs_as_btree() ||
		IsolationIsSerializable() ||
		!join_will_do(root, joinrel, innerrel, jointype, extra->restrictlist) ||
		reading_is_seen(root, outerrel->relids))
		return;

	foreach(lc, nested)
		add_path(joinrel, batched_path(lfirst(lc)));
	foreach(lc, partial)
		add_partial_path(joinrel, batched_path(lfirst(lc)));
}

/* ---- plans ---- */

/* The columns of the scan tuple, while they are collected. */
typedef struct ArtColumns
{
	Index		inner;			/* columns of this table only are added */
	List	   *tlist;
} ArtColumns;

/* The entry of a column, or NULL. */
static Var *
find_column(const ArtColumns *columns, const Var *var)
{
	ListCell   *lc;

	foreach(lc, columns->tlist)
	{
		Var		   *have = (Var *) lfirst_node(TargetEntry, lc)->expr;

		if (IsA(have, Var) && have->varno == var->varno &&
			have->varattno == var->varattno)
			return have;
	}
	return NULL;
}

/* Add the inner table's columns of an expression. */
static void
add_columns(ArtColumns *columns, Node *node)
{
	ListCell   *lc;

	foreach(lc, pull_var_clause(node, PVC_INCLUDE_PLACEHOLDERS))
	{
		Var		   *var = lfirst_node(Var, lc);

		if (var->varno == (int) columns->inner && find_column(columns, var) == NULL)
			columns->tlist = lappend(columns->tlist,
									 makeTargetEntry((Expr *) copyObject(var),
													 list_length(columns->tlist) + 1,
													 NULL, false));
	}
}

/*
 * Make a condition's columns those of the scan tuple.  An outer join's result
 * may have more nulling relations than the column below it, and core insists
 * on their being the same.
 */
static Node *
fit_columns(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);
		const Var  *have = find_column((const ArtColumns *) context, var);

		if (have != NULL)
			ART_COPY_NULLINGRELS(var, have);
		return (Node *) var;
	}
	return expression_tree_mutator(node, fit_columns, context);
}

/* Conditions that cost less come first; else the order is kept. */
static List *
cheapest_first(PlannerInfo *root, List *quals)
{
	List	   *sorted = NIL;
	ListCell   *lc;

	foreach(lc, quals)
	{
		QualCost	cost;
		int			at = list_length(sorted);

		cost_qual_eval_node(&cost, lfirst(lc), root);
		while (at > 0)
		{
			QualCost	before;

			cost_qual_eval_node(&before, list_nth(sorted, at - 1), root);
			if (before.per_tuple <= cost.per_tuple)
				break;
			at--;
		}
		sorted = list_insert_nth(sorted, at, lfirst(lc));
	}
	return sorted;
}

/*
 * The conditions that a parameterized scan of the inner table would test, beside
 * the index's (as create_indexscan_plan() finds them).
 */
static List *
inner_conditions(const IndexPath *inner)
{
	List	   *all;
	List	   *result = NIL;
	ListCell   *lc;

	all = list_concat_copy(inner->indexinfo->indrestrictinfo,
						   inner->path.param_info->ppi_clauses);
	foreach(lc, all)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (!is_redundant_with_indexclauses(rinfo, inner->indexclauses))
			result = lappend(result, rinfo->clause);
	}
	return result;
}

/*
 * The columns of the scan tuple: all that the outer plan has, what the join and its
 * conditions want of the inner table, and the inner row's TID last.
 */
static ArtColumns
scan_columns(RelOptInfo *rel, Index inner, const Plan *outer, List *conditions)
{
	ArtColumns	columns = {.inner = inner};
	ListCell   *lc;

	foreach(lc, outer->targetlist)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;

		columns.tlist = lappend(columns.tlist,
								makeTargetEntry(copyObject(expr),
												list_length(columns.tlist) + 1,
												NULL, false));
	}
	add_columns(&columns, (Node *) rel->reltarget->exprs);
	add_columns(&columns, (Node *) conditions);
	columns.tlist = lappend(columns.tlist,
							makeTargetEntry((Expr *) makeVar(inner,
															 SelfItemPointerAttributeNumber,
															 TIDOID, -1, InvalidOid, 0),
											list_length(columns.tlist) + 1,
											NULL, false));
	foreach(lc, rel->reltarget->exprs)
	{
		const Var  *var = lfirst(lc);
		Var		   *have = IsA(var, Var) ? find_column(&columns, var) : NULL;

		if (have != NULL)
			ART_COPY_NULLINGRELS(have, var);
	}
	return columns;
}

/*
 * PlanCustomPath: the nested loop's conditions, sorted into those of the index,
 * those of a match, and those above the join.
 */
static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
		  List *tlist, List *clauses, List *custom_plans)
{
	const NestPath *nest = linitial_node(NestPath, best_path->custom_private);
	const IndexPath *inner = (const IndexPath *) nest->jpath.innerjoinpath;
	JoinType	jointype = nest->jpath.jointype;
	CustomScan *cscan = makeNode(CustomScan);
	Plan	   *outer = linitial(custom_plans);
	ArtColumns	columns;
	List	   *arguments = NIL;
	List	   *index_quals = NIL;
	List	   *join_quals;
	List	   *others = NIL;
	List	   *operators = NIL;
	List	   *collations = NIL;
	List	   *types = NIL;
	List	   *index_columns = NIL;
	List	   *numbers;
	ListCell   *lc,
			   *lc2;

	/* conditions */
	foreach(lc, inner->indexclauses)
	{
		const IndexClause *ic = lfirst_node(IndexClause, lc);

		foreach(lc2, ic->indexquals)
		{
			OpExpr	   *op = (OpExpr *) lfirst_node(RestrictInfo, lc2)->clause;

			arguments = lappend(arguments, lsecond(op->args));
			index_quals = lappend(index_quals, op);
			operators = lappend_oid(operators, op->opno);
			collations = lappend_oid(collations, op->inputcollid);
			types = lappend_oid(types, exprType(linitial(op->args)));
			index_columns = lappend_int(index_columns, ic->indexcol + 1);
		}
	}
	if (IS_OUTER_JOIN(jointype))
		extract_actual_join_clauses(nest->jpath.joinrestrictinfo, rel->relids,
									&join_quals, &others);
	else
		join_quals = extract_actual_clauses(nest->jpath.joinrestrictinfo, false);
	join_quals = list_concat(inner_conditions(inner), join_quals);
	join_quals = cheapest_first(root, join_quals);
	others = cheapest_first(root, others);

	columns = scan_columns(rel, inner->path.parent->relid, outer,
						   list_make3(index_quals, join_quals, others));
	cscan->scan.plan.targetlist = tlist;
	outerPlan(&cscan->scan.plan) = outer;
	cscan->scan.scanrelid = 0;
	cscan->flags = best_path->flags;
	cscan->custom_scan_tlist = columns.tlist;
	cscan->custom_exprs = (List *)
		fit_columns((Node *) list_make4(arguments, index_quals, join_quals, others), &columns);
	numbers = list_make5_int(jointype,
							 nest->jpath.inner_unique || jointype == JOIN_SEMI,
							 inner->path.pathtype == T_IndexOnlyScan,
							 list_length(outer->targetlist),
							 root->limit_tuples > 0 ?
							 (int) Min(root->limit_tuples, INT_MAX) : 0);
	numbers = lappend_int(numbers, root->tuple_fraction <= 0);
	cscan->custom_private =
		lappend(list_make5(numbers, list_make1_oid(inner->indexinfo->indexoid),
						   operators, collations, index_columns),
				types);
	cscan->methods = &art_batch_scan_methods;
	return &cscan->scan.plan;
}

/* Define the setting, and put the hook in; from _PG_init. */
void
art_batch_install(void)
{
	DefineCustomBoolVariable("artidx.batched_joins",
							 "Lets the planner use nested loops that look many keys up at once in an art index.",
							 NULL,
							 &batched_joins,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL, NULL, NULL);
	RegisterCustomScanMethods(&art_batch_scan_methods);
	prev_set_join_pathlist_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = offer_batched;
}
