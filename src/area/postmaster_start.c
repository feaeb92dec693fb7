/*
 * postmaster_start.c
 *	  What the postmaster does before there is shared memory: the setting, how much
 *	  is asked for, and how it is divided.
 *
 * src/core/base/README.md: Memory and epochs
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#include "area/crash_memory.h"

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

LWLock	   *art_judge_lock = NULL;

/* ---- sizes ---- */

static int
unique_stripes(void)
{
	int			n = 64;

	while (n < 4 * MaxBackends)
		n *= 2;
	return n;
}

static Size
area_reserve(Size size)
{
	Size		reserve = size / 32;

	return Min(Max(reserve, (Size) 256 * 1024), (Size) 64 * 1024 * 1024);
}

/* ---- hooks ---- */

/* Offsets of the parts of our memory. */
typedef struct ArtLayout
{
	Size		interlock;
	Size		rings;
	Size		area;
	Size		all;
} ArtLayout;

/* Put one part behind the other; rings: there are some. */
static void
lay_out(ArtLayout *l, bool rings)
{
	l->interlock = TYPEALIGN(AX_PAGE, sizeof(ArtShared));
	l->rings = TYPEALIGN(AX_PAGE, add_size(l->interlock,
										   art_interlock_shmem_size(art_process_slots())));
	l->area = l->rings;
	if (rings)
		l->area = add_size(l->area, mul_size(art_process_slots(), sizeof(ArtRing)));
	l->all = add_size(l->area, art_area_bytes());
}

/*
 * Does our memory outlive a crash?  Where processes do not inherit it, it cannot.
 */
static bool
memory_survives(void)
{
#ifdef EXEC_BACKEND
	return false;
#else
	return art_survive_crash && IsPostmasterEnvironment;
#endif
}

/*
 * Hook of the postmaster: ask for the area, the control block, and the locks.
 */
static void
art_shmem_request(void)
{
	ArtLayout	l;

	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	lay_out(&l, false);
	if (!memory_survives())
		RequestAddinShmemSpace(add_size(l.all, AX_PAGE));
	RequestNamedLWLockTranche("artidx directory", ART_NPARTITIONS);
	RequestNamedLWLockTranche("artidx unique", unique_stripes());
	RequestNamedLWLockTranche("artidx chunks", 1);
	RequestNamedLWLockTranche("artidx judge", 1);
}

/*
 * Everything is zero: make it what it is at first.
 */
static void
make_area(char *area)
{
	pg_atomic_init_u32(&art_shared->unjudged, 0);
	pg_atomic_init_u64(&art_shared->build_number, 0);
	pg_atomic_init_u32(&art_shared->launcher, 0);
	pg_atomic_init_u32(&art_shared->updater, 0);
	pg_atomic_init_u32(&art_shared->no_worker, 0);
	pg_atomic_init_u32(&art_shared->busy, 0);
	pg_atomic_init_u32(&art_shared->build_kb, 0);
	pg_atomic_init_u32(&art_shared->requests, 0);
	pg_atomic_init_u32(&art_shared->entries_changed, 0);
	pg_atomic_init_u32(&art_shared->unsettled, 0);
	pg_atomic_init_u32(&art_shared->settled, 0);
	pg_atomic_init_u64(&art_shared->sealing_until, 0);
	pg_atomic_init_u32(&art_shared->ssi_held, 0);
	pg_atomic_init_u32(&art_shared->ssi_taken, 0);
	pg_atomic_init_u32(&art_shared->load_state, ART_LOAD_NOTHING);
	pg_atomic_init_u64(&art_shared->load_asked, 0);
	pg_atomic_init_u64(&art_shared->checked_sound, 0);
	pg_atomic_init_u64(&art_shared->checked_different, 0);
	art_followers_clear();
	art_shared->nslots = art_process_slots();
	art_shared->area = ax_area_init(area, art_area_bytes(), art_process_slots(),
									area_reserve(art_area_bytes()));
}

/*
 * The memory was kept, and all processes are gone.  Forget what they were doing: what
 * stands in arrays here.  The rest is for the judge.
 */
static void
keep_shared(void)
{
	memset(art_shared->workers, 0, sizeof(art_shared->workers));
	memset(art_shared->bars, 0, sizeof(art_shared->bars));
	memset(art_shared->asks, 0, sizeof(art_shared->asks));
	art_followers_clear();
	art_shared->new_database = false;
	art_shared->kept = false;
	pg_atomic_write_u32(&art_shared->launcher, 0);
	pg_atomic_write_u32(&art_shared->updater, 0);
	pg_atomic_write_u32(&art_shared->no_worker, 0);
	pg_atomic_write_u32(&art_shared->busy, 0);
	pg_atomic_write_u32(&art_shared->settled, 0);
	pg_atomic_write_u64(&art_shared->sealing_until, 0);
	pg_atomic_write_u32(&art_shared->ssi_held, 0);
	pg_atomic_write_u32(&art_shared->ssi_taken, 0);
	pg_atomic_write_u32(&art_shared->load_state, ART_LOAD_NOTHING);
	pg_atomic_write_u64(&art_shared->load_asked, 0);
	memset(art_shared->prepared, 0, sizeof(art_shared->prepared));
	art_shared->nameless = InvalidOid;
	art_shared->prepared_lost = false;	/* the judge forgets every entry in doubt */
	ax_area_survive(art_shared->area);
	pg_atomic_write_u32(&art_shared->unjudged, 1);
}

/*
 * Is the memory's head what we made?  A process that crashed may have written over it.
 */
static bool
head_intact(const char *base, const ArtLayout *l)
{
	const ArtShared *shared = (const ArtShared *) base;

	return shared->nslots == art_process_slots() &&
		(const char *) shared->area == base + l->area &&
		ax_area_intact((const ax_area *) (base + l->area), art_area_bytes(),
					   art_process_slots());
}

/* Is there no index to give up? */
static bool
directory_is_empty(const char *base)
{
	const ArtShared *shared = (const ArtShared *) base;

	for (int b = 0; b < ART_NBUCKETS; b++)
		if (shared->buckets[b] != NULL)
			return false;
	return true;
}

/*
 * Hook: make our memory, or find it: where processes do not inherit it (EXEC_BACKEND), and
 * in the cycle after a crash.
 *
 * Locks: takes AddinShmemInitLock, exclusive.
 */
static void
art_shmem_startup(void)
{
	static char *mapping = NULL;
	ArtLayout	l;
	char	   *base;
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

	lay_out(&l, memory_survives());
	if (!memory_survives())
	{
		base = ShmemInitStruct("artidx", add_size(l.all, AX_PAGE), &found);
		base = (char *) TYPEALIGN(AX_PAGE, base);
		art_huge_look(base);
	}
	else if (mapping == NULL)
	{
		base = mapping = art_keep_map(l.all);
		found = false;
	}
	else
	{
		const char *refusal = art_keep_refusal(art_process_slots());

		base = mapping;
		if (refusal == NULL && !head_intact(base, &l))
			refusal = "their memory is damaged";
		found = refusal == NULL;
		if (!found)
		{
			/* a replica has none */
			ereport(directory_is_empty(base) ? DEBUG1 : LOG,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("art indexes do not survive the crash: %s", refusal),
					 errdetail("They are built again from their tables.")));
			art_keep_wipe(base,
						  l.area + ax_area_touched((ax_area *) (base + l.area), art_area_bytes(),
												   art_process_slots()),
						  l.all);
		}
	}

	art_shared = (ArtShared *) base;
	if (memory_survives())
		art_rings = (ArtRing *) (base + l.rings);
	art_interlock_shmem_init(base + l.interlock, art_process_slots(), !found);
	if (!found)
	{
		if (!memory_survives())
			memset(art_shared, 0, sizeof(ArtShared));
		make_area(base + l.area);
		art_groups_startup();
	}
	else if (memory_survives())
	{
		keep_shared();
		art_groups_startup();
	}

	art_dir_locks = GetNamedLWLockTranche("artidx directory");
	art_unique_locks = GetNamedLWLockTranche("artidx unique");
	art_unique_mask = (uint32) unique_stripes() - 1;
	art_chunk_lock = &GetNamedLWLockTranche("artidx chunks")[0].lock;
	art_judge_lock = &GetNamedLWLockTranche("artidx judge")[0].lock;

	LWLockRelease(AddinShmemInitLock);
}

/*
 * The setting and the hooks; from _PG_init, preloading.
 */
void
art_shmem_init(void)
{
	DefineCustomIntVariable("artidx.memory",
							"Sets the shared memory in which art indexes live.",
							NULL,
							&art_memory_mb,
							1024, 16, 16 * 1024 * 1024,
							PGC_POSTMASTER,
							GUC_UNIT_MB,
							NULL, NULL, NULL);
	art_keep_init();
	art_groups_init();
	art_at_attach(art_elision_attached);
	art_before_detach(art_hazards_exit);
	art_before_detach(art_drop_temp);

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = art_shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = art_shmem_startup;
}
