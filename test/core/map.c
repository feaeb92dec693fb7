/*
 * map.c
 *	  See core/base/ax_map.h: latch words as plain locks, for helgrind.
 *
 * The locks are atomic counters, which helgrind does not take for locks, and what
 * they order is told to it in so many words: whoever gets one comes after all who
 * had it exclusively, and who gets it exclusively also after all who had it
 * shared.  (pthread_rwlock_t will not do: helgrind lets what is learned under a
 * shared lock order reads only, and so reports everybody who descends under
 * shared locks to a node that another made, and writes it under the node's own.)
 *
 * Who waits, waits for 10 ms at most and then is BUSY or starts over, as with
 * the words themselves; the one wait without an end is ax_word_close()'s for its
 * readers, who hold nothing for good.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "core/base/ax_area.h"

#ifdef AX_MAP_RWLOCKS

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <valgrind/helgrind.h>

#define WAIT_NS		UINT64_C(10000000)
#define UPGRADE_NS	UINT64_C(1000000)
#define MAX_SHARES	256

typedef struct map_lock
{
	_Atomic int32_t locked;		/* 1: somebody has it */
	_Atomic int32_t closed;		/* how many share it; -1: one has it alone */
} map_lock;

/* Names, for the checker, of what a lock's former holders did. */
#define BY_LOCKED(l)	((char *) (l))
#define BY_READERS(l)	((char *) (l) + 4)
#define BY_WRITERS(l)	((char *) (l) + 5)

static char *base;				/* of the area */
static size_t area_size;
static map_lock *table;			/* one for each eight bytes of it */

/* What this thread holds shared, the latest last. */
static _Thread_local ax_word *share[MAX_SHARES];
static _Thread_local int nshares;
static _Thread_local bool coarse;	/* inside of a coarse latch */

/* The arena's latches that it holds: they are mapped there, too. */
static _Thread_local ax_word *arena[4];
static _Thread_local int narena;

static map_lock *
lock_of(ax_word *w)
{
	size_t		at = (size_t) ((char *) w - base);

	if (at >= area_size || at % 8 != 0)
	{
		fprintf(stderr, "map: a latch word outside of the area\n");
		abort();
	}
	return &table[at / 8];
}

void
ax_map_area(ax_area *a)
{
	if (table)
		munmap(table, area_size / 8 * sizeof(map_lock));
	base = a->base;
	area_size = a->size;
	table = mmap(NULL, area_size / 8 * sizeof(map_lock), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
	{
		perror("mmap");
		exit(2);
	}
	ax_map_unchecked(&a->epoch, (size_t) ((char *) &a->handle_latch - (char *) &a->epoch));
	ax_map_unchecked(a->slots, (size_t) a->nslots * sizeof(ax_slot));
}

void
ax_map_new_memory(void *p, size_t n)
{
	VALGRIND_HG_CLEAN_MEMORY(p, n);
}

void
ax_map_unchecked(void *p, size_t n)
{
	VALGRIND_HG_DISABLE_CHECKING(p, n);
}

/* ---- waiting ---- */

typedef enum map_mode
{
	LOCKED, SHARED, EXCLUSIVE
} map_mode;

static bool
try(map_lock *l, map_mode mode)
{
	int32_t		is = 0;

	if (mode == LOCKED)
	{
		if (atomic_exchange(&l->locked, 1))
			return false;
		ANNOTATE_HAPPENS_AFTER(BY_LOCKED(l));
		return true;
	}
	if (mode == SHARED)
		do
		{
			if (is < 0)
				return false;
		} while (!atomic_compare_exchange_strong(&l->closed, &is, is + 1));
	else
	{
		if (!atomic_compare_exchange_strong(&l->closed, &is, -1))
			return false;
		ANNOTATE_HAPPENS_AFTER(BY_READERS(l));
	}
	ANNOTATE_HAPPENS_AFTER(BY_WRITERS(l));
	return true;
}

static void
give(map_lock *l, map_mode mode)
{
	if (mode == LOCKED)
	{
		ANNOTATE_HAPPENS_BEFORE(BY_LOCKED(l));
		atomic_store(&l->locked, 0);
	}
	else if (mode == SHARED)
	{
		ANNOTATE_HAPPENS_BEFORE(BY_READERS(l));
		atomic_fetch_sub(&l->closed, 1);
	}
	else
	{
		ANNOTATE_HAPPENS_BEFORE(BY_WRITERS(l));
		atomic_store(&l->closed, 0);
	}
}

static bool
get(map_lock *l, map_mode mode, uint64_t ns)
{
	uint64_t	end = 0;

	for (int i = 0; !try(l, mode); i++)
	{
		uint64_t	now;

		if (ns == 0)
			return false;
		now = ax_port_default.now_ns();
		if (end == 0)
			end = now + ns;
		if (now - (end - ns) >= ns)
			return false;
		if (i < 10)
			sched_yield();
		else
			nanosleep(&(struct timespec) {0, 100000}, NULL);
	}
	return true;
}

/* ---- shares ---- */

static int
share_at(ax_word *w)
{
	for (int i = nshares - 1; i >= 0; i--)
		if (share[i] == w)
			return i;
	return -1;
}

static void
drop(int i)
{
	give(lock_of(share[i]), SHARED);
	nshares--;
	for (; i < nshares; i++)
		share[i] = share[i + 1];
}

/* w is held shared, by us: note it.  Of very many the oldest goes. */
static void
keep(ax_word *w)
{
	if (nshares == MAX_SHARES)
		drop(0);
	share[nshares++] = w;
}

void
ax_map_unshare(ax_word *w)
{
	int			i = w ? share_at(w) : -1;

	if (i >= 0)
		drop(i);
}

void
ax_map_unshare_all(void)
{
	while (nshares > 0)
		drop(nshares - 1);
}

/* ---- the latch ---- */

static uint64_t
word(ax_word *w)
{
	return atomic_load_explicit(w, memory_order_relaxed);
}

static void
set_word(ax_word *w, uint64_t v)
{
	atomic_store_explicit(w, v, memory_order_relaxed);
}

uint64_t
ax_word_read(ax_word *w)
{
	if (!coarse && share_at(w) < 0)
	{
		if (!get(lock_of(w), SHARED, WAIT_NS))
			return AX_CLOSED;
		keep(w);
	}
	return word(w);
}

/*
 * Nothing moves while the share is held; a guard that was closed is compared, by
 * a new share.
 */
bool
ax_word_valid(ax_word *w, uint64_t v)
{
	if (!coarse && share_at(w) < 0)
	{
		if (!get(lock_of(w), SHARED, 0))
			return false;
		keep(w);
	}
	return !((word(w) ^ v) & (AX_VERSION_MASK | AX_KEEP_OUT));
}

/* Both locks are ours. */
static bool
latched(ax_ctx *cx, ax_word *w)
{
	set_word(w, word(w) | AX_LOCKED | AX_CLOSED);
	ax_body(cx)->latches++;
	return true;
}

static void
let_go(ax_word *w)
{
	if (narena > 0 && arena[narena - 1] == w)
		narena--;
	else if (coarse)
		return;
	give(lock_of(w), EXCLUSIVE);
	give(lock_of(w), LOCKED);
}

static bool
lock_both(ax_word *w, uint64_t ns)
{
	map_lock   *l = lock_of(w);

	if (coarse)
		return true;
	ax_map_unshare(w);
	if (!get(l, LOCKED, ns == UPGRADE_NS ? 0 : ns))
		return false;
	if (get(l, EXCLUSIVE, ns))
		return true;
	give(l, LOCKED);
	return false;
}

bool
ax_word_trylock(ax_ctx *cx, ax_word *w, uint64_t v)
{
	if (!lock_both(w, UPGRADE_NS))
		return false;
	if ((word(w) & AX_OBSOLETE) || ((word(w) ^ v) & AX_VERSION_MASK))
	{
		let_go(w);
		return false;
	}
	return latched(cx, w);
}

ax_status
ax_word_lock(ax_ctx *cx, ax_word *w, uint64_t *v)
{
	if (!lock_both(w, WAIT_NS))
		return AX_BUSY;
	*v = word(w);
	if (*v & AX_OBSOLETE)
	{
		let_go(w);
		return AX_STALE;
	}
	latched(cx, w);
	return AX_OK;
}

ax_status
ax_word_acquire(ax_ctx *cx, ax_word *w, bool shared, uint64_t *v)
{
	map_lock   *l = lock_of(w);

	if (!shared || coarse)
		return ax_word_lock(cx, w, v);
	ax_map_unshare(w);
	if (!get(l, LOCKED, WAIT_NS))
		return AX_BUSY;
	if (!get(l, SHARED, WAIT_NS))
	{
		give(l, LOCKED);
		return AX_BUSY;
	}
	*v = word(w);
	if (*v & AX_OBSOLETE)
	{
		give(l, SHARED);
		give(l, LOCKED);
		return AX_STALE;
	}
	ax_body(cx)->latches++;
	return AX_OK;
}

bool
ax_latch_arena(ax_ctx *cx, ax_word *w, int ms)
{
	bool		was = coarse;
	uint64_t	v;
	bool		got = false;

	coarse = false;
	for (int i = 0; !got && (ms == 0 || i < ms); i += 10)
		got = ax_word_lock(cx, w, &v) == AX_OK;
	coarse = was;
	if (got)
		arena[narena++] = w;
	return got;
}

void
ax_word_close(ax_word *w)
{
	map_lock   *l = lock_of(w);

	if (coarse)
		return;
	give(l, SHARED);
	while (!get(l, EXCLUSIVE, WAIT_NS))
		;
	set_word(w, word(w) | AX_LOCKED | AX_CLOSED);
}

/* Readers were admitted all the time: what was read is as good as a sample. */
void
ax_word_release(ax_ctx *cx, ax_word *w)
{
	ax_body(cx)->latches--;
	if (coarse)
	{
		set_word(w, word(w) & ~(AX_LOCKED | AX_CLOSED));
		return;
	}
	give(lock_of(w), LOCKED);
	keep(w);
}

void
ax_word_unlock(ax_ctx *cx, ax_word *w, bool changed)
{
	set_word(w, (word(w) & ~(AX_LOCKED | AX_CLOSED)) + (changed ? AX_VERSION_ONE : 0));
	ax_body(cx)->latches--;
	let_go(w);
}

void
ax_word_unlock_obsolete(ax_ctx *cx, ax_word *w)
{
	set_word(w, ((word(w) & ~(AX_LOCKED | AX_CLOSED)) + AX_VERSION_ONE) | AX_OBSOLETE);
	ax_body(cx)->latches--;
	let_go(w);
}

ax_status
ax_word_wait(ax_ctx *cx, ax_word *w, uint64_t *v)
{
	*v = ax_word_read(w);
	return *v & AX_CLOSED ? AX_BUSY : AX_OK;
}

ax_status
ax_word_sample(ax_ctx *cx, ax_word *w, uint64_t *v)
{
	if (*v & AX_OBSOLETE)
	{
		ax_map_unshare(w);
		return AX_STALE;
	}
	return *v & AX_CLOSED ? AX_BUSY : AX_OK;
}

/* Nobody sleeps at a mapped latch.  Only what elision offers its providers names this. */
void
ax_word_wake(ax_ctx *cx, ax_word *w)
{
}

/* ---- the latch of a coarse tree ---- */

void
ax_map_coarse_taken(void *latch, bool writer)
{
	if (writer)
		ANNOTATE_HAPPENS_AFTER(BY_READERS(latch));
	ANNOTATE_HAPPENS_AFTER(BY_WRITERS(latch));
	coarse = true;
}

void
ax_map_coarse_given(void *latch, bool writer)
{
	coarse = false;
	ANNOTATE_HAPPENS_BEFORE(writer ? BY_WRITERS(latch) : BY_READERS(latch));
}

#endif
