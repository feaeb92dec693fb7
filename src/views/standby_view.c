/*
 * standby_view.c
 *	  artidx_standby: the followers of a standby, as one sees them from SQL.
 *
 * src/follow/README.md: On a standby
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"
#include "views/views.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_standby_stats);

#define ART_STANDBY_COLS 14

/*
 * A row a follower.  Its counts are read without a lock.
 *
 * Locks: takes the chunk lock, shared, and has given it back before names are looked up.
 */
Datum
artidx_standby_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = art_result_rows(fcinfo, ART_STANDBY_COLS);
	Oid			dbs[ART_NWORKERS];
	int			pids[ART_NWORKERS];
	XLogRecPtr	replayed;

	if (!art_preloaded())
		return (Datum) 0;

	art_lock(art_chunk_lock, LW_SHARED);
	for (int i = 0; i < ART_NWORKERS; i++)
	{
		const ArtWorkerSlot *slot = &art_shared->workers[i];

		dbs[i] = (slot->jobs & ART_JOB_FOLLOW) != 0 ? slot->dboid : InvalidOid;
		pids[i] = slot->pid;
	}
	art_unlock(art_chunk_lock);

	for (int i = 0; i < ART_NWORKERS; i++)
	{
		ArtFollower *f = &art_shared->followers[i];
		Datum		values[ART_STANDBY_COLS];
		bool		nulls[ART_STANDBY_COLS] = {false};
		char	   *name;
		uint64		position;
		TimestampTz as_of;
		int			c = 0;

		if (dbs[i] == InvalidOid || pids[i] == 0 || (name = get_database_name(dbs[i])) == NULL)
			continue;
		as_of = (TimestampTz) pg_atomic_read_u64(&f->as_of);
		position = pg_atomic_read_u64(&f->position);
		replayed = GetXLogReplayRecPtr(NULL);
		values[c++] = DirectFunctionCall1(namein, CStringGetDatum(name));
		values[c++] = Int32GetDatum(pids[i]);
		values[c++] = LSNGetDatum(position);
		values[c++] = LSNGetDatum(replayed);
		values[c++] = Int64GetDatum(replayed > position ? (int64) (replayed - position) : 0);
		values[c++] = Float8GetDatum(position >= replayed ? 0.0 :
									 (double) (GetCurrentTimestamp() - as_of) / 1000.0);
		values[c++] = Int64GetDatum((int64) pg_atomic_read_u64(&f->added));
		values[c++] = Int64GetDatum((int64) pg_atomic_read_u64(&f->dead));
		values[c++] = Int64GetDatum((int64) pg_atomic_read_u64(&f->sweeps));
		values[c++] = Int64GetDatum((int64) pg_atomic_read_u64(&f->swept));
		values[c++] = Float8GetDatum((double) pg_atomic_read_u64(&f->swept_us) / 1000.0);
		values[c++] = Int64GetDatum((int64) pg_atomic_read_u64(&f->waits));
		values[c++] = Float8GetDatum((double) pg_atomic_read_u64(&f->waited_us) / 1000.0);
		values[c++] = Int64GetDatum((int64) pg_atomic_read_u64(&f->given_up));
		Assert(c == ART_STANDBY_COLS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
