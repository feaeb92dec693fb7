/*
 * follow.h
 *	  The follower of a standby: what its files share.
 *
 * src/follow/README.md: On a standby
 */
#ifndef ART_FOLLOW_H
#define ART_FOLLOW_H

#include "access/htup_details.h"
#include "access/xlogdefs.h"
#include "access/xlogreader.h"
#include "datatype/timestamp.h"
#include "utils/hsearch.h"

#include "area/shared_state.h"
#include "build/build.h"

/* ---- touched_rows.c ---- */

#define ART_PAGE_WORDS	((MaxHeapTuplesPerPage + 63) / 64)

/* The line pointers of one heap block: bit i is of number i + 1. */
typedef struct ArtTouchedBlock
{
	BlockNumber block;			/* key */
	uint64		rows[ART_PAGE_WORDS];	/* rows came here: to be read again */
	uint64		dead[ART_PAGE_WORDS];	/* for the next sweep */
	uint64		sweeping[ART_PAGE_WORDS];	/* for the sweep that has begun */
	uint64		freed[ART_PAGE_WORDS];	/* of both: unused by now */
	uint64		swept[ART_PAGE_WORDS];	/* dead, no entry is left, not unused yet */
	bool		listed;			/* among those to be read */
} ArtTouchedBlock;

/*
 * News of a table from WAL, which one index of it does not have yet.
 */
typedef struct ArtTouched
{
	MemoryContext cxt;
	HTAB	   *blocks;			/* NULL: none */
	ArtTouchedBlock *last;		/* of which something was said last, or NULL */
	ArtTouchedBlock **to_read;	/* rows came to them; they stay where they are */
	uint32		nto_read;
	uint32		room;			/* for so many of them */
	uint64		ndead;			/* line pointers for the next sweep */
	uint64		nsweeping;		/* and for the one that has begun */
	bool		due;			/* one of the former was freed: begin a sweep */
	bool		now;			/* one is used again: end it before that row is read */
	bool		anew;			/* it is of the former: begin it anew */
	BlockNumber cut;			/* entries from this block on are for the next sweep */
	BlockNumber sweeping_cut;	/* and for the one that has begun */
	uint64	   *dense;			/* of that: "sweeping" of each block from first on; NULL: none */
	BlockNumber first;
	BlockNumber ndense;
} ArtTouched;

/* Begin: nothing is known yet.  Blocks are kept in a child of cxt. */
extern void art_touched_init(ArtTouched *t, MemoryContext cxt);

/* Forget all, and free it.  The object can be used again. */
extern void art_touched_free(ArtTouched *t);

/* How many blocks something is known of. */
extern uint64 art_touched_blocks(const ArtTouched *t);

/*
 * A row came to this place: an entry is to be made of it.  If an entry of that place is
 * not swept yet, the sweep comes first.
 */
extern void art_touched_row(ArtTouched *t, BlockNumber block, OffsetNumber off);

/*
 * A block to which rows came; NULL: there is none.  The block stays until
 * art_touched_was_read().
 */
extern ArtTouchedBlock *art_touched_to_read(const ArtTouched *t);

/* The block, which art_touched_to_read() gave last, was read. */
extern void art_touched_was_read(ArtTouched *t, ArtTouchedBlock *b);

/* The line pointer is dead by now.  One that was swept and is not unused yet stays swept. */
extern void art_touched_dead(ArtTouched *t, BlockNumber block, OffsetNumber off);

/* The line pointer is unused. */
extern void art_touched_freed(ArtTouched *t, BlockNumber block, OffsetNumber off);

/* The table has so many blocks from now on.  A scan must meet no entry behind its end. */
extern void art_touched_cut(ArtTouched *t, BlockNumber block);

/*
 * A sweep begins, or begins anew: it is to take out all that is dead by now.  cxt: of the
 * answers to art_touched_is_sweeping(); it must live until art_touched_swept().
 */
extern void art_touched_sweep(ArtTouched *t, MemoryContext cxt);

/* Does the sweep that has begun take out an entry of this TID?  To be asked of every entry. */
extern bool art_touched_is_sweeping(const ArtTouched *t, uint64 tid);

/* Must an entry of this TID be swept, by this sweep or the next? */
extern bool art_touched_is_dead(const ArtTouched *t, BlockNumber block, OffsetNumber off);

/* Are there no entries that must be swept? */
extern bool art_touched_all_swept(const ArtTouched *t);

/*
 * May an entry be there whose line pointer is unused, or lies behind the table's end?
 * Entries of line pointers that are only dead may stay: the next VACUUM meets them.
 */
extern bool art_touched_must_sweep(const ArtTouched *t);

/*
 * A sweep has taken out the entries of all that were dead when it began.  Those that are
 * not unused yet are remembered, but not with "forget": they are too many.  An image of
 * their page may then have them swept once more, in vain.
 */
extern void art_touched_swept(ArtTouched *t, bool forget);

/* ---- followed_indexes.c ---- */

#define ART_FAILED_MS		60000	/* before an index that failed is begun again */

/*
 * An index that this follower keeps.  Nothing of it is open or locked between two
 * steps.  So the entry is found by identity, and the generation tells whether
 * the structure is still the one.
 */
typedef struct ArtFollowed
{
	struct ArtFollowed *next;	/* of all */
	struct ArtFollowed *next_of_heap;	/* of the same file */
	Oid			indexoid;
	Oid			heapoid;
	ArtLocator	loc;
	ArtLocator	heap;
	ax_tree    *tree;
	uint64		gen;
	ArtEngine	engine;			/* what its options asked for when it was opened */
	uint64		max_memory;
	MemoryContext cxt;			/* of all this */
	ArtKeyDesc *kd;
	bool		runs_code;		/* that may be somebody's, to make keys or compare them */
	bool		snapshot;		/* steps take one */
	ArtTouched	touched;
	MemoryContext sweep_cxt;	/* of the sweep that has begun */
	struct ArtPass *sweep;		/* NULL: none has */
	bool		closed;			/* to be forgotten */
	bool		behind;			/* marked so */
	bool		unswept;		/* the same */
	bool		building;
	BlockNumber next_block;		/* of the build */
	BlockNumber last_read;		/* .. the last one that it has begun, also in a step that failed */
	BlockNumber nblocks;
	BlockNumber step_block;		/* where its step began */
	bool		page_begun;
	uint64		page_left[ART_PAGE_WORDS];	/* of next_block */

	/* where a step is, and errors of rows: rows_in_error.c */
	ArtHeapRoots at;
	BlockNumber at_block;
	ItemPointerData erred;		/* a row that did once */
	uint32		given_way;		/* to replay, or a cancel, without getting on */
	ItemPointerData *doubtful;
	uint32		ndoubtful;
	ItemPointerData *gone;		/* rows of a build's step whose values are: left out */
	uint32		ngone;
	uint32		room_gone;
	TimestampTz since;
} ArtFollowed;

extern ArtFollower *art_me;		/* this process's */

/* The indexes that this process keeps. */
extern ArtFollowed *art_followed_list;

/*
 * The index is no longer kept, for this reason.  Does nothing if it is closed already.
 * After an error, or for want of memory, it is put off.  Takes the partition lock.
 */
extern void art_kept_close(ArtFollowed *x, ArtReason why, const char *error);

/* Do not begin this index before so many milliseconds from now. */
extern void art_kept_put_off(Oid indexoid, int ms);

/* Is the index put off now? */
extern bool art_kept_is_put_off(Oid indexoid);

/* The server's settings were read again: what was put off may be begun now. */
extern void art_kept_put_off_none(void);

/*
 * The view's words for an error that the log has: its SQLSTATE, since the view must not
 * tell what an error says of rows.  Good until the next call.
 */
extern const char *art_kept_reason(int sqlstate);

/*
 * The index was not begun: its entry, if there is one that is absent, gets what the view
 * says.  Takes the partition lock.
 */
extern void art_kept_tell_why(Oid indexoid, const ArtLocator *loc, const char *why);

/*
 * An error came when the index was to be begun: put it off, and say why.  Takes the
 * partition lock.
 */
extern void art_kept_not_begun(Oid indexoid, const ArtLocator *loc, int sqlstate);

/* ---- rows_in_error.c ---- */

typedef enum ArtVerdict
{
	ART_VERDICT_AGAIN,			/* at once, without that row, or once more with it */
	ART_VERDICT_LATER,			/* with the next batch; until then it is behind */
	ART_VERDICT_CLOSE
} ArtVerdict;

/*
 * An error came in a step, whose transaction is not ended yet: what is to be done with the
 * index?  *why: what the view is to say, set where the error is a row's, or an expression
 * did not end.
 */
extern ArtVerdict art_doubt(ArtFollowed *x, int sqlstate, const char **why);

/*
 * Have the doubtful rows read again with this batch.  A place that records say is dead
 * since has none.  A build does it at its end.
 */
extern void art_doubtful_read_again(ArtFollowed *x);

/*
 * Take out of "roots", the bits of a block's rows to be read by a build, those that are
 * doubtful, or whose values are gone.
 */
extern void art_doubtful_leave_out(const ArtFollowed *x, BlockNumber block, uint64 *roots);

/* ---- catch_up.c ---- */

/*
 * Begin to keep an index, if it is one that can be kept; in a transaction of its own.
 * NULL: it was not begun.  *again: perhaps later.  This call and the next ones open the
 * index and its table, and close them.
 */
extern ArtFollowed *art_keepup_begin(Oid indexoid, bool *again);

/*
 * Read some more of the table's pages, and load the rows before the lock is given back.
 * In a transaction of its own.  False: there was no lock.  Errs as art_heap_page().
 */
extern bool art_keepup_build(ArtFollowed *x);

/* Do a slice of the sweep that is due, or has begun.  False: there was no lock. */
extern bool art_keepup_sweep(ArtFollowed *x);

/* A step of the index erred: a sweep that had begun begins anew. */
extern void art_keepup_erred(ArtFollowed *x);

/*
 * Bring the structure to where the records are that were taken.  True: it is there, or
 * closed.  last: recovery has ended.  Then all that is dead goes only if an entry of an
 * unused line pointer is left.  Otherwise the dead are left to the new primary's VACUUM.
 */
extern bool art_keepup(ArtFollowed *x, bool last);

/* ---- record_rows.c ---- */

/* Records that say something of line pointers of a table. */
typedef enum ArtRecordKind
{
	ART_RECORD_OTHER,
	ART_RECORD_INSERT,
	ART_RECORD_UPDATE,			/* not one within a page: that has no entry of its own */
	ART_RECORD_INSERTS,
	ART_RECORD_PRUNE			/* or VACUUM's */
} ArtRecordKind;

typedef enum ArtRowNews
{
	ART_ROW_CAME,
	ART_ROW_DEAD,
	ART_ROW_FREED
} ArtRowNews;

/* The kind of a record. */
extern ArtRecordKind art_record_kind(const DecodedXLogRecord *rec);

/*
 * Tell what a record of that kind says of line pointers of its block 0.  A prune must have
 * data of the block.  False: the record makes no sense, and some of it may have been told.
 */
extern bool art_record_rows(const DecodedXLogRecord *rec, ArtRecordKind kind,
							void (*tell) (void *arg, ArtRowNews news, OffsetNumber off),
							void *arg);

/* ---- wal_reader.c ---- */

/* Begin to read behind the last record that was replayed.  Returns its end. */
extern XLogRecPtr art_wal_begin(void);

/*
 * Take the records up to "until", which was replayed, or a part of them.  Returns where
 * they end.  *look is set where a record asks for a look at the catalog.  ERROR when the
 * WAL cannot be read any more.  No interrupt comes in the middle of a record.
 */
extern XLogRecPtr art_wal_read(XLogRecPtr until, bool *look);

/*
 * The indexes that are kept have changed: find those of this list by their tables' files
 * from now on.
 */
extern void art_wal_index(ArtFollowed *list);

#endif							/* ART_FOLLOW_H */
