/*
 * sql_results.c
 *	  The rows that functions of SQL give, as the database declares them.
 *
 * The declarations are those of the last CREATE EXTENSION or ALTER EXTENSION UPDATE.
 * The library is the one that the server has loaded.  An older declaration lacks columns
 * at the end, and gets the others.  A newer one has columns that this library does not
 * fill.
 *
 * src/views/README.md: The SQL of the extension
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/lsyscache.h"

#include "area/area.h"

/* ERROR 42P13: the declaration has more columns than the library fills. */
static void
check_columns(FunctionCallInfo fcinfo, TupleDesc desc, int columns)
{
	if (desc->natts > columns)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("function %s() is declared with %d columns, and artidx %s gives %d",
						get_func_name(fcinfo->flinfo->fn_oid), desc->natts, ARTIDX_VERSION, columns),
				 errhint("Restart the server if a newer artidx was installed, and run \"ALTER EXTENSION artidx UPDATE\".")));
}

TupleDesc
art_result_row(FunctionCallInfo fcinfo, int columns)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	check_columns(fcinfo, desc, columns);
	return BlessTupleDesc(desc);
}

ReturnSetInfo *
art_result_rows(FunctionCallInfo fcinfo, int columns)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	art_begin_rows(fcinfo);
	check_columns(fcinfo, rsinfo->setDesc, columns);
	return rsinfo;
}
