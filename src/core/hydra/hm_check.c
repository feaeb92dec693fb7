/*
 * hm_check.c
 *	  Verification of HydraList with versions: a node as it was at a moment.
 *
 * One thought with: hy_check.c
 *
 * src/core/hydra/README.md: Versions
 * src/views/README.md: The check
 */
#include "hm.h"

/*
 * Is the link back of the node behind, as of now, right?  It is of no moment, so only what is
 * under the node's valid guard counts.
 *
 * Latches: none.
 */
static bool
linked_back(hy_node *n)
{
	uint64_t	sample = atomic_load_explicit(&n->word, memory_order_acquire);
	hm_ver	   *v = hm_newest(n);
	hy_node    *back = v->body && v->end.next ? hy_ld(&v->end.next->prev) : n;

	atomic_thread_fence(memory_order_acquire);
	return back == n || (sample & (AX_LOCKED | AX_CLOSED | AX_OBSOLETE)) != 0 ||
		atomic_load_explicit(&n->word, memory_order_relaxed) != sample;
}

/*
 * Epoch: inside.
 * Latches: none.
 */
ax_status
hm_check_node(ax_ctx *cx, ax_store *s, hy_list *t, ax_checking *c, uint64_t clock)
{
	const ax_bound pos = {c->buf, c->len, false};
	hy_node    *n = NULL;
	hm_ver	   *v = hm_reach(cx, s, t, &n, &pos, HY_BEFORE, clock);
	uint8_t		told[HY_SLOTS];
	const uint64_t live = hm_live(v);
	uint64_t	seen = 0;
	int			k;

	if (v->end.next && v->end.next->alen > c->size)
	{
		c->need_bytes = 2 * v->end.next->alen;
		return AX_BUFFER;
	}
	if (!linked_back(n))
		hy_complain(c, "a link back that leads elsewhere", v->body);
	hy_check_end(c, v->body, n, &v->end);
	if ((live & ~hy_used(v->body)) != 0)
		hy_complain(c, "a key in a slot that was not given", v->body);
	if (hy_check_layout(c, v->body, live, n, v->end.next, false))
	{
		k = hm_order(v, told);
		for (int i = 0; i < k; i++)
			seen |= UINT64_C(1) << told[i];
		/* a removal without memory may come in between */
		if ((seen & ~live) != 0 || (hm_live(v) & ~seen) != 0)
			hy_complain(c, "a wrong order for scans", v->body);
		hy_check_keys(c, v->body, told, k, n, v->end.next);
		c->info.entries += (uint64_t) k;
		c->info.leaves++;
	}
	hy_check_on(c, v->end.next);
	return AX_OK;
}
