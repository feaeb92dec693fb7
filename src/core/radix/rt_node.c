/*
 * rt_node.c
 *	  Inner nodes and packed leaves: making, filling, changing one of them.
 *
 * Everything here works on a node that is private to the caller or latched by
 * it, unless it says "racy".
 *
 * src/core/radix/README.md: The tree
 */
#include "rt_node.h"

void
rt_count_node(ax_ctx *cx, ax_store *s, unsigned kind, int d)
{
	switch (kind)
	{
		case RT_N4:
			AX_COUNT(cx, s, n4, d);
			break;
		case RT_N16:
			AX_COUNT(cx, s, n16, d);
			break;
		case RT_N48:
			AX_COUNT(cx, s, n48, d);
			break;
		default:
			AX_COUNT(cx, s, n256, d);
			break;
	}
}

rt_hdr *
rt_node_new(ax_ctx *cx, ax_store *s, unsigned kind, const uint8_t *prefix,
			uint32_t plen, bool reserve)
{
	uint32_t	base = rt_node_base(kind);
	rt_hdr    *h = ax_alloc(cx, s, rt_node_size(kind, plen), reserve);

	if (!h)
		return NULL;
	memset(h, 0, base);
	atomic_init(&h->word, AX_WORD_INIT);
	h->kind = (uint8_t) kind;
	h->plen = plen;
	if (plen)
		memcpy(rt_prefix(h), prefix, plen);
	rt_count_node(cx, s, kind, 1);
	return h;
}

void
rt_node_unalloc(ax_ctx *cx, ax_store *s, rt_hdr *h)
{
	rt_count_node(cx, s, h->kind, -1);
	ax_unalloc(cx, s, h, rt_node_size(h->kind, h->plen));
}

void
rt_node_retire(ax_ctx *cx, ax_store *s, rt_hdr *h)
{
	AX_ASSERT(ax_body(cx), ld(&h->word) & AX_OBSOLETE);
	rt_count_node(cx, s, h->kind, -1);
	ax_retire(cx, s, h, rt_node_size(h->kind, h->plen));
}

/* ---- slots ---------------------------------------------------------------- */

void
rt_node_range(rt_hdr *h, uint8_t c, int *lo, int *hi)
{
	int			at;
	rt_ref		r = rt_find(h, h->kind, c, &at);
	int			a = c,
				b = c;

	if (RT_TAG(r) != RT_LEAF)
	{
		*lo = *hi = c;
		return;
	}
	if (h->kind <= RT_N16)
	{
		int			n = ld(&h->count);

		a = h->kind == RT_N4 ? rt_n4_sep((rt_n4 *) h, at) : rt_n16_sep((rt_n16 *) h, at);
		b = 255;
		if (at + 1 < n)
			b = (h->kind == RT_N4 ? rt_n4_sep((rt_n4 *) h, at + 1) :
				 rt_n16_sep((rt_n16 *) h, at + 1)) - 1;
	}
	else if (h->kind == RT_N48)
	{
		rt_n48    *p = (rt_n48 *) h;
		uint8_t		i = ld(&p->index[c]);

		while (a > 0 && ld(&p->index[a - 1]) == i)
			a--;
		while (b < 255 && ld(&p->index[b + 1]) == i)
			b++;
	}
	else
	{
		rt_n256   *p = (rt_n256 *) h;

		while (a > 0 && ld(&p->child[a - 1]) == r)
			a--;
		while (b < 255 && ld(&p->child[b + 1]) == r)
			b++;
	}
	*lo = a;
	*hi = b;
}

/* Open or close a gap in sorted separators and children. */
static void
sorted_insert(rt_hdr *h, int i, uint8_t c, rt_ref r)
{
	int			n = ld(&h->count);

	if (h->kind == RT_N4)
	{
		rt_n4	   *p = (rt_n4 *) h;
		uint32_t	s = ld(&p->sep);
		uint32_t	low = i ? s & ((UINT32_C(1) << (8 * i)) - 1) : 0;
		uint32_t	high = i < 3 ? (s >> (8 * i)) << (8 * i + 8) : 0;

		for (int j = n; j > i; j--)
			st(&p->child[j], ld(&p->child[j - 1]));
		stref(&p->child[i], r);
		st(&p->sep, low | ((uint32_t) c << (8 * i)) | high);
	}
	else
	{
		rt_n16    *p = (rt_n16 *) h;
		uint8_t		b[16];
		uint64_t	w[2];

		w[0] = ld(&p->sep[0]);
		w[1] = ld(&p->sep[1]);
		memcpy(b, w, 16);
		memmove(b + i + 1, b + i, (size_t) (n - i));
		b[i] = c;
		memcpy(w, b, 16);
		for (int j = n; j > i; j--)
			st(&p->child[j], ld(&p->child[j - 1]));
		stref(&p->child[i], r);
		st(&p->sep[0], w[0]);
		st(&p->sep[1], w[1]);
	}
	st(&h->count, (uint16_t) (n + 1));
}

void
rt_node_add(rt_hdr *h, uint8_t c, int lo, int hi, rt_ref child)
{
	switch (h->kind)
	{
		case RT_N4:
			sorted_insert(h, rt_n4_rank(ld(&((rt_n4 *) h)->sep), ld(&h->count), c), c, child);
			break;
		case RT_N16:
			sorted_insert(h, rt_n16_rank(ld(&((rt_n16 *) h)->sep[0]),
										 ld(&((rt_n16 *) h)->sep[1]),
										 ld(&h->count), c), c, child);
			break;
		case RT_N48:
			{
				rt_n48    *p = (rt_n48 *) h;
				int			i = ld(&h->count);

				/* slots are used densely until a removal leaves one free (but
				 * under ROWEX none is free again: rt_rowex.c) */
				if (ld(&p->child[i]) != 0)
					for (i = 0; ld(&p->child[i]) != 0; i++)
						;
				stref(&p->child[i], child);
				for (int x = lo; x <= hi; x++)
				{
					AX_POINT("art.rowex.index");
					atomic_store_explicit(&p->index[x], (uint8_t) (i + 1), memory_order_release);
				}
				st(&h->count, (uint16_t) (ld(&h->count) + 1));
				break;
			}
		default:
			for (int x = lo; x <= hi; x++)
			{
				AX_POINT("art.rowex.range");
				stref(&((rt_n256 *) h)->child[x], child);
			}
			st(&h->count, (uint16_t) (ld(&h->count) + 1));
			break;
	}
}

void
rt_node_set(rt_hdr *h, uint8_t c, rt_ref r)
{
	int			at,
				lo,
				hi;

	switch (h->kind)
	{
		case RT_N4:
			(void) rt_find(h, RT_N4, c, &at);
			stref(&((rt_n4 *) h)->child[at], r);
			break;
		case RT_N16:
			(void) rt_find(h, RT_N16, c, &at);
			stref(&((rt_n16 *) h)->child[at], r);
			break;
		case RT_N48:
			(void) rt_find(h, RT_N48, c, &at);
			stref(&((rt_n48 *) h)->child[at], r);
			break;
		default:
			rt_node_range(h, c, &lo, &hi);
			for (int x = lo; x <= hi; x++)
			{
				AX_POINT("art.rowex.range");
				stref(&((rt_n256 *) h)->child[x], r);
			}
			break;
	}
}

void
rt_node_narrow(rt_hdr *h, uint8_t c, uint8_t b, rt_ref r)
{
	int			at,
				lo,
				hi;

	rt_node_range(h, c, &lo, &hi);
	(void) rt_find(h, h->kind, c, &at);
	switch (h->kind)
	{
		case RT_N4:
			{
				rt_n4	   *p = (rt_n4 *) h;
				uint32_t	s = ld(&p->sep);

				s = (s & ~(UINT32_C(0xFF) << (8 * at))) | ((uint32_t) b << (8 * at));
				stref(&p->child[at], r);
				st(&p->sep, s);
				break;
			}
		case RT_N16:
			{
				rt_n16    *p = (rt_n16 *) h;
				uint64_t	s = ld(&p->sep[at >> 3]);
				int			sh = 8 * (at & 7);

				s = (s & ~(UINT64_C(0xFF) << sh)) | ((uint64_t) b << sh);
				stref(&p->child[at], r);
				st(&p->sep[at >> 3], s);
				break;
			}
		case RT_N48:
			for (int x = lo; x <= hi; x++)
				if (x != b)
					st(&((rt_n48 *) h)->index[x], 0);
			stref(&((rt_n48 *) h)->child[at], r);
			break;
		default:
			for (int x = lo; x <= hi; x++)
				stref(&((rt_n256 *) h)->child[x], x == b ? r : 0);
			break;
	}
}

void
rt_node_del(rt_hdr *h, uint8_t c)
{
	int			at,
				lo,
				hi,
				n = ld(&h->count);

	rt_node_range(h, c, &lo, &hi);
	(void) rt_find(h, h->kind, c, &at);
	switch (h->kind)
	{
		case RT_N4:
			{
				rt_n4	   *p = (rt_n4 *) h;
				uint32_t	s = ld(&p->sep);
				uint32_t	low = at ? s & ((UINT32_C(1) << (8 * at)) - 1) : 0;
				uint32_t	high = at < 3 ? (s >> (8 * at + 8)) << (8 * at) : 0;

				for (int j = at; j + 1 < n; j++)
					stref(&p->child[j], ld(&p->child[j + 1]));
				st(&p->child[n - 1], 0);
				st(&p->sep, low | high);
				break;
			}
		case RT_N16:
			{
				rt_n16    *p = (rt_n16 *) h;
				uint8_t		b[17] = {0};
				uint64_t	w[2];

				w[0] = ld(&p->sep[0]);
				w[1] = ld(&p->sep[1]);
				memcpy(b, w, 16);
				memmove(b + at, b + at + 1, (size_t) (16 - at));
				memcpy(w, b, 16);
				for (int j = at; j + 1 < n; j++)
					stref(&p->child[j], ld(&p->child[j + 1]));
				st(&p->child[n - 1], 0);
				st(&p->sep[0], w[0]);
				st(&p->sep[1], w[1]);
				break;
			}
		case RT_N48:
			for (int x = lo; x <= hi; x++)
				st(&((rt_n48 *) h)->index[x], 0);
			st(&((rt_n48 *) h)->child[at], 0);
			break;
		default:
			for (int x = lo; x <= hi; x++)
			{
				AX_POINT("art.rowex.range");
				st(&((rt_n256 *) h)->child[x], 0);
			}
			break;
	}
	st(&h->count, (uint16_t) (n - 1));
}

/*
 * All slots in order; in Node4/16 a leaf's range is closed at the next
 * separator, be that a hole's.
 */
int
rt_node_slots_get(rt_hdr *h, rt_slot *out)
{
	int			n = 0;

	if (h->kind <= RT_N16)
	{
		const int	m = ld(&h->count);
		uint8_t		sep[16];

		for (int i = 0; i < m && i < 16; i++)
			sep[i] = h->kind == RT_N4 ? rt_n4_sep((rt_n4 *) h, i) : rt_n16_sep((rt_n16 *) h, i);
		for (int i = 0; i < m && i < 16; i++)
		{
			rt_ref		r = ldref(h->kind == RT_N4 ? &((rt_n4 *) h)->child[i] : &((rt_n16 *) h)->child[i]);

			if (r == 0)
				continue;
			out[n].r = r;
			out[n].lo = sep[i];
			out[n++].hi = RT_TAG(r) != RT_LEAF ? sep[i] :
				i + 1 < m && i + 1 < 16 ? (uint8_t) (sep[i + 1] - 1) : 255;
		}
		return n;
	}
	for (int c = 0; c < 256; c++)
	{
		rt_ref		r;

		if (h->kind == RT_N48)
		{
			int			i = ld(&((rt_n48 *) h)->index[c]);

			if (i == 0)
				continue;
			r = ldref(&((rt_n48 *) h)->child[i - 1]);
		}
		else
		{
			r = ldref(&((rt_n256 *) h)->child[c]);
			if (r == 0)
				continue;
		}
		if (n > 0 && RT_TAG(r) == RT_LEAF && out[n - 1].r == r)
		{
			out[n - 1].hi = (uint8_t) c;
			continue;
		}
		out[n].r = r;
		out[n].lo = out[n].hi = (uint8_t) c;
		n++;
	}
	return n;
}

int
rt_node_children(rt_hdr *h)
{
	int			n = ld(&h->count),
				live = 0;

	if (h->kind > RT_N16)
		return n;
	for (int i = 0; i < n && i < rt_node_slots(h->kind); i++)
		live += ld(h->kind == RT_N4 ? &((rt_n4 *) h)->child[i] : &((rt_n16 *) h)->child[i]) != 0;
	return live;
}

void
rt_node_fill(rt_hdr *to, const rt_slot *s, int n)
{
	for (int i = 0; i < n; i++)
		rt_node_add(to, s[i].lo, s[i].lo, s[i].hi, s[i].r);
}

/* ---- leaves --------------------------------------------------------------- */

static bool
same_len(const rt_ent *e, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++)
		if (e[i].len != e[0].len)
			return false;
	return true;
}

static bool
is_fixed(const rt_ent *e, uint64_t n, uint32_t off)
{
	return e[0].len - off <= 255 && same_len(e, n);
}

bool
rt_leaf_fits(const rt_ent *e, uint64_t n, uint32_t off)
{
	uint64_t	bytes;

	if (n == 1)
		return true;
	if (n > RT_LEAF_MAX)
		return false;
	if (is_fixed(e, n, off))
		return rt_fix_size((int) n, (int) (e[0].len - off)) <= RT_FIX_BYTES;
	bytes = rt_var_slots_off((int) n) + 4 * n;
	for (uint64_t i = 0; i < n; i++)
		bytes += e[i].len - off;
	return bytes <= RT_VAR_BYTES;
}

int
rt_leaf_stepcap(int n)
{
	if (n <= 4)
		return 4;
	n = (n + 7) & ~7;
	return n > RT_LEAF_MAX ? RT_LEAF_MAX : n;
}

/*
 * Write an entry to slot i, of a leaf that readers may be in, and publish it.
 *
 * Latches: the leaf is write-latched, or private.
 * Order: the store of the live bitmap releases the entry's bytes.  It pairs
 * with the acquire of the bitmap in readers of ROWEX.
 */
static void
put_at(rt_leaf *l, int i, const uint8_t *suffix, uint32_t len, uint8_t fp)
{
	if (l->flags & RT_F_VAR)
	{
		uint32_t   *used = rt_leaf_u32(l, 1);
		rt_slot16 *sl = rt_var_slot(l, i);

		ax_copy_in((uint8_t *) l + *used, suffix, len);
		st(&sl->off, (uint16_t) *used);
		st(&sl->len, (uint16_t) len);
		__atomic_store_n(used, *used + len, __ATOMIC_RELAXED);
	}
	else
		ax_copy_in(rt_fix_entries(l) + (uint32_t) i * l->w, suffix, len);
	if (rt_leaf_has_fp(l))
		__atomic_store_n(rt_leaf_fp(l) + i, fp, __ATOMIC_RELAXED);
	AX_POINT("art.rowex.put");
	/* this publishes the entry */
	atomic_store_explicit(&l->live, ld(&l->live) | (1u << i), memory_order_release);
}

/* Write the entries of a leaf that is private still, all as long, from off on of each. */
static inline void
put_all(rt_leaf *l, const rt_ent *e, int n, uint32_t off)
{
	uint32_t	w = l->w;
	uint8_t    *to = rt_fix_entries(l);

	for (int i = 0; i < n; i++, to += w)
		ax_copy_few(to, e[i].p + off, w);
	if (w > AX_TID_BYTES)
		for (int i = 0; i < n; i++)
			l->body[i] = e[i].fp;
	atomic_init(&l->live, rt_all_live(n));
}

/* How a leaf lies in memory. */
typedef struct leaf_form
{
	int			cap;			/* entries it has room for */
	int			w;				/* bytes of each, where all are as long */
	int			flags;			/* RT_F_VAR, RT_F_ONE, or 0 */
	uint32_t	size;
	uint32_t	total;			/* what the allocator makes of that */
} leaf_form;

/* The form of a leaf of e[0..n), from off on, with room for cap entries if it can have. */
static inline leaf_form
form_of(const rt_ent *e, int n, uint32_t off, int cap)
{
	leaf_form	f = {.cap = cap < n ? n : cap};
	uint32_t	heap = 0;

	if (is_fixed(e, (uint64_t) n, off))
	{
		f.w = (int) (e[0].len - off);
		while (f.cap > n && rt_fix_size(f.cap, f.w) > RT_FIX_BYTES)
			f.cap--;
		f.size = rt_fix_size(f.cap, f.w);
		f.total = ax_alloc_size(f.size);
		/* no more than would fit in another one: rt_leaf_fits */
		while (f.cap < RT_LEAF_MAX && rt_fix_size(f.cap + 1, f.w) <= f.total &&
			   rt_fix_size(f.cap + 1, f.w) <= RT_FIX_BYTES)
			f.cap++;
		return f;
	}
	for (int i = 0; i < n; i++)
		heap += e[i].len - off;
	if (n == 1 && rt_var_slots_off(4) + 16 + heap > RT_VAR_BYTES / 4)
	{
		f.flags = RT_F_ONE;
		f.cap = 1;
		f.size = 24 + heap;
	}
	else
	{
		f.flags = RT_F_VAR;
		/* room for as many more of the mean length */
		for (;; f.cap--)
		{
			f.size = rt_var_slots_off(f.cap) + 4 * (uint32_t) f.cap + heap +
				heap / (uint32_t) n * (uint32_t) (f.cap - n);
			if (f.cap == n || f.size <= RT_VAR_BYTES)
				break;
		}
	}
	f.total = ax_alloc_size(f.size);
	return f;
}

rt_ref
rt_leaf_new(ax_ctx *cx, ax_store *s, const rt_ent *e, int n, uint32_t off,
			int cap, bool reserve)
{
	const leaf_form f = form_of(e, n, off, cap);
	rt_leaf    *l = ax_alloc(cx, s, f.size, reserve);
	uint32_t	lines = f.total / AX_LINE;

	if (!l)
		return 0;
	atomic_init(&l->word, AX_WORD_INIT);
	atomic_init(&l->live, 0);
	l->cap = (uint8_t) f.cap;
	l->w = (uint8_t) f.w;
	l->flags = (uint8_t) f.flags;
	atomic_init(&l->used, (uint8_t) n);
	if (f.flags == RT_F_ONE)
	{
		*rt_leaf_u32(l, 0) = f.size;
		*rt_leaf_u32(l, 1) = e[0].len - off;
		memcpy(l->body + 8, e[0].p + off, e[0].len - off);
		atomic_init(&l->live, 1);
	}
	else if (f.flags == 0)
		put_all(l, e, n, off);
	else
	{
		/* not beyond what a copy of the entries has room for */
		*rt_leaf_u32(l, 0) = f.total < RT_VAR_BYTES ? f.total : RT_VAR_BYTES;
		*rt_leaf_u32(l, 1) = rt_var_slots_off(f.cap) + 4 * (uint32_t) f.cap;
		memset(rt_var_slot(l, 0), 0, 4 * (size_t) f.cap);
		for (int i = 0; i < n; i++)
			put_at(l, i, e[i].p + off, e[i].len - off, e[i].fp);
	}
	AX_COUNT(cx, s, leaves, 1);
	return (uint64_t) (uintptr_t) l | RT_LEAF |
		((uint64_t) (lines > 255 ? 255 : lines) << 48);
}

void
rt_leaf_unalloc(ax_ctx *cx, ax_store *s, rt_leaf *l)
{
	AX_COUNT(cx, s, leaves, -1);
	ax_unalloc(cx, s, l, rt_leaf_size(l));
}

void
rt_leaf_retire(ax_ctx *cx, ax_store *s, rt_leaf *l)
{
	AX_ASSERT(ax_body(cx), ld(&l->word) & AX_OBSOLETE);
	AX_COUNT(cx, s, leaves, -1);
	ax_retire(cx, s, l, rt_leaf_size(l));
}

/*
 * Is the latch word a leaf's or a node's?  A leaf has had entries (used),
 * where a node has the highest byte of its prefix's length.  On little-endian
 * machines; asked for by elision only.
 */
uint32_t
rt_object_bytes(const ax_word *w)
{
	rt_leaf   *l = (rt_leaf *) (uintptr_t) w;
	rt_hdr    *h = (rt_hdr *) (uintptr_t) w;

	return ld(&l->used) ? rt_leaf_size(l) : rt_node_size(h->kind, h->plen);
}

int
rt_leaf_find(rt_leaf *l, const uint8_t *suffix, uint32_t len, uint8_t fp)
{
	uint32_t	m = rt_leaf_live(l);

	if (ax_likely(l->flags == 0))
	{
		uint32_t	w = l->w;
		const uint8_t *base;

		if (w != len)
			return -1;
		if (w > AX_TID_BYTES)
		{
			m &= rt_fp_match(l->body, l->cap, fp);
			base = l->body + l->cap;
		}
		else
			base = l->body;
		while (m)
		{
			int			i = __builtin_ctz(m);

			AX_POINT("art.leaf.matched");
			if (ax_equal(base + (uint32_t) i * w, suffix, w))
				return i;
			m &= m - 1;
		}
		return -1;
	}
	if (l->flags & RT_F_VAR)
		m &= rt_fp_match(rt_leaf_fp(l), l->cap, fp);
	while (m)
	{
		int			i = __builtin_ctz(m);
		uint32_t	n;
		const uint8_t *p = rt_leaf_entry(l, i, &n);

		AX_POINT("art.leaf.matched");
		if (n == len && ax_equal(p, suffix, n))
			return i;
		m &= m - 1;
	}
	return -1;
}

bool
rt_leaf_room(rt_leaf *l, uint32_t len, bool append)
{
	if (ld(&l->live) == rt_all_live(l->cap) || (l->flags & RT_F_ONE))
		return false;
	if (append && ld(&l->used) >= l->cap)
		return false;
	if (l->flags & RT_F_VAR)
		return __atomic_load_n(rt_leaf_u32(l, 1), __ATOMIC_RELAXED) + len <= *rt_leaf_u32(l, 0);
	return l->w == len;
}

bool
rt_leaf_put(rt_leaf *l, const uint8_t *suffix, uint32_t len, uint8_t fp, bool append)
{
	int			i;

	if (!rt_leaf_room(l, len, append))
		return false;
	if (append)
	{
		i = ld(&l->used);
		st(&l->used, (uint8_t) (i + 1));
	}
	else
		i = __builtin_ctz(~ld(&l->live));
	put_at(l, i, suffix, len, fp);
	return true;
}

/* The same where all are as long.  Such a leaf is smaller than buf. */
static inline int
fixed_ents(rt_leaf *l, uint32_t m, rt_ent *e, uint8_t *buf)
{
	const uint8_t *base = rt_fix_entries(l);
	uint32_t	w = l->w;
	int			n = 0;

	for (; m; m &= m - 1, buf += w, n++)
	{
		int			i = __builtin_ctz(m);

		ax_copy_few(buf, base + (uint32_t) i * w, w);
		e[n].p = buf;
		e[n].len = w;
		e[n].fp = w > AX_TID_BYTES ? ax_load1(l->body + i) : 0;
	}
	return n;
}

int
rt_leaf_ents(rt_leaf *l, rt_ent *e, uint8_t *buf)
{
	uint32_t	m = rt_leaf_live(l) & rt_all_live(l->cap);
	uint32_t	used = 0;
	int			n = 0;

	if (ax_likely(l->flags == 0))
		return fixed_ents(l, m, e, buf);
	for (; m; m &= m - 1)
	{
		int			i = __builtin_ctz(m);
		uint32_t	len;
		const uint8_t *p = rt_leaf_entry(l, i, &len);

		if (l->flags & RT_F_ONE)
		{
			/* so long that the bytes hashed are all in the suffix */
			e[n].p = p;
			e[n].fp = rt_fp(p, len - AX_TID_BYTES);
		}
		else
		{
			if (used + len > RT_VAR_BYTES)
				break;			/* torn */
			ax_copy_out(buf + used, p, len);
			e[n].p = buf + used;
			e[n].fp = rt_leaf_has_fp(l) ? ax_load1(rt_leaf_fp(l) + i) : 0;
			used += len;
		}
		e[n].len = len;
		n++;
	}
	return n;
}
