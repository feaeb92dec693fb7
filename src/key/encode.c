/*
 * encode.c
 *	  Datums to order-preserving bytes and back.
 *
 * The comparison function of a column's operator class decides which encoding
 * the column gets, because that function defines the order.  The type does not
 * decide.  A class whose function is not in the table below has no encoding,
 * however sound its order is.  Nor has text under a collation that is not
 * bytewise.  Such a column is kept as the datum and compared (compared_order.c).
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include <langinfo.h>
#include <locale.h>

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/transam.h"
#include "access/tupmacs.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "art_compat.h"
#include "core/ax.h"
#include "eval/eval.h"
#include "key/encode.h"
#include "key/key.h"

/* Conditions on which the order of an encoding depends. */
typedef enum ArtCollate
{
	ART_COLLATE_NONE,			/* nothing */
	ART_COLLATE_BYTES,			/* bytewise if the collation's order is */
	ART_COLLATE_PATTERN			/* bytewise if the collation's equality is */
} ArtCollate;

typedef struct ArtEncoding
{
	RegProcedure cmp;			/* support function 1 */
	Oid			opcintype;
	ArtEncKind	enc;
	uint16		width;			/* body bytes, 0: variable */
	ArtCollate	collate;
	bool		lossy;			/* the body is not the whole datum */
} ArtEncoding;

/*
 * Types that are not here have no order that bytes could keep for good, or not
 * one of their own.  An enum's labels have sort positions in a catalog.  ALTER
 * TYPE ADD VALUE makes new ones between them, and renumbers them when there is
 * no room left.  Bytes that were right when an entry went in would be wrong
 * later.  ICU and libc collations change with their libraries.  Arrays, ranges
 * and rows have the order of whatever they are made of. citext and other types
 * of extensions have functions that nobody here knows.
 */
static const ArtEncoding art_encodings[] = {
	{F_BTINT2CMP, INT2OID, ART_ENC_INT2, 8, ART_COLLATE_NONE, false},
	{F_BTINT4CMP, INT4OID, ART_ENC_INT4, 8, ART_COLLATE_NONE, false},
	{F_BTINT8CMP, INT8OID, ART_ENC_INT8, 8, ART_COLLATE_NONE, false},
	{F_BTOIDCMP, OIDOID, ART_ENC_OID, 4, ART_COLLATE_NONE, false},
	{F_BTBOOLCMP, BOOLOID, ART_ENC_BOOL, 1, ART_COLLATE_NONE, false},
	{F_DATE_CMP, DATEOID, ART_ENC_DATE, 4, ART_COLLATE_NONE, false},
	{F_TIMESTAMP_CMP, TIMESTAMPOID, ART_ENC_TIMESTAMP, 8, ART_COLLATE_NONE, false},
	{F_TIMESTAMPTZ_CMP, TIMESTAMPTZOID, ART_ENC_TIMESTAMP, 8, ART_COLLATE_NONE, false},
	{F_UUID_CMP, UUIDOID, ART_ENC_UUID, UUID_LEN, ART_COLLATE_NONE, false},
	{F_BYTEACMP, BYTEAOID, ART_ENC_BYTEA, 0, ART_COLLATE_NONE, false},
	{F_BTTEXTCMP, TEXTOID, ART_ENC_TEXT, 0, ART_COLLATE_BYTES, false},
	{F_BTTEXT_PATTERN_CMP, TEXTOID, ART_ENC_TEXT, 0, ART_COLLATE_PATTERN, false},
	{F_BTNAMECMP, NAMEOID, ART_ENC_NAME, 0, ART_COLLATE_BYTES, false},
	{F_BPCHARCMP, BPCHAROID, ART_ENC_BPCHAR, 0, ART_COLLATE_BYTES, true},
	{F_BTBPCHAR_PATTERN_CMP, BPCHAROID, ART_ENC_BPCHAR, 0, ART_COLLATE_PATTERN, true},
	{F_BTFLOAT4CMP, FLOAT4OID, ART_ENC_FLOAT4, 8, ART_COLLATE_NONE, true},
	{F_BTFLOAT8CMP, FLOAT8OID, ART_ENC_FLOAT8, 8, ART_COLLATE_NONE, true},
	{F_NUMERIC_CMP, NUMERICOID, ART_ENC_NUMERIC, 0, ART_COLLATE_NONE, true},
	{F_CASH_CMP, MONEYOID, ART_ENC_INT64, 8, ART_COLLATE_NONE, false},
	{F_TIME_CMP, TIMEOID, ART_ENC_INT64, 8, ART_COLLATE_NONE, false},
	{F_TIMETZ_CMP, TIMETZOID, ART_ENC_TIMETZ, 12, ART_COLLATE_NONE, false},
	{F_INTERVAL_CMP, INTERVALOID, ART_ENC_INTERVAL, ART_INTERVAL_BODY, ART_COLLATE_NONE, true},
	{F_BTCHARCMP, CHAROID, ART_ENC_CHAR, 1, ART_COLLATE_NONE, false},
	{F_NETWORK_CMP, INETOID, ART_ENC_INET, 0, ART_COLLATE_NONE, false},
	{F_MACADDR_CMP, MACADDROID, ART_ENC_MAC, sizeof(macaddr), ART_COLLATE_NONE, false},
	{F_MACADDR8_CMP, MACADDR8OID, ART_ENC_MAC, sizeof(macaddr8), ART_COLLATE_NONE, false},
	{F_BITCMP, BITOID, ART_ENC_BIT, 0, ART_COLLATE_NONE, false},
	{F_VARBITCMP, VARBITOID, ART_ENC_BIT, 0, ART_COLLATE_NONE, false},
	{F_PG_LSN_CMP, PG_LSNOID, ART_ENC_UINT64, 8, ART_COLLATE_NONE, false},
	{F_XID8CMP, XID8OID, ART_ENC_UINT64, 8, ART_COLLATE_NONE, false},
#ifdef OID8OID					/* from 19 on */
	{F_BTOID8CMP, OID8OID, ART_ENC_UINT64, 8, ART_COLLATE_NONE, false},
#endif
	{F_BTTIDCMP, TIDOID, ART_ENC_TID, AX_TID_BYTES, ART_COLLATE_NONE, false},
};

/* ---- description -------------------------------------------------------- */

/*
 * Does the collation order strings as memcmp does?  The collations that core
 * itself treats so (C, POSIX, the builtin provider), and the libc locales that
 * have no collation rules at all.  For those glibc's strcoll is strcmp by
 * construction (C.UTF-8 of glibc 2.35 and later, for one).
 */
static bool
art_collation_is_bytewise(Oid collation)
{
	if (!OidIsValid(collation))
		return false;
	if (art_collate_is_c(collation))
		return true;

#if defined(__GLIBC__)
	{
		union
		{
			char	   *string;
			unsigned int word;
		}			nrules;		/* as locale(1) reads a word item */

		locale_t	loc;

		if (!art_libc_locale(collation, &loc))
			return false;
		nrules.string = loc != (locale_t) 0 ? nl_langinfo_l(_NL_COLLATE_NRULES, loc) :
			nl_langinfo(_NL_COLLATE_NRULES);
		return nrules.word == 0;
	}
#else
	return false;
#endif
}

/* The encoding whose order is that comparison function's, or NULL. */
static const ArtEncoding *
art_encoding_find(RegProcedure cmp, Oid opcintype)
{
	int			i;

	for (i = 0; i < (int) lengthof(art_encodings); i++)
	{
		if (art_encodings[i].cmp == cmp &&
			art_encodings[i].opcintype == opcintype)
			return &art_encodings[i];
	}
	return NULL;
}

/* The encoding of a key column (from 0), or NULL. */
static const ArtEncoding *
art_encoding_of(Relation index, int col)
{
	return art_encoding_find(index_getprocid(index, col + 1, 1),
							 index->rd_opcintype[col]);
}

/* Name of the operator class of a key column (from 0). */
static char *
column_class_name(Relation index, int col)
{
	bool		isnull;
	Datum		d = SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
									Anum_pg_index_indclass, &isnull);
	oidvector  *indclass = (oidvector *) DatumGetPointer(d);
	HeapTuple	tup;
	char	   *name;

	Assert(!isnull);
	tup = SearchSysCache1(CLAOID, ObjectIdGetDatum(indclass->values[col]));
	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator class %u",
			 indclass->values[col]);
	name = pstrdup(NameStr(((Form_pg_opclass) GETSTRUCT(tup))->opcname));
	ReleaseSysCache(tup);
	return name;
}

/*
 * The encoding of a key column (from 0), or NULL: compared.
 */
static const ArtEncoding *
art_encoding_for(Relation index, int col)
{
	const ArtEncoding *e = art_encoding_of(index, col);

	if (e != NULL && e->collate == ART_COLLATE_BYTES &&
		!art_collation_is_bytewise(index->rd_indcollation[col]))
		return NULL;
	return e;
}

bool
art_index_compared(Relation index)
{
	int			i;

	for (i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (art_encoding_for(index, i) == NULL)
			return true;
	}
	return false;
}

/*
 * Describe a column without an encoding.  Short headers are the type's affair,
 * not the column's: SET STORAGE must not change the bytes of a structure.
 */
static void
art_col_set_datum(ArtKeyCol *col, Oid type, Oid cmp)
{
	col->enc = ART_ENC_DATUM;
	get_typlenbyvalalign(type, &col->typlen, &col->byval, &col->align);
	col->brief = col->typlen == -1 && get_typstorage(type) != TYPSTORAGE_PLAIN;
	col->cmp = cmp;
	col->width = col->typlen > 0 ? (uint16) col->typlen : 0;
}

void
art_keydesc_own(ArtKeyDesc *kd, MemoryContext cxt)
{
	ArtCmp	   *c;
	int			i;

	kd->cmp = NULL;
	if (likely(!kd->compared))
		return;
	c = MemoryContextAllocZero(cxt, offsetof(ArtCmp, fn) +
							   kd->natts * sizeof(FmgrInfo));
	c->cxt = cxt;
	c->tmp = AllocSetContextCreate(cxt, "art comparison", ALLOCSET_SMALL_SIZES);
	c->scratch = MemoryContextAlloc(cxt, 2 * sizeof(ArtBuf));
	art_buf_init(&c->scratch[0], cxt, 256);
	art_buf_init(&c->scratch[1], cxt, 256);
	for (i = 0; i < kd->natts; i++)
	{
		if (kd->cols[i].enc == ART_ENC_DATUM)
			fmgr_info_cxt(kd->cols[i].cmp, &c->fn[i], cxt);
	}
	kd->cmp = c;
}

/* The rest of a description whose columns are there. */
static void
art_keydesc_finish(ArtKeyDesc *kd)
{
	kd->payload = kd->nall > kd->natts;
	kd->fixed = true;
	kd->fixed_len = 0;
	for (int i = 0; i < kd->natts; i++)
	{
		kd->lossy |= kd->cols[i].lossy;
		if (kd->cols[i].width == 0)
			kd->fixed = false;
		kd->fixed_len += 1 + kd->cols[i].width;
	}
	kd->payload |= kd->lossy;
	if (kd->payload)
		kd->fixed = false;
	if (!kd->fixed)
		kd->fixed_len = 0;
}

/*
 * Is equality of a compared column (from 0) that of the bytes, as its operator
 * class says (as nbtree asks before it deduplicates)?  That of bpchar says so,
 * and means strings that were padded; "bpchar" without a length has others.
 */
static bool
art_col_images(Relation index, int col)
{
	RegProcedure proc = index_getprocid(index, col + 1, BTEQUALIMAGE_PROC);

	if (index_getprocid(index, col + 1, 1) == F_BPCHARCMP)
		return false;

	return OidIsValid(proc) &&
		index_getprocid(index, col + 1, 1) < FirstNormalObjectId &&
		art_opclass_equalimage(proc, index->rd_indcollation[col], index->rd_opcintype[col]);
}

ArtKeyDesc *
art_keydesc_build(Relation index, MemoryContext cxt)
{
	ArtKeyDesc *kd = art_keydesc_facts(index, cxt);

	art_keydesc_own(kd, cxt);
	return kd;
}

ArtKeyDesc *
art_keydesc_facts(Relation index, MemoryContext cxt)
{
	int			natts = IndexRelationGetNumberOfKeyAttributes(index);
	ArtKeyDesc *kd = MemoryContextAllocZero(cxt, sizeof(ArtKeyDesc));
	int			i;

	kd->indexid = RelationGetRelid(index);
	kd->natts = kd->nall = natts;
	kd->images = true;
	for (i = 0; i < natts; i++)
	{
		ArtKeyCol  *col = &kd->cols[i];
		const ArtEncoding *e = art_encoding_for(index, i);
		Oid			collation = index->rd_indcollation[i];

		col->typid = index->rd_opcintype[i];
		col->collation = collation;
		col->desc = (index->rd_indoption[i] & INDOPTION_DESC) != 0;
		col->nulls_first = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
		if (e == NULL)
		{
			art_col_set_datum(col, TupleDescAttr(RelationGetDescr(index), i)->atttypid,
							  index_getprocid(index, i + 1, 1));
			col->sort = index_getprocid(index, i + 1, BTSORTSUPPORT_PROC);
			if (index->rd_index->indkey.values[i] == 0 &&
				art_holds_rows(TupleDescAttr(RelationGetDescr(index), i)->atttypid))
				col->rows = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
			kd->compared = true;
			if (!art_col_images(index, i))
				kd->images = false;
			kd->doubtful |= art_cmp_doubtful(col->cmp, TupleDescAttr(RelationGetDescr(index), i)->atttypid);
		}
		else
		{
			/*
			 * The operator class's "=" is the ordinary one, so it must agree
			 * with the bytes.  Core makes this check for btree's classes only.
			 */
			if (e->collate == ART_COLLATE_PATTERN && OidIsValid(collation) &&
				!get_collation_isdeterministic(collation))
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("nondeterministic collations are not supported for operator class \"%s\"",
								column_class_name(index, i))));
			col->enc = e->enc;
			col->width = e->width;
			col->lossy = e->lossy;
		}
	}

	/* INCLUDE columns need no operator class: the datum, in no order */
	kd->nall = IndexRelationGetNumberOfAttributes(index);
	for (i = natts; i < kd->nall; i++)
	{
		kd->cols[i].typid = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
		art_col_set_datum(&kd->cols[i], kd->cols[i].typid, InvalidOid);
	}
	art_keydesc_finish(kd);
	return kd;
}

ArtKeyDesc *
art_keydesc_of_types(int natts, const Oid *types, const Oid *opclasses,
					 const Oid *collations, MemoryContext cxt)
{
	ArtKeyDesc *kd = MemoryContextAllocZero(cxt, sizeof(ArtKeyDesc));
	int			i;

	kd->natts = kd->nall = natts;
	kd->images = true;
	for (i = 0; i < natts; i++)
	{
		ArtKeyCol  *col = &kd->cols[i];
		Oid			opcintype = get_opclass_input_type(opclasses[i]);
		Oid			cmp = get_opfamily_proc(get_opclass_family(opclasses[i]),
											opcintype, opcintype, 1);
		const ArtEncoding *e = art_encoding_find(cmp, opcintype);

		col->typid = opcintype;
		col->collation = collations[i];
		if (e == NULL || (e->collate == ART_COLLATE_BYTES &&
						  !art_collation_is_bytewise(collations[i])))
		{
			art_col_set_datum(col, types[i], cmp);
			kd->compared = true;
		}
		else
		{
			col->enc = e->enc;
			col->width = e->width;
			col->lossy = e->lossy;
		}
	}
	art_keydesc_finish(kd);
	art_keydesc_own(kd, cxt);
	return kd;
}

/* The payload has what an encoding loses, and the INCLUDE columns. */
bool
art_can_return(Relation index, int attno)
{
	return attno >= 1 && attno <= IndexRelationGetNumberOfAttributes(index);
}

/* ---- encoding ----------------------------------------------------------- */

/* Invert n bytes. */
static inline void
art_invert(uint8 *p, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
		p[i] = (uint8) ~p[i];
}

/*
 * The body of a fixed-width column; returns behind it.
 *
 * Long: a switch over the encodings.
 */
static inline uint8 *
art_put_fixed(const ArtKeyCol *col, Datum value, uint8 *p)
{
	uint64		flip = col->desc ? PG_UINT64_MAX : 0;

	switch (col->enc)
	{
		case ART_ENC_INT2:
			art_store64(p, (uint64) (int64) DatumGetInt16(value) ^ ART_SIGN64 ^ flip);
			return p + 8;
		case ART_ENC_INT4:
			art_store64(p, (uint64) (int64) DatumGetInt32(value) ^ ART_SIGN64 ^ flip);
			return p + 8;
		case ART_ENC_INT8:
		case ART_ENC_INT64:
		case ART_ENC_TIMESTAMP:
			art_store64(p, (uint64) DatumGetInt64(value) ^ ART_SIGN64 ^ flip);
			return p + 8;
		case ART_ENC_OID:
			art_store32(p, DatumGetObjectId(value) ^ (uint32) flip);
			return p + 4;
		case ART_ENC_DATE:
			art_store32(p, (uint32) DatumGetDateADT(value) ^ 0x80000000U ^ (uint32) flip);
			return p + 4;
		case ART_ENC_BOOL:
			*p = (uint8) ((DatumGetBool(value) ? 1 : 0) ^ (uint8) flip);
			return p + 1;
		case ART_ENC_UUID:
			{
				uint64		w[2];

				memcpy(w, DatumGetUUIDP(value)->data, UUID_LEN);
				w[0] ^= flip;
				w[1] ^= flip;
				memcpy(p, w, UUID_LEN);
				return p + UUID_LEN;
			}
		case ART_ENC_DATUM:
			if (col->byval)
			{
				union
				{
					char		c;
					int16		s;
					int32		i;
					Datum		d;
				}			u;

				/* as store_att_byval, for any address */
				store_att_byval(&u, value, col->typlen);
				memcpy(p, &u, col->typlen);
			}
			else
				memcpy(p, DatumGetPointer(value), col->typlen);
			return p + col->typlen;
		case ART_ENC_UINT64:
			art_store64(p, DatumGetUInt64(value) ^ flip);
			return p + 8;
		case ART_ENC_CHAR:
			*p = (uint8) DatumGetChar(value) ^ (uint8) flip;
			return p + 1;
		case ART_ENC_FLOAT4:
			art_store64(p, art_float_bits(DatumGetFloat4(value)) ^ flip);
			return p + 8;
		case ART_ENC_FLOAT8:
			art_store64(p, art_float_bits(DatumGetFloat8(value)) ^ flip);
			return p + 8;
		case ART_ENC_MAC:
			memcpy(p, DatumGetPointer(value), col->width);
			break;
		case ART_ENC_TID:
			ax_put_tid(p, art_tid_pack((ItemPointer) DatumGetPointer(value)));
			break;
		case ART_ENC_TIMETZ:
			{
				TimeTzADT  *t = DatumGetTimeTzADTP(value);

				/* by the moment, then by the zone */
				art_store64(p, (uint64) (t->time + t->zone * USECS_PER_SEC) ^ ART_SIGN64);
				art_store32(p + 8, (uint32) t->zone ^ 0x80000000U);
				break;
			}
		case ART_ENC_INTERVAL:
			art_interval_put(value, p);
			break;
		case ART_ENC_NONE:
		case ART_ENC_BYTEA:
		case ART_ENC_TEXT:
		case ART_ENC_NAME:
		case ART_ENC_BPCHAR:
		case ART_ENC_NUMERIC:
		case ART_ENC_INET:
		case ART_ENC_BIT:
			elog(ERROR, "unexpected key encoding %d", (int) col->enc);
	}
	if (col->desc)
		art_invert(p, col->width);
	return p + col->width;
}

/* A varlena as it is kept: nothing toasted, no more header than needed. */
static void
art_put_varlena(const ArtKeyCol *col, const struct varlena *v, ArtBuf *buf)
{
	uint32		n = VARSIZE_ANY(v);

	art_buf_reserve(buf, n);
	if (col->brief && !VARATT_IS_1B(v) && VARATT_CAN_MAKE_SHORT(v))
	{
		n = VARATT_CONVERTED_SHORT_SIZE(v);
		SET_VARSIZE_SHORT(buf->data + buf->len, n);
		memcpy(buf->data + buf->len + VARHDRSZ_SHORT, VARDATA(v), n - VARHDRSZ_SHORT);
	}
	else
		memcpy(buf->data + buf->len, v, n);
	buf->len += n;
}

/* Append a value with rows in it. */
static void
art_put_rows(const ArtKeyCol *col, Datum value, ArtBuf *buf)
{
	MemoryContext tmp = AllocSetContextCreate(CurrentMemoryContext, "art flat value",
											  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(tmp);
	Datum		flat = art_flat(value, col->rows);

	MemoryContextSwitchTo(old);
	art_put_varlena(col, (struct varlena *) DatumGetPointer(flat), buf);
	MemoryContextDelete(tmp);
}

/*
 * Append a string of a collation that compares bytes, and its terminator.
 */
static void
art_put_text(const ArtKeyCol *col, const char *s, uint32 n, ArtBuf *buf)
{
	/* the type has no such strings; one here would break the tree's rules */
	if (unlikely(memchr(s, 0, n) != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("text value contains a zero byte")));
	art_buf_reserve(buf, n + 1);
	art_append(buf, s, n, col->desc);
	buf->data[buf->len++] = col->desc ? 0xFF : 0x00;
}

void
art_encode_col(const ArtKeyCol *col, Datum value, ArtBuf *buf)
{
	if (col->width > 0)
	{
		art_buf_reserve(buf, col->width);
		(void) art_put_fixed(col, value, buf->data + buf->len);
		buf->len += col->width;
	}
	else if (col->enc == ART_ENC_NAME)
	{
		const char *s = NameStr(*DatumGetName(value));

		art_put_text(col, s, (uint32) strnlen(s, NAMEDATALEN), buf);
	}
	else if (unlikely(col->enc == ART_ENC_DATUM && col->typlen == -2))
	{
		uint32		n = (uint32) strlen(DatumGetCString(value)) + 1;

		art_buf_reserve(buf, n);
		memcpy(buf->data + buf->len, DatumGetCString(value), n);
		buf->len += n;
	}
	else if (unlikely(OidIsValid(col->rows)))
		art_put_rows(col, value, buf);
	else
	{
		struct varlena *v = PG_DETOAST_DATUM_PACKED(value);

		uint32		start = buf->len;

		switch (col->enc)
		{
			case ART_ENC_TEXT:
				art_put_text(col, VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v), buf);
				break;
			case ART_ENC_BPCHAR:
				art_put_text(col, VARDATA_ANY(v),
							 bpchartruelen(VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v)), buf);
				break;
			case ART_ENC_BYTEA:
				art_put_escaped(buf, VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v), col->desc);
				break;
			case ART_ENC_DATUM:
				art_put_varlena(col, v, buf);
				break;
			case ART_ENC_NUMERIC:
				art_numeric_put(v, buf);
				break;
			case ART_ENC_INET:
				art_inet_put(v, buf);
				break;
			case ART_ENC_BIT:
				art_bit_put(v, buf);
				break;
			default:
				elog(ERROR, "unexpected key encoding %d", (int) col->enc);
		}
		if (col->desc && col->enc >= ART_ENC_NUMERIC && col->enc <= ART_ENC_BIT)
			art_invert(buf->data + start, buf->len - start);
		if ((Pointer) v != DatumGetPointer(value))
			pfree(v);
	}
}

/* ERROR: the encoded key is longer than the core takes. */
static void
art_too_long(const ArtKeyDesc *kd, uint32 len)
{
	char	   *name = get_rel_name(kd->indexid);

	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %u exceeds maximum %u for index \"%s\"",
					len, ART_KEY_LIMIT, name ? name : "?"),
			 errhint("Consider a function index of an MD5 hash of the value, or use full text indexing.")));
}

/* Append the payload: lossy key columns as they are, then the columns of INCLUDE. */
static void
art_encode_payload(const ArtKeyDesc *kd, const Datum *values, const bool *isnull,
				   ArtBuf *buf)
{
	for (int i = 0; i < kd->nall; i++)
	{
		const ArtKeyCol *col = &kd->cols[i];

		if (i < kd->natts)
		{
			if (col->lossy && !isnull[i])
				art_payload_put(col, values[i], buf);
			continue;
		}
		art_put_byte(buf, isnull[i] ? ART_MARK_NULL_FIRST : ART_MARK_VALUE);
		if (!isnull[i])
			art_encode_col(col, values[i], buf);
		if (unlikely(buf->len > ART_KEY_LIMIT))
			art_too_long(kd, buf->len);
	}
	if (unlikely(buf->len > ART_KEY_LIMIT))
		art_too_long(kd, buf->len);
}

bool
art_encode(const ArtKeyDesc *kd, const Datum *values, const bool *isnull,
		   ArtBuf *buf)
{
	bool		anynull = false;
	int			i;

	buf->len = 0;
	if (kd->fixed)
	{
		uint8	   *p;

		art_buf_reserve(buf, kd->fixed_len);
		p = buf->data;
		for (i = 0; i < kd->natts; i++)
		{
			const ArtKeyCol *col = &kd->cols[i];

			if (unlikely(isnull[i]))
			{
				*p++ = col->nulls_first ? ART_MARK_NULL_FIRST : ART_MARK_NULL_LAST;
				anynull = true;
			}
			else
			{
				*p++ = ART_MARK_VALUE;
				p = art_put_fixed(col, values[i], p);
			}
		}
		buf->len = (uint32) (p - buf->data);
		return anynull;
	}

	for (i = 0; i < kd->natts; i++)
	{
		const ArtKeyCol *col = &kd->cols[i];

		art_buf_reserve(buf, 1);
		if (isnull[i])
		{
			buf->data[buf->len++] = col->nulls_first ? ART_MARK_NULL_FIRST : ART_MARK_NULL_LAST;
			anynull = true;
		}
		else
		{
			buf->data[buf->len++] = ART_MARK_VALUE;
			art_encode_col(col, values[i], buf);
		}
		if (unlikely(buf->len > ART_KEY_LIMIT))
			art_too_long(kd, buf->len);
	}
	if (kd->payload)
		art_encode_payload(kd, values, isnull, buf);
	return anynull;
}

/* ---- decoding ----------------------------------------------------------- */

/* ERROR: bytes that no encoding can have made. */
static void
art_bad_key(const ArtKeyDesc *kd)
{
	char	   *name = get_rel_name(kd->indexid);

	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("malformed key in index \"%s\"", name ? name : "?")));
}

/* Bytes of a datum that is kept as it is, of no fixed length; 0: malformed. */
static uint32
art_stored_size(const ArtKeyCol *col, const uint8 *p, const uint8 *end)
{
	uint32		n;

	if (p == end)
		return 0;
	if (col->typlen == -2)
	{
		const uint8 *z = memchr(p, 0, end - p);

		return z != NULL ? (uint32) (z - p) + 1 : 0;
	}
	if (VARATT_IS_1B(p))
		n = VARSIZE_1B(p);
	else
	{
		varattrib_4b head;

		if (end - p < VARHDRSZ)
			return 0;
		memcpy(&head, p, VARHDRSZ);
		n = VARSIZE_4B(&head);
		/* nothing compressed is kept, and nothing shorter than its header */
		if (n < VARHDRSZ || !VARATT_IS_4B_U(&head))
			return 0;
	}
	return n <= (uint32) (end - p) ? n : 0;
}

/*
 * Behind the body at p, or NULL when it does not end before "end".
 */
static inline const uint8 *
art_skip_body(const ArtKeyCol *col, const uint8 *p, const uint8 *end)
{
	uint8		zero = col->desc ? 0xFF : 0x00;

	if (col->width > 0)
		return (end - p >= col->width) ? p + col->width : NULL;
	if (col->enc == ART_ENC_DATUM)
	{
		uint32		n = art_stored_size(col, p, end);

		return n > 0 ? p + n : NULL;
	}
	switch (col->enc)
	{
		case ART_ENC_BYTEA:
			return art_skip_escaped(p, end, zero);
		case ART_ENC_NUMERIC:
			return art_numeric_skip(p, end, zero);
		case ART_ENC_INET:
			return art_inet_skip(p, end, zero);
		case ART_ENC_BIT:
			return art_bit_skip(p, end, zero);
		default:
			p = memchr(p, zero, end - p);
			return p ? p + 1 : NULL;
	}
}

const uint8 *
art_skip_col_within(const ArtKeyCol *col, const uint8 *p, const uint8 *end)
{
	if (p == end)
		return NULL;
	if (*p++ != ART_MARK_VALUE)
		return p;
	return art_skip_body(col, p, end);
}

const uint8 *
art_skip_col(const ArtKeyDesc *kd, const ArtKeyCol *col,
			 const uint8 *p, const uint8 *end)
{
	p = art_skip_col_within(col, p, end);
	if (unlikely(p == NULL))
		art_bad_key(kd);
	return p;
}

/* A value that is passed as one, from any address. */
Datum
art_fetch_byval(const ArtKeyCol *col, const uint8 *p)
{
	int16		s;
	int32		i;
	Datum		d;

	/* lengths that the compiler knows */
	switch (col->typlen)
	{
		case sizeof(char):
			return CharGetDatum(*(const char *) p);
		case sizeof(int16):
			memcpy(&s, p, sizeof(s));
			return Int16GetDatum(s);
		case sizeof(int32):
			memcpy(&i, p, sizeof(i));
			return Int32GetDatum(i);
		default:
			memcpy(&d, p, sizeof(d));
			return d;
	}
}

/* A body as it is ascending: itself, or a copy in the current memory context. */
static inline const uint8 *
art_ascending(const ArtKeyCol *col, const uint8 *p, const uint8 *end)
{
	uint8	   *copy;

	if (!col->desc)
		return p;
	copy = palloc(end - p);
	memcpy(copy, p, end - p);
	art_invert(copy, (uint32) (end - p));
	return copy;
}

/*
 * The body lies whole between p and end: see key.h.
 *
 * Long: a switch over the encodings.
 */
Datum
art_decode_col(const ArtKeyCol *col, const uint8 *p, const uint8 *end)
{
	uint64		flip = col->desc ? PG_UINT64_MAX : 0;
	const uint8 *up;

	switch (col->enc)
	{
		case ART_ENC_INT2:
			return Int16GetDatum((int16) (int64) (art_load64(p) ^ ART_SIGN64 ^ flip));
		case ART_ENC_INT4:
			return Int32GetDatum((int32) (int64) (art_load64(p) ^ ART_SIGN64 ^ flip));
		case ART_ENC_INT8:
		case ART_ENC_INT64:
		case ART_ENC_TIMESTAMP:
			return Int64GetDatum((int64) (art_load64(p) ^ ART_SIGN64 ^ flip));
		case ART_ENC_OID:
			return ObjectIdGetDatum(art_load32(p) ^ (uint32) flip);
		case ART_ENC_DATE:
			return DateADTGetDatum((DateADT) (art_load32(p) ^ 0x80000000U ^ (uint32) flip));
		case ART_ENC_BOOL:
			return BoolGetDatum((*p ^ (uint8) flip) != 0);
		case ART_ENC_UUID:
			{
				pg_uuid_t  *u = palloc(sizeof(pg_uuid_t));

				art_copy_out((char *) u->data, p, UUID_LEN, col->desc);
				return UUIDPGetDatum(u);
			}
		case ART_ENC_TEXT:
		case ART_ENC_BPCHAR:
			{
				const uint8 *e = memchr(p, col->desc ? 0xFF : 0x00, end - p);
				uint32		n = (uint32) (e - p);
				text	   *t = palloc((Size) n + VARHDRSZ);

				SET_VARSIZE(t, n + VARHDRSZ);
				art_copy_out(VARDATA(t), p, n, col->desc);
				return PointerGetDatum(t);
			}
		case ART_ENC_NAME:
			{
				const uint8 *e = memchr(p, col->desc ? 0xFF : 0x00, end - p);
				Name		name = palloc0(NAMEDATALEN);

				/* one that lost its end in a key that is damaged is no longer than others */
				art_copy_out(NameStr(*name), p, (uint32) Min(e - p, NAMEDATALEN - 1), col->desc);
				return NameGetDatum(name);
			}
		case ART_ENC_BYTEA:
			{
				bytea	   *b = palloc((Size) (end - p) + VARHDRSZ);
				uint32		n = art_get_escaped(p, end, (uint8) flip, VARDATA(b));

				SET_VARSIZE(b, n + VARHDRSZ);
				return PointerGetDatum(b);
			}
		case ART_ENC_UINT64:
			return UInt64GetDatum(art_load64(p) ^ flip);
		case ART_ENC_CHAR:
			return CharGetDatum((char) (*p ^ (uint8) flip));
		case ART_ENC_FLOAT4:
			return Float4GetDatum((float4) art_float_of_bits(art_load64(p) ^ flip));
		case ART_ENC_FLOAT8:
			return Float8GetDatum(art_float_of_bits(art_load64(p) ^ flip));
		case ART_ENC_MAC:
			{
				char	   *mac = palloc(col->width);

				art_copy_out(mac, p, col->width, col->desc);
				return PointerGetDatum(mac);
			}
		case ART_ENC_TID:
			{
				ItemPointer tid = palloc(sizeof(ItemPointerData));
				uint64		t = 0;

				for (int i = 0; i < AX_TID_BYTES; i++)
					t = t << 8 | (uint8) (p[i] ^ (uint8) flip);
				art_tid_unpack(t, tid);
				return PointerGetDatum(tid);
			}
		case ART_ENC_TIMETZ:
			{
				TimeTzADT  *t = palloc0(sizeof(TimeTzADT));

				t->zone = (int32) (art_load32(p + 8) ^ 0x80000000U ^ (uint32) flip);
				t->time = (TimeADT) (art_load64(p) ^ ART_SIGN64 ^ flip) -
					t->zone * USECS_PER_SEC;
				return TimeTzADTPGetDatum(t);
			}
		case ART_ENC_INTERVAL:
			return art_interval_get(art_ascending(col, p, end));
		case ART_ENC_NUMERIC:
			up = art_ascending(col, p, end);
			return art_numeric_get(up, up + (end - p), 0);
		case ART_ENC_INET:
			up = art_ascending(col, p, end);
			return art_inet_get(up, up + (end - p));
		case ART_ENC_BIT:
			up = art_ascending(col, p, end);
			return art_bit_get(up, up + (end - p));
		case ART_ENC_DATUM:
			if (col->byval)
				return art_fetch_byval(col, p);
			else
			{
				uint32		n = col->width > 0 ? col->width : art_stored_size(col, p, end);
				char	   *d = palloc(n);

				memcpy(d, p, n);
				return PointerGetDatum(d);
			}
		case ART_ENC_NONE:
			break;
	}
	elog(ERROR, "unexpected key encoding %d", (int) col->enc);
	return (Datum) 0;
}

/*
 * The payload: the exact values of the lossy key columns, whose markers and
 * bodies are at at[].  Then the INCLUDE columns, up to "upto".
 */
static void
art_decode_payload(const ArtKeyDesc *kd, const uint8 *const *at,
				   const uint8 *end, int upto, Datum *values, bool *isnull)
{
	const uint8 *p = at[kd->natts];

	for (int i = 0; i < upto; i++)
	{
		const ArtKeyCol *col = &kd->cols[i];
		const uint8 *body;
		const uint8 *next;

		if (i < kd->natts)
		{
			if (!col->lossy || *at[i] != ART_MARK_VALUE)
				continue;
			next = art_payload_skip(col, p, end);
			if (unlikely(next == NULL))
				art_bad_key(kd);
			body = art_ascending(col, at[i] + 1, at[i + 1]);
			values[i] = art_payload_get(col, body, body + (at[i + 1] - at[i] - 1), p, next);
		}
		else
		{
			next = art_skip_col(kd, col, p, end);
			isnull[i] = *p != ART_MARK_VALUE;
			values[i] = isnull[i] ? (Datum) 0 : art_decode_col(col, p + 1, next);
		}
		p = next;
	}
}

/* One loop for each type: its bodies, as values of that type in their places. */
#define ART_DECODE_RUN(type, expr) \
	do { \
		for (uint32 i = 0; i < n; i++, p += stride, to += step) \
		{ \
			type		v = (type) (expr); \
			memcpy(to, &v, sizeof(v)); \
		} \
	} while (0)

bool
art_decode_run(const ArtKeyCol *col, const uint8 *p, Size stride, uint32 n,
			   char *to, Size step)
{
	uint64		flip = ART_SIGN64 ^ (col->desc ? PG_UINT64_MAX : 0);

	switch (col->enc)
	{
		case ART_ENC_INT2:
			ART_DECODE_RUN(int16, art_load64(p) ^ flip);
			return true;
		case ART_ENC_INT4:
			ART_DECODE_RUN(int32, art_load64(p) ^ flip);
			return true;
		case ART_ENC_INT8:
		case ART_ENC_INT64:
		case ART_ENC_TIMESTAMP:
			ART_DECODE_RUN(int64, art_load64(p) ^ flip);
			return true;
		case ART_ENC_OID:
			ART_DECODE_RUN(Oid, art_load32(p) ^ (uint32) flip);
			return true;
		case ART_ENC_DATE:
			ART_DECODE_RUN(DateADT, art_load32(p) ^ 0x80000000U ^ (uint32) flip);
			return true;
		case ART_ENC_UUID:
			for (uint32 i = 0; i < n; i++, p += stride, to += step)
				art_copy_out(to, p, UUID_LEN, col->desc);
			return true;
		default:
			return false;
	}
}

void
art_decode(const ArtKeyDesc *kd, const uint8 *key, uint32 keylen, int upto,
		   Datum *values, bool *isnull)
{
	const uint8 *at[INDEX_MAX_KEYS + 1];
	const uint8 *end = key + keylen;
	bool		payload = kd->lossy || upto > kd->natts;
	int			i;

	Assert(upto <= kd->nall);
	at[0] = key;
	for (i = 0; i < kd->natts && (i < upto || payload); i++)
	{
		const ArtKeyCol *col = &kd->cols[i];

		at[i + 1] = art_skip_col(kd, col, at[i], end);
		if (i >= upto)
			continue;
		isnull[i] = (*at[i] != ART_MARK_VALUE);
		values[i] = isnull[i] || col->lossy ? (Datum) 0 :
			art_decode_col(col, at[i] + 1, at[i + 1]);
	}
	if (payload)
		art_decode_payload(kd, at, end, upto, values, isnull);
}

uint32
art_key_prefix_len(const ArtKeyDesc *kd, const uint8 *key, uint32 keylen,
				   int upto)
{
	const uint8 *p = key;
	int			i;

	for (i = 0; i < upto; i++)
		p = art_skip_col(kd, &kd->cols[i], p, key + keylen);
	return (uint32) (p - key);
}
