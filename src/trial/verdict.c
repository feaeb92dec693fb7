/*
 * verdict.c
 *	  What the measured times come to with the use that the statistics tell, and all of it in
 *	  artidx_trials.
 *
 * src/trial/README.md: The verdict
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/ruleutils.h"
#include "utils/timestamp.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "utils/guc.h"

#include "area/shared_state.h"
#include "ddl/ddl.h"
#include "trial/trial.h"

/* From this gain on, a conversion is worth its while. */
#define WORTH_IT	1.05

/* The use of the index since the statistics began, as artidx_advise() reports it. */
typedef struct Use
{
	double		look_ups;
	double		joins;
	double		entries;		/* read behind the first one of a scan */
	double		written;
	double		expected;		/* its score; NAN: it has none */
} Use;

/* ---- the table ---- */

void
art_trial_table(const ArtTrial *t)
{
	if (!OidIsValid(get_relname_relid("artidx_trials", t->schema)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"artidx_trials\" does not exist"),
				 errhint("ALTER EXTENSION artidx UPDATE makes it.")));
}

/*
 * A figure, or NULL.
 */
static Datum
figure(double value, int digits, char *isnull)
{
	*isnull = isnan(value) ? 'n' : ' ';
	if (isnan(value))
		return (Datum) 0;
	return DirectFunctionCall2(numeric_round, DirectFunctionCall1(float8_numeric, Float8GetDatum(value)),
							   Int32GetDatum(digits));
}

static Datum
string(const char *value, char *isnull)
{
	*isnull = value == NULL ? 'n' : ' ';
	return value == NULL ? (Datum) 0 : CStringGetTextDatum(value);
}

/*
 * Insert the rows, as the owner of the table.
 *
 * Locks: RowExclusiveLock on the table, to the end of the transaction.
 */
static void
store(ArtTrial *t)
{
	Oid			types[] = {TIMESTAMPTZOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, NUMERICOID, NUMERICOID, NUMERICOID, INT8OID, TEXTOID};
	Relation	trials = relation_open(get_relname_relid("artidx_trials", t->schema), RowExclusiveLock);
	char	   *sql = psprintf("INSERT INTO %s VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
							   art_sql_name(RelationGetRelid(trials)));
	int			nestlevel = NewGUCNestLevel();
	int			line = 0;
	Oid			userid;
	int			context;
	ListCell   *lc;

	GetUserIdAndSecContext(&userid, &context);
	SetUserIdAndSecContext(trials->rd_rel->relowner, context | SECURITY_RESTRICTED_OPERATION);
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	SPI_connect();
	foreach(lc, t->rows)
	{
		ArtTrialRow *r = (ArtTrialRow *) lfirst(lc);
		Datum		values[lengthof(types)];
		char		nulls[lengthof(types)];

		memset(nulls, ' ', sizeof(nulls));
		values[0] = TimestampTzGetDatum(t->started);
		values[1] = Int32GetDatum(++line);
		values[2] = CStringGetTextDatum(t->table);
		values[3] = CStringGetTextDatum(t->index);
		values[4] = CStringGetTextDatum(r->measure);
		values[5] = string(r->unit, &nulls[5]);
		values[6] = figure(r->btree, 3, &nulls[6]);
		values[7] = figure(r->art, 3, &nulls[7]);
		values[8] = figure(r->art > 0 ? r->btree / r->art : NAN, 2, &nulls[8]);
		values[9] = Int64GetDatum(r->calls);
		nulls[9] = r->calls == 0 ? 'n' : ' ';
		values[10] = string(r->remark, &nulls[10]);
		if (SPI_execute_with_args(sql, lengthof(types), types, values, nulls, false, 0) != SPI_OK_INSERT)
			elog(ERROR, "not inserted: %s", sql);
	}
	SPI_finish();
	AtEOXact_GUC(false, nestlevel);
	SetUserIdAndSecContext(userid, context);
	relation_close(trials, NoLock);
}

/* ---- the use ---- */

static double
float_of(int column)
{
	bool		isnull;
	Datum		d = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &isnull);

	return isnull ? NAN : DatumGetFloat8(d);
}

/*
 * Ask artidx_advise(), whose look-ups and joins are shares of the scans by their expected times.
 */
static void
ask_use(ArtTrial *t, Use *use)
{
	const char *sql = psprintf("SELECT scans::pg_catalog.float8, greatest(tuples - scans, 0)::pg_catalog.float8, written::pg_catalog.float8, "
							   "(join_ms / CASE kept WHEN 'bytes' THEN 3469 ELSE 2299 END "
							   "/ nullif(join_ms / CASE kept WHEN 'bytes' THEN 3469 ELSE 2299 END + lookup_ms / 2299, 0))::pg_catalog.float8, "
							   "score::pg_catalog.float8 "
							   "FROM %s.artidx_advise() WHERE indexrelid = %u", quote_identifier(get_namespace_name(t->schema)), t->indexoid);
	int			nestlevel = NewGUCNestLevel();

	memset(use, 0, sizeof(*use));
	use->expected = NAN;
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	SPI_connect();
	if (SPI_execute(sql, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "not a query: %s", sql);
	if (SPI_processed == 1)
	{
		double		joined = float_of(4);

		use->joins = isnan(joined) ? 0 : float_of(1) * joined;
		use->look_ups = float_of(1) - use->joins;
		use->entries = float_of(2);
		use->written = float_of(3);
		use->expected = float_of(5);
	}
	SPI_finish();
	AtEOXact_GUC(false, nestlevel);
}

/* ---- the verdict ---- */

/*
 * The row of a measure, if it has both figures.
 */
static const ArtTrialRow *
find_row(ArtTrial *t, const char *measure)
{
	ListCell   *lc;

	foreach(lc, t->rows)
	{
		const ArtTrialRow *r = (const ArtTrialRow *) lfirst(lc);

		if (strcmp(r->measure, measure) == 0 && r->btree >= 0 && r->art >= 0)
			return r;
	}
	return NULL;
}

/*
 * Add to ms[] the time that so many of a measure take with each index.
 */
static void
add_time(ArtTrial *t, const char *measure, double times, double ns_each, double ms[2])
{
	const ArtTrialRow *r = find_row(t, measure);

	if (r == NULL)
		return;
	ms[0] += times * r->btree * ns_each / 1e6;
	ms[1] += times * r->art * ns_each / 1e6;
}

/*
 * The milliseconds that each index would have taken for the use so far.  A statement's own costs are in
 * the look-ups, and are the same to both.  Without use: one of each.
 */
static void
weigh(ArtTrial *t, const Use *use, double ms[2])
{
	bool		unused = use->look_ups + use->joins + use->written <= 0;
	const char *range = find_row(t, "index-only range") != NULL ? "index-only range" : "range";

	ms[0] = ms[1] = 0;
	add_time(t, "look-up", unused ? 1 : use->look_ups, 1000, ms);
	add_time(t, "join", unused ? 1 : use->joins, 1000, ms);
	/* of a range's 100 rows each */
	add_time(t, range, (unused ? 100 : use->entries) / 100, 1000, ms);
	add_time(t, "insert", unused ? 1 : use->written, 1000, ms);
	/* a byte of WAL at a nanosecond, as artidx_advise() has it */
	add_time(t, "WAL", unused ? 1 : use->written, 1, ms);
}

/*
 * The statements that put art in the index's place by hand, where it is no constraint's.
 */
static char *
ddl_by_hand(ArtTrial *t)
{
	char	   *def = pg_get_indexdef_string(t->indexoid);
	char	   *head = psprintf("CREATE %sINDEX %s ON ", t->unique ? "UNIQUE " : "", quote_identifier(t->name));
	char	   *at = strstr(def, " USING btree ");
	char	   *name = psprintf("%s_art", t->name);

	if (at == NULL || strncmp(def, head, strlen(head)) != 0)
		return NULL;
	return psprintf("CREATE %sINDEX CONCURRENTLY %s ON %.*s USING %s %s; DROP INDEX CONCURRENTLY %s; ALTER INDEX %s RENAME TO %s",
					t->unique ? "UNIQUE " : "", quote_identifier(name),
					(int) (at - def - strlen(head)), def + strlen(head), ART_AM_NAME,
					at + strlen(" USING btree "), t->index,
					quote_qualified_identifier(get_namespace_name(get_rel_namespace(t->indexoid)), name),
					quote_identifier(t->name));
}

/*
 * The commands that swap the index, in rows of their own.
 */
static void
tell_commands(ArtTrial *t)
{
	Oid			root = t->part ? llast_oid(get_partition_ancestors(t->indexoid)) : t->indexoid;
	char	   *hand = t->part || t->constraint ? NULL : ddl_by_hand(t);

	art_trial_row(t, "swap", NULL, NAN, NAN, 0,
				  psprintf("CALL %s.artidx_from_btree(%s)", quote_identifier(get_namespace_name(t->schema)),
						   quote_literal_cstr(art_sql_name(root))));
	if (hand != NULL)
		art_trial_row(t, "swap by hand", NULL, NAN, NAN, 0, hand);
	art_trial_row(t, "back", NULL, NAN, NAN, 0,
				  psprintf("CALL %s.artidx_to_btree(%s)", quote_identifier(get_namespace_name(t->schema)),
						   quote_literal_cstr(art_sql_name(root))));
}

void
art_trial_verdict(ArtTrial *t)
{
	Use			use;
	double		ms[2];
	double		gain;
	const char *verdict;

	if (get_rel_name(t->indexoid) == NULL)
		art_refuse_changed(t->name);
	ask_use(t, &use);
	weigh(t, &use, ms);
	gain = ms[1] > 0 ? ms[0] / ms[1] : NAN;
	if (t->differ)
		verdict = "different answers: do not convert";
	else if (isnan(gain))
		verdict = "too few rows to tell";
	else
		verdict = gain >= WORTH_IT ? "convert" : "no gain";
	if (use.look_ups + use.joins + use.written <= 0)
		verdict = psprintf("%s; by one look-up, join, range and insert each, since the statistics know of no use", verdict);
	else if (!isnan(use.expected))
		verdict = psprintf("%s; %.1f ms would have been saved since the statistics began, of which artidx_advise expects %.1f",
						   verdict, ms[0] - ms[1], use.expected);
	art_trial_row(t, "verdict", "ms", isnan(gain) ? NAN : ms[0], isnan(gain) ? NAN : ms[1], 0, verdict);
	if (gain >= WORTH_IT && !t->differ)
		tell_commands(t);
	if (t->differ)
		ereport(WARNING,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" and its art twin have answered differently", t->name),
				 errhint("Check the btree index with amcheck, and report this if it is sound.")));
	store(t);
}
