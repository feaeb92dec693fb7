/*
 * build.h
 *	  Making a structure's entries of a table's rows: reading the heap, sorting,
 *	  loading, in one process or many, and what a build refuses.
 *
 * src/live/README.md: Residency
 * src/build/README.md: Builds
 */
#ifndef ART_BUILD_H
#define ART_BUILD_H

#include "access/htup_details.h"
#include "access/tableam.h"
#include "datatype/timestamp.h"
#include "storage/lock.h"

#include "area/area.h"
#include "eval/eval.h"

/* ---- heap_rows.c ---- */

typedef enum ArtHeapMode
{
	ART_HEAP_BUILD,				/* what anybody may still see: a build's rules */
	ART_HEAP_MVCC				/* what a snapshot sees; checks for serializable
								 * conflicts of what it does not see */
} ArtHeapMode;

typedef struct ArtHeapReader ArtHeapReader;
typedef void (*ArtHeapRow) (void *arg, const uint8 *key, uint32 keylen, uint64 tid);

/*
 * Begin to read.  The caller holds a lock on the table and, in build mode, a registered
 * snapshot, which keeps TOASTed values.  MVCC mode is given the snapshot.  Build mode
 * takes its horizon here, after BUILDING was published.  Allocates in a child of the
 * current memory context.  ERROR if this process may not evaluate the index.
 */
extern ArtHeapReader *art_heap_begin(Relation heap, Relation index,
									 const ArtKeyDesc *kd, ArtHeapMode mode,
									 Snapshot snapshot);

/*
 * In build mode: take the horizon anew, under the snapshot that the caller has registered
 * now.
 */
extern void art_heap_horizon(ArtHeapReader *r);

/*
 * Call fn for every row of one page: its key without TID, which is good during the call
 * only, and the TID of its root.  In build mode one (key, TID) can come more than once.
 * May raise whatever the index's expressions raise.  Waits for the inserter of a row whose
 * expression errs.
 */
extern void art_heap_page(ArtHeapReader *r, BlockNumber blkno, ArtHeapRow fn,
						  void *arg);

/*
 * The same of the rows whose roots are left to do (bit i: line pointer i + 1), root by root.
 * In build mode.  Waits for nobody, and is the owner only if the caller is.  When a row raises an
 * error, "root" is its root, and "inserter" its transaction, if that was in progress.  "dying": it is
 * recently dead, and has TOASTed values.
 */
typedef struct ArtHeapRoots
{
	uint64	   *left;			/* a bit is cleared when its rows are done */
	bool		toasted;		/* there is a snapshot: keys may be TOASTed */
	TimestampTz until;			/* stop between two roots then; 0: do not */
	OffsetNumber root;			/* 0: at none */
	TransactionId inserter;
	bool		dying;
} ArtHeapRoots;

typedef enum ArtHeapGot
{
	ART_HEAP_ALL,
	ART_HEAP_STOPPED,
	ART_HEAP_TOASTED			/* a snapshot is needed for the next */
} ArtHeapGot;

/*
 * Call fn for the rows of one page that "roots" leaves to do, see there.  The result says
 * why it returns before all are done.
 */
extern ArtHeapGot art_heap_roots(ArtHeapReader *r, BlockNumber blkno, ArtHeapRoots *roots,
								 ArtHeapRow fn, void *arg);

/*
 * Does the page of this TID, read now, still give this key (without TID) for it?  Errs and
 * waits as art_heap_page().
 */
extern bool art_heap_still(ArtHeapReader *r, uint64 tid, const uint8 *key,
						   uint32 keylen);

/* The end; frees everything. */
extern void art_heap_end(ArtHeapReader *r);

/*
 * The root line pointers of the rows of an all-visible page, of which each is live: 0 for a line
 * pointer without a row.  Returns the first row that has no root, or 0.
 */
extern OffsetNumber art_visible_roots(Page page, OffsetNumber *roots);

/* Errs: a row of the table has no root. */
extern void art_report_orphan(Relation heap, BlockNumber blkno, OffsetNumber off) __attribute__((noreturn));

/* ---- table_scan.c ---- */

/*
 * Hand every row of the table, or of this process's share of it, to the callback, as
 * core's table_index_build_scan() does.  The arguments, the locks and the result are those
 * of that function.
 */
extern double art_build_heap_scan(Relation heap, Relation index, IndexInfo *info, bool progress,
								  IndexBuildCallback callback, void *arg, TableScanDesc scan);

/* ---- btree_limit.c ---- */

typedef enum ArtLimit
{
	ART_LIMIT_UNKNOWN,			/* is it a constraint's index? */
	ART_LIMIT_NONE,
	ART_LIMIT_BTREE
} ArtLimit;

/*
 * ERROR 54000, as btree's, if the index is a constraint's and the row is too
 * long for btree.  Whether it is one is looked up when there is a long row first,
 * and kept in *limit.  Garbage goes to the current memory context.
 */
extern void art_check_btree_limit(Relation heap, Relation index, ArtLimit *limit,
								  Datum *values, bool *isnull, ItemPointer tid);

/* The same of all rows of a table, with an index that is to be a constraint's. */
extern void art_check_rows_btree_limit(Relation heap, Relation index);

/* ---- refusals.c ---- */

/*
 * Is the index one that the user asks for now?  And
 * what CREATE INDEX refuses, which is the first thing in artbuild.
 */
extern bool art_index_is_new(Relation index);
extern void art_check_supported(Relation heap, Relation index,
								struct IndexInfo *indexInfo);

/* ---- sorted_run.c ---- */

/* subphases of pg_stat_progress_create_index (1 is "initializing") */
#define ART_PHASE_HEAP_SCAN	2	/* scanning table, sorting runs */
#define ART_PHASE_LOAD		3	/* loading sorted keys */

/*
 * A run of encoded keys (with TIDs), sorted and loaded when full: shared by
 * CREATE INDEX and the rebuild (src/build/sorted_run.c).  Bounded by
 * maintenance_work_mem.
 */
typedef struct ArtRun ArtRun;
extern ArtRun *art_run_begin(Relation index, const ArtKeyDesc *kd, uint64 gen,
							 ArtEntry *e, bool check_unique, Relation heap,
							 ArtRoomFor room);
/*
 * Add one entry: the encoded key without its TID, and the TID.  Loads the run
 * when it is full.  Once the generation is gone (STALE), or no memory is to be
 * had (after art_make_room), it does nothing more.  The caller finds out when
 * it publishes READY, or by art_run_nomem.
 */
extern void art_run_add(ArtRun *run, const uint8 *key, uint32 keylen, uint64 tid,
						bool alive);
/* load what is collected now: afterwards everything added is in the tree */
extern void art_run_flush(ArtRun *run);
extern uint64 art_run_pending(const ArtRun *run);	/* collected, not loaded */
extern bool art_run_nomem(const ArtRun *run);
extern void art_ask_for_huge_pages(void *p, Size size);	/* of large memory of this process */
/* load the rest; returns entries; unique violation -> ERROR as nbtree's build */
extern uint64 art_run_end(ArtRun *run);

/*
 * ERROR 23505 of a build: two live rows have this key (without TID); unless a
 * NULL makes them differ, then it returns (sorted_run.c).
 */
extern void art_build_duplicate(Relation heap, Relation index,
								const ArtKeyDesc *kd, const uint8 *key,
								uint32 keylen);

/* ---- uniqueness_proof.c ---- */

/*
 * The proof that no two live rows have the same key, without a structure
 * (uniqueness_proof.c), for an ambuild that got no memory for one.  Keys go in, in
 * any order.  The end raises the error of a build that found a duplicate.
 */
typedef struct ArtProof ArtProof;
extern ArtProof *art_proof_begin(Relation heap, Relation index,
								 const ArtKeyDesc *kd);
extern void art_proof_add(ArtProof *proof, const uint8 *key, uint32 keylen,
						  bool hasnull);
extern void art_proof_end(ArtProof *proof);

/* ---- equal_entries.c ---- */

/*
 * The entries whose columns are those of a key, in order, batch by batch
 * (equal_entries.c).  It is ax_lookup where only TIDs follow the columns.  Else it
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

/*
 * Begin: the first batch, of up to max (at most ART_EQUAL_BATCH), of the entries with
 * these columns, which must stay where they are.  Statuses are ax_scan's, but for
 * AX_BUFFER.  Buffers are allocated in the current memory context when they are needed.
 */
extern ax_status art_equal_first(ArtEqual *q, const ArtKeyDesc *kd, ax_tree *tree,
								 uint64 gen, const uint8 *cols, uint32 len, uint32 max);

/* The next batch, when there is more. */
extern ax_status art_equal_next(ArtEqual *q);

/* Remove entry i of the batch.  Statuses are those of art_tree_remove(). */
extern ax_status art_equal_remove(ArtEqual *q, uint32 i);

/* The end; frees the buffers. */
extern void art_equal_end(ArtEqual *q);

/* ---- heap_build.c ---- */

typedef enum ArtPartRole
{
	ART_PART_AMBUILD,			/* CREATE INDEX and the like: not resumable */
	ART_PART_OWNER,
	ART_PART_HELPER
} ArtPartRole;

typedef enum ArtPartEnd
{
	ART_PART_DONE,				/* nothing is left to claim, all is loaded */
	ART_PART_GONE,				/* the generation is */
	ART_PART_NOMEM,
	ART_PART_LEFT				/* gave way; the rest is for others */
} ArtPartEnd;

typedef struct ArtPart ArtPart;

/*
 * artidx.build_priority: the share of the time, in per cent, that a build in the
 * background works.
 */
extern int	art_build_priority;

/*
 * Call art_part_end() for this process's part in that build, if it has one.  For the frame
 * of ambuild.
 */
extern void art_own_build_end(ArtEntry *e, uint64 gen);

extern void art_part_room(void);	/* ERROR when another one cannot be had */

/*
 * Remember that this process takes part, so that an abort or exit gives back what it has.
 * The caller has done the shared side, and has called art_part_room() before: then it
 * never fails.
 */
extern ArtPart *art_part_begin(ArtEntry *e, uint64 gen, ArtPartRole role);

/*
 * Join as a helper.  The caller holds the helpers' place, shared.  NULL: there is no build
 * with an owner, or nothing is left to claim.  Takes the partition lock.  ERROR as
 * art_part_room().
 */
extern ArtPart *art_part_help(ArtEntry *e);

/*
 * For the owner, which holds the build's place: it has read the table's size after
 * BUILDING was published.  From here on the build can be shared, and left.  Takes the
 * partition lock.
 */
extern void art_part_blocks(ArtPart *part, BlockNumber nblocks);

/*
 * Take part until nothing is left to claim, with all that this needs: memory, a snapshot,
 * a run.  gives_way: in the background, where it rests, and leaves when others wait.  Errs
 * for what the index's expressions raise, and when cancelled.  The caller then calls
 * art_part_end().
 */
extern ArtPartEnd art_part_work(ArtPart *part, Relation heap, Relation index,
								ArtRoomFor room, bool gives_way);

/*
 * For the owner, which holds both places, exclusive: is every block in the structure?
 * Takes the partition lock.
 */
extern bool art_part_done(ArtPart *part);

/* Milliseconds that owners have spent on the build, this one until now. */
extern double art_part_spent(const ArtPart *part);

/*
 * Leave the build.  If it is not over, the blocks that were claimed and not loaded are
 * given back.  A build of ambuild fails then.  Takes the partition lock.
 */
extern void art_part_end(ArtPart *part);

/*
 * Does this process take part in building this structure now?  An expression of the index
 * then uses the index itself.
 */
extern bool art_part_of(const ArtEntry *e);

extern bool art_takes_part(void);	/* this process, in any build */

/* When the statement or the transaction is going to be cancelled.  0: never. */
extern TimestampTz art_statement_deadline(void);

/*
 * Does any process wait for this lock, in this mode (NoLock: in any)?  Takes one partition
 * lock of core's lock manager.
 */
extern bool art_lock_awaited(const LOCKTAG *tag, LOCKMODE mode);

/*
 * Leave the builds that an aborted subtransaction, or with "all" any one, left in the
 * middle.  A structure of ambuild goes.
 */
extern void art_own_builds_abort(SubTransactionId subid, bool all);

/* Leave all builds, when this process exits. */
extern void art_own_builds_exit(void);

/* A subtransaction was committed into its parent: its builds are the parent's. */
extern void art_own_builds_reparent(SubTransactionId subid,
									SubTransactionId parent);

/* ---- sorting by comparison (compared_sort.c) ---- */

typedef struct ArtSort ArtSort;

/*
 * Begin.  tids: the keys have their TIDs, which are the last column then.  All is
 * allocated in a child of cxt.  More than "budget" bytes of keys go to temporary files.
 */
extern ArtSort *art_sort_begin(const ArtKeyDesc *kd, bool tids, Size budget,
							   MemoryContext cxt);

/* Add a key; it is copied.  May compare, so it raises what the comparison function does. */
extern void art_sort_add(ArtSort *s, const uint8 *key, uint32 len);

/* All were added: sort them. */
extern void art_sort_perform(ArtSort *s);

/* The next key in order, good until the next call.  False: there is none. */
extern bool art_sort_next(ArtSort *s, const uint8 **key, uint32 *len);

/* The end; frees everything, files too. */
extern void art_sort_end(ArtSort *s);

/* A key, with its length in the 4 bytes before it, and what it is compared by. */
typedef struct ArtSortItem
{
	Datum		first;			/* of the first column, or its abbreviation */
	const uint8 *key;
} ArtSortItem;

/* Sort keys (with TIDs) in memory; "first" need not be set. */
extern void art_sort_items(const ArtKeyDesc *kd, ArtSortItem *items, uint64 n);

/* ---- row_sample.c ---- */

/*
 * Call "row" for each row of a sample of the table's blocks, of which there are nblocks: of
 * at most so many, in their order, by the seed; of all blocks, if there are no more.  A row
 * is one that the active snapshot sees.  Returns how many blocks were read.
 */
extern BlockNumber art_sample_blocks(Relation rel, BlockNumber nblocks, BlockNumber most, uint32 seed,
									 void (*row) (TupleTableSlot *slot, void *arg), void *arg);

#endif							/* ART_BUILD_H */
