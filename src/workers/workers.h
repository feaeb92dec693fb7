/*
 * workers.h
 *	  The life of structures, inside: transactions' ends, background workers and
 *	  their launcher, what is kept over a restart.
 *
 * src/workers/README.md: The launcher and its workers
 */
#ifndef ART_WORKERS_H
#define ART_WORKERS_H

#include "area/shared_state.h"

/* ---- launcher.c ---- */

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

/*
 * Everything that a worker could do now in a database (InvalidOid: in all), in order: an
 * array in the current context.  For one owner, unless that is InvalidOid.  Returns how
 * many there are.  Takes the partition locks, one after the other.
 */
extern int	art_find_work(Oid db, Oid owner, ArtWork **work);

/*
 * Workers leave the structure alone for so many milliseconds.  wanted_no_more: nobody
 * waits for it any longer, either.  Takes the partition lock.
 */
extern void art_not_before(Oid indexoid, const ArtLocator *loc, int delay_ms,
						   bool wanted_no_more);

/* ---- fair_turns.c ---- */

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

/* ---- watchdog.c ---- */

/*
 * For the launcher, about every second: cancel what evaluates an expression for too long, or
 * is in the way of others.  wanted: others wait for a slot.
 */
extern void art_watch_all(bool wanted);

/* ---- database_worker.c ---- */

/*
 * From _PG_init: who checks a structure that was kept over a crash, a piece at a call
 * (check_after_crash.c says how).
 */
extern void art_check_kept_by(bool (*fn) (Relation index, uint64 gen, void **at,
										  MemoryContext cxt));

/*
 * From _PG_init: who drops what a trial has left in this database when its process ended.
 * Called outside of a transaction.  False: something is left, to be tried again later.
 */
extern void art_leftovers_by(bool (*fn) (void));

/* ---- hydra_updater.c ---- */

/*
 * For the launcher, now and then: start the updater where search layers are behind and there
 * is none.  Cheap when there is nothing to do.
 */
extern void art_updater_start(void);

/* ---- worker_slots.c ---- */

/*
 * For the launcher: take a free slot, and *seq is its worker's number.  -1: there is none,
 * the database is barred, or one was dropped since the launcher counted so many drops.
 * Takes the chunk lock.
 */
extern int	art_worker_reserve(Oid dboid, Oid owner, int jobs, uint32 drops, uint32 *seq);

/* The worker could not be started: free its slot.  Takes the chunk lock. */
extern void art_worker_release(int slot, uint32 seq);

/*
 * In a new worker, whose main function has that argument: take over the slot of that number, and copy
 * it.  False when it is another worker's by now, or its database is barred; visits to a barred
 * one are asked for again.  Takes the chunk lock.
 */
extern bool art_worker_attach(Datum arg, ArtWorkerSlot *copy);

/*
 * The worker exits: free its slot.  worked: it came to build.  Visits that it did not
 * finish are asked for again.  Takes the chunk lock.
 */
extern void art_worker_detach(int slot, uint32 seq, bool worked);

/*
 * Say that this worker builds the index now (NULL: none).  False when another worker does
 * already; a help is not exclusive.  Takes the chunk lock.
 */
extern bool art_worker_claim(int slot, const ArtWork *w);

/*
 * End the workers of a database, which is barred, and wait until they are gone: at most 20
 * s, interruptible.  Takes the chunk lock; the caller holds no lock of the directory.
 */
extern void art_end_workers(Oid dboid);

#endif							/* ART_WORKERS_H */
