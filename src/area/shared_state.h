/*
 * shared_state.h
 *	  The shared control block and the members of the directory's entries, with the
 *	  calls that work on them: for this room, and for those who make a structure
 *	  live or show it (build, live, views).
 *
 * src/area/README.md: The directory
 */
#ifndef ART_AREA_SHARED_STATE_H
#define ART_AREA_SHARED_STATE_H

#include "area/area.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlogdefs.h"
#include "catalog/pg_index.h"
#include "common/hashfn.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lock.h"
#include "storage/lwlock.h"

#define ART_NPARTITIONS 64		/* directory locks, a power of two */
#define ART_NBUCKETS	8192	/* hash chains, a power of two */
#define ART_NDELGENS	16384	/* deletion generations, a power of two */
#define ART_NWORKERS	128		/* background workers at one time, all databases */
#define ART_NBUILDERS	64		/* artidx.build_workers at most */
#define ART_NBARS		16		/* databases barred to them */
#define ART_NASKS		64		/* databases that want a visit */
#define ART_NPREPARED	128		/* prepared transactions with DDL, at one time */
#define ART_NCOUNTS		14		/* of artidx_contention, see counters.c */
#define ART_NABORTS		14		/* of a site of artidx_aborts, see there */
#define ART_NGROUPS		256		/* hash chains of groups */

/* Full physical identity. */
typedef struct ArtLocator
{
	Oid			spc;
	Oid			db;
	uint32		rel;
	int32		backend;		/* of a temporary relation, else -1 */
} ArtLocator;

static inline bool
art_same_locator(const ArtLocator *a, const ArtLocator *b)
{
	return a->rel == b->rel && a->db == b->db && a->spc == b->spc &&
		a->backend == b->backend;
}

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

typedef struct ArtGroup ArtGroup;	/* quotas.c */

/* Counts of closed generations of an index: counters.c. */
typedef union ArtAborts
{
	union ArtAborts *next;		/* in the free list */
	uint64		counts[AX_SITES][ART_NABORTS];
} ArtAborts;

/*
 * One structure.  All structures of one index (REINDEX: the old and the new)
 * are in one hash chain, that of (database, index OID).  A search must agree
 * in locator and OID, so a reused relfilenumber or OID finds nothing.
 *
 * "The lock" is the chain's partition lock.  Everything here is read under it,
 * in any mode, and written under it, exclusive, unless a member says otherwise.
 * Before each group of members stands who writes them in which state:
 *
 *	new		art_entry_create(), before the chain points to the entry; or the
 *			postmaster while it starts, when no other process runs
 *	open	the process that takes the state from ABSENT to BUILDING:
 *			art_entry_open(), at startup art_entry_claim()
 *	build	in BUILDING, owner and helpers
 *	any		any process in any state
 *	bare	without the lock
 *
 * A process that has the index locked may read bare a member that only "new"
 * and "open" write.  Where "any" members are read bare an old value does no
 * harm: the reader looks again under the lock, or asks again next time.  No
 * member is a place that a user's function names.
 */
struct ArtEntry
{
	/*
	 * any: creates, drops and moves put it into a chain and take it out.  In the
	 * free list the chunk lock guards it.
	 */
	ArtEntry   *next;			/* in the chain, or in the free list */

	/*
	 * new; art_move_locator() and art_move_database() change the locator,
	 * art_take_entry() the OIDs
	 */
	ArtLocator	loc;
	Oid			indexoid;
	Oid			heapoid;

	/* any; read bare.  Every other member is written before it, see there. */
	pg_atomic_uint64 word;		/* generation << 2 | state */

	/* written once, under the chunk lock: it stays when the entry is recycled */
	ax_tree    *tree;

	/* open */
	bool		native;			/* filled by ambuild and aminsert alone */
	bool		compared;		/* AX_BTREE_COMPARED in place of "engine": not saved */

	/* open; in ABSENT also art_index_altered(), for the next structure */
	ax_structure engine;		/* of the present structure, as the options ask */
	uint32		page_size;

	bool		unique;			/* new; or an exclusion constraint's: inserts need it */
	bool		behind;			/* FOLLOWED; the follower, read bare: it has passed WAL
								 * whose rows are not in the structure yet */
	bool		unswept;		/* the same: or its sweep is due, or goes on */
	Oid			heap_spc;		/* open: the table's file ... */
	uint32		heap_rel;		/* ... 0: not known, or another since */
	ArtReason	reason;			/* any, with ABSENT; read bare */

	/*
	 * open: whose it is, for the log, for artidx_usage, for the choice of what is
	 * sealed, and for the workers' turns.  "owner" is new, too.
	 */
	Oid			owner;			/* the role */
	char		persistence;	/* relpersistence */
	bool		over_cap;		/* any, in READY; read bare: unique, and has more
								 * than its cap (switch_options.c) */
	ArtFull		full;			/* any; ABSENT for ART_WHY_MEMORY: of what */
	NameData	schema;
	NameData	name;

	/* open, and when it is recycled: under the chunk lock, too */
	ArtGroup   *groups[AX_GROUPS];	/* NULL: not in one of that kind */

	/*
	 * build: the one that goes on.  It has at most one owner, which holds the
	 * build's place, and any number of helpers.  Heap blocks are given out in
	 * ranges; a range whose keys did not get into the structure is given back.
	 * A build that its owner left (cancelled) stays BUILDING.  The next process
	 * that holds the build's place goes on with it and sets these three.
	 */
	int			owner_slot;
	int			owner_pid;		/* 0: none; whatever ends BUILDING resets it */
	uint64		owner_build;
	bool		resumable;		/* the fields below are set */
	int			helpers;		/* processes in it beside the owner */
	BlockNumber nblocks;
	BlockNumber next_block;		/* first that was never given out */
	int			nredo;
	ArtBlockRange redo[ART_MAX_REDO];
	double		spent_ms;		/* by owners that left it */
	double		load_key_us;	/* bare, by each of them: a guess, loading one key */

	/*
	 * new, at startup, and any.  Claimed for the loader of saved files, which
	 * is its owner from then on (art_loading): BUILDING, not resumable.
	 */
	bool		loading;
	uint8		fill;			/* open; per cent of a leaf, for saving */

	/* any, in every state: being asked for, memory.  Plans read them bare. */
	ArtWant		wanted;
	TimestampTz wanted_at;		/* first time it was waited for a worker, 0: not
								 * since the last build began */
	TimestampTz not_before;		/* workers leave it alone until then */
	uint64		size_hint;		/* bytes, as far as anybody knows; for the order */

	/* any, in every state */
	pg_atomic_uint64 spill_lsn; /* read and written bare: crash_memory.h */
	XLogRecPtr	born_lsn;		/* the same */
	bool		doubt;			/* a prepared transaction decides its fate; only
								 * the sweeper takes it away */
	bool		unchecked;		/* READY, kept over a crash, and not checked against
								 * its table since */

	/* any, in ABSENT; art_entry_publish_ready() resets "sealed" */
	bool		sealed;			/* ABSENT, and out of plans until there is room */
	uint64		seals;
	uint64		last_bytes;		/* when it was last READY */
	TimestampTz sealed_at;
	int			backoff_s;		/* before a sealed or a stuck one is built again */

	/* any, in every state: whoever knows what was committed (switch_options.c) */
	ax_tail_option tail;		/* told to the present structure */
	ax_elide_option elide;
	bool		told;			/* those two are what an ALTER INDEX committed,
								 * and not what a relation cache had */
	uint8		changed;		/* ART_CHANGED_..., read bare: the next to open the
								 * index compares the structure with the options */
	bool		altered;		/* ABSENT since ALTER INDEX asked for another */

	/* bare: by the process that runs ambuild, which has the index locked */
	FullTransactionId made_by;	/* which ran ambuild last: no victim before it ends */

	/* any: only the process that makes it sets them, and only it resets them */
	int			making_slot;	/* the process that makes it CONCURRENTLY ... */
	int			making_pid;		/* ... in several transactions; 0: none */

	/* bare, in every state: whoever uses it, and the launcher */
	pg_atomic_uint32 used_at;	/* last use by a scan or a unique check, in
								 * seconds since 2000 */
	pg_atomic_uint32 uses;		/* seconds in which it was used, halved by the
								 * launcher now and then */

	/* art_entry_publish_ready(), and the postmaster at startup */
	uint64		builds;
	TimestampTz last_build;
	ArtBuildSource source;
	double		last_ms;

	/* any, in ABSENT, after a build failed; READY and ALTER INDEX reset them */
	TimestampTz failed_at;		/* last failed build, 0: none since a good one */
	bool		told_out;		/* by a worker: the log has been told that it is left
								 * out */
	bool		stuck;			/* an expression did not end, and "backoff_s" counts from
								 * failed_at */
	uint64		failed_free;	/* bytes left for it after that, when for memory */
	ArtRoomFor	failed_room;	/* and how it had asked for memory */

	/* bare, in BUILDING: progress, added to by owner and helpers */
	pg_atomic_uint64 blocks_done;
	pg_atomic_uint64 blocks_total;

	char		error[64];		/* any, with ABSENT: of the last failed build */

	/*
	 * any: added to when a generation is closed.  The counts of closed
	 * generations, less those of the present one when the statistics were
	 * reset; modulo 2^64.
	 */
	uint64		counts[ART_NCOUNTS];
	ArtAborts  *aborts;			/* NULL: nothing was */
	TimestampTz stats_reset;	/* 0: never */
};

/* An index costs its entry beside its structure: a page has room for five. */
StaticAssertDecl(sizeof(struct ArtEntry) <= AX_PAGE / 5, "an entry is no larger than it need be");

/* ArtEntry.changed */
#define ART_CHANGED_CAP		1	/* max_memory may be another */
#define ART_CHANGED_ENGINE	2	/* structure, sync and page_size may */
#define ART_CHANGED_TAIL	4	/* tail_buffer and elision may */
#define ART_CHANGED_DRAIN	8	/* there is no tail buffer any more, but what it had */

#define ART_WORD(gen, state)	(((uint64) (gen) << 2) | (uint64) (state))
#define ART_WORD_STATE(w)		((ArtState) ((w) & 3))
#define ART_WORD_GEN(w)			((w) >> 2)

/*
 * A background process that evaluates expressions, as the launcher watches it.  Read and written
 * bare: only the process itself writes "row", only the launcher sets "end", and the process
 * resets it.
 */
typedef struct ArtWatch
{
	pg_atomic_uint64 row;		/* odd: an expression is evaluated; another number for
								 * every row */
	pg_atomic_uint32 end;		/* ArtEnd */
} ArtWatch;

typedef enum ArtEnd
{
	ART_END_NOT = 0,
	ART_END_TURN,				/* others want the slot: leave after this page */
	ART_END_LOCK,				/* cancelled: its lock is waited for */
	ART_END_STUCK				/* cancelled: the expression does not end */
} ArtEnd;

/*
 * A background worker, from the moment it is asked for until it exits.  All of
 * it under the chunk lock.  The launcher fills a free slot; from then on only
 * the worker with its number writes to it, and frees it.  Two others may free
 * it while pid is 0: the launcher, after a while, and DROP DATABASE.
 */
typedef struct ArtWorkerSlot
{
	Oid			dboid;			/* InvalidOid: free */
	uint32		seq;			/* its number: one that comes late finds another */
	int			pid;			/* 0: asked for, not started */
	int			procno;			/* with pid: its process number */
	int			jobs;			/* ART_JOB_... */
	Oid			owner;			/* of the indexes that it builds */
	Oid			indexoid;		/* which it builds now, and no other worker */
	TimestampTz asked;			/* its turn began */
	ArtWatch	watch;			/* no lock */
} ArtWorkerSlot;

/* Jobs of a worker, which does them in this order. */
#define ART_JOB_SWEEP	1		/* forget entries that the catalog has not */
#define ART_JOB_SCOUT	2		/* make entries for what the catalog has */
#define ART_JOB_BUILD	4		/* build, or help, until nothing is left */
#define ART_JOB_CHECK	8		/* check what was kept over a crash; long */
#define ART_JOB_FOLLOW	16		/* on a standby, keep the structures by the WAL; for long */
#define ART_JOB_VISIT	(ART_JOB_SCOUT | ART_JOB_SWEEP) /* short */
#define ART_JOB_ORDERS	(ART_JOB_VISIT | ART_JOB_CHECK) /* asked for again if not done */

/*
 * A command works on the whole database: our workers stay out of it.  Under the
 * chunk lock; written by the command's process.
 */
typedef struct ArtBar
{
	Oid			dboid;			/* InvalidOid: free */
	int			pid;			/* the command's process; void when it is gone */
} ArtBar;

/*
 * Somebody wants a visit to a database; or, with ART_JOB_BUILD, no builder is
 * to go there before.  Under the chunk lock: any process asks, the launcher
 * takes what is due.
 */
typedef struct ArtAsk
{
	Oid			dboid;			/* InvalidOid: free */
	int			jobs;
	TimestampTz at;				/* not before */
} ArtAsk;

/*
 * The follower of a database tells this, on a standby; its slot has the same number.
 * "position" is the follower's alone and is read bare; so are the counts.  They are numbers to
 * compare, and no reader takes one for a place in memory.
 */
typedef struct ArtFollower
{
	pg_atomic_uint64 position;	/* the WAL before it is in the structures, but of
								 * those that are behind */
	ConditionVariable moved;	/* position was */
	pg_atomic_uint64 added;		/* entries put in */
	pg_atomic_uint64 dead;		/* line pointers that wait for a sweep */
	pg_atomic_uint64 sweeps;
	pg_atomic_uint64 swept;		/* entries taken out */
	pg_atomic_uint64 swept_us;	/* by the sweeps */
	pg_atomic_uint64 waits;		/* of scans */
	pg_atomic_uint64 waited_us;
	pg_atomic_uint64 given_up;	/* of them: read the table */
	pg_atomic_uint64 as_of;		/* what was replayed by then is before position */
	pg_atomic_uint64 stood_at;	/* whoever found: a wait at this position was in vain */
} ArtFollower;

typedef struct ArtHazardChunk ArtHazardChunk;
typedef struct ArtHazardSlot ArtHazardSlot;

/* The control block.  Before each group of members stands what guards it. */
typedef struct ArtShared
{
	/* the postmaster writes them before any other process runs */
	ax_area    *area;
	int			nslots;

	/*
	 * The postmaster kept the memory over a crash, and nobody has judged it yet: so
	 * nobody looks at the directory.  The postmaster sets it before any other process runs, the judge
	 * resets it.
	 */
	pg_atomic_uint32 unjudged;
	bool		kept;			/* the judge kept something; written before that */
	TimeLineID	timeline;		/* that of the WAL, bare: art_entry_publish_ready() */

	pg_atomic_uint64 build_number;	/* no lock: the last build has this one */

	/*
	 * The postmaster writes them, when it starts and when it reads its
	 * configuration; all read them without a lock: quotas.c.
	 */
	_Atomic uint64_t limits[AX_GROUPS];

	/* chunk lock, for reading and for writing */
	ArtEntry   *free_entries;
	ArtAborts  *free_aborts;
	ArtGroup   *free_groups;
	ArtGroup   *groups[ART_NGROUPS];
	ArtHazardChunk *hazard_chunks;	/* pushed under the lock, read without */
	ArtHazardSlot *free_hazards;
	ArtWorkerSlot workers[ART_NWORKERS];
	uint32		worker_seq;
	ArtBar		bars[ART_NBARS];
	ArtAsk		asks[ART_NASKS];
	bool		new_database;	/* the launcher should list them again */
	uint32		drops;			/* databases dropped; the launcher's list is no
								 * older when it starts a worker */
	ArtFollower followers[ART_NWORKERS];	/* no lock, see there */
	bool		follow_asked;	/* the launcher should see whether one is missing */
	uint64		prepared[ART_NPREPARED];	/* hashed names of transactions that left
											 * something in doubt; 0: free */
	bool		prepared_lost;	/* there were more */
	Oid			nameless;		/* a database with one whose name is not known */

	/*
	 * no lock: the launcher writes its own four, the updater its own, any process the
	 * rest
	 */
	pg_atomic_uint32 launcher;	/* process number + 1 of the launcher, 0: none */
	pg_atomic_uint32 updater;	/* the same of the updater of search layers */
	pg_atomic_uint32 entries_changed;	/* entries made or forgotten */
	pg_atomic_uint32 requests;	/* of statements that wait for a worker */
	pg_atomic_uint32 unsettled; /* structures made absent, begun, or missed */
	pg_atomic_uint32 settled;	/* 1 + that, when none was to be built */
	pg_atomic_uint32 no_worker; /* the launcher could not start the last one */
	pg_atomic_uint32 busy;		/* the launcher: somebody waits for a free worker */
	pg_atomic_uint32 build_kb;	/* the launcher: maintenance_work_mem of the server */
	pg_atomic_uint64 sealing_until; /* somebody sealed, and its memory is awaited
									 * until then (a TimestampTz) */
	pg_atomic_uint32 ssi_held;	/* predicate locks there were, when last counted */
	pg_atomic_uint32 ssi_taken; /* and those taken on our indexes since */

	/*
	 * The loader of saved files (load_at_start.c).  The postmaster claims a file
	 * before any other process runs.  The loader sets slot and pid before the
	 * state says that it runs; others read them only after that.
	 */
	pg_atomic_uint32 load_state;	/* ArtLoadState */
	int			load_slot;
	int			load_pid;
	uint32		load_crc;		/* of the claimed file's header */
	pg_atomic_uint64 load_asked;	/* when it was first waited for, 0: never */

	/* partition locks: that of bucket b is number b % ART_NPARTITIONS */
	ArtEntry   *buckets[ART_NBUCKETS];

	/* no lock: checks of what outlived a crash, since this memory was made */
	pg_atomic_uint64 checked_sound;
	pg_atomic_uint64 checked_different;
} ArtShared;

/* ---- shared_memory.c ---- */

/* The partition locks of the directory, ART_NPARTITIONS of them. */
extern LWLockPadded *art_dir_locks;

/*
 * The stripes of unique checks, art_unique_mask + 1 of them, a power of two.
 * art_unique_stripe() chooses.
 */
extern LWLockPadded *art_unique_locks;
extern uint32 art_unique_mask;

/*
 * The chunk lock: of the free lists, the groups, the workers' slots and what else
 * ArtShared names.
 */
extern LWLock *art_chunk_lock;

extern int	art_memory_mb;		/* artidx.memory */

/* Slots of the area: one a process that there can be. */
extern int	art_process_slots(void);

/*
 * From _PG_init: called when this process was attached, in the same critical
 * section.  There is one such function.
 */
extern void art_at_attach(void (*fn) (ax_ctx *cx));

/*
 * From _PG_init: what has to end when this process exits, before it is detached.
 * The last function that was given is called first.  There are three at most.
 */
extern void art_before_detach(void (*fn) (void));

/* this process attached and not yet detached */
extern bool art_attached(void);
extern Size art_area_bytes(void);	/* artidx.memory, or the least there can be */
extern void art_postmaster_attach(void);
extern void art_postmaster_detach(void);
extern void *art_system_alloc(size_t bytes);	/* NULL when full; zeroed */

/* Do so many bytes from p on lie in the area? */
extern bool art_in_area(const void *p, size_t bytes);

/* ---- crash_memory.c ---- */

extern ArtShared *art_shared;	/* NULL: not preloaded */

/* Was the memory kept over a crash, and not judged yet? */
static inline bool
art_unjudged(void)
{
	return pg_atomic_read_u32(&art_shared->unjudged) != 0;
}

extern bool art_survive_crash;	/* artidx.survive_crash */

/*
 * Seconds after a crash in which another one gives up what was kept.  Nothing else keeps a
 * damaged structure from crashing the server again and again.  Exported for
 * test/modules/art_insidetest, whose servers crash more often.
 */
extern PGDLLEXPORT int art_crash_pause;

extern void art_keep_init(void);	/* from art_shmem_init */

/*
 * For the postmaster in a crash cycle, once in each: why is the memory not to be kept?
 * NULL: it is.
 */
extern const char *art_keep_refusal(int nslots);

/*
 * This process has a word of its own from now on, up to its very end, and waits with
 * SIGQUIT.
 */
extern void art_keep_attach(void);

/*
 * A partition lock, or the chunk lock.  A process that has it exclusively is inside
 * (area.h).  The first call after a crash judges the memory that was kept.
 */
extern void art_lock(LWLock *lock, LWLockMode mode);
extern void art_unlock(LWLock *lock);

/* From _PG_init: who judges. */
extern void art_judge_by(void (*fn) (void));

/* An error has released the locks, and left us inside, and SIGTERM held. */
extern void art_inside_reset(void);

/* ---- huge_pages.c ---- */

/*
 * Memory for all processes that outlives a crash, zero; FATAL when there is none.  The
 * postmaster calls it once, when it starts.
 */
extern void *art_keep_map(Size size);

/*
 * Make it zero again: in the crash cycle, where no error may be.  Only the first "used"
 * bytes may differ from zero.
 */
extern void art_keep_wipe(void *base, Size used, Size size);

/* Our memory is part of PostgreSQL's, and this address in it: is it in huge pages? */
extern void art_huge_look(const void *p);

/* artidx_hardware().huge_pages. */
extern const char *art_huge_pages(void);

/* May pages be given back to the kernel? */
extern bool art_may_discard(void);

/* ---- removed_settings.c ---- */

/* From _PG_init, preloading: what PostgreSQL says of a setting that is gone gets a hint. */
extern void art_removed_settings_init(void);

/* ---- postmaster_start.c ---- */

extern void art_shmem_init(void);	/* from _PG_init, preloading */

extern LWLock *art_judge_lock;	/* of the one who judges */

/* ---- chains.c ---- */

/* The number of an index's chain. */
static inline int
art_bucket(Oid db, Oid indexoid)
{
	return hash_combine(murmurhash32(db), murmurhash32(indexoid)) & (ART_NBUCKETS - 1);
}

extern LWLock *art_partition(Oid db, Oid indexoid); /* the lock of that chain */
extern ArtEntry *art_chain(Oid db, Oid indexoid);	/* its first entry, of any index */

/* Put an entry, complete and named, into its chain, and take it out.  The lock, exclusive. */
extern void art_chain_add(ArtEntry *e);
extern void art_chain_remove(ArtEntry *e);

/* The entry with this OID and locator, or NULL.  The caller holds the lock, in any mode. */
extern ArtEntry *art_find(Oid indexoid, const ArtLocator *loc);

/*
 * art_find(), and *lock is the partition lock, which is taken in that mode and is held on
 * return, also if there is no such entry (NULL).  The caller holds no lock of the directory.
 */
extern ArtEntry *art_find_locked(Oid indexoid, const ArtLocator *loc, LWLockMode mode,
								 LWLock **lock);

/*
 * art_unlock() of a partition lock.  plans: a structure is gone on which plans of the table may
 * depend, so those are made anew.  They are told after the lock is released: whoever plans
 * from then on reads the new state.
 */
extern void art_unlock_changed(LWLock *lock, bool plans, Oid db, Oid heapoid);

/* Invalidate plans and relcache entries of a heap in every process, now. */
extern void art_invalidate_heap(Oid db, Oid heapoid);

/*
 * A walk of the directory.  It comes to every entry once.  One that is made or goes meanwhile
 * it may miss.
 *
 *		ArtWalk		w = art_walk(LW_SHARED, db, InvalidOid);
 *
 *		for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
 *			...
 *
 * In the loop's body the lock of the entry's partition is held, in the mode of the walk, and no
 * other: the walk takes them one after the other.  So the body takes no partition lock, and
 * the caller holds none.  The body may forget the entry.  A loop that is left
 * before art_walk_next() has returned NULL calls art_walk_end().
 */
typedef struct ArtWalk
{
	LWLockMode	mode;
	Oid			db;				/* only of this database; InvalidOid: of all */
	Oid			indexoid;		/* only of this index of "db"; InvalidOid: of all */
	int			bucket;			/* of the chain */
	bool		over;
	LWLock	   *lock;			/* NULL: none is held */
	ArtEntry  **link;			/* what points to the entry; NULL: the chain is new */
	ArtEntry   *e;
} ArtWalk;

/* Begin a walk.  It takes no lock yet. */
extern ArtWalk art_walk(LWLockMode mode, Oid db, Oid indexoid);

/* The next entry; NULL: there is no more, and no lock is held. */
extern ArtEntry *art_walk_next(ArtWalk *w);

/* No lock is held any more.  The walk is over. */
extern void art_walk_end(ArtWalk *w);

/* A copy of an entry, for when no lock is held. */
typedef struct ArtListed
{
	Oid			indexoid;
	ArtLocator	loc;
	bool		doubt;
	ax_tree    *tree;			/* a handle stays one; whose it is the generation tells */
	uint64		gen;			/* 0: ABSENT */
} ArtListed;

/*
 * List the entries of a database (InvalidOid: of all) that are wanted: an array in the current
 * context.  Returns how many they are.  ERROR 53200 holds no lock.  Takes the partition locks,
 * shared, one after the other; "wanted" is called under them.
 */
extern int	art_list_entries(Oid db, bool (*wanted) (ArtEntry *e, const void *arg),
							 const void *arg, ArtListed **list);

/* For art_list_entries(): is it an index that is not temporary? */
extern bool art_is_shared(ArtEntry *e, const void *arg);

/* ---- entry_states.c ---- */

/*
 * The facts that an entry needs of its index when a structure is opened and
 * that only catalogs tell.  They are read before the lock is taken.
 */
typedef struct ArtOpening
{
	bool		compared;		/* art_index_compared() */
	bool		limited;		/* artidx.role_limit applies: no superuser owns it */
	Oid			owner;
	Oid			heap_spc;		/* the table's file, as this transaction sees it */
	uint32		heap_rel;
	char		persistence;
	NameData	schema;
	NameData	name;
} ArtOpening;

/*
 * Read and written under the partition lock, exclusive, which the caller holds, but for those
 * that say that they take it.
 *
 * Close the structure and make the state ABSENT, from any state.  error: in its own words;
 * NULL: none.  Returns whether plans may depend on it: then the caller sends the invalidation after it
 * has released the lock (art_unlock_changed).
 */
extern bool art_entry_absent(ArtEntry *e, ArtReason why, const char *error);

/*
 * Discard a structure that is BUILDING.  Nothing failed, so the reason why it was absent
 * before stays.
 */
extern void art_entry_discard(ArtEntry *e);

/* An entry that is ABSENT, or will be, is to be built: what kept workers from it counts no more. */
extern void art_entry_again(ArtEntry *e);

/* BUILDING -> ABSENT, when the structure is still the one that failed.  Takes the lock. */
extern void art_entry_fail(ArtEntry *e, uint64 gen, ArtReason why,
						   const char *error);

/* BUILDING -> ABSENT, because an expression did not end.  Takes the lock. */
extern void art_entry_stuck(ArtEntry *e, uint64 gen);

/* Tell the structure what the entry says; partition lock held, exclusive. */
extern void art_tell(ArtEntry *e, uint64 gen);

/*
 * A structure was opened: tell it what the options of the index, which is open
 * (NULL: not known yet), ask for.  Partition lock held, exclusive.
 */
extern void art_tell_options(ArtEntry *e, uint64 gen, Relation index);

/*
 * Open a new generation in state BUILDING, owned by this process.  The state is ABSENT.  If
 * it does not return AX_OK, it is so still.
 */
extern ax_status art_entry_open(ArtEntry *e, Relation index, const ArtOpening *o,
								bool native, uint64 *gen);

/*
 * Open one of that engine and cap.  index NULL: it is not open, and the loader of saved files
 * owns the structure.
 */
extern ax_status art_entry_open_as(ArtEntry *e, Relation index, const ArtOpening *o,
								   const ArtEngine *want, uint64 max_bytes, uint64 *gen);

/* This process owns the build from now on. */
extern void art_entry_own(ArtEntry *e);

/*
 * BUILDING -> READY, when the structure is still the one that was built.  So is
 * FOLLOWED -> READY, when the promotion of a standby is done.  Plans of the table are made
 * anew.  False if the generation is gone; then nothing was changed.  Takes the lock.
 */
extern bool art_entry_publish_ready(ArtEntry *e, uint64 gen,
									ArtBuildSource source, double ms,
									bool uncommitted);

/*
 * The transaction that made the structure has committed, and its commit ends at lsn.  Takes
 * the lock.
 */
extern void art_entry_born(Oid indexoid, const ArtLocator *loc, XLogRecPtr lsn);

/*
 * BUILDING becomes FOLLOWED; any state of this generation becomes ABSENT, or is marked.
 * False when the generation is gone.  Each takes the lock.
 */
extern bool art_followed_publish(Oid indexoid, const ArtLocator *loc, uint64 gen, double ms,
								 bool behind);
extern bool art_followed_close(Oid indexoid, const ArtLocator *loc, uint64 gen,
							   ArtReason why, const char *error);
extern bool art_followed_mark(Oid indexoid, const ArtLocator *loc, uint64 gen, bool behind,
							  bool unswept);

/*
 * A READY structure is kept over a crash: what a dead process said of it goes.  The options
 * may have been altered by a transaction whose process died before it could tell us, so the
 * next to open the index compares.
 */
extern void art_entry_keep(ArtEntry *e);

/* ---- directory.c ---- */

/*
 * Read those facts of an index from the catalogs.  The caller holds a lock on the index,
 * and no lock of the directory.
 */
extern void art_opening(Relation index, ArtOpening *o);

/* The physical identity of an open relation. */
extern void art_locator(Relation index, ArtLocator *loc);

/*
 * The physical identity of a permanent or unlogged index of this database, by
 * its row of pg_class.  By such a row of a temporary one it is that, too, but
 * for "backend".
 */
extern void art_form_locator(const FormData_pg_class *form, ArtLocator *loc);
extern ArtEntry *art_entry_create(Relation index, bool building);
extern ArtEntry *art_entry_try(Relation index);

/*
 * For the postmaster while it starts: make an entry of an index that is not open.  Its
 * structure is empty and BUILDING, and the loader of saved files owns it.  NULL: the area
 * is full, or the index has an entry.  Takes the partition lock, and the chunk lock in it.
 */
extern ArtEntry *art_entry_claim(Oid indexoid, const ArtLocator *loc,
								 const ArtOpening *o, const ArtEngine *want,
								 uint64 max_bytes);

/* The caller holds the partition lock, exclusive. */
extern void art_entry_forget(ArtEntry *e);	/* takes it out of its chain, and recycles it */

/* Each of them takes the partition lock. */
extern void art_drop_locator(Oid indexoid, const ArtLocator *loc, bool forget);
extern void art_drop_index(Oid db, Oid indexoid, bool forget);
extern void art_drop_database(Oid db, bool forget);
extern void art_drop_temp(void);
extern bool art_owner_alive(const ArtEntry *e);

/*
 * A transaction of this process is aborted, and with it the command: it makes no index any
 * more.  Takes the partition locks, one after the other; the caller holds none.
 */
extern void art_making_abort(void);

/*
 * Is this BUILDING structure one that the loader of saved files fills, or will
 * fill?  Then wait; the loader takes no lock that could make that a deadlock.
 * Partition lock held, in any mode.
 */
extern bool art_loading(const ArtEntry *e);

/* ---- moved_entries.c ---- */

/*
 * The index has another file: its entry becomes that of the new file, unless that has one.
 * Nobody else has the index open.  born: the file is a copy, and a READY structure stays.
 * *born is the WAL position that it gets, and on return the one that it had.  NULL: the
 * structure goes.  False: nothing was moved.  Takes the partition lock.
 */
extern bool art_move_locator(Oid indexoid, const ArtLocator *from,
							 const ArtLocator *to, XLogRecPtr *born);

/*
 * The files of a database were moved from one tablespace to another, and that is
 * committed: structures stay.  Nobody is connected to it.  born: the WAL position that
 * they get.  Takes the partition locks, one after the other.
 */
extern void art_move_database(Oid db, Oid from, Oid to, XLogRecPtr born);

/* "heapoid" and "o" are those of the index that takes it; NULL: as they were. */
extern bool art_take_entry(Oid from, Oid to, const ArtLocator *loc, XLogRecPtr *born,
						   Oid heapoid, const ArtOpening *o);

/* ---- place_locks.c ---- */

typedef enum ArtPlace			/* line pointer numbers of locks' tuples */
{
	ART_PLACE_BUILD = 1,		/* of the owner of a build, exclusive */
	ART_PLACE_HELPERS,			/* of its helpers, shared */
	ART_PLACE_UNIQUE,			/* of a unique check by comparison, exclusive */
	ART_PLACE_SCANS = 0x7FFF	/* of scans without shared memory, shared */
} ArtPlace;

/* The tag of a place's lock, with which to ask which processes wait for it. */
extern void art_place_tag(Relation index, ArtPlace place, LOCKTAG *tag);

/*
 * Take the lock of a place, and wait for it without an end: lock_timeout does not count.
 * It stays until art_unlock_place() or the end of the transaction.
 */
extern void art_lock_place(Relation index, ArtPlace place, LOCKMODE mode);

/*
 * As art_lock_place(), but wait at most so many milliseconds (0: without an end).  ERROR
 * 55P03, that of lock_timeout, when they are over.
 */
extern void art_lock_place_for(Relation index, ArtPlace place, LOCKMODE mode, int ms);

/* Take the lock of a place if it is free.  False: it is not, and is not taken. */
extern bool art_try_lock_place(Relation index, ArtPlace place, LOCKMODE mode);

/* Give back the lock of a place, taken in that mode. */
extern void art_unlock_place(Relation index, ArtPlace place, LOCKMODE mode);

/* ---- evaluation_time.c ---- */

/* An expression that takes longer than so many times deadlock_timeout does not end. */
#define ART_STUCK_ROW	60
#define ART_STUCK_TEXT	"an expression did not end"

/* The launcher watches this process from now on, by way of that place in shared memory. */
extern void art_watched_by(ArtWatch *w);

/*
 * Around the evaluation of one row's expressions and predicate: the launcher sees it.  One
 * within another is part of that.  An error leaves it begun, until whoever caught the error
 * calls art_evaluate_reset().
 */
extern bool art_evaluate_begin(void);
extern void art_evaluate_end(bool begun);
extern void art_evaluate_row(void);
extern void art_evaluate_reset(void);
extern bool art_evaluates(void);
extern ArtEnd art_watch_end(void);
extern void art_watch_anew(void);
extern int	art_build_kb(void);
extern TimestampTz art_error_until(const ArtEntry *e);
extern TimestampTz art_stuck_until(const ArtEntry *e);
extern void art_stuck_note(ArtEntry *e);

/* ---- xact_pending.c ---- */

typedef enum ArtPendingKind
{
	ART_PEND_CREATED,			/* abort: the entry goes */
	ART_PEND_RESET,				/* abort: made absent, the entry stays */
	ART_PEND_DROP,				/* commit: this structure goes */
	ART_PEND_DROP_INDEX,		/* commit: every structure of the index goes */
	ART_PEND_DROP_CONCURRENTLY, /* the same, at the last of several commits */
	ART_PEND_DROP_DATABASE,		/* commit: every structure of the database */
	ART_PEND_EMPTY,				/* commit: every structure of the index is made absent */
	ART_PEND_MOVED,				/* commit: made absent, the entry gets the new file */
	ART_PEND_COPIED,			/* abort: the entry gets back the file that was copied */
	ART_PEND_TAKEN,				/* abort: the entry goes back to the index that had it */
	ART_PEND_SWAPPED,			/* commit, first of all: the entry goes to the index that
								 * its file was given to */
	ART_PEND_MOVED_DATABASE,	/* commit: another tablespace is the database's */
	ART_PEND_NEW_DATABASE,		/* commit: new, moved or altered, see there */
	ART_PEND_ALTERED			/* commit or abort: options may have changed */
} ArtPendingKind;

/* One piece of work, kept by identity. */
typedef struct ArtPending
{
	struct ArtPending *next;
	ArtPendingKind kind;
	SubTransactionId subid;
	Oid			db;
	Oid			indexoid;
	ArtLocator	loc;
	ArtLocator	moved_to;		/* MOVED, COPIED; its tablespace: MOVED_DATABASE */
	Oid			taken_from;		/* TAKEN, SWAPPED */
	Oid			heapoid;		/* SWAPPED: the table of "indexoid" */
	ArtOpening	opening;		/* SWAPPED: of "indexoid" */
	XLogRecPtr	born_lsn;		/* TAKEN, COPIED: of the entry before */
	uint32		shape;			/* DROP_INDEX: of its columns (lifecycle.c) */
	bool		known;			/* ALTERED: what the options ask for now */
	ArtEngine	want;
} ArtPending;

extern ArtPending *art_pending;	/* newest first */
extern ArtPending *art_pending_prepare(void);	/* may err; then nothing does */

/*
 * Register a piece of work that art_pending_prepare() has made room for.  loc NULL: the
 * kind needs none.  Never errs.
 */
extern void art_pending_add(ArtPending *p, ArtPendingKind kind, Oid db,
							Oid indexoid, const ArtLocator *loc,
							SubTransactionId subid);

/* Did this transaction alter the index? */
extern bool art_pending_altered(Oid indexoid);

/*
 * Relations whose catalog row this transaction has changed; any of them may have another
 * file since.  "missed": it is an index, and was looked for in the directory in vain.  So
 * a row may be in its table that no structure has got.
 */
typedef struct ArtNoted
{
	Oid			relid;
	bool		missed;
} ArtNoted;

/* Has this transaction noted a relation? */
extern bool art_noted_any;

/* Note a relation.  May err for want of memory. */
extern void art_note(Oid relid);

/* Mark a noted index as missed.  One that is not noted stays so.  Never errs. */
extern void art_note_missed(Oid relid);

/* Is the index noted, and missed? */
extern bool art_was_missed(Oid relid);

extern Oid *art_noted(int *n);	/* in the present memory context */

/* Forget all notes; their memory goes with the transaction. */
extern void art_noted_xact_end(void);

/*
 * Did this transaction make the index or the table, or give it its file?  Its row of
 * pg_class tells that to parallel workers, too, and of an index that took over another's file.
 * A row that was changed for another reason costs no more than a build.
 */
extern bool art_is_uncommitted(Relation rel);

/* ---- saved structures (saved/save_at_shutdown.c, saved/load_at_start.c) ---- */

typedef enum ArtLoadState
{
	ART_LOAD_NOTHING = 0,		/* nothing was claimed */
	ART_LOAD_PENDING,			/* claimed; the loader has not started yet */
	ART_LOAD_RUNNING,
	ART_LOAD_DONE				/* what is still marked as loading is nobody's */
} ArtLoadState;

#define ART_LOADING_FILE	"pg_stat/artidx.loading"	/* claimed, used once */

/* ---- vacuum_interlock.c ---- */

/*
 * Bytes of shared memory for deletion generations, and for so many processes' overflow
 * marks.
 */
extern Size art_interlock_shmem_size(int nslots);

/* An index gets another file: no count of the new one's deletions was ever the old one's. */
extern void art_delgen_moved(const ArtLocator *from, const ArtLocator *to);

/* The interlock lies here; fresh: zero. */
extern void art_interlock_shmem_init(char *at, int nslots, bool fresh);

/* After a crash, from the judge: nobody has a slot. */
extern void art_hazards_survive(void);
extern void art_hazards_xact_end(void);
extern void art_hazards_exit(void);

/* ---- standby_readers.c ---- */

extern void art_followers_clear(void);	/* shared memory was made, or kept over a crash */

/* For the follower, whose slot that is: nothing is counted, and no WAL taken, yet. */
extern ArtFollower *art_follower_begin(int slot);

/* Have the launcher start a follower where one is missing. */
extern void art_follow_again(void);

/* ---- quotas.c ---- */

extern void art_groups_init(void);	/* from art_shmem_init */
extern void art_groups_startup(void);	/* shared memory was made */

/*
 * Structures of this entry that are opened from now on are charged to groups:
 * of its database, of its owner (if limited), of temporary indexes.  Partition
 * lock held, exclusive; false when the area is full.
 */
extern bool art_groups_join(ArtEntry *e, Oid owner, bool limited);

/* The entry is forgotten, and in no group any more.  The same lock. */
extern void art_groups_leave(ArtEntry *e);

/*
 * The limit that refused memory to this process last, and (if given) its
 * group.
 */
extern ArtFull art_what_is_full(ArtGroup **group);

/* Charged to a group, and its limit, UINT64_MAX for none. */
extern void art_group_use(const ArtGroup *g, uint64 *bytes, uint64 *limit);

/* The least of what is left to the entry's groups, and of "left". */
extern uint64 art_groups_left(const ArtEntry *e, uint64 left);

/* Is the entry in that group? */
extern bool art_in_group(const ArtEntry *e, const ArtGroup *g);

/* Bytes left: to the group if its limit is what is full, or in the area. */
extern uint64 art_left_to(const ArtGroup *group);

/* Bytes that a structure takes; 0 when the generation is gone. */
extern uint64 art_structure_bytes(ArtEntry *e, uint64 gen);

/* For artidx_indexes.reason: the setting, or "memory full". */
extern const char *art_full_name(ArtFull full);

/* ---- counters.c ---- */

typedef uint64 ArtSiteCounts[AX_SITES][ART_NABORTS];

/*
 * The generation is about to be closed: keep what it counted.  Partition lock
 * held, exclusive.
 */
extern void art_counts_keep(ArtEntry *e, uint64 gen);

/* The entry is forgotten; another one of the same index goes on counting. */
extern void art_counts_inherit(ArtEntry *heir, const ArtEntry *e);

/* Two indexes have exchanged their structures; each goes on with what it has counted. */
extern void art_counts_exchange(ArtEntry *a, ArtEntry *b);

/* Count from zero; the same lock. */
extern void art_counts_reset(ArtEntry *e, TimestampTz now);

/*
 * The state of the moment, and counts of the present generation alone: an entry has no room to
 * keep those of structure = hydra.
 */
typedef struct ArtPresent
{
	const char *tail_mode;		/* stays as it was where there is no tail buffer */
	uint64		search_lag;		/* splits and merges that are logged, and not in the search layer */
	uint64		search_applied;
	uint64		walks;			/* descents that had to go on along the list */
	uint64		walk_steps;
	uint64		longest_walk;
	uint64		version_commits;	/* of sync = mvrlu */
	uint64		versions_passed;	/* by readers, for they were too new */
	uint64		commits_helped;	/* by readers */
} ArtPresent;

/*
 * Add the counts of the entry, closed generations included; lock held in any
 * mode.  A site's mode is joined with the one that is there.
 */
extern void art_counts_add(ArtEntry *e, uint64 *counts, ArtPresent *now);
extern void art_aborts_add(ArtEntry *e, ArtSiteCounts sum, const char **mode);

/* Nobody's any more. */
extern void art_aborts_forget(ArtEntry *e);

/* ---- elision_setting.c ---- */

extern int	art_elision;		/* the setting */
extern void art_elision_init(void); /* from _PG_init */

/*
 * This process was just attached: tell the core what it may elide with.  In the critical
 * section of the attachment.
 */
extern void art_elision_attached(ax_ctx *cx);

/* Why this process elides nothing, whatever an index's option says.  NULL: it does. */
extern const char *art_elision_why_not(void);

extern const char *art_elision_by(void);	/* a test's provider; NULL: the processor */
extern const ax_hardware *art_hardware(void);	/* probes if nobody has */

/* ---- error_reports.c ---- */

/*
 * The name of a relation as SQL takes it from any search_path, allocated; NULL when
 * it is gone.
 */
extern char *art_sql_name(Oid relid);

#endif							/* ART_AREA_SHARED_STATE_H */
