/*
 * custom_scans.c
 *	  What the nodes of this room have in common: how EXPLAIN shows conditions.
 *
 * src/plan/README.md: The planner
 */
#include "postgres.h"

#include "art_compat.h"
#include "commands/explain.h"
#include ART_EXPLAIN_HEADER
#include "nodes/makefuncs.h"
#include "utils/ruleutils.h"

#include "plan/custom_scans.h"

void
art_explain_quals(const char *label, Node *quals, List *context, bool prefix,
				  double removed, ExplainState *es)
{
	if (quals == NULL)
		return;
	ExplainPropertyText(label,
						deparse_expression((Node *) make_ands_explicit((List *) quals),
										   context, prefix, false), es);
	if (removed > 0 || (removed == 0 && es->format != EXPLAIN_FORMAT_TEXT))
		ExplainPropertyFloat(psprintf("Rows Removed by %s", label), NULL, removed, 0, es);
}
