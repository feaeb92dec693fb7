/*
 * scan_keys.c
 *	  Fuzz target: scan keys, arrays and comparisons of rows, against every row one by one.
 *
 * Some rows, and some keys on their columns.  A row satisfies the keys, by the meaning of the values
 * (values.h), exactly if it lies in one of the plan's ranges and passes what the plan leaves to test.
 * The ranges are the same both ways, in order and apart.  A skip leaves no such row out.
 */
#include "server.h"

#include "fmgr.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "art_compat.h"

/* What only a key of a type that somebody added asks for, or a date beside a timestamp: there is none here. */
static int64
nobody_asks(void)
{
	FUZZ_CLAIM(false, "a call of the server");
	return 0;
}

#undef art_date2timestamp
#undef art_date2timestamptz
#undef art_timestamp2timestamptz
#define art_date2timestamp(...)			nobody_asks()
#define art_date2timestamptz(...)		nobody_asks()
#define art_timestamp2timestamptz(...)	nobody_asks()
#define pg_next_dst_boundary(...)		((int) nobody_asks())
#define FunctionCall2Coll(...)			((Datum) nobody_asks())
#define get_opfamily_proc(...)			((Oid) nobody_asks())
#define fmgr_info_cxt(...)				((void) nobody_asks())

#include "../../src/key/buffer.c"
#include "../../src/key/encode_numeric.c"
#include "../../src/key/encode_types.c"
#include "../../src/key/encode.c"
#include "../../src/key/compared_order.c"
#include "../../src/key/array_keys.c"
#include "../../src/key/row_keys.c"
#include "../../src/key/scan_keys.c"
#include "../../src/key/skip_keys.c"

#include "values.h"

#define MOST_ROWS	12
#define MOST_KEYS	6
#define MOST_ELEMS	8

typedef struct TestRow
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint8	   *key;			/* with a TID */
	uint32		len;
} TestRow;

/* A condition, as the oracle has it. */
typedef struct Condition
{
	int			col;
	bool		null;			/* IS NULL */
	bool		notnull;		/* IS NOT NULL */
	bool		row;			/* a comparison of rows: members[n] */
	int			strategy;
	ArtKeyCol	type;			/* of the arguments */
	int			n;				/* arguments: any of them */
	Datum		args[MOST_ELEMS];
	bool		argnull[MOST_ELEMS];
	int			cols[MOST_ELEMS];	/* of the members of a row */
} Condition;

static ArtKeyDesc kd;
static TestRow rows[MOST_ROWS];
static int	nrows;
static Condition conditions[MOST_KEYS];
static int	nconditions;
static ScanKeyData keys[MOST_KEYS * MOST_ELEMS];
static int	nkeys;

/* ---- types ---- */

/* How the server keeps values of an encoding. */
static void
kept_as(const ArtKeyCol *col, int16 *len, bool *byval, char *align)
{
	*byval = true;
	*align = TYPALIGN_DOUBLE;
	switch (col->enc)
	{
		case ART_ENC_BOOL:
		case ART_ENC_CHAR:
			*len = 1;
			*align = TYPALIGN_CHAR;
			return;
		case ART_ENC_INT2:
			*len = 2;
			*align = TYPALIGN_SHORT;
			return;
		case ART_ENC_INT4:
		case ART_ENC_OID:
		case ART_ENC_DATE:
		case ART_ENC_FLOAT4:
			*len = 4;
			*align = TYPALIGN_INT;
			return;
		case ART_ENC_INT8:
		case ART_ENC_INT64:
		case ART_ENC_UINT64:
		case ART_ENC_TIMESTAMP:
		case ART_ENC_FLOAT8:
			*len = 8;
			return;
		default:
			*byval = false;
	}
	switch (col->enc)
	{
		case ART_ENC_UUID:
			*len = UUID_LEN;
			*align = TYPALIGN_CHAR;
			return;
		case ART_ENC_MAC:
			*len = (int16) col->width;
			*align = TYPALIGN_INT;
			return;
		case ART_ENC_TID:
			*len = sizeof(ItemPointerData);
			*align = TYPALIGN_SHORT;
			return;
		case ART_ENC_TIMETZ:
			*len = 12;
			return;
		case ART_ENC_INTERVAL:
			*len = sizeof(Interval);
			return;
		case ART_ENC_NAME:
			*len = NAMEDATALEN;
			*align = TYPALIGN_CHAR;
			return;
		default:
			*len = -1;
			*align = TYPALIGN_INT;
	}
}

/* The column of a type, as far as its values go. */
static ArtKeyCol
column_of(Oid type)
{
	ArtKeyCol	col = {0};

	for (int i = 0; i < (int) lengthof(art_encodings); i++)
	{
		if (art_encodings[i].opcintype != type)
			continue;
		col.enc = art_encodings[i].enc;
		col.width = art_encodings[i].width;
		col.typid = type;
	}
	FUZZ_CLAIM(col.typid == type, "no column of type %u", type);
	return col;
}

/* The type of a key's argument: the column's, or one that its encoding takes as well. */
static ArtKeyCol
argument_type(fuzz_in *in, const ArtKeyCol *col)
{
	static const Oid ints[] = {INT2OID, INT4OID, INT8OID};
	uint8		which = fuzz_byte(in);

	if (col->enc == ART_ENC_INT2 || col->enc == ART_ENC_INT4 || col->enc == ART_ENC_INT8)
		return column_of(ints[which % 3]);
	if (col->enc == ART_ENC_FLOAT4 || col->enc == ART_ENC_FLOAT8)
		return column_of(which & 1 ? FLOAT4OID : FLOAT8OID);
	if (col->enc == ART_ENC_TEXT || col->enc == ART_ENC_NAME)
		return column_of(which & 1 ? TEXTOID : NAMEOID);
	return *col;
}

/* A number of any of the three types. */
static int64
integer_of(ArtEncKind enc, Datum d)
{
	return enc == ART_ENC_INT2 ? DatumGetInt16(d) : enc == ART_ENC_INT4 ? DatumGetInt32(d) : DatumGetInt64(d);
}

static float8
float_of(ArtEncKind enc, Datum d)
{
	return enc == ART_ENC_FLOAT4 ? (float8) DatumGetFloat4(d) : DatumGetFloat8(d);
}

static uint32
text_of(ArtEncKind enc, Datum d, const char **p)
{
	if (enc == ART_ENC_NAME)
	{
		*p = NameStr(*DatumGetName(d));
		return (uint32) strnlen(*p, NAMEDATALEN);
	}
	*p = VARDATA_ANY(DatumGetPointer(d));
	return VARSIZE_ANY_EXHDR(DatumGetPointer(d));
}

/* A value of the column and an argument of that type. */
static int
compare_argument(const ArtKeyCol *col, Datum value, const ArtKeyCol *type, Datum arg)
{
	const char *p;
	const char *q;
	uint32		n;
	uint32		m;

	if (col->enc == type->enc)
		return compare_values(col, value, arg);
	switch (col->enc)
	{
		case ART_ENC_INT2:
		case ART_ENC_INT4:
		case ART_ENC_INT8:
			return COMPARE(integer_of(col->enc, value), integer_of(type->enc, arg));
		case ART_ENC_FLOAT4:
		case ART_ENC_FLOAT8:
			return compare_floats(float_of(col->enc, value), float_of(type->enc, arg));
		default:
			n = text_of(col->enc, value, &p);
			m = text_of(type->enc, arg, &q);
			return compare_bytes(p, n, q, m);
	}
}

/* ---- the oracle ---- */

static bool
satisfies(int strategy, int c)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return c < 0;
		case BTLessEqualStrategyNumber:
			return c <= 0;
		case BTEqualStrategyNumber:
			return c == 0;
		case BTGreaterEqualStrategyNumber:
			return c >= 0;
		default:
			return c > 0;
	}
}

/* The first member that differs decides, and a NULL before that says no. */
static bool
row_satisfies(const TestRow *r, const Condition *c)
{
	int			order = 0;

	for (int i = 0; i < c->n && order == 0; i++)
	{
		if (c->argnull[i] || r->isnull[c->cols[i]])
			return false;
		order = compare_values(&kd.cols[c->cols[i]], r->values[c->cols[i]], c->args[i]);
	}
	return satisfies(c->strategy, order);
}

static bool
matches(const TestRow *r)
{
	for (int i = 0; i < nconditions; i++)
	{
		const Condition *c = &conditions[i];
		bool		any = false;

		if (c->row)
			any = row_satisfies(r, c);
		else if (c->null || c->notnull)
			any = r->isnull[c->col] == c->null;
		for (int k = 0; !c->row && k < c->n && !any; k++)
			any = !c->argnull[k] && !r->isnull[c->col] &&
				satisfies(c->strategy, compare_argument(&kd.cols[c->col], r->values[c->col], &c->type, c->args[k]));
		if (!any)
			return false;
	}
	return true;
}

/* ---- keys ---- */

/* A value of that type, which is a row's as often as not. */
static Datum
an_argument(fuzz_in *in, const ArtKeyCol *type, int col)
{
	int			r = (int) fuzz_below(in, MOST_ROWS * 2);

	if (r < nrows && !rows[r].isnull[col] && type->enc == kd.cols[col].enc)
		return rows[r].values[col];
	return a_value(in, type);
}

/* An array as the server makes it; what is NULL is left out of its data. */
static Datum
an_array(const Condition *c)
{
	int16		len;
	bool		byval;
	char		align;
	Size		size = 1024 + MOST_ELEMS * 512;
	ArrayType  *arr = palloc0(size);
	bool		nulls = memchr(c->argnull, true, (size_t) c->n) != NULL;
	char	   *p;

	kept_as(&c->type, &len, &byval, &align);
	arr->elemtype = c->type.typid;
	arr->ndim = c->n > 0 ? 1 : 0;
	if (c->n > 0)
	{
		ARR_DIMS(arr)[0] = c->n;
		ARR_LBOUND(arr)[0] = 1;
		arr->dataoffset = nulls ? (int32) ARR_OVERHEAD_WITHNULLS(1, c->n) : 0;
	}
	p = ARR_DATA_PTR(arr);
	for (int i = 0; i < c->n; i++)
	{
		if (c->argnull[i])
			continue;
		if (nulls)
			ARR_NULLBITMAP(arr)[i / 8] |= (uint8) (1 << i % 8);
		if (byval)
		{
			store_att_byval(p, c->args[i], len);
			p += len;
		}
		else if (len > 0)
		{
			memcpy(p, DatumGetPointer(c->args[i]), len);
			p += len;
		}
		else
		{
			uint32		n = VARSIZE_ANY_EXHDR(DatumGetPointer(c->args[i]));

			SET_VARSIZE(p, n + VARHDRSZ);
			memcpy(VARDATA(p), VARDATA_ANY(DatumGetPointer(c->args[i])), n);
			p += n + VARHDRSZ;
		}
		p = (char *) att_align_nominal(p, align);
	}
	size = (Size) (p - (char *) arr);
	SET_VARSIZE(arr, size);
	return PointerGetDatum(repalloc(arr, size));
}

static ScanKey
new_key(int flags, int col, int strategy, Oid subtype, Datum arg)
{
	ScanKey		k = &keys[nkeys++];

	memset(k, 0, sizeof(*k));
	k->sk_flags = flags;
	k->sk_attno = (AttrNumber) (col + 1);
	k->sk_strategy = (StrategyNumber) strategy;
	k->sk_subtype = subtype;
	k->sk_argument = arg;
	return k;
}

/* A comparison of rows: members of the columns' own types. */
static void
add_row(fuzz_in *in, Condition *c)
{
	ScanKeyData members[MOST_ELEMS];
	int			first = nkeys;

	c->row = true;
	if (c->strategy == BTEqualStrategyNumber)
		c->strategy = BTGreaterStrategyNumber;
	c->n = 2 + (int) fuzz_below(in, 3);
	for (int i = 0; i < c->n; i++)
	{
		int			col = (int) ((fuzz_byte(in) % 4 ? (uint32) (c->col + i) : fuzz_byte(in)) % (uint32) kd.natts);
		ScanKey		k;

		c->cols[i] = col;
		c->argnull[i] = fuzz_byte(in) % 16 == 3;
		c->args[i] = c->argnull[i] ? (Datum) 0 : an_argument(in, &kd.cols[col], col);
		k = new_key(SK_ROW_MEMBER | (c->argnull[i] ? SK_ISNULL : 0), col, c->strategy, InvalidOid, c->args[i]);
#ifdef ART_MARKS_ROWS
		k->sk_flags &= ~SK_ROW_MEMBER;
		k->sk_func.fn_oid = i == 0 ? ART_ROW_FIRST : ART_ROW_NEXT;
#endif
		if (i == c->n - 1)
			k->sk_flags |= SK_ROW_END;
	}
#ifdef ART_MARKS_ROWS
	keys[nkeys - 1].sk_flags &= ~SK_ROW_END;
	(void) members;
	(void) first;
#else
	memcpy(members, keys + first, (Size) c->n * sizeof(ScanKeyData));
	nkeys = first;
	(void) new_key(SK_ROW_HEADER, c->cols[0], c->strategy, InvalidOid,
				   PointerGetDatum(memcpy(palloc(sizeof(members)), members, sizeof(members))));
#endif
}

static void
add_condition(fuzz_in *in)
{
	Condition  *c = &conditions[nconditions++];
	uint8		head = fuzz_byte(in);
	Oid			subtype;

	memset(c, 0, sizeof(*c));
	c->col = (int) fuzz_below(in, (uint32) kd.natts);
	c->strategy = head & 1 ? BTEqualStrategyNumber : 1 + head / 2 % 5;
	c->type = argument_type(in, &kd.cols[c->col]);
	subtype = c->type.typid == kd.cols[c->col].typid && (head & 128) ? InvalidOid : c->type.typid;
	switch (head / 16 % 8)
	{
		case 0:
			c->null = head & 1;
			c->notnull = !c->null;
			(void) new_key(SK_ISNULL | (c->null ? SK_SEARCHNULL : SK_SEARCHNOTNULL), c->col, 0, InvalidOid, (Datum) 0);
			return;
		case 1:
			add_row(in, c);
			return;
		case 2:
		case 3:
		case 4:
			c->n = (int) fuzz_below(in, MOST_ELEMS + 1);
			for (int i = 0; i < c->n; i++)
			{
				c->argnull[i] = fuzz_byte(in) % 16 == 3;
				c->args[i] = c->argnull[i] ? (Datum) 0 : an_argument(in, &c->type, c->col);
			}
			(void) new_key(SK_SEARCHARRAY, c->col, c->strategy, subtype, an_array(c));
			return;
		default:
			c->n = 1;
			c->argnull[0] = fuzz_byte(in) % 32 == 3;
			c->args[0] = c->argnull[0] ? (Datum) 0 : an_argument(in, &c->type, c->col);
			(void) new_key(c->argnull[0] ? SK_ISNULL : 0, c->col, c->strategy, subtype, c->args[0]);
	}
}

/* ---- the plan ---- */

/* <0: before the position, >0: behind it. */
static int
place(const uint8 *key, uint32 len, const uint8 *bound, uint32 blen, bool after)
{
	int			c = memcmp(key, bound, Min(len, blen));

	if (c != 0)
		return c;
	return len < blen || after ? -1 : 1;
}

static bool
in_range(const ArtScanPlan *plan, const TestRow *r)
{
	return place(r->key, r->len, plan->lo.data, plan->lo_len, plan->lo_after) > 0 &&
		place(r->key, r->len, plan->hi.data, plan->hi_len, plan->hi_after) < 0;
}

/* Of the row that is in the range where the plan stands. */
static bool
passes(const ArtScanPlan *plan, const TestRow *r)
{
	return (plan->nnulls == 0 || !art_scan_null(plan, r->key, r->len - AX_TID_BYTES)) &&
		(plan->nresidual == plan->nnulls || art_scan_recheck(plan, &kd, r->key, r->len));
}

/* From a row that does not match, no row that does is passed over. */
static void
check_skip(const ArtScanPlan *plan, const TestRow *r, bool backward)
{
	ArtBuf		to;
	bool		after;

	art_buf_init(&to, CurrentMemoryContext, 1);
	if (art_skip_target(plan, r->key, r->len - AX_TID_BYTES, backward, &to, &after) == ART_SKIP_NONE)
		return;
	FUZZ_CLAIM((place(r->key, r->len, to.data, to.len, after) < 0) == !backward, "a skip that goes nowhere");
	for (int i = 0; i < nrows; i++)
	{
		const TestRow *m = &rows[i];
		int			c = compare_bytes(m->key, m->len, r->key, r->len);

		if ((backward ? c < 0 : c > 0) && in_range(plan, m) && passes(plan, m))
			FUZZ_CLAIM((place(m->key, m->len, to.data, to.len, after) > 0) == !backward, "a skip passes over row %d", i);
	}
}

/* Where the plan stands: the rows of its range that pass, one more each. */
static void
take_range(const ArtScanPlan *plan, int *found, bool backward)
{
	for (int i = 0; i < nrows; i++)
	{
		bool		good;

		if (!in_range(plan, &rows[i]))
			continue;
		good = passes(plan, &rows[i]);
		found[i] += good;
		if (!good && plan->skips)
			check_skip(plan, &rows[i], backward);
	}
}

/* All ranges of a plan, that way.  They are in order, apart, and within the outer one. */
static void
take_all(ArtScanPlan *plan, int *found, bool backward)
{
	ArtBuf		end;
	bool		end_after = false;
	bool		first = true;
	ax_bound	lo;
	ax_bound	hi;

	if (plan->impossible)
		return;
	if (!plan->many)
	{
		take_range(plan, found, backward);
		return;
	}
	art_buf_init(&end, CurrentMemoryContext, 1);
	art_scanplan_outer(plan, &lo, &hi);
	if (!art_scanplan_first(plan, backward))
		return;
	do
	{
		const ax_bound from = backward ? (ax_bound) {plan->hi.data, plan->hi_len, plan->hi_after} :
			(ax_bound) {plan->lo.data, plan->lo_len, plan->lo_after};
		const ax_bound to = backward ? (ax_bound) {plan->lo.data, plan->lo_len, plan->lo_after} :
			(ax_bound) {plan->hi.data, plan->hi_len, plan->hi_after};
		const ax_bound was = {end.data, end.len, end_after};
		int			c = first ? 0 : art_pos_cmp(&kd, 0, &was, &from);

		FUZZ_CLAIM(backward ? c >= 0 : c <= 0, "ranges of arrays overlap, or are out of order");
		FUZZ_CLAIM(art_pos_cmp(&kd, 0, &lo, backward ? &to : &from) <= 0 &&
				   art_pos_cmp(&kd, 0, &hi, backward ? &from : &to) >= 0, "a range is not within the outer one");
		first = false;
		end.len = 0;
		art_plan_append(&end, to.key, to.len);
		end_after = to.after;
		take_range(plan, found, backward);
	} while (art_scanplan_next(plan, backward));
}

static void
check_plan(ArtScanPlan *plan)
{
	for (int backward = 0; backward < 2; backward++)
	{
		int			found[MOST_ROWS] = {0};

		take_all(plan, found, backward);
		for (int i = 0; i < nrows; i++)
		{
			bool		is = matches(&rows[i]);

			FUZZ_CLAIM(found[i] == (int) is, "row %d %s the keys, and is found %d times %s", i,
					   is ? "satisfies" : "does not satisfy", found[i], backward ? "backward" : "forward");
			FUZZ_CLAIM(!is || !plan->point || plan->many ||
					   (rows[i].len == plan->lo_len + AX_TID_BYTES && memcmp(rows[i].key, plan->lo.data, plan->lo_len) == 0),
					   "row %d satisfies the keys, and is not the point", i);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_in		in = {data, size};
	ArtScanPlan plan;
	ArtBuf		buf;
	RelationData index = {0};

	fuzz_server_reset();
	make_columns(&in, &kd, 4, false);
	art_buf_init(&buf, CurrentMemoryContext, 1);
	nrows = 1 + (int) fuzz_below(&in, MOST_ROWS);
	for (int i = 0; i < nrows; i++)
	{
		TestRow    *r = &rows[i];

		make_row(&in, &kd, r->values, r->isnull);
		/* columns of the row before, that there are equal ones */
		for (int c = (int) (fuzz_byte(&in) % 4) - 1; i > 0 && c >= 0; c--)
		{
			if (c < kd.natts)
			{
				r->values[c] = rows[i - 1].values[c];
				r->isnull[c] = rows[i - 1].isnull[c];
			}
		}
		(void) art_encode(&kd, r->values, r->isnull, &buf);
		r->len = buf.len + AX_TID_BYTES;
		r->key = memcpy(palloc(r->len), buf.data, buf.len);
		ax_put_tid(r->key + buf.len, (uint64) i + 1);
	}
	art_scanplan_init(&plan, CurrentMemoryContext);
	/* a plan is used again */
	for (int round = 0; round < 2; round++)
	{
		nconditions = nkeys = 0;
		for (int n = (int) fuzz_below(&in, MOST_KEYS); n > 0; n--)
			add_condition(&in);
		art_scanplan_set(&plan, &kd, &index, keys, nkeys);
		check_plan(&plan);
	}
	art_scanplan_free(&plan);
	return 0;
}

/* ---- what the files under test call that is the server's ---- */

void
get_typlenbyvalalign(Oid typid, int16 *typlen, bool *typbyval, char *typalign)
{
	ArtKeyCol	col = column_of(typid);

	kept_as(&col, typlen, typbyval, typalign);
}

int
ArrayGetNItems(int ndim, const int *dims)
{
	return ndim == 0 ? 0 : dims[0];
}

struct varlena *
pg_detoast_datum(struct varlena *datum)
{
	return datum;
}
