/*
 * art_wildtest.c
 *	  Writes to shared memory as a process does that has gone wild.
 *
 * art_wild_write(find, put, least): puts some bytes in the place of others of the same
 * length, wherever those are in a mapping that processes share and that has so many
 * megabytes; how often, is returned.  It knows nothing of artidx.
 */
#include "postgres.h"

#include "fmgr.h"
#include "storage/fd.h"

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(art_wild_write);
extern PGDLLEXPORT Datum art_wild_write(PG_FUNCTION_ARGS);

Datum
art_wild_write(PG_FUNCTION_ARGS)
{
	bytea	   *find = PG_GETARG_BYTEA_PP(0);
	bytea	   *put = PG_GETARG_BYTEA_PP(1);
	unsigned long least = (unsigned long) PG_GETARG_INT32(2) << 20;
	size_t		len = VARSIZE_ANY_EXHDR(find);
	int			n = 0;
	char		line[4096];
	FILE	   *maps = AllocateFile("/proc/self/maps", "r");

	if (maps == NULL)
		elog(ERROR, "could not open /proc/self/maps: %m");
	if (len == 0 || VARSIZE_ANY_EXHDR(put) != len)
		elog(ERROR, "not as long as what it is to replace");
	while (fgets(line, sizeof(line), maps) != NULL)
	{
		unsigned long from,
					to;
		char	   *p;

		if (sscanf(line, "%lx-%lx rw-s", &from, &to) != 2 || strstr(line, " rw-s ") == NULL ||
			to - from < least)
			continue;
		for (p = (char *) from;
			 (p = memmem(p, (char *) to - p, VARDATA_ANY(find), len)) != NULL; p += len)
		{
			memcpy(p, VARDATA_ANY(put), len);
			n++;
		}
	}
	FreeFile(maps);
	PG_RETURN_INT32(n);
}
