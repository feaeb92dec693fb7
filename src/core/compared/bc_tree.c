/*
 * bc_tree.c
 *	  Trees whose order only the caller knows: steps of a descent, and changes
 *	  at a place that the caller found (ax_cmp.h).
 *
 * Inserts latch their leaf only.  A page without room is cut in two with the page
 * above latched, too.  That is top-down, each by one try, at the versions of the
 * path.  Everything is prepared from the path's own copies before the first latch.
 * The versions are good for that: a page that is still of that version is the copy.
 * Keys move to the right, or, by a merge, to the left with both pages and the one
 * above latched.
 *
 * A leaf found so is the right one, although the caller went away to compare
 * at every step.  For child i of P was copied, and its version taken, while P
 * was of the version under which the caller chose i.  The child's range then
 * was what P says.  It can only become narrower with the child latched (a
 * split) or obsolete (a merge).  So as long as the child is of that version
 * the key that was sought belongs in it.
 *
 * Each step is in an epoch of its own, and a page of the path may have been
 * retired between two.  So each step goes down the path's addresses once more
 * (reach).  That costs a look at a latch word a level while nothing changed.
 *
 * src/core/compared/README.md: Keys that are compared
 */
#include "bc_page.h"
#include "compared.h"
#include "core/base/ax_area.h"
#include "core/base/ax_call.h"

/* ---- turns ---- */

/*
 * A process that compares slowly can lose the leaf for ever to those that
 * compare fast.  It holds no latch while it compares, and its place is good
 * only as long as nothing changes.  So after some losses he says until when he
 * would like to go first, and others keep out until then, or until he is
 * through.  The word has the time, in units of 16 microseconds, and the slot's
 * number + 1.  He may have raised an error or be asleep, and then the time
 * ends it.
 */
#define TURN_SLOT	((UINT64_C(1) << 20) - 1)
#define TURN_NAPS	8			/* then AX_BUSY, about 4 ms */

static uint64_t
turn_now(ax_ctx *cx)
{
	return ax_body(cx)->port->now_ns() >> 14;
}

static uint64_t
turn_mine(ax_ctx *cx)
{
	return (uint64_t) ax_body(cx)->slotno + 1;
}

/* Is it somebody else's? */
static bool
turn_other(ax_ctx *cx, uint64_t turn)
{
	return turn != 0 && (turn & TURN_SLOT) != turn_mine(cx) && turn >> 20 > turn_now(cx);
}

bool
bc_others_turn(ax_ctx *cx, ax_store *s)
{
	return turn_other(cx, atomic_load_explicit(&bc_own_of(s)->turn, memory_order_relaxed));
}

static void
turn_back(ax_ctx *cx, ax_store *s)
{
	uint64_t	turn = atomic_load_explicit(&bc_own_of(s)->turn, memory_order_relaxed);

	if (ax_unlikely((turn & TURN_SLOT) == turn_mine(cx)))
		(void) atomic_compare_exchange_strong_explicit(&bc_own_of(s)->turn, &turn, 0, memory_order_relaxed,
													   memory_order_relaxed);
}

/*
 * ax_enter for a change: not in somebody else's turn, which is waited for outside.
 *
 * Epoch: inside on AX_OK, else outside; naps outside.
 * Latches: none.
 */
static ax_status
enter_in_turn(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_store **s)
{
	for (uint32_t naps = 0;; naps++)
	{
		ax_status	x = ax_enter(cx, t, gen, s);

		if (x != AX_OK || !bc_others_turn(cx, *s))
			return x;
		ax_leave(cx);
		AX_POINT("bc.turn_wait");
		if (naps == TURN_NAPS)
			return AX_BUSY;
		ax_nap(cx, naps);
	}
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
void
ax_cmp_turn(ax_ctx *cx, ax_tree *t, uint64_t gen, uint32_t us)
{
	ax_store   *s;
	uint64_t	turn;

	if (ax_enter(cx, t, gen, &s) != AX_OK)
		return;
	turn = atomic_load_explicit(&bc_own_of(s)->turn, memory_order_relaxed);
	if (us == 0)
		turn_back(cx, s);
	else if (!turn_other(cx, turn))
		/* lost to somebody who says the same: he goes first */
		(void) atomic_compare_exchange_strong_explicit(&bc_own_of(s)->turn, &turn,
													   ((turn_now(cx) + us / 16 + 1) << 20) | turn_mine(cx),
													   memory_order_relaxed, memory_order_relaxed);
	ax_leave(cx);
}

/* ---- steps ---- */

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_cmp_size(ax_ctx *cx, ax_tree *t, uint64_t gen, uint32_t *size)
{
	ax_store   *s;
	ax_status	x = ax_enter_read(cx, t, gen, &s);

	if (x != AX_OK)
		return x;
	*size = bc_size(s);
	ax_leave(cx);
	return AX_OK;
}

/* One page more on the path; what points to it is validated by the caller.  AX_BUFFER: no image for it. */
static ax_status
push_page(ax_ctx *cx, ax_cpath *p, bc_page *page)
{
	ax_cnode   *f = &p->f[p->n];
	ax_guard	g;
	ax_status	x;

	AX_ENSURE(ax_body(cx), p->n < AX_CMP_LEVELS);
	if (ax_unlikely(f->image == NULL))
		return AX_BUFFER;
	AX_POINT("bc.child_read");
	x = bc_copy(cx, page, &g, f->image, p->size);
	if (x != AX_OK)
		return x == AX_STALE ? AX_CHANGED : x;
	f->page = page;
	f->version = g.v;
	f->born = page->born;
	f->made = p->made;
	f->i = 0;
	p->n++;
	return AX_OK;
}

/* Is what was remembered of frame k still so? */
static bool
frame_holds(const ax_cpath *p, int k)
{
	return ax_word_valid(&((bc_page *) p->f[k].page)->word, p->f[k].version);
}

static bc_page *
image_child(const ax_cpath *p, int k, uint32_t i)
{
	bc_entry	e;

	bc_get(p->f[k].image, i, &e);
	return e.child;
}

/* The page of frame j, which is in the tree, has changed: is frame j + 1's still below it? */
static __attribute__((noinline)) ax_status
still_below(ax_ctx *cx, const ax_cpath *p, int j)
{
	_Alignas(8) uint8_t image[BC_MAX];
	ax_guard	g;
	ax_status	x = bc_copy(cx, p->f[j].page, &g, image, p->size);

	if (x == AX_OK)
		return bc_has_child(image, p->f[j + 1].page) ? AX_OK : AX_CHANGED;
	return x == AX_STALE ? AX_CHANGED : x;
}

/*
 * In this epoch nothing was looked at yet: are the pages of frames 0 .. k in the
 * tree?  Only then may they be touched.  AX_CHANGED: not there any more, or
 * elsewhere.
 *
 * Others may take one away the moment after.  They retire it in an epoch not before
 * ours, so it stays a page, if an obsolete one, until we leave.
 */
static ax_status
path_in_tree(ax_ctx *cx, ax_store *s, const ax_cpath *p, int k)
{
	ax_status	x = AX_OK;

	if (k >= 0 &&
		atomic_load_explicit(&s->root, memory_order_acquire) != (uint64_t) (uintptr_t) p->f[0].page)
		return AX_CHANGED;
	for (int j = 0; j < k && x == AX_OK; j++)
		if (!frame_holds(p, j))
			x = still_below(cx, p, j);
	AX_POINT("bc.reached");
	return x;
}

/*
 * Child i of frame k, which was reached, is the next one.  Its address is good only
 * if the page was of its version in this epoch.  It is the child that belongs there
 * only if the page still is when the child has been copied.
 */
static ax_status
push_child(ax_ctx *cx, ax_cpath *p, int k, uint32_t i)
{
	ax_status	x;

	p->n = k + 1;
	p->f[k].i = i;
	if (!frame_holds(p, k))
		return AX_CHANGED;
	x = push_page(cx, p, image_child(p, k, i));
	if (x != AX_OK)
		return x;
	if (!frame_holds(p, k))
	{
		p->n = k + 1;
		return AX_CHANGED;
	}
	return AX_OK;
}

static void
count_restart(ax_ctx *cx, ax_store *s, ax_status x)
{
	if (x == AX_CHANGED)
		AX_COUNT(cx, s, restarts, 1);
}

/*
 * A step begins.
 *
 * Epoch: inside on AX_OK.
 */
static ax_status
enter_step(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_store **s, ax_cpath *p)
{
	ax_status	x = ax_enter_read(cx, t, gen, s);

	if (x == AX_OK)
		p->made = atomic_load_explicit(&bc_own_of(*s)->made, memory_order_acquire);
	return x;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_cmp_root(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p)
{
	ax_store   *s;
	ax_status	x = enter_step(cx, t, gen, &s, p);

	if (x != AX_OK)
		return x;
	AX_ENSURE(ax_body(cx), p->size == bc_size(s));
	do
	{
		ax_guard	g;
		bc_page    *root;

		p->n = 0;
		x = ax_guard_open(cx, &g, &s->root_word, false);
		if (x != AX_OK)
			break;
		p->root_version = g.v;
		root = (bc_page *) (uintptr_t) atomic_load_explicit(&s->root, memory_order_acquire);
		AX_POINT("bc.root_read");
		if (root)
			x = push_page(cx, p, root);
		if (x == AX_OK && !ax_guard_valid(&g))
			x = AX_CHANGED;
		count_restart(cx, s, x);
	} while (x == AX_CHANGED);
	ax_leave(cx);
	return x;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_cmp_down(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p, uint32_t i)
{
	ax_store   *s;
	ax_status	x = enter_step(cx, t, gen, &s, p);

	if (x != AX_OK)
		return x;
	x = path_in_tree(cx, s, p, p->n - 1);
	if (x == AX_OK)
		x = push_child(cx, p, p->n - 1, i);
	count_restart(cx, s, x);
	ax_leave(cx);
	return x;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_cmp_beside(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p, bool left)
{
	ax_store   *s;
	ax_status	x = enter_step(cx, t, gen, &s, p);
	int			k;

	if (x != AX_OK)
		return x;

	/*
	 * Up to the first page that has more on that side, and down its inner
	 * edge.  That page ends the range of the one it led to, and so on down to
	 * the leaf that was copied.  Each was still of its version when the next
	 * was copied, so none had become narrower.  The first page says where it
	 * ends, and must not have changed until now.
	 */
	for (k = p->n - 2; k >= 0; k--)
		if (left ? p->f[k].i > 0 : p->f[k].i + 1 < ax_cmp_count(&p->f[k]))
			break;
	if (k < 0)
		x = AX_NOTFOUND;
	else
	{
		x = path_in_tree(cx, s, p, k);
		if (x == AX_OK)
			x = push_child(cx, p, k, left ? p->f[k].i - 1 : p->f[k].i + 1);
	}
	while (x == AX_OK && !ax_cmp_is_leaf(&p->f[p->n - 1]))
		x = push_child(cx, p, p->n - 1, left ? ax_cmp_count(&p->f[p->n - 1]) - 1 : 0);
	count_restart(cx, s, x);
	ax_leave(cx);
	return x;
}

/* The place of a child in a page's image; its count: it is not there. */
static uint32_t
child_place(const ax_cpath *p, int k, const void *child)
{
	const uint32_t n = ax_cmp_count(&p->f[k]);
	uint32_t	i = 0;

	while (i < n && (const void *) image_child(p, k, i) != child)
		i++;
	return i;
}

/*
 * From the last page of the path to a child, by its address.  A split may have put the
 * child below the page's right neighbour.  AX_NOTFOUND: below neither.
 *
 * Epoch: inside; all pages of the path were copied in it.
 */
static ax_status
down_to(ax_ctx *cx, ax_cpath *p, const void *child)
{
	const int	k = p->n - 1;
	uint32_t	i = child_place(p, k, child);
	ax_status	x;

	if (i < ax_cmp_count(&p->f[k]))
		return push_child(cx, p, k, i);
	if (k == 0 || p->f[k - 1].i + 1 >= ax_cmp_count(&p->f[k - 1]))
		return AX_NOTFOUND;
	x = push_child(cx, p, k - 1, p->f[k - 1].i + 1);
	if (x == AX_OK && (i = child_place(p, k, child)) < ax_cmp_count(&p->f[k]))
		return push_child(cx, p, k, i);
	if (x == AX_OK)
		x = push_child(cx, p, k - 1, p->f[k - 1].i - 1);
	return x == AX_OK ? AX_NOTFOUND : x;
}

/*
 * An address is compared with those in the tree, and never followed.
 *
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_cmp_return(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p, void *const *pages, int n)
{
	ax_store   *s;
	ax_status	x = enter_step(cx, t, gen, &s, p);
	ax_guard	g;
	bc_page    *root;
	int			j = 0;

	if (x != AX_OK)
		return x;
	AX_ENSURE(ax_body(cx), p->size == bc_size(s) && n > 0 && n < AX_CMP_LEVELS);
	p->n = 0;
	x = ax_guard_open(cx, &g, &s->root_word, false);
	if (x == AX_OK)
	{
		p->root_version = g.v;
		root = (bc_page *) (uintptr_t) atomic_load_explicit(&s->root, memory_order_acquire);
		AX_POINT("bc.return.root_read");
		x = root ? push_page(cx, p, root) : AX_NOTFOUND;
		if ((x == AX_OK || x == AX_NOTFOUND) && !ax_guard_valid(&g))
			x = AX_CHANGED;
	}

	/* a root that was cut in two has another one above; one that had one child is gone */
	while (x == AX_OK && j < n && p->f[0].page != pages[j] &&
		   (ax_cmp_is_leaf(&p->f[0]) || child_place(p, 0, pages[j]) == ax_cmp_count(&p->f[0])))
		j++;
	if (x == AX_OK && j == n)
		x = AX_NOTFOUND;
	else if (x == AX_OK && p->f[0].page == pages[j])
		j++;
	for (; x == AX_OK && j < n && !ax_cmp_is_leaf(&p->f[p->n - 1]); j++)
		x = down_to(cx, p, pages[j]);
	if (x == AX_OK && (p->f[p->n - 1].page != pages[n - 1] || !ax_cmp_is_leaf(&p->f[p->n - 1])))
		x = AX_NOTFOUND;

	/* it is gone: the first leaf of the lowest page that is not */
	if (x == AX_NOTFOUND && p->n > 0)
	{
		x = AX_OK;
		while (x == AX_OK && !ax_cmp_is_leaf(&p->f[p->n - 1]))
			x = push_child(cx, p, p->n - 1, 0);
		x = x == AX_OK ? AX_NOTFOUND : x;
	}
	count_restart(cx, s, x);
	ax_leave(cx);
	return x;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_cmp_long(ax_ctx *cx, ax_tree *t, uint64_t gen, const ax_cpath *p, int k, uint32_t i,
			ax_clong *out)
{
	ax_store   *s;
	ax_status	x = ax_enter_read(cx, t, gen, &s);
	bc_entry	e;

	if (x != AX_OK)
		return x;
	bc_get(p->f[k].image, i, &e);
	AX_ENSURE(ax_body(cx), e.blob != NULL);

	/*
	 * As long as the page is of that version the entry is there.  A process that
	 * takes it away from here on retires the key in an epoch not before ours.
	 */
	x = path_in_tree(cx, s, p, k);
	if (x == AX_OK && !frame_holds(p, k))
		x = AX_CHANGED;
	if (x == AX_OK)
	{
		out->len = e.blob->len;
		if (e.blob->len > out->size)
			x = AX_BUFFER;
		else
			memcpy(out->buf, e.blob->bytes, e.blob->len);
	}
	count_restart(cx, s, x);
	ax_leave(cx);
	return x;
}

/* ---- changes ---- */

typedef struct work
{
	ax_ctx	   *cx;
	ax_store   *s;
	ax_cpath   *p;
	uint32_t	size;
} work;

/*
 * Latch a word at a version, by one try.
 *
 * Latches: it is write-latched on true.
 */
static bool
lock_at(work *w, ax_word *word, uint64_t v)
{
	return ax_word_trylock(w->cx, word, v);
}

/*
 * The word of the pointer to frame k, latched at the path's version.
 *
 * Latches: it is write-latched unless NULL is returned.
 */
static ax_word *
lock_above(work *w, int k)
{
	ax_word    *word = k > 0 ? &((bc_page *) w->p->f[k - 1].page)->word : &w->s->root_word;

	return lock_at(w, word, k > 0 ? w->p->f[k - 1].version : w->p->root_version) ? word : NULL;
}

/*
 * Frame k's page was latched at the path's version and is this image now: the
 * path goes on, with the version that the latch left.
 */
static void
path_goes_on(work *w, int k, const uint8_t *image)
{
	ax_cnode   *f = &w->p->f[k];

	memcpy(f->image, image, w->size);
	f->version = (f->version & AX_VERSION_MASK) + AX_VERSION_ONE;
}

void
bc_set_root(ax_store *s, bc_page *root, int level)
{
	atomic_store_explicit(&s->root, (uint64_t) (uintptr_t) root, memory_order_release);
	atomic_store_explicit(&s->height, (uint32_t) level + 1, memory_order_relaxed);
}

/*
 * Where to cut n entries of these sizes so that the halves are as equal as can be.
 * It is the number of those to the left, 1 to n - 1.
 */
static uint32_t
middle_entry(const uint32_t *bytes, uint32_t n)
{
	uint32_t	total = 0,
				sum = 0,
				m = 0;

	for (uint32_t i = 0; i < n; i++)
		total += bytes[i];
	while (m + 1 < n && 2 * sum + bytes[m] <= total)
		sum += bytes[m++];
	return m < 1 ? 1 : m;
}

/* The two pages that one becomes, as copies, and what separates them. */
typedef struct halves
{
	bool		inner;
	_Alignas(8) uint8_t left[BC_MAX];
	_Alignas(8) uint8_t right[BC_MAX];
	bc_entry	sep;			/* without its child; its blob is still the leaf's */
} halves;

/*
 * The image of a page cut in two: with entry "in" at place "at", or, NULL, for one that is
 * to come there.
 */
static void
halve_image(work *w, const uint8_t *image, uint32_t at, const bc_entry *in, halves *h)
{
	const ax_image *m = (const ax_image *) (const void *) image;
	uint32_t	n = m->n + (in ? 1 : 0);
	uint32_t	cut;
	uint32_t	bytes[BC_MAX / 8 + 2];
	bc_entry	e;

	h->inner = m->level > 0;
	for (uint32_t i = 0, j = 0; i < n; i++)
	{
		if (in && i == at)
			bytes[i] = 4 + bc_bytes(h->inner, in);
		else
		{
			bc_get(image, j++, &e);
			bytes[i] = 4 + bc_bytes(h->inner, &e);
		}
	}
	/* rising keys leave full pages behind */
	cut = n > 1 && at + (in ? 1 : 0) == n ? n - 1 : middle_entry(bytes, n);

	bc_clear(h->left, w->size, m->level);
	bc_clear(h->right, w->size, m->level);
	for (uint32_t i = 0, j = 0; i < n; i++)
	{
		if (in && i == at)
			e = *in;
		else
			bc_get(image, j++, &e);
		if (i == cut)
		{
			h->sep = e;
			if (h->inner)
			{
				/* its key goes up, and the right page begins below all keys */
				e.key = NULL;
				e.len = 0;
				e.blob = NULL;
			}
		}
		AX_ENSURE(ax_body(w->cx),
				  bc_put(i < cut ? h->left : h->right, i < cut ? i : i - cut, &e));
	}
}

/*
 * The halves of frame k's page go where all see them: the left one into the page, the
 * right one into r, which the page above points to by its image "above".  top: the
 * page above is a new root; else NULL.  AX_CHANGED: nothing was done.
 *
 * Latches: none on entry and on return; takes pointer and page by one try each.
 */
static ax_status
publish_halves(work *w, int k, const halves *h, bc_page *r, bc_page *top, uint8_t *above)
{
	const ax_cnode *f = &w->p->f[k];
	bc_page    *page = f->page;
	ax_word    *up;

	AX_POINT("bc.split.before_lock");
	if ((up = lock_above(w, k)) == NULL)
		return AX_CHANGED;
	if (!lock_at(w, &page->word, f->version))
	{
		ax_word_unlock(w->cx, up, false);
		return AX_CHANGED;
	}
	bc_open(w->s, r, h->right);
	bc_store(page, h->left, w->size);
	if (top)
	{
		bc_open(w->s, top, above);
		bc_set_root(w->s, top, bc_img(above)->level);
		AX_COUNT(w->cx, w->s, n4, 1);
	}
	else
		bc_store(w->p->f[k - 1].page, above, w->size);
	ax_word_unlock(w->cx, &page->word, true);
	ax_word_unlock(w->cx, up, true);
	w->p->n = AX_CMP_NOWHERE;
	if (h->inner)
		AX_COUNT(w->cx, w->s, n4, 1);
	else
		AX_COUNT(w->cx, w->s, leaves, 1);
	return AX_OK;
}

/*
 * Cut the page of frame k in two, with entry "in" (a leaf's; or NULL: one is to
 * come) at place "at".  AX_OK: done, the entry with it.  AX_CHANGED: start over
 * (something may have been done: if the page above had no room it was cut).
 * AX_NOMEM.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; takes pointer and page by one try
 * each.
 * Order: both pages are complete before the one above points to the new one.
 */
static ax_status
split_page(work *w, int k, uint32_t at, const bc_entry *in)
{
	ax_cnode   *f = &w->p->f[k];
	bc_page    *page = f->page;
	int			level = bc_img(f->image)->level;
	halves		h;
	_Alignas(8) uint8_t above[BC_MAX];
	bc_page    *r = NULL,
			   *top = NULL;
	bt_blob    *sepblob = NULL;
	ax_status	x = AX_NOMEM;

	halve_image(w, f->image, at, in, &h);
	if (!h.inner && h.sep.blob)
	{
		/* the leaf's own may go before the separator does */
		sepblob = bt_blob_new(w->cx, w->s, h.sep.blob->bytes, h.sep.blob->len);
		if (!sepblob)
			return AX_NOMEM;
		h.sep.blob = sepblob;
	}
	if ((r = bc_alloc(w->cx, w->s, false)) == NULL)
		goto fail;
	h.sep.child = r;
	if (k > 0)
	{
		memcpy(above, w->p->f[k - 1].image, w->size);
		if (!bc_put(above, w->p->f[k - 1].i + 1, &h.sep))
		{
			/* the page above first: it has room for any separator then */
			bc_unalloc(w->cx, w->s, r);
			if (sepblob)
				bt_blob_free(w->cx, w->s, sepblob);
			x = split_page(w, k - 1, w->p->f[k - 1].i + 1, NULL);
			return x == AX_OK ? AX_CHANGED : x;
		}
	}
	else
	{
		bc_entry	first = {.child = page};

		if ((top = bc_alloc(w->cx, w->s, false)) == NULL)
			goto fail;
		bc_clear(above, w->size, level + 1);
		AX_ENSURE(ax_body(w->cx), bc_put(above, 0, &first) && bc_put(above, 1, &h.sep));
	}

	x = publish_halves(w, k, &h, r, top, above);
	if (x == AX_OK)
		return x;

fail:
	if (r)
		bc_unalloc(w->cx, w->s, r);
	if (top)
		bc_unalloc(w->cx, w->s, top);
	if (sepblob)
		bt_blob_free(w->cx, w->s, sepblob);
	return x;
}

/*
 * Insert the entry at place "at" of the path's leaf, whose copy the caller
 * compared in.
 *
 * Latches: takes those of root word or leaf, by one try.
 * Returns: AX_CHANGED: the leaf is not of that version any more, nothing was
 * changed.
 */
static ax_status
insert_entry(work *w, uint32_t at, const uint8_t *key, uint32_t len)
{
	ax_cpath   *p = w->p;
	_Alignas(8) uint8_t image[BC_MAX];
	bc_entry	e = {.key = key, .len = len};
	ax_status	x;

	if (len > bc_max_inline(w->s) &&
		(e.blob = bt_blob_new(w->cx, w->s, key, len)) == NULL)
		return AX_NOMEM;

	if (p->n == 0)
	{
		bc_page    *page = bc_alloc(w->cx, w->s, false);

		x = AX_NOMEM;
		if (page)
		{
			bc_clear(image, w->size, 0);
			AX_ENSURE(ax_body(w->cx), bc_put(image, 0, &e));
			x = AX_CHANGED;
			if (lock_above(w, 0))
			{
				bc_open(w->s, page, image);
				bc_set_root(w->s, page, 0);
				ax_word_unlock(w->cx, &w->s->root_word, true);
				AX_COUNT(w->cx, w->s, leaves, 1);
				p->n = AX_CMP_NOWHERE;
				x = AX_OK;
			}
			else
				bc_unalloc(w->cx, w->s, page);
		}
	}
	else
	{
		ax_cnode   *f = &p->f[p->n - 1];
		bc_page    *page = f->page;

		memcpy(image, f->image, w->size);
		if (bc_put(image, at, &e))
		{
			AX_POINT("bc.leaf.before_lock");
			x = AX_CHANGED;
			if (lock_at(w, &page->word, f->version))
			{
				bc_store(page, image, w->size);
				ax_word_unlock(w->cx, &page->word, true);
				path_goes_on(w, p->n - 1, image);
				x = AX_OK;
			}
		}
		/* the copy's long keys are followed only if the leaf was of its version in this epoch */
		else if (frame_holds(p, p->n - 1))
			x = split_page(w, p->n - 1, at, &e);
		else
			x = AX_CHANGED;
	}
	if (x == AX_OK)
		AX_COUNT(w->cx, w->s, entries, 1);
	else if (e.blob)
		bt_blob_free(w->cx, w->s, e.blob);
	return x;
}

/*
 * Epoch: waits for others' turns outside, enters and leaves.
 * Latches: none on entry and on return; takes those of the place by one try
 * each.
 * Returns: AX_CHANGED or AX_BUSY: nothing was inserted.
 */
ax_status
ax_cmp_insert(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p, uint32_t i,
			  const uint8_t *key, uint32_t len)
{
	ax_status	x;
	int			tries = 0;

	do
	{
		work		w = {.cx = cx, .p = p};

		x = enter_in_turn(cx, t, gen, &w.s);
		if (x != AX_OK)
			return x;
		AX_ENSURE(ax_body(cx), p->n == 0 || ax_cmp_is_leaf(&p->f[p->n - 1]));
		w.size = bc_size(w.s);
		x = path_in_tree(cx, w.s, p, p->n - 1);
		if (x == AX_OK)
			x = insert_entry(&w, i, key, len);
		if (x == AX_OK)
			turn_back(cx, w.s);
		count_restart(cx, w.s, x);
	} while (ax_finish(cx, &x, &tries));
	return x;
}

/* ---- removal ---- */

/* An image without entry i. */
static void
image_without(const uint8_t *from, uint32_t i, uint8_t *to, uint32_t size)
{
	const ax_image *m = (const ax_image *) (const void *) from;

	bc_clear(to, size, m->level);
	(void) bc_append(to, from, 0, i);
	(void) bc_append(to, from, i + 1, m->n);
}

/* Is there so little in it that it should be merged with a neighbour? */
static bool
is_poor(const uint8_t *image, uint32_t size)
{
	const ax_image *m = (const ax_image *) (const void *) image;

	return bc_used(m, size) < (size - BC_IMAGE) / 4;
}

/*
 * Merge children i and i + 1 of frame k into the left one.  One of them must
 * be poor and both fit into a page with some room left, or one be empty.
 * above: the image of frame k's page afterwards.  False: they are as they
 * were.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; takes the page above and both pages by
 * one try each.
 */
static bool
merge_children(work *w, int k, uint32_t i, uint8_t *above)
{
	ax_cnode   *f = &w->p->f[k];
	bc_page    *up = f->page;
	bc_page    *pa,
			   *pb;
	ax_guard	a,
				b;
	_Alignas(8) uint8_t left[BC_MAX],
				right[BC_MAX];
	bc_entry	sep;
	bool		inner,
				empty;

	/* the neighbours' addresses are of the epoch in which the page above was copied */
	if (!frame_holds(w->p, k))
		return false;
	bc_get(f->image, i, &sep);
	pa = sep.child;
	bc_get(f->image, i + 1, &sep);
	pb = sep.child;
	if (bc_copy(w->cx, pa, &a, left, w->size) != AX_OK ||
		bc_copy(w->cx, pb, &b, right, w->size) != AX_OK)
		return false;
	if (!is_poor(left, w->size) && !is_poor(right, w->size))
		return false;
	inner = bc_img(left)->level > 0;
	empty = bc_img(left)->n == 0 || bc_img(right)->n == 0;
	if (inner)
	{
		bc_entry	e;

		/* the key between the two comes down */
		bc_get(right, 0, &e);
		e.key = sep.key;
		e.len = sep.len;
		e.blob = sep.blob;
		if (!bc_put(left, bc_img(left)->n, &e))
			return false;
	}
	if (!bc_append(left, right, inner ? 1 : 0, bc_img(right)->n) ||
		(!empty && bc_room(bc_img(left)) < w->size / 8))
		return false;
	image_without(f->image, i + 1, above, w->size);
	if (ax_retire_reserve(w->cx, 2) != AX_OK)
		return false;

	AX_POINT("bc.merge.before_lock");
	if (!lock_at(w, &up->word, f->version))
		return false;
	if (!lock_at(w, &pa->word, a.v))
	{
		ax_word_unlock(w->cx, &up->word, false);
		return false;
	}
	if (!lock_at(w, &pb->word, b.v))
	{
		ax_word_unlock(w->cx, &pa->word, false);
		ax_word_unlock(w->cx, &up->word, false);
		return false;
	}
	bc_store(pa, left, w->size);
	bc_store(up, above, w->size);
	ax_word_unlock_obsolete(w->cx, &pb->word);
	ax_word_unlock(w->cx, &pa->word, true);
	ax_word_unlock(w->cx, &up->word, true);
	bc_retire(w->cx, w->s, pb);
	if (!inner && sep.blob)
		bt_blob_retire(w->cx, w->s, sep.blob);
	if (inner)
		AX_COUNT(w->cx, w->s, n4, -1);
	else
		AX_COUNT(w->cx, w->s, leaves, -1);
	return true;
}

/*
 * Epoch: inside.
 * Latches: none on entry and on return; takes the root's word and page by one try
 * each.
 */
void
bc_shrink_root(ax_ctx *cx, ax_store *s)
{
	for (;;)
	{
		ax_guard	root,
					g;
		bc_page    *page;
		bc_entry	e;
		_Alignas(8) uint8_t image[BC_MAX];

		if (ax_guard_open(cx, &root, &s->root_word, false) != AX_OK)
			return;
		page = (bc_page *) (uintptr_t) atomic_load_explicit(&s->root, memory_order_acquire);
		if (!page || !ax_guard_valid(&root) ||
			bc_copy(cx, page, &g, image, bc_size(s)) != AX_OK ||
			bc_img(image)->level == 0 || bc_img(image)->n > 1 ||
			ax_retire_reserve(cx, 1) != AX_OK)
			return;
		bc_get(image, 0, &e);
		AX_POINT("bc.root.before_lock");
		if (!ax_guard_lock(cx, &root))
			return;
		if (!ax_guard_lock(cx, &g))
		{
			ax_guard_close(cx, &root, false);
			return;
		}
		bc_set_root(s, e.child, bc_img(image)->level - 1);
		ax_guard_kill(cx, &g);
		ax_guard_close(cx, &root, true);
		bc_retire(cx, s, page);
		AX_COUNT(cx, s, n4, -1);
	}
}

/*
 * Merge the page of frame k, which has become poor, with a neighbour below the
 * same page, and so on up.  At best: what is latched or has changed is left as
 * it is.
 *
 * Epoch: inside.
 * Latches: none on entry and on return; each by one try, top-down.
 */
static void
merge_up(work *w, int k)
{
	_Alignas(8) uint8_t above[BC_MAX];

	for (; k > 0; k--)
	{
		ax_cnode   *f = &w->p->f[k - 1];

		if (!(f->i + 1 < ax_cmp_count(f) && merge_children(w, k - 1, f->i, above)) &&
			!(f->i > 0 && merge_children(w, k - 1, f->i - 1, above)))
			return;
		if (!is_poor(above, w->size))
			return;
	}
	bc_shrink_root(w->cx, w->s);
}

/*
 * Epoch: waits for others' turns outside, enters and leaves.
 * Latches: none on entry and on return; takes those of the place by one try
 * each.
 * Returns: AX_CHANGED or AX_BUSY: nothing was removed.
 */
ax_status
ax_cmp_remove(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_cpath *p, uint32_t i)
{
	ax_status	x;
	int			tries = 0;

	do
	{
		work		w = {.cx = cx, .p = p};
		ax_cnode   *f = &p->f[p->n - 1];
		bc_page    *page = f->page;
		_Alignas(8) uint8_t image[BC_MAX];
		bc_entry	e;

		x = enter_in_turn(cx, t, gen, &w.s);
		if (x != AX_OK)
			return x;
		AX_ENSURE(ax_body(cx), p->n > 0 && ax_cmp_is_leaf(f) && i < ax_cmp_count(f));
		w.size = bc_size(w.s);
		bc_get(f->image, i, &e);
		image_without(f->image, i, image, w.size);
		x = path_in_tree(cx, w.s, p, p->n - 1);
		if (x == AX_OK)
			x = ax_retire_reserve(cx, 1);
		if (x == AX_OK)
		{
			AX_POINT("bc.remove.before_lock");
			x = AX_CHANGED;
			if (lock_at(&w, &page->word, f->version))
			{
				bc_store(page, image, w.size);
				ax_word_unlock(cx, &page->word, true);
				if (e.blob)
					bt_blob_retire(cx, w.s, e.blob);
				AX_COUNT(cx, w.s, entries, -1);
				if (is_poor(image, w.size))
				{
					merge_up(&w, p->n - 1);
					p->n = AX_CMP_NOWHERE;
				}
				else
					path_goes_on(&w, p->n - 1, image);
				turn_back(cx, w.s);
				x = AX_OK;
			}
		}
		count_restart(cx, w.s, x);
	} while (ax_finish(cx, &x, &tries));
	return x == AX_NOMEM ? AX_BUSY : x; /* nobody can do without it */
}
