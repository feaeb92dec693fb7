/*
 * advise.c
 *	  For artidx_advise(): all that SQL does not tell of a btree index, of the server, and
 *	  of other extensions.
 *
 * The obstacles are those that artidx_from_btree() refuses, by the same functions.  This file
 * reads catalogs only, and waits for nothing: it tells that somebody has locked an index.
 *
 * src/ddl/README.md: Advice
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_statistic.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/rls.h"
#include "utils/syscache.h"

#include "area/area.h"
#include "art_compat.h"
#include "ddl/ddl.h"
#include "eval/eval.h"
#include "key/key.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_advise_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_advise_checkpoint_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_advise_image_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_advise_statement_stats);

/* The columns of the row, in their order. */
enum
{
	ADVISE_OBSTACLE,
	ADVISE_REMARK,
	ADVISE_KEYS,
	ADVISE_COMPARED,
	ADVISE_KEY_BYTES,
	ADVISE_FIRST_BYTES,
	ADVISE_KEY_VALUES,
	ADVISE_CORRELATION,
	ADVISE_ENTRIES,
	ADVISE_INDEX_BYTES,
	ADVISE_TABLE_BYTES,
	ADVISE_COLUMNS
};

/* How much of the last WAL is looked through for full-page images. */
#define ADVISE_WAL_BYTES	((XLogRecPtr) 4 * 1024 * 1024)

/* The keys, as ANALYZE knows them. */
typedef struct KeyFacts
{
	double		bytes;			/* of a key, on the average, with INCLUDE columns */
	double		first;			/* ... of its first column */
	double		values;			/* different ones; 0: unknown */
	double		correlation;	/* of the first column with the heap's order, 0 to 1 */
} KeyFacts;

/*
 * May the current user know what ANALYZE found in a column?  0: an expression.  As in
 * pg_stats; and whoever may read all statistics, for no value is among these.
 */
static bool
may_know(Oid relid, AttrNumber attno)
{
	if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
		return true;
	if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		return false;
	return pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK ||
		(attno > 0 && pg_attribute_aclcheck(relid, attno, GetUserId(), ACL_SELECT) == ACLCHECK_OK);
}

/*
 * The facts of one column, perhaps an INCLUDE column, are added.  An expression's are those of the index.
 */
static void
add_column(Relation heap, Relation index, const ArtKeyDesc *kd, int i, double rows,
		   KeyFacts *facts)
{
	AttrNumber	attno = index->rd_index->indkey.values[i];
	Oid			relid = attno != 0 ? RelationGetRelid(heap) : RelationGetRelid(index);
	HeapTuple	tup = !may_know(RelationGetRelid(heap), attno) ? NULL :
		SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid),
						Int16GetDatum(attno != 0 ? attno : i + 1), BoolGetDatum(false));
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
	double		bytes = kd->cols[i].width;
	AttStatsSlot slot;

	if (HeapTupleIsValid(tup))
	{
		Form_pg_statistic stats = (Form_pg_statistic) GETSTRUCT(tup);
		double		values = stats->stadistinct < 0 ? -stats->stadistinct * rows :
			stats->stadistinct;

		if (bytes == 0)
			bytes = stats->stawidth;
		if (i == 0)
			facts->values = values;
		else if (i < kd->natts)
			facts->values *= values;
		if (i == 0 && get_attstatsslot(&slot, tup, STATISTIC_KIND_CORRELATION, InvalidOid,
									   ATTSTATSSLOT_NUMBERS))
		{
			if (slot.nnumbers > 0)
				facts->correlation = fabs(slot.numbers[0]);
			free_attstatsslot(&slot);
		}
		ReleaseSysCache(tup);
	}
	else if (i < kd->natts)
		facts->values = 0;
	if (bytes == 0)
		bytes = get_typavgwidth(att->atttypid, att->atttypmod);
	/* a mark stands before each column */
	facts->bytes += bytes + 1;
	if (i == 0)
		facts->first = facts->bytes;
}

/*
 * The names of the columns' types, and which of them are compared.
 */
static char *
key_types(Relation index, const ArtKeyDesc *kd)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; i < kd->natts; i++)
		appendStringInfo(&buf, "%s%s%s", i == 0 ? "" : ", ",
						 format_type_be(TupleDescAttr(RelationGetDescr(index), i)->atttypid),
						 kd->cols[i].enc == ART_ENC_DATUM ? " (compared)" : "");
	return buf.data;
}

/*
 * Bytes of a relation.  A partitioned one has none; nor has an unlogged one on a standby.
 */
static int64
size_of(Relation rel)
{
	if (!RELKIND_HAS_STORAGE(rel->rd_rel->relkind) ||
		(!RelationIsPermanent(rel) && RecoveryInProgress()))
		return 0;
	return (int64) RelationGetNumberOfBlocks(rel) * BLCKSZ;
}

/*
 * The entries of an index of so many bytes: as many a page as when it was last counted.
 * Where it never was, by the length of a key in pages that are two thirds full.
 */
static double
entries_of(Relation index, double key_bytes, int64 bytes)
{
	double		pages = (double) bytes / BLCKSZ;

	if (pages <= 1)
		return 0;
	if (index->rd_rel->reltuples > 0 && index->rd_rel->relpages > 1)
		return index->rd_rel->reltuples * (pages - 1) / (index->rd_rel->relpages - 1);
	return (pages - 1) * BLCKSZ * 0.67 /
		(MAXALIGN(sizeof(IndexTupleData) + (Size) key_bytes) + sizeof(ItemIdData));
}

/*
 * The reason why the index cannot be of art: a sentence, or NULL.
 */
static const char *
obstacle(Relation heap, Relation index, Oid amoid)
{
	const char *why = art_why_not(heap, index, NoLock);
	oidvector  *classes = art_index_classes(index);

	for (int i = 0; why == NULL && i < classes->dim1; i++)
	{
		if (!art_could_mirror(classes->values[i], amoid))
			why = psprintf("Access method \"%s\" has something else by the name of operator class %s. CREATE INDEX may name one that artidx_mirror_opclass makes in another schema.",
						   ART_AM_NAME, NameListToQuotedString(art_opclass_name(classes->values[i])));
	}
	return why;
}

/*
 * Sentences that one should read before a conversion, or NULL.
 */
static const char *
remark(Relation heap, Relation index)
{
	StringInfoData buf;

	initStringInfo(&buf);
	if (!art_preloaded())
		appendStringInfoString(&buf, " Preload artidx first.");
	if (!index->rd_index->indisvalid && index->rd_rel->relkind == RELKIND_INDEX)
		appendStringInfoString(&buf, " The index is not valid.");
	if (!art_converts_beside_writers(index))
		appendStringInfoString(&buf, " The conversion locks the table.");
	if (!CORE_KNOWS_EQUALITY && index->rd_index->indisunique)
	{
		if (heap->rd_rel->relkind == RELKIND_MATVIEW)
			appendStringInfoString(&buf, " REFRESH MATERIALIZED VIEW CONCURRENTLY wants a unique index of btree.");
		if (heap->rd_rel->relispartition)
			appendStringInfoString(&buf, " INSERT with ON CONFLICT into the partitioned table does not reach this partition then.");
	}
	return buf.len > 0 ? buf.data + 1 : NULL;
}

/*
 * Open the table and the index, unless somebody else has locked one of them.  *locked says
 * whether; else they are gone, or no index of btree.
 *
 * Locks: takes AccessShareLock on both where it returns true.
 */
static bool
open_table_and_index(Oid indexoid, Relation *heap, Relation *index, bool *locked)
{
	Oid			heapoid = IndexGetRelation(indexoid, true);

	*locked = false;
	if (!OidIsValid(heapoid))
		return false;
	*locked = !ConditionalLockRelationOid(heapoid, AccessShareLock);
	if (*locked)
		return false;
	*locked = !ConditionalLockRelationOid(indexoid, AccessShareLock);
	if (*locked)
	{
		UnlockRelationOid(heapoid, AccessShareLock);
		return false;
	}
	*heap = try_relation_open(heapoid, NoLock);
	*index = try_relation_open(indexoid, NoLock);
	if (*heap != NULL && *index != NULL && (*index)->rd_rel->relam == BTREE_AM_OID &&
		(*index)->rd_index->indrelid == heapoid && !RELATION_IS_OTHER_TEMP(*heap))
		return true;
	if (*index != NULL)
		relation_close(*index, NoLock);
	if (*heap != NULL)
		relation_close(*heap, NoLock);
	UnlockRelationOid(indexoid, AccessShareLock);
	UnlockRelationOid(heapoid, AccessShareLock);
	return false;
}

/*
 * artidx_advise_stats(index oid): a row for artidx_advise(); NULLs where the index is gone.
 *
 * Locks: takes AccessShareLock on the table and the index, without waiting, and gives them back.
 */
Datum
artidx_advise_stats(PG_FUNCTION_ARGS)
{
	TupleDesc	desc = art_result_row(fcinfo, ADVISE_COLUMNS);
	Oid			indexoid = PG_GETARG_OID(0);
	Datum		values[ADVISE_COLUMNS] = {0};
	bool		nulls[ADVISE_COLUMNS];
	Relation	heap;
	Relation	index;
	bool		locked;

	memset(nulls, true, sizeof(nulls));
	if (open_table_and_index(indexoid, &heap, &index, &locked))
	{
		ArtKeyDesc *kd = art_keydesc_facts(index, CurrentMemoryContext);
		const char *why = obstacle(heap, index, get_am_oid(ART_AM_NAME, false));
		const char *more = remark(heap, index);
		int64		bytes = size_of(index);
		KeyFacts	facts = {0};
		double		rows = heap->rd_rel->reltuples > 0 ? heap->rd_rel->reltuples : 0;

		for (int i = 0; i < kd->nall; i++)
			add_column(heap, index, kd, i, rows, &facts);
		memset(nulls, false, sizeof(nulls));
		nulls[ADVISE_OBSTACLE] = why == NULL;
		if (why != NULL)
			values[ADVISE_OBSTACLE] = CStringGetTextDatum(why);
		nulls[ADVISE_REMARK] = more == NULL;
		if (more != NULL)
			values[ADVISE_REMARK] = CStringGetTextDatum(more);
		values[ADVISE_KEYS] = CStringGetTextDatum(key_types(index, kd));
		values[ADVISE_COMPARED] = BoolGetDatum(kd->compared);
		values[ADVISE_KEY_BYTES] = Float8GetDatum(facts.bytes);
		values[ADVISE_FIRST_BYTES] = Float8GetDatum(facts.first);
		values[ADVISE_KEY_VALUES] = Float8GetDatum(facts.values);
		values[ADVISE_CORRELATION] = Float8GetDatum(facts.correlation);
		values[ADVISE_ENTRIES] = Float8GetDatum(entries_of(index, facts.bytes, bytes));
		values[ADVISE_INDEX_BYTES] = Int64GetDatum(bytes);
		values[ADVISE_TABLE_BYTES] = Int64GetDatum(size_of(heap));
		relation_close(index, AccessShareLock);
		relation_close(heap, AccessShareLock);
	}
	else if (locked)
	{
		nulls[ADVISE_OBSTACLE] = false;
		values[ADVISE_OBSTACLE] = CStringGetTextDatum("Somebody has locked the index or its table; ask again.");
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/* ---- of the server, and of other extensions ---- */

/*
 * artidx_advise_checkpoint_stats(): how many there were since the statistics began.
 */
Datum
artidx_advise_checkpoint_stats(PG_FUNCTION_ARGS)
{
	PgStat_CheckpointerStats *stats = pgstat_fetch_stat_checkpointer();

	PG_RETURN_FLOAT8((double) ART_CHECKPOINTS_TIMED(stats) + (double) ART_CHECKPOINTS_REQUESTED(stats));
}

/*
 * The rows of a query go to the result.  Their types are those that the function declares.
 */
static void
give_rows(ReturnSetInfo *rsinfo, const char *query)
{
	if (SPI_execute(query, true, 0) != SPI_OK_SELECT ||
		SPI_tuptable->tupdesc->natts != rsinfo->setDesc->natts)
		elog(ERROR, "not a query of %d columns: %s", rsinfo->setDesc->natts, query);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		Datum		values[2];
		bool		nulls[2];

		for (int c = 0; c < rsinfo->setDesc->natts; c++)
			values[c] = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, c + 1, &nulls[c]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
}

/*
 * Ask another extension, where this database has it.  "%s" of the query is its schema.  No
 * row where it is not there, is not loaded, or is not the caller's to ask: advice goes on
 * without it.
 */
static Datum
ask_extension(FunctionCallInfo fcinfo, const char *extension, const char *query)
{
	ReturnSetInfo *rsinfo = art_result_rows(fcinfo, 2);
	MemoryContext cxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(cxt);
	PG_TRY();
	{
		SPI_connect();
		if (SPI_execute(psprintf("SELECT pg_catalog.quote_ident(nspname::pg_catalog.text) FROM pg_catalog.pg_extension e "
								 "JOIN pg_catalog.pg_namespace n ON n.oid = extnamespace WHERE extname = %s",
								 quote_literal_cstr(extension)), true, 1) == SPI_OK_SELECT &&
			SPI_processed == 1)
			give_rows(rsinfo, psprintf(query, SPI_getvalue(SPI_tuptable->vals[0],
														   SPI_tuptable->tupdesc, 1)));
		SPI_finish();
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *err = art_error_of_part(cxt, owner);

		FreeErrorData(err);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(cxt);
	CurrentResourceOwner = owner;
	return (Datum) 0;
}

/*
 * artidx_advise_image_stats(): full-page images of this database in the last WAL, by file.
 * PostgreSQL 15 tells them in words only.
 */
Datum
artidx_advise_image_stats(PG_FUNCTION_ARGS)
{
	const char *of_database = psprintf(PG_VERSION_NUM >= 160000 ?
									   "SELECT relfilenode, pg_catalog.count(*) FROM %%s.pg_get_wal_block_info(%%s) "
									   "WHERE block_fpi_length > 0 AND relforknumber = 0 AND reldatabase = %u GROUP BY 1" :
									   "SELECT m[1]::pg_catalog.oid, pg_catalog.count(*) FROM %%s.pg_get_wal_records_info(%%s), "
									   "pg_catalog.regexp_matches(block_ref, 'rel [0-9]+/%u/([0-9]+) fork main blk [0-9]+ [(]FPW[)]', 'g') m "
									   "WHERE fpi_length > 0 GROUP BY 1",
									   MyDatabaseId);
	XLogRecPtr	ends = RecoveryInProgress() ? GetXLogReplayRecPtr(NULL) : GetFlushRecPtr(NULL);
	XLogRecPtr	first = (XLogRecPtr) wal_segment_size;
	XLogRecPtr	begins = ends > first + ADVISE_WAL_BYTES ? ends - ADVISE_WAL_BYTES : first;
	const char *range = psprintf("'%X/%X'::pg_catalog.pg_lsn, '%X/%X'::pg_catalog.pg_lsn",
								 LSN_FORMAT_ARGS(begins), LSN_FORMAT_ARGS(ends));

	return ask_extension(fcinfo, "pg_walinspect", psprintf(of_database, "%s", range));
}

/*
 * artidx_advise_statement_stats(): the statements of this database that are called most often
 * and may scan an index.
 */
Datum
artidx_advise_statement_stats(PG_FUNCTION_ARGS)
{
	return ask_extension(fcinfo, "pg_stat_statements",
						 psprintf("SELECT pg_catalog.lower(query), calls FROM %%s.pg_stat_statements "
								  "WHERE dbid = %u AND query ~* '^[[:space:]]*(select|with|update|delete|merge|declare)[^a-z_]' "
								  "ORDER BY calls DESC LIMIT 100", MyDatabaseId));
}
