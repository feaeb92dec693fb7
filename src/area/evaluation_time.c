/*
 * evaluation_time.c
 *	  A background process that the launcher watches: its side.
 *
 * An expression of an index may never end, and whoever waits for a lock, or for
 * a worker, would wait with it.  So the process says when it evaluates one, and
 * the launcher looks whether it is the same for long (workers/watchdog.c).  All
 * else that takes long does not count: locks, sorting, loading, rests.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"

#define ART_ERROR_PAUSE_S		60	/* before an index that failed is tried again */
#define ART_STUCK_MAX_S		3600	/* the longest pause before the next try */

static ArtWatch *watch = NULL;	/* NULL: nobody watches this process */
static bool evaluates = false;

void
art_watched_by(ArtWatch *w)
{
	watch = w;
	pg_atomic_write_u32(&w->end, ART_END_NOT);
}

bool
art_evaluate_begin(void)
{
	if (watch == NULL || evaluates)
		return false;
	evaluates = true;
	pg_atomic_write_u64(&watch->row, (pg_atomic_read_u64(&watch->row) + 1) | 1);
	return true;
}

void
art_evaluate_end(bool begun)
{
	if (!begun)
		return;
	evaluates = false;
	pg_atomic_write_u64(&watch->row, (pg_atomic_read_u64(&watch->row) + 1) & ~UINT64CONST(1));
}

/*
 * Another row, where core evaluates them one after the other.
 */
void
art_evaluate_row(void)
{
	if (evaluates)
		pg_atomic_write_u64(&watch->row, pg_atomic_read_u64(&watch->row) + 2);
}

void
art_evaluate_reset(void)
{
	art_evaluate_end(evaluates);
}

/* Is this process within an expression, as the launcher sees it? */
bool
art_evaluates(void)
{
	return evaluates;
}

/*
 * The launcher asks this of the process.
 */
ArtEnd
art_watch_end(void)
{
	return watch == NULL ? ART_END_NOT : (ArtEnd) pg_atomic_read_u32(&watch->end);
}

/*
 * Another piece of work begins.  A cancel that came too late for the last one, or
 * after its end, is not for this.  The end of a turn stays.
 */
void
art_watch_anew(void)
{
	art_evaluate_reset();
	QueryCancelPending = false;
	if (watch != NULL && art_watch_end() != ART_END_TURN)
		pg_atomic_write_u32(&watch->end, ART_END_NOT);
}

/*
 * How much maintenance_work_mem a build of this process has, in kB.  A background process
 * takes the server's: the setting of a database is its owner's, and the memory is everybody's.
 */
int
art_build_kb(void)
{
	uint32		kb = watch == NULL ? 0 : pg_atomic_read_u32(&art_shared->build_kb);

	return kb == 0 ? maintenance_work_mem : (int) kb;
}

/*
 * Until when workers leave alone what ended with an error: a minute, unless an expression did
 * not end.  0: it did not end so.
 *
 * Locks: partition lock held, in any mode; or it is a copy.
 */
TimestampTz
art_error_until(const ArtEntry *e)
{
	if (e->failed_at == 0 || e->reason != ART_WHY_ERROR ||
		ART_WORD_STATE(pg_atomic_read_u64((pg_atomic_uint64 *) &e->word)) != ART_ABSENT)
		return 0;
	return e->failed_at + (e->stuck ? e->backoff_s : ART_ERROR_PAUSE_S) * USECS_PER_SEC;
}

/* The same, if an expression of it did not end. */
TimestampTz
art_stuck_until(const ArtEntry *e)
{
	return e->stuck ? art_error_until(e) : 0;
}

/*
 * An expression of the index did not end, and it is ABSENT for ART_WHY_ERROR.  Each time in a row the
 * pause before the next try is twice as long.
 *
 * Locks: partition lock held, exclusive.
 */
void
art_stuck_note(ArtEntry *e)
{
	int			first = (int) Min(Max((int64) DeadlockTimeout * ART_STUCK_ROW / 1000, 1),
								  ART_STUCK_MAX_S);

	e->backoff_s = e->stuck && e->failed_at != 0 ?
		Min(Max(e->backoff_s, first) * 2, ART_STUCK_MAX_S) : first;
	e->stuck = true;
	e->failed_at = GetCurrentTimestamp();
}
