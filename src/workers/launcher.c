/*
 * launcher.c
 *	  The launcher: who builds what, in the background, and when.
 *
 * A static background worker without a database, so that it is never in the
 * way of a command on one.  After start, crash and promotion it has every
 * database visited once by a worker (database_worker.c), which makes directory
 * entries for the art indexes there.  From then on it looks at the directory,
 * and starts workers where there is something to build.  It also reclaims
 * memory for idle processes, warns when the area fills, keeps the file of what
 * was used, and has leftovers swept.
 *
 * Nothing here decides correctness.  When the launcher is gone for a while,
 * statements build what they need by themselves.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include <signal.h>

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_database.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "build/build.h"
#include "limits/limits.h"
#include "live/background.h"
#include "saved/saved.h"
#include "workers/workers.h"

#define ART_LOOP_MS			1000
#define ART_WORKER_START_MS	10000	/* an asked-for worker that never came */
#define ART_SWEEP_MS		(10 * 60 * 1000)	/* databases that have entries */
#define ART_SWEEP_FULL_MS	30000	/* the same when memory runs short */
#define ART_HOT_MS			(60 * 1000)
#define ART_FADE_MS			(60 * 60 * 1000)	/* fame is halved */
#define ART_TELL_MS			(10 * 60 * 1000)	/* that there is no worker */
#define ART_FOLLOW_MS		(60 * 1000) /* between two followers of a database */
#define ART_FOLLOW_SOON_MS	5000	/* the same, when somebody asked */
#define ART_HELP_BLOCKS		4096	/* left of a heap, for a second worker */

extern PGDLLEXPORT void art_launcher_main(Datum arg);

static uint32 wait_event_launcher = 0;

/* ---- what is there to be built ---- */

static bool
ms_passed(TimestampTz since, TimestampTz now, int64 ms)
{
	return since + ms * INT64CONST(1000) <= now;
}

/*
 * Does the entry want a worker now? mem is the area's.
 *
 * Locks: partition lock held, in any mode.
 */
static bool
wants_worker(ArtEntry *e, TimestampTz now, const ax_memory_info *mem, bool *help)
{
	uint64		all = mem->used_bytes + mem->free_bytes;
	ArtState	state = ART_WORD_STATE(pg_atomic_read_u64(&e->word));
	bool		urgent = e->wanted == ART_WANT_BUILD;
	/* while "old_snapshot_threshold" is set, only inserts use a structure */
	bool		unasked = !ART_OLD_SNAPSHOT_IN_USE();

	*help = false;
	if (state == ART_READY || state == ART_FOLLOWED || e->loc.backend != -1 || e->doubt)
		return false;
	if (e->not_before > now || (!unasked && !urgent) || art_stuck_until(e) > now)
		return false;

	if (state == ART_BUILDING)
	{
		if (!e->resumable)
			return false;		/* CREATE INDEX */
		if (!art_owner_alive(e))
			return true;		/* it was left */
		*help = true;
		return e->nblocks > e->next_block &&
			e->nblocks - e->next_block >= ART_HELP_BLOCKS;
	}

	if (urgent)
		return true;
	if (e->reason == ART_WHY_UNLOADED)
		return false;
	if (e->sealed)
		return art_room_again(e, mem->free_bytes, all);
	if (e->failed_at != 0 && e->reason == ART_WHY_MEMORY)
		return e->full != ART_FULL_CAP &&
			ms_passed(e->failed_at, now, Max(e->backoff_s, 5) * INT64CONST(1000)) &&
			art_groups_left(e, mem->free_bytes) >= Max(art_room_wanted(e->last_bytes, all),
								   art_room_wanted(e->failed_free, all));
	return art_error_until(e) <= now;
}

/*
 * The order: structures that a statement waits for; builds before helping with
 * one; those that have not failed.  Then those that inserts need; those that plans
 * missed; the most and the last used; the small.
 */
static int
work_cmp(const void *a, const void *b)
{
	const ArtWork *x = a;
	const ArtWork *y = b;

	if (x->urgent != y->urgent)
		return x->urgent ? -1 : 1;
	if (x->help != y->help)
		return x->help ? 1 : -1;
	if (x->failed != y->failed)
		return x->failed ? 1 : -1;
	if (x->unique != y->unique)
		return x->unique ? -1 : 1;
	if (x->planned != y->planned)
		return x->planned ? -1 : 1;
	if (x->uses != y->uses)
		return x->uses > y->uses ? -1 : 1;
	if (x->used_at != y->used_at)
		return x->used_at > y->used_at ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	if (x->indexoid != y->indexoid)
		return x->indexoid < y->indexoid ? -1 : 1;
	return 0;
}

/*
 * Epoch: enters and leaves.
 * Locks: takes the partition locks, shared, one after the other.
 */
int
art_find_work(Oid db, Oid owner, ArtWork **work)
{
	ax_ctx	   *cx = art_ctx();
	ArtWalk		walk = art_walk(LW_SHARED, db, InvalidOid);
	TimestampTz now = GetCurrentTimestamp();
	ax_memory_info mem;
	int			n = 0;
	int			cap = 64;

	*work = palloc(cap * sizeof(ArtWork));
	ART_CORE_BEGIN();
	ax_memory(cx, &mem);
	ART_CORE_END();

	for (ArtEntry *e; (e = art_walk_next(&walk)) != NULL;)
	{
		ArtWork    *w;
		bool		help;

		if ((OidIsValid(owner) && e->owner != owner) || !wants_worker(e, now, &mem, &help))
			continue;
		if (n == cap)
		{
			cap *= 2;
			*work = repalloc(*work, cap * sizeof(ArtWork));
		}
		w = &(*work)[n++];
		memset(w, 0, sizeof(*w));
		w->db = e->loc.db;
		w->indexoid = e->indexoid;
		w->heapoid = e->heapoid;
		w->owner = e->owner;
		w->loc = e->loc;
		w->urgent = e->wanted == ART_WANT_BUILD;
		w->unique = e->unique;
		w->planned = e->wanted == ART_WANT_PLAN;
		w->help = help;
		w->failed = e->failed_at != 0 && e->reason == ART_WHY_ERROR;
		w->uses = pg_atomic_read_u32(&e->uses);
		w->used_at = pg_atomic_read_u32(&e->used_at);
		w->size = Max(e->size_hint, e->last_bytes);
	}
	qsort(*work, n, sizeof(ArtWork), work_cmp);
	return n;
}

/*
 * Locks: takes the partition lock, exclusive.
 */
void
art_not_before(Oid indexoid, const ArtLocator *loc, int delay_ms,
			   bool wanted_no_more)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);

	if (e)
	{
		e->not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), delay_ms);
		if (wanted_no_more)
			e->wanted = ART_WANT_NOTHING;
	}
	art_unlock(lock);
}

/* ---- the launcher's own memory ---- */

typedef struct Database
{
	Oid			oid;
	bool		allowed;		/* may be connected to */
	bool		ready;			/* and a builder may go there now */
	bool		is_template;
	bool		listed;			/* seen in the present listing */
	bool		has_entries;	/* when the directory was looked through last */
	int			jobs;			/* visits that are due */
	uint64		heat;			/* of its records in the file */
	TimestampTz swept;
	TimestampTz followed;		/* a follower was started there last */
} Database;

static MemoryContext launcher_cxt;
static MemoryContext loop_cxt;
static Database *databases = NULL;
static int	ndatabases = 0;
static int	databases_cap = 0;
static uint32 listed_drops = 0; /* art_shared->drops, before they were listed */
static ArtHot *old_hot = NULL;	/* from the file, until its database was visited */
static int	nold_hot = 0;
static pg_crc32c hot_written = 0;
static int	warned_percent = 0;

static int
database_cmp(const void *a, const void *b)
{
	Oid			x = ((const Database *) a)->oid;
	Oid			y = ((const Database *) b)->oid;

	return x < y ? -1 : x > y;
}

/* Among the first n, which are in order. */
static Database *
find_database_of(Oid oid, int n)
{
	Database	key = {.oid = oid};

	return n == 0 ? NULL : bsearch(&key, databases, n, sizeof(Database), database_cmp);
}

static Database *
find_database(Oid oid)
{
	return find_database_of(oid, ndatabases);
}

/*
 * List the databases; new ones want a visit.
 *
 * Locks: takes the chunk lock, shared; AccessShareLock on pg_database, in a
 * transaction of its own.
 * Order: the number of drops is read before the catalog, so
 * art_worker_reserve() refuses what was listed before a later drop.
 */
static void
list_databases(void)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tup;
	int			kept = 0;
	int			known = ndatabases;

	for (int i = 0; i < ndatabases; i++)
		databases[i].listed = false;
	art_lock(art_chunk_lock, LW_SHARED);
	listed_drops = art_shared->drops;
	art_unlock(art_chunk_lock);

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while (HeapTupleIsValid(tup = heap_getnext(scan, ForwardScanDirection)))
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tup);
		Database   *d = find_database_of(form->oid, known);

		if (d == NULL)
		{
			if (ndatabases == databases_cap)
			{
				databases_cap = Max(16, 2 * databases_cap);
				databases = databases == NULL ?
					MemoryContextAlloc(launcher_cxt, databases_cap * sizeof(Database)) :
					repalloc(databases, databases_cap * sizeof(Database));
			}
			d = &databases[ndatabases++];
			memset(d, 0, sizeof(*d));
			d->oid = form->oid;
			/* what was kept over a crash may be damaged, or of indexes that are gone */
			d->jobs = ART_JOB_SCOUT |
				(art_shared->kept ? ART_JOB_SWEEP | ART_JOB_CHECK : 0);
			d->swept = GetCurrentTimestamp();
			for (int i = 0; i < nold_hot; i++)
				if (old_hot[i].loc.db == d->oid)
					d->heat += (uint64) old_hot[i].uses + 1;
		}
		d->listed = true;
		d->is_template = form->datistemplate;
		d->allowed = form->datallowconn;
#ifdef DATCONNLIMIT_INVALID_DB
		if (form->datconnlimit == DATCONNLIMIT_INVALID_DB)
			d->allowed = false;
#endif
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(loop_cxt);

	for (int i = 0; i < ndatabases; i++)
		if (databases[i].listed)
			databases[kept++] = databases[i];
	ndatabases = kept;
	if (ndatabases > 1)
		qsort(databases, ndatabases, sizeof(Database), database_cmp);
}

/* ---- what the whole directory tells ---- */

typedef struct Survey
{
	ArtHot	   *hot;			/* one record an index that was used */
	int			nhot;
	Oid		   *dbs;			/* databases that have entries */
	int			ndbs;
} Survey;

/*
 * Walk the directory.  fade: halve what was used.
 *
 * Locks: takes the partition locks, shared, one after the other.  "uses" is
 * atomic and may be halved under a shared lock.
 */
static void
survey_directory(Survey *s, bool fade)
{
	int			hot_cap = 64;
	int			dbs_cap = 16;
	ArtWalk		w = art_walk(LW_SHARED, InvalidOid, InvalidOid);
	HASHCTL		ctl = {0};
	HTAB	   *dbs;

	memset(s, 0, sizeof(*s));
	s->hot = palloc0(hot_cap * sizeof(ArtHot));
	s->dbs = palloc(dbs_cap * sizeof(Oid));
	ctl.keysize = ctl.entrysize = sizeof(Oid);
	ctl.hcxt = CurrentMemoryContext;
	dbs = hash_create("artidx databases", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		uint32		uses;
		bool		found;

		(void) hash_search(dbs, &e->loc.db, HASH_ENTER, &found);
		if (!found)
		{
			if (s->ndbs == dbs_cap)
			{
				dbs_cap *= 2;
				s->dbs = repalloc(s->dbs, dbs_cap * sizeof(Oid));
			}
			s->dbs[s->ndbs++] = e->loc.db;
		}

		uses = pg_atomic_read_u32(&e->uses);
		if (fade && uses > 0)
			pg_atomic_fetch_sub_u32(&e->uses, uses - uses / 2);
		if (uses == 0 || e->loc.backend != -1)
			continue;
		if (s->nhot == hot_cap)
		{
			s->hot = repalloc(s->hot, 2 * hot_cap * sizeof(ArtHot));
			memset(s->hot + hot_cap, 0, hot_cap * sizeof(ArtHot));
			hot_cap *= 2;
		}
		s->hot[s->nhot].indexoid = e->indexoid;
		s->hot[s->nhot].loc = e->loc;
		s->hot[s->nhot].uses = uses;
		s->hot[s->nhot].used_at = pg_atomic_read_u32(&e->used_at);
		s->hot[s->nhot].bytes = Max(e->last_bytes, e->size_hint);
		s->nhot++;
	}
}

/*
 * Is a worker on such a visit to the database, or asked for one?
 *
 * Locks: takes the chunk lock, shared.
 */
static bool
visit_runs(Oid dboid, int jobs)
{
	bool		runs = false;

	art_lock(art_chunk_lock, LW_SHARED);
	for (int i = 0; i < ART_NWORKERS; i++)
		if (art_shared->workers[i].dboid == dboid &&
			(art_shared->workers[i].jobs & jobs) != 0)
			runs = true;
	for (int i = 0; i < ART_NASKS; i++)
		if (art_shared->asks[i].dboid == dboid &&
			(art_shared->asks[i].jobs & jobs) != 0)
			runs = true;
	art_unlock(art_chunk_lock);
	return runs;
}

/*
 * Write the file if anything changed.  Its records of databases that were not
 * visited yet are kept.
 */
static void
write_hot(void)
{
	Survey		s;
	ArtHot	   *all;
	int			n;
	pg_crc32c	crc;

	survey_directory(&s, false);
	all = palloc0((s.nhot + nold_hot + 1) * sizeof(ArtHot));
	memcpy(all, s.hot, s.nhot * sizeof(ArtHot));
	n = s.nhot;
	qsort(all, n, sizeof(ArtHot), art_hot_cmp);
	for (int i = 0; i < nold_hot; i++)
	{
		Database   *d = find_database(old_hot[i].loc.db);

		if (d && ((d->jobs & ART_JOB_SCOUT) || visit_runs(d->oid, ART_JOB_SCOUT)) &&
			art_hot_find(all, s.nhot, old_hot[i].indexoid, &old_hot[i].loc) == NULL)
			all[n++] = old_hot[i];
	}
	qsort(all, n, sizeof(ArtHot), art_hot_cmp);

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, all, n * sizeof(ArtHot));
	FIN_CRC32C(crc);
	if (crc != hot_written && art_hot_write(all, n, LOG))
		hot_written = crc;
}

/* ---- starting workers ---- */

/*
 * A worker was not to be had.  Others may hold all of them for a moment, again
 * and again, so the log is not told each time.
 */
static void
report_no_worker(void)
{
	static TimestampTz told = 0;
	TimestampTz now = GetCurrentTimestamp();

	pg_atomic_write_u32(&art_shared->no_worker, 1);
	if (told != 0 && !ms_passed(told, now, ART_TELL_MS))
		return;
	told = now;
	ereport(WARNING,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("no background worker is free to build art indexes"),
			 errdetail("Until one is free, statements build the indexes that they need."),
			 errhint("Increase the configuration parameter \"max_worker_processes\".")));
}

/*
 * Start one.  False when there is no slot here or in the server, or the
 * database is barred, or may have been dropped since they were listed.
 */
static bool
start_worker(Oid dboid, Oid owner, int jobs)
{
	BackgroundWorker worker;
	uint32		seq;
	int			slot;

	slot = art_worker_reserve(dboid, owner, jobs, listed_drops, &seq);
	if (slot < 0)
		return false;

	if (jobs & ART_JOB_FOLLOW)
		art_define_worker(&worker, "follower", "art_follower_main");
	else
	{
		art_define_worker(&worker, "builder", "art_worker_main");
		worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	}
	worker.bgw_main_arg = Int32GetDatum(slot);
	memcpy(worker.bgw_extra, &seq, sizeof(seq));
	worker.bgw_notify_pid = MyProcPid;	/* its end wakes us */
	if (RegisterDynamicBackgroundWorker(&worker, NULL))
	{
		pg_atomic_write_u32(&art_shared->no_worker, 0);
		return true;
	}

	/* all of max_worker_processes are taken: later */
	report_no_worker();
	art_worker_release(slot, seq);
	return false;
}

/*
 * Copy the slots, freeing those whose worker never came; returns how many build or visit.
 *
 * Locks: takes the chunk lock, exclusive.
 */
static int
look_at_workers(ArtWorkerSlot *copy)
{
	TimestampTz now = GetCurrentTimestamp();
	int			used = 0;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	for (int i = 0; i < ART_NWORKERS; i++)
	{
		ArtWorkerSlot *s = &art_shared->workers[i];

		if (s->dboid != InvalidOid && s->pid == 0 &&
			ms_passed(s->asked, now, ART_WORKER_START_MS))
		{
			Database   *d = find_database(s->dboid);

			if (d)
				d->jobs |= s->jobs & ART_JOB_ORDERS;
			s->dboid = InvalidOid;
		}
		copy[i] = *s;
		if (s->dboid != InvalidOid && (s->jobs & (ART_JOB_CHECK | ART_JOB_FOLLOW)) == 0)
			used++;
	}
	art_unlock(art_chunk_lock);
	return used;
}

/*
 * Take over the requests that are due.  True when there were some, or a new
 * database: the list of databases should be fresh.
 *
 * Locks: takes the chunk lock, exclusive.
 */
static bool
take_asks(int *jobs, Oid *dbs, int *n)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		fresh;

	*n = 0;
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	fresh = art_shared->new_database;
	art_shared->new_database = false;
	for (int i = 0; i < ART_NASKS; i++)
	{
		ArtAsk	   *a = &art_shared->asks[i];

		if (a->dboid != InvalidOid && a->at <= now)
		{
			dbs[*n] = a->dboid;
			jobs[(*n)++] = a->jobs;
			a->dboid = InvalidOid;
		}
	}
	art_unlock(art_chunk_lock);
	return fresh || *n > 0;
}

/*
 * Which database to visit next: what is hot first, templates last.  Without
 * builds there is nothing to make entries for.
 */
static Database *
next_visit(const ArtWorkerSlot *slots, bool builds, int *jobs)
{
	Database   *best = NULL;
	int			mask = ART_JOB_SWEEP | (builds ? ART_JOB_SCOUT : 0);

	for (int i = 0; i < ndatabases; i++)
	{
		Database   *d = &databases[i];
		bool		busy = false;

		if (!d->allowed || (d->jobs & mask) == 0)
			continue;
		for (int j = 0; j < ART_NWORKERS && !busy; j++)
			busy = slots[j].dboid == d->oid && (slots[j].jobs & ART_JOB_VISIT) != 0;
		if (busy || art_worker_barred(d->oid))
			continue;
		if (best == NULL ||
			(d->is_template != best->is_template ? best->is_template :
			 d->heat > best->heat))
			best = d;
	}
	if (best)
		*jobs = best->jobs & mask;
	return best;
}

/*
 * Did a builder there not get as far as its work a moment ago?
 *
 * Locks: takes the chunk lock, shared.
 */
static bool
put_off(Oid dboid)
{
	bool		is = false;

	art_lock(art_chunk_lock, LW_SHARED);
	for (int i = 0; i < ART_NASKS; i++)
		if (art_shared->asks[i].dboid == dboid &&
			(art_shared->asks[i].jobs & ART_JOB_BUILD) != 0)
			is = true;
	art_unlock(art_chunk_lock);
	return is;
}

/* Which of the work is in a database that a builder may go to now? */
static void
mark_ready(ArtWork *work, int nwork)
{
	for (int i = 0; i < ndatabases; i++)
	{
		Database   *d = &databases[i];

		d->ready = d->allowed && !art_worker_barred(d->oid) && !put_off(d->oid);
	}
	for (int i = 0; i < nwork; i++)
	{
		Database   *d = find_database(work[i].db);

		work[i].ready = d != NULL && d->ready;
	}
}

/*
 * Start builders, as far as slots go.  pressing: only for what a statement waits for, or who
 * has waited long.  False: there is no worker to be had.
 */
static bool
start_builders(ArtWork *work, int nwork, bool pressing, int limit)
{
	ArtWorkerSlot slots[ART_NWORKERS];

	while (look_at_workers(slots) < limit)
	{
		int			i;

		art_turns_mark(work, nwork, slots);
		i = art_turns_next(work, nwork, slots, pressing);
		if (i < 0)
			break;
		if (!start_worker(work[i].db, work[i].owner, ART_JOB_BUILD))
			return false;
	}
	return true;
}

/*
 * Start visits, as far as slots go.  They are short, but never take all the slots.  *waits: a
 * database that would be visited, were there a slot.  False: there is no worker to be had.
 */
static bool
start_visits(int limit, Oid *waits)
{
	for (;;)
	{
		ArtWorkerSlot slots[ART_NWORKERS];
		int			used = look_at_workers(slots);
		int			visits = 0;
		int			jobs = 0;
		Database   *d = next_visit(slots, limit > 0, &jobs);

		for (int i = 0; i < ART_NWORKERS; i++)
			if (slots[i].dboid != InvalidOid && (slots[i].jobs & ART_JOB_VISIT) != 0)
				visits++;
		*waits = InvalidOid;
		if (d == NULL || visits >= Max(1, limit / 2))
			return true;
		if (used >= Max(limit, 1))
		{
			*waits = d->oid;
			return true;
		}
		if (!start_worker(d->oid, InvalidOid, jobs))
			return false;
		d->jobs &= ~jobs;
		if (jobs & ART_JOB_SWEEP)
			d->swept = GetCurrentTimestamp();
	}
}

/*
 * Start a check of what was kept over a crash.  It is long, so only one works at a time,
 * beside those that build, and begins when nothing else is to be done.  The databases
 * come in turn, so one whose tables are locked keeps no other waiting.
 */
static void
start_check(void)
{
	static Oid	last = InvalidOid;
	ArtWorkerSlot slots[ART_NWORKERS];
	Database   *next = NULL;

	if (art_build_workers == 0)
		return;
	for (int i = 0; i < ndatabases; i++)
	{
		Database   *d = &databases[i];

		if (d->allowed && (d->jobs & ART_JOB_CHECK) != 0 && !art_worker_barred(d->oid) &&
			(next == NULL || (next->oid <= last && d->oid > last)))
			next = d;
	}
	if (next == NULL)
		return;
	(void) look_at_workers(slots);
	for (int i = 0; i < ART_NWORKERS; i++)
		if (slots[i].dboid != InvalidOid && (slots[i].jobs & ART_JOB_CHECK) != 0)
			return;
	last = next->oid;
	if (start_worker(last, InvalidOid, ART_JOB_CHECK))
		next->jobs &= ~ART_JOB_CHECK;
}

/*
 * Start what is to be started: builds that somebody waits for, then visits,
 * then all other builds.  A visit for which there was no slot comes first next time.
 * Returns whether somebody waits for a slot.
 */
static bool
start_workers(void)
{
	static Oid	waits = InvalidOid;
	ArtWorkerSlot slots[ART_NWORKERS];
	ArtWork    *work = NULL;
	int			nwork = 0;
	int			limit = Min(art_build_workers, ART_NBUILDERS);
	int			used;

	if (limit > 0)
		nwork = art_find_work(InvalidOid, InvalidOid, &work);
	if (nwork > 0)
		list_databases();		/* may they still be connected to? */
	mark_ready(work, nwork);
	if ((OidIsValid(waits) && !start_visits(limit, &waits)) ||
		!start_builders(work, nwork, true, limit) ||
		!start_visits(limit, &waits) ||
		!start_builders(work, nwork, false, limit))
		return false;

	used = look_at_workers(slots);
	if (used == 0)
		start_check();
	art_turns_mark(work, nwork, slots);
	return art_turns_end(work, nwork, slots, used >= limit, waits);
}

/*
 * Tell plans when they need not look for indexes that are being built.  Then
 * nothing is, and the indexes of every database are known.
 *
 * Order: the number is read before anything is looked at.  A process that makes
 * a structure absent, or begins one, adds to it afterwards.
 */
static void
settle_indexes(void)
{
	uint32		seen = pg_atomic_read_u32(&art_shared->unsettled);

	if (pg_atomic_read_u32(&art_shared->settled) == seen + 1)
		return;
	pg_memory_barrier();
	for (int i = 0; i < ndatabases && art_build_workers > 0; i++)
		if (databases[i].allowed &&
			((databases[i].jobs & ART_JOB_SCOUT) || visit_runs(databases[i].oid, ART_JOB_SCOUT)))
			return;
	if (!art_any_coming())
		pg_atomic_write_u32(&art_shared->settled, seen + 1);
}

/* ---- memory ---- */

/*
 * Reclaim for processes that are idle, and tell the log when little is left.
 * Returns how much is used, in per cent of what indexes can have.
 *
 * Epoch: enters and leaves.
 */
static int
watch_memory(void)
{
	static const int marks[] = {80, 90, 95};
	ax_ctx	   *cx = art_ctx();
	ax_memory_info mem;
	int			percent;
	int			mark = 0;

	art_poll();
	ART_CORE_BEGIN();
	ax_memory(cx, &mem);
	ART_CORE_END();

	percent = (int) (mem.used_bytes * 100 / Max(mem.used_bytes + mem.free_bytes, 1));
	for (int i = 0; i < (int) lengthof(marks); i++)
		if (percent >= marks[i])
			mark = marks[i];
	if (mark > warned_percent)
		ereport(LOG,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("%d per cent of the shared memory for art indexes is in use",
						percent),
				 errdetail("Of %llu bytes %llu are in use and %llu are free.",
						   (unsigned long long) mem.area_bytes,
						   (unsigned long long) mem.used_bytes,
						   (unsigned long long) mem.free_bytes),
				 errhint("Increase the configuration parameter \"artidx.memory\", or drop indexes that are not needed.")));

	/* a mark is armed again only when use has fallen well below it */
	if (mark > warned_percent || percent + 5 < warned_percent)
		warned_percent = mark;
	return percent;
}

/* ---- main ---- */

static void
launcher_exit(int code, Datum arg)
{
	pg_atomic_write_u32(&art_shared->launcher, 0);
	if (loop_cxt)
	{
		MemoryContextSwitchTo(loop_cxt);
		write_hot();
	}
}

/*
 * Which databases have entries?  Delete what is left of databases that are
 * gone.
 */
static void
look_for_databases(void)
{
	Survey		s;
	bool		listed = false;

	/* first who has entries, then who is there: so a new one is not taken for gone */
	survey_directory(&s, false);
	for (int i = 0; i < ndatabases; i++)
		databases[i].has_entries = false;
	for (int i = 0; i < s.ndbs; i++)
	{
		Database   *d = find_database(s.dbs[i]);

		if (d == NULL && !listed)
		{
			list_databases();
			listed = true;
			d = find_database(s.dbs[i]);
		}
		if (d == NULL)
			art_drop_database(s.dbs[i], true);
		else
			d->has_entries = true;
	}
	elog(DEBUG1, "artidx: looked through the directory, entries of %d databases", s.ndbs);
}

/*
 * Sweep databases that are gone.  The directory is looked through only when entries came or
 * went, and now and then.
 */
static void
sweep_databases(void)
{
	static TimestampTz looked = 0;
	static uint32 seen = 0;
	TimestampTz now = GetCurrentTimestamp();
	uint32		changed = pg_atomic_read_u32(&art_shared->entries_changed);

	if (looked != 0 && changed == seen && !ms_passed(looked, now, ART_SWEEP_MS))
		return;
	seen = changed;
	looked = now;
	look_for_databases();
}

/*
 * Sweep: databases that are gone here, the others by a visit.
 */
static void
order_sweeps(int percent)
{
	TimestampTz now = GetCurrentTimestamp();
	int			every = percent >= 80 ? ART_SWEEP_FULL_MS : ART_SWEEP_MS;

	sweep_databases();
	for (int i = 0; i < ndatabases; i++)
	{
		Database   *d = &databases[i];

		if (d->has_entries && ms_passed(d->swept, now, every))
		{
			d->jobs |= ART_JOB_SWEEP;
			d->swept = now;
		}
	}
}

/* The launcher's process until it can work: signals, memory, what is known. */
static void
launcher_begin(void)
{
	art_worker_begin();
	art_worker_connect(InvalidOid);
	launcher_cxt = AllocSetContextCreate(TopMemoryContext, "artidx launcher",
										 ALLOCSET_DEFAULT_SIZES);
	loop_cxt = AllocSetContextCreate(launcher_cxt, "artidx launcher loop",
									 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(launcher_cxt);
	nold_hot = art_hot_read(&old_hot);
	MemoryContextSwitchTo(loop_cxt);
	list_databases();

	/* no database's setting of it reaches us */
	pg_atomic_write_u32(&art_shared->build_kb, maintenance_work_mem);
	before_shmem_exit(launcher_exit, (Datum) 0);
	pg_atomic_write_u32(&art_shared->launcher, (uint32) ART_MY_PROCNO() + 1);
}

/*
 * On a standby: a follower for each database that has none.  One that finds no art index
 * ends, and comes again after a while, or when a plan asks for it.
 *
 * Locks: takes the chunk lock, exclusive.
 */
static void
follow_databases(void)
{
	static TimestampTz listed = 0;
	ArtWorkerSlot slots[ART_NWORKERS];
	TimestampTz now = GetCurrentTimestamp();
	bool		asked;
	bool		waits = false;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	asked = art_shared->follow_asked;
	art_shared->follow_asked = false;
	art_unlock(art_chunk_lock);
	if (art_build_workers == 0 || ART_OLD_SNAPSHOT_IN_USE())
	{
		/* switched on again, they come at once */
		for (int i = 0; i < ndatabases; i++)
			databases[i].followed = 0;
		return;
	}
	(void) look_at_workers(slots);
	if (asked || listed == 0 || ms_passed(listed, now, ART_FOLLOW_SOON_MS))
	{
		list_databases();
		listed = now;
	}
	for (int i = 0; i < ndatabases; i++)
	{
		Database   *d = &databases[i];

		if (!d->allowed)
			continue;
		if (d->followed != 0 &&
			!ms_passed(d->followed, now, asked ? ART_FOLLOW_SOON_MS : ART_FOLLOW_MS))
		{
			waits |= !ms_passed(d->followed, now, ART_FOLLOW_SOON_MS);
			continue;
		}
		if (visit_runs(d->oid, ART_JOB_FOLLOW))
			continue;
		d->followed = now;
		if (!start_worker(d->oid, InvalidOid, ART_JOB_FOLLOW))
			return;
	}
	/* what was asked for and came too soon */
	if (asked && waits)
		art_follow_again();
}

/* Notes at each database the jobs that others have asked for there. */
static void
note_asks(void)
{
	int			jobs[ART_NASKS];
	Oid			dbs[ART_NASKS];
	int			nasks;

	if (take_asks(jobs, dbs, &nasks))
		list_databases();
	for (int i = 0; i < nasks; i++)
	{
		Database   *d = find_database(dbs[i]);

		if (d)
			d->jobs |= jobs[i] & ART_JOB_ORDERS;
	}
}

/* One turn of the launcher.  Returns for how long it sleeps then. */
static long
launcher_turn(void)
{
	static TimestampTz hot_at = 0;
	static TimestampTz fade_at = 0;
	TimestampTz now = GetCurrentTimestamp();

	if (hot_at == 0)
		hot_at = fade_at = now;

	/* not 0, which would be the end of it for good */
	if (ProcDiePending)
		proc_exit(1);
	if (art_worker_between())
		pg_atomic_write_u32(&art_shared->build_kb, maintenance_work_mem);

	note_asks();
	art_load_expire();
	art_updater_start();
	if (RecoveryInProgress())
	{
		(void) watch_memory();
		sweep_databases();
		follow_databases();
		art_watch_all(false);
	}
	else
	{
		order_sweeps(watch_memory());
		art_watch_all(start_workers());
		settle_indexes();
	}

	if (ms_passed(fade_at, now, ART_FADE_MS))
	{
		Survey		s;

		survey_directory(&s, true);
		fade_at = now;
	}
	if (ms_passed(hot_at, now, ART_HOT_MS))
	{
		write_hot();
		list_databases();
		hot_at = now;
	}
	pgstat_report_stat(true);
	return art_compact_background(ART_LOOP_MS);
}

/*
 * Main function of the launcher.
 */
void
art_launcher_main(Datum arg)
{
	launcher_begin();
	art_worker_loop(launcher_turn, loop_cxt,
					ART_WAIT_EVENT(wait_event_launcher, "ArtidxLauncher"));
}

/*
 * The settings; from _PG_init.
 */
void
art_launcher_settings(void)
{
	DefineCustomIntVariable("artidx.build_workers",
							"Sets the number of background workers that build art indexes.",
							"They build indexes that are absent after a restart, the most used first. "
							"At 0 nothing is built or checked in the background, and a standby keeps no art indexes.",
							&art_build_workers,
							2, 0, ART_NBUILDERS,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("artidx.build_priority",
							"Sets the share of the time that background builds of art indexes work, in per cent.",
							"Below 100 they rest in between, and leave the processors to others. "
							"A build that a statement waits for does not rest.",
							&art_build_priority,
							100, 1, 100,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);
}

/*
 * Register the launcher; called once, when the library is preloaded.
 */
void
art_launcher_init(void)
{
	BackgroundWorker worker;

	if (IsBinaryUpgrade)
		return;
	art_define_worker(&worker, "launcher", "art_launcher_main");
	worker.bgw_restart_time = 3;
	art_launcher_refused = !art_register_worker(&worker);
	if (art_launcher_refused)
		ereport(WARNING,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("no background worker is left to build art indexes"),
				 errdetail("Statements build the indexes that they need; no others are built."),
				 errhint("Increase the configuration parameter \"max_worker_processes\" and restart the server.")));
}
