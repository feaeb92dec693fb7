/*
 * hy_remove.c
 *	  HydraList: removal, and merges of neighbours.
 *
 * A node that has become poor takes in the one behind it, or goes into the one before.  Two
 * nodes are latched, left to right, each at the version of its copy.  The right one is then
 * obsolete, and leads to the left one for as long as somebody may come to it.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "hy_list.h"

/* Two nodes on their way to one.  About sixty kilobytes. */
typedef struct pair
{
	int			n;
	hy_entry	e[2 * HY_SLOTS];
	_Alignas(8) uint8_t a[HY_MAX_BODY];
	_Alignas(8) uint8_t b[HY_MAX_BODY];
} pair;

/*
 * Epoch: inside.
 * Latches: none on entry and on return; takes those of both nodes by one try each.
 * Order: the node behind both is never latched, and its link back is under the right one's latch.
 */
__attribute__((noinline)) ax_status
hy_merge(ax_ctx *cx, ax_store *s, hy_list *t, hy_node *a, int most)
{
	pair		p;
	ax_guard	ga,
				gb;
	hy_node    *b,
			   *behind;
	hy_body    *olda,
			   *oldb,
			   *made;
	uint32_t	plen;
	ax_status	x = ax_guard_open(cx, &ga, &a->word, false);

	if (x != AX_OK)
		return x;
	olda = hy_ld(&a->body);
	b = hy_next(a);
	if (!ax_guard_valid(&ga))
		return AX_STALE;
	if (!b)
		return AX_NOTFOUND;
	x = ax_guard_open(cx, &gb, &b->word, false);
	if (x != AX_OK)
		return x;
	oldb = hy_ld(&b->body);
	behind = hy_next(b);
	if (hy_count(olda) + hy_count(oldb) > most)
		return ax_guard_valid(&ga) && ax_guard_valid(&gb) ? AX_NOTFOUND : AX_STALE;
	if (!hy_copy(olda, &ga, p.a) || !hy_copy(oldb, &gb, p.b))
		return AX_STALE;
	p.n = hy_entries((const hy_body *) (const void *) p.a, p.e);
	p.n += hy_entries((const hy_body *) (const void *) p.b, p.e + p.n);
	plen = hy_range(a, behind);
	if (!hy_fits(p.e, p.n, plen))
		return AX_NOTFOUND;
	hy_sort(p.e, p.n, plen);
	made = hy_make_body(cx, s, p.e, p.n, p.n < HY_POOR ? 8 : 0, a->anchor, plen, true);
	if (!made)
		return AX_NOTFOUND;
	AX_POINT("hydra.merge.before_lock");
	x = ax_retire_reserve(cx, 2);
	if (x == AX_OK && !ax_guard_lock(cx, &ga))
		x = AX_STALE;
	if (x == AX_OK && !ax_guard_lock(cx, &gb))
		x = AX_STALE;
	if (x != AX_OK)
	{
		ax_guard_close(cx, &ga, false);
		hy_drop_body(cx, s, made);
		return x;
	}
	atomic_store_explicit(&a->body, made, memory_order_release);
	hy_set_next(a, behind);
	AX_POINT("hydra.merge.unlinked");
	if (behind)
		atomic_store_explicit(&behind->prev, a, memory_order_release);
	hy_announce(t);
	hy_push(t, &b->go);
	ax_guard_kill(cx, &gb);
	ax_guard_close(cx, &ga, true);
	ax_retire(cx, s, olda, olda->size);
	ax_retire(cx, s, oldb, oldb->size);
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
tidy(ax_ctx *cx, ax_store *s, hy_list *t, const uint8_t *key, uint32_t len)
{
	for (int rounds = 0; rounds < 4; rounds++)
	{
		hy_at		at;
		hy_node    *n;
		int			count;
		ax_status	x = hy_find(cx, s, t, NULL, key, len, HY_BEFORE, false, false, &at);

		if (x == AX_BUSY)
			return;
		if (x != AX_OK)
			continue;
		n = at.n;
		count = hy_count(at.b);
		if (!ax_guard_valid(&at.g))
			continue;
		ax_guard_close(cx, &at.g, false);
		if (count >= HY_POOR)
			return;
		x = hy_merge(cx, s, t, n, HY_FULL);
		if (x == AX_NOTFOUND && n->alen > 0)
		{
			x = hy_find(cx, s, t, n, n->anchor, n->alen, HY_STRICT, false, false, &at);
			if (x == AX_OK)
			{
				x = ax_guard_valid(&at.g) ? AX_OK : AX_STALE;
				ax_guard_close(cx, &at.g, false);
			}
			if (x == AX_OK)
				x = hy_merge(cx, s, t, at.n, HY_FULL);
		}
		if (x == AX_NOTFOUND || x == AX_BUSY)
			return;
		ax_map_unshare_all();
	}
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return.
 * Returns: AX_BUSY or AX_NOMEM: nothing was removed.
 */
ax_status
hy_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	hy_list    *t = hy_list_of(s);
	hy_at		at;
	bt_view		v;
	int			left;
	int			i;
	ax_status	x = AX_OK;

	if (!t)
		return AX_NOTFOUND;
	/* a long key has an object of its own, which goes with it */
	if (len > HY_LONG)
		x = ax_retire_reserve(cx, 1);
	if (x != AX_OK)
		return x;
	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		x = hy_find(cx, s, t, NULL, key, len, HY_BEFORE, tries >= AX_MAX_RESTARTS, true, &at);
		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		i = hy_find_key(at.b, &at.g, key, len);
		AX_POINT("hydra.remove.leaf_read");
		if (i < 0)
		{
			bool		ok = i == -1 && ax_guard_valid(&at.g);

			ax_guard_close(cx, &at.g, false);
			if (ok)
				return AX_NOTFOUND;
			continue;
		}
		if (ax_guard_lock(cx, &at.g))
			break;
	}
	hy_get(at.b, i, &v);
	hy_del(at.b, i);
	left = hy_count(at.b);
	ax_guard_close(cx, &at.g, true);
	if (v.blob)
		bt_blob_retire(cx, s, v.blob);
	AX_COUNT(cx, s, entries, -1);
	if (left < HY_POOR)
	{
		tidy(cx, s, t, key, len);
		/* of an empty list nothing is to be left */
		hy_told(cx, s, t, left == 0 && hy_next(t->head) == NULL ? 0 : HY_MARK);
	}
	return AX_OK;
}
