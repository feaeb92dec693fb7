/*
 * art_oldminor.c
 *	  A server that says it is the first release of its major version.
 *
 * Named before artidx in shared_preload_libraries.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	SetConfigOption("server_version", psprintf("%s.0", PG_MAJORVERSION),
					PGC_INTERNAL, PGC_S_OVERRIDE);
}
