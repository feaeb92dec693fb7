/*
 * open_scan.h
 *	  An open scan: for index_scan.c, which says how scans work, and those that do
 *	  a part of it.
 *
 * src/scan/README.md: Scans
 */
#ifndef ART_SCAN_OPEN_SCAN_H
#define ART_SCAN_OPEN_SCAN_H

#include "access/itup.h"
#include "access/relscan.h"
#include "portability/instr_time.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/memutils.h"

#include "am/predicate_locks.h"
#include "area/area.h"
#include "scan/scan.h"

#define ART_BATCH_FIRST		16
#define ART_BATCH_POINT		32
#define ART_BATCH_MAX		256
#define ART_MANY_TIDS		512 /* of that many point look-ups, together */

/*
 * The batches of a scan: 16, 64, 80, 160, 256.  From the third one on, a batch is as large as what was read before, so a
 * LIMIT leaves at most half of it unused; larger steps read 336 entries for a LIMIT of 100, smaller ones cost searches.
 */
static inline uint32
art_next_batch_size(uint32 size)
{
	if (size < ART_BATCH_FIRST * 4)
		return size * 4;
	return Min(size == ART_BATCH_FIRST * 4 ? size + ART_BATCH_FIRST : size * 2, ART_BATCH_MAX);
}

/*
 * The state that the participants of a parallel scan share (parallel_scan.c).
 */
#define ART_PARALLEL_KEY	4096	/* longer than any key of a btree */

typedef enum ArtParallelKind
{
	ART_PARALLEL_BEGIN,			/* nobody was here yet */
	ART_PARALLEL_BEHIND_KEY,	/* behind the key (or all that begins so), at "at" */
	ART_PARALLEL_BEHIND_RANGE	/* behind the range "at" */
} ArtParallelKind;

/*
 * The shared state.  "claim" is read and written under the spinlock.  All
 * behind it belongs to the participant that holds the claim, which alone reads
 * and writes it.  It believes a position of keys and lists that are its own: it
 * compares nlens, lens and hash with them first.  A key is an entry's of this
 * index, or the beginning of one, whoever wrote it.
 */
typedef struct ArtParallel
{
	slock_t		mutex;			/* of claim */
	int			claim;
	ConditionVariable freed;

	ArtParallelKind kind;

	/* of whoever began, unless nobody has */
	uint64		hash;			/* of the scan keys */
	int			nlens;
	uint32		lens[INDEX_MAX_KEYS];	/* art_scanplan_lengths's */

	uint32		keylen;
	uint32		at[INDEX_MAX_KEYS]; /* art_scanplan_tell's, each below its lens */
	uint8		key[ART_PARALLEL_KEY];
} ArtParallel;

/* Where a batch began. */
typedef enum ArtFrom
{
	ART_FROM_START,				/* the scan's own beginning */
	ART_FROM_KEY				/* fromkey, from_after */
} ArtFrom;

/* The ranges of a batch of several, each of one key (array_points.c). */
typedef struct ArtRanges
{
	uint32		n;
	uint32		first_at[INDEX_MAX_KEYS];	/* where the plan stood at the first */
	const uint8 *keys[ART_BATCH_MAX];	/* the plan's, or in buf */
	uint32		lens[ART_BATCH_MAX];
	uint16		of[ART_MANY_TIDS];	/* each entry */
	ArtBuf		buf;
} ArtRanges;

/* Entries as they were at one moment. */
typedef struct ArtBatch
{
	bool		backward;
	bool		exhausted;		/* nothing of the range (or of our part of it, in a
								 * parallel scan) is behind them */
	bool		have_keys;
	bool		from_private;
	bool		from_after;
	ArtFrom		from;
	uint32		n;
	int			pos;			/* last entry looked at; -1: none */
	uint64		delgen;			/* deletion generation before the copy */
	uint64	   *tids;
	uint32		tids_cap;
	uint32		key_off_cap;
	uint32	   *key_off;
	ArtBuf		keys;
	ArtBuf		last;			/* key of the last entry, unless exhausted */
	ArtBuf		fromkey;
	uint64		serial;			/* of the copy, by which it is told from others */
	bool		several;		/* it is of those ranges */
	ArtRanges  *ranges;			/* NULL: was not needed yet */
} ArtBatch;

/* The entries that a scan can pass over (skips.c). */
typedef struct ArtSkips
{
	bool		far;			/* they are many: a search for what is behind them */
	uint32		size;			/* entries to ask for there; 0: not known yet */
	uint32		probes;			/* searches for one entry, of another value of a skipped column */
	ArtBuf		to;				/* the position found last */
	bool		after;

	/* of one batch: */
	uint64		of;				/* its serial */
	bool		near;			/* no more looking for positions in it */
	bool		beyond;			/* the last position is not in it */
	uint32		tried;			/* positions looked for, by its entries but the last */
	uint32		passed;			/* entries passed over */
} ArtSkips;

/* A row that is asked of memory before it is wanted: its block, and the buffer, if known. */
typedef struct ArtRowPage
{
	BlockNumber block;
	Buffer		buffer;
} ArtRowPage;

#define ART_ROWS_AHEAD		12	/* so many of a scan are */
#define ART_ROWS_BEFORE		3	/* not before these of a batch: a LIMIT of 20 has them */
#define ART_ROWS_RING		16	/* a power of two above that */

/* How far ahead of a scan the table's blocks are asked for. */
typedef struct ArtReadAhead
{
	int64		reads;			/* ART_READS() when it was last looked at */
	int			distance;		/* entries; 0 or less: none */
	int			most;			/* effective_io_concurrency, once blocks is set */
	int			asked;			/* the last entry of the batch that was asked for */
	BlockNumber last;			/* its block */
	BlockNumber blocks;			/* of the table; 0: not known yet, or none */
	uint64		of;				/* the batch */

	/* rows that are in memory: */
	int			can;			/* 1: they can be asked for, -1: not, 0: not known */
	bool		with;			/* those of this batch are */
	uint32		paced;			/* how many it has, or 0: do not time it */
	instr_time	since;			/* its begin */
	int			pages;			/* the last entry of it whose page was asked for */
	int			tuples;			/* the same of tuples */
	uint32		pins;
} ArtReadAhead;

/* Blocks that this process has read so far, for any node of any query. */
#define ART_READS()		(pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read)

/* Where the marked entry is. */
typedef enum ArtMark
{
	ART_MARK_NONE,
	ART_MARK_HERE,				/* in the current batch */
	ART_MARK_AWAY				/* in a batch kept for it */
} ArtMark;

/*
 * An open scan.  index_scan.c sets all members when the scan, or a search of it, begins.
 * Before each group stands which file writes the members after that.  All others only
 * read them.
 */
typedef struct ArtScan
{
	/* what is scanned: index_scan.c; "own": art_scan_own() */
	ArtPrivate *priv;			/* not NULL: this, for the rest of its life */
	ax_ctx	   *cx;
	ax_tree    *tree;
	uint64		gen;
	ArtEntry   *entry;			/* NULL: private from the beginning */
	MemoryContext cxt;			/* of this struct and the buffers */
	MemoryContext own;			/* child for slot and tuples, NULL: not needed
								 * yet */

	/*
	 * this search: index_scan.c, mark_restore.c "started", kill_entries.c
	 * "keep_keys"; in a batched join join_points.c "planned" and "guard"
	 */
	bool		planned;		/* plan is what scan->keyData means */
	bool		started;		/* the batch below is one of this search */
	bool		guard;			/* publish TIDs */
	bool		followed;		/* on a standby: the follower's structure */
	bool		want_keys;		/* batches carry keys */
	bool		keep_keys;		/* dead entries were met: carry keys */
	bool		some_dead;		/* rows of the batch may be known to be dead */

	/*
	 * the batch: index_scan.c fills it, array_points.c one of several ranges,
	 * join_points.c one of a batched join.  batch.c makes room in it,
	 * kill_entries.c fetches its keys, mark_restore.c exchanges it.  parallel_scan.c
	 * and skips.c say where it begins, and "size"; parallel_scan.c what is its limit.
	 */
	ArtBatch	cur;
	uint64		serial;			/* of the last copy */
	uint32		size;			/* entries to ask for next */
	uint32		together;		/* point look-ups to ask for next */

	/* the mark: mark_restore.c */
	ArtMark		mark;
	int			mark_pos;
	ArtBatch	marked;			/* ART_MARK_AWAY; else buffers only */
	uint32	   *marked_at;		/* of which range */

	/* parallel scans: parallel_scan.c; array_points.c "ahead" */
	ArtParallel *par;			/* NULL: not one */
	bool		agreed;			/* it is one of keys like ours */
	bool		claimed;		/* the shared position is ours to move */
	bool		rest;			/* what is left is all ours */
	bool		limited;		/* our part ends at limit */
	uint32		ahead;			/* ranges behind this one that are ours, too */
	ArtBuf		limit;

	ArtSkips	skips;			/* skips.c */

	/* dead entries of the batch: kill_entries.c; index_scan.c forgets them */
	int			nkilled;
	int			killed_cap;
	uint32	   *killed;			/* their places in it */

	ArtReadAhead read_ahead;	/* read_ahead.c */

	ArtHazard  *hazard;			/* art_scan_hazard() */
	ArtSsi		ssi;			/* what of the range is predicate-locked */

	MemoryContext recheck_cxt;	/* art_scan_recheck_cxt() */

	/* index-only scans: index_only_tuples.c */
	MemoryContext itup_cxt;
	int			itup_fast;		/* 0: not known, 1: fixed, 2: text, -1: no */
	uint16		itup_off[INDEX_MAX_KEYS];
	uint32		itup_size;		/* of a tuple, when that is fixed */
	uint32		itup_cap;
	char	   *itups;			/* tuples, with their headers */
	uint64		itup_of;		/* the batch whose tuples they all are; 0: none's */

	ArtBuf		tmpkey;			/* batch.c; point searches: prefix and TID */
	ItemPointerData *bitmap_tids;

	/*
	 * all above is zeroed, what follows is not.  The plan: index_scan.c and
	 * join_points.c make it of scan keys; array_points.c, mark_restore.c and
	 * parallel_scan.c move it to another of its ranges.
	 */
	ArtScanPlan plan;
	uint64		first_tids[ART_BATCH_POINT];
	ArtRowPage	row_pages[ART_ROWS_RING];	/* read_ahead.c: of the entries, by their places in the batch */
	ArtKeyDesc	kd;				/* last: with room for its columns only */
} ArtScan;

/*
 * Ask for the table's blocks of the entries behind the one at hand, so far as seems worth it.
 * The scan is not index-only, or nothing happens.  Called when ART_READS() has changed since,
 * or the distance is not 0.  Errors: those of PrefetchBuffer().
 */
extern void art_scan_read_ahead(IndexScanDesc scan);

/*
 * Rows that are in memory.  rows_begin: the scan has gone on to a next batch, the same way; shall
 * memory be asked for its rows (read_ahead.with)?  rows_ahead: ask for some behind the one at hand,
 * and pin the page of that.  Errors: as above.
 */
extern void art_scan_rows_begin(IndexScanDesc scan);
extern void art_scan_rows_ahead(IndexScanDesc scan);

/* The batch is exchanged in any other way: nothing is known of it. */
static inline void
art_scan_rows_end(ArtScan *so)
{
	so->read_ahead.with = false;
	so->read_ahead.paced = 0;
}

/* ---- the scan's memory ---- */

/*
 * Room for at least "bytes" in a buffer whose content need not survive.
 */
static inline void
art_scan_room(ArtScan *so, ArtBuf *buf, uint32 bytes)
{
	if (buf->data == NULL)
		art_buf_init(buf, so->cxt, bytes);
	else if (buf->cap < bytes)
	{
		buf->len = 0;
		art_buf_reserve(buf, bytes);
	}
}

/* A copy of a key as the content of a buffer. */
static inline void
art_scan_keep(ArtScan *so, ArtBuf *buf, const uint8 *key, uint32 len)
{
	art_scan_room(so, buf, len);
	memcpy(buf->data, key, len);
	buf->len = len;
}

/*
 * The child context: its reset callback releases the hazard slot.
 */
static inline MemoryContext
art_scan_own(ArtScan *so)
{
	if (so->own == NULL)
		so->own = AllocSetContextCreate(so->cxt, "art scan",
										ALLOCSET_SMALL_SIZES);
	return so->own;
}

/* Residual conditions and comparisons allocate here; their caller resets it. */
static inline MemoryContext
art_scan_recheck_cxt(ArtScan *so)
{
	if (so->recheck_cxt == NULL)
		so->recheck_cxt = AllocSetContextCreate(art_scan_own(so), "art recheck",
												ALLOCSET_SMALL_SIZES);
	return so->recheck_cxt;
}

/* The slot in which TIDs are published, taken when it is first needed. */
static inline ArtHazard *
art_scan_hazard(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (so->hazard == NULL)
		so->hazard = art_hazard_acquire(scan->indexRelation, art_scan_own(so));
	return so->hazard;
}

/* ---- batch.c ---- */

/* Buffers of the current batch for so many entries. */
extern void art_scan_buffers(ArtScan *so, uint32 n, bool keys);

/* Does the range at hand go on behind this position, that way? */
extern bool art_scan_goes_on(const ArtScan *so, const ax_bound *at, bool backward);

/* The whole key of an entry of a batch with keys, or of a point search. */
extern const uint8 *art_scan_key(ArtScan *so, uint32 i, uint32 *len);

/*
 * The bounds of one side of the place where the present batch began.  In the
 * batch's direction that is the batch and all behind it.
 */
static inline void
art_scan_bounds(ArtScan *so, bool backward, ax_batch *b)
{
	b->lo.key = so->plan.lo.data;
	b->lo.len = so->plan.lo_len;
	b->lo.after = so->plan.lo_after;
	b->hi.key = so->plan.hi.data;
	b->hi.len = so->plan.hi_len;
	b->hi.after = so->plan.hi_after;
	if (so->cur.from == ART_FROM_KEY)
	{
		ax_bound   *bound = backward ? &b->hi : &b->lo;

		bound->key = so->cur.fromkey.data;
		bound->len = so->cur.fromkey.len;
		bound->after = so->cur.from_after;
	}
	if (unlikely(so->limited))
	{
		ax_bound   *bound = backward ? &b->lo : &b->hi;

		bound->key = so->limit.data;
		bound->len = so->limit.len;
		bound->after = !backward;
	}
}

/*
 * Have the keys of the batch no NULL, as their length tells?  A NULL makes a key of a
 * fixed width shorter.
 */
static inline bool
art_scan_no_null(const ArtScan *so)
{
	return so->kd.fixed && so->cur.key_off[so->cur.n] - so->cur.key_off[0] ==
		so->cur.n * (so->kd.fixed_len + AX_TID_BYTES);
}

/* Of a point search: the key without the TID. */
static inline const uint8 *
art_scan_point(const ArtScan *so, uint32 i, uint32 *len)
{
	const ArtRanges *r = so->cur.ranges;

	if (likely(!so->cur.several))
	{
		*len = so->plan.lo_len;
		return so->plan.lo.data;
	}
	*len = r->lens[r->of[i]];
	return r->keys[r->of[i]];
}

/* ---- index_only_tuples.c ---- */

/*
 * Form xs_itup for an entry.  An index tuple has room for 8 kB and compresses
 * long values, so long keys are handed out as a heap tuple.  The planner's
 * look at the ends of an index takes index tuples only: false when it cannot
 * have one.
 */
extern bool art_scan_form_itup(IndexScanDesc scan, uint32 i);

/* The same, where the tuples of the batch may be there already. */
static inline bool
art_scan_itup(IndexScanDesc scan, uint32 i)
{
	ArtScan    *so = (ArtScan *) scan->opaque;

	if (unlikely(so->itup_of != so->cur.serial))
		return art_scan_form_itup(scan, i);
	scan->xs_itup = (IndexTuple) (so->itups + (Size) i * so->itup_size);
	scan->xs_hitup = NULL;
	return true;
}

/* ---- array_points.c ---- */

/*
 * A batch of the range where the plan stands and some behind it; the plan moves
 * to the last one.  AX_OK without cur.several: nothing was done, do the one.
 */
extern ax_status art_scan_copy_many(IndexScanDesc scan, bool backward);

/*
 * The plan, which stands at the range in which the batch ends, goes to another
 * one of it.  (A batch of one range has one, 0, and the plan stands there.)
 */
extern void art_scan_goto_range(ArtScan *so, uint32 range);

/* A batch's ranges, allocated when first asked for. */
extern ArtRanges *art_scan_ranges(ArtScan *so, ArtBatch *b);

/* The range of an entry. */
static inline uint32
art_scan_range(const ArtScan *so, uint32 i)
{
	return so->cur.several ? so->cur.ranges->of[i] : 0;
}

/* Free the ranges of a batch's entries, if it has any. */
extern void art_scan_ranges_free(ArtBatch *b);

/* Remember in a batch where another one begins. */
extern void art_scan_keep_first(ArtScan *so, ArtBatch *b, const ArtBatch *from);

/* ---- skips.c ---- */

/*
 * Of a plan with "skips": entry i of the batch does not match.  Returns the last of those
 * from it on, in the batch's direction, that cannot match either.
 */
extern uint32 art_scan_pass_over(ArtScan *so, uint32 i);

/*
 * Of a plan with "skips": a batch is to begin behind the key in so->cur.fromkey, that way.
 * Puts the beginning, and so->size, where the next entry can match.  False: nothing
 * of the range can.
 */
extern bool art_scan_skip(IndexScanDesc scan, bool backward);

/* ---- kill_entries.c ---- */

/*
 * Note that the entry handed out last is dead to everybody.  Its row is the one
 * that the heap was asked about last.
 */
extern void art_scan_note_kill(IndexScanDesc scan);

/*
 * Is the row of an entry of the batch known to be dead to everybody?  If it may go,
 * that is noted.  The entry is passed over.
 */
extern bool art_scan_known_dead(ArtScan *so, int pos);

/*
 * Remove the dead entries noted in this batch.  The heap said that nobody
 * sees the row; that stays true of the TID until VACUUM recycles it, which the
 * deletion generation would show.  It is said of the TID, so every entry with
 * that TID may go, whatever its key.
 */
extern void art_scan_kill(IndexScanDesc scan);

/* ---- index_scan.c ---- */

/*
 * Which structure to scan, now: builds it if need be, or the scan goes private.
 * Notes of dead entries are forgotten then.
 */
extern void art_scan_ready(IndexScanDesc scan);

/*
 * A search begins, and is counted: the keys are looked at.  "trusts": a TID will be
 * believed without a look at its row.  False: there is nothing to be found.
 */
extern bool art_scan_search(IndexScanDesc scan, bool trusts);

/*
 * Does an entry of the batch pass the residual conditions, of which there are some?  They
 * may call operators, which may allocate.
 */
extern bool art_scan_passes(IndexScanDesc scan, uint32 i);

/* Which batch to fetch. */
typedef enum ArtFetch
{
	ART_FETCH_FIRST,			/* from the beginning of the scan's range */
	ART_FETCH_NEXT,				/* behind the last entry of the batch */
	ART_FETCH_TURN,				/* the other side of where the batch began */
	ART_FETCH_SEEK				/* from where "from" and "fromkey" say, as the caller has set them */
} ArtFetch;

/*
 * Fetch a batch, in the direction given, and remove dead entries of the one before.
 * False: there is nothing more that way.  The batch is then empty.
 */
extern bool art_scan_fetch(IndexScanDesc scan, ArtFetch what, bool backward);

/* ---- mark_restore.c ---- */

/*
 * The current batch is about to go, and the mark is in it: keep it.  The
 * current batch is then empty, between where the marked one began and ended.
 */
extern void art_scan_leave_mark(ArtScan *so);

/* ---- parallel_scan.c ---- */

/* The shared part of a scan that has one. */
extern ArtParallel *art_parallel(IndexScanDesc scan);

/*
 * Take the shared position, to fetch from there; waits while another process has it.
 * False: nothing is left, or nothing for keys like ours.  On return the claim is held
 * if so->claimed is set.
 */
extern bool art_scan_claim(IndexScanDesc scan, bool backward);

/*
 * A batch was fetched: the shared position is behind it, and the claim, which is held,
 * is given up.
 */
extern void art_scan_publish(ArtScan *so);

/*
 * No other process is to find anything: what is left, if anything, is ours.  The claim,
 * which is held, is given up for good.
 */
extern void art_scan_take_rest(ArtScan *so);

#endif							/* ART_SCAN_OPEN_SCAN_H */
