/*
 * watchdog.c
 *	  The launcher watches what workers and followers evaluate.
 *
 * An index's expression may never end.  Its process then keeps a slot from
 * others, and its locks.  So the launcher cancels it as a user would.  It does when
 * the expression of one row takes too long, or when somebody waits for a lock of
 * the process for deadlock_timeout.  Between two pages a builder looks for itself
 * (build/heap_build.c), and nothing but an expression is cancelled.
 *
 * PROC_IS_AUTOVACUUM would have core's deadlock checker send the cancel.  But
 * CREATE INDEX CONCURRENTLY waits for no snapshot of such a process, and a function
 * in an expression may read the table that is indexed.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include <signal.h>

#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "workers/workers.h"

/* in units of deadlock_timeout; a row's without others that wait is ART_STUCK_ROW */
#define ART_STUCK_WANTED	10		/* a row's, while others wait for the process */
#define ART_STUCK_PAGE		300 /* a page's, when the turn is over */

#define ART_AGAIN_MS	2000	/* after a cancel that did not help, another one */
#define ART_KILL_MS		5000	/* and the end of the process */
#define ART_LOOK_MOST_MS	2000	/* a longer pause between two looks does not count */

/* A process as it was when the launcher looked last. */
typedef struct Seen
{
	int			pid;
	uint64		row;
	double		row_ms;			/* in this row */
	double		over_ms;		/* in expressions, since its turn was over */
	ArtEnd		end;			/* what it was cancelled for, in this row, */
	double		end_ms;			/* and so long ago */
	int			cancels;
} Seen;

static Seen seen[ART_NWORKERS];

/* One look. */
typedef struct Now
{
	int			pid;			/* 0: there is none */
	bool		follows;
	Oid			dboid;
	Oid			indexoid;		/* which a worker builds */
	uint64		row;
	ArtEnd		told;
} Now;

/* ---- who waits for it ---- */

/*
 * Does the lock of one process keep another from this one?
 */
static bool
keeps(const LockInstanceData *held, const LockInstanceData *wanted)
{
	LockMethod	method = GetLockTagsMethodTable(&wanted->locktag);

	return memcmp(&held->locktag, &wanted->locktag, sizeof(LOCKTAG)) == 0 &&
		(held->holdMask & method->conflictTab[wanted->waitLockMode]) != 0;
}

/*
 * Does one process wait for a lock of another?  Then that is *in_the_way, or *needed if the lock
 * is a place of the build (residency.c).  A waiter for that needs the build.
 */
static void
look_at_waiter(int waiter, const Now *w, bool *in_the_way, bool *needed)
{
	BlockedProcsData *data = GetBlockerStatusData(waiter);

	for (int p = 0; p < data->nprocs; p++)
	{
		const BlockedProcData *b = &data->procs[p];
		const LockInstanceData *locks = &data->locks[b->first_lock];
		const LockInstanceData *wanted = NULL;

		for (int i = 0; i < b->num_locks; i++)
			if (locks[i].pid == b->pid && locks[i].waitLockMode != NoLock)
				wanted = &locks[i];
		for (int i = 0; wanted != NULL && i < b->num_locks; i++)
		{
			if (locks[i].pid != w->pid || !keeps(&locks[i], wanted))
				continue;
			if (wanted->locktag.locktag_type == LOCKTAG_TUPLE &&
				wanted->locktag.locktag_field2 == w->indexoid)
				*needed = true;
			else
				*in_the_way = true;
		}
	}
}

/*
 * Has somebody waited for deadlock_timeout for a lock of this process, and nobody for its
 * build?
 *
 * Locks: takes all of core's lock partitions, shared, once for each process that waits.
 */
static bool
process_in_the_way(const Now *w)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		is = false;
	bool		needed = false;

	for (uint32 i = 0; i < ProcGlobal->allProcCount && !needed; i++)
	{
		PGPROC	   *proc = GetPGProcByNumber(i);
		int			waiter = *(volatile int *) &proc->pid;
		TimestampTz since = (TimestampTz) pg_atomic_read_u64(&proc->waitStart);

		/* looked at without a lock: what is no longer so is not found below */
		if (waiter != 0 && since != 0 &&
			*(volatile Oid *) &proc->databaseId == w->dboid &&
			*(LOCK *volatile *) &proc->waitLock != NULL &&
			TimestampDifferenceExceeds(since, now, DeadlockTimeout))
			look_at_waiter(waiter, w, &is, &needed);
	}
	return is && !needed;
}

/* ---- what becomes of it ---- */

/*
 * Look at the slot of this number, and return its watch.
 *
 * Locks: chunk lock held, in any mode.
 */
static ArtWatch *
look_at_place(int i, Now *w)
{
	ArtWorkerSlot *s = &art_shared->workers[i];
	ArtWatch   *watch = &s->watch;

	w->pid = s->dboid == InvalidOid ? 0 : s->pid;
	w->follows = (s->jobs & ART_JOB_FOLLOW) != 0;
	w->dboid = s->dboid;
	w->indexoid = s->indexoid;
	w->row = pg_atomic_read_u64(&watch->row);
	w->told = (ArtEnd) pg_atomic_read_u32(&watch->end);
	return watch;
}

/*
 * Cancel what it evaluates, or end it.
 *
 * Locks: takes the chunk lock, shared: the process frees its slot under it.
 */
static void
stop_process(int i, ArtEnd end, int sig)
{
	ArtWatch   *watch;
	Now			w;

	art_lock(art_chunk_lock, LW_SHARED);
	watch = look_at_place(i, &w);
	if (w.pid == seen[i].pid && w.row == seen[i].row)
	{
		pg_atomic_write_u32(&watch->end, end);
		kill(w.pid, sig);
	}
	art_unlock(art_chunk_lock);
	elog(DEBUG1, "artidx: process %d was %s: %s", seen[i].pid, sig == SIGINT ? "cancelled" : "ended",
		 end == ART_END_LOCK ? "its lock is waited for" : "its expression does not end");
}

/*
 * A process that was cancelled is still in the same row: its function may have caught that.
 */
static void
insist(int i, int elapsed)
{
	Seen	   *s = &seen[i];

	s->end_ms += elapsed;
	if (s->end_ms >= ART_KILL_MS)
		stop_process(i, ART_END_STUCK, SIGTERM);
	else if (s->end_ms >= ART_AGAIN_MS * s->cancels)
	{
		s->cancels++;
		stop_process(i, s->end, SIGINT);
	}
}

/*
 * Compare one process with what was seen of it.  wanted: others wait until it is done.
 */
static void
compare_process(int i, const Now *w, bool wanted, int elapsed)
{
	Seen	   *s = &seen[i];
	const bool	same = s->pid == w->pid && s->row == w->row;
	double		limit = (double) DeadlockTimeout * (wanted ? ART_STUCK_WANTED : ART_STUCK_ROW);

	if (s->pid != w->pid)
		memset(s, 0, sizeof(*s));
	if ((w->row & 1) == 0 || w->told != ART_END_TURN)
		s->over_ms = 0;
	else if ((s->row & 1) != 0)
		s->over_ms += elapsed;
	s->pid = w->pid;
	s->row = w->row;
	if (!same)
	{
		s->row_ms = 0;
		s->end = ART_END_NOT;
	}
	if ((w->row & 1) == 0)
		return;
	if (same)
		s->row_ms += elapsed;

	if (s->end != ART_END_NOT)
	{
		insist(i, elapsed);
		return;
	}
	if (s->row_ms >= limit || s->over_ms >= (double) DeadlockTimeout * ART_STUCK_PAGE)
		s->end = ART_END_STUCK;
	else if (process_in_the_way(w))
		s->end = ART_END_LOCK;
	else
		return;
	s->end_ms = 0;
	s->cancels = 1;
	stop_process(i, s->end, SIGINT);
}

/*
 * Locks: takes the chunk lock, shared, and of core's what process_in_the_way() says.
 */
void
art_watch_all(bool wanted)
{
	static TimestampTz looked = 0;
	TimestampTz now = GetCurrentTimestamp();
	int			elapsed = looked == 0 ? 0 :
		(int) Min(TimestampDifferenceMilliseconds(looked, now), ART_LOOK_MOST_MS);
	Now			all[ART_NWORKERS];

	looked = now;
	art_lock(art_chunk_lock, LW_SHARED);
	for (int i = 0; i < (int) lengthof(all); i++)
		(void) look_at_place(i, &all[i]);
	art_unlock(art_chunk_lock);
	for (int i = 0; i < (int) lengthof(all); i++)
	{
		if (all[i].pid == 0)
			seen[i].pid = 0;
		else
			compare_process(i, &all[i], wanted || all[i].follows, elapsed);
	}
}
