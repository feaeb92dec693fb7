/*
 * saved.h
 *	  What is kept over a restart: the structures, and which indexes were used.
 *
 * src/saved/README.md: Saved files
 */
#ifndef ART_SAVED_H
#define ART_SAVED_H

#include "area/shared_state.h"

/* ---- save_at_shutdown.c ---- */

/* artidx.save_at_shutdown: are structures saved at a clean shutdown? */
extern bool art_save_at_shutdown;

extern void art_saved_init(void);	/* from _PG_init, preloading */

/* ---- load_at_start.c ---- */

/* Has the server a place for the loader?  Set in the postmaster. */
extern bool art_load_registered;

extern void art_load_register(void);	/* by art_saved_init */

/*
 * Give up what the loader never came for; for the launcher, now and then.
 * Cheap when there is nothing.  No lock held.
 */
extern void art_load_expire(void);

/* ---- hot_list.c ---- */

typedef struct ArtHot
{
	Oid			indexoid;
	ArtLocator	loc;
	uint32		uses;
	uint32		used_at;
	uint64		bytes;
} ArtHot;

/*
 * Read the file into *hot, an array in the current context, sorted.  Returns the number of
 * records.  A file that is wrong is only a line in the log.
 */
extern int	art_hot_read(ArtHot **hot);

/*
 * Replace the file.  The records' padding must be zeroed.  False, with a message of that
 * level, when it could not be written; the old one is still there then.
 */
extern bool art_hot_write(const ArtHot *hot, int n, int elevel);

/* Order of the records, for qsort: by database and index. */
extern int	art_hot_cmp(const void *a, const void *b);

/*
 * The record of an index in a sorted array, or NULL.  One whose file is another by now
 * (the index was rebuilt since) still tells how it was used.
 */
extern const ArtHot *art_hot_find(const ArtHot *hot, int n, Oid indexoid,
								  const ArtLocator *loc);

#endif							/* ART_SAVED_H */
