/*
 * exchanged_files.c
 *	  Indexes that have exchanged their files: each structure goes with its file.
 *
 * REPACK CONCURRENTLY, pg_repack and pg_squeeze fill a copy of a table, with copies
 * of its indexes.  Then they exchange the files in pg_class, table for table and index
 * for index.  The structure of the copy's index is right for the copy's file, and so for
 * the index that has got that.
 *
 * Core tells a hook of its own exchanges.  Nobody tells of one that an extension makes.
 * But the row of pg_class is changed, and the relation cache is told.  So a transaction notes
 * all relations of which it is told, and looks at them before it commits.
 *
 * src/area/README.md: Files that move
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "live/background.h"

/*
 * The same as art_new_locator(); is it a row that this transaction wrote?
 *
 * Locks: AccessShareLock on pg_class, for the look-up.
 */
static bool
look_up_class(Oid relid, ArtLocator *loc, bool *mine)
{
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tup;
	bool		found;

	rel = table_open(RelationRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, ClassOidIndexId, true, SnapshotSelf, 1, &key);
	tup = systable_getnext(scan);
	found = HeapTupleIsValid(tup);
	if (found)
	{
		art_form_locator((Form_pg_class) GETSTRUCT(tup), loc);
		*mine = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tup->t_data));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/*
 * Locks: AccessShareLock on pg_class, for the look-up.
 */
bool
art_new_locator(Oid relid, ArtLocator *loc)
{
	bool		mine;

	return look_up_class(relid, loc, &mine);
}

/*
 * The same, if this transaction wrote the row.  Of another's the directory has what that
 * one will commit, or has committed and not come to yet.
 */
static bool
my_locator(Oid relid, ArtLocator *loc)
{
	bool		mine;

	return look_up_class(relid, loc, &mine) && mine;
}

static inline bool
same_file(const ArtLocator *a, const ArtLocator *b)
{
	return a->rel == b->rel && a->spc == b->spc;
}

/* The relation cache is told of a relation, by this transaction or by another. */
static void
note(Datum arg, Oid relid)
{
	if (OidIsValid(relid) && IsTransactionState() && !IsParallelWorker() &&
		TransactionIdIsValid(GetTopTransactionIdIfAny()))
		art_note(relid);
}

/* ---- do two indexes make the same of a table? ---- */

/* Is this column of pg_index, an expression or none, the same in both rows? */
static bool
same_tree(HeapTuple a, HeapTuple b, AttrNumber attnum)
{
	bool		no_a;
	bool		no_b;
	Datum		da = SysCacheGetAttr(INDEXRELID, a, attnum, &no_a);
	Datum		db = SysCacheGetAttr(INDEXRELID, b, attnum, &no_b);

	if (no_a || no_b)
		return no_a && no_b;
	/* equal() passes over where in a statement they stood */
	return equal(stringToNode(TextDatumGetCString(da)), stringToNode(TextDatumGetCString(db)));
}

/* The same of an array of numbers. */
static bool
same_numbers(HeapTuple a, HeapTuple b, AttrNumber attnum)
{
	bool		isnull;
	Datum		da = SysCacheGetAttr(INDEXRELID, a, attnum, &isnull);
	Datum		db = SysCacheGetAttr(INDEXRELID, b, attnum, &isnull);

	return VARSIZE_ANY(DatumGetPointer(da)) == VARSIZE_ANY(DatumGetPointer(db)) &&
		memcmp(VARDATA_ANY(DatumGetPointer(da)), VARDATA_ANY(DatumGetPointer(db)),
			   VARSIZE_ANY_EXHDR(DatumGetPointer(da))) == 0;
}

/*
 * Do both make the same keys, of the same rows?  No expression is evaluated here, not even
 * its constants: whoever commits need not be the table's owner.
 */
static bool
same_definition(Relation a, Relation b)
{
	static const AttrNumber numbers[] = {
		Anum_pg_index_indkey, Anum_pg_index_indcollation,
		Anum_pg_index_indclass, Anum_pg_index_indoption
	};
	TupleDesc	da = RelationGetDescr(a);
	TupleDesc	db = RelationGetDescr(b);
	HeapTuple	ta;
	HeapTuple	tb;
	bool		same = a->rd_index->indnatts == b->rd_index->indnatts &&
		a->rd_index->indnkeyatts == b->rd_index->indnkeyatts &&
		a->rd_index->indisunique == b->rd_index->indisunique &&
		a->rd_index->indnullsnotdistinct == b->rd_index->indnullsnotdistinct &&
		a->rd_rel->relpersistence == b->rd_rel->relpersistence;

	for (int i = 0; same && i < da->natts; i++)
		same = TupleDescAttr(da, i)->atttypid == TupleDescAttr(db, i)->atttypid &&
			TupleDescAttr(da, i)->atttypmod == TupleDescAttr(db, i)->atttypmod;
	if (!same)
		return false;
	ta = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(RelationGetRelid(a)));
	tb = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(RelationGetRelid(b)));
	same = HeapTupleIsValid(ta) && HeapTupleIsValid(tb);
	for (int i = 0; same && i < (int) lengthof(numbers); i++)
		same = same_numbers(ta, tb, numbers[i]);
	same = same && same_tree(ta, tb, Anum_pg_index_indexprs) &&
		same_tree(ta, tb, Anum_pg_index_indpred);
	if (HeapTupleIsValid(ta))
		ReleaseSysCache(ta);
	if (HeapTupleIsValid(tb))
		ReleaseSysCache(tb);
	return same;
}

/* ---- the look ---- */

/* An entry whose index has another file now, and what it needs in order to go with its own. */
typedef struct Orphan
{
	Oid			indexoid;
	ArtLocator	loc;
	bool		ready;
	Oid			heap_spc;
	uint32		heap_rel;
} Orphan;

/*
 * Add the entries of an index that may be orphans.
 *
 * Locks: takes the partition lock, shared.
 */
static Orphan *
add_entries(Oid relid, Orphan *all, int *n)
{
	ArtWalk		w = art_walk(LW_SHARED, MyDatabaseId, relid);
	Orphan		found[8];
	int			nfound = 0;

	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		if (e->loc.backend != -1 || nfound == (int) lengthof(found))
			continue;
		found[nfound++] = (Orphan) {
			.indexoid = relid, .loc = e->loc,
			.ready = art_entry_state(e, NULL) == ART_READY,
			.heap_spc = e->heap_spc, .heap_rel = e->heap_rel
		};
	}
	if (nfound == 0)
		return all;
	all = all == NULL ? palloc(nfound * sizeof(Orphan)) :
		repalloc(all, (*n + nfound) * sizeof(Orphan));
	memcpy(all + *n, found, nfound * sizeof(Orphan));
	*n += nfound;
	return all;
}

/*
 * Is there an entry of this index with this file?
 *
 * Locks: takes the partition lock, shared.
 */
static bool
file_has_entry(Oid indexoid, const ArtLocator *loc)
{
	LWLock	   *lock;
	bool		has = art_find_locked(indexoid, loc, LW_SHARED, &lock) != NULL;

	art_unlock(lock);
	return has;
}

/*
 * Was the structure built of the file that the table of "to" has now, as "to" would build it?
 * Then all is filled in that the commit needs.
 */
static bool
structure_fits(const Orphan *o, Oid to, ArtPending *p)
{
	Relation	from_rel = RelationIdGetRelation(o->indexoid);
	Relation	to_rel = RelationIdGetRelation(to);
	ArtLocator	heap;
	bool		ok = RelationIsValid(from_rel) && RelationIsValid(to_rel) &&
		art_is_art_index(from_rel) && art_is_art_index(to_rel) &&
		from_rel->rd_index->indisvalid && to_rel->rd_index->indisready &&
		art_new_locator(to_rel->rd_index->indrelid, &heap) &&
		heap.rel == o->heap_rel && heap.spc == o->heap_spc &&
		same_definition(from_rel, to_rel);

	if (ok)
	{
		art_opening(to_rel, &p->opening);
		p->heapoid = to_rel->rd_index->indrelid;
		p->taken_from = o->indexoid;
	}
	if (RelationIsValid(from_rel))
		RelationClose(from_rel);
	if (RelationIsValid(to_rel))
		RelationClose(to_rel);
	return ok;
}

/*
 * One of the noted relations has got this file.  The index takes the structure, if that is
 * right for it, and if no process has either of them open.
 *
 * Locks: tries AccessExclusiveLock on both indexes, to the end of the transaction.
 */
static void
give_to_owner(const Orphan *o, const Oid *noted, const ArtLocator *has, int n)
{
	ArtPending *p;

	for (int i = 0; i < n; i++)
	{
		Oid			to = noted[i];

		if (to == o->indexoid || !same_file(&has[i], &o->loc))
			continue;
		for (p = art_pending; p; p = p->next)
			if (p->kind == ART_PEND_SWAPPED && p->indexoid == to && same_file(&p->loc, &o->loc))
				return;
		if (!o->ready || o->heap_rel == 0 || art_was_missed(to) || file_has_entry(to, &o->loc) ||
			!ConditionalLockRelationOid(o->indexoid, AccessExclusiveLock) ||
			!ConditionalLockRelationOid(to, AccessExclusiveLock))
			return;
		p = art_pending_prepare();
		if (structure_fits(o, to, p))
			art_pending_add(p, ART_PEND_SWAPPED, MyDatabaseId, to, &o->loc,
							GetCurrentSubTransactionId());
		else
			pfree(p);
		return;
	}
}

/* The transaction may have changed once more what an earlier look saw: forget that. */
static void
look_again(void)
{
	for (ArtPending **link = &art_pending; *link;)
	{
		ArtPending *p = *link;
		ArtLocator	now;

		if (p->kind != ART_PEND_SWAPPED ||
			(art_new_locator(p->indexoid, &now) && same_file(&now, &p->loc) &&
			 art_new_locator(p->heapoid, &now) && now.rel == p->opening.heap_rel &&
			 now.spc == p->opening.heap_spc && !art_was_missed(p->indexoid)))
		{
			link = &p->next;
			continue;
		}
		*link = p->next;
		pfree(p);
	}
}

/*
 * Locks: takes partition locks, shared, one after the other; of indexes that have
 * exchanged files, see give_to_owner().
 */
void
art_swapped_look(void)
{
	MemoryContext cxt;
	MemoryContext old;
	Oid		   *noted;
	ArtLocator *has = NULL;
	Orphan	   *all = NULL;
	int			nnoted;
	int			n = 0;

	if (!art_noted_any)
		return;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "artidx files", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(cxt);
	noted = art_noted(&nnoted);
	for (int i = 0; i < nnoted; i++)
		all = add_entries(noted[i], all, &n);
	if (n > 0)
		look_again();
	for (int i = 0; i < n; i++)
	{
		ArtLocator	now;
		ArtPending *p;

		if (!my_locator(all[i].indexoid, &now) || same_file(&now, &all[i].loc))
			continue;
		if (has == NULL)
		{
			has = palloc(nnoted * sizeof(ArtLocator));
			for (int j = 0; j < nnoted; j++)
				if (!my_locator(noted[j], &has[j]))
					has[j] = (ArtLocator) {.rel = 0};	/* nobody's */
		}
		give_to_owner(&all[i], noted, has, nnoted);

		/* if it does not go, it is of no use; and if nothing comes, one is to be built */
		for (p = art_pending; p; p = p->next)
			if (p->kind == ART_PEND_MOVED && p->indexoid == all[i].indexoid &&
				same_file(&p->loc, &all[i].loc))
				break;
		if (p == NULL)
			art_pending_add(p = art_pending_prepare(), ART_PEND_MOVED, MyDatabaseId,
							all[i].indexoid, &all[i].loc, GetCurrentSubTransactionId());
		p->moved_to = all[i].loc;
		p->moved_to.rel = now.rel;
		p->moved_to.spc = now.spc;
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

/*
 * Epoch: enters and leaves, under the locks.
 * Locks: takes the partition locks of two indexes, exclusive.
 */
void
art_swapped_commit(void)
{
	for (ArtPending *p = art_pending; p; p = p->next)
	{
		XLogRecPtr	born = XactLastCommitEnd;

		if (p->kind == ART_PEND_SWAPPED)
			(void) art_take_entry(p->taken_from, p->indexoid, &p->loc, &born, p->heapoid,
								  &p->opening);
	}
}

void
art_swapped_init(void)
{
	CacheRegisterRelcacheCallback(note, (Datum) 0);
}
