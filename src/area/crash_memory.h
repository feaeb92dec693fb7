/*
 * crash_memory.h
 *	  What outlives a crash cycle, and what is needed to judge it afterwards.
 *
 * The area, the directory and what follows lie in a mapping that the postmaster
 * made once (shared_memory.c).  When the server recovers from a crash, each structure is
 * what it was, but the table may have lost what was not flushed.  So each process
 * writes down what it put into a structure for a row whose WAL may be lost.  It also
 * writes down up to where it believed WAL to be flushed when it took entries out.  The
 * first process after recovery judges by that (judge.c).
 *
 * "The end" is where recovery ended: what lies beyond it is lost.
 *
 * src/survive/README.md: Memory that outlives a crash
 */
#ifndef ART_AREA_CRASH_MEMORY_H
#define ART_AREA_CRASH_MEMORY_H

#include "area/shared_state.h"

#include "access/xlogdefs.h"

/* ---- what one slot (ART_MY_PROCNO()) writes down ---- */

#define ART_RING_BYTES	(64 * 1024)
#define ART_RING_DATA	(ART_RING_BYTES - 64)

/* No room is made for a longer record: so a filler and the next record fit into a quarter. */
#define ART_RING_LONGEST	(ART_RING_DATA / 8)

/*
 * Entries put into a structure for rows whose WAL may be lost.  Each key, TID included, is as
 * the structure has it; all but the first are behind their length in two bytes.
 */
typedef struct ArtRingRecord
{
	uint16		size;			/* bytes to the next record: MAXALIGNed */
	uint16		n;				/* keys; 0: filler up to the ring's end */
	uint16		len;			/* of the first key */
	ArtEntry   *entry;
	uint64		gen;			/* of the structure; a number that never comes again */
	XLogRecPtr	lsn;			/* end of the transaction's last record before it */
	uint8		keys[FLEXIBLE_ARRAY_MEMBER];
} ArtRingRecord;

/*
 * A slot's ring.  Only the slot's process writes it, and nobody else reads it before
 * that process is gone.  Records lie from tail to head, counted in bytes since the
 * ring was made, modulo ART_RING_DATA.  A record lies in one piece.  The head moves when
 * a record is complete: a process that dies before that has not inserted.  The ring
 * outlives its process: neither attach nor exit nor abort clears it.
 */
typedef struct ArtRing
{
	uint64		head;
	uint64		tail;
	XLogRecPtr	relied;			/* highest LSN that a process of this slot took for
								 * flushed, and dropped something for it */
	uint64		word;			/* where the process is: crash_memory.c */
	char		fill[64 - 4 * sizeof(uint64)];
	char		data[ART_RING_DATA];
} ArtRing;

StaticAssertDecl(sizeof(ArtRing) == ART_RING_BYTES, "a slot's ring");

/* The record at a position. */
static inline const ArtRingRecord *
art_ring_record(const ArtRing *r, uint64 at)
{
	return (const ArtRingRecord *) (r->data + at % ART_RING_DATA);
}

/*
 * Of a directory entry (shared_state.h):
 *
 *	persistence	relpersistence: others than permanent ones are not kept
 *	born_lsn	0 while the transaction that made the structure runs; then
 *				an LSN up to which WAL must have survived for the structure to be
 *				right.  art_entry_open() sets it to 0.
 *	spill_lsn	raised where no record was written: the structure is right only
 *				if the end is not before it.  art_entry_open() sets it to 0.
 */

/* The rings, one a slot; NULL: nothing outlives a crash (artidx.survive_crash). */
extern ArtRing *art_rings;

/* ---- insert_ring.c (whoever writes WAL-related facts down) ---- */

/* This process's ring; NULL: there are none.  Attaches. */
extern ArtRing *art_my_ring(void);

/*
 * Before n entries (key, TID) are put into generation gen, of an index that outlives a
 * crash (art_outlives()) and whose keys are encoded.  Never fails: without room
 * spill_lsn is raised.  Not within ART_CORE_BEGIN.
 */
extern void art_ring_put(Relation index, ArtEntry *e, uint64 gen,
						 const uint8 *const *keys, const uint32 *lens, uint32 n);

/* This process treats WAL up to lsn as flushed, and it is. */
extern void art_rely(XLogRecPtr lsn);

/* The end of all WAL there is, as XLogFlush() takes it. */
extern XLogRecPtr art_insert_position(void);

/* The entry's structure is right only if WAL up to lsn survives. */
extern void art_spill(ArtEntry *e, XLogRecPtr lsn);

/* Forget all records; of a process that is gone, or one's own. */
extern void art_ring_clear(ArtRing *r);

/* ---- ring_reader.c ---- */

/*
 * Call fn for each key of a ring whose process is gone, oldest first.  False: the
 * ring makes no sense, and fn was called for some keys only.  It never follows an
 * offset out of the ring.
 */
extern bool art_ring_each(const ArtRing *r,
						  void (*fn) (const ArtRingRecord *rec, const uint8 *key, uint32 len,
									  void *arg),
						  void *arg);

#endif							/* ART_AREA_CRASH_MEMORY_H */
