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
 * src/README.md: HydraList
 */
#include "hy_list.h"
#include "core/base/ax_call.h"

#define TID_MASK UINT64_C(0xFFFFFFFFFFFF)

/*
 * Is this very key there?  AX_OK or AX_NOTFOUND.
 *
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
 * See ax_lookup.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; pessimistically takes the node's.
 * Arguments: an operation of every structure: where, the keys, and where the answer goes.
 */
ax_status
hy_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, uint64_t *tids,
		  uint32_t max, uint32_t *n, bool *more)
{
	hy_list    *t = hy_list_of(s);
	uint64_t	found[HY_SLOTS];
	bool		behind = false;
	int			k = 0;

	*n = 0;
	*more = false;
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
	*n = (uint32_t) k < max ? (uint32_t) k : max;
	*more = behind || (uint32_t) k > max;
	for (uint32_t i = 0; i < *n; i++)
		tids[i] = found[i];
	/* on into the next nodes */
	if (behind && *n < max)
		return ax_lookup_scan(cx, s, prefix, len, tids, max, n, more);
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
	uint32_t	room;
	bool		pess;
	_Alignas(8) uint8_t copy[HY_MAX_BODY];
} scan;

/* Take the entry.  S_GO, S_FULL, S_BUFFER. */
static step
take(scan *sc, const bt_view *v)
{
	ax_batch   *b = sc->b;
	const uint32_t len = bt_len(v);
	uint8_t		tid[AX_TID_BYTES];

	if (b->n == b->max)
		return S_FULL;
	if (len > sc->room || (b->want_keys && len > b->keybuf_size - (b->n ? b->key_off[b->n] : 0)))
	{
		b->need_bytes = 2 * len;
		return b->n ? S_FULL : S_BUFFER;
	}
	if (b->want_keys)
	{
		uint32_t	off = b->n ? b->key_off[b->n] : 0;

		bt_view_bytes(v, 0, len, b->keybuf + off);
		b->key_off[b->n] = off;
		b->key_off[b->n + 1] = off + len;
	}
	bt_view_bytes(v, len - AX_TID_BYTES, AX_TID_BYTES, tid);
	b->tids[b->n++] = ax_tid_at(tid + AX_TID_BYTES);
	return S_GO;
}

/* The entries of the copy, in the batch's direction. */
static step
do_copy(scan *sc, const uint8_t *perm, int n)
{
	ax_batch   *b = sc->b;
	const hy_body *copy = (const hy_body *) (const void *) sc->copy;
	step		r = S_GO;
	bt_view		last = {0};
	const uint32_t n0 = b->n;

	for (int k = 0; k < n && r == S_GO; k++)
	{
		bt_view		v;

		hy_get(copy, perm[b->backward ? n - 1 - k : k], &v);
		if (hy_is_behind(&v, &sc->pos) == b->backward)
			continue;
		if (hy_is_behind(&v, b->backward ? &b->lo : &b->hi) != b->backward)
		{
			r = S_END;
			break;
		}
		r = take(sc, &v);
		if (r == S_GO)
			last = v;
	}
	if (b->n > n0)
	{
		/* the position may have been there, and is done with */
		b->lastlen = bt_len(&last);
		bt_view_bytes(&last, 0, b->lastlen, b->lastkey);
	}
	return r == S_GO && b->n == b->max ? S_FULL : r;
}

/*
 * How the key in slot i of a fixed body compares with the first bytes of a position, which are
 * as many at most.  Its bytes may be changing.
 */
static inline int
compare(const hy_body *b, int i, const ax_bound *at)
{
	const uint8_t *p = hy_data(b) + (uint32_t) i * b->rest;
	const uint32_t n = at->len - b->plen < b->rest ? at->len - b->plen : b->rest;
	const uint8_t *q = at->key + b->plen;
	uint64_t	x = ax_be8(p, n),
				y = ax_be8(q, n);

	if (x != y)
		return x < y ? -1 : 1;
	for (uint32_t k = 8; k < n; k++)
	{
		int			c = (int) ax_load1(p + k) - (int) q[k];

		if (c)
			return c;
	}
	/* all of the key, and the position goes on */
	return b->plen + b->rest < at->len ? -1 : 0;
}

/* How many of n keys, in order, lie before a position. */
static int
before(const hy_body *b, const uint8_t *perm, int n, const ax_bound *at)
{
	const uint32_t m = at->len < b->plen ? at->len : b->plen;
	int			c = m ? memcmp(hy_prefix(b), at->key, m) : 0,
				low = 0;

	if (c || at->len <= b->plen)
		return c < 0 || (c == 0 && at->after) ? n : 0;
	/* of a range that goes on behind this node, all */
	c = n ? compare(b, perm[n - 1], at) : 0;
	if (c < 0 || (c == 0 && at->after))
		return n;
	while (low < n)
	{
		int			mid = (low + n) / 2;

		c = compare(b, perm[mid], at);
		if (c < 0 || (c == 0 && at->after))
			low = mid + 1;
		else
			n = mid;
	}
	return low;
}

/*
 * Take up to "count" keys of a fixed body, in the batch's direction from place i of their order on.
 * How many there was room for.  Racy.
 */
static inline int
take_fixed(ax_batch *b, const hy_body *body, const uint8_t *perm, int i, int count)
{
	const uint8_t *data = hy_data(body);
	const uint32_t rest = body->rest,
				plen = body->plen;
	const int	by = b->backward ? -1 : 1;
	uint64_t   *tids = b->tids + b->n;
	uint32_t   *offs = b->want_keys ? b->key_off + b->n : NULL;
	uint32_t	off = b->want_keys && b->n ? *offs : 0,
				room = b->max - b->n;

	if (b->want_keys && room > (b->keybuf_size - off) / (plen + rest))
		room = (b->keybuf_size - off) / (plen + rest);
	if (count > 0 && (uint32_t) count > room)
		count = (int) room;
	for (int k = 0; k < count; k++, i += by)
	{
		const uint8_t *p = data + perm[i] * rest;

		/* there are eight bytes before the end, of the keys before or of the order */
		tids[k] = __builtin_bswap64(ax_load8(p + rest - 8)) & TID_MASK;
		if (offs)
		{
			memcpy(b->keybuf + off, hy_prefix(body), plen);
			ax_copy_few(b->keybuf + off + plen, p, rest);
			offs[k] = off;
			off += plen + rest;
			offs[k + 1] = off;
		}
	}
	b->n += count > 0 ? (uint32_t) count : 0;
	return count > 0 ? count : 0;
}

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
 * Those keys of a fixed body that lie between the position and the end, where they are: as many as
 * there is room for.  whole: all lie behind the position.  S_LOST: the node changed, and nothing
 * was taken.  S_BUFFER: no room.
 *
 * Latches: none but the guard's.
 */
static step
do_fixed(scan *sc, hy_body *body, const ax_guard *g, const hy_node *next, bool whole)
{
	ax_batch   *b = sc->b;
	const uint64_t version = g->v & AX_VERSION_MASK;
	const uint64_t used = hy_used(body);
	const uint32_t rest = body->rest,
				plen = body->plen,
				len = plen + rest,
				n0 = b->n;
	uint8_t		perm[HY_SLOTS],
				last[HY_MAX_REST];
	const int	n = __builtin_popcountll(used),
				by = b->backward ? -1 : 1;
	int			i,
				end,
				count;
	bool		told = hy_told_order(body, version, used, perm);

	if (len > sc->room)
	{
		b->need_bytes = 2 * len;
		return b->n ? S_FULL : S_BUFFER;
	}
	if (!told)
		hy_order(body, used, perm);
	/* from i to end, without it, in the batch's direction */
	if (b->backward)
	{
		i = (whole ? n : before(body, perm, n, &sc->pos)) - 1;
		end = before(body, perm, n, &b->lo) - 1;
	}
	else
	{
		i = whole ? 0 : before(body, perm, n, &sc->pos);
		end = before(body, perm, n, &b->hi);
	}
	AX_POINT("hydra.scan.ordered");
	if (b->backward ? end < 0 : end == n)
		ask_ahead(b, g, next);
	count = take_fixed(b, body, perm, i, by * (end - i));
	i += by * count;
	if (count > 0)
		ax_copy_out(last, hy_data(body) + perm[i - by] * rest, rest);
	AX_POINT("hydra.copied");
	if (!ax_guard_valid(g))
	{
		b->n = n0;
		return S_LOST;
	}
	if (b->n > n0)
	{
		/* the position may have been there, and is done with */
		memcpy(b->lastkey, hy_prefix(body), plen);
		memcpy(b->lastkey + plen, last, rest);
		b->lastlen = len;
	}
	if (!told)
		hy_tell_order(body, version, perm, n);
	if (by * (end - i) > 0)
	{
		if (b->n == 0)
			b->need_bytes = 2 * len;
		return b->n == 0 ? S_BUFFER : S_FULL;
	}
	if (b->n == b->max)
		return S_FULL;
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
	uint8_t		perm[HY_SLOTS];
	hy_at		at;
	const hy_node *next;
	bool		ok;
	int			n;
	step		r;
	ax_status	x = hy_find(sc->cx, sc->s, sc->t, sc->near, sc->pos.key, sc->pos.len, sc->side,
							sc->pess, false, &at);

	if (x != AX_OK)
		return x == AX_BUSY ? S_BUSY : S_LOST;
	AX_POINT("hydra.scan.found");
	next = beside(b, at.n);
	if (next)
		ax_prefetch(next);
	if (ax_likely(at.b->rest != HY_VAR && at.b->rest >= AX_TID_BYTES))
	{
		/* the position is where the range begins, or ends */
		r = do_fixed(sc, at.b, &at.g, next, sc->near != NULL &&
					 (b->backward ? at.end.next == sc->near : at.n == sc->near));
		ax_guard_close(sc->cx, &at.g, false);
	}
	else
	{
		ok = hy_copy(at.b, &at.g, sc->copy);
		ask_ahead(b, &at.g, next);
		ax_guard_close(sc->cx, &at.g, false);
		if (!ok)
			return S_LOST;
		n = hy_permutation(at.b, (const hy_body *) (const void *) sc->copy, &at.g, true, perm);
		r = do_copy(sc, perm, n);
	}
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

/* See ax_scan. */
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
	sc.room = b->lastkey_size / 2;
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
