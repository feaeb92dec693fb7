/*
 * touched_rows.c
 *	  What WAL has said of a table's line pointers, and a structure does not have
 *	  yet.
 *
 * The life of a line pointer that has an entry, as its records tell it:
 *
 *	  a row comes		the page is to be read again
 *	  it is dead		the entry may go; a fetch finds nothing there
 *	  it is unused		the entry must go before a row comes here again
 *
 * VACUUM makes all the line pointers of a round dead before it frees the first.  So
 * the first record that frees one which was not swept begins a sweep of all of them.
 * The round's other records find nothing to do.  For that the ones that
 * were swept are remembered until they are unused.
 *
 * A sweep goes on in slices beside the records that are taken.  A line pointer that dies meanwhile
 * is for the next one, as the keys before it may hold its entry.  A row may come to one that
 * the sweep is to free: then the sweep ends before the row is read.  If the row comes to one that died
 * since the sweep began, it begins anew, with both.
 *
 * One that is freed and is in neither set has no entry.  It was dead when the build
 * began, and the build keeps no dead one.  Or it was of a row within its page, which no
 * index knows.
 *
 * All of it is the follower's own memory.  Offsets lie within a page: record_rows.c
 * tells of no others.
 *
 * src/follow/README.md: On a standby
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "follow/follow.h"

#define ART_MOST_DENSE	(1024 * 1024)	/* blocks; 40 bytes each */

#define WORD(off)	(((off) - 1) / 64)
#define BIT(off)	(UINT64CONST(1) << (((off) - 1) % 64))

void
art_touched_init(ArtTouched *t, MemoryContext cxt)
{
	t->cxt = AllocSetContextCreate(cxt, "artidx touched blocks", ALLOCSET_DEFAULT_SIZES);
	art_touched_free(t);
}

void
art_touched_free(ArtTouched *t)
{
	MemoryContextReset(t->cxt);
	t->blocks = NULL;
	t->last = NULL;
	t->to_read = NULL;
	t->nto_read = t->room = 0;
	t->ndead = t->nsweeping = 0;
	t->due = t->now = t->anew = false;
	t->cut = t->sweeping_cut = InvalidBlockNumber;
	t->dense = NULL;
}

uint64
art_touched_blocks(const ArtTouched *t)
{
	return t->blocks == NULL ? 0 : (uint64) hash_get_num_entries(t->blocks);
}

/* The place of a block, if it has one. */
static ArtTouchedBlock *
find_block(const ArtTouched *t, BlockNumber block)
{
	if (t->last != NULL && t->last->block == block)
		return t->last;
	return t->blocks == NULL ? NULL : hash_search(t->blocks, &block, HASH_FIND, NULL);
}

/* The place for a block, in which is nothing at first. */
static ArtTouchedBlock *
touched_block(ArtTouched *t, BlockNumber block)
{
	ArtTouchedBlock *b;
	bool		found;

	if (t->last != NULL && t->last->block == block)
		return t->last;
	if (t->blocks == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(BlockNumber);
		ctl.entrysize = sizeof(ArtTouchedBlock);
		ctl.hcxt = t->cxt;
		t->blocks = hash_create("artidx touched blocks", 128, &ctl,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	b = hash_search(t->blocks, &block, HASH_ENTER, &found);
	if (!found)
		memset((char *) b + offsetof(ArtTouchedBlock, rows), 0,
			   sizeof(*b) - offsetof(ArtTouchedBlock, rows));
	t->last = b;
	return b;
}

void
art_touched_row(ArtTouched *t, BlockNumber block, OffsetNumber off)
{
	ArtTouchedBlock *b;

	if (off < FirstOffsetNumber || off > MaxHeapTuplesPerPage)
		return;
	b = touched_block(t, block);
	b->rows[WORD(off)] |= BIT(off);
	if ((b->dead[WORD(off)] & BIT(off)) || block >= t->cut)
		t->now = t->anew = true;
	else if ((b->sweeping[WORD(off)] & BIT(off)) || block >= t->sweeping_cut)
		t->now = true;
	if (b->listed)
		return;
	if (t->nto_read == t->room)
	{
		t->room = Max(64, 2 * t->room);
		t->to_read = t->to_read == NULL ?
			MemoryContextAllocHuge(t->cxt, t->room * sizeof(ArtTouchedBlock *)) :
			repalloc_huge(t->to_read, t->room * sizeof(ArtTouchedBlock *));
	}
	t->to_read[t->nto_read++] = b;
	b->listed = true;
}

ArtTouchedBlock *
art_touched_to_read(const ArtTouched *t)
{
	return t->nto_read == 0 ? NULL : t->to_read[t->nto_read - 1];
}

/* Is there nothing left to say of a block?  One that is to be read may have no rows left. */
static bool
is_done(const ArtTouchedBlock *b)
{
	uint64		any = 0;

	for (int i = 0; i < ART_PAGE_WORDS; i++)
		any |= b->rows[i] | b->dead[i] | b->sweeping[i] | b->swept[i];
	return !b->listed && any == 0;
}

void
art_touched_was_read(ArtTouched *t, ArtTouchedBlock *b)
{
	Assert(t->to_read[t->nto_read - 1] == b);
	t->nto_read--;
	memset(b->rows, 0, sizeof(b->rows));
	b->listed = false;
	if (is_done(b))
	{
		t->last = NULL;
		(void) hash_search(t->blocks, &b->block, HASH_REMOVE, NULL);
	}
}

void
art_touched_dead(ArtTouched *t, BlockNumber block, OffsetNumber off)
{
	ArtTouchedBlock *b;

	if (off < FirstOffsetNumber || off > MaxHeapTuplesPerPage)
		return;
	b = touched_block(t, block);
	if ((b->swept[WORD(off)] | (b->sweeping[WORD(off)] & ~b->freed[WORD(off)])) & BIT(off))
		return;
	if ((b->dead[WORD(off)] & BIT(off)) == 0)
		t->ndead++;
	b->dead[WORD(off)] |= BIT(off);
	b->freed[WORD(off)] &= ~BIT(off);
}

void
art_touched_freed(ArtTouched *t, BlockNumber block, OffsetNumber off)
{
	ArtTouchedBlock *b;

	if (off < FirstOffsetNumber || off > MaxHeapTuplesPerPage)
		return;
	b = find_block(t, block);
	if (b == NULL)
		return;
	t->last = b;
	b->swept[WORD(off)] &= ~BIT(off);
	if ((b->dead[WORD(off)] | b->sweeping[WORD(off)]) & BIT(off))
		b->freed[WORD(off)] |= BIT(off);
	if (b->dead[WORD(off)] & BIT(off))
		t->due = true;
}

void
art_touched_cut(ArtTouched *t, BlockNumber block)
{
	t->cut = Min(t->cut, block);
	t->now = t->anew = true;
}

/* Where the blocks are near to one another their bits go into an array. */
void
art_touched_sweep(ArtTouched *t, MemoryContext cxt)
{
	HASH_SEQ_STATUS seq;
	ArtTouchedBlock *b;
	BlockNumber last = 0;

	t->nsweeping += t->ndead;
	t->ndead = 0;
	t->due = t->anew = false;
	t->sweeping_cut = Min(t->sweeping_cut, t->cut);
	t->cut = InvalidBlockNumber;
	t->dense = NULL;
	t->first = InvalidBlockNumber;
	if (t->blocks == NULL)
		return;
	hash_seq_init(&seq, t->blocks);
	while ((b = hash_seq_search(&seq)) != NULL)
	{
		for (int i = 0; i < ART_PAGE_WORDS; i++)
			b->sweeping[i] |= b->dead[i];
		memset(b->dead, 0, sizeof(b->dead));
		t->first = Min(t->first, b->block);
		last = Max(last, b->block);
	}
	if (t->first > last || last - t->first >= ART_MOST_DENSE)
		return;
	t->ndense = last - t->first + 1;
	t->dense = MemoryContextAllocHuge(cxt, t->ndense * sizeof(b->sweeping));
	memset(t->dense, 0, t->ndense * sizeof(b->sweeping));
	hash_seq_init(&seq, t->blocks);
	while ((b = hash_seq_search(&seq)) != NULL)
		memcpy(t->dense + (Size) (b->block - t->first) * ART_PAGE_WORDS, b->sweeping, sizeof(b->sweeping));
}

bool
art_touched_is_sweeping(const ArtTouched *t, uint64 tid)
{
	BlockNumber block = (BlockNumber) (tid >> 16);
	OffsetNumber off = (OffsetNumber) (tid & 0xFFFF);
	ArtTouchedBlock *b;

	if (block >= t->sweeping_cut)
		return true;
	if (t->dense != NULL)
		return block >= t->first && block - t->first < t->ndense &&
			off >= FirstOffsetNumber && off <= MaxHeapTuplesPerPage &&
			(t->dense[(Size) (block - t->first) * ART_PAGE_WORDS + WORD(off)] & BIT(off)) != 0;
	b = find_block(t, block);
	return b != NULL && off >= FirstOffsetNumber && off <= MaxHeapTuplesPerPage &&
		(b->sweeping[WORD(off)] & BIT(off)) != 0;
}

bool
art_touched_is_dead(const ArtTouched *t, BlockNumber block, OffsetNumber off)
{
	ArtTouchedBlock *b = find_block(t, block);

	return block >= Min(t->cut, t->sweeping_cut) ||
		(b != NULL && ((b->dead[WORD(off)] | b->sweeping[WORD(off)]) & BIT(off)) != 0);
}

bool
art_touched_all_swept(const ArtTouched *t)
{
	return t->ndead == 0 && t->nsweeping == 0 && !t->due && !t->now;
}

bool
art_touched_must_sweep(const ArtTouched *t)
{
	return t->due || t->now || t->nsweeping > 0 || t->cut != InvalidBlockNumber;
}

/* Forget the blocks of which nothing is left to say. */
static void
tidy_blocks(ArtTouched *t)
{
	HASH_SEQ_STATUS seq;
	ArtTouchedBlock *b;

	t->last = NULL;
	hash_seq_init(&seq, t->blocks);
	while ((b = hash_seq_search(&seq)) != NULL)
		if (is_done(b))
			(void) hash_search(t->blocks, &b->block, HASH_REMOVE, NULL);
	if (hash_get_num_entries(t->blocks) == 0)
		art_touched_free(t);
}

void
art_touched_swept(ArtTouched *t, bool forget)
{
	HASH_SEQ_STATUS seq;
	ArtTouchedBlock *b;

	Assert(!t->anew);
	t->nsweeping = 0;
	t->due = t->now = false;
	t->sweeping_cut = InvalidBlockNumber;
	t->dense = NULL;
	if (t->blocks == NULL)
		return;
	hash_seq_init(&seq, t->blocks);
	while ((b = hash_seq_search(&seq)) != NULL)
	{
		for (int i = 0; i < ART_PAGE_WORDS; i++)
		{
			b->swept[i] = forget ? 0 : b->swept[i] | (b->sweeping[i] & ~b->freed[i] & ~b->dead[i]);
			b->freed[i] &= b->dead[i];
			b->sweeping[i] = 0;
			t->due |= b->freed[i] != 0;
		}
	}
	tidy_blocks(t);
}
