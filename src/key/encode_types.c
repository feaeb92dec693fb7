/*
 * encode_types.c
 *	  Types that take more than a number's bytes: inet, bit strings, intervals;
 *	  and the payload of the columns whose bodies do not say everything.
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include <sys/socket.h>

#include "datatype/timestamp.h"
#include "utils/inet.h"
#include "utils/timestamp.h"
#include "utils/varbit.h"

#include "art_compat.h"
#include "key/encode.h"
#include "key/key.h"

/* ---- inet, cidr ---- */

/*
 * The order is: family, the bits that both networks have, their lengths, the
 * whole addresses.  So: family; the network, the bits behind it zero; its
 * length; the whole address, unless it is the network, having no bits behind it.
 */

static inline uint32
inet_bytes(uint8 family)
{
	return family == PGSQL_AF_INET ? 4 : 16;
}

void
art_inet_put(const struct varlena *v, ArtBuf *buf)
{
	const inet_struct *a = (const inet_struct *) VARDATA_ANY(v);
	uint32		n = inet_bytes(a->family);
	uint32		whole = a->bits / 8;

	if (VARSIZE_ANY_EXHDR(v) < offsetof(inet_struct, ipaddr) + n || a->bits > n * 8)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("inet value is malformed")));
	art_put_byte(buf, a->family);
	art_put_bytes(buf, a->ipaddr, n);
	if (whole < n)
	{
		uint8	   *p = buf->data + buf->len - n;

		p[whole] &= (uint8) ~(0xFF >> a->bits % 8);
		memset(p + whole + 1, 0, n - whole - 1);
	}
	art_put_byte(buf, a->bits);
	if (whole < n)
		art_put_bytes(buf, a->ipaddr, n);
}

const uint8 *
art_inet_skip(const uint8 *p, const uint8 *end, uint8 inv)
{
	uint32		n;

	if (p == end)
		return NULL;
	n = inet_bytes(*p ^ inv);
	if ((uint32) (end - p) < n + 2)
		return NULL;
	p += n + 2;
	if ((uint8) (p[-1] ^ inv) < n * 8)
	{
		if ((uint32) (end - p) < n)
			return NULL;
		p += n;
	}
	return p;
}

Datum
art_inet_get(const uint8 *p, const uint8 *end)
{
	uint32		n = inet_bytes(*p);
	Size		size = VARHDRSZ + offsetof(inet_struct, ipaddr) + n;
	inet	   *v = palloc(size);
	inet_struct *a = (inet_struct *) VARDATA(v);

	SET_VARSIZE(v, size);
	a->family = *p;
	a->bits = p[1 + n];
	memcpy(a->ipaddr, end - p > (ptrdiff_t) n + 2 ? p + n + 2 : p + 1, n);
	return PointerGetDatum(v);
}

/* ---- bit strings ---- */

/*
 * The bytes, then how many bits of the last one belong to it.  Where the bytes
 * are the same, the longer string is the larger one.
 */

void
art_bit_put(const struct varlena *v, ArtBuf *buf)
{
	const char *p = VARDATA_ANY(v);
	int32		bits;
	uint32		n = VARSIZE_ANY_EXHDR(v) - sizeof(bits);

	memcpy(&bits, p, sizeof(bits));
	art_put_escaped(buf, p + sizeof(bits), n, false);
	art_put_byte(buf, n == 0 ? 0 : (uint8) (bits - (int64) (n - 1) * BITS_PER_BYTE));
}

const uint8 *
art_bit_skip(const uint8 *p, const uint8 *end, uint8 inv)
{
	p = art_skip_escaped(p, end, inv);
	return p != NULL && p < end ? p + 1 : NULL;
}

Datum
art_bit_get(const uint8 *p, const uint8 *end)
{
	VarBit	   *v = palloc(VARBITHDRSZ + VARHDRSZ + (Size) (end - p));
	uint32		n = art_get_escaped(p, end - 1, 0, (char *) VARBITS(v));

	SET_VARSIZE(v, n + VARBITHDRSZ + VARHDRSZ);
	VARBITLEN(v) = n == 0 ? 0 : (int32) ((int64) (n - 1) * BITS_PER_BYTE + end[-1]);
	return PointerGetDatum(v);
}

/* ---- interval ---- */

/*
 * The order is that of the span, a month being 30 days: more than 64 bits of
 * microseconds.  So: whole days, and what is left, five bytes each.
 */
#define SPAN_BIAS	(INT64CONST(1) << 39)

static inline void
put40(uint8 *p, uint64 v)
{
	*p = (uint8) (v >> 32);
	art_store32(p + 1, (uint32) v);
}

static inline int64
get40(const uint8 *p)
{
	return (int64) ((uint64) *p << 32 | art_load32(p + 1));
}

void
art_interval_put(Datum value, uint8 *p)
{
	Interval	i;
	int64		days;
	int64		rest;

	memcpy(&i, DatumGetPointer(value), sizeof(i));
	days = i.time / USECS_PER_DAY;
	rest = i.time % USECS_PER_DAY;
	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	days += i.month * INT64CONST(30) + i.day;
	put40(p, (uint64) (days + SPAN_BIAS));
	put40(p + 5, (uint64) rest);
}

/*
 * The ways to divide a span into months, days and time that intervals mostly
 * have; false when that is out of range.
 */
typedef enum SpanForm
{
	SPAN_DAYS,					/* whole days, and time of the same sign */
	SPAN_TIME,					/* nothing but time */
	SPAN_MONTHS,				/* whole months, days, time, of the same sign */
	SPAN_RAW					/* none of these: all 16 bytes */
} SpanForm;

/*
 * Make an interval of the span, divided as "form" says.  False: no such
 * interval has that span.
 */
static bool
span_form(const uint8 *p, SpanForm form, Interval *i)
{
	int64		days = get40(p) - SPAN_BIAS;
	int64		time = get40(p + 5);

	memset(i, 0, sizeof(*i));
	if (form == SPAN_TIME)
	{
		if (days > PG_INT64_MAX / USECS_PER_DAY - 1 || days < PG_INT64_MIN / USECS_PER_DAY + 1)
			return false;
		i->time = days * USECS_PER_DAY + time;
		return true;
	}
	if (days < 0 && time > 0)
	{
		days++;
		time -= USECS_PER_DAY;
	}
	if (form == SPAN_MONTHS)
	{
		if (days / 30 != (int32) (days / 30))
			return false;
		i->month = (int32) (days / 30);
		days %= 30;
	}
	if (days != (int32) days)
		return false;
	i->day = (int32) days;
	i->time = time;
	return true;
}

Datum
art_interval_get(const uint8 *p)
{
	Interval   *i = palloc(sizeof(Interval));

	if (!span_form(p, SPAN_MONTHS, i))
	{
		/* more days than the months of an interval have: some as days and time */
		int64		days = get40(p) - SPAN_BIAS;
		int64		months = Max(PG_INT32_MIN, Min(PG_INT32_MAX, days / 30));

		days -= months * 30;
		i->month = (int32) months;
		i->day = (int32) Max(PG_INT32_MIN, Min(PG_INT32_MAX, days));
		i->time = (days - i->day) * USECS_PER_DAY + get40(p + 5);
	}
	return PointerGetDatum(i);
}

/* ---- payload ---- */

/* The trailing blanks of a bpchar. */
static uint32
blanks_of(const struct varlena *v)
{
	const char *s = VARDATA_ANY(v);
	uint32		n = VARSIZE_ANY_EXHDR(v);
	uint32		i = n;

	while (i > 0 && s[i - 1] == ' ')
		i--;
	return n - i;
}

/*
 *	  float4, float8   0, or 1 and the bytes: a negative zero, an unusual NaN
 *	  numeric          the display scale
 *	  bpchar           how many trailing blanks
 *	  interval         the SpanForm, with SPAN_RAW the bytes
 */
void
art_payload_put(const ArtKeyCol *col, Datum value, ArtBuf *buf)
{
	switch (col->enc)
	{
		case ART_ENC_FLOAT4:
			{
				float4		f = DatumGetFloat4(value);
				float4		same = isnan(f) ? get_float4_nan() : f == 0 ? 0 : f;

				if (memcmp(&f, &same, sizeof(f)) == 0)
					art_put_byte(buf, 0);
				else
				{
					art_put_byte(buf, 1);
					art_put_bytes(buf, &f, sizeof(f));
				}
				return;
			}
		case ART_ENC_FLOAT8:
			{
				float8		f = DatumGetFloat8(value);
				float8		same = isnan(f) ? get_float8_nan() : f == 0 ? 0 : f;

				if (memcmp(&f, &same, sizeof(f)) == 0)
					art_put_byte(buf, 0);
				else
				{
					art_put_byte(buf, 1);
					art_put_bytes(buf, &f, sizeof(f));
				}
				return;
			}
		case ART_ENC_NUMERIC:
		case ART_ENC_BPCHAR:
			{
				struct varlena *v = PG_DETOAST_DATUM_PACKED(value);

				art_put_varint(buf, col->enc == ART_ENC_NUMERIC ?
							   art_numeric_dscale(v) : blanks_of(v));
				if ((Pointer) v != DatumGetPointer(value))
					pfree(v);
				return;
			}
		case ART_ENC_INTERVAL:
			{
				uint8		body[ART_INTERVAL_BODY];

				art_interval_put(value, body);
				for (int form = 0; form < SPAN_RAW; form++)
				{
					Interval	i;

					if (span_form(body, form, &i) &&
						memcmp(&i, DatumGetPointer(value), sizeof(i)) == 0)
					{
						art_put_byte(buf, (uint8) form);
						return;
					}
				}
				art_put_byte(buf, SPAN_RAW);
				art_put_bytes(buf, DatumGetPointer(value), sizeof(Interval));
				return;
			}
		default:
			elog(ERROR, "unexpected key encoding %d", (int) col->enc);
	}
}

const uint8 *
art_payload_skip(const ArtKeyCol *col, const uint8 *p, const uint8 *end)
{
	uint32		n = 0;

	if (p == end)
		return NULL;
	switch (col->enc)
	{
		case ART_ENC_FLOAT4:
			n = *p++ ? sizeof(float4) : 0;
			break;
		case ART_ENC_FLOAT8:
			n = *p++ ? sizeof(float8) : 0;
			break;
		case ART_ENC_INTERVAL:
			n = *p++ == SPAN_RAW ? sizeof(Interval) : 0;
			break;
		default:
			return art_get_varint(p, end, &n);
	}
	return n <= (uint32) (end - p) ? p + n : NULL;
}

Datum
art_payload_get(const ArtKeyCol *col, const uint8 *body, const uint8 *bodyend,
				const uint8 *payload, const uint8 *payloadend)
{
	uint32		n;

	switch (col->enc)
	{
		case ART_ENC_FLOAT4:
			{
				float4		f = (float4) art_float_of_bits(art_load64(body));

				if (*payload == 0)
					return Float4GetDatum(f);
				memcpy(&f, payload + 1, sizeof(f));
				return Float4GetDatum(f);
			}
		case ART_ENC_FLOAT8:
			{
				float8		f = art_float_of_bits(art_load64(body));

				if (*payload == 0)
					return Float8GetDatum(f);
				memcpy(&f, payload + 1, sizeof(f));
				return Float8GetDatum(f);
			}
		case ART_ENC_NUMERIC:
			(void) art_get_varint(payload, payloadend, &n);
			return art_numeric_get(body, bodyend, n);
		case ART_ENC_BPCHAR:
			{
				/* the body's last byte is its end */
				uint32		len = (uint32) (bodyend - body) - 1;
				struct varlena *v;

				(void) art_get_varint(payload, payloadend, &n);
				v = palloc((Size) len + n + VARHDRSZ);
				SET_VARSIZE(v, (Size) len + n + VARHDRSZ);
				memcpy(VARDATA(v), body, len);
				memset(VARDATA(v) + len, ' ', n);
				return PointerGetDatum(v);
			}
		case ART_ENC_INTERVAL:
			{
				Interval   *i = palloc(sizeof(Interval));

				if (*payload == SPAN_RAW)
					memcpy(i, payload + 1, sizeof(*i));
				else
					(void) span_form(body, (SpanForm) *payload, i);
				return PointerGetDatum(i);
			}
		default:
			elog(ERROR, "unexpected key encoding %d", (int) col->enc);
	}
	return (Datum) 0;
}
