/*
 * insert_queue.c
 *	  The entries that a statement has inserted rows for, and not put in yet.
 *
 * Nobody asks an index that is not unique for a row before its statement has
 * ended, but queries that run within it.  So the entries wait here, and go in
 * many at once, whose waits for memory go on at the same time (ax_insert_many).
 * They go in when there are enough of them, or the statement ends.  They do so
 * before this process reads their structure, or others may read one for it.
 *
 * An entry may wait only if its row lives as long as its (sub)transaction.  So nobody
 * takes the row's place before the entry is in.  When a subtransaction is aborted, its
 * entries are forgotten, and only those.
 *
 * The statement that may let entries wait says so (art_queue_for).  So no entry
 * does that comes from elsewhere.
 *
 * src/am/README.md: Queued inserts
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/xact.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "area/crash_memory.h"
#include "area/tree_calls.h"

#define ART_QUEUES		16		/* indexes at a time; others insert at once */
#define ART_QUEUE_KEYS	64		/* entries of one */
#define ART_QUEUE_BYTES	7168	/* of them; with the rest eight kilobytes */
#define ART_QUEUE_LONG	512		/* a longer one does not wait */
#define ART_QUEUE_AFTER	3		/* nor do a statement's first; most have no more */

/* Queued entries of one index, in the order in which they came. */
typedef struct ArtQueue
{
	Oid			index;
	uint32		n;				/* 0: nobody's */
	uint32		off[ART_QUEUE_KEYS + 1];
	SubTransactionId subid[ART_QUEUE_KEYS];
	uint8		bytes[ART_QUEUE_BYTES];
} ArtQueue;

StaticAssertDecl(offsetof(ArtRingRecord, keys) + ART_QUEUE_BYTES +
				 ART_QUEUE_KEYS * sizeof(uint16) < ART_RING_LONGEST, "a queue fits in a record of the ring");

/* In TopTransactionContext; NULL: not needed so far. */
static ArtQueue *queues[ART_QUEUES];

static bool queueing = false;

uint32		art_queued = 0;

bool
art_queue_for(bool may)
{
	bool		was = queueing;

	queueing = may;
	return was;
}

/* The index's queue, or one that has nothing.  NULL: others have them all. */
static ArtQueue *
queue_of(Oid index)
{
	ArtQueue   *unused = NULL;

	for (int i = 0; i < ART_QUEUES; i++)
	{
		ArtQueue   *q = queues[i];

		if (q == NULL)
		{
			if (unused != NULL)
				break;
			q = MemoryContextAlloc(TopTransactionContext, sizeof(ArtQueue));
			q->n = 0;
			q->off[0] = 0;
			queues[i] = q;
		}
		if (q->n > 0 && q->index == index)
			return q;
		if (q->n == 0 && unused == NULL)
			unused = q;
	}
	if (unused != NULL)
		unused->index = index;
	return unused;
}

/*
 * Put the queue's entries in.  The queue is emptied last.  After an ERROR it has
 * them still, and those that are in already do no harm.
 *
 * Epoch: enters and leaves, once a try; waits between two.
 */
static void
flush_index(ArtQueue *q, Relation index)
{
	ArtEntry   *e = art_relcache_entry(index);
	bool		ring = art_outlives(index);
	ax_ctx	   *cx = e != NULL ? art_ctx() : NULL;
	const uint8 *keys[ART_QUEUE_KEYS];
	uint32		lens[ART_QUEUE_KEYS];
	uint32		at = 0;
	uint64		noted_in = PG_UINT64_MAX;
	ArtState	state;
	uint64		gen;

	for (uint32 i = 0; i < q->n; i++)
	{
		keys[i] = q->bytes + q->off[i];
		lens[i] = q->off[i + 1] - q->off[i];
	}
	/* absent: the next build will meet the rows */
	while (e != NULL && at < q->n && (state = art_entry_state(e, &gen)) != ART_ABSENT)
	{
		uint32		done;
		ax_status	s;

		/* a late sweep would take out what we put in, as in art_insert_plain */
		if (state == ART_FOLLOWED)
		{
			art_followed_settle(e);
			continue;
		}
		if (ring)
		{
			if (noted_in != gen)
				art_ring_put(index, e, gen, keys + at, lens + at, q->n - at);
			noted_in = gen;
		}
		ART_CORE_BEGIN();
		s = ax_insert_many(cx, art_entry_tree(e), gen,
						   &(ax_keys) {keys + at, lens + at, 0, q->n - at}, &done);
		ART_CORE_END();
		at += done;
		if (s != AX_OK)
			art_insert_retry(index, e, gen, s);
	}
	art_queued -= q->n;
	q->n = 0;
}

/*
 * Locks: the index is open, for this statement inserts into it.
 */
bool
art_queue_put(Relation index, ArtInsertState *st)
{
	uint32		len = st->keylen + AX_TID_BYTES;
	ArtQueue   *q;

	if (!queueing || st->rows++ < ART_QUEUE_AFTER || len > ART_QUEUE_LONG ||
		IsolationIsSerializable())
		return false;
	q = queue_of(RelationGetRelid(index));
	if (q == NULL)
		return false;
	if (q->n == ART_QUEUE_KEYS || q->off[q->n] + len > ART_QUEUE_BYTES)
		flush_index(q, index);
	memcpy(q->bytes + q->off[q->n], st->key.data, len);
	q->subid[q->n] = GetCurrentSubTransactionId();
	q->n++;
	q->off[q->n] = q->off[q->n - 1] + len;
	art_queued++;
	return true;
}

/*
 * Locks: takes lockmode on each index, which is RowExclusiveLock where the statement
 * has given its own back.
 */
void
art_queue_flush_all(LOCKMODE lockmode)
{
	for (int i = 0; i < ART_QUEUES && art_queued > 0; i++)
	{
		ArtQueue   *q = queues[i];
		Relation	index;

		if (q == NULL || q->n == 0)
			continue;
		index = index_open(q->index, lockmode);
		flush_index(q, index);
		index_close(index, lockmode);
	}
}

/*
 * Locks: the index is open, for it is about to be read.
 */
void
art_queue_flush_one(Relation index)
{
	for (int i = 0; i < ART_QUEUES && queues[i] != NULL; i++)
		if (queues[i]->n > 0 && queues[i]->index == RelationGetRelid(index))
			flush_index(queues[i], index);
}

/* ---- the ends of transactions ---- */

/*
 * Its rows are dead now to everybody, and others may take their places.
 * Subtransactions are numbered as they begin.  So those that are aborted with this
 * one have greater numbers, and no entry of an older one came after theirs.
 */
static void
queue_at_subxact(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	for (int i = 0; i < ART_QUEUES && art_queued > 0; i++)
		for (ArtQueue *q = queues[i]; q != NULL && q->n > 0 && q->subid[q->n - 1] >= subid;)
		{
			q->n--;
			art_queued--;
		}
}

/*
 * The memory goes with the transaction.  Every statement has ended.  But one whose
 * error somebody caught who has no subtransaction may have left something.
 */
static void
queue_at_xact(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			art_queue_flush(RowExclusiveLock);
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			memset(queues, 0, sizeof(queues));
			art_queued = 0;
			queueing = false;
			break;
		default:
			break;
	}
}

void
art_queue_init(void)
{
	RegisterXactCallback(queue_at_xact, NULL);
	RegisterSubXactCallback(queue_at_subxact, NULL);
}
