/*
 * wait_function.c
 *	  artidx_wait: for clients that would rather not begin before the indexes are
 *	  in memory.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "live/background.h"
#include "views/views.h"

#define ART_WAIT_MS		100		/* between two looks */

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_wait);

static uint32 wait_event_ready = 0;

typedef struct Left
{
	int			n;				/* not READY */
	int			coming;			/* of which so many are, or will be, built */
	StringInfoData names;		/* of the first ones */
} Left;

/*
 * Is the index valid by its catalog row?  No, if it is gone.
 */
static bool
is_valid(Oid indexoid)
{
	HeapTuple	tup = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexoid));
	bool		valid = false;

	if (HeapTupleIsValid(tup))
	{
		valid = ((Form_pg_index) GETSTRUCT(tup))->indisvalid;
		ReleaseSysCache(tup);
	}
	return valid;
}

bool
art_will_be_there(ArtState state, ArtReason reason)
{
	if (state == ART_FOLLOWED)
		return true;
	if (!RecoveryInProgress() || state == ART_BUILDING)
		return art_is_coming(state, reason);
	return (reason == ART_WHY_RESTART || reason == ART_WHY_ALTERED || reason == ART_WHY_DROPPED) &&
		art_build_workers > 0 && !art_no_worker() && !ART_OLD_SNAPSHOT_IN_USE();
}

/*
 * Has our own transaction locked the table of the index against everybody who might build?
 */
static bool
table_is_ours(Oid indexoid)
{
	Oid			heapoid = IndexGetRelation(indexoid, true);
	Relation	heap = OidIsValid(heapoid) ? RelationIdGetRelation(heapoid) : NULL;
	bool		ours;

	if (heap == NULL)
		return false;
	ours = CheckRelationLockedByMe(heap, AccessExclusiveLock, true);
	RelationClose(heap);
	return ours;
}

/*
 * Count the index, and keep its name for the error, unless it is READY or not
 * valid.  altered: our own transaction did that.  One that is absent is asked for.
 *
 * Locks: takes the partition lock, shared, and exclusive to ask for it.
 */
static void
look_at_index(Form_pg_class form, bool altered, Left *left)
{
	LWLock	   *lock;
	ArtLocator	loc;
	ArtState	state = ART_ABSENT;
	ArtReason	reason = ART_WHY_RESTART;
	ArtEntry   *e;

	art_form_locator(form, &loc);
	e = art_find_locked(form->oid, &loc, LW_SHARED, &lock);
	if (e != NULL)
	{
		state = art_entry_state(e, NULL);
		reason = e->reason;
	}
	art_unlock(lock);
	if (state == ART_READY || (state == ART_FOLLOWED && RecoveryInProgress()) ||
		!is_valid(form->oid))
		return;
	if (left->n++ < 10)
		appendStringInfo(&left->names, "%s%s", left->n > 1 ? ", " : "",
						 quote_qualified_identifier(get_namespace_name(form->relnamespace),
													NameStr(form->relname)));
	/* nobody can build what our own transaction has made or locked */
	if (altered || !art_will_be_there(state, reason) || table_is_ours(form->oid))
		return;
	left->coming++;
	/* after a rollback, say, nobody has asked for it */
	if (state == ART_ABSENT && !RecoveryInProgress())
		art_request_absent(form->oid, &loc);
}

/*
 * All permanent and unlogged art indexes, as the catalog has them now.
 *
 * Locks: AccessShareLock on pg_class, for the scan.
 */
static void
look_at_catalog_left(Oid amoid, Left *left)
{
	Relation	pgclass = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(pgclass, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tup;

	left->n = left->coming = 0;
	resetStringInfo(&left->names);
	while (HeapTupleIsValid(tup = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tup);

		/* a standby has no rows of an unlogged table */
		if (form->relkind == RELKIND_INDEX && form->relam == amoid &&
			form->relpersistence != RELPERSISTENCE_TEMP &&
			!(form->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress()))
			look_at_index(form, TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tup->t_data)),
					left);
	}
	systable_endscan(scan);
	table_close(pgclass, AccessShareLock);
}

/*
 * artidx_wait(interval): true when all are READY.  False when the time is over
 * (NULL: there is no limit), or when what is left is nobody's to build.
 */
Datum
artidx_wait(PG_FUNCTION_ARGS)
{
	TimestampTz until = 0;
	Oid			amoid = get_am_oid(ART_AM_NAME, false);
	Left		left;
	MemoryContext each = AllocSetContextCreate(CurrentMemoryContext, "artidx_wait",
											   ALLOCSET_SMALL_SIZES);
	MemoryContext old;

	art_require_preload(NULL);
	if (!PG_ARGISNULL(0))
		until = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
														TimestampTzGetDatum(GetCurrentTimestamp()),
														PG_GETARG_DATUM(0)));
	initStringInfo(&left.names);
	for (;;)
	{
		AcceptInvalidationMessages();
		old = MemoryContextSwitchTo(each);
		look_at_catalog_left(amoid, &left);
		MemoryContextSwitchTo(old);
		MemoryContextReset(each);
		if (left.n == 0)
			PG_RETURN_BOOL(true);
		if (left.coming == 0 || (!PG_ARGISNULL(0) && GetCurrentTimestamp() >= until))
			break;
		(void) art_doze(ART_WAIT_MS, ART_WAIT_EVENT(wait_event_ready, "ArtidxWait"));
	}
	ereport(NOTICE,
			(errmsg_plural("%d art index is not in memory: %s",
						   "%d art indexes are not in memory: %s",
						   left.n, left.n, left.names.data),
			 left.n > 10 ? errdetail("The first ten are named.") : 0,
			 left.coming == 0 ?
			 errhint("They will not come back by themselves.  artidx_indexes says why.") : 0));
	PG_RETURN_BOOL(false);
}
