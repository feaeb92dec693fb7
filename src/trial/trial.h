/*
 * trial.h
 *	  CALL artidx_trial(index, seconds): an art twin of a btree index is built beside it, both
 *	  answer the same questions for a while, and the twin goes.
 *
 * src/trial/README.md: A trial
 */
#ifndef ART_TRIAL_H
#define ART_TRIAL_H

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* A row of artidx_trials.  NAN: there is no such figure. */
typedef struct ArtTrialRow
{
	const char *measure;
	const char *unit;
	double		btree;
	double		art;
	int64		calls;			/* 0: it is not of calls */
	const char *remark;			/* or NULL */
} ArtTrialRow;

/* Keys that the table has, none of them with a NULL. */
typedef struct ArtTrialKeys
{
	int			ncols;
	Oid			types[INDEX_MAX_KEYS];
	int			n;
	Datum	   *values;			/* ncols a key */
} ArtTrialKeys;

/* One CALL. */
typedef struct ArtTrial
{
	MemoryContext cxt;			/* outlives the transactions */
	Oid			heapoid;
	Oid			indexoid;
	Oid			amoid;			/* of art */
	Oid			twinoid;		/* InvalidOid: there is none */
	double		seconds;		/* to measure */
	TimestampTz started;
	char	   *table;			/* as SQL names them */
	char	   *index;
	char	   *name;			/* of the index, for messages */
	Oid			schema;			/* of the extension */
	bool		unique;
	bool		constraint;		/* the index is one's */
	bool		part;			/* ... is part of a partitioned one */
	ArtTrialKeys keys;
	List	   *rows;			/* of ArtTrialRow */
	bool		differ;			/* the two have answered differently */
} ArtTrial;

/* ---- rounds.c ---- */

/* Add a row to the result. */
extern void art_trial_row(ArtTrial *t, const char *measure, const char *unit, double btree,
						  double art, int64 calls, const char *remark);

/*
 * A transaction in which nothing lasts: what is done until art_trial_undo() is rolled back,
 * and no statistics count it.  Table and index are open, and were not changed since the CALL
 * began; else ERROR.
 *
 * Locks: AccessShareLock on table and index, to the end of the transaction.
 */
extern void art_trial_try(ArtTrial *t, Relation *heap, Relation *index);
extern void art_trial_undo(ArtTrial *t, Relation heap, Relation index);

/* ---- rests.c ---- */

/* From here on the process rests nine times as long as it works, or does not.  ERROR: it cannot. */
extern void art_trial_rests(bool yes);

/*
 * Begin or end a piece that is measured, of some milliseconds.  The process rests after it, and
 * not within it.  Returns the nanoseconds that it has worked, to which other processes hardly add.
 */
extern double art_trial_measure(bool yes);

/* ---- twin.c ---- */

/*
 * One trial at a time in a database.  False: there is another.  The lock is the session's,
 * and survives errors.
 */
extern bool art_trial_lock(void);
extern void art_trial_unlock(void);

/*
 * Build the twin, and set t->twinoid.  Called and done outside of a transaction.
 *
 * Locks: ShareUpdateExclusiveLock on table and index for the session, given back at the end.
 * An ERROR leaves them to core, which releases session locks when it aborts.
 */
extern void art_twin_build(ArtTrial *t);

/*
 * Drop all twins of this database, as far as the user owns their tables.  Called and done
 * outside of a transaction, by the process that has the trial's lock.
 *
 * Locks: as art_drop_beside_writers(), and ShareUpdateExclusiveLock on each table for the
 * session, given back at the end.
 */
extern void art_twins_drop(void);

/* For a worker that visits this database: the same, if no trial is running.  False: one is. */
extern bool art_trial_leftovers(void);

/* ---- sample_keys.c ---- */

/*
 * Draw t->keys from the table, by its index.
 */
extern void art_trial_sample(ArtTrial *t);

/* ---- read_both.c ---- */

/* For so many milliseconds: let both answer.  Adds rows. */
extern void art_trial_read(ArtTrial *t, double ms);

/* ---- insert_both.c ---- */

/* For so many milliseconds: insert copies of rows into both kinds of index.  Adds rows. */
extern void art_trial_insert(ArtTrial *t, double ms);

/* ---- verdict.c ---- */

/* Is there a table for the rows?  ERROR, if the extension is an older one. */
extern void art_trial_table(const ArtTrial *t);

/* Add the verdict to the rows, and put them all into artidx_trials.  In a transaction. */
extern void art_trial_verdict(ArtTrial *t);

#endif							/* ART_TRIAL_H */
