/*
 * bt_page.c
 *	  Pages of the B+-tree that are latched, or private: building, putting a
 *	  key in, taking one out.
 *
 * src/core/btree/README.md: The B+-tree
 */
#include "bt_page.h"

/* Is the page a fixed leaf? */
static inline bool
is_fixed_leaf(const bt_page *p)
{
	return p->tail != BT_VAR;
}

/* ---- bytes that readers may be reading ---- */

/* memmove() of bytes that readers may be reading. */
static void
move1(uint8_t *dst, const uint8_t *src, uint32_t n)
{
#ifdef AX_TSAN
	if (dst < src)
		for (uint32_t i = 0; i < n; i++)
			__atomic_store_n(dst + i, src[i], __ATOMIC_RELAXED);
	else
		for (uint32_t i = n; i-- > 0;)
			__atomic_store_n(dst + i, src[i], __ATOMIC_RELAXED);
#else
	memmove(dst, src, n);
#endif
}

/* The same for words of eight bytes. */
static void
move8(_Atomic uint64_t *dst, _Atomic uint64_t *src, uint32_t n)
{
#ifdef AX_TSAN
	if (dst < src)
		for (uint32_t i = 0; i < n; i++)
			bt_st(&dst[i], bt_ld(&src[i]));
	else
		for (uint32_t i = n; i-- > 0;)
			bt_st(&dst[i], bt_ld(&src[i]));
#else
	memmove((void *) dst, (const void *) src, 8u * n);
#endif
}

/* The same for words of four bytes. */
static void
move4(_Atomic uint32_t *dst, _Atomic uint32_t *src, uint32_t n)
{
#ifdef AX_TSAN
	if (dst < src)
		for (uint32_t i = 0; i < n; i++)
			bt_st(&dst[i], bt_ld(&src[i]));
	else
		for (uint32_t i = n; i-- > 0;)
			bt_st(&dst[i], bt_ld(&src[i]));
#else
	memmove((void *) dst, (const void *) src, 4u * n);
#endif
}

/* ---- search ---- */

/* As a rule one entry has the head, or all of a page of duplicates. */
int
bt_find_tie(const bt_page *p, const ax_guard *g, int base, uint64_t h, const uint8_t *k,
			uint32_t len, bool after)
{
	_Atomic uint64_t *heads = bt_heads(p);
	const int	n = bt_count(p);
	bool		same = false;
	int			end = base + 1;
	int			left;

	if (end < n && bt_ld(&heads[end]) == h)
	{
		int			lo = end,
					hi = n;

		while (lo < hi)
		{
			int			mid = (lo + hi) / 2;

			if (bt_ld(&heads[mid]) <= h)
				lo = mid + 1;
			else
				hi = mid;
		}
		end = lo;
	}
	else if (!after)
	{
		/* one: mostly it is the key */
		int			b = bt_same(p, g, base, k, len);

		if (b)
			return b < 0 ? -1 : 2 * base + 1;
	}
	left = end;
	while (base < left)
	{
		int			mid = (base + left) / 2;
		int			b = bt_tie_before(p, g, mid, k, len, after);

		if (b < 0)
			return -1;
		if (b)
			base = mid + 1;
		else
			left = mid;
	}
	if (!after && base < end)
	{
		int			b = bt_same(p, g, base, k, len);

		if (b < 0)
			return -1;
		same = b;
	}
	return 2 * base + same;
}

/* ---- views ---- */

void
bt_get(const bt_page *p, int i, bt_view *v)
{
	v->blob = NULL;
	v->a = bt_prefix(p);
	v->an = p->plen;
	v->head = bt_ld(&bt_heads(p)[i]);
	v->rn = 0;
	v->r = NULL;
	if (is_fixed_leaf(p))
	{
		v->hn = 8;
		v->rn = p->tail;
		v->r = bt_tails(p) + (uint32_t) i * p->tail;
	}
	else
	{
		uint32_t	slot = bt_ld(&bt_slots(p)[i]);
		uint32_t	len = slot >> 16;

		if (len == BT_IS_BLOB)
		{
			v->blob = bt_blob_of(p, NULL, slot);
			v->a = v->blob->bytes;
			v->an = v->blob->len;
			v->hn = 0;
			return;
		}
		v->hn = len < 8 ? len : 8;
		if (len > 8)
		{
			v->rn = len - 8;
			v->r = (const uint8_t *) p + (slot & 0xFFFF);
		}
	}
}

void
bt_key_view(const uint8_t *key, uint32_t len, bt_blob *blob, bt_view *v)
{
	v->a = blob ? blob->bytes : key;
	v->an = len;
	v->hn = v->rn = 0;
	v->head = 0;
	v->r = NULL;
	v->blob = blob;
}

void
bt_view_bytes(const bt_view *v, uint32_t from, uint32_t len, uint8_t *out)
{
	if (from < v->an)
	{
		uint32_t	m = v->an - from < len ? v->an - from : len;

		memcpy(out, v->a + from, m);
		out += m;
		from += m;
		len -= m;
	}
	if (len == 0)
		return;
	from -= v->an;
	if (from < v->hn)
	{
		uint64_t	be = __builtin_bswap64(v->head);
		uint32_t	m = v->hn - from < len ? v->hn - from : len;

		memcpy(out, (const uint8_t *) &be + from, m);
		out += m;
		from += m;
		len -= m;
	}
	if (len)
		memcpy(out, v->r + (from - v->hn), len);
}

static inline uint8_t
view_byte(const bt_view *v, uint32_t i)
{
	if (i < v->an)
		return v->a[i];
	i -= v->an;
	if (i < v->hn)
		return (uint8_t) (v->head >> (56 - 8 * i));
	return v->r[i - v->hn];
}

uint32_t
bt_common(const bt_view *a, const bt_view *b)
{
	uint32_t	la = bt_len(a);
	uint32_t	lb = bt_len(b);
	uint32_t	n = la < lb ? la : lb;
	uint32_t	i = 0;

	while (i < n && view_byte(a, i) == view_byte(b, i))
		i++;
	return i;
}

/* ---- blobs ---- */

static inline uint32_t
blob_size(uint32_t len)
{
	return (uint32_t) offsetof(bt_blob, bytes) + len;
}

bt_blob *
bt_blob_new(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	bt_blob    *b = ax_alloc(cx, s, blob_size(len), false);

	if (b)
	{
		b->len = len;
		memcpy(b->bytes, key, len);
	}
	return b;
}

void
bt_blob_free(ax_ctx *cx, ax_store *s, bt_blob *b)
{
	ax_unalloc(cx, s, b, blob_size(b->len));
}

void
bt_blob_retire(ax_ctx *cx, ax_store *s, bt_blob *b)
{
	ax_retire(cx, s, b, blob_size(b->len));
}

/* ---- building ---- */

/* Bytes of the heap that a key takes behind the prefix. */
static inline uint32_t
heap_need(const bt_view *v, uint32_t plen)
{
	uint32_t	len;

	if (v->blob)
		return 8;
	len = bt_len(v) - plen;
	return len > 8 ? len - 8 : 0;
}

typedef struct bt_plan
{
	uint32_t	plen;
	uint32_t	tail;			/* BT_VAR */
	uint32_t	cap;
} bt_plan;

/*
 * The layout for n keys; false when they do not fit.  spare: so many bytes are left for long
 * keys to come, if one in eight of the slots is, too.
 */
static bool
plan_with(uint32_t size, bool inner, const bt_view *v, int n, uint32_t plen, uint32_t spare,
		  bt_plan *pl)
{
	uint32_t	avail;
	uint32_t	len = n ? bt_len(&v[0]) : 0;
	uint32_t	heap = 0;
	uint32_t	slot = inner ? 20 : 12;
	uint32_t	cap;
	bool		same = !inner && n > 0;

	if (plen > BT_MAX_PLEN)
		plen = BT_MAX_PLEN;
	if (plen > size / 8)
		plen = size / 8;
	pl->plen = plen;
	for (int i = 0; i < n && same; i++)
		same = v[i].blob == NULL && bt_len(&v[i]) == len;
	if (same && len >= 8)
	{
		/* a whole head of every key, and no more of the prefix */
		if (plen > len - 8)
			plen = len - 8;
		pl->plen = plen;
		avail = size - BT_HEAD - plen;
		pl->tail = len - plen - 8;
		pl->cap = avail / (8 + pl->tail);
		if (pl->cap > BT_MAX_CAP)
			pl->cap = BT_MAX_CAP;
		return (uint32_t) n <= pl->cap;
	}
	pl->tail = BT_VAR;
	avail = size - BT_HEAD - plen;
	if (inner)
		avail -= 8;
	for (int i = 0; i < n; i++)
		heap += heap_need(&v[i], plen);
	if ((uint32_t) n * slot + heap > avail)
		return false;
	/* as many slots as will use up the heap if keys go on like these */
	cap = (uint32_t) (((uint64_t) avail * (n ? n : 1)) /
					  ((uint64_t) slot * (n ? n : 1) + (n ? heap : 8)));
	cap &= ~1u;
	while (cap * slot + heap > avail)
		cap -= 2;
	while (spare && cap * slot + heap + spare > avail && cap - 2 >= (uint32_t) n + 1 + cap / 8)
		cap -= 2;
	if (cap < (uint32_t) n)
		cap = ((uint32_t) n + 1) & ~1u;
	if (cap > BT_MAX_CAP)
		cap = BT_MAX_CAP;
	pl->cap = cap;
	return cap * slot + heap <= avail && (uint32_t) n <= cap;
}

/*
 * The same; without the prefix if that is what it takes (it saves nothing for
 * long keys, which lie elsewhere).
 */
static bool
plan_page(uint32_t size, bool inner, const bt_view *v, int n, uint32_t plen, uint32_t spare,
		  bt_plan *pl)
{
	return plan_with(size, inner, v, n, plen, spare, pl) ||
		(plen > 0 && plan_with(size, inner, v, n, 0, spare, pl));
}

bool
bt_fits(uint32_t size, bool inner, const bt_view *v, int n, uint32_t plen)
{
	bt_plan		pl;

	return plan_page(size, inner, v, n, plen, 0, &pl);
}

/* Put a key's bytes in, at place i of a page whose arrays have a hole there. */
static void
fill_entry(bt_page *p, int i, const bt_view *v)
{
	uint8_t		head[8] = {0};
	uint32_t	len = bt_len(v) - p->plen;
	uint32_t	hn = len < 8 ? len : 8;

	if (v->hn == 0 && len >= 8)
		memcpy(head, v->a + p->plen, 8);	/* in one piece */
	else
		bt_view_bytes(v, p->plen, hn, head);
	bt_st(&bt_heads(p)[i], ax_be8(head, 8));
	if (is_fixed_leaf(p))
	{
		uint8_t    *t = bt_tails(p) + (uint32_t) i * p->tail;

#ifdef AX_TSAN
		uint8_t		tmp[65536];

		bt_view_bytes(v, p->plen + 8u, p->tail, tmp);
		ax_copy_in(t, tmp, p->tail);
#else
		bt_view_bytes(v, p->plen + 8u, p->tail, t);
#endif
	}
	else
	{
		uint32_t	need = heap_need(v, p->plen);
		uint32_t	off = bt_ld(&p->heap) - need;

		if (v->blob)
		{
			uint64_t	x = (uint64_t) (uintptr_t) v->blob;

			ax_copy_in((uint8_t *) p + off, (const uint8_t *) &x, 8);
			len = BT_IS_BLOB;
		}
		else if (need)
		{
#ifdef AX_TSAN
			uint8_t		tmp[65536];

			bt_view_bytes(v, p->plen + 8u, need, tmp);
			ax_copy_in((uint8_t *) p + off, tmp, need);
#else
			bt_view_bytes(v, p->plen + 8u, need, (uint8_t *) p + off);
#endif
		}
		bt_st(&p->heap, (uint16_t) off);
		bt_st(&bt_slots(p)[i], off | len << 16);
	}
}

bt_page *
bt_alloc(ax_ctx *cx, ax_store *s, int level, bool may_reserve)
{
	return ax_alloc(cx, s, bt_page_size(s, level), may_reserve);
}

void
bt_unalloc(ax_ctx *cx, ax_store *s, int level, bt_page *p)
{
	if (p)
		ax_unalloc(cx, s, p, bt_page_size(s, level));
}

void
bt_build(ax_ctx *cx, ax_store *s, bt_page *p, const bt_contents *of)
{
	const int	level = of->level;
	const int	n = of->n;
	const bt_view *v = of->v;
	uint32_t	size = bt_page_size(s, level);
	bt_plan		pl;

	AX_ENSURE(ax_body(cx), plan_page(size, level > 0, v, n, of->plen, of->spare, &pl));
#ifdef AX_DEBUG
	for (int i = 0; i < n; i++)
	{
		uint8_t		begins[BT_MAX_PLEN];

		AX_ENSURE(ax_body(cx), bt_len(&v[i]) >= pl.plen);
		bt_view_bytes(&v[i], 0, pl.plen, begins);
		AX_ENSURE(ax_body(cx), pl.plen == 0 || memcmp(begins, of->prefix, pl.plen) == 0);
	}
#endif
	atomic_store_explicit(&p->word, AX_WORD_INIT, memory_order_relaxed);
	p->cap = (uint16_t) pl.cap;
	p->tail = (uint16_t) pl.tail;
	p->plen = (uint8_t) pl.plen;
	p->level = (uint8_t) level;
	p->size = size;
	bt_st(&p->n, (uint16_t) n);
	bt_st(&p->heap, (uint16_t) (size - pl.plen));
	bt_st(&p->dead, 0);
	if (pl.plen)
		memcpy((uint8_t *) p + size - pl.plen, of->prefix, pl.plen);
	for (int i = 0; i < n; i++)
		fill_entry(p, i, &v[i]);
	if (level)
	{
		for (int i = 0; i <= n; i++)
			bt_st(&bt_children(p)[i], (uint64_t) (uintptr_t) of->child[i]);
		AX_COUNT(cx, s, n4, 1);
	}
	else
		AX_COUNT(cx, s, leaves, 1);
}

static void
uncount_page(ax_ctx *cx, ax_store *s, const bt_page *p)
{
	if (p->level)
		AX_COUNT(cx, s, n4, -1);
	else
		AX_COUNT(cx, s, leaves, -1);
}

void
bt_unbuild(ax_ctx *cx, ax_store *s, bt_page *p)
{
	uncount_page(cx, s, p);
	ax_unalloc(cx, s, p, p->size);
}

void
bt_retire(ax_ctx *cx, ax_store *s, bt_page *p)
{
	uncount_page(cx, s, p);
	ax_retire(cx, s, p, p->size);
}

/*
 * The shortest separator between two neighbours: what the right one begins
 * with, as far as it differs.  Its bytes go to buf (a page's quarter), or, if
 * they are too many, to a blob; false: no memory for that.
 */
bool
bt_separator(ax_ctx *cx, ax_store *s, const bt_view *left, const bt_view *right,
			 uint8_t *buf, bt_view *sep)
{
	uint32_t	n = bt_common(left, right) + 1;
	bt_blob    *b;

	if (n <= bt_max_inline(s->page_size))
	{
		bt_view_bytes(right, 0, n, buf);
		bt_key_view(buf, n, NULL, sep);
		return true;
	}
	b = ax_alloc(cx, s, blob_size(n), false);
	if (!b)
		return false;
	b->len = n;
	bt_view_bytes(right, 0, n, b->bytes);
	bt_key_view(NULL, n, b, sep);
	return true;
}

/* ---- changes in place ---- */

/* Rewrite the heap without what nothing refers to. */
static void
compact_heap(bt_page *p)
{
	uint8_t		copy[65536];
	uint32_t	lo = bt_ld(&p->heap);
	uint32_t	end = p->size - p->plen;
	uint32_t	to = end;
	int			n = bt_count(p);

	memcpy(copy + lo, (uint8_t *) p + lo, end - lo);
	for (int i = 0; i < n; i++)
	{
		uint32_t	slot = bt_ld(&bt_slots(p)[i]);
		uint32_t	len = slot >> 16;
		uint32_t	bytes = len == BT_IS_BLOB ? 8 : len > 8 ? len - 8 : 0;

		to -= bytes;
		ax_copy_in((uint8_t *) p + to, copy + (slot & 0xFFFF), bytes);
		bt_st(&bt_slots(p)[i], to | len << 16);
	}
	bt_st(&p->heap, (uint16_t) to);
	bt_st(&p->dead, 0);
}

bool
bt_put(bt_page *p, int i, const bt_view *v, bt_page *right)
{
	int			n = bt_count(p);
	uint32_t	len = bt_len(v) - p->plen;

	if (n >= p->cap)
		return false;
	if (is_fixed_leaf(p))
	{
		uint8_t    *t = bt_tails(p);

		if (len != 8u + p->tail || v->blob)
			return false;
		move1(t + (uint32_t) (i + 1) * p->tail, t + (uint32_t) i * p->tail,
			  (uint32_t) (n - i) * p->tail);
	}
	else
	{
		uint32_t	need = heap_need(v, p->plen);
		uint32_t	space = bt_ld(&p->heap) - bt_arrays_end(p);

		if (need > space)
		{
			if (need > space + bt_ld(&p->dead))
				return false;
			compact_heap(p);
		}
		move4(&bt_slots(p)[i + 1], &bt_slots(p)[i], (uint32_t) (n - i));
		if (p->level)
		{
			move8(&bt_children(p)[i + 2], &bt_children(p)[i + 1], (uint32_t) (n - i));
			atomic_store_explicit(&bt_children(p)[i + 1], (uint64_t) (uintptr_t) right,
								  memory_order_release);
		}
	}
	move8(&bt_heads(p)[i + 1], &bt_heads(p)[i], (uint32_t) (n - i));
	fill_entry(p, i, v);
	atomic_store_explicit(&p->n, (uint16_t) (n + 1), memory_order_release);
	return true;
}

void
bt_del(bt_page *p, int i)
{
	int			n = bt_count(p);
	uint32_t	rest = (uint32_t) (n - i - 1);

	if (is_fixed_leaf(p))
	{
		uint8_t    *t = bt_tails(p);

		move1(t + (uint32_t) i * p->tail, t + (uint32_t) (i + 1) * p->tail, rest * p->tail);
	}
	else
	{
		uint32_t	slot = bt_ld(&bt_slots(p)[i]);
		uint32_t	len = slot >> 16;

		bt_st(&p->dead, (uint16_t) (bt_ld(&p->dead) +
									(len == BT_IS_BLOB ? 8 : len > 8 ? len - 8 : 0)));
		move4(&bt_slots(p)[i], &bt_slots(p)[i + 1], rest);
		if (p->level)
			move8(&bt_children(p)[i + 1], &bt_children(p)[i + 2], rest);
	}
	move8(&bt_heads(p)[i], &bt_heads(p)[i + 1], rest);
	bt_st(&p->n, (uint16_t) (n - 1));
}

uint32_t
bt_used(const bt_page *p)
{
	uint32_t	n = (uint32_t) bt_count(p);

	if (is_fixed_leaf(p))
		return n * (8u + p->tail);
	return n * (p->level ? 20 : 12) + (p->size - p->plen - bt_ld(&((bt_page *) (uintptr_t) p)->heap)) -
		bt_ld(&((bt_page *) (uintptr_t) p)->dead);
}

uint32_t
bt_object_bytes(const ax_word *w)
{
	return ((const bt_page *) (uintptr_t) w)->size;
}
