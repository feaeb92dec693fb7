/*
 * art_pg.h
 *	  What the files of src/pg know of one another: the shared control block,
 *	  the directory's entries, pending work of transactions.
 */
#ifndef ART_PG_H
#define ART_PG_H

#include "artidx.h"

#include "access/xact.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/lwlock.h"

#define ART_NPARTITIONS 64		/* directory locks, a power of two */
#define ART_NBUCKETS	8192	/* hash chains, a power of two */
#define ART_NDELGENS	16384	/* deletion generations, a power of two */
#define ART_NWORKERS	32		/* databases with a builder at one time */

/* Full physical identity. */
typedef struct ArtLocator
{
	Oid			spc;
	Oid			db;
	uint32		rel;
	int32		backend;		/* of a temporary relation, else -1 */
} ArtLocator;

typedef struct ArtBlockRange
{
	BlockNumber first;
	BlockNumber end;			/* exclusive */
} ArtBlockRange;

#define ART_MAX_REDO 16

typedef enum ArtWant
{
	ART_WANT_NOTHING = 0,
	ART_WANT_PLAN,				/* a plan would have used it */
	ART_WANT_BUILD				/* a statement waits for it */
} ArtWant;

/*
 * One structure.  All structures of one index (REINDEX: the old and the new)
 * are in one hash chain, that of (database, index OID); what is found must
 * agree in locator and OID, so a reused relfilenumber or OID finds nothing.
 * Members are guarded by the chain's partition lock unless noted.
 */
struct ArtEntry
{
	ArtEntry   *next;			/* in the chain, or in the free list */
	ArtLocator	loc;
	Oid			indexoid;
	Oid			heapoid;
	pg_atomic_uint64 word;		/* generation << 2 | state; written under the
								 * lock, read without */
	ax_tree    *tree;			/* stays with the entry when it is recycled */
	bool		native;			/* filled by ambuild and aminsert alone */
	bool		unique;			/* or an exclusion constraint's: inserts need it */
	ArtReason	reason;

	/*
	 * The build going on.  It has at most one owner, who holds the build lock,
	 * and any number of helpers.  Heap blocks are given out in ranges; a range
	 * whose keys did not get into the structure is given back.  A build that
	 * its owner left (cancelled) stays BUILDING, and whoever comes next goes
	 * on with it.
	 */
	int			owner_slot;
	int			owner_pid;		/* 0: none */
	uint64		owner_build;
	bool		resumable;		/* the fields below are set */
	int			helpers;		/* processes in it beside the owner */
	BlockNumber nblocks;
	BlockNumber next_block;		/* first that was never given out */
	int			nredo;
	ArtBlockRange redo[ART_MAX_REDO];

	/* being asked for, memory */
	ArtWant		wanted;
	bool		sealed;			/* ABSENT, and out of plans until there is room */
	uint64		seals;
	uint64		last_bytes;		/* when it was last READY */
	TimestampTz sealed_at;
	int			backoff_s;		/* before a sealed one is built again */
	pg_atomic_uint32 used_at;	/* last use by a scan or a unique check, in
								 * seconds since 2000 */
	pg_atomic_uint32 uses;		/* seconds in which it was used, halved by the
								 * launcher now and then */
	uint64		builds;
	TimestampTz last_build;
	ArtBuildSource source;
	double		last_ms;
	TimestampTz failed_at;		/* last failed build, 0: none since a good one */
	uint64		failed_free;	/* free bytes after it, when for memory */
	pg_atomic_uint64 blocks_done;	/* progress, no lock */
	pg_atomic_uint64 blocks_total;
	char		error[160];		/* of the last failed build */
};

#define ART_WORD(gen, state)	(((uint64) (gen) << 2) | (uint64) (state))
#define ART_WORD_STATE(w)		((ArtState) ((w) & 3))
#define ART_WORD_GEN(w)			((w) >> 2)

/* A background builder of one database. */
typedef struct ArtWorkerSlot
{
	Oid			dboid;			/* InvalidOid: free */
	int			pid;			/* 0: asked for, not started */
	TimestampTz asked;
	TimestampTz ended;			/* valid when pid is -1: nothing runs */
} ArtWorkerSlot;

typedef struct ArtHazardChunk ArtHazardChunk;
typedef struct ArtHazardSlot ArtHazardSlot;

typedef struct ArtShared
{
	ax_area    *area;
	int			nslots;
	pg_atomic_uint64 build_number;

	/* chunk lock */
	ArtEntry   *free_entries;
	ArtHazardChunk *hazard_chunks;	/* pushed under the lock, read without */
	ArtHazardSlot *free_hazards;
	ArtWorkerSlot workers[ART_NWORKERS];

	/* partition locks */
	ArtEntry   *buckets[ART_NBUCKETS];
} ArtShared;

extern ArtShared *art_shared;	/* NULL: not preloaded */
extern LWLockPadded *art_dir_locks;
extern LWLockPadded *art_unique_locks;
extern uint32 art_unique_mask;
extern LWLock *art_chunk_lock;
extern bool art_autobuild;

/* art_shmem.c: this process attached and not yet detached */
extern bool art_attached(void);
extern void *art_system_alloc(size_t bytes);	/* NULL when full; zeroed */

/* ---- art_directory.c ---- */
extern void art_locator(Relation index, ArtLocator *loc);
extern LWLock *art_partition(Oid db, Oid indexoid);
extern ArtEntry *art_chain(Oid db, Oid indexoid);
extern ArtEntry *art_find(Oid indexoid, const ArtLocator *loc);
extern ArtEntry *art_entry_create(Relation index, bool building);

/* These want the partition lock, exclusive. */
extern bool art_entry_absent(ArtEntry *e, ArtReason why, const char *error);
extern ax_status art_entry_open(ArtEntry *e, Relation index, bool native,
								uint64 *gen);

/* These take it. */
extern bool art_entry_publish_ready(ArtEntry *e, uint64 gen,
									ArtBuildSource source, double ms);
extern void art_entry_fail(ArtEntry *e, uint64 gen, ArtReason why,
						   const char *error);
extern void art_drop_locator(Oid indexoid, const ArtLocator *loc, bool forget);
extern void art_drop_index(Oid db, Oid indexoid, bool forget);
extern void art_drop_database(Oid db, bool forget);
extern void art_drop_temp(void);
extern void art_invalidate_heap(Oid db, Oid heapoid);
extern bool art_owner_alive(const ArtEntry *e);

/* builds this process does now (art_residency.c) */
extern void art_own_build_begin(ArtEntry *e, uint64 gen);
extern void art_own_build_end(ArtEntry *e, uint64 gen);
extern void art_own_builds_abort(SubTransactionId subid, bool all);
extern void art_own_builds_reparent(SubTransactionId subid,
									SubTransactionId parent);

/* ---- art_lifecycle.c ---- */
typedef enum ArtPendingKind
{
	ART_PEND_CREATED,			/* abort: the entry goes */
	ART_PEND_RESET,				/* abort: made absent, the entry stays */
	ART_PEND_DROP,				/* commit: this structure goes */
	ART_PEND_DROP_INDEX,		/* commit: every structure of the index goes */
	ART_PEND_DROP_CONCURRENTLY, /* the same, at the last of several commits */
	ART_PEND_DROP_DATABASE		/* commit: every structure of the database */
} ArtPendingKind;

typedef struct ArtPending ArtPending;

extern void art_lifecycle_init(void);
extern ArtPending *art_pending_prepare(void);	/* may err; then nothing does */
extern void art_pending_add(ArtPending *p, ArtPendingKind kind, Oid db,
							Oid indexoid, const ArtLocator *loc,
							SubTransactionId subid);

/* ---- art_interlock.c ---- */
extern Size art_interlock_shmem_size(int nslots);
extern void art_interlock_shmem_init(int nslots);
extern void art_hazards_xact_end(void);
extern void art_hazards_exit(void);

/* ---- art_worker.c ---- */
extern void art_worker_end_for(Oid dboid);

#endif							/* ART_PG_H */
