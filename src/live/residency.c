/*
 * residency.c
 *	  Having a structure READY: who builds it, who waits for whom, what stands
 *	  in the way; and the frame of ambuild.
 *
 * How a build is shared, left and taken over is in heap_build.c.  Two
 * heavyweight locks go with it, so that the deadlock detector sees every wait
 * and an error releases them.  They are tuple locks of the index, of no tuples
 * ("places"):
 *
 * - the build lock, exclusive: the owner's.  A process that needs the
 *   structure waits for it.
 * - the helpers' lock: each helper has it shared.  The owner takes it
 *   exclusive when nothing is left to claim: so it waits for them, and keeps
 *   new ones out while it publishes.
 *
 * The entry alone says which process is the owner: within one parallel group
 * heavyweight locks do not conflict.
 *
 * src/live/README.md: Residency
 * src/build/README.md: Builds
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/parallel.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "build/build.h"
#include "limits/limits.h"
#include "live/background.h"
#include "live/live.h"

/* a scan does not try again what failed */
#define ART_ERROR_RETRY_MS	10000
/* a statement that only a worker can help waits so long for one to begin */
#define ART_AWAIT_WORKER_MS	60000
/* a smaller rest of the heap is read here, and no worker asked */
#define ART_SMALL_BLOCKS	2000
/* VACUUM discards a build that was left after that */
#define ART_LEFT_MS			1000
#define ART_POLL_MS			5

static uint32 wait_event_build = 0;

/* this process is a background worker of ours, and builds */
static bool in_worker = false;

/* ---- errors ---- */

/*
 * Why a lazy build may not be made; NULL: it may.
 */
static const char *
why_not_lazily(Relation index)
{
	if (RecoveryInProgress())
		return "recovery";
	if (!index->rd_index->indisready || !index->rd_index->indislive)
		return "not ready";
	if (IsCatalogRelationOid(index->rd_index->indrelid))
		return "catalog";
	return NULL;
}

/* The same, as an error. */
static void
check_buildable(Relation index)
{
	const char *name = RelationGetRelationName(index);
	const char *why;

	art_require_preload(index);
	why = why_not_lazily(index);
	if (why == NULL)
		return;
	if (strcmp(why, "recovery") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("art index \"%s\" cannot be used during recovery", name),
				 errdetail("Art indexes are built in memory when recovery has ended.")));
	if (strcmp(why, "not ready") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not ready", name),
				 errhint("REINDEX or drop it, unless CREATE INDEX CONCURRENTLY or REINDEX CONCURRENTLY is still at work.")));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("access method \"%s\" does not support indexes on system catalogs",
					ART_AM_NAME)));
}

/* An expression of the index uses the index itself, while we build it. */
static void
check_recursion(Relation index, ArtEntry *e)
{
	if (art_part_of(e))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("index \"%s\" is being built", RelationGetRelationName(index)),
				 errdetail("An expression of the index uses the index itself.")));
}

/* ---- waiting ---- */

/*
 * How long this process may wait for others, and what it waits for: the
 * context of an error.
 */
typedef struct Waiting
{
	ErrorContextCallback callback;
	const char *name;			/* of the index */
	bool		builds;			/* itself */
	TimestampTz until;			/* by lock_timeout; 0: for ever */
} Waiting;

static void
waiting_context(void *arg)
{
	const Waiting *w = (const Waiting *) arg;

	if (w->builds)
		errcontext("while building art index \"%s\"", w->name);
	else
		errcontext("while waiting for art index \"%s\" to be built", w->name);
}

/* lock_timeout counts from here. */
static void
waiting_restart(Waiting *w)
{
	w->until = LockTimeout <= 0 ? 0 :
		TimestampTzPlusMilliseconds(GetCurrentTimestamp(), LockTimeout);
}

/*
 * Begin a wait: the clock of lock_timeout starts, and errors say what was
 * waited for.
 */
static void
waiting_begin(Waiting *w, Relation index)
{
	w->name = RelationGetRelationName(index);
	w->builds = false;
	waiting_restart(w);
	w->callback.callback = waiting_context;
	w->callback.arg = w;
	w->callback.previous = error_context_stack;
	error_context_stack = &w->callback;
}

static void
waiting_end(const Waiting *w)
{
	error_context_stack = w->callback.previous;
}

/*
 * The rest of lock_timeout in ms, for a wait: 0 if there is none.  All the
 * waits for one build count together.  ERROR 55P03 in core's words when it is
 * over.
 */
static int
waiting_left(const Waiting *w)
{
	int64		us;

	if (w->until == 0)
		return 0;
	us = w->until - GetCurrentTimestamp();
	if (us <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("canceling statement due to lock timeout")));
	return (int) (us / 1000) + 1;
}

/*
 * The build lock: whoever needs the structure waits for it.
 *
 * Locks: takes the build's place, exclusive, and leaves it held.
 */
static void
lock_build(const Waiting *w, Relation index)
{
	art_lock_place_for(index, ART_PLACE_BUILD, ExclusiveLock, waiting_left(w));
}

static void
poll_builder(const Waiting *w, long ms)
{
	(void) waiting_left(w);
	(void) art_doze(ms, ART_WAIT_EVENT(wait_event_build, "ArtidxBuild"));
}

/*
 * State and owner as they are now.  Returns the state; *owned: BUILDING, and
 * by somebody who lives.
 *
 * Locks: takes the partition lock, shared.
 */
static ArtState
look_at_owner(ArtEntry *e, uint64 *gen, bool *owned)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	ArtState	state;

	art_lock(lock, LW_SHARED);
	state = art_entry_state(e, gen);
	*owned = state == ART_BUILDING && art_owner_alive(e);
	art_unlock(lock);
	return state;
}

/*
 * Somebody builds it: wait for the end of that, or a moment.
 *
 * Locks: waits for the build's place, exclusive, and lets it go at once.
 */
static void
await_builder(const Waiting *w, Relation index, ArtEntry *e)
{
	bool		owned;

	lock_build(w, index);
	art_unlock_place(index, ART_PLACE_BUILD, ExclusiveLock);

	/* ambuild and the loader of saved files have no build lock */
	if (look_at_owner(e, NULL, &owned) == ART_BUILDING && owned)
		poll_builder(w, ART_POLL_MS);
}

/*
 * A process that needs the structure may take over a build that its owner
 * left.  VACUUM waits a moment for that, then discards it rather than build
 * itself.
 *
 * Locks: waits for the build's place, exclusive, and lets it go at once; takes
 * the partition lock, shared to look and exclusive to discard.
 */
void
art_wait_not_building(Relation index, ArtEntry *e)
{
	uint64		left_gen = 0;
	TimestampTz left_at = 0;
	Waiting		waiting;

	waiting_begin(&waiting, index);
	for (;;)
	{
		uint64		gen;
		bool		owned;
		TimestampTz now;

		if (look_at_owner(e, &gen, &owned) != ART_BUILDING)
			break;
		check_recursion(index, e);
		if (owned)
		{
			left_at = 0;
			await_builder(&waiting, index, e);
			continue;
		}

		now = GetCurrentTimestamp();
		if (left_at == 0 || left_gen != gen)
		{
			left_at = now;
			left_gen = gen;
			(void) art_request_worker(e);
		}
		else if (!e->resumable ||
				 TimestampDifferenceExceeds(left_at, now, ART_LEFT_MS))
		{
			LWLock	   *lock = art_partition(e->loc.db, e->indexoid);

			art_lock(lock, LW_EXCLUSIVE);
			if (pg_atomic_read_u64(&e->word) == ART_WORD(gen, ART_BUILDING) &&
				!art_owner_alive(e))
				art_entry_discard(e);
			art_unlock(lock);
			continue;
		}
		poll_builder(&waiting, ART_POLL_MS);
	}
	waiting_end(&waiting);
}

/* ---- taking a build ---- */

/*
 * A build that failed for memory a moment ago would fail again.
 *
 * Epoch: enters and leaves.
 * Locks: none.  It reads the entry without one: an old value costs a needless
 * try, or a try too few.
 */
static bool
memory_still_full(ArtEntry *e, ArtRoomFor room)
{
	ax_ctx	   *cx = art_ctx();
	ax_memory_info mem;

	if (e->reason != ART_WHY_MEMORY || e->failed_at == 0)
		return false;
	/* who needs it for a unique insert may take more from others */
	if (room == ART_ROOM_UNIQUE && e->failed_room != ART_ROOM_UNIQUE)
		return false;
	if (TimestampDifferenceExceeds(e->failed_at, GetCurrentTimestamp(),
								   ART_MEMORY_RETRY_MS))
		return false;
	ART_CORE_BEGIN();
	(void) ax_poll(cx);
	ax_memory(cx, &mem);
	ART_CORE_END();
	return art_groups_left(e, mem.free_bytes) <= e->failed_free;
}

/*
 * The build (or its beginning) found no memory: ABSENT, and what it would
 * have needed is remembered.
 *
 * Epoch: enters and leaves.
 * Locks: takes the partition lock, exclusive.
 */
static void
fail_nomem(ArtEntry *e, uint64 gen, ArtRoomFor room)
{
	ax_ctx	   *cx = art_ctx();
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	ax_tree_info info;
	ax_memory_info mem;
	bool		have;

	ART_CORE_BEGIN();
	have = gen != 0 && ax_info(cx, e->tree, gen, &info) == AX_OK;
	ax_memory(cx, &mem);
	ART_CORE_END();

	if (gen != 0)
		art_entry_fail(e, gen, ART_WHY_MEMORY, NULL);

	art_lock(lock, LW_EXCLUSIVE);
	if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT &&
		(gen == 0 || e->reason == ART_WHY_MEMORY))
	{
		e->reason = ART_WHY_MEMORY;
		e->full = art_refused();
		e->failed_at = GetCurrentTimestamp();
		e->failed_room = room;
		/* what is free once its own memory is given back, which takes a while */
		e->failed_free = art_groups_left(e, mem.free_bytes);
		if (have)
		{
			e->failed_free += mem.retired_bytes + info.bytes + info.bytes / 64;
			e->last_bytes = Max(e->last_bytes, info.bytes);
		}
	}
	art_unlock(lock);
}

typedef enum Take
{
	TAKE_MINE,
	TAKE_READY,
	TAKE_OTHER,					/* somebody builds who needs no build lock */
	TAKE_FULL,					/* no memory */
	TAKE_AGAIN
} Take;

/*
 * With the build lock held: begin a build, or go on with one that was left.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: the build's place is held, exclusive; takes the partition lock,
 * exclusive.
 * Returns: only with TAKE_MINE is *part set, and the build this process's.
 */
static Take
take_build(Relation index, ArtEntry *e, ArtRoomFor room, uint64 *gen, ArtPart **part)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	bool		full = memory_still_full(e, room);
	ArtOpening	opening;
	ax_status	st = AX_OK;
	Take		result = TAKE_MINE;
	uint64		w;

	art_part_room();
	art_opening(index, &opening);
	art_lock(lock, LW_EXCLUSIVE);
	w = pg_atomic_read_u64(&e->word);
	*gen = ART_WORD_GEN(w);
	if (ART_WORD_STATE(w) == ART_READY)
		result = TAKE_READY;
	else if (ART_WORD_STATE(w) == ART_FOLLOWED ||
			 (ART_WORD_STATE(w) == ART_BUILDING && art_owner_alive(e)))
		result = TAKE_OTHER;
	else if (ART_WORD_STATE(w) == ART_BUILDING && e->resumable)
	{
		art_entry_own(e);
	}
	else
	{
		if (ART_WORD_STATE(w) == ART_BUILDING)
			art_entry_discard(e);	/* its owner died before it began */
		if (full)
			result = TAKE_FULL;
		else if ((st = art_entry_open(e, index, &opening, false, gen)) != AX_OK)
			result = TAKE_AGAIN;
	}
	art_unlock(lock);

	if (result == TAKE_MINE)
		*part = art_part_begin(e, *gen, ART_PART_OWNER);
	else if (st == AX_NOMEM && !art_make_room(index, e, 0, room))
	{
		fail_nomem(e, 0, room);
		result = TAKE_FULL;
	}
	return result;
}

/* ---- building ---- */

/*
 * As the owner: read, load, wait for the helpers, publish.
 *
 * Locks: the build's place is held, exclusive.  When all is claimed it takes
 * the helpers' place, exclusive, which waits for them, and gives it back.
 */
static ArtPartEnd
build_as_owner(Relation index, ArtEntry *e, uint64 gen, ArtPart *part, ArtRoomFor room,
			   bool gives_way)
{
	/* the caller holds a lock on it */
	Relation	heap = table_open(index->rd_index->indrelid, NoLock);
	ArtPartEnd	end;

	if (heap->rd_rel->relam != HEAP_TABLE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" supports only tables of access method \"heap\"",
						ART_AM_NAME)));

	/* after BUILDING was published; only the owner sets it */
	if (!e->resumable)
		art_part_blocks(part, RelationGetNumberOfBlocks(heap));

	for (;;)
	{
		bool		done;

		end = art_part_work(part, heap, index, room, gives_way);
		if (end != ART_PART_DONE)
			break;

		art_lock_place_for(index, ART_PLACE_HELPERS, ExclusiveLock, LockTimeout);
		done = art_part_done(part);
		if (done)
			(void) art_entry_publish_ready(e, gen, ART_BUILD_REBUILD,
										   art_part_spent(part),
										   art_is_uncommitted(index) || art_is_uncommitted(heap));
		art_unlock_place(index, ART_PLACE_HELPERS, ExclusiveLock);
		if (done)
			break;
	}
	table_close(heap, NoLock);
	return end;
}

/*
 * The same, and its end in the entry.  A build that erred or found no memory
 * is over; one that was cancelled is left for others.  Neither the view nor a
 * session that only needs the index may be shown what an error says of other
 * people's rows.
 */
static ArtPartEnd
run_build(Relation index, ArtEntry *e, uint64 gen, ArtPart *part,
		  ArtRoomFor room, bool gives_way)
{
	ArtPartEnd	end;
	MemoryContext cxt = CurrentMemoryContext;
	bool		may_see = in_worker || art_may_see_rows(index);

	PG_TRY();
	{
		end = build_as_owner(index, e, gen, part, room, gives_way);
	}
	PG_CATCH();
	{
		int			code = geterrcode();

		if (!art_ends_statement(code))
		{
			char		text[64];

			snprintf(text, sizeof(text), "SQLSTATE %s, see the server's log",
					 unpack_sql_state(code));
			art_entry_fail(e, gen, ART_WHY_ERROR, text);
		}
		art_part_end(part);
		art_rethrow_hidden(index, may_see, cxt);
	}
	PG_END_TRY();

	if (end == ART_PART_NOMEM)
	{
		LOCKTAG		tag;

		/*
		 * A unique insert that waits for us may take more memory from others
		 * than we: let it go on.
		 */
		art_place_tag(index, ART_PLACE_BUILD, &tag);
		if (gives_way && e->unique && art_lock_awaited(&tag, NoLock))
			end = ART_PART_LEFT;
		else
			fail_nomem(e, gen, room);
	}
	art_part_end(part);
	return end;
}

/* ---- who builds ---- */

/*
 * Ask for a worker, if one can do it: it must see heap and index, be able to
 * lock them, and be worth it.  When one was asked for some time ago and never
 * came, there is none to be had.  "must": nobody else can do it, so it is worth it.
 *
 * Locks: takes the partition lock, exclusive.
 */
static bool
ask_worker(Relation index, ArtEntry *e, bool must)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	Relation	heap;
	BlockNumber left;
	LOCKTAG		tag;
	bool		ok;

	if (!IsUnderPostmaster || IsBinaryUpgrade || in_worker || IsParallelWorker() ||
		RelationUsesLocalBuffers(index) ||
		index->rd_createSubid != InvalidSubTransactionId ||
		ART_REL_NEW_SUBID(index) != InvalidSubTransactionId)
		return false;

	heap = table_open(index->rd_index->indrelid, NoLock);
	left = RelationGetNumberOfBlocks(heap);
	SET_LOCKTAG_RELATION(tag, heap->rd_lockInfo.lockRelId.dbId,
						 heap->rd_lockInfo.lockRelId.relId);
	ok = heap->rd_createSubid == InvalidSubTransactionId &&
		ART_REL_NEW_SUBID(heap) == InvalidSubTransactionId &&
		!ART_LOCK_HELD(&tag, AccessExclusiveLock);
	table_close(heap, NoLock);
	if (!ok)
		return false;

	art_lock(lock, LW_EXCLUSIVE);
	if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_BUILDING && e->resumable)
	{
		left = e->nblocks - Min(e->next_block, e->nblocks);
		for (int i = 0; i < e->nredo; i++)
			left += e->redo[i].end - e->redo[i].first;
	}
	if (e->wanted_at == 0)
		e->wanted_at = GetCurrentTimestamp();
	else if (!must && TimestampDifferenceExceeds(e->wanted_at, GetCurrentTimestamp(),
												 DeadlockTimeout))
		ok = false;
	art_unlock(lock);

	return ok && (must || left >= ART_SMALL_BLOCKS) && art_request_worker(e);
}

/*
 * A worker was asked for.  Wait until a process owns the build, or it is over,
 * but no longer than deadlock_timeout: the deadlock detector does not see this
 * wait.  Nor longer than a quarter of the time that this statement has, or may
 * wait: it must get something done itself if no worker comes.
 */
static void
await_owner(const Waiting *w, ArtEntry *e)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz until = TimestampTzPlusMilliseconds(now, DeadlockTimeout);
	TimestampTz deadline = art_statement_deadline();
	TimestampTz failed_at = e->failed_at;
	bool		owned;

	if (deadline != 0)
		until = Min(until, now + Max(deadline - now, 0) / 4);
	if (w->until != 0)
		until = Min(until, now + Max(w->until - now, 0) / 4);
	while (look_at_owner(e, NULL, &owned) != ART_READY && !owned &&
		   e->failed_at == failed_at && GetCurrentTimestamp() < until)
		poll_builder(w, ART_POLL_MS);
}

/*
 * Does a scan neither wait for it nor build it?  A scan has another way.
 */
static bool
out_for_scans(ArtEntry *e)
{
	if (art_entry_state(e, NULL) != ART_ABSENT)
		return false;
	return (e->sealed && !art_unseal_now(e)) || e->reason == ART_WHY_UNLOADED ||
		memory_still_full(e, ART_ROOM_BUILD) ||
		art_stuck_until(e) > GetCurrentTimestamp() ||
		(e->reason == ART_WHY_ERROR && e->failed_at != 0 &&
		 !TimestampDifferenceExceeds(e->failed_at, GetCurrentTimestamp(),
									 ART_ERROR_RETRY_MS));
}

/*
 * An insert needs the structure, which no worker has built.
 */
static void
report_unbuilt_by_worker(Relation index, ArtEntry *e)
{
	char		text[sizeof(e->error)];

	strlcpy(text, e->reason == ART_WHY_ERROR ? e->error : "", sizeof(text));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("art index \"%s\" is not in memory, and no background worker has built it",
					RelationGetRelationName(index)),
			 text[0] != 0 ? errdetail("The last build ended with an error: %s.", text) :
			 errdetail("Its expressions or its predicate run functions as the owner of the table, which a session of another role does not."),
			 errhint("Check \"artidx.build_workers\" and \"max_worker_processes\", or let the owner of the table insert a row.")));
}

/*
 * The index runs code that this session may not run as the owner of the table (src/eval).  So a
 * worker has to build it.  True: something has changed, look again.  False: no worker can, a build
 * has just failed, or there is no memory.  Without memory excepted that is an ERROR for an insert.
 */
static bool
await_worker(const Waiting *w, Relation index, ArtEntry *e, bool scan, TimestampTz since)
{
	bool		owned;
	bool		absent = look_at_owner(e, NULL, &owned) == ART_ABSENT;

	if (owned)
	{
		await_builder(w, index, e);
		return true;
	}
	if (absent && memory_still_full(e, ART_ROOM_BUILD))
		return false;
	if ((!absent || e->reason != ART_WHY_ERROR || e->failed_at == 0 ||
		 TimestampDifferenceExceeds(e->failed_at, GetCurrentTimestamp(), ART_ERROR_RETRY_MS)) &&
		!TimestampDifferenceExceeds(since, GetCurrentTimestamp(), ART_AWAIT_WORKER_MS) &&
		ask_worker(index, e, true))
	{
		await_owner(w, e);
		return true;
	}
	if (!scan)
		report_unbuilt_by_worker(index, e);
	return false;
}

/*
 * READY (true), or no memory (false; for a scan also what out_for_scans says, and an index that
 * this session may not build).
 *
 * Locks: takes the build's place, exclusive, and has given it back when it
 * returns.  After an ERROR the end of the transaction does.
 */
static bool
wait_or_build(Relation index, ArtEntry *e, bool scan, Waiting *waiting, uint64 *gen)
{
	ArtRoomFor	room = e->unique && !scan ? ART_ROOM_UNIQUE : ART_ROOM_BUILD;
	bool		asked = false;
	bool		may = art_may_evaluate(index);
	TimestampTz since = GetCurrentTimestamp();

	for (;;)
	{
		ArtPart    *part = NULL;
		ArtPartEnd	end;
		ArtState	state;
		bool		owned;
		Take		t;

		state = look_at_owner(e, gen, &owned);
		if (state == ART_READY)
			return true;
		if (state == ART_FOLLOWED)
		{
			art_followed_settle(e);
			continue;
		}
		check_recursion(index, e);
		if (scan && out_for_scans(e))
			return false;
		if (!may && await_worker(waiting, index, e, scan, since))
			continue;
		if (!may)
			return false;

		/* what has just failed would fail in a worker as well: see it here */
		if (!owned && !asked && !(state == ART_ABSENT && e->failed_at != 0))
		{
			asked = true;
			if (ask_worker(index, e, false))
			{
				await_owner(waiting, e);
				continue;
			}
		}

		lock_build(waiting, index);
		t = take_build(index, e, room, gen, &part);
		switch (t)
		{
			case TAKE_MINE:
				waiting->builds = true;
				end = run_build(index, e, *gen, part, room, false);
				waiting->builds = false;
				waiting_restart(waiting);
				art_unlock_place(index, ART_PLACE_BUILD, ExclusiveLock);
				if (end == ART_PART_NOMEM)
					return false;
				/* sealed by an insert that found no memory: once is enough */
				if (end == ART_PART_GONE && e->sealed && !e->unique)
					return false;
				break;			/* READY, or dropped meanwhile: look again */
			case TAKE_READY:
				art_unlock_place(index, ART_PLACE_BUILD, ExclusiveLock);
				return true;
			case TAKE_FULL:
				art_unlock_place(index, ART_PLACE_BUILD, ExclusiveLock);
				return false;
			case TAKE_OTHER:
				art_unlock_place(index, ART_PLACE_BUILD, ExclusiveLock);
				poll_builder(waiting, ART_POLL_MS);
				break;
			case TAKE_AGAIN:
				art_unlock_place(index, ART_PLACE_BUILD, ExclusiveLock);
				art_busy();
				break;
		}
	}
}

/* Wait for the structure, or build it, with an error context meanwhile. */
static bool
make_ready(Relation index, ArtEntry *e, bool scan, uint64 *gen)
{
	Waiting		waiting;
	bool		result;

	waiting_begin(&waiting, index);
	result = wait_or_build(index, e, scan, &waiting, gen);
	waiting_end(&waiting);
	return result;
}

uint64
art_ensure_ready(Relation index)
{
	ArtEntry   *e;
	uint64		gen;

	e = art_entry_if_exists(index);
	if (e)
		art_apply_options(index, e);
	if (e && art_entry_state(e, &gen) == ART_READY)
		return gen;

	check_buildable(index);
	e = art_entry(index);
	if (!make_ready(index, e, false, &gen))
		art_report_nomem(index);
	return gen;
}

/*
 * A scan, by a plan that was made when the structure was there, meets one that
 * another process builds.  It has another way, reading the table, and may prefer
 * that (build_wait.c).  Of a unique index, or an exclusion constraint's, the
 * scan may be an insert's check, which comes to wait anyway.
 *
 * Locks: takes the partition lock, shared.
 */
static bool
rather_without(Relation index, ArtEntry *e)
{
	Relation	heap;
	BlockNumber pages;
	double		rows;
	double		allvisfrac;
	bool		owned;

	if (e->unique || IsParallelWorker() || look_at_owner(e, NULL, &owned) != ART_BUILDING || !owned || art_part_of(e))
		return false;
	heap = table_open(index->rd_index->indrelid, NoLock);
	table_relation_estimate_size(heap, NULL, &pages, &rows, &allvisfrac);
	table_close(heap, NoLock);
	return !(art_may_await() &&
			 art_await_build(index, rows, pages * seq_page_cost + rows * cpu_tuple_cost)) &&
		look_at_owner(e, NULL, &owned) == ART_BUILDING && owned;
}

bool
art_try_ready(Relation index, uint64 *gen)
{
	ArtEntry   *e;

	if (!art_preloaded())
		return false;
	e = art_entry_if_exists(index);
	if (e)
		art_apply_options(index, e);
	if (e && art_entry_state(e, gen) == ART_READY)
		return true;
	if (why_not_lazily(index) != NULL)
		return false;
	e = art_entry_try(index);
	return e != NULL && !rather_without(index, e) && make_ready(index, e, true, gen);
}

bool
art_ready_for_plan(Relation index, bool key_check)
{
	ArtEntry   *e;
	uint64		gen;

	if (!art_preloaded() || !(RelationUsesLocalBuffers(index) || key_check) ||
		RELATION_IS_OTHER_TEMP(index) || IsParallelWorker() ||
		why_not_lazily(index) != NULL)
		return false;
	e = art_entry_try(index);
	if (e == NULL)
		return false;
	art_apply_options(index, e);
	if (art_entry_state(e, &gen) == ART_BUILDING && art_part_of(e))
		return false;			/* an expression of the index queries its table */
	return make_ready(index, e, true, &gen);
}

void
art_refuse_other_temp(Relation index)
{
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
}

/* ---- for workers ---- */

/*
 * The work of art_build_in_worker(), which says meanwhile that this process is
 * a worker.
 *
 * Locks: tries the build's place, exclusive, and gives it back; after an ERROR
 * the end of the transaction does.
 */
static ArtBuildResult
build_in_worker(Relation index)
{
	ArtEntry   *e;
	ArtPart    *part = NULL;
	uint64		gen;
	ArtBuildResult result = ART_BUILT_STALE;

	if (!art_preloaded() || why_not_lazily(index) != NULL)
		return ART_BUILT_STALE;
	e = art_entry_try(index);
	if (e == NULL)
		return ART_BUILT_NOMEM;
	art_apply_options(index, e);
	if (art_entry_state(e, &gen) == ART_READY)
		return ART_BUILT_READY;
	check_recursion(index, e);
	if (!art_try_lock_place(index, ART_PLACE_BUILD, ExclusiveLock))
		return ART_BUILT_BUSY;

	switch (take_build(index, e, ART_ROOM_BUILD, &gen, &part))
	{
		case TAKE_MINE:
			switch (run_build(index, e, gen, part, ART_ROOM_BUILD, true))
			{
				case ART_PART_DONE:
					result = ART_BUILT_READY;
					break;
				case ART_PART_GONE:
					result = ART_BUILT_STALE;
					break;
				case ART_PART_NOMEM:
					result = ART_BUILT_NOMEM;
					break;
				case ART_PART_LEFT:
					result = ART_BUILT_GAVE_WAY;
					break;
			}
			break;
		case TAKE_READY:
			result = ART_BUILT_READY;
			break;
		case TAKE_FULL:
			result = ART_BUILT_NOMEM;
			break;
		case TAKE_OTHER:
		case TAKE_AGAIN:
			result = ART_BUILT_BUSY;
			break;
	}
	art_unlock_place(index, ART_PLACE_BUILD, ExclusiveLock);
	return result;
}

ArtBuildResult
art_build_in_worker(Relation index)
{
	ArtBuildResult result;
	bool		save = in_worker;

	in_worker = true;
	PG_TRY();
	{
		result = build_in_worker(index);
	}
	PG_FINALLY();
	{
		in_worker = save;
	}
	PG_END_TRY();
	return result;
}

/*
 * An error here is not the end of the build.  The helper gives back what it
 * has claimed, and the owner meets the same error, or does not.
 *
 * Locks: tries the helpers' place, shared, and gives it back.
 */
static bool
build_help(Relation index)
{
	ArtEntry   *e;
	ArtPart    *part;
	Relation	heap;
	volatile bool done = false;

	if (!art_preloaded() || why_not_lazily(index) != NULL)
		return false;
	e = art_entry_if_exists(index);
	if (e == NULL || art_entry_state(e, NULL) != ART_BUILDING || art_part_of(e) ||
		!art_try_lock_place(index, ART_PLACE_HELPERS, ShareLock))
		return false;
	part = art_part_help(e);
	if (part != NULL)
	{
		PG_TRY();
		{
			heap = table_open(index->rd_index->indrelid, NoLock);
			done = art_part_work(part, heap, index, ART_ROOM_NONE, true) == ART_PART_DONE;
			table_close(heap, NoLock);
		}
		PG_FINALLY();
		{
			art_part_end(part);
		}
		PG_END_TRY();
	}
	art_unlock_place(index, ART_PLACE_HELPERS, ShareLock);
	return done;
}

bool
art_build_help(Relation index)
{
	bool		result;
	bool		save = in_worker;

	in_worker = true;
	PG_TRY();
	{
		result = build_help(index);
	}
	PG_FINALLY();
	{
		in_worker = save;
	}
	PG_END_TRY();
	return result;
}

/* ---- the frame of ambuild ---- */

/*
 * Not preloaded, an index that was there before may be rewritten, and stays
 * absent; a new one is refused.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, shared to look round and exclusive to open.
 * The caller's lock on the index keeps other builders out.
 */
uint64
art_ambuild_begin(Relation heap, Relation index, ArtEntry **e)
{
	ArtOpening	opening;
	Oid			oid = RelationGetRelid(index);
	SubTransactionId subid = GetCurrentSubTransactionId();
	ArtLocator	loc;
	ArtLocator	others[8];
	ArtPending *p;
	LWLock	   *lock;
	ArtWalk		w;
	int			nothers = 0;
	bool		existed = false;
	uint64		gen = 0;

	*e = NULL;
	if (!art_preloaded())
	{
		if (art_index_is_new(index))
			art_require_preload(index);
		return 0;
	}
	(void) art_ctx();
	art_part_room();

	art_locator(index, &loc);
	lock = art_partition(loc.db, oid);

	/* first what must be undone, then the deed */
	p = art_pending_prepare();
	w = art_walk(LW_SHARED, loc.db, oid);
	for (ArtEntry *o; (o = art_walk_next(&w)) != NULL;)
	{
		if (art_same_locator(&o->loc, &loc))
			existed = true;
		else if (nothers < (int) lengthof(others))
			others[nothers++] = o->loc;
	}
	art_pending_add(p, existed ? ART_PEND_RESET : ART_PEND_CREATED, loc.db, oid,
					&loc, subid);
	for (int i = 0; i < nothers; i++)
		art_pending_add(art_pending_prepare(), ART_PEND_DROP, loc.db, oid,
						&others[i], subid);

	while ((*e = art_entry_create(index, true)) == NULL)
		if (!art_make_room(index, NULL, 0, ART_ROOM_AMBUILD))
			return 0;
	/* none is taken for ON COMMIT DELETE ROWS: the commit would wait for a flush */
	(*e)->made_by = GetTopFullTransactionIdIfAny();

	art_opening(index, &opening);
	for (;;)
	{
		ax_status	st;

		art_lock(lock, LW_EXCLUSIVE);
		(void) art_entry_absent(*e, ART_WHY_DROPPED, NULL);
		st = art_entry_open(*e, index, &opening, true, &gen);
		art_unlock(lock);
		if (st == AX_OK)
			break;
		if (st == AX_NOMEM && !art_make_room(index, *e, 0, ART_ROOM_AMBUILD))
			return 0;
		art_busy();
	}
	(void) art_part_begin(*e, gen, ART_PART_AMBUILD);
	pg_atomic_write_u64(&(*e)->blocks_total, RelationGetNumberOfBlocks(heap));
	return gen;
}

void
art_ambuild_end(Relation index, ArtEntry *e, uint64 gen, bool ok, double ms)
{
	if (e == NULL)
		return;
	if (ok)
		(void) art_entry_publish_ready(e, gen, ART_BUILD_CREATE, ms, true);
	else
		art_entry_fail(e, gen, ART_WHY_ERROR, "build failed");
	art_own_build_end(e, gen);
}
