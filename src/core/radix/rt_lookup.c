/*
 * rt_lookup.c
 *	  Point look-ups, under optimistic latch coupling and under ROWEX, whose readers
 *	  validate nothing.
 *
 * src/core/radix/README.md: The tree
 * src/core/radix/README.md: ROWEX
 */
#include "rt_olc.h"
#include "core/base/ax_call.h"

/*
 * One descent for a key with its TID: AX_OK or AX_NOTFOUND.
 *
 * Latches: none on entry and on return; pessimistically takes those of a path.
 */
__attribute__((always_inline)) static inline ax_status
contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, const ax_mode mode)
{
	rt_cursor	c;
	ax_status	x = rt_descend(cx, s, &c, key, len, mode);

	if (x == AX_OK && RT_TAG(c.ref) == RT_LEAF)
	{
		rt_prefetch_leaf(c.ref);
		x = rt_open_leaf(cx, &c, mode);
		if (ax_likely(x == AX_OK))
		{
			if (rt_leaf_find(RT_PTR(c.ref), key + c.d, len - c.d,
							 rt_fp(key, len - AX_TID_BYTES)) < 0)
				x = AX_NOTFOUND;
			AX_POINT("art.contains.leaf_read");
			if (!ax_valid(&c.N, mode))
				x = AX_STALE;
		}
	}
	else if (x == AX_OK)
	{
		if (!ax_valid(&c.P.g, mode))
			x = AX_STALE;
		else if (c.ref == 0 || RT_EMBED_TID(c.ref) != ax_tid_at(key + len))
			x = AX_NOTFOUND;
	}
	rt_close(cx, &c, mode);
	return x;
}

static __attribute__((noinline, cold)) ax_status
contains_pessimistic(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	return contains(cx, s, key, len, AX_PESSIMISTIC);
}

ax_status
rt_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	int			tries = 0;
	ax_status	x;

	do
		x = ax_pessimistic(tries) ? contains_pessimistic(cx, s, key, len) :
			contains(cx, s, key, len, AX_READ);
	while (ax_start_over(cx, s, x, &tries));
	return x;
}

ax_status
rt_rowex_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	return contains(cx, s, key, len, AX_ROWEX);
}

/*
 * All TIDs of one encoded key.  While the descent is within the columns, one
 * leaf holds all of them (ranges are cut by bytes, and they share every byte).
 * Where it goes on into the TIDs (RT_ENDS), an ordered scan of the subtree does it.
 *
 * Latches: none.
 */
__attribute__((always_inline)) static inline ax_status
look_up(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f,
		const ax_mode mode)
{
	rt_cursor	c;
	ax_status	x = rt_descend(cx, s, &c, prefix, len, mode);

	if (x == AX_OK && RT_TAG(c.ref) == RT_LEAF)
	{
		uint32_t	k;

		rt_prefetch_leaf(c.ref);
		x = rt_open_leaf(cx, &c, mode);
		if (ax_unlikely(x != AX_OK))
			return x;
		k = rt_leaf_tids(RT_PTR(c.ref), prefix + c.d, len - c.d, rt_fp(prefix, len), f->tids, f->max);
		AX_POINT("art.lookup.leaf_read");
		if (!ax_valid(&c.N, mode))
			return AX_STALE;
		if (k > f->max)
			return RT_ENDS;	/* which are the first needs order */
		rt_sort_tids(f->tids, k);
		f->n = k;
		return AX_OK;
	}
	if (x != AX_OK)
		return x == RT_PARTS ? AX_OK : x;	/* immutable and reached: not there */
	AX_POINT("art.lookup.absent");
	if (!ax_valid(&c.P.g, mode))
		return AX_STALE;
	if (c.ref == 0)
		return AX_OK;
	if (ax_unlikely(c.d != len))
		return RT_ENDS;
	if (f->max == 0)
		f->more = true;
	else
		f->tids[f->n++] = RT_EMBED_TID(c.ref);
	return AX_OK;
}

ax_status
rt_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f)
{
	int			tries = 0;

	f->n = 0;
	f->more = false;
	while (!ax_pessimistic(tries))
	{
		ax_status	x = look_up(cx, s, prefix, len, f, AX_READ);

		if (ax_unlikely(x == RT_ENDS))
			break;
		if (!ax_start_over(cx, s, x, &tries))
			return x;
	}
	return ax_lookup_scan(cx, s, prefix, len, f);
}

ax_status
rt_rowex_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f)
{
	ax_status	x;

	f->n = 0;
	f->more = false;
	x = look_up(cx, s, prefix, len, f, AX_ROWEX);
	return ax_likely(x != RT_ENDS) ? x : ax_lookup_scan(cx, s, prefix, len, f);
}
