/*
 * heap_rows.c
 *	  The rows of a table, page by page, as encoded keys: what a build inserts,
 *	  and what a private scan returns.
 *
 * Each page is read atomically, under its share lock: line pointers' roots,
 * then visibility, then copies of the rows.  Expressions are evaluated on the
 * copies, with nothing held, and as the room src/eval says.
 *
 * src/live/README.md: Residency
 * src/scan/README.md: The private scan
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"
#include "build/build.h"

/* one page's rows, copied out */
typedef struct PageRows
{
	int			n;
	OffsetNumber off[MaxHeapTuplesPerPage];
	OffsetNumber root[MaxHeapTuplesPerPage];
	TransactionId inserter[MaxHeapTuplesPerPage];	/* in progress, not ours */
	bool		dying[MaxHeapTuplesPerPage];	/* recently dead, with TOASTed values */
	uint32		len[MaxHeapTuplesPerPage];
	uint32		at[MaxHeapTuplesPerPage];
	char	   *data;			/* copies of the tuples */
	uint32		size;
} PageRows;

struct ArtHeapReader
{
	Relation	heap;
	Relation	index;
	const ArtKeyDesc *kd;
	ArtHeapMode mode;
	Snapshot	snapshot;		/* MVCC mode */
	bool		own_index;		/* this transaction made the index */
	TransactionId oldest;
	BufferAccessStrategy strategy;
	MemoryContext cxt;
	ArtEval    *eval;
	TupleTableSlot *slot;
	ArtBuf		key;
	PageRows   *rows;
};

/*
 * The tuples that are reached from a root line pointer, itself first if it is one; how
 * many.  As heap_get_root_tuples().  Up to 15.18 that tests the wrong variable against
 * the end of the line pointer array.  So it can follow a stale link of an
 * aborted update beyond it.
 */
static int
chain_of(Page page, OffsetNumber root, OffsetNumber *members)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	ItemId		lp = PageGetItemId(page, root);
	TransactionId xmax = InvalidTransactionId;
	OffsetNumber off;
	int			n = 0;

	if (ItemIdIsRedirected(lp))
		off = ItemIdGetRedirect(lp);
	else if (ItemIdIsNormal(lp) &&
			 !HeapTupleHeaderIsHeapOnly((HeapTupleHeader) PageGetItem(page, lp)))
		off = root;
	else
		return 0;				/* met from its root, if it has one */

	/* down the chain, as long as each link fits the next tuple */
	while (off >= FirstOffsetNumber && off <= maxoff)
	{
		HeapTupleHeader tup;

		lp = PageGetItemId(page, off);
		if (!ItemIdIsNormal(lp))
			break;
		tup = (HeapTupleHeader) PageGetItem(page, lp);
		if (TransactionIdIsValid(xmax) &&
			!TransactionIdEquals(xmax, HeapTupleHeaderGetXmin(tup)))
			break;
		for (int i = 0; i < n; i++)
			if (members[i] == off)
				return n;		/* corrupt: a ring */
		members[n++] = off;
		if (!HeapTupleHeaderIsHotUpdated(tup))
			break;
		off = ItemPointerGetOffsetNumber(&tup->t_ctid);
		xmax = HeapTupleHeaderGetUpdateXid(tup);
	}
	return n;
}

/* The root line pointer of every tuple of a page: 0 for none. */
static void
page_roots(Page page, OffsetNumber *roots)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	OffsetNumber members[MaxHeapTuplesPerPage];

	memset(roots, 0, MaxHeapTuplesPerPage * sizeof(OffsetNumber));
	for (OffsetNumber root = FirstOffsetNumber; root <= maxoff; root++)
	{
		int			n = chain_of(page, root, members);

		for (int i = 0; i < n; i++)
			roots[members[i] - 1] = root;
	}
}

OffsetNumber
art_visible_roots(Page page, OffsetNumber *roots)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	bool		chains = false;

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		bool		row = ItemIdIsNormal(lp);

		roots[off - 1] = row ? off : InvalidOffsetNumber;
		chains |= row && HeapTupleHeaderIsHeapOnly((HeapTupleHeader) PageGetItem(page, lp));
	}
	if (!chains)
		return InvalidOffsetNumber;
	page_roots(page, roots);
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		if (ItemIdIsNormal(PageGetItemId(page, off)) && roots[off - 1] == InvalidOffsetNumber)
			return off;
	}
	return InvalidOffsetNumber;
}

void
art_report_orphan(Relation heap, BlockNumber blkno, OffsetNumber off)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg_internal("failed to find parent tuple for heap-only tuple at (%u,%u) in table \"%s\"",
							 blkno, off, RelationGetRelationName(heap))));
}

/*
 * A build keeps everything that anybody may still see, also what is being
 * inserted or deleted.  Not the members of a HOT chain that are dead to new
 * snapshots.  Their successor has the key; or the chain is older than the
 * index, and the key would be wrong.
 */
static bool
keep_for_build(ArtHeapReader *r, HeapTuple tup, Buffer buf,
			   TransactionId *inserter, bool *dying)
{
	switch (HeapTupleSatisfiesVacuum(tup, r->oldest, buf))
	{
		case HEAPTUPLE_DEAD:
			return false;
		case HEAPTUPLE_RECENTLY_DEAD:
			*dying = HeapTupleHasExternal(tup);
			return !HeapTupleIsHotUpdated(tup);
		case HEAPTUPLE_DELETE_IN_PROGRESS:

			/*
			 * In the transaction that makes the index a chain may be older
			 * than the index.  Its first members then have another key: leave
			 * them out, as core's build does.
			 */
			return !(r->own_index && HeapTupleIsHotUpdated(tup) &&
					 TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tup->t_data)));
		case HEAPTUPLE_INSERT_IN_PROGRESS:
			if (!TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tup->t_data)))
				*inserter = HeapTupleHeaderGetXmin(tup->t_data);
			return true;
		case HEAPTUPLE_LIVE:
			return true;
	}
	return true;
}

/*
 * Copy a row of a page out, if it is to be kept.  False: it is a member of a chain
 * without a root.
 */
static bool
copy_row(ArtHeapReader *r, Buffer buf, BlockNumber blkno, OffsetNumber off, OffsetNumber root)
{
	PageRows   *rows = r->rows;
	Page		page = BufferGetPage(buf);
	ItemId		lp = PageGetItemId(page, off);
	HeapTupleData tup;
	TransactionId inserter = InvalidTransactionId;
	bool		dying = false;
	bool		keep;

	if (!ItemIdIsNormal(lp))
		return true;
	tup.t_data = (HeapTupleHeader) PageGetItem(page, lp);
	tup.t_len = ItemIdGetLength(lp);
	tup.t_tableOid = RelationGetRelid(r->heap);
	ItemPointerSet(&tup.t_self, blkno, off);

	if (r->mode == ART_HEAP_BUILD)
		keep = keep_for_build(r, &tup, buf, &inserter, &dying);
	else
	{
		/*
		 * The executor checks for conflicts what the scan hands it; the
		 * rows that we leave out, it never sees.
		 */
		keep = HeapTupleSatisfiesVisibility(&tup, r->snapshot, buf);
		HeapCheckForSerializableConflictOut(keep, r->heap, &tup, buf,
											r->snapshot);
	}
	if (!keep)
		return true;
	if (root == InvalidOffsetNumber)
		return false;
	rows->off[rows->n] = off;
	rows->root[rows->n] = root;
	rows->inserter[rows->n] = inserter;
	rows->dying[rows->n] = dying;
	rows->len[rows->n] = tup.t_len;
	rows->at[rows->n] = rows->size;
	memcpy(rows->data + rows->size, tup.t_data, tup.t_len);
	rows->size += MAXALIGN(tup.t_len);
	rows->n++;
	return true;
}

/* The rows of a copy of an all-visible page, with these roots: all are live. */
static void
copied_rows(PageRows *rows, const OffsetNumber *roots)
{
	Page		page = (Page) rows->data;
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		int			n = rows->n;

		if (roots[off - 1] == InvalidOffsetNumber)
			continue;
		rows->off[n] = off;
		rows->root[n] = roots[off - 1];
		rows->inserter[n] = InvalidTransactionId;
		rows->dying[n] = false;
		rows->len[n] = ItemIdGetLength(lp);
		rows->at[n] = ItemIdGetOffset(lp);
		rows->n++;
	}
}

/*
 * Copy the rows of a page out, all (NULL) or those of the chains with these roots, chain by chain.
 */
static void
read_heap_page(ArtHeapReader *r, BlockNumber blkno, const uint64 *only)
{
	OffsetNumber roots[MaxHeapTuplesPerPage];
	Buffer		buf;
	Page		page;
	OffsetNumber maxoff;
	OffsetNumber orphan = InvalidOffsetNumber;

	r->rows->n = 0;
	r->rows->size = 0;

	/*
	 * Some rows were deleted before our snapshot and are seen by an older one.
	 * They lose their TOAST as soon as that one goes and the TOAST table is
	 * vacuumed, and must be dead to us by then.  (In recovery they need not be:
	 * rows_in_error.c.)
	 */
	if (r->mode == ART_HEAP_BUILD && OidIsValid(r->heap->rd_rel->reltoastrelid))
		art_heap_horizon(r);

	buf = ReadBufferExtended(r->heap, MAIN_FORKNUM, blkno, RBM_NORMAL, r->strategy);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	if (r->mode == ART_HEAP_MVCC)
		ART_TEST_OLD_SNAPSHOT(r->snapshot, r->heap, page);
	maxoff = PageGetMaxOffsetNumber(page);

	if (r->mode == ART_HEAP_BUILD && only == NULL && PageIsAllVisible(page))
	{
		memcpy(r->rows->data, page, BLCKSZ);
		orphan = art_visible_roots((Page) r->rows->data, roots);
		UnlockReleaseBuffer(buf);
		if (orphan != InvalidOffsetNumber)
			art_report_orphan(r->heap, blkno, orphan);
		copied_rows(r->rows, roots);
		return;
	}
	if (only == NULL)
	{
		page_roots(page, roots);
		for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
		{
			if (!copy_row(r, buf, blkno, off, roots[off - 1]))
			{
				orphan = off;
				break;
			}
		}
	}
	else
	{
		for (OffsetNumber root = FirstOffsetNumber; root <= maxoff; root++)
		{
			int			n;

			if ((only[(root - 1) / 64] >> ((root - 1) % 64) & 1) == 0)
				continue;
			n = chain_of(page, root, roots);
			for (int i = 0; i < n; i++)
				(void) copy_row(r, buf, blkno, roots[i], root);
		}
	}
	UnlockReleaseBuffer(buf);

	if (orphan != InvalidOffsetNumber)
		art_report_orphan(r->heap, blkno, orphan);
}

/*
 * The key of a copied row into r->key; false when the predicate leaves it out.
 */
static bool
row_key(ArtHeapReader *r, BlockNumber blkno, int i)
{
	HeapTupleData tup;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext old;
	bool		begun = r->eval->evaluates && art_evaluate_begin();

	art_eval_next(r->eval);
	tup.t_len = r->rows->len[i];
	tup.t_data = (HeapTupleHeader) (r->rows->data + r->rows->at[i]);
	tup.t_tableOid = RelationGetRelid(r->heap);
	ItemPointerSet(&tup.t_self, blkno, r->rows->root[i]);
	ExecStoreHeapTuple(&tup, r->slot, false);

	if (!art_eval_has(r->eval, r->slot))
	{
		art_evaluate_end(begun);
		return false;
	}
	old = MemoryContextSwitchTo(art_eval_memory(r->eval));
	art_eval_columns(r->eval, r->slot, values, isnull);
	(void) art_encode(r->kd, values, isnull, &r->key);
	MemoryContextSwitchTo(old);
	art_evaluate_end(begun);
	return true;
}

/*
 * The same for a row whose inserter is in progress.  The expression may raise
 * an error that its inserter meets, too, and then the row is nobody's.
 * Returns 1 or 0 as above, -1 when it raised an error.
 */
static int
row_key_of_inserter(ArtHeapReader *r, BlockNumber blkno, int i)
{
	MemoryContext cxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	const bool	within = art_evaluates();
	volatile int result = -1;

	if (IsInParallelMode())
		return row_key(r, blkno, i);	/* no subtransaction is to be had */

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(cxt);
	PG_TRY();
	{
		result = row_key(r, blkno, i);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(cxt);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData  *err;

		MemoryContextSwitchTo(cxt);
		err = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		if (!within)
			art_evaluate_reset();
		MemoryContextSwitchTo(cxt);
		CurrentResourceOwner = owner;
		if (err->sqlerrcode == ERRCODE_QUERY_CANCELED ||
			err->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN ||
			err->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED)
			ReThrowError(err);
		FreeErrorData(err);
		result = -1;
	}
	PG_END_TRY();
	return result;
}

/* Rows whose expression raised an error while their inserters were in progress. */
typedef struct FailedRows
{
	int			n;
	OffsetNumber off[MaxHeapTuplesPerPage];
	TransactionId inserter;		/* of the first */
} FailedRows;

/* The rows of a page that was read, "only" one line pointer of it or all. */
static void
page_rows(ArtHeapReader *r, BlockNumber blkno, OffsetNumber only, ArtHeapRow fn, void *arg,
		  FailedRows *failed)
{
	failed->n = 0;
	for (int i = 0; i < r->rows->n; i++)
	{
		ItemPointerData root;
		int			got;

		if (only != InvalidOffsetNumber && r->rows->off[i] != only)
			continue;
		if (r->eval->evaluates && TransactionIdIsValid(r->rows->inserter[i]))
			got = row_key_of_inserter(r, blkno, i);
		else
			got = row_key(r, blkno, i);
		if (got > 0)
		{
			ItemPointerSet(&root, blkno, r->rows->root[i]);
			fn(arg, r->key.data, r->key.len, art_tid_pack(&root));
		}
		else if (got < 0)
		{
			if (failed->n == 0)
				failed->inserter = r->rows->inserter[i];
			failed->off[failed->n++] = r->rows->off[i];
		}
	}
}

/* ---- public ---- */

ArtHeapReader *
art_heap_begin(Relation heap, Relation index, const ArtKeyDesc *kd,
			   ArtHeapMode mode, Snapshot snapshot)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext,
											  "art heap reader",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	ArtHeapReader *r = palloc0(sizeof(ArtHeapReader));
	bool		begun;

	art_must_evaluate(index, NULL);
	r->heap = heap;
	r->index = index;
	r->kd = kd;
	r->mode = mode;
	r->snapshot = snapshot;
	r->cxt = cxt;
	r->own_index = index->rd_createSubid != InvalidSubTransactionId ||
		ART_REL_NEW_SUBID(index) != InvalidSubTransactionId;

	r->strategy = GetAccessStrategy(BAS_BULKREAD);
	/* the relation cache evaluates constants here */
	begun = art_evaluate_begin();
	r->eval = art_eval_begin(index);
	art_evaluate_end(begun);
	r->slot = MakeSingleTupleTableSlot(RelationGetDescr(heap), &TTSOpsHeapTuple);
	art_buf_init(&r->key, cxt, 64);
	r->rows = palloc(sizeof(PageRows));
	r->rows->data = palloc(BLCKSZ + MaxHeapTuplesPerPage * MAXIMUM_ALIGNOF);
	if (mode == ART_HEAP_BUILD)
		art_heap_horizon(r);
	MemoryContextSwitchTo(old);
	return r;
}

void
art_heap_horizon(ArtHeapReader *r)
{
	r->oldest = GetOldestNonRemovableTransactionId(r->heap);
}

void
art_heap_page(ArtHeapReader *r, BlockNumber blkno, ArtHeapRow fn, void *arg)
{
	FailedRows	failed;
	ArtAsOwner	save = {false};

	if (r->eval->evaluates)
		art_as_owner_begin(r->heap, &save);

	read_heap_page(r, blkno, NULL);
	page_rows(r, blkno, InvalidOffsetNumber, fn, arg, &failed);

	/*
	 * Each of these once its inserter has ended: gone, if that aborted, and
	 * an error of the index, if it did not.
	 */
	for (int i = 0; i < failed.n; i++)
	{
		for (;;)
		{
			FailedRows	again;
			ItemPointerData tid;

			read_heap_page(r, blkno, NULL);
			page_rows(r, blkno, failed.off[i], fn, arg, &again);
			if (again.n == 0)
				break;
			ItemPointerSet(&tid, blkno, failed.off[i]);
			XactLockTableWait(again.inserter, r->heap, &tid, XLTW_None);
		}
	}

	art_as_owner_end(&save);
}

/*
 * Does a copied row have a key column that is not in the row itself?
 */
static bool
row_is_toasted(ArtHeapReader *r, int i)
{
	HeapTupleData tup;

	tup.t_data = (HeapTupleHeader) (r->rows->data + r->rows->at[i]);
	tup.t_len = r->rows->len[i];
	if (!HeapTupleHasExternal(&tup))
		return false;
	for (int k = 0; k < r->eval->info->ii_NumIndexAttrs; k++)
	{
		AttrNumber	attno = r->eval->info->ii_IndexAttrNumbers[k];
		TupleDesc	desc = RelationGetDescr(r->heap);
		bool		isnull;
		Datum		d;

		/* a column that the row has not is a default, which lies in no TOAST table */
		if (attno <= 0 || attno > (int) HeapTupleHeaderGetNatts(tup.t_data) ||
			TupleDescAttr(desc, attno - 1)->attlen != -1)
			continue;
		/* not heap_getattr(), which calls what not every minor release has: art_compat.h */
		d = fastgetattr(&tup, attno, desc, &isnull);
		if (!isnull && VARATT_IS_EXTERNAL(DatumGetPointer(d)))
			return true;
	}
	return false;
}

ArtHeapGot
art_heap_roots(ArtHeapReader *r, BlockNumber blkno, ArtHeapRoots *roots,
			   ArtHeapRow fn, void *arg)
{
	Assert(r->mode == ART_HEAP_BUILD);
	read_heap_page(r, blkno, roots->left);
	for (int i = 0; i < r->rows->n; i++)
	{
		OffsetNumber root = r->rows->root[i];
		ItemPointerData tid;

		if (!roots->toasted && row_is_toasted(r, i))
			return ART_HEAP_TOASTED;
		roots->root = root;
		roots->inserter = r->rows->inserter[i];
		roots->dying = r->rows->dying[i];
		if (row_key(r, blkno, i))
		{
			ItemPointerSet(&tid, blkno, root);
			fn(arg, r->key.data, r->key.len, art_tid_pack(&tid));
		}
		roots->root = InvalidOffsetNumber;
		if (i + 1 == r->rows->n || r->rows->root[i + 1] == root)
			continue;
		roots->left[(root - 1) / 64] &= ~(UINT64CONST(1) << ((root - 1) % 64));
		if (roots->until != 0 && GetCurrentTimestamp() >= roots->until)
			return ART_HEAP_STOPPED;
	}
	return ART_HEAP_ALL;
}

typedef struct StillArg
{
	const uint8 *key;
	uint32		keylen;
	uint64		tid;
	bool		found;
} StillArg;

static void
still_row(void *arg, const uint8 *key, uint32 keylen, uint64 tid)
{
	StillArg   *s = (StillArg *) arg;

	if (tid == s->tid && keylen == s->keylen && memcmp(key, s->key, keylen) == 0)
		s->found = true;
}

bool
art_heap_still(ArtHeapReader *r, uint64 tid, const uint8 *key, uint32 keylen)
{
	StillArg	s = {key, keylen, tid, false};
	ItemPointerData ip;

	art_tid_unpack(tid, &ip);
	if (ItemPointerGetBlockNumber(&ip) >= RelationGetNumberOfBlocks(r->heap))
		return false;			/* truncated meanwhile */
	art_heap_page(r, ItemPointerGetBlockNumber(&ip), still_row, &s);
	return s.found;
}

void
art_heap_end(ArtHeapReader *r)
{
	ExecDropSingleTupleTableSlot(r->slot);
	art_eval_end(r->eval);
	FreeAccessStrategy(r->strategy);
	MemoryContextDelete(r->cxt);
}
