/*
 * compared_calls.c
 *	  Operations on a tree whose keys are compared by their operator classes.
 *
 * The core has the pages and knows no order.  The comparison functions know
 * the order, and may allocate, raise an error, or run SQL.  So they are not
 * let into an epoch or near a latch (src/area/README.md, Keys that are compared).
 * A descent goes step by step: the core copies a page out, we compare in the
 * copy, and name the child.  An insert names the place, and the core does it
 * if the leaf is still the one that was copied; else it is done over.  Between
 * two calls of the core nothing is held, so an error of a comparison leaves
 * nothing behind.
 *
 * All together always get on.  An operation is done over only because a page
 * on its path has changed since it was copied: then somebody else's operation
 * was done.  One that is overtaken reads its leaf again, not the whole path.
 * After a number of tries it returns BUSY; its caller looks at interrupts and
 * comes back.
 *
 * src/area/README.md: Keys that are compared
 */
#include "postgres.h"

#include "area/area.h"
#include "area/tree_calls.h"
#include "area/compared_descent.h"

#define ART_CMP_SORTED	256		/* keys of a sorted insert a call */

/*
 * The very entry, or else one of its TID whose key is equal.
 */
static ax_status
op_find_row(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same)
{
	const uint8 *e;
	uint32		elen;
	ax_status	s = art_op_find(op, key, len, false, true, at, same);

	if (s != AX_OK || *same || op->kd->images || op->p->n == 0)
		return s;
	s = art_op_find(op, key, len, false, false, at, same);
	if (s == AX_OK && op->p->n > 0 && *at == ax_cmp_count(&op->p->f[op->p->n - 1]))
	{
		*at = 0;
		do
			s = art_op_beside(op, false);
		while (s == AX_OK && ax_cmp_count(&op->p->f[op->p->n - 1]) == 0);
	}
	if (s != AX_OK || op->p->n == 0)
		return s;
	s = art_op_key(op, op->p->n - 1, *at, &e, &elen);
	if (s == AX_OK)
		*same = memcmp(e + elen - AX_TID_BYTES, key + len - AX_TID_BYTES, AX_TID_BYTES) == 0 &&
			art_key_begins(op->kd, e, elen, key, len);
	return s;
}

/* ---- insert, remove, contains ---- */

/*
 * Insert a key for which the path says the place.  *same on return: it is there
 * already.
 *
 * Epoch: enters and leaves, once a try; compares between two.
 * Returns: AX_BUSY if others were faster every time; nothing was inserted.
 */
static ax_status
op_insert_at(ArtOp *op, uint32 at, bool *same, const uint8 *key, uint32 len)
{
	for (int i = 0; i < ART_CMP_TRIES; i++)
	{
		ax_status	s;

		if (*same)
			return AX_OK;
		ART_CORE_BEGIN();
		s = ax_cmp_insert(op->cx, op->tree, op->gen, op->p, at, key, len);
		ART_CORE_END();
		if (s != AX_CHANGED)
			return s;
		art_op_lost(op, i);
		s = art_op_again(op, key, len, &at, same);
		if (s == AX_CHANGED)
			s = art_op_find(op, key, len, false, true, &at, same);
		if (s != AX_OK)
			return s;
	}
	return AX_BUSY;
}

ax_status
art_cmp_insert(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
			   const uint8 *key, uint32 len)
{
	ArtOp		op;
	uint32		at;
	bool		same;
	ax_status	s = art_op_begin(&op, kd, cx, t, gen);

	if (s == AX_OK)
		s = art_op_find(&op, key, len, false, true, &at, &same);
	if (s == AX_OK)
		s = op_insert_at(&op, at, &same, key, len);
	return art_op_end(&op, s == AX_OK && same ? AX_EXISTS : s);
}

ax_status
art_cmp_contains(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
				 const uint8 *key, uint32 len)
{
	ArtOp		op;
	uint32		at;
	bool		same;
	ax_status	s = art_op_begin(&op, kd, cx, t, gen);

	for (int i = 0; s == AX_OK; i++)
	{
		s = op_find_row(&op, key, len, &at, &same);
		if (s != AX_CHANGED)
			break;
		art_op_lost(&op, i);
		s = i < ART_CMP_TRIES ? AX_OK : AX_BUSY;
	}
	return art_op_end(&op, s == AX_OK && !same ? AX_NOTFOUND : s);
}

ax_status
art_cmp_holds(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
			  const uint8 *key, uint32 len)
{
	ArtOp		op;
	uint32		at;
	bool		same = false;
	ax_status	s = art_op_begin(&op, kd, cx, t, gen);

	if (s == AX_OK)
		s = art_find_anywhere(&op, key, len, &at, &same);
	if (s == AX_CHANGED)
		s = AX_BUSY;
	return art_op_end(&op, s == AX_OK && !same ? AX_NOTFOUND : s);
}

/*
 * Epoch: enters and leaves, once a page; compares between two.
 * Returns: AX_BUSY if others were faster every time; nothing was removed.
 */
ax_status
art_cmp_remove(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
			   const uint8 *key, uint32 len)
{
	ArtOp		op;
	ax_status	s = art_op_begin(&op, kd, cx, t, gen);

	for (int i = 0; i < ART_CMP_TRIES && s == AX_OK; i++)
	{
		uint32		at;
		bool		same;

		same = false;
		if (unlikely(kd->doubtful))
		{
			s = art_find_gone(&op, key, len, &at, &same);
			if (s == AX_OK && same)
				art_spot_set(&op.w->again->gone, &op, NULL, 0);
		}
		if (s == AX_OK && !same)
			s = op_find_row(&op, key, len, &at, &same);
		if (s == AX_OK)
		{
			if (!same)
				return art_op_end(&op, AX_NOTFOUND);
			ART_CORE_BEGIN();
			s = ax_cmp_remove(cx, t, gen, op.p, at);
			ART_CORE_END();
			if (s == AX_OK)
				return art_op_end(&op, AX_OK);
		}
		if (s == AX_CHANGED)
		{
			art_op_lost(&op, i);
			s = AX_OK;
		}
	}
	return art_op_end(&op, s == AX_OK ? AX_BUSY : s);
}

/*
 * A key that lies in the leaf where the last one went in needs no descent.
 * The path goes on with that leaf.  Its end, as the pages above gave it, is as
 * good as it was, since only a change of the leaf narrows it.
 */
ax_status
art_cmp_insert_sorted(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
					  const ax_keys *keys, uint64 *done, uint64 *added)
{
	const uint64 n = Min(keys->n, ART_CMP_SORTED);
	ArtOp		op;
	uint32		at = 0;
	bool		follow = false;
	ax_status	s = art_op_begin(&op, kd, cx, t, gen);

	*done = *added = 0;
	while (s == AX_OK && *done < n)
	{
		const uint8 *key = keys->p[*done];
		uint32		klen = ax_key_len(keys, *done);
		bool		same = false;

		if (follow)
		{
			ax_cnode   *leaf = &op.p->f[op.p->n - 1];
			uint32		count = ax_cmp_count(leaf);

			s = art_op_search(&op, Min(at + 1, count), count,
							  &(ax_bound) {key, klen, false}, true, &at, &same);
			if (s == AX_OK && !same && at == count)
			{
				/* at its end, or beyond? */
				for (int k = op.p->n - 2; k >= 0; k--)
				{
					const uint8 *e;
					uint32		elen;

					if (op.p->f[k].i + 1 >= ax_cmp_count(&op.p->f[k]))
						continue;
					s = art_op_key(&op, k, op.p->f[k].i + 1, &e, &elen);
					if (s == AX_OK)
						follow = art_key_cmp(kd, e, elen, key, klen, false, true) > 0;
					break;
				}
			}
			if (s == AX_CHANGED)
			{
				s = AX_OK;
				follow = false;
			}
		}
		if (s == AX_OK && !follow)
			s = art_op_find(&op, key, klen, false, true, &at, &same);
		if (s == AX_OK)
		{
			bool		was = same;

			s = op_insert_at(&op, at, &same, key, klen);
			if (s == AX_OK)
			{
				++*done;
				*added += !same;
				/* done over, it may have come to another place */
				follow = op.p->n > 0 && was == same && ax_cmp_count(&op.p->f[op.p->n - 1]) > at;
				if (follow && !was)
				{
					const uint8 *e;
					uint32		elen;

					e = ax_cmp_key(&op.p->f[op.p->n - 1], at, &elen);
					follow = e != NULL && elen == klen && memcmp(e, key, klen) == 0;
				}
			}
		}
	}
	return art_op_end(&op, *done > 0 ? AX_OK : s);
}

/* ---- scans ---- */

static inline uint64
tid_of(const uint8 *key, uint32 len)
{
	uint64		tid = 0;

	for (int i = 0; i < AX_TID_BYTES; i++)
		tid = tid << 8 | key[len - AX_TID_BYTES + i];
	return tid;
}

/* The contents of a batch. */
typedef struct ArtFill
{
	ax_batch   *b;
	uint32		bytes;			/* of keybuf */
} ArtFill;

/*
 * One entry more.  AX_BUSY: the batch is full.  AX_BUFFER: not even this one.
 */
static ax_status
fill_add(ArtFill *f, const uint8 *key, uint32 len)
{
	ax_batch   *b = f->b;

	if (b->n == b->max)
		return AX_BUSY;
	if ((b->lastkey != NULL && len > b->lastkey_size) ||
		(b->want_keys && len > b->keybuf_size - f->bytes))
	{
		if (b->n > 0)
			return AX_BUSY;
		b->need_bytes = len;
		return AX_BUFFER;
	}
	if (b->want_keys)
	{
		memcpy(b->keybuf + f->bytes, key, len);
		f->bytes += len;
		b->key_off[b->n + 1] = f->bytes;
	}
	if (b->lastkey != NULL)
	{
		memcpy(b->lastkey, key, len);
		b->lastlen = len;
	}
	b->tids[b->n++] = tid_of(key, len);
	return AX_OK;
}

/*
 * Adds what the path's leaf has of the batch, from "at" on, in its direction.
 * *last: the end of the batch lies in this leaf.
 */
static inline ax_status
op_scan_leaf(ArtOp *op, ArtFill *f, uint32 at, bool *last)
{
	const ArtKeyDesc *kd = op->kd;
	const ax_batch *b = f->b;
	const ax_bound *to = b->backward ? &b->lo : &b->hi;
	ax_cnode   *leaf = &op->p->f[op->p->n - 1];
	uint32		count = ax_cmp_count(leaf);
	uint32		stop = b->backward ? 0 : count;
	bool		same;
	ax_status	s = AX_OK;

	*last = false;
	if (to->len > 0 && at != stop)
	{
		const uint8 *e;
		uint32		elen;
		int			c;

		/* as a rule a leaf lies on one side of it */
		s = art_op_key(op, op->p->n - 1, b->backward ? 0 : count - 1, &e, &elen);
		if (s == AX_OK)
		{
			c = art_key_cmp(kd, e, elen, to->key, to->len, to->after, true);
			if (c == 0)
				c = to->after ? -1 : 1;
			if (b->backward ? c < 0 : c > 0)
			{
				*last = true;
				s = art_op_search(op, b->backward ? 0 : at, b->backward ? at : count,
							  to, true, &stop, &same);
				if (s == AX_OK && same && to->after)
					stop++;
			}
		}
	}
	while (s == AX_OK && (b->backward ? at > stop : at < stop))
	{
		const uint8 *e;
		uint32		elen;

		s = art_op_key(op, op->p->n - 1, b->backward ? at - 1 : at, &e, &elen);
		if (s == AX_OK)
			s = fill_add(f, e, elen);
		if (s == AX_OK)
		{
			if (b->backward)
				at--;
			else
				at++;
		}
	}
	return s;
}

/*
 * The path to the position where a batch begins, and the place there of its first
 * entry.  A path of no pages: the tree is empty.
 */
static ax_status
find_begin(ArtOp *op, const ax_batch *b, uint32 *at)
{
	const ax_bound *from = b->backward ? &b->hi : &b->lo;
	const bool	again = unlikely(op->kd->doubtful) && art_key_is_entry(op->kd, from->key, from->len);
	bool		same;
	ax_status	s;

	if (unlikely(again))
		s = art_find_again(op, from->key, from->len, from->after, at, &same);
	else
		s = art_op_find(op, from->key, from->len, from->after, true, at, &same);
	if (s != AX_OK || op->p->n == 0)
		return s;
	/* an entry that is the position lies behind it if "before", else not */
	if (same && from->after)
		(*at)++;
	if (unlikely(op->kd->doubtful))
	{
		ArtAgain   *w = op->w->again;

		art_spot_set(&w->next, op, from->key, again ? from->len : 0);
		w->next_at = *at;
		if (!again)
		{
			w->nseen = w->nold = 0;
			w->all_left = from->len == 0 && !b->backward;
			w->all_right = from->len == 0 && b->backward;
		}
		else if (w->backward != b->backward)
		{
			w->nold += w->nseen;
			w->nseen = 0;
		}
		w->backward = b->backward;
	}
	return s;
}

/*
 * Fill from the path's leaf at place "at", and from those beside it.  AX_OK: the
 * batch is full, or exhausted and marked.  AX_NOTFOUND: no leaf follows.
 */
static ax_status
fill_on(ArtOp *op, ArtFill *f, uint32 at)
{
	ax_batch   *b = f->b;
	bool		begins = true;
	ax_status	s;

	do
	{
		const uint32 before = b->n;
		bool		last;

		s = op_scan_leaf(op, f, at, &last);
		if (unlikely(op->kd->doubtful))
		{
			ArtAgain   *w = op->w->again;
			const uint32 n = b->n - before;

			if (n > 0)
				art_spot_set(&w->end, op, NULL, 0);
			/* what begins and ends in one leaf is as a rule a look-up, and does not go on */
			if (!last || s != AX_OK || w->nseen > 0 || w->next.key.len > 0)
				art_spot_seen(op, b->backward ? at - n : at + n, begins);
			begins = false;
		}
		if (s != AX_OK)
			return s;
		b->exhausted = last;
		if (last || b->n == b->max)
			return AX_OK;
		s = art_op_beside(op, b->backward);
		at = s == AX_OK && b->backward ? ax_cmp_count(&op->p->f[op->p->n - 1]) : 0;
	} while (s == AX_OK);
	return s;
}

/* Fill one batch from the leaves between its bounds, in its direction. */
static ax_status
op_scan(ArtOp *op, ax_batch *b)
{
	const ax_bound *to = b->backward ? &b->lo : &b->hi;
	ArtFill		f = {.b = b};

	/* before everything, and after: nothing lies there */
	if (to->len == 0 && to->after == b->backward)
	{
		b->exhausted = true;
		return AX_OK;
	}

	for (int tries = 0; tries < ART_CMP_TRIES; tries++)
	{
		uint32		at;
		ax_status	s = find_begin(op, b, &at);

		if (s != AX_OK)
			return s;
		if (op->p->n == 0)
		{
			b->exhausted = true;
			return AX_OK;
		}
		s = fill_on(op, &f, at);
		switch (s)
		{
			case AX_NOTFOUND:
				b->exhausted = true;
				return AX_OK;
			case AX_BUSY:
			case AX_CHANGED:
				/* what there is can be used; the next batch starts by value */
				if (b->n > 0)
					return AX_OK;
				if (s == AX_BUSY)
					return s;
				art_op_lost(op, tries);
				break;
			default:
				return s;
		}
	}
	return AX_BUSY;
}

ax_status
art_cmp_scan(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen, ax_batch *b)
{
	ArtOp		op;
	ax_status	s = art_op_begin(&op, kd, cx, t, gen);

	b->n = 0;
	b->lastlen = 0;
	b->exhausted = false;
	if (b->want_keys)
		b->key_off[0] = 0;
	if (s == AX_OK)
		s = op_scan(&op, b);
	if (unlikely(kd->doubtful) && s == AX_OK)
		art_spot_done(op.w, b);
	return art_op_end(&op, s);
}

ax_status
art_cmp_lookup(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
			   const uint8 *prefix, uint32 len, ax_found *f)
{
	ax_batch	b = {.max = f->max, .tids = f->tids};
	ax_status	s;

	b.lo.key = b.hi.key = prefix;
	b.lo.len = b.hi.len = len;
	b.hi.after = true;
	s = art_cmp_scan(kd, cx, t, gen, &b);
	f->n = b.n;
	f->more = !b.exhausted;
	return s;
}
