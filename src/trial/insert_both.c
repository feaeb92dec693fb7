/*
 * insert_both.c
 *	  Inserts of copies of the table's rows into both kinds of index, on a copy of the table.
 *
 * The copy and its two indexes are made in a transaction that is rolled back.  So nobody sees
 * them, and no crash leaves them in a catalog.  Most of the sample's rows are in the copy
 * first.  The last ones go in a piece at a time: the rows, then their entries of one index, then
 * those of the other one.  The time and the WAL of each of the three is counted by itself.
 *
 * src/trial/README.md: Inserting
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "executor/instrument.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "area/area.h"
#include "art_compat.h"
#include "build/build.h"
#include "ddl/ddl.h"
#include "eval/eval.h"
#include "trial/trial.h"

#define COPY_ROWS		20000
#define COPY_BLOCKS		10000
#define COPY_BYTES		(8 * 1024 * 1024)
#define FIRST_PART		0.7		/* of the rows, there before */
#define PIECE			512		/* rows */
#define WARM_PART		2		/* half of a piece's entries is not measured: others have used the processor's caches */
#define LEAST_PIECES	8		/* however long they take */
#define LEAST_ENTRIES	100		/* else there is no figure */

enum
{
	BTREE,
	ART,
	ROWS,
	PARTS
};

typedef struct Copying
{
	ArtTrial   *t;
	MinimalTuple *rows;
	int			n;
	Size		bytes;
	Relation	heap;
	Relation	indexes[2];
	IndexInfo  *infos[2];
	ArtEval    *eval;
	TupleTableSlot *slot;
	MemoryContext piece_cxt;
	double		ns[PARTS];
	double		wal[PARTS];
	int64		entries;
	int64		inserted;		/* rows */
	int			pieces;
} Copying;

/*
 * A row of the sample's blocks.  They are kept in their order, until they are too many.
 */
static void
keep_row(TupleTableSlot *slot, void *arg)
{
	Copying    *c = (Copying *) arg;

	if (c->n == COPY_ROWS || c->bytes > COPY_BYTES)
		return;
	c->rows[c->n] = ExecCopySlotMinimalTuple(slot);
	c->bytes += c->rows[c->n++]->t_len;
}

/*
 * The number of the table's blocks that have the rows of a copy.
 */
static BlockNumber
blocks_of_copy(Relation heap)
{
	double		each = heap->rd_rel->reltuples > 0 && heap->rd_rel->relpages > 0 ?
		heap->rd_rel->reltuples / heap->rd_rel->relpages : 50;

	return (BlockNumber) Min(COPY_BLOCKS, COPY_ROWS / Max(each, 1.0) + 1);
}

/*
 * Put a row into the copy.
 */
static void
insert_row(Copying *c, int i, ItemPointer tid)
{
	ExecStoreMinimalTuple(c->rows[i], c->slot, false);
	table_tuple_insert(c->heap, c->slot, GetCurrentCommandId(true), 0, NULL);
	*tid = c->slot->tts_tid;
}

/*
 * An index on the copy, as the original is or its twin would be.
 *
 * Locks: AccessExclusiveLock on the index, to the end of the transaction.
 */
static void
make_index(Copying *c, Relation heap, Relation index, int which)
{
	IndexStmt  *stmt = art_remaking_statement(heap, index, which == ART ? c->t->amoid : BTREE_AM_OID);
	ObjectAddress new;

	if (stmt == NULL)
		art_refuse_changed(c->t->name);
	new = art_define_index(RelationGetRelid(c->heap), stmt, false);
	CommandCounterIncrement();
	c->indexes[which] = index_open(new.objectId, NoLock);
	c->infos[which] = makeNode(IndexInfo);
	c->infos[which]->ii_Context = CurrentMemoryContext;
	c->infos[which]->ii_Unique = c->indexes[which]->rd_index->indisunique;
}

/*
 * The copy, its first rows, and its indexes.
 *
 * Locks: AccessExclusiveLock on the copy, to the end of the transaction.
 */
static void
make_copy(Copying *c, Relation heap, Relation index)
{
	Oid			copyoid = make_new_heap(RelationGetRelid(heap), heap->rd_rel->reltablespace, heap->rd_rel->relam,
										heap->rd_rel->relpersistence, AccessShareLock);

	CommandCounterIncrement();
	c->heap = table_open(copyoid, NoLock);
	c->slot = MakeSingleTupleTableSlot(RelationGetDescr(c->heap), &TTSOpsMinimalTuple);
	for (int i = 0; i < (int) (c->n * FIRST_PART); i++)
	{
		ItemPointerData tid;

		insert_row(c, i, &tid);
		CHECK_FOR_INTERRUPTS();
	}
	CommandCounterIncrement();
	make_index(c, heap, index, BTREE);
	make_index(c, heap, index, ART);
	c->eval = art_eval_begin(c->indexes[BTREE]);
}

/* ---- a piece ---- */

typedef struct Entry
{
	ItemPointerData tid;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
} Entry;

/* The beginning of one part of a piece. */
typedef struct Part
{
	double		began;
	uint64		wal;
} Part;

static void
clock_begin(Part *p)
{
	p->wal = pgWalUsage.wal_bytes;
	p->began = art_trial_measure(true);
}

static void
clock_end(Copying *c, Part *p, int which)
{
	c->ns[which] += art_trial_measure(false) - p->began;
	c->wal[which] += pgWalUsage.wal_bytes - p->wal;
}

/*
 * The entry of the row that is in the slot; its values are in the current memory context.
 */
static void
form_entry(Copying *c, Entry *e)
{
	TupleDesc	desc = RelationGetDescr(c->indexes[BTREE]);
	MemoryContext old = MemoryContextSwitchTo(art_eval_memory(c->eval));

	art_eval_columns(c->eval, c->slot, e->values, e->isnull);
	MemoryContextSwitchTo(old);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		/* cstring is how an index keeps a name, whose datum is a name's */
		if (e->isnull[i] || att->attbyval)
			continue;
		e->values[i] = datumCopy(e->values[i], false, att->attlen == -2 ? NAMEDATALEN : att->attlen);
	}
}

/*
 * Entries go into one index, as many rows of one INSERT do.
 */
static void
insert_some(Copying *c, int which, Entry *entries, int n)
{
	Relation	index = c->indexes[which];

	for (int i = 0; i < n; i++)
		(void) index_insert(index, entries[i].values, entries[i].isnull, &entries[i].tid, c->heap,
							index->rd_index->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false,
							c->infos[which]);
	art_queue_flush(NoLock);
}

/*
 * The entries of a piece go into one index; the first "warm" ones are not measured.
 */
static void
insert_entries(Copying *c, int which, Entry *entries, int n, int warm)
{
	bool		was = art_queue_for(!c->indexes[which]->rd_index->indisunique);
	Part		part;

	PG_TRY();
	{
		(void) art_trial_measure(true);
		insert_some(c, which, entries, warm);
		clock_begin(&part);
		insert_some(c, which, entries + warm, n - warm);
		clock_end(c, &part, which);
	}
	PG_FINALLY();
	{
		art_queue_for(was);
	}
	PG_END_TRY();
}

/*
 * A piece of rows, from the i-th on.  Returns how many rows it had.
 */
static int
insert_piece(Copying *c, int first)
{
	Entry	   *entries = palloc(PIECE * sizeof(Entry));
	int			rows = Min(PIECE, c->n - first);
	int			n = 0;
	Part		part;

	clock_begin(&part);
	for (int i = 0; i < rows; i++)
		insert_row(c, first + i, &entries[i].tid);
	clock_end(c, &part, ROWS);
	c->inserted += rows;
	for (int i = 0; i < rows; i++)
	{
		ExecStoreMinimalTuple(c->rows[first + i], c->slot, false);
		art_eval_next(c->eval);
		if (!art_eval_has(c->eval, c->slot))
			continue;
		entries[n].tid = entries[i].tid;
		form_entry(c, &entries[n++]);
	}
	insert_entries(c, c->pieces % 2, entries, n, n / WARM_PART);
	insert_entries(c, 1 - c->pieces % 2, entries, n, n / WARM_PART);
	c->pieces++;
	c->entries += n - n / WARM_PART;
	return rows;
}

/* ---- all of it ---- */

/*
 * The measures go into the result.
 */
static void
report(ArtTrial *t, const Copying *c)
{
	const char *into = psprintf("an entry, into a copy of %d rows", c->n);

	if (c->entries < LEAST_ENTRIES)
	{
		art_trial_row(t, "insert", "us", NAN, NAN, 0, "not tried: there are too few rows");
		return;
	}
	art_trial_row(t, "insert", "us", c->ns[BTREE] / c->entries / 1000, c->ns[ART] / c->entries / 1000,
				  c->entries, into);
	if (XLogIsNeeded())
		art_trial_row(t, "WAL", "bytes", c->wal[BTREE] / c->entries, c->wal[ART] / c->entries, c->entries,
					  c->heap->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT ? "the table is unlogged" :
					  "an entry, without the images of pages after a checkpoint");
	else
		art_trial_row(t, "WAL", "bytes", NAN, NAN, 0, "not tried: with wal_level = minimal a new table writes none");
	art_trial_row(t, "row", "us", c->ns[ROWS] / c->inserted / 1000, c->ns[ROWS] / c->inserted / 1000,
				  c->inserted, "the row itself, without its indexes");
}

void
art_trial_insert(ArtTrial *t, double ms)
{
	TimestampTz end;
	Relation	heap;
	Relation	index;
	Copying		c = {.t = t};
	ArtAsOwner	save;
	int			rows;

	art_trial_try(t, &heap, &index);
	c.rows = palloc(COPY_ROWS * sizeof(MinimalTuple));
	(void) art_sample_blocks(heap, RelationGetNumberOfBlocks(heap), blocks_of_copy(heap),
							 (uint32) t->started, keep_row, &c);
	make_copy(&c, heap, index);
	c.piece_cxt = AllocSetContextCreate(CurrentMemoryContext, "artidx trial piece", ALLOCSET_DEFAULT_SIZES);
	art_as_owner_begin(heap, &save);
	end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), (int64) ms);
	for (int i = (int) (c.n * FIRST_PART); i < c.n; i += rows)
	{
		MemoryContext old = MemoryContextSwitchTo(c.piece_cxt);

		rows = insert_piece(&c, i);
		MemoryContextSwitchTo(old);
		MemoryContextReset(c.piece_cxt);
		CHECK_FOR_INTERRUPTS();
		if (c.pieces >= LEAST_PIECES && GetCurrentTimestamp() >= end)
			break;
	}
	art_as_owner_end(&save);
	report(t, &c);
	art_eval_end(c.eval);
	ExecDropSingleTupleTableSlot(c.slot);
	for (int i = 0; i < 2; i++)
		index_close(c.indexes[i], NoLock);
	table_close(c.heap, NoLock);
	art_trial_undo(t, heap, index);
}
