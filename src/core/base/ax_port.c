/*
 * ax_port.c
 *	  The default port: futex, sched_yield, the monotonic clock, madvise.
 *
 * The server's own port adds the reporting of wait events, and PANIC.
 *
 * src/core/base/README.md: Memory and epochs
 * src/core/base/README.md: Latches, restarts, waiting
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "core/ax.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

/*
 * The futex is not PRIVATE: waiters and wakers are different processes.  Any
 * failure (a changed word, a signal, the timeout) is a return like another:
 * callers look again.
 */
static void
port_park(uint32_t *word, uint32_t expected, uint32_t timeout_us)
{
	struct timespec ts;

#ifndef __linux__
	/* no portable futex: poll, in short naps */
	if (*(volatile uint32_t *) word != expected)
		return;
	if (timeout_us > 200)
		timeout_us = 200;
#endif
	ts.tv_sec = timeout_us / 1000000;
	ts.tv_nsec = (long) (timeout_us % 1000000) * 1000;
#ifdef __linux__
	syscall(SYS_futex, word, FUTEX_WAIT, expected, &ts, NULL, 0);
#else
	nanosleep(&ts, NULL);
#endif
}

static void
port_unpark_all(uint32_t *word)
{
#ifdef __linux__
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
#else
	(void) word;
#endif
}

static void
port_yield(void)
{
	sched_yield();
}

static uint64_t
port_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

/*
 * A shared mapping gives its pages back only by MADV_REMOVE.  Where that is
 * refused (huge pages of another alignment, a file system without holes) the
 * memory just stays resident: nobody relies on it.
 */
static void
port_discard(void *addr, size_t len)
{
#ifdef MADV_REMOVE
	(void) madvise(addr, len, MADV_REMOVE);
#else
	(void) addr;
	(void) len;
#endif
}

AX_NORETURN static void
port_panic(const char *what, const char *file, int line)
{
	fprintf(stderr, "artidx core: %s:%d: failed: %s\n", file, line, what);
	abort();
}

const ax_port ax_port_default = {
	.park = port_park,
	.unpark_all = port_unpark_all,
	.yield = port_yield,
	.now_ns = port_now_ns,
	.discard = port_discard,
	.wait_begin = NULL,
	.wait_end = NULL,
	.hurry = NULL,
	.panic = port_panic,
};
