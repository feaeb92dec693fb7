/*
 * hm_scan.c
 *	  HydraList with versions: look-ups and ordered batches, each as of the moment at which it
 *	  came.
 *
 * A reader reads the clock, and then only what it finds by that.  It latches nothing, looks at
 * no latch word, and starts nothing over.  Slots of a version are never written again, so it
 * copies no body, either.
 *
 * src/core/hydra/README.md: Versions
 */
#include "core/base/ax_call.h"
#include "hm.h"

/*
 * The slots of a version in the keys' order; how many.
 *
 * The order lies in the body for all, with the slots that it has.  Slots are given in order
 * and never again.  So it serves a version whose slots are among them, and is replaced only by
 * one of a greater number.  No number comes twice, and who finds the same one before and
 * after has what one process wrote.
 */
int
hm_order(const hm_ver *v, uint8_t *perm)
{
	hy_body    *b = v->body;
	const uint64_t live = hm_live(v);
	const int	n = __builtin_popcountll(live);
	uint64_t	of;
	hy_entry	e[HY_SLOTS];
	int			k = 0;

	if (n < 2)
	{
		perm[0] = n ? (uint8_t) __builtin_ctzll(live) : 0;
		return n;
	}
	of = atomic_load_explicit(&b->perm_of, memory_order_acquire);
	if ((live & ~of) == 0 && hy_told_order(b, of, of, perm))
	{
		for (int i = 0; live != of && k < n; i++)
			if (live >> perm[i] & 1)
				perm[k++] = perm[i];
		return n;
	}
	for (uint64_t m = live; m; m &= m - 1)
	{
		hy_get(b, __builtin_ctzll(m), &e[k].v);
		e[k++].fp = (uint8_t) __builtin_ctzll(m);
	}
	hy_sort(e, n, b->plen);
	for (int i = 0; i < n; i++)
		perm[i] = e[i].fp;
	if (live > of)
		hy_tell_order(b, of, live, perm, n);
	return n;
}

/* ---- look-ups ---- */

/*
 * Epoch: inside.
 * Latches: none.
 */
ax_status
hm_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	hy_list    *t = hy_list_of(s);
	const ax_bound pos = {key, len, false};
	hy_node    *n = NULL;

	if (!t)
		return AX_NOTFOUND;
	return hm_slot_of(hm_reach(cx, s, t, &n, &pos, HY_BEFORE, hm_now(t)), key, len) >= 0 ?
		AX_OK : AX_NOTFOUND;
}

/* The TIDs of a version's entries that are the prefix and a TID, in their order; how many. */
static int
version_tids(const hm_ver *v, const uint8_t *prefix, uint32_t len, uint64_t *tids)
{
	int			n = 0;

	for (uint64_t m = hy_match(v->body, hy_fp(prefix, len)) & hm_live(v); m; m &= m - 1)
	{
		const uint8_t *rest = NULL;
		uint32_t	k = 0;
		bt_blob    *blob;

		(void) hy_rest(v->body, NULL, __builtin_ctzll(m), &rest, &k, &blob);
		if (hy_is_entry(v->body, rest, k, blob, prefix, len))
			hy_take_tid(ax_tid_at(rest + k), tids, &n);
	}
	return n;
}

/*
 * Epoch: inside.
 * Latches: none.
 */
ax_status
hm_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f)
{
	hy_list    *t = hy_list_of(s);
	const ax_bound pos = {prefix, len, false};
	uint64_t	found[HY_SLOTS];
	hy_node    *at = NULL;
	hm_ver	   *v;
	uint32_t	k;

	f->n = 0;
	f->more = false;
	if (!t)
		return AX_OK;
	v = hm_reach(cx, s, t, &at, &pos, HY_BEFORE, hm_now(t));
	AX_POINT("mvrlu.lookup.found");
	/* an anchor is a key: others that begin so may be there */
	if (ax_unlikely(hy_goes_on(&v->end, prefix, len)))
		return ax_lookup_scan(cx, s, prefix, len, f);
	k = (uint32_t) version_tids(v, prefix, len, found);
	f->n = k < f->max ? k : f->max;
	f->more = k > f->max;
	for (uint32_t i = 0; i < f->n; i++)
		f->tids[i] = found[i];
	return AX_OK;
}

/* ---- batches ---- */

/* Does the node's range begin before a position? */
static inline bool
is_left(const hy_node *n, const ax_bound *at)
{
	return hy_is_left(n, at->key, at->len, at->after ? HY_AFTER : HY_BEFORE);
}

/* The node's neighbour in the batch's direction; NULL: none. */
static inline hy_node *
beside(const ax_batch *b, const hm_ver *v, const hy_node *n)
{
	return b->backward ? hy_ld(&((hy_node *) (uintptr_t) n)->prev) : v->end.next;
}

/*
 * The entries of a version that are in the batch's range.  next: the node behind it, to ask for.
 * first: the batch begins in this node.  False: the batch ends here, and is exhausted or not.
 */
static bool
do_version(ax_batch *b, const hm_ver *v, const hy_node *n, const hy_node *next, bool first)
{
	const int	by = b->backward ? -1 : 1;
	uint8_t		perm[HY_SLOTS];
	bool		low,
				high;
	int			lo,
				hi,
				i,
				taken;

	/* what comes next comes in while these are taken */
	if (next && hy_scan_goes_on(b, &v->end))
		(void) hm_ask_for(next);
	/* a bound cuts the node in which it lies, and no other */
	low = b->backward ? is_left(n, &b->lo) : first;
	high = b->backward ? first : !v->end.next || !is_left(v->end.next, &b->hi);
	hi = hm_order(v, perm);
	lo = low ? hy_before(v->body, perm, hi, &b->lo) : 0;
	if (high)
		hi = hy_before(v->body, perm, hi, &b->hi);
	i = b->backward ? hi - 1 : lo;
	taken = hy_take(b, v->body, perm, i, hi - lo);
	if (taken > 0)
		hy_take_last(b, v->body, perm[i + by * (taken - 1)]);
	b->exhausted = taken >= hi - lo && (b->backward ? low : high);
	return taken >= hi - lo && !b->exhausted && b->n < b->max;
}

/*
 * Epoch: inside.
 * Latches: none.
 */
ax_status
hm_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	hy_list    *t = hy_list_of(s);
	const ax_bound *pos = b->backward ? &b->hi : &b->lo;
	hy_node    *n = NULL;
	hm_ver	   *v;
	uint64_t	clock;

	b->n = 0;
	b->exhausted = false;
	b->need_bytes = 0;
	b->lastlen = 0;
	if (b->max == 0)
		return AX_OK;
	if (!t || (pos->len == 0 && pos->after != b->backward))
	{
		b->exhausted = true;	/* an empty range at one end of all keys */
		return AX_OK;
	}
	clock = hm_now(t);
	AX_POINT("mvrlu.scan.entered");
	v = hm_reach(cx, s, t, &n, pos, pos->after ? HY_AFTER : HY_BEFORE, clock);
	for (bool first = true;; first = false)
	{
		const hy_node *next = beside(b, v, n);

		if (next)
			ax_prefetch(next);
		if (!do_version(b, v, n, next, first))
			break;
		AX_POINT("mvrlu.scan.next");
		if (b->backward)
		{
			const ax_bound at = {n->anchor, n->alen, false};

			v = hm_reach(cx, s, t, &n, &at, HY_STRICT, clock);
		}
		else
		{
			n = v->end.next;
			v = hm_version(t, n, clock);
		}
	}
	return b->n == 0 && !b->exhausted ? AX_BUFFER : AX_OK;
}
