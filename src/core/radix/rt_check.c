/*
 * rt_check.c
 *	  Walk over a radix tree, some leaves a call, verify every invariant, count.
 *
 * The position is a string of bytes: what lies before it was looked at.  From there
 * the walk goes down, by value, through nodes whose slots it copies and validates;
 * what changes under it sends it down again.  Going up it needs the nodes above, of
 * which it keeps some; in a deeper tree it comes down to the others again.  So neither
 * stack nor epoch grow with the tree, and nobody waits for the walk.
 *
 * src/views/README.md: The check
 */
#include <stdarg.h>
#include <stdio.h>

#include "rt_olc.h"

#define FRAMES 64				/* nodes of the path that are kept, the lowest */

typedef struct frame
{
	ax_guard	g;
	rt_hdr    *h;
	uint32_t	d;				/* depth of the byte it decides on */
} frame;

typedef struct walk
{
	ax_ctx	   *cx;
	ax_store   *s;
	ax_checking *c;
	int			work;			/* of this call */
	int			lost;			/* times in a row that something had changed */
	int			level;			/* nodes on the path */
	frame		up[FRAMES];		/* of level l: l % FRAMES */
	rt_slot	slots[256];		/* of the node looked at now */
} walk;

typedef enum turn
{
	W_GO = 0,
	W_DONE,						/* there is nothing behind the position */
	W_DOWN,						/* go down again, from the root */
	W_PAUSE,					/* enough for one call */
	W_BUSY,
	W_BUFFER
} turn;

/* Keep the first violation: only that is told. */
static void __attribute__((format(printf, 2, 3)))
complain_of_node(walk *w, const char *fmt,...)
{
	va_list		ap;

	if (w->c->bad)
		return;
	w->c->bad = true;
	va_start(ap, fmt);
	vsnprintf(w->c->msg, sizeof(w->c->msg), fmt, ap);
	va_end(ap);
}

/* Room in the caller's buffer for n bytes of a key? */
static bool
room(walk *w, uint32_t n)
{
	if (n <= w->c->size)
		return true;
	w->c->need_bytes = 2 * n;
	return false;
}

/*
 * Sample the word of the child found below byte c of a node at depth d, whose
 * guard is "above".  Or of a node that was on the path before (NULL).  A page
 * or node that changes again and again is latched.
 *
 * Latches: none on entry; that of the word on W_GO, if it had to be latched.
 */
static turn
open_guard(walk *w, ax_guard *g, ax_word *word, const ax_guard *above, uint32_t d, int c)
{
	ax_status	x;

	AX_POINT("art.check.child");
	x = ax_guard_open(w->cx, g, word, ax_pessimistic(w->lost - 1));
	if (x == AX_BUSY)
		return W_BUSY;
	if (x == AX_OK)
	{
		if (!above || ax_guard_valid(above))
			return W_GO;
		ax_guard_close(w->cx, g, false);
		return W_DOWN;
	}
	/* no writer was at it when it was sampled, nor since */
	if (above && !(above->v & AX_LOCKED) && ax_guard_valid(above))
		complain_of_node(w, "node at depth %u: child at byte %d is obsolete", d, c);
	return W_DOWN;
}

/*
 * Check the facts of a node that the readers of ROWEX trust: NULL, or a text
 * that says what is wrong.  *holes: separators with nothing behind them, which
 * are counted.  Racy.
 */
static const char *
rowex_node(rt_hdr *h, int *holes)
{
	int			n = ld(&h->count);

	*holes = 0;
	if (h->kind <= RT_N16)
	{
		if (n > rt_node_slots(h->kind))
			return "more separators than slots";
		*holes = n - rt_node_children(h);
		for (int i = 1; i < n; i++)
			if (h->kind == RT_N4 ? rt_n4_sep((rt_n4 *) h, i) <= rt_n4_sep((rt_n4 *) h, i - 1) :
				rt_n16_sep((rt_n16 *) h, i) <= rt_n16_sep((rt_n16 *) h, i - 1))
				return "separators out of order";
		/* an unused slot is of no concern to them, but no copy leaves one filled */
		for (int i = n; i < rt_node_slots(h->kind); i++)
			if (ld(h->kind == RT_N4 ? &((rt_n4 *) h)->child[i] : &((rt_n16 *) h)->child[i]) != 0)
				return "a child without a separator";
	}
	else if (h->kind == RT_N48)
	{
		rt_n48    *p = (rt_n48 *) h;
		int			given = 0;

		while (given < 48 && ld(&p->child[given]) != 0)
			given++;
		for (int i = given; i < 48; i++)
			if (ld(&p->child[i]) != 0)
				return "a slot given before the one below it";
		for (int c = 0; c < 256; c++)
			if (ld(&p->index[c]) > given)
				return "an index without a child";
		if (n > given)
			return "more children than slots given";
	}
	return NULL;
}

/* The same of a leaf. */
static const char *
rowex_leaf(rt_leaf *l, uint32_t live)
{
	int			used = ld(&l->used);

	if (used > l->cap)
		return "more slots used than there are";
	if (live & ~rt_all_live(used))
		return "an entry above the slots used";
	if (l->flags & RT_F_VAR)
	{
		uint32_t	end = rt_var_slots_off(l->cap) + 4 * (uint32_t) l->cap;

		/* slots are given in order, and so is the heap */
		for (int i = 0; i < used; i++)
		{
			rt_slot16 *sl = rt_var_slot(l, i);

			if (ld(&sl->off) != end)
				return "an entry's bytes out of place";
			end += ld(&sl->len);
		}
		if (end != __atomic_load_n(rt_leaf_u32(l, 1), __ATOMIC_RELAXED) || end > *rt_leaf_u32(l, 0))
			return "a wrong end of the entries' bytes";
	}
	return NULL;
}

/* As memcmp; 0 when one of them begins the other. */
static int
cmp_ents(const rt_ent *a, const rt_ent *b)
{
	return memcmp(a->p, b->p, a->len < b->len ? a->len : b->len);
}

/*
 * One leaf, in a slot with bytes lo to hi (-1: the root) of what "above" guards.
 *
 * Latches: none on entry and on return.
 */
static turn
walk_leaf(walk *w, rt_ref ref, uint32_t d, int lo, int hi, const ax_guard *above)
{
	ax_checking *c = w->c;
	rt_leaf   *l = RT_PTR(ref);
	rt_ent		e[RT_LEAF_MAX];
	uint8_t		order[RT_LEAF_MAX];
	uint8_t		buf[RT_VAR_BYTES];
	ax_guard	g;
	uint32_t	live;
	int			n;
	bool		same;
	const char *bad;
	turn		t = open_guard(w, &g, &l->word, above, d, lo);

	if (t != W_GO)
		return t;
	AX_POINT("art.check.leaf");
	live = ld(&l->live);
	n = rt_leaf_ents(l, e, buf);
	bad = rt_rowex(w->s) ? rowex_leaf(l, live) : NULL;
	same = ax_guard_valid(&g);
	ax_guard_close(w->cx, &g, false);
	if (!same)
		return W_DOWN;

	if (bad)
		complain_of_node(w, "leaf at depth %u: %s", d, bad);
	if (live & ~rt_all_live(l->cap))
		complain_of_node(w, "leaf at depth %u: live bitmap %08x beyond capacity %d", d, live, l->cap);
	if (n == 0)
		complain_of_node(w, "empty leaf at depth %u", d);
	for (int i = 0; i < n; i++)
	{
		int			j = i;

		if (lo >= 0 && (e[i].p[0] < lo || e[i].p[0] > hi))
			complain_of_node(w, "leaf at depth %u: entry's byte %d outside of its range %d..%d",
							 d, e[i].p[0], lo, hi);
		if (d + e[i].len > AX_TID_BYTES && rt_leaf_has_fp(l))
		{
			/* (the position has a byte there, which leads to this leaf, as this does) */
			if (!room(w, d + e[i].len))
				return W_BUFFER;
			memcpy(c->buf + d, e[i].p, e[i].len);
			if (rt_fp(c->buf, d + e[i].len - AX_TID_BYTES) != e[i].fp)
				complain_of_node(w, "leaf at depth %u: wrong hash of an entry", d);
		}
		for (; j > 0 && cmp_ents(&e[order[j - 1]], &e[i]) > 0; j--)
			order[j] = order[j - 1];
		order[j] = (uint8_t) i;
	}
	/* whoever begins another has one that it begins next to it */
	for (int i = 1; i < n; i++)
		if (cmp_ents(&e[order[i - 1]], &e[order[i]]) == 0)
			complain_of_node(w, "leaf at depth %u: an entry is the same as, or a prefix of, another", d);
	c->info.leaves++;
	c->info.entries += (uint64_t) n;
	w->work++;
	w->lost = 0;
	return W_GO;
}

/* Check a node as a whole, its slots and count just read. */
static void
check_inner(walk *w, rt_hdr *h, uint32_t d, int ns, int count, int holes, const char *bad)
{
	const rt_slot *slots = w->slots;

	if (bad)
		complain_of_node(w, "node at depth %u: %s", d, bad);
	if (ns + holes != count)
		complain_of_node(w, "node at depth %u: %d children found, %d counted, %d of them holes",
						 d, ns, count, holes);
	for (int i = 1; i < ns; i++)
		if (slots[i].lo <= slots[i - 1].hi)
			complain_of_node(w, "node at depth %u: separators %d and %d out of order",
							 d, slots[i - 1].lo, slots[i].lo);
	for (int i = 0; i < ns; i++)
		if (slots[i].r == 0)
			complain_of_node(w, "node at depth %u: empty slot %d counted", d, i);
	switch (h->kind)
	{
		case RT_N4:
			w->c->info.n4++;
			break;
		case RT_N16:
			w->c->info.n16++;
			break;
		case RT_N48:
			w->c->info.n48++;
			break;
		default:
			w->c->info.n256++;
			break;
	}
	w->work++;
	w->lost = 0;
}

/*
 * The slots of the lowest node of the path, from the position's byte on.  W_GO: there
 * is another node, *below; or there are no more slots, and *below is 0.  fresh: the
 * position is at the node's beginning.
 *
 * Latches: on entry the node's, if it had to be latched; none on return.
 */
static turn
walk_slots(walk *w, bool fresh, rt_ref *below)
{
	ax_checking *c = w->c;
	frame	   *f = &w->up[w->level % FRAMES];
	const uint32_t d = f->d;
	int			count,
				holes = 0,
				ns,
				i = 0;
	const char *bad;
	bool		same;

	ns = rt_node_slots_get(f->h, w->slots);
	AX_POINT("art.check.node");
	count = ld(&f->h->count);
	bad = rt_rowex(w->s) ? rowex_node(f->h, &holes) : NULL;
	same = ax_guard_valid(&f->g);
	if (f->g.held)
		ax_guard_close(w->cx, &f->g, false);	/* the version is good still */
	if (!same)
		return W_DOWN;
	if (fresh)
	{
		check_inner(w, f->h, d, ns, count, holes, bad);
		c->buf[d] = 0;
		c->len = d + 1;
	}
	*below = 0;
	while (i < ns && w->slots[i].hi < c->buf[d])
		i++;
	for (; i < ns && !c->bad; i++)
	{
		const rt_slot *one = &w->slots[i];
		turn		t;

		if (RT_IS_NODE(one->r))
		{
			if (one->lo != c->buf[d])
			{
				c->buf[d] = one->lo;
				c->len = d + 1;
			}
			*below = one->r;
			return W_GO;
		}
		if (RT_TAG(one->r) == RT_EMBED)
		{
			c->info.embedded++;
			c->info.entries++;
		}
		else if ((t = walk_leaf(w, one->r, d, one->lo, one->hi, &f->g)) != W_GO)
			return t;
		if (one->hi == 255)
			break;
		c->buf[d] = one->hi + 1;
		c->len = d + 1;
	}
	return W_GO;
}

/*
 * The position behind all keys that begin with its first n bytes; then up to a node
 * in which it lies.  A frame that was lost is by now one of a node further down, and
 * passed over; then a node above it leads down again.
 */
static turn
walk_up(walk *w, uint32_t n)
{
	ax_checking *c = w->c;
	frame	   *f;

	while (n > 0 && c->buf[n - 1] == 255)
		n--;
	if (n == 0)
		return W_DONE;
	c->buf[n - 1]++;
	c->len = n;
	while (w->level > 0 && w->up[w->level % FRAMES].d >= n)
		w->level--;
	if (w->level == 0)
		return W_DOWN;
	/* a node that is not obsolete is where it was */
	f = &w->up[w->level % FRAMES];
	return open_guard(w, &f->g, &f->h->word, NULL, f->d, 0);
}

/*
 * Check a reference to a node.  False: go no further, it has no end, since it leads back
 * to a node above.
 */
static bool
check_ref(walk *w, rt_ref ref, uint32_t d)
{
	const rt_hdr *h = RT_PTR(ref);

	if (RT_PLEN(ref) != (h->plen > 255 ? 255 : h->plen) || RT_TAG(ref) != h->kind)
		complain_of_node(w, "reference and header of a node at depth %u differ", d);
	if (d + h->plen < AX_KEY_MAX)
		return true;
	complain_of_node(w, "a node deeper than the longest key");
	return false;
}

/*
 * From the root to the position and on.
 *
 * Latches: none on entry and on return.
 */
static turn
walk_tree(walk *w)
{
	ax_checking *c = w->c;
	ax_guard	root;
	const ax_guard *above = &root;
	rt_ref		ref;
	uint32_t	d = 0;			/* bytes of the position above ref */
	turn		t = open_guard(w, &root, &w->s->root_word, NULL, 0, 0);

	if (t != W_GO)
		return t;
	ref = ldref(&w->s->root);
	if (root.held)
		ax_guard_close(w->cx, &root, false);
	if (!ax_guard_valid(&root))
		return W_DOWN;
	if (ref == 0)
		return W_DONE;
	if (RT_TAG(ref) == RT_LEAF)
	{
		t = c->len ? W_GO : walk_leaf(w, ref, 0, -1, -1, &root);
		return t == W_GO ? W_DONE : t;
	}
	w->level = 0;
	while (!c->bad)
	{
		rt_hdr    *h = RT_PTR(ref);
		uint32_t	m = c->len - d < h->plen ? c->len - d : h->plen;
		frame	   *f = &w->up[(w->level + 1) % FRAMES];
		bool		fresh;
		int			cmp;

		if (w->work >= AX_CHECK_WORK)
			return W_PAUSE;
		if (!check_ref(w, ref, d))
			return W_DONE;
		if (!room(w, d + h->plen + 1))
			return W_BUFFER;
		t = open_guard(w, &f->g, &h->word, above, d, d ? c->buf[d - 1] : -1);
		if (t != W_GO)
			return t;
		f->h = h;
		f->d = d + h->plen;
		w->level++;
		if (w->level > c->info.height)
			c->info.height = w->level;

		/* its keys lie before the position, around it, or behind it */
		cmp = m ? memcmp(rt_prefix(h), c->buf + d, m) : 0;
		fresh = cmp > 0 || (cmp == 0 && c->len <= f->d);
		if (fresh)
		{
			memcpy(c->buf + d, rt_prefix(h), h->plen);
			c->len = f->d;
		}
		ref = 0;
		if (cmp < 0)
		{
			if (f->g.held)
				ax_guard_close(w->cx, &f->g, false);
			t = walk_up(w, d);
		}
		else
			t = walk_slots(w, fresh, &ref);
		while (t == W_GO && ref == 0 && !c->bad)
		{
			if (cmp >= 0)
				t = walk_up(w, w->up[w->level % FRAMES].d);
			cmp = 0;
			if (t == W_GO)
				t = walk_slots(w, false, &ref);
		}
		if (t != W_GO)
			return t;
		above = &w->up[w->level % FRAMES].g;
		d = w->up[w->level % FRAMES].d + 1;
	}
	return W_DONE;
}

ax_status
rt_check(ax_ctx *cx, ax_store *s, ax_checking *c)
{
	walk		w;

	w.cx = cx;
	w.s = s;
	w.c = c;
	w.work = w.lost = 0;
	for (;;)
		switch (walk_tree(&w))
		{
			case W_GO:
			case W_DONE:
				c->done = true;
				return AX_OK;
			case W_DOWN:
				ax_map_unshare_all();
				w.lost++;
				if (!c->bad && ++w.work < AX_CHECK_WORK)
					break;
				return AX_OK;
			case W_PAUSE:
				return AX_OK;
			case W_BUSY:
				return AX_BUSY;
			case W_BUFFER:
				return AX_BUFFER;
		}
}
