/*
 * worker_slots.c
 *	  The slots of our background workers: which worker is in which database, what
 *	  it is doing.
 *
 * Everything here is guarded by the chunk lock.  The launcher reserves a slot
 * (launcher.c), the worker takes it over and frees it (database_worker.c).
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"

#include "live/background.h"
#include "workers/workers.h"

#define ART_END_MS		20000	/* how long a command waits for workers */
#define ART_AGAIN_MS	1000	/* after a bar */
#define ART_ENDED_MS	5000	/* after a worker that did not finish */

static uint32 wait_event_bar = 0;

/* A worker, by its slot and number. */
typedef struct Ending
{
	int			slot;
	uint32		seq;
} Ending;

/*
 * Has the worker left its slot?
 *
 * Locks: takes the chunk lock, shared.
 */
static bool
has_ended(void *arg)
{
	const Ending *x = arg;
	const ArtWorkerSlot *s = &art_shared->workers[x->slot];
	bool		has;

	art_lock(art_chunk_lock, LW_SHARED);
	has = s->dboid == InvalidOid || s->seq != x->seq;
	art_unlock(art_chunk_lock);
	return has;
}

/*
 * One that was asked for and has not started is refused by art_worker_attach, so it need not
 * be waited for.  A worker's slot is freed after the server has forgotten that it was
 * connected.
 *
 * Locks: takes the chunk lock, shared; none while it waits.
 */
void
art_end_workers(Oid dboid)
{
	Ending		all[ART_NWORKERS];
	int			n = 0;
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ART_END_MS);

	art_lock(art_chunk_lock, LW_SHARED);
	for (int i = 0; i < ART_NWORKERS; i++)
	{
		ArtWorkerSlot *s = &art_shared->workers[i];

		if (s->dboid == dboid && s->pid > 0 && s->pid != MyProcPid)
		{
			all[n++] = (Ending) {i, s->seq};
			kill(s->pid, SIGTERM);
		}
	}
	art_unlock(art_chunk_lock);

	for (int i = 0; i < n; i++)
		(void) art_wait_for(has_ended, &all[i], until, 5, NULL,
							ART_WAIT_EVENT(wait_event_bar, "ArtidxWorkersEnd"));
}

/* ---- slots of workers ---- */

/*
 * Locks: takes the chunk lock, exclusive.
 */
int
art_worker_reserve(Oid dboid, Oid owner, int jobs, uint32 drops, uint32 *seq)
{
	int			slot = -1;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	for (int i = 0; i < ART_NWORKERS && slot < 0; i++)
		if (art_shared->workers[i].dboid == InvalidOid)
			slot = i;
	if (art_barred(dboid) || art_shared->drops != drops)
		slot = -1;
	if (slot >= 0)
	{
		ArtWorkerSlot *s = &art_shared->workers[slot];

		*seq = ++art_shared->worker_seq;
		memset(s, 0, sizeof(*s));
		s->dboid = dboid;
		s->owner = owner;
		s->seq = *seq;
		s->jobs = jobs;
		s->asked = GetCurrentTimestamp();
	}
	art_unlock(art_chunk_lock);
	return slot;
}

/*
 * Locks: takes the chunk lock, exclusive.
 */
void
art_worker_release(int slot, uint32 seq)
{
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	if (art_shared->workers[slot].seq == seq)
		art_shared->workers[slot].dboid = InvalidOid;
	art_unlock(art_chunk_lock);
}

/*
 * Locks: takes the chunk lock, exclusive.
 */
bool
art_worker_attach(Datum arg, ArtWorkerSlot *copy)
{
	ArtWorkerSlot *s = &art_shared->workers[DatumGetInt32(arg)];
	uint32		seq;
	bool		ok;

	memcpy(&seq, MyBgworkerEntry->bgw_extra, sizeof(seq));
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	ok = s->dboid != InvalidOid && s->seq == seq && s->pid == 0;
	if (ok && art_barred(s->dboid))
	{
		/* what it was to do is asked for again; a bar is short */
		*copy = *s;
		s->dboid = InvalidOid;
		art_unlock(art_chunk_lock);
		if (copy->jobs & ART_JOB_ORDERS)
			art_ask(copy->dboid, copy->jobs & ART_JOB_ORDERS, ART_AGAIN_MS);
		return false;
	}
	if (ok)
	{
		s->pid = MyProcPid;
		s->procno = ART_MY_PROCNO();
		art_watched_by(&s->watch);
		*copy = *s;
	}
	art_unlock(art_chunk_lock);
	return ok;
}

/*
 * The worker exits.  Visits that it did not finish (it was ended, or failed)
 * are asked for again.  A worker that was to build may not get that far,
 * perhaps because nobody can connect to the database.  It puts the next one
 * off, or one would follow the other without a pause.
 *
 * Locks: takes the chunk lock, exclusive.
 */
void
art_worker_detach(int slot, uint32 seq, bool worked)
{
	ArtWorkerSlot *s = &art_shared->workers[slot];
	Oid			dboid = InvalidOid;
	int			jobs = 0;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	if (s->seq == seq && s->pid == MyProcPid)
	{
		dboid = s->dboid;
		jobs = s->jobs & (worked ? ART_JOB_ORDERS : ART_JOB_ORDERS | ART_JOB_BUILD);
		s->dboid = InvalidOid;
		s->indexoid = InvalidOid;
	}
	art_unlock(art_chunk_lock);
	if (jobs != 0 && OidIsValid(dboid))
		art_ask(dboid, jobs, ART_ENDED_MS);
	art_launcher_wake();
}

/*
 * Locks: takes the chunk lock, exclusive.
 */
bool
art_worker_claim(int slot, const ArtWork *w)
{
	bool		ok = true;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	for (int i = 0; w && !w->help && i < ART_NWORKERS && ok; i++)
	{
		ArtWorkerSlot *s = &art_shared->workers[i];

		if (i != slot && s->dboid == w->db && s->indexoid == w->indexoid)
			ok = false;
	}
	if (ok)
		art_shared->workers[slot].indexoid = w ? w->indexoid : InvalidOid;
	art_unlock(art_chunk_lock);
	return ok;
}
