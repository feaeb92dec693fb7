/*
 * bc_page.h
 *	  Pages of a tree whose order only the caller knows.
 *
 *	  word | number | image: header, slots, free, heap
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
	uint64_t	born;			/* its number, of all pages that the tree ever had */
	uint8_t		image[];		/* its maker, then who has "word" latched */
} bc_page;

/* Such a tree keeps this in its store (ax_store.own). */
typedef struct bc_own
{
	_Atomic uint64_t turn;		/* who goes first (bc_tree.c); by CAS, taken by a process
								 * and given up again */
	_Atomic uint64_t version;	/* no page had a higher one and is gone; who retires one
								 * raises it by CAS */
	_Atomic uint64_t made;		/* pages, ever; who lets readers into one adds to it */
} bc_own;

_Static_assert(sizeof(bc_own) <= AX_OWN, "a store has room for it");

static inline bc_own *
bc_own_of(ax_store *s)
{
	return (bc_own *) (void *) s->own;
}

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

/* Make an image without entries, in private memory. */
extern void bc_clear(uint8_t *image, uint32_t size, int level);

/* Entry i of an image, in pieces that point into it; a long key is not followed. */
extern void bc_get(const uint8_t *image, uint32_t i, bc_entry *e);

/* Make e entry i of an image.  False, and it is as it was: there is no room. */
extern bool bc_put(uint8_t *image, uint32_t i, const bc_entry *e);

/*
 * Put entries [lo, hi) of one image behind those of another.  False: there was no room
 * for all.
 */
extern bool bc_append(uint8_t *to, const uint8_t *from, uint32_t lo, uint32_t hi);

/*
 * Memory for a page that nobody else sees.
 *
 * Epoch: inside.
 * Returns: NULL when there is none.
 */
extern bc_page *bc_alloc(ax_ctx *cx, ax_store *s, bool may_reserve);

/* Give back a page that nobody saw. */
extern void bc_unalloc(ax_ctx *cx, ax_store *s, bc_page *p);

/*
 * Retire a page that is obsolete and unlinked; its version is noted, so that no page
 * at its address has it again.
 *
 * Epoch: inside; a record is reserved.
 */
extern void bc_retire(ax_ctx *cx, ax_store *s, bc_page *p);

/* Let readers in, with a version that no page had at this address, and with a number of its own. */
extern void bc_ready(ax_store *s, bc_page *p);

/* Store an image in a page that was allocated, and let readers in. */
extern void bc_open(ax_store *s, bc_page *p, const uint8_t *image);

/*
 * Copy a page's image.
 *
 * Epoch: inside.
 * Latches: none.
 * Returns: AX_OK, what the page was at the version in g; AX_STALE: it changed, or is
 * none; AX_BUSY.
 */
extern ax_status bc_copy(ax_ctx *cx, bc_page *p, ax_guard *g, uint8_t *image, uint32_t size);

/*
 * Make this the contents of a page.
 *
 * Latches: the page's is held.
 */
extern void bc_store(bc_page *p, const uint8_t *image, uint32_t size);

/* Is it a child of the inner page that this is the image of? */
extern bool bc_has_child(const uint8_t *image, const bc_page *child);

/* ---- bc_tree.c ---- */

/* Is it the turn of somebody else, so that this process is to change nothing now? */
extern bool bc_others_turn(ax_ctx *cx, ax_store *s);

/*
 * Point the store's root to a page of this level.
 *
 * Latches: the root's word is held.
 */
extern void bc_set_root(ax_store *s, bc_page *root, int level);

/*
 * A root with one child gives way to it.  At best: one that is latched, or has
 * changed, stays.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; takes the root's word and page by one try
 * each.
 */
extern void bc_shrink_root(ax_ctx *cx, ax_store *s);

/* ---- bc_walk.c ---- */

/*
 * A call of a walk begins: pages that have left the tree go off the path, with what
 * was below them.  image: room for one.
 *
 * Epoch: inside; the others stay pages until it ends.
 * Returns: AX_OK, AX_BUSY.
 */
extern ax_status bc_walk_on(ax_ctx *cx, ax_store *s, ax_walk *k, uint8_t *image);

/*
 * The page that comes next: the root, or the next child of the path's lowest page,
 * whose image is then there; *above guards the pointer.
 *
 * Epoch: inside.
 * Latches: none.
 * Returns: AX_OK; AX_NOTFOUND: none, and the path is shorter by one; AX_STALE,
 * AX_BUSY.
 */
extern ax_status bc_walk_next(ax_ctx *cx, ax_store *s, ax_walk *k, uint8_t *image,
							  ax_guard *above, bc_page **page);

/* ---- bc_bulk.c, bc_compact.c, bc_check.c ---- */

/*
 * The engine's load.
 *
 * Epoch: inside; now and then another one.  On AX_STALE outside.
 */
extern ax_status bc_load(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill);

/* The engine's compact.  Gives way to a turn. */
extern ax_status bc_compact(ax_ctx *cx, ax_store *s, ax_compaction *c);

/* The engine's check. */
extern ax_status bc_check(ax_ctx *cx, ax_store *s, ax_checking *c);

#endif							/* BC_PAGE_H */
