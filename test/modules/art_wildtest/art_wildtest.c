/*
 * art_wildtest.c
 *	  Does as C code does that has gone wild: it knows nothing of artidx.
 *
 * art_wild_write(find, put, least): puts some bytes in the place of others of the same
 * length, wherever those are in a mapping that processes share and that has so many
 * megabytes; how often, is returned.
 *
 * art_wild_catch(query): runs a query that fails, and forgets its error without the
 * subtransaction in which it should have run.  The rows that it inserted live on.
 *
 * art_wild_hold(tranche, locks, first): holds those of the locks of a tranche, shared, from
 * "first" on, beyond the transaction; gives back what it held before.  Returns how many of the
 * others somebody holds exclusively.  The process is not for anything else.
 *
 * art_wild_full(name, n): the nth allocation in the memory contexts of this name, and in those
 * below them, finds no memory.  Returns in how many contexts.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "storage/fd.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

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

PG_FUNCTION_INFO_V1(art_wild_catch);
extern PGDLLEXPORT Datum art_wild_catch(PG_FUNCTION_ARGS);

Datum
art_wild_catch(PG_FUNCTION_ARGS)
{
	char	   *query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	MemoryContext cxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ResourceOwner own = ResourceOwnerCreate(owner, "art_wild_catch");
	Snapshot	snapshot = GetActiveSnapshot();
	volatile bool failed = false;

	SPI_connect();
	PG_TRY();
	{
		CurrentResourceOwner = own;
		/* without triggers, whose queue would miss the end of the query */
		(void) SPI_execute_snapshot(SPI_prepare(query, 0, NULL), NULL, NULL, InvalidSnapshot,
									InvalidSnapshot, false, false, 0);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
		while (GetActiveSnapshot() != snapshot)
			PopActiveSnapshot();
		failed = true;
	}
	PG_END_TRY();
	CurrentResourceOwner = owner;
	ResourceOwnerRelease(own, RESOURCE_RELEASE_BEFORE_LOCKS, !failed, false);
	ResourceOwnerRelease(own, RESOURCE_RELEASE_LOCKS, true, false);
	ResourceOwnerRelease(own, RESOURCE_RELEASE_AFTER_LOCKS, !failed, false);
	ResourceOwnerDelete(own);
	SPI_finish();
	PG_RETURN_BOOL(failed);
}

PG_FUNCTION_INFO_V1(art_wild_hold);
extern PGDLLEXPORT Datum art_wild_hold(PG_FUNCTION_ARGS);

Datum
art_wild_hold(PG_FUNCTION_ARGS)
{
	static int	held = -1;
	int			locks = PG_GETARG_INT32(1);
	int			first = PG_GETARG_INT32(2);
	LWLockPadded *tranche = GetNamedLWLockTranche(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	int			exclusive = 0;

	if (first != held && held >= 0)
		for (int i = locks - 1; i >= held; i--)
			LWLockRelease(&tranche[i].lock);
	if (first != held)
		for (int i = first; i < locks; i++)
			LWLockAcquire(&tranche[i].lock, LW_SHARED);
	held = first;
	for (int i = 0; i < first; i++)
	{
		if (LWLockConditionalAcquire(&tranche[i].lock, LW_SHARED))
			LWLockRelease(&tranche[i].lock);
		else
			exclusive++;
	}
	PG_RETURN_INT32(exclusive);
}

#if PG_VERSION_NUM >= 170000
#define ALLOC_PARAMETERS	MemoryContext cxt, Size size, int flags
#define ALLOC_ARGUMENTS		cxt, size, flags
#else
#define ALLOC_PARAMETERS	MemoryContext cxt, Size size
#define ALLOC_ARGUMENTS		cxt, size
#endif

static const MemoryContextMethods *methods;	/* of all contexts that are waited for */
static MemoryContextMethods counting;
static int	until_full;

static void *
count_alloc(ALLOC_PARAMETERS)
{
	if (--until_full == 0)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory, as was asked for")));
	return methods->alloc(ALLOC_ARGUMENTS);
}

/* In that context, if it or one above it has the name, and in those below it. */
static int
count_in(MemoryContext cxt, const char *name, bool inside)
{
	int			n = 0;

	inside |= strcmp(cxt->name, name) == 0;
	if (inside && (methods == NULL || cxt->methods == methods || cxt->methods == &counting))
	{
		if (methods == NULL)
		{
			methods = cxt->methods;
			counting = *methods;
			counting.alloc = count_alloc;
		}
		cxt->methods = &counting;
		n++;
	}
	for (MemoryContext c = cxt->firstchild; c != NULL; c = c->nextchild)
		n += count_in(c, name, inside);
	return n;
}

PG_FUNCTION_INFO_V1(art_wild_full);
extern PGDLLEXPORT Datum art_wild_full(PG_FUNCTION_ARGS);

Datum
art_wild_full(PG_FUNCTION_ARGS)
{
	until_full = PG_GETARG_INT32(1);
	PG_RETURN_INT32(count_in(TopMemoryContext, text_to_cstring(PG_GETARG_TEXT_PP(0)), false));
}
