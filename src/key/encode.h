/*
 * encode.h
 *	  What the files that encode columns share: numbers as bytes, and the types
 *	  of encode_numeric.c and encode_types.c, whose bodies encode.c puts together.
 *
 * The functions of a type write and read ascending bytes; DESC, which inverts
 * them, is encode.c's.  Only skipping is done in the bytes as they are: "inv"
 * is 0xFF when they are inverted, else 0.
 *
 * src/key/README.md: Keys
 */
#ifndef ART_KEY_ENCODE_H
#define ART_KEY_ENCODE_H

#include <math.h>

#include "port/pg_bswap.h"
#include "utils/float.h"

#include "key/key.h"

#define ART_SIGN64	UINT64CONST(0x8000000000000000)

static inline void
art_store64(uint8 *p, uint64 v)
{
	v = pg_hton64(v);
	memcpy(p, &v, sizeof(v));
}

static inline void
art_store32(uint8 *p, uint32 v)
{
	v = pg_hton32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void
art_store16(uint8 *p, uint16 v)
{
	p[0] = (uint8) (v >> 8);
	p[1] = (uint8) v;
}

static inline uint64
art_load64(const uint8 *p)
{
	uint64		v;

	memcpy(&v, p, sizeof(v));
	return pg_ntoh64(v);
}

static inline uint32
art_load32(const uint8 *p)
{
	uint32		v;

	memcpy(&v, p, sizeof(v));
	return pg_ntoh32(v);
}

static inline uint16
art_load16(const uint8 *p)
{
	return (uint16) (p[0] << 8 | p[1]);
}

static inline void
art_put_byte(ArtBuf *buf, uint8 b)
{
	art_buf_reserve(buf, 1);
	buf->data[buf->len++] = b;
}

static inline void
art_put_bytes(ArtBuf *buf, const void *src, uint32 n)
{
	art_buf_reserve(buf, n);
	memcpy(buf->data + buf->len, src, n);
	buf->len += n;
}

/* Append n bytes, inverted for DESC; room is reserved. */
static inline void
art_append(ArtBuf *buf, const char *src, uint32 n, bool desc)
{
	uint8	   *dst = buf->data + buf->len;

	if (!desc)
		memcpy(dst, src, n);
	else
	{
		uint32		i;

		for (i = 0; i < n; i++)
			dst[i] = (uint8) ~(uint8) src[i];
	}
	buf->len += n;
}

/* Copy n bytes of an encoded string, inverted back for DESC. */
static inline void
art_copy_out(char *dst, const uint8 *src, uint32 n, bool desc)
{
	if (!desc)
		memcpy(dst, src, n);
	else
	{
		uint32		i;

		for (i = 0; i < n; i++)
			dst[i] = (char) ~src[i];
	}
}

/*
 * A float8 whose bits, as an unsigned number, have the order of floats: there is
 * one zero, and one NaN, above everything.
 */
static inline uint64
art_float_bits(float8 f)
{
	uint64		v;

	if (isnan(f))
		f = get_float8_nan();
	else if (f == 0)
		f = 0;
	memcpy(&v, &f, sizeof(v));
	return v & ART_SIGN64 ? ~v : v | ART_SIGN64;
}

static inline float8
art_float_of_bits(uint64 v)
{
	float8		f;

	v = v & ART_SIGN64 ? v ^ ART_SIGN64 : ~v;
	memcpy(&f, &v, sizeof(f));
	return f;
}

/*
 * A number in the payload, mostly a small one: seven bits a byte, from the
 * lowest, and the eighth says that there are more.
 */
static inline void
art_put_varint(ArtBuf *buf, uint32 v)
{
	for (; v >= 0x80; v >>= 7)
		art_put_byte(buf, (uint8) (v | 0x80));
	art_put_byte(buf, (uint8) v);
}

/* Behind a number that starts at p, NULL if it does not end before "end". */
static inline const uint8 *
art_get_varint(const uint8 *p, const uint8 *end, uint32 *v)
{
	*v = 0;
	for (int shift = 0; p < end && shift < 32; shift += 7)
	{
		*v |= (uint32) (*p & 0x7F) << shift;
		if (*p++ < 0x80)
			return p;
	}
	return NULL;
}

/* ---- strings of bytes, which may be zero (buffer.c) ---- */

/* 00 as 00 FF, then 00 00. */
extern void art_put_escaped(ArtBuf *buf, const char *s, uint32 n, bool desc);

/* Behind such a string, NULL if it does not end before "end". */
extern const uint8 *art_skip_escaped(const uint8 *p, const uint8 *end, uint8 inv);

/* The string at p, ended properly, to dst; returns how many bytes it has. */
extern uint32 art_get_escaped(const uint8 *p, const uint8 *end, uint8 inv, char *dst);

/* ---- numeric (encode_numeric.c) ---- */

/*
 * Append a numeric, ascending.  Numbers that are equal have the same bytes, whatever their
 * scale.
 */
extern void art_numeric_put(const struct varlena *v, ArtBuf *buf);

/*
 * Behind such a number, whose bytes are inverted if inv is 0xFF.  NULL if it does not end
 * before "end".
 */
extern const uint8 *art_numeric_skip(const uint8 *p, const uint8 *end, uint8 inv);

/* The number at p, ascending, with that display scale; palloc'd. */
extern Datum art_numeric_get(const uint8 *p, const uint8 *end, uint32 dscale);

/* The display scale of a numeric, which its bytes in a key do not have. */
extern uint32 art_numeric_dscale(const struct varlena *v);

/* ---- the rest (encode_types.c) ---- */

/*
 * An inet or cidr, ascending: append its bytes; find where they end (NULL if not before
 * "end"), inverted if inv is 0xFF; make the value of them, palloc'd.  Nothing is lost.
 */
extern void art_inet_put(const struct varlena *v, ArtBuf *buf);
extern const uint8 *art_inet_skip(const uint8 *p, const uint8 *end, uint8 inv);
extern Datum art_inet_get(const uint8 *p, const uint8 *end);

/*
 * A bit string, ascending: append its bytes; find where they end (NULL if not before
 * "end"), inverted if inv is 0xFF; make the value of them, palloc'd.  Nothing is lost.
 */
extern void art_bit_put(const struct varlena *v, ArtBuf *buf);
extern const uint8 *art_bit_skip(const uint8 *p, const uint8 *end, uint8 inv);
extern Datum art_bit_get(const uint8 *p, const uint8 *end);

#define ART_INTERVAL_BODY	10

/*
 * An interval as ART_INTERVAL_BODY bytes, in the order of its whole length; and an
 * interval that is equal to it, palloc'd.  The same bytes mean equal intervals, and not
 * the same one.
 */
extern void art_interval_put(Datum value, uint8 *p);
extern Datum art_interval_get(const uint8 *p);

/*
 * The payload of a column whose body is lossy (col->lossy).  It is written;
 * skipped (NULL if it does not end before "end"); read together with the
 * ascending body.
 */
extern void art_payload_put(const ArtKeyCol *col, Datum value, ArtBuf *buf);
extern const uint8 *art_payload_skip(const ArtKeyCol *col, const uint8 *p,
									 const uint8 *end);
extern Datum art_payload_get(const ArtKeyCol *col, const uint8 *body,
							 const uint8 *bodyend, const uint8 *payload,
							 const uint8 *payloadend);

/* ---- flatten.c ---- */

/* Is the type, which may be a domain, a composite one, or of arrays or ranges of such? */
extern bool art_holds_rows(Oid type);

/* The value, of such a type, with nothing toasted in it; in the current memory context. */
extern Datum art_flat(Datum value, Oid type);

#endif							/* ART_KEY_ENCODE_H */
