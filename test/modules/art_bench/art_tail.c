/*-------------------------------------------------------------------------
 *
 * art_tail.c
 *	  Several backends that insert a sequence into one index at once.
 *
 * They draw their numbers from one counter in shared memory, one or some at a
 * time, as nextval() would hand them out, but without what a sequence costs;
 * the index of "-" shows what the counter and the loop cost by themselves.
 *
 * Portions Copyright (c) 2025, artidx contributors
 * SPDX-License-Identifier: PostgreSQL
 *
 * test/modules/art_bench/art_tail.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#include "storage/dsm.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(bench_tail_open);
PGDLLEXPORT PG_FUNCTION_INFO_V1(bench_tail);
PGDLLEXPORT PG_FUNCTION_INFO_V1(bench_tail_close);

#define FAKE_TUPLES_PER_PAGE	200

typedef struct TailShared
{
	uint64		base;			/* the first key */
	uint64		n;				/* how many in all */
	pg_atomic_uint32 arrived;	/* backends that are ready */
	char		pad[PG_CACHE_LINE_SIZE];
	pg_atomic_uint64 next;		/* the next number, 0 .. n */
} TailShared;

static uint64
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64) ts.tv_sec * UINT64CONST(1000000000) + ts.tv_nsec;
}

/*
 * bench_tail_open
 *		A counter for n keys from base on; its handle.  It stays until it is
 *		closed.
 */
Datum
bench_tail_open(PG_FUNCTION_ARGS)
{
	int64		n = PG_GETARG_INT64(1);
	dsm_segment *seg;
	TailShared *sh;
	dsm_handle	handle;

	if (n < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the number of keys must be positive")));
	seg = dsm_create(sizeof(TailShared), 0);
	sh = dsm_segment_address(seg);
	sh->base = (uint64) PG_GETARG_INT64(0);
	sh->n = (uint64) n;
	pg_atomic_init_u32(&sh->arrived, 0);
	pg_atomic_init_u64(&sh->next, 0);
	handle = dsm_segment_handle(seg);
	dsm_pin_segment(seg);
	dsm_detach(seg);
	PG_RETURN_INT64((int64) handle);
}

/*
 * bench_tail_close
 *		Give the counter's memory back.
 */
Datum
bench_tail_close(PG_FUNCTION_ARGS)
{
	dsm_unpin_segment((dsm_handle) PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

/*
 * bench_tail
 *		index_insert of the counter's numbers, "cache" of them at a time, until
 *		there are no more; begins when so many backends are there.  TIDs are
 *		behind the table's end.
 */
Datum
bench_tail(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	dsm_handle	handle = (dsm_handle) PG_GETARG_INT64(1);
	int			backends = PG_GETARG_INT32(2);
	int			cache = PG_GETARG_INT32(3);
	Relation	heap = NULL;
	Relation	index = NULL;
	IndexInfo  *info = NULL;
	BlockNumber firstblk = 0;
	dsm_segment *seg;
	TailShared *sh;
	uint64		mine = 0;
	uint64		t0;
	uint64		t1;
	uint64		from;
	TupleDesc	tupdesc;
	Datum		values[2];
	bool		nulls[2] = {false, false};
	int			waited;

	if (backends < 1 || cache < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("backends and cache must be positive")));
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (OidIsValid(indexoid))
	{
		heap = table_open(IndexGetRelation(indexoid, false), RowExclusiveLock);
		index = index_open(indexoid, RowExclusiveLock);
		if (IndexRelationGetNumberOfAttributes(index) != 1 ||
			index->rd_opcintype[0] != INT8OID)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("index \"%s\" is not on one bigint",
							RelationGetRelationName(index))));
		info = BuildIndexInfo(index);
		firstblk = RelationGetNumberOfBlocks(heap) + 1;
	}

	seg = dsm_attach(handle);
	if (seg == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no such counter")));
	sh = dsm_segment_address(seg);

	/* a whole insert or two beforehand would move the tail: begin cold */
	pg_atomic_fetch_add_u32(&sh->arrived, 1);
	for (waited = 0; pg_atomic_read_u32(&sh->arrived) < (uint32) backends; waited++)
	{
		if (waited == 600000)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("the other backends did not come")));
		CHECK_FOR_INTERRUPTS();
		pg_usleep(100);
	}

	t0 = now_ns();
	while ((from = pg_atomic_fetch_add_u64(&sh->next, cache)) < sh->n)
	{
		uint64		to = Min(from + cache, sh->n);

		for (uint64 i = from; i < to; i++)
		{
			ItemPointerData tid;
			Datum		value = Int64GetDatum((int64) (sh->base + i));
			bool		isnull = false;

			ItemPointerSet(&tid, firstblk + i / FAKE_TUPLES_PER_PAGE,
						   1 + i % FAKE_TUPLES_PER_PAGE);
			if (index)
				index_insert(index, &value, &isnull, &tid, heap,
							 UNIQUE_CHECK_NO, false, info);
			if ((mine++ & 1023) == 0)
				CHECK_FOR_INTERRUPTS();
		}
	}
	t1 = now_ns();
	dsm_detach(seg);
	if (index)
	{
#if PG_VERSION_NUM >= 170000
		index_insert_cleanup(index, info);
#endif
		index_close(index, RowExclusiveLock);
		table_close(heap, RowExclusiveLock);
	}

	values[0] = Int64GetDatum((int64) mine);
	values[1] = Float8GetDatum((double) (t1 - t0) / 1e6);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
