/*
 * private_scan.c
 *	  The private scan: an index scan that has no structure to read.
 *
 * A scan may have no READY structure to read: memory full, sealed, unloaded,
 * not preloaded, recovery, a build that failed.  It reads the table instead,
 * and keeps the entries that the index would have in a store of its own
 * (private_store.c).  From that it answers in the index's order, from any
 * position, both ways.  Slow, right, never an error; it stays so for the rest
 * of its life.
 *
 * Which rows it reads, and why that is right:
 *
 * Under an MVCC snapshot it reads each heap page under its share lock.  It
 * keeps exactly the rows that the snapshot sees, each with the TID of its
 * root.  An index scan would hand out these, and others that the executor
 * would throw away.  The snapshot is the executor's and stays registered as
 * long as the scan is open.  So VACUUM removes none of these rows and no TID
 * is recycled.  There is no interlock, also for index-only scans: a page that
 * is found all-visible is, and the row was visible before.  For the same
 * reason the result is good for every later amrescan.  The first search keeps
 * the rows within its own bounds.  Once a search wants others all are kept, so
 * that the inner side of a nested loop does not read the table once a row.
 *
 * Serializable transactions: the whole index is predicate-locked before the
 * first page is read.  Every insert into the index checks that lock, whether
 * or not there is a structure.  Rows inserted or deleted before we read their
 * page are checked there, all of them.  The executor checks the rows that an
 * index hands it, and never meets those that we leave out.
 *
 * Other snapshots are those of exclusion constraints, ON CONFLICT and logical
 * replication (dirty reads), SnapshotSelf and SnapshotAny.  Under them it
 * keeps the rows that a build keeps: all that anybody may still see.  It reads
 * the table anew for each search, for such a snapshot stands for no moment.
 * Of two inserters each has stored its row before it looks, so the later look
 * sees the other's row.  The same holds when one of them looked into a
 * structure that was sealed afterwards: the other one, which found it gone,
 * looks later still.
 *
 * Here VACUUM can recycle a TID that we keep:
 *
 *	  scan                                     VACUUM
 *	  reads the deletion generation p
 *	  reads the page: row R with key k at t
 *	                                           R dead, its line pointer LP_DEAD
 *	                                           ambulkdelete: generation p -> p + 1,
 *	                                           looks for slots that show t
 *	                                           t becomes free, a row with key k2
 *	                                           takes it
 *	  reads the deletion generation d
 *	  copies a batch out of the store
 *	  d is not p: reads the page again: has t
 *	  a row with key k now?  No: drops it
 *	  publishes t, full fence
 *	  is the generation still d?
 *	  hands t out
 *
 * When d = p this is the ordinary interlock.  R was read after p was, so a
 * VACUUM that recycles t increments the generation after that.  Either we find
 * it changed or VACUUM finds t published and waits.  When it is not, the page
 * says after d was read that t stands for a row with key k that is not dead.
 * That row takes the place of R in the argument, and d that of p.  Consider a
 * line pointer in the dead set of a VACUUM whose ambulkdelete ended before we
 * read d.  It is LP_DEAD until that VACUUM frees it.  So the page that we read
 * has nothing at t, and t is dropped; or it has the row that came to t
 * afterwards.
 *
 * Not preloaded there is neither generation nor slot.  Such a scan holds a
 * heavyweight lock, shared, from before it reads the table until its search
 * ends. ambulkdelete takes it exclusively for a moment before it returns
 * (vacuum_interlock.c).  If VACUUM had it first, all TIDs of its dead set were
 * LP_DEAD when we began to read, and we keep none of them.
 *
 * The planner's look at the ends of an index (SnapshotNonVacuumable) gets no
 * row: it has another way, and would not want to wait.
 *
 * Nothing is ever killed.
 *
 * src/scan/README.md: The private scan
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/table.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "area/area.h"
#include "build/build.h"
#include "scan/scan.h"

struct ArtPrivate
{
	IndexScanDesc scan;
	const ArtKeyDesc *kd;
	const ArtScanPlan *plan;
	MemoryContext cxt;			/* of all this */
	ArtStore   *store;

	uint64		search;			/* counts amrescan */

	/* what the store has */
	bool		filled;
	bool		mvcc;
	uint64		filled_in;		/* search */
	bool		whole;			/* fill it without regard to a search's bounds */
	Snapshot	snapshot;		/* whose rows, MVCC */
	CommandId	curcid;

	/* not MVCC: from the first page to the end of the search */
	uint64		delgen;			/* before the table was read */
	ArtHeapReader *reader;
	Snapshot	registered;
	ResourceOwner registered_owner;
	bool		locked;			/* not preloaded */
	ResourceOwner locked_owner;
};

/*
 * A scan goes private.  "plan" is the scan's, and its bounds change with each
 * amrescan.  All is allocated in a child of cxt.
 */
ArtPrivate *
art_private_begin(IndexScanDesc scan, const ArtKeyDesc *kd,
				  const ArtScanPlan *plan, MemoryContext cxt)
{
	MemoryContext own = AllocSetContextCreate(cxt, "art private scan",
											  ALLOCSET_SMALL_SIZES);
	ArtPrivate *p = MemoryContextAllocZero(own, sizeof(ArtPrivate));

	p->scan = scan;
	p->kd = kd;
	p->plan = plan;
	p->cxt = own;
	p->store = art_store_create(kd, own);
	return p;
}

/* The end of what a pass over the heap under no MVCC snapshot leaves open. */
static void
private_close_pass(ArtPrivate *p)
{
	if (p->reader)
		art_heap_end(p->reader);
	p->reader = NULL;
	if (p->registered)
		UnregisterSnapshotFromOwner(p->registered, p->registered_owner);
	p->registered = NULL;
}

/*
 * A search is over: by amrescan, or since there is nothing more that way.
 * Rows that an MVCC snapshot sees are kept for the next.
 */
void
art_private_search_end(ArtPrivate *p)
{
	p->search++;
	if (p->mvcc || !p->filled)
		return;
	p->filled = false;
	private_close_pass(p);
	art_store_empty(p->store);
	if (p->locked)
	{
		ResourceOwner save = CurrentResourceOwner;

		CurrentResourceOwner = p->locked_owner;
		art_interlock_share_end(p->scan->indexRelation);
		CurrentResourceOwner = save;
		p->locked = false;
	}
}

/*
 * The end of the scan: gives back everything.
 */
void
art_private_end(ArtPrivate *p)
{
	art_private_search_end(p);
	art_store_free(p->store);
	MemoryContextDelete(p->cxt);
}

/*
 * Must what this scan hands out be published?
 */
bool
art_private_guard(ArtPrivate *p)
{
	Snapshot	snapshot = p->scan->xs_snapshot;

	/* NULL: the scan is just made */
	return art_preloaded() && (snapshot == NULL || !IsMVCCSnapshot(snapshot));
}

/*
 * Is there nothing to be had, whatever the table says?
 */
bool
art_private_nothing(ArtPrivate *p)
{
	Snapshot	snapshot = p->scan->xs_snapshot;

	return snapshot->snapshot_type == SNAPSHOT_NON_VACUUMABLE;
}

/* SQL functions in the index's expressions want an active snapshot. */
static bool
push_snapshot(ArtPrivate *p)
{
	if (ActiveSnapshotSet())
		return false;
	PushActiveSnapshot(p->mvcc ? p->scan->xs_snapshot : p->registered);
	return true;
}

static void
private_row(void *arg, const uint8 *key, uint32 keylen, uint64 tid)
{
	art_store_add((ArtStore *) arg, key, keylen, tid);
}

/*
 * Every row into the store.  Not everybody may see what an error says of them.
 */
static void
private_read(ArtPrivate *p, ArtHeapReader *reader, BlockNumber nblocks)
{
	MemoryContext row_cxt = AllocSetContextCreate(p->cxt, "art private scan rows",
												  ALLOCSET_DEFAULT_SIZES);
	bool		may_see = art_may_see_rows(p->scan->indexRelation);
	bool		pushed;

	MemoryContextSwitchTo(row_cxt);
	pushed = push_snapshot(p);
	PG_TRY();
	{
		for (BlockNumber blkno = 0; blkno < nblocks; blkno++)
		{
			CHECK_FOR_INTERRUPTS();
			art_heap_page(reader, blkno, private_row, p->store);
			MemoryContextReset(row_cxt);
		}
		MemoryContextSwitchTo(p->cxt);
		art_store_finish(p->store);
	}
	PG_CATCH();
	{
		art_rethrow_hidden(p->scan->indexRelation, may_see, p->cxt);
	}
	PG_END_TRY();
	if (pushed)
		PopActiveSnapshot();
	MemoryContextDelete(row_cxt);
}

/*
 * Read the table into the store, so that the batch can be answered.
 *
 * Locks: the caller has the table locked.  Not preloaded, and with a snapshot
 * that is not MVCC, takes the scans' place, shared, and leaves it held
 * (art_private_search_end).
 */
static void
private_fill(ArtPrivate *p, const ax_batch *b)
{
	IndexScanDesc scan = p->scan;
	Relation	index = scan->indexRelation;
	Relation	heap = scan->heapRelation;
	MemoryContext old = MemoryContextSwitchTo(p->cxt);
	ax_bound	lo = {NULL, 0, false};
	ax_bound	hi = {NULL, 0, true};
	ArtHeapReader *reader;
	BlockNumber nblocks;

	/* what was kept did not do for another search: everything, then */
	if (p->mvcc && p->filled && p->filled_in != p->search)
		p->whole = true;
	private_close_pass(p);
	p->filled = false;
	p->filled_in = p->search;
	p->snapshot = scan->xs_snapshot;
	p->mvcc = IsMVCCSnapshot(p->snapshot);
	if (!p->mvcc)
		p->whole = false;
	/* what a doubtful class leaves out, or calls the next window, may not be that */
	if (p->kd->doubtful)
		p->whole = true;
	if (!p->whole)
	{
		/* of all the ranges that arrays make, not only the present one */
		art_scanplan_outer(p->plan, &lo, &hi);
	}

	/* bitmap scans do not say; the caller has it locked */
	if (heap == NULL)
		heap = table_open(index->rd_index->indrelid, NoLock);

	/* whatever has to precede the first look at the table */
	if (p->mvcc)
	{
		p->curcid = p->snapshot->curcid;
		PredicateLockRelation(index, p->snapshot);
		reader = art_heap_begin(heap, index, p->kd, ART_HEAP_MVCC, p->snapshot);
	}
	else
	{
		if (!art_preloaded() && !p->locked)
		{
			art_interlock_share(index);
			p->locked = true;
			p->locked_owner = CurrentResourceOwner;
		}
		p->delgen = art_delgen(index);

		/* a build's rules keep dead rows, too: hold on to their TOAST */
		p->registered = RegisterSnapshot(GetTransactionSnapshot());
		p->registered_owner = CurrentResourceOwner;
		reader = art_heap_begin(heap, index, p->kd, ART_HEAP_BUILD, NULL);
		p->reader = reader;
	}
	nblocks = RelationGetNumberOfBlocks(heap);

	/* how much may be spilled beside what else there is, only fd.c knows */
	art_store_fill(p->store, &lo, &hi, b->backward ? &b->hi : &b->lo,
				   b->backward, temp_file_limit < 0 || p->kd->doubtful);
	private_read(p, reader, nblocks);
	p->filled = true;

	if (p->mvcc)
		art_heap_end(reader);
	if (scan->heapRelation == NULL)
	{
		if (!p->mvcc)
			private_close_pass(p);
		table_close(heap, NoLock);
	}
	MemoryContextSwitchTo(old);
}

/*
 * A batch, in the place of ax_scan, with its meaning: AX_OK or AX_BUFFER.
 */
ax_status
art_private_scan(ArtPrivate *p, ax_batch *b)
{
	Snapshot	snapshot = p->scan->xs_snapshot;

	/* also a scan that had a structure when it began */
	if (art_private_nothing(p))
	{
		b->n = 0;
		b->exhausted = true;
		return AX_OK;
	}

	/* the rows kept are one snapshot's */
	if (p->filled && p->mvcc &&
		(snapshot != p->snapshot || snapshot->curcid != p->curcid))
		p->filled = false;

	for (;;)
	{
		if (p->filled)
		{
			ax_status	s = art_store_scan(p->store, b);

			if (s != AX_STALE)
				return s;
		}
		private_fill(p, b);
	}
}

/*
 * May the entry be handed out, "delgen" being the deletion generation that its
 * TID will be published with?  Key with its TID.  If VACUUM has removed
 * anything since the table was read, the table is asked again: see above.
 */
bool
art_private_still(ArtPrivate *p, uint64 delgen, const uint8 *key, uint32 len,
				  uint64 tid)
{
	MemoryContext old;
	MemoryContext cxt;
	bool		pushed;
	bool		still;

	Assert(p->filled && !p->mvcc && p->reader != NULL);
	if (likely(p->delgen == delgen))
		return true;

	cxt = AllocSetContextCreate(p->cxt, "art private scan row",
								ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(cxt);
	pushed = push_snapshot(p);
	still = art_heap_still(p->reader, tid, key, len - AX_TID_BYTES);
	if (pushed)
		PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return still;
}
