/*
 * test_epoch.c
 *	  Epochs: who holds back reclamation and for how long, retire lists,
 *	  hand-over, generations.
 */
#include "core/base/ax_area.h"
#include "tap.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOTS 80
#define AREA (64u << 20)

static ax_area *area;

static uint64_t
waiting(ax_ctx *cx, int slot)
{
	ax_epoch_info e;

	ax_epochs(cx, slot, &e);
	return e.retired_objects;
}

/* Retire n fresh objects of this size; false when one could not be had. */
static bool
retire_some(ax_ctx *cx, ax_tree *t, uint64_t gen, int n, uint32_t size)
{
	ax_store   *st;

	if (ax_enter(cx, t, gen, &st) != AX_OK)
		return false;
	if (ax_retire_reserve(cx, n) != AX_OK)
	{
		ax_leave(cx);
		return false;
	}
	for (int i = 0; i < n; i++)
	{
		void	   *p = ax_alloc(cx, st, size, false);

		if (!p)
		{
			ax_leave(cx);
			return false;
		}
		ax_retire(cx, st, p, size);
	}
	ax_leave(cx);
	return true;
}

static void
test_generations(void)
{
	ax_ctx		cx;
	ax_tree    *t,
			   *t2;
	uint64_t	g1,
				g2;
	ax_store   *st;
	ax_memory_info m0,
				m1;

	ax_attach(&cx, area, 0, 100, &ax_port_default);
	ax_memory(&cx, &m0);
	t = ax_tree_alloc(&cx);
	ok(t != NULL && atomic_load(&t->gen) == 0, "a fresh handle is closed");
	ok(ax_enter(&cx, t, 1, &st) == AX_STALE, "and stale for everybody");
	ok(ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &g1) == AX_OK && g1 != 0, "open");
	ok(atomic_load(&t->gen) == g1, "the handle says its generation");
	ok(ax_enter(&cx, t, g1, &st) == AX_OK && st->gen == g1, "enter");
	ax_leave(&cx);
	ok(ax_enter(&cx, t, g1 + 1, &st) == AX_STALE, "another generation is stale");
	ax_tree_close(&cx, t);
	ok(atomic_load(&t->gen) == 0, "closed");
	ok(ax_enter(&cx, t, g1, &st) == AX_STALE, "the old generation is stale");
	ok(ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &g2) == AX_OK && g2 != g1,
	   "opened again: a generation never used before");
	ok(ax_enter(&cx, t, g1, &st) == AX_STALE, "the old one stays stale");
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx), "dying trees go");
	ax_tree_release(&cx, t);
	t2 = ax_tree_alloc(&cx);
	ok(t2 == t, "handles are reused");
	ax_tree_release(&cx, t2);
	ax_memory(&cx, &m1);
	ok(m1.used_bytes == 0 && m1.free_bytes == m0.free_bytes &&
	   m1.overhead_bytes == m0.overhead_bytes, "no page is lost");
	ax_detach(&cx);
}

static void
test_pinned(void)
{
	ax_ctx		a,
				b;
	ax_tree    *t;
	uint64_t	gen,
				e0;
	ax_store   *st;
	ax_epoch_info ei;

	ax_attach(&a, area, 0, 100, &ax_port_default);
	ax_attach(&b, area, 1, 101, &ax_port_default);
	t = ax_tree_alloc(&a);
	ax_tree_open(&a, t, AX_ART_OLC, 0, 0, &gen);

	ok(ax_enter(&b, t, gen, &st) == AX_OK, "a reader goes in");
	ax_epochs(&a, 1, &ei);
	e0 = ei.pinned_epoch;
	ok(e0 != 0 && ei.pid == 101, "and is seen there");
	ok(retire_some(&a, t, gen, 300, 256), "300 objects retired, past a chunk's end");
	ok(waiting(&a, 0) == 300, "all wait");
	ax_epochs(&a, 0, &ei);
	ok(ei.retired_bytes == 300 * 256, "with their bytes");
	for (int i = 0; i < 10; i++)
		if (!ax_poll(&a))
			ok(false, "round %d says that nothing is pending", i);
	ok(waiting(&a, 0) == 300, "nothing goes while the reader is in");
	ax_epochs(&a, 0, &ei);
	ok(ei.global_epoch <= e0 + 1, "the epoch moves at most one ahead of it");
	ax_leave(&b);
	ok(tap_quiesce(&a), "the reader leaves");
	ok(waiting(&a, 0) == 0, "and all go");
	ax_epochs(&a, 0, &ei);
	ok(ei.retired_bytes == 0, "with their bytes again");

	/* an idle process's list is reclaimed by another */
	ok(retire_some(&b, t, gen, 5, 64), "b retires and goes idle");
	ok(waiting(&a, 1) == 5, "seen");
	ok(tap_quiesce(&a) && waiting(&a, 1) == 0, "a reclaims for it");
	ok(retire_some(&b, t, gen, 5, 64), "b can retire again");

	/* an exited one's is adopted */
	ax_detach(&b);
	ok(waiting(&a, 1) == 0, "detached: nothing is left in the slot");
	{
		ax_memory_info m;

		ax_memory(&a, &m);
		ok(m.retired_bytes == 5 * 64, "but it is not forgotten");
	}
	ok(tap_quiesce(&a), "it is reclaimed by another");
	ax_epochs(&a, 0, &ei);
	ok(ei.adopted_bytes == 5 * 64, "who says so");
	{
		ax_memory_info m;

		ax_memory(&a, &m);
		ok(m.retired_bytes == 0, "nothing retired any more");
	}

	/* records of a closed tree are forgotten, its pages go */
	retire_some(&a, t, gen, 50, 40000);
	ax_tree_close(&a, t);
	ok(!retire_some(&a, t, gen, 1, 64), "closed is closed");
	ok(tap_quiesce(&a), "quiescent after close");
	{
		ax_memory_info m;

		ax_memory(&a, &m);
		ok(m.used_bytes == 0 && m.retired_bytes == 0, "big objects included");
	}
	ax_tree_release(&a, t);

	/* a store is freed only when the reader inside it left */
	t = ax_tree_alloc(&a);
	ax_tree_open(&a, t, AX_ART_OLC, 0, 0, &gen);
	ax_attach(&b, area, 1, 101, &ax_port_default);
	ax_enter(&b, t, gen, &st);
	ax_tree_close(&a, t);
	for (int i = 0; i < 10; i++)
		ax_poll(&a);
	ok(st->gen == gen, "the store is there while a reader is in it");
	{
		ax_memory_info m;

		ax_memory(&a, &m);
		ok(m.used_bytes == AX_PAGE, "dying, but used");
	}
	ax_leave(&b);
	ok(tap_quiesce(&a), "and goes with it");
	ax_tree_release(&a, t);
	ax_detach(&a);
	ax_detach(&b);
}

/* ---- the windows of the announcement ---- */

static struct
{
	const char *at;
	bool		plain;			/* the reader announces by a plain store */
	_Atomic int step;
	ax_tree    *t;
	uint64_t	gen;
	_Atomic(_Atomic uint64_t *) root;
}			win;
static _Thread_local bool is_reader;

static void
hook_window(const char *name)
{
	if (is_reader && strcmp(name, win.at) == 0 && atomic_load(&win.step) == 0)
	{
		atomic_store(&win.step, 1);
		while (atomic_load(&win.step) == 1)
			sched_yield();
	}
}

static void
window_run(void *arg, int i)
{
	ax_ctx		cx;
	ax_store   *st;

	ax_attach(&cx, area, i, 100 + i, &ax_port_default);
	if (i == 0)
	{
		_Atomic uint64_t *p;
		uint64_t	x;

		if (win.plain)
		{
			ax_enter_read(&cx, win.t, win.gen, &st);
			ax_leave(&cx);
		}
		is_reader = true;
		(win.plain ? ax_enter_read : ax_enter) (&cx, win.t, win.gen, &st);
		p = atomic_load_explicit(&win.root, memory_order_acquire);
		atomic_store(&win.step, 3);
		/* hold the object for a while, with the other side hard at work */
		while (atomic_load(&win.step) == 3)
			sched_yield();
		x = atomic_load_explicit(p, memory_order_relaxed);
		ok(x == 42 || x == 43, "what the reader holds is intact (%llx)", (unsigned long long) x);
		ax_leave(&cx);
		is_reader = false;
	}
	else
	{
		_Atomic uint64_t *p,
				   *old;

		while (atomic_load(&win.step) != 1)
			sched_yield();
		/* replace the object while the reader stands in the window */
		ax_enter(&cx, win.t, win.gen, &st);
		p = ax_alloc(&cx, st, 64, false);
		atomic_store_explicit(p, 43, memory_order_relaxed);
		ax_retire_reserve(&cx, 1);
		old = atomic_exchange(&win.root, p);
		ax_retire(&cx, st, (void *) old, 64);
		ax_leave(&cx);
		for (int k = 0; k < 20; k++)
			ax_poll(&cx);
		atomic_store(&win.step, 2);
		while (atomic_load(&win.step) != 3)
			sched_yield();
		/* and again, while it holds what it found */
		ax_enter(&cx, win.t, win.gen, &st);
		p = ax_alloc(&cx, st, 64, false);
		atomic_store_explicit(p, 43, memory_order_relaxed);
		ax_retire_reserve(&cx, 1);
		old = atomic_exchange(&win.root, p);
		ax_retire(&cx, st, (void *) old, 64);
		ax_leave(&cx);
		for (int k = 0; k < 20; k++)
			ax_poll(&cx);
		ok(waiting(&cx, 1) > 0, "%s: the object the reader holds is not reclaimed", win.at);
		atomic_store(&win.step, 4);
	}
	ax_detach(&cx);
}

static void
test_windows(void)
{
	static const char *const at[] = {"epoch:loaded", "epoch:entered"};

	for (int k = 0; k < 4; k++)
	{
		ax_ctx		cx;
		ax_store   *st;
		_Atomic uint64_t *p;

		ax_attach(&cx, area, 5, 105, &ax_port_default);
		win.t = ax_tree_alloc(&cx);
		ax_tree_open(&cx, win.t, AX_ART_OLC, 0, 0, &win.gen);
		ax_enter(&cx, win.t, win.gen, &st);
		p = ax_alloc(&cx, st, 64, false);
		atomic_store_explicit(p, 42, memory_order_relaxed);
		atomic_store(&win.root, p);
		ax_leave(&cx);
		win.at = at[k & 1];
		win.plain = k >= 2;
		atomic_store(&win.step, 0);
		tap_point_hook = hook_window;
		tap_threads(2, window_run, NULL);
		tap_point_hook = NULL;
		ax_tree_close(&cx, win.t);
		ok(tap_quiesce(&cx), "%s: quiescent", win.at);
		ax_tree_release(&cx, win.t);
		ax_detach(&cx);
	}
}

/*
 * A writer's own announcement may be one behind that of a reader who came in since.
 * What it retires has the stamp of the epoch, or it would go while the reader holds it.
 */
static void
test_older_writer(void)
{
	ax_ctx		a,
				b,
				c;
	ax_tree    *t;
	uint64_t	gen;
	ax_store   *st;
	ax_epoch_info ea,
				eb;
	void	   *p;

	ax_attach(&a, area, 0, 100, &ax_port_default);
	ax_attach(&b, area, 1, 101, &ax_port_default);
	ax_attach(&c, area, 2, 102, &ax_port_default);
	t = ax_tree_alloc(&a);
	ax_tree_open(&a, t, AX_ART_OLC, 0, 0, &gen);
	ok(retire_some(&c, t, gen, 1, 64), "something waits for the epoch to move");
	ax_enter(&a, t, gen, &st);
	p = ax_alloc(&a, st, 64, false);
	ok(p && ax_retire_reserve(&a, 1) == AX_OK, "a writer is inside");
	ax_poll(&c);
	ax_enter(&b, t, gen, &st);
	ax_epochs(&c, 0, &ea);
	ax_epochs(&c, 1, &eb);
	ok(eb.pinned_epoch == ea.pinned_epoch + 1, "a reader came in one epoch later");
	ax_retire(&a, st, p, 64);
	ax_leave(&a);
	for (int i = 0; i < 10; i++)
		ax_poll(&c);
	ok(waiting(&c, 0) == 1, "what the writer retired stays while the reader is in");
	ax_leave(&b);
	ok(tap_quiesce(&c) && waiting(&c, 0) == 0, "and goes with it");
	ax_tree_close(&c, t);
	ok(tap_quiesce(&c), "quiescent");
	ax_tree_release(&c, t);
	ax_detach(&a);
	ax_detach(&b);
	ax_detach(&c);
}

/* ---- no memory for records ---- */

static void
test_reserve(void)
{
	size_t		size = ax_area_min_size(4) + 64 * AX_PAGE;
	void	   *base = tap_shared(size);
	ax_area    *save = area;
	ax_ctx		a,
				b;
	ax_tree    *t;
	uint64_t	gen;
	ax_store   *st;
	ax_memory_info m0,
				m;
	int			kept = 0;

	area = ax_area_init(base, size, 4, 8 * AX_PAGE);
	ax_attach(&a, area, 0, 100, &ax_port_default);
	ax_attach(&b, area, 1, 101, &ax_port_default);
	ax_memory(&a, &m0);
	t = ax_tree_alloc(&a);
	ax_tree_open(&a, t, AX_ART_OLC, 0, 0, &gen);
	ax_enter(&a, t, gen, &st);
	while (ax_alloc(&a, st, 64, false))
		kept++;
	ax_leave(&a);
	ok(kept > 3000, "the area is full (%d objects)", kept);
	ax_enter(&a, t, gen, &st);
	ok(ax_retire_reserve(&a, 500) == AX_OK, "room for records comes out of the reserve");
	ax_leave(&a);

	/* eat up the reserve too */
	ax_enter(&a, t, gen, &st);
	while (ax_alloc(&a, st, 4000, true))
		;
	ok(ax_retire_reserve(&a, 100000) == AX_BUSY, "no room at all: busy, not an error");
	ax_leave(&a);
	ax_enter(&a, t, gen, &st);
	ok(ax_retire_reserve(&a, 20) == AX_OK, "a few are always there");
	ax_leave(&a);
	ax_detach(&b);
	ax_tree_close(&a, t);
	ok(tap_quiesce(&a), "quiescent");
	ax_detach(&a);
	ax_attach(&a, area, 0, 100, &ax_port_default);
	ax_attach(&b, area, 1, 100, &ax_port_default);
	ax_memory(&a, &m);
	ok(m.free_bytes == m0.free_bytes && m.overhead_bytes == m0.overhead_bytes &&
	   m.used_bytes == 0, "all is back");
	ax_detach(&a);
	ax_detach(&b);
	tap_unmap(base, size);
	area = save;
}

/* ---- who pays for the fence ---- */

/*
 * Two store and then load what the other stored: at least one must see the
 * other's, and does when one of them has the kernel fence both.  Without any
 * fence, which the same rounds show first, both may see nothing.
 */
static struct litmus
{
	_Alignas(128) _Atomic uint64_t x;
	_Alignas(128) _Atomic uint64_t y;
	_Alignas(128) _Atomic uint64_t sx;	/* twice the round; plus 1: y was seen */
	_Alignas(128) _Atomic uint64_t round;
	uint64_t	rounds;
	bool		fence;
	bool		failed;
	uint64_t	both;
}		   *lit;

static void
litmus_side(void *arg, int who)
{
	for (uint64_t n = 1; n <= lit->rounds; n++)
	{
		uint64_t	seen;

		if (who == 0)
		{
			for (uint64_t k = 0; atomic_load_explicit(&lit->round, memory_order_acquire) != n; k++)
				if (k > 1000)
					sched_yield();
			atomic_store_explicit(&lit->x, n, memory_order_relaxed);
			atomic_signal_fence(memory_order_seq_cst);
			seen = atomic_load_explicit(&lit->y, memory_order_relaxed);
			atomic_store_explicit(&lit->sx, n * 2 + (seen == n), memory_order_release);
			continue;
		}
		atomic_store_explicit(&lit->round, n, memory_order_release);
		/* meet the other half way; a load takes about as long as to get there */
		for (uint64_t k = n % 64; k > 0; k--)
			ax_pause();
		atomic_store_explicit(&lit->y, n, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		if (lit->fence && !ax_barrier())
			lit->failed = true;
		seen = atomic_load_explicit(&lit->x, memory_order_relaxed);
		for (uint64_t k = 0;; k++)
		{
			uint64_t	other = atomic_load_explicit(&lit->sx, memory_order_acquire);

			if (other / 2 == n)
			{
				lit->both += !(other & 1) && seen != n;
				break;
			}
			if (k > 1000)
				sched_yield();
		}
	}
}

static void
test_barrier(void)
{
	if (!area->barrier)
	{
		tap_diag("no membarrier here: every announcement is an exchange");
		return;
	}
	lit = tap_shared(sizeof(*lit));
	lit->rounds = tap_scaled(200000);
	for (int k = 0; k < 4; k++)
	{
		bool		forked = k & 1;

		memset(lit, 0, offsetof(struct litmus, rounds));
		lit->both = 0;
		lit->fence = k >= 2;
		if (forked)
			ok(tap_forks(2, litmus_side, NULL), "two processes ended well");
		else
			tap_threads(2, litmus_side, NULL);
		if (lit->fence)
			ok(lit->both == 0 && !lit->failed, "two %s, one that fences both: %llu times both saw nothing",
			   forked ? "processes" : "threads", (unsigned long long) lit->both);
		else
			tap_diag("two %s, no fence: in %llu of %llu rounds both saw nothing",
					 forked ? "processes" : "threads", (unsigned long long) lit->both,
					 (unsigned long long) lit->rounds);
	}
}

/* A change is followed by a full fence, whatever comes next; reading is not. */
static void
test_entries(void)
{
	ax_ctx		cx;
	ax_tree    *t;
	uint64_t	gen;
	ax_store   *st;

	ax_attach(&cx, area, 0, 100, &ax_port_default);
	t = ax_tree_alloc(&cx);
	ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen);
	ok(ax_body(&cx)->joined == area->barrier, "joined if there is a barrier");
	ax_enter(&cx, t, gen, &st);
	ax_leave(&cx);
	ok(!ax_body(&cx)->plain, "after a change: an exchange");
	ax_enter_read(&cx, t, gen, &st);
	ax_leave(&cx);
	ok(ax_body(&cx)->plain == area->barrier, "after that: plain stores");
	ax_enter(&cx, t, gen, &st);
	ax_leave(&cx);
	ok(!ax_body(&cx)->plain, "until the next change");
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx), "quiescent");
	ax_tree_release(&cx, t);
	ax_detach(&cx);
}

/* ---- torture ---- */

#define CELLS 32
#define TREES 4
#define OBJ_MAX 700
#define MARK UINT64_C(0xA5C3000000000000)

typedef struct world
{
	ax_tree    *tree[TREES];
	/* cells of one generation of one tree: gen in the object tells */
	_Atomic(_Atomic uint64_t *) cell[TREES][CELLS];
	_Atomic uint64_t bad;
	_Atomic uint64_t nomem;
	_Atomic uint64_t busy;
	_Atomic uint64_t retired;
	uint64_t	rounds;
} world;

static world *wd;

/*
 * Object: word 0 = MARK | words, word 1 = generation, the others = word 0.
 * Readers look at all of it; the debug build fills freed objects with 0xDB.
 */
static void
fill(_Atomic uint64_t *p, uint64_t words, uint64_t gen)
{
	for (uint64_t i = 0; i < words; i++)
		atomic_store_explicit(&p[i], i == 1 ? gen : MARK | words, memory_order_relaxed);
}

/*
 * A cell's value: the object and the low 22 bits of its generation, since it
 * may outlive the generation, whose memory is then gone.
 */
static void *
tagged(void *p, uint64_t gen)
{
	return (void *) ((uintptr_t) p | (gen & 63) | (gen >> 6 & 0xFFFF) << 48);
}

static _Atomic uint64_t *
untagged(void *v, uint64_t gen)
{
	void	   *p = (void *) ((uintptr_t) v & UINT64_C(0x0000FFFFFFFFFFC0));

	return v && v == tagged(p, gen) ? p : NULL;
}

static bool
intact(_Atomic uint64_t *p, uint64_t gen)
{
	uint64_t	h = atomic_load_explicit(&p[0], memory_order_relaxed);
	uint64_t	words = h & 0xFFFF;

	if ((h & ~UINT64_C(0xFFFF)) != MARK || words < 2 || words > OBJ_MAX / 8 + 1)
		return false;
	for (uint64_t i = 2; i < words; i++)
		if (atomic_load_explicit(&p[i], memory_order_relaxed) != h)
			return false;
	return atomic_load_explicit(&p[1], memory_order_relaxed) == gen;
}

static void
torture(void *arg, int who)
{
	ax_ctx		cx;
	uint64_t	rng = (uint64_t) who * 7919 + 1;
	int			failed = 0;

	ax_attach(&cx, area, who, 1000 + who, &ax_port_default);
	for (uint64_t n = 0; n < wd->rounds; n++)
	{
		int			ti = (int) (tap_rand(&rng) % TREES);
		int			ci = (int) (tap_rand(&rng) % CELLS);
		ax_tree    *t = wd->tree[ti];
		uint64_t	gen = atomic_load(&t->gen);
		ax_store   *st;
		uint64_t	what = tap_rand(&rng) % 100;

		if (who == 0 && n % 64 == 0)
		{
			/* only this one opens and closes: as under the directory's lock */
			ax_tree_close(&cx, t);
			if (n % 128 == 0)
			{
				for (int i = 0; i < CELLS; i++)
					atomic_store(&wd->cell[ti][i], NULL);
			}
			for (int i = 0; ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen) != AX_OK; i++)
				if (i > 1000)
				{
					atomic_fetch_add(&wd->nomem, 1);
					break;
				}
			continue;
		}
		if (who != 0 && n % 500 == 499)
		{
			/* exit and come back */
			ax_detach(&cx);
			ax_attach(&cx, area, who, 1000 + who, &ax_port_default);
		}
		if (gen == 0 || (what < 60 ? ax_enter_read : ax_enter) (&cx, t, gen, &st) != AX_OK)
			continue;
		if (what < 60)
		{
			_Atomic uint64_t *p = untagged((void *) atomic_load_explicit(&wd->cell[ti][ci],
																		 memory_order_acquire), gen);

			if (p)
			{
				for (int k = 0; k < 3; k++)
				{
					if (!intact(p, gen))
						atomic_fetch_add(&wd->bad, 1);
					if (k == 0 && n % 128 == 1)
						sched_yield();
				}
			}
		}
		else
		{
			uint32_t	size = 16 + (uint32_t) (tap_rand(&rng) % (OBJ_MAX - 16)) / 8 * 8;
			uint64_t	words = size / 8;
			_Atomic uint64_t *p;
			_Atomic uint64_t *old;

			if (ax_retire_reserve(&cx, 1) != AX_OK)
			{
				atomic_fetch_add(&wd->busy, 1);
				ax_leave(&cx);
				ax_poll(&cx);
				continue;
			}
			p = ax_alloc(&cx, st, size, false);
			if (!p)
			{
				/* as the dispatch does: see try_for_memory */
				ax_leave(&cx);
				ax_poll(&cx);
				sched_yield();
				if (++failed > 2000)
				{
					atomic_fetch_add(&wd->nomem, 1);
					break;
				}
				continue;
			}
			failed = 0;
			fill(p, words, gen);
			old = untagged((void *) atomic_exchange(&wd->cell[ti][ci], tagged((void *) p, gen)), gen);
			if (old)
			{
				size = (uint32_t) (atomic_load_explicit(&old[0], memory_order_relaxed) & 0xFFFF) * 8;
				ax_retire(&cx, st, (void *) old, size);
				atomic_fetch_add_explicit(&wd->retired, 1, memory_order_relaxed);
			}
		}
		ax_leave(&cx);
		if (ax_body(&cx)->retired_since >= 64)
			ax_reclaim(&cx);
	}
	ax_detach(&cx);
}

static void
run_torture(const char *name, int n, bool forked)
{
	ax_ctx		cx;
	ax_memory_info m0,
				m;
	uint64_t	gen;
	ax_class_info ci[AX_CLASS_ROWS];
	uint64_t	live = 0;

	ax_attach(&cx, area, SLOTS - 1, 99, &ax_port_default);
	ax_memory(&cx, &m0);
	wd->rounds = tap_scaled(forked ? 100000 : 20000);
	for (int i = 0; i < TREES; i++)
	{
		wd->tree[i] = ax_tree_alloc(&cx);
		ax_tree_open(&cx, wd->tree[i], AX_ART_OLC, 0, 0, &gen);
		for (int k = 0; k < CELLS; k++)
			atomic_store(&wd->cell[i][k], NULL);
	}
	if (forked)
		ok(tap_forks(n, torture, NULL), "%s: all processes ended well", name);
	else
		tap_threads(n, torture, NULL);
	ok(atomic_load(&wd->bad) == 0, "%s: no reader saw a freed object", name);
	ok(atomic_load(&wd->nomem) == 0, "%s: memory sufficed (%llu)", name,
	   (unsigned long long) atomic_load(&wd->nomem));
	ok(atomic_load(&wd->retired) > 100, "%s: %llu objects retired", name,
	   (unsigned long long) atomic_load(&wd->retired));
	for (int i = 0; i < TREES; i++)
	{
		ax_tree_close(&cx, wd->tree[i]);
		ax_tree_release(&cx, wd->tree[i]);
	}
	ok(tap_quiesce(&cx), "%s: quiescent", name);
	ax_memory(&cx, &m);
	ok(m.used_bytes == 0 && m.retired_bytes == 0, "%s: nothing used, nothing retired (%llu)", name,
	   (unsigned long long) m.retired_bytes);
	/* this slot's own chunk may have come back as a spare */
	ok(m.free_bytes + AX_PAGE >= m0.free_bytes && m.free_bytes <= m0.free_bytes,
	   "%s: no page lost: %lld", name, (long long) (m0.free_bytes - m.free_bytes));
	for (int i = 0; i < ax_memory_classes(&cx, ci, AX_CLASS_ROWS); i++)
		live += ci[i].live + ci[i].free + ci[i].spans + ci[i].bytes;
	ok(live == 0, "%s: no class owns anything", name);
	ax_detach(&cx);
	ax_attach(&cx, area, SLOTS - 1, 99, &ax_port_default);
	ax_memory(&cx, &m);
	ok(m.free_bytes == m0.free_bytes && m.overhead_bytes == m0.overhead_bytes &&
	   m.largest_free_bytes == m0.largest_free_bytes, "%s: exactly as before", name);
	ax_detach(&cx);
	atomic_store(&wd->bad, 0);
	atomic_store(&wd->nomem, 0);
	atomic_store(&wd->retired, 0);
}

int
main(void)
{
	area = tap_area(AREA, SLOTS, 1 << 20);
	wd = tap_shared(sizeof(*wd));
	test_generations();
	test_pinned();
	test_windows();
	test_older_writer();
	test_reserve();
	test_barrier();
	test_entries();
	run_torture("4 threads", 4, false);
	if (area->barrier)
	{
		area->barrier = false;
		test_entries();
		run_torture("4 threads, by exchange", 4, false);
		area->barrier = true;
	}
	run_torture("64 threads", 64, false);
#ifdef AX_ASAN
	ax_poisoning = false;		/* each process has its own shadow memory */
#endif
	tap_unmap(area, AREA);
	area = tap_area(AREA, SLOTS, 1 << 20);
	run_torture("6 processes", 6, true);
	return tap_done();
}
