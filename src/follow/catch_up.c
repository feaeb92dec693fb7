/*
 * catch_up.c
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
 * sweep for the place that it took ends before that, and may take the early entry away with
 * the old one.  The row's record has the page read again.
 *
 * A build notes what WAL says from before it is BUILDING, and reads the pages
 * after that.  At its end the dead are swept, and the rows that came are read.
 * So an entry that it read from a page and whose row has died since is gone.
 *
 * A row is kept by the rules of any build, which want no snapshot.  Making keys, or comparing
 * them, may run somebody's code.  Then steps do as the table's owner, and under a snapshot.
 * So they do, under a snapshot, from the first key on that is TOASTed.  They end after the same
 * milliseconds, between two rows if need be, so replay does not wait for it.
 *
 * src/follow/README.md: On a standby
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
#include "area/tree_calls.h"
#include "build/build.h"
#include "follow/follow.h"

#define ART_STEP_US			5000	/* a lock is held for about so long */
#define ART_MOST_BLOCKS		200000	/* noted and not done: the structure goes */
#define ART_SWEEP_BATCH		4096
#define ART_SWEEP_COMPARED	256 /* it is done within a step */

/* ---- steps ---- */

typedef struct Step
{
	Relation	heap;
	Relation	index;
	bool		runs_code;
	bool		snapshot;
	ArtAsOwner	save;			/* of runs_code */
	TimestampTz until;			/* to be over by then */
} Step;

/* A transaction that writes nothing. */
static void
begin_transaction(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	XactReadOnly = true;		/* recovery may have ended */
}

/*
 * In a transaction: open both, without waiting.  False: not to be had, or
 * (*gone) not there.
 *
 * Locks: tries AccessShareLock on the table, then on the index.  Those that it got
 * stay to the end of the transaction.
 */
static bool
open_followed(Oid heapoid, Oid indexoid, Step *o, bool *gone)
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
close_both(Step *o)
{
	index_close(o->index, NoLock);
	table_close(o->heap, NoLock);
}

/* Does somebody, replay above all, wait for a lock that ours are in the way of? */
static bool
catch_up_in_the_way(const Step *o)
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
still_fits(ArtFollowed *x, const Step *o)
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
		art_max_memory(o->index) != x->max_memory || art_index_compared(o->index) != x->kd->compared)
	{
		art_kept_close(x, ART_WHY_ALTERED, NULL);
		return false;
	}
	return true;
}

typedef enum Done
{
	DONE_ALL,
	DONE_SOME,					/* the lock was held long enough: go on */
	DONE_LATER,					/* no lock, or somebody wants it */
	DONE_CLOSED
} Done;

/*
 * Begin a step: a transaction of some milliseconds with table and index open.  The index
 * may run somebody's code.  Then the step does as the table's owner, and under a
 * snapshot.  Anything but DONE_ALL: there is no step, and nothing to end.
 *
 * Locks: takes AccessShareLock on the table and the index, without waiting; step_end gives
 * them back.
 */
static Done
catch_up_step_begin(ArtFollowed *x, Step *o)
{
	bool		gone;

	begin_transaction();
	if (!open_followed(x->heapoid, x->indexoid, o, &gone))
	{
		if (gone)
			art_kept_close(x, ART_WHY_DROPPED, NULL);
		CommitTransactionCommand();
		return x->closed ? DONE_CLOSED : DONE_LATER;
	}
	if (!still_fits(x, o))
	{
		close_both(o);
		CommitTransactionCommand();
		return DONE_CLOSED;
	}
	o->runs_code = x->runs_code;
	o->snapshot = x->snapshot;
	if (o->runs_code)
		art_as_owner_begin(o->heap, &o->save);
	if (o->snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	o->until = GetCurrentTimestamp() + ART_STEP_US;
	x->at.root = InvalidOffsetNumber;
	x->at.toasted = o->snapshot;
	x->at.until = o->snapshot ? o->until : 0;
	return DONE_ALL;
}

/* The end of a step, and of its transaction. */
static void
catch_up_step_end(Step *o)
{
	if (o->snapshot)
		PopActiveSnapshot();
	if (o->runs_code)
		art_as_owner_end(&o->save);
	close_both(o);
	CommitTransactionCommand();
}

/* ---- beginning ---- */

/*
 * Why the follower does not keep such an index; NULL: it does.  *again: it may later.
 */
static const char *
why_not_followed(const Step *o, bool *again)
{
	*again = true;
	if (!o->index->rd_index->indisvalid || !o->index->rd_index->indisready ||
		!o->index->rd_index->indislive)
		return "not valid";
	*again = false;
	if (o->heap->rd_rel->relam != HEAP_TABLE_AM_OID || IsCatalogRelation(o->heap))
		return "a standby does not keep such a table's indexes";
	return NULL;
}

/*
 * In begin_structure: may a structure be opened for this entry?  "discard": one whose builder is gone is closed
 * first.  In recovery nobody else does that.  We begin only what is not in our list, so a build of ours is gone, too.
 *
 * Epoch: enters and leaves, when it closes one.
 * Locks: partition lock held, exclusive to discard.
 */
static bool
may_open(ArtEntry *e, bool discard)
{
	ArtState	state = ART_WORD_STATE(pg_atomic_read_u64(&e->word));
	bool		left = state == ART_BUILDING && (e->owner_pid == MyProcPid || !art_owner_alive(e));

	if ((state != ART_ABSENT && !left) || e->not_before > GetCurrentTimestamp() ||
		art_stuck_until(e) > GetCurrentTimestamp())
		return false;
	if (left && discard)
		art_entry_discard(e);
	return e->reason != ART_WHY_UNLOADED;
}

/*
 * Describe an index that is open, in a context below the transaction's.  This may raise an error: a
 * comparison's library need not be there.
 *
 * The table has all blocks of the WAL up to our position.  Rows of other blocks come with later
 * records, which are noted for all that is in the list.
 */
static ArtFollowed *
describe(const Step *o, ArtEntry *e)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "artidx followed index",
											  ALLOCSET_SMALL_SIZES);
	ArtFollowed *x = MemoryContextAllocZero(cxt, sizeof(ArtFollowed));

	x->cxt = cxt;
	x->indexoid = RelationGetRelid(o->index);
	x->heapoid = RelationGetRelid(o->heap);
	art_locator(o->index, &x->loc);
	art_locator(o->heap, &x->heap);
	x->tree = art_entry_tree(e);
	art_engine_of((ArtOptions *) o->index->rd_options, &x->engine);
	x->max_memory = art_max_memory(o->index);
	x->kd = art_keydesc_build(o->index, cxt);
	x->runs_code = !art_index_is_plain(o->index) || (x->kd->compared && !x->kd->images);
	x->snapshot = x->runs_code;
	art_touched_init(&x->touched, cxt);
	x->sweep_cxt = AllocSetContextCreate(cxt, "artidx sweep", ALLOCSET_DEFAULT_SIZES);
	x->building = true;
	x->since = GetCurrentTimestamp();
	x->nblocks = RelationGetNumberOfBlocks(o->heap);
	return x;
}

/*
 * Open a structure for it, BUILDING from here on.  NULL: it was unloaded, failed a short time ago, there
 * is no memory, or somebody has it.
 *
 * From BUILDING to the list nothing may fail, and replay does not cancel us.  All that may fail comes before.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, shared to look and exclusive to open.
 */
static ArtFollowed *
begin_structure(const Step *o, ArtEntry *e)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	ArtOpening	opening;
	ArtFollowed *x;
	bool		ok;

	art_lock(lock, LW_SHARED);
	ok = may_open(e, false);
	art_unlock(lock);
	if (!ok)
		return NULL;
	art_opening(o->index, &opening);
	x = describe(o, e);

	HOLD_INTERRUPTS();
	art_lock(lock, LW_EXCLUSIVE);
	ok = may_open(e, true) && art_entry_open(e, o->index, &opening, false, &x->gen) == AX_OK;
	if (ok)
	{
		e->heap_spc = x->heap.spc;
		e->heap_rel = x->heap.rel;
		e->behind = false;
		pg_atomic_write_u64(&e->blocks_total, x->nblocks);
	}
	art_unlock(lock);
	if (ok)
	{
		MemoryContextSetParent(x->cxt, TopMemoryContext);
		x->next = art_followed_list;
		art_followed_list = x;
	}
	RESUME_INTERRUPTS();
	return ok ? x : NULL;
}

ArtFollowed *
art_keepup_begin(Oid indexoid, bool *again)
{
	ArtFollowed *x = NULL;
	Step		o;
	Oid			heapoid;
	bool		gone;

	*again = true;
	if (art_kept_is_put_off(indexoid))
		return NULL;
	begin_transaction();
	heapoid = IndexGetRelation(indexoid, true);
	if (OidIsValid(heapoid) && open_followed(heapoid, indexoid, &o, &gone))
	{
		const char *why = why_not_followed(&o, again);
		ArtEntry   *e = art_entry_try(o.index);

		if (why == NULL && e != NULL)
		{
			*again = true;
			x = begin_structure(&o, e);
		}
		else if (e != NULL && !*again)
			art_kept_tell_why(indexoid, &e->loc, why);
		close_both(&o);
	}
	CommitTransactionCommand();
	return x;
}

/* ---- building ---- */

static void
catch_up_row(void *arg, const uint8 *key, uint32 keylen, uint64 tid)
{
	art_run_add((ArtRun *) arg, key, keylen, tid, true);
}

/*
 * The build reads on, until its step is over.
 *
 * A page need not be done within one step.
 */
static ArtHeapGot
build_pages(ArtFollowed *x, ArtEntry *e, ArtHeapReader *r, ArtRun *run, const Step *o)
{
	BlockNumber size = RelationGetNumberOfBlocks(o->heap);
	ArtHeapGot	got = ART_HEAP_ALL;

	x->at.left = x->page_left;
	while (x->next_block < x->nblocks)
	{
		if (!x->page_begun)
		{
			memset(x->page_left, 0xFF, sizeof(x->page_left));
			art_doubtful_leave_out(x, x->next_block, x->page_left);
			x->page_begun = true;
		}
		x->at_block = x->next_block;
		x->last_read = Max(x->last_read, x->next_block);
		/* blocks that were cut off since had no rows */
		if (x->next_block < size)
			got = art_heap_roots(r, x->next_block, &x->at, catch_up_row, run);
		if (got != ART_HEAP_ALL)
			break;
		x->page_begun = false;
		x->next_block++;
		pg_atomic_write_u64(&e->blocks_done, x->next_block);
		if (x->next_block % 8 == 0 && (GetCurrentTimestamp() >= o->until || catch_up_in_the_way(o)))
			break;
	}
	return got;
}

bool
art_keepup_build(ArtFollowed *x)
{
	MemoryContext cxt;
	ArtHeapReader *r;
	ArtHeapGot	got;
	ArtRun	   *run;
	ArtEntry   *e;
	Step		o;
	bool		nomem;

	if (catch_up_step_begin(x, &o) != DONE_ALL)
		return false;
	e = art_entry_if_exists(o.index);
	if (e == NULL)
	{
		art_kept_close(x, ART_WHY_DROPPED, NULL);
		catch_up_step_end(&o);
		return true;
	}
	cxt = AllocSetContextCreate(CurrentMemoryContext, "artidx build on a standby",
								ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(cxt);
	x->step_block = x->next_block;
	r = art_heap_begin(o.heap, o.index, x->kd, ART_HEAP_BUILD, NULL);
	run = art_run_begin(o.index, x->kd, x->gen, e, false, o.heap, ART_ROOM_NONE);
	got = build_pages(x, e, r, run, &o);
	art_run_flush(run);
	nomem = art_run_nomem(run);
	(void) pg_atomic_fetch_add_u64(&art_me->added, (int64) art_run_end(run));
	art_heap_end(r);
	catch_up_step_end(&o);
	x->given_way = 0;
	x->ngone = 0;
	if (got == ART_HEAP_TOASTED)
		x->snapshot = true;
	if (nomem)
		art_kept_close(x, ART_WHY_MEMORY, NULL);
	return true;
}

/* ---- sweeping ---- */

/* Take out the entries of dead line pointers that a pass has come to. */
static ax_status
remove_dead(ArtFollowed *x, const ArtPass *w, uint64 *removed)
{
	for (uint32 i = 0; i < w->n; i++)
	{
		ax_status	s;

		if (!art_touched_is_sweeping(&x->touched, w->tids[i]))
			continue;
		while ((s = art_tree_remove(x->kd, w->cx, x->tree, x->gen, w->keys.data + w->key_off[i],
									w->key_off[i + 1] - w->key_off[i])) == AX_BUSY)
			art_busy();
		if (s == AX_OK)
			++*removed;
		else if (s != AX_NOTFOUND)
			return s;
	}
	return AX_OK;
}

/* Begin a sweep, or begin it anew. */
static void
sweep_begin(ArtFollowed *x)
{
	MemoryContext old = MemoryContextSwitchTo(x->sweep_cxt);
	ArtPass    *w;

	x->sweep = NULL;
	MemoryContextReset(x->sweep_cxt);
	art_touched_sweep(&x->touched, x->sweep_cxt);
	w = palloc(sizeof(ArtPass));
	art_pass_init(w, x->kd, art_ctx(), x->kd->compared ? ART_SWEEP_COMPARED : ART_SWEEP_BATCH,
				  64 * 1024);
	x->sweep = w;
	MemoryContextSwitchTo(old);
}

/* No sweep goes on any more. */
static void
sweep_end(ArtFollowed *x)
{
	x->sweep = NULL;
	x->touched.dense = NULL;
	MemoryContextReset(x->sweep_cxt);
}

void
art_keepup_erred(ArtFollowed *x)
{
	if (x->sweep == NULL)
		return;
	sweep_end(x);
	x->touched.due = true;
}

/*
 * Take out the entries of dead line pointers, in one pass: a slice of it, or, "whole", all that
 * is left.  A slice is of some milliseconds, less if a scan waits.  Keys that are encoded need
 * no lock on the table: the structure may go meanwhile, and says so.  Those that are
 * compared are so in steps, for the comparison may ask the catalog, or run anything.
 *
 * Epoch: enters and leaves, once a batch and a removal.
 * Locks: of compared keys, as step_begin.
 */
static Done
sweep_dead(ArtFollowed *x, bool whole)
{
	TimestampTz begin = GetCurrentTimestamp();
	bool		compared = x->kd->compared;
	Done		result = DONE_ALL;
	ax_status	s = AX_OK;
	uint64		removed = 0;
	Step		o = {.until = begin + ART_STEP_US};

	if (x->sweep == NULL || x->touched.anew)
		sweep_begin(x);
	if (compared)
		result = catch_up_step_begin(x, &o);
	while (result == DONE_ALL && s == AX_OK && !x->sweep->done)
	{
		CHECK_FOR_INTERRUPTS();
		s = art_pass_next(x->sweep, x->tree, x->gen);
		if (s == AX_OK)
			s = remove_dead(x, x->sweep, &removed);
		if (!whole && (MyLatch->is_set || GetCurrentTimestamp() >= o.until))
			break;
		if (compared && (GetCurrentTimestamp() >= o.until || catch_up_in_the_way(&o)))
		{
			catch_up_step_end(&o);
			result = catch_up_step_begin(x, &o);
		}
	}
	if (compared && result == DONE_ALL)
		catch_up_step_end(&o);
	pg_atomic_fetch_add_u64(&art_me->swept, (int64) removed);
	pg_atomic_fetch_add_u64(&art_me->swept_us, (int64) (GetCurrentTimestamp() - begin));
	if (result != DONE_ALL)
		return result;
	if (s != AX_OK)
	{
		art_kept_close(x, ART_WHY_RESTART, NULL);
		return DONE_CLOSED;
	}
	if (!x->sweep->done)
		return DONE_SOME;
	x->given_way = 0;
	pg_atomic_fetch_add_u64(&art_me->sweeps, 1);
	sweep_end(x);
	art_touched_swept(&x->touched, art_touched_blocks(&x->touched) > ART_MOST_BLOCKS);
	return DONE_ALL;
}

bool
art_keepup_sweep(ArtFollowed *x)
{
	return sweep_dead(x, false) != DONE_LATER;
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

/*
 * Read the pages to which rows came.
 */
static Done
read_rows(ArtFollowed *x)
{
	MemoryContext cxt;
	Adding		a = {.x = x, .s = AX_OK};
	ArtTouchedBlock *b;
	ArtHeapReader *r;
	Step		o;
	BlockNumber size;
	ArtHeapGot	got = ART_HEAP_ALL;
	Done		result = catch_up_step_begin(x, &o);
	int			n = 0;

	if (result != DONE_ALL)
		return result;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "artidx rows on a standby",
								ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(cxt);
	art_buf_init(&a.key, cxt, 64);
	size = RelationGetNumberOfBlocks(o.heap);
	r = art_heap_begin(o.heap, o.index, x->kd, ART_HEAP_BUILD, NULL);
	while (result == DONE_ALL && (b = art_touched_to_read(&x->touched)) != NULL)
	{
		/* a block that was cut off since had no row any more */
		x->at_block = b->block;
		x->at.left = b->rows;
		if (b->block < size)
			got = art_heap_roots(r, b->block, &x->at, add_row, &a);
		if (got != ART_HEAP_ALL)
			result = DONE_SOME;
		if (got == ART_HEAP_TOASTED)
			x->snapshot = true;
		if (got != ART_HEAP_ALL || a.s != AX_OK)
			break;
		art_touched_was_read(&x->touched, b);
		x->given_way = 0;
		if (++n % 8 == 0)
		{
			if (catch_up_in_the_way(&o))
				result = DONE_LATER;
			else if (GetCurrentTimestamp() >= o.until)
				result = DONE_SOME;
		}
	}
	art_heap_end(r);
	catch_up_step_end(&o);
	pg_atomic_fetch_add_u64(&art_me->added, (int64) a.added);
	if (a.s == AX_NOMEM)
		art_kept_close(x, ART_WHY_MEMORY, NULL);
	else if (a.s != AX_OK)
		art_kept_close(x, ART_WHY_RESTART, NULL);
	if (x->closed)
		return DONE_CLOSED;
	return x->touched.nto_read == 0 ? DONE_ALL : result;
}

/* ---- one index, one step ---- */

/* A sweep of a place to which a row has come ends before the rows are read. */
bool
art_keepup(ArtFollowed *x, bool last)
{
	ArtTouched *t = &x->touched;
	Done		r = DONE_ALL;

	if (x->closed)
		return true;
	if (x->building && x->next_block < x->nblocks)
	{
		/* not at once again: it would come no further */
		if (art_touched_blocks(t) > 2 * ART_MOST_BLOCKS)
		{
			art_kept_put_off(x->indexoid, ART_FAILED_MS);
			art_kept_close(x, ART_WHY_RESTART, NULL);
		}
		return x->closed;		/* until its end it only notes */
	}
	if (x->building ? !art_touched_all_swept(t) : last && art_touched_must_sweep(t))
		t->now = t->anew = true;
	if (art_touched_blocks(t) > ART_MOST_BLOCKS && t->ndead > 0)
		t->due = true;
	if (art_touched_blocks(t) > 2 * ART_MOST_BLOCKS && t->ndead + t->nsweeping > 0)
		t->now = true;
	if (t->now)
		r = sweep_dead(x, true);
	while (t->nto_read > 0 && (r == DONE_ALL || r == DONE_SOME))
	{
		CHECK_FOR_INTERRUPTS();
		r = read_rows(x);
	}
	if (r == DONE_LATER && art_touched_blocks(t) > 2 * ART_MOST_BLOCKS)
		art_kept_close(x, ART_WHY_RESTART, NULL);
	return x->closed || r != DONE_LATER;
}
