/*
 * ax_internal.h
 *	  What the core's files share: the attachment, the store of one
 *	  generation, epochs, allocation.
 *
 * src/core/base/README.md: Memory and epochs
 */
#ifndef AX_INTERNAL_H
#define AX_INTERNAL_H

#include <string.h>
#include <urcu/arch.h>

#include "core/ax.h"
#include "ax_latch.h"
#include "ax_section.h"

#define AX_LINE 64

#if defined(__GNUC__)
#define ax_likely(x)	__builtin_expect(!!(x), 1)
#define ax_unlikely(x)	__builtin_expect(!!(x), 0)
#define ax_prefetch(p)	__builtin_prefetch(p)

/*
 * Every function of prefetches only is to be marked so.  In gcc's eyes it has
 * no effect, so a call of it that is not inlined at once goes, and says
 * nothing.  (make -C test/core check-prefetch looks into the object files.)
 */
#define AX_PREFETCHES	__attribute__((always_inline))
#endif

/* A cannot-happen stops the server rather than answer wrongly. */
#define AX_ENSURE(cx, cond) \
	do { if (ax_unlikely(!(cond))) (cx)->port->panic(#cond, __FILE__, __LINE__); } while (0)
#ifdef AX_DEBUG
#define AX_ASSERT(cx, cond) AX_ENSURE(cx, cond)
#else
#define AX_ASSERT(cx, cond) ((void) 0)
#endif

/*
 * Pause points: a test parks one thread here and runs another through the
 * window.  Nothing in a build without AX_POINTS.
 */
#ifdef AX_POINTS
/*
 * A process passes the pause point of this name.  Builds for tests define it: a hook
 * may stop the process there, or do what another one would do.
 */
extern void ax_point(const char *name);
#define AX_POINT(name) ax_point(name)
#else
#define AX_POINT(name) ((void) 0)
#endif

static inline void
ax_pause(void)
{
	caa_cpu_relax();
}

/* ---- the private attachment ---- */

typedef struct ax_slot ax_slot; /* shared, one a process (ax_epoch.c) */
typedef struct ax_limbo ax_limbo;	/* a chunk of retire records (ax_epoch.c) */

/*
 * A magazine: free objects of one class of one store, owned by this process.
 * Forgotten, not freed, when the store's generation is gone.  It lies in the
 * process's slot, so that others can empty it while its owner does nothing.  The owner
 * writes it inside an epoch; outside, the process that has the slot's "emptied" does.
 */
#define AX_MAG_OBJS 16
#define AX_MAGS 32
#define AX_MAG_BYTES 4096		/* of objects in one */
typedef struct ax_magazine
{
	uint64_t	gen;			/* of the store; 0: empty magazine */
	ax_tree    *tree;			/* type-stable: says whether gen still lives */
	uint32_t	cls;
	uint32_t	n;
	void	   *obj[AX_MAG_OBJS];
} ax_magazine;

#define AX_WAITED 4

typedef struct ax_ctx_body
{
	ax_area    *area;
	ax_slot    *slot;
	const ax_port *port;
	int			slotno;
	int			latches;		/* held now */
	bool		joined;			/* may announce by a plain store */
	bool		plain;			/* and the last call changed nothing */
	uint8_t		shard;			/* for a store's sharded counters */
	uint32_t	shard_at;		/* where in a store that is */
	ax_elide_ctx elide;
	bool		alloc_busy;		/* ax_alloc failed for a latch, not for memory */
	bool		alloc_injected; /* ax_alloc failed because of fail_alloc_at */
	bool		limbo_short;	/* ax_retire_reserve found no page */
	bool		cap_hit;		/* the last refusal of pages was the cap's */
	ax_group   *group_hit;		/* or this group's */
	bool		over_cap;		/* for the moment: what this call takes, it gives back */
	bool		drains;			/* this call may choose spans that are to be emptied */
	uint32_t	spins;			/* pauses in about two microseconds */
	uint32_t	retired_since;	/* objects retired since the last try to advance */
	uint64_t	retired_bytes_since;
	ax_store   *cur;			/* of the last call, for statistics: look at it
								 * inside only */
	ax_limbo   *limbo;			/* the slot's retire list while this call has it */
	int			claims;			/* buffers that this call flushes: as a latch held,
								 * but what flushes calls the tree */
	int32_t		tail_countdown; /* inserts until one is looked at (ax_tail_auto.c) */
	uint32_t	tail_turn;		/* inserts into buffers */
	uint64_t	nomem_epoch;	/* epoch when memory first ran out; 0: has not */
	bool		nomem_busy;		/* and the last call said AX_BUSY: the next one goes on with it */
	uint64_t	rng;
	ax_word    *opportunistic;	/* what this call read beside a writer, last */
	uint64_t	opportunistic_v;	/* and its sample */
	uint64_t	nap_pin;		/* the epoch announced when it last napped */
	uint32_t	naps;			/* of late */
	uint64_t	contended_at;	/* when contention was last met, ns */
	uint64_t	credit_until;	/* no nap before, ns */
	ax_word    *hot_word;		/* a latch often waited for; NULL: none of late */
	struct
	{
		ax_word    *w;
		uint32_t	n;
	}			waited[AX_WAITED];	/* how often, for a few of them */
	/* test hook: the n-th allocation from now fails (0: never) */
	uint64_t	fail_alloc_at;
	ax_magazine *mags;			/* AX_MAGS, the slot's: inside an epoch only */
} ax_ctx_body;

_Static_assert(sizeof(ax_ctx_body) <= AX_CTX_BYTES, "ax_ctx too small");

static inline ax_ctx_body *
ax_body(const ax_ctx *cx)
{
	return (ax_ctx_body *) (uintptr_t) cx->opaque;
}

/* Is this process to end soon, or what it does (ax.h)? */
static inline bool
ax_hurry(const ax_ctx_body *b)
{
	return b->port->hurry && b->port->hurry();
}

/* ---- one generation of a tree ---- */

/* How a tree is synchronized. */
typedef enum ax_sync
{
	AX_SYNC_OLC,
	AX_SYNC_ROWEX,
	AX_SYNC_OPTIQL,
	AX_SYNC_COARSE,
	AX_SYNC_MVRLU
} ax_sync;

/*
 * Size classes, in bytes, all multiples of a line so that two processes'
 * magazines never share one. 64..1024 step 64, then coarser to 32 KiB (see
 * ax_arena.c).  Larger objects are runs of pages of their own.
 */
#define AX_NCLASSES 40
#define AX_BIG AX_NCLASSES		/* the class of page runs */

typedef struct ax_span ax_span; /* ax_area.h */

/* Written under its latch; "live" is read without it. */
typedef struct ax_class_heap
{
	ax_word		latch;			/* guards the lists below (pessimistic only) */
	ax_span    *partial;		/* spans with free objects, doubly linked */
	ax_span    *all;			/* every span of the class, doubly linked */
	uint32_t	objs;			/* for which the spans have room */
	_Atomic uint32_t live;		/* of these, given out; of page runs: pages */
} ax_class_heap;

#define AX_OWN 24				/* bytes of a store that are its structure's */
#define AX_LOOSE_CLASSES 16		/* those that the bump area has objects of */

#define AX_SHARDS 8

/* Counters: any process adds to its shard's (AX_COUNT), and only the sum over all counts. */
typedef struct ax_shard
{
	_Alignas(AX_LINE) _Atomic int64_t entries;
	_Atomic int64_t n4, n16, n48, n256, leaves, embedded;
	_Atomic uint64_t restarts;
	/* second line */
	_Atomic uint64_t pessimistic, latch_waits, parks;
	_Atomic uint64_t handovers, abandoned;
	_Atomic uint64_t opportunistic_reads, opportunistic_failed;
	_Atomic uint64_t expansions;
	/* the tail buffer */
	_Atomic uint64_t tail_bypassed, tail_cancelled;
	_Atomic uint64_t tail_flushes, tail_flushed, tail_flush_ns;
	/* HydraList's searches */
	_Atomic uint64_t walks, walk_steps;
} ax_shard;

/*
 * Lives at the start of the structure's first pages; memory stays valid for
 * two epochs after the close.  Behind it in its pages lies a small bump area
 * from which a small index takes its first objects.  They are reused inside
 * their class, but their page is freed only with the store.  So ten rows cost
 * one to three pages.
 *
 * Its opener writes all of it before the handle shows it (ax_store_new, ax_tree_open).
 * After that it is immutable, but for the members that say who writes them.
 */
struct ax_store
{
	uint64_t	gen;			/* immutable */
	ax_tree    *tree;			/* immutable: the handle it hangs on */
	const ax_engine *engine;	/* immutable; same address in all processes
								 * forked from one postmaster */
	_Atomic(struct ax_tail *) tail;	/* its buffers, NULL: none (ax_tail.h); written by
									 * the holder of tail_changer */
	_Atomic bool tail_now;		/* the next insert is to open one; set with the
								 * option, cleared by that insert */
	_Atomic uint8_t tail_option;	/* ax_tree_set_tail() alone */
	_Atomic uint8_t elide_option;	/* ax_elide_option; ax_tree_set_elision() alone */
	_Atomic bool contended;		/* a hint: the coarse latch was found taken; any
								 * process's store */
	_Atomic uint32_t tail_changer;	/* claimed to change "tail" */
	_Atomic uint64_t max_bytes; /* the cap, 0: none; ax_tree_set_cap() alone */
	uint32_t	page_size;		/* immutable: of a B+-tree */
	ax_sync		sync;			/* immutable: the engine's */
	_Atomic uint64_t bytes;		/* pages owned, in bytes; added to by all that
								 * take or give pages */
	_Atomic uint32_t height;	/* hint: longest path met; any writer of the tree,
								 * the latest store wins */
	_Atomic uint32_t bump;		/* next free byte of the bump area, from here; a CAS
								 * raises it */
	uint32_t	bump_end;		/* immutable */
	uint32_t	pages;			/* immutable: the store's own run */
	void	   *dying_next;		/* an ax_stack_node: link of the dying stack; written
								 * when the closed store is pushed */
	uint64_t	dying_epoch;	/* its closer, before the push */
	ax_group   *groups[AX_GROUPS];	/* immutable: charged for every page, too */

	/* the root is a one-slot node of its own: a latch word and a child */
	_Alignas(AX_LINE) ax_word root_word;
	_Atomic uint64_t root;		/* child reference; under root_word */

	/*
	 * The structure's: a type in its header says what lies here, and who writes it.
	 * Zero at first; engine->open may write it before the handle shows the store.
	 */
	_Alignas(8) unsigned char own[AX_OWN];
	_Atomic(struct ax_elide_shared *) elide;	/* NULL until elided (ax_elide.c); a CAS
												 * from NULL, once */
	/*
	 * Free objects of the bump area: the line of the store in which the first of
	 * them lies, 0: none.  Written under the latch of the class's heap.
	 */
	uint8_t		loose[AX_LOOSE_CLASSES];
	_Alignas(AX_LINE) _Atomic uint64_t coarse;	/* the one latch (ax_coarse.c) */

	_Atomic(struct ax_sampler *) tail_sampler;	/* what "auto" saw (ax_tail_auto.c); a CAS
												 * from NULL, once */
	_Atomic uint64_t tail_seen; /* tail_inserts when they were last counted, */
	_Atomic uint64_t tail_seen_ns;	/* at that time; 0: never.  Written by
									 * ax_tail_info(); the latest store wins */

	_Atomic(struct ax_drain *) drain;	/* by class: spans that are to become empty; a
										 * CAS from NULL, once */

	_Alignas(AX_LINE) ax_shard shards[AX_SHARDS];
	_Alignas(AX_LINE) ax_class_heap heap[AX_NCLASSES + 1];
};

/*
 * A handle.  Its owner, the caller of ax_tree_open(), writes it; that is one process at
 * a time, by locks of its own.
 */
struct ax_tree
{
	_Alignas(AX_LINE) _Atomic(ax_store *) store;	/* NULL: closed */
	_Atomic uint64_t gen;		/* of the store, readable outside an epoch */
	struct ax_tree *next_free;	/* of a released one: under the area's handle_latch */
	ax_group   *groups[AX_GROUPS];	/* of the stores to come; while it is closed */
};

/* Look-ups, or inserts, whose waits for memory overlap: so many at once. */
#define AX_GROUP 16

/*
 * The engine of a structure and sync: one table each.  Its functions are those that
 * ax.h has under the same name, for a store.  They start over by themselves, and
 * return what ax.h says.
 *
 * Epoch: inside.  A load leaves it and enters again; on AX_STALE it is outside.
 * Latches: none on entry and on return, but that of a coarse tree.
 * Returns: AX_OK, AX_BUSY and what is said below; unless AX_OK nothing was done, but by
 * insert_sorted and load_share.
 */
struct ax_engine
{
	const char *structure;
	const char *sync;
	ax_sync		kind;
	const ax_engine *inner;		/* coarse: what runs under the one latch */
	bool		compared;		/* only the caller knows the order (ax_cmp.h) */
	bool		logs;			/* settle applies a log on which searches do not depend,
								 * and does nothing else */
	/* a store is new: write what is its own; or NULL */
	void		(*open) (ax_store *st);
	/* AX_EXISTS, AX_NOMEM */
	ax_status	(*insert) (ax_ctx *cx, ax_store *st, const uint8_t *key, uint32_t len);
	/* AX_NOTFOUND; AX_NOMEM is BUSY for its caller */
	ax_status	(*remove) (ax_ctx *cx, ax_store *st, const uint8_t *key, uint32_t len);
	/* AX_NOTFOUND */
	ax_status	(*contains) (ax_ctx *cx, ax_store *st, const uint8_t *key, uint32_t len);
	/* the TIDs of a prefix, rising */
	ax_status	(*lookup) (ax_ctx *cx, ax_store *st, const uint8_t *prefix, uint32_t len,
						   ax_found *f);
	/* *done of the keys, AX_GROUP at most, were answered in full */
	ax_status	(*lookup_many) (ax_ctx *cx, ax_store *st, const ax_keys *keys, ax_found *f,
								uint32_t *counts, uint32_t *done);	/* or NULL */
	/* ask for the memory that inserts of keys, AX_GROUP at most, will want; or NULL */
	void		(*look_ahead) (ax_ctx *cx, ax_store *st, const ax_keys *keys);
	/* AX_BUFFER */
	ax_status	(*scan) (ax_ctx *cx, ax_store *st, ax_batch *b);
	/* into an empty store: AX_EXISTS, AX_NOMEM, AX_STALE */
	ax_status	(*load) (ax_ctx *cx, ax_store *st, const ax_keys *keys, int fill);
	/* *done of the first keys are in, whatever it returns, *added of them are new; AX_NOMEM */
	ax_status	(*insert_sorted) (ax_ctx *cx, ax_store *st, const ax_keys *keys,
								  uint64_t *done, uint64_t *added);
	/* as insert_sorted, but leaves that have nothing else are built as by a load */
	ax_status	(*load_share) (ax_ctx *cx, ax_store *st, const ax_keys *keys, int fill,
							   uint64_t *done, uint64_t *added);	/* or NULL */
	/* some of it; AX_BUFFER */
	ax_status	(*check) (ax_ctx *cx, ax_store *st, ax_checking *c);
	/* give back what contention took, or apply what is logged */
	ax_status	(*settle) (ax_ctx *cx, ax_store *st, bool all);	/* or NULL */
	/* a piece of a pass */
	ax_status	(*compact) (ax_ctx *cx, ax_store *st, ax_compaction *c);
	/* add its own counters to those that all have; or NULL */
	void		(*info) (ax_store *st, ax_tree_info *out);
	/* of the object that the latch word, not the root's, is the first of */
	uint32_t	(*object_bytes) (const ax_word *w);	/* NULL: is never elided */
};

/*
 * The engine that runs under a coarse latch, or the engine itself: for calls
 * from within.
 */
static inline const ax_engine *
ax_inner(const ax_store *s)
{
	return s->engine->inner ? s->engine->inner : s->engine;
}

/* ---- epochs (ax_epoch.c, ax_barrier.c) ---- */

/*
 * Enter, leave with a store-release.  Not nestable.  Engines are called inside.
 *
 * ax_enter is an exchange: a store and a full fence in one (never mfence).
 * Calls that only read use ax_enter_read.  It is a plain store where
 * ax_barrier works, but for the first call after one of ax_enter.  So between
 * a change and the next step of its process there is a full fence.  An
 * inserter that looks afterwards whether another did so, too, relies on that.
 */
struct ax_slot
{
	_Alignas(AX_LINE) _Atomic uint64_t epoch;	/* 0: outside; the owner alone */
	_Atomic int32_t pid;		/* 0: free; the owner, when it attaches and detaches */
	_Atomic uint32_t emptied;	/* somebody else has the magazines in hand: an
								 * exchange takes it, the same process clears it */
	uint32_t	nap;			/* never written: to sleep on */
	ax_qnode	queue[AX_QNODES];	/* see ax_latch.h */

	/*
	 * The retire list.  NULL while its owner, or whoever reclaims for it, has
	 * it in hand: taken by one exchange, put back by one CAS from NULL.
	 */
	_Alignas(AX_LINE) _Atomic(ax_limbo *) limbo;
	_Atomic uint64_t added;		/* records ever; written by the owner only, */
	_Atomic uint64_t added_bytes;	/* so is this */
	_Atomic uint64_t removed;	/* added to by whoever reclaims */
	_Atomic uint64_t removed_bytes; /* so is this */
	_Atomic uint64_t adopted_bytes; /* of lists of others; the owner only */

	/* Empty chunks, the owner's.  It may die with them: the next owner has them. */
	ax_limbo   *spare;
	uint32_t	nspare;

	/*
	 * Objects this slot took from spans minus those it gave back, by class.
	 * Only the sum over all slots means anything.  Written by the owner only.
	 */
	_Alignas(AX_LINE) _Atomic int64_t live[AX_NCLASSES];

	ax_magazine mags[AX_MAGS];
};

/*
 * Enter the epoch and load the tree's store, for a call that may change something: an
 * exchange, which is a full fence.  The magazines are this process's then.
 *
 * Epoch: outside on entry; inside on AX_OK, until ax_leave().
 * Returns: AX_STALE (outside again) when the tree's generation is not gen.
 */
extern ax_status ax_enter(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_store **st);

/*
 * As ax_enter(), for a call that only reads: a plain store where ax_barrier() works,
 * but for the first such call after one of ax_enter().  No magazine may be used;
 * ax_epoch_change() comes before that.
 */
extern ax_status ax_enter_read(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_store **st);

/*
 * Leave the epoch, by a store-release, and put the retire list back.
 *
 * Latches: none may be held.
 */
extern void ax_leave(ax_ctx *cx);

/*
 * Inside, nothing latched: a call that only reads comes to allocate.  Announces
 * the epoch again, as ax_enter does; from here on the magazines are its own.
 */
extern void ax_epoch_change(ax_ctx *cx);

/*
 * This process, and what it forks from now on, takes part in ax_barrier().
 *
 * Returns: false where the system has no such thing.
 */
extern bool ax_barrier_join(void);

/*
 * A full fence in every thread that runs now of all processes that take part.  One
 * that does not run has passed one.  A system call of some microseconds.
 *
 * Returns: false if this process may not call it.
 * Source: Desnoyers et al., TPDS 2012.
 */
extern bool ax_barrier(void);

/*
 * Room for n more retire records, before the first latch.  AX_BUSY when none
 * can be had now (leave the epoch, poll, come back): never a failure for good.
 */
extern ax_status ax_retire_reserve(ax_ctx *cx, int n);

/* After the unlink, inside the epoch; cannot fail (reserved). */
extern void ax_retire(ax_ctx *cx, ax_store *st, void *p, uint32_t size);

/* Is this process inside?  Its own announcement says so. */
static inline bool
ax_inside(const ax_ctx_body *b)
{
	return atomic_load_explicit(&b->slot->epoch, memory_order_relaxed) != 0;
}

/* ---- arena, inside an epoch, with no node latch held (ax_arena.c, ax_latch.c) ---- */

/*
 * An object of at least size bytes, 64-byte aligned, contents undefined.  NULL
 * when the area or the cap is full.  may_reserve: deletion and VACUUM only.
 */
extern void *ax_alloc(ax_ctx *cx, ax_store *st, uint32_t size, bool may_reserve);

/*
 * The same for what its caller shows to everybody by an atomic operation of
 * its own, in no section.  No section of the same call takes it back when it
 * is undone by hand.
 */
extern void *ax_alloc_public(ax_ctx *cx, ax_store *st, uint32_t size);

/* Bytes that an object allocated with "size" really has. */
extern uint32_t ax_alloc_size(uint32_t size);

/*
 * For a compaction, with no latch held: make ready, once.  Without memory for
 * that nothing is ever draining.
 */
extern void ax_drain_begin(ax_ctx *cx, ax_store *st);

/*
 * For a compaction, with no latch held: does the object, which is in the
 * structure, lie in a span that is to become empty?  Then it should be replaced
 * by a copy.  A span that is sparsely used becomes one of those here.
 */
extern bool ax_draining(ax_ctx *cx, ax_store *st, const void *p);

/* Bytes of the store's pages that objects in use take. */
extern uint64_t ax_live_bytes(const ax_store *st);

/* Give back an object that no other process ever saw. */
extern void ax_unalloc(ax_ctx *cx, ax_store *st, void *p, uint32_t size);

#ifdef AX_NO_COUNTERS			/* to measure what they cost */
#define AX_COUNT(cx, st, what, d) ((void) (cx), (void) (st), (void) (d))
#else
#define AX_COUNT(cx, st, what, d) \
	do { \
		if (ax_unlikely(ax_body(cx)->elide.apart)) \
			ax_section_count((cx), (st), offsetof(ax_shard, what), (int64_t) (d)); \
		else \
			atomic_fetch_add_explicit(&((ax_shard *) (void *) ((char *) (st) + ax_body(cx)->shard_at))->what, \
									  (d), memory_order_relaxed); \
	} while (0)
#endif

/*
 * Sleep for a while that nobody cuts short, longer with each turn: 50
 * microseconds at first, about a millisecond at most.
 */
extern void ax_nap(ax_ctx *cx, uint32_t turn);

/*
 * Contention was met: nap if that was so a moment ago, too, and nothing is held
 * (see ax_latch.c).
 */
extern void ax_contended(ax_ctx *cx);

/* ---- latches, inline part ---- */

#ifndef AX_MAP_RWLOCKS

/*
 * Lock at the version of the sample v; refused while anybody holds the latch.
 * Processes may have joined or left its queue meanwhile: they hold nothing.
 */
static inline bool
ax_word_trylock(ax_ctx *cx, ax_word *w, uint64_t v)
{
	uint64_t	cur = v;

	while (!((cur & (AX_LOCKED | AX_OBSOLETE)) || ((cur ^ v) & AX_VERSION_MASK)))
	{
		if (atomic_compare_exchange_strong_explicit(w, &cur, cur | AX_LOCKED | AX_CLOSED,
													memory_order_acquire,
													memory_order_relaxed))
		{
			/* the writer's side of the seqlock: its stores stay behind the CAS */
			atomic_thread_fence(memory_order_release);
			ax_body(cx)->latches++;
			return true;
		}
	}
	return false;
}

/*
 * The usual case of ax_word_acquire(.., true, ..): nobody holds or wants it.  False:
 * go there.
 */
static inline bool
ax_word_take(ax_ctx *cx, ax_word *w, uint64_t *v)
{
	uint64_t	cur = ax_word_read(w);

	if (ax_unlikely(cur & AX_FLAGS) ||
		!atomic_compare_exchange_strong_explicit(w, &cur, cur | AX_LOCKED,
												 memory_order_acquire,
												 memory_order_relaxed))
		return false;
	atomic_thread_fence(memory_order_release);
	ax_body(cx)->latches++;
	*v = cur;
	return true;
}

/* Held, not CLOSED: readers out, from here on there may be stores. */
static inline void
ax_word_close(ax_word *w)
{
	atomic_fetch_or_explicit(w, AX_CLOSED, memory_order_acquire);
	atomic_thread_fence(memory_order_release);
}

/* Held, not CLOSED: give it back. */
static inline void
ax_word_release(ax_ctx *cx, ax_word *w)
{
	uint64_t	old = atomic_fetch_sub_explicit(w, AX_LOCKED, memory_order_release);

	ax_body(cx)->latches--;
	if (ax_unlikely(old & AX_WAITERS))
		ax_word_wake(cx, w);
}

/*
 * Held and CLOSED.  changed: readers must notice.  Unchanged: the version stays.
 * An addition, since a waiter's CAS may have set WAITERS or the tail a moment
 * before; the version's overflow falls off the word.
 */
static inline void
ax_word_unlock(ax_ctx *cx, ax_word *w, bool changed)
{
	uint64_t	old = atomic_fetch_add_explicit(w, (changed ? AX_VERSION_ONE : 0) - AX_LOCKED - AX_CLOSED,
												memory_order_release);

	ax_body(cx)->latches--;
	if (ax_unlikely(old & AX_WAITERS))
		ax_word_wake(cx, w);
}

static inline void
ax_word_unlock_obsolete(ax_ctx *cx, ax_word *w)
{
	uint64_t	old = atomic_fetch_add_explicit(w, AX_VERSION_ONE + AX_OBSOLETE - AX_LOCKED - AX_CLOSED,
												memory_order_release);

	ax_body(cx)->latches--;
	if (ax_unlikely(old & AX_WAITERS))
		ax_word_wake(cx, w);
}

#endif							/* AX_MAP_RWLOCKS */
#endif							/* AX_INTERNAL_H */
