/*
 * art_am.h
 *	  What the files of the access method know of one another.
 */
#ifndef ART_AM_H
#define ART_AM_H

#include "artidx.h"

#include "storage/lockdefs.h"

/*
 * What every operation on an index needs and would be slow to find each time.
 * Lives in rd_amcache, one chunk, so that an invalidation of the relation
 * throws it away; a reload can happen at any catalog access, so callers copy
 * what they use beyond the next one.
 */
typedef struct ArtRelCache
{
	Oid			spc,			/* whose: checked at every use */
				db,
				rel;
	ArtEntry   *entry;			/* NULL: not known to exist yet */
	ArtKeyDesc	kd;
} ArtRelCache;

extern ArtRelCache *art_relcache(Relation index);

/* The entry, if there is one; NULL means ABSENT (or not preloaded). */
extern ArtEntry *art_relcache_entry(Relation index);

/* The unique check and insert (art_unique.c). */
typedef struct ArtInsertState
{
	ArtKeyDesc	kd;
	ArtEntry   *entry;			/* NULL: not known to exist yet */
	ArtBuf		key;			/* encoded key, then the TID */
	uint32		keylen;			/* without the TID */
	ArtHazard  *hazard;			/* NULL: never needed one */
	MemoryContext cxt;			/* of all that, and of the slot */
} ArtInsertState;

extern bool art_insert_unique(Relation index, ArtInsertState *st,
							  Datum *values, bool *isnull, ItemPointer tid,
							  Relation heap, IndexUniqueCheck check);

#endif							/* ART_AM_H */
