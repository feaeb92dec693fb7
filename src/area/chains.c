/*
 * chains.c
 *	  The directory's chains: an entry by its index and file, and walks over all entries.
 *
 * src/area/README.md: The directory
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "storage/sinval.h"
#include "utils/memutils.h"

#include "area/shared_state.h"

LWLock *
art_partition(Oid db, Oid indexoid)
{
	return &art_dir_locks[art_bucket(db, indexoid) & (ART_NPARTITIONS - 1)].lock;
}

/*
 * Locks: partition lock held, in any mode.
 */
ArtEntry *
art_chain(Oid db, Oid indexoid)
{
	return art_shared->buckets[art_bucket(db, indexoid)];
}

/*
 * Locks: partition lock held, in any mode.
 */
ArtEntry *
art_find(Oid indexoid, const ArtLocator *loc)
{
	ArtEntry   *e;

	for (e = art_chain(loc->db, indexoid); e; e = e->next)
		if (e->indexoid == indexoid && art_same_locator(&e->loc, loc))
			return e;
	return NULL;
}

/*
 * Locks: takes the partition lock, and leaves it held.
 */
ArtEntry *
art_find_locked(Oid indexoid, const ArtLocator *loc, LWLockMode mode, LWLock **lock)
{
	*lock = art_partition(loc->db, indexoid);
	art_lock(*lock, mode);
	return art_find(indexoid, loc);
}

/*
 * Invalidate plans and relcache entries of a heap in every process, now.
 * (CacheInvalidateRelcache() sends its messages at commit only, and not at all
 * when the transaction aborts.)
 */
void
art_invalidate_heap(Oid db, Oid heapoid)
{
	SharedInvalidationMessage msg;

	memset(&msg, 0, sizeof(msg));
	msg.rc.id = SHAREDINVALRELCACHE_ID;
	msg.rc.dbId = db;
	msg.rc.relId = heapoid;
	SendSharedInvalidMessages(&msg, 1);
}

/*
 * Locks: gives back the partition lock.
 */
void
art_unlock_changed(LWLock *lock, bool plans, Oid db, Oid heapoid)
{
	art_unlock(lock);
	if (plans)
		art_invalidate_heap(db, heapoid);
}

/*
 * Locks: partition lock held, exclusive.
 * Order: an entry is complete before the chain points to it.
 */
void
art_chain_add(ArtEntry *e)
{
	ArtEntry  **link = &art_shared->buckets[art_bucket(e->loc.db, e->indexoid)];

	e->next = *link;
	pg_write_barrier();
	*link = e;
	pg_atomic_fetch_add_u32(&art_shared->entries_changed, 1);
}

/*
 * Locks: partition lock held, exclusive.
 */
void
art_chain_remove(ArtEntry *e)
{
	ArtEntry  **link = &art_shared->buckets[art_bucket(e->loc.db, e->indexoid)];

	while (*link != e)
		link = &(*link)->next;
	*link = e->next;
	pg_atomic_fetch_add_u32(&art_shared->entries_changed, 1);
}

/* ---- walks ---- */

ArtWalk
art_walk(LWLockMode mode, Oid db, Oid indexoid)
{
	return (ArtWalk)
	{
		.mode = mode, .db = db, .indexoid = indexoid,
		.bucket = OidIsValid(indexoid) ? art_bucket(db, indexoid) : 0
	};
}

/*
 * Go to the next chain of the partition, or to the first one of the next partition.
 *
 * Locks: gives back the partition lock behind the last chain of it.
 */
static void
next_chain(ArtWalk *w)
{
	w->link = NULL;
	w->bucket += ART_NPARTITIONS;
	if (w->bucket < ART_NBUCKETS && !OidIsValid(w->indexoid))
		return;
	w->bucket = w->bucket % ART_NPARTITIONS + 1;
	art_walk_end(w);
	w->over = w->bucket == ART_NPARTITIONS || OidIsValid(w->indexoid);
}

/*
 * Locks: takes and gives back the partition locks, one after the other.
 */
ArtEntry *
art_walk_next(ArtWalk *w)
{
	while (!w->over)
	{
		if (w->lock == NULL)
			art_lock(w->lock = &art_dir_locks[w->bucket % ART_NPARTITIONS].lock, w->mode);
		if (w->link == NULL)
			w->link = &art_shared->buckets[w->bucket];
		else if (*w->link == w->e)
			w->link = &w->e->next;	/* else it was forgotten, and the next one is there */

		while ((w->e = *w->link) != NULL)
		{
			if ((!OidIsValid(w->db) || w->e->loc.db == w->db) &&
				(!OidIsValid(w->indexoid) || w->e->indexoid == w->indexoid))
				return w->e;
			w->link = &w->e->next;
		}
		next_chain(w);
	}
	return NULL;
}

/*
 * Locks: gives back the partition lock.
 */
void
art_walk_end(ArtWalk *w)
{
	w->over = true;
	if (w->lock != NULL)
		art_unlock(w->lock);
	w->lock = NULL;
}

bool
art_is_shared(ArtEntry *e, const void *arg)
{
	return e->loc.backend == -1;
}

/*
 * Locks: takes the partition locks, shared, one after the other.
 */
int
art_list_entries(Oid db, bool (*wanted) (ArtEntry *e, const void *arg), const void *arg,
				 ArtListed **list)
{
	ArtWalk		w = art_walk(LW_SHARED, db, InvalidOid);
	int			cap = 64;
	int			n = 0;

	*list = palloc(cap * sizeof(ArtListed));
	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		if (!wanted(e, arg))
			continue;
		if (n == cap)
		{
			/* no error under the lock: a process that exits may want it once more */
			ArtListed  *more = MemoryContextAllocExtended(CurrentMemoryContext,
														  2 * cap * sizeof(ArtListed),
														  MCXT_ALLOC_NO_OOM | MCXT_ALLOC_HUGE);

			if (more == NULL)
			{
				art_walk_end(&w);
				ereport(ERROR,
						(errcode(ERRCODE_OUT_OF_MEMORY),
						 errmsg("out of memory"),
						 errdetail("The list of art indexes has %d entries.", n)));
			}
			memcpy(more, *list, n * sizeof(ArtListed));
			pfree(*list);
			*list = more;
			cap *= 2;
		}
		(*list)[n++] = (ArtListed)
		{
			.indexoid = e->indexoid, .loc = e->loc, .doubt = e->doubt, .tree = e->tree,
			.gen = ART_WORD_GEN(pg_atomic_read_u64(&e->word))
		};
	}
	return n;
}
