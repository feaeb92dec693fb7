/*
 * plan.h
 *	  Planning with art indexes: costs, sizes, and the hooks of the planner and
 *	  the executor.
 *
 * src/README.md: The planner
 */
#ifndef ART_PLAN_ROOM_H
#define ART_PLAN_ROOM_H

#include "optimizer/planner.h"

#include "area/area.h"

/* ---- art_cost.c ---- */

struct PlannerInfo;
struct IndexPath;
extern void artcostestimate(struct PlannerInfo *root, struct IndexPath *path,
							double loop_count, Cost *startup, Cost *total,
							Selectivity *selectivity, double *correlation,
							double *pages);

/* The planner's facts of a READY index (src/plan/art_cost.c). */
extern bool art_planner_stats(Relation index, BlockNumber *pages,
							  double *entries, int *height);

#if PG_VERSION_NUM >= 180000
extern int	art_tree_height(Relation index);
#endif

/* ---- art_btsize.c ---- */

/* Planning as with btree in its place (src/plan/art_btsize.c). */
extern void art_plan_costs_init(bool (*replacing_btree) (void));
extern bool art_costs_as_btree(void);
extern void art_btree_size(Relation index, double entries, double rows,
						   BlockNumber *pages, int *height);

/* ---- art_await.c ---- */

struct IndexOptInfo;
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

/* ---- art_planner.c ---- */

extern void art_planner_install(void);

/* The art operator class of the same name and input type as a btree one. */
extern Oid	art_opclass_twin(Oid btopclass, Oid artam);

/* ---- art_join.c ---- */

/* Batched joins: the setting and the hook (src/plan/art_join.c). */
extern void art_batch_install(void);

/* ---- art_rowcompare.c ---- */

#ifdef ART_MARKS_ROWS

/* A path was made: does it compare rows? */
extern void art_rowcmp_met(const struct IndexPath *path);

/* A plan was made: what the executor makes no keys of becomes what it does. */
extern void art_rowcmp_take_apart(PlannedStmt *stmt);

/* Before the executor starts: the same of a plan that a worker got. */
extern void art_rowcmp_start(PlannedStmt *stmt);

/* After it has: what EXPLAIN is to print.  In the query's memory context. */
struct QueryDesc;
extern void art_rowcmp_show(struct QueryDesc *queryDesc, int eflags);

#endif

/* ---- art_executor.c ---- */

extern void art_executor_install(void);

/* ---- art_statement.c ---- */

extern void art_statement_install(void);

#endif							/* ART_PLAN_ROOM_H */
