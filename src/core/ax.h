/*
 * ax.h
 *	  The whole public face of the core: status codes, port, area, epochs,
 *	  trees, scans.
 *
 * src/core is plain C11.  It includes no PostgreSQL header, never allocates
 * backend memory, never raises, never waits on a heavyweight lock and never
 * checks for interrupts.  Every call below enters and leaves the epoch itself
 * and returns with no latch held, whatever it returns.
 *
 * Everything shared lives in one area, mapped at one address in every process,
 * so raw pointers are stored in it.  It is the main shared memory segment of
 * PostgreSQL, or a MAP_SHARED mapping made before fork() in the tests.
 *
 * src/core/face/README.md: Overview
 */
#ifndef AX_H
#define AX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Under ASan what is free is poisoned, unless this is false.  Shadow memory is
 * each process's own, so it must be where processes share an area.
 */
#if defined(__SANITIZE_ADDRESS__)
#define AX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AX_ASAN 1
#endif
#endif
#ifdef AX_ASAN
/*
 * Poison what is free?  The caller clears it before the first area where processes
 * share one.
 */
extern bool ax_poisoning;
#endif

/*
 * Keys are compared eight bytes at a time, as numbers made by a byte swap.  A
 * latch word and a TID with its tag are 64 bits that one instruction reads.
 */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || __SIZEOF_POINTER__ != 8
#error "artidx needs a little-endian machine of 64 bits"
#endif

typedef enum ax_status
{
	AX_OK = 0,
	AX_EXISTS,					/* insert: this very (key, TID) is there already */
	AX_NOTFOUND,				/* remove: it is not there */
	AX_BUSY,					/* waited the bounded time; nothing was done, call
								 * again after checking for interrupts */
	AX_NOMEM,					/* the area (or the tree's cap) is full; nothing was
								 * done */
	AX_STALE,					/* the tree's generation is not the caller's */
	AX_BUFFER,					/* a caller's buffer is too small; nothing was
								 * done, the needed size is in the batch */
	AX_CHANGED					/* ax_cmp.h only: what was remembered is so no
								 * longer, start over */
} ax_status;

typedef struct ax_area ax_area; /* header at the base of the area */
typedef struct ax_tree ax_tree; /* handle of a tree; shared, type-stable */
typedef struct ax_store ax_store;	/* one generation of a tree; shared */
typedef struct ax_ctx ax_ctx;	/* one process's (thread's) attachment */

#if defined(__GNUC__)
#define AX_NORETURN	__attribute__((noreturn))
#else
#define AX_NORETURN
#endif

/*
 * The port: how the core sees the world.  One static table a process.
 * park() sleeps until *word != expected, or timeout_us passed, or a wake, or
 * any signal; spurious returns are allowed.  word is a 4-byte aligned word in
 * the area (a futex shared between processes).
 */
typedef struct ax_port
{
	void		(*park) (uint32_t *word, uint32_t expected, uint32_t timeout_us);
	void		(*unpark_all) (uint32_t *word);
	void		(*yield) (void);
	uint64_t	(*now_ns) (void);	/* monotonic */
	/* give the page run back to the kernel; contents become zero or undefined */
	void		(*discard) (void *addr, size_t len);
	/* wait-event reporting around a sleep; may be NULL */
	void		(*wait_begin) (void);
	void		(*wait_end) (void);
	/*
	 * This process, or what it does, is to end soon: a long call gives up as if memory were
	 * full.  May be NULL.
	 */
	bool		(*hurry) (void);
	/*
	 * The updater (ax_updater_sleep) is to wake.  No latch is held.  May be NULL.
	 */
	void		(*wake_updater) (void);
	/* a cannot-happen: does not return */
	void		(*panic) (const char *what, const char *file, int line) AX_NORETURN;
} ax_port;

extern const ax_port ax_port_default;	/* futex, sched_yield, abort() */

#define AX_PAGE			4096
#define AX_TID_BYTES	6		/* last bytes of every key: block, offset; BE */
#define AX_KEY_MAX		(4u * 1024 * 1024)	/* bytes, TID included */

/* Write a TID: the last AX_TID_BYTES of a key. */
static inline void
ax_put_tid(uint8_t *dst, uint64_t tid)
{
	dst[0] = (uint8_t) (tid >> 40);
	dst[1] = (uint8_t) (tid >> 32);
	dst[2] = (uint8_t) (tid >> 24);
	dst[3] = (uint8_t) (tid >> 16);
	dst[4] = (uint8_t) (tid >> 8);
	dst[5] = (uint8_t) tid;
}

/* ---- area (ax_area.c, ax_call.c, ax_epoch.c, ax_latch.c, ax_system.c) ---- */

/* The smallest area for so many process slots, in bytes. */
extern size_t ax_area_min_size(int nslots);

/*
 * Make an area of "size" bytes at base, which is AX_PAGE aligned and zero-filled; only
 * the headers are touched.  The reserve_bytes are kept for deletion, VACUUM and
 * handles; two pages a slot more for retire lists alone.  Before the processes are
 * forked.
 *
 * Returns: NULL when the area is too small, or base not aligned.
 */
extern ax_area *ax_area_init(void *base, size_t size, int nslots,
							 size_t reserve_bytes);

/*
 * All processes are gone, and none of them inside a call: the slots are free.  The
 * next processes to attach have the magazines and lists that lie there.
 */
extern void ax_area_survive(ax_area *area);

/*
 * Is the header what ax_area_init made of this base, size and number of slots?  A look
 * at its fixed words, which follows no pointer of it.
 */
extern bool ax_area_intact(const ax_area *area, size_t size, int nslots);

/* Bytes from the area's begin on that may not be zero; size, if it is not intact. */
extern size_t ax_area_touched(const ax_area *area, size_t size, int nslots);

/*
 * Attach this process (thread) in slot 0..nslots-1.  The slot must be free or its
 * owner dead.  cx is the caller's private memory, one per process or thread, and must
 * outlive the attachment.
 */
extern void ax_attach(ax_ctx *cx, ax_area *area, int slot, int pid,
					  const ax_port *port);

/*
 * Give magazines back, hand the retire list over for adoption, and free the slot.
 * Nothing if it was done before.
 *
 * Epoch: left, if the process is inside.
 * Latches: none may be held: it panics.
 */
extern void ax_detach(ax_ctx *cx);

/* Latches this process holds now: 0 outside the core; else it must not exit. */
extern int	ax_latches_held(const ax_ctx *cx);

/*
 * Housekeeping outside any call: advance the epoch, reclaim own, other processes'
 * and adopted retired objects, free closed trees that are past two epochs.  Cheap
 * when there is nothing to do, and bounded: some milliseconds.  Returns what is
 * still pending: nothing; something that waits for others to leave the epoch; or
 * something that the next call can free at once.
 */
typedef enum ax_pending
{
	AX_PENDING_NOTHING,
	AX_PENDING_EPOCH,
	AX_PENDING_MORE
} ax_pending;

/*
 * Housekeeping outside any call: advance the epoch, reclaim own, other processes' and
 * adopted retired objects, free closed trees that are past two epochs.  Cheap when
 * there is nothing to do, and bounded: some milliseconds.
 *
 * Epoch: outside; enters and leaves.
 * Returns: what is still pending.
 */
extern ax_pending ax_poll(ax_ctx *cx);

/*
 * A call that follows one that said AX_BUSY goes on with it, and says AX_NOMEM when it has
 * tried long enough.  Not so the next one, for nobody waited for that.
 */
extern void ax_begin_anew(ax_ctx *cx);

/*
 * Give back the free objects this process keeps at hand, so that spans they
 * are the last of can go: after much has been removed.
 */
extern void ax_flush(ax_ctx *cx);

/* The same, and what other processes keep that are in no call now. */
extern void ax_flush_idle(ax_ctx *cx);

/*
 * Memory of the area for the caller's own shared, type-stable objects
 * (directory entries, hazard slots): zero-filled, page aligned, never given
 * back, counted as overhead.  Entered like any call (no latch held before or
 * after).  NULL when the area is full.
 */
extern void *ax_system_alloc(ax_ctx *cx, size_t bytes);

/* area = used + free + reserve + overhead. */
typedef struct ax_memory_info
{
	uint64_t	area_bytes;		/* whole area */
	uint64_t	used_bytes;		/* in spans of trees, live or dying */
	uint64_t	free_bytes;		/* available to trees */
	uint64_t	largest_free_bytes; /* of these, in one piece */
	uint64_t	reserve_bytes;	/* what is left of the reserve */
	uint64_t	retired_bytes;	/* of those used: unlinked, waiting for their epochs */
	uint64_t	overhead_bytes; /* headers, page map, slots, handles, limbo */
	uint64_t	touched_bytes;	/* high-water mark of pages ever used */
} ax_memory_info;

typedef struct ax_class_info
{
	uint32_t	size_class;		/* object size in bytes; 0: whole page runs */
	uint64_t	spans;
	uint64_t	bytes;
	uint64_t	live;			/* objects given out (magazines count as given) */
	uint64_t	free;
} ax_class_info;

typedef struct ax_epoch_info
{
	int			slot;
	int			pid;			/* 0: free */
	uint64_t	pinned_epoch;	/* 0: outside */
	uint64_t	global_epoch;
	uint64_t	retired_objects;
	uint64_t	retired_bytes;
	uint64_t	adopted_bytes;	/* ever adopted from exited processes */
} ax_epoch_info;

/*
 * How the area's memory is used.
 *
 * Epoch: none is entered.
 * Latches: takes the page pool's.
 */
extern void ax_memory(ax_ctx *cx, ax_memory_info *out);
/* One row a size class, in rising order, the page runs first: AX_CLASS_ROWS. */
#define AX_CLASS_ROWS 41

/*
 * One row a size class, in rising order, the page runs first; at most "max" of
 * AX_CLASS_ROWS rows.
 *
 * Epoch: none is entered.
 * Latches: takes the page pool's.
 * Returns: how many rows.
 */
extern int	ax_memory_classes(ax_ctx *cx, ax_class_info *out, int max);

/* How many process slots the area has. */
extern int	ax_nslots(const ax_area *area);

/* The state of one process slot, as of now; taken beside its owner's work. */
extern void ax_epochs(ax_ctx *cx, int slot, ax_epoch_info *out);

/* ---- trees ------------------------------------------------------------- */

/* A structure and how it is synchronized: one engine each.  The numbers are
 * kept in files. */
typedef enum ax_structure
{
	AX_ART_OLC = 0,				/* adaptive radix tree */
	AX_BTREE_OLC = 1,			/* B+-tree, pages of page_size bytes */
	AX_ART_ROWEX = 2,			/* readers neither wait nor restart */
	AX_ART_OPTIQL = 3,			/* leaves latched through a queue of writers */
	AX_ART_COARSE = 4,			/* one latch for the whole tree */
	AX_BTREE_OPTIQL = 5,
	AX_BTREE_COARSE = 6,
	AX_BTREE_COMPARED = 7,		/* whose order only the caller knows: ax_cmp.h */
	AX_HYDRA_OLC = 8,			/* a list of nodes, and a search layer that may be behind */
	AX_HYDRA_OPTIQL = 9,
	AX_HYDRA_COARSE = 10,
	AX_HYDRA_MVRLU = 11			/* readers see all as it was when they came */
} ax_structure;

#define AX_STRUCTURES 12

/* "art", "btree" or "hydra". */
extern const char *ax_structure_name(ax_structure s);

/* "olc", "rowex", "optiql", "coarse" or "mvrlu". */
extern const char *ax_structure_sync(ax_structure s);

/* Is it a B+-tree, the compared one too?  Then it has pages of page_size bytes. */
extern bool ax_structure_is_btree(ax_structure s);

/* Is it a HydraList, of any sync? */
extern bool ax_structure_is_hydra(ax_structure s);

/* Pages of a B+-tree: multiples of 64 bytes. */
#define AX_PAGE_SIZE_MIN	256
#define AX_PAGE_SIZE_MAX	16384
#define AX_PAGE_SIZE_DEFAULT 1024

typedef struct ax_engine ax_engine; /* table of functions, see ax_internal.h */

/*
 * A group of trees.  The memory of their structures is counted together, the open
 * ones and the dying.  An allocation that would exceed the limit is refused.  The
 * caller's shared memory, zero at first.  It may be forgotten when no handle names
 * it any more and bytes is 0: nobody looks at it afterwards.
 */
typedef struct ax_group
{
	_Atomic uint64_t bytes;		/* the core alone adds to it and takes off */
	const _Atomic uint64_t *limit;	/* the caller's, before the first tree; several
									 * groups may have the same, and the caller changes
									 * the number there at any time */
} ax_group;

#define AX_GROUPS 3

/*
 * A handle: type-stable, never unmapped, closed.  The groups of a used one stay until
 * ax_tree_set_groups().
 *
 * Epoch: outside, none is entered.
 * Latches: takes the handles'.
 * Returns: NULL when the area is full.
 */
extern ax_tree *ax_tree_alloc(ax_ctx *cx);

/*
 * Give a closed handle back, for another ax_tree_alloc().
 *
 * Epoch: outside, none is entered.
 * Latches: takes the handles'.
 */
extern void ax_tree_release(ax_ctx *cx, ax_tree *t);

/*
 * Open a new, empty generation on a closed handle: *gen, a number never used before,
 * never 0.  max_bytes 0: no cap.  page_size 0: the default; a B+-tree's only.  Not
 * beside another open or close of the same handle (the directory lock sees to it);
 * beside everything else.
 *
 * Returns: AX_OK, AX_NOMEM; AX_BUSY when memory is on its way.
 */
extern ax_status ax_tree_open(ax_ctx *cx, ax_tree *t, ax_structure s,
							  uint64_t max_bytes, uint32_t page_size,
							  uint64_t *gen);

/*
 * Make every later call with the present generation STALE, and put the structure on
 * the dying list.  It is freed after two epochs, in parts, by ax_poll(), and by calls
 * that retire objects or find no memory.  Locking as ax_tree_open().
 */
extern void ax_tree_close(ax_ctx *cx, ax_tree *t);

/*
 * Which groups the generations to come are in (NULL: none).  The handle is
 * closed, and nobody else opens it.
 */
extern void ax_tree_set_groups(ax_tree *t, ax_group *const groups[AX_GROUPS]);

/*
 * Change the cap of an open generation; what it has beyond a lower one it
 * keeps.  AX_OK or AX_STALE.
 */
extern ax_status ax_tree_set_cap(ax_ctx *cx, ax_tree *t, uint64_t gen,
								 uint64_t max_bytes);

/*
 * After AX_NOMEM: was it the tree's cap that refused, and not the area?  Good
 * until the next call that allocates.
 */
extern bool ax_nomem_was_cap(const ax_ctx *cx);

/* The same: which group's limit it was, NULL: none. */
extern ax_group *ax_nomem_group(const ax_ctx *cx);

/* Keys of one request. */
typedef struct ax_keys
{
	const uint8_t *const *p;	/* key i is p[i] */
	const uint32_t *lens;		/* of lens[i] bytes; NULL: all are len */
	uint32_t	len;
	uint64_t	n;
} ax_keys;

static inline uint32_t
ax_key_len(const ax_keys *k, uint64_t i)
{
	return k->lens ? k->lens[i] : k->len;
}

/* A part of the keys: n of them, from number i on. */
static inline ax_keys
ax_keys_from(const ax_keys *k, uint64_t i, uint64_t n)
{
	return (ax_keys) {k->p + i, k->lens ? k->lens + i : NULL, k->len, n};
}

/* The answer of a look-up. */
typedef struct ax_found
{
	uint64_t   *tids;			/* the caller's, room for max */
	uint32_t	max;
	uint32_t	n;				/* out: so many TIDs are there */
	bool		more;			/* out: there may be others */
} ax_found;

/*
 * Insert a key.  A key is a string of len bytes whose last AX_TID_BYTES are the TID;
 * the order is memcmp's.  No key of a tree is a prefix of another (the encoding before
 * the TID is self-delimiting, the TID has fixed width).  len <= AX_KEY_MAX.
 *
 * Returns: AX_OK, AX_EXISTS, AX_NOMEM, AX_BUSY, AX_STALE; unless AX_OK nothing was
 * done.
 */
extern ax_status ax_insert(ax_ctx *cx, ax_tree *t, uint64_t gen,
						   const uint8_t *key, uint32_t len);

/*
 * Remove this very key.  Needs no memory.
 *
 * Returns: AX_OK, AX_NOTFOUND, AX_BUSY, AX_STALE.
 */
extern ax_status ax_remove(ax_ctx *cx, ax_tree *t, uint64_t gen,
						   const uint8_t *key, uint32_t len);

/*
 * Positions.  (bytes, len, after): before == just before the first possible
 * key that has bytes as a prefix, after == just behind the last such.  len 0,
 * before is minus infinity; len 0, after is plus infinity.  Resume behind an
 * entry in a forward scan: its whole key, after; in a backward scan: its whole
 * key, before.
 */
typedef struct ax_bound
{
	const uint8_t *key;
	uint32_t	len;
	bool		after;
} ax_bound;

/*
 * One batch of an ordered scan.  In: lo, hi (entries strictly between the two
 * positions are returned), backward, want_keys, max.  Also in: the caller's
 * buffers, tids[max]; with want_keys also key_off[max + 1] and
 * keybuf/keybuf_size.  Out: n entries in scan order; exhausted when no entry
 * is left behind them.  Also out, when !exhausted and n > 0: the whole key of
 * the last entry of the batch in lastkey/lastlen, the caller's buffer of
 * lastkey_size bytes.
 *
 * AX_BUFFER: a single entry does not fit in keybuf or lastkey. need_bytes says
 * how large both must be.  (lastkey: twice the longest key, for it also holds
 * the path of the walk.)  A batch may end early (n < max, !exhausted): call
 * again from lastkey. n == 0 with !exhausted does not occur.
 *
 * tids: 48 bits, block << 16 | offset.
 */
typedef struct ax_batch
{
	/* in */
	ax_bound	lo;
	ax_bound	hi;
	bool		backward;
	bool		want_keys;
	uint32_t	max;
	uint64_t   *tids;
	uint32_t   *key_off;
	uint8_t    *keybuf;
	uint32_t	keybuf_size;
	uint8_t    *lastkey;
	uint32_t	lastkey_size;
	/* out */
	uint32_t	n;
	uint32_t	lastlen;
	uint32_t	need_bytes;
	bool		exhausted;
} ax_batch;

/*
 * Fill one batch.  Epoch and latches are the call's own; nothing is held from one
 * batch to the next.
 *
 * Returns: AX_OK, AX_BUFFER, AX_BUSY, AX_STALE.
 */
extern ax_status ax_scan(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_batch *b);

/*
 * Point look-up: all TIDs whose key is prefix + TID, in TID order, prefix
 * being a whole encoded key without its TID.  The fast path of equality scans and of
 * the unique check.  When f->more says that there may be others, use ax_scan; f->n
 * can be 0 then.
 *
 * Returns: AX_OK, AX_BUSY, AX_STALE.
 */
extern ax_status ax_lookup(ax_ctx *cx, ax_tree *t, uint64_t gen,
						   const uint8_t *prefix, uint32_t len, ax_found *f);

/*
 * Look several prefixes up, in any order, whose waits for memory go on at the same
 * time.  Rising ones share what they have in common.  The TIDs of key 0 come first,
 * then those of key 1, up to f->max in all; counts[i] of them are key i's.  *done keys
 * were answered in full: all, or those before one for whose TIDs there was no room.
 * It may only have seemed so.  When that is the first, use ax_lookup for it, and
 * ax_scan.  f->more is not set.
 *
 * Returns: AX_OK; AX_BUSY: no key was answered; AX_STALE.
 */
extern ax_status ax_lookup_many(ax_ctx *cx, ax_tree *t, uint64_t gen,
								const ax_keys *keys, ax_found *f, uint32_t *counts,
								uint32_t *done);

/* Is this very (key, TID) there?  AX_OK or AX_NOTFOUND. */
extern ax_status ax_contains(ax_ctx *cx, ax_tree *t, uint64_t gen,
							 const uint8_t *key, uint32_t len);

/*
 * Sorted bulk load into an EMPTY generation that nobody else writes yet.  The keys
 * rise strictly in memcmp order.  Published by one store.  fill: 10..100 per cent of a
 * leaf.
 * AX_EXISTS: not for a load, since the tree is not empty or the keys are nested too
 * deeply; use ax_insert_sorted.  Then, and after AX_NOMEM and AX_BUSY, all is given back.
 * AX_STALE: the generation was closed, perhaps in the middle.
 */
extern ax_status ax_load(ax_ctx *cx, ax_tree *t, uint64_t gen, const ax_keys *keys,
						 int fill);

/*
 * Insert keys in strictly rising order, whatever is there already and whoever else
 * writes.  Those that go to the same leaf are
 * merged into it at once.  *done says how many are in the tree now; *added of them
 * were not before.  A call does up to some hundreds, so that the caller can look at
 * interrupts.  AX_OK with *done < keys->n means call again with the rest.
 */
extern ax_status ax_insert_sorted(ax_ctx *cx, ax_tree *t, uint64_t gen,
								  const ax_keys *keys, uint64_t *done, uint64_t *added);

/*
 * Insert keys, up to some hundred, in the order given, wherever they lie.  Their
 * waits for memory go on at the same time.  *done of them are in the
 * tree, also when not all are: AX_BUSY, AX_NOMEM, AX_STALE are those of the next.
 */
extern ax_status ax_insert_many(ax_ctx *cx, ax_tree *t, uint64_t gen,
								const ax_keys *keys, uint32_t *done);

/*
 * A load by several processes.  First one of them does ax_load of a sample of
 * all keys, with fill 0, which makes it one whose leaves can be replaced.
 * Then each does this with keys that nobody else has, of its own range of
 * keys, the sample's keys of that range among them.  Arguments and meaning as
 * ax_insert_sorted's, whatever else is there and whoever else writes.  But what
 * goes to one leaf is built as by ax_load when that leaf has nothing else.  *done:
 * some thousand keys a call, or as many as go to one leaf of the sample.
 */
extern ax_status ax_load_share(ax_ctx *cx, ax_tree *t, uint64_t gen,
							   const ax_keys *keys, int fill, uint64_t *done,
							   uint64_t *added);

/* Has the structure such a load?  It is for nothing else. */
extern bool ax_can_load_share(ax_structure s);

typedef struct ax_tree_info
{
	uint64_t	gen;
	uint64_t	entries;
	uint64_t	bytes;			/* spans owned, in bytes */
	uint64_t	live_bytes;		/* of these, in objects that are given out */
	uint64_t	max_bytes;		/* cap, 0: none */
	const char *structure;		/* "art" or "btree" */
	const char *sync;
	uint32_t	page_size;		/* of a B+-tree */
	int			height;			/* nodes on the longest path met, 0: unknown */
	uint64_t	n4, n16, n48, n256, leaves, embedded;
	uint64_t	inner_nodes;
	uint64_t	restarts, pessimistic, latch_waits, parks;
	uint64_t	handovers;		/* latches taken from the queue's head */
	uint64_t	abandoned;		/* waiters that left a queue */
	uint64_t	opportunistic_reads;	/* admitted while a writer held or waited */
	uint64_t	opportunistic_failed;	/* of those, not valid in the end */
	uint64_t	expansions;		/* hot leaves taken apart */
	const char *tail_mode;		/* "off", "window", "append" */
	uint64_t	tail_entries;	/* in the buffer now; counted in entries, too */
	uint64_t	tail_inserts;	/* that went into the buffer */
	uint64_t	tail_bypassed;	/* that went beside it, while there was one */
	uint64_t	tail_flushes;	/* steps */
	uint64_t	tail_flushed;	/* entries moved into the tree */
	uint64_t	tail_flush_ns;
	uint64_t	search_logged;	/* of a list below a search layer: changes that were logged */
	uint64_t	search_applied; /* and those of them that the search layer has */
	uint64_t	walks;			/* searches that went on along the list */
	uint64_t	walk_steps;		/* nodes that they passed */
	uint64_t	walk_longest;	/* the most that one of them passed */
	uint64_t	commits;		/* of a list with versions: commits, those that were helped twice */
	uint64_t	versions_passed;	/* versions that were too new for the reader */
	uint64_t	commits_helped; /* commits that a reader ended */
	bool		elided;			/* are latched sections tried as transactions? */
} ax_tree_info;

/*
 * Give back what was spent on contention that has ceased (all: or may not have).
 * AX_OK, AX_STALE or AX_BUSY.
 */
extern ax_status ax_settle(ax_ctx *cx, ax_tree *t, uint64_t gen, bool all);

/*
 * A list below a search layer: the search layer gets what is logged.  Nothing but the length of
 * walks depends on it.  AX_OK, also for other structures; AX_BUSY: some is left; AX_STALE.
 */
extern ax_status ax_catch_up(ax_ctx *cx, ax_tree *t, uint64_t gen);

/*
 * Compaction (ax_compact()): one pass over the structure, which merges sparse
 * leaves and pages.  Where objects in use fill much less than the spans that
 * the tree owns, it moves objects so that spans become empty.  Begin with a
 * struct of zeros and "work", AX_COMPACT_WORK bytes aligned as malloc's; call
 * until "done".  A call replaces some hundred objects at most; between two
 * calls nothing is held, and a pass may be given up after any.  Beside
 * readers, writers and other compactions.  AX_OK, AX_BUSY, AX_STALE; Where
 * memory is short less is done.
 */
#define AX_COMPACT_WORK	((size_t) 512 * 1024)
typedef struct ax_compaction
{
	void	   *work;
	bool		done;
	/* the core's */
	bool		started;
	uint8_t		level;
	uint32_t	len;
	uint64_t	moved;			/* objects replaced */
} ax_compaction;

/*
 * Make a piece of a pass.  Sets "drains" for the call: whether spans are to become
 * empty.
 *
 * Returns: AX_OK, AX_BUSY, AX_STALE.
 */
extern ax_status ax_compact(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_compaction *c);

/*
 * Bytes that a tree owns, and those of them that objects in use take; the same
 * where compaction can do nothing.  AX_OK, AX_STALE.
 */
extern ax_status ax_held(ax_ctx *cx, ax_tree *t, uint64_t gen, uint64_t *bytes,
						 uint64_t *live);

/*
 * Does a tree that owns "bytes" and uses "live" of them hold so much more than
 * it needs that compaction is worth while?
 */
extern bool ax_compact_due(uint64_t bytes, uint64_t live);

/* ---- search layers that are behind (ax_news.c) ---- */

/*
 * One process for the whole area, the updater, calls ax_catch_up() for every tree.
 * This tells it that something is logged, or may be.  Wakes the updater by the port's
 * wake_updater, if that sleeps.
 *
 * Latches: none held.
 */
extern void ax_tell_updater(ax_ctx *cx);

/* The updater begins with the first tree: what is logged from now on is news. */
extern void ax_updater_begin(ax_ctx *cx);

/* Was something logged since ax_updater_begin()? */
extern bool ax_updater_wanted(ax_ctx *cx);

/*
 * The updater is about to sleep.
 *
 * Returns: true, nothing was logged, and the next process that logs something calls
 * wake_updater, once; false, go on.
 */
extern bool ax_updater_sleep(ax_ctx *cx);

/* ---- the tail buffer (ax_tail_auto.c, ax_tail_empty.c) ---- */

/*
 * Where inserts at the right end go first, so that they need not meet at the tree's
 * last leaf.  It is used never, when keys are seen to rise, or always.  Every call
 * above sees what is there.  Off after ax_tree_open.
 */
typedef enum ax_tail_option
{
	AX_TAIL_OFF,
	AX_TAIL_AUTO,
	AX_TAIL_ON
} ax_tail_option;

/* AX_OK or AX_STALE.  Off: what is buffered stays so until it is flushed. */
extern ax_status ax_tree_set_tail(ax_ctx *cx, ax_tree *t, uint64_t gen,
								  ax_tail_option option);

/*
 * For lack of memory: nothing more goes into the present buffer, so that ax_tail_flush
 * can give its memory back.  When keys still rise there is a new one after
 * a thousand inserts, or more.  *had: there is one.  AX_OK or AX_STALE.
 */
extern ax_status ax_tail_close(ax_ctx *cx, ax_tree *t, uint64_t gen, bool *had);

/*
 * Move some hundred buffered entries into the tree; *more: there are others.
 * AX_OK, AX_STALE, AX_BUSY or AX_NOMEM (what was not moved is still buffered).
 */
extern ax_status ax_tail_flush(ax_ctx *cx, ax_tree *t, uint64_t gen, bool *more);

/* ---- elision ---- */

typedef enum ax_elide_option
{
	AX_ELIDE_OFF,
	AX_ELIDE_AUTO,				/* calls under a coarse latch that is contended */
	AX_ELIDE_ON					/* all sections, whatever becomes of them */
} ax_elide_option;

/* Runs transactions in place of the processor: tests have some (ax_elide.h). */
typedef struct ax_provider ax_provider;

/* Where: one policy and one row of counters each. */
typedef enum ax_site
{
	AX_SITE_COARSE_READ,
	AX_SITE_COARSE_WRITE,
	AX_SITE_LEAF_INSERT,
	AX_SITE_LEAF_DELETE,
	AX_SITE_NODE_INSERT,
	AX_SITE_NODE_DELETE,
	AX_SITE_SPLIT,
	AX_SITE_TAIL_FLUSH
} ax_site;

#define AX_SITES 8

/* A site's name, as views show it. */
extern const char *ax_site_name(ax_site site);

/*
 * The processor's features, and the outcome of real transactions that were
 * tried.
 */
typedef struct ax_hardware
{
	bool		rtm_cpuid;
	bool		rtm_always_abort;
	bool		rtm_usable;
	int			probe_attempts;
	int			probe_commits;
} ax_hardware;

/* Tries some transactions; once, before the processes are forked. */
extern void ax_hardware_probe(ax_hardware *out);

/*
 * How this process elides from now on.  by: NULL is the processor; how: words for
 * a provider.  Outside any call.
 */
extern void ax_elide_setup(ax_ctx *cx, const ax_hardware *hw, ax_elide_option setting,
						   const ax_provider *by, const char *how);

/* The tree's own option; AX_ELIDE_AUTO after ax_tree_open.  AX_OK or AX_STALE. */
extern ax_status ax_tree_set_elision(ax_ctx *cx, ax_tree *t, uint64_t gen,
									 ax_elide_option option);

typedef struct ax_site_info
{
	const char *mode;			/* "on", "off", "adaptive-off", "no-rtm" */
	uint64_t	sections;		/* commits + fallbacks */
	uint64_t	attempts;		/* commits + the seven causes */
	uint64_t	commits;
	uint64_t	conflict, capacity, explicit_, lock_busy, nested, zero, other;
	uint64_t	retry_hint;		/* beside the cause */
	uint64_t	fallbacks;
	uint64_t	switch_offs, switch_ons;
} ax_site_info;

/* AX_OK or AX_STALE. */
extern ax_status ax_aborts(ax_ctx *cx, ax_tree *t, uint64_t gen,
						   ax_site_info out[AX_SITES]);

/*
 * Counters only, and a look at every place of a tail buffer.  Node counts and height
 * are exact when quiescent.
 */
extern ax_status ax_info(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tree_info *out);

/*
 * For planners and others who ask often: gen, entries, bytes, max_bytes, height and
 * tail_entries, nothing else of *out.  It counts a tail buffer's entries as of some
 * ms ago.
 */
extern ax_status ax_info_about(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tree_info *out);

/*
 * A walk over a structure that verifies every invariant, some leaves a call.  Between
 * two calls nothing is held.  The walk goes on at a position that is given by
 * value; in a compared tree, by pages that are looked at again.
 */
#define AX_CHECK_WORK	256		/* nodes and leaves looked at by one call, about */
#define AX_CHECK_LEVELS 40

/* Where a walk over a compared tree is: pages, of which only some may be left. */
typedef struct ax_walk
{
	int			n;				/* pages on the path */
	struct
	{
		void	   *page;
		void	   *last;		/* child that was come by last */
		uint64_t	version;
		uint32_t	i;			/* the next one */
		int			level;
	}			f[AX_CHECK_LEVELS];
} ax_walk;

typedef struct ax_checking
{
	/* the caller's, zero at first: a buffer, whose contents stay when it grows */
	uint8_t    *buf;
	uint32_t	size;
	/* out */
	uint32_t	need_bytes;		/* AX_BUFFER: of buf */
	bool		done;			/* the whole was walked, or it is bad */
	bool		bad;
	char		msg[256];		/* what is wrong first */
	ax_tree_info info;			/* what was counted so far: entries, nodes, height */
	/* the walk's own */
	bool		begun;
	int			flushes;
	uint32_t	len;			/* of the position in buf */
	ax_walk		walk;			/* in a compared tree */
} ax_checking;

/*
 * Look at some more of the structure.  *c: all zero before the first call, but
 * buf and size (a few hundred bytes do).  Call again until c->done.
 * AX_BUFFER: buf must have need_bytes, and keep what is in it.  AX_BUSY, AX_STALE.
 *
 * May run beside writers: each page or node is looked at under one version, and again if
 * it changed meanwhile.  So the verdict is about states that existed; the counts are
 * exact only when nobody writes.
 */
extern ax_status ax_check(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_checking *c);

#define AX_ESTIMATE_WORK (640 * 1024)

/*
 * Bytes (ax_tree_info's) that "total" keys would take, told from some of them, sorted,
 * drawn at random; fill as ax_load's.  run: how many keys, in the
 * order of their TIDs, one load takes.  Those that follow go in by ax_insert_sorted(),
 * so many at a time (0: all at once).  Exact when all are given and the load is one.
 * Needs no area; takes some tenths of a second for some hundred thousand keys.  work:
 * AX_ESTIMATE_WORK bytes of the caller's, aligned to eight, whatever is in them.
 */
extern uint64_t ax_estimate(const ax_keys *sample, double total, int fill, double run,
							void *work);

/*
 * The private memory of an attachment: declared here because callers embed
 * it; its members are the core's own.
 */
#define AX_CTX_BYTES 8192
struct ax_ctx
{
	_Alignas(64) unsigned char opaque[AX_CTX_BYTES];
};

#endif							/* AX_H */
