/*
 * vacuum_interlock.c
 *	  What VACUUM and readers owe each other.
 *
 * A TID that left a structure may be recycled once ambulkdelete has returned.
 * Index-only and non-MVCC scans, unique checks and kills trust a TID.  Before
 * a process hands one to them, it publishes it in a hazard slot.  Then it
 * looks whether the deletion generation is still the one of its batch.
 * ambulkdelete increments the generation and then looks at the slots.  Both
 * put a full barrier between the two steps, so one of them sees the other.
 * Either the reader drops its batch, or VACUUM waits for the slot.
 *
 * Slots come from shared chunks that are never freed, so VACUUM walks them
 * without a lock.  A process keeps the slots it once took.  When there is no
 * memory for a slot, the process's overflow mark stands for every TID of the
 * index.  If several overflow, it stands for those of all indexes.
 *
 * When artidx is not preloaded a heavyweight lock takes the place of all this.
 *
 * src/area/README.md: VACUUM and readers
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"

#define ART_LINE 64

/*
 * The process that has the slot writes it, VACUUM reads it, both without a
 * lock.  They meet at the word "tid" (README, VACUUM and readers).
 */
struct ArtHazardSlot
{
	uint64		tid;			/* 0: nothing is published */
	uint64		who;			/* database and index; 0: not in use */
	uint64		delgen;			/* generation of the published TID's batch */
	int32		pid;
	int32		pad;
	ArtHazardSlot *next_free;	/* shared list: chunk lock; else the owner's */
	char		fill[ART_LINE - 4 * sizeof(uint64) - sizeof(void *)];
};

#define ART_HAZARDS_PER_CHUNK 63

struct ArtHazardChunk
{
	ArtHazardChunk *next;
	char		fill[ART_LINE - sizeof(void *)];
	ArtHazardSlot slot[ART_HAZARDS_PER_CHUNK];
};

StaticAssertDecl(sizeof(ArtHazardSlot) == ART_LINE, "a hazard slot is a line");
StaticAssertDecl(sizeof(ArtHazardChunk) == AX_PAGE, "a hazard chunk is a page");

/*
 * One a process: published TIDs that found no slot.  Its process writes it,
 * VACUUM reads it, both without a lock.
 */
typedef struct ArtOverflow
{
	uint64		who;			/* 0: none; ART_ALL: of several indexes */
	int32		pid;
	int32		pad;
	char		fill[ART_LINE - 2 * sizeof(uint64)];
} ArtOverflow;

#define ART_ALL PG_UINT64_MAX

static pg_atomic_uint64 *delgens = NULL;
static ArtOverflow *overflows = NULL;

/* This process's side of a slot; lives in the scan's memory context. */
struct ArtHazard
{
	ArtHazardSlot *slot;		/* NULL: overflow */
	uint64		who;
	uint32		gen_index;
	bool		active;			/* acquired and not yet released */
	bool		published;		/* of an overflow */
	ArtHazard  *next,			/* active ones of this process */
			   *prev;
	MemoryContextCallback cb;
};

static ArtHazard *active_hazards = NULL;
static ArtHazardSlot *my_free_slots = NULL;

static uint32 wait_event_vacuum = 0;

/* ---- shared memory ---- */

Size
art_interlock_shmem_size(int nslots)
{
	return add_size(add_size(mul_size(ART_NDELGENS, sizeof(pg_atomic_uint64)),
							 mul_size(nslots, sizeof(ArtOverflow))),
					2 * ART_LINE);
}

/*
 * From the shmem_startup hook, also of the crash cycle: no process has
 * published anything.
 */
void
art_interlock_shmem_init(char *at, int nslots, bool fresh)
{
	delgens = (pg_atomic_uint64 *) TYPEALIGN(ART_LINE, at);
	overflows = (ArtOverflow *) (delgens + ART_NDELGENS);
	if (fresh)
		for (int i = 0; i < ART_NDELGENS; i++)
			pg_atomic_init_u64(&delgens[i], 1);
	memset(overflows, 0, nslots * sizeof(ArtOverflow));
}

/*
 * Locks: takes the chunk lock, exclusive.
 */
void
art_hazards_survive(void)
{
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	art_shared->free_hazards = NULL;
	for (ArtHazardChunk *c = art_shared->hazard_chunks; c != NULL; c = c->next)
	{
		memset(c->slot, 0, sizeof(c->slot));
		for (int i = ART_HAZARDS_PER_CHUNK - 1; i >= 0; i--)
		{
			c->slot[i].next_free = art_shared->free_hazards;
			art_shared->free_hazards = &c->slot[i];
		}
	}
	art_unlock(art_chunk_lock);
}

/* ---- deletion generations ---- */

/*
 * Where the index's deletion generation is: a hash of its physical identity.
 * Two indexes may share one, which costs a scan a needless second look.
 */
static inline uint32
gen_index_at(Oid spc, Oid db, uint32 rel, int backend)
{
	uint64		h;

	/* on the way of every batch of every scan: two multiplications */
	h = ((uint64) rel << 32 | db) * UINT64CONST(0x9E3779B97F4A7C15);
	h ^= (uint64) spc << 32 | (uint32) backend;
	h *= UINT64CONST(0xC2B2AE3D27D4EB4F);
	return (uint32) (h >> 50) & (ART_NDELGENS - 1);
}

static inline uint32
gen_index_of(Relation index)
{
	return gen_index_at(ART_REL_SPC(index), ART_REL_DB(index),
						ART_REL_NUMBER(index), ART_REL_BACKEND(index));
}

static inline uint64
who_of(Relation index)
{
	return ((uint64) ART_REL_DB(index) << 32) | RelationGetRelid(index);
}

/*
 * Deletion generation of the index's locator.  The caller's later reads stay
 * behind this call.
 */
uint64
art_delgen(Relation index)
{
	if (art_shared == NULL)
		return 0;
	return __atomic_load_n(&delgens[gen_index_of(index)].value, __ATOMIC_ACQUIRE);
}

/*
 * A process remembers dead rows of one structure and one generation of deletions
 * (dead_awaiting_wal.c).  The structure stays, so the new file's generation must be
 * none that the old one ever had.
 */
void
art_delgen_moved(const ArtLocator *from, const ArtLocator *to)
{
	pg_atomic_uint64 *d = &delgens[gen_index_at(to->spc, to->db, to->rel, to->backend)];
	uint64		had = pg_atomic_read_u64(&delgens[gen_index_at(from->spc, from->db, from->rel,
															   from->backend)]);
	uint64		has = pg_atomic_read_u64(d);

	while (has <= had && !pg_atomic_compare_exchange_u64(d, &has, had + 1))
		;
}

/* ---- slots ---- */

/*
 * A free slot of this process; takes a few from the shared list, and a new
 * chunk when that is empty.  NULL: no memory.
 *
 * Locks: takes the chunk lock, exclusive, when this process has no free slot.
 * Order: a chunk is complete before the list points to it, for VACUUM reads
 * the list without a lock.
 */
static ArtHazardSlot *
slot_get(void)
{
	ArtHazardSlot *s;

	if (my_free_slots == NULL)
	{
		art_lock(art_chunk_lock, LW_EXCLUSIVE);
		if (art_shared->free_hazards == NULL)
		{
			ArtHazardChunk *c = art_system_alloc(sizeof(ArtHazardChunk));

			if (c)
			{
				for (int i = ART_HAZARDS_PER_CHUNK - 1; i >= 0; i--)
				{
					c->slot[i].next_free = art_shared->free_hazards;
					art_shared->free_hazards = &c->slot[i];
				}
				c->next = art_shared->hazard_chunks;
				__atomic_store_n(&art_shared->hazard_chunks, c, __ATOMIC_SEQ_CST);
			}
		}
		for (int i = 0; i < 4 && art_shared->free_hazards; i++)
		{
			s = art_shared->free_hazards;
			art_shared->free_hazards = s->next_free;
			s->next_free = my_free_slots;
			my_free_slots = s;
		}
		art_unlock(art_chunk_lock);
	}
	s = my_free_slots;
	if (s)
		my_free_slots = s->next_free;
	return s;
}

static void
slot_clear(ArtHazardSlot *s)
{
	__atomic_store_n(&s->tid, 0, __ATOMIC_RELEASE);
}

/* The overflow mark that this process's published overflow hazards need. */
static void
overflow_update(void)
{
	ArtOverflow *o = &overflows[ART_MY_PROCNO()];
	uint64		who = 0;

	for (ArtHazard *h = active_hazards; h; h = h->next)
	{
		if (h->slot || !h->published)
			continue;
		if (who == 0)
			who = h->who;
		else if (who != h->who)
			who = ART_ALL;
	}
	o->pid = MyProcPid;
	__atomic_store_n(&o->who, who, __ATOMIC_SEQ_CST);
}

static void
hazard_reset_callback(void *arg)
{
	art_hazard_release((ArtHazard *) arg);
}

/*
 * The handle is allocated in cxt, whose reset releases it.
 */
ArtHazard *
art_hazard_acquire(Relation index, MemoryContext cxt)
{
	ArtHazard  *h;

	art_require_preload(index);
	(void) art_ctx();

	h = MemoryContextAllocZero(cxt, sizeof(ArtHazard));
	h->who = who_of(index);
	h->gen_index = gen_index_of(index);
	h->cb.func = hazard_reset_callback;
	h->cb.arg = h;
	MemoryContextRegisterResetCallback(cxt, &h->cb);

	h->slot = slot_get();
	if (h->slot)
	{
		h->slot->pid = MyProcPid;
		h->slot->delgen = 0;
		__atomic_store_n(&h->slot->who, h->who, __ATOMIC_RELEASE);
	}
	h->active = true;
	h->next = active_hazards;
	if (active_hazards)
		active_hazards->prev = h;
	active_hazards = h;
	return h;
}

/*
 * Clear and give back; does nothing the second time.
 */
void
art_hazard_release(ArtHazard *h)
{
	if (!h->active)
		return;
	h->active = false;
	if (h->prev)
		h->prev->next = h->next;
	else
		active_hazards = h->next;
	if (h->next)
		h->next->prev = h->prev;
	h->next = h->prev = NULL;

	if (h->slot)
	{
		slot_clear(h->slot);
		__atomic_store_n(&h->slot->who, 0, __ATOMIC_RELEASE);
		h->slot->next_free = my_free_slots;
		my_free_slots = h->slot;
		h->slot = NULL;
	}
	else if (h->published)
	{
		h->published = false;
		overflow_update();
	}
}

/*
 * Publish, full fence, compare.
 */
bool
art_hazard_publish(ArtHazard *h, uint64 tid, uint64 delgen)
{
	Assert(h->active && tid != 0);

	if (likely(h->slot != NULL))
	{
		__atomic_store_n(&h->slot->delgen, delgen, __ATOMIC_RELAXED);

		/*
		 * A store and a full fence in one.  The load below is sequentially
		 * consistent as well.  So the two are in one order with VACUUM's
		 * increment and the fence behind it.  Either we see the increment, or
		 * VACUUM sees the TID.
		 */
		(void) __atomic_exchange_n(&h->slot->tid, tid, __ATOMIC_SEQ_CST);
	}
	else
	{
		h->published = true;
		overflow_update();
	}

	if (likely(__atomic_load_n(&delgens[h->gen_index].value, __ATOMIC_SEQ_CST) == delgen))
		return true;
	art_hazard_clear(h);
	return false;
}

const ArtInterlockCalls art_interlock_calls = {art_delgen, art_hazard_acquire, art_hazard_publish};

/*
 * Nothing is handed out any more; the slot stays the caller's.
 */
void
art_hazard_clear(ArtHazard *h)
{
	if (!h->active)
		return;
	if (likely(h->slot != NULL))
		slot_clear(h->slot);
	else if (h->published)
	{
		h->published = false;
		overflow_update();
	}
}

/*
 * Top-level end of a transaction: whatever an error left.
 */
void
art_hazards_xact_end(void)
{
	while (active_hazards)
		art_hazard_release(active_hazards);
}

/*
 * This process exits: its slots go back to the shared list.
 *
 * Locks: takes the chunk lock, exclusive, if this process has slots.
 */
void
art_hazards_exit(void)
{
	art_hazards_xact_end();
	if (my_free_slots == NULL)
		return;
	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	while (my_free_slots)
	{
		ArtHazardSlot *s = my_free_slots;

		my_free_slots = s->next_free;
		s->pid = 0;
		s->next_free = art_shared->free_hazards;
		art_shared->free_hazards = s;
	}
	art_unlock(art_chunk_lock);
}

/* ---- VACUUM's side ---- */

/*
 * Does the process wait, directly or through others, for us or for the leader
 * of our lock group?  Both sides of such a wait are visible only here, so the
 * lock manager cannot find it.
 */
static bool
waits_for_us(int pid)
{
	List	   *seen = list_make1_int(pid);
	int			leader = MyProc->lockGroupLeader ? MyProc->lockGroupLeader->pid : 0;
	bool		found = false;

	for (int i = 0; i < list_length(seen) && !found; i++)
	{
		Datum		d = DirectFunctionCall1(pg_blocking_pids, Int32GetDatum(list_nth_int(seen, i)));
		ArrayType  *a = DatumGetArrayTypeP(d);
		Datum	   *pids;
		int			n;

		deconstruct_array(a, INT4OID, sizeof(int32), true, TYPALIGN_INT,
						  &pids, NULL, &n);
		for (int j = 0; j < n && !found; j++)
		{
			int			p = DatumGetInt32(pids[j]);

			found = p == MyProcPid || (leader != 0 && p == leader);
			/* 0: a prepared transaction */
			if (p != 0)
				seen = list_append_unique_int(seen, p);
		}
		pfree(pids);
		pfree(a);
	}
	list_free(seen);
	return found;
}

typedef struct VacuumWait
{
	Relation	index;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	uint64		who;
	uint64		delgen;			/* ours, the new one */
	bool		valid;			/* indisvalid: the callback may be asked */
} VacuumWait;

/* The TID for which VACUUM must wait, or 0. */
static uint64
slot_blocks(const VacuumWait *w, ArtHazardSlot *s)
{
	uint64		tid;
	ItemPointerData ip;

	if (__atomic_load_n(&s->who, __ATOMIC_ACQUIRE) != w->who)
		return 0;
	tid = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);
	if (tid == 0 || s->pid == MyProcPid || s->pid == 0)
		return 0;

	/*
	 * CREATE INDEX CONCURRENTLY's callback records whatever it is asked about.
	 * The index is not valid then, and we wait for every process that may have
	 * taken its TID before this round.
	 */
	if (!w->valid)
		return __atomic_load_n(&s->delgen, __ATOMIC_RELAXED) < w->delgen ? tid : 0;

	art_tid_unpack(tid, &ip);
	return w->callback(&ip, w->callback_state) ? tid : 0;
}

/* Must VACUUM wait for a process that has no slot for its TID? */
static bool
overflow_blocks(const VacuumWait *w, ArtOverflow *o)
{
	uint64		who = __atomic_load_n(&o->who, __ATOMIC_ACQUIRE);

	return (who == w->who || who == ART_ALL) && o->pid != MyProcPid;
}

/* A wait for one slot, pause by pause. */
typedef struct Pauses
{
	TimestampTz start;			/* 0: none yet; or when it was checked last */
	bool		checked;		/* for a deadlock */
	int			ms;
} Pauses;

/*
 * One pause.  No art_wait_for: what is waited for is a slot, whose process may be
 * another one by the next look, and a deadlock is looked for meanwhile.
 */
static void
wait_a_little(const VacuumWait *w, int pid, Pauses *p)
{
	if (p->start == 0)
		p->start = GetCurrentTimestamp();
	p->ms = Min(p->ms + 1, 10);
	(void) art_doze(p->ms, ART_WAIT_EVENT(wait_event_vacuum, "ArtidxVacuum"));

	/* after deadlock_timeout, and then about every second */
	if (!TimestampDifferenceExceeds(p->start, GetCurrentTimestamp(),
									p->checked ? 1000 : DeadlockTimeout))
		return;
	p->checked = true;
	p->start = GetCurrentTimestamp();
	if (waits_for_us(pid))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
				 errmsg("deadlock detected"),
				 errdetail("Process %d waits for process %d to leave a row of index \"%s\" that it is removing; process %d waits for process %d.",
						   MyProcPid, pid,
						   RelationGetRelationName(w->index),
						   pid, MyProcPid)));
}

/* ---- not preloaded ---- */

/*
 * Without shared memory there are no slots.  One kind of scan could hand out a
 * recycled TID then: a private one under a snapshot that is not MVCC.  It
 * holds a lock instead. lock_timeout does not count, as it does not for
 * nbtree's wait for a pin.
 */

/*
 * Wait for the scans that may have read what VACUUM is about to recycle.
 *
 * Locks: waits for the scans' place, exclusive, and lets it go at once.
 */
static void
vacuum_not_preloaded(Relation index)
{
	art_lock_place(index, ART_PLACE_SCANS, ExclusiveLock);
	art_unlock_place(index, ART_PLACE_SCANS, ExclusiveLock);
}

/*
 * Locks: takes the scans' place, shared, and leaves it held.
 */
void
art_interlock_share(Relation index)
{
	art_lock_place(index, ART_PLACE_SCANS, ShareLock);
}

/*
 * Locks: gives back the scans' place.
 */
void
art_interlock_share_end(Relation index)
{
	art_unlock_place(index, ART_PLACE_SCANS, ShareLock);
}

/*
 * The end of every ambulkdelete, whatever the state and whatever it deleted.
 */
void
art_interlock_vacuum(Relation index, IndexBulkDeleteCallback callback,
					 void *callback_state)
{
	VacuumWait	w;
	ArtHazardChunk *c;

	if (art_shared == NULL)
	{
		vacuum_not_preloaded(index);
		return;
	}

	w.index = index;
	w.callback = callback;
	w.callback_state = callback_state;
	w.who = who_of(index);
	w.valid = index->rd_index->indisvalid;
	w.delgen = pg_atomic_add_fetch_u64(&delgens[gen_index_of(index)], 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);

	for (c = __atomic_load_n(&art_shared->hazard_chunks, __ATOMIC_SEQ_CST); c; c = c->next)
	{
		for (int i = 0; i < ART_HAZARDS_PER_CHUNK; i++)
		{
			ArtHazardSlot *s = &c->slot[i];
			Pauses		p = {0};
			uint64		tid = slot_blocks(&w, s);

			/* gone is gone: what is published later is of a later batch */
			while (tid != 0 && slot_blocks(&w, s) == tid)
				wait_a_little(&w, s->pid, &p);
		}
	}

	for (int i = 0; i < art_shared->nslots; i++)
	{
		ArtOverflow *o = &overflows[i];
		Pauses		p = {0};

		while (overflow_blocks(&w, o))
			wait_a_little(&w, o->pid, &p);
	}
}

/* ---- unique stripes ---- */

/*
 * The lock under which a unique check of this key is made.
 */
LWLock *
art_unique_stripe(Relation index, const uint8 *key, uint32 len)
{
	uint32		h = hash_bytes(key, (int) len);

	h = hash_combine(h, murmurhash32(RelationGetRelid(index)));
	return &art_unique_locks[h & art_unique_mask].lock;
}
