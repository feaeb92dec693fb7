/*
 * join_executor.c
 *	  Batched joins: a nested loop that looks many keys up at once.
 *
 *	a batch		some outer rows, kept, and their keys, encoded;
 *	a chunk		as many of their keys as one look-up answers (join_points.c):
 *				the entries are known, and the inner rows are fetched in the
 *				order of blocks, and kept;
 *	a row		goes through its entries, as a nested loop does.
 *
 * Of a row the columns are kept that somebody reads (join_rows.c).
 *
 * Where somebody may not want all rows batches begin with two and grow slowly, so
 * a LIMIT wastes little.  Of a row that needs one match only the first entry's
 * row is fetched with the chunk.  The others are fetched when the row comes to
 * them.  So are all for which there is no room in work_mem.
 *
 * The snapshot is MVCC.  So it does not matter what happens between the look-up
 * and the fetch: a row that takes a place that VACUUM recycled is not visible.
 * An index-only join needs not even the row where the visibility map says that
 * all of its page is visible to all.  It publishes the TID before it asks the
 * map (src/area/README.md, VACUUM and readers), and asks the heap if that is refused.
 *
 * A key may be no single one (a timestamptz against a date).  It is searched for
 * with an index scan of its own, as in a nested loop.  So are all keys when
 * there is no structure, and under SERIALIZABLE.
 *
 * src/plan/README.md: Batched joins
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "art_compat.h"
#include "commands/explain.h"
#include ART_EXPLAIN_HEADER
#include "executor/executor.h"
#include "executor/nodeIndexscan.h"
#include "miscadmin.h"
#include "optimizer/clauses.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/spccache.h"

#include "plan/batched_join.h"
#include "plan/custom_scans.h"
#include "scan/scan.h"

#define ART_BATCH_FIRST_ROWS 2	/* of the first batch */
#define ART_BATCH_FIRST_ALL 32	/* and when all rows are wanted */

/*
 * A look-up finds all entries of its keys.  Where one is wanted and a key has
 * many (ART_BATCH_DENSE), that costs more than it saves.  Then some rows are
 * searched for alone before we try again: so many, or up to so many if that
 * goes on.
 */
#define ART_BATCH_ALONE		16
#define ART_BATCH_ALONE_MAX 4096

/* A row's part in the batch: the number of its key, or one of these. */
#define ROW_NOTHING		(-1)	/* nothing can match */
#define ROW_SINGLE		(-2)	/* an index scan of its own */

/* How far we are with an entry's inner row. */
typedef enum ArtInnerState
{
	INNER_UNKNOWN,				/* not fetched */
	INNER_GONE,					/* invisible */
	INNER_KEPT,
	INNER_ALL_VISIBLE			/* index-only: its columns are the key's */
} ArtInnerState;

typedef struct ArtInner
{
	uint16		state;			/* ArtInnerState */
	uint16		row;			/* of those kept */
} ArtInner;

typedef struct ArtBatchState
{
	CustomScanState css;

	/* the plan */
	JoinType	jointype;
	bool		single_match;
	bool		index_only;
	uint32		pins;			/* of pages, counted by art_row_pin() */
	int			nouter;			/* columns of the outer side */
	Oid			indexid;
	Index		scanrelid;		/* the inner table's number */
	ExprState  *join_quals;
	ExprState  *filters;

	/* the index */
	Relation	heap;
	Relation	index;
	ScanKey		keys;
	int			nkeys;
	IndexRuntimeKeyInfo *runtime;
	int			nruntime;
	ExprContext *key_econtext;
	IndexScanDesc scan;			/* of the batches; NULL: not begun */
	IndexScanDesc single;		/* of single keys; NULL: not needed yet */

	/* slots */
	TupleTableSlot *outer_slot; /* a row of the batch */
	TupleTableSlot *inner_slot; /* an inner row's columns that are read */
	TupleTableSlot *fetch_slot; /* an inner row in its buffer */
	TupleTableSlot *null_slot;	/* of outer joins */
	AttrNumber *inner_number;	/* in inner_slot, of a scan tuple's column, or 0 */
	AttrNumber *inner_columns;	/* of the table, of inner_slot's */
	int			ninner;
	AttrNumber *from_index;		/* index-only: of the index, of inner_slot's */

	/* the batch */
	ArtRows		outer;
	bool		all_wanted;		/* the query's rows, as far as is known */
	uint64		taken;			/* outer rows, in all */
	uint64		given;			/* rows of the result */
	uint64		limit;			/* of those, probably; 0: not known */
	uint32		alone;			/* rows to be searched for alone, now */
	uint32		alone_last;		/* and before that, with what came since */
	uint32		nrows;
	bool		outer_done;
	int			point[ART_POINTS_MAX];

	/* the chunk: keys from first_point to end_point */
	ArtRows		kept;
	uint32		first_point;
	uint32		end_point;
	uint32		start[ART_POINTS_MAX + 1];	/* a key's first entry */
	const uint64 *tids;
	ArtInner	inner[ART_POINTS_TIDS];
	Buffer		vmbuf;

	/* the row */
	uint32		row;			/* in the batch; nrows: none */
	bool		in_row;
	bool		matched;
	bool		searching;		/* its entries come from single */
	uint32		entry,
				end_entry;

	/* for EXPLAIN */
	uint64		nbatches;
	uint64		nlookups;
	uint64		nsingles;
} ArtBatchState;

/* ---- expressions ---- */

/*
 * Columns of the scan tuple become those of the outer slot, or of the inner
 * one, which takes the scan tuple's place.  So the scan tuple is never formed.
 * Inner columns that are read get numbers here.
 */
static Node *
split_columns(Node *node, void *context)
{
	ArtBatchState *b = (ArtBatchState *) context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == INDEX_VAR)
	{
		Var		   *var = copyObject((Var *) node);

		if (var->varattno <= b->nouter)
			var->varno = OUTER_VAR;
		else
		{
			const CustomScan *cscan = (const CustomScan *) b->css.ss.ps.plan;
			const TargetEntry *tle = list_nth(cscan->custom_scan_tlist, var->varattno - 1);
			AttrNumber *number = &b->inner_number[var->varattno - 1];

			if (*number == 0)
			{
				b->inner_columns[b->ninner++] = castNode(Var, tle->expr)->varattno;
				*number = (AttrNumber) b->ninner;
			}
			var->varattno = *number;
		}
		return (Node *) var;
	}
	return expression_tree_mutator(node, split_columns, context);
}

/* A list of custom_private. */
static List *
private_list(const CustomScan *cscan, ArtBatchPrivate which)
{
	return (List *) list_nth(cscan->custom_private, which);
}

/* A list of custom_exprs. */
static Node *
expressions(const CustomScan *cscan, ArtBatchExprs which)
{
	return (Node *) list_nth(cscan->custom_exprs, which);
}

/* ---- begin and end ---- */

/*
 * The conditions of the index as core's scan keys.
 */
static void
make_keys(ArtBatchState *b, const CustomScan *cscan)
{
	List	   *quals = NIL;
	int			i = 0;
	int			narrays = 0;
	IndexArrayKeyInfo *arrays = NULL;
	ListCell   *lc;

	foreach(lc, (List *) expressions(cscan, ART_BATCH_ARGUMENTS))
	{
		Expr	   *right = (Expr *) split_columns(lfirst(lc), b);
		Var		   *column = makeVar(INDEX_VAR,
									 list_nth_int(private_list(cscan, ART_BATCH_COLUMNS), i),
									 list_nth_oid(private_list(cscan, ART_BATCH_TYPES), i),
									 -1, InvalidOid, 0);
		OpExpr	   *op = (OpExpr *)
			make_opclause(list_nth_oid(private_list(cscan, ART_BATCH_OPERATORS), i),
						  BOOLOID, false, (Expr *) column, right, InvalidOid,
						  list_nth_oid(private_list(cscan, ART_BATCH_COLLATIONS), i));

		set_opfuncid(op);
		quals = lappend(quals, op);
		i++;
	}
	ExecIndexBuildScanKeys(&b->css.ss.ps, b->index, quals, false, &b->keys, &b->nkeys,
						   &b->runtime, &b->nruntime, &arrays, &narrays);
}

/*
 * Index-only: where in the index the inner columns are.
 */
static void
map_columns(ArtBatchState *b)
{
	const Form_pg_index form = b->index->rd_index;

	b->from_index = palloc0((b->ninner + 1) * sizeof(AttrNumber));
	for (int i = 0; i < b->ninner; i++)
	{
		for (int k = 0; k < form->indnkeyatts; k++)
		{
			if (form->indkey.values[k] == b->inner_columns[i])
				b->from_index[i] = (AttrNumber) (k + 1);
		}
	}
}

/* A description of the inner columns that are read. */
static TupleDesc
describe_inner(const ArtBatchState *b)
{
	TupleDesc	desc = CreateTemplateTupleDesc(b->ninner);

	for (int i = 0; i < b->ninner; i++)
		TupleDescCopyEntry(desc, (AttrNumber) (i + 1), RelationGetDescr(b->heap),
						   b->inner_columns[i]);
	return desc;
}

/*
 * Note the subplans of the conditions, beside those of the target list, as they
 * were planned.  EXPLAIN shows their arguments, and knows only the scan tuple's
 * columns.  The states that run have the same plans.  Returns all of the node.
 */
static List *
planned_subplans(PlanState *ps, const CustomScan *cscan)
{
	if (contain_subplans((Node *) cscan->custom_exprs))
	{
		(void) ExecInitExprList((List *) expressions(cscan, ART_BATCH_ARGUMENTS), ps);
		(void) ExecInitExprList((List *) expressions(cscan, ART_BATCH_JOIN_QUALS), ps);
		(void) ExecInitExprList((List *) expressions(cscan, ART_BATCH_FILTERS), ps);
	}
	return ps->subPlan;
}

/*
 * Compile what is evaluated on a pair of rows.
 */
static void
compile_quals(ArtBatchState *b, const CustomScan *cscan)
{
	PlanState  *ps = &b->css.ss.ps;

	/* slots of kept rows; that of the inner ones is the scan slot, as core set it */
	ps->outerops = &TTSOpsVirtual;
	ps->outeropsset = true;
	ps->outeropsfixed = true;

	b->join_quals = ExecInitQual((List *) split_columns(expressions(cscan, ART_BATCH_JOIN_QUALS), b), ps);
	b->filters = ExecInitQual((List *) split_columns(expressions(cscan, ART_BATCH_FILTERS), b), ps);
	ps->ps_ProjInfo = ExecBuildProjectionInfo((List *) split_columns((Node *) ps->plan->targetlist, b),
											  ps->ps_ExprContext, ps->ps_ResultTupleSlot,
											  ps, NULL);
	ps->resultops = &TTSOpsVirtual;
	ps->resultopsset = true;
	ps->resultopsfixed = true;
}

/*
 * BeginCustomScan: all but the index scans, which begin with the first batch.
 *
 * Locks: takes on the index the lock that the statement has on its table.
 */
static void
begin_batched(CustomScanState *node, EState *estate, int eflags)
{
	ArtBatchState *b = (ArtBatchState *) node;
	const CustomScan *cscan = (const CustomScan *) node->ss.ps.plan;
	PlanState  *ps = &node->ss.ps;
	PlanState  *outer;
	List	   *subplans;
	TupleDesc	outer_desc;
	TupleDesc	inner_desc;

	outer = ExecInitNode(outerPlan(cscan), estate, eflags);
	outerPlanState(ps) = outer;
	subplans = planned_subplans(ps, cscan);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	b->heap = art_range_table_relation(estate, b->scanrelid);
	b->index = index_open(b->indexid, exec_rt_fetch(b->scanrelid, estate)->rellockmode);

	outer_desc = ExecGetResultType(outer);
	Assert(outer_desc->natts == b->nouter);
	b->inner_number = palloc0(list_length(cscan->custom_scan_tlist) * sizeof(AttrNumber));
	b->inner_columns = palloc0(list_length(cscan->custom_scan_tlist) * sizeof(AttrNumber));

	/* keys are evaluated on rows that the outer side gives, and on kept ones */
	ps->outeropsset = true;
	b->key_econtext = CreateExprContext(estate);
	make_keys(b, cscan);
	compile_quals(b, cscan);
	ps->subPlan = subplans;

	inner_desc = describe_inner(b);
	b->outer_slot = ExecInitNullTupleSlot(estate, outer_desc, &TTSOpsVirtual);
	b->inner_slot = ExecInitNullTupleSlot(estate, inner_desc, &TTSOpsVirtual);
	b->null_slot = ExecInitNullTupleSlot(estate, inner_desc, &TTSOpsVirtual);
	b->fetch_slot = ExecInitExtraTupleSlot(estate, RelationGetDescr(b->heap),
										   table_slot_callbacks(b->heap));
	if (b->index_only)
		map_columns(b);
	art_rows_init(&b->outer, outer_desc, NULL, ART_POINTS_MAX);
	art_rows_init(&b->kept, inner_desc, b->inner_columns, ART_POINTS_TIDS);
}

/* EndCustomScan: closes what was opened. */
static void
end_batched(CustomScanState *node)
{
	ArtBatchState *b = (ArtBatchState *) node;

	if (b->vmbuf != InvalidBuffer)
		ReleaseBuffer(b->vmbuf);
	if (b->scan != NULL)
		index_endscan(b->scan);
	if (b->single != NULL)
		index_endscan(b->single);
	if (b->index != NULL)
		index_close(b->index, NoLock);
	ExecEndNode(outerPlanState(node));
}

/* ReScanCustomScan: the batches are small again. */
static void
rescan_batched(CustomScanState *node)
{
	ArtBatchState *b = (ArtBatchState *) node;

	b->nrows = b->row = 0;
	b->first_point = b->end_point = 0;
	b->in_row = b->searching = b->outer_done = false;
	b->taken = b->given = 0;
	b->alone = b->alone_last = 0;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* ---- batches ---- */

/* The scan keys of an outer row. */
static void
evaluate_keys(ArtBatchState *b, TupleTableSlot *slot)
{
	ResetExprContext(b->key_econtext);
	b->key_econtext->ecxt_outertuple = slot;
	ExecIndexEvalRuntimeKeys(b->key_econtext, b->runtime, b->nruntime);
}

/*
 * How many rows to take.  Nobody may want the rest of a batch (LIMIT, EXISTS).
 * So it is a fourth of the rows before.  It is no more than the query's LIMIT
 * wants, either, if rows to come give as many results as those before.  Batches
 * of a query whose rows are all wanted double.
 */
static uint32
batch_size(const ArtBatchState *b)
{
	uint64		size = b->all_wanted ? Max(b->taken, ART_BATCH_FIRST_ALL) :
		ART_BATCH_FIRST_ROWS + b->taken / 4;

	size = Min(size, ART_POINTS_MAX);
	if (b->limit > b->given)
		size = Min(size, (b->limit - b->given) * (b->taken + 1) / (b->given + 1));
	return (uint32) Max(size, 1);
}

/*
 * Take outer rows, and encode their keys.  Returns false when there are none.
 */
static bool
next_batch(ArtBatchState *b)
{
	PlanState  *outer = outerPlanState(b);
	uint32		size = batch_size(b);
	uint32		npoints = 0;
	bool		points;

	if (b->scan == NULL)
	{
		b->scan = art_index_beginscan(b->heap, b->index, b->css.ss.ps.state->es_snapshot, b->nkeys,
									  art_scan_flags(b->css.ss.ps.state, b->scanrelid));
		art_rows_reset(&b->kept);
	}
	art_points_begin(b->scan);
	points = b->alone == 0 && art_points_possible(b->scan);
	art_rows_reset(&b->outer);
	b->nrows = b->row = 0;
	b->first_point = b->end_point = 0;

	while (!b->outer_done && b->nrows < size && !b->outer.full)
	{
		TupleTableSlot *slot = ExecProcNode(outer);
		ArtPoint	kind = ART_POINT_SINGLE;

		if (TupIsNull(slot))
		{
			b->outer_done = true;
			break;
		}
		if (points)
		{
			evaluate_keys(b, slot);
			kind = art_points_add(b->scan, b->keys, b->nkeys);
		}
		(void) art_rows_keep(&b->outer, slot, true);
		b->point[b->nrows] = kind == ART_POINT_ADDED ? (int) npoints++ :
			kind == ART_POINT_NOTHING ? ROW_NOTHING : ROW_SINGLE;
		b->nrows++;
	}
	b->taken += b->nrows;
	if (b->nrows == 0)
		return false;
	b->nbatches++;
	return true;
}

/* ---- inner rows ---- */

/*
 * Fetch an entry's row, of those that the snapshot sees, into fetch_slot.
 */
static bool
fetch_inner(ArtBatchState *b, uint32 entry)
{
	IndexScanDesc scan = b->scan;

	art_tid_unpack(b->tids[entry], &scan->xs_heaptid);
	scan->xs_heap_continue = false;
	InstrCountTuples2(b, 1);
	if (index_fetch_heap(scan, b->fetch_slot))
		return true;
	if (scan->kill_prior_tuple)
		art_points_dead(scan, entry);
	return false;
}

/*
 * Is the row of an entry visible to all, as far as the visibility map knows?
 */
static bool
all_visible(ArtBatchState *b, uint32 entry)
{
	return art_points_publish(b->scan, entry) &&
		VM_ALL_VISIBLE(b->heap, (BlockNumber) (b->tids[entry] >> 16), &b->vmbuf);
}

#define ST_SORT sort_entries
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* An entry's TID, and behind it its number. */
#define ENTRY_BITS		10
StaticAssertDecl(ART_POINTS_TIDS <= 1 << ENTRY_BITS && ENTRY_BITS + 48 <= 64,
				 "an entry and its TID fit into a word");

/* A sorted entry's block and line. */
static inline BlockNumber
sorted_block(uint64 s)
{
	return (BlockNumber) (s >> (ENTRY_BITS + 16));
}

static inline OffsetNumber
sorted_line(uint64 s)
{
	return (OffsetNumber) (s >> ENTRY_BITS);
}

/* Rows that are asked for before they are needed. */
typedef struct ArtAhead
{
	uint32		pages;			/* whose pages have been asked for */
	uint32		lines;			/* whose tuples have been */
	int			reads;			/* begun, and not yet used */
	int			most;			/* of those */
	Buffer		buffer[ART_POINTS_TIDS];	/* 0: not in memory, or not known */
	bool		reading[ART_POINTS_TIDS];
} ArtAhead;

/*
 * Ask for the page of an entry: for reading it from disk, or for its lines in
 * memory.
 */
static void
ask_for_page(ArtBatchState *b, ArtAhead *ahead, const uint64 *sorted)
{
	uint32		i = ahead->pages++;
	BlockNumber block = sorted_block(sorted[i]);

	ahead->reading[i] = false;
	if (i > 0 && block == sorted_block(sorted[i - 1]))
		ahead->buffer[i] = ahead->buffer[i - 1];
	else if (art_row_ask_page(b->heap, block, &ahead->buffer[i]))
	{
		ahead->reading[i] = true;
		ahead->reads++;
	}
	art_row_ask_line(ahead->buffer[i], sorted_line(sorted[i]));
}

/*
 * Fetch the rows of the entries, which are sorted by their TIDs.  Several
 * entries of one TID are one row.
 */
static void
fetch_sorted(ArtBatchState *b, const uint64 *sorted, uint32 n)
{
	ArtInner   *before = NULL;
	ArtAhead	ahead;

	ahead.pages = ahead.lines = 0;
	ahead.reads = 0;
	ahead.most = get_tablespace_io_concurrency(b->heap->rd_rel->reltablespace);
	for (uint32 i = 0; i < n; i++)
	{
		uint32		entry = (uint32) (sorted[i] & ((1 << ENTRY_BITS) - 1));
		ArtInner   *inner = &b->inner[entry];

		if (ahead.most > 0)
		{
			while (ahead.pages < n && ahead.pages < i + 12 && ahead.reads < ahead.most)
				ask_for_page(b, &ahead, sorted);
			for (; ahead.lines < ahead.pages && ahead.lines < i + 6; ahead.lines++)
				art_row_ask_tuple(ahead.buffer[ahead.lines], sorted_line(sorted[ahead.lines]));
			if (ahead.pages <= i)
			{
				ahead.buffer[i] = InvalidBuffer;
				ahead.pages = ahead.lines = i + 1;
			}
			else if (ahead.reading[i])
				ahead.reads--;
		}
		if (before != NULL && sorted[i] >> ENTRY_BITS == sorted[i - 1] >> ENTRY_BITS)
		{
			*inner = *before;
			continue;
		}
		if (ahead.most > 0)
			art_row_pin(b->scan, sorted_block(sorted[i]), ahead.buffer[i], &b->pins);
		if (!fetch_inner(b, entry))
			inner->state = INNER_GONE;
		else if (art_rows_keep(&b->kept, b->fetch_slot, false))
		{
			inner->state = INNER_KEPT;
			inner->row = (uint16) (b->kept.nrows - 1);
		}
		before = inner;
	}
	ExecClearTuple(b->fetch_slot);
}

/*
 * Of the keys that were looked up one entry each is wanted.  Shall the next rows
 * be searched for alone?
 */
static void
judge_chunk(ArtBatchState *b, uint32 done, const uint32 *counts)
{
	uint32		entries = 0;

	for (uint32 i = 0; i < done; i++)
		entries += counts[i];
	if (done > 0 && entries <= done * ART_BATCH_DENSE)
	{
		b->alone_last /= 2;
		return;
	}
	b->alone_last = Max(b->alone_last * 4, ART_BATCH_ALONE);
	b->alone_last = Min(b->alone_last, ART_BATCH_ALONE_MAX);
	b->alone = b->alone_last;
}

/*
 * Look up the keys from this one on, and fetch the rows.  Returns false when
 * the key needs an index scan of its own.
 */
static bool
next_chunk(ArtBatchState *b, uint32 from)
{
	uint32		counts[ART_POINTS_MAX];
	uint64		sorted[ART_POINTS_TIDS];
	uint32		done;
	uint32		n = 0;
	uint32		entries = 0;
	bool		first_only = b->single_match || b->jointype == JOIN_ANTI;

	b->first_point = b->end_point = from;
	done = art_points_search(b->scan, from, &b->tids, counts);
	if (first_only)
		judge_chunk(b, done, counts);
	if (done == 0)
		return false;
	b->end_point = from + done;
	b->nlookups += done;
	for (uint32 i = 0; i < done; i++)
	{
		b->start[i] = entries;
		for (uint32 j = 0; j < counts[i]; j++)
		{
			b->inner[entries].state = INNER_UNKNOWN;
			if (j > 0 && first_only)
				;
			else if (b->index_only && all_visible(b, entries))
				b->inner[entries].state = INNER_ALL_VISIBLE;
			else
				sorted[n++] = (b->tids[entries] << ENTRY_BITS) | entries;
			entries++;
		}
	}
	b->start[done] = entries;
	if (b->index_only)
		art_points_unpublish(b->scan);

	if (n == 0)
		return true;
	art_rows_reset(&b->kept);
	sort_entries(sorted, n);
	fetch_sorted(b, sorted, n);
	return true;
}

/* The inner row with these columns of the index. */
static TupleTableSlot *
show_key(ArtBatchState *b, const Datum *values, const bool *isnull)
{
	TupleTableSlot *slot = b->inner_slot;

	art_rows_show(&b->kept, b->kept.most, slot);
	for (int i = 0; i < b->ninner; i++)
	{
		slot->tts_values[i] = values[b->from_index[i] - 1];
		slot->tts_isnull[i] = isnull[b->from_index[i] - 1];
	}
	return slot;
}

/* The inner row that has been fetched. */
static TupleTableSlot *
show_fetched(ArtBatchState *b)
{
	TupleTableSlot *slot = b->inner_slot;

	art_rows_show(&b->kept, b->kept.most, slot);
	art_rows_columns(&b->kept, b->fetch_slot, slot->tts_values, slot->tts_isnull);
	return slot;
}

/* The inner row whose columns are those of a key. */
static TupleTableSlot *
row_of_key(ArtBatchState *b, uint32 point)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext old;

	if (b->ninner == 0)
		return b->inner_slot;
	old = MemoryContextSwitchTo(b->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
	art_points_values(b->scan, point, values, isnull);
	MemoryContextSwitchTo(old);
	return show_key(b, values, isnull);
}

/*
 * The next inner row of an index scan of its own, or NULL.  It does what core's
 * index scans and index-only scans do.
 */
static TupleTableSlot *
next_found(ArtBatchState *b)
{
	IndexScanDesc scan = b->single;
	ItemPointer tid;

	if (!b->index_only)
		return index_getnext_slot(scan, ForwardScanDirection, b->fetch_slot) ?
			show_fetched(b) : NULL;

	while ((tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		BlockNumber block = ItemPointerGetBlockNumber(tid);

		CHECK_FOR_INTERRUPTS();
		if (VM_ALL_VISIBLE(b->heap, block, &b->vmbuf))
		{
			Datum		values[INDEX_MAX_KEYS];
			bool		isnull[INDEX_MAX_KEYS];

			PredicateLockPage(b->heap, block, scan->xs_snapshot);
			if (scan->xs_hitup != NULL)
				heap_deform_tuple(scan->xs_hitup, scan->xs_hitupdesc, values, isnull);
			else
				index_deform_tuple(scan->xs_itup, scan->xs_itupdesc, values, isnull);
			return show_key(b, values, isnull);
		}
		InstrCountTuples2(b, 1);
		if (index_fetch_heap(scan, b->fetch_slot))
			return show_fetched(b);
	}
	return NULL;
}

/* ---- rows ---- */

/*
 * The next outer row, with its entries.  Returns false at the end.
 */
static bool
next_row(ArtBatchState *b)
{
	int			point;

	if (b->row + 1 < b->nrows)
		b->row++;
	else if (!next_batch(b))
		return false;
	b->matched = false;
	b->searching = false;
	b->entry = b->end_entry = 0;
	art_rows_show(&b->outer, b->row, b->outer_slot);

	point = b->point[b->row];
	if (point >= 0 && (uint32) point >= b->end_point &&
		(b->alone > 0 || !next_chunk(b, (uint32) point)))
		point = ROW_SINGLE;
	if (point >= 0)
	{
		b->entry = b->start[point - b->first_point];
		b->end_entry = b->start[point - b->first_point + 1];
	}
	else if (point == ROW_SINGLE)
	{
		if (b->single == NULL)
		{
			b->single = art_index_beginscan(b->heap, b->index, b->css.ss.ps.state->es_snapshot, b->nkeys,
											art_scan_flags(b->css.ss.ps.state, b->scanrelid));
			b->single->xs_want_itup = b->index_only;
		}
		b->alone -= b->alone > 0;
		evaluate_keys(b, b->outer_slot);
		index_rescan(b->single, b->keys, b->nkeys, NULL, 0);
		b->searching = true;
		b->nsingles++;
	}
	return true;
}

/* The next inner row of the outer one, or NULL. */
static TupleTableSlot *
next_inner(ArtBatchState *b)
{
	if (b->searching)
	{
		TupleTableSlot *found = next_found(b);

		b->searching = found != NULL;
		return found;
	}
	while (b->entry < b->end_entry)
	{
		uint32		entry = b->entry++;
		ArtInner   *inner = &b->inner[entry];

		switch ((ArtInnerState) inner->state)
		{
			case INNER_KEPT:
				art_rows_show(&b->kept, inner->row, b->inner_slot);
				return b->inner_slot;
			case INNER_ALL_VISIBLE:
				return row_of_key(b, (uint32) b->point[b->row]);
			case INNER_UNKNOWN:
				if (b->index_only)
				{
					bool		known = all_visible(b, entry);

					art_points_unpublish(b->scan);
					if (known)
						return row_of_key(b, (uint32) b->point[b->row]);
				}
				if (fetch_inner(b, entry))
					return show_fetched(b);
				break;
			case INNER_GONE:
				break;
		}
	}
	return NULL;
}

/* ExecCustomScan: the nested loop's own steps. */
static TupleTableSlot *
exec_batched(CustomScanState *node)
{
	ArtBatchState *b = (ArtBatchState *) node;
	PlanState  *ps = &node->ss.ps;
	ExprContext *econtext = ps->ps_ExprContext;

	for (;;)
	{
		TupleTableSlot *inner;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		if (!b->in_row)
		{
			if (!next_row(b))
				return NULL;
			b->in_row = true;
			econtext->ecxt_outertuple = b->outer_slot;
		}

		inner = next_inner(b);
		if (inner == NULL)
		{
			b->in_row = false;
			if (b->matched || (b->jointype != JOIN_LEFT && b->jointype != JOIN_ANTI))
				continue;
			inner = b->null_slot;
		}
		econtext->ecxt_scantuple = inner;
		if (inner != b->null_slot)
		{
			if (!ExecQual(b->join_quals, econtext))
			{
				InstrCountFiltered1(node, 1);
				continue;
			}
			b->matched = true;
			if (b->single_match || b->jointype == JOIN_ANTI)
				b->in_row = false;
			if (b->jointype == JOIN_ANTI)
				continue;
		}
		if (ExecQual(b->filters, econtext))
		{
			b->given++;
			return ExecProject(ps->ps_ProjInfo);
		}
		InstrCountFiltered2(node, 1);
	}
}

/* ---- EXPLAIN ---- */

/* The word for the kind of join. */
static const char *
jointype_name(JoinType jointype)
{
	switch (jointype)
	{
		case JOIN_LEFT:
			return "Left";
		case JOIN_SEMI:
			return "Semi";
		case JOIN_ANTI:
			return "Anti";
		default:
			return "Inner";
	}
}

/* ExplainCustomScan: the join, its conditions, and what was counted. */
static void
explain_batched(CustomScanState *node, List *ancestors, ExplainState *es)
{
	const ArtBatchState *b = (const ArtBatchState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &cscan->scan.plan, ancestors);
	const RangeTblEntry *rte = rt_fetch(b->scanrelid, es->rtable);
	const char *index = get_rel_name(b->indexid);
	const char *table = get_rel_name(rte->relid);
	const char *alias = list_nth(es->rtable_names, b->scanrelid - 1);
	const NodeInstrumentation *counted = es->analyze ? node->ss.ps.instrument : NULL;
	double		loops = counted != NULL ? Max(counted->nloops, 1) : 1;

	ExplainPropertyText("Join Type", jointype_name(b->jointype), es);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText(b->index_only ? "Inner Index Only" : "Inner",
							psprintf("%s on %s%s%s", quote_identifier(index),
									 quote_identifier(table),
									 strcmp(alias, table) == 0 ? "" : " ",
									 strcmp(alias, table) == 0 ? "" : quote_identifier(alias)),
							es);
	else
	{
		ExplainPropertyText("Index Name", index, es);
		ExplainPropertyText("Relation Name", table, es);
		ExplainPropertyText("Alias", alias, es);
		ExplainPropertyBool("Index Only", b->index_only, es);
	}
	art_explain_quals("Index Cond", expressions(cscan, ART_BATCH_INDEX_QUALS), context, true, -1, es);
	art_explain_quals("Join Filter", expressions(cscan, ART_BATCH_JOIN_QUALS), context, true,
				  counted != NULL ? counted->nfiltered1 / loops : -1, es);
	art_explain_quals("Filter", expressions(cscan, ART_BATCH_FILTERS), context, true,
				  counted != NULL ? counted->nfiltered2 / loops : -1, es);
	if (counted == NULL)
		return;
	ExplainPropertyUInteger("Batches", NULL, b->nbatches, es);
	ExplainPropertyUInteger("Look-ups", NULL, b->nlookups, es);
	if (b->nsingles > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyUInteger("Single Searches", NULL, b->nsingles, es);
	if (b->index_only)
		ExplainPropertyFloat("Heap Fetches", NULL, counted->ntuples2, 0, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = ART_BATCH_NAME,
	.BeginCustomScan = begin_batched,
	.ExecCustomScan = exec_batched,
	.EndCustomScan = end_batched,
	.ReScanCustomScan = rescan_batched,
	.ExplainCustomScan = explain_batched,
};

/* CreateCustomScanState: what the planner wrote down (batched_join.h). */
static Node *
create_batched(CustomScan *cscan)
{
	ArtBatchState *b = palloc0(sizeof(ArtBatchState));
	List	   *numbers = private_list(cscan, ART_BATCH_NUMBERS);
	const TargetEntry *last = llast_node(TargetEntry, cscan->custom_scan_tlist);

	NodeSetTag(b, T_CustomScanState);
	b->css.methods = &exec_methods;
	b->jointype = list_nth_int(numbers, ART_BATCH_JOINTYPE);
	b->single_match = list_nth_int(numbers, ART_BATCH_SINGLE_MATCH);
	b->index_only = list_nth_int(numbers, ART_BATCH_INDEX_ONLY);
	b->nouter = list_nth_int(numbers, ART_BATCH_OUTER_COLUMNS);
	b->limit = list_nth_int(numbers, ART_BATCH_LIMIT);
	b->all_wanted = list_nth_int(numbers, ART_BATCH_ALL);
	b->indexid = linitial_oid(private_list(cscan, ART_BATCH_OIDS));
	b->scanrelid = castNode(Var, last->expr)->varno;
	b->vmbuf = InvalidBuffer;
	return (Node *) b;
}

const CustomScanMethods art_batch_scan_methods = {
	.CustomName = ART_BATCH_NAME,
	.CreateCustomScanState = create_batched,
};
