/*
 * hy_jump.c
 *	  HydraList: from a position to a node near it, by the search layer.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "core/radix/radix.h"
#include "hy_list.h"

/*
 * A node near the position by way of a scan, which latches when all changes all the time.  Under
 * mvrlu it is ROWEX's, which does not.
 *
 * Latches: those of a scan of the search layer; none on return.
 */
static __attribute__((noinline, cold)) ax_status
jump_by_scan(const hy_call *h, const uint8_t *key, uint32_t len, bool after, uint64_t *tid)
{
	uint8_t		path[2 * HY_CODED + 16];
	ax_batch	b = {.hi = {key, len, after}, .backward = true, .max = 1, .tids = tid,
		.lastkey = path, .lastkey_size = sizeof(path)};
	ax_status	x = (h->versions ? &ax_engine_art_rowex : &ax_engine_art_olc)->scan(h->cx, h->s, &b);

	return x == AX_OK && b.n == 0 ? AX_NOTFOUND : x;
}

/*
 * A node near the position, which may be obsolete; under mvrlu also one that has come later.  There
 * nobody waits: if one try of rt_floor meets a latch or a change, a scan finds the node.
 *
 * Epoch: inside.
 * Latches: none on return.
 */
ax_status
hy_jump(const hy_call *h, const ax_bound *pos, hy_side side, hy_node **n)
{
	uint32_t	len = pos->len;
	const bool	after = len > HY_PATH || side == HY_AFTER;
	uint8_t		coded[HY_CODED];
	uint64_t	tid;
	ax_status	x = AX_NOTFOUND;

	if (len > 0 || side == HY_AFTER)
	{
		len = hy_encode(pos->key, len < HY_PATH ? len : HY_PATH, !after, coded);
		x = rt_floor(h->cx, h->s, coded, len, after, !h->versions, &tid);
		if (ax_unlikely(x == AX_STALE))
			x = jump_by_scan(h, coded, len, after, &tid);
	}
	*n = x == AX_OK ? (hy_node *) (uintptr_t) tid : h->t->head;
	return x == AX_NOTFOUND || h->versions ? AX_OK : x;
}

void
hy_walked(const hy_call *h, uint32_t steps)
{
	AX_COUNT(h->cx, h->s, walks, 1);
	AX_COUNT(h->cx, h->s, walk_steps, steps);
	if (steps > atomic_load_explicit(&h->t->longest, memory_order_relaxed))
		atomic_store_explicit(&h->t->longest, steps, memory_order_relaxed);
}
