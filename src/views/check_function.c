/*
 * check_function.c
 *	  artidx_check(index, heapallindexed): is the structure sound, and does it
 *	  say what the heap says?
 *
 * Everything runs beside writers under AccessShareLock, so only what is
 * certain under concurrency is called an error:
 *
 * - an invariant of the structure (the core's walk re-checks what it could not
 *   see atomically);
 * - a row that our snapshot sees has no entry.  Its inserter finished before
 *   the snapshot, and nobody removes an entry of a row that somebody sees;
 * - an entry leads to a row that our snapshot sees, and the row has another
 *   key.  An older snapshot cannot see a recycled TID, and a HOT chain keeps
 *   its keys;
 * - an entry's TID is past the heap's end, unused, or not the root of a chain.
 *   Meanwhile the TID is published in a hazard slot and the entry is still
 *   there: VACUUM frees a TID only after the entries are gone.
 *
 * src/views/README.md: The check
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "area/area.h"
#include "area/shared_state.h"
#include "area/tree_calls.h"
#include "build/build.h"
#include "limits/limits.h"
#include "live/live.h"
#include "views/check.h"
#include "views/views.h"

#define ART_CHECK_TRIES		8
#define ART_CHECK_LOOK_MS	20		/* between two looks for a structure that comes */
#define ART_CHECK_PAUSE		10000L	/* us, before the second try; doubled each time */

static uint32 wait_event_check = 0;

static void art_check_fail(ArtCheck *c, const char *fmt,...) pg_attribute_printf(2, 3) __attribute__((noreturn));

/*
 * Raise the corruption with every number that we have.
 */
static void
art_check_fail(ArtCheck *c, const char *fmt,...)
{
	char		msg[512];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(msg, sizeof(msg), fmt, args);
	va_end(args);

	c->of_rows = false;
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is corrupted: %s",
					RelationGetRelationName(c->index), msg),
			 errdetail("generation " UINT64_FORMAT ", entries by walk " UINT64_FORMAT
					   ", by counter " UINT64_FORMAT ", by scan " UINT64_FORMAT
					   ", of visible rows " UINT64_FORMAT ", heap tuples " INT64_FORMAT
					   ", nodes " UINT64_FORMAT " (n4 " UINT64_FORMAT
					   ", n16 " UINT64_FORMAT ", n48 " UINT64_FORMAT
					   ", n256 " UINT64_FORMAT ", leaves " UINT64_FORMAT
					   ", embedded " UINT64_FORMAT "), height %d, bytes " UINT64_FORMAT,
					   c->gen, c->walk.entries, c->counter, c->scanned,
					   c->visible, c->rows,
					   c->walk.inner_nodes + c->walk.leaves, c->walk.n4,
					   c->walk.n16, c->walk.n48, c->walk.n256, c->walk.leaves,
					   c->walk.embedded, c->walk.height, c->walk.bytes),
			 errhint("REINDEX INDEX rebuilds it from the table."),
			 errtable(c->heap)));
}

/*
 * On a standby, nobody but the follower and its builders makes the structure.  One that ALTER INDEX has closed,
 * for example, is there again soon.  Nothing else would do for a check, so it waits as artidx_wait would.
 * False: this is no standby.
 *
 * Locks: none is held that replay could wait for but the check's own.
 */
static bool
await_followed(ArtCheck *c)
{
	const TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ART_FOLLOW_CHECK_MS);

	while (RecoveryInProgress())
	{
		ArtState	state = ART_ABSENT;
		ArtReason	reason = ART_WHY_RESTART;
		uint64		gen = 0;

		if (c->entry != NULL)
		{
			art_apply_kind(c->index, c->entry, c->kd->compared);
			if (art_followed_ready(c->index, c->entry, &c->gen, ART_FOLLOW_CHECK_MS))
				return true;
			state = art_entry_state(c->entry, &gen);
			reason = c->entry->reason;
		}
		/* what is followed and will not do for our snapshot stays so */
		if (RecoveryInProgress() &&
			((state == ART_FOLLOWED && gen == c->gen) || !art_will_be_there(state, reason) ||
			 GetCurrentTimestamp() >= until))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("art index \"%s\" is not in memory on this standby",
							RelationGetRelationName(c->index)),
					 errhint("See \"reason\" in the view artidx_indexes, and the view artidx_standby.")));
		(void) art_doze(ART_CHECK_LOOK_MS, ART_WAIT_EVENT(wait_event_check, "ArtidxCheck"));
		c->entry = art_entry_if_exists(c->index);
	}
	return false;
}

/*
 * (Re-)read which structure is checked.  ERROR when it was to be a certain one, and is
 * gone.
 */
static void
art_check_ready(ArtCheck *c)
{
	c->entry = art_entry_if_exists(c->index);
	if (c->only != 0)
	{
		if (c->entry == NULL ||
			art_entry_state(c->entry, &c->gen) != ART_READY || c->gen != c->only)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("index \"%s\" has another structure",
							RelationGetRelationName(c->index))));
		c->tree = art_entry_tree(c->entry);
		c->cx = art_ctx();
		return;
	}
	if (!await_followed(c))
	{
		if (c->entry != NULL)
			art_apply_kind(c->index, c->entry, c->kd->compared);
		c->gen = art_ensure_ready(c->index);
		c->entry = art_entry(c->index);
	}
	c->tree = art_entry_tree(c->entry);
	c->cx = art_ctx();
}

static void
art_check_unexpected(ArtCheck *c, ax_status s)
{
	art_unexpected(c->index, s, "a check");
}

/*
 * The tree's own counters.  False: the generation is gone.
 *
 * Epoch: enters and leaves, once a try; waits between two.
 */
static bool
art_check_info(ArtCheck *c, ax_tree_info *info)
{
	for (;;)
	{
		ax_status	s;

		ART_CORE_BEGIN();
		s = ax_info(c->cx, c->tree, c->gen, info);
		ART_CORE_END();
		if (s == AX_OK)
			return true;
		if (s == AX_STALE)
			return false;
		if (s != AX_BUSY)
			art_check_unexpected(c, s);
		art_busy();
	}
}

/*
 * The number of entries must be the counters'.  Beside writers it can only be compared
 * when the counters stood still meanwhile.  Even then once is not enough to be certain.
 * A writer that has put its entry in may wait for a processor, and count it then.  A
 * real difference stays the same for more than a second.  Nor are they compared when the caller rested: rows
 * that come and go one a minute would be a difference that stays the same.
 *
 * Epoch: enters and leaves.
 */
bool
art_check_walk(ArtCheck *c, ArtCheckWalk *w)
{
	ax_tree_info after = {0};
	ax_status	s = AX_OK;
	int64		diff;

	CHECK_FOR_INTERRUPTS();
	if (!w->begun)
	{
		memset(&w->at, 0, sizeof(w->at));
		w->begun = true;
		w->rested = false;
		if (!art_check_info(c, &w->before))
			s = AX_STALE;
		c->counter = w->before.entries;
	}
	if (s == AX_OK)
	{
		w->at.buf = w->pos.data;
		w->at.size = w->pos.cap;
		ART_CORE_BEGIN();
		s = ax_check(c->cx, c->tree, c->gen, &w->at);
		ART_CORE_END();
	}
	if (s == AX_BUFFER)
	{
		w->pos.len = w->pos.cap;	/* which is kept */
		art_buf_reserve(&w->pos, w->at.need_bytes - w->pos.cap);
	}
	else if (s == AX_BUSY)
		art_busy();
	else if (s != AX_OK && s != AX_STALE)
		art_check_unexpected(c, s);
	if (s == AX_OK && !w->at.done)
		return false;
	if (s == AX_OK)
	{
		c->walk = w->at.info;
		c->walk.bytes = w->before.bytes;	/* the walk does not count them */
		if (w->at.bad)
			art_check_fail(c, "%s", w->at.msg);
		if (!art_check_info(c, &after))
			s = AX_STALE;
	}
	if (s == AX_STALE)
	{
		art_check_ready(c);
		w->begun = false;
		w->tries = 0;
	}
	if (s != AX_OK)
		return false;

	w->begun = false;
	c->counter = after.entries;
	diff = (int64) (c->walk.entries - after.entries);
	if (w->rested || w->before.entries != after.entries ||	/* nothing to compare */
		diff == 0 || (w->tries > 0 && diff != w->first_diff))
		return true;
	w->first_diff = diff;
	if (++w->tries == ART_CHECK_TRIES)
		art_check_fail(c, "the walk and the counters disagree");
	/* no art_doze: a latch that is set would make it too short */
	pg_usleep(ART_CHECK_PAUSE << (w->tries - 1));
	return false;
}

/*
 * Encode a row's key into c->key, with its TID.
 */
static void
art_check_encode(ArtCheck *c, Datum *values, bool *isnull, uint64 tid)
{
	(void) art_encode(c->kd, values, isnull, &c->key);
	art_buf_reserve(&c->key, AX_TID_BYTES);
	ax_put_tid(c->key.data + c->key.len, tid);
	c->key.len += AX_TID_BYTES;
}

/*
 * Is the entry in the structure?
 */
static bool
art_check_contains(ArtCheck *c, const uint8 *key, uint32 len)
{
	for (;;)
	{
		ax_status	s;

		s = art_tree_contains(c->kd, c->cx, c->tree, c->gen, key, len);
		switch (s)
		{
			case AX_OK:
				return true;
			case AX_NOTFOUND:
				return false;
			case AX_BUSY:
				art_busy();
				break;
			case AX_STALE:
				art_check_ready(c);
				break;
			default:
				art_check_unexpected(c, s);
		}
	}
}

/*
 * Of a compared index: is it there, found by comparing or not?
 */
static bool
art_check_holds(ArtCheck *c, const uint8 *key, uint32 len)
{
	ax_status	s;

	while ((s = art_cmp_holds(c->kd, c->cx, c->tree, c->gen, key, len)) == AX_BUSY)
		art_busy();
	return s == AX_OK;
}

/*
 * One row that our snapshot sees: its entry must be there.
 */
static void
art_check_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			  bool tupleIsAlive, void *arg)
{
	ArtCheck   *c = (ArtCheck *) arg;
	MemoryContext old = MemoryContextSwitchTo(c->tmp);

	art_evaluate_row();
	c->of_rows = false;
	art_check_encode(c, values, isnull, art_tid_pack(tid));
	if (!art_check_contains(c, c->key.data, c->key.len))
	{
		bool		there = c->kd->compared && art_check_holds(c, c->key.data, c->key.len);

		if (there)
			art_check_disorder(c, c->key.data, c->key.len);
		art_check_fail(c, there ? "the entry of the row with root (%u,%u) is not found by comparing" :
					   "the row with root (%u,%u) has no entry",
					   ItemPointerGetBlockNumberNoCheck(tid),
					   (unsigned) ItemPointerGetOffsetNumberNoCheck(tid));
	}
	c->rows++;
	MemoryContextSwitchTo(old);
	MemoryContextReset(c->tmp);
	c->of_rows = true;
}

/*
 * Heap to index: as the first scan of CREATE INDEX CONCURRENTLY sees it.
 */
void
art_check_heap(ArtCheck *c, BlockNumber first, BlockNumber n)
{
	IndexInfo  *info = BuildIndexInfo(c->index);
	bool		all = n == InvalidBlockNumber;
	TableScanDesc scan = NULL;
	bool		begun = art_evaluate_begin();

	/* some blocks: the callee makes the scan, with a snapshot that is no older */
	if (all)
		scan = table_beginscan_strat(c->heap, c->snapshot, 0, NULL, true, true);
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;
	/* ends the scan, too */
	c->of_rows = true;
	table_index_build_range_scan(c->heap, c->index, info, all, false, false,
								 first, n, art_check_row, c, scan);
	art_evaluate_end(begun);
	c->of_rows = false;
}

/*
 * Why a TID cannot be an entry's, or NULL.
 */
static const char *
art_check_line_pointer(ArtCheck *c, uint64 tid)
{
	BlockNumber blk = (BlockNumber) (tid >> 16);
	OffsetNumber off = (OffsetNumber) (tid & 0xFFFF);
	const char *wrong = NULL;
	Buffer		buf;
	Page		page;

	/* our lock on the table keeps it from being truncated */
	if (blk >= RelationGetNumberOfBlocks(c->heap))
		return "is past the end of the table";

	buf = ReadBuffer(c->heap, blk);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	if (PageIsNew(page) || off < FirstOffsetNumber ||
		off > PageGetMaxOffsetNumber(page))
		wrong = "is past the end of its page";
	else
	{
		ItemId		lp = PageGetItemId(page, off);

		if (!ItemIdIsUsed(lp))
			wrong = "is an unused line pointer";
		else if (ItemIdIsNormal(lp) &&
				 HeapTupleHeaderIsHeapOnly((HeapTupleHeader) PageGetItem(page, lp)))
			wrong = "is not the root of its chain";
	}
	UnlockReleaseBuffer(buf);
	return wrong;
}

/*
 * The same on a standby, where the page may be newer than the structure.  The
 * follower sweeps such an entry before it passes what makes its place another's.  So
 * the page is looked at, the follower awaited, and its sweep, then the entry looked for.  A place
 * may be freed anew in between, but not each time.
 */
static void
art_check_suspect_followed(ArtCheck *c, const uint8 *key, uint32 len, uint64 tid)
{
	const char *wrong = NULL;

	for (int i = 0; i < ART_CHECK_TRIES;)
	{
		bool		unswept;

		CHECK_FOR_INTERRUPTS();
		wrong = art_check_line_pointer(c, tid);
		if (wrong == NULL)
			return;
		art_check_ready(c);
		unswept = art_followed_unswept(c->entry);
		if (!art_check_contains(c, key, len))
			return;
		/* for as long as that takes: a cancel ends the check */
		if (unswept)
			(void) art_doze(ART_CHECK_PAUSE / 1000, ART_WAIT_EVENT(wait_event_check, "ArtidxCheck"));
		else
			i++;
	}
	art_check_fail(c, "an entry's row address (%u,%u) %s",
				   (unsigned) (tid >> 16), (unsigned) (tid & 0xFFFF), wrong);
}

/*
 * An entry whose TID looks wrong: certain only while the TID is published and
 * the entry is there.
 */
static void
art_check_suspect(ArtCheck *c, const uint8 *key, uint32 len, uint64 tid)
{
	const char *wrong;

	if (art_check_line_pointer(c, tid) == NULL)
		return;
	if (RecoveryInProgress())
	{
		art_check_suspect_followed(c, key, len, tid);
		return;
	}

	if (c->hazard == NULL)
		c->hazard = art_hazard_acquire(c->index, CurrentMemoryContext);
	while (!art_hazard_publish(c->hazard, tid, art_delgen(c->index)))
		CHECK_FOR_INTERRUPTS();
	if (art_check_contains(c, key, len) &&
		(wrong = art_check_line_pointer(c, tid)) != NULL)
		art_check_fail(c, "an entry's row address (%u,%u) %s",
					   (unsigned) (tid >> 16), (unsigned) (tid & 0xFFFF), wrong);
	art_hazard_clear(c->hazard);
}

/*
 * One entry against the heap.
 */
static void
art_check_entry(ArtCheck *c, const uint8 *key, uint32 len, uint64 tid)
{
	MemoryContext old;
	ItemPointerData htid;
	bool		again = false;
	bool		all_dead = false;

	c->scanned++;
	art_tid_unpack(tid, &htid);
	if ((BlockNumber) (tid >> 16) >= RelationGetNumberOfBlocks(c->heap) ||
		!table_index_fetch_tuple(c->fetch, &htid, c->snapshot, c->slot, &again,
								 &all_dead))
	{
		art_check_suspect(c, key, len, tid);
		return;
	}

	old = MemoryContextSwitchTo(c->tmp);
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];
		bool		begun = art_evaluate_begin();

		c->of_rows = true;
		art_eval_columns(c->eval, c->slot, values, isnull);
		c->of_rows = false;
		art_evaluate_end(begun);
		art_check_encode(c, values, isnull, tid);
		if ((c->key.len != len || memcmp(c->key.data, key, len) != 0) &&
			(c->kd->images || !c->kd->compared ||
			 art_key_order(c->kd, c->key.data, c->key.len - AX_TID_BYTES,
						   key, len - AX_TID_BYTES) != 0))
			art_check_fail(c, "an entry leads to the row (%u,%u), which has another key",
						   (unsigned) (tid >> 16), (unsigned) (tid & 0xFFFF));
		c->visible++;
		art_eval_next(c->eval);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(c->tmp);
	ExecClearTuple(c->slot);
}

/*
 * Index to heap: entries in key order, against what our snapshot sees.
 */
void
art_check_entries(ArtCheck *c, ArtPass *w, TimestampTz until)
{
	c->eval = art_eval_begin(c->index);
	c->slot = table_slot_create(c->heap, NULL);
	c->fetch = art_table_index_fetch_begin(c->heap);

	do
	{
		ax_status	s;

		CHECK_FOR_INTERRUPTS();
		s = art_pass_next(w, c->tree, c->gen);
		if (s == AX_STALE)
		{
			/* whatever structure comes next holds what our snapshot sees */
			art_check_ready(c);
			continue;
		}
		if (s != AX_OK)
			art_check_unexpected(c, s);

		for (uint32 i = 0; i < w->n; i++)
		{
			const uint8 *key = w->keys.data + w->key_off[i];
			uint32		len = w->key_off[i + 1] - w->key_off[i];
			uint64		tid = 0;

			for (int k = 0; k < AX_TID_BYTES; k++)
				tid = tid << 8 | key[len - AX_TID_BYTES + k];
			/* the core's walk cannot tell the order of these */
			if (c->kd->compared && (i > 0 || (w->from.len > 0 && !w->at_from)) &&
				art_key_cmp(c->kd, key, len, i > 0 ? w->keys.data + w->key_off[i - 1] : w->from.data,
							i > 0 ? w->key_off[i] - w->key_off[i - 1] : w->from.len, true, true) <= 0)
			{
				art_check_disorder(c, key, len);
				art_check_fail(c, "the entry of row address (%u,%u) is out of order",
							   (unsigned) (w->tids[i] >> 16), (unsigned) (w->tids[i] & 0xFFFF));
			}
			if (tid != w->tids[i])
				art_check_fail(c, "a scan gave row address (%u,%u) for an entry of (%u,%u)",
							   (unsigned) (w->tids[i] >> 16), (unsigned) (w->tids[i] & 0xFFFF),
							   (unsigned) (tid >> 16), (unsigned) (tid & 0xFFFF));
			art_check_entry(c, key, len, tid);
		}
	} while (!w->done && GetCurrentTimestamp() < until);

	if (c->hazard != NULL)
		art_hazard_release(c->hazard);
	c->hazard = NULL;
	table_index_fetch_end(c->fetch);
	ExecDropSingleTupleTableSlot(c->slot);
	art_eval_end(c->eval);
}

/*
 * Open the index with its table, the table locked first.
 *
 * Locks: takes AccessShareLock on table and index, and leaves both held.  An
 * ERROR leaves them to the end of the transaction.
 */
static void
art_check_open(Oid indexoid, Relation *heap, Relation *index)
{
	Oid			heapoid = IndexGetRelation(indexoid, true);

	*heap = OidIsValid(heapoid) ? table_open(heapoid, AccessShareLock) : NULL;
	*index = relation_open(indexoid, AccessShareLock);
	if (!art_is_art_index(*index))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index of access method \"%s\"",
						RelationGetRelationName(*index), ART_AM_NAME)));
	if (*heap == NULL || heapoid != IndexGetRelation(indexoid, false))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open parent table of index \"%s\"",
						RelationGetRelationName(*index))));
	if (!(*index)->rd_index->indisready || !(*index)->rd_index->indislive ||
		!(*index)->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot check index \"%s\"",
						RelationGetRelationName(*index)),
				 errdetail("The index is not valid."),
				 errhint("REINDEX or drop it.")));
	if (RELATION_IS_OTHER_TEMP(*index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot check temporary index \"%s\" of another session",
						RelationGetRelationName(*index))));
}

void
art_check_begin(ArtCheck *c)
{
	art_must_evaluate(c->index, "check");
	c->may_see = art_may_see_rows(c->index);
	art_as_owner_begin(c->heap, &c->save);

	c->tmp = AllocSetContextCreate(CurrentMemoryContext, "artidx_check",
								   ALLOCSET_DEFAULT_SIZES);
	c->kd = art_keydesc_build(c->index, CurrentMemoryContext);
	art_buf_init(&c->key, CurrentMemoryContext, 256);
	art_check_ready(c);
}

void
art_check_end(ArtCheck *c)
{
	art_as_owner_end(&c->save);
	MemoryContextDelete(c->tmp);
}

/*
 * The walk, and with the heap both ways.  Not everybody may see what an error says of a row.
 */
static void
art_check_all(ArtCheck *c, bool heapallindexed)
{
	MemoryContext cxt = CurrentMemoryContext;
	ArtCheckWalk walk = {0};
	ArtPass		pass;

	art_buf_init(&walk.pos, CurrentMemoryContext, 1024);
	while (!art_check_walk(c, &walk))
		;
	if (!heapallindexed)
		return;
	PG_TRY();
	{
		art_check_heap(c, 0, InvalidBlockNumber);
		art_pass_init(&pass, c->kd, c->cx, ART_CHECK_BATCH, 64 * 1024);
		art_check_entries(c, &pass, DT_NOEND);
	}
	PG_CATCH();
	{
		art_rethrow_hidden(c->index, c->may_see || !c->of_rows, cxt);
	}
	PG_END_TRY();
	/* each row that we see has one entry, and neither pass may miss it */
	if ((int64) c->visible != c->rows)
		art_check_fail(c, "its entries lead to another number of rows than the table has");
}

PG_FUNCTION_INFO_V1(artidx_check);
PGDLLEXPORT Datum artidx_check(PG_FUNCTION_ARGS);

/*
 * artidx_check(index regclass, heapallindexed boolean)
 */
Datum
artidx_check(PG_FUNCTION_ARGS)
{
	FuncCallContext *fctx;
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {false, false, false, false};
	ArtCheck	c;
	bool		heapallindexed = PG_GETARG_BOOL(1);
	MemoryContext old;

	if (!SRF_IS_FIRSTCALL())
	{
		fctx = SRF_PERCALL_SETUP();
		SRF_RETURN_DONE(fctx);
	}

	fctx = SRF_FIRSTCALL_INIT();
	old = MemoryContextSwitchTo(fctx->multi_call_memory_ctx);
	desc = art_result_row(fcinfo, lengthof(values));
	MemoryContextSwitchTo(old);

	memset(&c, 0, sizeof(c));
	art_check_open(PG_GETARG_OID(0), &c.heap, &c.index);
	art_queue_flush_of(c.index);
	art_tell_of_classes(c.index, true);
	art_check_begin(&c);
	if (heapallindexed)
	{
		/* before the first look at an entry: all we see must be in there */
		c.snapshot = RegisterSnapshot(GetTransactionSnapshot());
		/* a standby's structure must have come to where the snapshot was taken */
		if (RecoveryInProgress())
			art_check_ready(&c);
		if (IsolationUsesXactSnapshot() && c.index->rd_index->indcheckxmin &&
			!TransactionIdPrecedes(HeapTupleHeaderGetXmin(c.index->rd_indextuple->t_data),
								   c.snapshot->xmin))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("index \"%s\" cannot be verified using transaction snapshot",
							RelationGetRelationName(c.index))));
	}

	art_check_all(&c, heapallindexed);
	if (heapallindexed)
		UnregisterSnapshot(c.snapshot);
	art_check_end(&c);
	relation_close(c.index, AccessShareLock);
	table_close(c.heap, AccessShareLock);

	values[0] = Int64GetDatum((int64) c.walk.entries);
	values[1] = Int64GetDatum(c.rows);
	nulls[1] = !heapallindexed;
	values[2] = Int64GetDatum((int64) (c.walk.inner_nodes + c.walk.leaves));
	values[3] = Int64GetDatum((int64) c.walk.bytes);
	SRF_RETURN_NEXT(fctx, HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}
