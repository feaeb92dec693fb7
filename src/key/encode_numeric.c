/*
 * encode_numeric.c
 *	  numeric as bytes whose order is numeric's, and back.
 *
 * A numeric is stored as a sign, a weight (the power of 10000 of the first
 * digit), digits and a display scale.  Digits are to the base 10000, without
 * zeros at either end.  No comparison looks at the scale, so it is payload.
 *
 *	  00         -Infinity
 *	  below 80   negative: all of what follows inverted
 *	  80         zero
 *	  81         weight below HEAD_MIN, two bytes, biased
 *	  82..E6     weight HEAD_MIN..HEAD_MAX
 *	  E7         weight above, two bytes, biased
 *	  FE         Infinity
 *	  FF         NaN
 *
 * then each digit in two bytes, the upper one plus 1, and 00 behind the last: a
 * number that goes on is the larger one.
 *
 * The server keeps the layout of numeric to itself, but it is that of every
 * table since 9.1 and of pg_upgrade.
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include "art_compat.h"
#include "key/encode.h"
#include "key/key.h"

/* the first half word of a stored numeric */
#define FORM_MASK		0xC000	/* 0: long, positive */
#define FORM_LONG_NEG	0x4000
#define FORM_SHORT		0x8000
#define FORM_SPECIAL	0xC000
#define SPECIAL_NAN		0xC000
#define SPECIAL_PINF	0xD000
#define SPECIAL_NINF	0xF000
/* long: scale; the weight is the second half word */
#define LONG_SCALE		0x3FFF
/* short: sign, scale, weight of seven bits with sign */
#define SHORT_NEG		0x2000
#define SHORT_SCALE_AT	7
#define SHORT_SCALE_MAX 0x3F
#define SHORT_WEIGHT	0x7F
#define SHORT_WEIGHT_SIGN 0x40

#define HEAD_NINF		0x00
#define HEAD_ZERO		0x80
#define HEAD_BELOW		0x81
#define HEAD_FIRST		0x82
#define HEAD_ABOVE		0xE7
#define HEAD_PINF		0xFE
#define HEAD_NAN		0xFF
#define HEAD_MIN		(-20)
#define HEAD_MAX		(HEAD_MIN + HEAD_ABOVE - HEAD_FIRST - 1)

static inline uint16
half(const char *p)
{
	uint16		v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The parts of a stored numeric, whatever its alignment. */
typedef struct Parts
{
	uint16		special;		/* not 0: one of SPECIAL_, and nothing else */
	bool		negative;
	int			weight;
	uint32		dscale;
	const char *digits;
	int			ndigits;
} Parts;

/*
 * Read the header of a numeric and find its digits, without zeros at either
 * end.
 */
static void
read_header(const struct varlena *v, Parts *n)
{
	const char *p = VARDATA_ANY(v);
	uint32		len = VARSIZE_ANY_EXHDR(v);
	uint16		head = len >= sizeof(uint16) ? half(p) : 0;

	if (len < ((head & FORM_SHORT) ? 1 : 2) * sizeof(uint16))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("numeric value is too short")));
	memset(n, 0, sizeof(*n));
	if ((head & FORM_MASK) == FORM_SPECIAL)
	{
		n->special = head;
		return;
	}
	if ((head & FORM_MASK) == FORM_SHORT)
	{
		n->negative = (head & SHORT_NEG) != 0;
		n->dscale = (head >> SHORT_SCALE_AT) & SHORT_SCALE_MAX;
		n->weight = head & SHORT_WEIGHT;
		if (n->weight & SHORT_WEIGHT_SIGN)
			n->weight -= SHORT_WEIGHT + 1;
		n->digits = p + sizeof(uint16);
		len -= sizeof(uint16);
	}
	else
	{
		n->negative = (head & FORM_MASK) == FORM_LONG_NEG;
		n->dscale = head & LONG_SCALE;
		n->weight = (int16) half(p + sizeof(uint16));
		n->digits = p + 2 * sizeof(uint16);
		len -= 2 * sizeof(uint16);
	}
	n->ndigits = (int) (len / sizeof(uint16));

	/* the server keeps none of these, and says that it relies on nothing */
	while (n->ndigits > 0 && half(n->digits) == 0)
	{
		n->digits += sizeof(uint16);
		n->ndigits--;
		n->weight--;
	}
	while (n->ndigits > 0 && half(n->digits + (n->ndigits - 1) * sizeof(uint16)) == 0)
		n->ndigits--;
}

void
art_numeric_put(const struct varlena *v, ArtBuf *buf)
{
	Parts		n;
	uint8	   *p;
	uint8	   *start;

	read_header(v, &n);
	if (n.special != 0 || n.ndigits == 0)
	{
		art_put_byte(buf, n.special == 0 ? HEAD_ZERO :
					 n.special == SPECIAL_PINF ? HEAD_PINF :
					 n.special == SPECIAL_NINF ? HEAD_NINF : HEAD_NAN);
		return;
	}

	art_buf_reserve(buf, 4 + 2 * (uint32) n.ndigits);
	start = p = buf->data + buf->len;
	if (n.weight >= HEAD_MIN && n.weight <= HEAD_MAX)
		*p++ = (uint8) (HEAD_FIRST + n.weight - HEAD_MIN);
	else
	{
		*p++ = n.weight < HEAD_MIN ? HEAD_BELOW : HEAD_ABOVE;

		/* a leading zero that was left out may have made it less than an int16 */
		art_store16(p, (uint16) (Max(n.weight, PG_INT16_MIN) - PG_INT16_MIN));
		p += 2;
	}
	for (int i = 0; i < n.ndigits; i++)
	{
		art_store16(p, (uint16) (half(n.digits + i * sizeof(uint16)) + 0x100));
		p += 2;
	}
	*p++ = 0;
	buf->len = (uint32) (p - buf->data);
	if (n.negative)
	{
		for (; start < p; start++)
			*start = (uint8) ~*start;
	}
}

const uint8 *
art_numeric_skip(const uint8 *p, const uint8 *end, uint8 inv)
{
	uint8		head;

	if (p == end)
		return NULL;
	head = *p++ ^ inv;
	if (head == HEAD_ZERO || head == HEAD_PINF || head == HEAD_NINF || head == HEAD_NAN)
		return p;
	if (head < HEAD_ZERO)
	{
		inv = (uint8) ~inv;
		head = (uint8) ~head;
	}
	if (head == HEAD_BELOW || head == HEAD_ABOVE)
		p += 2;
	for (; p < end; p += 2)
	{
		if (*p == inv)			/* 00 */
			return p + 1;
	}
	return NULL;
}

/* The datum that the server itself would have made. */
Datum
art_numeric_get(const uint8 *p, const uint8 *end, uint32 dscale)
{
	uint8		head = *p++;
	uint8		inv = 0;
	int			weight = 0;
	int			ndigits = 0;
	struct varlena *v;
	char	   *to;
	uint16		h[2];
	bool		brief;

	if (head == HEAD_NAN || head == HEAD_PINF || head == HEAD_NINF)
	{
		h[0] = head == HEAD_NAN ? SPECIAL_NAN :
			head == HEAD_PINF ? SPECIAL_PINF : SPECIAL_NINF;
		v = palloc(VARHDRSZ + sizeof(uint16));
		SET_VARSIZE(v, VARHDRSZ + sizeof(uint16));
		memcpy(VARDATA(v), h, sizeof(uint16));
		return PointerGetDatum(v);
	}
	if (head != HEAD_ZERO)
	{
		if (head < HEAD_ZERO)
		{
			inv = 0xFF;
			head = (uint8) ~head;
		}
		if (head == HEAD_BELOW || head == HEAD_ABOVE)
		{
			weight = (uint16) (art_load16(p) ^ (inv << 8 | inv)) + PG_INT16_MIN;
			p += 2;
		}
		else
			weight = head - HEAD_FIRST + HEAD_MIN;
		ndigits = (int) (end - 1 - p) / 2;
	}

	brief = dscale <= SHORT_SCALE_MAX &&
		weight >= -SHORT_WEIGHT_SIGN && weight < SHORT_WEIGHT_SIGN;
	if (brief)
		h[0] = (uint16) (FORM_SHORT | (inv ? SHORT_NEG : 0) |
						 dscale << SHORT_SCALE_AT | (weight & SHORT_WEIGHT));
	else
	{
		h[0] = (uint16) ((inv ? FORM_LONG_NEG : 0) | dscale);
		h[1] = (uint16) (int16) weight;
	}
	v = palloc(VARHDRSZ + (brief ? 1 : 2) * sizeof(uint16) + ndigits * sizeof(uint16));
	SET_VARSIZE(v, VARHDRSZ + (brief ? 1 : 2) * sizeof(uint16) + ndigits * sizeof(uint16));
	to = VARDATA(v);
	memcpy(to, h, (brief ? 1 : 2) * sizeof(uint16));
	to += (brief ? 1 : 2) * sizeof(uint16);
	for (int i = 0; i < ndigits; i++)
	{
		uint16		d = (uint16) ((art_load16(p + 2 * i) ^ (inv << 8 | inv)) - 0x100);

		memcpy(to + i * sizeof(uint16), &d, sizeof(d));
	}
	return PointerGetDatum(v);
}

uint32
art_numeric_dscale(const struct varlena *v)
{
	Parts		n;

	read_header(v, &n);
	return n.dscale;
}
