/*
 * bt_tree.c
 *	  The B+-tree under optimistic latch coupling: descent, insert, split.
 *
 * After Leis, Haubenschild, Neumann, "Optimistic Lock Coupling" (Data
 * Engineering Bulletin 2019).  An insert latches its leaf only.  A page that has no
 * place is split, or copied into a layout that has, with its parent latched.  Then
 * the operation starts over.  A split latches the pointer to a page and the page
 * itself, top-down, at the versions under which it decided.  So a reader that came
 * through the one or stands on the other notices.  Keys move to the right only, or
 * into a copy.
 *
 * src/core/btree/README.md: The B+-tree
 */
#include "bt_tree.h"

#define MORE AX_BUFFER			/* something was done: start over */
#define ABOVE AX_CHANGED		/* there is no room in the parent */

/*
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

		AX_ENSURE(ax_body(cx), t->n < BT_LEVELS);
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
		f->i = bt_child_inside(p, &f->g, key, len, after);
		p = bt_step(s, p, &f->g, f->i, mode);
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
	/* memory before the first latch: what any change retires but large ones */
	ax_status	x = ax_retire_reserve(cx, 4);

	return x == AX_OK ? descend(cx, s, t, key, len, after, AX_PESSIMISTIC) : x;
}

ax_status
bt_descend(ax_ctx *cx, ax_store *s, bt_path *t, const uint8_t *key, uint32_t len, bool after)
{
	return ax_unlikely(t->pess) ? descend_latched(cx, s, t, key, len, after) :
		descend(cx, s, t, key, len, after, AX_OPTIMISTIC);
}

/*
 * The ends of a range have its prefix in common.  Where an end is not known, all keys of
 * the parent begin with it; "within" frame k's page, its prefix is as good.
 */
const uint8_t *
bt_range_prefix(bt_path *t, int k, const bt_view *lo, const bt_view *hi, bool within,
				uint8_t *buf, uint32_t *plen)
{
	const bt_page *p = within ? t->f[k].p : k > 0 ? t->f[k - 1].p : NULL;

	*plen = p ? p->plen : 0;
	if (lo && hi)
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

void
bt_publish(ax_store *s, bt_path *t, int k, bt_page *p)
{
	_Atomic uint64_t *slot = k > 0 ? &bt_children(t->f[k - 1].p)[t->f[k - 1].i] : &s->root;

	atomic_store_explicit(slot, (uint64_t) (uintptr_t) p, memory_order_release);
}

/* ---- splitting ---- */

/*
 * The first BT_MAX_PLEN bytes of separator i of a page that may be changing.  False:
 * it did change.  A key that does not come from a blob is as good as the guard.
 */
static bool
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
			return false;
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
	return true;
}

void
bt_drop(ax_ctx *cx, ax_store *s, int level, bt_page *p, bool built)
{
	if (p && built)
		bt_unbuild(cx, s, p);
	else
		bt_unalloc(cx, s, level, p);
}

bool
bt_make(ax_ctx *cx, ax_store *s, bt_change *ch, int level, bool may_reserve)
{
	bt_page    *p = bt_alloc(cx, s, level, may_reserve);

	if (!p)
		return false;
	ch->made[ch->nmade].p = p;
	ch->made[ch->nmade].level = level;
	ch->made[ch->nmade++].built = false;
	return true;
}

void
bt_forget(ax_ctx *cx, ax_store *s, bt_change *ch)
{
	for (int i = 0; i < ch->nmade; i++)
		bt_drop(cx, s, ch->made[i].level, ch->made[i].p, ch->made[i].built);
	if (ch->made_blob)
		bt_blob_free(cx, s, ch->made_blob);
}

/*
 * The change does not come about.  The latches go first, since no memory is given
 * back with one.  Returns x.
 *
 * Epoch: inside.
 * Latches: has some of the plan and of the path; none of them on return.
 */
ax_status
bt_give_up(ax_ctx *cx, ax_store *s, bt_change ch, ax_status x)
{
	for (int i = 0; i < ch.n; i++)
		ax_guard_close(cx, ch.at[i].g, false);
	bt_close(cx, ch.t, -1);
	bt_forget(cx, s, &ch);
	return x;
}

/*
 * A page on its way to more room: its entries, their range, and the pages that are
 * made of it.  About a hundred kilobytes.
 */
typedef struct room
{
	ax_ctx	   *cx;
	ax_store   *s;
	bt_change	ch;				/* made: left, right, and above these two a root */
	bt_path    *t;
	int			k;				/* the page's frame */
	const bt_view *in;			/* a key that goes in, too, NULL: none */
	int			at;				/* its place */
	int			level;
	bool		in_place;		/* the page stays, as the left half */
	const bt_view *lo,			/* the ends of its range, as the page above has them; */
			   *hi;				/* NULL: not known, or none */
	bt_view		ends[2];
	bt_view		sep;			/* between the halves */
	int			n;
	bt_view		v[BT_MAX_CAP + 2];
	bt_page    *child[BT_MAX_CAP + 2];
	uint8_t		sepbuf[16384 / 4];
	uint8_t		lobuf[BT_MAX_PLEN],
				hibuf[BT_MAX_PLEN];
	_Alignas(AX_LINE) uint8_t copy[BT_MAX_SIZE];
} room;

enum
{
	LEFT, RIGHT, ABOVE_BOTH
};

/* Make page "which" of n entries from "from" on, of the range between lo and hi. */
static void
make_split_page(room *r, int which, int from, int n, const bt_view *lo, const bt_view *hi)
{
	uint8_t		buf[BT_MAX_PLEN];
	bt_contents of = {.level = r->level,.n = n,.v = r->v + from,.child = r->child + from};

	of.prefix = bt_range_prefix(r->t, r->k, lo, hi, true, buf, &of.plen);
	/* slots were left, but no bytes for a long separator */
	if (r->level > 0 && r->n < r->t->f[r->k].p->cap)
		of.spare = bt_max_inline(r->s->page_size);
	bt_build(r->cx, r->s, r->ch.made[which].p, &of);
	r->ch.made[which].built = true;
}

/* Reads the page and its range into r, with the new key.  False: the page changed. */
static bool
read_split_page(room *r)
{
	bt_frame   *f = &r->t->f[r->k];
	const bt_page *from = f->p;
	int			n,
				m = 0;

	/* under a coarse latch, nobody changes it */
	if (!f->g.held && r->s->sync != AX_SYNC_COARSE)
	{
		/* (the guard may have been latched, and closed for the memory's sake) */
		if (!ax_guard_valid(&f->g))
			return false;
		ax_copy_out(r->copy, (const uint8_t *) from, from->size);
		from = (const bt_page *) (const void *) r->copy;
	}
	AX_POINT("bt.split.copied");
	r->lo = r->hi = NULL;
	if (r->k > 0)
	{
		bt_frame   *up = &r->t->f[r->k - 1];

		if (up->i > 0 && copy_separator(up->p, &up->g, up->i - 1, r->lobuf, &r->ends[0]))
			r->lo = &r->ends[0];
		if (up->i < bt_count(up->p) && copy_separator(up->p, &up->g, up->i, r->hibuf, &r->ends[1]))
			r->hi = &r->ends[1];
	}
	if (!ax_guard_valid(&f->g) || !ax_guard_valid(bt_above(r->t, r->k)))
		return false;

	n = bt_count(from);
	for (int i = 0; i < n; i++)
	{
		if (r->in && i == r->at)
			r->v[m++] = *r->in;
		bt_get(from, i, &r->v[m++]);
	}
	if (r->in && r->at == n)
		r->v[m++] = *r->in;
	for (int i = 0; r->level > 0 && i <= n; i++)
		r->child[i] = bt_ref(&bt_children(from)[i]);
	r->n = m;
	return true;
}

/*
 * Is there another layout of which some is free?  An inner page must have room for
 * any separator afterwards.  Then LEFT has it.
 */
static bool
lay_out_anew(room *r)
{
	ax_ctx	   *cx = r->cx;
	ax_store   *s = r->s;
	bt_page    *a = r->ch.made[LEFT].p;
	const uint32_t size = r->t->f[r->k].p->size;
	uint8_t		buf[BT_MAX_PLEN];
	uint32_t	plen;

	(void) bt_range_prefix(r->t, r->k, r->lo, r->hi, true, buf, &plen);
	if (!bt_fits(size, r->level > 0, r->v, r->n, plen))
		return false;
	make_split_page(r, LEFT, 0, r->n, r->lo, r->hi);
	if (r->n + 1 + a->cap / 8 <= a->cap &&
		(a->tail != BT_VAR || bt_ld(&a->heap) - bt_arrays_end(a) >=
		 (r->level > 0 ? bt_max_inline(s->page_size) : size / 8)))
		return true;
	/* not a page after all */
	if (r->level > 0)
		AX_COUNT(cx, s, n4, -1);
	else
		AX_COUNT(cx, s, leaves, -1);
	r->ch.made[LEFT].built = false;
	return false;
}

/*
 * Where to cut: rising keys leave the left page full; else in the middle of the bytes,
 * as near as both halves allow.
 */
static int
choose_cut(const room *r)
{
	const uint32_t plen = r->t->f[r->k].p->plen;
	const bt_view *v = r->v;
	uint64_t	total = 0,
				sum = 0;
	int			n = r->n,
				m;

	if (r->level == 0 && r->at == n - 1)
		return n - 1;
	if (r->level > 0 && r->t->f[r->k].i == n && n > 3)
		return n - 2;
	/* bytes as they will be in the page */
	for (int i = 0; i < n; i++)
		total += v[i].blob ? 24 : bt_len(&v[i]) - plen + 12;
	for (m = 0; m < n - 1 && sum * 2 < total; m++)
		sum += v[m].blob ? 24 : bt_len(&v[m]) - plen + 12;
	if (m < 1)
		m = 1;
	return r->level > 0 && m > n - 1 ? n - 1 : m;
}

/*
 * Do both halves of a leaf fit?  Keys of one length have no slots, and beside a key of
 * another each takes four bytes more.  In a small page the long keys may all be in one
 * half.  So there may be no cut at which both fit.  A half's prefix is the page's or
 * longer, which saves at least what it takes.
 */
static bool
halves_fit(const room *r, int m)
{
	const bt_page *x = r->t->f[r->k].p;

	return bt_fits(x->size, false, r->v, m, x->plen) &&
		bt_fits(x->size, false, r->v + m, r->n - m, x->plen);
}

/* The page is split without the new key.  It is at home in a half then, or splits that. */
static void
split_without_key(room *r)
{
	memmove(&r->v[r->at], &r->v[r->at + 1], (size_t) (r->n - r->at - 1) * sizeof(bt_view));
	r->n--;
	r->in = NULL;
	r->at = -1;
}

/* Make the halves, cut before m, and what is above them if that is new.  False: no memory. */
static bool
make_halves(room *r, int m)
{
	bt_page    *x = r->t->f[r->k].p;
	int			right = m;

	if (r->level > 0)
	{
		r->sep = r->v[m];		/* goes up */
		right++;
	}
	else if (!bt_separator(r->cx, r->s, &r->v[m - 1], &r->v[m], r->sepbuf, &r->sep))
		return false;
	else
		r->ch.made_blob = r->sep.blob;
	r->in_place = r->level == 0 && r->at >= m && (x->tail != BT_VAR || m == r->n - 1);
	make_split_page(r, RIGHT, right, r->n - right, &r->sep, r->hi);
	if (!r->in_place)
		make_split_page(r, LEFT, 0, m, r->lo, &r->sep);
	if (r->k == 0)
	{
		bt_page    *pair[2] = {r->in_place ? x : r->ch.made[LEFT].p, r->ch.made[RIGHT].p};

		bt_build(r->cx, r->s, r->ch.made[ABOVE_BOTH].p,
				 &(bt_contents) {.level = r->level + 1,.n = 1,.v = &r->sep,.child = pair});
		r->ch.made[ABOVE_BOTH].built = true;
	}
	return true;
}

/*
 * Latch, and put what was made in the page's place: LEFT alone, if it is a copy, or both
 * halves.  AX_OK, AX_STALE, AX_BUSY, or ABOVE: the page above has no room.
 *
 * Latches: on entry those of the path; none on return but with ABOVE.
 */
static ax_status
publish_room(room *r, bool copied, int m)
{
	ax_ctx	   *cx = r->cx;
	ax_store   *s = r->s;
	bt_path    *t = r->t;
	bt_frame   *f = &t->f[r->k];
	bt_page    *a = r->ch.made[LEFT].p,
			   *b = r->ch.made[RIGHT].p;
	ax_status	x;

	bt_plan(&r->ch, bt_above(t, r->k), NULL);
	bt_plan(&r->ch, &f->g, r->in_place ? NULL : f->p);
	AX_POINT("bt.split.before_lock");
	x = bt_begin(cx, s, &r->ch, NULL);
	if (x != AX_OK)
		return x;
	/* a blob that goes up belongs to the page above from now on */
	if (!copied && r->k > 0 && !bt_put(t->f[r->k - 1].p, t->f[r->k - 1].i, &r->sep, b))
	{
		/* unchanged, so the versions are still those of the path */
		ax_guard_close(cx, &f->g, false);
		if (!t->pess)
			ax_guard_close(cx, bt_above(t, r->k), false);
		bt_forget(cx, s, &r->ch);
		return ABOVE;
	}
	if (!copied && r->k == 0)
	{
		bt_publish(s, t, 0, r->ch.made[ABOVE_BOTH].p);
		atomic_store_explicit(&s->height, (uint32_t) r->level + 2, memory_order_relaxed);
	}
	else if (!r->in_place)
		bt_publish(s, t, r->k, a);
	AX_POINT("bt.split.published");
	if (r->in_place)
		bt_st(&f->p->n, (uint16_t) m);
	bt_finish(cx, s, &r->ch, NULL);
	bt_close(cx, t, -1);
	/* of what was made, some was not needed */
	if (r->in_place)
		bt_unalloc(cx, s, r->level, a);
	if (copied)
	{
		bt_unalloc(cx, s, r->level, b);
		if (r->k == 0)
			bt_unalloc(cx, s, r->level + 1, r->ch.made[ABOVE_BOTH].p);
	}
	return AX_OK;
}

/*
 * Make room in the page of frame k, for the key "in" at place "at" (leaf), or
 * for some separator (in NULL).  Copy it into a layout that has room, or split
 * it.  A leaf gets the key on the way, if there is a cut for it.  AX_OK: the
 * key is in.  MORE: start over.  AX_STALE: something changed.  AX_NOMEM.
 * Nothing is held afterwards.
 * ABOVE: make room in the parent first, with this path; nothing was done.
 *
 * The new pages are made before anything is latched, from a copy of the page.
 * The latches, taken at the versions of the path, then show that it was a true
 * one.  So they are held for the parent's new entry only, and a transaction in
 * their place is small.
 *
 * Latches: on entry those of the path; none on return but with ABOVE.
 */
static ax_status
make_room_at(ax_ctx *cx, ax_store *s, bt_path *t, int k, const bt_view *in, int at)
{
	room		r;
	bool		copied;
	int			m = 0;
	ax_status	x;

	if (t->pess && !t->all && k + 1 < t->n)
	{
		/* what is above is latched no longer */
		bt_close(cx, t, -1);
		t->all = true;
		return MORE;
	}
	r.cx = cx;
	r.s = s;
	r.ch = (bt_change) {.site = AX_SITE_SPLIT, .t = t};
	r.t = t;
	r.k = k;
	r.in = in;
	r.at = at;
	r.level = t->f[k].p->level;
	r.in_place = false;
	if (!bt_make(cx, s, &r.ch, r.level, false) || !bt_make(cx, s, &r.ch, r.level, false) ||
		(k == 0 && !bt_make(cx, s, &r.ch, r.level + 1, false)))
		return bt_give_up(cx, s, r.ch, AX_NOMEM);
	if (!read_split_page(&r))
		return bt_give_up(cx, s, r.ch, AX_STALE);
	copied = lay_out_anew(&r);
	if (!copied)
	{
		m = choose_cut(&r);
		if (in && !halves_fit(&r, m))
		{
			split_without_key(&r);
			m = choose_cut(&r);
		}
		if (!make_halves(&r, m))
			return bt_give_up(cx, s, r.ch, AX_NOMEM);
	}
	x = publish_room(&r, copied, m);
	return x != AX_OK ? x : r.in ? AX_OK : MORE;
}

/*
 * Make room in the leaf at the end of the path, or in the first page above it that
 * has some.  A loop: make_room_at() takes a hundred kilobytes of stack.
 */
static ax_status
make_leaf_room(ax_ctx *cx, ax_store *s, bt_path *t, const bt_view *in, int at)
{
	int			k = t->n - 1;
	ax_status	x = make_room_at(cx, s, t, k, in, at);

	while (x == ABOVE)
		x = make_room_at(cx, s, t, --k, NULL, 0);
	return x;
}

/* ---- insert ---- */

/*
 * The first key of all.
 *
 * Latches: on entry, pessimistically, that of the root's word; none on return.
 */
static ax_status
insert_first(ax_ctx *cx, ax_store *s, bt_path *t, const uint8_t *key, uint32_t len)
{
	bt_change	ch = {.site = AX_SITE_NODE_INSERT, .t = t};
	bt_blob    *blob = NULL;
	bt_view		v;
	ax_status	x;

	if (len > bt_max_inline(s->page_size) && (blob = bt_blob_new(cx, s, key, len)) == NULL)
		return bt_give_up(cx, s, ch, AX_NOMEM);
	ch.made_blob = blob;
	if (!bt_make(cx, s, &ch, 0, false))
		return bt_give_up(cx, s, ch, AX_NOMEM);
	bt_key_view(key, len, blob, &v);
	bt_build(cx, s, ch.made[0].p, &(bt_contents) {.n = 1,.v = &v});
	ch.made[0].built = true;
	bt_plan(&ch, &t->root, NULL);
	AX_POINT("bt.first.before_lock");
	x = bt_begin(cx, s, &ch, NULL);
	if (x != AX_OK)
		return x;
	bt_publish(s, t, 0, ch.made[0].p);
	atomic_store_explicit(&s->height, 1, memory_order_relaxed);
	bt_finish(cx, s, &ch, NULL);
	return AX_OK;
}

/* Up to where keys belong to a leaf. */
typedef struct limit
{
	bool		known;
	bt_view		v;
	uint8_t		buf[16384 / 4 + BT_MAX_PLEN];
} limit;

/*
 * The limit is the separator behind the lowest page on the path that has one.
 * AX_NOTFOUND: not known, and no matter.  AX_STALE.
 */
static ax_status
find_limit(ax_store *s, bt_path *t, limit *l)
{
	l->known = false;
	for (int k = t->n - 2; k >= 0 && !l->known; k--)
	{
		bt_frame   *up = &t->f[k];
		bool		blob = false;

		if (up->i < bt_count(up->p))
		{
			uint32_t	slot = bt_ld(&bt_slots(up->p)[up->i]);
			uint32_t	sl = slot >> 16;

			l->known = true;
			blob = sl > bt_max_inline(s->page_size);	/* not worth it */
			if (!blob)
			{
				uint64_t	h = __builtin_bswap64(bt_ld(&bt_heads(up->p)[up->i]));

				memcpy(l->buf, bt_prefix(up->p), up->p->plen);
				memcpy(l->buf + up->p->plen, &h, sl < 8 ? sl : 8);
				if (sl > 8)
					ax_copy_out(l->buf + up->p->plen + 8,
								bt_bytes(up->p, slot & 0xFFFF, sl - 8), sl - 8);
				bt_key_view(l->buf, up->p->plen + sl, NULL, &l->v);
			}
		}
		if (t->pess && !up->g.held)
			return AX_NOTFOUND; /* let go already */
		if (!ax_guard_valid(&up->g))
			return AX_STALE;
		if (blob)
			return AX_NOTFOUND;
	}
	return AX_OK;
}

/* Put in the keys that follow the first into its leaf, which is latched: as many as fit. */
static void
insert_more(ax_store *s, bt_page *p, const limit *l, const ax_keys *keys, uint64_t *done,
			uint64_t *added)
{
	while (*done < keys->n)
	{
		const uint8_t *k = keys->p[*done];
		uint32_t	kl = ax_key_len(keys, *done);
		bool		same;
		bt_view		v;
		int			i;

		if (kl > bt_max_inline(s->page_size))
			break;
		bt_key_view(k, kl, NULL, &v);
		if (l->known)
		{
			uint32_t	hl = bt_len(&l->v);
			int			c = memcmp(k, l->buf, kl < hl ? kl : hl);

			if (c > 0 || (c == 0 && kl >= hl))
				break;
		}
		i = bt_find(p, NULL, k + p->plen, kl - p->plen, false, &same);
		if (!same)
		{
			if (!bt_put(p, i, &v, NULL))
				break;
			++*added;
		}
		++*done;
	}
}

/*
 * The path ends where nothing is to be done, if the leaf was still as it was read.
 *
 * Latches: none on entry and on return.
 */
static ax_status
leave_unchanged(ax_ctx *cx, bt_path *t, bool usable, uint64_t *done)
{
	bool		ok = usable && ax_guard_valid(&t->f[t->n - 1].g);

	bt_close(cx, t, -1);
	if (!ok)
		return AX_STALE;
	*done = 1;
	return AX_OK;
}

/*
 * One try with rising keys, of which the first decides on the leaf: as many go in as
 * belong there and fit.
 *
 * Latches: none on entry and on return.
 */
static ax_status
try_insert_keys(ax_ctx *cx, ax_store *s, bt_path *t, const ax_keys *keys, uint64_t *done,
				uint64_t *added)
{
	const uint8_t *key = keys->p[0];
	uint32_t	klen = ax_key_len(keys, 0);
	bt_change	ch = {.site = AX_SITE_LEAF_INSERT, .t = t};
	bool		one = keys->n == 1;
	bt_frame   *f;
	bt_view		v;
	bool		same;
	limit		l;
	int			i;
	ax_status	x = bt_descend(cx, s, t, key, klen, false);

	if (x != AX_OK)
		return x;
	if (t->n == 0)
	{
		x = insert_first(cx, s, t, key, klen);
		if (x == AX_OK)
			*done = *added = 1;
		return x;
	}
	f = &t->f[t->n - 1];
	i = bt_find(f->p, &f->g, key + f->p->plen, klen - f->p->plen, false, &same);
	AX_POINT("bt.leaf_read");
	if (i < 0 || same)
		return leave_unchanged(cx, t, i >= 0, done);
	if (!one)
	{
		x = find_limit(s, t, &l);
		if (x == AX_STALE)
		{
			bt_close(cx, t, -1);
			return x;
		}
		one = x != AX_OK;
	}
	if (klen > bt_max_inline(s->page_size))
	{
		one = true;
		if (ax_guard_shared(&f->g) && !t->pess)
			ax_guard_close(cx, &f->g, false);	/* no latch while memory is taken */
		ch.made_blob = bt_blob_new(cx, s, key, klen);
		if (!ch.made_blob)
			return bt_give_up(cx, s, ch, AX_NOMEM);
	}
	bt_key_view(key, klen, ch.made_blob, &v);
	bt_plan(&ch, &f->g, NULL);
	AX_POINT("bt.leaf_before_lock");
	x = bt_begin(cx, s, &ch, NULL);
	if (x != AX_OK)
		return x;
	if (!bt_put(f->p, i, &v, NULL))
	{
		/* unchanged: the version is still that of the path */
		if (!t->pess)
			ax_guard_close(cx, &f->g, false);
		x = make_leaf_room(cx, s, t, &v, i);
		if (x == AX_OK)
			*done = *added = 1;
		else
			bt_forget(cx, s, &ch);
		return x;
	}
	*done = *added = 1;
	if (!one)
		insert_more(s, f->p, &l, keys, done, added);
	bt_finish(cx, s, &ch, NULL);
	bt_close(cx, t, -1);
	return AX_OK;
}

ax_status
bt_insert_sorted(ax_ctx *cx, ax_store *s, const ax_keys *keys, uint64_t *done,
				 uint64_t *added)
{
	bt_path		t;
	int			tries = 0;

	*done = *added = 0;
	t.all = false;
	t.write = true;
	while (*done < keys->n)
	{
		ax_keys		rest = ax_keys_from(keys, *done, keys->n - *done);
		uint64_t	some = 0,
					fresh = 0;
		ax_status	x;

		t.pess = ax_pessimistic(tries);
		x = try_insert_keys(cx, s, &t, &rest, &some, &fresh);
		*done += some;
		*added += fresh;
		if (fresh)
			AX_COUNT(cx, s, entries, (int64_t) fresh);
		if (ax_start_over(cx, s, x, &tries))
			continue;
		if (x == AX_OK)
		{
			tries = 0;
			t.all = false;
		}
		else if (x != MORE)
			return *done ? AX_OK : x;
	}
	return AX_OK;
}

ax_status
bt_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint64_t	done,
				added;
	ax_status	x = bt_insert_sorted(cx, s, &(ax_keys) {&key, NULL, len, 1}, &done, &added);

	if (x == AX_OK)
		return added ? AX_OK : AX_EXISTS;
	return x;
}
