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
 * src/core/btree/README.md: Compaction
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
	bool		must;			/* something of the run is to leave its span */
	_Alignas(AX_LINE) uint8_t page[BT_MAX_SIZE];
	_Alignas(AX_LINE) uint8_t above[BT_MAX_SIZE];
	_Alignas(AX_LINE) uint8_t copy[RUN][BT_MAX_SIZE];
	/* the children that go: so many, from this place in the page on */
	int			first;
	int			r;
	bt_gone		gone[RUN];
	uint64_t	used;			/* bytes in them */
	/* .. their entries, and what an inner one has below it */
	int			n;
	int			nc;
	bt_view		v[VIEWS];
	bt_page    *child[VIEWS + 2];
	/* what takes their place, and what is between two of these */
	int			nmade;
	int			nsep;
	bt_page    *made[RUN + 1];
	bt_view		sep[RUN];
	uint8_t		sepbuf[RUN][BT_MAX_SIZE / 4];
	int			at;				/* the first entry that is not in one yet */
	uint64_t	sum;			/* the weight of those before it, */
	uint64_t	total;			/* and of all */
	/* the page's new entries */
	bt_view		qv[BT_MAX_CAP + RUN];
	bt_page    *qc[BT_MAX_CAP + RUN + 2];
	/* long keys that go, and copies of those that move */
	int			ngoes;
	int			nmoved;
	bt_blob    *goes[RUN + BLOBS];
	bt_blob    *moved[BLOBS];
} work;

_Static_assert(sizeof(work) + AX_LINE <= AX_COMPACT_WORK, "a compaction's memory is too small");

static inline work *
work_of(const ax_compaction *c)
{
	return (work *) (((uintptr_t) c->work + AX_LINE - 1) & ~(uintptr_t) (AX_LINE - 1));
}

/* The page above the run, as it was copied. */
static inline const bt_page *
run_parent(const work *w)
{
	return (const bt_page *) (const void *) w->page;
}

/* Bytes that an entry takes, about, in a page with such a prefix. */
static inline uint32_t
entry_bytes(const bt_view *v, uint32_t plen)
{
	uint32_t	len = bt_len(v);

	return v->blob ? 24 : (len > plen ? len - plen : 0) + 12;
}

/*
 * Bytes that n entries take, about, if the beginning that the first and the last
 * have in common is stored once.  "used" if they are of several lengths.
 */
static uint64_t
entries_bytes(const bt_view *v, int n, uint32_t size, uint64_t used)
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
	const bt_page *p = run_parent(w);

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
advance_pass(work *w, ax_compaction *c)
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

/* ---- reading a run ---- */

/*
 * Copy the run's next child, p, and add its entries to w.  AX_NOTFOUND: there is no
 * room for them.  AX_STALE, AX_BUSY.
 *
 * Latches: none; above is the guard of the page.
 */
static ax_status
read_child(ax_ctx *cx, ax_store *s, work *w, const ax_guard *above, bt_page *p)
{
	const bt_page *have = (const bt_page *) (const void *) w->copy[w->r];
	bt_gone    *gone = &w->gone[w->r];
	ax_status	x = ax_guard_open(cx, &gone->g, &p->word, false);
	int			n;

	if (x != AX_OK)
		return x;
	if (!ax_guard_valid(above))
		return AX_STALE;
	ax_copy_out(w->copy[w->r], (const uint8_t *) p, p->size);
	AX_POINT("bt.compact.child_copied");
	if (!ax_guard_valid(&gone->g))
		return AX_STALE;
	n = bt_count(have);
	if (w->r > 0 && w->n + n + 1 > VIEWS)
		return AX_NOTFOUND;
	gone->p = p;
	if (w->r > 0)
	{
		bt_view		between;

		bt_get(run_parent(w), w->first + w->r - 1, &between);
		if (have->level)
			w->v[w->n++] = between;
		else if (between.blob)
			w->goes[w->ngoes++] = between.blob;
	}
	for (int i = 0; i < n; i++)
		bt_get(have, i, &w->v[w->n++]);
	for (int i = 0; have->level && i <= n; i++)
		w->child[w->nc++] = bt_ref(&bt_children(have)[i]);
	w->used += bt_used(have);
	w->must |= ax_draining(cx, s, p);
	w->r++;
	return AX_OK;
}

/*
 * Copy the page of frame k, and at most "most" of its children.  AX_STALE, AX_BUSY.
 *
 * Latches: none.
 */
static ax_status
read_run(ax_ctx *cx, ax_store *s, work *w, const bt_path *t, int k, int most)
{
	const bt_page *up = run_parent(w);
	const ax_guard *above = &t->f[k].g;
	ax_status	x = AX_OK;

	w->known = w->apart = w->must = false;
	w->r = w->n = w->nc = w->nmade = w->nsep = w->ngoes = w->nmoved = 0;
	w->used = 0;
	w->first = t->f[k].i;
	ax_copy_out(w->page, (const uint8_t *) t->f[k].p, t->f[k].p->size);
	AX_POINT("bt.compact.copied");
	if (!ax_guard_valid(above))
		return AX_STALE;
	while (x == AX_OK && w->r < most && w->first + w->r <= bt_count(up))
		x = read_child(cx, s, w, above, bt_ref(&bt_children(up)[w->first + w->r]));
	return x == AX_NOTFOUND ? AX_OK : x;
}

/*
 * How many pages the run's entries take, a tenth of each left free.  0: the run
 * stays as it is.
 */
static int
pages_needed(ax_ctx *cx, ax_store *s, work *w, int level)
{
	const uint32_t size = bt_page_size(s, level);
	const uint64_t room = (size - BT_HEAD) / 10 * 9;
	int			m;

	for (int i = 0; i < w->n && !w->must; i++)
		w->must = w->v[i].blob && ax_draining(cx, s, w->v[i].blob);
	/* neighbours may begin with more in common than their layouts use */
	if (w->n > 0 && level == 0)
		w->used = entries_bytes(w->v, w->n, size, w->used);
	m = (int) ((w->used + room - 1) / room);
	if (m < 1)
		m = 1;
	if (w->n == 0 || (m >= w->r && !w->must))
		return 0;
	return m < w->r ? m : w->r;
}

/* ---- making what takes its place ---- */

/* Long keys that are to move go elsewhere, so many as there is room for.  False: no memory. */
static bool
move_run_blobs(ax_ctx *cx, ax_store *s, work *w)
{
	for (int i = 0; i < w->n && w->nmoved < BLOBS; i++)
	{
		bt_blob    *old = w->v[i].blob,
				   *b;

		if (!old || !ax_draining(cx, s, old))
			continue;
		b = bt_blob_new(cx, s, old->bytes, old->len);
		if (!b)
			return false;
		w->goes[w->ngoes++] = old;
		w->moved[w->nmoved++] = b;
		bt_key_view(b->bytes, b->len, b, &w->v[i]);
	}
	return true;
}

/* Give up the pages that were made, and the long separators of leaves. */
static void
drop_pages(ax_ctx *cx, ax_store *s, work *w, int level)
{
	while (w->nmade > 0)
		bt_unbuild(cx, s, w->made[--w->nmade]);
	while (w->nsep > 0)
		if (w->sep[--w->nsep].blob && level == 0)
			bt_blob_free(cx, s, w->sep[w->nsep].blob);
}

/*
 * Make the next of m pages, with its share of the entries, and the separator behind it.
 * AX_NOTFOUND: they do not fit.  AX_NOMEM.
 */
static ax_status
make_run_page(ax_ctx *cx, ax_store *s, work *w, bt_path *t, int k, int m)
{
	const bt_page *up = run_parent(w);
	const int	level = up->level - 1;
	const int	j = w->nmade,
				at = w->at;
	const bool	more = j + 1 < m;
	uint8_t		buf[BT_MAX_PLEN];
	bt_contents of = {.level = level,.v = w->v + at,.child = w->child + at};
	bt_view		ends[2];
	const bt_view *lo = NULL,
			   *hi = NULL;
	bt_page    *p;
	int			end = at;

	while (end < w->n && (!more || w->sum * (uint64_t) m < w->total * (uint64_t) (j + 1)))
		w->sum += entry_bytes(&w->v[end++], up->plen);
	/* each has something, and an inner one's end goes up */
	if (end == at || (more && end >= w->n - (level > 0)))
		return AX_NOTFOUND;
	if (j > 0)
		lo = &w->sep[w->nsep - 1];
	else if (w->first > 0)
	{
		bt_get(up, w->first - 1, &ends[0]);
		lo = &ends[0];
	}
	if (more)
	{
		bt_view    *sep = &w->sep[w->nsep];

		if (level)
			*sep = w->v[end];
		else if (!bt_separator(cx, s, &w->v[end - 1], &w->v[end], w->sepbuf[w->nsep], sep))
			return AX_NOMEM;
		hi = sep;
		w->nsep++;
	}
	else if (w->first + w->r <= bt_count(up))
	{
		bt_get(up, w->first + w->r - 1, &ends[1]);
		hi = &ends[1];
	}
	of.n = end - at;
	of.prefix = bt_range_prefix(t, k + 1, lo, hi, false, buf, &of.plen);
	if (!bt_fits(bt_page_size(s, level), level > 0, of.v, of.n, of.plen))
		return AX_NOTFOUND;
	p = bt_alloc(cx, s, level, true);
	if (!p)
		return AX_NOMEM;
	bt_build(cx, s, p, &of);
	w->made[w->nmade++] = p;
	w->at = end + (more && level);
	return AX_OK;
}

/*
 * Distribute the run's entries over m pages, or the fewest above that which do.  False:
 * they do not fit, w->apart if they might one by one, or there is no memory.
 */
static bool
make_pages(ax_ctx *cx, ax_store *s, work *w, bt_path *t, int k, int m)
{
	const bt_page *up = run_parent(w);

	w->total = 0;
	for (int i = 0; i < w->n; i++)
		w->total += entry_bytes(&w->v[i], up->plen);
	/* where lengths differ much, what is moved may take a page more */
	for (; m < w->r || (w->must && m <= w->r + 1); m++)
	{
		ax_status	x = AX_OK;

		w->at = 0;
		w->sum = 0;
		while (x == AX_OK && w->nmade < m)
			x = make_run_page(cx, s, w, t, k, m);
		if (x == AX_OK)
			return true;
		drop_pages(cx, s, w, up->level - 1);
		if (x == AX_NOMEM)
			return false;
	}
	w->apart = w->must && w->r > 1;
	return false;
}

/* Make the page with these children.  NULL: they do not fit, or there is no memory. */
static bt_page *
make_above(ax_ctx *cx, ax_store *s, work *w, bt_change *ch)
{
	const bt_page *up = run_parent(w);
	bt_contents of = {up->level, 0, w->qv, w->qc, bt_prefix(up), up->plen, 0};
	int			n = 0,
				nc = 0;
	bt_page    *p;

	for (int i = 0; i < w->first; i++)
	{
		bt_get(up, i, &w->qv[n++]);
		w->qc[nc++] = bt_ref(&bt_children(up)[i]);
	}
	for (int j = 0; j < w->nmade; j++)
	{
		w->qc[nc++] = w->made[j];
		if (j < w->nsep)
			w->qv[n++] = w->sep[j];
	}
	for (int i = w->first + w->r - 1; i < bt_count(up); i++)
	{
		bt_get(up, i, &w->qv[n++]);
		w->qc[nc++] = bt_ref(&bt_children(up)[i + 1]);
	}
	if (!bt_fits(up->size, true, w->qv, n, up->plen) || !bt_make(cx, s, ch, up->level, true))
		return NULL;
	p = ch->made[0].p;
	of.n = n;
	bt_build(cx, s, p, &of);
	ch->made[0].built = true;
	return p;
}

/* ---- one run ---- */

/*
 * One run of at most "most" children of the page of frame k.  *objs: pages replaced.
 * w->page is the page's copy; w->next is found on the way.  AX_STALE, AX_BUSY.
 *
 * Latches: none on entry and on return; takes the page above, the page and the
 * children that go, by one try each.
 */
static ax_status
compact_run(ax_ctx *cx, ax_store *s, work *w, bt_path *t, int k, int most, int *objs)
{
	const int	level = t->f[k].p->level - 1;
	bt_change	ch = {.site = AX_SITES, .t = t};
	bt_more		more;
	bt_page    *p = NULL;
	ax_status	x = read_run(cx, s, w, t, k, most);
	int			m;

	*objs = 0;
	if (x == AX_OK)
		x = find_next(w, t, k, w->first + w->r - 1);
	if (x != AX_OK || (m = pages_needed(cx, s, w, level)) == 0)
		return x;
	if (move_run_blobs(cx, s, w) && make_pages(cx, s, w, t, k, m))
		p = make_above(cx, s, w, &ch);
	if (p)
	{
		more = (bt_more) {w->r, w->ngoes, w->gone, w->goes};
		bt_plan(&ch, bt_above(t, k), NULL);
		bt_plan(&ch, &t->f[k].g, t->f[k].p);
		AX_POINT("bt.compact.before_lock");
		x = bt_begin(cx, s, &ch, &more);
	}
	if (!p || x != AX_OK)
	{
		/* without p the run is left as it is */
		drop_pages(cx, s, w, level);
		while (w->nmoved > 0)
			bt_blob_free(cx, s, w->moved[--w->nmoved]);
		return x;
	}
	/* all is as it was when it was copied */
	bt_publish(s, t, k, p);
	AX_POINT("bt.compact.published");
	bt_finish(cx, s, &ch, &more);
	*objs = w->r + 1;
	return AX_OK;
}

/*
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
			x = compact_run(cx, s, w, &t, k, most, &did);
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
			advance_pass(w, c);
		}
		ax_map_unshare_all();
	}
	return AX_OK;
}
