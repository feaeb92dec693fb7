/*
 * values.h
 *	  Columns of every encoding that src/key has, values of them, and the order of the values by what
 *	  they mean: the operator classes' order, said without bytes.
 *
 * To be included once, behind src/key/encode.c, whose table it goes by.
 */
#ifndef FUZZ_VALUES_H
#define FUZZ_VALUES_H

#include "server.h"

#include "utils/varbit.h"

/* ---- values ---- */

/* Some bytes, of which many are awkward. */
static uint32
some_bytes(fuzz_in *in, uint8 *to, uint32 most, bool zeros)
{
	uint8		head = fuzz_byte(in);
	uint32		n = head & 0x80 ? most - head % 8 % most : head % 16;
	uint8		fill = fuzz_byte(in);

	n = Min(n, most);
	for (uint32 i = 0; i < n; i++)
	{
		/* a run, then bytes one by one */
		to[i] = (head & 0x40) && i < n / 2 ? fill : fuzz_byte(in);
		if (to[i] == 0 && !zeros)
			to[i] = 1;
	}
	return n;
}

/* A varlena of exactly its length, with a short header or a long one. */
static Datum
a_varlena(fuzz_in *in, const void *p, uint32 n)
{
	bool		brief = n + VARHDRSZ_SHORT <= VARATT_SHORT_MAX && (fuzz_byte(in) & 1);
	char	   *v = palloc(n + (brief ? VARHDRSZ_SHORT : VARHDRSZ));

	if (brief)
		SET_VARSIZE_SHORT(v, n + VARHDRSZ_SHORT);
	else
		SET_VARSIZE(v, n + VARHDRSZ);
	memcpy(VARDATA_ANY(v), p, n);
	return PointerGetDatum(v);
}

/* An integer near an end, near zero, or anywhere. */
static int64
a_number(fuzz_in *in, int bytes)
{
	uint64		v;
	int			up = 64 - 8 * bytes;

	switch (fuzz_byte(in) % 4)
	{
		case 0:
			v = (uint64) (int64) (int8) fuzz_byte(in);
			break;
		case 1:
			v = (UINT64CONST(1) << (8 * bytes - 1)) + (uint64) (int64) (int8) fuzz_byte(in);
			break;
		default:
			v = fuzz_number(in, bytes);
	}
	return (int64) (v << up) >> up;
}

static float8
a_float(fuzz_in *in, bool single)
{
	uint64		bits;
	float8		f;
	float4		g;
	uint32		gbits;

	switch (fuzz_byte(in) % 8)
	{
		case 0:
			return 0.0;
		case 1:
			return -0.0;
		case 2:
			return fuzz_byte(in) & 1 ? HUGE_VAL : -HUGE_VAL;
		case 3:
			return get_float8_nan();
		case 4:
			return (float8) a_number(in, 2);
		default:
			break;
	}
	bits = fuzz_number(in, 8);
	memcpy(&f, &bits, sizeof(f));
	if (!single)
		return f;
	gbits = (uint32) bits;
	memcpy(&g, &gbits, sizeof(g));
	return g;
}

/* ---- numeric ---- */

#define MOST_DIGITS	12

/* As the server makes it: no zeros at either end; short where that is possible. */
static Datum
a_numeric(fuzz_in *in)
{
	uint8		head = fuzz_byte(in);
	uint16		h[2 + MOST_DIGITS];
	int			n = 0;
	int			ndigits = head % (MOST_DIGITS + 1);
	int			weight = 0;
	uint32		dscale = 0;
	bool		negative = head & 0x80;

	if (fuzz_byte(in) % 16 == 0)
	{
		static const uint16 special[] = {0xC000, 0xD000, 0xF000};

		h[0] = special[head % 3];
		return a_varlena(in, h, sizeof(uint16));
	}
	if (ndigits > 0)
		weight = (head & 0x40) ? (int16) fuzz_number(in, 2) : (int8) fuzz_byte(in) / 4;
	dscale = (head & 0x20) ? (uint32) fuzz_number(in, 2) & 0x3FFF : fuzz_byte(in) % 64;
	if (ndigits == 0)
		negative = false;
	if (dscale <= 63 && weight >= -64 && weight <= 63)
		h[n++] = (uint16) (0x8000 | (negative ? 0x2000 : 0) | dscale << 7 | (weight & 0x7F));
	else
	{
		h[n++] = (uint16) ((negative ? 0x4000 : 0) | dscale);
		h[n++] = (uint16) (int16) weight;
	}
	for (int i = 0; i < ndigits; i++)
	{
		uint16		d = (uint16) (fuzz_number(in, 2) % 10000);

		if (d == 0 && (i == 0 || i == ndigits - 1))
			d = 1;
		h[n++] = d;
	}
	return a_varlena(in, h, (uint32) n * sizeof(uint16));
}

/* What a numeric means, by the manual's words: sign, and digits to the base 10000 from a weight on. */
typedef struct Number
{
	int			rank;			/* -2, -1, 0, 1, 2, 3: -Infinity, below, zero, above, Infinity, NaN */
	int			weight;
	int			ndigits;
	uint16		digits[MOST_DIGITS];
} Number;

static Number
number_of(Datum d)
{
	const char *v = DatumGetPointer(d);
	uint32		n = VARSIZE_ANY_EXHDR(v) / sizeof(uint16);
	uint16		h[2 + MOST_DIGITS];
	Number		x = {0};
	uint32		from;

	memcpy(h, VARDATA_ANY(v), n * sizeof(uint16));
	if (h[0] >= 0xC000)
	{
		x.rank = h[0] == 0xF000 ? -2 : h[0] == 0xD000 ? 2 : 3;
		return x;
	}
	from = h[0] & 0x8000 ? 1 : 2;
	x.ndigits = (int) (n - from);
	x.rank = x.ndigits == 0 ? 0 : (h[0] & (from == 1 ? 0x2000 : 0x4000)) ? -1 : 1;
	x.weight = from == 2 ? (int16) h[1] : h[0] & 0x40 ? (h[0] & 0x7F) - 128 : h[0] & 0x7F;
	memcpy(x.digits, h + from, (Size) x.ndigits * sizeof(uint16));
	return x;
}

static int
compare_numerics(Datum a, Datum b)
{
	Number		x = number_of(a);
	Number		y = number_of(b);
	int			c = 0;

	if (x.rank != y.rank)
		return x.rank < y.rank ? -1 : 1;
	if (x.rank != 1 && x.rank != -1)
		return 0;
	if (x.weight != y.weight)
		c = x.weight < y.weight ? -1 : 1;
	for (int i = 0; c == 0 && i < MOST_DIGITS; i++)
	{
		int			p = i < x.ndigits ? x.digits[i] : 0;
		int			q = i < y.ndigits ? y.digits[i] : 0;

		c = (p > q) - (p < q);
	}
	return x.rank * c;
}

/* ---- the table ---- */

static Datum
a_bit_string(fuzz_in *in)
{
	uint8		bytes[40];
	uint8		v[sizeof(int32) + sizeof(bytes)];
	uint32		n = some_bytes(in, bytes, sizeof(bytes), true);
	int32		bits = (int32) (n * 8);

	if (n > 0)
	{
		int			unused = fuzz_byte(in) % 8;

		bits -= unused;
		bytes[n - 1] &= (uint8) (0xFF << unused);
	}
	memcpy(v, &bits, sizeof(bits));
	memcpy(v + sizeof(bits), bytes, n);
	return a_varlena(in, v, sizeof(bits) + n);
}

static Datum
an_inet(fuzz_in *in)
{
	inet_struct a;
	uint8		head = fuzz_byte(in);
	uint32		n = head & 1 ? 4 : 16;

	memset(&a, 0, sizeof(a));
	a.family = head & 1 ? PGSQL_AF_INET : PGSQL_AF_INET6;
	a.bits = (uint8) (head & 2 ? n * 8 : fuzz_byte(in) % (n * 8 + 1));
	fuzz_fill(in, a.ipaddr, head & 4 ? 2 : n);
	return a_varlena(in, &a, offsetof(inet_struct, ipaddr) + n);
}

static Datum
an_interval(fuzz_in *in)
{
	Interval   *i = palloc0(sizeof(Interval));
	uint8		head = fuzz_byte(in);

	if (head & 1)
		i->time = head & 8 ? a_number(in, 8) : a_number(in, 2) * (USECS_PER_DAY / 4);
	if (head & 2)
		i->day = (int32) a_number(in, head & 16 ? 4 : 1);
	if (head & 4)
		i->month = (int32) a_number(in, head & 32 ? 4 : 1);
	return PointerGetDatum(i);
}

static Datum
some_memory(fuzz_in *in, uint32 n)
{
	uint8	   *p = palloc(n);
	uint8		head = fuzz_byte(in);

	memset(p, head & 1 ? 0xFF : 0, n);
	fuzz_fill(in, p + head / 2 % n, Min(n - head / 2 % n, 4));
	return PointerGetDatum(p);
}

/* A value of the column, not NULL. */
static Datum
a_value(fuzz_in *in, const ArtKeyCol *col)
{
	uint8		bytes[300];
	uint32		n;

	switch (col->enc)
	{
		case ART_ENC_INT2:
			return Int16GetDatum((int16) a_number(in, 2));
		case ART_ENC_INT4:
			return Int32GetDatum((int32) a_number(in, 4));
		case ART_ENC_INT8:
		case ART_ENC_INT64:
		case ART_ENC_TIMESTAMP:
		case ART_ENC_UINT64:
			return Int64GetDatum(a_number(in, 8));
		case ART_ENC_OID:
			return ObjectIdGetDatum((Oid) a_number(in, 4));
		case ART_ENC_DATE:
			return DateADTGetDatum((DateADT) a_number(in, 4));
		case ART_ENC_BOOL:
			return BoolGetDatum(fuzz_byte(in) & 1);
		case ART_ENC_CHAR:
			return CharGetDatum((char) fuzz_byte(in));
		case ART_ENC_FLOAT4:
			return Float4GetDatum((float4) a_float(in, true));
		case ART_ENC_FLOAT8:
			return Float8GetDatum(a_float(in, false));
		case ART_ENC_UUID:
			return some_memory(in, UUID_LEN);
		case ART_ENC_MAC:
			return some_memory(in, col->width);
		case ART_ENC_TID:
			{
				ItemPointer tid = palloc0(sizeof(ItemPointerData));

				art_tid_unpack(fuzz_number(in, 6), tid);
				return PointerGetDatum(tid);
			}
		case ART_ENC_TIMETZ:
			{
				TimeTzADT  *t = palloc0(sizeof(TimeTzADT));

				t->time = (TimeADT) (fuzz_number(in, 3) * INT64CONST(5000));
				t->zone = (int32) (fuzz_number(in, 2) % 115200) - 57600;
				return TimeTzADTPGetDatum(t);
			}
		case ART_ENC_INTERVAL:
			return an_interval(in);
		case ART_ENC_NAME:
			{
				Name		name = palloc0(NAMEDATALEN);

				(void) some_bytes(in, (uint8 *) NameStr(*name), NAMEDATALEN - 1, false);
				return NameGetDatum(name);
			}
		case ART_ENC_TEXT:
			n = some_bytes(in, bytes, sizeof(bytes), false);
			return a_varlena(in, bytes, n);
		case ART_ENC_BPCHAR:
			n = some_bytes(in, bytes, sizeof(bytes) - 20, false);
			for (uint32 more = fuzz_byte(in) % 20; more > 0; more--)
				bytes[n++] = ' ';
			return a_varlena(in, bytes, n);
		case ART_ENC_BYTEA:
			n = some_bytes(in, bytes, sizeof(bytes), true);
			return a_varlena(in, bytes, n);
		case ART_ENC_NUMERIC:
			return a_numeric(in);
		case ART_ENC_INET:
			return an_inet(in);
		case ART_ENC_BIT:
			return a_bit_string(in);
		case ART_ENC_DATUM:
			n = some_bytes(in, bytes, sizeof(bytes), true);
			return a_varlena(in, bytes, n);
		case ART_ENC_NONE:
			break;
	}
	FUZZ_CLAIM(false, "no values of encoding %d", (int) col->enc);
	return (Datum) 0;
}

/* ---- order ---- */

#define COMPARE(a, b)	(((a) > (b)) - ((a) < (b)))

static int
compare_bytes(const void *a, uint32 alen, const void *b, uint32 blen)
{
	int			c = memcmp(a, b, Min(alen, blen));

	return c != 0 ? c : COMPARE(alen, blen);
}

static int
compare_floats(float8 a, float8 b)
{
	if (isnan(a) || isnan(b))
		return COMPARE(isnan(a) != 0, isnan(b) != 0);
	return COMPARE(a, b);
}

/* A bit of an address. */
static int
bit_of(const inet_struct *a, uint32 i)
{
	return a->ipaddr[i / 8] >> (7 - i % 8) & 1;
}

static int
compare_inets(Datum x, Datum y)
{
	const inet_struct *a = (const inet_struct *) VARDATA_ANY(DatumGetPointer(x));
	const inet_struct *b = (const inet_struct *) VARDATA_ANY(DatumGetPointer(y));
	uint32		all = a->family == PGSQL_AF_INET ? 32 : 128;
	int			c = COMPARE(a->family, b->family);

	/* the bits of the networks that both have, how many these are, all bits */
	for (uint32 i = 0; c == 0 && i < Min(a->bits, b->bits); i++)
		c = bit_of(a, i) - bit_of(b, i);
	if (c == 0)
		c = COMPARE(a->bits, b->bits);
	for (uint32 i = 0; c == 0 && i < all; i++)
		c = bit_of(a, i) - bit_of(b, i);
	return c;
}

static int
compare_bits(Datum x, Datum y)
{
	const char *a = VARDATA_ANY(DatumGetPointer(x));
	const char *b = VARDATA_ANY(DatumGetPointer(y));
	uint32		n = Min(VARSIZE_ANY_EXHDR(DatumGetPointer(x)), VARSIZE_ANY_EXHDR(DatumGetPointer(y))) - sizeof(int32);
	int32		abits;
	int32		bbits;
	int			c = memcmp(a + sizeof(int32), b + sizeof(int32), n);

	memcpy(&abits, a, sizeof(abits));
	memcpy(&bbits, b, sizeof(bbits));
	return c != 0 ? c : COMPARE(abits, bbits);
}

static __int128
span_of(Datum d)
{
	const Interval *i = DatumGetIntervalP(d);

	return ((__int128) i->month * 30 + i->day) * USECS_PER_DAY + i->time;
}

/* How many bytes a bpchar has without the blanks at its end. */
static uint32
without_blanks(Datum d)
{
	const char *p = VARDATA_ANY(DatumGetPointer(d));
	uint32		n = VARSIZE_ANY_EXHDR(DatumGetPointer(d));

	while (n > 0 && p[n - 1] == ' ')
		n--;
	return n;
}

/* The order of two values of the column, ascending. */
static int
compare_values(const ArtKeyCol *col, Datum a, Datum b)
{
	switch (col->enc)
	{
		case ART_ENC_INT2:
			return COMPARE(DatumGetInt16(a), DatumGetInt16(b));
		case ART_ENC_INT4:
		case ART_ENC_DATE:
			return COMPARE(DatumGetInt32(a), DatumGetInt32(b));
		case ART_ENC_INT8:
		case ART_ENC_INT64:
		case ART_ENC_TIMESTAMP:
			return COMPARE(DatumGetInt64(a), DatumGetInt64(b));
		case ART_ENC_UINT64:
			return COMPARE(DatumGetUInt64(a), DatumGetUInt64(b));
		case ART_ENC_OID:
			return COMPARE(DatumGetObjectId(a), DatumGetObjectId(b));
		case ART_ENC_BOOL:
			return COMPARE(DatumGetBool(a), DatumGetBool(b));
		case ART_ENC_CHAR:
			return COMPARE((uint8) DatumGetChar(a), (uint8) DatumGetChar(b));
		case ART_ENC_FLOAT4:
			return compare_floats(DatumGetFloat4(a), DatumGetFloat4(b));
		case ART_ENC_FLOAT8:
			return compare_floats(DatumGetFloat8(a), DatumGetFloat8(b));
		case ART_ENC_UUID:
		case ART_ENC_MAC:
			return memcmp(DatumGetPointer(a), DatumGetPointer(b), col->width);
		case ART_ENC_TID:
			return COMPARE(art_tid_pack((ItemPointer) DatumGetPointer(a)), art_tid_pack((ItemPointer) DatumGetPointer(b)));
		case ART_ENC_TIMETZ:
			{
				const TimeTzADT *x = DatumGetTimeTzADTP(a);
				const TimeTzADT *y = DatumGetTimeTzADTP(b);
				int			c = COMPARE(x->time + x->zone * USECS_PER_SEC, y->time + y->zone * USECS_PER_SEC);

				return c != 0 ? c : COMPARE(x->zone, y->zone);
			}
		case ART_ENC_INTERVAL:
			return COMPARE(span_of(a), span_of(b));
		case ART_ENC_NAME:
			return strncmp(NameStr(*DatumGetName(a)), NameStr(*DatumGetName(b)), NAMEDATALEN);
		case ART_ENC_TEXT:
		case ART_ENC_BYTEA:
			return compare_bytes(VARDATA_ANY(DatumGetPointer(a)), VARSIZE_ANY_EXHDR(DatumGetPointer(a)),
								 VARDATA_ANY(DatumGetPointer(b)), VARSIZE_ANY_EXHDR(DatumGetPointer(b)));
		case ART_ENC_BPCHAR:
			return compare_bytes(VARDATA_ANY(DatumGetPointer(a)), without_blanks(a),
								 VARDATA_ANY(DatumGetPointer(b)), without_blanks(b));
		case ART_ENC_NUMERIC:
			return compare_numerics(a, b);
		case ART_ENC_INET:
			return compare_inets(a, b);
		case ART_ENC_BIT:
			return compare_bits(a, b);
		case ART_ENC_DATUM:
		case ART_ENC_NONE:
			break;
	}
	FUZZ_CLAIM(false, "no order of encoding %d", (int) col->enc);
	return 0;
}

/* ---- columns ---- */

/* A description of 1 to "most" columns, and perhaps of one that is included. */
static void
make_columns(fuzz_in *in, ArtKeyDesc *kd, int most, bool include)
{
	memset(kd, 0, sizeof(*kd));
	kd->natts = kd->nall = 1 + (int) fuzz_below(in, (uint32) most);
	kd->images = true;
	for (int i = 0; i < kd->natts; i++)
	{
		const ArtEncoding *e = &art_encodings[fuzz_below(in, lengthof(art_encodings))];
		uint8		flags = fuzz_byte(in);

		kd->cols[i].enc = e->enc;
		kd->cols[i].width = e->width;
		kd->cols[i].lossy = e->lossy;
		kd->cols[i].typid = e->opcintype;
		kd->cols[i].desc = flags & 1;
		kd->cols[i].nulls_first = flags & 2;
	}
	if (include && fuzz_byte(in) % 4 == 0)
	{
		ArtKeyCol  *c = &kd->cols[kd->nall++];

		c->enc = ART_ENC_DATUM;
		c->typid = TEXTOID;
		c->typlen = -1;
		c->brief = fuzz_byte(in) & 1;
	}
	art_keydesc_finish(kd);
}

/* A row: one value in 16 is NULL. */
static void
make_row(fuzz_in *in, const ArtKeyDesc *kd, Datum *values, bool *isnull)
{
	for (int i = 0; i < kd->nall; i++)
	{
		isnull[i] = fuzz_byte(in) % 16 == 5;
		values[i] = isnull[i] ? (Datum) 0 : a_value(in, &kd->cols[i]);
	}
}

/* The order of a column of two rows, as the index has it. */
static inline int
compare_column(const ArtKeyDesc *kd, int i, Datum a, bool anull, Datum b, bool bnull)
{
	const ArtKeyCol *col = &kd->cols[i];
	int			c;

	if (anull || bnull)
	{
		c = COMPARE(anull, bnull);
		return col->nulls_first ? -c : c;
	}
	c = compare_values(col, a, b);
	return col->desc ? -c : c;
}

/* What encode.c calls that is the server's, or wants one. */
Datum
art_flat(Datum value, Oid type)
{
	FUZZ_CLAIM(false, "no column here has rows in it");
	return value;
}

struct varlena *
pg_detoast_datum_packed(struct varlena *datum)
{
	return datum;
}

int
bpchartruelen(char *s, int len)
{
	while (len > 0 && s[len - 1] == ' ')
		len--;
	return len;
}

char *
get_rel_name(Oid relid)
{
	return NULL;
}

#endif							/* FUZZ_VALUES_H */
