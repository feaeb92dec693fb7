/*
 * test_tail.c
 *	  The tail buffer by one process: every call against the model while keys
 *	  rise, at many places of the key space; what "auto" makes of patterns of keys.
 *
 *	  test_tail [rounds [seed [kind]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static ax_ctx cx;
static ax_tree *tree;

static ax_tree_info
info(model *m)
{
	ax_tree_info i;

	if (ax_info(m->cx, m->t, m->gen, &i) != AX_OK)
		mt_die(m, "no counters");
	return i;
}

static void
flush_some(model *m, int steps)
{
	bool		more = true;

	while (more && steps-- > 0)
	{
		ax_status	r = ax_tail_flush(m->cx, m->t, m->gen, &more);

		if (r != AX_OK && r != AX_BUSY)
			mt_die(m, "flush: status %d", (int) r);
	}
}

/* Around a place that moves on: mostly new keys, but all else, too. */
static void
rise(model *m, uint64_t at, uint64_t n)
{
	for (uint64_t x = 0; x < n; x++)
	{
		uint64_t	r = tap_rand(&m->seed);
		uint64_t	near = at + (r >> 20) % 24;
		uint64_t	i;

		near = near > 12 ? near - 12 : 0;
		i = near < m->n ? near : m->n - 1;
		if (r % 8 < 3 && at < m->n)
			mt_insert(m, at++);
		else if (r % 64 == 3)
			at += (r >> 8) % 50;	/* a gap */
		else if (r % 16 == 4)
			mt_insert(m, i);
		else if (r % 16 == 5)
			mt_remove(m, i);
		else if (r % 8 == 6)
			mt_lookup(m, i);
		else if (r % 8 == 7)
			mt_contains(m, i);
		else if (r % 256 == 12)
			mt_scan_near(m, i, (r >> 8) % 300, (r >> 17) & 1);
		else if (r % 1024 == 20)
			mt_scan(m, (r >> 17) & 1);
		else if (r % 1024 == 28)
			flush_some(m, (int) (r >> 10) % 4 + 1);
		else if (r % 1024 == 36)
			mt_remove(m, (r >> 10) % m->n);
	}
}

static void
one_kind(keykind kind, uint64_t seed)
{
	model		m;
	uint64_t	n = kind == KK_LONG ? tap_scaled(200) : kind == KK_MIDDLE || kind == KK_NESTED ?
		tap_scaled(1000) : tap_scaled(5000);
	uint64_t	in = 0;
	ax_memory_info before,
				after;

	ax_memory(&cx, &before);
	mt_universe(&m, kind, n, seed);
	mt_open(&m, &cx, tree);
	if (seed & 1)
		mt_load(&m, 20, 90);
	for (int k = 0; k < 10; k++)
	{
		/* shut, and opened at another place, the old one full as it may be */
		mt_tail(&m, AX_TAIL_OFF);
		if (tap_rand(&m.seed) & 1)
			flush_some(&m, 1000);
		mt_tail(&m, k % 4 == 3 ? AX_TAIL_AUTO : AX_TAIL_ON);
		rise(&m, k == 0 ? 0 : tap_rand(&m.seed) % m.n, n / 2 + 100);
		if (k % 3 == 0)
			mt_compare_all(&m);
		if (k % 3 == 1)
			mt_check(&m, "after some rising");
	}
	in = info(&m).tail_inserts;
	flush_some(&m, 1000);
	if (info(&m).tail_entries)
		mt_die(&m, "flushed, and %llu are left", (unsigned long long) info(&m).tail_entries);
	mt_check(&m, "when flushed");
	mt_compare_all(&m);
	for (uint64_t i = 0; i < m.n; i++)
		if (m.in[i])
			mt_remove(&m, i);
	if (info(&m).entries)
		mt_die(&m, "all removed, and %llu are left", (unsigned long long) info(&m).entries);
	mt_close(&m);
	(void) tap_quiesce(&cx);
	ax_memory(&cx, &after);
	ok(kind != KK_DENSE || in > n / 10, "%s: as the model (%llu through a buffer)", m.name,
	   (unsigned long long) in);
	ok(after.used_bytes == before.used_bytes, "%s: memory is back", m.name);
	mt_free(&m);
}

/* ---- what "auto" makes of patterns ---- */

typedef enum pattern
{
	SEQUENCE, GAPS, TENS, CACHED, DISORDER, SECOND_COLUMN, INT4, TIMES, RANDOM, FALLING, JUMPS, PATTERNS
} pattern;

static const struct
{
	const char *name;
	const char *mode;
	int			in;				/* per cent that go into the buffer, at least */
}			expected[PATTERNS] = {
	{"a sequence", "window", 80}, {"with gaps", "window", 80}, {"in steps of ten", "window", 80},
	{"64 sessions with a cache of 32", "window", 50}, {"slightly out of order", "window", 80},
	{"second column behind a constant", "window", 80}, {"four bytes", "window", 80},
	{"times, 20 each", "append", 50}, {"random", "off", 0}, {"falling", "off", 0},
	{"a sequence that jumps", "window", 70}
};

static uint64_t
value(pattern p, uint64_t i, uint64_t *seed)
{
	uint64_t	r = tap_rand(seed);

	switch (p)
	{
		case GAPS:
			return i * 3 + (r % 50 == 0) + i / 100 * 7;
		case TENS:
			return i * 10;
		case CACHED:
			/* the sessions in turn, each through its own numbers */
			return i / 2048 * 2048 + i % 64 * 32 + i / 64 % 32;
		case DISORDER:
			return (i / 32 * 32 + i % 32 * 13 % 32) * 2 + r % 2;
		case TIMES:
			return UINT64_C(700000000000000) + i / 20 * 137;
		case RANDOM:
			return r;
		case FALLING:
			return UINT64_C(1) << 40 | (1000000 - i);
		case JUMPS:
			return i + (i >= 30000 ? UINT64_C(1) << 33 : 0);
		default:
			return i;
	}
}

static void
one_pattern(pattern p)
{
	uint64_t	gen,
				seed = 7,
				n = 60000,
				beside;
	ax_tree_info i,
				half;
	uint8_t		k[30];
	uint32_t	len = 0;
	bool		good = true;
	char		msg[200] = "";

	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK ||
		ax_tree_set_tail(&cx, tree, gen, AX_TAIL_AUTO) != AX_OK)
		abort();
	memset(&half, 0, sizeof(half));
	for (uint64_t x = 0; x < n; x++)
	{
		uint64_t	v = value(p, x, &seed);
		int			bytes = p == INT4 ? 4 : 8;

		len = 0;
		k[len++] = 1;
		if (p == SECOND_COLUMN)
		{
			memcpy(k + len, "tenant\0\0\1", 9);
			len += 9;
		}
		for (int b = bytes - 1; b >= 0; b--)
			k[len++] = (uint8_t) (v >> (8 * b));
		for (int b = 5; b >= 0; b--)
			k[len++] = (uint8_t) ((x / 200 << 16 | (x % 200 + 1)) >> (8 * b));
		good &= ax_insert(&cx, tree, gen, k, len) == AX_OK;
		if (x == n / 2)
			(void) ax_info(&cx, tree, gen, &half);
	}
	(void) ax_info(&cx, tree, gen, &i);
	beside = n - i.tail_inserts;
	ok(good && strcmp(i.tail_mode, expected[p].mode) == 0 &&
	   i.tail_inserts * 100 >= n * (uint64_t) expected[p].in,
	   "auto, %s: %s, %llu of %llu inserts through it (asked for: %s, %d per cent)", expected[p].name,
	   i.tail_mode, (unsigned long long) i.tail_inserts, (unsigned long long) n, expected[p].mode,
	   expected[p].in);
	ok(i.entries == n && i.tail_entries <= 10000 && i.tail_bypassed <= beside,
	   "%llu entries, %llu of them in the buffer", (unsigned long long) i.entries,
	   (unsigned long long) i.tail_entries);
	ok(tap_check(&cx, tree, gen, &i, &good, msg, sizeof(msg)) == AX_OK && good && i.entries == n &&
	   i.tail_entries == 0, "the check finds all in the tree %s", msg);
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* Keys that rose, and then are random: the buffer goes. */
static void
pattern_ends(void)
{
	uint64_t	gen,
				seed = 9;
	ax_tree_info i;
	uint8_t		k[15] = {1};

	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK ||
		ax_tree_set_tail(&cx, tree, gen, AX_TAIL_AUTO) != AX_OK)
		abort();
	for (int part = 0; part < 2; part++)
	{
		for (uint64_t x = 0; x < 20000; x++)
		{
			uint64_t	v = part ? tap_rand(&seed) : x;

			for (int b = 0; b < 8; b++)
				k[1 + b] = (uint8_t) (v >> (56 - 8 * b));
			k[14] = (uint8_t) (part + 1);
			(void) ax_insert(&cx, tree, gen, k, 15);
		}
		(void) ax_info(&cx, tree, gen, &i);
		ok(strcmp(i.tail_mode, part ? "off" : "window") == 0, "auto, keys %s: %s", part ? "no longer rise" : "rise",
		   i.tail_mode);
	}
	ok(i.tail_entries == 0 && i.entries == 40000, "and what was in it is in the tree");
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* A buffer that was closed and is empty gives its memory back, again and again. */
static void
given_back(void)
{
	uint64_t	gen,
				first = 0;
	ax_tree_info i;
	uint8_t		k[15] = {1};
	int			buffers = 0;

	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK)
		abort();
	for (int round = 0; round < 30; round++)
	{
		bool		had = false,
					more = true;

		if (ax_tree_set_tail(&cx, tree, gen, AX_TAIL_ON) != AX_OK)
			abort();
		for (int in = 1; in >= 0; in--)
		{
			for (int x = 0; x < 400; x++)
			{
				k[7] = (uint8_t) (x >> 8);
				k[8] = (uint8_t) x;
				k[14] = 1;
				(void) (in ? ax_insert(&cx, tree, gen, k, 15) : ax_remove(&cx, tree, gen, k, 15));
			}
			if (in && ax_tail_close(&cx, tree, gen, &had) == AX_OK)
				buffers += had;
			while (in && more && ax_tail_flush(&cx, tree, gen, &more) == AX_OK)
				;
		}
		(void) tap_quiesce(&cx);
		(void) ax_info(&cx, tree, gen, &i);
		/* what the tree itself keeps when it is empty differs by some kB, with the time others took */
		if (round < 5 && i.live_bytes > first)
			first = i.live_bytes;
	}
	ok(buffers == 30 && i.live_bytes < first + 4096, "%d buffers were closed: %llu bytes after the first ones, %llu after the last",
	   buffers, (unsigned long long) first, (unsigned long long) i.live_bytes);
	ax_tree_close(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* A tree that rests gives its buffer up: one that "auto" opened and nobody used between two looks, or at once. */
static void
settled(void)
{
	static const struct
	{
		ax_tail_option option;
		bool		all;
		int			looks;
		const char *mode;
	}			t[] = {
		{AX_TAIL_AUTO, false, 1, "window"}, {AX_TAIL_AUTO, false, 2, "off"}, {AX_TAIL_AUTO, true, 1, "off"}, {AX_TAIL_ON, true, 2, "window"}
	};
	model		m;

	mt_universe(&m, KK_DENSE, 20000, 7);
	for (size_t k = 0; k < sizeof(t) / sizeof(*t); k++)
	{
		ax_tree_info was,
					is;
		bool		ours = true;

		mt_open(&m, &cx, tree);
		mt_tail(&m, t[k].option);
		for (uint64_t i = 0; i < m.n; i++)
			mt_insert(&m, i);
		was = info(&m);
		for (int i = 0; i < t[k].looks; i++)
			ours &= ax_settle(&cx, tree, m.gen, t[k].all) == AX_OK;
		is = info(&m);
		ok(ours && was.tail_entries > 0 && strcmp(is.tail_mode, t[k].mode) == 0 &&
		   is.tail_entries == (strcmp(is.tail_mode, "off") == 0 ? 0 : was.tail_entries) && is.entries == m.n,
		   "option %d, %s: after %d looks the buffer is %s, with %llu of %llu entries", (int) t[k].option,
		   t[k].all ? "all" : "not all", t[k].looks, is.tail_mode, (unsigned long long) is.tail_entries,
		   (unsigned long long) was.tail_entries);
		mt_check(&m, "settled");
		mt_compare_all(&m);
		mt_close(&m);
	}
	mt_free(&m);
	(void) tap_quiesce(&cx);
}

/* Keys in the tree that a scan of buffer and tree has no room for, between those in the buffer. */
static void
long_ones(void)
{
	const uint64_t n = 400;
	mkey	   *key = malloc(n * sizeof(*key));
	model		m;
	uint64_t	in,
				seed = 3;

	for (uint64_t i = 0; i < n; i++)
	{
		const mkey	x = mt_make_key(KK_DENSE, i, n, &seed);
		const uint32_t value = x.len - AX_TID_BYTES,
					more = i % 40 ? 0 : 5000;
		uint8_t    *k = malloc(x.len + more);

		memcpy(k, x.p, value);
		memset(k + value, 'x', more);
		memcpy(k + value + more, x.p + value, AX_TID_BYTES);
		free((void *) (uintptr_t) x.p);
		key[i] = (mkey) {k, x.len + more};
	}
	mt_universe_of(&m, "long and short", key, n);
	m.seed = seed;
	mt_open(&m, &cx, tree);
	for (uint64_t i = 0; i < m.n; i += 40)
		mt_insert(&m, i);
	mt_tail(&m, AX_TAIL_ON);
	for (uint64_t i = 0; i < m.n; i++)
		if (i % 40)
			mt_insert(&m, i);
	in = info(&m).tail_entries;
	mt_scan(&m, false);
	mt_scan(&m, true);
	for (uint64_t i = 0; i < m.n; i += 7)
		mt_scan_near(&m, i, 100, i & 1);
	mt_compare_all(&m);
	ok(in > 100, "long keys in the tree, among %llu in the buffer: scans as the model", (unsigned long long) in);
	flush_some(&m, 1000);
	mt_compare_all(&m);
	mt_check(&m, "long keys, flushed");
	mt_close(&m);
	mt_free(&m);
	(void) tap_quiesce(&cx);
}

int
main(int argc, char **argv)
{
	ax_area    *a = tap_area((size_t) 512 << 20, 4, 1 << 20);
	int			rounds = argc > 1 ? atoi(argv[1]) : 2;
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	int			only = argc > 3 ? atoi(argv[3]) : -1;

	ax_attach(&cx, a, 0, 1, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	for (int p = 0; p < PATTERNS && only < 0; p++)
		one_pattern((pattern) p);
	if (only < 0)
	{
		pattern_ends();
		given_back();
		settled();
		long_ones();
	}
	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < KK_COUNT; k++)
			if (only < 0 || k == only)
				one_kind((keykind) k, seed + (uint64_t) i);
	ax_tree_release(&cx, tree);
	ax_detach(&cx);
	return tap_done();
}
