/*
 * hy_list.c
 *	  HydraList: finding the node of a position, and the search layer, which is told of
 *	  new and gone nodes later.
 *
 * The search layer is a radix tree (core/radix) in the store's root, of anchors, each with
 * its node's address where other trees have a TID.  A search asks it for the greatest
 * anchor before the position, and walks on from that node, wherever it is by now.
 *
 * A process that adds a node to the list, or takes one out, logs that.  It pushes an entry
 * on a stack, one for all, while it still has the latch of the node before.  So the order of
 * the pushes is that of the changes, and nobody reads a clock.  The entry lies in the node:
 * a log is never full.  A writer that finds enough of them applies them, one at a time.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "core/radix/radix.h"
#include "hy_view.h"
#include "hydra.h"

#define STEPS	(1 << 20)		/* of a walk, before it starts over */
#define PIECE	256				/* changes applied at once, at most */

/* An anchor as the search layer has it, and the node's address. */
static uint32_t
layer_key(const hy_node *n, uint8_t *buf)
{
	uint32_t	len = hy_encode(n->anchor, n->alen < HY_PATH ? n->alen : HY_PATH, true, buf);

	ax_put_tid(buf + len, (uint64_t) (uintptr_t) n);
	return len + AX_TID_BYTES;
}

/*
 * hy_find(), compiled for lists with versions and without.
 *
 * Latches: as hy_find().
 */
static AX_PREFETCHES inline ax_status
find_node(const hy_call *h, hy_node *from, const ax_bound *pos, hy_side side, int way, hy_at *at,
		  const bool versions)
{
	hy_node    *n = from,
			   *near;
	ax_status	x;

	if (!n)
	{
		x = hy_jump(h, pos, side, &near);
		if (x != AX_OK)
			return x;
		n = near;
	}
	for (uint32_t steps = 0; steps < STEPS; steps++)
	{
		hy_node    *go = n;
		int			dir;

		AX_POINT("hydra.node_read");
		if (versions)
			(void) hm_ask_for(n);
		x = way & HY_TO_WRITE ? ax_guard_open_target(h->cx, h->s, &at->g, &n->word, way & HY_LATCHED) :
			ax_guard_open(h->cx, &at->g, &n->word, way & HY_LATCHED);
		if (x == AX_STALE)
		{
			/* its keys went to the left, or to another header of its anchor: from there on */
			n = hy_ld(&n->prev);
			continue;
		}
		if (x != AX_OK)
			return x;
		AX_POINT("hydra.node_version");
		hy_see(versions, n, true, at);
		AX_POINT("hydra.link_read");
		/* a version without a body came just now, and its maker has the latch */
		if (ax_likely(!versions || at->is->body))
		{
			dir = hy_where(n, &at->is->end, pos->key, pos->len, side);
			if (ax_likely(dir == 0))
			{
				if (ax_unlikely(steps > 0) && !from)
					hy_walked(h, steps);
				return AX_OK;
			}
			go = dir < 0 ? hy_ld(&n->prev) : at->is->end.next;
		}
		/*
		 * A link of a node that is in the list leads to one that was there in this epoch.  Where
		 * the node changed, the next one may have come after there was none.  And the link of a
		 * version that is latched may lead to a node that is not committed.  A change there would
		 * have the earlier stamp, and a reader that came between would not find it.
		 */
		if (ax_guard_valid(&at->g))
			n = go;
		ax_guard_close(h->cx, &at->g, false);
	}
	return AX_BUSY;
}

ax_status
hy_find(const hy_call *h, hy_node *from, const ax_bound *pos, hy_side side, int way, hy_at *at)
{
	return h->versions ? find_node(h, from, pos, side, way, at, true) : find_node(h, from, pos, side, way, at, false);
}

hy_list *
hy_make_list(const hy_call *h, hy_node *first)
{
	hy_list    *t = ax_alloc_public(h->cx, h->s, sizeof(hy_list));

	if (t && h->versions && !hm_dress(h, first))
	{
		ax_unalloc(h->cx, h->s, t, sizeof(hy_list));
		t = NULL;
	}
	if (!t)
		return NULL;
	memset(t, 0, sizeof(hy_list));
	ax_stack_init(&t->log);
	t->head = first;
	return t;
}

void
hy_drop_list(const hy_call *h, hy_list *t)
{
	if (h->versions)
		hm_undress(h, t->head, NULL);
	ax_unalloc(h->cx, h->s, t, sizeof(hy_list));
}

ax_status
hy_begin(hy_call *h)
{
	ax_store   *s = h->s;
	void	   *none = NULL;
	hy_node    *n;
	hy_body    *b;

	if (atomic_load_explicit(&hy_own_of(s)->list, memory_order_acquire) == HY_LOADING)
		return AX_BUSY;
	n = hy_make_node(h->cx, s, NULL, false);
	b = n ? hy_make_body(h->cx, s, &(hy_content) {.spare = 8}, false) : NULL;
	if (b)
	{
		atomic_store_explicit(&n->body, b, memory_order_relaxed);
		h->t = hy_make_list(h, n);
	}
	if (h->t && atomic_compare_exchange_strong_explicit(&hy_own_of(s)->list, &none, (void *) h->t,
														memory_order_acq_rel, memory_order_acquire))
	{
		AX_COUNT(h->cx, s, leaves, 1);
		return AX_OK;
	}
	if (h->t)
		hy_drop_list(h, h->t);
	hy_drop_body(h->cx, s, b);
	hy_drop_node(h->cx, s, n);
	h->t = none;
	return !none ? AX_NOMEM : none != HY_LOADING ? AX_OK : AX_BUSY;
}

/* ---- the log ---- */

void
hy_announce(hy_list *t)
{
	atomic_fetch_add_explicit(&t->pushed, 1, memory_order_relaxed);
}

/*
 * Latches: the caller has that of the node before the one that came or goes.  With no latch the
 * node's going could be logged before its coming, and the search layer would lead to it for ever.
 */
void
hy_push(hy_list *t, ax_stack_node *l)
{
	AX_POINT("hydra.push");
	ax_stack_push(&t->log, l);
}

uint64_t
hy_waiting(hy_list *t)
{
	uint64_t	applied = atomic_load_explicit(&t->applied, memory_order_acquire);

	return atomic_load_explicit(&t->pushed, memory_order_relaxed) - applied;
}

/* The change at a place of the list, NULL: none.  Behind the last is what was logged since.  The claim is held. */
static ax_stack_node *
logged_at(hy_list *t, ax_stack_node **at)
{
	if (!*at)
		for (ax_stack_node *n = ax_stack_take_all(&t->log); n;)
		{
			ax_stack_node *next = n->next;

			ax_stack_link(n, *at);
			*at = n;
			n = next;
		}
	return *at;
}

/* The node of an entry of the log, and whether it goes.  A header begins at a line. */
static hy_node *
logged(ax_stack_node *l, bool *goes)
{
	const uintptr_t off = (uintptr_t) l % AX_LINE;

	*goes = off == offsetof(hy_node, go);
	return (hy_node *) (void *) ((char *) l - off);
}

/*
 * Tell the search layer of one change.  AX_OK, or what it said.
 *
 * A node that is gone again is not told of: its going is in the log, behind.  When its going is
 * told, nobody can come to it any more who is not inside now.
 */
static ax_status
apply_one(ax_ctx *cx, ax_store *s, hy_node *n, bool goes)
{
	uint8_t		key[HY_CODED];
	uint32_t	len = layer_key(n, key);
	ax_status	x;

	if (!goes)
	{
		if (atomic_load_explicit(&n->word, memory_order_acquire) & AX_OBSOLETE)
			return AX_OK;
		x = ax_engine_art_olc.insert(cx, s, key, len);
		if (x == AX_OK)
			AX_COUNT(cx, s, entries, -1);
		return x == AX_EXISTS ? AX_OK : x;
	}
	if (ax_retire_reserve(cx, 1) != AX_OK)
		return AX_BUSY;
	x = ax_engine_art_olc.remove(cx, s, key, len);
	if (x == AX_OK)
		AX_COUNT(cx, s, entries, 1);
	if (x != AX_OK && x != AX_NOTFOUND)
		return x;
	if (ax_retire_reserve(cx, 2) != AX_OK)
		return AX_BUSY;
	if (s->sync == AX_SYNC_MVRLU)
		ax_retire(cx, s, hy_ld(&n->ver), sizeof(hm_ver));
	ax_retire(cx, s, n, hy_node_size(n->alen));
	return AX_OK;
}

/*
 * A node goes of which there was no memory to tell: its coming is taken out of the list, where it
 * is before the going.  "at" is the place of that; where it is then.  The claim is held.
 */
static ax_stack_node **
forget_coming(hy_list *t, hy_node *n, ax_stack_node **at)
{
	ax_stack_node **p = &t->todo;

	while (*p != &n->come)
		p = &(*p)->next;
	*p = n->come.next;
	if (at == &n->come.next)
		at = p;
	n->come.next = HY_TOLD;
	atomic_fetch_add_explicit(&t->applied, 1, memory_order_release);
	return at;
}

/*
 * Apply up to "most" of the changes logged, in their order.  AX_OK, also when somebody
 * else is at it.  AX_NOMEM, AX_BUSY: some are left.
 *
 * A coming that finds no memory stays where it is.  After so many of these in a row no other is
 * tried up to the next going, which gives memory back.  Before the going of such a node its coming
 * is taken out, without being told.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; those of the search layer.
 */
ax_status
hy_apply(const hy_call *h, uint64_t most)
{
	hy_list    *t = h->t;
	ax_stack_node **at = &t->todo;
	ax_status	x = AX_OK;
	uint64_t	late = 0,		/* comings before "at" */
				failed = 0;		/* .. that were tried since the last going */

	if (atomic_load_explicit(&t->applying, memory_order_relaxed) ||
		atomic_exchange_explicit(&t->applying, 1, memory_order_acquire))
		return AX_OK;
	for (uint64_t i = 0; i < most;)
	{
		ax_stack_node *l = logged_at(t, at),
				   *next;
		hy_node    *n;
		bool		goes;

		if (!l)
			break;
		n = logged(l, &goes);
		if (goes && n->come.next != HY_TOLD)
		{
			/* its latch word may not say so yet */
			at = forget_coming(t, n, at);
			late--;
		}
		AX_POINT("hydra.apply");
		/* what is retired is not looked at again */
		next = l->next;
		x = failed == 4 * HY_MARK && !goes ? AX_NOMEM : apply_one(h->cx, h->s, n, goes);
		if (x == AX_NOMEM && !goes)
		{
			x = AX_OK;
			failed += failed < 4 * HY_MARK;
			late++;
			at = &l->next;
			continue;
		}
		if (x != AX_OK)
			break;
		if (goes)
			failed = 0;
		else
			l->next = HY_TOLD;
		*at = next;
		i++;
		atomic_fetch_add_explicit(&t->applied, 1, memory_order_release);
	}
	atomic_store_explicit(&t->applying, 0, memory_order_release);
	return x == AX_OK && late > 0 ? AX_NOMEM : x;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return, but the one of a coarse tree.
 */
void
hy_told(const hy_call *h, uint64_t mark)
{
	if (hy_waiting(h->t) >= mark)
		(void) hy_apply(h, 4 * HY_MARK);
	if (hy_waiting(h->t) > 0)
		ax_tell_updater(h->cx);
}

void
hy_info(ax_store *s, ax_tree_info *out)
{
	hy_list    *t = hy_list_of(s);

	if (!t)
		return;
	out->search_applied = atomic_load_explicit(&t->applied, memory_order_acquire);
	out->search_logged = atomic_load_explicit(&t->pushed, memory_order_relaxed);
	out->walk_longest = atomic_load_explicit(&t->longest, memory_order_relaxed);
	out->commits = atomic_load_explicit(&t->clock, memory_order_relaxed);
	out->versions_passed = atomic_load_explicit(&t->passed, memory_order_relaxed);
	out->commits_helped = atomic_load_explicit(&t->helped, memory_order_relaxed);
}

/*
 * Latches: those of the search layer; none on return.
 */
void
hy_forget(const hy_call *h, hy_node *first)
{
	for (hy_node *n = hy_next(first); n; n = hy_next(n))
	{
		uint8_t		key[HY_CODED];
		uint32_t	len = layer_key(n, key);
		ax_status	x = AX_BUSY;

		for (int tries = 0; tries < 100 && x == AX_BUSY; tries++)
			x = ax_engine_art_olc.remove(h->cx, h->s, key, len);
		if (x == AX_OK)
			AX_COUNT(h->cx, h->s, entries, 1);
		else if (x != AX_NOTFOUND)
		{
			/* rather lost until the store is closed than leading to what is freed */
			atomic_store_explicit(&h->s->root, 0, memory_order_release);
			return;
		}
	}
}

/*
 * Applies a piece of the log.  It could be long, and the caller is in one epoch meanwhile,
 * and under a coarse latch.  AX_BUSY: some is left.
 */
ax_status
hy_settle(ax_ctx *cx, ax_store *s, bool all)
{
	hy_call		h;
	ax_status	x;

	if (!hy_enter(&h, cx, s))
		return AX_OK;
	x = hy_apply(&h, PIECE);
	return x == AX_NOMEM || (x == AX_OK && hy_waiting(h.t) > 0) ? AX_BUSY : x;
}
