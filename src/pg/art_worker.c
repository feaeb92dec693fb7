/*
 * art_worker.c
 *	  Building absent indexes in the background, when a query would have had
 *	  use for one.
 *
 * The planner hides an index that is not READY and asks for a build.  One
 * dynamic worker a database walks the catalog, builds what is absent, and
 * exits.  It takes the heap's lock conditionally: whoever holds it in the way
 * will ask again.
 */
#include "artidx.h"

#include <signal.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "pg/art_pg.h"

#define ART_WORKER_START_MS	10000	/* an asked-for worker that never came */
#define ART_WORKER_PAUSE_MS	1000	/* between two workers of one database */
#define ART_FAILED_PAUSE_MS	60000	/* before an index that failed is tried again */

#define ART_WORKER_ENDED	(-1)

extern PGDLLEXPORT void art_worker_main(Datum arg);

/* A slot whose worker is gone, or has had its time to come. */
static bool
slot_idle(const ArtWorkerSlot *s, TimestampTz now)
{
	if (s->dboid == InvalidOid)
		return true;
	if (s->pid == ART_WORKER_ENDED)
		return TimestampDifferenceExceeds(s->ended, now, ART_WORKER_PAUSE_MS);
	if (s->pid == 0)
		return TimestampDifferenceExceeds(s->asked, now, ART_WORKER_START_MS);
	return false;
}

/*
 * Reserve the database's slot.  False when a worker runs or just ran there, or
 * all slots are taken.
 */
static bool
slot_reserve(Oid dboid)
{
	TimestampTz now = GetCurrentTimestamp();
	ArtWorkerSlot *take = NULL;
	bool		ok = false;

	LWLockAcquire(art_chunk_lock, LW_EXCLUSIVE);
	for (int i = 0; i < ART_NWORKERS; i++)
	{
		ArtWorkerSlot *s = &art_shared->workers[i];

		if (s->dboid == dboid)
		{
			take = s;
			break;
		}
		if (take == NULL && slot_idle(s, now))
			take = s;
	}
	if (take && slot_idle(take, now))
	{
		take->dboid = dboid;
		take->pid = 0;
		take->asked = now;
		ok = true;
	}
	LWLockRelease(art_chunk_lock);
	return ok;
}

static void
slot_set(Oid dboid, int pid)
{
	LWLockAcquire(art_chunk_lock, LW_EXCLUSIVE);
	for (int i = 0; i < ART_NWORKERS; i++)
	{
		ArtWorkerSlot *s = &art_shared->workers[i];

		if (s->dboid == dboid)
		{
			s->pid = pid;
			if (pid == ART_WORKER_ENDED)
				s->ended = GetCurrentTimestamp();
			break;
		}
	}
	LWLockRelease(art_chunk_lock);
}

/*
 * Is it worth a try now?
 */
static bool
worth_building(Relation index)
{
	ArtEntry   *e = art_entry_if_exists(index);

	if (e == NULL)
		return true;
	if (art_entry_state(e, NULL) != ART_ABSENT)
		return false;
	if (e->failed_at != 0 &&
		(e->reason == ART_WHY_MEMORY || e->reason == ART_WHY_ERROR) &&
		!TimestampDifferenceExceeds(e->failed_at, GetCurrentTimestamp(),
									ART_FAILED_PAUSE_MS))
		return false;
	return true;
}

/*
 * See artidx.h.  The caller has the index open or locked.
 */
void
art_request_build(Oid indexoid)
{
	BackgroundWorker worker;
	Relation	index;
	bool		worth;

	if (!art_preloaded() || !art_autobuild || !IsUnderPostmaster ||
		IsBinaryUpgrade || RecoveryInProgress())
		return;

	index = RelationIdGetRelation(indexoid);
	if (!RelationIsValid(index))
		return;
	/* one of this transaction's making no worker can see */
	worth = index->rd_createSubid == InvalidSubTransactionId &&
		ART_REL_NEW_SUBID(index) == InvalidSubTransactionId &&
		ART_REL_BACKEND(index) == -1 &&
		index->rd_index->indisready && index->rd_index->indislive &&
		worth_building(index);
	RelationClose(index);
	if (!worth || !slot_reserve(MyDatabaseId))
		return;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "artidx", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "art_worker_main", BGW_MAXLEN);
	snprintf(worker.bgw_name, BGW_MAXLEN, "artidx builder");
	snprintf(worker.bgw_type, BGW_MAXLEN, "artidx builder");
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	worker.bgw_notify_pid = 0;

	if (!RegisterDynamicBackgroundWorker(&worker, NULL))
		slot_set(MyDatabaseId, ART_WORKER_ENDED);	/* all are taken: later */
}

/*
 * A database is to be dropped: its builder must not stand in the way.
 */
void
art_worker_end_for(Oid dboid)
{
	LWLockAcquire(art_chunk_lock, LW_SHARED);
	for (int i = 0; i < ART_NWORKERS; i++)
	{
		ArtWorkerSlot *s = &art_shared->workers[i];

		if (s->dboid == dboid && s->pid > 0 && s->pid != MyProcPid)
			kill(s->pid, SIGTERM);
	}
	LWLockRelease(art_chunk_lock);
}

/* ---- in the worker ---- */

typedef struct Candidate
{
	Oid			indexoid;
	bool		unique;
	float4		rows;
} Candidate;

static int
candidate_cmp(const void *a, const void *b)
{
	const Candidate *x = a;
	const Candidate *y = b;

	if (x->unique != y->unique)
		return x->unique ? -1 : 1;
	if (x->rows != y->rows)
		return x->rows < y->rows ? -1 : 1;
	return 0;
}

/*
 * All permanent and unlogged art indexes of the database, unique ones first,
 * then small ones.  In a transaction; the result is allocated in cxt.
 */
static int
find_candidates(MemoryContext cxt, Candidate **out)
{
	Oid			amoid = get_am_oid(ART_AM_NAME, true);
	Relation	pgclass;
	SysScanDesc scan;
	HeapTuple	tup;
	int			n = 0;
	int			cap = 64;

	*out = MemoryContextAlloc(cxt, cap * sizeof(Candidate));
	if (!OidIsValid(amoid))
		return 0;

	pgclass = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(pgclass, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tup = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tup);
		HeapTuple	idx;

		if (form->relkind != RELKIND_INDEX || form->relam != amoid ||
			form->relpersistence == RELPERSISTENCE_TEMP)
			continue;
		idx = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(form->oid));
		if (!HeapTupleIsValid(idx))
			continue;
		if (n == cap)
		{
			cap *= 2;
			*out = repalloc(*out, cap * sizeof(Candidate));
		}
		(*out)[n].indexoid = form->oid;
		(*out)[n].unique = ((Form_pg_index) GETSTRUCT(idx))->indisunique;
		(*out)[n].rows = form->reltuples;
		n++;
		ReleaseSysCache(idx);
	}
	systable_endscan(scan);
	table_close(pgclass, AccessShareLock);
	qsort(*out, n, sizeof(Candidate), candidate_cmp);
	return n;
}

/*
 * Build one, if it is still there, absent, and its table's lock is to be had.
 */
static void
build_candidate(Oid indexoid)
{
	Oid			heapoid = IndexGetRelation(indexoid, true);
	Relation	index;
	char		activity[64 + NAMEDATALEN];

	if (!OidIsValid(heapoid) ||
		!ConditionalLockRelationOid(heapoid, AccessShareLock))
		return;
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(heapoid)) ||
		!ConditionalLockRelationOid(indexoid, AccessShareLock))
		return;
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(indexoid)))
		return;

	index = index_open(indexoid, NoLock);
	if (index->rd_index->indrelid == heapoid &&
		index->rd_index->indisready && index->rd_index->indislive &&
		art_is_art_index(index) && worth_building(index))
	{
		snprintf(activity, sizeof(activity), "building art index \"%s\"",
				 RelationGetRelationName(index));
		pgstat_report_activity(STATE_RUNNING, activity);
		(void) art_ensure_ready(index);
	}
	index_close(index, NoLock);
}

/*
 * The same in a transaction of its own; an error is logged, and the other
 * indexes can still be built.
 */
static void
build_in_transaction(Oid indexoid)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PG_TRY();
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		build_candidate(indexoid);
		PopActiveSnapshot();
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		HOLD_INTERRUPTS();
		EmitErrorReport();
		AbortCurrentTransaction();
		FlushErrorState();
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
}

static void
worker_exit(int code, Datum arg)
{
	slot_set(DatumGetObjectId(arg), ART_WORKER_ENDED);
}

/*
 * Main function of the worker.
 */
void
art_worker_main(Datum arg)
{
	Oid			dboid = DatumGetObjectId(arg);
	MemoryContext cxt;
	Candidate  *candidates;
	int			n;

	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	if (!art_preloaded())
		proc_exit(0);
	slot_set(dboid, MyProcPid);
	before_shmem_exit(worker_exit, arg);

	BackgroundWorkerInitializeConnectionByOid(dboid, InvalidOid, 0);
	(void) art_ctx();

	cxt = AllocSetContextCreate(TopMemoryContext, "artidx builder",
								ALLOCSET_DEFAULT_SIZES);
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, "looking for absent art indexes");
	n = find_candidates(cxt, &candidates);
	PopActiveSnapshot();
	CommitTransactionCommand();

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!art_autobuild)
			break;

		build_in_transaction(candidates[i].indexoid);
		MemoryContextSwitchTo(cxt);
		pgstat_report_stat(true);
		pgstat_report_activity(STATE_IDLE, NULL);

		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}
	proc_exit(0);
}
