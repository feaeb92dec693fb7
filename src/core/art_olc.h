/*
 * art_olc.h
 *	  Guards: how one piece of code descends optimistically or, after too many
 *	  restarts, with latches.
 *
 * An optimistic guard is a sampled version; a held one is a latch.  valid()
 * and lock() are trivially true for a held guard, so the descent below is
 * written once.  Pessimistic descents latch top-down and wait (latch
 * coupling); optimistic writers only ever try, also top-down, and let
 * everything go when a try fails: so there is no cycle of waits.
 */
#ifndef ART_OLC_H
#define ART_OLC_H

#include "art_node.h"

/* Optimistic restarts before the pessimistic way. */
#ifndef ART_MAX_RESTARTS		/* tests force the latter */
#define ART_MAX_RESTARTS 24
#endif

typedef struct art_guard
{
	ax_word    *w;
	uint64_t	v;
	bool		held;
} art_guard;

/* AX_OK, AX_BUSY, or AX_STALE: the node is obsolete, start over. */
static inline ax_status
art_open(ax_ctx *cx, art_guard *g, ax_word *w, bool pess)
{
	g->w = w;
	g->held = false;
	if (ax_unlikely(pess))
	{
		ax_status	r = ax_word_lock(cx, w, &g->v);

		if (r == AX_OK)
			g->held = true;
		return r;
	}
	g->v = ax_word_read(w);
	if (ax_unlikely(g->v & (AX_LOCKED | AX_OBSOLETE)))
	{
		if (g->v & AX_LOCKED)
		{
			ax_status	r = ax_word_wait(cx, w, &g->v);

			if (r != AX_OK)
				return r;
		}
		if (g->v & AX_OBSOLETE)
			return AX_STALE;
	}
	return AX_OK;
}

static inline bool
art_valid(const art_guard *g)
{
	return g->held || ax_word_valid(g->w, g->v);
}

static inline bool
art_lock(ax_ctx *cx, art_guard *g)
{
	if (!g->held)
		g->held = ax_word_trylock(cx, g->w, g->v);
	return g->held;
}

/* Let go; changed: what readers saw is no more. */
static inline void
art_close(ax_ctx *cx, art_guard *g, bool changed)
{
	if (g->held)
	{
		ax_word_unlock(cx, g->w, changed);
		g->held = false;
	}
}

static inline void
art_kill(ax_ctx *cx, art_guard *g)
{
	ax_word_unlock_obsolete(cx, g->w);
	g->held = false;
}

/* Latch what is needed or let everything go; true when all are held. */
static inline bool
art_lock3(ax_ctx *cx, art_guard *a, art_guard *b, art_guard *c)
{
	if ((a && !art_lock(cx, a)) || (b && !art_lock(cx, b)) || (c && !art_lock(cx, c)))
	{
		if (a)
			art_close(cx, a, false);
		if (b)
			art_close(cx, b, false);
		if (c)
			art_close(cx, c, false);
		return false;
	}
	return true;
}

/*
 * A descent remembers the node that holds the slot (parent: P) and the node
 * above (G).  For the root pseudo-node hdr is NULL: its only slot is
 * store->root and consumes no byte.
 */
typedef struct art_at
{
	art_guard	g;
	art_hdr    *hdr;			/* NULL: the root pseudo-node */
	uint32_t	d;				/* depth of the byte it decides on */
} art_at;

static inline art_ref
art_slot_get(ax_store *s, art_at *p, const uint8_t *key, int *at)
{
	if (!p->hdr)
	{
		*at = 0;
		return ldref(&s->root);
	}
	return art_find(p->hdr, p->hdr->kind, key[p->d], at);
}

/* Replace what hangs where key goes at p (latched). */
static inline void
art_slot_set(ax_store *s, art_at *p, const uint8_t *key, art_ref r)
{
	if (!p->hdr)
		stref(&s->root, r);
	else
		art_node_set(p->hdr, key[p->d], r);
}

/* How far the key follows the node's prefix; plen when all of it. */
static inline uint32_t
art_match_prefix(art_hdr *h, const uint8_t *key, uint32_t len, uint32_t d)
{
	const uint8_t *p;
	uint32_t	n = h->plen,
				i = 0;

	if (n == 0)
		return 0;
	p = art_prefix(h);
	if (n > len - d)
		n = len - d;
	while (i + 8 <= n)
	{
		uint64_t	a,
					b;

		memcpy(&a, p + i, 8);
		memcpy(&b, key + d + i, 8);
		if (a != b)
			return i + (uint32_t) (__builtin_ctzll(a ^ b) >> 3);
		i += 8;
	}
	while (i < n && p[i] == key[d + i])
		i++;
	return i;
}

/* A bigger copy (private) takes over what its latched original holds. */
static inline void
art_fill_grown(art_hdr *h, art_hdr *grown)
{
	art_slot	slots[256];

	art_node_fill(grown, slots, art_node_slots_get(h, slots));
}

/* Publish the bigger copy of P's node below G, both latched. */
static inline void
art_publish_grown(ax_ctx *cx, ax_store *s, const uint8_t *key, art_at *G, art_at *P,
				  art_hdr *grown)
{
	art_slot_set(s, G, key, art_node_ref(grown));
	art_kill(cx, &P->g);
	art_close(cx, &G->g, true);
	art_node_retire(cx, s, P->hdr);
}

/* Count a restart and give the others a little time. */
static inline void
art_restarted(ax_ctx *cx, ax_store *s, int tries)
{
	AX_COUNT(cx, s, restarts, 1);
	if (tries == ART_MAX_RESTARTS - 1)
		AX_COUNT(cx, s, pessimistic, 1);
	if (tries > 2)
		for (int i = 0; i < (tries < 10 ? 1 << tries : 1024); i++)
			ax_pause();
}

static inline void
art_prefetch_leaf(art_ref r)
{
	char	   *p = ART_PTR(r);
	unsigned	n = (unsigned) (r >> 48) & 255;

	if (n > 8)
		n = 8;
	for (unsigned i = 0; i < n; i++)
		ax_prefetch(p + 64 * i);
}

/*
 * All lines of a node that the key (whose byte at depth d comes first in the
 * node's prefix) will touch, at once: the reference knows kind and prefix
 * length, so the child's line is known before the header has come in.
 */
static inline void
art_prefetch_node(art_ref r, const uint8_t *key, uint32_t len, uint32_t d)
{
	char	   *p = ART_PTR(r);
	uint8_t		c;

	ax_prefetch(p);
	d += ART_PLEN(r);
	c = d < len ? key[d] : 0;
	switch (ART_TAG(r))
	{
		case ART_N4:
			break;
		case ART_N16:
			ax_prefetch(p + 64);
			ax_prefetch(p + 128);
			break;
		case ART_N48:
			ax_prefetch(p + offsetof(art_n48, index) + c);
			break;
		default:
			ax_prefetch(p + offsetof(art_n256, child) + 8 * (size_t) c);
			break;
	}
}

/* ---- art_split.c ---- */

/* What takes the place of a leaf under its parent. */
typedef struct art_piece
{
	art_ref		r;
	uint8_t		lo;				/* first byte value */
} art_piece;

extern void art_sort_ents(art_ent *e, int n);
extern void art_drop_pieces(ax_ctx *cx, ax_store *s, art_piece *p, int np, art_ref kept);
extern int	art_one_piece(ax_ctx *cx, ax_store *s, const art_ent *e, int n, bool byte,
						  int fill, art_piece *p);
extern int	art_cut(ax_ctx *cx, ax_store *s, const art_ent *e, int n, int fill, art_piece *p);
extern ax_status art_publish(ax_ctx *cx, ax_store *s, const uint8_t *key, art_at *G,
							 art_at *P, art_guard *L, art_ref old, art_piece *p, int np,
							 art_ref kept, bool *again);

/* art_merge.c */
extern ax_status art_insert_sorted(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
								   const uint32_t *lens, uint32_t len, uint64_t n,
								   uint64_t *done, uint64_t *added);

/* art_remove.c, art_lookup.c, art_scan.c, art_bulk.c, art_check.c */
extern ax_status art_remove(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);
extern ax_status art_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len);
extern ax_status art_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
							uint64_t *tids, uint32_t max, uint32_t *n, bool *more);
extern ax_status art_scan(ax_ctx *cx, ax_store *s, ax_batch *b);
extern ax_status art_lookup_scan(ax_ctx *cx, ax_store *s, const uint8_t *prefix,
								 uint32_t len, uint64_t *tids, uint32_t max,
								 uint32_t *n, bool *more);
extern ax_status art_load(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
						  const uint32_t *lens, uint32_t len, uint64_t n, int fill);
extern ax_status art_check(ax_ctx *cx, ax_store *s, ax_tree_info *out, bool *ok,
						   char *msg, size_t msglen);

#endif							/* ART_OLC_H */
