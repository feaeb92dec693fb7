/*
 * cmpkit.h
 *	  A caller of trees whose order only the caller knows: it compares by memcmp,
 *	  or by the reverse, and has one tree.
 */
#ifndef CMPKIT_H
#define CMPKIT_H

#include "core/ax_cmp.h"

#define CK_AREA		((size_t) 256 << 20)
#define SLOTS		16
#define KEYBUF		70000

extern ax_area *ck_area;
extern ax_tree *ck_tree;
extern uint64_t ck_gen;
extern bool ck_reversed;		/* the order, in place of memcmp's */

/* What in place of an order says which of two keys that differ is below. */
typedef enum ck_lie
{
	CK_ORDER,
	CK_RANDOM,					/* for a third of the pairs it is chance */
	CK_CYCLE,					/* one of three beats the next */
	CK_BELOW					/* always the first */
} ck_lie;

extern ck_lie ck_lies;

typedef struct worker
{
	ax_ctx		cx;
	ax_cpath	p;
	uint8_t	   *buf;			/* a long key */
	uint64_t	restarts;
	int			losses;			/* of this operation */
	uint64_t	rng;
	int			id;
	bool		yields;
	void		(*beside) (struct worker *);	/* what "other" does while this one compares */
	struct worker *other;
} worker;

/* To ck_area, as this slot; ck_detach frees what it has. */
extern void ck_attach(worker *w, int slot);
extern void ck_detach(worker *w);
extern uint64_t ck_rnd(worker *w);

/* An empty ck_tree in place of the one there was; and room for its pages in a path. */
extern void ck_open(worker *w, uint32_t page_size);
extern void ck_buffers(worker *w);

/*
 * To the leaf of a key and its place there: AX_OK, AX_NOTFOUND, or AX_CHANGED.  The
 * others try until it is done, and take a turn when they have lost their place often:
 * AX_OK, AX_EXISTS, AX_NOTFOUND, AX_NOMEM, AX_STALE.
 */
extern ax_status ck_find(worker *w, const uint8_t *key, uint32_t len, uint32_t *at);
extern ax_status ck_insert(worker *w, const uint8_t *key, uint32_t len);
extern ax_status ck_remove(worker *w, const uint8_t *key, uint32_t len);
extern ax_status ck_contains(worker *w, const uint8_t *key, uint32_t len);

/* All entries one way: how many; -1: out of order. */
extern long ck_walk(worker *w, bool left);

/* Is the tree sound, with so many entries? */
extern bool ck_check(worker *w, uint64_t entries, char *why, size_t whylen);

/* Of keys that may be long one in so many is (61).  1: all, of 306 bytes. */
extern uint32_t ck_long_every;

/* Key number x of a set, 14 to 53 bytes, and if "longs" some up to 24 kB; its length. */
extern uint32_t ck_key(uint8_t *k, uint64_t x, bool longs);

#endif							/* CMPKIT_H */
