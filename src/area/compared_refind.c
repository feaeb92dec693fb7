/*
 * compared_refind.c
 *	  Places in a tree whose order may be none: entries that were found once are found
 *	  again by their bytes.
 *
 * A class that is not core's may be no order (kd->doubtful): a key that is in the tree
 * need not be found by comparing.  So what was found once is found again by its bytes,
 * from where it was.  A scan goes on behind its last entry in that way, as nbtree does by
 * the links of its pages.  It comes to each entry once and to an end, whatever the
 * function says.  So does VACUUM, which finds there what it removes.
 *
 * The places are remembered by the addresses of their pages (ax_cmp_return).  Where that
 * fails the key is compared, and found if the class is an order.  Then the whole tree is
 * looked through.
 *
 * An entry that is gone has no place.  But entries never pass each other: they move to a
 * new leaf on the right, or to the leaf on the left.  So a scan goes on between those that
 * lay behind it and those that did not.  It keeps copies of the last leaves that it went
 * through, and looks for the outermost of their entries that is there still.
 *
 * src/area/README.md: Keys that are compared
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "area/area.h"
#include "area/compared_descent.h"

#define ART_CMP_NEAR	4096	/* leaves beside a place in which an entry of its batch is looked for */
#define ART_CMP_SPLITS	8		/* .. and in which its own entry is */

void
art_spot_set(ArtSpot *place, const ArtOp *op, const uint8 *key, uint32 len)
{
	place->gen = op->gen;
	place->n = op->p->n;
	for (int i = 0; i < place->n; i++)
		place->page[i] = op->p->f[i].page;
	if (place->n > 0)
		place->born = op->p->f[place->n - 1].born;
	place->made = op->p->made;
	place->key.len = 0;
	if (len > 0)
	{
		art_buf_reserve(&place->key, len);
		memcpy(place->key.data, key, len);
		place->key.len = len;
	}
}

/* Is the path's leaf the one of the place, and not another one at its address? */
static inline bool
is_leaf_of(const ArtOp *op, const ArtSpot *place)
{
	const ax_cnode *leaf = &op->p->f[op->p->n - 1];

	return place->gen == op->gen && place->n > 0 && leaf->page == place->page[place->n - 1] &&
		leaf->born == place->born;
}

/* The entry of these bytes in the path's leaf. */
static ax_status
leaf_find(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same)
{
	const ax_cnode *leaf = &op->p->f[op->p->n - 1];
	const uint32 count = ax_cmp_count(leaf);

	*same = false;
	for (uint32 i = 0; i < count; i++)
	{
		uint32		elen;
		const uint8 *e = ax_cmp_key(leaf, i, &elen);

		if (e == NULL && len > op->p->size / 8)
		{
			ax_status	s = art_op_key(op, op->p->n - 1, i, &e, &elen);

			if (s != AX_OK)
				return s;
		}
		if (e != NULL && elen == len && memcmp(e + len - AX_TID_BYTES, key + len - AX_TID_BYTES, AX_TID_BYTES) == 0 &&
			memcmp(e, key, len) == 0)
		{
			*at = i;
			*same = true;
			return AX_OK;
		}
	}
	return AX_OK;
}

/*
 * The entry in the path's leaf and those beside it, to the one behind the batch's end.
 * AX_OK without *same, AX_NOTFOUND: not in so many of them, or in none.
 */
static ax_status
leaves_find(ArtOp *op, bool left, uint32 leaves, const uint8 *key, uint32 len, uint32 *at,
			bool *same)
{
	const ArtSpot *end = &op->w->again->end;
	const void *stop = end->gen == op->gen && end->n > 0 ? end->page[end->n - 1] : NULL;

	for (;;)
	{
		ax_status	s = leaf_find(op, key, len, at, same);

		if (op->p->f[op->p->n - 1].page == stop)
			leaves = Min(leaves, 2);
		if (s != AX_OK || *same || --leaves == 0)
			return s;
		CHECK_FOR_INTERRUPTS();
		s = art_op_beside(op, left);
		if (s != AX_OK)
			return s;
	}
}

/*
 * Back to the leaf of a place.  AX_NOTFOUND: it is gone; the path leads near it, or is
 * empty.
 *
 * Epoch: enters and leaves.
 */
static ax_status
op_return(ArtOp *op, const ArtSpot *place)
{
	ax_status	s;

	op->p->n = 0;
	if (place->gen != op->gen || place->n == 0 || place->n + 1 >= AX_CMP_LEVELS)
		return AX_NOTFOUND;
	for (;;)
	{
		ART_CORE_BEGIN();
		s = ax_cmp_return(op->cx, op->tree, op->gen, op->p, place->page, place->n);
		ART_CORE_END();
		if (s != AX_BUFFER)
			break;
		art_op_room(op, op->p->n);	/* others made the tree higher meanwhile, perhaps by much */
	}
	return s == AX_OK && !is_leaf_of(op, place) ? AX_NOTFOUND : s;
}

/*
 * On to the leaf beside the path's.  If a page above has changed: to the same leaf once more,
 * which may have other entries now.  AX_NOTFOUND: there is none.  AX_CHANGED: the path's
 * leaf is gone, or somebody changes it now.
 */
static ax_status
op_step(ArtOp *op, bool left)
{
	ArtSpot		here = {0};
	ax_status	s;

	CHECK_FOR_INTERRUPTS();
	art_spot_set(&here, op, NULL, 0);
	s = art_op_beside(op, left);
	if (s != AX_CHANGED)
		return s;
	s = op_return(op, &here);
	return s == AX_NOTFOUND ? AX_CHANGED : s;
}

/*
 * The entry near a place: from there to the right, negative: to the left, in so many
 * leaves, and in the one on the other side.  Those of a page above where the place is
 * gone.  AX_OK: as *same says.  AX_CHANGED: somebody changes it now; again.
 */
static ax_status
op_find_near(ArtOp *op, const ArtSpot *place, int leaves, const uint8 *key, uint32 len,
			 uint32 *at, bool *same)
{
	bool		left = leaves < 0;

	*same = false;
	for (int side = 0; side < 2; side++)
	{
		ax_status	s = op_return(op, place);

		if (s == AX_OK && side == 1)
			s = art_op_beside(op, !left);
		else if (s == AX_NOTFOUND && side == 0 && op->p->n > 0)
		{
			leaves = ART_CMP_NEAR;
			left = false;
			s = AX_OK;
		}
		if (s == AX_OK)
			s = leaves_find(op, left, side == 0 ? (uint32) abs(leaves) : 1, key, len, at, same);
		if ((s != AX_OK && s != AX_NOTFOUND) || *same)
			return s;
	}
	return AX_OK;
}

ax_status
art_find_anywhere(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same)
{
	ax_status	s = art_op_find(op, NULL, 0, false, true, at, same);

	*same = false;
	while (s == AX_OK && op->p->n > 0)
	{
		s = leaf_find(op, key, len, at, same);
		if (s == AX_OK && *same)
			return s;
		if (s == AX_OK)
			s = op_step(op, false);
	}
	return s == AX_NOTFOUND ? AX_OK : s;
}

/* The leaf that a scan went through so many before the last one. */
static inline ArtSeen *
seen_before(const ArtAgain *w, uint32 i)
{
	return w->seen[(w->seen_at + ART_CMP_SEEN - i) % ART_CMP_SEEN];
}

/* Entry i of a leaf that was seen.  NULL: it is a long one, of which no bytes were kept. */
static inline const uint8 *
seen_key(const ArtSeen *seen, uint32 i, uint32 *len)
{
	ax_cnode	f = {.image = seen->image};

	return ax_cmp_key(&f, i, len);
}

void
art_spot_seen(ArtOp *op, uint32 at)
{
	ArtAgain   *w = op->w->again;
	const ax_cnode *leaf = &op->p->f[op->p->n - 1];
	ArtSeen    *s = seen_before(w, 0);

	if (w->nseen > 0 && s->version == leaf->version && is_leaf_of(op, &s->place))
	{
		s->upto = w->backward ? Min(s->upto, at) : Max(s->upto, at);
		return;
	}
	w->seen_at = (w->seen_at + 1) % ART_CMP_SEEN;
	w->nseen = Min(w->nseen + 1, ART_CMP_SEEN);
	s = seen_before(w, 0);
	if (s == NULL)
		s = w->seen[w->seen_at] = MemoryContextAllocZero(op->kd->cmp->cxt, sizeof(ArtSeen));
	if (s->size != op->p->size)
	{
		if (s->image != NULL)
			pfree(s->image);
		s->image = NULL;
		s->size = 0;
		s->image = MemoryContextAlloc(op->kd->cmp->cxt, op->p->size);
		s->size = op->p->size;
	}
	memcpy(s->image, leaf->image, s->size);
	art_spot_set(&s->place, op, NULL, 0);
	s->version = leaf->version;
	s->upto = at;
}

/* How many entries a leaf had that was seen. */
static inline uint32
seen_count(const ArtSeen *s)
{
	return ax_cmp_count(&(ax_cnode) {.image = s->image});
}

/* Does the entry lie behind the scan?  Then the scan forgets what it went through after that. */
static bool
seen_upto(ArtAgain *w, uint64 gen, const uint8 *key, uint32 len)
{
	for (; w->nseen > 0; w->nseen--, w->seen_at = (w->seen_at + ART_CMP_SEEN - 1) % ART_CMP_SEEN)
	{
		ArtSeen    *s = seen_before(w, 0);
		const uint32 hi = w->backward ? seen_count(s) : s->upto;

		for (uint32 i = w->backward ? s->upto : 0; i < hi && s->place.gen == gen; i++)
		{
			uint32		elen;
			const uint8 *e = seen_key(s, i, &elen);

			if (e == NULL || elen != len || memcmp(e, key, len) != 0)
				continue;
			s->upto = w->backward ? i : i + 1;
			return true;
		}
	}
	return false;
}

/* The place of an entry's bytes in the table, which has it or nothing there. */
static inline ArtBehind *
table_find(const ArtAgain *w, const uint8 *key, uint32 len)
{
	const uint32 mask = w->places - 1;
	uint32		at;

	memcpy(&at, key + len - sizeof(at), sizeof(at));	/* of the TID */
	at = (at * 0x9E3779B1u) >> 8 & mask;
	while (w->table[at].p != NULL &&
		   (w->table[at].len != len || memcmp(w->table[at].p, key, len) != 0))
		at = (at + 1) & mask;
	return &w->table[at];
}

/* The entries that lie behind the scan, as a table of their bytes.  A long one has none. */
static void
table_fill(ArtOp *op)
{
	ArtAgain   *w = op->w->again;
	uint32		n = 1,
				nth = 0;

	for (uint32 k = 0; k < w->nseen; k++)
		n += seen_count(seen_before(w, k));
	if (w->places < 2 * n)
	{
		if (w->table != NULL)
			pfree(w->table);
		w->table = NULL;
		w->places = 0;
		w->table = MemoryContextAlloc(op->kd->cmp->cxt, pg_nextpower2_32(2 * n) * sizeof(ArtBehind));
		w->places = pg_nextpower2_32(2 * n);
	}
	memset(w->table, 0, w->places * sizeof(ArtBehind));

	/* of two copies of a leaf the later one counts */
	for (uint32 k = w->nseen; k-- > 0;)
	{
		const ArtSeen *s = seen_before(w, k);
		const uint32 lo = w->backward ? s->upto : 0,
					hi = w->backward ? seen_count(s) : s->upto;

		for (uint32 i = lo; i < hi; i++)
		{
			ArtBehind	e;

			e.p = seen_key(s, w->backward ? hi - 1 - (i - lo) : i, &e.len);
			e.nth = ++nth;
			if (e.p != NULL)
				*table_find(w, e.p, e.len) = e;
		}
	}
}

/* Of the entries of the path's leaf that lie behind the scan, the last that it came to, if later than the anchor. */
static void
leaf_hit(ArtOp *op, uint32 *nth)
{
	ArtAgain   *w = op->w->again;
	const ax_cnode *leaf = &op->p->f[op->p->n - 1];
	const ArtBehind *last = NULL;

	for (uint32 i = 0; i < ax_cmp_count(leaf); i++)
	{
		uint32		len;
		const uint8 *e = ax_cmp_key(leaf, i, &len);
		const ArtBehind *b = e == NULL ? NULL : table_find(w, e, len);

		if (b != NULL && b->nth > *nth)
		{
			*nth = b->nth;
			last = b;
		}
	}
	if (last != NULL)
		art_spot_set(&w->anchor, op, last->p, last->len);
}

/*
 * Has the scan not come to the path's leaf yet, or gone through it so long ago that it forgot?
 * The leaf was there when that one was copied from which we came here.
 *
 * A leaf that was made since may have what that one had, and those that the scan went through
 * after it.  Any other one, with a number up to "made", would be among those that were seen:
 * the scan went through all leaves on its way.  (If it was put into the tree behind the scan,
 * it is made of one that the scan had copied.  Its number was taken under the latch of that one,
 * after the copy.)
 */
static bool
is_beyond(const ArtOp *op, uint64 made)
{
	const ArtAgain *w = op->w->again;

	if (op->p->f[op->p->n - 1].born > made)
		return false;
	for (uint32 k = 0; k < w->nseen; k++)
	{
		if (is_leaf_of(op, &seen_before(w, k)->place))
			return false;
	}
	return true;
}

/* The scan goes on beside the anchor. */
static ax_status
op_at_anchor(ArtOp *op, uint32 *at, bool *found)
{
	ArtAgain   *w = op->w->again;
	ax_status	s = op_return(op, &w->anchor);

	if (s == AX_OK)
		s = leaf_find(op, w->anchor.key.data, w->anchor.key.len, at, found);
	if (s == AX_OK && *found && !w->backward)
		++*at;
	return (s == AX_OK && !*found) || s == AX_NOTFOUND ? AX_CHANGED : s;
}

/*
 * From the path's leaf that way, to the first leaf that is_beyond(), or to the end: the last
 * entry that lies behind the scan, as the anchor.  *nth: its number; as it was, if none is
 * later.  AX_OK: the path is at the leaf beyond; AX_NOTFOUND: at the last one.
 *
 * Entries do not pass each other, so the last one is the outermost.  But a row may have come
 * with the bytes of one that is gone, and lie elsewhere in what is no order.  It is seldom
 * the last.
 */
static ax_status
op_walk_seen(ArtOp *op, bool left, uint64 made, uint32 *nth)
{
	for (;;)
	{
		const bool	beyond = is_beyond(op, made);
		ax_status	s;

		/* a merge puts entries into the leaf to the left, however old that is */
		if (left || !beyond)
			leaf_hit(op, nth);
		if (beyond)
			return AX_OK;
		s = op_step(op, left);
		if (s != AX_OK)
			return s;
	}
}

/*
 * The last entry that a scan has got is gone.  Where the scan goes on: the path, and *at.
 * *found false: all leaves that it remembers are gone.
 *
 * The search begins at the last of them that is there.  The leaves after that one were merged,
 * or packed into new ones, so their entries are beside it.
 */
static ax_status
op_find_seen(ArtOp *op, uint32 *at, bool *found)
{
	ArtAgain   *w = op->w->again;
	const ArtSpot *from = NULL;
	uint32		k,
				nth = 0;
	ax_status	s = AX_NOTFOUND;

	*found = false;
	for (k = 0; k < w->nseen && s == AX_NOTFOUND; k++)
	{
		from = &seen_before(w, k)->place;
		if (from->gen == op->gen)
			s = op_return(op, from);
	}
	if (s != AX_OK)
		return s == AX_NOTFOUND ? AX_OK : s;
	table_fill(op);

	/* nothing that lies behind the scan is to the left of the last leaf that it went through */
	if (w->backward && k > 1)
	{
		s = op_walk_seen(op, true, from->made, &nth);
		if (s == AX_OK || s == AX_NOTFOUND)
			s = op_return(op, from);
		if (s != AX_OK)
			return s == AX_NOTFOUND ? AX_CHANGED : s;
	}
	s = op_walk_seen(op, false, from->made, &nth);
	if (s != AX_OK && s != AX_NOTFOUND)
		return s;
	if (nth > 0)
		return op_at_anchor(op, at, found);

	/* all that lay behind the scan in these leaves is gone */
	*found = true;
	if (w->backward)
	{
		*at = s == AX_OK ? 0 : ax_cmp_count(&op->p->f[op->p->n - 1]);
		return AX_OK;
	}
	*at = 0;
	s = op_return(op, from);
	return s == AX_NOTFOUND ? AX_CHANGED : s;
}

/* The same, but the leaves that the scan remembers are all gone: through the whole tree. */
static ax_status
op_find_seen_anywhere(ArtOp *op, uint32 *at, bool *found)
{
	uint32		nth = 0;
	bool		same;
	ax_status	s = art_op_find(op, NULL, 0, false, true, at, &same);

	*found = false;
	if (s != AX_OK || op->p->n == 0)
		return s;
	table_fill(op);
	s = op_walk_seen(op, false, 0, &nth);
	if ((s == AX_OK || s == AX_NOTFOUND) && nth > 0)
		return op_at_anchor(op, at, found);
	return s == AX_NOTFOUND ? AX_OK : s;
}

ax_status
art_find_again(ArtOp *op, const uint8 *key, uint32 len, bool after, uint32 *at, bool *same)
{
	ArtAgain   *w = op->w->again;
	const bool	seen = seen_upto(w, op->gen, key, len);

	*at = 0;
	*same = false;
	for (int i = 0; i < ART_CMP_TRIES; i++)
	{
		bool		found = false;
		ax_status	s;

		if (seen)
			s = op_find_near(op, &seen_before(w, 0)->place, ART_CMP_SPLITS, key, len, at, same);
		else if (w->end.key.len == len && memcmp(w->end.key.data, key, len) == 0)
			s = op_find_near(op, &w->end, ART_CMP_SPLITS, key, len, at, same);
		else					/* in the middle of a batch: behind its beginning */
			s = op_find_near(op, &w->begin, w->backward ? -ART_CMP_NEAR : ART_CMP_NEAR, key, len, at,
							 same);
		if (s == AX_OK && !*same && seen)
			s = op_find_seen(op, at, &found);
		if (s == AX_OK && !*same && !found)
		{
			s = art_op_find(op, key, len, after, true, at, same);
			if (s == AX_OK && !*same && op->p->n > 0)
				s = seen ? op_find_seen_anywhere(op, at, &found) : art_find_anywhere(op, key, len, at, same);
			if (s == AX_OK && !*same && !found)
				return art_op_find(op, key, len, after, true, at, same);
		}
		if (s != AX_CHANGED)
			return s;
		art_op_lost(op, i);
	}
	return AX_BUSY;
}

ax_status
art_find_gone(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same)
{
	ArtAgain   *w = op->w->again;
	ax_status	s = op_find_near(op, &w->gone, ART_CMP_NEAR, key, len, at, same);

	if (s == AX_OK && !*same)
		s = op_find_near(op, &w->begin, ART_CMP_NEAR, key, len, at, same);
	return s;					/* AX_CHANGED: the caller tries again */
}

void
art_spot_done(ArtWalk *walk, const ax_batch *b)
{
	ArtAgain   *w = walk->again;
	ArtSpot	swap = w->begin;

	w->begin = w->next;
	w->next = swap;
	w->gone.gen = 0;
	if (b->n == 0)
		return;
	w->end.key.len = 0;
	if (b->lastkey != NULL)
	{
		art_buf_reserve(&w->end.key, b->lastlen);
		memcpy(w->end.key.data, b->lastkey, b->lastlen);
		w->end.key.len = b->lastlen;
	}
}
