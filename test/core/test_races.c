/*
 * test_races.c
 *	  One operation is stopped at a pause point, others change the tree around
 *	  it, then it goes on: what it returns must still be right.
 *
 *	  test_races [rounds [seed]]
 *
 * The operation works on a key (or inserts or removes a stretch of them) that
 * the others leave alone, so its result is known exactly.  They work on the key's neighbours: that is
 * where leaves split, prefixes part, nodes grow, shrink, collapse and go.
 * Every pause point of the tree must have been met, and every kind of change
 * of structure is likely at each, since all is tried thousands of times.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define MAX_KEYS 1200

typedef enum op
{
	INSERT, REMOVE, CONTAINS, LOOKUP, MANY, SCAN, SCAN_BACK, NOPS
} op;

/* Where to stop, and the operation to stop there. */
static const struct
{
	op			what;
	const char *name;
}			points[] = {
	{INSERT, "art.root.before_lock"}, {INSERT, "art.hop.after_child_read"},
	{INSERT, "art.hop.after_child_version"}, {INSERT, "art.leaf.before_lock"},
	{INSERT, "art.embed.before_lock"}, {INSERT, "art.child.before_lock"},
	{INSERT, "art.widen.before_lock"}, {INSERT, "art.prefix.before_lock"},
	{INSERT, "art.publish.before_lock"},
	{REMOVE, "art.hop.after_child_read"}, {REMOVE, "art.hop.after_child_version"},
	{REMOVE, "art.remove.before_lock"}, {REMOVE, "art.tidy.before_look"}, {REMOVE, "art.tidy.looked"},
	{REMOVE, "art.empty.before_lock"}, {REMOVE, "art.collapse.before_lock"},
	{REMOVE, "art.shrink.before_lock"},
	{CONTAINS, "art.hop.after_child_read"}, {CONTAINS, "art.hop.after_child_version"},
	{CONTAINS, "art.contains.leaf_read"},
	{LOOKUP, "art.hop.after_child_read"}, {LOOKUP, "art.hop.after_child_version"},
	{LOOKUP, "art.lookup.absent"}, {LOOKUP, "art.lookup.leaf_read"},
	{SCAN, "art.scan.root"}, {SCAN, "art.scan.node_version"}, {SCAN, "art.scan.leaf_version"},
	{INSERT, "art.find.slot"}, {REMOVE, "art.find.slot"}, {CONTAINS, "art.find.slot"},
	{LOOKUP, "art.find.slot"}, {SCAN, "art.find.slot"}, {SCAN, "art.scan.slot"},
	{INSERT, "art.leaf.matched"}, {REMOVE, "art.leaf.matched"}, {CONTAINS, "art.leaf.matched"},
	{LOOKUP, "art.lookup.matched"}, {SCAN, "art.scan.leaf_ordered"},
	{SCAN, "art.scan.leaf_read"}, {SCAN, "art.scan.advance"}, {SCAN, "art.scan.embedded"},
	{SCAN, "art.scan.embeds"}
};
#define NPOINTS ((int) (sizeof(points) / sizeof(points[0])))

static const char *const op_name[NOPS] = {"insert", "remove", "contains", "lookup", "lookup of many", "scan", "scan back"};

#define COMPANY 20

/* What the stopped thread does, and what came of it. */
static struct
{
	model	   *m;
	ax_ctx		cx;
	op			what;
	uint64_t	key,
				end;			/* the last key of the stretch */
	uint32_t	company,		/* a look-up of so many, from key on */
				nmany,
				lens[COMPANY],
				counts[COMPANY];
	const uint8_t *many[COMPANY];
	uint32_t	max;
	bool		keys,			/* a scan that wants keys */
				open;			/* .. without a bound at its end */
	ax_status	status;
	ax_status	each[MAX_KEYS]; /* insert, remove: of every key */
	uint64_t	tids[MAX_KEYS];
	uint32_t	off[MAX_KEYS + 1];
	uint8_t		keybuf[1 << 20];
	uint8_t		lastkey[4096];
	ax_batch	b;
	uint32_t	n;
	bool		more;
} v;

static sem_t go,
			stopped_or_done,
			resume;
static atomic_int target = -1;	/* stop here .. */
static atomic_int countdown;	/* .. when met for the n-th time */
static atomic_bool parked,
			quit;
static _Thread_local bool is_victim;
static uint64_t met[NPOINTS],
			parks[NPOINTS][NOPS];

static void
hook(const char *name)
{
	int			t = atomic_load(&target);

	if (!is_victim || t < 0 || strcmp(name, points[t].name) != 0)
		return;
	if (ax_latches_held(&v.cx) > 0)
		return;					/* the others would but wait */
	if (atomic_fetch_sub(&countdown, 1) != 1)
		return;
	atomic_store(&target, -1);
	atomic_store(&parked, true);
	sem_post(&stopped_or_done);
	while (sem_wait(&resume))
		;
}

static void
victim_op(void)
{
	const mkey *k = &v.m->key[v.key],
			   *e = &v.m->key[v.end];

	switch (v.what)
	{
		case INSERT:
			for (uint64_t i = v.key; i <= v.end; i++)
				v.each[i] = ax_insert(&v.cx, v.m->t, v.m->gen, v.m->key[i].p, v.m->key[i].len);
			break;
		case REMOVE:
			for (uint64_t i = v.key; i <= v.end; i++)
				v.each[i] = ax_remove(&v.cx, v.m->t, v.m->gen, v.m->key[i].p, v.m->key[i].len);
			break;
		case CONTAINS:
			v.status = ax_contains(&v.cx, v.m->t, v.m->gen, k->p, k->len);
			break;
		case LOOKUP:
			{
				ax_found	f = {.tids = v.tids, .max = v.max};

				v.status = ax_lookup(&v.cx, v.m->t, v.m->gen, k->p, k->len - 6, &f);
				v.n = f.n;
				v.more = f.more;
				break;
			}
		case MANY:
			for (v.nmany = 0; v.nmany < v.company && v.key + v.nmany < v.m->n; v.nmany++)
			{
				v.many[v.nmany] = k[v.nmany].p;
				v.lens[v.nmany] = k[v.nmany].len - 6;
			}
			v.status = ax_lookup_many(&v.cx, v.m->t, v.m->gen,
					&(ax_keys) {v.many, v.lens, 0, v.nmany}, &(ax_found) {.tids = v.tids, .max = MAX_KEYS}, v.counts, &v.n);
			break;
		default:
			memset(&v.b, 0, sizeof(v.b));
			v.b.lo = (ax_bound) {k->p, k->len, false};
			v.b.hi = (ax_bound) {e->p, e->len, true};
			v.b.backward = v.what == SCAN_BACK;
			if (v.open && v.b.backward)
				v.b.lo = (ax_bound) {NULL, 0, false};
			else if (v.open)
				v.b.hi = (ax_bound) {NULL, 0, true};
			v.b.want_keys = v.keys;
			v.b.max = v.max;
			v.b.tids = v.tids;
			v.b.key_off = v.off;
			v.b.keybuf = v.keybuf;
			v.b.keybuf_size = sizeof(v.keybuf);
			v.b.lastkey = v.lastkey;
			v.b.lastkey_size = sizeof(v.lastkey);
			v.status = ax_scan(&v.cx, v.m->t, v.m->gen, &v.b);
			break;
	}
}

static void *
victim(void *arg)
{
	is_victim = true;
	for (;;)
	{
		while (sem_wait(&go))
			;
		if (atomic_load(&quit))
			return NULL;
		victim_op();
		sem_post(&stopped_or_done);
	}
}

/* Left alone by the others: else the result would not be known. */
static bool
is_own(uint64_t i)
{
	return v.what < CONTAINS ? i >= v.key && i <= v.end : v.what == CONTAINS && i == v.key;
}

/* Change the neighbourhood of the victim's key; touched[] says what. */
static void
disturb(model *m, bool *touched)
{
	uint64_t	r = tap_rand(&m->seed);
	uint64_t	near = r % 3 == 0 ? 3 : r % 3 == 1 ? 12 : 40;
	uint64_t	from = v.key > near ? v.key - near : 0;
	uint64_t	to = (v.what < CONTAINS ? v.end : v.key) + near;
	int			style = (int) ((r >> 8) % 7);
	int			n = (int) ((r >> 16) % 12) + 1;

	if (to >= m->n)
		to = m->n - 1;
	if (v.what >= SCAN && (r >> 32) % 2)
	{
		/* about the middle of the stretch */
		uint64_t	mid = (v.key + v.end) / 2;

		from = mid > near ? mid - near : 0;
		to = mid + near < m->n ? mid + near : m->n - 1;
	}
	for (uint64_t i = from; i <= to; i++)
	{
		bool		in;

		if (is_own(i))
			continue;
		switch (style)
		{
			case 0:				/* all of it in */
				in = true;
				break;
			case 1:				/* all of it out */
				in = false;
				break;
			case 2:				/* out, and in again */
			case 3:				/* in, and out again */
				touched[i] = true;
				(style == 2 ? mt_remove : mt_insert) (m, i);
				continue;
			case 4:				/* a few of them */
				if (tap_rand(&m->seed) % 4)
					continue;
				in = !m->in[i];
				break;
			case 5:				/* one side only */
				if ((r >> 40 & 1) ? i < v.key : i > v.key)
					continue;
				in = (r >> 41) & 1;
				break;
			default:			/* one or a few, whichever */
				if (n-- <= 0)
					continue;
				i = from + tap_rand(&m->seed) % (to - from + 1);
				if (is_own(i))
					continue;
				in = !m->in[i];
				break;
		}
		touched[i] = true;
		if (in)
			mt_insert(m, i);
		else
			mt_remove(m, i);
	}
	if (style == 2 || style == 3)
		for (uint64_t i = from; i <= to; i++)
			if (touched[i])
				(style == 2 ? mt_insert : mt_remove) (m, i);
}

static uint64_t
tid_of(const mkey *k)
{
	uint64_t	t = 0;

	for (int i = 0; i < 6; i++)
		t = t << 8 | k->p[k->len - 6 + (uint32_t) i];
	return t;
}

static void
judge_lookup(model *m, uint64_t k, const uint64_t *tids, uint32_t n, bool more,
			 const bool *before, const bool *touched, const char *where)
{
	uint64_t	i = k;
	uint32_t	x = 0;

	while (i > 0 && m->key[i - 1].len == m->key[k].len &&
		   memcmp(m->key[i - 1].p, m->key[k].p, m->key[k].len - 6) == 0)
		i--;
	for (; i < m->n && m->key[i].len == m->key[k].len &&
		 memcmp(m->key[i].p, m->key[k].p, m->key[k].len - 6) == 0; i++)
	{
		bool		hit = x < n && tids[x] == tid_of(&m->key[i]);

		if (!touched[i] && hit && !before[i])
			mt_die(m, "lookup of key %llu, stopped at %s: finds key %llu", (unsigned long long) k,
				   where, (unsigned long long) i);
		if (!touched[i] && !hit && before[i] && !(more && x == n))
			mt_die(m, "lookup of key %llu, stopped at %s: misses key %llu", (unsigned long long) k,
				   where, (unsigned long long) i);
		x += hit;
	}
	if (x < n)
		mt_die(m, "lookup of key %llu, stopped at %s: finds what is none of its", (unsigned long long) k, where);
}

/* before: the model as it was; what was not touched is as before. */
static void
judge(model *m, const bool *before, const bool *touched, const char *where)
{
	uint64_t	k = v.key;

	switch (v.what)
	{
		case INSERT:
			for (; k <= v.end; k++)
			{
				if (v.each[k] != (before[k] ? AX_EXISTS : AX_OK))
					mt_die(m, "insert of key %llu, stopped at %s: status %d, it was %s", (unsigned long long) k,
						   where, (int) v.each[k], before[k] ? "in" : "not in");
				m->count += !m->in[k];
				m->in[k] = true;
			}
			break;
		case REMOVE:
			for (; k <= v.end; k++)
			{
				if (v.each[k] != (before[k] ? AX_OK : AX_NOTFOUND))
					mt_die(m, "remove of key %llu, stopped at %s: status %d, it was %s", (unsigned long long) k,
						   where, (int) v.each[k], before[k] ? "in" : "not in");
				m->count -= m->in[k];
				m->in[k] = false;
			}
			break;
		case CONTAINS:
			if (v.status != (before[k] ? AX_OK : AX_NOTFOUND))
				mt_die(m, "contains of key %llu, stopped at %s: status %d, it is %s", (unsigned long long) k,
					   where, (int) v.status, before[k] ? "in" : "not in");
			break;
		case LOOKUP:
			if (v.status != AX_OK || v.n > v.max)
				mt_die(m, "lookup of key %llu, stopped at %s: status %d", (unsigned long long) k, where, (int) v.status);
			judge_lookup(m, k, v.tids, v.n, v.more, before, touched, where);
			break;
		case MANY:
			if (v.status != AX_OK || v.n > v.nmany)
				mt_die(m, "lookup of %u keys from %llu, stopped at %s: status %d, %u answered", v.nmany,
					   (unsigned long long) k, where, (int) v.status, v.n);
			for (uint32_t i = 0, at = 0; i < v.n; at += v.counts[i++])
				judge_lookup(m, k + i, v.tids + at, v.counts[i], false, before, touched, where);
			break;
		default:
			{
				bool		back = v.what == SCAN_BACK;
				uint32_t	x = 0;

				if (v.status != AX_OK || v.b.n > v.max || (v.b.n == 0 && !v.b.exhausted))
					mt_die(m, "%s, stopped at %s: status %d, %u entries", op_name[v.what], where, (int) v.status, v.b.n);
				for (uint64_t c = 0; c <= v.end - v.key; c++)
				{
					uint64_t	i = back ? v.end - c : v.key + c;
					const mkey *q = &m->key[i];
					bool		hit;

					if (x == v.b.n && !v.b.exhausted)
						break;
					hit = x < v.b.n && v.tids[x] == tid_of(q) &&
						(!v.keys || (v.off[x + 1] - v.off[x] == q->len &&
									 memcmp(v.keybuf + v.off[x], q->p, q->len) == 0));
					if (!touched[i] && hit != before[i])
						mt_die(m, "%s from key %llu to %llu, stopped at %s: %s key %llu (entry %u of %u)", op_name[v.what],
							   (unsigned long long) v.key, (unsigned long long) v.end, where,
							   hit ? "finds" : "misses", (unsigned long long) i, x, v.b.n);
					x += hit;
				}
				if (x < v.b.n)
					mt_die(m, "%s, stopped at %s: entry %u of %u is out of order, or beyond", op_name[v.what], where, x, v.b.n);
				break;
			}
	}
}

static void
one_kind(ax_ctx *cx, ax_tree *t, keykind kind, uint64_t keys, uint64_t rounds, uint64_t seed)
{
	model		m;
	bool	   *before,
			   *touched;
	uint64_t	n = 0;
	bool		telling = true; /* the TID says which key it is */

	mt_universe(&m, kind, keys, seed);
	mt_open(&m, cx, t);
	for (uint64_t i = 0; i < m.n && telling; i++)
		for (uint64_t j = 0; j < i && telling; j++)
			telling = tid_of(&m.key[i]) != tid_of(&m.key[j]);
	before = malloc(m.n);
	touched = malloc(m.n);
	if (!before || !touched)
		abort();
	v.m = &m;
	for (uint64_t round = 0; round < rounds; round++)
	{
		uint64_t	r = tap_rand(&m.seed);
		int			p = (int) ((r >> 8) % (uint64_t) NPOINTS);
		bool		stop;

		/* now and then another tree: nearly empty, nearly full, or between */
		if (round % 64 == 0)
		{
			int			want = (int) ((r >> 16) % 5) * 25;

			for (uint64_t i = 0; i < m.n; i++)
				if ((int) (tap_rand(&m.seed) % 100) < want)
					mt_insert(&m, i);
				else
					mt_remove(&m, i);
		}
		v.what = points[p].what;
		if (v.what == SCAN && (r >> 20) & 1)
			v.what = SCAN_BACK;
		if (v.what == SCAN && (r >> 21) % 8 == 0)
			v.what = LOOKUP;	/* it may go on as a scan */
		if (v.what == LOOKUP && (r >> 22) & 3)
			v.what = MANY;
		v.company = (uint32_t) (tap_rand(&m.seed) % COMPANY) + 1;
		v.key = (r >> 24) % m.n;
		v.end = v.key + (v.what < CONTAINS && (r >> 51) & 1 ? 0 : (r >> 44) % 80);
		if (v.end >= m.n)
			v.end = m.n - 1;
		v.keys = !telling || (r >> 23) & 1;
		v.open = tap_rand(&m.seed) % 4 == 0;
		if (v.open && v.what == SCAN)
			v.end = m.n - 1;
		else if (v.open && v.what == SCAN_BACK)
			v.key = 0;
		v.max = (r >> 52) & 1 ? 600 : (uint32_t) (r >> 53) % 8 + 1;
		memcpy(before, m.in, m.n);
		memset(touched, 0, m.n);
		atomic_store(&parked, false);
		atomic_store(&countdown, (int) ((r >> 58) % (v.what < CONTAINS ? 12 : v.what == MANY ? 30 : 4)) + 1);
		atomic_store(&target, p);
		sem_post(&go);
		while (sem_wait(&stopped_or_done))
			;
		stop = atomic_load(&parked);
		if (stop)
		{
			met[p]++;
			parks[p][v.what]++;
			disturb(&m, touched);
			sem_post(&resume);
			while (sem_wait(&stopped_or_done))
				;
			n++;
		}
		atomic_store(&target, -1);
		judge(&m, before, touched, stop ? points[p].name : "nothing");
		if (stop || round % 64 == 0)
			mt_check(&m, stop ? points[p].name : "after an undisturbed operation");
		if (round % 32 == 0)
			mt_compare_all(&m);
		if (round % 8 == 0)
			(void) ax_poll(cx);
	}
	mt_compare_all(&m);
	mt_close(&m);
	(void) tap_quiesce(cx);
	mt_free(&m);
	free(before);
	free(touched);
	ok(n > 0, "%s: %llu operations stopped and disturbed", keykind_name[kind], (unsigned long long) n);
}

/* ---- a slot of a Node48 that another takes between index and slot ---- */

#define TAKEN 20				/* the key that goes; FRESH comes in its slot */
#define FRESH 200
#define EMBEDS 40

static struct
{
	ax_ctx	   *cx;
	ax_tree    *t;
	uint64_t	gen;
	int			met;
	bool		done;
}			taken;

static const uint8_t *
embed_key(uint8_t *k, uint8_t i)
{
	memset(k, 0, 15);
	k[0] = 1;
	k[8] = i;
	k[14] = (uint8_t) (i + 1);
	return k;
}

static void
hook_taken(const char *name)
{
	uint8_t		k[15];

	if (taken.done || strcmp(name, "art.scan.slot") != 0 || ++taken.met != TAKEN + 1)
		return;
	taken.done = true;
	if (ax_remove(taken.cx, taken.t, taken.gen, embed_key(k, TAKEN), 15) != AX_OK ||
		ax_insert(taken.cx, taken.t, taken.gen, embed_key(k, FRESH), 15) != AX_OK)
		abort();
}

/*
 * A scan that wants no keys reads one TID of the node after the other and validates
 * at the end.  At each of the first places in turn, so at the right one, too.
 */
static void
slot_taken(ax_ctx *cx, ax_tree *t)
{
	uint64_t	tids[256];
	uint8_t		last[64],
				k[15];
	uint32_t	wrong = 0,
				changed = 0;

	for (int at = 0; at < EMBEDS; at++)
	{
		ax_batch	b = {.hi = {NULL, 0, true}, .max = 256, .tids = tids, .lastkey = last,
			.lastkey_size = sizeof(last)};
		ax_tree_info ti;

		taken.cx = cx;
		taken.t = t;
		taken.met = TAKEN - at;
		taken.done = false;
		ax_tree_open(cx, t, AX_ART_OLC, 0, 0, &taken.gen);
		for (int i = 0; i < EMBEDS; i++)
			ax_insert(cx, t, taken.gen, embed_key(k, (uint8_t) i), 15);
		ax_info(cx, t, taken.gen, &ti);
		if (at == 0)
			ok(ti.n48 == 1 && ti.embedded == EMBEDS, "a Node48 of TIDs");
		tap_point_hook = hook_taken;
		if (ax_scan(&v.cx, t, taken.gen, &b) != AX_OK)
			abort();
		tap_point_hook = NULL;
		changed += taken.done;
		/* rising, and each the TID of the key at its place */
		for (uint32_t i = 1; i < b.n; i++)
			wrong += tids[i] <= tids[i - 1];
		ax_tree_close(cx, t);
		(void) tap_quiesce(cx);
	}
	ok(changed > TAKEN, "its slot was taken by another in %u scans", changed);
	ok(wrong == 0, "and no scan returned a TID where it does not belong (%u)", wrong);
}

int
main(int argc, char **argv)
{
	static const struct
	{
		keykind		kind;
		uint64_t	keys;
	}			sets[] = {
		{KK_DENSE, 400}, {KK_SHARED, 300}, {KK_UUID, 600}, {KK_DUPS, 700}, {KK_DUPS_RANDOM, 500},
		{KK_TWO, 300}, {KK_TINY, 200}, {KK_LENGTHS, 300}, {KK_MIDDLE, 120}, {KK_PAIR, 600},
		{KK_STEP997, 800}, {KK_TWO, 40}, {KK_SHARED, 40}, {KK_DENSE, 12}
	};
	static ax_ctx cx;
	ax_area    *a = tap_area((size_t) 128 << 20, 2, 1 << 20);
	ax_tree    *t;
	pthread_t	thread;
	uint64_t	rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : tap_scaled(18000);
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	sem_init(&go, 0, 0);
	sem_init(&stopped_or_done, 0, 0);
	sem_init(&resume, 0, 0);
	ax_attach(&cx, a, 0, 1, &ax_port_default);
	ax_attach(&v.cx, a, 1, 2, &ax_port_default);
	t = ax_tree_alloc(&cx);
	slot_taken(&cx, t);
	tap_point_hook = hook;
	if (pthread_create(&thread, NULL, victim, NULL))
		abort();
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		one_kind(&cx, t, sets[i].kind, sets[i].keys, rounds, seed * 100 + i);
	atomic_store(&quit, true);
	sem_post(&go);
	pthread_join(thread, NULL);
	for (int i = 0; i < NPOINTS; i++)
		ok(met[i] > 0 || rounds < 18000, "%s: stopped %llu times (insert %llu, remove %llu, contains %llu, lookup %llu, of many %llu, scan %llu, back %llu)",
		   points[i].name, (unsigned long long) met[i], (unsigned long long) parks[i][0], (unsigned long long) parks[i][1],
		   (unsigned long long) parks[i][2], (unsigned long long) parks[i][3], (unsigned long long) parks[i][4],
		   (unsigned long long) parks[i][5], (unsigned long long) parks[i][6]);
	ax_detach(&v.cx);
	ax_detach(&cx);
	return tap_done();
}
