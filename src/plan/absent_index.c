/*
 * absent_index.c
 *	  A statement that would be planned without an index because that is being
 *	  built: should it wait?
 *
 * It is planned as ever, without the index.  If that hid one that will be there
 * soon, it is planned once more, as if the index were there.  The difference of
 * the two costs says what the index is worth; build_wait.c says whether to
 * wait.  If the index came, the statement is planned a third time, with it.  The
 * second plan is never run.
 *
 * The planner scribbles on what it is given, so all this needs a copy of the
 * query, made before.  It is made only while something is to be built
 * (art_may_await).  Beside a build of some seconds planning costs nothing.
 *
 * src/live/README.md: Residency
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/plancat.h"
#include "storage/lmgr.h"

#include "live/live.h"
#include "plan/plan.h"

#define ART_DISABLED		1.0e10	/* core's price of what enable_... refuses */
#define ART_PAGE_ENTRIES	300.0	/* of an index that is not there, a guess */

typedef struct Missed
{
	Oid			indexoid;
	double		rows;			/* of its table */
} Missed;

/* One statement that is being planned. */
typedef struct Planning
{
	List	   *missed;
	bool		as_if;			/* plan as if they were there */
	MemoryContext cxt;
} Planning;

static Planning *planning = NULL;	/* NULL: nobody wants to know what is missed */

bool
art_plan_missed(IndexOptInfo *info, Relation index)
{
	Missed	   *m;
	MemoryContext old;
	BlockNumber pages;
	int			height = 2;
	double		rows = info->rel->tuples;

	if (planning == NULL || !art_awaitable(index))
		return false;
	if (!planning->as_if)
	{
		old = MemoryContextSwitchTo(planning->cxt);
		m = palloc(sizeof(Missed));
		m->indexoid = info->indexoid;
		m->rows = rows;
		planning->missed = lappend(planning->missed, m);
		MemoryContextSwitchTo(old);
		return false;
	}

	pages = (BlockNumber) (rows / ART_PAGE_ENTRIES) + 1;
	if (art_costs_as_btree())
		art_btree_size(index, info, rows, &pages, &height);
	info->pages = pages;
	info->tree_height = height;
	if (info->indpred != NIL)
		info->tuples = rows;
	info->hypothetical = true;
	return true;
}

/* ---- which indexes does a plan use? ---- */

static void walk_list(List *plans, void (*visit) (Plan *plan, void *arg), void *arg);

/* Call for the node, then for those below it. */
static void
walk(Plan *plan, void (*visit) (Plan *plan, void *arg), void *arg)
{
	if (plan == NULL)
		return;
	check_stack_depth();
	visit(plan, arg);
	switch (nodeTag(plan))
	{
		case T_Append:
			walk_list(((Append *) plan)->appendplans, visit, arg);
			break;
		case T_MergeAppend:
			walk_list(((MergeAppend *) plan)->mergeplans, visit, arg);
			break;
		case T_BitmapAnd:
			walk_list(((BitmapAnd *) plan)->bitmapplans, visit, arg);
			break;
		case T_BitmapOr:
			walk_list(((BitmapOr *) plan)->bitmapplans, visit, arg);
			break;
		case T_SubqueryScan:
			walk(((SubqueryScan *) plan)->subplan, visit, arg);
			break;
		case T_CustomScan:
			walk_list(((CustomScan *) plan)->custom_plans, visit, arg);
			break;
		default:
			break;
	}
	walk(plan->lefttree, visit, arg);
	walk(plan->righttree, visit, arg);
}

static void
walk_list(List *plans, void (*visit) (Plan *plan, void *arg), void *arg)
{
	ListCell   *lc;

	foreach(lc, plans)
		walk((Plan *) lfirst(lc), visit, arg);
}

void
art_plan_walk(const PlannedStmt *stmt, void (*visit) (Plan *plan, void *arg), void *arg)
{
	walk(stmt->planTree, visit, arg);
	walk_list(stmt->subplans, visit, arg);
}

/* Append the index of a node to a list of OIDs. */
static void
append_index(Plan *plan, void *arg)
{
	List	  **indexes = arg;

	switch (nodeTag(plan))
	{
		case T_IndexScan:
			*indexes = lappend_oid(*indexes, ((IndexScan *) plan)->indexid);
			break;
		case T_IndexOnlyScan:
			*indexes = lappend_oid(*indexes, ((IndexOnlyScan *) plan)->indexid);
			break;
		case T_BitmapIndexScan:
			*indexes = lappend_oid(*indexes, ((BitmapIndexScan *) plan)->indexid);
			break;
		default:
			break;
	}
}

/* ---- planning ---- */

/*
 * The plan costs so much more than the other.  Where enable_... refuses something
 * that the one has to do and the other has not, that is no time.
 */
static Cost
costs_more(const PlannedStmt *plan, const PlannedStmt *other)
{
	Cost		more = plan->planTree->total_cost - other->planTree->total_cost;

	return more - rint(more / ART_DISABLED) * ART_DISABLED;
}

/*
 * Wait for those of the missed indexes that the plan uses; true when any came.
 * The wait for one passes for the others, too, which are built beside it.
 *
 * Locks: the planner holds a lock on each index and its table.
 */
static bool
await_missed(const Planning *p, const PlannedStmt *with, Cost saves)
{
	List	   *used = NIL;
	bool		came = false;
	ListCell   *lc;

	art_plan_walk(with, append_index, &used);
	foreach(lc, p->missed)
	{
		const Missed *m = (const Missed *) lfirst(lc);
		Relation	index;

		if (!list_member_oid(used, m->indexoid))
			continue;
		index = index_open(m->indexoid, NoLock);
		came |= art_await_build(index, m->rows, saves);
		index_close(index, NoLock);
	}
	return came;
}

PlannedStmt *
art_plan_patiently(planner_hook_type plan_it, Query *parse, ART_PLAN_PARAMETERS)
{
	Planning   *outer = planning;
	Planning	mine = {NIL, false, CurrentMemoryContext};
	PlannedStmt *volatile plan = NULL;
	bool		may = art_may_await();
	Query	   *copy;

	if (!may && outer == NULL)
		return plan_it(parse, ART_PLAN_ARGUMENTS);
	copy = may ? copyObject(parse) : NULL;

	/* a query in a function that the planner calls is a statement of its own */
	planning = may ? &mine : NULL;
	PG_TRY();
	{
		plan = plan_it(parse, ART_PLAN_ARGUMENTS);
		if (mine.missed != NIL)
		{
			PlannedStmt *with;
			Cost		saves;

			mine.as_if = true;
			with = plan_it(copyObject(copy), ART_PLAN_ARGUMENTS);
			planning = NULL;
			saves = costs_more(plan, with);
			if (saves > 0 && await_missed(&mine, with, saves))
				plan = plan_it(copy, ART_PLAN_ARGUMENTS);
		}
	}
	PG_FINALLY();
	{
		planning = outer;
	}
	PG_END_TRY();
	return plan;
}
