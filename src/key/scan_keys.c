/*
 * scan_keys.c
 *	  From scan keys to a range of encoded keys and what it leaves to test.
 *
 * Each key becomes a pair of positions in the order of its column's encoded
 * form (marker and body).  The pairs of a column are intersected there.  So no
 * operator is looked up, any two keys are comparable, and DESC and NULLS FIRST
 * have no cases of their own.  The leading columns that are left with a single
 * value, and the range of the first that is not, make the range of the scan.
 * The ranges of the columns behind are tested on the encoded entries.  Arrays
 * are array_keys.c's, comparisons of rows row_keys.c's.
 *
 * In a compared index the order of those positions is the comparison
 * function's (compared_order.c).
 *
 * A cross-type constant is first mapped onto the column's type.  Integers,
 * floats and names map exactly.  Between date and timestamp it may fall
 * between two values.  A constant without a time zone against timestamptz is
 * converted as its operator would do it, under the session's TimeZone when the
 * scan (re)starts.  A timestamptz constant against date or timestamp is the
 * one inexact case.  There the operator converts each of the column's values,
 * and that conversion is not monotonic where clocks are turned back.
 *
 * The bounds hold the elements that the arrays stand at, and values of compared rows.
 * One thought with: array_keys.c, row_keys.c
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/int.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "art_compat.h"
#include "core/ax.h"
#include "eval/eval.h"
#include "key/scan_plan.h"
#include "key/key.h"

/*
 * More than any offset a TimeZone can have: POSIX-style zone names take up to
 * 167:59:59, one hour more with an implied daylight-saving time.
 */
#define ART_TZ_DAYS		8
#define ART_TZ_USECS	(ART_TZ_DAYS * USECS_PER_DAY)

/* The offsets in force around an instant. */
typedef struct ArtOffsets
{
	int			n;				/* -1: not known one by one */
	int64		usecs[ART_CANDIDATES];
} ArtOffsets;

/*
 * A constant on the scale of an integer-like column: it compares as a value
 * between lo and hi.  The "above" flags say that the end lies strictly between
 * that value and the next one.  Inexact: only the operator can tell within.
 */
typedef struct ArtConst
{
	int64		lo,
				hi;
	bool		lo_above,
				hi_above;
	bool		exact;
} ArtConst;

/* ---- positions ---------------------------------------------------------- */

/* Raise a column's lower end to the position, if that is higher. */
void
art_raise_lo(ArtScanPlan *plan, ArtColRange *r, uint32 off, uint32 len, bool after)
{
	const uint8 *s = plan->scratch.data;
	int			col = (int) (r - plan->ranges);

	if (r->lo_set &&
		art_pos_cmp(plan->kd, col, &(ax_bound) {s + r->lo_off, r->lo_len, r->lo_after},
					&(ax_bound) {s + off, len, after}) >= 0)
		return;
	r->lo_set = true;
	r->lo_off = off;
	r->lo_len = len;
	r->lo_after = after;
}

/* The same with the upper end. */
void
art_cut_hi(ArtScanPlan *plan, ArtColRange *r, uint32 off, uint32 len, bool after)
{
	const uint8 *s = plan->scratch.data;
	int			col = (int) (r - plan->ranges);

	if (r->hi_set &&
		art_pos_cmp(plan->kd, col, &(ax_bound) {s + r->hi_off, r->hi_len, r->hi_after},
					&(ax_bound) {s + off, len, after}) <= 0)
		return;
	r->hi_set = true;
	r->hi_off = off;
	r->hi_len = len;
	r->hi_after = after;
}

/* No value of the column can lie between the ends. */
bool
art_range_empty(const ArtScanPlan *plan, const ArtColRange *r)
{
	const uint8 *s = plan->scratch.data;

	return r->lo_set && r->hi_set &&
		art_pos_cmp(plan->kd, (int) (r - plan->ranges), &(ax_bound) {s + r->lo_off, r->lo_len, r->lo_after},
					&(ax_bound) {s + r->hi_off, r->hi_len, r->hi_after}) >= 0;
}

/* The range is one value, or NULL. */
bool
art_range_is_equal(const ArtScanPlan *plan, const ArtColRange *r)
{
	const uint8 *s = plan->scratch.data;

	return r->lo_set && r->hi_set && !r->lo_after && r->hi_after &&
		r->lo_len == r->hi_len &&
		(r->lo_len > 1 || s[r->lo_off] != ART_MARK_VALUE) &&
		memcmp(s + r->lo_off, s + r->hi_off, r->lo_len) == 0;
}

/* ---- one key ------------------------------------------------------------ */

/* The column is restricted to what begins with this marker. */
static void
art_restrict_marker(ArtScanPlan *plan, ArtColRange *r, uint8 marker)
{
	uint32		off = plan->scratch.len;

	art_buf_reserve(&plan->scratch, 1);
	plan->scratch.data[plan->scratch.len++] = marker;
	art_raise_lo(plan, r, off, 1, false);
	art_cut_hi(plan, r, off, 1, true);
}

/*
 * Encode a value of the column's own type, marker first.  The end of a
 * constant longer than any entry is cut off.  No entry has the rest as its
 * prefix, so the position is the same among them.  Returns false then.
 */
static bool
art_put_const(ArtScanPlan *plan, const ArtKeyCol *col, Datum value,
			  uint32 *off, uint32 *len)
{
	ArtBuf	   *buf = &plan->scratch;

	*off = buf->len;
	art_buf_reserve(buf, 1);
	buf->data[buf->len++] = ART_MARK_VALUE;
	art_encode_col(col, value, buf);
	*len = buf->len - *off;
	if (*len <= ART_KEY_LIMIT || col->enc == ART_ENC_DATUM)
		return true;			/* what is equal may be shorter */
	*len = AX_KEY_MAX;
	buf->len = *off + AX_KEY_MAX;
	return false;
}

/* "column > position" or, with incl, "column >= position" in the type's order. */
static void
art_restrict_greater(ArtScanPlan *plan, ArtColRange *r, const ArtKeyCol *col,
					 uint32 off, uint32 len, bool incl)
{
	if (col->desc)
		art_cut_hi(plan, r, off, len, incl);
	else
		art_raise_lo(plan, r, off, len, !incl);
}

static void
art_restrict_less(ArtScanPlan *plan, ArtColRange *r, const ArtKeyCol *col,
				  uint32 off, uint32 len, bool incl)
{
	if (col->desc)
		art_raise_lo(plan, r, off, len, !incl);
	else
		art_cut_hi(plan, r, off, len, incl);
}

/* Restrict by a constant of (or mapped exactly to) the column's own type. */
static bool
art_restrict_value(ArtScanPlan *plan, ArtColRange *r, const ArtKeyCol *col,
				   StrategyNumber strategy, Datum value)
{
	uint32		off,
				len;
	bool		whole = art_put_const(plan, col, value, &off, &len);

	switch (strategy)
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			art_restrict_less(plan, r, col, off, len,
							  strategy == BTLessEqualStrategyNumber);
			return true;
		case BTEqualStrategyNumber:
			art_raise_lo(plan, r, off, len, false);
			art_cut_hi(plan, r, off, len, true);
			return whole;		/* too long: nothing is equal */
		case BTGreaterEqualStrategyNumber:
		case BTGreaterStrategyNumber:
			art_restrict_greater(plan, r, col, off, len,
								 strategy == BTGreaterEqualStrategyNumber);
			return true;
		default:
			elog(ERROR, "unrecognized strategy number: %d", strategy);
			return false;
	}
}

/* A number on the scale of the column as its datum. */
static Datum
art_scale_datum(const ArtKeyCol *col, int64 v)
{
	if (col->enc == ART_ENC_DATE)
		return DateADTGetDatum((DateADT) Max(PG_INT32_MIN, Min(PG_INT32_MAX, v)));
	return Int64GetDatum(v);
}

/* Restrict by a constant mapped onto the scale of the column. */
static bool
art_restrict_const(ArtScanPlan *plan, ArtColRange *r, const ArtKeyCol *col,
				   StrategyNumber strategy, const ArtConst *c)
{
	bool		incl;
	uint32		off,
				len;

	if (c->lo == c->hi && !c->lo_above && !c->hi_above)
		return art_restrict_value(plan, r, col, strategy,
								  art_scale_datum(col, c->lo));

	/* one position on either side of what may be equal */
	if (strategy == BTEqualStrategyNumber && c->exact)
		return false;			/* between two values */
	if (strategy >= BTEqualStrategyNumber)
	{
		incl = !c->lo_above && strategy != BTGreaterStrategyNumber;
		(void) art_put_const(plan, col, art_scale_datum(col, c->lo), &off, &len);
		art_restrict_greater(plan, r, col, off, len, incl);
	}
	if (strategy <= BTEqualStrategyNumber)
	{
		incl = c->hi_above || strategy != BTLessStrategyNumber;
		(void) art_put_const(plan, col, art_scale_datum(col, c->hi), &off, &len);
		art_restrict_less(plan, r, col, off, len, incl);
	}
	return true;
}

/* ---- dates and times ------------------------------------------------------ */

/* A timestamp on the scale of dates. */
static int64
art_ts_to_day(int64 ts, bool *above)
{
	int64		day = ts / USECS_PER_DAY;

	*above = false;
	if (TIMESTAMP_IS_NOBEGIN(ts))
		return DATEVAL_NOBEGIN;
	if (TIMESTAMP_IS_NOEND(ts))
		return DATEVAL_NOEND;
	if (ts % USECS_PER_DAY != 0)
	{
		*above = true;
		if (ts < 0)
			day--;				/* round down */
	}
	return day;
}

/*
 * A conversion's result on the scale of timestamps; one that overflowed is
 * beyond every finite value but not infinity.
 */
static int64
art_finite_ts(int64 ts, int overflow)
{
	if (overflow > 0)
		return DT_NOEND - 1;
	if (overflow < 0)
		return DT_NOBEGIN + 1;
	return ts;
}

/*
 * Add an offset to the set.  Too many of them make n -1: the set is not known.
 */
static void
art_add_offset(ArtOffsets *set, long int seconds)
{
	int64		usecs = (int64) seconds * USECS_PER_SEC;

	for (int i = 0; i < set->n; i++)
	{
		if (set->usecs[i] == usecs)
			return;
	}
	if (set->n == ART_CANDIDATES)
		set->n = -1;
	if (set->n >= 0)
		set->usecs[set->n++] = usecs;
}

/*
 * Offsets from UTC that the session's TimeZone uses for local times close to
 * an instant, in microseconds.  Take all local times x for which the zone's
 * conversion could come to ts or to its other side.  They have an offset
 * between min and max.
 *
 * No offset is as large as ART_TZ_DAYS, so only x within that distance of ts
 * matter.  The conversion (DetermineTimeZoneOffset) uses an offset that is in
 * force not earlier than a day before x taken as UTC.  It is one before or
 * just behind the first transition from there that is not farther than an
 * offset from x.  So it is enough to collect the offsets of three times that
 * span around ts; the conversion uses one of these.
 */
static void
art_tz_offsets(int64 ts, int64 *min, int64 *max, ArtOffsets *each)
{
	pg_time_t	now,
				t,
				stop,
				boundary;
	long int	before,
				after,
				lo = 0,
				hi = 0;
	int			isdst1,
				isdst2,
				i;
	ArtOffsets	set;

	*min = -ART_TZ_USECS;
	*max = ART_TZ_USECS;
	each->n = -1;

	/* conversions out of range take an offset of their own */
	if (ts < MIN_TIMESTAMP + 4 * ART_TZ_USECS || ts >= END_TIMESTAMP - 4 * ART_TZ_USECS)
		return;

	now = (pg_time_t) (ts / USECS_PER_SEC +
					   (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY);
	t = now - 3 * ART_TZ_DAYS * SECS_PER_DAY;
	stop = now + 3 * ART_TZ_DAYS * SECS_PER_DAY;
	for (i = 0; i < 100; i++)
	{
		int			res = pg_next_dst_boundary(&t, &before, &isdst1, &boundary,
											   &after, &isdst2, session_timezone);

		if (res < 0)
			return;
		if (i == 0)
		{
			lo = hi = before;
			set.n = 0;
		}
		art_add_offset(&set, before);
		lo = Min(lo, before);
		hi = Max(hi, before);
		if (res == 0 || boundary > stop)
		{
			*min = (int64) lo * USECS_PER_SEC;
			*max = (int64) hi * USECS_PER_SEC;
			*each = set;
			return;
		}
		art_add_offset(&set, after);
		lo = Min(lo, after);
		hi = Max(hi, after);
		t = boundary;
	}
}

/*
 * Map a date, timestamp or timestamptz constant onto a column of another of
 * these types.  False: not such a pair.
 */
static bool
art_map_datetime(const ArtKeyCol *col, Oid type, Datum arg, ArtConst *c)
{
	int			overflow = 0;
	int64		ts;

	c->lo_above = c->hi_above = false;
	c->exact = true;

	if (type == DATEOID && col->typid == TIMESTAMPOID)
	{
		ts = art_date2timestamp(DatumGetDateADT(arg), &overflow);
		c->lo = c->hi = art_finite_ts(ts, overflow);
		return true;
	}
	if (type == DATEOID && col->typid == TIMESTAMPTZOID)
	{
		ts = art_date2timestamptz(DatumGetDateADT(arg), &overflow);
		c->lo = c->hi = art_finite_ts(ts, overflow);
		return true;
	}
	if (type == TIMESTAMPOID && col->typid == TIMESTAMPTZOID)
	{
		ts = art_timestamp2timestamptz(DatumGetTimestamp(arg), &overflow);
		c->lo = c->hi = art_finite_ts(ts, overflow);
		return true;
	}
	if (type == TIMESTAMPOID && col->typid == DATEOID)
	{
		c->lo = c->hi = art_ts_to_day(DatumGetTimestamp(arg), &c->lo_above);
		c->hi_above = c->lo_above;
		return true;
	}
	if (type == TIMESTAMPTZOID &&
		(col->typid == DATEOID || col->typid == TIMESTAMPOID))
	{
		c->lo = c->hi = ts = DatumGetTimestampTz(arg);
		if (!TIMESTAMP_NOT_FINITE(ts))
		{
			int64		min,
						max;
			ArtOffsets	each;

			/* local time = instant + offset */
			art_tz_offsets(ts, &min, &max, &each);
			if (pg_add_s64_overflow(ts, min, &c->lo))
				c->lo = DT_NOBEGIN + 1;
			if (pg_add_s64_overflow(ts, max, &c->hi))
				c->hi = DT_NOEND - 1;
			c->exact = (min == max);
		}
		if (col->typid == DATEOID)
		{
			c->lo = art_ts_to_day(c->lo, &c->lo_above);
			c->hi = art_ts_to_day(c->hi, &c->hi_above);
		}
		return true;
	}
	return false;
}

int
art_equal_candidates(const ArtKeyCol *col, Oid type, Datum arg, Datum *values)
{
	int64		ts,
				min,
				max;
	ArtOffsets	each;
	int			n = 0;

	if ((col->enc != ART_ENC_DATE && col->enc != ART_ENC_TIMESTAMP) ||
		(col->typid != DATEOID && col->typid != TIMESTAMPOID) ||
		type != TIMESTAMPTZOID)
		return -1;
	ts = DatumGetTimestampTz(arg);
	if (TIMESTAMP_NOT_FINITE(ts))
		return -1;
	art_tz_offsets(ts, &min, &max, &each);
	if (each.n < 0)
		return -1;
	for (int i = 0; i < each.n; i++)
	{
		int64		local = ts + each.usecs[i];
		bool		above = false;

		if (col->typid == DATEOID)
			local = art_ts_to_day(local, &above);
		if (!above)
			values[n++] = art_scale_datum(col, local);
	}
	return n;
}

/* ---- scan keys ---------------------------------------------------------- */

/* An integer constant of any width. */
static bool
art_int_const(Oid type, Datum arg, int64 *v)
{
	switch (type)
	{
		case INT2OID:
			*v = DatumGetInt16(arg);
			return true;
		case INT4OID:
			*v = DatumGetInt32(arg);
			return true;
		case INT8OID:
			*v = DatumGetInt64(arg);
			return true;
		default:
			return false;
	}
}

/*
 * Restrict the column by one key with an argument.  Returns false when nothing
 * can match; sets *residual when the key must be tested with its operator.
 */
static bool
art_restrict_key(ArtScanPlan *plan, const ArtKeyCol *col, ScanKey key,
				 ArtColRange *r, bool *residual)
{
	Oid			type = key->sk_subtype;
	Datum		arg = key->sk_argument;
	ArtConst	c;
	ArtKeyCol	as;
	uint32		off,
				len;

	*residual = false;
	if (type == InvalidOid || type == col->typid)
		return art_restrict_value(plan, r, col, key->sk_strategy, arg);

	switch (col->enc)
	{
		case ART_ENC_INT2:
		case ART_ENC_INT4:
		case ART_ENC_INT8:
			if (art_int_const(type, arg, &c.lo))
			{
				/* all three have one encoding */
				as = *col;
				as.enc = ART_ENC_INT8;
				return art_restrict_value(plan, r, &as, key->sk_strategy,
										  Int64GetDatum(c.lo));
			}
			break;
		case ART_ENC_DATE:
		case ART_ENC_TIMESTAMP:
			if (art_map_datetime(col, type, arg, &c))
			{
				*residual = !c.exact;
				return art_restrict_const(plan, r, col, key->sk_strategy, &c);
			}
			break;
		case ART_ENC_TEXT:
		case ART_ENC_NAME:
			if (type == TEXTOID || type == NAMEOID)
			{
				/* both have one encoding; a longer text just equals no name */
				as = *col;
				as.enc = (type == NAMEOID) ? ART_ENC_NAME : ART_ENC_TEXT;
				return art_restrict_value(plan, r, &as, key->sk_strategy, arg);
			}
			break;
		case ART_ENC_FLOAT4:
		case ART_ENC_FLOAT8:
			if (type == FLOAT4OID || type == FLOAT8OID)
			{
				/* both have one encoding; a float8 may just equal no float4 */
				as = *col;
				as.enc = (type == FLOAT8OID) ? ART_ENC_FLOAT8 : ART_ENC_FLOAT4;
				return art_restrict_value(plan, r, &as, key->sk_strategy, arg);
			}
			break;
		default:
			break;
	}

	/*
	 * A type that somebody added to the operator family: the operators of a
	 * family are strict, nothing else is known.
	 */
	off = plan->scratch.len;
	len = 1;
	art_buf_reserve(&plan->scratch, len);
	plan->scratch.data[plan->scratch.len++] = ART_MARK_VALUE;
	art_raise_lo(plan, r, off, len, false);
	art_cut_hi(plan, r, off, len, true);
	*residual = true;
	return true;
}

/*
 * The same, and what is strict of the operators: the open end stops at the
 * NULLs.
 */
bool
art_restrict_range(ArtScanPlan *plan, const ArtKeyCol *col, ScanKey key,
				   ArtColRange *r, bool *residual)
{
	if (key->sk_strategy != BTEqualStrategyNumber)
		art_restrict_marker(plan, r, ART_MARK_VALUE);
	return art_restrict_key(plan, col, key, r, residual);
}

/* Remember a key to test with its operator. */
void
art_add_residual_key(ArtScanPlan *plan, ScanKey key)
{
	int			i;

	if (plan->keys == NULL)
	{
		plan->keys_cap = 4;
		plan->keys = MemoryContextAlloc(plan->cxt, plan->keys_cap * sizeof(ScanKeyData));
	}
	if (plan->nkeys == plan->keys_cap)
	{
		plan->keys_cap *= 2;
		plan->keys = repalloc(plan->keys, plan->keys_cap * sizeof(ScanKeyData));
	}
	for (i = plan->nkeys; i > 0 && plan->keys[i - 1].sk_attno > key->sk_attno; i--)
		plan->keys[i] = plan->keys[i - 1];
	plan->keys[i] = *key;
	plan->nkeys++;
	plan->residual_upto = Max(plan->residual_upto, key->sk_attno);
}

/* Is there such a key of a column (from 0)? */
static bool
art_has_residual_key(const ArtScanPlan *plan, int col)
{
	for (int i = 0; i < plan->nkeys; i++)
	{
		if (plan->keys[i].sk_attno == col + 1)
			return true;
	}
	return false;
}

void
art_plan_append(ArtBuf *buf, const uint8 *src, uint32 n)
{
	art_buf_reserve(buf, n);
	memcpy(buf->data + buf->len, src, n);
	buf->len += n;
}

void
art_scanplan_init(ArtScanPlan *plan, MemoryContext cxt)
{
	memset(plan, 0, offsetof(ArtScanPlan, range_col));
	plan->cxt = cxt;
	art_buf_lend(&plan->lo, cxt, plan->room[0], ART_PLAN_ROOM);
	art_buf_lend(&plan->hi, cxt, plan->room[1], ART_PLAN_ROOM);
	plan->scratch.cxt = cxt;
}

void
art_scanplan_free(ArtScanPlan *plan)
{
	art_arrays_free(plan);
	art_rowkeys_free(plan);
	art_buf_free(&plan->lo);
	art_buf_free(&plan->hi);
	art_buf_free(&plan->scratch);
	if (plan->keys != NULL)
		pfree(plan->keys);
}

/* Every plan begins as the whole index. */
static void
art_scanplan_reset(ArtScanPlan *plan)
{
	plan->impossible = false;
	plan->many = false;
	plan->point = false;
	plan->skips = false;
	plan->lo_after = false;
	plan->hi_after = true;
	plan->lo_len = plan->hi_len = 0;
	plan->lo.len = plan->hi.len = 0;
	plan->nresidual = 0;
	plan->residual_upto = 0;
	plan->scratch.len = 0;
	plan->nprefix = 0;
	plan->nranges = 0;
	plan->nkeys = 0;
	plan->nrows = plan->nnulls = 0;
	if (unlikely(plan->arrays != NULL))
		art_arrays_reset(plan);
	if (unlikely(plan->rows != NULL))
		art_rowkeys_reset(plan);
}

/*
 * The commonest scan: the one column of the index equals a constant of its
 * type, or an integer of any width.
 */
static bool
art_scanplan_point(ArtScanPlan *plan, const ArtKeyDesc *kd, ScanKey key)
{
	ArtKeyCol	as = kd->cols[0];
	Datum		arg = key->sk_argument;
	int64		v;

	if (key->sk_attno != 1)
		return false;
	if (key->sk_subtype != InvalidOid && key->sk_subtype != as.typid)
	{
		if ((as.enc != ART_ENC_INT4 && as.enc != ART_ENC_INT8 && as.enc != ART_ENC_INT2) ||
			!art_int_const(key->sk_subtype, arg, &v))
			return false;
		as.enc = ART_ENC_INT8;
		arg = Int64GetDatum(v);
	}
	plan->lo.data[plan->lo.len++] = ART_MARK_VALUE;
	art_encode_col(&as, arg, &plan->lo);
	if (plan->lo.len > ART_KEY_LIMIT && !kd->compared)
	{
		plan->impossible = true;
		return true;
	}
	art_plan_append(&plan->hi, plan->lo.data, plan->lo.len);
	plan->lo_len = plan->hi_len = plan->lo.len;
	plan->point = kd->images && !kd->payload;
	return true;
}

bool
art_plan_bounds(ArtScanPlan *plan)
{
	const ArtKeyDesc *kd = plan->kd;
	bool		fits = true;

	plan->lo.len = plan->hi.len = 0;
	plan->lo_after = false;
	plan->hi_after = true;

	/* leading equalities */
	for (int col = 0; col < plan->nprefix; col++)
	{
		const ArtColRange *r = &plan->ranges[col];

		if (unlikely(art_array_has(plan, col)))
			art_array_append(plan, col, &plan->lo);
		else
			art_plan_append(&plan->lo, plan->scratch.data + r->lo_off, r->lo_len);
		if (unlikely(plan->lo.len > ART_KEY_LIMIT) && !kd->compared)
		{
			fits = false;		/* no entry is that long */
			break;
		}
	}
	art_plan_append(&plan->hi, plan->lo.data, plan->lo.len);

	/* one range */
	if (fits && plan->nprefix < kd->natts)
	{
		const ArtColRange *r = &plan->ranges[plan->nprefix];

		if (r->lo_set)
		{
			art_plan_append(&plan->lo, plan->scratch.data + r->lo_off, r->lo_len);
			plan->lo_after = r->lo_after;
		}
		if (r->hi_set)
		{
			art_plan_append(&plan->hi, plan->scratch.data + r->hi_off, r->hi_len);
			plan->hi_after = r->hi_after;
		}
		if (unlikely(plan->rows != NULL))
		{
			plan->lo_after = art_rowkeys_lengthen(plan, &plan->lo, true, plan->lo_after);
			plan->hi_after = art_rowkeys_lengthen(plan, &plan->hi, false, plan->hi_after);
		}
	}
	/* no entry is longer: the same position (see art_put_const) */
	if (!kd->compared)
	{
		plan->lo.len = Min(plan->lo.len, AX_KEY_MAX);
		plan->hi.len = Min(plan->hi.len, AX_KEY_MAX);
	}
	plan->lo_len = plan->lo.len;
	plan->hi_len = plan->hi.len;
	return fits;
}

/* Narrows a column to what a key leaves of it.  False: that is nothing. */
static bool
art_plan_key(ArtScanPlan *plan, Relation index, ScanKey key)
{
	const ArtKeyDesc *kd = plan->kd;
	const ArtKeyCol *kc;
	ArtColRange *r;

	if (key->sk_attno < 1 || key->sk_attno > kd->natts)
		elog(ERROR, "scan key of index \"%s\" names column %d of %d",
			 RelationGetRelationName(index), key->sk_attno, kd->natts);
	if (key->sk_flags & (SK_ROW_HEADER | SK_ROW_MEMBER | SK_ORDER_BY))
		elog(ERROR, "unsupported scan key flags 0x%x for index \"%s\"",
			 key->sk_flags, RelationGetRelationName(index));
	kc = &kd->cols[key->sk_attno - 1];
	r = &plan->ranges[key->sk_attno - 1];

	if (key->sk_flags & SK_SEARCHNULL)
		art_restrict_marker(plan, r, kc->nulls_first ?
							ART_MARK_NULL_FIRST : ART_MARK_NULL_LAST);
	else if (key->sk_flags & SK_SEARCHNOTNULL)
		art_restrict_marker(plan, r, ART_MARK_VALUE);
	else if (key->sk_flags & SK_ISNULL)
		return false;			/* the operators are strict */
	else if (key->sk_flags & SK_SEARCHARRAY)
	{
		if (!art_array_key(plan, kc, key))
			return false;
	}
	else
	{
		bool		residual;

		if (!art_restrict_range(plan, kc, key, r, &residual))
			return false;
		if (residual || (unlikely(kd->doubtful) && kc->enc == ART_ENC_DATUM))
			art_add_residual_key(plan, key);
	}
	return !art_range_empty(plan, r);
}

/*
 * The range that the plan scans, from what the keys left of the columns: how
 * many leading ones are equal to something, and the bounds.  False: no entry
 * lies there.
 */
static bool
art_plan_range(ArtScanPlan *plan)
{
	const ArtKeyDesc *kd = plan->kd;
	int			col;

	if (unlikely(plan->arrays != NULL) && !art_arrays_settle(plan))
		return false;
	if (unlikely(plan->rows != NULL) && !art_rowkeys_settle(plan))
		return false;
	for (col = 0; col < kd->natts; col++)
	{
		if (!art_range_is_equal(plan, &plan->ranges[col]) &&
			!art_array_has(plan, col))
			break;
	}
	plan->nprefix = col;
	if (unlikely(plan->rows != NULL))
		art_rowkeys_begin(plan);
	if (unlikely(plan->arrays != NULL))
		return art_arrays_begin(plan, col);
	return art_plan_bounds(plan);
}

void
art_scanplan_set(ArtScanPlan *plan, const ArtKeyDesc *kd, Relation index,
				 ScanKey keys, int nkeys)
{
	int			i;

	plan->kd = kd;
	art_scanplan_reset(plan);
	if (nkeys == 0)
		return;
	if (nkeys == 1 && kd->natts == 1 && keys[0].sk_flags == 0 && !kd->doubtful &&
		keys[0].sk_strategy == BTEqualStrategyNumber &&
		art_scanplan_point(plan, kd, &keys[0]))
		return;

	for (i = 0; i < kd->natts; i++)
		plan->ranges[i].lo_set = plan->ranges[i].hi_set = false;
	for (i = 0; i < nkeys && !plan->impossible;)
	{
		ScanKey		members;
		int			n = art_row_members(&keys[i], nkeys - i, &members);

		if (unlikely(n > 0))
			plan->impossible = !art_row_key(plan, index, members, n);
		else
			plan->impossible = !art_plan_key(plan, index, &keys[i]);
		i += ART_ROW_KEYS(n);
	}
	if (plan->impossible)
		return;
	plan->impossible = !art_plan_range(plan);
	if (plan->impossible)
		return;

	/* the rest is residual; of a doubtful class all is, but for what its operators are asked */
	for (i = kd->doubtful ? 0 : plan->nprefix + 1; i < kd->natts; i++)
	{
		const ArtColRange *r = &plan->ranges[i];

		if (kd->doubtful && kd->cols[i].enc == ART_ENC_DATUM && art_has_residual_key(plan, i))
			continue;

		if (r->lo_set || r->hi_set || art_array_has(plan, i))
		{
			plan->range_col[plan->nranges++] = (uint16) i;
			plan->residual_upto = Max(plan->residual_upto, i + 1);
		}
	}
	plan->skips = plan->nranges > 0 && !kd->doubtful;
	if (unlikely(plan->rows != NULL))
		plan->nrows = art_rowkeys_left(plan);
	plan->nresidual = plan->nranges + plan->nkeys + plan->nrows + plan->nnulls;
	plan->point = (plan->nprefix == kd->natts && plan->nresidual == 0 && kd->images &&
				   !kd->payload);
}

bool
art_scan_recheck(const ArtScanPlan *plan, const ArtKeyDesc *kd,
				 const uint8 *key, uint32 keylen)
{
	const uint8 *p = key;
	const uint8 *end = key + keylen;
	const uint8 *s = plan->scratch.data;
	const uint8 *at[INDEX_MAX_KEYS + 1];
	Datum		value = (Datum) 0;
	int			of = -1;		/* the column whose value that is */
	int			ir = 0;
	int			ik = 0;
	int			i;

	for (i = 0; i < plan->residual_upto; i++)
	{
		const ArtKeyCol *col = &kd->cols[i];
		const uint8 *next = art_skip_col(kd, col, p, end);

		at[i] = p;

		if (ir < plan->nranges && plan->range_col[ir] == i)
		{
			const ArtColRange *r = &plan->ranges[i];
			uint32		len = (uint32) (next - p);

			/* the column's bytes are one position: before or after is the same */
			if (r->lo_set &&
				art_pos_cmp(kd, i, &(ax_bound) {p, len, true},
							&(ax_bound) {s + r->lo_off, r->lo_len, r->lo_after}) <= 0)
				return false;
			if (r->hi_set &&
				art_pos_cmp(kd, i, &(ax_bound) {p, len, false},
							&(ax_bound) {s + r->hi_off, r->hi_len, r->hi_after}) >= 0)
				return false;
			if (unlikely(art_array_has(plan, i)) &&
				!(i < plan->nprefix ? art_array_stands(plan, i, p, len) : art_array_member(plan, i, p, len)))
				return false;
			ir++;
		}
		for (; ik < plan->nkeys && plan->keys[ik].sk_attno == i + 1; ik++)
		{
			/* itself: its function keeps what it knows in it */
			ScanKey		k = &plan->keys[ik];

			if (*p != ART_MARK_VALUE)
				return false;
			if (unlikely(k->sk_flags & SK_SEARCHARRAY) && k->sk_argument == (Datum) 0)
			{
				if (!art_array_agrees(plan, k, p, (uint32) (next - p)))
					return false;
				continue;
			}
			if (of != i)
				value = col->enc == ART_ENC_DATUM ? art_col_datum(col, p + 1, next) :
					art_decode_col(col, p + 1, next);
			of = i;
			if (unlikely(k->sk_flags & SK_SEARCHARRAY) ? !art_array_any(k, value) :
				!DatumGetBool(art_opclass_call(&k->sk_func, k->sk_collation, value, k->sk_argument)))
				return false;
		}
		p = next;
	}
	at[i] = p;
	return plan->nrows == 0 || art_rowkeys_pass(plan, at);
}
