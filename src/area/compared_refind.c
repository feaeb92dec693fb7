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
 * through, and looks for the nearest of their entries that is there still.
 *
 * src/area/README.md: Keys that are compared
 */
#include "postgres.h"

#include "common/hashfn.h"
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
	{
		place->born = op->p->f[place->n - 1].born;
		place->made = op->p->f[place->n - 1].made;
	}
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

/* From here on a batch began, as "next" says. */
static void
begins_here(ArtAgain *w, ArtSeen *s)
{
	s->from.len = 0;
	art_buf_reserve(&s->from, w->next.key.len);
	if (w->next.key.len > 0)
		memcpy(s->from.data, w->next.key.data, w->next.key.len);
	s->from.len = w->next.key.len;
	s->from_at = w->next_at;
}

void
art_spot_seen(ArtOp *op, uint32 at, bool begins)
{
	ArtAgain   *w = op->w->again;
	const ax_cnode *leaf = &op->p->f[op->p->n - 1];
	const uint32 next = (w->seen_at + 1) % ART_CMP_SEEN;
	ArtSeen    *s = seen_before(w, 0);

	if (w->nseen > 0 && s->version == leaf->version && is_leaf_of(op, &s->place))
	{
		s->upto = w->backward ? Min(s->upto, at) : Max(s->upto, at);
		if (begins)
			begins_here(w, s);
		return;
	}
	if (w->seen[next] == NULL)
		w->seen[next] = MemoryContextAllocZero(op->kd->cmp->cxt, sizeof(ArtSeen));
	s = w->seen[next];
	s->from.cxt = op->kd->cmp->cxt;
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
	s->backward = w->backward;
	s->upto = at;
	s->from.len = 0;
	if (begins)
		begins_here(w, s);
	if (w->nseen + w->nold == ART_CMP_SEEN)
		w->all_left = w->all_right = false;
	w->seen_at = next;
	w->nseen = Min(w->nseen + 1, ART_CMP_SEEN);
	w->nold = Min(w->nold, ART_CMP_SEEN - w->nseen);
}

/* How many entries a leaf had that was seen. */
static inline uint32
seen_count(const ArtSeen *s)
{
	return ax_cmp_count(&(ax_cnode) {.image = s->image});
}

/*
 * Does the entry lie behind the scan, or did a batch begin there?  Then the scan forgets what
 * it went through after that.
 */
static bool
seen_upto(ArtAgain *w, uint64 gen, const uint8 *key, uint32 len)
{
	for (; w->nseen > 0; w->nseen--, w->seen_at = (w->seen_at + ART_CMP_SEEN - 1) % ART_CMP_SEEN)
	{
		ArtSeen    *s = seen_before(w, 0);
		const uint32 hi = w->backward ? seen_count(s) : s->upto;

		if (s->place.gen != gen)
			continue;
		if (s->from.len == len && memcmp(s->from.data, key, len) == 0)
		{
			s->upto = s->from_at;
			return true;
		}
		for (uint32 i = w->backward ? s->upto : 0; i < hi; i++)
		{
			uint32		elen;
			const uint8 *e = seen_key(s, i, &elen);

			if (e == NULL || elen != len || memcmp(e, key, len) != 0)
				continue;
			s->upto = w->backward ? i : i + 1;
			return true;
		}
	}
	w->nold = 0;
	w->all_left = w->all_right = false;
	return false;
}

/* The place of an entry's bytes in the table, which has it or nothing there. */
static inline ArtKnown *
table_find(const ArtAgain *w, const uint8 *key, uint32 len)
{
	uint32		at;

	memcpy(&at, key + len - sizeof(at), sizeof(at));	/* of the TID */
	at = murmurhash32(at) & (w->places - 1);
	while (w->table[at].p != NULL &&
		   (w->table[at].len != len || memcmp(w->table[at].p, key, len) != 0))
		at = (at + 1) & (w->places - 1);
	return &w->table[at];
}

/* Into the table, in place of what it has of that entry.  A long one it has not. */
static inline void
table_put(const ArtAgain *w, const ArtSeen *s, uint32 i, uint32 nth)
{
	ArtKnown	e = {.nth = nth, .left = i < s->upto};

	e.p = seen_key(s, i, &e.len);
	if (e.p != NULL)
		*table_find(w, e.p, e.len) = e;
}

/*
 * The entries on either side of the scan's place, as a table of their bytes: those that lay
 * behind the scan, also before it turned round, and all of the last leaf.
 *
 * Of two copies that have an entry the later one counts.  So what the scan passed again on its
 * way back is on the other side.
 */
static void
table_fill(ArtOp *op)
{
	ArtAgain   *w = op->w->again;
	const ArtSeen *s = seen_before(w, 0);
	uint32		n = 1,
				nth = 0;

	for (uint32 k = 0; k < w->nseen + w->nold; k++)
		n += seen_count(seen_before(w, k));
	if (w->places < 2 * n)
	{
		if (w->table != NULL)
			pfree(w->table);
		w->table = NULL;
		w->places = 0;
		w->table = MemoryContextAlloc(op->kd->cmp->cxt, pg_nextpower2_32(2 * n) * sizeof(ArtKnown));
		w->places = pg_nextpower2_32(2 * n);
	}
	memset(w->table, 0, w->places * sizeof(ArtKnown));

	/* each comes nearer to the place */
	for (uint32 k = w->nseen + w->nold; k-- > 0;)
	{
		s = seen_before(w, k);
		for (uint32 i = 0; !s->backward && i < s->upto; i++)
			table_put(w, s, i, ++nth);
		for (uint32 i = seen_count(s); s->backward && i-- > s->upto;)
			table_put(w, s, i, ++nth);
	}
	for (uint32 i = seen_count(s); !s->backward && i-- > s->upto;)
		table_put(w, s, i, ++nth);
	for (uint32 i = 0; s->backward && i < s->upto; i++)
		table_put(w, s, i, ++nth);
}

/* Does the path's leaf have entries of the table that are nearer to the scan's place? */
static void
leaf_hit(ArtOp *op, ArtHit *hit)
{
	ArtAgain   *w = op->w->again;
	const ax_cnode *leaf = &op->p->f[op->p->n - 1];
	const ArtKnown *left = NULL,
			   *right = NULL;

	for (uint32 i = 0; i < ax_cmp_count(leaf); i++)
	{
		uint32		len;
		const uint8 *e = ax_cmp_key(leaf, i, &len);
		const ArtKnown *b = e == NULL ? NULL : table_find(w, e, len);

		if (b != NULL && b->left && b->nth > hit->left)
		{
			hit->left = b->nth;
			left = b;
		}
		else if (b != NULL && !b->left && b->nth > hit->right)
		{
			hit->right = b->nth;
			right = b;
		}
	}
	if (left != NULL)
		art_spot_set(&w->left, op, left->p, left->len);
	if (right != NULL)
		art_spot_set(&w->right, op, right->p, right->len);
}

/*
 * Has the scan not come to the path's leaf yet, or gone through it so long ago that it forgot?
 * The leaf was there when that one was copied from which we came here.
 *
 * A leaf that was made since may have what that one had, and those that the scan went through
 * after it.  Any other one, with a number up to "made", lies beyond them, or is among those
 * that were seen: from that one on the scan went through all leaves on its way.  (If it was
 * put into the tree behind the scan, it is made of one that the scan had copied.  Its number
 * was taken under the latch of that one, after the copy.)
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

/* The scan goes on beside the entry that was found nearest to its place, to the right of that one if "left" is. */
static ax_status
op_beside_hit(ArtOp *op, bool left, uint32 *at, bool *found)
{
	ArtAgain   *w = op->w->again;
	const ArtSpot *spot = left ? &w->left : &w->right;
	ax_status	s = op_return(op, spot);

	if (s == AX_OK)
		s = leaf_find(op, spot->key.data, spot->key.len, at, found);
	if (s == AX_OK && *found && left)
		++*at;
	return (s == AX_OK && !*found) || s == AX_NOTFOUND ? AX_CHANGED : s;
}

/*
 * From the path's leaf that way, to the first leaf that is_beyond(), or to the end: the entries
 * nearest to the scan's place.
 *
 * Entries do not pass each other, so the last one behind the scan is the outermost.  But a row
 * may have come with the bytes of one that is gone, and lie elsewhere in what is no order.
 * It is seldom the last.
 */
static ax_status
op_walk_seen(ArtOp *op, bool left, uint64 made, ArtHit *hit)
{
	for (;;)
	{
		const bool	beyond = is_beyond(op, made);
		ax_status	s;

		/* a merge puts entries into the leaf to the left, however old that is */
		if (left || !beyond)
			leaf_hit(op, hit);
		if (beyond)
			return AX_OK;
		s = op_step(op, left);
		if (s != AX_OK)
			return s == AX_NOTFOUND ? AX_OK : s;
	}
}

/*
 * The last entry that a scan has got is gone.  Where the scan goes on: the path, and *at.
 * *found false: none of the leaves that it remembers is found.
 *
 * The search begins at the last of them that is.  The leaves after that one were merged, or
 * packed into new ones, so their entries are beside it.
 */
static ax_status
op_find_seen(ArtOp *op, uint32 *at, bool *found)
{
	ArtAgain   *w = op->w->again;
	const ArtSpot *from = NULL;
	ArtHit		hit = {0};
	uint32		k;
	ax_status	s = AX_NOTFOUND;

	*found = false;
	for (k = 0; k < w->nseen && s == AX_NOTFOUND; k++)
	{
		from = &seen_before(w, k)->place;
		s = op_return(op, from);
	}
	if (s != AX_OK)
		return s == AX_NOTFOUND ? AX_OK : s;
	table_fill(op);

	/* nothing that lies behind the scan is to the left of the last leaf that it went through */
	if (w->backward && k > 1)
	{
		s = op_walk_seen(op, true, from->made, &hit);
		if (s == AX_OK)
			s = op_return(op, from);
		if (s != AX_OK)
			return s == AX_NOTFOUND ? AX_CHANGED : s;
	}
	s = op_walk_seen(op, false, from->made, &hit);
	if (s != AX_OK)
		return s;
	if (w->backward && hit.right > 0)
		return op_beside_hit(op, false, at, found);
	if (hit.left > 0)
		return op_beside_hit(op, true, at, found);

	/*
	 * All of it is gone that lay behind the scan.  To the left: and all that lay before the scan
	 * in that leaf, if the leaf is the last one.  Then all entries of the leaf are new, or came
	 * from the right.  So the place is the leaf's beginning.
	 */
	*at = 0;
	s = op_return(op, from);
	*found = s == AX_OK;
	return s == AX_NOTFOUND ? AX_CHANGED : s;
}

/* The same, but the leaves that the scan remembers are all gone: through the whole tree. */
static ax_status
op_find_seen_anywhere(ArtOp *op, uint32 *at, bool *found)
{
	const ArtAgain *w = op->w->again;
	ArtHit		hit = {0};
	bool		same;
	ax_status	s = art_op_find(op, NULL, 0, false, true, at, &same);

	*found = false;
	if (s != AX_OK || op->p->n == 0)
		return s;
	table_fill(op);
	s = op_walk_seen(op, false, 0, &hit);
	if (s != AX_OK)
		return s;
	if (hit.left > 0 || hit.right > 0)
		return op_beside_hit(op, w->backward ? hit.right == 0 : hit.left > 0, at, found);

	/* all of them are gone; if they were all on one side, nothing is left there */
	*found = w->all_left || w->all_right;
	if (w->all_right)
		*at = ax_cmp_count(&op->p->f[op->p->n - 1]);
	else if (w->all_left)
		s = art_op_find(op, NULL, 0, false, true, at, &same);
	return s;
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
