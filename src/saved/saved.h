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

extern bool art_save_at_shutdown;

extern void art_saved_init(void);	/* from _PG_init, preloading */

/* ---- load_at_start.c ---- */

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

extern int	art_hot_read(ArtHot **hot);
extern bool art_hot_write(const ArtHot *hot, int n, int elevel);
extern int	art_hot_cmp(const void *a, const void *b);
extern const ArtHot *art_hot_find(const ArtHot *hot, int n, Oid indexoid,
								  const ArtLocator *loc);

#endif							/* ART_SAVED_H */
