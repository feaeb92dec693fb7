/*
 * database_worker.c
 *	  A background worker in one database: makes directory entries for its art
 *	  indexes, forgets entries whose index is gone, builds what is absent, checks
 *	  what outlived a crash.
 *
 * Started by the launcher (launcher.c), which tells what to do; it ends
 * when nothing is left.  Locks are taken conditionally: whoever holds one in
 * the way comes first, and the index is tried again later.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include <signal.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "build/build.h"
#include "eval/eval.h"
#include "limits/limits.h"
#include "live/background.h"
#include "saved/saved.h"
#include "workers/workers.h"
#include "live/live.h"

#define ART_REFUSED_MS		1000	/* a lock was not to be had */
#define ART_DOUBT_MS		10000	/* an index is in doubt, and nobody will tell */
#define ART_FAILED_MS		60000	/* the build erred */
#define ART_SCOUT_AGAIN_MS	30000	/* not every entry could be made */
#define ART_TIDY_AGAIN_MS	60000	/* what a trial has left could not be dropped */
#define ART_NOT_READY_MS	30000	/* CREATE INDEX CONCURRENTLY is at it, or failed */
#define ART_NOT_BUILT_MS	5000	/* no memory, or replaced meanwhile */
#define ART_LIST_MS			1000	/* a list of work is used for so long */
#define ART_CHECK_REST_MS	10000	/* at most, between two pieces */
#define ART_CHECK_REFUSED	2		/* times in a row; then the next comes first, */
#define ART_CHECK_PATIENT	600		/* unless this one was begun */
#define ART_KEY_BYTES		24		/* of an entry, to guess a size from a row count */

extern PGDLLEXPORT void art_worker_main(Datum arg);

static uint32 wait_event_check = 0;

static int	my_slot;
static uint32 my_seq;
static Oid	my_owner;			/* whose indexes it builds */
static int	my_jobs;			/* not done yet */
static MemoryContext worker_cxt;	/* of this run */
static bool scouted = false;	/* in this visit */
static bool worked = false;		/* it got as far as its work */
static bool not_ours = false;	/* the next index is for another process: src/eval */

/* what there is to be built, in order, as it was at listed_at */
static MemoryContext list_cxt;
static ArtWork *list = NULL;
static int	listed = 0;
static int	list_next = 0;
static TimestampTz listed_at = 0;
static uint32 listed_requests = 0;

/* for the log */
static int	nwalks = 0;			/* of the directory, for that list */
static int	nbuilt = 0;
static int	nleft_out = 0;
static TimestampTz first_built_at = 0;

static void
begin_work(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
}

static void
commit_work(void)
{
	if (ActiveSnapshotSet())
		PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(worker_cxt);
}

/* In PG_CATCH: the error is logged, and the work goes on with the next. */
static void
give_up(void)
{
	HOLD_INTERRUPTS();
	EmitErrorReport();
	AbortCurrentTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(worker_cxt);
}

/*
 * In PG_CATCH: the launcher has cancelled it.  That is no error to be logged; of an index
 * that is left out for it the log is told otherwise.
 */
static void
make_way(ArtEnd end)
{
	HOLD_INTERRUPTS();
	AbortCurrentTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(worker_cxt);
	elog(DEBUG1, "artidx: a build was cancelled: %s",
		 end == ART_END_LOCK ? "a lock of it is waited for" : ART_STUCK_TEXT);
}

/*
 * Between two pieces of work: interrupts, statistics, a reloaded
 * configuration.
 */
static void
between_pieces(void)
{
	art_watch_anew();
	(void) art_worker_between();
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/*
 * One of the visits is done: it need not be asked for again.
 *
 * Locks: takes the chunk lock, exclusive.
 */
static void
job_done(int job)
{
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	if (art_shared->workers[my_slot].seq == my_seq)
		art_shared->workers[my_slot].jobs &= ~job;
	art_unlock(art_chunk_lock);
}

/*
 * The file that the catalog gives to an index; false when it is not one of
 * ours, or not there.  As fresh as the last look at invalidations.
 */
static bool
catalog_locator(Oid indexoid, ArtLocator *loc)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	Form_pg_class form;
	bool		ours;

	if (!HeapTupleIsValid(tup))
		return false;
	form = (Form_pg_class) GETSTRUCT(tup);
	/* the extension may have come a moment ago */
	ours = form->relkind == RELKIND_INDEX && form->relam == get_am_oid(ART_AM_NAME, true);
	art_form_locator(form, loc);
	ReleaseSysCache(tup);
	return ours;
}

/*
 * Lock heap and index without waiting and open the index; NULL when it is not
 * to be had (*gone: it is not there any more).
 *
 * Locks: tries AccessShareLock on the table, then on the index.  Locks that it
 * got stay to the end of the transaction, with NULL too.
 */
static Relation
open_candidate(Oid indexoid, bool *gone)
{
	Oid			heapoid = IndexGetRelation(indexoid, true);
	Relation	index;

	*gone = !OidIsValid(heapoid);
	if (*gone || !ConditionalLockRelationOid(heapoid, AccessShareLock))
		return NULL;
	*gone = !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(heapoid));
	if (*gone || !ConditionalLockRelationOid(indexoid, AccessShareLock))
		return NULL;
	*gone = !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(indexoid));
	if (*gone)
		return NULL;
	index = index_open(indexoid, NoLock);
	if (index->rd_index->indrelid == heapoid && art_is_art_index(index))
		return index;
	index_close(index, NoLock);
	*gone = true;
	return NULL;
}

/* ---- the log ---- */

/*
 * In a transaction: an index is not in memory and will not come back by itself at
 * once.  The log is told so, once until it has been READY again.
 *
 * Locks: takes the partition lock, exclusive; the catalog is read after it was
 * released.
 */
static void
tell_left_out(Oid indexoid, const ArtLocator *loc)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);
	bool		tell = false;
	bool		memory = false;
	bool		unique = false;
	char		error[160];
	char	   *name;

	if (e && !e->told_out &&
		ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT &&
		(e->reason == ART_WHY_MEMORY || e->reason == ART_WHY_ERROR))
	{
		tell = e->told_out = true;
		memory = e->reason == ART_WHY_MEMORY;
		unique = e->unique;
		strlcpy(error, e->error, sizeof(error));
	}
	art_unlock(lock);
	name = tell ? art_sql_name(indexoid) : NULL;
	if (name == NULL)
		return;
	nleft_out++;
	ereport(WARNING,
			(errcode(memory ? ERRCODE_OUT_OF_MEMORY : ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("art index \"%s\" of database \"%s\" is left out: %s",
					name, get_database_name(MyDatabaseId),
					memory ? "there is no memory for it" : error),
			 unique ? errdetail("Queries run without it; an insert that needs it tries to build it.") :
			 errdetail("Queries run without it."),
			 memory ? errhint("Increase the configuration parameter \"artidx.memory\" or the index's \"max_memory\", or drop or unload other art indexes.") : 0));
}

/* ---- visits: making entries ---- */

typedef struct Seen
{
	Oid			indexoid;
	ArtLocator	loc;
	double		rows;
} Seen;

/*
 * All permanent and unlogged art indexes of the database.
 *
 * Locks: AccessShareLock on pg_class, for the scan.
 */
static int
list_resident(Oid amoid, Seen **out)
{
	Relation	pgclass;
	SysScanDesc scan;
	HeapTuple	tup;
	int			n = 0;
	int			cap = 64;

	*out = MemoryContextAlloc(worker_cxt, cap * sizeof(Seen));
	pgclass = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(pgclass, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tup = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tup);
		Seen	   *s;

		if (form->relkind != RELKIND_INDEX || form->relam != amoid ||
			form->relpersistence == RELPERSISTENCE_TEMP)
			continue;
		if (n == cap)
		{
			cap *= 2;
			*out = repalloc(*out, cap * sizeof(Seen));
		}
		s = &(*out)[n++];
		s->indexoid = form->oid;
		art_form_locator(form, &s->loc);
		s->rows = form->reltuples;
	}
	systable_endscan(scan);
	table_close(pgclass, AccessShareLock);
	return n;
}

/*
 * Put into the entry of an index, once, what is known of it from before the
 * restart.
 *
 * Locks: takes the partition lock, exclusive.
 */
static void
seed_entry(const Seen *s, const ArtHot *hot)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(s->indexoid, &s->loc, LW_EXCLUSIVE, &lock);

	if (e && e->size_hint == 0)
	{
		e->size_hint = 1 + (uint64) (Max(s->rows, 0.0) * ART_KEY_BYTES);
		if (hot)
		{
			pg_atomic_fetch_add_u32(&e->uses, hot->uses);
			if (pg_atomic_read_u32(&e->used_at) < hot->used_at)
				pg_atomic_write_u32(&e->used_at, hot->used_at);
			if (hot->bytes > 0)
				e->size_hint = hot->bytes;
		}
	}
	art_unlock(lock);
}

/*
 * Is there an entry, its structure known to be what the options ask for?
 *
 * Locks: takes the partition lock, shared.
 */
static bool
seen_has_entry(const Seen *s)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(s->indexoid, &s->loc, LW_SHARED, &lock);
	bool		has = e != NULL && (e->changed & ART_CHANGED_ENGINE) == 0;

	art_unlock(lock);
	return has;
}

/*
 * Make the entry of one index, in a transaction of its own.  False when a lock
 * was not to be had, or an error was logged (the area is full): then later.
 */
static bool
make_index_entry(Oid indexoid)
{
	volatile bool made = false;

	begin_work();
	PG_TRY();
	{
		bool		gone;
		Relation	index = open_candidate(indexoid, &gone);

		if (index)
		{
			art_apply_options(index, art_entry(index));
			index_close(index, NoLock);
		}
		made = index != NULL || gone;
		commit_work();
	}
	PG_CATCH();
	{
		give_up();
	}
	PG_END_TRY();
	return made;
}

/*
 * Make entries for the indexes that have none, so that the launcher knows of
 * them.
 */
static void
scout_indexes(void)
{
	Seen	   *seen = NULL;
	ArtHot	   *hot;
	int			nhot = art_hot_read(&hot);
	int			n = 0;
	bool		refused = false;
	Oid			amoid;

	pgstat_report_activity(STATE_RUNNING, "looking for absent art indexes");
	begin_work();
	amoid = get_am_oid(ART_AM_NAME, true);
	if (OidIsValid(amoid))
		n = list_resident(amoid, &seen);
	commit_work();

	for (int i = 0; i < n; i++)
	{
		Seen	   *s = &seen[i];

		CHECK_FOR_INTERRUPTS();
		if (!seen_has_entry(s))
			refused |= !make_index_entry(s->indexoid);
		seed_entry(s, art_hot_find(hot, nhot, s->indexoid, &s->loc));
	}
	begin_work();
	for (int i = 0; i < n; i++)
		tell_left_out(seen[i].indexoid, &seen[i].loc);
	commit_work();
	job_done(ART_JOB_SCOUT);
	if (refused)
		art_ask(MyDatabaseId, ART_JOB_SCOUT, ART_SCOUT_AGAIN_MS);
}

/* ---- visits: forgetting entries ---- */

/*
 * Forget the entry if its index is gone, or has another file by now.
 *
 * An entry may be used again only when nobody can have the index open with it.
 * A process that creates, drops or moves an index holds AccessExclusiveLock on
 * it until its transaction is over; its callbacks have run then.  One that
 * alters its options holds ShareUpdateExclusiveLock.  So once we have such a
 * lock nothing of that kind is under way, prepared or not.  The catalog may
 * then have no such index, or one with another locator.  In that case the
 * entry's locator is in no relation cache entry that is used under a lock.
 * Taking the lock brings that up to date.
 *
 * False: a transaction has the index locked.
 *
 * Locks: tries ShareUpdateExclusiveLock on the index and gives it back; under
 * it, takes the partition lock, exclusive.
 */
static bool
sweep_one(Oid indexoid, const ArtLocator *loc)
{
	ArtLocator	now;
	ArtEngine	want;
	LWLock	   *lock;
	ArtEntry   *e;

	if (!ConditionalLockRelationOid(indexoid, ShareUpdateExclusiveLock))
		return false;
	if (!catalog_locator(indexoid, &now) ||
		now.spc != loc->spc || now.rel != loc->rel)
		art_drop_locator(indexoid, loc, true);
	else
	{
		e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);
		if (e)
			e->doubt = false;
		art_unlock(lock);

		/* what was prepared may have been ALTER INDEX SET */
		art_index_altered(indexoid, art_catalog_engine(indexoid, &want) ? &want : NULL);
	}
	UnlockRelationOid(indexoid, ShareUpdateExclusiveLock);
	return true;
}

static int
seen_cmp(const void *a, const void *b)
{
	Oid			x = ((const Seen *) a)->indexoid;
	Oid			y = ((const Seen *) b)->indexoid;

	return x < y ? -1 : x > y;
}

/*
 * Compare all entries of the database with the catalog: in one pass, after which
 * only those are looked at that it does not have.
 *
 * Locks: takes the partition locks, shared, one after the other.
 */
static void
sweep_entries(void)
{
	ArtListed  *all;
	Seen	   *seen = NULL;
	int			nseen = 0;
	int			nsuspects = 0;
	int			n;
	int			over = 0;
	int			left = 0;
	Oid			amoid;

	pgstat_report_activity(STATE_RUNNING, "looking for art indexes that are gone");
	n = art_list_entries(MyDatabaseId, art_is_shared, NULL, &all);

	begin_work();
	amoid = get_am_oid(ART_AM_NAME, true);
	if (OidIsValid(amoid))
		nseen = list_resident(amoid, &seen);
	commit_work();
	if (nseen > 1)
		qsort(seen, nseen, sizeof(Seen), seen_cmp);

	/* a transaction each: what the catalog said a moment ago may be old */
	for (int i = 0; i < n; i++)
	{
		Seen		key = {.indexoid = all[i].indexoid};
		const Seen *s = nseen == 0 ? NULL :
			bsearch(&key, seen, nseen, sizeof(Seen), seen_cmp);

		if (!all[i].doubt && s != NULL &&
			s->loc.spc == all[i].loc.spc && s->loc.rel == all[i].loc.rel)
			continue;
		CHECK_FOR_INTERRUPTS();
		nsuspects++;
		begin_work();
		if (sweep_one(all[i].indexoid, &all[i].loc))
			over += all[i].doubt;
		else
			left += all[i].doubt;
		commit_work();
	}
	elog(DEBUG1, "artidx: swept %d entries, looked at %d", n, nsuspects);
	pfree(all);
	job_done(ART_JOB_SWEEP);
	if (art_prepared_nameless(left == 0))
	{
		if (left > 0)
			art_ask(MyDatabaseId, ART_JOB_SWEEP, ART_DOUBT_MS);
		/* a file that such a transaction made has no entry yet */
		if (over > 0)
			art_ask(MyDatabaseId, ART_JOB_SCOUT, 0);
	}
}

/* ---- builds ---- */

/*
 * Build or help with one, if it is still there and its locks are to be had.
 * In a transaction.
 */
static void
build_candidate(const ArtWork *w)
{
	bool		gone;
	Relation	index = open_candidate(w->indexoid, &gone);
	char		activity[64 + NAMEDATALEN];
	ArtLocator	loc;
	ArtBuildResult result;

	if (index == NULL)
	{
		art_not_before(w->indexoid, &w->loc, gone ? ART_FAILED_MS : ART_REFUSED_MS,
					   gone);
		if (gone)
			art_ask(MyDatabaseId, ART_JOB_SWEEP, ART_REFUSED_MS);
		return;
	}
	art_locator(index, &loc);
	if (loc.spc != w->loc.spc || loc.rel != w->loc.rel)
	{
		/* that file is gone, and this is a leftover */
		art_not_before(w->indexoid, &w->loc, ART_FAILED_MS, true);
		art_ask(MyDatabaseId, ART_JOB_SWEEP, 0);
	}
	else if (!index->rd_index->indisready || !index->rd_index->indislive ||
			 art_never_valid(index, art_entry_if_exists(index)))
		art_not_before(w->indexoid, &w->loc, ART_NOT_READY_MS, true);
	else if (art_is_for_another(index))
		not_ours = true;
	else
	{
		snprintf(activity, sizeof(activity), "%s art index \"%s\"",
				 w->help ? "helping to build" : "building",
				 RelationGetRelationName(index));
		pgstat_report_activity(STATE_RUNNING, activity);
		result = w->help ? ART_BUILT_BUSY : art_build_in_worker(index);
		switch (result)
		{
			case ART_BUILT_READY:
				nbuilt++;
				art_not_before(w->indexoid, &w->loc, 0, true);
				break;
			case ART_BUILT_BUSY:
				(void) art_build_help(index);
				art_not_before(w->indexoid, &w->loc, ART_REFUSED_MS, false);
				break;
			case ART_BUILT_GAVE_WAY:
				art_not_before(w->indexoid, &w->loc, ART_REFUSED_MS, false);
				break;
			case ART_BUILT_NOMEM:
				art_not_before(w->indexoid, &w->loc, ART_NOT_BUILT_MS, true);
				tell_left_out(w->indexoid, &w->loc);
				break;
			case ART_BUILT_STALE:
				art_not_before(w->indexoid, &w->loc, ART_NOT_BUILT_MS, true);
				break;
		}
	}
	index_close(index, NoLock);
}

/*
 * List the work anew: all of the directory is looked at, so not for each index.
 */
static void
list_work(void)
{
	MemoryContext old;

	if (list_cxt == NULL)
		list_cxt = AllocSetContextCreate(TopMemoryContext, "artidx work",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(list_cxt);
	old = MemoryContextSwitchTo(list_cxt);
	listed_requests = pg_atomic_read_u32(&art_shared->requests);
	listed = art_find_work(MyDatabaseId, my_owner, &list);
	MemoryContextSwitchTo(old);
	listed_at = GetCurrentTimestamp();
	list_next = 0;
	nwalks++;
}

/* Is the list too old, or does a statement wait that is not in it? */
static bool
list_is_old(void)
{
	return listed_requests != pg_atomic_read_u32(&art_shared->requests) ||
		TimestampDifferenceExceeds(listed_at, GetCurrentTimestamp(), ART_LIST_MS);
}

/*
 * The work was listed a moment ago: has somebody done it meanwhile?
 *
 * Locks: takes the partition lock, shared.
 */
static bool
still_wanted(const ArtWork *w)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(w->indexoid, &w->loc, LW_SHARED, &lock);
	bool		wanted = e != NULL && ART_WORD_STATE(pg_atomic_read_u64(&e->word)) != ART_READY &&
		e->not_before <= GetCurrentTimestamp();

	art_unlock(lock);
	return wanted;
}

/*
 * Build one index in a transaction of its own.  An error is told to the log
 * and the index left alone for a while.
 */
static void
build_one(const ArtWork *w)
{
	worked = true;
	art_watch_anew();
	if (first_built_at == 0)
		first_built_at = GetCurrentTimestamp();
	begin_work();
	PopActiveSnapshot();		/* a build takes its own, and renews it */
	PG_TRY();
	{
		build_candidate(w);
		commit_work();
	}
	PG_CATCH();
	{
		const bool	cancelled = geterrcode() == ERRCODE_QUERY_CANCELED;
		const ArtEnd end = cancelled ? art_watch_end() : ART_END_NOT;

		if (end == ART_END_LOCK || end == ART_END_STUCK)
			make_way(end);
		else
			give_up();
		art_watch_anew();
		/* of one that is stuck the entry knows how long */
		art_not_before(w->indexoid, &w->loc,
					   end == ART_END_LOCK ? ART_REFUSED_MS :
					   end == ART_END_STUCK && !w->help ? 0 : ART_FAILED_MS,
					   end != ART_END_LOCK);
		begin_work();
		tell_left_out(w->indexoid, &w->loc);
		commit_work();
	}
	PG_END_TRY();
}

/*
 * Take what comes first of the database's work and do it; false when there is
 * none that no other worker has in hand.
 */
static bool
build_next(void)
{
	bool		fresh = false;

	for (;;)
	{
		const ArtWork *w;

		if (list_next >= listed || list_is_old())
		{
			/* the end of a list that is new: then there is nothing */
			if (fresh && list_next >= listed)
				return false;
			list_work();
			fresh = true;
			if (listed == 0)
				return false;
		}
		w = &list[list_next++];
		if (still_wanted(w) && art_worker_claim(my_slot, w))
		{
			build_one(w);
			return true;
		}
	}
}

/* One line for all that this worker has built. */
static void
tell_built(void)
{
	if (nbuilt == 0 && nleft_out == 0)
		return;
	begin_work();
	ereport(LOG,
			(errmsg("artidx: built %d indexes of database \"%s\" in %.1f s, %d are left out",
					nbuilt, get_database_name(MyDatabaseId),
					first_built_at == 0 ? 0.0 :
					(double) (GetCurrentTimestamp() - first_built_at) / USECS_PER_SEC,
					nleft_out),
			 errdetail_internal("The directory was looked through %d times.", nwalks)));
	commit_work();
	nbuilt = nleft_out = 0;
}

/* ---- checks ---- */

static const ArtListed *checking = NULL;	/* this process, now */
static bool (*check_piece) (Relation index, uint64 gen, void **at, MemoryContext cxt) = NULL;

void
art_check_kept_by(bool (*fn) (Relation index, uint64 gen, void **at, MemoryContext cxt))
{
	check_piece = fn;
}

/* Was the structure kept over a crash, and not checked yet? */
static bool
is_unchecked(ArtEntry *e, const void *arg)
{
	return e->unchecked && ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_READY;
}

/*
 * The check of it is over.  One that differs from its table is given up, as if it had not
 * outlived the crash.  False: it was gone before.
 *
 * Locks: takes the partition lock, exclusive.
 */
static bool
end_kept(const ArtListed *k, bool differs)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(k->indexoid, &k->loc, LW_EXCLUSIVE, &lock);
	bool		there = e != NULL && e->unchecked &&
		pg_atomic_read_u64(&e->word) == ART_WORD(k->gen, ART_READY);
	Oid			heapoid = there ? e->heapoid : InvalidOid;

	if (there)
		e->unchecked = false;
	if (there && differs)
		(void) art_entry_absent(e, ART_WHY_RESTART, NULL);
	art_unlock_changed(lock, there && differs, k->loc.db, heapoid);
	if (there && differs)
		art_launcher_wake();
	return there;
}

typedef enum CheckEnd
{
	CHECK_MORE = 0,				/* that was one piece */
	CHECK_REFUSED,				/* not now: a lock or memory was not to be had, or it was cancelled */
	CHECK_GONE,					/* it is not there any more, or cannot be checked */
	CHECK_AGREES,				/* the last piece, and it is what its table says */
	CHECK_DIFFERS
} CheckEnd;

/*
 * In PG_CATCH: the check of it ended with an error, which the log is told.  CHECK_REFUSED: of
 * one that says nothing of the structure, which is checked later.
 */
static CheckEnd
check_failed(const ArtListed *k)
{
	ErrorData  *error;
	char	   *name;
	bool		differs;
	bool		later;
	bool		there;
	bool		stuck;
	const char *says;

	MemoryContextSwitchTo(worker_cxt);
	HOLD_INTERRUPTS();
	error = CopyErrorData();
	stuck = error->sqlerrcode == ERRCODE_QUERY_CANCELED && art_watch_end() == ART_END_STUCK;
	says = stuck ? ART_STUCK_TEXT : error->message;
	differs = error->sqlerrcode == ERRCODE_INDEX_CORRUPTED;
	later = (error->sqlerrcode == ERRCODE_QUERY_CANCELED && !stuck) ||
		error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_TRANSACTION_ROLLBACK ||
		ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_INSUFFICIENT_RESOURCES;
	AbortCurrentTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(worker_cxt);

	there = later || end_kept(k, differs);
	begin_work();
	name = art_sql_name(k->indexoid);
	if (differs && name != NULL)
		ereport(WARNING,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("art index \"%s\" of database \"%s\" has outlived a crash, and differs from its table",
						name, get_database_name(MyDatabaseId)),
				 errdetail("It is built again. The check said: %s", error->message),
				 errhint("What crashed may have written to memory that is not its own. A restart of the server makes all of it new.")));
	else if (there && name != NULL)
		ereport(LOG,
				(errcode(error->sqlerrcode),
				 errmsg("art index \"%s\" of database \"%s\" could not be checked after a crash: %s",
						name, get_database_name(MyDatabaseId), says),
				 later ? errdetail("It is checked later.") : 0));
	commit_work();
	FreeErrorData(error);
	return later ? CHECK_REFUSED : differs ? CHECK_DIFFERS : CHECK_GONE;
}

/*
 * Sleep, so that the piece that began then was a quarter of the time that
 * artidx.build_priority allows.  A wake-up does not make it shorter, but a change of that
 * setting does.
 */
static void
rest_after(TimestampTz began, double least_ms)
{
	TimestampTz ended = GetCurrentTimestamp();
	double		worked_ms = (double) (ended - began) / 1000;

	for (;;)
	{
		int			share;
		double		ms;

		between_pieces();
		if (art_build_workers == 0)
			return;
		share = Max(art_build_priority / 4, 1);
		ms = Min(Max(worked_ms * (100 - share) / share, least_ms), ART_CHECK_REST_MS);
		ms -= (double) (GetCurrentTimestamp() - ended) / 1000;
		if (ms <= 0)
			return;
		(void) art_doze((long) ms + 1, ART_WAIT_EVENT(wait_event_check, "ArtidxCheckDelay"));
	}
}

/* One piece of the check, in a transaction of its own. */
static CheckEnd
check_next(const ArtListed *k, void **at, MemoryContext cxt)
{
	bool		gone;
	CheckEnd	end;
	Relation	index;
	ArtLocator	loc;
	char		activity[64 + NAMEDATALEN];

	begin_work();
	index = open_candidate(k->indexoid, &gone);
	end = gone ? CHECK_GONE : CHECK_REFUSED;
	if (index)
	{
		snprintf(activity, sizeof(activity), "checking art index \"%s\"",
				 RelationGetRelationName(index));
		pgstat_report_activity(STATE_RUNNING, activity);
		art_locator(index, &loc);
		if (loc.spc != k->loc.spc || loc.rel != k->loc.rel ||
			!index->rd_index->indisvalid)
			end = CHECK_GONE;
		else if (art_is_for_another(index))
		{
			not_ours = true;
			end = CHECK_MORE;
		}
		else
			end = check_piece(index, k->gen, at, cxt) ? CHECK_AGREES : CHECK_MORE;
		index_close(index, NoLock);
	}
	commit_work();
	return end;
}

/*
 * Check one structure that was kept, until that is turned off (CHECK_MORE) or somebody
 * has its lock for long (CHECK_REFUSED).  It is waited for longer once it was begun, since
 * it would begin anew.
 */
static CheckEnd
check_one(const ArtListed *k)
{
	MemoryContext cxt = AllocSetContextCreate(worker_cxt, "artidx check",
											  ALLOCSET_SMALL_SIZES);
	void	   *at = NULL;
	int			refused = 0;
	volatile bool failed = false;
	volatile CheckEnd end = CHECK_MORE;

	while (art_build_workers > 0 && !failed && !not_ours && end <= CHECK_REFUSED &&
		   refused < (at == NULL ? ART_CHECK_REFUSED : ART_CHECK_PATIENT))
	{
		TimestampTz began = GetCurrentTimestamp();

		art_watch_anew();
		PG_TRY();
		{
			end = check_next(k, &at, cxt);
			if (end > CHECK_REFUSED)
				(void) end_kept(k, false);
		}
		PG_CATCH();
		{
			failed = true;
			end = check_failed(k);
		}
		PG_END_TRY();
		refused = end == CHECK_REFUSED ? refused + 1 : 0;
		rest_after(began, end == CHECK_REFUSED ? ART_REFUSED_MS : 0);
	}
	MemoryContextDelete(cxt);
	return end;
}

/*
 * Check what was kept over a crash, until that is turned off.  The directory says which
 * structures are left.  We ask for a check of those when we exit.  So a worker goes on with
 * them where another one was ended.
 *
 * Locks: takes the partition locks, shared, one after the other, to list them.
 */
static void
check_kept(void)
{
	TimestampTz began = GetCurrentTimestamp();
	ArtListed  *all;
	int			n = art_list_entries(MyDatabaseId, is_unchecked, NULL, &all);
	int			ends[CHECK_DIFFERS + 1] = {0};
	bool		left = false;

	for (int i = 0; i < n; i++)
	{
		CheckEnd	end;

		not_ours = false;
		checking = &all[i];
		end = check_one(checking);
		if (end == CHECK_AGREES || end == CHECK_DIFFERS)
			pg_atomic_fetch_add_u64(end == CHECK_AGREES ? &art_shared->checked_sound :
									&art_shared->checked_different, 1);
		if (not_ours)
			left = true;		/* for the next worker */
		else
			ends[end]++;
	}
	checking = NULL;
	pfree(all);
	if (ends[CHECK_MORE] > 0)
		return;					/* turned off */
	if (ends[CHECK_REFUSED] == 0 && !left)
		job_done(ART_JOB_CHECK);
	if (ends[CHECK_AGREES] + ends[CHECK_DIFFERS] == 0)
		return;
	begin_work();
	ereport(LOG,
			(errmsg("artidx: checked %d indexes of database \"%s\" that outlived a crash in %.1f s, %d differ from their tables",
					ends[CHECK_AGREES] + ends[CHECK_DIFFERS], get_database_name(MyDatabaseId),
					(double) (GetCurrentTimestamp() - began) / USECS_PER_SEC,
					ends[CHECK_DIFFERS]),
			 ends[CHECK_REFUSED] == 0 ? 0 :
			 errdetail("%d more are checked later.", ends[CHECK_REFUSED])));
	commit_work();
}

/* ---- what trials have left ---- */

static bool (*drop_leftovers) (void) = NULL;

void
art_leftovers_by(bool (*fn) (void))
{
	drop_leftovers = fn;
}

/*
 * Drop what a trial has left.  An error is logged, and another visit does it.
 */
static void
drop_trial_leftovers(void)
{
	volatile bool done = false;

	between_pieces();
	PG_TRY();
	{
		done = drop_leftovers();
	}
	PG_CATCH();
	{
		give_up();
	}
	PG_END_TRY();
	if (!done)
		art_ask(MyDatabaseId, ART_JOB_SCOUT, ART_TIDY_AGAIN_MS);
}

/* ---- main ---- */

static void
worker_exit(int code, Datum arg)
{
	/* an expression that did not even end when it was cancelled */
	if (checking != NULL && art_watch_end() == ART_END_STUCK)
		(void) end_kept(checking, false);
	art_worker_detach(my_slot, my_seq, worked);
}

/* One turn: a visit, the build of one index, or all checks.  Builds end where there is none left. */
static long
worker_turn(void)
{
	int			job = my_jobs & -my_jobs;	/* the lowest: in this order */

	between_pieces();
	switch (job)
	{
		case ART_JOB_SCOUT:
			scout_indexes();
			scouted = true;
			break;
		case ART_JOB_SWEEP:
			sweep_entries();
			break;
		case ART_JOB_BUILD:
			if (art_build_workers > 0 && !not_ours && art_watch_end() != ART_END_TURN &&
				build_next())
				return 0;
			(void) art_worker_claim(my_slot, NULL);
			break;
		case ART_JOB_CHECK:
			tell_built();
			check_kept();
			break;
		default:
			tell_built();
			if (scouted && !RecoveryInProgress())
				drop_trial_leftovers();
			worked = true;
			return -1;
	}
	my_jobs &= ~job;
	return 0;
}

/*
 * Main function of the worker.
 */
void
art_worker_main(Datum arg)
{
	ArtWorkerSlot me;

	art_worker_begin();
	if (!art_worker_attach(arg, &me))
		proc_exit(0);
	my_slot = DatumGetInt32(arg);
	my_seq = me.seq;
	on_shmem_exit(worker_exit, (Datum) 0);
	art_worker_connect(me.dboid);
	if (art_worker_barred(me.dboid))
		proc_exit(0);
	my_owner = me.owner;
	my_jobs = me.jobs;
	worker_cxt = AllocSetContextCreate(TopMemoryContext, "artidx builder",
									   ALLOCSET_DEFAULT_SIZES);
	art_worker_loop(worker_turn, worker_cxt, 0);
}
