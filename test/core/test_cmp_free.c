/*
 * test_cmp_free.c
 *	  Trees whose order only the caller knows give back what removals leave: to a
 *	  compaction, to other trees, and beside paths that remember pages which are gone.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmpkit.h"
#include "core/base/ax_internal.h"
#include "tap.h"

#define SLACK	(288 * 1024)	/* a span of each class */
#define THREADS 8

static void *work, *others_work;

/*
 * A pass to its end, if it has one; what it moved.  Of turns nobody has one for ever.
 */
static uint64_t
pass(worker *w, ax_compaction *c)
{
	for (int i = 0; !c->done; i++)
	{
		ax_status	x = ax_compact(&w->cx, ck_tree, ck_gen, c);

		if (x == AX_STALE || i == 1000000)
		{
			printf("Bail out! a pass does not end: %d\n", (int) x);
			exit(1);
		}
		if (x == AX_BUSY)
			usleep(100);
	}
	return c->moved;
}

/* One pass. */
static uint64_t
compact(worker *w)
{
	ax_compaction c = {.work = work};

	return pass(w, &c);
}

/* Passes, as VACUUM makes them. */
static void
compact_all(worker *w)
{
	ax_tree_info ti;
	uint64_t	moved;
	int			pass = 0;

	do
	{
		moved = compact(w);
		ax_flush(&w->cx);
		if (!tap_quiesce(&w->cx))
			abort();
		ax_flush(&w->cx);
		(void) ax_info(&w->cx, ck_tree, ck_gen, &ti);
	} while (moved > 0 && ++pass < 4 && ax_compact_due(ti.bytes, ti.live_bytes));
}

static int
qcmp(const void *a, const void *b)
{
	/* no key of ck_key is another's prefix, and eight bytes tell them apart */
	return memcmp(*(uint8_t *const *) a, *(uint8_t *const *) b, 8);
}

/* Keys 0 .. n - 1 of which "in" says that they are there, sorted; free each, and both. */
static uint64_t
sorted_keys(uint64_t n, const uint8_t *in, bool longs, uint8_t ***keys, uint32_t **lens)
{
	uint8_t    *k = malloc(KEYBUF);
	uint64_t	m = 0;

	*keys = malloc((n + 1) * sizeof(**keys));
	*lens = malloc((n + 1) * sizeof(**lens));
	for (uint64_t x = 0; x < n; x++)
		if (!in || in[x])
		{
			uint32_t	len = ck_key(k, x, longs);

			/* the length behind it */
			(*keys)[m] = malloc(len + 4);
			memcpy((*keys)[m], k, len);
			m++;
		}
	qsort(*keys, m, sizeof(**keys), qcmp);
	for (uint64_t i = 0; i < m; i++)
	{
		uint64_t	be;

		memcpy(&be, (*keys)[i], 8);
		(*lens)[i] = ck_key(k, __builtin_bswap64(be) * 0xF1DE83E19937733Du, longs);
	}
	free(k);
	return m;
}

static void
free_keys(uint64_t n, uint8_t **keys, uint32_t *lens)
{
	for (uint64_t i = 0; i < n; i++)
		free(keys[i]);
	free(keys);
	free(lens);
}

static uint64_t
fresh_bytes(worker *w, uint64_t n, const uint8_t *in, bool longs, uint32_t page_size)
{
	ax_tree    *t = ax_tree_alloc(&w->cx);
	uint8_t   **keys;
	uint32_t   *lens;
	uint64_t	m = sorted_keys(n, in, longs, &keys, &lens),
				gen;
	ax_tree_info ti;

	if (ax_tree_open(&w->cx, t, AX_BTREE_COMPARED, 0, page_size, &gen) != AX_OK ||
		ax_load(&w->cx, t, gen, &(ax_keys) {(const uint8_t *const *) keys, lens, 0, m}, 90) != AX_OK)
		abort();
	(void) ax_info(&w->cx, t, gen, &ti);
	ax_tree_close(&w->cx, t);
	ax_tree_release(&w->cx, t);
	(void) tap_quiesce(&w->cx);
	free_keys(m, keys, lens);
	return ti.bytes;
}

static int	roots;				/* moved */

static void
count_roots(const char *name)
{
	roots += strcmp(name, "bc.compact.root") == 0;
}

enum
{
	RANDOM, RANGES, SECOND, FEW, NEARLY_ALL, ONE_RANGE, ALL
};
static const char *const pattern[] = {
	"90 % at random", "ranges", "every second", "all but every 50th", "99 % at random",
	"all but one range", "all"
};

static bool
stays(int what, uint64_t rank, uint64_t n, worker *w)
{
	switch (what)
	{
		case RANDOM:
			return ck_rnd(w) % 10 == 0;
		case RANGES:
			return rank / (n / 40 + 1) % 8 == 0;
		case SECOND:
			return rank % 2 == 0;
		case FEW:
			return rank % 50 == 0;
		case NEARLY_ALL:
			return ck_rnd(w) % 100 == 0;
		case ONE_RANGE:
			return rank < n / 10;
		default:
			return false;
	}
}

/* Insert or load all, remove by the pattern, compact, compare with a fresh one. */
static void
one_pattern(worker *w, uint32_t page_size, bool longs, int what, bool loaded)
{
	/* of some the root is moved, if they are large */
	uint64_t	n = what == RANGES && page_size == 256 ? 60000 : tap_scaled(longs ? 40000 : 60000),
				left = 0,
				held,
				fresh,
				bad = 0;
	uint8_t    *in = malloc(n);
	uint8_t   **keys;
	uint32_t   *lens;
	uint8_t    *k = malloc(KEYBUF);
	ax_tree_info ti;
	char		name[128],
				why[256] = "";

	memset(in, 1, n);
	ck_reversed = false;
	ck_open(w, page_size);
	ck_buffers(w);
	(void) sorted_keys(n, NULL, longs, &keys, &lens);
	if (loaded)
	{
		if (ax_load(&w->cx, ck_tree, ck_gen,
				&(ax_keys) {(const uint8_t *const *) keys, lens, 0, n}, 90) != AX_OK)
			abort();
	}
	else
		for (uint64_t x = 0; x < n; x++)
			if (ck_insert(w, k, ck_key(k, x, longs)) != AX_OK)
				abort();
	for (uint64_t i = 0; i < n; i++)
	{
		uint64_t	be;

		if (stays(what, i, n, w))
		{
			left++;
			continue;
		}
		memcpy(&be, keys[i], 8);
		in[__builtin_bswap64(be) * 0xF1DE83E19937733Du] = 0;
		if (ck_remove(w, keys[i], lens[i]) != AX_OK)
			abort();
	}
	free_keys(n, keys, lens);
	(void) tap_quiesce(&w->cx);
	ax_flush(&w->cx);
	(void) ax_info(&w->cx, ck_tree, ck_gen, &ti);
	held = ti.bytes;
	compact_all(w);
	(void) ax_info(&w->cx, ck_tree, ck_gen, &ti);
	fresh = fresh_bytes(w, n, in, longs, page_size);
	snprintf(name, sizeof(name), "pages of %u%s, %s, %s", page_size, longs ? ", long keys" : "",
			 loaded ? "loaded" : "inserted", pattern[what]);
	tap_diag("%s: %llu entries, %llu kB before, %llu after (%llu in use), fresh %llu", name,
			 (unsigned long long) left, (unsigned long long) held / 1024,
			 (unsigned long long) ti.bytes / 1024, (unsigned long long) ti.live_bytes / 1024,
			 (unsigned long long) fresh / 1024);
	ok(ti.bytes <= fresh + fresh / 2 + SLACK, "%s: no more than half as much again as fresh", name);
	for (uint64_t x = 0; x < n; x++)
		bad += ck_contains(w, k, ck_key(k, x, longs)) != (in[x] ? AX_OK : AX_NOTFOUND);
	ok(bad == 0 && ck_check(w, left, why, sizeof(why)) && ck_walk(w, false) == (long) left &&
	   ck_walk(w, true) == (long) left, "%s: sound, with its %llu entries (%s)", name,
	   (unsigned long long) left, why);
	free(in);
	free(k);
}

/* ---- what was a page is something else ---- */

static ax_tree *forger;
static uint64_t forger_gen;

/*
 * Objects of another tree until one lies where the page was: that is nothing but the
 * word.  False: none does.
 */
static bool
forge(worker *w, const void *page, uint64_t word)
{
	const uint32_t size = 32704;
	bool		there = false;

	if (!forger)
		forger = ax_tree_alloc(&w->cx);
	if (ax_tree_open(&w->cx, forger, AX_BTREE_COMPARED, 0, 1024, &forger_gen) != AX_OK)
		abort();
	for (int i = 0; i < 4000 && !there; i++)
	{
		ax_store   *s;
		char	   *p;

		if (ax_enter(&w->cx, forger, forger_gen, &s) != AX_OK)
			abort();
		p = ax_alloc(&w->cx, s, size, false);
		there = p && p <= (const char *) page && (const char *) page < p + size;
		for (uint32_t j = 0; there && j < size; j += 8)
			memcpy(p + j, &word, 8);
		ax_leave(&w->cx);
		if (!p)
			break;
	}
	return there;
}

/* Is what was forged as it was? */
static bool
unforge(worker *w, const void *page, uint64_t word)
{
	uint64_t	now = page ? atomic_load((_Atomic uint64_t *) (uintptr_t) page) : word;

	ax_tree_close(&w->cx, forger);
	(void) tap_quiesce(&w->cx);
	return now == word;
}

/* Some keys, of which those in the half of k that is not k's may stay. */
static void
clear(worker *w, uint64_t n, const uint8_t *k, bool half)
{
	uint8_t    *o = malloc(KEYBUF);

	for (uint64_t i = 0; i < n; i++)
	{
		uint32_t	len = ck_key(o, i, true);

		if (!half || !((o[0] ^ k[0]) & 0x80))
			(void) ck_remove(w, o, len);
	}
	free(o);
	compact_all(w);
}

/*
 * One process has a path.  What lies there is removed, and the memory of a page of
 * the path is another tree's: with the latch word that the page had when it was
 * copied, wherever one looks.  Whoever touches the page without having seen it in the
 * tree takes that for the page.
 */
static void
test_forged(worker *a, worker *b)
{
	static const char *const name[] = {"insert", "removal", "way down", "way beside", "long key"};
	uint8_t    *k = malloc(KEYBUF);
	const uint64_t n = 3000;

	for (int what = 0; what < 5; what++)
	{
		int			met = 0,
					wrong = 0;

		for (int round = 0; round < 80 && met < 4; round++)
		{
			uint32_t	len,
						at;
			const void *page;
			uint64_t	word;
			int			frame;
			ax_status	x;

			ck_open(a, 1024);
			ck_buffers(a);
			ck_buffers(b);
			for (uint64_t i = 0; i < n; i++)
				(void) ck_insert(b, k, ck_key(k, i, true));
			len = ck_key(k, what == 0 ? n + 7 + (uint64_t) round : 61 * (uint64_t) (round + 1) +
						 (what != 4), true);
			(void) ck_find(a, k, len, &at);
			if (a->p.n < 3)
				abort();
			if (what == 2)
				a->p.n--;
			/* that which is looked at first, but for the root */
			frame = what == 3 ? a->p.n - 2 : a->p.n - 1;
			page = a->p.f[frame].page;
			word = a->p.f[frame].version;
			clear(b, n, k, round % 2);
			if (!forge(b, page, word))
			{
				(void) unforge(b, NULL, 0);
				continue;
			}
			met++;
			switch (what)
			{
				case 0:
					x = ax_cmp_insert(&a->cx, ck_tree, ck_gen, &a->p, at, k, len);
					break;
				case 1:
					x = ax_cmp_remove(&a->cx, ck_tree, ck_gen, &a->p, at);
					break;
				case 2:
					x = ax_cmp_down(&a->cx, ck_tree, ck_gen, &a->p, a->p.f[a->p.n - 1].i);
					break;
				case 3:
					x = ax_cmp_beside(&a->cx, ck_tree, ck_gen, &a->p, a->p.f[frame].i > 0);
					break;
				default:
					x = ax_cmp_long(&a->cx, ck_tree, ck_gen, &a->p, frame, at, &(ax_clong) {.buf = a->buf, .size = KEYBUF});
			}
			wrong += x != AX_CHANGED;
			wrong += !unforge(b, page, word);
		}
		ok(met == 4, "%s: the page's memory is another tree's, %d times", name[what], met);
		ok(wrong == 0, "%s: and is not taken for the page: %d times", name[what], wrong);
	}

	/* the check's path */
	{
		int			met = 0,
					wrong = 0;

		for (int round = 0; round < 80 && met < 4; round++)
		{
			ax_checking c = {0};
			const void *page;
			uint64_t	word;

			ck_open(a, 256);
			ck_buffers(a);
			ck_buffers(b);
			for (uint64_t i = 0; i < n; i++)
				(void) ck_insert(b, k, ck_key(k, i, true));
			for (int i = 0; i <= round % 3; i++)
				if (ax_check(&a->cx, ck_tree, ck_gen, &c) != AX_OK)
					abort();
			if (c.done || c.walk.n < 2)
				abort();
			page = c.walk.f[c.walk.n - 1].page;
			word = c.walk.f[c.walk.n - 1].version;
			clear(b, n, k, round % 2);
			if (forge(b, page, word))
			{
				met++;
				while (!c.done)
					if (ax_check(&a->cx, ck_tree, ck_gen, &c) == AX_STALE)
						abort();
				wrong += c.bad;
				wrong += !unforge(b, page, word);
			}
			else
				(void) unforge(b, NULL, 0);
		}
		ok(met == 4 && wrong == 0, "the check's path: %d times, wrong %d", met, wrong);
	}

	/* a compaction's, which only a sanitizer sees */
	for (int round = 0; round < 6; round++)
	{
		ax_compaction c = {.work = malloc(AX_COMPACT_WORK)};

		ck_open(a, 256);
		ck_buffers(a);
		ck_buffers(b);
		for (uint64_t i = 0; i < n; i++)
			(void) ck_insert(b, k, ck_key(k, i, true));
		for (uint64_t i = 0; i < n; i++)
			if (i % 3)
				(void) ck_remove(b, k, ck_key(k, i, true));
		for (int i = 0; i <= round; i++)
			if (ax_compact(&a->cx, ck_tree, ck_gen, &c) != AX_OK)
				abort();
		clear(b, n, k, round % 2);
		(void) pass(a, &c);
		free(c.work);
	}
	{
		ax_tree_info ti;
		char		why[256] = "";

		(void) ax_info(&a->cx, ck_tree, ck_gen, &ti);
		ok(ck_check(a, ti.entries, why, sizeof(why)), "a compaction goes on when its path is gone (%s)", why);
	}
	free(k);
}

/*
 * Objects of the same tree, of the size of its pages and all of one word, until one
 * lies where the page was.  False: none does.
 */
static bool
forge_here(worker *w, const void *page, uint64_t word)
{
	const uint32_t size = 256;
	bool		there = false;

	for (int i = 0; i < 4000 && !there; i++)
	{
		ax_store   *s;
		char	   *p;

		if (ax_enter(&w->cx, ck_tree, ck_gen, &s) != AX_OK)
			abort();
		p = ax_alloc(&w->cx, s, size, false);
		ax_leave(&w->cx);
		if (!p)
			break;
		for (uint32_t j = 0; j < size; j += 8)
			memcpy(p + j, &word, 8);
		there = p == page;
	}
	return there;
}

static int	pages_read,			/* since a removal was about to latch its leaf */
			children_read;

static void
count_pages(const char *name)
{
	if (strcmp(name, "bc.remove.before_lock") == 0)
		pages_read = 0;
	pages_read += strcmp(name, "bc.page_version") == 0;
	children_read += strcmp(name, "bc.child_read") == 0;
}

/*
 * The same where the root stays, and some pages below it: only a stretch of the keys
 * goes, without a compaction.  First the path of an insert and that of a check, then
 * a child that the page above had when it was copied.
 */
static void
test_stretch(worker *a, worker *b)
{
	uint8_t		k[64],
				o[64];
	const uint64_t n = 6000;
	int			met = 0,
				wrong = 0,
				checks = 0;

	for (int round = 0; round < 40; round++)
	{
		uint32_t	len = ck_key(k, (uint64_t) round * 37 + 5, false);
		uint32_t	at;
		int			frame;
		const void *root,
				   *page;
		uint64_t	word;
		ax_checking c = {0};
		const bool	forged = round % 8 > 1;
		ax_status	x;

		ck_open(a, 256);
		ck_buffers(a);
		ck_buffers(b);
		for (uint64_t j = 0; j < n; j++)
			(void) ck_insert(b, o, ck_key(o, j, false));
		if (ck_find(a, k, len, &at) != AX_OK || a->p.n < 4)
			abort();
		for (int j = 0; j <= round % 3; j++)
			if (ax_check(&a->cx, ck_tree, ck_gen, &c) != AX_OK || c.done)
				abort();
		root = a->p.f[0].page;
		frame = a->p.n - 1;
		page = round % 2 ? c.walk.f[c.walk.n - 1].page : a->p.f[frame].page;
		word = round % 2 ? c.walk.f[c.walk.n - 1].version : a->p.f[frame].version;

		/* what begins as the key does; of a check, all that it has come by and some more */
		for (uint64_t j = 0; j < n; j++)
		{
			uint32_t	olen = ck_key(o, j, false);

			if (round % 2 ? o[0] < 0x60 : o[0] >> 4 == k[0] >> 4)
				(void) ck_remove(b, o, olen);
		}
		(void) tap_quiesce(&b->cx);
		(void) ck_find(b, k, len, &at);
		/* sometimes it is free: a sanitizer sees whether it is pages_read */
		if (b->p.f[0].page != root || (forged && !forge_here(b, page, word)))
			continue;
		if (round % 2)
		{
			while (!c.done)
				if (ax_check(&a->cx, ck_tree, ck_gen, &c) == AX_STALE)
					abort();
			wrong += c.bad;
			checks++;
		}
		else
		{
			x = ax_cmp_remove(&a->cx, ck_tree, ck_gen, &a->p, 0);
			wrong += x != AX_CHANGED;
			met++;
		}
		if (forged)
			wrong += atomic_load((_Atomic uint64_t *) (uintptr_t) page) != word;
	}
	ok(met > 0 && checks > 0 && wrong == 0,
	   "the root stays, and a page is something else: %d removals, %d checks, %d wrong", met, checks, wrong);

	for (int round = 0; round < 40; round++)
	{
		uint32_t	len = ck_key(k, (uint64_t) round * 13 + 5, false),
					at,
					kept;
		const uint8_t *e;
		void	   *page;

		ck_open(a, 256);
		ck_buffers(a);
		ck_buffers(b);
		for (uint64_t j = 0; j < n / 10; j++)
			(void) ck_insert(b, o, ck_key(o, j, false));
		if (ck_find(a, k, len, &at) != AX_OK || a->p.n < 3)
			abort();
		page = a->p.f[a->p.n - 1].page;
		while (ck_find(b, k, len, &at) == AX_OK && b->p.f[b->p.n - 1].page == page &&
			   ax_cmp_count(&b->p.f[b->p.n - 1]) > 1)
		{
			e = ax_cmp_key(&b->p.f[b->p.n - 1], at ? 0 : 1, &kept);
			memcpy(o, e, kept);
			(void) ck_remove(b, o, kept);
		}
		(void) ck_remove(b, k, len);
		(void) tap_quiesce(&b->cx);
		ax_flush(&b->cx);
		a->p.n--;
		children_read = 0;
		tap_point_hook = count_pages;
		if (ax_cmp_down(&a->cx, ck_tree, ck_gen, &a->p, a->p.f[a->p.n - 1].i) != AX_CHANGED ||
			children_read)
			wrong++;
		tap_point_hook = NULL;
	}
	ok(wrong == 0, "nor does a way down lead to a child that is gone: %d", wrong);
}

/* ---- others get it ---- */

static void
test_others(worker *a)
{
	ax_tree    *first,
			   *second = ax_tree_alloc(&a->cx);
	uint64_t	gen1,
				n = 0,
				m = 0;
	uint8_t    *k = malloc(KEYBUF);
	char		why[256] = "";

	/* all but some megabytes are somebody's */
	if (ax_tree_open(&a->cx, forger, AX_BTREE_COMPARED, 0, 1024, &forger_gen) != AX_OK)
		abort();
	for (bool full = false; !full;)
	{
		ax_store   *s;
		ax_tree_info ti;

		if (ax_enter(&a->cx, forger, forger_gen, &s) != AX_OK)
			abort();
		(void) ax_alloc(&a->cx, s, 32704, false);
		ax_leave(&a->cx);
		(void) ax_info(&a->cx, forger, forger_gen, &ti);
		full = ti.bytes > CK_AREA / 4 - ((size_t) 8 << 20);
	}
	ck_open(a, 1024);
	ck_buffers(a);
	while (ck_insert(a, k, ck_key(k, n, false)) == AX_OK)
		n++;
	for (uint64_t i = 0; i < n; i++)
		if (i % 10)
			(void) ck_remove(a, k, ck_key(k, i, false));
	compact_all(a);
	ok(ck_check(a, (n + 9) / 10, why, sizeof(why)), "the first of two trees: %llu entries fill the memory (%s)",
	   (unsigned long long) n, why);
	first = ck_tree;
	gen1 = ck_gen;
	ck_tree = second;
	if (ax_tree_open(&a->cx, second, AX_BTREE_COMPARED, 0, 1024, &ck_gen) != AX_OK)
		abort();
	while (m < n && ck_insert(a, k, ck_key(k, m, false)) == AX_OK)
		m++;
	ok(m >= n / 5 * 4, "when nine of ten are removed the second takes %llu", (unsigned long long) m);
	ax_tree_close(&a->cx, forger);
	ax_tree_close(&a->cx, second);
	ax_tree_release(&a->cx, second);
	(void) tap_quiesce(&a->cx);
	ck_tree = first;
	ck_gen = gen1;
	free(k);
}

/* ---- in between ---- */

#define KEYS	9000

static worker *other;
static const char *at_point;
static int	skip,
			what_else,
			hits;
static bool in_hook;
static bool in[KEYS];
static uint64_t keys;			/* of these are used */

static void
put(uint64_t x)
{
	uint8_t    *k = other->buf + KEYBUF / 2;

	if (ck_insert(other, k, ck_key(k, x, false)) == AX_OK)
		in[x] = true;
}

static void
take(uint64_t x)
{
	uint8_t    *k = other->buf + KEYBUF / 2;

	if (ck_remove(other, k, ck_key(k, x, false)) == AX_OK)
		in[x] = false;
}

/* What others can do at a point, by one and the same thread. */
static void
hook(const char *name)
{
	if (in_hook || !at_point || strcmp(name, at_point) != 0 || skip-- > 0)
		return;
	in_hook = true;
	hits++;
	skip = hits < 100 ? 3 : 100;
	if (what_else == 3)
	{
		ax_compaction c = {.work = others_work};

		/* it gives way to a turn */
		while (!c.done && ax_compact(&other->cx, ck_tree, ck_gen, &c) == AX_OK)
			;
	}
	for (int i = 0; i < (what_else == 2 ? 300 : 12) && what_else < 3; i++)
	{
		uint64_t	r = ck_rnd(other) % keys;

		if (what_else == 0 || (what_else == 2 && !in[r]))
			put(r);
		else
			take(r);
	}
	if (what_else == 4)
	{
		uint64_t	from = ck_rnd(other) % keys;

		for (uint64_t r = from; r < from + 500 && r < keys; r++)
			take(r);
	}
	in_hook = false;
}

/* Is every key there, or not, as it should be? */
static void
all_right(worker *w, const char *name)
{
	uint8_t		k[64];
	uint64_t	n = 0,
				bad = 0;
	char		why[256] = "";

	for (uint64_t x = 0; x < keys; x++)
	{
		n += in[x];
		bad += (ck_contains(w, k, ck_key(k, x, false)) == AX_OK) != in[x];
	}
	ok(bad == 0 && ck_check(w, n, why, sizeof(why)) && ck_walk(w, false) == (long) n,
	   "%s, %d: %llu entries, %llu wrong (%s)", name, what_else, (unsigned long long) n,
	   (unsigned long long) bad, why);
}

static void
begin_points(worker *a, worker *b, uint64_t n)
{
	uint8_t		k[64];

	keys = n;
	other = b;
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	for (uint64_t x = 0; x < keys; x++)
		in[x] = ck_insert(a, k, ck_key(k, x, false)) == AX_OK;
	for (uint64_t x = 0; x < keys; x++)
		if (x % 4)
			take(x);
	hits = 0;
	skip = 1;
}

/* Somebody changes the tree at a pause of a compaction. */
static void
compact_point(worker *a, worker *b, const char *point)
{
	for (what_else = 0; what_else < 5; what_else++)
	{
		begin_points(a, b, KEYS);
		tap_point_hook = hook;
		for (int i = 0; i < 5; i++)
		{
			ax_compaction c = {.work = work};

			at_point = point;
			(void) pass(a, &c);
			at_point = NULL;
			(void) tap_quiesce(&a->cx);
			ax_flush(&a->cx);
			ax_flush(&b->cx);
		}
		tap_point_hook = NULL;
		ok(hits > 0, "%s, %d: met", point, what_else);
		all_right(a, point);
	}
}

/* Somebody compacts at a pause of an insert, a removal, a look-up, a walk. */
static void
op_point(worker *a, worker *b, const char *point)
{
	uint8_t		k[64];
	long		wrong = 0;

	what_else = 3;
	begin_points(a, b, KEYS / 3);
	tap_point_hook = hook;
	for (int i = 0; i < 1500; i++)
	{
		uint64_t	x = ck_rnd(a) % keys;
		uint32_t	len = ck_key(k, x, false);
		ax_status	s;

		at_point = point;
		if (i % 16 == 0)
			wrong += ck_walk(a, i % 32 == 0) < 0;
		switch (i % 4)
		{
			case 0:
				wrong += (ck_contains(a, k, len) == AX_OK) != in[x];
				break;
			case 1:
				s = ck_insert(a, k, len);
				wrong += s != (in[x] ? AX_EXISTS : AX_OK);
				in[x] = true;
				break;
			default:
				s = ck_remove(a, k, len);
				wrong += s != (in[x] ? AX_OK : AX_NOTFOUND);
				in[x] = false;
		}
		at_point = NULL;
		/* what was removed makes work for the next */
		if (i % 50 == 0)
			for (uint64_t r = 0; r < 40; r++)
				put(ck_rnd(b) % keys);
	}
	tap_point_hook = NULL;
	ok(hits > 0 && wrong == 0, "%s: %d compactions there, %ld wrong answers", point, hits, wrong);
	all_right(a, point);
}

/* ---- the root goes ---- */

static worker *mover;
static const char *root_point;
static bool takes;				/* the mover takes every second key, too */
static int	root_moves;
static ax_word *latched;			/* by the mover */

static ax_store *
store(worker *w)
{
	ax_store   *s;

	if (ax_enter(&w->cx, ck_tree, ck_gen, &s) != AX_OK)
		abort();
	ax_leave(&w->cx);
	return s;
}

/* Key number x in order: 16 bytes. */
static const uint8_t *
rising(uint64_t x)
{
	static uint8_t k[16];
	uint64_t	be = __builtin_bswap64(x);

	memcpy(k, &be, 8);
	k[15] = 1;
	return k;
}

/* Once, at a point of the other one's call, the mover makes a pass, or latches the root. */
static void
root_hook(const char *name)
{
	ax_compaction c = {.work = others_work};
	ax_store   *s;
	uint64_t	was;

	if (!root_point || strcmp(name, root_point) != 0)
		return;
	root_point = NULL;
	s = store(mover);
	if (strcmp(name, "bc.root.before_lock") == 0)
	{
		latched = &s->root_word;
		if (!ax_word_trylock(&mover->cx, latched, ax_word_read(latched)))
			abort();
		return;
	}
	was = atomic_load(&s->root);
	(void) pass(mover, &c);
	root_moves += atomic_load(&s->root) != was;
	for (uint64_t x = 1; takes && x < 55; x += 2)
		(void) ck_remove(mover, rising(x), 16);
}

/* A tree of keys 0 .. n - 1 in pages of 256, all of which lie in spans with much room. */
static void
thin_tree(worker *a, worker *b, uint64_t n)
{
	static void *obj[8000];
	ax_store   *s;

	mover = b;
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	for (int half = 0; half < 2; half++)
	{
		if (ax_enter(&a->cx, ck_tree, ck_gen, &s) != AX_OK)
			abort();
		for (int i = 4000 * half; i < 4000 * (half + 1); i++)
			if ((obj[i] = ax_alloc(&a->cx, s, 256, false)) == NULL)
				abort();
		ax_leave(&a->cx);
		for (uint64_t x = 0; x < n && half == 0; x++)
			if (ck_insert(a, rising(x), 16) != AX_OK)
				abort();
	}
	if (ax_enter(&a->cx, ck_tree, ck_gen, &s) != AX_OK)
		abort();
	for (int i = 0; i < 8000; i++)
		if (i % 16)
			ax_unalloc(&a->cx, s, obj[i], 256);
	ax_leave(&a->cx);
	ax_flush(&a->cx);
}

/*
 * With nobody else at work one try finds each of 0 .. n - 1, but for those that are
 * gone.  How many it does not.
 */
static int
wrong_keys(worker *w, uint64_t n, bool odd_gone, uint64_t gone)
{
	int			wrong = 0;

	for (uint64_t x = 0; x < n; x++)
	{
		uint32_t	at;

		wrong += ck_find(w, rising(x), 16, &at) !=
			(x == gone || (odd_gone && x % 2) ? AX_NOTFOUND : AX_OK);
	}
	return wrong;
}

/* A root goes while another one is about to change it: then it changes nothing. */
static void
test_root(worker *a, worker *b)
{
	static const char *const point[] = {
		"bc.leaf.before_lock", "bc.split.before_lock", "bc.remove.before_lock"
	};
	ax_compaction c = {.work = work};
	char		why[256] = "";
	uint32_t	at;
	ax_status	x;

	tap_point_hook = root_hook;

	/* a leaf that is the root */
	for (int what = 0; what < 3; what++)
	{
		const uint64_t n = what == 1 ? 11 : 5;	/* eleven fill it */
		const uint64_t k = what == 2 ? 3 : n;

		thin_tree(a, b, n);
		(void) ck_find(a, rising(k), 16, &at);
		if (a->p.n != 1)
			abort();
		root_moves = 0;
		root_point = point[what];
		x = what == 2 ? ax_cmp_remove(&a->cx, ck_tree, ck_gen, &a->p, at) :
			ax_cmp_insert(&a->cx, ck_tree, ck_gen, &a->p, at, rising(k), 16);
		ok(root_moves == 1 && !root_point, "%s: the root is moved", point[what]);
		ok(x == AX_CHANGED, "the page that it was is not changed any more: %d", (int) x);
		x = (what == 2 ? ck_remove : ck_insert) (a, rising(k), 16);
		ok(x == AX_OK && wrong_keys(a, n, false, what == 2 ? k : n) == 0 &&
		   ck_check(a, what == 2 ? n - 1 : n + 1, why, sizeof(why)), "and once more it is done (%s)", why);
	}

	/* a pass over a root that another pass moves, when there is something to pack below it */
	thin_tree(a, b, 55);
	root_moves = 0;
	takes = true;
	root_point = "bc.compact.child_copied";
	(void) pass(a, &c);
	takes = false;
	at = (uint32_t) wrong_keys(a, 55, true, 55);
	ok(root_moves == 1 && at == 0 && ck_check(a, 28, why, sizeof(why)),
	   "a pass leaves a root alone that another one has moved: %u keys wrong (%s)", at, why);

	/* one with a single child, left by a removal that could not have its word */
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	for (uint64_t i = 0; i < 12; i++)
		if (ck_insert(a, rising(2 * i), 16) != AX_OK)
			abort();
	root_point = "bc.root.before_lock";
	if (ck_remove(a, rising(22), 16) != AX_OK || root_point)
		abort();
	ax_word_unlock(&b->cx, latched, false);
	(void) ck_find(a, rising(5), 16, &at);
	if (a->p.n != 2 || ax_cmp_count(&a->p.f[0]) != 1)
		abort();
	root_moves = 0;
	root_point = "bc.split.before_lock";
	x = ax_cmp_insert(&a->cx, ck_tree, ck_gen, &a->p, at, rising(5), 16);
	ok(root_moves == 1 && x == AX_CHANGED, "a root with one child goes, and gets no second one: %d", (int) x);
	ok(ck_insert(a, rising(5), 16) == AX_OK && ck_check(a, 12, why, sizeof(why)) &&
	   ck_walk(a, false) == 12, "all are there (%s)", why);
	tap_point_hook = NULL;
}

/* A key that is an object of its own. */
static const uint8_t *
long_one(int x)
{
	static uint8_t k[106];

	k[0] = (uint8_t) x;
	return k;
}

/*
 * The copy of a leaf is full of long keys, which are gone: to cut the leaf in two an
 * insert would look at one of them.
 */
static void
test_cut(worker *a, worker *b)
{
	uint32_t	at;
	int			n = 0;
	ax_status	x;

	/* twice: how many fill it, and those */
	for (int what = 0; what < 2; what++)
	{
		ck_open(a, 256);
		ck_buffers(a);
		ck_buffers(b);
		b->p.n = 0;
		for (int i = 1; what ? i <= n : b->p.n < 2; i++)
		{
			if (ck_insert(b, long_one(i), 106) != AX_OK)
				abort();
			(void) ck_find(b, long_one(i), 106, &at);
			if (!what)
				n = i - 1;
		}
	}
	(void) ck_find(a, long_one(0), 106, &at);
	if (a->p.n != 1 || (int) ax_cmp_count(&a->p.f[0]) != n)
		abort();
	for (int i = 1; i <= n; i++)
		if (ck_remove(b, long_one(i), 106) != AX_OK)
			abort();
	(void) tap_quiesce(&b->cx);
	x = ax_cmp_insert(&a->cx, ck_tree, ck_gen, &a->p, at, long_one(0), 106);
	ok(x == AX_CHANGED && ck_walk(a, false) == 0, "an insert does not follow %d long keys that are gone: %d", n,
	   (int) x);
}

/*
 * A removal makes its leaf poor, whose neighbour is gone since the page above was
 * copied: it does not look there.
 */
static void
test_neighbour(worker *a, worker *b)
{
	uint32_t	at;
	ax_status	x;

	/* five leaves; of the fourth three keys, and of the second none: it takes the third's */
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	for (uint64_t i = 0; i < 55; i++)
		if (ck_insert(b, rising(i), 16) != AX_OK)
			abort();
	for (uint64_t i = 36; i < 44; i++)
		(void) ck_remove(b, rising(i), 16);
	(void) ck_find(a, rising(34), 16, &at);
	if (a->p.n != 2 || a->p.f[0].i != 3 || ax_cmp_count(&a->p.f[1]) != 3)
		abort();
	for (uint64_t i = 11; i < 22; i++)
		(void) ck_remove(b, rising(i), 16);
	(void) tap_quiesce(&b->cx);
	(void) ck_find(b, rising(34), 16, &at);
	ok(b->p.f[0].i == 2 && b->p.f[1].page == a->p.f[1].page, "the neighbour is gone, the leaf is as it was");
	tap_point_hook = count_pages;
	x = ax_cmp_remove(&a->cx, ck_tree, ck_gen, &a->p, 1);
	tap_point_hook = NULL;
	ok(x == AX_OK && pages_read == 0 && ck_walk(a, false) == 35, "a removal does not look there: %d pages", pages_read);
}

/*
 * The keys between leaves are objects, too, when they are long: they go with the
 * leaves that a pass packs.
 */
static void
test_between(worker *a, worker *b)
{
	uint64_t	live[3];

	/* the first time, some of it lies where it is not counted */
	ck_open(a, 256);
	ck_buffers(a);
	for (int what = 0; what < 3; what++)
	{
		ax_tree_info ti;

		for (int i = 0; i < 250; i++)
			if (ck_insert(a, long_one(i), 106) != AX_OK)
				abort();
		for (int i = 0; i < 250; i++)
			if (i % 3)
				(void) ck_remove(a, long_one(i), 106);
		compact_all(a);
		for (int i = 0; i < 250; i++)
			(void) ck_remove(a, long_one(i), 106);
		compact_all(a);
		(void) ax_info(&a->cx, ck_tree, ck_gen, &ti);
		live[what] = ti.live_bytes;
	}
	ok(live[1] == live[2], "all goes, long keys between leaves, too: %llu bytes, %llu before",
	   (unsigned long long) live[2], (unsigned long long) live[1]);
}

/* A turn is respected. */
static void
test_turn(worker *a, worker *b)
{
	ax_compaction c = {.work = work};

	begin_points(a, b, KEYS / 3);
	ax_cmp_turn(&a->cx, ck_tree, ck_gen, 100000000);
	ok(ax_compact(&b->cx, ck_tree, ck_gen, &c) == AX_BUSY && c.moved == 0,
	   "a compaction changes nothing in somebody's turn");
	ax_cmp_turn(&a->cx, ck_tree, ck_gen, 0);
	ok(ax_compact(&b->cx, ck_tree, ck_gen, &c) == AX_OK && c.moved > 0, "and then goes on");
}

/* ---- many ---- */

static atomic_long lost,
			passes;
static atomic_int writers;

/*
 * Threads 0 and 1 compact; the others insert and remove keys of their own, of which
 * every 16th stays, and is looked for.
 */
static void
beside(void *arg, int me)
{
	worker	   *w = calloc(1, sizeof(worker));
	uint8_t    *k = malloc(KEYBUF);
	void	   *mine = malloc(AX_COMPACT_WORK);
	uint64_t	n = tap_scaled(3000);
	const uint64_t span = 1500;
	bool	   *there = calloc(span, 1);

	ck_attach(w, 2 + me);
	ck_buffers(w);
	w->yields = true;
	if (me < 2)
		while (atomic_load(&writers) > 0)
		{
			ax_compaction c = {.work = mine};

			(void) pass(w, &c);
			ax_flush(&w->cx);
			atomic_fetch_add(&passes, 1);
			usleep(1000);
		}
	else
	{
		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t	r = ck_rnd(w) % span;
			uint64_t	x = r * THREADS + (uint64_t) me;
			uint32_t	len = ck_key(k, x, true);
			bool		grow = i / (n / 4) % 2 == 0;

			if (r % 16 == 0)
			{
				ax_status	s = there[r] ? ck_contains(w, k, len) : ck_insert(w, k, len);

				if (s != AX_OK)
					atomic_fetch_add(&lost, 1);
				there[r] = true;
			}
			else
			{
				bool		add = ck_rnd(w) % 8 < (grow ? 6 : 1);
				ax_status	s = add ? ck_insert(w, k, len) : ck_remove(w, k, len);

				if (s != (add ? (there[r] ? AX_EXISTS : AX_OK) : (there[r] ? AX_OK : AX_NOTFOUND)))
					atomic_fetch_add(&lost, 1);
				there[r] = add;
			}
			if (i % 1024 == 1023 && ck_walk(w, i % 2048 == 1023) < 0)
				atomic_fetch_add(&lost, 1);
		}
		atomic_fetch_sub(&writers, 1);
	}
	ck_detach(w);
	free(there);
	free(mine);
	free(k);
	free(w);
}

static void
test_many(worker *a, uint32_t page_size)
{
	ax_tree_info ti;
	char		why[256] = "";

	ck_reversed = true;
	ck_open(a, page_size);
	ck_buffers(a);
	atomic_store(&lost, 0);
	atomic_store(&writers, THREADS - 2);
	tap_threads(THREADS, beside, NULL);
	(void) ax_info(&a->cx, ck_tree, ck_gen, &ti);
	ok(atomic_load(&lost) == 0, "pages of %u: no wrong answer beside %ld passes: %ld", page_size,
	   atomic_load(&passes), atomic_load(&lost));
	ok(ck_check(a, ti.entries, why, sizeof(why)) && ck_walk(a, false) == (long) ti.entries &&
	   ck_walk(a, true) == (long) ti.entries, "sound, and in order (%s)", why);
	ck_reversed = false;
	ok(tap_quiesce(&a->cx), "nothing is left to reclaim");
}

/* All that one thread does. */
static __attribute__((unused)) void
test_alone(worker *a, worker *b)
{
	static const char *const in_compact[] = {
		"bc.page_version", "bc.page_half", "bc.compact.child_copied", "bc.compact.before_lock"
	};
	static const char *const in_op[] = {
		"bc.reached", "bc.root_read", "bc.child_read", "bc.page_version", "bc.page_copied",
		"bc.leaf.before_lock", "bc.split.before_lock", "bc.remove.before_lock",
		"bc.merge.before_lock"
	};

	tap_point_hook = count_roots;
	for (int what = RANDOM; what <= ALL; what++)
	{
		one_pattern(a, 1024, false, what, what % 2);
		one_pattern(a, what % 2 ? 256 : 8192, false, what, what % 2 == 0);
		one_pattern(a, what % 2 ? 8192 : 1024, true, what, what % 2);
	}
	ck_long_every = 1;			/* more than move at once, and pages that begin with others */
	one_pattern(a, 1024, true, SECOND, false);
	ck_long_every = 61;
	tap_point_hook = NULL;
	ok(roots > 0, "a root was in the way, and was moved, %d times", roots);
	test_forged(a, b);
	test_stretch(a, b);
	test_others(a);
	for (size_t i = 0; i < sizeof(in_compact) / sizeof(in_compact[0]); i++)
		compact_point(a, b, in_compact[i]);
	for (size_t i = 0; i < sizeof(in_op) / sizeof(in_op[0]); i++)
		op_point(a, b, in_op[i]);
	test_root(a, b);
	test_cut(a, b);
	test_neighbour(a, b);
	test_between(a, b);
	test_turn(a, b);
}

int
main(void)
{
	static worker a,
				b;
	ck_area = tap_area(CK_AREA / 4, SLOTS + 2, CK_AREA / 256);
	work = malloc(AX_COMPACT_WORK);
	others_work = malloc(AX_COMPACT_WORK);
	ck_attach(&a, 0);
	ck_attach(&b, 1);
#ifndef __SANITIZE_THREAD__
	test_alone(&a, &b);			/* where there is no race to be seen */
#endif
	test_many(&a, 256);
	test_many(&a, 1024);
	ck_detach(&a);
	ck_detach(&b);
	free(work);
	free(others_work);
	return tap_done();
}
