/*
 * live.h
 *	  The life of a structure: who builds it and when, for what transaction it
 *	  begins and ends, what options make of it.  This is what indexes ask for.
 *
 * src/live/README.md: Residency
 */
#ifndef ART_LIVE_H
#define ART_LIVE_H

#include "area/area.h"

/* ---- residency.c ---- */

/*
 * Make the structure READY, building it here or waiting for the one who
 * does; returns its generation.  The heap must be locked by the caller in any
 * mode.  ERROR: recovery, not preloaded (55000), memory full (53200).
 */
extern uint64 art_ensure_ready(Relation index);

/*
 * The same for a scan, which has another way.  False when the structure cannot
 * be had: not preloaded, recovery, unloaded, sealed, memory full, an index
 * that is not ready, a build that failed lately.  Errs when cancelled, for a
 * deadlock, and for what the index's own expressions raise.
 */
extern bool art_try_ready(Relation index, uint64 *gen);

/*
 * The same for the planner.  Of a temporary index: no background worker could
 * ever build it, and hidden from plans nobody else would.  Of the key that a foreign
 * key's checks look into (key_check): without it each reads the table.  False for all
 * others, and at once where a scan would not wait either.
 */
extern bool art_ready_for_plan(Relation index, bool key_check);

/* ERROR, in core's words, for a temporary index of another session. */
extern void art_refuse_other_temp(Relation index);

/* Wait until the structure is not BUILDING (VACUUM); resolves dead owners. */
extern void art_wait_not_building(Relation index, ArtEntry *e);

/*
 * For ambuild.  Resets whatever is there.  Registers the structure to be
 * dropped if this (sub)transaction aborts, and the index's other structures if
 * it commits.  Opens a new generation in state BUILDING, owned by this
 * process.  Then the caller fills it and calls end(ok).  The end with ok =
 * false (from PG_CATCH) makes it ABSENT.  Never errs for memory.  The
 * generation is 0 when there is none for a structure.  The entry is NULL when
 * there is none for that either, or the server does not preload artidx.
 */
extern uint64 art_ambuild_begin(Relation heap, Relation index, ArtEntry **e);
extern void art_ambuild_end(Relation index, ArtEntry *e, uint64 gen, bool ok,
							double ms);

/* ---- launcher_requests.c ---- */

/*
 * Ask for a background build of this database's absent indexes;
 * never waits, never errs.  For the planner, when it hides an index.
 */
extern void art_request_build(Oid indexoid);

/* ---- build_wait.c ---- */

extern void art_patience_init(void);	/* from _PG_init */

/*
 * Could a statement of this process wait for a build now, of whatever index?
 * Cheap: no, if nothing is to be built at all.
 */
extern bool art_may_await(void);

/*
 * Could it wait for this one: is it being built, or about to be, in another
 * process, or was it a moment ago and is ready?  The index is open and locked.
 * art_may_await() held when the statement began: it may no longer, once the index
 * is ready.
 */
extern bool art_awaitable(Relation index);

/*
 * Wait for it as long as that is worth it, by artidx.build_wait.  "rows" are
 * those of the table.  A statement without the index takes so much longer, in the
 * planner's units.  True when it is READY.  Errs when cancelled.
 */
extern bool art_await_build(Relation index, double rows, Cost saves);

/* ---- switch_options.c ---- */

/*
 * The options may have been altered since the structure was opened: tell it
 * its cap, or drop it when another engine is asked for.  The caller has the
 * index open and locked, and reads the state afterwards.  Never errs.
 */
extern void art_apply_options(Relation index, ArtEntry *e);

/*
 * The index's keys are compared or encoded, as the caller's relation cache has
 * it.  A structure of the other kind is dropped: no key of the one means
 * anything in the other.  Never errs.
 */
extern void art_apply_kind(Relation index, ArtEntry *e, bool compared);

/*
 * Move entries of the tail buffer into the tree, some ten thousand at most.
 * Those that cannot be moved stay, and are as much there as before.  Ends
 * early when there are interrupts; never errs.
 */
extern void art_tail_drain(ArtEntry *e, uint64 gen);

/* ---- row_type_change.c ---- */

/* The changes of a statement to row types, and to how values are stored. */
typedef struct ArtRowChange
{
	List	   *rels;			/* relations whose columns were changed */
	Oid			type;			/* a base type, or InvalidOid */
	bool		order;			/* in more than by new columns */
	bool		bytes;			/* of the base type */
	bool		retypes;		/* a column that is altered has another type */
} ArtRowChange;

/*
 * Around each statement, also one within another.  begin() forgets what the outer one has
 * changed so far, and end() brings that back, also after an error.
 */
extern ArtRowChange art_rowtype_begin(void);
extern void art_rowtype_end(const ArtRowChange *outer);

/*
 * The statement may change row types: lock the indexes that hold them.  It has done so:
 * give them new files.  In a transaction that may write.
 */
extern void art_rowtype_before(Node *stmt);
extern void art_rowtype_after(void);

#endif							/* ART_LIVE_H */
