/*
 * bt_scan.c
 *	  Look-ups and ordered batches of the B+-tree, in both directions.
 *
 * One epoch, one batch.  The path of the descent stays sampled; a leaf that is
 * done is left through its parent, which is validated first.  When something
 * on the path changed, the batch ends early, or the descent starts over from a
 * position given by value, never from a remembered place.  A key that is in
 * the tree throughout is returned: it can leave its page only by a change of
 * that page and of its parent, both of which the scan validates after it read
 * the one and before it goes on in the other.
 */
#include "bt_tree.h"

typedef enum step
{
	S_GO = 0,
	S_END,						/* exhausted */
	S_FULL,						/* the batch is full, or ends early */
	S_LOST,						/* something changed */
	S_BUSY,
	S_BUFFER
} step;

/*
 * The last six bytes of entry i.  False: the page changed (or is being).
 */
static inline bool
entry_tid(const bt_page *p, const ax_guard *g, int i, uint64_t *tid)
{
	uint64_t	head;
	const uint8_t *end;
	uint32_t	rest;

	if (ax_likely(p->tail != BT_VAR))
	{
		rest = p->tail;
		end = bt_tails(p) + (uint32_t) (i + 1) * p->tail;
	}
	else
	{
		uint32_t	slot = bt_ld(&bt_slots(p)[i]);
		uint32_t	len = slot >> 16;

		if (ax_unlikely(len == BT_IS_BLOB))
		{
			bt_blob    *b = bt_blob_of(p, g, slot);

			if (!b)
				return false;
			*tid = ax_tid_at(b->bytes + b->len);
			return true;
		}
		if (len < 8)
		{
			/* the prefix may have the rest of it */
			uint8_t		t[8 + BT_MAX_PLEN];
			uint64_t	h = __builtin_bswap64(bt_ld(&bt_heads(p)[i]));

			if (len + p->plen < AX_TID_BYTES)
				return false;
			memcpy(t, bt_prefix(p), p->plen);
			memcpy(t + p->plen, &h, len);
			*tid = ax_tid_at(t + p->plen + len);
			return true;
		}
		rest = len - 8;
		end = bt_bytes(p, slot & 0xFFFF, rest) + rest;
	}
	if (rest >= AX_TID_BYTES)
	{
		*tid = ax_tid_at(end);
		return true;
	}
	head = bt_ld(&bt_heads(p)[i]);
	*tid = head;
	for (uint32_t k = rest; k > 0; k--)
		*tid = *tid << 8 | ax_load1(end - k);
	*tid &= UINT64_C(0xFFFFFFFFFFFF);
	return true;
}

/* Length of entry i's key; 0: the page changed. */
static inline uint32_t
entry_len(const bt_page *p, const ax_guard *g, int i, bt_blob **blob)
{
	uint32_t	slot;

	*blob = NULL;
	if (ax_likely(p->tail != BT_VAR))
		return p->plen + 8u + p->tail;
	slot = bt_ld(&bt_slots(p)[i]);
	if (ax_likely(slot >> 16 != BT_IS_BLOB))
		return p->plen + (slot >> 16);
	*blob = bt_blob_of(p, g, slot);
	return *blob ? (*blob)->len : 0;
}

/* Copy its bytes out. */
static inline void
entry_key(const bt_page *p, int i, const bt_blob *blob, uint32_t len, uint8_t *out)
{
	uint64_t	h;
	uint32_t	hn,
				rest;

	if (blob)
	{
		memcpy(out, blob->bytes, len);
		return;
	}
	if (p->plen)
		memcpy(out, bt_prefix(p), p->plen);
	out += p->plen;
	len -= p->plen;
	h = __builtin_bswap64(bt_ld(&bt_heads(p)[i]));
	hn = len < 8 ? len : 8;
	memcpy(out, &h, hn);
	rest = len - hn;
	if (rest == 0)
		return;
	if (p->tail != BT_VAR)
		ax_copy_few(out + 8, bt_tails(p) + (uint32_t) i * p->tail, rest);
	else
		ax_copy_out(out + 8, bt_bytes(p, bt_ld(&bt_slots(p)[i]) & 0xFFFF, rest), rest);
}

/*
 * Is this very key there?  AX_OK or AX_NOTFOUND.
 */
ax_status
bt_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	bt_path		t;

	t.all = false;
	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		bool		same = false,
					ok = true;
		ax_status	x;

		t.pess = tries >= AX_MAX_RESTARTS;
		x = bt_descend(cx, s, &t, key, len, false);
		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		if (t.n > 0)
		{
			bt_frame   *f = &t.f[t.n - 1];

			ok = bt_find(f->p, &f->g, key + f->p->plen, len - f->p->plen, false, &same) >= 0 &&
				ax_guard_valid(&f->g);
		}
		bt_close(cx, &t, -1);
		if (ok)
			return same ? AX_OK : AX_NOTFOUND;
	}
}

/*
 * May keys that begin with the prefix follow in the leaves behind this one?
 * Asked when such keys end the leaf.  A wrong "yes" costs a scan.
 */
static bool
more_behind(bt_path *t, const uint8_t *prefix, uint32_t len)
{
	for (int k = t->n - 2; k >= 0; k--)
	{
		bt_frame   *f = &t->f[k];
		bool		last = f->i >= bt_count(f->p);
		bool		more = !last &&
			bt_child_index(f->p, &f->g, prefix, len, true) != f->i;

		if ((t->pess && !f->g.held) || !ax_guard_valid(&f->g))
			return true;
		if (!last)
			return more;
	}
	return false;
}

/* See ax.h, ax_lookup. */
ax_status
bt_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
		  uint64_t *tids, uint32_t max, uint32_t *n, bool *more)
{
	bt_path		t;

	t.all = false;
	for (int tries = 0;; ax_restarted(cx, s, tries++))
	{
		bool		ok = true;
		ax_status	x;

		*n = 0;
		*more = false;
		t.pess = tries >= AX_MAX_RESTARTS;
		x = bt_descend(cx, s, &t, prefix, len, false);
		if (x == AX_STALE)
			continue;
		if (x != AX_OK)
			return x;
		if (t.n > 0)
		{
			bt_frame   *f = &t.f[t.n - 1];
			bt_page    *p = f->p;
			bool		same;
			int			i = bt_find_bound(p, &f->g, prefix, len, false, &same);
			int			count = bt_count(p);

			ok = i >= 0;
			for (; ok && i < count; i++)
			{
				bt_blob    *blob;
				uint32_t	el = entry_len(p, &f->g, i, &blob);
				int			j = i;

				/* does it begin with the prefix?  then it is the prefix and a TID */
				if (el == len + AX_TID_BYTES)
				{
					int			e = bt_find_bound(p, &f->g, prefix, len, true, &same);

					if (e < 0)
					{
						ok = false;
						break;
					}
					for (; ok && j < e && *n < max; j++)
						ok = entry_tid(p, &f->g, j, &tids[(*n)++]);
					if (j < e)
						*more = true;
					else if (e >= count && *n > 0)
						*more = more_behind(&t, prefix, len);
				}
				else if (el == 0)
					ok = false;
				break;
			}
			if (ok && i >= count)
				*more = more_behind(&t, prefix, len);
			ok = ok && ax_guard_valid(&f->g);
		}
		bt_close(cx, &t, -1);
		if (ok)
			break;
	}

	/* on into the next leaves */
	if (*more && *n < max)
		return ax_lookup_scan(cx, s, prefix, len, tids, max, n, more);
	return AX_OK;
}

/* ---- batches ---- */

typedef struct scan
{
	ax_ctx	   *cx;
	ax_store   *s;
	ax_batch   *b;
	ax_bound	pos;			/* start position now; its bytes: the caller's */
	const ax_bound *end;
	uint8_t    *tmp;			/* half of lastkey */
	uint32_t	room;
	bool		inside;			/* of this path's leaves: all is behind pos */
	bt_path		t;
} scan;

/*
 * The entries of the leaf on top of the path.
 */
static step
do_leaf(scan *sc)
{
	ax_batch   *b = sc->b;
	const bool	back = b->backward;
	bt_frame   *f = &sc->t.f[sc->t.n - 1];
	bt_page    *p = f->p;
	const ax_guard *g = &f->g;
	int			n = bt_count(p);
	uint32_t	n0 = b->n;
	uint32_t	off = b->want_keys && b->n ? b->key_off[b->n] : 0;
	uint32_t	off0 = off;
	int			from,
				to,
				last = -1;
	uint32_t	lastlen = 0;
	bool		same;
	step		r = S_GO;

	/* entries [from, to), then which of them come first */
	from = back ? bt_find_bound(p, g, sc->end->key, sc->end->len, sc->end->after, &same) :
		sc->inside ? 0 : bt_find_bound(p, g, sc->pos.key, sc->pos.len, sc->pos.after, &same);
	to = !back ? bt_find_bound(p, g, sc->end->key, sc->end->len, sc->end->after, &same) :
		sc->inside ? n : bt_find_bound(p, g, sc->pos.key, sc->pos.len, sc->pos.after, &same);
	if (from < 0 || to < 0)
		return S_LOST;
	if (back ? from > 0 : to < n)
		r = S_END;
	AX_POINT("bt.scan.leaf_found");

	for (int k = 0; k < to - from; k++)
	{
		int			i = back ? to - 1 - k : from + k;
		uint64_t	tid;

		if (b->n == b->max)
		{
			r = S_FULL;
			break;
		}
		if (!entry_tid(p, g, i, &tid))
			goto lost;
		if (b->want_keys)
		{
			bt_blob    *blob;
			uint32_t	len = entry_len(p, g, i, &blob);

			if (len == 0)
				goto lost;
			if (len > b->keybuf_size - off || len > sc->room)
			{
				if (!ax_guard_valid(g))
					goto lost;
				if (b->n == 0)
				{
					b->need_bytes = 2 * len;
					return S_BUFFER;
				}
				r = S_FULL;
				break;
			}
			entry_key(p, i, blob, len, b->keybuf + off);
			b->key_off[b->n] = off;
			off += len;
			b->key_off[b->n + 1] = off;
		}
		b->tids[b->n++] = tid;
		last = i;
	}
	if (last >= 0)
	{
		bt_blob    *blob;

		lastlen = entry_len(p, g, last, &blob);
		if (lastlen > sc->room)
		{
			if (!ax_guard_valid(g))
				goto lost;
			b->n = n0;
			if (b->want_keys && n0)
				b->key_off[n0] = off0;
			if (n0 > 0)
				return S_FULL;
			b->need_bytes = 2 * lastlen;
			return S_BUFFER;
		}
		if (lastlen)
			entry_key(p, last, blob, lastlen, sc->tmp);
	}
	AX_POINT("bt.scan.leaf_read");
	if (!ax_guard_valid(g) || (last >= 0 && lastlen == 0))
		goto lost;
	if (last >= 0)
	{
		memcpy(b->lastkey, sc->tmp, lastlen);
		b->lastlen = lastlen;
	}
	sc->inside = true;
	if (r == S_GO && b->n == b->max)
		r = S_FULL;
	return r;

lost:
	/* what was taken from this leaf may be anything */
	b->n = n0;
	if (b->want_keys && n0)
		b->key_off[n0] = off0;
	return S_LOST;
}

/*
 * To the next leaf in the scan's direction.
 */
static step
next_leaf(scan *sc)
{
	bt_path    *t = &sc->t;
	const bool	back = sc->b->backward;
	bool		down = false;
	bt_page    *p = NULL;

	ax_guard_close(sc->cx, &t->f[t->n - 1].g, false);
	t->n--;
	while (t->n > 0)
	{
		bt_frame   *f = &t->f[t->n - 1];
		int			n;
		ax_status	x;

		n = bt_count(f->p);
		if (!down)
		{
			/* a place in a page that changed means nothing */
			if (!ax_guard_valid(&f->g))
				return S_LOST;
			if (back ? f->i == 0 : f->i >= n)
			{
				ax_guard_close(sc->cx, &f->g, false);
				t->n--;
				continue;
			}
			f->i += back ? -1 : 1;
			down = true;
		}
		else
			f->i = back ? n : 0;
		p = bt_ref(&bt_children(f->p)[f->i]);
		AX_POINT("bt.scan.advance");
		if (!ax_guard_valid(&f->g))
			return S_LOST;
		bt_prefetch(p);
		if (p->level == 0 && (back ? f->i > 0 : f->i < n))
		{
			/* the one after it comes in while this one is read */
			bt_page    *q = bt_ref(&bt_children(f->p)[f->i + (back ? -1 : 1)]);

			if (ax_guard_valid(&f->g))
				bt_prefetch(q);
		}
		x = ax_guard_open(sc->cx, &t->f[t->n].g, &p->word, t->pess);
		if (x != AX_OK)
			return x == AX_BUSY ? S_BUSY : S_LOST;
		t->f[t->n].p = p;
		t->f[t->n].i = 0;
		t->n++;
		if (!ax_guard_valid(&f->g))
			return S_LOST;
		if (p->level == 0)
			return S_GO;
	}
	return S_END;
}

/* One pass from sc->pos. */
static step
run(scan *sc)
{
	const bool	back = sc->b->backward;
	ax_status	x;
	step		r;

	/* an empty range at one end of all keys */
	if (sc->pos.len == 0 && sc->pos.after != back)
		return S_END;
	sc->inside = false;
	x = bt_descend(sc->cx, sc->s, &sc->t, sc->pos.key, sc->pos.len, sc->pos.after);
	if (x != AX_OK)
		return x == AX_BUSY ? S_BUSY : S_LOST;
	if (sc->t.n == 0)
	{
		bt_close(sc->cx, &sc->t, -1);
		return S_END;
	}
	do
	{
		r = do_leaf(sc);
		if (r == S_GO)
			r = next_leaf(sc);
	} while (r == S_GO);
	bt_close(sc->cx, &sc->t, -1);
	return r;
}

/* See ax.h, ax_scan. */
ax_status
bt_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	scan		sc;
	int			tries = 0;

	sc.cx = cx;
	sc.s = s;
	sc.b = b;
	sc.pos = b->backward ? b->hi : b->lo;
	sc.end = b->backward ? &b->lo : &b->hi;
	sc.room = b->lastkey_size / 2;
	sc.tmp = b->lastkey + sc.room;
	sc.t.all = true;
	b->n = 0;
	b->exhausted = false;
	b->need_bytes = 0;
	b->lastlen = 0;
	if (b->max == 0)
		return AX_OK;
	for (;;)
	{
		sc.t.pess = tries >= AX_MAX_RESTARTS;
		switch (run(&sc))
		{
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
				if (b->n)
					return AX_OK;
				ax_restarted(cx, s, tries++);
		}
	}
}
