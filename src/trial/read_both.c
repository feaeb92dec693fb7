/*
 * read_both.c
 *	  Look-ups, ranges and joins, by the btree index and by its twin.
 *
 * The statements are the trial's own.  Each is planned with one index only, and it is looked
 * whether its plan has that.  All that is compared is read with one snapshot.  A round of a
 * statement takes two pieces of the keys:
 *
 *		btree, piece 1 | art, piece 2 | btree, piece 2 | art, piece 1
 *
 * and each other round begins with art.  So both meet each piece once, both meet rows that
 * the other one has just fetched once, and neither finds a piece of its own index in the
 * processor's caches.
 *
 * src/trial/README.md: Reading
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_index.h"
#include "catalog/pg_operator.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/params.h"
#include "nodes/plannodes.h"
#include "tcop/dest.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "area/area.h"
#include "ddl/ddl.h"
#include "eval/eval.h"
#include "plan/plan.h"
#include "trial/trial.h"

#define RANGE_ROWS		100
#define FIRST_ROWS		10
#define PIECE_MS		1.0		/* a piece grows until it takes that long */
#define MAX_ROUNDS		5000	/* whose times are kept */

typedef enum Kind
{
	LOOK_UP,					/* whole keys */
	FIRST,						/* the first rows of a first column */
	RANGE,
	INDEX_ONLY,
	JOIN,
	KINDS
} Kind;

static const char *const measures[KINDS] = {
	"look-up", "first rows", "range", "index-only range", "join"
};
static const char *const remarks[KINDS] = {
	"a statement with a whole key, row fetched",
	"a statement with the first column, its first 10 rows in order",
	"a statement of 100 rows in order, each fetched",
	"a statement of 100 keys in order, without the table where it is all-visible",
	"a key of a nested loop, row fetched"
};

/* A statement, and what was found out by it. */
typedef struct Reading
{
	Kind		kind;
	char	   *sql;
	int			nargs;
	Oid			args[INDEX_MAX_KEYS];
	int			piece;			/* keys in one */
	int			rounds;
	double	   *ns[2];			/* of a key, each round: btree, art */
	int64		calls;			/* of each index */
	bool		unplanned;		/* the planner does not take the index for it */
	uint64		differ;			/* pieces that were answered differently */
} Reading;

/* ---- what a statement answers ---- */

typedef struct Answer
{
	DestReceiver pub;
	uint64		rows;
	uint64		sum;			/* of hashes of the first column, in any order */
	int16		len;
	bool		byval;
} Answer;

static void
answer_startup(DestReceiver *self, int operation, TupleDesc typeinfo)
{
	Answer	   *a = (Answer *) self;

	a->len = TupleDescAttr(typeinfo, 0)->attlen;
	a->byval = TupleDescAttr(typeinfo, 0)->attbyval;
}

/*
 * A row of an answer.
 */
static bool
answer_row(TupleTableSlot *slot, DestReceiver *self)
{
	Answer	   *a = (Answer *) self;
	bool		isnull;
	Datum		d = slot_getattr(slot, 1, &isnull);

	a->rows++;
	if (!isnull)
		a->sum += UINT64CONST(0x9E3779B97F4A7C15) * (datum_image_hash(d, a->byval, a->len) + UINT64CONST(1));
	return true;
}

static void
answer_nothing(DestReceiver *self)
{
}

/* ---- the statements ---- */

/*
 * An operator of the index's family, as SQL names it beyond doubt.
 */
static char *
family_operator(Relation index, int i, StrategyNumber strategy)
{
	Oid			type = index->rd_opcintype[i];
	Oid			op = get_opfamily_member(index->rd_opfamily[i], type, type, strategy);
	HeapTuple	tup = SearchSysCache1(OPEROID, ObjectIdGetDatum(op));
	Form_pg_operator form;
	char	   *name;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "operator %d(%u) is missing in operator family %u", strategy, type, index->rd_opfamily[i]);
	form = (Form_pg_operator) GETSTRUCT(tup);
	name = psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(form->oprnamespace)),
					NameStr(form->oprname));
	ReleaseSysCache(tup);
	return name;
}

/*
 * A column of the index as SQL writes it, with the collation of the index.
 */
static char *
column(Relation index, int i)
{
	Datum		def = DirectFunctionCall3(pg_get_indexdef_ext, ObjectIdGetDatum(RelationGetRelid(index)),
										  Int32GetDatum(i + 1), BoolGetDatum(false));
	char	   *sql = TextDatumGetCString(def);
	Oid			collation = index->rd_indcollation[i];
	HeapTuple	tup;
	Form_pg_collation form;

	if (!OidIsValid(collation))
		return psprintf("(%s)", sql);
	tup = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	form = (Form_pg_collation) GETSTRUCT(tup);
	sql = psprintf("(%s COLLATE %s)", sql,
					quote_qualified_identifier(get_namespace_name(form->collnamespace),
											   NameStr(form->collname)));
	ReleaseSysCache(tup);
	return sql;
}

/*
 * "ORDER BY" from this column on, in the direction of the index.
 */
static void
append_order(StringInfo sql, Relation index, int from, int to)
{
	for (int i = from; i < to; i++)
	{
		int16		option = index->rd_indoption[i];

		appendStringInfo(sql, "%s %s USING %s NULLS %s", i == from ? " ORDER BY" : ",", column(index, i),
						 family_operator(index, i, option & INDOPTION_DESC ?
										 BTGreaterStrategyNumber : BTLessStrategyNumber),
						 option & INDOPTION_NULLS_FIRST ? "FIRST" : "LAST");
	}
}

/*
 * The condition that columns from the first to "to" are parameters, or the join's columns.
 */
static void
append_keys(StringInfo sql, Relation index, int to, StrategyNumber strategy, const char *what)
{
	for (int i = 0; i < to; i++)
		appendStringInfo(sql, " %s %s %s %s%d", i == 0 ? "WHERE" : "AND", column(index, i),
						 family_operator(index, i, strategy), what, i + 1);
}

/*
 * The condition of a partial index.
 */
static void
append_predicate(StringInfo sql, Relation index)
{
	bool		isnull;
	Datum		predicate = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, Anum_pg_index_indpred, &isnull);

	if (!isnull)
	{
		predicate = DirectFunctionCall2(pg_get_expr, predicate, ObjectIdGetDatum(index->rd_index->indrelid));
		appendStringInfo(sql, " AND (%s)", TextDatumGetCString(predicate));
	}
}

/*
 * The names of the join's keys, k1 and so on.
 */
static void
append_list(StringInfo sql, int n, const char *what)
{
	for (int i = 1; i <= n; i++)
		appendStringInfo(sql, "%s%s%d", i == 1 ? "" : ", ", what, i);
}

/*
 * Make one statement.  As the owner of the table, under whose search_path all is written out.
 */
static void
make_statement(ArtTrial *t, Relation index, Kind kind, Reading *r)
{
	int			ncols = t->keys.ncols;
	bool		desc = (index->rd_indoption[0] & INDOPTION_DESC) != 0;
	StrategyNumber from = desc ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
	StringInfoData sql;

	initStringInfo(&sql);
	r->kind = kind;
	r->nargs = kind == LOOK_UP || kind == JOIN ? ncols : 1;
	for (int i = 0; i < r->nargs; i++)
		r->args[i] = kind != JOIN ? t->keys.types[i] : get_array_type(t->keys.types[i]);
	r->unplanned = kind == FIRST && ncols == 1;
	for (int i = 0; i < r->nargs; i++)
		r->unplanned |= !OidIsValid(r->args[i]);
	if (kind == JOIN)
	{
		appendStringInfoString(&sql, "SELECT artidx_rows.ctid FROM unnest(");
		append_list(&sql, ncols, "$");
		appendStringInfoString(&sql, ") artidx_keys(");
		append_list(&sql, ncols, "k");
		appendStringInfo(&sql, "), LATERAL (SELECT ctid FROM ONLY %s", t->table);
		append_keys(&sql, index, ncols, BTEqualStrategyNumber, "artidx_keys.k");
	}
	else
	{
		appendStringInfo(&sql, "SELECT %s FROM ONLY %s", kind == INDEX_ONLY ? column(index, 0) : "ctid", t->table);
		append_keys(&sql, index, r->nargs, kind == RANGE || kind == INDEX_ONLY ? from : BTEqualStrategyNumber, "$");
	}
	append_predicate(&sql, index);
	if (kind == JOIN)
		appendStringInfoString(&sql, ") artidx_rows");
	else if (kind != LOOK_UP)
	{
		append_order(&sql, index, kind == FIRST ? 1 : 0, kind == FIRST ? ncols : 1);
		appendStringInfo(&sql, " LIMIT %d", kind == FIRST ? FIRST_ROWS : RANGE_ROWS);
	}
	r->sql = MemoryContextStrdup(t->cxt, sql.data);
	r->piece = Min(kind == RANGE || kind == INDEX_ONLY ? 8 : 64, Max(t->keys.n / 2, 1));
	for (int i = 0; i < 2; i++)
		r->ns[i] = MemoryContextAlloc(t->cxt, MAX_ROUNDS * sizeof(double));
}

/* ---- plans ---- */

typedef struct Wanted
{
	Oid			index;
	bool		only;
	bool		found;
} Wanted;

/* A node of a plan. */
static void
see_node(Plan *plan, void *arg)
{
	Wanted	   *w = (Wanted *) arg;

	if (IsA(plan, IndexOnlyScan))
		w->found |= ((IndexOnlyScan *) plan)->indexid == w->index;
	else if (IsA(plan, IndexScan) && !w->only)
		w->found |= ((IndexScan *) plan)->indexid == w->index;
	else if (IsA(plan, CustomScan) && !w->only)
		w->found = true;		/* a batched join: no other index is to be had */
}

/*
 * Prepare the statement with this index.  NULL: its plan is without it.
 */
static SPIPlanPtr
prepare_statement(ArtTrial *t, Reading *r, Oid indexoid)
{
	Wanted		wanted = {.index = indexoid, .only = r->kind == INDEX_ONLY};
	SPIPlanPtr	plan;
	CachedPlan *cached;

	art_plan_only(t->heapoid, indexoid);
	plan = SPI_prepare(r->sql, r->nargs, r->args);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare: %s: %s", SPI_result_code_string(SPI_result), r->sql);
	cached = SPI_plan_get_cached_plan(plan);
	if (cached == NULL)
		return NULL;
	art_plan_walk(linitial_node(PlannedStmt, cached->stmt_list), see_node, &wanted);
	ReleaseCachedPlan(cached, NULL);
	return wanted.found ? plan : NULL;
}

/* ---- running ---- */

/*
 * The parameters of the statement for a piece of keys: for each key, or of a join all at once.
 */
static void
set_parameters(ArtTrial *t, Reading *r, ParamListInfo params, int key, int n)
{
	ArtTrialKeys *keys = &t->keys;

	for (int i = 0; i < r->nargs; i++)
	{
		Datum	   *all;
		int16		len;
		bool		byval;
		char		align;

		if (r->kind != JOIN)
		{
			params->params[i].value = keys->values[key * keys->ncols + i];
			continue;
		}
		all = palloc(n * sizeof(Datum));
		for (int k = 0; k < n; k++)
			all[k] = keys->values[((key + k) % keys->n) * keys->ncols + i];
		get_typlenbyvalalign(keys->types[i], &len, &byval, &align);
		params->params[i].value = PointerGetDatum(construct_array(all, n, keys->types[i], len, byval, align));
	}
}

/*
 * Run the statement for some keys.  Returns the nanoseconds that this has taken.
 */
static double
answer_keys(ArtTrial *t, Reading *r, SPIPlanPtr plan, int first, int keys, Answer *answer)
{
	SPIExecuteOptions options = {0};
	ParamListInfo params = makeParamList(r->nargs);
	int			times = r->kind == JOIN ? 1 : keys;
	double		began;

	memset(answer, 0, sizeof(*answer));
	answer->pub.receiveSlot = answer_row;
	answer->pub.rStartup = answer_startup;
	answer->pub.rShutdown = answer_nothing;
	answer->pub.rDestroy = answer_nothing;
	answer->pub.mydest = DestNone;
	for (int i = 0; i < r->nargs; i++)
	{
		params->params[i].isnull = false;
		params->params[i].pflags = 0;
		params->params[i].ptype = r->args[i];
	}
	options.params = params;
	options.read_only = true;
	options.dest = &answer->pub;
	if (r->kind == JOIN)
		set_parameters(t, r, params, first, keys);
	began = art_trial_measure(true);
	for (int k = 0; k < times; k++)
	{
		if (r->kind != JOIN)
			set_parameters(t, r, params, (first + k) % t->keys.n, 1);
		if (SPI_execute_plan_extended(plan, &options) < 0)
			elog(ERROR, "SPI_execute_plan_extended: %s", r->sql);
	}
	return art_trial_measure(true) - began;
}

/*
 * Let one index answer a piece of the keys.  Before that it answers some others, for the rest of the
 * server has used the processor's caches.  Returns the nanoseconds of a key.
 */
static double
answer_piece(ArtTrial *t, Reading *r, SPIPlanPtr plan, int first, int keys, Answer *answer)
{
	double		ns;

	(void) answer_keys(t, r, plan, (first + 2 * keys) % t->keys.n, keys, answer);
	ns = answer_keys(t, r, plan, first, keys, answer);
	(void) art_trial_measure(false);
	return ns / keys;
}

/*
 * A round of one statement, in its transaction.
 */
static void
round_of(ArtTrial *t, Reading *r, int round)
{
	Oid			indexes[2] = {t->indexoid, t->twinoid};
	SPIPlanPtr	plans[2];
	Answer		answers[2][2];	/* by index, by piece */
	double		ns[2] = {0, 0};
	int			pieces[2];

	for (int which = 0; which < 2; which++)
	{
		plans[which] = prepare_statement(t, r, indexes[which]);
		if (plans[which] == NULL)
		{
			r->unplanned = true;
			return;
		}
		/* the caches of this process are made, which every round makes it forget */
		(void) answer_keys(t, r, plans[which], 0, 1, &answers[which][0]);
		(void) art_trial_measure(false);
	}
	pieces[0] = (int) (((int64) round * 2 * r->piece) % t->keys.n);
	pieces[1] = (pieces[0] + r->piece) % t->keys.n;
	for (int i = 0; i < 4; i++)
	{
		int			which = (i + round) % 2;
		int			piece = (i / 2 + which) % 2;

		/* other processes may make it plan anew at any time */
		art_plan_only(t->heapoid, indexes[which]);
		ns[which] += answer_piece(t, r, plans[which], pieces[piece], r->piece, &answers[which][piece]);
		CHECK_FOR_INTERRUPTS();
	}
	for (int p = 0; p < 2; p++)
	{
		if (answers[0][p].rows != answers[1][p].rows || answers[0][p].sum != answers[1][p].sum)
			r->differ++;
	}
	/* the first round finds what is in no cache of the server yet */
	if (round > 0 && r->rounds < MAX_ROUNDS)
	{
		r->ns[0][r->rounds] = ns[0] / 2;
		r->ns[1][r->rounds] = ns[1] / 2;
		r->rounds++;
	}
	r->calls += 2 * r->piece;
	if ((ns[0] + ns[1]) * r->piece < 4e6 * PIECE_MS && r->piece * 4 <= t->keys.n)
		r->piece *= 2;
}

/*
 * Settings under which nothing but an index scan is planned, by one process.
 */
static void
set_planner(void)
{
	static const char *const off[] = {
		"enable_seqscan", "enable_bitmapscan", "enable_tidscan", "enable_hashjoin", "enable_mergejoin",
		"enable_material", "enable_memoize", "enable_sort", "jit"
	};

	for (int i = 0; i < (int) lengthof(off); i++)
		(void) set_config_option(off[i], "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("max_parallel_workers_per_gather", "0", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("plan_cache_mode", "force_generic_plan", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * ERROR unless the twin is there, in memory and what it was.  To this transaction it is valid from
 * here on.
 *
 * Epoch: enters and leaves (art_planner_stats).
 * Locks: AccessShareLock on the twin, to the end of the transaction.
 */
static void
show_twin(ArtTrial *t)
{
	Relation	twin;
	BlockNumber pages;
	double		entries;
	int			height;
	bool		ready;

	if (!art_index_is_still(t->twinoid, t->heapoid, t->amoid, false))
		art_refuse_changed(t->name);
	twin = index_open(t->twinoid, AccessShareLock);
	ready = art_planner_stats(twin, &pages, &entries, &height);
	index_close(twin, NoLock);
	if (!ready)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the twin of index \"%s\" is not in memory any more", t->name),
				 errhint("It may have made room for other art indexes: see \"artidx.memory\".")));
	index_set_state_flags(t->twinoid, INDEX_CREATE_SET_VALID);
	CommandCounterIncrement();
}

/*
 * One round of each statement that is planned.  In the first round the statements are made.
 */
static void
round_of_all(ArtTrial *t, Reading *readings, int round)
{
	Relation	heap;
	Relation	index;
	ArtAsOwner	save;

	art_trial_try(t, &heap, &index);
	show_twin(t);
	set_planner();
	art_as_owner_begin(heap, &save);
	if (round == 0)
	{
		for (int k = 0; k < KINDS; k++)
			make_statement(t, index, k, &readings[k]);
	}
	SPI_connect();
	PG_TRY();
	{
		for (int k = 0; k < KINDS; k++)
		{
			CHECK_FOR_INTERRUPTS();
			if (!readings[k].unplanned)
				round_of(t, &readings[k], round);
		}
	}
	PG_FINALLY();
	{
		art_plan_only(InvalidOid, InvalidOid);
	}
	PG_END_TRY();
	SPI_finish();
	art_as_owner_end(&save);
	art_trial_undo(t, heap, index);
}

/* ---- the result ---- */

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return x < y ? -1 : x > y;
}

static double
median(double *values, int n)
{
	qsort(values, n, sizeof(double), compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void
art_trial_read(ArtTrial *t, double ms)
{
	Reading		readings[KINDS];
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), (int64) ms);
	uint64		differ = 0;
	int64		calls = 0;

	memset(readings, 0, sizeof(readings));
	if (t->keys.n == 0)
	{
		art_trial_row(t, "look-up", "us", NAN, NAN, 0, "not tried: no row of the sample has a key without NULL");
		return;
	}
	for (int round = 0; round < 3 || GetCurrentTimestamp() < end; round++)
		round_of_all(t, readings, round);
	for (int k = 0; k < KINDS; k++)
	{
		Reading    *r = &readings[k];

		differ += r->differ;
		calls += r->calls;
		if (r->unplanned && k != FIRST && k != INDEX_ONLY)
			art_trial_row(t, measures[k], "us", NAN, NAN, 0, "not tried: not planned with this index");
		else if (!r->unplanned)
			art_trial_row(t, measures[k], "us", median(r->ns[0], r->rounds) / 1000,
						  median(r->ns[1], r->rounds) / 1000, r->calls, remarks[k]);
	}
	t->differ = differ > 0;
	art_trial_row(t, "answers", NULL, NAN, NAN, calls, differ == 0 ? "all the same" :
				  psprintf(UINT64_FORMAT " parts of them differ", differ));
}
