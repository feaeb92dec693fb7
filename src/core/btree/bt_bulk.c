/*
 * bt_bulk.c
 *	  Sorted load of the B+-tree into an empty generation: bottom-up, one open
 *	  page a level, published by one store.
 *
 * src/core/btree/README.md: The B+-tree
 */
#include "core/base/ax_call.h"
#include "bt_tree.h"

#define LEVELS 16
#define INNER_MAX (16384 / 20)	/* separators a page can have at most */

/* An open inner page: children, and separators as beginnings of keys. */
typedef struct open_page
{
	int			n;				/* children */
	uint32_t	bytes;			/* that the separators will take */
	bt_page    *child[INNER_MAX + 2];
	uint64_t	key[INNER_MAX + 2]; /* separator i is before child i */
	uint32_t	len[INNER_MAX + 2];
} open_page;

typedef struct load
{
	ax_ctx	   *cx;
	ax_store   *s;
	const ax_keys *keys;
	uint32_t	size;
	int			levels;
	open_page  *lv;				/* lv[0]: the parents of leaves */
} load;

/* How many bytes keys i - 1 and i begin with alike, and one more. */
static uint32_t
sep_len(const load *l, uint64_t i)
{
	const uint8_t *a = l->keys->p[i - 1];
	const uint8_t *b = l->keys->p[i];
	uint32_t	n = ax_key_len(l->keys, i);
	uint32_t	k = 0;

	while (k < n && a[k] == b[k])
		k++;
	return k + 1;
}

/* Free what hangs below a page that nobody saw, and its blobs. */
static void
free_below(load *l, bt_page *p)
{
	for (int i = 0; i < bt_count(p); i++)
	{
		bt_view		v;

		bt_get(p, i, &v);
		if (v.blob)
			bt_blob_free(l->cx, l->s, v.blob);
	}
	if (p->level)
		for (int i = 0; i <= bt_count(p); i++)
			free_below(l, bt_ref(&bt_children(p)[i]));
	bt_unbuild(l->cx, l->s, p);
}

static void
free_load(load *l)
{
	for (int k = 0; k < l->levels; k++)
		for (int i = 0; i < l->lv[k].n; i++)
			free_below(l, l->lv[k].child[i]);
}

static bool add_child(load *l, int k, bt_page *p, uint64_t key, uint32_t len);

/*
 * Close the open page of level k + 1 and hand it to the level above.
 */
static bool
close_page(load *l, int k)
{
	open_page  *o = &l->lv[k];
	bt_view		v[INNER_MAX + 2];
	bt_page    *p;
	int			n = o->n;
	int			made = 1;

	p = bt_alloc(l->cx, l->s, k + 1, false);
	if (!p)
		return false;
	for (; made < n; made++)
	{
		bt_blob    *b = NULL;

		if (o->len[made] > bt_max_inline(l->size))
		{
			b = bt_blob_new(l->cx, l->s, l->keys->p[o->key[made]], o->len[made]);
			if (!b)
				break;
		}
		bt_key_view(l->keys->p[o->key[made]], o->len[made], b, &v[made - 1]);
	}
	if (made < n)
	{
		while (--made > 0)
			if (v[made - 1].blob)
				bt_blob_free(l->cx, l->s, v[made - 1].blob);
		bt_unalloc(l->cx, l->s, k + 1, p);
		return false;
	}
	bt_build(l->cx, l->s, p, &(bt_contents) {.level = k + 1,.n = n - 1,.v = v,.child = o->child});
	o->n = 0;
	o->bytes = 0;
	return add_child(l, k + 1, p, o->key[0], o->len[0]);
}

/*
 * Append a page to the open one of level k + 1; (key, len): the separator
 * before it.  On failure the page is where free_all finds it.
 */
static bool
add_child(load *l, int k, bt_page *p, uint64_t key, uint32_t len)
{
	open_page  *o = &l->lv[k];
	uint32_t	room = bt_page_size(l->s, k + 1) - BT_HEAD - 8;
	uint32_t	need = 20 + (len > bt_max_inline(l->size) ? 8 : len > 8 ? len - 8 : 0);

	if (k == l->levels)
	{
		l->levels++;
		o->n = 0;
		o->bytes = 0;
	}
	/* a tenth stays free, and an even number of slots */
	if (o->n > 1 && o->bytes + need + 20 > room / 10 * 9 && !close_page(l, k))
	{
		o->child[o->n++] = p;
		return false;
	}
	if (o->n > 0)
		o->bytes += need;
	o->child[o->n] = p;
	o->key[o->n] = key;
	o->len[o->n] = len;
	o->n++;
	return true;
}

/* Bytes behind the header that m keys take in a page with such a prefix. */
static inline int64_t
leaf_need(int m, int blobs, int64_t bytes, bool uniform, uint32_t plen)
{
	int64_t		heap;

	if (uniform)
		return bytes - (int64_t) m * plen + plen;
	heap = bytes - (int64_t) (m - blobs) * (plen + 8);
	return 12 * (int64_t) m + (heap > 0 ? heap : 0) + 8 * (int64_t) blobs + plen + 12;
}

/*
 * How many keys from i on a leaf takes that is to be so full, and *plen, the length of
 * its prefix.  The bytes that a range has in common, and so how many keys fit, depend on
 * where it ends.  The largest end that will do is taken.
 */
static int
leaf_end(const load *l, uint64_t i, int fill, uint32_t *plen)
{
	const uint64_t n = l->keys->n;
	const uint32_t most = bt_max_inline(l->size);
	const int64_t room = (int64_t) (bt_page_size(l->s, 0) - BT_HEAD) * fill / 100;
	const uint32_t eighth = bt_page_size(l->s, 0) / 8;
	const uint32_t limit = eighth < BT_MAX_PLEN ? eighth : BT_MAX_PLEN;
	const uint32_t before = i ? sep_len(l, i) : 0;
	uint32_t	common = before < limit ? before : limit;	/* of all keys so far */
	int			m = 1,
				blobs = 0;
	int64_t		bytes = 0;
	bool		uniform = true;

	*plen = 0;
	for (int k = 1; k <= BT_MAX_CAP && i + (uint64_t) k <= n; k++)
	{
		uint64_t	x = i + (uint64_t) k;	/* the first key behind them */
		uint32_t	len = ax_key_len(l->keys, x - 1);
		uint32_t	pk = 0;

		if (len > most)
			blobs++;
		else
			bytes += len;
		if (len != ax_key_len(l->keys, i) || len > most || len < 8)
			uniform = false;
		if (common > len - AX_TID_BYTES)
			common = len - AX_TID_BYTES;
		if (x < n)
		{
			uint32_t	sep = sep_len(l, x);

			/* both ends' separators begin with that */
			pk = common < sep - 1 ? common : sep - 1;
			if (uniform && pk > len - 8)
				pk = len - 8;
			if (leaf_need(k, blobs, bytes, uniform, pk) <= room)
			{
				m = k;
				*plen = pk;
			}
			if (leaf_need(k, blobs, bytes, uniform, common) > room)
				break;
			/* what follows shares no more than that with what was before */
			if (sep - 1 < common)
				common = sep - 1;
		}
		else if (leaf_need(k, blobs, bytes, uniform, 0) <= room)
		{
			m = k;
			*plen = 0;
		}
	}
	return m;
}

/*
 * Entries of keys [i, i + m), with a blob for each long one.  False: there was no
 * memory, and nothing is left.
 */
static bool
view_keys(load *l, uint64_t i, int m, bt_view *v)
{
	for (int made = 0; made < m; made++)
	{
		uint64_t	x = i + (uint64_t) made;
		uint32_t	len = ax_key_len(l->keys, x);
		bt_blob    *b = NULL;

		if (len > bt_max_inline(l->size) &&
			(b = bt_blob_new(l->cx, l->s, l->keys->p[x], len)) == NULL)
		{
			while (made-- > 0)
				if (v[made].blob)
					bt_blob_free(l->cx, l->s, v[made].blob);
			return false;
		}
		bt_key_view(l->keys->p[x], len, b, &v[made]);
	}
	return true;
}

/*
 * A leaf of keys [i, *next): as many as fit and fill allows.  NULL: no memory.
 */
static bt_page *
make_leaf(load *l, uint64_t i, int fill, uint64_t *next)
{
	bt_view		v[BT_MAX_CAP + 2];
	bt_page    *p = bt_alloc(l->cx, l->s, 0, false);
	uint32_t	plen;
	int			m;

	if (!p)
		return NULL;
	m = leaf_end(l, i, fill, &plen);
	if (!view_keys(l, i, m, v))
	{
		bt_unalloc(l->cx, l->s, 0, p);
		return NULL;
	}
	/* the sum was rough where lengths differ much */
	while (m > 1 && !bt_fits(bt_page_size(l->s, 0), false, v, m, plen))
	{
		m--;
		plen = 0;
		if (v[m].blob)
			bt_blob_free(l->cx, l->s, v[m].blob);
	}
	bt_build(l->cx, l->s, p, &(bt_contents) {.n = m,.v = v,.prefix = l->keys->p[i],.plen = plen});
	*next = i + (uint64_t) m;
	return p;
}

/*
 * Epoch: inside; now and then another one (ax_breathe).  On AX_STALE outside.
 * Latches: takes the root's word for the publication; none on return.
 * Returns: unless AX_OK, nothing was loaded and all is given back, or gone with the store.
 */
ax_status
bt_load(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill)
{
	open_page	lv[LEVELS];
	load		l = {cx, s, keys, s->page_size, 0, lv};
	bt_page    *root = NULL;
	uint64_t	breath = AX_BREATH_KEYS;
	uint64_t	w;
	ax_status	x;

	if (bt_ref(&s->root) != NULL)
		return AX_EXISTS;
	if (keys->n == 0)
		return AX_OK;
	for (uint64_t i = 0; i < keys->n;)
	{
		uint64_t	next;
		bt_page    *p = make_leaf(&l, i, fill, &next);

		if (!p || !add_child(&l, 0, p, i, i ? sep_len(&l, i) : 0))
		{
			free_load(&l);
			return AX_NOMEM;
		}
		i = next;
		if (i >= breath)
		{
			breath = i + AX_BREATH_KEYS;
			if (!ax_breathe(cx, s))
				return AX_STALE;
		}
	}
	for (int k = 0;; k++)
	{
		if (k == l.levels - 1 && lv[k].n == 1)
		{
			root = lv[k].child[0];
			break;
		}
		if (!close_page(&l, k))
		{
			free_load(&l);
			return AX_NOMEM;
		}
	}
	x = ax_word_lock(cx, &s->root_word, &w);
	if (x == AX_OK && bt_ref(&s->root) != NULL)
	{
		ax_word_unlock(cx, &s->root_word, false);
		x = AX_EXISTS;
	}
	if (x != AX_OK)
	{
		free_below(&l, root);
		return x;
	}
	atomic_store_explicit(&s->root, (uint64_t) (uintptr_t) root, memory_order_release);
	atomic_store_explicit(&s->height, (uint32_t) root->level + 1, memory_order_relaxed);
	ax_word_unlock(cx, &s->root_word, true);
	AX_COUNT(cx, s, entries, (int64_t) keys->n);
	return AX_OK;
}
