/*
 * ax_elide_soft.c
 *	  The provider "software": transactions undone by hand, where the processor has
 *	  none.
 *
 * A section runs under its latches.  In the middle of it, at a point drawn at
 * random, everything is put back as it was at its beginning.  These are the
 * objects it latched and those allocated by the call and not published yet,
 * from copies taken before the first store.  Then the attachment and the
 * call's part of the stack.  Last come the registers, which is a jump.  An engine
 * may store something that a transaction does not take back, or that it only ever
 * does once.  The remains of that show as with the processor's.
 *
 * The differences: others see the latches.  All are given back at the end of
 * the section, whose order of releases must not be seen until it is certain.
 * An object that has been written to when it is put back gets a new version.  For
 * readers may have seen a state that never was.  So such an operation starts over.
 * Readers of ROWEX look at no version: there the abort is behind the first latch,
 * before any store.
 *
 * A section that is too large for the copies is not aborted.
 *
 * src/core/elide/README.md: Elision
 */
#include "core/base/ax_area.h"
#include "core/base/ax_coarse.h"
#include "core/elide/ax_guard.h"
#include "ax_elide_test.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(AX_MAP_RWLOCKS) && !defined(__SANITIZE_THREAD__)
#define AX_SOFT 1
#endif

#ifdef AX_SOFT
#include <sys/mman.h>

#define IMAGES		512
#define IMAGE_BYTES ((uint32_t) 2 << 20)
#define STACK_BYTES ((size_t) 512 << 10)
#define ALLOCS		400
#define PENDING		32

typedef struct image
{
	char	   *at;
	uint32_t	len;
	uint32_t	off;			/* of the copy, in bytes[] */
	ax_word    *word;			/* whose content it is; NULL: private */
} image;

typedef struct ax_soft
{
	ax_elide_script script;
	void	   *jump[5];
	uint64_t	rng;
	uint32_t	planned;		/* status of the abort; AX_TX_STARTED: none */
	uint32_t	countdown;		/* points until then */
	uint32_t	status;			/* of the abort */
	bool		stuck;			/* no abort any more */
	bool		lost;			/* more was allocated than there is room for */
	bool		coarse;			/* the coarse latch is held */
	bool		write;			/* exclusively */
	ax_store   *store;			/* of that latch */
	uint32_t	nimages;
	uint32_t	used;
	uint32_t	nallocs;
	uint32_t	npending;
	char	   *low;			/* of the stack that was copied */
	size_t		stacklen;
	ax_ctx_body ctx;
	image		img[IMAGES];
	struct
	{
		void	   *p;
		uint32_t	bytes;
	}			alloc[ALLOCS];
	struct
	{
		ax_word    *w;
		bool		changed;
		bool		kill;
	}			pending[PENDING];	/* releases */
	char		stack[STACK_BYTES];
	char		bytes[IMAGE_BYTES];
} ax_soft;

static inline ax_soft *
soft_of(ax_ctx *cx)
{
	return ax_body(cx)->elide.provided;
}

static void
detached(ax_ctx *cx)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;

	if (e->provided)
		munmap(e->provided, sizeof(ax_soft));
	e->provided = NULL;
	e->apart = 0;
}

/* The copies are the process's own memory, which it has while it elides. */
static bool
setup(ax_ctx *cx, bool on, const char *how)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;
	ax_soft    *s = e->provided;

	if (!on)
	{
		detached(cx);
		return true;
	}
	if (!s)
	{
		s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (s == MAP_FAILED)
			return false;
		s->rng = ax_body(cx)->rng | 1;
		e->provided = s;
		e->apart = AX_APART_SOFT;
	}
	return ax_elide_parse(how, &s->script);
}

/*
 * From now on the section cannot be undone, and need not be: what it may not do in a
 * transaction it may.
 */
static void
stick(ax_ctx *cx)
{
	soft_of(cx)->stuck = true;
	ax_body(cx)->elide.apart &= (uint8_t) ~AX_APART_TXN;
}

/* Copy len bytes at "at", once. */
static bool
copy(ax_soft *s, char *at, uint32_t len, ax_word *w)
{
	image	   *m = &s->img[s->nimages];

	for (uint32_t i = 0; i < s->nimages; i++)
		if (s->img[i].at == at)
			return true;
	if (s->nimages == IMAGES || len > IMAGE_BYTES - s->used)
		return false;
	m->at = at;
	m->len = len;
	m->off = s->used;
	m->word = w;
	memcpy(s->bytes + s->used, at, len);
	s->nimages++;
	s->used += len;
	return true;
}

/* ---- stack and registers ------------------------------------------------------- */

/* Byte by byte: what a checker of the stack has marked is copied all the same. */
__attribute__((noinline, no_sanitize("address"), no_sanitize("undefined"))) static void
copy_stack(char *to, const char *from, size_t n)
{
	for (size_t i = 0; i < n; i += sizeof(uint64_t))
		*(volatile uint64_t *) (void *) (to + i) = *(const volatile uint64_t *) (const void *) (from + i);
}

/*
 * Put the stack back and jump, from a frame below all that is put back: this
 * function's own may not be among it.
 */
__attribute__((noinline, noreturn, no_sanitize("address"), no_sanitize("undefined"))) static void
jump_back(ax_soft *s)
{
	char		pad[2048];

	__asm__ volatile("" : : "r"(pad) : "memory");
	if ((char *) __builtin_frame_address(0) > s->low - 1024)
	{
		jump_back(s);
		__asm__ volatile("" : : "r"(pad) : "memory");	/* no tail call */
	}
	copy_stack(s->low, s->stack, s->stacklen);
#ifdef AX_ASAN
	__asan_handle_no_return();
#endif
	__builtin_longjmp(s->jump, 1);
}

/* The call's part of the stack, from the frame of begin(). */
__attribute__((noinline)) static void
save_stack(ax_ctx *cx)
{
	ax_soft    *s = soft_of(cx);
	const char *top = ax_body(cx)->elide.frame;

	/*
	 * Where this frame is: what the caller has is above it.  (The words of a jump
	 * say it, too, but in another place with -fcf-protection.)
	 */
	s->low = (char *) ((uintptr_t) __builtin_frame_address(0) & ~(uintptr_t) 7);
	s->stacklen = 0;
	if (!top || top <= s->low || (size_t) (top - s->low) > STACK_BYTES - 8)
	{
		s->stuck = true;
		return;
	}
	s->stacklen = ((size_t) (top - s->low) + 7) & ~(size_t) 7;
	copy_stack(s->stack, s->low, s->stacklen);
}

/*
 * Begin: AX_TX_STARTED.  Comes back a second time when the section was undone, with
 * the status; its caller may have returned meanwhile.  The script plans that status,
 * or AX_TX_STARTED: none.  Without a script it is one of all, now and then.
 */
__attribute__((noinline)) static uint32_t
begin(ax_ctx *cx, ax_site site)
{
	ax_ctx_body *b = ax_body(cx);
	ax_soft    *s = soft_of(cx);
	uint32_t	planned;

	if (__builtin_setjmp(s->jump))
		return soft_of(cx)->status;
	s->rng ^= s->rng << 13;
	s->rng ^= s->rng >> 7;
	s->rng ^= s->rng << 17;
	if (s->script.any)
		planned = ax_elide_next(&s->script, site);
	else
	{
		static const uint32_t causes[] = {
			AX_TX_CONFLICT | AX_TX_RETRY, AX_TX_CONFLICT, AX_TX_CAPACITY, 0,
			AX_TX_NESTED | AX_TX_RETRY, AX_TX_DEBUG, AX_TX_EXPLICIT | AX_TX_BUSY << 24,
			AX_TX_EXPLICIT | AX_TX_REFUSED << 24
		};

		planned = (s->rng >> 8) % 4 ? AX_TX_STARTED : causes[(s->rng >> 16) % 8];
	}
	s->planned = planned;
	s->countdown = b->cur->sync == AX_SYNC_ROWEX ? 0 : (uint32_t) ((s->rng >> 32) % 8);
	s->stuck = s->lost;
	s->coarse = false;
	s->nimages = s->used = s->npending = 0;
	memcpy(&s->ctx, b, sizeof(*b));
	for (uint32_t i = 0; i < s->nallocs && !s->stuck; i++)
		s->stuck = !copy(s, s->alloc[i].p, s->alloc[i].bytes, NULL);
	if (!s->stuck)
		save_stack(cx);
	return AX_TX_STARTED;
}

/* ---- undoing -------------------------------------------------------------------- */

static void
undo(ax_ctx *cx, uint32_t status)
{
	ax_ctx_body *b = ax_body(cx);
	ax_soft    *s = soft_of(cx);
	bool		moved = false;

	AX_ENSURE(b, !s->stuck);
	for (uint32_t i = s->nimages; i-- > 0;)
	{
		image	   *m = &s->img[i];
		const char *was = s->bytes + m->off;

		if (!m->word)
			memcpy(m->at, was, m->len);
		else if (!s->coarse)
		{
			/* latched since it was copied */
			bool		changed = memcmp(m->at, was, m->len) != 0;

			if (changed)
				memcpy(m->at, was, m->len);
			ax_word_unlock(cx, m->word, changed);
			moved = moved || changed;
		}
		else
		{
			/*
			 * Nobody else latches it, but a check may be reading.  It may have gone:
			 * it comes back.
			 */
			uint64_t	old = atomic_fetch_or_explicit(m->word, AX_LOCKED | AX_CLOSED,
													   memory_order_acquire);

			atomic_thread_fence(memory_order_release);
			memcpy(m->at, was, m->len);
			old = atomic_exchange_explicit(m->word, (old & AX_VERSION_MASK) + AX_VERSION_ONE,
										   memory_order_release);
			if (old & AX_WAITERS)
				ax_word_wake(cx, m->word);
		}
	}
	if (s->coarse)
		ax_coarse_unlock(cx, s->store, s->write);
	memcpy(b, &s->ctx, sizeof(*b));
	b->elide.undone = moved;
	s->status = status;
	jump_back(s);
}

/* Here the section may be undone; last: it ends here. */
static void
point(ax_ctx *cx, bool last)
{
	ax_soft    *s = soft_of(cx);

	if (s->stuck || s->planned == AX_TX_STARTED || (!last && s->countdown-- > 0))
		return;
	undo(cx, s->planned);
}

/* The section holds the coarse latch. */
static void
coarse(ax_ctx *cx, bool write)
{
	ax_soft    *s = soft_of(cx);

	s->coarse = true;
	s->write = write;
	s->store = ax_body(cx)->elide.store;
	if (s->stuck)
		stick(cx);				/* since its beginning */
}

/* A guard was latched: copy what it guards. */
static void
locked(ax_ctx *cx, ax_guard *g)
{
	ax_soft    *s = soft_of(cx);
	ax_store   *st = ax_body(cx)->elide.store;
	bool		ok;

	if (s->stuck)
	{
		stick(cx);				/* since its beginning */
		return;
	}
	if (g->w == &st->root_word)
		ok = copy(s, (char *) &st->root, sizeof(st->root), g->w) &&
			copy(s, (char *) &st->height, sizeof(st->height), NULL);
	else
		ok = copy(s, (char *) (g->w + 1), ax_inner(st)->object_bytes(g->w) - (uint32_t) sizeof(*g->w), g->w);
	if (!ok)
	{
		stick(cx);
		return;
	}
	point(cx, false);
}

/* Release: now in a coarse section, else with all others, at its end. */
static void
unlock(ax_ctx *cx, ax_guard *g, bool changed, bool kill)
{
	ax_soft    *s = soft_of(cx);

	point(cx, false);
	if (!s->coarse)
	{
		AX_ENSURE(ax_body(cx), s->npending < PENDING);
		s->pending[s->npending].w = g->w;
		s->pending[s->npending].changed = changed;
		s->pending[s->npending++].kill = kill;
	}
	else if (kill)
		ax_word_unlock_obsolete(cx, g->w);
	else
		ax_word_unlock(cx, g->w, changed);
}

/*
 * The last place to undo it.  Then allocated objects are no longer ours alone, and
 * all latches are given back.
 */
static void
commit(ax_ctx *cx)
{
	ax_soft    *s = soft_of(cx);

	point(cx, true);
	s->nallocs = 0;
	for (uint32_t i = 0; i < s->npending; i++)
		if (s->pending[i].kill)
			ax_word_unlock_obsolete(cx, s->pending[i].w);
		else
			ax_word_unlock(cx, s->pending[i].w, s->pending[i].changed);
	s->npending = 0;
}

/* ---- what is allocated --------------------------------------------------------- */

/*
 * Objects that were allocated before are published (without a section), or
 * gone.
 */
static void
pass(ax_ctx *cx)
{
	ax_soft    *s = soft_of(cx);

	s->nallocs = 0;
	s->lost = false;
}

static void
alloced(ax_ctx *cx, void *p, uint32_t bytes)
{
	ax_soft    *s = soft_of(cx);

	if (s->nallocs == ALLOCS)
	{
		s->lost = true;
		return;
	}
	s->alloc[s->nallocs].p = p;
	s->alloc[s->nallocs++].bytes = bytes;
}

static void
given(ax_ctx *cx, void *p)
{
	ax_soft    *s = soft_of(cx);

	for (uint32_t i = 0; i < s->nallocs; i++)
		if (s->alloc[i].p == p)
		{
			s->alloc[i] = s->alloc[--s->nallocs];
			return;
		}
}

/* It wants what a transaction does not do. */
static void
refuse(ax_ctx *cx)
{
	undo(cx, AX_TX_EXPLICIT | AX_TX_REFUSED << 24);
}

/* Something was counted or retired. */
static void
passed(ax_ctx *cx)
{
	point(cx, false);
}

const ax_provider ax_software = {
	.name = "software",
	.undoes = true,
	.section = {
		.undo = refuse,
		.passed = passed,
		.alloced = alloced,
		.given = given,
		.detached = detached
	},
	.setup = setup,
	.begin = begin,
	.coarse = coarse,
	.locked = locked,
	.unlock = unlock,
	.commit = commit,
	.abort = undo,
	.pass = pass
};

#else							/* not AX_SOFT */

static bool
setup(ax_ctx *cx, bool on, const char *how)
{
	return !on;
}

static void
detached(ax_ctx *cx)
{
}

const ax_provider ax_software = {
	.name = "software",
	.undoes = true,
	.section.detached = detached,
	.setup = setup
};

#endif
