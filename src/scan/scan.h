/*
 * scan.h
 *	  Scans of an index: the functions of the handler, the look-ups of a batched join,
 *	  and the private scan.
 *
 * src/scan/README.md: Scans
 */
#ifndef ART_SCAN_H
#define ART_SCAN_H

#include "access/relscan.h"
#include "nodes/tidbitmap.h"
#include "storage/buf.h"

#include "area/area.h"

/* ---- index_scan.c ---- */

/* ambeginscan.  The description of the keys is copied into the scan. */
extern IndexScanDesc artbeginscan(Relation index, int nkeys, int norderbys);

/*
 * amrescan.  The keys are looked at when the first entry is fetched, since some callers
 * change their arguments until then.  Removes what the last search found dead.
 */
extern void artrescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);

/*
 * amgettuple: the next entry that way.  False: there is none.  Between two calls nothing
 * of the structure is held.  ERROR: what an expression or a comparison raises.
 */
extern bool artgettuple(IndexScanDesc scan, ScanDirection dir);

/*
 * amgetbitmap: the TIDs of all entries into the bitmap, whose heap is visited under an
 * MVCC snapshot.  Returns how many.
 */
extern int64 artgetbitmap(IndexScanDesc scan, TIDBitmap *tbm);

/* amendscan: remove what was found dead, and free everything. */
extern void artendscan(IndexScanDesc scan);

/* Does it read the table, since there was no structure?  It then does so to its end. */
extern bool art_scan_is_private(IndexScanDesc scan);

/* ---- join_points.c ---- */

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

/* ---- entry_batches.c ---- */

/*
 * The entries of a search, a batch at a time, under an MVCC snapshot.  The scan is one of
 * index_beginscan() or index_beginscan_parallel() whose tuples nobody reads; a search
 * begins with index_rescan().
 */
typedef struct ArtEntries
{
	uint32		n;
	const uint64 *tids;			/* art_tid_unpack() */
	bool		certain;		/* the snapshot sees the row of each */
	bool		tested;			/* ask art_entries_pass() about each */
	const uint8 *keys;			/* NULL, or all have a value in each column and lie one
								 * behind the other, so far apart: */
	uint32		stride;
} ArtEntries;

#define ART_ENTRIES_MAX 512		/* of a batch */

/*
 * Several processes share a search: each entry goes to one of them.  The leader makes the
 * memory ready before each round.  Each process attaches its scan before index_rescan().
 */
extern Size art_entries_shared_size(void);
extern void art_entries_share(void *shared);
extern void art_entries_attach(IndexScanDesc scan, void *shared);

/* The scan's own description of keys. */
extern const ArtKeyDesc *art_entries_desc(IndexScanDesc scan);

/*
 * The next batch of a search, that way.  "keys": they will be asked for.  False: there is
 * none.  Nothing of the structure is held on return.  ERROR: what an expression or a
 * comparison raises.
 */
extern bool art_entries_next(IndexScanDesc scan, bool backward, bool keys, ArtEntries *e);

/*
 * Does the entry match the scan keys, and is its row not known to be dead to everybody?  If
 * not, *last becomes the last one of those behind it, perhaps itself, that do not either.
 */
extern bool art_entries_pass(IndexScanDesc scan, uint32 i, uint32 *last);

/* The key of an entry, without its TID. */
extern const uint8 *art_entries_key(IndexScanDesc scan, uint32 i, uint32 *len);

/*
 * The caller has read the visibility map for TIDs of the batch.  True: what the map said
 * of a page holds for the rows that the entries meant.  False: ask the heap.
 */
extern bool art_entries_current(IndexScanDesc scan);

/*
 * index_fetch_heap() has set kill_prior_tuple for an entry.  Call it before the heap is
 * asked for another row.
 */
extern void art_entries_dead(IndexScanDesc scan, uint32 i);

/* ---- group_skip.c ---- */

/*
 * Loose scans.  A group is the entries with the same first columns, and the group meant
 * is that of the entry which amgettuple gave last, whose row is visible.  "backward" is
 * the way of the scan.
 */

/*
 * The next entry that way is the first one behind the group.  It may be another one of
 * the group all the same.  The index tuple of the last entry is no longer good.
 */
extern void art_scan_skip_group(IndexScanDesc scan, int ncolumns, bool backward);

/*
 * The next entry the other way is the last one of the group.  False: nothing was done.
 * Not for ranges of arrays within a group.
 */
extern bool art_scan_group_end(IndexScanDesc scan, int ncolumns, bool backward);

/* Has the entry itself a NULL in this column, from 0?  False where the group cannot be told. */
extern bool art_scan_is_null(IndexScanDesc scan, int column);

/* ---- row_pages.c: for read_ahead.c and plan/join_executor.c ---- */

/*
 * Ask for a block of the table: true, if it has to be read.  *buffer: where it is in memory, or
 * InvalidBuffer.  Errors: those of PrefetchBuffer().
 */
extern bool art_row_ask_page(Relation heap, BlockNumber block, Buffer *buffer);

/* Ask memory for a line pointer of that page, and, a while later, for its tuple. */
extern void art_row_ask_line(Buffer buffer, OffsetNumber line);
extern void art_row_ask_tuple(Buffer buffer, OffsetNumber line);

/*
 * Pin the page of a row that is fetched next where it was a moment ago, so that the fetch need
 * not look for it.  Nothing happens where that buffer has another block.  *pins counts.
 */
extern void art_row_pin(IndexScanDesc scan, BlockNumber block, Buffer buffer, uint32 *pins);

/* ---- mark_restore.c ---- */

/* ammarkpos: mark the present entry. */
extern void artmarkpos(IndexScanDesc scan);

/* amrestrpos: the next entry is the one behind the mark, that way. */
extern void artrestrpos(IndexScanDesc scan);

/* ---- parallel_scan.c ---- */

/* amestimateparallelscan: bytes of shared memory for a parallel scan. */
#if PG_VERSION_NUM >= 180000
extern Size artestimateparallelscan(Relation index, int nkeys, int norderbys);
#elif PG_VERSION_NUM >= 170000
extern Size artestimateparallelscan(int nkeys, int norderbys);
#else
extern Size artestimateparallelscan(void);
#endif

/* aminitparallelscan: the leader makes that memory ready. */
extern void artinitparallelscan(void *target);

/*
 * amparallelrescan: the leader, before the workers of another round are started.  Takes
 * the spinlock.
 */
extern void artparallelrescan(IndexScanDesc scan);

/* ---- private_store.c ---- */

/*
 * Sorted entries of one process (private_store.c).  Filled in any order between
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

/* ---- private_scan.c ---- */

/*
 * A scan that has no structure reads the table instead (private_scan.c).
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

#endif							/* ART_SCAN_H */
