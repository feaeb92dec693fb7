/*
 * ax_tail_empty.c
 *	  The tail buffer's emptying, step by step, by whoever comes by.
 *
 * A claim (who flushes) is a word that is only ever tried: whoever does not get
 * it goes on without.
 *
 * src/core/tail/README.md: The tail buffer
 */
#include "core/base/ax_area.h"
#include "core/base/ax_call.h"
#include "ax_tail.h"

ax_status
ax_tail_drain(ax_ctx *cx, ax_store *s, const ax_keys *keys, ax_tail_word *const *words,
			  uint32_t *done)
{
	const uint32_t n = (uint32_t) keys->n;
	ax_ctx_body *b = ax_body(cx);
	uint64_t	t0 = b->port->now_ns();
	ax_status	r = AX_OK;
	uint32_t	in = 0;
	uint32_t	most = ax_elide_active(cx, s) ? AX_TAIL_ELIDED : n;

	b->elide.flushing = true;	/* its sections are counted apart */
	AX_POINT("tail.flushing");
	while (in < n && r == AX_OK)
	{
		ax_keys		next = ax_keys_from(keys, in, n - in < most ? n - in : most);
		uint64_t	some = 0,
					fresh = 0;

		r = s->engine->insert_sorted(cx, s, &next, &some, &fresh);
		AX_POINT("tail.flushed");
		if (r == AX_OK && some == 0)
			r = AX_BUSY;

		/*
		 * In the tree, then FLUSHED: a reader that no longer finds it here finds it
		 * there.  Plain stores: nobody else changes a word that is FLUSHING.
		 */
		for (; some > 0; some--, in++)
			atomic_store_explicit(words[in],
								  (atomic_load_explicit(words[in], memory_order_relaxed) & ~AX_T_STATE) | AX_T_FLUSHED,
								  memory_order_release);
	}
	for (uint32_t i = in; i < n; i++)
		atomic_store_explicit(words[i],
							  (atomic_load_explicit(words[i], memory_order_relaxed) & ~AX_T_STATE) | AX_T_FULL,
							  memory_order_release);
	b->elide.flushing = false;
	AX_COUNT(cx, s, tail_flushes, 1);
	AX_COUNT(cx, s, tail_flushed, in);
	AX_COUNT(cx, s, tail_flush_ns, b->port->now_ns() - t0);
	*done = in;
	return r;
}

/*
 * Take a closed buffer out of the chain, when nothing is left in it.  Inside the
 * claim of it.
 *
 * Epoch: inside.
 * Latches: the buffer's claim is held; tries that of the chain's changes, and
 * lets it go.
 * Order: unlinked first, then retired.
 */
static void
unlink_finished(ax_ctx *cx, ax_store *s, ax_tail *t)
{
	ax_tail    *head;

	if (!t->kind->finished(cx, t) || ax_retire_reserve(cx, 1) != AX_OK ||
		!ax_tail_claim(cx, &s->tail_changer))
		return;
	head = atomic_load_explicit(&s->tail, memory_order_relaxed);
	AX_POINT("tail.unlink");

	/*
	 * All it ever had is in the tree.  A reader that comes now does not meet
	 * it, one that did has its epoch; an inserter that did finds it closed.
	 * Others that came here for it find it neither the head nor behind it.
	 */
	if (head == t)
		atomic_store_explicit(&s->tail,
							  atomic_load_explicit(&t->next, memory_order_relaxed),
							  memory_order_release);
	else if (head && atomic_load_explicit(&head->next, memory_order_relaxed) == t)
		ax_tail_set_next(head, NULL);
	else
		t = NULL;
	ax_tail_unclaim(cx, &s->tail_changer);
	if (t)
		ax_retire(cx, s, t, t->size);
}

/*
 * One step of one buffer, if nobody else is at it: then AX_BUSY.
 *
 * Epoch: inside.
 * Latches: tries the buffer's claim, and lets it go.
 */
static ax_status
empty_step(ax_ctx *cx, ax_store *s, ax_tail *t, bool all, bool *more)
{
	ax_status	r;

	*more = false;
	if (!ax_tail_claim(cx, &t->flusher))
	{
		*more = true;
		return AX_BUSY;
	}
	r = t->kind->flush(cx, s, t, all, more);
	if (r == AX_OK && !*more && atomic_load_explicit(&t->closed, memory_order_acquire))
		unlink_finished(cx, s, t);
	ax_tail_unclaim(cx, &t->flusher);
	return r;
}

void
ax_tail_help(ax_ctx *cx, ax_store *s, ax_tail *t)
{
	ax_tail    *old = atomic_load_explicit(&t->next, memory_order_acquire);
	bool		closed = atomic_load_explicit(&t->closed, memory_order_relaxed);
	bool		more;

	if (old)
		t = old;
	else if (!closed && !t->kind->due(t))
		return;
	if (atomic_load_explicit(&t->flusher, memory_order_relaxed) != 0)
		return;
	if (empty_step(cx, s, t, old || closed, &more) != AX_OK)
		ax_tail_forget_failure(cx);
}

/* A step of the oldest that there is. */
static ax_status
step_oldest(ax_ctx *cx, ax_store *s, bool *more)
{
	ax_tail    *t = atomic_load_explicit(&s->tail, memory_order_acquire);
	ax_tail    *old = t ? atomic_load_explicit(&t->next, memory_order_acquire) : NULL;
	ax_status	r;

	*more = false;
	if (!t)
		return AX_OK;
	r = empty_step(cx, s, old ? old : t, true, more);
	if (old)
		*more = true;
	return r;
}

void
ax_tail_empty(ax_ctx *cx, ax_store *s)
{
	bool		more = true;

	/* beside inserters it may never be empty: no more than it can have held */
	for (int i = 0; more && i < 1000; i++)
		if (step_oldest(cx, s, &more) != AX_OK)
		{
			ax_tail_forget_failure(cx);
			return;
		}
}

/*
 * Epoch: enters and leaves, once a try; housekeeping comes after it
 * (ax_finish).
 * Latches: none on entry and on return.
 */
ax_status
ax_tail_flush(ax_ctx *cx, ax_tree *tree, uint64_t gen, bool *more)
{
	ax_store   *s;
	ax_tail    *t;
	ax_status	r;
	int			tries = 0;
	bool		cap_hit = ax_body(cx)->cap_hit;
	ax_group   *group_hit = ax_body(cx)->group_hit;

	do
	{
		*more = false;
		r = ax_enter(cx, tree, gen, &s);
		if (r != AX_OK)
			return r;

		/*
		 * The entries of a closed one may take the tree over its cap, by as
		 * much as they are.  Its memory comes back only when it is empty, and
		 * is about as much as the entries take then.
		 */
		t = atomic_load_explicit(&s->tail, memory_order_acquire);
		ax_body(cx)->over_cap = t && atomic_load_explicit(&t->closed, memory_order_relaxed);
		r = step_oldest(cx, s, more);
		ax_body(cx)->over_cap = false;
	} while (ax_finish(cx, &r, &tries));
	/* the caller may do this because of another refusal, of which he reports later */
	ax_body(cx)->cap_hit = cap_hit;
	ax_body(cx)->group_hit = group_hit;
	return r;
}
