/*
 * art_slowcmp.c
 *	  A comparison function of core's that waits for a lock.
 *
 * A function of the name slow_cmp waits for advisory lock 45, shared, before it is
 * called, in a server that recovers.  artidx trusts a comparison function of core's to
 * be an order, also under another name, and so calls it where it calls none of others.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static needs_fmgr_hook_type prev_needs_fmgr_hook = NULL;
static fmgr_hook_type prev_fmgr_hook = NULL;

static bool
is_slow(Oid function)
{
	const char *name = function >= FirstNormalObjectId && IsTransactionState() ?
		get_func_name(function) : NULL;

	return name != NULL && strcmp(name, "slow_cmp") == 0;
}

static bool
needs(Oid function)
{
	return (prev_needs_fmgr_hook && prev_needs_fmgr_hook(function)) || is_slow(function);
}

static void
wait_for_lock(FmgrHookEventType event, FmgrInfo *flinfo, Datum *private)
{
	if (prev_fmgr_hook)
		prev_fmgr_hook(event, flinfo, private);
	if (event == FHET_START && is_slow(flinfo->fn_oid) && RecoveryInProgress())
		DirectFunctionCall1(pg_advisory_xact_lock_shared_int8, Int64GetDatum(45));
}

void
_PG_init(void)
{
	prev_needs_fmgr_hook = needs_fmgr_hook;
	needs_fmgr_hook = needs;
	prev_fmgr_hook = fmgr_hook;
	fmgr_hook = wait_for_lock;
}
