/*
 * ax_area.h
 *	  The area's layout, shared by the pages, arena, epoch and dispatch files.
 *
 *	  header | page map, 4 bytes a page | slots | first handles | pages
 *
 * src/core/base/README.md: Memory and epochs
 */
#ifndef AX_AREA_H
#define AX_AREA_H

#include "ax_internal.h"
#include "ax_stack.h"

#define AX_AREA_MAGIC	UINT64_C(0x6172746964783031)
#define AX_PAGE_SHIFT	12
#define AX_DISCARD_PAGES 256	/* dirty free pages worth a system call: 1 MiB */
#define AX_LATCH_MS		1000	/* an allocator's patience */
#define AX_BINS			31

/*
 * Page map.  Used page: its distance from the first page of its run.  Free run:
 * FREE and the run's length, in the entries of its first and of its last page.
 * Those between are stale and never looked at.
 */
#define AX_MAP_FREE		0x80000000u
#define AX_MAP_LEN		0x3FFFFFFFu

/* At the start of a free run.  Written under the page latch. */
typedef struct ax_run
{
	struct ax_run *next;
	struct ax_run *prev;
	uint32_t	pages;
	uint32_t	dirty;			/* pages used since they were last discarded */
	uint64_t	dirty_lo;		/* they lie in these pages */
	uint64_t	dirty_hi;
} ax_run;

/*
 * At the start of every span; objects follow.  All but the immutable members are written
 * under the latch of the class's heap.  "live" and "draining" are read without it.
 */
struct ax_span
{
	ax_store   *store;			/* immutable, with pages, cls and objs */
	void	   *free;			/* free objects, chained by their first word */
	ax_span    *next;			/* in heap.partial, or in store.drain */
	ax_span    *prev;
	ax_span    *all_next;		/* in heap.all */
	ax_span    *all_prev;
	uint32_t	pages;
	uint16_t	cls;
	uint16_t	objs;			/* that fit */
	uint16_t	bump;			/* ever taken */
	_Atomic uint16_t live;		/* given out now, to magazines too */
	bool		partial;		/* in heap.partial */
	_Atomic bool draining;		/* to become empty: in no list to take from */
};
_Static_assert(sizeof(ax_span) == AX_LINE, "span header is one line");

/*
 * Spans of a class that are to become empty, and the objects that they have room for.
 * Written under the latch of the class's heap.  "objs" is read without it.
 */
typedef struct ax_drain
{
	ax_span    *first;
	_Atomic uint32_t objs;
} ax_drain;

/*
 * Retire records: see ax_epoch.c.  A list, its chunks and their records are written by
 * the process that has the list in hand (ax_slot.limbo).
 */
typedef struct ax_record
{
	void	   *p;
	ax_tree    *tree;
	uint64_t	gen;
	uint64_t	stamp;
	uint32_t	bytes;			/* said here: the span's header may be gone */
	uint32_t	cls;
} ax_record;

#define AX_LIMBO_RECS 100
struct ax_limbo
{
	ax_stack_node node;			/* in the orphan stack: the newest chunk's; written
								 * by its pusher */
	ax_limbo   *next;			/* circular: the newest points to the oldest */
	uint32_t	first;			/* records first..end-1 are waiting */
	uint32_t	end;
	_Alignas(AX_LINE) ax_record rec[AX_LIMBO_RECS];
};
_Static_assert(sizeof(ax_limbo) <= AX_PAGE, "a chunk of records is one page");

/* Spans and objects that a class owns, under the page latch. */
typedef struct ax_class_use
{
	uint64_t	spans;
	uint64_t	pages;
	uint64_t	objs;
} ax_class_use;

/*
 * The header of the area.  Atomic members are written by any process, by the operation
 * that is named; the others by the holder of the latch above them.
 */
struct ax_area
{
	/* immutable: written by ax_area_init() alone */
	uint64_t	magic;
	char	   *base;
	uint64_t	size;
	uint64_t	npages;
	uint64_t	first_page;		/* behind the headers */
	uint64_t	reserve_pages;	/* for deletion, handles, the caller's objects */
	uint64_t	chunk_pages;	/* and these for chunks of retire records only */
	int			nslots;
	bool		barrier;		/* announcements may be plain stores: ax_barrier */
	_Atomic uint32_t *map;
	ax_slot    *slots;

	/* epochs */
	_Alignas(AX_LINE) _Atomic uint64_t epoch;	/* by the holder of "advancing" */
	_Alignas(AX_LINE) _Atomic uint32_t advancing;	/* try-latch: an exchange takes it,
													 * its holder gives it back */
	_Atomic int slots_high;		/* slots ever used; a CAS raises it */
	_Atomic uint64_t advanced_ns;	/* when ax_reclaim last moved the epoch; the
									 * latest store wins, it is a hint */
	_Atomic uint64_t next_gen;	/* added to */
	_Alignas(AX_LINE) ax_stack orphans; /* retire lists of exited processes; pushed, and
										 * taken as a whole */
	_Atomic int64_t orphan_objs;	/* added to by each push and each take */
	_Atomic int64_t orphan_bytes;
	ax_stack	dying;			/* stores, by dying_next; pushed, taken as a whole */
	_Atomic int32_t ndying;		/* on that stack or in a reaper's hand; added to */
	_Atomic int32_t freeing;	/* processes that hold pages on their way back: each
								 * adds one, and takes it off again */

	/* search layers that are behind (ax_news.c): any process stores */
	_Alignas(AX_LINE) _Atomic uint32_t news;	/* something was logged */
	_Atomic uint32_t updater_sleeps;

	/* handles */
	_Alignas(AX_LINE) ax_word handle_latch; /* guards the next three */
	ax_tree    *handle_free;
	ax_tree    *handle_next;	/* rest of the newest page of handles */
	ax_tree    *handle_end;

	/* pages */
	_Alignas(AX_LINE) ax_word page_latch;	/* guards all that follows */
	uint64_t	free_pages;
	uint64_t	used_pages;		/* owned by stores */
	uint64_t	chunks;			/* chunks of retire records */
	uint64_t	brk;			/* pages from here on are free, in no list */
	uint64_t	top_end;		/* pages from here on are untouched, or discarded */
	uint64_t	top_dirty;		/* between brk and top_end, at most so many */
	uint64_t	touched;		/* high-water mark */
	uint32_t	bin_mask;
	ax_run	   *bins[AX_BINS];
	ax_class_use use[AX_NCLASSES + 1];
};

/*
 * Free pages that nothing but chunks of retire records may take; the page latch
 * held.  So free_pages + chunks never falls below chunk_pages.  A process that
 * takes a page for something else leaves so many.  A chunk only goes from the one
 * to the other.
 */
static inline uint64_t
ax_pages_for_chunks(const ax_area *a)
{
	return a->chunks < a->chunk_pages ? a->chunk_pages - a->chunks : 0;
}

static inline ax_area *
ax_area_of(ax_ctx *cx)
{
	return ax_body(cx)->area;
}

/*
 * A full fence behind a sequentially consistent read-modify-write.  On x86
 * the locked instruction was one already.
 */
static inline void
ax_fence_after_rmw(void)
{
#if defined(__x86_64__) || defined(__i386__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* ---- ASan: what is free is poisoned ---- */
#ifdef AX_ASAN
#include <sanitizer/asan_interface.h>

#define AX_POISON(p, n) \
	do { if (ax_poisoning) __asan_poison_memory_region((p), (n)); } while (0)
#define AX_UNPOISON(p, n) \
	do { if (ax_poisoning) __asan_unpoison_memory_region((p), (n)); } while (0)
#else
#define AX_POISON(p, n) ax_map_new_memory(p, n)
#define AX_UNPOISON(p, n) ax_map_new_memory(p, n)
#endif

/* ---- ax_latch.c ---- */

/*
 * Latch a word of the arena, of the page pool, of the handles or of a class heap,
 * which is never obsolete.  A failure is no reason to fail for good.  Tries for about
 * "ms" milliseconds; 0: until it has it, for giving memory back cannot be put off.
 *
 * Latches: the word's on true.
 * Order: handles, then class heap, then page pool; node latches may be held.
 * Returns: false when the time is over.
 */
extern bool ax_latch_arena(ax_ctx *cx, ax_word *w, int ms);

/* ---- ax_pages.c ---- */

/* Owner of a page run, besides classes 0..AX_BIG. */
#define AX_OVERHEAD (-1)
#define AX_CHUNK	(-2)		/* of retire records: overhead, too */
#define AX_CHUNKS_EACH 2		/* a process needs no more when nothing is waiting */

/*
 * A run of pages for a span of class cls with objs objects, or AX_OVERHEAD, AX_CHUNK.
 * NULL when there is none; *busy (if given) tells a latch's failure from want
 * of memory.
 */
extern void *ax_pages_take(ax_ctx *cx, uint32_t pages, int cls, uint32_t objs,
						   bool may_reserve, bool *busy);

/*
 * Give a run back, with cls and objs as they were given to ax_pages_take.  Joins it
 * with free neighbours, and gives what was used to the kernel when a mebibyte has come
 * together.
 *
 * Latches: takes the page pool's, however long that takes; lets it go around the
 * system call.
 */
extern void ax_pages_give(ax_ctx *cx, void *run, uint32_t pages, int cls, uint32_t objs);

/* The first page of the run that p lies in; p is in use. */
static inline void *
ax_pages_run(ax_area *a, const void *p)
{
	uint64_t	pg = (uint64_t) ((const char *) p - a->base) >> AX_PAGE_SHIFT;

	pg -= atomic_load_explicit(&a->map[pg], memory_order_relaxed);
	return a->base + (pg << AX_PAGE_SHIFT);
}

/* ---- ax_arena.c ---- */

/*
 * The smallest class for objects of so many bytes; AX_BIG: they need pages of their
 * own.
 */
extern int	ax_class_of(uint32_t size);

/* The size of an object of a class below AX_BIG. */
extern uint32_t ax_class_size(int cls);

/* Pages that a class's nth span gets (from 0), where there is room. */
extern uint32_t ax_span_pages(int cls, uint32_t nth);

/* Objects of a class that a span of so many pages holds, behind its header. */
extern uint32_t ax_span_objs(uint32_t pages, int cls);

/*
 * Free an object that nobody can see any more: into the magazine, or to its span.
 *
 * Epoch: inside, of a call that may change something; the store is alive.
 * Latches: may take the class heap's, and after that the page pool's.
 */
extern void ax_give(ax_ctx *cx, ax_store *st, void *p, int cls);

/*
 * Give the objects of all AX_MAGS magazines back to their spans.  Objects of a
 * generation that is gone are forgotten.
 *
 * Epoch: inside.  The magazines are nobody else's.
 */
extern void ax_magazines_flush(ax_ctx *cx, ax_magazine *mags);

/*
 * Make the store of a generation, not yet published, in pages of its own that are
 * charged to "max_bytes" and the handle's groups.
 *
 * Returns: NULL when there is no page for it, or the cap or a group refuses it.
 */
extern ax_store *ax_store_new(ax_ctx *cx, ax_tree *t, uint64_t gen,
							  const ax_engine *e, uint64_t max_bytes);

/*
 * Dropped trees' spans that one call frees, and pages: 4 MiB and the rest of the last
 * span, less than a millisecond.
 */
#define AX_REAP_SPANS	64
#define AX_REAP_PAGES	1024

/*
 * Free a part of the stores that are dying and past two epochs.  A store that is not
 * done goes back to the stack for the next process.
 *
 * Epoch: inside or outside.
 * Returns: the pages freed; *more (if given): there may be more to free at once.
 */
extern uint64_t ax_reap(ax_ctx *cx, bool *more);

/* ---- ax_epoch.c ---- */

/*
 * Enter the epoch with no tree in view, for a call that may use the magazines.
 *
 * Epoch: outside on entry, inside on return; ax_leave() ends it.
 */
extern void ax_epoch_enter(ax_ctx *cx);

/*
 * After calls that retired: move the epoch, if it can move, and reclaim more than came
 * in.  Adopts lists of processes that exited, and frees a part of a dying store.
 *
 * Epoch: outside; enters and leaves.
 * Latches: none held.
 */
extern void ax_reclaim(ax_ctx *cx);

/*
 * One round of housekeeping over the lists of all slots; bounded, for callers are in
 * critical sections.
 *
 * Epoch: outside; enters and leaves.
 * Latches: none held.
 * Returns: what it freed, in records and pages; *pending: what is left (ax.h).
 */
extern uint64_t ax_housekeep(ax_ctx *cx, ax_pending *pending);

#endif							/* AX_AREA_H */
