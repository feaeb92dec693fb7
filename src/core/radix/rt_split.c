/*
 * rt_split.c
 *	  What takes the place of a leaf: cutting sorted entries into pieces, and
 *	  publishing the pieces under the parent.
 */
#include "rt_olc.h"

/* Sort a leaf's entries, given from the leaf's depth on. */
void
rt_sort_ents(rt_ent *e, int n)
{
	for (int i = 1; i < n; i++)
	{
		rt_ent		x = e[i];
		uint64_t	k = ax_be8(x.p, x.len);
		int			j = i;

		while (j > 0)
		{
			rt_ent    *y = &e[j - 1];
			uint64_t	ky = ax_be8(y->p, y->len);

			if (k > ky)
				break;
			if (k == ky)
			{
				uint32_t	m = x.len < y->len ? x.len : y->len;

				if (memcmp(x.p, y->p, m) > 0)
					break;
			}
			e[j] = *y;
			j--;
		}
		e[j] = x;
	}
}

void
rt_drop_pieces(ax_ctx *cx, ax_store *s, rt_piece *p, int np, rt_ref kept)
{
	for (int i = 0; i < np; i++)
		if (p[i].r && p[i].r != kept)
			rt_free_private(cx, s, p[i].r);
}

/*
 * One thing in the leaf's place: a leaf with room for cap if all fit, else a
 * node.  It is a node when all share the slot's byte, or hang at the root,
 * where no byte is consumed.  Returns 1, or 0: no memory.
 */
int
rt_one_piece(ax_ctx *cx, ax_store *s, const rt_ent *e, int n, bool byte, int cap,
			 int fill, rt_piece *p)
{
	rt_view	v = {.e = e};
	bool		deep = false;

	p->lo = e[0].p[0];
	if (rt_leaf_fits(e, (uint64_t) n, 0))
		p->r = rt_leaf_new(cx, s, e, n, 0, cap, false);
	else
		p->r = rt_build_node(cx, s, &v, 0, (uint64_t) n, byte, fill, false, 0, &deep);
	return p->r != 0;
}

/*
 * Cut sorted entries e[0..n), which differ at the slot's byte, into leaves of
 * byte ranges of about fill entries.  There is a node where one byte value
 * alone does not fit a leaf.  Returns how many pieces; 0: no memory.
 */
int
rt_cut(ax_ctx *cx, ax_store *s, const rt_ent *e, int n, int fill, rt_piece *p)
{
	rt_view	v = {.e = e};
	bool		deep = false;
	int			np = 0;

	for (int i = 0; i < n;)
	{
		int			j = i,
					m;

		while (j < n)
		{
			for (m = j + 1; m < n && e[m].p[0] == e[j].p[0]; m++)
				;
			if (j > i && (m - i > fill || !rt_leaf_fits(e + i, (uint64_t) (m - i), 0)))
				break;
			j = m;
		}
		p[np].lo = e[i].p[0];
		p[np].r = rt_leaf_fits(e + i, (uint64_t) (j - i), 0) ?
			rt_leaf_new(cx, s, e + i, j - i, 0, rt_leaf_stepcap(j - i), false) :
			rt_build_node(cx, s, &v, (uint64_t) i, (uint64_t) (j - i), 1, fill, false, 0, &deep);
		if (!p[np].r)
		{
			rt_drop_pieces(cx, s, p, np, 0);
			return 0;
		}
		np++;
		i = j;
	}
	return np;
}

/*
 * Put the pieces in the place of the leaf that the cursor is at (its guard is open),
 * where key goes in node P, itself replaced by a bigger one below G if it has too few
 * slots, or by a copy if readers could not bear the change (ROWEX).  kept: the
 * leaf's reference when it is one of the pieces.  Unless AX_OK nothing was done, and
 * the pieces are freed.
 */
ax_status
rt_publish(ax_ctx *cx, ax_store *s, rt_cursor *c_, const uint8_t *key, rt_piece *p, int np,
			rt_ref kept)
{
	rt_at	   *G = &c_->G,
			   *P = &c_->P;
	ax_guard   *L = &c_->N;
	const rt_ref old = c_->ref;
	rt_hdr    *h = P->hdr,
			   *grown = NULL;
	uint8_t		c = h ? key[P->d] : 0;
	const bool	rowex = rt_rowex(s);
	unsigned	kind = 0;
	int			lo,
				hi;

	/* a Node256 has a place for all, or the snapshot is not valid */
	if (rowex && h)
		kind = rt_rowex_copy(h, c, p, np, kept);
	else if (np > 1 && h->kind != RT_N256 && ld(&h->count) + np - 1 > rt_node_slots(h->kind))
	{
		kind = h->kind + 1u;
		while (kind < RT_N256 && ld(&h->count) + np - 1 > rt_node_slots(kind))
			kind++;
	}
	if (kind)
	{
		grown = rt_node_new(cx, s, kind, rt_prefix(h), h->plen, false);
		if (!grown)
		{
			rt_drop_pieces(cx, s, p, np, kept);
			return AX_NOMEM;
		}
	}
	AX_POINT("art.publish.before_lock");
	if (!rt_lock3(cx, AX_SITE_SPLIT, grown ? &G->g : NULL, &P->g, L))
	{
		rt_drop_pieces(cx, s, p, np, kept);
		if (grown)
			rt_node_unalloc(cx, s, grown);
		return AX_STALE;
	}
	if (np > 1)
		rt_node_range(h, c, &lo, &hi);
	if (grown)
	{
		rt_fill_grown(h, grown);
		h = grown;
	}
	if (!h)
		stref(&s->root, p[0].r);
	else if (rowex && !grown)
		rt_rowex_place(h, c, p, np, kept);
	else if (np == 1)
	{
		if (RT_TAG(p[0].r) != RT_LEAF)
			rt_node_narrow(h, c, p[0].lo, p[0].r);
		else
			rt_node_set(h, c, p[0].r);
	}
	else
	{
		rt_node_del(h, c);
		for (int i = 0; i < np; i++)
		{
			bool		leaf = RT_TAG(p[i].r) == RT_LEAF;
			int			from = leaf && i == 0 ? lo : p[i].lo;

			rt_node_add(h, (uint8_t) from, from,
						!leaf ? from : i + 1 < np ? p[i + 1].lo - 1 : hi, p[i].r);
		}
	}
	/* the leaf that stays has another range now: its version moves too */
	if (kept)
		ax_guard_close(cx, L, true);
	else
		ax_guard_kill(cx, L);
	if (grown)
		rt_publish_grown(cx, s, key, G, P, grown);
	else
		ax_guard_close(cx, &P->g, true);
	if (!kept)
		rt_leaf_retire(cx, s, RT_PTR(old));
	return AX_OK;
}
