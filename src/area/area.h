/*
 * area.h
 *	  The area: shared memory, the directory of structures in it, its limits, the
 *	  interlock with VACUUM, and the options of indexes.
 *
 * An index's structure is an ArtEntry here.  Rooms above ask for it, for its
 * state and its handle, and for room when memory is full.  Its members are for
 * those who include shared_state.h.
 *
 * src/area/README.md: The directory
 */
#ifndef ART_AREA_H
#define ART_AREA_H

#include <signal.h>

#include "access/genam.h"
#include "access/xlogdefs.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "storage/condition_variable.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "art_compat.h"
#include "core/ax.h"
#include "key/key.h"

/* ---- options.c ---- */

#define ART_AM_NAME "art"

typedef struct ArtOptions
{
	int32		vl_len_;
	int			structure;		/* enum: art, btree, hydra */
	int			sync;			/* enum: auto, olc, rowex, optiql, coarse */
	int			page_size;		/* bytes, of a B+-tree */
	int			tail_buffer;	/* enum: auto, on, off */
	int			elision;		/* the same */
	int			fillfactor;
	bool		deduplicate_items;	/* only for nbtree's size as the planner sees it */
	int			max_memory_off; /* string offset; "" or unit text */
} ArtOptions;

/*
 * From _PG_init.  ALTER INDEX looks up a parameter's lock before it calls the
 * access method, and takes a weaker one for a name it does not know.
 */
extern void art_options_init(void);

/*
 * amoptions: the ArtOptions of a reloptions array, palloc'd.  validate: ERROR for a name
 * that there is not, for a wrong value, and for options that do not go together.
 */
extern bytea *artoptions(Datum reloptions, bool validate);

/* Is there a storage parameter of the name? */
extern bool art_option_known(const char *name);

extern uint64 art_max_memory(Relation index);	/* bytes, 0: no cap */

/* Which engine the options ask for (NULL: the defaults), and its page size. */
extern ax_structure art_engine(const ArtOptions *opts, uint32 *page_size);

/*
 * Options that can be told to a structure that is there already, and the names
 * of their values.
 */
extern ax_tail_option art_tail_option(const ArtOptions *opts);
extern ax_elide_option art_elide_option(const ArtOptions *opts);
extern const char *art_tail_name(ax_tail_option option);
extern const char *art_elide_name(ax_elide_option option);
/*
 * A structure with its parameters, as options ask for it; and what can be told
 * to it.
 */
typedef struct ArtEngine
{
	ax_structure structure;
	uint32		page_size;
	ax_tail_option tail;
	ax_elide_option elide;
} ArtEngine;

/* The engine that options (NULL: the defaults) ask for. */
extern void art_engine_of(const ArtOptions *opts, ArtEngine *want);

/* How full, in per cent, a build leaves the leaves. */
extern int	art_fillfactor(Relation index);

/* Would a btree index with these parameters keep equal keys together (it may)? */
extern bool art_deduplicate_items(Relation index);
#define ART_DEFAULT_FILLFACTOR	90	/* as nbtree's leaf pages */

/* ---- crash_memory.c ---- */

/*
 * A background worker may die in its SIGTERM handler (bgworker_die).  There the signal
 * waits until a core call is over, so that a shutdown does not panic.  It also waits
 * while the process has a lock exclusively (art_lock).
 */
extern bool art_hold_sigterm;	/* decided once, before the first call or lock */
extern void art_sigterm_hold(void);
extern void art_sigterm_resume(void);

/*
 * This process is inside, and out again: in between it may change what outlives a
 * crash, and SIGQUIT waits (crash_memory.c).  The word is this process's in shared memory.
 * It counts, for a core call may be made under a lock.
 */
extern volatile uint64 *art_inside;
extern volatile sig_atomic_t art_quit_pending;
extern void art_quit_now(void);

static inline void
ART_INSIDE_BEGIN(void)
{
	++*art_inside;
	pg_compiler_barrier();
}

static inline void
ART_INSIDE_END(void)
{
	pg_compiler_barrier();
	if (--*art_inside == 0 && unlikely(art_quit_pending))
		art_quit_now();
}

/* ---- shared_memory.c ---- */

/*
 * A load may be long.  Told to stop, it gives up soon, as if memory were full.  Set during its call
 * of the core.
 */
typedef enum ArtLoadStop
{
	ART_STOP_NEVER,				/* no interrupt */
	ART_STOP_DIE,				/* the end of the session */
	ART_STOP_CANCEL				/* or of the statement */
} ArtLoadStop;

/* Which interrupts end this process's call of the core before it is done. */
extern ArtLoadStop art_load_stop;

/*
 * Is there an interrupt now that art_load_stop names?  Raises nothing, so it may be called
 * in a critical section.
 */
extern bool art_load_told(void);

extern bool art_preloaded(void);	/* in shared_preload_libraries, area there */
extern void art_require_preload(Relation index);	/* ERROR 55000 with the HINT */
extern ax_ctx *art_ctx(void);	/* attaches this process on first use */
extern void art_ctx_xact_end(void);	/* the next transaction goes on with no call of this one */

/*
 * Around every core call that can latch: an ERROR or FATAL in it becomes a
 * PANIC.  Between them nothing but core calls.
 */
static inline void
ART_CORE_BEGIN(void)
{
	if (unlikely(art_hold_sigterm))
		art_sigterm_hold();
	ART_INSIDE_BEGIN();
	START_CRIT_SECTION();
}

static inline void
ART_CORE_END(void)
{
	END_CRIT_SECTION();
	ART_INSIDE_END();
	if (unlikely(art_hold_sigterm))
		art_sigterm_resume();
}

/* Called when a core call said AX_BUSY: checks for interrupts. */
extern void art_busy(void);

/* Housekeeping of the core, until nothing more can be freed at once; interruptible. */
extern bool art_poll(void);

/* ---- waiting.c ---- */

/*
 * The one rule of a wait that is no lock wait: the caller holds no lock that a process could
 * wait for that it waits for, and no latch; interrupts are taken, so an ERROR may leave; the
 * end of the postmaster ends this process; and the wait sees to it itself that the process that
 * it waits for lives.
 *
 * Sleep for at most so many milliseconds, or until the latch of this process is set, which is reset.
 * Returns whether it was set.
 */
extern bool art_doze(long ms, uint32 wait_event);

/*
 * Wait until done(arg), and look about every ms milliseconds, more often at first.  A
 * condition variable (not NULL) that is signalled makes it look at once; with one, ms -1 means
 * that it looks at no other time.  False: "until" has come before that (0: it never does).
 */
extern bool art_wait_for(bool (*done) (void *arg), void *arg, TimestampTz until, long ms,
						 ConditionVariable *cv, uint32 wait_event);

/* ---- directory.c ---- */

typedef enum ArtState
{
	ART_ABSENT = 0,
	ART_BUILDING,
	ART_READY,
	ART_FOLLOWED				/* on a standby, and until its promotion is done:
								 * kept by a follower (standby_readers.c) */
} ArtState;

typedef enum ArtReason			/* why absent; text in artidx_indexes.reason */
{
	ART_WHY_RESTART = 0,		/* never built since the server started */
	ART_WHY_MEMORY,
	ART_WHY_UNLOADED,
	ART_WHY_ERROR,
	ART_WHY_DROPPED,
	ART_WHY_ALTERED				/* ALTER INDEX asks for another structure */
} ArtReason;

typedef enum ArtFull			/* of ART_WHY_MEMORY: what is full */
{
	ART_FULL_AREA = 0,
	ART_FULL_CAP,				/* the index's max_memory */
	ART_FULL_TEMP,				/* artidx.temp_limit; and so on */
	ART_FULL_DATABASE,
	ART_FULL_ROLE
} ArtFull;

typedef enum ArtRoomFor
{
	ART_ROOM_NONE,				/* takes nothing from others: false at once */
	ART_ROOM_INSERT,			/* a non-unique insert */
	ART_ROOM_UNIQUE,			/* a unique insert, or a build that one waits for */
	ART_ROOM_BUILD,				/* any other build */
	ART_ROOM_AMBUILD			/* the same, of ambuild: what a rewritten index had
								 * before goes first */
} ArtRoomFor;

typedef enum ArtBuildSource
{
	ART_BUILD_CREATE = 0,
	ART_BUILD_REBUILD,
	ART_BUILD_ALTER,
	ART_BUILD_LOAD,				/* from the file saved at shutdown */
	ART_BUILD_KEPT				/* in memory, over a crash */
} ArtBuildSource;

typedef struct ArtEntry ArtEntry;	/* one structure; shared, type-stable */

/*
 * NULL when there is none or artidx is not preloaded: the state is ABSENT
 * then.  It was observed under the directory's lock, which a builder takes to
 * publish BUILDING.  For paths that must not fail for want of memory:
 * non-unique aminsert, ambulkdelete, the planner.
 */
extern ArtEntry *art_entry_if_exists(Relation index);

/*
 * The lock under which the index's entry is e.  NULL: e is another's by now, for REINDEX
 * CONCURRENTLY drops an index that somebody may have open.
 *
 * Locks: takes the partition lock, exclusive, if it returns it.
 */
extern LWLock *art_entry_lock(Relation index, const ArtEntry *e);

/*
 * The core's handle.  Never NULL, and the same for as long as the entry is this index's.
 * No lock is needed.
 */
extern ax_tree *art_entry_tree(ArtEntry *e);

/*
 * Was the present structure filled by ambuild and aminsert alone (not built
 * lazily)?  For a unique index that is not indisvalid, only such a
 * one reports its entries to the callback of ambulkdelete.
 */
extern bool art_entry_native(ArtEntry *e);

/*
 * State and generation, read from shared memory with acquire.  A full barrier
 * stands before.  So a builder that publishes BUILDING later sees what the
 * caller stored earlier (insert_unchecked.c).
 */
extern ArtState art_entry_state(ArtEntry *e, uint64 *gen);

/*
 * Is the index invalid, and nobody at work to make it valid?  Then only
 * REINDEX can, which makes another file.  Nobody needs this structure, and no
 * insert has to be refused or to wait for its sake. e NULL: it has no entry.
 */
extern bool art_never_valid(Relation index, ArtEntry *e);

/* CREATE INDEX CONCURRENTLY or the like begins to make the index. */
extern void art_making_begin(ArtEntry *e);

/* A scan or a unique check uses the structure; cheap. */
extern void art_entry_touch(ArtEntry *e);

/* Is the relation an index of our access method? */
extern bool art_is_art_index(Relation rel);

/*
 * Before a row goes into a unique index: has it more than its cap, which was
 * lowered?  Then art_refuse_over_cap has the ERROR.
 */
extern bool art_entry_over_cap(const ArtEntry *e);

/* ---- shared_memory.c ---- */

/*
 * artidx.build_workers: how many background workers build.  0: nothing is built in the
 * background, nothing is checked after a crash, and a standby keeps no indexes.
 */
extern int	art_build_workers;

/* ---- standby_readers.c ---- */

#define ART_FOLLOW_SCAN_MS	500 /* a scan waits so long, then reads the table */
#define ART_FOLLOW_CHECK_MS 60000	/* artidx_check has no other way */

/*
 * A scan on a standby, whose snapshot exists: may it read the structure that the
 * follower keeps?  Waits until the follower has come to where replay is now, so many
 * milliseconds at most.  False: read the table.  Interruptible.
 */
extern bool art_followed_ready(Relation index, ArtEntry *e, uint64 *gen, int ms);

/*
 * May a structure that is ready so have entries of line pointers that are unused by now?
 * The follower takes them out.
 */
extern bool art_followed_unswept(const ArtEntry *e);

/* The same for the planner, which does not wait: is the follower close behind? */
extern bool art_followed_plannable(Relation index, ArtEntry *e, uint64 *gen);

/*
 * Recovery has ended, and a process needs the structure as a primary's.  Waits a
 * moment for the follower to be done with its last steps.  Makes the structure
 * ABSENT when the follower is gone or takes too long.  The caller looks again.
 */
extern void art_followed_settle(ArtEntry *e);

/* A plan on a standby missed an index: is there a follower for this database? */
extern void art_follow_ask(void);

/* ---- error_reports.c ---- */

/*
 * A core call gave a status that it cannot give: the structure is not what it
 * should be.  Drops it, so that it is built again from the table; ERROR XX002.
 * doing: "an insert".  Not within ART_CORE_BEGIN and ART_CORE_END.  Exported for
 * test/modules/art_insidetest.
 */
extern PGDLLEXPORT void art_unexpected(Relation index, ax_status s, const char *doing)
			__attribute__((noreturn));

/* Is this an end of the statement rather than an error of a row? */
extern bool art_ends_statement(int sqlstate);

/*
 * In PG_CATCH: a part of the statement, which ran in a subtransaction of its own, has failed.
 * Rolls the subtransaction back, and returns to the memory context and the resource owner of
 * before.  Raises the error again if it ends the statement; else returns it, allocated there.
 */
extern struct ErrorData *art_error_of_part(MemoryContext cxt, ResourceOwner owner);

/*
 * May the current user see what an error says of the table's rows?  Ask before
 * the rows are read.  And in a PG_CATCH: throw the error on as it is if so, or
 * if it is no row's.  Else log it, and throw one of its SQLSTATE without its
 * text. cxt: of the caller.
 */
extern bool art_may_see_rows(Relation index);
extern void art_rethrow_hidden(Relation index, bool may_see, MemoryContext cxt)
			__attribute__((noreturn));

/* ---- vacuum_interlock.c ---- */

typedef struct ArtHazard ArtHazard; /* a slot in shared memory */

/* Deletion generation of the index's locator: exists in every state. */
extern uint64 art_delgen(Relation index);

/*
 * One slot for an open scan (or a unique check).  It is released from the
 * reset callback of cxt and at top-level transaction end, too; to release it
 * twice does no harm.
 */
extern ArtHazard *art_hazard_acquire(Relation index, MemoryContext cxt);
extern void art_hazard_release(ArtHazard *h);

/*
 * Publish the TID, full fence, compare: true when the deletion generation is
 * still delgen; the TID then cannot be recycled until clear/next publish.
 * False: the slot is cleared, drop the batch and re-seek.
 */
extern bool art_hazard_publish(ArtHazard *h, uint64 tid, uint64 delgen);
extern void art_hazard_clear(ArtHazard *h);

/* Calls of the interlock. */
typedef struct ArtInterlockCalls
{
	uint64		(*delgen) (Relation index);
	ArtHazard  *(*acquire) (Relation index, MemoryContext cxt);
	bool		(*publish) (ArtHazard *h, uint64 tid, uint64 delgen);
} ArtInterlockCalls;

/* The calls above, for a test that holds a TID as a scan does (test/modules/art_insidetest). */
extern PGDLLEXPORT const ArtInterlockCalls art_interlock_calls;

/*
 * End of every ambulkdelete: increment the deletion generation, fence, wait
 * for slots of other processes that show a TID of the dead set.
 */
extern void art_interlock_vacuum(Relation index, IndexBulkDeleteCallback callback,
								 void *callback_state);

/*
 * The lock that takes the place of all that when artidx is not preloaded.  A
 * private scan whose snapshot is not MVCC has it from before it reads the
 * table until its search ends.  The end wants the resource owner of the
 * beginning.
 */
extern void art_interlock_share(Relation index);
extern void art_interlock_share_end(Relation index);

/* Stripe lock of a unique check (named LWLock tranche), by hash of the key. */
extern LWLock *art_unique_stripe(Relation index, const uint8 *key, uint32 len);

/* ---- wal_flush.c ---- */

/*
 * May structures of this index outlive a crash of the server?  Then what follows
 * is owed before an entry is removed.
 */
extern bool art_outlives(Relation index);

/* Flush all WAL there is; up to where.  InvalidXLogRecPtr: recovery, nothing was done. */
extern XLogRecPtr art_flush_all(void);

/*
 * Is WAL flushed up to there?  If so, the caller may rely on it, and this is
 * written down.
 */
extern bool art_flushed(XLogRecPtr lsn);

/*
 * The heap just said that the row is dead to everybody: the LSN up to which WAL must be
 * flushed before its entry may go.  fetch: of that fetch, or NULL.
 */
struct IndexFetchTableData;
extern XLogRecPtr art_row_lsn(Relation heap, struct IndexFetchTableData *fetch,
							  ItemPointer tid);

/* ---- sql_results.c ---- */

/*
 * The row, or the rows, of a function of SQL that fills this many columns.  ERROR
 * 42P13 when the database declares it with more; fewer are fine.
 */
extern TupleDesc art_result_row(FunctionCallInfo fcinfo, int columns);
extern ReturnSetInfo *art_result_rows(FunctionCallInfo fcinfo, int columns);

#endif							/* ART_AREA_H */
