/*
 * predicate_locks.h
 *	  Predicate locks of serializable transactions on virtual pages.
 *
 * src/am/README.md: Serializable transactions
 */
#ifndef ART_AM_PREDICATE_LOCKS_H
#define ART_AM_PREDICATE_LOCKS_H

#include "access/genam.h"
#include "access/relscan.h"

#include "key/key.h"

/*
 * A scan's locks of the range that it reads, so far.  Zeroed with the scan.
 */
typedef struct ArtSsi
{
	bool		on;				/* what is read has to be locked */
	bool		known;			/* the rest is about the range below */
	bool		all;			/* all there is to read is locked */
	bool		backward;		/* from the end of the range on */
	LocalTransactionId lxid;	/* by whom */
	bool		lo_after,
				hi_after;
	uint32		lo_len,
				hi_len;
	ArtBuf		ends;			/* lo and hi */
	uint32		steps;			/* how often it had to lock more */
	uint32		bits;			/* the furthest interval locked: its depth */
	ArtBuf		cov;			/* and its first bytes */
} ArtSsi;

/*
 * A scan with a structure is about to read the plan's range, from its
 * beginning that way or from further on.  "whole": it will read all of it.  To
 * be called before each batch.
 */
extern void art_ssi_range(ArtSsi *s, IndexScanDesc scan, const ArtScanPlan *plan,
						  bool backward, bool begin, bool whole, MemoryContext cxt);

/*
 * A batch was read, up to the key "end" (no TID), or all that is left that way.
 * True: that was locked before.  False: it is now; read again.
 */
extern bool art_ssi_batch(ArtSsi *s, IndexScanDesc scan, const ArtScanPlan *plan,
						  bool backward, bool exhausted, const uint8 *end, uint32 endlen);

/* The end of the scan: free what it keeps.  The locks stay until the transaction ends. */
extern void art_ssi_end(ArtSsi *s);

/*
 * The entry was inserted by a serializable transaction, or was to be: "cols"
 * bytes of columns, "len" with payload and TID.  Who has read where it lies?
 * May raise.
 */
extern void art_ssi_inserted(Relation index, const ArtKeyDesc *kd,
							 const uint8 *key, uint32 cols, uint32 len);

#endif							/* ART_AM_PREDICATE_LOCKS_H */
