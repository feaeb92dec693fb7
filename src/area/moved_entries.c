/*
 * moved_entries.c
 *	  An index gets another file, and the structure goes with it: a copy of its own, or
 *	  that of another index.
 *
 * src/area/README.md: Files that move
 */
#include "postgres.h"

#include "storage/lwlock.h"

#include "area/crash_memory.h"
#include "area/shared_state.h"

/*
 * The index has another file.  The entry, with what it has counted, becomes that of the
 * new file, unless that has one by now.  Nobody else has the index open.
 *
 * born: the file is a copy of the old one (SET TABLESPACE), and a READY structure stays.
 * *born is the WAL position that it has from now on, and on return what it had.  False,
 * with nothing done: it is not READY, or there is none.  NULL: the structure goes, and
 * is wanted again.  False: the new file has no entry.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.  Both locators are of one index,
 * hence of one chain.
 */
bool
art_move_locator(Oid indexoid, const ArtLocator *from, const ArtLocator *to, XLogRecPtr *born)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, from, LW_EXCLUSIVE, &lock);
	bool		has = art_find(indexoid, to) != NULL;
	bool		done = false;

	if (e == NULL)
		done = born == NULL && has;
	else if (born != NULL)
	{
		done = !has && ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_READY;
		if (done)
		{
			XLogRecPtr	had = e->born_lsn;

			e->born_lsn = *born;
			*born = had;
			art_delgen_moved(from, to);
			e->loc = *to;
		}
	}
	else if (has)
	{
		art_entry_forget(e);
		done = true;
	}
	else
	{
		(void) art_entry_absent(e, ART_WHY_DROPPED, NULL);
		e->loc = *to;
		e->native = false;
		art_entry_again(e);
		done = true;
	}
	art_unlock(lock);
	return done;
}

/*
 * Locks: takes the partition locks, exclusive, one after the other.
 */
void
art_move_database(Oid db, Oid from, Oid to, XLogRecPtr born)
{
	ArtWalk		w = art_walk(LW_EXCLUSIVE, db, InvalidOid);

	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		ArtLocator	had = e->loc;

		if (e->heap_spc == from)
			e->heap_spc = to;
		if (had.spc == from)
		{
			e->loc.spc = to;
			art_delgen_moved(&had, &e->loc);
			e->born_lsn = born;
		}
	}
}

/*
 * An entry, in no chain now, becomes that of the index "to".  Each index goes on with what
 * it has counted, so an entry that "to" has already gets what this one had.
 *
 * Epoch: enters and leaves.
 * Locks: the partition locks of both are held, exclusive; takes the chunk lock, exclusive.
 */
static void
change_hands(ArtEntry *e, Oid to, Oid heapoid, const ArtOpening *o)
{
	ArtEntry   *old = art_chain(e->loc.db, to);

	while (old != NULL && (old->indexoid != to || old->loc.db != e->loc.db))
		old = old->next;
	if (old != NULL)
	{
		uint32		used_at = pg_atomic_read_u32(&e->used_at);
		uint32		uses = pg_atomic_read_u32(&e->uses);

		art_counts_exchange(e, old);
		pg_atomic_write_u32(&e->used_at, pg_atomic_read_u32(&old->used_at));
		pg_atomic_write_u32(&e->uses, pg_atomic_read_u32(&old->uses));
		pg_atomic_write_u32(&old->used_at, used_at);
		pg_atomic_write_u32(&old->uses, uses);
	}
	e->heapoid = heapoid;
	/* with no memory for a group it is charged to those that it is in, as before */
	(void) art_groups_join(e, o->owner, o->limited);
	e->owner = o->owner;
	e->persistence = o->persistence;
	e->schema = o->schema;
	e->name = o->name;
	e->told = false;
	e->changed |= ART_CHANGED_CAP | ART_CHANGED_ENGINE | ART_CHANGED_TAIL;
	e->making_pid = 0;
	if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT)
		art_entry_again(e);
}

/*
 * An index has the file of another, and gets its structure, too.  The other is one that this
 * transaction drops (ALTER COLUMN TYPE without a rewrite), or has got another file (an
 * exchange).  Or the index gives both back, because the transaction is rolled back.  False:
 * there is none that could go to another index.
 *
 * Nobody else has either index open: the transaction has their table locked, exclusive, or
 * each of them.  The entry stays where it is, for processes that know it under its old name.
 * *born is the WAL position that the entry has from now on, and on return what it had.
 *
 * Epoch: enters and leaves, under the locks.
 * Locks: takes the partition locks of both, exclusive, the first in memory first; in them, to
 * identify the entry, the chunk lock, exclusive.
 */
bool
art_take_entry(Oid from, Oid to, const ArtLocator *loc, XLogRecPtr *born,
			   Oid heapoid, const ArtOpening *o)
{
	LWLock	   *one = art_partition(loc->db, from);
	LWLock	   *other = art_partition(loc->db, to);
	ArtEntry   *e;
	bool		taken = false;

	art_lock(Min(one, other), LW_EXCLUSIVE);
	if (one != other)
		art_lock(Max(one, other), LW_EXCLUSIVE);

	e = art_find(from, loc);
	if (e != NULL && art_find(to, loc) == NULL)
	{
		XLogRecPtr	had = e->born_lsn;

		/* a build that was left is of the other index */
		if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) != ART_READY)
			(void) art_entry_absent(e, e->reason, NULL);
		art_chain_remove(e);
		if (o != NULL)
			change_hands(e, to, heapoid, o);
		e->indexoid = to;
		e->born_lsn = *born;
		*born = had;
		art_chain_add(e);
		pg_atomic_fetch_add_u32(&art_shared->unsettled, 1);
		taken = true;
	}

	if (one != other)
		art_unlock(Max(one, other));
	art_unlock(Min(one, other));
	return taken;
}
