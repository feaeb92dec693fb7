/*
 * bt_check.c
 *	  Verification of a B+-tree: order, bounds, prefixes, levels, and layout of
 *	  every page, some leaves a call.
 *
 * Leaf after leaf it descends as a reader.  Pages that come on the path for
 * the first time are copied.  They are looked at when the copy is known to be
 * the page at the descent's version.  The walk goes on at the leaf's upper
 * bound, by value.  So nobody waits for it, and the verdict is about states
 * that existed; the counts are exact when nobody writes.  A page that changes
 * again and again is latched from the root down.
 *
 * src/views/README.md: The check
 */
#include <stdio.h>

#include "bt_tree.h"

typedef struct walk
{
	ax_ctx	   *cx;
	ax_store   *s;
	ax_checking *c;
	bt_path		t;
	_Alignas(AX_LINE) uint8_t copy[BT_MAX_SIZE];
	/* the ends of a page's range */
	uint8_t		lo[BT_MAX_SIZE / 4];
	uint8_t		hi[BT_MAX_SIZE / 4];
} walk;

static bool
complain_of_page(walk *w, const char *what, const bt_page *p)
{
	if (!w->c->bad)
		snprintf(w->c->msg, sizeof(w->c->msg), "%s in a page of level %d with %d keys", what,
				 p->level, bt_count(p));
	w->c->bad = true;
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
 * One page whose contents stand still: a copy.
 */
static bool
check_page(walk *w, const bt_page *p, const bt_view *lo, const bt_view *hi)
{
	int			n = bt_count(p);
	bt_view		v,
				before;
	uint32_t	heap = 0;

	if (p->size != bt_page_size(w->s, p->level) || p->size < BT_HEAD + (uint32_t) p->plen ||
		bt_arrays_end(p) > p->size - p->plen)
		return complain_of_page(w, "impossible layout", p);
	if (bt_ld(&((bt_page *) (uintptr_t) p)->n) > p->cap)
		return complain_of_page(w, "too many keys", p);
	for (int i = 0; i < n; i++)
	{
		uint32_t	len;

		if (p->tail == BT_VAR)
		{
			uint32_t	slot = bt_ld(&bt_slots(p)[i]);
			uint32_t	bytes = slot >> 16 == BT_IS_BLOB ? 8 : slot >> 16 > 8 ? (slot >> 16) - 8 : 0;

			if (bytes && ((slot & 0xFFFF) < bt_ld(&((bt_page *) (uintptr_t) p)->heap) ||
						  (slot & 0xFFFF) + bytes > p->size - p->plen))
				return complain_of_page(w, "a key outside of the heap", p);
			heap += bytes;
		}
		bt_get(p, i, &v);
		len = bt_len(&v);
		if (p->level == 0 && len < AX_TID_BYTES)
			return complain_of_page(w, "a key without a TID", p);
		if (v.blob)
		{
			if (memcmp(v.a, bt_prefix(p), p->plen) != 0)
				return complain_of_page(w, "a long key without the prefix", p);
			if (bt_ld(&bt_heads(p)[i]) != bt_head_of(v.a + p->plen, len - p->plen, false))
				return complain_of_page(w, "a wrong head", p);
		}
		if (i > 0 && cmp_views(&before, &v) >= 0)
			return complain_of_page(w, "keys out of order", p);
		if (lo && cmp_views(lo, &v) > 0)
			return complain_of_page(w, "a key below the page's range", p);
		if (hi && cmp_views(&v, hi) >= 0)
			return complain_of_page(w, "a key beyond the page's range", p);
		before = v;
	}
	if (p->tail == BT_VAR &&
		bt_ld(&((bt_page *) (uintptr_t) p)->heap) + heap +
		bt_ld(&((bt_page *) (uintptr_t) p)->dead) != p->size - p->plen)
		return complain_of_page(w, "a heap that does not add up", p);
	return true;
}

/*
 * Separator i of a frame's page; what is not a blob's is copied to buf.  False: the
 * page changed.
 */
static bool
frame_separator(const bt_frame *f, int i, uint8_t *buf, bt_view *v)
{
	const bt_page *p = f->p;
	uint32_t	slot = bt_ld(&bt_slots(p)[i]);
	uint32_t	len = slot >> 16;
	uint32_t	n = p->plen;
	uint64_t	h = __builtin_bswap64(bt_ld(&bt_heads(p)[i]));

	if (len == BT_IS_BLOB)
	{
		/* a blob never changes, and stays for this epoch */
		bt_blob    *b = bt_blob_of(p, &f->g, slot);

		if (b)
			bt_key_view(b->bytes, b->len, b, v);
		return b != NULL;
	}
	/* a torn length, as likely as not */
	if (n + len > BT_MAX_SIZE / 4)
		len = BT_MAX_SIZE / 4 - n;
	memcpy(buf, bt_prefix(p), n);
	memcpy(buf + n, &h, len < 8 ? len : 8);
	if (len > 8)
		ax_copy_out(buf + n + 8, bt_bytes(p, slot & 0xFFFF, len - 8), len - 8);
	bt_key_view(buf, n + len, NULL, v);
	return ax_guard_valid(&f->g);
}

/*
 * The ends of the range of frame k: the nearest separators above it.  *has_lo,
 * *has_hi: there are any.  False: something changed.
 */
static bool
frame_range(walk *w, int k, bt_view *lo, bool *has_lo, bt_view *hi, bool *has_hi)
{
	*has_lo = *has_hi = false;
	for (int j = k - 1; j >= 0 && !(*has_lo && *has_hi); j--)
	{
		const bt_frame *f = &w->t.f[j];

		if (!*has_lo && f->i > 0)
		{
			if (!frame_separator(f, f->i - 1, w->lo, lo))
				return false;
			*has_lo = true;
		}
		if (!*has_hi && f->i < bt_count(f->p))
		{
			if (!frame_separator(f, f->i, w->hi, hi))
				return false;
			*has_hi = true;
		}
	}
	return true;
}

/*
 * Everything on a path that has not been looked at: the leaf, and above it the
 * pages of which this is the first child.  Then the position is the leaf's end.
 * AX_STALE: something changed.  AX_BUFFER.
 */
static ax_status
check_path(walk *w)
{
	ax_checking *c = w->c;
	bt_path    *t = &w->t;
	bt_view		lo,
				hi;
	bool		has_lo = false,
				has_hi = false;
	int			fresh = t->n - 1;	/* frames from here on are new */
	uint32_t	len = 0;

	while (fresh > 0 && t->f[fresh - 1].i == 0)
		fresh--;
	for (int k = fresh; k < t->n && !c->bad; k++)
	{
		const bt_page *p = t->f[k].p;
		uint32_t	size = bt_page_size(w->s, t->n - 1 - k);

		AX_POINT("bt.check.range");
		if (!frame_range(w, k, &lo, &has_lo, &hi, &has_hi))
			return AX_STALE;
		AX_POINT("bt.check.page");
		ax_copy_out(w->copy, (const uint8_t *) p, size / 2);
		AX_POINT("bt.check.half");
		ax_copy_out(w->copy + size / 2, (const uint8_t *) p + size / 2, size - size / 2);
		if (!ax_guard_valid(&t->f[k].g))
			return AX_STALE;
		/* what the end of the last leaf is, the leaf's, needs a place */
		if (k == t->n - 1 && has_hi && bt_len(&hi) > c->size)
		{
			c->need_bytes = 2 * bt_len(&hi);
			return AX_BUFFER;
		}
		p = (const bt_page *) (const void *) w->copy;
		if (p->level != t->n - 1 - k)
			complain_of_page(w, "a wrong level", p);
		else
			check_page(w, p, has_lo ? &lo : NULL, has_hi ? &hi : NULL);
	}
	if (c->bad)
		return AX_OK;
	c->info.n4 += (uint64_t) (t->n - 1 - fresh);
	c->info.leaves++;
	c->info.entries += (uint64_t) bt_count((const bt_page *) (const void *) w->copy);
	if (t->n > c->info.height)
		c->info.height = t->n;
	if (has_hi)
	{
		len = bt_len(&hi);
		bt_view_bytes(&hi, 0, len, c->buf);
	}
	else
		c->done = true;
	c->len = len;
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return; pessimistically takes those of a path.
 */
ax_status
bt_check(ax_ctx *cx, ax_store *s, ax_checking *c)
{
	walk		w;
	int			lost = 0;

	w.cx = cx;
	w.s = s;
	w.c = c;
	w.t.write = false;
	w.t.all = true;
	for (int work = 0; work < AX_CHECK_WORK && !c->done && !c->bad; work++)
	{
		ax_status	x;

		w.t.pess = ax_pessimistic(lost - 1);
		x = bt_descend(cx, s, &w.t, bt_some_key(c->buf, c->len), c->len, false);
		if (x == AX_OK)
		{
			if (w.t.n == 0)
				c->done = true;
			else
				x = check_path(&w);
			bt_close(cx, &w.t, -1);
		}
		if (x == AX_BUSY || x == AX_BUFFER)
			return x;
		lost = x == AX_OK ? 0 : lost + 1;
		if (lost)
			ax_map_unshare_all();
	}
	return AX_OK;
}
