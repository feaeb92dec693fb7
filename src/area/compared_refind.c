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
 * looked through, unless that was in vain just now: in an order the entry is gone, then.
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
#define ART_CMP_ANCHORS 4		/* copied leaves whose entries are looked for at a time, when its last entry is gone */
#define ART_CMP_TABLE	4096	/* places for the entries of those; a power of 2 */
#define ART_CMP_SKIP	16		/* at least so many are not looked for in all of the tree, after one in vain */

void
art_spot_set(ArtSpot *place, const ArtOp *op, const uint8 *key, uint32 len)
{
	place->gen = op->gen;
	place->n = op->p->n;
	for (int i = 0; i < place->n; i++)
		place->page[i] = op->p->f[i].page;
	place->key.len = 0;
	if (len > 0)
	{
		art_buf_reserve(&place->key, len);
		memcpy(place->key.data, key, len);
		place->key.len = len;
	}
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
 * Back to the leaf of a place.  AX_NOTFOUND: near it, or the path is empty.
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
	for (int i = 0; i <= place->n; i++)
		art_op_room(op, i);
	ART_CORE_BEGIN();
	s = ax_cmp_return(op->cx, op->tree, op->gen, op->p, place->page, place->n);
	ART_CORE_END();
	return s;
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
	if (s != AX_OK || op->p->n == 0)
		return s;
	for (;;)
	{
		ArtSpot	here = {0};

		art_spot_set(&here, op, NULL, 0);
		s = leaf_find(op, key, len, at, same);
		if (s == AX_OK && *same)
			return s;
		CHECK_FOR_INTERRUPTS();
		if (s == AX_OK)
			s = art_op_beside(op, false);
		/* a page above has changed: once more from this leaf, which may have more now */
		if (s == AX_CHANGED)
			s = op_return(op, &here);
		else if (s == AX_NOTFOUND)
			return AX_OK;
		if (s != AX_OK)
			return s == AX_NOTFOUND ? AX_CHANGED : s;
	}
}

/* The leaf that a scan copied so many before the last one. */
static inline ArtSeen *
seen_before(ArtAgain *w, uint32 i)
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
art_spot_seen(ArtOp *op, uint32 lo, uint32 hi)
{
	ArtAgain   *w = op->w->again;
	const ax_cnode *leaf = &op->p->f[op->p->n - 1];
	ArtSeen    *s = seen_before(w, 0);

	if (w->nseen > 0 && s->place.gen == op->gen && s->version == leaf->version &&
		s->place.page[s->place.n - 1] == leaf->page)
	{
		s->lo = Min(s->lo, lo);
		s->hi = Max(s->hi, hi);
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
	s->lo = lo;
	s->hi = hi;
}

/* Did the scan get the entry?  Then it forgets what it got behind that. */
static bool
seen_upto(ArtAgain *w, uint64 gen, const uint8 *key, uint32 len)
{
	for (; w->nseen > 0; w->nseen--, w->seen_at = (w->seen_at + ART_CMP_SEEN - 1) % ART_CMP_SEEN)
	{
		ArtSeen    *s = seen_before(w, 0);

		for (uint32 i = s->lo; i < s->hi && s->place.gen == gen; i++)
		{
			uint32		elen;
			const uint8 *e = seen_key(s, i, &elen);

			if (e == NULL || elen != len || memcmp(e, key, len) != 0)
				continue;
			if (w->backward)
				s->lo = i;
			else
				s->hi = i + 1;
			return true;
		}
	}
	return false;
}

static inline uint32
table_place(const uint8 *key, uint32 len)
{
	uint32		h;

	memcpy(&h, key + len - sizeof(h), sizeof(h));	/* of the TID */
	return (h * 0x9E3779B1u) >> 12 & (ART_CMP_TABLE - 1);
}

/* The place of an entry's bytes in the table, which has it or nothing there. */
static inline const uint8 **
table_find(ArtAgain *w, const uint8 *key, uint32 len)
{
	uint32		at = table_place(key, len);

	/* bytes that differ behind the shorter one's end are of another length: its TID is elsewhere */
	while (w->table[2 * at] != NULL &&
		   (w->table[2 * at + 1] - w->table[2 * at] != len || memcmp(w->table[2 * at], key, len) != 0))
		at = (at + 1) & (ART_CMP_TABLE - 1);
	return &w->table[2 * at];
}

/* The entries of some leaves that were seen, the one "from" before the last and those before it, as a table of their bytes. */
static void
table_fill(ArtOp *op, uint32 from)
{
	ArtAgain   *w = op->w->again;
	const Size	size = 2 * ART_CMP_TABLE * sizeof(uint8 *);
	uint32		n = 0;

	if (w->table == NULL)
		w->table = MemoryContextAlloc(op->kd->cmp->cxt, size);
	memset(w->table, 0, size);
	for (uint32 k = from; k < Min(w->nseen, from + ART_CMP_ANCHORS); k++)
	{
		const ArtSeen *s = seen_before(w, k);

		for (uint32 i = s->lo; i < s->hi && n < ART_CMP_TABLE / 2; i++)
		{
			uint32		len;
			const uint8 *e = seen_key(s, i, &len);
			const uint8 **at;

			if (e == NULL)
				continue;
			at = table_find(w, e, len);
			at[0] = e;
			at[1] = e + len;
			n++;
		}
	}
}

/*
 * An entry of the leaves that table_fill() takes, which is there still.  *found: the path and
 * *at say where the scan goes on behind it.
 *
 * A scan to the right has got what is to the left.  So the last of its entries is
 * looked for there, and the first of a scan to the left.
 */
static ax_status
op_find_one_seen(ArtOp *op, uint32 from, bool backward, uint32 *at, bool *found)
{
	ArtAgain   *w = op->w->again;
	ArtSeen    *last = seen_before(w, from);
	ax_status	s = op_return(op, &last->place);
	uint32		leaves = s == AX_OK ? ART_CMP_SPLITS : ART_CMP_NEAR;

	*found = false;
	if (s == AX_OK)
	{
		s = art_op_beside(op, true);	/* a merge moves what was in it to there */
		if (s == AX_NOTFOUND)
			s = op_return(op, &last->place);
	}
	if ((s != AX_OK && s != AX_NOTFOUND) || op->p->n == 0)
		return s;
	table_fill(op, from);
	for (uint32 none = 0; leaves > 0 && none < (*found ? 2 : leaves); leaves--)
	{
		const ax_cnode *leaf = &op->p->f[op->p->n - 1];
		bool		any = false;

		for (uint32 i = 0; i < ax_cmp_count(leaf); i++)
		{
			uint32		len;
			const uint8 *e = ax_cmp_key(leaf, i, &len);

			if (e == NULL || *table_find(w, e, len) == NULL)
				continue;
			*found = any = true;
			*at = backward ? i : i + 1;
			if (backward)
				return AX_OK;
			art_spot_set(&w->anchor, op, e, len);
		}
		none = any ? 0 : none + 1;
		CHECK_FOR_INTERRUPTS();
		s = art_op_beside(op, false);
		if (s == AX_NOTFOUND)
			break;
		if (s != AX_OK)
		{
			*found = false;
			return s;
		}
	}
	if (*found)
	{
		/* back to it */
		*found = false;
		s = op_return(op, &w->anchor);
		if (s == AX_OK)
			s = leaf_find(op, w->anchor.key.data, w->anchor.key.len, at, found);
		++*at;
		if ((s == AX_OK && !*found) || s == AX_NOTFOUND)
			s = AX_CHANGED;
	}
	return s == AX_NOTFOUND ? AX_OK : s;
}

/*
 * The last entry that a scan has got is gone.  Behind the nearest one before it that is
 * there still, it goes on.  VACUUM may have removed all of many leaves.
 */
static ax_status
op_find_seen(ArtOp *op, bool backward, uint32 *at, bool *found)
{
	ArtAgain   *w = op->w->again;
	ax_status	s = AX_OK;

	*found = false;
	/* each look begins one leaf to the left, so it has two of those leaves before it */
	for (uint32 from = 0; from < w->nseen && seen_before(w, from)->place.gen == op->gen; from += 2)
	{
		s = op_find_one_seen(op, from, backward, at, found);
		if (s != AX_OK || *found)
			break;
	}
	return s;
}

/*
 * Arguments: a position, the way of the scan, and where the answer goes.
 */
ax_status
art_find_again(ArtOp *op, const uint8 *key, uint32 len, bool after, bool backward, uint32 *at, bool *same)
{
	ArtAgain   *w = op->w->again;
	bool		seen;
	ax_status	s;

	*at = 0;
	*same = false;
	if (w->backward != backward)
		w->nseen = 0;
	seen = seen_upto(w, op->gen, key, len);
	for (int i = 0; i < ART_CMP_TRIES; i++)
	{
		bool		found = false;

		if (seen)
			s = op_find_near(op, &seen_before(w, 0)->place, ART_CMP_SPLITS, key, len, at, same);
		else if (w->end.key.len == len && memcmp(w->end.key.data, key, len) == 0)
			s = op_find_near(op, &w->end, ART_CMP_SPLITS, key, len, at, same);
		else					/* in the middle of a batch: behind its beginning */
			s = op_find_near(op, &w->begin, backward ? -ART_CMP_NEAR : ART_CMP_NEAR, key, len, at,
							 same);
		if (s == AX_OK && !*same && seen)
			s = op_find_seen(op, backward, at, &found);
		if (*same || found || (s != AX_OK && s != AX_CHANGED))
			return s;
		if (s == AX_OK)
			break;
		art_op_lost(op, i);
	}
	s = art_op_find(op, key, len, after, true, at, same);
	if (s != AX_OK || *same || op->p->n == 0)
		return s;
	if (w->skipped < w->skip)
	{
		w->skipped++;
		return s;
	}
	w->skipped = 0;
	s = art_find_anywhere(op, key, len, at, same);
	if (s == AX_STALE)
		return s;
	if (s == AX_OK && *same)
	{
		w->skip = 0;
		return s;
	}
	w->skip = w->skip == 0 ? ART_CMP_SKIP : Min(w->skip * 2, UINT32_MAX / 4);
	return art_op_find(op, key, len, after, true, at, same);
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
