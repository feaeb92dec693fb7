/*
 * ax_barrier.c
 *	  One process pays for everybody's memory fence: Linux' membarrier().
 *
 * A reader of the epoch needs its announcement to be seen before it reads on,
 * which a plain store does not give.  Here the other side gives it.  Before it
 * looks at the announcements, it has the kernel put a full fence into every
 * running thread of every process that has joined.  After Desnoyers et al.,
 * "User-Level Implementations of Read-Copy Update" (TPDS 2012), whose liburcu does
 * so between the threads of one process.  The command for several processes came
 * with Linux 4.16.
 *
 * src/core/base/README.md: Memory and epochs
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "ax_internal.h"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* linux/membarrier.h, which older headers lack */
#define GLOBAL_EXPEDITED			(1 << 1)
#define REGISTER_GLOBAL_EXPEDITED	(1 << 2)

static bool
membarrier(int command)
{
#if defined(__linux__) && defined(SYS_membarrier)
	return syscall(SYS_membarrier, command, 0, 0) == 0;
#else
	(void) command;
	return false;
#endif
}

bool
ax_barrier_join(void)
{
	return membarrier(REGISTER_GLOBAL_EXPEDITED);
}

bool
ax_barrier(void)
{
	return membarrier(GLOBAL_EXPEDITED);
}
