/*
 * ax_epoch.c
 *	  Epochs and retire lists: when unlinked objects may be reused.
 *
 * A call announces the global epoch in its slot, then reads the structure.  The
 * global epoch moves from e to e + 1 only when every slot inside announces e.
 * An unlinked object is stamped with the global epoch, read after the unlink and a
 * full fence.  It is free once the global epoch is stamp + 2:
 *
 * - A reader that can hold it loaded its pointer before the unlink, so it
 *	 announced an epoch e <= stamp, and the global epoch cannot pass e + 1
 *	 while it stays.
 * - A reader whose announcement the scan missed announced it after the scan,
 *	 so (full fences on both sides) it sees everything unlinked before the
 *	 scan.  The second of two advances scans after the stamp was taken, so
 *	 that covers the object.  Where a reader announces by a plain store, the
 *	 scanning process has made it fence just before (ax_barrier).  Then a missed
 *	 announcement was made after that, with the same outcome.
 * - A reader that announces an old epoch, since the global one moved between
 *	 its load and its announcement, only delays: the scan finds it unequal.
 *
 * The stamp is never the retirer's own announced epoch, which may be one
 * older than readers that came in later.
 *
 * Retire lists live in shared memory, one a slot: a circular chain of chunks,
 * filled at the newest, reclaimed at the oldest.  Nobody works on a list in
 * place.  It is taken by one exchange and put back by one CAS.  So a process can
 * reclaim for an idle one, and for one that is gone.
 *
 * src/core/base/README.md: Memory and epochs
 */
#include "ax_area.h"

#define RECLAIM_BATCH	512		/* records reclaimed in one epoch */
#define POLL_RECORDS	16384	/* reclaimed in one round of housekeeping */
#define ADVANCE_NS		UINT64_C(200000)	/* least time between two advances, but with */
#define BACKLOG_BYTES	(512 * 1024)	/* own backlog that asks for giving way */

/* ---- enter, leave, advance ---------------------------------------------------- */

/*
 * Announce the epoch.  Inlined into all ways in: this is on every call's
 * path, where each store ahead of an exchange would have to drain first.
 */
static inline void
announce_epoch(ax_ctx_body *b, bool plain)
{
	ax_area    *a = b->area;
	uint64_t	e = atomic_load_explicit(&a->epoch, memory_order_acquire);
	uint64_t	now;

	AX_ASSERT(b, !ax_inside(b) && b->latches == 0);
	AX_POINT("epoch:loaded");
	if (plain)
	{
		/* release: what the last call read, it read before this */
		atomic_store_explicit(&b->slot->epoch, e, memory_order_release);
		atomic_signal_fence(memory_order_seq_cst);
	}
	else
	{
		atomic_exchange_explicit(&b->slot->epoch, e, memory_order_seq_cst);
		ax_fence_after_rmw();
	}
	AX_POINT("epoch:entered");

	/*
	 * If the epoch moved meanwhile, say so: once, for its sake who wants to
	 * advance, not for ours.
	 */
	now = atomic_load_explicit(&a->epoch, memory_order_acquire);
	if (ax_unlikely(now != e))
	{
		atomic_exchange_explicit(&b->slot->epoch, now, memory_order_seq_cst);
		ax_fence_after_rmw();
	}
}

/*
 * Announce, for a call that may use the magazines.  Another process that empties them
 * claims them first, and then looks whether we are inside.  We announce first, and
 * then look for a claim.  Both write by an exchange, so one of us sees the other.
 * False: there is a claim, and the caller waits (await_magazines).
 */
static inline bool
announce_change(ax_ctx_body *b)
{
	b->plain = false;
	announce_epoch(b, false);
	return ax_likely(!atomic_load_explicit(&b->slot->emptied, memory_order_acquire));
}

/* The other process only copies the magazines; then they are ours again. */
static void
await_magazines(ax_ctx_body *b)
{
	while (atomic_load_explicit(&b->slot->emptied, memory_order_acquire))
		b->port->yield();
}

void
ax_epoch_change(ax_ctx *cx)
{
	ax_ctx_body *b = ax_body(cx);

	AX_ASSERT(b, ax_inside(b) && b->latches == 0);
	/* who came in to read by an exchange did not look for a claim, either */
	if (b->plain)
	{
		b->plain = false;
		atomic_exchange_explicit(&b->slot->epoch,
								 atomic_load_explicit(&b->slot->epoch, memory_order_relaxed),
								 memory_order_seq_cst);
		ax_fence_after_rmw();
	}
	await_magazines(b);
}

void
ax_epoch_enter(ax_ctx *cx)
{
	if (!announce_change(ax_body(cx)))
		await_magazines(ax_body(cx));
	ax_body(cx)->cur = NULL;
}

static ax_limbo *limbo_take(ax_slot *s);
static void limbo_put(ax_slot *s, ax_limbo *l, bool newest);

void
ax_leave(ax_ctx *cx)
{
	ax_ctx_body *b = ax_body(cx);

	AX_ASSERT(b, ax_inside(b) && b->latches == 0);
	ax_map_unshare_all();
	atomic_store_explicit(&b->slot->epoch, 0, memory_order_release);
	b->elide.frame = NULL;		/* the call's, if it may change something */
	if (ax_unlikely(b->limbo))
	{
		limbo_put(b->slot, b->limbo, true);
		b->limbo = NULL;
	}
}

/*
 * Inside: the tree's store, or out again.
 *
 * Epoch: inside on entry; on AX_STALE outside.
 */
static inline ax_status
enter_store(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_store **st)
{
	ax_ctx_body *b = ax_body(cx);
	ax_store   *s = atomic_load_explicit(&t->store, memory_order_acquire);

	if (ax_likely(s && s->gen == gen))
	{
		b->cur = s;
		b->opportunistic = NULL;
		*st = s;
		return AX_OK;
	}
	ax_leave(cx);
	*st = NULL;
	return AX_STALE;
}

/* By itself, so that ax_enter() need not save registers for a call that is hardly made. */
static __attribute__((noinline, cold)) ax_status
enter_late(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_store **st)
{
	await_magazines(ax_body(cx));
	return enter_store(cx, t, gen, st);
}

ax_status
ax_enter(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_store **st)
{
	return announce_change(ax_body(cx)) ? enter_store(cx, t, gen, st) :
		enter_late(cx, t, gen, st);
}

ax_status
ax_enter_read(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_store **st)
{
	ax_ctx_body *b = ax_body(cx);

	if (ax_likely(b->plain))
		announce_epoch(b, true);
	else
	{
		announce_epoch(b, false);
		b->plain = b->joined;
	}
	return enter_store(cx, t, gen, st);
}

/* Does every slot whose process is inside announce e? */
static bool
all_show(ax_area *a, uint64_t e)
{
	int			high = atomic_load_explicit(&a->slots_high, memory_order_acquire);

	for (int i = 0; i < high; i++)
	{
		/* acquire: what a reader did before it left happened before reuse */
		uint64_t	s = atomic_load_explicit(&a->slots[i].epoch, memory_order_acquire);

		if (s != 0 && s != e)
			return false;
	}
	return true;
}

/*
 * Try to move the global epoch on by one.  One process at a time looks round;
 * if it loses the processor meanwhile the others merely cannot advance: they
 * never wait for it.
 */
static bool
try_advance(ax_area *a)
{
	uint64_t	e;
	bool		ok = true;

	if (atomic_load_explicit(&a->advancing, memory_order_relaxed) ||
		atomic_exchange_explicit(&a->advancing, 1, memory_order_seq_cst))
		return false;
	ax_fence_after_rmw();
	e = atomic_load_explicit(&a->epoch, memory_order_acquire);
	if (a->barrier)
	{
		/* no need to ask the kernel when somebody plainly holds it back */
		ok = all_show(a, e) && ax_barrier();
		AX_POINT("epoch:fenced");
	}
	ok = ok && all_show(a, e);
	AX_POINT("epoch:scanned");
	if (ok)
		atomic_store_explicit(&a->epoch, e + 1, memory_order_seq_cst);
	atomic_store_explicit(&a->advancing, 0, memory_order_release);
	return ok;
}

/* ---- retire lists --------------------------------------------------------------- */

/* The whole list, or NULL: empty, or somebody else has it. */
static ax_limbo *
limbo_take(ax_slot *s)
{
	if (!atomic_load_explicit(&s->limbo, memory_order_relaxed))
		return NULL;
	return atomic_exchange_explicit(&s->limbo, NULL, memory_order_acq_rel);
}

/* One circular chain of two; the records of "older" are reclaimed first. */
static ax_limbo *
limbo_join(ax_limbo *older, ax_limbo *newer)
{
	ax_limbo   *oldest = older->next;

	older->next = newer->next;
	newer->next = oldest;
	return newer;
}

/*
 * Put a list back.  While it was out the owner may have begun another.  Or a helper
 * may have put the rest of an older one there.  Then join them.
 */
static void
limbo_put(ax_slot *s, ax_limbo *l, bool newest)
{
	ax_limbo   *none = NULL;

	while (!atomic_compare_exchange_strong_explicit(&s->limbo, &none, l,
													memory_order_acq_rel,
													memory_order_relaxed))
	{
		ax_limbo   *other = limbo_take(s);

		if (other)
			l = newest ? limbo_join(other, l) : limbo_join(l, other);
		none = NULL;
	}
}

/*
 * An empty chunk, as a list by itself; NULL: no page to be had, for now.  Each
 * process keeps one in its list and one at hand.  So many pages are kept for
 * them (ax_pages_take), so there is one when nothing is waiting for its
 * epochs.
 */
static ax_limbo *
limbo_new(ax_ctx *cx)
{
	ax_limbo   *l = ax_pages_take(cx, 1, AX_CHUNK, 0, true, NULL);

	if (l)
	{
		ax_map_unchecked(l, AX_PAGE);
		l->next = l;
		l->first = l->end = 0;
	}
	return l;
}

/* An emptied chunk: one is kept at hand, the others go back to the pages. */
static void
limbo_recycle(ax_ctx *cx, ax_limbo *l)
{
	ax_ctx_body *b = ax_body(cx);

	if (b->slot->spare)
		ax_pages_give(cx, l, 1, AX_CHUNK, 0);
	else
	{
		l->first = l->end = 0;
		l->next = NULL;
		b->slot->spare = l;
		b->slot->nspare = 1;
	}
}

/* Spare chunks form a NULL-ended chain. */
static ax_limbo *
spare_pop(ax_ctx_body *b)
{
	ax_limbo   *l = b->slot->spare;

	b->slot->spare = l->next;
	b->slot->nspare--;
	l->next = l;
	return l;
}

ax_status
ax_retire_reserve(ax_ctx *cx, int n)
{
	ax_ctx_body *b = ax_body(cx);
	uint32_t	room;

	AX_ASSERT(b, ax_inside(b));
	if (!b->limbo)
		b->limbo = limbo_take(b->slot);
	room = b->limbo ? AX_LIMBO_RECS - b->limbo->end : 0;
	if (ax_likely(room >= (uint32_t) n))
		return AX_OK;
	while (room + b->slot->nspare * AX_LIMBO_RECS < (uint32_t) n)
	{
		ax_limbo   *l;

		ax_section_refuse(cx);
		l = limbo_new(cx);

		if (!l)
		{
			b->limbo_short = true;
			return AX_BUSY;
		}
		l->next = b->slot->spare;
		b->slot->spare = l;
		b->slot->nspare++;
	}
	if (!b->limbo)
		b->limbo = spare_pop(b);
	return AX_OK;
}

/* One writer, so no read-modify-write. */
static inline void
count_own(_Atomic uint64_t *p, uint64_t d)
{
	atomic_store_explicit(p, atomic_load_explicit(p, memory_order_relaxed) + d,
						  memory_order_relaxed);
}

void
ax_retire(ax_ctx *cx, ax_store *st, void *p, uint32_t size)
{
	ax_ctx_body *b = ax_body(cx);
	uint32_t	bytes = ax_alloc_size(size);
	ax_limbo   *l = b->limbo;
	ax_record  *r;

	AX_ENSURE(b, ax_inside(b) && l);
	if (ax_unlikely(b->elide.apart & AX_APART_TXN))
	{
		ax_section_retire(cx, p, size);
		return;
	}
	if (l->end == AX_LIMBO_RECS)
	{
		AX_ENSURE(b, b->slot->spare);
		l = b->limbo = limbo_join(l, spare_pop(b));
	}
	r = &l->rec[l->end++];
	r->p = p;
	r->bytes = bytes;
	r->cls = (uint32_t) ax_class_of(size);
	r->tree = st->tree;
	r->gen = st->gen;

	/* the counter doubles as the fence between unlink and stamp */
	atomic_fetch_add_explicit(&b->slot->added, 1, memory_order_seq_cst);
	ax_fence_after_rmw();
	r->stamp = atomic_load_explicit(&b->area->epoch, memory_order_acquire);

	count_own(&b->slot->added_bytes, bytes);
	b->retired_since++;
	b->retired_bytes_since += bytes;
}

/*
 * Take the expired records off the old end of a list, up to max; returns how
 * many.  Inside an epoch, so that a store found alive stays so.  Adopted lists
 * are not in the order of their stamps: a young record then only delays those
 * behind it.
 */
static uint64_t
limbo_reclaim(ax_ctx *cx, ax_limbo *list, ax_slot *from, uint64_t max)
{
	ax_area    *a = ax_area_of(cx);
	uint64_t	now = atomic_load_explicit(&a->epoch, memory_order_acquire);
	uint64_t	n = 0,
				bytes = 0;

	while (n < max)
	{
		ax_limbo   *l = list->next;
		ax_record  *r;
		ax_store   *st;

		if (l->first == l->end)
		{
			if (l == list)
			{
				l->first = l->end = 0;
				break;
			}
			list->next = l->next;
			limbo_recycle(cx, l);
			continue;
		}
		r = &l->rec[l->first];
		if (r->stamp + 2 > now)
			break;
		l->first++;
		n++;
		bytes += r->bytes;
		/* of a generation that is gone the pages are gone, or soon will be */
		st = atomic_load_explicit(&r->tree->store, memory_order_acquire);
		if (st && st->gen == r->gen)
			ax_give(cx, st, r->p, (int) r->cls);
	}
	if (n)
	{
		atomic_fetch_add_explicit(&from->removed, n, memory_order_relaxed);
		atomic_fetch_add_explicit(&from->removed_bytes, bytes, memory_order_relaxed);
	}
	return n;
}

/*
 * Reclaim what has expired in a slot's list, own or not, up to max.
 *
 * Epoch: outside; enters and leaves, once a batch.
 * Order: the list is taken by one exchange, and put back after the last batch.
 */
static uint64_t
slot_reclaim(ax_ctx *cx, ax_slot *s, uint64_t max)
{
	ax_ctx_body *b = ax_body(cx);
	ax_limbo   *l = limbo_take(s);
	uint64_t	total = 0;

	if (!l)
		return 0;
	while (total < max)
	{
		uint64_t	batch = max - total < RECLAIM_BATCH ? max - total : RECLAIM_BATCH;
		uint64_t	n;

		ax_epoch_enter(cx);
		n = limbo_reclaim(cx, l, s, batch);
		ax_leave(cx);
		total += n;
		if (n < batch)
			break;
	}
	limbo_put(s, l, s == b->slot);
	return total;
}

static inline uint64_t
slot_waiting(ax_slot *s)
{
	/* removed first: it never overtakes added */
	uint64_t	removed = atomic_load_explicit(&s->removed, memory_order_acquire);

	return atomic_load_explicit(&s->added, memory_order_relaxed) - removed;
}

void
ax_area_survive(ax_area *area)
{
	for (int i = 0; i < area->nslots; i++)
	{
		atomic_store(&area->slots[i].epoch, 0);
		atomic_store(&area->slots[i].emptied, 0);
		atomic_store(&area->slots[i].pid, 0);
	}
}

/* ---- attach, detach ------------------------------------------------------------- */

/* The contents of a list. */
static void
limbo_sum(const ax_limbo *list, uint64_t *objs, uint64_t *bytes)
{
	const ax_limbo *l = list;

	*objs = *bytes = 0;
	do
	{
		l = l->next;
		*objs += l->end - l->first;
		for (uint32_t i = l->first; i < l->end; i++)
			*bytes += l->rec[i].bytes;
	} while (l != list);
}

/* Pauses that take about two microseconds: 40 to 140 cycles each, by model. */
static uint32_t
calibrate_pause(const ax_port *port)
{
	uint64_t	t0 = port->now_ns();
	uint64_t	t;

	for (int i = 0; i < 64; i++)
		ax_pause();
	t = port->now_ns() - t0;
	if (t < 64)
		t = 64;
	t = 2000 * 64 / t;
	return t < 16 ? 16 : t > 1000 ? 1000 : (uint32_t) t;
}

void
ax_attach(ax_ctx *cx, ax_area *area, int slot, int pid, const ax_port *port)
{
	ax_ctx_body *b = ax_body(cx);
	ax_slot    *s = &area->slots[slot];
	int			high;
	bool		torn;
	ax_limbo   *l;

	memset(cx, 0, sizeof(*cx));
	b->area = area;
	b->slot = s;
	b->slotno = slot;
	b->port = port;
	b->shard = (uint8_t) (slot % AX_SHARDS);
	b->shard_at = (uint32_t) (offsetof(ax_store, shards) + b->shard * sizeof(ax_shard));
	b->spins = calibrate_pause(port);
	b->rng = ((uint64_t) slot + 1) * UINT64_C(0x9E3779B97F4A7C15);
	AX_ENSURE(b, area->magic == AX_AREA_MAGIC && slot >= 0 && slot < area->nslots);
	b->joined = area->barrier && ax_barrier_join();

	/*
	 * A predecessor that died inside left its announcement, and perhaps half a
	 * change of its magazines.  Those of one that died outside are ours.
	 */
	torn = atomic_exchange(&s->epoch, 0) != 0;
	while (atomic_exchange(&s->emptied, 1))
		port->yield();
	b->mags = s->mags;
	if (torn)
		memset(s->mags, 0, sizeof(s->mags));
	atomic_store_explicit(&s->emptied, 0, memory_order_release);
	atomic_store(&s->pid, pid);
	high = atomic_load(&area->slots_high);
	while (high <= slot &&
		   !atomic_compare_exchange_weak(&area->slots_high, &high, slot + 1))
		;

	/* a first chunk now, so that deletion need not ask when memory is short */
	l = limbo_take(s);
	if (!l)
		l = limbo_new(cx);
	if (l)
		limbo_put(s, l, true);
}

/* Give the pages of a retire list back. */
static void
give_chunks(ax_ctx *cx, ax_limbo *list)
{
	ax_limbo   *l = list->next;

	while (l != list)
	{
		ax_limbo   *next = l->next;

		ax_pages_give(cx, l, 1, AX_CHUNK, 0);
		l = next;
	}
	ax_pages_give(cx, list, 1, AX_CHUNK, 0);
}

/* A slot's list to the orphans, or to the pages when nothing is in it. */
static void
limbo_orphan(ax_ctx *cx, ax_slot *s, ax_limbo *l)
{
	ax_area    *a = ax_area_of(cx);
	uint64_t	objs,
				bytes;

	limbo_sum(l, &objs, &bytes);
	if (objs == 0)
	{
		give_chunks(cx, l);
		return;
	}
	atomic_fetch_add(&a->orphan_objs, (int64_t) objs);
	atomic_fetch_add(&a->orphan_bytes, (int64_t) bytes);
	atomic_fetch_add(&s->removed, objs);
	atomic_fetch_add(&s->removed_bytes, bytes);
	ax_stack_push(&a->orphans, &l->node);
}

/*
 * Epoch: outside; enters and leaves.
 */
void
ax_flush(ax_ctx *cx)
{
	ax_epoch_enter(cx);
	ax_magazines_flush(cx, ax_body(cx)->mags);
	ax_leave(cx);
}

/*
 * Copy and empty the magazines of a slot whose process is outside.  Acquire: what it
 * did before it left is in them.  Its next call finds them empty, or waits until they
 * are (announce_change).
 */
static bool
take_magazines(ax_slot *s, ax_magazine *mags)
{
	bool		idle;

	if (atomic_load_explicit(&s->epoch, memory_order_relaxed) != 0)
		return false;
	AX_POINT("epoch:seen_idle");
	if (atomic_exchange_explicit(&s->emptied, 1, memory_order_seq_cst))
		return false;
	ax_fence_after_rmw();
	idle = atomic_load_explicit(&s->epoch, memory_order_acquire) == 0;
	if (idle)
	{
		AX_POINT("epoch:emptying");
		memcpy(mags, s->mags, sizeof(s->mags));
		for (int i = 0; i < AX_MAGS; i++)
		{
			s->mags[i].gen = 0;
			s->mags[i].n = 0;
		}
	}
	atomic_store_explicit(&s->emptied, 0, memory_order_release);
	return idle;
}

/*
 * Epoch: outside; enters and leaves, once a slot.
 */
void
ax_flush_idle(ax_ctx *cx)
{
	ax_area    *a = ax_area_of(cx);
	int			high = atomic_load_explicit(&a->slots_high, memory_order_acquire);

	ax_flush(cx);
	for (int i = 0; i < high; i++)
	{
		ax_slot    *s = &a->slots[i];
		ax_magazine mags[AX_MAGS];

		/* a slot without a process, too: one that died outside left its magazines */
		if (s == ax_body(cx)->slot || !take_magazines(s, mags))
			continue;
		ax_epoch_enter(cx);
		ax_magazines_flush(cx, mags);
		ax_leave(cx);
	}
}

/*
 * Epoch: outside on return.
 * Latches: none is held; panics otherwise.
 */
void
ax_detach(ax_ctx *cx)
{
	ax_ctx_body *b = ax_body(cx);
	ax_slot    *s = b->slot;
	ax_limbo   *l;

	if (!s)
		return;
	AX_ENSURE(b, b->latches == 0);
	b->elide.on = false;
	if (b->elide.calls)
		b->elide.calls->detached(cx);
	if (ax_inside(b))
		ax_leave(cx);
	ax_flush(cx);

	/*
	 * A helper may have the list in hand just now and put it back when we are
	 * gone; ax_poll looks into free slots for that.
	 */
	l = limbo_take(s);
	if (l)
		limbo_orphan(cx, s, l);
	while (b->slot->spare)
		ax_pages_give(cx, spare_pop(b), 1, AX_CHUNK, 0);
	atomic_store(&s->pid, 0);
	b->slot = NULL;
}

/* ---- housekeeping ----------------------------------------------------------------- */

/* Retire lists of exited processes into our own. */
static void
adopt_lists(ax_ctx *cx)
{
	ax_area    *a = ax_area_of(cx);
	ax_slot    *s = ax_body(cx)->slot;
	ax_stack_node *n;

	if (ax_stack_empty(&a->orphans))
		return;
	n = ax_stack_take_all(&a->orphans);
	while (n)
	{
		ax_limbo   *l = (ax_limbo *) (void *) ((char *) n - offsetof(ax_limbo, node));
		uint64_t	objs,
					bytes;

		n = n->next;
		limbo_sum(l, &objs, &bytes);
		atomic_fetch_sub(&a->orphan_objs, (int64_t) objs);
		atomic_fetch_sub(&a->orphan_bytes, (int64_t) bytes);
		atomic_fetch_add(&s->added, objs);
		count_own(&s->added_bytes, bytes);
		count_own(&s->adopted_bytes, bytes);
		limbo_put(s, l, false);
	}
}

/*
 * After a call that retired: when enough has come together, look whether the
 * epoch can move and reclaim.  Reclaim more than came in, and the more the
 * longer the list, so that a backlog left by a straggler shrinks.  All
 * processes together move the epoch at most once in ADVANCE_NS, for each time
 * the kernel interrupts every processor that runs one of them.
 */
void
ax_reclaim(ax_ctx *cx)
{
	ax_ctx_body *b = ax_body(cx);
	uint64_t	max = 2 * (uint64_t) b->retired_since + slot_waiting(b->slot) / 8;
	uint64_t	now;
	bool		backlog;

	if (max > POLL_RECORDS)
		max = POLL_RECORDS;
	b->retired_since = 0;
	b->retired_bytes_since = 0;
	backlog = atomic_load_explicit(&b->slot->added_bytes, memory_order_relaxed) -
		atomic_load_explicit(&b->slot->removed_bytes, memory_order_relaxed) > BACKLOG_BYTES;
	now = b->port->now_ns();
	if (backlog ||
		now - atomic_load_explicit(&b->area->advanced_ns, memory_order_relaxed) >= ADVANCE_NS)
	{
		bool		moved = try_advance(b->area);

		if (!moved && backlog)
		{
			/*
			 * Somebody inside holds the epoch back, most likely since it lost
			 * the processor there.  We are outside: let it have ours.
			 */
			b->port->yield();
			moved = try_advance(b->area);
		}
		if (moved)
			atomic_store_explicit(&b->area->advanced_ns, now, memory_order_relaxed);
	}
	slot_reclaim(cx, b->slot, max);
	while (b->slot->nspare > 1)		/* of an unusually large call */
		ax_pages_give(cx, spare_pop(b), 1, AX_CHUNK, 0);

	/* whoever comes by takes up what others left */
	adopt_lists(cx);
	if (atomic_load_explicit(&b->area->ndying, memory_order_relaxed) > 0)
		ax_reap(cx, NULL);
}

uint64_t
ax_housekeep(ax_ctx *cx, ax_pending *pending)
{
	ax_ctx_body *b = ax_body(cx);
	ax_area    *a = b->area;
	int			high = atomic_load_explicit(&a->slots_high, memory_order_acquire);
	bool		waiting = false;
	bool		more;
	uint64_t	work = 0;
	uint64_t	records = 0;

	AX_ENSURE(b, !ax_inside(b));
	adopt_lists(cx);
	for (int i = 0; i < high; i++)
	{
		ax_slot    *s = &a->slots[i];

		/* put back by a helper after its owner had gone: see ax_detach */
		if (atomic_load_explicit(&s->pid, memory_order_relaxed) == 0)
		{
			ax_limbo   *l = limbo_take(s);

			if (l)
			{
				limbo_orphan(cx, s, l);
				adopt_lists(cx);
			}
		}
		else if (slot_waiting(s))
			waiting = true;
	}
	*pending = AX_PENDING_NOTHING;
	if (!waiting && atomic_load(&a->ndying) == 0)
		return 0;

	while (b->slot->nspare > 1)
		ax_pages_give(cx, spare_pop(b), 1, AX_CHUNK, 0);

	/* two advances expire all that was retired before this call */
	if (try_advance(a))
		try_advance(a);
	work += ax_reap(cx, &more);
	for (int i = 0; i < high && records < POLL_RECORDS; i++)
		if (slot_waiting(&a->slots[i]))
			records += slot_reclaim(cx, &a->slots[i], POLL_RECORDS - records);
	work += records;
	more = more || records >= POLL_RECORDS;

	waiting = atomic_load(&a->ndying) > 0 || !ax_stack_empty(&a->orphans);
	for (int i = 0; i < high && !waiting; i++)
		waiting = slot_waiting(&a->slots[i]) > 0;
	*pending = more ? AX_PENDING_MORE : waiting ? AX_PENDING_EPOCH : AX_PENDING_NOTHING;
	return work;
}

ax_pending
ax_poll(ax_ctx *cx)
{
	ax_pending	pending;

	ax_housekeep(cx, &pending);
	return pending;
}

void
ax_epochs(ax_ctx *cx, int slot, ax_epoch_info *out)
{
	ax_area    *a = ax_area_of(cx);
	ax_slot    *s = &a->slots[slot];
	uint64_t	removed_bytes = atomic_load(&s->removed_bytes);

	out->slot = slot;
	out->pid = atomic_load(&s->pid);
	out->pinned_epoch = atomic_load(&s->epoch);
	out->global_epoch = atomic_load(&a->epoch);
	out->retired_objects = slot_waiting(s);
	out->retired_bytes = atomic_load(&s->added_bytes) - removed_bytes;
	if (out->retired_objects == 0 || (int64_t) out->retired_bytes < 0)
		out->retired_bytes = 0;
	out->adopted_bytes = atomic_load(&s->adopted_bytes);
}
