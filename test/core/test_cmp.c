/*
 * test_cmp.c
 *	  Trees whose order only the caller knows: everything between two calls.
 *
 *	  test_cmp [operations [seed]]
 *
 * The caller here compares by memcmp, and by a reversed order that no byte
 * string of the tree has.  What is tested is that a place found on a path is
 * used only while the tree is what the path says: a page that was split, merged
 * away, given up and used again, at the same place on another level, must not be
 * taken for the one that was copied.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmpkit.h"
#include "core/base/ax_internal.h"
#include "core/compared/bc_page.h"
#include "tap.h"

/* ---- one thread ---- */

static void
test_alone(worker *w, uint32_t page_size, bool rev, bool longs, uint64_t n)
{
	uint8_t    *k = malloc(KEYBUF);
	uint64_t	bad = 0,
				left = 0;
	char		why[256] = "";
	uint8_t    *in = calloc(n, 1);
	ax_tree_info info;

	ck_reversed = rev;
	ck_open(w, page_size);
	ck_buffers(w);
	for (uint64_t i = 0; i < 3 * n; i++)
	{
		uint64_t	x = ck_rnd(w) % n;
		uint32_t	len = ck_key(k, x, longs);
		bool		put = ck_rnd(w) % 3 != 0;
		ax_status	s = put ? ck_insert(w, k, len) : ck_remove(w, k, len);

		if (s != (put ? (in[x] ? AX_EXISTS : AX_OK) : (in[x] ? AX_OK : AX_NOTFOUND)))
			bad++;
		in[x] = put;
	}
	for (uint64_t x = 0; x < n; x++)
	{
		uint32_t	len = ck_key(k, x, longs);

		left += in[x];
		if (ck_contains(w, k, len) != (in[x] ? AX_OK : AX_NOTFOUND))
			bad++;
	}
	ok(bad == 0, "pages of %u%s%s: %llu wrong answers", page_size, rev ? ", reversed" : "",
	   longs ? ", long keys" : "", (unsigned long long) bad);
	ok(ck_check(w, left, why, sizeof(why)), "sound (%s)", why);
	ok(ck_walk(w, false) == (long) left && ck_walk(w, true) == (long) left, "in order, both ways");
	for (uint64_t x = 0; x < n; x++)
		if (in[x] && (ck_remove(w, k, ck_key(k, x, longs)) != AX_OK))
			bad++;
	ok(bad == 0 && ck_check(w, 0, why, sizeof(why)), "emptied (%s)", why);
	(void) ax_info(&w->cx, ck_tree, ck_gen, &info);
	ok(info.leaves <= 2 && info.inner_nodes <= 2, "nearly all pages given up: %llu leaves, %llu above",
	   (unsigned long long) info.leaves, (unsigned long long) info.inner_nodes);
	free(in);
	free(k);
}

static int
qcmp(const void *a, const void *b)
{
	const uint8_t *const *x = a,
			   *const *y = b;

	/* no key here is another's prefix */
	return memcmp(*x, *y, 8);
}

static void
test_load(worker *w, uint32_t page_size, int fill, uint64_t n)
{
	uint8_t   **keys = malloc(n * sizeof(*keys));
	uint32_t   *lens = malloc(n * sizeof(*lens));
	uint8_t    *k = malloc(KEYBUF);
	char		why[256] = "";
	uint64_t	bad = 0;

	ck_reversed = false;
	ck_open(w, page_size);
	ck_buffers(w);
	for (uint64_t i = 0; i < n; i++)
	{
		uint32_t	len = ck_key(k, i, true);

		keys[i] = malloc(len + 4);
		memcpy(keys[i], k, len);
		memcpy(keys[i] + len, &len, 4);
	}
	qsort(keys, n, sizeof(*keys), qcmp);
	for (uint64_t i = 0; i < n; i++)
	{
		uint64_t	be;

		memcpy(&be, keys[i], 8);
		/* the inverse of the multiplier gives the number back */
		lens[i] = ck_key(k, __builtin_bswap64(be) * 0xF1DE83E19937733Du, true);
	}
	ok(ax_load(&w->cx, ck_tree, ck_gen,
			&(ax_keys) {(const uint8_t *const *) keys, lens, 0, n}, fill) == AX_OK &&
	   ck_check(w, n, why, sizeof(why)), "load into pages of %u, %d %% full (%s)", page_size, fill, why);
	ok(ck_walk(w, false) == (long) n && ck_walk(w, true) == (long) n, "in order, both ways");
	for (uint64_t i = 0; i < n; i++)
		if (ck_contains(w, keys[i], lens[i]) != AX_OK)
			bad++;
	ok(bad == 0, "every key found");
	ok(ax_load(&w->cx, ck_tree, ck_gen,
			&(ax_keys) {(const uint8_t *const *) keys, lens, 0, n}, fill) == AX_EXISTS,
	   "not into what is not empty");
	for (uint64_t i = 0; i < n; i++)
		free(keys[i]);
	free(keys);
	free(lens);
	free(k);
}

/* ---- memory runs out ---- */

/* At the n-th allocation of a compaction: what is not moved stays where it is. */
static void
test_compact_oom(worker *w, uint32_t page_size)
{
	uint8_t    *k = malloc(KEYBUF);
	void	   *work = malloc(AX_COMPACT_WORK);
	uint64_t	failed = 0,
				bad = 0;
	bool		reached = true;
	char		why[256] = "";

	for (uint64_t n = 1; reached; n += n / 4 + 1)
	{
		ax_compaction c = {.work = work};
		uint64_t	there = 0;

		ck_open(w, page_size);
		ck_buffers(w);
		for (uint64_t x = 0; x < 800; x++)
			bad += ck_insert(w, k, ck_key(k, x, true)) != AX_OK;
		for (uint64_t x = 0; x < 800; x++)
			if (x % 5)
				bad += ck_remove(w, k, ck_key(k, x, true)) != AX_OK;
			else
				there++;
		(void) tap_quiesce(&w->cx);
		ax_body(&w->cx)->fail_alloc_at = n;
		for (int calls = 0; calls < 100000 && !c.done; calls++)
		{
			ax_status	x = ax_compact(&w->cx, ck_tree, ck_gen, &c);

			bad += x != AX_OK && x != AX_BUSY;
		}
		reached = ax_body(&w->cx)->fail_alloc_at == 0;
		ax_body(&w->cx)->fail_alloc_at = 0;
		failed += reached;
		bad += !c.done || !ck_check(w, there, why, sizeof(why)) || ck_walk(w, false) != (long) there;
		for (uint64_t x = 0; x < 800; x += 5)
			bad += ck_contains(w, k, ck_key(k, x, true)) != AX_OK;
	}
	ok(failed > 3 && bad == 0, "compaction without memory, %llu times: %llu wrong (%s)", (unsigned long long) failed,
	   (unsigned long long) bad, why);
	free(work);
	free(k);
}

/* At the n-th allocation of an insert or a load, whichever that is. */
static void
test_oom(worker *w, uint32_t page_size)
{
	uint8_t    *k = malloc(KEYBUF);
	uint64_t	there = 0,
				refused = 0,
				bad = 0;
	char		why[256] = "";
	const uint8_t *keys[200];
	uint32_t	lens[200];
	uint64_t	loads = 0;

	ck_reversed = false;
	ck_open(w, page_size);
	ck_buffers(w);
	for (uint64_t x = 0; x < 3000; x++)
	{
		uint32_t	len = ck_key(k, x, true);
		ax_status	s;

		ax_body(&w->cx)->fail_alloc_at = 1 + x % 4;
		s = ck_insert(w, k, len);
		ax_body(&w->cx)->fail_alloc_at = 0;
		if (s == AX_NOMEM)
		{
			refused++;
			if (ck_contains(w, k, len) != AX_NOTFOUND || (x % 2 && ck_insert(w, k, len) != AX_OK))
				bad++;
			there += x % 2;
		}
		else if (s == AX_OK)
			there++;
		else
			bad++;
	}
	ok(refused > 50 && bad == 0 && ck_check(w, there, why, sizeof(why)),
	   "inserts without memory, pages of %u: %llu refused, %llu wrong (%s)", page_size,
	   (unsigned long long) refused, (unsigned long long) bad, why);

	for (int i = 0; i < 200; i++)
	{
		uint8_t    *key;

		lens[i] = ck_key(k, 61 * (uint64_t) i, true);
		key = malloc(lens[i]);
		memcpy(key, k, lens[i]);
		keys[i] = key;
	}
	qsort(keys, 200, sizeof(*keys), qcmp);
	for (int i = 0; i < 200; i++)
	{
		uint64_t	be;

		memcpy(&be, keys[i], 8);
		lens[i] = ck_key(k, __builtin_bswap64(be) * 0xF1DE83E19937733Du, true);
	}
	ck_open(w, page_size);
	ck_buffers(w);
	for (uint64_t n = 1;; n++)
	{
		ax_status	s;

		ax_body(&w->cx)->fail_alloc_at = n;
		s = ax_load(&w->cx, ck_tree, ck_gen, &(ax_keys) {keys, lens, 0, 200}, 100);
		ax_body(&w->cx)->fail_alloc_at = 0;
		if (s == AX_OK)
			break;
		loads++;
		if (s != AX_NOMEM || !ck_check(w, 0, why, sizeof(why)))
			bad++;
	}
	ok(loads > 50 && bad == 0 && ck_check(w, 200, why, sizeof(why)) && ck_walk(w, false) == 200,
	   "loads without memory: %llu refused (%s)", (unsigned long long) loads, why);
	for (int i = 0; i < 200; i++)
		free((void *) (uintptr_t) keys[i]);
	test_compact_oom(w, page_size);
	free(k);
}

/* ---- another life ---- */

/*
 * One process finds its place, and goes away to compare.  Meanwhile the leaf is
 * merged away, and the page is a leaf of other keys, with as many changes behind
 * it as it had.  The place must not be taken for the old one, whatever the page
 * is now.
 */
static void
test_another_life(worker *a, worker *b, int changes)
{
	uint8_t		k[64];
	uint32_t	len;
	uint32_t	at;
	uint64_t	x;
	void	   *page;
	uint64_t	version;
	bool		back = false;
	int			met = 0,
				wrong = 0;
	char		why[256] = "";

	ck_reversed = false;
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	for (int round = 0; round < 200; round++)
	{
		uint64_t	base = (uint64_t) round * 100000;

		/* a few leaves */
		for (x = 0; x < 100; x++)
		{
			len = ck_key(k, base + x, false);
			(void) ck_insert(b, k, len);
		}
		/* its place: where a key goes that is not there */
		len = ck_key(k, base + 50000 + (uint64_t) round, false);
		if (ck_find(a, k, len, &at) != AX_NOTFOUND || a->p.n < 2)
			abort();
		page = a->p.f[a->p.n - 1].page;
		version = a->p.f[a->p.n - 1].version;

		/* all goes, page by page, and comes back elsewhere */
		for (x = 0; x < 100; x++)
			(void) ck_remove(b, k, ck_key(k, base + x, false));
		(void) tap_quiesce(&b->cx);
		back = false;
		for (x = 0; x < 3000 && !back; x++)
		{
			uint32_t	l = ck_key(k, base + 20000 + x, false);
			uint32_t	where;

			(void) ck_insert(b, k, l);
			(void) ck_find(b, k, l, &where);
			for (int i = 0; i < b->p.n; i++)
				if (b->p.f[i].page == page && b->p.f[i].version != version)
					back = true;
		}
		for (int i = 0; back && i < changes; i++)
		{
			uint32_t	l = ck_key(k, base + 40000 + (uint64_t) i, false);

			(void) ck_insert(b, k, l);
		}
		met += back;
		len = ck_key(k, base + 50000 + (uint64_t) round, false);
		switch (ax_cmp_insert(&a->cx, ck_tree, ck_gen, &a->p, at, k, len))
		{
			case AX_CHANGED:
				break;
			case AX_OK:
				/* only right where nothing has changed */
				if (back)
					wrong++;
				break;
			default:
				wrong++;
		}
		(void) ck_insert(a, k, len);
		if (ck_contains(b, k, len) != AX_OK || ck_remove(b, k, len) != AX_OK ||
			ck_contains(a, k, len) != AX_NOTFOUND)
			wrong++;
		while (x-- > 0)
			(void) ck_remove(b, k, ck_key(k, base + 20000 + x, false));
		for (int i = 0; i < changes; i++)
			(void) ck_remove(b, k, ck_key(k, base + 40000 + (uint64_t) i, false));
	}
	ok(met > 20, "a page came back in another life: %d times of 200", met);
	ok(wrong == 0, "and was never taken for the old one: %d times", wrong);
	{
		ax_tree_info info;

		(void) ax_info(&a->cx, ck_tree, ck_gen, &info);
		ok(ck_check(a, info.entries, why, sizeof(why)), "sound (%s)", why);
		ok(ck_walk(a, false) == (long) info.entries, "in order");
	}
}

/* ---- memory that is another object's ---- */

/* To the last leaf; its page. */
static void *
last_leaf(worker *w)
{
	ax_status	x;

	do
	{
		x = ax_cmp_root(&w->cx, ck_tree, ck_gen, &w->p);
		while (x == AX_OK && !ax_cmp_is_leaf(&w->p.f[w->p.n - 1]))
			x = ax_cmp_down(&w->cx, ck_tree, ck_gen, &w->p, ax_cmp_count(&w->p.f[w->p.n - 1]) - 1);
	} while (x != AX_OK);
	return w->p.f[w->p.n - 1].page;
}

/*
 * One process stands at the last leaf, or at the page above and has chosen that leaf.
 * Meanwhile it is merged away, and another object has its memory.  Where the latch was
 * stands the old version, or what looks like a latch that is closed.  The memory is
 * neither waited for nor written.
 */
static void
test_other_object(worker *a, worker *b, bool at_leaf)
{
	uint8_t		k[40] = {11};
	uint32_t	at,
				last,
				size = 256;
	void	   *object[64];
	uint8_t		before[256];
	void	   *page;
	uint64_t	version;
	ax_store   *s;
	ax_status	x;
	int			n = 0;

	ck_reversed = false;
	ck_open(a, size);
	ck_buffers(a);
	ck_buffers(b);
	for (uint8_t i = 0; i < 12; i++)
		(void) ck_insert(b, (uint8_t[40]) {i}, sizeof(k));
	page = last_leaf(a);
	version = a->p.f[a->p.n - 1].version;
	last = a->p.f[0].i;
	if (a->p.n != 2 || last == 0 || ck_find(a, k, sizeof(k), &at) != AX_OK || a->p.f[1].page != page ||
		(!at_leaf && ax_cmp_root(&a->cx, ck_tree, ck_gen, &a->p) != AX_OK))
		abort();
	for (; last_leaf(b) == page; k[0]--)
		(void) ck_remove(b, k, sizeof(k));
	(void) tap_quiesce(&b->cx);

	if (ax_enter(&b->cx, ck_tree, ck_gen, &s) != AX_OK)
		abort();
	while ((object[n] = ax_alloc(&b->cx, s, size, false)) != page)
		if (++n == 64)
			abort();
	memset(page, 0x77, size);
	atomic_store((ax_word *) page, at_leaf ? version : version | AX_CLOSED);
	memcpy(before, page, size);
	x = at_leaf ? ax_cmp_insert(&a->cx, ck_tree, ck_gen, &a->p, at, (uint8_t[40]) {99}, sizeof(k)) :
		ax_cmp_down(&a->cx, ck_tree, ck_gen, &a->p, last);
	ok(x == AX_CHANGED && memcmp(before, page, size) == 0,
	   "a page whose memory is another object's, %s, is left alone: status %d",
	   at_leaf ? "where it stood" : "which it had chosen", (int) x);
	for (; n >= 0; n--)
		ax_unalloc(&b->cx, s, object[n], size);
	ax_leave(&b->cx);
}

/* The version itself: a fresh leaf, given up, used again, untouched since. */
static void
test_version(worker *a, worker *b)
{
	uint8_t		k[64];
	uint32_t	len,
				at;
	void	   *pages[64];
	uint64_t	versions[64];
	int			n = 0,
				same = 0,
				again = 0;

	ck_reversed = false;
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	for (int round = 0; round < 2000; round++)
	{
		for (uint64_t x = 0; x < 40; x++)
		{
			len = ck_key(k, (uint64_t) round * 64 + x, false);
			(void) ck_insert(b, k, len);
			(void) ck_find(b, k, len, &at);
			for (int i = 0; i < b->p.n; i++)
			{
				int			j;

				for (j = 0; j < n && pages[j] != b->p.f[i].page; j++)
					;
				if (j == n && n < 64)
				{
					pages[n] = b->p.f[i].page;
					versions[n++] = 0;
				}
				else if (j == n)
					continue;
				again++;
				if ((b->p.f[i].version & AX_VERSION_MASK) < versions[j])
					same++;
				versions[j] = b->p.f[i].version & AX_VERSION_MASK;
			}
		}
		for (uint64_t x = 0; x < 40; x++)
			(void) ck_remove(b, k, ck_key(k, (uint64_t) round * 64 + x, false));
	}
	ok(same == 0, "the version of a page never goes back: %d of %d looks at %d pages", same, again, n);
}

/* A long key of a page that was copied, and its memory used again. */
static void
test_long(worker *a, worker *b)
{
	uint8_t    *k = malloc(KEYBUF);
	ax_clong	got = {.buf = a->buf, .size = KEYBUF},
				few = {.buf = a->buf, .size = 100};
	uint32_t	len,
				at;
	int			wrong_long = 0;

	ck_reversed = false;
	ck_open(a, 1024);
	ck_buffers(a);
	ck_buffers(b);
	for (uint64_t r = 0; r < 50; r++)
	{
		ax_status	x;

		len = ck_key(k, 61 * r, true);
		(void) ck_insert(b, k, len);
		if (ck_find(a, k, len, &at) != AX_OK)
			abort();
		x = ax_cmp_long(&a->cx, ck_tree, ck_gen, &a->p, a->p.n - 1, at, &got);
		if (x != AX_OK || got.len != len || memcmp(a->buf, k, len) != 0 ||
			ax_cmp_long(&a->cx, ck_tree, ck_gen, &a->p, a->p.n - 1, at, &few) != AX_BUFFER || few.len != len)
			wrong_long++;
		(void) ck_remove(b, k, len);
		(void) tap_quiesce(&b->cx);
		len = ck_key(k, 61 * (r + 7), true);
		(void) ck_insert(b, k, len);
		if (ax_cmp_long(&a->cx, ck_tree, ck_gen, &a->p, a->p.n - 1, at, &got) != AX_CHANGED)
			wrong_long++;
		(void) ck_remove(b, k, len);
	}
	ok(wrong_long == 0, "a long key is read while its page is what it was, else not: %d wrong", wrong_long);
	free(k);
}

/* A path of a generation that is gone. */
static void
test_gone(worker *a, worker *b)
{
	uint8_t		k[64];
	uint32_t	len = ck_key(k, 1, false),
				at;
	uint64_t	old;
	uint32_t	size;

	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	for (uint64_t x = 2; x < 500; x++)
	{
		uint8_t		o[64];

		(void) ck_insert(b, o, ck_key(o, x, false));
	}
	(void) ck_find(a, k, len, &at);
	old = ck_gen;
	ck_open(b, 256);
	for (int i = 0; i < 50; i++)
		(void) ax_poll(&b->cx);
	ok(ax_cmp_insert(&a->cx, ck_tree, old, &a->p, at, k, len) == AX_STALE &&
	   ax_cmp_remove(&a->cx, ck_tree, old, &a->p, 0) == AX_STALE &&
	   ax_cmp_beside(&a->cx, ck_tree, old, &a->p, false) == AX_STALE &&
	   ax_cmp_down(&a->cx, ck_tree, old, &a->p, 0) == AX_STALE &&
	   ax_cmp_size(&a->cx, ck_tree, old, &size) == AX_STALE, "a path into a dropped tree is stale");
}

/* ---- pause points: within a call ---- */

static const char *const points[] = {
	"bc.root_read", "bc.child_read", "bc.page_version", "bc.page_half", "bc.page_copied",
	"bc.leaf.before_lock", "bc.split.before_lock", "bc.remove.before_lock",
	"bc.merge.before_lock", "bc.root.before_lock"
};
#define NPOINTS ((int) (sizeof(points) / sizeof(points[0])))

static _Thread_local bool is_victim;
static atomic_int target = -1,
			countdown;
static sem_t parked,
			resume_it;
static atomic_bool is_parked;
static uint64_t met[NPOINTS];
static worker *victim_worker;

static void
hook(const char *name)
{
	int			t = atomic_load(&target);

	if (!is_victim || t < 0 || strcmp(name, points[t]) != 0 ||
		ax_latches_held(&victim_worker->cx) > 0)
		return;
	if (atomic_fetch_sub(&countdown, 1) != 1)
		return;
	atomic_store(&target, -1);
	met[t]++;
	atomic_store(&is_parked, true);
	sem_post(&parked);
	while (sem_wait(&resume_it))
		;
}

static struct
{
	int			what;			/* insert, remove, contains, walk */
	uint64_t	key,
				end;
	ax_status	expect;
	long		wrong;
	atomic_bool quit;
	sem_t		go;
}			v;

/*
 * The victim's keys are every eighth; it inserts or removes a stretch of them,
 * or looks for them.  The others' lie between.
 */
static void *
victim(void *arg)
{
	worker	   *w = arg;
	uint8_t		k[64];

	is_victim = true;
	victim_worker = w;
	for (;;)
	{
		while (sem_wait(&v.go))
			;
		if (atomic_load(&v.quit))
			break;
		for (uint64_t x = v.key; x < v.end; x += 8)
		{
			uint32_t	len = ck_key(k, x, false);
			ax_status	s = v.what == 0 ? ck_insert(w, k, len) :
				v.what == 1 ? ck_remove(w, k, len) : ck_contains(w, k, len);

			if (s != v.expect)
				v.wrong++;
		}
		atomic_store(&target, -1);
		atomic_store(&is_parked, false);
		sem_post(&parked);
	}
	return NULL;
}

static void
test_points(worker *a, worker *b, int rounds)
{
	pthread_t	th;
	uint8_t		k[64];
	long		others = 0;
	char		why[256] = "";
	ax_tree_info info;

	ck_reversed = false;
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	sem_init(&v.go, 0, 0);
	sem_init(&parked, 0, 0);
	sem_init(&resume_it, 0, 0);
	tap_point_hook = hook;
	pthread_create(&th, NULL, victim, a);
	for (int r = 0; r < rounds; r++)
	{
		int			t = r % NPOINTS;
		uint64_t	base = 0;
		bool		put = ck_rnd(b) % 2;

		/* something there, or nothing: pages that are about to be cut or merged */
		for (uint64_t x = base; x < base + 400; x++)
			if (x % 8 != 0)
				(void) (put ? ck_remove(b, k, ck_key(k, x, false)) : ck_insert(b, k, ck_key(k, x, false)));
		v.what = (int) (ck_rnd(b) % 3);
		v.key = base;
		v.end = base + 400;
		v.expect = v.what == 0 || v.what == 1 ? AX_OK : ck_rnd(b) % 2 ? AX_OK : AX_NOTFOUND;
		for (uint64_t x = base; x < base + 400; x += 8)
			(void) (v.what == 0 || v.expect == AX_NOTFOUND ?
					ck_remove(b, k, ck_key(k, x, false)) : ck_insert(b, k, ck_key(k, x, false)));
		/* those at which something is cut or merged are rarely come by */
		atomic_store(&countdown, 1 + (int) (ck_rnd(b) % (t < 6 ? 60 : 3)));
		atomic_store(&target, t);
		sem_post(&v.go);
		while (sem_wait(&parked))
			;
		if (atomic_load(&is_parked))
		{
			for (uint64_t i = 0; i < 400; i++)
			{
				uint64_t	x = base + i;

				if (x % 8 == 0)
					continue;
				if (put ? ck_insert(b, k, ck_key(k, x, false)) != AX_OK :
					ck_remove(b, k, ck_key(k, x, false)) != AX_OK)
					others++;
				if (i % 3 == 0 && ck_rnd(b) % 2)
					(void) (put ? ck_remove(b, k, ck_key(k, x, false)) : ck_insert(b, k, ck_key(k, x, false)));
			}
			sem_post(&resume_it);
			while (sem_wait(&parked))
				;
		}
	}
	atomic_store(&v.quit, true);
	sem_post(&v.go);
	pthread_join(th, NULL);
	tap_point_hook = NULL;
	ok(v.wrong == 0 && others == 0, "stopped %d times: %ld wrong answers, %ld of the others", rounds, v.wrong, others);
	for (int i = 0; i < NPOINTS; i++)
		ok(met[i] > 0, "met %s %llu times", points[i], (unsigned long long) met[i]);
	(void) ax_info(&a->cx, ck_tree, ck_gen, &info);
	ok(ck_check(a, info.entries, why, sizeof(why)), "sound (%s)", why);
	ok(ck_walk(a, false) == (long) info.entries && ck_walk(a, true) == (long) info.entries, "in order, both ways");
}

/* ---- many ---- */

static atomic_bool stop;
static atomic_long wrong;

/* Each has the keys of its own residue, and knows which of them are there. */
static void *
busy(void *arg)
{
	worker	   *w = arg;
	uint8_t    *k = malloc(KEYBUF);
	static const uint64_t span = 4000;
	uint8_t    *in = calloc(span, 1);
	uint64_t	ops = 0;

	while (!atomic_load(&stop))
	{
		uint64_t	i = ops % 3000 < 1500 ? ops * 7 % span : ck_rnd(w) % span;
		uint64_t	x = i * SLOTS + (uint64_t) w->id;
		uint32_t	len = ck_key(k, x, true);
		bool		put = ops / 20000 % 2 ? ck_rnd(w) % 4 == 0 : ck_rnd(w) % 4 != 0;
		ax_status	s;

		switch (ck_rnd(w) % 4)
		{
			case 0:
				if (ck_contains(w, k, len) != (in[i] ? AX_OK : AX_NOTFOUND))
					atomic_fetch_add(&wrong, 1);
				break;
			default:
				s = put ? ck_insert(w, k, len) : ck_remove(w, k, len);
				if (s != (put ? (in[i] ? AX_EXISTS : AX_OK) : (in[i] ? AX_OK : AX_NOTFOUND)))
					atomic_fetch_add(&wrong, 1);
				in[i] = put;
		}
		if (ops % 2000 == 1999 && ck_walk(w, ops % 4000 == 1999) < 0)
			atomic_fetch_add(&wrong, 1);
		ops++;
	}
	free(in);
	free(k);
	return (void *) (uintptr_t) ops;
}

static void
test_many(worker *w, uint32_t page_size, int n, int ms)
{
	pthread_t	th[SLOTS];
	worker	   *ws = calloc((size_t) n, sizeof(worker));
	uint64_t	ops = 0,
				restarts = 0;
	char		why[256] = "";
	ax_tree_info info;
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};

	ck_reversed = true;
	ck_open(w, page_size);
	ck_buffers(w);
	atomic_store(&stop, false);
	atomic_store(&wrong, 0);
	for (int i = 0; i < n; i++)
	{
		ck_attach(&ws[i], 2 + i);
		ws[i].yields = true;
		ck_buffers(&ws[i]);
		pthread_create(&th[i], NULL, busy, &ws[i]);
	}
	/* the verification beside them */
	for (struct timespec left = ts; left.tv_sec > 0 || left.tv_nsec > 0;)
	{
		struct timespec some = {0, 50000000};
		bool		good = true;

		(void) nanosleep(&some, NULL);
		if (tap_check(&w->cx, ck_tree, ck_gen, &info, &good, why, sizeof(why)) == AX_OK && !good)
			atomic_fetch_add(&wrong, 1);
		left.tv_nsec -= 50000000;
		if (left.tv_nsec < 0 && left.tv_sec > 0)
		{
			left.tv_sec--;
			left.tv_nsec += 1000000000;
		}
		else if (left.tv_nsec < 0)
			left.tv_nsec = 0;
	}
	atomic_store(&stop, true);
	for (int i = 0; i < n; i++)
	{
		void	   *r;

		pthread_join(th[i], &r);
		ops += (uint64_t) (uintptr_t) r;
		restarts += ws[i].restarts;
		ck_detach(&ws[i]);
	}
	free(ws);
	ok(atomic_load(&wrong) == 0, "%d threads, pages of %u: %ld wrong of %llu operations, %llu restarts (%s)", n,
	   page_size, atomic_load(&wrong), (unsigned long long) ops, (unsigned long long) restarts, why);
	(void) ax_info(&w->cx, ck_tree, ck_gen, &info);
	ok(ck_check(w, info.entries, why, sizeof(why)), "sound (%s)", why);
	ok(ck_walk(w, false) == (long) info.entries && ck_walk(w, true) == (long) info.entries, "in order, both ways");
}

/* ---- turns ---- */

static uint64_t beside_in;		/* how often it changed something */

/* One try to insert a key in the same leaf, or to remove it. */
static void
beside_insert(worker *w)
{
	static const uint8_t k[16] = {0xFF};
	uint32_t	at;
	ax_status	x = ck_find(w, k, sizeof(k), &at);

	if (x == AX_NOTFOUND)
		x = ax_cmp_insert(&w->cx, ck_tree, ck_gen, &w->p, at, k, sizeof(k));
	else if (x == AX_OK)
		x = ax_cmp_remove(&w->cx, ck_tree, ck_gen, &w->p, at);
	if (x == AX_OK)
		beside_in++;
}

/* So many tries to insert, with others beside; how many it took, 0: not done. */
static int
slow_insert(worker *w, const uint8_t *key, uint32_t len, int most, int announce_after)
{
	for (int i = 1; i <= most; i++)
	{
		uint32_t	at;
		ax_status	x = ck_find(w, key, len, &at);

		if (x == AX_NOTFOUND)
			x = ax_cmp_insert(&w->cx, ck_tree, ck_gen, &w->p, at, key, len);
		if (x == AX_OK)
			return i;
		if (i >= announce_after)
			ax_cmp_turn(&w->cx, ck_tree, ck_gen, 2000000);
	}
	return 0;
}

static uint64_t
now_ms(void)
{
	return ax_port_default.now_ns() / 1000000;
}

static void
test_turn(worker *a, worker *b)
{
	uint8_t		k[16] = {0x80};
	uint64_t	was,
				began;
	uint32_t	at;
	int			tries;

	ck_reversed = false;
	ck_open(a, 1024);
	ck_buffers(a);
	ck_buffers(b);
	beside_in = 0;
	k[1] = 2;
	(void) slow_insert(a, k, sizeof(k), 1, 100);	/* something to compare with */
	k[1] = 0;
	a->beside = beside_insert;
	a->other = b;
	ok(slow_insert(a, k, sizeof(k), 40, 100) == 0, "who compares slowly loses its place again and again");
	tries = slow_insert(a, k, sizeof(k), 40, 6);
	ok(tries == 7, "until it is its turn: done at try %d", tries);
	a->beside = NULL;
	was = beside_in;
	began = now_ms();
	beside_insert(b);
	ok(beside_in == was + 1 && now_ms() - began < 1000, "upon which the others go on");

	/* announced and not made use of: by its time, or by being given back */
	ax_cmp_turn(&a->cx, ck_tree, ck_gen, 300000);
	ax_cmp_turn(&b->cx, ck_tree, ck_gen, 3000000);	/* does not disturb it */
	was = beside_in;
	beside_insert(b);
	ok(beside_in == was, "others keep out of a turn");
	k[1] = 1;
	ok(slow_insert(a, k, sizeof(k), 1, 100) == 1, "whose it is does not");
	ax_cmp_turn(&a->cx, ck_tree, ck_gen, 3000000);
	ok(ck_find(a, k, sizeof(k), &at) == AX_OK &&
	   ax_cmp_remove(&a->cx, ck_tree, ck_gen, &a->p, at) == AX_OK, "nor does he with a removal");
	was = beside_in;
	beside_insert(b);
	ok(beside_in == was + 1, "upon which the others go on, too");
	ax_cmp_turn(&a->cx, ck_tree, ck_gen, 300000);
	began = now_ms();
	for (was = beside_in; beside_in == was && now_ms() - began < 20000;)
		beside_insert(b);
	ok(now_ms() - began < 10000, "it ends by itself");
	ax_cmp_turn(&a->cx, ck_tree, ck_gen, 100000000);
	ax_cmp_turn(&a->cx, ck_tree, ck_gen, 0);
	was = beside_in;
	beside_insert(b);
	ok(beside_in == was + 1, "or is given back");
}

/* Long keys that rise leave full pages behind, on all levels. */
static void
test_rising(worker *w)
{
	const unsigned n = 20000;
	uint8_t		k[60];
	char		why[256] = "";
	ax_tree_info info;
	unsigned	bad = 0;

	ck_reversed = false;
	ck_open(w, 256);
	ck_buffers(w);
	memset(k, 'f', sizeof(k));
	for (unsigned i = 0; i < n; i++)
	{
		k[0] = (uint8_t) (i >> 16);
		k[1] = (uint8_t) (i >> 8);
		k[2] = (uint8_t) i;
		bad += ck_insert(w, k, sizeof(k)) != AX_OK;
	}
	(void) ax_info(&w->cx, ck_tree, ck_gen, &info);
	ok(bad == 0 && info.inner_nodes * 2 < info.leaves + 100,
	   "long keys rise: %llu pages above %llu leaves, height %d", (unsigned long long) info.inner_nodes,
	   (unsigned long long) info.leaves, info.height);
	ok(ck_check(w, n, why, sizeof(why)), "sound (%s)", why);
}

/* ---- what is broken is found ---- */

static uint8_t was[BC_MAX];

/* The page was changed, after a copy: does the check say so?  Then it is put back. */
static void
found(worker *w, bc_page *p, uint64_t entries, const char *like)
{
	char		why[256] = "";
	bool		sound = ck_check(w, entries, why, sizeof(why));

	ok(!sound && strstr(why, like), "%s: \"%s\"", like, why);
	memcpy(p->image, was, bc_size(atomic_load(&ck_tree->store)));
	if (!ck_check(w, entries, why, sizeof(why)))
		ok(false, "put back: %s", why);
}

#define DAMAGE(like, ...) \
	do { \
		memcpy(was, p->image, size); \
		__VA_ARGS__; \
		found(w, p, n, like); \
	} while (0)

/* The child in the middle of an inner page. */
static bc_page *
below(bc_page *p)
{
	bc_entry	e;

	bc_get(p->image, bc_img(p->image)->n / 2u, &e);
	return e.child;
}

static void
test_damage(worker *w)
{
	const uint64_t n = 3000;
	uint8_t		k[60];
	ax_store   *s;
	bc_page    *p;
	ax_image   *m;
	uint32_t	size;
	uint64_t	bad = 0;

	ck_reversed = false;
	ck_open(w, 256);
	ck_buffers(w);
	/* columns of one byte, or of 40, so that a heap has room and a page has none */
	for (uint64_t i = 0; i < n; i++)
	{
		uint32_t	len = i % 2 ? 46 : 9;

		memset(k, 'd', sizeof(k));
		k[0] = (uint8_t) (i >> 8);
		k[1] = (uint8_t) i;
		memset(k + len - AX_TID_BYTES, 0, AX_TID_BYTES);
		bad += ck_insert(w, k, len) != AX_OK;
	}
	ok(bad == 0 && ck_check(w, n, (char *) k, sizeof(k)), "%llu keys to be damaged", (unsigned long long) n);
	s = atomic_load(&ck_tree->store);
	size = bc_size(s);

	/* an inner page that is not the root, and a leaf */
	p = below((bc_page *) (uintptr_t) atomic_load(&s->root));
	m = bc_img(p->image);
	if (m->level == 0 || m->n < 3)
		abort();
	DAMAGE("a wrong level", m->level++);
	DAMAGE("no child", m->n = 0);
	DAMAGE("a missing child", memset(p->image + (m->slot[1] & 0xFFFF) - 8, 0, 8));
	DAMAGE("a key before the first child", m->slot[0] = m->slot[1]);
	DAMAGE("a key without a TID", m->slot[1] = (m->slot[1] & 0xFFFF) | 3u << 16);
	DAMAGE("a key outside of the heap", m->slot[1] = m->heap | m->slot[1] >> 16 << 16);
	while (m->level > 0)
	{
		p = below(p);
		m = bc_img(p->image);
	}
	DAMAGE("a wrong level", m->level = 7);
	DAMAGE("impossible layout", m->heap = (uint16_t) (size + 1));
	DAMAGE("impossible layout", m->n = (uint16_t) (size / 4));
	DAMAGE("a key outside of the heap", m->slot[0] = (size - 1) | m->slot[0] >> 16 << 16);
	DAMAGE("a key outside of the heap", m->slot[0] = (m->heap - 1u) | m->slot[0] >> 16 << 16);
	DAMAGE("a key without a TID", m->slot[0] = (m->slot[0] & 0xFFFF) | 5u << 16);
	DAMAGE("a key too long to be in place", m->slot[0] = m->heap | (bc_max_inline(s) + 1) << 16);
	DAMAGE("a heap that does not add up", m->slot[0] -= 1u << 16);
}

int
main(int argc, char **argv)
{
	static worker a,
				b;
	uint64_t	n = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t) tap_scaled(6000);

	ck_area = tap_area(CK_AREA, SLOTS + 2, CK_AREA / 64);
	ck_attach(&a, 0);
	ck_attach(&b, 1);
	if (!tap_races_only())
	{
		test_alone(&a, 256, false, false, n);
		test_alone(&a, 256, true, true, n / 4);
		test_alone(&a, 1024, true, false, n);
		test_alone(&a, 16384, false, true, n);
		test_rising(&a);
		test_damage(&a);
		test_load(&a, 256, 100, n);
		test_load(&a, 1024, 70, n);
		test_oom(&a, 256);
		test_oom(&a, 1024);
	}
	test_another_life(&a, &b, 0);
	test_another_life(&a, &b, 3);
	test_other_object(&a, &b, true);
	test_other_object(&a, &b, false);
	test_version(&a, &b);
	test_long(&a, &b);
	test_gone(&a, &b);
	test_turn(&a, &b);
	/* fewer rounds would not meet every point */
	test_points(&a, &b, n / 2 < 400 ? 400 : (int) (n / 2));
	test_many(&a, 256, 4, (int) tap_scaled(1500));
	test_many(&a, 1024, 6, (int) tap_scaled(1500));
	ck_detach(&a);
	ck_detach(&b);
	return tap_done();
}
