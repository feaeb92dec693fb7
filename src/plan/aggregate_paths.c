/*
 * aggregate_paths.c
 *	  Aggregates from an index alone: where the planner may take one, and its price.
 *
 * count, sum and the like of an index's columns need no row that the visibility map
 * answers for.  An index-only scan forms a tuple of each entry all the same, and hands
 * it through the executor to the aggregate.  Our node takes the place of both
 * (aggregate_executor.c).
 *
 * Core matches the conditions: it makes index-only paths of each art index of the table,
 * for us only.  Where the index decides the conditions in full, we offer one node in the
 * place of the path and the aggregate above it.
 *
 * Left out: more than one table, GROUPING SETS, FILTER, DISTINCT and ORDER BY within an
 * aggregate, expressions, security barriers, and what groups by other columns than those
 * that the index has first.
 *
 * src/plan/README.md: Aggregates from an index
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/xlog.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "art_compat.h"
#include "plan/custom_scans.h"
#include "plan/index_aggregate.h"
#include "plan/plan.h"

/* With fewer rows there is little to gain, and planning takes its time. */
#define ART_AGG_WORTH		100.0

/*
 * The price of an entry, as a part of its price in an index-only scan and the aggregate above
 * that.  A row that is fetched costs as much as in such a scan.
 */
#define ART_AGG_SHARE		0.10

/* This process has planned such a node. */
static bool planned = false;

static create_upper_paths_hook_type prev_create_upper_paths_hook = NULL;

/* The results that are asked of an index, and how it has them. */
typedef struct ArtAsked
{
	List	   *results;		/* Aggref or Var, each once */
	List	   *kinds;			/* ArtAggKind of each */
	List	   *columns;		/* and its column of the index */
	int			prefix;			/* ArtAggNumber's */
} ArtAsked;

/* The facts of an index's keys that decide.  Their description may go at any catalog access. */
typedef struct ArtAggKeys
{
	bool		compared;
	ArtEncKind	enc[INDEX_MAX_KEYS];
	bool		lossy[INDEX_MAX_KEYS];
} ArtAggKeys;

/* ---- what is asked ---- */

/*
 * Aggregates and columns of the query's results and of HAVING, each once.  Returns false when
 * there is anything else.
 */
static bool
collect_results(ArtAsked *asked, const RelOptInfo *grouped, Node *having)
{
	List	   *found;
	ListCell   *lc;

	found = pull_var_clause((Node *) list_make2(grouped->reltarget->exprs, having),
							PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_WINDOWFUNCS |
							PVC_INCLUDE_PLACEHOLDERS);
	asked->results = NIL;
	foreach(lc, found)
	{
		Node	   *node = lfirst(lc);

		if (IsA(node, Aggref))
		{
			const Aggref *agg = (const Aggref *) node;

			if (agg->aggkind != AGGKIND_NORMAL || agg->aggorder != NIL || agg->aggfilter != NULL ||
				agg->aggdistinct != NIL || agg->aggvariadic || agg->agglevelsup != 0 ||
				list_length(agg->args) > 1 || agg->aggfnoid >= FirstUnpinnedObjectId)
				return false;
		}
		else if (!IsA(node, Var))
			return false;
		asked->results = list_append_unique(asked->results, node);
	}
	return true;
}

/* The column of the index, from 0, that a column of the table is; -1: none. */
static int
column_of(const IndexOptInfo *index, const Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (const Node *) ((const RelabelType *) node)->arg;
	if (node == NULL || !IsA(node, Var) || ((const Var *) node)->varno != (int) index->rel->relid)
		return -1;
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		if (index->indexkeys[i] != 0 && index->indexkeys[i] == ((const Var *) node)->varattno)
			return i;
	}
	return -1;
}

/* The operator whose first value in order is what the aggregate gives, if there is one. */
static Oid
sort_operator(Oid aggregate)
{
	HeapTuple	tup = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	Oid			op;

	if (!HeapTupleIsValid(tup))
		return InvalidOid;
	op = ((Form_pg_aggregate) GETSTRUCT(tup))->aggsortop;
	ReleaseSysCache(tup);
	return op;
}

/*
 * What kind of aggregate is it, and of which column of the index?  False: none that the
 * index can tell.
 */
static bool
classify(const Aggref *agg, const IndexOptInfo *index, const ArtAggKeys *keys,
		 ArtAggKind *kind, int *column)
{
	const Node *arg = agg->args == NIL ? NULL :
		(const Node *) linitial_node(TargetEntry, agg->args)->expr;
	const bool	partial = DO_AGGSPLIT_SKIPFINAL(agg->aggsplit);
	ArtEncKind	enc;
	Oid			sortop;

	*column = -1;
	*kind = ART_AGG_ROWS;
	if (agg->aggfnoid == F_COUNT_ ||
		(agg->aggfnoid == F_COUNT_ANY && IsA(arg, Const) && !((const Const *) arg)->constisnull))
		return true;
	*column = arg != NULL ? column_of(index, arg) : -1;
	if (*column < 0)
		return false;

	enc = keys->enc[*column];
	switch (agg->aggfnoid)
	{
		case F_COUNT_ANY:
			*kind = ART_AGG_COUNT;
			return true;
		case F_SUM_INT2:
		case F_SUM_INT4:
			*kind = ART_AGG_SUM;
			return enc == ART_ENC_INT2 || enc == ART_ENC_INT4;
		case F_SUM_INT8:
			*kind = partial ? ART_AGG_BIG_STATE : ART_AGG_SUM_BIG;
			return enc == ART_ENC_INT8;
		case F_AVG_INT2:
		case F_AVG_INT4:
			*kind = partial ? ART_AGG_AVG_STATE : ART_AGG_AVG;
			return enc == ART_ENC_INT2 || enc == ART_ENC_INT4;
		case F_AVG_INT8:
			*kind = partial ? ART_AGG_BIG_STATE : ART_AGG_AVG;
			return enc == ART_ENC_INT8;
		default:
			break;
	}

	/* the first or the last in order: bool_and and bool_or, too */
	sortop = sort_operator(agg->aggfnoid);
	if (!OidIsValid(sortop) || keys->lossy[*column] ||
		agg->inputcollid != index->indexcollations[*column])
		return false;
	switch (get_op_opfamily_strategy(sortop, index->opfamily[*column]))
	{
		case BTLessStrategyNumber:
			*kind = ART_AGG_MIN;
			return true;
		case BTGreaterStrategyNumber:
			*kind = ART_AGG_MAX;
			return true;
		default:
			return false;
	}
}

/*
 * Are the entries of a group one behind the other, in the order of this path?  The
 * columns of GROUP BY come first in the index, in any order, with others among them that
 * are one value.  Sets the prefix.
 */
static bool
groups_lie_together(PlannerInfo *root, const IndexPath *ipath, const GroupPathExtraData *extra,
					ArtAsked *asked)
{
	const IndexOptInfo *index = ipath->indexinfo;
	Bitmapset  *grouped = NULL;
	int			left = 0;
	ListCell   *lc;

	asked->prefix = -1;
	if (root->parse->groupClause == NIL)
		return true;
	foreach(lc, root->parse->groupClause)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		const Node *expr = get_sortgroupclause_expr((SortGroupClause *) clause, extra->targetList);
		int			column = IsA(expr, Var) ? column_of(index, expr) : -1;

		if (column < 0 || exprCollation(expr) != index->indexcollations[column] ||
			get_op_opfamily_strategy(clause->eqop, index->opfamily[column]) !=
			BTEqualStrategyNumber)
			return false;
		if (!bms_is_member(column, grouped))
			left++;
		grouped = bms_add_member(grouped, column);
	}
	for (int i = 0; i < index->nkeycolumns && left > 0; i++)
	{
		if (bms_is_member(i, grouped))
			left--;
		else if (!art_column_is_fixed(ipath, i))
			return false;
		asked->prefix = i + 1;
	}
	return left == 0;
}

/*
 * Get what must be known of an index's keys.
 *
 * Locks: takes none on the index, which get_relation_info() has locked.
 */
static void
get_keys(Oid indexid, ArtAggKeys *keys)
{
	Relation	rel = index_open(indexid, NoLock);
	const ArtKeyDesc *kd = &art_relcache(rel)->kd;

	keys->compared = kd->compared;
	for (int i = 0; i < kd->natts; i++)
	{
		keys->enc[i] = kd->cols[i].enc;
		keys->lossy[i] = kd->cols[i].lossy;
	}
	index_close(rel, NoLock);
}

/*
 * Can the index tell all results?  Groups of which only the ends are asked for are left
 * to scans that go from group to group.
 */
static bool
index_tells(PlannerInfo *root, const IndexPath *ipath, const GroupPathExtraData *extra,
			ArtAsked *asked)
{
	const IndexOptInfo *index = ipath->indexinfo;
	ArtAggKeys	keys;
	bool		tells;
	bool		adds = false;
	ListCell   *lc;

	if (!groups_lie_together(root, ipath, extra, asked))
		return false;
	get_keys(index->indexoid, &keys);
	tells = !keys.compared;
	asked->kinds = asked->columns = NIL;
	foreach(lc, asked->results)
	{
		const Node *node = lfirst(lc);
		ArtAggKind	kind = ART_AGG_GROUP;
		int			column;

		if (!tells)
			break;
		if (IsA(node, Aggref))
			tells = classify((const Aggref *) node, index, &keys, &kind, &column);
		else
		{
			column = column_of(index, node);
			tells = column >= 0 && column < asked->prefix;
		}
		adds |= kind != ART_AGG_GROUP && kind != ART_AGG_MIN && kind != ART_AGG_MAX;
		asked->kinds = lappend_int(asked->kinds, (int) kind);
		asked->columns = lappend_int(asked->columns, column);
	}
	return tells && (adds || asked->prefix < 0);
}

/* ---- paths ---- */

/* Does the path read the index alone, which decides all conditions of the table exactly? */
static bool
path_will_do(const Path *path)
{
	const IndexPath *ipath = (const IndexPath *) path;
	ListCell   *lc;

	if (!IsA(path, IndexPath) || path->pathtype != T_IndexOnlyScan || path->param_info != NULL ||
		ipath->indexorderbys != NIL)
		return false;
	foreach(lc, ipath->indexinfo->indrestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->pseudoconstant || !is_redundant_with_indexclauses(rinfo, ipath->indexclauses))
			return false;
	}
	foreach(lc, ipath->indexclauses)
	{
		if (lfirst_node(IndexClause, lc)->lossy)
			return false;
	}
	return true;
}

static Plan *plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
					   List *tlist, List *clauses, List *custom_plans);

static const CustomPathMethods path_methods = {
	.CustomName = ART_AGG_NAME,
	.PlanCustomPath = plan_path,
};

/*
 * The costs of the index-only path, with what is saved.
 *
 * The rest of such a path's costs, beside its entries, is for reading the table.
 */
static void
set_costs(Path *path, const IndexPath *ipath, const ArtAsked *asked)
{
	double		rows = ipath->path.rows;
	Cost		entries = ipath->indextotalcost - ipath->path.startup_cost + rows * cpu_tuple_cost;
	Cost		heap = ipath->path.total_cost - ipath->path.startup_cost - entries;
	double		fetched = rows * (1 - ipath->indexinfo->rel->allvisfrac);

	entries += rows * cpu_operator_cost * list_length(asked->results);
	path->total_cost = ipath->path.startup_cost + Max(heap, 0) +
		Max(entries, 0) * ART_AGG_SHARE + fetched * cpu_tuple_cost + path->rows * cpu_tuple_cost;
	path->startup_cost = asked->prefix < 0 ? path->total_cost : ipath->path.startup_cost;
}

/* The node in the place of the path and of the aggregate, full or partial, above it. */
static Path *
aggregate_path(PlannerInfo *root, const IndexPath *ipath, RelOptInfo *grouped, double groups,
			   Node *having, const ArtAsked *asked)
{
	CustomPath *path = makeNode(CustomPath);

	path->path = ipath->path;
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->path.parent = grouped;
	path->path.pathtarget = grouped->reltarget;
	path->path.parallel_safe = grouped->consider_parallel && ipath->path.parallel_safe;
	path->path.rows = groups;
	path->path.pathkeys = asked->prefix < 0 ? NIL :
		list_truncate(list_copy(ipath->path.pathkeys), list_length(root->parse->groupClause));
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_private =
		list_make5((void *) ipath, asked->results, asked->kinds, asked->columns,
				   list_make2_int(ScanDirectionIsBackward(ipath->indexscandir), asked->prefix));
	path->custom_private = lappend(path->custom_private, having);
	path->methods = &path_methods;
	set_costs(&path->path, ipath, asked);
	return &path->path;
}

/*
 * Might the query be answered so, whatever its indexes are?  The cheap tests come first.
 */
static bool
query_will_do(PlannerInfo *root, const RelOptInfo *input)
{
	const Query *parse = root->parse;
	const RangeTblEntry *rte;

	if (!parse->hasAggs || parse->groupingSets != NIL || input->indexlist == NIL ||
		input->rows < ART_AGG_WORTH || !IS_SIMPLE_REL(input) || input->rtekind != RTE_RELATION)
		return false;
	rte = planner_rt_fetch(input->relid, root);
	return !rte->inh && rte->tablesample == NULL && root->rowMarks == NIL &&
		root->qual_security_level == 0 && root->placeholder_list == NIL &&
		!art_costs_as_btree() && !RecoveryInProgress();
}

/* The relation of core's partial aggregates, if there is one. */
static RelOptInfo *
partial_rel(PlannerInfo *root, const RelOptInfo *grouped, const GroupPathExtraData *extra)
{
	ListCell   *lc;

	if (!grouped->consider_parallel || (extra->flags & GROUPING_CAN_PARTIAL_AGG) == 0 ||
		(root->parse->groupClause != NIL && (extra->flags & GROUPING_CAN_USE_HASH) == 0))
		return NULL;
	foreach(lc, root->upper_rels[UPPERREL_PARTIAL_GROUP_AGG])
	{
		RelOptInfo *rel = lfirst_node(RelOptInfo, lc);

		if (bms_equal(rel->relids, grouped->relids) && rel->reltarget->exprs != NIL)
			return rel;
	}
	return NULL;
}

/* Partial aggregates, gathered, and finished above that. */
static Path *
gathered_path(PlannerInfo *root, const IndexPath *ipath, RelOptInfo *partial, RelOptInfo *grouped,
			  const GroupPathExtraData *extra, const ArtAsked *asked)
{
	double		groups = ((Path *) linitial(grouped->pathlist))->rows;
	Path	   *path = aggregate_path(root, ipath, partial, groups, NULL, asked);
	double		rows;

	path->pathkeys = NIL;
	rows = groups * path->parallel_workers;
	path = (Path *) create_gather_path(root, partial, path, partial->reltarget, NULL, &rows);
	return (Path *) create_agg_path(root, grouped, path, grouped->reltarget,
									asked->prefix < 0 ? AGG_PLAIN : AGG_HASHED,
									AGGSPLIT_FINAL_DESERIAL, ART_GROUP_CLAUSE(root),
									(List *) extra->havingQual, &extra->agg_final_costs, groups);
}

/* Offer what an index can do. */
static void
offer_index(PlannerInfo *root, const RelOptInfo *paths, RelOptInfo *grouped, RelOptInfo *partial,
			const GroupPathExtraData *extra)
{
	ArtAsked	asked;
	ListCell   *lc;

	foreach(lc, paths->pathlist)
	{
		const IndexPath *ipath = lfirst(lc);

		if (path_will_do(&ipath->path) && collect_results(&asked, grouped, extra->havingQual) &&
			index_tells(root, ipath, extra, &asked))
			add_path(grouped, aggregate_path(root, ipath, grouped,
											 asked.prefix < 0 ? 1 : ((Path *) linitial(grouped->pathlist))->rows,
											 extra->havingQual, &asked));
	}
	foreach(lc, paths->partial_pathlist)
	{
		const IndexPath *ipath = lfirst(lc);

		if (path_will_do(&ipath->path) && collect_results(&asked, partial, NULL) &&
			index_tells(root, ipath, extra, &asked))
			add_path(grouped, gathered_path(root, ipath, partial, grouped, extra, &asked));
	}
}

/* create_upper_paths_hook: offer each art index of the table that can do it. */
static void
offer_aggregate(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input,
				RelOptInfo *grouped, void *extra)
{
	ArtAsked	asked;
	RelOptInfo *partial;
	ListCell   *lc;

	if (prev_create_upper_paths_hook)
		prev_create_upper_paths_hook(root, stage, input, grouped, extra);
	if (stage != UPPERREL_GROUP_AGG || extra == NULL || grouped->pathlist == NIL ||
		!query_will_do(root, input) ||
		!collect_results(&asked, grouped, ((GroupPathExtraData *) extra)->havingQual))
		return;

	partial = partial_rel(root, grouped, extra);
	foreach(lc, input->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if ((void *) index->amcostestimate == (void *) artcostestimate && !index->hypothetical)
			offer_index(root, art_paths_of_index(root, input, index, partial != NULL), grouped, partial,
						extra);
	}
}

/* ---- plans ---- */

/* Add an entry to the scan tuple. */
static List *
add_entry(List *tlist, Node *node)
{
	return lappend(tlist, makeTargetEntry((Expr *) copyObject(node), list_length(tlist) + 1,
										  NULL, false));
}

/*
 * PlanCustomPath: the conditions, and the scan tuple.
 */
static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
		  List *tlist, List *clauses, List *custom_plans)
{
	const IndexPath *ipath = linitial_node(IndexPath, best_path->custom_private);
	List	   *results = list_nth(best_path->custom_private, 1);
	CustomScan *cscan = makeNode(CustomScan);
	List	   *quals = NIL;
	List	   *columns = NIL;
	ListCell   *lc,
			   *lc2;

	foreach(lc, ipath->indexclauses)
	{
		const IndexClause *ic = lfirst_node(IndexClause, lc);

		foreach(lc2, ic->indexquals)
		{
			Expr	   *clause = lfirst_node(RestrictInfo, lc2)->clause;

			quals = lappend(quals, clause);
			columns = IsA(clause, RowCompareExpr) ?
				list_concat(columns, list_copy(ic->indexcols)) :
				lappend_int(columns, ic->indexcol);
		}
	}

	foreach(lc, results)
		cscan->custom_scan_tlist = add_entry(cscan->custom_scan_tlist, lfirst(lc));
	foreach(lc, pull_var_clause((Node *) quals, 0))
		cscan->custom_scan_tlist = add_entry(cscan->custom_scan_tlist, lfirst(lc));

	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual = (List *) list_nth(best_path->custom_private, 5);
	cscan->scan.scanrelid = ipath->indexinfo->rel->relid;
	cscan->flags = best_path->flags;
	cscan->custom_exprs = quals;
	cscan->custom_private = list_make5(list_nth(best_path->custom_private, 4),
									   list_make1_oid(ipath->indexinfo->indexoid),
									   list_nth(best_path->custom_private, 2),
									   list_nth(best_path->custom_private, 3),
									   columns);
	cscan->methods = &art_agg_scan_methods;
	planned = true;
	return &cscan->scan.plan;
}

/* A node of a plan: it reads the table that it scans. */
static void
name_table(Plan *plan, void *arg)
{
	CustomScan *cscan = (CustomScan *) plan;

	if (IsA(plan, CustomScan) && cscan->methods == &art_agg_scan_methods)
		cscan->custom_relids = bms_make_singleton((int) cscan->scan.scanrelid);
}

void
art_agg_planned(PlannedStmt *stmt)
{
	if (planned)
		art_plan_walk(stmt, name_table, NULL);
}

void
art_agg_install(void)
{
	RegisterCustomScanMethods(&art_agg_scan_methods);
	prev_create_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = offer_aggregate;
}
