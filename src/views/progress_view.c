/*
 * progress_view.c
 *	  artidx_progress and artidx_crash_checks: what is being built, loaded and checked in
 *	  the whole server, as one sees it from SQL.
 *
 * src/views/README.md: Statistics
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "area/shared_state.h"
#include "views/views.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_progress_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_crash_check_stats);

#define ART_PROGRESS_COLS 11

/* One build, load or follower's build that goes on. */
typedef struct Progress
{
	Oid			db;
	Oid			indexoid;
	Oid			heapoid;		/* InvalidOid: not known */
	int			pid;			/* 0: nobody is at it */
	int			helpers;
	bool		loads;			/* of entries, else of blocks: */
	uint64		total;
	uint64		done;
	ax_tree    *tree;
	uint64		gen;
} Progress;

static bool
is_building(ArtEntry *e, const void *arg)
{
	return ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_BUILDING;
}

/*
 * Copy the state of the build from the entry.  False: the build is over.
 *
 * Locks: takes the partition lock, shared.
 */
static bool
look_at_build(const ArtListed *l, Progress *p)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(l->indexoid, &l->loc, LW_SHARED, &lock);
	bool		builds = e != NULL &&
		pg_atomic_read_u64(&e->word) == ART_WORD(l->gen, ART_BUILDING);

	if (builds)
	{
		bool		alive = art_owner_alive(e);

		p->db = l->loc.db;
		p->indexoid = l->indexoid;
		p->heapoid = e->heapoid;
		/* a loader that is gone leaves the rows to a builder */
		p->loads = alive && e->loading;
		p->pid = !alive ? 0 : !e->loading ? e->owner_pid :
			pg_atomic_read_u32(&art_shared->load_state) == ART_LOAD_RUNNING ?
			art_shared->load_pid : 0;
		p->helpers = e->helpers;
		p->total = pg_atomic_read_u64(&e->blocks_total);
		p->done = Min(pg_atomic_read_u64(&e->blocks_done), p->total);
		p->tree = l->tree;
		p->gen = l->gen;
	}
	art_unlock(lock);
	return builds;
}

/*
 * Entries that are in the structure already.
 *
 * Epoch: enters and leaves.
 */
static uint64
entries_so_far(const Progress *p)
{
	ax_ctx	   *cx = art_ctx();
	ax_tree_info info;
	ax_status	st;

	ART_CORE_BEGIN();
	st = ax_info(cx, p->tree, p->gen, &info);
	ART_CORE_END();
	return st == AX_OK ? info.entries : 0;
}

/* The text of artidx_progress.phase, in the words of pg_stat_progress_create_index. */
static const char *
phase_text(const Progress *p)
{
	if (p->loads)
		return p->pid == 0 || p->done == 0 ? "waiting for the loader" : "loading saved keys";
	if (p->pid == 0)
		return "waiting for a worker";
	if (p->total == 0)
		return "initializing";
	return p->done < p->total ? "scanning table" : "loading sorted keys";
}

/* An OID, or NULL for none. */
static Datum
oid_or_null(Oid oid, bool *isnull)
{
	*isnull = !OidIsValid(oid);
	return ObjectIdGetDatum(oid);
}

/* Add the row of one build to the result. */
static void
put_progress(ReturnSetInfo *rsinfo, const Progress *p)
{
	Datum		values[ART_PROGRESS_COLS];
	bool		nulls[ART_PROGRESS_COLS] = {false};
	Oid			heapoid = p->heapoid;
	int			c = 0;

	if (!OidIsValid(heapoid) && p->db == MyDatabaseId)
		heapoid = IndexGetRelation(p->indexoid, true);
	nulls[c] = p->pid == 0;
	values[c++] = Int32GetDatum(p->pid);
	values[c++] = ObjectIdGetDatum(p->db);
	values[c] = oid_or_null(heapoid, &nulls[c]);
	c++;
	values[c++] = ObjectIdGetDatum(p->indexoid);
	values[c++] = CStringGetTextDatum(p->loads ? "load" : RecoveryInProgress() ? "follow" : "build");
	values[c++] = CStringGetTextDatum(phase_text(p));
	values[c++] = Int32GetDatum(p->helpers);
	nulls[c] = nulls[c + 1] = p->loads;
	values[c++] = Int64GetDatum((int64) p->total);
	values[c++] = Int64GetDatum((int64) p->done);
	nulls[c] = !p->loads;
	values[c++] = Int64GetDatum((int64) p->total);
	values[c++] = Int64GetDatum((int64) (p->loads ? p->done : entries_so_far(p)));
	Assert(c == ART_PROGRESS_COLS);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * artidx_progress_stats(): a row for each structure that is being built, in all databases.
 *
 * Epoch: enters and leaves, once a row (entries_so_far).
 * Locks: takes the partition locks, shared, one after the other.
 */
Datum
artidx_progress_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = art_result_rows(fcinfo, ART_PROGRESS_COLS);
	ArtListed  *all;
	int			n;

	if (!art_preloaded())
		return (Datum) 0;
	n = art_list_entries(InvalidOid, is_building, NULL, &all);
	for (int i = 0; i < n; i++)
	{
		Progress	p;

		if (look_at_build(&all[i], &p))
			put_progress(rsinfo, &p);
	}
	pfree(all);
	return (Datum) 0;
}

/*
 * artidx_crash_check_stats(): the row of artidx_crash_checks.
 *
 * Locks: takes the partition locks, shared, one after the other.
 */
Datum
artidx_crash_check_stats(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum		values[3];
	bool		nulls[3] = {false};
	ArtWalk		w;
	int			waiting = 0;

	art_require_preload(NULL);
	tupdesc = art_result_row(fcinfo, lengthof(values));
	w = art_walk(LW_SHARED, InvalidOid, InvalidOid);
	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
		waiting += e->unchecked && ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_READY;
	values[0] = Int32GetDatum(waiting);
	values[1] = Int64GetDatum((int64) pg_atomic_read_u64(&art_shared->checked_sound));
	values[2] = Int64GetDatum((int64) pg_atomic_read_u64(&art_shared->checked_different));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
