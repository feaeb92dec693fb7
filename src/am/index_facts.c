/*
 * index_facts.c
 *	  The facts about an index that every operation on it needs, cached with its
 *	  relation.
 *
 * src/README.md: Overview
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/am.h"
#include "area/area.h"
#include "live/live.h"

/* the indexes whose operator classes this session has been told of */
static List *told = NIL;

void
art_tell_of_classes(Relation index, bool again)
{
	MemoryContext old;

	if ((!again && list_member_oid(told, RelationGetRelid(index))) || !art_warn_of_classes(index))
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	told = list_append_unique_oid(told, RelationGetRelid(index));
	MemoryContextSwitchTo(old);
}

ArtRelCache *
art_relcache(Relation index)
{
	ArtRelCache *rc = (ArtRelCache *) index->rd_amcache;
	ArtKeyDesc *kd;

	if (rc != NULL &&
		rc->rel == ART_REL_NUMBER(index) &&
		rc->spc == ART_REL_SPC(index) &&
		rc->db == ART_REL_DB(index))
		return rc;

	/* to whoever uses an index, and not to him who makes it */
	if (MyBackendType == B_BACKEND && index->rd_createSubid == InvalidSubTransactionId)
		art_tell_of_classes(index, false);

	/*
	 * May read catalogs, so before the chunk is hung in.  Everybody who copies it takes his own
	 * comparison, so a query is planned where its library is missing.
	 */
	kd = art_keydesc_facts(index, CurrentMemoryContext);

	rc = MemoryContextAlloc(index->rd_indexcxt, sizeof(ArtRelCache));
	rc->spc = ART_REL_SPC(index);
	rc->db = ART_REL_DB(index);
	rc->rel = ART_REL_NUMBER(index);
	rc->entry = NULL;
	rc->mirror_as_of = 0;
	rc->pace = (ArtPace) {0};
	rc->kd = *kd;
	pfree(kd);

	if (index->rd_amcache != NULL)
		pfree(index->rd_amcache);
	index->rd_amcache = rc;
	return rc;
}

/*
 * The directory entry, if there is one.  "None" is never cached: the answer
 * must come from the directory each time, where a builder would make one.
 */
ArtEntry *
art_relcache_entry(Relation index)
{
	ArtRelCache *rc = art_relcache(index);
	const bool	compared = rc->kd.compared;
	ArtEntry   *e = rc->entry;

	if (e == NULL && (e = art_entry_if_exists(index)) != NULL)
	{
		rc->entry = e;
		/* may read catalogs: rc may be gone */
		art_apply_options(index, e);
		art_apply_kind(index, e, compared);
	}
	return e;
}
