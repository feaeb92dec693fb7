/*
 * rt_scan.c
 *	  Ordered batches in both directions, in the modes of a descent: AX_READ, which
 *	  is optimistic, AX_PESSIMISTIC after too many restarts, and AX_ROWEX, which
 *	  validates nothing.
 *
 * One epoch, one batch.  A descent to the start position leaves a stack of
 * (node, version, place); going on from a leaf validates the node it goes on
 * in.  When that fails, or the stack was not deep enough, the batch ends early
 * or the descent starts over.  It does so from a position given by value, never from a
 * remembered place.  A key that is in the tree throughout is returned.  For no
 * change moves keys between slots without moving the version of the node whose
 * slots they are.
 *
 * Under ROWEX nodes and leaves may be out of date, each by another while.  So
 * a scan may meet entries again that it has returned, and entries before
 * those.  It compares every entry with the last one returned, and goes on only
 * with those beyond.  That nothing is missed is argued in rt_rowex.c.
 *
 * src/core/radix/README.md: The tree
 * src/core/radix/README.md: ROWEX
 */
#include "rt_olc.h"
#include "core/base/ax_call.h"
#include "core/elide/ax_batch.h"

#define FRAMES 32

typedef struct frame
{
	ax_guard	g;
	rt_hdr    *h;
	uint32_t	d;				/* depth of the byte it decides on */
	int			cur;			/* slot (Node4/16) or byte (Node48/256) */
	rt_ref		ref;			/* the child there */
	bool		at_start,		/* the start / end position lies below */
				at_end;
} frame;

typedef struct scan
{
	ax_ctx	   *cx;
	ax_store   *s;
	ax_batch   *b;
	bool		cut;			/* frames above stack[0] were dropped */
	ax_bound	pos;			/* start position now */
	const ax_bound *end;
	uint8_t    *path;			/* bytes of the key on the way */
	uint32_t	room;			/* of path and lastkey, each */
	int			sp;
	frame		stack[FRAMES];
} scan;

/*
 * Where keys that begin with path[0..d) lie: -1 before the position, 1
 * behind it, 0 the position is among them.
 */
static inline int
cmp_path(const uint8_t *path, uint32_t d, const ax_bound *b)
{
	uint32_t	k = d < b->len ? d : b->len;
	int			c = k ? memcmp(path, b->key, k) : 0;

	if (c)
		return c;
	if (b->len <= d)
		return b->after ? -1 : 1;
	return 0;
}

/* The same for one entry with suffix p[0..n) at depth d, path equal so far. */
static inline int
cmp_entry(const uint8_t *p, uint32_t n, uint32_t d, const ax_bound *b)
{
	uint32_t	bl = b->len - d;
	uint32_t	k = n < bl ? n : bl;

	for (uint32_t i = 0; i < k; i++)
	{
		int			c = (int) ax_load1(p + i) - (int) b->key[d + i];

		if (c)
			return c;
	}
	return n >= bl ? (b->after ? -1 : 1) : -1;
}

/*
 * Something was returned.  Everything from here on is behind the start, whose
 * bytes may have been in lastkey, after a re-seek.  Or, under ROWEX, it is to
 * be compared with the last entry returned.
 */
static inline void
passed_start(scan *sc, const ax_mode mode)
{
	if (mode == AX_ROWEX)
	{
		sc->pos.key = sc->b->lastkey;
		sc->pos.len = sc->b->lastlen;
		sc->pos.after = !sc->b->backward;
		return;
	}
	sc->pos.key = NULL;
	sc->pos.len = 0;
	sc->pos.after = sc->b->backward;
}

/* Room for a key of n bytes? */
static inline bool
need_frame(scan *sc, uint32_t n)
{
	if (ax_likely(n <= sc->room))
		return true;
	sc->b->need_bytes = 2 * n;
	return false;
}

/*
 * One entry: key path[0..d) and suffix p[0..len) (racing bytes, perhaps).
 * False: no room for the key.
 */
__attribute__((always_inline)) static inline bool
emit(scan *sc, uint32_t d, const uint8_t *p, uint32_t len, uint64_t tid)
{
	ax_batch   *b = sc->b;

	if (b->want_keys)
	{
		uint32_t	off = b->n ? b->key_off[b->n] : 0;

		if (d + len > b->keybuf_size - off)
			return false;
		ax_copy_few(b->keybuf + off, sc->path, d);
		ax_copy_few(b->keybuf + off + d, p, len);
		b->key_off[b->n] = off;
		b->key_off[b->n + 1] = off + d + len;
	}
	b->tids[b->n++] = tid;
	return true;
}

/* No room for a key in keybuf: the batch ends, or the buffer is too small. */
static inline ax_step
no_room(scan *sc, uint32_t len)
{
	if (sc->b->n > 0)
		return AX_SCAN_FULL;
	sc->b->need_bytes = 2 * len;
	return AX_SCAN_BUFFER;
}

/* How many more entries fit, if their keys have len bytes each. */
static inline uint32_t
room_for(const scan *sc, uint32_t len)
{
	const ax_batch *b = sc->b;
	uint32_t	m = b->max - b->n;

	if (b->want_keys)
	{
		uint32_t	k = (b->keybuf_size - (b->n ? b->key_off[b->n] : 0)) / len;

		if (k < m)
			m = k;
	}
	return m;
}

/* The live entries of a leaf in order: slot numbers in id[]. */
__attribute__((always_inline)) static inline int
leaf_order(rt_leaf *l, uint8_t *id)
{
	uint64_t	k[RT_LEAF_MAX];
	uint32_t	m = rt_leaf_live(l) & rt_all_live(l->cap);
	const uint8_t *const fixed = rt_leaf_fixed(l);
	const uint32_t w = l->w;
	int			n = 0;
	bool		sorted = true;

	for (; m; m &= m - 1)
	{
		uint32_t	len = w;
		int			i = __builtin_ctz(m);
		const uint8_t *p = fixed ? fixed + (uint32_t) i * w : rt_leaf_entry(l, i, &len);

		k[n] = ax_be8(p, len);
		if (n && k[n] <= k[n - 1])
			sorted = false;
		id[n++] = (uint8_t) i;
	}
	if (sorted)
		return n;
	for (int i = 1; i < n; i++)
	{
		uint64_t	x = k[i];
		uint8_t		y = id[i];
		int			j = i;

		while (j > 0 && k[j - 1] >= x)
		{
			if (k[j - 1] == x)
			{
				uint32_t	la,
							lb,
							q;
				const uint8_t *pa = rt_leaf_entry(l, id[j - 1], &la);
				const uint8_t *pb = rt_leaf_entry(l, y, &lb);
				int			c = 0;

				for (q = 8; q < la && q < lb && c == 0; q++)
					c = (int) ax_load1(pa + q) - (int) ax_load1(pb + q);
				if (c < 0)
					break;
			}
			k[j] = k[j - 1];
			id[j] = id[j - 1];
			j--;
		}
		k[j] = x;
		id[j] = y;
	}
	return n;
}

/* A leaf at hand. */
typedef struct leaf
{
	uint32_t	d;				/* its depth */
	int			cs,				/* where all of it lies, as cmp_path() says, from the */
				ce;				/* start, and from the end */
	const uint8_t *base;		/* where its entries have w bytes each: these */
	uint32_t	w;
	const uint8_t *last;		/* the last entry that was taken, of lastlen bytes; */
	uint32_t	lastlen;		/* NULL: none */
} leaf;

/*
 * Emit n entries of lf->w bytes: id[0] and those behind it in the batch's direction.
 * There is room for them.  mid: w is 8 to 16, as it is in most leaves, and known to the
 * compiler.
 */
__attribute__((always_inline)) static inline void
emit_fixed(scan *sc, const leaf *lf, const uint8_t *id, uint32_t n, const bool mid)
{
	ax_batch   *b = sc->b;
	const int	by = b->backward ? -1 : 1;
	const uint8_t *base = lf->base;
	const uint32_t d = lf->d;
	const uint32_t w = lf->w;
	uint64_t   *tid = b->tids + b->n;

	for (uint32_t i = 0; i < n; i++)
	{
		const uint8_t *p = base + id[(int) i * by] * w;

		tid[i] = mid ? ax_tid_of_8(p + w) : ax_tid_at(p + w);
	}
	if (b->want_keys)
	{
		const uint32_t len = d + w;
		uint32_t   *end = b->key_off + b->n;
		uint32_t	off = b->n ? *end : 0;

		*end = off;
		for (uint32_t i = 0; i < n; i++)
		{
			const uint8_t *p = base + id[(int) i * by] * w;
			uint8_t    *to = b->keybuf + off;

			ax_copy_few(to, sc->path, d);
			if (mid)
				ax_copy_mid(to + d, p, w);
			else
				ax_copy_few(to + d, p, w);
			*++end = off += len;
		}
	}
	b->n += n;
}

/*
 * leaf_entries() where they have lf->w bytes each, their TIDs among these.  The ends are
 * looked for first, so that between them is nothing to compare.
 */
__attribute__((always_inline)) static inline ax_step
fixed_entries(scan *sc, leaf *lf, const uint8_t *id, int n)
{
	ax_batch   *b = sc->b;
	const uint8_t *base = lf->base;
	const uint32_t d = lf->d;
	const uint32_t w = lf->w;
	const bool	back = b->backward;
	const int	by = back ? -1 : 1;
	const uint8_t *first = back ? id + n - 1 : id;
	uint32_t	found = (uint32_t) n,
				room;
	bool		ended = false;

	if (lf->cs == 0)
		for (; found > 0; found--, first += by)
		{
			int			c = cmp_entry(base + *first * w, w, d, &sc->pos);

			if (!(back ? c > 0 : c < 0))
				break;
		}
	if (lf->ce == 0)
		for (; found > 0; found--)
		{
			int			c = cmp_entry(base + first[(int) (found - 1) * by] * w, w, d, sc->end);

			if (!(back ? c < 0 : c > 0))
				break;
			ended = true;
		}
	if (found == 0)
		return ended ? AX_SCAN_END : AX_SCAN_GO;
	if (b->n == b->max)
		return AX_SCAN_FULL;
	if (!need_frame(sc, d + w))
		return b->n ? AX_SCAN_FULL : AX_SCAN_BUFFER;
	room = room_for(sc, d + w);
	if (room == 0)
		return no_room(sc, d + w);
	if (room > found)
		room = found;
	lf->last = base + first[(int) (room - 1) * by] * w;
	lf->lastlen = w;
	if (w >= 8 && w <= 16)
		emit_fixed(sc, lf, first, room, true);
	else
		emit_fixed(sc, lf, first, room, false);
	return room < found ? AX_SCAN_FULL : ended ? AX_SCAN_END : AX_SCAN_GO;
}

/*
 * Take those of the leaf's entries that lie between the ends, as many as there is room
 * for.  Racy: the caller validates the leaf.
 */
__attribute__((always_inline)) static inline ax_step
leaf_entries(scan *sc, rt_leaf *l, leaf *lf)
{
	ax_batch   *b = sc->b;
	const uint32_t d = lf->d;
	int			cs = lf->cs;
	const bool	back = b->backward;
	uint8_t		id[RT_LEAF_MAX];
	const int	n = leaf_order(l, id);

	AX_POINT("art.scan.leaf_ordered");
	if (ax_likely(l->flags == 0 && l->w >= AX_TID_BYTES))
	{
		lf->base = rt_leaf_fixed(l);
		lf->w = l->w;
		return fixed_entries(sc, lf, id, n);
	}
	for (int i = 0; i < n; i++)
	{
		uint32_t	len;
		uint64_t	tid;
		const uint8_t *p = rt_leaf_entry(l, id[back ? n - 1 - i : i], &len);

		if (cs == 0)
		{
			int			c = cmp_entry(p, len, d, &sc->pos);

			if (back ? c > 0 : c < 0)
				continue;
			cs = 1;				/* all that follow are on this side */
		}
		if (lf->ce == 0)
		{
			int			c = cmp_entry(p, len, d, sc->end);

			if (back ? c < 0 : c > 0)
				return AX_SCAN_END;
		}
		if (b->n == b->max)
			return AX_SCAN_FULL;
		if (!need_frame(sc, d + len))
			return b->n ? AX_SCAN_FULL : AX_SCAN_BUFFER;
		if (ax_likely(len >= AX_TID_BYTES))
			tid = ax_tid_at(p + len);
		else
		{
			/* part of the TID is in the path */
			ax_copy_out(sc->path + d, p, len);
			tid = ax_tid_at(sc->path + d + len);
		}
		if (!emit(sc, d, p, len, tid))
			return no_room(sc, d + len);
		lf->last = p;
		lf->lastlen = len;
	}
	return AX_SCAN_GO;
}

/*
 * A leaf at depth d; parent: of the node (or the root) that ref was read from.
 *
 * Latches: pessimistically has the parent's, and takes the leaf's meanwhile.
 */
__attribute__((always_inline)) static inline ax_step
do_leaf(scan *sc, rt_ref ref, uint32_t d, const ax_guard *parent, const ax_mode mode)
{
	ax_batch   *b = sc->b;
	rt_leaf    *l = RT_PTR(ref);
	const bool	back = b->backward;
	ax_guard	g;
	uint32_t	n0 = b->n,
				end_off = b->want_keys && b->n ? b->key_off[b->n] : 0;
	leaf		lf = {
		.d = d,.cs = cmp_path(sc->path, d, &sc->pos),.ce = cmp_path(sc->path, d, sc->end)
	};
	bool		ok;
	ax_step		r;

	if (back ? lf.ce < 0 : lf.ce > 0)
		return AX_SCAN_END;
	if (back ? lf.cs > 0 : lf.cs < 0)
		return AX_SCAN_SKIP;
	r = (ax_step) ax_open(sc->cx, &g, &l->word, mode);
	if (r != AX_SCAN_GO)
		return r;
	AX_POINT("art.scan.leaf_version");
	if (!ax_valid(parent, mode))
	{
		ax_close(sc->cx, &g, mode);
		return AX_SCAN_LOST;
	}
	r = leaf_entries(sc, l, &lf);
	if (lf.last)
		ax_copy_out(sc->path + d, lf.last, lf.lastlen);
	AX_POINT("art.scan.leaf_read");
	ok = ax_valid(&g, mode);
	ax_close(sc->cx, &g, mode);
	if (!ok)
	{
		b->n = n0;
		if (b->want_keys && n0)
			b->key_off[n0] = end_off;
		return AX_SCAN_LOST;
	}
	if (lf.last)
	{
		b->lastlen = d + lf.lastlen;
		memcpy(b->lastkey, sc->path, b->lastlen);
		passed_start(sc, mode);
	}
	if (r == AX_SCAN_GO)
		r = b->n == b->max || (mode == AX_PESSIMISTIC && b->n) ? AX_SCAN_FULL : AX_SCAN_SKIP;
	return r;
}

/* Emit an embedded TID, if it lies between the ends. */
__attribute__((always_inline)) static inline ax_step
do_embed(scan *sc, frame *f, uint8_t byte, const ax_mode mode)
{
	ax_batch   *b = sc->b;
	const bool	back = b->backward;
	uint64_t	tid = RT_EMBED_TID(f->ref);
	uint32_t	len = f->d + 1 + AX_TID_BYTES;
	uint8_t    *p = sc->path + f->d;

	if (!need_frame(sc, len))
		return b->n ? AX_SCAN_FULL : AX_SCAN_BUFFER;
	p[0] = byte;
	ax_put_tid(p + 1, tid);
	if (mode == AX_ROWEX || f->at_start)
	{
		int			c = cmp_path(sc->path, len, &sc->pos);

		if (back ? c > 0 : c < 0)
			return AX_SCAN_SKIP;
	}
	if (f->at_end)
	{
		int			c = cmp_path(sc->path, len, sc->end);

		if (back ? c < 0 : c > 0)
			return AX_SCAN_END;
	}
	if (b->n == b->max)
		return AX_SCAN_FULL;
	AX_POINT("art.scan.embedded");
	if (!ax_valid(&f->g, mode))
		return AX_SCAN_LOST;
	if (!emit(sc, f->d, p, 1 + AX_TID_BYTES, tid))
		return no_room(sc, len);
	memcpy(b->lastkey, sc->path, len);
	b->lastlen = len;
	passed_start(sc, mode);
	return b->n == b->max ? AX_SCAN_FULL : AX_SCAN_SKIP;
}

/* Child and byte at the frame's place; Node4/16: by slot. */
static inline rt_ref
child_at(rt_hdr *h, unsigned kind, int i, uint8_t *byte)
{
	switch (kind)
	{
		case RT_N4:
			*byte = rt_n4_sep((rt_n4 *) h, i);
			AX_POINT("art.scan.slot");
			return ldref(&((rt_n4 *) h)->child[i]);
		case RT_N16:
			*byte = rt_n16_sep((rt_n16 *) h, i);
			AX_POINT("art.scan.slot");
			return ldref(&((rt_n16 *) h)->child[i]);
		case RT_N48:
			{
				int			x = atomic_load_explicit(&((rt_n48 *) h)->index[i], memory_order_acquire);

				*byte = (uint8_t) i;
				AX_POINT("art.scan.slot");
				return x == 0 || x > 48 ? 0 : ldref(&((rt_n48 *) h)->child[x - 1]);
			}
		default:
			*byte = (uint8_t) i;
			return ldref(&((rt_n256 *) h)->child[i]);
	}
}

/*
 * Is the byte one of those of the frame's node that lie wholly before the scan's end?
 */
static inline bool
before_end(const scan *sc, const frame *f, uint8_t byte)
{
	if (!f->at_end)
		return true;
	return sc->b->backward ? byte > sc->end->key[f->d] : byte < sc->end->key[f->d];
}

/*
 * From the frame's child on, an embedded TID, all that follow in this node before the
 * scan's end.  They are read like the entries of a leaf, and validated together.
 * Something was returned before, so they are behind the start.  Their keys are written
 * behind the batch's, and become its with b->n.
 */
__attribute__((always_inline)) static inline ax_step
do_embeds(scan *sc, frame *f, const ax_mode mode)
{
	ax_batch   *b = sc->b;
	const int	by = b->backward ? -1 : 1;
	const unsigned kind = f->h->kind;
	const uint32_t len = f->d + 1 + AX_TID_BYTES;
	uint8_t    *p = sc->path + f->d;
	uint32_t	n = b->n,
				max = n + room_for(sc, len),
				off = b->want_keys ? b->key_off[n] : 0;
	int			stop = 256;
	rt_ref		last = 0;

	if (!need_frame(sc, len) || max == n)
		return AX_SCAN_FULL;
	if (kind <= RT_N16)
	{
		stop = ld(&f->h->count);
		if (stop > rt_node_slots(kind))
			stop = rt_node_slots(kind);
	}
	for (int i = f->cur; i >= 0 && i < stop && n < max; i += by)
	{
		uint8_t		byte;
		rt_ref		r = child_at(f->h, kind, i, &byte);

		AX_POINT("art.scan.embeds");
		if (r == 0)
			continue;
		if (RT_TAG(r) != RT_EMBED || !before_end(sc, f, byte))
			break;
		if (b->want_keys)
		{
			uint8_t    *k = b->keybuf + off;

			ax_copy_few(k, sc->path, f->d);
			k[f->d] = byte;
			ax_put_tid(k + f->d + 1, RT_EMBED_TID(r));
			off += len;
			b->key_off[n + 1] = off;
		}
		b->tids[n++] = RT_EMBED_TID(r);
		f->cur = i;
		p[0] = byte;
		last = r;
	}
	AX_POINT("art.scan.embedded");
	if (last == 0 || !ax_valid(&f->g, mode))
		return AX_SCAN_LOST;
	b->n = n;
	f->ref = last;
	ax_put_tid(p + 1, RT_EMBED_TID(last));
	memcpy(b->lastkey, sc->path, len);
	b->lastlen = len;
	return n == b->max ? AX_SCAN_FULL : AX_SCAN_SKIP;
}

/*
 * settle_frame() in a Node48 or Node256, of which the compiler knows.
 *
 * Arguments: always inline; those of settle, and the kind.
 */
__attribute__((always_inline)) static inline bool
settle_indexed(scan *sc, frame *f, int i, rt_ref not, uint8_t *byte, const unsigned kind)
{
	const int	by = sc->b->backward ? -1 : 1;
	rt_ref		r = 0;
	uint8_t		dummy;

	for (; i >= 0 && i < 256; i += by)
	{
		r = child_at(f->h, kind, i, byte);
		if (r != 0 && (r != not || RT_TAG(r) != RT_LEAF))
			break;
	}
	if (i < 0 || i >= 256)
		return false;
	f->ref = r;
	f->cur = i;
	if (RT_TAG(r) == RT_EMBED)
		return true;
	/* a leaf's range is some bytes wide, and the neighbour is behind it */
	for (int far = i + 8 * by; (i += by) != far && i >= 0 && i < 256;)
	{
		rt_ref		q = child_at(f->h, kind, i, &dummy);

		if (q == 0 || q == r)
			continue;
		if (RT_TAG(q) == RT_LEAF)
			rt_prefetch_leaf(q);
		else if (RT_IS_NODE(q))
			ax_prefetch(RT_PTR(q));
		break;
	}
	return true;
}

/*
 * Place the frame on its next child from place i on in the scan's direction,
 * another than "not"; false when there is none.
 */
static bool
settle_frame(scan *sc, frame *f, int i, rt_ref not, uint8_t *byte)
{
	const int	by = sc->b->backward ? -1 : 1;
	unsigned	kind = f->h->kind;
	int			n;

	if (kind <= RT_N16)
	{
		n = ld(&f->h->count);
		if (n > rt_node_slots(kind))
			n = rt_node_slots(kind);
		for (;; i += by)
		{
			if (i < 0 || i >= n)
				return false;
			f->ref = child_at(f->h, kind, i, byte);
			if (f->ref != 0)
				break;			/* else a hole of ROWEX, or the node is changing */
		}
		f->cur = i;
		/* the neighbour's lines come in while this one is read */
		if (i + by >= 0 && i + by < n)
		{
			uint8_t		dummy;
			rt_ref		r = child_at(f->h, kind, i + by, &dummy);

			if (RT_TAG(r) == RT_LEAF)
				rt_prefetch_leaf(r);
			else if (RT_IS_NODE(r))
				ax_prefetch(RT_PTR(r));
		}
		return true;
	}
	return kind == RT_N48 ? settle_indexed(sc, f, i, not, byte, RT_N48) :
		settle_indexed(sc, f, i, not, byte, RT_N256);
}

/*
 * Place the frame on its first child of interest; bound: the start position may lie
 * below it.  False when there is none.
 */
static inline bool
first_child(scan *sc, frame *f, bool *bound, uint8_t *byte)
{
	const bool	back = sc->b->backward;
	rt_hdr	   *h = f->h;
	uint8_t		c;
	int			at;

	if (!*bound)
		return settle_frame(sc, f, !back ? 0 : h->kind <= RT_N16 ? (int) ld(&h->count) - 1 : 255,
							0, byte);
	c = sc->pos.key[f->d];
	if (h->kind > RT_N16)
		at = c;
	else if (rt_find(h, h->kind, c, &at) == 0 && !back)
		at++;
	if (!settle_frame(sc, f, at, 0, byte))
		return false;

	/*
	 * An exact child at another byte lies wholly on the far side.  Under
	 * ROWEX it may lie on the near one, if a leaf was there at the first
	 * look.  Then its entries are skipped one by one.
	 */
	if (RT_TAG(f->ref) != RT_LEAF && *byte != c)
		*bound = false;
	return true;
}

/*
 * A new frame, on top.  Under latch coupling only that node stays latched.
 *
 * Latches: pessimistically gives back that of the frame before.
 */
__attribute__((always_inline)) static inline frame *
new_frame(scan *sc, const ax_mode mode)
{
	if (mode == AX_PESSIMISTIC && sc->sp)
	{
		ax_close(sc->cx, &sc->stack[sc->sp - 1].g, mode);
		sc->sp = 0;
		sc->cut = true;
	}
	if (sc->sp == FRAMES)
	{
		memmove(&sc->stack[0], &sc->stack[1], sizeof(frame) * (FRAMES - 1));
		sc->sp--;
		sc->cut = true;
	}
	return &sc->stack[sc->sp++];
}

/*
 * Enter the node ref at depth d; parent: as of a leaf; bound: the start position may
 * lie below.  AX_SCAN_GO: a new frame is on the stack, on its first child of interest.
 *
 * Epoch: inside.
 * Latches: pessimistically has the parent's; then, with a new frame, that one's, and
 * of the parents the root's at most.
 */
__attribute__((always_inline)) static inline ax_step
push_node(scan *sc, rt_ref ref, uint32_t d, const ax_guard *parent, bool *bound,
		  uint8_t *byte, const ax_mode mode)
{
	rt_hdr	   *h = RT_PTR(ref);
	const bool	back = sc->b->backward;
	frame	   *f;
	ax_guard	g;
	uint32_t	plen;
	int			c = 1;
	bool		found;
	ax_step		r = (ax_step) ax_open(sc->cx, &g, &h->word, mode);

	if (r != AX_SCAN_GO)
		return r;
	AX_POINT("art.scan.node_version");
	if (!ax_valid(parent, mode))
	{
		ax_close(sc->cx, &g, mode);
		return AX_SCAN_LOST;
	}
	plen = h->plen;
	if (!need_frame(sc, d + plen + 1))
	{
		ax_close(sc->cx, &g, mode);
		return sc->b->n ? AX_SCAN_FULL : AX_SCAN_BUFFER;
	}
	if (plen)
		memcpy(sc->path + d, rt_prefix(h), plen);
	d += plen;
	if (*bound)
	{
		c = cmp_path(sc->path, d, &sc->pos);
		if (back ? c > 0 : c < 0)
		{
			/* nothing of it: the caller goes on in the parent, still there */
			ax_close(sc->cx, &g, mode);
			return AX_SCAN_SKIP;
		}
	}

	f = new_frame(sc, mode);
	f->g = g;
	f->h = h;
	f->d = d;
	f->cur = 0;
	f->ref = 0;
	f->at_start = *bound = *bound && c == 0;
	c = cmp_path(sc->path, d, sc->end);
	if (back ? c < 0 : c > 0)
		return AX_SCAN_END;
	f->at_end = c == 0;
	found = first_child(sc, f, bound, byte);
	if (!ax_valid(&f->g, mode))
		return AX_SCAN_LOST;
	if (!found)
		f->cur = back ? -1 : 256;	/* all of it is on the other side */
	return found ? AX_SCAN_GO : AX_SCAN_SKIP;
}

/*
 * On to the next child: of the top frame, or of one below it.  AX_SCAN_GO: that is on top.
 */
__attribute__((always_inline)) static inline ax_step
advance(scan *sc, uint8_t *byte, const ax_mode mode)
{
	ax_batch   *b = sc->b;
	frame	   *f;

	if (sc->sp == 0)
		return AX_SCAN_END;			/* the root is a leaf, or wholly on the other side */
	for (;; sc->sp--)
	{
		bool		found;

		f = &sc->stack[sc->sp - 1];
		AX_POINT("art.scan.advance");
		if (!ax_valid(&f->g, mode))
			return AX_SCAN_LOST;
		found = settle_frame(sc, f, f->cur + (b->backward ? -1 : 1), f->ref, byte);
		if (!ax_valid(&f->g, mode))
			return AX_SCAN_LOST;
		if (found)
			return AX_SCAN_GO;
		if (sc->sp == 1)
			break;
	}
	if (!sc->cut)
		return AX_SCAN_END;
	/* all that begins with the path to this node is done */
	if (b->n > 0)
		return AX_SCAN_FULL;
	memcpy(b->lastkey, sc->path, f->d);
	sc->pos.key = b->lastkey;
	sc->pos.len = f->d;
	sc->pos.after = !b->backward;
	return AX_SCAN_SEEK;
}

/*
 * One pass from sc->pos; fills the batch.
 *
 * Epoch: inside.
 * Latches: none on entry; pessimistically that of the only frame on return, if there
 * is one.
 */
__attribute__((always_inline)) static inline ax_step
run(scan *sc, const ax_mode mode)
{
	ax_batch   *b = sc->b;
	ax_guard	root;
	ax_guard   *parent = &root;
	rt_ref		ref;
	uint32_t	d = 0;
	uint8_t		byte = 0;
	bool		bound = sc->pos.len > 0;
	ax_step		r;
	frame	   *f = NULL;

	sc->sp = 0;
	sc->cut = false;
	if (!bound && sc->pos.after != b->backward)
		return AX_SCAN_END;
	r = (ax_step) ax_open(sc->cx, &root, &sc->s->root_word, mode);
	if (r != AX_SCAN_GO)
		return r;
	ref = ldref(&sc->s->root);
	AX_POINT("art.scan.root");
	if (ref == 0)
	{
		r = ax_valid(&root, mode) ? AX_SCAN_END : AX_SCAN_LOST;
		ax_close(sc->cx, &root, mode);
		return r;
	}
	for (;;)
	{
		if (RT_IS_NODE(ref))
			r = push_node(sc, ref, d, parent, &bound, &byte, mode);
		else if (RT_TAG(ref) == RT_LEAF)
			r = do_leaf(sc, ref, d, parent, mode);
		else if (mode != AX_ROWEX && b->n > 0 && before_end(sc, f, byte))
			r = do_embeds(sc, f, mode);
		else
			r = do_embed(sc, f, byte, mode);
		if (parent == &root)
			ax_close(sc->cx, &root, mode);
		bound = bound && r == AX_SCAN_GO;
		if (r == AX_SCAN_SKIP)
			r = advance(sc, &byte, mode);
		if (r != AX_SCAN_GO)
			return r;
		f = &sc->stack[sc->sp - 1];
		parent = &f->g;
		ref = f->ref;
		d = f->d;
		if (RT_IS_NODE(ref))
			sc->path[d++] = byte;
	}
}

/*
 * run() with latches.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
static __attribute__((noinline, cold)) ax_step
run_latched(scan *sc)
{
	ax_step		r = run(sc, AX_PESSIMISTIC);

	if (sc->sp)
		ax_close(sc->cx, &sc->stack[sc->sp - 1].g, AX_PESSIMISTIC);
	return r;
}

/*
 * As ax_batch_fill() wants it: under latch coupling, and under ROWEX.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
__attribute__((always_inline)) static inline ax_step
pass(void *sc, bool pess)
{
	return pess ? run_latched(sc) : run(sc, AX_READ);
}

__attribute__((always_inline)) static inline ax_step
pass_rowex(void *sc, bool pess)
{
	return run(sc, AX_ROWEX);
}

/* Before the first pass.  False: nothing is wanted. */
static inline bool
begin(scan *sc, ax_ctx *cx, ax_store *s, ax_batch *b)
{
	sc->cx = cx;
	sc->s = s;
	sc->b = b;
	sc->room = b->lastkey_size / 2;
	sc->path = b->lastkey + sc->room;
	return ax_batch_begin(b, &sc->pos, &sc->end);
}

ax_status
rt_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	scan		sc;

	return begin(&sc, cx, s, b) ? ax_batch_fill(cx, s, b, pass, &sc) : AX_OK;
}

ax_status
rt_rowex_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	scan		sc;

	return begin(&sc, cx, s, b) ? ax_batch_fill(cx, s, b, pass_rowex, &sc) : AX_OK;
}
