/*
 * array_keys.c
 *	  Arrays as scan keys: "column = ANY (array)" and its like.
 *
 * An array with "=" becomes the list of its elements in their encoded form, in
 * the order of the index and each once.  NULLs are left out, and elements that
 * no value of the column can equal.  Two arrays of a column are intersected.
 * Other conditions on the column cut the list's ends off.  So a column has
 * either a range or a list of two or more.  Since the order is that of the
 * bytes (or art_col_position_cmp's), DESC and elements of another type have no
 * cases of their own here.
 *
 * The lists of columns that belong to the leading equalities turn like the
 * wheels of an odometer, the last one fastest.  The ranges that come of it lie
 * in the index's order and apart from one another.  So one scan after the
 * other gives ordered rows without duplicates.  The other lists filter.
 *
 * A timestamptz against a timestamp or date may equal one of a few values, as
 * clocks were turned.  They are all in the list, and the operator decides
 * (art_array_any).
 *
 * An array with another operator is one range: what satisfies any element.  So
 * is one with "=" of which some element's values cannot be told (a type that
 * somebody added to the family); its operator then decides.
 *
 * The elements make the scan's bounds, and the ranges of scan keys cut the lists.
 * One thought with: scan_keys.c, row_keys.c
 *
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "port/pg_bswap.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "art_compat.h"
#include "core/ax.h"
#include "eval/eval.h"
#include "key/scan_plan.h"
#include "key/key.h"

/* Keys that are made for look-ups at once, and about how many bytes of them. */
#define MANY		256
#define MANY_BYTES	16384

#define SORT_MANY	500			/* elements from which on sorting by bytes pays */

/* An element: marker and body, in ArtArrays.bytes. */
typedef struct ArtElem
{
	uint64		head;			/* the first bytes of the body, as a number */
	uint32		off;
	uint32		len;
} ArtElem;

typedef struct ArtArray
{
	uint16		col;
	uint32		first;			/* in ArtArrays.elems */
	uint32		n;
	uint32		at;				/* the element that the plan stands at */
} ArtArray;

struct ArtArrays
{
	int			n;				/* by rising column, once settled */
	int			nwheels;		/* the first so many are gone through */
	bool		used_cxt;
	MemoryContext cxt;			/* arguments that had to be copied */
	uint32		nelems;
	uint32		elems_cap;
	ArtElem    *elems;
	ArtBuf		bytes;
	ArtBuf		lo,				/* the lowest and the highest of all bounds */
				hi;
	bool		lo_after,
				hi_after;

	/* the type of the arrays seen last */
	Oid			elemtype;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	ArtArray	list[INDEX_MAX_KEYS];
};

/* The argument of a residual key with SK_SEARCHARRAY. */
typedef struct ArtAny
{
	int			n;
	Datum		values[FLEXIBLE_ARRAY_MEMBER];
} ArtAny;

/* ---- order ---------------------------------------------------------------- */

/* The first eight bytes of an element behind its marker, as a number. */
static inline uint64
elem_head(const uint8 *p, uint32 len)
{
	uint64		v = 0;

	if (likely(len > sizeof(v)))
		memcpy(&v, p + 1, sizeof(v));
	else
		memcpy(&v, p + 1, len - 1);
	return pg_ntoh64(v);
}

static int
elem_tie(const ArtElem *a, const ArtElem *b, const uint8 *bytes)
{
	int			c;

	if (a->len <= sizeof(uint64) + 1 && a->len == b->len)
		return 0;				/* the heads are all there is */
	c = memcmp(bytes + a->off, bytes + b->off, Min(a->len, b->len));
	return c != 0 ? c : (a->len > b->len) - (a->len < b->len);
}

static inline int
elem_cmp(const ArtElem *a, const ArtElem *b, const uint8 *bytes)
{
	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	return elem_tie(a, b, bytes);
}

#define ST_SORT sort_elems
#define ST_ELEMENT_TYPE ArtElem
#define ST_COMPARE(a, b, arg) elem_cmp(a, b, arg)
#define ST_COMPARE_ARG_TYPE const uint8
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Sort many elements by their heads, a byte at a time from the lowest on; what has
 * the same byte everywhere is passed over.  Then those with one head by the rest.
 */
static void
sort_many(ArtArrays *aa, ArtElem *e, uint32 n)
{
	ArtElem    *other = MemoryContextAllocHuge(aa->cxt, n * sizeof(ArtElem));
	ArtElem    *from = e;
	ArtElem    *to = other;
	uint32		(*count)[256] = MemoryContextAllocZero(aa->cxt, 8 * sizeof(*count));

	for (uint32 i = 0; i < n; i++)
	{
		for (int b = 0; b < 8; b++)
			count[b][(uint8) (e[i].head >> (8 * b))]++;
	}
	for (int b = 0; b < 8; b++)
	{
		uint32		at = 0;
		ArtElem    *was = from;

		if (count[b][(uint8) (from[0].head >> (8 * b))] == n)
			continue;
		for (int c = 0; c < 256; c++)
		{
			uint32		here = count[b][c];

			count[b][c] = at;
			at += here;
		}
		for (uint32 i = 0; i < n; i++)
			to[count[b][(uint8) (from[i].head >> (8 * b))]++] = from[i];
		from = to;
		to = was;
	}
	if (from != e)
		memcpy(e, from, n * sizeof(ArtElem));
	pfree(other);
	pfree(count);

	for (uint32 i = 0, j; i < n; i = j)
	{
		bool		rest = e[i].len > sizeof(uint64) + 1;

		for (j = i + 1; j < n && e[j].head == e[i].head; j++)
			rest |= e[j].len != e[i].len;
		if (j > i + 1 && rest)
			sort_elems(e + i, j - i, aa->bytes.data);
	}
}

/* The same of a column that is compared. */
typedef struct ElemOrder
{
	const ArtKeyDesc *kd;
	int			col;
	const uint8 *bytes;
} ElemOrder;

static int
elem_order(const ElemOrder *o, const ArtElem *a, const ArtElem *b)
{
	if (o->kd->cols[o->col].enc != ART_ENC_DATUM)
		return elem_cmp(a, b, o->bytes);
	return art_col_position_cmp(o->kd, o->col, &(ax_bound) {o->bytes + a->off, a->len, false},
								&(ax_bound) {o->bytes + b->off, b->len, false});
}

static int
elem_order_arg(const void *a, const void *b, void *arg)
{
	return elem_order(arg, a, b);
}

static ElemOrder
column_order(const ArtScanPlan *plan, int col)
{
	ElemOrder	o = {plan->kd, col, plan->arrays->bytes.data};

	return o;
}

/* Sort n elements, drop what is equal to its predecessor; how many are left. */
static uint32
sort_unique(const ArtScanPlan *plan, int col, ArtElem *e, uint32 n)
{
	ElemOrder	o = column_order(plan, col);
	uint32		left = 1;

	if (plan->kd->cols[col].enc == ART_ENC_DATUM)
		qsort_arg(e, n, sizeof(ArtElem), elem_order_arg, &o);
	else if (n >= SORT_MANY)
		sort_many(plan->arrays, e, n);
	else
		sort_elems(e, n, o.bytes);
	for (uint32 i = 1; i < n; i++)
	{
		if (elem_order(&o, &e[left - 1], &e[i]) != 0)
			e[left++] = e[i];
	}
	return left;
}

/* Keep the elements of the list that are also among the n sorted elements at e. */
static void
intersect(const ArtScanPlan *plan, ArtArray *a, const ArtElem *e, uint32 n)
{
	ElemOrder	o = column_order(plan, a->col);
	ArtElem    *mine = &plan->arrays->elems[a->first];
	uint32		left = 0;

	for (uint32 i = 0, j = 0; i < a->n && j < n;)
	{
		int			c = elem_order(&o, &mine[i], &e[j]);

		if (c == 0)
			mine[left++] = mine[i];
		if (c <= 0)
			i++;
		if (c >= 0)
			j++;
	}
	a->n = left;
}

/* ---- taking arrays apart ---------------------------------------------------- */

typedef struct Walk
{
	char	   *p;
	uint8	   *nulls;
	int			i;
	int			n;
} Walk;

static void
array_walk_begin(Walk *w, ArrayType *arr)
{
	w->p = (char *) arr + (ARR_HASNULL(arr) ? (size_t) arr->dataoffset :
						   ARR_OVERHEAD_NONULLS(ARR_NDIM(arr)));
	w->nulls = ARR_NULLBITMAP(arr);
	w->i = 0;
	w->n = ArrayGetNItems(ARR_NDIM(arr), ARR_DIMS(arr));
}

/* The next element that is not NULL. */
static bool
array_walk_next(Walk *w, const ArtArrays *aa, Datum *value)
{
	while (w->i < w->n)
	{
		int			i = w->i++;

		if (w->nulls && (w->nulls[i / 8] & (1 << (i % 8))) == 0)
			continue;
		if (likely(aa->typbyval && aa->typlen == sizeof(int64)))
		{
			/* aligned, and so is the next */
			*value = Int64GetDatum(*(int64 *) w->p);
			w->p += sizeof(int64);
			return true;
		}
		*value = fetch_att(w->p, aa->typbyval, aa->typlen);
		w->p = att_addlength_pointer(w->p, aa->typlen, w->p);
		w->p = (char *) att_align_nominal(w->p, aa->typalign);
		return true;
	}
	return false;
}

/* The array itself, which lives until the next set. */
static ArrayType *
argument(ArtArrays *aa, Datum arg)
{
	MemoryContext old = MemoryContextSwitchTo(aa->cxt);
	ArrayType  *arr = DatumGetArrayTypeP(arg);

	MemoryContextSwitchTo(old);
	if (PointerGetDatum(arr) != arg)
		aa->used_cxt = true;
	if (ARR_ELEMTYPE(arr) != aa->elemtype)
	{
		aa->elemtype = ARR_ELEMTYPE(arr);
		get_typlenbyvalalign(aa->elemtype, &aa->typlen, &aa->typbyval, &aa->typalign);
	}
	return arr;
}

/* One more, whose bytes are to be added. */
static inline ArtElem *
new_elem(ArtArrays *aa)
{
	if (aa->nelems == aa->elems_cap)
	{
		aa->elems_cap *= 2;
		aa->elems = repalloc_huge(aa->elems, aa->elems_cap * sizeof(ArtElem));
	}
	aa->elems[aa->nelems].off = aa->bytes.len;
	return &aa->elems[aa->nelems++];
}

/* Add an element to the list that is being made. */
static void
add_elem(ArtArrays *aa, const uint8 *p, uint32 len)
{
	ArtElem    *e = new_elem(aa);

	e->len = len;
	e->head = elem_head(p, len);
	art_buf_reserve(&aa->bytes, len);
	memcpy(aa->bytes.data + aa->bytes.len, p, len);
	aa->bytes.len += len;
}

/*
 * All elements of an array with "=" whose type has the column's encoding, as
 * its own has.  Each is one value, without special cases.  False: not such an
 * array, or an element of no body; what was added is to be forgotten.
 */
static bool
add_same(ArtScanPlan *plan, const ArtKeyCol *kc, ScanKey key, ArrayType *arr)
{
	ArtArrays  *aa = plan->arrays;
	Oid			type = key->sk_subtype;
	bool		ints = kc->enc == ART_ENC_INT2 || kc->enc == ART_ENC_INT4 ||
		kc->enc == ART_ENC_INT8;
	Walk		w;
	Datum		value;

	if (type == InvalidOid)
		type = kc->typid;
	if (ints ? !(type == INT2OID || type == INT4OID || type == INT8OID) : type != kc->typid)
		return false;
	array_walk_begin(&w, arr);
	while (array_walk_next(&w, aa, &value))
	{
		uint32		off = aa->bytes.len;
		ArtElem    *e = new_elem(aa);

		art_buf_reserve(&aa->bytes, 1 + sizeof(uint64));
		aa->bytes.data[aa->bytes.len++] = ART_MARK_VALUE;
		if (ints)
		{
			int64		v = type == INT8OID ? DatumGetInt64(value) :
				type == INT4OID ? DatumGetInt32(value) : DatumGetInt16(value);

			/* as art_encode_col */
			e->head = (uint64) v ^ (UINT64CONST(1) << 63) ^ (kc->desc ? PG_UINT64_MAX : 0);
			v = (int64) pg_hton64(e->head);
			memcpy(aa->bytes.data + aa->bytes.len, &v, sizeof(v));
			aa->bytes.len += sizeof(v);
			e->len = 1 + sizeof(v);
			continue;
		}
		art_encode_col(kc, value, &aa->bytes);
		e->len = aa->bytes.len - off;
		e->head = elem_head(aa->bytes.data + off, e->len);
		if (unlikely(e->len == 1))
			return false;
		if (unlikely(e->len > ART_KEY_LIMIT) && kc->enc != ART_ENC_DATUM)
		{
			/* nothing that is stored equals it */
			aa->nelems--;
			aa->bytes.len = off;
		}
	}
	return true;
}

/* A list of the elements from "first" on, or what of them is in the column's. */
static void
add_list(ArtScanPlan *plan, int col, uint32 first)
{
	ArtArrays  *aa = plan->arrays;
	uint32		n = sort_unique(plan, col, &aa->elems[first], aa->nelems - first);
	int			i;

	for (i = 0; i < aa->n; i++)
	{
		if (aa->list[i].col == col)
		{
			intersect(plan, &aa->list[i], &aa->elems[first], n);
			aa->nelems = first;
			return;
		}
	}
	for (; i > 0 && aa->list[i - 1].col > col; i--)
		aa->list[i] = aa->list[i - 1];
	aa->n++;
	aa->list[i].col = (uint16) col;
	aa->list[i].first = first;
	aa->list[i].n = n;
	aa->list[i].at = 0;
	aa->nelems = first + n;
}

/* The operator decides: does any of the elements satisfy it? */
static void
add_any(ArtScanPlan *plan, ScanKey key, ArrayType *arr)
{
	ArtArrays  *aa = plan->arrays;
	ScanKeyData k = *key;
	ArtAny	   *values;
	Walk		w;

	array_walk_begin(&w, arr);
	values = MemoryContextAllocHuge(aa->cxt, offsetof(ArtAny, values) +
									w.n * sizeof(Datum));
	aa->used_cxt = true;
	values->n = 0;
	while (array_walk_next(&w, aa, &values->values[values->n]))
		values->n++;
	k.sk_argument = PointerGetDatum(values);
	art_add_residual_key(plan, &k);
}

/*
 * The loosest range that any of the elements makes; with "operator", that of
 * the key is to decide.
 */
static bool
array_range(ArtScanPlan *plan, const ArtKeyCol *kc, ScanKey key, ArrayType *arr)
{
	ArtArrays  *aa = plan->arrays;
	ArtColRange *r = &plan->ranges[key->sk_attno - 1];
	ArtColRange mine = *r;		/* what other keys leave */
	ArtColRange all;
	bool		any = false;
	bool		inexact = false;
	Walk		w;
	ScanKeyData k = *key;

	k.sk_flags &= ~SK_SEARCHARRAY;
	memset(&all, 0, sizeof(all));
	array_walk_begin(&w, arr);
	while (array_walk_next(&w, aa, &k.sk_argument))
	{
		uint32		mark = plan->scratch.len;
		ArtColRange one;
		bool		residual;
		bool		keep = false;

		r->lo_set = r->hi_set = false;
		if (!art_restrict_range(plan, kc, &k, r, &residual))
		{
			plan->scratch.len = mark;
			continue;
		}
		one = *r;
		inexact |= residual;
		if (!any)
		{
			all = one;
			any = keep = true;
		}
		else
		{
			/* is it wider at either end? */
			*r = all;
			art_raise_lo(plan, r, one.lo_off, one.lo_len, one.lo_after);
			if (r->lo_off == all.lo_off &&
				(one.lo_off != all.lo_off || one.lo_len != all.lo_len))
			{
				all.lo_off = one.lo_off;
				all.lo_len = one.lo_len;
				all.lo_after = one.lo_after;
				keep = true;
			}
			*r = all;
			art_cut_hi(plan, r, one.hi_off, one.hi_len, one.hi_after);
			if (r->hi_off == all.hi_off &&
				(one.hi_off != all.hi_off || one.hi_len != all.hi_len))
			{
				all.hi_off = one.hi_off;
				all.hi_len = one.hi_len;
				all.hi_after = one.hi_after;
				keep = true;
			}
		}
		if (!keep)
			plan->scratch.len = mark;
	}
	*r = mine;
	if (!any)
		return false;
	art_raise_lo(plan, r, all.lo_off, all.lo_len, all.lo_after);
	art_cut_hi(plan, r, all.hi_off, all.hi_len, all.hi_after);

	if (inexact)
		add_any(plan, key, arr);
	return true;
}

/*
 * Add what an element of an array with "=" maps to, if that are single values;
 * sets *inexact when only the operator can tell which.
 */
static bool
add_exact_values(ArtScanPlan *plan, const ArtKeyCol *kc, ScanKey k, bool *inexact)
{
	ArtArrays  *aa = plan->arrays;
	ArtColRange *r = &plan->ranges[k->sk_attno - 1];
	ScanKeyData own = *k;
	Datum		values[ART_CANDIDATES];
	bool		residual;
	int			n;

	r->lo_set = r->hi_set = false;
	if (!art_restrict_range(plan, kc, k, r, &residual))
		return true;			/* to none */
	if (!residual)
	{
		if (!art_range_is_equal(plan, r))
			return false;
		add_elem(aa, plan->scratch.data + r->lo_off, r->lo_len);
		return true;
	}

	n = art_equal_candidates(kc, k->sk_subtype, k->sk_argument, values);
	if (n < 0)
		return false;
	*inexact = true;
	own.sk_subtype = kc->typid;
	for (int i = 0; i < n; i++)
	{
		r->lo_set = r->hi_set = false;
		own.sk_argument = values[i];
		if (!art_restrict_range(plan, kc, &own, r, &residual))
			continue;
		if (residual || !art_range_is_equal(plan, r))
			return false;
		add_elem(aa, plan->scratch.data + r->lo_off, r->lo_len);
	}
	return true;
}

bool
art_array_key(ArtScanPlan *plan, const ArtKeyCol *kc, ScanKey key)
{
	ArtArrays  *aa = plan->arrays;
	ArtColRange *r = &plan->ranges[key->sk_attno - 1];
	ArtColRange mine = *r;
	ArrayType  *arr;
	uint32		first,
				mark_bytes;
	uint32		mark = plan->scratch.len;
	bool		single = true;
	bool		inexact = false;
	Walk		w;
	ScanKeyData k = *key;

	if (aa == NULL)
	{
		aa = plan->arrays = MemoryContextAllocZero(plan->cxt, sizeof(ArtArrays));
		aa->cxt = AllocSetContextCreate(plan->cxt, "art array keys",
										ALLOCSET_SMALL_SIZES);
		aa->elems_cap = 64;
		aa->elems = MemoryContextAlloc(plan->cxt, aa->elems_cap * sizeof(ArtElem));
		art_buf_init(&aa->bytes, plan->cxt, 1024);
		art_buf_init(&aa->lo, plan->cxt, 64);
		art_buf_init(&aa->hi, plan->cxt, 64);
	}
	arr = argument(aa, key->sk_argument);
	if (key->sk_strategy != BTEqualStrategyNumber)
		return array_range(plan, kc, key, arr);

	k.sk_flags &= ~SK_SEARCHARRAY;
	first = aa->nelems;
	mark_bytes = aa->bytes.len;
	if (add_same(plan, kc, key, arr))
	{
		if (aa->nelems == first)
			return false;
		add_list(plan, key->sk_attno - 1, first);
		if (unlikely(plan->kd->doubtful) && kc->enc == ART_ENC_DATUM)
		{
			k = *key;
			k.sk_argument = (Datum) 0;	/* the list's */
			art_add_residual_key(plan, &k);
		}
		return true;
	}
	aa->nelems = first;
	aa->bytes.len = mark_bytes;
	array_walk_begin(&w, arr);
	while (single && array_walk_next(&w, aa, &k.sk_argument))
	{
		single = add_exact_values(plan, kc, &k, &inexact);
		plan->scratch.len = mark;
	}
	*r = mine;
	if (!single)
	{
		aa->nelems = first;
		return array_range(plan, kc, key, arr);
	}
	if (aa->nelems == first)
		return false;
	if (inexact)
		add_any(plan, key, arr);
	add_list(plan, key->sk_attno - 1, first);
	return true;
}

/* Cut off what is not between the ends of the column's range. */
static void
cut_list(const ArtScanPlan *plan, ArtArray *a, const ArtColRange *r)
{
	const ArtArrays *aa = plan->arrays;
	const uint8 *s = plan->scratch.data;

	/* an element is one position: before or after is the same */
	while (r->lo_set && a->n > 0)
	{
		const ArtElem *e = &aa->elems[a->first];

		if (art_col_position_cmp(plan->kd, a->col, &(ax_bound) {aa->bytes.data + e->off, e->len, true},
								 &(ax_bound) {s + r->lo_off, r->lo_len, r->lo_after}) > 0)
			break;
		a->first++;
		a->n--;
	}
	while (r->hi_set && a->n > 0)
	{
		const ArtElem *e = &aa->elems[a->first + a->n - 1];

		if (art_col_position_cmp(plan->kd, a->col, &(ax_bound) {aa->bytes.data + e->off, e->len, false},
								 &(ax_bound) {s + r->hi_off, r->hi_len, r->hi_after}) < 0)
			break;
		a->n--;
	}
}

/*
 * A list of one is an equality like any other.
 */
bool
art_arrays_settle(ArtScanPlan *plan)
{
	ArtArrays  *aa = plan->arrays;
	int			left = 0;

	for (int i = 0; i < aa->n; i++)
	{
		ArtArray   *a = &aa->list[i];
		ArtColRange *r = &plan->ranges[a->col];

		cut_list(plan, a, r);
		if (a->n == 0)
			return false;
		r->lo_set = r->hi_set = false;
		if (a->n == 1)
		{
			const ArtElem *e = &aa->elems[a->first];
			uint32		off = plan->scratch.len;

			art_buf_reserve(&plan->scratch, e->len);
			memcpy(plan->scratch.data + off, aa->bytes.data + e->off, e->len);
			plan->scratch.len += e->len;
			art_raise_lo(plan, r, off, e->len, false);
			art_cut_hi(plan, r, off, e->len, true);
		}
		else
			aa->list[left++] = *a;
	}
	aa->n = left;
	return true;
}

void
art_arrays_reset(ArtScanPlan *plan)
{
	ArtArrays  *aa = plan->arrays;

	aa->n = aa->nwheels = aa->nelems = 0;
	aa->bytes.len = 0;
	if (aa->used_cxt)
		MemoryContextReset(aa->cxt);
	aa->used_cxt = false;
}

void
art_arrays_free(ArtScanPlan *plan)
{
	ArtArrays  *aa = plan->arrays;

	if (aa == NULL)
		return;
	MemoryContextDelete(aa->cxt);
	pfree(aa->elems);
	pfree(aa->bytes.data);
	pfree(aa->lo.data);
	pfree(aa->hi.data);
	pfree(aa);
	plan->arrays = NULL;
}

/* ---- the odometer ----------------------------------------------------------- */

/* All wheels to one end, without regard to what that gives. */
static bool
to_end(ArtScanPlan *plan, bool last)
{
	ArtArrays  *aa = plan->arrays;

	for (int i = 0; i < aa->nwheels; i++)
		aa->list[i].at = last ? aa->list[i].n - 1 : 0;
	return art_plan_bounds(plan);
}

bool
art_arrays_begin(ArtScanPlan *plan, int upto)
{
	ArtArrays  *aa = plan->arrays;

	aa->nwheels = 0;
	while (aa->nwheels < aa->n && aa->list[aa->nwheels].col < upto)
		aa->nwheels++;
	plan->many = aa->nwheels > 0;
	if (!plan->many)
		return art_plan_bounds(plan);

	(void) to_end(plan, true);
	art_buf_reserve(&aa->hi, plan->hi_len);
	memcpy(aa->hi.data, plan->hi.data, plan->hi_len);
	aa->hi.len = plan->hi_len;
	aa->hi_after = plan->hi_after;
	(void) to_end(plan, false);
	art_buf_reserve(&aa->lo, plan->lo_len);
	memcpy(aa->lo.data, plan->lo.data, plan->lo_len);
	aa->lo.len = plan->lo_len;
	aa->lo_after = plan->lo_after;
	return true;
}

bool
art_scanplan_first(ArtScanPlan *plan, bool backward)
{
	return to_end(plan, backward) || art_scanplan_next(plan, backward);
}

bool
art_scanplan_next(ArtScanPlan *plan, bool backward)
{
	ArtArrays  *aa = plan->arrays;

	for (;;)
	{
		int			i = aa->nwheels - 1;

		while (i >= 0 && aa->list[i].at == (backward ? 0 : aa->list[i].n - 1))
			i--;
		if (i < 0)
			return false;
		if (backward)
			aa->list[i].at--;
		else
			aa->list[i].at++;
		while (++i < aa->nwheels)
			aa->list[i].at = backward ? aa->list[i].n - 1 : 0;
		if (likely(art_plan_bounds(plan)))
			return true;
	}
}

/* Is the one list the whole key?  Then its elements are the keys. */
static inline bool
one_list(const ArtScanPlan *plan)
{
	return plan->arrays->nwheels == 1 && plan->kd->natts == 1;
}

uint32
art_scanplan_points(ArtScanPlan *plan, bool backward, uint32 n, ArtBuf *buf,
					const uint8 **keys, uint32 *lens)
{
	ArtArrays  *aa = plan->arrays;
	uint32		at[INDEX_MAX_KEYS];
	uint32		off[MANY];
	uint32		m = 0;

	if (one_list(plan))
	{
		const ArtArray *a = &aa->list[0];
		const ArtElem *e = &aa->elems[a->first + a->at];
		int			step = backward ? -1 : 1;

		n = Min(n, backward ? a->at + 1 : a->n - a->at);
		for (; m < n; m++, e += step)
		{
			keys[m] = aa->bytes.data + e->off;
			lens[m] = e->len;
		}
		return m;
	}

	n = Min(n, MANY);
	buf->len = 0;
	(void) art_scanplan_tell(plan, at);
	do
	{
		off[m] = buf->len;
		lens[m++] = plan->lo_len;
		art_buf_reserve(buf, plan->lo_len);
		memcpy(buf->data + buf->len, plan->lo.data, plan->lo_len);
		buf->len += plan->lo_len;
	} while (m < n && buf->len < MANY_BYTES && art_scanplan_next(plan, backward));
	for (uint32 i = 0; i < m; i++)
		keys[i] = buf->data + off[i];
	art_scanplan_goto(plan, at);
	return m;
}

void
art_scanplan_skip(ArtScanPlan *plan, bool backward, uint32 n)
{
	if (n == 0)
		return;
	if (one_list(plan))
	{
		plan->arrays->list[0].at += backward ? -n : n;
		(void) art_plan_bounds(plan);
		return;
	}
	while (n-- > 0)
		(void) art_scanplan_next(plan, backward);
}

int
art_scanplan_tell(const ArtScanPlan *plan, uint32 *at)
{
	const ArtArrays *aa = plan->arrays;

	if (!plan->many)
		return 0;
	for (int i = 0; i < aa->nwheels; i++)
		at[i] = aa->list[i].at;
	return aa->nwheels;
}

int
art_scanplan_lengths(const ArtScanPlan *plan, uint32 *lens)
{
	const ArtArrays *aa = plan->arrays;

	if (!plan->many)
		return 0;
	for (int i = 0; i < aa->nwheels; i++)
		lens[i] = aa->list[i].n;
	return aa->nwheels;
}

void
art_scanplan_goto(ArtScanPlan *plan, const uint32 *at)
{
	ArtArrays  *aa = plan->arrays;
	bool		same = true;

	if (!plan->many)
		return;
	for (int i = 0; i < aa->nwheels; i++)
	{
		Assert(at[i] < aa->list[i].n);
		same &= aa->list[i].at == at[i];
		aa->list[i].at = at[i];
	}
	if (!same)
		(void) art_plan_bounds(plan);
}

double
art_scanplan_count(const ArtScanPlan *plan)
{
	double		n = 1;

	if (plan->many)
	{
		for (int i = 0; i < plan->arrays->nwheels; i++)
			n *= plan->arrays->list[i].n;
	}
	return n;
}

void
art_scanplan_outer(const ArtScanPlan *plan, ax_bound *lo, ax_bound *hi)
{
	const ArtArrays *aa = plan->arrays;

	lo->key = plan->many ? aa->lo.data : plan->lo.data;
	lo->len = plan->many ? aa->lo.len : plan->lo_len;
	lo->after = plan->many ? aa->lo_after : plan->lo_after;
	hi->key = plan->many ? aa->hi.data : plan->hi.data;
	hi->len = plan->many ? aa->hi.len : plan->hi_len;
	hi->after = plan->many ? aa->hi_after : plan->hi_after;
}

/* ---- what scan_keys.c asks ------------------------------------------------- */

/* The list of a column, NULL if it has none. */
static const ArtArray *
find_list(const ArtScanPlan *plan, int col)
{
	const ArtArrays *aa = plan->arrays;

	for (int i = 0; i < aa->n; i++)
	{
		if (aa->list[i].col == col)
			return &aa->list[i];
	}
	return NULL;
}

/* The list of a column that has one. */
static const ArtArray *
list_of(const ArtScanPlan *plan, int col)
{
	const ArtArray *a = find_list(plan, col);

	Assert(a != NULL);
	return a;
}

bool
art_array_of(const ArtScanPlan *plan, int col)
{
	return find_list(plan, col) != NULL;
}

void
art_array_append(const ArtScanPlan *plan, int col, ArtBuf *buf)
{
	const ArtArrays *aa = plan->arrays;
	const ArtArray *a = list_of(plan, col);
	const ArtElem *e = &aa->elems[a->first + a->at];

	art_buf_reserve(buf, e->len);
	memcpy(buf->data + buf->len, aa->bytes.data + e->off, e->len);
	buf->len += e->len;
}

/*
 * The place of the first element that is not less than the column's value, marker and
 * body; *found: it is the value.
 */
static uint32
find_place(const ArtScanPlan *plan, const ArtArray *a, const uint8 *p, uint32 len, bool *found)
{
	const ArtArrays *aa = plan->arrays;
	const ArtElem *e = &aa->elems[a->first];
	bool		compared = plan->kd->cols[a->col].enc == ART_ENC_DATUM;
	uint64		head;
	uint32		lo = 0;
	uint32		hi = a->n;

	*found = false;
	if (*p != ART_MARK_VALUE)
		return *p < ART_MARK_VALUE ? 0 : a->n;
	head = compared ? 0 : elem_head(p, len);
	while (lo < hi)
	{
		uint32		mid = lo + (hi - lo) / 2;
		int			c;

		if (compared)
			c = art_col_position_cmp(plan->kd, a->col, &(ax_bound) {p, len, false},
									 &(ax_bound) {aa->bytes.data + e[mid].off, e[mid].len, false});
		else if (head != e[mid].head)
			c = head < e[mid].head ? -1 : 1;
		else
		{
			c = memcmp(p, aa->bytes.data + e[mid].off, Min(len, e[mid].len));
			if (c == 0)
				c = (len > e[mid].len) - (len < e[mid].len);
		}
		if (c == 0)
		{
			*found = true;
			return mid;
		}
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The element that is the column's value; or NULL. */
static const ArtElem *
find_member(const ArtScanPlan *plan, const ArtArray *a, const uint8 *p, uint32 len)
{
	bool		found;
	uint32		i = find_place(plan, a, p, len, &found);

	return found ? &plan->arrays->elems[a->first + i] : NULL;
}

bool
art_array_beside(const ArtScanPlan *plan, int col, const uint8 *p, uint32 len,
				 bool backward, bool beyond, ArtElement *elem)
{
	const ArtArrays *aa = plan->arrays;
	const ArtArray *a = list_of(plan, col);
	bool		found = false;
	int64		i = backward ? (int64) a->n - 1 : 0;

	if (p != NULL)
	{
		i = find_place(plan, a, p, len, &found);
		if (backward && !found)
			i--;				/* the one below */
		if (found && beyond)
			i += backward ? -1 : 1;
	}
	if (i < 0 || i >= a->n)
		return false;
	elem->same = found && !beyond;
	elem->bytes = aa->bytes.data + aa->elems[a->first + i].off;
	elem->len = aa->elems[a->first + i].len;
	return true;
}

bool
art_array_member(const ArtScanPlan *plan, int col, const uint8 *p, uint32 len)
{
	return find_member(plan, list_of(plan, col), p, len) != NULL;
}

bool
art_array_stands(const ArtScanPlan *plan, int col, const uint8 *p, uint32 len)
{
	const ArtArrays *aa = plan->arrays;
	const ArtArray *a = list_of(plan, col);
	const ArtElem *e = &aa->elems[a->first + a->at];

	return len == e->len && memcmp(p, aa->bytes.data + e->off, len) == 0;
}

bool
art_array_agrees(const ArtScanPlan *plan, ScanKey key, const uint8 *p, uint32 len)
{
	const int	col = key->sk_attno - 1;
	const ArtKeyCol *kc = &plan->kd->cols[col];
	const ArtArrays *aa = plan->arrays;
	const ArtArray *a = find_list(plan, col);
	const uint8 *elem;
	uint32		elen;

	if (a == NULL)				/* of one element: an equality like any other */
	{
		elem = plan->scratch.data + plan->ranges[col].lo_off;
		elen = plan->ranges[col].lo_len;
	}
	else
	{
		const ArtElem *e = col < plan->nprefix ? &aa->elems[a->first + a->at] :
			find_member(plan, a, p, len);

		if (e == NULL)
			return false;
		elem = aa->bytes.data + e->off;
		elen = e->len;
	}
	return DatumGetBool(art_opclass_call(&key->sk_func, key->sk_collation,
										 art_decode_col(kc, p + 1, p + len),
										 art_decode_col(kc, elem + 1, elem + elen)));
}

bool
art_array_any(ScanKey key, Datum value)
{
	const ArtAny *any = (const ArtAny *) DatumGetPointer(key->sk_argument);

	for (int i = 0; i < any->n; i++)
	{
		if (DatumGetBool(art_opclass_call(&key->sk_func, key->sk_collation, value,
										  any->values[i])))
			return true;
	}
	return false;
}
