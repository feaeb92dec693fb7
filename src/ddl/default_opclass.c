/*
 * default_opclass.c
 *	  A column gets the operator class that btree would give it.
 *
 * Core looks for the default operator class of the access method.  Where the type has
 * none it takes that of a type to which it can be coerced without a change.  For citext
 * that is text's, which tells 'a' from 'A'.  So before a statement makes an index, btree's
 * default for each of its columns gets its mirror (mirror_opclasses.c).  It gets that even where
 * a class is named.  So a named one is never the default of its column, and a dump, a clone
 * for a partition and ALTER TYPE write it out.
 *
 * CREATE INDEX and the constraints of CREATE TABLE come by as an IndexStmt, also those of
 * LIKE.  ALTER TABLE keeps its own to itself.  The index of a partition has the classes of
 * its parent.  Two cases are not seen here: an expression that ALTER TABLE adds with its columns,
 * and ALTER TYPE where the library is not preloaded.  There ambuild refuses a wrong class
 * (art_refuse_default in key/opclass_rules.c).  Without the library ALTER TYPE may also keep an index
 * and not build it.  Its users are told, once the library is preloaded (am/index_facts.c).
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "access/relation.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "parser/parse_type.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "area/area.h"
#include "ddl/ddl.h"
#include "key/key.h"

/*
 * A column of the type may get a class by default.  One that a superuser has made for
 * the very type stays.
 */
static void
provide_default(Oid type, Oid am)
{
	Oid			theirs = OidIsValid(type) ? GetDefaultOpClass(type, BTREE_AM_OID) : InvalidOid;
	Oid			ours = OidIsValid(theirs) ? GetDefaultOpClass(type, am) : InvalidOid;

	if (OidIsValid(theirs) &&
		(!OidIsValid(ours) ||
		 OidIsValid(art_other_default(get_opclass_family(ours), get_opclass_input_type(ours), type))))
		(void) art_mirror(theirs, am, false);
}

/* A class is named: art has it if btree has. */
static void
provide_named(List *name, Oid am)
{
	Oid			theirs;

	if (name == NIL || OidIsValid(get_opclass_oid(am, name, true)))
		return;
	theirs = get_opclass_oid(BTREE_AM_OID, name, true);
	if (OidIsValid(theirs))
		(void) art_mirror(theirs, am, false);
}

/*
 * CREATE INDEX, or a constraint of CREATE TABLE.
 *
 * Locks: ShareLock on the table (CONCURRENTLY: ShareUpdateExclusiveLock), as core would
 * take it.
 */
static void
provide_for_index(IndexStmt *stmt, Oid am, const char *queryString, bool toplevel)
{
	IndexStmt  *analyzed = NULL;
	Oid			relid;

	if (stmt->concurrent)
		PreventInTransactionBlock(toplevel, "CREATE INDEX CONCURRENTLY");
	relid = RangeVarGetRelidExtended(stmt->relation,
									 stmt->concurrent ? ShareUpdateExclusiveLock : ShareLock, 0,
									 RangeVarCallbackOwnsRelation, NULL);
	for (int i = 0; i < list_length(stmt->indexParams); i++)
	{
		Oid			collation;

		provide_default(art_index_column_type(stmt, i, relid, queryString, &analyzed, &collation), am);
		provide_named(list_nth_node(IndexElem, stmt->indexParams, i)->opclass, am);
	}
}

/* ---- ALTER TABLE ---- */

/*
 * A constraint to be added, whose index is of art.  The types of expressions are looked up where
 * the table keeps its shape.
 */
static void
provide_for_constraint(AlterTableStmt *stmt, Constraint *con, const char *column, Oid relid, Oid am,
					   const char *queryString, bool reshapes)
{
	IndexStmt  *index = makeNode(IndexStmt);
	IndexStmt  *analyzed = NULL;
	Oid			collation;
	ListCell   *lc;

	index->relation = stmt->relation;
	foreach(lc, con->exclusions)
		index->indexParams = lappend(index->indexParams, linitial(lfirst_node(List, lc)));
	for (int i = 0; i < list_length(index->indexParams); i++)
	{
		IndexElem  *elem = list_nth_node(IndexElem, index->indexParams, i);

		if (elem->name != NULL)
			provide_default(art_column_type_after(stmt, relid, elem->name), am);
		else if (!reshapes)
			provide_default(art_index_column_type(index, i, relid, queryString, &analyzed, &collation), am);
		provide_named(elem->opclass, am);
	}
	foreach(lc, con->keys)
		provide_default(art_column_type_after(stmt, relid, strVal(lfirst(lc))), am);
	if (column != NULL)
		provide_default(art_column_type_after(stmt, relid, column), am);
}

/*
 * Has the table an index of art, or one that inherits its columns?
 *
 * Locks: AccessShareLock on the tables and the indexes, given back.
 */
static bool
has_index(Oid relid, Oid am)
{
	bool		found = false;
	ListCell   *lc,
			   *i;

	if (!OidIsValid(relid))
		return false;
	foreach(lc, find_all_inheritors(relid, NoLock, NULL))
	{
		Relation	rel = try_relation_open(lfirst_oid(lc), AccessShareLock);

		if (rel == NULL)
			continue;
		foreach(i, RelationGetIndexList(rel))
		{
			Relation	index = try_relation_open(lfirst_oid(i), AccessShareLock);

			if (index == NULL)
				continue;
			found |= index->rd_rel->relam == am;
			relation_close(index, AccessShareLock);
		}
		relation_close(rel, AccessShareLock);
	}
	return found;
}

/* Is it a constraint whose index is of art? */
static bool
makes_art(Node *con)
{
	return IsA(con, Constraint) && ((Constraint *) con)->access_method != NULL &&
		strcmp(((Constraint *) con)->access_method, ART_AM_NAME) == 0;
}

/* The table, locked as the statement will lock it; InvalidOid if there is none. */
static Oid
lookup(AlterTableStmt *stmt, Oid *relid)
{
	if (!OidIsValid(*relid))
		*relid = AlterTableLookupRelation(stmt, AlterTableGetLockLevel(stmt->cmds));
	return *relid;
}

/*
 * ALTER TABLE, or ALTER TYPE of a row type, which makes indexes anew or adds them.
 *
 * Locks: the table's lock at the level of the ALTER, as core would take it.  Only if a column
 * gets another type, or a constraint of art is added.
 */
static void
provide_for_alter(AlterTableStmt *stmt, Oid am, const char *queryString)
{
	Oid			relid = InvalidOid;
	bool		reshapes = false;
	ListCell   *lc,
			   *c;

	foreach(lc, stmt->cmds)
	{
		AlterTableType cmd = lfirst_node(AlterTableCmd, lc)->subtype;

		reshapes |= cmd == AT_AddColumn || cmd == AT_AlterColumnType;
	}

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		ColumnDef  *def = cmd->def != NULL && IsA(cmd->def, ColumnDef) ? (ColumnDef *) cmd->def : NULL;
		List	   *cons = NIL;
		const char *column = NULL;

		if (cmd->subtype == AT_AddConstraint && cmd->def != NULL)
			cons = list_make1(cmd->def);
		else if (cmd->subtype == AT_AddColumn && def != NULL)
		{
			cons = def->constraints;
			column = def->colname;
		}
		else if (cmd->subtype == AT_AlterColumnType && def != NULL)
		{
			/* ALTER TYPE ... CASCADE reaches the tables of a row type */
			if (stmt->objtype == OBJECT_TYPE || has_index(lookup(stmt, &relid), am))
				provide_default(LookupTypeNameOid(NULL, def->typeName, true), am);
		}
		foreach(c, cons)
		{
			if (makes_art(lfirst(c)) && OidIsValid(lookup(stmt, &relid)))
				provide_for_constraint(stmt, lfirst_node(Constraint, c), column, relid, am,
									   queryString, reshapes);
		}
	}
}

void
art_provide_classes(Node *stmt, const char *queryString, bool toplevel)
{
	const IndexStmt *index = (const IndexStmt *) stmt;
	bool		makes = IsA(stmt, IndexStmt) && index->accessMethod != NULL &&
		strcmp(index->accessMethod, ART_AM_NAME) == 0 && index->relation != NULL &&
		!OidIsValid(index->indexOid);
	Oid			am = makes || IsA(stmt, AlterTableStmt) ? get_am_oid(ART_AM_NAME, true) : InvalidOid;

	if (!OidIsValid(am))
		return;
	if (makes)
		provide_for_index((IndexStmt *) stmt, am, queryString, toplevel);
	else
		provide_for_alter((AlterTableStmt *) stmt, am, queryString);
}
