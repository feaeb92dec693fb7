/*
 * bc_page.c
 *	  Pages of a tree whose order only the caller knows: images, and pages
 *	  that are copied out and stored.
 *
 * src/core/compared/README.md: Keys that are compared
 */
#include "core/base/ax_area.h"
#include "bc_page.h"

/* ---- images: private memory ---- */

void
bc_clear(uint8_t *image, uint32_t size, int level)
{
	ax_image   *m = bc_img(image);

	memset(m, 0, BC_IMAGE);
	m->level = (uint16_t) level;
	m->heap = (uint16_t) size;
}

void
bc_get(const uint8_t *image, uint32_t i, bc_entry *e)
{
	const ax_image *m = (const ax_image *) (const void *) image;
	uint32_t	slot = m->slot[i];
	const uint8_t *p = image + (slot & 0xFFFF);

	e->child = NULL;
	e->blob = NULL;
	e->key = p;
	e->len = slot >> 16;
	if (m->level)
		memcpy(&e->child, p - 8, 8);
	if (e->len == AX_CMP_LONG)
	{
		memcpy(&e->blob, p, 8);
		e->key = NULL;
		e->len = 0;
	}
}

bool
bc_put(uint8_t *image, uint32_t i, const bc_entry *e)
{
	ax_image   *m = bc_img(image);
	bool		inner = m->level > 0;
	uint32_t	bytes = bc_bytes(inner, e);
	uint8_t    *p;

	if (bc_room(m) < bytes + 4)
		return false;
	m->heap = (uint16_t) (m->heap - bytes);
	p = image + m->heap;
	if (inner)
	{
		memcpy(p, &e->child, 8);
		p += 8;
	}
	memmove(&m->slot[i + 1], &m->slot[i], 4u * (m->n - i));
	if (e->blob)
		memcpy(p, &e->blob, 8);
	else if (e->len)
		memcpy(p, e->key, e->len);
	m->slot[i] = (uint32_t) (p - image) | (e->blob ? AX_CMP_LONG : e->len) << 16;
	m->n++;
	return true;
}

bool
bc_append(uint8_t *to, const uint8_t *from, uint32_t lo, uint32_t hi)
{
	for (uint32_t i = lo; i < hi; i++)
	{
		bc_entry	e;

		bc_get(from, i, &e);
		if (!bc_put(to, bc_img(to)->n, &e))
			return false;
	}
	return true;
}

bool
bc_has_child(const uint8_t *image, const bc_page *child)
{
	const ax_image *m = (const ax_image *) (const void *) image;

	for (uint32_t i = 0; m->level && i < m->n; i++)
	{
		bc_entry	e;

		bc_get(image, i, &e);
		if (e.child == child)
			return true;
	}
	return false;
}

/* ---- pages ---- */

/*
 * Epoch: inside.
 * Latches: none, as ax_alloc().
 */
bc_page *
bc_alloc(ax_ctx *cx, ax_store *s, bool may_reserve)
{
	return ax_alloc(cx, s, s->page_size, may_reserve);
}

void
bc_unalloc(ax_ctx *cx, ax_store *s, bc_page *p)
{
	ax_unalloc(cx, s, p, s->page_size);
}

/*
 * One that was unlinked and is obsolete; a record is reserved.  Its version is the
 * last that it had, and is noted first.  The process that gets the memory next gets
 * it by way of this record.  So in bc_ready() it reads no less.
 *
 * Epoch: inside.
 */
void
bc_retire(ax_ctx *cx, ax_store *s, bc_page *p)
{
	uint64_t	v = ax_word_read(&p->word) & AX_VERSION_MASK;
	uint64_t	high = atomic_load_explicit(&bc_own_of(s)->version, memory_order_relaxed);

	while (high < v && !atomic_compare_exchange_weak_explicit(&bc_own_of(s)->version, &high, v,
															  memory_order_relaxed,
															  memory_order_relaxed))
		;
	ax_retire(cx, s, p, s->page_size);
}

/*
 * Let readers in: with a version that no page had at this address.  A process
 * that remembers one from another life has another version.
 *
 * Order: the number is taken with the pages latched that this one is made from.  A
 * process that has read "made", and then copies such a page as it was before, has read a
 * lower number.  Release here, and acquire there: else it could have read the number
 * and not see the latch.
 */
void
bc_ready(ax_store *s, bc_page *p)
{
	p->born = atomic_fetch_add_explicit(&bc_own_of(s)->made, 1, memory_order_release) + 1;
	atomic_store_explicit(&p->word,
						  atomic_load_explicit(&bc_own_of(s)->version, memory_order_relaxed) + AX_VERSION_ONE,
						  memory_order_release);
}

void
bc_store(bc_page *p, const uint8_t *image, uint32_t size)
{
	const ax_image *m = (const ax_image *) (const void *) image;

	ax_copy_in(p->image, image, BC_IMAGE + 4u * m->n);
	ax_copy_in(p->image + m->heap, image + m->heap, size - m->heap);
}

/* Not what lies between the slots and the heap, which nobody wrote. */
void
bc_open(ax_store *s, bc_page *p, const uint8_t *image)
{
	bc_store(p, image, bc_size(s));
	bc_ready(s, p);
}

/*
 * Epoch: inside.
 * Latches: none.
 */
ax_status
bc_copy(ax_ctx *cx, bc_page *p, ax_guard *g, uint8_t *image, uint32_t size)
{
	ax_status	x = ax_guard_open(cx, g, &p->word, false);

	if (x != AX_OK)
		return x;
	AX_POINT("bc.page_version");
	ax_copy_out(image, p->image, size / 2);
	AX_POINT("bc.page_half");
	ax_copy_out(image + size / 2, p->image + size / 2, size - size / 2);
	AX_POINT("bc.page_copied");
	return ax_guard_valid(g) ? AX_OK : AX_STALE;
}
