/*
 * ax_cmp.h
 *	  B+-trees whose order only the caller knows.
 *
 * For keys that no byte string can stand for: the caller compares them by
 * functions that may allocate, raise, or run for a second.  That cannot be
 * done inside an epoch or a latch, so nothing here compares.  A descent copies
 * a page out and leaves; the caller compares and says which child to go to.  A
 * change of the tree is told its place, on a path of (page, version) pairs.
 * It is done if the page at that place is still the page of that version, else
 * the caller starts over.  So between any two calls nothing is held, and an
 * error there leaves nothing behind.
 *
 * A remembered page may have been emptied, merged away and used again in the
 * meantime, for this tree or for anything.  So each step first goes down the path's
 * addresses from the root, and touches a page only when it has seen it in the tree.
 * No version comes twice at one address, so what has the version is the page.
 *
 * Keys are opaque but for their last AX_TID_BYTES, the TID.
 *
 * src/core/compared/README.md: Keys that are compared
 */
#ifndef AX_CMP_H
#define AX_CMP_H

#include "ax.h"

#define AX_CMP_LEVELS	40		/* with two children a page, more than memory has */
#define AX_CMP_NOWHERE	(-1)	/* a path's n: begin again for what comes next */

/* A page as it was: a private copy of its contents. */
typedef struct ax_cnode
{
	void	   *page;			/* where it is; never followed by the caller */
	uint64_t	version;
	uint64_t	born;			/* the tree's so manieth page: no other one has that number */
	uint64_t	made;			/* the tree's pages, ever, when the step began that copied this one */
	uint8_t    *image;			/* the caller's buffer of path->size bytes; NULL: none yet */
	uint32_t	i;				/* inner: the child that was taken */
} ax_cnode;

/*
 * A descent: f[0] is the root, f[n - 1] where it has come to.  size: bytes of
 * each image, which the caller sees to.  A page whose number is not above a frame's "made"
 * was there when that was copied, or a process had latched already what the page was to be
 * made from.
 */
typedef struct ax_cpath
{
	uint32_t	size;
	uint64_t	made;			/* of the pages that the last step copied */
	uint64_t	root_version;
	int			n;				/* 0: the tree is empty */
	ax_cnode	f[AX_CMP_LEVELS];
} ax_cpath;

/* Bytes that a path's images need.  AX_STALE. */
extern ax_status ax_cmp_size(ax_ctx *cx, ax_tree *t, uint64_t gen, uint32_t *size);

/* Begin: the root's page, or none.  AX_BUSY, AX_STALE. */
extern ax_status ax_cmp_root(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p);

/*
 * On to child i of the last page.  AX_CHANGED: start over (or from the page
 * above, which may not have changed: p->n--, and down again).
 */
extern ax_status ax_cmp_down(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p, uint32_t i);

/*
 * From a leaf to the one beside it.  AX_NOTFOUND: there is none.  AX_CHANGED:
 * start over, by value.  Nothing lay between the two when they were copied:
 * the pages above did not change in between.
 */
extern ax_status ax_cmp_beside(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p, bool left);

/*
 * Back to where a path led once, by the addresses of its pages from the root to the
 * leaf, whatever the order of the keys.  AX_BUFFER: the tree has grown, and f[n] has no image
 * yet; again.  AX_NOTFOUND: that leaf is gone.  The path leads to the first one below the lowest
 * page that is not, or nowhere if the tree is empty.  AX_CHANGED: not now,
 * somebody changes it.  An address that was
 * given back may be another page's: look for what was there.
 */
extern ax_status ax_cmp_return(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p,
							   void *const *pages, int n);

/*
 * Insert so that the key is entry i of the leaf that the path ends at (or of an
 * empty tree).  AX_CHANGED: not done, start over.  AX_NOMEM, AX_BUSY, AX_STALE.
 * After AX_OK the path ends at the leaf with the key, or nowhere.
 */
extern ax_status ax_cmp_insert(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p, uint32_t i,
							   const uint8_t *key, uint32_t len);

/* Remove entry i of the leaf that the path ends at.  Likewise. */
extern ax_status ax_cmp_remove(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p, uint32_t i);

/*
 * After losing the place again and again to others, which compare faster.  For
 * so many microseconds, or until the next ax_cmp_insert or ax_cmp_remove that
 * is AX_OK, nobody else changes the tree.  Only an announcement; nothing is
 * held, and it ends by itself.  Somebody else's is not disturbed. 0: give it
 * back.
 */
extern void ax_cmp_turn(ax_ctx *cx, ax_tree *t, uint64_t gen, uint32_t us);

/* ---- reading an image ---- */

typedef struct ax_image
{
	uint16_t	n;				/* entries; an inner page's are its children */
	uint16_t	level;			/* 0: leaf */
	uint16_t	heap;			/* lowest byte in use behind the slots */
	uint16_t	unused;
	uint32_t	slot[];			/* offset | length << 16, of the key */
} ax_image;

#define AX_CMP_LONG		0xFFFFu /* length of a key that is an object of its own */

static inline const ax_image *
ax_cmp_image(const ax_cnode *f)
{
	return (const ax_image *) (const void *) f->image;
}

static inline uint32_t
ax_cmp_count(const ax_cnode *f)
{
	return ax_cmp_image(f)->n;
}

static inline bool
ax_cmp_is_leaf(const ax_cnode *f)
{
	return ax_cmp_image(f)->level == 0;
}

/*
 * The key of entry i (of an inner page: what child i begins with; that of child
 * 0 is empty and below all).  NULL: it is a long one, see ax_cmp_long.
 */
static inline const uint8_t *
ax_cmp_key(const ax_cnode *f, uint32_t i, uint32_t *len)
{
	uint32_t	slot = ax_cmp_image(f)->slot[i];

	*len = slot >> 16;
	return *len == AX_CMP_LONG ? NULL : f->image + (slot & 0xFFFF);
}

/* Where a long key is copied to. */
typedef struct ax_clong
{
	uint8_t    *buf;			/* the caller's, of "size" bytes */
	uint32_t	size;
	uint32_t	len;			/* out: the key's */
} ax_clong;

/*
 * A copy of the long key of entry i of frame k.  AX_BUFFER: it has more than out->size
 * bytes, and out->len says how many.  AX_CHANGED: the page is another now.
 */
extern ax_status ax_cmp_long(ax_ctx *cx, ax_tree *t, uint64_t gen, const ax_cpath *p, int k,
							 uint32_t i, ax_clong *out);

#endif							/* AX_CMP_H */
