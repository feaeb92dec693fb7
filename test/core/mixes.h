/*
 * mixes.h
 *	  Many workers, threads or forked processes, on one tree or each on its own:
 *	  the loads, the trees, one timed cell.
 */
#ifndef MIXES_H
#define MIXES_H

#include "core/ax.h"
#include "meter.h"

typedef enum mx_load
{
	MX_UNIFORM,
	MX_SKEW,					/* self-similar 0.2: 80 % of the work on 20 % of the keys, and so on within */
	MX_RANGE,					/* a hundred adjacent keys */
	MX_TAIL,					/* ever larger keys, from one counter */
	MX_ZIPF,					/* numbers, Zipfian, theta 0.99: YCSB's */
	MX_ZIPF_TEXT,				/* the same, and keys are strings of 24 bytes */
	MX_LOADS
} mx_load;

extern const char *const mx_load_name[MX_LOADS];

#define MX_WORKERS_MAX	64

typedef struct mx_cell
{
	mx_load		load;
	int			reads;			/* per cent; MX_TAIL has none */
	int			workers;
	bool		forks;
	bool		own_trees;		/* of its own for every worker */
	double		seconds;
	char		mix;			/* of YCSB: 'A' to 'E', instead of "reads"; 0: none */
} mx_cell;

typedef struct mx_result
{
	double		mops;
	double		p50,
				p99,
				p999,
				max;			/* microseconds */
	double		slowest_to_mean;
	double		slowest_to_fastest;
} mx_result;

/* The area, slots for the workers, this process attached. */
extern void mx_setup(uint64_t keys);

/*
 * Fresh trees for the cells to come: one of "keys" keys, or (own > 0) that many,
 * among which the keys are shared out; for MX_TAIL one with few keys.
 * Bytes a key afterwards.
 */
extern double mx_open(ax_structure s, uint32_t page_size, mx_load load, uint64_t keys, int own);
extern void mx_info(ax_tree_info *ti);
extern void mx_close(void);

/* Every answer is checked; exits at the first that is wrong. */
extern mx_result mx_run(const mx_cell *c);

#endif							/* MIXES_H */
