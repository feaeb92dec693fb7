/*
 * counters.c
 *	  What the core counted in the structures of an index, kept over their ends.
 *
 * The core counts by generation, in the structure.  A user of statistics wants
 * them by index, never falling but by a reset: so the entry keeps the sum of
 * what closed generations counted.  A reset subtracts what the present one has
 * counted so far, in the same place (modulo 2^64), for the core's counters are
 * never set back.  Sums are read and moved under the partition lock, so that
 * nothing is counted twice.
 *
 * The core also counts by generation and site the sections that are tried as
 * transactions.  These counts are kept in the same way.
 *
 * src/views/README.md: Statistics
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"

/* ---- by site: what became of sections (artidx_aborts) ---- */

/* In the order of the view's columns. */
enum
{
	SECTIONS,
	ATTEMPTS,
	COMMITS,
	CONFLICT,
	CAPACITY,
	EXPLICIT,
	LOCK_BUSY,
	NESTED,
	ZERO,
	OTHER,
	RETRY_HINT,
	FALLBACKS,
	SWITCH_OFFS,
	SWITCH_ONS
};

StaticAssertDecl(SWITCH_ONS + 1 == ART_NABORTS, "one place a counter");

/* Of several structures, the mode that says most of what is tried. */
static const char *const modes[] = {"on", "adaptive-off", "off", "no-rtm"};

/* Of two modes (NULL: none) the one that stands first in modes[]. */
static const char *
more_telling(const char *a, const char *b)
{
	for (int i = 0; i < (int) lengthof(modes); i++)
	{
		if (a != NULL && strcmp(a, modes[i]) == 0)
			return a;
		if (b != NULL && strcmp(b, modes[i]) == 0)
			return b;
	}
	return a;
}

/*
 * The counts of the generation; false, and zeros, when it is gone.  mode (may
 * be NULL) takes how its sites run in this process, joined with what is there.
 *
 * Epoch: enters and leaves.
 * Locks: partition lock held, in any mode.
 */
static bool
present_aborts(ArtEntry *e, uint64 gen, ArtSiteCounts counts, const char **mode)
{
	ax_ctx	   *cx = art_ctx();
	ax_site_info info[AX_SITES];
	ax_status	st;

	ART_CORE_BEGIN();
	st = ax_aborts(cx, e->tree, gen, info);
	ART_CORE_END();
	memset(counts, 0, sizeof(ArtSiteCounts));
	if (st != AX_OK)
		return false;
	for (int s = 0; s < AX_SITES; s++)
	{
		uint64	   *c = counts[s];

		c[SECTIONS] = info[s].sections;
		c[ATTEMPTS] = info[s].attempts;
		c[COMMITS] = info[s].commits;
		c[CONFLICT] = info[s].conflict;
		c[CAPACITY] = info[s].capacity;
		c[EXPLICIT] = info[s].explicit_;
		c[LOCK_BUSY] = info[s].lock_busy;
		c[NESTED] = info[s].nested;
		c[ZERO] = info[s].zero;
		c[OTHER] = info[s].other;
		c[RETRY_HINT] = info[s].retry_hint;
		c[FALLBACKS] = info[s].fallbacks;
		c[SWITCH_OFFS] = info[s].switch_offs;
		c[SWITCH_ONS] = info[s].switch_ons;
		if (mode != NULL)
			mode[s] = more_telling(mode[s], info[s].mode);
	}
	return true;
}

/*
 * Most structures count nothing, for most processors cannot elide.  So the
 * memory is taken when there is something to be kept.  False: there is nothing,
 * or there is no memory, and then these counts are lost.
 *
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 */
static bool
aborts_wanted(ArtEntry *e, ArtSiteCounts counts)
{
	static const ArtSiteCounts none;
	ArtAborts  *a;

	if (e->aborts != NULL)
		return true;
	if (memcmp(counts, none, sizeof(none)) == 0)
		return false;
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	if (art_shared->free_aborts == NULL)
	{
		ArtAborts  *chunk = art_system_alloc(AX_PAGE);

		for (size_t i = 0; chunk != NULL && i < AX_PAGE / sizeof(ArtAborts); i++)
		{
			chunk[i].next = art_shared->free_aborts;
			art_shared->free_aborts = &chunk[i];
		}
	}
	a = art_shared->free_aborts;
	if (a != NULL)
		art_shared->free_aborts = a->next;
	art_unlock(art_chunk_lock);
	if (a != NULL)
		memset(a, 0, sizeof(*a));
	e->aborts = a;
	return a != NULL;
}

/*
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 */
void
art_aborts_forget(ArtEntry *e)
{
	if (e->aborts == NULL)
		return;
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	e->aborts->next = art_shared->free_aborts;
	art_shared->free_aborts = e->aborts;
	art_unlock(art_chunk_lock);
	e->aborts = NULL;
}

/* The same as art_counts_keep, for the aborts. */
static void
aborts_keep(ArtEntry *e, uint64 gen)
{
	ArtSiteCounts	counts;

	if (!present_aborts(e, gen, counts, NULL) || !aborts_wanted(e, counts))
		return;
	for (int s = 0; s < AX_SITES; s++)
		for (int i = 0; i < ART_NABORTS; i++)
			e->aborts->counts[s][i] += counts[s][i];
}

/* The same as art_counts_inherit, for the aborts. */
static void
aborts_inherit(ArtEntry *heir, const ArtEntry *e)
{
	if (e->aborts == NULL || !aborts_wanted(heir, e->aborts->counts))
		return;
	for (int s = 0; s < AX_SITES; s++)
		for (int i = 0; i < ART_NABORTS; i++)
			heir->aborts->counts[s][i] += e->aborts->counts[s][i];
}

/* The same as art_counts_reset, for the aborts. */
static void
aborts_reset(ArtEntry *e)
{
	uint64		w = pg_atomic_read_u64(&e->word);
	ArtSiteCounts	counts = {{0}};

	if (ART_WORD_STATE(w) != ART_ABSENT)
		(void) present_aborts(e, ART_WORD_GEN(w), counts, NULL);
	if (!aborts_wanted(e, counts))
		return;
	for (int s = 0; s < AX_SITES; s++)
		for (int i = 0; i < ART_NABORTS; i++)
			e->aborts->counts[s][i] = UINT64CONST(0) - counts[s][i];
}

void
art_aborts_add(ArtEntry *e, ArtSiteCounts sum, const char **mode)
{
	uint64		w = pg_atomic_read_u64(&e->word);
	ArtSiteCounts present = {{0}};

	if (ART_WORD_STATE(w) != ART_ABSENT)
		(void) present_aborts(e, ART_WORD_GEN(w), present, mode);
	for (int s = 0; s < AX_SITES; s++)
		for (int i = 0; i < ART_NABORTS; i++)
			sum[s][i] += present[s][i] + (e->aborts ? e->aborts->counts[s][i] : 0);
}

/* ---- what processes met of one another (artidx_contention) ---- */

/*
 * The core's counters in the order of ArtEntry.counts and of the view's
 * columns.
 */
static void
list_counts(const ax_tree_info *info, uint64 *counts)
{
	int			n = 0;

	counts[n++] = info->restarts;
	counts[n++] = info->pessimistic;
	counts[n++] = info->latch_waits;
	counts[n++] = info->parks;
	counts[n++] = info->handovers;
	counts[n++] = info->abandoned;
	counts[n++] = info->opportunistic_reads;
	counts[n++] = info->opportunistic_failed;
	counts[n++] = info->expansions;
	counts[n++] = info->tail_inserts;
	counts[n++] = info->tail_bypassed;
	counts[n++] = info->tail_flushes;
	counts[n++] = info->tail_flushed;
	counts[n++] = info->tail_flush_ns;
	Assert(n == ART_NCOUNTS);
}

/*
 * Of the generation, zeros when it is gone.  now, if given, takes what is so at the
 * moment.
 *
 * Epoch: enters and leaves.
 * Locks: partition lock held, in any mode.
 */
static void
present_counts(ArtEntry *e, uint64 gen, uint64 *counts, ArtPresent *now)
{
	ax_ctx	   *cx = art_ctx();
	ax_tree_info info;
	ax_status	st;

	ART_CORE_BEGIN();
	st = ax_info(cx, e->tree, gen, &info);
	ART_CORE_END();
	if (st == AX_OK)
	{
		list_counts(&info, counts);
		if (now == NULL)
			return;
		if (strcmp(info.tail_mode, "off") != 0)
			now->tail_mode = info.tail_mode;
		/* read one after the other: what was applied may be ahead */
		if (info.search_logged > info.search_applied)
			now->search_lag += info.search_logged - info.search_applied;
		now->search_applied += info.search_applied;
		now->walks += info.walks;
		now->walk_steps += info.walk_steps;
		now->longest_walk = Max(now->longest_walk, info.walk_longest);
		now->version_commits += info.commits;
		now->versions_passed += info.versions_passed;
		now->commits_helped += info.commits_helped;
	}
	else
		memset(counts, 0, ART_NCOUNTS * sizeof(*counts));
}

/*
 * Epoch: enters and leaves.
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive, if
 * there are aborts to keep.
 */
void
art_counts_keep(ArtEntry *e, uint64 gen)
{
	uint64		counts[ART_NCOUNTS];

	present_counts(e, gen, counts, NULL);
	for (int i = 0; i < ART_NCOUNTS; i++)
		e->counts[i] += counts[i];
	aborts_keep(e, gen);
}

/*
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive, if
 * there are aborts to keep.
 */
void
art_counts_inherit(ArtEntry *heir, const ArtEntry *e)
{
	for (int i = 0; i < ART_NCOUNTS; i++)
		heir->counts[i] += e->counts[i];
	aborts_inherit(heir, e);
	heir->stats_reset = Max(heir->stats_reset, e->stats_reset);
}

/*
 * Epoch: enters and leaves.
 * Locks: partition locks of both held, exclusive; takes the chunk lock, exclusive, if
 * there are aborts to keep.
 */
void
art_counts_exchange(ArtEntry *a, ArtEntry *b)
{
	ArtEntry   *const e[] = {a, b};
	const TimestampTz reset[] = {a->stats_reset, b->stats_reset};
	uint64		present[2][ART_NCOUNTS] = {{0}};
	uint64		sum[2][ART_NCOUNTS] = {{0}};
	ArtSiteCounts present_at[2] = {{{0}}};
	ArtSiteCounts sum_at[2] = {{{0}}};

	for (int k = 0; k < 2; k++)
	{
		uint64		w = pg_atomic_read_u64(&e[k]->word);

		if (ART_WORD_STATE(w) != ART_ABSENT)
		{
			present_counts(e[k], ART_WORD_GEN(w), present[k], NULL);
			(void) present_aborts(e[k], ART_WORD_GEN(w), present_at[k], NULL);
		}
		art_counts_add(e[k], sum[k], NULL);
		art_aborts_add(e[k], sum_at[k], NULL);
	}
	for (int k = 0; k < 2; k++)
	{
		for (int i = 0; i < ART_NCOUNTS; i++)
			e[k]->counts[i] = sum[1 - k][i] - present[k][i];
		for (int s = 0; s < AX_SITES; s++)
			for (int i = 0; i < ART_NABORTS; i++)
				sum_at[1 - k][s][i] -= present_at[k][s][i];
		if (aborts_wanted(e[k], sum_at[1 - k]))
			memcpy(e[k]->aborts->counts, sum_at[1 - k], sizeof(ArtSiteCounts));
		e[k]->stats_reset = reset[1 - k];
	}
}

void
art_counts_add(ArtEntry *e, uint64 *counts, ArtPresent *now)
{
	uint64		w = pg_atomic_read_u64(&e->word);
	uint64		present[ART_NCOUNTS] = {0};

	if (ART_WORD_STATE(w) != ART_ABSENT)
		present_counts(e, ART_WORD_GEN(w), present, now);
	for (int i = 0; i < ART_NCOUNTS; i++)
		counts[i] += present[i] + e->counts[i];
}

void
art_counts_reset(ArtEntry *e, TimestampTz now)
{
	uint64		w = pg_atomic_read_u64(&e->word);
	uint64		counts[ART_NCOUNTS] = {0};

	if (ART_WORD_STATE(w) != ART_ABSENT)
		present_counts(e, ART_WORD_GEN(w), counts, NULL);
	for (int i = 0; i < ART_NCOUNTS; i++)
		e->counts[i] = UINT64CONST(0) - counts[i];
	aborts_reset(e);
	e->stats_reset = now;
}
