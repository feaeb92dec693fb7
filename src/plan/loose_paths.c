/*
 * loose_paths.c
 *	  Loose scans: where the planner may take one, and its price.
 *
 * SELECT DISTINCT of an index's first columns needs one row of each group of equal ones.
 * Core reads all rows, sorted, and drops all but the first of a group (Unique), or hashes
 * them.  So beside each index scan of the query's one table, whose order is the
 * right one, we offer a node that makes the scan jump from group to group.  The Unique
 * stays above it: it says what is equal, and takes what a jump did not leave out.
 *
 * DISTINCT ON (a) ... ORDER BY a, b DESC wants the last row of a group of an index of (a, b).
 * GROUP BY a wants one row of each group, with min(b) or max(b) the first or the last.
 * Aggregates of DISTINCT columns want one of each value.
 *
 * Below such a query a partition's rows are left out before core appends them to others'.
 * A table that IN or EXISTS only looks for a match in needs one row of each group, too.
 * There the loose scan is a path of the table itself, with the rows that it gives.
 *
 * Left out: volatile functions, conditions that core tests once for all rows, other joins,
 * and indexes whose order is not to be relied on.
 *
 * src/plan/README.md: Loose scans
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/sysattr.h"
#include "catalog/pg_aggregate.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "art_compat.h"
#include "area/area.h"
#include "key/key.h"
#include "plan/custom_scans.h"
#include "plan/loose_scan.h"
#include "plan/plan.h"

/* With fewer entries in a group there is nothing to gain. */
#define ART_LOOSE_WORTH		3.0

/* The price of a search, in units of cpu_operator_cost, beside that of a row. */
#define ART_LOOSE_SEARCH	16.0

static create_upper_paths_hook_type prev_create_upper_paths_hook = NULL;
static set_rel_pathlist_hook_type prev_set_rel_pathlist_hook = NULL;
static set_join_pathlist_hook_type prev_set_join_pathlist_hook = NULL;

/* A loose scan of an index scan: its groups, and their rows that it gives. */
typedef struct Loose
{
	int			columns;		/* of the index, which make a group */
	ArtLooseRows rows;
	bool		nulls;			/* a NULL in the next column makes a group of its own */
	double		groups;
	List	   *pathkeys;		/* the order of the rows that it gives */
} Loose;

/* ---- the index scan below ---- */

/* An expression without casts that change no bytes. */
static Node *
without_relabel(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/*
 * Is the index's column (from 0) one of a class of equal expressions, in the order of the
 * column's operator family?
 */
static bool
column_is(const IndexOptInfo *index, int col, const PathKey *pathkey)
{
	Node	   *expr = without_relabel((Node *) list_nth_node(TargetEntry, index->indextlist, col)->expr);
	ListCell   *lc;

	if (index->sortopfamily[col] != pathkey->pk_opfamily ||
		index->indexcollations[col] != pathkey->pk_eclass->ec_collation)
		return false;
	foreach(lc, pathkey->pk_eclass->ec_members)
	{
		const EquivalenceMember *em = lfirst(lc);

		if (equal(without_relabel((Node *) em->em_expr), expr))
			return true;
	}
	return false;
}

/* The first column of an index that a pathkey is of, from 0; -1: none. */
static int
column_of(const IndexOptInfo *index, const PathKey *pathkey)
{
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		if (column_is(index, i, pathkey))
			return i;
	}
	return -1;
}

/*
 * How many columns of the index do these pathkeys, by which the scan is sorted, span?
 * Columns in between are constants, or repeat others.  0: one is not found.
 */
static int
columns_spanned(const IndexOptInfo *index, List *pathkeys)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		int			col = column_of(index, lfirst_node(PathKey, lc));

		if (col < 0)
			return 0;
		n = Max(n, col + 1);
	}
	return n;
}

/*
 * Does the index's order follow from a function that may be none?
 *
 * Locks: takes none on the index, which get_relation_info() has locked.
 */
static bool
order_is_doubtful(Oid indexid)
{
	Relation	index = index_open(indexid, NoLock);
	bool		doubtful = art_relcache(index)->kd.doubtful;

	index_close(index, NoLock);
	return doubtful;
}

/* An index that this room plans with? */
static bool
is_ours(const IndexOptInfo *index)
{
	return (void *) index->amcostestimate == (void *) artcostestimate && !index->hypothetical &&
		index->sortopfamily != NULL;
}

/* The scan of an art index that a path is, or projects; NULL: another path. */
static IndexPath *
index_scan(Path *path)
{
	IndexPath  *ipath;

	if (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	ipath = (IndexPath *) path;
	if (!IsA(path, IndexPath) || path->param_info != NULL || path->parallel_aware ||
		!is_ours(ipath->indexinfo) || ipath->indexorderbys != NIL)
		return NULL;
	return ipath;
}

/* May rows of this table be left out at all?  Nobody may see how often something is evaluated. */
static bool
table_will_do(const RelOptInfo *rel)
{
	ListCell   *lc;

	if (rel->rtekind != RTE_RELATION || rel->indexlist == NIL || art_costs_as_btree() ||
		contain_volatile_functions((Node *) rel->reltarget->exprs))
		return false;
	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->pseudoconstant || contain_volatile_functions((Node *) rinfo->clause))
			return false;
	}
	return true;
}

/* ---- paths ---- */

/*
 * The price.  Each group is searched for, and entries are read until a row passes the
 * conditions.  Each is a page of the table, unless that is visible to all and the scan
 * reads only the index.
 */
static void
set_costs(PlannerInfo *root, CustomPath *path, const IndexPath *scan, const Loose *l)
{
	const IndexOptInfo *index = scan->indexinfo;
	const RelOptInfo *rel = index->rel;
	const Cost	all = scan->path.total_cost - scan->path.startup_cost;
	const double found = l->rows == ART_LOOSE_FIRST ? l->groups : 2 * l->groups;
	double		entries = clamp_row_est(scan->indexselectivity * rel->tuples);
	double		read;
	double		pages;
	Cost		cpu;

	read = found * Max(1, Min(entries / clamp_row_est(scan->path.rows), entries / l->groups));
	pages = index_pages_fetched(read, rel->pages, index->pages, root);
	if (scan->path.pathtype == T_IndexOnlyScan)
		pages *= 1.0 - rel->allvisfrac;
	cpu = found * ART_LOOSE_SEARCH * cpu_operator_cost +
		read * (cpu_index_tuple_cost + cpu_tuple_cost + rel->baserestrictcost.per_tuple);

	path->path.startup_cost = scan->path.startup_cost;
	path->path.total_cost = path->path.startup_cost + cpu +
		Min(all, pages * random_page_cost);
	path->path.rows = found;
}

/* The planner's methods of a path. */
static Plan *plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
					   List *tlist, List *clauses, List *custom_plans);

static const CustomPathMethods path_methods = {
	.CustomName = ART_LOOSE_NAME,
	.PlanCustomPath = plan_path,
};

/* A loose scan in the place of a path that index_scan() has found to be one; or NULL. */
static Path *
loose_path(PlannerInfo *root, Path *path, IndexPath *scan, const Loose *l)
{
	CustomPath *loose = makeNode(CustomPath);
	double		entries = scan->indexselectivity * scan->indexinfo->rel->tuples;

	if (l->columns == 0 || entries < ART_LOOSE_WORTH * l->groups ||
		contain_volatile_functions((Node *) path->pathtarget->exprs) ||
		order_is_doubtful(scan->indexinfo->indexoid))
		return NULL;
	loose->path = scan->path;
	loose->path.type = T_CustomPath;
	loose->path.pathtype = T_CustomScan;
	loose->path.pathkeys = l->pathkeys;
	loose->custom_paths = list_make1(scan);
	loose->custom_private = list_make2(list_make3_int(l->columns, l->rows, l->nulls),
									   list_make1_oid(scan->indexinfo->indexoid));
	loose->methods = &path_methods;
	set_costs(root, loose, scan, l);
	if (!IsA(path, ProjectionPath))
		return &loose->path;
	return (Path *) create_projection_path(root, path->parent, &loose->path, path->pathtarget);
}

/* ---- DISTINCT ---- */

/*
 * Is an index scan, whose groups are of so many columns, sorted within them by the reverse
 * of these pathkeys?
 */
static bool
sorted_the_other_way(const IndexPath *scan, int columns, List *pathkeys, int from)
{
	const IndexOptInfo *index = scan->indexinfo;
	const bool	backward = ScanDirectionIsBackward(scan->indexscandir);

	for (int i = from; i < list_length(pathkeys); i++)
	{
		const PathKey *pk = list_nth_node(PathKey, pathkeys, i);
		const bool	desc = ART_PATHKEY_DESC(pk);

		if (columns == index->nkeycolumns || !column_is(index, columns, pk) ||
			(index->reverse_sort[columns] != backward) == desc ||
			(index->nulls_first[columns] != backward) == pk->pk_nulls_first)
			return false;
		columns++;
	}
	return true;
}

/*
 * Has a condition on columns behind a group's an array?  Then a group may lie in several
 * of the scan's ranges.
 */
static bool
group_in_ranges(const IndexPath *scan, int columns)
{
	ListCell   *lc,
			   *lc2;

	foreach(lc, scan->indexclauses)
	{
		const IndexClause *ic = lfirst_node(IndexClause, lc);

		foreach(lc2, ic->indexquals)
		{
			if (ic->indexcol >= columns &&
				IsA(lfirst_node(RestrictInfo, lc2)->clause, ScalarArrayOpExpr))
				return true;
		}
	}
	return false;
}

/*
 * What is a loose scan to do that serves DISTINCT?  False: there is none.
 */
static bool
distinct_by(PlannerInfo *root, const IndexPath *scan, Loose *l)
{
	List	   *distinct = root->distinct_pathkeys;
	List	   *sort = root->sort_pathkeys;

	l->columns = columns_spanned(scan->indexinfo, distinct);
	if (l->columns == 0 || !pathkeys_contained_in(distinct, scan->path.pathkeys))
		return false;
	l->rows = ART_LOOSE_FIRST;
	l->nulls = false;
	l->pathkeys = scan->path.pathkeys;
	if (!root->parse->hasDistinctOn || list_length(distinct) >= list_length(sort) ||
		pathkeys_contained_in(sort, scan->path.pathkeys))
		return true;

	/* the first row of a group by the query's order is the last by the index's */
	l->rows = ART_LOOSE_LAST;
	l->pathkeys = sort;
	return !group_in_ranges(scan, l->columns) &&
		sorted_the_other_way(scan, l->columns, sort, list_length(distinct));
}

/* SELECT DISTINCT: offer a Unique of a loose scan beside each index scan. */
static void
offer_distinct(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output)
{
	ListCell   *lc;

	if (root->distinct_pathkeys == NIL)
		return;
	foreach(lc, input->pathlist)
	{
		Path	   *path = lfirst(lc);
		IndexPath  *scan = index_scan(path);
		Loose		l;

		if (scan == NULL || !distinct_by(root, scan, &l))
			continue;
		l.groups = estimate_num_groups(root, get_sortgrouplist_exprs(ART_DISTINCT_CLAUSE(root),
																	 root->processed_tlist),
									   path->rows, NULL, NULL);
		path = loose_path(root, path, scan, &l);
		if (path != NULL)
			add_path(output, (Path *) art_unique_path(root, output, path,
													  list_length(root->distinct_pathkeys),
													  l.groups));
	}
}

/* ---- GROUP BY, and aggregates ---- */

/* The index's column (from 0) that an aggregate's one argument is; -1: none. */
static int
argument_column(const IndexOptInfo *index, const Aggref *agg)
{
	Node	   *arg;

	if (agg->aggkind != AGGKIND_NORMAL || agg->aggfilter != NULL || agg->aggorder != NIL ||
		list_length(agg->args) != 1)
		return -1;
	arg = without_relabel((Node *) linitial_node(TargetEntry, agg->args)->expr);
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		if (equal(arg, without_relabel((Node *) list_nth_node(TargetEntry, index->indextlist,
															  i)->expr)))
			return i;
	}
	return -1;
}

/* Are the values that the aggregate calls equal, by its DISTINCT, those of the index's column? */
static bool
distinct_by_column(const IndexOptInfo *index, int col, const Aggref *agg)
{
	const SortGroupClause *clause = linitial_node(SortGroupClause, agg->aggdistinct);

	return get_op_opfamily_strategy(clause->eqop, index->sortopfamily[col]) == BTEqualStrategyNumber &&
		index->indexcollations[col] == exprCollation((Node *) linitial_node(TargetEntry, agg->args)->expr);
}

/*
 * Of min and max, by the order of the index's column: the strategy of the operator that
 * finds them.  0: another aggregate.
 */
static int
extreme_by_column(const IndexOptInfo *index, int col, const Aggref *agg)
{
	HeapTuple	tup = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(agg->aggfnoid));
	Oid			op;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for aggregate %u", agg->aggfnoid);
	op = ((Form_pg_aggregate) GETSTRUCT(tup))->aggsortop;
	ReleaseSysCache(tup);
	return !OidIsValid(op) || index->indexcollations[col] != agg->inputcollid ? 0 :
		get_op_opfamily_strategy(op, index->sortopfamily[col]);
}

/* The rows that these aggregates need of a group, of those that l says so far.  False: all. */
static bool
aggregates_by(const IndexPath *scan, List *aggs, Loose *l, List **exprs)
{
	const IndexOptInfo *index = scan->indexinfo;
	const bool	backward = ScanDirectionIsBackward(scan->indexscandir);
	bool		first = false;
	bool		last = false;
	ListCell   *lc;

	/* one row of each value of what is DISTINCT */
	foreach(lc, aggs)
	{
		const Aggref *agg = lfirst_node(Aggref, lc);
		int			col = argument_column(index, agg);

		if (col < 0)
			return false;
		if (extreme_by_column(index, col, agg) != 0)
			continue;
		if (agg->aggdistinct == NIL || !distinct_by_column(index, col, agg))
			return false;
		l->columns = Max(l->columns, col + 1);
		*exprs = lappend(*exprs, linitial_node(TargetEntry, agg->args)->expr);
	}
	/* and an end of what stands behind it */
	foreach(lc, aggs)
	{
		const Aggref *agg = lfirst_node(Aggref, lc);
		int			col = argument_column(index, agg);
		int			extreme = extreme_by_column(index, col, agg);
		bool		at_begin;

		if (extreme == 0 || col < l->columns)
			continue;
		if (col > l->columns)
			return false;
		at_begin = (extreme == BTLessStrategyNumber) == (index->reverse_sort[col] == backward);
		first |= at_begin;
		last |= !at_begin;
	}
	l->nulls = first || last;
	l->rows = !last ? ART_LOOSE_FIRST : first ? ART_LOOSE_BOTH : ART_LOOSE_LAST;
	return l->columns > 0 && !(last && group_in_ranges(scan, l->columns));
}

/* The aggregates of the query. */
static List *
aggregates_of(Node *results, Node *having)
{
	List	   *aggs = NIL;
	ListCell   *lc;

	foreach(lc, pull_var_clause((Node *) list_make2(results, having), PVC_INCLUDE_AGGREGATES |
								PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS))
	{
		if (IsA(lfirst(lc), Aggref))
			aggs = lappend(aggs, lfirst(lc));
	}
	return aggs;
}

/* The node above a loose scan that makes groups. */
static Path *
grouping_path(PlannerInfo *root, RelOptInfo *output, Path *path, const GroupPathExtraData *extra,
			  double groups)
{
	const Query *parse = root->parse;
	List	   *clause = ART_GROUP_CLAUSE(root);
	List	   *having = (List *) extra->havingQual;
	AggClauseCosts costs;

	if (!parse->hasAggs)
		return (Path *) create_group_path(root, output, path, clause, having, groups);
	MemSet(&costs, 0, sizeof(costs));
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	return (Path *) create_agg_path(root, output, path, output->reltarget,
									parse->groupClause != NIL ? AGG_SORTED : AGG_PLAIN,
									AGGSPLIT_SIMPLE, clause, having, &costs, groups);
}

/* Can there be groups by an index?  Those of constants are left to core. */
static bool
groups_will_do(const PlannerInfo *root)
{
	return root->parse->groupingSets == NIL &&
		(root->parse->groupClause == NIL || root->group_pathkeys != NIL);
}

/* What is a loose scan to do that serves GROUP BY, or aggregates without?  False: there is none. */
static bool
groups_by(PlannerInfo *root, const IndexPath *scan, List *aggs, Loose *l, List **exprs)
{
	List	   *keys = ART_GROUP_PATHKEYS(root);

	/* an aggregate may count on the order of more than the groups */
	if (!pathkeys_contained_in(root->group_pathkeys, scan->path.pathkeys))
		return false;
	l->columns = columns_spanned(scan->indexinfo, keys);
	l->pathkeys = scan->path.pathkeys;
	return (keys == NIL || l->columns > 0) && aggregates_by(scan, aggs, l, exprs);
}

/*
 * The scans that may serve.  Before 16 core sorts for aggregates of DISTINCT columns, and
 * thinks of no index, so it is asked for those that begin with such a column.
 */
static List *
scans_to_group(PlannerInfo *root, RelOptInfo *input, List *aggs)
{
	List	   *scans = list_copy(input->pathlist);
	ListCell   *lc,
			   *lc2;

	if (root->parse->groupClause != NIL)
		return scans;
	foreach(lc, scans)
	{
		if (index_scan(lfirst(lc)) != NULL)
			return scans;
	}
	foreach(lc, aggs)
	{
		const Aggref *agg = lfirst_node(Aggref, lc);

		foreach(lc2, agg->aggdistinct != NIL ? input->indexlist : NIL)
		{
			IndexOptInfo *index = lfirst_node(IndexOptInfo, lc2);

			if (is_ours(index) && argument_column(index, agg) == 0)
				scans = list_concat(scans, art_paths_of_index(root, input, index, false)->pathlist);
		}
	}
	return scans;
}

/* GROUP BY, and aggregates without: offer them on a loose scan beside each index scan. */
static void
offer_groups(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
			 const GroupPathExtraData *extra)
{
	List	   *clause = ART_GROUP_CLAUSE(root);
	List	   *exprs = get_sortgrouplist_exprs(clause, root->processed_tlist);
	List	   *aggs;
	ListCell   *lc;

	if (!groups_will_do(root))
		return;
	aggs = aggregates_of((Node *) output->reltarget->exprs, extra->havingQual);
	foreach(lc, scans_to_group(root, input, aggs))
	{
		Path	   *path = lfirst(lc);
		IndexPath  *scan = index_scan(path);
		List	   *all = list_copy(exprs);
		double		groups;
		Loose		l;

		if (scan == NULL || !groups_by(root, scan, aggs, &l, &all))
			continue;
		groups = clause != NIL ? estimate_num_groups(root, exprs, path->rows, NULL, NULL) : 1;
		l.groups = estimate_num_groups(root, all, path->rows, NULL, NULL);
		path = loose_path(root, path, scan, &l);
		if (path != NULL)
			add_path(output, grouping_path(root, output, path, extra, groups));
	}
}

/* create_upper_paths_hook: one table's rows are grouped, by DISTINCT or otherwise. */
static void
offer_loose(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
			RelOptInfo *output_rel, void *extra)
{
	if (prev_create_upper_paths_hook)
		prev_create_upper_paths_hook(root, stage, input_rel, output_rel, extra);
	/* UNION, INTERSECT, EXCEPT and WITH RECURSIVE have no input */
	if ((stage != UPPERREL_DISTINCT && stage != UPPERREL_GROUP_AGG) ||
		input_rel->reloptkind != RELOPT_BASEREL || !table_will_do(input_rel))
		return;
	if (stage == UPPERREL_DISTINCT)
		offer_distinct(root, input_rel, output_rel);
	else
		offer_groups(root, input_rel, output_rel, extra);
}

/* ---- a table of which rows are left out before others are joined or appended ---- */

/* The semi or anti join whose inner side is this table alone, or its parent; NULL: none. */
static SpecialJoinInfo *
matching_join(PlannerInfo *root, const RelOptInfo *rel)
{
	Relids		relids = rel->top_parent_relids != NULL ? rel->top_parent_relids : rel->relids;
	ListCell   *lc;

	foreach(lc, root->join_info_list)
	{
		SpecialJoinInfo *sjinfo = lfirst_node(SpecialJoinInfo, lc);

		if ((sjinfo->jointype == JOIN_SEMI || sjinfo->jointype == JOIN_ANTI) &&
			bms_equal(sjinfo->syn_righthand, relids))
			return sjinfo;
	}
	return NULL;
}

/*
 * Do conditions of joins see of a column no more than its operator family?  Then values that
 * are equal and differ (1.0 and 1.00) may stand for each other.
 */
static bool
only_compared(PlannerInfo *root, const RelOptInfo *rel, const IndexOptInfo *index, int col,
			  const Var *var)
{
	Bitmapset  *attrs = NULL;
	ListCell   *lc,
			   *lc2;

	foreach(lc, rel->joininfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, rel->relid, &attrs);
	if (bms_is_member(var->varattno - FirstLowInvalidHeapAttributeNumber, attrs))
		return false;
	foreach(lc, root->eq_classes)
	{
		const EquivalenceClass *ec = lfirst_node(EquivalenceClass, lc);

		foreach(lc2, ec->ec_members)
		{
			const EquivalenceMember *em = lfirst(lc2);
			List	   *vars = pull_var_clause((Node *) em->em_expr,
											   PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
											   PVC_RECURSE_PLACEHOLDERS);

			if (list_member(vars, var) &&
				(!equal(without_relabel((Node *) em->em_expr), var) ||
				 ec->ec_collation != index->indexcollations[col] ||
				 !list_member_oid(ec->ec_opfamilies, index->sortopfamily[col])))
				return false;
		}
	}
	return true;
}

/*
 * How many columns of the index make a group, if all rows that agree in what joins want of
 * the table are one?  0: joins want more than the index has.
 *
 * Locks: takes none on the index, which get_relation_info() has locked.
 */
static int
columns_matched(PlannerInfo *root, const RelOptInfo *rel, const IndexOptInfo *index)
{
	int			columns = 0;
	ListCell   *lc;

	foreach(lc, rel->joininfo)
	{
		if (contain_volatile_functions((Node *) lfirst_node(RestrictInfo, lc)->clause))
			return 0;
	}
	foreach(lc, rel->reltarget->exprs)
	{
		const Var  *var = lfirst(lc);
		int			col = -1;

		if (!IsA(var, Var))
			return 0;
		/* for a new test of the conditions (EvalPlanQual): which row is joined */
		if (var->varattno == SelfItemPointerAttributeNumber && rel->attr_needed != NULL &&
			bms_equal(rel->attr_needed[var->varattno - rel->min_attr], bms_make_singleton(0)))
			continue;
		for (int i = 0; i < index->nkeycolumns && col < 0; i++)
		{
			if (index->indexkeys[i] != 0 && index->indexkeys[i] == var->varattno)
				col = i;
		}
		if (col < 0)
			return 0;
		columns = Max(columns, col + 1);
		if (!art_column_is_exact(index->indexoid, col) &&
			(rel->reloptkind != RELOPT_BASEREL || !only_compared(root, rel, index, col, var)))
			return 0;
	}
	return columns;
}

/*
 * Name a column of a partition, or of a member of UNION ALL, by its parent's.  False: it is
 * none that the parent has.  parent_colnos does not tell: core leaves those of a member as
 * they were when it was a query.
 */
static bool
name_by_parent(const AppendRelInfo *appinfo, Var *var)
{
	ListCell   *lc;

	foreach(lc, appinfo->translated_vars)
	{
		const Var  *translated = lfirst(lc);

		if (translated != NULL && IsA(translated, Var) &&
			translated->varno == var->varno && translated->varattno == var->varattno)
		{
			var->varno = (int) appinfo->parent_relid;
			var->varattno = (AttrNumber) (foreach_current_index(lc) + 1);
			return true;
		}
	}
	return false;
}

/*
 * A copy of a partition's scan whose index has the columns of the table that the query
 * names.  Expressions stay, and are nothing that the query has.
 */
static IndexPath *
named_by_query(PlannerInfo *root, const IndexPath *scan)
{
	IndexPath  *copy = makeNode(IndexPath);
	IndexOptInfo *index = makeNode(IndexOptInfo);
	ListCell   *lc;

	*copy = *scan;
	*index = *scan->indexinfo;
	copy->indexinfo = index;
	index->indextlist = copyObject(index->indextlist);
	foreach(lc, index->indextlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		Var		   *var = (Var *) tle->expr;
		const AppendRelInfo *parent;

		while (IsA(var, Var) && (parent = root->append_rel_array[var->varno]) != NULL &&
			   name_by_parent(parent, var))
			;
	}
	return copy;
}

/* Does the query want of its one table no more than groups of some kind have? */
static bool
query_wants_groups(PlannerInfo *root)
{
	const Query *parse = root->parse;

	if (bms_membership(root->all_baserels) != BMS_SINGLETON || root->placeholder_list != NIL ||
		contain_volatile_functions((Node *) root->processed_tlist))
		return false;
	if (parse->groupClause != NIL || parse->hasAggs)
		return groups_will_do(root);
	return root->distinct_pathkeys != NIL && !parse->hasWindowFuncs && !parse->hasTargetSRFs;
}

/* What is a loose scan of a partition to do, for such a query? */
static bool
serves_query(PlannerInfo *root, const IndexPath *scan, Loose *l)
{
	const Query *parse = root->parse;
	List	   *exprs = NIL;

	scan = named_by_query(root, scan);
	if (parse->groupClause == NIL && !parse->hasAggs)
		return distinct_by(root, scan, l);
	return groups_by(root, scan, aggregates_of((Node *) root->processed_tlist, parse->havingQual),
					 l, &exprs);
}

/* How many groups are there?  Columns that are one value make none. */
static double
estimate_groups(PlannerInfo *root, const IndexPath *scan, int columns)
{
	List	   *exprs = NIL;

	for (int i = 0; i < columns; i++)
	{
		if (!art_column_is_fixed(scan, i))
			exprs = lappend(exprs, list_nth_node(TargetEntry, scan->indexinfo->indextlist, i)->expr);
	}
	return estimate_num_groups(root, exprs, scan->path.rows, NULL, NULL);
}

/*
 * Offer loose scans of one index as paths of the table.  "matched": so many columns make a
 * group whose rows are all alike to the joins; 0: the query's groups.
 */
static void
offer_index(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, int matched)
{
	ListCell   *lc;

	foreach(lc, art_paths_of_index(root, rel, index, false)->pathlist)
	{
		IndexPath  *scan = index_scan(lfirst(lc));
		Path	   *path;
		Loose		l = {matched, ART_LOOSE_FIRST, false, 0, NIL};

		if (scan == NULL || (matched == 0 && !serves_query(root, scan, &l)))
			continue;
		if (matched > 0)
			l.pathkeys = scan->path.pathkeys;
		l.groups = estimate_groups(root, scan, l.columns);
		path = loose_path(root, &scan->path, scan, &l);
		if (path != NULL)
			add_path(rel, path);
	}
}

/* set_rel_pathlist_hook: a table in which IN or EXISTS looks for a match, or a partition. */
static void
offer_below(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	const bool	part = rel->reloptkind == RELOPT_OTHER_MEMBER_REL;
	bool		matched;
	ListCell   *lc;

	if (prev_set_rel_pathlist_hook)
		prev_set_rel_pathlist_hook(root, rel, rti, rte);
	if (rel->indexlist == NIL || (!part && root->join_info_list == NIL) || rte->inh ||
		rte->tablesample != NULL || IS_DUMMY_REL(rel))
		return;
	matched = matching_join(root, rel) != NULL;
	if ((!matched && !(part && query_wants_groups(root))) || !table_will_do(rel))
		return;
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		int			columns;

		if (!is_ours(index))
			continue;
		columns = matched ? columns_matched(root, rel, index) : 0;
		if (columns > 0 || !matched)
			offer_index(root, rel, index, columns);
	}
}

/*
 * set_join_pathlist_hook.  Before 19 core makes the inner rows of IN unique at the price of
 * all the table's rows.  This comes before it prices joins with those.
 */
static void
price_unique(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			 RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	Path	   *unique;
	const CustomPath *loose;

	if (prev_set_join_pathlist_hook)
		prev_set_join_pathlist_hook(root, joinrel, outerrel, innerrel, jointype, extra);
	loose = (const CustomPath *) innerrel->cheapest_total_path;
	if (jointype != JOIN_SEMI || loose == NULL || !IsA(loose, CustomPath) ||
		loose->methods != &path_methods)
		return;
	unique = ART_UNIQUE_INNER(innerrel);
	if (unique == NULL)
		return;
	unique->total_cost = loose->path.total_cost +
		loose->path.rows * cpu_operator_cost * (1 + log2(loose->path.rows + 1));
	unique->startup_cost = unique->total_cost;
	unique->total_cost += unique->rows * cpu_tuple_cost;
}

/* ---- plans ---- */

/* PlanCustomPath: the rows are those of the index scan, which tests all conditions. */
static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
		  List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);

	cscan->scan.plan.targetlist = tlist;
	outerPlan(&cscan->scan.plan) = linitial(custom_plans);
	cscan->custom_scan_tlist = copyObject(outerPlan(&cscan->scan.plan)->targetlist);
	cscan->custom_private = best_path->custom_private;
	cscan->methods = &art_loose_scan_methods;
	return &cscan->scan.plan;
}

/* Put the hooks in; from _PG_init. */
void
art_loose_install(void)
{
	RegisterCustomScanMethods(&art_loose_scan_methods);
	prev_create_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = offer_loose;
	prev_set_rel_pathlist_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = offer_below;
	prev_set_join_pathlist_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = price_unique;
}
