/*
 * limits.h
 *	  Memory that is full: who gives way, and what indexes hold beyond what they need.
 *
 * src/limits/README.md: Memory full
 */
#ifndef ART_LIMITS_H
#define ART_LIMITS_H

#include "area/area.h"

/* a build that failed for memory is not retried before; on a primary it is, when some came free */
#define ART_MEMORY_RETRY_MS 10000

/* ---- memory_full.c ---- */

/*
 * A core call on this structure said AX_NOMEM.  True: there may be room now,
 * start over from reading the state (this very index may have been sealed
 * meanwhile).  False: nothing is to be had.  The caller holds no stripe,
 * epoch or critical section; waits at most some 100 ms, interruptible.  May
 * seal another index, with a WARNING.
 */
extern bool art_make_room(Relation index, ArtEntry *e, uint64 gen, ArtRoomFor what);

/*
 * Seal: READY -> ABSENT, out of plans, its memory freed; a WARNING.  Does
 * nothing when the generation is gone already.
 */
extern void art_seal(Relation index, ArtEntry *e, uint64 gen);

/* The same for a given reason. */
extern void art_seal_for(Relation index, ArtEntry *e, uint64 gen, ArtFull full);

/*
 * The directory entry of an index's current physical identity, made if it is
 * not there.  ERROR 53200 when there is no memory even for that.  The pointer
 * is good for as long as the caller has the relation open (an entry is only
 * recycled when its index is gone).
 */
extern ArtEntry *art_entry(Relation index);

/*
 * ERROR 53200, which tells what is full: for an absent index what it was absent
 * for, else what art_make_room found last in this process.
 */
extern void art_report_nomem(Relation index) __attribute__((noreturn));

/*
 * The same ERROR, for CREATE UNIQUE INDEX CONCURRENTLY.  Its second phase needs the
 * structure, so it ends here, where nobody has to insert into the index yet.
 */
extern void art_report_unbuilt(Relation index) __attribute__((noreturn));

/*
 * ERROR 53200 if the unique index holds more than its max_memory, so that it takes no row.
 * Takes the partition lock.
 */
extern void art_refuse_over_cap(Relation index, ArtEntry *e);

/* The limit that was full when this process last called art_make_room. */
extern ArtFull art_refused(void);

/*
 * ambuild ended without a structure for want of memory: sealed, with a
 * WARNING. e NULL: not even an entry could be had. bytes: how many it would
 * have taken, about; 0: not known.  The full limit is the one that
 * art_make_room has found.
 */
extern void art_ambuild_unbuilt(Relation index, ArtEntry *e, uint64 bytes);

/* "31 MB", palloc'd. */
extern char *art_size(uint64 bytes);

/*
 * A sealed (or otherwise absent) structure may be built again in the
 * background: its back-off is over and there seems to be room for it.  Reads
 * without a lock.
 */
extern bool art_room_again(const ArtEntry *e, uint64 free_bytes,
						   uint64 all_bytes);

/*
 * Something took, or failed with, so many bytes of all there are.  How much
 * should be free before it is tried again in the background: a quarter more.
 * But no more than half of the way to all, or what takes nearly everything
 * would never come back.
 */
extern uint64 art_room_wanted(uint64 bytes, uint64 all_bytes);

/*
 * Is this sealed index a temporary one that its session may build again now?
 * (All others the launcher brings back.)
 */
extern bool art_unseal_now(const ArtEntry *e);

/* artidx_unload, and what artidx_build undoes of it and of sealing. */
extern void art_unload(Relation index);
extern void art_reload(Relation index);

struct ArtGroup;

/* ---- surplus.c ---- */

/* VACUUM's passes over a structure, which give back what it does not need. */
extern void art_compact_index(ax_tree *tree, uint64 gen);

/*
 * A process is about to be refused memory.  There were "before" bytes of it, or of the
 * group's if its limit is what is full.  Compact, for at most so many milliseconds, what
 * holds most beyond what it needs.  True: there is more now.  Checks for interrupts.
 */
extern bool art_compact_for_room(const struct ArtGroup *group, uint64 before, int ms);

/*
 * An index is at its own cap: compact it, for at most so many milliseconds.  True: it
 * holds less than before.  Checks for interrupts.
 */
extern bool art_compact_for_cap(ax_tree *tree, uint64 gen, int ms);

/*
 * For the launcher: some of the compaction of what holds more than half as much again as
 * its objects take.  Returns for how many milliseconds the launcher can sleep, at most
 * "pause".
 */
extern int	art_compact_background(int pause);

#endif							/* ART_LIMITS_H */
