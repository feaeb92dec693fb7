/*
 * ax_coarse_engine.c
 *	  sync = coarse: one latch for the whole tree, shared by its readers.
 *
 * The simplest engine, against which the others are tested: a writer has the
 * tree to itself, readers share it.  The structure's own code runs under the
 * latch (ax_coarse.c); nobody contends for its latches.
 *
 * src/core/base/README.md: Latches, restarts, waiting
 */
#include "core/base/ax_coarse.h"
#include "core/btree/btree.h"
#include "core/elide/ax_elide.h"
#include "core/hydra/hydra.h"
#include "core/radix/radix.h"
#include "face.h"

/*
 * Each call of the inner engine, under the latch.  Where elision is on it is
 * first tried as a section under no latch that others see. key: some key on
 * its way, to touch its lines beforehand.  That is a function of its own, so
 * that the usual way does not pay for it.
 */
#define SHARED(call) \
	do { \
		r = ax_coarse_lock_shared(cx, s); \
		if (r == AX_OK) \
		{ \
			r = s->engine->inner->call; \
			ax_coarse_unlock_shared(cx, s); \
		} \
	} while (0)

#define EXCLUSIVE(call) \
	do { \
		r = ax_coarse_lock_exclusive(cx, s); \
		if (r == AX_OK) \
		{ \
			r = s->engine->inner->call; \
			ax_coarse_unlock_exclusive(cx, s); \
		} \
	} while (0)

#define COARSE(coarse, elided, name, PARAMETERS, ARGUMENTS, LATCHED, write, key, len) \
static __attribute__((noinline)) ax_status \
elided PARAMETERS \
{ \
	ax_status	r; \
\
	if (ax_elide_coarse(cx, s, write, __builtin_frame_address(0), key, len)) \
	{ \
		r = s->engine->inner->name ARGUMENTS; \
		ax_elide_coarse_end(cx, s); \
		return r; \
	} \
	LATCHED(name ARGUMENTS); \
	return r; \
} \
\
static ax_status \
coarse PARAMETERS \
{ \
	ax_status	r; \
\
	if (ax_unlikely(ax_body(cx)->elide.on)) \
		return elided ARGUMENTS; \
	LATCHED(name ARGUMENTS); \
	return r; \
}

COARSE(coarse_insert, elided_insert, insert,
	   (ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len),
	   (cx, s, key, len), EXCLUSIVE, true, key, len)
COARSE(coarse_remove, elided_remove, remove,
	   (ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len),
	   (cx, s, key, len), EXCLUSIVE, true, key, len)
COARSE(coarse_contains, elided_contains, contains,
	   (ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len),
	   (cx, s, key, len), SHARED, false, key, len)
COARSE(coarse_lookup, elided_lookup, lookup,
	   (ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f),
	   (cx, s, prefix, len, f), SHARED, false, NULL, 0)
COARSE(coarse_scan, elided_scan, scan,
	   (ax_ctx *cx, ax_store *s, ax_batch *b), (cx, s, b), SHARED, false, NULL, 0)
/*
 * The answers of a section by hand that was undone are not put back, and BUSY
 * says nothing.
 */
#define EXCLUSIVE_SORTED(call) \
	do { \
		*done = *added = 0; \
		EXCLUSIVE(call); \
	} while (0)

COARSE(coarse_insert_sorted, elided_insert_sorted, insert_sorted,
	   (ax_ctx *cx, ax_store *s, const ax_keys *keys, uint64_t *done, uint64_t *added),
	   (cx, s, keys, done, added), EXCLUSIVE_SORTED, true, keys->p[0], ax_key_len(keys, 0))

/* Too many lines for a transaction. */
static ax_status
coarse_lookup_many(ax_ctx *cx, ax_store *s, const ax_keys *keys, ax_found *f,
				   uint32_t *counts, uint32_t *done)
{
	ax_status	r;

	SHARED(lookup_many(cx, s, keys, f, counts, done));
	return r;
}

/* A whole load is too much for a transaction. */
static ax_status
coarse_load(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill)
{
	ax_status	r;

	EXCLUSIVE(load(cx, s, keys, fill));
	return r;
}

static ax_status
coarse_compact(ax_ctx *cx, ax_store *s, ax_compaction *c)
{
	ax_status	r;

	EXCLUSIVE(compact(cx, s, c));
	return r;
}

/*
 * The check looks at some leaves a call, so it can have the latch meanwhile, and
 * must.  For what a section changed can be undone, latch words and all, and
 * the check of a B+-tree may latch pages.  Too much for a transaction.
 */
static ax_status
coarse_check(ax_ctx *cx, ax_store *s, ax_checking *c)
{
	ax_status	r;

	SHARED(check(cx, s, c));
	return r;
}

/* The search layer gets what is logged.  Too much for a transaction. */
static ax_status
coarse_settle(ax_ctx *cx, ax_store *s, bool all)
{
	ax_status	r;

	EXCLUSIVE(settle(cx, s, all));
	return r;
}

#define ENGINE(of, within, ...) { \
	.structure = of, \
	.sync = "coarse", \
	.kind = AX_SYNC_COARSE, \
	.inner = &within, \
	.insert = coarse_insert, \
	.remove = coarse_remove, \
	.contains = coarse_contains, \
	.lookup = coarse_lookup, \
	.scan = coarse_scan, \
	.load = coarse_load, \
	.insert_sorted = coarse_insert_sorted, \
	.compact = coarse_compact, \
	.check = coarse_check, \
	__VA_ARGS__ \
}

const ax_engine ax_engine_art_coarse =
	ENGINE("art", ax_engine_art_olc, .lookup_many = coarse_lookup_many);
const ax_engine ax_engine_btree_coarse =
	ENGINE("btree", ax_engine_btree_olc, .lookup_many = coarse_lookup_many);
const ax_engine ax_engine_hydra_coarse =
	ENGINE("hydra", ax_engine_hydra_olc, .settle = coarse_settle, .logs = true);
