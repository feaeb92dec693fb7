/*
 * ax_estimate.h
 *	  What the files of the estimate share: the sample, what is counted of it, and
 *	  the caller's memory.
 *
 * src/core/face/README.md: Estimates
 */
#ifndef AX_ESTIMATE_H
#define AX_ESTIMATE_H

#include <math.h>

#include "core/base/ax_area.h"
#include "core/radix/rt_node.h"

#define EST_DEPTH		136		/* levels of the whole, as in rt_bulk.c */
#define EST_MODEL_DEPTH 48		/* of a part; the caller's memory is finite */
#define EST_OWN			32		/* samples of a group that show its digits */
#define EST_FEW			4		/* that show at least what they have in common */
#define EST_CONTEXT		256		/* that lend their digits to the groups below */
#define EST_LOOK		512		/* of a context looked at */
#define EST_SIBLINGS	4		/* modelled siblings looked at */
#define EST_MODELLED	20000	/* modelled nodes; then one sibling is: few digits
								 * make many levels, and nobody interrupts us */
#define EST_MANY		64		/* samples a digit that need no smoothing */
#define EST_RUNS		8		/* told apart; more of them do as these */
#define EST_LIGHT		8		/* a value met more often has as many rows as that
								 * says; the others are taken together */

typedef struct est
{
	ax_keys		keys;
	int			fill;			/* entries a leaf should get */
	double		scale;			/* keys that one of the sample stands for */
	int			runs;			/* sorted loads, and how many heap blocks go */
	double		run_blocks;		/* into each */
	double		per_value;		/* rows of a light value */
	double		tid_common[AX_TID_BYTES];	/* of TIDs of one light value: share
											 * with so many bytes in common */
	uint64_t	rng;
	uint32_t	modelled;		/* nodes so far that the sample does not show */
	/* what the tree would have */
	double		objs[AX_NCLASSES];	/* objects in spans */
	double		were[EST_RUNS][AX_NCLASSES];	/* leaves after a run, and how many */
	double		stay[EST_RUNS][AX_NCLASSES];	/* of them the next leaves alone */
	double		big;			/* bytes in runs of their own */
	uint32_t	bump;			/* of the store's first page, and its end */
	uint32_t	bump_end;
	struct est_work *work;		/* the caller's memory, this struct included */
} est;

/* A range of the sample. */
typedef struct est_range
{
	uint64_t	first;
	uint64_t	n;
} est_range;

/* The digits at one position. */
typedef struct est_digits
{
	uint32_t	cnt[256];
	bool		end[256];		/* this digit is the last of the columns */
	uint32_t	n;				/* rows looked at */
	uint32_t	nend;			/* of them, whose digit is the last */
	uint32_t	ngoing;			/* the others, as counted in cnt */
	int			seen;
	double		rest;			/* mean length from here on, TID included, of
								 * those whose digit is not the last */
	bool		same;			/* all lengths are equal */
} est_digits;

/* Shares of the runs in the keys of a node. */
typedef struct est_runs
{
	double		share[EST_RUNS];
} est_runs;

/* The child at a byte value of a node. */
typedef enum est_kind
{
	EST_NOTHING = 0,			/* or what hangs further left goes on */
	EST_EMBED,
	EST_LEAF,
	EST_INNER
} est_kind;

/* The slots of a node. */
typedef struct est_slots
{
	est_kind	kind[256];
	bool		room[256];		/* a leaf has room for more than it holds */
} est_slots;

/* The state of a node while those below it are looked at. */
typedef struct est_level
{
	est_digits	d;
	double		r[256];			/* rows of each digit */
	double		v[256];			/* values, where they are known */
	est_runs	mine;
	est_slots	slots;
	int			nlater;
	uint8_t		later[256];		/* digits below which there is no sample */
} est_level;

/*
 * The caller's memory: a node's tables are too large for the stack of so many
 * levels.  "level" has one for each depth; the others serve one node at a time.
 */
typedef struct est_work
{
	est			e;
	est_digits	other;
	double		share[256];
	double		now[256], before[256];	/* est_load's */
	est_slots	old;
	est_level	level[EST_MODEL_DEPTH + 2];
} est_work;

_Static_assert(sizeof(est_work) <= AX_ESTIMATE_WORK, "the caller's memory suffices");

/* The keys that go into one leaf. */
typedef struct est_lump
{
	int			n;
	double		bytes;
	bool		same;
} est_lump;

static inline uint32_t
est_len(const est *E, uint64_t i)
{
	return ax_key_len(&E->keys, i);
}

/* ---- ax_estimate_objects.c: sizes of what is counted and not made ---- */

/* As rt_leaf_fits. */
extern bool est_fits(const est_lump *l);

/* The size of a leaf with these keys and room for "cap", as rt_leaf_new's. */
extern uint32_t est_leaf_size(const est_lump *l, int cap);

/* Count such a leaf. */
extern void est_leaf(est *E, const est_lump *l, int cap, double weight);

/* Count a node of so many children, whose prefix has plen bytes. */
extern void est_inner(est *E, int children, uint32_t plen, double weight);

/* Count the leaves of n entries that lie too deep for nodes to be looked at. */
extern void est_deep(est *E, double n, double rest, double weight);

/* The first key from i on, before n, with another byte at "off". */
extern uint64_t est_group_end(const est *E, uint64_t i, uint64_t n, uint32_t off);

/* The first position from "off" on where the ends of a sorted range differ. */
extern uint32_t est_common(const est *E, const est_range *r, uint32_t off);

/* Bytes of all objects that were counted, on top of those of the store. */
extern double est_bytes(const est *E, double store);

/* ---- ax_estimate_digits.c: what a sample tells of the keys, and draws from it ---- */

/* A random number from 0 to 1. */
extern double est_random(est *E);

/* A count whose mean is this. */
extern double est_draw(est *E, double mean);

/* The digits at a position of a range; see the function. */
extern void est_look(const est *E, const est_range *r, uint32_t p, bool tid, bool all,
					 bool distinct, est_digits *d);

/* Shares of the digits that end no column.  Few counts are smoothed. */
extern void est_shares(const est_digits *d, double share[256]);

/* Rows of the values that end at this position, over their digits. */
extern void est_values(est *E, double rows, est_digits *d, uint32_t most_met, double out[256]);

/* Strew n things, each on its own, over digits with these shares. */
extern void est_scatter(est *E, double n, const double share[256], double out[256]);

/* The runs that the samples of a group came with. */
extern void est_runs_of(const est *E, const est_range *r, est_runs *out);

/* Sets per_value and tid_common. */
extern void est_light(est *E, uint64_t n);

/* ---- ax_estimate_model.c: the tree of a part ---- */

/* Count all that a tree of "total" keys has, of which the sample is a part. */
extern void est_model(est *E, const est_range *sample, double total);

#endif							/* AX_ESTIMATE_H */
