/*
 * hydra_updater.c
 *	  The updater: a background worker that tells the search layers of structure = hydra
 *	  what was split and merged below them.
 *
 * There is one for the whole server, while there is something to do.  A process that
 * changes a list of data nodes logs it in shared memory and goes on.  The updater takes the
 * log to the search layers.  Nothing depends on it but the length of walks:
 * a process whose log is long does the same.  So the worker may come late, end, or
 * never find a place in the server.
 *
 * It sleeps while nothing is logged, and the first process that logs something wakes it.
 * After a minute of sleep it ends, and its place is free for other workers.  Then the
 * launcher is woken in its stead, and starts another one.  The launcher also looks by itself.
 *
 * It works for no database, takes no heavyweight lock and evaluates nothing.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "live/background.h"
#include "workers/workers.h"

#define ART_REST_MS		1		/* between two passes: a wake serves all that is logged meanwhile */
#define ART_PIECES		64		/* of an index's log, in one pass */
#define ART_RETRY_MS	1000	/* at most, after passes that left something */
#define ART_IDLE_MS		60000	/* of sleep, then it ends */
#define ART_START_MS	5000	/* between two attempts to start one */

extern PGDLLEXPORT void art_updater_main(Datum arg);

static uint32 wait_event_updater = 0;

/* Has the entry a search layer, which may be behind? */
static bool
may_be_behind(ArtEntry *e, const void *arg)
{
	return ART_WORD_STATE(pg_atomic_read_u64(&e->word)) != ART_ABSENT && !e->compared &&
		ax_structure_is_hydra(e->engine);
}

/*
 * If this process ends now, another is to go on.
 *
 * Epoch: enters none.
 */
static void
leave_news(ax_ctx *cx)
{
	ART_CORE_BEGIN();
	ax_tell_updater(cx);
	ART_CORE_END();
}

/*
 * Takes to the search layers what is logged.  False: some is left, since there was no memory, or
 * another process is at it.
 *
 * Epoch: enters and leaves, once a piece of an index's log; checks for interrupts between two.
 * Locks: takes the partition locks, shared, one after the other, to list the indexes.
 */
static bool
apply_all(void)
{
	ax_ctx	   *cx = art_ctx();
	ArtListed  *list;
	int			n;
	bool		all = true;

	ART_CORE_BEGIN();
	ax_updater_begin(cx);
	ART_CORE_END();
	n = art_list_entries(InvalidOid, may_be_behind, NULL, &list);
	for (int i = 0; i < n; i++)
	{
		ax_status	s = AX_BUSY;

		for (int piece = 0; s == AX_BUSY && piece < ART_PIECES; piece++)
		{
			if (InterruptPending)
				leave_news(cx);
			CHECK_FOR_INTERRUPTS();
			ART_CORE_BEGIN();
			s = ax_catch_up(cx, list[i].tree, list[i].gen);
			ART_CORE_END();
		}
		/* AX_STALE: it is gone, and its log with it */
		if (s == AX_BUSY)
			all = false;
	}
	if (!all)
		leave_news(cx);
	return all;
}

static void
updater_exit(int code, Datum arg)
{
	pg_atomic_write_u32(&art_shared->updater, 0);
}

/*
 * One turn: a pass over all logs, and a rest; or a sleep that a process ends which logs
 * something.
 */
static long
updater_turn(void)
{
	static long rest = ART_REST_MS;
	static bool all = false;	/* the pass before left nothing */
	static TimestampTz slept = 0;	/* since then */
	ax_ctx	   *cx = art_ctx();

	(void) art_worker_between();
	if (all && slept == 0 && ax_updater_sleep(cx))
	{
		slept = GetCurrentTimestamp();
		return ART_IDLE_MS;
	}
	/* a wake that comes too late for this process is lost; the launcher looks by itself, too */
	if (slept != 0 && TimestampDifferenceExceeds(slept, GetCurrentTimestamp(), ART_IDLE_MS) &&
		!ax_updater_wanted(cx))
		return -1;
	slept = 0;
	all = apply_all();
	rest = all ? ART_REST_MS : Min(rest * 2, ART_RETRY_MS);
	(void) art_poll();
	return rest;
}

/*
 * Main function of the updater.
 */
void
art_updater_main(Datum arg)
{
	uint32		none = 0;

	art_worker_begin();
	/* to no database: so it shows in pg_stat_activity, and is in nobody's way */
	art_worker_connect(InvalidOid);
	if (!pg_atomic_compare_exchange_u32(&art_shared->updater, &none,
										(uint32) ART_MY_PROCNO() + 1))
		proc_exit(0);			/* another one came first */
	before_shmem_exit(updater_exit, (Datum) 0);
	art_worker_loop(updater_turn, AllocSetContextCreate(TopMemoryContext, "artidx updater",
														ALLOCSET_DEFAULT_SIZES),
					ART_WAIT_EVENT(wait_event_updater, "ArtidxUpdater"));
}

/* ---- in the launcher ---- */

void
art_updater_start(void)
{
	static TimestampTz tried = 0;
	TimestampTz now = GetCurrentTimestamp();
	BackgroundWorker worker;

	if (pg_atomic_read_u32(&art_shared->updater) != 0 || !ax_updater_wanted(art_ctx()) ||
		(tried <= now && !TimestampDifferenceExceeds(tried, now, ART_START_MS)))
		return;
	tried = now;
	/* it starts on a standby, too; without a free place it is tried again */
	art_define_worker(&worker, "hydra updater", "art_updater_main");
	(void) RegisterDynamicBackgroundWorker(&worker, NULL);
}
