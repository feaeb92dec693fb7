/*
 * rt_split.c
 *	  What takes the place of a leaf: cutting sorted entries into pieces, and
 *	  publishing the pieces under the parent.  And giving up a change.
 *
 * src/core/radix/README.md: The tree
 */
#include "rt_olc.h"

/*
 * Epoch: inside.
 * Latches: has some of the plan's; none of the plan and of the cursor on return.
 */
ax_status
rt_give_up(ax_ctx *cx, ax_store *s, rt_cursor *c, rt_change ch, int held, ax_status x)
{
	while (held > 0)
		ax_guard_close(cx, &ch.gone[--held].g, false);
	if (ch.below)
		ax_guard_close(cx, &c->N, false);
	ax_guard_close(cx, &c->P.g, false);
	ax_guard_close(cx, &c->G.g, false);
	for (int i = 0; i < ch.nmade; i++)
	{
		if (RT_IS_NODE(ch.made[i]))
			rt_node_unalloc(cx, s, RT_PTR(ch.made[i]));
		else if (RT_TAG(ch.made[i]) == RT_LEAF)
			rt_leaf_unalloc(cx, s, RT_PTR(ch.made[i]));
	}
	rt_drop_pieces(cx, s, ch.pieces, ch.npieces, ch.kept);
	return x;
}

/*
 * Sort entries, given from their leaf's depth on: those of a leaf and at most one more.
 * Most are in order, those that the leaf was built of.
 */
void
rt_sort_ents(rt_ent *e, int n)
{
	uint64_t	head[RT_LEAF_MAX + 1];

	for (int i = 0; i < n; i++)
	{
		uint64_t	k = ax_be8(e[i].p, e[i].len);
		rt_ent		x;
		int			j = i;

		if (i > 0 && k <= head[i - 1])
		{
			x = e[i];
			do
			{
				rt_ent    *y = &e[j - 1];

				if (k > head[j - 1] ||
					(k == head[j - 1] && memcmp(x.p, y->p, x.len < y->len ? x.len : y->len) > 0))
					break;
				e[j] = *y;
				head[j] = head[j - 1];
			} while (--j > 0);
			e[j] = x;
		}
		head[j] = k;
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
rt_one_piece(rt_build *b, int n, bool byte, int cap, rt_piece *p)
{
	p->lo = b->e[0].p[0];
	if (rt_leaf_fits(b->e, (uint64_t) n, 0))
		p->r = rt_leaf_new(b->cx, b->s, b->e, n, 0, cap, false);
	else
		p->r = rt_build_node(b, 0, (uint64_t) n, byte, 0);
	return p->r != 0;
}

int
rt_cut(ax_ctx *cx, ax_store *s, const rt_ent *e, int n, int fill, rt_piece *p)
{
	rt_build	b = {.cx = cx,.s = s,.e = e,.fill = fill};
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
			rt_build_node(&b, (uint64_t) i, (uint64_t) (j - i), 1, 0);
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
 * Put the pieces in the place of the leaf that the cursor is at, where key goes in P's
 * node.  The leaf's guard is open.  If the node has too few slots, a bigger one
 * replaces it.  If readers could not bear the change (ROWEX), a copy does.  kept:
 * the leaf's reference when it is one of the pieces.  AX_OK, or as of rt_begin().
 *
 * Epoch: inside.
 * Latches: on entry those of the cursor; the caller lets go of what is left of them.
 */
ax_status
rt_publish(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, rt_piece *p, int np,
		   rt_ref kept)
{
	/* the leaf that stays has another range now: its version moves, too */
	rt_change	ch = {.site = AX_SITE_SPLIT, .node = true, .below = true,
	.goes = kept ? 0 : c->ref, .pieces = p, .npieces = np, .kept = kept};
	rt_hdr    *h = c->P.hdr;
	uint8_t		byte = h ? key[c->P.d] : 0;
	unsigned	kind = 0;
	int			lo,
				hi;
	ax_status	x;

	/* a Node256 has a place for all, or the snapshot is not valid */
	if (rt_rowex(s) && h)
		kind = rt_rowex_copy(h, byte, p, np, kept);
	else if (np > 1 && h->kind != RT_N256 && ld(&h->count) + np - 1 > rt_node_slots(h->kind))
	{
		kind = h->kind + 1u;
		while (kind < RT_N256 && ld(&h->count) + np - 1 > rt_node_slots(kind))
			kind++;
	}
	if (kind)
		rt_plan_copy(cx, s, c, &ch, kind, false);
	AX_POINT("art.publish.before_lock");
	x = rt_begin(cx, s, c, &ch);
	if (x != AX_OK)
		return x;
	if (np > 1)
		rt_node_range(h, byte, &lo, &hi);
	h = rt_changing(c, &ch);
	if (!h)
		stref(&s->root, p[0].r);
	else if (rt_rowex(s) && !ch.copy)
		rt_rowex_place(h, byte, p, np, kept);
	else if (np == 1)
	{
		if (RT_TAG(p[0].r) != RT_LEAF)
			rt_node_narrow(h, byte, p[0].lo, p[0].r);
		else
			rt_node_set(h, byte, p[0].r);
	}
	else
	{
		rt_node_del(h, byte);
		for (int i = 0; i < np; i++)
		{
			bool		leaf = RT_TAG(p[i].r) == RT_LEAF;
			int			from = leaf && i == 0 ? lo : p[i].lo;

			rt_node_add(h, (uint8_t) from, from,
						!leaf ? from : i + 1 < np ? p[i + 1].lo - 1 : hi, p[i].r);
		}
	}
	rt_finish(cx, s, c, key, &ch);
	return AX_OK;
}
