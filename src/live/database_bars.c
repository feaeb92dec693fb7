/*
 * database_bars.c
 *	  The databases that a command keeps our workers out of.
 *
 * Everything here is guarded by the chunk lock.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/procarray.h"

#include "live/background.h"

static int	my_bars[ART_NBARS];
static int	nmy_bars = 0;

/*
 * Locks: takes the chunk lock, exclusive.
 */
void
art_bar(Oid dboid)
{
	if (nmy_bars >= ART_NBARS)
		return;
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	for (int i = 0; i < ART_NBARS; i++)
	{
		ArtBar	   *b = &art_shared->bars[i];

		if (b->dboid == InvalidOid || BackendPidGetProc(b->pid) == NULL)
		{
			b->dboid = dboid;
			b->pid = MyProcPid;
			my_bars[nmy_bars++] = i;
			break;
		}
	}
	art_unlock(art_chunk_lock);
}

/*
 * Locks: takes the chunk lock, exclusive.
 */
void
art_bars_xact_end(void)
{
	while (nmy_bars > 0)
	{
		art_lock(art_chunk_lock, LW_EXCLUSIVE);
		art_shared->bars[my_bars[--nmy_bars]].dboid = InvalidOid;
		art_unlock(art_chunk_lock);
		art_launcher_wake();
	}
}

/*
 * Does a command that still runs bar the database?
 *
 * Locks: chunk lock held, in any mode.
 */
bool
art_barred(Oid dboid)
{
	for (int i = 0; i < ART_NBARS; i++)
	{
		const ArtBar *b = &art_shared->bars[i];

		if (b->dboid == dboid && BackendPidGetProc(b->pid) != NULL)
			return true;
	}
	return false;
}

/*
 * Is the database barred to workers?
 *
 * Locks: takes the chunk lock, shared.
 */
bool
art_worker_barred(Oid dboid)
{
	bool		is;

	art_lock(art_chunk_lock, LW_SHARED);
	is = art_barred(dboid);
	art_unlock(art_chunk_lock);
	return is;
}
