/*
 * follower_process.c
 *	  The follower: on a standby, the process that keeps the art indexes of one
 *	  database in memory.
 *
 * A background worker.  It goes on in batches.  The records are taken to where
 * replay has come (wal_reader.c).  Then each structure is brought there (catch_up.c).
 * Then the position moves, and scans that wait for it go on.  Between two batches it
 * builds what is new, and sweeps, some milliseconds at a time.
 *
 * Its notes of work that is not done are in its own memory.  So its structures go when it
 * goes, however that is: by its exit, or with all shared memory if it dies without one.
 * An error of an index closes that index.  Any other ends it, and the launcher starts another
 * some time later, which begins anew from the tables.
 *
 * When recovery has ended it takes what is left, up to the last record that was replayed,
 * sweeps, and hands the structures over: READY.  Then it is done.
 *
 * src/follow/README.md: On a standby
 */
#include "postgres.h"

#include <signal.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "follow/follow.h"
#include "live/background.h"
#include "workers/workers.h"

#define ART_BUSY_MS			10	/* between two batches for which nobody waits, */
#define ART_IDLE_MS			20	/* and after one that had no record */
#define ART_LOOK_MS			500 /* between two looks at the catalog, when it changed */
#define ART_LOOK_AGAIN_MS	2000	/* an index could not be begun, or was closed */
#define ART_ERRED_MS		5000	/* before one is begun again that had an error */

extern PGDLLEXPORT void art_follower_main(Datum arg);

static int	my_slot;
static uint32 my_seq;
static MemoryContext loop_cxt;
static uint32 wait_event_idle = 0;
static bool handed_over = false;
static ArtFollowed *in_hand = NULL;	/* in whose step this process is */
static bool some_closed = false;	/* and may be begun again */
static bool no_index = false;

/* ---- which indexes there are ---- */

/* Free those that were closed. */
static void
forget_closed(void)
{
	ArtFollowed **link = &art_followed_list;
	bool		any = false;

	while (*link != NULL)
	{
		ArtFollowed *x = *link;

		if (x->closed)
		{
			*link = x->next;
			MemoryContextDelete(x->cxt);
			any = true;
		}
		else
			link = &x->next;
	}
	if (any)
	{
		art_wal_index(art_followed_list);
		some_closed = true;
	}
}

/* An art index as the catalog has it. */
typedef struct Listed
{
	Oid			indexoid;
	ArtLocator	loc;
	bool		permanent;
	bool		followed;
} Listed;

static int
listed_cmp(const void *a, const void *b)
{
	Oid			x = ((const Listed *) a)->indexoid;
	Oid			y = ((const Listed *) b)->indexoid;

	return x < y ? -1 : x > y;
}

/* The one with this file; NULL: it is gone, or has another by now. */
static Listed *
find_listed(Listed *all, int n, Oid indexoid, const ArtLocator *loc)
{
	Listed		key = {.indexoid = indexoid};
	Listed	   *l = n == 0 ? NULL : bsearch(&key, all, n, sizeof(Listed), listed_cmp);

	return l != NULL && l->loc.rel == loc->rel && l->loc.spc == loc->spc ? l : NULL;
}

/*
 * The art indexes of the database, as the catalog has them now, by their oids.
 *
 * Locks: AccessShareLock on pg_class, for the scan.
 */
static int
list_followable(Listed **all)
{
	Relation	pgclass;
	SysScanDesc scan;
	HeapTuple	tup;
	Oid			amoid;
	int			n = 0;
	int			cap = 64;

	*all = MemoryContextAlloc(loop_cxt, cap * sizeof(Listed));
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	amoid = get_am_oid(ART_AM_NAME, true);
	if (OidIsValid(amoid))
	{
		pgclass = table_open(RelationRelationId, AccessShareLock);
		scan = systable_beginscan(pgclass, InvalidOid, false, NULL, 0, NULL);
		while (HeapTupleIsValid(tup = systable_getnext(scan)))
		{
			Form_pg_class form = (Form_pg_class) GETSTRUCT(tup);
			Listed	   *l;

			if (form->relkind != RELKIND_INDEX || form->relam != amoid)
				continue;
			if (n == cap)
			{
				cap *= 2;
				*all = repalloc(*all, cap * sizeof(Listed));
			}
			l = &(*all)[n++];
			l->indexoid = form->oid;
			art_form_locator(form, &l->loc);
			l->permanent = form->relpersistence == RELPERSISTENCE_PERMANENT;
			l->followed = false;
		}
		systable_endscan(scan);
		table_close(pgclass, AccessShareLock);
	}
	CommitTransactionCommand();
	MemoryContextSwitchTo(loop_cxt);
	if (n > 1)
		qsort(*all, n, sizeof(Listed), listed_cmp);
	return n;
}

/* In a transaction: does the catalog give this file to the relation? */
static bool
has_file(Oid relid, const ArtLocator *loc)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	ArtLocator	now;

	if (!HeapTupleIsValid(tup))
		return false;
	art_form_locator((Form_pg_class) GETSTRUCT(tup), &now);
	ReleaseSysCache(tup);
	return now.spc == loc->spc && now.rel == loc->rel;
}

/*
 * Forget an entry whose index is gone, or has another file by now.  False: not yet.
 *
 * Somebody may have the index open: REINDEX CONCURRENTLY drops the old one under a lock
 * of which a standby knows nothing.  So nobody may hold any lock on it.  A process that takes
 * one after that finds in the catalog what we do.
 *
 * Locks: tries AccessShareLock on the index, and gives it back; under it, takes the
 * partition lock, exclusive.
 */
static bool
forget_one(Oid indexoid, const ArtLocator *loc)
{
	LOCKTAG		tag;
	int			others = 1;
	bool		there;

	if (!ConditionalLockRelationOid(indexoid, AccessShareLock))
		return false;
	there = has_file(indexoid, loc);
	if (!there)
	{
		SET_LOCKTAG_RELATION(tag, MyDatabaseId, indexoid);
		(void) GetLockConflicts(&tag, AccessExclusiveLock, &others);
		if (others == 0)
			art_drop_locator(indexoid, loc, true);
	}
	UnlockRelationOid(indexoid, AccessShareLock);
	return there || others == 0;
}

/*
 * Forget the entries of indexes that the catalog does not have.  False: some are in use.
 *
 * Locks: takes the partition locks, shared, one after the other.
 */
static bool
forget_gone(Listed *all, int n)
{
	ArtListed  *here;
	int			nhere = art_list_entries(MyDatabaseId, art_is_shared, NULL, &here);
	bool		done = true;

	for (int i = 0; i < nhere; i++)
	{
		if (find_listed(all, n, here[i].indexoid, &here[i].loc) != NULL)
			continue;
		CHECK_FOR_INTERRUPTS();
		StartTransactionCommand();
		done &= forget_one(here[i].indexoid, &here[i].loc);
		CommitTransactionCommand();
		MemoryContextSwitchTo(loop_cxt);
	}
	return done;
}

/*
 * In PG_CATCH: an index could not be begun.  An error that ends the process, or says what replay wishes, is
 * thrown on.
 */
static void
not_begun(const Listed *l)
{
	int			code = geterrcode();

	if (code == ERRCODE_ADMIN_SHUTDOWN || code == ERRCODE_CRASH_SHUTDOWN ||
		code == ERRCODE_T_R_SERIALIZATION_FAILURE || code == ERRCODE_T_R_DEADLOCK_DETECTED)
		PG_RE_THROW();
	HOLD_INTERRUPTS();
	EmitErrorReport();
	AbortCurrentTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	art_kept_not_begun(l->indexoid, &l->loc, code);
}

/* Begin to keep an index.  An error is of this one, and of no other.  Returns whether to try again later. */
static bool
begin_index(const Listed *l)
{
	volatile bool later = true;
	bool		again;

	PG_TRY();
	{
		later = art_keepup_begin(l->indexoid, &again) == NULL && again;
	}
	PG_CATCH();
	{
		not_begun(l);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(loop_cxt);
	return later;
}

/*
 * Look at the catalog: begin what is new, close what is gone.  All WAL up to our
 * position was taken, so what is begun here lacks nothing from there on.  *again:
 * something could not be begun yet.  Returns how many indexes there are.
 */
static int
look_at_catalog(bool *again)
{
	Listed	   *all;
	int			n = list_followable(&all);

	*again = false;
	StartTransactionCommand();
	for (ArtFollowed *x = art_followed_list; x != NULL; x = x->next)
	{
		Listed	   *l = find_listed(all, n, x->indexoid, &x->loc);

		if (l == NULL)
			art_kept_close(x, ART_WHY_DROPPED, NULL);
		else if (!has_file(x->heapoid, &x->heap))
			art_kept_close(x, ART_WHY_RESTART, NULL);
		else
			l->followed = true;
	}
	CommitTransactionCommand();
	MemoryContextSwitchTo(loop_cxt);
	forget_closed();
	some_closed = false;
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (all[i].permanent && !all[i].followed)
			*again |= begin_index(&all[i]);
	}
	art_wal_index(art_followed_list);
	*again |= !forget_gone(all, n);
	return n;
}

/* ---- a batch ---- */

/*
 * In PG_CATCH: did replay cancel us, for a lock, a pin, or the snapshot of the catalog?  Then it
 * goes first.  Or did somebody cancel a step that was over by then?
 */
static bool
gave_way(void)
{
	int			code = geterrcode();

	if (code != ERRCODE_T_R_SERIALIZATION_FAILURE && code != ERRCODE_T_R_DEADLOCK_DETECTED &&
		code != ERRCODE_QUERY_CANCELED)
		return false;
	HOLD_INTERRUPTS();
	AbortCurrentTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	art_watch_anew();
	MemoryContextSwitchTo(loop_cxt);
	return true;
}

/*
 * In PG_CATCH, after an error in a step of one index: what of it (rows_in_error.c)?  An error that
 * ends the process is thrown on.
 */
static ArtVerdict
index_erred(ArtFollowed *x)
{
	int			code = geterrcode();
	const char *why = NULL;
	ArtVerdict	verdict;

	if (code == ERRCODE_ADMIN_SHUTDOWN || code == ERRCODE_CRASH_SHUTDOWN)
		PG_RE_THROW();
	HOLD_INTERRUPTS();
	art_keepup_erred(x);
	verdict = art_doubt(x, code, &why);
	if (verdict == ART_VERDICT_CLOSE)
		EmitErrorReport();
	AbortCurrentTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(loop_cxt);
	if (verdict == ART_VERDICT_CLOSE)
	{
		art_kept_close(x, why == NULL ? ART_WHY_RESTART : ART_WHY_ERROR, why);
		if (why == NULL)
			art_kept_put_off(x->indexoid, ART_ERRED_MS);
	}
	art_watch_anew();
	return verdict;
}

/*
 * Bring an index to where the records are that were taken; mark it, if it does not get there.
 *
 * Locks: takes the partition lock, exclusive, to mark it.
 * Order: the mark is set before the position moves.
 */
static void
keep_up(ArtFollowed *x, bool last)
{
	volatile bool done = true;
	volatile ArtVerdict verdict;
	bool		behind,
				unswept;

	do
	{
		verdict = ART_VERDICT_CLOSE;
		in_hand = x;
		PG_TRY();
		{
			done = art_keepup(x, last);
		}
		PG_CATCH();
		{
			verdict = index_erred(x);
			done = verdict != ART_VERDICT_LATER;
		}
		PG_END_TRY();
		MemoryContextSwitchTo(loop_cxt);
	} while (verdict == ART_VERDICT_AGAIN);
	in_hand = NULL;
	behind = !done || x->ndoubtful > 0;
	unswept = x->touched.due || x->sweep != NULL;
	if (x->closed || x->building || (behind == x->behind && unswept == x->unswept))
		return;
	if (!art_followed_mark(x->indexoid, &x->loc, x->gen, behind, unswept))
		art_kept_close(x, ART_WHY_RESTART, NULL);
	x->unswept = unswept;
	if (!behind && x->behind)
		ConditionVariableBroadcast(&art_me->moved);
	x->behind = behind;
}

/*
 * Go on with a build; it ends when all that came meanwhile is in, too.  Or go on with a sweep.  False: it
 * cannot, at the moment.
 */
static bool
go_on(ArtFollowed *x)
{
	volatile bool worked = false;

	in_hand = x;
	PG_TRY();
	{
		worked = x->building ? art_keepup_build(x) : art_keepup_sweep(x);
	}
	PG_CATCH();
	{
		worked = index_erred(x) == ART_VERDICT_AGAIN;
		if (x->building)
		{
			x->next_block = x->step_block;	/* what it had collected is gone */
			x->page_begun = false;
		}
	}
	PG_END_TRY();
	in_hand = NULL;
	MemoryContextSwitchTo(loop_cxt);
	return worked;
}

/*
 * The build has read all, and what came meanwhile is in: scans may come.
 *
 * Order: FOLLOWED is stored before recovery is asked for.  If that has ended, a new
 * primary's insert may have come while the state was BUILDING, and our sweep may have
 * taken its entry out.  So the structure goes.  If not, inserts find FOLLOWED, and wait.
 */
static void
publish_index(ArtFollowed *x)
{
	double		ms = (double) (GetCurrentTimestamp() - x->since) / 1000.0;

	x->behind = x->ndoubtful > 0;
	if (!art_followed_publish(x->indexoid, &x->loc, x->gen, ms, x->behind))
		x->closed = true;
	pg_memory_barrier();
	if (!RecoveryInProgress())
		art_kept_close(x, ART_WHY_RESTART, NULL);
	x->building = false;
}

/*
 * One batch.  *changed: the catalog may be another.  Returns whether there is more to do
 * at once.  Records that are replayed meanwhile are for the next batch.  That begins after a
 * pause, or when a scan asks for it: a few records cost as much as hundreds.
 */
static bool
apply_batch(bool last, bool *changed)
{
	XLogRecPtr	position = (XLogRecPtr) pg_atomic_read_u64(&art_me->position);
	TimestampTz begin = GetCurrentTimestamp();
	XLogRecPtr	replayed = GetXLogReplayRecPtr(NULL);
	XLogRecPtr	reached;
	uint64		dead = 0;
	bool		worked = false;

	reached = art_wal_read(replayed, changed);
	MemoryContextSwitchTo(loop_cxt);
	forget_closed();
	for (ArtFollowed *x = art_followed_list; x != NULL; x = x->next)
	{
		if (reached != position || x->building || last)
			art_doubtful_read_again(x);
		keep_up(x, last);
		dead += x->touched.ndead + x->touched.nsweeping;
	}

	/* all of it is in the structures, or they say that it is not */
	if (reached != position)
	{
		pg_write_barrier();
		pg_atomic_write_u64(&art_me->position, reached);
		ConditionVariableBroadcast(&art_me->moved);
		worked = reached < replayed;
	}
	pg_atomic_write_u64(&art_me->dead, dead);
	if (reached >= replayed)
		pg_atomic_write_u64(&art_me->as_of, (uint64) begin);
	if (last)
		return reached < replayed;

	for (ArtFollowed *x = art_followed_list; x != NULL; x = x->next)
	{
		/* without the lock it is tried again after a pause */
		if (x->closed)
			continue;
		if (x->building ? x->next_block < x->nblocks : x->touched.due || x->sweep != NULL)
			worked |= go_on(x);
		else if (x->building && x->touched.nto_read == 0 && art_touched_all_swept(&x->touched))
			publish_index(x);
	}
	forget_closed();
	return worked;
}

/*
 * Look at the catalog; -1: replay went first, so look again some time later.  WAL is read
 * for all that were begun before that.
 */
static int
try_look(bool *again)
{
	volatile int n = -1;

	PG_TRY();
	{
		n = look_at_catalog(again);
	}
	PG_CATCH();
	{
		if (!gave_way())
			PG_RE_THROW();
		art_wal_index(art_followed_list);
		*again = true;
	}
	PG_END_TRY();
	return n;
}

/* ---- promotion ---- */

/*
 * Recovery has ended.  Take what is left, and hand the structures over.  One that is
 * not complete, or whose table is locked, goes.  A prepared transaction may have given
 * the table another file, with rows that nobody has looked at.  Options that were altered
 * on the primary, and no row after that, were not looked at either.
 *
 * Locks: tries AccessShareLock on each table, for a transaction; takes partition
 * locks, shared or exclusive, one after the other.
 */
static void
hand_over(void)
{
	XLogRecPtr	replayed = GetXLogReplayRecPtr(NULL);
	bool		changed = false;

	for (ArtFollowed *x = art_followed_list; x != NULL; x = x->next)
		if (x->building)
			art_kept_close(x, ART_WHY_RESTART, NULL);
	while (apply_batch(true, &changed))
		CHECK_FOR_INTERRUPTS();
	for (ArtFollowed *x = art_followed_list; x != NULL; x = x->next)
	{
		LWLock	   *lock;
		ArtEntry   *e;

		if (x->closed)
			continue;
		StartTransactionCommand();
		if (x->behind || x->touched.nto_read > 0 || art_touched_must_sweep(&x->touched) ||
			x->ndoubtful > 0 || !ConditionalLockRelationOid(x->heapoid, AccessShareLock) ||
			!has_file(x->heapoid, &x->heap))
			art_kept_close(x, ART_WHY_RESTART, NULL);
		else
		{
			e = art_find_locked(x->indexoid, &x->loc, LW_EXCLUSIVE, &lock);
			/* the first who has the index open compares its options */
			if (e != NULL)
				e->changed |= ART_CHANGED_CAP | ART_CHANGED_ENGINE | ART_CHANGED_TAIL;
			art_unlock(lock);
			if (e != NULL)
				(void) art_entry_publish_ready(e, x->gen, ART_BUILD_REBUILD, 0.0, false);
		}
		CommitTransactionCommand();
	}
	MemoryContextSwitchTo(loop_cxt);
	handed_over = true;
	ereport(LOG,
			(errmsg("artidx: the indexes of a standby's database were handed over"),
			 errdetail("The last record that was replayed ends at %X/%X.",
					   LSN_FORMAT_ARGS(replayed))));
}

/* ---- main ---- */

/*
 * before_shmem_exit: what is noted here and not done goes with this process.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes partition locks and the chunk lock, exclusive, one after the other.
 */
static void
follower_exit(int code, Datum arg)
{
	/* an expression that did not even end when it was cancelled */
	if (in_hand != NULL && art_watch_end() == ART_END_STUCK)
		art_kept_close(in_hand, ART_WHY_ERROR, ART_STUCK_TEXT);
	for (ArtFollowed *x = art_followed_list; x != NULL && !handed_over; x = x->next)
		art_kept_close(x, ART_WHY_RESTART, NULL);
	art_worker_detach(my_slot, my_seq, true);
	ConditionVariableBroadcast(&art_me->moved);
	if (!handed_over && !no_index && art_build_workers > 0)
		art_follow_again();
	art_launcher_wake();
}

/* Kept from one turn of the loop to the next. */
typedef struct Turns
{
	bool		changed;		/* the catalog may be another */
	bool		again;			/* look at it again anyway */
	TimestampTz looked;
	bool		over;			/* this process has no more to do */
} Turns;

static Turns turns;

/* One turn of the loop.  Returns whether there is more to do at once. */
static bool
loop_turn(Turns *t)
{
	bool		recovery = RecoveryInProgress();
	TimestampTz now;
	bool		worked;

	if (art_worker_between())
		art_kept_put_off_none();
	if (art_build_workers == 0 || !recovery)
	{
		if (art_build_workers > 0)
			hand_over();
		t->over = true;
		return true;
	}
	worked = apply_batch(false, &t->changed);
	now = GetCurrentTimestamp();
	if ((t->changed && TimestampDifferenceExceeds(t->looked, now, ART_LOOK_MS)) ||
		((t->again || some_closed) && TimestampDifferenceExceeds(t->looked, now, ART_LOOK_AGAIN_MS)))
	{
		t->changed = false;
		(void) try_look(&t->again);
		t->looked = GetCurrentTimestamp();
		worked = true;
	}
	pgstat_report_stat(false);
	return worked;
}

/*
 * The same, and for how long to sleep then.  Replay's wish may be heard only when the
 * transaction in its way has ended: so anywhere.
 */
static long
try_turn(void)
{
	const uint64 position = pg_atomic_read_u64(&art_me->position);
	volatile bool worked = false;

	PG_TRY();
	{
		worked = loop_turn(&turns);
	}
	PG_CATCH();
	{
		if (!gave_way())
			PG_RE_THROW();
	}
	PG_END_TRY();
	if (turns.over)
		return -1;
	if (worked)
		return 0;
	return pg_atomic_read_u64(&art_me->position) != position ? ART_BUSY_MS : ART_IDLE_MS;
}

/*
 * Main function of the follower.
 */
void
art_follower_main(Datum arg)
{
	ArtWorkerSlot me;
	int			n;

	art_worker_begin();
	if (!art_worker_attach(arg, &me))
		proc_exit(0);
	my_slot = DatumGetInt32(arg);
	my_seq = me.seq;
	art_me = art_follower_begin(my_slot);
	before_shmem_exit(follower_exit, (Datum) 0);
	art_worker_connect(me.dboid);
	loop_cxt = AllocSetContextCreate(TopMemoryContext, "artidx follower",
									 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(loop_cxt);

	if (!RecoveryInProgress())
		proc_exit(0);
	pg_atomic_write_u64(&art_me->position, art_wal_begin());
	while ((n = try_look(&turns.again)) < 0)
		CHECK_FOR_INTERRUPTS();
	if (n == 0)
	{
		no_index = true;
		proc_exit(0);
	}
	turns.looked = GetCurrentTimestamp();
	art_worker_loop(try_turn, loop_cxt, ART_WAIT_EVENT(wait_event_idle, "ArtidxFollowerIdle"));
}
