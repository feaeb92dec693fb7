/*
 * ax_latch.h
 *	  The optimistic latch: one 64-bit word, with a queue of writers where one
 *	  is wanted.
 *
 *	  63..25 version | 24..4 tail of the queue, 0: none | 3 CLOSED |
 *	  2 WAITERS | 1 LOCKED | 0 OBSOLETE
 *
 * LOCKED keeps writers out, CLOSED readers.  A reader samples the word, reads,
 * fences and compares: the same version and still not CLOSED means that
 * nothing it read changed.  So readers are admitted beside a writer that holds
 * the latch but has not begun to write ("adjustable opportunistic read").
 * They are also admitted between one writer and the next, whoever queues
 * ("opportunistic read").  A latch that is given back unchanged restarts
 * nobody.
 *
 * A writer makes the word LOCKED by CAS, at the version its decisions rest on.
 * That is ax_word_trylock, the upgrade, which is refused while anybody holds
 * the latch.  Or it does so whatever the version is, waiting its turn
 * (ax_word_acquire).  LOCKED is transient (wait for it), OBSOLETE is final
 * (start over): the two never share a wait loop.
 *
 * The queue is after OptiQL (Shi, Yan, Wang, "OptiQL: Robust Optimistic
 * Locking for Memory-Optimized Indexes", SIGMOD 2024).  It is FIFO, each
 * waiter spinning on a line of its own, eight bytes a latch.  It differs in
 * what the paper excludes, more processes than cores.  The latch is never
 * handed to anybody.  The head of the queue takes it when it is open, so the
 * holder was running when it got it.  The holder needs no queue node, and its
 * release is one addition that waits for nobody.  A waiter that has spun for
 * about two microseconds leaves, and who finds the latch open but its queue
 * asleep goes ahead.
 *
 * Seqlock fences after Boehm, "Can seqlocks get along with programming
 * language memory models?" (2012), figure 6.
 *
 * src/core/base/README.md: Latches, restarts, waiting
 */
#ifndef AX_LATCH_H
#define AX_LATCH_H

#include <stdatomic.h>

#include "core/ax.h"

typedef _Atomic uint64_t ax_word;

#include "ax_map.h"

#define AX_OBSOLETE		UINT64_C(1)
#define AX_LOCKED		UINT64_C(2)
#define AX_WAITERS		UINT64_C(4)
#define AX_CLOSED		UINT64_C(8)
#define AX_TAIL_SHIFT	4
#define AX_TAIL_MASK	(UINT64_C(0x1FFFFF) << AX_TAIL_SHIFT)
#define AX_VERSION_ONE	(UINT64_C(1) << 25)
#define AX_FLAGS		(AX_VERSION_ONE - 1)	/* all that is not version */
#define AX_VERSION_MASK (~AX_FLAGS)
#define AX_KEEP_OUT		(AX_CLOSED | AX_OBSOLETE)	/* of readers */
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

#ifndef AX_MAP_RWLOCKS
static inline uint64_t
ax_word_read(ax_word *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

/* Nothing that was read since the sample v, which admits readers, changed. */
static inline bool
ax_word_valid(ax_word *w, uint64_t v)
{
	uint64_t	now;

#ifdef AX_TSAN
	now = atomic_fetch_add_explicit(w, 0, memory_order_acq_rel);
#else
	atomic_thread_fence(memory_order_acquire);
	now = atomic_load_explicit(w, memory_order_relaxed);
#endif
	return ((now ^ v) & (AX_VERSION_MASK | AX_KEEP_OUT)) == 0;
}
#endif							/* AX_MAP_RWLOCKS */

/*
 * The rest of sampling, when *v, just read, is more than a version: wait while
 * it is CLOSED.  AX_OK and a sample that admits readers; AX_STALE: obsolete;
 * AX_BUSY.
 */
extern ax_status ax_word_sample(ax_ctx *cx, ax_word *w, uint64_t *v);

/*
 * Wait while the word is CLOSED, at most 10 ms in all: two microseconds of pauses,
 * about, some yields, some naps, WAITERS and sleep.  Returns a word that is not
 * CLOSED (it may be OBSOLETE) and AX_OK, or AX_BUSY.  Never call with a latch held,
 * but in the pessimistic top-down order.
 */
extern ax_status ax_word_wait(ax_ctx *cx, ax_word *w, uint64_t *v);

/*
 * Wait as ax_word_wait() until nobody holds the word, then lock, LOCKED and CLOSED;
 * first come first served is left to chance.  *v: the word as it was before.
 *
 * Latches: the word's on AX_OK.
 * Returns: AX_STALE when OBSOLETE; AX_BUSY after a wait of some 10 ms.
 */
extern ax_status ax_word_lock(ax_ctx *cx, ax_word *w, uint64_t *v);

/*
 * As ax_word_lock(), through the queue.  shared: LOCKED only; readers go on until
 * ax_word_close().
 *
 * Epoch: inside.
 * Latches: the word's on AX_OK.
 * Returns: AX_STALE when OBSOLETE; AX_BUSY after some 10 ms, or when this call has
 * napped and blocks the epoch.
 * Source: Shi, Yan, Wang, OptiQL (SIGMOD 2024).
 */
extern ax_status ax_word_acquire(ax_ctx *cx, ax_word *w, bool shared, uint64_t *v);

/* Wake everybody who sleeps on the word. */
extern void ax_word_wake(ax_ctx *cx, ax_word *w);

/* ---- the queue's nodes ----
 *
 * AX_QNODES a slot, in the slot itself; number (slot * AX_QNODES + k + 1)
 * stands for node k.  As a rule a process has at most two in use at a time.
 * It left one behind in a queue, until the head passes over it; it waits with
 * the other.
 */
#define AX_QNODES 4

typedef struct ax_qnode
{
	_Alignas(64) _Atomic uint32_t state;	/* see below */
	_Atomic uint32_t next;		/* number; 0: none yet, the owner's; then a successor's
								 * exchange, or by CAS AX_Q_HANDED, the head's */
} ax_qnode;

enum
{
	AX_Q_FREE,					/* its owner may use it, and makes it WAITING */
	AX_Q_WAITING,				/* in a queue, somewhere behind the head: by CAS the
								 * head before makes it HEAD, or the owner LEFT */
	AX_Q_HEAD,					/* the head of its queue: takes the latch next; the
								 * owner frees it */
	AX_Q_LEFT					/* still linked, but nobody waits there: the head that
								 * passes over it frees it */
};

/* next: the node's owner is gone; who links behind it is the head. */
#define AX_Q_HANDED UINT32_MAX

#endif							/* AX_LATCH_H */
