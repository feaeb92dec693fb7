/*
 * art_prepared.c
 *	  Prepared transactions that made, dropped or altered indexes: their end, in
 *	  whatever process, sends the sweeper to the database.
 *
 * They are kept by the hash of their name.  Everything here is guarded by the
 * chunk lock.
 *
 * src/README.md: Transactions
 */
#include "postgres.h"

#include "common/hashfn.h"

#include "live/art_workers.h"

static uint64 my_gid = 0;		/* of the transaction that is being prepared */

/*
 * See art_workers.h.
 */
uint64
art_prepared_hash(const char *gid)
{
	uint64		h = hash_bytes_extended((const unsigned char *) gid,
										(int) strlen(gid), 0);

	return h == 0 ? 1 : h;
}

/*
 * See art_workers.h.
 */
void
art_prepared_begin(uint64 gid)
{
	my_gid = gid;
}

/*
 * See art_workers.h.
 *
 * Locks: takes the chunk lock, exclusive.
 */
void
art_prepared_doubt(void)
{
	int			i;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	for (i = 0; i < ART_NPREPARED && art_shared->prepared[i] != 0; i++)
		;
	if (i < ART_NPREPARED)
		art_shared->prepared[i] = my_gid;
	else
		art_shared->prepared_lost = true;
	art_unlock(art_chunk_lock);
}

/*
 * See art_workers.h.
 *
 * Locks: takes the chunk lock, exclusive.
 */
bool
art_prepared_over(uint64 gid)
{
	bool		was;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	was = art_shared->prepared_lost;
	for (int i = 0; i < ART_NPREPARED; i++)
	{
		if (art_shared->prepared[i] == gid)
		{
			art_shared->prepared[i] = 0;
			was = true;
			break;
		}
	}
	art_unlock(art_chunk_lock);
	return was;
}
