/*
 * ax_append.c
 *	  A tail buffer for rising keys of any kind: logs that many append to at once,
 *	  hashed by key.
 *
 * Entries lie in chunks of one object, a log.  A chunk belongs to a stripe, a
 * stripe to the processes of some slots, mostly to one.  To take room is a CAS on a
 * line that nobody else writes.  An entry is written where nobody sees it, then
 * linked into the bucket of its key without the TID.  The CAS on the bucket's head
 * puts it into the index, whole, at one instant.  So there is nothing to wait for:
 * a process that stops in between has only wasted some bytes.  Equal entries meet
 * in the bucket, so a log never has one twice.
 *
 * When a log is full, whoever notices puts an empty one in front of it.
 * Sealing the full one sets a bit in each head.  An inserter that has not
 * linked its entry by then fails in its CAS and goes to the new log.  Linked
 * entries no longer change.  Then the entries are sorted (a stripe's rise by
 * themselves, mostly, so this is a merge of runs).  They go into the tree by
 * the dozen, in their order, and the log is retired.  When there are too many
 * of them the inserts go to the tree: to wait would be no faster.
 *
 * States of an entry are ax_tail.h's, but it is FULL from the beginning: what it is
 * before, nobody knows.
 *
 * src/core/tail/README.md: The tail buffer
 * src/core/tail/README.md: The tail buffer's kinds
 */
#include "core/base/ax_area.h"
#include "core/base/ax_racy.h"
#include "ax_tail.h"

#define HEADS		1024
#define STRIPES		16
#define CHUNK		512
#define CHUNKS		56
#define UNIT		8			/* places are counted in these */
#define ENTRY_MIN	24
#define ENTRIES_MAX	(CHUNKS * CHUNK / ENTRY_MIN)
#define LOGS_MAX	8
#define STEPS_MAX	128			/* entries of its bucket that an insert looks at */

/*
 * A head: the place of the bucket's latest entry, and some bits of its hash
 * that did not choose the bucket.  So most misses read no entry.
 */
#define HEAD_SEALED	0x80000000u
#define HEAD_PLACE	0x0000FFFFu	/* 0: none */
#define HEAD_TAG	0x7FFF0000u

/*
 * Its word has the state, the length, and the place of the entry that was the
 * bucket's latest before.  Its inserter writes all of it before the CAS that links it.
 * Then only the word's state changes, by CAS, as ax_tail.h says.
 */
typedef struct entry
{
	ax_tail_word word;
	uint8_t		key[];
} entry;

#define WORD_LEN(v)		((uint32_t) (v) >> 16)
#define WORD_NEXT(v)	((uint32_t) ((v) >> 32))
#define WORD(state, len, next) \
	((uint64_t) (next) << 32 | (uint64_t) (len) << 16 | (state))

typedef enum phase
{
	OPEN, SEALED, SORTED, OVER
} phase;

typedef struct ax_log
{
	/* its maker, then the flusher (ax_tail.flusher) alone */
	_Atomic(struct ax_log *) older;
	_Atomic uint32_t phase;
	uint32_t	n;				/* entries sorted; from SORTED on */
	uint32_t	next;			/* of them, the first that is not done */
	uint32_t	floor_len,		/* these four: its maker alone */
				opener_len;
	uint8_t		floor[AX_TAIL_KEY_MAX];
	uint8_t		opener[AX_TAIL_KEY_MAX];	/* the key that it was made for */

	/* given out; added to by inserters */
	_Alignas(AX_LINE) _Atomic uint32_t chunks;
	struct
	{
		/* next free byte; 0: no chunk yet; inserters' CAS */
		_Alignas(AX_LINE) _Atomic uint32_t at;
	}			stripe[STRIPES];
	/* latest entry; inserters' CAS while OPEN, the flusher's bit when it seals */
	_Alignas(AX_LINE) _Atomic uint32_t head[HEADS];
	/* places; the flusher, before SORTED */
	_Alignas(AX_LINE) uint16_t order[ENTRIES_MAX];
	/* the first chunk is none; an entry's bytes by its inserter, once */
	_Alignas(AX_LINE) uint8_t bytes[CHUNK * (CHUNKS + 1)];
} ax_log;

#define NO_MORE	((uintptr_t) 1)

typedef struct append_tail
{
	ax_tail		tail;
	/* the newest log, which takes inserts; by CAS.  | NO_MORE: the last one ever, or NULL,
	 * and then it is the flusher's */
	_Alignas(AX_LINE) _Atomic uintptr_t newest;
	_Atomic uint32_t logs;		/* added to by makers of one, and by the flusher */
} append_tail;

static const ax_tail_kind ax_tail_append;

_Static_assert(offsetof(append_tail, tail) == 0, "an append_tail is an ax_tail");
_Static_assert(sizeof(entry) + AX_TAIL_KEY_MAX <= CHUNK, "an entry fits in a chunk");
_Static_assert(sizeof(((ax_log *) 0)->bytes) / UNIT <= HEAD_PLACE, "places fit");

/* ---- small things -------------------------------------------------------------- */

static inline append_tail *
append(ax_tail *t)
{
	return (append_tail *) t;
}

static inline ax_log *
newest_of(ax_tail *t)
{
	return (ax_log *) (atomic_load_explicit(&append(t)->newest, memory_order_acquire) & ~NO_MORE);
}

static inline ax_log *
older_of(ax_log *l)
{
	return atomic_load_explicit(&l->older, memory_order_acquire);
}

static inline uint32_t
phase_of(ax_log *l)
{
	return atomic_load_explicit(&l->phase, memory_order_acquire);
}

static inline uint32_t
head(ax_log *l, uint64_t h)
{
	return atomic_load_explicit(&l->head[h % HEADS], memory_order_acquire);
}

static inline entry *
at(ax_log *l, uint32_t place)
{
	return (entry *) (void *) (l->bytes + place * UNIT);
}

static inline uint64_t
word_of(entry *e)
{
	return atomic_load_explicit(&e->word, memory_order_acquire);
}

/* Both halves of the product: bits spread both ways. */
static inline uint64_t
mix(uint64_t x)
{
	unsigned __int128 y = (unsigned __int128) (x ^ UINT64_C(0x9E3779B97F4A7C15)) *
		UINT64_C(0xD6E8FEB86659FD93);

	return (uint64_t) y ^ (uint64_t) (y >> 64);
}

static inline uint64_t
hash(const uint8_t *p, uint32_t n)
{
	uint64_t	h = n,
				last = n >= 8 ? ax_load8(p + n - 8) : ax_be8(p, n);

	for (; n > 8; p += 8, n -= 8)
		h = mix(h ^ ax_load8(p));
	return mix(h ^ last);
}

static inline uint32_t
tag_of(uint64_t h)
{
	return (uint32_t) (h >> 32 << 16) & HEAD_TAG;
}

/* Of a head: where the latest entry is that may have this hash; 0: none. */
static inline uint32_t
first_of(ax_log *l, uint32_t v, uint64_t h)
{
	uint32_t	place = v & HEAD_PLACE;

	if (place && (v & HEAD_TAG) != tag_of(h))
		place = WORD_NEXT(word_of(at(l, place)));
	return place;
}

static inline int
cmp_keys(const uint8_t *a, uint32_t na, const uint8_t *b, uint32_t nb)
{
	int			c = memcmp(a, b, na < nb ? na : nb);

	return c ? c : (na > nb) - (na < nb);
}

/* Is the key in front of the position (< 0), or behind it (> 0)? */
static inline int
cmp_bound(const uint8_t *key, uint32_t len, const ax_bound *b)
{
	int			c = b->len ? memcmp(key, b->key, len < b->len ? len : b->len) : 0;

	return c ? c : len < b->len || b->after ? -1 : 1;
}

/* ---- making --------------------------------------------------------------------- */

/*
 * Make a log whose floor and opener are these keys.  NULL: no memory, which is
 * no failure of the call.
 */
static ax_log *
log_new(ax_ctx *cx, ax_store *s, const uint8_t *floor, uint32_t len,
		const uint8_t *opener, uint32_t opener_len)
{
	ax_ctx_body *b = ax_body(cx);
	ax_log	   *l = ax_alloc_public(cx, s, sizeof(ax_log));

	if (!l)
	{
		/* no failure of the call: the key goes to the tree */
		b->alloc_busy = b->alloc_injected = false;
		return NULL;
	}
	/* all but the order and the entries */
	memset(l, 0, offsetof(ax_log, order));
	memcpy(l->floor, floor, len);
	l->floor_len = len;
	memcpy(l->opener, opener, opener_len);
	l->opener_len = opener_len;
	atomic_init(&l->chunks, 1);
	/* linked by one atomic operation, which a lock checker does not see */
	ax_map_unchecked(l, sizeof(*l));
	return l;
}

static inline uint64_t
floor8(const ax_log *l, uint32_t off)
{
	return l->floor_len > off ? ax_be8(l->floor + off, l->floor_len - off) : 0;
}

ax_tail *
ax_append_new(ax_ctx *cx, ax_store *s, const uint8_t *floor, uint32_t len, uint32_t off)
{
	append_tail *t = ax_alloc_public(cx, s, sizeof(append_tail));
	ax_log	   *l;

	if (!t)
	{
		ax_body(cx)->alloc_busy = ax_body(cx)->alloc_injected = false;
		return NULL;
	}
	AX_ENSURE(ax_body(cx), len <= AX_TAIL_KEY_MAX && off <= len);
	l = log_new(cx, s, floor, len, floor, len);
	if (!l)
	{
		ax_unalloc(cx, s, t, sizeof(*t));
		return NULL;
	}
	memset(t, 0, sizeof(*t));
	t->tail.kind = &ax_tail_append;
	t->tail.off = off;
	t->tail.size = sizeof(*t);
	atomic_init(&t->tail.floor8, floor8(l, off));
	atomic_init(&t->newest, (uintptr_t) l);
	atomic_init(&t->logs, 1);
	ax_map_unchecked(t, sizeof(*t));
	return &t->tail;
}

/* ---- inserting ------------------------------------------------------------------ */

/*
 * Room in this process's stripe; a place, 0: there is none left.  It is never
 * given back: it goes with the log.
 */
static uint32_t
take_tail_room(ax_ctx *cx, ax_log *l, uint32_t bytes)
{
	_Atomic uint32_t *w = &l->stripe[(uint32_t) ax_body(cx)->slotno % STRIPES].at;
	uint32_t	cur = atomic_load_explicit(w, memory_order_relaxed),
				fresh = 0;

	for (;;)
	{
		uint32_t	from = cur;

		/* a multiple of CHUNK is the end of one that is full to its last byte */
		if (from % CHUNK == 0 || from % CHUNK + bytes > CHUNK)
		{
			if (fresh == 0)
			{
				fresh = atomic_load_explicit(&l->chunks, memory_order_relaxed);
				if (fresh <= CHUNKS)
					fresh = atomic_fetch_add_explicit(&l->chunks, 1, memory_order_relaxed);
				if (fresh > CHUNKS)
					return 0;
			}
			from = fresh * CHUNK;
		}
		if (atomic_compare_exchange_strong_explicit(w, &cur, from + bytes,
													memory_order_relaxed,
													memory_order_relaxed))
			return from / UNIT;
		/* another was faster: the chunk is ours alone, for this entry only */
		if (fresh)
			return fresh * CHUNK / UNIT;
	}
}

/*
 * The entry of this key that is there, from a place on up to another one; NULL also
 * after so many *steps.
 */
static inline entry *
find_window(ax_log *l, uint32_t place, uint32_t end, const uint8_t *key, uint32_t len, uint32_t *steps)
{
	for (; place != end && *steps > 0; (*steps)--)
	{
		entry	   *e = at(l, place);
		uint64_t	v = word_of(e);

		if (WORD_LEN(v) == len && ax_tail_is_there(v) && ax_equal(e->key, key, len))
			return e;
		place = WORD_NEXT(v);
	}
	return NULL;
}

/*
 * As kind->insert, into one log.  AX_STALE: it is sealed; AX_NOMEM: full.
 */
static ax_status
insert_into(ax_ctx *cx, ax_log *l, uint64_t h, const uint8_t *key, uint32_t len, uint32_t *steps)
{
	_Atomic uint32_t *bucket = &l->head[h % HEADS];
	uint32_t	v = head(l, h),
				seen = v & HEAD_PLACE,
				place;
	entry	   *e;

	if (v & HEAD_SEALED)
		return AX_STALE;
	if (find_window(l, first_of(l, v, h), 0, key, len, steps))
		return AX_EXISTS;
	if (*steps == 0)
		return AX_CHANGED;
	place = take_tail_room(cx, l, len + sizeof(entry) < ENTRY_MIN ? ENTRY_MIN
						   : ((uint32_t) sizeof(entry) + len + UNIT - 1) / UNIT * UNIT);
	if (!place)
		return AX_NOMEM;
	e = at(l, place);
	ax_copy_few(e->key, key, len);
	AX_POINT("append.written");
	for (;;)
	{
		atomic_store_explicit(&e->word, WORD(AX_T_FULL, len, seen), memory_order_relaxed);
		if (atomic_compare_exchange_strong_explicit(bucket, &v, place | tag_of(h),
													memory_order_acq_rel,
													memory_order_acquire))
			return AX_OK;
		if (v & HEAD_SEALED)
			return AX_STALE;
		if (find_window(l, v & HEAD_PLACE, seen, key, len, steps))
			return AX_EXISTS;
		if (*steps == 0)
			return AX_CHANGED;
		seen = v & HEAD_PLACE;
	}
}

/* An empty log in front of one that takes no more.  False: there is to be none. */
static bool
renew(ax_ctx *cx, ax_store *s, ax_tail *t, ax_log *l, const uint8_t *key, uint32_t len)
{
	append_tail *a = append(t);
	uintptr_t	was = (uintptr_t) l;
	const uint8_t *floor = key;
	uint32_t	floor_len = len;
	ax_log	   *n;

	if (atomic_load_explicit(&t->closed, memory_order_acquire))
		return false;
	if (atomic_load_explicit(&a->newest, memory_order_acquire) != was)
		return true;
	if (atomic_load_explicit(&a->logs, memory_order_relaxed) >= LOGS_MAX)
		return false;

	/*
	 * A key that comes late by less than the length of a log shall still find
	 * its place.  So the floor is where the keys were when the full one was
	 * made.  One key that is far ahead of all others must not raise it; and it
	 * never falls.
	 */
	if (cmp_keys(l->opener, l->opener_len, floor, floor_len) < 0)
	{
		floor = l->opener;
		floor_len = l->opener_len;
	}
	if (cmp_keys(l->floor, l->floor_len, floor, floor_len) > 0)
	{
		floor = l->floor;
		floor_len = l->floor_len;
	}
	n = log_new(cx, s, floor, floor_len, key, len);
	if (!n)
		return false;
	atomic_init(&n->older, l);
	/* counted before a flusher can unlink it, which subtracts: never less than zero */
	atomic_fetch_add_explicit(&a->logs, 1, memory_order_relaxed);
	AX_POINT("append.renew");
	if (!atomic_compare_exchange_strong_explicit(&a->newest, &was, (uintptr_t) n,
												 memory_order_acq_rel,
												 memory_order_relaxed))
	{
		atomic_fetch_sub_explicit(&a->logs, 1, memory_order_relaxed);
		ax_unalloc(cx, s, n, sizeof(*n));
		return true;
	}
	AX_POINT("append.renewed");
	return true;
}

/*
 * Insert into the newest log.  AX_CHANGED: not here, the key is the tree's.
 *
 * Order: the CAS in insert_into() publishes the entry.
 */
static ax_status
append_insert(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *key, uint32_t len)
{
	/*
	 * A key may have so many TIDs that to look for this one costs more than
	 * the tree does: one transaction's time, say.  Then the others go there.
	 * One may be here, too, then, where nobody got: it is in both.
	 */
	uint32_t	steps = STEPS_MAX;
	uint64_t	h;

	if (len > AX_TAIL_KEY_MAX)
		return AX_CHANGED;
	h = hash(key, len - AX_TID_BYTES);
	/* a second log may be full, too, by the time that we get there */
	for (int i = 0; i < 3; i++)
	{
		ax_log	   *l = newest_of(t);
		ax_status	r;

		if (!l || cmp_keys(key, len, l->floor, l->floor_len) < 0 ||
			len < t->off || memcmp(key, l->floor, t->off) != 0)
			return AX_CHANGED;

		/*
		 * Here already?  Somebody may be putting it into an older one just now: then it
		 * is in both, as it could be in the tree.
		 */
		for (ax_log *o = older_of(l); o; o = older_of(o))
			if (find_window(o, first_of(o, head(o, h), h), 0, key, len, &steps))
				return AX_EXISTS;
		r = steps ? insert_into(cx, l, h, key, len, &steps) : AX_CHANGED;
		if (r == AX_OK || r == AX_EXISTS || r == AX_CHANGED)
			return r;
		if (!renew(cx, s, t, l, key, len))
			break;
	}
	return AX_CHANGED;
}

/* ---- reading -------------------------------------------------------------------- */

/*
 * The word of a key's entry; with "last", of the next one behind that in an
 * older log.
 */
static ax_tail_word *
append_find(ax_tail *t, const uint8_t *key, uint32_t len, ax_tail_word *last)
{
	uint64_t	h = hash(key, len - AX_TID_BYTES);

	for (ax_log *l = newest_of(t); l; l = older_of(l))
	{
		uint32_t	steps = UINT32_MAX;
		entry	   *e;

		/* one of a log has no other like it in that log */
		if (last && (char *) last > (char *) l && (char *) last < (char *) (l + 1))
			last = NULL;
		else if (!last && (e = find_window(l, first_of(l, head(l, h), h), 0, key, len, &steps)) != NULL)
			return &e->word;
	}
	/* the log of the last one may have been unlinked, and then all behind it, too */
	return NULL;
}

/* Into rising numbers, if it is new and among the lowest max. */
static uint32_t
keep_tid(uint64_t *tids, uint32_t n, uint32_t max, uint64_t tid, bool *more)
{
	uint32_t	lo = 0,
				hi = n;

	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (tids[mid] < tid)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < n && tids[lo] == tid)
		return n;
	if (n == max)
	{
		*more = true;
		if (lo == n)
			return n;
		n--;
	}
	memmove(tids + lo + 1, tids + lo, (n - lo) * sizeof(*tids));
	tids[lo] = tid;
	return n + 1;
}

/*
 * The latest come first, so what was inserted in order is met backwards: turned round
 * it is sorted, or nearly so.  Distinct ones remain.
 */
static uint32_t
order_tids(uint64_t *tids, uint32_t n)
{
	uint32_t	k = 0;

	for (uint32_t i = 0; i < n / 2; i++)
	{
		uint64_t	x = tids[i];

		tids[i] = tids[n - 1 - i];
		tids[n - 1 - i] = x;
	}
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	x = tids[i];
		uint32_t	j = k;

		while (j > 0 && tids[j - 1] > x)
			j--;
		if (j > 0 && tids[j - 1] == x)
			continue;
		for (uint32_t m = k; m > j; m--)
			tids[m] = tids[m - 1];
		tids[j] = x;
		k++;
	}
	return k;
}

/*
 * Look up the TIDs of a prefix: all that there is room for, else the lowest.
 */
static uint32_t
append_lookup(ax_tail *t, const uint8_t *prefix, uint32_t len, uint64_t *tids,
			  uint32_t max, bool *more)
{
	uint64_t	h = hash(prefix, len);
	uint32_t	n = 0;
	bool		ordered = false;

	*more = false;
	for (ax_log *l = newest_of(t); l; l = older_of(l))
	{
		uint32_t	place = first_of(l, head(l, h), h);

		while (place)
		{
			entry	   *e = at(l, place);
			uint64_t	v = word_of(e);

			place = WORD_NEXT(v);
			if (WORD_LEN(v) != len + AX_TID_BYTES || !ax_tail_is_there(v) ||
				!ax_equal(e->key, prefix, len))
				continue;
			if (!ordered && n < max)
			{
				tids[n++] = ax_tid_at(e->key + WORD_LEN(v));
				continue;
			}
			/* too many: from here on the lowest are kept */
			if (!ordered)
				n = order_tids(tids, n);
			ordered = true;
			n = keep_tid(tids, n, max, ax_tid_at(e->key + WORD_LEN(v)), more);
		}
	}
	return ordered || n < 2 ? n : order_tids(tids, n);
}

/*
 * Eight bytes of a key from the tail's "off" on, as a number.  Less than eight: as if
 * zeros followed.
 */
static inline uint64_t
number_of(const uint8_t *key, uint32_t len, uint32_t off)
{
	return ax_be8(key + off, len - off);
}

/*
 * And of a position: entries with a lower number lie in front of it, those with a
 * higher one behind it.  An equal one says nothing.  All entries have their first
 * "off" bytes in common with the log's floor.
 */
static uint64_t
number_of_bound(const ax_log *l, uint32_t off, const ax_bound *b)
{
	uint32_t	n = b->len < off ? b->len : off;
	int			c = n ? memcmp(b->key, l->floor, n) : 0;
	uint64_t	x;

	if (c)
		return c < 0 ? 0 : UINT64_MAX;
	/* it is a beginning of all of them */
	if (b->len <= off)
		return b->after ? UINT64_MAX : 0;
	x = number_of(b->key, b->len, off);
	if (b->after && b->len - off < 8)
		x |= UINT64_MAX >> 8 * (b->len - off);
	return x;
}

/*
 * A collection: the first "max" of what is met, as a heap whose top is the last in the
 * order of the scan.
 */
typedef struct collection
{
	ax_tail_item *heap;
	uint32_t	n,
				max;
	uint32_t	off;			/* of the tail */
	uint64_t	top;			/* when there are "max": the number of the heap's top */
	bool		backward,
				more;
} collection;

static inline bool
behind(const collection *c, const ax_tail_item *x, const ax_tail_item *y)
{
	int			d = cmp_keys(x->key, x->len, y->key, y->len);

	return c->backward ? d < 0 : d > 0;
}

/* x into a heap of n, at i or below. */
static void
sift_down(collection *c, uint32_t n, uint32_t i, ax_tail_item x)
{
	for (;;)
	{
		uint32_t	child = 2 * i + 1;

		if (child >= n)
			break;
		if (child + 1 < n && behind(c, &c->heap[child + 1], &c->heap[child]))
			child++;
		if (!behind(c, &c->heap[child], &x))
			break;
		c->heap[i] = c->heap[child];
		i = child;
	}
	c->heap[i] = x;
}

static void
sift_up(collection *c, uint32_t i, ax_tail_item x)
{
	while (i > 0 && behind(c, &x, &c->heap[(i - 1) / 2]))
	{
		c->heap[i] = c->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	c->heap[i] = x;
}

/* False: neither this one nor any that is behind it can be among the first. */
static bool
among_first(collection *c, entry *e, uint64_t v)
{
	ax_tail_item x = {.key = e->key, .len = WORD_LEN(v)};

	if (c->n < c->max)
	{
		sift_up(c, c->n, x);
		c->n++;
	}
	else
	{
		c->more = true;
		if (c->max == 0 || !behind(c, &c->heap[0], &x))
			return false;
		sift_down(c, c->n, 0, x);
	}
	if (c->n == c->max)
		c->top = number_of(c->heap[0].key, c->heap[0].len, c->off);
	return true;
}

/* Of a sorted log: from where the scan begins. */
static void
collect_sorted(collection *c, ax_log *l, const ax_bound *start, const ax_bound *end)
{
	uint32_t	lo = 0,
				hi = l->n;

	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;
		entry	   *e = at(l, l->order[mid]);

		if (cmp_bound(e->key, WORD_LEN(word_of(e)), start) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (c->backward ? lo > 0 : lo < l->n)
	{
		entry	   *e = at(l, l->order[c->backward ? --lo : lo++]);
		uint64_t	v = word_of(e);
		int			d = cmp_bound(e->key, WORD_LEN(v), end);

		if (c->backward ? d < 0 : d > 0)
			break;
		if (ax_tail_is_there(v) && !among_first(c, e, v))
			break;
	}
}

/*
 * Of one that may still take entries.  A log is left out whose floor is not in
 * front of the scan's end.  The floor was there before the log was, and never
 * changes.  Every insert compares with it before it links.  So nothing that
 * the scan wants is or will be in there.  To leave out those that lie before the
 * scan's beginning, too, all inserters would have to write one highest key.  The
 * stripes are there to avoid that.
 *
 * Of an entry the number mostly decides.  Key and length of one that is linked never
 * change: so nothing is missed that two comparisons would have found.
 */
static void
collect_unsorted(collection *c, ax_log *l, const ax_bound *lo, const ax_bound *hi)
{
	const ax_bound floor = {.key = l->floor,.len = l->floor_len,.after = false};
	const uint64_t lo8 = number_of_bound(l, c->off, lo),
				hi8 = number_of_bound(l, c->off, hi);

	if (ax_bound_cmp(hi, &floor) <= 0)
		return;
	for (uint32_t i = 0; i < HEADS; i++)
	{
		uint32_t	place = head(l, i) & HEAD_PLACE;

		while (place)
		{
			entry	   *e = at(l, place);
			uint64_t	v = word_of(e);
			uint64_t	x = number_of(e->key, WORD_LEN(v), c->off);

			place = WORD_NEXT(v);
			if (!ax_tail_is_there(v) || x < lo8 || x > hi8 ||
				(x == lo8 && cmp_bound(e->key, WORD_LEN(v), lo) <= 0) ||
				(x == hi8 && cmp_bound(e->key, WORD_LEN(v), hi) >= 0))
				continue;
			/* behind all of those that are kept */
			if (c->n == c->max && c->n > 0 && (c->backward ? x < c->top : x > c->top))
				c->more = true;
			else
				(void) among_first(c, e, v);
		}
	}
}

/*
 * Copy the entries between two positions, in order, at most "max" of them:
 * those nearest the scan's beginning.
 */
static uint32_t
append_collect(ax_tail *t, const ax_bound *lo, const ax_bound *hi, bool backward,
			   ax_tail_item *items, uint32_t max, bool *more)
{
	collection	c = {.heap = items, .max = max, .off = t->off, .backward = backward};
	uint32_t	n = 0;

	for (ax_log *l = newest_of(t); l; l = older_of(l))
		switch (phase_of(l))
		{
			case OPEN:
			case SEALED:
				collect_unsorted(&c, l, lo, hi);
				break;
			case SORTED:
				collect_sorted(&c, l, backward ? hi : lo, backward ? lo : hi);
				break;
			default:
				break;
		}
	/* from a heap to an order: the last one goes to the end, and so on */
	for (uint32_t left = c.n; left > 1; left--)
	{
		ax_tail_item x = items[left - 1];

		items[left - 1] = items[0];
		sift_down(&c, left - 1, 0, x);
	}
	/* what is in two logs, once */
	for (uint32_t i = 0; i < c.n; i++)
		if (n == 0 || cmp_keys(items[n - 1].key, items[n - 1].len, items[i].key, items[i].len) != 0)
		{
			items[n] = items[i];
			items[n].tid = ax_tid_at(items[n].key + items[n].len);
			n++;
		}
	*more = c.more;
	return n;
}

/* The key of every item is in the log. */
static uint32_t
append_key(ax_tail *t, const ax_tail_item *item, uint8_t *buf)
{
	memcpy(buf, item->key, item->len);
	return item->len;
}

/* NULL: there is none any more. */
static ax_log *
oldest_of(ax_tail *t)
{
	ax_log	   *l = newest_of(t),
			   *o;

	while (l && (o = older_of(l)) != NULL)
		l = o;
	return l;
}

static uint32_t
append_floor(ax_tail *t, uint8_t *buf)
{
	ax_log	   *l = oldest_of(t);

	if (!l)
		return 0;
	memcpy(buf, l->floor, l->floor_len);
	return l->floor_len;
}

/* How many entries there are, counted one by one. */
static uint64_t
append_live(ax_tail *t)
{
	uint64_t	n = 0;

	for (ax_log *l = newest_of(t); l; l = older_of(l))
		for (uint32_t i = 0; i < HEADS; i++)
		{
			uint32_t	place = head(l, i) & HEAD_PLACE;

			while (place)
			{
				uint64_t	v = word_of(at(l, place));

				n += ax_tail_is_there(v);
				place = WORD_NEXT(v);
			}
		}
	return n;
}

/* ---- flushing ------------------------------------------------------------------- */

/* Nothing is linked from here on. */
static void
seal_tail(ax_log *l)
{
	for (uint32_t i = 0; i < HEADS; i++)
	{
		(void) atomic_fetch_or_explicit(&l->head[i], HEAD_SEALED, memory_order_acq_rel);
		if (i == HEADS / 2)
			AX_POINT("append.sealing");
	}
	atomic_store_explicit(&l->phase, SEALED, memory_order_release);
}

#define ITEM_PLACE(x)	((uint32_t) (x) & HEAD_PLACE)

/*
 * Items: six bytes of the key from "skip" on, and the entry's place.  Up to there
 * all keys are the same.
 */
static inline bool
item_less(ax_log *l, uint64_t x, uint64_t y, uint32_t skip)
{
	entry	   *e,
			   *f;

	if (ax_likely((x ^ y) > HEAD_PLACE))
		return x < y;
	e = at(l, ITEM_PLACE(x));
	f = at(l, ITEM_PLACE(y));
	return cmp_keys(e->key + skip, WORD_LEN(word_of(e)) - skip,
					f->key + skip, WORD_LEN(word_of(f)) - skip) < 0;
}

/* Merge two sorted runs of places. */
static inline void
merge_sorted(ax_log *l, const uint64_t *x, uint32_t nx, const uint64_t *y, uint32_t ny,
			 uint64_t *out, uint32_t skip)
{
	while (nx && ny)
		if (item_less(l, *y, *x, skip))
		{
			*out++ = *y++;
			ny--;
		}
		else
		{
			*out++ = *x++;
			nx--;
		}
	memcpy(out, x, nx * sizeof(*x));
	memcpy(out + nx, y, ny * sizeof(*y));
}

/* The order of what is linked. */
static void
sort_keys(ax_log *l)
{
	uint64_t	linked[(sizeof(l->bytes) / UNIT + 63) / 64] = {0};
	uint64_t	one[ENTRIES_MAX],
				two[ENTRIES_MAX];
	uint64_t   *v = one,
			   *w = two;
	uint16_t	run[ENTRIES_MAX + 1];	/* where each begins */
	uint32_t	n = 0,
				runs = 0,
				skip = 0;
	entry	   *first = NULL;

	/* in the order in which room was taken: there the runs are */
	for (uint32_t i = 0; i < HEADS; i++)
	{
		uint32_t	place = head(l, i) & HEAD_PLACE;

		for (; place; place = WORD_NEXT(word_of(at(l, place))))
			linked[place / 64] |= UINT64_C(1) << place % 64;
	}
	for (uint32_t i = 0; i < sizeof(linked) / sizeof(linked[0]); i++)
		for (uint64_t bits = linked[i]; bits; bits &= bits - 1)
		{
			uint32_t	place = 64 * i + (uint32_t) __builtin_ctzll(bits),
						same = 0;
			entry	   *e = at(l, place);

			v[n++] = place;
			if (!first)
			{
				first = e;
				skip = WORD_LEN(word_of(e));
			}
			/* no key is a prefix of another: none ends before they differ */
			while (same < skip && e->key[same] == first->key[same])
				same++;
			skip = same;
		}
	for (uint32_t i = 0; i < n; i++)
	{
		entry	   *e = at(l, (uint32_t) v[i]);

		v[i] |= ax_be8(e->key + skip, WORD_LEN(word_of(e)) - skip) & ~(uint64_t) HEAD_PLACE;
		if (i == 0 || item_less(l, v[i], v[i - 1], skip))
			run[runs++] = (uint16_t) i;
	}
	while (runs > 1)
	{
		uint32_t	out = 0;

		run[runs] = (uint16_t) n;
		for (uint32_t r = 0; r < runs; r += 2)
		{
			uint32_t	from = run[r],
						mid = run[r + 1],
						to = r + 1 < runs ? run[r + 2] : mid;

			run[out++] = (uint16_t) from;
			merge_sorted(l, v + from, mid - from, v + mid, to - mid, w + from, skip);
		}
		runs = out;
		v = w;
		w = v == one ? two : one;
	}
	for (uint32_t i = 0; i < n; i++)
		l->order[i] = (uint16_t) ITEM_PLACE(v[i]);
	l->n = n;
	l->next = 0;
	atomic_store_explicit(&l->phase, SORTED, memory_order_release);
}

/* Some entries into the tree. */
static ax_status
move(ax_ctx *cx, ax_store *s, ax_log *l)
{
	const uint8_t *keys[AX_TAIL_STEP];
	uint32_t	lens[AX_TAIL_STEP];
	ax_tail_word *words[AX_TAIL_STEP];
	uint32_t	where[AX_TAIL_STEP];	/* in "order" */
	uint32_t	n = 0,
				done = 0,
				i;
	ax_status	r;

	for (i = l->next; i < l->n && n < AX_TAIL_STEP; i++)
	{
		entry	   *e = at(l, l->order[i]);
		uint64_t	v = word_of(e);

		/* who removes it now, waits */
		while ((v & AX_T_STATE) == AX_T_FULL &&
			   !atomic_compare_exchange_weak_explicit(&e->word, &v,
													  v - AX_T_FULL + AX_T_FLUSHING,
													  memory_order_acq_rel,
													  memory_order_acquire))
			;
		if ((v & AX_T_STATE) == AX_T_CANCELLING)
			break;				/* it may yet stay: no further than this */
		if ((v & AX_T_STATE) != AX_T_FULL)
			continue;
		keys[n] = e->key;
		lens[n] = WORD_LEN(v);
		words[n] = &e->word;
		where[n++] = i;
	}
	if (n)
		r = ax_tail_drain(cx, s, &(ax_keys) {keys, lens, 0, n}, words, &done);
	else
		r = i == l->next && i < l->n ? AX_BUSY : AX_OK;
	l->next = done < n ? where[done] : i;
	if (l->next == l->n)
		atomic_store_explicit(&l->phase, OVER, memory_order_release);
	/* some were moved: that is no failure */
	return done ? AX_OK : r;
}

/*
 * A log that is over: unlink it.  Only the flusher unlinks, and at the front there
 * are only additions.
 */
static ax_status
unlink_log(ax_ctx *cx, ax_store *s, ax_tail *t, ax_log *l)
{
	append_tail *a = append(t);
	uintptr_t	last = (uintptr_t) l | NO_MORE;
	ax_log	   *n = newest_of(t);
	ax_status	r = ax_retire_reserve(cx, 1);

	if (r != AX_OK)
		return r;
	if (n == l)
	{
		/* nobody puts one in front of the last */
		AX_ENSURE(ax_body(cx), atomic_load_explicit(&a->newest, memory_order_relaxed) == last);
		atomic_store_explicit(&a->newest, NO_MORE, memory_order_release);
	}
	else
	{
		while (older_of(n) != l)
			n = older_of(n);
		atomic_store_explicit(&n->older, NULL, memory_order_release);
		/* all below it is in the tree */
		atomic_store_explicit(&t->floor8, floor8(n, t->off), memory_order_release);
	}
	atomic_fetch_sub_explicit(&a->logs, 1, memory_order_relaxed);
	ax_retire(cx, s, l, sizeof(*l));
	return AX_OK;
}

/* Of a closed one: let nobody put another log in front of l.  False: somebody has. */
static bool
is_last(ax_tail *t, ax_log *l)
{
	uintptr_t	was = (uintptr_t) l;

	AX_POINT("append.last");
	return atomic_compare_exchange_strong_explicit(&append(t)->newest, &was, was | NO_MORE,
												   memory_order_acq_rel,
												   memory_order_acquire) ||
		was == ((uintptr_t) l | NO_MORE);
}

/*
 * Empties the buffer.  One log at a time, the oldest: sealed, sorted, moved by steps,
 * unlinked.
 */
static ax_status
append_flush(ax_ctx *cx, ax_store *s, ax_tail *t, bool all, bool *more)
{
	ax_log	   *l = oldest_of(t);
	bool		closed = atomic_load_explicit(&t->closed, memory_order_acquire);
	ax_status	r = AX_OK;

	*more = false;
	if (!l || (l == newest_of(t) && !all && !closed))
		return AX_OK;
	switch (phase_of(l))
	{
		case OPEN:
			seal_tail(l);
			break;
		case SEALED:
			sort_keys(l);
			break;
		case SORTED:
			r = move(cx, s, l);
			break;
		default:
			break;
	}
	/* an open one keeps its newest log, that the inserts have a floor to compare with */
	if (r == AX_OK && phase_of(l) == OVER &&
		(l != newest_of(t) || (closed && is_last(t, l))))
		r = unlink_log(cx, s, t, l);
	l = oldest_of(t);
	*more = l && (closed || l != newest_of(t) || (all && phase_of(l) != OVER));
	return r;
}

static bool
append_due(ax_tail *t)
{
	ax_log	   *l = newest_of(t);

	return l && older_of(l);
}

static bool
append_finished(ax_ctx *cx, ax_tail *t)
{
	return atomic_load_explicit(&append(t)->newest, memory_order_acquire) == NO_MORE;
}

static const ax_tail_kind ax_tail_append = {
	.name = "append",
	.insert = append_insert,
	.find = append_find,
	.lookup = append_lookup,
	.collect = append_collect,
	.key = append_key,
	.floor = append_floor,
	.live = append_live,
	.due = append_due,
	.flush = append_flush,
	.finished = append_finished
};
