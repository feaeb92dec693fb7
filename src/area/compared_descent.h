/*
 * compared_descent.h
 *	  An operation on a tree whose keys are compared, step by step: what its files
 *	  share.
 *
 * src/area/README.md: Keys that are compared
 */
#ifndef ART_AREA_COMPARED_DESCENT_H
#define ART_AREA_COMPARED_DESCENT_H

#include "area/area.h"
#include "core/ax_cmp.h"

#define ART_CMP_TRIES	32		/* then BUSY */
#define ART_CMP_LOSSES	6		/* of a place: then to go first */
#define ART_CMP_SEEN	64		/* leaves that a scan went through and remembers */

/* Where an entry was: the pages down to its leaf, and its bytes (none: not known). */
typedef struct ArtSpot
{
	uint64		gen;			/* 0: nowhere */
	int			n;
	void	   *page[AX_CMP_LEVELS];
	uint64		born;			/* the leaf's number */
	uint64		made;			/* the tree's pages, ever, before the leaf was copied */
	ArtBuf		key;
} ArtSpot;

/* A leaf as it was when a scan went through. */
typedef struct ArtSeen
{
	ArtSpot	place;
	uint64		version;
	uint32		size;
	uint8	   *image;			/* NULL: was not needed yet */
	bool		backward;		/* the scan went to the left: */
	uint32		upto;			/* so many entries from the left lay behind it, or, if it went to
								 * the left, the others */
	ArtBuf		from;			/* the entry from which a batch began here, which need not be in
								 * the image; empty: none did */
	uint32		from_at;		/* .. and how many entries were to the left of that place */
} ArtSeen;

/* An entry of the leaves that a scan went through.  p: its bytes; NULL: none. */
typedef struct ArtKnown
{
	const uint8 *p;
	uint32		len;
	bool		left;			/* of the scan's place */
	uint32		nth;			/* the higher, the nearer to that, of those on this side */
} ArtKnown;

/* The entries nearest to a scan's place that were found, as their nth; 0: none. */
typedef struct ArtHit
{
	uint32		left;
	uint32		right;
} ArtHit;

/* Of a doubtful class: where its operations were (compared_refind.c). */
typedef struct ArtAgain
{
	ArtSpot		next;			/* the beginning of the batch that is copied now */
	ArtSpot		begin;			/* the entry behind which the last batch begins, or its first leaf */
	ArtSpot		end;			/* its last entry */
	ArtSpot		gone;			/* where an entry was removed */
	uint32		next_at;		/* how many entries of its leaf are to the left of that beginning */
	ArtSpot		left;			/* the entries of an ArtHit */
	ArtSpot		right;
	bool		backward;		/* the way of the scan that saw these leaves: */
	uint32		nseen;
	uint32		nold;			/* those before, which it saw before it turned round */
	bool		all_left;		/* they have had all that lies to the left of the scan's place, */
	bool		all_right;		/* .. to the right of it */
	uint32		seen_at;		/* the last of all */
	ArtSeen    *seen[ART_CMP_SEEN]; /* every leaf that it went through; NULL: was not needed yet */
	ArtKnown   *table;			/* their entries; NULL: was not needed yet */
	uint32		places;			/* of the table, a power of 2 */
} ArtAgain;

/* Buffers of one description, kept from call to call. */
typedef struct ArtWalk
{
	ax_cpath	path;
	int			images;			/* of the path that are allocated */
	ArtBuf		lkey;			/* the long key that was looked at last */
	ArtAgain   *again;			/* of a doubtful class, else NULL */
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
	bool		turn;			/* announced: see art_op_lost */
} ArtOp;

/* ---- compared_descent.c ---- */

/*
 * Begin an operation on the structure of that generation, with buffers as large as its
 * pages.  AX_STALE: the generation is gone.  art_op_end() ends it.  None of these calls is
 * made in a critical section: they allocate, and compare.
 */
extern ax_status art_op_begin(ArtOp *op, const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *tree,
							  uint64 gen);

/* Copy the root's page to the beginning of the path.  An empty tree leaves the path empty. */
extern ax_status art_op_root(ArtOp *op);

/*
 * Copy the page of child i of the last page to the end of the path.  AX_CHANGED: the last
 * page has changed since it was copied.
 */
extern ax_status art_op_down(ArtOp *op, uint32 i);

/*
 * Replace the leaf at the end of the path by its left or right neighbour.  AX_NOTFOUND:
 * there is none.  AX_CHANGED: a page of the path has changed.
 */
extern ax_status art_op_beside(ArtOp *op, bool left);

/*
 * Search entries [from, to) of the path's last page for a position.  *at: how many entries
 * of the page lie before it.  *same: the entry behind those is the position itself.
 */
extern ax_status art_op_search(ArtOp *op, uint32 from, uint32 to, const ax_bound *pos,
							   bool images, uint32 *at, bool *same);

/*
 * Go from the last page of the path down to the leaf where the position lies.  *at and
 * *same as of art_op_search().  AX_CHANGED: begin again at the root.
 */
extern ax_status art_op_descend(ArtOp *op, const uint8 *key, uint32 len, bool after,
								bool images, uint32 *at, bool *same);

/*
 * The place, or the way there, was lost to a faster process, for the nth time.  From some
 * number on others are asked to wait for this one, for a while.
 */
extern void art_op_lost(ArtOp *op, int n);

/*
 * The end of an operation whose status is s, which it returns.  Others no longer wait for
 * this process, unless s is AX_BUSY: then the caller comes back.
 */
extern ax_status art_op_end(ArtOp *op, ax_status s);

/*
 * Find the position's leaf and its place there, from the root.  AX_OK with an empty path:
 * the tree is empty.  Begins again by itself when pages change; AX_BUSY: they changed too
 * often.
 */
extern ax_status art_op_find(ArtOp *op, const uint8 *key, uint32 len, bool after,
							 bool images, uint32 *at, bool *same);

/*
 * The leaf has changed since it was copied, and the page above perhaps not: copy the leaf
 * again, and find the place in it.  AX_CHANGED: the caller begins at the root.
 */
extern ax_status art_op_again(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same);

/* A buffer for the page that comes next. */
static inline void
art_op_room(ArtOp *op, int n)
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
 * The key of entry i of frame k; good until the next that is long.
 *
 * Epoch: enters and leaves, for a long key only.
 */
static inline ax_status
art_op_key(ArtOp *op, int k, uint32 i, const uint8 **key, uint32 *len)
{
	ArtBuf	   *buf = &op->w->lkey;

	*key = ax_cmp_key(&op->p->f[k], i, len);
	if (likely(*key != NULL))
		return AX_OK;
	for (;;)
	{
		ax_clong	to = {.buf = buf->data, .size = buf->cap};
		ax_status	s;

		ART_CORE_BEGIN();
		s = ax_cmp_long(op->cx, op->tree, op->gen, op->p, k, i, &to);
		ART_CORE_END();
		if (s != AX_BUFFER)
		{
			*key = buf->data;
			*len = to.len;
			return s;
		}
		buf->len = 0;
		art_buf_reserve(buf, to.len);
	}
}

/* ---- compared_refind.c: of a doubtful class ---- */

/* Remember the path's leaf as a place, of that entry.  len 0: of none. */
extern void art_spot_set(ArtSpot *place, const ArtOp *op, const uint8 *key, uint32 len);

/*
 * A scan has come through the path's leaf up to place "at": keep a copy of the leaf.  begins:
 * with a batch that begins here, as "next" says.
 */
extern void art_spot_seen(ArtOp *op, uint32 at, bool begins);

/*
 * Find the very entry wherever it is, leaf by leaf through the whole tree.  Checks for
 * interrupts between two.  *same false: it is not there.  AX_CHANGED: the tree has changed
 * meanwhile, and the caller begins again.
 */
extern ax_status art_find_anywhere(ArtOp *op, const uint8 *key, uint32 len, uint32 *at,
								   bool *same);

/*
 * Find the place of an entry from which a scan goes on.  If it is not there any more,
 * where it was, between those that lie behind the scan and those that do not.
 */
extern ax_status art_find_again(ArtOp *op, const uint8 *key, uint32 len, bool after,
								uint32 *at, bool *same);

/*
 * Find an entry that is to go, near the last one that went, or in the batch that was
 * copied last.  *same false: not found there.  AX_CHANGED: the caller tries again.
 */
extern ax_status art_find_gone(ArtOp *op, const uint8 *key, uint32 len, uint32 *at,
							   bool *same);

/* A batch was copied: its beginning and its end are the places where later calls look first. */
extern void art_spot_done(ArtWalk *w, const ax_batch *b);

#endif							/* ART_AREA_COMPARED_DESCENT_H */
