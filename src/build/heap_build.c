/*
 * heap_build.c
 *	  Building a structure from the heap by several processes, one after the
 *	  other or side by side: who reads which blocks, and what is left when one
 *	  of them goes away.
 *
 * A build has at most one owner and any number of helpers.  Each claims a
 * range of heap blocks and reads it.  It collects the keys in a run of its
 * own, and remembers which ranges they came from until the run is loaded.  A
 * process that leaves before that, for whatever reason, gives these ranges
 * back.  The structure stays BUILDING, and the next process that needs it goes
 * on.  The owner publishes READY when no block was never given out, no range
 * was given back, and no helper is in it.
 *
 * Why what one participant read stays good while another goes on, perhaps much
 * later:
 *
 * - The heap's size is read once, after BUILDING was published.  A process
 *   that stores a row from then on sees BUILDING (or READY) and inserts the
 *   entry itself.  One that saw ABSENT had stored its row before, below that
 *   size.  This holds as long as the generation does, whoever owns the build.
 * - A page is read atomically, under its share lock; the same (key, TID) twice
 *   is one entry.  So reading a range twice is harmless, and whenever it is
 *   unclear whether a range was claimed or given back, it counts as not read.
 * - A TID that was read is not given to another row before VACUUM has called
 *   ambulkdelete.  That waits while the state is BUILDING, owner or none, or
 *   discards the structure (art_wait_not_building).  Keys that a participant
 *   has collected and not loaded then are STALE.
 * - Each participant takes the horizon below which rows are dead for itself,
 *   after BUILDING, under a snapshot of its own.  An older one only keeps
 *   more; a newer one leaves out rows that nobody can see any more.  So both
 *   may be renewed between two pages, and what is read of a page is judged by
 *   one horizon.
 * - Between two participants VACUUM may truncate the heap: blocks that it found
 *   empty, so their rows are nobody's.  A participant does not read beyond the
 *   size it finds; its lock on the heap keeps truncation out from then on.
 *
 * Lost is what dies with the process in the middle of this: that is a crash,
 * after which there is no structure.
 *
 * src/build/README.md: Builds
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/interrupt.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"
#include "build/build.h"

#define ART_PART_RANGES		16	/* claimed and not loaded, at most */
#define ART_CLAIM_MIN		16	/* blocks */
#define ART_CLAIM_MAX		1024
#define ART_FLUSH_FIRST_US	50000	/* of a build in the foreground */
#define ART_FLUSH_SLOW_US	1000000	/* in the background, of a slow expression: */
#define ART_FLUSH_SLOW_PART 100		/* so much less time than its keys took */
#define ART_FLUSH_LAST_US	5000	/* too late to load anything */
#define ART_FLUSH_KEY_US	0.7 /* a first guess of what loading a key takes */
#define ART_FLUSH_HOLD_US	250000	/* a cancel waits for a load that is shorter */
#define ART_SIGHT_PAGES		64	/* read under one snapshot, in the background */
#define ART_SIGHT_US		1000000 /* or until it is so old */
#define ART_LOOK_US			20000	/* between two looks for waiters */
#define ART_WORK_US			10000	/* worked between two rests */
#define ART_REST_US			10000000	/* one rest, at most */

/* This process's part in one build. */
struct ArtPart
{
	ArtPart    *next;
	ArtEntry   *entry;			/* NULL: free */
	uint64		gen;
	SubTransactionId subid;
	ArtPartRole role;
	instr_time	start;
	int			nranges;
	uint64		read;			/* blocks of them that count as done */
	ArtBlockRange ranges[ART_PART_RANGES + 1];
};

static ArtPart *parts = NULL;
static ArtPart part_pool[16];	/* nested builds are rare; no allocation */

int			art_build_priority = 100;	/* per cent of the time, in the background */

static uint32 wait_event_delay = 0;

/* ---- parts ---- */

/*
 * ERROR when this process takes part in too many builds already (an index
 * whose expression needs another index, and so on).  Call it before a build is
 * begun, so that art_part_begin cannot fail.
 */
void
art_part_room(void)
{
	for (int i = 0; i < (int) lengthof(part_pool); i++)
		if (part_pool[i].entry == NULL)
			return;
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("too many nested art index builds")));
}

ArtPart *
art_part_begin(ArtEntry *e, uint64 gen, ArtPartRole role)
{
	ArtPart    *p = NULL;

	for (int i = 0; i < (int) lengthof(part_pool) && !p; i++)
		if (part_pool[i].entry == NULL)
			p = &part_pool[i];
	Assert(p != NULL);
	p->gen = gen;
	p->subid = GetCurrentSubTransactionId();
	p->role = role;
	p->nranges = 0;
	p->read = 0;
	INSTR_TIME_SET_CURRENT(p->start);
	p->entry = e;
	p->next = parts;
	parts = p;
	return p;
}

bool
art_part_of(const ArtEntry *e)
{
	for (ArtPart *p = parts; p; p = p->next)
		if (p->entry == e &&
			pg_atomic_read_u64(&((ArtEntry *) e)->word) == ART_WORD(p->gen, ART_BUILDING))
			return true;
	return false;
}

/* Does this process take part in building anything now? */
bool
art_takes_part(void)
{
	return parts != NULL;
}

/*
 * Give one range back: it joins the blocks never given out, or a range given
 * back before, or is kept as one more.  False: no place.
 *
 * Locks: partition lock held, exclusive.
 */
static bool
give_back_range(ArtEntry *e, ArtBlockRange r)
{
	if (r.end == e->next_block)
	{
		e->next_block = r.first;
		return true;
	}
	for (int i = 0; i < e->nredo; i++)
	{
		if (e->redo[i].end == r.first)
		{
			e->redo[i].end = r.end;
			return true;
		}
		if (e->redo[i].first == r.end)
		{
			e->redo[i].first = r.first;
			return true;
		}
	}
	if (e->nredo == ART_MAX_REDO)
		return false;
	e->redo[e->nredo++] = r;
	return true;
}

/*
 * Locks: takes the partition lock, exclusive.
 */
void
art_part_end(ArtPart *part)
{
	ArtEntry   *e = part->entry;
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	instr_time	spent;

	if (part->role == ART_PART_OWNER && art_watch_end() == ART_END_STUCK)
		art_entry_stuck(e, part->gen);
	if (part->role == ART_PART_AMBUILD)
		art_entry_fail(e, part->gen, ART_WHY_ERROR, "build was aborted");
	else
	{
		INSTR_TIME_SET_CURRENT(spent);
		INSTR_TIME_SUBTRACT(spent, part->start);

		art_lock(lock, LW_EXCLUSIVE);
		if (pg_atomic_read_u64(&e->word) == ART_WORD(part->gen, ART_BUILDING))
		{
			bool		kept = true;

			for (int i = 0; i < part->nranges && kept; i++)
				kept = give_back_range(e, part->ranges[i]);
			pg_atomic_fetch_sub_u64(&e->blocks_done, (int64) part->read);
			if (part->role == ART_PART_HELPER)
				e->helpers--;
			else
			{
				e->owner_pid = 0;
				e->spent_ms += INSTR_TIME_GET_MILLISEC(spent);
			}
			if (!kept || !e->resumable)
				art_entry_discard(e);
		}
		art_unlock(lock);
	}

	for (ArtPart **link = &parts; *link; link = &(*link)->next)
		if (*link == part)
		{
			*link = part->next;
			break;
		}
	part->entry = NULL;
}

void
art_own_build_end(ArtEntry *e, uint64 gen)
{
	for (ArtPart *p = parts; p; p = p->next)
		if (p->entry == e && p->gen == gen)
		{
			art_part_end(p);
			return;
		}
}

void
art_own_builds_abort(SubTransactionId subid, bool all)
{
	ArtPart    *next;

	for (ArtPart *p = parts; p; p = next)
	{
		next = p->next;
		if (all || p->subid == subid)
			art_part_end(p);
	}
}

void
art_own_builds_exit(void)
{
	art_own_builds_abort(InvalidSubTransactionId, true);
}

void
art_own_builds_reparent(SubTransactionId subid, SubTransactionId parent)
{
	for (ArtPart *p = parts; p; p = p->next)
		if (p->subid == subid)
			p->subid = parent;
}

double
art_part_spent(const ArtPart *part)
{
	instr_time	spent;

	INSTR_TIME_SET_CURRENT(spent);
	INSTR_TIME_SUBTRACT(spent, part->start);
	return part->entry->spent_ms + INSTR_TIME_GET_MILLISEC(spent);
}

/* ---- ranges ---- */

typedef enum Claim
{
	CLAIM_RANGE,
	CLAIM_NONE,					/* all blocks are given out */
	CLAIM_LEAVE,				/* a helper, and the owner is gone */
	CLAIM_GONE
} Claim;

/*
 * Is there a block that was not given out, or was given back?
 *
 * Locks: partition lock held, in any mode.
 */
static bool
blocks_left(const ArtEntry *e)
{
	return e->nredo > 0 || e->next_block < e->nblocks;
}

/*
 * Claim a range, which becomes part of what this process has.  There is room
 * for it.
 *
 * Claims are large in the middle, so that a run is of few ranges.  They are
 * small towards the end, so that all participants end together.
 *
 * Locks: takes the partition lock, exclusive.
 * Order: the range is part of "part" before the entry gives it away.
 * Returns: CLAIM_GONE or CLAIM_LEAVE, and the build is no longer this
 * process's to work on.
 */
static Claim
claim_range(ArtPart *part, ArtBlockRange *r)
{
	ArtEntry   *e = part->entry;
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	Claim		result = CLAIM_RANGE;
	BlockNumber left = 0;
	BlockNumber size;

	art_lock(lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&e->word) != ART_WORD(part->gen, ART_BUILDING))
		result = CLAIM_GONE;
	else if (part->role == ART_PART_HELPER && !art_owner_alive(e))
		result = CLAIM_LEAVE;
	else if (!blocks_left(e))
		result = CLAIM_NONE;
	else
	{
		if (e->next_block < e->nblocks)
			left = e->nblocks - e->next_block;
		for (int i = 0; i < e->nredo; i++)
			left += e->redo[i].end - e->redo[i].first;
		size = left / (4 * (e->helpers + 1));
		size = Min(Max(size, ART_CLAIM_MIN), ART_CLAIM_MAX);

		if (e->nredo > 0)
			*r = e->redo[e->nredo - 1];
		else
		{
			r->first = e->next_block;
			r->end = e->nblocks;
		}
		if (r->end - r->first > size)
			r->end = r->first + size;

		/* ours first: should we die here, it is only read twice */
		if (part->nranges > 0 && part->ranges[part->nranges - 1].end == r->first)
			part->ranges[part->nranges - 1].end = r->end;
		else
		{
			part->ranges[part->nranges] = *r;
			part->nranges++;
		}
		pg_compiler_barrier();

		if (e->nredo == 0)
			e->next_block = r->end;
		else if (e->redo[e->nredo - 1].end == r->end)
			e->nredo--;
		else
			e->redo[e->nredo - 1].first = r->end;
	}
	art_unlock(lock);
	return result;
}

/*
 * Everything before block "next" is in the structure; of the range that ends
 * at "end", this process still has the rest.
 */
static void
range_loaded(ArtPart *part, BlockNumber next, BlockNumber end)
{
	part->nranges = 0;
	part->read = 0;
	if (next < end)
	{
		part->ranges[0].first = next;
		part->ranges[0].end = end;
		part->nranges = 1;
	}
}

/*
 * Locks: the build's place and the helpers' are held, both exclusive; takes
 * the partition lock, shared.
 */
bool
art_part_done(ArtPart *part)
{
	ArtEntry   *e = part->entry;
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	bool		done;

	art_lock(lock, LW_SHARED);
	done = pg_atomic_read_u64(&e->word) == ART_WORD(part->gen, ART_BUILDING) &&
		e->resumable && e->helpers == 0 && !blocks_left(e) && part->nranges == 0;
	art_unlock(lock);
	return done;
}

/*
 * Locks: the build's place is held, exclusive; takes the partition lock,
 * exclusive.
 */
void
art_part_blocks(ArtPart *part, BlockNumber nblocks)
{
	ArtEntry   *e = part->entry;
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);

	art_lock(lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&e->word) == ART_WORD(part->gen, ART_BUILDING))
	{
		e->nblocks = nblocks;
		e->next_block = 0;
		e->nredo = 0;
		e->resumable = true;
		pg_atomic_write_u64(&e->blocks_total, nblocks);
	}
	art_unlock(lock);
}

/*
 * Locks: the helpers' place is held, shared; takes the partition lock,
 * exclusive.
 */
ArtPart *
art_part_help(ArtEntry *e)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	uint64		w;
	bool		join;

	art_part_room();
	art_lock(lock, LW_EXCLUSIVE);
	w = pg_atomic_read_u64(&e->word);
	join = ART_WORD_STATE(w) == ART_BUILDING && e->resumable &&
		art_owner_alive(e) && e->owner_pid != MyProcPid && blocks_left(e);
	if (join)
		e->helpers++;
	art_unlock(lock);
	return join ? art_part_begin(e, ART_WORD_GEN(w), ART_PART_HELPER) : NULL;
}

/* ---- who waits for what ---- */

/*
 * Does anybody wait for this lock, in this mode (NoLock: in any)?
 *
 * LockHasWaiters cannot say it of a lock that was taken by the fast path: it
 * would follow a null pointer.  So look at every process that waits, and for
 * which lock.  The partition's lock keeps the waiters of this very lock in
 * place; other tags are only compared.
 *
 * Locks: takes one partition lock of core's lock manager, shared.
 */
bool
art_lock_awaited(const LOCKTAG *tag, LOCKMODE mode)
{
	LWLock	   *lock = LockHashPartitionLock(LockTagHashCode(tag));
	bool		found = false;

	LWLockAcquire(lock, LW_SHARED);
	for (uint32 i = 0; i < ProcGlobal->allProcCount && !found; i++)
	{
		PGPROC	   *proc = GetPGProcByNumber(i);
		LOCK	   *l = *(LOCK *volatile *) &proc->waitLock;

		found = l != NULL && memcmp(&l->tag, tag, sizeof(LOCKTAG)) == 0 &&
			(mode == NoLock || proc->waitLockMode == mode);
	}
	LWLockRelease(lock);
	return found;
}

TimestampTz
art_statement_deadline(void)
{
	TimestampTz t = 0;

	if (get_timeout_active(STATEMENT_TIMEOUT))
		t = get_timeout_finish_time(STATEMENT_TIMEOUT);
#if ART_HAS_TRANSACTION_TIMEOUT
	if (get_timeout_active(TRANSACTION_TIMEOUT))
	{
		TimestampTz x = get_timeout_finish_time(TRANSACTION_TIMEOUT);

		if (t == 0 || x < t)
			t = x;
	}
#endif
	return t;
}

/* ---- the pace of one participant ---- */

/*
 * When to load the keys that were collected, before the run is full.  A build
 * in the foreground may be cancelled any time, and keys not loaded by then
 * were read for nothing.  So it loads soon at first, then at twice the
 * distance each time.  Where it is known when the statement will be cancelled,
 * it loads in time before that.
 *
 * A build in the background that nobody waits for makes way for a process that
 * waits for one of its locks.  It honours vacuum_cost_delay, and works only in
 * the share of the time that artidx.build_priority says.  It leaves when its
 * turn is over, or is cancelled in the middle of a slow expression.  So where
 * keys come slowly, it loads what it has every second.
 */
typedef struct Pace
{
	bool		early;
	TimestampTz deadline;		/* 0: none */
	TimestampTz next;
	int64		interval;

	bool		gives_way;
	bool		evaluates;		/* the index has expressions or a predicate */
	TimestampTz look;
	bool		awaited;		/* somebody waited for the build */
	int			cost;
	TimestampTz rested;			/* it works since then */
	LOCKTAG		build_tag;		/* whose owner is waited for, */
	LOCKTAG		helpers_tag;	/* or who helps it */
	LOCKTAG		heap_tag;
	LOCKTAG		index_tag;
	LOCKTAG		xact_tag;
} Pace;

/*
 * Start to measure: when to flush, when to look whether somebody waits for us.
 */
static void
pace_begin(Pace *p, Relation heap, Relation index, bool gives_way)
{
	TimestampTz now = GetCurrentTimestamp();
	VirtualTransactionId vxid;

	memset(p, 0, sizeof(*p));
	p->early = !gives_way;
	p->deadline = art_statement_deadline();
	p->interval = gives_way ? ART_FLUSH_SLOW_US : ART_FLUSH_FIRST_US;
	p->next = now + p->interval;
	p->gives_way = gives_way;
	p->evaluates = !art_index_is_plain(index);
	p->look = now;
	p->rested = now;
	art_place_tag(index, ART_PLACE_BUILD, &p->build_tag);
	art_place_tag(index, ART_PLACE_HELPERS, &p->helpers_tag);
	SET_LOCKTAG_RELATION(p->heap_tag, heap->rd_lockInfo.lockRelId.dbId,
						 heap->rd_lockInfo.lockRelId.relId);
	SET_LOCKTAG_RELATION(p->index_tag, index->rd_lockInfo.lockRelId.dbId,
						 index->rd_lockInfo.lockRelId.relId);
	GET_VXID_FROM_PGPROC(vxid, *MyProc);
	SET_LOCKTAG_VIRTUALTRANSACTION(p->xact_tag, vxid);
}

/*
 * How long a load of that many keys may take.  The guess lies in the entry,
 * for a statement that was cancelled has no time to learn.  It is read and
 * written without a lock.
 */
static int64
load_us(const ArtEntry *e, uint64 pending)
{
	double		us = e->load_key_us;

	return (int64) ((us > 0 ? us : ART_FLUSH_KEY_US) * (double) pending);
}

/*
 * One large load just before the end is better than several: the more keys go
 * to one leaf at once, the less each costs.
 */
static bool
pace_flush_due(const Pace *p, const ArtEntry *e, uint64 pending, TimestampTz now)
{
	if (pending == 0)
		return false;
	if (p->deadline != 0)
	{
		int64		left = p->deadline - now;

		if (left < ART_FLUSH_LAST_US)
			return false;
		if (left < load_us(e, pending) + load_us(e, pending) / 8 + ART_FLUSH_LAST_US / 2)
			return true;
	}
	if (now < p->next)
		return false;
	return p->early ||
		(p->evaluates && load_us(e, pending) * ART_FLUSH_SLOW_PART <
		 (now - p->next + ART_FLUSH_SLOW_US) * art_build_priority / 100);
}

/*
 * Load, and learn how long that takes.  Of the range that ends at "end" the
 * blocks from "next" on are still to be read.  False: no memory.
 *
 * A cancel that comes meanwhile has to wait until a short load is done.  Else
 * the build would lose all that this statement has read.  Under one short
 * time-out after the other it might never come to an end.
 */
static bool
pace_flush(Pace *p, ArtPart *part, ArtRun *run, TimestampTz now,
		   BlockNumber next, BlockNumber end)
{
	ArtEntry   *e = part->entry;
	uint64		pending = art_run_pending(run);
	double		guess = e->load_key_us > 0 ? e->load_key_us : ART_FLUSH_KEY_US;
	bool		hold = p->early && load_us(e, pending) <= ART_FLUSH_HOLD_US;
	TimestampTz then;

	if (hold)
		HOLD_CANCEL_INTERRUPTS();	/* an ERROR resets it */
	art_run_flush(run);
	if (!art_run_nomem(run))
		range_loaded(part, next, end);
	if (hold)
		RESUME_CANCEL_INTERRUPTS();

	if (p->early)
	{
		then = GetCurrentTimestamp();
		/* few keys say little */
		if (pending >= 1000)
			e->load_key_us = Max((double) (then - now) / (double) pending,
								 guess * 0.7);
		p->interval *= 2;
		p->next = then + p->interval;
	}
	else
		p->next = GetCurrentTimestamp() + p->interval;
	return !art_run_nomem(run);
}

/*
 * In a background build: does somebody want a lock that it is in the way of,
 * while nobody waits for the build?  Every lock that its share locks on heap
 * and index are in the way of is an AccessExclusiveLock.  A command that drops
 * or makes an index concurrently, on any table of the database, waits for our
 * transaction: for its locks or its snapshot.  Or is its turn over?
 */
static bool
pace_make_way(Pace *p, TimestampTz now)
{
	bool		owner;			/* or who builds with it is waited for */

	if (!p->gives_way || now < p->look)
		return false;
	p->look = now + ART_LOOK_US;
	if (art_watch_end() == ART_END_TURN)
		return true;
	owner = art_lock_awaited(&p->build_tag, NoLock);
	/* an owner that waits for us may itself be in the way */
	p->awaited = owner || art_lock_awaited(&p->helpers_tag, NoLock);
	return !owner &&
		(art_lock_awaited(&p->heap_tag, AccessExclusiveLock) ||
		 art_lock_awaited(&p->index_tag, AccessExclusiveLock) ||
		 art_lock_awaited(&p->xact_tag, NoLock));
}

/* The settings may change while a long build goes on. */
static void
pace_reload(void)
{
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/* Sleep between two pages, for so many ms. */
static void
pace_sleep(double ms)
{
	(void) art_doze((long) Max(ms, 1), ART_WAIT_EVENT(wait_event_delay, "ArtidxBuildDelay"));
}

/*
 * Does a statement wait for the build, for a lock or by looking at it
 * (art_request_worker)?  Read without a lock: an old value does no harm.
 */
static bool
pace_hurry(const Pace *p, const ArtEntry *e)
{
	return p->awaited || e->wanted == ART_WANT_BUILD;
}

/* ---- the snapshot of one participant ---- */

/*
 * The snapshot keeps the value that a row's TOAST pointer points to, from the
 * moment the row is read until its key is made.  The functions in the index's expressions
 * want one, too.  After that the key is a copy.  So a build in the background
 * takes a new one now and then, between two pages.  Else VACUUM could remove
 * nothing, in the whole database, that was deleted since the build began.  A
 * statement has a snapshot of its own anyway.
 */
typedef struct Sight
{
	Snapshot	snapshot;
	bool		renews;
	int			pages;			/* read under it */
	TimestampTz until;
} Sight;

static void
sight_take(Sight *s)
{
	s->snapshot = RegisterSnapshot(GetTransactionSnapshot());
	PushActiveSnapshot(s->snapshot);
	s->pages = 0;
	if (s->renews)
		s->until = GetCurrentTimestamp() + ART_SIGHT_US;
}

static void
sight_drop(Sight *s)
{
	PopActiveSnapshot();
	UnregisterSnapshot(s->snapshot);
}

/*
 * Between two pages.  The horizon goes with the snapshot: it must be no newer, and
 * an old one would be compared with ever newer transactions.
 */
static void
sight_renew(Sight *s, ArtHeapReader *reader, TimestampTz now)
{
	if (!s->renews || (++s->pages < ART_SIGHT_PAGES && now < s->until))
		return;
	sight_drop(s);
	InvalidateCatalogSnapshot();	/* it would hold the horizon as well */
	sight_take(s);
	art_heap_horizon(reader);
}

/* ---- rests ---- */

/*
 * artidx.build_priority: after some work, rest until it was that share of the time.
 * Meanwhile see whether somebody waits, as between two pages.  True: make way.
 */
static bool
rest_share(Pace *p, const ArtEntry *e, Sight *sight, ArtHeapReader *reader, TimestampTz now)
{
	const int64 worked = now - p->rested;
	const TimestampTz began = now;
	bool		leave = false;

	if (worked < ART_WORK_US)
		return false;
	while (art_build_priority < 100 && !pace_hurry(p, e) && !leave)
	{
		int64		left = Min(worked * (100 - art_build_priority) / art_build_priority,
							   ART_REST_US) - (now - began);

		/* now < began: somebody has set the clock */
		if (left <= 0 || now < began)
			break;
		pace_sleep(Min((double) left / 1000, 100));
		pace_reload();
		now = GetCurrentTimestamp();
		leave = pace_make_way(p, now);
		sight_renew(sight, reader, now);
	}
	p->rested = GetCurrentTimestamp();
	return leave;
}

/*
 * The delays of a background build that nobody waits for.  That by cost is as
 * VACUUM's, each page at the price of a miss.  True: make way.
 */
static bool
delay_page(Pace *p, const ArtEntry *e, Sight *sight, ArtHeapReader *reader, TimestampTz now)
{
	double		ms;

	if (!p->gives_way)
		return false;
	pace_reload();
	if (rest_share(p, e, sight, reader, now))
		return true;
	if (pace_hurry(p, e) || VacuumCostDelay <= 0)
		return false;
	p->cost += VacuumCostPageMiss;
	if (p->cost < VacuumCostLimit)
		return false;
	ms = VacuumCostDelay * p->cost / VacuumCostLimit;
	p->cost = 0;
	pace_sleep(Min(ms, VacuumCostDelay * 4));
	return false;
}

/* ---- reading ---- */

static void
build_row(void *arg, const uint8 *key, uint32 keylen, uint64 tid)
{
	art_run_add((ArtRun *) arg, key, keylen, tid, true);
}

/*
 * Claim, read, load, until nothing is left to claim.
 */
static ArtPartEnd
build_claimed(ArtPart *part, Relation heap, ArtHeapReader *reader, ArtRun *run,
			  Pace *pace, Sight *sight, bool progress)
{
	ArtEntry   *e = part->entry;
	BlockNumber size = RelationGetNumberOfBlocks(heap);

	for (;;)
	{
		ArtBlockRange r;
		Claim		c;

		if (part->nranges == ART_PART_RANGES)
		{
			if (!pace_flush(pace, part, run, GetCurrentTimestamp(), 0, 0))
				return ART_PART_NOMEM;
		}

		c = claim_range(part, &r);
		if (c != CLAIM_RANGE)
		{
			if (c == CLAIM_GONE)
				return ART_PART_GONE;
			if (!pace_flush(pace, part, run, GetCurrentTimestamp(), 0, 0))
				return ART_PART_NOMEM;
			return c == CLAIM_LEAVE ? ART_PART_LEFT : ART_PART_DONE;
		}

		for (BlockNumber blkno = r.first; blkno < r.end; blkno++)
		{
			uint64		before = art_run_pending(run);
			TimestampTz now;
			bool		leave;

			CHECK_FOR_INTERRUPTS();
			if (blkno < size)
				art_heap_page(reader, blkno, build_row, run);
			if (art_run_nomem(run))
				return ART_PART_NOMEM;

			/*
			 * Was the run full, and loaded, meanwhile?  Then all before this
			 * page is in, and perhaps some of it.
			 */
			if (art_run_pending(run) < before)
				range_loaded(part, blkno, r.end);
			part->read++;
			pg_atomic_fetch_add_u64(&e->blocks_done, 1);
			if (progress && blkno % 64 == 0)
				pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE,
											 (int64) pg_atomic_read_u64(&e->blocks_done));

			now = GetCurrentTimestamp();
			leave = pace_make_way(pace, now) || delay_page(pace, e, sight, reader, now);
			if (leave || pace_flush_due(pace, e, art_run_pending(run), now))
			{
				if (!pace_flush(pace, part, run, now, blkno + 1, r.end))
					return ART_PART_NOMEM;
				if (leave)
					return ART_PART_LEFT;
			}
			sight_renew(sight, reader, now);
		}
	}
}

ArtPartEnd
art_part_work(ArtPart *part, Relation heap, Relation index, ArtRoomFor room,
			  bool gives_way)
{
	ArtEntry   *e = part->entry;
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "art build",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	bool		progress = MyBEEntry != NULL &&
		MyBEEntry->st_progress_command == PROGRESS_COMMAND_INVALID;
	ArtKeyDesc *kd = art_keydesc_build(index, cxt);
	Sight		sight = {NULL};
	ArtHeapReader *reader;
	ArtRun	   *run;
	Pace		pace;
	ArtPartEnd	end;

	if (progress)
	{
		pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX,
									  RelationGetRelid(heap));
		pgstat_progress_update_param(PROGRESS_CREATEIDX_COMMAND,
									 PROGRESS_CREATEIDX_COMMAND_CREATE);
		pgstat_progress_update_param(PROGRESS_CREATEIDX_INDEX_OID,
									 RelationGetRelid(index));
		pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE,
									 PROGRESS_CREATEIDX_PHASE_BUILD);
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
									 ART_PHASE_HEAP_SCAN);
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL,
									 (int64) pg_atomic_read_u64(&e->blocks_total));
	}

	sight.renews = gives_way && !ActiveSnapshotSet();
	sight_take(&sight);

	/* the horizon it takes is no newer than our registered snapshot */
	reader = art_heap_begin(heap, index, kd, ART_HEAP_BUILD, NULL);
	run = art_run_begin(index, kd, part->gen, e, false, heap, room);
	pace_begin(&pace, heap, index, gives_way);

	end = build_claimed(part, heap, reader, run, &pace, &sight, progress);

	(void) art_run_end(run);	/* nothing is pending, or nobody wants it */
	art_heap_end(reader);
	sight_drop(&sight);
	if (progress)
		pgstat_progress_end_command();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return end;
}
