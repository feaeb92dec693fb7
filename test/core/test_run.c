/*
 * test_run.c
 *	  Sorted keys that end in one node of a radix tree (core/radix/rt_merge.c): one
 *	  descent for all of them, whoever else is there.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/ax.h"
#include "keyset.h"
#include "tap.h"

#define KEY_LEN	15
#define RUN		200

static const ax_structure engines[] = {AX_ART_OLC, AX_ART_ROWEX, AX_ART_OPTIQL, AX_ART_COARSE};
static const char *const engine_name[] = {"olc", "rowex", "optiql", "coarse"};

static ax_ctx main_cx;
static ax_area *area;
static ax_tree *tree;
static uint64_t gen;

static void
make(uint8_t *k, uint64_t i)
{
	k[0] = 1;
	ks_put8(k + 1, i);
	ks_put_tid(k + 9, ks_tid(i));
}

static bool
has(ax_ctx *cx, uint64_t i)
{
	uint8_t		k[KEY_LEN];
	ax_status	r;

	make(k, i);
	while ((r = ax_contains(cx, tree, gen, k, KEY_LEN)) == AX_BUSY)
		;
	return r == AX_OK;
}

static ax_status
put(ax_ctx *cx, uint64_t i)
{
	uint8_t		k[KEY_LEN];
	ax_status	r;

	make(k, i);
	while ((r = ax_insert(cx, tree, gen, k, KEY_LEN)) == AX_BUSY)
		;
	return r;
}

/* n keys from "from" on, every "step"th; how many were new. */
static uint64_t
put_run(ax_ctx *cx, uint64_t from, uint64_t n, uint64_t step)
{
	uint8_t	  (*k)[KEY_LEN] = malloc(n * KEY_LEN);
	const uint8_t **p = malloc(n * sizeof(*p));
	uint64_t	all = 0;

	for (uint64_t i = 0; i < n; i++)
	{
		make(k[i], from + i * step);
		p[i] = k[i];
	}
	for (uint64_t at = 0; at < n;)
	{
		uint64_t	done,
					added;
		ax_status	r = ax_insert_sorted(cx, tree, gen,
				&(ax_keys) {p + at, NULL, KEY_LEN, n - at}, &done, &added);

		if (r != AX_OK && r != AX_BUSY)
			abort();
		at += done;
		all += added;
	}
	free(p);
	free(k);
	return all;
}

static char what[200];			/* is wrong */

static uint64_t
entries(void)
{
	ax_tree_info ti;
	bool		good;

	what[0] = 0;
	if (tap_check(&main_cx, tree, gen, &ti, &good, what, sizeof(what)) != AX_OK || !good)
		return UINT64_MAX;
	return ti.entries;
}

static void
open_tree(ax_structure s)
{
	tree = ax_tree_alloc(&main_cx);
	if (!tree || ax_tree_open(&main_cx, tree, s, 0, 0, &gen) != AX_OK)
		abort();
}

static void
close_tree(void)
{
	ax_tree_close(&main_cx, tree);
	(void) tap_quiesce(&main_cx);
	ax_tree_release(&main_cx, tree);
}

/* A node that grows through all its kinds, by runs of every length, with gaps and repeats. */
static void
growth(int e)
{
	uint64_t	seed = 5,
				wrong = 0,
				count = 0;
	static bool in[70000];

	memset(in, 0, sizeof(in));
	open_tree(engines[e]);
	for (int round = 0; round < (int) tap_scaled(600); round++)
	{
		uint64_t	n = 1 + tap_rand(&seed) % (round % 3 == 0 ? 5 : round % 3 == 1 ? 40 : 300),
					step = tap_rand(&seed) % 4 ? 1 : 1 + tap_rand(&seed) % 20,
					from = tap_rand(&seed) % 60000,
					fresh = 0;

		for (uint64_t i = 0; i < n; i++)
			if (!in[from + i * step])
			{
				in[from + i * step] = true;
				fresh++;
			}
		wrong += put_run(&main_cx, from, n, step) != fresh;
		count += fresh;
	}
	for (uint64_t i = 0; i < 70000; i++)
		wrong += has(&main_cx, i) != in[i];
	ok(wrong == 0 && entries() == count, "%s: runs of every length %s", engine_name[e], what);
	close_tree();
}

/* ---- a run that is about to go in, and another insert ---- */

static _Atomic int stopped,
			go_on;
static _Thread_local bool may_stop;

static void
hook(const char *name)
{
	if (!may_stop || strcmp(name, "art.run.before_lock") != 0)
		return;
	may_stop = false;
	atomic_store(&stopped, 1);
	for (int i = 0; i < 100000 && !atomic_load(&go_on); i++)
		usleep(100);
}

typedef struct job
{
	uint64_t	from,
				n,
				added;
	ax_ctx		cx;
} job;

static void *
job_run(void *arg)
{
	job		   *j = arg;

	ax_attach(&j->cx, area, 2, 2, &ax_port_default);
	may_stop = true;
	j->added = put_run(&j->cx, j->from, j->n, 1);
	ax_detach(&j->cx);
	return NULL;
}

/*
 * have: so many keys are there; the run follows.  Meanwhile one of its keys is
 * inserted, and one of the others removed.
 */
static void
beside(int e, uint64_t have, uint64_t n)
{
	job		   *j = aligned_alloc(64, sizeof(job));
	pthread_t	th;
	uint8_t		k[KEY_LEN];
	uint64_t	found = 0;

	open_tree(engines[e]);
	/* many others, so that this is a node and no leaf */
	for (uint64_t i = 0; i < 5000; i++)
		put(&main_cx, 100000 + i);
	for (uint64_t i = 0; i < have; i++)
		put(&main_cx, 256 * 2000 + i);
	memset(j, 0, sizeof(*j));
	j->from = 256 * 2000 + have;
	j->n = n;
	atomic_store(&stopped, 0);
	atomic_store(&go_on, 0);
	tap_point_hook = hook;
	pthread_create(&th, NULL, job_run, j);
	for (int i = 0; i < 100000 && !atomic_load(&stopped); i++)
		usleep(100);
	ok(atomic_load(&stopped), "%s: a run of %llu behind %llu keys", engine_name[e],
	   (unsigned long long) n, (unsigned long long) have);
	if (engines[e] != AX_ART_COARSE)
	{
		/* a coarse latch is held by him who stands there */
		ok(put(&main_cx, j->from + n / 2) == AX_OK, "one of it goes in by itself");
		make(k, j->from - 1);
		ok(ax_remove(&main_cx, tree, gen, k, KEY_LEN) == AX_OK, "another key goes");
	}
	atomic_store(&go_on, 1);
	pthread_join(th, NULL);
	tap_point_hook = NULL;
	for (uint64_t i = 0; i < n; i++)
		found += has(&main_cx, j->from + i);
	ok(found == n && j->added == n - (engines[e] != AX_ART_COARSE), "all of it is in, once");
	ok(entries() == 5000 + have + n - (engines[e] != AX_ART_COARSE) &&
	   (engines[e] == AX_ART_COARSE || !has(&main_cx, j->from - 1)), "and nothing else %s", what);
	close_tree();
	free(j);
}

/* ---- many, and readers ---- */

typedef struct crowd
{
	uint64_t	n;
	uint64_t	run,
				step;
	_Atomic uint64_t next;
	_Atomic uint64_t added;
	_Atomic uint64_t last[3];	/* of each writer: the last run that is in */
	_Atomic uint64_t wrong;
	_Atomic int writers;
} crowd;

static void
worker(void *arg, int me)
{
	crowd	   *c = arg;
	ax_ctx	   *cx = aligned_alloc(64, sizeof(ax_ctx));
	uint64_t	seed = 99 + (uint64_t) me;

	if (!cx)
		abort();
	ax_attach(cx, area, me + 1, me + 1, &ax_port_default);
	if (me < 3)
	{
		/* overlapping runs: each key by two of them */
		for (uint64_t from; (from = atomic_fetch_add(&c->next, c->run / 2)) < c->n;)
		{
			atomic_fetch_add(&c->added, put_run(cx, from * c->step, c->run, c->step));
			(void) ax_poll(cx);
			atomic_store(&c->last[me], from);
		}
		atomic_fetch_sub(&c->writers, 1);
	}
	else
		while (atomic_load(&c->writers) > 0)
		{
			/* of the latest runs: there the nodes change */
			uint64_t	last = atomic_load(&c->last[tap_rand(&seed) % 3]);

			if (last && !has(cx, (last + tap_rand(&seed) % c->run) * c->step))
				atomic_fetch_add(&c->wrong, 1);
		}
	ax_detach(cx);
	free(cx);
}

static void
many(int e, uint64_t run, uint64_t step)
{
	crowd		c = {.n = tap_scaled(100 * RUN * 5) / 600 * 600, .run = run, .step = step, .writers = 3};
	uint64_t	n;

	open_tree(engines[e]);
	tap_threads(5, worker, &c);
	n = c.n + run - run / 2;
	ok(c.wrong == 0, "%s: readers miss nothing: %llu", engine_name[e], (unsigned long long) c.wrong);
	ok(c.added == n && entries() == n, "%s: %llu keys, each added once, of %llu %s",
	   engine_name[e], (unsigned long long) c.added, (unsigned long long) n, what);
	close_tree();
}

int
main(void)
{
	area = tap_area((size_t) 256 << 20, 16, 1 << 20);
	ax_attach(&main_cx, area, 0, 1, &ax_port_default);
	for (int e = 0; e < 4; e++)
	{
		growth(e);
		/* into the node as it is, and into a bigger copy of it */
		beside(e, 60, 100);
		beside(e, 36, 10);
		beside(e, 40, 100);
		many(e, RUN, 1);
		/* four to seven and ten to sixteen in a node */
		many(e, 4, 40);
		many(e, 6, 18);
	}
	ax_detach(&main_cx);
	return tap_done();
}
