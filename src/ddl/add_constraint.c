/*
 * add_constraint.c
 *	  ALTER TABLE ... ADD CONSTRAINT ... USING INDEX with an art index.
 *
 * Core would make the constraint, but its parser insists on a btree index.  So
 * art_attach() replaces such a command by the ones that the parser makes of
 * it.  One attaches an index; for a primary key SET NOT NULL comes before it.
 * Core finds anything else that is wrong with the index, since it looks for
 * that before it asks for the access method.
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/index.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "nodes/makefuncs.h"
#include "parser/parse_node.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "area/area.h"
#include "build/build.h"
#include "ddl/ddl.h"
#include "key/key.h"

/* The constraint of such a command, or NULL. */
static Constraint *
attached_constraint(AlterTableCmd *cmd)
{
	if (cmd->subtype == AT_AddConstraint && cmd->def != NULL &&
		IsA(cmd->def, Constraint) && ((Constraint *) cmd->def)->indexname != NULL)
		return (Constraint *) cmd->def;
	return NULL;
}

bool
art_attach_applies(Node *stmt)
{
	ListCell   *lc;

	if (!IsA(stmt, AlterTableStmt))
		return false;
	foreach(lc, ((AlterTableStmt *) stmt)->cmds)
	{
		if (attached_constraint(lfirst_node(AlterTableCmd, lc)) != NULL)
			return true;
	}
	return false;
}

/*
 * The index, open, if its access method is all that core would say of it.
 *
 * Locks: takes AccessShareLock on the index and keeps it to the end of the
 * transaction, refused or not.
 */
static Relation
attachable_index(Constraint *con, Oid relid, Oid amoid)
{
	Oid			indexoid = get_relname_relid(con->indexname, get_rel_namespace(relid));
	Relation	index;
	bool		suits;

	if (!OidIsValid(indexoid) || get_rel_relkind(indexoid) != RELKIND_INDEX)
		return NULL;
	index = index_open(indexoid, AccessShareLock);
	suits = index->rd_rel->relam == amoid &&
		!OidIsValid(get_index_constraint(indexoid)) &&
		index->rd_index->indrelid == relid &&
		index->rd_index->indisvalid && index->rd_index->indisunique &&
		art_index_is_plain(index) &&
		(index->rd_index->indimmediate || con->deferrable);
	if (!suits)
	{
		index_close(index, NoLock);
		return NULL;
	}
	return index;
}

/*
 * The rule of core's that the parser does not get to: the index is to be the
 * one that ADD CONSTRAINT would have made.
 */
static void
check_default_sorting(Relation index, Constraint *con, Oid relid,
					  const char *queryString)
{
	Datum		d;
	bool		isnull;
	oidvector  *indclass;

	d = SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
						Anum_pg_index_indclass, &isnull);
	Assert(!isnull);
	indclass = (oidvector *) DatumGetPointer(d);

	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		Oid			type;
		int32		typmod;
		Oid			collation;
		ParseState *pstate;

		get_atttypetypmodcoll(relid, index->rd_index->indkey.values[i],
							  &type, &typmod, &collation);
		if (indclass->values[i] == GetDefaultOpClass(type, index->rd_rel->relam) &&
			!OidIsValid(art_other_default(index->rd_opfamily[i], index->rd_opcintype[i], type)) &&
			collation == index->rd_indcollation[i] &&
			get_attoptions(RelationGetRelid(index), i + 1) == (Datum) 0 &&
			index->rd_indoption[i] == 0)
			continue;
		pstate = make_parsestate(NULL);
		pstate->p_sourcetext = queryString;
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" column number %d does not have default sorting behavior",
						con->indexname, i + 1),
				 errdetail("Cannot create a primary key or unique constraint using such an index."),
				 parser_errposition(pstate, con->location)));
	}
}

/* The commands that the parser makes of this one. */
static List *
attaching_commands(Relation index, Constraint *con, RangeVar *relation)
{
	List	   *cmds = NIL;
	IndexStmt  *stmt = makeNode(IndexStmt);
	AlterTableCmd *cmd;

	stmt->unique = true;
	stmt->primary = con->contype == CONSTR_PRIMARY;
	stmt->isconstraint = true;
	stmt->nulls_not_distinct = con->nulls_not_distinct;
	stmt->deferrable = con->deferrable;
	stmt->initdeferred = con->initdeferred;
	stmt->idxname = con->conname;
	stmt->relation = relation;
	stmt->accessMethod = pstrdup(ART_AM_NAME);
	stmt->indexOid = RelationGetRelid(index);
	stmt->transformed = true;

	for (int i = 0; i < index->rd_index->indnatts; i++)
	{
		char	   *column = get_attname(index->rd_index->indrelid,
										 index->rd_index->indkey.values[i], false);
		IndexElem  *elem = makeNode(IndexElem);

		elem->name = column;
		if (i >= index->rd_index->indnkeyatts)
		{
			stmt->indexIncludingParams = lappend(stmt->indexIncludingParams, elem);
			continue;
		}
		stmt->indexParams = lappend(stmt->indexParams, elem);
		if (stmt->primary)
		{
			cmd = makeNode(AlterTableCmd);
			cmd->subtype = AT_SetNotNull;
			cmd->name = column;
			cmds = lappend(cmds, cmd);
		}
	}
	cmd = makeNode(AlterTableCmd);
	cmd->subtype = AT_AddIndexConstraint;
	cmd->def = (Node *) stmt;
	return lappend(cmds, cmd);
}

/*
 * Replace such commands for art indexes in the statement, which is ours to
 * change.  A statement that alters a type makes the indexes of the column
 * anew, and what is known of them before is of no use.  Then the commands are
 * taken out, and a statement with them is returned.  The caller calls this
 * again for that one when the first is done.
 *
 * Locks: takes the table's lock at the level of the ALTER, as core would, and
 * keeps it; each index as in attachable_index().
 */
AlterTableStmt *
art_attach(AlterTableStmt *stmt, const char *queryString)
{
	Oid			amoid = get_am_oid(ART_AM_NAME, true);
	Oid			relid;
	bool		alters_type = false;
	List	   *cmds = NIL;
	List	   *later = NIL;
	AlterTableStmt *second;
	ListCell   *lc;

	if (!OidIsValid(amoid))
		return NULL;
	relid = AlterTableLookupRelation(stmt, AlterTableGetLockLevel(stmt->cmds));
	if (!OidIsValid(relid))
		return NULL;
	foreach(lc, stmt->cmds)
	{
		if (ART_REMAKES_INDEXES(lfirst_node(AlterTableCmd, lc)->subtype))
			alters_type = true;
	}

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		Constraint *con = attached_constraint(cmd);
		Relation	index = con == NULL ? NULL : attachable_index(con, relid, amoid);

		if (index == NULL)
			cmds = lappend(cmds, cmd);
		else if (alters_type)
			later = lappend(later, cmd);
		else
		{
			Relation	heap = table_open(relid, NoLock);

			check_default_sorting(index, con, relid, queryString);
			art_check_rows_btree_limit(heap, index);
			table_close(heap, NoLock);
			cmds = list_concat(cmds, attaching_commands(index, con, stmt->relation));
		}
		if (index != NULL)
			index_close(index, NoLock);
	}
	stmt->cmds = cmds;
	if (later == NIL)
		return NULL;
	second = makeNode(AlterTableStmt);
	second->relation = copyObject(stmt->relation);
	second->cmds = later;
	second->objtype = stmt->objtype;
	return second;
}
