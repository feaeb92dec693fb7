/*
 * doubted_order.c
 *	  Whether a column's comparison function may be no order.
 *
 * Core's functions put the values into one order, if those of their parts do.  So do
 * some of contrib's, which were read.  Others may not: a NaN in a cube is neither
 * below, nor above, nor equal to another one.
 *
 * src/key/README.md: Keys that are compared
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_range.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "key/key.h"

/* The functions of contrib that are orders, and that many use. */
static const struct
{
	const char *library;
	const char *function;
}			known[] = {
	{"$libdir/citext", "citext_cmp"},
	{"$libdir/citext", "citext_pattern_cmp"},
	{"$libdir/hstore", "hstore_cmp"},
	{"$libdir/ltree", "ltree_cmp"},
};

/* Is a function of an extension one of core's under another name, or a known one? */
static bool
is_known(Oid funcid, Oid type)
{
	HeapTuple	tup = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	Form_pg_proc proc;
	char	   *function;
	bool		isnull;
	bool		found = false;

	if (!HeapTupleIsValid(tup))
		return false;
	proc = (Form_pg_proc) GETSTRUCT(tup);
	function = TextDatumGetCString(SysCacheGetAttr(PROCOID, tup, Anum_pg_proc_prosrc, &isnull));
	if (proc->prolang == INTERNALlanguageId)
		found = !art_cmp_doubtful(fmgr_internal_function(function), type);
	else if (proc->prolang == ClanguageId)
	{
		Datum		probin = SysCacheGetAttr(PROCOID, tup, Anum_pg_proc_probin, &isnull);
		char	   *library = isnull ? "" : TextDatumGetCString(probin);

		for (Size i = 0; i < lengthof(known) && !found; i++)
			found = strcmp(library, known[i].library) == 0 && strcmp(function, known[i].function) == 0;
	}
	ReleaseSysCache(tup);
	return found;
}

static bool
type_doubtful(Oid type)
{
	TypeCacheEntry *t = lookup_type_cache(getBaseType(type), TYPECACHE_CMP_PROC);

	return !OidIsValid(t->cmp_proc) || art_cmp_doubtful(t->cmp_proc, type);
}

/* A row: any of its columns. */
static bool
row_doubtful(Oid type)
{
	TupleDesc	desc;
	bool		doubtful = false;

	if (!type_is_rowtype(type) || get_typtype(type) == TYPTYPE_PSEUDO)
		return true;
	desc = lookup_rowtype_tupdesc(type, -1);
	for (int i = 0; i < desc->natts && !doubtful; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		doubtful = !att->attisdropped && type_doubtful(att->atttypid);
	}
	ReleaseTupleDesc(desc);
	return doubtful;
}

/*
 * A range, by the operator class that its maker chose.  Its function is not looked at:
 * a query is planned where its library is missing.
 */
static bool
range_doubtful(Oid type)
{
	HeapTuple	tup = SearchSysCache1(RANGETYPE, ObjectIdGetDatum(type));
	bool		doubtful = true;

	if (HeapTupleIsValid(tup))
	{
		Form_pg_range form = (Form_pg_range) GETSTRUCT(tup);
		Oid			in = get_opclass_input_type(form->rngsubopc);

		doubtful = art_cmp_doubtful(get_opfamily_proc(get_opclass_family(form->rngsubopc), in, in, 1),
									form->rngsubtype);
		ReleaseSysCache(tup);
	}
	return doubtful;
}

bool
art_cmp_doubtful(Oid cmp, Oid type)
{
	Oid			base = getBaseType(type);
	Oid			part;

	check_stack_depth();
	if (!OidIsValid(cmp))
		return true;
	if (cmp >= FirstUnpinnedObjectId)
		return !is_known(cmp, type);
	switch (cmp)
	{
		case F_BTARRAYCMP:
			part = get_element_type(base);
			return !OidIsValid(part) || type_doubtful(part);
		case F_RANGE_CMP:
			return range_doubtful(base);
		case F_MULTIRANGE_CMP:
			return range_doubtful(get_multirange_range(base));
		case F_BTRECORDCMP:
			return row_doubtful(base);
		default:
			return false;
	}
}
