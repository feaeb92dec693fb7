/*
 * test_oom.c
 *	  No memory, at every allocation: an operation is done or it is not, and
 *	  the tree is whole.  Deletion never fails.  A full area goes on serving.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_internal.h"
#include "model.h"

static ax_ctx cx;
static ax_tree *tree;

/* Insert key i with the n-th allocation failing, for every n. */
static uint64_t
insert_failing(model *m, uint64_t i)
{
	uint64_t	failed = 0;

	for (uint64_t n = 1;; n++)
	{
		ax_status	r;

		ax_body(&cx)->fail_alloc_at = n;
		r = ax_insert(&cx, tree, m->gen, m->key[i].p, m->key[i].len);
		if (r == AX_OK)
		{
			bool		reached = ax_body(&cx)->fail_alloc_at == 0;

			ax_body(&cx)->fail_alloc_at = 0;
			m->in[i] = true;
			m->count++;
			if (reached)
				mt_die(m, "insert: says it is done, allocation %llu failed", (unsigned long long) n);
			return failed;
		}
		if (r != AX_NOMEM || ax_body(&cx)->fail_alloc_at != 0)
			mt_die(m, "insert with allocation %llu failing: status %d", (unsigned long long) n, (int) r);
		failed++;
		mt_check(m, "after an insertion that failed");
		mt_contains(m, i);
		if (i % 16 == 0)
			mt_compare_all(m);
	}
}

/* Remove key i with the n-th allocation failing: it works all the same. */
static uint64_t
remove_failing(model *m, uint64_t i, uint64_t n)
{
	bool		reached;

	ax_body(&cx)->fail_alloc_at = n;
	mt_remove(m, i);
	reached = ax_body(&cx)->fail_alloc_at == 0;
	ax_body(&cx)->fail_alloc_at = 0;
	if (reached)
		mt_check(m, "after a removal without memory");
	return reached;
}

/* Many at once, with the n-th allocation failing, for many n: what is done is in, and no more. */
static uint64_t
many_failing(model *m)
{
	const uint8_t **k = malloc(m->n * sizeof(*k));
	uint32_t   *len = malloc(m->n * sizeof(*len));
	uint64_t	failed = 0;
	bool		reached = true;

	for (uint64_t i = 0; i < m->n; i++)
	{
		k[i] = m->key[i * 7919 % m->n].p;
		len[i] = m->key[i * 7919 % m->n].len;
	}
	for (uint64_t n = 1; reached; n += n / 8 + 1)
	{
		uint32_t	done;

		mt_open(m, &cx, tree);
		ax_body(&cx)->fail_alloc_at = n;
		for (uint64_t at = 0; at < m->n; at += done)
		{
			uint32_t	some = m->n - at < 60 ? (uint32_t) (m->n - at) : 60;
			ax_status	r = ax_insert_many(&cx, tree, m->gen,
					&(ax_keys) {k + at, len + at, 0, some}, &done);

			if ((r != AX_OK && r != AX_NOMEM) || (r == AX_NOMEM && ax_body(&cx)->fail_alloc_at != 0) ||
				(r == AX_OK ? done != some : done >= some))
				mt_die(m, "insertion of many with allocation %llu failing: status %d, %u of %u",
					   (unsigned long long) n, (int) r, done, some);
			for (uint64_t i = at; i < at + done; i++)
			{
				m->count += !m->in[i * 7919 % m->n];
				m->in[i * 7919 % m->n] = true;
			}
			if (r == AX_NOMEM)
			{
				failed++;
				mt_check(m, "after an insertion of many that failed");
				mt_compare_all(m);
			}
		}
		reached = ax_body(&cx)->fail_alloc_at == 0;
		ax_body(&cx)->fail_alloc_at = 0;
		mt_check(m, "after all insertions of many");
		mt_close(m);
	}
	free(k);
	free(len);
	return failed;
}

/* A share of a load, with a sample or none, and the n-th allocation failing, for many n: what is done is in. */
static uint64_t
shares_failing(model *m, bool with)
{
	const uint8_t **k = malloc(2 * m->n * sizeof(*k));
	uint32_t   *len = malloc(2 * m->n * sizeof(*len));
	uint64_t	failed = 0,
				sample = 0;
	bool		reached = true;

	for (uint64_t i = 0; i < m->n; i++)
	{
		k[i] = m->key[i].p;
		len[i] = m->key[i].len;
		if (i % 100 == 50)
		{
			k[m->n + sample] = k[i];
			len[m->n + sample++] = len[i];
		}
	}
	for (uint64_t n = 1; reached; n += n / 8 + 1)
	{
		uint64_t	done,
					added;
		ax_status	r;

		mt_open(m, &cx, tree);
		if (ax_load(&cx, tree, m->gen, &(ax_keys) {k + m->n, len + m->n, 0, with ? sample : 0}, 0) != AX_OK)
			mt_die(m, "load of a sample");
		for (uint64_t i = 0; i < m->n; i++)
			m->in[i] = with && i % 100 == 50;
		m->count = with ? sample : 0;
		ax_body(&cx)->fail_alloc_at = n;
		for (uint64_t at = 0; at < m->n; at += done)
		{
			r = ax_load_share(&cx, tree, m->gen,
					&(ax_keys) {k + at, len + at, 0, m->n - at}, 90, &done, &added);
			if ((r != AX_OK && r != AX_NOMEM) || (r == AX_NOMEM && ax_body(&cx)->fail_alloc_at != 0))
				mt_die(m, "share of a load with allocation %llu failing: status %d",
					   (unsigned long long) n, (int) r);
			for (uint64_t i = at; i < at + done; i++)
			{
				m->count += !m->in[i];
				added -= !m->in[i];
				m->in[i] = true;
			}
			if (added != 0)
				mt_die(m, "share of a load with allocation %llu failing: others are said to be new",
					   (unsigned long long) n);
			if (r == AX_NOMEM)
			{
				failed++;
				mt_check(m, "after a share of a load that failed");
				mt_compare_all(m);
			}
		}
		reached = ax_body(&cx)->fail_alloc_at == 0;
		ax_body(&cx)->fail_alloc_at = 0;
		mt_check(m, "after all shares of a load");
		mt_compare_all(m);
		mt_close(m);
	}
	free(k);
	free(len);
	return failed;
}

/*
 * Compaction with the n-th allocation failing, for many n: what is not moved stays where it is.  Returns
 * how many failed.
 */
static uint64_t
compact_failing(model *m)
{
	void	   *work = malloc(AX_COMPACT_WORK);
	uint64_t	failed = 0;
	bool		reached = true;

	for (uint64_t n = 1; reached; n += n / 8 + 1)
	{
		ax_compaction c = {.work = work};

		mt_open(m, &cx, tree);
		for (uint64_t i = 0; i < m->n; i++)
			if (!m->in[i * 7919 % m->n])
				mt_insert(m, i * 7919 % m->n);
		/* runs of a leaf or two, and single ones */
		for (uint64_t i = 0; i < m->n; i++)
			if (m->in[i] && (i / 64 % 3 == 0 ? i % 64 != 0 : i % 3 != 0))
				mt_remove(m, i);
		(void) tap_quiesce(&cx);
		ax_body(&cx)->fail_alloc_at = n;
		for (int calls = 0; !c.done; calls++)
		{
			ax_status	r = ax_compact(&cx, tree, m->gen, &c);

			if ((r != AX_OK && r != AX_BUSY) || calls > 100000)
				mt_die(m, "compaction with allocation %llu failing: status %d", (unsigned long long) n, (int) r);
		}
		reached = ax_body(&cx)->fail_alloc_at == 0;
		ax_body(&cx)->fail_alloc_at = 0;
		failed += reached;
		mt_check(m, "after a compaction without memory");
		mt_compare_all(m);
		mt_close(m);
	}
	free(work);
	return failed;
}

static void
one_kind(keykind kind)
{
	model		m;
	uint64_t	failed = 0,
				tight = 0;
	ax_memory_info before,
				after;

	ax_memory(&cx, &before);
	mt_universe(&m, kind, kind == KK_LONG ? tap_scaled(60) : tap_scaled(1500), 11);
	mt_open(&m, &cx, tree);
	for (uint64_t x = 0; x < m.n; x++)
	{
		uint64_t	i = x * 7919 % m.n;

		if (!m.in[i])
			failed += insert_failing(&m, i);
	}
	mt_compare_all(&m);
	for (uint64_t x = 0; x < m.n; x++)
	{
		uint64_t	i = x * 4801 % m.n;

		if (m.in[i])
			tight += remove_failing(&m, i, x % 3 + 1);
	}
	for (uint64_t i = 0; i < m.n; i++)
		if (m.in[i])
			mt_remove(&m, i);
	mt_check(&m, "after removing all without memory");
	mt_close(&m);

	/* a load that fails leaves nothing behind */
	for (uint64_t n = 1;; n += n / 8 + 1)
	{
		const uint8_t **k = malloc(m.n * sizeof(*k));
		uint32_t   *len = malloc(m.n * sizeof(*len));
		ax_status	r;
		ax_tree_info ti;

		for (uint64_t i = 0; i < m.n; i++)
		{
			k[i] = m.key[i].p;
			len[i] = m.key[i].len;
		}
		mt_open(&m, &cx, tree);
		ax_body(&cx)->fail_alloc_at = n;
		r = ax_load(&cx, tree, m.gen, &(ax_keys) {k, len, 0, m.n}, 90);
		free(k);
		free(len);
		if (ax_body(&cx)->fail_alloc_at == 0)
		{
			if (r != AX_NOMEM)
				mt_die(&m, "load with allocation %llu failing: status %d", (unsigned long long) n, (int) r);
			mt_check(&m, "after a load that failed");
			(void) ax_info(&cx, tree, m.gen, &ti);
			if (ti.leaves || ti.n4 || ti.n16 || ti.n48 || ti.n256 || ti.embedded)
				mt_die(&m, "a load that failed left %lld leaves", (long long) ti.leaves);
			failed++;
		}
		else
		{
			/* EXISTS: of some lengths, a load is none (test_nested) */
			if (r != AX_OK && (r != AX_EXISTS || kind != KK_LENGTHS))
				mt_die(&m, "load: status %d", (int) r);
			ax_body(&cx)->fail_alloc_at = 0;
			mt_close(&m);
			break;
		}
		mt_close(&m);
	}
	if (ax_can_load_share(tap_structure()))
		ok(shares_failing(&m, true) > 0 && shares_failing(&m, false) > 0,
		   "%s: shares of a load fail, too", keykind_name[kind]);
	ok(many_failing(&m) > 0, "%s: insertions of many fail, too", keykind_name[kind]);
	mt_free(&m);
	(void) tap_quiesce(&cx);
	ax_memory(&cx, &after);
	ok(failed > 0, "%s: %llu insertions and loads failed, %llu removals did without memory", keykind_name[kind],
	   (unsigned long long) failed, (unsigned long long) tight);
	ok(after.used_bytes == before.used_bytes && after.retired_bytes == 0,
	   "%s: memory is back", keykind_name[kind]);
}

/*
 * A clock that does not depend on the machine.  An epoch ends at most once in 200 microseconds
 * (ax_reclaim), so what comes free, and when, depends on the time between two looks.
 */
static uint64_t clock_now,
			clock_seed;
static int	clock_moves;		/* looks of a hundred that find so much time gone */

static uint64_t
clock_look(void)
{
	clock_now += tap_rand(&clock_seed) % 100 < (uint64_t) clock_moves ? 250000 : 100;
	return clock_now;
}

/* Fill a small area to the brim, by such a clock; then change what is in it. */
static void
full_area(keykind kind, bool capped, int moves, uint64_t seed)
{
	static ax_ctx fcx;
	static ax_port port;
	size_t		size = capped ? (size_t) 64 << 20 : (size_t) 3 << 19;
	ax_area    *a = tap_area(size, 2, 256 << 10);
	model		m;
	ax_tree    *t;
	uint64_t	full = 0,
				at_most;
	ax_memory_info mi;
	ax_tree_info ti;

	port = ax_port_default;
	port.now_ns = clock_look;
	clock_now = 1000000;
	clock_moves = moves;
	clock_seed = seed;
	ax_attach(&fcx, a, 0, 1, &port);
	tap_elide(&fcx);
	t = ax_tree_alloc(&fcx);
	mt_universe(&m, kind, kind == KK_LONG ? 2000 : 80000, 5);
	m.cx = &fcx;
	m.t = t;
	if (ax_tree_open(&fcx, t, tap_structure(), capped ? 2 << 20 : 0, tap_page_size(), &m.gen) != AX_OK)
		mt_die(&m, "open");
	/* past the first refusals: small things may still find room */
	for (uint64_t x = 0; x < m.n && full < tap_scaled(2000); x++)
	{
		uint64_t	i = x * 7919 % m.n;
		ax_status	r;

		if (m.in[i])
			continue;
		r = ax_insert(&fcx, t, m.gen, m.key[i].p, m.key[i].len);
		if (r == AX_OK)
		{
			m.in[i] = true;
			m.count++;
		}
		else if (r == AX_NOMEM)
			full++;
		else
			mt_die(&m, "insert: status %d", (int) r);
	}
	ok(full > 0, "%s: the %s is full at %llu keys", m.name, capped ? "tree's cap" : "area", (unsigned long long) m.count);
	at_most = m.count;
	mt_check(&m, "when full");
	mt_compare_all(&m);
	for (uint64_t x = 0; x < m.n; x++)
	{
		uint64_t	i = x * 4801 % m.n;

		if (m.in[i] && x % 4)
			mt_remove(&m, i);
	}
	mt_check(&m, "after removals in a full area");
	mt_compare_all(&m);
	(void) tap_quiesce(&fcx);
	for (uint64_t i = 0; i < m.n; i++)
		if (m.in[i])
			mt_remove(&m, i);
	mt_check(&m, "when emptied");
	(void) tap_quiesce(&fcx);

	/* a span of every class stays: half goes in without a refusal */
	(void) ax_info(&fcx, t, m.gen, &ti);
	tap_diag("%s: empty, it keeps %llu bytes", m.name, (unsigned long long) ti.bytes);
	full = 0;
	for (uint64_t x = 0; x < m.n && 2 * m.count < at_most; x++)
	{
		uint64_t	i = x * 7919 % m.n;
		ax_status	r = ax_insert(&fcx, t, m.gen, m.key[i].p, m.key[i].len);

		if (r == AX_OK)
		{
			m.in[i] = true;
			m.count++;
		}
		else
			full++;
	}
	/* (of long keys there are too few for their many classes) */
	ok(full == 0 || kind == KK_LONG, "%s: what was given back is used again", m.name);
	mt_check(&m, "when filled again");
	mt_close(&m);
	(void) tap_quiesce(&fcx);
	ax_memory(&fcx, &mi);
	ok(mi.used_bytes == 0, "%s: all memory is back, %llu removals had to be tried again", m.name,
	   (unsigned long long) m.busy);
	mt_free(&m);
	ax_detach(&fcx);
	tap_unmap(a, size);
}

int
main(void)
{
	static const keykind compacted[] = {KK_UUID, KK_SHARED, KK_LENGTHS};
	ax_area    *a = tap_area((size_t) 256 << 20, 2, 1 << 20);

	ax_attach(&cx, a, 0, 1, &ax_port_default);
	tap_elide(&cx);
	tree = ax_tree_alloc(&cx);
	for (int k = 0; k < KK_COUNT; k++)
		if (k != KK_NESTED)
			one_kind((keykind) k);
	/* in small pages the keys are a tree of several levels, whose load fails at inner pages, too */
	if (ax_structure_is_btree(tap_structure()) && tap_page_size() == 0)
	{
		setenv("AX_PAGE_BYTES", "256", 1);
		one_kind(KK_SHARED);
		one_kind(KK_MIDDLE);
		unsetenv("AX_PAGE_BYTES");
	}
	for (size_t k = 0; k < sizeof(compacted) / sizeof(compacted[0]); k++)
	{
		model		m;

		/* of fewer keys nothing would be moved */
		mt_universe(&m, compacted[k], 400, 11);
		ok(compact_failing(&m) > 0, "%s: compaction goes on without memory", m.name);
		mt_free(&m);
	}
	full_area(KK_RANDOM8, false, 100, 1);
	/* with these an emptied HydraList took nothing any more: no memory for the first coming in its log */
	full_area(KK_RANDOM8, false, 80, 4);
	full_area(KK_RANDOM8, false, 50, 7);
	full_area(KK_RANDOM8, false, 5, 5);
	full_area(KK_UUID, true, 100, 1);
	full_area(KK_SHARED, false, 100, 1);
	full_area(KK_PAIR, false, 100, 1);
	full_area(KK_LONG, false, 100, 1);
	ax_detach(&cx);
	return tap_done();
}
