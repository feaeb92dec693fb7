/*
 * build_wait.c
 *	  artidx.build_wait: a statement that could go on without an index waits for
 *	  its build, where that is likely sooner done.
 *
 * The caller tells how much longer the statement takes without the index.  To
 * that belongs what others do: those that run now would all read tables beside
 * the builders.  So the time is that of an idle machine, times the statements
 * that run for each processor.  The rest of the build is told by the blocks
 * that are left, at the pace seen while we wait, or at a guessed one.
 *
 * The wait is by looking again and again.  The deadlock detector does not see
 * it, and need not, because it always ends.  In "auto" it ends at twice the time
 * that it is to save; else at the time that was set.  It ends before that when
 * no builder is at work: when each waits for somebody's lock, perhaps ours, or
 * has left.  The wait holds no lock that the statement would not hold anyway, and
 * begins only where the locks of this transaction let a builder in.
 *
 * src/live/README.md: Residency
 */
#include "postgres.h"

#include <unistd.h>

#include "access/genam.h"
#include "access/parallel.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "build/build.h"
#include "live/background.h"
#include "live/live.h"

#define ART_AWAIT_POLL_MS	10
#define ART_PACE_US			200000	/* seen for so long, the pace is known */

/*
 * To build one index takes so long a row, before its pace is known.  A unit of
 * the planner's costs takes so long.  A million rows in shared buffers, on a
 * machine that did other work: 0.22 to 0.48, and 2.3 to 3.6.
 */
#define ART_BUILD_ROW_US	0.4
#define ART_COST_UNIT_US	3.0

/* artidx.build_wait in ms, or one of these */
#define ART_WAIT_AUTO		(-1)
#define ART_WAIT_OFF		0

static char *setting;
static int	build_wait = ART_WAIT_AUTO;
static uint32 wait_event_build = 0;

/* ---- the setting ---- */

/* From the text of the setting; false with a hint, or NULL, when it is none. */
static bool
parse_wait(const char *value, int *ms, const char **hint)
{
	*hint = NULL;
	if (pg_strcasecmp(value, "auto") == 0)
		*ms = ART_WAIT_AUTO;
	else if (pg_strcasecmp(value, "off") == 0)
		*ms = ART_WAIT_OFF;
	else
		return parse_int(value, ms, GUC_UNIT_MS, hint) && *ms >= 0;
	return true;
}

/* GUC check hook: the value is "auto", "off" or a time. */
static bool
check_build_wait(char **newval, void **extra, GucSource source)
{
	const char *hint;
	int			ms;

	if (parse_wait(*newval, &ms, &hint))
		return true;
	GUC_check_errdetail("Valid values are \"auto\", \"off\", and a time such as \"5s\", in milliseconds if it has no unit.");
	if (hint)
		GUC_check_errhint("%s", _(hint));
	return false;
}

/* GUC assign hook.  The text was checked. */
static void
assign_build_wait(const char *newval, void *extra)
{
	const char *hint;

	if (!parse_wait(newval, &build_wait, &hint))
		build_wait = ART_WAIT_OFF;
}

/*
 * The setting; from _PG_init.
 */
void
art_patience_init(void)
{
	DefineCustomStringVariable("artidx.build_wait",
							   "Sets how long a statement waits for an art index that is being built.",
							   "\"auto\": when the build is likely sooner done than the statement without the index; "
							   "\"off\": never; a time: at most so long.",
							   &setting, "auto",
							   PGC_USERSET, GUC_EXPLAIN,
							   check_build_wait, assign_build_wait, NULL);
}

/* ---- is there something to wait for? ---- */

bool
art_is_coming(ArtState state, ArtReason reason)
{
	if (state == ART_BUILDING)
		return true;
	return (reason == ART_WHY_RESTART || reason == ART_WHY_DROPPED ||
			reason == ART_WHY_ALTERED) &&
		art_build_workers > 0 && !art_no_worker() &&
		!RecoveryInProgress() && !ART_OLD_SNAPSHOT_IN_USE();
}

/*
 * Locks: takes the partition locks, shared, one after the other.
 */
bool
art_any_coming(void)
{
	ArtWalk		w = art_walk(LW_SHARED, InvalidOid, InvalidOid);
	bool		any = false;

	for (ArtEntry *e; !any && (e = art_walk_next(&w)) != NULL;)
	{
		ArtState	state = ART_WORD_STATE(pg_atomic_read_u64(&e->word));

		any = state != ART_READY && state != ART_FOLLOWED &&
			art_is_coming(state, e->reason);
	}
	art_walk_end(&w);
	return any;
}

/*
 * A builder waits for no other build: an expression of an index may query any
 * table.
 */
bool
art_may_await(void)
{
	return build_wait != ART_WAIT_OFF && art_preloaded() && IsUnderPostmaster &&
		pg_atomic_read_u32(&art_shared->settled) !=
		pg_atomic_read_u32(&art_shared->unsettled) + 1 &&
		!IsParallelWorker() && !art_takes_part() && !RecoveryInProgress() &&
		InterruptHoldoffCount == 0 && CritSectionCount == 0;
}

/*
 * Can a worker see the index, and lock it and its table?
 */
static bool
worker_can(Relation index)
{
	Relation	heap;
	LOCKTAG		heap_tag;
	LOCKTAG		index_tag;
	bool		ok;

	if (RelationUsesLocalBuffers(index) ||
		index->rd_createSubid != InvalidSubTransactionId ||
		ART_REL_NEW_SUBID(index) != InvalidSubTransactionId ||
		!index->rd_index->indisready || !index->rd_index->indislive)
		return false;

	heap = RelationIdGetRelation(index->rd_index->indrelid);
	if (!RelationIsValid(heap))
		return false;
	SET_LOCKTAG_RELATION(heap_tag, heap->rd_lockInfo.lockRelId.dbId,
						 heap->rd_lockInfo.lockRelId.relId);
	SET_LOCKTAG_RELATION(index_tag, index->rd_lockInfo.lockRelId.dbId,
						 index->rd_lockInfo.lockRelId.relId);
	ok = heap->rd_createSubid == InvalidSubTransactionId &&
		ART_REL_NEW_SUBID(heap) == InvalidSubTransactionId &&
		!ART_LOCK_HELD(&heap_tag, AccessExclusiveLock) &&
		!ART_LOCK_HELD(&index_tag, AccessExclusiveLock);
	RelationClose(heap);
	return ok;
}

/* One look at the entry. */
typedef struct Look
{
	ArtState	state;
	bool		coming;
	bool		at_work;		/* a builder has it and waits for no lock, or none
								 * has come yet */
	double		done;			/* blocks */
	double		total;			/* 0: not known yet */
} Look;

/*
 * Is one of the helpers at work?  Each holds the place, and the owner of the build
 * waits for it.  If nobody holds it, the owner is about to go on.
 *
 * Locks: takes one partition lock of core's lock manager, and core's lock on the
 * array of processes, shared, one after the other.
 */
static bool
helpers_at_work(const LOCKTAG *helpers)
{
	int			n;
	VirtualTransactionId *holders = GetLockConflicts(helpers, ExclusiveLock, &n);
	bool		at_work = n == 0;

	for (int i = 0; i < n && !at_work; i++)
	{
		PGPROC	   *proc = ART_VXID_PROC(holders[i]);

		/* an old value is as good */
		at_work = proc != NULL && *(LOCK *volatile *) &proc->waitLock == NULL;
	}
	pfree(holders);
	return at_work;
}

/*
 * Look at the entry now.  helpers: the tag of the index's helpers' place; NULL: the caller
 * does not read at_work.
 *
 * Locks: takes the partition lock, shared, and then those of helpers_at_work().
 */
static void
look_at_entry(ArtEntry *e, const LOCKTAG *helpers, Look *l)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	bool		for_helpers = false;	/* the owner waits for its helpers */

	art_lock(lock, LW_SHARED);
	l->state = art_entry_state(e, NULL);
	l->coming = art_is_coming(l->state, e->reason) && !e->doubt;
	l->done = l->total = 0;
	l->at_work = true;
	if (l->state == ART_BUILDING)
	{
		l->done = (double) pg_atomic_read_u64(&e->blocks_done);
		l->total = (double) pg_atomic_read_u64(&e->blocks_total);
		l->at_work = art_loading(e);
		if (helpers && !l->at_work && art_owner_alive(e))
		{
			/*
			 * An old value of what the owner waits for is as good.  A lock's memory
			 * stays mapped; if it has become another lock, its tag is another.
			 */
			LOCK	   *wanted = *(LOCK *volatile *) &GetPGProcByNumber(e->owner_slot)->waitLock;

			l->at_work = wanted == NULL;
			for_helpers = wanted != NULL && memcmp(&wanted->tag, helpers, sizeof(LOCKTAG)) == 0;
		}
	}
	art_unlock(lock);
	if (for_helpers)
		l->at_work = helpers_at_work(helpers);
}

bool
art_awaitable(Relation index)
{
	ArtEntry   *e;
	Look		l;

	if (!worker_can(index))
		return false;
	e = art_entry_if_exists(index);
	if (e == NULL)
		return art_is_coming(ART_ABSENT, ART_WHY_RESTART);
	look_at_entry(e, NULL, &l);
	return l.state == ART_READY || l.coming;
}

/* ---- is it worth it? ---- */

/*
 * How many statements there are for each processor; at least 1.  A process that
 * runs one has a snapshot.  Those that wait here count, for they would run.
 */
static double
crowd(void)
{
	static long processors = 0;
	int			n = 0;

	if (processors == 0)
		processors = Max(sysconf(_SC_NPROCESSORS_ONLN), 1);
	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
		n += TransactionIdIsValid(*(volatile TransactionId *) &GetPGProcByNumber(i)->xmin);
	return Max((double) n / (double) processors, 1.0);
}

/*
 * The pace of a build, in blocks: where it was when it was seen first.
 */
typedef struct Pace
{
	TimestampTz since;			/* 0: not seen yet */
	double		done;
} Pace;

/*
 * The time that the rest of the build takes, in us.
 */
static double
rest_us(const Look *l, Pace *pace, double rows, TimestampTz now)
{
	double		left = 1.0;

	if (l->total > 0)
	{
		if (pace->since == 0 || l->done < pace->done)
		{
			pace->since = now;
			pace->done = l->done;
		}
		else if (now - pace->since >= ART_PACE_US && l->done > pace->done)
			return (double) (now - pace->since) * Max(l->total - l->done, 0) /
				(l->done - pace->done);
		left = Max(l->total - l->done, 0) / l->total;
	}
	return left * rows * ART_BUILD_ROW_US;
}

/* ---- the wait ---- */

static void
await_context(void *arg)
{
	errcontext("while waiting for art index \"%s\" to be built", (const char *) arg);
}

/*
 * When the wait has to be over.  It is no error when lock_timeout ends it: the
 * statement has another way.
 */
static TimestampTz
patience_ends(TimestampTz begin, double saves_us)
{
	double		us = build_wait == ART_WAIT_AUTO ? 2 * saves_us : build_wait * 1000.0;

	if (LockTimeout > 0)
		us = Min(us, LockTimeout * 1000.0);
	return begin + (int64) Min(us, 1e15);
}

/*
 * Wait as long as it is worth it.
 *
 * Locks: takes the partition lock, shared, and exclusive to ask for a worker.
 */
static bool
await_entry(ArtEntry *e, const LOCKTAG *helpers, double rows, double saves_us)
{
	TimestampTz begin = GetCurrentTimestamp();
	TimestampTz until = patience_ends(begin, saves_us);
	TimestampTz deadline = art_statement_deadline();
	TimestampTz idle_since = 0;
	Pace		pace = {0};
	bool		asked = false;

	for (;;)
	{
		TimestampTz now = GetCurrentTimestamp();
		Look		l;

		look_at_entry(e, helpers, &l);
		if (l.state == ART_READY)
			return true;
		if (!l.coming || now >= until)
			return false;
		if (build_wait == ART_WAIT_AUTO)
		{
			double		rest = rest_us(&l, &pace, rows, now);

			if (rest > saves_us || (deadline != 0 && now + rest > deadline))
				return false;
		}
		if (l.at_work)
			idle_since = 0;
		else if (idle_since == 0)
			idle_since = now;
		else if (TimestampDifferenceExceeds(idle_since, now, DeadlockTimeout))
			return false;

		/* right after a crash the launcher may not be there yet */
		if (!asked)
			asked = art_request_worker(e);
		(void) art_doze(ART_AWAIT_POLL_MS, ART_WAIT_EVENT(wait_event_build, "ArtidxBuild"));
	}
}

bool
art_await_build(Relation index, double rows, Cost saves)
{
	ErrorContextCallback callback;
	ArtEntry   *e;
	LOCKTAG		helpers;
	bool		ready;

	if (saves <= 0 || !art_awaitable(index))
		return false;
	e = art_entry_try(index);
	if (e == NULL)
		return false;

	callback.callback = await_context;
	callback.arg = RelationGetRelationName(index);
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	art_place_tag(index, ART_PLACE_HELPERS, &helpers);
	ready = await_entry(e, &helpers, Max(rows, 1), saves * ART_COST_UNIT_US * crowd());
	error_context_stack = callback.previous;
	return ready;
}
