/*
 * followed_indexes.c
 *	  The indexes that a follower keeps, and how one of them ends.
 *
 * src/follow/README.md: On a standby
 */
#include "postgres.h"

#include "utils/elog.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "follow/follow.h"
#include "limits/limits.h"

ArtFollower *art_me = NULL;
ArtFollowed *art_followed_list = NULL;

typedef struct PutOff
{
	Oid			indexoid;		/* key */
	TimestampTz until;
} PutOff;

static HTAB *put_off = NULL;

void
art_kept_put_off(Oid indexoid, int ms)
{
	PutOff	   *p;

	if (put_off == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(PutOff);
		ctl.hcxt = TopMemoryContext;
		put_off = hash_create("artidx indexes put off", 64, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	p = hash_search(put_off, &indexoid, HASH_ENTER, NULL);
	p->until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);
}

bool
art_kept_is_put_off(Oid indexoid)
{
	PutOff	   *p = put_off == NULL ? NULL : hash_search(put_off, &indexoid, HASH_FIND, NULL);

	return p != NULL && p->until > GetCurrentTimestamp();
}

void
art_kept_put_off_none(void)
{
	if (put_off != NULL)
		hash_destroy(put_off);
	put_off = NULL;
}

const char *
art_kept_reason(int sqlstate)
{
	static char text[64];

	snprintf(text, sizeof(text), sqlstate == ERRCODE_READ_ONLY_SQL_TRANSACTION ?
			 "a key's function writes, SQLSTATE %s" : "SQLSTATE %s, see the server's log",
			 unpack_sql_state(sqlstate));
	return text;
}

/*
 * Locks: takes the partition lock, exclusive.
 */
void
art_kept_tell_why(Oid indexoid, const ArtLocator *loc, const char *why)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);

	if (e != NULL && ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT &&
		e->reason != ART_WHY_UNLOADED)
	{
		e->reason = ART_WHY_ERROR;
		strlcpy(e->error, why, sizeof(e->error));
	}
	art_unlock(lock);
}

/*
 * Locks: takes the partition lock, exclusive.
 */
void
art_kept_not_begun(Oid indexoid, const ArtLocator *loc, int sqlstate)
{
	art_kept_put_off(indexoid, ART_FAILED_MS);
	art_kept_tell_why(indexoid, loc, art_kept_reason(sqlstate));
}

/*
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
void
art_kept_close(ArtFollowed *x, ArtReason why, const char *error)
{
	if (x->closed)
		return;
	x->closed = true;
	if (why == ART_WHY_ERROR || why == ART_WHY_MEMORY)
		art_kept_put_off(x->indexoid, why == ART_WHY_ERROR ? ART_FAILED_MS : ART_MEMORY_RETRY_MS);
	(void) art_followed_close(x->indexoid, &x->loc, x->gen, why, error);
}
