/*
 * rt_many.c
 *	  Point look-ups of several keys at once, and what goes before several
 *	  inserts.
 *
 * A look-up of a large tree is a few waits for memory, one after the other,
 * and little else.  Here each of a group takes one step and asks for the next
 * lines, and while those come in the others take theirs.  So do Psaropoulos et
 * al., "Interleaving with Coroutines" (VLDB 2018).  When all have got to their
 * leaves, these are read in the keys' order.  So their TIDs go where they
 * belong at once.
 *
 * Every step is that of rt_lookup, or rt_rowex_lookup, so the same holds of it.
 * Between the read of a reference and the sample of the child, others take their
 * time, but no time is too long there.  A look-up that does not meet a quiet tree
 * (a latch, a change, a key that reaches into its TIDs) is done again by itself.
 *
 * src/core/radix/README.md: The tree
 * src/core/radix/README.md: Races
 */
#include "rt_olc.h"

typedef enum state
{
	S_DOWN,						/* ref is a node */
	S_NEAR,						/* a leaf, the beginning of which was asked for */
	S_LEAF,
	S_EMBED,
	S_NONE,
	S_ALONE						/* by itself */
} state;

typedef struct lane
{
	rt_ref		ref;
	ax_word    *w;				/* what it was read from, and the version then */
	uint64_t	v;
	uint32_t	d;
	state		what;
} lane;

/* As a cursor, of which no more is looked at. */
static inline rt_cursor
cursor_of(const lane *a)
{
	return (rt_cursor) {.P.g.w = a->w, .P.g.v = a->v, .ref = a->ref, .d = a->d};
}

/*
 * From a node, whose lines were asked for, to what hangs there.
 *
 * Latches: none.
 */
static inline state
step_down(lane *a, const uint8_t *key, uint32_t len, const ax_mode mode)
{
	rt_cursor	c = cursor_of(a);
	ax_status	x = rt_step(NULL, &c, key, len, mode);

	if (ax_unlikely(x != AX_OK))
		return x == RT_PARTS ? S_NONE : S_ALONE;	/* immutable and reached: not there */
	*a = (lane) {c.ref, c.P.g.w, c.P.g.v, c.d, a->what};
	if (RT_TAG(c.ref) == RT_LEAF)
	{
		a->d--;					/* its entries keep the byte */
		ax_prefetch(RT_PTR(c.ref));
		return S_NEAR;
	}
	if (RT_IS_NODE(c.ref))
	{
		rt_prefetch_node(c.ref, key, len, c.d);
		return S_DOWN;
	}
	AX_POINT("art.lookup.absent");
	if (!ax_valid(&c.P.g, mode))
		return S_ALONE;
	if (c.ref == 0)
		return S_NONE;
	return c.d == len ? S_EMBED : S_ALONE;
}

/*
 * A leaf whose beginning has come in, and which was valid when it was read.
 * Ask for those of its entries that may be the key's, which is a line or two
 * and not all of it.  The leaf is not sampled; what is read decides of nothing
 * else.
 */
static inline state
step_near(lane *a, const uint8_t *key, uint32_t len, const ax_mode mode)
{
	rt_leaf   *l = RT_PTR(a->ref);

	if (mode != AX_ROWEX && ax_unlikely(!ax_word_valid(a->w, a->v)))
		return S_ALONE;
#ifndef AX_MAP_RWLOCKS			/* which knows no such reads */
	if (ax_likely(l->flags == 0 && l->w > AX_TID_BYTES))
	{
		uint32_t	m = rt_leaf_live(l) & rt_fp_match(l->body, l->cap, rt_fp(key, len));

		for (; m; m &= m - 1)
		{
			const uint8_t *q = l->body + l->cap + (uint32_t) __builtin_ctz(m) * l->w;

			ax_prefetch(q);
			ax_prefetch(q + l->w - 1);
		}
		return S_LEAF;
	}
#endif
	(void) l;
	rt_prefetch_leaf(a->ref);
	return S_LEAF;
}

/*
 * The TIDs of a leaf; false: not so.
 *
 * Latches: none.
 */
static inline bool
read_leaf(const lane *a, const uint8_t *key, uint32_t len, ax_found *f, const ax_mode mode)
{
	rt_cursor	c = cursor_of(a);

	if (rt_open_leaf(NULL, &c, mode) != AX_OK)
		return false;
	f->n = rt_leaf_tids(RT_PTR(c.ref), key + c.d, len - c.d, rt_fp(key, len), f->tids, f->max);
	AX_POINT("art.lookup.leaf_read");
	if (!ax_valid(&c.N, mode) || f->n > f->max)
		return false;
	rt_sort_tids(f->tids, f->n);
	return true;
}

/* Every lane at the root, whose lines are asked for.  Returns those that are nodes'. */
static inline uint32_t
begin_lookup(ax_store *s, lane *lanes, const ax_keys *keys, const bool rowex)
{
	uint32_t	going = 0;
	uint64_t	v = rowex ? 0 : ax_word_read(&s->root_word);
	/* nothing is read beside a latch, not even to be thrown away (helgrind sees it) */
	const bool	quiet = rowex || (ax_likely(!(v & AX_FLAGS)) && !ax_pessimistic(0));
	rt_ref		root = quiet ? ldref(&s->root) : 0;
	state		first = RT_IS_NODE(root) ? S_DOWN : RT_TAG(root) == RT_LEAF ? S_LEAF : S_ALONE;

	for (uint32_t i = 0; i < keys->n; i++)
	{
		lanes[i] = (lane) {root, &s->root_word, v, 0, first};
		if (first == S_DOWN)
		{
			rt_prefetch_node(root, keys->p[i], ax_key_len(keys, i), 0);
			going |= 1u << i;
		}
	}
	return going;
}

/*
 * Look keys up together: each step is made for all of them before the next,
 * so that their memory is waited for together.  A look-up that meets a latch
 * or a change is done alone at the end.
 *
 * Latches: none; "rowex" is known at compile time, and there nothing is
 * validated.
 * Returns: *done keys were answered; the rest had no room or no time.
 */
static inline ax_status
lookup_alone(ax_ctx *cx, ax_store *s, const ax_keys *keys, ax_found *f, uint32_t *counts,
			 uint32_t *done, const ax_mode mode)
{
	const bool	rowex = mode == AX_ROWEX;
	lane		lanes[AX_GROUP];
	uint32_t	going = begin_lookup(s, lanes, keys, rowex);

	f->n = 0;
	*done = 0;
	while (going)
		for (uint32_t left = going; left; left &= left - 1)
		{
			uint32_t	i = (uint32_t) __builtin_ctz(left);

			lanes[i].what = (lanes[i].what == S_DOWN ? step_down : step_near)
				(&lanes[i], keys->p[i], ax_key_len(keys, i), mode);
			if (lanes[i].what > S_NEAR)
				going &= ~(1u << i);
		}

	for (uint32_t i = 0; i < keys->n; i++)
	{
		lane	   *a = &lanes[i];
		const uint8_t *key = keys->p[i];
		uint32_t	len = ax_key_len(keys, i);
		ax_found	one = {.tids = f->tids + f->n, .max = f->max - f->n};

		if (a->what == S_LEAF && !read_leaf(a, key, len, &one, mode))
			a->what = S_ALONE;
		if (a->what == S_EMBED)
		{
			if (one.max == 0)
				break;
			one.tids[one.n++] = RT_EMBED_TID(a->ref);
		}
		if (ax_unlikely(a->what == S_ALONE))
		{
			ax_status	x = (rowex ? rt_rowex_lookup : rt_lookup) (cx, s, key, len, &one);

			if (x != AX_OK)
				return x;
			if (one.more)
				break;
		}
		f->n += counts[i] = one.n;
		++*done;
	}
	ax_map_unshare_all();
	return AX_OK;
}

ax_status
rt_lookup_many(ax_ctx *cx, ax_store *s, const ax_keys *keys, ax_found *f, uint32_t *counts,
			   uint32_t *done)
{
	return lookup_alone(cx, s, keys, f, counts, done, AX_TRY);
}

ax_status
rt_rowex_lookup_many(ax_ctx *cx, ax_store *s, const ax_keys *keys, ax_found *f,
					 uint32_t *counts, uint32_t *done)
{
	return lookup_alone(cx, s, keys, f, counts, done, AX_ROWEX);
}

/*
 * Before inserts, each of which then finds its path and its leaf at hand.  They
 * go by themselves and rely on nothing that was read here.  So under ROWEX, too,
 * the way down is that of a writer, and one that is not quiet is left.
 *
 * Epoch: inside.
 * Latches: none.
 */
void
rt_look_ahead(ax_ctx *cx, ax_store *s, const ax_keys *keys)
{
	lane		lanes[AX_GROUP];
	uint32_t	going = begin_lookup(s, lanes, keys, false);

	while (going)
		for (uint32_t left = going; left; left &= left - 1)
		{
			uint32_t	i = (uint32_t) __builtin_ctz(left);
			state		next = step_down(&lanes[i], keys->p[i], ax_key_len(keys, i), AX_TRY);

			if (next == S_NEAR)
				rt_prefetch_leaf(lanes[i].ref);
			if (next != S_DOWN)
				going &= ~(1u << i);
		}
	ax_map_unshare_all();
}
