/*
 * lifecycle.c
 *	  When a structure begins and ceases to be, with its (sub)transaction.
 *
 * A structure that a transaction makes goes when that aborts.  One that it
 * drops goes when it commits: the AccessExclusiveLock is still held then, so
 * nobody has the index open.  Work is kept by identity, not by pointer.
 * Dropping a live structure is never unsafe, only slow.  So PREPARE
 * TRANSACTION, whose end is decided elsewhere, drops at once whatever is in
 * doubt.  It leaves the entry for the sweeper (database_worker.c).
 *
 * src/live/README.md: Transactions
 * src/live/README.md: Kinds of index
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "build/build.h"
#include "live/background.h"
#include "live/live.h"

static object_access_hook_type prev_object_access_hook = NULL;

/*
 * Just before the commit, while catalogs can still be read: what options that
 * were altered ask for now.
 */
static void
look_at_options(void)
{
	for (ArtPending *p = art_pending; p; p = p->next)
	{
		if (p->kind != ART_PEND_ALTERED)
			continue;
		p->known = art_catalog_engine(p->indexoid, &p->want);
		art_apply_cap(p->indexoid);
	}
}

/*
 * The same of files.  The relation cache hears of what the last command did with the next
 * one.
 */
static void
look_at_files(void)
{
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()) && !IsInParallelMode())
		CommandCounterIncrement();
	art_swapped_look();
}

/*
 * Before PREPARE TRANSACTION: nobody uses, nor builds, an index whose options
 * a prepared transaction altered.  A command that locks less lets the
 * structure go on with the old ones.  After a restart of the server nothing
 * would tell it the new ones when that transaction is committed.
 *
 * Locks: takes AccessExclusiveLock on each such index; the prepared
 * transaction keeps it.
 */
static void
lock_altered(void)
{
	for (ArtPending *p = art_pending; p; p = p->next)
		if (p->kind == ART_PEND_ALTERED)
			LockRelationOid(p->indexoid, AccessExclusiveLock);
}

/*
 * The transaction commits: do to the directory what it left to the commit.
 * Must not raise an error.
 */
static void
run_at_commit(const ArtPending *p)
{
	switch (p->kind)
	{
		case ART_PEND_DROP:
			art_drop_locator(p->indexoid, &p->loc, true);
			break;
		case ART_PEND_DROP_INDEX:
		case ART_PEND_DROP_CONCURRENTLY:
			art_drop_index(p->db, p->indexoid, true);
			break;
		case ART_PEND_DROP_DATABASE:
			art_drop_database(p->db, true);
			art_database_gone(p->db);
			break;
		case ART_PEND_NEW_DATABASE:
			art_ask(p->db, ART_JOB_SWEEP | ART_JOB_SCOUT, 0);
			art_ask_databases();
			break;
		case ART_PEND_EMPTY:
			art_drop_index(p->db, p->indexoid, false);
			break;
		case ART_PEND_MOVED:
			/* none: its own went to another index, and it got none for that */
			if (!art_move_locator(p->indexoid, &p->loc, &p->moved_to, NULL))
				art_ask(p->db, ART_JOB_SCOUT, 0);
			art_launcher_wake();
			break;
		case ART_PEND_COPIED:
			art_entry_born(p->indexoid, &p->moved_to, XactLastCommitEnd);
			break;
		case ART_PEND_MOVED_DATABASE:
			art_move_database(p->db, p->loc.spc, p->moved_to.spc, XactLastCommitEnd);
			break;
		case ART_PEND_SWAPPED:
			break;				/* art_swapped_commit() was first */
		case ART_PEND_ALTERED:
			art_index_altered(p->indexoid, p->known ? &p->want : NULL);
			art_launcher_wake();
			break;
		case ART_PEND_CREATED:
		case ART_PEND_RESET:
		case ART_PEND_TAKEN:
			/* a transaction without a number writes no commit */
			if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
				art_entry_born(p->indexoid, &p->loc, XactLastCommitEnd);
			break;
	}
}

/*
 * The entry is again that of the index that had it.
 */
static void
give_entry_back(const ArtPending *p)
{
	XLogRecPtr	born = p->born_lsn;

	if (!art_take_entry(p->indexoid, p->taken_from, &p->loc, &born, InvalidOid, NULL))
		art_drop_locator(p->indexoid, &p->loc, true);
}

/*
 * The index has again the file that was copied.  A structure that has ceased to be READY
 * goes.
 */
static void
move_back(const ArtPending *p)
{
	XLogRecPtr	born = p->born_lsn;

	if (!art_move_locator(p->indexoid, &p->moved_to, &p->loc, &born))
		(void) art_move_locator(p->indexoid, &p->moved_to, &p->loc, NULL);
}

/*
 * The transaction aborts: take back from the directory what it made.  Must not
 * raise an error.
 */
static void
run_at_abort(const ArtPending *p)
{
	switch (p->kind)
	{
		case ART_PEND_CREATED:
			art_drop_locator(p->indexoid, &p->loc, true);
			break;
		case ART_PEND_RESET:
			art_drop_locator(p->indexoid, &p->loc, false);
			if (p->loc.backend == -1)
				art_request_absent(p->indexoid, &p->loc);
			break;
		case ART_PEND_TAKEN:
			give_entry_back(p);
			break;
		case ART_PEND_COPIED:
			move_back(p);
			break;
		case ART_PEND_ALTERED:
			art_index_altered(p->indexoid, NULL);
			/* we may have told the structure its new max_memory, and others open it no more */
			art_invalidate_heap(p->db, p->indexoid);
			break;
		case ART_PEND_DROP:
		case ART_PEND_DROP_INDEX:
		case ART_PEND_DROP_CONCURRENTLY:
		case ART_PEND_DROP_DATABASE:
		case ART_PEND_EMPTY:
		case ART_PEND_MOVED:
		case ART_PEND_SWAPPED:
		case ART_PEND_NEW_DATABASE:
		case ART_PEND_MOVED_DATABASE:
			break;
	}
}

/*
 * The end of a prepared transaction decides what becomes of these entries of
 * an index (loc NULL: all).  The sweeper finds out; until then the launcher
 * leaves them alone.
 *
 * Locks: takes the partition lock, exclusive.
 */
static void
in_doubt(Oid db, Oid indexoid, const ArtLocator *loc)
{
	ArtWalk		w = art_walk(LW_EXCLUSIVE, db, indexoid);

	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
		if (loc == NULL || art_same_locator(&e->loc, loc))
			e->doubt = true;
}

/*
 * Neither commit nor abort yet, and this process will not hear of either.  A
 * structure that is built lazily from the heap is right in both cases.  The
 * entry of an index that existed before may be cached by others when the
 * transaction is rolled back, so it stays.
 */
static void
run_at_prepare(const ArtPending *p)
{
	switch (p->kind)
	{
		case ART_PEND_CREATED:
			art_drop_locator(p->indexoid, &p->loc, true);
			break;
		case ART_PEND_TAKEN:
			/* whose drop is pending, too, and comes later in the list */
			give_entry_back(p);
			break;
		case ART_PEND_SWAPPED:
			art_drop_locator(p->taken_from, &p->loc, false);
			in_doubt(p->db, p->taken_from, &p->loc);
			break;
		case ART_PEND_COPIED:
		case ART_PEND_RESET:
		case ART_PEND_DROP:
		case ART_PEND_MOVED:
			if (p->kind == ART_PEND_COPIED)
				move_back(p);
			art_drop_locator(p->indexoid, &p->loc, false);
			in_doubt(p->db, p->indexoid, &p->loc);
			break;
		case ART_PEND_EMPTY:
		case ART_PEND_DROP_INDEX:
		case ART_PEND_DROP_CONCURRENTLY:
			art_drop_index(p->db, p->indexoid, false);
			in_doubt(p->db, p->indexoid, NULL);
			break;
		case ART_PEND_ALTERED:
			in_doubt(p->db, p->indexoid, NULL);
			break;
		case ART_PEND_DROP_DATABASE:
			art_drop_database(p->db, false);
			break;
		case ART_PEND_NEW_DATABASE:
		case ART_PEND_MOVED_DATABASE:
			break;				/* no transaction block has the latter */
	}
}

/*
 * DROP INDEX CONCURRENTLY tells us first and then commits twice, while others
 * still use the index.  Before the commit that matters it locks the index as
 * any other DROP does.
 */
static bool
not_yet(const ArtPending *p)
{
	LOCKTAG		tag;

	if (p->kind != ART_PEND_DROP_CONCURRENTLY)
		return false;
	SET_LOCKTAG_RELATION(tag, p->db, p->indexoid);
	return !ART_LOCK_HELD(&tag, AccessExclusiveLock);
}

/*
 * Do one of the above to everything that is pending.  A drop that waits for
 * the last of several commits stays pending.
 */
static void
run_all(void (*run) (const ArtPending *))
{
	ArtPending *todo = art_pending;

	art_pending = NULL;
	while (todo)
	{
		ArtPending *p = todo;

		todo = p->next;
		if (run == run_at_commit && not_yet(p))
		{
			p->next = art_pending;
			p->subid = TopSubTransactionId;
			art_pending = p;
			continue;
		}
		run(p);
		pfree(p);
	}
}

/*
 * The transaction ends, or is about to.  Only the PRE events may raise an
 * error.
 */
static void
art_xact_callback(XactEvent event, void *arg)
{
	art_ctx_xact_end();
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
			art_hazards_xact_end();
			art_rowtype_xact_end();
			art_swapped_commit();
			run_all(run_at_commit);
			art_noted_xact_end();
			art_bars_xact_end();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			art_inside_reset();
			art_hazards_xact_end();
			art_evaluate_reset();
			art_own_builds_abort(InvalidSubTransactionId, true);
			art_making_abort();
			art_rowtype_xact_end();
			run_all(run_at_abort);
			art_noted_xact_end();
			art_bars_xact_end();
			break;
		case XACT_EVENT_PREPARE:
			art_hazards_xact_end();
			if (art_pending)
				art_prepared_doubt();
			art_rowtype_xact_end();
			run_all(run_at_prepare);
			art_noted_xact_end();
			art_bars_xact_end();
			break;
		case XACT_EVENT_PRE_COMMIT:
			art_rowtype_after();
			look_at_files();
			look_at_options();
			break;
		case XACT_EVENT_PRE_PREPARE:
			art_rowtype_after();
			look_at_files();
			lock_altered();
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			break;
	}
}

/* A subtransaction ends: its pending work is its parent's, or is undone. */
static void
art_subxact_callback(SubXactEvent event, SubTransactionId mySubid,
					 SubTransactionId parentSubid, void *arg)
{
	ArtPending **link;

	switch (event)
	{
		case SUBXACT_EVENT_COMMIT_SUB:
			for (ArtPending *p = art_pending; p; p = p->next)
				if (p->subid == mySubid)
					p->subid = parentSubid;
			art_own_builds_reparent(mySubid, parentSubid);
			break;
		case SUBXACT_EVENT_ABORT_SUB:
			art_inside_reset();
			art_own_builds_abort(mySubid, false);
			for (link = &art_pending; *link;)
			{
				ArtPending *p = *link;

				if (p->subid != mySubid)
				{
					link = &p->next;
					continue;
				}
				*link = p->next;
				run_at_abort(p);
				pfree(p);
			}
			break;
		case SUBXACT_EVENT_START_SUB:
		case SUBXACT_EVENT_PRE_COMMIT_SUB:
			break;
	}
}

/*
 * Does the ALTER DATABASE that is under way change the tablespace?  The
 * catalog cache still has the old row.
 *
 * Locks: AccessShareLock on pg_database, for the look-up.
 */
static bool
database_moves(Oid db, Oid *from, Oid *to)
{
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tup;

	*from = *to = InvalidOid;
	tup = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(db));
	if (HeapTupleIsValid(tup))
	{
		*from = ((Form_pg_database) GETSTRUCT(tup))->dattablespace;
		ReleaseSysCache(tup);
	}

	rel = table_open(DatabaseRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_database_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(db));
	scan = systable_beginscan(rel, DatabaseOidIndexId, true, SnapshotSelf, 1, &key);
	tup = systable_getnext(scan);
	if (HeapTupleIsValid(tup))
		*to = ((Form_pg_database) GETSTRUCT(tup))->dattablespace;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return *from != *to;
}

/* The file that a relation had before this command. */
static bool
old_locator(Oid relid, ArtLocator *loc)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));

	if (!HeapTupleIsValid(tup))
		return false;
	art_form_locator((Form_pg_class) GETSTRUCT(tup), loc);
	ReleaseSysCache(tup);
	return true;
}

/*
 * An index was altered: its options, or its tablespace, upon which its file
 * was copied and nothing but this call tells.  The structure of the file that was copied
 * stays: the rows are where they were.  This transaction goes on with it.  internal: its
 * file may be another's (exchanged_files.c).
 *
 * Locks: takes the partition lock, exclusive.
 */
static void
index_altered(Oid indexoid, bool internal)
{
	ArtWalk		w = art_walk(LW_EXCLUSIVE, MyDatabaseId, indexoid);
	ArtLocator	entries[8];
	ArtLocator	had;
	ArtLocator	has;
	int			n = 0;

	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		/*
		 * This very transaction, too, may insert under its new max_memory.
		 * Its structure stays what it was until the commit.
		 */
		e->changed |= ART_CHANGED_CAP;
		if (n < (int) lengthof(entries))
			entries[n++] = e->loc;
	}

	/* without an entry this transaction may still make one */
	if (n == 0 && !art_is_ours(indexoid))
		return;
	if (n > 0 && (!old_locator(indexoid, &had) || !art_new_locator(indexoid, &has)))
		return;

	/* what the commit will tell the structure must not err */
	if (n > 0)
		(void) art_ctx();

	for (int i = 0; i < n; i++)
	{
		ArtPending *p;
		ArtPendingKind kind = ART_PEND_MOVED;

		if (internal || (entries[i].rel == has.rel && entries[i].spc == has.spc))
			continue;
		p = art_pending_prepare();
		p->moved_to = entries[i];
		p->moved_to.rel = has.rel;
		p->moved_to.spc = has.spc;
		if (entries[i].rel == had.rel && entries[i].spc == had.spc &&
			art_move_locator(indexoid, &entries[i], &p->moved_to, &p->born_lsn))
			kind = ART_PEND_COPIED;
		art_pending_add(p, kind, MyDatabaseId, indexoid, &entries[i],
						GetCurrentSubTransactionId());
	}
	art_pending_add(art_pending_prepare(), ART_PEND_ALTERED, MyDatabaseId,
					indexoid, NULL, GetCurrentSubTransactionId());
}

/*
 * A table was altered.  SET TABLESPACE gives it a new file, and its indexes keep theirs.
 * From now on their structures hold what is right only if the transaction commits.  After
 * a rollback, or a crash, the old file is back.  So they are reset then.
 *
 * Locks: takes ShareUpdateExclusiveLock on each index, to the end of the transaction.  So
 * nobody gives the index another file meanwhile, and the reset is of this one.  Takes the
 * partition lock of each index, exclusive.
 */
static void
table_altered(Oid tableoid)
{
	Relation	table;
	List	   *indexes;
	ListCell   *lc;
	ArtLocator	had;
	ArtLocator	has;
	int			backend;

	if (!old_locator(tableoid, &had) || !art_new_locator(tableoid, &has) || (had.rel == has.rel && had.spc == has.spc))
		return;
	table = RelationIdGetRelation(tableoid);
	if (!RelationIsValid(table))
		return;
	indexes = RelationGetIndexList(table);
	backend = ART_REL_BACKEND(table);
	RelationClose(table);

	foreach(lc, indexes)
	{
		Oid			indexoid = lfirst_oid(lc);
		LWLock	   *lock;
		ArtEntry   *e;
		ArtState	state;
		bool		was_ready = false;

		if (!art_is_ours(indexoid))
			continue;
		LockRelationOid(indexoid, ShareUpdateExclusiveLock);
		if (!art_new_locator(indexoid, &has))
			continue;
		(void) art_ctx();
		has.backend = backend;	/* the catalog does not know */
		art_pending_add(art_pending_prepare(), ART_PEND_RESET, MyDatabaseId, indexoid,
						&has, GetCurrentSubTransactionId());
		e = art_find_locked(indexoid, &has, LW_EXCLUSIVE, &lock);
		if (e != NULL)
		{
			e->born_lsn = InvalidXLogRecPtr;	/* run_at_commit gives it one */
			e->heap_rel = 0;
			/* the loader, which takes no lock on the table, would give it one sooner */
			state = art_entry_state(e, NULL);
			if (state == ART_BUILDING || state == ART_FOLLOWED)
				was_ready = art_entry_absent(e, ART_WHY_ALTERED, NULL);
		}
		art_unlock_changed(lock, was_ready, MyDatabaseId, tableoid);
	}
	list_free(indexes);
}

/*
 * A number for how the values of the columns are stored.  A structure's bytes depend on that,
 * and on the operator classes.
 */
static uint32
shape_of(Relation index)
{
	TupleDesc	desc = RelationGetDescr(index);
	uint32		shape = 0;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		shape = hash_combine(shape, murmurhash32((uint32) (uint16) att->attlen << 16 | (uint32) att->attbyval << 15 |
												 (uint32) get_typstorage(att->atttypid) << 8 |
												 (uint32) att->attalign));
	}
	return shape;
}

/*
 * A relation is dropped.
 *
 * Whether it is an art index only the directory is asked: no catalog access for the drop
 * of another one.
 *
 * Locks: takes the partition lock, shared.
 */
static void
relation_dropped(Oid relid, bool concurrently)
{
	bool		found = concurrently;	/* others may still make one */
	ArtPending *p;
	Relation	index;

	if (!found)
	{
		ArtWalk		w = art_walk(LW_SHARED, MyDatabaseId, relid);

		found = art_walk_next(&w) != NULL;
		art_walk_end(&w);
	}
	if (!found)
		return;
	/* it may have given its file away, and after this nobody could tell to whom */
	art_swapped_look();
	p = art_pending_prepare();
	index = concurrently ? NULL : RelationIdGetRelation(relid);
	if (RelationIsValid(index))
	{
		p->shape = shape_of(index);
		RelationClose(index);
	}
	art_pending_add(p, concurrently ? ART_PEND_DROP_CONCURRENTLY : ART_PEND_DROP_INDEX,
					MyDatabaseId, relid, NULL, GetCurrentSubTransactionId());
}

/*
 * A relation is created.  ALTER COLUMN TYPE drops the column's indexes and creates them
 * anew.  If it rewrites nothing, a new one gets the old one's file as it is, and gets its
 * structure here.  Nothing else makes an index with the file of one that is being dropped.
 */
static void
relation_created(Oid relid)
{
	Relation	rel;
	ArtLocator	loc;
	ArtPending *drop;

	for (drop = art_pending; drop != NULL; drop = drop->next)
		if (drop->kind == ART_PEND_DROP_INDEX && drop->db == MyDatabaseId)
			break;
	if (drop == NULL)
		return;

	rel = RelationIdGetRelation(relid);
	if (!RelationIsValid(rel))
		return;
	if (rel->rd_rel->relkind == RELKIND_INDEX)
	{
		uint32		shape = shape_of(rel);
		ArtPending *p = art_pending_prepare();

		art_locator(rel, &loc);
		for (; drop != NULL; drop = drop->next)
		{
			if (drop->kind != ART_PEND_DROP_INDEX || drop->db != MyDatabaseId || drop->shape != shape ||
				!art_take_entry(drop->indexoid, relid, &loc, &p->born_lsn, InvalidOid, NULL))
				continue;
			p->taken_from = drop->indexoid;
			art_pending_add(p, ART_PEND_TAKEN, MyDatabaseId, relid, &loc,
							GetCurrentSubTransactionId());
			p = NULL;
			break;
		}
		if (p != NULL)
			pfree(p);
	}
	RelationClose(rel);
}

/*
 * A relation is created, altered or dropped, also by cascade, a column altered, or a
 * database created, altered or dropped.
 *
 * Locks: see the functions for relations.  For a database that goes or moves it takes every partition
 * lock, exclusive, in turn.
 */
static void
art_object_access(ObjectAccessType access, Oid classId, Oid objectId,
				  int subId, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);

	if (classId == RelationRelationId && access == OAT_DROP && subId == 0)
		relation_dropped(objectId, arg != NULL &&
						 (((ObjectAccessDrop *) arg)->dropflags & PERFORM_DELETION_CONCURRENTLY) != 0);
	else if (classId == RelationRelationId && access == OAT_POST_CREATE && subId == 0)
		relation_created(objectId);
	else if (classId == RelationRelationId && access == OAT_POST_ALTER && subId == 0)
	{
		/* internal: an exchange of files, or a rewrite, which gives the indexes new files, too */
		bool		internal = ((ObjectAccessPostAlter *) arg)->is_internal;

		if (internal)
			art_note(objectId);
		index_altered(objectId, internal);
		if (!internal)
			table_altered(objectId);
	}
	else if (classId == RelationRelationId && subId > 0 &&
			 (access == OAT_POST_CREATE || access == OAT_DROP || access == OAT_POST_ALTER))
		art_rowtype_note(objectId, access == OAT_POST_CREATE ? ART_COLUMN_ADDED :
						 access == OAT_DROP ? ART_COLUMN_DROPPED : ART_COLUMN_ALTERED);
	else if (classId == DatabaseRelationId &&
			 (access == OAT_DROP || access == OAT_POST_CREATE ||
			  access == OAT_POST_ALTER))
	{
		/*
		 * The files of a database are moved before the transaction commits, and are
		 * the old ones' copies.  A new database may have an OID that was in use before.  DROP DATABASE tells of itself
		 * before it looks whether it may, so that waits for the commit.
		 */
		Oid			from;
		Oid			to;

		if (access == OAT_POST_CREATE)
			art_drop_database(objectId, false);
		else if (access == OAT_POST_ALTER && objectId != MyDatabaseId &&
				 database_moves(objectId, &from, &to))
		{
			ArtPending *p = art_pending_prepare();

			p->moved_to.spc = to;
			art_pending_add(p, ART_PEND_MOVED_DATABASE, objectId, InvalidOid,
							&(ArtLocator) {.spc = from}, GetCurrentSubTransactionId());
		}
		art_pending_add(art_pending_prepare(),
						access == OAT_DROP ? ART_PEND_DROP_DATABASE : ART_PEND_NEW_DATABASE,
						objectId, InvalidOid, NULL,
						GetCurrentSubTransactionId());
	}
}

void
art_lifecycle_init(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = art_object_access;
	art_swapped_init();
	RegisterXactCallback(art_xact_callback, NULL);
	RegisterSubXactCallback(art_subxact_callback, NULL);
}
