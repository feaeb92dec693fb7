/*
 * art_doubtful.c
 *	  Rows whose key raises an error, on a standby.
 *
 * A build on a primary waits for the transaction that inserts such a row.  A follower waits for
 * nobody, and uses no subtransaction, in which a conflict with replay would end the process.
 * So the error ends the step, and the row is found out by where the step was.
 *
 *	  its inserter is in progress		it is doubtful: left out, and read again with
 *										each batch, until its transaction has ended
 *	  else, the first time				it is read once more: it may be dead by now,
 *										and its TOASTed values gone
 *	  else								the index goes, and says why
 *
 * As a rule the primary met the same error, and such a row is aborted a moment later.  All WAL up to the
 * position was replayed before the row was read.  So if its inserter was in progress then, its commit
 * comes behind the position, and no scan that was let in sees the row.
 *
 * Replay may cancel a step, for the sake of a snapshot or a lock.  That is no error of the
 * index, which is behind until the next batch.
 *
 * src/README.md: On a standby
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
remember(ArtFollowed *x, BlockNumber block, OffsetNumber root)
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
 * An error came in a step, whose transaction is not ended yet.  *why: of a row, and what the view
 * is to say.
 */
ArtVerdict
art_doubt(ArtFollowed *x, int sqlstate, const char **why)
{
	OffsetNumber root = x->at.root;
	ItemPointerData tid;

	x->at.root = InvalidOffsetNumber;
	if ((sqlstate == ERRCODE_T_R_SERIALIZATION_FAILURE ||
		 sqlstate == ERRCODE_T_R_DEADLOCK_DETECTED ||
		 sqlstate == ERRCODE_QUERY_CANCELED) && x->given_way++ < ART_MOST_GIVEN_WAY)
		return ART_VERDICT_LATER;
	if (root == InvalidOffsetNumber)
		return ART_VERDICT_CLOSE;
	*why = art_kept_reason(sqlstate);
	if (sqlstate == ERRCODE_READ_ONLY_SQL_TRANSACTION)
		return ART_VERDICT_CLOSE;
	if (TransactionIdIsValid(x->at.inserter))
	{
		if (!remember(x, x->at_block, root))
			return ART_VERDICT_CLOSE;
		x->at.left[(root - 1) / 64] &= ~(UINT64CONST(1) << ((root - 1) % 64));
		return ART_VERDICT_AGAIN;
	}
	ItemPointerSet(&tid, x->at_block, root);
	if (ItemPointerEquals(&tid, &x->erred))
		return ART_VERDICT_CLOSE;
	x->erred = tid;
	return ART_VERDICT_AGAIN;
}

/*
 * Read the doubtful rows again with this batch.  A place that records said to be dead since has
 * none.  A build does it at its end.
 */
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

/* The doubtful rows of a block are not among those to be read. */
void
art_doubtful_leave_out(const ArtFollowed *x, BlockNumber block, uint64 *roots)
{
	for (uint32 i = 0; i < x->ndoubtful; i++)
	{
		OffsetNumber root = ItemPointerGetOffsetNumber(&x->doubtful[i]);

		if (ItemPointerGetBlockNumber(&x->doubtful[i]) == block)
			roots[(root - 1) / 64] &= ~(UINT64CONST(1) << ((root - 1) % 64));
	}
}
