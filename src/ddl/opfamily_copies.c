/*
 * opfamily_copies.c
 *	  Keeps art's copies of btree's operator families up to date.
 *
 * The planner makes full use of an art index only if its operator families
 * have every member of btree's (planner_hooks.c). So when CREATE OPERATOR CLASS
 * or ALTER OPERATOR FAMILY changes a btree family, this file changes the art
 * families that mirrored it until then.  A member that it adds is dropped
 * silently with its operator or function, so their owner can always drop
 * those.  DROP needs no help.  A mirror depends on what it mirrors
 * (mirror_opclasses.c), and members that btree no longer has do no harm.  pg_upgrade
 * restores every member as it was, so it is left alone.
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "area/area.h"
#include "ddl/ddl.h"

struct ArtFamilyChange
{
	Oid			family;			/* btree's */
	List	   *members;		/* as they were */
	List	   *mirrors;		/* families of art that had them all */
};

List *
art_family_members(Oid family)
{
	List	   *members = NIL;
	CatCList   *list;

	list = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_amop form = (Form_pg_amop) GETSTRUCT(&list->members[i]->tuple);
		ArtMember	   *m;

		if (form->amoppurpose != AMOP_SEARCH)
			continue;
		m = palloc0(sizeof(ArtMember));
		m->number = form->amopstrategy;
		m->left = form->amoplefttype;
		m->right = form->amoprighttype;
		m->object = form->amopopr;
		members = lappend(members, m);
	}
	ReleaseSysCacheList(list);

	list = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(family));
	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_amproc form = (Form_pg_amproc) GETSTRUCT(&list->members[i]->tuple);
		ArtMember	   *m = palloc0(sizeof(ArtMember));

		m->isfunc = true;
		m->number = form->amprocnum;
		m->left = form->amproclefttype;
		m->right = form->amprocrighttype;
		m->object = form->amproc;
		members = lappend(members, m);
	}
	ReleaseSysCacheList(list);
	return members;
}

Oid
art_member_of(Oid family, const ArtMember *m)
{
	if (m->isfunc)
		return get_opfamily_proc(family, m->left, m->right, m->number);
	return get_opfamily_member(family, m->left, m->right, m->number);
}

/* Is this one, with the same number, types and object, in the list? */
static bool
is_member(List *members, const ArtMember *m)
{
	ListCell   *lc;

	foreach(lc, members)
	{
		ArtMember	   *o = (ArtMember *) lfirst(lc);

		if (o->isfunc == m->isfunc && o->number == m->number &&
			o->left == m->left && o->right == m->right && o->object == m->object)
			return true;
	}
	return false;
}

/* Has the art family all that the btree one has, whatever it has besides? */
static bool
mirrors(Oid ours, List *theirs)
{
	ListCell   *lc;

	foreach(lc, theirs)
	{
		ArtMember	   *m = (ArtMember *) lfirst(lc);

		if (!m->isfunc && art_member_of(ours, m) != m->object)
			return false;
	}
	return theirs != NIL;
}

/* The art families of its name that have. */
static List *
mirrors_of(Oid family, List *members, Oid amoid)
{
	HeapTuple	tup = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(family));
	List	   *found = NIL;
	CatCList   *list;

	if (!HeapTupleIsValid(tup))
		return NIL;
	list = SearchSysCacheList2(OPFAMILYAMNAMENSP, ObjectIdGetDatum(amoid),
							   NameGetDatum(&((Form_pg_opfamily) GETSTRUCT(tup))->opfname));
	for (int i = 0; i < list->n_members; i++)
	{
		Oid			ours = ((Form_pg_opfamily) GETSTRUCT(&list->members[i]->tuple))->oid;

		if (mirrors(ours, members))
			found = lappend_oid(found, ours);
	}
	ReleaseSysCacheList(list);
	ReleaseSysCache(tup);
	return found;
}

ArtFamilyChange *
art_family_before(Node *stmt)
{
	ArtFamilyChange *change;
	List	   *name;
	List	   *members;
	List	   *found;
	char	   *amname;
	Oid			amoid;
	Oid			family;

	if (IsA(stmt, CreateOpClassStmt))
	{
		CreateOpClassStmt *s = (CreateOpClassStmt *) stmt;

		amname = s->amname;
		name = s->opfamilyname != NIL ? s->opfamilyname : s->opclassname;
	}
	else if (IsA(stmt, AlterOpFamilyStmt))
	{
		amname = ((AlterOpFamilyStmt *) stmt)->amname;
		name = ((AlterOpFamilyStmt *) stmt)->opfamilyname;
	}
	else
		return NULL;
	/* pg_upgrade's script has each member itself; of others the command will say so */
	if (IsBinaryUpgrade || strcmp(amname, "btree") != 0 || !superuser())
		return NULL;
	amoid = get_am_oid(ART_AM_NAME, true);
	if (!OidIsValid(amoid))
		return NULL;
	family = get_opfamily_oid(BTREE_AM_OID, name, true);
	if (!OidIsValid(family))
		return NULL;
	members = art_family_members(family);
	found = mirrors_of(family, members, amoid);
	if (found == NIL)
		return NULL;
	change = palloc0(sizeof(ArtFamilyChange));
	change->family = family;
	change->members = members;
	change->mirrors = found;
	return change;
}

/* ---- afterwards ---- */

CreateOpClassItem *
art_member_item(const ArtMember *m, bool drop)
{
	CreateOpClassItem *item = makeNode(CreateOpClassItem);
	HeapTuple	tup;

	item->itemtype = m->isfunc ? OPCLASS_ITEM_FUNCTION : OPCLASS_ITEM_OPERATOR;
	item->number = m->number;
	if (drop || m->isfunc)
		item->class_args = list_make2(makeTypeNameFromOid(m->left, -1),
									  makeTypeNameFromOid(m->right, -1));
	if (drop)
		return item;

	item->name = makeNode(ObjectWithArgs);
	if (m->isfunc)
	{
		Form_pg_proc form;

		tup = SearchSysCache1(PROCOID, ObjectIdGetDatum(m->object));
		if (!HeapTupleIsValid(tup))
			elog(ERROR, "cache lookup failed for function %u", m->object);
		form = (Form_pg_proc) GETSTRUCT(tup);
		item->name->objname = list_make2(makeString(get_namespace_name(form->pronamespace)),
										 makeString(pstrdup(NameStr(form->proname))));
		for (int i = 0; i < form->pronargs; i++)
			item->name->objargs = lappend(item->name->objargs,
										  makeTypeNameFromOid(form->proargtypes.values[i], -1));
	}
	else
	{
		Form_pg_operator form;

		tup = SearchSysCache1(OPEROID, ObjectIdGetDatum(m->object));
		if (!HeapTupleIsValid(tup))
			elog(ERROR, "cache lookup failed for operator %u", m->object);
		form = (Form_pg_operator) GETSTRUCT(tup);
		item->name->objname = list_make2(makeString(get_namespace_name(form->oprnamespace)),
										 makeString(pstrdup(NameStr(form->oprname))));
		item->name->objargs = list_make2(makeTypeNameFromOid(form->oprleft, -1),
										 makeTypeNameFromOid(form->oprright, -1));
	}
	ReleaseSysCache(tup);
	return item;
}

void
art_alter_family(Oid family, List *items, bool drop)
{
	AlterOpFamilyStmt *stmt;
	HeapTuple	tup;
	Form_pg_opfamily form;

	if (items == NIL)
		return;
	tup = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(family));
	if (!HeapTupleIsValid(tup))
		return;					/* went with something that was dropped */
	form = (Form_pg_opfamily) GETSTRUCT(tup);
	stmt = makeNode(AlterOpFamilyStmt);
	stmt->opfamilyname = list_make2(makeString(get_namespace_name(form->opfnamespace)),
									makeString(pstrdup(NameStr(form->opfname))));
	stmt->amname = pstrdup(ART_AM_NAME);
	stmt->isDrop = drop;
	stmt->items = items;
	ReleaseSysCache(tup);
	(void) AlterOpFamily(stmt);
	CommandCounterIncrement();
}

void
art_family_after(ArtFamilyChange *change)
{
	List	   *now;
	ListCell   *lc,
			   *g;

	CommandCounterIncrement();
	now = art_family_members(change->family);
	EventTriggerInhibitCommandCollection();
	PG_TRY();
	{
		art_soft_members = true;
		foreach(g, change->mirrors)
		{
			Oid			mirror = lfirst_oid(g);
			List	   *gone = NIL;
			List	   *new = NIL;

			foreach(lc, change->members)
			{
				ArtMember	   *m = (ArtMember *) lfirst(lc);

				if (!is_member(now, m) && art_member_of(mirror, m) == m->object)
					gone = lappend(gone, art_member_item(m, true));
			}
			art_alter_family(mirror, gone, true);
			foreach(lc, now)
			{
				ArtMember	   *m = (ArtMember *) lfirst(lc);

				if (!is_member(change->members, m) && !OidIsValid(art_member_of(mirror, m)))
					new = lappend(new, art_member_item(m, false));
			}
			art_alter_family(mirror, new, false);
		}
	}
	PG_FINALLY();
	{
		art_soft_members = false;
		EventTriggerUndoInhibitCommandCollection();
	}
	PG_END_TRY();
}
