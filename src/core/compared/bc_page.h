/*
 * bc_page.h
 *	  Pages of a tree whose order only the caller knows.
 *
 *	  word | unused | image: header, slots, free, heap
 *
 * An inner entry is the address of a child (8 bytes) and the key it begins
 * with, empty for child 0.  Keys of more than a quarter of a page are objects
 * of their own (bt_blob, immutable), of which the entry has the address.  The
 * heap has no holes: whoever takes an entry out writes the image anew.
 *
 * A page is read by copying its image and validating.  It is written by
 * preparing an image from such a copy, latching the page at the copy's
 * version, and storing the image.
 *
 * A page that was unlinked is retired like any other object, and its memory
 * may be anything two epochs later.  So in each epoch an address from an
 * earlier one is touched only after it was seen in the tree.  That is: it is
 * the root, or a child of a page that is in the tree.  A page that was seen
 * there stays a page until the epoch ends.  No version comes twice at one
 * address (bc_ready).  So a page in the tree that has the version of a copy is
 * the page that was copied, in the same life.
 *
 * src/core/compared/README.md: Keys that are compared
 */
#ifndef BC_PAGE_H
#define BC_PAGE_H

#include "core/ax_cmp.h"
#include "core/btree/bt_page.h"

typedef struct bc_page
{
	ax_word		word;			/* no version twice at one address */
	uint64_t	unused;			/* so that an image begins where an object may */
	uint8_t		image[];		/* its maker, then who has "word" latched */
} bc_page;

#define BC_HEAD		((uint32_t) offsetof(bc_page, image))
#define BC_IMAGE	((uint32_t) offsetof(ax_image, slot))
#define BC_MAX		(AX_PAGE_SIZE_MAX - BC_HEAD)

/* One entry on its way into an image. */
typedef struct bc_entry
{
	bc_page    *child;			/* inner */
	const uint8_t *key;
	uint32_t	len;
	bt_blob    *blob;			/* not NULL: the key is this, key and len are not */
} bc_entry;

static inline uint32_t
bc_size(const ax_store *s)
{
	return s->page_size - BC_HEAD;
}

/* Keys longer than this are blobs. */
static inline uint32_t
bc_max_inline(const ax_store *s)
{
	return bc_size(s) / 4;
}

static inline ax_image *
bc_img(uint8_t *image)
{
	return (ax_image *) (void *) image;
}

/* Bytes of the heap that the entry takes. */
static inline uint32_t
bc_bytes(bool inner, const bc_entry *e)
{
	return (inner ? 8 : 0) + (e->blob ? 8 : e->len);
}

static inline uint32_t
bc_room(const ax_image *m)
{
	return m->heap - (BC_IMAGE + 4u * m->n);
}

/* Bytes in use, slots too. */
static inline uint32_t
bc_used(const ax_image *m, uint32_t size)
{
	return size - m->heap + 4u * m->n;
}

extern void bc_clear(uint8_t *image, uint32_t size, int level);
extern void bc_get(const uint8_t *image, uint32_t i, bc_entry *e);
extern bool bc_put(uint8_t *image, uint32_t i, const bc_entry *e);
extern bool bc_append(uint8_t *to, const uint8_t *from, uint32_t lo, uint32_t hi);
extern bc_page *bc_alloc(ax_ctx *cx, ax_store *s, bool may_reserve);
extern void bc_unalloc(ax_ctx *cx, ax_store *s, bc_page *p);
extern void bc_retire(ax_ctx *cx, ax_store *s, bc_page *p);
extern void bc_ready(ax_store *s, bc_page *p);
extern void bc_open(ax_store *s, bc_page *p, const uint8_t *image);
extern ax_status bc_copy(ax_ctx *cx, bc_page *p, ax_guard *g, uint8_t *image, uint32_t size);
extern void bc_store(bc_page *p, const uint8_t *image, uint32_t size);
extern bool bc_has_child(const uint8_t *image, const bc_page *child);

/* bc_tree.c */
extern bool bc_others_turn(ax_ctx *cx, ax_store *s);
extern void bc_set_root(ax_store *s, bc_page *root, int level);
extern void bc_shrink_root(ax_ctx *cx, ax_store *s);

/* bc_walk.c */
extern ax_status bc_walk_on(ax_ctx *cx, ax_store *s, ax_walk *k, uint8_t *image);
extern ax_status bc_walk_next(ax_ctx *cx, ax_store *s, ax_walk *k, uint8_t *image,
							  ax_guard *above, bc_page **page);

extern ax_status bc_load(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
						 const uint32_t *lens, uint32_t len, uint64_t n, int fill);
extern ax_status bc_compact(ax_ctx *cx, ax_store *s, ax_compaction *c);
extern ax_status bc_check(ax_ctx *cx, ax_store *s, ax_checking *c);

#endif							/* BC_PAGE_H */
