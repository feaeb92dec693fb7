/*
 * ax_window.c
 *	  The tail buffer of keys that are a sequence: a slot for each number.
 *
 * The last eight bytes of a key before its TID (four, of a shorter key) are
 * taken as a number.  All that is before them is the same for all keys here.
 * 2^shift numbers share a slot, SLOTS slots are a window, and a window has its
 * place in a ring by its number.  So the place of a key follows from the key.
 * Inserters share no counter, a key is found at once, and the entries are in order.
 * An insert that finds its slot taken, or its window gone or not there yet, goes to
 * the tree.
 *
 * A slot is one word:
 *
 *	63..16 TID | 15..3 the number's low bits, which the slot does not say | 2..0 state
 *
 * Windows are emptied in their order, behind the newest by some, slot by slot.
 * An empty slot is sealed, so an inserter that was late finds it taken.
 * Nobody waits for it.  When all its slots are done a window is unlinked and the
 * floor raised, under "maker".  That also guards the making of new ones: none is
 * made below the floor.
 *
 * src/core/tail/README.md: The tail buffer
 * src/core/tail/README.md: The tail buffer's kinds
 */
#include "core/base/ax_area.h"
#include "core/base/ax_racy.h"
#include "ax_tail.h"

#define BITS	9
#define SLOTS	(1u << BITS)
#define RING	16
#define LAG		5				/* windows that stay behind the newest: who is late */
#define AHEAD	2				/* how far beyond the newest a new one may be */

#define LOW_SHIFT	3
#define TID_SHIFT	16
#define LOW_BITS	((UINT64_C(1) << TID_SHIFT) - (UINT64_C(1) << LOW_SHIFT))

typedef struct window
{
	uint64_t	no;				/* immutable */
	uint32_t	next;			/* first slot not done; the flusher's */
	_Alignas(AX_LINE) ax_tail_word slot[SLOTS]; /* by CAS, as ax_tail.h says */
} window;

typedef struct ring
{
	ax_tail		t;
	/* immutable */
	_Alignas(AX_LINE) uint32_t keylen;
	uint32_t	plen;			/* bytes before the number */
	uint32_t	numlen;			/* 8 or 4 */
	uint32_t	shift;
	uint8_t		prefix[AX_TAIL_KEY_MAX];
	/* written for every window, by the holder of "maker" */
	_Alignas(AX_LINE) _Atomic uint64_t floor;	/* none below, ever */
	_Atomic uint64_t head;		/* the newest */
	_Atomic(window *) win[RING];
	_Alignas(AX_LINE) _Atomic uint32_t maker;	/* claimed for one call of the core */
} ring;

/* Neighbours two lines apart, since processors fetch lines in pairs. */
static inline uint32_t
place(uint32_t i)
{
	uint32_t	line = (i & 31) << 1 | ((i >> 5) & 1);

	return line << 3 | i >> 6;
}

/* The number of a key: its eight or four bytes before the TID. */
static inline uint64_t
key_number(const ring *r, const uint8_t *p)
{
	uint64_t	x;

	if (ax_likely(r->numlen == 8))
	{
		memcpy(&x, p, 8);
		return __builtin_bswap64(x);
	}
	else
	{
		uint32_t	y;

		memcpy(&y, p, 4);
		return __builtin_bswap32(y);
	}
}

static inline bool
same_prefix(const ring *r, const uint8_t *key)
{
	return r->plen == 1 ? key[0] == r->prefix[0] : memcmp(key, r->prefix, r->plen) == 0;
}

static inline window *
window_of(ring *r, uint64_t no)
{
	window	   *w = atomic_load_explicit(&r->win[no % RING], memory_order_acquire);

	return w && w->no == no ? w : NULL;
}

/* The slot of this number, if there is such a window now. */
static inline ax_tail_word *
slot_numbered(ring *r, uint64_t x)
{
	window	   *w = window_of(r, x >> (r->shift + BITS));

	return w ? &w->slot[place((uint32_t) (x >> r->shift) & (SLOTS - 1))] : NULL;
}

static inline uint64_t
entry(const ring *r, uint64_t x, uint64_t tid)
{
	return tid << TID_SHIFT | (x & ((UINT64_C(1) << r->shift) - 1)) << LOW_SHIFT;
}

/*
 * A new window; NULL when it may not be, or somebody is making one: then the tree
 * takes the key.
 *
 * Epoch: inside.
 * Latches: tries the maker's claim, and lets it go.
 * Order: the newest number is stored before the window is published.
 */
static __attribute__((noinline)) window *
make_window(ax_ctx *cx, ax_store *s, ring *r, uint64_t no)
{
	window	   *w;
	uint64_t	floor,
				head;

	w = atomic_load_explicit(&r->win[no % RING], memory_order_relaxed);
	if (w || no < atomic_load_explicit(&r->floor, memory_order_relaxed) ||
		no > atomic_load_explicit(&r->head, memory_order_relaxed) + AHEAD ||
		!ax_tail_claim(cx, &r->maker))
		return NULL;
	floor = atomic_load_explicit(&r->floor, memory_order_relaxed);
	head = atomic_load_explicit(&r->head, memory_order_relaxed);
	w = atomic_load_explicit(&r->win[no % RING], memory_order_acquire);
	if (w && w->no != no)
		w = NULL;				/* one that is not empty yet */
	else if (!w && no >= floor && no < floor + RING && no <= head + AHEAD &&
			 !atomic_load_explicit(&r->t.closed, memory_order_relaxed))
	{
		w = ax_alloc_public(cx, s, sizeof(window));
		if (w)
		{
			memset(w, 0, sizeof(*w));
			w->no = no;
			/* first: who sees the window, and puts something in, has set it */
			if (no > head)
				atomic_store_explicit(&r->head, no, memory_order_release);
			AX_POINT("window.made");
			atomic_store_explicit(&r->win[no % RING], w, memory_order_release);
		}
		else
			/* no failure of the call, which may have put its key in already */
			ax_body(cx)->alloc_busy = ax_body(cx)->alloc_injected = false;
	}
	ax_tail_unclaim(cx, &r->maker);
	return w;
}

/*
 * Insert into the window of the key's number.  AX_CHANGED: not here, the key
 * is the tree's.
 *
 * Order: the CAS publishes the entry.
 */
static ax_status
window_insert(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *key, uint32_t len)
{
	ring	   *r = (ring *) t;
	uint64_t	x,
				no,
				v,
				old = AX_T_EMPTY;
	uint32_t	i;
	window	   *w;

	if (len != r->keylen || !same_prefix(r, key))
		return AX_CHANGED;
	x = key_number(r, key + r->plen);
	no = x >> (r->shift + BITS);
	w = window_of(r, no);
	if (ax_unlikely(!w) && (w = make_window(cx, s, r, no)) == NULL)
		return AX_CHANGED;
	i = (uint32_t) (x >> r->shift) & (SLOTS - 1);
	v = entry(r, x, ax_tid_at(key + len));
	AX_POINT("window.insert");
	if (!atomic_compare_exchange_strong(&w->slot[place(i)], &old, v | AX_T_FULL))
		return ax_tail_is_there(old) && (old & ~AX_T_STATE) == v ? AX_EXISTS : AX_CHANGED;
	/* in good time, or all who come meanwhile go to the tree */
	if (ax_unlikely(i >= SLOTS / 2) && !window_of(r, no + 1) &&
		no == atomic_load_explicit(&r->head, memory_order_relaxed))
		(void) make_window(cx, s, r, no + 1);
	return AX_OK;
}

/* The word of a key's entry, if it is there; there is at most one. */
static ax_tail_word *
window_find(ax_tail *t, const uint8_t *key, uint32_t len, ax_tail_word *last)
{
	ring	   *r = (ring *) t;
	ax_tail_word *word;
	uint64_t	x,
				v;

	if (last || len != r->keylen || !same_prefix(r, key))
		return NULL;
	x = key_number(r, key + r->plen);
	word = slot_numbered(r, x);
	if (!word)
		return NULL;
	v = atomic_load_explicit(word, memory_order_acquire);
	return ax_tail_is_there(v) &&
		(v & ~AX_T_STATE) == entry(r, x, ax_tid_at(key + len)) ? word : NULL;
}

/* Look up the TID of a prefix; there is at most one. */
static uint32_t
window_lookup(ax_tail *t, const uint8_t *prefix, uint32_t len, uint64_t *tids, uint32_t max,
			  bool *more)
{
	ring	   *r = (ring *) t;
	ax_tail_word *word;
	uint64_t	x,
				v;

	*more = false;
	if (len != r->keylen - AX_TID_BYTES || !same_prefix(r, prefix))
		return 0;
	x = key_number(r, prefix + r->plen);
	word = slot_numbered(r, x);
	if (!word)
		return 0;
	v = atomic_load_explicit(word, memory_order_acquire);
	if (!ax_tail_is_there(v) || (v & LOW_BITS) != entry(r, x, 0))
		return 0;
	if (max == 0)
	{
		*more = true;
		return 0;
	}
	tids[0] = v >> TID_SHIFT;
	return 1;
}

/*
 * The numbers on one side of a position: into *x the last that can be on it.  *tid:
 * at that number it depends on the TID.  False: none is.
 */
static bool
side(const ring *r, const ax_bound *b, bool lo, uint64_t *x, bool *tid)
{
	uint32_t	n = b->len < r->plen ? b->len : r->plen;
	int			c = memcmp(b->key ? b->key : r->prefix, r->prefix, n);
	uint64_t	most = r->numlen == 8 ? UINT64_MAX : UINT32_MAX;
	uint64_t	v = 0;
	uint32_t	m;

	*tid = false;
	if (c == 0 && b->len <= r->plen)
		c = b->after ? 1 : -1;
	if (c != 0)
	{
		*x = lo ? 0 : most;
		return lo ? c < 0 : c > 0;
	}
	m = b->len - r->plen;
	if (m > r->numlen)
	{
		m = r->numlen;
		*tid = true;
	}
	for (uint32_t i = 0; i < r->numlen; i++)
		v = v << 8 | (i < m ? b->key[r->plen + i] : b->after ? 0xFF : 0);
	*x = v;
	if (*tid || b->after != lo)
		return true;
	/* all that begin so lie on the other side */
	if (v == (lo ? most : 0))
		return false;
	*x = lo ? v + 1 : v - 1;
	return true;
}

/* Write the key of a number and a TID. */
static uint32_t
key_of(const ring *r, uint64_t x, uint64_t tid, uint8_t *buf)
{
	uint8_t    *p = buf + r->plen;

	memcpy(buf, r->prefix, r->plen);
	for (uint32_t i = 0; i < r->numlen; i++)
		p[i] = (uint8_t) (x >> (8 * (r->numlen - 1 - i)));
	p += r->numlen;
	ax_put_tid(p, tid);
	return r->keylen;
}

/* Is the entry on this side of the position? */
static bool
beyond(const ring *r, uint64_t x, uint64_t tid, const ax_bound *b, bool lo)
{
	uint8_t		buf[AX_TAIL_KEY_MAX];
	ax_bound	e = {.key = buf,.after = false};
	int			c;

	/* no key is a prefix of another, so which end of the entry does not matter, but
	 * where the position has that key itself */
	e.len = key_of(r, x, tid, buf);
	c = ax_bound_cmp(&e, b);
	if (c == 0 || (e.len == b->len && memcmp(buf, b->key, e.len) == 0))
		return lo ? !b->after : b->after;
	return lo ? c > 0 : c < 0;
}

/*
 * Copy the entries between two positions, in order, at most "max" of them.
 */
static uint32_t
window_collect(ax_tail *t, const ax_bound *lo, const ax_bound *hi, bool backward,
			   ax_tail_item *items, uint32_t max, bool *more)
{
	ring	   *r = (ring *) t;
	const uint32_t wide = r->shift + BITS;
	uint64_t	from,
				to,
				first,
				last;
	bool		tid_lo,
				tid_hi;
	uint32_t	n = 0;

	*more = false;
	if (!side(r, lo, true, &from, &tid_lo) || !side(r, hi, false, &to, &tid_hi) || from > to)
		return 0;
	first = from >> wide;
	last = to >> wide;

	/*
	 * Floor before head: what was put in before this call is not below the floor
	 * but in the tree, nor above the head.
	 */
	{
		uint64_t	floor = atomic_load_explicit(&r->floor, memory_order_acquire);
		uint64_t	head = atomic_load_explicit(&r->head, memory_order_acquire);

		if (first < floor)
			first = floor;
		if (last > head)
			last = head;
		if (first > last)
			return 0;
		/* windows lie within RING of the floor as it is when they are made */
	}
	for (uint64_t k = 0; k <= last - first; k++)
	{
		window	   *w = window_of(r, backward ? last - k : first + k);
		uint64_t	base;
		uint32_t	a = 0,
					z = SLOTS - 1;

		if (!w)
			continue;
		base = w->no << wide;
		if (from > base)
			a = (uint32_t) ((from - base) >> r->shift);
		if (to - base < (uint64_t) SLOTS << r->shift)
			z = (uint32_t) ((to - base) >> r->shift);
		for (uint32_t j = 0; j <= z - a; j++)
		{
			uint32_t	i = backward ? z - j : a + j;
			uint64_t	v = atomic_load_explicit(&w->slot[place(i)], memory_order_acquire);
			uint64_t	x;

			if (!ax_tail_is_there(v))
				continue;
			x = base | (uint64_t) i << r->shift | (v & LOW_BITS) >> LOW_SHIFT;
			if (x < from || x > to ||
				(x == from && tid_lo && !beyond(r, x, v >> TID_SHIFT, lo, true)) ||
				(x == to && tid_hi && !beyond(r, x, v >> TID_SHIFT, hi, false)))
				continue;
			if (n == max)
			{
				*more = true;
				return n;
			}
			items[n].key = NULL;
			items[n].len = r->keylen;
			items[n].num = x;
			items[n].tid = v >> TID_SHIFT;
			n++;
		}
	}
	return n;
}

static uint32_t
window_key(ax_tail *t, const ax_tail_item *item, uint8_t *buf)
{
	return key_of((ring *) t, item->num, item->tid, buf);
}

static uint32_t
window_floor(ax_tail *t, uint8_t *buf)
{
	ring	   *r = (ring *) t;
	uint64_t	no = atomic_load_explicit(&r->floor, memory_order_acquire);

	return key_of(r, no << (r->shift + BITS), 0, buf) - AX_TID_BYTES;
}

/* How many entries there are, counted one by one. */
static uint64_t
window_live(ax_tail *t)
{
	ring	   *r = (ring *) t;
	uint64_t	n = 0;

	for (int k = 0; k < RING; k++)
	{
		window	   *w = atomic_load_explicit(&r->win[k], memory_order_acquire);

		for (uint32_t i = 0; w && i < SLOTS; i++)
			n += ax_tail_is_there(atomic_load_explicit(&w->slot[i], memory_order_relaxed));
	}
	return n;
}

static bool
window_due(ax_tail *t)
{
	ring	   *r = (ring *) t;
	uint64_t	head = atomic_load_explicit(&r->head, memory_order_relaxed);

	return atomic_load_explicit(&r->floor, memory_order_relaxed) + LAG < head;
}

/* Nothing is below "no" any more, and nothing is to come there.  Under maker. */
static void
raise_floor(ring *r, uint64_t no)
{
	if (no <= atomic_load_explicit(&r->floor, memory_order_relaxed))
		return;
	atomic_store_explicit(&r->floor, no, memory_order_release);
	atomic_store_explicit(&r->t.floor8, no << (r->shift + BITS), memory_order_release);
}

/* The oldest window from "no" on; NULL: none up to the newest. */
static window *
oldest(ring *r, uint64_t no, uint64_t head)
{
	for (; no <= head; no++)
	{
		window	   *w = window_of(r, no);

		if (w)
			return w;
	}
	return NULL;
}

/* The entries that one step moves: their keys, words, and places in the window. */
typedef struct step
{
	uint8_t		buf[AX_TAIL_STEP][AX_TAIL_KEY_MAX];
	const uint8_t *keys[AX_TAIL_STEP];
	ax_tail_word *words[AX_TAIL_STEP];
	uint32_t	at[AX_TAIL_STEP];
	uint32_t	n;
} step;

/*
 * Claim the next full slots of the window for a step, and seal the empty ones between them.  The
 * place of the first slot that was not looked at, or that has to be looked at again.
 *
 * Latches: the flusher's claim is held.
 */
static uint32_t
take_step(ring *r, window *w, step *p)
{
	uint32_t	i;

	p->n = 0;
	for (i = w->next; i < SLOTS && p->n < AX_TAIL_STEP; i++)
	{
		ax_tail_word *word = &w->slot[place(i)];
		uint64_t	v = atomic_load_explicit(word, memory_order_acquire);

		if (v == AX_T_EMPTY)
		{
			AX_POINT("window.seal");
			if (atomic_compare_exchange_strong(word, &v, AX_T_SEALED))
				continue;
		}
		if ((v & AX_T_STATE) == AX_T_FULL)
			(void) atomic_compare_exchange_strong(word, &v, (v & ~AX_T_STATE) | AX_T_FLUSHING);
		if ((v & AX_T_STATE) == AX_T_CANCELLING)
			break;				/* it may stay after all */
		if ((v & AX_T_STATE) != AX_T_FULL)
			continue;			/* removed */
		p->keys[p->n] = p->buf[p->n];
		(void) key_of(r, w->no << (r->shift + BITS) | (uint64_t) i << r->shift |
					  (v & LOW_BITS) >> LOW_SHIFT, v >> TID_SHIFT, p->buf[p->n]);
		p->words[p->n] = word;
		p->at[p->n++] = i;
	}
	return i;
}

/*
 * Move a step of the oldest window into the tree; when it is empty, unlink it
 * and raise the floor.
 *
 * Latches: the flusher's claim is held; takes the maker's for a moment.
 * Returns: AX_BUSY or AX_NOMEM: the entries that were not moved are FULL
 * again.
 */
static ax_status
window_flush(ax_ctx *cx, ax_store *s, ax_tail *t, bool all, bool *more)
{
	ring	   *r = (ring *) t;
	uint64_t	head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t	least;			/* windows below it are to go */
	window	   *w,
			   *next;
	ax_status	st = AX_OK;

	*more = false;
	all = all || atomic_load_explicit(&t->closed, memory_order_relaxed);
	least = all ? head + 1 : head > LAG ? head - LAG : 0;
	w = oldest(r, atomic_load_explicit(&r->floor, memory_order_relaxed), head);
	if (w && w->no >= least)
		w = NULL;

	if (w)
	{
		step		p;
		uint32_t	done = 0;
		uint32_t	i = take_step(r, w, &p);

		if (p.n)
			st = ax_tail_drain(cx, s, &(ax_keys) {p.keys, NULL, r->keylen, p.n}, p.words, &done);
		else if (i < SLOTS && i == w->next)
			st = AX_BUSY;
		w->next = done < p.n ? p.at[done] : i;
		*more = true;
		if (st != AX_OK || w->next < SLOTS)
			return st;
	}

	/* unlink it, and raise the floor to what follows, if nobody makes one just now */
	if (w)
		st = ax_retire_reserve(cx, 1);
	if (st != AX_OK)
		return st;
	if (!ax_tail_claim(cx, &r->maker))
	{
		*more = w != NULL;
		return AX_OK;
	}
	head = atomic_load_explicit(&r->head, memory_order_relaxed);
	if (w)
	{
		AX_POINT("window.unlink");
		atomic_store_explicit(&r->win[w->no % RING], NULL, memory_order_release);
	}
	next = oldest(r, atomic_load_explicit(&r->floor, memory_order_relaxed), head);
	if (least > head)
		least = head;			/* the newest may be made again */
	if (next && next->no < least)
		least = next->no;
	raise_floor(r, least);
	ax_tail_unclaim(cx, &r->maker);
	if (w)
		ax_retire(cx, s, w, sizeof(*w));
	*more = next && (all || window_due(t));
	return AX_OK;
}

/*
 * Is the closed ring without windows?
 *
 * Latches: takes the maker's claim for a moment.
 */
static bool
window_finished(ax_ctx *cx, ax_tail *t)
{
	ring	   *r = (ring *) t;
	bool		empty = true;

	/* who makes one after this sees that it is closed */
	if (!ax_tail_claim(cx, &r->maker))
		return false;
	for (int k = 0; k < RING; k++)
		if (atomic_load_explicit(&r->win[k], memory_order_relaxed))
			empty = false;
	ax_tail_unclaim(cx, &r->maker);
	return empty;
}

static const ax_tail_kind kind = {
	.name = "window",
	.insert = window_insert,
	.find = window_find,
	.lookup = window_lookup,
	.collect = window_collect,
	.key = window_key,
	.floor = window_floor,
	.live = window_live,
	.due = window_due,
	.flush = window_flush,
	.finished = window_finished
};

ax_tail *
ax_window_new(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, int shift)
{
	uint32_t	n = len - AX_TID_BYTES;
	ring	   *r;
	uint64_t	no;

	if (len > AX_TAIL_KEY_MAX || len < AX_TID_BYTES + 4 || shift > AX_WINDOW_SHIFT_MAX)
		return NULL;
	r = ax_alloc_public(cx, s, sizeof(*r));
	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->keylen = len;
	r->numlen = n >= 8 ? 8 : 4;
	r->plen = n - r->numlen;
	r->shift = (uint32_t) shift;
	memcpy(r->prefix, key, r->plen);
	no = key_number(r, key + r->plen) >> (shift + BITS);
	atomic_init(&r->head, no);
	/* those that are late by a little shall find a place */
	no = no > AHEAD ? no - AHEAD : 0;
	atomic_init(&r->floor, no);
	r->t.kind = &kind;
	r->t.size = sizeof(*r);
	r->t.need_len = n;
	r->t.off = r->plen;
	atomic_init(&r->t.floor8, no << (shift + BITS));
	return &r->t;
}
