/*
 * check.h
 *	  The check of a structure against itself and its table: at one go, as
 *	  artidx_check (check_function.c), or piece by piece (check_after_crash.c).
 *
 * src/views/README.md: The check
 */
#ifndef ART_VIEWS_CHECK_H
#define ART_VIEWS_CHECK_H

#include "access/relscan.h"
#include "nodes/execnodes.h"
#include "utils/snapshot.h"

#include "am/am.h"
#include "area/area.h"

#define ART_CHECK_BATCH		1000	/* entries looked up in the heap at one time */

/*
 * One check, or a piece of one.  The caller sets the first four, all else being zero;
 * heap and index are open and locked.
 */
typedef struct ArtCheck
{
	Relation	heap;
	Relation	index;
	Snapshot	snapshot;		/* registered; NULL: for the walk only */
	uint64		only;			/* not 0: this generation, else ERROR 55000 */

	ArtKeyDesc *kd;
	ArtEntry   *entry;
	ax_ctx	   *cx;
	ax_tree    *tree;
	uint64		gen;
	MemoryContext tmp;
	ArtBuf		key;
	ArtAsOwner	save;			/* of whoever checks */
	bool		may_see;		/* the checker: what errors say of rows */
	bool		of_rows;		/* an error now is one of a row's expressions */

	/* found */
	ax_tree_info walk;			/* counted by the core's walk */
	uint64		counter;		/* entries by the tree's counters */
	uint64		scanned;		/* entries met by the ordered scan */
	uint64		visible;		/* of which lead to a row we see */
	int64		rows;			/* rows we see in the heap */

	/* while entries are looked up in the heap */
	ArtEval    *eval;
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
	ArtHazard  *hazard;
} ArtCheck;

/* Where the core's walk over the structure is.  Zero, and then a buffer "pos". */
typedef struct ArtCheckWalk
{
	bool		begun;
	int			tries;			/* that ended with a difference */
	int64		first_diff;
	ax_tree_info before;		/* when it began */
	ax_checking at;
	bool		rested;			/* set by the caller: it did other things since */
	ArtBuf		pos;
} ArtCheckWalk;

/* ---- check_function.c ---- */

/*
 * Become the table's owner (src/eval), and find the structure; and the reverse.  All of these
 * raise ERROR XX002 for a difference.  The abort of the transaction cleans up.
 */
extern void art_check_begin(ArtCheck *c);
extern void art_check_end(ArtCheck *c);

/* Some leaves more of the structure.  True: that was all of it. */
extern bool art_check_walk(ArtCheck *c, ArtCheckWalk *w);

/*
 * Each row in n blocks from the first on, that the snapshot sees, has its entry.  With
 * InvalidBlockNumber: in all blocks, the first being 0.
 */
extern void art_check_heap(ArtCheck *c, BlockNumber first, BlockNumber n);

/* Batches of entries until then, or to the end of the pass, against the heap. */
extern void art_check_entries(ArtCheck *c, ArtPass *w, TimestampTz until);

/* ---- disorder.c ---- */

/*
 * An entry of a compared index is not where comparing finds it.  ERROR that shows why its
 * operator class is no order, if it is none.
 */
extern void art_check_disorder(ArtCheck *c, const uint8 *key, uint32 len);

#endif							/* ART_VIEWS_CHECK_H */
