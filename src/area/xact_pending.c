/*
 * xact_pending.c
 *	  What is left to do to structures when this (sub)transaction ends: it is
 *	  written down here, and lifecycle.c does it.
 *
 * src/live/README.md: Transactions
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "area/shared_state.h"

ArtPending *art_pending = NULL;

/*
 * Memory for one piece of work, before anything is done that cannot be undone.
 * It is run where nothing may fail any more, so this process attaches now.
 */
ArtPending *
art_pending_prepare(void)
{
	(void) art_ctx();
	return MemoryContextAllocZero(TopMemoryContext, sizeof(ArtPending));
}

/*
 * Register it; cannot fail.
 */
void
art_pending_add(ArtPending *p, ArtPendingKind kind, Oid db, Oid indexoid,
				const ArtLocator *loc, SubTransactionId subid)
{
	p->kind = kind;
	p->subid = subid;
	p->db = db;
	p->indexoid = indexoid;
	if (loc)
		p->loc = *loc;
	p->next = art_pending;
	art_pending = p;
}

/*
 * See shared_state.h.
 */
bool
art_pending_altered(Oid indexoid)
{
	for (ArtPending *p = art_pending; p; p = p->next)
		if (p->kind == ART_PEND_ALTERED && p->indexoid == indexoid)
			return true;
	return false;
}

/*
 * See shared_state.h.
 */
bool
art_is_uncommitted(Relation rel)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(rel)));
	bool		mine;

	if (!HeapTupleIsValid(tup))
		return true;
	mine = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tup->t_data));
	ReleaseSysCache(tup);
	return mine;
}
