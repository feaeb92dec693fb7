/*
 * fair_turns.c
 *	  Whose turn it is: the slots of workers are shared by database and owner.
 *
 * A worker builds for one owner in one database.  A free slot goes to a database
 * that has fewest, there to the owner who has fewest.  So none of them gets a
 * second slot while another one wants its first.  When all slots are taken, a tenant that
 * has none waits for a turn's length.  Then a worker is told that its turn is over:
 * one of a database that has more slots, or of another owner in the same.  It
 * leaves after the page that it reads, and a later worker goes on with the build.
 *
 * All of it is the launcher's.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include "storage/proc.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

#include "workers/workers.h"

#define ART_TURN	10			/* in units of deadlock_timeout */

typedef struct Tenant
{
	Oid			db;
	Oid			owner;
} Tenant;

/* A tenant that wants a slot and has none. */
typedef struct Waiting
{
	Tenant		tenant;
	TimestampTz since;
	uint32		round;			/* in which it was seen last */
} Waiting;

static HTAB *waiting = NULL;
static uint32 round_no = 0;

/* Slots that build. */
typedef struct Share
{
	int			db;				/* in the database, for anybody */
	int			owner;			/* for the owner, in any database */
	int			both;			/* for the owner in the database */
} Share;

/* Counts the slots of a database and of an owner. */
static Share
share_of(const ArtWorkerSlot *slots, Oid db, Oid owner)
{
	Share		s = {0};

	for (int i = 0; i < ART_NWORKERS; i++)
	{
		if (slots[i].dboid == InvalidOid || (slots[i].jobs & ART_JOB_BUILD) == 0)
			continue;
		s.db += slots[i].dboid == db;
		s.owner += slots[i].owner == owner;
		s.both += slots[i].dboid == db && slots[i].owner == owner;
	}
	return s;
}

/* Is it so long ago that a turn would be over? */
static bool
turn_since(TimestampTz since, TimestampTz now)
{
	return since + ART_TURN * DeadlockTimeout * INT64CONST(1000) <= now;
}

void
art_turns_mark(ArtWork *work, int n, const ArtWorkerSlot *slots)
{
	bool		gone[ART_NWORKERS] = {0};	/* it will take what comes before */

	for (int i = 0; i < n; i++)
	{
		ArtWork    *w = &work[i];

		w->taken = false;
		for (int j = 0; j < ART_NWORKERS && !w->taken; j++)
			w->taken = slots[j].dboid == w->db && slots[j].indexoid == w->indexoid &&
				!w->help;
		for (int j = 0; j < ART_NWORKERS && !w->taken && w->ready; j++)
		{
			if (!gone[j] && slots[j].dboid == w->db && slots[j].owner == w->owner &&
				(slots[j].jobs & ART_JOB_BUILD) && slots[j].indexoid == InvalidOid)
				gone[j] = w->taken = true;
		}
	}
}

int
art_turns_next(const ArtWork *work, int n, const ArtWorkerSlot *slots, bool pressing)
{
	TimestampTz now = GetCurrentTimestamp();
	int			best = -1;
	Share		least = {0};
	TimestampTz longest = 0;

	for (int i = 0; i < n; i++)
	{
		const ArtWork *w = &work[i];
		Tenant		t = {w->db, w->owner};
		Waiting    *x;
		TimestampTz since = DT_NOEND;
		Share		s;
		int			cmp;

		if (w->taken || !w->ready)
			continue;
		s = share_of(slots, w->db, w->owner);
		x = waiting == NULL ? NULL : hash_search(waiting, &t, HASH_FIND, NULL);
		if (x != NULL && turn_since(x->since, now))
			since = x->since;
		cmp = s.db != least.db ? s.db - least.db : s.owner - least.owner;
		if (best >= 0 && (cmp > 0 || (cmp == 0 && since >= longest)))
			continue;
		best = i;
		least = s;
		longest = since;
	}
	if (best >= 0 && pressing && !work[best].urgent && longest == DT_NOEND)
		return -1;
	return best;
}

/*
 * Tell one worker that its turn is over, for the sake of a database and, in the same, of
 * an owner who has no slot.
 *
 * Locks: takes the chunk lock, shared.
 */
static void
end_turn(const ArtWorkerSlot *slots, bool *told, Oid db)
{
	TimestampTz now = GetCurrentTimestamp();
	int			wants = share_of(slots, db, InvalidOid).db;
	int			best = -1;
	Share		most = {0};

	for (int i = 0; i < ART_NWORKERS; i++)
	{
		Share		s;

		if (told[i] || slots[i].dboid == InvalidOid || slots[i].pid == 0 ||
			(slots[i].jobs & ART_JOB_BUILD) == 0 || !turn_since(slots[i].asked, now))
			continue;
		s = share_of(slots, slots[i].dboid, slots[i].owner);
		if (slots[i].dboid != db && s.db <= wants)
			continue;
		if (best < 0 || s.both > most.both ||
			(s.both == most.both && slots[i].asked < slots[best].asked))
		{
			best = i;
			most = s;
		}
	}
	if (best < 0)
		return;
	told[best] = true;
	art_lock(art_chunk_lock, LW_SHARED);
	if (art_shared->workers[best].seq == slots[best].seq)
		pg_atomic_write_u32(&art_shared->workers[best].watch.end, ART_END_TURN);
	art_unlock(art_chunk_lock);
}

/* Note who waits, since when, and forget who waits no more.  Returns how many do. */
static int
note_waiting(const ArtWork *work, int n, const ArtWorkerSlot *slots)
{
	TimestampTz now = GetCurrentTimestamp();
	HASH_SEQ_STATUS seq;
	Waiting    *x;
	int			count = 0;

	if (waiting == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(Tenant);
		ctl.entrysize = sizeof(Waiting);
		waiting = hash_create("artidx waiting", 64, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	round_no++;
	for (int i = 0; i < n; i++)
	{
		Tenant		t = {work[i].db, work[i].owner};
		bool		found;

		if (work[i].taken || !work[i].ready || share_of(slots, t.db, t.owner).both > 0)
			continue;
		x = hash_search(waiting, &t, HASH_ENTER, &found);
		if (!found)
			x->since = now;
		count += !found || x->round != round_no;
		x->round = round_no;
	}
	hash_seq_init(&seq, waiting);
	while ((x = hash_seq_search(&seq)) != NULL)
		if (x->round != round_no)
			(void) hash_search(waiting, &x->tenant, HASH_REMOVE, NULL);
	return count;
}

/*
 * Locks: takes the chunk lock, shared.
 */
bool
art_turns_end(const ArtWork *work, int n, const ArtWorkerSlot *slots, bool full, Oid visit)
{
	static TimestampTz visit_since = 0;
	TimestampTz now = GetCurrentTimestamp();
	bool		told[ART_NWORKERS];
	bool		queued = false;
	int			leaving = 0;
	int			count = note_waiting(work, n, slots);
	HASH_SEQ_STATUS seq;
	Waiting    *x;

	for (int i = 0; i < n && full && !queued; i++)
		queued = work[i].ready && !work[i].taken && !work[i].help;
	pg_atomic_write_u32(&art_shared->busy, queued);
	for (int i = 0; i < ART_NWORKERS; i++)
	{
		told[i] = slots[i].dboid != InvalidOid && slots[i].pid != 0 &&
			pg_atomic_read_u32(&art_shared->workers[i].watch.end) != ART_END_NOT;
		leaving += told[i];
	}
	if (!OidIsValid(visit))
		visit_since = 0;
	if (!full)
		return count > 0;
	if (!OidIsValid(visit))
		 /* none waits */ ;
	else if (visit_since == 0)
		visit_since = now;
	else if (turn_since(visit_since, now) && leaving-- <= 0)
		end_turn(slots, told, visit);

	/* one for each that waits, but those that are about to leave anyway */
	hash_seq_init(&seq, waiting);
	while ((x = hash_seq_search(&seq)) != NULL)
		if (turn_since(x->since, now) && leaving-- <= 0)
			end_turn(slots, told, x->tenant.db);
	return count > 0 || OidIsValid(visit);
}
