/*
 * opclass_rules.c
 *	  What operator families and classes of the access method must look like, and
 *	  that a column has btree's.
 *
 * The families mirror nbtree's, so the rules are nbtree's.  There are
 * strategies 1 to 5, support functions by nbtree's numbers and signatures, and
 * complete sets for every pair of types.
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "art_compat.h"
#include "key/key.h"

/* Skip support, from 18 on; the number stands unused before. */
#define ART_SKIPSUPPORT_PROC 6

#define ART_ALL_STRATEGIES \
	((1 << BTLessStrategyNumber) | (1 << BTLessEqualStrategyNumber) | \
	 (1 << BTEqualStrategyNumber) | (1 << BTGreaterEqualStrategyNumber) | \
	 (1 << BTGreaterStrategyNumber))

/* A finding: reported, and the validation goes on. */
#define ART_COMPLAIN(...) \
	ereport(INFO, \
			(errcode(ERRCODE_INVALID_OBJECT_DEFINITION), \
			 errmsg(__VA_ARGS__)))

/* Is the function of the kind its support number wants?  -1: no such number. */
static int
art_check_support(Form_pg_amproc proc)
{
	switch (proc->amprocnum)
	{
		case BTORDER_PROC:
			return check_amproc_signature(proc->amproc, INT4OID, true, 2, 2,
										  proc->amproclefttype,
										  proc->amprocrighttype);
		case BTSORTSUPPORT_PROC:
			return check_amproc_signature(proc->amproc, VOIDOID, true, 1, 1,
										  INTERNALOID);
		case BTINRANGE_PROC:
			return check_amproc_signature(proc->amproc, BOOLOID, true, 5, 5,
										  proc->amproclefttype,
										  proc->amproclefttype,
										  proc->amprocrighttype,
										  BOOLOID, BOOLOID);
		case BTEQUALIMAGE_PROC:
			return check_amproc_signature(proc->amproc, BOOLOID, true, 1, 1,
										  OIDOID);
		case BTOPTIONS_PROC:
			return check_amoptsproc_signature(proc->amproc);
#if PG_VERSION_NUM >= 180000
		case ART_SKIPSUPPORT_PROC:
			return check_amproc_signature(proc->amproc, VOIDOID, true, 1, 1,
										  INTERNALOID);
#endif
		default:
			return -1;
	}
}

/* Every support function of the family by itself. */
static bool
art_validate_functions(CatCList *procs, const char *family)
{
	bool		result = true;
	int			i;

	for (i = 0; i < procs->n_members; i++)
	{
		Form_pg_amproc proc = (Form_pg_amproc) GETSTRUCT(&procs->members[i]->tuple);
		int			ok = art_check_support(proc);

		if (ok > 0)
			continue;
		result = false;
		if (ok < 0)
			ART_COMPLAIN("operator family \"%s\" of access method %s contains function %s with invalid support number %d",
						 family, "art", format_procedure(proc->amproc),
						 proc->amprocnum);
		else
			ART_COMPLAIN("operator family \"%s\" of access method %s contains function %s with wrong signature for support number %d",
						 family, "art", format_procedure(proc->amproc),
						 proc->amprocnum);
	}
	return result;
}

/* Every operator of the family by itself. */
static bool
art_validate_operators(CatCList *oprs, const char *family)
{
	bool		result = true;
	int			i;

	for (i = 0; i < oprs->n_members; i++)
	{
		Form_pg_amop opr = (Form_pg_amop) GETSTRUCT(&oprs->members[i]->tuple);

		if (opr->amopstrategy < 1 || opr->amopstrategy > BTMaxStrategyNumber)
		{
			ART_COMPLAIN("operator family \"%s\" of access method %s contains operator %s with invalid strategy number %d",
						 family, "art", format_operator(opr->amopopr),
						 opr->amopstrategy);
			result = false;
		}
		if (opr->amoppurpose != AMOP_SEARCH || OidIsValid(opr->amopsortfamily))
		{
			ART_COMPLAIN("operator family \"%s\" of access method %s contains invalid ORDER BY specification for operator %s",
						 family, "art", format_operator(opr->amopopr));
			result = false;
		}
		if (!check_amop_signature(opr->amopopr, BOOLOID,
								  opr->amoplefttype, opr->amoprighttype))
		{
			ART_COMPLAIN("operator family \"%s\" of access method %s contains operator %s with wrong signature",
						 family, "art", format_operator(opr->amopopr));
			result = false;
		}
	}
	return result;
}

/* Completeness: every pair of the family's types, and the class's own. */
static bool
art_validate_groups(CatCList *oprs, CatCList *procs, const char *family,
					const char *opclass, Oid opcintype)
{
	bool		result = true;
	bool		own = false;
	int			pairs = 0;
	List	   *types = NIL;
	ListCell   *lc;

	foreach(lc, identify_opfamily_groups(oprs, procs))
	{
		OpFamilyOpFuncGroup *g = (OpFamilyOpFuncGroup *) lfirst(lc);

		/*
		 * An in_range function may take an offset of a type that the family
		 * does not order (interval for datetime_ops): not a pair of its.
		 */
		if (g->operatorset == 0 && g->functionset == (1 << BTINRANGE_PROC))
			continue;

		pairs++;
		types = list_append_unique_oid(types, g->lefttype);
		types = list_append_unique_oid(types, g->righttype);
		if (g->lefttype == opcintype && g->righttype == opcintype)
			own = true;

		if (g->operatorset != ART_ALL_STRATEGIES)
		{
			ART_COMPLAIN("operator family \"%s\" of access method %s is missing operator(s) for types %s and %s",
						 family, "art", format_type_be(g->lefttype),
						 format_type_be(g->righttype));
			result = false;
		}
		/* the other support functions are optional */
		if ((g->functionset & (1 << BTORDER_PROC)) == 0)
		{
			ART_COMPLAIN("operator family \"%s\" of access method %s is missing support function for types %s and %s",
						 family, "art", format_type_be(g->lefttype),
						 format_type_be(g->righttype));
			result = false;
		}
	}

	if (!own)
	{
		ART_COMPLAIN("operator class \"%s\" of access method %s is missing operator(s)",
					 opclass, "art");
		result = false;
	}

	/* not fatal, but the planner derives less from equivalence classes */
	if (pairs != list_length(types) * list_length(types))
	{
		ART_COMPLAIN("operator family \"%s\" of access method %s is missing cross-type operator(s)",
					 family, "art");
		result = false;
	}
	return result;
}

bool
artvalidate(Oid opclassoid)
{
	HeapTuple	classtup = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclassoid));
	HeapTuple	familytup;
	Form_pg_opclass class;
	const char *family;
	CatCList   *oprs,
			   *procs;
	bool		result;

	if (!HeapTupleIsValid(classtup))
		elog(ERROR, "cache lookup failed for operator class %u", opclassoid);
	class = (Form_pg_opclass) GETSTRUCT(classtup);
	familytup = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(class->opcfamily));
	if (!HeapTupleIsValid(familytup))
		elog(ERROR, "cache lookup failed for operator family %u",
			 class->opcfamily);
	family = NameStr(((Form_pg_opfamily) GETSTRUCT(familytup))->opfname);
	oprs = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(class->opcfamily));
	procs = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(class->opcfamily));

	result = art_validate_functions(procs, family);
	if (!art_validate_operators(oprs, family))
		result = false;
	if (!art_validate_groups(oprs, procs, family, NameStr(class->opcname),
							 class->opcintype))
		result = false;

	ReleaseCatCacheList(procs);
	ReleaseCatCacheList(oprs);
	ReleaseSysCache(familytup);
	ReleaseSysCache(classtup);
	return result;
}

bool		art_soft_members = false;

/*
 * amadjustmembers: what each new member of a family depends on.  Members of
 * one type belong hard to the operator class of that type, if there is one.
 * Cross-type members and the optional support functions are loose in the
 * family.
 */
void
artadjustmembers(Oid opfamilyoid, Oid opclassoid,
				 List *operators, List *functions)
{
	Oid			amoid = InvalidOid;
	Oid			type = InvalidOid;	/* that opclassoid is for */
	ListCell   *lc;

	if (OidIsValid(opclassoid))
	{
		/* CREATE OPERATOR CLASS: its row is not visible yet */
		CommandCounterIncrement();
		type = get_opclass_input_type(opclassoid);
	}

	foreach(lc, list_concat_copy(operators, functions))
	{
		OpFamilyMember *m = (OpFamilyMember *) lfirst(lc);
		bool		loose = m->lefttype != m->righttype ||
			(m->is_func && m->number != BTORDER_PROC);

		if (!loose && m->lefttype != type)
		{
			if (!OidIsValid(amoid))
			{
				HeapTuple	tup = SearchSysCache1(OPFAMILYOID,
												  ObjectIdGetDatum(opfamilyoid));

				if (!HeapTupleIsValid(tup))
					elog(ERROR, "cache lookup failed for operator family %u",
						 opfamilyoid);
				amoid = ((Form_pg_opfamily) GETSTRUCT(tup))->opfmethod;
				ReleaseSysCache(tup);
			}
			/* also remembers that there is none */
			type = m->lefttype;
			opclassoid = opclass_for_family_datatype(amoid, opfamilyoid, type);
		}

		m->ref_is_hard = !loose && OidIsValid(opclassoid) && !art_soft_members;
		m->ref_is_family = !m->ref_is_hard;
		m->refobjid = m->ref_is_hard ? opclassoid : opfamilyoid;
	}
}

/* ---- the class of a column, and what btree's would be ---- */

bool
art_same_members(Oid ours, Oid theirs, Oid type)
{
	if (get_opfamily_proc(ours, type, type, BTORDER_PROC) !=
		get_opfamily_proc(theirs, type, type, BTORDER_PROC))
		return false;
	for (int s = 1; s <= BTMaxStrategyNumber; s++)
	{
		if (get_opfamily_member(ours, type, type, s) !=
			get_opfamily_member(theirs, type, type, s))
			return false;
	}
	return true;
}

/*
 * PostgreSQL's own types have the classes that they have.
 */
Oid
art_other_default(Oid family, Oid input, Oid type)
{
	Oid			default_class;
	Oid			theirs;

	if (type < FirstUnpinnedObjectId)
		return InvalidOid;
	type = getBaseType(type);
	if (type < FirstUnpinnedObjectId || type == input)
		return InvalidOid;
	default_class = GetDefaultOpClass(type, BTREE_AM_OID);
	if (!OidIsValid(default_class))
		return InvalidOid;
	theirs = get_opclass_input_type(default_class);
	if (theirs == input &&
		art_same_members(family, get_opclass_family(default_class), input))
		return InvalidOid;
	return default_class;
}

List *
art_opclass_name(Oid opclass)
{
	HeapTuple	tup = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;
	List	   *name;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	form = (Form_pg_opclass) GETSTRUCT(tup);
	name = list_make2(makeString(get_namespace_name(form->opcnamespace)), makeString(pstrdup(NameStr(form->opcname))));
	ReleaseSysCache(tup);
	return name;
}

/* The same as SQL has it. */
static const char *
class_sql_name(Oid opclass)
{
	List	   *name = art_opclass_name(opclass);

	return quote_qualified_identifier(strVal(linitial(name)), strVal(lsecond(name)));
}

void
art_refuse_default(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid			type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
		Oid			wanted = art_other_default(index->rd_opfamily[i], index->rd_opcintype[i], type);
		Oid			ours = OidIsValid(wanted) ? GetDefaultOpClass(type, index->rd_rel->relam) : InvalidOid;

		if (OidIsValid(ours) && get_opclass_family(ours) == index->rd_opfamily[i] &&
			get_opclass_input_type(ours) == index->rd_opcintype[i])
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("data type %s has no default operator class for access method \"%s\" that is btree's",
							format_type_be(type), "art"),
					 errdetail("The one of type %s compares otherwise.", format_type_be(index->rd_opcintype[i])),
					 errhint("A superuser makes the class by \"SELECT artidx_mirror_opclass(%s)\".",
							 quote_literal_cstr(class_sql_name(wanted)))));
	}
}

bool
art_warn_of_classes(Relation index)
{
	bool		found = false;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
		Oid			wanted = art_other_default(index->rd_opfamily[i], index->rd_opcintype[i], att->atttypid);

		if (!OidIsValid(wanted))
			continue;
		found = true;
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("art index \"%s\" compares its column \"%s\" of type %s as %s, where btree by default takes operator class %s",
						RelationGetRelationName(index), NameStr(att->attname), format_type_be(att->atttypid),
						format_type_be(index->rd_opcintype[i]), class_sql_name(wanted)),
				 errdetail("artidx before 0.2.0 did so where CREATE INDEX named no operator class."),
				 errhint("If you did not name this one, DROP the index and CREATE it again, since REINDEX keeps the class. If you did, index the expression CAST(%s AS %s) in its place.",
						 quote_identifier(NameStr(att->attname)), format_type_be(index->rd_opcintype[i]))));
	}
	return found;
}
