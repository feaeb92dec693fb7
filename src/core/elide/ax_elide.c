/*
 * ax_elide.c
 *	  Lock elision: latched sections run as transactions; policy and counters.
 *
 * Inside a transaction everything is done as without one.  The latch is taken
 * and given back, versions move (optimistic readers must notice).  Only,
 * nobody sees it before all of it is there.  So there is no second way through the
 * engines.  A process that holds the latch, or takes it, ends the transaction, for
 * that has read the word.  Not done inside: counting and retiring, which are put
 * off until it is committed; memory and waiting, for which the transaction is given
 * up (AX_TX_REFUSED).
 *
 * The policy is that of Karnagel et al., "Improving In-Memory Database Index
 * Performance with Intel Transactional Synchronization Extensions" (HPCA 2014),
 * for each store and site:
 *
 *	- no attempt while the latch is held: a coarse one is waited for, shortly; where
 *	  a version was sampled the operation starts over, and waits there;
 *	- AX_ELIDE_BUDGET attempts, then the latch; of them AX_ELIDE_CAPACITY that ended
 *	  by capacity, whose retry bit is not heeded; none after an abort of our own;
 *	- status 0 is a page that this process has not touched yet, as a rule: touch
 *	  what the section will, then try again.
 *
 * And, where nobody insists (auto):
 *
 *	- only whole calls under a coarse latch.  Two writes of one leaf change its
 *	  latch's version, both, so no transaction lets them go on together; it costs more
 *	  than the latch that it spares (doc/internals/measured.md has the figures);
 *	- only since a process found that latch taken.  A process that has met nobody in
 *	  AX_ELIDE_LOOK calls makes all take it again: if it is contended still, somebody
 *	  finds it taken;
 *	- when of AX_ELIDE_WINDOW sections 1/4 were aborted, not for a while
 *	  (AX_ELIDE_SKIP sections, longer each time).
 *
 * Counted are sections that ran with elision on, and their attempts.  A section
 * that is given up since a latch's sample is old (the operation starts over) counts
 * its aborts only.
 *
 * src/core/elide/README.md: Elision
 */
#include "core/base/ax_area.h"
#include "core/base/ax_coarse.h"
#include "ax_guard.h"

static const char *const site_names[AX_SITES] = {
	"coarse_read", "coarse_write", "leaf_insert", "leaf_delete",
	"node_insert", "node_delete", "split", "tail_flush"
};

const char *
ax_site_name(ax_site site)
{
	return site_names[site];
}

/* ---- counters, and what is switched off ------------------------------------- */

/*
 * One shard's of one site: two lines.  Any process adds to its shard's.  The one that
 * ends a window sets that to 0, and the one that switches off, "skipped".
 */
typedef struct site_counts
{
	_Alignas(AX_LINE) _Atomic uint64_t commits;
	_Atomic uint32_t window;	/* sections of late; those that were aborted << 16 */
	_Atomic uint32_t skipped;	/* while switched off */
	_Atomic uint64_t conflict, capacity, explicit_, lock_busy, nested, zero, other;
	_Atomic uint64_t retry_hint, fallbacks;
} site_counts;

/* All of a store; an object of it. */
struct ax_elide_shared
{
	struct
	{
		_Alignas(AX_LINE) _Atomic uint32_t off; /* doublings + 1; 0: it is on; by CAS */
		_Atomic uint32_t level; /* of the next time; by the one that ends a window */
		_Atomic uint64_t switch_offs;	/* added to by changes of "off", */
		_Atomic uint64_t switch_ons;	/* so is this */
	}			site[AX_SITES];
	site_counts count[AX_SHARDS][AX_SITES];
};

_Static_assert(sizeof(ax_shard) <= AX_ELIDE_DELTAS * sizeof(int64_t), "too many counters");

static inline site_counts *
counts_of(ax_ctx_body *b, ax_site site)
{
	return &b->elide.shared->count[b->shard][site];
}

static inline void
add_count(_Atomic uint64_t *p, uint64_t d)
{
	if (d)
		atomic_fetch_add_explicit(p, d, memory_order_relaxed);
}

/* How a section ended. */
typedef enum outcome
{
	COMMITTED,
	FELL_BACK,
	STARTS_OVER
} outcome;

/* Setting or option say: whatever becomes of it. */
static inline bool
elision_insisted(ax_elide_ctx *e, ax_store *s)
{
	return e->setting == AX_ELIDE_ON ||
		atomic_load_explicit(&s->elide_option, memory_order_relaxed) == AX_ELIDE_ON;
}

/* Nobody insists, and it is a section more: is it worth it? */
static void
judge_site(ax_ctx_body *b, ax_site site, bool aborted)
{
	ax_elide_ctx *e = &b->elide;
	site_counts *c = counts_of(b, site);
	uint32_t	one = aborted ? 0x10001 : 1;
	uint32_t	w = atomic_fetch_add_explicit(&c->window, one, memory_order_relaxed) + one;
	uint32_t	on = 0;
	uint32_t	level;

	if ((w & 0xFFFF) < AX_ELIDE_WINDOW ||
		!atomic_compare_exchange_strong(&c->window, &w, 0))
		return;
	if ((w >> 16) * 4 < (w & 0xFFFF))
	{
		atomic_store(&e->shared->site[site].level, 0);
		return;
	}
	level = atomic_load(&e->shared->site[site].level);
	for (int i = 0; i < AX_SHARDS; i++)
		atomic_store(&e->shared->count[i][site].skipped, 0);
	if (!atomic_compare_exchange_strong(&e->shared->site[site].off, &on, level + 1))
		return;
	add_count(&e->shared->site[site].switch_offs, 1);
	if (level < AX_ELIDE_DOUBLE)
		atomic_store(&e->shared->site[site].level, level + 1);
}

/* The section is over: count it all. */
static void
count_section(ax_ctx *cx, ax_site site, outcome how)
{
	ax_ctx_body *b = ax_body(cx);
	ax_elide_tally *t = &b->elide.tally;
	site_counts *c = counts_of(b, site);

	AX_ASSERT(b, t->attempts == t->commits + t->conflict + t->capacity + t->explicit_ +
			  t->lock_busy + t->nested + t->zero + t->other);
	AX_ASSERT(b, t->commits == (how == COMMITTED));
	if (t->conflict + t->lock_busy > 0)
		b->elide.tried = 0;
	add_count(&c->commits, t->commits);
	if (t->attempts > t->commits)
	{
		add_count(&c->conflict, t->conflict);
		add_count(&c->capacity, t->capacity);
		add_count(&c->explicit_, t->explicit_);
		add_count(&c->lock_busy, t->lock_busy);
		add_count(&c->nested, t->nested);
		add_count(&c->zero, t->zero);
		add_count(&c->other, t->other);
		add_count(&c->retry_hint, t->retry_hint);
	}
	if (how == STARTS_OVER)
		return;
	if (how == FELL_BACK)
		add_count(&c->fallbacks, 1);
	if (!elision_insisted(&b->elide, b->elide.store))
		judge_site(b, site, t->attempts != t->commits || how == FELL_BACK);
}

/* ---- before an attempt -------------------------------------------------------- */

/* Make the store's counters, or find that others have.  NULL: no memory. */
static __attribute__((noinline, cold)) struct ax_elide_shared *
make_counters(ax_ctx *cx, ax_store *s)
{
	ax_ctx_body *b = ax_body(cx);
	struct ax_elide_shared *sh;
	struct ax_elide_shared *none = NULL;
	bool		busy = b->alloc_busy,
				hit = b->cap_hit;
	ax_group   *group_hit = b->group_hit;

	if (b->fail_alloc_at)
		return NULL;			/* the test means others */
	ax_epoch_change(cx);		/* a call that only reads has no magazines */
	sh = ax_alloc_public(cx, s, sizeof(*sh));
	b->alloc_busy = busy;
	b->cap_hit = hit;
	b->group_hit = group_hit;
	if (!sh)
		return NULL;
	memset(sh, 0, sizeof(*sh));
	if (atomic_compare_exchange_strong(&s->elide, &none, sh))
		return sh;
	ax_unalloc(cx, s, sh, sizeof(*sh));
	return none;
}

/* The store's counters, made at the first need; NULL: no memory. */
static inline struct ax_elide_shared *
shared_of(ax_ctx *cx, ax_store *s)
{
	struct ax_elide_shared *sh = atomic_load_explicit(&s->elide, memory_order_acquire);

	return ax_likely(sh != NULL) ? sh : make_counters(cx, s);
}

/* Is a section to be tried at this site?  Nothing is latched. */
static bool
section_wanted(ax_ctx *cx, ax_store *s, ax_site *site)
{
	ax_ctx_body *b = ax_body(cx);
	ax_elide_ctx *e = &b->elide;
	uint32_t	off;
	bool		gate;

	if (!s || ax_inner(s)->object_bytes == NULL ||
		atomic_load_explicit(&s->elide_option, memory_order_relaxed) == AX_ELIDE_OFF)
		return false;
	gate = !elision_insisted(e, s);
	if (gate)
	{
		if (s->sync != AX_SYNC_COARSE ||
			!atomic_load_explicit(&s->contended, memory_order_relaxed))
			return false;
		if (++e->tried >= AX_ELIDE_LOOK)
		{
			e->tried = 0;
			ax_coarse_contended(s, false);
		}
	}
	if (e->flushing)
		*site = AX_SITE_TAIL_FLUSH;
	e->shared = shared_of(cx, s);
	if (!e->shared)
		return false;
	e->store = s;
	off = atomic_load_explicit(&e->shared->site[*site].off, memory_order_relaxed);
	if (ax_unlikely(off) && gate)
	{
		site_counts *c = counts_of(b, *site);

		if (atomic_fetch_add_explicit(&c->skipped, 1, memory_order_relaxed) + 1 >=
			(uint32_t) AX_ELIDE_SKIP << (off - 1) &&
			atomic_compare_exchange_strong(&e->shared->site[*site].off, &off, 0))
			add_count(&e->shared->site[*site].switch_ons, 1);
		return false;
	}
	memset(&e->tally, 0, sizeof(e->tally));
	return true;
}

bool
ax_elide_instead(ax_ctx *cx, ax_store *s)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;

	if (e->queue || ax_body(cx)->latches > 0 || !ax_elide_active(cx, s))
	{
		e->queue = false;
		return false;
	}
	return true;
}

/* Are sections undone by hand?  Where RTM is there, the first test says no. */
static inline bool
by_hand(const ax_elide_ctx *e)
{
	return ax_unlikely(e->by != NULL) && e->by->undoes;
}

__attribute__((cold)) void
ax_elide_pass(ax_ctx *cx)
{
	const ax_elide_ctx *e = &ax_body(cx)->elide;

	if (by_hand(e) && e->provided)
		e->by->pass(cx);
}

/* The same, where there is nearly always nothing to tell. */
static inline void
pass_by(ax_ctx *cx)
{
	if (ax_unlikely(ax_body(cx)->elide.by != NULL))
		ax_elide_pass(cx);
}

__attribute__((cold)) void
ax_elide_frame(ax_ctx *cx, const void *frame)
{
	ax_body(cx)->elide.frame = frame;
	pass_by(cx);
}

/* ---- after an attempt --------------------------------------------------------- */

/* Count an abort by its status. */
static void
count_abort(ax_elide_tally *t, uint32_t status)
{
	if (status & AX_TX_RETRY)
		t->retry_hint++;
	if ((status & AX_TX_EXPLICIT) && AX_TX_CODE(status) >= AX_TX_STALE)
		t->lock_busy++;
	else if (status & AX_TX_EXPLICIT)
		t->explicit_++;
	else if (status & AX_TX_CAPACITY)
		t->capacity++;
	else if (status & AX_TX_CONFLICT)
		t->conflict++;
	else if (status & AX_TX_NESTED)
		t->nested++;
	else if (status == 0)
		t->zero++;
	else
		t->other++;
}

/* Is another attempt worth it?  After a conflict, pause before it. */
static bool
worth_another(ax_ctx *cx)
{
	ax_ctx_body *b = ax_body(cx);
	ax_elide_tally *t = &b->elide.tally;

	if (t->explicit_ > 0 || t->capacity >= AX_ELIDE_CAPACITY || t->attempts >= AX_ELIDE_BUDGET)
		return false;
	if (t->conflict > 0)
	{
		/* whom we met is to get through: not both at once again */
		b->rng ^= b->rng << 13;
		b->rng ^= b->rng >> 7;
		b->rng ^= b->rng << 17;
		for (uint64_t n = b->rng % (UINT64_C(16) << t->conflict); n > 0; n--)
			ax_pause();
	}
	return true;
}

/*
 * Touch what the latch is in, so that the process's page table has it.  Each page
 * is read, and the word is written, with what it is.
 */
static void
touch_section(ax_store *s, ax_word *w)
{
#ifdef AX_RTM
	uint32_t	n = w == &s->root_word ? (uint32_t) sizeof(*w) : ax_inner(s)->object_bytes(w);

	for (uint32_t i = AX_PAGE; i < n; i += AX_PAGE)
		(void) __atomic_load_n((char *) w + i, __ATOMIC_RELAXED);
#endif
	atomic_fetch_or_explicit(w, 0, memory_order_relaxed);
}

/* ---- a section between latches ------------------------------------------------ */

static inline void
opened(ax_elide_ctx *e, ax_site site)
{
	e->open = (uint8_t) (site + 1);
	e->failed = false;
	e->guards = 0;
	e->nretired = 0;
	e->deltas = 0;
}

/* The guard is latched, and part of the section. */
static inline void
latch_joined(ax_elide_ctx *e, ax_guard *g)
{
	g->held = true;
	g->how = AX_G_ELIDED;
	e->guards++;
}

/*
 * AX_TX_STARTED, or what became of it.
 *
 * Latches: the guard's word is latched on AX_TX_STARTED, within the section.
 */
static uint32_t
begin_section(ax_ctx *cx, ax_guard *g, ax_site site)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;
	uint32_t	status;

	if (ax_likely(e->by == NULL))
	{
		status = ax_rtm_begin();
		if (status != AX_TX_STARTED)
			return status;
		if (!ax_word_trylock(cx, g->w, g->v))
			ax_rtm_abort(AX_TX_BUSY);
		opened(e, site);
		latch_joined(e, g);
		e->apart |= AX_APART_TXN;
		return status;
	}
	status = e->by->begin(cx, site);
	if (status != AX_TX_STARTED)
		return status;
	if (!ax_word_trylock(cx, g->w, g->v))
		return AX_TX_EXPLICIT | AX_TX_BUSY << 24;
	opened(e, site);
	latch_joined(e, g);
	if (e->by->undoes)
	{
		e->apart |= AX_APART_TXN;
		e->by->locked(cx, g);
	}
	return status;
}

/*
 * One latch more, in a section.
 *
 * Latches: the guard's word is latched on true, within the section.  On false
 * it is not to be had: the operation starts over.
 */
static bool
join_latch(ax_ctx *cx, ax_guard *g)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;

	if (!ax_word_trylock(cx, g->w, g->v))
	{
		if (e->coarse)
			return false;		/* starts over, inside */
		if ((e->apart & AX_APART_TXN) && !e->by)
			ax_rtm_abort(AX_TX_STALE);
		else if (e->apart & AX_APART_TXN)
			e->by->abort(cx, AX_TX_EXPLICIT | AX_TX_STALE << 24);
		e->failed = true;
		return false;
	}
	if (e->coarse && !by_hand(e))
	{
		g->held = true;
		return true;
	}
	latch_joined(e, g);
	if (by_hand(e))
		e->by->locked(cx, g);
	return true;
}

/*
 * Latches: the guard's word is latched on true, in a section or without one.
 */
bool
ax_elide_lock(ax_ctx *cx, ax_guard *g, ax_site site)
{
	ax_ctx_body *b = ax_body(cx);
	ax_elide_ctx *e = &b->elide;

	if (e->open)
		return join_latch(cx, g);
	/* part of what is latched already is no section */
	if (b->latches > 0 || !section_wanted(cx, b->cur, &site))
	{
		pass_by(cx);				/* what is about to be published is not undone */
		g->held = ax_word_trylock(cx, g->w, g->v);
		return g->held;
	}
	for (;;)
	{
		uint32_t	status;
		uint64_t	now;

		e->tally.attempts++;
		status = begin_section(cx, g, site);
		if (status == AX_TX_STARTED)
			return true;
		AX_POINT("elide.aborted");
		count_abort(&e->tally, status);

		/*
		 * The lemming effect: whoever tries again while the latch is held is sent
		 * to it, and the next one by him.  Held, or no longer what was sampled: the
		 * operation starts over, where it waits.
		 */
		now = ax_word_read(g->w);
		if ((now & (AX_LOCKED | AX_OBSOLETE)) || ((now ^ g->v) & AX_VERSION_MASK) ||
			((status & AX_TX_EXPLICIT) && AX_TX_CODE(status) == AX_TX_STALE))
			break;
		if (!worth_another(cx))
		{
			g->held = ax_word_trylock(cx, g->w, g->v);
			if (!g->held)
				break;
			pass_by(cx);
			count_section(cx, site, FELL_BACK);
			return true;
		}
		if (status == 0)
			touch_section(e->store, g->w);
	}
	e->queue = true;
	count_section(cx, site, STARTS_OVER);
	return false;
}

/* Do the work that was put off, now that it is committed. */
static void
settle_section(ax_ctx *cx)
{
	ax_ctx_body *b = ax_body(cx);
	ax_elide_ctx *e = &b->elide;

	for (uint32_t m = e->deltas; m; m &= m - 1)
	{
		int			i = __builtin_ctz(m);

		atomic_fetch_add_explicit((_Atomic int64_t *) (void *) &e->store->shards[b->shard] + i,
								  e->delta[i], memory_order_relaxed);
	}
	e->deltas = 0;
	for (int i = 0; i < e->nretired; i++)
		ax_retire(cx, e->store, e->retired[i].p, e->retired[i].size);
	e->nretired = 0;
}

/*
 * Latches: gives the guard's back; the last one ends the section.
 */
void
ax_elide_close(ax_ctx *cx, ax_guard *g, bool changed, bool kill)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;
	ax_site		site;

	g->held = false;
	g->how = 0;
	if (by_hand(e))
		e->by->unlock(cx, g, changed, kill);
	else if (kill)
		ax_word_unlock_obsolete(cx, g->w);
	else
		ax_word_unlock(cx, g->w, changed);
	if (--e->guards > 0 || e->coarse)
		return;

	site = (ax_site) (e->open - 1);
	if (ax_likely(e->by == NULL))
	{
		e->apart = 0;
		ax_rtm_end();			/* the site is still open: benchlines.c wants it */
	}
	else if (e->by->undoes)
		e->by->commit(cx);
	e->apart &= (uint8_t) ~AX_APART_TXN;
	e->open = 0;
	AX_POINT("elide.committed");
	if (ax_unlikely(e->failed))
	{
		/* as the processor would: the word that was to be read is another's */
		e->tally.lock_busy++;
		e->queue = true;
		count_section(cx, site, STARTS_OVER);
		return;
	}
	settle_section(cx);
	e->tally.commits++;
	e->queue = false;
	count_section(cx, site, COMMITTED);
}

/* ---- a whole call ---------------------------------------------------------------- */

/* Not with the latch held; false: it does not open soon. */
static bool
wait_free(ax_ctx *cx, ax_store *s, bool write)
{
	for (uint32_t i = 0; !ax_coarse_open(s, write); i++)
	{
		ax_coarse_contended(s, true);
		if (i >= ax_body(cx)->spins)
			return false;
		ax_pause();
	}
	return true;
}

/*
 * Begin a section under the coarse latch: a real transaction reads that it is
 * open, the providers for tests take it by one try.
 *
 * Returns: AX_TX_STARTED, and the section is open; else the status of the
 * abort.
 */
static uint32_t
begin_coarse(ax_ctx *cx, ax_store *s, ax_site site, bool write)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;
	uint32_t	status;

	if (ax_likely(e->by == NULL))
	{
		status = ax_rtm_begin();
		if (status != AX_TX_STARTED)
			return status;
		if (!ax_coarse_open(s, write))
			ax_rtm_abort(AX_TX_BUSY);
		opened(e, site);
		e->coarse = true;
		e->write = write;
		e->apart |= AX_APART_TXN;
		return AX_TX_STARTED;
	}
	status = e->by->begin(cx, site);
	if (status != AX_TX_STARTED)
		return status;
	if (!ax_coarse_try(cx, s, write))
		return AX_TX_EXPLICIT | AX_TX_BUSY << 24;
	opened(e, site);
	e->coarse = true;
	e->write = write;
	if (e->by->undoes)
	{
		e->apart |= AX_APART_TXN;
		e->by->coarse(cx, write);
	}
	return AX_TX_STARTED;
}

bool
ax_elide_coarse(ax_ctx *cx, ax_store *s, bool write, const void *frame, const uint8_t *key,
				uint32_t len)
{
	ax_ctx_body *b = ax_body(cx);
	ax_elide_ctx *e = &b->elide;
	ax_site		site = write ? AX_SITE_COARSE_WRITE : AX_SITE_COARSE_READ;

	if (b->latches > 0 || !section_wanted(cx, s, &site))
		return false;
	/* inside there must be room: for what is put off, and for what is asked for */
	if (write && ax_retire_reserve(cx, AX_ELIDE_RETIRED + 4) != AX_OK)
		return false;
	e->frame = frame;
	pass_by(cx);					/* an earlier call's, which is not to be undone with this one */
	for (;;)
	{
		uint32_t	status;

		if (!wait_free(cx, s, write))
			break;
		e->tally.attempts++;
		status = begin_coarse(cx, s, site, write);
		if (status == AX_TX_STARTED)
			return true;
		AX_POINT("elide.aborted");
		count_abort(&e->tally, status);
		if (!worth_another(cx))
			break;
		/* the way there, read as without any latch; its answer does not matter */
		if (status == 0 && key)
			(void) s->engine->inner->contains(cx, s, key, len);
	}
	count_section(cx, site, FELL_BACK);
	return false;
}

/*
 * Latches: gives the coarse latch back, unless it was only read.
 */
void
ax_elide_coarse_end(ax_ctx *cx, ax_store *s)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;
	ax_site		site = (ax_site) (e->open - 1);

	if (by_hand(e))
		e->by->commit(cx);
	e->coarse = false;
	e->apart &= (uint8_t) ~AX_APART_TXN;
	if (ax_likely(e->by == NULL))
		ax_rtm_end();
	else
		ax_coarse_unlock(cx, s, e->write);
	e->open = 0;
	settle_section(cx);
	e->tally.commits++;
	count_section(cx, site, COMMITTED);
}

/* ---- what a section does not do --------------------------------------------------- */

/* The processor undoes it. */
static void
undo_section(ax_ctx *cx)
{
	ax_rtm_abort(AX_TX_REFUSED);
}

static void
nothing(ax_ctx *cx)
{
}

static void
nothing_alloced(ax_ctx *cx, void *p, uint32_t bytes)
{
}

static void
nothing_given(ax_ctx *cx, void *p)
{
}

/* Of the processor's transactions, of which nothing need be followed. */
static const ax_section_calls processor = {
	.undo = undo_section,
	.passed = nothing,
	.alloced = nothing_alloced,
	.given = nothing_given,
	.detached = nothing
};

/* ---- what callers see --------------------------------------------------------------- */

void
ax_elide_setup(ax_ctx *cx, const ax_hardware *hw, ax_elide_option setting, const ax_provider *by,
			   const char *how)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;

	if (e->calls && e->by != by)
		e->calls->detached(cx);
	e->by = by;
	e->calls = by ? &by->section : &processor;
	e->setting = (uint8_t) setting;
	e->usable = by ? by->setup(cx, setting != AX_ELIDE_OFF, how) : hw && hw->rtm_usable;
#ifdef AX_MAP_RWLOCKS
	e->usable = false;			/* the checker is to see latches */
#endif
	e->on = e->usable && setting != AX_ELIDE_OFF;
	e->queue = e->flushing = false;
}

const ax_elide_host ax_elide_offers = {
	.ctx_bytes = sizeof(ax_ctx_body),
	.wake = ax_word_wake,
	.coarse_unlock = ax_coarse_unlock,
	.site_name = ax_site_name
};

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_tree_set_elision(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_elide_option option)
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);

	if (r != AX_OK)
		return r;
	atomic_store_explicit(&st->elide_option, (uint8_t) option, memory_order_relaxed);
	ax_leave(cx);
	return AX_OK;
}

bool
ax_elide_active(ax_ctx *cx, ax_store *s)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;

	return e->on && ax_inner(s)->object_bytes != NULL &&
		atomic_load_explicit(&s->elide_option, memory_order_relaxed) != AX_ELIDE_OFF &&
		(s->sync == AX_SYNC_COARSE || elision_insisted(e, s));
}

/* Does the tree have such sections? */
static bool
has_site(ax_store *s, ax_site site)
{
	if (ax_inner(s)->object_bytes == NULL)
		return false;
	if (site == AX_SITE_TAIL_FLUSH)
		return true;
	return (site == AX_SITE_COARSE_READ || site == AX_SITE_COARSE_WRITE) ==
		(s->sync == AX_SYNC_COARSE);
}

/* Add up the shards of a site. */
static void
sum_site(struct ax_elide_shared *sh, ax_site site, ax_site_info *o)
{
#define SUM(what) o->what += atomic_load_explicit(&c->what, memory_order_relaxed)
	for (int i = 0; i < AX_SHARDS; i++)
	{
		site_counts *c = &sh->count[i][site];

		SUM(commits);
		SUM(conflict);
		SUM(capacity);
		SUM(explicit_);
		SUM(lock_busy);
		SUM(nested);
		SUM(zero);
		SUM(other);
		SUM(retry_hint);
		SUM(fallbacks);
	}
#undef SUM
	o->attempts = o->commits + o->conflict + o->capacity + o->explicit_ + o->lock_busy +
		o->nested + o->zero + o->other;
	o->sections = o->commits + o->fallbacks;
	o->switch_offs = atomic_load(&sh->site[site].switch_offs);
	o->switch_ons = atomic_load(&sh->site[site].switch_ons);
}

/*
 * Epoch: enters and leaves.
 * Latches: none on entry and on return.
 */
ax_status
ax_aborts(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_site_info out[AX_SITES])
{
	ax_store   *st;
	ax_status	r = ax_enter(cx, t, gen, &st);
	ax_elide_ctx *e = &ax_body(cx)->elide;
	struct ax_elide_shared *sh;
	uint8_t		option;

	memset(out, 0, AX_SITES * sizeof(*out));
	if (r != AX_OK)
		return r;
	option = atomic_load_explicit(&st->elide_option, memory_order_relaxed);
	sh = atomic_load_explicit(&st->elide, memory_order_acquire);
	for (int i = 0; i < AX_SITES; i++)
	{
		ax_site_info *o = &out[i];

		if (sh)
			sum_site(sh, (ax_site) i, o);
		o->mode = option == AX_ELIDE_OFF || e->setting == AX_ELIDE_OFF ? "off" :
			!e->usable ? "no-rtm" :
			!has_site(st, (ax_site) i) || !ax_elide_active(cx, st) ? "off" :
			sh && atomic_load(&sh->site[i].off) && !elision_insisted(e, st) ? "adaptive-off" : "on";
	}
	ax_leave(cx);
	return AX_OK;
}
