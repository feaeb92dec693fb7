/*
 * rt_lookup.c
 *	  Point look-ups under optimistic latch coupling.
 */
#include "rt_olc.h"
#include "core/base/ax_call.h"

ax_status
rt_contains(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	uint8_t		fp = rt_fp(key, len - AX_TID_BYTES);

	for (int tries = 0;; tries++)
	{
		bool		pess = tries >= AX_MAX_RESTARTS;
		rt_at		P = {.hdr = NULL};
		ax_guard	N;
		ax_status	x;

		x = ax_guard_open(cx, &P.g, &s->root_word, pess);
		if (x != AX_OK)
			return x;
		for (;;)
		{
			int			at;
			rt_ref		ref = rt_slot_get(s, &P, key, &at);
			ax_word    *w;

			AX_POINT("art.contains.after_child_read");
			if (!ax_guard_valid(&P.g))
				break;
			if (ref == 0 || RT_TAG(ref) == RT_EMBED)
			{
				ax_guard_close(cx, &P.g, false);
				return ref && RT_EMBED_TID(ref) == ax_tid_at(key + len) ? AX_OK : AX_NOTFOUND;
			}
			w = RT_TAG(ref) == RT_LEAF ? &((rt_leaf *) RT_PTR(ref))->word :
				&((rt_hdr *) RT_PTR(ref))->word;
			if (RT_TAG(ref) == RT_LEAF)
				rt_prefetch_leaf(ref);
			x = ax_guard_open(cx, &N, w, pess);
			if (x == AX_BUSY)
			{
				ax_guard_close(cx, &P.g, false);
				return x;
			}
			if (x != AX_OK)
				break;
			AX_POINT("art.contains.after_child_version");
			if (!ax_guard_valid(&P.g))
			{
				ax_guard_close(cx, &N, false);
				break;
			}
			if (RT_TAG(ref) == RT_LEAF)
			{
				uint32_t	d = P.hdr ? P.d : 0;
				bool		there = rt_leaf_find(RT_PTR(ref), key + d, len - d, fp) >= 0;
				bool		ok;

				AX_POINT("art.contains.leaf_read");
				ok = ax_guard_valid(&N);
				ax_guard_close(cx, &N, false);
				if (!ok)
					break;
				ax_guard_close(cx, &P.g, false);
				return there ? AX_OK : AX_NOTFOUND;
			}
			else
			{
				rt_hdr    *h = RT_PTR(ref);
				uint32_t	d = P.hdr ? P.d + 1 : 0;
				bool		follows = rt_match_prefix(h, key, len, d) == h->plen;

				ax_guard_close(cx, &P.g, false);
				P.g = N;
				P.hdr = h;
				P.d = d + h->plen;
				if (!follows)
				{
					ax_guard_close(cx, &P.g, false);
					return AX_NOTFOUND;
				}
			}
		}
		ax_guard_close(cx, &P.g, false);
		ax_restarted(cx, s, tries);
	}
}

/* Read word w into v; what flags hold is looked at apart, so that v can be a register. */
#define SAMPLE(w, v) \
	do { \
		v = ax_word_read(w); \
		if (ax_unlikely(v & AX_FLAGS)) \
		{ \
			uint64_t	sample_ = v; \
			if ((x = ax_word_sample(cx, w, &sample_)) != AX_OK) \
				goto barred; \
			v = sample_; \
		} \
	} while (0)

/*
 * All TIDs of one encoded key.  While the descent is within the columns, one
 * leaf holds all of them (ranges are cut by bytes, and they share every byte).
 * Where it goes on into the TIDs, an ordered scan of the subtree does it.
 */
ax_status
rt_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len,
		  uint64_t *tids, uint32_t max, uint32_t *n, bool *more)
{
	*n = 0;
	*more = false;
	for (int tries = 0; tries < AX_MAX_RESTARTS; tries++)
	{
		ax_word    *w = &s->root_word;
		uint64_t	v;
		rt_ref		ref;
		uint32_t	d = 0;
		ax_status	x;

		SAMPLE(w, v);
		/* after the sample: beside a latch it may be what is taken back (ax_elide_soft.c) */
		ref = ldref(&s->root);
		for (;;)
		{
			uint64_t	nv;

			if (RT_IS_NODE(ref))
			{
				rt_hdr    *h = RT_PTR(ref);
				uint32_t	plen;

				AX_POINT("art.lookup.after_child_read");
				SAMPLE(&h->word, nv);
				AX_POINT("art.lookup.after_child_version");
				if (ax_unlikely(!ax_word_valid(w, v)))
					break;
				w = &h->word;
				v = nv;
				plen = rt_ref_plen(ref);
				if (plen)
				{
					uint32_t	m = rt_match(h, RT_TAG(ref), plen, prefix, len, d);

					if (m < plen && m < len - d)
						return AX_OK;	/* immutable and reached: not there */
					d += plen;
				}
				if (ax_unlikely(d >= len))
					goto scan;
				ref = rt_child(h, RT_TAG(ref), prefix[d]);
				if (RT_TAG(ref) == RT_LEAF)
					continue;
				if (ref == 0)
				{
					AX_POINT("art.lookup.absent");
					if (ax_unlikely(!ax_word_valid(w, v)))
						break;
					return AX_OK;
				}
				d++;
				if (RT_TAG(ref) == RT_EMBED)
				{
					if (ax_unlikely(!ax_word_valid(w, v)))
						break;
					if (ax_unlikely(d != len))
						goto scan;
					if (max == 0)
						*more = true;
					else
						tids[(*n)++] = RT_EMBED_TID(ref);
					return AX_OK;
				}
				continue;
			}
			if (ref == 0)
			{
				if (ax_unlikely(!ax_word_valid(w, v)))
					break;
				return AX_OK;
			}
			/* a leaf: suffixes from depth d on */
			{
				rt_leaf   *l = RT_PTR(ref);
				uint32_t	k;

				rt_prefetch_leaf(ref);
				AX_POINT("art.lookup.after_child_read");
				SAMPLE(&l->word, nv);
				AX_POINT("art.lookup.after_child_version");
				if (ax_unlikely(!ax_word_valid(w, v)))
					break;
				k = rt_leaf_tids(l, prefix + d, len - d, rt_fp(prefix, len), tids, max);
				AX_POINT("art.lookup.leaf_read");
				if (ax_unlikely(!ax_word_valid(&l->word, nv)))
					break;
				if (k > max)
					goto scan;	/* which are the first needs order */
				rt_sort_tids(tids, k);
				*n = k;
				return AX_OK;
			}
		}
		if (0)
		{
	barred:
			if (x != AX_STALE)
				return x;
		}
		ax_restarted(cx, s, tries);
	}

scan:
	return ax_lookup_scan(cx, s, prefix, len, tids, max, n, more);
}

