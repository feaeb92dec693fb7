/*
 * model.c
 *	  See model.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const keykind_name[KK_COUNT] = {
	"dense", "random8", "step64k", "step997", "uuid", "shared", "lengths",
	"middle", "dups", "dups_random", "two", "tiny", "nested", "long", "pair"
};

void
mt_die(model *m, const char *fmt,...)
{
	char		b[500];
	va_list		ap;

	va_start(ap, fmt);
	vsnprintf(b, sizeof(b), fmt, ap);
	va_end(ap);
	ok(false, "%s: %s", m->name, b);
	(void) tap_done();
	abort();
}

static void *
xalloc(size_t n)
{
	void	   *p = malloc(n ? n : 1);

	if (!p)
		abort();
	return p;
}

/* Built so that every operation latches: then batches end at every node. */
#ifdef AX_MAX_RESTARTS
static const bool pessimistic = true;
#else
static const bool pessimistic = false;
#endif

/* ---- keys ------------------------------------------------------------------ */

static void
put_be(uint8_t *p, uint64_t x, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (uint8_t) (x >> (8 * (n - 1 - i)));
}

static void
put_heap_tid(uint8_t *p, uint64_t i)
{
	put_be(p, (i / 200) << 16 | (i % 200 + 1), 6);
}

/* bytea's encoding: 00 becomes 00 FF, the end is 00 00. */
static uint32_t
put_escaped(uint8_t *out, const uint8_t *p, uint32_t n)
{
	uint32_t	k = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		out[k++] = p[i];
		if (p[i] == 0)
			out[k++] = 0xFF;
	}
	out[k++] = 0;
	out[k++] = 0;
	return k;
}

static uint8_t
some_byte(uint64_t *rng)
{
	uint64_t	r = tap_rand(rng);

	switch (r & 3)
	{
		case 0:
			return 0;
		case 1:
			return 0xFF;
		case 2:
			return 'a';
		default:
			return (uint8_t) (r >> 8);
	}
}

mkey
mt_make_key(keykind kind, uint64_t i, uint64_t want, uint64_t *rng)
{
	static const uint32_t around[] = {12, 13, 32, 33, 44, 48, 49, 76, 255, 256, 300, 1000};
	static const uint32_t longs[] = {1000, 1024, 2000, 4096, 5000, 20000, 33000, 100000};
	uint8_t		raw[1400];
	uint32_t	n = 0;
	uint8_t    *k;
	uint64_t	r = tap_rand(rng);
	uint64_t	tid = i;
	uint32_t	len;

	if (kind == KK_LONG)
	{
		len = longs[r % 8] + (uint32_t) (r >> 8) % 5;
		k = xalloc(len + 6);
		/* long shared prefixes, and differences early, late and at the end */
		for (uint32_t x = 0; x < len; x++)
			k[x] = (uint8_t) (x * 7 % 200 + 1);
		k[len - 1] = 0;
		for (int x = (int) (r >> 16) % 3; x >= 0; x--)
		{
			uint64_t	q = tap_rand(rng);
			uint32_t	at = q & 1 ? (uint32_t) (q >> 8) % (len - 1) : (q & 2 ? len - 2 : 700);

			k[at] = (uint8_t) ((q >> 40) % 3 + 1);
		}
		put_heap_tid(k + len, i);
		return (mkey) {k, len + 6};
	}
	k = xalloc(2 * sizeof(raw) + 64);
	k[0] = 1;
	len = 1;
	switch (kind)
	{
		case KK_DENSE:
			put_be(k + 1, i ^ UINT64_C(1) << 63, 8);
			len = 9;
			break;
		case KK_RANDOM8:
			put_be(k + 1, r, 8);
			len = 9;
			break;
		case KK_STEP64K:
			put_be(k + 1, i << 16, 8);
			len = 9;
			break;
		case KK_STEP997:
			put_be(k + 1, i * 997, 8);
			len = 9;
			break;
		case KK_UUID:
			put_be(k, r, 8);
			put_be(k + 8, tap_rand(rng), 8);
			len = 16;
			break;
		case KK_SHARED:
			n = (uint32_t) (r >> 32) % 81;
			for (uint32_t x = 0; x < n; x++)
				raw[x] = (uint8_t) ("\0\xff" "abcdef"[(x * x + x / 7) % 8]);
			for (int x = (int) (r >> 50) % 6; x >= 0; x--)
				raw[n++] = some_byte(rng);
			len += put_escaped(k + 1, raw, n);
			break;
		case KK_LENGTHS:
			n = around[r % 12] + (uint32_t) (r >> 8) % 5 - 2;
			memset(raw, (int) (r >> 16) % 2 ? 'x' : 0xFF, n);
			for (int x = (int) (r >> 24) % 3; x >= 0; x--)
				raw[tap_rand(rng) % n] = some_byte(rng);
			if ((r >> 32) % 4 == 0)
				raw[n - 1] = some_byte(rng);
			len += put_escaped(k + 1, raw, n);
			break;
		case KK_MIDDLE:
			n = 100 + (uint32_t) (r >> 8) % 1100;
			memset(raw, 'm', n);
			raw[(r >> 40) % 4] = (uint8_t) ('a' + (r >> 44) % 26);
			raw[n - 1 - (r >> 50) % 90] = (uint8_t) (r >> 56);
			len += put_escaped(k + 1, raw, n);
			break;
		case KK_DUPS:
		case KK_DUPS_RANDOM:
			if (i % 3 == 0)
			{
				put_be(k + 1, r % 3, 8);
				len = 9;
			}
			else
			{
				n = (uint32_t) sprintf((char *) raw, "value number %d%s", (int) (r % 5),
									   r & 64 ? " and some more that is the same" : "");
				k[0] = 2;
				len += put_escaped(k + 1, raw, n);
			}
			if (kind == KK_DUPS_RANDOM)
			{
				tid = tap_rand(rng) & 0xFFFFFFFFFFFF;
				if (r & 256)
					tid &= 0x3FF;
				put_be(k + len, tid, 6);
				return (mkey) {k, len + 6};
			}
			break;
		case KK_TWO:
			n = (uint32_t) (r >> 8) % 14;
			for (uint32_t x = 0; x < n; x++)
				raw[x] = (r >> (16 + x)) & 1 ? 0xFF : 0;
			len += put_escaped(k + 1, raw, n);
			tid = (r >> 40) % 4;
			break;
		case KK_TINY:
			if (r & 1)
				k[0] = (uint8_t) (r & 2 ? 0 : 2);	/* NULL */
			else
				k[len++] = (uint8_t) (r & 4 ? r >> 8 : r >> 8 & 1);
			break;
		case KK_NESTED:
			n = (uint32_t) (i % 1300);
			memset(raw, 'n', n);
			len += put_escaped(k + 1, raw, n);
			tid = r % 3;
			break;
		default:				/* KK_PAIR */
			put_be(k + 1, r % 7 * 1000, 4);
			k[5] = 1;
			n = (uint32_t) sprintf((char *) raw, "%llx", (unsigned long long) (tap_rand(rng) >> (r >> 8 & 63)));
			len = 6 + put_escaped(k + 6, raw, n);
			break;
	}
	put_heap_tid(k + len, tid);
	return (mkey) {k, len + 6};
}

int
mt_cmp(const mkey *a, const mkey *b)
{
	int			c = memcmp(a->p, b->p, a->len < b->len ? a->len : b->len);

	return c ? c : (int) (a->len > b->len) - (int) (a->len < b->len);
}

static int
cmp_void(const void *a, const void *b)
{
	return mt_cmp(a, b);
}

void
mt_universe_of(model *m, const char *name, mkey *keys, uint64_t n)
{
	uint64_t	k = 0;

	memset(m, 0, sizeof(*m));
	m->name = name;
	m->key = keys;
	qsort(m->key, n, sizeof(mkey), cmp_void);
	for (uint64_t i = 0; i < n; i++)
	{
		if (k && mt_cmp(&m->key[k - 1], &m->key[i]) == 0)
			free((void *) (uintptr_t) m->key[i].p);
		else
			m->key[k++] = m->key[i];
	}
	m->n = k;
	for (uint64_t i = 0; i < k; i++)
		if (m->key[i].len > m->longest)
			m->longest = m->key[i].len;
	m->in = calloc(k, 1);
	m->keybuf = xalloc(1);
	m->lastkey = xalloc(1);
}

void
mt_universe(model *m, keykind kind, uint64_t want, uint64_t seed)
{
	mkey	   *keys = xalloc(want * sizeof(mkey));

	seed = seed * 2 + 1;
	for (uint64_t i = 0; i < want; i++)
		keys[i] = mt_make_key(kind, i, want, &seed);
	mt_universe_of(m, keykind_name[kind], keys, want);
	m->seed = seed;
}

void
mt_free(model *m)
{
	for (uint64_t i = 0; i < m->n; i++)
		free((void *) (uintptr_t) m->key[i].p);
	free(m->key);
	free(m->in);
	free(m->keybuf);
	free(m->lastkey);
}

/* ---- calls ------------------------------------------------------------------- */

void
mt_open(model *m, ax_ctx *cx, ax_tree *t)
{
	ax_status	r;

	m->cx = cx;
	m->t = t;
	m->count = 0;
	m->tail = false;
	memset(m->in, 0, m->n);
	r = ax_tree_open(cx, t, tap_structure(), 0, tap_page_size(), &m->gen);
	if (r != AX_OK)
		mt_die(m, "open: status %d", (int) r);
	mt_tail(m, tap_tail());
}

void
mt_tail(model *m, ax_tail_option option)
{
	ax_status	r = ax_tree_set_tail(m->cx, m->t, m->gen, option);

	if (r != AX_OK)
		mt_die(m, "tail buffer: status %d", (int) r);
	m->tail |= option != AX_TAIL_OFF;
}

void
mt_close(model *m)
{
	ax_tree_close(m->cx, m->t);
}

void
mt_insert(model *m, uint64_t i)
{
	ax_status	r = ax_insert(m->cx, m->t, m->gen, m->key[i].p, m->key[i].len);

	/* a buffer does not know what is in the tree */
	if (r != (m->in[i] ? AX_EXISTS : AX_OK) && !(m->tail && m->in[i] && r == AX_OK))
		mt_die(m, "insert of key %llu, %s: status %d", (unsigned long long) i,
			   m->in[i] ? "there" : "not there", (int) r);
	m->count += !m->in[i];
	m->in[i] = true;
}

void
mt_remove(model *m, uint64_t i)
{
	ax_status	r;

	/* where memory is short a retire list may have to be drained first */
	for (int tries = 0; tries < 100; tries++)
	{
		r = ax_remove(m->cx, m->t, m->gen, m->key[i].p, m->key[i].len);
		if (r != AX_BUSY)
			break;
		m->busy++;
	}
	if (r != (m->in[i] ? AX_OK : AX_NOTFOUND))
		mt_die(m, "remove of key %llu, %s: status %d", (unsigned long long) i,
			   m->in[i] ? "there" : "not there", (int) r);
	m->count -= m->in[i];
	m->in[i] = false;
}

void
mt_insert_sorted(model *m, uint64_t i, uint64_t n, int p)
{
	const uint8_t **k = xalloc(n * sizeof(*k));
	uint32_t   *len = xalloc(n * sizeof(*len));
	uint64_t   *which = xalloc(n * sizeof(*which));
	uint64_t	got = 0,
				at = 0;
	bool		same = true;

	for (; i < m->n && got < n; i++)
		if (tap_rand(&m->seed) % 100 < (uint64_t) p)
		{
			k[got] = m->key[i].p;
			len[got] = m->key[i].len;
			same &= len[got] == len[0];
			which[got++] = i;
		}
	for (int tries = 0; at < got;)
	{
		uint64_t	done,
					added,
					fresh = 0;
		ax_status	r = ax_insert_sorted(m->cx, m->t, m->gen,
				&(ax_keys) {k + at, same ? NULL : len + at, len[0], got - at}, &done, &added);

		if ((r != AX_OK && r != AX_BUSY) || done > got - at || (r == AX_OK && done == 0) || tries++ > 10000)
			mt_die(m, "sorted insertion: status %d, %llu of %llu done", (int) r,
				   (unsigned long long) done, (unsigned long long) (got - at));
		for (uint64_t x = at; x < at + done; x++)
		{
			fresh += !m->in[which[x]];
			m->in[which[x]] = true;
		}
		if (m->tail ? added < fresh : fresh != added)
			mt_die(m, "sorted insertion: %llu said to be new of %llu, %llu were", (unsigned long long) added,
				   (unsigned long long) done, (unsigned long long) fresh);
		m->count += fresh;
		at += done;
	}
	free(k);
	free(len);
	free(which);
}

void
mt_contains(model *m, uint64_t i)
{
	ax_status	r = ax_contains(m->cx, m->t, m->gen, m->key[i].p, m->key[i].len);

	if (r != (m->in[i] ? AX_OK : AX_NOTFOUND))
		mt_die(m, "contains of key %llu, %s: status %d", (unsigned long long) i,
			   m->in[i] ? "there" : "not there", (int) r);
}

static uint64_t
tid_of(const mkey *k)
{
	uint64_t	t = 0;

	for (int i = 0; i < 6; i++)
		t = t << 8 | k->p[k->len - 6 + (uint32_t) i];
	return t;
}

static bool
same_columns(const mkey *a, const mkey *b)
{
	return a->len == b->len && memcmp(a->p, b->p, a->len - 6) == 0;
}

ax_status
mt_company(ax_ctx *cx, ax_tree *t, uint64_t gen, const mkey *key, uint64_t n, uint64_t i,
		   uint64_t r, uint64_t *tids, uint32_t max, uint32_t *got, bool *more)
{
	uint64_t	room[200];
	const uint8_t *p[20];
	uint32_t	len[20];
	uint32_t	counts[20];
	uint32_t	k = (uint32_t) (r % 20) + 1;
	uint32_t	self = (uint32_t) (r >> 8) % k;
	uint64_t	step = (r >> 16) % 9;
	uint32_t	size = (r >> 24) % 4 ? 200 : (uint32_t) (r >> 26) % 12;
	uint32_t	done = 0,
				at = 0;
	ax_status	x;

	for (uint32_t j = 0; j < k; j++)
	{
		/* rising but at the end, and now and then falling */
		uint64_t	d = ((r >> 32) & 3 ? n + i + j * step - self * step : n + i + self * step - j * step) % n;

		if (j == self)
			d = i;
		p[j] = key[d].p;
		len[j] = key[d].len - 6;
	}
	*got = 0;
	*more = true;
	x = ax_lookup_many(cx, t, gen,
			&(ax_keys) {p, len, 0, k}, &(ax_found) {.tids = room, .max = size}, counts, &done);
	if (x != AX_OK)
		return x;
	for (uint32_t j = 0; j < done; j++)
	{
		if (j == self)
		{
			*more = counts[j] > max;
			*got = *more ? max : counts[j];
			memcpy(tids, room + at, *got * sizeof(*tids));
		}
		at += counts[j];
	}
	if (done > k || at > size)
	{
		fprintf(stderr, "%u of %u keys, %u TIDs, room for %u\n", done, k, at, size);
		abort();
	}
	return x;
}

void
mt_lookup(model *m, uint64_t i)
{
	uint64_t	tids[64];
	uint32_t	max = (uint32_t) (tap_rand(&m->seed) % 65),
				k = 0;
	ax_found	f = {.tids = tids, .max = max};
	uint64_t	first = i;
	ax_status	r = ax_lookup(m->cx, m->t, m->gen, m->key[i].p, m->key[i].len - 6, &f);

	if (r != AX_OK)
		mt_die(m, "lookup of key %llu: status %d", (unsigned long long) i, (int) r);
	if (f.n > max)
		mt_die(m, "lookup of key %llu: %u of at most %u", (unsigned long long) i, f.n, max);
	while (first > 0 && same_columns(&m->key[first - 1], &m->key[i]))
		first--;
	for (; first < m->n && same_columns(&m->key[first], &m->key[i]); first++)
	{
		if (!m->in[first])
			continue;
		if (k < f.n && tids[k] != tid_of(&m->key[first]))
			mt_die(m, "lookup of key %llu: TID %llx at %u, not %llx", (unsigned long long) i,
				   (unsigned long long) tids[k], k, (unsigned long long) tid_of(&m->key[first]));
		k++;
	}
	if (f.more ? f.n > k : f.n != k)
		mt_die(m, "lookup of key %llu: %u TIDs%s of %u, room for %u", (unsigned long long) i,
			   f.n, f.more ? " and more" : "", k, max);
	if (tap_rand(&m->seed) % 4 == 0)
	{
		uint64_t	there[64];
		uint32_t	got;
		bool		beyond;

		r = mt_company(m->cx, m->t, m->gen, m->key, m->n, i, tap_rand(&m->seed), there, max, &got, &beyond);
		if (r != AX_OK)
			mt_die(m, "lookup of key %llu in company: status %d", (unsigned long long) i, (int) r);
		if (!beyond && (f.more ? got != k : got != f.n))
			mt_die(m, "lookup of key %llu in company: %u TIDs, alone %u of %u", (unsigned long long) i, got, f.n, k);
		if (got > 0 && f.n > 0 && memcmp(there, tids, (got < f.n ? got : f.n) * sizeof(*there)) != 0)
			mt_die(m, "lookup of key %llu in company: other TIDs than alone", (unsigned long long) i);
	}
	/* what fits in one go is to be there in one go, but for very long keys */
	if (f.more && k < max && m->key[i].len < 900 && !pessimistic)
		mt_die(m, "lookup of key %llu: gave up at %u TIDs of %u, room for %u", (unsigned long long) i,
			   f.n, k, max);
}

/* -1: before the position, 1: behind it. */
static int
cmp_bound(const mkey *k, const ax_bound *b)
{
	uint32_t	n = k->len < b->len ? k->len : b->len;
	int			c = n ? memcmp(k->p, b->key, n) : 0;

	if (c)
		return c < 0 ? -1 : 1;
	if (k->len >= b->len)
		return b->after ? -1 : 1;
	return -1;
}

/* First key of the universe behind the position (n: none). */
static uint64_t
behind(model *m, const ax_bound *b)
{
	uint64_t	lo = 0,
				hi = m->n;

	while (lo < hi)
	{
		uint64_t	mid = (lo + hi) / 2;

		if (cmp_bound(&m->key[mid], b) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void
grow(model *m, uint8_t **p, uint32_t *size, uint32_t want)
{
	if (want <= *size)
		mt_die(m, "asked for a buffer of %u, %u was not enough", want, *size);
	free(*p);
	*p = xalloc(want);
	*size = want;
}

/* One scan from lo to hi, batch by batch, compared with the model. */
static void
scan(model *m, ax_bound lo, ax_bound hi, bool back, bool keys, uint32_t max, bool change)
{
	uint64_t   *tids = xalloc(max * sizeof(*tids));
	uint32_t   *off = xalloc((max + 1) * sizeof(*off));
	uint8_t    *at = NULL;		/* where to resume */

	for (;;)
	{
		ax_batch	b = {.lo = lo, .hi = hi, .backward = back, .want_keys = keys,
			.max = max, .tids = tids, .key_off = off,
			.keybuf = m->keybuf, .keybuf_size = m->keybuf_size,
		.lastkey = m->lastkey, .lastkey_size = m->lastkey_size};
		ax_status	r = ax_scan(m->cx, m->t, m->gen, &b);
		uint64_t	from,
					to;
		int64_t		x;
		uint32_t	k = 0;
		mkey		last = {NULL, 0};

		if (r == AX_BUFFER)
		{
			if (b.need_bytes > 4 * m->longest + 16)
				mt_die(m, "asked for a buffer of %u, the longest key is %u", b.need_bytes, m->longest);
			if (b.need_bytes > m->lastkey_size)
				grow(m, &m->lastkey, &m->lastkey_size, b.need_bytes);
			else
				grow(m, &m->keybuf, &m->keybuf_size, b.need_bytes);
			if (b.need_bytes > m->keybuf_size)
				grow(m, &m->keybuf, &m->keybuf_size, b.need_bytes);
			continue;
		}
		if (r != AX_OK)
			mt_die(m, "scan: status %d", (int) r);
		if (b.n > max || (b.n == 0 && !b.exhausted))
			mt_die(m, "scan: %u entries of at most %u, %s", b.n, max, b.exhausted ? "exhausted" : "more");
		from = behind(m, &lo);
		to = behind(m, &hi);
		for (x = back ? (int64_t) to - 1 : (int64_t) from;
			 back ? x >= (int64_t) from : x < (int64_t) to; x += back ? -1 : 1)
		{
			const mkey *e = &m->key[x];

			if (!m->in[x])
				continue;
			if (k == b.n)
			{
				if (b.exhausted)
					mt_die(m, "scan %s: said to be exhausted after %u entries, key %lld is left",
						   back ? "back" : "forward", k, (long long) x);
				break;
			}
			if (tids[k] != tid_of(e))
				mt_die(m, "scan %s: entry %u of %u has TID %llx, key %lld has %llx", back ? "back" : "forward",
					   k, b.n, (unsigned long long) tids[k], (long long) x, (unsigned long long) tid_of(e));
			if (keys && (off[k + 1] - off[k] != e->len || memcmp(m->keybuf + off[k], e->p, e->len) != 0))
				mt_die(m, "scan %s: entry %u of %u has another key than key %lld", back ? "back" : "forward",
					   k, b.n, (long long) x);
			last = *e;
			k++;
		}
		if (k < b.n)
			mt_die(m, "scan %s: %u entries, there are but %u", back ? "back" : "forward", b.n, k);
		if (b.exhausted)
			break;
		if (b.lastlen != last.len || memcmp(m->lastkey, last.p, last.len) != 0)
			mt_die(m, "scan %s: the last key of a batch of %u is not that of its last entry",
				   back ? "back" : "forward", b.n);
		free(at);
		at = xalloc(b.lastlen);
		memcpy(at, m->lastkey, b.lastlen);
		if (back)
			hi = (ax_bound) {at, b.lastlen, false};
		else
			lo = (ax_bound) {at, b.lastlen, true};
		if (change)
		{
			/* the very entry to resume from, its neighbours, and others */
			uint64_t	here = behind(m, back ? &hi : &lo);

			for (int i = (int) (tap_rand(&m->seed) % 6); i > 0; i--)
			{
				uint64_t	q = tap_rand(&m->seed);
				uint64_t	v = q & 3 ? here + (q >> 8) % 9 - 4 : (q >> 8) % m->n;

				if (v >= m->n)
					continue;
				if (q & 16)
					mt_insert(m, v);
				else
					mt_remove(m, v);
			}
		}
	}
	free(at);
	free(tids);
	free(off);
}

/* A random position: a key or a part of one, or something like it, or the end. */
static ax_bound
some_bound(model *m, uint8_t *buf, bool end)
{
	uint64_t	r = tap_rand(&m->seed);
	const mkey *k = &m->key[(r >> 32) % m->n];
	uint32_t	len = k->len;

	if (r % 16 == 0)
		return (ax_bound) {NULL, 0, end};
	memcpy(buf, k->p, k->len);
	switch ((r >> 4) % 6)
	{
		case 0:
			break;
		case 1:
		case 2:
			len -= 6;			/* columns */
			break;
		case 3:
			len = (uint32_t) (r >> 8) % len + 1;	/* part of them */
			break;
		case 4:
			len = (uint32_t) (r >> 8) % len + 1;	/* at no key at all */
			buf[len - 1] = (uint8_t) (buf[len - 1] + (r & 8 ? 1 : -1));
			break;
		default:
			buf[(r >> 8) % len] = some_byte(&m->seed);
			break;
	}
	return (ax_bound) {buf, len, (r >> 30) & 1};
}

void
mt_scan(model *m, bool change)
{
	static const uint32_t maxes[] = {1, 2, 3, 7, 31, 32, 33, 100, 1000};
	uint8_t    *a = xalloc(m->longest),
			   *b = xalloc(m->longest);
	uint64_t	r = tap_rand(&m->seed);
	uint32_t	max = maxes[(r >> 8) % 9];
	ax_bound	lo = some_bound(m, a, false),
				hi = some_bound(m, b, true);

	/* tiny batches over little */
	if (max < 31 && !change)
	{
		uint64_t	i = behind(m, &lo);

		if (i + 50 < m->n && behind(m, &hi) > i + 50)
		{
			memcpy(b, m->key[i + 50].p, m->key[i + 50].len);
			hi = (ax_bound) {b, m->key[i + 50].len, false};
		}
	}
	scan(m, lo, hi, r & 1, (r & 2) != 0, max, change);
	free(a);
	free(b);
}

void
mt_scan_near(model *m, uint64_t i, uint64_t width, bool change)
{
	static const uint32_t maxes[] = {1, 2, 5, 33, 64, 65, 200};
	uint64_t	r = tap_rand(&m->seed);
	uint64_t	a = i > width ? i - width : 0,
				z = i + width < m->n ? i + width : m->n - 1;
	ax_bound	lo = {m->key[a].p, m->key[a].len - (r & 4 ? 6 : 0), r & 8},
				hi = {m->key[z].p, m->key[z].len - (r & 16 ? 6 : 0), r & 32};

	if (r % 5 == 0)
		hi = (ax_bound) {NULL, 0, true};
	if (r % 7 == 0)
		lo = (ax_bound) {NULL, 0, false};
	scan(m, lo, hi, r & 1, (r & 2) != 0, maxes[(r >> 8) % 7], change);
}

void
mt_compare_all(model *m)
{
	scan(m, (ax_bound) {NULL, 0, false}, (ax_bound) {NULL, 0, true}, false, true, 500, false);
	scan(m, (ax_bound) {NULL, 0, false}, (ax_bound) {NULL, 0, true}, true, true, 333, false);
}

void
mt_check(model *m, const char *when)
{
	ax_tree_info c,
				i;
	bool		good = false;
	char		msg[200] = "";
	ax_status	r = tap_check(m->cx, m->t, m->gen, &c, &good, msg, sizeof(msg));

	if (r != AX_OK || !good)
		mt_die(m, "check %s: status %d, %s", when, (int) r, msg);
	if (c.entries != m->count)
		mt_die(m, "check %s: %llu entries found, %llu are in", when,
			   (unsigned long long) c.entries, (unsigned long long) m->count);
	r = ax_info(m->cx, m->t, m->gen, &i);
	if (r != AX_OK || i.entries != c.entries || i.n4 != c.n4 || i.n16 != c.n16 || i.n48 != c.n48 ||
		i.n256 != c.n256 || i.leaves != c.leaves || i.embedded != c.embedded)
		mt_die(m, "%s the counters (%lld entries, nodes %lld %lld %lld %lld, leaves %lld, embedded %lld) are not what is there (%lld, %lld %lld %lld %lld, %lld, %lld)",
			   when, (long long) i.entries, (long long) i.n4, (long long) i.n16, (long long) i.n48, (long long) i.n256,
			   (long long) i.leaves, (long long) i.embedded, (long long) c.entries, (long long) c.n4,
			   (long long) c.n16, (long long) c.n48, (long long) c.n256, (long long) c.leaves, (long long) c.embedded);
}

/* See model.h. */
ax_status
mt_load_sorted(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *const *k,
			   const uint32_t *lens, uint32_t len, uint64_t n, int fill)
{
	ax_status	r = ax_load(cx, t, gen, &(ax_keys) {k, lens, len, n}, fill);
	uint64_t	at = 0;

	if (r != AX_EXISTS)
		return r;
	for (r = AX_OK; at < n && (r == AX_OK || r == AX_BUSY);)
	{
		uint64_t	done,
					added;

		r = ax_insert_sorted(cx, t, gen,
				&(ax_keys) {k + at, lens ? lens + at : NULL, len, n - at}, &done, &added);
		at += done;
	}
	return r;
}

void
mt_load(model *m, int p, int fill)
{
	const uint8_t **k = xalloc(m->n * sizeof(*k));
	uint32_t   *len = xalloc(m->n * sizeof(*len));
	uint64_t	n = 0;
	bool		same = true;
	ax_status	r;

	for (uint64_t i = 0; i < m->n; i++)
		if (tap_rand(&m->seed) % 100 < (uint64_t) p)
		{
			m->in[i] = true;
			k[n] = m->key[i].p;
			len[n] = m->key[i].len;
			same &= len[n] == len[0];
			n++;
		}
	m->count = n;
	r = mt_load_sorted(m->cx, m->t, m->gen, k, same && n ? NULL : len, n ? len[0] : 0, n, fill);
	if (r != AX_OK)
		mt_die(m, "load of %llu keys: status %d", (unsigned long long) n, (int) r);
	if (n && (r = ax_load(m->cx, m->t, m->gen, &(ax_keys) {k, len, 0, n}, fill)) != AX_EXISTS)
		mt_die(m, "load into a tree that is not empty: status %d", (int) r);
	free(k);
	free(len);
}

/*
 * A load in shares: a sample of every so manieth of the keys drawn, then ranges
 * of all of them, some calls of each in turn.
 */
void
mt_load_shares(model *m, int p, int fill, uint64_t step, int parts)
{
	const uint8_t **k = xalloc(m->n * sizeof(*k));
	uint32_t   *len = xalloc(m->n * sizeof(*len));
	const uint8_t **sk = xalloc(m->n * sizeof(*sk));
	uint32_t   *slen = xalloc(m->n * sizeof(*slen));
	uint64_t   *at = xalloc((uint64_t) parts * sizeof(*at));
	uint64_t	n = 0,
				sn = 0,
				left,
				before = 0,
				fresh = 0;
	bool		same = true;
	ax_status	r;

	for (uint64_t i = 0; i < m->n; i++)
		if (tap_rand(&m->seed) % 100 < (uint64_t) p)
		{
			m->in[i] = true;
			k[n] = m->key[i].p;
			len[n] = m->key[i].len;
			same &= len[n] == len[0];
			if (n % step == step / 2)
			{
				sk[sn] = k[n];
				slen[sn++] = len[n];
			}
			n++;
		}
	m->count = n;
	r = ax_load(m->cx, m->t, m->gen, &(ax_keys) {sk, slen, 0, sn}, 0);
	/* EXISTS: too nested, and there is nothing yet */
	if (r != AX_OK && r != AX_EXISTS)
		mt_die(m, "load of a sample of %llu keys: status %d", (unsigned long long) sn, (int) r);
	before = r == AX_OK ? sn : 0;
	for (int i = 0; i < parts; i++)
		at[i] = n * (uint64_t) i / (uint64_t) parts;
	for (left = n; left > 0;)
		for (int i = 0; i < parts; i++)
		{
			uint64_t	end = n * (uint64_t) (i + 1) / (uint64_t) parts;
			uint64_t	done,
						added;

			if (at[i] == end)
				continue;
			r = ax_load_share(m->cx, m->t, m->gen,
					&(ax_keys) {k + at[i], same ? NULL : len + at[i], len[0], end - at[i]}, fill, &done, &added);
			if ((r != AX_OK && r != AX_BUSY) || done > end - at[i] || added > done ||
				(r == AX_OK && done == 0))
				mt_die(m, "load of a share: status %d, %llu of %llu done", (int) r,
					   (unsigned long long) done, (unsigned long long) (end - at[i]));
			at[i] += done;
			left -= done;
			fresh += added;
		}
	if (before + fresh != n)
		mt_die(m, "load by shares: %llu said to be new, %llu are", (unsigned long long) fresh,
			   (unsigned long long) (n - before));
	free(k);
	free(len);
	free(sk);
	free(slen);
	free(at);
}

/*
 * Some keys from i on, in no order, by one call after the other; one of them twice.
 */
void
mt_insert_many(model *m, uint64_t i, uint32_t n)
{
	const uint8_t *k[300];
	uint32_t	len[300];
	uint64_t	which[300];
	uint32_t	at = 0;

	for (uint32_t x = 0; x < n; x++)
	{
		uint64_t	w = x == 7 ? which[3] : (i + x * 7919u % 1000) % m->n;

		k[x] = m->key[w].p;
		len[x] = m->key[w].len;
		which[x] = w;
	}
	for (int tries = 0; at < n; tries++)
	{
		uint32_t	done;
		ax_status	r = ax_insert_many(m->cx, m->t, m->gen,
				&(ax_keys) {k + at, len + at, 0, n - at}, &done);

		if ((r != AX_OK && r != AX_BUSY) || done > n - at || (r == AX_OK && done < n - at) || tries > 10000)
			mt_die(m, "insertion of many: status %d, %u of %u done", (int) r, done, n - at);
		for (uint32_t x = at; x < at + done; x++)
		{
			m->count += !m->in[which[x]];
			m->in[which[x]] = true;
		}
		at += done;
	}
}

void
mt_ops(model *m, uint64_t n, int grow_per_cent)
{
	uint64_t	run = 0,
				at = 0;

	for (uint64_t x = 0; x < n; x++)
	{
		uint64_t	r = tap_rand(&m->seed);
		uint64_t	i = (r >> 24) % m->n;

		/* now and then a run of neighbours, rising or falling */
		if (run)
		{
			run--;
			i = (r & 64 ? at++ : at) % m->n;
		}
		else if (r % 512 == 0)
		{
			run = (r >> 10) % 200;
			at = i;
		}
		if (r % 8 == 0)
			mt_lookup(m, i);
		else if (r % 8 == 1)
			mt_contains(m, i);
		else if (r % 256 == 2)
			mt_scan(m, (r >> 8) & 1);
		else if (r % 1024 == 3)
			mt_insert_sorted(m, i, (r >> 10) % 400 + 1, (r & 2048) ? 95 : 40);
		else if (r % 1024 == 4)
			mt_insert_many(m, i, (uint32_t) (r >> 10) % 300 + 1);
		else if ((r >> 8) % 100 < (uint64_t) grow_per_cent)
			mt_insert(m, i);
		else
			mt_remove(m, i);
	}
}
