/*
 * estimate.c
 *	  artidx_estimate(relation, columns), artidx_estimate(index): the bytes an index
 *	  would take.
 *
 * The function encodes the keys of a sample of the table's rows, and has the
 * core size the tree (src/core/face/ax_estimate.c). It takes no memory of the
 * area.  So it answers with the area full, and without the library being
 * preloaded.
 *
 * The sample is drawn as ANALYZE draws its own: a limited number of blocks,
 * and a limited number of the rows in them.  A table of few blocks is read
 * whole, and one of few rows is sized exactly.  Where blocks are left out,
 * hardly more than one row of a block is kept.  Several would be neighbours in
 * a column that follows the order of the heap, but the estimate treats rows as
 * independent.  The seed is fixed, so the same table gives the same answer.
 *
 * src/views/README.md: Estimates
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/rls.h"
#include "utils/sampling.h"
#include "utils/snapmgr.h"

#include "area/area.h"
#include "build/build.h"
#include "views/views.h"

#define ART_EST_BLOCKS	30000	/* read at most */
#define ART_EST_ROWS	300000	/* kept of a table that has no more */
#define ART_EST_SAMPLE	50000	/* kept of one that has */
#define ART_EST_SEED	20131
#define ART_EST_NOWHERE	PG_UINT64_MAX

typedef struct ArtEstimate
{
	Relation	rel;
	int			ncols;
	Expr	   *exprs[INDEX_MAX_KEYS];
	Oid			types[INDEX_MAX_KEYS];
	Oid			opclasses[INDEX_MAX_KEYS];
	Oid			collations[INDEX_MAX_KEYS];
	ArtEval    *eval;

	/* the sample: each key behind its length, a chunk of its own */
	MemoryContext cxt;
	uint8	  **keys;
	uint64		n;
	uint64		most;			/* keys to keep */
	Size		bytes;
	Size		budget;
	uint64		rows;			/* seen */
	pg_prng_state rng;
} ArtEstimate;

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_estimate);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_estimate_index);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_estimate_or_null);

/* ---- what is asked for ---- */

/*
 * ERROR unless it is a table of which the current user may read every row, in
 * which an art index could be.
 */
static void
art_est_check_relation(Relation rel)
{
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot estimate an index on partitioned table \"%s\"",
						RelationGetRelationName(rel)),
				 errhint("Add up the estimates of its partitions.")));
	if (rel->rd_rel->relkind != RELKIND_RELATION &&
		rel->rd_rel->relkind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or materialized view",
						RelationGetRelationName(rel))));
	if (rel->rd_tableam != GetHeapamTableAmRoutine())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" supports only tables of access method \"heap\"",
						ART_AM_NAME)));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));
	/* an unlogged one has no file there */
	if (!RelationIsPermanent(rel) && RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));

	/* expressions of the caller's would see rows that a policy hides */
	if (check_enable_rls(RelationGetRelid(rel), InvalidOid, false) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot estimate an index on table \"%s\", whose row-level security policies apply to the current user",
						RelationGetRelationName(rel)),
				 errhint("Call artidx_estimate as the owner of the table.")));
}

/*
 * ERROR unless the current user may read the columns of an expression, or a list of them.
 */
static void
art_est_check_columns(Relation rel, Node *expr)
{
	Oid			relid = RelationGetRelid(rel);
	Bitmapset  *attrs = NULL;
	int			k = -1;
	AclResult	acl = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT);

	if (acl == ACLCHECK_OK)
		return;
	pull_varattnos(expr, 1, &attrs);
	while ((k = bms_next_member(attrs, k)) >= 0)
	{
		AttrNumber	attno = k + FirstLowInvalidHeapAttributeNumber;

		if (attno == InvalidAttrNumber)
			acl = pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT,
											ACLMASK_ALL);
		else
			acl = pg_attribute_aclcheck(relid, attno, GetUserId(), ACL_SELECT);
		if (acl != ACLCHECK_OK)
			break;
	}
	/* an expression without columns wants the right to see the table at all */
	if (attrs == NULL)
		acl = pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT,
										ACLMASK_ANY);
	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, rel->rd_rel->relkind == RELKIND_MATVIEW ?
					   OBJECT_MATVIEW : OBJECT_TABLE,
					   RelationGetRelationName(rel));
}

/*
 * ERROR if an expression has virtual generated columns: as CREATE INDEX.
 */
static void
art_est_check_virtual(Relation rel, const Expr *expr)
{
	Bitmapset  *attrs = NULL;
	int			k = -1;

	pull_varattnos((Node *) expr, 1, &attrs);
	while ((k = bms_next_member(attrs, k)) >= 0)
	{
		AttrNumber	attno = k + FirstLowInvalidHeapAttributeNumber;

		if (attno > 0 && TupleDescAttr(RelationGetDescr(rel), attno - 1)->attgenerated ==
			ATTRIBUTE_GENERATED_VIRTUAL)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("indexes on virtual generated columns are not supported")));
	}
}

/*
 * The text of one expression, nothing around it: its raw parse tree.
 */
static Node *
art_est_parse(const char *text)
{
	List	   *raw = raw_parser(text, RAW_PARSE_PLPGSQL_EXPR);
	SelectStmt *s = castNode(SelectStmt, linitial_node(RawStmt, raw)->stmt);
	SelectStmt *plain = makeNode(SelectStmt);
	ResTarget  *target;

	/* that grammar takes whatever may follow SELECT */
	if (list_length(s->targetList) == 1)
	{
		target = linitial_node(ResTarget, s->targetList);
		plain->targetList = s->targetList;
		if (equal(s, plain) && target->name == NULL && target->indirection == NIL)
			return target->val;
	}
	ereport(ERROR,
			(errcode(ERRCODE_SYNTAX_ERROR),
			 errmsg("\"%s\" is not an expression", text)));
	return NULL;
}

/*
 * A position in an error is one in the expression, not in the statement that
 * called us.
 */
static void
art_est_error(void *arg)
{
	int			pos = geterrposition();

	if (pos > 0)
	{
		errposition(0);
		internalerrposition(pos);
		internalerrquery((const char *) arg);
	}
}

static Expr *
art_est_var(Relation rel, AttrNumber attno)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attno - 1);

	return (Expr *) makeVar(1, attno, att->atttypid, att->atttypmod,
							att->attcollation, 0);
}

/*
 * One element of columns: the name of a column, or an expression in
 * parentheses with the rules of CREATE INDEX.
 */
static Expr *
art_est_column(Relation rel, const char *text)
{
	AttrNumber	attno = get_attnum(RelationGetRelid(rel), text);
	ErrorContextCallback context;
	ParseState *pstate;
	Expr	   *expr;

	if (attno > 0)
	{
		expr = art_est_var(rel, attno);
		art_est_check_virtual(rel, expr);
		return expr;
	}
	if (text[strspn(text, " \t\n\r\f\v")] != '(')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						text, RelationGetRelationName(rel)),
				 errhint("Give the names of columns as they are in the catalog, or expressions in parentheses.")));

	context.callback = art_est_error;
	context.arg = unconstify(char *, text);
	context.previous = error_context_stack;
	error_context_stack = &context;
	pstate = make_parsestate(NULL);
	pstate->p_sourcetext = text;
	addNSItemToQuery(pstate,
					 addRangeTableEntryForRelation(pstate, rel, AccessShareLock,
												   NULL, false, true),
					 false, true, true);
	expr = (Expr *) transformExpr(pstate, art_est_parse(text),
								  EXPR_KIND_INDEX_EXPRESSION);
	assign_expr_collations(pstate, (Node *) expr);
	free_parsestate(pstate);
	error_context_stack = context.previous;

	art_est_check_virtual(rel, expr);
	expr = expression_planner(expr);
	if (contain_mutable_functions((Node *) expr))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("functions in index expression must be marked IMMUTABLE")));
	return expr;
}

/*
 * Set up the columns that the caller names, each with its type and operator class.
 */
static void
art_est_columns(ArtEstimate *est, ArrayType *columns)
{
	Datum	   *elems;
	bool	   *nulls;
	int			n;
	Oid			am = get_am_oid(ART_AM_NAME, false);

	deconstruct_array(columns, TEXTOID, -1, false, TYPALIGN_INT, &elems, &nulls, &n);
	if (n == 0 || ARR_NDIM(columns) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("columns must be an array of one dimension with at least one element")));
	if (n > INDEX_MAX_KEYS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("cannot use more than %d columns in an index", INDEX_MAX_KEYS)));
	for (int i = 0; i < n; i++)
	{
		Expr	   *expr;
		Oid			type;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("columns must not contain nulls")));
		expr = art_est_column(est->rel, TextDatumGetCString(elems[i]));
		art_est_check_columns(est->rel, (Node *) expr);
		type = exprType((Node *) expr);
		est->exprs[i] = expr;
		est->types[i] = type;
		est->collations[i] = exprCollation((Node *) expr);
		est->opclasses[i] = GetDefaultOpClass(type, am);
		if (!OidIsValid(est->opclasses[i]))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("data type %s has no default operator class for access method \"%s\"",
							format_type_be(type), ART_AM_NAME),
					 errhint("Use a btree index.")));
	}
	est->ncols = n;
	est->eval = art_eval_begin_own(est->exprs, n);
}

/*
 * The columns of an index and its predicate.  ERROR unless the current user may read what
 * they are made of.
 */
static void
art_est_index(ArtEstimate *est, Relation index)
{
	const IndexInfo *info;
	ListCell   *lc;

	est->eval = art_eval_begin(index);
	info = est->eval->info;
	est->ncols = info->ii_NumIndexAttrs;
	for (int i = 0; i < est->ncols; i++)
	{
		AttrNumber	attno = info->ii_IndexAttrNumbers[i];

		if (attno > 0)
			art_est_check_columns(est->rel, (Node *) art_est_var(est->rel, attno));
	}
	foreach(lc, info->ii_Expressions)
		art_est_check_columns(est->rel, lfirst(lc));
	if (info->ii_Predicate != NIL)
		art_est_check_columns(est->rel, (Node *) info->ii_Predicate);
}

/* ---- the sample ---- */

static inline uint32
art_est_len(const uint8 *key)
{
	uint32		len;

	memcpy(&len, key - sizeof(uint32), sizeof(len));
	return len;
}

static void
art_est_forget(ArtEstimate *est, uint64 i)
{
	est->bytes -= art_est_len(est->keys[i]);
	pfree(est->keys[i] - sizeof(uint32));
}

/*
 * Of the keys only so many stay, any of them, and no more are kept from now on: still
 * each row with the same chance.
 */
static void
art_est_thin(ArtEstimate *est, uint64 keep)
{
	while (est->n > keep)
	{
		uint64		i = (uint64) (sampler_random_fract(&est->rng) * (double) est->n);

		art_est_forget(est, i);
		est->keys[i] = est->keys[--est->n];
	}
	est->most = est->n;
}

/*
 * Where the next row's key goes, ART_EST_NOWHERE if it is not to be kept.
 */
static uint64
art_est_place(ArtEstimate *est)
{
	uint64		i;

	est->rows++;
	if (est->n < est->most)
		return est->n;
	/* not to be sized exactly, so a sample does, which is sooner sorted and sized */
	if (est->n > ART_EST_SAMPLE)
		art_est_thin(est, ART_EST_SAMPLE);
	i = (uint64) (sampler_random_fract(&est->rng) * (double) est->rows);
	if (i >= est->n)
		return ART_EST_NOWHERE;
	art_est_forget(est, i);
	return i;
}

/*
 * Put a key in its place.  When that is too much memory, half of the keys go.
 */
static void
art_est_keep(ArtEstimate *est, uint64 i, const ArtBuf *key, uint64 tid)
{
	uint32		len = key->len + AX_TID_BYTES;
	uint8	   *p = MemoryContextAllocHuge(est->cxt, len + sizeof(uint32));

	p += sizeof(uint32);
	memcpy(p - sizeof(uint32), &len, sizeof(uint32));
	memcpy(p, key->data, key->len);
	ax_put_tid(p + key->len, tid);
	est->keys[i] = p;
	est->bytes += len;
	if (i == est->n)
		est->n++;
	while (est->bytes > est->budget && est->n > 1)
		art_est_thin(est, est->n / 2);
}

/* A sample is being drawn. */
typedef struct Drawing
{
	ArtEstimate *est;
	const ArtKeyDesc *kd;
	ArtBuf		key;
} Drawing;

/* A row of the sample's blocks. */
static void
art_est_row(TupleTableSlot *slot, void *arg)
{
	Drawing    *d = (Drawing *) arg;
	ArtEstimate *est = d->est;
	uint64		i;
	MemoryContext old;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	art_eval_next(est->eval);
	if (!art_eval_has(est->eval, slot))
		return;
	i = art_est_place(est);
	if (i == ART_EST_NOWHERE)
		return;
	old = MemoryContextSwitchTo(art_eval_memory(est->eval));
	art_eval_columns(est->eval, slot, values, isnull);
	(void) art_encode(d->kd, values, isnull, &d->key);
	MemoryContextSwitchTo(old);
	art_est_keep(est, i, &d->key, art_tid_pack(&slot->tts_tid));
}

/*
 * Read the sample's blocks.  Returns the rows that the table has, exactly or
 * by the rows of the blocks read.
 */
static double
art_est_sample(ArtEstimate *est, const ArtKeyDesc *kd)
{
	Drawing		d = {.est = est, .kd = kd};
	BlockNumber nblocks = RelationGetNumberOfBlocks(est->rel);
	bool		whole = nblocks <= ART_EST_BLOCKS;
	BlockNumber read;

	art_buf_init(&d.key, CurrentMemoryContext, 64);
	sampler_random_init_state(ART_EST_SEED, &est->rng);
	est->most = whole ? ART_EST_ROWS : ART_EST_BLOCKS;
	est->keys = palloc(est->most * sizeof(uint8 *));
	est->budget = (Size) maintenance_work_mem * 1024;
	est->cxt = CurrentMemoryContext;
	read = art_sample_blocks(est->rel, nblocks, ART_EST_BLOCKS, ART_EST_SEED, art_est_row, &d);
	art_eval_end(est->eval);
	if (whole)
		return (double) est->rows;
	return (double) est->rows * nblocks / read;
}

static int
art_est_cmp(const void *a, const void *b)
{
	const uint8 *x = *(const uint8 *const *) a;
	const uint8 *y = *(const uint8 *const *) b;

	/* no key is a prefix of another */
	return memcmp(x, y, Min(art_est_len(x), art_est_len(y)));
}

/*
 * Rows that a build sorts and loads at a time: art_run_add's account of
 * maintenance_work_mem.
 */
static double
art_est_run(const ArtEstimate *est, const ArtKeyDesc *kd)
{
	bool		brief = kd->natts == 1 && kd->fixed &&
		kd->fixed_len <= 1 + sizeof(uint64);
	double		bytes = 0;

	for (uint64 i = 0; i < est->n; i++)
	{
		uint32		len = art_est_len(est->keys[i]);

		bytes += brief ? 2 * sizeof(uint64) + len :
			MAXALIGN(len + sizeof(uint32)) + 2 * sizeof(uint64) + sizeof(uint32);
	}
	return est->n == 0 ? 0 : (double) maintenance_work_mem * 1024 / (bytes / est->n);
}

/*
 * A tree of compared keys has no compression.  It has the keys, a slot each,
 * in pages as full as a build leaves them; and a page above for each pageful
 * of pages.
 */
static uint64
art_est_compared(const ArtEstimate *est, double rows)
{
	double		page = AX_PAGE_SIZE_DEFAULT;
	double		in_page = 0;
	double		outside = 0;
	double		each;
	double		leaves;

	if (est->n == 0)
		return AX_PAGE;
	for (uint64 i = 0; i < est->n; i++)
	{
		uint32		len = art_est_len(est->keys[i]);

		if (len > page / 4)
		{
			in_page += 12;
			outside += len + 64;
		}
		else
			in_page += len + 4;
	}
	each = in_page / est->n;
	leaves = rows * each / ((page - 24) * ART_DEFAULT_FILLFACTOR / 100 - each / 2) + 1;
	return (uint64) (leaves * page * (1 + (each + 8) / page) +
					 rows * outside / est->n) + AX_PAGE;
}

/*
 * The size of an index of the sample's rows.
 */
static uint64
art_est_bytes(ArtEstimate *est, const ArtKeyDesc *kd)
{
	double		rows = art_est_sample(est, kd);
	uint32	   *lens;

	if (kd->compared)
		return art_est_compared(est, rows);
	qsort(est->keys, est->n, sizeof(uint8 *), art_est_cmp);
	CHECK_FOR_INTERRUPTS();
	lens = palloc(Max(est->n, 1) * sizeof(uint32));
	for (uint64 i = 0; i < est->n; i++)
		lens[i] = art_est_len(est->keys[i]);
	return ax_estimate(&(ax_keys) {(const uint8_t *const *) est->keys, lens, 0, est->n},
					   rows, ART_DEFAULT_FILLFACTOR, art_est_run(est, kd),
					   palloc(AX_ESTIMATE_WORK));
}

/*
 * artidx_estimate(relation regclass, columns text[]).
 *
 * Locks: takes AccessShareLock on the table and gives it back.
 */
Datum
artidx_estimate(PG_FUNCTION_ARGS)
{
	ArtEstimate est = {0};
	uint64		bytes;

	est.rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	art_est_check_relation(est.rel);
	art_est_columns(&est, PG_GETARG_ARRAYTYPE_P(1));
	bytes = art_est_bytes(&est, art_keydesc_of_types(est.ncols, est.types, est.opclasses,
													 est.collations, CurrentMemoryContext));
	table_close(est.rel, AccessShareLock);
	PG_RETURN_INT64((int64) bytes);
}

/*
 * The sample of an index's rows, as the table's owner if this process may be, and its size.  Not
 * everybody may see what an error says of a row.
 */
static uint64
art_est_index_bytes(ArtEstimate *est, Relation index)
{
	MemoryContext cxt = CurrentMemoryContext;
	bool		may_see = art_may_see_rows(index);
	ArtAsOwner	save;
	uint64		bytes;

	art_as_owner_begin(est->rel, &save);
	PG_TRY();
	{
		bytes = art_est_bytes(est, art_keydesc_build(index, CurrentMemoryContext));
	}
	PG_CATCH();
	{
		art_rethrow_hidden(index, may_see || !save.is, cxt);
	}
	PG_END_TRY();
	art_as_owner_end(&save);
	return bytes;
}

/*
 * The size of an index.  False if it is gone.
 *
 * Locks: takes AccessShareLock on the table and the index and gives them back.
 */
static bool
art_est_of_index(Oid indexoid, uint64 *bytes)
{
	ArtEstimate est = {0};
	Oid			heapoid = IndexGetRelation(indexoid, true);
	Relation	index;

	est.rel = OidIsValid(heapoid) ? try_relation_open(heapoid, AccessShareLock) : NULL;
	index = try_relation_open(indexoid, AccessShareLock);
	if (index == NULL)
	{
		if (est.rel != NULL)
			relation_close(est.rel, AccessShareLock);
		return false;
	}
	if (est.rel == NULL || (index->rd_rel->relam != BTREE_AM_OID &&
							index->rd_rel->relam != get_am_oid(ART_AM_NAME, false)))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index of access method \"%s\" or \"%s\"",
						RelationGetRelationName(index), "btree", ART_AM_NAME)));
	art_est_check_relation(est.rel);
	art_must_evaluate(index, "estimate");
	art_est_index(&est, index);
	*bytes = art_est_index_bytes(&est, index);
	relation_close(index, AccessShareLock);
	relation_close(est.rel, AccessShareLock);
	return true;
}

/*
 * artidx_estimate(index regclass): of an index of btree, if it were one of art, or of
 * one of art, if it were built now.  NULL if it is gone.
 */
Datum
artidx_estimate_index(PG_FUNCTION_ARGS)
{
	uint64		bytes;

	if (!art_est_of_index(PG_GETARG_OID(0), &bytes))
		PG_RETURN_NULL();
	PG_RETURN_INT64((int64) bytes);
}

/*
 * The same for artidx_estimate_database: an index that cannot be estimated is NULL, with a
 * WARNING that says why.  One bad expression is not to keep everybody from all the others.
 */
Datum
artidx_estimate_or_null(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	MemoryContext cxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool there = false;
	uint64		bytes = 0;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(cxt);
	PG_TRY();
	{
		there = art_est_of_index(indexoid, &bytes);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *err = art_error_of_part(cxt, owner);

		ereport(WARNING,
				(errcode(err->sqlerrcode),
				 errmsg("could not estimate index \"%s\": %s", get_rel_name(indexoid), err->message),
				 err->detail ? errdetail_internal("%s", err->detail) : 0,
				 err->hint ? errhint("%s", err->hint) : 0));
		FreeErrorData(err);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(cxt);
	CurrentResourceOwner = owner;
	if (!there)
		PG_RETURN_NULL();
	PG_RETURN_INT64((int64) bytes);
}
