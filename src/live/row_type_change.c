/*
 * row_type_change.c
 *	  An index whose keys hold a row type gets a new file when that type is altered.
 *
 * ALTER TYPE ... DROP ATTRIBUTE rewrites no table and no index.  A value stays what
 * it was, but a comparison passes over the attribute from then on.  So keys are in
 * another order, and others are equal.  A whole row, or ROW(a, b)::type, that is made
 * again has other bytes after any change.  btree keeps its entries and answers wrong.
 * Here such an index gets a new file, as by REINDEX, with all that follows from one.
 * Its transaction reads the table.  The commit drops the old structure, a rollback
 * leaves it.  A standby hears of it, and no saved file serves it.  The new
 * structure is built like any absent one.  That proves no uniqueness, for core takes
 * the statement although values may be equal now.
 *
 * Core tells of each column that it adds, drops or gives another type, also by CASCADE,
 * by inheritance and in typed tables (object_access_hook).  Nothing is done before the
 * statement is over, when the catalogs agree again.
 *
 * Nobody may scan in the old order meanwhile.  So the index is locked against everybody,
 * before the statement locks the type: a reader locks them in this order, too.  DROP TYPE
 * ... CASCADE, and other statements that do not name the type, lock the index after it.
 * That may be a deadlock, which is found.
 *
 * INCLUDE columns are in no order, and have the very bytes that the table has.  Only
 * ALTER TYPE ... SET (STORAGE) of a base type changes their bytes, for values that are
 * not PLAIN have short headers.  It is an alteration like the others here.
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "catalog/storage.h"
#include "catalog/storage_xlog.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "live/background.h"
#include "live/live.h"

/* Of the statement that runs. */
static ArtRowChange change;

/* The way from altered types to indexes. */
typedef struct Holders
{
	HTAB	   *seen;			/* of Object: what was followed */
	List	   *tables;			/* whose row type has changed, or a part of it */
	List	   *indexes;		/* that name such a type, or what is made of it */
	bool		order;			/* plain columns are in another order */
	bool		bytes;			/* and columns of INCLUDE have other bytes */
} Holders;

typedef struct Object
{
	Oid			class;
	Oid			oid;
} Object;

static void follow_type(Holders *h, Oid class, Oid oid);

bool
art_is_ours(Oid indexoid)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	bool		ours = false;

	if (HeapTupleIsValid(tup))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tup);

		ours = form->relkind == RELKIND_INDEX &&
			form->relam == get_am_oid(ART_AM_NAME, true);
		ReleaseSysCache(tup);
	}
	return ours;
}

/* Was this object followed? */
static bool
seen(const Holders *h, Oid class, Oid oid)
{
	Object		key = {class, oid};

	return hash_search(h->seen, &key, HASH_FIND, NULL) != NULL;
}

/* A table, view or composite type with a column of an altered type, or that is altered itself. */
static void
follow_relation(Holders *h, Oid relid)
{
	Object		key = {RelationRelationId, relid};
	Oid			type;
	bool		found;

	(void) hash_search(h->seen, &key, HASH_ENTER, &found);
	if (found)
		return;
	h->tables = lappend_oid(h->tables, relid);
	type = get_rel_type_id(relid);
	if (OidIsValid(type))
		follow_type(h, TypeRelationId, type);
}

/*
 * A type that is altered, or made of one that is; a function or operator that takes or
 * returns such a type.  An expression may name the function only.
 *
 * Locks: AccessShareLock on pg_depend, for the scan.
 */
static void
follow_type(Holders *h, Oid class, Oid oid)
{
	Object		key = {class, oid};
	Relation	rel;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tup;
	bool		found;

	check_stack_depth();
	(void) hash_search(h->seen, &key, HASH_ENTER, &found);
	if (found)
		return;
	rel = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(class));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(oid));
	scan = systable_beginscan(rel, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tup = systable_getnext(scan)))
	{
		Form_pg_depend dep = (Form_pg_depend) GETSTRUCT(tup);

		if (dep->classid == TypeRelationId || dep->classid == ProcedureRelationId ||
			dep->classid == OperatorRelationId)
			follow_type(h, dep->classid, dep->objid);
		else if (dep->classid != RelationRelationId)
			continue;
		else if (get_rel_relkind(dep->objid) == RELKIND_INDEX)
			h->indexes = lappend_oid(h->indexes, dep->objid);
		else if (class == TypeRelationId)
			follow_relation(h, dep->objid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/* Is the column of a type that was followed?  Number 0 is the whole row. */
static bool
column_seen(const Holders *h, Oid tableoid, AttrNumber attno)
{
	return attno == 0 || (attno > 0 && seen(h, TypeRelationId, get_atttype(tableoid, attno)));
}

/* Does an expression of the index, as the catalog keeps it, use such a column? */
static bool
expression_holds(const Holders *h, Oid tableoid, HeapTuple tup, AttrNumber attr)
{
	bool		isnull;
	Datum		source = SysCacheGetAttr(INDEXRELID, tup, attr, &isnull);
	Bitmapset  *columns = NULL;
	int			x = -1;

	if (isnull)
		return false;
	pull_varattnos(stringToNode(TextDatumGetCString(source)), 1, &columns);
	while ((x = bms_next_member(columns, x)) >= 0)
	{
		if (column_seen(h, tableoid, x + FirstLowInvalidHeapAttributeNumber))
			return true;
	}
	return false;
}

/* Does the index of such a table have anything of the types in it? */
static bool
index_holds(const Holders *h, Oid tableoid, Oid indexoid)
{
	HeapTuple	tup = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexoid));
	Form_pg_index form;
	bool		holds = false;

	if (!HeapTupleIsValid(tup))
		return false;
	form = (Form_pg_index) GETSTRUCT(tup);
	for (int i = 0; i < form->indnatts && !holds; i++)
	{
		if (form->indkey.values[i] != 0 &&
			(h->bytes || (h->order && i < form->indnkeyatts)))
			holds = column_seen(h, tableoid, form->indkey.values[i]);
	}
	holds = holds ||
		expression_holds(h, tableoid, tup, Anum_pg_index_indexprs) ||
		expression_holds(h, tableoid, tup, Anum_pg_index_indpred);
	ReleaseSysCache(tup);
	return holds;
}

/*
 * Add those of the table's indexes that hold the type.
 *
 * Locks: AccessShareLock on pg_index, for the scan.
 */
static void
add_indexes(Holders *h, Oid tableoid)
{
	Relation	rel = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tup;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(tableoid));
	scan = systable_beginscan(rel, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tup = systable_getnext(scan)))
	{
		Oid			indexoid = ((Form_pg_index) GETSTRUCT(tup))->indexrelid;

		if (art_is_ours(indexoid) && index_holds(h, tableoid, indexoid))
			h->indexes = lappend_oid(h->indexes, indexoid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/* The art indexes for which such a change is one of their keys, in the order of their OIDs. */
static List *
indexes_of(const ArtRowChange *c)
{
	HASHCTL		ctl = {.keysize = sizeof(Object), .entrysize = sizeof(Object), .hcxt = CurrentMemoryContext};
	Holders		h = {.order = c->order, .bytes = c->bytes};
	List	   *ours = NIL;
	ListCell   *lc;

	h.seen = hash_create("art altered types", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	foreach(lc, c->rels)
		follow_relation(&h, lfirst_oid(lc));
	if (OidIsValid(c->type))
		follow_type(&h, TypeRelationId, c->type);
	foreach(lc, h.tables)
		add_indexes(&h, lfirst_oid(lc));
	list_sort(h.indexes, list_oid_cmp);
	list_deduplicate_oid(h.indexes);
	foreach(lc, h.indexes)
	{
		if (art_is_ours(lfirst_oid(lc)))
			ours = lappend_oid(ours, lfirst_oid(lc));
	}
	hash_destroy(h.seen);
	return ours;
}

/*
 * Keep everybody out of these indexes.
 *
 * Locks: takes ShareUpdateExclusiveLock on each table, which keeps CREATE INDEX
 * CONCURRENTLY and VACUUM out, then AccessExclusiveLock on the index; to the end of the
 * transaction.
 */
static void
lock_indexes(List *indexes)
{
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Oid			tableoid = IndexGetRelation(lfirst_oid(lc), true);

		if (!OidIsValid(tableoid))
			continue;
		LockRelationOid(tableoid, ShareUpdateExclusiveLock);
		LockRelationOid(lfirst_oid(lc), AccessExclusiveLock);
	}
}

/*
 * Give the index a new file.  This process cannot make one for another session's temporary
 * table; so the commit drops that structure.
 *
 * Locks: none; the caller has AccessExclusiveLock on the index.
 */
static void
give_new_file(Oid indexoid)
{
	Relation	index = try_relation_open(indexoid, NoLock);
	Oid			tableoid;

	if (index == NULL)
		return;
	tableoid = index->rd_index->indrelid;
	if (RELATION_IS_OTHER_TEMP(index))
	{
		art_pending_add(art_pending_prepare(), ART_PEND_EMPTY, MyDatabaseId, indexoid, NULL,
						GetCurrentSubTransactionId());
		CacheInvalidateRelcache(index);
		relation_close(index, NoLock);
		return;
	}
	CheckTableNotInUse(index, "ALTER TYPE");
	RelationSetNewRelfilenumber(index, index->rd_rel->relpersistence);
	if (index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
	{
		/* as index_build() does */
		smgrcreate(RelationGetSmgr(index), INIT_FORKNUM, false);
		log_smgrcreate(&ART_REL_LOCATOR(index), INIT_FORKNUM);
		index->rd_indam->ambuildempty(index);
	}
	/* the entry moves with the commit, as by SET TABLESPACE */
	InvokeObjectPostAlterHookArg(RelationRelationId, indexoid, 0, InvalidOid, true);
	CacheInvalidateRelcacheByRelid(tableoid);
	relation_close(index, NoLock);
}

/* ---- a statement ---- */

void
art_rowtype_note(Oid relid, ArtColumnChange what)
{
	MemoryContext old;

	if (what == ART_COLUMN_ALTERED && !change.retypes)
		return;					/* its name, a default */
	old = MemoryContextSwitchTo(TopTransactionContext);
	if (change.rels == NIL || llast_oid(change.rels) != relid)
		change.rels = lappend_oid(change.rels, relid);
	MemoryContextSwitchTo(old);
	change.order |= what != ART_COLUMN_ADDED;
}

ArtRowChange
art_rowtype_begin(void)
{
	ArtRowChange outer = change;

	memset(&change, 0, sizeof(change));
	return outer;
}

void
art_rowtype_end(const ArtRowChange *outer)
{
	change = *outer;
}

/* Columns that ALTER TABLE, or ALTER TYPE of a composite type, is about to change. */
static ArtRowChange
of_columns(AlterTableStmt *stmt)
{
	ArtRowChange c = {0};
	bool		any = false;
	Oid			relid;
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableType cmd = lfirst_node(AlterTableCmd, lc)->subtype;

		c.retypes |= cmd == AT_AlterColumnType;
		c.order |= cmd == AT_DropColumn || cmd == AT_AlterColumnType;
		any |= cmd == AT_AddColumn;
	}
	if (!any && !c.order)
		return c;
	relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	if (OidIsValid(relid) && ART_OWNS_TABLE(relid))
		c.rels = list_make1_oid(relid);
	return c;
}

/* The type that ALTER TYPE ... SET (STORAGE) is about to change; only a superuser may. */
static ArtRowChange
of_storage(AlterTypeStmt *stmt)
{
	ArtRowChange c = {0};
	ListCell   *lc;

	foreach(lc, stmt->options)
	{
		Type		tup;

		if (strcmp(lfirst_node(DefElem, lc)->defname, "storage") != 0)
			continue;
		tup = LookupTypeName(NULL, makeTypeNameFromNameList(stmt->typeName), NULL, true);
		if (tup == NULL)
			continue;
		if (superuser())
			c.type = ((Form_pg_type) GETSTRUCT(tup))->oid;
		ReleaseSysCache(tup);
		c.order = c.bytes = true;
	}
	return c;
}

void
art_rowtype_before(Node *stmt)
{
	ArtRowChange c;

	if (IsA(stmt, AlterTableStmt))
		c = of_columns((AlterTableStmt *) stmt);
	else if (IsA(stmt, AlterTypeStmt))
		c = of_storage((AlterTypeStmt *) stmt);
	else
		return;
	change.retypes = c.retypes;
	change.type = c.type;
	change.order = change.bytes = c.bytes;
	c.order = true;				/* see art_rowtype_after() */
	if (c.rels != NIL || OidIsValid(c.type))
		lock_indexes(indexes_of(&c));
}

void
art_rowtype_after(void)
{
	ArtRowChange all = change;
	List	   *indexes;
	ListCell   *lc;

	if (change.rels == NIL && !OidIsValid(change.type))
		return;
	CommandCounterIncrement();

	/*
	 * A column that was added changes the order only of values that have it.  A process
	 * that does not know of it yet must not insert where they are.
	 */
	all.order = true;
	lock_indexes(indexes_of(&all));
	indexes = indexes_of(&change);
	memset(&change, 0, sizeof(change));
	foreach(lc, indexes)
		give_new_file(lfirst_oid(lc));
}

void
art_rowtype_xact_end(void)
{
	memset(&change, 0, sizeof(change));
}
