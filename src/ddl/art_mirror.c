/*
 * art_mirror.c
 *	  artidx_mirror_opclass(opclass): a btree operator class for art.
 *
 * The new class has the members of the old one, by nbtree's own numbers.  It
 * belongs to a family of the old family's name, which gets the cross-type
 * members as soon as both their types are there.  Whether its keys are encoded
 * or compared is decided when an index is created.
 *
 * The copy is to be in nobody's way: it goes with the class and the family that it
 * was made from.  So what is somebody's own can be dropped as if there was no
 * copy, unless an index of ours needs it.  (One that a dump restored is a class
 * like any other.)
 *
 * src/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "area/area.h"
#include "ddl/ddl.h"

/*
 * The members of a btree family ($1) that a family of art ($2) lacks, as items
 * of CREATE OPERATOR CLASS. own: those of type $3 alone; else those of pairs
 * of types that the art family knows.  Both are run with nothing but
 * pg_catalog in the search path, so types are qualified where they must be.
 */
#define MIRROR_MEMBERS \
	"SELECT string_agg(item, ', ' ORDER BY item) FROM (" \
	" SELECT format('OPERATOR %%s %%I.%%s (%%s, %%s)', m.amopstrategy, n.nspname," \
	"        o.oprname, format_type(m.amoplefttype, NULL)," \
	"        format_type(m.amoprighttype, NULL)) AS item" \
	" FROM pg_amop m JOIN pg_operator o ON o.oid = m.amopopr" \
	" JOIN pg_namespace n ON n.oid = o.oprnamespace" \
	" WHERE m.amopfamily = $1 AND m.amoppurpose = 's' AND %s" \
	" AND NOT EXISTS (SELECT FROM pg_amop a WHERE a.amopfamily = $2" \
	"  AND a.amoplefttype = m.amoplefttype AND a.amoprighttype = m.amoprighttype" \
	"  AND a.amopstrategy = m.amopstrategy)" \
	" UNION ALL" \
	" SELECT format('FUNCTION %%s (%%s, %%s) %%I.%%I(%%s)', m.amprocnum," \
	"        format_type(m.amproclefttype, NULL), format_type(m.amprocrighttype, NULL)," \
	"        n.nspname, p.proname, oidvectortypes(p.proargtypes))" \
	" FROM pg_amproc m JOIN pg_proc p ON p.oid = m.amproc" \
	" JOIN pg_namespace n ON n.oid = p.pronamespace" \
	" WHERE m.amprocfamily = $1 AND m.amprocnum <= 6 AND %s" \
	" AND NOT EXISTS (SELECT FROM pg_amproc a WHERE a.amprocfamily = $2" \
	"  AND a.amproclefttype = m.amproclefttype AND a.amprocrighttype = m.amprocrighttype" \
	"  AND a.amprocnum = m.amprocnum)) i"

#define MIRROR_KNOWN(type) \
	"EXISTS (SELECT FROM pg_amproc k WHERE k.amprocfamily = $2 AND k.amprocnum = 1" \
	" AND k.amproclefttype = " type " AND k.amprocrighttype = " type ")"

PG_FUNCTION_INFO_V1(artidx_mirror_opclass);
PGDLLEXPORT Datum artidx_mirror_opclass(PG_FUNCTION_ARGS);

static void
mirror_run(const char *command)
{
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run \"%s\"", command);
}

/* The members that the query finds, as one string, or NULL. */
static char *
mirror_members(const char *oprs, const char *procs, Oid from, Oid to, Oid type)
{
	char	   *query = psprintf(MIRROR_MEMBERS, oprs, procs);
	Oid			types[3] = {OIDOID, OIDOID, OIDOID};
	Datum		values[3];

	values[0] = ObjectIdGetDatum(from);
	values[1] = ObjectIdGetDatum(to);
	values[2] = ObjectIdGetDatum(type);
	if (SPI_execute_with_args(query, 3, types, values, NULL, false, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "could not read the members of operator family %u", from);
	return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

/* An object that is dropped takes its mirror along. */
static void
goes_with(Oid class, Oid mirror, Oid original)
{
	ObjectAddress myself,
				referenced;

	ObjectAddressSet(myself, class, mirror);
	ObjectAddressSet(referenced, class, original);
	recordDependencyOn(&myself, &referenced, DEPENDENCY_AUTO);
}

/* An operator class of btree, as its mirror is to be made. */
typedef struct Original
{
	char	   *name;
	char	   *family;
	Oid			from;			/* the family */
	Oid			type;
	bool		isdefault;
} Original;

/* Reads the operator class. */
static void
read_original(Oid opclass, Original *o)
{
	HeapTuple	tup = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	form = (Form_pg_opclass) GETSTRUCT(tup);
	o->name = pstrdup(NameStr(form->opcname));
	o->from = form->opcfamily;
	o->type = form->opcintype;
	o->isdefault = form->opcdefault;
	ReleaseSysCache(tup);

	tup = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(o->from));
	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator family %u", o->from);
	o->family = pstrdup(NameStr(((Form_pg_opfamily) GETSTRUCT(tup))->opfname));
	ReleaseSysCache(tup);
}

/* Has the type a default operator class of the access method? */
static bool
has_default(Oid am, Oid type)
{
	Oid			types[2] = {OIDOID, OIDOID};
	Datum		values[2];

	values[0] = ObjectIdGetDatum(am);
	values[1] = ObjectIdGetDatum(type);
	if (SPI_execute_with_args("SELECT FROM pg_opclass WHERE opcmethod = $1 AND opcintype = $2 AND opcdefault",
							  2, types, values, NULL, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read the operator classes of type %u", type);
	return SPI_processed != 0;
}

/* ERROR if the family, which was there before, means something else by the type. */
static void
check_members(Oid family, const Original *orig, const char *name)
{
	if (!art_same_members(family, orig->from, orig->type))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("operator family %s of access method \"%s\" has other operators for type %s",
						name, ART_AM_NAME, format_type_be(orig->type)),
				 errhint("Set \"search_path\" to another schema, in which the operator class is made.")));
}

/*
 * The oid of the new operator class.
 *
 * Long: the statements that make it, in their order.
 */
Datum
artidx_mirror_opclass(PG_FUNCTION_ARGS)
{
	char	   *given = text_to_cstring(PG_GETARG_TEXT_PP(0));
	List	   *names = stringToQualifiedNameList(given
#if PG_VERSION_NUM >= 160000
												  ,NULL
#endif
		);
	Oid			am = get_am_oid(ART_AM_NAME, false);
	Oid			opclass = get_opclass_oid(BTREE_AM_OID, names, false);
	Oid			result,
				to;
	bool		newfamily;
	Original	orig;
	char	   *schema;
	char	   *members;
	const char *qfamily;
	List	   *path = fetch_search_path(false);
	int			nestlevel;

	if (path == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("no schema has been selected to create operator class \"%s\" in",
						given),
				 errhint("Set \"search_path\".")));
	schema = get_namespace_name(linitial_oid(path));
	if (schema == NULL)
		elog(ERROR, "cache lookup failed for namespace %u", linitial_oid(path));

	read_original(opclass, &orig);
	qfamily = quote_qualified_identifier(schema, orig.family);
	nestlevel = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to the server's query interface");

	/* two of one type cannot both be its default */
	orig.isdefault = orig.isdefault && !has_default(am, orig.type);

	names = list_make2(makeString(schema), makeString(orig.family));
	newfamily = !OidIsValid(get_opfamily_oid(am, names, true));
	if (newfamily)
		mirror_run(psprintf("CREATE OPERATOR FAMILY %s USING art", qfamily));
	to = get_opfamily_oid(am, names, false);

	members = mirror_members("m.amoplefttype = $3 AND m.amoprighttype = $3",
							 "m.amproclefttype = $3 AND m.amprocrighttype = $3",
							 orig.from, to, orig.type);
	mirror_run(psprintf("CREATE OPERATOR CLASS %s %sFOR TYPE %s USING art FAMILY %s AS %s",
						quote_qualified_identifier(schema, orig.name),
						orig.isdefault ? "DEFAULT " : "",
						format_type_extended(orig.type, -1, FORMAT_TYPE_FORCE_QUALIFY),
						qfamily,
						members ? members :
						psprintf("STORAGE %s", format_type_extended(orig.type, -1, FORMAT_TYPE_FORCE_QUALIFY))));

	/* an in_range function's offset may be of a type that the family has not */
	members = mirror_members(MIRROR_KNOWN("m.amoplefttype") " AND " MIRROR_KNOWN("m.amoprighttype")
							 " AND $3 <> 0",
							 MIRROR_KNOWN("m.amproclefttype") " AND (m.amprocnum = 3 OR "
							 MIRROR_KNOWN("m.amprocrighttype") ") AND $3 <> 0",
							 orig.from, to, orig.type);
	if (members)
		mirror_run(psprintf("ALTER OPERATOR FAMILY %s USING art ADD %s", qfamily, members));
	SPI_finish();
	AtEOXact_GUC(true, nestlevel);

	CommandCounterIncrement();
	check_members(to, &orig, qfamily);
	result = get_opclass_oid(am, list_make2(makeString(schema), makeString(orig.name)), false);
	if (!creating_extension)
	{
		goes_with(OperatorClassRelationId, result, opclass);
		if (newfamily)
			goes_with(OperatorFamilyRelationId, to, orig.from);
	}
	PG_RETURN_OID(result);
}
