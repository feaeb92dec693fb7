/*
 * dead_awaiting_wal.c
 *	  Rows that this process knows to be dead, and whose entries wait for WAL.
 *
 * The heap says that a row is dead to everybody.  Then the page's LSN says how much
 * WAL must be flushed before the entry may go (wal_flush.c).  On a hot page that
 * LSN moves on with every change.  So the first answer is kept here.  It holds as
 * long as the TID is that row's.  An unchanged deletion generation says so:
 * VACUUM increments it before it recycles any TID of the index.
 *
 * A known row is not asked for again.  Scans pass over its entry, as those of
 * nbtree pass over an entry that is marked dead.  (Bitmap scans and batched joins
 * ask.)  An index that moves to another tablespace has another counter of
 * deletions, and keeps its structure.  art_delgen_moved() sees to it that the new
 * counter has no value that the old one had.
 *
 * Entries that wait make chains long.  When the looks at them have cost as much
 * as a flush, this process flushes.  As a rule the WAL writer comes first.
 *
 * src/survive/README.md: WAL that is lost
 */
#include "postgres.h"

#include "access/xlog.h"

#include "am/am.h"
#include "area/area.h"
#include "area/crash_memory.h"

/* A row that is known to be dead; its place is by hash, and a newcomer takes it. */
typedef struct ArtDeadRow
{
	uint64		tid;			/* 0: nothing */
	uint64		gen;			/* of the structure; no two have the same */
	uint64		delgen;
	XLogRecPtr	lsn;
} ArtDeadRow;

#define ART_DEAD_BITS	12
static ArtDeadRow dead_rows[1 << ART_DEAD_BITS];

uint64		art_dead_gens = 0;

/* After so many statements or batches, with none of them waiting, all are forgotten. */
#define ART_DEAD_IDLE	1000

/* Looks at entries that wait: so many cost as much as a flush; to ask the heap costs twenty. */
#define ART_DEAD_LOOKS	10000
#define ART_DEAD_ASKED	20

static uint32 looks = 0;		/* since the last flush that let something go */
static XLogRecPtr awaited = InvalidXLogRecPtr;	/* the first of them waits for this */
static XLogRecPtr newest = InvalidXLogRecPtr;	/* of all LSNs noted */
static XLogRecPtr flushed = InvalidXLogRecPtr;	/* up to here, at least */
static uint32 idle = 0;

static inline ArtDeadRow *
row_place(uint64 gen, uint64 tid)
{
	uint64		h = (tid ^ gen << 48) * UINT64CONST(0x9E3779B97F4A7C15);

	return &dead_rows[h >> (64 - ART_DEAD_BITS)];
}

/* The row, if it is known; else NULL. */
static inline ArtDeadRow *
known_row(uint64 gen, uint64 delgen, uint64 tid)
{
	ArtDeadRow *r = row_place(gen, tid);

	return r->tid == tid && r->gen == gen && r->delgen == delgen ? r : NULL;
}

/* An entry that waits for that LSN was looked at. */
static inline void
count_looks(uint32 n, XLogRecPtr lsn)
{
	if (looks == 0)
		awaited = lsn;
	looks += n;
}

void
art_dead_refresh(void)
{
	if (flushed < newest)
	{
		flushed = GetFlushRecPtr(NULL);
		if (awaited <= flushed)
			looks = 0;
	}
	else if (++idle >= ART_DEAD_IDLE)
		art_dead_gens = 0;
}

ArtDeath
art_dead_known(uint64 gen, uint64 delgen, uint64 tid)
{
	const ArtDeadRow *r = known_row(gen, delgen, tid);

	if (r == NULL)
		return ART_DEATH_UNKNOWN;
	if (r->lsn <= flushed && art_flushed(r->lsn))
		return ART_DEATH_GO;
	count_looks(1, r->lsn);
	return ART_DEATH_WAIT;
}

ArtDeath
art_dead_seen(Relation index, const ArtKeyDesc *kd, uint64 gen, uint64 delgen,
			  uint64 tid, Relation heap, struct IndexFetchTableData *fetch)
{
	ItemPointerData htid;
	XLogRecPtr	lsn;
	ArtDeadRow *r;

	if (!art_outlives(index) || kd->compared)
		return ART_DEATH_GO;
	r = known_row(gen, delgen, tid);
	if (r != NULL)
		lsn = r->lsn;
	else
	{
		art_tid_unpack(tid, &htid);
		lsn = art_row_lsn(heap, fetch, &htid);
	}
	if (art_flushed(lsn))
		return ART_DEATH_GO;
	/* an LSN that nobody has written is that of a damaged page */
	if (lsn > art_insert_position())
		return ART_DEATH_WAIT;
	count_looks(ART_DEAD_ASKED, lsn);
	/* the TID was that row's when the heap was asked, if it is now */
	if (r == NULL && art_delgen(index) == delgen)
	{
		r = row_place(gen, tid);
		r->tid = tid;
		r->gen = gen;
		r->delgen = delgen;
		r->lsn = lsn;
		newest = Max(newest, lsn);
		art_dead_gens |= UINT64CONST(1) << (gen & 63);
		idle = 0;
	}
	return ART_DEATH_WAIT;
}

void
art_dead_flush(void)
{
	if (likely(looks < ART_DEAD_LOOKS))
		return;
	art_dead_refresh();
	if (looks >= ART_DEAD_LOOKS)
	{
		looks = 0;
		flushed = art_flush_all();
	}
}
