/*
 * wal.c
 *	  Fuzz target: WAL records of the heap, as the follower of a standby reads them.
 *
 * The input says which line pointers a record names.  The record is made of it with the server's own
 * types, and the follower must read the same.  Then the record is damaged or cut off: it is refused,
 * or what it tells lies within a page.
 */
#include "server.h"

#include "access/heapam_xlog.h"
#include "access/rmgr.h"

#include "art_compat.h"
#include "follow/follow.h"

#define MOST	64

typedef struct Said
{
	ArtRowNews	news;
	OffsetNumber off;
} Said;

static Said said[MOST * 2];
static int	nsaid;
static int	nread;
static bool whole;

static void
tell(void *arg, ArtRowNews news, OffsetNumber off)
{
	FUZZ_CLAIM(off >= FirstOffsetNumber && off <= MaxHeapTuplesPerPage, "line pointer %u", off);
	if (whole)
	{
		FUZZ_CLAIM(nread < nsaid, "%d were said", nsaid);
		FUZZ_CLAIM(said[nread].news == news && said[nread].off == off, "the %dth: %d of %u, not %d of %u",
				   nread, (int) news, off, (int) said[nread].news, said[nread].off);
	}
	nread++;
}

static OffsetNumber
say(fuzz_in *in, ArtRowNews news)
{
	OffsetNumber off = (OffsetNumber) (FirstOffsetNumber + fuzz_number(in, 2) % MaxHeapTuplesPerPage);

	said[nsaid++] = (Said) {news, off};
	return off;
}

/* Bytes that are put together, then copied to their exact length. */
typedef struct Bytes
{
	uint32		len;
	char		p[4096];
} Bytes;

static void
add(Bytes *b, const void *p, Size n)
{
	memcpy(b->p + b->len, p, n);
	b->len += (uint32) n;
}

static void
add_offset(Bytes *b, OffsetNumber off)
{
	add(b, &off, sizeof(off));
}

/* A record of a prune, or of VACUUM's second pass. */
static void
make_prune(fuzz_in *in, DecodedXLogRecord *rec, Bytes *data, Bytes *block)
{
	uint32		nredirected = fuzz_below(in, 8);
	uint32		ndead = fuzz_below(in, MOST);
	uint32		nunused = fuzz_below(in, MOST);
	xl_heap_prune x;
#if PG_VERSION_NUM >= 170000
	uint16		n;
#endif

	memset(&x, 0, sizeof(x));
#if PG_VERSION_NUM >= 170000
	rec->header.xl_info = XLOG_HEAP2_PRUNE_VACUUM_SCAN;
	x.flags = (nredirected ? XLHP_HAS_REDIRECTIONS : 0) | (ndead ? XLHP_HAS_DEAD_ITEMS : 0) |
		(nunused ? XLHP_HAS_NOW_UNUSED_ITEMS : 0);
	add(data, &x, SizeOfHeapPrune);
	n = (uint16) nredirected;
	if (n)
		add(block, &n, sizeof(n));
#else
	rec->header.xl_info = fuzz_byte(in) % 4 == 0 ? XLOG_HEAP2_VACUUM : XLOG_HEAP2_PRUNE;
	if (rec->header.xl_info == XLOG_HEAP2_VACUUM)
		nredirected = ndead = 0;
	x.nredirected = (uint16) nredirected;
	x.ndead = (uint16) ndead;
	if (rec->header.xl_info == XLOG_HEAP2_PRUNE)
		add(data, &x, SizeOfHeapPrune);
	else
		add_offset(data, (OffsetNumber) nunused);
#endif
	for (uint32 i = 0; i < 2 * nredirected; i++)
		add_offset(block, (OffsetNumber) (1 + i));
#if PG_VERSION_NUM >= 170000
	n = (uint16) ndead;
	if (n)
		add(block, &n, sizeof(n));
#endif
	for (uint32 i = 0; i < ndead; i++)
		add_offset(block, say(in, ART_ROW_DEAD));
#if PG_VERSION_NUM >= 170000
	n = (uint16) nunused;
	if (n)
		add(block, &n, sizeof(n));
#endif
	for (uint32 i = 0; i < nunused; i++)
		add_offset(block, say(in, ART_ROW_FREED));
}

/* The record and, if it has one, its block's data. */
static ArtRecordKind
make_record(fuzz_in *in, DecodedXLogRecord *rec, Bytes *data, Bytes *block)
{
	switch (fuzz_byte(in) % 5)
	{
		case 0:
			{
				xl_heap_insert x = {say(in, ART_ROW_CAME), 0};

				rec->header.xl_rmid = RM_HEAP_ID;
				rec->header.xl_info = XLOG_HEAP_INSERT | (fuzz_byte(in) & 1 ? XLOG_HEAP_INIT_PAGE : 0);
				add(data, &x, SizeOfHeapInsert);
				return ART_RECORD_INSERT;
			}
		case 1:
			{
				xl_heap_update x;

				memset(&x, 0, sizeof(x));
				x.new_offnum = say(in, ART_ROW_CAME);
				rec->header.xl_rmid = RM_HEAP_ID;
				rec->header.xl_info = XLOG_HEAP_UPDATE;
				add(data, &x, SizeOfHeapUpdate);
				return ART_RECORD_UPDATE;
			}
		case 2:
			{
				xl_heap_multi_insert x;
				bool		init = fuzz_byte(in) & 1;

				memset(&x, 0, sizeof(x));
				x.ntuples = (uint16) fuzz_below(in, MOST);
				rec->header.xl_rmid = RM_HEAP2_ID;
				rec->header.xl_info = XLOG_HEAP2_MULTI_INSERT | (init ? XLOG_HEAP_INIT_PAGE : 0);
				add(data, &x, SizeOfHeapMultiInsert);
				for (uint32 i = 0; i < x.ntuples; i++)
				{
					if (init)
						said[nsaid++] = (Said) {ART_ROW_CAME, (OffsetNumber) (FirstOffsetNumber + i)};
					else
						add_offset(data, say(in, ART_ROW_CAME));
				}
				return ART_RECORD_INSERTS;
			}
		case 3:
			rec->header.xl_rmid = fuzz_byte(in) & 1 ? RM_HEAP_ID : RM_BTREE_ID;
			rec->header.xl_info = XLOG_HEAP_HOT_UPDATE;
			return ART_RECORD_OTHER;
		default:
			rec->header.xl_rmid = RM_HEAP2_ID;
			make_prune(in, rec, data, block);
			return ART_RECORD_PRUNE;
	}
}

/* Damage some bytes, or cut them off. */
static void
damage(fuzz_in *in, Bytes *b)
{
	for (int i = (int) fuzz_below(in, 4); i > 0 && b->len > 0; i--)
	{
		uint32		at = fuzz_below(in, b->len);
		uint8		by = fuzz_byte(in);

		if (by % 8 == 0)
			b->len = at;
		else
			b->p[at] ^= (char) by;
	}
}

static void *
exactly(const Bytes *b)
{
	return memcpy(palloc(b->len), b->p, b->len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static Bytes main_data;
	static Bytes block;
	fuzz_in		in = {data, size};
	fuzz_in		harm = fuzz_part(&in, 16);
	DecodedXLogRecord *rec;
	ArtRecordKind kind;

	fuzz_server_reset();
	main_data.len = block.len = 0;
	nsaid = nread = 0;
	rec = palloc0(offsetof(DecodedXLogRecord, blocks) + sizeof(rec->blocks[0]));
	kind = make_record(&in, rec, &main_data, &block);
	rec->main_data = exactly(&main_data);
	rec->main_data_len = main_data.len;
	rec->blocks[0].in_use = rec->blocks[0].has_data = true;
	rec->blocks[0].data = exactly(&block);
	rec->blocks[0].data_len = (uint16) block.len;
	whole = true;
	FUZZ_CLAIM(art_record_kind(rec) == kind, "a record of kind %d, not %d", (int) art_record_kind(rec), (int) kind);
	FUZZ_CLAIM(art_record_rows(rec, kind, tell, NULL), "a whole record of kind %d is refused", (int) kind);
	FUZZ_CLAIM(nread == nsaid, "%d read, %d said", nread, nsaid);

	/* from 17 on the server's own function reads a prune's data, and believes it: see art_pruned() */
	whole = false;
	damage(&harm, &main_data);
	if (PG_VERSION_NUM < 170000 || kind != ART_RECORD_PRUNE)
		damage(&harm, &block);
	rec->header.xl_info ^= (uint8) (fuzz_byte(&harm) & XLOG_HEAP_INIT_PAGE);
	rec->main_data = exactly(&main_data);
	rec->main_data_len = main_data.len;
	rec->blocks[0].data = exactly(&block);
	rec->blocks[0].data_len = (uint16) block.len;
	(void) art_record_rows(rec, kind, tell, NULL);
	return 0;
}
