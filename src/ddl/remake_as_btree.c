/*
 * remake_as_btree.c
 *	  An art index becomes one of btree, where core will have nothing else.
 *
 * Until 18 a foreign key references btree keys only.  The unique indexes of a
 * partitioned table, and of its partitions, are of btree.  A user may have had
 * art put in the place of btree before (replace_btree.c).  He gets what he would
 * have had: the index is made anew as btree.  It takes over the name, the
 * constraint, the comment and all that depends on the old one, as REINDEX
 * CONCURRENTLY does.
 *
 * From 18 on both work with art.  But a partition's index must still be of the
 * same access method as its parent's, so there it can be the other way round.
 *
 * Only for the owner of the table, and under the strongest lock on it.  That
 * is taken when there is such an index, before core takes its weaker one.
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_utilcmd.h"
#include "storage/lmgr.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "area/shared_state.h"
#include "ddl/ddl.h"
#include "plan/plan.h"

/* ---- names ---- */

/* The name of a collation. */
static List *
collation_name(Oid collation)
{
	HeapTuple	tup = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	Form_pg_collation form;
	List	   *name;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	form = (Form_pg_collation) GETSTRUCT(tup);
	name = list_make2(makeString(get_namespace_name(form->collnamespace)),
					  makeString(pstrdup(NameStr(form->collname))));
	ReleaseSysCache(tup);
	return name;
}

/* ---- one index ---- */

/* See ddl.h. */
oidvector *
art_index_classes(Relation index)
{
	bool		isnull;
	Datum		d = SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
									Anum_pg_index_indclass, &isnull);

	Assert(!isnull);
	return (oidvector *) DatumGetPointer(d);
}

bool
art_option_fits(const char *name, Oid am)
{
	return am != BTREE_AM_OID ? art_option_known(name) :
		strcmp(name, "fillfactor") == 0 || strcmp(name, "deduplicate_items") == 0;
}

Datum
art_fitting_options(Datum reloptions, Oid am)
{
	List	   *options = untransformRelOptions(reloptions);
	ListCell   *lc;

	foreach(lc, options)
	{
		if (!art_option_fits(lfirst_node(DefElem, lc)->defname, am))
			options = foreach_delete_current(options, lc);
	}
	return transformRelOptions((Datum) 0, options, NULL, NULL, false, false);
}

IndexStmt *
art_remaking_statement(Relation heap, Relation index, Oid am)
{
	oidvector  *classes = art_index_classes(index);
	AttrMap    *map = make_attrmap(RelationGetDescr(heap)->natts);
	IndexStmt  *stmt;
	ListCell   *lc;
	int			i = 0;

	for (int a = 0; a < map->maplen; a++)
		map->attnums[a] = a + 1;
	stmt = generateClonedIndexStmt(NULL, index, map, NULL);
	free_attrmap(map);

	foreach(lc, stmt->indexParams)
	{
		IndexElem  *elem = lfirst_node(IndexElem, lc);
		Oid			twin = am != BTREE_AM_OID ? art_mirror(classes->values[i], am, true) :
			art_same_opclass(classes->values[i], am);
		Oid			collation = index->rd_indcollation[i];
		Oid			others;

		if (!OidIsValid(twin))
			return NULL;
		elem->opclass = art_opclass_name(twin);

		/* core leaves out the type's own one, and would take the column's in its place */
		others = elem->name == NULL ? exprCollation(elem->expr) :
			TupleDescAttr(RelationGetDescr(heap),
						  index->rd_index->indkey.values[i] - 1)->attcollation;
		if (elem->collation == NIL && OidIsValid(collation) && collation != others)
			elem->collation = collation_name(collation);
		i++;
	}
	foreach(lc, stmt->options)
	{
		if (!art_option_fits(lfirst_node(DefElem, lc)->defname, am))
			stmt->options = foreach_delete_current(stmt->options, lc);
	}
	stmt->idxname = NULL;
	stmt->accessMethod = get_am_name(am);
	stmt->primary = false;
	stmt->isconstraint = false;
	stmt->excludeOpNames = NIL;
	stmt->deferrable = false;
	stmt->initdeferred = false;
	stmt->reset_default_tblspc = true;
	return stmt;
}

/*
 * The statistics targets of the columns, which are expressions.
 *
 * Locks: RowExclusiveLock on pg_attribute while it writes.
 */
static void
copy_targets(Relation index, Oid newoid)
{
	Relation	pg_attribute = table_open(AttributeRelationId, RowExclusiveLock);

	for (int i = 1; i <= index->rd_index->indnatts; i++)
	{
		HeapTuple	from = SearchSysCache2(ATTNUM, ObjectIdGetDatum(RelationGetRelid(index)),
										   Int16GetDatum(i));
		HeapTuple	to = SearchSysCacheCopy2(ATTNUM, ObjectIdGetDatum(newoid), Int16GetDatum(i));
		Datum		values[Natts_pg_attribute] = {0};
		bool		nulls[Natts_pg_attribute] = {0};
		bool		changes[Natts_pg_attribute] = {0};

		if (!HeapTupleIsValid(from) || !HeapTupleIsValid(to))
			elog(ERROR, "cache lookup failed for attribute %d of relation %u", i, newoid);
		values[Anum_pg_attribute_attstattarget - 1] =
			SysCacheGetAttr(ATTNUM, from, Anum_pg_attribute_attstattarget,
							&nulls[Anum_pg_attribute_attstattarget - 1]);
		if (!nulls[Anum_pg_attribute_attstattarget - 1])
		{
			changes[Anum_pg_attribute_attstattarget - 1] = true;
			to = heap_modify_tuple(to, RelationGetDescr(pg_attribute), values, nulls, changes);
			CatalogTupleUpdate(pg_attribute, &to->t_self, to);
		}
		ReleaseSysCache(from);
	}
	table_close(pg_attribute, RowExclusiveLock);
}

void
art_remade(Relation index, Oid newoid, Oid am)
{
	oidvector  *classes = art_index_classes(index);

	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		bool		again = false;

		for (int j = 0; j < i; j++)
			again |= classes->values[j] == classes->values[i];
		if (!again)
			(void) changeDependencyFor(RelationRelationId, newoid,
									   OperatorClassRelationId, classes->values[i],
									   art_same_opclass(classes->values[i], am));
	}
	if (ART_SWAP_LEAVES_TARGETS && newoid != RelationGetRelid(index))
		copy_targets(index, newoid);
}

/*
 * The access method of a relation by its catalog row, InvalidOid if it is
 * gone.
 */
static Oid
relation_am(Oid relid)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			am = InvalidOid;

	if (HeapTupleIsValid(tup))
	{
		am = ((Form_pg_class) GETSTRUCT(tup))->relam;
		ReleaseSysCache(tup);
	}
	return am;
}

bool
art_index_is_still(Oid indexoid, Oid heapoid, Oid am, bool ispart)
{
	return IndexGetRelation(indexoid, true) == heapoid &&
		relation_am(indexoid) == am && get_rel_relispartition(indexoid) == ispart;
}

void
art_refuse_changed(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" was dropped or altered while it was rebuilt", name),
			 errdetail("A function of the index's expressions or predicate can do that."),
			 errhint("Functions of an index must be IMMUTABLE in fact, and change nothing.")));
}

/*
 * Locks: AccessExclusiveLock on the index, to the end of the transaction; the
 * caller has it on the table.
 */
bool
art_remake_index(Relation heap, Oid indexoid, Oid am, bool tell)
{
	Relation	index = index_open(indexoid, AccessExclusiveLock);
	IndexStmt  *stmt = art_remaking_statement(heap, index, am);
	char	   *name = pstrdup(RelationGetRelationName(index));
	Oid			from = index->rd_rel->relam;
	bool		ispart = index->rd_rel->relispartition;
	ObjectAddress old,
				new;

	index_close(index, NoLock);
	if (stmt == NULL)
		return false;
	if (tell)
		ereport(RelationGetNumberOfBlocks(heap) > 0 ? NOTICE : DEBUG1,
				(errmsg("index \"%s\" is rebuilt with access method \"%s\"",
						name, stmt->accessMethod),
				 errdetail("Table \"%s\" is locked until the transaction ends.",
						   RelationGetRelationName(heap)),
				 am != BTREE_AM_OID ? 0 :
				 errhint("\"CALL artidx_to_btree(%s)\" beforehand converts it without blocking reads and writes.",
						 quote_literal_cstr(art_sql_name(indexoid)))));

	/* a cursor may have it open; events that wait will find the new one */
	if (heap->rd_refcnt != 1)
		CheckTableNotInUse(heap, "ALTER TABLE");
	new = art_define_index(RelationGetRelid(heap), stmt, false);
	CommandCounterIncrement();
	if (!art_index_is_still(indexoid, RelationGetRelid(heap), from, ispart))
		art_refuse_changed(name);
	index_concurrently_swap(new.objectId, indexoid,
							ChooseRelationName(name, NULL, "old",
											   RelationGetNamespace(heap), false));
	CommandCounterIncrement();
	index = index_open(indexoid, NoLock);
	art_remade(index, new.objectId, am);
	index_close(index, NoLock);
	CommandCounterIncrement();
	ObjectAddressSet(old, RelationRelationId, indexoid);
	performDeletion(&old, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
	CommandCounterIncrement();
	return true;
}

/* ---- which ---- */

/* The names of the index's key columns, or NIL when some are expressions. */
static List *
key_names(Relation index)
{
	List	   *names = NIL;

	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		AttrNumber	att = index->rd_index->indkey.values[i];

		if (att <= 0)
			return NIL;
		names = lappend(names, makeString(get_attname(index->rd_index->indrelid, att, false)));
	}
	return names;
}

/* The kinds of a unique index that is to be a part of another. */
typedef enum KeyKind
{
	ANY_KEY,
	UNIQUE_KEY,					/* a constraint's */
	PRIMARY_KEY
} KeyKind;

/*
 * The first unique index of the table, of this access method and kind, with these
 * columns.  Not one that is part of a partitioned one.
 *
 * Locks: takes AccessShareLock on each index and gives it back; the caller has
 * one on the table.
 */
static Oid
find_key(Relation heap, List *columns, KeyKind kind, Oid am)
{
	List	   *indexes = RelationGetIndexList(heap);
	Oid			found = InvalidOid;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (index->rd_rel->relam == am && index->rd_index->indisunique &&
			index->rd_index->indisvalid && !index->rd_rel->relispartition &&
			index->rd_rel->relkind == RELKIND_INDEX &&
			art_index_is_plain(index))
		{
			bool		primary = index->rd_index->indisprimary;

			if (equal(key_names(index), columns) &&
				(kind == ANY_KEY || (kind == PRIMARY_KEY) == primary) &&
				(kind != UNIQUE_KEY || OidIsValid(get_index_constraint(lfirst_oid(lc)))))
				found = lfirst_oid(lc);
		}
		index_close(index, AccessShareLock);
		if (OidIsValid(found))
			break;
	}
	list_free(indexes);
	return found;
}

/* The one of access method "from" that must become one of "to"; none, where one is. */
static Oid
key_to_remake(Relation heap, List *columns, KeyKind kind, Oid from, Oid to)
{
	return OidIsValid(find_key(heap, columns, kind, to)) ? InvalidOid :
		find_key(heap, columns, kind, from);
}

/*
 * The index that core takes for what a foreign key refers to (transformFkeyCheckAttrs,
 * transformFkeyGetPrimaryKey): with no columns given, the primary key's.
 *
 * Locks: as find_key.
 */
static Oid
referenced_key(Relation heap, List *columns, Oid *am)
{
	List	   *indexes = RelationGetIndexList(heap);
	Oid			found = InvalidOid;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);
		List	   *names = key_names(index);

		if (index->rd_index->indisvalid && index->rd_index->indimmediate &&
			(columns == NIL ? index->rd_index->indisprimary :
			 index->rd_index->indisunique && art_index_is_plain(index) &&
			 list_length(names) == list_length(columns) && list_difference(columns, names) == NIL))
			found = lfirst_oid(lc);
		*am = index->rd_rel->relam;
		index_close(index, AccessShareLock);
		if (OidIsValid(found))
			break;
	}
	list_free(indexes);
	return found;
}

/* A statement, in whose way an index of one access method may be. */
typedef struct InTheWay
{
	List	   *columns;
	bool		referenced;		/* by a foreign key; else it is to be a part of another */
	KeyKind		kind;			/* of a part */
	Oid			from;
	Oid			to;
} InTheWay;

/* The index that is in its way, if one is. */
static Oid
remake_in_the_way(Relation heap, const InTheWay *w)
{
	Oid			am;
	Oid			found;

	if (!w->referenced)
		return key_to_remake(heap, w->columns, w->kind, w->from, w->to);
	found = referenced_key(heap, w->columns, &am);
	return OidIsValid(found) && am == w->from ? found : InvalidOid;
}

/*
 * The indexes of the table that are in the way are made anew.  False: there is one, but
 * the table is somebody else's, or it cannot be made anew.
 *
 * Locks: AccessExclusiveLock on the table, to the end of the transaction, if
 * there is one; else none.
 */
static bool
remake_key(Oid relid, const InTheWay *w)
{
	Relation	heap;
	Oid			indexoid;
	bool		done;

	if (get_rel_relkind(relid) != RELKIND_RELATION)
		return true;
	if ((heap = try_relation_open(relid, AccessShareLock)) == NULL)
		return true;
	indexoid = remake_in_the_way(heap, w);
	relation_close(heap, AccessShareLock);
	if (!OidIsValid(indexoid))
		return true;
	if (!ART_OWNS_TABLE(relid))
		return false;
	if ((heap = try_relation_open(relid, AccessExclusiveLock)) == NULL)
		return true;
	/* again, now that nobody changes it; core may then take another for a foreign key */
	done = ART_OWNS_TABLE(relid);
	while (done && OidIsValid(indexoid = remake_in_the_way(heap, w)))
		done = art_remake_index(heap, indexoid, w->to, true);
	relation_close(heap, NoLock);
	return done;
}

/* Remake the keys of a table, or of all the partitions of one. */
static void
remake_keys(Oid relid, List *columns, KeyKind kind, Oid from, Oid to)
{
	InTheWay	w = {columns, false, kind, from, to};
	List	   *all = get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE ?
		find_all_inheritors(relid, AccessShareLock, NULL) : list_make1_oid(relid);
	ListCell   *lc;

	foreach(lc, all)
		(void) remake_key(lfirst_oid(lc), &w);
}

/* ---- ATTACH PARTITION ---- */

/*
 * Keys of the table, or of its partitions, that are to be parts of the parent's.
 *
 * Locks: AccessShareLock on the parent's indexes, to the end of the
 * transaction; the caller has ALTER TABLE's lock on the parent.
 */
static void
fit_partition(Oid parent, RangeVar *child, Oid amoid)
{
	Oid			relid = RangeVarGetRelid(child, NoLock, true);
	Relation	heap;
	List	   *indexes;
	ListCell   *lc;

	if (!OidIsValid(relid) || !ART_OWNS_TABLE(relid))
		return;
	heap = table_open(parent, NoLock);	/* ALTER TABLE's lock is there */
	indexes = RelationGetIndexList(heap);
	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);
		Oid			am = index->rd_rel->relam;

		if (index->rd_index->indisunique && (am == BTREE_AM_OID || am == amoid))
		{
			List	   *names = key_names(index);

			KeyKind		kind = index->rd_index->indisprimary ? PRIMARY_KEY :
				OidIsValid(get_index_constraint(lfirst_oid(lc))) ? UNIQUE_KEY : ANY_KEY;

			if (names != NIL)
				remake_keys(relid, names, kind, am == amoid ? BTREE_AM_OID : amoid, am);
		}
		index_close(index, NoLock);
	}
	list_free(indexes);
	table_close(heap, NoLock);
}

/*
 * The index that ALTER INDEX is to attach, whatever it is.
 *
 * Locks: AccessExclusiveLock on the index's table, to the end of the
 * transaction.
 */
static void
fit_index(Oid parent, RangeVar *child, Oid amoid)
{
	Oid			indexoid = RangeVarGetRelid(child, NoLock, true);
	Oid			am = relation_am(parent);
	Oid			relid;
	Relation	heap;
	HeapTuple	tup;

	if (!OidIsValid(indexoid) || get_rel_relkind(indexoid) != RELKIND_INDEX ||
		!((am == BTREE_AM_OID && relation_am(indexoid) == amoid) ||
		  (am == amoid && relation_am(indexoid) == BTREE_AM_OID)))
		return;
	relid = IndexGetRelation(indexoid, true);
	if (!OidIsValid(relid) || !ART_OWNS_TABLE(relid))
		return;
	heap = try_relation_open(relid, AccessExclusiveLock);
	if (heap == NULL)
		return;
	/* again, now that nobody changes it */
	tup = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexoid));
	if (HeapTupleIsValid(tup))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(tup);
		bool		suits = form->indrelid == relid && form->indisvalid &&
			!form->indisexclusion && !get_rel_relispartition(indexoid) &&
			get_rel_relispartition(relid);

		ReleaseSysCache(tup);
		if (suits && ART_OWNS_TABLE(relid))
			(void) art_remake_index(heap, indexoid, am, true);
	}
	relation_close(heap, NoLock);
}

/* ---- FOREIGN KEY ---- */

/* The foreign keys that the statement adds, of the table or of new columns. */
static List *
foreign_keys(AlterTableStmt *stmt)
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
			((Constraint *) cmd->def)->contype == CONSTR_FOREIGN)
			found = lappend(found, cmd->def);
		else if (cmd->subtype == AT_AddColumn && IsA(cmd->def, ColumnDef))
		{
			foreach(c, ((ColumnDef *) cmd->def)->constraints)
			{
				if (IsA(lfirst(c), Constraint) &&
					((Constraint *) lfirst(c))->contype == CONSTR_FOREIGN)
					found = lappend(found, lfirst(c));
			}
		}
	}
	return found;
}

/*
 * Does it add one that refers to its own table?  A key that it makes as well is
 * probably the one.
 */
bool
art_references_itself(AlterTableStmt *stmt)
{
	ListCell   *lc;

	if (CORE_KNOWS_EQUALITY)
		return false;
	foreach(lc, foreign_keys(stmt))
	{
		RangeVar   *pktable = ((Constraint *) lfirst(lc))->pktable;

		if (pktable != NULL && strcmp(pktable->relname, stmt->relation->relname) == 0)
			return true;
	}
	return false;
}

/*
 * The same of CREATE TABLE, whose keys come by later as statements of their own:
 * the table's name, or NULL.
 */
const char *
art_self_referenced(CreateStmt *stmt)
{
	ListCell   *lc,
			   *c;

	if (CORE_KNOWS_EQUALITY)
		return NULL;
	foreach(lc, stmt->tableElts)
	{
		List	   *constraints = IsA(lfirst(lc), ColumnDef) ?
			((ColumnDef *) lfirst(lc))->constraints : list_make1(lfirst(lc));

		foreach(c, constraints)
		{
			Constraint *con = (Constraint *) lfirst(c);

			if (IsA(con, Constraint) && con->contype == CONSTR_FOREIGN &&
				con->pktable != NULL &&
				strcmp(con->pktable->relname, stmt->relation->relname) == 0)
				return stmt->relation->relname;
		}
	}
	return NULL;
}

/* ---- CREATE UNIQUE INDEX ---- */

/*
 * In each partition core looks for an index that can be part of the
 * partitioned table's one, and makes one where there is none.  A key of the
 * other access method would stay beside that one; so it is made again, to be
 * found.
 *
 * Locks: ShareLock on the partitioned table, as CREATE INDEX takes it, to the
 * end of the transaction.
 */
void
art_remake_for_index(IndexStmt *stmt)
{
	List	   *columns = NIL;
	Oid			amoid;
	Oid			relid;
	bool		art;
	ListCell   *lc;

	if (!stmt->unique || stmt->isconstraint || stmt->relation == NULL ||
		!stmt->relation->inh || stmt->whereClause != NULL || stmt->concurrent ||
		OidIsValid(stmt->indexOid) || !art_preloaded() || IsBinaryUpgrade)
		return;
	amoid = get_am_oid(ART_AM_NAME, true);
	if (!OidIsValid(amoid))
		return;
	art = strcmp(stmt->accessMethod, ART_AM_NAME) == 0;
	if (!art && strcmp(stmt->accessMethod, "btree") != 0)
		return;
	foreach(lc, stmt->indexParams)
	{
		IndexElem  *elem = lfirst_node(IndexElem, lc);

		if (elem->name == NULL || elem->ordering == SORTBY_DESC ||
			elem->nulls_ordering == SORTBY_NULLS_FIRST || elem->opclass != NIL ||
			elem->collation != NIL)
			return;
		columns = lappend(columns, makeString(elem->name));
	}
	relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	if (!OidIsValid(relid) || get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return;
	if (stmt->if_not_exists && stmt->idxname != NULL &&
		OidIsValid(get_relname_relid(stmt->idxname, get_rel_namespace(relid))))
		return;
	relid = RangeVarGetRelidExtended(stmt->relation, ShareLock, 0,
									 RangeVarCallbackOwnsRelation, NULL);
	if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
		remake_keys(relid, columns, ANY_KEY, art ? BTREE_AM_OID : amoid,
					art ? amoid : BTREE_AM_OID);
}

/* ---- ALTER COLUMN TYPE ---- */

/* Is the column one of the index's? */
static bool
has_column(Relation index, AttrNumber attno)
{
	for (int i = 0; i < index->rd_index->indnatts; i++)
		if (index->rd_index->indkey.values[i] == attno)
			return true;
	return false;
}

/*
 * Core makes the keys with the column anew, of btree, with the parameters they have.  So
 * these lose those that btree does not know.
 *
 * Locks: the lock on the table and on all that inherit from it; RowExclusiveLock on
 * pg_class while it writes.
 */
static void
lose_parameters(Oid parent, const char *column, bool inh, LOCKMODE lockmode, Oid amoid)
{
	List	   *tables = inh ? find_all_inheritors(parent, lockmode, NULL) : list_make1_oid(parent);
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	ListCell   *lc,
			   *i;

	foreach(lc, tables)
	{
		Relation	heap = relation_open(lfirst_oid(lc), NoLock);

		foreach(i, RelationGetIndexList(heap))
		{
			Relation	index = index_open(lfirst_oid(i), AccessShareLock);
			HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(lfirst_oid(i)));
			bool		isnull;
			Datum		d = SysCacheGetAttr(RELOID, tup, Anum_pg_class_reloptions, &isnull);

			/* an exclusion constraint says "USING art", and stays so */
			if (index->rd_rel->relam == amoid && !isnull && !index->rd_index->indisexclusion &&
				OidIsValid(get_index_constraint(lfirst_oid(i))) &&
				has_column(index, get_attnum(RelationGetRelid(heap), column)))
			{
				Datum		values[Natts_pg_class] = {0};
				bool		nulls[Natts_pg_class] = {0};
				bool		changes[Natts_pg_class] = {0};
				HeapTuple	new;

				d = art_fitting_options(d, BTREE_AM_OID);
				values[Anum_pg_class_reloptions - 1] = d;
				nulls[Anum_pg_class_reloptions - 1] = d == (Datum) 0;
				changes[Anum_pg_class_reloptions - 1] = true;
				new = heap_modify_tuple(tup, RelationGetDescr(pg_class), values, nulls, changes);
				CatalogTupleUpdate(pg_class, &new->t_self, new);
			}
			ReleaseSysCache(tup);
			index_close(index, NoLock);
		}
		relation_close(heap, NoLock);
	}
	table_close(pg_class, RowExclusiveLock);
	CommandCounterIncrement();
}

/* ---- the statement ---- */

/*
 * The columns of the table's index that the statement makes the primary key; NIL if there is
 * none.
 *
 * Locks: AccessShareLock on the index, while it looks.
 */
static List *
columns_attached(AlterTableStmt *stmt, Oid relid)
{
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		Constraint *con = (Constraint *) cmd->def;
		Oid			indexoid;

		if (cmd->subtype != AT_AddConstraint || con == NULL || !IsA(con, Constraint) ||
			con->contype != CONSTR_PRIMARY || con->indexname == NULL)
			continue;
		indexoid = get_relname_relid(con->indexname, get_rel_namespace(relid));
		if (OidIsValid(indexoid) && IndexGetRelation(indexoid, true) == relid)
		{
			Relation	index = index_open(indexoid, AccessShareLock);

			columns = key_names(index);
			index_close(index, AccessShareLock);
		}
	}
	return columns;
}

/*
 * Indexes that are in the statement's way because of their access method are
 * made anew.  False: there is one that is not the user's, and core is going to
 * say so in its own words.
 *
 * Locks: the table's lock at the level of the ALTER, as core would take it, to
 * the end of the transaction.
 */
bool
art_remake(AlterTableStmt *stmt)
{
	List	   *keys = CORE_KNOWS_EQUALITY ? NIL : foreign_keys(stmt);
	bool		applies = keys != NIL;
	bool		done = true;
	Oid			amoid;
	Oid			relid;
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		applies |= cmd->subtype == AT_AttachPartition || ART_REMAKES_INDEXES(cmd->subtype) ||
			(cmd->subtype == AT_AddConstraint && stmt->relation->inh);
	}
	if (!applies || !art_preloaded() || IsBinaryUpgrade)
		return true;
	amoid = get_am_oid(ART_AM_NAME, true);
	if (!OidIsValid(amoid))
		return true;
	relid = AlterTableLookupRelation(stmt, AlterTableGetLockLevel(stmt->cmds));
	if (!OidIsValid(relid))
		return true;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		char		relkind = get_rel_relkind(relid);

		if (ART_REMAKES_INDEXES(cmd->subtype))
			lose_parameters(relid, cmd->name, stmt->relation->inh,
							AlterTableGetLockLevel(stmt->cmds), amoid);
		else if (cmd->subtype == AT_AttachPartition)
		{
			RangeVar   *child = ((PartitionCmd *) cmd->def)->name;

			if (relkind == RELKIND_PARTITIONED_TABLE)
				fit_partition(relid, child, amoid);
			else if (relkind == RELKIND_PARTITIONED_INDEX)
				fit_index(relid, child, amoid);
		}
		else if (cmd->subtype == AT_AddConstraint && stmt->relation->inh &&
				 relkind == RELKIND_PARTITIONED_TABLE && IsA(cmd->def, Constraint))
		{
			Constraint *con = (Constraint *) cmd->def;

			/* core makes it, or finds it, in each partition */
			if ((con->contype == CONSTR_PRIMARY || con->contype == CONSTR_UNIQUE) &&
				con->keys != NIL)
			{
				bool		art = con->access_method != NULL &&
					strcmp(con->access_method, ART_AM_NAME) == 0;

				remake_keys(relid, con->keys,
							con->contype == CONSTR_PRIMARY ? PRIMARY_KEY : UNIQUE_KEY,
							art ? BTREE_AM_OID : amoid, art ? amoid : BTREE_AM_OID);
			}
		}
	}
	foreach(lc, keys)
	{
		Constraint *con = (Constraint *) lfirst(lc);
		Oid			pkrelid = con->pktable == NULL ? InvalidOid :
			RangeVarGetRelid(con->pktable, NoLock, true);

		if (OidIsValid(pkrelid))
		{
			InTheWay	w = {con->pk_attrs, true, ANY_KEY, amoid, BTREE_AM_OID};

			if (con->pk_attrs == NIL && pkrelid == relid)
				w.columns = columns_attached(stmt, relid);
			done &= remake_key(pkrelid, &w);
		}
	}
	return done;
}
