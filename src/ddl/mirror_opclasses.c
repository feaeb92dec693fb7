/*
 * mirror_opclasses.c
 *	  Operator classes of btree and art that are one another's; mirrors, which are
 *	  made from btree's for art.
 *
 * The new class has the members of the old one, by nbtree's own numbers.  It
 * belongs to a family of the old family's name, which gets all members of the
 * old one, for the planner wants them (planner_hooks.c).  Whether keys are encoded
 * or compared is decided when an index is created.
 *
 * artidx_mirror_opclass(opclass) makes one for a superuser, in the first schema of his
 * search_path.  CREATE INDEX needs one for whoever gives it (default_opclass.c).  Only a
 * superuser makes operator classes, so that one is made as the bootstrap superuser, as
 * core makes array types for everybody.  It says nothing that the class of btree does not,
 * and no code runs for it.  It is in that class's schema, where a search_path finds both or
 * none.
 *
 * The copy is to be in nobody's way.  It goes with the class and the family that it
 * was made from, and with the access method.  So what is somebody's own can be dropped as
 * if there was no copy, unless an index of ours needs it.  A dump has it as any class, and
 * one that is restored goes with its original, too.
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_func.h"
#include "parser/parse_oper.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "area/area.h"
#include "ddl/ddl.h"
#include "key/key.h"
#include "plan/plan.h"

PG_FUNCTION_INFO_V1(artidx_mirror_opclass);
PGDLLEXPORT Datum artidx_mirror_opclass(PG_FUNCTION_ARGS);

/* ---- of the same name ---- */

Oid
art_same_opclass(Oid opclass, Oid amoid)
{
	Oid			twin = art_opclass_twin(opclass, amoid);

	return OidIsValid(twin) &&
		art_same_members(get_opclass_family(twin), get_opclass_family(opclass),
						 get_opclass_input_type(opclass)) ? twin : InvalidOid;
}

/* A name with its schema, as commands want it. */
static List *
qualified(Oid schema, const char *name)
{
	char	   *in = get_namespace_name(schema);

	if (in == NULL)
		elog(ERROR, "cache lookup failed for namespace %u", schema);
	return list_make2(makeString(in), makeString(pstrdup(name)));
}

/* ---- an original ---- */

/* An operator class of btree, as its mirror is to be made. */
typedef struct Original
{
	Oid			oid;
	Oid			from;			/* the family */
	Oid			type;
	bool		isdefault;
	List	   *name;			/* the mirror's, and that of its family, with their schema */
	List	   *family;
} Original;

/* The schema of the access method's own classes: of pg_catalog nothing is dumped. */
static Oid
schema_of(Oid am)
{
	HeapTuple	tup = SearchSysCache1(AMOID, ObjectIdGetDatum(am));
	Oid			schema;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for access method %u", am);
	schema = get_func_namespace(((Form_pg_am) GETSTRUCT(tup))->amhandler);
	ReleaseSysCache(tup);
	return schema;
}

/* Reads the operator class, whose mirror is to be in the schema, or InvalidOid: in its own. */
static void
read_original(Oid opclass, Oid schema, Oid am, Original *o)
{
	HeapTuple	tup = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	form = (Form_pg_opclass) GETSTRUCT(tup);
	if (!OidIsValid(schema))
		schema = form->opcnamespace;
	if (IsCatalogNamespace(schema))
		schema = schema_of(am);
	o->oid = opclass;
	o->from = form->opcfamily;
	o->type = form->opcintype;
	o->isdefault = form->opcdefault;
	o->name = qualified(schema, NameStr(form->opcname));
	ReleaseSysCache(tup);

	tup = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(o->from));
	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator family %u", o->from);
	o->family = qualified(schema, NameStr(((Form_pg_opfamily) GETSTRUCT(tup))->opfname));
	ReleaseSysCache(tup);
}

/*
 * May the mirror be made?  Its name is to be free, and its family, where there is one, has
 * nothing else in the place of a member.
 */
static bool
may_mirror(const Original *o, Oid am, int elevel)
{
	Oid			family = get_opfamily_oid(am, o->family, true);
	ListCell   *lc;

	if (OidIsValid(get_opclass_oid(am, o->name, true)))
	{
		ereport(elevel,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("operator class \"%s\" for access method \"%s\" already exists",
						NameListToString(o->name), ART_AM_NAME),
				 OidIsValid(art_same_opclass(o->oid, am)) ? 0 :
				 errdetail("It is not the one that btree has."),
				 errhint("Set \"search_path\" to another schema, in which artidx_mirror_opclass makes the operator class.")));
		return false;
	}
	if (!OidIsValid(family))
		return true;
	foreach(lc, art_family_members(family))
	{
		ArtMember  *m = (ArtMember *) lfirst(lc);

		if (m->left == o->type && m->right == o->type &&
			(!m->isfunc || m->number == BTORDER_PROC) &&
			art_member_of(o->from, m) != m->object)
		{
			ereport(elevel,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("operator family %s of access method \"%s\" has other operators for type %s",
							NameListToString(o->family), ART_AM_NAME, format_type_be(o->type)),
					 errhint("Set \"search_path\" to another schema, in which artidx_mirror_opclass makes the operator class.")));
			return false;
		}
	}
	return true;
}

/* ---- a mirror ---- */

/* An object that is dropped takes its mirror along. */
static void
goes_with(Oid class, Oid mirror, Oid original_class, Oid original)
{
	ObjectAddress myself,
				referenced;

	ObjectAddressSet(myself, class, mirror);
	ObjectAddressSet(referenced, original_class, original);
	recordDependencyOn(&myself, &referenced, DEPENDENCY_AUTO);
}

/* A family of art gets what it lacks of a family of btree. */
static void
add_members(Oid to, Oid from)
{
	List	   *items = NIL;
	ListCell   *lc;

	foreach(lc, art_family_members(from))
	{
		ArtMember  *m = (ArtMember *) lfirst(lc);

		if (!OidIsValid(art_member_of(to, m)))
			items = lappend(items, art_member_item(m, false));
	}
	art_alter_family(to, items, false);
}

/*
 * The mirror depends on its original, and its family on that one's; which has been made
 * for it, or by a statement of its own.
 */
static void
go_with_original(Oid mirror, const Original *o, Oid am, bool newfamily)
{
	Oid			family = get_opclass_family(mirror);

	goes_with(OperatorClassRelationId, mirror, OperatorClassRelationId, o->oid);
	if (newfamily)
	{
		goes_with(OperatorFamilyRelationId, family, OperatorFamilyRelationId, o->from);
		goes_with(OperatorFamilyRelationId, family, AccessMethodRelationId, am);
	}
}

/*
 * Makes it, as the current user, who is a superuser.
 */
static Oid
make_mirror(const Original *o, Oid am)
{
	Oid			to = get_opfamily_oid(am, o->family, true);
	bool		newfamily = !OidIsValid(to);
	CreateOpClassStmt *stmt = makeNode(CreateOpClassStmt);
	List	   *loose = NIL;
	bool		owned;
	Oid			mirror;
	ListCell   *lc;

	if (newfamily)
	{
		CreateOpFamilyStmt *family = makeNode(CreateOpFamilyStmt);

		family->opfamilyname = o->family;
		family->amname = pstrdup(ART_AM_NAME);
		to = DefineOpFamily(family).objectId;
		CommandCounterIncrement();
	}

	/* two classes of one type share its members; else those that are there are copies */
	owned = OidIsValid(opclass_for_family_datatype(am, to, o->type));
	foreach(lc, art_family_members(o->from))
	{
		ArtMember  *m = (ArtMember *) lfirst(lc);
		bool		there = OidIsValid(art_member_of(to, m));

		if (m->left != o->type || m->right != o->type || (there && owned))
			continue;
		if (there)
			loose = lappend(loose, art_member_item(m, true));
		stmt->items = lappend(stmt->items, art_member_item(m, false));
	}
	art_alter_family(to, loose, true);

	stmt->opclassname = o->name;
	stmt->opfamilyname = o->family;
	stmt->amname = pstrdup(ART_AM_NAME);
	stmt->datatype = makeTypeNameFromOid(o->type, -1);
	/* two of one type cannot both be its default */
	stmt->isDefault = o->isdefault;
	if (o->isdefault)
	{
		Oid			other = GetDefaultOpClass(o->type, am);

		stmt->isDefault = !OidIsValid(other) || get_opclass_input_type(other) != o->type;
	}
	(void) DefineOpClass(stmt);
	CommandCounterIncrement();
	add_members(to, o->from);

	mirror = get_opclass_oid(am, o->name, false);
	if (!creating_extension)
		go_with_original(mirror, o, am, newfamily);
	CommandCounterIncrement();
	return mirror;
}

bool
art_could_mirror(Oid opclass, Oid amoid)
{
	Original	orig;

	if (OidIsValid(art_same_opclass(opclass, amoid)))
		return true;
	if (!SearchSysCacheExists1(CLAOID, ObjectIdGetDatum(opclass)))
		return false;
	read_original(opclass, InvalidOid, amoid, &orig);
	return may_mirror(&orig, amoid, DEBUG1);
}

Oid
art_mirror(Oid opclass, Oid amoid, bool missing_ok)
{
	Oid			mirror = art_same_opclass(opclass, amoid);
	bool		was_creating = creating_extension;
	Original	orig;
	Oid			userid;
	int			context;

	if (OidIsValid(mirror))
		return mirror;
	/* nobody else makes it, or drops its original; or he just has */
	LockDatabaseObject(OperatorClassRelationId, opclass, 0, ShareUpdateExclusiveLock);
	if (!SearchSysCacheExists1(CLAOID, ObjectIdGetDatum(opclass)))
		return InvalidOid;
	mirror = art_same_opclass(opclass, amoid);
	if (OidIsValid(mirror))
		return mirror;
	read_original(opclass, InvalidOid, amoid, &orig);
	if (!may_mirror(&orig, amoid, missing_ok ? DEBUG1 : ERROR))
		return InvalidOid;

	/* it belongs to no extension whose script makes an index, and event triggers know of the index */
	GetUserIdAndSecContext(&userid, &context);
	EventTriggerInhibitCommandCollection();
	PG_TRY();
	{
		creating_extension = false;
		SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
							   context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
		mirror = make_mirror(&orig, amoid);
	}
	PG_FINALLY();
	{
		SetUserIdAndSecContext(userid, context);
		creating_extension = was_creating;
		EventTriggerUndoInhibitCommandCollection();
	}
	PG_END_TRY();
	ereport(DEBUG1,
			(errmsg_internal("operator class \"%s\" for access method \"%s\" is made from btree's",
							 NameListToString(orig.name), ART_AM_NAME)));
	return mirror;
}

/*
 * The oid of the new operator class.
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
	List	   *path = fetch_search_path(false);
	Original	orig;

	if (path == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("no schema has been selected to create operator class \"%s\" in",
						given),
				 errhint("Set \"search_path\".")));
	read_original(opclass, linitial_oid(path), am, &orig);
	(void) may_mirror(&orig, am, ERROR);
	PG_RETURN_OID(make_mirror(&orig, am));
}

/* ---- one that a statement makes ---- */

/*
 * The object and the types of an item of CREATE OPERATOR CLASS, if they are written out, as a
 * dump has them.
 */
static bool
read_item(const CreateOpClassItem *item, ArtMember *m)
{
	List	   *types = item->itemtype == OPCLASS_ITEM_FUNCTION ? item->class_args :
		item->itemtype == OPCLASS_ITEM_OPERATOR && item->name->objargs != NIL ? item->name->objargs : NIL;

	if (list_length(types) != 2)
		return false;
	m->isfunc = item->itemtype == OPCLASS_ITEM_FUNCTION;
	m->number = item->number;
	m->left = LookupTypeNameOid(NULL, linitial_node(TypeName, types), true);
	m->right = LookupTypeNameOid(NULL, lsecond_node(TypeName, types), true);
	m->object = m->isfunc ? LookupFuncWithArgs(OBJECT_FUNCTION, item->name, true) :
		LookupOperWithArgs(item->name, true);
	return OidIsValid(m->left) && OidIsValid(m->right) && OidIsValid(m->object);
}

/* The access method, if the statement is of art and will not be refused; else InvalidOid. */
static Oid
class_of_art(const CreateOpClassStmt *stmt)
{
	return strcmp(stmt->amname, ART_AM_NAME) == 0 && superuser() ?
		get_am_oid(ART_AM_NAME, true) : InvalidOid;
}

void
art_class_before(CreateOpClassStmt *stmt)
{
	Oid			am = class_of_art(stmt);
	Oid			family = !OidIsValid(am) ? InvalidOid :
		get_opfamily_oid(am, stmt->opfamilyname != NIL ? stmt->opfamilyname : stmt->opclassname, true);
	Oid			type = OidIsValid(family) ? LookupTypeNameOid(NULL, stmt->datatype, true) : InvalidOid;
	List	   *loose = NIL;
	ListCell   *lc;

	if (!OidIsValid(type) || OidIsValid(opclass_for_family_datatype(am, family, type)))
		return;
	foreach(lc, stmt->items)
	{
		ArtMember	m;

		if (read_item(lfirst_node(CreateOpClassItem, lc), &m) &&
			m.left == type && m.right == type && art_member_of(family, &m) == m.object)
			loose = lappend(loose, art_member_item(&m, true));
	}
	art_alter_family(family, loose, true);
}

void
art_class_after(CreateOpClassStmt *stmt)
{
	Oid			am = class_of_art(stmt);
	Oid			mirror;
	Oid			original;
	Oid			family;
	Original	orig;

	if (!OidIsValid(am) || creating_extension)
		return;
	CommandCounterIncrement();
	mirror = get_opclass_oid(am, stmt->opclassname, true);
	original = OidIsValid(mirror) ? art_same_opclass(mirror, BTREE_AM_OID) : InvalidOid;
	if (!OidIsValid(original) || IsPinnedObject(OperatorClassRelationId, original))
		return;
	read_original(original, InvalidOid, am, &orig);
	family = get_opclass_family(mirror);
	go_with_original(mirror, &orig, am,
					 !OidIsValid(getExtensionOfObject(OperatorFamilyRelationId, family)));
	/* pg_upgrade's script has each member itself */
	if (!IsBinaryUpgrade)
		add_members(family, orig.from);
}

bool
art_drops_nothing(Node *stmt)
{
	DropStmt   *drop = (DropStmt *) stmt;
	ListCell   *lc;

	if (!IsA(stmt, DropStmt) || !drop->missing_ok ||
		(drop->removeType != OBJECT_OPCLASS && drop->removeType != OBJECT_OPFAMILY))
		return false;
	foreach(lc, drop->objects)
	{
		if (strcmp(strVal(linitial(lfirst_node(List, lc))), ART_AM_NAME) != 0 ||
			OidIsValid(get_am_oid(ART_AM_NAME, true)))
			return false;
	}
	ereport(NOTICE,
			(errmsg("access method \"%s\" does not exist, skipping", ART_AM_NAME)));
	return true;
}
