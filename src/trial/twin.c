/*
 * twin.c
 *	  The twin: an art index with the columns of the btree index, that is never valid for
 *	  anybody but the trial.
 *
 * It is built as CREATE INDEX CONCURRENTLY builds, and DefineIndex makes it valid in the end.
 * That is taken back before it is committed.  So the planner of no other process has ever seen
 * it, and it is not in a dump.  It is not unique, whatever its original is, so that it
 * refuses no row of anybody.
 *
 * A trial whose process was killed leaves its twin.  The next one knows it by its comment.
 *
 * src/trial/README.md: The twin
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "area/area.h"
#include "ddl/ddl.h"
#include "trial/trial.h"

/* The comment of each twin begins so. */
#define TWIN_COMMENT	"artidx_trial: "

/* ---- the lock ---- */

/*
 * Of the advisory locks that users take, the fourth field is 1 or 2.
 */
static void
trial_tag(LOCKTAG *tag)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, 0, 0, 3);
}

/*
 * Locks: takes the trial's lock and keeps it, if it is free.
 */
bool
art_trial_lock(void)
{
	LOCKTAG		tag;

	trial_tag(&tag);
	return LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
}

/*
 * Locks: gives the trial's lock back.
 */
void
art_trial_unlock(void)
{
	LOCKTAG		tag;

	trial_tag(&tag);
	(void) LockRelease(&tag, ExclusiveLock, true);
}

/* ---- building ---- */

/*
 * Locks: ShareUpdateExclusiveLock on table and index for the session, given back at the end.
 */
void
art_twin_build(ArtTrial *t)
{
	Relation	heap;
	Relation	index;
	IndexStmt  *stmt;
	LockRelId	heaplock;
	LockRelId	indexlock;
	ObjectAddress new;
	bool		ispart;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(t->cxt);
	heap = table_open(t->heapoid, ShareUpdateExclusiveLock);
	if (!art_index_is_still(t->indexoid, t->heapoid, BTREE_AM_OID, get_rel_relispartition(t->indexoid)))
		art_refuse_changed(t->name);
	index = index_open(t->indexoid, ShareUpdateExclusiveLock);
	ispart = index->rd_rel->relispartition;
	stmt = art_remaking_statement(heap, index, t->amoid);
	if (stmt == NULL)
		art_refuse_changed(t->name);
	stmt->unique = false;
	stmt->concurrent = true;
	stmt->idxname = ChooseRelationName(RelationGetRelationName(index), NULL, "trial",
									   RelationGetNamespace(heap), false);
	stmt->idxcomment = psprintf(TWIN_COMMENT "a twin of %s for as long as it is tried; DROP INDEX CONCURRENTLY does no harm",
								t->index);
	heaplock = heap->rd_lockInfo.lockRelId;
	indexlock = index->rd_lockInfo.lockRelId;
	index_close(index, NoLock);
	table_close(heap, NoLock);
	LockRelationIdForSession(&heaplock, ShareUpdateExclusiveLock);
	LockRelationIdForSession(&indexlock, ShareUpdateExclusiveLock);

	/* commits several times; what makes the index valid is not committed yet */
	new = art_define_index(t->heapoid, stmt, true);
	MemoryContextSwitchTo(t->cxt);
	PushActiveSnapshot(GetTransactionSnapshot());
	CommandCounterIncrement();
	if (!art_index_is_still(t->indexoid, t->heapoid, BTREE_AM_OID, ispart) ||
		!art_index_is_still(new.objectId, t->heapoid, t->amoid, false))
		art_refuse_changed(t->name);
	index_set_state_flags(new.objectId, INDEX_DROP_CLEAR_VALID);
	t->twinoid = new.objectId;
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(t->cxt);
	UnlockRelationIdForSession(&indexlock, ShareUpdateExclusiveLock);
	UnlockRelationIdForSession(&heaplock, ShareUpdateExclusiveLock);
}

/* ---- dropping ---- */

/*
 * Is it a twin?  Never a valid index, whatever its comment says.
 */
static bool
is_twin(Oid indexoid)
{
	HeapTuple	tup = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexoid));
	bool		valid = true;
	char	   *comment;

	if (HeapTupleIsValid(tup))
	{
		valid = ((Form_pg_index) GETSTRUCT(tup))->indisvalid;
		ReleaseSysCache(tup);
	}
	if (valid)
		return false;
	comment = GetComment(indexoid, RelationRelationId, 0);
	return comment != NULL && strncmp(comment, TWIN_COMMENT, strlen(TWIN_COMMENT)) == 0;
}

/*
 * All twins of the database, in the current memory context.
 *
 * Locks: AccessShareLock on pg_class, for the scan.
 */
static List *
twins(void)
{
	Oid			amoid = get_am_oid(ART_AM_NAME, true);
	Relation	pg_class = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(pg_class, InvalidOid, false, NULL, 0, NULL);
	List	   *all = NIL;
	HeapTuple	tup;

	while (HeapTupleIsValid(tup = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tup);

		if (form->relkind == RELKIND_INDEX && form->relam == amoid && OidIsValid(amoid) &&
			is_twin(form->oid))
			all = lappend_oid(all, form->oid);
	}
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	return all;
}

/*
 * Drop one, unless it has gone or is another's.
 *
 * Locks: ShareUpdateExclusiveLock on the table for the session, given back at the end.
 */
static void
drop_twin(Oid twinoid)
{
	MemoryContext cxt = CurrentMemoryContext;
	LockRelId	heaplock = {InvalidOid, MyDatabaseId};

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	heaplock.relId = IndexGetRelation(twinoid, true);
	if (OidIsValid(heaplock.relId) && ART_OWNS_TABLE(heaplock.relId))
	{
		LockRelationIdForSession(&heaplock, ShareUpdateExclusiveLock);
		AcceptInvalidationMessages();
		if (IndexGetRelation(twinoid, true) != heaplock.relId || !is_twin(twinoid))
		{
			UnlockRelationIdForSession(&heaplock, ShareUpdateExclusiveLock);
			heaplock.relId = InvalidOid;
		}
	}
	else
		heaplock.relId = InvalidOid;
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
	if (!OidIsValid(heaplock.relId))
		return;
	art_drop_beside_writers(heaplock.relId, twinoid);
	UnlockRelationIdForSession(&heaplock, ShareUpdateExclusiveLock);
}

void
art_twins_drop(void)
{
	MemoryContext cxt = CurrentMemoryContext;
	List	   *all;
	ListCell   *lc;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(cxt);
	all = twins();
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
	foreach(lc, all)
		drop_twin(lfirst_oid(lc));
}

/*
 * Locks: tries the trial's lock, and gives it back.
 */
bool
art_trial_leftovers(void)
{
	if (!art_trial_lock())
		return false;
	PG_TRY();
	{
		art_twins_drop();
	}
	PG_FINALLY();
	{
		art_trial_unlock();
	}
	PG_END_TRY();
	return true;
}
