/*
 * loose_executor.c
 *	  Loose scans: of each group of an index scan the first row, or the last, or both.
 *
 * The index scan below is core's, with its conditions, its reads of the table or of the
 * visibility map, its predicate locks and its counts.  Between two of its rows we move
 * its position (scan/group_skip.c).  It may give more rows of a group, and what stands
 * above takes these for the duplicates that they are.
 *
 * The last row is looked for from the group's end, backward.  At the latest it is the
 * first one, which has passed the same conditions under the same snapshot.
 *
 * For min and max of the next column a NULL there is not what is wanted.  So a group's
 * NULLs are a group of their own at its beginning, of which one row is given.  At its end
 * they are passed over.
 *
 * src/plan/README.md: Loose scans
 */
#include "postgres.h"

#include "access/relscan.h"
#include "art_compat.h"
#include "commands/explain.h"
#include ART_EXPLAIN_HEADER
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "plan/loose_scan.h"
#include "scan/scan.h"

typedef struct ArtLooseState
{
	CustomScanState css;
	Oid			indexid;
	int			columns;
	ArtLooseRows rows;
	bool		nulls;			/* a NULL in the next column makes a group of its own */
	bool		backward;		/* the way of the index scan */
	int			group;			/* columns of the group at which the scan stands; 0: at none */
	bool		last_due;		/* it was the first, and the last is wanted next */
} ArtLooseState;

/* The open index scan below. */
static IndexScanDesc
scan_below(const ArtLooseState *l)
{
	PlanState  *below = outerPlanState(l);

	return IsA(below, IndexScanState) ? ((IndexScanState *) below)->iss_ScanDesc :
		castNode(IndexOnlyScanState, below)->ioss_ScanDesc;
}

/* BeginCustomScan: rows are those of the scan below, in its slot. */
static void
begin_loose(CustomScanState *node, EState *estate, int eflags)
{
	ArtLooseState *l = (ArtLooseState *) node;
	PlanState  *ps = &node->ss.ps;
	const Plan *below = outerPlan(ps->plan);

	outerPlanState(ps) = ExecInitNode(outerPlan(ps->plan), estate, eflags);
	ps->ps_ProjInfo = NULL;
	ps->resultops = ExecGetResultSlotOps(outerPlanState(ps), &ps->resultopsfixed);
	ps->resultopsset = true;
	l->backward = ScanDirectionIsBackward(IsA(below, IndexScan) ?
										  ((const IndexScan *) below)->indexorderdir :
										  ((const IndexOnlyScan *) below)->indexorderdir);
}

/* Is there a NULL behind the group's columns, which the scan is not to take for a value? */
static bool
at_null(ArtLooseState *l)
{
	return l->nulls && art_scan_is_null(scan_below(l), l->columns);
}

/* The next row backward. */
static TupleTableSlot *
row_before(ArtLooseState *l)
{
	EState	   *estate = l->css.ss.ps.state;
	TupleTableSlot *slot;

	estate->es_direction = BackwardScanDirection;
	slot = ExecProcNode(outerPlanState(l));
	estate->es_direction = ForwardScanDirection;
	if (TupIsNull(slot))
		elog(ERROR, "index \"%s\" has lost the entry of a visible row", get_rel_name(l->indexid));
	return slot;
}

/* The group's last row that passes the conditions.  Its first one has no NULL to pass over. */
static TupleTableSlot *
last_row(ArtLooseState *l)
{
	TupleTableSlot *slot;

	if (!art_scan_group_end(scan_below(l), l->columns, l->backward))
		elog(ERROR, "a group's last row cannot be found by index \"%s\"", get_rel_name(l->indexid));
	slot = row_before(l);
	if (at_null(l))
	{
		art_scan_skip_group(scan_below(l), l->columns + 1, !l->backward);
		slot = row_before(l);
	}
	return slot;
}

/*
 * ExecCustomScan: from the row given last on to the next group, or to the last row of its own.
 */
static TupleTableSlot *
exec_loose(CustomScanState *node)
{
	ArtLooseState *l = (ArtLooseState *) node;
	TupleTableSlot *slot;

	CHECK_FOR_INTERRUPTS();
	if (l->last_due)
	{
		l->last_due = false;
		return last_row(l);
	}
	/* for EvalPlanQual the scan below gives the row that it is to test, and is not open */
	if (l->group > 0 && scan_below(l) != NULL)
		art_scan_skip_group(scan_below(l), l->group, l->backward);
	slot = ExecProcNode(outerPlanState(l));
	l->group = 0;
	if (TupIsNull(slot))
		return NULL;
	l->group = l->columns;
	if (at_null(l))
		l->group++;
	else if (l->rows == ART_LOOSE_LAST)
		return last_row(l);
	else
		l->last_due = l->rows == ART_LOOSE_BOTH;
	return slot;
}

/* ReScanCustomScan */
static void
rescan_loose(CustomScanState *node)
{
	ArtLooseState *l = (ArtLooseState *) node;

	l->group = 0;
	l->last_due = false;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* EndCustomScan */
static void
end_loose(CustomScanState *node)
{
	ExecEndNode(outerPlanState(node));
}

/* ExplainCustomScan: what makes a group, and which of its rows are given. */
static void
explain_loose(CustomScanState *node, List *ancestors, ExplainState *es)
{
	static const char *const rows[] = {"First", "Last", "First, Last"};
	const ArtLooseState *l = (const ArtLooseState *) node;
	List	   *columns = NIL;

	for (int i = 1; i <= l->columns; i++)
	{
		Datum		column = DirectFunctionCall3(pg_get_indexdef_ext, ObjectIdGetDatum(l->indexid),
												 Int32GetDatum(i), BoolGetDatum(true));

		columns = lappend(columns, TextDatumGetCString(column));
	}
	ExplainPropertyList("Group Key", columns, es);
	ExplainPropertyText("Rows of a Group", rows[l->rows], es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = ART_LOOSE_NAME,
	.BeginCustomScan = begin_loose,
	.ExecCustomScan = exec_loose,
	.EndCustomScan = end_loose,
	.ReScanCustomScan = rescan_loose,
	.ExplainCustomScan = explain_loose,
};

/* CreateCustomScanState: what the planner wrote down (loose_scan.h). */
static Node *
create_loose(CustomScan *cscan)
{
	ArtLooseState *l = palloc0(sizeof(ArtLooseState));
	List	   *numbers = linitial(cscan->custom_private);

	NodeSetTag(l, T_CustomScanState);
	l->css.methods = &exec_methods;
	l->columns = list_nth_int(numbers, ART_LOOSE_COLUMNS);
	l->rows = (ArtLooseRows) list_nth_int(numbers, ART_LOOSE_ROWS);
	l->nulls = list_nth_int(numbers, ART_LOOSE_NULLS) != 0;
	l->indexid = linitial_oid(lsecond(cscan->custom_private));
	return (Node *) l;
}

const CustomScanMethods art_loose_scan_methods = {
	.CustomName = ART_LOOSE_NAME,
	.CreateCustomScanState = create_loose,
};
