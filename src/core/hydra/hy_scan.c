/*
 * hy_scan.c
 *	  Look-ups and ordered batches of HydraList, in both directions.
 *
 * A look-up reads one node by fingerprints.  A scan takes a node's keys, its neighbour and
 * all else that it goes on with under one version.  Of a body of keys of several lengths it
 * makes a copy first, and works on that.  It goes on
 * to the neighbour by value: to the position where the node's range ends, wherever
 * that is by then.  So it may meet splits and merges, and neither misses a key nor meets
 * one twice.  Anchors stay where they are for the epoch.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "hy_list.h"
#include "core/base/ax_call.h"

/*
 * Epoch: inside.
 * Latches: none on entry and on return; pessimistically takes the node's.
 */
ax_status
hy_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	hy_list    *t = hy_list_of(s);

	if (!t)
		return AX_NOTFOUND;
	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		hy_at		at;
		int			i;
		bool		ok;
		ax_status	x = hy_find(cx, s, t, NULL, key, len, HY_BEFORE, tries >= AX_MAX_RESTARTS,
								false, &at);

		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		i = hy_find_key(at.b, &at.g, key, len);
		AX_POINT("hydra.contains.read");
		ok = i > -2 && ax_guard_valid(&at.g);
		ax_guard_close(cx, &at.g, false);
		if (ok)
			return i >= 0 ? AX_OK : AX_NOTFOUND;
	}
}

/*
 * The TIDs of a node's entries that are the prefix and a TID, in their order.  False: the
 * node changed.
 *
 * Arguments: a place, a prefix, and where the answer goes.
 */
static bool
node_tids(const hy_body *b, const ax_guard *g, const uint8_t *prefix, uint32_t len,
		  uint64_t *tids, int *n)
{
	uint64_t	m = hy_match(b, hy_fp(prefix, len)) & hy_used(b);

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
	hy_list    *t = hy_list_of(s);
	uint64_t	found[HY_SLOTS];
	bool		behind = false;
	int			k = 0;

	f->n = 0;
	f->more = false;
	if (!t)
		return AX_OK;
	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		hy_at		at;
		bool		ok;
		ax_status	x = hy_find(cx, s, t, NULL, prefix, len, HY_BEFORE,
								tries >= AX_MAX_RESTARTS, false, &at);

		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		ok = node_tids(at.b, &at.g, prefix, len, found, &k);
		/* an anchor is a key: others that begin so may be there */
		behind = hy_goes_on(&at.end, prefix, len);
		AX_POINT("hydra.lookup.read");
		ok = ok && ax_guard_valid(&at.g);
		ax_guard_close(cx, &at.g, false);
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
	ax_ctx	   *cx;
	ax_store   *s;
	hy_list    *t;
	ax_batch   *b;
	ax_bound	pos;			/* start position now; its bytes: the caller's, or an anchor */
	hy_side		side;			/* which node that is in */
	hy_node    *near;			/* .. and one near it; NULL: not known */
	bool		pess;
	_Alignas(8) uint8_t copy[HY_MAX_BODY];
} scan;

/* The node's neighbour in the batch's direction; NULL: none.  Racy. */
static inline hy_node *
beside(const ax_batch *b, const hy_node *n)
{
	return b->backward ? hy_ld(&((hy_node *) (uintptr_t) n)->prev) : hy_next(n);
}

/*
 * Ask for the next node's body, and the header behind it, while this one's keys are taken.
 * g: this one's guard, under which its link was read.
 */
AX_PREFETCHES static inline void
ask_ahead(const ax_batch *b, const ax_guard *g, const hy_node *next)
{
	const hy_node *on;

	if (!next || !ax_guard_valid(g))
		return;
	hy_ahead(hy_ld(&((hy_node *) (uintptr_t) next)->body));
	on = beside(b, next);
	if (on)
		ax_prefetch(on);
}

/*
 * The keys of the node that lie between the position and the end: as many as there is room for.  Of
 * a fixed body they are taken where they are, and thrown away again if the node changed meanwhile.
 *
 * Latches: none but the guard's.
 */
static step
do_keys(scan *sc, const hy_at *at, const hy_node *next, bool asked)
{
	ax_batch   *b = sc->b;
	const bool	fixed = hy_is_fixed(at->b);
	const hy_body *body = fixed ? at->b : (const hy_body *) (const void *) sc->copy;
	const uint64_t version = at->g.v & AX_VERSION_MASK;
	const uint32_t n0 = b->n;
	const int	by = b->backward ? -1 : 1;
	/* the position is where the range begins, or ends */
	const bool	whole = sc->near && (b->backward ? at->end.next == sc->near : at->n == sc->near);
	uint8_t		perm[HY_SLOTS],
				last[HY_MAX_REST];
	uint64_t	of,
				used;
	bool		told;
	int			n,
				i,
				end,
				taken;

	if (!fixed && !hy_copy(at->b, &at->g, sc->copy))
		return S_LOST;
	used = hy_used(body);
	n = __builtin_popcountll(used);
	of = hy_ld(&at->b->perm_of);
	told = of == version && hy_told_order(at->b, version, used, perm);
	if (!told)
		hy_order(body, used, perm);
	/* from i to end, without it, in the batch's direction */
	if (b->backward)
	{
		i = (whole ? n : hy_before(body, perm, n, &sc->pos)) - 1;
		end = hy_before(body, perm, n, &b->lo) - 1;
	}
	else
	{
		i = whole ? 0 : hy_before(body, perm, n, &sc->pos);
		end = hy_before(body, perm, n, &b->hi);
	}
	AX_POINT("hydra.scan.ordered");
	if (!asked && (b->backward ? end < 0 : end == n))
		ask_ahead(b, &at->g, next);
	taken = hy_take(b, body, perm, i, by * (end - i));
	i += by * taken;
	if (fixed && taken > 0)
		ax_copy_out(last, hy_data(body) + perm[i - by] * body->rest, body->rest);
	AX_POINT("hydra.copied");
	if (fixed && !ax_guard_valid(&at->g))
	{
		b->n = n0;
		return S_LOST;
	}
	/* the position may have been there, and is done with */
	if (taken > 0 && fixed)
	{
		memcpy(b->lastkey, hy_prefix(body), body->plen);
		memcpy(b->lastkey + body->plen, last, body->rest);
		b->lastlen = body->plen + body->rest;
	}
	else if (taken > 0)
		hy_take_last(b, body, perm[i - by]);
	if (!told && (of == 0 || (int64_t) (version - of) > 0))
		hy_tell_order(at->b, of, version, perm, n);
	if (b->n == b->max)
		return S_FULL;
	if (by * (end - i) > 0)
		return b->n == 0 ? S_BUFFER : S_FULL;
	return b->backward ? (end >= 0 ? S_END : S_GO) : end < n ? S_END : S_GO;
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
	const hy_node *next;
	bool		ask;
	step		r;
	ax_status	x = hy_find(sc->cx, sc->s, sc->t, sc->near, sc->pos.key, sc->pos.len, sc->side,
							sc->pess, false, &at);

	if (x != AX_OK)
		return x == AX_BUSY ? S_BUSY : S_LOST;
	AX_POINT("hydra.scan.found");
	next = beside(b, at.n);
	if (next)
		ax_prefetch(next);
	ask = hy_scan_goes_on(b, &at.end);
	if (ask)
		ask_ahead(b, &at.g, next);
	r = do_keys(sc, &at, next, ask);
	ax_guard_close(sc->cx, &at.g, false);
	if (r != S_GO)
		return r;
	AX_POINT("hydra.scan.next");
	/* on by value: an anchor stays where it is while this epoch lasts */
	if (b->backward)
	{
		if (at.n->alen == 0)
			return S_END;
		sc->pos = (ax_bound) {at.n->anchor, at.n->alen, false};
		sc->side = HY_STRICT;
		sc->near = at.n;
	}
	else
	{
		if (!at.end.next)
			return S_END;
		sc->pos = (ax_bound) {at.end.next->anchor, at.end.next->alen, false};
		sc->side = HY_BEFORE;
		sc->near = at.end.next;
	}
	return S_GO;
}

ax_status
hy_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	scan		sc;
	int			tries = 0;

	sc.cx = cx;
	sc.s = s;
	sc.t = hy_list_of(s);
	sc.b = b;
	sc.pos = b->backward ? b->hi : b->lo;
	sc.side = sc.pos.after ? HY_AFTER : HY_BEFORE;
	sc.near = NULL;
	b->n = 0;
	b->exhausted = false;
	b->need_bytes = 0;
	b->lastlen = 0;
	if (b->max == 0)
		return AX_OK;
	if (!sc.t || (sc.pos.len == 0 && sc.pos.after != b->backward))
	{
		b->exhausted = true;	/* an empty range at one end of all keys */
		return AX_OK;
	}
	for (;;)
	{
		sc.pess = tries >= AX_MAX_RESTARTS;
		switch (do_node(&sc))
		{
			case S_GO:
				tries = 0;
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
				ax_restarted(cx, s, tries++);
		}
	}
}
