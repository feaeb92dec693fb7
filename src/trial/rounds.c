/*
 * rounds.c
 *	  Transactions in which a trial measures.
 *
 * Each transaction has a subtransaction that is rolled back.  In that the twin is valid.  No
 * transaction takes longer than some seconds.  So VACUUM does not wait for the
 * trial, and others who want the table for themselves wait for a moment only.
 *
 * src/trial/README.md: A trial
 */
#include "postgres.h"

#include <math.h>

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "trial/trial.h"

void
art_trial_row(ArtTrial *t, const char *measure, const char *unit, double btree, double art,
			  int64 calls, const char *remark)
{
	MemoryContext old = MemoryContextSwitchTo(t->cxt);
	ArtTrialRow *row = palloc(sizeof(ArtTrialRow));

	row->measure = measure;
	row->unit = unit;
	row->btree = btree;
	row->art = art;
	row->calls = calls;
	row->remark = remark == NULL ? NULL : pstrdup(remark);
	t->rows = lappend(t->rows, row);
	MemoryContextSwitchTo(old);
}

/*
 * A setting, until the subtransaction ends.
 */
static void
set_here(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
							 false);
}

/*
 * Locks: AccessShareLock on table and index, to the end of the transaction.
 */
void
art_trial_try(ArtTrial *t, Relation *heap, Relation *index)
{
	StartTransactionCommand();
	/* nobody waits for the end of a transaction that changes nothing */
	(void) set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(CurTransactionContext);
	(void) NewGUCNestLevel();
	set_here("track_counts", "off");
	if (GetConfigOption("pg_stat_statements.track", true, false) != NULL)
		set_here("pg_stat_statements.track", "none");
	PushActiveSnapshot(GetTransactionSnapshot());
	*heap = try_relation_open(t->heapoid, AccessShareLock);
	*index = *heap == NULL ? NULL : try_relation_open(t->indexoid, AccessShareLock);
	if (*index == NULL || (*index)->rd_rel->relam != BTREE_AM_OID ||
		(*index)->rd_index->indrelid != t->heapoid || !(*index)->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" was dropped or altered while it was tried", t->name)));
}

void
art_trial_undo(ArtTrial *t, Relation heap, Relation index)
{
	relation_close(index, NoLock);
	relation_close(heap, NoLock);
	RollbackAndReleaseCurrentSubTransaction();
	CommitTransactionCommand();
	MemoryContextSwitchTo(t->cxt);
}
