/*
 * key.h
 *	  Datum <-> order-preserving bytes.
 *
 * An encoded key has, per key column, a marker byte: NULL or not, placed by
 * NULLS FIRST/LAST whatever the direction.  When not NULL, a self-delimiting
 * body follows.  Its memcmp order is the opclass's order, with every byte
 * inverted for DESC.  Behind the columns lies the payload, which index-only
 * scans give back and no order has.  It has the parts of a datum that a
 * column's body loses (a numeric's scale, trailing blanks), then the INCLUDE
 * columns as they are.  It is self-delimiting, too.  The TID (6 bytes, block
 * then offset, big-endian) follows as a last column.  So entries are unique
 * and no key is a prefix of another.
 *
 * src/key/README.md: Keys
 */
#ifndef ART_KEY_H
#define ART_KEY_H

#include "postgres.h"

#include "access/skey.h"
#include "fmgr.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "core/ax.h"

/*
 * Number of the encoding, kept in saved files: raise it with every change to
 * the bytes of any key.
 */
#define ART_KEY_FORMAT		2

/* Bytes of a key without its TID, at most. */
#define ART_KEY_LIMIT		(AX_KEY_MAX - AX_TID_BYTES)

/* marker bytes */
#define ART_MARK_NULL_FIRST 0x00
#define ART_MARK_VALUE		0x01
#define ART_MARK_NULL_LAST	0x02

/* How one column's body is encoded; one row of the table in encode.c. */
typedef enum ArtEncKind
{
	ART_ENC_NONE = 0,			/* not supported (yet) */
	ART_ENC_INT2,				/* all three integers: 8 bytes, sign flipped, so
								 * that cross-type bounds are exact */
	ART_ENC_INT4,
	ART_ENC_INT8,
	ART_ENC_OID,				/* 4 bytes */
	ART_ENC_BOOL,				/* 1 byte */
	ART_ENC_DATE,				/* 4 bytes, sign flipped */
	ART_ENC_TIMESTAMP,			/* 8 bytes; timestamptz too */
	ART_ENC_UUID,				/* 16 bytes */
	ART_ENC_BYTEA,				/* 00 -> 00 FF, then 00 00 */
	ART_ENC_TEXT,				/* bytes, then 00 (text has no NUL) */
	ART_ENC_NAME,				/* as text */
	ART_ENC_BPCHAR,				/* as text, without trailing blanks: lossy */
	ART_ENC_INT64,				/* other numbers of 8 bytes, sign flipped */
	ART_ENC_UINT64,				/* 8 bytes */
	ART_ENC_CHAR,				/* 1 byte, unsigned */
	ART_ENC_MAC,				/* macaddr, macaddr8: the bytes */
	ART_ENC_TID,				/* block, offset: 6 bytes */
	ART_ENC_TIMETZ,				/* as UTC, then the zone: 12 bytes */
	ART_ENC_FLOAT4,				/* both floats as float8, so that cross-type
								 * bounds are exact: 8 bytes; lossy */
	ART_ENC_FLOAT8,
	ART_ENC_INTERVAL,			/* 10 bytes, lossy (encode_types.c) */
	ART_ENC_NUMERIC,			/* lossy (encode_numeric.c) */
	ART_ENC_INET,				/* encode_types.c */
	ART_ENC_BIT,				/* bit, varbit: as bytea, then a byte */
	ART_ENC_DATUM				/* none: the datum as it is, see below */
} ArtEncKind;

/*
 * A column whose operator class has no encoding is kept as the datum itself.
 * By value or of a fixed length, it is its bytes; a varlena is uncompressed,
 * with a short header where that is possible.  The operator class's comparison
 * function says its order, and so that of the whole key.  Such a key is
 * "compared", and its index is a B+-tree of the core's compared kind.  Call
 * art_key_cmp() for an order, with no latch, no epoch and no critical section,
 * for it may run anything.
 */

typedef struct ArtKeyCol
{
	ArtEncKind	enc;
	bool		desc;
	bool		nulls_first;
	bool		lossy;			/* the body is not the whole datum: see payload */
	Oid			typid;			/* the index column's opclass input type */
	Oid			collation;
	uint16		width;			/* body bytes, 0: variable */

	/* of ART_ENC_DATUM */
	int16		typlen;
	bool		byval;
	bool		brief;			/* short varlena headers will do */
	char		align;
	Oid			cmp;			/* support function 1 */
	Oid			sort;			/* support function 2, or invalid */
	Oid			rows;			/* an expression's type with rows in it, or invalid: flatten.c */
} ArtKeyCol;

/*
 * The state of comparisons, one process's.  While one runs nobody else may
 * have it, for it may come back to the same index by another way.
 */
typedef struct ArtCmp
{
	MemoryContext cxt;			/* of all this */
	MemoryContext tmp;			/* of one comparison */
	struct ArtBuf *scratch;		/* two: aligned copies */
	struct ArtWalk *walk;		/* src/area/compared_calls.c's */
	FmgrInfo	fn[FLEXIBLE_ARRAY_MEMBER];	/* by key column */
} ArtCmp;

typedef struct ArtKeyDesc
{
	Oid			indexid;		/* for error messages */
	int			natts;			/* key columns */
	int			nall;			/* these and the INCLUDE columns, in cols[] */
	bool		payload;		/* keys have a payload */
	bool		lossy;			/* of a key column, too */
	bool		fixed;			/* every body has a fixed width, no payload */
	uint32		fixed_len;		/* encoded length without NULLs and without the
								 * TID, when fixed */
	bool		compared;		/* memcmp is not the order */
	bool		images;			/* equal keys are equal bytes, and comparing
								 * runs no code but core's */
	bool		doubtful;		/* compared by a function that is not core's,
								 * which may be no order: nothing is believed
								 * that follows from one */
	ArtCmp	   *cmp;			/* compared, and this description's own */
	ArtKeyCol	cols[INDEX_MAX_KEYS];
} ArtKeyDesc;

/*
 * A growing byte buffer in a memory context of the caller's.  Of all zeros but
 * the context it is empty, and allocates when it is first written.
 */
typedef struct ArtBuf
{
	uint8	   *data;
	uint32		len;
	uint32		cap;
	MemoryContext cxt;
	bool		lent;			/* data is the caller's, not to be freed */
} ArtBuf;

/* A buffer of cap bytes, allocated in cxt. */
extern void art_buf_init(ArtBuf *buf, MemoryContext cxt, uint32 cap);

/* The same in cap bytes of the caller's, until they no longer suffice. */
static inline void
art_buf_lend(ArtBuf *buf, MemoryContext cxt, uint8 *data, uint32 cap)
{
	buf->data = data;
	buf->len = 0;
	buf->cap = cap;
	buf->cxt = cxt;
	buf->lent = true;
}

/* Free what the buffer has allocated. */
static inline void
art_buf_free(ArtBuf *buf)
{
	if (buf->data != NULL && !buf->lent)
		pfree(buf->data);
}

/* Room for so many bytes in all; the data moves. */
extern void art_buf_grow(ArtBuf *buf, uint64 need);

/* Make room for extra more bytes; what is in the buffer stays. */
static inline void
art_buf_reserve(ArtBuf *buf, uint32 extra)
{
	uint64		need = (uint64) buf->len + extra;

	if (unlikely(need > buf->cap))
		art_buf_grow(buf, need);
}

/*
 * Describe the key columns of an index.  The chunk may be copied, but what it
 * compares with (in cxt, too) is its own: see art_keydesc_own.
 */
extern ArtKeyDesc *art_keydesc_build(Relation index, MemoryContext cxt);

/* The same without what it compares with: nobody's library is asked for. */
extern ArtKeyDesc *art_keydesc_facts(Relation index, MemoryContext cxt);

/* Give a copy of a description what it needs to compare, in cxt. */
extern void art_keydesc_own(ArtKeyDesc *kd, MemoryContext cxt);

/* Is a comparison function of a type, or one of its parts, not core's (doubted_order.c)? */
extern bool art_cmp_doubtful(Oid cmp, Oid type);

/* Does the index compare its keys (art_keydesc_build's compared)? */
extern bool art_index_compared(Relation index);

/*
 * The same for columns that have no index (yet), ascending, NULLs last: types
 * (for messages), operator classes of the access method, collations.
 */
extern ArtKeyDesc *art_keydesc_of_types(int natts, const Oid *types,
										const Oid *opclasses,
										const Oid *collations,
										MemoryContext cxt);

/*
 * Encode all columns of the index, payload included and the TID not; buf is
 * overwritten.  Detoasts as needed (garbage goes to the current memory context).
 * ERROR 54000 when the result would exceed the limit.  Returns true when a key
 * column is NULL.
 */
extern bool art_encode(const ArtKeyDesc *kd, const Datum *values,
					   const bool *isnull, ArtBuf *buf);

/*
 * Encode one column's body for the value (not NULL), DESC applied; appends.
 * Has no length limit of its own.
 */
extern void art_encode_col(const ArtKeyCol *col, Datum value, ArtBuf *buf);

/*
 * Decode the columns of an encoded key (of which keylen bytes, TID included or
 * not, are there).  By-reference datums are palloc'd in the current context and
 * are exactly what was stored.  Decoding stops after "upto" columns (natts for
 * the key's, nall for all).
 */
extern void art_decode(const ArtKeyDesc *kd, const uint8 *key, uint32 keylen,
					   int upto, Datum *values, bool *isnull);

/*
 * The same for one column whose body (behind the marker) is at p.  Of a column
 * that is lossy: an equal datum.
 */
extern Datum art_decode_col(const ArtKeyCol *col, const uint8 *p,
							const uint8 *end);

/*
 * The same for a column of a fixed width in n keys.  Their bodies lie "stride"
 * bytes apart, the first at p.  The values go to places in tuples, "step" bytes
 * apart.  False: there is no such loop for the type.
 */
extern bool art_decode_run(const ArtKeyCol *col, const uint8 *p, Size stride,
						   uint32 n, char *to, Size step);

/* A datum that is kept as it is and passed by value. */
extern Datum art_fetch_byval(const ArtKeyCol *col, const uint8 *p);

/*
 * Behind the column (marker and body) that starts at p; ERROR XX002 if it does
 * not end before "end".
 */
extern const uint8 *art_skip_col(const ArtKeyDesc *kd, const ArtKeyCol *col,
								 const uint8 *p, const uint8 *end);

/* The same, NULL in place of the error. */
extern const uint8 *art_skip_col_within(const ArtKeyCol *col, const uint8 *p,
										const uint8 *end);

/* ---- order (compared_order.c, encode.c) ---- */

/*
 * <0, 0, >0: a whole entry (TID included) against a position.  A position is
 * the beginning of an entry, at the end of a column or behind the marker of
 * one, or a whole one.  It is before or after all that begins so (as
 * ax_bound's). 0 only for an entry against itself. images false: two entries
 * that differ only in bytes, and are the same to the comparison, are one
 * position.
 *
 * May raise, allocate and run anything.
 */
extern int	art_key_cmp(const ArtKeyDesc *kd, const uint8 *entry, uint32 elen,
						const uint8 *key, uint32 klen, bool after, bool images);

/* Do the entry's leading columns equal those of a key that ends with a column? */
extern bool art_key_begins(const ArtKeyDesc *kd, const uint8 *entry, uint32 elen,
						   const uint8 *key, uint32 klen);

/* Is it a whole entry, TID included, and not only a position? */
extern bool art_key_is_entry(const ArtKeyDesc *kd, const uint8 *key, uint32 len);

/* Two keys without TIDs. */
extern int	art_key_order(const ArtKeyDesc *kd, const uint8 *a, uint32 alen,
						  const uint8 *b, uint32 blen);

/* Two positions. */
extern int	art_position_cmp(const ArtKeyDesc *kd,
							 const uint8 *a, uint32 alen, bool aafter,
							 const uint8 *b, uint32 blen, bool bafter);

/*
 * The datum of a body at p, aligned for its type where it is, or a copy in the
 * current memory context.
 */
extern Datum art_col_datum(const ArtKeyCol *col, const uint8 *p, const uint8 *end);

/* Two positions within a column (from 0): marker and perhaps a body. */
extern int	art_col_position_cmp(const ArtKeyDesc *kd, int col, const ax_bound *a,
								 const ax_bound *b);

/* Length of the first "upto" columns of an encoded key. */
extern uint32 art_key_prefix_len(const ArtKeyDesc *kd, const uint8 *key,
								 uint32 keylen, int upto);

/* Length of the columns of a key that has no TID: what decides of equality. */
static inline uint32
art_cols_len(const ArtKeyDesc *kd, const uint8 *key, uint32 keylen)
{
	return kd->payload ? art_key_prefix_len(kd, key, keylen, kd->natts) : keylen;
}

/* Can the exact datum of this index column (1-based) be had back? */
extern bool art_can_return(Relation index, int attno);

/* The 48-bit TID of the core and PostgreSQL's. */
static inline uint64
art_tid_pack(const ItemPointerData *tid)
{
	return ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static inline void
art_tid_unpack(uint64 t, ItemPointerData *tid)
{
	ItemPointerSet(tid, (BlockNumber) (t >> 16), (OffsetNumber) (t & 0xFFFF));
}

/* ---- scan keys (scan_keys.c, array_keys.c, row_keys.c, skip_keys.c) ---- */

/*
 * The range that scan keys leave of one column, in its encoded form: the
 * columns (marker and body) strictly between two positions, as ax_bound's.
 * Their bytes lie in the plan's scratch buffer.
 */
typedef struct ArtColRange
{
	bool		lo_set,
				hi_set;
	bool		lo_after,
				hi_after;
	uint32		lo_off,
				lo_len,
				hi_off,
				hi_len;
} ArtColRange;

/*
 * The meaning of a set of scan keys: a contradiction, or the entries strictly
 * between two positions (ax_bound's meaning) that also pass the residual
 * conditions.  To the same effect as nbtree's _bt_preprocess_keys.  There are
 * leading equalities, then one range, and the rest is residual.  Redundant
 * keys are dropped, contradictory ones found.  It knows NULL arguments and
 * SK_SEARCHNULL / SK_SEARCHNOTNULL; subtype 0 is the opclass input type.
 * Cross-type arguments give exact bounds, or conservative ones and the key
 * stays residual too.
 *
 * All is done on encoded bytes, so any two keys of a column are comparable.  A
 * column behind the first gap is tested by its encoded bytes (ranges); only
 * keys without an exact encoding call their operator (keys).
 *
 * A comparison of rows ("(a, b) > (x, y)") makes an end of more than one column.
 *
 * Arrays ("= ANY") of leading columns make several such ranges, one for each
 * combination of their elements.  They lie in the index's order and apart from
 * one another. lo and hi are those of one of them, see art_scanplan_first().
 */
typedef struct ArtArrays ArtArrays;
typedef struct ArtRowKeys ArtRowKeys;

#define ART_PLAN_ROOM	40		/* a uuid and two numbers, with markers */

typedef struct ArtScanPlan
{
	bool		impossible;		/* no entry can match */
	bool		many;			/* there are several combinations */
	bool		point;			/* lo is a whole encoded key (before), hi
								 * the same (after), no residual, no
								 * payload. ax_lookup(lo) will do, and lo
								 * has the bytes of all that match */
	bool		skips;			/* art_skip_target() may know of something */
	bool		lo_after,
				hi_after;
	uint32		lo_len,
				hi_len;
	ArtBuf		lo,
				hi;
	int			nresidual;		/* conditions for art_scan_recheck, and nnulls;
								 * 0: every entry between lo and hi matches */
	int			residual_upto;	/* highest key column any residual needs */

	/* scan_keys.c's own */
	const ArtKeyDesc *kd;
	MemoryContext cxt;
	ArtArrays  *arrays;			/* NULL: there never were any */
	ArtRowKeys    *rows;			/* comparisons of rows; the same */
	ArtBuf		scratch;
	int			nprefix;		/* leading columns that are equal to something */
	int			nranges;		/* columns whose range is residual, rising */
	int			nkeys;			/* keys to test with their operators */
	int			nrows;			/* comparisons of rows to test */
	int			nnulls;			/* of those that need not be, but for art_scan_null() */
	int			keys_cap;
	ScanKeyData *keys;			/* copies, by rising column; NULL: never any */

	/* set before they are read, and not by art_scanplan_init() */
	uint16		range_col[INDEX_MAX_KEYS];
	ArtColRange ranges[INDEX_MAX_KEYS]; /* of each key column */
	uint8		room[2][ART_PLAN_ROOM]; /* of lo and hi, as long as they fit */
} ArtScanPlan;

/* Initialise once a scan.  The plan allocates in cxt, later. */
extern void art_scanplan_init(ArtScanPlan *plan, MemoryContext cxt);
extern void art_scanplan_free(ArtScanPlan *plan);

/*
 * (Re)compute from the keys: called by every amrescan, so it is cheap.  By-
 * reference arguments of the keys must live until the next call.
 */
extern void art_scanplan_set(ArtScanPlan *plan, const ArtKeyDesc *kd,
							 Relation index, ScanKey keys, int nkeys);

/*
 * Of a plan with "many": go to the first combination that way, or to the next
 * one.  False: there is none (the plan stays where it was).  All other members
 * but lo, hi and what belongs to them stay as they are.
 */
extern bool art_scanplan_first(ArtScanPlan *plan, bool backward);
extern bool art_scanplan_next(ArtScanPlan *plan, bool backward);

/*
 * Of a plan with "many" and "point".  Get the keys (without TIDs) of the
 * combination it stands at and of those behind it, that way, n at most.
 * Returns how many.  They are the plan's, good until its next set, or in buf.
 * The plan stays.
 */
extern uint32 art_scanplan_points(ArtScanPlan *plan, bool backward, uint32 n,
								  ArtBuf *buf, const uint8 **keys, uint32 *lens);

/* n combinations on; there are so many. */
extern void art_scanplan_skip(ArtScanPlan *plan, bool backward, uint32 n);

/*
 * Where it stands, as one number an array, and back there.  "at" has room for
 * INDEX_MAX_KEYS; returns how many it takes.
 */
extern int	art_scanplan_tell(const ArtScanPlan *plan, uint32 *at);
extern void art_scanplan_goto(ArtScanPlan *plan, const uint32 *at);

/*
 * How many elements each of these arrays has; returns how many there are.  A plan
 * with the same lengths can go where this one tells.
 */
extern int	art_scanplan_lengths(const ArtScanPlan *plan, uint32 *lens);

/* How many combinations there are (at least 1; about, when there are very many). */
extern double art_scanplan_count(const ArtScanPlan *plan);

/* Bounds that enclose the ranges of all combinations. */
extern void art_scanplan_outer(const ArtScanPlan *plan, ax_bound *lo, ax_bound *hi);

/*
 * Does an encoded key pass the residual keys?  Call it outside any latch and
 * critical section: it may call operators.  For arguments of types that the
 * family got from elsewhere it may palloc in the current context, which the
 * caller resets from time to time.  For our own types it allocates nothing.
 */
extern bool art_scan_recheck(const ArtScanPlan *plan, const ArtKeyDesc *kd,
							 const uint8 *key, uint32 keylen);

typedef enum ArtSkip
{
	ART_SKIP_NONE,				/* the key itself passes these columns */
	ART_SKIP_TO,				/* there the value of a column is one that passes */
	ART_SKIP_BEHIND				/* there begins the next value of a column that was skipped */
} ArtSkip;

/*
 * Of a plan with "skips", and a key of its range without the TID (perhaps only the
 * beginning of one): if the columns behind the first gap say that no entry beyond the
 * key matches before some position, that way, then *to and *after become that position, as
 * ax_bound's.  It lies beyond the key, and perhaps beyond the plan's range.
 *
 * Runs comparison functions, where columns are compared, in the current memory context.
 */
extern ArtSkip art_skip_target(const ArtScanPlan *plan, const uint8 *key, uint32 len,
							   bool backward, ArtBuf *to, bool *after);

/*
 * Has an entry between lo and hi a NULL where a comparison of rows is decided?  That needs
 * a look only where plan->nnulls is not 0, and runs nothing.
 */
extern bool art_scan_null(const ArtScanPlan *plan, const uint8 *key, uint32 len);

/* ---- operator classes (opclass_rules.c) ------------------------------------ */

/* Schema and name, allocated. */
extern List *art_opclass_name(Oid opclass);

/*
 * amvalidate: complain, with INFO, about all that is wrong with a class and its family.
 * False if there was anything.
 */
extern bool artvalidate(Oid opclassoid);

/*
 * Set while we copy members that were added to a btree family.  Such a copy
 * goes with its operator or function, instead of being in the way of dropping
 * that.
 */
extern bool art_soft_members;
extern void artadjustmembers(Oid opfamilyoid, Oid opclassoid,
							 List *operators, List *functions);

/* Have two operator families the same comparison and operators of a type? */
extern bool art_same_members(Oid ours, Oid theirs, Oid type);

/*
 * A column of the type, perhaps a domain, has an operator class of this family and input type.
 * Returns the class that is btree's default, if the column has its own by a binary coercion (citext
 * to text), and btree's compares otherwise.  Else InvalidOid.
 */
extern Oid	art_other_default(Oid family, Oid input, Oid type);

/*
 * ERROR if the new index has such a class because core knew none that fits better.
 * Where a statement names one, ddl/default_opclass.c has made the better one first.
 */
extern void art_refuse_default(Relation index);

/* WARNING for each such column of an index.  True: there was one. */
extern bool art_warn_of_classes(Relation index);

#endif							/* ART_KEY_H */
