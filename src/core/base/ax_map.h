/*
 * ax_map.h
 *	  The optimistic latch mapped to locks that a lock checker knows.  Builds with
 *	  AX_MAP_RWLOCKS only, for helgrind; the other half is in test/core/map.c.
 *
 * Each latch word gets two locks in a table beside the area: one for LOCKED,
 * held by one, and one for CLOSED, which readers share.  To sample a word is
 * to take the latter shared.  The version cannot move until the guard is
 * closed, the operation starts over or leaves the epoch, so validation is true
 * by itself.  To latch is to give up the share, to take both, and to fail if
 * the version moved in between.  A writer beside whom readers are still
 * admitted has the first lock and a share of the second.  So a store without
 * the latch, a store before ax_word_close(), and a read of anything not
 * sampled are races.  A checker sees them, whatever the versions would have
 * made good.  ROWEX's readers sample nothing: it cannot be mapped.
 *
 * Under a coarse latch the words are not mapped.  There that one latch keeps
 * readers and writers apart, and the checker is told of that one.
 *
 * src/core/base/README.md: Latches, restarts, waiting
 */
#ifndef AX_MAP_H
#define AX_MAP_H

#ifdef AX_MAP_RWLOCKS

struct ax_area;

/* A word that admits readers, now held shared; CLOSED: none to be had in 10 ms. */
extern uint64_t ax_word_read(ax_word *w);

/* Has the version not moved since the sample?  True by itself while the share is held. */
extern bool ax_word_valid(ax_word *w, uint64_t v);
#define ax_word_take(cx, w, v) false	/* there is ax_word_acquire() */

/* Give up the share, take both locks; false, with none, if the version moved. */
extern bool ax_word_trylock(ax_ctx *cx, ax_word *w, uint64_t v);

/* Wait for the readers to go: the second lock alone. */
extern void ax_word_close(ax_word *w);

/* Give back a latch beside which readers were admitted. */
extern void ax_word_release(ax_ctx *cx, ax_word *w);

/* Give both locks back; changed: the version moves. */
extern void ax_word_unlock(ax_ctx *cx, ax_word *w, bool changed);

/* As ax_word_unlock(), of an object that is obsolete from now on. */
extern void ax_word_unlock_obsolete(ax_ctx *cx, ax_word *w);

/* No more reads under the sample of w: its share goes. */
extern void ax_map_unshare(ax_word *w);

/* No more reads under any sample: all shares of this thread go. */
extern void ax_map_unshare_all(void);

/* A coarse latch was taken, by a writer or by a reader. */
extern void ax_map_coarse_taken(void *latch, bool writer);

/* A coarse latch is about to be given back. */
extern void ax_map_coarse_given(void *latch, bool writer);

/* The area begins to be used: its table of locks is made. */
extern void ax_map_area(struct ax_area *a);

/*
 * The bytes are given to a new owner as new: an order by epochs, which the checker
 * cannot see.  An access that comes late still races with what the new owner does.
 */
extern void ax_map_new_memory(void *p, size_t n);

/*
 * The bytes are shared by atomic operations alone, or handed over by exchanges: they
 * are not to be checked.
 */
extern void ax_map_unchecked(void *p, size_t n);

#else

#define ax_map_unshare(w)					((void) 0)
#define ax_map_unshare_all()				((void) 0)
#define ax_map_coarse_taken(latch, writer)	((void) 0)
#define ax_map_coarse_given(latch, writer)	((void) 0)
#define ax_map_area(a)						((void) 0)
#define ax_map_new_memory(p, n)				((void) 0)
#define ax_map_unchecked(p, n)				((void) 0)

#endif
#endif							/* AX_MAP_H */
