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
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "area/shared_state.h"

ArtPending *art_pending = NULL;

bool		art_noted_any = false;

static HTAB *noted = NULL;		/* of ArtNoted; lives as long as the transaction */

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

bool
art_pending_altered(Oid indexoid)
{
	for (ArtPending *p = art_pending; p; p = p->next)
		if (p->kind == ART_PEND_ALTERED && p->indexoid == indexoid)
			return true;
	return false;
}

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

/* ---- relations whose file may be another ---- */

void
art_note(Oid relid)
{
	ArtNoted   *r;
	bool		found;

	if (noted == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(ArtNoted),
			.hcxt = TopTransactionContext};

		noted = hash_create("artidx noted relations", 32, &ctl,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	r = hash_search(noted, &relid, HASH_ENTER, &found);
	if (!found)
		r->missed = false;
	art_noted_any = true;
}

void
art_note_missed(Oid relid)
{
	ArtNoted   *r = hash_search(noted, &relid, HASH_FIND, NULL);

	if (r != NULL)
		r->missed = true;
}

bool
art_was_missed(Oid relid)
{
	ArtNoted   *r = noted == NULL ? NULL : hash_search(noted, &relid, HASH_FIND, NULL);

	return r != NULL && r->missed;
}

Oid *
art_noted(int *n)
{
	HASH_SEQ_STATUS seq;
	ArtNoted   *r;
	Oid		   *all;

	*n = 0;
	if (noted == NULL)
		return NULL;
	all = palloc(hash_get_num_entries(noted) * sizeof(Oid));
	hash_seq_init(&seq, noted);
	while ((r = hash_seq_search(&seq)) != NULL)
		all[(*n)++] = r->relid;
	return all;
}

void
art_noted_xact_end(void)
{
	noted = NULL;
	art_noted_any = false;
}
