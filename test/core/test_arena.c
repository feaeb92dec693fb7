/*
 * test_arena.c
 *	  Pages, spans, classes, magazines: nothing overlaps, nothing is lost, a
 *	  full area stays usable, small trees stay small.
 */
#include "core/base/ax_area.h"
#include "tap.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOTS 80

static ax_area *area;
static size_t area_size;
static _Atomic uint64_t discards;
static _Atomic uint64_t discarded;
static ax_port port;

static void
count_discard(void *addr, size_t len)
{
	atomic_fetch_add(&discards, 1);
	atomic_fetch_add(&discarded, len);
	ax_port_default.discard(addr, len);
}

static void
new_area(size_t size, size_t reserve)
{
	area_size = size;
	area = tap_area(size, SLOTS, reserve);
}

static void
drop_area(void)
{
	tap_unmap(area, area_size);
	area = NULL;
}

/* What ax_memory should say again when all is closed. */
static bool
same_memory(const ax_memory_info *a, const ax_memory_info *b)
{
	if (a->used_bytes == b->used_bytes && a->free_bytes == b->free_bytes &&
		a->largest_free_bytes == b->largest_free_bytes &&
		a->retired_bytes == b->retired_bytes && a->overhead_bytes == b->overhead_bytes)
		return true;
	tap_diag("used %lld free %lld largest %lld retired %lld overhead %lld (differences)",
			 (long long) (a->used_bytes - b->used_bytes),
			 (long long) (a->free_bytes - b->free_bytes),
			 (long long) (a->largest_free_bytes - b->largest_free_bytes),
			 (long long) (a->retired_bytes - b->retired_bytes),
			 (long long) (a->overhead_bytes - b->overhead_bytes));
	return false;
}

/* Every page is used by a tree, free, or overhead. */
static bool
adds_up(ax_ctx *cx)
{
	ax_memory_info m;

	ax_memory(cx, &m);
	return m.largest_free_bytes <= m.free_bytes && m.retired_bytes <= m.used_bytes &&
		m.area_bytes == m.used_bytes + m.overhead_bytes + m.free_bytes + m.reserve_bytes;
}

/* ---- objects with a pattern ---- */

typedef struct obj
{
	unsigned char *p;
	uint32_t	size;
	unsigned char c;
} obj;

static bool
make_obj(ax_ctx *cx, ax_store *st, obj *o, uint32_t size, uint64_t r, bool may_reserve)
{
	o->p = ax_alloc(cx, st, size, may_reserve);
	if (!o->p)
		return false;
	o->size = size;
	o->c = (unsigned char) (r | 1);
	memset(o->p, o->c, size);
	return true;
}

static bool
check_obj(const obj *o)
{
	for (uint32_t i = 0; i < o->size; i += o->size > 256 ? o->size / 64 : 1)
		if (o->p[i] != o->c)
			return false;
	return o->p[o->size - 1] == o->c;
}

static void
test_classes(void)
{
	uint32_t	last = 0;
	bool		good = true;
	int			n = 0;

	for (uint32_t s = 1; s <= 200000; s++)
	{
		uint32_t	a = ax_alloc_size(s);

		if (a < s || a < last || a % 64 != 0 || ax_alloc_size(a) != a)
			good = false;
		if (ax_class_of(a) != ax_class_of(s))
			good = false;
		/* never more than a quarter wasted above 64 bytes, but for page ends */
		if (s > 64 && s <= 32704 && a - s > 63 && a > s + s / 2)
			good = false;
		if (a != last)
			n++;
		last = a;
	}
	ok(good, "ax_alloc_size is monotone, idempotent, whole lines, near");
	ok(ax_alloc_size(32704) == 32704 && ax_alloc_size(32705) == 9 * AX_PAGE - 64,
	   "beyond the largest class: pages");
	for (int c = 0; c < AX_NCLASSES; c++)
		if (ax_class_of(ax_class_size(c)) != c || (c && ax_class_size(c) <= ax_class_size(c - 1)))
			good = false;
	ok(good, "class sizes rise and map to themselves");
}

static void
test_random(void)
{
	ax_ctx		cx;
	ax_memory_info m0,
				m;
	ax_tree    *t;
	uint64_t	gen;
	ax_store   *st;
	enum
	{
		N = 3000
	};
	obj		   *o = calloc(N, sizeof(obj));
	uint64_t	rng = 12345;
	bool		good = true,
				aligned = true;
	uint64_t	rounds = tap_scaled(300000);
	uint64_t	total = 0;
	ax_tree_info info;

	new_area(128u << 20, 1 << 20);
	ax_attach(&cx, area, 0, 1, &port);
	ax_memory(&cx, &m0);
	ok(m0.used_bytes == 0 && m0.retired_bytes == 0 && adds_up(&cx), "a fresh area adds up");
	ok(m0.touched_bytes < (1u << 20), "and is hardly touched (%llu kB)",
	   (unsigned long long) m0.touched_bytes / 1024);
	t = ax_tree_alloc(&cx);
	ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen);
	for (uint64_t i = 0; i < rounds; i++)
	{
		int			k = (int) (tap_rand(&rng) % N);
		uint32_t	size;

		if (ax_enter(&cx, t, gen, &st) != AX_OK)
		{
			good = false;
			break;
		}
		if (o[k].p)
		{
			good = good && check_obj(&o[k]);
			ax_unalloc(&cx, st, o[k].p, o[k].size);
			o[k].p = NULL;
		}
		switch (tap_rand(&rng) % 20)
		{
			case 0:
				size = 1 + (uint32_t) (tap_rand(&rng) % 100000);
				break;
			case 1:
			case 2:
				size = 1 + (uint32_t) (tap_rand(&rng) % 33000);
				break;
			default:
				size = 1 + (uint32_t) (tap_rand(&rng) % 1500);
				break;
		}
		good = make_obj(&cx, st, &o[k], size, tap_rand(&rng), false) && good;
		aligned = aligned && ((uintptr_t) o[k].p & 63) == 0;
		ax_leave(&cx);
	}
	ok(good, "%llu random objects kept their contents", (unsigned long long) rounds);
	ok(aligned, "all 64-byte aligned");
	ok(adds_up(&cx), "the area adds up in between");
	for (int i = 0; i < N; i++)
		if (o[i].p)
			total += ax_alloc_size(o[i].size);
	ax_info(&cx, t, gen, &info);
	ok(info.bytes >= total && info.bytes < total * 2 + (4 << 20),
	   "%llu kB of objects in %llu kB", (unsigned long long) total / 1024,
	   (unsigned long long) info.bytes / 1024);
	ax_memory(&cx, &m);
	ok(m.used_bytes == info.bytes, "the area agrees with the tree");
	ax_enter(&cx, t, gen, &st);
	for (int i = 0; i < N; i++)
		if (o[i].p)
		{
			good = good && check_obj(&o[i]);
			ax_unalloc(&cx, st, o[i].p, o[i].size);
		}
	ax_leave(&cx);
	ok(good, "to the end");
	ax_info(&cx, t, gen, &info);
	ok(info.bytes < (AX_NCLASSES + 10) * 65536 * 2, "an emptied tree gives its spans back (%llu kB left)",
	   (unsigned long long) info.bytes / 1024);
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx), "quiescent");
	ax_tree_release(&cx, t);
	ax_memory(&cx, &m);
	ok(same_memory(&m, &m0), "memory is exactly as before");
	ok(atomic_load(&discards) > 0, "%llu runs, %llu kB given back to the kernel",
	   (unsigned long long) atomic_load(&discards), (unsigned long long) atomic_load(&discarded) / 1024);
	ax_detach(&cx);
	drop_area();
	free(o);
}

static void
test_small_trees(void)
{
	enum
	{
		TREES = 1000
	};
	ax_ctx		cx;
	ax_memory_info m0,
				m;
	ax_tree    *t[TREES];
	uint64_t	gen;
	ax_store   *st;
	uint64_t	most = 0;
	bool		good = true;
	ax_tree_info info;

	new_area(64u << 20, 1 << 20);
	ax_attach(&cx, area, 0, 1, &port);
	for (int i = 0; i < TREES; i++)
		t[i] = ax_tree_alloc(&cx);
	for (int i = 0; i < TREES; i++)
		ax_tree_release(&cx, t[i]);
	ax_memory(&cx, &m0);		/* pages of handles stay what they are */
	for (int i = 0; i < TREES; i++)
	{
		t[i] = ax_tree_alloc(&cx);
		good = good && t[i] && ax_tree_open(&cx, t[i], AX_ART_OLC, 0, 0, &gen) == AX_OK;
		ax_enter(&cx, t[i], gen, &st);
		/* a leaf that grows, row by row */
		for (uint32_t rows = 1, last = 0; rows <= 10; rows++)
		{
			uint32_t	size = 24 + rows * 20;

			if (ax_alloc_size(size) == last)
				continue;
			last = ax_alloc_size(size);
			ax_retire_reserve(&cx, 1);
			ax_retire(&cx, st, ax_alloc(&cx, st, size, false), size);
		}
		ax_leave(&cx);
		ax_info(&cx, t[i], gen, &info);
		if (info.bytes > most)
			most = info.bytes;
	}
	ok(good, "%d trees", TREES);
	ok(most <= 3 * AX_PAGE, "ten rows cost at most %llu bytes", (unsigned long long) most);
	ax_memory(&cx, &m);
	ok(m.used_bytes <= (uint64_t) TREES * 3 * AX_PAGE, "a thousand of them %llu kB",
	   (unsigned long long) m.used_bytes / 1024);

	/* objects of the bump area are reused within their class */
	t[0] = t[0];
	gen = atomic_load(&t[0]->gen);
	for (int i = 0; i < 1000; i++)
	{
		void	   *p;

		ax_enter(&cx, t[0], gen, &st);
		p = ax_alloc(&cx, st, 128, false);
		memset(p, 7, 128);
		ax_retire_reserve(&cx, 1);
		ax_retire(&cx, st, p, 128);
		ax_leave(&cx);
		if (i % 10 == 0)
			ax_poll(&cx);
	}
	ax_info(&cx, t[0], gen, &info);
	ok(info.bytes <= 4 * AX_PAGE, "a thousand replacements: %llu bytes", (unsigned long long) info.bytes);
	for (int i = 0; i < TREES; i++)
	{
		ax_tree_close(&cx, t[i]);
		ax_tree_release(&cx, t[i]);
	}
	ok(tap_quiesce(&cx), "quiescent");
	ax_memory(&cx, &m);
	m0.overhead_bytes = m.overhead_bytes;	/* one more spare chunk of records */
	ok(m.used_bytes == 0 && m.retired_bytes == 0 &&
	   m0.free_bytes - m.free_bytes <= AX_PAGE, "memory is as before");
	ax_detach(&cx);
	drop_area();
}

static void
test_full(void)
{
	ax_ctx		cx;
	ax_memory_info m0,
				m;
	ax_tree    *t;
	uint64_t	gen;
	ax_store   *st;
	enum
	{
		N = 40000
	};
	obj		   *o = calloc(N, sizeof(obj));
	int			n = 0,
				first = 0;
	bool		good = true;
	obj			big = {0};

	new_area(24u << 20, 4u << 20);
	ax_attach(&cx, area, 0, 1, &port);
	ax_memory(&cx, &m0);
	t = ax_tree_alloc(&cx);
	for (int round = 0; round < 3; round++)
	{
		ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen);
		ax_enter(&cx, t, gen, &st);
		for (n = 0; n < N && make_obj(&cx, st, &o[n], 700, (uint64_t) n * 31, false); n++)
			;
		ax_leave(&cx);
		if (round == 0)
			first = n;
		ok(n == first && n > 20000, "the area takes %d objects", n);
		ax_memory(&cx, &m);
		ok(m.free_bytes < AX_PAGE, "then it is full");
		ok(adds_up(&cx), "and adds up");
		ax_enter(&cx, t, gen, &st);
		ok(!ax_alloc(&cx, st, 100000, false), "no room for a large one either");
		good = make_obj(&cx, st, &o[n], 700, 99, true);
		ok(good, "the reserve is for deletion");
		ok(make_obj(&cx, st, &big, 1000000, 98, true), "large objects too");
		for (int i = 0; i <= n; i++)
			good = good && check_obj(&o[i]);
		ok(good, "nothing was overwritten");
		ax_unalloc(&cx, st, big.p, big.size);
		ax_unalloc(&cx, st, o[n].p, 700);
		/* every second one away: no page becomes free, but objects do */
		for (int i = 0; i < n; i += 2)
			ax_unalloc(&cx, st, o[i].p, 700);
		for (int i = 0; i < n; i += 2)
			good = make_obj(&cx, st, &o[i], 690, (uint64_t) i, false) && good;
		for (int i = 0; i < n; i++)
			good = check_obj(&o[i]) && good;
		ok(good, "holes are filled again");
		if (round == 1)
			for (int i = 0; i < n; i++)
				ax_unalloc(&cx, st, o[i].p, 700);
		ax_leave(&cx);
		if (round == 1)
		{
			ax_memory(&cx, &m);
			ok(m.used_bytes < (1u << 20), "freed one by one: pages come back (%llu kB left)",
			   (unsigned long long) m.used_bytes / 1024);
		}
		ax_tree_close(&cx, t);
		if (round < 2)
		{
			uint64_t	g;
			ax_tree    *t2 = ax_tree_alloc(&cx);

			/* its memory comes back without any poll, when it is needed */
			ok(ax_tree_open(&cx, t2, AX_ART_OLC, 0, 0, &g) == AX_OK, "a new tree in a full area");
			ax_enter(&cx, t2, g, &st);
			for (n = 0; n < N && make_obj(&cx, st, &o[n], 700, (uint64_t) n, false); n++)
				;
			ax_leave(&cx);
			tap_diag("%d objects beside the dying tree", n);
			ax_tree_close(&cx, t2);
			ok(tap_quiesce(&cx), "quiescent");
			ax_tree_release(&cx, t2);
		}
	}
	ok(tap_quiesce(&cx), "quiescent");
	ax_tree_release(&cx, t);
	ax_memory(&cx, &m);
	ok(same_memory(&m, &m0), "memory is exactly as before");
	ax_detach(&cx);
	drop_area();
	free(o);
}

/* An allocator that finds no page frees a tree that died long ago. */
static void
test_reap_on_need(void)
{
	ax_ctx		a,
				b;
	ax_tree    *t1,
			   *t2;
	uint64_t	g1,
				g2;
	ax_store   *st;
	int			n1 = 0,
				n2 = 0;

	new_area(24u << 20, 0);
	ax_attach(&a, area, 0, 1, &port);
	ax_attach(&b, area, 1, 2, &port);
	t1 = ax_tree_alloc(&a);
	t2 = ax_tree_alloc(&a);
	ax_tree_open(&a, t2, AX_ART_OLC, 0, 0, &g2);
	ax_tree_open(&a, t1, AX_ART_OLC, 0, 0, &g1);
	ax_enter(&a, t1, g1, &st);
	while (ax_alloc(&a, st, 2000, false))
		n1++;
	ax_leave(&a);
	ax_tree_close(&a, t1);
	/* let two epochs pass without freeing: somebody else's retired objects */
	atomic_fetch_add(&area->epoch, 2);
	ax_enter(&b, t2, g2, &st);
	while (ax_alloc(&b, st, 2000, false))
		n2++;
	ax_leave(&b);
	/* part by part, with a few smaller spans at the end of each */
	ok(n2 >= n1 - n1 / 1000, "an allocator in need frees the dying tree (%d, %d)", n1, n2);
	ax_tree_close(&a, t2);
	ok(tap_quiesce(&a), "quiescent");
	ax_detach(&a);
	ax_detach(&b);
	drop_area();
}

static void
test_cap(void)
{
	ax_ctx		cx;
	ax_tree    *t;
	uint64_t	gen;
	ax_store   *st;
	int			n = 0;
	ax_tree_info info;

	new_area(24u << 20, 0);
	ax_attach(&cx, area, 0, 1, &port);
	t = ax_tree_alloc(&cx);
	ok(ax_tree_open(&cx, t, AX_ART_OLC, 100, 0, &gen) == AX_NOMEM, "a cap below one page");
	ok(atomic_load(&t->gen) == 0, "leaves the handle closed");
	ok(ax_nomem_was_cap(&cx), "and it was the cap that refused");
	ok(ax_tree_open(&cx, t, AX_ART_OLC, 300000, 0, &gen) == AX_OK, "a cap of 300000");
	ax_enter(&cx, t, gen, &st);
	while (ax_alloc(&cx, st, 512, false))
		n++;
	ok(n > 400 && n <= 300000 / 512, "%d objects of 512 fit below it", n);
	ok(!ax_alloc(&cx, st, 200000, false), "no large one");
	ok(ax_nomem_was_cap(&cx), "because of the cap");
	ok(ax_alloc(&cx, st, 512, true) != NULL, "deletion may exceed it");
	ax_leave(&cx);
	ax_info(&cx, t, gen, &info);
	ok(info.max_bytes == 300000 && info.bytes > 250000, "said so in ax_info (%llu)",
	   (unsigned long long) info.bytes);

	/* a higher one takes effect at once, a lower one too, a gone tree's none */
	ok(ax_tree_set_cap(&cx, t, gen, 600000) == AX_OK, "the cap is raised");
	ax_enter(&cx, t, gen, &st);
	n = 0;
	while (ax_alloc(&cx, st, 512, false))
		n++;
	ok(n > 400, "%d more objects fit below it", n);
	ax_leave(&cx);
	ok(ax_tree_set_cap(&cx, t, gen, 0) == AX_OK, "and taken away");
	ax_enter(&cx, t, gen, &st);
	while (ax_alloc(&cx, st, 512, false))
		n++;
	ok(n > 20000, "the whole area can be had (%d)", n);
	ok(!ax_nomem_was_cap(&cx), "and then it is the area that refuses");
	ax_leave(&cx);
	ok(ax_tree_set_cap(&cx, t, gen, 100000) == AX_OK, "a cap below what it has");
	ax_info(&cx, t, gen, &info);
	ok(info.max_bytes == 100000 && info.bytes > 100000, "takes nothing away");
	ok(ax_tree_set_cap(&cx, t, gen + 1, 0) == AX_STALE, "of another generation: STALE");

	/* the n-th allocation fails on demand */
	ax_tree_close(&cx, t);
	ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen);
	ax_enter(&cx, t, gen, &st);
	ax_body(&cx)->fail_alloc_at = 3;
	ok(ax_alloc(&cx, st, 64, false) && ax_alloc(&cx, st, 64, false), "two succeed");
	ok(!ax_alloc(&cx, st, 64, false), "the third fails, as told");
	ok(ax_alloc(&cx, st, 64, false) != NULL, "once");
	ax_leave(&cx);
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx), "quiescent");
	ax_detach(&cx);
	drop_area();
}

/*
 * Two trees in one group, one of them in another group, too, a third in none:
 * who is refused, because of whom, and that every byte goes back.
 */
static void
test_groups(void)
{
	ax_ctx		cx;
	_Atomic uint64_t few = 400000;
	_Atomic uint64_t many = 1000000;
	ax_group	a = {.limit = &few};
	ax_group	b = {.limit = &many};
	ax_tree    *t[3];
	uint64_t	gen[3];
	ax_store   *st;
	ax_tree_info info[3];
	void	   *big;
	uint64_t	full;
	int			n = 0;

	new_area(24u << 20, 0);
	ax_attach(&cx, area, 0, 1, &port);
	for (int i = 0; i < 3; i++)
	{
		t[i] = ax_tree_alloc(&cx);
		ax_tree_set_groups(t[i], (ax_group *[AX_GROUPS]) {i < 2 ? &b : NULL, NULL, i == 1 ? &a : NULL});
		ok(ax_tree_open(&cx, t[i], AX_ART_OLC, 0, 0, &gen[i]) == AX_OK, "tree %d", i);
	}
	ok(atomic_load(&b.bytes) == 2 * atomic_load(&a.bytes) && atomic_load(&a.bytes) > 0,
	   "an empty tree is charged, to all its groups");

	ax_enter(&cx, t[1], gen[1], &st);
	while (ax_alloc(&cx, st, 512, false))
		n++;
	ok(n > 500 && n <= 400000 / 512, "%d objects fit in the smaller group", n);
	ok(ax_nomem_group(&cx) == &a && !ax_nomem_was_cap(&cx), "which is said to be full");
	full = atomic_load(&a.bytes);
	ok(full <= 400000 && atomic_load(&b.bytes) < 1000000, "neither is over its limit");
	ok(ax_alloc(&cx, st, 300000, true) != NULL, "deletion may exceed it");
	ok(atomic_load(&a.bytes) > 400000, "and is charged");
	ax_leave(&cx);

	ax_enter(&cx, t[0], gen[0], &st);
	for (n = 0; ax_alloc(&cx, st, 512, false); n++)
		;
	ok(n > 100 && ax_nomem_group(&cx) == &b, "the larger one is full for the first tree (%d)", n);
	big = ax_alloc(&cx, st, 100000, false);
	ok(!big && ax_nomem_group(&cx) == &b, "also for a large object");
	atomic_store(&many, 2000000);
	big = ax_alloc(&cx, st, 100000, false);
	ok(big != NULL, "until its limit is raised");
	full = atomic_load(&b.bytes);
	ax_unalloc(&cx, st, big, 100000);
	ok(full - atomic_load(&b.bytes) >= 100000, "what is freed is taken off");
	ax_leave(&cx);
	for (int i = 0; i < 3; i++)
		ax_info(&cx, t[i], gen[i], &info[i]);
	ok(atomic_load(&a.bytes) == info[1].bytes &&
	   atomic_load(&b.bytes) == info[0].bytes + info[1].bytes, "groups and trees agree");

	ax_enter(&cx, t[2], gen[2], &st);
	for (n = 0; ax_alloc(&cx, st, 512, false); n++)
		;
	ok(n > 20000 && !ax_nomem_group(&cx), "a tree in no group has the rest of the area");
	ax_leave(&cx);
	ax_tree_close(&cx, t[2]);
	ok(tap_quiesce(&cx), "quiescent");

	/* closed, it is charged until its pages are back */
	ax_tree_close(&cx, t[1]);
	ok(atomic_load(&a.bytes) == info[1].bytes, "a dying tree is still charged");
	atomic_store(&few, 0);
	ok(ax_tree_open(&cx, t[1], AX_ART_OLC, 0, 0, &gen[1]) == AX_NOMEM &&
	   ax_nomem_group(&cx) == &a, "no other in a group that may have nothing");
	ok(atomic_load(&b.bytes) == info[0].bytes, "a refusal charges nobody");
	ok(tap_quiesce(&cx), "quiescent");
	ok(atomic_load(&a.bytes) == 0, "then it is not any more");
	ax_tree_close(&cx, t[0]);
	ok(tap_quiesce(&cx), "quiescent");
	ok(atomic_load(&b.bytes) == 0, "nor is the last");
	ax_detach(&cx);
	drop_area();
}

/* ---- beside a call that is refused ---- */

static ax_group *watched;
static uint64_t watched_bytes;
static int	refusals;
static uint64_t stolen;

/* What others see of the counters while a call finds that it is refused. */
static void
watch(const char *name)
{
	if (strcmp(name, "arena.charge") == 0 && stolen)
		atomic_fetch_add(&watched[1].bytes, stolen);
	if (strcmp(name, "arena.refused") == 0 &&
		atomic_load(&watched[0].bytes) == watched_bytes)
		refusals++;
}

/*
 * Bytes that a call does not get are charged at no time, to no group: somebody else
 * would be refused for them.
 */
static void
test_refused(void)
{
	ax_ctx		cx;
	_Atomic uint64_t limit[2] = {8 << 20, 2 << 20};
	ax_group	g[2] = {{.limit = &limit[0]}, {.limit = &limit[1]}};
	ax_tree    *t;
	uint64_t	gen;
	ax_store   *st;

	new_area(24u << 20, 0);
	ax_attach(&cx, area, 0, 1, &port);
	t = ax_tree_alloc(&cx);
	ax_tree_set_groups(t, (ax_group *[AX_GROUPS]) {&g[0], &g[1], NULL});
	ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen);
	ax_enter(&cx, t, gen, &st);
	watched = g;
	watched_bytes = atomic_load(&g[0].bytes);
	tap_point_hook = watch;
	ok(!ax_alloc(&cx, st, 4 << 20, false) && refusals == 1 && ax_nomem_group(&cx) == &g[1],
	   "refused by one group, the other is not charged meanwhile");
	atomic_store(&limit[0], 3 << 20);
	atomic_store(&limit[1], 8 << 20);
	ok(!ax_alloc(&cx, st, 4 << 20, false) && refusals == 2 && ax_nomem_group(&cx) == &g[0],
	   "nor is the one that refuses");

	/* somebody takes what was left of the second one, after it was asked */
	atomic_store(&limit[0], 8 << 20);
	stolen = 5 << 20;
	ok(!ax_alloc(&cx, st, 4 << 20, false) && refusals == 3 && ax_nomem_group(&cx) == &g[1],
	   "who comes too late is refused, and what it had is given back");
	stolen = 0;
	tap_point_hook = NULL;
	ok(atomic_load(&g[1].bytes) == watched_bytes + (5 << 20), "only what the other took is charged");
	ok(ax_alloc(&cx, st, 1 << 20, false) != NULL, "what fits is given");
	ax_leave(&cx);
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx) && atomic_load(&g[0].bytes) == 0, "quiescent");
	ax_detach(&cx);
	drop_area();
}

/* ---- a compaction of some of the spans, which is then given up ---- */

static void
test_drained(void)
{
	enum
	{
		N = 4000,
		LARGE = 1024
	};
	ax_ctx		cx;
	ax_tree    *t;
	ax_store   *st;
	uint64_t	gen;
	void	  **p = calloc(N, sizeof(void *));
	uint64_t	bytes;
	int			draining = 0,
				moved = 0,
				back = 0,
				n = 0;

	new_area(16u << 20, 0);
	ax_attach(&cx, area, 0, 1, &port);
	t = ax_tree_alloc(&cx);
	ok(ax_tree_open(&cx, t, AX_ART_OLC, 0, 0, &gen) == AX_OK, "a tree");
	ax_enter(&cx, t, gen, &st);
	for (int i = 0; i < N; i++)
		p[i] = ax_alloc(&cx, st, LARGE, false);
	for (int i = 0; i < N; i++)
		if (i % 8)
			ax_unalloc(&cx, st, p[i], LARGE);
	ax_magazines_flush(&cx, ax_body(&cx)->mags);
	ax_body(&cx)->drains = true;
	ax_drain_begin(&cx, st);
	for (int i = 0; i < N; i += 8)
		draining += ax_draining(&cx, st, p[i]);
	ok(draining > N / 16, "most objects are in spans that are to become empty (%d)", draining);
	ax_body(&cx)->drains = false;
	bytes = st->bytes;
	for (int i = 0; i < N / 2; i += 8)
		if (ax_draining(&cx, st, p[i]))
		{
			back += ax_draining(&cx, st, ax_alloc(&cx, st, LARGE, false));
			ax_unalloc(&cx, st, p[i], LARGE);
			moved++;
		}
	ok(back == 0, "of %d that are moved %d come to lie in such a span again", moved, back);
	ok(st->bytes < bytes - (uint64_t) moved * LARGE * 4, "their spans are empty: %llu bytes, then %llu",
	   (unsigned long long) bytes, (unsigned long long) st->bytes);
	while (ax_alloc(&cx, st, LARGE / 2, false))
		n++;
	ok(n > N, "%d small objects fill the area", n);
	ok(!ax_alloc(&cx, st, LARGE, false), "and what is free in those spans");
	ax_leave(&cx);
	ax_tree_close(&cx, t);
	ok(tap_quiesce(&cx), "quiescent");
	ax_detach(&cx);
	drop_area();
	free(p);
}

/* ---- page runs ---- */

static void
test_pages(void)
{
	ax_ctx		cx;
	enum
	{
		N = 20000
	};
	void	  **p = calloc(N, sizeof(void *));
	uint32_t   *len = calloc(N, sizeof(uint32_t));
	ax_memory_info m0,
				m;
	uint64_t	rng = 99;
	bool		good = true;
	uint64_t	t0;
	uint64_t	ops = 0;

	new_area((size_t) 1 << 30, 0);
	ax_attach(&cx, area, 0, 1, &port);
	ax_memory(&cx, &m0);
	for (int round = 0; round < 3; round++)
	{
		t0 = port.now_ns();
		ops = 0;
		for (uint64_t i = 0; i < tap_scaled(200000); i++)
		{
			int			k = (int) (tap_rand(&rng) % N);

			if (p[k])
			{
				uint32_t   *w = p[k];

				if (w[0] != (uint32_t) k || w[len[k] * 1024 - 1] != (uint32_t) k)
					good = false;
				ax_pages_give(&cx, p[k], len[k], AX_OVERHEAD, 0);
				p[k] = NULL;
			}
			else
			{
				uint32_t   *w;

				len[k] = tap_rand(&rng) % 8 ? 1 + (uint32_t) (tap_rand(&rng) % 16)
					: 1 + (uint32_t) (tap_rand(&rng) % 100);
				w = p[k] = ax_pages_take(&cx, len[k], AX_OVERHEAD, 0, false, NULL);
				if (w)
				{
					w[0] = w[len[k] * 1024 - 1] = (uint32_t) k;
					if (ax_pages_run(area, (char *) w + len[k] * 4096 - 1) != w)
						good = false;
				}
			}
			ops++;
		}
		t0 = port.now_ns() - t0;
		tap_diag("%d: %.0f ns an operation", round, (double) t0 / (double) ops);
		for (int i = 0; i < N; i++)
			if (p[i] && (round < 2 || i % 2))
			{
				ax_pages_give(&cx, p[i], len[i], AX_OVERHEAD, 0);
				p[i] = NULL;
			}
	}
	ok(good, "runs do not overlap, and any byte leads to its run");
	for (int i = 0; i < N; i++)
		if (p[i])
			ax_pages_give(&cx, p[i], len[i], AX_OVERHEAD, 0);
	ax_memory(&cx, &m);
	ok(same_memory(&m, &m0), "all coalesced into one");
	ok(m.largest_free_bytes == m.free_bytes, "the largest run is all there is");
	ok(!ax_pages_take(&cx, (uint32_t) (m.free_bytes / AX_PAGE) + 1, AX_OVERHEAD, 0, true, NULL),
	   "one page too many");
	p[0] = ax_pages_take(&cx, (uint32_t) (m.free_bytes / AX_PAGE), AX_OVERHEAD, 0, true, NULL);
	ok(p[0] != NULL, "all of it at once");
	if (p[0])
		ax_pages_give(&cx, p[0], (uint32_t) (m.free_bytes / AX_PAGE), AX_OVERHEAD, 0);
	ax_memory(&cx, &m);
	ok(same_memory(&m, &m0), "and back");
	ax_detach(&cx);
	drop_area();
	free(p);
	free(len);
}

/* ---- many at once ---- */

typedef struct crowd
{
	ax_tree    *shared;
	_Atomic uint64_t bad;
	_Atomic uint64_t nomem;
	_Atomic(void *) mailbox[256];
	uint64_t	rounds;
	bool		trees;			/* each opens and closes its own, too, */
	ax_group	group;			/* all of them in here */
	_Atomic uint64_t limit;
	_Atomic uint64_t refused;
} crowd;

static crowd *cw;

/*
 * Objects of the shared tree go from one to another through the mailbox: the
 * one who frees is not the one who allocated.  Word 0 is the size, the rest a
 * pattern of it.
 */
static void
churn(void *arg, int who)
{
	ax_ctx		cx;
	uint64_t	rng = (uint64_t) who * 104729 + 17;
	ax_tree    *own = NULL;
	uint64_t	own_gen = 0;
	ax_store   *st;
	obj			mine[20] = {{0}};

	ax_attach(&cx, area, who, 1000 + who, &port);
	for (uint64_t n = 0; n < cw->rounds; n++)
	{
		uint32_t	size = (uint32_t) (8 + tap_rand(&rng) % (n % 16 ? 1000 : 40000)) / 8 * 8;
		int			box = (int) (tap_rand(&rng) % 256);
		uint64_t   *p;

		if (ax_enter(&cx, cw->shared, atomic_load(&cw->shared->gen), &st) != AX_OK)
		{
			atomic_fetch_add(&cw->bad, 1);
			break;
		}
		p = ax_alloc(&cx, st, size, false);
		if (p)
		{
			for (uint32_t i = 0; i < size / 8; i++)
				p[i] = size;
			p = atomic_exchange(&cw->mailbox[box], p);
			if (p)
			{
				size = (uint32_t) p[0];
				for (uint32_t i = 0; i < size / 8; i++)
					if (p[i] != size)
					{
						atomic_fetch_add(&cw->bad, 1);
						break;
					}
				if (n % 2)
					ax_unalloc(&cx, st, p, size);
				else if (ax_retire_reserve(&cx, 1) == AX_OK)
					ax_retire(&cx, st, p, size);
				else
					ax_unalloc(&cx, st, p, size);
			}
		}
		else
			atomic_fetch_add(&cw->nomem, 1);
		ax_leave(&cx);
		if (ax_body(&cx)->retired_since >= 64 || !p)
			ax_reclaim(&cx);

		if (!cw->trees)
			continue;
		if (n % 200 == 0)
		{
			if (own)
			{
				ax_tree_close(&cx, own);
				ax_tree_release(&cx, own);
			}
			memset(mine, 0, sizeof(mine));
			own = ax_tree_alloc(&cx);
			if (own)
				ax_tree_set_groups(own, (ax_group *[AX_GROUPS]) {NULL, &cw->group, NULL});
			if (own && ax_tree_open(&cx, own, AX_ART_OLC, 0, 0, &own_gen) != AX_OK)
			{
				atomic_fetch_add(ax_nomem_group(&cx) ? &cw->refused : &cw->nomem, 1);
				ax_tree_release(&cx, own);
				own = NULL;
			}
		}
		if (own)
		{
			obj		   *o = &mine[n % 20];

			if (ax_enter(&cx, own, own_gen, &st) != AX_OK)
			{
				atomic_fetch_add(&cw->bad, 1);
				break;
			}
			if (o->p)
			{
				if (!check_obj(o))
					atomic_fetch_add(&cw->bad, 1);
				ax_unalloc(&cx, st, o->p, o->size);
				o->p = NULL;
			}
			if (!make_obj(&cx, st, o, 1 + (uint32_t) (tap_rand(&rng) % 3000), tap_rand(&rng), false))
				atomic_fetch_add(ax_nomem_group(&cx) ? &cw->refused : &cw->nomem, 1);
			ax_leave(&cx);
		}
	}
	if (own)
	{
		ax_tree_close(&cx, own);
		ax_tree_release(&cx, own);
	}
	ax_detach(&cx);
}

static void
run_churn(const char *name, int n, bool forked, bool trees, size_t size)
{
	ax_ctx		cx;
	ax_memory_info m0,
				m;
	ax_class_info ci[AX_CLASS_ROWS];
	uint64_t	gen;
	uint64_t	left = 0;
	ax_tree    *t[SLOTS];

	new_area(size, 1 << 20);
	ax_attach(&cx, area, SLOTS - 1, 1, &port);
	for (int i = 0; i < SLOTS; i++)
		t[i] = ax_tree_alloc(&cx);	/* all handles there will be */
	for (int i = 0; i < SLOTS; i++)
		ax_tree_release(&cx, t[i]);
	ax_memory(&cx, &m0);
	cw->shared = ax_tree_alloc(&cx);
	ax_tree_open(&cx, cw->shared, AX_ART_OLC, 0, 0, &gen);
	cw->trees = trees;
	memset(&cw->group, 0, sizeof(cw->group));
	cw->group.limit = &cw->limit;
	atomic_store(&cw->limit, size / 8);
	atomic_store(&cw->refused, 0);
	cw->rounds = tap_scaled(200000) / (uint64_t) n;
	for (int i = 0; i < 256; i++)
		atomic_store(&cw->mailbox[i], NULL);
	atomic_store(&cw->bad, 0);
	atomic_store(&cw->nomem, 0);
	if (forked)
		ok(tap_forks(n, churn, NULL), "%s: all ended well", name);
	else
		tap_threads(n, churn, NULL);
	ok(atomic_load(&cw->bad) == 0, "%s: every object kept its contents", name);
	tap_diag("%s: out of memory %llu times", name, (unsigned long long) atomic_load(&cw->nomem));
	ok(adds_up(&cx), "%s: the area adds up", name);
	if (!trees)
	{
		/* free what is left one by one: the classes must come out even */
		ax_store   *st;
		uint64_t	live = 0;

		tap_quiesce(&cx);
		ax_enter(&cx, cw->shared, gen, &st);
		for (int i = 0; i < 256; i++)
		{
			uint64_t   *p = atomic_exchange(&cw->mailbox[i], NULL);

			if (p)
				ax_unalloc(&cx, st, p, (uint32_t) p[0]);
		}
		ax_leave(&cx);
		ax_detach(&cx);			/* flushes the magazines */
		ax_attach(&cx, area, SLOTS - 1, 1, &port);
		ax_memory_classes(&cx, ci, AX_CLASS_ROWS);
		for (int i = 1; i < AX_CLASS_ROWS; i++)
			live += ci[i].live;
		ok(live == 0, "%s: no object is live (%llu)", name, (unsigned long long) live);
		ok(ci[0].size_class == 0 && ci[0].live == 1 && ci[0].bytes == AX_PAGE,
		   "%s: but for the store itself", name);
	}
	ax_tree_close(&cx, cw->shared);
	ax_tree_release(&cx, cw->shared);
	ok(tap_quiesce(&cx), "%s: quiescent", name);
	ax_detach(&cx);				/* with its spare chunk */
	ax_attach(&cx, area, SLOTS - 1, 1, &port);
	ax_memory(&cx, &m);
	ok(same_memory(&m, &m0), "%s: memory is exactly as before", name);
	ok(atomic_load(&cw->group.bytes) == 0, "%s: nothing is charged to the group", name);
	tap_diag("%s: refused by the group %llu times", name,
			 (unsigned long long) atomic_load(&cw->refused));
	ax_memory_classes(&cx, ci, AX_CLASS_ROWS);
	for (int i = 0; i < AX_CLASS_ROWS; i++)
		left += ci[i].live + ci[i].free + ci[i].spans + ci[i].bytes;
	ok(left == 0, "%s: no class owns anything", name);
	ax_detach(&cx);
	drop_area();
}

int
main(void)
{
	port = ax_port_default;
	port.discard = count_discard;
	cw = tap_shared(sizeof(*cw));
	test_classes();
	test_pages();
	test_random();
	test_small_trees();
	test_full();
	test_reap_on_need();
	test_cap();
	test_groups();
	test_refused();
	test_drained();
	run_churn("2 threads", 2, false, false, 64u << 20);
	run_churn("64 threads", 64, false, false, 64u << 20);
	run_churn("64 threads, own trees", 64, false, true, 64u << 20);
	run_churn("16 threads, tight", 16, false, true, 8u << 20);
#ifdef AX_ASAN
	ax_poisoning = false;		/* each process has its own shadow memory */
#endif
	run_churn("8 processes, own trees", 8, true, true, 64u << 20);
	run_churn("8 processes", 8, true, false, 64u << 20);
	return tap_done();
}
