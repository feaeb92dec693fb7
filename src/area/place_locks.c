/*
 * place_locks.c
 *	  Heavyweight locks that belong to one index: tuple locks of no tuples.
 *
 * The deadlock detector sees whoever waits for one, and an error releases it.
 * A tuple lock rather than a page lock, under which PostgreSQL 15 asserts that
 * no other lock is taken (a build detoasts and evaluates expressions).
 *
 * src/README.md: Contracts
 */
#include "postgres.h"

#include "storage/lmgr.h"
#include "storage/proc.h"

#include "area/shared_state.h"

void
art_place_tag(Relation index, ArtPlace place, LOCKTAG *tag)
{
	SET_LOCKTAG_TUPLE(*tag, index->rd_lockInfo.lockRelId.dbId,
					  index->rd_lockInfo.lockRelId.relId, 0, place);
}

/*
 * Wait for the lock at most so many milliseconds, 0 being for ever; then core's
 * ERROR of lock_timeout.
 *
 * Locks: takes the place.  It stays until art_unlock_place() or the end of the
 * transaction.
 */
void
art_lock_place_for(Relation index, ArtPlace place, LOCKMODE mode, int ms)
{
	ItemPointerData tid;
	int			save = LockTimeout;

	ItemPointerSet(&tid, 0, place);
	LockTimeout = ms;
	PG_TRY();
	{
		LockTuple(index, &tid, mode);
	}
	PG_FINALLY();
	{
		LockTimeout = save;
	}
	PG_END_TRY();
}

/*
 * Wait for the lock.  lock_timeout does not count: what is waited for takes a
 * moment, as a page's lock does.
 *
 * Locks: as art_lock_place_for().
 */
void
art_lock_place(Relation index, ArtPlace place, LOCKMODE mode)
{
	art_lock_place_for(index, place, mode, 0);
}

/*
 * Take it if it is free.
 *
 * Locks: as art_lock_place_for(), if it returns true.
 */
bool
art_try_lock_place(Relation index, ArtPlace place, LOCKMODE mode)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, 0, place);
	return art_conditional_lock_tuple(index, &tid, mode);
}

/*
 * Locks: gives the place back.
 */
void
art_unlock_place(Relation index, ArtPlace place, LOCKMODE mode)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, 0, place);
	UnlockTuple(index, &tid, mode);
}
