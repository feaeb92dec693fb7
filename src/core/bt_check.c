/*
 * bt_check.c
 *	  Verification of a B+-tree: order, bounds, prefixes, levels, and layout of
 *	  every page.
 *
 * Leaf after leaf: the path to it is latched from the root down, what comes on
 * it for the first time is looked at, and all is let go; the walk goes on at
 * the leaf's upper bound, by value.  So writers wait for microseconds, and the
 * verdict is about states that existed; the counts are exact when nobody
 * writes.
 */
#include <stdio.h>

#include "bt_tree.h"

typedef struct walk
{
	ax_ctx	   *cx;
	ax_store   *s;
	char	   *msg;
	size_t		msglen;
	bool		bad;
	uint64_t	entries;
	uint64_t	leaves;
	uint64_t	inner;
	int			height;
} walk;

static bool
complain(walk *w, const char *what, const bt_page *p)
{
	if (!w->bad)
		snprintf(w->msg, w->msglen, "%s in a page of level %d with %d keys", what, p->level,
				 bt_count(p));
	w->bad = true;
	return false;
}

/* Order of two keys. */
static int
cmp_views(const bt_view *a, const bt_view *b)
{
	uint32_t	n = bt_common(a, b);
	uint32_t	la = bt_len(a);
	uint32_t	lb = bt_len(b);
	uint8_t		x,
				y;

	if (n == la || n == lb)
		return la < lb ? -1 : la > lb;
	bt_view_bytes(a, n, 1, &x);
	bt_view_bytes(b, n, 1, &y);
	return x < y ? -1 : 1;
}

/*
 * One page whose contents stand still: its latch is held.
 */
static bool
check_page(walk *w, const bt_page *p, const bt_view *lo, const bt_view *hi)
{
	int			n = bt_count(p);
	bt_view		v,
				before;
	uint32_t	heap = 0;

	if (p->size != bt_page_size(w->s, p->level) || bt_arrays_end(p) > p->size - p->plen)
		return complain(w, "impossible layout", p);
	if (bt_ld(&((bt_page *) (uintptr_t) p)->n) > p->cap)
		return complain(w, "too many keys", p);
	for (int i = 0; i < n; i++)
	{
		uint32_t	len;

		if (p->tail == BT_VAR)
		{
			uint32_t	slot = bt_ld(&bt_slots(p)[i]);
			uint32_t	bytes = slot >> 16 == BT_IS_BLOB ? 8 : slot >> 16 > 8 ? (slot >> 16) - 8 : 0;

			if (bytes && ((slot & 0xFFFF) < bt_ld(&((bt_page *) (uintptr_t) p)->heap) ||
						  (slot & 0xFFFF) + bytes > p->size - p->plen))
				return complain(w, "a key outside of the heap", p);
			heap += bytes;
		}
		bt_get(p, i, &v);
		len = bt_len(&v);
		if (p->level == 0 && len < AX_TID_BYTES)
			return complain(w, "a key without a TID", p);
		if (v.blob)
		{
			if (memcmp(v.a, bt_prefix(p), p->plen) != 0)
				return complain(w, "a long key without the prefix", p);
			if (bt_ld(&bt_heads(p)[i]) != bt_head_of(v.a + p->plen, len - p->plen, false))
				return complain(w, "a wrong head", p);
		}
		if (i > 0 && cmp_views(&before, &v) >= 0)
			return complain(w, "keys out of order", p);
		if (lo && cmp_views(lo, &v) > 0)
			return complain(w, "a key below the page's range", p);
		if (hi && cmp_views(&v, hi) >= 0)
			return complain(w, "a key beyond the page's range", p);
		before = v;
	}
	if (p->tail == BT_VAR &&
		bt_ld(&((bt_page *) (uintptr_t) p)->heap) + heap +
		bt_ld(&((bt_page *) (uintptr_t) p)->dead) != p->size - p->plen)
		return complain(w, "a heap that does not add up", p);
	return true;
}

/*
 * Everything on a latched path that has not been looked at: the leaf, and
 * above it the pages of which this is the first child.
 */
static void
check_path(walk *w, bt_path *t)
{
	bt_view		lo,
				hi;
	const bt_view *plo = NULL,
			   *phi = NULL;
	bt_view		los[BT_LEVELS],
				his[BT_LEVELS];
	const bt_view *range_lo[BT_LEVELS],
			   *range_hi[BT_LEVELS];

	for (int k = 0; k < t->n; k++)
	{
		bt_page    *p = t->f[k].p;
		bool		has_lo,
					has_hi;

		if (p->level != t->n - 1 - k)
			complain(w, "a wrong level", p);
		bt_bounds(t, k, &lo, &has_lo, &hi, &has_hi);
		if (has_lo)
		{
			los[k] = lo;
			plo = &los[k];
		}
		if (has_hi)
		{
			his[k] = hi;
			phi = &his[k];
		}
		range_lo[k] = plo;
		range_hi[k] = phi;
	}
	for (int k = t->n - 1; k >= 0 && !w->bad; k--)
	{
		bt_page    *p = t->f[k].p;

		if (!check_page(w, p, range_lo[k], range_hi[k]))
			return;
		if (k == t->n - 1)
		{
			w->leaves++;
			w->entries += (uint64_t) bt_count(p);
		}
		else
			w->inner++;
		if (k > 0 && t->f[k - 1].i > 0)
			break;				/* the rest was looked at before */
	}
}

/* See ax.h, ax_check. */
ax_status
bt_check(ax_ctx *cx, ax_store *s, ax_tree_info *out, bool *ok, char *msg, size_t msglen)
{
	walk		w = {.cx = cx, .s = s, .msg = msg, .msglen = msglen};
	uint8_t		buf[16384 / 4];
	const uint8_t *pos = NULL;
	uint32_t	len = 0;
	bt_path		t;

	if (msglen)
		msg[0] = 0;
	t.write = false;
	t.pess = t.all = true;
	for (int busy = 0; !w.bad;)
	{
		ax_status	x = bt_descend(cx, s, &t, pos, len, false);
		bt_view		hi;
		bool		more = false;

		if (x == AX_BUSY && busy++ < 100)
			continue;
		if (x == AX_BUSY)
			return x;
		if (x != AX_OK)
			continue;
		busy = 0;
		if (t.n == 0)
		{
			bt_close(cx, &t, -1);
			break;
		}
		check_path(&w, &t);
		if (t.n > w.height)
			w.height = t.n;
		for (int k = t.n - 2; k >= 0 && !more; k--)
			if (t.f[k].i < bt_count(t.f[k].p))
			{
				bt_get(t.f[k].p, t.f[k].i, &hi);
				more = true;
			}
		if (more)
		{
			/* a blob outlives the latch: we are in one epoch */
			len = bt_len(&hi);
			if (hi.blob)
				pos = hi.a;
			else
			{
				bt_view_bytes(&hi, 0, len, buf);
				pos = buf;
			}
		}
		bt_close(cx, &t, -1);
		if (!more)
			break;
	}
	memset(out, 0, sizeof(*out));
	*ok = !w.bad;
	out->entries = w.entries;
	out->leaves = w.leaves;
	out->n4 = w.inner;
	out->inner_nodes = w.inner;
	out->height = w.height;
	return AX_OK;
}
