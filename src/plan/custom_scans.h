/*
 * custom_scans.h
 *	  What the nodes of this room have in common.
 *
 * src/plan/README.md: The planner
 */
#ifndef ART_PLAN_CUSTOM_SCANS_H
#define ART_PLAN_CUSTOM_SCANS_H

#include "commands/explain.h"
#include "nodes/extensible.h"

/*
 * EXPLAIN: conditions as core shows them, and how many rows of a loop did not pass.  A
 * negative number: that is not shown.  "prefix": columns with the names of their tables.
 */
extern void art_explain_quals(const char *label, Node *quals, List *context, bool prefix,
							  double removed, ExplainState *es);

#endif							/* ART_PLAN_CUSTOM_SCANS_H */
