/*
 * hy_node.c
 *	  HydraList's data nodes: finding a key, putting one in, taking one out, and making
 *	  bodies and headers.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "hy_list.h"

#define SPREAD	8				/* slots that a body grows by, at least */

/* ---- search ---- */

/*
 * The slot of a key of the node's range; -1: it is not there, -2: the node changed.
 *
 * A key of the range begins with its prefix, so that need not be compared.
 */
int
hy_find_key(const hy_view *is, const ax_guard *g, const uint8_t *key, uint32_t len)
{
	const hy_body *b = is->body;
	uint64_t	m = hy_match(b, hy_fp(key, len - AX_TID_BYTES)) & hy_live(is);

	if (ax_unlikely(len < b->plen))
		return -2;
	for (; m; m &= m - 1)
	{
		int			i = __builtin_ctzll(m);
		const uint8_t *rest;
		uint32_t	n;
		bt_blob    *blob;

		if (i >= b->cap || !hy_rest(b, g, i, &rest, &n, &blob))
			return -2;
		if (blob ? n == len && memcmp(rest, key, len) == 0 :
			n == len - b->plen && ax_equal(rest, key + b->plen, n))
			return i;
	}
	return -1;
}

void
hy_get(const hy_body *b, int i, bt_view *v)
{
	const uint8_t *rest = NULL;
	uint32_t	n = 0;
	bt_blob    *blob;

	(void) hy_rest(b, NULL, i, &rest, &n, &blob);
	if (blob)
	{
		bt_key_view(NULL, n, blob, v);
		return;
	}
	*v = (bt_view) {.a = hy_prefix(b), .an = b->plen, .r = rest, .rn = n};
}

int
hy_cmp_view(const bt_view *v, const uint8_t *key, uint32_t len)
{
	uint32_t	m = v->an < len ? v->an : len;
	int			c = m ? memcmp(v->a, key, m) : 0;

	if (c || len <= v->an)
		return c ? c : bt_len(v) > len;
	key += v->an;
	len -= v->an;
	m = v->rn < len ? v->rn : len;
	c = m ? memcmp(v->r, key, m) : 0;
	return c ? c : v->rn < len ? -1 : v->rn > len;
}

/* Up to eight bytes of a key from "from" on, as a number. */
static uint64_t
head_of(const bt_view *v, uint32_t from)
{
	uint8_t		h[8] = {0};
	uint32_t	len = bt_len(v);

	if (len <= from)
		return 0;
	if (ax_likely(v->hn == 0 && from >= v->an))
		return ax_be8(v->r + (from - v->an), len - from);
	if (v->hn + v->rn == 0)
		return ax_be8(v->a + from, len - from);
	bt_view_bytes(v, from, len - from < 8 ? len - from : 8, h);
	return ax_be8(h, 8);
}

/* Do two keys rise? */
static bool
rise(const bt_view *a, const bt_view *b)
{
	uint32_t	i = bt_common(a, b);
	uint8_t		x = 0,
				y = 0;

	if (i == bt_len(a) || i == bt_len(b))
		return bt_len(a) <= bt_len(b);
	bt_view_bytes(a, i, 1, &x);
	bt_view_bytes(b, i, 1, &y);
	return x < y;
}

/* Things to sort: by heads, and where these are the same, by keys. */
typedef struct order
{
	const hy_entry *e;			/* of entries; NULL: of a body's slots, fixed or not */
	const hy_body *b;
	uint64_t	h[2 * HY_SLOTS];	/* by place */
	uint8_t		ix[2 * HY_SLOTS];	/* of entries or slots */
} order;

/* Do two, whose heads are the same, rise?  A fixed body's bytes may be changing. */
static bool
tie_rises(const order *o, uint8_t i, uint8_t j)
{
	bt_view		v,
				w;

	if (o->e)
		return rise(&o->e[i].v, &o->e[j].v);
	if (o->b->rest != HY_VAR)
	{
		const uint32_t rest = o->b->rest;
		const uint8_t *p = hy_data(o->b) + i * rest,
				   *q = hy_data(o->b) + j * rest;

		for (uint32_t k = 8; k < rest; k++)
		{
			int			c = (int) ax_load1(p + k) - (int) ax_load1(q + k);

			if (c)
				return c < 0;
		}
		return true;
	}
	hy_get(o->b, i, &v);
	hy_get(o->b, j, &w);
	return rise(&v, &w);
}

/* Sort places from..n by insertion. */
static void
insertion(order *o, int from, int n)
{
	for (int i = from + 1; i < n; i++)
	{
		const uint64_t h = o->h[i];
		const uint8_t x = o->ix[i];
		int			j = i;

		while (j > from && (o->h[j - 1] > h ||
							(o->h[j - 1] == h && !tie_rises(o, o->ix[j - 1], x))))
		{
			o->h[j] = o->h[j - 1];
			o->ix[j] = o->ix[j - 1];
			j--;
		}
		o->h[j] = h;
		o->ix[j] = x;
	}
}

/*
 * Sort n places: the indexes, in order, to "out".  A body begins with those that it was made
 * of, in order; so only the others are sorted, and merged with them.
 */
static void
sort(order *o, int n, uint8_t *out)
{
	int			m = n > 0,
				i = 0,
				j,
				k = 0;

	while (m < n && (o->h[m - 1] < o->h[m] ||
					 (o->h[m - 1] == o->h[m] && tie_rises(o, o->ix[m - 1], o->ix[m]))))
		m++;
	j = m;
	insertion(o, m, n);
	while (i < m && j < n)
	{
		bool		first = o->h[i] < o->h[j] ||
			(o->h[i] == o->h[j] && tie_rises(o, o->ix[i], o->ix[j]));

		out[k++] = first ? o->ix[i++] : o->ix[j++];
	}
	while (i < m)
		out[k++] = o->ix[i++];
	while (j < n)
		out[k++] = o->ix[j++];
}

void
hy_sort(hy_entry *e, int n, uint32_t skip)
{
	hy_entry	sorted[2 * HY_SLOTS];
	uint8_t		ix[2 * HY_SLOTS];
	order		o;

	o.e = e;
	for (int i = 0; i < n; i++)
	{
		o.h[i] = head_of(&e[i].v, skip);
		o.ix[i] = (uint8_t) i;
	}
	sort(&o, n, ix);
	for (int i = 0; i < n; i++)
		sorted[i] = e[ix[i]];
	memcpy(e, sorted, sizeof(*e) * (size_t) n);
}

/*
 * The slots in use in the keys' order.  A fixed body may be changing meanwhile, and the
 * order is then any.  Nobody writes one of the other kind.
 */
void
hy_order(const hy_body *b, uint64_t used, uint8_t *perm)
{
	order		o;
	int			n = 0;

	o.e = NULL;
	o.b = b;
	for (uint64_t m = used; m; m &= m - 1)
	{
		int			i = __builtin_ctzll(m);

		if (b->rest != HY_VAR)
			o.h[n] = ax_be8(hy_data(b) + (uint32_t) i * b->rest, b->rest);
		else
		{
			bt_view		v;

			hy_get(b, i, &v);
			o.h[n] = head_of(&v, b->plen);
		}
		o.ix[n++] = (uint8_t) i;
	}
	sort(&o, n, perm);
}

int
hy_add(hy_entry *e, int n, const uint8_t *key, uint32_t len, uint8_t fp, bt_blob *blob)
{
	hy_entry	mine = {.fp = fp};

	bt_key_view(key, len, blob, &mine.v);
	for (; n > 0 && hy_cmp_view(&e[n - 1].v, key, len) > 0; n--)
		e[n] = e[n - 1];
	e[n] = mine;
	return n;
}

/*
 * Where to cut n sorted entries; the one at "mine" is new.  Rising keys leave the node
 * full; else in the middle of the bytes.
 */
int
hy_cut(const hy_entry *e, int n, int mine)
{
	uint64_t	total = 0,
				sum = 0;
	int			m;

	if (mine == n - 1)
		return n - 1;
	for (int i = 0; i < n; i++)
		total += e[i].v.blob ? 12 : bt_len(&e[i].v) + 4;
	for (m = 0; m < n - 1 && sum * 2 < total; m++)
		sum += e[m].v.blob ? 12 : bt_len(&e[m].v) + 4;
	return m < 1 ? 1 : m;
}

int
hy_entries(const hy_body *b, uint64_t live, hy_entry *e)
{
	int			n = 0;

	for (uint64_t m = live; m; m &= m - 1)
	{
		int			i = __builtin_ctzll(m);

		hy_get(b, i, &e[n].v);
		e[n++].fp = ax_load1(&b->fp[i]);
	}
	return n;
}

bool
hy_copy(const hy_body *b, const ax_guard *g, uint8_t *to)
{
	ax_copy_out(to, (const uint8_t *) b, b->size);
	AX_POINT("hydra.copied");
	return ax_guard_valid(g);
}

/*
 * The order that somebody wrote down of this version, in which "used" were the slots.  False: none
 * did.  A reader who is late may have more slots than the order, and throws away what it takes.
 * Behind the order there are other slots of this body, or zeros.
 *
 * perm_of only rises, but for the moment in which it is HY_PERM_BUSY.  So no version is
 * written twice, and who finds the same version before and after has read what one wrote.
 */
bool
hy_told_order(hy_body *b, uint64_t version, uint64_t used, uint8_t *perm)
{
	const int	n = __builtin_popcountll(used);
	uint64_t	of = atomic_load_explicit(&b->perm_of, memory_order_acquire);

	if (of != version)
		return false;
	AX_POINT("hydra.perm_told");
	ax_copy_out(perm, hy_perm(b), (uint32_t) n);
	atomic_thread_fence(memory_order_acquire);
#ifdef AX_TSAN
	of = atomic_fetch_add_explicit(&b->perm_of, 0, memory_order_acq_rel);
#else
	of = atomic_load_explicit(&b->perm_of, memory_order_relaxed);
#endif
	return of == version;
}

/*
 * Write an order down, which its reader found true, in the place of that of "of", if that is still there.
 * The caller knows that this one is later.
 */
void
hy_tell_order(hy_body *b, uint64_t of, uint64_t version, const uint8_t *perm, int n)
{
	if (of == HY_PERM_BUSY ||
		!atomic_compare_exchange_strong_explicit(&b->perm_of, &of, HY_PERM_BUSY,
												 memory_order_acquire, memory_order_relaxed))
		return;
	atomic_thread_fence(memory_order_release);
	ax_copy_in(hy_perm(b), perm, (uint32_t) n);
	AX_POINT("hydra.perm_written");
	atomic_store_explicit(&b->perm_of, version, memory_order_release);
}

/* ---- changes in place ---- */

/* First byte behind the slots. */
static inline uint32_t
arrays_end(uint32_t cap)
{
	return HY_HEAD + 6 * cap;
}

bool
hy_room(const hy_body *b, uint32_t len, bool blob)
{
	uint64_t	all = b->cap == HY_SLOTS ? UINT64_MAX : (UINT64_C(1) << b->cap) - 1;

	if ((~hy_used(b) & all) == 0)
		return false;
	if (b->rest != HY_VAR)
		return !blob && len == (uint32_t) b->plen + b->rest;
	return (blob ? 8 : len - b->plen) + arrays_end(b->cap) <=
		bt_ld(&((hy_body *) (uintptr_t) b)->heap);
}

/* Put a key's bytes in slot i. */
static void
fill(hy_body *b, int i, const uint8_t *rest, uint32_t n, bt_blob *blob)
{
	uint64_t	x = (uint64_t) (uintptr_t) blob;
	uint32_t	off;

	if (b->rest != HY_VAR)
	{
		ax_copy_in(hy_data(b) + (uint32_t) i * b->rest, rest, n);
		return;
	}
	if (blob)
	{
		rest = (const uint8_t *) &x;
		n = 8;
	}
	off = bt_ld(&b->heap) - n;
	ax_copy_in((uint8_t *) b + off, rest, n);
	bt_st(&b->heap, (uint16_t) off);
	bt_st(&hy_slots(b)[i], off | (blob ? (uint32_t) HY_BLOB : n) << 16);
}

void
hy_put(hy_body *b, const uint8_t *key, uint32_t len, uint8_t fp, bt_blob *blob)
{
	uint64_t	used = hy_used(b);
	int			i = __builtin_ctzll(~used);

	fill(b, i, key + b->plen, len - b->plen, blob);
	__atomic_store_n(&b->fp[i], fp, __ATOMIC_RELAXED);
	atomic_store_explicit(&b->used, used | UINT64_C(1) << i, memory_order_release);
}

void
hy_del(hy_body *b, int i)
{
	if (b->rest == HY_VAR)
	{
		uint32_t	n = bt_ld(&hy_slots(b)[i]) >> 16;

		bt_st(&b->dead, (uint16_t) (bt_ld(&b->dead) + (n == HY_BLOB ? 8 : n)));
	}
	atomic_store_explicit(&b->used, hy_used(b) & ~(UINT64_C(1) << i), memory_order_release);
}

/* ---- making ---- */

typedef struct plan
{
	uint32_t	plen;
	uint32_t	rest;
	uint32_t	cap;
	uint32_t	size;
} plan;

/* Bytes of the heap that an entry takes. */
static inline uint32_t
need(const bt_view *v, uint32_t plen)
{
	return v->blob ? 8 : bt_len(v) - plen;
}

/*
 * The layout for n keys, and room for "spare" more, if there can be any.  False: they do
 * not fit, with or without.
 */
static bool
plan_body(const hy_entry *e, int n, int spare, uint32_t plen, plan *p)
{
	uint32_t	len = n ? bt_len(&e[0].v) : 0;
	uint32_t	heap = 0;
	bool		same = n > 0 && len - plen <= HY_MAX_REST;

	if (n > HY_SLOTS)
		return false;
	p->plen = plen;
	p->cap = (uint32_t) (n + spare < HY_SLOTS ? n + spare : HY_SLOTS);
	p->cap = (p->cap + SPREAD - 1) / SPREAD * SPREAD;
	for (int i = 0; i < n; i++)
	{
		same = same && !e[i].v.blob && bt_len(&e[i].v) == len;
		heap += need(&e[i].v, plen);
	}
	if (same)
	{
		p->rest = len - plen;
		p->size = HY_HEAD + p->cap * (2 + p->rest) + plen;
	}
	else
	{
		uint32_t	want = n ? heap + heap * (p->cap - (uint32_t) n) / (uint32_t) n : 0;

		p->rest = HY_VAR;
		want += spare ? 64 : 0;
		p->size = arrays_end(p->cap) + heap + plen;
		/* free slots take room, too, and rather none than no body */
		if (p->size > HY_MAX_BODY)
			return spare > 0 && plan_body(e, n, 0, plen, p);
		p->size = arrays_end(p->cap) + want + plen;
		if (p->size > HY_MAX_BODY)
			p->size = HY_MAX_BODY;
	}
	if (p->size < HY_LEAST)
		p->size = HY_LEAST;
	/* what the allocator gives in any case; offsets are 16 bits */
	if (ax_alloc_size(p->size) <= HY_MAX_BODY)
		p->size = ax_alloc_size(p->size);
	return true;
}

bool
hy_fits(const hy_entry *e, int n, uint32_t plen)
{
	plan		p;

	return plan_body(e, n, 0, plen, &p);
}

hy_body *
hy_make_body(ax_ctx *cx, ax_store *s, const hy_content *of, bool may_reserve)
{
	const int	n = of->n;
	const uint32_t plen = of->plen;
	plan		p;
	hy_body    *b;

	AX_ENSURE(ax_body(cx), plan_body(of->e, n, of->spare, plen, &p));
	b = ax_alloc(cx, s, p.size, may_reserve);
	if (!b)
		return NULL;
	memset(b, 0, p.size < HY_HEAD + 2 * HY_SLOTS ? p.size : HY_HEAD + 2 * HY_SLOTS);
	b->rest = (uint16_t) p.rest;
	b->plen = (uint8_t) plen;
	b->cap = (uint8_t) p.cap;
	b->size = p.size;
	bt_st(&b->heap, (uint16_t) (p.size - plen));
	if (plen)
		memcpy((uint8_t *) b + p.size - plen, of->prefix, plen);
	for (int i = 0; i < n; i++)
	{
		const bt_view *v = &of->e[i].v;
		uint8_t		buf[HY_LONG + HY_MAX_PLEN];
		uint32_t	len = bt_len(v);

		if (v->blob || v->an == len)
			fill(b, i, v->a + plen, len - plen, v->blob);
		else if (v->an <= plen)
			fill(b, i, v->r + (plen - v->an), len - plen, NULL);
		else
		{
			bt_view_bytes(v, plen, len - plen, buf);
			fill(b, i, buf, len - plen, NULL);
		}
		b->fp[i] = of->e[i].fp;
	}
	atomic_store_explicit(&b->used, n == HY_SLOTS ? UINT64_MAX : (UINT64_C(1) << n) - 1,
						  memory_order_relaxed);
	return b;
}

hy_body *
hy_grow(ax_ctx *cx, ax_store *s, const hy_body *from)
{
	const uint32_t cap = from->cap + SPREAD < HY_SLOTS ? from->cap + SPREAD : HY_SLOTS;
	const uint32_t size = ax_alloc_size(HY_HEAD + cap * (2u + from->rest) + from->plen);
	hy_body    *b = ax_alloc(cx, s, size, false);

	if (!b)
		return NULL;
	memcpy(b, from, HY_HEAD);
	atomic_store_explicit(&b->perm_of, 0, memory_order_relaxed);
	b->cap = (uint8_t) cap;
	b->size = size;
	bt_st(&b->heap, (uint16_t) (size - from->plen));
	memcpy(b->fp, from->fp, from->cap);
	memset(hy_perm(b), 0, cap);
	memcpy(hy_data(b), hy_data(from), (size_t) from->cap * from->rest);
	memcpy((uint8_t *) b + size - from->plen, hy_prefix(from), from->plen);
	return b;
}

uint32_t
hy_node_size(uint32_t alen)
{
	return (uint32_t) offsetof(hy_node, anchor) + alen;
}

hy_node *
hy_make_node(ax_ctx *cx, ax_store *s, const bt_view *anchor, bool may_reserve)
{
	uint32_t	alen = anchor ? bt_len(anchor) : 0;
	hy_node    *n = ax_alloc(cx, s, hy_node_size(alen), may_reserve);

	if (!n)
		return NULL;
	memset(n, 0, offsetof(hy_node, anchor));
	atomic_store_explicit(&n->word, AX_WORD_INIT, memory_order_relaxed);
	atomic_store_explicit(&n->shared, UINT32_MAX, memory_order_relaxed);
	n->alen = alen;
	if (anchor)
		bt_view_bytes(anchor, 0, alen, n->anchor);
	return n;
}

void
hy_drop_body(ax_ctx *cx, ax_store *s, hy_body *b)
{
	if (b)
		ax_unalloc(cx, s, b, b->size);
}

void
hy_drop_node(ax_ctx *cx, ax_store *s, hy_node *n)
{
	if (n)
		ax_unalloc(cx, s, n, hy_node_size(n->alen));
}

uint32_t
hy_range(const hy_node *lo, const hy_node *hi)
{
	uint32_t	n = 0;

	while (hi && n < lo->alen && n < hi->alen && n < HY_MAX_PLEN && lo->anchor[n] == hi->anchor[n])
		n++;
	return n;
}

hy_end
hy_end_at(const hy_node *n, hy_node *next)
{
	uint32_t	m = 0;

	if (!next)
		return (hy_end) {.shared = UINT32_MAX};
	while (m < n->alen && m < next->alen && n->anchor[m] == next->anchor[m])
		m++;
	return (hy_end) {.next = next, .bound = ax_be8(next->anchor + m, next->alen - m), .shared = m};
}

void
hy_set_end(hy_node *n, const hy_end *end)
{
	atomic_store_explicit(&n->right, end->next, memory_order_release);
	atomic_store_explicit(&n->bound, end->bound, memory_order_relaxed);
	atomic_store_explicit(&n->shared, end->shared, memory_order_relaxed);
}

void
hy_set_next(hy_node *n, hy_node *next)
{
	const hy_end end = hy_end_at(n, next);

	hy_set_end(n, &end);
}

void
hy_separator(const bt_view *left, const bt_view *right, bt_view *anchor)
{
	uint32_t	len = bt_common(left, right) + 1;

	*anchor = *right;
	anchor->blob = NULL;
	if (len <= anchor->an)
	{
		anchor->an = len;
		len = 0;
	}
	else
		len -= anchor->an;
	anchor->rn = len;
}

/*
 * Bytes as the search layer has them: eight, and 9 if more follow, else zeros up to eight and how
 * many they are.  So they sort as they did, and none begins another, which a radix tree wants.
 * Not whole: what all that begins with these bytes begins with.
 */
uint32_t
hy_encode(const uint8_t *key, uint32_t len, bool whole, uint8_t *buf)
{
	uint8_t    *p = buf;

	for (; len > 8; len -= 8)
	{
		memcpy(p, key, 8);
		p[8] = 9;
		p += 9;
		key += 8;
	}
	memset(p, 0, 8);
	if (len)
		memcpy(p, key, len);
	p[8] = (uint8_t) len;
	return (uint32_t) (p - buf) + (whole ? 9 : len);
}
