/*
 * bt_compact.c
 *	  Compaction of the B+-tree: neighbouring pages that are sparse are packed
 *	  into fewer, and pages in spans that are to become empty are copied.
 *
 * A pass goes over the tree level by level, from the parents of the leaves up,
 * and along a level from left to right.  A separator says where it is.  At each
 * page it takes some neighbouring children and distributes their keys over as few
 * pages as a build would make.  The page itself is copied with its new children,
 * and the copy published above it.
 *
 * The new pages are made from copies before anything is latched.  Then the page
 * above, the page, and the children that go are latched, top-down, each by one
 * try, at the versions of the copies.
 *
 * src/README.md: Compaction
 */
#include "bt_tree.h"

#define RUN			8			/* children that go at once */
#define VIEWS		(2 * BT_MAX_CAP + 4)
#define BLOBS		64			/* long keys that move at once */
#define CALL_PAGES	64
#define CALL_RUNS	48
#define TRIES		8

/* In the caller's memory. */
typedef struct work
{
	uint8_t		pos[BT_MAX_SIZE];
	uint8_t		next[BT_MAX_SIZE];	/* where the run behind begins */
	uint32_t	nlen;
	bool		known;			/* next is */
	bool		last;			/* there is none on this level */
	bool		apart;			/* what was to move does not fit with its neighbours */
	_Alignas(AX_LINE) uint8_t page[BT_MAX_SIZE];
	_Alignas(AX_LINE) uint8_t above[BT_MAX_SIZE];
	_Alignas(AX_LINE) uint8_t copy[RUN][BT_MAX_SIZE];
	bt_view		v[VIEWS];
	bt_page    *child[VIEWS + 2];
	bt_view		qv[BT_MAX_CAP + RUN];
	bt_page    *qc[BT_MAX_CAP + RUN + 2];
	uint8_t		sep[RUN][BT_MAX_SIZE / 4];
	struct
	{
		bt_blob    *old;
		bt_blob    *made;
	}			blob[BLOBS];
	int			nblobs;
} work;

_Static_assert(sizeof(work) + AX_LINE <= AX_COMPACT_WORK, "a compaction's memory is too small");

static inline work *
work_of(const ax_compaction *c)
{
	return (work *) (((uintptr_t) c->work + AX_LINE - 1) & ~(uintptr_t) (AX_LINE - 1));
}

/* A long key that is to move goes elsewhere.  False: no memory. */
static bool
move_blob(ax_ctx *cx, ax_store *s, work *w, bt_view *v)
{
	bt_blob    *b;

	if (!v->blob || w->nblobs == BLOBS || !ax_draining(cx, s, v->blob))
		return true;
	b = bt_blob_new(cx, s, v->blob->bytes, v->blob->len);
	if (!b)
		return false;
	w->blob[w->nblobs].old = v->blob;
	w->blob[w->nblobs++].made = b;
	bt_key_view(b->bytes, b->len, b, v);
	return true;
}

/* Bytes that an entry takes, about, in a page with such a prefix. */
static inline uint32_t
weight(const bt_view *v, uint32_t plen)
{
	uint32_t	len = bt_len(v);

	return v->blob ? 24 : (len > plen ? len - plen : 0) + 12;
}

/*
 * Bytes that n entries take, about, if the beginning that the first and the last
 * have in common is stored once.  "used" if they are of several lengths.
 */
static uint64_t
need(const bt_view *v, int n, uint32_t size, uint64_t used)
{
	uint32_t	len = bt_len(&v[0]);
	uint32_t	plen = bt_common(&v[0], &v[n - 1]);
	uint64_t	bytes;

	if (plen > BT_MAX_PLEN)
		plen = BT_MAX_PLEN;
	if (plen > size / 8)
		plen = size / 8;
	for (int i = 0; i < n; i++)
		if (v[i].blob || bt_len(&v[i]) != len || len < plen + 8)
			return used;
	bytes = (uint64_t) n * (len - plen);
	return bytes < used ? bytes : used;
}

/*
 * Where child "last" of the page of frame k ends.  The page says it, whose copy is
 * w->page, or the lowest one above it that knows.  To w->next.
 */
static ax_status
find_next(work *w, const bt_path *t, int k, int last)
{
	const bt_page *p = (const bt_page *) (const void *) w->page;

	w->known = true;
	w->last = false;
	for (;; k--)
	{
		if (last < bt_count(p))
		{
			bt_view		sep;

			bt_get(p, last, &sep);
			w->nlen = bt_len(&sep);
			/* too long to be kept: the rest of the level is left as it is */
			w->last = w->nlen > sizeof(w->next);
			if (!w->last)
				bt_view_bytes(&sep, 0, w->nlen, w->next);
			return AX_OK;
		}
		if (k == 0)
			break;
		ax_copy_out(w->above, (const uint8_t *) t->f[k - 1].p, t->f[k - 1].p->size);
		if (!ax_guard_valid(&t->f[k - 1].g))
		{
			w->known = false;
			return AX_STALE;
		}
		p = (const bt_page *) (const void *) w->above;
		last = t->f[k - 1].i;
	}
	w->last = true;
	return AX_OK;
}

/* Note where the pass goes on: behind this page, or on the next level. */
static void
advance(work *w, ax_compaction *c)
{
	if (w->last)
	{
		c->level++;
		c->len = 0;
	}
	else
	{
		memcpy(w->pos, w->next, w->nlen);
		c->len = w->nlen;
	}
}

/*
 * One run of at most "most" children of the page of frame k.  *objs: pages replaced.
 * w->page is the page's copy; w->next is found on the way.
 *
 * Latches: none on entry and on return; takes the page above, the page and the
 * children that go, by one try each.
 */
static ax_status
run(ax_ctx *cx, ax_store *s, work *w, bt_path *t, int k, int most, int *objs)
{
	bt_page    *q = t->f[k].p;
	const bt_page *up = (const bt_page *) (const void *) w->page;
	const int	first = t->f[k].i;
	const int	level = q->level - 1;
	const uint32_t size = bt_page_size(s, level);
	ax_guard	g[RUN];
	bt_page    *old[RUN];
	bt_page    *made[RUN + 1] = {NULL};
	bt_page    *copy = NULL;
	bt_view		sep[RUN + 1];
	bt_blob    *gone[RUN];
	int			ngone = 0,
				nsep = 0,
				r = 0,
				m,
				n = 0,
				nc = 0,
				held = 0,
				count,
				last,
				built = 0;
	uint64_t	used = 0,
				total = 0;
	bool		must = false,
				fits = true,
				copy_built = false;
	ax_status	x = AX_STALE;

	*objs = 0;
	w->known = w->apart = false;
	w->nblobs = 0;
	ax_copy_out(w->page, (const uint8_t *) q, q->size);
	AX_POINT("bt.compact.copied");
	if (!ax_guard_valid(&t->f[k].g))
		return AX_STALE;
	count = bt_count(up);

	for (; r < most && first + r <= count; r++)
	{
		bt_page    *p = bt_ref(&bt_children(up)[first + r]);
		const bt_page *have = (const bt_page *) (const void *) w->copy[r];
		int			have_n;

		x = ax_guard_open(cx, &g[r], &p->word, false);
		if (x != AX_OK)
			return x;
		if (!ax_guard_valid(&t->f[k].g))
			return AX_STALE;
		ax_copy_out(w->copy[r], (const uint8_t *) p, p->size);
		AX_POINT("bt.compact.child_copied");
		if (!ax_guard_valid(&g[r]))
			return AX_STALE;
		have_n = bt_count(have);
		if (r > 0 && n + have_n + 1 > VIEWS)
			break;
		old[r] = p;
		if (r > 0)
		{
			bt_view		between;

			bt_get(up, first + r - 1, &between);
			if (level)
				w->v[n++] = between;
			else if (between.blob)
				gone[ngone++] = between.blob;
		}
		for (int i = 0; i < have_n; i++)
			bt_get(have, i, &w->v[n++]);
		for (int i = 0; level && i <= have_n; i++)
			w->child[nc++] = bt_ref(&bt_children(have)[i]);
		used += bt_used(have);
		must |= ax_draining(cx, s, p);
	}
	last = first + r - 1;
	x = find_next(w, t, k, last);
	if (x != AX_OK)
		return x;
	for (int i = 0; i < n && !must; i++)
		must = w->v[i].blob && ax_draining(cx, s, w->v[i].blob);

	/* neighbours may begin with more in common than their layouts use */
	if (n > 0 && level == 0)
		used = need(w->v, n, size, used);

	/* in how many pages, a tenth of each left free? */
	total = (size - BT_HEAD) / 10 * 9;
	m = (int) ((used + total - 1) / total);
	if (m < 1)
		m = 1;
	if (n == 0 || (m >= r && !must))
		return AX_OK;
	if (m > r)
		m = r;

	for (int i = 0; i < n; i++)
		if (!move_blob(cx, s, w, &w->v[i]))
			goto full;
	total = 0;
	for (int i = 0; i < n; i++)
		total += weight(&w->v[i], up->plen);

	/* where lengths differ much, what is moved may take a page more */
	for (; m <= r + must; m++)
	{
		uint8_t		pbuf[BT_MAX_PLEN];
		bt_view		lo,
					hi;
		uint64_t	sum = 0;
		int			at = 0;

		if (m == r && !must)
			break;
		fits = true;
		for (int j = 0; j < m && fits; j++)
		{
			const bool	more = j + 1 < m;
			bool		has_lo = j > 0 || first > 0,
						has_hi = more || last < count;
			const uint8_t *prefix;
			uint32_t	plen;
			int			end = at;

			while (end < n && (!more || sum * (uint64_t) m < total * (uint64_t) (j + 1)))
				sum += weight(&w->v[end++], up->plen);
			/* each has something, and an inner one's end goes up */
			if (end == at || (more && end >= n - (level > 0)))
			{
				fits = false;
				break;
			}
			if (j > 0)
				lo = sep[nsep - 1];
			else if (has_lo)
				bt_get(up, first - 1, &lo);
			if (more)
			{
				if (level)
					sep[nsep] = w->v[end];
				else if (!bt_separator(cx, s, &w->v[end - 1], &w->v[end], w->sep[nsep], &sep[nsep]))
					goto full;
				hi = sep[nsep++];
			}
			else if (has_hi)
				bt_get(up, last, &hi);
			prefix = bt_range_prefix(t, k + 1, &lo, has_lo, &hi, has_hi, false, pbuf, &plen);
			if (!bt_fits(size, level > 0, w->v + at, end - at, plen))
			{
				fits = false;
				break;
			}
			if ((made[j] = bt_alloc(cx, s, level, true)) == NULL)
				goto full;
			bt_build(cx, s, made[j], level, w->v + at, end - at, w->child + at, prefix, plen);
			built = j + 1;
			at = end + (more && level);
		}
		if (fits)
			break;
		while (built > 0)
			bt_unbuild(cx, s, made[--built]);
		for (; nsep > 0; nsep--)
			if (!level && sep[nsep - 1].blob)
				bt_blob_free(cx, s, sep[nsep - 1].blob);
	}
	if (built == 0)
	{
		w->apart = must && r > 1;
		goto full;
	}

	/* the page with these children */
	n = nc = 0;
	for (int i = 0; i < first; i++)
	{
		bt_get(up, i, &w->qv[n++]);
		w->qc[nc++] = bt_ref(&bt_children(up)[i]);
	}
	for (int j = 0; j < m; j++)
	{
		w->qc[nc++] = made[j];
		if (j < nsep)
			w->qv[n++] = sep[j];
	}
	for (int i = last; i < count; i++)
	{
		bt_get(up, i, &w->qv[n++]);
		w->qc[nc++] = bt_ref(&bt_children(up)[i + 1]);
	}
	if (!bt_fits(up->size, true, w->qv, n, up->plen) ||
		(copy = bt_alloc(cx, s, level + 1, true)) == NULL)
		goto full;
	bt_build(cx, s, copy, level + 1, w->qv, n, w->qc, bt_prefix(up), up->plen);
	copy_built = true;
	x = ax_retire_reserve(cx, r + 1 + ngone + w->nblobs);
	if (x != AX_OK)
		goto out;

	AX_POINT("bt.compact.before_lock");
	x = AX_STALE;
	if (!ax_guard_lock(cx, bt_above(t, k)) || !ax_guard_lock(cx, &t->f[k].g))
		goto out;
	while (held < r && ax_guard_lock(cx, &g[held]))
		held++;
	if (held < r)
		goto out;
	ax_elide_pass(cx);			/* latched, no section */
	bt_publish(s, t, k, copy);
	AX_POINT("bt.compact.published");
	for (int i = 0; i < r; i++)
		ax_guard_kill(cx, &g[i]);
	ax_guard_kill(cx, &t->f[k].g);
	ax_guard_close(cx, bt_above(t, k), true);
	for (int i = 0; i < r; i++)
		bt_retire(cx, s, old[i]);
	bt_retire(cx, s, q);
	for (int i = 0; i < ngone; i++)
		bt_blob_retire(cx, s, gone[i]);
	for (int i = 0; i < w->nblobs; i++)
		bt_blob_retire(cx, s, w->blob[i].old);
	*objs = r + 1;
	return AX_OK;

full:
	x = AX_OK;
out:
	for (int i = 0; i < held; i++)
		ax_guard_close(cx, &g[i], false);
	bt_close(cx, t, -1);
	while (built > 0)
		bt_unbuild(cx, s, made[--built]);
	for (int i = 0; i < nsep && !level; i++)
		if (sep[i].blob)
			bt_blob_free(cx, s, sep[i].blob);
	for (int i = 0; i < w->nblobs; i++)
		bt_blob_free(cx, s, w->blob[i].made);
	if (copy)
		bt_drop(cx, s, level + 1, copy, copy_built);
	return x;
}

/*
 * See bt_tree.h, ax_compact.
 *
 * Epoch: inside.
 * Latches: none on entry and on return.
 */
ax_status
bt_compact(ax_ctx *cx, ax_store *s, ax_compaction *c)
{
	work	   *w = work_of(c);
	bt_path		t;
	int			objs = 0,
				tries = 0,
				most = RUN;

	if (!c->started)
	{
		c->level = 1;
		c->len = 0;
		c->started = true;
	}
	t.pess = t.all = t.write = false;
	for (int runs = 0; runs < CALL_RUNS && objs < CALL_PAGES; runs++)
	{
		int			did = 0,
					k;
		bool		skip = false;
		ax_status	x = bt_descend(cx, s, &t, w->pos, c->len, false);

		w->known = false;
		if (x == AX_OK)
		{
			k = t.n - 1 - c->level;
			if (k < 0)
			{
				c->done = true;
				break;
			}
			x = run(cx, s, w, &t, k, most, &did);
			bt_close(cx, &t, -1);
			objs += did;
			c->moved += (uint64_t) did;
		}
		if (x == AX_BUSY)
			return x;
		if (x == AX_STALE)
		{
			ax_restarted(cx, s, tries++);
			/* somebody works here all the time: left to the next pass */
			skip = tries >= TRIES && w->known;
			if (tries >= TRIES && !skip)
				return AX_BUSY;
		}
		/* by itself, between the same separators, a page fits again */
		if (x == AX_OK && w->apart)
			most = 1;
		else if (x == AX_OK || skip)
		{
			tries = 0;
			most = RUN;
			if (did)
				bt_tidy(cx, s, w->pos, c->len);
			advance(w, c);
		}
		ax_map_unshare_all();
	}
	return AX_OK;
}
