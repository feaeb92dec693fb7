/*
 * compared_order.c
 *	  The order of keys that no bytes stand for: column by column, by the
 *	  operator class's comparison function where there is no encoding.
 *
 * The order is nbtree's: NULLs first or last, DESC, the TID last, which lies
 * behind the payload.  Entries may be equal in all that, but not in their
 * bytes.  So it is with a nondeterministic collation, an array's elements of
 * different scales, or two versions of a row at one address.  They are put in
 * the order of the bytes.  So each is an entry of its own and can be found
 * exactly.
 *
 * src/key/README.md: Keys that are compared
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "utils/memutils.h"

#include "art_compat.h"
#include "core/ax.h"
#include "eval/eval.h"
#include "key/key.h"

/*
 * The datum whose body is at p, for a comparison: it need not be copied unless
 * its place is not one for its type.
 */
static inline Datum
art_col_ref(const ArtKeyCol *col, const uint8 *p, const uint8 *end, ArtBuf *scratch)
{
	if (col->byval)
		return art_fetch_byval(col, p);
	if (col->align == TYPALIGN_CHAR || (col->typlen == -1 && VARATT_IS_1B(p)))
		return PointerGetDatum(p);
	scratch->len = 0;
	art_buf_reserve(scratch, (uint32) (end - p));
	memcpy(scratch->data, p, end - p);
	return PointerGetDatum(scratch->data);
}

Datum
art_col_datum(const ArtKeyCol *col, const uint8 *p, const uint8 *end)
{
	char	   *copy;

	if (col->byval)
		return art_fetch_byval(col, p);
	if (col->align == TYPALIGN_CHAR || (col->typlen == -1 && VARATT_IS_1B(p)))
		return PointerGetDatum(p);
	copy = palloc(end - p);
	memcpy(copy, p, end - p);
	return PointerGetDatum(copy);
}

/*
 * Two values of a column without an encoding, DESC applied.  A value is equal to itself.
 * The function is not asked: it may raise an error, which btree would not meet, for an
 * entry that is looked for again.
 */
static int
art_datum_cmp(const ArtKeyDesc *kd, int i, const uint8 *a, const uint8 *aend,
			  const uint8 *b, const uint8 *bend)
{
	ArtCmp	   *c = kd->cmp;
	const ArtKeyCol *col = &kd->cols[i];
	MemoryContext old;
	Datum		x,
				y;
	int32		r;

	if (aend - a == bend - b && memcmp(a, b, aend - a) == 0)
		return 0;
	x = art_col_ref(col, a, aend, &c->scratch[0]);
	y = art_col_ref(col, b, bend, &c->scratch[1]);
	old = MemoryContextSwitchTo(c->tmp);
	r = DatumGetInt32(art_opclass_call(&c->fn[i], col->collation, x, y));
	MemoryContextSwitchTo(old);
	MemoryContextReset(c->tmp);
	if (col->desc)
		INVERT_COMPARE_RESULT(r);
	return r;
}

/*
 * Compare column i of two keys at *a and *b, and move both behind it.  The
 * second may end within it: then *b is NULL, if they are equal so far.
 */
static int
art_col_walk(const ArtKeyDesc *kd, int i, const uint8 **a, const uint8 *aend,
			 const uint8 **b, const uint8 *bend)
{
	const ArtKeyCol *col = &kd->cols[i];
	const uint8 *pa = *a;
	const uint8 *pb = *b;
	const uint8 *na;
	const uint8 *nb;
	int			c;

	if (unlikely(pa == aend) || *pa != *pb)
	{
		(void) art_skip_col(kd, col, pa, aend); /* raises if it is none */
		return *pa < *pb ? -1 : *pa > *pb;
	}
	na = art_skip_col(kd, col, pa, aend);
	if (*pa != ART_MARK_VALUE)
	{
		*a = na;
		*b = pb + 1;
		return 0;
	}
	if (pb + 1 == bend)
	{
		*b = NULL;
		return 0;
	}
	if (col->enc != ART_ENC_DATUM)
	{
		uint32		n = (uint32) (na - pa);

		/* no body is another's beginning */
		c = memcmp(pa, pb, Min(n, (uint32) (bend - pb)));
		*a = na;
		*b = c == 0 && (uint32) (bend - pb) < n ? NULL : pb + n;
		return c;
	}
	nb = art_skip_col(kd, col, pb, bend);
	c = art_datum_cmp(kd, i, pa + 1, na, pb + 1, nb);
	*a = na;
	*b = nb;
	return c;
}

int
art_key_cmp(const ArtKeyDesc *kd, const uint8 *entry, uint32 elen,
			const uint8 *key, uint32 klen, bool after, bool images)
{
	const uint8 *pe = entry;
	const uint8 *pk = key;
	const uint8 *kend = key + klen;
	int			c;
	int			i;

	for (i = 0; i < kd->natts; i++)
	{
		if (pk == kend)
			return after ? -1 : 1;
		c = art_col_walk(kd, i, &pe, entry + elen - AX_TID_BYTES, &pk, kend);
		if (c != 0)
			return c;
		if (pk == NULL)
			return after ? -1 : 1;
	}
	if (pk == kend)
		return after ? -1 : 1;
	/* TIDs, behind the payload */
	c = memcmp(entry + elen - AX_TID_BYTES, kend - AX_TID_BYTES, AX_TID_BYTES);
	if (c != 0)
		return c;
	if (!images)
		return after ? -1 : 1;
	c = memcmp(entry, key, Min(elen, klen));
	return c != 0 ? c : (elen > klen) - (elen < klen);
}

bool
art_key_begins(const ArtKeyDesc *kd, const uint8 *entry, uint32 elen,
			   const uint8 *key, uint32 klen)
{
	const uint8 *pe = entry;
	const uint8 *pk = key;

	for (int i = 0; i < kd->natts && pk != NULL && pk < key + klen; i++)
	{
		if (art_col_walk(kd, i, &pe, entry + elen - AX_TID_BYTES, &pk, key + klen) != 0)
			return false;
	}
	return true;
}

bool
art_key_is_entry(const ArtKeyDesc *kd, const uint8 *key, uint32 len)
{
	const uint8 *p = key;
	const uint8 *end = key + len - AX_TID_BYTES;

	if (len <= AX_TID_BYTES)
		return false;
	for (int i = 0; i < kd->nall && p != NULL && p <= end; i++)
		p = p < end ? art_skip_col_within(&kd->cols[i], p, end) : NULL;
	return p == end;
}

int
art_key_order(const ArtKeyDesc *kd, const uint8 *a, uint32 alen,
			  const uint8 *b, uint32 blen)
{
	const uint8 *pa = a;
	const uint8 *pb = b;
	int			i;

	for (i = 0; i < kd->natts; i++)
	{
		int			c = art_col_walk(kd, i, &pa, a + alen, &pb, b + blen);

		if (c != 0)
			return c;
	}
	return 0;
}

/*
 * Either may end earlier than the other; as far as both go they are compared.
 */
int
art_position_cmp(const ArtKeyDesc *kd, const uint8 *a, uint32 alen, bool aafter,
				 const uint8 *b, uint32 blen, bool bafter)
{
	const uint8 *pa = a;
	const uint8 *pb = b;
	const uint8 *aend = a + alen;
	const uint8 *bend = b + blen;
	int			c;
	int			i;

	for (i = 0; i < kd->natts && pa < aend && pb < bend; i++)
	{
		const uint8 *na;
		const uint8 *nb;

		/* either may be a marker alone, or a constant that was cut off */
		na = art_skip_col_within(&kd->cols[i], pa, aend);
		nb = art_skip_col_within(&kd->cols[i], pb, bend);
		if (na == NULL)
			na = aend;
		if (nb == NULL)
			nb = bend;
		c = art_col_position_cmp(kd, i, &(ax_bound) {pa, (uint32) (na - pa), aafter},
								 &(ax_bound) {pb, (uint32) (nb - pb), bafter});
		if (na == aend && nb == bend)
			return c;
		if (na == aend || nb == bend)
		{
			/* equal so far?  then the shorter one decides */
			if (art_col_position_cmp(kd, i, &(ax_bound) {pa, (uint32) (na - pa), false},
									 &(ax_bound) {pb, (uint32) (nb - pb), false}) != 0)
				return c;
			return na == aend ? (aafter ? 1 : -1) : (bafter ? -1 : 1);
		}
		c = art_col_position_cmp(kd, i, &(ax_bound) {pa, (uint32) (na - pa), false},
								 &(ax_bound) {pb, (uint32) (nb - pb), false});
		if (c != 0)
			return c;
		pa = na;
		pb = nb;
	}
	if (pa == aend || pb == bend)
	{
		if (pa == aend && pb == bend)
			return (int) aafter - (int) bafter;
		return pa == aend ? (aafter ? 1 : -1) : (bafter ? -1 : 1);
	}
	c = memcmp(aend - AX_TID_BYTES, bend - AX_TID_BYTES, AX_TID_BYTES);
	if (c == 0)
		c = memcmp(a, b, Min(alen, blen));
	if (c == 0)
		c = (alen > blen) - (alen < blen);
	return c != 0 ? c : (int) aafter - (int) bafter;
}

int
art_col_position_cmp(const ArtKeyDesc *kd, int col, const ax_bound *a, const ax_bound *b)
{
	uint32		alen = a->len;
	int			c;

	if (kd->cols[col].enc != ART_ENC_DATUM)
		c = memcmp(a->key, b->key, Min(alen, b->len));
	else if (*a->key != *b->key)
		return *a->key < *b->key ? -1 : 1;
	else if (alen > 1 && b->len > 1)
	{
		c = art_datum_cmp(kd, col, a->key + 1, a->key + alen, b->key + 1, b->key + b->len);
		alen = b->len;			/* whatever the bytes */
	}
	else
		c = 0;
	if (c != 0)
		return c;
	if (alen == b->len)
		return (int) a->after - (int) b->after;
	if (alen < b->len)
		return a->after ? 1 : -1;
	return b->after ? -1 : 1;
}
