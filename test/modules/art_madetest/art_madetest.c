/*
 * art_madetest.c
 *	  The server's log gets a line for each art index that a statement makes.
 *
 * An index counts although its transaction is rolled back or its database dropped: the
 * catalogs forget it, and a test that made it used it all the same.
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "utils/rel.h"
#include "utils/relcache.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static object_access_hook_type prev_hook;

static void
note_made(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	Relation	rel;

	if (prev_hook)
		prev_hook(access, classId, objectId, subId, arg);
	if (access != OAT_POST_CREATE || classId != RelationRelationId || subId != 0)
		return;
	rel = RelationIdGetRelation(objectId);
	if (!RelationIsValid(rel))
		return;
	if (rel->rd_rel->relkind == RELKIND_INDEX && rel->rd_rel->relam == get_am_oid("art", true))
		ereport(LOG_SERVER_ONLY,
				(errmsg_internal("art_madetest: an art index"),
				 errhidestmt(true), errhidecontext(true)));
	RelationClose(rel);
}

void
_PG_init(void)
{
	prev_hook = object_access_hook;
	object_access_hook = note_made;
}
