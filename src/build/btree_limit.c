/*
 * btree_limit.c
 *	  A constraint's index takes no key that btree could not take.
 *
 * Else the constraint could never be one of btree again, which a foreign key, a
 * partitioned table, a dump and pg_upgrade want.  Other indexes take keys of up to
 * 4 MB.
 *
 * btree's limit is of its index tuple, of which three are to fit on a page.  Values
 * that are long are compressed before, and INCLUDE columns count.  So the tuple is
 * made as nbtree makes it (index_form_tuple) where the plain values would not fit.
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/itup.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufpage.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "area/area.h"
#include "build/build.h"

/* BTMaxItemSize of a leaf of version 4, whose definition has changed in 18 */
#define BTREE_LIMIT \
	MAXALIGN_DOWN((BLCKSZ - \
				   MAXALIGN(SizeOfPageHeaderData + 3 * sizeof(ItemIdData) + \
							3 * sizeof(ItemPointerData)) - \
				   MAXALIGN(sizeof(BTPageOpaqueData))) / 3)

/*
 * Bytes of a tuple beside its values: header, bitmap of NULLs, alignment of
 * each.
 */
#define TUPLE_EXTRA		(64 + INDEX_MAX_KEYS * MAXIMUM_ALIGNOF)

/* Could the tuple be too long?  No is certain. */
static bool
may_be_long(TupleDesc desc, const Datum *values, const bool *isnull)
{
	Size		size = TUPLE_EXTRA;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (isnull[i])
			continue;
		if (att->attlen > 0)
			size += att->attlen;
		else if (att->attlen == -1 && !VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
			size += VARSIZE_ANY(DatumGetPointer(values[i]));
		else if (att->attlen == -1)
			size += toast_raw_datum_size(values[i]);
		else
			size += strlen(DatumGetCString(values[i]));
	}
	return size > BTREE_LIMIT;
}

void
art_check_btree_limit(Relation heap, Relation index, ArtLimit *limit,
					  Datum *values, bool *isnull, ItemPointer tid)
{
	IndexTuple	tuple;
	Size		size;

	if (*limit == ART_LIMIT_NONE ||
		!may_be_long(RelationGetDescr(index), values, isnull))
		return;
	if (*limit == ART_LIMIT_UNKNOWN)
	{
		*limit = OidIsValid(get_index_constraint(RelationGetRelid(index))) ?
			ART_LIMIT_BTREE : ART_LIMIT_NONE;
		if (*limit == ART_LIMIT_NONE)
			return;
	}
	/* errs itself beyond 8 kB */
	tuple = index_form_tuple(RelationGetDescr(index), values, isnull);
	size = MAXALIGN(IndexTupleSize(tuple));
	pfree(tuple);
	if (size <= BTREE_LIMIT)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %zu exceeds btree version %u maximum %zu for index \"%s\"",
					size, BTREE_VERSION, (Size) BTREE_LIMIT, RelationGetRelationName(index)),
			 errdetail("Index row references tuple (%u,%u) in relation \"%s\". "
					   "An index of a constraint accepts only rows that an index of access method \"btree\" accepts, since it may have to become one.",
					   ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid),
					   RelationGetRelationName(heap)),
			 errhint("Values larger than 1/3 of a buffer page cannot be indexed for a constraint; a unique index of access method \"%s\" that belongs to no constraint accepts them.\n"
					 "Consider a unique index of an MD5 hash of the value.", ART_AM_NAME),
			 errtableconstraint(heap, RelationGetRelationName(index))));
}

void
art_check_rows_btree_limit(Relation heap, Relation index)
{
	IndexInfo  *info = BuildIndexInfo(index);
	TupleDesc	desc = RelationGetDescr(index);
	ArtLimit	limit = ART_LIMIT_BTREE;
	bool		fixed = true;
	Snapshot	snapshot;
	TableScanDesc scan;
	TupleTableSlot *slot;
	MemoryContext row,
				old;

	for (int i = 0; i < desc->natts; i++)
		fixed &= TupleDescAttr(desc, i)->attlen > 0;
	if (fixed)
		return;
	row = AllocSetContextCreate(CurrentMemoryContext, "art btree limit",
								ALLOCSET_DEFAULT_SIZES);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	slot = table_slot_create(heap, NULL);
	scan = art_table_beginscan(heap, snapshot);
	old = MemoryContextSwitchTo(row);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];

		CHECK_FOR_INTERRUPTS();
		FormIndexDatum(info, slot, NULL, values, isnull);
		art_check_btree_limit(heap, index, &limit, values, isnull, &slot->tts_tid);
		MemoryContextReset(row);
	}
	MemoryContextSwitchTo(old);
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	MemoryContextDelete(row);
}
