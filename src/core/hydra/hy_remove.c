/*
 * hy_remove.c
 *	  HydraList: removal, and merges of neighbours.
 *
 * A node that has become poor takes in the one behind it, or goes into the one before.  Two
 * nodes are latched, left to right, each at the version under which it was seen.  The right
 * one is then obsolete, and leads to the left one for as long as somebody may come to it.
 *
 * src/core/hydra/README.md: HydraList
 * src/core/hydra/README.md: Views
 */
#include "hy_view.h"

/* Two nodes on their way to one.  About sixty kilobytes. */
typedef struct pair
{
	hy_at		a;
	hy_at		b;
	hy_edit		e;
	hy_body    *made;
	int			n;
	hy_entry	entries[2 * HY_SLOTS];
	_Alignas(8) uint8_t copy_a[HY_MAX_BODY];
	_Alignas(8) uint8_t copy_b[HY_MAX_BODY];
} pair;

/*
 * Sample a node, and see what it is.  AX_STALE: something changed.  AX_BUSY.
 *
 * Latches: none.
 */
static ax_status
look(const hy_call *h, hy_node *n, hy_at *at)
{
	ax_status	x = ax_guard_open(h->cx, &at->g, &n->word, false);

	if (x != AX_OK)
		return x;
	hy_see(h->versions, n, false, at);
	return at->is->body && ax_guard_valid(&at->g) ? AX_OK : AX_STALE;
}

/*
 * The body and the versions of a merge.  AX_NOTFOUND: they do not fit, or there is no memory.
 * AX_STALE, AX_BUSY.
 *
 * Returns: on AX_OK there is room to retire what the merge replaces.
 */
static ax_status
prepare_merge(const hy_call *h, pair *p)
{
	const hy_body *a = hy_still(h, &p->a, p->copy_a),
			   *b = hy_still(h, &p->b, p->copy_b);
	uint32_t	plen = hy_range(p->a.n, p->b.is->end.next);

	if (!a || !b)
		return AX_STALE;
	p->n = hy_entries(a, hy_live(p->a.is), p->entries);
	p->n += hy_entries(b, hy_live(p->b.is), p->entries + p->n);
	if (!hy_fits(p->entries, p->n, plen))
		return AX_NOTFOUND;
	hy_sort(p->entries, p->n, plen);
	if (hy_edit_make(h, &p->e, 2, true))
		p->made = hy_make_body(h->cx, h->s,
							   &(hy_content) {p->entries, p->n, p->n < HY_POOR ? 8 : 0, p->a.n->anchor, plen}, true);
	return p->made ? hy_reserve(h, 2, 2) : AX_NOTFOUND;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return; takes those of both nodes by one try each.
 * Order: the node behind both is never latched, and its link back is under the right one's latch.
 */
__attribute__((noinline)) ax_status
hy_merge(const hy_call *h, hy_node *a, int most)
{
	pair		p;
	hy_node    *b,
			   *behind;
	hy_body    *old_a,
			   *old_b;
	hy_view		both,
				gone;
	ax_status	x = look(h, a, &p.a);

	if (x != AX_OK)
		return x;
	b = p.a.is->end.next;
	if (!b)
		return AX_NOTFOUND;
	x = look(h, b, &p.b);
	if (x != AX_OK)
		return x;
	if (hy_count(p.a.is) + hy_count(p.b.is) > most)
		return ax_guard_valid(&p.a.g) ? AX_NOTFOUND : AX_STALE;
	p.e.n = 0;
	p.made = NULL;
	x = prepare_merge(h, &p);
	AX_POINT("hydra.merge.before_lock");
	if (x == AX_OK && !ax_guard_lock(h->cx, &p.a.g))
		x = AX_STALE;
	if (x == AX_OK && !ax_guard_lock(h->cx, &p.b.g))
		x = AX_STALE;
	if (x != AX_OK)
	{
		ax_guard_close(h->cx, &p.a.g, false);
		hy_drop_body(h->cx, h->s, p.made);
		hy_edit_drop(h, &p.e, 0);
		return x;
	}
	old_a = p.a.is->body;
	old_b = p.b.is->body;
	behind = p.b.is->end.next;
	both = (hy_view) {.end = hy_end_at(a, behind), .body = p.made, .live = hy_used(p.made)};
	gone = (hy_view) {.end.next = a};
	hy_announce(h->t);
	hy_publish(h, &p.e, 0, a, &both);
	AX_POINT("hydra.merge.between");
	hy_publish(h, &p.e, 1, b, &gone);
	hy_commit(h, &p.e);
	AX_POINT("hydra.merge.committed");
	if (behind)
		atomic_store_explicit(&behind->prev, a, memory_order_release);
	hy_push(h->t, &b->go);
	ax_guard_kill(h->cx, &p.b.g);
	ax_guard_close(h->cx, &p.a.g, true);
	ax_retire(h->cx, h->s, old_a, old_a->size);
	ax_retire(h->cx, h->s, old_b, old_b->size);
	hy_edit_done(h, &p.e);
	AX_COUNT(h->cx, h->s, leaves, -1);
	return AX_OK;
}

/*
 * A node as of now, which is not latched.  Its view is not to be used.  AX_STALE, AX_BUSY.
 *
 * Latches: none.
 */
static ax_status
find_near(const hy_call *h, hy_node *from, const ax_bound *pos, hy_side side, hy_node **n, int *count)
{
	hy_at		at;
	ax_status	x = hy_find(h, from, pos, side, 0, &at);

	if (x != AX_OK)
		return x;
	*n = at.n;
	*count = hy_count(at.is);
	x = ax_guard_valid(&at.g) ? AX_OK : AX_STALE;
	ax_guard_close(h->cx, &at.g, false);
	return x;
}

/*
 * The node of the key may be poor: merge it with a neighbour.  At best.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
static void
merge_poor(const hy_call *h, const ax_bound *pos)
{
	for (int rounds = 0; rounds < 4; rounds++)
	{
		hy_node    *n;
		int			count;
		ax_status	x = find_near(h, NULL, pos, HY_BEFORE, &n, &count);

		if (x == AX_STALE)
			continue;
		if (x != AX_OK || count >= HY_POOR)
			return;
		x = hy_merge(h, n, HY_FULL);
		if (x == AX_NOTFOUND && n->alen > 0)
		{
			const ax_bound left = {n->anchor, n->alen, false};

			x = find_near(h, n, &left, HY_STRICT, &n, &count);
			if (x == AX_OK)
				x = hy_merge(h, n, HY_FULL);
		}
		if (x == AX_NOTFOUND || x == AX_BUSY)
			return;
		ax_map_unshare_all();
	}
}

/*
 * The key's node, latched, and its slot.  AX_NOTFOUND: there is none.  AX_BUSY.
 *
 * Latches: none on entry; the node's on AX_OK.
 */
static ax_status
find_to_remove(const hy_call *h, const ax_bound *pos, hy_at *at, int *slot)
{
	for (int tries = 0;; ax_restarted(h->cx, h->s, tries++))
	{
		bool		none;
		ax_status	x = hy_find(h, NULL, pos, HY_BEFORE, hy_way(tries) | HY_TO_WRITE, at);

		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		*slot = hy_find_key(at->is, hy_guard(h, at), pos->key, pos->len);
		AX_POINT("hydra.remove.leaf_read");
		if (*slot >= 0)
		{
			if (ax_guard_lock(h->cx, &at->g))
				return AX_OK;
			continue;
		}
		none = *slot == -1 && ax_guard_valid(&at->g);
		ax_guard_close(h->cx, &at->g, false);
		if (none)
			return AX_NOTFOUND;
	}
}

/*
 * Take a slot out of a node; how many keys are left.  With versions that makes one without the
 * slot.  If there was no memory for it, the newest version loses the slot.  A reader of before may
 * then miss the key: its remover says that nobody looks for it.
 *
 * Latches: the node's is held.
 */
static int
take_slot_out(const hy_call *h, hy_edit *e, hy_at *at, int slot)
{
	const uint64_t live = hy_live(at->is) & ~(UINT64_C(1) << slot);

	if (!h->versions)
		hy_del(at->is->body, slot);
	else if (e->n > 0)
	{
		const hy_view is = {.end = at->is->end, .body = at->is->body, .live = live};

		hy_publish(h, e, 0, at->n, &is);
		hy_commit(h, e);
	}
	else
		atomic_store_explicit(&((hy_view *) (uintptr_t) at->is)->live, live, memory_order_relaxed);
	return __builtin_popcountll(live);
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 * Returns: AX_BUSY: nothing was removed.
 */
ax_status
hy_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	const ax_bound pos = {key, len, false};
	hy_call		h;
	hy_edit		e = {.n = 0};
	hy_at		at;
	bt_view		v;
	int			slot,
				left;
	ax_status	x;

	if (!hy_enter(&h, cx, s))
		return AX_NOTFOUND;
	/* a long key has an object of its own, which goes with it */
	x = hy_reserve(&h, len > HY_LONG, 1);
	if (x != AX_OK)
		return x;
	(void) hy_edit_make(&h, &e, 1, true);
	x = find_to_remove(&h, &pos, &at, &slot);
	if (x != AX_OK)
	{
		hy_edit_drop(&h, &e, 0);
		return x;
	}
	hy_get(at.is->body, slot, &v);
	left = take_slot_out(&h, &e, &at, slot);
	ax_guard_close(cx, &at.g, true);
	hy_edit_done(&h, &e);
	if (v.blob)
		bt_blob_retire(cx, s, v.blob);
	AX_COUNT(cx, s, entries, -1);
	if (left < HY_POOR)
	{
		merge_poor(&h, &pos);
		/* of an empty list nothing is to be left */
		hy_told(&h, left == 0 && hy_behind(&h, h.t->head) == NULL ? 0 : HY_MARK);
	}
	return AX_OK;
}
