/*
 * planner_hooks.c
 *	  What the planner sees of art indexes.
 *
 * Core knows nothing of a structure in memory.  It would plan with an index
 * that is not there yet, and take its size from an empty file.  Its operator
 * families would be strangers to it.  Two hooks put that right.
 *
 * src/plan/README.md: The planner
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
#include "nodes/primnodes.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/catcache.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "area/area.h"
#include "live/live.h"
#include "plan/plan.h"

static ArtRelInfoHook prev_rel_info_hook = NULL;
static planner_hook_type prev_planner_hook = NULL;

/* art_plan_only() */
static Oid	only_heap = InvalidOid;
static Oid	only_index = InvalidOid;

/*
 * Changes to pg_amop that this process heard of.  Anybody may add a member to a
 * family at any time.  So what was found about the families of an index holds
 * until any member of any family changes.
 */
static uint64 members_changes = 1;

/* syscache callback of pg_amop */
static void
members_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	members_changes++;
}

/*
 * Does art family "ours" have every operator for searching of btree family
 * "theirs", under the same strategy and types?  A wrong yes would make the
 * executor look for an operator that our family lacks.
 */
static bool
family_is_mirror(Oid ours, Oid theirs)
{
	CatCList   *members;
	bool		mirror = true;
	int			i;

	members = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(theirs));
	for (i = 0; i < members->n_members && mirror; i++)
	{
		Form_pg_amop amop = (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple);

		if (amop->amoppurpose != AMOP_SEARCH)
			continue;
		mirror = get_opfamily_member(ours, amop->amoplefttype,
									 amop->amoprighttype,
									 amop->amopstrategy) == amop->amopopr;
	}
	ReleaseSysCacheList(members);
	return mirror;
}

/*
 * Are all the index's families such mirrors of those that core has found for
 * sorting?  The answer is kept with the relation's cached facts, as of the last
 * change of members.  One that comes while the answer is made outdates it.
 */
static bool
families_are_mirrors(Relation index, IndexOptInfo *info)
{
	static bool registered = false;
	ArtRelCache *rc = art_relcache(index);
	bool		mirror = true;
	uint64		as_of = members_changes;

	if (likely(rc->mirror_as_of == as_of))
		return rc->mirror;
	if (!registered)
		CacheRegisterSyscacheCallback(AMOPSTRATEGY, members_changed, (Datum) 0);
	registered = true;

	for (int i = 0; i < info->nkeycolumns && mirror; i++)
		mirror = family_is_mirror(info->opfamily[i], info->sortopfamily[i]);

	/* the look-ups may have thrown the facts away */
	rc = art_relcache(index);
	rc->mirror = mirror;
	rc->mirror_as_of = as_of;
	return mirror;
}

/*
 * Let the planner take the index's families for the btree families of the
 * same order (which core has found already, for sorting).  Proofs of
 * uniqueness, boolean columns, LIKE on text_pattern_ops all ask for those by
 * OID.  The executor resolves the operators in the index's own families
 * again, hence only where those have them all; all columns or none.
 */
static void
adopt_btree_families(Relation index, IndexOptInfo *info)
{
	if (info->sortopfamily == NULL || !families_are_mirrors(index, info))
		return;
	info->opfamily = info->sortopfamily;

	/*
	 * With them it is for the planner's purposes one of btree.  It asks for
	 * that word before it looks at an end of the index, to estimate values
	 * beyond the histogram.  It asks before it matches a comparison of rows,
	 * too.  Such a condition is like any other to us (row_keys.c), but before 18
	 * not to the executor (row_compare.c).
	 */
	if (info->canreturn[0])
		info->relam = BTREE_AM_OID;
}

/*
 * The size of a structure.  A whole index has as many tuples as its table, which core
 * estimated.  For a partial one it asked the size of a file that holds nothing.
 */
static void
set_size(IndexOptInfo *info, BlockNumber pages, double entries, int height)
{
	info->pages = pages;
	info->tree_height = height;
	if (info->indpred != NIL)
		info->tuples = Min(entries, info->rel->tuples);
}

/*
 * On a standby: the same, of a structure that a follower keeps.  Index-only scans are
 * not offered.  The visibility map may have been replayed when the entries of
 * rows that it leaves out have not been swept yet.  Nor are bitmaps, where a bitmap heap scan
 * trusts it, too.
 *
 * Epoch: enters and leaves (art_planner_stats).
 */
static bool
prepare_on_standby(Relation index, IndexOptInfo *info)
{
	BlockNumber pages;
	double		entries;
	int			height;

	if (!art_planner_stats(index, &pages, &entries, &height))
	{
		art_follow_ask();
		return false;
	}
	for (int i = 0; i < info->ncolumns; i++)
		info->canreturn[i] = false;
	if (art_bitmaps_skip_fetch())
		info->amhasgetbitmap = false;
	if (art_costs_as_btree())
		art_btree_size(index, info, entries, &pages, &height);
	adopt_btree_families(index, info);
	set_size(info, pages, entries, height);
	return true;
}

/*
 * Does a foreign key look for the row that is referenced (ri_triggers.c)?  Such a
 * query is "SELECT 1 FROM ONLY t x WHERE key = $1 FOR KEY SHARE OF x".  Its plan is
 * kept, and run once for each row that references.
 */
static bool
is_key_check(const Query *parse)
{
	return parse->commandType == CMD_SELECT && list_length(parse->rtable) == 1 &&
		list_length(parse->rowMarks) == 1 && ExecCleanTargetListLength(parse->targetList) == 1 &&
		linitial_node(RowMarkClause, parse->rowMarks)->strength == LCS_FORKEYSHARE &&
		IsA(linitial_node(TargetEntry, parse->targetList)->expr, Const);
}

/*
 * Fill in what core could not know of one art index; false to hide it.  The
 * locks that get_relation_info() took on it are held to the end of the
 * transaction.
 *
 * Epoch: enters and leaves (art_planner_stats).
 * Locks: takes none on the index, which get_relation_info() has locked.
 */
static bool
prepare_index(const Query *parse, IndexOptInfo *info)
{
	Relation	index;
	BlockNumber pages;
	double		entries;
	int			height;
	bool		ready;
	bool		as_if = false;

	if (!art_preloaded() || ART_OLD_SNAPSHOT_IN_USE())
		return false;

	index = index_open(info->indexoid, NoLock);
	if (RecoveryInProgress())
	{
		ready = prepare_on_standby(index, info);
		index_close(index, NoLock);
		return ready;
	}
	ready = !RELATION_IS_OTHER_TEMP(index) &&
		art_planner_stats(index, &pages, &entries, &height);
	if (!ready && art_ready_for_plan(index, info->unique && is_key_check(parse)))
		ready = art_planner_stats(index, &pages, &entries, &height);
	if (!ready)
	{
		/*
		 * Plan without it now.  When it is ready, its table's plans are
		 * invalidated, this one too.
		 */
		art_request_build(info->indexoid);
		as_if = art_plan_missed(info, index);
	}
	else if (art_costs_as_btree())
		art_btree_size(index, info, entries, &pages, &height);
	if (ready || as_if)
		adopt_btree_families(index, info);
	index_close(index, NoLock);
	if (!ready && !as_if)
		return false;

	if (ready)
		set_size(info, pages, entries, height);
	return true;
}

/*
 * art_rel_info_hook.  An art index is told by the address of its cost
 * function, which takes no look-up; one that another extension only imagines
 * (hypothetical) is left alone.
 */
static void
art_get_relation_info(ART_REL_INFO_PARAMETERS)
{
	ListCell   *lc;

	/* first the others: they see the indexes as the catalogs have them */
	if (prev_rel_info_hook)
		prev_rel_info_hook(ART_REL_INFO_ARGUMENTS);

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, lc);

		if (OidIsValid(only_heap) && info->indexoid != only_index &&
			IndexGetRelation(info->indexoid, true) == only_heap)
		{
			rel->indexlist = foreach_delete_current(rel->indexlist, lc);
			continue;
		}
		if ((void *) info->amcostestimate != (void *) artcostestimate ||
			info->hypothetical)
			continue;
		if (!prepare_index(root->parse, info))
			rel->indexlist = foreach_delete_current(rel->indexlist, lc);
	}
}

void
art_plan_only(Oid heapoid, Oid indexoid)
{
	only_heap = heapoid;
	only_index = indexoid;
}

/*
 * Is one of these indexes a unique one of the access method, with a key column
 * of the family?
 *
 * Locks: takes AccessShareLock on each index and gives it back.
 */
static bool
unique_index_exists(List *indexoids, Oid family, Oid am)
{
	ListCell   *lc;

	foreach(lc, indexoids)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);
		bool		found = false;
		int			i;

		if (index->rd_index->indisunique && index->rd_rel->relam == am)
		{
			for (i = 0; i < index->rd_index->indnkeyatts && !found; i++)
				found = index->rd_opfamily[i] == family;
		}
		index_close(index, AccessShareLock);
		if (found)
			return true;
	}
	return false;
}

Oid
art_opclass_twin(Oid btopclass, Oid artam)
{
	HeapTuple	tup;
	Form_pg_opclass form;
	CatCList   *classes;
	Oid			twin = InvalidOid;
	int			i;

	tup = SearchSysCache1(CLAOID, ObjectIdGetDatum(btopclass));
	if (!HeapTupleIsValid(tup))
		return InvalidOid;
	form = (Form_pg_opclass) GETSTRUCT(tup);

	classes = SearchSysCacheList2(CLAAMNAMENSP, ObjectIdGetDatum(artam),
								  NameGetDatum(&form->opcname));
	for (i = 0; i < classes->n_members && !OidIsValid(twin); i++)
	{
		Form_pg_opclass cand = (Form_pg_opclass) GETSTRUCT(&classes->members[i]->tuple);

		if (cand->opcintype == form->opcintype)
			twin = cand->oid;
	}
	ReleaseSysCacheList(classes);
	ReleaseSysCache(tup);
	return twin;
}

/*
 * ON CONFLICT (column opclass): the parser looks the operator class up for
 * btree, whatever the indexes of the table are.  Where no unique btree index
 * of the table could match it, and a unique art index with the class of that
 * name could, take that.
 */
static void
adopt_arbiter_opclasses(Query *query)
{
	Oid			artam = InvalidOid;
	List	   *indexoids = NIL;
	ListCell   *lc;

	if (query->onConflict == NULL)
		return;

	foreach(lc, query->onConflict->arbiterElems)
	{
		InferenceElem *elem = (InferenceElem *) lfirst(lc);
		Oid			twin;

		if (!IsA(elem, InferenceElem) || !OidIsValid(elem->inferopclass))
			continue;
		if (!OidIsValid(artam))
		{
			RangeTblEntry *rte = rt_fetch(query->resultRelation, query->rtable);
			Relation	rel;

			artam = get_am_oid(ART_AM_NAME, true);
			if (!OidIsValid(artam) || rte->rtekind != RTE_RELATION)
				return;
			rel = RelationIdGetRelation(rte->relid);
			if (!RelationIsValid(rel))
				return;
			indexoids = RelationGetIndexList(rel);
			RelationClose(rel);
		}
		twin = art_opclass_twin(elem->inferopclass, artam);
		if (OidIsValid(twin) &&
			!unique_index_exists(indexoids, get_opclass_family(elem->inferopclass),
							  BTREE_AM_OID) &&
			unique_index_exists(indexoids, get_opclass_family(twin), artam))
			elem->inferopclass = twin;
	}
	list_free(indexoids);
}

/*
 * planner_hook.  An INSERT is the query itself or a WITH item of it; the
 * planner may scribble on its input, and so may we.
 */
static PlannedStmt *
art_planner(Query *parse, ART_PLAN_PARAMETERS)
{
	PlannedStmt *plan;

	adopt_arbiter_opclasses(parse);
	if (parse->hasModifyingCTE)
	{
		ListCell   *lc;

		foreach(lc, parse->cteList)
		{
			CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

			if (IsA(cte->ctequery, Query))
				adopt_arbiter_opclasses((Query *) cte->ctequery);
		}
	}

	plan = art_plan_patiently(prev_planner_hook ? prev_planner_hook : standard_planner,
							  parse, ART_PLAN_ARGUMENTS);
	art_agg_planned(plan);
#ifdef ART_MARKS_ROWS
	art_rowcmp_take_apart(plan);
#endif
	return plan;
}

void
art_planner_install(void)
{
	prev_rel_info_hook = art_rel_info_hook;
	art_rel_info_hook = art_get_relation_info;
	prev_planner_hook = planner_hook;
	planner_hook = art_planner;
}
