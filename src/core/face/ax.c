/*
 * ax.c
 *	  The public face: the area, trees, and the dispatch of every call to the
 *	  engine of its tree, inside an epoch.
 */
#include "core/base/ax_area.h"
#include "core/base/ax_call.h"
#include "core/btree/btree.h"
#include "core/compared/compared.h"
#include "core/radix/radix.h"
#include "core/tail/ax_tail.h"
#include "face.h"

#define COMPACT_SLACK	(64 * 1024)	/* some spans of each class */
#define CHECK_FLUSHES	1000	/* beside inserters a tail buffer may never be empty */

static inline uint64_t
pages_for(uint64_t bytes)
{
	return (bytes + AX_PAGE - 1) >> AX_PAGE_SHIFT;
}

/* ---- area -------------------------------------------------------------------- */

/*
 * Pages before the first that can be allocated.  Sets where page map and slots
 * begin.
 */
static uint64_t
header_pages(uint64_t npages, int nslots, uint64_t *map_page, uint64_t *slot_page)
{
	uint64_t	n = pages_for(sizeof(ax_area));

	*map_page = n;
	n += pages_for(npages * sizeof(uint32_t));
	*slot_page = n;
	n += pages_for((uint64_t) nslots * sizeof(ax_slot));
	return n + 1;				/* the first page of handles */
}

/* See ax.h. */
size_t
ax_area_min_size(int nslots)
{
	uint64_t	map,
				slots;
	uint64_t	least = 64 + AX_CHUNKS_EACH * (uint64_t) nslots;
	uint64_t	n = least;

	/* 64 pages to live on, those for retire records, and the map of it all */
	for (int i = 0; i < 3; i++)
		n = header_pages(n, nslots, &map, &slots) + least;
	return (size_t) (n << AX_PAGE_SHIFT);
}

/* See ax.h. */
ax_area *
ax_area_init(void *base, size_t size, int nslots, size_t reserve_bytes)
{
	ax_area    *a = base;
	uint64_t	map,
				slots;

	if (((uintptr_t) base & (AX_PAGE - 1)) || nslots <= 0 || size < ax_area_min_size(nslots))
		return NULL;
	a->base = base;
	a->npages = size >> AX_PAGE_SHIFT;
	a->size = a->npages << AX_PAGE_SHIFT;
	a->nslots = nslots;
	a->barrier = ax_barrier_join() && ax_barrier();
	a->first_page = header_pages(a->npages, nslots, &map, &slots);
	a->map = (void *) (a->base + (map << AX_PAGE_SHIFT));
	a->slots = (void *) (a->base + (slots << AX_PAGE_SHIFT));
	a->reserve_pages = pages_for(reserve_bytes);
	a->chunk_pages = AX_CHUNKS_EACH * (uint64_t) nslots;
	atomic_init(&a->epoch, 2);	/* 0 means outside */
	atomic_init(&a->next_gen, 1);
	ax_stack_init(&a->orphans);
	ax_stack_init(&a->dying);
	atomic_init(&a->handle_latch, AX_WORD_INIT);
	a->handle_next = (void *) (a->base + ((a->first_page - 1) << AX_PAGE_SHIFT));
	a->handle_end = a->handle_next + AX_PAGE / sizeof(ax_tree);
	atomic_init(&a->page_latch, AX_WORD_INIT);
	a->free_pages = a->npages - a->first_page;
	a->brk = a->top_end = a->touched = a->first_page;
	a->magic = AX_AREA_MAGIC;
	ax_map_area(a);
	return a;
}

int
ax_nslots(const ax_area *area)
{
	return area->nslots;
}

/*
 * See ax.h.
 *
 * Epoch: none is entered.
 * Latches: takes the page pool's.
 */
void
ax_memory(ax_ctx *cx, ax_memory_info *out)
{
	ax_area    *a = ax_area_of(cx);
	uint64_t	largest,
				reserve;
	int64_t		retired = 0;
	int			high = atomic_load(&a->slots_high);

	memset(out, 0, sizeof(*out));
	ax_latch_arena(cx, &a->page_latch, 0);
	largest = a->npages - a->brk;
	if (a->bin_mask)
	{
		/* a lower bound when the top list is very long */
		ax_run	   *r = a->bins[31 - __builtin_clz(a->bin_mask)];

		for (int i = 0; r && i < 1000; i++, r = r->next)
			if (r->pages > largest)
				largest = r->pages;
	}
	out->area_bytes = a->size;
	out->used_bytes = a->used_pages << AX_PAGE_SHIFT;
	out->overhead_bytes = (a->npages - a->used_pages - a->free_pages) << AX_PAGE_SHIFT;
	reserve = a->reserve_pages + ax_pages_for_chunks(a);
	out->free_bytes = a->free_pages <= reserve ? 0 : (a->free_pages - reserve) << AX_PAGE_SHIFT;
	out->reserve_bytes = (a->free_pages << AX_PAGE_SHIFT) - out->free_bytes;
	out->touched_bytes = a->touched << AX_PAGE_SHIFT;
	ax_word_unlock(cx, &a->page_latch, false);

	/* the reserve may lie in it, which trees do not get */
	out->largest_free_bytes = largest << AX_PAGE_SHIFT;
	if (out->largest_free_bytes > out->free_bytes)
		out->largest_free_bytes = out->free_bytes;
	for (int i = 0; i < high; i++)
	{
		ax_epoch_info e;

		ax_epochs(cx, i, &e);
		retired += (int64_t) e.retired_bytes;
	}
	retired += atomic_load(&a->orphan_bytes);
	out->retired_bytes = retired < 0 ? 0 : (uint64_t) retired;
}

/*
 * See ax.h.
 *
 * Epoch: none is entered.
 * Latches: takes the page pool's.
 */
int
ax_memory_classes(ax_ctx *cx, ax_class_info *out, int max)
{
	ax_area    *a = ax_area_of(cx);
	int			high = atomic_load(&a->slots_high);
	ax_class_use use[AX_NCLASSES + 1];
	int64_t		live[AX_NCLASSES] = {0};
	int			n = 0;

	ax_latch_arena(cx, &a->page_latch, 0);
	memcpy(use, a->use, sizeof(use));
	ax_word_unlock(cx, &a->page_latch, false);
	for (int i = 0; i < high; i++)
		for (int c = 0; c < AX_NCLASSES; c++)
			live[c] += atomic_load_explicit(&a->slots[i].live[c], memory_order_relaxed);

	for (int i = -1; i < AX_NCLASSES && n < max; i++)
	{
		int			c = i < 0 ? AX_BIG : i;
		ax_class_info *o = &out[n++];
		int64_t		l = c == AX_BIG ? (int64_t) use[c].objs : live[c];

		/* taken beside others' work: keep what is shown within bounds */
		if (l < 0)
			l = 0;
		if ((uint64_t) l > use[c].objs)
			l = (int64_t) use[c].objs;
		o->size_class = c == AX_BIG ? 0 : ax_class_size(c);
		o->spans = use[c].spans;
		o->bytes = use[c].pages << AX_PAGE_SHIFT;
		o->live = (uint64_t) l;
		o->free = use[c].objs - (uint64_t) l;
	}
	return n;
}

/* ---- trees -------------------------------------------------------------------- */

/*
 * See ax.h.
 *
 * Epoch: none is entered.
 * Latches: takes the handles', and inside it the page pool's.
 */
ax_tree *
ax_tree_alloc(ax_ctx *cx)
{
	ax_area    *a = ax_area_of(cx);
	ax_tree    *t;

	ax_latch_arena(cx, &a->handle_latch, 0);
	t = a->handle_free;
	if (t)
		a->handle_free = t->next_free;
	else
	{
		if (a->handle_next == a->handle_end)
		{
			/* handles are type-stable: this page stays one of handles */
			void	   *page = ax_pages_take(cx, 1, AX_OVERHEAD, 0, true, NULL);

			if (page)
			{
				memset(page, 0, AX_PAGE);
				a->handle_next = page;
				a->handle_end = a->handle_next + AX_PAGE / sizeof(ax_tree);
			}
		}
		if (a->handle_next != a->handle_end)
			t = a->handle_next++;
	}
	ax_word_unlock(cx, &a->handle_latch, false);
	return t;
}

/*
 * See ax.h.
 *
 * Epoch: none is entered.
 * Latches: takes the handles'.
 */
void
ax_tree_release(ax_ctx *cx, ax_tree *t)
{
	ax_area    *a = ax_area_of(cx);

	AX_ENSURE(ax_body(cx), atomic_load(&t->store) == NULL);
	ax_latch_arena(cx, &a->handle_latch, 0);
	t->next_free = a->handle_free;
	a->handle_free = t;
	ax_word_unlock(cx, &a->handle_latch, false);
}

static const ax_engine *const engines[AX_STRUCTURES] = {
	[AX_ART_OLC] = &ax_engine_art_olc,
	[AX_BTREE_OLC] = &ax_engine_btree_olc,
	[AX_ART_ROWEX] = &ax_engine_art_rowex,
	[AX_ART_OPTIQL] = &ax_engine_art_optiql,
	[AX_ART_COARSE] = &ax_engine_art_coarse,
	[AX_BTREE_OPTIQL] = &ax_engine_btree_optiql,
	[AX_BTREE_COARSE] = &ax_engine_btree_coarse,
	[AX_BTREE_COMPARED] = &ax_engine_btree_compared
};

/* See ax.h. */
const char *
ax_structure_name(ax_structure s)
{
	return engines[s]->structure;
}

/* See ax.h. */
const char *
ax_structure_sync(ax_structure s)
{
	return engines[s]->sync;
}

/* See ax.h. */
bool
ax_structure_is_btree(ax_structure s)
{
	return s == AX_BTREE_OLC || s == AX_BTREE_OPTIQL || s == AX_BTREE_COARSE ||
		s == AX_BTREE_COMPARED;
}

/* See ax.h. */
ax_status
ax_tree_open(ax_ctx *cx, ax_tree *t, ax_structure s, uint64_t max_bytes,
			 uint32_t page_size, uint64_t *gen)
{
	ax_area    *a = ax_area_of(cx);
	const ax_engine *e;
	ax_store   *st;
	uint64_t	g;
	int			tries = 0;

	AX_ENSURE(ax_body(cx), (unsigned) s < AX_STRUCTURES && atomic_load(&t->store) == NULL);
	e = engines[s];
	g = atomic_fetch_add(&a->next_gen, 1);
	while ((st = ax_store_new(cx, t, g, e, max_bytes)) == NULL)
		if (ax_try_for_memory(cx, &tries) != AX_OK)
			return AX_NOMEM;
	ax_body(cx)->nomem_epoch = 0;
	st->sync = e->kind;
	if (ax_structure_is_btree(s))
		st->page_size = page_size ? page_size : AX_PAGE_SIZE_DEFAULT;
	atomic_store(&t->gen, g);
	atomic_store_explicit(&t->store, st, memory_order_release);
	*gen = g;
	return AX_OK;
}

/* See ax.h. */
void
ax_tree_close(ax_ctx *cx, ax_tree *t)
{
	ax_area    *a = ax_area_of(cx);
	ax_store   *st;

	atomic_store(&t->gen, 0);
	st = atomic_exchange(&t->store, NULL);
	ax_fence_after_rmw();
	if (!st)
		return;
	/* stamped like a retired object */
	st->dying_epoch = atomic_load(&a->epoch);
	atomic_fetch_add(&a->ndying, 1);
	ax_stack_push(&a->dying, (ax_stack_node *) (void *) &st->dying_next);
}

/* From the handle: the store itself may be read inside an epoch only. */
uint64_t
ax_tree_gen(const ax_tree *t)
{
	return atomic_load_explicit(&((ax_tree *) (uintptr_t) t)->gen, memory_order_acquire);
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_tree_set_cap(ax_ctx *cx, ax_tree *t, uint64_t gen, uint64_t max_bytes)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	atomic_store_explicit(&st->max_bytes, max_bytes, memory_order_relaxed);
	ax_leave(cx);
	return AX_OK;
}

/* See ax.h. */
bool
ax_nomem_was_cap(const ax_ctx *cx)
{
	return ax_body(cx)->cap_hit;
}

/* See ax.h. */
ax_group *
ax_nomem_group(const ax_ctx *cx)
{
	return ax_body(cx)->group_hit;
}

/* See ax.h. */
void
ax_tree_set_groups(ax_tree *t, ax_group *const groups[AX_GROUPS])
{
	memcpy(t->groups, groups, sizeof(t->groups));
}

/* ---- dispatch ------------------------------------------------------------------- */

/* Keys that one call of ax_insert_sorted takes: one epoch each. */
#define SORTED_KEYS 256

/* The store's buffer, looked at before the tree (see ax_tail.h). */
static inline ax_tail *
tail_of(ax_store *st)
{
	return atomic_load_explicit(&st->tail, memory_order_acquire);
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_insert(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *key, uint32_t len)
{
	ax_store   *st;
	ax_tail    *tail;
	ax_status	r;
	int			tries = 0;

	do
	{
		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		AX_ELIDE_FRAME(cx, st);
		tail = tail_of(st);
		if (ax_unlikely(!tail && (--ax_body(cx)->tail_countdown < 0 ||
								  atomic_load_explicit(&st->tail_now, memory_order_relaxed))))
			tail = ax_tail_sample(cx, st, key, len);
		r = tail ? ax_tail_insert(cx, st, tail, key, len) :
			st->engine->insert(cx, st, key, len);
	} while (ax_finish(cx, &r, &tries));
	return r;
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_remove(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *key, uint32_t len)
{
	ax_store   *st;
	ax_tail    *tail;
	ax_status	r;
	int			tries = 0;

	do
	{
		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		AX_ELIDE_FRAME(cx, st);
		tail = tail_of(st);
		r = tail && ax_tail_near(tail, key, len - AX_TID_BYTES) ? ax_tail_remove(cx, st, tail, key, len) :
			st->engine->remove(cx, st, key, len);
	} while (ax_finish(cx, &r, &tries));
	return r == AX_NOMEM ? AX_BUSY : r; /* nobody can do without it */
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_load(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *const *keys,
		const uint32_t *lens, uint32_t len, uint64_t n, int fill)
{
	ax_store   *st;
	ax_status	r;
	int			tries = 0;
	int			loads = 0;

	do
	{
		/* dear, so only once more */
		if (loads++ == 2)
			return AX_NOMEM;
		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		r = st->engine->load(cx, st, keys, lens, len, n, fill);
	} while (ax_finish(cx, &r, &tries));
	return r;
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_insert_sorted(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *const *keys,
				 const uint32_t *lens, uint32_t len, uint64_t n, uint64_t *done,
				 uint64_t *added)
{
	ax_store   *st;
	ax_status	r;
	int			tries = 0;

	*done = *added = 0;
	if (n > SORTED_KEYS)
		n = SORTED_KEYS;
	do
	{
		uint64_t	some = 0,
					fresh = 0;

		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		AX_ELIDE_FRAME(cx, st);
		r = st->engine->insert_sorted(cx, st, keys + *done, lens ? lens + *done : NULL,
									  len, n - *done, &some, &fresh);
		*done += some;
		*added += fresh;
	} while (ax_finish(cx, &r, &tries));
	return r;
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_load_share(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *const *keys,
			  const uint32_t *lens, uint32_t len, uint64_t n, int fill, uint64_t *done,
			  uint64_t *added)
{
	ax_store   *st;
	ax_status	r;
	int			tries = 0;

	*done = *added = 0;
	do
	{
		uint64_t	some = 0,
					fresh = 0;

		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		AX_ELIDE_FRAME(cx, st);
		r = st->engine->load_share(cx, st, keys + *done, lens ? lens + *done : NULL,
								   len, n - *done, fill, &some, &fresh);
		*done += some;
		*added += fresh;
	} while (ax_finish(cx, &r, &tries));
	return r;
}

/* See ax.h. */
bool
ax_can_load_share(ax_structure s)
{
	return engines[s]->load_share != NULL;
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_settle(ax_ctx *cx, ax_tree *t, uint64_t gen, bool all)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);
	int			tries = 0;

	if (r != AX_OK)
		return r;
	ax_tail_settle(cx, st, all);
	if (st->engine->settle)
		r = st->engine->settle(cx, st, all);
	if (ax_finish(cx, &r, &tries) || r == AX_NOMEM)
		r = AX_BUSY;
	return r;
}

/* See ax.h. */
bool
ax_compact_due(uint64_t bytes, uint64_t live)
{
	return bytes > live + live / 4 + COMPACT_SLACK;
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_held(ax_ctx *cx, ax_tree *t, uint64_t gen, uint64_t *bytes, uint64_t *live)
{
	ax_store   *st;
	ax_status	r = ax_enter_read(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	*bytes = atomic_load_explicit(&st->bytes, memory_order_relaxed);
	*live = st->engine->compact ? ax_live_bytes(st) : *bytes;
	ax_leave(cx);
	return AX_OK;
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_compact(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_compaction *c)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);
	int			tries = 0;

	if (r != AX_OK)
		return r;
	ax_body(cx)->drains = ax_compact_due(atomic_load_explicit(&st->bytes, memory_order_relaxed),
										 ax_live_bytes(st));
	if (ax_body(cx)->drains)
		ax_drain_begin(cx, st);
	if (st->engine->compact)
		r = st->engine->compact(cx, st, c);
	else
		c->done = true;
	(void) ax_finish(cx, &r, &tries);
	return r;
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_contains(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *key, uint32_t len)
{
	ax_store   *st;
	ax_tail    *tail;
	ax_status	r = ax_enter_read(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	tail = tail_of(st);
	r = tail && ax_tail_near(tail, key, len - AX_TID_BYTES) ? ax_tail_contains(cx, st, tail, key, len) :
		st->engine->contains(cx, st, key, len);
	ax_leave(cx);
	return r;
}

static inline ax_status
lookup_one(ax_ctx *cx, ax_store *st, const uint8_t *prefix, uint32_t len, uint64_t *tids,
		   uint32_t max, uint32_t *n, bool *more)
{
	ax_tail    *tail = tail_of(st);

	return ax_unlikely(tail && ax_tail_near(tail, prefix, len)) ?
		ax_tail_lookup(cx, st, tail, prefix, len, tids, max, n, more) :
		st->engine->lookup(cx, st, prefix, len, tids, max, n, more);
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_lookup(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *prefix, uint32_t len,
		  uint64_t *tids, uint32_t max, uint32_t *n, bool *more)
{
	ax_store   *st;
	ax_status	r = ax_enter_read(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	r = lookup_one(cx, st, prefix, len, tids, max, n, more);
	ax_leave(cx);
	return r;
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_lookup_many(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *const *keys,
			   const uint32_t *lens, uint32_t len, uint32_t n, uint64_t *tids,
			   uint32_t max, uint32_t *counts, uint32_t *done)
{
	ax_store   *st;
	ax_status	r = ax_enter_read(cx, t, gen, &st);
	uint32_t	k = 0,
				ntids = 0;

	*done = 0;
	if (r != AX_OK)
		return r;
	while (k < n)
	{
		uint32_t	m = n - k < AX_GROUP ? n - k : AX_GROUP;
		uint32_t	some = 0;
		ax_tail    *tail = tail_of(st);	/* before the tree */

		/* as far as the buffer has none of them */
		if (ax_unlikely(tail != NULL))
			for (uint32_t i = 0; i < m; i++)
				if (ax_tail_near(tail, keys[k + i], lens ? lens[k + i] : len))
					m = i;
		if (ax_likely(m > 0) && ax_likely(st->engine->lookup_many != NULL))
			r = st->engine->lookup_many(cx, st, keys + k, lens ? lens + k : NULL, len, m,
										tids + ntids, max - ntids, counts + k, &some);
		else
		{
			bool		more;

			r = lookup_one(cx, st, keys[k], lens ? lens[k] : len, tids + ntids,
						   max - ntids, &counts[k], &more);
			m = 1;
			some = r == AX_OK && !more;
		}
		for (uint32_t i = 0; i < some; i++)
			ntids += counts[k++];
		if (r != AX_OK || some < m)
			break;
	}
	ax_leave(cx);
	*done = k;
	return k ? AX_OK : r;
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_scan(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_batch *b)
{
	ax_store   *st;
	ax_tail    *tail;
	ax_status	r = ax_enter_read(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	tail = tail_of(st);
	r = tail ? ax_tail_scan(cx, st, tail, b) : st->engine->scan(cx, st, b);
	ax_leave(cx);
	return r;
}

/* The counters of a store, summed over its shards; inside an epoch. */
static void
store_info(ax_ctx *cx, ax_store *st, ax_tree_info *out, bool about)
{
	int64_t		sum[7] = {0};

	memset(out, 0, sizeof(*out));
	out->gen = st->gen;
	out->bytes = atomic_load_explicit(&st->bytes, memory_order_relaxed);
	out->live_bytes = ax_live_bytes(st);
	out->max_bytes = atomic_load_explicit(&st->max_bytes, memory_order_relaxed);
	out->structure = st->engine->structure;
	out->sync = st->engine->sync;
	out->page_size = st->page_size;
	out->height = (int) atomic_load_explicit(&st->height, memory_order_relaxed);
	for (int i = 0; i < AX_SHARDS; i++)
	{
		ax_shard   *s = &st->shards[i];

		sum[0] += atomic_load_explicit(&s->entries, memory_order_relaxed);
		sum[1] += atomic_load_explicit(&s->n4, memory_order_relaxed);
		sum[2] += atomic_load_explicit(&s->n16, memory_order_relaxed);
		sum[3] += atomic_load_explicit(&s->n48, memory_order_relaxed);
		sum[4] += atomic_load_explicit(&s->n256, memory_order_relaxed);
		sum[5] += atomic_load_explicit(&s->leaves, memory_order_relaxed);
		sum[6] += atomic_load_explicit(&s->embedded, memory_order_relaxed);
		out->restarts += atomic_load_explicit(&s->restarts, memory_order_relaxed);
		out->pessimistic += atomic_load_explicit(&s->pessimistic, memory_order_relaxed);
		out->latch_waits += atomic_load_explicit(&s->latch_waits, memory_order_relaxed);
		out->parks += atomic_load_explicit(&s->parks, memory_order_relaxed);
		out->handovers += atomic_load_explicit(&s->handovers, memory_order_relaxed);
		out->abandoned += atomic_load_explicit(&s->abandoned, memory_order_relaxed);
		out->opportunistic_reads += atomic_load_explicit(&s->opportunistic_reads, memory_order_relaxed);
		out->opportunistic_failed += atomic_load_explicit(&s->opportunistic_failed, memory_order_relaxed);
		out->expansions += atomic_load_explicit(&s->expansions, memory_order_relaxed);
	}
	/* shards are read one after another: a sum may dip below zero */
	for (int i = 0; i < 7; i++)
		if (sum[i] < 0)
			sum[i] = 0;
	out->entries = (uint64_t) sum[0];
	out->n4 = (uint64_t) sum[1];
	out->n16 = (uint64_t) sum[2];
	out->n48 = (uint64_t) sum[3];
	out->n256 = (uint64_t) sum[4];
	out->leaves = (uint64_t) sum[5];
	out->embedded = (uint64_t) sum[6];
	out->inner_nodes = out->n4 + out->n16 + out->n48 + out->n256;
	ax_tail_info(cx, st, out, about);
}

/*
 * The numbers of a generation; "about": entries may be counted roughly.
 *
 * Epoch: enters and leaves.
 */
static inline ax_status
tree_info(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tree_info *out, bool about)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	store_info(cx, st, out, about);
	out->elided = ax_elide_active(cx, st);
	ax_leave(cx);
	return AX_OK;
}

/* See ax.h. */
ax_status
ax_info(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tree_info *out)
{
	return tree_info(cx, t, gen, out, false);
}

/* See ax.h. */
ax_status
ax_info_about(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tree_info *out)
{
	return tree_info(cx, t, gen, out, true);
}

/*
 * See ax.h.
 *
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_check(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_checking *c)
{
	ax_store   *st;
	ax_status	r;

	if (!c->begun && c->flushes < CHECK_FLUSHES)
	{
		bool		more;

		/* into the tree with it, a step a call; what cannot go there is counted below */
		r = ax_tail_flush(cx, t, gen, &more);
		if (r == AX_STALE)
			return r;
		if (r == AX_OK && more)
		{
			c->flushes++;
			return AX_OK;
		}
		c->flushes = CHECK_FLUSHES;
	}
	r = ax_enter(cx, t, gen, &st);
	if (r != AX_OK)
		return r;
	r = st->engine->check(cx, st, c);
	c->begun = true;
	if (c->bad)
		c->done = true;
	if (r == AX_OK && c->done)
	{
		c->info.inner_nodes = c->info.n4 + c->info.n16 + c->info.n48 + c->info.n256;
		if (tail_of(st))
			ax_tail_info(cx, st, &c->info, false);
	}
	ax_leave(cx);
	return r;
}
