/*
 * art_keytest.c
 *	  Key encodings and scan plans of artidx against brute force.
 *
 * The files under test are compiled in, statics and all.  The index named
 * in a call only describes the columns (types, operator classes, directions):
 * a btree index does as well as an art one, and nothing is read from it.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "portability/instr_time.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

/* the files under test */
#include "../../../src/eval/whose_code.c"
#include "../../../src/eval/evaluate.c"
#include "../../../src/key/buffer.c"
#include "../../../src/key/compared_order.c"
#include "../../../src/key/doubted_order.c"
#include "../../../src/key/encode.c"
#include "../../../src/key/flatten.c"
#include "../../../src/key/encode_numeric.c"
#include "../../../src/key/encode_types.c"
#include "../../../src/key/array_keys.c"
#include "../../../src/key/row_keys.c"
#include "../../../src/key/scan_keys.c"

PG_MODULE_MAGIC;

PGDLLEXPORT PG_FUNCTION_INFO_V1(art_keytest_order);
PGDLLEXPORT PG_FUNCTION_INFO_V1(art_keytest_scan);
PGDLLEXPORT PG_FUNCTION_INFO_V1(art_keytest_speed);
PGDLLEXPORT PG_FUNCTION_INFO_V1(art_keytest_encode);

typedef struct TestRow
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint8	   *key;			/* with TID */
	uint32		len;
} TestRow;

typedef struct TestRows
{
	TestRow    *rows;
	int			n;
} TestRows;

/* All rows of the table as keys of the index. */
static TestRows
load_rows(Relation index, const ArtKeyDesc *kd)
{
	Relation	heap = table_open(index->rd_index->indrelid, AccessShareLock);
	IndexInfo  *info = BuildIndexInfo(index);
	EState	   *estate = CreateExecutorState();
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	TableScanDesc scan = table_beginscan(heap, GetActiveSnapshot(), 0, NULL);
	TestRows	out = {palloc(sizeof(TestRow)), 0};
	ArtBuf		buf;
	int			cap = 1;

	art_buf_init(&buf, CurrentMemoryContext, 1);
	GetPerTupleExprContext(estate)->ecxt_scantuple = slot;
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		TestRow    *r;
		int			i;
		bool		anynull = false;

		if (out.n == cap)
			out.rows = repalloc_huge(out.rows, (cap *= 2) * sizeof(TestRow));
		r = &out.rows[out.n++];
		slot_getallattrs(slot);
		FormIndexDatum(info, slot, estate, r->values, r->isnull);
		if (art_encode(kd, r->values, r->isnull, &buf) !=
			(memchr(r->isnull, true, kd->natts) != NULL))
			elog(ERROR, "art_encode is wrong about NULLs");
		for (i = 0; i < kd->nall; i++)
		{
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

			anynull |= r->isnull[i];
			if (!r->isnull[i])
				r->values[i] = datumCopy(r->values[i], att->attbyval, att->attlen);
		}
		if (kd->fixed && !anynull && buf.len != kd->fixed_len)
			elog(ERROR, "fixed length is wrong");
		art_buf_reserve(&buf, AX_TID_BYTES);
		ax_put_tid(buf.data + buf.len, art_tid_pack(&slot->tts_tid));
		r->len = buf.len + AX_TID_BYTES;
		r->key = palloc(r->len);
		memcpy(r->key, buf.data, r->len);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	table_close(heap, AccessShareLock);
	return out;
}

/* What the index's own order says of two rows. */
static int
compare_rows(Relation index, const ArtKeyDesc *kd, const TestRow *a, const TestRow *b)
{
	int			i;

	for (i = 0; i < kd->natts; i++)
	{
		bool		nulls_first = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
		int			c;

		if (a->isnull[i] && b->isnull[i])
			continue;
		if (a->isnull[i])
			return nulls_first ? -1 : 1;
		if (b->isnull[i])
			return nulls_first ? 1 : -1;
		c = DatumGetInt32(FunctionCall2Coll(index_getprocinfo(index, i + 1, 1),
											index->rd_indcollation[i],
											a->values[i], b->values[i]));
		if (c != 0)
			return ((index->rd_indoption[i] & INDOPTION_DESC) != 0) == (c < 0) ? 1 : -1;
	}
	return 0;
}

static int
sign(int c)
{
	return (c > 0) - (c < 0);
}

Datum
art_keytest_order(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	ArtKeyDesc *kd = art_keydesc_build(index, CurrentMemoryContext);
	TestRows	t = load_rows(index, kd);
	int			i,
				j;

	for (i = 0; i < t.n; i++)
	{
		TestRow    *a = &t.rows[i];
		uint32		alen = a->len - AX_TID_BYTES;
		uint32		acols = art_cols_len(kd, a->key, alen);
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];
		const uint8 *payload = a->key + acols;

		if (art_key_prefix_len(kd, a->key, a->len, kd->natts) != acols)
			elog(ERROR, "row %d: art_key_prefix_len does not find the end", i);
		for (j = 0; j < kd->nall && payload != NULL; j++)
		{
			if (j >= kd->natts)
				payload = art_skip_col_within(&kd->cols[j], payload, a->key + alen);
			else if (kd->cols[j].lossy && !a->isnull[j])
				payload = art_payload_skip(&kd->cols[j], payload, a->key + alen);
		}
		if (payload != a->key + alen)
			elog(ERROR, "row %d: the payload does not end with the key", i);
		art_decode(kd, a->key, a->len, i % 2 ? kd->nall : kd->natts, values, isnull);
		for (j = 0; j < (i % 2 ? kd->nall : kd->natts); j++)
		{
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), j);

			if (isnull[j] != a->isnull[j] ||
				(!isnull[j] && !datum_image_eq(a->values[j], values[j],
											   att->attbyval, att->attlen)))
				elog(ERROR, "row %d column %d does not decode to itself", i, j + 1);
		}
		for (j = 0; j < t.n; j++)
		{
			TestRow    *b = &t.rows[j];
			uint32		blen = b->len - AX_TID_BYTES;
			uint32		bcols = art_cols_len(kd, b->key, blen);
			int			c = kd->compared ? art_key_order(kd, a->key, alen, b->key, blen) :
				memcmp(a->key, b->key, Min(acols, bcols));

			CHECK_FOR_INTERRUPTS();
			if (!kd->compared && c == 0 && acols != bcols)
				elog(ERROR, "key of row %d is a prefix of row %d's", i, j);
			if (!kd->compared && alen != blen &&
				memcmp(a->key, b->key, Min(alen, blen)) == 0)
				elog(ERROR, "key and payload of row %d are a prefix of row %d's", i, j);
			if (sign(c) != sign(compare_rows(index, kd, a, b)))
				elog(ERROR, "rows %d and %d: encoded %d, operator class %d",
					 i, j, sign(c), sign(compare_rows(index, kd, a, b)));
		}
	}
	index_close(index, AccessShareLock);
	PG_RETURN_INT64((int64) t.n * t.n);
}

/* One column of the pool. */
typedef struct TestPool
{
	Oid			type;
	Datum	   *values;
	int			n;
} TestPool;

static TestPool *
load_pool(Oid relid, int *npools)
{
	Relation	rel = table_open(relid, AccessShareLock);
	TupleDesc	desc = RelationGetDescr(rel);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
	TestPool   *pools = palloc0(desc->natts * sizeof(TestPool));
	int			cap = 1;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		pools[i].type = TupleDescAttr(desc, i)->atttypid;
		pools[i].values = palloc(sizeof(Datum));
	}
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		slot_getallattrs(slot);
		for (i = 0; i < desc->natts; i++)
		{
			TestPool   *p = &pools[i];

			if (slot->tts_isnull[i])
				continue;
			if (p->n >= cap)
			{
				int			k;

				cap *= 2;
				for (k = 0; k < desc->natts; k++)
					pools[k].values = repalloc(pools[k].values, cap * sizeof(Datum));
			}
			p->values[p->n++] = datumCopy(slot->tts_values[i],
										  TupleDescAttr(desc, i)->attbyval,
										  TupleDescAttr(desc, i)->attlen);
		}
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	*npools = desc->natts;
	table_close(rel, AccessShareLock);
	return pools;
}

/* A random key on a column; false: the pool has nothing for it. */
static bool
random_key(Relation index, int col, TestPool *pools, int npools,
		   pg_prng_state *rng, bool arrays, ScanKey key)
{
	StrategyNumber strategy = 1 + pg_prng_uint64_range(rng, 0, 4);
	TestPool   *p = &pools[pg_prng_uint64_range(rng, 0, npools - 1)];
	Oid			op;

	switch (pg_prng_uint64_range(rng, 0, 15))
	{
		case 0:
			ScanKeyEntryInitialize(key, SK_ISNULL | SK_SEARCHNULL, col + 1,
								   InvalidStrategy, InvalidOid, InvalidOid,
								   InvalidOid, (Datum) 0);
			return true;
		case 1:
			ScanKeyEntryInitialize(key, SK_ISNULL | SK_SEARCHNOTNULL, col + 1,
								   InvalidStrategy, InvalidOid, InvalidOid,
								   InvalidOid, (Datum) 0);
			return true;
		case 2:
		case 3:
		case 4:
		case 5:
			strategy = BTEqualStrategyNumber;
			break;
		default:
			break;
	}

	op = get_opfamily_member(index->rd_opfamily[col], index->rd_opcintype[col],
							 p->type, strategy);
	if (!OidIsValid(op) || p->n == 0)
		return false;
	ScanKeyEntryInitialize(key, 0, col + 1, strategy,
						   p->type == index->rd_opcintype[col] &&
						   pg_prng_bool(rng) ? InvalidOid : p->type,
						   index->rd_indcollation[col], get_opcode(op),
						   p->values[pg_prng_uint64_range(rng, 0, p->n - 1)]);
	if (arrays && pg_prng_uint64_range(rng, 0, 2) > 0)
	{
		Datum		values[6];
		bool		isnull[6];
		int			n = (int) pg_prng_uint64_range(rng, 0, 6);
		int			one = 1;
		int16		typlen;
		bool		byval;
		char		align;

		for (int i = 0; i < n; i++)
		{
			isnull[i] = pg_prng_uint64_range(rng, 0, 9) == 0;
			values[i] = p->values[pg_prng_uint64_range(rng, 0, p->n - 1)];
		}
		get_typlenbyvalalign(p->type, &typlen, &byval, &align);
		key->sk_flags |= SK_SEARCHARRAY;
		key->sk_argument = PointerGetDatum(n == 0 ? construct_empty_array(p->type) :
										   construct_md_array(values, isnull, 1, &n, &one,
															  p->type, typlen, byval, align));
	}
	if (pg_prng_uint64_range(rng, 0, 49) == 0)
	{
		key->sk_flags |= SK_ISNULL;
		key->sk_argument = (Datum) 0;
	}
	return true;
}

/* Does the value satisfy an array key, by its operator? */
static bool
any_matches(ScanKey k, Datum value)
{
	ArrayType  *arr = DatumGetArrayTypeP(k->sk_argument);
	Datum	   *values;
	bool	   *isnull;
	int			n;
	int16		typlen;
	bool		byval;
	char		align;

	get_typlenbyvalalign(ARR_ELEMTYPE(arr), &typlen, &byval, &align);
	deconstruct_array(arr, ARR_ELEMTYPE(arr), typlen, byval, align, &values, &isnull, &n);
	for (int i = 0; i < n; i++)
	{
		if (!isnull[i] &&
			DatumGetBool(FunctionCall2Coll(&k->sk_func, k->sk_collation, value, values[i])))
			return true;
	}
	return false;
}

/* Order of two positions of keys. */
static int
key_pos_cmp(const ArtKeyDesc *kd, const uint8 *a, uint32 alen, bool aafter,
			const uint8 *b, uint32 blen, bool bafter)
{
	if (kd->compared)
		return art_position_cmp(kd, a, alen, aafter, b, blen, bafter);
	return art_pos_cmp(kd, 0, &(ax_bound) {a, alen, aafter}, &(ax_bound) {b, blen, bafter});
}

/* Is the entry within the range that the plan stands at? */
static bool
in_range(const ArtScanPlan *plan, const ArtKeyDesc *kd, const TestRow *r)
{
	return key_pos_cmp(kd, r->key, r->len, false,
					   plan->lo.data, plan->lo_len, plan->lo_after) > 0 &&
		key_pos_cmp(kd, r->key, r->len, false,
					plan->hi.data, plan->hi_len, plan->hi_after) < 0;
}

/*
 * Of a plan with arrays: marks, by in[], what lies in any of its ranges, which
 * must be in order, apart and within the outer one, both ways.
 */
static void
check_ranges(ArtScanPlan *plan, const ArtKeyDesc *kd, const TestRows *t, char *in,
			 bool backward, int round)
{
	ArtBuf		end;
	bool		end_after = false;
	bool		first = true;
	ax_bound	lo,
				hi;
	uint32		at[INDEX_MAX_KEYS];

	art_buf_init(&end, CurrentMemoryContext, 64);
	art_scanplan_outer(plan, &lo, &hi);
	if (!art_scanplan_first(plan, backward))
		return;
	do
	{
		const ArtBuf *from = backward ? &plan->hi : &plan->lo;
		const ArtBuf *to = backward ? &plan->lo : &plan->hi;
		bool		from_after = backward ? plan->hi_after : plan->lo_after;
		int			c;

		if (!first)
		{
			c = key_pos_cmp(kd, end.data, end.len, end_after,
							from->data, from->len, from_after);
			if (backward ? c < 0 : c > 0)
				elog(ERROR, "round %d: ranges of arrays overlap or are out of order", round);
		}
		if (key_pos_cmp(kd, plan->lo.data, plan->lo_len, plan->lo_after,
						plan->hi.data, plan->hi_len, plan->hi_after) >= 0)
			elog(ERROR, "round %d: an empty range among those of arrays", round);
		if (key_pos_cmp(kd, lo.key, lo.len, lo.after,
						plan->lo.data, plan->lo_len, plan->lo_after) > 0 ||
			key_pos_cmp(kd, hi.key, hi.len, hi.after,
						plan->hi.data, plan->hi_len, plan->hi_after) < 0)
			elog(ERROR, "round %d: a range that is not within the outer one", round);
		first = false;
		end.len = 0;
		art_plan_append(&end, to->data, to->len);
		end_after = backward ? plan->lo_after : plan->hi_after;
		for (int i = 0; i < t->n; i++)
		{
			if (in_range(plan, kd, &t->rows[i]))
				in[i]++;
		}
		/* tell and goto are what they say */
		(void) art_scanplan_tell(plan, at);
		art_scanplan_goto(plan, at);
	} while (art_scanplan_next(plan, backward));
}

/* Does the row satisfy all keys, by their operators? */
static bool
row_matches(const TestRow *r, ScanKey keys, int nkeys)
{
	int			i;

	for (i = 0; i < nkeys; i++)
	{
		ScanKey		k = &keys[i];
		int			c = k->sk_attno - 1;

		if (k->sk_flags & SK_SEARCHNULL)
		{
			if (!r->isnull[c])
				return false;
		}
		else if (k->sk_flags & SK_SEARCHNOTNULL)
		{
			if (r->isnull[c])
				return false;
		}
		else if ((k->sk_flags & SK_ISNULL) == 0 && !r->isnull[c] &&
				 (k->sk_flags & SK_SEARCHARRAY))
		{
			if (!any_matches(k, r->values[c]))
				return false;
		}
		else if ((k->sk_flags & SK_ISNULL) || r->isnull[c] ||
				 !DatumGetBool(FunctionCall2Coll(&k->sk_func, k->sk_collation,
												 r->values[c], k->sk_argument)))
			return false;
	}
	return true;
}

Datum
art_keytest_scan(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	ArtKeyDesc *kd = art_keydesc_build(index, CurrentMemoryContext);
	TestRows	t = load_rows(index, kd);
	int			npools;
	TestPool   *pools = load_pool(PG_GETARG_OID(1), &npools);
	int			rounds = PG_GETARG_INT32(2);
	bool		arrays = PG_GETARG_BOOL(4);
	pg_prng_state rng;
	ArtScanPlan plan;
	int64		count[6] = {0};
	Datum		values[6];
	bool		nulls[6] = {0};
	TupleDesc	desc;
	int			round;
	int			i;
	MemoryContext tmp = AllocSetContextCreate(CurrentMemoryContext, "keytest",
											  ALLOCSET_DEFAULT_SIZES);

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	pg_prng_seed(&rng, PG_GETARG_INT32(3));
	art_scanplan_init(&plan, CurrentMemoryContext);
	for (round = 0; round < rounds; round++)
	{
		ScanKeyData keys[8];
		char	   *in = NULL;
		int			nkeys = 0;
		int			want = pg_prng_uint64_range(&rng, 0, 2 + kd->natts);
		MemoryContext old = MemoryContextSwitchTo(tmp);

		CHECK_FOR_INTERRUPTS();
		for (i = 0; i < want && nkeys < 8; i++)
		{
			if (random_key(index, pg_prng_uint64_range(&rng, 0, kd->natts - 1),
						   pools, npools, &rng, arrays, &keys[nkeys]))
				nkeys++;
		}

		art_scanplan_set(&plan, kd, index, keys, nkeys);
		count[0]++;
		count[1] += plan.impossible;
		count[2] += plan.point;
		count[3] += plan.nresidual > 0;
		count[4] += plan.nkeys > 0;
		if (plan.point &&
			(plan.impossible || plan.nresidual > 0 || plan.lo_after ||
			 !plan.hi_after || plan.lo_len != plan.hi_len ||
			 memcmp(plan.lo.data, plan.hi.data, plan.lo_len) != 0))
			elog(ERROR, "round %d: a point that is none", round);
		if (!plan.impossible &&
			key_pos_cmp(kd, plan.lo.data, plan.lo_len, plan.lo_after,
						plan.hi.data, plan.hi_len, plan.hi_after) >= 0)
			elog(ERROR, "round %d: an empty range not called impossible", round);

		if (plan.many && !plan.impossible)
		{
			char	   *back = palloc0(t.n);

			in = palloc0(t.n);
			check_ranges(&plan, kd, &t, in, false, round);
			check_ranges(&plan, kd, &t, back, true, round);
			if (memcmp(in, back, t.n) != 0)
				elog(ERROR, "round %d: other ranges backward", round);
		}
		for (i = 0; i < t.n; i++)
		{
			TestRow    *r = &t.rows[i];
			bool		is = row_matches(r, keys, nkeys);
			bool		says = !plan.impossible &&
				(in != NULL ? in[i] == 1 : in_range(&plan, kd, r)) &&
				(plan.nresidual == 0 || art_scan_recheck(&plan, kd, r->key, r->len));

			if (is != says)
				elog(ERROR, "round %d row %d: operators say %d, plan says %d (%d keys, attno %d strategy %d subtype %u)",
					 round, i, is, says, nkeys, keys[0].sk_attno,
					 keys[0].sk_strategy, keys[0].sk_subtype);
			if (plan.point && !plan.many && is &&
				(r->len != plan.lo_len + AX_TID_BYTES ||
				 memcmp(r->key, plan.lo.data, plan.lo_len) != 0))
				elog(ERROR, "round %d row %d: matches, but is not the point", round, i);
			count[5] += is;
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(tmp);
	}
	index_close(index, AccessShareLock);
	for (i = 0; i < 6; i++)
		values[i] = Int64GetDatum(count[i]);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

Datum
art_keytest_speed(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	ArtKeyDesc *kd = art_keydesc_build(index, CurrentMemoryContext);
	TestRows	t = load_rows(index, kd);
	int			rounds = PG_GETARG_INT32(1);
	ArtBuf		buf;
	ArtScanPlan plan;
	ScanKeyData key;
	instr_time	t0,
				t1;
	Datum		values[2];
	bool		nulls[2] = {0};
	TupleDesc	desc;
	int			i;

	if (t.n == 0)
		elog(ERROR, "the table is empty");
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	art_buf_init(&buf, CurrentMemoryContext, 64);
	INSTR_TIME_SET_CURRENT(t0);
	for (i = 0; i < rounds; i++)
	{
		TestRow    *r = &t.rows[i % t.n];

		art_encode(kd, r->values, r->isnull, &buf);
	}
	INSTR_TIME_SET_CURRENT(t1);
	INSTR_TIME_SUBTRACT(t1, t0);
	values[0] = Float8GetDatum(INSTR_TIME_GET_DOUBLE(t1) * 1e9 / rounds);

	art_scanplan_init(&plan, CurrentMemoryContext);
	ScanKeyEntryInitialize(&key, 0, 1, BTEqualStrategyNumber, index->rd_opcintype[0],
						   index->rd_indcollation[0],
						   get_opcode(get_opfamily_member(index->rd_opfamily[0],
														  index->rd_opcintype[0],
														  index->rd_opcintype[0],
														  BTEqualStrategyNumber)),
						   (Datum) 0);
	INSTR_TIME_SET_CURRENT(t0);
	for (i = 0; i < rounds; i++)
	{
		TestRow    *r = &t.rows[i % t.n];

		if (r->isnull[0])
			continue;
		key.sk_argument = r->values[0];
		art_scanplan_set(&plan, kd, index, &key, 1);
	}
	INSTR_TIME_SET_CURRENT(t1);
	INSTR_TIME_SUBTRACT(t1, t0);
	values[1] = Float8GetDatum(INSTR_TIME_GET_DOUBLE(t1) * 1e9 / rounds);
	index_close(index, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

Datum
art_keytest_encode(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	ArtKeyDesc *kd = art_keydesc_build(index, CurrentMemoryContext);
	TestRows	t = load_rows(index, kd);
	bytea	   *out;
	uint32		len;

	if (t.n == 0)
		elog(ERROR, "the table is empty");
	len = t.rows[0].len - AX_TID_BYTES;
	out = palloc(len + VARHDRSZ);
	SET_VARSIZE(out, len + VARHDRSZ);
	memcpy(VARDATA(out), t.rows[0].key, len);
	index_close(index, AccessShareLock);
	PG_RETURN_BYTEA_P(out);
}
