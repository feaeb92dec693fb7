/*
 * ax_tail_auto.c
 *	  When there is a tail buffer, and of which kind.
 *
 * About every 64th insert of a process is looked at; a round is ROUND of
 * these, of one tree, by whoever makes them.  Keys rise when nearly all of a
 * round lie above the highest key that had been seen a round or two before.
 * That holds also for keys that come out of order, from sequences with a
 * cache, or with gaps.  Or, sooner, they rise when each lies above all before
 * it.  With random keys there is practically never such a round.  The keys
 * that lie just below the last one then tell which kind of buffer they want.
 *
 * A buffer that most inserts go beside is closed, and another round is
 * waited for, longer each time.
 *
 * src/core/tail/README.md: The tail buffer
 */
#include "core/base/ax_area.h"
#include "ax_tail.h"

#define ROUND		16
#define MOST		13			/* of a round */
#define EVERY		64
#define SEEN		64			/* bytes of a key that are compared */
#define SMALL		(64 * 1024) /* bytes of a tree that gets none under "auto" */
#define ROOM		(512 * 1024)	/* bytes below its cap that a tree must have for one */
#define QUIET_NS	UINT64_C(10000000000)	/* a round that takes so long */
#define NEAR		64			/* keys that are looked at for the kind */
#define DENSE		16			/* slots for an entry, at most */
#define REST_MAX	64			/* rounds from one buffer to the next */
#define JUDGE		1024		/* inserts from one judgement to the next */

typedef struct ax_sampler
{
	_Atomic uint32_t claim;		/* guards the rest; only tried */
	uint32_t	n;				/* looked at in this round */
	uint32_t	above;			/* of these, above "before" */
	uint32_t	rises;			/* and above all of the round */
	uint32_t	rest;			/* rounds to wait */
	uint32_t	next_rest;
	uint32_t	toplen,
				lastlen,
				beforelen;
	uint64_t	began;			/* the round */
	uint64_t	judged_in,
				judged_beside;
	uint8_t		top[SEEN];		/* the highest key of this round, so far */
	uint8_t		last[SEEN];		/* up to the last one */
	uint8_t		before[SEEN];	/* up to the one before */
} ax_sampler;

static bool
higher(const uint8_t *a, uint32_t alen, const uint8_t *b, uint32_t blen)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	return c ? c > 0 : alen > blen;
}

static void
remember_key(uint8_t *to, uint32_t *tolen, const uint8_t *key, uint32_t len)
{
	*tolen = len < SEEN ? len : SEEN;
	memcpy(to, key, *tolen);
}

static bool
has_open(ax_store *s)
{
	ax_tail    *t = atomic_load_explicit(&s->tail, memory_order_acquire);

	return t && !atomic_load_explicit(&t->closed, memory_order_relaxed);
}

/* ---- which kind ---- */

static uint64_t
be_number(const uint8_t *p, uint32_t n)
{
	uint64_t	x = 0;

	for (uint32_t i = 0; i < n; i++)
		x = x << 8 | p[i];
	return x;
}

/* The nature of the keys just below one, that one among them. */
typedef struct likes
{
	int			shift;			/* of a window for them */
	bool		few;			/* there are too few to tell */
	uint32_t	off;			/* so many of their first bytes are the same, behind which
								 * there is nothing but a number; or 0 */
	uint32_t	floorlen;		/* the lowest of them */
	uint8_t		floor[AX_TAIL_KEY_MAX];
} likes;

/*
 * The gaps between "got" keys, sorted: are there as many keys as a window wants?  *shift:
 * of the window.
 */
static bool
dense_enough(const uint64_t *gap, uint32_t got, int *shift)
{
	uint64_t	low = gap[got / 8];
	uint64_t	sum = 0;

	if (low == 0)
		return false;			/* several entries of a number */
	*shift = 63 - __builtin_clzll(low);
	if (*shift > AX_WINDOW_SHIFT_MAX)
		*shift = AX_WINDOW_SHIFT_MAX;

	/*
	 * Nor are they dense when there is much room between some: digits, of which ten
	 * follow each other and 246 do not.  One may be far away.
	 */
	for (uint32_t i = 0; i < got - 1; i++)
		sum += gap[i] >> *shift;
	return gap[got / 2] >> *shift <= DENSE && sum <= (uint64_t) DENSE * got;
}

/*
 * Does a window do for keys like this one?  False: they are no such numbers, too far
 * apart, or too many of them alike.
 */
static bool
fits_window(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, likes *like)
{
	uint64_t	tids[NEAR];
	uint32_t	key_off[NEAR + 1];
	uint8_t		keybuf[4096],
				lastkey[1024];
	ax_batch	b = {
		.hi = {.key = key,.len = len,.after = true},.backward = true,.want_keys = true,
		.max = NEAR,.tids = tids,.key_off = key_off,.keybuf = keybuf,
		.keybuf_size = sizeof(keybuf),.lastkey = lastkey,.lastkey_size = sizeof(lastkey)
	};
	uint32_t	n = len - AX_TID_BYTES;
	uint32_t	numlen = n >= 8 ? 8 : 4;
	uint32_t	plen = n - numlen;
	ax_tail    *t = atomic_load_explicit(&s->tail, memory_order_acquire);
	uint64_t	gap[NEAR];
	uint64_t	prev;
	uint32_t	got = 0;

	like->shift = 0;
	like->few = true;
	like->off = 0;
	like->floorlen = len;
	memcpy(like->floor, key, len);
	if (n < 4)
		return false;
	prev = be_number(key + plen, numlen);
	if ((t ? ax_tail_scan(cx, s, t, &b) : s->engine->scan(cx, s, &b)) != AX_OK)
		return false;
	for (uint32_t i = 0; i < b.n; i++)
	{
		const uint8_t *k = keybuf + key_off[i];
		uint64_t	x,
					g;
		uint32_t	j;

		if (key_off[i + 1] - key_off[i] != len || memcmp(k, key, plen) != 0)
			continue;
		x = be_number(k + plen, numlen);
		g = prev - x;
		prev = x;
		/* sorted, by insertion */
		for (j = got++; j > 0 && gap[j - 1] > g; j--)
			gap[j] = gap[j - 1];
		gap[j] = g;
	}
	if (b.n > 0 && key_off[b.n] - key_off[b.n - 1] <= AX_TAIL_KEY_MAX)
	{
		like->floorlen = key_off[b.n] - key_off[b.n - 1];
		memcpy(like->floor, keybuf + key_off[b.n - 1], like->floorlen);
		if (got == b.n && numlen == 8)
			like->off = plen;
	}
	if (got < 8)
	{
		like->few = b.n < 8;
		return false;
	}
	like->few = false;
	return got >= b.n * 3 / 4 && dense_enough(gap, got, &like->shift);
}

/*
 * Near its cap a tree gets no buffer.  The memory of one is the tree's before
 * long, and ax_tail_close would give it up, and it would be opened again, for
 * ever.
 */
static bool
has_room(ax_store *s)
{
	uint64_t	max = atomic_load_explicit(&s->max_bytes, memory_order_relaxed);

	return max == 0 || atomic_load_explicit(&s->bytes, memory_order_relaxed) + ROOM <= max;
}

/*
 * Open a buffer for keys like this.  Not while the last but one is being emptied, or
 * somebody else is about it.
 *
 * Epoch: inside.
 * Latches: tries the claim of the chain's changes, and lets it go.
 * Order: the buffer is complete, and its successor set, before the store
 * points to it.
 */
static void
open_for(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len, bool whatever)
{
	ax_tail    *t = NULL,
			   *old;
	likes		like;

	if (len > AX_TAIL_KEY_MAX || !has_room(s) || !ax_tail_claim(cx, &s->tail_changer))
		return;
	old = atomic_load_explicit(&s->tail, memory_order_acquire);
	if (!old || (atomic_load_explicit(&old->closed, memory_order_relaxed) &&
				 !atomic_load_explicit(&old->next, memory_order_relaxed)))
	{
		if (fits_window(cx, s, key, len, &like) ||
			(whatever && like.few && len - AX_TID_BYTES <= 9))
			t = ax_window_new(cx, s, key, len, like.shift);
		else if (whatever || !like.few)
			t = ax_append_new(cx, s, like.floor, like.floorlen, like.off);
		if (t)
		{
			ax_tail_set_next(t, old);
			AX_POINT("tail.open");
			atomic_store(&s->tail, t);
			/* who says "off" looks for one to close after he has said so */
			if (atomic_load(&s->tail_option) == AX_TAIL_OFF)
				atomic_store(&t->closed, true);
		}
	}
	ax_tail_unclaim(cx, &s->tail_changer);
}

/* ---- auto ---- */

/* Inserts that went into buffers, and beside them. */
static void
sums(ax_store *s, uint64_t *in, uint64_t *beside)
{
	ax_tail    *t = atomic_load_explicit(&s->tail, memory_order_acquire);

	*in = *beside = 0;
	for (; t; t = atomic_load_explicit(&t->next, memory_order_acquire))
		*in += t->kind->live(t);
	for (int i = 0; i < AX_SHARDS; i++)
	{
		*in += atomic_load_explicit(&s->shards[i].tail_flushed, memory_order_relaxed);
		*beside += atomic_load_explicit(&s->shards[i].tail_bypassed, memory_order_relaxed);
	}
}

/* Is the open one worth having? */
static void
judge_keys(ax_store *s, ax_sampler *p)
{
	ax_tail    *t = atomic_load_explicit(&s->tail, memory_order_acquire);
	uint64_t	in,
				beside,
				d_in,
				d_beside;

	/* the sums are dear */
	if (!t || ++p->n < ROUND)
		return;
	p->n = 0;
	sums(s, &in, &beside);
	d_in = in - p->judged_in;
	d_beside = beside - p->judged_beside;
	if (d_in + d_beside < JUDGE)
		return;
	p->judged_in = in;
	p->judged_beside = beside;
	if (d_beside <= d_in)
	{
		p->next_rest = 1;		/* it has proved its worth */
		return;
	}
	atomic_store(&t->closed, true);
	p->rest = p->next_rest;
	p->next_rest = p->next_rest * 2 < REST_MAX ? p->next_rest * 2 : REST_MAX;
	p->toplen = p->lastlen = p->beforelen = 0;
}

/* One more of a round; true: it is over, and keys rise. */
static bool
rising(ax_ctx *cx, ax_sampler *p, const uint8_t *key, uint32_t len)
{
	bool		yes;

	if (p->n == 0)
	{
		p->began = ax_body(cx)->port->now_ns();
		p->above = p->rises = 0;
	}
	p->n++;
	if (p->beforelen && higher(key, len, p->before, p->beforelen))
		p->above++;
	if (higher(key, len, p->top, p->toplen))
	{
		p->rises++;
		remember_key(p->top, &p->toplen, key, len);
	}
	if (p->n < ROUND)
		return false;
	yes = (p->above >= MOST || p->rises >= MOST) &&
		ax_body(cx)->port->now_ns() - p->began < QUIET_NS;
	memcpy(p->before, p->last, SEEN);
	p->beforelen = p->lastlen;
	memcpy(p->last, p->top, SEEN);
	p->lastlen = p->toplen;
	p->toplen = 0;
	p->n = 0;
	if (p->rest > 0)
	{
		p->rest--;
		return false;
	}
	return yes;
}

/*
 * The store's sampler, made when there is none.  NULL: no memory.
 */
static ax_sampler *
sampler_of(ax_ctx *cx, ax_store *s)
{
	ax_sampler *p = atomic_load_explicit(&s->tail_sampler, memory_order_acquire);
	ax_sampler *none = NULL;

	if (p)
		return p;
	p = ax_alloc_public(cx, s, sizeof(*p));
	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->next_rest = 1;
	sums(s, &p->judged_in, &p->judged_beside);
	if (atomic_compare_exchange_strong(&s->tail_sampler, &none, p))
		return p;
	ax_unalloc(cx, s, p, sizeof(*p));
	return none;
}

/*
 * Epoch: inside.
 * Latches: tries the sampler's claim, and lets it go.
 */
ax_tail *
ax_tail_sample(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	ax_ctx_body *b = ax_body(cx);
	uint8_t		option = atomic_load_explicit(&s->tail_option, memory_order_relaxed);
	ax_sampler *p;

	/* not in step with whatever the process does by turns */
	b->rng ^= b->rng << 13;
	b->rng ^= b->rng >> 7;
	b->rng ^= b->rng << 17;
	b->tail_countdown = EVERY / 2 + (int32_t) (b->rng % EVERY);

	if (option != AX_TAIL_OFF && len <= AX_TAIL_KEY_MAX)
	{
		if (atomic_load_explicit(&s->tail_now, memory_order_relaxed))
		{
			atomic_store_explicit(&s->tail_now, false, memory_order_relaxed);
			open_for(cx, s, key, len, true);
		}
		if ((option == AX_TAIL_ON ||
			 atomic_load_explicit(&s->bytes, memory_order_relaxed) >= SMALL) &&
			(p = sampler_of(cx, s)) != NULL && ax_tail_claim(cx, &p->claim))
		{
			if (has_open(s))
				judge_keys(s, p);
			else if (rising(cx, p, key, len))
			{
				open_for(cx, s, key, len, option == AX_TAIL_ON);
				p->n = 0;
				sums(s, &p->judged_in, &p->judged_beside);
			}
			ax_tail_unclaim(cx, &p->claim);
		}
		ax_tail_forget_failure(cx);
	}
	return atomic_load_explicit(&s->tail, memory_order_acquire);
}

/* ---- options ---- */

/* Nothing more goes in; what is in is emptied by whoever comes by. */
static void
shut(ax_store *s)
{
	ax_tail    *t = atomic_load(&s->tail);

	if (t)
		atomic_store(&t->closed, true);
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_tree_set_tail(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tail_option option)
{
	ax_store   *s;
	ax_status	r = ax_enter(cx, t, gen, &s);

	if (r != AX_OK)
		return r;
	/* of keys that are compared nobody here knows the order */
	if (!s->engine->compared)
	{
		atomic_store(&s->tail_option, (uint8_t) option);
		if (option == AX_TAIL_OFF)
			shut(s);
		atomic_store_explicit(&s->tail_now, option == AX_TAIL_ON && !has_open(s),
							  memory_order_relaxed);
	}
	ax_leave(cx);
	return AX_OK;
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_tail_close(ax_ctx *cx, ax_tree *t, uint64_t gen, bool *had)
{
	ax_store   *s;
	ax_status	r = ax_enter(cx, t, gen, &s);

	*had = false;
	if (r != AX_OK)
		return r;
	*had = atomic_load_explicit(&s->tail, memory_order_acquire) != NULL;
	shut(s);
	ax_leave(cx);
	return AX_OK;
}

/*
 * Epoch: inside.
 * Latches: tries the sampler's claim, and lets it go.
 */
void
ax_tail_settle(ax_ctx *cx, ax_store *s, bool all)
{
	ax_sampler *p = atomic_load_explicit(&s->tail_sampler, memory_order_acquire);
	uint64_t	in,
				beside;

	if (!atomic_load_explicit(&s->tail, memory_order_acquire) ||
		atomic_load_explicit(&s->tail_option, memory_order_relaxed) == AX_TAIL_ON)
		return;
	if (p && !all && ax_tail_claim(cx, &p->claim))
	{
		sums(s, &in, &beside);
		all = in == p->judged_in && beside == p->judged_beside;
		p->judged_in = in;
		p->judged_beside = beside;
		ax_tail_unclaim(cx, &p->claim);
	}
	if (all)
	{
		shut(s);
		ax_tail_empty(cx, s);
	}
}
