/*
 * statement_hooks.c
 *	  A statement of the executor: when entries of the rows it inserts may wait.
 *
 * They wait in am/insert_queue.c while the statement runs, and go in at its end,
 * before triggers that fire after it.
 *
 * src/am/README.md: Queued inserts
 */
#include "postgres.h"

#include "executor/execdesc.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#include "am/am.h"
#include "art_compat.h"
#include "plan/plan.h"

static ExecutorRun_hook_type prev_executor_run = NULL;
static ExecutorFinish_hook_type prev_executor_finish = NULL;

static void
next_run(ART_RUN_PARAMETERS)
{
	if (prev_executor_run)
		prev_executor_run(ART_RUN_ARGUMENTS);
	else
		standard_ExecutorRun(ART_RUN_ARGUMENTS);
}

static void
next_finish(QueryDesc *queryDesc)
{
	art_keychecks_take(queryDesc);
	if (prev_executor_finish)
		prev_executor_finish(queryDesc);
	else
		standard_ExecutorFinish(queryDesc);
	art_keychecks_rest(queryDesc);
}

/* Does the node change a table?  *conflicts: it may take back rows that it has inserted. */
static bool
changes(PlanState *ps, bool *conflicts)
{
	if (ps == NULL || !IsA(ps, ModifyTableState))
		return false;
	*conflicts |= ((ModifyTable *) ps->plan)->onConflictAction != ONCONFLICT_NONE;
	return true;
}

/*
 * May entries of the plan's rows wait?  A plan that changes tables in a way that is not
 * known here (a custom node) may take rows back.
 */
static bool
may_wait(QueryDesc *queryDesc)
{
	bool		conflicts = false;
	bool		modifies = changes(queryDesc->planstate, &conflicts);
	ListCell   *lc;

	foreach(lc, queryDesc->estate->es_auxmodifytables)
		modifies |= changes((PlanState *) lfirst(lc), &conflicts);
	return modifies && !conflicts;
}

/*
 * ExecutorRun_hook.  The workers of a parallel plan see the rows of the statement in
 * which it runs, but not what this process has queued of them.
 *
 * Arguments: those of the hook.
 */
static void
art_executor_run(ART_RUN_PARAMETERS)
{
	const bool	may = may_wait(queryDesc);
	bool		was;

	if (queryDesc->plannedstmt->parallelModeNeeded)
		art_queue_flush(NoLock);
	was = art_queue_for(may);
	if (!may && !was)
	{
		next_run(ART_RUN_ARGUMENTS);
		return;
	}
	PG_TRY();
	{
		next_run(ART_RUN_ARGUMENTS);
		if (may)
			art_queue_flush(NoLock);
	}
	PG_FINALLY();
	{
		art_queue_for(was);
	}
	PG_END_TRY();
}

/*
 * ExecutorFinish_hook.  The entries of rows that are still inserted here do not wait.
 * It may be by an ON CONFLICT, while the statement around this one lets entries wait.
 */
static void
art_executor_finish(QueryDesc *queryDesc)
{
	bool		was = art_queue_for(false);

	if (!was)
	{
		next_finish(queryDesc);
		return;
	}
	PG_TRY();
	{
		next_finish(queryDesc);
	}
	PG_FINALLY();
	{
		art_queue_for(was);
	}
	PG_END_TRY();
}

void
art_statement_install(void)
{
	art_queue_init();
	art_keychecks_install();
	prev_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = art_executor_run;
	prev_executor_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = art_executor_finish;
}
