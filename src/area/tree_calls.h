/*
 * tree_calls.h
 *	  Calls of the core by key: of trees of encoded keys at once, of compared
 *	  ones by way of compared_calls.c.
 *
 * Each has the meaning of the core's call of that name (core/ax.h).  Those of
 * a compared tree call the comparison function, which may raise and run
 * anything.  Therefore, unlike the core, they are to be called outside of a
 * critical section.
 *
 * src/area/README.md: Keys that are compared
 */
#ifndef ART_AREA_TREE_CALLS_H
#define ART_AREA_TREE_CALLS_H

#include "area/area.h"

/*
 * Insert an entry into a compared tree.  AX_EXISTS: it was there.  AX_BUSY, AX_STALE,
 * AX_NOMEM: nothing was changed.
 */
extern ax_status art_cmp_insert(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
								const uint8 *key, uint32 len);

/*
 * Remove from a compared tree the very entry if it is there, else one of that TID whose
 * key is equal.  AX_NOTFOUND: there is neither.  AX_BUSY: others were faster every time,
 * and nothing was removed.
 */
extern ax_status art_cmp_remove(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
								const uint8 *key, uint32 len);

/*
 * Is there in a compared tree an entry of that TID whose key is equal?  AX_OK or
 * AX_NOTFOUND; AX_BUSY or AX_STALE: not known.
 */
extern ax_status art_cmp_contains(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
								  const uint8 *key, uint32 len);

/* Is the very entry there, whatever the comparison function says?  Reads the whole tree. */
extern ax_status art_cmp_holds(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
							   const uint8 *key, uint32 len);

/* ax_scan() of a compared tree. */
extern ax_status art_cmp_scan(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
							  ax_batch *b);

/* ax_lookup() of a compared tree. */
extern ax_status art_cmp_lookup(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
								const uint8 *prefix, uint32 len, ax_found *f);

/* ax_insert_sorted() of a compared tree. */
extern ax_status art_cmp_insert_sorted(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t,
									   uint64 gen, const ax_keys *keys, uint64 *done,
									   uint64 *added);

/*
 * Insert an entry.  AX_EXISTS: it was there.
 *
 * Epoch: enters and leaves.
 * Returns: AX_BUSY, AX_STALE, AX_NOMEM: nothing was changed.
 */
static inline ax_status
art_tree_insert(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
				const uint8 *key, uint32 len)
{
	ax_status	s;

	if (unlikely(kd->compared))
		return art_cmp_insert(kd, cx, t, gen, key, len);
	ART_CORE_BEGIN();
	s = ax_insert(cx, t, gen, key, len);
	ART_CORE_END();
	return s;
}

/*
 * Of a compared tree: an entry of that TID whose key is equal, whatever its bytes.
 *
 * Epoch: enters and leaves.
 * Returns: AX_BUSY, AX_STALE: nothing was changed.
 */
static inline ax_status
art_tree_remove(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
				const uint8 *key, uint32 len)
{
	ax_status	s;

	if (unlikely(kd->compared))
		return art_cmp_remove(kd, cx, t, gen, key, len);
	ART_CORE_BEGIN();
	s = ax_remove(cx, t, gen, key, len);
	ART_CORE_END();
	return s;
}

/*
 * Is the very entry there?  AX_OK or AX_NOTFOUND.
 *
 * Epoch: enters and leaves.
 */
static inline ax_status
art_tree_contains(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
				  const uint8 *key, uint32 len)
{
	ax_status	s;

	if (unlikely(kd->compared))
		return art_cmp_contains(kd, cx, t, gen, key, len);
	ART_CORE_BEGIN();
	s = ax_contains(cx, t, gen, key, len);
	ART_CORE_END();
	return s;
}

/*
 * Copy the next batch of a range: see ax_scan() in core/ax.h.
 *
 * Epoch: enters and leaves.
 */
static inline ax_status
art_tree_scan(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen, ax_batch *b)
{
	ax_status	s;

	if (unlikely(kd->compared))
		return art_cmp_scan(kd, cx, t, gen, b);
	ART_CORE_BEGIN();
	s = ax_scan(cx, t, gen, b);
	ART_CORE_END();
	return s;
}

/*
 * The TIDs behind the columns in "prefix": see ax_lookup() in core/ax.h.
 *
 * Epoch: enters and leaves.
 */
static inline ax_status
art_tree_lookup(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
				const uint8 *prefix, uint32 len, ax_found *f)
{
	ax_status	s;

	if (unlikely(kd->compared))
		return art_cmp_lookup(kd, cx, t, gen, prefix, len, f);
	ART_CORE_BEGIN();
	s = ax_lookup(cx, t, gen, prefix, len, f);
	ART_CORE_END();
	return s;
}

/*
 * Not of a compared tree.
 *
 * Epoch: enters and leaves.
 */
static inline ax_status
art_tree_lookup_many(ax_ctx *cx, ax_tree *t, uint64 gen, const ax_keys *keys, ax_found *f,
					 uint32 *counts, uint32 *done)
{
	ax_status	s;

	ART_CORE_BEGIN();
	s = ax_lookup_many(cx, t, gen, keys, f, counts, done);
	ART_CORE_END();
	return s;
}

/*
 * Insert sorted keys.  *done of them are in, *added were not there before.
 *
 * Epoch: enters and leaves.
 * Returns: with AX_BUSY, AX_STALE or AX_NOMEM, too, the first *done keys are
 * in.
 */
static inline ax_status
art_tree_insert_sorted(const ArtKeyDesc *kd, ax_ctx *cx, ax_tree *t, uint64 gen,
					   const ax_keys *keys, uint64 *done, uint64 *added)
{
	ax_status	s;

	if (unlikely(kd->compared))
		return art_cmp_insert_sorted(kd, cx, t, gen, keys, done, added);
	ART_CORE_BEGIN();
	s = ax_insert_sorted(cx, t, gen, keys, done, added);
	ART_CORE_END();
	return s;
}

#endif							/* ART_AREA_TREE_CALLS_H */
