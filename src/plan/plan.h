/*
 * plan.h
 *	  Planning with art indexes: costs, sizes, and the hooks of the planner and
 *	  the executor.
 *
 * src/plan/README.md: The planner
 */
#ifndef ART_PLAN_H
#define ART_PLAN_H

#include "optimizer/planner.h"

#include "area/area.h"

/* ---- scan_cost.c ---- */

struct PlannerInfo;
struct IndexPath;

/*
 * amcostestimate, whose arguments and results these are.  Also notes paths that compare
 * rows (art_rowcmp_met).
 */
extern void artcostestimate(struct PlannerInfo *root, struct IndexPath *path,
							double loop_count, Cost *startup, Cost *total,
							Selectivity *selectivity, double *correlation,
							double *pages);

/* The planner's facts of a READY index (src/plan/scan_cost.c). */
extern bool art_planner_stats(Relation index, BlockNumber *pages,
							  double *entries, int *height);

/* amgettreeheight.  -1: the planner's facts are not to be had. */
#if PG_VERSION_NUM >= 180000
extern int	art_tree_height(Relation index);
#endif

/* ---- btree_size.c ---- */

/* Planning as with btree in its place (src/plan/btree_size.c). */
extern void art_plan_costs_init(bool (*replacing_btree) (void));
extern bool art_costs_as_btree(void);
struct IndexOptInfo;
extern void art_btree_size(Relation index, const struct IndexOptInfo *info, double entries,
						   BlockNumber *pages, int *height);

/* ---- absent_index.c ---- */

/*
 * The planner is about to hide an index that is not READY.  True: it shall not, and *info
 * has what may be guessed of the index.  Then "hypothetical" keeps core from looking into
 * the index for its ends.
 */
extern bool art_plan_missed(struct IndexOptInfo *info, Relation index);

/*
 * Plan a query, by plan_it, as often as it takes to know whether it should wait
 * for an index that is being built; and wait.
 */
extern PlannedStmt *art_plan_patiently(planner_hook_type plan_it, Query *parse,
									   ART_PLAN_PARAMETERS);

/* Call for each node of a plan, those of subplans too. */
extern void art_plan_walk(const PlannedStmt *stmt, void (*visit) (struct Plan *plan, void *arg),
						  void *arg);

/* ---- planner_hooks.c ---- */

/*
 * From here on this process plans with no other index of the table than this one; of all
 * tables as ever: InvalidOid.
 */
extern void art_plan_only(Oid heapoid, Oid indexoid);

/* Put the planner's hooks in; from _PG_init, in every process that loads the library. */
extern void art_planner_install(void);

/* The art operator class of the same name and input type as a btree one. */
extern Oid	art_opclass_twin(Oid btopclass, Oid artam);

/* ---- join_paths.c ---- */

/* Batched joins: the setting and the hook (src/plan/join_paths.c). */
extern void art_batch_install(void);

/* ---- aggregate_paths.c ---- */

/* Aggregates from an index alone: the hook.  From _PG_init. */
extern void art_agg_install(void);

/*
 * A plan was made: its nodes say which table they read, for EXPLAIN.  Core takes the
 * relations of a path for that, and those above an aggregate have none.
 */
extern void art_agg_planned(PlannedStmt *stmt);

/* ---- loose_paths.c ---- */

/* Loose scans: the hook (src/plan/loose_paths.c); from _PG_init. */
extern void art_loose_install(void);

/* ---- row_compare.c ---- */

#ifdef ART_MARKS_ROWS

/* The conditions of an index with a condition for each member of a comparison of rows. */
extern List *art_rowcmp_apart(List *quals);

/* A path was made: does it compare rows? */
extern void art_rowcmp_met(const struct IndexPath *path);

/* A plan was made: what the executor makes no keys of becomes what it does. */
extern void art_rowcmp_take_apart(PlannedStmt *stmt);

/* Before the executor starts: the same of a plan that a worker got. */
extern void art_rowcmp_start(PlannedStmt *stmt);

/* After it has: what EXPLAIN is to print.  In the query's memory context. */
struct QueryDesc;
extern void art_rowcmp_show(struct QueryDesc *queryDesc, int eflags);

#else
#define art_rowcmp_apart(quals) (quals)
#endif

/* ---- on_conflict.c ---- */

/*
 * Put the executor's hooks in; from _PG_init, in every process that loads the library.
 * From 18 on there is nothing to do.
 */
extern void art_executor_install(void);

/* ---- foreign_key_check.c ---- */

struct QueryDesc;

/* Before the statement's triggers fire: those that check a foreign key come here. */
extern void art_keychecks_take(struct QueryDesc *queryDesc);

/* After the triggers: at the end of the client's statement nothing stays open. */
extern void art_keychecks_rest(struct QueryDesc *queryDesc);

/* Close what checks keep open: a command may want the tables for itself. */
extern void art_keychecks_close(void);

/* Called once, when the library is preloaded. */
extern void art_keychecks_install(void);

/* ---- statement_hooks.c ---- */

/* Put in the hooks of a statement's end.  Called once, when the library is preloaded. */
extern void art_statement_install(void);

#endif							/* ART_PLAN_H */
