/*
 * cmpkit.c
 *	  A caller of trees whose order only the caller knows.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmpkit.h"
#include "core/base/ax_internal.h"
#include "tap.h"

ax_area    *ck_area;
ax_tree    *ck_tree;
uint64_t	ck_gen;
bool		ck_reversed;
ck_lie		ck_lies;

uint64_t
ck_rnd(worker *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return w->rng;
}

void
ck_attach(worker *w, int slot)
{
	memset(w, 0, sizeof(*w));
	w->id = slot;
	w->rng = 88172645463325252u + (uint64_t) slot * 7919;
	ax_attach(&w->cx, ck_area, slot, slot + 1, &ax_port_default);
	w->buf = malloc(KEYBUF);
}

void
ck_open(worker *w, uint32_t page_size)
{
	uint32_t	size;

	if (!ck_tree)
		ck_tree = ax_tree_alloc(&w->cx);
	else
		ax_tree_close(&w->cx, ck_tree);
	if (ax_tree_open(&w->cx, ck_tree, AX_BTREE_COMPARED, 0, page_size, &ck_gen) != AX_OK)
		abort();
	if (ax_cmp_size(&w->cx, ck_tree, ck_gen, &size) != AX_OK || size >= page_size)
		abort();
}

void
ck_buffers(worker *w)
{
	uint32_t	size;

	(void) ax_cmp_size(&w->cx, ck_tree, ck_gen, &size);
	w->p.size = size;
	for (int i = 0; i < AX_CMP_LEVELS; i++)
	{
		free(w->p.f[i].image);
		w->p.f[i].image = malloc(size);
	}
}

void
ck_detach(worker *w)
{
	for (int i = 0; i < AX_CMP_LEVELS; i++)
		free(w->p.f[i].image);
	free(w->buf);
	ax_detach(&w->cx);
}

static int
compare(worker *w, const uint8_t *a, uint32_t la, const uint8_t *b, uint32_t lb)
{
	int			c = memcmp(a, b, la < lb ? la : lb);

	if (w->beside)
		w->beside(w->other);
	/* a comparison may take its time */
	if (w->yields && ck_rnd(w) % 16 == 0)
		sched_yield();
	if (c == 0)
		c = la < lb ? -1 : la > lb;
	if (ck_lies != CK_ORDER && c != 0)
	{
		if (ck_lies == CK_BELOW)
			return -1;
		if (ck_lies == CK_CYCLE && (a[0] - b[0]) % 3 != 0)
			return (a[0] - b[0] + 3 * 256) % 3 == 1 ? 1 : -1;
		if (ck_lies == CK_RANDOM && ck_rnd(w) % 3 == 0)
			return ck_rnd(w) % 2 ? 1 : -1;
	}
	return ck_reversed ? -c : c;
}

/* Entry i of frame k against the key; *ok false: the page changed. */
static int
compare_entry(worker *w, int k, uint32_t i, const uint8_t *key, uint32_t len, bool *ok)
{
	uint32_t	el;
	const uint8_t *e = ax_cmp_key(&w->p.f[k], i, &el);

	if (!e)
	{
		ax_clong	to = {.buf = w->buf, .size = KEYBUF};
		ax_status	x = ax_cmp_long(&w->cx, ck_tree, ck_gen, &w->p, k, i, &to);

		if (x != AX_OK)
		{
			*ok = false;
			return 0;
		}
		e = w->buf;
		el = to.len;
	}
	return compare(w, e, el, key, len);
}

/* Entries [from, n) of the last page that come before the key, or are it. */
static uint32_t
search(worker *w, uint32_t from, const uint8_t *key, uint32_t len, bool *same, bool *ok)
{
	int			k = w->p.n - 1;
	uint32_t	lo = from,
				hi = ax_cmp_count(&w->p.f[k]);

	*ok = true;
	*same = false;
	while (lo < hi && *ok)
	{
		uint32_t	mid = (lo + hi) / 2;
		int			c = compare_entry(w, k, mid, key, len, ok);

		if (c == 0)
			*same = true;
		if (c < 0 || (c == 0 && from == 1))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* To the leaf of a key and its place there: AX_OK, AX_NOTFOUND or AX_CHANGED. */
ax_status
ck_find(worker *w, const uint8_t *key, uint32_t len, uint32_t *at)
{
	ax_status	x = ax_cmp_root(&w->cx, ck_tree, ck_gen, &w->p);
	bool		same,
				ok;

	*at = 0;
	if (x != AX_OK)
		return x == AX_BUSY ? AX_CHANGED : x;
	if (w->p.n == 0)
		return AX_NOTFOUND;
	while (!ax_cmp_is_leaf(&w->p.f[w->p.n - 1]))
	{
		uint32_t	i = search(w, 1, key, len, &same, &ok);

		if (!ok)
			return AX_CHANGED;
		x = ax_cmp_down(&w->cx, ck_tree, ck_gen, &w->p, i - 1);
		if (x != AX_OK)
			return x == AX_BUSY ? AX_CHANGED : x;
	}
	*at = search(w, 0, key, len, &same, &ok);
	if (!ok)
		return AX_CHANGED;
	return same ? AX_OK : AX_NOTFOUND;
}

/*
 * The place was lost: after some losses it is this one's turn.  So nobody loses for
 * ever, unless the tree leads to a page that is gone.
 */
static void
lost(worker *w)
{
	w->restarts++;
	if (w->losses == 20000)
	{
		printf("Bail out! an operation was done over %d times\n", w->losses);
		exit(1);
	}
	if (++w->losses > 6)
		ax_cmp_turn(&w->cx, ck_tree, ck_gen, 200u << (w->losses < 15 ? w->losses - 7 : 8));
}

static ax_status
done(worker *w, ax_status x)
{
	if (w->losses > 6)
		ax_cmp_turn(&w->cx, ck_tree, ck_gen, 0);
	w->losses = 0;
	return x;
}

ax_status
ck_insert(worker *w, const uint8_t *key, uint32_t len)
{
	for (;; lost(w))
	{
		uint32_t	at;
		ax_status	x = ck_find(w, key, len, &at);

		if (x == AX_OK)
			x = AX_EXISTS;
		else if (x == AX_NOTFOUND)
			x = ax_cmp_insert(&w->cx, ck_tree, ck_gen, &w->p, at, key, len);
		if (x != AX_CHANGED && x != AX_BUSY)
			return done(w, x);
	}
}

ax_status
ck_remove(worker *w, const uint8_t *key, uint32_t len)
{
	for (;; lost(w))
	{
		uint32_t	at;
		ax_status	x = ck_find(w, key, len, &at);

		if (x == AX_OK)
			x = ax_cmp_remove(&w->cx, ck_tree, ck_gen, &w->p, at);
		if (x != AX_CHANGED && x != AX_BUSY)
			return done(w, x);
	}
}

ax_status
ck_contains(worker *w, const uint8_t *key, uint32_t len)
{
	ax_status	x;
	uint32_t	at;

	while ((x = ck_find(w, key, len, &at)) == AX_CHANGED)
		lost(w);
	return done(w, x);
}

/*
 * All entries one way, in order: how many; -1: out of order.  When the tree
 * changes, on from the last one by value.
 */
long
ck_walk(worker *w, bool left)
{
	uint8_t    *last = malloc(KEYBUF);
	uint32_t	lastlen = 0;
	long		n = 0;
	ax_status	x;
	bool		again = true;

	for (;;)
	{
		ax_cnode   *f;
		uint32_t	at = 0;
		bool		stop = false;

		if (again)
		{
			if (lastlen == 0)
			{
				x = ax_cmp_root(&w->cx, ck_tree, ck_gen, &w->p);
				if (x == AX_OK && w->p.n == 0)
					break;
				while (x == AX_OK && !ax_cmp_is_leaf(&w->p.f[w->p.n - 1]))
					x = ax_cmp_down(&w->cx, ck_tree, ck_gen, &w->p, left ? ax_cmp_count(&w->p.f[w->p.n - 1]) - 1 : 0);
				if (x != AX_OK)
				{
					lost(w);
					continue;
				}
				f = &w->p.f[w->p.n - 1];
				at = left ? ax_cmp_count(f) : 0;
			}
			else
			{
				x = ck_find(w, last, lastlen, &at);
				if (x != AX_OK && x != AX_NOTFOUND)
				{
					lost(w);
					continue;
				}
				(void) done(w, x);
				if (x == AX_OK && !left)
					at++;
			}
			again = false;
		}
		else
		{
			x = ax_cmp_beside(&w->cx, ck_tree, ck_gen, &w->p, left);
			if (x == AX_NOTFOUND)
				break;
			if (x != AX_OK)
			{
				w->restarts++;
				again = true;
				continue;
			}
			at = left ? ax_cmp_count(&w->p.f[w->p.n - 1]) : 0;
		}
		f = &w->p.f[w->p.n - 1];
		while (left ? at > 0 : at < ax_cmp_count(f))
		{
			uint32_t	i = left ? --at : at++;
			uint32_t	len;
			const uint8_t *e = ax_cmp_key(f, i, &len);

			if (!e)
			{
				ax_clong	to = {.buf = w->buf, .size = KEYBUF};

				x = ax_cmp_long(&w->cx, ck_tree, ck_gen, &w->p, w->p.n - 1, i, &to);
				if (x != AX_OK)
				{
					again = true;
					break;
				}
				e = w->buf;
				len = to.len;
			}
			if (lastlen)
			{
				int			c = compare(w, last, lastlen, e, len);

				if (left ? c <= 0 : c >= 0)
					stop = true;
			}
			memcpy(last, e, len);
			lastlen = len;
			n++;
		}
		if (stop)
		{
			n = -1;
			break;
		}
	}
	free(last);
	return n;
}

bool
ck_check(worker *w, uint64_t entries, char *why, size_t whylen)
{
	ax_tree_info info;
	bool		good = false;
	ax_status	x = tap_check(&w->cx, ck_tree, ck_gen, &info, &good, why, whylen);

	if (x != AX_OK)
	{
		snprintf(why, whylen, "status %d", (int) x);
		return false;
	}
	if (good && info.entries != entries)
	{
		snprintf(why, whylen, "%llu entries, not %llu", (unsigned long long) info.entries,
				 (unsigned long long) entries);
		return false;
	}
	return good;
}

uint32_t	ck_long_every = 61;

/* Key number x of a set; some are long. */
uint32_t
ck_key(uint8_t *k, uint64_t x, bool longs)
{
	uint32_t	n = 8 + x * 2654435761u % 40;
	uint64_t	be = __builtin_bswap64(x * 0x9E3779B97F4A7C15u);

	if (longs && x % ck_long_every == 0)
		n = 300 + (ck_long_every > 1 ? (uint32_t) (x % 7) * 4000 : 0);
	memcpy(k, &be, 8);
	for (uint32_t i = 8; i < n; i++)
		k[i] = (uint8_t) (x + i);
	memset(k + n, 0, 6);
	k[n + 5] = (uint8_t) x;
	return n + 6;
}
