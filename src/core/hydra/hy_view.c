/*
 * hy_view.c
 *	  A node's view: the order of its keys, and another one in its place.
 *
 * src/core/hydra/README.md: Views
 */
#include "hy_view.h"

/* ---- the order of the keys ---- */

/*
 * Without versions the body has the order of one version of the latch word, which is a
 * node's view.  With versions it has that of a set of slots.  It serves a view whose slots are
 * among them.  Slots are given in order and never again.  So the order of a set that is
 * greater, as a number, is the later one, and no number comes twice.
 */
bool
hy_recall_slots(hy_body *b, hy_order_of *o)
{
	int			k = 0;

	/* the set of the first slot alone is the number HY_PERM_BUSY */
	if (o->n < 2)
	{
		o->perm[0] = o->n ? (uint8_t) __builtin_ctzll(o->live) : 0;
		return true;
	}
	if ((o->live & ~o->was) != 0 || !hy_told_order(b, o->was, o->was, o->perm))
		return false;
	for (int i = 0; o->live != o->was && k < o->n; i++)
		if (o->live >> o->perm[i] & 1)
			o->perm[k++] = o->perm[i];
	return true;
}

/* ---- changes ---- */

void
hy_publish(const hy_call *h, hy_edit *e, int i, hy_node *n, const hy_view *is)
{
	if (h->versions)
	{
		e->v[i]->is = *is;
		hm_publish(n, e->v[i], i > 0 ? e->v[0] : NULL);
		return;
	}
	/* nobody looks at a node that goes: it gets obsolete */
	if (!is->body)
		return;
	if (bt_ld(&n->body) != is->body)
		atomic_store_explicit(&n->body, is->body, memory_order_release);
	if (hy_next(n) != is->end.next)
		hy_set_end(n, &is->end);
}

void
hy_commit(const hy_call *h, hy_edit *e)
{
	if (!h->versions)
		return;
	hm_commit(h->t, e->v[0]);
	for (int i = 1; i < e->n; i++)
		hm_led(e->v[i]);
}
