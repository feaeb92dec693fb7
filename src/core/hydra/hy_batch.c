/*
 * hy_batch.c
 *	  From a body into a batch: its keys in their order, between two positions.
 *
 * A fixed body may be changing meanwhile.  It is read within its size all the same, and its reader
 * asks its guard afterwards.  Nobody writes one of the other kind: it is a copy, or of a version.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "core/base/ax_call.h"
#include "hy_list.h"

/* Does the key in slot i lie before a position? */
static bool
is_before(const hy_body *b, int i, const ax_bound *at)
{
	const uint8_t *q = bt_key_behind(at->key, b->plen);
	const uint32_t n = at->len - b->plen;
	const uint8_t *p;

	if (b->rest == HY_VAR)
	{
		bt_view		v;

		hy_get(b, i, &v);
		return !hy_is_behind(&v, at);
	}
	p = hy_data(b) + (uint32_t) i * b->rest;
	for (uint32_t k = 0; k < n && k < b->rest; k++)
	{
		int			c = (int) ax_load1(p + k) - (int) q[k];

		if (c)
			return c < 0;
	}
	/* all of the key, and the position goes on */
	return b->rest < n || at->after;
}

int
hy_before(const hy_body *b, const uint8_t *perm, int n, const ax_bound *at)
{
	const uint32_t m = at->len < b->plen ? at->len : b->plen,
				rest = b->rest,
				len = at->len - m;
	const bool	heads = rest != HY_VAR && rest >= 8;
	const uint8_t *data = hy_data(b);
	const uint64_t shut = len < 8 ? ~(UINT64_MAX >> (8 * len)) : UINT64_MAX;
	const int	c = m ? memcmp(hy_prefix(b), at->key, m) : 0;
	uint64_t	head;
	int			low = 0;

	if (c || len == 0)
		return c < 0 || (c == 0 && at->after) ? n : 0;
	/* of a range that goes on behind this node, all */
	if (n && is_before(b, perm[n - 1], at))
		return n;
	/* no branch that hangs on which keys are before the position, as a rule */
	for (head = ax_be8(at->key + m, len); n > 0;)
	{
		const int	half = n / 2,
					i = perm[low + half];
		const uint64_t h = heads ? ax_be8(data + (uint32_t) i * rest, 8) & shut : head;
		bool		is = h < head;

		if (ax_unlikely(h == head))
			is = is_before(b, i, at);
		low = is ? low + half + 1 : low;
		n = is ? n - half - 1 : half;
	}
	return low;
}

/* hy_take() of a fixed body. */
static int
take_fixed(ax_batch *b, const hy_body *body, const uint8_t *perm, int i, int count)
{
	const uint32_t rest = body->rest,
				len = body->plen + rest;
	const int	by = b->backward ? -1 : 1;
	const uint8_t *data = hy_data(body);
	uint64_t   *tids = b->tids + b->n;
	uint32_t	off = b->want_keys && b->n ? b->key_off[b->n] : 0,
				room = b->max - b->n;

	if (b->want_keys && room > (b->keybuf_size - off) / len)
		room = (b->keybuf_size - off) / len;
	if (2 * len > b->lastkey_size)
		room = 0;
	if ((uint32_t) count > room)
	{
		count = (int) room;
		b->need_bytes = 2 * len;
	}
	perm += i;
	/* there are eight bytes before the end, of the keys before or of the order */
	for (int k = 0; k < count; k++)
		tids[k] = ax_tid_of_8(data + rest + perm[k * by] * rest);
	if (b->want_keys && count > 0)
	{
		uint32_t   *offs = b->key_off + b->n;

		for (int k = 0; k < count; k++)
		{
			memcpy(b->keybuf + off, hy_prefix(body), body->plen);
			ax_copy_few(b->keybuf + off + body->plen, data + perm[k * by] * rest, rest);
			offs[k] = off;
			off += len;
		}
		offs[count] = off;
	}
	b->n += (uint32_t) count;
	return count;
}

/*
 * Take up to "count" keys, in the batch's direction from place i of their order on.  How many there
 * was room for.  If they are fewer, and the batch is not full, "need_bytes" is what the next one needs.
 * "lastkey" is the caller's.
 * Of a fixed body racy.
 */
int
hy_take(ax_batch *b, const hy_body *body, const uint8_t *perm, int i, int count)
{
	const int	by = b->backward ? -1 : 1;
	int			k;

	if (count <= 0)
		return 0;
	if (ax_likely(hy_is_fixed(body)))
		return take_fixed(b, body, perm, i, count);
	for (k = 0; k < count && b->n < b->max; k++, i += by)
	{
		const uint32_t off = b->want_keys && b->n ? b->key_off[b->n] : 0;
		uint8_t		tid[AX_TID_BYTES];
		uint32_t	len;
		bt_view		v;

		hy_get(body, perm[i], &v);
		len = bt_len(&v);
		if (2 * len > b->lastkey_size || (b->want_keys && len > b->keybuf_size - off))
		{
			b->need_bytes = 2 * len;
			break;
		}
		if (b->want_keys)
		{
			bt_view_bytes(&v, 0, len, b->keybuf + off);
			b->key_off[b->n] = off;
			b->key_off[b->n + 1] = off + len;
		}
		if (ax_likely(v.rn >= AX_TID_BYTES))
			b->tids[b->n++] = ax_tid_at(v.r + v.rn);
		else
		{
			bt_view_bytes(&v, len - AX_TID_BYTES, AX_TID_BYTES, tid);
			b->tids[b->n++] = ax_tid_at(tid + AX_TID_BYTES);
		}
	}
	return k;
}

void
hy_take_last(ax_batch *b, const hy_body *body, int i)
{
	bt_view		v;

	hy_get(body, i, &v);
	b->lastlen = bt_len(&v);
	bt_view_bytes(&v, 0, b->lastlen, b->lastkey);
}
