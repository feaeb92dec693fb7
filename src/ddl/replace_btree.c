/*
 * replace_btree.c
 *	  artidx.replace_btree: art where btree is meant.
 *
 * The statement is changed before core sees it, and only when nothing could be
 * refused for that reason.  This file first looks up what art or core does not
 * allow, under the very lock that the command will take.  An index that is not
 * allowed stays btree without a word.  So does one whose statement says USING
 * btree, and so does the copy of a btree index (LIKE): they are what was asked for.
 *
 * CREATE INDEX, and the constraints of CREATE TABLE, come by as an IndexStmt on
 * a table that is there already.  ALTER TABLE keeps those of its constraints to
 * itself, so they are found in its commands.
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/dependency.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_type.h"
#include "parser/parse_utilcmd.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "area/area.h"
#include "ddl/ddl.h"
#include "plan/plan.h"

typedef enum ReplaceMode
{
	REPLACE_OFF,
	REPLACE_CONSTRAINTS,		/* PRIMARY KEY and UNIQUE */
	REPLACE_INDEXES,
	REPLACE_ALL
} ReplaceMode;

static const struct config_enum_entry replace_values[] = {
	{"off", REPLACE_OFF, false},
	{"constraints", REPLACE_CONSTRAINTS, false},
	{"indexes", REPLACE_INDEXES, false},
	{"all", REPLACE_ALL, false},
	{NULL, 0, false}
};

static int	replace_btree = REPLACE_OFF;

ArtNewTable art_new_table = {NULL, NULL};

/*
 * The setting; from _PG_init, preloading.
 */
void
art_replace_init(void)
{
	DefineCustomEnumVariable("artidx.replace_btree",
							 "Makes new btree indexes of access method art.",
							 "\"constraints\": those of PRIMARY KEY and UNIQUE; \"indexes\": those of CREATE INDEX without USING; \"all\": both, and EXCLUDE. "
							 "Indexes that art does not support stay btree. Tools that look for \"btree\" in pg_am, such as the introspection of ORMs, do not see art indexes as ordinary ones.",
							 &replace_btree,
							 REPLACE_OFF,
							 replace_values,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);
}

/* Does CREATE INDEX put art in the place of btree in this session? */
bool
art_replacing_btree(void)
{
	return replace_btree >= REPLACE_INDEXES;
}

/*
 * The setting wants what this database has not.  DROP SCHEMA takes the extension
 * along, and nobody is told then.  So here, once in a session.
 */
static void
tell_of_no_extension(void)
{
	static bool told = false;

	if (told || replace_btree == REPLACE_OFF)
		return;
	told = true;
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("new indexes are of access method \"%s\", whatever \"%s\" says", "btree",
					"artidx.replace_btree"),
			 errdetail("Database \"%s\" does not have the extension \"%s\".",
					   get_database_name(MyDatabaseId), "artidx"),
			 errhint("Create the extension, or reset \"%s\" for this database.",
					 "artidx.replace_btree")));
}

/*
 * The access method, if this database has it and may get an index of it now.
 * An extension's own indexes stay as they are.
 */
static const IndexAmRoutine *
replacement(Oid *amoid)
{
	const IndexAmRoutine *am;

	if (!art_preloaded() || ART_OLD_SNAPSHOT_IN_USE() ||
		IsBinaryUpgrade || creating_extension)
		return NULL;
	*amoid = get_am_oid(ART_AM_NAME, true);
	if (!OidIsValid(*amoid))
	{
		tell_of_no_extension();
		return NULL;
	}
	am = GetIndexAmRoutineByAmId(*amoid, true);
	return am != NULL && (void *) am->ambuild == (void *) artbuild ? am : NULL;
}

/* ---- operator classes ---- */

/*
 * Core refuses these by their OIDs, even for a partitioned table; art only when
 * an index is filled.
 */
static bool
core_refuses_collation(Oid btopclass, Oid collation)
{
	return (btopclass == TEXT_BTREE_PATTERN_OPS_OID ||
			btopclass == VARCHAR_BTREE_PATTERN_OPS_OID ||
			btopclass == BPCHAR_BTREE_PATTERN_OPS_OID) &&
		OidIsValid(collation) && !get_collation_isdeterministic(collation);
}

/*
 * May everybody name the operator class?  Core asks for USAGE of its schema now.
 * Later it asks whoever makes a partition or a copy (LIKE), or alters the type.
 */
static bool
everybody_reaches(Oid opclass)
{
	HeapTuple	tup = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	bool		reaches;

	if (!HeapTupleIsValid(tup))
		return false;
	reaches = ART_NAMESPACE_ACLCHECK(((Form_pg_opclass) GETSTRUCT(tup))->opcnamespace,
									 ACL_ID_PUBLIC, ACL_USAGE) == ACLCHECK_OK;
	ReleaseSysCache(tup);
	return reaches;
}

/*
 * May a column of the type and collation, with an operator class of btree named
 * or none, be one of the access method?  Then *name is what to write in its place:
 * nothing where the default will do, which is found whatever the search path is.
 */
static bool
translate_opclass(Oid type, Oid collation, List *opclass, Oid amoid, List **name)
{
	Oid			btopclass;
	Oid			twin;

	*name = NIL;
	if (opclass == NIL)
		btopclass = GetDefaultOpClass(type, BTREE_AM_OID);
	else
		btopclass = ResolveOpClass(opclass, type, "btree", BTREE_AM_OID);
	if (!OidIsValid(btopclass))
		return false;			/* core says so */
	if (core_refuses_collation(btopclass, collation))
		return false;
	twin = art_mirror(btopclass, amoid, true);
	if (!OidIsValid(twin))
		return false;
	if (GetDefaultOpClass(type, amoid) == twin)
		return true;
	if (!everybody_reaches(twin))
		return false;
	*name = art_opclass_name(twin);
	return true;
}

/* ---- tables ---- */

/*
 * Does art take indexes on the table, and would it on all its partitions?
 */
static bool
table_takes_art(Oid relid)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	bool		takes;

	if (!HeapTupleIsValid(tup))
		return false;
	form = (Form_pg_class) GETSTRUCT(tup);
	takes = !IsCatalogRelationOid(relid);
	switch (form->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_MATVIEW:
			takes = takes && form->relam == HEAP_TABLE_AM_OID;
			break;
		case RELKIND_PARTITIONED_TABLE:
			break;
		default:
			takes = false;
	}
	ReleaseSysCache(tup);
	return takes;
}

/*
 * Could each partition, to the last level, have an index of art?  Foreign
 * tables do not count.
 *
 * Locks: takes "lockmode" on all of them, to the end of the transaction.
 */
static bool
partitions_take_art(Oid relid, LOCKMODE lockmode)
{
	List	   *all = find_all_inheritors(relid, lockmode, NULL);
	ListCell   *lc;

	foreach(lc, all)
	{
		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_FOREIGN_TABLE &&
			!table_takes_art(lfirst_oid(lc)))
			return false;
	}
	return true;
}

/*
 * Is an index of the parent, of btree, waiting for those of its partitions?
 * Then this one is probably to be attached to it.  No lock is taken on the
 * parent: whoever has one may be waiting for ours on the partition.
 *
 * Locks: AccessShareLock on pg_index, for the scan.
 */
static bool
parent_wants_btree(Oid relid, bool unique, int ncolumns)
{
	Oid			parent = get_partition_parent(relid, true);
	Relation	pg_index = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tup;
	bool		wants = false;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(parent));
	scan = systable_beginscan(pg_index, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (!wants && HeapTupleIsValid(tup = systable_getnext(scan)))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(tup);
		HeapTuple	rel;

		if (form->indisvalid || form->indisunique != unique ||
			form->indnatts != ncolumns)
			continue;
		rel = SearchSysCache1(RELOID, ObjectIdGetDatum(form->indexrelid));
		if (HeapTupleIsValid(rel))
		{
			wants = ((Form_pg_class) GETSTRUCT(rel))->relam == BTREE_AM_OID;
			ReleaseSysCache(rel);
		}
	}
	systable_endscan(scan);
	table_close(pg_index, AccessShareLock);
	return wants;
}

/*
 * Would core refuse to do something with an index of art, or refuse it
 * altogether?
 */
static bool
core_wants_btree(Oid relid, bool unique, int ncolumns)
{
	bool		partition = get_rel_relispartition(relid);

	if (unique && !CORE_KNOWS_EQUALITY)
	{
		char		relkind = get_rel_relkind(relid);

		/*
		 * A partition's is to fit its parent's, which is btree; by that of a
		 * materialized view it is refreshed concurrently.
		 */
		if (partition || relkind == RELKIND_PARTITIONED_TABLE ||
			relkind == RELKIND_MATVIEW)
			return true;
	}
	/* by it a subscriber finds rows */
	if (unique && SUBSCRIBER_WANTS_BTREE && art_table_subscribed(relid))
		return true;
	return partition && parent_wants_btree(relid, unique, ncolumns);
}

/* Storage parameters that art would not take stay with btree, error or not. */
static bool
options_suit(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (def->defnamespace != NULL || !art_option_known(def->defname))
			return false;
	}
	return true;
}

const char *
art_why_not(Relation heap, Relation index, LOCKMODE lockmode)
{
	Oid			relid = RelationGetRelid(heap);

	if (!table_takes_art(relid) ||
		(heap->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
		 !partitions_take_art(relid, lockmode)))
		return "The table, or a partition of it, is not one that art indexes.";
	if (ART_OLD_SNAPSHOT_IN_USE())
		return "\"old_snapshot_threshold\" is set.";
	if (!CORE_KNOWS_EQUALITY && get_index_ref_constraints(RelationGetRelid(index)) != NIL)
		return "A foreign key references it, which until PostgreSQL 18 takes btree.";
	if (!CORE_KNOWS_EQUALITY && index->rd_index->indisunique &&
		heap->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return "It is a unique index of a partitioned table, which until PostgreSQL 18 is of btree.";
	if (SUBSCRIBER_WANTS_BTREE && art_table_subscribed(relid) &&
		(index->rd_index->indisprimary || index->rd_index->indisreplident))
		return "A subscription writes the table, and by this index finds its rows, which on PostgreSQL 17 takes btree.";
	return NULL;
}

void
art_check_replaceable(Relation heap, Relation index)
{
	const char *why = art_why_not(heap, index, AccessShareLock);

	if (why != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" cannot be of access method \"%s\"",
						RelationGetRelationName(index), ART_AM_NAME),
				 errdetail("%s", why)));
}

/*
 * Nobody who has said what he wants need be told for each table; as core does
 * not tell of the indexes that constraints make.
 */
static void
tell_access_method(const char *relname, bool primary)
{
	ereport(DEBUG1,
			(errmsg_internal("%s of table \"%s\" will be an index of access method \"%s\"",
							 primary ? "primary key" : "unique constraint",
							 relname, ART_AM_NAME)));
}

/*
 * Has a constraint a storage parameter that only art knows?  So pg_dump writes one whose
 * index is of art, without the access method.
 */
static bool
parameters_of_art(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		if (!art_option_fits(lfirst_node(DefElem, lc)->defname, BTREE_AM_OID))
			return options_suit(options);
	}
	return false;
}

/*
 * A key that core wants of btree cannot keep such parameters: it would be refused, and a
 * restored table left without it.
 */
static void
leave_parameters(List **options, const char *relname)
{
	ListCell   *lc;

	foreach(lc, *options)
	{
		if (!art_option_fits(lfirst_node(DefElem, lc)->defname, BTREE_AM_OID))
			*options = foreach_delete_current(*options, lc);
	}
	ereport(WARNING,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("a key of table \"%s\" is of access method \"%s\", and its parameters for \"%s\" are left out",
					relname, "btree", ART_AM_NAME)));
}

/*
 * Is what the setting says true of this kind of index?
 */
static bool
replacement_wanted(bool isconstraint, bool exclusion, List *options)
{
	if (isconstraint && !exclusion && parameters_of_art(options))
		return true;
	if (!isconstraint)
		return replace_btree >= REPLACE_INDEXES;
	return replace_btree == REPLACE_ALL ||
		(replace_btree == REPLACE_CONSTRAINTS && !exclusion);
}

/* ---- CREATE INDEX, and the constraints of CREATE TABLE ---- */

Oid
art_index_column_type(IndexStmt *stmt, int i, Oid relid, const char *queryString,
					  IndexStmt **analyzed, Oid *collation)
{
	IndexElem  *elem = list_nth_node(IndexElem, stmt->indexParams, i);
	Oid			type = InvalidOid;
	Node	   *expr;

	*collation = InvalidOid;
	if (elem->name != NULL)
	{
		AttrNumber	att = get_attnum(relid, elem->name);
		int32		typmod;

		if (att > 0)
			get_atttypetypmodcoll(relid, att, &type, &typmod, collation);
		return type;
	}
	/* the type of an expression takes its analysis: that of a copy */
	if (*analyzed == NULL)
		*analyzed = transformIndexStmt(relid, copyObject(stmt), queryString);
	expr = list_nth_node(IndexElem, (*analyzed)->indexParams, i)->expr;
	*collation = exprCollation(expr);
	return exprType(expr);
}

/*
 * Does the statement ask for btree, or for the very index of another table (LIKE)?
 */
static bool
asks_for_btree(const IndexStmt *stmt, const char *queryString)
{
	const char *table = stmt->relation->relname;

	/* core has analyzed none but a copy */
	if (stmt->transformed)
		return true;
	if (!stmt->isconstraint)
		return art_index_says_using(stmt, queryString);
	return (art_new_table.keys != NULL && strcmp(art_new_table.keys, table) == 0) ||
		(stmt->excludeOpNames != NIL && art_new_table.exclusions != NULL &&
		 strcmp(art_new_table.exclusions, table) == 0);
}

/*
 * Make the statement one for art, if it can be.
 *
 * Locks: ShareLock on the table (CONCURRENTLY: ShareUpdateExclusiveLock), as
 * core would take it, and on its partitions.
 */
static void
replace_index(IndexStmt *stmt, const char *queryString, bool toplevel)
{
	const IndexAmRoutine *am;
	IndexStmt  *analyzed = NULL;
	LOCKMODE	lockmode;
	Oid			amoid;
	Oid			relid;
	List	   *names = NIL;
	ListCell   *lc,
			   *name;
	int			i = 0;

	if (stmt->accessMethod == NULL || strcmp(stmt->accessMethod, "btree") != 0 ||
		stmt->relation == NULL || OidIsValid(stmt->indexOid) ||
		!replacement_wanted(stmt->isconstraint, stmt->excludeOpNames != NIL, stmt->options) ||
		asks_for_btree(stmt, queryString))
		return;
	am = replacement(&amoid);
	if (am == NULL || (stmt->indexIncludingParams != NIL && !am->amcaninclude) ||
		!options_suit(stmt->options))
		return;

	/* as the command itself is going to look its table up */
	if (stmt->concurrent)
		PreventInTransactionBlock(toplevel, "CREATE INDEX CONCURRENTLY");
	lockmode = stmt->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	relid = RangeVarGetRelidExtended(stmt->relation, lockmode, 0,
									 RangeVarCallbackOwnsRelation, NULL);
	if (!table_takes_art(relid))
		return;
	if (core_wants_btree(relid, stmt->unique,
						 list_length(stmt->indexParams) +
						 list_length(stmt->indexIncludingParams)))
	{
		if (stmt->isconstraint && parameters_of_art(stmt->options))
			leave_parameters(&stmt->options, stmt->relation->relname);
		return;
	}
	if (stmt->relation->inh && get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE &&
		!partitions_take_art(relid, lockmode))
		return;

	foreach(lc, stmt->indexParams)
	{
		IndexElem  *elem = lfirst_node(IndexElem, lc);
		List	   *opclass;
		Oid			collation;
		Oid			type = art_index_column_type(stmt, i, relid, queryString, &analyzed, &collation);

		if (elem->collation != NIL)
			collation = get_collation_oid(elem->collation, true);
		if (!OidIsValid(type) ||
			!translate_opclass(type, collation, elem->opclass, amoid, &opclass))
			return;
		names = lappend(names, opclass);
		i++;
	}

	if (stmt->isconstraint)
		tell_access_method(stmt->relation->relname, stmt->primary);
	forboth(lc, stmt->indexParams, name, names)
		lfirst_node(IndexElem, lc)->opclass = (List *) lfirst(name);
	stmt->accessMethod = pstrdup(ART_AM_NAME);
}

/* ---- ALTER TABLE ---- */

/* A constraint that an index is made for; its columns by name. */
static bool
makes_index(Constraint *con)
{
	switch (con->contype)
	{
		case CONSTR_PRIMARY:
		case CONSTR_UNIQUE:
			return con->indexname == NULL && con->access_method == NULL &&
				replacement_wanted(true, false, con->options);
		case CONSTR_EXCLUSION:
			return con->access_method != NULL &&
				strcmp(con->access_method, "btree") == 0 && replacement_wanted(true, true, con->options);
		default:
			return false;
	}
}

/*
 * Every such constraint of the commands: those added, and those of columns
 * added, with the column's name in *columns or NULL.
 */
static List *
alter_table_constraints(AlterTableStmt *stmt, List **columns)
{
	List	   *found = NIL;
	ListCell   *lc,
			   *c;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		if (cmd->def == NULL)
			continue;
		if (cmd->subtype == AT_AddConstraint && IsA(cmd->def, Constraint) &&
			makes_index((Constraint *) cmd->def))
		{
			found = lappend(found, cmd->def);
			*columns = lappend(*columns, NULL);
		}
		else if (cmd->subtype == AT_AddColumn && IsA(cmd->def, ColumnDef))
		{
			ColumnDef  *def = (ColumnDef *) cmd->def;

			foreach(c, def->constraints)
			{
				if (!IsA(lfirst(c), Constraint) || !makes_index(lfirst(c)))
					continue;
				found = lappend(found, lfirst(c));
				*columns = lappend(*columns, def->colname);
			}
		}
	}
	return found;
}

/* The type that "serial" and its like stand for. */
static Oid
serial_type(TypeName *name)
{
	char	   *word;

	if (list_length(name->names) != 1 || name->pct_type)
		return InvalidOid;
	word = strVal(linitial(name->names));
	if (strcmp(word, "smallserial") == 0 || strcmp(word, "serial2") == 0)
		return INT2OID;
	if (strcmp(word, "serial") == 0 || strcmp(word, "serial4") == 0)
		return INT4OID;
	if (strcmp(word, "bigserial") == 0 || strcmp(word, "serial8") == 0)
		return INT8OID;
	return InvalidOid;
}

Oid
art_column_type_after(AlterTableStmt *stmt, Oid relid, const char *column)
{
	AttrNumber	att;
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		ColumnDef  *def = (ColumnDef *) cmd->def;
		const char *name;
		Oid			type;

		if (def == NULL || !IsA(def, ColumnDef))
			continue;
		if (cmd->subtype == AT_AddColumn)
			name = def->colname;
		else if (cmd->subtype == AT_AlterColumnType)
			name = cmd->name;
		else
			continue;
		if (strcmp(name, column) != 0 || def->typeName == NULL)
			continue;
		type = serial_type(def->typeName);
		if (!OidIsValid(type))
			type = LookupTypeNameOid(NULL, def->typeName, true);
		return type;
	}
	att = get_attnum(relid, column);
	return att > 0 ? get_atttype(relid, att) : InvalidOid;
}

/*
 * Let the constraint have an index of art, if it can.  Changes nothing else of
 * the statement.
 */
static void
replace_constraint(AlterTableStmt *stmt, const char *queryString, Constraint *con,
				   const char *column, Oid relid, Oid amoid, const IndexAmRoutine *am)
{
	List	   *names = NIL;
	List	   *opclass;
	ListCell   *lc,
			   *name;
	bool		exclusion = con->contype == CONSTR_EXCLUSION;
	int			ncolumns = column != NULL ? 1 :
		list_length(exclusion ? con->exclusions : con->keys) +
		list_length(con->including);

	if ((con->including != NIL && !am->amcaninclude) || !options_suit(con->options) ||
		(exclusion && art_exclusion_says_using(con, queryString)))
		return;
	if (core_wants_btree(relid, !exclusion, ncolumns))
	{
		if (!exclusion && parameters_of_art(con->options))
			leave_parameters(&con->options, stmt->relation->relname);
		return;
	}

	if (exclusion)
	{
		foreach(lc, con->exclusions)
		{
			IndexElem  *elem = linitial_node(IndexElem, lfirst_node(List, lc));
			Oid			type;

			/* of an expression the type is not known without the table's final shape */
			if (elem->name == NULL)
				return;
			type = art_column_type_after(stmt, relid, elem->name);
			if (!OidIsValid(type) ||
				!translate_opclass(type, InvalidOid, elem->opclass, amoid, &opclass))
				return;
			names = lappend(names, opclass);
		}
		forboth(lc, con->exclusions, name, names)
			linitial_node(IndexElem, lfirst_node(List, lc))->opclass =
			(List *) lfirst(name);
	}
	else
	{
		List	   *keys = column != NULL ? list_make1(makeString(pstrdup(column))) : con->keys;

		foreach(lc, keys)
		{
			Oid			type = art_column_type_after(stmt, relid, strVal(lfirst(lc)));

			/* there is no place for an operator class that is not the default */
			if (!OidIsValid(type) ||
				!translate_opclass(type, InvalidOid, NIL, amoid, &opclass) || opclass != NIL)
				return;
		}
		tell_access_method(stmt->relation->relname, con->contype == CONSTR_PRIMARY);
	}
	con->access_method = pstrdup(ART_AM_NAME);
}

/*
 * Do that to all constraints that ALTER TABLE adds with an index.
 *
 * Locks: the table's lock at the level of the ALTER, as core would take it;
 * AccessShareLock on its partitions.
 */
static void
replace_constraints(AlterTableStmt *stmt, const char *queryString)
{
	List	   *columns = NIL;
	List	   *constraints = alter_table_constraints(stmt, &columns);
	const IndexAmRoutine *am;
	Oid			amoid;
	Oid			relid;
	ListCell   *lc,
			   *column;

	if (constraints == NIL || art_references_itself(stmt))
		return;
	am = replacement(&amoid);
	if (am == NULL)
		return;
	relid = AlterTableLookupRelation(stmt, AlterTableGetLockLevel(stmt->cmds));
	if (!OidIsValid(relid) || !table_takes_art(relid) ||
		(stmt->relation->inh && get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE &&
		 !partitions_take_art(relid, AccessShareLock)))
		return;
	forboth(lc, constraints, column, columns)
		replace_constraint(stmt, queryString, lfirst_node(Constraint, lc),
						   (const char *) lfirst(column), relid, amoid, am);
}

/* ---- the statement ---- */

bool
art_replace_applies(Node *stmt)
{
	const IndexStmt *index = (const IndexStmt *) stmt;
	List	   *columns = NIL;

	if (IsA(stmt, IndexStmt))
		return replacement_wanted(index->isconstraint, index->excludeOpNames != NIL, index->options);
	if (IsA(stmt, AlterTableStmt))
		return alter_table_constraints((AlterTableStmt *) stmt, &columns) != NIL;
	return IsA(stmt, CreateStmt);
}

void
art_replace(Node *stmt, const char *queryString, bool toplevel)
{
	if (IsA(stmt, IndexStmt))
		replace_index((IndexStmt *) stmt, queryString, toplevel);
	else if (IsA(stmt, AlterTableStmt))
		replace_constraints((AlterTableStmt *) stmt, queryString);
}
