/*
 * art_check.c
 *	  Walk the whole tree, verify every invariant, count.
 *
 * Each node is looked at under one version; one that changes meanwhile is
 * looked at again.  A node that is obsolete by the time the walk gets to it is
 * not the tree's any more: its parent is then read again.  So beside writers
 * the verdict is about states that existed; the counts are exact when nobody
 * writes.
 */
#include <stdarg.h>
#include <stdio.h>

#include "art_olc.h"

#define PATH_MAX_KEPT 8192		/* bytes of the path kept, for the hashes */
#define WALK_DEPTH 10000		/* nodes on a path; the stack is finite */

typedef struct walk
{
	ax_ctx	   *cx;
	ax_store   *s;
	ax_tree_info *out;
	bool	   *ok;
	char	   *msg;
	size_t		msglen;
	uint8_t		path[PATH_MAX_KEPT];
	art_slot	slots[256];		/* of the node looked at now */
} walk;

static void __attribute__((format(printf, 2, 3)))
complain(walk *w, const char *fmt,...)
{
	va_list		ap;

	if (!*w->ok)
		return;
	*w->ok = false;
	va_start(ap, fmt);
	vsnprintf(w->msg, w->msglen, fmt, ap);
	va_end(ap);
}

/* Sample a version, waiting for a writer; false: obsolete, or it took long. */
static bool
sample(walk *w, ax_word *word, uint64_t *v)
{
	for (int i = 0; i < 100; i++)
	{
		*v = ax_word_read(word);
		if (*v & AX_OBSOLETE)
			return false;
		if (!(*v & AX_CLOSED))
			return true;
		(void) ax_word_wait(w->cx, word, v);
	}
	return false;
}

/*
 * What the readers of ROWEX trust in a node: NULL, or what is wrong.  *holes:
 * separators with nothing behind them, which are counted.  Racy.
 */
static const char *
rowex_node(art_hdr *h, int *holes)
{
	int			n = ld(&h->count);

	*holes = 0;
	if (h->kind <= ART_N16)
	{
		if (n > art_node_slots(h->kind))
			return "more separators than slots";
		*holes = n - art_node_children(h);
		for (int i = 1; i < n; i++)
			if (h->kind == ART_N4 ? art_n4_sep((art_n4 *) h, i) <= art_n4_sep((art_n4 *) h, i - 1) :
				art_n16_sep((art_n16 *) h, i) <= art_n16_sep((art_n16 *) h, i - 1))
				return "separators out of order";
		/* an unused slot is of no concern to them, but no copy leaves one filled */
		for (int i = n; i < art_node_slots(h->kind); i++)
			if (ld(h->kind == ART_N4 ? &((art_n4 *) h)->child[i] : &((art_n16 *) h)->child[i]) != 0)
				return "a child without a separator";
	}
	else if (h->kind == ART_N48)
	{
		art_n48    *p = (art_n48 *) h;
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
rowex_leaf(art_leaf *l, uint32_t live)
{
	int			used = ld(&l->used);

	if (used > l->cap)
		return "more slots used than there are";
	if (live & ~art_all_live(used))
		return "an entry above the slots used";
	if (l->flags & ART_F_VAR)
	{
		uint32_t	end = art_var_slots_off(l->cap) + 4 * (uint32_t) l->cap;

		/* slots are given in order, and so is the heap */
		for (int i = 0; i < used; i++)
		{
			art_slot16 *sl = art_var_slot(l, i);

			if (ld(&sl->off) != end)
				return "an entry's bytes out of place";
			end += ld(&sl->len);
		}
		if (end != __atomic_load_n(art_leaf_u32(l, 1), __ATOMIC_RELAXED) || end > *art_leaf_u32(l, 0))
			return "a wrong end of the entries' bytes";
	}
	return NULL;
}

/* False: the leaf went. */
static bool
walk_leaf(walk *w, art_ref ref, uint32_t d, int lo, int hi)
{
	art_leaf   *l = ART_PTR(ref);
	art_ent		e[ART_LEAF_MAX];
	uint8_t		buf[ART_VAR_BYTES];
	uint64_t	v;
	uint32_t	live;
	int			n;
	const char *bad;

	do
	{
		if (!sample(w, &l->word, &v))
			return false;
		live = ld(&l->live);
		n = art_leaf_ents(l, e, buf);
		bad = art_rowex(w->s) ? rowex_leaf(l, live) : NULL;
	} while (!ax_word_valid(&l->word, v));

	if (bad)
		complain(w, "leaf at depth %u: %s", d, bad);
	if (live & ~art_all_live(l->cap))
		complain(w, "leaf at depth %u: live bitmap %08x beyond capacity %d", d, live, l->cap);
	if (n == 0)
		complain(w, "empty leaf at depth %u", d);
	for (int i = 0; i < n; i++)
	{
		if (lo >= 0 && (e[i].p[0] < lo || e[i].p[0] > hi))
			complain(w, "leaf at depth %u: entry's byte %d outside of its range %d..%d",
					 d, e[i].p[0], lo, hi);
		if (d + e[i].len <= PATH_MAX_KEPT && d + e[i].len > AX_TID_BYTES &&
			(art_leaf_has_fp(l)))
		{
			memcpy(w->path + d, e[i].p, e[i].len);
			if (art_fp(w->path, d + e[i].len - AX_TID_BYTES) != e[i].fp)
				complain(w, "leaf at depth %u: wrong hash of an entry", d);
		}
		for (int j = 0; j < i; j++)
		{
			uint32_t	k = e[i].len < e[j].len ? e[i].len : e[j].len;

			if (memcmp(e[i].p, e[j].p, k) == 0)
				complain(w, "leaf at depth %u: an entry is the same as, or a prefix of, another", d);
		}
	}
	w->out->leaves++;
	w->out->entries += (uint64_t) n;
	return true;
}

static bool
walk_node(walk *w, art_ref ref, uint32_t d, int level)
{
	art_hdr    *h = ART_PTR(ref);
	uint64_t	v;
	uint32_t	dd = d + h->plen;
	bool		first = true;

	if (level > w->out->height)
		w->out->height = level;
	if (ART_PLEN(ref) != (h->plen > 255 ? 255 : h->plen) || ART_TAG(ref) != h->kind)
		complain(w, "reference and header of a node at depth %u differ", d);
	if (level > WALK_DEPTH)
	{
		complain(w, "node at depth %u: more than %d nodes above it, not walked", d, WALK_DEPTH);
		return true;
	}
	if (h->plen && dd <= PATH_MAX_KEPT)
		memcpy(w->path + d, art_prefix(h), h->plen);
	if (!sample(w, &h->word, &v))
		return false;

	/*
	 * By byte value, not by slot: a change only means that the next byte is
	 * read from the changed node, and nothing is visited twice.
	 */
	for (int c = 0; c < 256;)
	{
		art_slot   *slots = w->slots;
		int			ns,
					i,
					count,
					holes;
		bool		went;
		const char *bad;
		uint64_t	e0,
					l0,
					x0;

		do
		{
			if (!sample(w, &h->word, &v))
				return !first;	/* partly walked: let the rest be */
			ns = art_node_slots_get(h, slots);
			count = ld(&h->count);
			holes = 0;
			bad = art_rowex(w->s) ? rowex_node(h, &holes) : NULL;
		} while (!ax_word_valid(&h->word, v));
		if (first)
		{
			if (bad)
				complain(w, "node at depth %u: %s", d, bad);
			if (ns + holes != count)
				complain(w, "node at depth %u: %d children found, %d counted, %d of them holes",
						 d, ns, count, holes);
			for (i = 1; i < ns; i++)
				if (slots[i].lo <= slots[i - 1].hi)
					complain(w, "node at depth %u: separators %d and %d out of order",
							 d, slots[i - 1].lo, slots[i].lo);
			for (i = 0; i < ns; i++)
				if (slots[i].r == 0)
					complain(w, "node at depth %u: empty slot %d counted", d, i);
			switch (h->kind)
			{
				case ART_N4:
					w->out->n4++;
					break;
				case ART_N16:
					w->out->n16++;
					break;
				case ART_N48:
					w->out->n48++;
					break;
				default:
					w->out->n256++;
					break;
			}
			first = false;
		}
		for (i = 0; i < ns && slots[i].hi < c; i++)
			;
		if (i == ns)
			return true;
		/* on to the next inner node, whose walk needs the array */
		went = true;
		while (i < ns)
		{
			art_slot	one = slots[i++];

			e0 = w->out->entries;
			l0 = w->out->leaves;
			x0 = w->out->embedded;
			if (dd < PATH_MAX_KEPT)
				w->path[dd] = one.lo;
			if (ART_TAG(one.r) == ART_EMBED)
			{
				w->out->embedded++;
				w->out->entries++;
			}
			else if (ART_TAG(one.r) == ART_LEAF)
				went = walk_leaf(w, one.r, dd, one.lo, one.hi);
			else
				went = walk_node(w, one.r, dd + 1, level + 1);
			if (!went)
			{
				/* an obsolete child under an unchanged node is a broken tree */
				if (ax_word_valid(&h->word, v))
					complain(w, "node at depth %u: child at byte %d is obsolete", d, one.lo);
				w->out->entries = e0;
				w->out->leaves = l0;
				w->out->embedded = x0;
				break;
			}
			c = one.hi + 1;
			if (ART_IS_NODE(one.r))
				break;
		}
		if (went && i == ns)
			return true;
		if (!*w->ok)
			return true;
	}
	return true;
}

ax_status
art_check(ax_ctx *cx, ax_store *s, ax_tree_info *out, bool *ok, char *msg, size_t msglen)
{
	walk		w;
	art_ref		ref;

	w.cx = cx;
	w.s = s;
	w.out = out;
	w.ok = ok;
	w.msg = msg;
	w.msglen = msglen;
	memset(out, 0, sizeof(*out));
	*ok = true;
	if (msglen)
		msg[0] = 0;
	for (int tries = 0; tries < 100; tries++)
	{
		bool		done;

		memset(out, 0, sizeof(*out));
		ref = ldref(&s->root);
		if (ref == 0)
			done = true;
		else if (ART_TAG(ref) == ART_LEAF)
			done = walk_leaf(&w, ref, 0, -1, -1);
		else
			done = walk_node(&w, ref, 0, 1);
		if (done)
			break;
	}
	out->inner_nodes = out->n4 + out->n16 + out->n48 + out->n256;
	return AX_OK;
}
