/*
 * ax_arena.c
 *	  Objects: size classes, spans, magazines; the store of a generation.
 *
 * An object belongs to a span, a span to one store and one class.  So closing a
 * tree frees its pages wholesale, whatever lies in them.  Objects come from the
 * process's magazines; a magazine is refilled and emptied by half under the latch
 * of the (store, class) heap.
 *
 * Order of latches: heap, then pages.  Nothing here waits for a node's latch,
 * so a caller that holds one can wait here without a cycle.
 *
 * src/core/base/README.md: Memory and epochs
 * src/core/base/README.md: Compaction
 */
#include "ax_area.h"

/*
 * Classes up to 1 KiB in steps of a line.  Those above divide what a 64 KiB
 * span has behind its header into 56, 51, 46, .. 3, 2 objects.
 */
#define FINE_CLASSES 16
#define FINE_MAX	(FINE_CLASSES * AX_LINE)
static const uint16_t coarse[AX_NCLASSES - FINE_CLASSES] = {
	1152, 1280, 1408, 1536, 1664, 1792, 1920, 2112, 2304, 2560, 2944, 3264,
	3584, 4032, 4672, 5440, 6528, 8128, 9344, 10880, 13056, 16320, 21824, 32704
};

#define CLASS_MAX	32704u
#define SPAN_PAGES	16			/* of a class that has outgrown its first few */
#define SMALL_SPANS 5

/* A span with fewer objects in use than this is worth emptying. */
#define DRAIN_BELOW(sp) ((sp)->objs - (sp)->objs / 8)
#define DRAIN_LOOK	64			/* spans that are made usable again at once */

int
ax_class_of(uint32_t size)
{
	int			lo = 0,
				hi = AX_NCLASSES - FINE_CLASSES;

	if (ax_likely(size <= FINE_MAX))
		return size ? (int) ((size - 1) / AX_LINE) : 0;
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (coarse[mid] < size)
			lo = mid + 1;
		else
			hi = mid;
	}
	return FINE_CLASSES + lo;
}

uint32_t
ax_class_size(int cls)
{
	return cls < FINE_CLASSES ? (uint32_t) (cls + 1) * AX_LINE
		: coarse[cls - FINE_CLASSES];
}

static inline uint32_t
big_pages(uint32_t size)
{
	return (uint32_t) (((uint64_t) size + sizeof(ax_span) + AX_PAGE - 1) >> AX_PAGE_SHIFT);
}

uint32_t
ax_alloc_size(uint32_t size)
{
	int			cls = ax_class_of(size);

	if (cls == AX_BIG)
		return big_pages(size) * AX_PAGE - (uint32_t) sizeof(ax_span);
	return ax_class_size(cls);
}

/*
 * At most AX_MAG_BYTES of objects, so AX_MAGS times as much in an idle process, where
 * nobody else can get at it.  Of larger objects there is no magazine.
 */
static inline uint32_t
mag_cap(int cls)
{
	uint32_t	n = AX_MAG_BYTES / ax_class_size(cls);

	return n > AX_MAG_OBJS ? AX_MAG_OBJS : n;
}

static inline ax_magazine *
mag_of(ax_ctx_body *b, uint64_t gen, int cls)
{
	return &b->mags[(gen * 13 + (uint64_t) cls) % AX_MAGS];
}

/*
 * The store if the generation still lives.  Inside an epoch: what is returned
 * then stays valid till its end.
 */
static inline ax_store *
store_alive(ax_tree *t, uint64_t gen)
{
	ax_store   *st = atomic_load_explicit(&t->store, memory_order_acquire);

	return st && st->gen == gen ? st : NULL;
}

/* Own slot's counter: one writer, read by anybody. */
static inline void
count_live(ax_ctx_body *b, int cls, int64_t d)
{
	_Atomic int64_t *p = &b->slot->live[cls];

	atomic_store_explicit(p, atomic_load_explicit(p, memory_order_relaxed) + d,
						  memory_order_relaxed);
}

static inline bool
in_bump_area(ax_store *st, const void *p)
{
	return (const char *) p >= (const char *) st &&
		(const char *) p < (const char *) st + st->bump_end;
}

/* Count bytes, if no more than max are counted then. */
static bool
count_bytes(_Atomic uint64_t *counter, uint64_t bytes, uint64_t max)
{
	uint64_t	have = atomic_load(counter);

	do
	{
		if (have > max || bytes > max - have)
			return false;
	} while (!atomic_compare_exchange_weak(counter, &have, have + bytes));
	return true;
}

/*
 * Charge bytes to a store, which may have max (0: any number), and to its groups.
 * Deletion may exceed all limits: what it allocates it gives back a moment later,
 * with more.  On a refusal nothing is charged, and cap_hit or group_hit says whose
 * limit it was.  All are asked before any is charged, so that nobody else is refused
 * because of bytes that this call does not get.
 */
static bool
charge_bytes(ax_ctx *cx, _Atomic uint64_t *own, uint64_t max, ax_group *const *groups,
			 uint64_t bytes, bool may_exceed)
{
	_Atomic uint64_t *counter[AX_GROUPS + 1] = {own};
	uint64_t	most[AX_GROUPS + 1] = {max && !may_exceed ? max : UINT64_MAX};
	int			i;

	for (i = 0; i < AX_GROUPS; i++)
	{
		counter[i + 1] = groups[i] ? &groups[i]->bytes : NULL;
		most[i + 1] = groups[i] && !may_exceed ?
			atomic_load_explicit(groups[i]->limit, memory_order_relaxed) : UINT64_MAX;
	}
	ax_body(cx)->cap_hit = false;
	ax_body(cx)->group_hit = NULL;
	for (i = 0; i <= AX_GROUPS; i++)
	{
		uint64_t	have = counter[i] ? atomic_load(counter[i]) : 0;

		if (have > most[i] || bytes > most[i] - have)
			goto refused;
	}
	AX_POINT("arena.charge");
	for (i = 0; i <= AX_GROUPS; i++)
		if (counter[i] && !count_bytes(counter[i], bytes, most[i]))
			break;
	if (i > AX_GROUPS)
		return true;

	/* another call has had the last bytes since */
	for (int j = 0; j < i; j++)
		if (counter[j])
			atomic_fetch_sub(counter[j], bytes);
refused:
	ax_body(cx)->cap_hit = i == 0;
	ax_body(cx)->group_hit = i > 0 ? groups[i - 1] : NULL;
	AX_POINT("arena.refused");
	return false;
}

/* The process that takes the last bytes away looks at the group no more. */
static void
groups_uncharge(ax_group *const *groups, uint64_t bytes)
{
	for (int i = 0; i < AX_GROUPS; i++)
		if (groups[i])
			atomic_fetch_sub(&groups[i]->bytes, bytes);
}

static void
store_uncharge(ax_store *st, uint64_t bytes)
{
	atomic_fetch_sub(&st->bytes, bytes);
	groups_uncharge(st->groups, bytes);
}

/* ---- spans; the heap's latch held ------------------------------------------ */

static void
partial_push(ax_class_heap *h, ax_span *sp)
{
	sp->prev = NULL;
	sp->next = h->partial;
	if (sp->next)
		sp->next->prev = sp;
	h->partial = sp;
	sp->partial = true;
}

/*
 * A span that was full goes behind the head: the head is filled up first, and
 * the others have time to drain.
 */
static void
partial_append(ax_class_heap *h, ax_span *sp)
{
	ax_span    *head = h->partial;

	if (!head)
	{
		partial_push(h, sp);
		return;
	}
	sp->prev = head;
	sp->next = head->next;
	if (sp->next)
		sp->next->prev = sp;
	head->next = sp;
	sp->partial = true;
}

/*
 * Take a span out of the list of those with room.
 *
 * Latches: the class heap's is held.
 */
static void
partial_remove(ax_class_heap *h, ax_span *sp)
{
	if (sp->prev)
		sp->prev->next = sp->next;
	else
		h->partial = sp->next;
	if (sp->next)
		sp->next->prev = sp->prev;
	sp->partial = false;
}

static void
all_push(ax_class_heap *h, ax_span *sp)
{
	sp->all_prev = NULL;
	sp->all_next = h->all;
	if (sp->all_next)
		sp->all_next->all_prev = sp;
	h->all = sp;
	h->objs += sp->objs;
}

/*
 * Take a span out of the list of all of its class.
 *
 * Latches: the class heap's is held.
 */
static void
all_remove(ax_class_heap *h, ax_span *sp)
{
	if (sp->all_prev)
		sp->all_prev->all_next = sp->all_next;
	else
		h->all = sp->all_next;
	if (sp->all_next)
		sp->all_next->all_prev = sp->all_prev;
	h->objs -= sp->objs;
}

uint32_t
ax_span_objs(uint32_t pages, int cls)
{
	return (uint32_t) ((pages * (uint32_t) AX_PAGE - sizeof(ax_span)) / ax_class_size(cls));
}

uint32_t
ax_span_pages(int cls, uint32_t nth)
{
	uint32_t	least = big_pages(ax_class_size(cls));
	uint32_t	pages = nth == 0 ? 1 : nth < SMALL_SPANS ? 4 : SPAN_PAGES;

	return pages < least ? least : pages;
}

/* Pages for a new span of this store, charged, its header filled. */
static ax_span *
span_pages(ax_ctx *cx, ax_store *st, uint32_t pages, int cls, uint32_t objs, bool may_reserve)
{
	uint64_t	bytes = (uint64_t) pages << AX_PAGE_SHIFT;
	ax_span    *sp;

	if (!charge_bytes(cx, &st->bytes, atomic_load_explicit(&st->max_bytes, memory_order_relaxed),
					  st->groups, bytes, may_reserve || ax_body(cx)->over_cap))
		return NULL;
	sp = ax_pages_take(cx, pages, cls, objs, may_reserve, &ax_body(cx)->alloc_busy);
	if (!sp)
	{
		store_uncharge(st, bytes);
		return NULL;
	}
	memset(sp, 0, sizeof(*sp));
	sp->store = st;
	sp->pages = pages;
	sp->cls = (uint16_t) cls;
	sp->objs = (uint16_t) objs;
	return sp;
}

static void
span_free(ax_ctx *cx, ax_span *sp)
{
	ax_store   *st = sp->store;
	uint64_t	bytes = (uint64_t) sp->pages << AX_PAGE_SHIFT;

	ax_pages_give(cx, sp, sp->pages, sp->cls, sp->objs);
	store_uncharge(st, bytes);
}

/* Objects that the spans of a class have room for which are to become empty.  Racy. */
static inline uint32_t
drain_objs(const ax_drain *d)
{
	return atomic_load_explicit(&d->objs, memory_order_relaxed);
}

static inline void
drain_count(ax_drain *d, int objs)
{
	atomic_store_explicit(&d->objs, drain_objs(d) + (uint32_t) objs, memory_order_relaxed);
}

/* Spans grow with the class; where there is no room, a smaller one will do. */
static ax_span *
span_new(ax_ctx *cx, ax_store *st, int cls, bool may_reserve)
{
	ax_class_heap *h = &st->heap[cls];
	const ax_drain *d = atomic_load_explicit(&st->drain, memory_order_acquire);
	uint32_t	least = big_pages(ax_class_size(cls));
	uint32_t	few = ax_span_objs(ax_span_pages(cls, 1), cls);
	uint32_t	objs = h->objs - (d ? drain_objs(&d[cls]) : 0);
	uint32_t	pages = ax_span_pages(cls, objs == 0 ? 0 : objs / few + 1);

	for (;; pages /= 4)
	{
		ax_span    *sp;

		if (pages < least)
			pages = least;
		sp = span_pages(cx, st, pages, cls, ax_span_objs(pages, cls), may_reserve);
		if (sp)
		{
			AX_POISON((char *) sp + sizeof(ax_span),
					  ((size_t) pages << AX_PAGE_SHIFT) - sizeof(ax_span));
			all_push(h, sp);
			partial_push(h, sp);
			return sp;
		}
		if (pages == least || ax_body(cx)->alloc_busy)
			return NULL;
	}
}

/* Objects of a span given out, d more than before. */
static inline uint32_t
span_count(ax_class_heap *h, ax_span *sp, int d)
{
	uint32_t	live = (uint32_t) (atomic_load_explicit(&sp->live, memory_order_relaxed) + d);

	atomic_store_explicit(&sp->live, (uint16_t) live, memory_order_relaxed);
	atomic_store_explicit(&h->live, (uint32_t) ((int) atomic_load_explicit(&h->live, memory_order_relaxed) + d),
						  memory_order_relaxed);
	return live;
}

/*
 * Take an object out of a span that has one.
 *
 * Latches: the class heap's is held.
 */
static void *
span_take(ax_class_heap *h, ax_span *sp)
{
	void	   *p;

	if (sp->free)
	{
		p = sp->free;
		memcpy(&sp->free, p, sizeof(void *));
		AX_POISON(p, sizeof(void *));
	}
	else
		p = (char *) sp + sizeof(ax_span) + (size_t) sp->bump++ * ax_class_size(sp->cls);
	if (span_count(h, sp, 1) == sp->objs)
		partial_remove(h, sp);
	return p;
}

/* One object from the bump area, without a latch. */
static void *
bump_take(ax_store *st, uint32_t size)
{
	uint32_t	at = atomic_load_explicit(&st->bump, memory_order_relaxed);

	do
	{
		if (st->bump_end - at < size)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&st->bump, &at, at + size,
													memory_order_relaxed,
													memory_order_relaxed));
	return (char *) st + at;
}

/* ---- draining ----------------------------------------------------------------- */

/*
 * A compaction (ax_compact()) empties spans that are sparsely used.  Nothing is
 * taken from such a span any more.  Copies elsewhere take the place of objects in
 * it.  The mark is advice.  A process that finds no memory takes it away and uses
 * the free room there.  So a compaction that was given up leaves nothing behind.
 */

void
ax_drain_begin(ax_ctx *cx, ax_store *st)
{
	const uint32_t size = AX_NCLASSES * (uint32_t) sizeof(ax_drain);
	ax_drain   *none = NULL;
	ax_drain   *list;

	if (atomic_load_explicit(&st->drain, memory_order_relaxed))
		return;
	list = ax_alloc(cx, st, size, true);
	if (!list)
		return;
	memset(list, 0, size);
	if (!atomic_compare_exchange_strong(&st->drain, &none, list))
		ax_unalloc(cx, st, list, size);
}

/* Out of its class's list, the mark away; the heap's latch held. */
static void
unlink_drained(ax_store *st, ax_span *sp)
{
	ax_drain   *d = &atomic_load_explicit(&st->drain, memory_order_acquire)[sp->cls];

	if (sp->prev)
		sp->prev->next = sp->next;
	else
		d->first = sp->next;
	if (sp->next)
		sp->next->prev = sp->prev;
	drain_count(d, -sp->objs);
	atomic_store_explicit(&sp->draining, false, memory_order_relaxed);
}

/*
 * No page is left: some spans of the class stay after all.  The heap's latch
 * held; false: there is none with a free object.
 */
static bool
undrain_spans(ax_store *st, ax_class_heap *h, int cls)
{
	ax_drain   *d = atomic_load_explicit(&st->drain, memory_order_acquire);
	bool		any = false;

	for (int i = 0; d && d[cls].first && i < DRAIN_LOOK; i++)
	{
		ax_span    *sp = d[cls].first;

		unlink_drained(st, sp);
		if (atomic_load_explicit(&sp->live, memory_order_relaxed) < sp->objs)
		{
			partial_push(h, sp);
			any = true;
		}
	}
	return any;
}

uint64_t
ax_live_bytes(const ax_store *st)
{
	uint64_t	bytes = (uint64_t) st->pages << AX_PAGE_SHIFT;

	for (int cls = 0; cls < AX_NCLASSES; cls++)
		bytes += (uint64_t) atomic_load_explicit(&st->heap[cls].live, memory_order_relaxed) *
			ax_class_size(cls);
	return bytes + ((uint64_t) atomic_load_explicit(&st->heap[AX_BIG].live, memory_order_relaxed)
					<< AX_PAGE_SHIFT);
}

/*
 * May this span become empty, too?  Of a class so many stay as its objects fill.  So
 * what is moved has room where it goes, and a compaction takes no pages for it.  Only
 * a large one whose class has come to fit into a small one goes whatever stays.
 *
 * Latches: the caller holds the class heap's.
 */
static bool
may_drain(const ax_class_heap *h, const ax_drain *d, const ax_span *sp)
{
	uint32_t	live = atomic_load_explicit(&h->live, memory_order_relaxed);
	uint32_t	few = ax_span_pages(sp->cls, 1);

	return h->objs - drain_objs(d) >= sp->objs + live ||
		(sp->pages > few && live <= ax_span_objs(few, sp->cls));
}

/*
 * Epoch: inside.
 * Latches: takes the class heap's, for AX_LATCH_MS at most.
 */
bool
ax_draining(ax_ctx *cx, ax_store *st, const void *p)
{
	ax_drain   *d = atomic_load_explicit(&st->drain, memory_order_acquire);
	ax_span    *sp;
	ax_class_heap *h;

	if (!d || in_bump_area(st, p))
		return false;
	sp = ax_pages_run(ax_area_of(cx), p);
	if (sp->cls == AX_BIG)
		return false;
	if (atomic_load_explicit(&sp->draining, memory_order_relaxed))
		return true;
	if (!ax_body(cx)->drains ||
		atomic_load_explicit(&sp->live, memory_order_relaxed) >= DRAIN_BELOW(sp))
		return false;
	h = &st->heap[sp->cls];
	if (!ax_latch_arena(cx, &h->latch, AX_LATCH_MS))
		return false;
	d += sp->cls;
	if (!sp->draining && may_drain(h, d, sp))
	{
		if (sp->partial)
			partial_remove(h, sp);
		sp->prev = NULL;
		sp->next = d->first;
		if (sp->next)
			sp->next->prev = sp;
		d->first = sp;
		drain_count(d, sp->objs);
		atomic_store_explicit(&sp->draining, true, memory_order_relaxed);
	}
	ax_word_unlock(cx, &h->latch, false);
	return atomic_load_explicit(&sp->draining, memory_order_relaxed);
}

/* ---- magazines -------------------------------------------------------------- */

/*
 * Is a shortage of pages worth another try?  Yes when a dying tree could be
 * freed, or while somebody else is on the way to give pages back.  Not with a latch
 * held, for which others wait meanwhile: the call then lets go of it, and
 * ax_try_for_memory() does the same outside.
 */
static bool
await_pages(ax_ctx *cx, uint64_t *deadline)
{
	ax_area    *a = ax_area_of(cx);
	const ax_port *port = ax_body(cx)->port;

	if (ax_latches_held(cx) > 0)
		return false;
	if (ax_reap(cx, NULL) > 0)
		return true;
	if (atomic_load(&a->freeing) > 0)
	{
		uint64_t	now = port->now_ns();

		if (*deadline == 0)
			*deadline = now + (uint64_t) AX_LATCH_MS * 1000000;
		if (now < *deadline)
		{
			port->yield();
			return true;
		}
	}
	return false;
}

/*
 * No page is left: an object of a larger class of this store, if one is free.
 * Objects that deletions freed in one class serve smaller ones this way,
 * without waiting for whole spans to empty.  It goes back where it came from.
 *
 * Latches: takes those of larger classes' heaps, one after the other, for
 * AX_LATCH_MS at most each.
 */
static void *
borrow_object(ax_ctx *cx, ax_store *st, int cls)
{
	for (int k = cls + 1; k < AX_NCLASSES; k++)
	{
		ax_class_heap *h = &st->heap[k];
		void	   *p = NULL;

		if (!ax_latch_arena(cx, &h->latch, AX_LATCH_MS))
			continue;
		if (h->partial || undrain_spans(st, h, k))
			p = span_take(h, h->partial);
		ax_word_unlock(cx, &h->latch, false);
		if (p)
		{
			count_live(ax_body(cx), k, 1);
			return p;
		}
	}
	return NULL;
}

/*
 * Write to each page of these objects, which are nobody's.  They may be taken in a
 * transaction, which a page that this process has not touched yet would end.
 */
static __attribute__((noinline, cold, no_sanitize("address", "thread"))) void
touch_objects(int cls, void *const *obj, uint32_t n)
{
	uintptr_t	last = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		char	   *p = obj[i];
		char	   *end = p + ax_class_size(cls);

		for (; p < end; p = (char *) (((uintptr_t) p | (AX_PAGE - 1)) + 1))
			if ((uintptr_t) p / AX_PAGE != last)
			{
				last = (uintptr_t) p / AX_PAGE;
				*(volatile char *) p = 0;
			}
	}
}

/*
 * Up to want objects into obj[]; 0: no memory, or alloc_busy is set.
 *
 * Latches: takes the class heap's, and inside it the page pool's, for
 * AX_LATCH_MS at most.
 * Returns: 0 with alloc_busy set if a latch was not to be had in time.
 */
static uint32_t
refill_magazine(ax_ctx *cx, ax_store *st, int cls, void **obj, uint32_t want, bool may_reserve)
{
	ax_ctx_body *b = ax_body(cx);
	ax_class_heap *h = &st->heap[cls];
	uint64_t	deadline = 0;

	for (;;)
	{
		uint32_t	n = 0,
					counted = 0;

		if (!ax_latch_arena(cx, &h->latch, AX_LATCH_MS))
		{
			b->alloc_busy = true;
			return 0;
		}
		while (n < want)
		{
			if (cls < AX_LOOSE_CLASSES && st->loose[cls])
			{
				obj[n] = (char *) st + st->loose[cls] * AX_LINE;
				st->loose[cls] = *(uint8_t *) obj[n];
				AX_POISON(obj[n], sizeof(void *));
				n++;
			}
			else if (h->partial)
			{
				obj[n++] = span_take(h, h->partial);
				counted++;
			}
			else if (n > 0)
				break;
			else if (h->objs == 0 && (obj[0] = bump_take(st, ax_class_size(cls))) != NULL)
			{
				n = 1;
				break;
			}
			else if (!span_new(cx, st, cls, may_reserve) && !undrain_spans(st, h, cls))
				break;
		}
		ax_word_unlock(cx, &h->latch, false);
		if (n > 0)
		{
			count_live(b, cls, counted);
			if (ax_unlikely(b->elide.on))
				touch_objects(cls, obj, n);
			/* a magazine gives its last first: let addresses rise */
			for (uint32_t i = 0; i < n / 2; i++)
			{
				void	   *x = obj[i];

				obj[i] = obj[n - 1 - i];
				obj[n - 1 - i] = x;
			}
			return n;
		}
		if (b->alloc_busy || (!may_reserve && ax_hurry(b)))
			return 0;
		if (!await_pages(cx, &deadline))
		{
			obj[0] = borrow_object(cx, st, cls);
			return obj[0] != NULL;
		}
	}
}

/*
 * Objects back to their spans; the store is alive, inside an epoch.
 *
 * Latches: takes the class heap's, however long that takes; the page pool's
 * after it.
 */
static void
flush_objects(ax_ctx *cx, ax_store *st, int cls, void *const *obj, uint32_t n)
{
	ax_ctx_body *b = ax_body(cx);
	ax_class_heap *h = &st->heap[cls];
	ax_span    *empty = NULL;
	int64_t		counted = 0;
	void	   *borrowed[AX_MAG_OBJS];
	uint32_t	nborrowed = 0;

	ax_latch_arena(cx, &h->latch, 0);
	for (uint32_t i = 0; i < n; i++)
	{
		void	   *p = obj[i];
		ax_span    *sp;
		uint32_t	left;

		AX_UNPOISON(p, sizeof(void *));
		if (in_bump_area(st, p))
		{
			*(uint8_t *) p = st->loose[cls];
			st->loose[cls] = (uint8_t) (((char *) p - (char *) st) / AX_LINE);
			continue;
		}
		sp = ax_pages_run(b->area, p);
		AX_ENSURE(b, sp->store == st && sp->cls >= cls);
		if (ax_unlikely(sp->cls != cls))
		{
			borrowed[nborrowed++] = p;	/* its counts are under another latch */
			continue;
		}
		AX_ENSURE(b, sp->live > 0);
		memcpy(p, &sp->free, sizeof(void *));
		sp->free = p;
		left = span_count(h, sp, -1);
		counted++;
		if (!sp->partial && !sp->draining)
			partial_append(h, sp);
		/* the last span with room stays, against to and fro, if it is small */
		if (left == 0 && (h->partial != sp || sp->next || sp->pages > 4))
		{
			if (sp->partial)
				partial_remove(h, sp);
			else
				unlink_drained(st, sp);
			all_remove(h, sp);
			sp->next = empty;
			empty = sp;
		}
	}
	ax_word_unlock(cx, &h->latch, false);
	count_live(b, cls, -counted);
	while (empty)				/* may be a system call: not under the latch */
	{
		ax_span    *next = empty->next;

		span_free(cx, empty);
		empty = next;
	}
	for (uint32_t i = 0; i < nborrowed; i++)
	{
		void	   *p = borrowed[i];

		flush_objects(cx, st, ((ax_span *) ax_pages_run(b->area, p))->cls, &p, 1);
	}
}

/*
 * Empty a magazine.  If the generation is gone its store may be freed memory:
 * the objects are forgotten, they went with their spans.
 */
static void
mag_evict(ax_ctx *cx, ax_magazine *m)
{
	if (m->gen && m->n)
	{
		ax_store   *st = store_alive(m->tree, m->gen);

		if (st)
			flush_objects(cx, st, (int) m->cls, m->obj, m->n);
	}
	m->n = 0;
	m->gen = 0;
}

void
ax_magazines_flush(ax_ctx *cx, ax_magazine *mags)
{
	for (int i = 0; i < AX_MAGS; i++)
		mag_evict(cx, &mags[i]);
}

static inline void
mag_claim(ax_ctx *cx, ax_magazine *m, ax_store *st, int cls)
{
	mag_evict(cx, m);
	m->gen = st->gen;
	m->tree = st->tree;
	m->cls = (uint32_t) cls;
}

/* ---- big objects: a span of one, by itself ---------------------------------- */

/* Of these, "live" counts pages. */
static void
count_pages(ax_class_heap *h, uint32_t d)
{
	atomic_store_explicit(&h->live, atomic_load_explicit(&h->live, memory_order_relaxed) + d,
						  memory_order_relaxed);
}

/*
 * Allocate an object that has a span of its own.  NULL: no memory.
 *
 * Latches: takes the class heap's.
 */
static void *
big_alloc(ax_ctx *cx, ax_store *st, uint32_t size, bool may_reserve)
{
	ax_ctx_body *b = ax_body(cx);
	ax_class_heap *h = &st->heap[AX_BIG];
	uint64_t	deadline = 0;
	ax_span    *sp;

	if (size > AX_MAP_LEN)		/* far beyond the longest key */
		return NULL;
	while ((sp = span_pages(cx, st, big_pages(size), AX_BIG, 1, may_reserve)) == NULL)
		if (b->alloc_busy || !await_pages(cx, &deadline))
			return NULL;
	sp->live = sp->bump = 1;
	ax_latch_arena(cx, &h->latch, 0);
	all_push(h, sp);
	count_pages(h, sp->pages);
	ax_word_unlock(cx, &h->latch, false);
	return sp + 1;
}

/*
 * Free such an object.
 *
 * Latches: takes the class heap's.
 */
static void
big_free(ax_ctx *cx, ax_store *st, void *p)
{
	ax_class_heap *h = &st->heap[AX_BIG];
	ax_span    *sp = (ax_span *) p - 1;

	AX_ENSURE(ax_body(cx), sp->store == st && sp->cls == AX_BIG);
	ax_latch_arena(cx, &h->latch, 0);
	all_remove(h, sp);
	count_pages(h, -sp->pages);
	ax_word_unlock(cx, &h->latch, false);
	span_free(cx, sp);
}

/* ---- what engines call ------------------------------------------------------ */

/*
 * Allocate where the magazine is empty: fill it by half first.
 *
 * Latches: takes the class heap's.
 */
static __attribute__((noinline)) void *
alloc_slow(ax_ctx *cx, ax_store *st, uint32_t size, int cls, bool may_reserve)
{
	ax_ctx_body *b = ax_body(cx);
	ax_magazine *m;
	uint32_t	cap;
	void	   *p;

	AX_ASSERT(b, ax_inside(b) && !b->plain);
	ax_section_refuse(cx);
	if (cls == AX_BIG)
		return big_alloc(cx, st, size, may_reserve);
	m = mag_of(b, st->gen, cls);
	if (m->gen != st->gen || m->cls != (uint32_t) cls)
		mag_claim(cx, m, st, cls);
	cap = mag_cap(cls);
	m->n = refill_magazine(cx, st, cls, m->obj, cap < 2 ? 1 : cap / 2, may_reserve);
	if (m->n == 0)
		return NULL;
	p = m->obj[--m->n];
	AX_UNPOISON(p, ax_class_size(cls));
	return p;
}

/*
 * Where sections are undone by hand, what was allocated may have to be, too.  The
 * processor does that with the magazine: only what is beyond it is no part of a
 * transaction.
 */
static __attribute__((noinline)) void *
alloc_apart(ax_ctx *cx, ax_store *st, uint32_t size, bool may_reserve)
{
	ax_ctx_body *b = ax_body(cx);
	uint8_t		apart = b->elide.apart;
	void	   *p;

	ax_section_refuse(cx);
	b->elide.apart = 0;
	p = ax_alloc(cx, st, size, may_reserve);
	b->elide.apart = apart;
	if (p)
		b->elide.calls->alloced(cx, p, ax_alloc_size(size));
	return p;
}

void *
ax_alloc(ax_ctx *cx, ax_store *st, uint32_t size, bool may_reserve)
{
	ax_ctx_body *b = ax_body(cx);
	int			cls = ax_class_of(size);
	ax_magazine *m = mag_of(b, st->gen, cls);

	if (ax_unlikely(b->elide.apart & ~AX_APART_TXN))
		return alloc_apart(cx, st, size, may_reserve);
	if (ax_unlikely(b->fail_alloc_at) && --b->fail_alloc_at == 0)
	{
		b->alloc_injected = true;
		return NULL;
	}
	if (ax_likely(m->gen == st->gen && m->cls == (uint32_t) cls && m->n > 0))
	{
		void	   *p = m->obj[--m->n];

		AX_UNPOISON(p, ax_class_size(cls));
		return p;
	}
	return alloc_slow(cx, st, size, cls, may_reserve);
}

void *
ax_alloc_public(ax_ctx *cx, ax_store *st, uint32_t size)
{
	void	   *p = ax_alloc(cx, st, size, false);

	if (ax_unlikely(ax_body(cx)->elide.apart))
		ax_body(cx)->elide.calls->given(cx, p);
	return p;
}

/*
 * Does the object, which comes free, lie in a span that is to become empty?  A
 * magazine would give it out again, and the span would not.
 */
static inline bool
leaves_span(ax_ctx *cx, ax_store *st, const void *p, int cls)
{
	const ax_drain *d = atomic_load_explicit(&st->drain, memory_order_acquire);
	const ax_span *sp;

	if (ax_likely(d == NULL) || drain_objs(&d[cls]) == 0 || in_bump_area(st, p))
		return false;
	sp = ax_pages_run(ax_area_of(cx), p);
	return atomic_load_explicit(&sp->draining, memory_order_relaxed);
}

void
ax_give(ax_ctx *cx, ax_store *st, void *p, int cls)
{
	ax_ctx_body *b = ax_body(cx);
	ax_magazine *m;
	uint32_t	cap;

	AX_ASSERT(b, ax_inside(b) && !b->plain);
	if (ax_unlikely(b->elide.apart & ~AX_APART_TXN))
	{
		ax_section_refuse(cx);
		b->elide.calls->given(cx, p);
	}
	if (cls == AX_BIG)
	{
		big_free(cx, st, p);
		return;
	}
#ifdef AX_DEBUG
	/* a reader that should not be there shall notice */
	ax_map_new_memory(p, ax_class_size(cls));
	memset(p, 0xDB, ax_class_size(cls));
#endif
	AX_POISON(p, ax_class_size(cls));
	m = mag_of(b, st->gen, cls);
	if (m->gen != st->gen || m->cls != (uint32_t) cls)
		mag_claim(cx, m, st, cls);
	cap = mag_cap(cls);
	if (ax_unlikely(cap == 0 || leaves_span(cx, st, p, cls)))
	{
		flush_objects(cx, st, cls, &p, 1);
		return;
	}
	if (m->n >= cap)
	{
		/* the oldest half: the rest is warm in this processor's cache */
		uint32_t	old = (cap + 1) / 2;

		flush_objects(cx, st, cls, m->obj, old);
		m->n -= old;
		memmove(m->obj, m->obj + old, m->n * sizeof(m->obj[0]));
	}
	m->obj[m->n++] = p;
}

void
ax_unalloc(ax_ctx *cx, ax_store *st, void *p, uint32_t size)
{
	ax_give(cx, st, p, ax_class_of(size));
}

/* ---- stores ------------------------------------------------------------------- */

ax_store *
ax_store_new(ax_ctx *cx, ax_tree *t, uint64_t gen, const ax_engine *e,
			 uint64_t max_bytes)
{
	uint32_t	pages = (uint32_t) ((sizeof(ax_store) + AX_PAGE - 1) >> AX_PAGE_SHIFT);
	uint64_t	bytes = (uint64_t) pages << AX_PAGE_SHIFT;
	_Atomic uint64_t own = 0;
	ax_store   *st;

	if (!charge_bytes(cx, &own, max_bytes, t->groups, bytes, false))
		return NULL;
	st = ax_pages_take(cx, pages, AX_BIG, 1, false, NULL);
	if (!st)
	{
		groups_uncharge(t->groups, bytes);
		return NULL;
	}
	memset(st, 0, sizeof(*st));
	memcpy(st->groups, t->groups, sizeof(st->groups));
	st->gen = gen;
	st->tree = t;
	st->engine = e;
	atomic_init(&st->elide_option, (uint8_t) AX_ELIDE_AUTO);
	atomic_init(&st->max_bytes, max_bytes);
	st->pages = pages;
	atomic_init(&st->bytes, bytes);
	atomic_init(&st->bump, (uint32_t) sizeof(ax_store));
	st->bump_end = (uint32_t) bytes;
	atomic_init(&st->root_word, AX_WORD_INIT);
	ax_map_unchecked(&st->height, sizeof(st->height));
	ax_map_unchecked(&st->contended, sizeof(st->contended));
	for (int i = 0; i <= AX_NCLASSES; i++)
		atomic_init(&st->heap[i].latch, AX_WORD_INIT);
	AX_POISON(st + 1, bytes - sizeof(ax_store));
	return st;
}

/*
 * Bytes that one call may still free; the last span may be larger than that.
 */
typedef struct budget
{
	int			spans;
	int64_t		pages;
} budget;

static inline bool
budget_spent(const budget *b)
{
	return b->spans <= 0 || b->pages <= 0;
}

static void
give(ax_ctx *cx, budget *b, void *run, uint32_t pages, int cls, uint32_t objs)
{
	b->spans--;
	b->pages -= pages;
	ax_pages_give(cx, run, pages, cls, objs);
}

/*
 * Free spans of a store that nobody can see any more, as many as the budget allows,
 * which is lowered.  True: that was all, and the store is gone with them.
 */
static bool
store_free(ax_ctx *cx, ax_store *st, budget *left, uint64_t *freed)
{
	ax_group   *groups[AX_GROUPS];
	uint64_t	pages = 0;
	bool		all = true;

	memcpy(groups, st->groups, sizeof(groups));
	for (int cls = 0; cls <= AX_NCLASSES && all; cls++)
	{
		ax_class_heap *h = &st->heap[cls];
		int64_t		live = 0;

		while (h->all && !budget_spent(left))
		{
			ax_span    *sp = h->all;

			h->all = sp->all_next;
			live += sp->live;
			pages += sp->pages;
			give(cx, left, sp, sp->pages, cls, sp->objs);
		}
		if (cls != AX_BIG && live)
			count_live(ax_body(cx), cls, -live);
		all = h->all == NULL;
	}
	all = all && !budget_spent(left);
	if (all)
	{
		pages += st->pages;
		give(cx, left, st, st->pages, AX_BIG, 1);
	}
	groups_uncharge(groups, pages << AX_PAGE_SHIFT);
	*freed += pages;
	return all;
}

/*
 * Free dying stores that are past two epochs: those which were open when any
 * call now running began are younger.  This happens inside an epoch or not, in
 * somebody else's call.  Therefore it is only a part of a large one: the rest goes
 * back to the stack, for the next process.  A process that takes the stack works on
 * it alone.  Meanwhile others find the stack empty; "freeing" keeps them from
 * taking a shortage for real.  Returns the pages freed; *more (if given): there may
 * be more to free at once.
 */
uint64_t
ax_reap(ax_ctx *cx, bool *more)
{
	ax_area    *a = ax_area_of(cx);
	ax_stack_node *n;
	uint64_t	freed = 0;
	budget		left = {AX_REAP_SPANS, AX_REAP_PAGES};

	if (more)
		*more = false;
	if (ax_stack_empty(&a->dying))
		return 0;
	atomic_fetch_add(&a->freeing, 1);
	n = ax_stack_take_all(&a->dying);
	while (n)
	{
		ax_store   *st = (ax_store *) (void *) ((char *) n - offsetof(ax_store, dying_next));
		ax_stack_node *next = n->next;

		if (!budget_spent(&left) && st->dying_epoch + 2 <= atomic_load(&a->epoch) &&
			store_free(cx, st, &left, &freed))
			atomic_fetch_sub(&a->ndying, 1);
		else
			ax_stack_push(&a->dying, n);
		n = next;
	}
	atomic_fetch_sub(&a->freeing, 1);
	if (more)
		*more = budget_spent(&left);
	return freed;
}
