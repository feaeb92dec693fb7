/*
 * elision_aborts.c
 *	  Elision as one sees it from SQL: artidx_aborts (counted by the core, kept by
 *	  counters.c) and artidx_hardware.
 *
 * src/views/README.md: Statistics
 */
#include "postgres.h"

#include <unistd.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_abort_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_hardware);

#define ABORTS_COLS (2 + ART_NABORTS + 1)

typedef struct Aborts
{
	ArtSiteCounts	counts;
	const char *mode[AX_SITES];
	TimestampTz stats_reset;
} Aborts;

/*
 * Add the counts of one index of this database (InvalidOid: of all).
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, shared, or all of them, one after the other.
 */
static void
add_counts(Aborts *sum, Oid indexoid)
{
	ArtWalk		w = art_walk(LW_SHARED, MyDatabaseId, indexoid);

	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		art_aborts_add(e, sum->counts, sum->mode);
		sum->stats_reset = Max(sum->stats_reset, e->stats_reset);
	}
}

/* Is it an index of ours, or gone (false)?  ERROR 42809 for anything else. */
static bool
check_index(Oid indexoid)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	Form_pg_class form;

	if (!HeapTupleIsValid(tup))
		return false;
	form = (Form_pg_class) GETSTRUCT(tup);
	if (form->relkind != RELKIND_INDEX || form->relam != get_am_oid(ART_AM_NAME, true))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index of access method \"%s\"",
						NameStr(form->relname), ART_AM_NAME)));
	ReleaseSysCache(tup);
	return true;
}

/*
 * artidx_abort_stats(regclass): one row a site, of one index or, with NULL, of
 * all of this database together.  Takes no lock on the index.
 */
Datum
artidx_abort_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = art_result_rows(fcinfo, ABORTS_COLS);
	const char *why_not = art_elision_why_not();
	Aborts	   *sum = palloc0(sizeof(Aborts));

	if (!PG_ARGISNULL(0) && !check_index(PG_GETARG_OID(0)))
		return (Datum) 0;
	if (art_preloaded())
	{
		(void) art_ctx();
		add_counts(sum, PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0));
	}

	for (int s = 0; s < AX_SITES; s++)
	{
		Datum		values[ABORTS_COLS];
		bool		nulls[ABORTS_COLS] = {0};
		int			c = 0;

		/* there is no structure that could tell */
		if (sum->mode[s] == NULL)
			sum->mode[s] = why_not == NULL ? "on" :
				art_elision == AX_ELIDE_OFF ? "off" : "no-rtm";
		values[c++] = CStringGetTextDatum(ax_site_name((ax_site) s));
		values[c++] = CStringGetTextDatum(sum->mode[s]);
		for (int i = 0; i < ART_NABORTS; i++)
			values[c++] = Int64GetDatum((int64) sum->counts[s][i]);
		nulls[c] = sum->stats_reset == 0;
		values[c++] = TimestampTzGetDatum(sum->stats_reset);
		Assert(c == ABORTS_COLS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* ---- hardware ---- */

/*
 * artidx_hardware(): one row, what elision and the structures have to work with
 * here.
 */
Datum
artidx_hardware(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	const ax_hardware *hardware;
	const char *why_not;
	Datum		values[10];
	bool		nulls[10] = {0};
	int			c = 0;

	tupdesc = art_result_row(fcinfo, lengthof(values));

	hardware = art_hardware();
	why_not = art_elision_why_not();
	if (why_not == NULL && art_elision_by() != NULL)
		why_not = psprintf("a test has replaced the processor by \"%s\"", art_elision_by());

	values[c++] = BoolGetDatum(hardware->rtm_cpuid);
	values[c++] = BoolGetDatum(hardware->rtm_always_abort);
	values[c++] = BoolGetDatum(hardware->rtm_usable);
	values[c++] = Int32GetDatum(hardware->probe_attempts);
	values[c++] = Int32GetDatum(hardware->probe_commits);
	values[c++] = CStringGetTextDatum(art_elision_why_not() != NULL ? "off" :
									  art_elision == AX_ELIDE_ON ? "on" : "auto");
	if (why_not != NULL)
		values[c++] = CStringGetTextDatum(why_not);
	else
		nulls[c++] = true;
	values[c++] = Int32GetDatum((int32) sysconf(_SC_NPROCESSORS_ONLN));
#if defined(__SSE2__) && !defined(AX_NO_SIMD)	/* as core/radix/rt_node.h */
	values[c++] = CStringGetTextDatum("sse2");
#else
	values[c++] = CStringGetTextDatum("none");
#endif
	values[c++] = CStringGetTextDatum(art_huge_pages());
	Assert(c == lengthof(values));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
