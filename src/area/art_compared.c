/*
 * art_compared.c
 *	  Operations on a tree whose keys are compared by their operator classes.
 *
 * The core has the pages and knows no order.  The comparison functions know
 * the order, and may allocate, raise an error, or run SQL.  So they are not
 * let into an epoch or near a latch (src/README.md, Keys that are compared).
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
 * src/README.md: Keys that are compared
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "area/area.h"
#include "area/art_tree.h"
#include "core/ax_cmp.h"

#define ART_CMP_TRIES	32		/* then BUSY */
#define ART_CMP_LOSSES	6		/* of a place: then to go first */
#define ART_CMP_TURN	200		/* microseconds, doubled with each loss */
#define ART_CMP_TURNS	8
#define ART_CMP_SORTED	256		/* keys of a sorted insert a call */

#define ART_CMP_NEAR	4096	/* leaves beside a place in which an entry of its batch is looked for */
#define ART_CMP_SPLITS	8		/* .. and in which its own entry is */
#define ART_CMP_SEEN	64		/* leaves of which is remembered what a scan has copied */
#define ART_CMP_ANCHORS 4		/* .. and which are looked at, when its last entry is gone */
#define ART_CMP_TABLE	4096	/* places for the entries of those; a power of 2 */
#define ART_CMP_SKIP	16		/* at least so many are not looked for in all of the tree, after one in vain */

/* Where an entry was: the pages down to its leaf, and its bytes (none: not known). */
typedef struct ArtPlace
{
	uint64		gen;			/* 0: nowhere */
	int			n;
	void	   *page[AX_CMP_LEVELS];
	ArtBuf		key;
} ArtPlace;

/* A leaf as it was, and the entries [lo, hi) of it that a scan has got. */
typedef struct ArtSeen
{
	ArtPlace	place;
	uint64		version;
	uint32		size;
	uint8	   *image;			/* NULL: was not needed yet */
	uint32		lo;
	uint32		hi;
} ArtSeen;

/* Buffers of one description, kept from call to call. */
typedef struct ArtWalk
{
	ax_cpath	path;
	int			images;			/* of the path that are allocated */
	ArtBuf		lkey;			/* the long key that was looked at last */

	/* of a doubtful class, see below */
	ArtPlace	next;			/* the beginning of the batch that is copied now */
	ArtPlace	begin;			/* the entry behind which the last batch begins, or its first leaf */
	ArtPlace	end;			/* its last entry */
	ArtPlace	gone;			/* where an entry was removed */
	ArtPlace	anchor;			/* one that was looked for */
	bool		backward;		/* what was seen was, that way */
	uint32		nseen;
	uint32		seen_at;		/* the last of them */
	ArtSeen		seen[ART_CMP_SEEN];
	const uint8 **table;		/* NULL: was not needed yet */
	uint32		skip;
	uint32		skipped;
} ArtWalk;

/* One operation. */
typedef struct ArtOp
{
	const ArtKeyDesc *kd;
	ax_ctx	   *cx;
	ax_tree    *tree;
	uint64		gen;
	ArtWalk    *w;
	ax_cpath   *p;
	bool		turn;			/* announced: see op_lost */
} ArtOp;

/* ---- steps ---- */

/*
 * Begin: buffers as large as this generation's pages.
 *
 * Epoch: enters and leaves.
 */
static ax_status
op_begin(ArtOp *op, const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *tree, uint64 gen)
{
	ArtCmp	   *c = kd->cmp;
	uint32		size = 0;
	ax_status	s;

	Assert(c != NULL);
	if (unlikely(c->walk == NULL))
	{
		c->walk = MemoryContextAllocZero(c->cxt, sizeof(ArtWalk));
		art_buf_init(&c->walk->lkey, c->cxt, 1024);
		c->walk->next.key.cxt = c->walk->begin.key.cxt = c->cxt;
		c->walk->end.key.cxt = c->walk->gone.key.cxt = c->walk->anchor.key.cxt = c->cxt;
	}
	op->kd = kd;
	op->cx = cx;
	op->tree = tree;
	op->gen = gen;
	op->w = c->walk;
	op->p = &c->walk->path;
	op->turn = false;

	ART_CORE_BEGIN();
	s = ax_cmp_size(cx, tree, gen, &size);
	ART_CORE_END();
	if (s == AX_OK && unlikely(op->p->size != size))
	{
		while (op->w->images > 0)
			pfree(op->p->f[--op->w->images].image);
		op->p->size = size;
	}
	return s;
}

/* A buffer for the page that comes next. */
static inline void
op_room(ArtOp *op, int n)
{
	if (unlikely(n == op->w->images))
	{
		if (n == AX_CMP_LEVELS)
			elog(ERROR, "index tree has too many levels");
		op->p->f[n].image = MemoryContextAlloc(op->kd->cmp->cxt, op->p->size);
		op->w->images++;
	}
}

/*
 * Copy the root's page to the beginning of the path.
 *
 * Epoch: enters and leaves.
 */
static ax_status
op_root(ArtOp *op)
{
	ax_status	s;

	op_room(op, 0);
	ART_CORE_BEGIN();
	s = ax_cmp_root(op->cx, op->tree, op->gen, op->p);
	ART_CORE_END();
	return s;
}

/*
 * Copy the page of child i to the end of the path.
 *
 * Epoch: enters and leaves.
 */
static ax_status
op_down(ArtOp *op, uint32 i)
{
	ax_status	s;

	op_room(op, op->p->n);
	ART_CORE_BEGIN();
	s = ax_cmp_down(op->cx, op->tree, op->gen, op->p, i);
	ART_CORE_END();
	return s;
}

/*
 * Replace the leaf at the end of the path by its neighbour.
 *
 * Epoch: enters and leaves.
 */
static ax_status
op_beside(ArtOp *op, bool left)
{
	ax_status	s;

	/* trees have grown since: another level has its buffer when it is met */
	ART_CORE_BEGIN();
	s = ax_cmp_beside(op->cx, op->tree, op->gen, op->p, left);
	ART_CORE_END();
	return s;
}

/*
 * The key of entry i of frame k; good until the next that is long.
 *
 * Epoch: enters and leaves, for a long key only.
 */
static ax_status
op_key(ArtOp *op, int k, uint32 i, const uint8 **key, uint32 *len)
{
	ArtBuf	   *buf = &op->w->lkey;

	*key = ax_cmp_key(&op->p->f[k], i, len);
	if (likely(*key != NULL))
		return AX_OK;
	for (;;)
	{
		ax_status	s;

		ART_CORE_BEGIN();
		s = ax_cmp_long(op->cx, op->tree, op->gen, op->p, k, i, buf->data, buf->cap, len);
		ART_CORE_END();
		if (s != AX_BUFFER)
		{
			*key = buf->data;
			return s;
		}
		buf->len = 0;
		art_buf_reserve(buf, *len);
	}
}

/*
 * Search entries [from, to) of the last page for a position.  *at: how many
 * entries of the page lie before it.  *same: the entry behind those is the
 * position itself.
 *
 * Arguments: a position and a range of places; a scan asks at each page.
 */
static ax_status
op_search(ArtOp *op, uint32 from, uint32 to, const uint8 *key, uint32 len, bool after,
		  bool images, uint32 *at, bool *same)
{
	int			k = op->p->n - 1;

	*same = false;
	while (from < to)
	{
		uint32		mid = from + (to - from) / 2;
		const uint8 *e;
		uint32		elen;
		int			c;
		ax_status	s = op_key(op, k, mid, &e, &elen);

		if (s != AX_OK)
			return s;
		c = art_key_cmp(op->kd, e, elen, key, len, after, images);
		if (c == 0)
		{
			*same = true;
			from = mid;
			break;
		}
		if (c < 0)
			from = mid + 1;
		else
			to = mid;
	}
	*at = from;
	return AX_OK;
}

/*
 * From the last page of the path to the leaf where the position lies, and its
 * place there.
 */
static ax_status
op_descend(ArtOp *op, const uint8 *key, uint32 len, bool after, bool images,
		   uint32 *at, bool *same)
{
	ax_cpath   *p = op->p;
	ax_status	s;

	while (!ax_cmp_is_leaf(&p->f[p->n - 1]))
	{
		uint32		i;

		/* child 0 begins below everything; one that begins with the key has it */
		s = op_search(op, 1, ax_cmp_count(&p->f[p->n - 1]), key, len, after, images,
					  &i, same);
		if (s == AX_OK)
			s = op_down(op, *same ? i : i - 1);
		if (s != AX_OK)
			return s;
	}
	return op_search(op, 0, ax_cmp_count(&p->f[p->n - 1]), key, len, after, images,
					 at, same);
}

/*
 * The place, or the way there, was lost to somebody faster, for the nth time.
 *
 * Epoch: enters and leaves.  The turn that it asks for lets others wait, and
 * is over by itself after a while.
 */
static void
op_lost(ArtOp *op, int n)
{
	if (n < ART_CMP_LOSSES)
		return;
	op->turn = true;
	ART_CORE_BEGIN();
	ax_cmp_turn(op->cx, op->tree, op->gen,
				ART_CMP_TURN << Min(n - ART_CMP_LOSSES, ART_CMP_TURNS));
	ART_CORE_END();
}

/*
 * The end: a process that has announced a turn lets the others go on, unless it
 * comes back.
 *
 * Epoch: enters and leaves, if there is a turn.
 */
static ax_status
op_end(ArtOp *op, ax_status s)
{
	if (unlikely(op->turn) && s != AX_BUSY)
	{
		ART_CORE_BEGIN();
		ax_cmp_turn(op->cx, op->tree, op->gen, 0);
		ART_CORE_END();
	}
	return s;
}

/*
 * The position's leaf and place.  AX_OK with p->n == 0: the tree is empty.  Tries
 * again by itself when something changes, until AX_BUSY.
 */
static ax_status
op_find(ArtOp *op, const uint8 *key, uint32 len, bool after, bool images,
		uint32 *at, bool *same)
{
	ax_status	s;

	*at = 0;
	*same = false;
	for (int i = 0; i < ART_CMP_TRIES; i++)
	{
		s = op_root(op);
		if (s == AX_OK && op->p->n > 0)
			s = op_descend(op, key, len, after, images, at, same);
		if (s != AX_CHANGED)
			return s;
		op_lost(op, i);
	}
	return AX_BUSY;
}

/*
 * The leaf has changed since it was copied; the page above may not have: read it
 * again, and find the place in it.  AX_CHANGED: from the root, then.
 */
static ax_status
op_again(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same)
{
	ax_cpath   *p = op->p;
	ax_status	s;

	if (p->n < 2)
		return AX_CHANGED;
	p->n--;
	s = op_down(op, p->f[p->n - 1].i);
	if (s == AX_OK)
		s = op_descend(op, key, len, false, true, at, same);
	return s;
}

/* ---- places of a doubtful class ---- */

/*
 * A class that is not core's may be no order (kd->doubtful): a key that is in the tree
 * need not be found by comparing.  So what was found once is found again by its bytes,
 * from where it was.  A scan goes on behind its last entry in that way, as nbtree does by
 * the links of its pages.  It comes to each entry once and to an end, whatever the
 * function says.  So does VACUUM, which finds there what it removes.
 *
 * The places are remembered by the addresses of their pages (ax_cmp_return).  Where that
 * fails the key is compared, and found if the class is an order.  Then the whole tree is
 * looked through, unless that was in vain just now: in an order the entry is gone, then.
 */

/* The path's leaf as a place; of that entry, or of none. */
static void
place_set(ArtPlace *place, const ArtOp *op, const uint8 *key, uint32 len)
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
			ax_status	s = op_key(op, op->p->n - 1, i, &e, &elen);

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
 * The entry in the path's leaf and those beside it, to the one behind "stop".  AX_OK
 * without *same, AX_NOTFOUND: not in so many of them, or in none.
 *
 * Arguments: which leaves, and where the answer goes.
 */
static ax_status
leaves_find(ArtOp *op, bool left, uint32 leaves, const void *stop, const uint8 *key, uint32 len,
			uint32 *at, bool *same)
{
	for (;;)
	{
		ax_status	s = leaf_find(op, key, len, at, same);

		if (op->p->f[op->p->n - 1].page == stop)
			leaves = Min(leaves, 2);
		if (s != AX_OK || *same || --leaves == 0)
			return s;
		CHECK_FOR_INTERRUPTS();
		s = op_beside(op, left);
		if (s != AX_OK)
			return s;
	}
}

/* Back to the leaf of a place.  AX_NOTFOUND: near it, or the path is empty. */
static ax_status
op_return(ArtOp *op, const ArtPlace *place)
{
	ax_status	s;

	op->p->n = 0;
	if (place->gen != op->gen || place->n == 0 || place->n + 1 >= AX_CMP_LEVELS)
		return AX_NOTFOUND;
	for (int i = 0; i <= place->n; i++)
		op_room(op, i);
	ART_CORE_BEGIN();
	s = ax_cmp_return(op->cx, op->tree, op->gen, op->p, place->page, place->n);
	ART_CORE_END();
	return s;
}

/*
 * The entry near a place: from there that way, in so many leaves, and in the one on the
 * other side.  Those of a page above where the place is gone.  AX_OK: as *same says.
 * AX_CHANGED: somebody changes it now; again.
 *
 * Arguments: which leaves, and where the answer goes.
 */
static ax_status
op_find_near(ArtOp *op, const ArtPlace *place, bool left, uint32 leaves, const uint8 *key, uint32 len,
			 uint32 *at, bool *same)
{
	const ArtPlace *end = &op->w->end;
	const void *stop = end->gen == op->gen && end->n > 0 ? end->page[end->n - 1] : NULL;

	*same = false;
	for (int side = 0; side < 2; side++)
	{
		ax_status	s = op_return(op, place);

		if (s == AX_OK && side == 1)
			s = op_beside(op, !left);
		else if (s == AX_NOTFOUND && side == 0 && op->p->n > 0)
		{
			leaves = ART_CMP_NEAR;
			left = false;
			s = AX_OK;
		}
		if (s == AX_OK)
			s = leaves_find(op, left, side == 0 ? leaves : 1, stop, key, len, at, same);
		if ((s != AX_OK && s != AX_NOTFOUND) || *same)
			return s;
	}
	return AX_OK;
}

/*
 * The entry wherever it is in the tree.  AX_CHANGED: somebody changed it meanwhile.
 */
static ax_status
op_find_anywhere(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same)
{
	ax_status	s = op_find(op, NULL, 0, false, true, at, same);

	*same = false;
	if (s != AX_OK || op->p->n == 0)
		return s;
	for (;;)
	{
		ArtPlace	here = {0};

		place_set(&here, op, NULL, 0);
		s = leaf_find(op, key, len, at, same);
		if (s == AX_OK && *same)
			return s;
		CHECK_FOR_INTERRUPTS();
		if (s == AX_OK)
			s = op_beside(op, false);
		/* a page above has changed: once more from this leaf, which may have more now */
		if (s == AX_CHANGED)
			s = op_return(op, &here);
		else if (s == AX_NOTFOUND)
			return AX_OK;
		if (s != AX_OK)
			return s == AX_NOTFOUND ? AX_CHANGED : s;
	}
}

/* What was seen before the last, or the last itself (0). */
static inline ArtSeen *
seen_before(ArtWalk *w, uint32 i)
{
	return &w->seen[(w->seen_at + ART_CMP_SEEN - i) % ART_CMP_SEEN];
}

/* Entry i of a leaf that was seen.  NULL: it is a long one, of which no bytes were kept. */
static inline const uint8 *
seen_key(const ArtSeen *seen, uint32 i, uint32 *len)
{
	ax_cnode	f = {.image = seen->image};

	return ax_cmp_key(&f, i, len);
}

/* A scan has got the entries [lo, hi) of the path's leaf. */
static void
seen_add(ArtOp *op, uint32 lo, uint32 hi)
{
	ArtWalk    *w = op->w;
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
	place_set(&s->place, op, NULL, 0);
	s->version = leaf->version;
	s->lo = lo;
	s->hi = hi;
}

/* Was the entry seen?  What came after it was not, then. */
static bool
seen_upto(ArtWalk *w, uint64 gen, const uint8 *key, uint32 len)
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
table_find(ArtWalk *w, const uint8 *key, uint32 len)
{
	uint32		at = table_place(key, len);

	/* bytes that differ behind the shorter one's end are of another length: its TID is elsewhere */
	while (w->table[2 * at] != NULL &&
		   (w->table[2 * at + 1] - w->table[2 * at] != len || memcmp(w->table[2 * at], key, len) != 0))
		at = (at + 1) & (ART_CMP_TABLE - 1);
	return &w->table[2 * at];
}

/* The entries that were seen last, as a table of their bytes. */
static void
table_fill(ArtOp *op)
{
	ArtWalk    *w = op->w;
	const Size	size = 2 * ART_CMP_TABLE * sizeof(uint8 *);
	uint32		n = 0;

	if (w->table == NULL)
		w->table = MemoryContextAlloc(op->kd->cmp->cxt, size);
	memset(w->table, 0, size);
	for (uint32 k = 0; k < Min(w->nseen, ART_CMP_ANCHORS); k++)
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
 * The last entry that a scan has got is gone.  Behind the one before it, that is there
 * still, it goes on.  *found: the path and *at say where.
 *
 * A scan to the right has got what is to the left.  So the last of its entries is
 * looked for there, and the first of a scan to the left.
 */
static ax_status
op_find_seen(ArtOp *op, bool backward, uint32 *at, bool *found)
{
	ArtWalk    *w = op->w;
	ArtSeen    *last = seen_before(w, 0);
	ax_status	s = op_return(op, &last->place);
	uint32		leaves = s == AX_OK ? ART_CMP_SPLITS : ART_CMP_NEAR;

	*found = false;
	if (s == AX_OK)
	{
		s = op_beside(op, true);	/* a merge moves what was in it to there */
		if (s == AX_NOTFOUND)
			s = op_return(op, &last->place);
	}
	if ((s != AX_OK && s != AX_NOTFOUND) || op->p->n == 0)
		return s;
	table_fill(op);
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
			place_set(&w->anchor, op, e, len);
		}
		none = any ? 0 : none + 1;
		CHECK_FOR_INTERRUPTS();
		s = op_beside(op, false);
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
 * The place of an entry from which a scan goes on, of a doubtful class.  As op_find: if it
 * is not there any more, where it would be.
 *
 * Arguments: a position, the way of the scan, and where the answer goes.
 */
static ax_status
op_find_again(ArtOp *op, const uint8 *key, uint32 len, bool after, bool backward, uint32 *at, bool *same)
{
	ArtWalk    *w = op->w;
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
			s = op_find_near(op, &seen_before(w, 0)->place, false, ART_CMP_SPLITS, key, len, at, same);
		else if (w->end.key.len == len && memcmp(w->end.key.data, key, len) == 0)
			s = op_find_near(op, &w->end, false, ART_CMP_SPLITS, key, len, at, same);
		else					/* in the middle of a batch: behind its beginning */
			s = op_find_near(op, &w->begin, backward, ART_CMP_NEAR, key, len, at, same);
		if (s == AX_OK && !*same && seen)
			s = op_find_seen(op, backward, at, &found);
		if (*same || found || (s != AX_OK && s != AX_CHANGED))
			return s;
		if (s == AX_OK)
			break;
		op_lost(op, i);
	}
	s = op_find(op, key, len, after, true, at, same);
	if (s != AX_OK || *same || op->p->n == 0)
		return s;
	if (w->skipped < w->skip)
	{
		w->skipped++;
		return s;
	}
	w->skipped = 0;
	s = op_find_anywhere(op, key, len, at, same);
	if (s == AX_STALE)
		return s;
	if (s == AX_OK && *same)
	{
		w->skip = 0;
		return s;
	}
	w->skip = w->skip == 0 ? ART_CMP_SKIP : Min(w->skip * 2, UINT32_MAX / 4);
	return op_find(op, key, len, after, true, at, same);
}

/*
 * An entry that is to go: near the last one that went, or in the batch that was copied
 * last.
 */
static ax_status
op_find_gone(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same)
{
	ArtWalk    *w = op->w;
	ax_status	s = op_find_near(op, &w->gone, false, ART_CMP_NEAR, key, len, at, same);

	if (s == AX_OK && !*same)
		s = op_find_near(op, &w->begin, false, ART_CMP_NEAR, key, len, at, same);
	return s;					/* AX_CHANGED: the caller tries again */
}

/*
 * The very entry, or else one of its TID whose key is equal.
 */
static ax_status
op_find_row(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same)
{
	const uint8 *e;
	uint32		elen;
	ax_status	s = op_find(op, key, len, false, true, at, same);

	if (s != AX_OK || *same || op->kd->images || op->p->n == 0)
		return s;
	s = op_find(op, key, len, false, false, at, same);
	if (s == AX_OK && op->p->n > 0 && *at == ax_cmp_count(&op->p->f[op->p->n - 1]))
	{
		*at = 0;
		do
			s = op_beside(op, false);
		while (s == AX_OK && ax_cmp_count(&op->p->f[op->p->n - 1]) == 0);
	}
	if (s != AX_OK || op->p->n == 0)
		return s;
	s = op_key(op, op->p->n - 1, *at, &e, &elen);
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
		op_lost(op, i);
		s = op_again(op, key, len, &at, same);
		if (s == AX_CHANGED)
			s = op_find(op, key, len, false, true, &at, same);
		if (s != AX_OK)
			return s;
	}
	return AX_BUSY;
}

/* See art_tree.h. */
ax_status
art_cmp_insert(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
			   const uint8 *key, uint32 len)
{
	ArtOp		op;
	uint32		at;
	bool		same;
	ax_status	s = op_begin(&op, kd, cx, t, gen);

	if (s == AX_OK)
		s = op_find(&op, key, len, false, true, &at, &same);
	if (s == AX_OK)
		s = op_insert_at(&op, at, &same, key, len);
	return op_end(&op, s == AX_OK && same ? AX_EXISTS : s);
}

/* See art_tree.h. */
ax_status
art_cmp_contains(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
				 const uint8 *key, uint32 len)
{
	ArtOp		op;
	uint32		at;
	bool		same;
	ax_status	s = op_begin(&op, kd, cx, t, gen);

	for (int i = 0; s == AX_OK; i++)
	{
		s = op_find_row(&op, key, len, &at, &same);
		if (s != AX_CHANGED)
			break;
		op_lost(&op, i);
		s = i < ART_CMP_TRIES ? AX_OK : AX_BUSY;
	}
	return op_end(&op, s == AX_OK && !same ? AX_NOTFOUND : s);
}

/* See art_tree.h. */
ax_status
art_cmp_holds(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
			  const uint8 *key, uint32 len)
{
	ArtOp		op;
	uint32		at;
	bool		same = false;
	ax_status	s = op_begin(&op, kd, cx, t, gen);

	if (s == AX_OK)
		s = op_find_anywhere(&op, key, len, &at, &same);
	if (s == AX_CHANGED)
		s = AX_BUSY;
	return s == AX_OK && !same ? AX_NOTFOUND : s;
}

/*
 * See art_tree.h.  The very entry if it is there, else one whose key is equal.
 *
 * Epoch: enters and leaves, once a page; compares between two.
 * Returns: AX_BUSY if others were faster every time; nothing was removed.
 */
ax_status
art_cmp_remove(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
			   const uint8 *key, uint32 len)
{
	ArtOp		op;
	ax_status	s = op_begin(&op, kd, cx, t, gen);

	for (int i = 0; i < ART_CMP_TRIES && s == AX_OK; i++)
	{
		uint32		at;
		bool		same;

		same = false;
		if (unlikely(kd->doubtful))
		{
			s = op_find_gone(&op, key, len, &at, &same);
			if (s == AX_OK && same)
				place_set(&op.w->gone, &op, NULL, 0);
		}
		if (s == AX_OK && !same)
			s = op_find_row(&op, key, len, &at, &same);
		if (s == AX_OK)
		{
			if (!same)
				return op_end(&op, AX_NOTFOUND);
			ART_CORE_BEGIN();
			s = ax_cmp_remove(cx, t, gen, op.p, at);
			ART_CORE_END();
			if (s == AX_OK)
				return op_end(&op, AX_OK);
		}
		if (s == AX_CHANGED)
		{
			op_lost(&op, i);
			s = AX_OK;
		}
	}
	return op_end(&op, s == AX_OK ? AX_BUSY : s);
}

/*
 * See art_tree.h.  A key that lies in the leaf where the last one went in
 * needs no descent.  The path goes on with that leaf.  Its end, as the pages
 * above gave it, is as good as it was, since only a change of the leaf narrows
 * it.
 *
 * Arguments: an operation of every structure: where, the keys, and where the
 * answer goes.
 */
ax_status
art_cmp_insert_sorted(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
					  const uint8 *const *keys, const uint32 *lens, uint32 len,
					  uint64 n, uint64 *done, uint64 *added)
{
	ArtOp		op;
	uint32		at = 0;
	bool		follow = false;
	ax_status	s = op_begin(&op, kd, cx, t, gen);

	*done = *added = 0;
	n = Min(n, ART_CMP_SORTED);
	while (s == AX_OK && *done < n)
	{
		const uint8 *key = keys[*done];
		uint32		klen = lens ? lens[*done] : len;
		bool		same = false;

		if (follow)
		{
			ax_cnode   *leaf = &op.p->f[op.p->n - 1];
			uint32		count = ax_cmp_count(leaf);

			s = op_search(&op, Min(at + 1, count), count, key, klen, false, true,
						  &at, &same);
			if (s == AX_OK && !same && at == count)
			{
				/* at its end, or beyond? */
				for (int k = op.p->n - 2; k >= 0; k--)
				{
					const uint8 *e;
					uint32		elen;

					if (op.p->f[k].i + 1 >= ax_cmp_count(&op.p->f[k]))
						continue;
					s = op_key(&op, k, op.p->f[k].i + 1, &e, &elen);
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
			s = op_find(&op, key, klen, false, true, &at, &same);
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
	return op_end(&op, *done > 0 ? AX_OK : s);
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
		s = op_key(op, op->p->n - 1, b->backward ? 0 : count - 1, &e, &elen);
		if (s == AX_OK)
		{
			c = art_key_cmp(kd, e, elen, to->key, to->len, to->after, true);
			if (c == 0)
				c = to->after ? -1 : 1;
			if (b->backward ? c < 0 : c > 0)
			{
				*last = true;
				s = op_search(op, b->backward ? 0 : at, b->backward ? at : count,
							  to->key, to->len, to->after, true, &stop, &same);
				if (s == AX_OK && same && to->after)
					stop++;
			}
		}
	}
	while (s == AX_OK && (b->backward ? at > stop : at < stop))
	{
		const uint8 *e;
		uint32		elen;

		s = op_key(op, op->p->n - 1, b->backward ? at - 1 : at, &e, &elen);
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

/* Fill one batch from the leaves between its bounds, in its direction. */
static ax_status
op_scan(ArtOp *op, ax_batch *b)
{
	const ax_bound *from = b->backward ? &b->hi : &b->lo;
	const ax_bound *to = b->backward ? &b->lo : &b->hi;
	const bool	again = unlikely(op->kd->doubtful) && art_key_is_entry(op->kd, from->key, from->len);
	ArtFill		f = {.b = b};
	ax_status	s = AX_OK;

	/* before everything, and after: nothing lies there */
	if (to->len == 0 && to->after == b->backward)
	{
		b->exhausted = true;
		return s;
	}

	for (int tries = 0; s == AX_OK; tries++)
	{
		uint32		at;
		bool		same;

		if (tries == ART_CMP_TRIES)
			return AX_BUSY;
		if (unlikely(again))
			s = op_find_again(op, from->key, from->len, from->after, b->backward, &at, &same);
		else
			s = op_find(op, from->key, from->len, from->after, true, &at, &same);
		if (s != AX_OK)
			return s;
		if (op->p->n == 0)
		{
			b->exhausted = true;
			return AX_OK;
		}
		if (unlikely(op->kd->doubtful))
		{
			place_set(&op->w->next, op, from->key, again ? from->len : 0);
			if (!again)
				op->w->nseen = 0;
			op->w->backward = b->backward;
		}
		/* an entry that is the position lies behind it if "before", else not */
		if (same && from->after)
			at++;

		while (s == AX_OK)
		{
			const uint32 before = b->n;
			bool		last;

			s = op_scan_leaf(op, &f, at, &last);
			if (unlikely(op->kd->doubtful) && b->n > before)
			{
				const uint32 n = b->n - before;

				place_set(&op->w->end, op, NULL, 0);
				seen_add(op, b->backward ? at - n : at, b->backward ? at : at + n);
			}
			if (s != AX_OK)
				break;
			if (last)
			{
				b->exhausted = true;
				return AX_OK;
			}
			if (b->n == b->max)
				return AX_OK;
			s = op_beside(op, b->backward);
			at = s == AX_OK && b->backward ? ax_cmp_count(&op->p->f[op->p->n - 1]) : 0;
		}

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
				op_lost(op, tries);
				s = AX_OK;
				break;
			default:
				return s;
		}
	}
	return s;
}

/* The places of a batch that was copied, of a doubtful class. */
static void
batch_done(ArtWalk *w, const ax_batch *b)
{
	ArtPlace	swap = w->begin;

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

/* See art_tree.h. */
ax_status
art_cmp_scan(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen, ax_batch *b)
{
	ArtOp		op;
	ax_status	s = op_begin(&op, kd, cx, t, gen);

	b->n = 0;
	b->lastlen = 0;
	b->exhausted = false;
	if (b->want_keys)
		b->key_off[0] = 0;
	if (s == AX_OK)
		s = op_scan(&op, b);
	if (unlikely(kd->doubtful) && s == AX_OK)
		batch_done(op.w, b);
	return op_end(&op, s);
}

/*
 * See art_tree.h.
 *
 * Arguments: an operation of every structure: where, the keys, and where the
 * answer goes.
 */
ax_status
art_cmp_lookup(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
			   const uint8 *prefix, uint32 len, uint64 *tids, uint32 max,
			   uint32 *n, bool *more)
{
	ax_batch	b = {.max = max, .tids = tids};
	ax_status	s;

	b.lo.key = b.hi.key = prefix;
	b.lo.len = b.hi.len = len;
	b.hi.after = true;
	s = art_cmp_scan(kd, cx, t, gen, &b);
	*n = b.n;
	*more = !b.exhausted;
	return s;
}
