/*
 * flatten.c
 *	  Composite values, and arrays and ranges of them, with nothing compressed in them.
 *
 * An expression such as ROW(a, b) takes the columns as they come.  In the table
 * they may be compressed, and in the row that is being inserted they are not
 * yet.  Both values are equal, and their keys are to have the same bytes.  A
 * column that is no expression has one value, which the table keeps as it was.
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"

#include "art_compat.h"
#include "key/key.h"
#include "key/encode.h"

bool
art_holds_rows(Oid type)
{
	Oid			base = getBaseType(type);
	Oid			part = get_element_type(base);

	check_stack_depth();
	if (!OidIsValid(part))
		part = get_range_subtype(base);
	if (!OidIsValid(part))
		part = get_multirange_range(base);
	return type_is_rowtype(base) || (OidIsValid(part) && art_holds_rows(part));
}

/* A composite value, whose fields are flat. */
static Datum
flat_row(Datum value)
{
	HeapTupleHeader row = art_row_header(value);
	TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row),
											  HeapTupleHeaderGetTypMod(row));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(row), .t_data = row};
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *nulls = palloc(desc->natts * sizeof(bool));
	Datum		flat;

	heap_deform_tuple(&tuple, desc, values, nulls);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!nulls[i] && !att->attisdropped && att->attlen == -1)
			values[i] = art_flat(values[i], att->atttypid);
	}
	flat = heap_copy_tuple_as_datum(heap_form_tuple(desc, values, nulls), desc);
	ReleaseTupleDesc(desc);
	return flat;
}

/* An array, whose elements are flat. */
static Datum
flat_array(Datum value, Oid element)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	int16		len;
	bool		byval;
	char		align;
	Datum	   *values;
	bool	   *nulls;
	int			n;

	get_typlenbyvalalign(element, &len, &byval, &align);
	deconstruct_array(array, element, len, byval, align, &values, &nulls, &n);
	if (n == 0)
		return PointerGetDatum(array);
	for (int i = 0; i < n; i++)
	{
		if (!nulls[i])
			values[i] = art_flat(values[i], element);
	}
	return PointerGetDatum(construct_md_array(values, nulls, ARR_NDIM(array), ARR_DIMS(array),
											  ARR_LBOUND(array), element, len, byval, align));
}

/* A range, whose bounds are flat. */
static Datum
flat_range(Datum value, Oid type, Oid subtype)
{
	TypeCacheEntry *typcache = lookup_type_cache(type, TYPECACHE_RANGE_INFO);
	RangeBound	lower;
	RangeBound	upper;
	bool		empty;

	range_deserialize(typcache, DatumGetRangeTypeP(value), &lower, &upper, &empty);
	if (!empty && !lower.infinite)
		lower.val = art_flat(lower.val, subtype);
	if (!empty && !upper.infinite)
		upper.val = art_flat(upper.val, subtype);
	return RangeTypePGetDatum(art_range_serialize(typcache, &lower, &upper, empty));
}

/* A multirange, whose ranges are flat. */
static Datum
flat_multirange(Datum value, Oid type, Oid range)
{
	TypeCacheEntry *typcache = lookup_type_cache(range, TYPECACHE_RANGE_INFO);
	RangeType **ranges;
	int32		n;

	multirange_deserialize(typcache, DatumGetMultirangeTypeP(value), &n, &ranges);
	for (int i = 0; i < n; i++)
		ranges[i] = DatumGetRangeTypeP(art_flat(RangeTypePGetDatum(ranges[i]), range));
	return MultirangeTypePGetDatum(make_multirange(type, typcache, n, ranges));
}

Datum
art_flat(Datum value, Oid type)
{
	Oid			base = getBaseType(type);
	Oid			part;

	check_stack_depth();
	if (type_is_rowtype(base))
		return flat_row(value);
	part = get_element_type(base);
	if (OidIsValid(part) && art_holds_rows(part))
		return flat_array(value, part);
	part = get_range_subtype(base);
	if (OidIsValid(part) && art_holds_rows(part))
		return flat_range(value, base, part);
	part = get_multirange_range(base);
	if (OidIsValid(part) && art_holds_rows(part))
		return flat_multirange(value, base, part);
	return PointerGetDatum(PG_DETOAST_DATUM(value));
}
