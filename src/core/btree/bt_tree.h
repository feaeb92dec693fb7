/*
 * bt_tree.h
 *	  What the files of the B+-tree share: descents.
 *
 * src/core/btree/README.md: The B+-tree
 * src/core/btree/README.md: Races
 */
#ifndef BT_TREE_H
#define BT_TREE_H

#include "bt_page.h"

#define BT_PREFETCH 2048		/* bytes of a page that are asked for at once */

typedef struct bt_frame
{
	ax_guard	g;
	bt_page    *p;
	int			i;				/* inner: the child that was taken */
} bt_frame;

/*
 * A descent: frame 0 is the root page, the last one the leaf.  The root
 * pointer's own word is guarded by "root".
 */
typedef struct bt_path
{
	ax_guard	root;
	int			n;				/* frames; 0: the tree is empty */
	bool		pess;			/* latched, not sampled */
	bool		all;			/* pessimistic: all the way, not only two */
	bool		write;			/* the leaf is to be written */
	bt_frame	f[BT_LEVELS];
} bt_path;

/*
 * A page on its way in: its lines at once, so that the search waits for memory
 * once.  (Pages are at least four lines.)
 */
AX_PREFETCHES static inline void
bt_prefetch(const bt_page *p, uint32_t size)
{
	const char *at = (const char *) p;
	const char *end = at + (size < BT_PREFETCH ? size : BT_PREFETCH);

	for (; at < end; at += 4 * AX_LINE)
	{
		ax_prefetch(at);
		ax_prefetch(at + AX_LINE);
		ax_prefetch(at + 2 * AX_LINE);
		ax_prefetch(at + 3 * AX_LINE);
	}
}

static inline bt_page *
bt_ref(_Atomic uint64_t *slot)
{
	return (bt_page *) (uintptr_t) atomic_load_explicit(slot, memory_order_acquire);
}

/* The guard of the pointer to frame k. */
static inline ax_guard *
bt_above(bt_path *t, int k)
{
	return k > 0 ? &t->f[k - 1].g : &t->root;
}

/*
 * One hop.  Into page p, whose address was read from what "from" guards: g is opened,
 * and then "from" is validated.  Unless AX_OK the caller starts over, or is busy (what
 * g has latched it lets go).
 *
 * Latches: pessimistically has that of "from"; on AX_OK that of g, too.
 */
__attribute__((always_inline)) static inline ax_status
bt_enter(ax_ctx *cx, const ax_guard *from, ax_guard *g, bt_page *p, const ax_mode mode)
{
	ax_status	x;

	AX_POINT("bt.child_read");
	x = ax_open(cx, g, &p->word, mode);
	if (ax_unlikely(x != AX_OK))
		return x;
	AX_POINT("bt.child_version");
	return ax_valid(from, mode) ? AX_OK : AX_STALE;
}

/*
 * The same for the leaf, which is to be written.
 *
 * Latches: as bt_enter(); under OptiQL that of g in any mode, and shared.
 */
__attribute__((always_inline)) static inline ax_status
bt_enter_target(ax_ctx *cx, ax_store *s, const ax_guard *from, ax_guard *g, bt_page *p,
				const ax_mode mode)
{
	ax_status	x;

	AX_POINT("bt.child_read");
	x = ax_guard_open_target(cx, s, g, &p->word, mode == AX_PESSIMISTIC);
	if (ax_unlikely(x != AX_OK))
		return x;
	AX_POINT("bt.child_version");
	return ax_valid(from, mode) ? AX_OK : AX_STALE;
}

/*
 * .. and from an inner page, p, to the address of child i, as bt_child_inside() said,
 * which is asked for.  NULL: p changed.
 */
__attribute__((always_inline)) static inline bt_page *
bt_step(ax_store *s, bt_page *p, const ax_guard *g, int i, const ax_mode mode)
{
	bt_page    *child;

	if (ax_unlikely(i < 0))
		return NULL;
	child = bt_ref(&bt_children(p)[i]);
	bt_prefetch(child, bt_page_size(s, p->level - 1));
	AX_POINT("bt.slot_read");
	return ax_valid(g, mode) ? child : NULL;
}

/*
 * The root page, NULL: the tree is empty.  g: of the pointer to it.
 *
 * Latches: none on entry; pessimistically that of the root's word on AX_OK.
 */
__attribute__((always_inline)) static inline ax_status
bt_start(ax_ctx *cx, ax_store *s, ax_guard *g, bt_page **root, const ax_mode mode)
{
	ax_status	x = ax_open(cx, g, &s->root_word, mode);

	if (ax_unlikely(x != AX_OK))
		return x;
	*root = bt_ref(&s->root);
	AX_POINT("bt.root_read");
	return ax_valid(g, mode) ? AX_OK : AX_STALE;
}

/*
 * Let go of the frames of a path from "from" on; negative: of all, and of the root's
 * word.  Nothing was changed under them.
 */
extern void bt_close(ax_ctx *cx, bt_path *t, int from);

/* The key of a position that bt_descend() goes by, for that of an empty one may be NULL. */
static inline const uint8_t *
bt_some_key(const uint8_t *key, uint32_t len)
{
	return len ? key : (const uint8_t *) "";
}

/*
 * From the root to the leaf in which the position lies, as t says: pess, all, write.
 * The key is not NULL.
 *
 * Epoch: inside.
 * Latches: none on entry.  On AX_OK the guards of the path are open: samples, or,
 * pessimistically, latches of the last two pages (t->all: of all).  Under OptiQL a
 * leaf that is to be written is latched and shared.
 * Returns: AX_OK, t->n frames (0: the tree is empty); AX_STALE: start over; AX_BUSY.
 * Unless AX_OK nothing is held.
 */
extern ax_status bt_descend(ax_ctx *cx, ax_store *s, bt_path *t, const uint8_t *key,
							uint32_t len, bool after);
/* ---- a change ----
 *
 * As in a radix tree (rt_olc.h): a change is planned from what was validated, with all
 * that it needs made in private.  bt_begin() reserves retire records and latches,
 * top-down; then there are stores; bt_finish() lets go, and retires what went.
 */
typedef struct bt_change
{
	ax_site		site;
	bt_path    *t;
	int			n;
	int			nmade;
	struct
	{
		ax_guard   *g;			/* latched, top-down: */
		bt_page    *goes;		/* this goes with the change, NULL: it stays */
	}			at[3];
	struct
	{
		bt_page    *p;
		int			level;
		bool		built;		/* not only memory for one */
	}			made[3];
	bt_blob    *made_blob;
	bt_blob    *goes_blob;
} bt_change;

/* A page that goes, and its guard. */
typedef struct bt_gone
{
	ax_guard	g;
	bt_page    *p;
} bt_gone;

/*
 * More that goes with a change than bt_change has room for: compaction's.  The
 * arrays are the caller's, and so is what it made instead.
 */
typedef struct bt_more
{
	int			npages;
	int			nblobs;
	bt_gone    *pages;			/* latched behind those of the plan, in this order */
	bt_blob   **blobs;
} bt_more;

/* Latch what g guards; goes: it goes with the change, and this is it. */
static inline void
bt_plan(bt_change *ch, ax_guard *g, bt_page *goes)
{
	ch->at[ch->n].g = g;
	ch->at[ch->n++].goes = goes;
}

/*
 * Free what was made for a change and not used.
 *
 * Latches: none is given back.
 */
extern void bt_forget(ax_ctx *cx, ax_store *s, bt_change *ch);

/*
 * A change does not come about: let go of its plan and of the path, then free what was
 * made for it.
 *
 * Epoch: inside.
 * Returns: x.
 */
extern ax_status bt_give_up(ax_ctx *cx, ax_store *s, bt_change ch, ax_status x)
	__attribute__((cold));

/*
 * AX_OK: latched, the caller stores, and calls bt_finish().  Else nothing was done,
 * what was made is freed, and of the path nothing is held: AX_STALE, AX_BUSY.
 * more: NULL but for compaction, and known when this is compiled; for bt_finish(), too.
 *
 * Epoch: inside.
 * Latches: those of the plan and of more, write-latched on AX_OK; else none.
 */
__attribute__((always_inline)) static inline ax_status
bt_begin(ax_ctx *cx, ax_store *s, bt_change *ch, const bt_more *more)
{
	int			goes = ch->goes_blob != NULL;

	for (int i = 0; i < ch->n; i++)
		goes += ch->at[i].goes != NULL;
	if (more)
		goes += more->npages + more->nblobs;
	if (goes > 0 && ax_retire_reserve(cx, goes) != AX_OK)
		return bt_give_up(cx, s, *ch, AX_BUSY);
	for (int i = 0; i < ch->n; i++)
		if (!ax_guard_lock_at(cx, ch->at[i].g, ch->site))
			return bt_give_up(cx, s, *ch, AX_STALE);
	for (int i = 0; more && i < more->npages; i++)
		if (!ax_guard_lock(cx, &more->pages[i].g))
		{
			while (i > 0)
				ax_guard_close(cx, &more->pages[--i].g, false);
			return bt_give_up(cx, s, *ch, AX_STALE);
		}
	if (more)
		ax_elide_pass(cx);		/* latched, no section */
	return AX_OK;
}

/*
 * All is stored: let go, and retire what went.
 *
 * Latches: has those of the plan and of more; none of them on return.
 */
__attribute__((always_inline)) static inline void
bt_finish(ax_ctx *cx, ax_store *s, bt_change *ch, const bt_more *more)
{
	for (int i = 0; more && i < more->npages; i++)
		ax_guard_kill(cx, &more->pages[i].g);
	for (int i = ch->n - 1; i >= 0; i--)
	{
		if (ch->at[i].goes)
			ax_guard_kill(cx, ch->at[i].g);
		else
			ax_guard_close(cx, ch->at[i].g, true);
	}
	/* what is elided is over now */
	for (int i = 0; more && i < more->npages; i++)
		bt_retire(cx, s, more->pages[i].p);
	for (int i = 0; i < ch->n; i++)
		if (ch->at[i].goes)
			bt_retire(cx, s, ch->at[i].goes);
	if (ch->goes_blob)
		bt_blob_retire(cx, s, ch->goes_blob);
	for (int i = 0; more && i < more->nblobs; i++)
		bt_blob_retire(cx, s, more->blobs[i]);
}

/*
 * The bytes that all keys of a range below frame k's parent begin with: those that its
 * ends have in common, or else the page's.  lo, hi: the ends; NULL: not known, or none.
 * within: the range lies in that of frame k's page.
 *
 * Returns: where they are, in buf (BT_MAX_PLEN) or in a page; *plen.
 */
extern const uint8_t *bt_range_prefix(bt_path *t, int k, const bt_view *lo,
									  const bt_view *hi, bool within, uint8_t *buf,
									  uint32_t *plen);

/* Free memory for a page, which was (built) or was not yet made one. */
extern void bt_drop(ax_ctx *cx, ax_store *s, int level, bt_page *p, bool built);

/*
 * Memory for a page of this level, noted in the change.
 *
 * Epoch: inside.
 * Returns: false when there is none.
 */
extern bool bt_make(ax_ctx *cx, ax_store *s, bt_change *ch, int level, bool may_reserve);

/*
 * Point to page p in frame k's place, by one store; the word that guards the pointer
 * is latched.
 */
extern void bt_publish(ax_store *s, bt_path *t, int k, bt_page *p);

/* The engines' insert. */
extern ax_status bt_insert(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/*
 * The engines' insert_sorted.  Keys that follow the first into its leaf go in under
 * one latch.
 */
extern ax_status bt_insert_sorted(ax_ctx *cx, ax_store *s, const ax_keys *keys,
								  uint64_t *done, uint64_t *added);

/* ---- bt_remove.c ---- */

/* The engines' remove.  Needs no memory, but a record for a long key. */
extern ax_status bt_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/*
 * After a removal: merge pages that are nearly empty on the way to the key, from the
 * leaf upwards.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 * Note: no failure of anything if it cannot be done.
 */
extern void bt_tidy(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* ---- bt_compact.c ---- */

/* The engines' compact. */
extern ax_status bt_compact(ax_ctx *cx, ax_store *s, ax_compaction *c);

/* ---- bt_scan.c ---- */

/* The engines' contains. */
extern ax_status bt_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);

/* The engines' lookup. */
extern ax_status bt_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
						   ax_found *f);

/* The engines' lookup_many. */
extern ax_status bt_lookup_many(ax_ctx *cx, ax_store *s, const ax_keys *keys, ax_found *f,
								uint32_t *counts, uint32_t *done);

/*
 * The engines' look_ahead: asks for the pages of keys that are to be inserted.
 * Decides nothing.
 */
extern void bt_look_ahead(ax_ctx *cx, ax_store *s, const ax_keys *keys);

/* The engines' scan. */
extern ax_status bt_scan(ax_ctx *cx, ax_store *s, ax_batch *b);

/* ---- bt_bulk.c, bt_check.c ---- */

/*
 * The engines' load.
 *
 * Epoch: inside; now and then another one.  On AX_STALE outside.
 * Latches: the root's word for the publication.
 */
extern ax_status bt_load(ax_ctx *cx, ax_store *s, const ax_keys *keys, int fill);

/* The engines' check. */
extern ax_status bt_check(ax_ctx *cx, ax_store *s, ax_checking *c);

#endif							/* BT_TREE_H */
