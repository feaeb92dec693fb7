/*
 * art_residency.c
 *	  Making a structure that is not there, from the heap, beside writers and
 *	  VACUUM; and the frame of ambuild.
 *
 * The build publishes BUILDING first and only then reads the heap's size.
 * Whoever inserted a row before it saw ABSENT stored that row before, so the
 * scan meets it; whoever sees BUILDING inserts the entry itself, and the same
 * entry twice is one.  A heap page is read atomically, under its share lock:
 * line pointers' roots, then visibility.  VACUUM waits while a build goes on,
 * so no TID that the build has read is recycled before VACUUM could remove its
 * entry.
 */
#include "artidx.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "tcop/cmdtag.h"
#include "tcop/pquery.h"
#include "utils/backend_status.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "pg/art_pg.h"

/* a build that failed for memory is not retried before, unless some came free */
#define ART_MEMORY_RETRY_MS 10000

static uint32 wait_event_build = 0;

/* ---- builds that this process does now ---- */

typedef struct OwnBuild
{
	struct OwnBuild *next;
	ArtEntry   *entry;
	uint64		gen;
	SubTransactionId subid;
} OwnBuild;

static OwnBuild *own_builds = NULL;
static OwnBuild own_build_pool[16]; /* nested builds are rare; no allocation */

/*
 * Remember a build, so that an abort or exit in the middle ends it.
 */
void
art_own_build_begin(ArtEntry *e, uint64 gen)
{
	OwnBuild   *o = NULL;

	for (int i = 0; i < (int) lengthof(own_build_pool) && !o; i++)
		if (own_build_pool[i].entry == NULL)
			o = &own_build_pool[i];
	if (o == NULL)
	{
		art_entry_fail(e, gen, ART_WHY_ERROR, "too many nested builds");
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many art index builds within one another")));
	}
	o->entry = e;
	o->gen = gen;
	o->subid = GetCurrentSubTransactionId();
	o->next = own_builds;
	own_builds = o;
}

/*
 * The build is over, one way or the other.
 */
void
art_own_build_end(ArtEntry *e, uint64 gen)
{
	for (OwnBuild **link = &own_builds; *link; link = &(*link)->next)
	{
		OwnBuild   *o = *link;

		if (o->entry == e && o->gen == gen)
		{
			*link = o->next;
			o->entry = NULL;
			return;
		}
	}
}

/*
 * End what an aborted (sub)transaction, or this process's exit, left.
 */
void
art_own_builds_abort(SubTransactionId subid, bool all)
{
	for (OwnBuild **link = &own_builds; *link;)
	{
		OwnBuild   *o = *link;
		ArtEntry   *e = o->entry;

		if (!all && o->subid != subid)
		{
			link = &o->next;
			continue;
		}
		*link = o->next;
		o->entry = NULL;
		art_entry_fail(e, o->gen, ART_WHY_ERROR, "build was aborted");
	}
}

/*
 * A subtransaction committed into its parent.
 */
void
art_own_builds_reparent(SubTransactionId subid, SubTransactionId parent)
{
	for (OwnBuild *o = own_builds; o; o = o->next)
		if (o->subid == subid)
			o->subid = parent;
}

/* ---- errors ---- */

/*
 * ERROR for AX_NOMEM: the cap of the index or the area is full.
 */
void
art_report_nomem(Relation index)
{
	ax_ctx	   *cx = art_ctx();
	uint64		cap = art_max_memory(index);
	ax_memory_info mem;

	if (cap > 0)
	{
		ArtEntry   *e = art_entry_if_exists(index);
		uint64		gen;
		ax_tree_info info;

		if (e && art_entry_state(e, &gen) != ART_ABSENT)
		{
			ax_status	st;

			ART_CORE_BEGIN();
			st = ax_info(cx, art_entry_tree(e), gen, &info);
			ART_CORE_END();
			if (st == AX_OK && info.bytes >= cap - cap / 8)
				ereport(ERROR,
						(errcode(ERRCODE_OUT_OF_MEMORY),
						 errmsg("out of memory for art index \"%s\"",
								RelationGetRelationName(index)),
						 errdetail("The index takes %llu bytes, and its \"max_memory\" is %llu bytes.",
								   (unsigned long long) info.bytes,
								   (unsigned long long) cap),
						 errhint("Increase the storage parameter \"max_memory\" of the index.")));
		}
	}

	ART_CORE_BEGIN();
	ax_memory(cx, &mem);
	ART_CORE_END();
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory for art index \"%s\"",
					RelationGetRelationName(index)),
			 errdetail("Of %llu bytes of shared memory for art indexes %llu are in use and %llu are free, the largest free piece being %llu bytes; %llu more wait to be reclaimed.",
					   (unsigned long long) mem.area_bytes,
					   (unsigned long long) mem.used_bytes,
					   (unsigned long long) mem.free_bytes,
					   (unsigned long long) mem.largest_free_bytes,
					   (unsigned long long) mem.retired_bytes),
			 errhint("Increase the configuration parameter \"artidx.memory\".")));
}

/* What a lazy build may not be made for. */
static void
check_buildable(Relation index)
{
	const char *name = RelationGetRelationName(index);

	art_require_preload(index);
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("art index \"%s\" cannot be used during recovery", name),
				 errdetail("Art indexes are built in memory when recovery has ended.")));
	if (ART_OLD_SNAPSHOT_IN_USE())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("art index \"%s\" cannot be used while \"old_snapshot_threshold\" is set",
						name),
				 errhint("Set \"old_snapshot_threshold\" to -1 and restart the server.")));
	if (!index->rd_index->indisready || !index->rd_index->indislive)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not ready", name)));
	if (IsCatalogRelationOid(index->rd_index->indrelid))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" does not support indexes on system catalogs",
						ART_AM_NAME)));
}

/* ---- waiting for a builder ---- */

/*
 * The build lock: heavyweight, so that deadlocks are detected and an error
 * releases it.  A tuple lock of the index rather than a page lock, under
 * which PostgreSQL 15 asserts that no other lock is taken (a build detoasts
 * and evaluates expressions).  lock_timeout does not count here: the wait is
 * work, not a conflict.
 */
static void
build_lock(Relation index, LOCKMODE mode)
{
	ItemPointerData tid;
	int			save = LockTimeout;

	ItemPointerSet(&tid, 0, 1);
	LockTimeout = 0;
	PG_TRY();
	{
		LockTuple(index, &tid, mode);
	}
	PG_FINALLY();
	{
		LockTimeout = save;
	}
	PG_END_TRY();
}

static void
build_unlock(Relation index, LOCKMODE mode)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, 0, 1);
	UnlockTuple(index, &tid, mode);
}

/* Within one parallel group the lock does not conflict: poll. */
static void
poll_builder(void)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 10L, ART_WAIT_EVENT(wait_event_build, "ArtidxBuild"));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/*
 * With the build lock held: end a build whose owner is gone.  True when
 * somebody else's goes on.
 */
static bool
resolve_building(Relation index, ArtEntry *e)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	bool		alive = false;
	bool		mine = false;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_BUILDING)
	{
		mine = e->owner_pid == MyProcPid;
		alive = art_owner_alive(e);
		if (!alive)
			(void) art_entry_absent(e, ART_WHY_ERROR, "builder exited");
	}
	LWLockRelease(lock);

	if (mine)
	{
		build_unlock(index, ExclusiveLock);
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("index \"%s\" is being built", RelationGetRelationName(index)),
				 errdetail("An expression of the index uses the index itself.")));
	}
	return alive;
}

/*
 * See artidx.h.
 */
void
art_wait_not_building(Relation index, ArtEntry *e)
{
	while (art_entry_state(e, NULL) == ART_BUILDING)
	{
		bool		alive;

		build_lock(index, ExclusiveLock);
		alive = resolve_building(index, e);
		build_unlock(index, ExclusiveLock);
		if (alive)
			poll_builder();
	}
}

/* ---- reading the heap ---- */

static void
build_row(void *arg, const uint8 *key, uint32 keylen, uint64 tid)
{
	art_run_add((ArtRun *) arg, key, keylen, tid, true);
}

/*
 * Scan the heap into the structure.  The state is BUILDING.
 */
static void
build_from_heap(Relation heap, Relation index, ArtEntry *e, uint64 gen)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	bool		progress = MyBEEntry != NULL &&
		MyBEEntry->st_progress_command == PROGRESS_COMMAND_INVALID;
	ArtKeyDesc *kd = art_keydesc_build(index, CurrentMemoryContext);
	ArtHeapReader *reader;
	ArtRun	   *run;
	BlockNumber since = 0;

	pg_atomic_write_u64(&e->blocks_total, nblocks);
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
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, nblocks);
	}

	/* the horizon it takes is no newer than our registered snapshot */
	reader = art_heap_begin(heap, index, kd, ART_HEAP_BUILD, NULL);
	run = art_run_begin(index, kd, gen, e, false, heap, ART_ROOM_NONE);

	for (BlockNumber blkno = 0; blkno < nblocks; blkno++)
	{
		CHECK_FOR_INTERRUPTS();
		art_heap_page(reader, blkno, build_row, run);
		pg_atomic_write_u64(&e->blocks_done, blkno + 1);
		if (progress && ++since == 64)
		{
			since = 0;
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, blkno + 1);
		}
	}
	art_run_flush(run);
	if (art_run_nomem(run))
		art_report_nomem(index);
	(void) art_run_end(run);
	art_heap_end(reader);
	if (progress)
		pgstat_progress_end_command();
}

/*
 * The same with everything around it: memory and a snapshot.
 */
static void
build(Relation index, ArtEntry *e, uint64 gen)
{
	Relation	heap;
	MemoryContext cxt;
	MemoryContext old;
	Snapshot	snapshot;

	cxt = AllocSetContextCreate(CurrentMemoryContext, "art build",
								ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);

	/* the caller holds a lock on it */
	heap = table_open(index->rd_index->indrelid, NoLock);
	if (heap->rd_rel->relam != HEAP_TABLE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" supports only tables of access method \"heap\"",
						ART_AM_NAME)));

	/* keeps what a row's TOAST pointer points to from being vacuumed away */
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	PushActiveSnapshot(snapshot);

	build_from_heap(heap, index, e, gen);

	PopActiveSnapshot();
	UnregisterSnapshot(snapshot);
	table_close(heap, NoLock);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

/*
 * Record a failed build; in PG_CATCH, the error stays the current one.
 */
static void
fail_build(Relation index, ArtEntry *e, uint64 gen, MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);
	ErrorData  *err = CopyErrorData();

	art_own_build_end(e, gen);
	art_entry_fail(e, gen,
				   err->sqlerrcode == ERRCODE_OUT_OF_MEMORY ? ART_WHY_MEMORY : ART_WHY_ERROR,
				   err->message);
	FreeErrorData(err);
	MemoryContextSwitchTo(old);
}

/*
 * A build that failed for memory a moment ago would fail again.
 */
static bool
memory_still_full(ArtEntry *e)
{
	ax_ctx	   *cx = art_ctx();
	ax_memory_info mem;

	if (e->reason != ART_WHY_MEMORY || e->failed_at == 0)
		return false;
	if (TimestampDifferenceExceeds(e->failed_at, GetCurrentTimestamp(),
								   ART_MEMORY_RETRY_MS))
		return false;
	ART_CORE_BEGIN();
	(void) ax_poll(cx);
	ax_memory(cx, &mem);
	ART_CORE_END();
	return mem.free_bytes <= e->failed_free;
}

/*
 * See artidx.h.
 */
uint64
art_ensure_ready(Relation index)
{
	ArtEntry   *e;
	uint64		gen;
	MemoryContext cxt = CurrentMemoryContext;

	e = art_entry_if_exists(index);
	if (e && art_entry_state(e, &gen) == ART_READY)
		return gen;

	check_buildable(index);
	e = art_entry(index);

	for (;;)
	{
		LWLock	   *lock;
		ax_status	st = AX_OK;
		instr_time	start;
		instr_time	duration;
		bool		full = false;

		if (art_entry_state(e, &gen) == ART_READY)
			return gen;

		build_lock(index, ExclusiveLock);
		if (resolve_building(index, e))
		{
			build_unlock(index, ExclusiveLock);
			poll_builder();
			continue;
		}
		if (art_entry_state(e, &gen) == ART_READY)
		{
			build_unlock(index, ExclusiveLock);
			return gen;
		}
		full = memory_still_full(e);

		lock = art_partition(e->loc.db, e->indexoid);
		if (!full)
		{
			LWLockAcquire(lock, LW_EXCLUSIVE);
			if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT)
				st = art_entry_open(e, index, false, &gen);
			else
				st = AX_STALE;
			LWLockRelease(lock);
		}
		if (full || st != AX_OK)
		{
			build_unlock(index, ExclusiveLock);
			if (full || st == AX_NOMEM)
				art_report_nomem(index);
			art_busy();
			continue;
		}

		art_own_build_begin(e, gen);
		INSTR_TIME_SET_CURRENT(start);
		PG_TRY();
		{
			build(index, e, gen);
		}
		PG_CATCH();
		{
			fail_build(index, e, gen, cxt);
			PG_RE_THROW();
		}
		PG_END_TRY();
		INSTR_TIME_SET_CURRENT(duration);
		INSTR_TIME_SUBTRACT(duration, start);

		/* not READY if it was dropped meanwhile: then once more */
		(void) art_entry_publish_ready(e, gen, ART_BUILD_REBUILD,
									   INSTR_TIME_GET_MILLISEC(duration));
		art_own_build_end(e, gen);
		build_unlock(index, ExclusiveLock);
	}
}

/*
 * See artidx.h.
 */
bool
art_try_ready(Relation index, uint64 *gen)
{
	*gen = art_ensure_ready(index);
	return true;
}

/* ---- the frame of ambuild ---- */

/*
 * Not preloaded, an index that was there before may be rewritten, and stays
 * absent; a new one is refused.  What ALTER TABLE makes anew was there before,
 * and pg_upgrade must be able to restore a dump.  CONCURRENTLY builds in its
 * second transaction, an index that is not ready for inserts yet.
 */
static bool
may_stay_absent(Relation index)
{
	CommandTag	tag = ActivePortal ? ActivePortal->commandTag : CMDTAG_UNKNOWN;

	if (IsBinaryUpgrade)
		return true;
	if (index->rd_createSubid != InvalidSubTransactionId)
		return tag == CMDTAG_ALTER_TABLE;
	if (!index->rd_index->indisready)
		return tag == CMDTAG_REINDEX;
	return true;
}

/*
 * See artidx.h.  *e is NULL and the generation 0 when there is no shared
 * memory and the index may stay absent.
 */
uint64
art_ambuild_begin(Relation heap, Relation index, ArtEntry **e)
{
	Oid			oid = RelationGetRelid(index);
	SubTransactionId subid = GetCurrentSubTransactionId();
	ArtLocator	loc;
	ArtLocator	others[8];
	ArtPending *p;
	LWLock	   *lock;
	int			nothers = 0;
	bool		existed;
	uint64		gen = 0;

	*e = NULL;
	if (!art_preloaded())
	{
		if (may_stay_absent(index))
			return 0;
		art_require_preload(index);
	}
	(void) art_ctx();

	art_locator(index, &loc);
	lock = art_partition(loc.db, oid);

	/* first what must be undone, then the deed */
	p = art_pending_prepare();
	LWLockAcquire(lock, LW_SHARED);
	existed = art_find(oid, &loc) != NULL;
	for (ArtEntry *o = art_chain(loc.db, oid); o; o = o->next)
	{
		if (o->indexoid == oid && o->loc.db == loc.db &&
			(o->loc.rel != loc.rel || o->loc.spc != loc.spc ||
			 o->loc.backend != loc.backend) &&
			nothers < (int) lengthof(others))
			others[nothers++] = o->loc;
	}
	LWLockRelease(lock);
	art_pending_add(p, existed ? ART_PEND_RESET : ART_PEND_CREATED, loc.db, oid,
					&loc, subid);
	for (int i = 0; i < nothers; i++)
		art_pending_add(art_pending_prepare(), ART_PEND_DROP, loc.db, oid,
						&others[i], subid);

	*e = art_entry_create(index, true);

	for (;;)
	{
		ax_status	st;

		LWLockAcquire(lock, LW_EXCLUSIVE);
		(void) art_entry_absent(*e, ART_WHY_DROPPED, NULL);
		st = art_entry_open(*e, index, true, &gen);
		LWLockRelease(lock);
		if (st == AX_OK)
			break;
		if (st == AX_NOMEM)
			art_report_nomem(index);
		art_busy();
	}
	pg_atomic_write_u64(&(*e)->blocks_total, RelationGetNumberOfBlocks(heap));
	art_own_build_begin(*e, gen);
	return gen;
}

/*
 * See artidx.h.
 */
void
art_ambuild_end(Relation index, ArtEntry *e, uint64 gen, bool ok, double ms)
{
	if (e == NULL)
		return;
	if (ok)
		(void) art_entry_publish_ready(e, gen, ART_BUILD_CREATE, ms);
	else
		art_entry_fail(e, gen, ART_WHY_ERROR, "build failed");
	art_own_build_end(e, gen);
}
