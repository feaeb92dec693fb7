/*
 * module.c
 *	  The library's entry: it makes every room ready, and tells a lower one what
 *	  it is to call in a higher one.
 *
 * src/README.md: Rooms
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "build/build.h"
#include "ddl/ddl.h"
#include "live/background.h"
#include "saved/saved.h"
#include "survive/survive.h"
#include "trial/trial.h"
#include "workers/workers.h"
#include "live/live.h"
#include "plan/plan.h"
#include "views/views.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_version);

/*
 * artidx_version(): that of the library.
 */
Datum
artidx_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(ARTIDX_VERSION));
}

/*
 * Library entry.  Loaded late (no shared_preload_libraries), nothing that
 * needs the area is installed; a postmaster setting defined then would even be
 * FATAL.
 */
void
_PG_init(void)
{
#ifdef AX_ASAN
	ax_poisoning = false;
#endif
	art_launcher_settings();
	art_patience_init();

	if (process_shared_preload_libraries_in_progress)
	{
		art_shmem_init();
		art_judge_by(art_judge);
		art_before_detach(art_own_builds_exit);
		art_replace_init();
		art_plan_costs_init(art_replacing_btree);
		art_lifecycle_init();
		art_utility_install();
		art_statement_install();
		/* if there is one place for a worker only, the launcher has it */
		art_launcher_init();
		art_saved_init();
		art_recheck_init();
		art_leftovers_by(art_trial_leftovers);
		art_removed_settings_init();
	}

	art_options_init();
	art_elision_init();
	art_planner_install();
	art_executor_install();
	art_batch_install();
	art_agg_install();
	art_loose_install();

	/*
	 * After every definition: it removes what the configuration file sets and
	 * nobody has defined by now.
	 */
	if (process_shared_preload_libraries_in_progress)
		MarkGUCPrefixReserved("artidx");
}
