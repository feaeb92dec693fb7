/*
 * ring.c
 *	  Fuzz target: what a process writes down for the judge of a crash, written by a process that inserts
 *	  and flushes WAL as the input says, then read; damaged, and read again.
 *
 * An entry may be in a structure without its row only if the ring names it, or its structure's spill_lsn or
 * the ring's "relied" says up to where WAL must have survived.
 */
#include "server.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/rel.h"

#include "area/crash_memory.h"

#define ENTRIES		3
#define MOST		4000
#define LONGEST		(2 * ART_RING_LONGEST)

/* What insert_ring.c asks the server for. */
ArtRing    *art_rings;
XLogRecPtr	XactLastRecEnd;
int			wal_segment_size = 16 * 1024 * 1024;
#if PG_VERSION_NUM >= 170000
ProcNumber	MyProcNumber = 0;
#endif
static PGPROC proc;
PGPROC	   *MyProc = &proc;
static PROC_HDR procs;
PROC_HDR   *ProcGlobal = &procs;

static XLogRecPtr flushed;

XLogRecPtr
GetFlushRecPtr(TimeLineID *tli)
{
	return flushed;
}

XLogRecPtr
GetXLogInsertRecPtr(void)
{
	return XactLastRecEnd;
}

void
SetLatch(Latch *latch)
{
}

ax_ctx *
art_ctx(void)
{
	return NULL;
}

/* ---- what was put, and what is read ---- */

typedef struct Put
{
	ArtEntry   *e;
	XLogRecPtr	lsn;
	uint32		number;			/* in its key */
	uint32		len;
	bool		found;
} Put;

static Put puts_[MOST];
static int	nputs;
static ArtEntry *entries;
static ArtRing *ring;
static bool whole;

/* A key: its number, a filling of its length, and a TID. */
static void
make_key(uint8 *k, uint32 number, uint32 len)
{
	memset(k, (int) (number % 251), len);
	memcpy(k, &number, sizeof(number));
}

static void
found(const ArtRingRecord *rec, const uint8 *key, uint32 len, void *arg)
{
	uint32		number;
	uint8		is[LONGEST];
	uint32		behind_tail = (uint32) (((const char *) rec - ring->data + ART_RING_DATA - ring->tail % ART_RING_DATA) % ART_RING_DATA);

	FUZZ_CLAIM(behind_tail + rec->size <= ring->head - ring->tail, "a record that goes beyond the head");
	FUZZ_CLAIM((const char *) rec >= ring->data && key >= (const uint8 *) rec &&
			   key + len <= (const uint8 *) ring->data + ART_RING_DATA, "a key that does not lie in the ring");
	FUZZ_CLAIM(len > AX_TID_BYTES, "a key of %u bytes", len);
	if (!whole)
		return;
	memcpy(&number, key, sizeof(number));
	FUZZ_CLAIM(number < (uint32) nputs && puts_[number].len == len && puts_[number].e == rec->entry &&
			   puts_[number].lsn == rec->lsn && rec->gen == 7, "a record that nobody has put");
	make_key(is, number, len);
	FUZZ_CLAIM(memcmp(is, key, len) == 0, "the bytes of key %u", number);
	puts_[number].found = true;
}

/* One call: some keys of an entry. */
static void
put(fuzz_in *in, uint8 op)
{
	static uint8 room[64][LONGEST];
	static FormData_pg_index form;
	RelationData index = {.rd_index = &form};
	const uint8 *keys[64];
	uint32		lens[64];
	uint32		n = op & 64 ? 1 + fuzz_below(in, 64) : 1;
	uint32		len = AX_TID_BYTES + 1 + fuzz_below(in, 40);
	ArtEntry   *e = &entries[op % ENTRIES];

	if ((op & 32) && fuzz_byte(in) > 250)
		len = AX_TID_BYTES + fuzz_below(in, LONGEST - AX_TID_BYTES);
	len = Max(len, (uint32) sizeof(uint32) + AX_TID_BYTES);
	form.indisvalid = (op & 28) != 28;
	for (uint32 i = 0; i < n; i++)
	{
		lens[i] = n == 1 ? len : len % 200 + 10;
		make_key(room[i], (uint32) nputs, lens[i]);
		keys[i] = room[i];
		puts_[nputs++] = (Put) {e, XactLastRecEnd, (uint32) nputs, lens[i]};
	}
	art_ring_put(&index, e, 7, keys, lens, n);
}

/* Each row that may be lost is told of. */
static void
check_puts(void)
{
	FUZZ_CLAIM(art_ring_each(ring, found, NULL), "the ring makes no sense");
	for (int i = 0; i < nputs; i++)
		FUZZ_CLAIM(puts_[i].found || puts_[i].lsn <= ring->relied ||
				   pg_atomic_read_u64(&puts_[i].e->spill_lsn) >= puts_[i].lsn,
				   "nothing tells of entry %d", i);
	FUZZ_CLAIM(ring->relied <= flushed, "it relies on what is not flushed");
}

static void
damage(fuzz_in *in)
{
	int			n = 1 + (int) fuzz_below(in, 6);

	for (int i = 0; i < n; i++)
	{
		uint32		at = (uint32) fuzz_number(in, 2);
		uint8		by = fuzz_byte(in);

		switch (at % 8)
		{
			case 0:
				((uint8 *) &ring->head)[at / 8 % 8] ^= by;
				break;
			case 1:
				((uint8 *) &ring->tail)[at / 8 % 8] ^= by;
				break;
			case 2:
			case 3:
			case 4:
				/* the first bytes of what may be a record */
				ring->data[(ring->tail + at / 64 % 16 * 8 + at / 8 % 8) % ART_RING_DATA] ^= (char) by;
				break;
			default:
				ring->data[at % ART_RING_DATA] ^= (char) by;
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_in		in = {data, size};
	fuzz_in		harm = fuzz_part(&in, 24);
	ArtRing    *copy;

	fuzz_server_reset();
	if (art_rings == NULL)
		art_rings = fuzz_alloc(sizeof(ArtRing));
	ring = art_rings;
	entries = palloc0(ENTRIES * sizeof(ArtEntry));
	art_ring_clear(ring);
	memset(ring, 0, sizeof(*ring));
	/* the ring of a process that ran for long */
	ring->head = ring->tail = (uint64) fuzz_number(&in, 2) * MAXIMUM_ALIGNOF;
	nputs = 0;
	whole = true;
	flushed = 1000;
	XactLastRecEnd = fuzz_byte(&in) & 1 ? 1000 : InvalidXLogRecPtr;
	while (in.left > 0 && nputs < MOST - 64)
	{
		uint8		op = fuzz_byte(&in);

		if (op == 0xFF)
			break;
		if (op & 128)
		{
			if (XactLastRecEnd == InvalidXLogRecPtr)
				XactLastRecEnd = 1000;
			XactLastRecEnd += op % 16;
			if (op & 16)
				flushed += (XactLastRecEnd - Min(flushed, XactLastRecEnd)) / (1 + op % 4);
			continue;
		}
		for (int i = op & 2 ? fuzz_byte(&in) : 0; i >= 0 && nputs < MOST - 64; i--)
			put(&in, op);
	}
	check_puts();

	whole = false;
	damage(&harm);
	/* alone, so that nobody reads beside it */
	copy = palloc(sizeof(ArtRing));
	memcpy(copy, ring, sizeof(ArtRing));
	ring = copy;
	(void) art_ring_each(copy, found, NULL);
	return 0;
}
