/*
 * art_empty.c
 *	  An access method that keeps nothing: what PostgreSQL itself spends on an index.
 *
 * CREATE INDEX reads the table.  An insert returns at once.  VACUUM asks its callback about
 * each row's TID, for an access method has to, in the order of the table, in which that is
 * cheapest.  A scan hands out what empty_answers() was told in the session, whatever the keys
 * of the scan: so a statement has an index that finds its rows at no cost.  Without answers no
 * scan is planned.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "nodes/pathnodes.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#if PG_VERSION_NUM >= 180000
#include "access/cmptype.h"
#endif

#include "art_compat.h"

PG_MODULE_MAGIC;

PGDLLEXPORT PG_FUNCTION_INFO_V1(empty_handler);
PGDLLEXPORT PG_FUNCTION_INFO_V1(empty_answers);

/* What the session's scans of one index hand out: each the next so many rows, and the first ones
 * again behind the last. */
static struct
{
	Oid			index;
	int			each;
	int64		rows;
	int64		next;
	ItemPointerData *tids;
	int64	   *keys;
}			answers;

typedef struct EmptyScan
{
	int64		at;
	int64		end;			/* -1: nothing was asked yet */
	IndexTuple	tuple;			/* of an index-only scan */
} EmptyScan;

static void
empty_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *rows)
{
	*(double *) rows += 1;
}

static IndexBuildResult *
empty_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));

	result->heap_tuples = table_index_build_scan(heap, index, info, true, true, empty_row,
												 &result->index_tuples, NULL);
	return result;
}

static void
empty_buildempty(Relation index)
{
}

static bool
empty_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			 IndexUniqueCheck check, bool unchanged, IndexInfo *info)
{
	return false;
}

static IndexBulkDeleteResult *
empty_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback,
				 void *state)
{
	Relation	heap = table_open(info->index->rd_index->indrelid, NoLock);
	BlockNumber blocks = RelationGetNumberOfBlocks(heap);

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	for (BlockNumber block = 0; block < blocks; block++)
	{
		Buffer		buffer = ReadBufferExtended(heap, MAIN_FORKNUM, block, RBM_NORMAL, info->strategy);
		OffsetNumber last;

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		last = PageGetMaxOffsetNumber(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
		for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
		{
			ItemPointerData tid;

			ItemPointerSet(&tid, block, offset);
			if (callback(&tid, state))
				stats->tuples_removed += 1;
		}
		CHECK_FOR_INTERRUPTS();
	}
	table_close(heap, NoLock);
	return stats;
}

static IndexBulkDeleteResult *
empty_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	return stats;
}

static void
empty_cost(PlannerInfo *root, IndexPath *path, double loops, Cost *startup, Cost *total,
		   Selectivity *selectivity, double *correlation, double *pages)
{
	*startup = *total = path->indexinfo->indexoid == answers.index ? 0 : 1e10;
	*selectivity = 1e-6;
	*correlation = *pages = 0;
}

static bool
empty_can_return(Relation index, int column)
{
	return TupleDescAttr(RelationGetDescr(index), 0)->atttypid == INT8OID;
}

static bytea *
empty_options(Datum options, bool validate)
{
	return NULL;
}

static bool
empty_validate(Oid opclass)
{
	return true;
}

static IndexScanDesc
empty_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	EmptyScan  *own = palloc(sizeof(EmptyScan));

	own->end = -1;
	own->tuple = NULL;
	scan->xs_itupdesc = RelationGetDescr(index);
	scan->opaque = own;
	return scan;
}

static void
empty_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	((EmptyScan *) scan->opaque)->end = -1;
}

static bool
empty_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	EmptyScan  *own = scan->opaque;

	if (own->end < 0)
	{
		if (RelationGetRelid(scan->indexRelation) != answers.index)
			elog(ERROR, "empty_answers() was told nothing of this index");
		pgstat_count_index_scan(scan->indexRelation);
		own->at = answers.next;
		own->end = answers.next + answers.each;
		answers.next = own->end + answers.each > answers.rows ? 0 : own->end;
	}
	if (own->at == own->end)
		return false;
	if (scan->xs_want_itup)
	{
		if (own->tuple == NULL)
		{
			Datum		key = Int64GetDatum(0);
			bool		isnull = false;

			own->tuple = index_form_tuple(scan->xs_itupdesc, &key, &isnull);
		}
		memcpy((char *) own->tuple + IndexInfoFindDataOffset(own->tuple->t_info), &answers.keys[own->at], sizeof(int64));
		scan->xs_itup = own->tuple;
	}
	scan->xs_heaptid = answers.tids[own->at++];
	scan->xs_recheck = false;
	return true;
}

static void
empty_endscan(IndexScanDesc scan)
{
}

/*
 * empty_answers(index, rows, keys, each)
 *		From now on each scan of the index finds the next so many of these rows.
 */
Datum
empty_answers(PG_FUNCTION_ARGS)
{
	ArrayType  *rows = PG_GETARG_ARRAYTYPE_P(1);
	ArrayType  *keys = PG_GETARG_ARRAYTYPE_P(2);
	Datum	   *tids;
	Datum	   *values;
	int			nrows;
	int			nkeys;

	deconstruct_array(rows, TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT, &tids, NULL, &nrows);
	deconstruct_array(keys, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &values, NULL, &nkeys);
	answers.each = PG_GETARG_INT32(3);
	if (nrows != nkeys || answers.each < 1 || nrows < answers.each)
		elog(ERROR, "%d rows with %d keys, for scans of %d", nrows, nkeys, answers.each);
	answers.tids = MemoryContextAllocHuge(TopMemoryContext, nrows * sizeof(ItemPointerData));
	answers.keys = MemoryContextAllocHuge(TopMemoryContext, nrows * sizeof(int64));
	for (int i = 0; i < nrows; i++)
	{
		answers.tids[i] = *(ItemPointer) DatumGetPointer(tids[i]);
		answers.keys[i] = DatumGetInt64(values[i]);
	}
	answers.rows = nrows;
	answers.next = 0;
	answers.index = PG_GETARG_OID(0);
	PG_RETURN_VOID();
}

#if PG_VERSION_NUM >= 180000
/* what makes the index an ordered one for core: nbtree's strategies */
static StrategyNumber
empty_translate(CompareType cmptype, Oid opfamily)
{
	switch (cmptype)
	{
		case COMPARE_LT:
			return BTLessStrategyNumber;
		case COMPARE_EQ:
			return BTEqualStrategyNumber;
		case COMPARE_GT:
			return BTGreaterStrategyNumber;
		default:
			return InvalidStrategy;
	}
}
#endif

Datum
empty_handler(PG_FUNCTION_ARGS)
{
	static const IndexAmRoutine routine = {
		.type = T_IndexAmRoutine,
		.amstrategies = BTMaxStrategyNumber,
		.amcanorder = true,
		.amoptionalkey = true,
		.ampredlocks = true,
		.ambuild = empty_build,
		.ambuildempty = empty_buildempty,
		.aminsert = empty_insert,
		.ambulkdelete = empty_bulkdelete,
		.amvacuumcleanup = empty_vacuumcleanup,
		.amcanreturn = empty_can_return,
		.amcostestimate = empty_cost,
		.amoptions = empty_options,
		.amvalidate = empty_validate,
		.ambeginscan = empty_beginscan,
		.amrescan = empty_rescan,
		.amgettuple = empty_gettuple,
		.amendscan = empty_endscan,
#if PG_VERSION_NUM >= 180000
		.amtranslatecmptype = empty_translate,
#endif
	};

	ART_RETURN_ROUTINE(routine);
}
