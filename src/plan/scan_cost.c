/*
 * scan_cost.c
 *	  What a scan of an art index costs.
 *
 * The estimate is nbtree's: the same boundary quals, the same correlation, the
 * same tuples.  Only the price of what nbtree does on pages differs.  An art
 * index is in memory or is not planned at all, so nothing of it is ever read
 * from disk.  A descent is a few cache misses, where nbtree locks and searches
 * a page a level.  So art is never dearer than nbtree, and is picked wherever
 * nbtree would be.
 *
 * src/plan/README.md: The planner
 */
#include "postgres.h"

#include <math.h>

#include "access/xlog.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"
#include "access/stratnum.h"

#include "art_compat.h"
#include "am/am.h"
#include "area/area.h"
#include "live/live.h"
#include "plan/plan.h"

/*
 * Charged per node of a descent and per 8 kB of the structure read, in units
 * of cpu_operator_cost.  For a page of a descent nbtree charges 50: it is
 * locked, pinned and searched.  A node is one or two cache misses.
 *
 * To read 8 kB entry by entry, in key order, takes some time.  For that time a
 * sequential scan of a cached table is charged some three units.  An
 * index-only scan of 700,000 random uuids (28.6 bytes an entry) took 1.35 to
 * 1.75 times as long as the scan of their table.  Of bigints in the table's
 * order (8.3 bytes) it took about as long.  It is never charged more than
 * nbtree's page, random_page_cost.  Of the first 8 kB a search usually reads a
 * small part, some cache misses.
 */
#define ART_NODE_COST	8.0
#define ART_NOT_OFFERED	1.0e10	/* as core prices what is disabled, up to 17 */
#define ART_FIRST_COST	20.0
#define ART_PAGE_COST	1100.0

/* Nodes on a path when the structure could not be asked. */
#define ART_DEFAULT_HEIGHT	3

/* Does the condition leave single values of the index's column: "=", = ANY, IS NULL? */
static bool
is_equality(IndexOptInfo *index, int indexcol, Expr *clause)
{
	Oid			op;

	if (IsA(clause, NullTest))
		return ((NullTest *) clause)->nulltesttype == IS_NULL;
	if (IsA(clause, OpExpr))
		op = ((OpExpr *) clause)->opno;
	else if (IsA(clause, ScalarArrayOpExpr))
		op = ((ScalarArrayOpExpr *) clause)->opno;
	else
		return false;
	return get_op_opfamily_strategy(op, index->opfamily[indexcol]) == BTEqualStrategyNumber;
}

#if PG_VERSION_NUM >= 180000

/*
 * The index clauses that bound the scan: those of leading columns with "=",
 * = ANY or IS NULL, and of the one column after.  From 18 on btcostestimate() thinks
 * that the others bound it too, by skipping as nbtree does.  expect_skips() says what
 * art skips.
 */
static List *
bounding_clauses(IndexPath *path)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *result = NIL;
	int			indexcol = 0;
	bool		eq_here = false;
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, lc);
		ListCell   *lc2;

		if (indexcol != iclause->indexcol)
		{
			if (!eq_here)
				break;
			eq_here = false;
			indexcol++;
			if (indexcol != iclause->indexcol)
				break;
		}

		foreach(lc2, iclause->indexquals)
			eq_here |= is_equality(index, indexcol, lfirst_node(RestrictInfo, lc2)->clause);
		result = lappend(result, iclause);
	}
	return result;
}

/*
 * The path's clauses after those that bound the scan only filter: they are tested
 * on each of the ntuples entries visited.
 */
static void
add_filters(PlannerInfo *root, IndexPath *path, List *bounding, double ntuples,
			Cost *startup, Cost *total, Selectivity *selectivity)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *all,
			   *rest;
	Cost		operands;

	if (list_length(bounding) == list_length(path->indexclauses))
		return;
	all = get_quals_from_indexclauses(path->indexclauses);
	rest = list_copy_tail(all, list_length(get_quals_from_indexclauses(bounding)));
	operands = index_other_operands_eval_cost(root, rest);

	*startup += operands;
	*total += operands + ntuples * cpu_operator_cost * list_length(rest);
	*selectivity =
		clauselist_selectivity(root, add_predicate_to_index_quals(index, all),
							   index->rel->relid, JOIN_INNER, NULL);
}

#endif

/* How many conditions the clauses are for the executor. */
static int
count_quals(List *indexclauses)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, indexclauses)
		n += list_length(lfirst_node(IndexClause, lc)->indexquals);
	return n;
}

/* Is there an array among them? */
static bool
any_array(List *indexclauses)
{
	ListCell   *lc,
			   *lc2;

	foreach(lc, indexclauses)
	{
		foreach(lc2, lfirst_node(IndexClause, lc)->indexquals)
		{
			if (IsA(lfirst_node(RestrictInfo, lc2)->clause, ScalarArrayOpExpr))
				return true;
		}
	}
	return false;
}

/* How many elements has the array of a condition?  1 without one. */
static double
elements(PlannerInfo *root, Expr *clause)
{
	if (!IsA(clause, ScalarArrayOpExpr))
		return 1;
	return Max(art_estimate_array_length(root, (Node *) lsecond(((ScalarArrayOpExpr *) clause)->args)), 1);
}

/*
 * How many searches the arrays among the bounding clauses make:
 * btcostestimate's own count, without 17's limit, which is in pages of nbtree.
 * *all counts those of the other clauses, too.  These only filter here, with
 * *compares a tuple.
 */
static double
estimate_searches(PlannerInfo *root, IndexPath *path, double *all, double *compares)
{
	IndexOptInfo *index = path->indexinfo;
	double		n = 1;
	int			indexcol = 0;
	bool		eq_here = false;
	bool		bounds = true;
	ListCell   *lc;

	*all = 1;
	*compares = 0;
	if (!any_array(path->indexclauses))
		return 1;
	foreach(lc, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, lc);
		ListCell   *lc2;

		if (bounds && indexcol != iclause->indexcol)
		{
			bounds = eq_here && iclause->indexcol == indexcol + 1;
			eq_here = false;
			indexcol++;
		}

		foreach(lc2, iclause->indexquals)
		{
			Expr	   *clause = lfirst_node(RestrictInfo, lc2)->clause;
			double		length = elements(root, clause);

			*all *= length;
			if (bounds)
			{
				n *= length;
				eq_here |= is_equality(index, indexcol, clause);
			}
			else
				*compares += ceil(log(length) / log(2.0));
		}
	}
	return n;
}

/* How many values a column of the index has; 0: nobody knows. */
static double
distinct_values(PlannerInfo *root, IndexOptInfo *index, int indexcol)
{
	VariableStatData column;
	bool		guessed;
	double		n;

	examine_variable(root, (Node *) list_nth_node(TargetEntry, index->indextlist, indexcol)->expr,
					 0, &column);
	n = get_variable_numdistinct(&column, &guessed);
	ReleaseVariableStats(column);
	return guessed ? 0 : n;
}

/* The conditions on a column; *equal: they leave single values of it, *length of them. */
static List *
column_quals(PlannerInfo *root, IndexPath *path, int indexcol, bool *equal, double *length)
{
	List	   *quals = NIL;
	ListCell   *lc,
			   *lc2;

	*equal = false;
	*length = 1;
	foreach(lc, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, lc);

		if (iclause->indexcol != indexcol)
			continue;
		foreach(lc2, iclause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);

			*equal |= is_equality(path->indexinfo, indexcol, rinfo->clause);
			*length *= elements(root, rinfo->clause);
			quals = lappend(quals, rinfo);
		}
	}
	return quals;
}

/*
 * A column that is not left with single values opens a gap.  By the conditions on the
 * columns behind it the scan skips (scan/skips.c): two searches for each combination of
 * values of the columns in the gap.  If that is less work than to test all *ntuples, then
 * *ntuples becomes what is still met, and *searches what is searched.  Where the
 * statistics do not know how many values there are, no skip is expected.
 */
static void
expect_skips(PlannerInfo *root, IndexPath *path, Cost descent, double *ntuples,
			 double *searches)
{
	IndexOptInfo *index = path->indexinfo;
	Cost		per_tuple = cpu_index_tuple_cost + cpu_operator_cost * count_quals(path->indexclauses);
	Cost		best = *ntuples * per_tuple + *searches * descent;
	double		bounds = *searches;
	double		groups = *searches;
	double		most = *ntuples;
	List	   *quals = NIL;
	bool		gap = false;

	for (int col = 0; col < index->nkeycolumns && groups < most; col++)
	{
		bool		equal;
		double		length;
		List	   *these = column_quals(root, path, col, &equal, &length);

		quals = list_concat(quals, these);
		if (gap && these != NIL)
		{
			Selectivity s = clauselist_selectivity(root, add_predicate_to_index_quals(index, quals),
												   index->rel->relid, JOIN_INNER, NULL);
			double		n = bounds + 2 * groups * length;
			double		met = rint(s * index->rel->tuples) + n;

			if (n * descent + met * per_tuple < best)
			{
				best = n * descent + met * per_tuple;
				*ntuples = met;
				*searches = n;
			}
		}
		if (equal)
			groups *= gap ? length : 1;
		else
		{
			double		values = distinct_values(root, index, col);

			if (values <= 0)
				return;
			if (these != NIL)
				values *= clauselist_selectivity(root, these, index->rel->relid, JOIN_INNER, NULL);
			groups *= Max(ceil(values), 1);
			gap = true;
		}
	}
}

/* The pages of memory that so many entries of the index fill; one at least. */
static double
pages_visited(const IndexOptInfo *index, double visited)
{
	if (index->pages <= 1 || index->tuples <= 1)
		return 1.0;
	return Max(Min(ceil(visited * index->pages / index->tuples), (double) index->pages), 1.0);
}

/*
 * Tuples visited, from what is left of the total, from which their price goes:
 * btcostestimate() does not tell, and charges a whole number of them at one price.
 * Where tuples cost nothing, the total does not tell either.
 */
static double
take_off_tuples(const IndexOptInfo *index, double per_tuple, Cost startup, Cost *total,
				Selectivity selectivity)
{
	double		ntuples = per_tuple > 0 ? (*total - startup) / per_tuple :
		selectivity * index->rel->tuples;

	*total -= ntuples * per_tuple;
	return ntuples;
}

/*
 * The cost by our own prices.  Hands btcostestimate() an index of one page and
 * no height.  So its charge for I/O and for page searches is known; takes that
 * off, and adds our own.  *pages is the structure's size in pages: core
 * derives the number of parallel workers from it.
 *
 * Arguments: those of amcostestimate.
 */
static void
memory_cost(PlannerInfo *root, IndexPath *path,
			double loop_count, Cost *startup, Cost *total,
			Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	IndexOptInfo onepage = *index;
	IndexPath	mypath = *path;
	bool		forward = false;
	double		page_cost;
	double		descent;
	double		searches;
	double		all_searches;
	double		compares;
	double		per_tuple;
	double		ntuples;
	double		visited;
	double		npages;

	onepage.pages = 1;
	onepage.tree_height = -1;
	/* the planner has none where a column's class is no btree's; only the correlation's square counts */
	if (onepage.reverse_sort == NULL)
		onepage.reverse_sort = &forward;
	mypath.indexinfo = &onepage;

#if PG_VERSION_NUM >= 180000
	mypath.indexclauses = bounding_clauses(path);
#endif

	btcostestimate(root, &mypath, loop_count, startup, total, selectivity,
				   correlation, pages);

	/* one page, read once however often the scan is repeated */
	get_tablespace_page_costs(index->reltablespace, &page_cost, NULL);
	*total -= page_cost / Max(loop_count, 1.0);

	searches = estimate_searches(root, path, &all_searches, &compares);
#if PG_VERSION_NUM < 170000
	/* a binary search each; of art, the nodes of the descent below */
	if (all_searches > 1 && index->tuples > 1)
		*total -= (all_searches - 1) * ceil(log(index->tuples) / log(2.0)) * cpu_operator_cost;
#else
	all_searches = searches;
#endif

	per_tuple = cpu_index_tuple_cost + cpu_operator_cost *
		count_quals(mypath.indexclauses);
	ntuples = take_off_tuples(index, per_tuple, *startup, total, *selectivity);
	/* up to 16 btcostestimate() takes every array for a search of its own */
	visited = ntuples = Max(rint(ntuples * searches / all_searches), 0.0);
	descent = ART_NODE_COST * cpu_operator_cost *
		(index->tree_height > 0 ? index->tree_height : ART_DEFAULT_HEIGHT);
	expect_skips(root, path, descent, &visited, &searches);
	*total += visited * (per_tuple + compares * cpu_operator_cost);

#if PG_VERSION_NUM >= 180000
	add_filters(root, path, mypath.indexclauses, visited,
				startup, total, selectivity);
#endif

	/*
	 * Correlation means to core that the rows fetched lie together in the
	 * table.  Those that the bounding quals leave do; those that the others
	 * leave of them are scattered among them.  For nbtree it does not matter,
	 * since it pays for reading every page that it filters.  (Skips do not change where
	 * the rows are.)
	 */
	if (ntuples > 0)
		*correlation *= Min(1.0, *selectivity * index->rel->tuples / ntuples);

	*startup += descent;
	*total += descent * searches;

	/* what one search reads is what core derives workers from, as nbtree's */
	npages = pages_visited(index, visited);
	*pages = ceil(npages / searches);
	*total += ART_FIRST_COST * cpu_operator_cost +
		(npages - 1) * Min(ART_PAGE_COST * cpu_operator_cost, page_cost);
}

/*
 * amcostestimate.  It sees every path of an art index when that is made, so it
 * also notes those that compare rows (row_compare.c).
 *
 * Arguments: those of amcostestimate.
 */
void
artcostestimate(struct PlannerInfo *root, struct IndexPath *path,
				double loop_count, Cost *startup, Cost *total,
				Selectivity *selectivity, double *correlation, double *pages)
{
	if (art_costs_as_btree())	/* of an index that has nbtree's pages and height (planner_hooks.c) */
		btcostestimate(root, path, loop_count, startup, total, selectivity,
					   correlation, pages);
	else
		memory_cost(root, path, loop_count, startup, total, selectivity,
					correlation, pages);

	/*
	 * A query that needs no column at all, as count(*), is offered one nevertheless.  It
	 * would read the table, and sort it (prepare_on_standby).
	 */
	if (path->path.pathtype == T_IndexOnlyScan && RecoveryInProgress())
		*total += ART_NOT_OFFERED;

#ifdef ART_MARKS_ROWS
	art_rowcmp_met(path);
#endif
}

/*
 * The planner's facts of the structure: its size in pages, its entries and its
 * height.  False when it is not READY, or not any more.
 *
 * Epoch: enters and leaves.
 */
bool
art_planner_stats(Relation index, BlockNumber *pages, double *entries,
				  int *height)
{
	ArtEntry   *e;
	ax_ctx	   *cx;
	ax_tree_info info;
	ax_status	st;
	uint64		gen;

	if (!art_preloaded())
		return false;
	e = art_relcache_entry(index);
	if (e != NULL)
		art_apply_options(index, e);
	if (e == NULL || (art_entry_state(e, &gen) != ART_READY &&
					  !art_followed_plannable(index, e, &gen)))
		return false;

	cx = art_ctx();
	ART_CORE_BEGIN();
	st = ax_info_about(cx, art_entry_tree(e), gen, &info);
	ART_CORE_END();
	if (st != AX_OK)
		return false;

	*pages = (BlockNumber) Min(Max(info.bytes / BLCKSZ, 1), MaxBlockNumber);
	*entries = (double) info.entries;
	*height = info.height > 0 ? info.height : ART_DEFAULT_HEIGHT;
	return true;
}

#if PG_VERSION_NUM >= 180000

int
art_tree_height(Relation index)
{
	BlockNumber pages;
	double		entries;
	int			height;

	return art_planner_stats(index, &pages, &entries, &height) ? height : -1;
}

#endif
