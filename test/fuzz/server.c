/*
 * server.c
 *	  See server.h.
 */
#include "server.h"

#include "nodes/memnodes.h"
#include "utils/memutils.h"

int			fuzz_sqlstate;
sigjmp_buf *fuzz_catch;

/* ---- errors ---- */

static int	level;

bool
errstart(int elevel, const char *domain)
{
	level = elevel;
	return elevel >= ERROR;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	if (fuzz_catch == NULL)
	{
		fprintf(stderr, "%s:%d: an error in %s, level %d\n", filename, lineno, funcname, level);
		abort();
	}
	if (fuzz_sqlstate == 0)
		fuzz_sqlstate = ERRCODE_INTERNAL_ERROR;
	siglongjmp(*fuzz_catch, 1);
}

int
errcode(int sqlerrcode)
{
	fuzz_sqlstate = sqlerrcode;
	return 0;
}

int
errmsg(const char *fmt,...)
{
	return 0;
}

int
errmsg_internal(const char *fmt,...)
{
	return 0;
}

int
errdetail(const char *fmt,...)
{
	return 0;
}

int
errhint(const char *fmt,...)
{
	return 0;
}

/* ---- memory ---- */

/* In front of each allocation. */
typedef struct Chunk
{
	struct Chunk *next;
	struct Chunk *before;
	MemoryContext cxt;
	Size		size;
} Chunk;

/* A context is an allocation like any other; these are all. */
static Chunk all = {&all, &all};
static MemoryContextData top = {.type = T_AllocSetContext, .name = "top"};

MemoryContext CurrentMemoryContext = &top;
MemoryContext TopMemoryContext = &top;

static void *
allocate(MemoryContext cxt, Size size, Size most)
{
	Chunk	   *c;

	if (size > most)
		elog(ERROR, "invalid memory alloc request size %zu", size);
	c = malloc(sizeof(Chunk) + size);
	if (c == NULL)
		elog(ERROR, "out of memory");
	*c = (Chunk) {all.next, &all, cxt, size};
	all.next->before = c;
	all.next = c;
	return c + 1;
}

static Chunk *
chunk_of(void *p)
{
	return (Chunk *) p - 1;
}

void
pfree(void *p)
{
	Chunk	   *c = chunk_of(p);

	c->next->before = c->before;
	c->before->next = c->next;
	free(c);
}

static void *
reallocate(void *p, Size size, Size most)
{
	Chunk	   *c = chunk_of(p);
	void	   *q = allocate(c->cxt, size, most);

	memcpy(q, p, Min(size, c->size));
	pfree(p);
	return q;
}

void *
palloc(Size size)
{
	return allocate(CurrentMemoryContext, size, MaxAllocSize);
}

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

void *
repalloc(void *p, Size size)
{
	return reallocate(p, size, MaxAllocSize);
}

void *
repalloc_huge(void *p, Size size)
{
	return reallocate(p, size, MaxAllocHugeSize);
}

void *
MemoryContextAlloc(MemoryContext cxt, Size size)
{
	return allocate(cxt, size, MaxAllocSize);
}

void *
MemoryContextAllocZero(MemoryContext cxt, Size size)
{
	return memset(MemoryContextAlloc(cxt, size), 0, size);
}

/* 15's palloc0fast(). */
void *
MemoryContextAllocZeroAligned(MemoryContext cxt, Size size)
{
	return MemoryContextAllocZero(cxt, size);
}

void *
MemoryContextAllocHuge(MemoryContext cxt, Size size)
{
	return allocate(cxt, size, MaxAllocHugeSize);
}

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size least, Size first, Size most)
{
	MemoryContext cxt = MemoryContextAllocZero(parent, sizeof(MemoryContextData));

	cxt->type = T_AllocSetContext;
	cxt->name = name;
	return cxt;
}

/* Its contexts are among what it has allocated, but what is in them may lie anywhere in the list. */
void
MemoryContextReset(MemoryContext cxt)
{
	for (Chunk *c = all.next; c != &all;)
	{
		if (c->cxt != cxt)
		{
			c = c->next;
			continue;
		}
		if (c->size == sizeof(MemoryContextData))
			MemoryContextReset((MemoryContext) (c + 1));
		pfree(c + 1);
		c = all.next;
	}
}

void
MemoryContextDelete(MemoryContext cxt)
{
	MemoryContextReset(cxt);
	pfree(cxt);
}

void
fuzz_server_reset(void)
{
	while (all.next != &all)
		pfree(all.next + 1);
	CurrentMemoryContext = &top;
}
