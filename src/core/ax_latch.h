/*
 * ax_latch.h
 *	  The optimistic latch: one 64-bit word.
 *
 *	  63..21 version | 20..3 owner slot + 1 while LOCKED | 2 WAITERS |
 *	  1 LOCKED | 0 OBSOLETE
 *
 * A reader samples the word, reads, fences and compares: equal means that
 * nothing it read changed.  A writer makes the word LOCKED by CAS from the
 * sample its decisions rest on.  LOCKED is transient (wait for it), OBSOLETE
 * is final (start over): the two never share a wait loop.  Unlock is always a
 * read-modify-write, since a waiter's CAS may have set WAITERS a moment before.
 * Seqlock fences after Boehm, "Can seqlocks get along with programming
 * language memory models?" (2012), figure 6.
 */
#ifndef AX_LATCH_H
#define AX_LATCH_H

#include <stdatomic.h>

#include "ax.h"

typedef _Atomic uint64_t ax_word;

#define AX_OBSOLETE		UINT64_C(1)
#define AX_LOCKED		UINT64_C(2)
#define AX_WAITERS		UINT64_C(4)
#define AX_OWNER_SHIFT	3
#define AX_OWNER_MASK	(UINT64_C(0x3FFFF) << AX_OWNER_SHIFT)
#define AX_VERSION_ONE	(UINT64_C(1) << 21)
#define AX_WORD_INIT	AX_VERSION_ONE	/* unlocked, version 1 */

/*
 * TSan does not model fences: under it the validating load is a
 * read-modify-write, and racing bytes are read by atomic accesses (ax_racy_*).
 */
#if defined(__SANITIZE_THREAD__)
#define AX_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define AX_TSAN 1
#endif
#endif

static inline uint64_t
ax_word_read(ax_word *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

/* Nothing that was read since the sample v changed. */
static inline bool
ax_word_valid(ax_word *w, uint64_t v)
{
#ifdef AX_TSAN
	return atomic_fetch_add_explicit(w, 0, memory_order_acq_rel) == v;
#else
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(w, memory_order_relaxed) == v;
#endif
}

/*
 * Wait while the word is LOCKED: about two microseconds of pauses, a few
 * yields, then WAITERS and sleep, at most 10 ms in all.  Returns a word that
 * is not LOCKED (it may be OBSOLETE) and AX_OK, or AX_BUSY.  Never call with a
 * latch held, but in the pessimistic top-down order.
 */
extern ax_status ax_word_wait(ax_ctx *cx, ax_word *w, uint64_t *v);


/* The pessimistic way: wait, then lock.  AX_STALE when OBSOLETE. */
extern ax_status ax_word_lock(ax_ctx *cx, ax_word *w, uint64_t *v);

/* Wake everybody who sleeps on the word. */
extern void ax_word_wake(ax_ctx *cx, ax_word *w);

#endif							/* AX_LATCH_H */
