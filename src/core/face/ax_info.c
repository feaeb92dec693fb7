/*
 * ax_info.c
 *	  What is told of a tree: the counters of its present generation.
 *
 * src/core/face/README.md: Statistics
 */
#include "core/base/ax_area.h"
#include "core/tail/ax_tail.h"

/* The counters of a store, summed over its shards; inside an epoch. */
static void
store_info(ax_ctx *cx, ax_store *st, ax_tree_info *out)
{
	int64_t		sum[7] = {0};

	memset(out, 0, sizeof(*out));
	out->gen = st->gen;
	out->bytes = atomic_load_explicit(&st->bytes, memory_order_relaxed);
	out->live_bytes = ax_live_bytes(st);
	out->max_bytes = atomic_load_explicit(&st->max_bytes, memory_order_relaxed);
	out->structure = st->engine->structure;
	out->sync = st->engine->sync;
	out->page_size = st->page_size;
	out->height = (int) atomic_load_explicit(&st->height, memory_order_relaxed);
	for (int i = 0; i < AX_SHARDS; i++)
	{
		ax_shard   *s = &st->shards[i];

		sum[0] += atomic_load_explicit(&s->entries, memory_order_relaxed);
		sum[1] += atomic_load_explicit(&s->n4, memory_order_relaxed);
		sum[2] += atomic_load_explicit(&s->n16, memory_order_relaxed);
		sum[3] += atomic_load_explicit(&s->n48, memory_order_relaxed);
		sum[4] += atomic_load_explicit(&s->n256, memory_order_relaxed);
		sum[5] += atomic_load_explicit(&s->leaves, memory_order_relaxed);
		sum[6] += atomic_load_explicit(&s->embedded, memory_order_relaxed);
		out->restarts += atomic_load_explicit(&s->restarts, memory_order_relaxed);
		out->pessimistic += atomic_load_explicit(&s->pessimistic, memory_order_relaxed);
		out->latch_waits += atomic_load_explicit(&s->latch_waits, memory_order_relaxed);
		out->parks += atomic_load_explicit(&s->parks, memory_order_relaxed);
		out->handovers += atomic_load_explicit(&s->handovers, memory_order_relaxed);
		out->abandoned += atomic_load_explicit(&s->abandoned, memory_order_relaxed);
		out->opportunistic_reads += atomic_load_explicit(&s->opportunistic_reads, memory_order_relaxed);
		out->opportunistic_failed += atomic_load_explicit(&s->opportunistic_failed, memory_order_relaxed);
		out->expansions += atomic_load_explicit(&s->expansions, memory_order_relaxed);
		out->walks += atomic_load_explicit(&s->walks, memory_order_relaxed);
		out->walk_steps += atomic_load_explicit(&s->walk_steps, memory_order_relaxed);
	}
	/* shards are read one after another: a sum may dip below zero */
	for (int i = 0; i < 7; i++)
		if (sum[i] < 0)
			sum[i] = 0;
	out->entries = (uint64_t) sum[0];
	out->n4 = (uint64_t) sum[1];
	out->n16 = (uint64_t) sum[2];
	out->n48 = (uint64_t) sum[3];
	out->n256 = (uint64_t) sum[4];
	out->leaves = (uint64_t) sum[5];
	out->embedded = (uint64_t) sum[6];
	out->inner_nodes = out->n4 + out->n16 + out->n48 + out->n256;
	if (ax_inner(st)->info)
		ax_inner(st)->info(st, out);
	ax_tail_info(cx, st, out, false);
}

/*
 * Epoch: enters and leaves.
 */
ax_status
ax_info(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tree_info *out)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	store_info(cx, st, out);
	out->elided = ax_elide_active(cx, st);
	ax_leave(cx);
	return AX_OK;
}

/*
 * Epoch: enters and leaves.
 */
ax_status
ax_info_about(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tree_info *out)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);
	int64_t		entries = 0;

	if (r != AX_OK)
		return r;
	out->gen = st->gen;
	out->bytes = atomic_load_explicit(&st->bytes, memory_order_relaxed);
	out->max_bytes = atomic_load_explicit(&st->max_bytes, memory_order_relaxed);
	out->height = (int) atomic_load_explicit(&st->height, memory_order_relaxed);
	for (int i = 0; i < AX_SHARDS; i++)
		entries += atomic_load_explicit(&st->shards[i].entries, memory_order_relaxed);
	out->entries = entries > 0 ? (uint64_t) entries : 0;
	out->tail_entries = 0;
	if (atomic_load_explicit(&st->tail, memory_order_relaxed))
		ax_tail_info(cx, st, out, true);
	ax_leave(cx);
	return AX_OK;
}
