/*
 * insert_ring.c
 *	  What a process writes down, lest its inserts outlive their rows (crash_memory.h).
 *
 * The record of an insert is written before the insert.  So after a crash the
 * record is there, and maybe the entry.  It may go when the WAL up to its LSN is
 * flushed, for then the row will be there, too.  When the ring is full of records
 * that are not, the older half goes.  Then the structures it names are right only if
 * the WAL up to there survives.
 *
 * A bulk insert fills a ring much sooner than the WAL writer comes by.  So a process
 * wakes it when about half of its ring waits for it.
 *
 * The ring is this process's alone, so there is nothing to wait for.  It is read
 * when the process is gone, and so everything it did has been done.  Only the order of
 * what it did matters.  The head moves when a record is complete, the tail when
 * nobody needs a record any more.  ring_reader.c reads it.
 *
 * src/survive/README.md: WAL that is lost
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "storage/latch.h"
#include "storage/proc.h"

#include "area/crash_memory.h"

/* Bytes of records that are put down between two looks at the WAL's position. */
#define RING_LOOK			(ART_RING_DATA / 4)

/* As many wait at a look near half of the ring: two looks of equal records are a little less. */
#define RING_WAKE			(ART_RING_DATA / 8 * 3)

/* Where this process's next record goes, and the end of the free bytes there. */
static ArtRing *my_ring = NULL;
static char *next = NULL;
static char *limit = NULL;
static XLogRecPtr newest = InvalidXLogRecPtr;	/* of all records */

/* Let the WAL writer write what is complete, rather than when its time comes. */
static void
wake_wal_writer(void)
{
	Latch	   *latch = ART_WAL_WRITER_LATCH();

	if (latch != NULL)
		SetLatch(latch);
}

ArtRing *
art_my_ring(void)
{
	if (art_rings == NULL)
		return NULL;
	(void) art_ctx();
	return &art_rings[ART_MY_PROCNO()];
}

void
art_rely(XLogRecPtr lsn)
{
	ArtRing    *r;

	if (art_rings == NULL || (r = art_my_ring()) == NULL)
		return;
	if (r->relied < lsn)
		__atomic_store_n(&r->relied, lsn, __ATOMIC_RELEASE);
}

void
art_spill(ArtEntry *e, XLogRecPtr lsn)
{
	uint64		old;

	if (art_rings == NULL)
		return;
	old = pg_atomic_read_u64(&e->spill_lsn);
	while (old < lsn && !pg_atomic_compare_exchange_u64(&e->spill_lsn, &old, lsn))
		continue;
}

/* The record behind one.  Without a division, since it is done once a record. */
static inline const ArtRingRecord *
record_behind(const ArtRing *r, const ArtRingRecord *rec)
{
	const char *p = (const char *) rec + rec->size;

	return (const ArtRingRecord *) (p == r->data + ART_RING_DATA ? r->data : p);
}

/*
 * Drop the records at the tail whose WAL is flushed.
 *
 * Order: what was relied on is noted before the tail moves.
 */
static void
drop_flushed(ArtRing *r)
{
	XLogRecPtr	flushed = GetFlushRecPtr(NULL);
	XLogRecPtr	relied = r->relied;
	uint64		tail = r->tail;

	if (newest != InvalidXLogRecPtr && newest <= flushed)
	{
		/* those before it, of earlier processes too, are older */
		relied = Max(relied, newest);
		tail = r->head;
	}
	for (const ArtRingRecord *rec = art_ring_record(r, tail); tail != r->head;
		 tail += rec->size, rec = record_behind(r, rec))
	{
		if (rec->n == 0)
			continue;
		if (rec->lsn > flushed)
			break;
		relied = Max(relied, rec->lsn);
	}
	__atomic_store_n(&r->relied, relied, __ATOMIC_RELEASE);
	__atomic_store_n(&r->tail, tail, __ATOMIC_RELEASE);
}

/*
 * Drop the older half of the records, whose WAL is not flushed.  One store to a
 * line that all share is for many records.
 *
 * Order: each structure knows before the tail moves.
 */
static void
spill_half(ArtRing *r)
{
	uint64		tail = r->tail;
	uint64		end = tail + (r->head - tail) / 2;
	ArtEntry   *e = NULL;
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	for (const ArtRingRecord *rec = art_ring_record(r, tail); tail < end;
		 tail += rec->size, rec = record_behind(r, rec))
	{
		if (rec->n == 0)
			continue;
		if (rec->entry != e && e != NULL)
			art_spill(e, lsn);
		e = rec->entry;
		lsn = rec->lsn;
	}
	if (e != NULL)
		art_spill(e, lsn);
	__atomic_store_n(&r->tail, tail, __ATOMIC_RELEASE);
}

/* Find room for a record, and for more behind it.  False: it is too long. */
static bool
make_record_room(uint32 size)
{
	ArtRing    *r = my_ring;
	uint64		left;
	uint32		to_end;

	if (r == NULL)
		my_ring = r = art_my_ring();
	if (r == NULL || size > ART_RING_LONGEST)
		return false;

	drop_flushed(r);
	if (r->head - r->tail > RING_WAKE)
		wake_wal_writer();
	if (ART_RING_DATA - (r->head - r->tail) < RING_LOOK)
		spill_half(r);

	to_end = ART_RING_DATA - (uint32) (r->head % ART_RING_DATA);
	if (to_end < size)
	{
		ArtRingRecord *filler = (ArtRingRecord *) (r->data + r->head % ART_RING_DATA);

		filler->size = (uint16) to_end; /* at least eight bytes */
		filler->n = 0;
		__atomic_store_n(&r->head, r->head + to_end, __ATOMIC_RELEASE);
		to_end = ART_RING_DATA;
	}
	left = ART_RING_DATA - (r->head - r->tail);
	next = r->data + r->head % ART_RING_DATA;
	limit = next + Min(Min(left, to_end), RING_LOOK);
	Assert(size <= (uint32) (limit - next));
	return true;
}

/*
 * At the beginning of a page of WAL the server gives the position behind the
 * page's header, which nobody has written yet.  XLogFlush() refuses that.
 */
XLogRecPtr
art_insert_position(void)
{
	XLogRecPtr	pos = GetXLogInsertRecPtr();

	if (XLogSegmentOffset(pos, wal_segment_size) == SizeOfXLogLongPHD)
		pos -= SizeOfXLogLongPHD;
	else if (pos % XLOG_BLCKSZ == SizeOfXLogShortPHD)
		pos -= SizeOfXLogShortPHD;
	return pos;
}

/*
 * A record where there may be no room for it, or no LSN.  In an index that is not valid
 * CREATE INDEX CONCURRENTLY inserts rows of others, of whose WAL this process knows
 * nothing.  Nor does a process know an LSN when it has written no WAL.
 */
static pg_noinline void
put_slowly(Relation index, ArtEntry *e, uint64 gen, const uint8 *const *keys, const uint32 *lens,
		   uint32 n, uint32 size)
{
	XLogRecPtr	lsn = XactLastRecEnd;

	if (art_rings == NULL)
		return;
	if (lsn == InvalidXLogRecPtr || !index->rd_index->indisvalid)
		art_spill(e, art_insert_position());
	else if (!make_record_room(size))
		art_spill(e, lsn);
	else
		art_ring_put(index, e, gen, keys, lens, n);
}

/* Most keys with their TIDs are as short as that, and a call would cost more. */
static inline void
copy_key(uint8 *to, const uint8 *key, uint32 len)
{
	uint64		first;
	uint64		last;

	if (unlikely(len < sizeof(first) || len > 2 * sizeof(first)))
	{
		memcpy(to, key, len);
		return;
	}
	memcpy(&first, key, sizeof(first));
	memcpy(&last, key + len - sizeof(last), sizeof(last));
	memcpy(to, &first, sizeof(first));
	memcpy(to + len - sizeof(last), &last, sizeof(last));
}

void
art_ring_put(Relation index, ArtEntry *e, uint64 gen, const uint8 *const *keys,
			 const uint32 *lens, uint32 n)
{
	XLogRecPtr	lsn = XactLastRecEnd;
	uint32		size = offsetof(ArtRingRecord, keys) + lens[0];
	ArtRingRecord *rec = (ArtRingRecord *) next;
	uint8	   *to;

	for (uint32 i = 1; i < n; i++)
		size += sizeof(uint16) + lens[i];
	size = MAXALIGN(size);
	if (unlikely(size > (uint32) (limit - next) || lsn == InvalidXLogRecPtr ||
				 !index->rd_index->indisvalid))
	{
		put_slowly(index, e, gen, keys, lens, n, size);
		return;
	}
	rec->size = (uint16) size;
	rec->n = (uint16) n;
	rec->len = (uint16) lens[0];
	rec->entry = e;
	rec->gen = gen;
	rec->lsn = newest = lsn;
	copy_key(rec->keys, keys[0], lens[0]);
	to = rec->keys + lens[0];
	for (uint32 i = 1; i < n; i++)
	{
		uint16		len = (uint16) lens[i];

		memcpy(to, &len, sizeof(len));
		copy_key(to + sizeof(len), keys[i], len);
		to += sizeof(len) + len;
	}
	next += size;
	__atomic_store_n(&my_ring->head, my_ring->head + size, __ATOMIC_RELEASE);
}

void
art_ring_clear(ArtRing *r)
{
	r->tail = r->head;
	r->relied = InvalidXLogRecPtr;
	if (r == my_ring)
	{
		next = limit = NULL;
		newest = InvalidXLogRecPtr;
	}
}
