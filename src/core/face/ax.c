/*
 * ax.c
 *	  The dispatch of every call to the engine of its tree, inside an epoch.
 *
 * src/core/face/README.md: Overview
 * src/core/face/README.md: The check
 * src/core/face/README.md: Compaction
 */
#include "core/base/ax_area.h"
#include "core/base/ax_call.h"
#include "core/tail/ax_tail.h"

#define COMPACT_SLACK	(64 * 1024)	/* some spans of each class */
#define CHECK_FLUSHES	1000	/* beside inserters a tail buffer may never be empty */

/* Keys that one call of ax_insert_sorted takes: one epoch each. */
#define SORTED_KEYS 256

/* A tree of fewer bytes is in the processor's caches.  Tests have small ones. */
#ifdef AX_DEBUG
#define AHEAD_BYTES 1
#else
#define AHEAD_BYTES (256 * 1024)
#endif

/* The store's buffer, looked at before the tree (see ax_tail.h). */
static inline ax_tail *
tree_tail(ax_store *st)
{
	return atomic_load_explicit(&st->tail, memory_order_acquire);
}

/*
 * One insert, into the buffer or the tree.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
static inline ax_status
insert_one(ax_ctx *cx, ax_store *st, const uint8_t *key, uint32_t len)
{
	ax_tail    *tail = tree_tail(st);

	if (ax_unlikely(--ax_body(cx)->tail_countdown < 0 ||
					(!tail && atomic_load_explicit(&st->tail_now, memory_order_relaxed))))
		tail = ax_tail_sample(cx, st, key, len);
	return tail ? ax_tail_insert(cx, st, tail, key, len) :
		st->engine->insert(cx, st, key, len);
}

/*
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_insert(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *key, uint32_t len)
{
	ax_store   *st;
	ax_status	r;
	int			tries = 0;

	do
	{
		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		AX_ELIDE_FRAME(cx, st);
		r = insert_one(cx, st, key, len);
	} while (ax_finish(cx, &r, &tries));
	return r;
}

/* The next keys whose waits for memory overlap. */
static inline ax_keys
group_from(const ax_keys *keys, uint64_t i)
{
	return ax_keys_from(keys, i, keys->n - i < AX_GROUP ? keys->n - i : AX_GROUP);
}

/* Would the inserts of keys that lie anywhere wait for the tree's memory? */
static inline bool
worth_looking_ahead(ax_store *st)
{
	return st->engine->look_ahead != NULL && tree_tail(st) == NULL &&
		atomic_load_explicit(&st->bytes, memory_order_relaxed) >= AHEAD_BYTES;
}

/*
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_insert_many(ax_ctx *cx, ax_tree *t, uint64_t gen, const ax_keys *keys, uint32_t *done)
{
	ax_store   *st;
	ax_status	r;
	int			tries = 0;

	*done = 0;
	do
	{
		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		AX_ELIDE_FRAME(cx, st);
		for (uint32_t left = 0; r == AX_OK && *done < keys->n; left--)
		{
			if (left == 0)
			{
				ax_keys		next = group_from(keys, *done);

				if (worth_looking_ahead(st))
					st->engine->look_ahead(cx, st, &next);
				left = (uint32_t) next.n;
			}
			r = insert_one(cx, st, keys->p[*done], ax_key_len(keys, *done));
			if (r == AX_EXISTS)
				r = AX_OK;
			*done += r == AX_OK;
		}
	} while (ax_finish(cx, &r, &tries));
	return r;
}

/*
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_remove(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *key, uint32_t len)
{
	ax_store   *st;
	ax_tail    *tail;
	ax_status	r;
	int			tries = 0;

	do
	{
		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		AX_ELIDE_FRAME(cx, st);
		tail = tree_tail(st);
		r = tail && ax_tail_near(tail, key, len - AX_TID_BYTES) ? ax_tail_remove(cx, st, tail, key, len) :
			st->engine->remove(cx, st, key, len);
	} while (ax_finish(cx, &r, &tries));
	return r == AX_NOMEM ? AX_BUSY : r; /* nobody can do without it */
}

/*
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_load(ax_ctx *cx, ax_tree *t, uint64_t gen, const ax_keys *keys, int fill)
{
	ax_store   *st;
	ax_status	r;
	int			tries = 0;
	int			loads = 0;

	do
	{
		/* dear, so only once more; memory is on its way */
		if (loads++ == 2)
		{
			ax_body(cx)->nomem_busy = true;
			return AX_BUSY;
		}
		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		r = st->engine->load(cx, st, keys, fill);
	} while (ax_finish(cx, &r, &tries));
	return r;
}

/*
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_insert_sorted(ax_ctx *cx, ax_tree *t, uint64_t gen, const ax_keys *keys, uint64_t *done,
				 uint64_t *added)
{
	const uint64_t n = keys->n < SORTED_KEYS ? keys->n : SORTED_KEYS;
	ax_store   *st;
	ax_status	r;
	int			tries = 0;

	*done = *added = 0;
	do
	{
		ax_keys		rest = ax_keys_from(keys, *done, n - *done);
		uint64_t	some = 0,
					fresh = 0;

		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		AX_ELIDE_FRAME(cx, st);
		r = st->engine->insert_sorted(cx, st, &rest, &some, &fresh);
		*done += some;
		*added += fresh;
	} while (ax_finish(cx, &r, &tries));
	return r;
}

/*
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_load_share(ax_ctx *cx, ax_tree *t, uint64_t gen, const ax_keys *keys, int fill,
			  uint64_t *done, uint64_t *added)
{
	ax_store   *st;
	ax_status	r;
	int			tries = 0;

	*done = *added = 0;
	do
	{
		ax_keys		rest = ax_keys_from(keys, *done, keys->n - *done);
		uint64_t	some = 0,
					fresh = 0;

		r = ax_enter(cx, t, gen, &st);
		if (r != AX_OK)
			return r;
		AX_ELIDE_FRAME(cx, st);
		r = st->engine->load_share(cx, st, &rest, fill, &some, &fresh);
		*done += some;
		*added += fresh;
	} while (ax_finish(cx, &r, &tries));
	return r;
}

/*
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_settle(ax_ctx *cx, ax_tree *t, uint64_t gen, bool all)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);
	int			tries = 0;

	if (r != AX_OK)
		return r;
	ax_tail_settle(cx, st, all);
	if (st->engine->settle)
		r = st->engine->settle(cx, st, all);
	if (ax_finish(cx, &r, &tries) || r == AX_NOMEM)
		r = AX_BUSY;
	return r;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_catch_up(ax_ctx *cx, ax_tree *t, uint64_t gen)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);
	int			tries = 0;

	if (r != AX_OK)
		return r;
	if (st->engine->logs)
		r = st->engine->settle(cx, st, true);
	if (ax_finish(cx, &r, &tries) || r == AX_NOMEM)
		r = AX_BUSY;
	return r;
}

bool
ax_compact_due(uint64_t bytes, uint64_t live)
{
	return bytes > live + live / 4 + COMPACT_SLACK;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_held(ax_ctx *cx, ax_tree *t, uint64_t gen, uint64_t *bytes, uint64_t *live)
{
	ax_store   *st;
	ax_status	r = ax_enter_read(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	*bytes = atomic_load_explicit(&st->bytes, memory_order_relaxed);
	*live = st->engine->compact ? ax_live_bytes(st) : *bytes;
	ax_leave(cx);
	return AX_OK;
}

/*
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_compact(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_compaction *c)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);
	int			tries = 0;

	if (r != AX_OK)
		return r;
	ax_body(cx)->drains = ax_compact_due(atomic_load_explicit(&st->bytes, memory_order_relaxed),
										 ax_live_bytes(st));
	if (ax_body(cx)->drains)
		ax_drain_begin(cx, st);
	if (st->engine->compact)
		r = st->engine->compact(cx, st, c);
	else
		c->done = true;
	(void) ax_finish(cx, &r, &tries);
	return r;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_contains(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *key, uint32_t len)
{
	ax_store   *st;
	ax_tail    *tail;
	ax_status	r = ax_enter_read(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	tail = tree_tail(st);
	r = tail && ax_tail_near(tail, key, len - AX_TID_BYTES) ? ax_tail_contains(cx, st, tail, key, len) :
		st->engine->contains(cx, st, key, len);
	ax_leave(cx);
	return r;
}

static inline ax_status
lookup_one(ax_ctx *cx, ax_store *st, const uint8_t *prefix, uint32_t len, ax_found *f)
{
	ax_tail    *tail = tree_tail(st);

	return ax_unlikely(tail && ax_tail_near(tail, prefix, len)) ?
		ax_tail_lookup(cx, st, tail, prefix, len, f) :
		st->engine->lookup(cx, st, prefix, len, f);
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_lookup(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *prefix, uint32_t len,
		  ax_found *f)
{
	ax_store   *st;
	ax_status	r = ax_enter_read(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	r = lookup_one(cx, st, prefix, len, f);
	ax_leave(cx);
	return r;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_lookup_many(ax_ctx *cx, ax_tree *t, uint64_t gen, const ax_keys *keys, ax_found *f,
			   uint32_t *counts, uint32_t *done)
{
	ax_store   *st;
	ax_status	r = ax_enter_read(cx, t, gen, &st);
	uint32_t	k = 0;

	*done = 0;
	f->n = 0;
	if (r != AX_OK)
		return r;
	while (k < keys->n)
	{
		ax_keys		group = group_from(keys, k);
		ax_found	part = {.tids = f->tids + f->n, .max = f->max - f->n};
		uint32_t	some = 0;
		ax_tail    *tail = tree_tail(st);	/* before the tree */

		/* as far as the buffer has none of them */
		if (ax_unlikely(tail != NULL))
			for (uint32_t i = 0; i < group.n; i++)
				if (ax_tail_near(tail, group.p[i], ax_key_len(&group, i)))
					group.n = i;
		if (ax_likely(group.n > 0) && ax_likely(st->engine->lookup_many != NULL))
			r = st->engine->lookup_many(cx, st, &group, &part, counts + k, &some);
		else
		{
			r = lookup_one(cx, st, group.p[0], ax_key_len(&group, 0), &part);
			counts[k] = part.n;
			group.n = 1;
			some = r == AX_OK && !part.more;
		}
		for (uint32_t i = 0; i < some; i++)
			f->n += counts[k++];
		if (r != AX_OK || some < group.n)
			break;
	}
	ax_leave(cx);
	*done = k;
	return k ? AX_OK : r;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_scan(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_batch *b)
{
	ax_store   *st;
	ax_tail    *tail;
	ax_status	r = ax_enter_read(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	tail = tree_tail(st);
	r = tail ? ax_tail_scan(cx, st, tail, b) : st->engine->scan(cx, st, b);
	ax_leave(cx);
	return r;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_check(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_checking *c)
{
	ax_store   *st;
	ax_status	r;

	if (!c->begun && c->flushes < CHECK_FLUSHES)
	{
		bool		more;

		/* into the tree with it, a step a call; what cannot go there is counted below */
		r = ax_tail_flush(cx, t, gen, &more);
		if (r == AX_STALE)
			return r;
		if (r == AX_OK && more)
		{
			c->flushes++;
			return AX_OK;
		}
		c->flushes = CHECK_FLUSHES;
	}
	r = ax_enter(cx, t, gen, &st);
	if (r != AX_OK)
		return r;
	r = st->engine->check(cx, st, c);
	c->begun = true;
	if (c->bad)
		c->done = true;
	if (r == AX_OK && c->done)
	{
		c->info.inner_nodes = c->info.n4 + c->info.n16 + c->info.n48 + c->info.n256;
		if (tree_tail(st))
			ax_tail_info(cx, st, &c->info, false);
	}
	ax_leave(cx);
	return r;
}
