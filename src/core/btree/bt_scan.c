/*
 * bt_scan.c
 *	  Look-ups and ordered batches of the B+-tree, in both directions.
 *
 * Each batch is read in one epoch.  A scan keeps the versions of the pages on
 * its path.  From the end of a leaf it goes to the next one through their
 * parent, which it validates first.  If a page on the path has changed, the
 * batch ends early, or the descent starts over from a key.  It never starts
 * from a remembered place.
 *
 * A key that is in the tree throughout is returned.  It leaves its page only
 * when the page and its parent change.  The scan validates the page after it
 * has read it, and the parent before it goes on there.
 *
 * src/core/btree/README.md: The B+-tree
 */
#include "bt_tree.h"
#include "core/base/ax_call.h"
#include "core/elide/ax_batch.h"

#define TID_MASK UINT64_C(0xFFFFFFFFFFFF)
#define AHEAD 4					/* leaves that a scan asks for at once, at most */

/*
 * The last six bytes of an entry that is not in a fixed leaf.  False: the page
 * changed (or is being).
 */
static bool
entry_tid_var(const bt_page *p, const ax_guard *g, int i, uint64_t *tid)
{
	uint32_t	slot = bt_ld(&bt_slots(p)[i]);
	uint32_t	len = slot >> 16;
	const uint8_t *end;
	uint32_t	rest;

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
	if (rest >= AX_TID_BYTES)
	{
		*tid = ax_tid_at(end);
		return true;
	}
	*tid = bt_ld(&bt_heads(p)[i]);
	for (uint32_t k = rest; k > 0; k--)
		*tid = *tid << 8 | ax_load1(end - k);
	*tid &= TID_MASK;
	return true;
}

/* The same of any. */
static inline bool
leaf_entry_tid(const bt_page *p, const ax_guard *g, int i, uint64_t *tid)
{
	if (ax_likely(p->tail != BT_VAR))
	{
		*tid = bt_last8(p, i) & TID_MASK;
		return true;
	}
	return entry_tid_var(p, g, i, tid);
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
 * bt_descend for a caller that wants the leaf and nothing else: optimistic, without the
 * path.  *leaf is NULL when the tree is empty.
 *
 * Latches: none.
 */
__attribute__((always_inline)) static inline ax_status
find_leaf(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, ax_guard *g,
		  bt_page **leaf)
{
	bt_page    *p = NULL;
	ax_status	x = bt_start(cx, s, g, &p, AX_READ);

	while (x == AX_OK && p)
	{
		ax_guard	up = *g;

		x = bt_enter(cx, &up, g, p, AX_READ);
		if (x != AX_OK || p->level == 0)
			break;
		p = bt_step(s, p, g, bt_child_inside(p, g, key, len, false), AX_READ);
		if (ax_unlikely(!p))
			return AX_STALE;
	}
	*leaf = p;
	return x;
}

/*
 * The same with its path; pess: with latches.
 *
 * Latches: none on entry; on AX_OK those of bt_descend().
 */
static __attribute__((noinline)) ax_status
find_path(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, bt_path *t, bool pess,
		  bt_page **leaf)
{
	ax_status	x;

	t->pess = pess;
	t->all = t->write = false;
	x = bt_descend(cx, s, t, key, len, false);
	*leaf = x == AX_OK && t->n > 0 ? t->f[t->n - 1].p : NULL;
	return x;
}

/*
 * One try to find a key.
 *
 * Latches: none on entry and on return; pessimistically takes those of a path.
 */
__attribute__((always_inline)) static inline ax_status
contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, const bool pess)
{
	bt_path		t;
	ax_guard	lone;
	ax_guard   *g = &lone;
	bt_page    *p;
	bool		same;
	ax_status	x = ax_likely(!pess) ? find_leaf(cx, s, key, len, g, &p) :
		find_path(cx, s, key, len, &t, true, &p);

	if (x != AX_OK)
		return x;
	x = AX_NOTFOUND;
	if (p)
	{
		bool		ok;

		if (ax_unlikely(pess))
			g = &t.f[t.n - 1].g;
		ok = bt_find(p, g, key + p->plen, len - p->plen, false, &same) >= 0;
		AX_POINT("bt.contains.leaf_read");
		if (!ok || !ax_guard_valid(g))
			x = AX_STALE;
		else if (same)
			x = AX_OK;
	}
	if (ax_unlikely(pess))
		bt_close(cx, &t, -1);
	return x;
}

static __attribute__((noinline, cold)) ax_status
contains_latched(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	return contains(cx, s, key, len, true);
}

ax_status
bt_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	int			tries = 0;
	ax_status	x;

	do
		x = ax_pessimistic(tries) ? contains_latched(cx, s, key, len) :
			contains(cx, s, key, len, false);
	while (ax_start_over(cx, s, x, &tries));
	return x;
}

/*
 * May keys that begin with the prefix follow in the leaves behind the one that
 * this path ends in?  Asked when such keys end the leaf.  A wrong "yes" costs a
 * scan.
 */
static bool
more_behind(bt_path *t, const uint8_t *prefix, uint32_t len)
{
	for (int k = t->n - 2; k >= 0; k--)
	{
		bt_frame   *f = &t->f[k];
		bool		last = f->i >= bt_count(f->p);
		bool		more = !last &&
			bt_child_inside(f->p, &f->g, prefix, len, true) != f->i;

		if ((t->pess && !f->g.held) || !ax_guard_valid(&f->g))
			return true;
		if (!last)
			return more;
	}
	return false;
}

/*
 * The TIDs of those entries of a leaf that are the prefix and a TID.  *last:
 * they reach to its end, and there may be others behind.  False: the page changed.
 */
static inline bool
leaf_tids(const bt_page *p, const ax_guard *g, const uint8_t *prefix, uint32_t len, ax_found *f,
		  bool *last)
{
	const uint8_t *k = prefix + p->plen;
	uint32_t	klen = len - p->plen;
	int			count = bt_count(p);
	bool		same;
	int			i = bt_find(p, g, k, klen, false, &same);
	uint64_t	h = bt_head_of(k, klen, false);
	bool		ok;

	for (ok = i >= 0; ok && i < count; i++)
	{
		uint32_t	el;
		int			b = bt_begins(p, g, i, k, klen, h, &el);

		/* then it is the prefix and a TID */
		if (b <= 0 || el != klen + AX_TID_BYTES)
		{
			ok = b >= 0;
			break;
		}
		if (f->n == f->max)
		{
			f->more = true;
			break;
		}
		ok = leaf_entry_tid(p, g, i, &f->tids[f->n++]);
	}
	*last = i >= count;
	return ok;
}

#define LEAF_END AX_CHANGED		/* the leaf's end was reached: look at the path, too */

/*
 * One try of a look-up; path: with the leaf's path, as it is with latches.
 *
 * Latches: none on entry and on return; pessimistically takes those of a path.
 */
__attribute__((always_inline)) static inline ax_status
look_up(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f,
		const bool path, bool pess)
{
	bt_path		t;
	ax_guard	lone;
	ax_guard   *g = &lone;
	bt_page    *p;
	ax_status	x;

	f->n = 0;
	f->more = false;
	x = ax_likely(!path) ? find_leaf(cx, s, prefix, len, g, &p) :
		find_path(cx, s, prefix, len, &t, pess, &p);
	if (ax_unlikely(x != AX_OK))
		return x;
	if (p)
	{
		bool		last;
		bool		ok;

		if (ax_unlikely(path))
			g = &t.f[t.n - 1].g;
		ok = leaf_tids(p, g, prefix, len, f, &last);
		AX_POINT("bt.lookup.leaf_read");
		if (ok && last)
		{
			if (!path)
				return LEAF_END;
			f->more = more_behind(&t, prefix, len);
		}
		if (!ok || !ax_guard_valid(g))
			x = AX_STALE;
	}
	if (ax_unlikely(pess))
		bt_close(cx, &t, -1);
	return x;
}

static __attribute__((noinline)) ax_status
look_up_path(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f,
			 bool pess)
{
	return look_up(cx, s, prefix, len, f, true, pess);
}

ax_status
bt_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f)
{
	int			tries = 0;
	bool		path = false;
	ax_status	x;

	do
	{
		x = ax_unlikely(path) || ax_pessimistic(tries) ?
			look_up_path(cx, s, prefix, len, f, ax_pessimistic(tries)) :
			look_up(cx, s, prefix, len, f, false, false);
		path = path || x == LEAF_END;
	} while (x == LEAF_END || ax_start_over(cx, s, x, &tries));

	/* on into the next leaves */
	if (x == AX_OK && f->more && f->n < f->max)
		return ax_lookup_scan(cx, s, prefix, len, f);
	return x;
}

/*
 * From the root to the leaves of keys.  Each takes a step and asks for the page
 * that comes next, and while that comes in the others take theirs.  On the way a lane
 * has the guard of what its page was read from, at the end that of the leaf.  One that
 * meets anything but a quiet tree ends there, with no page.
 *
 * Epoch: inside.
 * Latches: none.
 */
static void
go_down(ax_ctx *cx, ax_store *s, const ax_keys *keys, bt_frame *lanes)
{
	uint32_t	going = (1u << keys->n) - 1;
	ax_guard	g = {0};
	bt_page    *root;

	if (ax_pessimistic(0) || bt_start(cx, s, &g, &root, AX_TRY) != AX_OK)
		root = NULL;
	if (!root)
		going = 0;
	for (uint32_t i = 0; i < keys->n; i++)
	{
		lanes[i].p = root;
		lanes[i].g = g;
	}
	while (going)
		for (uint32_t left = going; left; left &= left - 1)
		{
			uint32_t	i = (uint32_t) __builtin_ctz(left);
			bt_frame   *f = &lanes[i];
			bt_page    *next = NULL;
			ax_guard	up = f->g;

			if (bt_enter(cx, &up, &f->g, f->p, AX_TRY) == AX_OK)
			{
				if (f->p->level == 0)
				{
					going &= ~(1u << i);
					continue;
				}
				next = bt_step(s, f->p, &f->g,
							   bt_child_inside(f->p, &f->g, keys->p[i], ax_key_len(keys, i), false),
							   AX_TRY);
			}
			f->p = next;
			if (ax_unlikely(next == NULL))
				going &= ~(1u << i);
		}
}

/*
 * The inserts that follow go by themselves, and rely on nothing
 * that was read here.
 *
 * Epoch: inside.
 * Latches: none.
 */
void
bt_look_ahead(ax_ctx *cx, ax_store *s, const ax_keys *keys)
{
	bt_frame	lanes[AX_GROUP];

	go_down(cx, s, keys, lanes);
	ax_map_unshare_all();
}

/*
 * When all have got to their leaves, these are
 * read in the keys' order.  A look-up that did not get there, or whose leaf
 * changed, is done again by itself.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; a look-up that is done again takes its own.
 */
ax_status
bt_lookup_many(ax_ctx *cx, ax_store *s, const ax_keys *keys, ax_found *f, uint32_t *counts,
			   uint32_t *done)
{
	bt_frame	lanes[AX_GROUP];

	f->n = 0;
	*done = 0;
	go_down(cx, s, keys, lanes);
	for (uint32_t i = 0; i < keys->n; i++)
	{
		const bt_frame *leaf = &lanes[i];
		const uint8_t *key = keys->p[i];
		uint32_t	len = ax_key_len(keys, i);
		ax_found	one = {.tids = f->tids + f->n, .max = f->max - f->n};
		bool		last = true;

		if (ax_likely(leaf->p != NULL && ax_guard_valid(&leaf->g)))
		{
			if (!leaf_tids(leaf->p, &leaf->g, key, len, &one, &last))
				last = true;
			AX_POINT("bt.lookup.leaf_read");
		}
		if (ax_unlikely(last || !ax_guard_valid(&leaf->g)))
		{
			ax_status	x = bt_lookup(cx, s, key, len, &one);

			if (x != AX_OK)
				return x;
		}
		if (one.more)
			break;
		f->n += counts[i] = one.n;
		++*done;
	}
	ax_map_unshare_all();
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
 * Entries [from, to) of a fixed leaf, in the batch's direction, as many as there
 * is room for without a further thought.  Returns how many that were; the last
 * one's place goes to *last, the end of the keys to *off.
 */
static int
do_fixed(scan *sc, const bt_page *p, int from, int to, uint32_t *off, int *last)
{
	ax_batch   *b = sc->b;
	const int	step = b->backward ? -1 : 1;
	const uint32_t plen = p->plen;
	const uint32_t tail = p->tail;
	const uint32_t len = plen + 8 + tail;
	int			i = b->backward ? to - 1 : from;
	int			m = to - from;
	uint64_t   *tids = b->tids + b->n;

	if (tail == BT_VAR || m <= 0)
		return 0;
	if ((uint32_t) m > b->max - b->n)
		m = (int) (b->max - b->n);
	if (b->want_keys)
	{
		uint8_t    *out = b->keybuf + *off;
		uint32_t	fit = (b->keybuf_size - *off) / len;

		if (len > sc->room || tail > 8)
			return 0;
		if ((uint32_t) m > fit)
			m = (int) fit;
		for (int k = 0; k < m; k++, i += step)
		{
			uint64_t	h = __builtin_bswap64(bt_ld(&bt_heads(p)[i]));
			uint64_t	end = bt_last8(p, i);
			uint64_t	be = __builtin_bswap64(end);

			ax_copy_few(out, bt_prefix(p), plen);
			memcpy(out + plen, &h, 8);
			memcpy(out + len - 8, &be, 8);
			tids[k] = end & TID_MASK;
			b->key_off[b->n + (uint32_t) k] = *off + (uint32_t) k * len;
			out += len;
		}
		*off += (uint32_t) m * len;
		b->key_off[b->n + (uint32_t) m] = *off;
	}
	else
		for (int k = 0; k < m; k++, i += step)
			tids[k] = bt_last8(p, i) & TID_MASK;
	if (m > 0)
		*last = i - step;
	b->n += (uint32_t) m;
	return m;
}

/*
 * The entries of the leaf on top of the path that the scan wants: [*from, *to).
 * False: the page changed.
 */
static inline bool
find_entries(const scan *sc, const bt_page *p, const ax_guard *g, int n, int *from, int *to)
{
	const bool	back = sc->b->backward;
	const ax_bound *end = sc->end;
	bool		same;
	int			stop = bt_find_bound(p, g, end->key, end->len, end->after, &same);
	int			start = sc->inside ? (back ? n : 0) :
		bt_find_bound(p, g, sc->pos.key, sc->pos.len, sc->pos.after, &same);

	*from = back ? stop : start;
	*to = back ? start : stop;
	return start >= 0 && stop >= 0;
}

/*
 * Of entries [from, to) those that there is room for, in the batch's direction.
 * *last: the last one's place.  Racy: the caller validates.
 */
static inline ax_step
take_entries(scan *sc, const bt_page *p, const ax_guard *g, int from, int to, int *last)
{
	ax_batch   *b = sc->b;
	uint32_t	off = b->want_keys && b->n ? b->key_off[b->n] : 0;

	for (int k = do_fixed(sc, p, from, to, &off, last); k < to - from; k++)
	{
		int			i = b->backward ? to - 1 - k : from + k;
		uint64_t	tid;

		if (b->n == b->max)
			return AX_SCAN_FULL;
		if (!leaf_entry_tid(p, g, i, &tid))
			return AX_SCAN_LOST;
		if (b->want_keys)
		{
			bt_blob    *blob;
			uint32_t	len = entry_len(p, g, i, &blob);

			if (len == 0)
				return AX_SCAN_LOST;
			if (len > b->keybuf_size - off || len > sc->room)
			{
				b->need_bytes = 2 * len;
				return b->n ? AX_SCAN_FULL : AX_SCAN_BUFFER;
			}
			entry_key(p, i, blob, len, b->keybuf + off);
			b->key_off[b->n] = off;
			off += len;
			b->key_off[b->n + 1] = off;
		}
		b->tids[b->n++] = tid;
		*last = i;
	}
	return AX_SCAN_GO;
}

/* The last entry's key, to tmp, where there is room.  Racy, too. */
static inline ax_step
take_last(scan *sc, const bt_page *p, const ax_guard *g, int last, uint32_t *len)
{
	bt_blob    *blob;

	*len = entry_len(p, g, last, &blob);
	if (*len == 0)
		return AX_SCAN_LOST;
	if (*len > sc->room)
	{
		sc->b->need_bytes = 2 * *len;
		return AX_SCAN_BUFFER;
	}
	entry_key(p, last, blob, *len, sc->tmp);
	return AX_SCAN_GO;
}

/*
 * The leaf on top of the path.
 */
static ax_step
do_leaf(scan *sc)
{
	ax_batch   *b = sc->b;
	const bt_frame *f = &sc->t.f[sc->t.n - 1];
	const bt_page *p = f->p;
	const int	n = bt_count(p);
	const uint32_t n0 = b->n;
	const uint32_t off0 = b->want_keys && n0 ? b->key_off[n0] : 0;
	int			from,
				to,
				last = -1;
	uint32_t	lastlen = 0;
	ax_step		r,
				kept = AX_SCAN_GO;

	if (!find_entries(sc, p, &f->g, n, &from, &to))
		return AX_SCAN_LOST;
	AX_POINT("bt.scan.leaf_found");
	r = take_entries(sc, p, &f->g, from, to, &last);
	if (r != AX_SCAN_LOST && last >= 0)
		kept = take_last(sc, p, &f->g, last, &lastlen);
	AX_POINT("bt.scan.leaf_read");
	if (r == AX_SCAN_LOST || kept == AX_SCAN_LOST || !ax_guard_valid(&f->g))
		r = kept = AX_SCAN_LOST;
	if (kept != AX_SCAN_GO)
	{
		/* what was taken from this leaf may be anything, or cannot be gone on from */
		b->n = n0;
		if (b->want_keys && n0)
			b->key_off[n0] = off0;
		return kept == AX_SCAN_BUFFER && n0 > 0 ? AX_SCAN_FULL : kept;
	}
	if (last >= 0)
	{
		memcpy(b->lastkey, sc->tmp, lastlen);
		b->lastlen = lastlen;
	}
	sc->inside = true;
	if (r == AX_SCAN_GO && (b->backward ? from > 0 : to < n))
		r = AX_SCAN_END;
	if (r == AX_SCAN_GO && b->n == b->max)
		r = AX_SCAN_FULL;
	return r;
}

/*
 * How many leaves ahead of the one being read are asked for.
 */
static inline int
leaves_ahead(const scan *sc)
{
	uint64_t	bytes = (uint64_t) (sc->b->max - sc->b->n) * 20;
	uint64_t	d = (bytes + sc->s->page_size / 2) / sc->s->page_size;

	return d < AHEAD ? (int) d : AHEAD;
}

/*
 * Ask for leaves: the from-th to the to-th behind the child of f that the path
 * takes.  A reference that is not valid does no harm: nothing is read.
 */
static inline void
look_ahead(const scan *sc, const bt_frame *f, int from, int to)
{
	int			n = bt_count(f->p);

	for (int d = from; d <= to; d++)
	{
		int			i = f->i + (sc->b->backward ? -d : d);

		if (i < 0 || i > n)
			break;
		bt_prefetch(bt_ref(&bt_children(f->p)[i]), sc->s->page_size);
	}
}

/*
 * To the next leaf in the scan's direction.
 *
 * Epoch: inside.
 * Latches: none; pessimistically those of the path, and of the new leaf on
 * AX_SCAN_GO.
 */
static ax_step
next_leaf(scan *sc)
{
	bt_path    *t = &sc->t;
	const bool	back = sc->b->backward;
	bool		down = false;
	bool		fresh = false;
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
				return AX_SCAN_LOST;
			if (back ? f->i == 0 : f->i >= n)
			{
				ax_guard_close(sc->cx, &f->g, false);
				t->n--;
				continue;
			}
			f->i += back ? -1 : 1;
			down = true;
			fresh = f->p->level > 1;
		}
		else
			f->i = back ? n : 0;
		p = bt_ref(&bt_children(f->p)[f->i]);
		AX_POINT("bt.scan.advance");
		if (!ax_guard_valid(&f->g))
			return AX_SCAN_LOST;
		if (f->p->level == 1)
		{
			int			d = leaves_ahead(sc);

			/* a page above that is new has asked for none yet */
			look_ahead(sc, f, fresh ? 0 : d, d);
		}
		else
			bt_prefetch(p, bt_page_size(sc->s, f->p->level - 1));
		AX_POINT("bt.scan.child_read");
		x = ax_guard_open(sc->cx, &t->f[t->n].g, &p->word, t->pess);
		if (x != AX_OK)
			return x == AX_BUSY ? AX_SCAN_BUSY : AX_SCAN_LOST;
		t->f[t->n].p = p;
		t->f[t->n].i = 0;
		t->n++;
		if (!ax_guard_valid(&f->g))
			return AX_SCAN_LOST;
		if (p->level == 0)
			return AX_SCAN_GO;
	}
	return AX_SCAN_END;
}

/*
 * One pass from sc->pos.
 *
 * Latches: none on entry and on return; pessimistically takes those of the path.
 */
static ax_step
pass(void *scanning, bool pess)
{
	scan	   *sc = scanning;
	const bool	back = sc->b->backward;
	ax_status	x;
	ax_step		r;

	sc->t.pess = pess;

	/* an empty range at one end of all keys */
	if (sc->pos.len == 0 && sc->pos.after != back)
		return AX_SCAN_END;
	sc->inside = false;
	x = bt_descend(sc->cx, sc->s, &sc->t, bt_some_key(sc->pos.key, sc->pos.len), sc->pos.len,
				   sc->pos.after);
	if (x != AX_OK)
		return x == AX_BUSY ? AX_SCAN_BUSY : AX_SCAN_LOST;
	if (sc->t.n == 0)
	{
		bt_close(sc->cx, &sc->t, -1);
		return AX_SCAN_END;
	}
	if (sc->t.n > 1)
		look_ahead(sc, &sc->t.f[sc->t.n - 2], 1, leaves_ahead(sc));
	do
	{
		r = do_leaf(sc);
		if (r == AX_SCAN_GO)
			r = next_leaf(sc);
	} while (r == AX_SCAN_GO);
	bt_close(sc->cx, &sc->t, -1);
	return r;
}

ax_status
bt_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	scan		sc;

	sc.cx = cx;
	sc.s = s;
	sc.b = b;
	sc.room = b->lastkey_size / 2;
	sc.tmp = b->lastkey + sc.room;
	sc.t.all = true;
	sc.t.write = false;
	return ax_batch_begin(b, &sc.pos, &sc.end) ? ax_batch_fill(cx, s, b, pass, &sc) : AX_OK;
}
