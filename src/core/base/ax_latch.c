/*
 * ax_latch.c
 *	  The slow side of the latch word: queueing, waiting, waking.
 *
 * Latches are held for nanoseconds.  But their holders are processes, more of them
 * than processors, and the kernel may take one off its processor at any
 * instruction.  So nobody spins for more than about two microseconds.  No latch is
 * ever granted to a process that may be asleep: one that is awake when the word
 * opens takes it.
 *
 * Where several processes want one latch all the time, taking turns at it is the
 * slowest way.  For the lines of the node then travel with each turn.  A process
 * that met contention twice in a short while therefore naps, and the others work in
 * their processor's cache.  When it is back it has a credit of some time, in which
 * others nap.
 *
 * src/core/base/README.md: Latches, restarts, waiting
 */
#include "ax_area.h"

#define WAIT_NS		UINT64_C(10000000)	/* then AX_BUSY */
#define WAIT_YIELDS 3
#define WAIT_NAPS	4

/* contention twice in HOT_NS: nap; no second nap for CREDIT_NS */
#ifndef AX_HOT_NS
#define AX_HOT_NS		UINT64_C(20000)
#endif
#ifndef AX_CREDIT_NS
#define AX_CREDIT_NS	UINT64_C(60000)
#endif
#define FORGET_NS		UINT64_C(10000000)
#ifndef AX_NAP_MAX_US
#define AX_NAP_MAX_US	1000
#endif

/* An open latch whose queue does not move for 1/BARGE of the spinning time. */
#ifndef AX_BARGE
#define AX_BARGE	8
#endif

/* The half of the word that holds the flags and the tail. */
static inline uint32_t *
futex_half(ax_word *w)
{
	return (uint32_t *) (void *) w;	/* the lower one: little-endian */
}

/* ---- sleeping ---- */

/*
 * Sleep until the word is another, or the time is over.
 *
 * Epoch: inside or outside.
 */
static void
sleep_on(ax_ctx *cx, uint32_t *word, uint32_t expected, uint32_t us)
{
	ax_ctx_body *b = ax_body(cx);
	const ax_port *port = b->port;

	ax_section_refuse(cx);
	if (b->cur && ax_inside(b))
		AX_COUNT(cx, b->cur, parks, 1);
	if (port->wait_begin)
		port->wait_begin();
	port->park(word, expected, us);
	if (port->wait_end)
		port->wait_end();
}

void
ax_nap(ax_ctx *cx, uint32_t turn)
{
	uint32_t	us = turn < 5 ? 50u << turn : AX_NAP_MAX_US;
	ax_slot    *slot = ax_body(cx)->slot;

	ax_body(cx)->nap_pin = atomic_load_explicit(&slot->epoch, memory_order_relaxed);
	sleep_on(cx, &ax_body(cx)->slot->nap, 0, us < AX_NAP_MAX_US ? us : AX_NAP_MAX_US);
}

/*
 * Has this call napped, and the epoch moved meanwhile?  Then it cannot move
 * again before the call is over, and nothing that others retire comes back: no
 * more naps for the sake of others.  (The holder that we wait for is inside,
 * too, but in a row of them each came later.)
 */
static bool
call_overstays(const ax_ctx_body *b)
{
	uint64_t	pin = atomic_load_explicit(&b->slot->epoch, memory_order_relaxed);

	return pin != 0 && pin == b->nap_pin &&
		atomic_load_explicit(&b->area->epoch, memory_order_relaxed) != pin;
}

void
ax_contended(ax_ctx *cx)
{
	ax_ctx_body *b = ax_body(cx);
	uint64_t	now;

	if (ax_unlikely(b->elide.undone))
	{
		b->elide.undone = false;	/* our own doing */
		return;
	}
	now = b->port->now_ns();
	if (now - b->contended_at > FORGET_NS)
		b->naps = 0;
	/* with a latch held (what is above, the pessimistic way): others wait for us */
	if (now - b->contended_at < AX_HOT_NS && now >= b->credit_until && b->latches == 0 &&
		!call_overstays(b))
	{
		ax_nap(cx, b->naps / 2);
		if (b->naps < 10)
			b->naps++;
		now = b->port->now_ns();
		b->credit_until = now + AX_CREDIT_NS;
	}
	b->contended_at = now;
}

#ifndef AX_MAP_RWLOCKS

/*
 * Wait until the word has none of the bits "mask".  *deadline is 0 at first; the
 * caller who waits several times for one purpose passes the same one again.
 * False when it has passed.
 */
static bool
wait_open(ax_ctx *cx, ax_word *w, uint64_t mask, uint64_t *v, uint64_t *deadline)
{
	ax_ctx_body *b = ax_body(cx);
	const ax_port *port = b->port;
	uint64_t	cur = ax_word_read(w);

	ax_section_refuse(cx);		/* whom we wait for would end it anyway */
	for (uint32_t i = 0; i < b->spins; i++)
	{
		if (!(cur & mask))
			goto open;
		ax_pause();
		cur = ax_word_read(w);
	}
	if (b->cur && ax_inside(b))
		AX_COUNT(cx, b->cur, latch_waits, 1);
	if (*deadline == 0)
		*deadline = port->now_ns() + WAIT_NS;
	for (uint32_t i = 0; i < WAIT_YIELDS + WAIT_NAPS; i++)
	{
		if (!(cur & mask))
			goto open;
		if (i < WAIT_YIELDS)
			port->yield();
		else
			ax_nap(cx, i - WAIT_YIELDS);
		cur = ax_word_read(w);
	}
	while (cur & mask)
	{
		uint64_t	now = port->now_ns();

		if (now >= *deadline)
			return false;

		/*
		 * WAITERS only ever joins LOCKED, in one CAS.  The process that takes
		 * LOCKED away sees WAITERS in the word that its addition returns,
		 * takes WAITERS away and wakes.  If the word changes before we sleep,
		 * park returns at once.  If it changed and is again as we saw it, a
		 * wake is still to come from the process that takes that LOCKED away.
		 */
		if (!(cur & AX_WAITERS))
		{
			if (!atomic_compare_exchange_strong_explicit(w, &cur, cur | AX_WAITERS,
														 memory_order_acquire,
														 memory_order_acquire))
				continue;
			cur |= AX_WAITERS;
		}
		AX_POINT("latch:park");
		sleep_on(cx, futex_half(w), (uint32_t) cur, (uint32_t) ((*deadline - now) / 1000 + 1));
		cur = ax_word_read(w);
	}
open:
	*v = cur;
	return true;
}

ax_status
ax_word_wait(ax_ctx *cx, ax_word *w, uint64_t *v)
{
	uint64_t	deadline = 0;

	return wait_open(cx, w, AX_CLOSED, v, &deadline) ? AX_OK : AX_BUSY;
}

ax_status
ax_word_sample(ax_ctx *cx, ax_word *w, uint64_t *v)
{
	ax_ctx_body *b = ax_body(cx);

	if ((*v & (AX_CLOSED | AX_OBSOLETE)) == AX_CLOSED && ax_word_wait(cx, w, v) != AX_OK)
		return AX_BUSY;
	if (*v & AX_OBSOLETE)
		return AX_STALE;
	if (*v & (AX_LOCKED | AX_TAIL_MASK) && b->cur && ax_inside(b))
	{
		AX_COUNT(cx, b->cur, opportunistic_reads, 1);
		b->opportunistic = w;
		b->opportunistic_v = *v;
	}
	return AX_OK;
}

/*
 * Latches: the word is write-latched on AX_OK.
 * Returns: AX_STALE if it is obsolete; AX_BUSY after a wait of some 10 ms.
 */
ax_status
ax_word_lock(ax_ctx *cx, ax_word *w, uint64_t *v)
{
	uint64_t	deadline = 0;
	uint64_t	cur = ax_word_read(w);

	/* the arena's, or the pessimistic way: outside, both */
	if (ax_unlikely(ax_body(cx)->elide.apart))
		ax_section_refuse(cx);
	for (;;)
	{
		if (cur & AX_OBSOLETE)
			return AX_STALE;
		if (!(cur & AX_LOCKED))
		{
			if (ax_word_trylock(cx, w, cur))
			{
				*v = cur;
				return AX_OK;
			}
			cur = ax_word_read(w);	/* somebody was faster */
			continue;
		}
		if (!wait_open(cx, w, AX_LOCKED, &cur, &deadline))
			return AX_BUSY;
	}
}

/*
 * The process that took LOCKED away found WAITERS.  A process that sleeps from
 * now on saw the word with WAITERS, which it no longer is, or set it anew.
 */
void
ax_word_wake(ax_ctx *cx, ax_word *w)
{
	atomic_fetch_and_explicit(w, ~AX_WAITERS, memory_order_relaxed);
	ax_body(cx)->port->unpark_all(futex_half(w));
}

/* ---- the queue ---- */

static inline ax_qnode *
qnode(ax_ctx *cx, uint32_t id)
{
	return &ax_area_of(cx)->slots[(id - 1) / AX_QNODES].queue[(id - 1) % AX_QNODES];
}

static inline uint32_t
queue_tail(uint64_t word)
{
	return (uint32_t) ((word & AX_TAIL_MASK) >> AX_TAIL_SHIFT);
}

static inline void
qnode_free(ax_qnode *n)
{
	atomic_store_explicit(&n->state, AX_Q_FREE, memory_order_release);
}

/*
 * The head (node id) goes: who is next?  Nodes whose owner has left are passed
 * over and given back.  A node is given back only when nobody can come to it
 * any more.  It has a successor, whose owner has linked itself, the last thing
 * it does to it.  Or it was the tail and is no longer.  Its successor may have
 * swapped itself in as the tail but not linked itself yet: it may have lost
 * its processor in between.  Then the node is left to it.  It will find
 * HANDED, be the head, and give the node back.
 */
static void
pass_on(ax_ctx *cx, ax_word *w, uint32_t id)
{
	for (;;)
	{
		ax_qnode   *n = qnode(cx, id);
		uint32_t	next = atomic_load_explicit(&n->next, memory_order_acquire);
		uint32_t	waiting = AX_Q_WAITING;

		if (next == 0)
		{
			uint64_t	cur = ax_word_read(w);

			while (queue_tail(cur) == id)
				if (atomic_compare_exchange_weak_explicit(w, &cur, cur & ~AX_TAIL_MASK,
														  memory_order_acq_rel,
														  memory_order_acquire))
				{
					qnode_free(n);
					return;
				}
			AX_POINT("queue.unlinked");
			if (atomic_compare_exchange_strong_explicit(&n->next, &next, AX_Q_HANDED,
														memory_order_acq_rel,
														memory_order_acquire))
				return;
		}
		AX_POINT("queue.before_pass");
		if (atomic_compare_exchange_strong_explicit(&qnode(cx, next)->state, &waiting,
													AX_Q_HEAD, memory_order_acq_rel,
													memory_order_acquire))
		{
			qnode_free(n);
			return;
		}
		/* it left: over it */
		qnode_free(n);
		id = next;
	}
}

/* A node of our own that nobody waits with, and its *id; NULL: all are in use. */
static ax_qnode *
unused_node(ax_ctx_body *b, uint32_t *id)
{
	for (uint32_t k = 0; k < AX_QNODES; k++)
		if (atomic_load_explicit(&b->slot->queue[k].state, memory_order_acquire) == AX_Q_FREE)
		{
			*id = (uint32_t) b->slotno * AX_QNODES + k + 1;
			return &b->slot->queue[k];
		}
	return NULL;
}

/*
 * Wait behind node "pred" to become the head.  False: our node n has left.
 */
static bool
become_head(ax_ctx *cx, ax_qnode *n, uint32_t id, uint32_t pred)
{
	ax_qnode   *p = qnode(cx, pred);
	uint32_t	waiting = AX_Q_WAITING;

	if (atomic_exchange_explicit(&p->next, id, memory_order_acq_rel) == AX_Q_HANDED)
	{
		qnode_free(p);
		return true;
	}
	AX_POINT("queue.linked");
	for (uint32_t i = 0; i < ax_body(cx)->spins; i++)
	{
		if (atomic_load_explicit(&n->state, memory_order_acquire) != AX_Q_WAITING)
			break;
		ax_pause();
	}
	return !atomic_compare_exchange_strong_explicit(&n->state, &waiting, AX_Q_LEFT,
													memory_order_acq_rel,
													memory_order_acquire);
}

/*
 * One turn in the queue.  AX_OK: the latch is ours.  AX_NOTFOUND: we left, or
 * had no node to wait with; *v is the word as it was last seen.  AX_STALE.
 */
static ax_status
queue_up(ax_ctx *cx, ax_word *w, uint64_t bits, uint64_t *v)
{
	ax_ctx_body *b = ax_body(cx);
	uint32_t	id = 0;
	uint32_t	pred;
	ax_qnode   *n = unused_node(b, &id);
	uint64_t	cur;

	*v = cur = ax_word_read(w);
	if (!n)
		return AX_NOTFOUND;
	atomic_store_explicit(&n->next, 0, memory_order_relaxed);
	atomic_store_explicit(&n->state, AX_Q_WAITING, memory_order_relaxed);
	do
	{
		if ((cur & AX_OBSOLETE) || !(cur & (AX_LOCKED | AX_TAIL_MASK)))
		{
			qnode_free(n);
			*v = cur;
			return cur & AX_OBSOLETE ? AX_STALE : AX_NOTFOUND;
		}
	} while (!atomic_compare_exchange_weak_explicit(w, &cur,
													(cur & ~AX_TAIL_MASK) | ((uint64_t) id << AX_TAIL_SHIFT),
													memory_order_acq_rel, memory_order_acquire));
	AX_POINT("queue.swapped");
	pred = queue_tail(cur);
	if (pred && !become_head(cx, n, id, pred))
	{
		AX_COUNT(cx, b->cur, abandoned, 1);
		*v = ax_word_read(w);
		return AX_NOTFOUND;
	}

	/* the head: take it when it opens */
	AX_POINT("queue.head");
	cur = ax_word_read(w);
	for (uint32_t i = 0; i < b->spins;)
	{
		if (cur & AX_OBSOLETE)
		{
			pass_on(cx, w, id);
			return AX_STALE;
		}
		if (!(cur & AX_LOCKED))
		{
			bool		last = queue_tail(cur) == id;

			if (!atomic_compare_exchange_strong_explicit(w, &cur,
														 (last ? cur & ~AX_TAIL_MASK : cur) | bits,
														 memory_order_acq_rel,
														 memory_order_acquire))
				continue;
			atomic_thread_fence(memory_order_release);
			b->latches++;
			AX_COUNT(cx, b->cur, handovers, 1);
			if (last)
				qnode_free(n);
			else
				pass_on(cx, w, id);
			*v = cur;
			return AX_OK;
		}
		ax_pause();
		i++;
		cur = ax_word_read(w);
	}
	pass_on(cx, w, id);
	AX_COUNT(cx, b->cur, abandoned, 1);
	*v = cur;
	return AX_NOTFOUND;
}

/*
 * Had to wait for w.  A few latches are counted, the least waited for giving way;
 * after AX_OFTEN waits for the same one, b->hot_word tells.
 */
#ifndef AX_OFTEN
#define AX_OFTEN	64
#endif

/*
 * Count a wait for a word, roughly: one that is waited for often is remembered
 * as hot.
 */
static void
note_wait(ax_ctx_body *b, ax_word *w)
{
	uint32_t	i = (uint32_t) ((uintptr_t) w >> 6) % AX_WAITED;

	if (b->waited[i].w == w)
	{
		if (++b->waited[i].n < AX_OFTEN)
			return;
		b->waited[i].n = 0;
		b->hot_word = w;
	}
	else if (b->waited[i].n > 0)
		b->waited[i].n--;
	else
	{
		b->waited[i].w = w;
		b->waited[i].n = 1;
	}
}

ax_status
ax_word_acquire(ax_ctx *cx, ax_word *w, bool shared, uint64_t *v)
{
	ax_ctx_body *b = ax_body(cx);
	const uint64_t bits = shared ? AX_LOCKED : AX_LOCKED | AX_CLOSED;
	uint64_t	deadline = 0;
	uint64_t	cur = ax_word_read(w);
	uint32_t	watched = 0;
	bool		noted = false;

	for (uint32_t naps = 0;;)
	{
		ax_status	r;

		if (ax_unlikely(cur & AX_OBSOLETE))
			return AX_STALE;
		if (!(cur & AX_LOCKED))
		{
			/*
			 * Open.  With a queue, its head should be about to take it: give
			 * it a moment, but no more, for it may not be running.
			 */
			if ((cur & AX_TAIL_MASK) && watched < b->spins / AX_BARGE)
			{
				uint64_t	seen = cur;

				ax_pause();
				cur = ax_word_read(w);
				watched = (cur ^ seen) & (AX_VERSION_MASK | AX_LOCKED) ? 0 : watched + 1;
				if (watched)
					continue;
			}
			else if (atomic_compare_exchange_strong_explicit(w, &cur, cur | bits,
															 memory_order_acquire,
															 memory_order_acquire))
			{
				/* the writer's side of the seqlock: its stores stay behind the CAS */
				atomic_thread_fence(memory_order_release);
				b->latches++;
				*v = cur;
				return AX_OK;
			}
			else
				continue;
		}
		/* held, or its queue moves */
		if (!noted)
			note_wait(b, w);
		noted = true;
		ax_contended(cx);
		r = queue_up(cx, w, bits, v);
		if (r != AX_NOTFOUND)
			return r;
		cur = *v;
		if (deadline == 0)
		{
			AX_COUNT(cx, b->cur, latch_waits, 1);
			deadline = b->port->now_ns() + WAIT_NS;
		}
		else if (b->port->now_ns() >= deadline)
			return AX_BUSY;
		if (cur & AX_LOCKED)
		{
			if (b->latches == 0 && call_overstays(b))
				return AX_BUSY;
			ax_nap(cx, naps++);
			cur = ax_word_read(w);
		}
	}
}

/*
 * Latches: the word is write-latched on true.
 */
bool
ax_latch_arena(ax_ctx *cx, ax_word *w, int ms)
{
	uint64_t	v;

	for (int i = 0; ms == 0 || i < ms; i += 10)
	{
		if (ax_likely(ax_word_lock(cx, w, &v) == AX_OK))
			return true;
	}
	return false;
}

#endif							/* AX_MAP_RWLOCKS */

int
ax_latches_held(const ax_ctx *cx)
{
	return ax_body(cx)->latches + ax_body(cx)->claims;
}
