/*
 * worker_process.c
 *	  A background worker of ours: its place in the server, how it begins, and its main loop.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgworker_internals.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "eval/eval.h"
#include "live/background.h"

/* ---- a place in the server ---- */

void
art_define_worker(BackgroundWorker *worker, const char *name, const char *function)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION |
		ART_WORKER_INTERRUPTIBLE;
	worker->bgw_start_time = BgWorkerStart_ConsistentState;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker->bgw_library_name, "artidx", BGW_MAXLEN);
	strlcpy(worker->bgw_function_name, function, BGW_MAXLEN);
	snprintf(worker->bgw_name, BGW_MAXLEN, "artidx %s", name);
	snprintf(worker->bgw_type, BGW_MAXLEN, "artidx %s", name);
}

bool
art_register_worker(BackgroundWorker *worker)
{
	ArtBgworkerIter iter;

	if (IsUnderPostmaster || !IsPostmasterEnvironment)
		return true;
	RegisterBackgroundWorker(worker);
	ART_BGWORKER_FOREACH(iter)
	{
		if (strcmp(ART_BGWORKER(iter)->rw_worker.bgw_type, worker->bgw_type) == 0)
			return true;
	}
	return false;
}

/* ---- its process ---- */

void
art_worker_begin(void)
{
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	if (!art_preloaded())
		proc_exit(0);
}

/*
 * Settings that are meant for sessions, and would harm in the background, as
 * in autovacuum.  A build in a serializable transaction would keep others'
 * conflicts in memory for as long as it takes.  A deferrable one would wait
 * for them.  Damaged pages are not to be zeroed unasked.  Nor is
 * a database's owner to decide what expressions of others run.  Before the
 * database's own settings are read.
 */
static void
background_settings(void)
{
	SetConfigOption("zero_damaged_pages", "false", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("lock_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
#if ART_HAS_TRANSACTION_TIMEOUT
	SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
#endif
	SetConfigOption("default_transaction_isolation", "read committed",
					PGC_SUSET, PGC_S_OVERRIDE);
	art_eval_in_background();
}

void
art_worker_connect(Oid dboid)
{
	background_settings();
	if (OidIsValid(dboid))
		BackgroundWorkerInitializeConnectionByOid(dboid, InvalidOid, 0);
	else
		BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	(void) art_ctx();
}

bool
art_worker_between(void)
{
	bool		reloaded = ConfigReloadPending;

	CHECK_FOR_INTERRUPTS();
	if (reloaded)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	return reloaded;
}

void
art_worker_loop(long (*turn) (void), MemoryContext cxt, uint32 wait_event)
{
	for (;;)
	{
		long		ms;

		MemoryContextSwitchTo(cxt);
		MemoryContextReset(cxt);
		ms = turn();
		if (ms < 0)
			proc_exit(0);
		/* no art_doze: only the turn says what an interrupt does */
		if (ms > 0)
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 ms, wait_event);
		ResetLatch(MyLatch);
	}
}
