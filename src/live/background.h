/*
 * background.h
 *	  The life of structures, as background workers and the ends of transactions see it.
 *
 * src/live/README.md: Residency
 */
#ifndef ART_LIVE_BACKGROUND_H
#define ART_LIVE_BACKGROUND_H

#include "area/shared_state.h"

/* ---- residency.c ---- */

typedef enum ArtBuildResult
{
	ART_BUILT_READY,
	ART_BUILT_BUSY,				/* somebody else builds: art_build_help */
	ART_BUILT_GAVE_WAY,			/* somebody wants a lock; go on later */
	ART_BUILT_NOMEM,
	ART_BUILT_STALE				/* dropped or replaced meanwhile, or not to be
								 * built */
} ArtBuildResult;

/*
 * In a background worker, in a transaction, AccessShareLock held on heap and
 * index: build it, or go on with a build that was left.  Never waits for
 * another builder.  Errs for what the index's expressions raise, and when
 * cancelled.
 */
extern ArtBuildResult art_build_in_worker(Relation index);

/*
 * The same, but take part in a build that somebody else owns, until nothing
 * is left to claim in it.  False when there was nothing, or it had to leave.
 */
extern bool art_build_help(Relation index);

/* ---- lifecycle.c ---- */

/*
 * Put in the hooks, and register the ends of transactions.  Called once, when the library
 * is preloaded.
 */
extern void art_lifecycle_init(void);

/* ---- row_type_change.c ---- */

/* Is it an index of our access method?  Of others nothing is to be done. */
extern bool art_is_ours(Oid indexoid);

typedef enum ArtColumnChange
{
	ART_COLUMN_ADDED,
	ART_COLUMN_DROPPED,
	ART_COLUMN_ALTERED			/* its type, or something else */
} ArtColumnChange;

/* A relation has such a change.  In a transaction. */
extern void art_rowtype_note(Oid relid, ArtColumnChange what);

/* Forget all that; what is left to do was done before. */
extern void art_rowtype_xact_end(void);

/* ---- launcher_requests.c ---- */

/* There is no place for it in the server: set before all processes are forked. */
extern bool art_launcher_refused;

/* Does the launcher run? */
extern bool art_launcher_lives(void);

/* Is there no process to build in the background, though the settings ask for it? */
extern bool art_no_worker(void);

/*
 * Make the launcher look at the directory now.  Does nothing if there is none.  The library
 * is preloaded.
 */
extern void art_launcher_wake(void);

/*
 * A statement is about to wait for the structure: build it in a worker before
 * everything else.  False when there can be none: the caller builds itself.
 * Never errs.
 */
extern bool art_request_worker(ArtEntry *e);
extern void art_ask(Oid dboid, int jobs, int delay_ms);

/*
 * Have an absent index built in the background, if it is not wanted yet; one without an
 * entry after a visit to the database.  The caller knows that workers may build.
 */
extern void art_request_absent(Oid indexoid, const ArtLocator *loc);
extern void art_ask_databases(void);
extern void art_database_gone(Oid dboid);

/* ---- worker_process.c ---- */

struct BackgroundWorker;

/*
 * Fill in a worker of ours: "artidx" and its name, and the function that it runs.  The
 * worker has the shared memory, connects to a database, starts as soon as anybody may
 * read, and is not restarted.  The caller changes what is otherwise.
 */
extern void art_define_worker(struct BackgroundWorker *worker, const char *name,
							  const char *function);

/*
 * In the postmaster, while libraries are preloaded: register a worker.  False when
 * max_worker_processes has no place for it; core only writes a LOG line.
 */
extern bool art_register_worker(struct BackgroundWorker *worker);

/*
 * A worker's process begins: SIGTERM ends it where interrupts are checked, and SIGHUP has the
 * settings read again.  Without our shared memory it ends.
 */
extern void art_worker_begin(void);

/*
 * Connect to a database (InvalidOid: to none), and to the area.  Settings that are meant for
 * sessions, and would harm in the background, are overridden before.
 */
extern void art_worker_connect(Oid dboid);

/*
 * Between two pieces of work: interrupts are checked, and the settings are read again if
 * somebody asked for that (true).
 */
extern bool art_worker_between(void);

/*
 * The main loop.  turn() does a piece of the work, in that memory context, which is empty each
 * time.  It returns for how many milliseconds the process sleeps then, 0: not at all.  Its
 * latch wakes it, also if it was set during the turn.  Less than 0: its work is done,
 * and it ends.
 */
extern void art_worker_loop(long (*turn) (void), MemoryContext cxt,
							uint32 wait_event) __attribute__((noreturn));

/* ---- build_wait.c ---- */

/* Will somebody build what is absent, for all that is known now? */
extern bool art_is_coming(ArtState state, ArtReason reason);

/* Is there any such index?  Looks through the whole directory. */
extern bool art_any_coming(void);

/* ---- prepared_xacts.c ---- */

/* PREPARE TRANSACTION begins, under a name of this hash. */
extern uint64 art_prepared_hash(const char *gid);
extern void art_prepared_begin(uint64 gid);

/* PREPARE TRANSACTION leaves something in doubt. */
extern void art_prepared_doubt(void);

/* Has this database had one whose name is not known?  settled: nothing is in doubt. */
extern bool art_prepared_nameless(bool settled);

/* A transaction of this name is over: did it leave something in doubt? */
extern bool art_prepared_over(uint64 gid);

/* ---- switch_options.c ---- */

/*
 * The engine that the catalog asks for; false when there is no such index.  In
 * a transaction.
 */
extern bool art_catalog_engine(Oid indexoid, ArtEngine *want);

/*
 * Options of the index are about to be committed: an index that has more than
 * its max_memory is sealed, or refuses rows from now on.  In a transaction.
 */
extern void art_apply_cap(Oid indexoid);

/*
 * ALTER INDEX ... SET of this index was committed, and now asks for this.
 * NULL: not known, and the next process to open the index looks.  Or it was
 * rolled back, which may take back what was applied meanwhile.  No catalog
 * access; never errs.
 */
extern void art_index_altered(Oid indexoid, const ArtEngine *want);

/* ---- database_bars.c ---- */

/* Is the database barred to workers?  Takes the chunk lock; of the second the caller has it. */
extern bool art_worker_barred(Oid dboid);
extern bool art_barred(Oid dboid);

/*
 * Keep our workers out of a database until this transaction is over.  Where
 * there is no room to say so, the command waits for them as for anybody.
 */
extern void art_bar(Oid dboid);
extern void art_bars_xact_end(void);

/* ---- exchanged_files.c ---- */

/* The file that the row of pg_class, as this command left it, gives to a relation. */
extern bool art_new_locator(Oid relid, ArtLocator *loc);

/*
 * Which indexes have exchanged their files in this transaction?  It notes what the commit
 * is to do: move structures, and have those built that get none.  Called before the end of
 * the transaction, and before one of them is dropped.
 */
extern void art_swapped_look(void);

/* The transaction commits: this is before all that it left to the commit.  Never errs. */
extern void art_swapped_commit(void);
extern void art_swapped_init(void);

#endif							/* ART_LIVE_BACKGROUND_H */
