/*
 * art_contention.c
 *	  What processes met of one another in the structures: the counters behind
 *	  artidx_contention, and their reset.
 *
 * The core counts by generation, in the structure.  A user of statistics wants
 * them by index, never falling but by a reset: so the entry keeps the sum of
 * what closed generations counted.  A reset subtracts what the present one has
 * counted so far, in the same place (modulo 2^64), for the core's counters are
 * never set back.  Sums are read and moved under the partition lock, so that
 * nothing is counted twice.
 */
#include "artidx.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "pg/art_pg.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_contention_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_reset_stats);

#define ART_CONTENTION_COLS 16

/*
 * In the order of the view's columns, with tail_mode before those of the tail
 * buffer, and the last one in nanoseconds.
 */
#define ART_FIRST_TAIL_COUNT 9
/*
 * The core's counters in the order of ArtEntry.counts and of the view's
 * columns.
 */
static void
list_counts(const ax_tree_info *info, uint64 *counts)
{
	int			n = 0;

	counts[n++] = info->restarts;
	counts[n++] = info->pessimistic;
	counts[n++] = info->latch_waits;
	counts[n++] = info->parks;
	counts[n++] = info->handovers;
	counts[n++] = info->abandoned;
	counts[n++] = info->opportunistic_reads;
	counts[n++] = info->opportunistic_failed;
	counts[n++] = info->expansions;
	counts[n++] = info->tail_inserts;
	counts[n++] = info->tail_bypassed;
	counts[n++] = info->tail_flushes;
	counts[n++] = info->tail_flushed;
	counts[n++] = info->tail_flush_ns;
	Assert(n == ART_NCOUNTS);
}

/*
 * Of the generation, zeros when it is gone.  tail_mode, if given, is set when it
 * has a tail buffer.
 *
 * Epoch: enters and leaves.
 * Locks: partition lock held, in any mode.
 */
static void
present_counts(ArtEntry *e, uint64 gen, uint64 *counts, const char **tail_mode)
{
	ax_ctx	   *cx = art_ctx();
	ax_tree_info info;
	ax_status	st;

	ART_CORE_BEGIN();
	st = ax_info(cx, e->tree, gen, &info);
	ART_CORE_END();
	if (st == AX_OK)
	{
		list_counts(&info, counts);
		if (tail_mode != NULL && strcmp(info.tail_mode, "off") != 0)
			*tail_mode = info.tail_mode;
	}
	else
		memset(counts, 0, ART_NCOUNTS * sizeof(*counts));
}

/*
 * See art_pg.h.
 */
void
art_counts_keep(ArtEntry *e, uint64 gen)
{
	uint64		counts[ART_NCOUNTS];

	present_counts(e, gen, counts, NULL);
	for (int i = 0; i < ART_NCOUNTS; i++)
		e->counts[i] += counts[i];
	art_aborts_keep(e, gen);
}

/*
 * See art_pg.h.
 */
void
art_counts_inherit(ArtEntry *heir, const ArtEntry *e)
{
	for (int i = 0; i < ART_NCOUNTS; i++)
		heir->counts[i] += e->counts[i];
	art_aborts_inherit(heir, e);
	heir->stats_reset = Max(heir->stats_reset, e->stats_reset);
}

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
	const char *tail_mode = "off";
	Datum		values[ART_CONTENTION_COLS];
	bool		nulls[ART_CONTENTION_COLS] = {0};
	int			c = 0;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	tupdesc = BlessTupleDesc(tupdesc);

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(indexoid)))
		PG_RETURN_NULL();

	if (art_preloaded())
	{
		LWLock	   *lock = art_partition(MyDatabaseId, indexoid);

		(void) art_ctx();
		LWLockAcquire(lock, LW_SHARED);
		for (ArtEntry *e = art_chain(MyDatabaseId, indexoid); e; e = e->next)
		{
			uint64		w = pg_atomic_read_u64(&e->word);
			uint64		present[ART_NCOUNTS] = {0};

			if (e->indexoid != indexoid || e->loc.db != MyDatabaseId)
				continue;
			if (ART_WORD_STATE(w) != ART_ABSENT)
				present_counts(e, ART_WORD_GEN(w), present, &tail_mode);
			for (int i = 0; i < ART_NCOUNTS; i++)
				counts[i] += present[i] + e->counts[i];
			stats_reset = Max(stats_reset, e->stats_reset);
		}
		LWLockRelease(lock);
	}

	for (int i = 0; i < ART_NCOUNTS; i++)
	{
		if (i == ART_FIRST_TAIL_COUNT)
			values[c++] = CStringGetTextDatum(tail_mode);
		if (i == ART_NCOUNTS - 1)
			values[c++] = Float8GetDatum((double) (int64) counts[i] / 1e6);
		else
			values[c++] = Int64GetDatum((int64) counts[i]);
	}
	nulls[c] = stats_reset == 0;
	values[c++] = TimestampTzGetDatum(stats_reset);

	Assert(c == ART_CONTENTION_COLS);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/* Lock held, exclusive. */
static void
reset_entry(ArtEntry *e, TimestampTz now)
{
	uint64		w = pg_atomic_read_u64(&e->word);
	uint64		counts[ART_NCOUNTS] = {0};

	if (ART_WORD_STATE(w) != ART_ABSENT)
		present_counts(e, ART_WORD_GEN(w), counts, NULL);
	for (int i = 0; i < ART_NCOUNTS; i++)
		e->counts[i] = UINT64CONST(0) - counts[i];
	art_aborts_reset(e);
	e->stats_reset = now;
}

/*
 * artidx_reset_stats(regclass): of one index, or (NULL) of all of this
 * database.
 *
 * Locks: takes the partition lock, exclusive: that of the index, or of each
 * partition in turn.  AccessShareLock on table and index (art_stat_open) while
 * it resets one index.
 */
Datum
artidx_reset_stats(PG_FUNCTION_ARGS)
{
	TimestampTz now = GetCurrentTimestamp();

	art_require_preload(NULL);
	(void) art_ctx();
	if (!PG_ARGISNULL(0))
	{
		Oid			heapoid;
		Relation	index = art_stat_open(PG_GETARG_OID(0), &heapoid);
		ArtEntry   *e;
		LWLock	   *lock;

		art_refuse_other_temp(index);
		e = art_entry(index);
		lock = art_partition(e->loc.db, e->indexoid);

		/* one that this transaction rewrote has two, and one will inherit */
		LWLockAcquire(lock, LW_EXCLUSIVE);
		for (ArtEntry *o = art_chain(e->loc.db, e->indexoid); o; o = o->next)
			if (o->indexoid == e->indexoid && o->loc.db == e->loc.db)
				reset_entry(o, now);
		LWLockRelease(lock);
		art_stat_close(index, heapoid);
		PG_RETURN_VOID();
	}

	for (int p = 0; p < ART_NPARTITIONS; p++)
	{
		LWLock	   *lock = &art_dir_locks[p].lock;

		LWLockAcquire(lock, LW_EXCLUSIVE);
		for (int b = p; b < ART_NBUCKETS; b += ART_NPARTITIONS)
			for (ArtEntry *e = art_shared->buckets[b]; e; e = e->next)
				if (e->loc.db == MyDatabaseId)
					reset_entry(e, now);
		LWLockRelease(lock);
	}
	PG_RETURN_VOID();
}
