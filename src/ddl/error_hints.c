/*
 * error_hints.c
 *	  Statements that core refuses, or obeys, for a reason that an art index is,
 *	  and which its own words do not tell.
 *
 * Where it can be seen beforehand, the refusal is ours, in the place of
 * core's.  But where the user may not give the statement at all, core says so
 * first.
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_subscription_rel.h"
#include "commands/defrem.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "area/shared_state.h"
#include "ddl/ddl.h"

/* Is it DROP EXTENSION of ours? */
static bool
drops_extension(Node *stmt)
{
	ListCell   *lc;

	if (!IsA(stmt, DropStmt) || ((DropStmt *) stmt)->removeType != OBJECT_EXTENSION)
		return false;
	foreach(lc, ((DropStmt *) stmt)->objects)
	{
		if (strcmp(strVal(lfirst(lc)), "artidx") == 0)
			return true;
	}
	return false;
}

/*
 * CASCADE drops the constraints with their indexes, and their tables take
 * duplicates from then on.
 *
 * Locks: AccessShareLock on pg_class, for the scan.
 */
static void
warn_of_lost_keys(Oid amoid)
{
	Relation	pg_class = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(pg_class, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tup;
	int			keys = 0;

	while (HeapTupleIsValid(tup = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tup);

		if (form->relam == amoid &&
			(form->relkind == RELKIND_INDEX || form->relkind == RELKIND_PARTITIONED_INDEX) &&
			OidIsValid(get_index_constraint(form->oid)))
			keys++;
	}
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	if (keys > 0)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg_plural("%d constraint of this database has an index of access method \"%s\" and is dropped with it",
							   "%d constraints of this database have indexes of access method \"%s\" and are dropped with them",
							   keys, keys, ART_AM_NAME),
				 errdetail("Nothing keeps duplicates out of their tables then."),
				 errhint("\"CALL artidx_to_btree()\" beforehand converts these indexes to btree, and their constraints stay.")));
}

/*
 * A unique index of art by which core could refresh the materialized view
 * concurrently if it were btree.  Returns its name; NULL if there is none, or
 * another that will do.
 *
 * Locks: takes AccessShareLock on each index and gives it back.
 */
static Oid
unusable_unique_index(Relation matview, Oid amoid)
{
	List	   *indexes = RelationGetIndexList(matview);
	Oid			found = InvalidOid;
	bool		usable = false;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (index->rd_index->indisunique && index->rd_index->indisvalid &&
			art_index_is_plain(index))
		{
			if (index->rd_rel->relam != amoid)
				usable = true;
			else if (!OidIsValid(found))
				found = lfirst_oid(lc);
		}
		index_close(index, AccessShareLock);
	}
	list_free(indexes);
	return usable ? InvalidOid : found;
}

/*
 * ERROR where REFRESH MATERIALIZED VIEW CONCURRENTLY would find no index of
 * btree.
 *
 * Locks: takes AccessShareLock on the materialized view and gives it back.
 */
static void
check_refresh(RefreshMatViewStmt *stmt, Oid amoid)
{
	Oid			relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	Relation	matview;
	Oid			indexoid;

	if (!OidIsValid(relid) || get_rel_relkind(relid) != RELKIND_MATVIEW ||
		!ART_OWNS_TABLE(relid))
		return;
	matview = try_relation_open(relid, AccessShareLock);
	if (matview == NULL)
		return;
	indexoid = unusable_unique_index(matview, amoid);
	if (OidIsValid(indexoid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot refresh materialized view \"%s\" concurrently",
						RelationGetRelationName(matview)),
				 errdetail("Before PostgreSQL 18 this requires a unique index of access method \"btree\"; index \"%s\" is of access method \"%s\".",
						   get_rel_name(indexoid), ART_AM_NAME),
				 errhint("\"CALL artidx_to_btree(%s)\" converts it to btree.",
						 quote_literal_cstr(art_sql_name(indexoid)))));
	relation_close(matview, AccessShareLock);
}

/*
 * ERROR for a unique index of a partitioned table, which core makes with btree
 * only; NOTICE for one of a partition, which INSERT ... ON CONFLICT into its
 * parent does not reach (on_conflict.c).
 *
 * Locks: none.  RangeVarGetRelid() runs with NoLock, so a table dropped
 * meanwhile is core's to report.
 */
static void
check_unique_of_partitioned(IndexStmt *stmt)
{
	Oid			relid = stmt->relation == NULL ? InvalidOid :
		RangeVarGetRelid(stmt->relation, NoLock, true);

	if (!OidIsValid(relid) || !ART_OWNS_TABLE(relid))
		return;
	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
	{
		if (get_rel_relispartition(relid))
			ereport(NOTICE,
					(errmsg("INSERT ... ON CONFLICT into the partitioned table will not reach partition \"%s\"",
							stmt->relation->relname),
					 errdetail("Before PostgreSQL 18 it routes rows only to partitions whose unique indexes are all of access method \"btree\"."),
					 errhint("Insert into the partition itself, or leave \"USING %s\" out.", ART_AM_NAME)));
		return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("unique index of partitioned table \"%s\" cannot be of access method \"%s\"",
					stmt->relation->relname, ART_AM_NAME),
			 errdetail("Before PostgreSQL 18 the unique indexes of partitioned tables must be of access method \"btree\"."),
			 errhint("Leave \"USING %s\" out; indexes that are not unique can use it.",
					 ART_AM_NAME)));
}

bool
art_check_statement(Node *stmt)
{
	bool		refresh = !CORE_KNOWS_EQUALITY && IsA(stmt, RefreshMatViewStmt) &&
		((RefreshMatViewStmt *) stmt)->concurrent;
	bool		unique = !CORE_KNOWS_EQUALITY && IsA(stmt, IndexStmt) &&
		((IndexStmt *) stmt)->unique && ((IndexStmt *) stmt)->accessMethod != NULL &&
		strcmp(((IndexStmt *) stmt)->accessMethod, ART_AM_NAME) == 0;
	bool		drop = drops_extension(stmt);
	Oid			amoid;

	if (!refresh && !unique && !drop)
		return false;
	amoid = get_am_oid(ART_AM_NAME, true);
	if (!OidIsValid(amoid))
		return false;
	if (refresh)
		check_refresh((RefreshMatViewStmt *) stmt, amoid);
	if (unique)
		check_unique_of_partitioned((IndexStmt *) stmt);
	if (drop && ((DropStmt *) stmt)->behavior == DROP_CASCADE)
		warn_of_lost_keys(amoid);
	return drop;
}

void
art_explain(MemoryContext context, Node *stmt)
{
	MemoryContext caught = MemoryContextSwitchTo(context);
	ErrorData  *edata = CopyErrorData();
	char	   *hint = NULL;

	if (edata->sqlerrcode == ERRCODE_INTERNAL_ERROR && edata->message != NULL &&
		strcmp(edata->message, "only b-tree indexes are supported for foreign keys") == 0)
	{
		edata->sqlerrcode = ERRCODE_FEATURE_NOT_SUPPORTED;
		hint = psprintf("The key that is referenced is an index of access method \"%s\", which the owner of its table can make one of btree with \"CALL artidx_to_btree(...)\".",
						ART_AM_NAME);
	}
	else if (edata->sqlerrcode == ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST &&
			 drops_extension(stmt))
		hint = psprintf("\"CALL artidx_to_btree()\" makes them indexes of access method \"btree\", after which they do not depend on the extension. DROP ... CASCADE drops them, PRIMARY KEY and UNIQUE constraints too.%s",
						edata->detail != NULL && strstr(edata->detail, "artidx_debug") ?
						" Extension \"artidx_debug\" goes by DROP EXTENSION or CASCADE." : "");
	if (hint != NULL)
	{
		FlushErrorState();
		edata->hint = hint;
		ReThrowError(edata);
	}
	MemoryContextSwitchTo(caught);
}

/* ---- subscribers ---- */

/*
 * Does a subscription write the table, or one that it is a partition of?
 *
 * Locks: AccessShareLock on pg_subscription_rel, for the scan.
 */
bool
art_table_subscribed(Oid relid)
{
	Relation	rel = table_open(SubscriptionRelRelationId, AccessShareLock);
	List	   *tables = list_make1_oid(relid);
	bool		found = false;
	ListCell   *lc;

	if (get_rel_relispartition(relid))
		tables = list_concat(tables, get_partition_ancestors(relid));
	foreach(lc, tables)
	{
		ScanKeyData key;
		SysScanDesc scan;

		ScanKeyInit(&key, Anum_pg_subscription_rel_srrelid, BTEqualStrategyNumber,
					F_OIDEQ, ObjectIdGetDatum(lfirst_oid(lc)));
		scan = systable_beginscan(rel, SubscriptionRelSrrelidSrsubidIndexId, true, NULL,
								  1, &key);
		found |= HeapTupleIsValid(systable_getnext(scan));
		systable_endscan(scan);
	}
	table_close(rel, AccessShareLock);
	return found;
}

/*
 * WARNING if the index by which rows of the table are found is of art.
 *
 * Locks: AccessShareLock on table and index, given back before it returns.
 */
static void
warn_of_identity(Oid relid, Oid amoid)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);
	Relation	index;
	Oid			indexoid;

	if (rel == NULL)
		return;
	indexoid = RelationGetReplicaIndex(rel);
	if (!OidIsValid(indexoid))
		indexoid = ART_PRIMARY_KEY_INDEX(rel);
	if (OidIsValid(indexoid))
	{
		index = index_open(indexoid, AccessShareLock);
		if (index->rd_rel->relam == amoid)
			ereport(WARNING,
					(errcode(ERRCODE_WARNING),
					 errmsg("logical replication into table \"%s\" stops at the first UPDATE or DELETE",
							RelationGetRelationName(rel)),
					 errdetail("A subscriber of PostgreSQL 17 does not find rows by index \"%s\" of access method \"%s\".",
							   RelationGetRelationName(index), ART_AM_NAME),
					 errhint("\"CALL artidx_to_btree(%s)\" converts it to btree.",
							 quote_literal_cstr(art_sql_name(indexoid)))));
		index_close(index, AccessShareLock);
	}
	relation_close(rel, AccessShareLock);
}

/*
 * Locks: AccessShareLock on pg_subscription_rel, for the scan; on all tables
 * in question to the end of the transaction.
 */
void
art_check_subscriber(Node *stmt)
{
	RangeVar   *table = NULL;
	List	   *tables = NIL;
	Oid			amoid;
	ListCell   *lc,
			   *l;

	if (!SUBSCRIBER_WANTS_BTREE)
		return;
	if (IsA(stmt, AlterTableStmt) && ((AlterTableStmt *) stmt)->objtype == OBJECT_TABLE)
		table = ((AlterTableStmt *) stmt)->relation;
	else if (!IsA(stmt, CreateSubscriptionStmt) && !IsA(stmt, AlterSubscriptionStmt))
		return;
	amoid = get_am_oid(ART_AM_NAME, true);
	if (!OidIsValid(amoid))
		return;
	if (table != NULL)
	{
		Oid			relid = RangeVarGetRelid(table, NoLock, true);

		if (OidIsValid(relid) && art_table_subscribed(relid))
			tables = list_make1_oid(relid);
	}
	else
	{
		Relation	rel = table_open(SubscriptionRelRelationId, AccessShareLock);
		SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
		HeapTuple	tup;

		while (HeapTupleIsValid(tup = systable_getnext(scan)))
			tables = list_append_unique_oid(tables,
											((Form_pg_subscription_rel) GETSTRUCT(tup))->srrelid);
		systable_endscan(scan);
		table_close(rel, AccessShareLock);
	}
	/* of a partitioned table it is the partitions that are written */
	foreach(lc, tables)
	{
		foreach(l, find_all_inheritors(lfirst_oid(lc), AccessShareLock, NULL))
			warn_of_identity(lfirst_oid(l), amoid);
	}
}
