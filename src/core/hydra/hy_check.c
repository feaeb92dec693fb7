/*
 * hy_check.c
 *	  Verification of HydraList: the list of data nodes, and then the search layer, some
 *	  nodes a call.
 *
 * Each node's view is checked: under one version of its latch word, of which the body is a
 * copy, or as it was when the call came.  The walk goes on by value.  It compares the number of nodes that the search layer names with the list's
 * only when nothing was logged from the beginning to the end.
 *
 * src/core/hydra/README.md: HydraList
 * src/core/hydra/README.md: Views
 * src/views/README.md: The check
 */
#include <stdio.h>

#include "core/radix/radix.h"
#include "hy_view.h"

#define CALL_NODES (AX_CHECK_WORK / 4)
#define ALL_TRIES	8

/* The walk's memory between two calls is in c->walk: */
#define PHASE(c)	((c)->walk.n)
#define PUSHED(c)	((c)->walk.f[0].version)
#define NODES(c)	((c)->walk.f[1].version)
#define ENTRIES(c)	((c)->walk.f[2].version)
#define TRIES(c)	((c)->walk.f[3].version)

enum
{
	BEGIN, LIST, LAYER
};

/* Note what is wrong first. */
static void
complain(ax_checking *c, const char *what, const hy_body *b)
{
	if (!c->bad)
		snprintf(c->msg, sizeof(c->msg), "%s in a data node of %d keys", what, __builtin_popcountll(hy_used(b)));
	c->bad = true;
}

/* Is the end of the node's range as the next anchor says? */
static void
check_end(ax_checking *c, const hy_body *b, const hy_node *n, const hy_end *end)
{
	const hy_end right = hy_end_at(n, end->next);

	if (end->next && !hy_is_left(n, end->next->anchor, end->next->alen, HY_STRICT))
		complain(c, "anchors out of order", b);
	if (end->shared != right.shared || (end->next && end->bound != right.bound))
		complain(c, "a wrong end of the range", b);
}

/*
 * Check n keys of slots that nobody writes, in their order: fingerprints, range, no key
 * twice.
 */
static void
check_keys(ax_checking *c, const hy_body *b, const uint8_t *perm, int n, const hy_node *node,
			  const hy_node *next)
{
	bt_view		before = {0},
				v;

	for (int k = 0; k < n && !c->bad; k++)
	{
		uint8_t		cols[HY_LONG];
		uint32_t	len;

		hy_get(b, perm[k], &v);
		len = bt_len(&v);
		if (len < AX_TID_BYTES)
		{
			complain(c, "a key without a TID", b);
			break;
		}
		if (v.blob)
		{
			if (memcmp(v.a, hy_prefix(b), b->plen) != 0)
				complain(c, "a long key without the prefix", b);
			if (b->fp[perm[k]] != hy_fp(v.a, len - AX_TID_BYTES))
				complain(c, "a wrong fingerprint", b);
		}
		else if (len > HY_LONG)
			complain(c, "a key too long to be in place", b);
		else
		{
			bt_view_bytes(&v, 0, len - AX_TID_BYTES, cols);
			if (b->fp[perm[k]] != hy_fp(cols, len - AX_TID_BYTES))
				complain(c, "a wrong fingerprint", b);
		}
		if (node->alen > 0 && hy_cmp_view(&v, node->anchor, node->alen) < 0)
			complain(c, "a key below the node's range", b);
		if (next && hy_cmp_view(&v, next->anchor, next->alen) >= 0)
			complain(c, "a key beyond the node's range", b);
		if (k > 0 && bt_common(&before, &v) == len)
			complain(c, "a key twice", b);
		before = v;
	}
}

/*
 * One body, and the slots in it that have keys.  whole: it is a copy of one moment, whose heap
 * adds up.  A version only has some of the slots, and others may be on their way.
 */
static bool
check_layout(ax_checking *c, const hy_body *b, uint64_t used, const hy_node *node,
				const hy_node *next, bool whole)
{
	uint32_t	heap = 0;

	if (b->cap > HY_SLOTS || (b->cap < HY_SLOTS && used >> b->cap))
		complain(c, "a key in no slot", b);
	else if (b->rest != HY_VAR ?
			 HY_HEAD + b->cap * (2u + b->rest) + b->plen > b->size :
			 HY_HEAD + 6u * b->cap > bt_ld(&((hy_body *) (uintptr_t) b)->heap))
		complain(c, "impossible layout", b);
	else if (b->plen > hy_range(node, next) ||
			 (b->plen > 0 && memcmp(hy_prefix(b), node->anchor, b->plen) != 0))
		complain(c, "a prefix that is not its range's", b);
	for (uint64_t m = used; m && b->rest == HY_VAR && !c->bad; m &= m - 1)
	{
		uint32_t	slot = bt_ld(&hy_slots(b)[__builtin_ctzll(m)]);
		uint32_t	bytes = slot >> 16 == HY_BLOB ? 8 : slot >> 16;

		if ((slot & 0xFFFF) < bt_ld(&((hy_body *) (uintptr_t) b)->heap) ||
			(slot & 0xFFFF) + bytes > b->size - b->plen)
			complain(c, "a key outside of the heap", b);
		heap += bytes;
	}
	heap += bt_ld(&((hy_body *) (uintptr_t) b)->heap) + bt_ld(&((hy_body *) (uintptr_t) b)->dead);
	if (!c->bad && b->rest == HY_VAR && (whole ? heap != b->size - b->plen : heap > b->size - b->plen))
		complain(c, "a heap that does not add up", b);
	return !c->bad;
}

/* A node is done with: on to the next, or to the search layer. */
static void
check_on(ax_checking *c, const hy_node *next)
{
	if (next)
	{
		memcpy(c->buf, next->anchor, next->alen);
		c->len = next->alen;
	}
	else
		PHASE(c) = LAYER;
}

/*
 * Is the link back of the node behind, as of now, right?  Only what is there under one version of
 * the node's word counts.
 *
 * Latches: none.
 */
static bool
linked_back(const hy_call *h, hy_node *n)
{
	uint64_t	sample = atomic_load_explicit(&n->word, memory_order_acquire);
	hy_node    *behind = hy_behind(h, n),
			   *back = behind ? hy_ld(&behind->prev) : n;

	atomic_thread_fence(memory_order_acquire);
	return back == n || (sample & (AX_LOCKED | AX_CLOSED | AX_OBSOLETE)) != 0 ||
		atomic_load_explicit(&n->word, memory_order_relaxed) != sample;
}

/*
 * The node of the position, as it is now or was at the call's moment.  AX_STALE: it changed.
 * AX_BUFFER, AX_BUSY.
 *
 * Latches: none on entry and on return; pessimistically takes the node's.
 */
static __attribute__((noinline)) ax_status
check_node(const hy_call *h, ax_checking *c, int tries)
{
	_Alignas(8) uint8_t copy[HY_MAX_BODY];
	const ax_bound pos = {c->buf, c->len, false};
	const hy_body *b;
	hy_order_of o;
	uint8_t		perm[HY_SLOTS];
	hy_at		at;
	hy_end		end;
	ax_status	x = hy_read(h, NULL, &pos, HY_BEFORE, tries, &at);

	if (x != AX_OK)
		return x;
	b = hy_still(h, &at, copy);
	end = at.is->end;
	if (!hy_read_ok(h, &at) || !b)
		return AX_STALE;
	if (end.next && end.next->alen > c->size)
	{
		c->need_bytes = 2 * end.next->alen;
		return AX_BUFFER;
	}
	if (!linked_back(h, at.n))
		complain(c, "a link back that leads elsewhere", b);
	check_end(c, b, at.n, &end);
	hy_recall(h, &at, &o);
	if ((o.live & ~hy_used(b)) != 0)
		complain(c, "a key in a slot that was not given", b);
	if (check_layout(c, b, o.live, at.n, end.next, !h->versions))
	{
		hy_order(b, o.live, perm);
		if (o.told && memcmp(perm, o.perm, (size_t) o.n) != 0)
			complain(c, "a wrong order for scans", b);
		check_keys(c, b, perm, o.n, at.n, end.next);
		c->info.entries += (uint64_t) o.n;
		c->info.leaves++;
	}
	check_on(c, end.next);
	return AX_OK;
}

/*
 * The search layer has been counted by now: is it of the nodes of the list?  AX_BUSY: perhaps
 * not, all begins anew.  A compaction that packs what the walk has seen with what it has not
 * makes it count that twice.
 */
static ax_status
check_layer(hy_list *t, ax_checking *c)
{
	uint64_t	named = c->info.entries - ENTRIES(c);

	c->info.entries = ENTRIES(c);
	c->info.height++;
	if (hy_waiting(t) == 0 && !atomic_load_explicit(&t->applying, memory_order_acquire) &&
		atomic_load_explicit(&t->pushed, memory_order_acquire) == PUSHED(c) &&
		named + 1 != NODES(c) && !c->bad)
	{
		if (TRIES(c)++ < ALL_TRIES)
		{
			memset(&c->info, 0, sizeof(c->info));
			PHASE(c) = BEGIN;
			c->len = 0;
			c->done = false;
			return AX_BUSY;
		}
		snprintf(c->msg, sizeof(c->msg), "the search layer names %llu data nodes of %llu",
				 (unsigned long long) named, (unsigned long long) NODES(c));
		c->bad = true;
	}
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
ax_status
hy_check(ax_ctx *cx, ax_store *s, ax_checking *c)
{
	hy_call		h;
	uint64_t	pushed;
	int			lost = 0;
	ax_status	x;

	if (!hy_enter(&h, cx, s))
	{
		c->done = true;
		return AX_OK;
	}
	if (PHASE(c) == BEGIN)
	{
		/* readers may be beside it where one latch is all */
		if (s->sync != AX_SYNC_COARSE)
			(void) hy_apply(&h, 4 * HY_MARK);
		/* nothing is to be waiting at the beginning, or what is applied later is not new */
		pushed = atomic_load_explicit(&h.t->pushed, memory_order_acquire);
		PUSHED(c) = atomic_load_explicit(&h.t->applied, memory_order_acquire) == pushed ? pushed : UINT64_MAX;
		PHASE(c) = LIST;
	}
	for (int work = 0; work < CALL_NODES && PHASE(c) == LIST && !c->bad; work++)
	{
		x = check_node(&h, c, lost);
		if (x == AX_BUSY || x == AX_BUFFER)
			return x;
		if (x == AX_STALE)
			ax_restarted(cx, s, lost++);
		else
			lost = 0;
		if (PHASE(c) == LAYER)
		{
			NODES(c) = c->info.leaves;
			ENTRIES(c) = c->info.entries;
			c->len = 0;
			return AX_OK;
		}
	}
	if (c->bad || PHASE(c) == LIST)
		return AX_OK;
	x = ax_engine_art_olc.check(cx, s, c);
	if (x == AX_OK && c->done)
		x = check_layer(h.t, c);
	return x;
}
