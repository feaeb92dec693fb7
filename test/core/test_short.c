/*
 * test_short.c
 *	  More processes than the reserve has pages, and the area is full: whoever comes
 *	  late still gets a page for its retire records, so what it deletes is deleted, and
 *	  what it inserts is refused for lack of memory, not "in a moment" for ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ax_area.h"
#include "tap.h"

#define SLOTS 300
#define RESERVE ((size_t) 512 << 10)	/* as in the server: 128 pages */
#define KEY_LEN (8 + AX_TID_BYTES)

static ax_port port;
static _Atomic uint64_t parks;
static ax_ctx *cx;
static ax_area *area;
static size_t size;
static ax_tree *tree;
static uint64_t gen;

static void
count_park(uint32_t *word, uint32_t expected, uint32_t us)
{
	atomic_fetch_add(&parks, 1);
	ax_port_default.park(word, expected, us);
}

static void
make_key(uint8_t k[KEY_LEN], uint64_t i)
{
	uint64_t	x = i * UINT64_C(0x9E3779B97F4A7C15);

	for (int b = 0; b < 8; b++)
		k[b] = (uint8_t) (x >> (56 - 8 * b));
	for (int b = 0; b < AX_TID_BYTES; b++)
		k[8 + b] = (uint8_t) (i >> (8 * (AX_TID_BYTES - 1 - b)));
}

static ax_status
insert(ax_ctx *c, uint64_t i)
{
	uint8_t		k[KEY_LEN];

	make_key(k, i);
	return ax_insert(c, tree, gen, k, KEY_LEN);
}

/* A removal may be told to come back, now and then. */
static ax_status
delete(ax_ctx *c, uint64_t i)
{
	uint8_t		k[KEY_LEN];
	ax_status	r = AX_BUSY;

	make_key(k, i);
	for (int n = 0; n < 20 && r == AX_BUSY; n++)
		r = ax_remove(c, tree, gen, k, KEY_LEN);
	return r;
}

static void
begin(ax_structure s, int mb, int slots)
{
	size = (size_t) mb << 20;
	area = tap_area(size, slots, RESERVE);
	cx = aligned_alloc(64, SLOTS * sizeof(*cx));
	ax_attach(&cx[0], area, 0, 1, &port);
	tree = ax_tree_alloc(&cx[0]);
	ok(ax_tree_open(&cx[0], tree, s, 0, 0, &gen) == AX_OK, "%s-%s: open", ax_structure_name(s),
	   ax_structure_sync(s));
}

static void
end(int attached)
{
	ax_memory_info m;

	ax_tree_close(&cx[0], tree);
	ok(tap_quiesce(&cx[0]), "quiescent");
	for (int i = 1; i < attached; i++)
		ax_detach(&cx[i]);
	ok(tap_quiesce(&cx[0]), "quiescent when the others are gone");
	ax_memory(&cx[0], &m);
	ok(m.used_bytes == 0 && area->chunks <= AX_CHUNKS_EACH, "all memory is back");
	ax_detach(&cx[0]);
	ok(area->chunks == 0, "and the last chunk");
	free(cx);
	tap_unmap(area, size);
}

/* Fill the area: the tree, then, if asked for, what may take from the reserve. */
static uint64_t
fill(bool reserve)
{
	uint64_t	n = 0;
	ax_status	r;

	while ((r = insert(&cx[0], n)) == AX_OK)
		n++;
	ok(r == AX_NOMEM && n > 10000, "full at %llu keys", (unsigned long long) n);
	if (reserve)
	{
		while (ax_system_alloc(&cx[0], AX_PAGE))
			;
		while (ax_tree_alloc(&cx[0]))
			;
		ok(!ax_pages_take(&cx[0], 1, AX_OVERHEAD, 0, true, NULL), "and so is the reserve");
	}
	return n;
}

static void
test_crowd(ax_structure s, bool reserve)
{
	uint64_t	n,
				refused = 0,
				removed = 0,
				wrong = 0;

	begin(s, s == AX_ART_OLC ? 16 : 6, SLOTS);
	n = fill(reserve);
	for (int i = 1; i < SLOTS; i++)
	{
		ax_attach(&cx[i], area, i, i + 1, &port);
		/* a few: what is free at hand serves some */
		for (uint64_t k = 0; k < 40; k++)
		{
			ax_status	r = insert(&cx[i], n + (uint64_t) i * 100 + k);

			if (r == AX_NOMEM)
				refused++;
			else if (r != AX_OK)
				wrong++;
		}
	}
	ok(refused > 0 && wrong == 0, "%d processes: %llu inserts are refused, none is put off",
	   SLOTS, (unsigned long long) refused);
	for (int i = 1; i < SLOTS; i++)
		for (uint64_t k = 0; k < 20; k++)
			if (delete(&cx[i], (uint64_t) i * 20 + k) == AX_OK)
				removed++;
	ok(removed == 20 * (SLOTS - 1), "and all of them remove what they want to (%llu)",
	   (unsigned long long) removed);
	end(SLOTS);
}

/*
 * Somebody sits in the epoch, and the pages for retire records are used up: a removal
 * is put off while that is so, sleeping, and then done.
 */
static void
test_pinned(void)
{
	ax_store   *st;
	uint64_t	n,
				at = 0;
	ax_status	r = AX_OK;
	uint8_t		k[KEY_LEN];

	begin(AX_ART_OLC, 6, 4);
	n = fill(true);
	ax_attach(&cx[1], area, 1, 2, &port);
	ax_attach(&cx[2], area, 2, 3, &port);
	ok(ax_enter(&cx[1], tree, gen, &st) == AX_OK, "somebody stays inside");
	for (; at < n && r == AX_OK; at++)
	{
		make_key(k, at);
		r = ax_remove(&cx[0], tree, gen, k, KEY_LEN);
	}
	ok(r == AX_BUSY && at < n, "after %llu removals one is put off", (unsigned long long) at);
	atomic_store(&parks, 0);
	for (int i = 0; i < 3; i++)
		(void) ax_remove(&cx[0], tree, gen, k, KEY_LEN);
	ok(atomic_load(&parks) >= 3, "each time it sleeps a little (%llu)",
	   (unsigned long long) atomic_load(&parks));
	ok(area->free_pages + area->chunks >= area->chunk_pages, "the count of chunks is kept");
	ax_leave(&cx[1]);
	ok(delete(&cx[0], at - 1) == AX_OK, "when it has left, the removal is done");
	ok(delete(&cx[2], at) == AX_OK, "another's too");
	end(3);
}

/* Even if there never were a page again: inserts are refused, nobody spins. */
static void
test_never(void)
{
	uint64_t	n;
	uint8_t		k[KEY_LEN];
	ax_status	r = AX_BUSY;

	begin(AX_BTREE_OLC, 6, 4);
	n = fill(true);
	while (ax_pages_take(&cx[0], 1, AX_CHUNK, 0, true, NULL))
		;
	ax_attach(&cx[1], area, 1, 2, &port);
	for (uint64_t i = 0; i < 1000 && r != AX_NOMEM; i++)
		r = insert(&cx[1], n + i);
	ok(r == AX_NOMEM, "an insert that has no room for retire records: no memory");
	make_key(k, 0);
	atomic_store(&parks, 0);
	ok(ax_remove(&cx[1], tree, gen, k, KEY_LEN) == AX_OK, "a removal in place needs none");
	free(cx);
	tap_unmap(area, size);
}

/* What is put off at once lets the processor go before it says so. */
static void
test_nap(void)
{
	ax_status	r = AX_OK;

	begin(AX_ART_OLC, 6, 4);
	atomic_store(&parks, 0);
	/* as when an allocator's latch cannot be had */
	ax_body(&cx[0])->fail_alloc_at = 1;
	for (uint64_t i = 0; i < 1000 && r == AX_OK; i++)
	{
		ax_body(&cx[0])->alloc_busy = true;
		r = insert(&cx[0], i);
	}
	ok(r == AX_BUSY && atomic_load(&parks) == 1, "an insert that is put off at once sleeps first");
	end(1);
}

int
main(void)
{
	port = ax_port_default;
	port.park = count_park;
	for (int s = 0; s < AX_STRUCTURES; s++)
		if (s != AX_BTREE_COMPARED)
			test_crowd((ax_structure) s, s % 2 == 1);
	test_pinned();
	test_never();
	test_nap();
	return tap_done();
}
