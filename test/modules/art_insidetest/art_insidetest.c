/*
 * art_insidetest.c
 *	  Reaches into artidx, for what a test cannot bring about from outside.
 *
 * art_insidetest.crash_pause: the seconds after a crash in which another one gives art
 * indexes up.  The module is preloaded behind artidx.
 *
 * art_inside_damage(index): the end of a call of the core with a status that cannot be.
 *
 * art_inside_hold(index, tid, places): the process relies on an entry of this TID, as a scan does that
 * has copied it and has not looked at its row yet.  It does so until the transaction ends.  Before, it takes so
 * many places of shared memory where it could say so, or all that there are, if they are fewer.
 *
 * art_inside_entry(index, tid, key): an entry of this key and TID, whatever row is there.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "fmgr.h"
#include "storage/itemptr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "area/area.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);
extern PGDLLEXPORT Datum art_inside_damage(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum art_inside_hold(PG_FUNCTION_ARGS);
PGDLLEXPORT PG_FUNCTION_INFO_V1(art_inside_damage);
extern PGDLLEXPORT Datum art_inside_entry(PG_FUNCTION_ARGS);
PGDLLEXPORT PG_FUNCTION_INFO_V1(art_inside_hold);
PGDLLEXPORT PG_FUNCTION_INFO_V1(art_inside_entry);

Datum
art_inside_damage(PG_FUNCTION_ARGS)
{
	void		(*unexpected) (Relation index, ax_status s, const char *doing) =
		(void (*) (Relation, ax_status, const char *))
		load_external_function("artidx", "art_unexpected", true, NULL);
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);

	unexpected(index, AX_CHANGED, "a test");
	PG_RETURN_VOID();
}

Datum
art_inside_hold(PG_FUNCTION_ARGS)
{
	const ArtInterlockCalls *calls = (const ArtInterlockCalls *)
		load_external_function("artidx", "art_interlock_calls", true, NULL);
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	ArtHazard  *h;
	bool		held;

	for (int i = PG_GETARG_INT32(2); i > 0; i--)
		(void) calls->acquire(index, TopTransactionContext);
	h = calls->acquire(index, TopTransactionContext);
	held = calls->publish(h, art_tid_pack((ItemPointer) PG_GETARG_POINTER(1)), calls->delgen(index));
	index_close(index, AccessShareLock);
	PG_RETURN_BOOL(held);
}

Datum
art_inside_entry(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), RowExclusiveLock);
	Relation	heap = table_open(index->rd_index->indrelid, RowExclusiveLock);
	Datum		values[INDEX_MAX_KEYS] = {PG_GETARG_DATUM(2)};
	bool		isnull[INDEX_MAX_KEYS] = {false};

	(void) index_insert(index, values, isnull, (ItemPointer) PG_GETARG_POINTER(1), heap, UNIQUE_CHECK_NO, false,
						BuildIndexInfo(index));
	table_close(heap, NoLock);
	index_close(index, NoLock);
	PG_RETURN_VOID();
}

void
_PG_init(void)
{
	/* an object is looked up as a function is */
	int		   *pause = (int *) load_external_function("artidx", "art_crash_pause", true, NULL);

	DefineCustomIntVariable("art_insidetest.crash_pause",
							"Sets the time after a crash in which another one gives art indexes up.",
							NULL,
							pause,
							300, 0, INT_MAX / 1000,
							PGC_SIGHUP,
							GUC_UNIT_S,
							NULL, NULL, NULL);
	MarkGUCPrefixReserved("art_insidetest");
}
