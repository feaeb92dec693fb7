/*
 * hy_scan.c
 *	  Look-ups and ordered batches of HydraList, in both directions.
 *
 * A look-up reads one node by fingerprints.  A scan takes a node's keys, its neighbour and
 * all else that it goes on with of one view.  Without versions a view holds under the node's
 * guard.  Of a body of keys of several lengths the scan makes a copy first, and works on
 * that.  It goes on to the neighbour by value: to the position where the node's range ends,
 * wherever that is by then.  So it may meet splits and merges, and neither misses a key nor
 * meets one twice.  Anchors stay where they are for the epoch.
 *
 * With versions all views of a call are of the moment at which it came.  The call latches
 * nothing, looks at no latch word, and starts nothing over.
 *
 * src/core/hydra/README.md: HydraList
 * src/core/hydra/README.md: Views
 */
#include "core/base/ax_call.h"
#include "hy_view.h"

/*
 * Epoch: inside.
 * Latches: none on entry and on return; pessimistically takes the node's.
 */
ax_status
hy_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	const ax_bound pos = {key, len, false};
	hy_call		h;

	if (!hy_enter(&h, cx, s))
		return AX_NOTFOUND;
	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		hy_at		at;
		int			i;
		ax_status	x = hy_read(&h, NULL, &pos, HY_BEFORE, tries, &at);

		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		i = hy_find_key(at.is, hy_guard(&h, &at), key, len);
		AX_POINT("hydra.contains.read");
		if (hy_read_ok(&h, &at) && i > -2)
			return i >= 0 ? AX_OK : AX_NOTFOUND;
	}
}

/*
 * The TIDs of a node's entries that are the prefix and a TID, in their order.  g: NULL when
 * nobody writes them.  False: the node changed.
 */
static inline bool
node_tids(const hy_view *is, const ax_guard *g, const uint8_t *prefix, uint32_t len,
		  uint64_t *tids, int *n)
{
	const hy_body *b = is->body;
	uint64_t	m = hy_match(b, hy_fp(prefix, len)) & hy_live(is);

	*n = 0;
	for (; m; m &= m - 1)
	{
		int			i = __builtin_ctzll(m);
		const uint8_t *rest;
		uint32_t	k;
		bt_blob    *blob;

		if (i >= b->cap || !hy_rest(b, g, i, &rest, &k, &blob))
			return false;
		if (hy_is_entry(b, rest, k, blob, prefix, len))
			hy_take_tid(ax_tid_at(rest + k), tids, n);
	}
	return true;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return; pessimistically takes the node's.
 */
ax_status
hy_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f)
{
	const ax_bound pos = {prefix, len, false};
	hy_call		h;
	uint64_t	found[HY_SLOTS];
	bool		behind = false;
	int			k = 0;

	f->n = 0;
	f->more = false;
	if (!hy_enter(&h, cx, s))
		return AX_OK;
	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		hy_at		at;
		bool		ok;
		ax_status	x = hy_read(&h, NULL, &pos, HY_BEFORE, tries, &at);

		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		ok = node_tids(at.is, hy_guard(&h, &at), prefix, len, found, &k);
		/* an anchor is a key: others that begin so may be there */
		behind = hy_goes_on(&at.is->end, prefix, len);
		AX_POINT("hydra.lookup.read");
		ok = hy_read_ok(&h, &at) && ok;
		if (ok)
			break;
	}
	f->n = (uint32_t) k < f->max ? (uint32_t) k : f->max;
	f->more = behind || (uint32_t) k > f->max;
	for (uint32_t i = 0; i < f->n; i++)
		f->tids[i] = found[i];
	/* on into the next nodes */
	if (behind && f->n < f->max)
		return ax_lookup_scan(cx, s, prefix, len, f);
	return AX_OK;
}

/* ---- batches ---- */

typedef enum step
{
	S_GO = 0,
	S_END,						/* exhausted */
	S_FULL,						/* the batch is full, or ends early */
	S_LOST,						/* something changed */
	S_BUSY,
	S_BUFFER
} step;

typedef struct scan
{
	hy_call		h;
	ax_batch   *b;
	ax_bound	pos;			/* start position now; its bytes: the caller's, or an anchor */
	hy_side		side;			/* which node that is in */
	hy_node    *near;			/* .. and one near it; NULL: not known */
	int			tries;
	_Alignas(8) uint8_t copy[HY_MAX_BODY];
} scan;

/* The node's neighbour in the batch's direction; NULL: none.  Racy. */
static inline hy_node *
beside(const ax_batch *b, const hy_at *at)
{
	return b->backward ? hy_ld(&at->n->prev) : at->is->end.next;
}

/*
 * Ask for the next node's body while this one's keys are taken.  Without versions for the header
 * behind it, too, if the guard under which the link was read still holds.
 */
AX_PREFETCHES static inline void
ask_ahead(const scan *sc, const hy_at *at, hy_node *next)
{
	const hy_node *on;

	if (!next)
		return;
	if (sc->h.versions)
		(void) hm_ask_for(next);
	else if (ax_guard_valid(&at->g))
	{
		hy_ahead(hy_ld(&next->body));
		on = sc->b->backward ? hy_ld(&next->prev) : hy_next(next);
		if (on)
			ax_prefetch(on);
	}
}

/*
 * The keys of the node that lie between the position and the end: as many as there is room for.  Of
 * a fixed body they are taken where they are.  Without versions they are thrown away again if the
 * node changed meanwhile.
 *
 * Latches: none but the guard's.
 */
static step
do_keys(scan *sc, const hy_at *at, hy_node *next, bool asked)
{
	const hy_call *h = &sc->h;
	ax_batch   *b = sc->b;
	const bool	fixed = hy_is_fixed(at->is->body),
				racy = fixed && !h->versions;
	const hy_body *body = fixed ? at->is->body : hy_still(h, at, sc->copy);
	const uint32_t n0 = b->n;
	const int	by = b->backward ? -1 : 1;
	/* the position is where the range begins, or ends */
	const bool	whole = sc->near && (b->backward ? at->is->end.next == sc->near : at->n == sc->near);
	hy_order_of o;
	uint8_t		last[HY_MAX_REST];
	int			i,
				end,
				taken;

	if (!body)
		return S_LOST;
	hy_recall(h, at, &o);
	if (!o.told)
		hy_order(body, o.live, o.perm);
	/* from i to end, without it, in the batch's direction */
	if (b->backward)
	{
		i = (whole ? o.n : hy_before(body, o.perm, o.n, &sc->pos)) - 1;
		end = hy_before(body, o.perm, o.n, &b->lo) - 1;
	}
	else
	{
		i = whole ? 0 : hy_before(body, o.perm, o.n, &sc->pos);
		end = hy_before(body, o.perm, o.n, &b->hi);
	}
	AX_POINT("hydra.scan.ordered");
	if (!asked && (b->backward ? end < 0 : end == o.n))
		ask_ahead(sc, at, next);
	taken = hy_take(b, body, o.perm, i, by * (end - i));
	i += by * taken;
	if (racy && taken > 0)
		ax_copy_out(last, hy_data(body) + o.perm[i - by] * body->rest, body->rest);
	AX_POINT("hydra.copied");
	if (racy && !ax_guard_valid(&at->g))
	{
		b->n = n0;
		return S_LOST;
	}
	/* the position may have been there, and is done with */
	if (taken > 0 && racy)
	{
		memcpy(b->lastkey, hy_prefix(body), body->plen);
		memcpy(b->lastkey + body->plen, last, body->rest);
		b->lastlen = body->plen + body->rest;
	}
	else if (taken > 0)
		hy_take_last(b, body, o.perm[i - by]);
	hy_leave(h, at, &o);
	if (by * (end - i) > 0)
		return b->n == 0 ? S_BUFFER : S_FULL;
	/* the batch's end is before the last key of the node, or nothing is behind that */
	if (b->backward ? end >= 0 || at->n->alen == 0 : end < o.n || !at->is->end.next)
		return S_END;
	return b->n == b->max ? S_FULL : S_GO;
}

/*
 * The node of the position, and from there to the next position.
 *
 * Latches: none on entry and on return; pessimistically takes the node's.
 */
static step
do_node(scan *sc)
{
	ax_batch   *b = sc->b;
	hy_at		at;
	hy_node    *next;
	bool		ask;
	step		r;
	ax_status	x = AX_OK;

	if (sc->h.versions && sc->near && !b->backward)
	{
		/* what a version leads to was there at its moment */
		at.n = sc->near;
		at.is = &hm_version(&sc->h, at.n)->is;
	}
	else
		x = hy_read(&sc->h, sc->near, &sc->pos, sc->side, sc->tries, &at);
	if (x != AX_OK)
		return x == AX_BUSY ? S_BUSY : S_LOST;
	AX_POINT("hydra.scan.found");
	next = beside(b, &at);
	if (next)
		ax_prefetch(next);
	ask = hy_scan_goes_on(b, &at.is->end);
	if (ask)
		ask_ahead(sc, &at, next);
	r = do_keys(sc, &at, next, ask);
	if (!sc->h.versions)
		ax_guard_close(sc->h.cx, &at.g, false);
	if (r != S_GO)
		return r;
	AX_POINT("hydra.scan.next");
	/* on by value: an anchor stays where it is while this epoch lasts */
	sc->near = b->backward ? at.n : at.is->end.next;
	sc->pos = (ax_bound) {sc->near->anchor, sc->near->alen, false};
	sc->side = b->backward ? HY_STRICT : HY_BEFORE;
	return S_GO;
}

ax_status
hy_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	scan		sc;

	sc.b = b;
	sc.pos = b->backward ? b->hi : b->lo;
	sc.side = sc.pos.after ? HY_AFTER : HY_BEFORE;
	sc.near = NULL;
	sc.tries = 0;
	b->n = 0;
	b->exhausted = false;
	b->need_bytes = 0;
	b->lastlen = 0;
	if (b->max == 0)
		return AX_OK;
	if (!hy_enter(&sc.h, cx, s) || (sc.pos.len == 0 && sc.pos.after != b->backward))
	{
		b->exhausted = true;	/* an empty range at one end of all keys */
		return AX_OK;
	}
	AX_POINT("hydra.scan.entered");
	for (;;)
		switch (do_node(&sc))
		{
			case S_GO:
				sc.tries = 0;
				break;
			case S_END:
				b->exhausted = true;
				return AX_OK;
			case S_FULL:
				return AX_OK;
			case S_BUFFER:
				return AX_BUFFER;
			case S_BUSY:
				return b->n ? AX_OK : AX_BUSY;
			default:
				ax_restarted(cx, s, sc.tries++);
		}
}
