/*
 * art_startup.c
 *	  What the postmaster does before there is shared memory: the setting, how much
 *	  is asked for, and how it is divided.
 *
 * src/README.md: Memory and epochs
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#include "area/art_shared.h"

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

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

/*
 * Hook of the postmaster: ask for the area, the control block, and the locks.
 */
static void
art_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(add_size(art_area_bytes(), AX_PAGE));
	RequestAddinShmemSpace(sizeof(ArtShared));
	RequestAddinShmemSpace(art_interlock_shmem_size(art_process_slots()));
	RequestNamedLWLockTranche("artidx directory", ART_NPARTITIONS);
	RequestNamedLWLockTranche("artidx unique", unique_stripes());
	RequestNamedLWLockTranche("artidx chunks", 1);
}

/*
 * Hook: make the shared structures, or (EXEC_BACKEND) find them.
 *
 * Locks: takes AddinShmemInitLock, exclusive.
 */
static void
art_shmem_startup(void)
{
	bool		found;
	char	   *raw;
	Size		size = art_area_bytes();

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

	raw = ShmemInitStruct("artidx area", add_size(size, AX_PAGE), &found);
	raw = (char *) TYPEALIGN(AX_PAGE, raw);
	art_shared = ShmemInitStruct("artidx control", sizeof(ArtShared), &found);
	if (!found)
	{
		memset(art_shared, 0, sizeof(ArtShared));
		pg_atomic_init_u64(&art_shared->build_number, 0);
		pg_atomic_init_u32(&art_shared->launcher, 0);
		pg_atomic_init_u32(&art_shared->no_worker, 0);
		pg_atomic_init_u32(&art_shared->requests, 0);
		pg_atomic_init_u32(&art_shared->entries_changed, 0);
		pg_atomic_init_u32(&art_shared->unsettled, 0);
		pg_atomic_init_u32(&art_shared->settled, 0);
		pg_atomic_init_u64(&art_shared->sealing_until, 0);
		pg_atomic_init_u32(&art_shared->ssi_held, 0);
		pg_atomic_init_u32(&art_shared->ssi_taken, 0);
		pg_atomic_init_u32(&art_shared->load_state, ART_LOAD_NOTHING);
		pg_atomic_init_u64(&art_shared->load_asked, 0);
		art_shared->nslots = art_process_slots();
		art_shared->area = ax_area_init(raw, size, art_process_slots(),
										area_reserve(size));
		art_groups_startup();
	}
	art_interlock_shmem_init(art_process_slots());

	art_dir_locks = GetNamedLWLockTranche("artidx directory");
	art_unique_locks = GetNamedLWLockTranche("artidx unique");
	art_unique_mask = (uint32) unique_stripes() - 1;
	art_chunk_lock = &GetNamedLWLockTranche("artidx chunks")->lock;

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
	art_groups_init();
	art_at_attach(art_elision_attached);
	art_before_detach(art_hazards_exit);
	art_before_detach(art_drop_temp);

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = art_shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = art_shmem_startup;
}
