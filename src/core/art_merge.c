/*
 * art_merge.c
 *	  Sorted keys into a tree that has some already: all that belong to one leaf
 *	  go in with one descent, one copy and one publication.
 *
 * This is what a build does with every run but the first.
 */
#include "art_olc.h"

#define MERGE_KEYS 96			/* new keys a leaf takes in one go */

/*
 * One descent for keys[0] and those that follow it into the same leaf.
 * *done: how many are in the tree now, *added: how many were not before.
 * *again: start over.  AX_OK with *done == 0 and !*again: the key wants the
 * ordinary insert (no leaf where it goes, or nothing follows it).
 */
static ax_status
merge_pass(ax_ctx *cx, ax_store *s, const uint8_t *const *keys, const uint32_t *lens,
		   uint32_t len, uint64_t n, bool *again, uint64_t *done, int *added)
{
	const uint8_t *key = keys[0];
	uint32_t	len0 = lens ? lens[0] : len;
	art_at		G = {.hdr = NULL},
				P = {.hdr = NULL};
	ax_guard	L;
	art_ref		ref;
	uint32_t	d;
	int			at,
				lo = 0,
				hi = 255,
				m,
				old,
				k = 0;
	ax_status	x;
	uint8_t		buf[ART_VAR_BYTES];
	art_ent		have[ART_LEAF_MAX];
	art_ent		e[ART_LEAF_MAX + MERGE_KEYS];
	art_piece	p[ART_LEAF_MAX + MERGE_KEYS];
	int			np;

	*again = false;
	*done = 0;
	*added = 0;
	x = ax_retire_reserve(cx, 4);
	if (x != AX_OK)
		return x;
	x = ax_guard_open(cx, &P.g, &s->root_word, false);
	if (x != AX_OK)
		return x;
	for (;;)
	{
		ax_guard	g;
		art_hdr    *h;
		uint32_t	mm;

		ref = art_slot_get(s, &P, key, &at);
		if (!ax_guard_valid(&P.g))
			goto over;
		if (!ART_IS_NODE(ref))
			break;
		h = ART_PTR(ref);
		d = P.hdr ? P.d + 1 : 0;
		art_prefetch_node(ref, key, len0, d);
		x = ax_guard_open(cx, &g, &h->word, false);
		if (x == AX_STALE)
			goto over;
		if (x != AX_OK)
			return x;
		if (!ax_guard_valid(&P.g))
			goto over;
		mm = art_match_prefix(h, key, len0, d);
		if (mm < h->plen)
			return AX_OK;
		G = P;
		P.g = g;
		P.hdr = h;
		P.d = d + mm;
	}
	if (ART_TAG(ref) != ART_LEAF)
		return AX_OK;

	/* the keys that go to this leaf: same path, byte within its range */
	d = P.hdr ? P.d : 0;
	art_prefetch_leaf(ref);
	if (P.hdr)
		art_node_range(P.hdr, key[d], &lo, &hi);
	if (!ax_guard_valid(&P.g))
		goto over;
	for (m = 1; (uint64_t) m < n && m < MERGE_KEYS; m++)
	{
		uint32_t	l = lens ? lens[m] : len;

		if (l <= d || memcmp(keys[m], key, d) != 0 || keys[m][d] < lo || keys[m][d] > hi)
			break;
	}
	if (m == 1)
		return AX_OK;

	x = ax_guard_open(cx, &L, &((art_leaf *) ART_PTR(ref))->word, false);
	if (x == AX_STALE)
		goto over;
	if (x != AX_OK)
		return x;
	if (!ax_guard_valid(&P.g))
		goto over;
	old = art_leaf_ents(ART_PTR(ref), have, buf);
	if (!ax_guard_valid(&L))
		goto over;
	art_sort_ents(have, old);

	/* merge; what is there already is not there twice */
	for (int i = 0, j = 0; i < old || j < m;)
	{
		art_ent		y;
		int			c;

		if (j < m)
		{
			uint32_t	l = lens ? lens[j] : len;

			y.p = keys[j] + d;
			y.len = l - d;
			y.fp = 0;
			if (i < old)
			{
				uint32_t	q = have[i].len < y.len ? have[i].len : y.len;

				c = memcmp(have[i].p, y.p, q);
			}
			else
				c = 1;
			if (c == 0)
			{
				j++;
				continue;
			}
			if (c > 0)
			{
				y.fp = art_fp(keys[j], l - AX_TID_BYTES);
				e[k++] = y;
				(*added)++;
				j++;
				continue;
			}
		}
		e[k++] = have[i++];
	}
	if (*added == 0)
	{
		*done = (uint64_t) m;
		return AX_OK;
	}

	if (P.hdr && e[0].p[0] != e[k - 1].p[0] && !art_leaf_fits(e, (uint64_t) k, 0))
	{
		int			leaves = (k + ART_LEAF_MAX - 4) / (ART_LEAF_MAX - 3);

		np = art_cut(cx, s, e, k, (k + leaves - 1) / leaves + 2, p);
	}
	else
		np = art_one_piece(cx, s, e, k, P.hdr != NULL, art_leaf_stepcap(k), ART_LEAF_MAX - 3, p);
	if (np == 0)
	{
		*added = 0;
		return AX_NOMEM;
	}
	x = art_publish(cx, s, key, &G, &P, &L, ref, p, np, 0, again);
	if (x == AX_OK && !*again)
		*done = (uint64_t) m;
	else
		*added = 0;
	return x;

over:
	*again = true;
	return AX_OK;
}

ax_status
art_insert_sorted(ax_ctx *cx, ax_store *s, const uint8_t *const *keys,
				  const uint32_t *lens, uint32_t len, uint64_t n,
				  uint64_t *done, uint64_t *added)
{
	uint64_t	ahead = 0;

	*done = *added = 0;
	for (int tries = 0; *done < n;)
	{
		uint64_t	one;
		int			new;
		bool		again;
		ax_status	x;

		/* sorted keys lie anywhere in memory */
		for (; ahead < n && ahead < *done + 2 * MERGE_KEYS; ahead++)
			ax_prefetch(keys[ahead]);
		x = merge_pass(cx, s, keys + *done, lens ? lens + *done : NULL, len,
					   n - *done, &again, &one, &new);

		if (x != AX_OK)
			return x;
		if (again && tries < AX_MAX_RESTARTS)
		{
			ax_restarted(cx, s, tries++);
			continue;
		}
		tries = 0;
		if (one > 0)
		{
			AX_COUNT(cx, s, entries, new);
			*added += (uint64_t) new;
			*done += one;
			continue;
		}
		x = ax_inner(s)->insert(cx, s, keys[*done], lens ? lens[*done] : len);
		if (x != AX_OK && x != AX_EXISTS)
			return x;
		*added += x == AX_OK;
		(*done)++;
	}
	return AX_OK;
}
