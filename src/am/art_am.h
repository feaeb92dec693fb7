/*
 * art_am.h
 *	  What the files of the access method know of one another.
 */
#ifndef ART_AM_H
#define ART_AM_H

#include "artidx.h"

#include "storage/lockdefs.h"

/*
 * The facts that every operation on an index needs and that would be slow to
 * find each time.  They live in rd_amcache, one chunk, so that an invalidation
 * of the relation throws them away.  A reload can happen at any catalog
 * access, so callers copy what they use beyond the next one.
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

/*
 * The proof that no two live rows have the same key, without a structure
 * (art_prove.c), for an ambuild that got no memory for one.  Keys go in, in
 * any order.  The end raises the error of a build that found a duplicate.
 */
typedef struct ArtProof ArtProof;
extern ArtProof *art_proof_begin(Relation heap, Relation index,
								 const ArtKeyDesc *kd);
extern void art_proof_add(ArtProof *proof, const uint8 *key, uint32 keylen,
						  bool hasnull);
extern void art_proof_end(ArtProof *proof);

/*
 * ERROR 23505 of a build: two live rows have this key (without TID); unless a
 * NULL makes them differ, then it returns (art_run.c).
 */
extern void art_build_duplicate(Relation heap, Relation index,
								const ArtKeyDesc *kd, const uint8 *key,
								uint32 keylen);

/* The unique check and insert (art_unique.c). */
typedef struct ArtInsertState
{
	ArtKeyDesc	kd;
	ArtEntry   *entry;			/* NULL: not known to exist yet */
	ArtBuf		key;			/* encoded key, then the TID */
	uint32		keylen;			/* without the TID */
	uint32		collen;			/* nor the payload */
	ArtLimit	limit;
	ArtHazard  *hazard;			/* NULL: never needed one */
	MemoryContext cxt;			/* of all that, and of the slot */
} ArtInsertState;

/*
 * The entries whose columns are those of a key, in order, batch by batch
 * (art_equal.c).  It is ax_lookup where only TIDs follow the columns.  Else it
 * is a scan with keys, since an entry's payload is its own.
 */
#define ART_EQUAL_BATCH 32

typedef struct ArtEqual
{
	const ArtKeyDesc *kd;
	ax_ctx	   *cx;
	ax_tree    *tree;
	uint64		gen;
	const uint8 *cols;
	uint32		len;
	uint32		max;			/* entries to ask for */
	uint32		n;				/* entries of this batch */
	bool		more;			/* there may be another */
	uint64		tids[ART_EQUAL_BATCH];
	uint32		key_off[ART_EQUAL_BATCH + 1];
	ArtBuf		keys;			/* data NULL: not needed yet */
	ArtBuf		last;
	ArtBuf		from;
} ArtEqual;

extern ax_status art_equal_first(ArtEqual *q, const ArtKeyDesc *kd, ax_ctx *cx,
								 ax_tree *tree, uint64 gen, const uint8 *cols,
								 uint32 len, uint32 max);
extern ax_status art_equal_next(ArtEqual *q);
extern ax_status art_equal_remove(ArtEqual *q, uint32 i);
extern void art_equal_end(ArtEqual *q);

/* ---- art_pass.c ---- */

typedef struct ArtPass
{
	const ArtKeyDesc *kd;
	ax_ctx	   *cx;
	uint32		max;			/* entries a batch */
	uint32		n;				/* in this one */
	uint64	   *tids;
	uint32	   *key_off;		/* entry i lies at [i] to [i + 1] of keys */
	ArtBuf		keys;
	ArtBuf		from;			/* the last entry before the batch */
	ArtBuf		last;			/* of the batch */
	bool		done;
} ArtPass;

extern void art_pass_init(ArtPass *w, const ArtKeyDesc *kd, ax_ctx *cx, uint32 max,
						  uint32 keybuf);
extern void art_pass_begin(ArtPass *w);
extern ax_status art_pass_next(ArtPass *w, ax_tree *tree, uint64 gen);
extern void art_pass_end(ArtPass *w);

extern void art_insert_plain(Relation index, ArtInsertState *st);
extern bool art_insert_unique(Relation index, ArtInsertState *st,
							  Datum *values, bool *isnull, ItemPointer tid,
							  Relation heap, IndexUniqueCheck check);

/*
 * Removal of what is dead among the entries of a key, by the insert of one that
 * an UPDATE did not change (art_churn.c).
 */
extern void art_churn(Relation index, Relation heap, ArtInsertState *st,
					  ItemPointer tid);

/*
 * Sorted entries of one process (art_store.c).  Filled in any order between
 * fill and finish, then read as a tree is.  The scan says AX_STALE when the
 * store does not cover the batch's beginning.
 */
typedef struct ArtStore ArtStore;
extern ArtStore *art_store_create(const ArtKeyDesc *kd, MemoryContext cxt);
extern void art_store_empty(ArtStore *s);
extern void art_store_free(ArtStore *s);
extern void art_store_fill(ArtStore *s, const ax_bound *lo, const ax_bound *hi,
						   const ax_bound *start, bool backward, bool spill);
extern void art_store_add(ArtStore *s, const uint8 *key, uint32 keylen, uint64 tid);
extern void art_store_finish(ArtStore *s);
extern ax_status art_store_scan(ArtStore *s, ax_batch *b);

/*
 * A scan that has no structure reads the table instead (art_private.c).
 * art_private_scan stands for ax_scan: AX_OK or AX_BUFFER, or an ERROR of the
 * index's expressions.
 */
typedef struct ArtPrivate ArtPrivate;
extern ArtPrivate *art_private_begin(IndexScanDesc scan, const ArtKeyDesc *kd,
									 const ArtScanPlan *plan, MemoryContext cxt);
extern void art_private_search_end(ArtPrivate *p);
extern void art_private_end(ArtPrivate *p);
extern bool art_private_guard(ArtPrivate *p);
extern bool art_private_nothing(ArtPrivate *p);
extern ax_status art_private_scan(ArtPrivate *p, ax_batch *b);
extern bool art_private_still(ArtPrivate *p, uint64 delgen, const uint8 *key,
							  uint32 len, uint64 tid);

#endif							/* ART_AM_H */

