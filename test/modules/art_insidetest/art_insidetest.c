/*
 * art_insidetest.c
 *	  Reaches into artidx, for what a test cannot bring about from outside.
 *
 * art_insidetest.crash_pause: the seconds after a crash in which another one gives art
 * indexes up.  The module is preloaded behind artidx.
 *
 * art_inside_damage(index): the end of a call of the core with a status that cannot be.
 */
#include "postgres.h"

#include "access/genam.h"
#include "fmgr.h"
#include "utils/guc.h"

#include "area/area.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);
extern PGDLLEXPORT Datum art_inside_damage(PG_FUNCTION_ARGS);
PGDLLEXPORT PG_FUNCTION_INFO_V1(art_inside_damage);

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
