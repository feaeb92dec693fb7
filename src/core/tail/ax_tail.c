/*
 * ax_tail.c
 *	  The tail buffer: inserts of rising keys go here first.  What every kind of
 *	  buffer has in common in the calls of ax.c that go through it.
 *
 * Nobody waits for a buffer but ax_remove, for the few entries that are on
 * their way into the tree.  Nothing of it is held from one call to the next.
 * A claim (who flushes, who opens) is a word that is only ever tried: whoever
 * does not get it goes on without.
 *
 * src/core/tail/README.md: The tail buffer
 */
#include "core/base/ax_area.h"
#include "core/base/ax_call.h"
#include "ax_tail.h"

#define CHAIN	2				/* buffers of a store, at most: one open, one closed */
#define STEP_BITS 4				/* every 16th insert of a process takes a step */
#define WAIT_NS UINT64_C(10000000)	/* for an entry on its way, then AX_BUSY */

/* ---- the calls that go through it ---- */

static int
key_cmp(const uint8_t *a, uint32_t alen, const uint8_t *b, uint32_t blen)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	return c ? c : alen < blen ? -1 : alen > blen;
}

ax_status
ax_tail_insert(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *key, uint32_t len)
{
	ax_ctx_body *b = ax_body(cx);
	ax_status	r = AX_CHANGED;

	if (ax_likely(!atomic_load_explicit(&t->closed, memory_order_relaxed)))
	{
		r = t->kind->insert(cx, s, t, key, len);
		if (r == AX_CHANGED)
			AX_COUNT(cx, s, tail_bypassed, 1);
	}
	if (r == AX_CHANGED)
	{
		ax_tail_forget_failure(cx); /* to make a place in it */
		AX_POINT("tail.beside");
		r = s->engine->insert(cx, s, key, len);
		if (r != AX_OK && r != AX_EXISTS)
			return r;
	}

	/*
	 * Not by turns.  A table with four, or six, such indexes would see the same one
	 * or two of them in every step, and the others never.
	 */
	if (ax_unlikely((++b->tail_turn * UINT32_C(0x9E3779B9)) >> (32 - STEP_BITS) == 0))
		ax_tail_help(cx, s, t);
	return r;
}

/*
 * Hold an entry that was there: AX_OK, it is CANCELLING and ours; AX_CHANGED, it
 * went into the tree or away meanwhile; AX_BUSY.
 */
static ax_status
hold(ax_ctx *cx, ax_tail_word *word)
{
	ax_ctx_body *b = ax_body(cx);
	uint64_t	deadline = 0;
	uint32_t	turn = 0;

	for (;;)
	{
		uint64_t	v = atomic_load_explicit(word, memory_order_acquire);

		switch (v & AX_T_STATE)
		{
			case AX_T_FULL:
				AX_POINT("tail.cancel");
				if (!atomic_compare_exchange_strong(word, &v, (v & ~AX_T_STATE) | AX_T_CANCELLING))
					break;
				b->claims++;
				return AX_OK;
			case AX_T_FLUSHING:
			case AX_T_CANCELLING:
				AX_POINT("tail.cancel_wait");
				if (turn++ < b->spins)
				{
					ax_pause();
					break;
				}
				if (deadline == 0)
					deadline = b->port->now_ns() + WAIT_NS;
				else if (b->port->now_ns() >= deadline)
					return AX_BUSY;
				ax_nap(cx, turn - b->spins);
				break;
			default:
				return AX_CHANGED;
		}
	}
}

static void
let_tail_go(ax_ctx *cx, ax_tail_word *word, uint64_t state)
{
	uint64_t	v = atomic_load_explicit(word, memory_order_relaxed);

	/* a plain store: nobody else changes one that is CANCELLING */
	atomic_store_explicit(word, (v & ~AX_T_STATE) | state, memory_order_release);
	ax_body(cx)->claims--;
}

#define WORDS 8

/*
 * The buffer is looked at first, and an entry there is held,
 * so that it does not go into the tree meanwhile.  Then the tree is told.
 * That may be BUSY, upon which nothing must have been done.  An entry that was
 * not there had been in the tree before, or nowhere.
 */
ax_status
ax_tail_remove(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *key, uint32_t len)
{
	ax_status	got = AX_NOTFOUND;
	ax_status	r;
	bool		again;

	do
	{
		ax_tail_word *word[WORDS];
		int			n = 0;

		again = false;
		r = AX_OK;
		for (ax_tail *u = t; u && r != AX_BUSY;
			 u = atomic_load_explicit(&u->next, memory_order_acquire))
		{
			ax_tail_word *w = NULL;

			while (r != AX_BUSY && (w = u->kind->find(u, key, len, w)) != NULL)
			{
				if (n == WORDS)
				{
					again = true;
					break;
				}
				r = hold(cx, w);
				if (r == AX_OK)
					word[n++] = w;
			}
		}
		AX_POINT("tail.remove.looked");
		if (r != AX_BUSY)
			r = s->engine->remove(cx, s, key, len);
		for (int i = 0; i < n; i++)
			let_tail_go(cx, word[i], r == AX_OK || r == AX_NOTFOUND ? AX_T_REMOVED : AX_T_FULL);
		if (r != AX_OK && r != AX_NOTFOUND)
			return r;
		if (n)
			AX_COUNT(cx, s, tail_cancelled, (uint64_t) n);
		if (n || r == AX_OK)
			got = AX_OK;
	} while (again);
	return got;
}

bool
ax_tail_chain_near(const ax_tail *t, const uint8_t *prefix, uint32_t len)
{
	do
	{
		if (ax_tail_may_have(t, prefix, len))
			return true;
		t = atomic_load_explicit(&((ax_tail *) (uintptr_t) t)->next, memory_order_acquire);
	} while (ax_unlikely(t != NULL));
	return false;
}

ax_status
ax_tail_contains(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *key, uint32_t len)
{
	for (; t; t = atomic_load_explicit(&t->next, memory_order_acquire))
		if (t->kind->find(t, key, len, NULL))
			return AX_OK;
	AX_POINT("tail.looked");
	return s->engine->contains(cx, s, key, len);
}

/*
 * Add sorted TIDs (of which there are others beyond, if "others") to those that a
 * look-up found.
 */
static void
merge_tids(const uint64_t *add, uint32_t m, bool others, ax_found *f)
{
	uint64_t   *tids = f->tids;
	uint32_t	at = 0;			/* both are sorted: it only rises */

	if (f->more && f->n == 0)
		return;					/* nothing is known of where these go */
	for (uint32_t i = 0; i < m; i++)
	{
		if (f->more && add[i] > tids[f->n - 1])
			break;
		while (at < f->n && tids[at] < add[i])
			at++;
		if (at < f->n && tids[at] == add[i])
			continue;
		if (f->n == f->max)
		{
			f->more = true;
			if (at == f->n)
				break;
			f->n--;
		}
		memmove(&tids[at + 1], &tids[at], (f->n - at) * sizeof(*tids));
		tids[at] = add[i];
		f->n++;
	}
	if (others)
	{
		f->more = true;
		while (f->n > 0 && (m == 0 || tids[f->n - 1] > add[m - 1]))
			f->n--;
	}
}

#define TIDS 64

ax_status
ax_tail_lookup(ax_ctx *cx, ax_store *s, ax_tail *t, const uint8_t *prefix, uint32_t len,
			   ax_found *f)
{
	uint64_t	found[CHAIN][TIDS];
	uint32_t	m[CHAIN] = {0};
	bool		others[CHAIN] = {false};
	ax_status	r;
	int			c = 0;

	for (; t && c < CHAIN; t = atomic_load_explicit(&t->next, memory_order_acquire), c++)
		if (ax_tail_may_have(t, prefix, len))
			m[c] = t->kind->lookup(t, prefix, len, found[c], f->max < TIDS ? f->max : TIDS, &others[c]);
	AX_POINT("tail.looked");
	r = s->engine->lookup(cx, s, prefix, len, f);
	if (r == AX_OK)
		for (int i = 0; i < c; i++)
			if (m[i] || others[i])
				merge_tids(found[i], m[i], others[i], f);
	return r;
}

/* ---- batches ---- */

#define ITEMS		64
#define SCRATCH		4096

/* One of the sorted lists that are merged: what a buffer has, or the tree's part. */
typedef struct source
{
	ax_tail    *t;				/* NULL: the tree */
	ax_tail_item *items;
	const ax_batch *tree;
	uint32_t	n,
				i;
	bool		more;			/* there are others behind the last */
	const uint8_t *key;			/* of entry i */
	uint32_t	len;
	uint64_t	tid;
	uint8_t		buf[AX_TAIL_KEY_MAX];
} source;

/* Make the source's next entry the one at hand. */
static void
look_at_tail(source *so)
{
	if (so->i == so->n)
		return;
	if (so->t)
	{
		ax_tail_item *it = &so->items[so->i];

		so->tid = it->tid;
		so->len = it->len;
		so->key = it->key;
		if (!so->key)
		{
			so->len = so->t->kind->key(so->t, it, so->buf);
			so->key = so->buf;
		}
	}
	else
	{
		const ax_batch *b = so->tree;

		so->tid = b->tids[so->i];
		so->key = b->keybuf + b->key_off[so->i];
		so->len = b->key_off[so->i + 1] - b->key_off[so->i];
	}
}

/* One entry out; false: there is no room for it. */
static bool
emit(ax_batch *b, const uint8_t *key, uint32_t len, uint64_t tid)
{
	uint32_t	off = b->want_keys && b->n ? b->key_off[b->n] : 0;

	if (2 * len > b->lastkey_size || (b->want_keys && len > b->keybuf_size - off))
	{
		b->need_bytes = 2 * len;
		return false;
	}
	if (b->want_keys)
	{
		b->key_off[b->n] = off;
		memcpy(b->keybuf + off, key, len);
		b->key_off[b->n + 1] = off + len;
	}
	b->tids[b->n++] = tid;
	memcpy(b->lastkey, key, len);
	b->lastlen = len;
	return true;
}

/*
 * The earliest of several sources; -1: one of them has no more here, but elsewhere,
 * or all have come to their end, which *end says.
 */
static int
earliest(const source *so, int ns, bool backward, bool *end)
{
	int			best = -1;

	*end = false;
	for (int k = 0; k < ns; k++)
	{
		int			c;

		if (so[k].i == so[k].n)
		{
			if (so[k].more)
				return -1;
			continue;
		}
		c = best < 0 ? -1 : key_cmp(so[k].key, so[k].len, so[best].key, so[best].len);
		if (best < 0 || (backward ? c > 0 : c < 0))
			best = k;
	}
	*end = best < 0;
	return best;
}

/* The batch takes what the engine has between two positions. */
static ax_status
tree_alone(ax_ctx *cx, ax_store *s, ax_batch *b, const ax_bound *lo, const ax_bound *hi)
{
	ax_batch	tree = *b;
	ax_status	r;

	tree.lo = *lo;
	tree.hi = *hi;
	r = s->engine->scan(cx, s, &tree);
	b->n = tree.n;
	b->lastlen = tree.lastlen;
	b->need_bytes = tree.need_bytes;
	b->exhausted = tree.exhausted;
	return r;
}

/*
 * The tree's keys do not fit in here, for one of them is very long.  Then
 * return the entries before the buffers' first, without looking at keys; or
 * that entry alone.
 */
static ax_status
up_to_first(ax_ctx *cx, ax_store *s, ax_batch *b, const ax_bound *lo, const ax_bound *hi,
			source *so, int ns)
{
	ax_bound	first;
	bool		end;
	int			k;
	ax_status	r;

	/* each has one at least, or was left out */
	k = earliest(so, ns, b->backward, &end);
	first = (ax_bound) {.key = so[k].key,.len = so[k].len,.after = b->backward};
	r = tree_alone(cx, s, b, b->backward ? &first : lo, b->backward ? hi : &first);
	b->exhausted = false;
	if (r != AX_OK || b->n > 0)
		return r;
	return emit(b, so[k].key, so[k].len, so[k].tid) ? AX_OK : AX_BUFFER;
}

/*
 * A batch of what the buffers and the tree have between two positions.
 */
static __attribute__((noinline)) ax_status
merged(ax_ctx *cx, ax_store *s, ax_tail *const *tails, int nt, ax_batch *b,
	   const ax_bound *lo, const ax_bound *hi)
{
	ax_tail_item items[CHAIN][ITEMS];
	source		so[CHAIN + 1];
	uint64_t	tids[ITEMS];
	uint32_t	key_off[ITEMS + 1];
	uint8_t		keybuf[SCRATCH];
	const uint32_t max = b->max < ITEMS ? b->max : ITEMS;
	ax_batch	tree = {
		.lo = *lo,.hi = *hi,.backward = b->backward,.want_keys = true,.max = max,
		.tids = tids,.key_off = key_off,.keybuf = keybuf,.keybuf_size = sizeof(keybuf),
		.lastkey = b->lastkey,.lastkey_size = b->lastkey_size
	};
	int			ns = 0;
	bool		end;
	ax_status	r;
	int			k;

	for (int i = 0; i < nt; i++)
	{
		source	   *x = &so[ns];

		x->t = tails[i];
		x->items = items[ns];
		x->i = 0;
		x->n = x->t->kind->collect(x->t, lo, hi, b->backward, x->items, max, &x->more);
		if (x->n == 0)
			continue;
		look_at_tail(x);
		ns++;
	}
	AX_POINT("tail.looked");
	b->n = 0;
	b->lastlen = 0;
	b->need_bytes = 0;
	b->exhausted = false;
	if (ns == 0)
		return tree_alone(cx, s, b, lo, hi);
	r = s->engine->scan(cx, s, &tree);
	if (r == AX_BUFFER)
	{
		/* too little is the caller's, or but our own */
		b->need_bytes = tree.need_bytes;
		if (tree.need_bytes > b->lastkey_size)
			return r;
		return up_to_first(cx, s, b, lo, hi, so, ns);
	}
	if (r != AX_OK)
		return r;
	so[ns].t = NULL;
	so[ns].tree = &tree;
	so[ns].i = 0;
	so[ns].n = tree.n;
	so[ns].more = !tree.exhausted;
	look_at_tail(&so[ns]);
	ns++;

	while ((k = earliest(so, ns, b->backward, &end)) >= 0)
	{
		if (b->n == b->max)
			return AX_OK;
		if (!emit(b, so[k].key, so[k].len, so[k].tid))
			return b->n ? AX_OK : AX_BUFFER;
		/* and past it in all that have it; lastkey is a copy of it */
		for (int i = 0; i < ns; i++)
			if (so[i].i < so[i].n &&
				key_cmp(so[i].key, so[i].len, b->lastkey, b->lastlen) == 0)
			{
				so[i].i++;
				look_at_tail(&so[i]);
			}
	}
	b->exhausted = end;
	return AX_OK;
}

/*
 * Entries before the lowest floor are the tree's alone, and
 * always were; beyond it the two are merged.  The floors are read before the
 * tree is: an entry that was in a buffer below a floor is in the tree by then.
 */
ax_status
ax_tail_scan(ax_ctx *cx, ax_store *s, ax_tail *t, ax_batch *b)
{
	uint8_t		buf[CHAIN][AX_TAIL_KEY_MAX];
	ax_tail    *tails[CHAIN];
	ax_bound	floor = {0};
	int			nt = 0;
	ax_bound	mid;
	ax_status	r;

	for (; t && nt < CHAIN; t = atomic_load_explicit(&t->next, memory_order_acquire))
	{
		ax_bound	f = {.key = buf[nt],.after = false};

		f.len = t->kind->floor(t, buf[nt]);
		if (nt == 0 || ax_bound_cmp(&f, &floor) < 0)
			floor = f;
		tails[nt++] = t;
	}
	if (ax_bound_cmp(&b->hi, &floor) <= 0)
		return s->engine->scan(cx, s, b);
	if (ax_bound_cmp(&b->lo, &floor) >= 0)
		return merged(cx, s, tails, nt, b, &b->lo, &b->hi);
	if (b->backward)
	{
		r = merged(cx, s, tails, nt, b, &floor, &b->hi);
		if (r != AX_OK || b->n > 0 || !b->exhausted)
		{
			b->exhausted = false;
			return r;
		}
		mid = b->hi;
		b->hi = floor;
		r = s->engine->scan(cx, s, b);
		b->hi = mid;
		return r;
	}
	mid = b->hi;
	b->hi = floor;
	r = s->engine->scan(cx, s, b);
	b->hi = mid;
	if (r != AX_OK || b->n > 0)
	{
		b->exhausted = false;	/* engines fill lastkey when there is an entry */
		return r;
	}
	return merged(cx, s, tails, nt, b, &floor, &b->hi);
}

#define SEEN_NS UINT64_C(10000000)

/*
 * Called with the tree's own counts in *out.  To count the
 * entries in buffers is to read every line that inserters write.  That is
 * dear, to them too, when every plan of a query does it.  So with "about" it
 * is done every 10 ms.  Meanwhile the entries that went in since then are not
 * known, but those that went out are.
 */
void
ax_tail_info(ax_ctx *cx, ax_store *s, ax_tree_info *out, bool about)
{
	ax_tail    *t = atomic_load_explicit(&s->tail, memory_order_acquire);
	uint64_t	cancelled = 0,
				now = t ? ax_body(cx)->port->now_ns() : 0,
				seen_ns = atomic_load_explicit(&s->tail_seen_ns, memory_order_acquire),
				seen = atomic_load_explicit(&s->tail_seen, memory_order_relaxed);
	bool		count = t && !(about && seen_ns && now - seen_ns < SEEN_NS);

	out->tail_mode = t && !atomic_load_explicit(&t->closed, memory_order_relaxed) ?
		t->kind->name : "off";
	out->tail_entries = out->tail_bypassed = 0;
	out->tail_flushes = out->tail_flushed = out->tail_flush_ns = 0;
	for (ax_tail *u = count ? t : NULL; u; u = atomic_load_explicit(&u->next, memory_order_acquire))
		out->tail_entries += u->kind->live(u);
	for (int i = 0; i < AX_SHARDS; i++)
	{
		ax_shard   *sh = &s->shards[i];

		out->tail_bypassed += atomic_load_explicit(&sh->tail_bypassed, memory_order_relaxed);
		out->tail_flushes += atomic_load_explicit(&sh->tail_flushes, memory_order_relaxed);
		out->tail_flushed += atomic_load_explicit(&sh->tail_flushed, memory_order_relaxed);
		out->tail_flush_ns += atomic_load_explicit(&sh->tail_flush_ns, memory_order_relaxed);
		cancelled += atomic_load_explicit(&sh->tail_cancelled, memory_order_relaxed);
	}
	out->tail_inserts = out->tail_flushed + cancelled;
	if (count)
	{
		atomic_store_explicit(&s->tail_seen, out->tail_inserts + out->tail_entries,
							  memory_order_relaxed);
		atomic_store_explicit(&s->tail_seen_ns, now, memory_order_release);
	}
	else if (t && seen > out->tail_inserts)
		out->tail_entries = seen - out->tail_inserts;
	out->tail_inserts += out->tail_entries;
	out->entries += out->tail_entries;
}
