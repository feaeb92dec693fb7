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
#define ART_CMP_SEEN	64		/* leaves of which is remembered what a scan has copied */

/* Where an entry was: the pages down to its leaf, and its bytes (none: not known). */
typedef struct ArtSpot
{
	uint64		gen;			/* 0: nowhere */
	int			n;
	void	   *page[AX_CMP_LEVELS];
	ArtBuf		key;
} ArtSpot;

/* A leaf as it was, and the entries [lo, hi) of it that a scan has got. */
typedef struct ArtSeen
{
	ArtSpot	place;
	uint64		version;
	uint32		size;
	uint8	   *image;			/* NULL: was not needed yet */
	uint32		lo;
	uint32		hi;
} ArtSeen;

/* Of a doubtful class: where its operations were (compared_refind.c). */
typedef struct ArtAgain
{
	ArtSpot		next;			/* the beginning of the batch that is copied now */
	ArtSpot		begin;			/* the entry behind which the last batch begins, or its first leaf */
	ArtSpot		end;			/* its last entry */
	ArtSpot		gone;			/* where an entry was removed */
	ArtSpot		anchor;			/* one that was looked for */
	bool		backward;		/* what was seen was, that way */
	uint32		nseen;
	uint32		seen_at;		/* the last of them */
	ArtSeen    *seen[ART_CMP_SEEN]; /* NULL: was not needed yet */
	const uint8 **table;		/* NULL: was not needed yet */
	uint32		skip;
	uint32		skipped;
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

extern ax_status art_op_begin(ArtOp *op, const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *tree,
							  uint64 gen);
extern ax_status art_op_root(ArtOp *op);
extern ax_status art_op_down(ArtOp *op, uint32 i);
extern ax_status art_op_beside(ArtOp *op, bool left);
extern ax_status art_op_search(ArtOp *op, uint32 from, uint32 to, const uint8 *key,
							   uint32 len, bool after, bool images, uint32 *at, bool *same);
extern ax_status art_op_descend(ArtOp *op, const uint8 *key, uint32 len, bool after,
								bool images, uint32 *at, bool *same);
extern void art_op_lost(ArtOp *op, int n);
extern ax_status art_op_end(ArtOp *op, ax_status s);
extern ax_status art_op_find(ArtOp *op, const uint8 *key, uint32 len, bool after,
							 bool images, uint32 *at, bool *same);
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

/* ---- compared_refind.c: of a doubtful class ---- */

extern void art_spot_set(ArtSpot *place, const ArtOp *op, const uint8 *key, uint32 len);
extern void art_spot_seen(ArtOp *op, uint32 lo, uint32 hi);
extern ax_status art_find_anywhere(ArtOp *op, const uint8 *key, uint32 len, uint32 *at,
								   bool *same);
extern ax_status art_find_again(ArtOp *op, const uint8 *key, uint32 len, bool after,
								bool backward, uint32 *at, bool *same);
extern ax_status art_find_gone(ArtOp *op, const uint8 *key, uint32 len, uint32 *at,
							   bool *same);
extern void art_spot_done(ArtWalk *w, const ax_batch *b);

#endif							/* ART_AREA_COMPARED_DESCENT_H */
