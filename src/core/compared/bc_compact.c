/*
 * bc_compact.c
 *	  Compaction of a tree whose order only the caller knows.
 *
 * Neighbouring pages that are sparse are packed into fewer, and pages in spans that
 * are to become empty are copied.  Neither needs an order.
 *
 * A pass goes over the tree level by level, from the parents of the leaves up, by a
 * walk (bc_walk.c).  At each page it takes some neighbouring children, and puts
 * their entries into as few pages as a load would make.  The page itself is stored
 * with what it then has.  Where a run was packed, the next one begins with its last page.
 * When pages above leaves were packed, there are new neighbours, and the pass goes
 * over the leaves once more.
 *
 * The new pages are made from copies before anything is latched.  Then the page above
 * and the children that go are latched, top-down, each by one try, at the versions of
 * the copies.  Somebody's turn (bc_tree.c) is waited for outside.
 *
 * src/core/compared/README.md: Keys that are compared
 * src/core/compared/README.md: Compaction
 */
#include "core/base/ax_area.h"
#include "bc_page.h"

#define RUN			8			/* children that go at once */
#define BLOBS		64			/* long keys that move at once */
#define CALL_PAGES	64
#define CALL_STEPS	48
#define SWEEPS		4
#define TRIES		8

/* In the caller's memory. */
typedef struct work
{
	ax_ctx	   *cx;
	ax_store   *s;
	uint32_t	size;
	ax_walk		walk;
	int			sweeps;
	int			tries;			/* of the run that is next */
	bool		again;			/* pages above leaves were packed in this sweep */
	_Alignas(8) uint8_t up[BC_MAX];	/* the page above, */
	_Alignas(8) uint8_t above[BC_MAX];	/* and as it is to be */
	_Alignas(8) uint8_t copy[RUN][BC_MAX];	/* children */
	_Alignas(8) uint8_t made[RUN][BC_MAX];	/* what comes in their place */
	ax_guard	g[RUN];
	bc_page    *old[RUN];
	bc_page    *new[RUN];
	bc_entry	sep[RUN];		/* what made[i] begins with, i > 0 */
	int			ngone;
	bt_blob    *gone[BLOBS + RUN];	/* to be retired, */
	int			nblobs;
	bt_blob    *blob[BLOBS + RUN];	/* made in their place, and for what begins a page */
} work;

_Static_assert(sizeof(work) <= AX_COMPACT_WORK, "a compaction's memory is too small");

/* A long key that is to move goes elsewhere.  False: no memory. */
static bool
move_blob(work *w, bc_entry *e)
{
	bt_blob    *b;

	/* fill_pages() adds fewer than RUN to each list */
	if (!e->blob || w->nblobs >= BLOBS || !ax_draining(w->cx, w->s, e->blob))
		return true;
	b = bt_blob_new(w->cx, w->s, e->blob->bytes, e->blob->len);
	if (!b)
		return false;
	w->gone[w->ngone++] = e->blob;
	w->blob[w->nblobs++] = e->blob = b;
	return true;
}

/* Lies a page, or a long key that it has, in a span that is to become empty? */
static bool
must_move(work *w, const bc_page *p, const uint8_t *image)
{
	if (ax_draining(w->cx, w->s, p))
		return true;
	for (uint32_t i = 0; i < ((const ax_image *) (const void *) image)->n; i++)
	{
		bc_entry	e;

		bc_get(image, i, &e);
		if (e.blob && ax_draining(w->cx, w->s, e.blob))
			return true;
	}
	return false;
}

static void
undo_pages(work *w, int made)
{
	while (made > 0)
		bc_unalloc(w->cx, w->s, w->new[--made]);
	while (w->nblobs > 0)
		bt_blob_free(w->cx, w->s, w->blob[--w->nblobs]);
	w->ngone = 0;
}

/*
 * Put the entries of r copies, from w->copy[from] on, into pages of "room" bytes, at
 * most so many.  The copies are children of w->up, from number first + from on.
 * Returns how many pages, whose images are in w->made; 0: more, or no memory.
 */
static int
fill_pages(work *w, uint32_t first, int from, int r, uint32_t room, int most)
{
	const int	level = bc_img(w->copy[from])->level;
	int			m = 0;

	w->ngone = w->nblobs = 0;
	bc_clear(w->made[0], w->size, level);
	for (int k = 0; k < r; k++)
	{
		const uint8_t *image = w->copy[from + k];
		bc_entry	between;

		if (k > 0)
			bc_get(w->up, first + (uint32_t) (from + k), &between);
		/* the key between two leaves goes: what begins a page is said anew */
		if (k > 0 && level == 0 && between.blob)
			w->gone[w->ngone++] = between.blob;
		for (uint32_t i = 0; i < ((const ax_image *) (const void *) image)->n; i++)
		{
			ax_image   *to = bc_img(w->made[m]);
			bc_entry	e;

			bc_get(image, i, &e);
			if (level && i == 0 && k > 0)
			{
				/* that between two others comes down */
				e.key = between.key;
				e.len = between.len;
				e.blob = between.blob;
			}
			if (!move_blob(w, &e))
				return 0;
			if (to->n > 0 && bc_used(to, w->size) + 4 + bc_bytes(level > 0, &e) > room)
			{
				if (++m == most)
					return 0;
				bc_clear(w->made[m], w->size, level);
				w->sep[m] = e;
				if (level)
				{
					/* its key goes up, and the page begins below all keys */
					e.key = NULL;
					e.len = 0;
					e.blob = NULL;
				}
				else if (e.blob)
				{
					if ((w->sep[m].blob = bt_blob_new(w->cx, w->s, e.blob->bytes, e.blob->len)) == NULL)
						return 0;
					w->blob[w->nblobs++] = w->sep[m].blob;
				}
			}
			if (!bc_put(w->made[m], bc_img(w->made[m])->n, &e))
				return 0;
		}
	}
	return m + 1;
}

/* Pages for the m images; false: no memory. */
static bool
pages(work *w, int m)
{
	for (int i = 0; i < m; i++)
		if ((w->new[i] = bc_alloc(w->cx, w->s, true)) == NULL)
		{
			undo_pages(w, i);
			return false;
		}
	return true;
}

/*
 * r pages were unlinked and are obsolete, and with them what is in w->gone; records
 * are reserved.
 */
static void
retire_pages(work *w, int from, int r)
{
	for (int i = 0; i < r; i++)
		bc_retire(w->cx, w->s, w->old[from + i]);
	for (int i = 0; i < w->ngone; i++)
		bt_blob_retire(w->cx, w->s, w->gone[i]);
}

/*
 * The m images of w->made in place of children first + from .. first + from + r - 1
 * of the lowest page of the walk, which "up" guards.  AX_OK: done, and w->above is what
 * that page is now.  AX_NOMEM: it cannot be done.  AX_STALE, AX_BUSY.
 *
 * Latches: none on entry and on return; takes that page and the children by one try
 * each.
 */
static ax_status
replace_children(work *w, ax_guard *up, uint32_t first, int from, int r, int m)
{
	const ax_image *was = (const ax_image *) (const void *) w->up;
	const int	level = was->level - 1;
	const uint32_t lo = first + (uint32_t) from;
	bc_page    *page = w->walk.f[w->walk.n - 1].page;
	bool		fits = true;
	int			held = 0;
	ax_status	x;

	if (!pages(w, m))
		return AX_NOMEM;
	bc_clear(w->above, w->size, level + 1);
	(void) bc_append(w->above, w->up, 0, lo);
	for (int i = 0; i < m && fits; i++)
	{
		bc_entry	e = w->sep[i];

		if (i == 0)
			bc_get(w->up, lo, &e);
		e.child = w->new[i];
		fits = bc_put(w->above, lo + (uint32_t) i, &e);
	}
	/* new keys may be longer than those that went */
	if (!fits || !bc_append(w->above, w->up, lo + (uint32_t) r, was->n))
	{
		undo_pages(w, m);
		return AX_NOMEM;
	}
	x = ax_retire_reserve(w->cx, r + w->ngone);
	if (x == AX_OK)
	{
		AX_POINT("bc.compact.before_lock");
		x = AX_STALE;
		if (ax_guard_lock(w->cx, up))
		{
			while (held < r && ax_guard_lock(w->cx, &w->g[from + held]))
				held++;
			if (held == r)
				x = AX_OK;
		}
	}
	if (x != AX_OK)
	{
		while (held > 0)
			ax_guard_close(w->cx, &w->g[from + --held], false);
		ax_guard_close(w->cx, up, false);
		undo_pages(w, m);
		return x;
	}
	for (int i = 0; i < m; i++)
		bc_open(w->s, w->new[i], w->made[i]);
	bc_store(page, w->above, w->size);
	for (int i = 0; i < r; i++)
		ax_guard_kill(w->cx, &w->g[from + i]);
	ax_guard_close(w->cx, up, true);
	retire_pages(w, from, r);
	if (level)
		AX_COUNT(w->cx, w->s, n4, m - r);
	else
		AX_COUNT(w->cx, w->s, leaves, m - r);
	return AX_OK;
}

/*
 * Some children of the lowest page of the walk, whose image is w->up, from where the
 * walk is.  *objs: pages replaced.
 */
static ax_status
pack_children(work *w, ax_guard *up, int *objs)
{
	const uint32_t first = w->walk.f[w->walk.n - 1].i;
	const uint32_t count = bc_img(w->up)->n;
	const uint32_t room = (w->size - BC_IMAGE) / 10 * 9;
	const bool	inner = bc_img(w->up)->level > 1;
	uint32_t	next,
				used = 0;
	int			move = -1,
				from = 0,
				r = 0,
				m = 0;
	ax_status	x;

	for (; r < RUN && first + (uint32_t) r < count; r++)
	{
		bc_entry	e;

		bc_get(w->up, first + (uint32_t) r, &e);
		w->old[r] = e.child;
		x = bc_copy(w->cx, e.child, &w->g[r], w->copy[r], w->size);
		AX_POINT("bc.compact.child_copied");
		if (x != AX_OK)
			return x;
		used += bc_used(bc_img(w->copy[r]), w->size);
		if (inner && r > 0)
			used += e.blob ? 8 : e.len;
		if (move < 0 && must_move(w, e.child, w->copy[r]))
			move = r;
	}
	if (!ax_guard_valid(up))
		return AX_STALE;
	next = first + (uint32_t) r;

	/* into fewer, or else the first that has to move by itself */
	x = AX_NOMEM;
	if (r > 1 && (used + room - 1) / room < (uint32_t) r)
	{
		m = fill_pages(w, first, 0, r, room, r - 1);
		if (m == 0)
			undo_pages(w, 0);
		else
			x = replace_children(w, up, first, 0, r, m);
	}
	if (x == AX_NOMEM && move >= 0)
	{
		from = move;
		r = 1;
		m = fill_pages(w, first, from, 1, w->size, 1);
		if (m == 0)
			undo_pages(w, 0);
		else
			x = replace_children(w, up, first, from, 1, 1);
	}
	if (x == AX_OK)
	{
		w->walk.f[w->walk.n - 1].version = (up->v & AX_VERSION_MASK) + AX_VERSION_ONE;
		memcpy(w->up, w->above, w->size);
		w->again |= inner && m < r;
		*objs = r;
		if (r == 1)
			next = first + (uint32_t) from + 1;
		else
			next = first + (uint32_t) m - (next < count);
	}
	else if (x != AX_NOMEM)
		return x;
	w->walk.f[w->walk.n - 1].i = next;
	w->walk.f[w->walk.n - 1].last = NULL;
	if (next > 0)
	{
		bc_entry	e;

		bc_get(w->up, next - 1, &e);
		w->walk.f[w->walk.n - 1].last = e.child;
	}
	return AX_OK;
}

/*
 * The root itself, when it is in the way.  *objs: pages replaced.
 *
 * Latches: none on entry and on return; takes the root's word and page by one try
 * each.
 */
static ax_status
move_root(work *w, int *objs)
{
	ax_guard	root;
	bc_page    *page;
	int			m;
	ax_status	x = ax_guard_open(w->cx, &root, &w->s->root_word, false);

	if (x != AX_OK)
		return x;
	page = (bc_page *) (uintptr_t) atomic_load_explicit(&w->s->root, memory_order_acquire);
	if (!page)
		return AX_OK;
	x = bc_copy(w->cx, page, &w->g[0], w->copy[0], w->size);
	if (x != AX_OK || !must_move(w, page, w->copy[0]))
		return x;
	w->old[0] = page;
	m = fill_pages(w, 0, 0, 1, w->size, 1);
	if (m == 0)
		undo_pages(w, 0);
	if (m == 0 || !pages(w, 1))
		return AX_OK;
	x = ax_retire_reserve(w->cx, 1 + w->ngone);
	if (x == AX_OK)
	{
		AX_POINT("bc.compact.root");
		x = AX_STALE;
		if (ax_guard_lock(w->cx, &root) && ax_guard_lock(w->cx, &w->g[0]))
			x = AX_OK;
	}
	if (x != AX_OK)
	{
		ax_guard_close(w->cx, &root, false);
		undo_pages(w, 1);
		return x;
	}
	bc_open(w->s, w->new[0], w->made[0]);
	bc_set_root(w->s, w->new[0], bc_img(w->made[0])->level);
	ax_guard_kill(w->cx, &w->g[0]);
	ax_guard_close(w->cx, &root, true);
	retire_pages(w, 0, 1);
	*objs = 1;
	return AX_OK;
}

/*
 * A sweep comes to the root's page.  The walk goes on from there, if the root lies on
 * the sweep's level or above.  Else all levels are done: the next sweep begins, or the
 * root itself is moved, and the pass is over.  *objs: pages replaced.
 */
static ax_status
sweep_from_root(work *w, ax_compaction *c, bc_page *page, int *objs)
{
	ax_walk    *k = &w->walk;
	ax_guard	g;
	ax_status	x = bc_copy(w->cx, page, &g, w->up, w->size);

	if (x != AX_OK)
		return x;
	if (bc_img(w->up)->level >= c->level)
	{
		memset(&k->f[0], 0, sizeof(k->f[0]));
		k->f[0].page = page;
		k->f[0].level = bc_img(w->up)->level;
		k->n = 1;
	}
	else if (w->again && ++w->sweeps < SWEEPS)
	{
		c->level = 1;
		w->again = false;
	}
	else
	{
		bc_shrink_root(w->cx, w->s);
		x = move_root(w, objs);
		c->done = x == AX_OK;
	}
	return x;
}

ax_status
bc_compact(ax_ctx *cx, ax_store *s, ax_compaction *c)
{
	work	   *w = c->work;
	ax_walk    *k = &w->walk;
	int			objs = 0;
	ax_status	x;

	if (!c->started)
	{
		c->level = 1;
		c->started = true;
		k->n = 0;
		w->sweeps = w->tries = 0;
		w->again = false;
	}
	w->cx = cx;
	w->s = s;
	w->size = bc_size(s);
	x = bc_walk_on(cx, s, k, w->up);
	for (int steps = 0; x != AX_BUSY && steps < CALL_STEPS && objs < CALL_PAGES && !c->done; steps++)
	{
		ax_guard	above;
		bc_page    *page;
		bool		begins = k->n == 0;
		int			did = 0;

		if (bc_others_turn(cx, s))
			return AX_BUSY;
		x = bc_walk_next(cx, s, k, w->up, &above, &page);
		if (x == AX_OK && begins)
			x = sweep_from_root(w, c, page, &did);
		else if (x == AX_OK && k->f[k->n - 1].level > c->level)
		{
			k->f[k->n - 1].last = page;
			k->f[k->n - 1].i++;
			memset(&k->f[k->n], 0, sizeof(k->f[0]));
			k->f[k->n].page = page;
			k->f[k->n].level = k->f[k->n - 1].level - 1;
			k->n++;
		}
		else if (x == AX_OK)
		{
			x = pack_children(w, &above, &did);
			if (x == AX_STALE && ++w->tries == TRIES)
			{
				/* somebody works here all the time: left to the next pass */
				k->f[k->n - 1].last = page;
				k->f[k->n - 1].i++;
				w->tries = 0;
			}
			else if (x == AX_OK)
				w->tries = 0;
		}
		else if (begins)
			c->done = x == AX_NOTFOUND;
		if (x == AX_STALE)
			ax_restarted(cx, s, w->tries);
		objs += did;
		c->moved += (uint64_t) did;
		if (x != AX_BUSY && !begins && k->n == 0)
			c->level++;			/* a level is done, or the root went */
	}
	return x == AX_BUSY ? AX_BUSY : AX_OK;
}
