/*
 * art_hinttest.c
 *	  Does to the planner's indexes and paths what pg_hint_plan does.
 *
 * With art_hinttest.again it throws the paths of a table away and lets core make
 * them again, as pg_hint_plan does for a scan hint.  With art_hinttest.am it
 * leaves only indexes of that access method, told by IndexOptInfo.relam.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "utils/guc.h"

#include "art_compat.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static bool again = false;
static char *only_am = NULL;

static ArtRelInfoHook prev_rel_info_hook = NULL;
static set_rel_pathlist_hook_type prev_set_rel_pathlist_hook = NULL;

static void
hint_relation_info(ART_REL_INFO_PARAMETERS)
{
	Oid			am;
	ListCell   *lc;

	if (prev_rel_info_hook)
		prev_rel_info_hook(ART_REL_INFO_ARGUMENTS);
	if (only_am[0] == '\0')
		return;
	am = get_am_oid(only_am, false);
	foreach(lc, rel->indexlist)
	{
		if (lfirst_node(IndexOptInfo, lc)->relam != am)
			rel->indexlist = foreach_delete_current(rel->indexlist, lc);
	}
}

static void
hint_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (prev_set_rel_pathlist_hook)
		prev_set_rel_pathlist_hook(root, rel, rti, rte);
	if (!again || rte->rtekind != RTE_RELATION || rte->inh || rte->tablesample)
		return;
	rel->pathlist = NIL;
	rel->partial_pathlist = NIL;
	add_path(rel, create_seqscan_path(root, rel, rel->lateral_relids, 0));
	create_index_paths(root, rel);
	create_tidscan_paths(root, rel);
}

void
_PG_init(void)
{
	DefineCustomBoolVariable("art_hinttest.again",
							 "Makes the paths of every table a second time.",
							 NULL, &again, false, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomStringVariable("art_hinttest.am",
							   "Leaves only indexes of this access method to the planner.",
							   NULL, &only_am, "", PGC_USERSET, 0,
							   NULL, NULL, NULL);

	prev_rel_info_hook = art_rel_info_hook;
	art_rel_info_hook = hint_relation_info;
	prev_set_rel_pathlist_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = hint_pathlist;
}
