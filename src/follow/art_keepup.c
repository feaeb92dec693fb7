/*
 * art_keepup.c
 *	  The structures that a follower keeps: begun, built beside replay, and brought
 *	  to where the follower is.
 *
 * Rows are read from their pages under AccessShareLock on table and index, which
 * is taken without waiting, and given back after some milliseconds.  So replay
 * never waits for long.  The lock may not be to be had, or replay waits for it.  Then the
 * rest is kept for the next time, and the structure is marked behind.
 *
 * A page that is read is at least as new as the records that were taken.  A newer row
 * may be met early: its entry is harmless, and its own record comes later.  The
 * sweep for the place that it took comes before that, and takes the early entry away with
 * the old one.  The row's record has the page read again.
 *
 * A build notes what WAL says from before it is BUILDING, and reads the pages
 * after that.  At its end the dead are swept, and the rows that came are read.
 * So an entry that it read from a page and whose row has died since is gone.
 *
 * No snapshot is taken.  A row is kept by the rules of any build, which want none;
 * a key that is TOASTed would, and has its index closed.
 *
 * src/README.md: On a standby
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "am/am.h"
#include "area/art_tree.h"
#include "build/build.h"
#include "follow/follow.h"

#define ART_STEP_US			5000	/* a lock is held for about so long */
#define ART_MOST_BLOCKS		200000	/* noted and not done: the structure goes */
#define ART_SWEEP_BATCH		4096

/* ---- opening table and index ---- */

/* A transaction without a snapshot. */
static void
begin_step(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
}

typedef struct Opened
{
	Relation	heap;
	Relation	index;
} Opened;

/*
 * In a transaction: open both, without waiting.  False: not to be had, or
 * (*gone) not there.
 *
 * Locks: tries AccessShareLock on the table, then on the index.  Those that it got
 * stay to the end of the transaction.
 */
static bool
open_both(Oid heapoid, Oid indexoid, Opened *o, bool *gone)
{
	*gone = false;
	if (!ConditionalLockRelationOid(heapoid, AccessShareLock))
		return false;
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(heapoid)))
	{
		*gone = true;
		return false;
	}
	if (!ConditionalLockRelationOid(indexoid, AccessShareLock))
		return false;
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(indexoid)))
	{
		*gone = true;
		return false;
	}
	o->heap = table_open(heapoid, NoLock);
	o->index = index_open(indexoid, NoLock);
	/* that of the catalog, which replay would wait for, and then cancel us */
	InvalidateCatalogSnapshot();
	return true;
}

static void
close_both(Opened *o)
{
	index_close(o->index, NoLock);
	table_close(o->heap, NoLock);
}

/* Does somebody, replay above all, wait for a lock that ours are in the way of? */
static bool
in_the_way(const Opened *o)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, o->heap->rd_lockInfo.lockRelId.dbId,
						 o->heap->rd_lockInfo.lockRelId.relId);
	if (art_lock_awaited(&tag, AccessExclusiveLock))
		return true;
	SET_LOCKTAG_RELATION(tag, o->index->rd_lockInfo.lockRelId.dbId,
						 o->index->rd_lockInfo.lockRelId.relId);
	return art_lock_awaited(&tag, AccessExclusiveLock);
}

/*
 * Are table and index still those for which the structure was begun?  If not it is closed.
 */
static bool
still_fits(ArtFollowed *x, const Opened *o)
{
	ArtLocator	loc;
	ArtEngine	want;

	art_locator(o->index, &loc);
	if (o->index->rd_index->indrelid != x->heapoid || loc.spc != x->loc.spc || loc.rel != x->loc.rel ||
		ART_REL_SPC(o->heap) != x->heap.spc || ART_REL_NUMBER(o->heap) != x->heap.rel)
	{
		art_kept_close(x, ART_WHY_RESTART, NULL);
		return false;
	}
	art_engine_of((ArtOptions *) o->index->rd_options, &want);
	if (want.structure != x->engine.structure || want.page_size != x->engine.page_size ||
		want.tail != x->engine.tail || want.elide != x->engine.elide ||
		art_max_memory(o->index) != x->max_memory || art_index_compared(o->index))
	{
		art_kept_close(x, ART_WHY_ALTERED, NULL);
		return false;
	}
	return true;
}

/* ---- beginning ---- */

/*
 * Why the follower does not keep such an index; NULL: it does.  *again: it may later.
 */
static const char *
why_not(const Opened *o, bool *again)
{
	*again = true;
	if (!o->index->rd_index->indisvalid || !o->index->rd_index->indisready ||
		!o->index->rd_index->indislive)
		return "not valid";
	*again = false;
	if (o->heap->rd_rel->relam != HEAP_TABLE_AM_OID || IsCatalogRelation(o->heap))
		return "a standby does not keep such a table's indexes";
	if (RelationGetIndexExpressions(o->index) != NIL)
		return "a standby does not keep expressions yet";
	if (RelationGetIndexPredicate(o->index) != NIL)
		return "a standby does not keep partial indexes yet";
	if (art_index_compared(o->index))
		return "a standby does not keep compared keys yet";
	return NULL;
}

/*
 * Its entry, with what the view says while it is absent.
 *
 * Locks: takes the partition lock, exclusive.
 */
static void
tell_why(ArtEntry *e, const char *why)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);

	art_lock(lock, LW_EXCLUSIVE);
	if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT &&
		e->reason != ART_WHY_UNLOADED)
	{
		e->reason = ART_WHY_ERROR;
		strlcpy(e->error, why, sizeof(e->error));
	}
	art_unlock(lock);
}

/*
 * Open a structure for it, BUILDING from here on.  NULL: it was unloaded, failed a short time ago, there
 * is no memory, or somebody has it.  Replay does not cancel us between BUILDING and the list.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
static ArtFollowed *
begin_structure(const Opened *o, ArtEntry *e)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	MemoryContext cxt;
	ArtOpening	opening;
	ArtFollowed *x;
	uint64		gen = 0;
	bool		ok;

	art_opening(o->index, &opening);
	HOLD_INTERRUPTS();
	art_lock(lock, LW_EXCLUSIVE);
	ok = ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT &&
		e->reason != ART_WHY_UNLOADED && e->not_before <= GetCurrentTimestamp() &&
		art_entry_open(e, o->index, &opening, false, &gen) == AX_OK;
	if (ok)
	{
		e->heap_spc = ART_REL_SPC(o->heap);
		e->heap_rel = ART_REL_NUMBER(o->heap);
		e->behind = false;
	}
	art_unlock(lock);
	if (!ok)
	{
		RESUME_INTERRUPTS();
		return NULL;
	}

	cxt = AllocSetContextCreate(TopMemoryContext, "artidx followed index",
								ALLOCSET_SMALL_SIZES);
	x = MemoryContextAllocZero(cxt, sizeof(ArtFollowed));
	x->cxt = cxt;
	x->indexoid = RelationGetRelid(o->index);
	x->heapoid = RelationGetRelid(o->heap);
	art_locator(o->index, &x->loc);
	art_locator(o->heap, &x->heap);
	x->tree = art_entry_tree(e);
	x->gen = gen;
	art_engine_of((ArtOptions *) o->index->rd_options, &x->engine);
	x->max_memory = art_max_memory(o->index);
	x->kd = art_keydesc_build(o->index, cxt);
	art_touched_init(&x->touched, cxt);
	x->building = true;
	x->since = GetCurrentTimestamp();
	/* after BUILDING, and after all WAL up to our position */
	x->nblocks = RelationGetNumberOfBlocks(o->heap);
	pg_atomic_write_u64(&e->blocks_total, x->nblocks);
	x->next = art_followed_list;
	art_followed_list = x;
	RESUME_INTERRUPTS();
	return x;
}

/*
 * Begin to keep an index, if it is one that can be kept.  NULL: no; *again: perhaps later.
 * In a transaction of its own.
 */
ArtFollowed *
art_keepup_begin(Oid indexoid, bool *again)
{
	ArtFollowed *x = NULL;
	Opened		o;
	Oid			heapoid;
	bool		gone;

	*again = true;
	if (art_kept_is_put_off(indexoid))
		return NULL;
	begin_step();
	heapoid = IndexGetRelation(indexoid, true);
	if (OidIsValid(heapoid) && open_both(heapoid, indexoid, &o, &gone))
	{
		const char *why = why_not(&o, again);
		ArtEntry   *e = art_entry_try(o.index);

		if (why == NULL && e != NULL)
		{
			*again = true;
			x = begin_structure(&o, e);
		}
		else if (e != NULL && !*again)
			tell_why(e, why);
		close_both(&o);
	}
	CommitTransactionCommand();
	return x;
}

/* ---- building ---- */

static void
build_row(void *arg, const uint8 *key, uint32 keylen, uint64 tid)
{
	art_run_add((ArtRun *) arg, key, keylen, tid, true);
}

/*
 * Read some more of the table's pages.  The rows that it has collected are loaded before
 * the lock is given back.
 */
void
art_keepup_build(ArtFollowed *x)
{
	MemoryContext cxt;
	ArtHeapReader *r;
	ArtRun	   *run;
	ArtEntry   *e;
	TimestampTz until;
	Opened		o;
	BlockNumber size;
	bool		gone;
	bool		plain = true;
	bool		nomem;

	begin_step();
	if (!open_both(x->heapoid, x->indexoid, &o, &gone))
	{
		if (gone)
			art_kept_close(x, ART_WHY_DROPPED, NULL);
		CommitTransactionCommand();
		return;
	}
	e = art_entry_if_exists(o.index);
	if (!still_fits(x, &o) || e == NULL)
	{
		close_both(&o);
		CommitTransactionCommand();
		return;
	}
	cxt = AllocSetContextCreate(CurrentMemoryContext, "artidx build on a standby",
								ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(cxt);
	size = RelationGetNumberOfBlocks(o.heap);
	r = art_heap_begin(o.heap, o.index, x->kd, ART_HEAP_BUILD, NULL);
	run = art_run_begin(o.index, x->kd, x->gen, e, false, o.heap, ART_ROOM_NONE);
	until = GetCurrentTimestamp() + ART_STEP_US;
	while (plain && x->next_block < x->nblocks)
	{
		/* blocks that were cut off since had no rows */
		if (x->next_block < size)
			plain = art_heap_roots(r, x->next_block, NULL, build_row, run);
		x->next_block++;
		pg_atomic_write_u64(&e->blocks_done, x->next_block);
		if (x->next_block % 8 == 0 && (GetCurrentTimestamp() >= until || in_the_way(&o)))
			break;
	}
	art_run_flush(run);
	nomem = art_run_nomem(run);
	(void) pg_atomic_fetch_add_u64(&art_me->added, (int64) art_run_end(run));
	art_heap_end(r);
	close_both(&o);
	CommitTransactionCommand();
	if (!plain)
		art_kept_close(x, ART_WHY_ERROR, "a key is TOASTed");
	else if (nomem)
		art_kept_close(x, ART_WHY_MEMORY, NULL);
}

/* ---- sweeping ---- */

/*
 * Take out the entries of all dead line pointers, in one pass.  Needs no lock on the
 * table: the structure may go meanwhile, and says so.  False: it has.
 *
 * Epoch: enters and leaves, once a batch and a removal.
 */
static bool
sweep(ArtFollowed *x)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "artidx sweep",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	ax_ctx	   *cx = art_ctx();
	ax_status	s = AX_OK;
	TimestampTz begin = GetCurrentTimestamp();
	uint64		removed = 0;
	ArtPass		w;

	art_touched_sweep(&x->touched, cxt);
	art_pass_init(&w, x->kd, cx, ART_SWEEP_BATCH, 64 * 1024);
	while (s == AX_OK && !w.done)
	{
		CHECK_FOR_INTERRUPTS();
		s = art_pass_next(&w, x->tree, x->gen);
		for (uint32 i = 0; s == AX_OK && i < w.n;)
		{
			if (art_touched_is_dead(&x->touched, w.tids[i]))
			{
				s = art_tree_remove(x->kd, cx, x->tree, x->gen, w.keys.data + w.key_off[i],
									w.key_off[i + 1] - w.key_off[i]);
				if (s == AX_BUSY)
				{
					s = AX_OK;
					art_busy();
					continue;
				}
				if (s == AX_OK)
					removed++;
				else if (s == AX_NOTFOUND)
					s = AX_OK;
			}
			i++;
		}
	}
	art_pass_end(&w);
	x->touched.dense = NULL;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	pg_atomic_fetch_add_u64(&art_me->sweeps, 1);
	pg_atomic_fetch_add_u64(&art_me->swept, (int64) removed);
	pg_atomic_fetch_add_u64(&art_me->swept_us, (int64) (GetCurrentTimestamp() - begin));
	if (s != AX_OK)
	{
		art_kept_close(x, ART_WHY_RESTART, NULL);
		return false;
	}
	art_touched_swept(&x->touched, art_touched_blocks(&x->touched) > ART_MOST_BLOCKS);
	return true;
}

/* ---- rows ---- */

typedef struct Adding
{
	ArtFollowed *x;
	ArtBuf		key;
	uint64		added;
	ax_status	s;
} Adding;

/* One row of a page that was read: its entry. */
static void
add_row(void *arg, const uint8 *key, uint32 keylen, uint64 tid)
{
	Adding	   *a = arg;
	ArtFollowed *x = a->x;

	if (a->s != AX_OK)
		return;
	a->key.len = 0;
	art_buf_reserve(&a->key, keylen + AX_TID_BYTES);
	memcpy(a->key.data, key, keylen);
	ax_put_tid(a->key.data + keylen, tid);
	do
	{
		a->s = art_tree_insert(x->kd, art_ctx(), x->tree, x->gen, a->key.data,
							   keylen + AX_TID_BYTES);
		if (a->s == AX_BUSY)
			art_busy();
	} while (a->s == AX_BUSY);
	if (a->s == AX_OK)
		a->added++;
	else if (a->s == AX_EXISTS)
		a->s = AX_OK;
}

typedef enum Read
{
	READ_ALL,
	READ_SOME,					/* the lock was held long enough: go on */
	READ_LATER,					/* no lock, or somebody wants it */
	READ_CLOSED
} Read;

/*
 * Read the pages to which rows came.
 *
 * Long: its way out of the loop is one, whichever of the reasons it has.
 */
static Read
read_rows(ArtFollowed *x)
{
	MemoryContext cxt;
	Adding		a = {.x = x, .s = AX_OK};
	ArtTouchedBlock *b;
	ArtHeapReader *r;
	TimestampTz until;
	Opened		o;
	BlockNumber size;
	bool		gone;
	bool		plain = true;
	Read		result = READ_ALL;
	int			n = 0;

	begin_step();
	if (!open_both(x->heapoid, x->indexoid, &o, &gone))
	{
		if (gone)
			art_kept_close(x, ART_WHY_DROPPED, NULL);
		CommitTransactionCommand();
		return x->closed ? READ_CLOSED : READ_LATER;
	}
	if (!still_fits(x, &o))
	{
		close_both(&o);
		CommitTransactionCommand();
		return READ_CLOSED;
	}
	cxt = AllocSetContextCreate(CurrentMemoryContext, "artidx rows on a standby",
								ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(cxt);
	art_buf_init(&a.key, cxt, 64);
	size = RelationGetNumberOfBlocks(o.heap);
	r = art_heap_begin(o.heap, o.index, x->kd, ART_HEAP_BUILD, NULL);
	until = GetCurrentTimestamp() + ART_STEP_US;
	while (result == READ_ALL && (b = art_touched_to_read(&x->touched)) != NULL)
	{
		/* a block that was cut off since had no row any more */
		if (b->block < size)
			plain = art_heap_roots(r, b->block, b->rows, add_row, &a);
		if (!plain || a.s != AX_OK)
			break;
		art_touched_was_read(&x->touched, b);
		if (++n % 8 == 0)
		{
			if (in_the_way(&o))
				result = READ_LATER;
			else if (GetCurrentTimestamp() >= until)
				result = READ_SOME;
		}
	}
	art_heap_end(r);
	close_both(&o);
	CommitTransactionCommand();
	pg_atomic_fetch_add_u64(&art_me->added, (int64) a.added);
	if (!plain)
		art_kept_close(x, ART_WHY_ERROR, "a key is TOASTed");
	else if (a.s == AX_NOMEM)
		art_kept_close(x, ART_WHY_MEMORY, NULL);
	else if (a.s != AX_OK)
		art_kept_close(x, ART_WHY_RESTART, NULL);
	if (x->closed)
		return READ_CLOSED;
	return x->touched.nto_read == 0 ? READ_ALL : result;
}

/* ---- one index, one step ---- */

/*
 * Bring the structure to where the records are that were taken.  The sweep comes before
 * the rows: one may have come to a place that had another.  True: it is there, or closed.
 *
 * last: recovery has ended, and all that is dead goes.
 */
bool
art_keepup(ArtFollowed *x, bool last)
{
	Read		r = READ_ALL;

	if (x->closed)
		return true;
	if (art_touched_blocks(&x->touched) > ART_MOST_BLOCKS)
	{
		if (!x->building && x->touched.ndead > 0)
			x->touched.sweep_due = true;
	}
	if (x->building && x->next_block < x->nblocks)
	{
		if (art_touched_blocks(&x->touched) > 2 * ART_MOST_BLOCKS)
			art_kept_close(x, ART_WHY_RESTART, NULL);
		return x->closed;		/* until its end it only notes */
	}
	if ((x->touched.sweep_due || ((last || x->building) && x->touched.ndead > 0)) && !sweep(x))
		return true;
	while (x->touched.nto_read > 0 && (r == READ_ALL || r == READ_SOME))
	{
		CHECK_FOR_INTERRUPTS();
		r = read_rows(x);
	}
	if (r == READ_LATER && art_touched_blocks(&x->touched) > 2 * ART_MOST_BLOCKS)
		art_kept_close(x, ART_WHY_RESTART, NULL);
	return x->closed || r != READ_LATER;
}
