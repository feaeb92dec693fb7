/*
 * check_after_crash.c
 *	  After a crash: a structure that was kept is checked against its table, piece
 *	  by piece.
 *
 * A process that crashes may have written anywhere, also into memory that outlived it.
 * So a worker (database_worker.c) checks each structure as artidx_check does, with a rest after
 * each piece.  A piece has a transaction and a snapshot of its own.  So neither VACUUM nor
 * a command that wants a lock waits for more than a piece.
 *
 * Both halves hold for any one snapshot.  The rows that it sees in some blocks have
 * their entries, and some entries lead to no other rows that it sees.  Only the numbers
 * of rows and entries cannot be compared.
 *
 * The check looks at as many blocks as there were when it began, and at as many entries
 * as those had room for.  Without that it might never end, while others insert, or in a
 * structure that leads back to itself.
 *
 * src/views/README.md: The check
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "workers/workers.h"
#include "views/check.h"
#include "views/views.h"

#define ART_PIECE_WALK		8	/* calls of the core */
#define ART_PIECE_BLOCKS	128 /* of the heap, at most */
#define ART_PIECE_ENTRIES	100	/* each may be in a block of its own, which is read */
#define ART_PIECE_MS		10	/* as many of those, or of blocks, as this takes */

typedef enum Phase
{
	PHASE_WALK = 0,
	PHASE_HEAP,
	PHASE_ENTRIES,
	PHASE_DONE
} Phase;

/* Where a check is, from piece to piece. */
typedef struct ArtRecheck
{
	Phase		phase;
	ArtCheckWalk walk;
	BlockNumber next;			/* block of the heap */
	BlockNumber end;
	BlockNumber blocks;			/* in the next piece */
	ArtBuf		from;			/* the last entry that was looked at */
	uint64		scanned;
	uint64		enough;			/* entries */
} ArtRecheck;

static void
copy(ArtBuf *to, const ArtBuf *from)
{
	to->len = 0;
	art_buf_reserve(to, from->len);
	memcpy(to->data, from->data, from->len);
	to->len = from->len;
}

/* Look at the next leaves. */
static void
recheck_walk(ArtCheck *c, ArtRecheck *r)
{
	for (int i = 0; i < ART_PIECE_WALK && r->phase == PHASE_WALK; i++)
	{
		const ax_tree_info *met = &r->walk.at.info;

		/* of nodes and leaves there are fewer than entries, or not many more */
		if (art_check_walk(c, &r->walk) ||
			met->entries + met->leaves + met->n4 + met->n16 + met->n48 + met->n256 > 4 * r->enough)
			r->phase = PHASE_HEAP;
	}
	r->walk.rested = true;
}

/*
 * Look up the rows of the next blocks in the structure.  The time of the last ones says
 * how many blocks: an expression may be slow, or the disk.
 */
static void
recheck_heap(ArtCheck *c, ArtRecheck *r)
{
	TimestampTz began = GetCurrentTimestamp();
	BlockNumber n;

	/* it may have become shorter */
	r->end = Min(r->end, RelationGetNumberOfBlocks(c->heap));
	if (r->next < r->end)
	{
		n = Min(r->blocks, r->end - r->next);
		art_check_heap(c, r->next, n);
		r->next += n;
	}
	if (TimestampDifferenceExceeds(began, GetCurrentTimestamp(), ART_PIECE_MS))
		r->blocks = Max(r->blocks / 2, 1);
	else
		r->blocks = Min(r->blocks * 2, ART_PIECE_BLOCKS);
	if (r->next >= r->end)
		r->phase = PHASE_ENTRIES;
}

/* Look up the next entries in the table. */
static void
recheck_entries(ArtCheck *c, ArtRecheck *r)
{
	ArtPass		pass;

	art_pass_init(&pass, c->kd, c->cx, ART_PIECE_ENTRIES, 64 * 1024);
	copy(&pass.last, &r->from);
	art_check_entries(c, &pass,
					  TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ART_PIECE_MS));
	copy(&r->from, &pass.last);
	r->scanned += c->scanned;
	if (pass.done || r->scanned >= r->enough)
		r->phase = PHASE_DONE;
	art_pass_end(&pass);
}

/*
 * One piece of the check of this generation; *at is NULL at the first, and allocated in
 * cxt.  True: it was the last one.
 *
 * In a transaction with a snapshot.  ERROR XX002: they differ; 55000: the generation is
 * gone; or whatever the index's expressions raise.
 *
 * Locks: takes none; the caller has locked table and index.
 */
static bool
recheck(Relation index, uint64 gen, void **at, MemoryContext cxt)
{
	ArtRecheck *r = *at;
	ArtCheck	c = {.index = index, .only = gen};

	c.heap = table_open(index->rd_index->indrelid, NoLock);
	if (r == NULL)
	{
		r = *at = MemoryContextAllocZero(cxt, sizeof(ArtRecheck));
		art_buf_init(&r->walk.pos, cxt, 1024);
		art_buf_init(&r->from, cxt, 256);
		r->end = RelationGetNumberOfBlocks(c.heap);
		r->blocks = 1;
		r->enough = (uint64) r->end * MaxHeapTuplesPerPage + ART_CHECK_BATCH;
	}
	c.snapshot = RegisterSnapshot(GetActiveSnapshot());
	art_check_begin(&c);

	if (r->phase == PHASE_WALK)
		recheck_walk(&c, r);
	else if (r->phase == PHASE_HEAP)
		recheck_heap(&c, r);
	else
		recheck_entries(&c, r);

	art_check_end(&c);
	UnregisterSnapshot(c.snapshot);
	table_close(c.heap, NoLock);
	return r->phase == PHASE_DONE;
}

/*
 * From _PG_init.
 */
void
art_recheck_init(void)
{
	art_check_kept_by(recheck);
}
