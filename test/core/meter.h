/*
 * meter.h
 *	  What every bench of the core needs: clocks, the random load L, latencies
 *	  counted in logarithmic bins, numbers from the environment, one CSV file.
 */
#ifndef METER_H
#define METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "core/ax.h"

/* ---- clocks -------------------------------------------------------------- */

/* Monotonic nanoseconds. */
static inline uint64_t
mr_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

/*
 * Ticks of the cheapest clock that all processors share (a constant-rate TSC,
 * some 10 ns to read, else CLOCK_MONOTONIC); mr_tick_ns() nanoseconds each.
 */
static inline uint64_t
mr_ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return mr_now();
#endif
}

extern double mr_tick_ns(void);

/*
 * L: nanoseconds of a load from a random cache line of "bytes" (a power of
 * two) of shared 4 KiB pages, each waiting for the last.
 */
extern double mr_load_ns(size_t bytes);

/* ---- latencies ----------------------------------------------------------- */

#define MR_SUB	16				/* bins an octave: 6 % wide at most */
#define MR_BINS	(60 * MR_SUB)

typedef struct mr_hist
{
	uint64_t	n;
	uint64_t	max;
	uint32_t	bin[MR_BINS];
} mr_hist;

/* Below MR_SUB ticks a bin each, above MR_SUB bins an octave. */
static inline int
mr_bin(uint64_t ticks)
{
	int			octave;

	if (ticks < MR_SUB)
		return (int) ticks;
	octave = 63 - __builtin_clzll(ticks) - 4;
	return octave >= 58 ? MR_BINS - 1
		: (octave + 1) * MR_SUB + (int) (ticks >> octave & (MR_SUB - 1));
}

static inline void
mr_hist_add(mr_hist *h, uint64_t ticks)
{
	h->n++;
	h->bin[mr_bin(ticks)]++;
	if (ticks > h->max)
		h->max = ticks;
}

extern void mr_hist_merge(mr_hist *to, const mr_hist *from);

/* The quantile q (0.999), in ticks: the upper end of its bin. */
extern uint64_t mr_hist_at(const mr_hist *h, double q);

/* ---- the run ------------------------------------------------------------- */

/* A number from the environment, or the default; exits if it is none. */
extern double mr_env(const char *name, double otherwise);

/* QUICK=1: fewer keys, shorter cells. */
extern bool mr_quick(void);

/*
 * The engines to measure, in the order of ENGINES ("art-olc btree-optiql"; not
 * set: all of them, ART first); how many.  Exits if there is no such engine.
 */
extern int	mr_engines(ax_structure out[AX_STRUCTURES]);
extern bool mr_wanted(ax_structure s);

/* "art-olc"; the buffer is static, one for each engine. */
extern const char *mr_engine(ax_structure s);

/* Exits, saying what was to be measured, unless the status is as it must be. */
extern void mr_need(ax_status got, ax_status want, const char *what);
extern void mr_die(const char *fmt,...)
__attribute__((format(printf, 1, 2), noreturn));

/* The median; sorts v. */
extern double mr_median(double *v, int n);

/*
 * One value, appended to the file named by CSV (nothing without).  way:
 * threads, forks or single; reads: the share of them in per cent, -1 if that
 * has no meaning.
 */
extern void mr_csv(const char *bench, const char *way, const char *load, int reads,
				   const char *engine, int workers, const char *measure,
				   double value, const char *unit);

#endif							/* METER_H */
