/*
 * test_cmp_lies.c
 *	  Trees whose order is none: the caller's comparison lies, and the tree is walked by
 *	  place (ax_cmp_return).
 *
 *	  test_cmp_lies [keys [milliseconds]]
 *
 * A key need not be found where it was put.  But the tree stays sound, a walk that
 * remembers where it was meets each key once and ends, and what it met it can remove.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmpkit.h"
#include "core/base/ax_internal.h"
#include "tap.h"

static const char *const lie_names[] = {"an order", "chance", "a cycle", "always below"};

/* Where a path led. */
typedef struct place
{
	void	   *page[AX_CMP_LEVELS];
	int			n;
} place;

static void
remember(const worker *w, place *p)
{
	p->n = w->p.n;
	for (int i = 0; i < p->n; i++)
		p->page[i] = w->p.f[i].page;
}

static ax_status
back(worker *w, const place *p)
{
	ax_status	x;

	while ((x = ax_cmp_return(&w->cx, ck_tree, ck_gen, &w->p, p->page, p->n)) == AX_CHANGED || x == AX_BUSY)
		;
	return x;
}

/* To the leftmost leaf.  False: the tree is empty. */
static bool
first_leaf(worker *w)
{
	ax_status	x;

	do
	{
		x = ax_cmp_root(&w->cx, ck_tree, ck_gen, &w->p);
		while (x == AX_OK && w->p.n > 0 && !ax_cmp_is_leaf(&w->p.f[w->p.n - 1]))
			x = ax_cmp_down(&w->cx, ck_tree, ck_gen, &w->p, 0);
	} while (x == AX_CHANGED || x == AX_BUSY);
	return w->p.n > 0;
}

/* The number of an entry of the set (ck_key, none long). */
static uint64_t
number(const uint8_t *e)
{
	uint64_t	be;

	memcpy(&be, e, 8);
	return __builtin_bswap64(be) * 0xF1DE83E19937733Du;
}

/*
 * From leaf to leaf, each time by way of the place.  How many entries; seen counts each.
 */
static uint64_t
walk(worker *w, uint8_t *seen, uint64_t n, uint64_t *lost)
{
	uint64_t	met = 0;
	place		p;

	if (!first_leaf(w))
		return 0;
	for (;;)
	{
		const ax_cnode *f = &w->p.f[w->p.n - 1];

		for (uint32_t i = 0; i < ax_cmp_count(f); i++)
		{
			uint32_t	len;
			uint64_t	x = number(ax_cmp_key(f, i, &len));

			met++;
			if (x < n)
				seen[x]++;
		}
		remember(w, &p);
		if (back(w, &p) != AX_OK || w->p.f[w->p.n - 1].page != p.page[p.n - 1])
			++*lost;
		if (ax_cmp_beside(&w->cx, ck_tree, ck_gen, &w->p, false) != AX_OK)
			break;
	}
	return met;
}

/* ---- alone ---- */

static void
test_alone(worker *w, uint32_t page_size, ck_lie lie, uint64_t n)
{
	uint8_t		k[64];
	uint8_t    *seen = calloc(n, 1);
	uint64_t	lost = 0,
				bad = 0,
				left = n;
	char		why[256] = "";

	ck_lies = lie;
	ck_open(w, page_size);
	ck_buffers(w);
	for (uint64_t x = 0; x < n; x++)
		bad += ck_insert(w, k, ck_key(k, x, false)) != AX_OK;
	ok(bad == 0 && ck_check(w, n, why, sizeof(why)), "%s, pages of %u: all are in (%s)", lie_names[lie],
	   page_size, why);
	bad = walk(w, seen, n, &lost) != n;
	for (uint64_t x = 0; x < n; x++)
		bad += seen[x] != 1;
	ok(bad == 0 && lost == 0, "a walk by place meets each once: %llu wrong, %llu places lost",
	   (unsigned long long) bad, (unsigned long long) lost);

	/* remove, by place, all but every fifth; what is merged away is found near */
	bad = 0;
	while (left > (n + 4) / 5 && bad < n)
	{
		place		p;
		bool		removed = false;

		if (!first_leaf(w))
			break;
		for (;;)
		{
			const ax_cnode *f = &w->p.f[w->p.n - 1];
			uint32_t	i = 0,
						len;
			ax_status	x;

			while (i < ax_cmp_count(f) && number(ax_cmp_key(f, i, &len)) % 5 == 0)
				i++;
			remember(w, &p);
			if (i < ax_cmp_count(f))
			{
				removed = true;
				left--;
				if (ax_cmp_remove(&w->cx, ck_tree, ck_gen, &w->p, i) != AX_OK)
					bad++;
				x = back(w, &p);
				if (w->p.n == 0)
					break;
				if (!ax_cmp_is_leaf(&w->p.f[w->p.n - 1]) || (x != AX_OK && x != AX_NOTFOUND) ||
					(x == AX_OK) != (w->p.f[w->p.n - 1].page == p.page[p.n - 1]))
					bad++;
			}
			else if (ax_cmp_beside(&w->cx, ck_tree, ck_gen, &w->p, false) != AX_OK)
				break;
		}
		if (!removed)
			bad = n;
	}
	ok(bad == 0 && ck_check(w, left, why, sizeof(why)), "all but every fifth removed by place: %llu left (%s)",
	   (unsigned long long) left, why);
	memset(seen, 0, n);
	bad = walk(w, seen, n, &lost) != left;
	for (uint64_t x = 0; x < n; x++)
		bad += seen[x] != (x % 5 == 0);
	ok(bad == 0 && lost == 0, "and these are met: %llu wrong", (unsigned long long) bad);
	free(seen);
}

/* A place in a tree that has been emptied, filled anew, or given up. */
static void
test_old_place(worker *a, worker *b)
{
	uint8_t		k[64];
	place		p;
	place		none = {.n = 1};
	ax_status	x;
	uint64_t	bad = 0;

	ck_lies = CK_ORDER;
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	for (uint64_t round = 0; round < 50; round++)
	{
		for (uint64_t i = 0; i < 400; i++)
			(void) ck_insert(b, k, ck_key(k, i, false));
		(void) first_leaf(a);
		for (uint64_t i = ck_rnd(a) % 20; i > 0; i--)
			(void) ax_cmp_beside(&a->cx, ck_tree, ck_gen, &a->p, false);
		remember(a, &p);
		for (uint64_t i = 0; i < 400; i++)
			(void) ck_remove(b, k, ck_key(k, i, false));
		(void) tap_quiesce(&b->cx);
		x = back(a, &p);
		bad += x != AX_OK && x != AX_NOTFOUND;
		for (uint64_t i = 1000; i < 1000 + round * 20; i++)
			(void) ck_insert(b, k, ck_key(k, i, false));
		x = back(a, &p);
		bad += (x != AX_OK && x != AX_NOTFOUND) || (a->p.n > 0 && !ax_cmp_is_leaf(&a->p.f[a->p.n - 1])) ||
			(x == AX_OK && a->p.f[a->p.n - 1].page != p.page[p.n - 1]);
		for (uint64_t i = 1000; i < 1000 + round * 20; i++)
			(void) ck_remove(b, k, ck_key(k, i, false));
	}
	ok(bad == 0, "an old place is the leaf of that address, or one near: %llu wrong", (unsigned long long) bad);
	x = back(a, &none);
	ok(x == AX_NOTFOUND, "no place at all");
	ck_open(b, 256);
	ok(ax_cmp_return(&a->cx, ck_tree, ck_gen - 1, &a->p, p.page, p.n) == AX_STALE, "a place of a tree that is gone");
}

/*
 * A page above leaves is cut in two, and no other one of its level: the places of all leaves
 * are found again, also of those that hang below the right half now.
 */
static void
test_split_above(worker *a, worker *b)
{
	enum
	{
		LEAVES = 400
	};
	static place p[LEAVES];
	uint8_t		k[64];
	ax_tree_info was,
				is;
	int			splits = 0,
				lost = 0;

	ck_lies = CK_ORDER;
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	(void) ax_info(&a->cx, ck_tree, ck_gen, &is);
	for (uint64_t i = 0; i < 800; i++)
	{
		int			n = 0;

		was = is;
		if (first_leaf(a))
			do
				remember(a, &p[n++]);
			while (n < LEAVES && ax_cmp_beside(&a->cx, ck_tree, ck_gen, &a->p, false) == AX_OK);
		(void) ck_insert(b, k, ck_key(k, i, false));
		(void) ax_info(&a->cx, ck_tree, ck_gen, &is);
		if (is.inner_nodes != was.inner_nodes + 1 || is.height != was.height)
			continue;
		splits++;
		for (int j = 0; j < n; j++)
			lost += back(a, &p[j]) != AX_OK || a->p.f[a->p.n - 1].page != p[j].page[p[j].n - 1];
	}
	ok(splits > 10 && lost == 0, "%d splits above leaves: %d places lost", splits, lost);
}

/*
 * The tree becomes higher by some levels while a place is remembered: the way back asks for
 * each image that it has not.
 */
static void
test_grown(worker *a, worker *b)
{
	uint8_t    *image[AX_CMP_LEVELS];
	uint8_t		k[64];
	place		p;
	ax_status	x;
	int			asked = 0;

	ck_lies = CK_ORDER;
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	(void) ck_insert(b, k, ck_key(k, 0, false));
	(void) first_leaf(a);
	remember(a, &p);
	for (uint64_t i = 1; i < 3000; i++)
		(void) ck_insert(b, k, ck_key(k, i, false));
	for (int i = p.n; i < AX_CMP_LEVELS; i++)
	{
		image[i] = a->p.f[i].image;
		a->p.f[i].image = NULL;
	}
	while ((x = ax_cmp_return(&a->cx, ck_tree, ck_gen, &a->p, p.page, p.n)) == AX_BUFFER &&
		   a->p.n == p.n + asked)
	{
		a->p.f[a->p.n].image = image[a->p.n];
		asked++;
	}
	ok(p.n == 1 && x == AX_NOTFOUND && asked >= 3 && a->p.n == p.n + asked && ax_cmp_is_leaf(&a->p.f[a->p.n - 1]),
	   "a tree of %d levels, a place of one: %d images asked for", a->p.n, asked);
	for (int i = a->p.n; i < AX_CMP_LEVELS; i++)
		a->p.f[i].image = image[i];
}

/*
 * A page that a step has copied is not above its count of pages.  One that a split makes of it
 * afterwards is.  No number comes twice, also where the address does.
 */
static void
test_numbers(worker *a, worker *b)
{
	enum
	{
		PAGES = 20000
	};
	static uint64_t was[PAGES];
	uint8_t		k[64];
	uint64_t	wrong = 0,
				again = 0;
	int			n = 0,
				fresh = 0;

	ck_lies = CK_ORDER;
	ck_open(a, 256);
	ck_buffers(a);
	ck_buffers(b);
	for (uint64_t round = 0; round < 20; round++)
	{
		uint64_t	made = 0,
					sum = 0;

		for (uint64_t i = round; i < 300; i++)
			(void) ck_insert(b, k, ck_key(k, i, false));
		if (first_leaf(a))
			do
			{
				const ax_cnode *f = &a->p.f[a->p.n - 1];

				wrong += f->born == 0 || f->born > f->made;
				made = f->made;
				sum += f->born;
			} while (ax_cmp_beside(&a->cx, ck_tree, ck_gen, &a->p, false) == AX_OK);
		for (uint64_t i = 300; i < 600; i++)
			(void) ck_insert(b, k, ck_key(k, i, false));
		for (bool more = first_leaf(a); more;
			 more = ax_cmp_beside(&a->cx, ck_tree, ck_gen, &a->p, false) == AX_OK)
		{
			const ax_cnode *f = &a->p.f[a->p.n - 1];

			if (f->born <= made)
			{
				sum -= f->born;
				continue;
			}
			fresh++;
			for (int i = 0; i < n; i++)
				again += was[i] == f->born;
			if (n < PAGES)
				was[n++] = f->born;
		}
		wrong += sum != 0;		/* nothing was removed: all that were there are there */
		for (uint64_t i = 0; i < 600; i++)
			(void) ck_remove(b, k, ck_key(k, i, false));
		(void) tap_quiesce(&b->cx);
	}
	ok(fresh > 500 && wrong == 0 && again == 0, "%d new leaves: %llu numbers wrong, %llu come again", fresh,
	   (unsigned long long) wrong, (unsigned long long) again);
}

/* ---- many ---- */

static atomic_bool stop;

/* Inserts its own keys, and removes by place what it comes by of them. */
static void *
busy(void *arg)
{
	worker	   *w = arg;
	uint8_t		k[64];
	uint64_t	x = 0;
	int64_t		in = 0;

	while (!atomic_load(&stop))
	{
		if (in < 2000)
		{
			if (ck_insert(w, k, ck_key(k, x++ * SLOTS + (uint64_t) w->id, false)) == AX_OK)
				in++;
			continue;
		}
		if (!first_leaf(w))
			continue;
		for (int leaves = 0; leaves < 4000; leaves++)
		{
			const ax_cnode *f = &w->p.f[w->p.n - 1];
			place		p;
			ax_status	s;

			remember(w, &p);
			for (uint32_t i = 0; i < ax_cmp_count(f); i++)
			{
				uint32_t	len;

				if (number(ax_cmp_key(f, i, &len)) % SLOTS != (uint64_t) w->id || ck_rnd(w) % 2)
					continue;
				s = ax_cmp_remove(&w->cx, ck_tree, ck_gen, &w->p, i);
				if (s == AX_OK)
					in--;
				break;
			}
			s = back(w, &p);
			if (w->p.n == 0)
				break;
			s = ax_cmp_beside(&w->cx, ck_tree, ck_gen, &w->p, false);
			if (s == AX_NOTFOUND)
				break;
			if (s != AX_OK)
				(void) back(w, &p);
			if (w->p.n == 0)
				break;
		}
	}
	/* the counters' part of it */
	return (void *) (intptr_t) in;
}

static void
test_many(worker *w, uint32_t page_size, ck_lie lie, int ms)
{
	enum
	{
		N = 4
	};
	pthread_t	th[N];
	static worker ws[N];
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	int64_t		left = 0;
	uint64_t	lost = 0;
	char		why[256] = "";

	ck_lies = lie;
	ck_open(w, page_size);
	ck_buffers(w);
	atomic_store(&stop, false);
	for (int i = 0; i < N; i++)
	{
		ck_attach(&ws[i], 2 + i);
		ck_buffers(&ws[i]);
		pthread_create(&th[i], NULL, busy, &ws[i]);
	}
	(void) nanosleep(&ts, NULL);
	atomic_store(&stop, true);
	for (int i = 0; i < N; i++)
	{
		void	   *r;

		pthread_join(th[i], &r);
		left += (intptr_t) r;
		ck_detach(&ws[i]);
	}
	ok(ck_check(w, (uint64_t) left, why, sizeof(why)), "%s, pages of %u, %d threads: %lld entries are left (%s)",
	   lie_names[lie], page_size, N, (long long) left, why);
	ok(walk(w, NULL, 0, &lost) == (uint64_t) left && lost == 0, "and are met");
}

int
main(int argc, char **argv)
{
	static worker a,
				b;
	uint64_t	n = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t) tap_scaled(4000);
	int			ms = argc > 2 ? atoi(argv[2]) : (int) tap_scaled(800);

	ck_area = tap_area(CK_AREA, SLOTS + 2, CK_AREA / 64);
	ck_attach(&a, 0);
	ck_attach(&b, 1);
	for (ck_lie lie = CK_ORDER; lie <= CK_BELOW; lie++)
	{
		test_alone(&a, 256, lie, n);
		test_alone(&a, 4096, lie, n);
	}
	test_old_place(&a, &b);
	test_split_above(&a, &b);
	test_grown(&a, &b);
	test_numbers(&a, &b);
	for (ck_lie lie = CK_RANDOM; lie <= CK_BELOW; lie++)
		test_many(&a, 256, lie, ms);
	ck_lies = CK_ORDER;
	ck_detach(&a);
	ck_detach(&b);
	return tap_done();
}
