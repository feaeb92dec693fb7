/*
 * contention.c
 *	  artidx_contention and artidx_reset_stats: what processes met of one another
 *	  in the structures (counted by the core, kept by counters.c).
 *
 * src/views/README.md: Statistics
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"
#include "limits/limits.h"
#include "live/live.h"
#include "views/views.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_contention_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_reset_stats);

#define ART_CONTENTION_COLS 24
#define ART_FIRST_TAIL_COUNT 9	/* tail_mode is before it */

/*
 * artidx_contention_stats(oid): one row, NULL for an OID that is not there.
 * Takes no lock on the index, as artidx_index_stats.
 *
 * While the index is being rewritten it has two entries.  The end of that
 * transaction leaves one, with the counts of both, so the sum never falls.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, shared.
 */
Datum
artidx_contention_stats(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	TupleDesc	tupdesc;
	uint64		counts[ART_NCOUNTS] = {0};
	TimestampTz stats_reset = 0;
	ArtPresent	present = {.tail_mode = "off"};
	Datum		values[ART_CONTENTION_COLS];
	bool		nulls[ART_CONTENTION_COLS] = {0};
	int			c = 0;

	tupdesc = art_result_row(fcinfo, ART_CONTENTION_COLS);

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(indexoid)))
		PG_RETURN_NULL();

	if (art_preloaded())
	{
		ArtWalk		w = art_walk(LW_SHARED, MyDatabaseId, indexoid);

		(void) art_ctx();
		for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
		{
			art_counts_add(e, counts, &present);
			stats_reset = Max(stats_reset, e->stats_reset);
		}
	}

	for (int i = 0; i < ART_NCOUNTS; i++)
	{
		if (i == ART_FIRST_TAIL_COUNT)
			values[c++] = CStringGetTextDatum(present.tail_mode);
		if (i == ART_NCOUNTS - 1)
			values[c++] = Float8GetDatum((double) (int64) counts[i] / 1e6);
		else
			values[c++] = Int64GetDatum((int64) counts[i]);
	}
	values[c++] = Int64GetDatum((int64) present.search_lag);
	values[c++] = Int64GetDatum((int64) present.search_applied);
	values[c++] = Int64GetDatum((int64) present.walks);
	values[c++] = Int64GetDatum((int64) present.walk_steps);
	values[c++] = Int64GetDatum((int64) present.longest_walk);
	values[c++] = Int64GetDatum((int64) present.version_commits);
	values[c++] = Int64GetDatum((int64) present.versions_passed);
	values[c++] = Int64GetDatum((int64) present.commits_helped);
	nulls[c] = stats_reset == 0;
	values[c++] = TimestampTzGetDatum(stats_reset);

	Assert(c == ART_CONTENTION_COLS);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/*
 * Count from zero: one index of this database (InvalidOid: all).  One that this transaction
 * rewrote has two entries, and one will inherit.
 *
 * Locks: takes the partition lock, exclusive, or all of them, one after the other.
 */
static void
reset_counts(Oid indexoid)
{
	TimestampTz now = GetCurrentTimestamp();
	ArtWalk		w = art_walk(LW_EXCLUSIVE, MyDatabaseId, indexoid);

	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
		art_counts_reset(e, now);
}

/*
 * artidx_reset_stats(regclass): of one index, or (NULL) of all of this
 * database.
 *
 * Locks: AccessShareLock on table and index (art_stat_open) while it resets one index.
 */
Datum
artidx_reset_stats(PG_FUNCTION_ARGS)
{
	art_require_preload(NULL);
	(void) art_ctx();
	if (PG_ARGISNULL(0))
		reset_counts(InvalidOid);
	else
	{
		Oid			heapoid;
		Relation	index = art_stat_open(PG_GETARG_OID(0), &heapoid);

		art_refuse_other_temp(index);
		(void) art_entry(index);
		reset_counts(RelationGetRelid(index));
		art_stat_close(index, heapoid);
	}
	PG_RETURN_VOID();
}
