/*
 * hm_remove.c
 *	  HydraList with versions: removal, and merges of neighbours.
 *
 * A removal makes a version without the slot, or without memory takes it out of the newest
 * one.  A node that has become poor takes in the one behind it, or goes into the one before:
 * two new versions, with one stamp.  That of the node that goes has no body, and leads to
 * where its keys are.
 *
 * src/core/hydra/README.md: Versions
 */
#include "hm.h"

/* Two nodes on their way to one.  About ten kilobytes. */
typedef struct pair
{
	int			n;
	hy_entry	e[2 * HY_SLOTS];
	hm_at		a;
	hm_at		b;
	hy_body    *made;
	hm_ver	   *va;
	hm_ver	   *vb;
} pair;

/*
 * Sample a node, and see its newest version.  AX_STALE: something changed.  AX_BUSY.
 *
 * Latches: none.
 */
static ax_status
look(ax_ctx *cx, hy_node *n, hm_at *at)
{
	ax_status	x = ax_guard_open(cx, &at->g, &n->word, false);

	if (x != AX_OK)
		return x;
	at->n = n;
	at->v = hm_newest(n);
	return at->v->body && ax_guard_valid(&at->g) ? AX_OK : AX_STALE;
}

/*
 * The body and the versions of a merge.  AX_NOTFOUND: they do not fit, or there is no memory.
 */
static ax_status
prepare(ax_ctx *cx, ax_store *s, pair *p)
{
	hy_node    *a = p->a.n,
			   *behind = p->b.v->end.next;
	uint32_t	plen = hy_range(a, behind);

	p->n = hm_entries(p->a.v, p->e);
	p->n += hm_entries(p->b.v, p->e + p->n);
	if (!hy_fits(p->e, p->n, plen))
		return AX_NOTFOUND;
	hy_sort(p->e, p->n, plen);
	p->va = hm_make_ver(cx, s, true);
	p->vb = p->va ? hm_make_ver(cx, s, true) : NULL;
	p->made = p->vb ? hy_make_body(cx, s, p->e, p->n, p->n < HY_POOR ? 8 : 0, a->anchor, plen, true) : NULL;
	if (!p->made)
		return AX_NOTFOUND;
	*p->va = (hm_ver) {.end = hy_end_at(a, behind), .body = p->made, .live = hy_used(p->made)};
	*p->vb = (hm_ver) {.end.next = a};
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return; takes those of both nodes by one try each.
 * Order: the node behind both is never latched, and its link back is under the right one's latch.
 */
__attribute__((noinline)) ax_status
hm_merge(ax_ctx *cx, ax_store *s, hy_list *t, hy_node *a, int most)
{
	pair		p = {.n = 0};
	ax_status	x = look(cx, a, &p.a);

	if (x != AX_OK)
		return x;
	if (!p.a.v->end.next)
		return AX_NOTFOUND;
	x = look(cx, p.a.v->end.next, &p.b);
	if (x != AX_OK)
		return x;
	if (hm_count(p.a.v) + hm_count(p.b.v) > most)
		return ax_guard_valid(&p.a.g) ? AX_NOTFOUND : AX_STALE;
	x = prepare(cx, s, &p);
	AX_POINT("mvrlu.merge.before_lock");
	if (x == AX_OK)
		x = ax_retire_reserve(cx, 4);
	if (x == AX_OK && !ax_guard_lock(cx, &p.a.g))
		x = AX_STALE;
	if (x == AX_OK && !ax_guard_lock(cx, &p.b.g))
		x = AX_STALE;
	if (x != AX_OK)
	{
		ax_guard_close(cx, &p.a.g, false);
		hy_drop_body(cx, s, p.made);
		hm_drop_ver(cx, s, p.va);
		hm_drop_ver(cx, s, p.vb);
		return x;
	}
	hy_announce(t);
	hm_publish(a, p.va, NULL);
	AX_POINT("mvrlu.merge.between");
	hm_publish(p.b.n, p.vb, p.va);
	hm_commit(t, p.va);
	hm_led(p.vb);
	if (p.va->end.next)
		atomic_store_explicit(&p.va->end.next->prev, a, memory_order_release);
	hy_push(t, &p.b.n->go);
	ax_guard_kill(cx, &p.b.g);
	ax_guard_close(cx, &p.a.g, true);
	ax_retire(cx, s, p.a.v->body, p.a.v->body->size);
	ax_retire(cx, s, p.b.v->body, p.b.v->body->size);
	ax_retire(cx, s, p.a.v, sizeof(hm_ver));
	ax_retire(cx, s, p.b.v, sizeof(hm_ver));
	AX_COUNT(cx, s, leaves, -1);
	return AX_OK;
}

/*
 * The node of the key may be poor: merge it with a neighbour.  At best.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
static void
tidy(ax_ctx *cx, ax_store *s, hy_list *t, const ax_bound *pos)
{
	for (int rounds = 0; rounds < 4; rounds++)
	{
		hm_at		at;
		hy_node    *n;
		bool		valid;
		ax_status	x = hm_find(cx, s, t, NULL, pos, HY_BEFORE, false, &at);

		if (x == AX_BUSY)
			return;
		if (x != AX_OK)
			continue;
		n = at.n;
		valid = ax_guard_valid(&at.g);
		ax_guard_close(cx, &at.g, false);
		if (!valid)
			continue;
		if (hm_count(at.v) >= HY_POOR)
			return;
		x = hm_merge(cx, s, t, n, HY_FULL);
		if (x == AX_NOTFOUND && n->alen > 0)
		{
			ax_bound	left = {n->anchor, n->alen, false};

			x = hm_find(cx, s, t, n, &left, HY_STRICT, false, &at);
			if (x == AX_OK)
			{
				x = ax_guard_valid(&at.g) ? AX_OK : AX_STALE;
				ax_guard_close(cx, &at.g, false);
			}
			if (x == AX_OK)
				x = hm_merge(cx, s, t, at.n, HY_FULL);
		}
		if (x == AX_NOTFOUND || x == AX_BUSY)
			return;
		ax_map_unshare_all();
	}
}

/*
 * The version without the key, from the node that has it.  Without memory for one v is NULL,
 * and the newest version loses the slot.  A reader of before may miss the key: its remover
 * says that nobody looks for it.  *left: keys that the node has then.  AX_NOTFOUND, AX_BUSY.
 *
 * Latches: none on entry and on return.
 */
static ax_status
take_out(ax_ctx *cx, ax_store *s, hy_list *t, const ax_bound *pos, hm_ver *v, bt_blob **blob,
		 int *left)
{
	hm_at		at;
	uint64_t	live;
	int			i;

	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		bt_view		key;
		ax_status	x = hm_find(cx, s, t, NULL, pos, HY_BEFORE, tries >= AX_MAX_RESTARTS, &at);

		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		i = hm_slot_of(at.v, pos->key, pos->len);
		AX_POINT("mvrlu.remove.leaf_read");
		if (i < 0)
		{
			bool		valid = ax_guard_valid(&at.g);

			ax_guard_close(cx, &at.g, false);
			if (valid)
				return AX_NOTFOUND;
			continue;
		}
		if (!ax_guard_lock(cx, &at.g))
			continue;
		hy_get(at.v->body, i, &key);
		*blob = key.blob;
		break;
	}
	live = hm_live(at.v) & ~(UINT64_C(1) << i);
	*left = __builtin_popcountll(live);
	if (v)
	{
		*v = (hm_ver) {.end = at.v->end, .body = at.v->body, .live = live};
		hm_publish(at.n, v, NULL);
		hm_commit(t, v);
	}
	else
		atomic_store_explicit(&at.v->live, live, memory_order_relaxed);
	ax_guard_close(cx, &at.g, true);
	if (v)
		ax_retire(cx, s, at.v, sizeof(hm_ver));
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 * Returns: AX_BUSY: nothing was removed.
 */
ax_status
hm_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	hy_list    *t = hy_list_of(s);
	const ax_bound pos = {key, len, false};
	bt_blob    *blob = NULL;
	hm_ver	   *v;
	int			left = 0;
	ax_status	x;

	if (!t)
		return AX_NOTFOUND;
	/* a long key has an object of its own, which goes with it */
	x = ax_retire_reserve(cx, 2);
	if (x != AX_OK)
		return x;
	v = hm_make_ver(cx, s, true);
	x = take_out(cx, s, t, &pos, v, &blob, &left);
	if (x != AX_OK)
	{
		hm_drop_ver(cx, s, v);
		return x;
	}
	if (blob)
		bt_blob_retire(cx, s, blob);
	AX_COUNT(cx, s, entries, -1);
	if (left < HY_POOR)
	{
		tidy(cx, s, t, &pos);
		/* of an empty list nothing is to be left */
		hy_told(cx, s, t, left == 0 && hm_newest(t->head)->end.next == NULL ? 0 : HY_MARK);
	}
	return AX_OK;
}
