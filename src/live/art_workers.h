/*
 * art_workers.h
 *	  The life of structures, inside: transactions' ends, background workers and
 *	  their launcher, what is kept over a restart.
 *
 * src/README.md: The launcher and its workers
 */
#ifndef ART_WORKERS_H
#define ART_WORKERS_H

#include "area/art_shared.h"

/* ---- art_residency.c ---- */

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

/* ---- art_lifecycle.c ---- */

extern void art_lifecycle_init(void);

/* ---- art_rowtype.c ---- */

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

/* ---- art_save.c ---- */

extern bool art_save_at_shutdown;

extern void art_saved_init(void);	/* from _PG_init, preloading */

/* ---- art_load.c ---- */

extern bool art_load_registered;

/*
 * Give up what the loader never came for; for the launcher, now and then.
 * Cheap when there is nothing.  No lock held.
 */
extern void art_load_expire(void);

/* ---- art_ask.c ---- */

extern bool art_autobuild;
extern int	art_build_workers;

/* There is no place for it in the server: set before all processes are forked. */
extern bool art_launcher_refused;

extern bool art_launcher_lives(void);
extern bool art_no_worker(void);
struct BackgroundWorker;
extern void art_define_worker(struct BackgroundWorker *worker, const char *name,
							  const char *function);
extern bool art_register_worker(struct BackgroundWorker *worker);
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

/* ---- art_launcher.c ---- */

extern void art_background_settings(void);

/*
 * An absent structure (or one whose build was left) that a worker could make
 * now, or a build it could help with; kept by identity.
 */
typedef struct ArtWork
{
	Oid			db;
	Oid			indexoid;
	Oid			heapoid;
	Oid			owner;			/* the role */
	ArtLocator	loc;
	bool		urgent;			/* a statement waits */
	bool		unique;
	bool		planned;		/* a plan would have used it */
	bool		failed;			/* with an error, when it was tried last */
	bool		help;			/* another worker has it in hand */
	bool		ready;			/* the launcher: a worker may go to the database */
	bool		taken;			/* the launcher: a worker has it, or will take it */
	uint32		uses;
	uint32		used_at;
	uint64		size;
} ArtWork;

extern void art_launcher_settings(void);	/* from _PG_init */
extern void art_launcher_init(void);	/* the same, preloading */
extern int	art_find_work(Oid db, Oid owner, ArtWork **work);
extern void art_not_before(Oid indexoid, const ArtLocator *loc, int delay_ms,
						   bool wanted_no_more);

/* ---- art_turns.c ---- */

/*
 * Mark what has a worker, or will be taken by one that has nothing in hand yet.  A worker
 * takes the first work of its database and owner.
 */
extern void art_turns_mark(ArtWork *work, int n, const ArtWorkerSlot *slots);

/*
 * Which of the work is to have a free slot; -1: none.  pressing: only what a statement waits
 * for, or who has waited for a turn.
 */
extern int	art_turns_next(const ArtWork *work, int n, const ArtWorkerSlot *slots,
						   bool pressing);

/*
 * All slots were given that can be given.  full: there is none left; then end the turns
 * of workers for those that wait.  visit: a database that waits for a visit.  Returns whether
 * somebody waits.
 */
extern bool art_turns_end(const ArtWork *work, int n, const ArtWorkerSlot *slots, bool full,
						  Oid visit);

/* ---- art_watch.c ---- */

/*
 * For the launcher, about every second: cancel what evaluates an expression for too long, or
 * is in the way of others.  wanted: others wait for a slot.
 */
extern void art_watch_all(bool wanted);

/* ---- art_patience.c ---- */

/* Will somebody build what is absent, for all that is known now? */
extern bool art_is_coming(ArtState state, ArtReason reason);

/* Is there any such index?  Looks through the whole directory. */
extern bool art_any_coming(void);

/* ---- art_worker.c ---- */

/*
 * From _PG_init: who checks a structure that was kept over a crash, a piece at a call
 * (art_recheck.c says how).
 */
extern void art_check_kept_by(bool (*fn) (Relation index, uint64 gen, void **at,
										  MemoryContext cxt));

/* ---- art_updater.c ---- */

/*
 * For the launcher, now and then: start the updater where search layers are behind and there
 * is none.  Cheap when there is nothing to do.
 */
extern void art_updater_start(void);

/* ---- art_slots.c ---- */

extern int	art_worker_reserve(Oid dboid, Oid owner, int jobs, uint32 drops, uint32 *seq);
extern void art_worker_release(int slot, uint32 seq);
extern bool art_worker_attach(int slot, uint32 seq, ArtWorkerSlot *copy);
extern void art_worker_detach(int slot, uint32 seq, bool worked);
extern bool art_worker_claim(int slot, const ArtWork *w);
extern bool art_worker_barred(Oid dboid);

/*
 * Keep our workers out of a database until this transaction is over.  Where
 * there is no room to say so, the command waits for them as for anybody.
 */
extern void art_bar(Oid dboid);
extern void art_bars_xact_end(void);
extern void art_end_workers(Oid dboid);

/* ---- art_prepared.c ---- */

/* PREPARE TRANSACTION begins, under a name of this hash. */
extern uint64 art_prepared_hash(const char *gid);
extern void art_prepared_begin(uint64 gid);

/* It leaves something in doubt. */
extern void art_prepared_doubt(void);

/* Has this database had one whose name is not known?  settled: nothing is in doubt. */
extern bool art_prepared_nameless(bool settled);

/* A transaction of this name is over: did it leave something in doubt? */
extern bool art_prepared_over(uint64 gid);

/* ---- art_hot.c ---- */

typedef struct ArtHot
{
	Oid			indexoid;
	ArtLocator	loc;
	uint32		uses;
	uint32		used_at;
	uint64		bytes;
} ArtHot;

extern int	art_hot_read(ArtHot **hot);
extern bool art_hot_write(const ArtHot *hot, int n, int elevel);
extern int	art_hot_cmp(const void *a, const void *b);
extern const ArtHot *art_hot_find(const ArtHot *hot, int n, Oid indexoid,
								  const ArtLocator *loc);

/* ---- art_switch.c ---- */

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

/* ---- art_swapped.c ---- */

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

#endif							/* ART_WORKERS_H */
