/*
 * churn.c
 *	  Removal of entries of dead row versions before they pile up.
 *
 * An UPDATE that is not HOT puts an entry for the new version into every
 * index, also where no indexed column has changed.  Core says so
 * (indexUnchanged).  VACUUM may be far away, and scans that would kill what is
 * dead may not come.  So such an insert counts, now and then, the entries of
 * its key.  When there are several it asks the heap which of them are dead to
 * everybody, as nbtree does before it splits a page (bottom-up deletion).
 *
 * It asks for each under the interlock of VACUUM, as a kill does.  It
 * publishes the TID, and finds the deletion generation unchanged since before
 * the entries were copied.  So the TID is still that row's while it is looked
 * at and removed. table_index_delete_tuples(), which nbtree uses, takes a set
 * of TIDs and calls a recycled one corruption; here one is published at a
 * time.
 *
 * A look costs at most two batches of heap fetches.  For some recent keys this
 * process remembers how long ago the last look was, and whether it helped.
 * While somebody holds an old snapshot the looks get rare.
 *
 * src/am/README.md: Churned versions
 */
#include "postgres.h"

#include "access/tableam.h"
#include "executor/tuptable.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "area/area.h"
#include "build/build.h"

#define ART_CHURN_FEW		3	/* so many entries of a key are left alone */
#define ART_CHURN_SOON		4	/* inserts from a look that helped to the next */
#define ART_CHURN_WAITING	16	/* the same, if dead ones wait for their WAL */
#define ART_CHURN_RARE		256 /* the same, if it never helps */

/* The memory of one key's looks; another key takes its place. */
typedef struct ArtChurnKey
{
	uint32		tag;
	uint16		wait;			/* inserts until the next look */
	uint16		interval;
	uint64		resume;			/* of a long chain: looked at up to here */
} ArtChurnKey;

#define ART_CHURN_SETS	256
#define ART_CHURN_WAYS	4
static ArtChurnKey churn_keys[ART_CHURN_SETS][ART_CHURN_WAYS];
static uint32 churn_next = 0;

typedef struct ArtChurn
{
	Relation	index;
	Relation	heap;
	ArtInsertState *st;
	uint64		delgen;			/* before the batch was copied */
	uint64		self;
	uint32		removed;
	uint32		waiting;		/* dead entries whose rows' WAL is not flushed */
	bool		some_dead;		/* rows may be known to be dead */
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
	ArtEqual	equal;
} ArtChurn;

/*
 * Find the memory of a key's looks, by a hash.  One of four places is the key's.  Two keys
 * that took one from each other would both begin anew each time.
 */
static ArtChurnKey *
churn_key(Relation index, const uint8 *key, uint32 len)
{
	uint64		h = RelationGetRelid(index);
	ArtChurnKey *set;
	ArtChurnKey *k;

	for (uint32 i = 0; i < len; i++)
		h = (h ^ key[i]) * UINT64CONST(0x100000001b3);
	h ^= h >> 32;
	h *= UINT64CONST(0x9e3779b97f4a7c15);
	set = churn_keys[(h >> 32) % ART_CHURN_SETS];
	for (int i = 0; i < ART_CHURN_WAYS; i++)
		if (set[i].tag == (uint32) h)
			return &set[i];
	k = &set[churn_next++ % ART_CHURN_WAYS];
	k->tag = (uint32) h;
	k->wait = 0;
	k->interval = ART_CHURN_SOON;
	k->resume = 0;
	return k;
}

/*
 * Remove the entries of the batch whose rows are dead, which the heap says or is known.
 * When a VACUUM went by, the copy is worth nothing.
 */
static void
churn_pass(ArtChurn *c)
{
	ArtInsertState *st = c->st;

	for (uint32 i = 0; i < c->equal.n; i++)
	{
		uint64		tid = c->equal.tids[i];
		SnapshotData dirty;
		ItemPointerData htid;
		bool		call_again = false;
		bool		all_dead = false;
		ArtDeath	death = ART_DEATH_UNKNOWN;

		if (tid == c->self)
			continue;
		if (c->fetch == NULL)
		{
			if (st->hazard == NULL)
				st->hazard = art_hazard_acquire(c->index, st->cxt);
			c->slot = table_slot_create(c->heap, NULL);
			c->fetch = art_table_index_fetch_begin(c->heap);
		}
		if (!art_hazard_publish(st->hazard, tid, c->delgen))
			break;
		if (c->some_dead)
			death = art_dead_known(c->equal.gen, c->delgen, tid);
		if (death == ART_DEATH_UNKNOWN)
		{
			InitDirtySnapshot(dirty);
			art_tid_unpack(tid, &htid);
			if (table_index_fetch_tuple(c->fetch, &htid, &dirty, c->slot,
										&call_again, &all_dead) || !all_dead)
				continue;
			death = art_dead_seen(c->index, &st->kd, c->equal.gen, c->delgen, tid,
								  c->heap, c->fetch);
		}
		if (death == ART_DEATH_WAIT)
			c->waiting++;
		else if (art_equal_remove(&c->equal, i) == AX_OK)
			c->removed++;
	}
}

/* Nothing is looked at yet; tid: of the row that is inserted. */
static void
churn_begin(ArtChurn *c, Relation index, Relation heap, ArtInsertState *st,
			ItemPointer tid)
{
	c->index = index;
	c->heap = heap;
	c->st = st;
	c->self = art_tid_pack(tid);
	c->removed = 0;
	c->waiting = 0;
	c->fetch = NULL;
	c->delgen = art_delgen(index);
}

/* Give back what was needed to look. */
static void
churn_end(ArtChurn *c)
{
	art_equal_end(&c->equal);
	if (c->st->hazard != NULL)
		art_hazard_clear(c->st->hazard);
	if (c->fetch != NULL)
	{
		table_index_fetch_end(c->fetch);
		ExecDropSingleTupleTableSlot(c->slot);
	}
}

/*
 * The batch of a long chain that begins behind a TID.
 */
static bool
churn_batch_from(ArtChurn *c, uint64 tid)
{
	ArtInsertState *st = c->st;
	ArtBuf	   *from = &c->equal.last;	/* art_equal_next goes on behind it */
	uint32		len = st->keylen + AX_TID_BYTES;

	if (from->data == NULL)
		art_buf_init(from, CurrentMemoryContext, len);
	from->len = 0;
	art_buf_reserve(from, len);
	memcpy(from->data, st->key.data, st->keylen);
	ax_put_tid(from->data + st->keylen, tid);
	from->len = len;
	c->delgen = art_delgen(c->index);
	return art_equal_next(&c->equal) == AX_OK;
}

/*
 * An entry was inserted whose key the UPDATE has not changed; st->key is it.
 */
void
art_churn(Relation index, Relation heap, ArtInsertState *st, ItemPointer tid)
{
	ArtChurnKey *k = churn_key(index, st->key.data, st->collen);
	ArtEqual   *q;
	ArtChurn	c;
	uint64		gen;
	bool		many;

	if (k->wait > 0)
	{
		k->wait--;
		return;
	}
	/* what a build puts in is not for us to take out */
	if (st->entry == NULL || art_entry_state(st->entry, &gen) != ART_READY)
		return;

	churn_begin(&c, index, heap, st, tid);
	c.some_dead = art_dead_any(gen);
	q = &c.equal;
	if (art_equal_first(q, &st->kd, art_entry_tree(st->entry), gen,
						st->key.data, st->collen, ART_EQUAL_BATCH) != AX_OK)
	{
		art_equal_end(q);
		return;
	}
	many = q->more;
	if (!many && q->n <= ART_CHURN_FEW)
	{
		k->wait = ART_CHURN_FEW - q->n;
		art_equal_end(q);
		return;
	}

	/*
	 * Of a long chain, another part each time: many rows have this key, or
	 * many versions of a row cannot go yet.  (With a payload it is not in the
	 * order of TIDs.)
	 */
	if (!many || k->resume == 0 || churn_batch_from(&c, k->resume))
	{
		uint64		last = q->n > 0 ? q->tids[q->n - 1] : 0;

		churn_pass(&c);
		k->resume = q->more && !st->kd.payload ? last : 0;
	}

	/* and what is on this version's page, where those before it may have been */
	if (many && churn_batch_from(&c, c.self & ~UINT64CONST(0xFFFF)))
		churn_pass(&c);

	churn_end(&c);
	art_dead_flush();
	if (c.removed > 0)
		k->interval = ART_CHURN_SOON;
	else
		k->interval = Min(k->interval * 2,
						  c.waiting > 0 ? ART_CHURN_WAITING : ART_CHURN_RARE);
	k->wait = k->interval;
}
