/*
 * refusals.c
 *	  What CREATE INDEX ... USING art refuses.
 *
 * The flags in handler.c make core refuse some of it.  Here is the rest: what
 * core would let through and art would not get right.
 *
 * src/live/README.md: Kinds of index
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "tcop/pquery.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "area/area.h"
#include "build/build.h"

/*
 * Is the index one that the user asks for now?  Not so what ALTER TABLE or
 * REINDEX CONCURRENTLY make in the place of one that was there, nor what
 * pg_upgrade restores.  CONCURRENTLY builds in its second transaction, an
 * index that is not ready for inserts yet.
 */
bool
art_index_is_new(Relation index)
{
	CommandTag	tag = ActivePortal ? ActivePortal->commandTag : CMDTAG_UNKNOWN;

	if (IsBinaryUpgrade)
		return false;
	if (index->rd_createSubid != InvalidSubTransactionId)
		return tag != CMDTAG_ALTER_TABLE;
	return !index->rd_index->indisready && tag != CMDTAG_REINDEX;
}

/*
 * The structure that the index asks for in so many words and that has no compared keys: it
 * orders keys by their bytes.  NULL: none.
 */
static const char *
asks_for_bytes(Relation index)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(index)));
	const char *asks = NULL;
	bool		isnull;
	Datum		d;
	ListCell   *lc;

	if (!HeapTupleIsValid(tup))
		return NULL;
	d = SysCacheGetAttr(RELOID, tup, Anum_pg_class_reloptions, &isnull);
	if (!isnull)
	{
		foreach(lc, untransformRelOptions(d))
		{
			DefElem    *def = (DefElem *) lfirst(lc);

			if (strcmp(def->defname, "structure") == 0)
				asks = pg_strcasecmp(defGetString(def), "btree") == 0 ? NULL : defGetString(def);
		}
	}
	ReleaseSysCache(tup);
	return asks;
}

/*
 * art_check_supported() -- ERROR when the index cannot be an art index.
 *
 * Called first thing in ambuild.  So REINDEX, VACUUM FULL, TRUNCATE and ALTER
 * TABLE come here, too, with an index that passed once.  So does the commit of
 * a table ON COMMIT DELETE ROWS.  None of the facts tested below changes
 * during the life of an index, except the setting, which is therefore only
 * held against a new one.
 */
void
art_check_supported(Relation heap, Relation index, struct IndexInfo *indexInfo)
{
	const char *structure;

	if (IsCatalogRelation(heap) || IsToastRelation(heap))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" does not support indexes on system catalogs",
						ART_AM_NAME),
				 errdetail("Table \"%s\" is a system catalog.",
						   RelationGetRelationName(heap)),
				 errhint("Use a btree index.")));

	if (heap->rd_rel->relam != HEAP_TABLE_AM_OID)
	{
		char	   *amname = get_am_name(heap->rd_rel->relam);

		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" supports only tables of access method \"heap\"",
						ART_AM_NAME),
				 errdetail("Table \"%s\" has access method \"%s\".",
						   RelationGetRelationName(heap),
						   amname ? amname : "unknown"),
				 errhint("Use a btree index.")));
	}

	/* what cannot be encoded is compared, in a B+-tree, unless that is refused */
	structure = art_index_is_new(index) ? asks_for_bytes(index) : NULL;
	if (structure != NULL && art_index_compared(index))
		ereport(WARNING,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" has structure \"btree\", not \"%s\"",
						RelationGetRelationName(index), structure),
				 errdetail("Structure \"%s\" orders keys by their bytes, and one of the columns has an order that no bytes have.",
						   structure),
				 errhint("Omit the option or use WITH (structure = btree). For a text column, COLLATE \"C\" or the operator class text_pattern_ops works, too.")));

	/*
	 * Early pruning removes rows that an old snapshot still ought to see, and
	 * tells it by the LSN of the page.  A structure in memory has no page to
	 * tell it by: rows could go missing without the error.  An index that is
	 * only made again is hidden from plans instead.  Inserts into a unique one
	 * build it, for its check asks no snapshot.
	 */
	if (ART_OLD_SNAPSHOT_IN_USE() && art_index_is_new(index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot create index \"%s\" while \"old_snapshot_threshold\" is set",
						RelationGetRelationName(index)),
				 errdetail("Early pruning could hide rows from a scan of an index of access method \"%s\" without an error.",
						   ART_AM_NAME),
				 errhint("Set \"old_snapshot_threshold\" to -1 and restart the server, or use a btree index.")));
}
