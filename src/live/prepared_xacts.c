/*
 * prepared_xacts.c
 *	  Prepared transactions that made, dropped or altered indexes: their end, in
 *	  whatever process, sends the sweeper to the database.
 *
 * They are kept by the hash of their name.  Everything here is guarded by the
 * chunk lock.  The worker of a subscription prepares and ends transactions by no
 * statement, so nobody tells of either.  After one of these the sweeper comes
 * again and again, as long as its database has indexes in doubt.
 *
 * src/live/README.md: Transactions
 */
#include "postgres.h"

#include "common/hashfn.h"

#include "live/background.h"

#define ART_NAMELESS_MS	5000	/* nobody will tell that it is over */

static uint64 my_gid = 0;		/* of the transaction that is being prepared */

uint64
art_prepared_hash(const char *gid)
{
	uint64		h = hash_bytes_extended((const unsigned char *) gid,
										(int) strlen(gid), 0);

	return h == 0 ? 1 : h;
}

void
art_prepared_begin(uint64 gid)
{
	my_gid = gid;
}

/*
 * Locks: takes the chunk lock, exclusive.
 */
void
art_prepared_doubt(void)
{
	int			i;
	bool		nameless = my_gid == 0;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	for (i = 0; i < ART_NPREPARED && art_shared->prepared[i] != 0; i++)
		;
	if (nameless)
		art_shared->nameless = MyDatabaseId;
	else if (i < ART_NPREPARED)
		art_shared->prepared[i] = my_gid;
	else
		art_shared->prepared_lost = true;
	art_unlock(art_chunk_lock);
	my_gid = 0;
	if (nameless)
		art_ask(MyDatabaseId, ART_JOB_SWEEP, ART_NAMELESS_MS);
}

/*
 * Locks: takes the chunk lock, exclusive.
 */
bool
art_prepared_nameless(bool settled)
{
	bool		is;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	is = art_shared->nameless == MyDatabaseId;
	if (is && settled)
		art_shared->nameless = InvalidOid;
	art_unlock(art_chunk_lock);
	return is;
}

/*
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
