/*
 * convert_calls.c
 *	  CALL artidx_to_btree(index), artidx_to_btree() and artidx_from_btree(index):
 *	  the way out, and the way in.
 *
 * An index becomes one of another access method with its name, its constraint,
 * its comment and all that depends on it.  As in REINDEX CONCURRENTLY a new index
 * is built beside the old one, takes its place (index_concurrently_swap), and the
 * old one goes.  Foreign keys stay: those that reference the old index reference
 * the new one after the swap.
 *
 * Called by itself, a procedure may commit, and does so after each step, so that
 * the table is read and written meanwhile.  At every moment the constraint has
 * one valid index.  Cut short between two commits, the procedure leaves an index
 * that is not valid, with "_ccnew" or "_ccold" in its name, as REINDEX CONCURRENTLY
 * does.  The index's own functions run meanwhile, in this session, which no lock
 * keeps out.  Where one has dropped the index or made another of it, the new one
 * is dropped again.
 *
 * In a transaction block, and where the caller does not want it otherwise, it
 * is done under the table's strongest lock by art_remake_index.  So it is
 * always for temporary tables, for exclusion constraints and for deferrable
 * ones.  A second index beside those would refuse rows that are allowed, or
 * take rows that are not.
 *
 * A partitioned index has no entries.  Its parts are made again one by one, and
 * then its row in the catalogs is changed (retag).
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "area/shared_state.h"
#include "ddl/ddl.h"
#include "live/live.h"

/* One CALL. */
typedef struct Conversion
{
	Oid			from;
	Oid			to;
	bool		commits;		/* may end the transaction, and does */
	bool		concurrently;	/* ... and is to let others write */
	MemoryContext cxt;			/* outlives the transactions */
	char	   *name;			/* of the index in hand, for messages */
	char	   *sql_name;		/* ... as SQL takes it */
	char	   *unfinished;		/* what may be left of it, the same */
} Conversion;

/* An index as it is found. */
typedef struct Found
{
	Oid			indexoid;
	Oid			heapoid;
	char		relkind;
	bool		ispart;			/* of a partitioned index */
	bool		lockless;		/* can be made again beside writers */
} Found;

/* ---- transactions ---- */

static void
conversion_step_begin(Conversion *c)
{
	if (c->commits)
		StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(c->cxt);
	CHECK_FOR_INTERRUPTS();
}

/*
 * A step is done: commit it, or (in a caller's transaction) make it visible.
 */
static void
conversion_step_end(Conversion *c)
{
	if (ActiveSnapshotSet())
		PopActiveSnapshot();
	if (c->commits)
		CommitTransactionCommand();
	else
		CommandCounterIncrement();
	MemoryContextSwitchTo(c->cxt);
}

/*
 * Error context: names the index under way, and one that the error may leave.
 */
static void
say_which(void *arg)
{
	Conversion *c = (Conversion *) arg;

	if (c->name == NULL)
		return;
	errcontext("rebuilding index \"%s\" again with access method \"%s\"",
			   c->name, c->to == BTREE_AM_OID ? "btree" : ART_AM_NAME);
	if (c->unfinished != NULL)
		errcontext("index %s may be left; drop it, and call again where index %s is still what it was",
				   c->unfinished, c->sql_name);
}

/* ---- looking ---- */

/*
 * The name of the procedure that is at work.
 */
static const char *
procedure(const Conversion *c)
{
	return c->to == BTREE_AM_OID ? "artidx_to_btree" : "artidx_from_btree";
}

/*
 * ERROR: there is no such index, or it is not of the access method to convert.
 */
static void
refuse_kind(Conversion *c, Oid relid)
{
	char	   *name = get_rel_name(relid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", relid)));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not an index of access method \"%s\"", name,
					c->from == BTREE_AM_OID ? "btree" : ART_AM_NAME)));
}

/*
 * ERROR unless the user owns the table of the index.
 */
static void
check_owner(Oid heapoid, Oid indexoid)
{
	if (!ART_OWNS_TABLE(heapoid))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(indexoid));
}

/* See ddl.h. */
bool
art_converts_beside_writers(Relation index)
{
	return index->rd_rel->relpersistence != RELPERSISTENCE_TEMP &&
		index->rd_index->indimmediate && !index->rd_index->indisexclusion;
}

/*
 * Lock the table of an index, which may be another's by then.  False, with no lock
 * and no table in "found", if the index has gone.
 *
 * Locks: takes "lockmode" on the table, and leaves it to the end of the transaction.
 */
static bool
lock_table_of(Oid indexoid, LOCKMODE lockmode, Found *found)
{
	found->indexoid = indexoid;
	found->relkind = get_rel_relkind(indexoid);
	found->heapoid = found->relkind == RELKIND_INDEX ||
		found->relkind == RELKIND_PARTITIONED_INDEX ?
		IndexGetRelation(indexoid, true) : InvalidOid;
	if (!OidIsValid(found->heapoid))
		return false;
	check_owner(found->heapoid, indexoid);
	LockRelationOid(found->heapoid, lockmode);
	if (IndexGetRelation(indexoid, true) == found->heapoid)
	{
		check_owner(found->heapoid, indexoid);
		return true;
	}
	UnlockRelationOid(found->heapoid, lockmode);
	found->heapoid = InvalidOid;
	return false;
}

/* ERROR for all that stands against a conversion of the index, before anything is done. */
static void
check_convertible(Conversion *c, Relation heap, Relation index, bool part)
{
	if (index->rd_rel->relispartition && !part)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is part of a partitioned index",
						RelationGetRelationName(index)),
				 errdetail("All parts of a partitioned index have its access method."),
				 errhint("\"CALL %s(%s)\" converts all of it.", procedure(c),
						 quote_literal_cstr(art_sql_name(llast_oid(get_partition_ancestors(RelationGetRelid(index))))))));
	art_refuse_other_temp(index);
	if (IsCatalogRelation(heap))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied: \"%s\" is a system catalog",
						RelationGetRelationName(heap))));
	if (c->to != BTREE_AM_OID)
	{
		art_require_preload(index);
		art_check_replaceable(heap, index);
	}
	if (art_remaking_statement(heap, index, c->to) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index \"%s\" has an operator class that access method \"%s\" does not have",
						RelationGetRelationName(index),
						c->to == BTREE_AM_OID ? "btree" : ART_AM_NAME)));

	/* what is being made in this transaction, its relation cache does not let go of */
	if (index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX &&
		index->rd_createSubid != InvalidSubTransactionId)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("partitioned index \"%s\" was created in this transaction",
						RelationGetRelationName(index)),
				 errhint("Commit the transaction first.")));
}

/*
 * Find the index and lock its table.  False, with no lock, if it has gone or is not
 * of the access method any more, and that is not to be an error.  ERROR for all that
 * cannot be, before anything is done.
 *
 * Locks: takes "lockmode" on the table and AccessShareLock on the index, and
 * leaves both to the end of the transaction.  With false the table's lock is
 * given back.
 */
static bool
find_to_convert(Conversion *c, Oid indexoid, LOCKMODE lockmode, bool missing_ok, bool part,
				Found *found)
{
	Relation	heap;
	Relation	index;

	if (!lock_table_of(indexoid, lockmode, found))
	{
		if (!missing_ok)
			refuse_kind(c, indexoid);
		return false;
	}
	heap = table_open(found->heapoid, NoLock);
	index = index_open(indexoid, AccessShareLock);
	if (index->rd_rel->relam != c->from)
	{
		index_close(index, AccessShareLock);
		table_close(heap, NoLock);
		if (!missing_ok)
			refuse_kind(c, indexoid);
		UnlockRelationOid(found->heapoid, lockmode);
		return false;
	}
	check_convertible(c, heap, index, part);
	found->ispart = index->rd_rel->relispartition;
	found->lockless = art_converts_beside_writers(index);
	c->name = MemoryContextStrdup(c->cxt, RelationGetRelationName(index));
	c->sql_name = MemoryContextStrdup(c->cxt, art_sql_name(indexoid));
	index_close(index, NoLock);
	table_close(heap, NoLock);
	return true;
}

/* ---- one index ---- */

/* See ddl.h. */
void
art_drop_beside_writers(Oid heapoid, Oid indexoid)
{
	MemoryContext cxt = CurrentMemoryContext;
	ObjectAddress old;
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, heapoid);

	/* nobody reads it any more, then nobody writes it */
	StartTransactionCommand();
	CHECK_FOR_INTERRUPTS();
	WaitForLockersMultiple(list_make1(&tag), AccessExclusiveLock, true);
	/* from 18 on pg_index has a TOAST table */
	PushActiveSnapshot(GetTransactionSnapshot());
	index_concurrently_set_dead(heapoid, indexoid);
	PopActiveSnapshot();
	CommitTransactionCommand();

	StartTransactionCommand();
	CHECK_FOR_INTERRUPTS();
	WaitForLockersMultiple(list_make1(&tag), AccessExclusiveLock, true);
	PushActiveSnapshot(GetTransactionSnapshot());
	ObjectAddressSet(old, RelationRelationId, indexoid);
	performDeletion(&old, DROP_RESTRICT,
					PERFORM_DELETION_CONCURRENT_LOCK | PERFORM_DELETION_INTERNAL);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
}

/*
 * ERROR: the old index is not what it was.  The new one, valid so far to this
 * transaction alone, goes first.
 *
 * Locks: as art_drop_beside_writers().
 */
static void
give_up_new(Conversion *c, Oid heapoid, Oid newoid)
{
	bool		there = IndexGetRelation(newoid, true) == heapoid;

	if (there)
		index_set_state_flags(newoid, INDEX_DROP_CLEAR_VALID);
	conversion_step_end(c);
	if (there)
		art_drop_beside_writers(heapoid, newoid);
	c->unfinished = NULL;
	StartTransactionCommand();
	art_refuse_changed(c->name);
}

/*
 * The steps of REINDEX CONCURRENTLY, but that the new index is of another access
 * method.  Called in a transaction that has the table locked; returns outside of
 * any.
 *
 * Locks: ShareUpdateExclusiveLock on table and index, for the session from
 * before the first commit to the end.  An ERROR leaves them to core, which
 * releases session locks when it aborts.
 */
static void
convert_beside_writers(Conversion *c, const Found *found)
{
	Relation	heap = table_open(found->heapoid, NoLock);
	Relation	index = index_open(found->indexoid, ShareUpdateExclusiveLock);
	IndexStmt  *stmt = art_remaking_statement(heap, index, c->to);
	LockRelId	heaplock = heap->rd_lockInfo.lockRelId;
	LockRelId	indexlock = index->rd_lockInfo.lockRelId;
	ObjectAddress new;
	char	   *schema = get_namespace_name(RelationGetNamespace(heap));
	char	   *oldname;

	stmt->concurrent = true;
	stmt->idxname = ChooseRelationName(RelationGetRelationName(index), NULL, "ccnew",
									   RelationGetNamespace(heap), false);
	index_close(index, NoLock);
	table_close(heap, NoLock);

	/* from here on nobody drops or alters either */
	LockRelationIdForSession(&heaplock, ShareUpdateExclusiveLock);
	LockRelationIdForSession(&indexlock, ShareUpdateExclusiveLock);

	/*
	 * Commits by itself, several times, and ends in a transaction without
	 * snapshot, in which it has made the new index valid.  That is not
	 * committed before the new index has the old one's place.  Cut short, it
	 * leaves one that is not valid, as REINDEX CONCURRENTLY does.
	 */
	c->unfinished = quote_qualified_identifier(schema, stmt->idxname);
	new = art_define_index(found->heapoid, stmt, true);
	MemoryContextSwitchTo(c->cxt);
	PushActiveSnapshot(GetTransactionSnapshot());
	CommandCounterIncrement();
	if (!art_index_is_still(found->indexoid, found->heapoid, c->from, found->ispart))
		give_up_new(c, found->heapoid, new.objectId);

	/* the new index takes the old one's place */
	oldname = ChooseRelationName(c->name, NULL, "ccold",
								 get_rel_namespace(found->heapoid), false);
	index_concurrently_swap(new.objectId, found->indexoid, oldname);
	CommandCounterIncrement();
	index = index_open(found->indexoid, NoLock);
	art_remade(index, new.objectId, c->to);
	index_close(index, NoLock);
	CacheInvalidateRelcacheByRelid(found->heapoid);
	conversion_step_end(c);
	c->unfinished = quote_qualified_identifier(schema, oldname);
	art_drop_beside_writers(found->heapoid, found->indexoid);
	c->unfinished = NULL;
	UnlockRelationIdForSession(&indexlock, ShareUpdateExclusiveLock);
	UnlockRelationIdForSession(&heaplock, ShareUpdateExclusiveLock);
}

/*
 * Convert an index that is not partitioned.  Called and done outside of a
 * transaction when it commits, else inside of one.  False: there was nothing to do.
 *
 * Locks: as find_to_convert() takes them, released by the commit that ends the step.
 */
static bool
convert_plain(Conversion *c, Oid indexoid, bool missing_ok, bool part)
{
	Found		found;
	Relation	heap;

	conversion_step_begin(c);
	c->name = NULL;
	if (c->concurrently)
	{
		if (!find_to_convert(c, indexoid, ShareUpdateExclusiveLock, missing_ok, part, &found))
		{
			conversion_step_end(c);
			return false;
		}
		if (found.lockless)
		{
			convert_beside_writers(c, &found);
			c->name = NULL;
			return true;
		}
		/* a process that has a weaker lock asks for no stronger one */
		conversion_step_end(c);
		conversion_step_begin(c);
	}
	if (!find_to_convert(c, indexoid, AccessExclusiveLock, missing_ok, part, &found))
	{
		conversion_step_end(c);
		return false;
	}
	heap = table_open(found.heapoid, NoLock);
	(void) art_remake_index(heap, indexoid, c->to, false);
	table_close(heap, NoLock);
	conversion_step_end(c);
	c->name = NULL;
	return true;
}

/* ---- a partitioned index ---- */

/*
 * The partitioned index, which is locked, is of the other access method from now on.
 *
 * Locks: AccessExclusiveLock on the index, to the end of the transaction;
 * RowExclusiveLock on pg_class and pg_index while it writes them.
 */
static void
retag(Conversion *c, Oid indexoid)
{
	Relation	index = index_open(indexoid, AccessExclusiveLock);
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	Relation	pg_index = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	rel = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(indexoid));
	HeapTuple	ind = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(indexoid));
	Oid			heapoid = index->rd_index->indrelid;
	Datum		values[Max(Natts_pg_class, Natts_pg_index)] = {0};
	bool		nulls[Max(Natts_pg_class, Natts_pg_index)] = {0};
	bool		changes[Max(Natts_pg_class, Natts_pg_index)] = {0};
	oidvector  *classes;
	Datum		d;
	bool		isnull;

	art_remade(index, indexoid, c->to);
	index_close(index, NoLock);
	d = SysCacheGetAttr(INDEXRELID, ind, Anum_pg_index_indclass, &isnull);
	classes = (oidvector *) DatumGetPointer(datumCopy(d, false, -1));
	for (int i = 0; i < classes->dim1; i++)
		classes->values[i] = art_same_opclass(classes->values[i], c->to);
	values[Anum_pg_index_indclass - 1] = PointerGetDatum(classes);
	changes[Anum_pg_index_indclass - 1] = true;
	ind = heap_modify_tuple(ind, RelationGetDescr(pg_index), values, nulls, changes);
	CatalogTupleUpdate(pg_index, &ind->t_self, ind);

	memset(changes, 0, sizeof(changes));
	values[Anum_pg_class_relam - 1] = ObjectIdGetDatum(c->to);
	changes[Anum_pg_class_relam - 1] = true;
	d = SysCacheGetAttr(RELOID, rel, Anum_pg_class_reloptions, &isnull);
	if (!isnull)
	{
		d = art_fitting_options(d, c->to);
		values[Anum_pg_class_reloptions - 1] = d;
		nulls[Anum_pg_class_reloptions - 1] = d == (Datum) 0;
		changes[Anum_pg_class_reloptions - 1] = true;
	}
	rel = heap_modify_tuple(rel, RelationGetDescr(pg_class), values, nulls, changes);
	CatalogTupleUpdate(pg_class, &rel->t_self, rel);

	table_close(pg_index, RowExclusiveLock);
	table_close(pg_class, RowExclusiveLock);
	CacheInvalidateRelcacheByRelid(heapoid);
}

/*
 * Keep the relation, which is locked, from what ShareUpdateExclusiveLock keeps away, over the
 * steps.  Returns the locks with this one.
 *
 * Locks: ShareUpdateExclusiveLock on the relation, for the session.
 */
static List *
lock_for_session(List *locks, Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	LockRelId  *lock = palloc(sizeof(LockRelId));

	*lock = rel->rd_lockInfo.lockRelId;
	relation_close(rel, NoLock);
	LockRelationIdForSession(lock, ShareUpdateExclusiveLock);
	return lappend(locks, lock);
}

/*
 * Convert a partitioned index: all parts that are not yet of the other access
 * method, and then the partitioned ones.  No part comes or goes meanwhile.
 *
 * Locks: "lockmode" on all tables of the hierarchy, parents first, and
 * ShareUpdateExclusiveLock on the indexes.  Where steps commit,
 * ShareUpdateExclusiveLock for the session on each partitioned table and its
 * index.  So no partition comes or goes between two steps, and ALTER INDEX
 * attaches none.
 */
static bool
convert_partitioned(Conversion *c, Oid rootoid, bool missing_ok)
{
	List	   *locks = NIL;
	List	   *plain = NIL;
	List	   *partitioned = NIL;
	Found		found;
	ListCell   *lc;
	LOCKMODE	lockmode = c->concurrently ? ShareUpdateExclusiveLock : AccessExclusiveLock;

	conversion_step_begin(c);
	if (!find_to_convert(c, rootoid, lockmode, missing_ok, false, &found))
	{
		conversion_step_end(c);
		return false;
	}
	/* the tables, parents first as ever; then their indexes */
	(void) find_all_inheritors(found.heapoid, lockmode, NULL);
	LockRelationOid(rootoid, ShareUpdateExclusiveLock);
	foreach(lc, find_all_inheritors(rootoid, ShareUpdateExclusiveLock, NULL))
	{
		Oid			heapoid = IndexGetRelation(lfirst_oid(lc), false);

		check_owner(heapoid, lfirst_oid(lc));
		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_PARTITIONED_INDEX)
		{
			plain = lappend_oid(plain, lfirst_oid(lc));
			continue;
		}
		partitioned = lappend_oid(partitioned, lfirst_oid(lc));
		if (c->commits)
			locks = lock_for_session(lock_for_session(locks, heapoid), lfirst_oid(lc));
	}
	conversion_step_end(c);

	foreach(lc, plain)
		(void) convert_plain(c, lfirst_oid(lc), true, true);

	conversion_step_begin(c);
	foreach(lc, partitioned)
	{
		if (find_to_convert(c, lfirst_oid(lc), ShareUpdateExclusiveLock, true, true, &found))
			retag(c, lfirst_oid(lc));
	}
	conversion_step_end(c);
	c->name = NULL;
	foreach(lc, locks)
		UnlockRelationIdForSession(lfirst(lc), ShareUpdateExclusiveLock);
	return true;
}

/*
 * Convert one index of either kind.  False: there was nothing to do.
 */
static bool
convert(Conversion *c, Oid indexoid, bool missing_ok)
{
	char		relkind;

	if (c->commits)
		StartTransactionCommand();
	relkind = get_rel_relkind(indexoid);
	if (c->commits)
		CommitTransactionCommand();
	return relkind == RELKIND_PARTITIONED_INDEX ?
		convert_partitioned(c, indexoid, missing_ok) :
		convert_plain(c, indexoid, missing_ok, false);
}

/* ---- a database ---- */

/*
 * The art indexes of this database that the user may convert; *others counts
 * those that belong to others, or to their temporary tables.
 *
 * Locks: AccessShareLock on pg_class, for the scan.
 */
static List *
all_indexes(Conversion *c, int *others)
{
	Relation	pg_class = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(pg_class, InvalidOid, false, NULL, 0, NULL);
	List	   *all = NIL;
	HeapTuple	tup;

	*others = 0;
	while (HeapTupleIsValid(tup = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tup);
		HeapTuple	ind;
		bool		valid;

		if (form->relam != c->from || form->relispartition ||
			(form->relkind != RELKIND_INDEX && form->relkind != RELKIND_PARTITIONED_INDEX))
			continue;
		if (!ART_OWNS_TABLE(form->oid) ||
			(form->relpersistence == RELPERSISTENCE_TEMP &&
			 !isTempOrTempToastNamespace(form->relnamespace)))
		{
			(*others)++;
			continue;
		}
		ind = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(form->oid));
		if (!HeapTupleIsValid(ind))
			continue;
		valid = form->relkind == RELKIND_PARTITIONED_INDEX ||
			((Form_pg_index) GETSTRUCT(ind))->indisvalid;
		ReleaseSysCache(ind);
		if (valid)
			all = lappend_oid(all, form->oid);
		else
			ereport(WARNING,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("index \"%s\" is not valid and keeps its access method",
							NameStr(form->relname)),
					 errhint("\"DROP INDEX %s\" removes it, \"CALL %s(%s)\" converts it to btree.",
							 art_sql_name(form->oid), procedure(c),
							 quote_literal_cstr(art_sql_name(form->oid)))));
	}
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	list_sort(all, list_oid_cmp);
	return all;
}

/*
 * Convert one of many.  An index may be impossible to convert: its keys are
 * too long, or its lock was not to be had.  Where each has a transaction of
 * its own, the others are converted all the same.
 */
static bool
convert_or_warn(Conversion *c, Oid indexoid, const char *name)
{
	volatile bool done = false;

	c->unfinished = NULL;
	PG_TRY();
	{
		done = convert(c, indexoid, true);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(c->cxt);
		edata = CopyErrorData();
		if (!c->commits || edata->sqlerrcode == ERRCODE_QUERY_CANCELED)
			PG_RE_THROW();
		FlushErrorState();
		AbortCurrentTransaction();
		MemoryContextSwitchTo(c->cxt);
		c->name = NULL;
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("index \"%s\" was not rebuilt: %s", name, edata->message),
				 edata->detail == NULL ? 0 : errdetail_internal("%s", edata->detail),
				 c->unfinished == NULL ? 0 :
				 errhint("\"DROP INDEX %s\" removes what is left of the attempt.",
						 c->unfinished)));
	}
	PG_END_TRY();
	return done;
}

/*
 * Convert every index that the user may convert, and say how many others there
 * are.
 */
static void
convert_all(Conversion *c)
{
	List	   *all;
	ListCell   *lc;
	int			others;

	conversion_step_begin(c);
	all = all_indexes(c, &others);
	conversion_step_end(c);
	foreach(lc, all)
	{
		char	   *name;

		if (c->commits)
			StartTransactionCommand();
		name = get_rel_name(lfirst_oid(lc));
		name = name == NULL ? NULL : MemoryContextStrdup(c->cxt, name);
		if (c->commits)
			CommitTransactionCommand();
		if (name != NULL && convert_or_warn(c, lfirst_oid(lc), name))
			ereport(NOTICE,
					(errmsg("index \"%s\" is of access method \"%s\" now", name, "btree")));
	}
	if (others > 0)
		ereport(NOTICE,
				(errmsg_plural("%d index of access method \"%s\" belongs to other users and keeps its access method",
							   "%d indexes of access method \"%s\" belong to other users and keep their access method",
							   others, others, ART_AM_NAME)));
}

/* ---- the procedures ---- */

/* See ddl.h. */
bool
art_call_commits(FunctionCallInfo fcinfo)
{
	CallContext *call = (CallContext *) fcinfo->context;

	/* a procedure of another language would not bear a commit of this kind */
	return call != NULL && IsA(call, CallContext) && !call->atomic &&
		!SPI_inside_nonatomic_context() && !(MyXactFlags & XACT_FLAGS_PIPELINING);
}

/*
 * Convert one index, or all of them (NULL).
 */
static void
run_conversion(FunctionCallInfo fcinfo, bool to_btree, const Oid *indexoid, bool concurrently)
{
	ErrorContextCallback which;
	Conversion	c = {0};
	Oid			amoid;

	PreventCommandIfReadOnly(to_btree ? "artidx_to_btree()" : "artidx_from_btree()");
	PreventCommandIfParallelMode(to_btree ? "artidx_to_btree()" : "artidx_from_btree()");
	PreventCommandDuringRecovery(to_btree ? "artidx_to_btree()" : "artidx_from_btree()");
	amoid = get_am_oid(ART_AM_NAME, false);
	c.from = to_btree ? amoid : BTREE_AM_OID;
	c.to = to_btree ? BTREE_AM_OID : amoid;

	c.commits = art_call_commits(fcinfo);
	c.concurrently = c.commits && concurrently;
	c.cxt = AllocSetContextCreate(c.commits ? PortalContext : CurrentMemoryContext,
								  "artidx conversion", ALLOCSET_SMALL_SIZES);
	which.callback = say_which;
	which.arg = &c;
	which.previous = error_context_stack;
	error_context_stack = &which;

	if (c.commits)
	{
		if (ActiveSnapshotSet())
			PopActiveSnapshot();
		CommitTransactionCommand();
	}
	if (indexoid != NULL)
		(void) convert(&c, *indexoid, false);
	else
		convert_all(&c);
	if (c.commits)
		StartTransactionCommand();

	error_context_stack = which.previous;
	MemoryContextSwitchTo(MemoryContextGetParent(c.cxt));
	MemoryContextDelete(c.cxt);
}

/*
 * Convert the index that the first argument names; the second says whether concurrently.
 */
static void
run_one(FunctionCallInfo fcinfo, bool to_btree)
{
	Oid			indexoid;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null",
						PG_ARGISNULL(0) ? "index" : "concurrently")));
	indexoid = PG_GETARG_OID(0);
	run_conversion(fcinfo, to_btree, &indexoid, PG_GETARG_BOOL(1));
}

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_to_btree);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_to_btree_all);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_from_btree);

/*
 * artidx_to_btree(index regclass, concurrently boolean)
 */
Datum
artidx_to_btree(PG_FUNCTION_ARGS)
{
	run_one(fcinfo, true);
	PG_RETURN_VOID();
}

/*
 * artidx_to_btree(): every art index of the database.
 */
Datum
artidx_to_btree_all(PG_FUNCTION_ARGS)
{
	run_conversion(fcinfo, true, NULL, true);
	PG_RETURN_VOID();
}

/*
 * artidx_from_btree(index regclass, concurrently boolean)
 */
Datum
artidx_from_btree(PG_FUNCTION_ARGS)
{
	run_one(fcinfo, false);
	PG_RETURN_VOID();
}
