/*
 * am.h
 *	  The access method: the functions of its handler, and what they share.
 *
 * src/README.md: Overview
 */
#ifndef ART_AM_H
#define ART_AM_H

#include "storage/lockdefs.h"

#include "area/area.h"
#include "build/build.h"

/* ---- art_build.c ---- */

extern IndexBuildResult *artbuild(Relation heap, Relation index,
								  struct IndexInfo *indexInfo);
extern void artbuildempty(Relation index);

extern char *artbuildphasename(int64 phasenum);

/* ---- art_relcache.c ---- */

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
	bool		mirror;			/* art_planner.c's answer, */
	uint64		mirror_as_of;	/* and when it was made; 0: never */
	ArtKeyDesc	kd;
} ArtRelCache;

extern ArtRelCache *art_relcache(Relation index);

/*
 * WARNING for operator classes that are not what btree would have, once for each index, or
 * again.  Many an index of 0.1.0 has them by mistake.
 */
extern void art_tell_of_classes(Relation index, bool again);

/* The entry, if there is one; NULL means ABSENT (or not preloaded). */
extern ArtEntry *art_relcache_entry(Relation index);

/* ---- art_insert.c ---- */

extern bool artinsert(Relation index, Datum *values, bool *isnull,
					  ItemPointer heap_tid, Relation heap,
					  IndexUniqueCheck checkUnique, bool indexUnchanged,
					  struct IndexInfo *indexInfo);

/* A statement keeps this from row to row. */
typedef struct ArtInsertState
{
	ArtKeyDesc	kd;
	ArtEntry   *entry;			/* NULL: not known to exist yet */
	ArtBuf		key;			/* encoded key, then the TID */
	uint32		keylen;			/* without the TID */
	uint32		collen;			/* nor the payload */
	ArtLimit	limit;
	bool		ring;			/* inserts are written down (art_keep.h) */
	bool		waits;			/* entries may be queued (art_queue.c) */
	bool		validates;		/* CREATE INDEX CONCURRENTLY's rows, which are others' */
	uint32		rows;			/* so many were asked to */
	ArtHazard  *hazard;			/* NULL: never needed one */
	MemoryContext cxt;			/* of all that, and of the slot */
} ArtInsertState;

/* ---- art_plain.c ---- */

/*
 * Insert into the structure if there is one.  ABSENT: the next build will find
 * the row in the heap.
 */
extern void art_insert_plain(Relation index, ArtInsertState *st);

/*
 * An insert ended with s, which is neither AX_OK nor AX_EXISTS.  Does what it takes
 * before the caller tries again, beginning with the structure's state.  ERROR: only of
 * a unique index, for lack of memory.
 */
extern void art_insert_retry(Relation index, ArtEntry *e, uint64 gen, ax_status s);

/* ---- art_queue.c ---- */

extern void art_queue_init(void);

/*
 * From now on the entries of rows that are inserted may wait, or not.  Returns
 * what was so before, which the caller restores, after an ERROR, too.  They may
 * while a statement runs at whose end art_queue_flush() is called, and which aborts
 * no row of its own (ON CONFLICT does).
 */
extern bool art_queue_for(bool may);

/* Queue st->key.  False: the caller inserts it. */
extern bool art_queue_put(Relation index, ArtInsertState *st);

/* Entries in all queues of this process. */
extern uint32 art_queued;
extern void art_queue_flush_all(LOCKMODE lockmode);
extern void art_queue_flush_one(Relation index);

/*
 * Put in what waits: before others may read a structure for this process, or the
 * statement ends.  Memory that is full is no ERROR here.  lockmode: NoLock as long as
 * the statement has its indexes open.
 */
static inline void
art_queue_flush(LOCKMODE lockmode)
{
	if (unlikely(art_queued > 0))
		art_queue_flush_all(lockmode);
}

/* Put in the entries of one index, before this process reads its structure. */
static inline void
art_queue_flush_of(Relation index)
{
	if (unlikely(art_queued > 0))
		art_queue_flush_one(index);
}

/* ---- art_vacuum.c ---- */

extern IndexBulkDeleteResult *artbulkdelete(IndexVacuumInfo *info,
											IndexBulkDeleteResult *stats,
											IndexBulkDeleteCallback callback,
											void *callback_state);
extern IndexBulkDeleteResult *artvacuumcleanup(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats);

/* ---- art_scan.c ---- */

extern IndexScanDesc artbeginscan(Relation index, int nkeys, int norderbys);
extern void artrescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);
extern bool artgettuple(IndexScanDesc scan, ScanDirection dir);
extern int64 artgetbitmap(IndexScanDesc scan, TIDBitmap *tbm);
extern void artendscan(IndexScanDesc scan);

/* Does it read the table, since there was no structure?  It then does so to its end. */
extern bool art_scan_is_private(IndexScanDesc scan);

/* ---- art_points.c ---- */

/*
 * The searches of a batched join, many at once, each for a single key.  The
 * scan is one of index_beginscan() that nobody rescans or reads.
 */
#define ART_POINTS_MAX	256		/* keys at once */
#define ART_POINTS_TIDS 512		/* and entries */

typedef enum ArtPoint
{
	ART_POINT_ADDED,			/* it is among those to be looked up */
	ART_POINT_NOTHING,			/* no entry can match */
	ART_POINT_SINGLE			/* not a single key: use an index scan */
} ArtPoint;

/* Can the scan do it at all?  If not now, it never will. */
extern bool art_points_possible(IndexScanDesc scan);

/* Forget the keys, and remove the dead entries of the last search. */
extern void art_points_begin(IndexScanDesc scan);

/* Add a key.  The values of the scan keys need not live on. */
extern ArtPoint art_points_add(IndexScanDesc scan, ScanKey keys, int nkeys);

/*
 * Look the keys added up, beginning with that number.  Returns how many were
 * answered; counts[i] entries are those of key from + i, in tids.  0: the first
 * must be searched for with an index scan.  The entries of the search before
 * are gone.
 */
extern uint32 art_points_search(IndexScanDesc scan, uint32 from,
								const uint64 **tids, uint32 *counts);

/*
 * index_fetch_heap() has set kill_prior_tuple for an entry (its place in tids).
 * Call it before the heap is asked for another row.
 */
extern void art_points_dead(IndexScanDesc scan, uint32 entry);

/*
 * Publish the TID of an entry to VACUUM.  True: until the next one is, or
 * unpublish, its row is the one that the index means.  False: ask the heap.
 */
extern bool art_points_publish(IndexScanDesc scan, uint32 entry);
extern void art_points_unpublish(IndexScanDesc scan);

/* The key columns' values of a key looked up; allocates in the current context. */
extern void art_points_values(IndexScanDesc scan, uint32 point, Datum *values,
							  bool *isnull);

/* ---- art_mark.c ---- */

extern void artmarkpos(IndexScanDesc scan);
extern void artrestrpos(IndexScanDesc scan);

/* ---- art_parallel.c ---- */

#if PG_VERSION_NUM >= 180000
extern Size artestimateparallelscan(Relation index, int nkeys, int norderbys);
#elif PG_VERSION_NUM >= 170000
extern Size artestimateparallelscan(int nkeys, int norderbys);
#else
extern Size artestimateparallelscan(void);
#endif
extern void artinitparallelscan(void *target);
extern void artparallelrescan(IndexScanDesc scan);

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
	bool		at_from;		/* .. which is the first one of it, in place of that */
	ArtBuf		last;			/* of the batch */
	bool		at_last;		/* .. or the first of the next one */
	bool		done;
} ArtPass;

extern void art_pass_init(ArtPass *w, const ArtKeyDesc *kd, ax_ctx *cx, uint32 max,
						  uint32 keybuf);
extern void art_pass_begin(ArtPass *w);
extern ax_status art_pass_next(ArtPass *w, ax_tree *tree, uint64 gen);
extern void art_pass_end(ArtPass *w);

/* ---- art_unique.c ---- */

extern bool art_insert_unique(Relation index, ArtInsertState *st,
							  Datum *values, bool *isnull, ItemPointer tid,
							  Relation heap, IndexUniqueCheck check);

/* ---- art_dead.c ---- */

/* A bit for each structure, by generation, of which dead rows may be known. */
extern uint64 art_dead_gens;

/* See how far WAL is flushed. */
extern void art_dead_refresh(void);

/* May rows of a structure be known to be dead?  Asked once a statement or batch. */
static inline bool
art_dead_any(uint64 gen)
{
	if (likely((art_dead_gens >> (gen & 63) & 1) == 0))
		return false;
	art_dead_refresh();
	return true;
}

typedef enum ArtDeath
{
	ART_DEATH_UNKNOWN,
	ART_DEATH_WAIT,				/* dead to everybody, but the entry must stay */
	ART_DEATH_GO				/* dead, and the entry may go */
} ArtDeath;

/*
 * Ask what this process knows of the row behind a TID, which was read from a
 * structure in that deletion generation.
 */
extern ArtDeath art_dead_known(uint64 gen, uint64 delgen, uint64 tid);

/*
 * The heap just said that a row is dead to everybody.  If its WAL is not flushed, its
 * entry must wait, and that is remembered.
 *
 * Arguments: the index, and where the entry was read; fetch: which found the row,
 * or NULL.
 */
extern ArtDeath art_dead_seen(Relation index, const ArtKeyDesc *kd, uint64 gen,
						  uint64 delgen, uint64 tid, Relation heap,
						  struct IndexFetchTableData *fetch);

/* Flush, if entries that wait have cost as much.  No lock is held. */
extern void art_dead_flush(void);

/* ---- art_churn.c ---- */

/*
 * Removal of what is dead among the entries of a key, by the insert of one that
 * an UPDATE did not change (art_churn.c).
 */
extern void art_churn(Relation index, Relation heap, ArtInsertState *st,
					  ItemPointer tid);

/* ---- art_store.c ---- */

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

/* Order of two positions. */
extern int	art_bound_cmp(const ArtKeyDesc *kd, const ax_bound *a, const ax_bound *b);

/* ---- art_private.c ---- */

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
