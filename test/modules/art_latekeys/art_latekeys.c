/*
 * art_latekeys.c
 *	  Scans as pg_squeeze makes them: it fills its scan keys after index_rescan, in the
 *	  scan's own copy of them.
 *
 * art_late_keys(index, strategy, given, late, way): the first column of the rows that an
 * index on integers gives for the key "late", which takes the place of "given" after
 * index_rescan.  The way is "forward", "backward", or "bitmap"; or "again": the same, after
 * a search for "given" that came to its end.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "fmgr.h"
#include "nodes/tidbitmap.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "art_compat.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(art_late_keys);
extern PGDLLEXPORT Datum art_late_keys(PG_FUNCTION_ARGS);

static IndexScanDesc
begin(Relation heap, Relation index)
{
	return art_index_beginscan(heap, index, GetActiveSnapshot(), 1, 0);
}

/* A bitmap has no rows to show: how many there are. */
static int64
count_bitmap(Relation index, ScanKey key, Datum late)
{
#if PG_VERSION_NUM >= 180000
	IndexScanDesc scan = index_beginscan_bitmap(index, GetActiveSnapshot(), NULL, 1);
#else
	IndexScanDesc scan = index_beginscan_bitmap(index, GetActiveSnapshot(), 1);
#endif
	TIDBitmap  *tbm = tbm_create(1024 * 1024, NULL);
	int64		n;

	index_rescan(scan, key, 1, NULL, 0);
	scan->keyData[0].sk_argument = late;
	n = index_getbitmap(scan, tbm);
	index_endscan(scan);
	tbm_free(tbm);
	return n;
}

Datum
art_late_keys(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	StrategyNumber strategy = (StrategyNumber) PG_GETARG_INT32(1);
	Datum		late = PG_GETARG_DATUM(3);
	char	   *way = text_to_cstring(PG_GETARG_TEXT_PP(4));
	Relation	heap = table_open(IndexGetRelation(indexoid, false), AccessShareLock);
	Relation	index = index_open(indexoid, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	ArrayBuildState *rows = initArrayResult(INT4OID, CurrentMemoryContext, false);
	Oid			type = index->rd_opcintype[0];
	ScanDirection dir = strcmp(way, "backward") == 0 ? BackwardScanDirection : ForwardScanDirection;
	ScanKeyData key;

	/* an index whose operator class names none of that strategy: the family's */
	ScanKeyInit(&key, 1, strategy,
				get_opcode(get_opfamily_member(index->rd_opfamily[0], type, type, strategy)),
				PG_GETARG_DATUM(2));
	if (strcmp(way, "bitmap") == 0)
		rows = accumArrayResult(rows, Int32GetDatum((int32) count_bitmap(index, &key, late)), false,
								INT4OID, CurrentMemoryContext);
	else
	{
		IndexScanDesc scan = begin(heap, index);

		index_rescan(scan, &key, 1, NULL, 0);
		if (strcmp(way, "again") == 0)
		{
			while (index_getnext_slot(scan, dir, slot))
				;
			index_rescan(scan, &key, 1, NULL, 0);
		}
		scan->keyData[0].sk_argument = late;
		while (index_getnext_slot(scan, dir, slot))
		{
			bool		isnull;
			Datum		value = slot_getattr(slot, 1, &isnull);

			rows = accumArrayResult(rows, value, isnull, INT4OID, CurrentMemoryContext);
		}
		index_endscan(scan);
	}
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_DATUM(makeArrayResult(rows, CurrentMemoryContext));
}
