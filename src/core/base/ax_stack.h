/*
 * ax_stack.h
 *	  Hand-over stack between processes: push one, take all.
 *
 * liburcu's bare struct __cds_lfs_stack, of which only cds_lfs_push and
 * __cds_lfs_pop_all are used.  They need neither a mutex nor a grace period:
 * nothing is ever popped singly, so there is no ABA.  And they are sound in
 * memory that processes share at one address.
 *
 * Nothing else of liburcu would be better than what is here.  Its read-side
 * flavours (memb, mb, bp, qsbr) register a thread in a list of its own
 * process, and wait for the readers of that list.  A reader in another process
 * does not exist for them.  A reader that dies stays in it, where we have the
 * slots.  Both call_rcu and the hash table start threads, which a backend must
 * not have, and allocate by malloc.  The queues (wfcqueue, wfstack) let a
 * reader wait for an enqueuer between its two stores, and that may be a
 * process off its processor.  This stack has no such state.  The flavours and
 * the table are measured beside ours by test/core/bench_epoch and bench_hash.
 *
 * TSan cannot see into the library, so builds under it, and AX_NO_URCU builds,
 * take the same two operations in C11.
 *
 * src/core/base/README.md: Memory and epochs
 */
#ifndef AX_STACK_H
#define AX_STACK_H

#include "ax_latch.h"

#if defined(AX_TSAN) || defined(AX_NO_URCU)

typedef struct ax_stack_node
{
	struct ax_stack_node *next;
} ax_stack_node;

typedef struct ax_stack
{
	_Atomic(ax_stack_node *) head;
} ax_stack;

static inline void
ax_stack_init(ax_stack *s)
{
	atomic_init(&s->head, NULL);
}

/*
 * Push a node: lock-free, from any process.
 *
 * Order: the CAS releases the node's contents to whoever takes the stack.
 */
static inline void
ax_stack_push(ax_stack *s, ax_stack_node *n)
{
	ax_stack_node *old = atomic_load_explicit(&s->head, memory_order_relaxed);

	do
		__atomic_store_n(&n->next, old, __ATOMIC_RELEASE);
	while (!atomic_compare_exchange_weak_explicit(&s->head, &old, n,
												  memory_order_acq_rel,
												  memory_order_relaxed));
}

static inline ax_stack_node *
ax_stack_take_all(ax_stack *s)
{
	return atomic_exchange_explicit(&s->head, NULL, memory_order_acq_rel);
}

static inline bool
ax_stack_empty(ax_stack *s)
{
	return atomic_load_explicit(&s->head, memory_order_relaxed) == NULL;
}

#else

#include <urcu/lfstack.h>

typedef struct cds_lfs_node ax_stack_node;
typedef struct __cds_lfs_stack ax_stack;

static inline void
ax_stack_init(ax_stack *s)
{
	__cds_lfs_init(s);
}

static inline void
ax_stack_push(ax_stack *s, ax_stack_node *n)
{
	cds_lfs_push(s, n);
}

/* A chain through ->next, newest first. */
static inline ax_stack_node *
ax_stack_take_all(ax_stack *s)
{
	struct cds_lfs_head *h = __cds_lfs_pop_all(s);

	return h ? &h->node : NULL;
}

static inline bool
ax_stack_empty(ax_stack *s)
{
	return cds_lfs_empty(s);
}

#endif

/*
 * Lead a node on to another one; the node may lie where others read something else.
 *
 * Order: who reads this there, and then looks at a latch word, sees what its writer saw of that.
 */
static inline void
ax_stack_link(ax_stack_node *n, ax_stack_node *next)
{
	__atomic_store_n(&n->next, next, __ATOMIC_RELEASE);
}

#endif							/* AX_STACK_H */
