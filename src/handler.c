/*
 * handler.c
 *	  The handler function of the access method: what art can do, and where.
 *
 * The relation cache calls the handler for every art index it loads.  The
 * library may not be preloaded then, or the table about to be dropped.  So it
 * allocates one node, fills it, and never raises.  Refusals are the work of a
 * flag here, which makes core refuse, or of art_check_supported() at CREATE
 * INDEX.
 *
 * src/README.md: Overview
 */
#include "postgres.h"

#include "access/amapi.h"
#include "commands/vacuum.h"
#include "fmgr.h"
#if PG_VERSION_NUM >= 180000
#include "access/cmptype.h"
#include "access/stratnum.h"
#include "catalog/pg_am.h"
#include "utils/lsyscache.h"
#endif

#include "am/am.h"
#include "area/area.h"
#include "plan/plan.h"
#include "scan/scan.h"

/*
 * Strategies 1 to 5 and support functions 1 to 6 are nbtree's, in every
 * version.  Core assumes those numbers of an ordered access method, and so
 * does every operator class that mirrors one of nbtree's.
 */
#define ART_NSTRATEGIES		5
#define ART_NSUPPORT		6
#define ART_OPTIONS_PROC	5

PGDLLEXPORT PG_FUNCTION_INFO_V1(arthandler);

#if PG_VERSION_NUM >= 180000

/*
 * Strategy to comparison, for a btree family only.  If our families answered
 * here, the planner would take them into its lists of merge-joinable families.
 * It compares such lists with equal().  A family that lacked one cross-type
 * "=" of the btree family would then cost plans of queries that never touch an
 * art index.
 */
static CompareType
art_translate_strategy(StrategyNumber strategy, Oid opfamily)
{
	if (get_opfamily_method(opfamily) != BTREE_AM_OID)
		return COMPARE_INVALID;

	switch (strategy)
	{
		case BTLessStrategyNumber:
			return COMPARE_LT;
		case BTLessEqualStrategyNumber:
			return COMPARE_LE;
		case BTEqualStrategyNumber:
			return COMPARE_EQ;
		case BTGreaterEqualStrategyNumber:
			return COMPARE_GE;
		case BTGreaterStrategyNumber:
			return COMPARE_GT;
		default:
			return COMPARE_INVALID;
	}
}

/* Comparison to strategy: what makes an art index an ordered one for core. */
static StrategyNumber
art_translate_cmptype(CompareType cmptype, Oid opfamily)
{
	switch (cmptype)
	{
		case COMPARE_LT:
			return BTLessStrategyNumber;
		case COMPARE_LE:
			return BTLessEqualStrategyNumber;
		case COMPARE_EQ:
			return BTEqualStrategyNumber;
		case COMPARE_GE:
			return BTGreaterEqualStrategyNumber;
		case COMPARE_GT:
			return BTGreaterStrategyNumber;
		default:
			return InvalidStrategy;
	}
}

#endif

/*
 * arthandler() -- the IndexAmRoutine of art.
 *
 * False here and not in nbtree: parallel VACUUM of one index.
 */
Datum
arthandler(PG_FUNCTION_ARGS)
{
	static const IndexAmRoutine routine = {
		.type = T_IndexAmRoutine,

		.amstrategies = ART_NSTRATEGIES,
		.amsupport = ART_NSUPPORT,
		.amoptsprocnum = ART_OPTIONS_PROC,
		.amcanorder = true,
		.amcanorderbyop = false,
		.amcanbackward = true,
		.amcanunique = true,
		.amcanmulticol = true,
		.amoptionalkey = true,
		.amsearcharray = true,
		.amsearchnulls = true,
		.amstorage = false,
		.amclusterable = true,
		.ampredlocks = true,
		.amcanparallel = true,
		.amcaninclude = true,
		.amusemaintenanceworkmem = false,
		.amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL,
		.amkeytype = InvalidOid,

		.ambuild = artbuild,
		.ambuildempty = artbuildempty,
		.aminsert = artinsert,
		.ambulkdelete = artbulkdelete,
		.amvacuumcleanup = artvacuumcleanup,
		.amcanreturn = art_can_return,
		.amcostestimate = artcostestimate,
		.amoptions = artoptions,
		.amproperty = NULL,
		.ambuildphasename = artbuildphasename,
		.amvalidate = artvalidate,
		.amadjustmembers = artadjustmembers,
		.ambeginscan = artbeginscan,
		.amrescan = artrescan,
		.amgettuple = artgettuple,
		.amgetbitmap = artgetbitmap,
		.amendscan = artendscan,
		.ammarkpos = artmarkpos,
		.amrestrpos = artrestrpos,
		.amestimateparallelscan = artestimateparallelscan,
		.aminitparallelscan = artinitparallelscan,
		.amparallelrescan = artparallelrescan,

#if PG_VERSION_NUM >= 160000
		/* a summarizing index may be skipped by HOT updates: not this one */
		.amsummarizing = false,
#endif
#if PG_VERSION_NUM >= 170000
		.amcanbuildparallel = true,	/* before: art_pbuild_workers */
		.aminsertcleanup = NULL,
#endif
#if PG_VERSION_NUM >= 180000
		.amcanhash = false,
		.amconsistentequality = true,
		.amconsistentordering = true,
		.amgettreeheight = art_tree_height,
		.amtranslatestrategy = art_translate_strategy,
		.amtranslatecmptype = art_translate_cmptype,
#endif
	};

	ART_RETURN_ROUTINE(routine);
}
