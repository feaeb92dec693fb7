/*
 * encodings.c
 *	  Fuzz target: values to bytes in their order, and back.
 *
 * Two rows of some columns, of every encoding that the table of src/key/encode.c has, are encoded.  Their
 * bytes must have the order of the rows (values.h), no key is the beginning of another, and each is decoded
 * to itself.  Then a key is damaged or cut off.  Whatever is made of it then, nothing reads behind its end.
 */
#include "server.h"

#include "../../src/key/buffer.c"
#include "../../src/key/encode_numeric.c"
#include "../../src/key/encode_types.c"
#include "../../src/key/encode.c"

#include "values.h"

typedef struct Row
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint8	   *key;			/* of exactly its length, without a TID */
	uint32		len;
	uint32		cols;			/* bytes of the columns */
} Row;

static ArtKeyDesc kd;

static void
encode_row(fuzz_in *in, Row *r, ArtBuf *buf)
{
	bool		anynull;

	make_row(in, &kd, r->values, r->isnull);
	anynull = art_encode(&kd, r->values, r->isnull, buf);
	FUZZ_CLAIM(anynull == (memchr(r->isnull, true, (size_t) kd.natts) != NULL), "art_encode is wrong about NULLs");
	FUZZ_CLAIM(!kd.fixed || anynull || buf->len == kd.fixed_len, "%u bytes, not %u", buf->len, kd.fixed_len);
	r->key = memcpy(palloc(buf->len), buf->data, buf->len);
	r->len = buf->len;
	r->cols = art_key_prefix_len(&kd, r->key, r->len, kd.natts);
}

/* Are the two datums the same, a short header or a long one apart? */
static bool
same_value(const ArtKeyCol *col, Datum a, Datum b)
{
	if (col->enc == ART_ENC_FLOAT4)
	{
		float4		x = DatumGetFloat4(a);
		float4		y = DatumGetFloat4(b);

		return memcmp(&x, &y, sizeof(x)) == 0;
	}
	if (col->enc == ART_ENC_FLOAT8)
		return a == b;
	if (col->enc == ART_ENC_INTERVAL)
		return memcmp(DatumGetPointer(a), DatumGetPointer(b), sizeof(Interval)) == 0;
	if (col->enc == ART_ENC_BPCHAR || col->enc == ART_ENC_NUMERIC || col->enc == ART_ENC_DATUM)
		return VARSIZE_ANY_EXHDR(DatumGetPointer(a)) == VARSIZE_ANY_EXHDR(DatumGetPointer(b)) &&
			memcmp(VARDATA_ANY(DatumGetPointer(a)), VARDATA_ANY(DatumGetPointer(b)),
				   VARSIZE_ANY_EXHDR(DatumGetPointer(a))) == 0;
	/* of the others no part is lost, and none is beside their order */
	return compare_values(col, a, b) == 0;
}

static void
check_decoded(const Row *r, int upto)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	art_decode(&kd, r->key, r->len, upto, values, isnull);
	for (int i = 0; i < upto; i++)
	{
		FUZZ_CLAIM(isnull[i] == r->isnull[i], "column %d: NULL or not", i);
		FUZZ_CLAIM(isnull[i] || same_value(&kd.cols[i], values[i], r->values[i]),
				   "column %d of encoding %d does not decode to itself", i, (int) kd.cols[i].enc);
	}
}

static void
check_order(const Row *a, const Row *b)
{
	int			by_bytes = memcmp(a->key, b->key, Min(a->cols, b->cols));
	int			c = 0;

	for (int i = 0; c == 0 && i < kd.natts; i++)
		c = compare_column(&kd, i, a->values[i], a->isnull[i], b->values[i], b->isnull[i]);
	FUZZ_CLAIM(by_bytes != 0 || a->cols == b->cols, "the columns of one row are the beginning of another's");
	FUZZ_CLAIM(COMPARE(by_bytes, 0) == COMPARE(c, 0), "bytes say %d, the values %d", by_bytes, c);
	FUZZ_CLAIM(a->len == b->len || memcmp(a->key, b->key, Min(a->len, b->len)) != 0,
			   "a key is the beginning of another");
}

/* A key that nobody has made: cut off, or with other bytes. */
static void
read_damaged(fuzz_in *in, const Row *r)
{
	uint32		len = fuzz_byte(in) % 4 == 0 ? fuzz_below(in, r->len + 1) : r->len;
	uint8	   *key = memcpy(palloc(len), r->key, len);
	const uint8 *end = key + len;
	const uint8 *p = key;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	for (int i = (int) fuzz_below(in, 5); i > 0 && len > 0; i--)
	{
		uint32		at = fuzz_below(in, len);

		key[at] ^= fuzz_byte(in);
	}
	for (int i = 0; p != NULL && i < kd.natts; i++)
	{
		p = art_skip_col_within(&kd.cols[i], p, end);
		FUZZ_CLAIM(p == NULL || (p > key && p <= end), "column %d ends behind the key", i);
	}
	if (!FUZZ_TRY(art_decode(&kd, key, len, kd.nall, values, isnull)))
		return;
	for (int i = 0; i < kd.nall; i++)
	{
		if (isnull[i] || kd.cols[i].enc != ART_ENC_DATUM)
			continue;
		FUZZ_CLAIM(VARATT_IS_1B(DatumGetPointer(values[i])) ||
				   (VARATT_IS_4B_U(DatumGetPointer(values[i])) && VARSIZE_4B(DatumGetPointer(values[i])) >= VARHDRSZ),
				   "a varlena that is shorter than its header, or compressed");
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_in		in = {data, size};
	fuzz_in		harm = fuzz_part(&in, 16);
	Row			a;
	Row			b;
	ArtBuf		buf;

	fuzz_server_reset();
	make_columns(&in, &kd, 3, true);
	art_buf_init(&buf, CurrentMemoryContext, 1);
	encode_row(&in, &a, &buf);
	encode_row(&in, &b, &buf);
	check_order(&a, &b);
	check_decoded(&a, kd.nall);
	check_decoded(&a, kd.natts);
	read_damaged(&harm, &b);
	return 0;
}
