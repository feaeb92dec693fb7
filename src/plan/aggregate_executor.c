/*
 * aggregate_executor.c
 *	  Aggregates from an index alone: entries are counted and added up, a batch at a
 *	  time, and no tuple is formed.
 *
 *	a batch		some hundred entries (scan/entry_batches.c): which of their rows does the
 *				snapshot see?  The visibility map is asked once about each block.  Rows
 *				of other pages are fetched.
 *	a run		entries of a batch, one behind the other, that are of one group;
 *	a column	is read where it lies in the encoded keys.
 *
 * The snapshot is MVCC.  A row is what an index-only scan would take it for: visible to
 * all, or seen by the snapshot.
 *
 * src/plan/README.md: Aggregates from an index
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/parallel.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "art_compat.h"
#include "commands/explain.h"
#include ART_EXPLAIN_HEADER
#include "executor/executor.h"
#include "executor/nodeIndexscan.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "key/encode.h"
#include "plan/custom_scans.h"
#include "plan/index_aggregate.h"
#include "plan/plan.h"
#include "scan/scan.h"

/* An entry's row has to be fetched, to know (ArtAggState.seen). */
#define ART_AGG_ASK		2

/* A result: what was counted for the group so far. */
typedef struct ArtAgg
{
	ArtAggKind	kind;
	int			column;			/* of the index, from 0; -1: none */
	bool		ordered;		/* a group's entries are in the column's order */
	bool		low;			/* MIN or MAX: the lowest bytes win */
	uint32		offset;			/* of the column's body in a key whose columns are fixed */
	uint64		flip;			/* from its bytes to an integer */
	uint64		n;				/* values */
	int128		sum;
	ArtBuf		best;			/* the body that is the lowest or the highest */
} ArtAgg;

typedef struct ArtAggState
{
	CustomScanState css;

	/* the plan */
	Oid			indexid;
	bool		backward;
	int			prefix;			/* columns that a group has in common; -1: all is one group */
	int			naggs;
	ArtAgg	   *aggs;
	bool		any_column;		/* keys are wanted */

	/* the index */
	Relation	heap;
	Relation	index;
	ScanKey		keys;
	int			nkeys;
	IndexRuntimeKeyInfo *runtime;
	int			nruntime;
	ExprContext *key_econtext;
	void	   *shared;			/* NULL, or a parallel scan's */
	IndexScanDesc scan;			/* NULL: not begun */
	IndexScanInstrumentation searches;	/* for EXPLAIN */
	const ArtKeyDesc *kd;		/* the scan's */
	TupleTableSlot *fetch_slot;
	Buffer		vmbuf;			/* of the visibility map */
	BlockNumber map_page;		/* its number; InvalidBlockNumber: none is pinned */
	const volatile uint8 *map;	/* its bits */

	/* the batch */
	bool		searching;		/* a search has begun */
	ArtEntries	e;
	uint32		at;				/* the first entry that is in no run yet */
	bool		all_seen;		/* the rows of all of them are */
	bool		done;			/* there is no batch any more */
	bool		given;			/* and the last row was handed out */
	uint8		seen[ART_ENTRIES_MAX];	/* 1: the snapshot sees its row, 0: it is not counted, or */

	/* the group */
	bool		in_group;
	uint64		rows;
	ArtBuf		group;			/* the beginning of its keys, or a whole one */
	uint32		group_len;		/* of the beginning */
} ArtAggState;

/* ---- begin and end ---- */

/* A list of custom_private. */
static List *
private_list(const CustomScan *cscan, ArtAggPrivate which)
{
	return (List *) list_nth(cscan->custom_private, which);
}

/* The left side of a condition as the executor wants it: the index's column. */
static Node *
index_column(const Node *left, int column)
{
	return (Node *) makeVar(INDEX_VAR, (AttrNumber) (column + 1), exprType(left), -1,
							exprCollation(left), 0);
}

/* The conditions of the index as core's scan keys. */
static void
make_keys(ArtAggState *a, const CustomScan *cscan)
{
	List	   *quals = copyObject(cscan->custom_exprs);
	List	   *columns = private_list(cscan, ART_AGG_QUAL_COLUMNS);
	int			at = 0;
	int			narrays = 0;
	IndexArrayKeyInfo *arrays = NULL;
	ListCell   *lc,
			   *lc2;

	foreach(lc, quals)
	{
		Node	   *qual = lfirst(lc);

		if (IsA(qual, RowCompareExpr))
		{
			foreach(lc2, ((RowCompareExpr *) qual)->largs)
				lfirst(lc2) = index_column(lfirst(lc2), list_nth_int(columns, at++));
		}
		else if (IsA(qual, NullTest))
		{
			NullTest   *test = (NullTest *) qual;

			test->arg = (Expr *) index_column((Node *) test->arg, list_nth_int(columns, at++));
		}
		else
		{
			ListCell   *left = list_head(IsA(qual, ScalarArrayOpExpr) ?
										 ((ScalarArrayOpExpr *) qual)->args :
										 castNode(OpExpr, qual)->args);

			lfirst(left) = index_column(lfirst(left), list_nth_int(columns, at++));
		}
	}
	ExecIndexBuildScanKeys(&a->css.ss.ps, a->index, art_rowcmp_apart(quals), false, &a->keys,
						   &a->nkeys, &a->runtime, &a->nruntime, &arrays, &narrays);
}

/*
 * BeginCustomScan: all but the scan, which begins with the first row.
 *
 * Locks: takes on the index the lock that the statement has on its table.
 */
static void
begin_aggregate(CustomScanState *node, EState *estate, int eflags)
{
	ArtAggState *a = (ArtAggState *) node;
	Index		rti = ((Scan *) node->ss.ps.plan)->scanrelid;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	a->heap = node->ss.ss_currentRelation;
	a->index = index_open(a->indexid, exec_rt_fetch(rti, estate)->rellockmode);
	a->key_econtext = CreateExprContext(estate);
	make_keys(a, (const CustomScan *) node->ss.ps.plan);
	a->fetch_slot = ExecInitExtraTupleSlot(estate, RelationGetDescr(a->heap),
										   table_slot_callbacks(a->heap));
	a->group.cxt = CurrentMemoryContext;
	for (int i = 0; i < a->naggs; i++)
		a->aggs[i].best.cxt = CurrentMemoryContext;
}

/* EndCustomScan: closes what was opened. */
static void
end_aggregate(CustomScanState *node)
{
	ArtAggState *a = (ArtAggState *) node;

	if (a->vmbuf != InvalidBuffer)
		ReleaseBuffer(a->vmbuf);
	if (a->scan != NULL)
		index_endscan(a->scan);
	if (a->index != NULL)
		index_close(a->index, NoLock);
}

/* ReScanCustomScan: the search begins again, with the next row. */
static void
rescan_aggregate(CustomScanState *node)
{
	ArtAggState *a = (ArtAggState *) node;

	a->done = a->given = a->in_group = a->searching = false;
	a->e.n = a->at = 0;
}

/* Set what depends on the index's column: where it lies in a key, and its order. */
static void
prepare_aggregate(ArtAggState *a, ArtAgg *agg)
{
	const ArtKeyCol *col = &a->kd->cols[agg->column];
	bool		lowest = (agg->kind == ART_AGG_MIN) != col->desc;

	agg->offset = 1;
	for (int i = 0; i < agg->column; i++)
		agg->offset += a->kd->cols[i].width + 1;
	agg->flip = ART_SIGN64 ^ (col->desc ? PG_UINT64_MAX : 0);
	agg->low = lowest;
	agg->ordered = agg->column == Max(a->prefix, 0);
}

/* Begin a search, with the scan keys of now. */
static void
begin_search(ArtAggState *a)
{
	EState	   *estate = a->css.ss.ps.state;

	if (a->scan == NULL)
	{
		a->scan = art_index_beginscan(a->heap, a->index, estate->es_snapshot, a->nkeys,
									  art_scan_flags(estate, ((Scan *) a->css.ss.ps.plan)->scanrelid));
		art_count_searches(a->scan, &a->searches);
		a->kd = art_entries_desc(a->scan);
		for (int i = 0; i < a->naggs; i++)
		{
			if (a->aggs[i].column >= 0)
				prepare_aggregate(a, &a->aggs[i]);
		}
	}
	if (a->nruntime > 0)
	{
		ResetExprContext(a->key_econtext);
		ExecIndexEvalRuntimeKeys(a->key_econtext, a->runtime, a->nruntime);
	}
	if (a->shared != NULL)
		art_entries_attach(a->scan, a->shared);
	index_rescan(a->scan, a->keys, a->nkeys, NULL, 0);
	a->searching = true;
}

/* ---- which rows the snapshot sees ---- */

/* A page of the visibility map has two bits for each of so many blocks, in PostgreSQL's format. */
#define ART_MAP_BYTES	(BLCKSZ - MAXALIGN(SizeOfPageHeaderData))
#define ART_MAP_BLOCKS	(ART_MAP_BYTES * BITS_PER_BYTE / BITS_PER_HEAPBLOCK)

/*
 * What does the visibility map say of a block?  Its page stays pinned, and is read without
 * a lock, as core reads it.
 */
static inline bool
block_visible(ArtAggState *a, BlockNumber block)
{
	uint32		bit = block % ART_MAP_BLOCKS * BITS_PER_HEAPBLOCK;

	if (unlikely(block / ART_MAP_BLOCKS != a->map_page))
	{
		(void) visibilitymap_get_status(a->heap, block, &a->vmbuf);
		a->map_page = a->vmbuf != InvalidBuffer ? block / ART_MAP_BLOCKS : InvalidBlockNumber;
		a->map = a->vmbuf != InvalidBuffer ?
			(const volatile uint8 *) PageGetContents(BufferGetPage(a->vmbuf)) : NULL;
		if (a->map == NULL)
			return false;
	}
	return (a->map[bit / BITS_PER_BYTE] >> bit % BITS_PER_BYTE) & VISIBILITYMAP_ALL_VISIBLE;
}

/*
 * Which entries of the batch match, and which of their rows are visible to all, by the map?
 * Sets a->seen, and returns how many are.  The rows of others have to be fetched.
 */
static uint32
ask_map(ArtAggState *a)
{
	const bool	locks = IsolationIsSerializable();
	BlockNumber before = InvalidBlockNumber;
	uint32		nseen = 0;

	for (uint32 i = 0; i < a->e.n; i++)
	{
		BlockNumber block = (BlockNumber) (a->e.tids[i] >> 16);
		bool		visible;
		uint32		last;

		if (unlikely(a->e.tested) && !art_entries_pass(a->scan, i, &last))
		{
			memset(a->seen + i, 0, last - i + 1);
			i = last;
			continue;
		}
		visible = a->e.certain || block_visible(a, block);
		if (unlikely(locks) && visible && block != before && !a->e.certain)
		{
			PredicateLockPage(a->heap, block, a->css.ss.ps.state->es_snapshot);
			before = block;
		}
		a->seen[i] = visible ? 1 : ART_AGG_ASK;
		nseen += visible;
	}
	return nseen;
}

/* Fetch the row of an entry: does the snapshot see it? */
static bool
fetch_row(ArtAggState *a, uint32 i)
{
	IndexScanDesc scan = a->scan;

	CHECK_FOR_INTERRUPTS();
	art_tid_unpack(a->e.tids[i], &scan->xs_heaptid);
	scan->xs_heap_continue = false;
	InstrCountTuples2(a, 1);
	if (index_fetch_heap(scan, a->fetch_slot))
		return true;
	if (scan->kill_prior_tuple)
		art_entries_dead(scan, i);
	return false;
}

/*
 * Fetch the rows of the batch that are not known to be visible.  Returns how many the
 * snapshot sees.
 */
static uint32
fetch_others(ArtAggState *a)
{
	uint32		nseen = 0;

	for (uint32 i = 0; i < a->e.n; i++)
	{
		if (a->seen[i] == ART_AGG_ASK)
			nseen += a->seen[i] = fetch_row(a, i);
	}
	ExecClearTuple(a->fetch_slot);
	return nseen;
}

/*
 * The next batch, and which of its rows the snapshot sees.  Returns false when there is
 * none.
 */
static bool
next_batch(ArtAggState *a)
{
	uint32		nseen;

	CHECK_FOR_INTERRUPTS();
	a->at = 0;
	if (!art_entries_next(a->scan, a->backward, a->any_column, &a->e))
	{
		a->e.n = 0;
		return false;
	}
	nseen = ask_map(a);

	/* a VACUUM went by: what the map says may be about other rows */
	if (nseen > 0 && !a->e.certain && !art_entries_current(a->scan))
	{
		for (uint32 i = 0; i < a->e.n; i++)
			a->seen[i] = a->seen[i] != 0 ? ART_AGG_ASK : 0;
		nseen = 0;
	}
	if (nseen < a->e.n)
		nseen += fetch_others(a);
	a->all_seen = nseen == a->e.n;
	return true;
}

/* ---- values ---- */

/*
 * The body of a column of an entry, and where it ends.  NULL: it has no value.
 */
static const uint8 *
column_body(const ArtAggState *a, const ArtAgg *agg, uint32 i, const uint8 **end)
{
	const ArtKeyCol *col = &a->kd->cols[agg->column];
	const uint8 *p;
	const uint8 *key_end;
	uint32		len;

	if (a->e.keys != NULL)
	{
		p = a->e.keys + (Size) i * a->e.stride + agg->offset;
		*end = p + col->width;
		return p;
	}
	p = art_entries_key(a->scan, i, &len);
	key_end = p + len;
	for (int c = 0; c < agg->column; c++)
		p = art_skip_col(a->kd, &a->kd->cols[c], p, key_end);
	*end = art_skip_col(a->kd, col, p, key_end);
	return *p == ART_MARK_VALUE ? p + 1 : NULL;
}

/* Is the body better than the best one so far?  Then keep it. */
static void
keep_best(ArtAgg *agg, const uint8 *body, const uint8 *end)
{
	uint32		len = (uint32) (end - body);

	if (agg->n > 0)
	{
		int			cmp = memcmp(body, agg->best.data, Min(len, agg->best.len));

		if (cmp == 0)
			cmp = (len > agg->best.len) - (len < agg->best.len);
		if (agg->low ? cmp >= 0 : cmp <= 0)
			return;
	}
	agg->best.len = 0;
	art_put_bytes(&agg->best, body, len);
}

/* Look at entry i of a run for the lowest or highest value.  Returns whether it has one. */
static inline bool
look_at(ArtAggState *a, ArtAgg *agg, uint32 i)
{
	const uint8 *end;
	const uint8 *body = a->seen[i] ? column_body(a, agg, i, &end) : NULL;

	if (body == NULL)
		return false;
	keep_best(agg, body, end);
	agg->n++;
	return true;
}

/* The entry of a run with the lowest or highest eight bytes; all have them. */
static uint32
best_of_run(const ArtAggState *a, const ArtAgg *agg, uint32 from, uint32 to)
{
	const uint8 *p = a->e.keys + (Size) from * a->e.stride + agg->offset;
	const uint64 turn = agg->low ? 0 : PG_UINT64_MAX;
	uint64		least = PG_UINT64_MAX;
	uint32		best = from;

	for (uint32 i = from; i < to; i++, p += a->e.stride)
	{
		uint64		v = art_load64(p) ^ turn;

		if (v < least)
		{
			least = v;
			best = i;
		}
	}
	return best;
}

/*
 * The lowest or highest value of a run.  In the column's order it is the first one that
 * counts, or the last.
 */
static void
add_extreme(ArtAggState *a, ArtAgg *agg, uint32 from, uint32 to)
{
	bool		first = agg->low != a->backward;

	if (!agg->ordered && a->e.keys != NULL && a->all_seen &&
		a->kd->cols[agg->column].width == sizeof(uint64))
		(void) look_at(a, agg, best_of_run(a, agg, from, to));
	else if (!agg->ordered)
	{
		for (uint32 i = from; i < to; i++)
			(void) look_at(a, agg, i);
	}
	else if (first)
	{
		for (uint32 i = from; i < to && agg->n == 0; i++)
			(void) look_at(a, agg, i);
	}
	else
	{
		for (uint32 i = to; i > from && !look_at(a, agg, i - 1); i--)
			;
	}
}

/* Count or add up the values of a run. */
static void
add_values(ArtAggState *a, ArtAgg *agg, uint32 from, uint32 to)
{
	bool		adds = agg->kind != ART_AGG_COUNT;
	const uint64 flip = agg->flip;

	if (a->e.keys != NULL && a->all_seen)
	{
		const uint8 *p = a->e.keys + (Size) from * a->e.stride + agg->offset;

		agg->n += to - from;
		if (adds)
		{
			int128		sum = 0;

			for (uint32 i = from; i < to; i++, p += a->e.stride)
				sum += (int64) (art_load64(p) ^ flip);
			agg->sum += sum;
		}
		return;
	}
	for (uint32 i = from; i < to; i++)
	{
		const uint8 *end;
		const uint8 *body = a->seen[i] ? column_body(a, agg, i, &end) : NULL;

		if (body == NULL)
			continue;
		agg->n++;
		if (adds)
			agg->sum += (int64) (art_load64(body) ^ flip);
	}
}

/* ---- groups ---- */

/* The key of an entry, as long as that of a group. */
static const uint8 *
group_key(const ArtAggState *a, uint32 i, uint32 *len)
{
	if (a->e.keys != NULL)
	{
		*len = a->kd->fixed_len;
		return a->e.keys + (Size) i * a->e.stride;
	}
	return art_entries_key(a->scan, i, len);
}

/* Is an entry one of the group? */
static inline bool
is_of_group(const ArtAggState *a, uint32 i)
{
	uint32		len;
	const uint8 *key = group_key(a, i, &len);

	return len >= a->group_len && memcmp(key, a->group.data, a->group_len) == 0;
}

/* The entries of the batch that are of the group, from a->at on, end here; there may be none. */
static uint32
end_of_run(const ArtAggState *a)
{
	uint32		lo = a->at;
	uint32		hi = a->e.n;

	if (a->prefix < 0 || is_of_group(a, hi - 1))
		return hi;
	/* the end is lo, or behind it, and not behind hi */
	hi--;
	while (lo < hi)
	{
		uint32		mid = lo + (hi - lo) / 2;

		if (is_of_group(a, mid))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* A group begins with the entry at a->at. */
static void
begin_group(ArtAggState *a)
{
	a->in_group = true;
	a->rows = 0;
	for (int i = 0; i < a->naggs; i++)
	{
		a->aggs[i].n = 0;
		a->aggs[i].sum = 0;
	}
	if (a->prefix >= 0)
	{
		uint32		len;
		const uint8 *key = group_key(a, a->at, &len);

		a->group.len = 0;
		art_put_bytes(&a->group, key, len);
		a->group_len = art_key_prefix_len(a->kd, a->group.data, len, a->prefix);
	}
}

/* The entries to "to" are of the group: what do they add? */
static void
add_run(ArtAggState *a, uint32 to)
{
	uint32		rows = to - a->at;

	if (!a->all_seen)
	{
		rows = 0;
		for (uint32 i = a->at; i < to; i++)
			rows += a->seen[i];
	}
	for (int i = 0; i < a->naggs && rows > 0; i++)
	{
		switch (a->aggs[i].kind)
		{
			case ART_AGG_GROUP:
			case ART_AGG_ROWS:
				break;
			case ART_AGG_MIN:
			case ART_AGG_MAX:
				add_extreme(a, &a->aggs[i], a->at, to);
				break;
			default:
				add_values(a, &a->aggs[i], a->at, to);
				break;
		}
	}
	a->rows += rows;
	a->at = to;
}

/* A sum as a numeric. */
static Datum
sum_numeric(int128 sum)
{
	const int64 unit = INT64CONST(1000000000000000000);
	Datum		high;

	if (sum >= PG_INT64_MIN && sum <= PG_INT64_MAX)
		return NumericGetDatum(int64_to_numeric((int64) sum));
	high = DirectFunctionCall2(numeric_mul, NumericGetDatum(int64_to_numeric((int64) (sum / unit))),
							   NumericGetDatum(int64_to_numeric(unit)));
	return DirectFunctionCall2(numeric_add, high,
							   NumericGetDatum(int64_to_numeric((int64) (sum % unit))));
}

/* A result of the group that ends. */
static Datum
result_of(const ArtAggState *a, const ArtAgg *agg, bool *isnull)
{
	*isnull = false;
	if (agg->kind == ART_AGG_ROWS)
		return Int64GetDatum((int64) a->rows);
	if (agg->kind == ART_AGG_COUNT)
		return Int64GetDatum((int64) agg->n);
	if (agg->kind == ART_AGG_AVG_STATE)
		return art_agg_int4_state(agg->n, agg->sum);
	*isnull = agg->n == 0;
	if (*isnull)
		return (Datum) 0;
	switch (agg->kind)
	{
		case ART_AGG_SUM:
			return Int64GetDatum((int64) agg->sum);
		case ART_AGG_SUM_BIG:
			return sum_numeric(agg->sum);
		case ART_AGG_BIG_STATE:
			return art_agg_int8_state(agg->n, agg->sum);
		case ART_AGG_AVG:
			return DirectFunctionCall2(numeric_div, sum_numeric(agg->sum),
									   NumericGetDatum(int64_to_numeric((int64) agg->n)));
		default:
			return art_decode_col(&a->kd->cols[agg->column], agg->best.data,
								  agg->best.data + agg->best.len);
	}
}

/* The scan tuple of the group that ends; values are made in the current context. */
static TupleTableSlot *
show_group(ArtAggState *a)
{
	TupleTableSlot *slot = a->css.ss.ss_ScanTupleSlot;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (a->prefix > 0)
		art_decode(a->kd, a->group.data, a->group.len, a->prefix, values, isnull);
	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts * sizeof(bool));
	for (int i = 0; i < a->naggs; i++)
	{
		const ArtAgg *agg = &a->aggs[i];

		if (agg->kind == ART_AGG_GROUP)
		{
			slot->tts_values[i] = values[agg->column];
			slot->tts_isnull[i] = isnull[agg->column];
		}
		else
			slot->tts_values[i] = result_of(a, agg, &slot->tts_isnull[i]);
	}
	return ExecStoreVirtualTuple(slot);
}

/*
 * Go to the end of the next group that has a row.  Returns false when there is none.
 * Without GROUP BY there is one, whatever it has.
 */
static bool
next_group(ArtAggState *a)
{
	while (!a->done)
	{
		bool		ends = false;

		if (a->at < a->e.n)
		{
			if (!a->in_group)
				begin_group(a);
			add_run(a, end_of_run(a));
			ends = a->at < a->e.n;
		}
		else if (!next_batch(a))
			a->done = ends = true;
		if (!ends || !a->in_group || a->prefix < 0)
			continue;
		a->in_group = false;
		if (a->rows > 0)
			return true;
	}
	if (a->prefix >= 0 || a->given)
		return false;
	if (!a->in_group)
		begin_group(a);
	a->given = true;
	return true;
}

/* ExecCustomScan: the next group that passes HAVING, projected. */
static TupleTableSlot *
exec_aggregate(CustomScanState *node)
{
	ArtAggState *a = (ArtAggState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	if (!a->searching)
		begin_search(a);
	for (;;)
	{
		MemoryContext old;

		ResetExprContext(econtext);
		if (!next_group(a))
			return ExecClearTuple(node->ss.ps.ps_ResultTupleSlot);
		old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		econtext->ecxt_scantuple = show_group(a);
		MemoryContextSwitchTo(old);
		if (!ExecQual(node->ss.ps.qual, econtext))
			InstrCountFiltered1(node, 1);
		else if (node->ss.ps.ps_ProjInfo != NULL)
			return ExecProject(node->ss.ps.ps_ProjInfo);
		else
			return econtext->ecxt_scantuple;
	}
}

/* ---- parallel plans ---- */

/* EstimateDSMCustomScan */
static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	return art_entries_shared_size();
}

/* InitializeDSMCustomScan */
static void
initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *shared)
{
	art_entries_share(shared);
	((ArtAggState *) node)->shared = shared;
}

/* ReInitializeDSMCustomScan */
static void
renew_shared(CustomScanState *node, ParallelContext *pcxt, void *shared)
{
	art_entries_share(shared);
}

/* InitializeWorkerCustomScan */
static void
attach_worker(CustomScanState *node, shm_toc *toc, void *shared)
{
	((ArtAggState *) node)->shared = shared;
}

/* ---- EXPLAIN ---- */

/* The columns of GROUP BY, as core prints them of an Agg. */
static void
explain_groups(const ArtAggState *a, const CustomScan *cscan, List *context, ExplainState *es)
{
	List	   *columns = NIL;

	for (int i = 0; i < a->naggs; i++)
	{
		const TargetEntry *tle = list_nth(cscan->custom_scan_tlist, i);

		if (a->aggs[i].kind == ART_AGG_GROUP)
			columns = lappend(columns, deparse_expression((Node *) tle->expr, context,
														  es->verbose, false));
	}
	if (columns != NIL)
		ExplainPropertyList("Group Key", columns, es);
}

/* ExplainCustomScan: the index, its conditions, and what was counted. */
static void
explain_aggregate(CustomScanState *node, List *ancestors, ExplainState *es)
{
	const ArtAggState *a = (const ArtAggState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &cscan->scan.plan, ancestors);
	const NodeInstrumentation *counted = es->analyze ? node->ss.ps.instrument : NULL;

	ExplainPropertyText("Index Name", get_rel_name(a->indexid), es);
	if (a->backward || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Scan Direction", a->backward ? "Backward" : "Forward", es);
	explain_groups(a, cscan, context, es);
	art_explain_quals("Index Cond", (Node *) cscan->custom_exprs, context, es->verbose,
					  -1, es);
	if (counted != NULL)
		ExplainPropertyFloat("Heap Fetches", NULL, counted->ntuples2, 0, es);
	if (counted != NULL && ART_SHOWS_SEARCHES)
		ExplainPropertyUInteger("Index Searches", NULL, a->searches.nsearches, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = ART_AGG_NAME,
	.BeginCustomScan = begin_aggregate,
	.ExecCustomScan = exec_aggregate,
	.EndCustomScan = end_aggregate,
	.ReScanCustomScan = rescan_aggregate,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = initialize_shared,
	.ReInitializeDSMCustomScan = renew_shared,
	.InitializeWorkerCustomScan = attach_worker,
	.ExplainCustomScan = explain_aggregate,
};

/* CreateCustomScanState: what the planner wrote down (index_aggregate.h). */
static Node *
create_aggregate(CustomScan *cscan)
{
	ArtAggState *a = palloc0(sizeof(ArtAggState));
	List	   *numbers = private_list(cscan, ART_AGG_NUMBERS);
	List	   *kinds = private_list(cscan, ART_AGG_KINDS);

	NodeSetTag(a, T_CustomScanState);
	a->css.methods = &exec_methods;
	a->indexid = linitial_oid(private_list(cscan, ART_AGG_OIDS));
	a->backward = list_nth_int(numbers, ART_AGG_BACKWARD);
	a->prefix = list_nth_int(numbers, ART_AGG_PREFIX);
	a->naggs = list_length(kinds);
	a->aggs = palloc0(Max(a->naggs, 1) * sizeof(ArtAgg));
	a->any_column = a->prefix > 0;
	for (int i = 0; i < a->naggs; i++)
	{
		a->aggs[i].kind = (ArtAggKind) list_nth_int(kinds, i);
		a->aggs[i].column = list_nth_int(private_list(cscan, ART_AGG_COLUMNS), i);
		a->any_column |= a->aggs[i].column >= 0;
	}
	a->vmbuf = InvalidBuffer;
	a->map_page = InvalidBlockNumber;
	return (Node *) a;
}

const CustomScanMethods art_agg_scan_methods = {
	.CustomName = ART_AGG_NAME,
	.CreateCustomScanState = create_aggregate,
};
