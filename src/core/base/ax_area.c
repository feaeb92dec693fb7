/*
 * ax_area.c
 *	  The area: its layout, and how much of its memory is in use.
 *
 * src/core/base/README.md: Memory and epochs
 */
#include "ax_area.h"
#include "ax_latch.h"

static inline uint64_t
pages_for(uint64_t bytes)
{
	return (bytes + AX_PAGE - 1) >> AX_PAGE_SHIFT;
}

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

bool
ax_area_intact(const ax_area *area, size_t size, int nslots)
{
	uint64_t	map,
				slots;
	const uint8_t *base = (const uint8_t *) area;
	uint64_t	npages = size >> AX_PAGE_SHIFT;
	uint64_t	first = header_pages(npages, nslots, &map, &slots);

	return area->magic == AX_AREA_MAGIC && (const uint8_t *) area->base == base &&
		area->npages == npages && area->size == npages << AX_PAGE_SHIFT &&
		area->nslots == nslots && area->first_page == first &&
		(const uint8_t *) area->map == base + (map << AX_PAGE_SHIFT) &&
		(const uint8_t *) area->slots == base + (slots << AX_PAGE_SHIFT);
}

size_t
ax_area_touched(const ax_area *area, size_t size, int nslots)
{
	if (!ax_area_intact(area, size, nslots) ||
		area->touched < area->first_page || area->touched > area->npages)
		return size;
	return area->touched << AX_PAGE_SHIFT;
}

int
ax_nslots(const ax_area *area)
{
	return area->nslots;
}

/*
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
