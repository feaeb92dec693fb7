/*
 * compared_descent.c
 *	  The steps of a descent in a tree whose keys are compared by their operator classes.
 *
 * The core copies a page out, we compare in the copy, and name the child.
 *
 * src/area/README.md: Keys that are compared
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "area/area.h"
#include "area/compared_descent.h"

#define ART_CMP_TURN	200		/* microseconds, doubled with each loss */
#define ART_CMP_TURNS	8

/* Nothing is remembered yet. */
static ArtAgain *
again_make(MemoryContext cxt)
{
	ArtAgain   *w = MemoryContextAllocZero(cxt, sizeof(ArtAgain));

	w->next.key.cxt = w->begin.key.cxt = w->end.key.cxt = cxt;
	w->gone.key.cxt = w->left.key.cxt = w->right.key.cxt = cxt;
	return w;
}

/*
 * Epoch: enters and leaves.
 */
ax_status
art_op_begin(ArtOp *op, const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *tree, uint64 gen)
{
	ArtCmp	   *c = kd->cmp;
	uint32		size = 0;
	ax_status	s;

	Assert(c != NULL);
	if (unlikely(c->walk == NULL))
	{
		c->walk = MemoryContextAllocZero(c->cxt, sizeof(ArtWalk));
		art_buf_init(&c->walk->lkey, c->cxt, 1024);
		if (kd->doubtful)
			c->walk->again = again_make(c->cxt);
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
		{
			ax_cnode   *f = &op->p->f[--op->w->images];

			pfree(f->image);
			f->image = NULL;
		}
		op->p->size = size;
	}
	return s;
}

/*
 * Epoch: enters and leaves.
 */
ax_status
art_op_root(ArtOp *op)
{
	ax_status	s;

	art_op_room(op, 0);
	ART_CORE_BEGIN();
	s = ax_cmp_root(op->cx, op->tree, op->gen, op->p);
	ART_CORE_END();
	return s;
}

/*
 * Epoch: enters and leaves.
 */
ax_status
art_op_down(ArtOp *op, uint32 i)
{
	ax_status	s;

	art_op_room(op, op->p->n);
	ART_CORE_BEGIN();
	s = ax_cmp_down(op->cx, op->tree, op->gen, op->p, i);
	ART_CORE_END();
	return s;
}

/*
 * Epoch: enters and leaves.
 */
ax_status
art_op_beside(ArtOp *op, bool left)
{
	ax_status	s;

	/* as many levels as before lie below a page: each has its buffer */
	ART_CORE_BEGIN();
	s = ax_cmp_beside(op->cx, op->tree, op->gen, op->p, left);
	ART_CORE_END();
	return s;
}

ax_status
art_op_search(ArtOp *op, uint32 from, uint32 to, const ax_bound *pos, bool images, uint32 *at,
			  bool *same)
{
	int			k = op->p->n - 1;

	*same = false;
	while (from < to)
	{
		uint32		mid = from + (to - from) / 2;
		const uint8 *e;
		uint32		elen;
		int			c;
		ax_status	s = art_op_key(op, k, mid, &e, &elen);

		if (s != AX_OK)
			return s;
		c = art_key_cmp(op->kd, e, elen, pos->key, pos->len, pos->after, images);
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

ax_status
art_op_descend(ArtOp *op, const uint8 *key, uint32 len, bool after, bool images,
		   uint32 *at, bool *same)
{
	const ax_bound pos = {key, len, after};
	ax_cpath   *p = op->p;
	ax_status	s;

	while (!ax_cmp_is_leaf(&p->f[p->n - 1]))
	{
		uint32		i;

		/* child 0 begins below everything; one that begins with the key has it */
		s = art_op_search(op, 1, ax_cmp_count(&p->f[p->n - 1]), &pos, images, &i, same);
		if (s == AX_OK)
			s = art_op_down(op, *same ? i : i - 1);
		if (s != AX_OK)
			return s;
	}
	return art_op_search(op, 0, ax_cmp_count(&p->f[p->n - 1]), &pos, images, at, same);
}

/*
 * Epoch: enters and leaves.  The turn that it asks for lets others wait, and
 * is over by itself after a while.
 */
void
art_op_lost(ArtOp *op, int n)
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
 * Epoch: enters and leaves, if there is a turn.
 */
ax_status
art_op_end(ArtOp *op, ax_status s)
{
	if (unlikely(op->turn) && s != AX_BUSY)
	{
		ART_CORE_BEGIN();
		ax_cmp_turn(op->cx, op->tree, op->gen, 0);
		ART_CORE_END();
	}
	return s;
}

ax_status
art_op_find(ArtOp *op, const uint8 *key, uint32 len, bool after, bool images,
		uint32 *at, bool *same)
{
	ax_status	s;

	*at = 0;
	*same = false;
	for (int i = 0; i < ART_CMP_TRIES; i++)
	{
		s = art_op_root(op);
		if (s == AX_OK && op->p->n > 0)
			s = art_op_descend(op, key, len, after, images, at, same);
		if (s != AX_CHANGED)
			return s;
		art_op_lost(op, i);
	}
	return AX_BUSY;
}

ax_status
art_op_again(ArtOp *op, const uint8 *key, uint32 len, uint32 *at, bool *same)
{
	ax_cpath   *p = op->p;
	ax_status	s;

	if (p->n < 2)
		return AX_CHANGED;
	p->n--;
	s = art_op_down(op, p->f[p->n - 1].i);
	if (s == AX_OK)
		s = art_op_descend(op, key, len, false, true, at, same);
	return s;
}
