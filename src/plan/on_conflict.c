/*
 * on_conflict.c
 *	  Before 18: INSERT ... ON CONFLICT on tables with a unique art index, and comparisons of rows.
 *
 * For ON CONFLICT the executor looks up the equality operators of every unique
 * index of the table, whether it is the arbiter or not.  Up to 17 it raises an
 * error for an index that is not btree ("unexpected non-btree speculative
 * unique index"). Nothing in the access method asks for that: the check is an
 * index scan under SnapshotDirty, and the insert asks for
 * UNIQUE_CHECK_PARTIAL. But ExecInsert() opens indexes only if nobody has
 * opened them yet.  So we open them when the executor starts.
 *
 * When core routes a row to a partition, it opens the partition's indexes
 * during execution, where there is no hook.  So does TimescaleDB with a chunk.
 * That remains an error, and we only give it a better text.
 *
 * src/am/README.md: Uniqueness
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/index.h"
#include "executor/execdesc.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "art_compat.h"
#include "area/area.h"
#include "plan/plan.h"

#if PG_VERSION_NUM < 180000

static ExecutorStart_hook_type prev_executor_start = NULL;
static ExecutorRun_hook_type prev_executor_run = NULL;

/* core's text, in BuildSpeculativeIndexInfo() */
#define CORE_REFUSAL "unexpected non-btree speculative unique index"

/*
 * BuildSpeculativeIndexInfo() for an art index: our strategy numbers are
 * nbtree's, and the operators are those of the index's own family.
 */
static void
build_speculative_info(Relation index, IndexInfo *ii)
{
	int			n = IndexRelationGetNumberOfKeyAttributes(index);
	int			i;

	ii->ii_UniqueOps = (Oid *) palloc(sizeof(Oid) * n);
	ii->ii_UniqueProcs = (Oid *) palloc(sizeof(Oid) * n);
	ii->ii_UniqueStrats = (uint16 *) palloc(sizeof(uint16) * n);

	for (i = 0; i < n; i++)
	{
		ii->ii_UniqueStrats[i] = BTEqualStrategyNumber;
		ii->ii_UniqueOps[i] =
			get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i],
								index->rd_opcintype[i], BTEqualStrategyNumber);
		if (!OidIsValid(ii->ii_UniqueOps[i]))
			elog(ERROR, "missing operator %d(%u,%u) in opfamily %u of index \"%s\"",
				 BTEqualStrategyNumber, index->rd_opcintype[i],
				 index->rd_opcintype[i], index->rd_opfamily[i],
				 RelationGetRelationName(index));
		ii->ii_UniqueProcs[i] = get_opcode(ii->ii_UniqueOps[i]);
	}
}

/*
 * ExecOpenIndices(rri, true) for a table with a unique art index; does
 * nothing for any other, so that core goes its own way there.
 *
 * The result relation is open and locked.  ExecCloseResultRelations() closes
 * the indexes, as it does those that core opened.
 *
 * Locks: takes RowExclusiveLock on every index of the table.  Keeps them if
 * one is a unique index of art, else gives them back.
 */
static void
open_indexes(ResultRelInfo *rri)
{
	List	   *oids = RelationGetIndexList(rri->ri_RelationDesc);
	int			n = list_length(oids);
	RelationPtr descs;
	IndexInfo **infos;
	bool		ours = false;
	int			i;

	if (n == 0)
		return;

	descs = (RelationPtr) palloc(n * sizeof(Relation));
	for (i = 0; i < n; i++)
	{
		descs[i] = index_open(list_nth_oid(oids, i), RowExclusiveLock);
		if (descs[i]->rd_index->indisunique && art_is_art_index(descs[i]))
			ours = true;
	}
	list_free(oids);

	if (!ours)
	{
		for (i = 0; i < n; i++)
			index_close(descs[i], RowExclusiveLock);
		pfree(descs);
		return;
	}

	infos = (IndexInfo **) palloc(n * sizeof(IndexInfo *));
	for (i = 0; i < n; i++)
	{
		infos[i] = BuildIndexInfo(descs[i]);
		if (!infos[i]->ii_Unique)
			continue;
		if (art_is_art_index(descs[i]))
			build_speculative_info(descs[i], infos[i]);
		else
			BuildSpeculativeIndexInfo(descs[i], infos[i]);
	}

	rri->ri_NumIndices = n;
	rri->ri_IndexRelationDescs = descs;
	rri->ri_IndexRelationInfo = infos;
}

/* The target of an INSERT ... ON CONFLICT, or NULL for any other plan node. */
static ResultRelInfo *
on_conflict_target(PlanState *ps)
{
	ModifyTableState *mt;

	if (ps == NULL || !IsA(ps, ModifyTableState))
		return NULL;
	mt = (ModifyTableState *) ps;
	if (mt->operation != CMD_INSERT ||
		((ModifyTable *) ps->plan)->onConflictAction == ONCONFLICT_NONE)
		return NULL;
	return mt->resultRelInfo;
}

/*
 * Open the indexes of the node's ON CONFLICT target, unless core already has.
 */
static void
preopen_target(PlanState *ps)
{
	ResultRelInfo *rri = on_conflict_target(ps);

	if (rri != NULL &&
		rri->ri_RelationDesc->rd_rel->relkind == RELKIND_RELATION &&
		rri->ri_RelationDesc->rd_rel->relhasindex &&
		rri->ri_IndexRelationDescs == NULL)
		open_indexes(rri);
}

/*
 * Name of a table from which an ON CONFLICT node may route rows to others, or NULL.  It is
 * partitioned, or another extension has wrapped its INSERT, as TimescaleDB does for a
 * hypertable.
 */
static const char *
routing_target(PlanState *ps, bool wrapped)
{
	ResultRelInfo *rri = on_conflict_target(ps);
	const char *name = NULL;
	ListCell   *lc;

	if (rri != NULL &&
		(wrapped || rri->ri_RelationDesc->rd_rel->relkind == RELKIND_PARTITIONED_TABLE))
		return RelationGetRelationName(rri->ri_RelationDesc);
	if (ps != NULL && IsA(ps, CustomScanState))
	{
		foreach(lc, ((CustomScanState *) ps)->custom_ps)
		{
			if (name == NULL)
				name = routing_target((PlanState *) lfirst(lc), true);
		}
	}
	return name;
}

/*
 * ExecutorStart_hook: the main plan, and every data-modifying WITH item.  And what EXPLAIN
 * prints of comparisons of rows.
 */
static void
art_executor_start(QueryDesc *queryDesc, int eflags)
{
	EState	   *estate;
	MemoryContext old;
	ListCell   *lc;

	art_rowcmp_start(queryDesc->plannedstmt);
	if (prev_executor_start)
		prev_executor_start(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);

	estate = queryDesc->estate;
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	art_rowcmp_show(queryDesc, eflags);
	if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY))
	{
		preopen_target(queryDesc->planstate);
		foreach(lc, estate->es_auxmodifytables)
			preopen_target((PlanState *) lfirst(lc));
	}
	MemoryContextSwitchTo(old);
}

static void
next_executor_run(QueryDesc *queryDesc, ScanDirection direction, uint64 count,
				  bool execute_once)
{
	if (prev_executor_run)
		prev_executor_run(queryDesc, direction, count, execute_once);
	else
		standard_ExecutorRun(queryDesc, direction, count, execute_once);
}

/*
 * ExecutorRun_hook: say clearly what core says darkly, and only when core has
 * said it.  Refusing beforehand would refuse rows that go to partitions which
 * have no such index.
 */
static void
conflict_executor_run(QueryDesc *queryDesc, ScanDirection direction, uint64 count,
					  bool execute_once)
{
	const char *target = routing_target(queryDesc->planstate, false);
	MemoryContext cxt = CurrentMemoryContext;
	ListCell   *lc;

	foreach(lc, queryDesc->estate->es_auxmodifytables)
	{
		if (target == NULL)
			target = routing_target((PlanState *) lfirst(lc), false);
	}

	if (target == NULL)
	{
		next_executor_run(queryDesc, direction, count, execute_once);
		return;
	}

	target = pstrdup(target);
	PG_TRY();
	{
		next_executor_run(queryDesc, direction, count, execute_once);
	}
	PG_CATCH();
	{
		ErrorData  *err;

		MemoryContextSwitchTo(cxt);
		err = CopyErrorData();
		if (err->sqlerrcode != ERRCODE_INTERNAL_ERROR ||
			err->message == NULL || strcmp(err->message, CORE_REFUSAL) != 0)
			PG_RE_THROW();
		FlushErrorState();
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ON CONFLICT on table \"%s\" cannot reach a partition that has a unique index of access method \"%s\"",
						target, ART_AM_NAME),
				 errdetail("Before version 18 PostgreSQL routes such rows only to partitions whose unique indexes are all btree indexes."),
				 errhint("Insert into the partition itself, or make its unique index one of btree with \"CALL artidx_to_btree(...)\".")));
	}
	PG_END_TRY();
}

/* Put the hooks in; from _PG_init, in every process that loads the library. */
void
art_executor_install(void)
{
	prev_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = art_executor_start;
	prev_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = conflict_executor_run;
}

#else

/* From 18 on core asks the access method which strategy is equality. */
void
art_executor_install(void)
{
}

#endif
