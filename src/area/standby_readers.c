/*
 * standby_readers.c
 *	  What a follower tells those who read the structures that it keeps, on a
 *	  standby.
 *
 * On a standby one process a database, the follower, reads the WAL that was
 * replayed, and keeps the structures as the table's records ask.  Such a
 * structure is FOLLOWED.  That is no READY: only scans that come by here use it.
 * Its position says up to where all WAL is in the structures.  A scan takes its
 * snapshot, then reads the position of replay, then waits for the follower to come there.
 * All that its snapshot sees was replayed before that.
 *
 * A structure whose table could not be locked is "behind": the follower passed
 * records whose rows are not in it.  It is marked before the position moves.  So
 * a scan that reads the position, and then that mark, knows.
 *
 * When recovery has ended the follower does its last steps, and FOLLOWED becomes
 * READY.  Until then nobody inserts, removes, or looks under a snapshot that is
 * not of recovery: they wait, or close the structure.
 *
 * src/follow/README.md: On a standby
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"

#define ART_FOLLOW_POLL_MS	10	/* it wakes the follower again */
#define ART_FOLLOW_LAG		(16 * 1024 * 1024)	/* bytes behind: plans go without */
#define ART_SETTLE_MS		30000	/* the last steps after recovery */

static uint32 wait_event_follow = 0;

/* ---- places ---- */

/* Nothing is counted, and no WAL was taken, of a follower that begins. */
static void
reset_follower(ArtFollower *f)
{
	pg_atomic_init_u64(&f->position, 0);
	pg_atomic_init_u64(&f->added, 0);
	pg_atomic_init_u64(&f->dead, 0);
	pg_atomic_init_u64(&f->sweeps, 0);
	pg_atomic_init_u64(&f->swept, 0);
	pg_atomic_init_u64(&f->swept_us, 0);
	pg_atomic_init_u64(&f->waits, 0);
	pg_atomic_init_u64(&f->waited_us, 0);
	pg_atomic_init_u64(&f->given_up, 0);
	pg_atomic_init_u64(&f->as_of, (uint64) GetCurrentTimestamp());
	pg_atomic_init_u64(&f->stood_at, 0);
}

/*
 * Nobody else runs.
 */
void
art_followers_clear(void)
{
	for (int i = 0; i < ART_NWORKERS; i++)
	{
		reset_follower(&art_shared->followers[i]);
		ConditionVariableInit(&art_shared->followers[i].moved);
	}
	art_shared->follow_asked = false;
}

ArtFollower *
art_follower_begin(int slot)
{
	reset_follower(&art_shared->followers[slot]);
	return &art_shared->followers[slot];
}

/* Is that the slot of this database's follower, which runs? */
static bool
is_mine(const ArtWorkerSlot *s)
{
	return s->dboid == MyDatabaseId && s->pid != 0 && (s->jobs & ART_JOB_FOLLOW) != 0;
}

static const ArtWorkerSlot *
slot_of_follower(const ArtFollower *f)
{
	return &art_shared->workers[f - art_shared->followers];
}

/*
 * The follower of this database; NULL: none.  It may be gone a moment later: then
 * its structures are.
 *
 * Locks: takes the chunk lock, shared, unless the slot of last time has it still.
 */
static ArtFollower *
my_follower(void)
{
	static int	last = 0;
	ArtFollower *f = NULL;

	if (likely(is_mine(&art_shared->workers[last])))
		return &art_shared->followers[last];
	art_lock(art_chunk_lock, LW_SHARED);
	for (int i = 0; i < ART_NWORKERS && f == NULL; i++)
		if (is_mine(&art_shared->workers[i]))
		{
			last = i;
			f = &art_shared->followers[i];
		}
	art_unlock(art_chunk_lock);
	return f;
}

/* Make it look now.  A process latch is always there. */
static void
wake_follower(const ArtFollower *f)
{
	SetLatch(&GetPGProcByNumber(slot_of_follower(f)->procno)->procLatch);
}

/*
 * Locks: takes the chunk lock, exclusive.
 */
void
art_follow_again(void)
{
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	art_shared->follow_asked = true;
	art_unlock(art_chunk_lock);
}

/*
 * Locks: takes the chunk lock: shared to look, exclusive to ask.
 */
void
art_follow_ask(void)
{
	if (art_build_workers > 0 && my_follower() == NULL && !art_shared->follow_asked)
		art_follow_again();
}

/* ---- scans ---- */

/*
 * Was the index there, and valid, before every snapshot of this transaction?  It may lack
 * what an older one sees: members of HOT chains that are older than the index.
 * CREATE INDEX CONCURRENTLY waited for the primary's snapshots only.
 */
static bool
old_enough(Relation index)
{
	return TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
								 TransactionXmin);
}

/*
 * Does the structure belong to the table's present file?  ALTER TABLE ... SET TABLESPACE
 * gives it another, and leaves the index its own.
 */
static bool
same_heap(Relation index, const ArtEntry *e)
{
	Relation	heap = RelationIdGetRelation(index->rd_index->indrelid);
	bool		same;

	if (!RelationIsValid(heap))
		return false;
	same = ART_REL_SPC(heap) == e->heap_spc && ART_REL_NUMBER(heap) == e->heap_rel;
	RelationClose(heap);
	return same;
}

/*
 * Is all WAL before target in the structure?
 *
 * Order: the mark is read after the position, which moves after it was set.
 */
static bool
caught_up(const ArtEntry *e, ArtFollower *f, XLogRecPtr target)
{
	if (pg_atomic_read_u64(&f->position) < target)
		return false;
	pg_read_barrier();
	return !*(volatile const bool *) &e->behind;
}

/* Has somebody waited in vain since the follower came to its position? */
static bool
stands_still(ArtFollower *f)
{
	uint64		stood_at = pg_atomic_read_u64(&f->stood_at);

	return stood_at != 0 && stood_at == pg_atomic_read_u64(&f->position);
}

/* A scan waits for this. */
typedef struct Target
{
	ArtEntry   *e;
	uint64		gen;
	ArtFollower *f;
	XLogRecPtr	lsn;
	bool		reached;		/* the follower has come there */
} Target;

/* Is the wait over: did the follower come there, or is it gone?  If not it is woken. */
static bool
is_over(void *arg)
{
	Target	   *t = arg;

	t->reached = caught_up(t->e, t->f, t->lsn);
	if (t->reached || !is_mine(slot_of_follower(t->f)) ||
		pg_atomic_read_u64(&t->e->word) != ART_WORD(t->gen, ART_FOLLOWED))
		return true;
	wake_follower(t->f);
	return false;
}

/*
 * Wait for that, for some time.  When the follower does not move at all meanwhile,
 * nobody else waits until it does.
 *
 * Locks: none is held that replay could wait for but the scan's own.
 */
static bool
await_follower(Target *t, int ms)
{
	ArtFollower *f = t->f;
	TimestampTz begin = GetCurrentTimestamp();
	uint64		stood_at = pg_atomic_read_u64(&f->position);

	if (ms <= ART_FOLLOW_SCAN_MS && stands_still(f))
	{
		wake_follower(f);
		pg_atomic_fetch_add_u64(&f->given_up, 1);
		return false;
	}
	pg_atomic_fetch_add_u64(&f->waits, 1);
	if (!art_wait_for(is_over, t, TimestampTzPlusMilliseconds(begin, ms), ART_FOLLOW_POLL_MS,
					  &f->moved, ART_WAIT_EVENT(wait_event_follow, "ArtidxFollower")) &&
		stood_at < t->lsn && pg_atomic_read_u64(&f->position) == stood_at)
		pg_atomic_write_u64(&f->stood_at, stood_at);
	pg_atomic_fetch_add_u64(&f->waited_us, (int64) (GetCurrentTimestamp() - begin));
	if (!t->reached)
		pg_atomic_fetch_add_u64(&f->given_up, 1);
	return t->reached;
}

/*
 * Locks: takes the chunk lock, shared, once in a while.
 * Order: the word, then the position of replay, the follower's, the mark, and the word
 * again.  A follower that goes closes its structures before another takes its
 * place.
 */
bool
art_followed_ready(Relation index, ArtEntry *e, uint64 *gen, int ms)
{
	Target		t = {.e = e};

	if (art_entry_state(e, gen) != ART_FOLLOWED || !RecoveryInProgress() ||
		art_build_workers == 0 || !old_enough(index) || !same_heap(index, e))
		return false;
	t.f = my_follower();
	if (t.f == NULL)
		return false;
	t.gen = *gen;
	t.lsn = GetXLogReplayRecPtr(NULL);
	if (!caught_up(e, t.f, t.lsn) && !await_follower(&t, ms))
		return false;
	pg_memory_barrier();
	return pg_atomic_read_u64(&e->word) == ART_WORD(*gen, ART_FOLLOWED);
}

bool
art_followed_plannable(Relation index, ArtEntry *e, uint64 *gen)
{
	ArtFollower *f;
	XLogRecPtr	replayed;

	if (art_entry_state(e, gen) != ART_FOLLOWED || !RecoveryInProgress() ||
		art_build_workers == 0 || e->behind || !old_enough(index) || !same_heap(index, e))
		return false;
	f = my_follower();
	if (f == NULL)
		return false;
	replayed = GetXLogReplayRecPtr(NULL);
	return pg_atomic_read_u64(&f->position) >= replayed ||
		(pg_atomic_read_u64(&f->position) + ART_FOLLOW_LAG >= replayed && !stands_still(f));
}

/*
 * Order: read after art_followed_ready, so after the position, which moves after the mark was set.
 */
bool
art_followed_unswept(const ArtEntry *e)
{
	pg_read_barrier();
	return *(volatile const bool *) &e->unswept;
}

/* ---- after recovery ---- */

/*
 * The caller has the index open and locked.
 *
 * Epoch: enters and leaves, under the lock, when it closes the structure.
 * Locks: takes the partition lock, exclusive, for that.
 */
void
art_followed_settle(ArtEntry *e)
{
	static uint64 since_word = 0;
	static TimestampTz since = 0;
	uint64		w = pg_atomic_read_u64(&e->word);
	TimestampTz now = GetCurrentTimestamp();
	ArtFollower *f;

	if (ART_WORD_STATE(w) != ART_FOLLOWED)
		return;
	if (since_word != w || TimestampDifferenceExceeds(since, now, 10 * ART_SETTLE_MS))
	{
		since_word = w;
		since = now;
	}
	f = my_follower();
	if (f == NULL || TimestampDifferenceExceeds(since, now, ART_SETTLE_MS))
	{
		(void) art_followed_close(e->indexoid, &e->loc, ART_WORD_GEN(w),
								  ART_WHY_RESTART, NULL);
		return;
	}
	wake_follower(f);
	(void) art_doze(2, ART_WAIT_EVENT(wait_event_follow, "ArtidxFollower"));
}
