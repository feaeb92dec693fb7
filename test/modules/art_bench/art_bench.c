/*-------------------------------------------------------------------------
 *
 * art_bench.c
 *	  C loops over the index access methods, for the benchmarks.
 *
 * The loops call the access method through index_rescan, index_getnext_tid,
 * index_insert and index_bulk_delete, so they measure the same for every
 * access method, and leave out parser, planner, executor and heap.  Keys are
 * made before the clock starts.
 *
 * Portions Copyright (c) 2025, artidx contributors
 * SPDX-License-Identifier: PostgreSQL
 *
 * test/modules/art_bench/art_bench.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>
#include <time.h>

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

PG_MODULE_MAGIC;

PGDLLEXPORT PG_FUNCTION_INFO_V1(bench_lookup);
PGDLLEXPORT PG_FUNCTION_INFO_V1(bench_begin);
PGDLLEXPORT PG_FUNCTION_INFO_V1(bench_insert);
PGDLLEXPORT PG_FUNCTION_INFO_V1(bench_vacuum);
PGDLLEXPORT PG_FUNCTION_INFO_V1(bench_empty);

/* rows that fit on a page in the TIDs we make up */
#define FAKE_TUPLES_PER_PAGE	200

#define TEXT_LEN	25

static uint64
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64) ts.tv_sec * UINT64CONST(1000000000) + ts.tv_nsec;
}

/* splitmix64: the state moves by a constant, so any seed is good */
static uint64
next_random(uint64 *state)
{
	uint64		z = (*state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* The index and its table, locked; errors if the index has several columns. */
static Relation
open_index(Oid indexoid, LOCKMODE heaplock, LOCKMODE indexlock, Relation *heap)
{
	Oid			heapoid = IndexGetRelation(indexoid, false);
	Relation	index;

	*heap = table_open(heapoid, heaplock);
	index = index_open(indexoid, indexlock);
	if (IndexRelationGetNumberOfKeyAttributes(index) != 1 ||
		index->rd_index->indkey.values[0] <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" is not on one plain column",
						RelationGetRelationName(index))));
	return index;
}

static TableScanDesc
begin_table_scan(Relation heap)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan(heap, GetActiveSnapshot(), 0, NULL, SO_NONE);
#else
	return table_beginscan(heap, GetActiveSnapshot(), 0, NULL);
#endif
}

/* Every key of the table in heap order; *n of them. */
static Datum *
read_keys(Relation heap, Relation index, uint64 *n)
{
	AttrNumber	attno = index->rd_index->indkey.values[0];
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(heap), attno - 1);
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	TableScanDesc scan;
	uint64		size = 1024 * 1024;
	Datum	   *keys = MemoryContextAllocHuge(CurrentMemoryContext,
											  size * sizeof(Datum));

	*n = 0;
	scan = begin_table_scan(heap);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		isnull;
		Datum		d = slot_getattr(slot, attno, &isnull);

		if (isnull)
			continue;
		if (*n == size)
		{
			size *= 2;
			keys = repalloc_huge(keys, size * sizeof(Datum));
		}
		keys[(*n)++] = datumCopy(d, att->attbyval, att->attlen);
		CHECK_FOR_INTERRUPTS();
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	return keys;
}

/* A scan key for equality on the index, its argument still to be set. */
static void
equality_key(Relation index, ScanKey skey)
{
	Oid			opfamily = index->rd_opfamily[0];
	Oid			opcintype = index->rd_opcintype[0];
	StrategyNumber strategy = index->rd_rel->relam == HASH_AM_OID ?
		HTEqualStrategyNumber : BTEqualStrategyNumber;
	RegProcedure proc = get_opcode(get_opfamily_member(opfamily, opcintype,
													   opcintype, strategy));

	if (!RegProcedureIsValid(proc))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("index \"%s\" has no equality operator",
						RelationGetRelationName(index))));
	ScanKeyEntryInitialize(skey, 0, 1, strategy, opcintype,
						   index->rd_indcollation[0], proc, (Datum) 0);
}

static IndexScanDesc
begin_scan(Relation heap, Relation index)
{
#if PG_VERSION_NUM >= 190000
	return index_beginscan(heap, index, GetActiveSnapshot(), NULL, 1, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
	return index_beginscan(heap, index, GetActiveSnapshot(), NULL, 1, 0);
#else
	return index_beginscan(heap, index, GetActiveSnapshot(), 1, 0);
#endif
}

/* Look the key up; errors where the index does not have it. */
static void
must_find(IndexScanDesc scan, ScanKey skey)
{
	index_rescan(scan, skey, 1, NULL, 0);
	if (index_getnext_tid(scan, ForwardScanDirection) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" does not find a key of its table",
						RelationGetRelationName(scan->indexRelation))));
}

/*
 * bench_lookup
 *		Point look-ups of existing keys in random order; every one must find
 *		its entry.
 */
Datum
bench_lookup(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	int			n = PG_GETARG_INT32(1);
	uint64		state = (uint64) PG_GETARG_INT64(2);
	Relation	heap;
	Relation	index = open_index(indexoid, AccessShareLock, AccessShareLock,
								   &heap);
	IndexScanDesc scan;
	ScanKeyData skey;
	Datum	   *keys;
	Datum	   *wanted;
	uint64		nkeys;
	uint64		t0 = 0;
	uint64		t1;
	int			warm = n / 10;
	int			i;

	if (n < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of look-ups must be positive")));
	equality_key(index, &skey);
	keys = read_keys(heap, index, &nkeys);
	if (nkeys == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("table \"%s\" has no key",
						RelationGetRelationName(heap))));
	wanted = MemoryContextAllocHuge(CurrentMemoryContext,
									(Size) (n + warm) * sizeof(Datum));
	for (i = 0; i < n + warm; i++)
		wanted[i] = keys[next_random(&state) % nkeys];

	scan = begin_scan(heap, index);
	for (i = 0; i < n + warm; i++)
	{
		if (i == warm)
			t0 = now_ns();
		skey.sk_argument = wanted[i];
		must_find(scan, &skey);
		if ((i & 4095) == 0)
			CHECK_FOR_INTERRUPTS();
	}
	t1 = now_ns();
	index_endscan(scan);

	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_FLOAT8((double) (t1 - t0) / n);
}

/*
 * bench_begin
 *		What a scan of its own adds to a look-up: 1,000 look-ups of one key with
 *		a scan for each, less as many within one scan.  Both n / 1,000 times in
 *		turn; the fastest count, for the difference is small beside a context
 *		switch.
 */
Datum
bench_begin(PG_FUNCTION_ARGS)
{
	int			n = PG_GETARG_INT32(1);
	Relation	heap;
	Relation	index = open_index(PG_GETARG_OID(0), AccessShareLock,
								   AccessShareLock, &heap);
	IndexScanDesc scan;
	ScanKeyData skey;
	Datum	   *keys;
	uint64		nkeys;
	uint64		fastest[2] = {PG_UINT64_MAX, PG_UINT64_MAX};
	int			round;
	int			i;

	keys = read_keys(heap, index, &nkeys);
	if (n < 1000 || nkeys == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there must be a key, and at least 1,000 scans")));
	equality_key(index, &skey);
	skey.sk_argument = keys[0];

	for (round = 0; round < n / 1000 * 2; round++)
	{
		bool		each = round % 2;
		uint64		t0 = now_ns();

		scan = begin_scan(heap, index);
		for (i = 0; i < 1000; i++)
		{
			must_find(scan, &skey);
			if (each)
			{
				index_endscan(scan);
				scan = begin_scan(heap, index);
			}
		}
		index_endscan(scan);
		fastest[each] = Min(fastest[each], now_ns() - t0);
		CHECK_FOR_INTERRUPTS();
	}

	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_FLOAT8(((double) fastest[1] - (double) fastest[0]) / 1000);
}

/* The i-th of the fresh keys; seq ones lie behind every key of the table. */
static Datum
make_key(Oid typid, bool seq, int64 base, int i, uint64 *state)
{
	switch (typid)
	{
		case INT8OID:
			return Int64GetDatum(seq ? base + 1 + i : (int64) next_random(state));
		case UUIDOID:
			{
				pg_uuid_t  *u = palloc(sizeof(pg_uuid_t));
				uint64		r[2];

				r[0] = next_random(state);
				r[1] = next_random(state);
				memcpy(u->data, r, UUID_LEN);
				/* version 4 */
				u->data[6] = (u->data[6] & 0x0f) | 0x40;
				u->data[8] = (u->data[8] & 0x3f) | 0x80;
				return UUIDPGetDatum(u);
			}
		case TEXTOID:
			{
				static const char digits[] = "0123456789abcdef";
				text	   *t = palloc(VARHDRSZ + TEXT_LEN);
				int			j;
				uint64		r = 0;

				SET_VARSIZE(t, VARHDRSZ + TEXT_LEN);
				for (j = 0; j < TEXT_LEN; j++)
				{
					if (j % 16 == 0)
						r = next_random(state);
					VARDATA(t)[j] = digits[r & 15];
					r >>= 4;
				}
				return PointerGetDatum(t);
			}
		default:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("bench_insert makes bigint, uuid and text keys only")));
	}
	return (Datum) 0;			/* keep compiler quiet */
}

/*
 * bench_insert
 *		index_insert of fresh keys.
 */
Datum
bench_insert(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	int			n = PG_GETARG_INT32(1);
	char	   *kind = text_to_cstring(PG_GETARG_TEXT_PP(2));
	uint64		state = (uint64) PG_GETARG_INT64(3);
	bool		seq = strcmp(kind, "seq") == 0;
	Relation	heap;
	Relation	index = open_index(indexoid, RowExclusiveLock,
								   RowExclusiveLock, &heap);
	IndexInfo  *info = BuildIndexInfo(index);
	Oid			typid = index->rd_opcintype[0];
	BlockNumber firstblk = RelationGetNumberOfBlocks(heap) + 1;
	Datum	   *values;
	int64		base = 0;
	uint64		t0;
	uint64		t1;
	int			i;

	if (n < 1 || (!seq && strcmp(kind, "random") != 0) ||
		(seq && typid != INT8OID))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("kind must be random, or seq with bigint, and the number positive")));
	if (seq)
	{
		uint64		nkeys;
		Datum	   *keys = read_keys(heap, index, &nkeys);

		while (nkeys > 0)
			base = Max(base, DatumGetInt64(keys[--nkeys]));
		pfree(keys);
	}
	values = MemoryContextAllocHuge(CurrentMemoryContext,
									(Size) n * sizeof(Datum));
	for (i = 0; i < n; i++)
		values[i] = make_key(typid, seq, base, i, &state);

	t0 = now_ns();
	for (i = 0; i < n; i++)
	{
		ItemPointerData tid;
		bool		isnull = false;

		ItemPointerSet(&tid, firstblk + i / FAKE_TUPLES_PER_PAGE,
					   1 + i % FAKE_TUPLES_PER_PAGE);
		index_insert(index, &values[i], &isnull, &tid, heap, UNIQUE_CHECK_NO,
					 false, info);
		if ((i & 4095) == 0)
			CHECK_FOR_INTERRUPTS();
	}
	t1 = now_ns();
#if PG_VERSION_NUM >= 170000
	index_insert_cleanup(index, info);
#endif

	index_close(index, RowExclusiveLock);
	table_close(heap, RowExclusiveLock);
	PG_RETURN_FLOAT8((double) (t1 - t0) / n);
}

/* ---- VACUUM -------------------------------------------------------------- */

/* The TIDs of dead rows, as lazy VACUUM keeps them; they come in rising order. */
typedef struct DeadRows
{
	int64		n;
#if PG_VERSION_NUM >= 170000
	TidStore   *store;
	VacDeadItemsInfo info;
	BlockNumber block;			/* whose rows are not in the store yet */
	OffsetNumber offsets[MaxHeapTuplesPerPage];
	int			noffsets;
#else
	VacDeadItems *items;
#endif
} DeadRows;

static void
dead_begin(DeadRows *dead)
{
	dead->n = 0;
#if PG_VERSION_NUM >= 170000
	dead->store = TidStoreCreateLocal((size_t) maintenance_work_mem * 1024, true);
	dead->noffsets = 0;
#else
	dead->items = MemoryContextAllocHuge(CurrentMemoryContext, vac_max_items_to_alloc_size(1024));
	dead->items->max_items = 1024;
#endif
}

#if PG_VERSION_NUM >= 170000
static void
dead_store(DeadRows *dead)
{
	if (dead->noffsets > 0)
		TidStoreSetBlockOffsets(dead->store, dead->block, dead->offsets, dead->noffsets);
	dead->noffsets = 0;
}
#endif

static void
dead_add(DeadRows *dead, ItemPointer tid)
{
#if PG_VERSION_NUM >= 170000
	if (dead->block != ItemPointerGetBlockNumber(tid))
		dead_store(dead);
	dead->block = ItemPointerGetBlockNumber(tid);
	dead->offsets[dead->noffsets++] = ItemPointerGetOffsetNumber(tid);
#else
	if (dead->n == dead->items->max_items)
	{
		int			most = dead->items->max_items * 2;

		dead->items = repalloc_huge(dead->items, vac_max_items_to_alloc_size(most));
		dead->items->max_items = most;
	}
	dead->items->items[dead->n] = *tid;
#endif
	dead->n++;
}

/* ambulkdelete, with the callback of lazy VACUUM. */
static IndexBulkDeleteResult *
dead_bulkdel(DeadRows *dead, IndexVacuumInfo *ivinfo)
{
#if PG_VERSION_NUM >= 170000
	dead->info.max_bytes = (size_t) maintenance_work_mem * 1024;
	dead->info.num_items = dead->n;
	return vac_bulkdel_one_index(ivinfo, NULL, dead->store, &dead->info);
#else
	dead->items->num_items = dead->n;
	return vac_bulkdel_one_index(ivinfo, NULL, dead->items);
#endif
}

/*
 * bench_vacuum
 *		ambulkdelete and amvacuumcleanup with a random set of dead TIDs.
 */
Datum
bench_vacuum(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	int			one_in = PG_GETARG_INT32(1);
	uint64		state = (uint64) PG_GETARG_INT64(2);
	Relation	heap;
	Relation	index = open_index(indexoid, ShareUpdateExclusiveLock,
								   RowExclusiveLock, &heap);
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	TableScanDesc scan;
	IndexVacuumInfo ivinfo;
	IndexBulkDeleteResult *stats;
	DeadRows	dead;
	int64		rows = 0;
	int64		removed;
	uint64		t0;
	uint64		t1;
	TupleDesc	tupdesc;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	if (one_in < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("one_in must be positive")));
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	dead_begin(&dead);
	scan = begin_table_scan(heap);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		rows++;
		if (next_random(&state) % one_in != 0)
			continue;
		dead_add(&dead, &slot->tts_tid);
		CHECK_FOR_INTERRUPTS();
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
#if PG_VERSION_NUM >= 170000
	dead_store(&dead);
#endif

	memset(&ivinfo, 0, sizeof(ivinfo));
	ivinfo.index = index;
#if PG_VERSION_NUM >= 160000
	ivinfo.heaprel = heap;
#endif
	ivinfo.analyze_only = false;
	ivinfo.report_progress = false;
	ivinfo.estimated_count = false;
	ivinfo.message_level = DEBUG2;
	ivinfo.num_heap_tuples = rows;
	ivinfo.strategy = GetAccessStrategy(BAS_VACUUM);

	t0 = now_ns();
	stats = dead_bulkdel(&dead, &ivinfo);
	ivinfo.num_heap_tuples = rows - dead.n;
	stats = index_vacuum_cleanup(&ivinfo, stats);
	t1 = now_ns();

	removed = stats ? (int64) stats->tuples_removed : 0;
	if (removed != dead.n)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("VACUUM removed %lld of %lld dead rows from index \"%s\"",
						(long long) removed, (long long) dead.n, RelationGetRelationName(index))));

	values[0] = Float8GetDatum((double) (t1 - t0) / 1e6);
	values[1] = Int64GetDatum(removed);
	index_close(index, RowExclusiveLock);
	table_close(heap, ShareUpdateExclusiveLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/*
 * bench_empty
 *		The generator and the interrupt check alone.
 */
Datum
bench_empty(PG_FUNCTION_ARGS)
{
	int			n = PG_GETARG_INT32(0);
	volatile uint64 sink = 0;
	uint64		state = 1;
	uint64		t0 = now_ns();
	int			i;

	for (i = 0; i < n; i++)
	{
		sink += next_random(&state);
		if ((i & 4095) == 0)
			CHECK_FOR_INTERRUPTS();
	}
	(void) sink;
	PG_RETURN_FLOAT8(n > 0 ? (double) (now_ns() - t0) / n : 0);
}
