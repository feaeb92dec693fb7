/*
 * history.h
 *	  What calls of several threads on a set of keys answered, and whether there is an
 *	  order of them that explains it.
 *
 * A key is there or not.  Each call takes effect at one moment between its begin and its
 * end.  Keys are independent of each other, so each is judged alone, exactly.  A scan says
 * of each key of its range that it was there or not, at some moment of the call.  The calls
 * of an engine whose scans are of one moment are judged together.
 *
 * Two kinds of reads may say either of a key whose insertion or removal they overlap,
 * whatever others were told: loose ones, and those that look into a tail buffer and a tree,
 * of a key that was put where it was already.  It may be in both then, and goes from one
 * after the other.  No statement sees that: what VACUUM removes is of a row that nobody sees.
 *
 * Source: Wing, Gong, "Testing and Verifying Concurrent Objects" (1993), with the memory of
 * states by Lowe, "Testing for Linearizability" (2017).
 */
#ifndef HISTORY_H
#define HISTORY_H

#include "core/ax.h"

#define H_KEYS	192
#define H_WORDS (H_KEYS / 64)
#define H_CALLS 2048

typedef enum h_kind
{
	H_INSERT,
	H_REMOVE,
	H_READ,						/* of keys [from, to), those in found[] were there */
	H_PUT						/* keys [from, to) are there afterwards, whatever was before */
} h_kind;

typedef struct h_call
{
	h_kind		kind;
	const char *name;
	int			thread;
	int			from;
	int			to;
	uint64_t	found[H_WORDS];
	ax_status	status;
	bool		one_moment;		/* what it read is of one moment */
	bool		loose;			/* it read a key's change from another place than the key's own */
	bool		buffered;		/* it looked into a buffer and a tree */
	uint32_t	begin;			/* numbers of events */
	uint32_t	end;			/* UINT32_MAX: it never ended */
	uint64_t	began;			/* steps of the schedule */
	uint64_t	ended;
} h_call;

/* A new history, of so many keys, of which those of the set are there. */
extern void h_start(int keys, const uint64_t *present);

/* A call begins. */
extern h_call *h_begin(h_kind kind, const char *name, int thread, int from, int to);

/*
 * It ends.  AX_OK, AX_EXISTS, AX_NOTFOUND are answers, and of reads AX_OK; after all others
 * nothing was done, or read.  A put has done what from and to say.
 */
extern void h_end(h_call *c, ax_status status);

/*
 * Is there an order?  Else *key is one that has none (-1: several together), and [*from, *to]
 * the steps of the calls that are about it.
 */
extern bool h_explained(int *key, uint64_t *from, uint64_t *to);

/* How many histories of one moment were too long to be judged. */
extern uint64_t h_unjudged;

/* The calls that are about a key; -1: all. */
extern void h_print(int key);

/* A number made of all that was called and answered, and how often, of this history. */
extern uint64_t h_sum(void);
extern int	h_calls(void);

static inline bool
h_in(const uint64_t *set, int i)
{
	return set[i / 64] >> (i % 64) & 1;
}

static inline void
h_add(uint64_t *set, int i)
{
	set[i / 64] |= UINT64_C(1) << (i % 64);
}

#endif							/* HISTORY_H */
