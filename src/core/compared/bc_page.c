/*
 * bc_page.c
 *	  Pages of a tree whose order only the caller knows: images, and pages
 *	  that stay pages.
 *
 * src/README.md: Keys that are compared
 */
#include "core/base/ax_area.h"
#include "bc_page.h"

/* ---- images: private memory ---- */

/* An image without entries. */
void
bc_clear(uint8_t *image, uint32_t size, int level)
{
	ax_image   *m = bc_img(image);

	memset(m, 0, BC_IMAGE);
	m->level = (uint16_t) level;
	m->heap = (uint16_t) size;
}

/* Entry i, pointing into the image. */
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

/* Make it entry i.  False: there is no room. */
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

/* Entries [lo, hi) of one image behind those of another. */
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

/* ---- pages ---- */

/*
 * A page that nobody else has: one of those that were given up, OBSOLETE still,
 * or a new one.  NULL: no memory.
 *
 * The list of those given up is pushed to by compare-and-swap, and popped from
 * by one process at a time.  So a page that is popped cannot have come back
 * meanwhile.
 *
 * Epoch: inside.
 * Latches: the list's word, by one try; none on return.
 */
bc_page *
bc_alloc(ax_ctx *cx, ax_store *s)
{
	bc_page    *p = atomic_load_explicit(&s->free_pages, memory_order_relaxed);

	if (p)
	{
		uint64_t	v = ax_word_read(&s->free_word);

		if (ax_word_trylock(cx, &s->free_word, v))
		{
			p = atomic_load_explicit(&s->free_pages, memory_order_acquire);
			while (p && !atomic_compare_exchange_weak_explicit(&s->free_pages, &p, p->next_free,
															   memory_order_acquire,
															   memory_order_acquire))
				;
			ax_word_unlock(cx, &s->free_word, true);
			if (p)
				return p;
		}
	}
	p = ax_alloc(cx, s, s->page_size, false);
	if (p)
		atomic_init(&p->word, AX_WORD_INIT | AX_OBSOLETE);
	return p;
}

/*
 * Give one up: OBSOLETE, and in no other page.  At once, not two epochs later:
 * who still reads it finds another version.
 */
void
bc_give(ax_store *s, bc_page *p)
{
	bc_page    *head = atomic_load_explicit(&s->free_pages, memory_order_relaxed);

	do
		p->next_free = head;
	while (!atomic_compare_exchange_weak_explicit(&s->free_pages, &head, p,
												  memory_order_release,
												  memory_order_relaxed));
}

/*
 * Let readers in: with a version that this page never had.  A process that
 * remembers it from another life has another version.  One that has its
 * address from a page that no longer points to it finds that page changed.
 */
void
bc_ready(bc_page *p)
{
	uint64_t	w = atomic_load_explicit(&p->word, memory_order_relaxed);

	atomic_store_explicit(&p->word, (w & ~(AX_VERSION_ONE - 1)) + AX_VERSION_ONE,
						  memory_order_release);
}

/* Fill one that was allocated, and let readers in. */
void
bc_open(bc_page *p, const uint8_t *image, uint32_t size)
{
	ax_copy_in(p->image, image, size);
	bc_ready(p);
}

/*
 * Copy a page's image: AX_OK, what the page was at the version in g.  AX_STALE:
 * it changed, or is none.  AX_BUSY.
 *
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
