/*
 * art_empty.c
 *	  An access method that keeps nothing: what PostgreSQL itself spends on an index.
 *
 * CREATE INDEX reads the table.  An insert returns at once.  VACUUM asks its callback about
 * each row's TID, for an access method has to, in the order of the table, in which that is
 * cheapest.  No scan is ever planned, for the operator classes have no operators.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"

#include "art_compat.h"

PG_MODULE_MAGIC;

PGDLLEXPORT PG_FUNCTION_INFO_V1(empty_handler);

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
	*startup = *total = 1e10;
	*selectivity = 1;
	*correlation = *pages = 0;
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
	return RelationGetIndexScan(index, nkeys, norderbys);
}

static void
empty_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
}

static void
empty_endscan(IndexScanDesc scan)
{
}

Datum
empty_handler(PG_FUNCTION_ARGS)
{
	static const IndexAmRoutine routine = {
		.type = T_IndexAmRoutine,
		.ampredlocks = true,
		.ambuild = empty_build,
		.ambuildempty = empty_buildempty,
		.aminsert = empty_insert,
		.ambulkdelete = empty_bulkdelete,
		.amvacuumcleanup = empty_vacuumcleanup,
		.amcostestimate = empty_cost,
		.amoptions = empty_options,
		.amvalidate = empty_validate,
		.ambeginscan = empty_beginscan,
		.amrescan = empty_rescan,
		.amendscan = empty_endscan,
	};

	ART_RETURN_ROUTINE(routine);
}
