/*
 * test_append.c
 *	  The append buffer (core/tail/ax_append.c) by itself: what its dispatch asks of it,
 *	  with a model, under threads, and at each pause point.
 *
 * Entries are made from numbers; what is in the buffer and what is in the tree
 * behind it together must be what was put in.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/ax_area.h"
#include "core/tail/ax_tail.h"
#include "keyset.h"
#include "tap.h"

#define THREADS		6

static ax_ctx main_cx;
static ax_area *area;
static ax_tree *tree;
static uint64_t gen;

/* ---- keys ------------------------------------------------------------------------ */

typedef enum shape
{
	NUMBERS, DUPLICATES, TEXTS, SHAPES
} shape;

static const char *const shape_name[SHAPES] = {"numbers", "duplicates", "texts"};

/*
 * Entry i, rising with i.  Texts: of different lengths, behind a common prefix.
 */
static uint32_t
make(uint8_t *k, shape sh, uint64_t i)
{
	uint32_t	n;

	switch (sh)
	{
		case NUMBERS:
			k[0] = 1;
			ks_put8(k + 1, i * 3 | UINT64_C(1) << 63);
			n = 9;
			break;
		case DUPLICATES:
			k[0] = 1;
			ks_put8(k + 1, i / 300 | UINT64_C(1) << 63);
			n = 9;
			break;
		default:
			n = (uint32_t) sprintf((char *) k, "\001a common prefix, %012llu",
								   (unsigned long long) i);
			/* no key is a prefix of another: the numbers differ before this */
			memset(k + n, 'x', i % 70);
			n += (uint32_t) (i % 70);
			k[n++] = 0;
	}
	ks_put_tid(k + n, ks_tid(i));
	return n + 6;
}

static uint64_t
row_of(const uint8_t *k, uint32_t len)
{
	uint64_t	tid = 0;

	for (uint32_t i = len - 6; i < len; i++)
		tid = tid << 8 | k[i];
	return ks_row(tid);
}

/* ---- calls, each in an epoch ------------------------------------------------------ */

static ax_store *
enter(ax_ctx *cx)
{
	ax_store   *s;

	if (ax_enter(cx, tree, gen, &s) != AX_OK)
		abort();
	return s;
}

static ax_tail *
open_tail(ax_ctx *cx, shape sh, uint64_t floor, uint32_t off)
{
	uint8_t		k[AX_TAIL_KEY_MAX];
	uint32_t	n = make(k, sh, floor);
	ax_tail    *t = ax_append_new(cx, enter(cx), k, n, off);

	ax_leave(cx);
	if (!t)
		abort();
	return t;
}

static ax_status
insert(ax_ctx *cx, ax_tail *t, shape sh, uint64_t i)
{
	uint8_t		k[AX_TAIL_KEY_MAX];
	uint32_t	n = make(k, sh, i);
	ax_store   *s = enter(cx);
	ax_status	r = t->kind->insert(cx, s, t, k, n);

	ax_leave(cx);
	return r;
}

/* Where it belongs, be it the tree. */
static void
insert_somewhere(ax_ctx *cx, ax_tail *t, shape sh, uint64_t i)
{
	if (insert(cx, t, sh, i) == AX_CHANGED)
	{
		uint8_t		k[AX_TAIL_KEY_MAX];
		uint32_t	n = make(k, sh, i);

		while (ax_insert(cx, tree, gen, k, n) == AX_BUSY)
			;
	}
}

static bool
in_buffer(ax_ctx *cx, ax_tail *t, shape sh, uint64_t i)
{
	uint8_t		k[AX_TAIL_KEY_MAX];
	uint32_t	n = make(k, sh, i);
	bool		there;

	(void) enter(cx);
	there = t->kind->find(t, k, n, NULL) != NULL;
	ax_leave(cx);
	return there;
}

static bool
in_tree(ax_ctx *cx, shape sh, uint64_t i)
{
	uint8_t		k[AX_TAIL_KEY_MAX];
	uint32_t	n = make(k, sh, i);
	ax_status	r;

	while ((r = ax_contains(cx, tree, gen, k, n)) == AX_BUSY)
		;
	return r == AX_OK;
}

/* The buffer first, then the tree. */
static bool
present(ax_ctx *cx, ax_tail *t, shape sh, uint64_t i)
{
	return in_buffer(cx, t, sh, i) || in_tree(cx, sh, i);
}

/* As ax_tail.c does it; false: nobody had it. */
static bool
delete(ax_ctx *cx, ax_tail *t, shape sh, uint64_t i)
{
	uint8_t		k[AX_TAIL_KEY_MAX];
	uint32_t	n = make(k, sh, i);
	bool		had = false;
	ax_tail_word *w = NULL;
	ax_status	r;

	(void) enter(cx);
	while ((w = t->kind->find(t, k, n, w)) != NULL)
	{
		uint64_t	v;

		/* one on its way into the tree is either there soon, or here again */
		while (ax_tail_is_there(v = atomic_load(w)))
			if ((v & AX_T_STATE) == AX_T_FULL &&
				atomic_compare_exchange_strong(w, &v, v - AX_T_FULL + AX_T_REMOVED))
				had = true;
	}
	ax_leave(cx);
	while ((r = ax_remove(cx, tree, gen, k, n)) == AX_BUSY)
		;
	return had || r == AX_OK;
}

/* One step, if nobody else is at it; true: there is more to do. */
static bool
step(ax_ctx *cx, ax_tail *t, bool all)
{
	bool		more = true;
	ax_store   *s = enter(cx);
	uint32_t	nobody = 0;

	if (atomic_compare_exchange_strong(&t->flusher, &nobody, 1))
	{
		ax_status	r = t->kind->flush(cx, s, t, all, &more);

		atomic_store(&t->flusher, 0);
		if (r != AX_OK)
			more = true;
	}
	ax_leave(cx);
	(void) ax_poll(cx);
	return more;
}

/* Close, flush, give back.  The tree then has it all. */
static void
finish(ax_ctx *cx, ax_tail *t)
{
	ax_store   *s;

	atomic_store(&t->closed, true);
	while (step(cx, t, true))
		;
	ok(t->kind->finished(cx, t) && t->kind->live(t) == 0, "it is finished");
	s = enter(cx);
	if (ax_retire_reserve(cx, 1) == AX_OK)
		ax_retire(cx, s, t, t->size);
	ax_leave(cx);
}

static void
fresh_tree(ax_ctx *cx)
{
	if (tree)
	{
		ax_tree_close(cx, tree);
		(void) tap_quiesce(cx);
		ax_tree_release(cx, tree);
	}
	tree = ax_tree_alloc(cx);
	if (!tree || ax_tree_open(cx, tree, AX_ART_OLC, 0, 0, &gen) != AX_OK)
		abort();
}

static uint64_t
entries(ax_ctx *cx)
{
	ax_tree_info ti;
	bool		good;
	char		msg[200];

	if (tap_check(cx, tree, gen, &ti, &good, msg, sizeof(msg)) != AX_OK || !good)
	{
		tap_diag("check: %s", msg);
		return UINT64_MAX;
	}
	return ti.entries;
}

/* ---- one thread, against a model --------------------------------------------------- */

/* What a collection must be, from the model; false at the first difference. */
static bool
collect_right(ax_tail *t, shape sh, const bool *in, uint64_t n, uint64_t lo, uint64_t hi,
			  bool after, bool backward, uint32_t max)
{
	ax_tail_item items[400];
	uint8_t		kl[AX_TAIL_KEY_MAX],
				kh[AX_TAIL_KEY_MAX];
	ax_bound	l = {kl, make(kl, sh, lo), after},
				h = {kh, make(kh, sh, hi), !after};
	bool		more;
	uint32_t	got,
				k = 0;
	/* entries strictly between: "after" leaves the ends out, else they are in */
	uint64_t	from = after ? lo + 1 : lo,
				to = after ? hi : hi + 1;	/* behind the last */

	if (to > n)
		to = n;
	(void) enter(&main_cx);
	got = t->kind->collect(t, &l, &h, backward, items, max, &more);
	for (uint64_t i = from; i < to; i++)
	{
		uint64_t	x = backward ? to - 1 - (i - from) : i;

		if (!in[x])
			continue;
		if (k == got)
		{
			ax_leave(&main_cx);
			return k == max && more;
		}
		if (row_of(items[k].key, items[k].len) != x || items[k].tid != ks_tid(x))
		{
			ax_leave(&main_cx);
			return false;
		}
		k++;
	}
	ax_leave(&main_cx);
	return k == got && !more;
}

/*
 * Everything that the dispatch calls, in any order, with few and with many logs.
 */
static void
model(shape sh)
{
	uint64_t	n = tap_scaled(20000),
				seed = 11 + (uint64_t) sh,
				wrong = 0,
				count = 0;
	bool	   *in = calloc(n, sizeof(bool)),	/* is it in the index? */
			   *here = calloc(n, sizeof(bool)); /* is it in the buffer? */
	ax_tail    *t;

	fresh_tree(&main_cx);
	t = open_tail(&main_cx, sh, 0, 0);
	for (uint64_t i = 0; i < n;)
	{
		uint64_t	r = tap_rand(&seed) >> 8,
					back = i ? r / 128 % (i < 500 ? i : 500) + 1 : 0;

		switch (r % 8)
		{
			case 0:
			case 1:
			case 2:
			case 3:
				/* rising, with some left out for later */
				i += r / 16 % 3;
				if (i < n)
				{
					insert_somewhere(&main_cx, t, sh, i);
					in[i] = true;
				}
				i++;
				break;
			case 4:
				{
					ax_status	x;

					if (!back)
						break;
					x = insert(&main_cx, t, sh, i - back);
					if (x == AX_OK || x == AX_EXISTS)
						in[i - back] = true;
					else
						wrong += x != AX_CHANGED;
					break;
				}
			case 5:
				if (!back)
					break;
				wrong += delete(&main_cx, t, sh, i - back) != in[i - back];
				in[i - back] = false;
				break;
			case 6:
				if (back)
					wrong += present(&main_cx, t, sh, i - back) != in[i - back];
				break;
			default:
				if (r / 1024 % 4 == 0)
					(void) step(&main_cx, t, r / 8192 % 16 == 0);
				if (r / 64 % 64)
					break;
				/* what the buffer has now, it must also collect */
				for (uint64_t x = 0; x < n; x++)
					here[x] = x + 9000 > i && x < i && in_buffer(&main_cx, t, sh, x);
				for (int dir = 0; dir < 4; dir++)
				{
					uint64_t	lo = i < 3000 ? 0 : i - tap_rand(&seed) % 3000,
								hi = lo + tap_rand(&seed) % 3000;

					wrong += !collect_right(t, sh, here, n, lo, hi < n ? hi : n - 1, dir & 1,
											dir & 2, tap_rand(&seed) % 4 ? 400 : 7);
				}
		}
	}
	for (uint64_t i = 0; i < n; i++)
	{
		wrong += present(&main_cx, t, sh, i) != in[i];
		count += in[i];
	}
	ok(wrong == 0, "%s: %llu answers are wrong", shape_name[sh], (unsigned long long) wrong);
	finish(&main_cx, t);
	wrong = 0;
	for (uint64_t i = 0; i < n; i++)
		wrong += in_tree(&main_cx, sh, i) != in[i];
	ok(wrong == 0 && entries(&main_cx) == count, "%s: the tree has all of it", shape_name[sh]);
	free(in);
	free(here);
}

/* Is the key in front of the position (< 0), or behind it (> 0)? */
static int
side_of(const uint8_t *k, uint32_t n, const ax_bound *b)
{
	for (uint32_t i = 0; i < n && i < b->len; i++)
		if (k[i] != b->key[i])
			return k[i] < b->key[i] ? -1 : 1;
	return n < b->len || b->after ? -1 : 1;
}

/*
 * Collections between positions that mostly are no keys: beginnings of some, and what
 * lies beside them; also of entries of which little follows the tail's "off".
 */
static void
positions(shape sh, uint32_t off, uint64_t n)
{
	uint64_t	seed = 77 + off,
				wrong = 0,
				met = 0;
	ax_tail    *t;

	fresh_tree(&main_cx);
	t = open_tail(&main_cx, sh, 0, off);
	for (uint64_t i = 0; i < n; i++)
		insert_somewhere(&main_cx, t, sh, i * 7 % n);
	for (int round = 0; round < 3000; round++)
	{
		ax_tail_item items[400];
		uint8_t		key[2][AX_TAIL_KEY_MAX];
		ax_bound	b[2];
		bool		backward = tap_rand(&seed) & 1,
					more = false;
		uint32_t	max = (uint32_t[]) {0, 1, 7, 400}[tap_rand(&seed) % 4],
					got,
					want = 0;
		bool		right = true;

		for (int i = 0; i < 2; i++)
		{
			uint32_t	len = make(key[i], sh, tap_rand(&seed) % n);
			uint32_t	cut = tap_rand(&seed) % 2 ? len : (uint32_t) (tap_rand(&seed) % len);

			if (cut > 0 && tap_rand(&seed) % 4 == 0)
				key[i][cut - 1] = (uint8_t) (key[i][cut - 1] + tap_rand(&seed) % 3 - 1);
			b[i] = (ax_bound) {.key = key[i],.len = cut,.after = tap_rand(&seed) & 1};
		}
		(void) enter(&main_cx);
		got = t->kind->collect(t, &b[0], &b[1], backward, items, max, &more);
		for (uint64_t i = 0; i < n; i++)
		{
			uint8_t		k[AX_TAIL_KEY_MAX];
			uint64_t	x = backward ? n - 1 - i : i;
			uint32_t	len = make(k, sh, x);

			if (side_of(k, len, &b[0]) <= 0 || side_of(k, len, &b[1]) >= 0)
				continue;
			if (want < got && (items[want].len != len || memcmp(items[want].key, k, len) != 0))
				right = false;
			want++;
		}
		ax_leave(&main_cx);
		if (!right || got != (want < max ? want : max) || more != (want > max))
			wrong++;
		met += got;
	}
	ok(wrong == 0 && met > 1000, "%s, %u bytes in common: %llu of 3,000 collections are wrong, of %llu entries",
	   shape_name[sh], off, (unsigned long long) wrong, (unsigned long long) met);
	finish(&main_cx, t);
}

/* The TIDs of one key: all of them, the lowest, none. */
static void
lookups(void)
{
	ax_tail    *t;
	uint8_t		k[AX_TAIL_KEY_MAX];
	uint64_t	tids[1000];
	uint32_t	len,
				n;
	bool		more,
				rising = true;

	fresh_tree(&main_cx);
	t = open_tail(&main_cx, DUPLICATES, 0, 1);
	/* 600 entries of five keys, backwards within each */
	for (uint64_t key = 0; key < 5; key++)
		for (uint64_t i = 120; i-- > 0;)
			insert_somewhere(&main_cx, t, DUPLICATES, key * 300 + i);
	len = make(k, DUPLICATES, 4 * 300) - 6;
	(void) enter(&main_cx);
	n = t->kind->lookup(t, k, len, tids, 1000, &more);
	for (uint32_t i = 0; i < n; i++)
		rising = rising && ks_row(tids[i]) == 4 * 300 + i;
	ok(n == 120 && !more && rising, "a key with 120 TIDs");
	{
		/* the same, put in by turns, so that no order is in it */
		uint8_t		k2[AX_TAIL_KEY_MAX];
		bool		right = true;

		ax_leave(&main_cx);
		for (uint64_t i = 0; i < 120; i++)
			insert_somewhere(&main_cx, t, DUPLICATES, 6 * 300 + i * 7 % 120);
		(void) enter(&main_cx);
		make(k2, DUPLICATES, 6 * 300);
		for (uint32_t max = 1; max < 140; max++)
		{
			n = t->kind->lookup(t, k2, len, tids, max, &more);
			right = right && n == (max < 120 ? max : 120) && more == (max < 120);
			for (uint32_t i = 0; i < n; i++)
				right = right && ks_row(tids[i]) == 6 * 300 + i;
		}
		ok(right, "a key whose TIDs came in no order, any number of them");
	}
	n = t->kind->lookup(t, k, len, tids, 10, &more);
	ok(n == 10 && more && ks_row(tids[0]) == 4 * 300 && ks_row(tids[9]) == 4 * 300 + 9,
	   "the lowest ten of them");
	n = t->kind->lookup(t, k, len, tids, 0, &more);
	ok(n == 0 && more, "that there are some");
	ok(ax_tail_may_have(t, k, len), "it may be here, says the floor");
	make(k, DUPLICATES, 5 * 300);
	n = t->kind->lookup(t, k, len, tids, 10, &more);
	ok(n == 0 && !more, "a key that is not there");
	ax_leave(&main_cx);
	finish(&main_cx, t);
	ok(entries(&main_cx) == 720, "the tree has all 720");
}

/*
 * All that a transaction inserts has its time as a key: to look for one TID among all of
 * them must not take longer than the tree does.
 */
static void
one_key(void)
{
	ax_tail    *t;
	uint64_t	in = 0,
				last = 0;

	fresh_tree(&main_cx);
	t = open_tail(&main_cx, DUPLICATES, 0, 1);
	for (uint64_t i = 0; i < 300; i++)
	{
		if (insert(&main_cx, t, DUPLICATES, i) == AX_OK)
		{
			in++;
			last = i;
		}
		else
			insert_somewhere(&main_cx, t, DUPLICATES, i);
	}
	ok(in >= 100 && in <= 130 && in == last + 1, "of a key with 300 TIDs, %llu in the buffer",
	   (unsigned long long) in);
	finish(&main_cx, t);
	ok(entries(&main_cx) == 300, "the tree has all 300, once");
}

/* What lies below the floor, is too long or lies elsewhere goes to the tree. */
static void
beside(void)
{
	ax_tail    *t;
	uint8_t		k[600];
	uint32_t	len = make(k, NUMBERS, 1000);
	ax_store   *s;

	fresh_tree(&main_cx);
	t = open_tail(&main_cx, NUMBERS, 1000, 1);
	ok(insert(&main_cx, t, NUMBERS, 999) == AX_CHANGED, "a key below the floor");
	ok(insert(&main_cx, t, NUMBERS, 1000) == AX_OK, "the floor itself");
	ok(insert(&main_cx, t, NUMBERS, 1000) == AX_EXISTS, "once only");
	ok(!ax_tail_may_have(t, k, len - 6) == false, "the floor may be here");
	make(k, NUMBERS, 999);
	ok(!ax_tail_may_have(t, k, len - 6), "what is below is not here");
	s = enter(&main_cx);
	k[0] = 2;
	ok(t->kind->insert(&main_cx, s, t, k, len) == AX_CHANGED, "another first byte");
	memset(k, 1, sizeof(k));
	ok(t->kind->insert(&main_cx, s, t, k, AX_TAIL_KEY_MAX + 1) == AX_CHANGED, "a long key");
	ax_leave(&main_cx);

	/* without memory: neither an error nor a loss */
	ax_body(&main_cx)->fail_alloc_at = 1;
	s = enter(&main_cx);
	ok(!ax_append_new(&main_cx, s, k, 20, 0), "no memory for a buffer");
	ax_body(&main_cx)->fail_alloc_at = 2;
	ok(!ax_append_new(&main_cx, s, k, 20, 0), "no memory for its log");
	ax_body(&main_cx)->fail_alloc_at = 0;
	ax_leave(&main_cx);
	for (uint64_t i = 1001; i < 9000; i++)
	{
		/* each log that is wanted: none, for a while */
		ax_body(&main_cx)->fail_alloc_at = i % 2000 < 1000;
		if (insert(&main_cx, t, NUMBERS, i) == AX_CHANGED)
		{
			ax_body(&main_cx)->fail_alloc_at = 0;
			insert_somewhere(&main_cx, t, NUMBERS, i);
		}
		ax_body(&main_cx)->fail_alloc_at = 0;
		if (i % 10 == 0)
			(void) step(&main_cx, t, false);
	}
	finish(&main_cx, t);
	ok(entries(&main_cx) == 8000, "entries without memory for logs: all there");
}

/* ---- many ---------------------------------------------------------------------------- */

typedef struct crowd
{
	ax_tail    *t;
	shape		sh;
	uint64_t	n;
	_Atomic uint64_t next;
	_Atomic uint64_t done;		/* all below are in, or were */
	_Atomic uint64_t wrong;
	_Atomic uint64_t buffered;
	_Atomic uint8_t *state;		/* of each: 1 is in, 2 was removed */
} crowd;

static void
worker(void *arg, int me)
{
	crowd	   *c = arg;
	ax_ctx	   *cx = aligned_alloc(64, sizeof(ax_ctx));
	uint64_t	seed = 77 + (uint64_t) me,
				mine = 0;

	if (!cx)
		abort();
	ax_attach(cx, area, me + 1, me + 1, &ax_port_default);
	for (;;)
	{
		uint64_t	i = atomic_fetch_add(&c->next, 1),
					r = tap_rand(&seed) >> 5,
					back;
		uint8_t		was;

		if (i >= c->n)
			break;
		if (insert(cx, c->t, c->sh, i) == AX_OK)
			atomic_fetch_add(&c->buffered, 1);
		else
			insert_somewhere(cx, c->t, c->sh, i);
		atomic_store(&c->state[i], 1);
		if (++mine % 16 == 0)
			(void) step(cx, c->t, false);
		/* anybody's, of late or long ago */
		back = r % 4 ? r / 4 % 64 : r / 4 % 5000;
		if (back > i)
			continue;
		was = atomic_load(&c->state[i - back]);
		if (r / 65536 % 4 == 0)
		{
			/* whoever has it to himself */
			if (was == 1 && atomic_compare_exchange_strong(&c->state[i - back], &was, 3))
			{
				if (!delete(cx, c->t, c->sh, i - back) || present(cx, c->t, c->sh, i - back))
					atomic_fetch_add(&c->wrong, 1);
				atomic_store(&c->state[i - back], 2);
			}
		}
		else if (was == 1 || was == 2)
		{
			bool		is = present(cx, c->t, c->sh, i - back);

			/* unless it was removed meanwhile */
			if (is != (was == 1) && atomic_load(&c->state[i - back]) == was)
				atomic_fetch_add(&c->wrong, 1);
		}
	}
	ax_detach(cx);
	free(cx);
}

/* An ordered reader beside them: rising, and nothing missing that stays. */
static void
many(shape sh)
{
	crowd		c = {.sh = sh, .n = tap_scaled(300000)};
	uint64_t	wrong = 0,
				count = 0;

	fresh_tree(&main_cx);
	c.t = open_tail(&main_cx, sh, 0, 0);
	c.state = calloc(c.n, 1);
	tap_threads(THREADS, worker, &c);
	ok(c.wrong == 0, "%s, many: %llu answers are wrong", shape_name[sh],
	   (unsigned long long) c.wrong);
	ok(c.buffered > c.n / 20, "%s, many: %llu of %llu were buffered", shape_name[sh],
	   (unsigned long long) c.buffered, (unsigned long long) c.n);
	for (uint64_t i = 0; i < c.n; i++)
	{
		bool		in = c.state[i] == 1;

		wrong += present(&main_cx, c.t, sh, i) != in;
		count += in;
	}
	finish(&main_cx, c.t);
	for (uint64_t i = 0; i < c.n; i++)
		wrong += in_tree(&main_cx, sh, i) != (c.state[i] == 1);
	ok(wrong == 0 && entries(&main_cx) == count, "%s, many: the tree has what stayed, once",
	   shape_name[sh]);
	free((void *) c.state);
}

/* The same entries by all: exactly one puts each in. */
typedef struct race
{
	ax_tail    *t;
	uint64_t	n;
	_Atomic uint64_t won;
} race;

static void
racer(void *arg, int me)
{
	race	   *r = arg;
	ax_ctx	   *cx = aligned_alloc(64, sizeof(ax_ctx));

	if (!cx)
		abort();
	ax_attach(cx, area, me + 1, me + 1, &ax_port_default);
	for (uint64_t i = 0; i < r->n; i++)
		if (insert(cx, r->t, NUMBERS, i) == AX_OK)
			atomic_fetch_add(&r->won, 1);
	ax_detach(cx);
	free(cx);
}

static void
same(void)
{
	race		r = {.n = 500};

	for (int i = 0; i < (int) tap_scaled(50); i++)
	{
		if (i % 10 == 0)
			fresh_tree(&main_cx);
		r.t = open_tail(&main_cx, NUMBERS, 0, 1);
		atomic_store(&r.won, 0);
		tap_threads(4, racer, &r);
		if (r.won != r.n || r.t->kind->live(r.t) != r.n)
			break;
		atomic_store(&r.t->closed, true);
		while (step(&main_cx, r.t, true))
			;
		if (!r.t->kind->finished(&main_cx, r.t))
			break;
	}
	ok(r.won == r.n, "of four who insert the same entry one wins: %llu of %llu",
	   (unsigned long long) r.won, (unsigned long long) r.n);
}

/* ---- pause points ---------------------------------------------------------------------- */

static const char *stop_at;
static _Atomic int stopped,
			go_on;
static _Thread_local bool may_stop;

static void
hook(const char *name)
{
	if (!may_stop || strcmp(name, stop_at) != 0)
		return;
	may_stop = false;
	atomic_store(&stopped, 1);
	for (int i = 0; i < 100000 && !atomic_load(&go_on); i++)
		usleep(100);
}

typedef struct job
{
	void		(*fn) (struct job *j, ax_ctx *cx);
	ax_tail    *t;
	shape		sh;
	uint64_t	i;
	ax_status	r;
	bool		b;
	int			slot;			/* beside another job: 1 */
	ax_ctx		cx;
} job;

static void *
job_run(void *arg)
{
	job		   *j = arg;

	ax_attach(&j->cx, area, 2 + j->slot, 2, &ax_port_default);
	may_stop = true;
	j->fn(j, &j->cx);
	ax_detach(&j->cx);
	return NULL;
}

/* Begin fn in a thread of its own and wait until it is at the point. */
static pthread_t
pause_in(job *j, void (*fn) (job *j, ax_ctx *cx), const char *point)
{
	pthread_t	th;

	stop_at = point;
	atomic_store(&stopped, 0);
	atomic_store(&go_on, 0);
	tap_point_hook = hook;
	j->fn = fn;
	pthread_create(&th, NULL, job_run, j);
	for (int i = 0; i < 100000 && !atomic_load(&stopped); i++)
		usleep(100);
	ok(atomic_load(&stopped), "somebody is at %s", point);
	return th;
}

static void
resume(pthread_t th)
{
	atomic_store(&go_on, 1);
	pthread_join(th, NULL);
	tap_point_hook = NULL;
}

/* The main thread is at a point: let the other one go on, to its end. */
static pthread_t in_hook;
static bool hooked;

static void
resume_at_last(const char *name)
{
	if (hooked || strcmp(name, "append.last") != 0)
		return;
	hooked = true;
	atomic_store(&go_on, 1);
	pthread_join(in_hook, NULL);
}

static void
job_insert(job *j, ax_ctx *cx)
{
	j->r = insert(cx, j->t, j->sh, j->i);
}

static void
job_flush(job *j, ax_ctx *cx)
{
	for (int i = 0; i < 3; i++)
		j->b = step(cx, j->t, true);
}

/* The main thread has put a log in front: another flushes the one behind, and inserts. */
static void
job_overtake(job *j, ax_ctx *cx)
{
	while (step(cx, j->t, true))
		;
	job_insert(j, cx);
}

static job *overtaker;

static void
overtake_at_renewed(const char *name)
{
	pthread_t	th;

	if (hooked || strcmp(name, "append.renewed") != 0)
		return;
	hooked = true;
	pthread_create(&th, NULL, job_run, overtaker);
	pthread_join(th, NULL);
}

static void
paused(void)
{
	job		   *j = aligned_alloc(64, sizeof(job));
	pthread_t	th;
	uint64_t	n;

	/* seal against append: what is not linked yet goes to another log */
	fresh_tree(&main_cx);
	memset(j, 0, sizeof(*j));
	j->t = open_tail(&main_cx, NUMBERS, 0, 1);
	for (uint64_t i = 0; i < 100; i++)
		insert(&main_cx, j->t, NUMBERS, i);
	j->i = 100;
	th = pause_in(j, job_insert, "append.written");
	ok(!in_buffer(&main_cx, j->t, NUMBERS, 100), "an entry that is not linked is not there");
	for (int i = 0; i < 20; i++)
		(void) step(&main_cx, j->t, true);
	ok(entries(&main_cx) == 100, "a flush does not wait for it");
	resume(th);
	ok(j->r == AX_OK && in_buffer(&main_cx, j->t, NUMBERS, 100), "it goes to a new log");
	ok(entries(&main_cx) == 100, "and not to the one that was flushed");
	finish(&main_cx, j->t);
	ok(entries(&main_cx) == 101, "which would never come into the tree");

	/* append against append: who is second finds the first one's entry, though he looked before */
	memset(j, 0, sizeof(*j));
	j->t = open_tail(&main_cx, NUMBERS, 0, 1);
	j->i = 100;
	th = pause_in(j, job_insert, "append.written");
	ok(insert(&main_cx, j->t, NUMBERS, 100) == AX_OK, "the same entry, by another");
	resume(th);
	ok(j->r == AX_EXISTS && j->t->kind->live(j->t) == 1, "is there once");
	finish(&main_cx, j->t);
	ok(entries(&main_cx) == 101, "and comes into the tree once");

	/* .. and links himself to another entry of his bucket that came meanwhile */
	memset(j, 0, sizeof(*j));
	j->t = open_tail(&main_cx, DUPLICATES, 0, 1);
	j->sh = DUPLICATES;
	j->i = 10;
	th = pause_in(j, job_insert, "append.written");
	ok(insert(&main_cx, j->t, DUPLICATES, 11) == AX_OK, "another entry of the same key");
	resume(th);
	ok(j->r == AX_OK && in_buffer(&main_cx, j->t, DUPLICATES, 10) &&
	   in_buffer(&main_cx, j->t, DUPLICATES, 11), "both are there");
	finish(&main_cx, j->t);

	/* half sealed: some buckets take entries, some do not, and all are found */
	memset(j, 0, sizeof(*j));
	j->t = open_tail(&main_cx, NUMBERS, 0, 1);
	for (uint64_t i = 200; i < 300; i++)
		insert(&main_cx, j->t, NUMBERS, i);
	th = pause_in(j, job_flush, "append.sealing");
	n = 0;
	for (uint64_t i = 300; i < 400; i++)
		if (insert(&main_cx, j->t, NUMBERS, i) == AX_OK)
			n += in_buffer(&main_cx, j->t, NUMBERS, i);
	ok(n == 100, "a log that is being sealed: every entry has its place");
	resume(th);
	n = 0;
	for (uint64_t i = 200; i < 400; i++)
		n += present(&main_cx, j->t, NUMBERS, i);
	ok(n == 200, "and keeps it");
	finish(&main_cx, j->t);

	/* flush against readers and removers */
	fresh_tree(&main_cx);
	memset(j, 0, sizeof(*j));
	j->t = open_tail(&main_cx, NUMBERS, 0, 1);
	for (uint64_t i = 0; i < 100; i++)
		insert(&main_cx, j->t, NUMBERS, i);
	th = pause_in(j, job_flush, "tail.flushing");
	n = 0;
	for (uint64_t i = 0; i < 100; i++)
		n += in_buffer(&main_cx, j->t, NUMBERS, i) && !in_tree(&main_cx, NUMBERS, i);
	ok(n == 100, "entries on their way are still seen");
	{
		ax_tail_item items[200];
		bool		more;
		uint32_t	got;

		(void) enter(&main_cx);
		got = j->t->kind->collect(j->t, &(ax_bound) {NULL, 0, false}, &(ax_bound) {NULL, 0, true},
								  true, items, 200, &more);
		ok(got == 100 && !more && row_of(items[0].key, items[0].len) == 99, "and collected");
		ax_leave(&main_cx);
	}
	ok(delete(&main_cx, j->t, NUMBERS, 99), "one that is not on its way can be removed");
	resume(th);
	while (step(&main_cx, j->t, true))
		;
	ok(entries(&main_cx) == 99 && !present(&main_cx, j->t, NUMBERS, 99) &&
	   present(&main_cx, j->t, NUMBERS, 98), "and the others are in the tree");
	/* what was flushed and then removed from the tree is gone, though it lies here still */
	ok(delete(&main_cx, j->t, NUMBERS, 5) && !present(&main_cx, j->t, NUMBERS, 5),
	   "what was flushed and removed is not found in the buffer");
	finish(&main_cx, j->t);

	/* flush against a removal that the tree then cannot do: the entry stays */
	fresh_tree(&main_cx);
	memset(j, 0, sizeof(*j));
	j->t = open_tail(&main_cx, NUMBERS, 0, 1);
	for (uint64_t i = 0; i < 100; i++)
		insert(&main_cx, j->t, NUMBERS, i);
	{
		uint8_t		k[AX_TAIL_KEY_MAX];
		uint32_t	len = make(k, NUMBERS, 30);
		ax_tail_word *w = j->t->kind->find(j->t, k, len, NULL);

		atomic_store(w, atomic_load(w) - AX_T_FULL + AX_T_CANCELLING);
		atomic_store(&j->t->closed, true);
		for (int i = 0; i < 20; i++)
			(void) step(&main_cx, j->t, true);
		ok(!j->t->kind->finished(&main_cx, j->t) && in_buffer(&main_cx, j->t, NUMBERS, 30) &&
		   entries(&main_cx) == 30, "a removal under way holds the flush up");
		atomic_store(w, atomic_load(w) - AX_T_CANCELLING + AX_T_FULL);
	}
	finish(&main_cx, j->t);
	ok(entries(&main_cx) == 100, "and what was not removed comes into the tree");

	/* two make a new log at once: one is thrown away, nothing is lost */
	fresh_tree(&main_cx);
	memset(j, 0, sizeof(*j));
	j->t = open_tail(&main_cx, NUMBERS, 0, 1);
	for (uint64_t i = 0; i < 100; i++)
		insert(&main_cx, j->t, NUMBERS, i);
	while (step(&main_cx, j->t, true))
		;
	j->i = 101;
	th = pause_in(j, job_insert, "append.renew");
	ok(insert(&main_cx, j->t, NUMBERS, 100) == AX_OK, "a new log while another makes one");
	resume(th);
	ok(j->r == AX_OK && in_buffer(&main_cx, j->t, NUMBERS, 100) &&
	   in_buffer(&main_cx, j->t, NUMBERS, 101), "both keys are in");

	/* the same, when the tail is closed meanwhile: no log is left behind */
	while (step(&main_cx, j->t, true))
		;
	j->i = 102;
	th = pause_in(j, job_insert, "append.renew");
	atomic_store(&j->t->closed, true);
	while (step(&main_cx, j->t, true))
		;
	ok(j->t->kind->finished(&main_cx, j->t), "finished while somebody has a new log in hand");
	resume(th);
	ok(j->r == AX_CHANGED && j->t->kind->finished(&main_cx, j->t), "his key goes to the tree");

	/* or he is faster than who takes that log for the last one */
	fresh_tree(&main_cx);
	memset(j, 0, sizeof(*j));
	j->t = open_tail(&main_cx, NUMBERS, 0, 1);
	insert(&main_cx, j->t, NUMBERS, 100);
	while (step(&main_cx, j->t, true))
		;
	j->i = 101;
	th = pause_in(j, job_insert, "append.renew");
	atomic_store(&j->t->closed, true);
	in_hook = th;
	tap_point_hook = resume_at_last;
	while (step(&main_cx, j->t, true))
		;
	tap_point_hook = NULL;
	ok(j->r == AX_OK, "a new log in front of the last one, in the last moment");
	ok(j->t->kind->finished(&main_cx, j->t) && in_tree(&main_cx, NUMBERS, 101) &&
	   entries(&main_cx) == 2, "is flushed, too");

	/* two have just put a log in front, and it is flushed before they go on */
	fresh_tree(&main_cx);
	memset(j, 0, sizeof(*j));
	j->t = open_tail(&main_cx, NUMBERS, 0, 1);
	insert(&main_cx, j->t, NUMBERS, 100);
	while (step(&main_cx, j->t, true))
		;
	j->i = 104;
	th = pause_in(j, job_insert, "append.renewed");
	while (step(&main_cx, j->t, true))
		;
	overtaker = aligned_alloc(64, sizeof(job));
	memset(overtaker, 0, sizeof(job));
	overtaker->t = j->t;
	overtaker->fn = job_overtake;
	overtaker->slot = 1;
	overtaker->i = 103;
	hooked = false;
	tap_point_hook = overtake_at_renewed;
	ok(insert(&main_cx, j->t, NUMBERS, 102) == AX_OK && hooked, "a log that is flushed at once");
	ok(overtaker->r == AX_OK, "does not make the number of logs wrong");
	free(overtaker);
	resume(th);
	ok(j->r == AX_OK, "and all keys go into the buffer");
	finish(&main_cx, j->t);
	ok(entries(&main_cx) == 4, "and into the tree");
	free(j);
}

int
main(void)
{
	area = tap_area((size_t) 256 << 20, 16, 1 << 20);
	ax_attach(&main_cx, area, 0, 1, &ax_port_default);
	for (int sh = 0; sh < SHAPES; sh++)
		model((shape) sh);
	positions(NUMBERS, 0, 250);
	positions(NUMBERS, 1, 250);
	positions(DUPLICATES, 9, 120);
	positions(DUPLICATES, 1, 120);
	positions(TEXTS, 19, 250);
	positions(TEXTS, 25, 250);
	lookups();
	one_key();
	beside();
	same();
	for (int sh = 0; sh < SHAPES; sh++)
		many((shape) sh);
	paused();
	ax_tree_close(&main_cx, tree);
	ok(tap_quiesce(&main_cx), "everything is given back");
	ax_detach(&main_cx);
	return tap_done();
}
