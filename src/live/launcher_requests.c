/*
 * launcher_requests.c
 *	  Requests to the launcher: that it looks, that a worker builds, that a database
 *	  is visited.
 *
 * A request is a word in shared memory, and the launcher is woken.  It reads the
 * words when it looks at the directory (launcher.c), and so do the workers.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "area/area.h"
#include "live/background.h"
#include "live/live.h"

#define ART_SCOUT_ASKED_MS	2000	/* by plans, for an index not known yet */

bool		art_launcher_refused = false;

/* ---- is it there, and waking it ---- */

/*
 * Does the launcher run?  It takes its word back however it ends; the cycle
 * after a crash does so for it.
 */
bool
art_launcher_lives(void)
{
	return art_shared != NULL && pg_atomic_read_u32(&art_shared->launcher) != 0;
}

bool
art_no_worker(void)
{
	return art_build_workers > 0 &&
		(art_launcher_refused || pg_atomic_read_u32(&art_shared->no_worker) != 0);
}

/*
 * Make it look at the directory now.  A process latch is always there; waking
 * the wrong process is harmless.
 */
void
art_launcher_wake(void)
{
	uint32		w = pg_atomic_read_u32(&art_shared->launcher);

	if (w != 0)
		SetLatch(&GetPGProcByNumber((int) w - 1)->procLatch);
}

/* ---- requests ---- */

/*
 * Locks: takes the partition lock, exclusive.
 */
bool
art_request_worker(ArtEntry *e)
{
	LWLock	   *lock;

	if (art_build_workers == 0 || !IsUnderPostmaster || RecoveryInProgress() ||
		!art_launcher_lives())
		return false;

	lock = art_partition(e->loc.db, e->indexoid);
	art_lock(lock, LW_EXCLUSIVE);
	if (art_stuck_until(e) > GetCurrentTimestamp())
	{
		/* the statement's own time may go into it, no worker's */
		art_unlock(lock);
		return false;
	}
	e->wanted = ART_WANT_BUILD;
	e->not_before = 0;
	art_unlock(lock);
	pg_atomic_fetch_add_u32(&art_shared->requests, 1);
	art_launcher_wake();
	return true;
}

/*
 * Have a database visited, not before so many milliseconds from now.  When
 * there are too many requests, this one is lost: the next visit that is due
 * anyway does its work.
 *
 * Locks: takes the chunk lock, exclusive.
 */
void
art_ask(Oid dboid, int jobs, int delay_ms)
{
	TimestampTz at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), delay_ms);
	ArtAsk	   *take = NULL;
	bool		news = false;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	for (int i = 0; i < ART_NASKS; i++)
	{
		ArtAsk	   *a = &art_shared->asks[i];

		if (a->dboid == dboid)
		{
			take = a;
			break;
		}
		if (take == NULL && a->dboid == InvalidOid)
			take = a;
	}
	if (take && take->dboid == InvalidOid)
	{
		take->dboid = dboid;
		take->jobs = jobs;
		take->at = at;
		news = true;
	}
	else if (take && ((take->jobs & jobs) != jobs || at < take->at))
	{
		take->jobs |= jobs;
		take->at = Min(take->at, at);
		news = true;
	}
	art_unlock(art_chunk_lock);
	if (news && delay_ms == 0)
		art_launcher_wake();
}

/*
 * There is a new database, perhaps with indexes in it.
 *
 * Locks: takes the chunk lock, exclusive.
 */
void
art_ask_databases(void)
{
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	art_shared->new_database = true;
	art_unlock(art_chunk_lock);
	art_launcher_wake();
}

/*
 * A database was dropped: no worker may come to it any more.  Called while it
 * is still barred, so none has attached.  One that was asked for and has not
 * come finds its slot gone.  The launcher starts none from a list of databases
 * that was made before.
 *
 * Locks: takes the chunk lock, exclusive.
 */
void
art_database_gone(Oid dboid)
{
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	for (int i = 0; i < ART_NWORKERS; i++)
		if (art_shared->workers[i].dboid == dboid && art_shared->workers[i].pid == 0)
			art_shared->workers[i].dboid = InvalidOid;
	for (int i = 0; i < ART_NASKS; i++)
		if (art_shared->asks[i].dboid == dboid)
			art_shared->asks[i].dboid = InvalidOid;
	art_shared->drops++;
	art_shared->new_database = true;
	art_unlock(art_chunk_lock);
	art_launcher_wake();
}

/*
 * Locks: takes the partition lock, shared, and exclusive to mark the entry as wanted.
 */
void
art_request_absent(Oid indexoid, const ArtLocator *loc)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_SHARED, &lock);
	bool		none = e == NULL;

	/* one that others build, or are about to, is in good hands */
	bool		mark = e != NULL && e->wanted == ART_WANT_NOTHING && !e->sealed &&
		e->reason != ART_WHY_UNLOADED;

	art_unlock(lock);
	if (none)
	{
		/* not at once: with the memory full it would be asked for in every plan */
		pg_atomic_fetch_add_u32(&art_shared->unsettled, 1);
		art_ask(loc->db, ART_JOB_SCOUT, ART_SCOUT_ASKED_MS);
	}
	else if (mark)
	{
		e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);
		if (e != NULL && e->wanted == ART_WANT_NOTHING)
			e->wanted = ART_WANT_PLAN;
		art_unlock(lock);
		art_launcher_wake();
	}
}

/*
 * The caller has the index open or locked.
 *
 * Locks: as art_request_absent().
 */
void
art_request_build(Oid indexoid)
{
	Relation	index;
	ArtLocator	loc;

	if (!art_preloaded() || art_build_workers == 0 ||
		!IsUnderPostmaster || RecoveryInProgress())
		return;

	index = RelationIdGetRelation(indexoid);
	if (!RelationIsValid(index))
		return;
	art_locator(index, &loc);
	/* one of this transaction's making no worker can see */
	if (index->rd_createSubid == InvalidSubTransactionId &&
		ART_REL_NEW_SUBID(index) == InvalidSubTransactionId && loc.backend == -1 &&
		index->rd_index->indisready && index->rd_index->indislive)
		art_request_absent(indexoid, &loc);
	RelationClose(index);
}
