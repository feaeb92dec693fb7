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
 * lists.  The widths of keys, the NULLs, the common values and the number of the others
 * are ANALYZE's.
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
#include "nodes/makefuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
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

#define ART_GROUPS	50			/* 0: one entry a key; n: up to two to the nth */

/* Keys with about as many entries each. */
typedef struct KeyGroup
{
	double		share;			/* of the entries */
	double		keys;
	double		width;			/* bytes of the columns, aligned one to the other */
} KeyGroup;

/*
 * The keys of an index or of a column, by how many entries they have.  Where half of the
 * values are NULL, one key has half of the entries, and a mean would tell nothing.
 */
typedef struct KeyGroups
{
	double		entries;
	KeyGroup	g[2][ART_GROUPS];	/* [1]: with a NULL */
} KeyGroups;

/* Adds the keys with this share of the entries. */
static void
add_group(KeyGroups *to, bool null, double share, double keys, double width)
{
	const double entries = share * to->entries;
	KeyGroup   *g;

	if (entries <= 0)
		return;
	keys = Min(Max(keys, 1), entries);
	g = &to->g[null][Min((int) ceil(log2(entries / keys)), ART_GROUPS - 1)];
	g->width = (g->width * g->share + width * share) / (g->share + share);
	g->share += share;
	g->keys += keys;
}

/* How many of so many keys, of "each" entries, does a random part of the entries have? */
static inline double
keys_in_part(double keys, double each, double part)
{
	return keys * (1 - pow(1 - Min(part, 1), Max(each, 1)));
}

/* Does the index's predicate leave no row where this is so of column i? */
static bool
predicate_excludes(Relation index, const IndexOptInfo *info, int i, NullTestType what)
{
	const AttrNumber attno = info->indexkeys[i];
	NullTest   *test;

	if (info->indpred == NIL)
		return false;
	test = makeNode(NullTest);
	test->nulltesttype = what;
	test->location = -1;
	if (attno == 0)
	{
		int			n = 0;

		for (int k = 0; k < i; k++)
			n += info->indexkeys[k] == 0;
		test->arg = list_nth(info->indexprs, n);
	}
	else
	{
		Oid			type,
					collation;
		int32		typmod;

		get_atttypetypmodcoll(index->rd_index->indrelid, attno, &type, &typmod, &collation);
		test->arg = (Expr *) makeVar(info->rel->relid, attno, type, typmod, collation, 0);
	}
	return predicate_refuted_by(list_make1(test), info->indpred, false);
}

/*
 * The values of column i of the index, by ANALYZE's numbers: NULLs, the common ones, and
 * the others.  All differ where it knows nothing.
 */
static void
column_groups(Relation index, const IndexOptInfo *info, int i, KeyGroups *to)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
	const AttrNumber attno = index->rd_index->indkey.values[i];
	const bool	is_key = i < index->rd_index->indnkeyatts;
	const double rows = info->rel->tuples;
	double		width = get_typavgwidth(att->atttypid, att->atttypmod);
	double		distinct = rows;
	double		nulls = 0;
	double		others = 1;
	double		part;			/* which the index has of the rows that it may have */
	double		all;
	AttStatsSlot common = {0};
	HeapTuple	tup;

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

		width = stats->stawidth;
		nulls = Min(stats->stanullfrac, 1);
		others = 1 - nulls;
		if (stats->stadistinct != 0)
			distinct = stats->stadistinct < 0 ? -stats->stadistinct * rows : stats->stadistinct;
		(void) get_attstatsslot(&common, tup, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_NUMBERS);
		ReleaseSysCache(tup);
	}
	if (att->atttypid == NAMEOID && is_key)
		width = ART_NAME_WIDTH; /* nbtree keeps a cstring of it */

	if (nulls > 0 && predicate_excludes(index, info, i, IS_NULL))
		nulls = 0;
	else if (nulls > 0 && predicate_excludes(index, info, i, IS_NOT_NULL))
		others = 0;
	all = nulls + others > 0 ? nulls + others : 1;
	part = to->entries / Max(all * rows, 1);

	add_group(to, true, nulls / all, 1, 0);
	for (int k = 0; k < common.nnumbers && others > 0; k++)
	{
		const double share = Min(common.numbers[k], others);

		add_group(to, false, share / all, 1, width);
		others -= share;
		distinct--;
	}
	distinct = Max(distinct, 1);
	add_group(to, false, others / all, keys_in_part(distinct, others * rows / distinct, part), width);
	free_attstatsslot(&common);
}

/* Where a column begins behind so many bytes of others. */
static double
column_offset(Form_pg_attribute att, bool is_key, double offset, double width)
{
	if (att->attlen > 0 && !(att->atttypid == NAMEOID && is_key))
		return att_align_nominal((long) offset, att->attalign);
	/* short values of variable length are not aligned */
	return width > VARATT_SHORT_MAX ? INTALIGN((long) offset) : offset;
}

/*
 * One more column.  Those of the statistics are independent.  So each key has a part of
 * each of the column's values.  An INCLUDE column makes no more keys.
 */
static void
multiply_groups(KeyGroups *all, const KeyGroups *column, Form_pg_attribute att, bool is_key)
{
	KeyGroups	made = {.entries = all->entries};

	for (int x = 0; x < 2 * ART_GROUPS; x++)
	{
		const KeyGroup *a = &all->g[0][0] + x;

		if (a->share <= 0)
			continue;
		for (int y = 0; y < 2 * ART_GROUPS; y++)
		{
			const KeyGroup *c = &column->g[0][0] + y;
			const bool	null = y >= ART_GROUPS;
			double		share = a->share * c->share;
			double		keys = a->keys;
			double		width = a->width;

			if (share <= 0)
				continue;
			if (x % ART_GROUPS == 0 || y % ART_GROUPS == 0)
				keys = share * all->entries;
			else if (is_key)
				keys *= keys_in_part(c->keys, c->share * all->entries / c->keys, a->share / a->keys);
			if (!null)
				width = column_offset(att, is_key, width, c->width) + rint(c->width);
			add_group(&made, null || x >= ART_GROUPS, share, keys, width);
		}
	}
	*all = made;
}

/*
 * Would nbtree keep equal keys together?  Its rule is that all columns must be
 * equal as images when they are equal, which support function 4 tells.
 */
static bool
deduplicates(Relation index)
{
	int			nkeys = index->rd_index->indnkeyatts;

	if (index->rd_index->indisunique || index->rd_index->indnatts != nkeys ||
		!art_deduplicate_items(index))
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
 * How many leaves' worth a group is.  A leaf is full with the item that becomes its high
 * key, without its list; and where another one has no room.
 */
static double
group_leaves(const KeyGroup *g, double entries, bool null, bool lists, double page, double spare)
{
	const double posting = MAXALIGN_DOWN(MAXALIGN_DOWN(BLCKSZ * 10 / 100) - sizeof(ItemIdData));
	const double width = MAXALIGN((long) (g->width + MAXALIGN(sizeof(IndexTupleData) +
																(null ? sizeof(IndexAttributeBitMapData) : 0))));
	double		items = g->share * entries;
	double		tids = 1;
	double		list = 0;
	double		size;

	if (lists)
	{
		double		each = items / g->keys;
		double		most = Max(2.0, floor((posting - width) / sizeof(ItemPointerData)));

		items = g->keys * ceil(each / most);
		tids = g->share * entries / items;
	}
	/* some have two, the others none */
	if (tids < 2)
		list = (tids - 1) * MAXALIGN(2 * sizeof(ItemPointerData));
	else
		list = MAXALIGN((long) (tids * sizeof(ItemPointerData)));
	size = width + list + sizeof(ItemIdData);
	return items / Max(1.0, Min(floor(page / size) - 1, floor((page - spare + list) / size)));
}

/*
 * Pages and height (0: the root is a leaf) of a btree index with so many
 * entries.
 */
void
art_btree_size(Relation index, const IndexOptInfo *info, double entries,
			   BlockNumber *pages, int *height)
{
	/* beside the line pointer of a high key */
	const double page = BLCKSZ - SizeOfPageHeaderData -
		MAXALIGN(sizeof(BTPageOpaqueData)) - sizeof(ItemIdData);
	const double inner = page - BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;
	const double spare = BLCKSZ * (100 - art_fillfactor(index)) / 100 + sizeof(ItemIdData);
	const bool	lists = deduplicates(index);
	const int	nkeys = index->rd_index->indnkeyatts;
	double		keywidth = 0;
	double		level = 0;
	double		total;
	KeyGroups	all = {.entries = entries};

	*height = 0;
	if (entries < 1)
	{
		*pages = 1;				/* the metapage */
		return;
	}

	add_group(&all, false, 1, 1, 0);
	for (int i = 0; i < index->rd_index->indnatts; i++)
	{
		KeyGroups	column = {.entries = entries};

		column_groups(index, info, i, &column);
		multiply_groups(&all, &column, TupleDescAttr(RelationGetDescr(index), i), i < nkeys);
		for (int x = 0; x < 2 * ART_GROUPS && i == nkeys - 1; x++)
			keywidth += (&all.g[0][0] + x)->share * (&all.g[0][0] + x)->width;
	}
	keywidth = MAXALIGN((long) keywidth + sizeof(IndexTupleData));

	for (int x = 0; x < 2 * ART_GROUPS; x++)
	{
		const KeyGroup *g = &all.g[0][0] + x;

		if (g->share > 0)
			level += group_leaves(g, entries, x >= ART_GROUPS, lists, page, spare);
	}
	level = ceil(level - 1e-6);
	total = 1 + level;
	while (level > 1)
	{
		level = ceil(level / Max(2.0, floor(inner / (keywidth + sizeof(ItemIdData)))));
		total += level;
		(*height)++;
	}
	*pages = (BlockNumber) Min(total, (double) MaxBlockNumber);
}
