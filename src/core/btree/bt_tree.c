/*
 * bt_tree.c
 *	  The B+-tree under optimistic latch coupling: descent, insert, split.
 *
 * After Leis, Haubenschild, Neumann, "Optimistic Lock Coupling" (Data
 * Engineering Bulletin 2019).  An insert latches its leaf only; a page that
 * has no place is split, or copied into a layout that has, with its parent
 * latched, and the operation starts over.  A split latches the pointer to a
 * page and the page itself, top-down, at the versions under which it decided.
 * So a reader that came through the one or stands on the other notices.  Keys
 * move to the right only, or into a copy.
 */
#include "bt_tree.h"

#define MORE AX_BUFFER			/* something was done: start over */
#define ABOVE AX_CHANGED		/* there is no room in the parent */

/*
 * Let go of frames from "from" on; all of them and the root's word when it is
 * negative.
 *
 * Latches: gives back those of the guards, unchanged; without latches it ends
 * the samples.
 */
void
bt_close(ax_ctx *cx, bt_path *t, int from)
{
	for (int k = t->n - 1; k >= 0 && k >= from; k--)
		ax_guard_close(cx, &t->f[k].g, false);
	if (from < 0)
		ax_guard_close(cx, &t->root, false);
}

/*
 * From the root to the leaf in which the position lies.  AX_OK: t->n frames
 * (0: the tree is empty); every pointer was read from a page that was still the
 * parent afterwards.  AX_STALE: something changed, start over.  AX_BUSY.
 * Unless AX_OK nothing is held.
 *
 * Epoch: inside.
 * Latches: none on entry.  On AX_OK the guards of the path are open: samples,
 * or, pessimistically, latches of the last two (t->all: of all).
 */
__attribute__((always_inline)) static inline ax_status
descend(ax_ctx *cx, ax_store *s, bt_path *t, const uint8_t *key, uint32_t len, bool after,
		const ax_mode mode)
{
	bt_page    *p;
	ax_status	x;

	t->n = 0;
	x = bt_start(cx, s, &t->root, &p, mode);
	if (x != AX_OK)
		return x;
	while (p)
	{
		bt_frame   *f = &t->f[t->n];
		const bool	leaf = p->level == 0;

		f->p = p;
		f->i = 0;
		f->g.w = &p->word;
		f->g.held = false;
		x = leaf && t->write ? bt_enter_target(cx, s, bt_above(t, t->n), &f->g, p, mode) :
			bt_enter(cx, bt_above(t, t->n), &f->g, p, mode);
		t->n++;
		if (ax_unlikely(x != AX_OK))
			break;
		if (mode == AX_PESSIMISTIC && !t->all && t->n >= 2)
			ax_guard_close(cx, bt_above(t, t->n - 2), false);
		if (leaf)
			return AX_OK;
		p = bt_step(s, p, &f->g, key, len, after, &f->i, mode);
		if (ax_unlikely(!p))
		{
			x = AX_STALE;
			break;
		}
	}
	if (x == AX_OK)
		return AX_OK;
	bt_close(cx, t, -1);
	return x;
}

static __attribute__((noinline, cold)) ax_status
descend_latched(ax_ctx *cx, ax_store *s, bt_path *t, const uint8_t *key, uint32_t len,
				bool after)
{
	return descend(cx, s, t, key, len, after, AX_PESSIMISTIC);
}

ax_status
bt_descend(ax_ctx *cx, ax_store *s, bt_path *t, const uint8_t *key, uint32_t len, bool after)
{
	return ax_unlikely(t->pess) ? descend_latched(cx, s, t, key, len, after) :
		descend(cx, s, t, key, len, after, AX_OPTIMISTIC);
}

/*
 * The bytes that all keys of a range below frame k's parent begin with.  Its
 * ends have them in common; where an end is not known, all keys of the parent
 * begin with them. within: the range lies in that of frame k's page, whose
 * prefix is as good.  Points to buf (BT_MAX_PLEN) or into a page.
 */
const uint8_t *
bt_range_prefix(bt_path *t, int k, const bt_view *lo, bool has_lo, const bt_view *hi,
				bool has_hi, bool within, uint8_t *buf, uint32_t *plen)
{
	const bt_page *p = within ? t->f[k].p : k > 0 ? t->f[k - 1].p : NULL;

	*plen = p ? p->plen : 0;
	if (has_lo && has_hi)
	{
		uint32_t	n = bt_common(lo, hi);

		if (n > BT_MAX_PLEN)
			n = BT_MAX_PLEN;
		if (n > *plen)
		{
			bt_view_bytes(lo, 0, n, buf);
			*plen = n;
			return buf;
		}
	}
	return p ? bt_prefix(p) : buf;
}

/*
 * Point to another page in frame k's place; what holds the pointer is latched.
 */
void
bt_publish(ax_store *s, bt_path *t, int k, bt_page *p)
{
	_Atomic uint64_t *slot = k > 0 ? &bt_children(t->f[k - 1].p)[t->f[k - 1].i] : &s->root;

	atomic_store_explicit(slot, (uint64_t) (uintptr_t) p, memory_order_release);
}

/* ---- splitting ---- */

/*
 * The first BT_MAX_PLEN bytes of separator i of a page that may be changing:
 * 1; -1: it did change.  A key that does not come from a blob is as good as
 * the guard.
 */
static int
copy_separator(const bt_page *p, const ax_guard *g, int i, uint8_t *buf, bt_view *v)
{
	uint32_t	slot = bt_ld(&bt_slots(p)[i]);
	uint32_t	len = slot >> 16;
	uint32_t	n = p->plen;
	uint64_t	h = __builtin_bswap64(bt_ld(&bt_heads(p)[i]));

	if (len == BT_IS_BLOB)
	{
		/* a blob never changes, and stays for this epoch */
		bt_blob    *b = bt_blob_of(p, g, slot);

		if (!b)
			return -1;
		n = b->len < BT_MAX_PLEN ? b->len : BT_MAX_PLEN;
		memcpy(buf, b->bytes, n);
	}
	else
	{
		if (len > BT_MAX_PLEN - n)
			len = BT_MAX_PLEN - n;
		memcpy(buf, bt_prefix(p), n);
		memcpy(buf + n, &h, len < 8 ? len : 8);
		if (len > 8)
			ax_copy_out(buf + n + 8, bt_bytes(p, slot & 0xFFFF, len - 8), len - 8);
		n += len;
	}
	bt_key_view(buf, n, NULL, v);
	return 1;
}

/* Memory for a page that was, or was not yet, made one. */
void
bt_drop(ax_ctx *cx, ax_store *s, int level, bt_page *p, bool built)
{
	if (p && built)
		bt_unbuild(cx, s, p);
	else
		bt_unalloc(cx, s, level, p);
}

/*
 * Make room in the page of frame k, for the key "in" at place "at" (leaf), or
 * for some separator (in NULL).  Copy it into a layout that has room, or split
 * it.  A leaf gets the key on the way.  AX_OK: the key is in.  MORE: start
 * over.  AX_STALE: something changed.  AX_NOMEM.  Nothing is held afterwards.
 * ABOVE: make room in the parent first, with this path; nothing was done.
 *
 * The new pages are made before anything is latched, from a copy of the page.
 * The latches, taken at the versions of the path, then show that it was a true
 * one.  So they are held for the parent's new entry only, and a transaction in
 * their place is small.
 */
static ax_status
make_room_at(ax_ctx *cx, ax_store *s, bt_path *t, int k, const bt_view *in, int at)
{
	bt_frame   *f = &t->f[k];
	bt_page    *x = f->p;
	int			level = x->level;
	bool		inner = level > 0;
	uint32_t	size = x->size;
	bt_page    *a = NULL,
			   *b = NULL,
			   *c = NULL;
	bool		a_built = false,
				b_built = false,
				c_built = false,
				copied = false, /* into another layout, not split */
				in_place = false;	/* x stays the left half */
	bt_view		v[BT_MAX_CAP + 2];
	bt_page    *child[BT_MAX_CAP + 2];
	_Alignas(AX_LINE) uint8_t copy[BT_MAX_SIZE];
	const bt_page *from = x;
	uint8_t		sepbuf[16384 / 4];
	uint8_t		pbuf[BT_MAX_PLEN],
				lobuf[BT_MAX_PLEN],
				hibuf[BT_MAX_PLEN];
	const uint8_t *prefix;
	uint32_t	plen;
	bt_view		lo,
				hi,
				sep;
	bool		has_lo = false,
				has_hi = false;
	int			n,
				m = 0;
	ax_status	r = AX_NOMEM;

	sep.blob = NULL;
	if (t->pess && !t->all && k + 1 < t->n)
	{
		/* what is above is latched no longer */
		bt_close(cx, t, -1);
		t->all = true;
		return MORE;
	}
	/* reserve first, latch after */
	if ((a = bt_alloc(cx, s, level, false)) == NULL ||
		(b = bt_alloc(cx, s, level, false)) == NULL ||
		(k == 0 && (c = bt_alloc(cx, s, level + 1, false)) == NULL))
		goto out;

	/* under a coarse latch, nobody changes it */
	r = AX_STALE;
	if (!f->g.held && s->sync != AX_SYNC_COARSE)
	{
		/* (the guard may have been latched, and closed for the memory's sake) */
		if (!ax_guard_valid(&f->g))
			goto out;
		ax_copy_out(copy, (const uint8_t *) x, size);
		from = (const bt_page *) (const void *) copy;
	}
	AX_POINT("bt.split.copied");
	if (k > 0)
	{
		bt_frame   *up = &t->f[k - 1];

		if (up->i > 0)
			has_lo = copy_separator(up->p, &up->g, up->i - 1, lobuf, &lo) > 0;
		if (up->i < bt_count(up->p))
			has_hi = copy_separator(up->p, &up->g, up->i, hibuf, &hi) > 0;
	}
	if (!ax_guard_valid(&f->g) || !ax_guard_valid(bt_above(t, k)))
		goto out;

	n = bt_count(from);
	for (int i = 0; i < n; i++)
	{
		if (in && i == at)
			v[m++] = *in;
		bt_get(from, i, &v[m++]);
	}
	if (in && at == n)
		v[m++] = *in;
	if (inner)
		for (int i = 0; i <= n; i++)
			child[i] = bt_ref(&bt_children(from)[i]);
	n = m;
	prefix = bt_range_prefix(t, k, &lo, has_lo, &hi, has_hi, true, pbuf, &plen);

	/*
	 * Another layout, with some of it free?  An inner page must have room for
	 * any separator afterwards.
	 */
	if (bt_fits(size, inner, v, n, plen))
	{
		bt_build(cx, s, a, level, v, n, child, prefix, plen);
		a_built = true;
		copied = n + 1 + a->cap / 8 <= a->cap;
		if (a->tail == BT_VAR)
			copied = copied && bt_ld(&a->heap) - bt_arrays_end(a) >=
				(inner ? bt_max_inline(s->page_size) : size / 8);
		if (!copied)
		{
			/* not a page after all */
			if (inner)
				AX_COUNT(cx, s, n4, -1);
			else
				AX_COUNT(cx, s, leaves, -1);
			a_built = false;
		}
	}

	if (!copied)
	{
		uint8_t		pb[BT_MAX_PLEN];
		const uint8_t *pp;
		uint32_t	pl;
		int			right;

		/*
		 * Where to cut: rising keys leave the left page full; else in the middle
		 * of the bytes, as near as both halves allow.
		 */
		if (!inner && at == n - 1)
			m = n - 1;
		else if (inner && f->i == n && n > 3)
			m = n - 2;
		else
		{
			uint64_t	total = 0,
						sum = 0;

			/* bytes as they will be in the page */
			for (int i = 0; i < n; i++)
				total += v[i].blob ? 24 : bt_len(&v[i]) - x->plen + 12;
			for (m = 0; m < n - 1 && sum * 2 < total; m++)
				sum += v[m].blob ? 24 : bt_len(&v[m]) - x->plen + 12;
			if (m < 1)
				m = 1;
		}

		/* the separator: an inner page's goes up */
		if (inner)
		{
			if (m > n - 1)
				m = n - 1;
			sep = v[m];
		}
		else if (!bt_separator(cx, s, &v[m - 1], &v[m], sepbuf, &sep))
		{
			sep.blob = NULL;
			r = AX_NOMEM;
			goto out;
		}

		/* the right half */
		right = inner ? m + 1 : m;
		in_place = !inner && at >= m && (x->tail != BT_VAR || m == n - 1);
		pp = bt_range_prefix(t, k, &sep, true, &hi, has_hi, true, pb, &pl);
		bt_build(cx, s, b, level, v + right, n - right, child + right, pp, pl);
		b_built = true;
		if (!in_place)
		{
			pp = bt_range_prefix(t, k, &lo, has_lo, &sep, true, true, pb, &pl);
			bt_build(cx, s, a, level, v, m, child, pp, pl);
			a_built = true;
		}
		if (k == 0)
		{
			bt_page    *pair[2] = {in_place ? x : a, b};

			bt_build(cx, s, c, level + 1, &sep, 1, pair, pbuf, 0);
			c_built = true;
		}
	}

	AX_POINT("bt.split.before_lock");
	if (!ax_guard_lock_at(cx, bt_above(t, k), AX_SITE_SPLIT) ||
		!ax_guard_lock_at(cx, &f->g, AX_SITE_SPLIT))
		goto out;

	if (copied)
		bt_publish(s, t, k, a);
	else if (k > 0)
	{
		/* a blob that goes up belongs to the parent from now on */
		if (!bt_put(t->f[k - 1].p, t->f[k - 1].i, &sep, b))
		{
			/* unchanged, so the versions are still those of the path */
			ax_guard_close(cx, &f->g, false);
			if (!t->pess)
				ax_guard_close(cx, bt_above(t, k), false);
			bt_drop(cx, s, level, a, a_built);
			bt_drop(cx, s, level, b, b_built);
			if (!inner && sep.blob)
				bt_blob_free(cx, s, sep.blob);
			return ABOVE;
		}
		if (!in_place)
			bt_publish(s, t, k, a);
	}
	else
	{
		bt_publish(s, t, 0, c);
		atomic_store_explicit(&s->height, (uint32_t) level + 2, memory_order_relaxed);
	}
	AX_POINT("bt.split.published");
	if (in_place)
	{
		bt_st(&x->n, (uint16_t) m);
		ax_guard_close(cx, &f->g, true);
	}
	else
		ax_guard_kill(cx, &f->g);
	ax_guard_close(cx, bt_above(t, k), true);
	if (!in_place)
	{
		bt_retire(cx, s, x);
		a = NULL;
	}
	if (!copied)
	{
		b = c = NULL;
		sep.blob = NULL;
	}
	b_built = c_built = false;
	r = in ? AX_OK : MORE;

out:
	if (!inner && sep.blob)
		bt_blob_free(cx, s, sep.blob);
	bt_close(cx, t, -1);
	bt_drop(cx, s, level, a, a_built);
	bt_drop(cx, s, level, b, b_built);
	bt_drop(cx, s, level + 1, c, c_built);
	return r;
}

/*
 * Make room in the leaf at the end of the path, or in the first page above it that
 * has some.  A loop: make_room_at() takes a hundred kilobytes of stack.
 */
static ax_status
make_room(ax_ctx *cx, ax_store *s, bt_path *t, const bt_view *in, int at)
{
	int			k = t->n - 1;
	ax_status	x = make_room_at(cx, s, t, k, in, at);

	while (x == ABOVE)
		x = make_room_at(cx, s, t, --k, NULL, 0);
	return x;
}

/* ---- insert ---- */

/*
 * One try with keys[0..n), rising, of which the first decides on the leaf:
 * as many go in as belong there and fit.
 */
static ax_status
try_insert(ax_ctx *cx, ax_store *s, bt_path *t, const uint8_t *const *keys,
		   const uint32_t *lens, uint32_t len, uint64_t n, uint64_t *done, uint64_t *added)
{
	const uint32_t most = bt_max_inline(s->page_size);
	const uint8_t *key = keys[0];
	uint32_t	klen = lens ? lens[0] : len;
	bt_blob    *blob = NULL;
	bt_frame   *f;
	bt_view		v;
	bool		same;
	int			i;
	uint8_t		hibuf[16384 / 4 + BT_MAX_PLEN];
	bt_view		hi;
	bool		has_hi = false;
	bool		one = n == 1;
	uint64_t	put = 0;
	ax_status	x;

	x = bt_descend(cx, s, t, key, klen, false);
	if (x != AX_OK)
		return x;

	if (t->n == 0)
	{
		bt_page    *p;
		bt_page    *none = NULL;

		x = AX_NOMEM;
		if (klen > most && (blob = bt_blob_new(cx, s, key, klen)) == NULL)
			goto out;
		if ((p = bt_alloc(cx, s, 0, false)) == NULL)
			goto out;
		bt_key_view(key, klen, blob, &v);
		bt_build(cx, s, p, 0, &v, 1, &none, key, 0);
		AX_POINT("bt.first.before_lock");
		if (!ax_guard_lock_at(cx, &t->root, AX_SITE_NODE_INSERT))
		{
			bt_unbuild(cx, s, p);
			x = AX_STALE;
			goto out;
		}
		bt_publish(s, t, 0, p);
		atomic_store_explicit(&s->height, 1, memory_order_relaxed);
		ax_guard_close(cx, &t->root, true);
		*done = *added = 1;
		return AX_OK;
	}

	f = &t->f[t->n - 1];
	i = bt_find(f->p, &f->g, key + f->p->plen, klen - f->p->plen, false, &same);
	AX_POINT("bt.leaf_read");
	if (i < 0)
	{
		bt_close(cx, t, -1);
		return AX_STALE;
	}
	if (same)
	{
		bool		ok = ax_guard_valid(&f->g);

		bt_close(cx, t, -1);
		if (!ok)
			return AX_STALE;
		*done = 1;
		return AX_OK;
	}

	/*
	 * Several keys: how far do they belong here?  Up to the separator behind
	 * the lowest page on the path that has one.
	 */
	for (int k = t->n - 2; k >= 0 && !one && !has_hi; k--)
	{
		bt_frame   *up = &t->f[k];
		bool		last = up->i >= bt_count(up->p);

		if (!last)
		{
			uint32_t	slot = bt_ld(&bt_slots(up->p)[up->i]);
			uint32_t	sl = slot >> 16;

			has_hi = true;
			if (sl > most)
				one = true;		/* a blob: not worth it */
			else
			{
				uint64_t	h = __builtin_bswap64(bt_ld(&bt_heads(up->p)[up->i]));

				memcpy(hibuf, bt_prefix(up->p), up->p->plen);
				memcpy(hibuf + up->p->plen, &h, sl < 8 ? sl : 8);
				if (sl > 8)
					ax_copy_out(hibuf + up->p->plen + 8,
								bt_bytes(up->p, slot & 0xFFFF, sl - 8), sl - 8);
				bt_key_view(hibuf, up->p->plen + sl, NULL, &hi);
			}
		}
		if (t->pess && !up->g.held)
			one = true;			/* let go already */
		else if (!ax_guard_valid(&up->g))
		{
			bt_close(cx, t, -1);
			return AX_STALE;
		}
	}

	if (klen > most)
	{
		one = true;
		if (ax_guard_shared(&f->g) && !t->pess)
			ax_guard_close(cx, &f->g, false);	/* no latch while memory is taken */
		if ((blob = bt_blob_new(cx, s, key, klen)) == NULL)
		{
			x = AX_NOMEM;
			goto out;
		}
	}
	bt_key_view(key, klen, blob, &v);
	AX_POINT("bt.leaf_before_lock");
	if (!ax_guard_lock_at(cx, &f->g, AX_SITE_LEAF_INSERT))
	{
		x = AX_STALE;
		goto out;
	}
	if (!bt_put(f->p, i, &v, NULL))
	{
		/* unchanged: the version is still that of the path */
		if (!t->pess)
			ax_guard_close(cx, &f->g, false);
		x = make_room(cx, s, t, &v, i);
		if (x == AX_OK)
			*done = *added = 1;
		else if (blob)
			bt_blob_free(cx, s, blob);
		return x;
	}
	put = *done = *added = 1;
	while (!one && *done < n)
	{
		const uint8_t *k = keys[*done];
		uint32_t	kl = lens ? lens[*done] : len;

		if (kl > most)
			break;
		bt_key_view(k, kl, NULL, &v);
		if (has_hi)
		{
			uint32_t	hl = bt_len(&hi);
			int			c = memcmp(k, hibuf, kl < hl ? kl : hl);

			if (c > 0 || (c == 0 && kl >= hl))
				break;
		}
		i = bt_find(f->p, NULL, k + f->p->plen, kl - f->p->plen, false, &same);
		if (!same)
		{
			if (!bt_put(f->p, i, &v, NULL))
				break;
			put++;
		}
		++*done;
	}
	*added = put;
	ax_guard_close(cx, &f->g, true);
	bt_close(cx, t, -1);
	return AX_OK;

out:
	if (blob)
		bt_blob_free(cx, s, blob);
	bt_close(cx, t, -1);
	return x;
}

/*
 * Insert at least the first of n rising keys.
 */
ax_status
bt_insert_sorted(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
				 const uint32_t *lens, uint32_t len, uint64_t n, uint64_t *done,
				 uint64_t *added)
{
	bt_path		t;
	int			tries = 0;

	*done = *added = 0;
	t.all = false;
	t.write = true;
	while (*done < n)
	{
		uint64_t	some = 0,
					fresh = 0;
		ax_status	x = ax_retire_reserve(cx, 2);

		if (x == AX_OK)
		{
			t.pess = tries >= AX_MAX_RESTARTS;
			x = try_insert(cx, s, &t, keys + *done, lens ? lens + *done : NULL, len,
						   n - *done, &some, &fresh);
		}
		*done += some;
		*added += fresh;
		if (fresh)
			AX_COUNT(cx, s, entries, (int64_t) fresh);
		if (x == AX_STALE)
			ax_restarted(cx, s, tries++);
		else if (x == AX_OK)
		{
			tries = 0;
			t.all = false;
		}
		else if (x != MORE)
			return *done ? AX_OK : x;
	}
	return AX_OK;
}

/*
 * Insert one key, TID included.
 */
ax_status
bt_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint64_t	done,
				added;
	ax_status	x = bt_insert_sorted(cx, s, &key, NULL, len, 1, &done, &added);

	if (x == AX_OK)
		return added ? AX_OK : AX_EXISTS;
	return x;
}
