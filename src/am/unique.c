/*
 * unique.c
 *	  The unique check, as nbtree's to the letter, and the insert under it.
 *
 * Two inserters of one key meet at a stripe lock, chosen by a hash of the key,
 * which covers the check and the insert.  The later one sees the earlier one's
 * entry, since the insert ended before the release.  It sees that entry's heap
 * tuple, since the heap insert came before it.  The lock is released before
 * any wait.
 *
 * A TID that goes to the heap is first published in a hazard slot.  Then the
 * deletion generation is found unchanged since before the entries were copied.
 * So VACUUM cannot recycle it while we look.
 *
 * src/am/README.md: Uniqueness
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "am/predicate_locks.h"
#include "area/crash_memory.h"
#include "area/shared_state.h"
#include "area/tree_calls.h"
#include "build/build.h"
#include "limits/limits.h"
#include "live/live.h"

typedef enum ArtVerdict
{
	ART_UNIQUE_OK,				/* no conflict */
	ART_UNIQUE_MAYBE,			/* PARTIAL: potential conflict */
	ART_UNIQUE_WAIT,			/* another transaction decides */
	ART_UNIQUE_DUPLICATE,		/* a definite conflict */
	ART_UNIQUE_RETRY,			/* something moved: from the beginning */
	ART_UNIQUE_BUSY				/* the same, after a look at interrupts */
} ArtVerdict;

typedef struct ArtUnique
{
	Relation	index;
	Relation	heap;
	ArtInsertState *st;
	ax_ctx	   *cx;
	ax_tree    *tree;
	uint64		gen;
	uint64		delgen;
	uint64		self;			/* own TID */
	bool		some_dead;		/* rows may be known to be dead */
	IndexUniqueCheck check;
	bool		found_self;
	TransactionId xwait;		/* for ART_UNIQUE_WAIT */
	uint32		token;
	ArtEqual	equal;			/* the entries of the key, whatever their payload */
} ArtUnique;

/*
 * The verdict on a row that the dirty snapshot sees.
 */
static ArtVerdict
art_unique_judge(ArtUnique *u, const SnapshotData *dirty)
{
	if (u->check == UNIQUE_CHECK_PARTIAL)
		return ART_UNIQUE_MAYBE;

	u->xwait = TransactionIdIsValid(dirty->xmin) ? dirty->xmin : dirty->xmax;
	u->token = dirty->speculativeToken;
	if (TransactionIdIsValid(u->xwait))
		return ART_UNIQUE_WAIT;

	return ART_UNIQUE_DUPLICATE;
}

/*
 * The verdict on the row behind entry i of the equal ones.  OK: nothing.
 */
static ArtVerdict
art_unique_check_tid(ArtUnique *u, uint32 i)
{
	uint64		tid = u->equal.tids[i];
	SnapshotData dirty;
	ItemPointerData htid;
	bool		all_dead = false;
	ArtDeath	death = ART_DEATH_UNKNOWN;

	if (tid == u->self)
	{
		/*
		 * Our own entry: looked for by a recheck, else put there by a build
		 * that met our tuple in the heap before we came here.
		 */
		u->found_self = true;
		return ART_UNIQUE_OK;
	}

	if (u->st->hazard == NULL)
		u->st->hazard = art_hazard_acquire(u->index, u->st->cxt);
	if (!art_hazard_publish(u->st->hazard, tid, u->delgen))
		return ART_UNIQUE_RETRY;

	if (unlikely(u->some_dead))
		death = art_dead_known(u->gen, u->delgen, tid);
	if (likely(death == ART_DEATH_UNKNOWN))
	{
		InitDirtySnapshot(dirty);
		art_tid_unpack(tid, &htid);
		if (table_index_fetch_tuple_check(u->heap, &htid, &dirty, &all_dead))
			return art_unique_judge(u, &dirty);
		if (all_dead)
			death = art_dead_seen(u->index, u->equal.kd, u->gen, u->delgen, tid,
								  u->heap, NULL);
	}

	/*
	 * Dead to everybody: its TID is still published, and the deletion generation
	 * was that of the copy, so the TID is no other's yet.
	 */
	if (death == ART_DEATH_GO)
		(void) art_equal_remove(&u->equal, i);
	return ART_UNIQUE_OK;
}

/*
 * Check every entry of the key.  The stripe is held.
 */
static ArtVerdict
art_unique_check(ArtUnique *u)
{
	ArtInsertState *st = u->st;
	ArtEqual   *q = &u->equal;
	ax_status	s;
	ArtVerdict	v = ART_UNIQUE_OK;

	/* before the entries are copied: any removal after that changes it */
	u->delgen = art_delgen(u->index);

	s = art_equal_first(q, &st->kd, u->tree, u->gen, st->key.data, st->collen,
						ART_EQUAL_BATCH);

	for (;;)
	{
		if (s == AX_STALE)
			v = ART_UNIQUE_RETRY;
		else if (s == AX_BUSY)
			v = ART_UNIQUE_BUSY;
		else if (s != AX_OK)
			art_unexpected(u->index, s, "a look-up");

		for (uint32 i = 0; v == ART_UNIQUE_OK && i < q->n; i++)
		{
			v = art_unique_check_tid(u, i);
			if (v == ART_UNIQUE_DUPLICATE)
			{
				ItemPointerData htid;

				/*
				 * A definite conflict, unless the tuple that we are to insert
				 * is itself dead by now.  That can be for CREATE INDEX
				 * CONCURRENTLY.  Then there is no error, and no need to look
				 * further.
				 */
				art_tid_unpack(u->self, &htid);
				if (!table_index_fetch_tuple_check(u->heap, &htid,
												   SnapshotSelf, NULL))
				{
					u->found_self = true;
					v = ART_UNIQUE_OK;
					q->more = false;
					break;
				}
			}
		}
		if (v != ART_UNIQUE_OK || !q->more)
			break;
		s = art_equal_next(q);	/* a long chain of versions */
	}

	art_equal_end(q);
	if (st->hazard != NULL)
		art_hazard_clear(st->hazard);
	return v;
}

/*
 * The stripe; or one lock for the whole index, when equal keys can differ in
 * their bytes, or comparing them may run somebody's code.  That lock is a
 * heavyweight one.  Under it the code can be interrupted and can insert into
 * this very index, and the deadlock detector sees it.
 *
 * Locks: takes the stripe, an LWLock, exclusive; or the unique place,
 * exclusive.
 * Order: before partition and chunk locks; released before any wait for a
 * transaction, a build or memory.
 */
static void
art_unique_lock(Relation index, LWLock *stripe)
{
	if (likely(stripe != NULL))
		LWLockAcquire(stripe, LW_EXCLUSIVE);
	else
		art_lock_place(index, ART_PLACE_UNIQUE, ExclusiveLock);
}

/*
 * Let go of what art_unique_lock() took.
 *
 * Locks: gives back the stripe or the unique place.
 */
static void
art_unique_unlock(Relation index, LWLock *stripe)
{
	if (likely(stripe != NULL))
		LWLockRelease(stripe);
	else
		art_unlock_place(index, ART_PLACE_UNIQUE, ExclusiveLock);
}

/*
 * Sets *u for a row of an index, whose entry is made if need be.  "gen" and what
 * the check finds come later.
 */
static void
art_unique_begin(ArtUnique *u, Relation index, ArtInsertState *st, ItemPointer tid,
				 Relation heap, IndexUniqueCheck check)
{
	if (st->entry == NULL)
	{
		ArtEntry   *e = art_relcache(index)->entry;

		if (e == NULL)
		{
			e = art_entry(index);
			/* that may have accepted invalidations, and so may what follows */
			art_relcache(index)->entry = e;
			art_apply_options(index, e);
			art_apply_kind(index, e, st->kd.compared);
		}
		st->entry = e;
	}
	u->index = index;
	u->heap = heap;
	u->st = st;
	u->cx = art_ctx();
	u->tree = art_entry_tree(st->entry);
	u->self = art_tid_pack(tid);
	u->check = check;
}

/*
 * Check, and as the verdict is, insert.  *s is what the insert said, AX_OK
 * without one.
 *
 * Locks: takes and gives back the stripe, or the unique place.
 */
static inline ArtVerdict
art_unique_try(ArtUnique *u, LWLock *stripe, ax_status *s)
{
	ArtInsertState *st = u->st;
	uint32		len = st->keylen + AX_TID_BYTES;
	ArtVerdict	v;

	*s = AX_OK;
	u->found_self = false;

	art_unique_lock(u->index, stripe);

	v = art_unique_check(u);
	if ((v == ART_UNIQUE_OK || v == ART_UNIQUE_MAYBE) &&
		u->check != UNIQUE_CHECK_EXISTING)
	{
		const uint8 *key = st->key.data;

		if (st->ring)
			art_ring_put(u->index, st->entry, u->gen, &key, &len, 1);
		*s = art_tree_insert(&st->kd, u->cx, u->tree, u->gen, key, len);
	}
	else if (v == ART_UNIQUE_WAIT && u->check == UNIQUE_CHECK_YES && !st->validates)
	{
		/*
		 * A build that came after our row was stored has put our entry in, as
		 * that of every other row in progress.  Of two such inserters of one
		 * key each would find the other's and wait for it.  An inserter that
		 * waits has no entry of this row here, as with nbtree.  The stripe orders
		 * the two: then at most one of them waits.  Its other entries stay, and
		 * are a deadlock at worst (src/live/README.md: Residency).
		 */
		*s = art_tree_remove(&st->kd, u->cx, u->tree, u->gen, st->key.data, len);
		if (*s == AX_BUSY)
			v = ART_UNIQUE_BUSY;
		else if (*s == AX_STALE)
			v = ART_UNIQUE_RETRY;
	}
	art_unique_unlock(u->index, stripe);
	return v;
}

/* Raises the error for a key that is there. */
static void
art_unique_violation(ArtUnique *u, Datum *values, bool *isnull)
{
	ArtInsertState *st = u->st;
	char	   *key_desc;

	/*
	 * A chance to report a serialization failure that the constraint violation
	 * would mask.
	 */
	if (IsolationIsSerializable())
		art_ssi_inserted(u->index, &st->kd, st->key.data, st->collen,
						 st->keylen + AX_TID_BYTES);
	key_desc = BuildIndexValueDescription(u->index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"",
					RelationGetRelationName(u->index)),
			 key_desc ? errdetail("Key %s already exists.", key_desc) : 0,
			 errtableconstraint(u->heap, RelationGetRelationName(u->index))));
}

/*
 * Is the row done with, after a verdict, or must everything begin again?  Waits
 * for the transaction that has a row of this key in progress.
 */
static inline bool
art_unique_settled(ArtUnique *u, ArtVerdict v, ItemPointer tid)
{
	switch (v)
	{
		case ART_UNIQUE_RETRY:
			return false;
		case ART_UNIQUE_BUSY:
			art_busy();
			return false;
		case ART_UNIQUE_WAIT:
			if (u->token)
				SpeculativeInsertionWait(u->xwait, u->token);
			else
				XactLockTableWait(u->xwait, u->index, tid, XLTW_InsertIndex);
			return false;
		case ART_UNIQUE_DUPLICATE:
		case ART_UNIQUE_OK:
		case ART_UNIQUE_MAYBE:
			break;
	}
	return true;
}

/*
 * Is the entry in, after what the insert said, or must everything begin again?
 * Makes room for it where there is none.  The stripe is given back.
 */
static inline bool
art_unique_stored(ArtUnique *u, ax_status s)
{
	switch (s)
	{
		case AX_OK:
		case AX_EXISTS:
			return true;
		case AX_STALE:
			return false;
		case AX_BUSY:
			art_busy();
			return false;
		case AX_NOMEM:
			/* the stripe is released; whatever else happened meanwhile */
			if (art_make_room(u->index, u->st->entry, u->gen, ART_ROOM_UNIQUE))
				return false;
			if (art_never_valid(u->index, u->st->entry))
			{
				art_seal(u->index, u->st->entry, u->gen);
				return false;
			}
			art_report_nomem(u->index);
			return true;
		default:
			art_unexpected(u->index, s, "an insert");
			return true;
	}
}

/*
 * Check, wait, insert.  Returns false for a potential conflict (PARTIAL).
 */
bool
art_insert_unique(Relation index, ArtInsertState *st, Datum *values,
				  bool *isnull, ItemPointer tid, Relation heap,
				  IndexUniqueCheck check)
{
	ArtUnique	u;
	LWLock	   *stripe;
	ArtVerdict	v;
	ax_status	s;

	art_unique_begin(&u, index, st, tid, heap, check);
	stripe = st->kd.images ? art_unique_stripe(index, st->key.data, st->collen) : NULL;

	do
	{
		/* the check must see every entry */
		if (art_entry_state(st->entry, &u.gen) != ART_READY)
		{
			if (unlikely(art_never_valid(index, st->entry)))
			{
				art_insert_plain(index, st);
				return true;
			}
			u.gen = art_ensure_ready(index);
		}
		art_entry_touch(st->entry);
		u.some_dead = art_dead_any(u.gen);
		v = art_unique_try(&u, stripe, &s);
		if (v == ART_UNIQUE_DUPLICATE)
			art_unique_violation(&u, values, isnull);
	} while (!art_unique_settled(&u, v, tid) || !art_unique_stored(&u, s));

	if (check == UNIQUE_CHECK_EXISTING && !u.found_self)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("failed to re-find tuple within index \"%s\"",
						RelationGetRelationName(index)),
				 errhint("This may be because of a non-immutable index expression."),
				 errtableconstraint(heap,
									RelationGetRelationName(index))));

	art_dead_flush();

	return v == ART_UNIQUE_OK;
}
