/*
 * btree_size.c
 *	  artidx.plan_costs, and how large a btree index with the same entries would
 *	  be.
 *
 * An art index costs a query less than nbtree's does, and the planner is told
 * so.  Hence it picks one in close cases, where it would have picked something
 * else with nbtree.  With artidx.plan_costs = btree it is told instead what
 * nbtree would have cost, and plans as it would have.  That is also the
 * default while artidx.replace_btree is set.  A user who has art put in the
 * place of btree indexes wants them to be what they were, plans included.
 *
 * nbtree's costs come from the number of its pages.  Those are counted here as
 * CREATE INDEX would fill them: leaves to the fillfactor, equal keys in posting
 * lists.  The widths of keys and the number of distinct ones are ANALYZE's.
 *
 * src/plan/README.md: The planner
 */
#include "postgres.h"

#include <math.h>

#include "access/itup.h"
#include "access/nbtree.h"
#include "access/tupmacs.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "optimizer/cost.h"
#include "storage/bufpage.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "eval/eval.h"
#include "plan/plan.h"

typedef enum ArtPlanCosts
{
	PLAN_COSTS_AUTO,
	PLAN_COSTS_MEMORY,
	PLAN_COSTS_BTREE
} ArtPlanCosts;

static const struct config_enum_entry plan_costs_values[] = {
	{"auto", PLAN_COSTS_AUTO, false},
	{"memory", PLAN_COSTS_MEMORY, false},
	{"btree", PLAN_COSTS_BTREE, false},
	{NULL, 0, false}
};

/* Bytes of an ordinary identifier, which is what a column of type name holds. */
#define ART_NAME_WIDTH	12

static int	plan_costs = PLAN_COSTS_AUTO;
static bool (*replacing) (void) = NULL;	/* NULL: not preloaded */

/*
 * The setting; from _PG_init, preloading.  replacing_btree: is art put in the
 * place of btree in this session?
 */
void
art_plan_costs_init(bool (*replacing_btree) (void))
{
	replacing = replacing_btree;
	DefineCustomEnumVariable("artidx.plan_costs",
							 "Sets which costs the planner assumes for art indexes.",
							 "\"memory\": their own; \"btree\": those of an equivalent btree index; "
							 "\"auto\": \"btree\" while artidx.replace_btree is not off, or else \"memory\".",
							 &plan_costs,
							 PLAN_COSTS_AUTO,
							 plan_costs_values,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL, NULL, NULL);
}

/* Is the planner to be told nbtree's costs? */
bool
art_costs_as_btree(void)
{
	return plan_costs == PLAN_COSTS_BTREE ||
		(plan_costs == PLAN_COSTS_AUTO && replacing != NULL && replacing());
}

/*
 * ANALYZE's numbers for column i of the index: average width in bytes, NULLs
 * included, and how many values there are among so many rows. 0 when it knows
 * nothing.
 */
static void
column_stats(Relation index, int i, double rows, double *width, double *ndistinct)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
	AttrNumber	attno = index->rd_index->indkey.values[i];
	HeapTuple	tup;

	*width = 0;
	*ndistinct = 0;
	if (attno != 0)
		tup = SearchSysCache3(STATRELATTINH,
							  ObjectIdGetDatum(index->rd_index->indrelid),
							  Int16GetDatum(attno), BoolGetDatum(false));
	else
		tup = SearchSysCache3(STATRELATTINH,
							  ObjectIdGetDatum(RelationGetRelid(index)),
							  Int16GetDatum(i + 1), BoolGetDatum(false));
	if (HeapTupleIsValid(tup))
	{
		Form_pg_statistic stats = (Form_pg_statistic) GETSTRUCT(tup);

		*width = stats->stawidth * (1.0 - stats->stanullfrac);
		*ndistinct = stats->stadistinct;
		if (*ndistinct < 0)
			*ndistinct = Max(1.0, rint(-*ndistinct * rows));
		if (*ndistinct > 0 && stats->stanullfrac > 0)
			*ndistinct += 1;
		ReleaseSysCache(tup);
	}
	else
		*width = get_typavgwidth(att->atttypid, att->atttypmod);
}

/*
 * Would nbtree keep equal keys together?  Its rule is that all columns must be
 * equal as images when they are equal, which support function 4 tells.
 */
static bool
deduplicates(Relation index)
{
	int			nkeys = index->rd_index->indnkeyatts;

	if (index->rd_index->indisunique || index->rd_index->indnatts != nkeys)
		return false;
	for (int i = 0; i < nkeys; i++)
	{
		Oid			proc = get_opfamily_proc(index->rd_opfamily[i],
											 index->rd_opcintype[i],
											 index->rd_opcintype[i],
											 BTEQUALIMAGE_PROC);

		if (!OidIsValid(proc) ||
			!art_opclass_equalimage(proc, index->rd_indcollation[i], index->rd_opcintype[i]))
			return false;
	}
	return true;
}

/*
 * Pages and height (0: the root is a leaf) of a btree index with so many
 * entries.  "rows": the table's, to which ANALYZE's numbers belong.
 */
void
art_btree_size(Relation index, double entries, double rows,
			   BlockNumber *pages, int *height)
{
	/*
	 * How much of a page nbtree's builder fills, beside the line pointer of a
	 * high key; and the most bytes of its posting lists.
	 */
	const double page = BLCKSZ - SizeOfPageHeaderData -
		MAXALIGN(sizeof(BTPageOpaqueData)) - sizeof(ItemIdData);
	const double leaf = page - BLCKSZ * (100 - BTREE_DEFAULT_FILLFACTOR) / 100;
	const double inner = page - BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;
	const double posting = MAXALIGN_DOWN((BLCKSZ * 10 / 100)) - sizeof(ItemIdData);
	double		width = sizeof(IndexTupleData);
	double		keywidth = width;
	double		distinct = 1;
	double		bytes;
	double		tail = 0;		/* of an item, which a high key does not have */
	double		level;
	double		total;
	int			nkeys = index->rd_index->indnkeyatts;

	*height = 0;
	if (entries < 1)
	{
		*pages = 1;				/* the metapage */
		return;
	}

	for (int i = 0; i < index->rd_index->indnatts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
		double		w,
					n;

		column_stats(index, i, rows, &w, &n);
		if (att->atttypid == NAMEOID && i < nkeys)
			w = ART_NAME_WIDTH; /* nbtree keeps a cstring of it */
		/* short values of variable length are not aligned */
		if (att->attlen > 0 && att->atttypid != NAMEOID)
			width = att_align_nominal((long) width, att->attalign);
		else if (w > VARATT_SHORT_MAX)
			width = INTALIGN((long) width);
		width += rint(w);
		if (i < nkeys)
		{
			keywidth = width;
			distinct = n > 0 ? Min(distinct * n, entries) : entries;
		}
	}
	width = MAXALIGN((long) width);
	keywidth = MAXALIGN((long) keywidth);

	bytes = width + sizeof(ItemIdData);
	total = entries;
	if (distinct < entries && deduplicates(index))
	{
		double		equal = entries / distinct;
		double		lists = ceil(equal / Max(2.0, floor((posting - width) / sizeof(ItemPointerData))));
		double		tids = equal / lists;

		if (tids > 1)
			tail = MAXALIGN((long) (tids * sizeof(ItemPointerData)));
		bytes += tail;
		total = distinct * lists;
	}

	/* a page is full with the item that becomes its high key, without its tail */
	level = ceil(total / Max(1.0, floor((leaf + tail) / bytes)));
	total = 1 + level;
	while (level > 1)
	{
		level = ceil(level / Max(2.0, floor(inner / (keywidth + sizeof(ItemIdData)))));
		total += level;
		(*height)++;
	}
	*pages = (BlockNumber) Min(total, (double) MaxBlockNumber);
}
