/*
 * am.h
 *	  The access method: the functions of its handler, and what they share.
 *
 * src/README.md: Overview
 */
#ifndef ART_AM_H
#define ART_AM_H

#include "storage/lockdefs.h"

#include "area/area.h"
#include "build/build.h"

/* ---- ambuild.c ---- */

/*
 * ambuild: read the table, sort, load.  Nobody else writes the table, or the index takes
 * no rows yet (CONCURRENTLY).  Want of memory is no ERROR: the index ends valid, sealed
 * and absent.  ERROR: what art_check_supported() refuses, a duplicate (23505), what an
 * expression raises.
 */
extern IndexBuildResult *artbuild(Relation heap, Relation index,
								  struct IndexInfo *indexInfo);

/* ambuildempty: sync the empty init fork that core has made of an unlogged index. */
extern void artbuildempty(Relation index);

/*
 * ambuildphasename: the names of our phases in pg_stat_progress_create_index.  NULL: there
 * is no such phase.
 */
extern char *artbuildphasename(int64 phasenum);

/* ---- index_facts.c ---- */

/*
 * How fast this process's scans of an index went lately (scan/read_ahead.c).
 */
typedef struct ArtPace
{
	uint32		ps[2];			/* picoseconds a row without rows ahead and with; 0: never */
	uint8		batches;		/* that were begun */
} ArtPace;

/*
 * The facts that every operation on an index needs and that would be slow to
 * find each time.  They live in rd_amcache, one chunk, so that an invalidation
 * of the relation throws them away.  A reload can happen at any catalog
 * access, so callers copy what they use beyond the next one.
 */
typedef struct ArtRelCache
{
	Oid			spc,			/* whose: checked at every use */
				db,
				rel;
	ArtEntry   *entry;			/* NULL: not known to exist yet */
	bool		mirror;			/* planner_hooks.c's answer, */
	uint64		mirror_as_of;	/* and when it was made; 0: never */
	ArtPace		pace;
	ArtKeyDesc	kd;
} ArtRelCache;

/*
 * The cached facts about an index, made if they are not there.  May read catalogs, so it
 * is called outside of epochs and locks.  Good until the next access to a catalog.
 */
extern ArtRelCache *art_relcache(Relation index);

/*
 * WARNING for operator classes that are not what btree would have, once for each index, or
 * again.  Many an index of 0.1.0 has them by mistake.
 */
extern void art_tell_of_classes(Relation index, bool again);

/* The entry, if there is one; NULL means ABSENT (or not preloaded). */
extern ArtEntry *art_relcache_entry(Relation index);

/* ---- insert.c ---- */

/*
 * aminsert.  Returns what it has to: true if a unique check found no conflict; false also
 * where none was asked for.  ERROR: a duplicate (23505), a row too long for a constraint
 * (54000), and, of a unique index, no memory (53200).
 */
extern bool artinsert(Relation index, Datum *values, bool *isnull,
					  ItemPointer heap_tid, Relation heap,
					  IndexUniqueCheck checkUnique, bool indexUnchanged,
					  struct IndexInfo *indexInfo);

/* A statement keeps this from row to row. */
typedef struct ArtInsertState
{
	ArtKeyDesc	kd;
	ArtEntry   *entry;			/* NULL: not known to exist yet */
	ArtBuf		key;			/* encoded key, then the TID */
	uint32		keylen;			/* without the TID */
	uint32		collen;			/* nor the payload */
	ArtLimit	limit;
	bool		ring;			/* inserts are written down (crash_memory.h) */
	bool		waits;			/* entries may be queued (insert_queue.c) */
	bool		validates;		/* CREATE INDEX CONCURRENTLY's rows, which are others' */
	uint32		rows;			/* so many were asked to */
	ArtHazard  *hazard;			/* NULL: never needed one */
	MemoryContext cxt;			/* of all that, and of the slot */
} ArtInsertState;

/* ---- insert_unchecked.c ---- */

/*
 * Insert into the structure if there is one.  ABSENT: the next build will find
 * the row in the heap.
 */
extern void art_insert_plain(Relation index, ArtInsertState *st);

/*
 * An insert ended with s, which is neither AX_OK nor AX_EXISTS.  Does what it takes
 * before the caller tries again, beginning with the structure's state.  ERROR: only of
 * a unique index, for lack of memory.
 */
extern void art_insert_retry(Relation index, ArtEntry *e, uint64 gen, ax_status s);

/* ---- insert_queue.c ---- */

/*
 * Register the ends of transactions with the queues.  Called once, when the library is
 * preloaded.
 */
extern void art_queue_init(void);

/*
 * From now on the entries of rows that are inserted may wait, or not.  Returns
 * what was so before, which the caller restores, after an ERROR, too.  They may
 * while a statement runs at whose end art_queue_flush() is called, and which aborts
 * no row of its own (ON CONFLICT does).
 */
extern bool art_queue_for(bool may);

/* Queue st->key.  False: the caller inserts it. */
extern bool art_queue_put(Relation index, ArtInsertState *st);

/* Entries in all queues of this process. */
extern uint32 art_queued;
extern void art_queue_flush_all(LOCKMODE lockmode);
extern void art_queue_flush_one(Relation index);

/*
 * Put in what waits: before others may read a structure for this process, or the
 * statement ends.  Memory that is full is no ERROR here.  lockmode: NoLock as long as
 * the statement has its indexes open.
 */
static inline void
art_queue_flush(LOCKMODE lockmode)
{
	if (unlikely(art_queued > 0))
		art_queue_flush_all(lockmode);
}

/* Put in the entries of one index, before this process reads its structure. */
static inline void
art_queue_flush_of(Relation index)
{
	if (unlikely(art_queued > 0))
		art_queue_flush_one(index);
}

/* ---- vacuum.c ---- */

/*
 * ambulkdelete: remove the entries whose TIDs the callback names, and count the rest.
 * Waits for a build that goes on, and at its end for the scans that show such a TID
 * (art_interlock_vacuum).
 */
extern IndexBulkDeleteResult *artbulkdelete(IndexVacuumInfo *info,
											IndexBulkDeleteResult *stats,
											IndexBulkDeleteCallback callback,
											void *callback_state);

/*
 * amvacuumcleanup: the sizes for pg_class, and a compaction where one is due.  NULL: there
 * is no structure, and ambulkdelete gave no numbers.
 */
extern IndexBulkDeleteResult *artvacuumcleanup(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats);

/* ---- all_entries.c ---- */

typedef struct ArtPass
{
	const ArtKeyDesc *kd;
	ax_ctx	   *cx;
	uint32		max;			/* entries a batch */
	uint32		n;				/* in this one */
	uint64	   *tids;
	uint32	   *key_off;		/* entry i lies at [i] to [i + 1] of keys */
	ArtBuf		keys;
	ArtBuf		from;			/* the last entry before the batch */
	bool		at_from;		/* .. which is the first one of it, in place of that */
	ArtBuf		last;			/* of the batch */
	bool		at_last;		/* .. or the first of the next one */
	bool		done;
} ArtPass;

/*
 * Buffers for batches of up to max entries, in the current memory context; for keybuf
 * bytes of keys to begin with.  The pass begins at the first entry.
 */
extern void art_pass_init(ArtPass *w, const ArtKeyDesc *kd, ax_ctx *cx, uint32 max,
						  uint32 keybuf);

/* Go back to before the first entry.  The buffers stay. */
extern void art_pass_begin(ArtPass *w);

/*
 * Copy the next batch: n entries behind the last one of the batch before.  "done": nothing
 * is behind it.  Waits by itself where the core says AX_BUSY.  Returns ax_scan's other
 * statuses, but for AX_BUFFER; after AX_STALE it can go on in another structure.
 */
extern ax_status art_pass_next(ArtPass *w, ax_tree *tree, uint64 gen);

/* Free the buffers. */
extern void art_pass_end(ArtPass *w);

/* ---- unique.c ---- */

/*
 * Put in the entry st->key, and look for other rows of its key.  Waits, with no lock held,
 * for a transaction that decides about one.  False: a potential conflict, of
 * UNIQUE_CHECK_PARTIAL.  ERROR 23505 for a duplicate.  After nbtree's _bt_check_unique().
 */
extern bool art_insert_unique(Relation index, ArtInsertState *st,
							  Datum *values, bool *isnull, ItemPointer tid,
							  Relation heap, IndexUniqueCheck check);

/* ---- dead_awaiting_wal.c ---- */

/* A bit for each structure, by generation, of which dead rows may be known. */
extern uint64 art_dead_gens;

/* See how far WAL is flushed. */
extern void art_dead_refresh(void);

/* May rows of a structure be known to be dead?  Asked once a statement or batch. */
static inline bool
art_dead_any(uint64 gen)
{
	if (likely((art_dead_gens >> (gen & 63) & 1) == 0))
		return false;
	art_dead_refresh();
	return true;
}

typedef enum ArtDeath
{
	ART_DEATH_UNKNOWN,
	ART_DEATH_WAIT,				/* dead to everybody, but the entry must stay */
	ART_DEATH_GO				/* dead, and the entry may go */
} ArtDeath;

/*
 * Ask what this process knows of the row behind a TID, which was read from a
 * structure in that deletion generation.
 */
extern ArtDeath art_dead_known(uint64 gen, uint64 delgen, uint64 tid);

/*
 * The heap just said that a row is dead to everybody.  If its WAL is not flushed, its
 * entry must wait, and that is remembered.
 *
 * Arguments: the index, and where the entry was read; fetch: which found the row,
 * or NULL.
 */
extern ArtDeath art_dead_seen(Relation index, const ArtKeyDesc *kd, uint64 gen,
						  uint64 delgen, uint64 tid, Relation heap,
						  struct IndexFetchTableData *fetch);

/* Flush, if entries that wait have cost as much.  No lock is held. */
extern void art_dead_flush(void);

/* ---- churn.c ---- */

/*
 * Removal of what is dead among the entries of a key, by the insert of one that
 * an UPDATE did not change (churn.c).
 */
extern void art_churn(Relation index, Relation heap, ArtInsertState *st,
					  ItemPointer tid);

#endif							/* ART_AM_H */
