/*
 * hy_bulk.c
 *	  The sorted load of HydraList: a list that nobody else sees, published by one store.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "core/base/ax_call.h"
#include "hy_list.h"

typedef struct load
{
	hy_call		h;
	const ax_keys *keys;
	hy_node    *first;
	hy_node    *last;
	uint64_t	nodes;
} load;

/* The long keys of entries. */
static void
free_blobs(load *l, hy_entry *e, int n)
{
	for (int i = 0; i < n; i++)
		if (e[i].v.blob)
			bt_blob_free(l->h.cx, l->h.s, e[i].v.blob);
}

/* A load comes to nothing: all that it made is given back. */
static void
free_all(load *l)
{
	hy_entry	e[HY_SLOTS];
	hy_node    *next;

	for (hy_node *n = l->first; n; n = next)
	{
		hy_body    *b = hy_ld(&n->body);

		next = hy_next(n);
		if (b)
			free_blobs(l, e, hy_entries(b, hy_used(b), e));
		hy_drop_body(l->h.cx, l->h.s, b);
		hy_drop_node(l->h.cx, l->h.s, n);
	}
}

/*
 * A node of up to m keys from number i on; how many, 0: no memory.
 */
static int
add_node(load *l, uint64_t i, int m)
{
	const uint64_t n = l->keys->n;
	hy_entry	e[HY_SLOTS];
	bt_view		anchor;
	hy_node    *node;
	hy_body    *b;
	uint32_t	plen;
	int			k;

	bt_key_view(l->keys->p[i], ax_key_len(l->keys, i), NULL, &anchor);
	if (i > 0)
	{
		bt_view		left,
					right = anchor;

		bt_key_view(l->keys->p[i - 1], ax_key_len(l->keys, i - 1), NULL, &left);
		hy_separator(&left, &right, &anchor);
	}
	node = hy_make_node(l->h.cx, l->h.s, i ? &anchor : NULL, false);
	if (!node)
		return 0;
	if ((uint64_t) m > n - i)
		m = (int) (n - i);
	for (k = 0; k < m; k++)
	{
		const uint8_t *key = l->keys->p[i + (uint64_t) k];
		uint32_t	len = ax_key_len(l->keys, i + (uint64_t) k);
		bt_blob    *blob = NULL;

		if (len > HY_LONG && (blob = bt_blob_new(l->h.cx, l->h.s, key, len)) == NULL)
			break;
		bt_key_view(key, len, blob, &e[k].v);
		e[k].fp = hy_fp(key, len - AX_TID_BYTES);
	}
	if (k < m)
		m = 0;
	while (m > 1 && !hy_fits(e, m, 0))
		m--;
	plen = 0;
	if (m > 0 && i > 0 && i + (uint64_t) m < n)
	{
		bt_view		next;

		bt_key_view(l->keys->p[i + (uint64_t) m], ax_key_len(l->keys, i + (uint64_t) m), NULL, &next);
		plen = bt_common(&anchor, &next);
		if (plen > HY_MAX_PLEN)
			plen = HY_MAX_PLEN;
	}
	b = m ? hy_make_body(l->h.cx, l->h.s, &(hy_content) {e, m, 0, l->keys->p[i], plen}, false) : NULL;
	if (!b)
	{
		free_blobs(l, e, k);
		hy_drop_node(l->h.cx, l->h.s, node);
		return 0;
	}
	free_blobs(l, e + m, k - m);
	atomic_store_explicit(&node->body, b, memory_order_relaxed);
	atomic_store_explicit(&node->prev, l->last, memory_order_relaxed);
	if (l->last)
		hy_set_next(l->last, node);
	else
		l->first = node;
	l->last = node;
	l->nodes++;
	return m;
}

/*
 * Epoch: inside; now and then another one (ax_breathe).  On AX_STALE outside.
 * Latches: those of the search layer; none on return.
 * Returns: unless AX_OK, nothing was loaded and all is given back, or gone with the store.
 */
ax_status
hy_load(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill)
{
	load		l = {.keys = keys};
	int			m = HY_SLOTS * fill / 100;
	uint64_t	breath = AX_BREATH_KEYS;
	hy_list    *t;
	void	   *none = NULL;
	ax_status	x = AX_OK;

	if (hy_enter(&l.h, cx, s))
		return AX_EXISTS;
	if (keys->n == 0)
		return AX_OK;
	for (uint64_t i = 0; i < keys->n;)
	{
		int			k = add_node(&l, i, m < 1 ? 1 : m);

		if (k == 0)
		{
			free_all(&l);
			return AX_NOMEM;
		}
		i += (uint64_t) k;
		if (i >= breath)
		{
			breath = i + AX_BREATH_KEYS;
			if (!ax_breathe(cx, s))
				return AX_STALE;
		}
	}
	t = l.h.t = hy_make_list(&l.h, l.first);
	if (!t)
	{
		free_all(&l);
		return AX_NOMEM;
	}
	AX_POINT("hydra.load");
	/*
	 * The search layer first.  Nobody may make another list meanwhile: searches of that would be led
	 * into this one.
	 */
	if (!atomic_compare_exchange_strong_explicit(&hy_own_of(s)->list, &none, HY_LOADING,
												 memory_order_acq_rel, memory_order_acquire))
	{
		hy_drop_list(&l.h, t);
		free_all(&l);
		return AX_EXISTS;
	}
	for (hy_node *k = hy_next(l.first); k; k = hy_next(k))
	{
		hy_announce(t);
		hy_push(t, &k->come);
	}
	for (int tries = 0; tries < 100 && hy_waiting(t) > 0 && (x == AX_OK || x == AX_BUSY);)
	{
		x = hy_apply(&l.h, AX_BREATH_KEYS / HY_SLOTS);
		if (x == AX_BUSY)
			tries++;
		else if (x == AX_OK && !ax_breathe(cx, s))
			return AX_STALE;
	}
	if (x != AX_OK)
	{
		hy_forget(&l.h, l.first);
		atomic_store_explicit(&hy_own_of(s)->list, NULL, memory_order_release);
		hy_drop_list(&l.h, t);
		free_all(&l);
		return x;
	}
	atomic_store_explicit(&hy_own_of(s)->list, (void *) t, memory_order_release);
	AX_COUNT(cx, s, leaves, (int64_t) l.nodes);
	AX_COUNT(cx, s, entries, (int64_t) keys->n);
	return AX_OK;
}
