/*
 * ax_pages.c
 *	  Runs of pages: the bottom of the arena.
 *
 * One latch guards everything here, held for the time of a few list
 * operations.  Free runs are coalesced with their neighbours through boundary tags
 * in the page map.  They sit in lists by power of two, whose links are in the runs'
 * first pages.  Pages that were never used ("brk" and up) are in no list and
 * untouched, header and map included.  So the kernel commits memory only as the
 * indexes grow.
 *
 * Memory goes back to the kernel when a coalesced run has gathered a mebibyte
 * of pages that were used since they were last given back.  Only the part that
 * they lie in goes, for the call looks at every page of its range in every
 * process.  The run is out of the lists during the system call, which
 * therefore needs no latch. area->freeing tells allocators that the shortage
 * they see may be over in a moment.
 *
 * src/core/base/README.md: Memory and epochs
 */
#include "ax_area.h"

#ifdef AX_ASAN
bool		ax_poisoning = true;
#endif

static inline int
bin_of(uint64_t pages)
{
	return 63 - __builtin_clzll(pages);
}

static inline uint32_t
map_get(ax_area *a, uint64_t pg)
{
	return atomic_load_explicit(&a->map[pg], memory_order_relaxed);
}

/*
 * Readers without the latch look only at pages of runs they know to be in
 * use, whose entries do not change; hence relaxed.
 */
static inline void
map_set(ax_area *a, uint64_t pg, uint32_t v)
{
	atomic_store_explicit(&a->map[pg], v, memory_order_relaxed);
}

static inline ax_run *
run_at(ax_area *a, uint64_t pg)
{
	return (ax_run *) (void *) (a->base + (pg << AX_PAGE_SHIFT));
}

static inline uint64_t
page_number(ax_area *a, const void *p)
{
	return (uint64_t) ((const char *) p - a->base) >> AX_PAGE_SHIFT;
}

/*
 * Put a run of free pages into its bin and into the page map.
 *
 * Latches: the page pool's is held.
 */
static void
run_insert(ax_area *a, uint64_t pg, uint64_t len, uint64_t dirty,
		   uint64_t lo, uint64_t hi)
{
	ax_run	   *r = run_at(a, pg);
	int			bin = bin_of(len);

	AX_UNPOISON(r, sizeof(ax_run));
	r->pages = (uint32_t) len;
	r->dirty = (uint32_t) (dirty < len ? dirty : len);
	r->dirty_lo = lo;
	r->dirty_hi = hi;
	r->prev = NULL;
	r->next = a->bins[bin];
	if (r->next)
		r->next->prev = r;
	a->bins[bin] = r;
	a->bin_mask |= 1u << bin;
	map_set(a, pg, AX_MAP_FREE | (uint32_t) len);
	map_set(a, pg + len - 1, AX_MAP_FREE | (uint32_t) len);
}

/*
 * Take a run of free pages out of its bin.
 *
 * Latches: the page pool's is held.
 */
static void
run_remove(ax_area *a, ax_run *r)
{
	int			bin = bin_of(r->pages);

	if (r->prev)
		r->prev->next = r->next;
	else
	{
		a->bins[bin] = r->next;
		if (!r->next)
			a->bin_mask &= ~(1u << bin);
	}
	if (r->next)
		r->next->prev = r->prev;
}

/* A free run of at least n pages out of its list; NULL: only brk is left. */
static ax_run *
find_run(ax_area *a, uint32_t n, bool thorough)
{
	int			bin = bin_of(n);
	uint32_t	above = bin + 1 < AX_BINS ? a->bin_mask >> (bin + 1) << (bin + 1) : 0;
	ax_run	   *r = a->bins[bin];

	for (int i = 0; r && (thorough || i < 8); r = r->next, i++)
		if (r->pages >= n)
			return r;
	return above ? a->bins[__builtin_ctz(above)] : NULL;
}

/*
 * Latches: takes the page pool's, for AX_LATCH_MS at most.
 * Returns: NULL; *busy says that it was for the latch.  Also in a hurry (ax.h), unless
 * what it does must not fail: so a bulk load ends at its next span.
 */
void *
ax_pages_take(ax_ctx *cx, uint32_t pages, int cls, uint32_t objs,
			  bool may_reserve, bool *busy)
{
	ax_area    *a = ax_area_of(cx);
	uint64_t	pg = 0;
	uint64_t	keep;
	ax_run	   *r;

	ax_body(cx)->cap_hit = false;
	ax_body(cx)->group_hit = NULL;
	if (pages == 0 || pages > AX_MAP_LEN)
		return NULL;
	if (!may_reserve && ax_hurry(ax_body(cx)))
		return NULL;
	if (!ax_latch_arena(cx, &a->page_latch, AX_LATCH_MS))
	{
		if (busy)
			*busy = true;
		return NULL;
	}
	keep = cls == AX_CHUNK ? 0 : ax_pages_for_chunks(a) + (may_reserve ? 0 : a->reserve_pages);
	if (a->free_pages < pages + keep)
		goto out;

	r = find_run(a, pages, false);
	if (!r && a->npages - a->brk < pages)
		r = find_run(a, pages, true);
	if (r)
	{
		uint64_t	len = r->pages;

		pg = page_number(a, r);
		run_remove(a, r);
		if (len > pages)
		{
			uint64_t	at = pg + pages;
			uint64_t	lo = r->dirty_lo > at ? r->dirty_lo : at;
			uint64_t	hi = r->dirty_hi > lo ? r->dirty_hi : lo;

			run_insert(a, at, len - pages, r->dirty < hi - lo ? r->dirty : hi - lo, lo, hi);
		}
	}
	else if (a->npages - a->brk >= pages)
	{
		pg = a->brk;
		a->brk += pages;
		a->top_dirty -= a->top_dirty < pages ? a->top_dirty : pages;
		if (a->top_end < a->brk)
			a->top_end = a->brk;
		if (a->touched < a->brk)
			a->touched = a->brk;
	}
	else
		goto out;

	for (uint32_t i = 0; i < pages; i++)
		map_set(a, pg + i, i);
	a->free_pages -= pages;
	if (cls == AX_CHUNK)
		a->chunks += pages;
	else if (cls != AX_OVERHEAD)
	{
		a->used_pages += pages;
		a->use[cls].spans++;
		a->use[cls].pages += pages;
		a->use[cls].objs += objs;
	}
out:
	ax_word_unlock(cx, &a->page_latch, false);
	if (!pg)
		return NULL;
	AX_UNPOISON(run_at(a, pg), (size_t) pages << AX_PAGE_SHIFT);
	return run_at(a, pg);
}

/* Take a free neighbour out of its list to join it; returns its length. */
static uint64_t
absorb_neighbour(ax_area *a, ax_run *r, uint64_t *dirty, uint64_t *lo, uint64_t *hi)
{
	run_remove(a, r);
	if (r->dirty)
	{
		if (*dirty == 0 || r->dirty_lo < *lo)
			*lo = r->dirty_lo;
		if (*dirty == 0 || r->dirty_hi > *hi)
			*hi = r->dirty_hi;
		*dirty += r->dirty;
	}
	return r->pages;
}

/*
 * A run of pages is nobody's any more.
 *
 * Latches: the page pool's is held.
 */
static void
uncount_run(ax_area *a, uint32_t pages, int cls, uint32_t objs)
{
	a->free_pages += pages;
	if (cls == AX_CHUNK)
		a->chunks -= pages;
	else if (cls != AX_OVERHEAD)
	{
		a->used_pages -= pages;
		a->use[cls].spans--;
		a->use[cls].pages -= pages;
		a->use[cls].objs -= objs;
	}
}

/*
 * Latches: takes the page pool's, however long that takes, and lets it go
 * around the system call.
 */
void
ax_pages_give(ax_ctx *cx, void *run, uint32_t pages, int cls, uint32_t objs)
{
	ax_area    *a = ax_area_of(cx);
	uint64_t	pg = page_number(a, run);
	uint64_t	len = pages;
	uint64_t	dirty = pages;
	uint64_t	lo = pg;		/* the dirty ones lie between these */
	uint64_t	hi = pg + pages;

	AX_ENSURE(ax_body(cx), pg >= a->first_page && pg + len <= a->npages &&
			  map_get(a, pg) == 0 && map_get(a, pg + len - 1) == len - 1);
	AX_POISON(run, (size_t) pages << AX_PAGE_SHIFT);

	ax_latch_arena(cx, &a->page_latch, 0);
	uncount_run(a, pages, cls, objs);
	for (;;)
	{
		uint32_t	m = map_get(a, pg - 1);
		bool		top;

		/* a run stays below 2^30 pages, so that a tag can hold its length */
		if ((m & AX_MAP_FREE) && len + (m & AX_MAP_LEN) <= AX_MAP_LEN)
		{
			pg -= m & AX_MAP_LEN;
			len += absorb_neighbour(a, run_at(a, pg), &dirty, &lo, &hi);
		}
		if (pg + len < a->brk)
		{
			m = map_get(a, pg + len);
			if ((m & AX_MAP_FREE) && len + (m & AX_MAP_LEN) <= AX_MAP_LEN)
				len += absorb_neighbour(a, run_at(a, pg + len), &dirty, &lo, &hi);
		}
		top = pg + len == a->brk;
		if (top && a->top_dirty)
		{
			/* what was used of the pages behind goes along */
			if (dirty == 0)
				lo = a->brk;
			dirty += a->top_dirty;
			hi = a->top_end - pg <= AX_MAP_LEN ? a->top_end : pg + AX_MAP_LEN;
		}
		if (dirty >= AX_DISCARD_PAGES && dirty >= (hi - lo) / 4)
		{
			if (top && hi > a->brk)
			{
				len = hi - pg;
				a->brk = hi;
				a->top_dirty = 0;
			}
			/* out of the lists: to the neighbours it looks like a used run */
			map_set(a, pg, 0);
			map_set(a, pg + len - 1, 0);
			atomic_fetch_add(&a->freeing, 1);
			ax_word_unlock(cx, &a->page_latch, false);
			if (ax_body(cx)->port->discard)
				ax_body(cx)->port->discard(run_at(a, lo), (size_t) (hi - lo) << AX_PAGE_SHIFT);
			ax_latch_arena(cx, &a->page_latch, 0);
			atomic_fetch_sub(&a->freeing, 1);
			dirty = 0;
			continue;
		}
		if (top)
		{
			a->brk = pg;
			a->top_dirty = dirty;
			if (dirty == 0)
				a->top_end = pg;
		}
		else
			run_insert(a, pg, len, dirty, lo, hi);
		break;
	}
	ax_word_unlock(cx, &a->page_latch, false);
}
