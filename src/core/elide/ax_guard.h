/*
 * ax_guard.h
 *	  Guards: how one piece of code descends optimistically or, after too many
 *	  restarts, with latches.
 *
 * An optimistic guard is a sampled version; a held one is a latch.  valid()
 * and lock() are trivially true for a held guard, so a descent is written
 * once.  Pessimistic descents latch top-down and wait (latch coupling).  Optimistic
 * writers only ever try, also top-down, and let everything go when a try fails.  So
 * there is no cycle of waits.
 *
 * src/core/elide/README.md: Guards
 * src/core/base/README.md: Latches, restarts, waiting
 */
#ifndef AX_GUARD_H
#define AX_GUARD_H

#include "ax_elide.h"

/* Optimistic restarts before the pessimistic way. */
#ifndef AX_MAX_RESTARTS		/* tests force the latter */
#define AX_MAX_RESTARTS 24
#endif

typedef struct ax_guard
{
	ax_word    *w;
	uint64_t	v;
	bool		held;
	uint8_t		how;			/* held: one of these, or 0 */
} ax_guard;

#define AX_G_SHARED 1			/* readers still go on */
#define AX_G_ELIDED 2			/* in a section that is, or could be, a transaction */

/*
 * AX_OK, AX_BUSY, or AX_STALE: the node is obsolete, start over.
 *
 * Epoch: inside.
 * Latches: with "pess" the word is write-latched on AX_OK; else it is only
 * sampled.
 */
static inline ax_status
ax_guard_open(ax_ctx *cx, ax_guard *g, ax_word *w, bool pess)
{
	g->w = w;
	g->held = false;
	g->how = 0;
	if (ax_unlikely(pess))
	{
		ax_status	r = ax_word_lock(cx, w, &g->v);

		if (r == AX_OK)
			g->held = true;
		return r;
	}
	g->v = ax_word_read(w);
	if (ax_unlikely(g->v & AX_FLAGS))
		return ax_word_sample(cx, w, &g->v);
	return AX_OK;
}

/*
 * How a descent goes; known wherever it is compiled.  Writers (AX_WRITES) know that
 * nothing above the place of their change is held under optimism, and all under
 * pessimism.
 */
typedef enum ax_mode
{
	AX_OPTIMISTIC,				/* every version is sampled */
	AX_PESSIMISTIC,				/* latched, waiting */
	AX_READ,					/* look-ups: sampled */
	AX_TRY,						/* the same, waiting for nobody: AX_STALE */
	AX_ROWEX					/* readers of ROWEX, who look at no version */
} ax_mode;

#define AX_WRITES(mode) ((mode) <= AX_PESSIMISTIC)

/*
 * Sample w, or latch it: as ax_guard_open().
 *
 * Epoch: inside.
 * Latches: as ax_guard_open(), whose "pess" is AX_PESSIMISTIC.
 */
__attribute__((always_inline)) static inline ax_status
ax_open(ax_ctx *cx, ax_guard *g, ax_word *w, const ax_mode mode)
{
	uint64_t	v;

	if (mode == AX_ROWEX)
	{
		*g = (ax_guard) {0};	/* of nothing; nobody reads it */
		return AX_OK;
	}
	if (mode == AX_PESSIMISTIC)
		return ax_guard_open(cx, g, w, true);
	v = ax_word_read(w);
	if (ax_unlikely(v & AX_FLAGS))
	{
		uint64_t	sample = v; /* so that v can be a register */
		ax_status	x = mode == AX_TRY ? AX_STALE : ax_word_sample(cx, w, &sample);

		if (x != AX_OK)
			return x;
		v = sample;
	}
	g->w = w;
	g->v = v;
	g->held = false;
	g->how = 0;
	return AX_OK;
}

/* Of what was opened so, and not since latched. */
__attribute__((always_inline)) static inline bool
ax_valid(const ax_guard *g, const ax_mode mode)
{
	return mode == AX_ROWEX || mode == AX_PESSIMISTIC || ax_likely(ax_word_valid(g->w, g->v));
}

/*
 * ax_guard_open() for the place that a write goes to.  Under OptiQL it is latched at
 * once, in the queue, whatever its version.  The caller then validates what
 * led to it (Algorithm 4 of the paper), and readers go on until
 * ax_guard_lock().  Nothing else may be held but, pessimistically, what is
 * above.
 *
 * Latches: as ax_guard_open().  Under OptiQL the word is write-latched and
 * shared on AX_OK.
 */
static inline ax_status
ax_guard_open_target(ax_ctx *cx, const ax_store *s, ax_guard *g, ax_word *w, bool pess)
{
	ax_status	r;

	if (s->sync != AX_SYNC_OPTIQL)
		return ax_guard_open(cx, g, w, pess);
	if (ax_unlikely(ax_body(cx)->elide.on) && !pess && ax_elide_instead(cx, (ax_store *) (uintptr_t) s))
		return ax_guard_open(cx, g, w, false);
	g->w = w;
	g->held = false;
	g->how = 0;
	r = ax_likely(ax_word_take(cx, w, &g->v)) ? AX_OK : ax_word_acquire(cx, w, true, &g->v);
	if (r == AX_OK)
	{
		g->held = true;
		g->how = AX_G_SHARED;
	}
	return r;
}

static inline bool
ax_guard_valid(const ax_guard *g)
{
	return g->held || ax_word_valid(g->w, g->v);
}

/* Held, but shared? */
static inline bool
ax_guard_shared(const ax_guard *g)
{
	return g->how == AX_G_SHARED;
}

/*
 * Latch it, at the version of the sample.  False: it is not to be had, start
 * over. site: where elision is on and nothing is latched yet, this begins a
 * section (ax_elide.h).  It ends when the last guard locked in it is closed.
 * Until then it may come back here, undone: so memory is taken before, and
 * what must be done once is done after.  AX_SITES: never.
 *
 * Latches: the word is write-latched on true.
 */
__attribute__((always_inline)) static inline bool
ax_guard_lock_at(ax_ctx *cx, ax_guard *g, ax_site site)
{
	if (!g->held)
	{
		if (ax_unlikely(ax_body(cx)->elide.on) && site != AX_SITES)
			(void) ax_elide_lock(cx, g, site);
		else
			g->held = ax_word_trylock(cx, g->w, g->v);
	}
	else
	{
		/* what is about to be published under a latch is not undone by a later section */
		if (ax_unlikely(ax_body(cx)->elide.on) && g->how != AX_G_ELIDED)
			ax_elide_pass(cx);
		if (ax_guard_shared(g))
		{
			ax_word_close(g->w);
			g->how = 0;
		}
	}
	AX_POINT("guard.latched");
	return g->held;
}

/*
 * The same, in no section of its own.
 *
 * Latches: the word is write-latched on true.
 */
static inline bool
ax_guard_lock(ax_ctx *cx, ax_guard *g)
{
	return ax_guard_lock_at(cx, g, AX_SITES);
}

/*
 * Let go; changed: what readers saw is no more.
 *
 * Latches: gives back the guard's, if it has one.  Within a section others see
 * that when it ends.
 */
static inline void
ax_guard_close(ax_ctx *cx, ax_guard *g, bool changed)
{
	if (g->held)
	{
		AX_POINT("guard.release");
		if (ax_unlikely(g->how))
		{
			if (g->how == AX_G_ELIDED)
				ax_elide_close(cx, g, changed, false);
			else
				ax_word_release(cx, g->w);
			g->how = 0;
		}
		else
			ax_word_unlock(cx, g->w, changed);
		g->held = false;
	}
	else
		ax_map_unshare(g->w);
}

/*
 * Let go of what was opened so, and only read.
 *
 * Latches: pessimistically gives back the guard's, if it has one.
 */
__attribute__((always_inline)) static inline void
ax_close(ax_ctx *cx, ax_guard *g, const ax_mode mode)
{
	if (mode == AX_PESSIMISTIC)
		ax_guard_close(cx, g, false);
	else if (mode != AX_ROWEX)
		ax_map_unshare(g->w);
}

/*
 * Give a guard's latch back for good: the node is obsolete from now on.
 *
 * Latches: the guard has it; none on return.
 */
static inline void
ax_guard_kill(ax_ctx *cx, ax_guard *g)
{
	AX_POINT("guard.release");
	if (ax_unlikely(g->how == AX_G_ELIDED))
		ax_elide_close(cx, g, true, true);
	else
		ax_word_unlock_obsolete(cx, g->w);
	g->held = false;
}

/* Count a restart and give the others a little time. */
static inline void
ax_restarted(ax_ctx *cx, ax_store *s, int tries)
{
	ax_ctx_body *b = ax_body(cx);

	ax_map_unshare_all();
	AX_COUNT(cx, s, restarts, 1);
	if (b->opportunistic)
	{
		/* the start over may have another cause */
		if ((atomic_load_explicit(b->opportunistic, memory_order_relaxed) ^ b->opportunistic_v) &
			(AX_VERSION_MASK | AX_KEEP_OUT))
			AX_COUNT(cx, s, opportunistic_failed, 1);
		b->opportunistic = NULL;
	}
	if (tries == AX_MAX_RESTARTS - 1)
		AX_COUNT(cx, s, pessimistic, 1);
	if (tries > 1)
		ax_contended(cx);
	if (tries > 2)
		for (int i = 0; i < (tries < 10 ? 1 << tries : 1024); i++)
			ax_pause();
}

/*
 * Every operation tries until nothing changes meanwhile:
 *
 *	do
 *		x = one_try(.., ax_pessimistic(tries));
 *	while (ax_start_over(cx, s, x, &tries));
 *
 * After so many tries that were lost, is the next one with latches?
 */
static inline bool
ax_pessimistic(int tries)
{
	return ax_unlikely(tries >= AX_MAX_RESTARTS);
}

/*
 * A try ended with x.  True: something changed meanwhile, AX_STALE; make another one,
 * before which the others get a little time.
 */
static inline bool
ax_start_over(ax_ctx *cx, ax_store *s, ax_status x, int *tries)
{
	if (ax_likely(x != AX_STALE))
		return false;
	ax_restarted(cx, s, (*tries)++);
	return true;
}

#endif							/* AX_GUARD_H */
