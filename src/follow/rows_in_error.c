/*
 * rows_in_error.c
 *	  Rows whose key raises an error, on a standby.
 *
 * A build on a primary waits for the transaction that inserts such a row.  A follower waits for
 * nobody, and uses no subtransaction, in which a conflict with replay would end the process.
 * So the error ends the step, and the row is found out by where the step was.
 *
 *	  it is recently dead, and its		it is left out: nobody sees it any more
 *	  TOASTed values are gone
 *	  its inserter is in progress		it is doubtful: left out, and read again with
 *										each batch, until its transaction has ended
 *	  else, the first time				it is read once more: it may be dead by now,
 *										and its TOASTed values gone
 *	  else								the index goes, and says why
 *
 * As a rule the primary met the same error, and such a row is aborted a moment later.  All WAL up to the
 * position was replayed before the row was read.  So if its inserter was in progress then, its commit
 * comes behind the position.  But replay lets snapshots see a commit before its record counts as
 * replayed.  So an index that has a doubtful row is behind, and no scan is let in.
 *
 * Recently dead: the transaction that deleted the row has committed, and the horizon is older.  In recovery that
 * counts the transactions of all databases.  VACUUM on the primary counts those of its own, so values may go first.
 * Their removal is replayed when no snapshot is left to which the transaction that deleted them runs.
 * They were the row's own, or had passed on to its successor, so that one's end did not precede the row's.  Snapshots
 * that are taken later see both as ended.  So nobody sees the row.
 *
 * It was the last of its chain, whose other members are dead, too: so the chain's root is left out.
 *
 * The launcher cancels a step whose expression does not end, and the index goes (workers/watchdog.c).
 *
 * Replay may cancel a step, for the sake of a snapshot or a lock.  That is no error of the
 * index, which is behind until the next batch.
 *
 * src/follow/README.md: On a standby
 */
#include "postgres.h"

#include "access/transam.h"
#include "storage/itemptr.h"
#include "utils/elog.h"
#include "utils/memutils.h"

#include "follow/follow.h"

#define ART_MOST_DOUBTFUL	1000
#define ART_MOST_GIVEN_WAY	1000	/* times in a row: an error, then */

/* Remember a row.  False: they are too many. */
static bool
remember_row(ArtFollowed *x, BlockNumber block, OffsetNumber root)
{
	if (x->ndoubtful == ART_MOST_DOUBTFUL)
		return false;
	if (x->doubtful == NULL)
		x->doubtful = MemoryContextAlloc(x->cxt, ART_MOST_DOUBTFUL * sizeof(ItemPointerData));
	/* 15's is a macro: no increment within */
	ItemPointerSet(&x->doubtful[x->ndoubtful], block, root);
	x->ndoubtful++;
	return true;
}

/*
 * The values of a recently dead row are gone: it is not to be read again.  A build's step reads all of
 * its pages again, and has to know.
 */
static void
leave_row_out(ArtFollowed *x, OffsetNumber root)
{
	x->at.left[(root - 1) / 64] &= ~(UINT64CONST(1) << ((root - 1) % 64));
	if (x->at.left != x->page_left)
		return;
	if (x->ngone == x->room_gone)
	{
		x->room_gone = Max(64, 2 * x->room_gone);
		x->gone = x->gone == NULL ?
			MemoryContextAllocHuge(x->cxt, x->room_gone * sizeof(ItemPointerData)) :
			repalloc_huge(x->gone, x->room_gone * sizeof(ItemPointerData));
	}
	ItemPointerSet(&x->gone[x->ngone], x->at_block, root);
	x->ngone++;
}

ArtVerdict
art_doubt(ArtFollowed *x, int sqlstate, const char **why)
{
	OffsetNumber root = x->at.root;
	ItemPointerData tid;

	x->at.root = InvalidOffsetNumber;
	if (sqlstate == ERRCODE_QUERY_CANCELED && art_watch_end() == ART_END_STUCK)
	{
		*why = ART_STUCK_TEXT;
		return ART_VERDICT_CLOSE;
	}
	if ((sqlstate == ERRCODE_T_R_SERIALIZATION_FAILURE ||
		 sqlstate == ERRCODE_T_R_DEADLOCK_DETECTED ||
		 sqlstate == ERRCODE_QUERY_CANCELED) && x->given_way++ < ART_MOST_GIVEN_WAY)
		return ART_VERDICT_LATER;
	if (root == InvalidOffsetNumber)
		return ART_VERDICT_CLOSE;
	*why = art_kept_reason(sqlstate);
	if (sqlstate == ERRCODE_READ_ONLY_SQL_TRANSACTION)
		return ART_VERDICT_CLOSE;
	if (sqlstate == ERRCODE_DATA_CORRUPTED && x->at.dying)
	{
		leave_row_out(x, root);
		return ART_VERDICT_AGAIN;
	}
	if (TransactionIdIsValid(x->at.inserter))
	{
		if (!remember_row(x, x->at_block, root))
			return ART_VERDICT_CLOSE;
		x->at.left[(root - 1) / 64] &= ~(UINT64CONST(1) << ((root - 1) % 64));
		return ART_VERDICT_AGAIN;
	}
	ItemPointerSet(&tid, x->at_block, root);
	if (ItemPointerIsValid(&x->erred) && ItemPointerEquals(&tid, &x->erred))
		return ART_VERDICT_CLOSE;
	x->erred = tid;
	return ART_VERDICT_AGAIN;
}

void
art_doubtful_read_again(ArtFollowed *x)
{
	if (x->building && x->next_block < x->nblocks)
		return;
	for (uint32 i = 0; i < x->ndoubtful; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&x->doubtful[i]);
		OffsetNumber root = ItemPointerGetOffsetNumber(&x->doubtful[i]);

		if (!art_touched_is_dead(&x->touched, block, root))
			art_touched_row(&x->touched, block, root);
	}
	x->ndoubtful = 0;
}

/* Take those of some rows that are of this block out of the roots to be read. */
static void
not_to_read(const ItemPointerData *rows, uint32 n, BlockNumber block, uint64 *roots)
{
	for (uint32 i = 0; i < n; i++)
	{
		OffsetNumber root = ItemPointerGetOffsetNumber(&rows[i]);

		if (ItemPointerGetBlockNumber(&rows[i]) == block)
			roots[(root - 1) / 64] &= ~(UINT64CONST(1) << ((root - 1) % 64));
	}
}

void
art_doubtful_leave_out(const ArtFollowed *x, BlockNumber block, uint64 *roots)
{
	not_to_read(x->doubtful, x->ndoubtful, block, roots);
	not_to_read(x->gone, x->ngone, block, roots);
}
