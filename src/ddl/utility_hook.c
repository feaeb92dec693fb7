/*
 * utility_hook.c
 *	  Each statement as the server hands it over: our workers leave the database
 *	  of a command on a whole one, the end of a prepared transaction is noticed,
 *	  and statements are changed for art (replace_btree.c, remake_as_btree.c,
 *	  add_constraint.c, opfamily_copies.c, error_hints.c).
 *
 * DROP DATABASE, ALTER DATABASE RENAME and SET TABLESPACE, and CREATE DATABASE
 * with a template fail when another process is connected to that database.
 * Before such a command runs, the database is barred to our workers and those
 * in it are ended.  The bar stays until the command's transaction is over.
 * Only RENAME can run in a transaction block or a function, hence several
 * bars.
 *
 * src/workers/README.md: The launcher and its workers
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "tcop/dest.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "ddl/ddl.h"
#include "live/background.h"
#include "workers/workers.h"
#include "live/live.h"
#include "plan/plan.h"

static ProcessUtility_hook_type prev_process_utility = NULL;

/*
 * The command errs anyway unless the user may give it; then nobody's worker is
 * to be ended for it.
 */
static bool
may_create_database(Oid userid)
{
	HeapTuple	tup;
	bool		may = false;

	if (superuser_arg(userid))
		return true;
	tup = SearchSysCache1(AUTHOID, ObjectIdGetDatum(userid));
	if (HeapTupleIsValid(tup))
	{
		may = ((Form_pg_authid) GETSTRUCT(tup))->rolcreatedb;
		ReleaseSysCache(tup);
	}
	return may;
}

/* Is the database one to copy others from? */
static bool
is_template(Oid dboid)
{
	HeapTuple	tup = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(dboid));
	bool		template = false;

	if (HeapTupleIsValid(tup))
	{
		template = ((Form_pg_database) GETSTRUCT(tup))->datistemplate;
		ReleaseSysCache(tup);
	}
	return template;
}

/*
 * The database in which nobody else may be while the statement runs, or
 * InvalidOid.
 */
static Oid
lonely_database(Node *stmt)
{
	const char *name = NULL;
	bool		copied = false;
	Oid			dboid;
	ListCell   *lc;

	switch (nodeTag(stmt))
	{
		case T_DropdbStmt:
			name = ((DropdbStmt *) stmt)->dbname;
			break;

		case T_RenameStmt:
			if (((RenameStmt *) stmt)->renameType == OBJECT_DATABASE)
				name = ((RenameStmt *) stmt)->subname;
			break;

		case T_AlterDatabaseStmt:
			foreach(lc, ((AlterDatabaseStmt *) stmt)->options)
			{
				if (strcmp(lfirst_node(DefElem, lc)->defname, "tablespace") == 0)
					name = ((AlterDatabaseStmt *) stmt)->dbname;
			}
			break;

		case T_CreatedbStmt:
			name = "template1";
			copied = true;
			foreach(lc, ((CreatedbStmt *) stmt)->options)
			{
				DefElem    *def = lfirst_node(DefElem, lc);

				if (strcmp(def->defname, "template") == 0 && def->arg)
					name = defGetString(def);
			}
			break;

		default:
			break;
	}
	if (name == NULL)
		return InvalidOid;
	dboid = get_database_oid(name, true);
	if (!OidIsValid(dboid))
		return InvalidOid;
	if (copied && may_create_database(GetUserId()) && is_template(dboid))
		return dboid;
	return ART_DATABASE_OWNERCHECK(dboid, GetUserId()) ? dboid : InvalidOid;
}

/* A call of the hook, and what is to be done after its statement. */
typedef struct UtilityCall
{
	PlannedStmt *pstmt;
	const char *query;
	bool		readonly;		/* a cached plan owns the tree */
	ProcessUtilityContext context;
	ParamListInfo params;
	QueryEnvironment *env;
	DestReceiver *dest;
	QueryCompletion *qc;

	bool		unfit;			/* core will probably refuse it in words that do not tell why */
	ArtNewTable table;			/* whose keys have to be of btree */
	AlterTableStmt *second;		/* the part that waits for the rest */
	ArtFamilyChange *change;
} UtilityCall;

/* The next ProcessUtility hook, or core's own function. */
static void
next_process_utility(const UtilityCall *c)
{
	(prev_process_utility ? prev_process_utility : standard_ProcessUtility)
		(c->pstmt, c->query, c->readonly, c->context, c->params, c->env, c->dest, c->qc);
}

/* ---- the hook ---- */

/*
 * Not where the command is refused anyway: core's word for that comes before
 * any lock of ours.
 */
static bool
may_change_statement(void)
{
	return IsUnderPostmaster && IsTransactionState() && !XactReadOnly &&
		!RecoveryInProgress() && !IsInParallelMode();
}

/* Run the part of a statement that had to wait for the rest of it. */
static void
run_second(const UtilityCall *first)
{
	PlannedStmt *wrapper = makeNode(PlannedStmt);
	UtilityCall c = {
		.pstmt = wrapper,
		.query = first->query,
		.context = PROCESS_UTILITY_SUBCOMMAND,
		.dest = None_Receiver
	};

	CommandCounterIncrement();
	(void) art_attach(first->second, first->query);
	wrapper->commandType = CMD_UTILITY;
	wrapper->canSetTag = false;
	wrapper->utilityStmt = (Node *) first->second;
	wrapper->stmt_location = first->pstmt->stmt_location;
	wrapper->stmt_len = first->pstmt->stmt_len;
	next_process_utility(&c);
}

/*
 * Run the statement.  The keys of a table that it creates may have to be of
 * btree.  Core's error about an unfit statement gets our words.
 */
static void
next_guarded(const UtilityCall *c)
{
	MemoryContext caller = CurrentMemoryContext;
	ArtNewTable outer = art_new_table;

	if (c->table.keys != NULL || c->table.exclusions != NULL)
		art_new_table = c->table;
	PG_TRY();
	{
		next_process_utility(c);
	}
	PG_CATCH();
	{
		art_new_table = outer;
		art_explain(caller, c->pstmt->utilityStmt);
		PG_RE_THROW();
	}
	PG_END_TRY();
	art_new_table = outer;
}

/*
 * pg_dump for pg_upgrade locks what it dumps.  It does not say of what access
 * method a key is.  In the new cluster our empty file would be taken for a
 * btree index.  So no further than here.
 *
 * Locks: AccessShareLock on tables and indexes, to the end of the transaction.
 */
static void
check_upgraded_tables(LockStmt *stmt)
{
	Oid			amoid = get_am_oid(ART_AM_NAME, true);
	ListCell   *lc,
			   *i;

	if (!OidIsValid(amoid))
		return;
	foreach(lc, stmt->relations)
	{
		Oid			relid = RangeVarGetRelid(lfirst_node(RangeVar, lc), AccessShareLock, true);
		Relation	rel = OidIsValid(relid) ? try_relation_open(relid, NoLock) : NULL;

		if (rel == NULL)
			continue;
		foreach(i, RelationGetIndexList(rel))
		{
			Relation	index = index_open(lfirst_oid(i), AccessShareLock);

			if (index->rd_rel->relam == amoid && index->rd_index->indisunique &&
				OidIsValid(get_index_constraint(lfirst_oid(i))))
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("constraint \"%s\" of table \"%s\" has an index of access method \"%s\", which pg_upgrade takes for btree",
								RelationGetRelationName(index), RelationGetRelationName(rel), ART_AM_NAME),
						 errhint("\"CALL artidx_to_btree()\" in each database of the old cluster makes them btree.")));
			index_close(index, NoLock);
		}
		relation_close(rel, NoLock);
	}
}

/* Nobody but the statement's process may be in its database: our workers leave it. */
static void
leave_database(const UtilityCall *c, Node *stmt)
{
	Oid			lonely = InvalidOid;

	if (IsUnderPostmaster && IsTransactionState() &&
		(IsA(stmt, RenameStmt) ||
		 (c->context == PROCESS_UTILITY_TOPLEVEL && !IsTransactionBlock())))
		lonely = lonely_database(stmt);
	if (OidIsValid(lonely))
	{
		art_bar(lonely);
		art_end_workers(lonely);
	}
}

/*
 * Change the statement for art, and do what has to precede it.
 *
 * Locks: may take those of the statement on its table, to the end of the transaction.
 */
static void
before_statement(UtilityCall *c)
{
	Node	   *stmt = c->pstmt->utilityStmt;
	bool		toplevel = c->context == PROCESS_UTILITY_TOPLEVEL;
	bool		replaces = art_replace_applies(stmt);
	bool		attaches = art_attach_applies(stmt);

	if (replaces && IsA(stmt, CreateStmt))
	{
		c->table.keys = art_self_referenced((CreateStmt *) stmt);
		if (art_exclusions_say_using((CreateStmt *) stmt, c->query))
			c->table.exclusions = ((CreateStmt *) stmt)->relation->relname;
		replaces = false;
	}

	/* a tree that a cached plan owns is not ours to change */
	if ((replaces || attaches) && c->readonly)
	{
		c->pstmt = copyObject(c->pstmt);
		stmt = c->pstmt->utilityStmt;
		c->readonly = false;
	}
	if (replaces)
		art_replace(stmt, c->query, toplevel);
	if (IsA(stmt, CreateOpClassStmt))
		art_class_before((CreateOpClassStmt *) stmt);
	if (IsA(stmt, AlterTableStmt))
		c->unfit = !art_remake((AlterTableStmt *) stmt);
	else if (IsA(stmt, IndexStmt))
		art_remake_for_index((IndexStmt *) stmt);
	c->unfit |= art_check_statement(stmt);
	if (attaches)
		c->second = art_attach((AlterTableStmt *) stmt, c->query);
	c->change = art_family_before(stmt);
	art_rowtype_before(stmt);
	/* locks the table; what that locked comes first */
	art_provide_classes(stmt, c->query, toplevel);
}

/* Finish what before_statement() began. */
static void
after_statement(const UtilityCall *c)
{
	Node	   *stmt = c->pstmt->utilityStmt;

	if (c->second != NULL)
		run_second(c);
	if (may_change_statement())
	{
		art_check_subscriber(stmt);
		art_rowtype_after();
		if (IsA(stmt, CreateOpClassStmt))
			art_class_after((CreateOpClassStmt *) stmt);
	}
	if (c->change != NULL)
		art_family_after(c->change);
}

/* Runs a statement, and what the indexes need before and after it. */
static void
run_utility(UtilityCall *c)
{
	Node	   *stmt = c->pstmt->utilityStmt;
	TransactionStmt *t = IsA(stmt, TransactionStmt) ? (TransactionStmt *) stmt : NULL;
	bool		finishes = t != NULL && (t->kind == TRANS_STMT_COMMIT_PREPARED ||
										 t->kind == TRANS_STMT_ROLLBACK_PREPARED);
	uint64		gid = finishes ? art_prepared_hash(t->gid) : 0;

	if (t != NULL && t->kind == TRANS_STMT_PREPARE)
		art_prepared_begin(art_prepared_hash(t->gid));
	leave_database(c, stmt);

	if (IsBinaryUpgrade && IsA(stmt, LockStmt) && IsTransactionState())
		check_upgraded_tables((LockStmt *) stmt);

	if (may_change_statement())
	{
		if (art_drops_nothing(stmt))
			return;
		before_statement(c);
	}
	if (c->unfit || c->table.keys != NULL || c->table.exclusions != NULL)
		next_guarded(c);
	else
		next_process_utility(c);
	after_statement(c);

	/*
	 * The end of the prepared transaction decides now what it dropped or made,
	 * and no callback tells.  The database it belongs to is this one.
	 */
	if (finishes && art_prepared_over(gid))
		art_ask(MyDatabaseId, ART_JOB_SWEEP | ART_JOB_SCOUT, 0);
}

/*
 * ProcessUtility_hook.  Entries that wait are those of a statement in which this one
 * runs.  It may look at tables as no query does.  Of its own only COPY FROM lets
 * entries wait.
 *
 * Arguments: those of the hook.
 */
static void
art_process_utility(PlannedStmt *pstmt, const char *queryString,
					bool readOnlyTree, ProcessUtilityContext context,
					ParamListInfo params, QueryEnvironment *queryEnv,
					DestReceiver *dest, QueryCompletion *qc)
{
	bool		copies = IsA(pstmt->utilityStmt, CopyStmt) &&
		((CopyStmt *) pstmt->utilityStmt)->is_from;
	ArtRowChange outer = art_rowtype_begin();
	bool		was;
	UtilityCall c = {
		.pstmt = pstmt,
		.query = queryString,
		.readonly = readOnlyTree,
		.context = context,
		.params = params,
		.env = queryEnv,
		.dest = dest,
		.qc = qc
	};

	art_queue_flush(NoLock);
	art_keychecks_close();
	was = art_queue_for(copies);
	PG_TRY();
	{
		run_utility(&c);
		/* COPY has closed its indexes */
		art_queue_flush(RowExclusiveLock);
		art_keychecks_close();
	}
	PG_FINALLY();
	{
		art_rowtype_end(&outer);
		art_queue_for(was);
	}
	PG_END_TRY();
}

void
art_utility_install(void)
{
	prev_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = art_process_utility;
}
