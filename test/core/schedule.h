/*
 * schedule.h
 *	  A deterministic scheduler: some threads of the core, of which one runs at a time,
 *	  and another goes on where a seed says.
 *
 * The threads are contexts of one thread of the system.  Another goes on at operations on
 * atomics (schedule_map.h) and wherever the core waits.  Time is made of these steps, so
 * waits come to their ends without anybody's waiting.  All that happens hangs on the
 * plan's seed alone.
 *
 * Memory is sequentially consistent, but for the announcements of
 * epochs, which are seen late as in x86's memory model.
 *
 * Source: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of
 * Finding Bugs" (ASPLOS 2010), for SCHED_PCT.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#ifdef AX_SCHED

#include "core/ax.h"

#define SCHED_THREADS 4

typedef enum sched_kind
{
	SCHED_RANDOM,				/* any step, with a chance of 1 in "mean", any thread */
	SCHED_PCT,					/* the first in rank runs; "changes" times it becomes the last */
	SCHED_MARKED				/* as PCT, but it happens at pause points (AX_POINT) */
} sched_kind;

typedef struct sched_plan
{
	uint64_t	seed;
	sched_kind	kind;
	int			threads;
	uint32_t	mean;			/* RANDOM: steps between two changes */
	int			changes;		/* PCT, MARKED: at most 8 */
	uint32_t	length;			/* of the schedule, in steps or points, about */
	uint32_t	stop_at;		/* the thread that runs at this step stops; 0: none */
	bool		goes_on;		/* it goes on when all others have ended */
	void		(*run) (int thread);
} sched_plan;

/* The area, zeros, at SCHED_AREA.  Made once; zeros again after each schedule. */
extern void sched_area(size_t size, int nslots, size_t reserve, ax_area **area);

/* The port of the threads, and of the caller while none runs. */
extern const ax_port sched_port;

/*
 * Run the threads of a plan until all have ended, or the last one but one that stopped.
 *
 * Returns: the thread that stopped and did not go on, -1: none.
 */
extern int	sched_run(const sched_plan *plan);

/* What pauses now only measures how long that takes. */
extern bool sched_alone;

/* The thread that runs; -1: none, it is sched_run()'s caller. */
extern int	sched_thread(void);

/* Steps ever done, and changes of threads.  The first is a moment of the schedule, too. */
extern uint64_t sched_steps(void);
extern uint64_t sched_switches(void);

/*
 * The schedule has shown an error: says so, calls "sched_on_failure", prints the changes
 * of threads between the two moments (the last of them) and ends the program.
 */
extern void sched_fail(uint64_t from, uint64_t to, const char *fmt,...)
	__attribute__((format(printf, 3, 4), noreturn));
extern void (*sched_on_failure) (void);

/* Print every change of threads as it comes. */
extern bool sched_verbose;

#endif
#endif							/* SCHEDULE_H */
