/*
 * ax_section.c
 *	  What is put off, or not done, in a section that can be undone (ax_elide.h).
 *
 * src/core/elide/README.md: Elision
 */
#include "ax_internal.h"

void
ax_section_refuse(ax_ctx *cx)
{
	ax_ctx_body *b = ax_body(cx);

	if (ax_likely(!(b->elide.apart & AX_APART_TXN)))
		return;
	b->elide.calls->undo(cx);
	AX_ENSURE(b, false);		/* not in a transaction, after all */
}

void
ax_section_count(ax_ctx *cx, ax_store *s, size_t offset, int64_t d)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;
	uint32_t	i = (uint32_t) (offset / sizeof(int64_t));

	if (!(e->apart & AX_APART_TXN))
	{
		atomic_fetch_add_explicit((_Atomic int64_t *) (void *) &s->shards[ax_body(cx)->shard] + i, d,
								  memory_order_relaxed);
		return;
	}
	if (!(e->deltas & 1u << i))
	{
		e->deltas |= 1u << i;
		e->delta[i] = 0;
	}
	e->delta[i] += d;
	e->calls->passed(cx);
}

void
ax_section_retire(ax_ctx *cx, void *p, uint32_t size)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;

	if (e->nretired == AX_ELIDE_RETIRED)
		ax_section_refuse(cx);
	e->retired[e->nretired].p = p;
	e->retired[e->nretired++].size = size;
	e->calls->passed(cx);
}
