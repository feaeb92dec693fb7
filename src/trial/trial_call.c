/*
 * trial_call.c
 *	  CALL artidx_trial(index, seconds): its steps, its transactions, and what is left of it
 *	  when it does not come to its end.
 *
 * An error or a cancel comes here, and the twin is dropped before the error goes on.  A
 * process that is terminated asks the launcher for a worker that drops it.  After a crash
 * the launcher sends a worker to each database anyway.  The next trial drops what is left, too.
 *
 * src/trial/README.md: A trial
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/dependency.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "area/shared_state.h"
#include "ddl/ddl.h"
#include "eval/eval.h"
#include "live/background.h"
#include "live/live.h"
#include "trial/trial.h"
#include "views/views.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_trial);

/* Of the seconds, what goes to inserts; the rest to look-ups and the like. */
#define TRIAL_INSERTS	0.3

/* This process has a twin somewhere, or may have one. */
static bool trying = false;

/* ---- may it be tried? ---- */

/*
 * ERROR: it is no index of btree that has entries.
 */
static void
refuse_relation(Oid relid)
{
	char	   *name = get_rel_name(relid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", relid)));
	if (get_rel_relkind(relid) == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index, which has no entries", name),
				 errhint("Try the index of one of its partitions.")));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not an index of access method \"btree\"", name)));
}

/*
 * ERROR where the memory would not take another index of that size.  Others are not to leave
 * it for a trial.
 *
 * Epoch: enters and leaves.
 */
static void
check_memory(ArtTrial *t)
{
	int64		bytes = DatumGetInt64(DirectFunctionCall1(artidx_estimate_index,
														  ObjectIdGetDatum(t->indexoid)));
	int64		want = bytes + bytes / 4 + 4 * 1024 * 1024;
	ax_memory_info mem;
	ax_ctx	   *cx = art_ctx();

	art_poll();
	ART_CORE_BEGIN();
	ax_memory(cx, &mem);
	ART_CORE_END();
	if ((int64) mem.free_bytes < want)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("not enough memory to try index \"%s\"", t->name),
				 errdetail("The twin takes about " INT64_FORMAT " bytes; " INT64_FORMAT " of \"artidx.memory\" are free, of which the trial wants " INT64_FORMAT ".",
						   bytes, (int64) mem.free_bytes, want),
				 errhint("Increase \"artidx.memory\", or unload an art index, before you try this one.")));
}

/*
 * ERROR for all that cannot be tried, before anything is done.
 *
 * Locks: AccessShareLock on table and index, to the end of the transaction.
 */
static void
open_btree_index(ArtTrial *t)
{
	char		kind = get_rel_relkind(t->indexoid);
	Relation	heap;
	Relation	index;

	if (kind != RELKIND_INDEX)
		refuse_relation(t->indexoid);
	t->heapoid = IndexGetRelation(t->indexoid, false);
	if (!ART_OWNS_TABLE(t->heapoid))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(t->indexoid));
	heap = table_open(t->heapoid, AccessShareLock);
	index = index_open(t->indexoid, AccessShareLock);
	if (index->rd_rel->relam != BTREE_AM_OID)
		refuse_relation(t->indexoid);
	t->name = MemoryContextStrdup(t->cxt, RelationGetRelationName(index));
	t->index = MemoryContextStrdup(t->cxt, art_sql_name(t->indexoid));
	t->table = MemoryContextStrdup(t->cxt, art_sql_name(t->heapoid));
	t->unique = index->rd_index->indisunique;
	t->part = index->rd_rel->relispartition;
	t->constraint = OidIsValid(get_index_constraint(t->indexoid));
	art_require_preload(index);
	if (IsCatalogRelation(heap))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied: \"%s\" is a system catalog", RelationGetRelationName(heap))));
	if (index->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot try index \"%s\" of a temporary table", t->name),
				 errhint("\"CALL artidx_from_btree(%s)\" in a transaction block can be rolled back.",
						 quote_literal_cstr(t->name))));
	if (!index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid", t->name),
				 errhint("REINDEX INDEX CONCURRENTLY makes it valid.")));
	/* the trial reads as the owner, and only rows that are like any other */
	if (heap->rd_rel->relrowsecurity && heap->rd_rel->relforcerowsecurity)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot try index \"%s\" of table \"%s\", whose row-level security policies apply to its owner",
						t->name, RelationGetRelationName(heap))));
	art_check_replaceable(heap, index);
	art_must_evaluate(index, "try");
	check_memory(t);
	index_close(index, NoLock);
	table_close(heap, NoLock);
}

/* ---- the steps ---- */

/*
 * How large both are.
 */
static void
measure_sizes(ArtTrial *t)
{
	Relation	heap;
	Relation	index;
	int64		art;

	art_trial_try(t, &heap, &index);
	art = DatumGetInt64(DirectFunctionCall1(artidx_index_size, ObjectIdGetDatum(t->twinoid)));
	art_trial_row(t, "size", "MB", RelationGetNumberOfBlocks(index) * (BLCKSZ / 1048576.0),
				  art / 1048576.0, 0, "a file of pages, and shared memory");
	art_trial_undo(t, heap, index);
}

/*
 * The trial.  Called and done outside of a transaction.
 */
static void
run(ArtTrial *t)
{
	double		began;

	art_twins_drop();			/* what others have left */
	art_trial_sample(t);
	began = art_trial_measure(false);
	art_twin_build(t);
	art_trial_row(t, "build", "ms", NAN, (art_trial_measure(false) - began) / 1e6, 0,
				  "processor time, beside writers; the trial rests in between");
	measure_sizes(t);
	art_trial_read(t, t->seconds * 1000 * (1 - TRIAL_INSERTS));
	art_twins_drop();
	art_trial_insert(t, t->seconds * 1000 * TRIAL_INSERTS);
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	art_trial_verdict(t);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(t->cxt);
}

/*
 * The process ends.  If that is in the middle of a trial, a worker drops the twin, when
 * this process has given its locks back.
 */
static void
trial_exit(int code, Datum arg)
{
	art_trial_rests(false);
	if (trying)
		art_ask(MyDatabaseId, ART_JOB_SCOUT, 500);
}

/*
 * The trial has ended in an error, which is the current one: drop the twin, and throw it again.
 * Where the twin cannot be dropped, the error says how.
 */
static void
clean_up_and_rethrow(ArtTrial *t)
{
	ErrorData  *edata;

	MemoryContextSwitchTo(t->cxt);
	edata = CopyErrorData();
	FlushErrorState();
	AbortOutOfAnyTransaction();
	MemoryContextSwitchTo(t->cxt);
	(void) art_trial_measure(false);
	PG_TRY();
	{
		art_twins_drop();
		trying = false;
	}
	PG_CATCH();
	{
		/* a second cancel, perhaps */
		MemoryContextSwitchTo(t->cxt);
		FlushErrorState();
		AbortOutOfAnyTransaction();
		MemoryContextSwitchTo(t->cxt);
		edata->hint = psprintf("The twin of index \"%s\" is left, and not valid. The next trial in this database drops it, or DROP INDEX CONCURRENTLY.",
							   t->name);
	}
	PG_END_TRY();
	art_trial_rests(false);
	art_trial_unlock();
	StartTransactionCommand();
	ReThrowError(edata);
}

/*
 * artidx_trial(index regclass, seconds float8)
 *
 * Locks: takes the trial's lock and gives it back.
 */
Datum
artidx_trial(PG_FUNCTION_ARGS)
{
	static bool registered = false;
	const int	workers = max_parallel_maintenance_workers;
	ArtTrial	t = {0};
	MemoryContext cxt;

	PreventCommandIfReadOnly("artidx_trial()");
	PreventCommandIfParallelMode("artidx_trial()");
	PreventCommandDuringRecovery("artidx_trial()");
	for (int i = 0; i < 2; i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("argument \"%s\" must not be null", i == 0 ? "index" : "seconds")));
	}
	t.indexoid = PG_GETARG_OID(0);
	t.seconds = PG_GETARG_FLOAT8(1);
	if (!(t.seconds >= 1 && t.seconds <= 3600))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("seconds must be between 1 and 3600")));
	if (!art_call_commits(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("artidx_trial() cannot run inside a transaction block or a function"),
				 errhint("CALL it by itself.")));
	t.started = GetCurrentTimestamp();
	t.amoid = get_am_oid(ART_AM_NAME, false);
	cxt = t.cxt = AllocSetContextCreate(PortalContext, "artidx trial", ALLOCSET_DEFAULT_SIZES);
	t.schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	art_trial_table(&t);
	open_btree_index(&t);
	if (!registered)
		before_shmem_exit(trial_exit, (Datum) 0);
	registered = true;
	if (!art_trial_lock())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("another trial is running in this database"),
				 errhint("Two at a time would measure one another.")));

	PG_TRY();
	{
		if (ActiveSnapshotSet())
			PopActiveSnapshot();
		CommitTransactionCommand();
		MemoryContextSwitchTo(cxt);
		trying = true;
		max_parallel_maintenance_workers = 0;	/* others would not rest */
		art_trial_rests(true);
		run(&t);
		art_trial_rests(false);
		max_parallel_maintenance_workers = workers;
		trying = false;
		art_trial_unlock();
		StartTransactionCommand();
	}
	PG_CATCH();
	{
		max_parallel_maintenance_workers = workers;
		clean_up_and_rethrow(&t);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(MemoryContextGetParent(cxt));
	MemoryContextDelete(cxt);
	PG_RETURN_VOID();
}
