/*
 * ax_trees.c
 *	  Trees: their handles, the engine of each structure, opening and closing.
 *
 * src/core/face/README.md: Overview
 * src/core/base/README.md: Memory and epochs
 */
#include "core/base/ax_area.h"
#include "core/base/ax_call.h"
#include "core/btree/btree.h"
#include "core/compared/compared.h"
#include "core/hydra/hydra.h"
#include "core/radix/radix.h"
#include "face.h"

/*
 * Epoch: none is entered.
 * Latches: takes the handles', and inside it the page pool's.
 */
ax_tree *
ax_tree_alloc(ax_ctx *cx)
{
	ax_area    *a = ax_area_of(cx);
	ax_tree    *t;

	ax_latch_arena(cx, &a->handle_latch, 0);
	t = a->handle_free;
	if (t)
		a->handle_free = t->next_free;
	else
	{
		if (a->handle_next == a->handle_end)
		{
			/* handles are type-stable: this page stays one of handles */
			void	   *page = ax_pages_take(cx, 1, AX_OVERHEAD, 0, true, NULL);

			if (page)
			{
				memset(page, 0, AX_PAGE);
				a->handle_next = page;
				a->handle_end = a->handle_next + AX_PAGE / sizeof(ax_tree);
			}
		}
		if (a->handle_next != a->handle_end)
			t = a->handle_next++;
	}
	ax_word_unlock(cx, &a->handle_latch, false);
	return t;
}

/*
 * Epoch: none is entered.
 * Latches: takes the handles'.
 */
void
ax_tree_release(ax_ctx *cx, ax_tree *t)
{
	ax_area    *a = ax_area_of(cx);

	AX_ENSURE(ax_body(cx), atomic_load(&t->store) == NULL);
	ax_latch_arena(cx, &a->handle_latch, 0);
	t->next_free = a->handle_free;
	a->handle_free = t;
	ax_word_unlock(cx, &a->handle_latch, false);
}

static const ax_engine *const engines[AX_STRUCTURES] = {
	[AX_ART_OLC] = &ax_engine_art_olc,
	[AX_BTREE_OLC] = &ax_engine_btree_olc,
	[AX_ART_ROWEX] = &ax_engine_art_rowex,
	[AX_ART_OPTIQL] = &ax_engine_art_optiql,
	[AX_ART_COARSE] = &ax_engine_art_coarse,
	[AX_BTREE_OPTIQL] = &ax_engine_btree_optiql,
	[AX_BTREE_COARSE] = &ax_engine_btree_coarse,
	[AX_BTREE_COMPARED] = &ax_engine_btree_compared,
	[AX_HYDRA_OLC] = &ax_engine_hydra_olc,
	[AX_HYDRA_OPTIQL] = &ax_engine_hydra_optiql,
	[AX_HYDRA_COARSE] = &ax_engine_hydra_coarse,
	[AX_HYDRA_MVRLU] = &ax_engine_hydra_mvrlu
};

const char *
ax_structure_name(ax_structure s)
{
	return engines[s]->structure;
}

const char *
ax_structure_sync(ax_structure s)
{
	return engines[s]->sync;
}

bool
ax_structure_is_btree(ax_structure s)
{
	return s == AX_BTREE_OLC || s == AX_BTREE_OPTIQL || s == AX_BTREE_COARSE ||
		s == AX_BTREE_COMPARED;
}

bool
ax_structure_is_hydra(ax_structure s)
{
	return s == AX_HYDRA_OLC || s == AX_HYDRA_OPTIQL || s == AX_HYDRA_COARSE ||
		s == AX_HYDRA_MVRLU;
}

bool
ax_can_load_share(ax_structure s)
{
	return engines[s]->load_share != NULL;
}

ax_status
ax_tree_open(ax_ctx *cx, ax_tree *t, ax_structure s, uint64_t max_bytes,
			 uint32_t page_size, uint64_t *gen)
{
	ax_area    *a = ax_area_of(cx);
	const ax_engine *e;
	ax_store   *st;
	uint64_t	g;
	int			tries = 0;
	ax_status	r;

	AX_ENSURE(ax_body(cx), (unsigned) s < AX_STRUCTURES && atomic_load(&t->store) == NULL);
	e = engines[s];
	g = atomic_fetch_add(&a->next_gen, 1);
	while ((st = ax_store_new(cx, t, g, e, max_bytes)) == NULL)
		if ((r = ax_try_for_memory(cx, &tries)) != AX_OK)
			return r;
	ax_body(cx)->nomem_epoch = 0;
	st->sync = e->kind;
	if (e->open)
		e->open(st);
	if (ax_structure_is_btree(s))
		st->page_size = page_size ? page_size : AX_PAGE_SIZE_DEFAULT;
	atomic_store(&t->gen, g);
	atomic_store_explicit(&t->store, st, memory_order_release);
	*gen = g;
	return AX_OK;
}

void
ax_tree_close(ax_ctx *cx, ax_tree *t)
{
	ax_area    *a = ax_area_of(cx);
	ax_store   *st;

	atomic_store(&t->gen, 0);
	st = atomic_exchange(&t->store, NULL);
	ax_fence_after_rmw();
	if (!st)
		return;
	/* stamped like a retired object */
	st->dying_epoch = atomic_load(&a->epoch);
	atomic_fetch_add(&a->ndying, 1);
	ax_stack_push(&a->dying, (ax_stack_node *) (void *) &st->dying_next);
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_tree_set_cap(ax_ctx *cx, ax_tree *t, uint64_t gen, uint64_t max_bytes)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	atomic_store_explicit(&st->max_bytes, max_bytes, memory_order_relaxed);
	ax_leave(cx);
	return AX_OK;
}

bool
ax_nomem_was_cap(const ax_ctx *cx)
{
	return ax_body(cx)->cap_hit;
}

ax_group *
ax_nomem_group(const ax_ctx *cx)
{
	return ax_body(cx)->group_hit;
}

void
ax_tree_set_groups(ax_tree *t, ax_group *const groups[AX_GROUPS])
{
	memcpy(t->groups, groups, sizeof(t->groups));
}
