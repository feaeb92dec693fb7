/*
 * surplus.c
 *	  What indexes hold beyond what they need: compaction of their structures, by
 *	  VACUUM, by the launcher, and by somebody who would be refused memory.
 *
 * A structure is compacted from itself, in bounded steps of the core's
 * (core/radix/rt_compact.c, core/btree/bt_compact.c).  That asks neither the table nor the
 * catalogs nor any comparison, so any process can do it for an index of any
 * database.  Nothing is held between two steps, and a structure that goes
 * meanwhile says so.
 *
 * src/core/base/README.md: Compaction
 */
#include "postgres.h"

#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "area/shared_state.h"
#include "limits/limits.h"

#define ART_PASSES		16		/* at most, of those that give something */
#define ART_WAIT_MS		1000	/* of VACUUM, after each, for those who may see what was moved */
#define ART_SLICE_MS	100		/* of the launcher, then its other work */
#define ART_SEARCH_MS	5000	/* between two of its looks */
#define ART_FUTILE_MS	10000	/* before a process tries again what gave nothing */
#define ART_SURPLUS		((uint64) 1024 * 1024)	/* less is not worth a look */
#define ART_CAP_SURPLUS ((uint64) 256 * 1024)	/* more than one call takes and gives back */
#define ART_STEPS		32		/* between two looks at what came free */
#define ART_TRIED		64

/* A compaction under way. */
typedef struct Compacting
{
	ax_tree    *tree;			/* NULL: none */
	uint64		gen;
	int			pass;
	uint64		held;			/* bytes after the pass before; 0: this is the first */
	ax_compaction c;
} Compacting;

/* A structure, and what it held when it was last compacted in the background. */
typedef struct Tried
{
	uint64		gen;
	uint64		surplus;
} Tried;

/* ---- one structure ---- */

static void
compacting_begin(Compacting *a, void *work, ax_tree *tree, uint64 gen)
{
	memset(a, 0, sizeof(*a));
	a->tree = tree;
	a->gen = gen;
	a->c.work = work;
}

/*
 * What is the global epoch?
 *
 * Epoch: either.
 */
static uint64
epoch_now(void)
{
	ax_epoch_info e;
	ax_ctx	   *cx = art_ctx();

	ART_CORE_BEGIN();
	ax_epochs(cx, 0, &e);
	ART_CORE_END();
	return e.global_epoch;
}

/*
 * Give back to their spans what is retired, and what this process and idle ones
 * keep at hand: one object keeps a span.  The function waits for others that are in
 * a call, for at most "wait" milliseconds.  True: all that was retired before the call
 * has been given back.
 *
 * Epoch: enters and leaves.
 */
static bool
let_retired_go(int wait)
{
	TimestampTz begun = GetCurrentTimestamp();
	uint64		then = epoch_now() + 2;
	ax_ctx	   *cx = art_ctx();
	bool		gone;

	for (;;)
	{
		/* first, so that the poll finds all of that expired */
		gone = epoch_now() >= then;
		gone = art_poll() || gone;
		if (gone || TimestampDifferenceExceeds(begun, GetCurrentTimestamp(), wait))
			break;
		pg_usleep(1000);		/* no art_doze: the launcher is to see that its latch is set */
	}
	ART_CORE_BEGIN();
	ax_flush_idle(cx);
	ART_CORE_END();
	return gone;
}

/*
 * One step, and after a pass a wait for readers, as let_go's.  False: it is over.
 * The first pass chooses the spans that are to become empty.  The next ones move
 * what it met before that, as long as there is less after each.
 *
 * Epoch: enters and leaves.
 */
static bool
compacting_step(Compacting *a, int wait)
{
	ax_ctx	   *cx = art_ctx();
	uint64		bytes;
	uint64		live;
	uint64		moved;
	bool		less;
	bool		gone;
	ax_status	s;

	ART_CORE_BEGIN();
	s = ax_compact(cx, a->tree, a->gen, &a->c);
	ART_CORE_END();
	if (s == AX_BUSY)
	{
		art_busy();
		return true;
	}
	if (s != AX_OK)
		return false;
	if (!a->c.done)
		return true;

	/* what was moved leaves its spans when no reader can be there */
	gone = let_retired_go(wait);
	ART_CORE_BEGIN();
	s = ax_held(cx, a->tree, a->gen, &bytes, &live);
	ART_CORE_END();
	moved = a->c.moved;
	a->c = (ax_compaction) {.work = a->c.work};
	if (s != AX_OK)
		return false;
	less = a->held == 0 || bytes < a->held;
	a->held = bytes;
	if (++a->pass >= ART_PASSES)
		return false;
	/* else the copies and what they were made of are still both there and count */
	return !gone || (moved > 0 && less && ax_compact_due(bytes, live));
}

/*
 * VACUUM's: merge what is sparse in the structure, and move objects out of spans
 * that hardly have any, until that gives nothing more.  An error, as of a cancelled
 * query, leaves the structure sound.
 */
void
art_compact_index(ax_tree *tree, uint64 gen)
{
	void	   *work = palloc(AX_COMPACT_WORK);
	Compacting	a;

	compacting_begin(&a, work, tree, gen);
	while (compacting_step(&a, ART_WAIT_MS))
		art_vacuum_delay_point();
	pfree(work);
}

/* ---- the one that holds most ---- */

/* As good as nothing more than it needs? */
static bool
is_tried(const Tried *tried, uint64 gen, uint64 surplus)
{
	for (int i = 0; tried != NULL && i < ART_TRIED; i++)
		if (tried[i].gen == gen)
			return surplus < tried[i].surplus + tried[i].surplus / 4 + ART_SURPLUS;
	return false;
}

/*
 * The ready structure that holds most beyond what it needs, of any database.
 * False: none is worth it. times: only one that holds more than so many
 * hundredths of what its objects take. group: only one of this. tried: not one
 * that was compacted and has not grown since.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition locks, shared, one after the other.
 */
static bool
find_surplus(int times, const ArtGroup *group, const Tried *tried, ax_tree **tree, uint64 *gen)
{
	ax_ctx	   *cx = art_ctx();
	ArtWalk		walk = art_walk(LW_SHARED, InvalidOid, InvalidOid);
	uint64		most = 0;

	for (ArtEntry *e; (e = art_walk_next(&walk)) != NULL;)
	{
		uint64		w = pg_atomic_read_u64(&e->word);
		uint64		bytes;
		uint64		live;
		ax_status	s;

		if ((ART_WORD_STATE(w) != ART_READY && ART_WORD_STATE(w) != ART_FOLLOWED) ||
			(group != NULL && !art_in_group(e, group)))
			continue;
		ART_CORE_BEGIN();
		s = ax_held(cx, e->tree, ART_WORD_GEN(w), &bytes, &live);
		ART_CORE_END();
		if (s != AX_OK || !ax_compact_due(bytes, live) ||
			bytes < live / 100 * times || bytes - live <= Max(most, ART_SURPLUS) ||
			is_tried(tried, ART_WORD_GEN(w), bytes - live))
			continue;
		most = bytes - live;
		*tree = e->tree;
		*gen = ART_WORD_GEN(w);
	}
	return most > 0;
}

bool
art_compact_for_room(const ArtGroup *group, uint64 before, int ms)
{
	static TimestampTz futile = 0;
	TimestampTz begun = GetCurrentTimestamp();
	Compacting	a;
	void	   *work;
	ax_tree    *tree;
	uint64		gen;
	bool		more = true;
	bool		any = false;

	if ((futile <= begun && !TimestampDifferenceExceeds(futile, begun, ART_FUTILE_MS)) ||
		!find_surplus(100, group, NULL, &tree, &gen))
		return false;
	work = palloc(AX_COMPACT_WORK);
	compacting_begin(&a, work, tree, gen);
	for (int n = 1; more && !any && !TimestampDifferenceExceeds(begun, GetCurrentTimestamp(), ms); n++)
	{
		CHECK_FOR_INTERRUPTS();
		more = compacting_step(&a, ART_SLICE_MS);
		if (!more || n % ART_STEPS == 0)
		{
			let_retired_go(0);
			any = art_left_to(group) > before;
		}
	}
	pfree(work);
	if (!any)
		futile = begun;
	return any;
}

/*
 * Epoch: enters and leaves, once a step; checks for interrupts between two.
 */
bool
art_compact_for_cap(ax_tree *tree, uint64 gen, int ms)
{
	TimestampTz begun = GetCurrentTimestamp();
	Compacting	a;
	uint64		before;
	uint64		bytes;
	uint64		live;
	ax_ctx	   *cx = art_ctx();
	ax_status	s;

	ART_CORE_BEGIN();
	s = ax_held(cx, tree, gen, &before, &live);
	ART_CORE_END();
	/* else its caller would take that again, be refused again, and come back for ever */
	if (s != AX_OK || !ax_compact_due(before, live) || before - live < ART_CAP_SURPLUS)
		return false;
	compacting_begin(&a, palloc(AX_COMPACT_WORK), tree, gen);
	while (compacting_step(&a, ART_SLICE_MS) && !TimestampDifferenceExceeds(begun, GetCurrentTimestamp(), ms))
		CHECK_FOR_INTERRUPTS();
	pfree(a.c.work);
	ART_CORE_BEGIN();
	s = ax_held(cx, tree, gen, &bytes, &live);
	ART_CORE_END();
	return s == AX_OK && bytes < before;
}

/*
 * Epoch: enters and leaves, once a step; checks for interrupts between two.
 */
int
art_compact_background(int pause)
{
	static Compacting a;
	static void *work = NULL;
	static TimestampTz looked = 0;
	static Tried tried[ART_TRIED];
	static int	next = 0;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz begun = now;
	ax_tree    *tree;
	uint64		gen;

	if (a.tree == NULL)
	{
		if (looked <= now && !TimestampDifferenceExceeds(looked, now, ART_SEARCH_MS))
			return pause;
		looked = now;
		if (!find_surplus(150, NULL, tried, &tree, &gen))
			return pause;
		if (work == NULL)
			work = MemoryContextAlloc(TopMemoryContext, AX_COMPACT_WORK);
		compacting_begin(&a, work, tree, gen);
	}
	while (compacting_step(&a, ART_SLICE_MS))
	{
		CHECK_FOR_INTERRUPTS();
		now = GetCurrentTimestamp();
		if (TimestampDifferenceExceeds(begun, now, ART_SLICE_MS))
			return Min(pause, ART_SLICE_MS);
	}

	/* not again until it holds more than what could not be given back */
	{
		uint64		bytes;
		uint64		live;
		ax_ctx	   *cx = art_ctx();
		ax_status	s;
		int			i;

		ART_CORE_BEGIN();
		s = ax_held(cx, a.tree, a.gen, &bytes, &live);
		ART_CORE_END();
		for (i = 0; i < ART_TRIED && tried[i].gen != a.gen; i++)
			;
		if (i == ART_TRIED)
		{
			i = next;
			next = (next + 1) % ART_TRIED;
		}
		tried[i].gen = a.gen;
		tried[i].surplus = s == AX_OK && bytes > live ? bytes - live : 0;
	}
	a.tree = NULL;
	looked = 0;
	return Min(pause, ART_SLICE_MS);
}
