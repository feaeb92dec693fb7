/*
 * rt_expand.c
 *	  Contention expansion: a leaf that several writers want all the time is
 *	  taken apart, and put together again when it has been quiet.
 *
 * After OptiQL (SIGMOD 2024), section 6.2.  Where a latch covers several keys, the
 * levels that lazy expansion left out are made after all.  So each hot key gets a
 * latch of its own.  Here that latch is a packed leaf's.  The differences:
 *
 *	- Each process counts its own acquisitions that had to wait (ax_contended_word).
 *	  It waits there anyway.  So this needs neither a sampling rate nor a counter in
 *	  the leaf, and uniform keys never get there.
 *	- A leaf whose keys rise, or are all the same, is left alone: its newest key
 *	  would be just as hot in a leaf of its own.
 *	- A ring remembers, by key, what was expanded.  After a while the next expansion
 *	  or VACUUM joins neighbouring leaves.  It waits longer each time the key turns
 *	  out to be hot again.  Until then compaction leaves them apart.
 *
 * src/core/radix/README.md: The tree
 */
#include "rt_olc.h"

#define HOT_KEY_BYTES	40		/* of a key: enough to come near the leaf */
#define HOT_KEYS		15
#define HOT_QUIET_NS	UINT64_C(10000000000)
#define HOT_TIMES		6		/* doublings of the above */
#define JOIN_LEAVES		8		/* latched at once */

/* One expansion.  Written under the ring's latch. */
typedef struct rt_hot_key
{
	uint64_t	at;				/* ns; 0: free */
	uint8_t		times;
	uint8_t		len;
	bool		whole;			/* the key, not its beginning */
	uint8_t		key[HOT_KEY_BYTES];
} rt_hot_key;

/* The ring; an object of the store. */
typedef struct rt_hot
{
	ax_word		latch;			/* only ever tried; guards the rest */
	uint32_t	next;
	rt_hot_key k[HOT_KEYS];
} rt_hot;

/*
 * The deepest node on the key's path, P, its parent G, and what hangs there.  It is
 * 0 if the key, which may have been cut off, leads to nothing.  AX_OK, AX_STALE
 * (start over) or AX_BUSY; nothing is latched.
 *
 * Latches: none.
 */
static ax_status
find_expansion(ax_ctx *cx, ax_store *s, rt_cursor *c, const uint8_t *key, uint32_t len)
{
	ax_status	x = rt_descend(cx, s, c, key, len, AX_OPTIMISTIC);

	if (x != RT_PARTS && x != RT_ENDS)
		return x;
	c->ref = 0;
	return AX_OK;
}

/* ---- joining ---- */

/* Neighbouring leaves, and what they have. */
typedef struct group
{
	rt_gone	leaf[JOIN_LEAVES];
	int			from,			/* the first one's slot */
				n,
				ne;
	uint32_t	used;
	rt_ent		e[RT_LEAF_MAX];
	uint8_t		bytes[RT_VAR_BYTES];
} group;

/*
 * One leaf more, if all fit.  AX_NOTFOUND: they do not; *empty: nor by itself, or it is
 * no leaf that can be joined.  AX_STALE, AX_BUSY.
 *
 * Latches: none; the guards of the group are samples.
 */
static ax_status
add_leaf(ax_ctx *cx, const rt_cursor *c, rt_ref r, group *g, bool *empty)
{
	rt_leaf   *l = RT_PTR(r);
	rt_ent		some[RT_LEAF_MAX];
	uint8_t		buf[RT_VAR_BYTES];
	uint32_t	bytes = 0;
	int			n;
	ax_status	x;

	*empty = true;
	if (RT_TAG(r) != RT_LEAF || (l->flags & RT_F_ONE) || g->n == JOIN_LEAVES)
		return AX_NOTFOUND;
	x = ax_open(cx, &g->leaf[g->n].g, &l->word, AX_OPTIMISTIC);
	if (x != AX_OK)
		return x;
	if (!ax_guard_valid(&c->P.g))
		return AX_STALE;
	n = rt_leaf_ents(l, some, buf);
	if (!ax_guard_valid(&g->leaf[g->n].g))
		return AX_STALE;
	*empty = n == 0;
	rt_sort_ents(some, n);
	for (int i = 0; i < n; i++)
		bytes += some[i].len;
	/* some room for more, or it would be cut at the next insert */
	if (n == 0 || g->ne + n > RT_LEAF_MAX * 3 / 4 || g->used + bytes > RT_VAR_BYTES)
		return AX_NOTFOUND;
	for (int i = 0; i < n; i++)
	{
		memcpy(g->bytes + g->used, some[i].p, some[i].len);
		g->e[g->ne + i] = some[i];
		g->e[g->ne + i].p = g->bytes + g->used;
		g->used += some[i].len;
	}
	if (!rt_leaf_fits(g->e, (uint64_t) g->ne + (uint64_t) n, 0))
		return AX_NOTFOUND;
	g->ne += n;
	g->leaf[g->n++].r = r;
	return AX_OK;
}

/*
 * Join one group of neighbouring leaves below the deepest node on the key's
 * path, in a copy of the node.  AX_OK: done, there may be more.  AX_NOTFOUND: there is
 * nothing to join, or no memory.
 *
 * Latches: none on entry and on return; takes G, P and the leaves.
 */
static ax_status
join_some(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	rt_change	ch = {.site = AX_SITES, .replace = true};
	rt_cursor	c;
	rt_slot	slots[256];
	group		g;
	rt_ref		leaf;
	rt_hdr    *h;
	unsigned	kind;
	int			ns;
	ax_status	x = find_expansion(cx, s, &c, key, len);

	if (x != AX_OK)
		return x;
	if (!c.P.hdr)
		return AX_NOTFOUND;
	ns = rt_node_slots_get(c.P.hdr, slots);
	if (!ax_guard_valid(&c.P.g))
		return AX_STALE;

	g.from = g.n = g.ne = 0;
	g.used = 0;
	for (int i = 0; i < ns; i++)
	{
		bool		empty;

		x = add_leaf(cx, &c, slots[i].r, &g, &empty);
		if (x == AX_OK)
			continue;
		if (x != AX_NOTFOUND)
			return x;
		if (g.n > 1)
			break;
		/* begin anew behind this one, or with it */
		if (g.n == 1 && !empty)
			i--;
		g.from = i + 1;
		g.n = g.ne = 0;
		g.used = 0;
	}
	if (g.n < 2)
		return AX_NOTFOUND;

	leaf = rt_made(&ch, rt_leaf_new(cx, s, g.e, g.ne, 0, rt_leaf_stepcap(g.ne + 1), false));
	ns -= g.n - 1;
	kind = c.P.hdr->kind;
	while (kind > RT_N4 && ns <= rt_node_slots(kind - 1u))
		kind--;
	h = rt_made_node(&ch, rt_node_new(cx, s, kind, rt_prefix(c.P.hdr), c.P.hdr->plen, false));
	if (h && leaf)
	{
		slots[g.from].hi = slots[g.from + g.n - 1].hi;
		slots[g.from].r = leaf;
		memmove(&slots[g.from + 1], &slots[g.from + g.n],
				(size_t) (ns - g.from - 1) * sizeof(slots[0]));
		rt_node_fill(h, slots, ns);
		ch.put = rt_node_ref(h);
	}
	ch.gone = g.leaf;
	ch.ngone = g.n;
	AX_POINT("art.join.before_lock");
	x = rt_begin(cx, s, &c, &ch);
	/* all is as it was when it was copied */
	if (x == AX_OK)
		rt_finish(cx, s, &c, key, &ch);
	return x == AX_NOMEM ? AX_NOTFOUND : x;
}

/*
 * whole: the key was not cut off.  False: others were in the way, there may be
 * more to be joined.
 */
static bool
join_leaves(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, bool whole)
{
	ax_status	x = AX_OK;
	int			tries = 0;

	for (int i = 0; i < 256 && !ax_pessimistic(tries); i++)
	{
		x = join_some(cx, s, key, len);
		if (!ax_start_over(cx, s, x, &tries) && x != AX_OK)
			break;
	}
	/* a node that was left with one child goes */
	if (whole)
		rt_tidy(cx, s, key, len);
	return x != AX_BUSY && x != AX_STALE;
}

/* ---- the ring ---- */

/*
 * The ring of expansions, latched, if there is one and nobody else has it.
 *
 * Latches: the ring's is held unless NULL is returned.
 */
static rt_hot *
hot_try(ax_ctx *cx, ax_store *s)
{
	rt_hot    *hot = (rt_hot *) (uintptr_t) atomic_load_explicit(&rt_own_of(s)->hot, memory_order_acquire);

	if (hot && ax_word_trylock(cx, &hot->latch, ax_word_read(&hot->latch)))
		return hot;
	return NULL;
}

/*
 * Remember an expansion, in a node that the first "depth" bytes of the key lead to.
 * An expansion that has no place any more is joined at once.
 */
static void
remember_expansion(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, uint32_t depth)
{
	rt_hot    *hot;
	rt_hot_key out = {.at = 0};
	rt_hot_key *k = NULL;
	bool		whole = len <= HOT_KEY_BYTES;

	if (!atomic_load_explicit(&rt_own_of(s)->hot, memory_order_acquire))
	{
		uint64_t	none = 0;

		hot = ax_alloc_public(cx, s, sizeof(rt_hot));
		if (!hot)
			return;				/* it stays expanded */
		memset(hot, 0, sizeof(*hot));
		atomic_init(&hot->latch, AX_WORD_INIT);
		if (!atomic_compare_exchange_strong(&rt_own_of(s)->hot, &none, (uint64_t) (uintptr_t) hot))
			ax_unalloc(cx, s, hot, sizeof(rt_hot));
	}
	hot = hot_try(cx, s);
	if (!hot)
		return;
	if (!whole)
		len = HOT_KEY_BYTES;
	if (depth > len)
		depth = len;
	for (int i = 0; i < HOT_KEYS && !k; i++)
	{
		rt_hot_key *o = &hot->k[i];

		/* the same key again, or one of a node that was joined since */
		if (o->at ? o->len == len && memcmp(o->key, key, len) == 0 :
			o->len > 0 && o->len >= depth && memcmp(o->key, key, depth) == 0)
			k = o;
	}
	if (k)
		k->times += k->times < HOT_TIMES;
	else
	{
		k = &hot->k[hot->next++ % HOT_KEYS];
		out = *k;
		k->times = 0;
	}
	k->len = (uint8_t) len;
	k->whole = whole;
	memcpy(k->key, key, len);
	k->at = ax_body(cx)->port->now_ns();
	ax_word_unlock(cx, &hot->latch, true);
	if (out.at)
		(void) join_leaves(cx, s, out.key, out.len, out.whole);
}

/* Was it expanded so lately that it is to stay so? */
static bool
still_hot(ax_ctx *cx, const rt_hot_key *k)
{
	return k->at && ax_body(cx)->port->now_ns() - k->at < HOT_QUIET_NS << k->times;
}

/*
 * The bytes that lead to what was expanded lately, from the node to which len bytes of
 * path lead.  False: there is none, or somebody has the ring.  A key is known by
 * its beginning; what was expanded further down in it is not told.
 */
bool
rt_hot_bytes(ax_ctx *cx, ax_store *s, const uint8_t *path, uint32_t len, bool hot[256])
{
	rt_hot    *ring = hot_try(cx, s);
	bool		any = false;

	if (!ring)
		return false;
	memset(hot, 0, 256 * sizeof(bool));
	for (int i = 0; i < HOT_KEYS; i++)
	{
		const rt_hot_key *k = &ring->k[i];

		if (k->len > len && still_hot(cx, k) && memcmp(k->key, path, len) == 0)
			hot[k->key[len]] = any = true;
	}
	ax_word_unlock(cx, &ring->latch, false);
	return any;
}

ax_status
rt_settle(ax_ctx *cx, ax_store *s, bool all)
{
	for (int i = 0; i < HOT_KEYS; i++)
	{
		rt_hot    *hot = hot_try(cx, s);
		rt_hot_key k;
		bool		cold;

		if (!hot)
			return AX_OK;
		k = hot->k[i];
		cold = k.at && (all || !still_hot(cx, &k));
		if (cold)
			hot->k[i].at = 0;
		ax_word_unlock(cx, &hot->latch, cold);
		if (cold && !join_leaves(cx, s, k.key, k.len, k.whole) && (hot = hot_try(cx, s)) != NULL)
		{
			/* the next time, unless its place is another's now */
			rt_hot_key *o = &hot->k[i];

			if (o->at == 0 && o->len == k.len && memcmp(o->key, k.key, k.len) == 0)
				o->at = k.at;
			ax_word_unlock(cx, &hot->latch, true);
		}
	}
	return AX_OK;
}

/* ---- expanding ---- */

/*
 * Take the leaf of the key apart: one leaf a byte value, or a node below.  AX_OK:
 * done.  AX_NOTFOUND: it is better left as it is.  *depth: of the node above.
 *
 * Latches: none on entry and on return; takes those of rt_publish().
 */
static ax_status
expand(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, ax_word *word,
	   uint32_t *depth)
{
	rt_cursor	c;
	rt_leaf   *l;
	uint8_t		buf[RT_VAR_BYTES];
	rt_ent		e[RT_LEAF_MAX];
	rt_piece	p[RT_LEAF_MAX + 1];
	uint32_t	d;
	int			n,
				np;
	ax_status	x = find_expansion(cx, s, &c, key, len);
	if (x != AX_OK)
		return x;
	if (RT_TAG(c.ref) != RT_LEAF)
		return AX_NOTFOUND;
	l = RT_PTR(c.ref);
	*depth = d = c.d;
	/* within the TID: one key's rows */
	if ((word && &l->word != word) || len - d <= 1 + AX_TID_BYTES || (l->flags & RT_F_ONE))
		return AX_NOTFOUND;
	x = rt_open_leaf(cx, &c, AX_OPTIMISTIC);
	if (x != AX_OK)
		return x;
	n = rt_leaf_ents(l, e, buf);
	if (!ax_guard_valid(&c.N))
		return AX_STALE;
	if (n < 2)
		return AX_NOTFOUND;
	rt_sort_ents(e, n);
	/* the newest of rising keys, or one key's rows */
	if (e[n - 1].len == len - d && memcmp(e[n - 1].p, key + d, len - d) == 0)
		return AX_NOTFOUND;
	if (e[0].len == e[n - 1].len &&
		memcmp(e[0].p, e[n - 1].p, e[0].len - AX_TID_BYTES) == 0)
		return AX_NOTFOUND;

	if (c.P.hdr && e[0].p[0] != e[n - 1].p[0])
		np = rt_cut(cx, s, e, n, 1, p);
	else
	{
		rt_build	b = {.cx = cx,.s = s,.e = e,.fill = 1};

		p[0].lo = e[0].p[0];
		p[0].r = rt_build_node(&b, 0, (uint64_t) n, c.P.hdr ? 1 : 0, 0);
		np = p[0].r != 0;
	}
	if (np == 0)
		return AX_NOTFOUND;		/* no memory: no matter */
	AX_POINT("art.expand.before_publish");
	x = rt_publish(cx, s, &c, key, p, np, 0);
	return x == AX_NOMEM ? AX_NOTFOUND : x;
}

/*
 * This process has waited often for the leaf that key has just gone to or come
 * from.  Its latch word is "word" (NULL: whichever it is).  Nothing is held.  No
 * failure of anything if it cannot be done.
 */
void
rt_expand(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, ax_word *word)
{
	ax_status	x = AX_STALE;
	uint32_t	depth = 0;
	int			tries = 0;

	while (x == AX_STALE && !ax_pessimistic(tries))
	{
		x = expand(cx, s, key, len, word, &depth);
		(void) ax_start_over(cx, s, x, &tries);
	}
	if (x != AX_OK)
		return;
	AX_COUNT(cx, s, expansions, 1);
	remember_expansion(cx, s, key, len, depth);
	(void) rt_settle(cx, s, false);
}
