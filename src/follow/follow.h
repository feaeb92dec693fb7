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

extern void art_touched_init(ArtTouched *t, MemoryContext cxt);
extern void art_touched_free(ArtTouched *t);
extern uint64 art_touched_blocks(const ArtTouched *t);
extern void art_touched_row(ArtTouched *t, BlockNumber block, OffsetNumber off);
extern ArtTouchedBlock *art_touched_to_read(const ArtTouched *t);
extern void art_touched_was_read(ArtTouched *t, ArtTouchedBlock *b);
extern void art_touched_dead(ArtTouched *t, BlockNumber block, OffsetNumber off);
extern void art_touched_freed(ArtTouched *t, BlockNumber block, OffsetNumber off);
extern void art_touched_cut(ArtTouched *t, BlockNumber block);
extern void art_touched_sweep(ArtTouched *t, MemoryContext cxt);
extern bool art_touched_is_sweeping(const ArtTouched *t, uint64 tid);
extern bool art_touched_is_dead(const ArtTouched *t, BlockNumber block, OffsetNumber off);
extern bool art_touched_all_swept(const ArtTouched *t);
extern bool art_touched_must_sweep(const ArtTouched *t);
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

extern ArtFollower *art_me;		/* this process's place */
extern ArtFollowed *art_followed_list;

extern void art_kept_close(ArtFollowed *x, ArtReason why, const char *error);
extern void art_kept_put_off(Oid indexoid, int ms);
extern bool art_kept_is_put_off(Oid indexoid);
extern void art_kept_put_off_none(void);
extern const char *art_kept_reason(int sqlstate);
extern void art_kept_tell_why(Oid indexoid, const ArtLocator *loc, const char *why);
extern void art_kept_not_begun(Oid indexoid, const ArtLocator *loc, int sqlstate);

/* ---- rows_in_error.c ---- */

typedef enum ArtVerdict
{
	ART_VERDICT_AGAIN,			/* at once, without that row, or once more with it */
	ART_VERDICT_LATER,			/* with the next batch; until then it is behind */
	ART_VERDICT_CLOSE
} ArtVerdict;

extern ArtVerdict art_doubt(ArtFollowed *x, int sqlstate, const char **why);
extern void art_doubtful_read_again(ArtFollowed *x);
extern void art_doubtful_leave_out(const ArtFollowed *x, BlockNumber block, uint64 *roots);

/* ---- catch_up.c ---- */

extern ArtFollowed *art_keepup_begin(Oid indexoid, bool *again);
extern bool art_keepup_build(ArtFollowed *x);
extern bool art_keepup_sweep(ArtFollowed *x);
extern void art_keepup_erred(ArtFollowed *x);
extern bool art_keepup(ArtFollowed *x, bool last);

/* ---- wal_reader.c ---- */

extern XLogRecPtr art_wal_begin(void);
extern XLogRecPtr art_wal_read(XLogRecPtr until, bool *look);
extern void art_wal_index(ArtFollowed *list);

#endif							/* ART_FOLLOW_H */
