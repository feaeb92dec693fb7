/*
 * shared_memory.c
 *	  The shared memory area, and this process's attachment to it.
 *
 * The area, and all that we share beside it but locks, is one piece of memory at one
 * address in every process.  It is a mapping of the postmaster's, which the cycle after
 * a crash finds again (crash_memory.c).  With artidx.survive_crash off it is part of
 * PostgreSQL's main shared memory, which that cycle makes anew, zero-filled.  It is never
 * touched before it is needed.
 *
 * src/core/base/README.md: Memory and epochs
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/memutils.h"

#include "area/shared_state.h"

int			art_memory_mb = 1024;
int			art_build_workers = 2;		/* the setting, of the launcher */
ArtLoadStop art_load_stop = ART_STOP_NEVER;

LWLockPadded *art_dir_locks = NULL;
LWLockPadded *art_unique_locks = NULL;
uint32		art_unique_mask = 0;
LWLock	   *art_chunk_lock = NULL;

static ax_ctx my_ctx;
static int	my_pid = 0;			/* process that my_ctx belongs to, 0: none */

#define MAX_BEFORE_DETACH	3

static uint32 wait_event_latch = 0;

/* ---- sizes ---- */

int
art_process_slots(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

/*
 * With very many connections the headers alone may exceed a small
 * artidx.memory; the area is then as large as they need.
 */
Size
art_area_bytes(void)
{
	Size		size = (Size) art_memory_mb * 1024 * 1024;
	Size		least = ax_area_min_size(art_process_slots());

	return TYPEALIGN(AX_PAGE, Max(size, least));
}

/* ---- preloaded or not ---- */

/*
 * Is the area there?
 */
bool
art_preloaded(void)
{
	return art_shared != NULL;
}

/*
 * ERROR with the setting to change when it is not.
 */
void
art_require_preload(Relation index)
{
	if (art_shared != NULL)
		return;
	if (index)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("art index \"%s\" cannot be used because artidx is not preloaded",
						RelationGetRelationName(index)),
				 errhint("Add \"artidx\" to the configuration parameter \"shared_preload_libraries\" and restart the server.")));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("artidx is not preloaded"),
			 errhint("Add \"artidx\" to the configuration parameter \"shared_preload_libraries\" and restart the server.")));
}

/* ---- the port ---- */

static void
port_wait_begin(void)
{
	pgstat_report_wait_start(wait_event_latch);
}

static void
port_wait_end(void)
{
	pgstat_report_wait_end();
}

AX_NORETURN static void
server_panic(const char *what, const char *file, int line)
{
	/* also outside a critical section */
	START_CRIT_SECTION();
	elog(PANIC, "artidx: cannot happen: %s, at %s:%d", what, file, line);
	abort();
}

bool
art_load_told(void)
{
	return (art_load_stop >= ART_STOP_DIE && ProcDiePending) ||
		(art_load_stop >= ART_STOP_CANCEL && ART_CANCEL_PENDING());
}

/* SIGQUIT waits for the end of the call (crash_memory.c), and interrupts do. */
static bool
port_hurry(void)
{
	return art_quit_pending || art_load_told();
}

/*
 * The search layer of some index is behind from now on, and no updater is awake.  Where there is
 * none the launcher is to start it.  Waking the wrong process is harmless.
 */
static void
port_wake_updater(void)
{
	uint32		w = pg_atomic_read_u32(&art_shared->updater);

	if (w == 0)
		w = pg_atomic_read_u32(&art_shared->launcher);
	if (w != 0)
		SetLatch(&GetPGProcByNumber((int) w - 1)->procLatch);
}

static ax_port port;

/* ---- attachment ---- */

static void (*at_attach) (ax_ctx *cx) = NULL;
static void (*before_detach[MAX_BEFORE_DETACH]) (void);
static int	nbefore_detach = 0;

void
art_at_attach(void (*fn) (ax_ctx *cx))
{
	at_attach = fn;
}

void
art_before_detach(void (*fn) (void))
{
	Assert(nbefore_detach < MAX_BEFORE_DETACH);
	before_detach[nbefore_detach++] = fn;
}

/*
 * on_shmem_exit: before ProcKill, so our slot is still ours.  A child that a
 * library forked must not run it.
 *
 * Epoch: detaches in a critical section.
 * Locks: takes partition and chunk locks, exclusive, one after the other, for
 * builds, temporary indexes and hazard slots.
 */
static void
art_detach(int code, Datum arg)
{
	if (my_pid == 0 || my_pid != MyProcPid || (int) getpid() != my_pid)
		return;

	/*
	 * An exit in the middle of a core call would leave a latch that nobody
	 * ever releases: crash instead, so that the postmaster starts afresh.
	 */
	if (ax_latches_held(&my_ctx) != 0)
		abort();
	art_inside_reset();
	/* for good: a FATAL in here would leave the rest undone */
	if (art_hold_sigterm)
		art_sigterm_hold();

	for (int i = nbefore_detach; i-- > 0;)
		before_detach[i] ();

	ART_CORE_BEGIN();
	ax_detach(&my_ctx);
	my_pid = 0;
	ART_CORE_END();
}

/*
 * Is this process attached?
 */
bool
art_attached(void)
{
	return my_pid != 0 && my_pid == MyProcPid;
}

/*
 * This process's context; the first call attaches it.  Its slot is its process
 * number, so a slot is never shared, and lives as long as the process.
 *
 * Epoch: the first call attaches in a critical section.  It may raise an ERROR
 * before that, so call it first before a lock is taken.
 */
ax_ctx *
art_ctx(void)
{
	uint32		event;

	if (likely(my_pid == MyProcPid && my_pid != 0))
		return &my_ctx;

	Assert(art_shared != NULL);
	if (MyProc == NULL)
		elog(ERROR, "artidx: process has no slot");

	event = ART_WAIT_EVENT(wait_event_latch, "ArtidxLatch");
	wait_event_latch = event;
	port = ax_port_default;
	port.wait_begin = port_wait_begin;
	port.wait_end = port_wait_end;
	port.hurry = port_hurry;
	port.wake_updater = port_wake_updater;
	port.panic = server_panic;
	if (!art_may_discard())
		port.discard = NULL;

	/* first, so that an attached process is always detached */
	on_shmem_exit(art_detach, (Datum) 0);
	art_keep_attach();

	ART_CORE_BEGIN();
	ax_attach(&my_ctx, art_shared->area, ART_MY_PROCNO(), MyProcPid, &port);
	my_pid = MyProcPid;
	at_attach(&my_ctx);
	ART_CORE_END();

	return &my_ctx;
}

void
art_ctx_xact_end(void)
{
	if (my_pid == MyProcPid)
		ax_begin_anew(&my_ctx);
}

/*
 * The postmaster has no PGPROC and hence no slot.  It touches the area only
 * before the first process is forked and when the last has gone, so slot 0 is
 * free. art_ctx() works until the detach.
 *
 * Epoch: attaches in a critical section.
 */
void
art_postmaster_attach(void)
{
	Assert(!IsUnderPostmaster && my_pid == 0);
	port = ax_port_default;
	port.panic = server_panic;
	if (!art_may_discard())
		port.discard = NULL;
	ART_CORE_BEGIN();
	ax_attach(&my_ctx, art_shared->area, 0, MyProcPid, &port);
	my_pid = MyProcPid;
	ART_CORE_END();
}

/*
 * Undo art_postmaster_attach(); slot 0 is free again.
 *
 * Epoch: detaches in a critical section.
 */
void
art_postmaster_detach(void)
{
	ART_CORE_BEGIN();
	ax_detach(&my_ctx);
	my_pid = 0;
	ART_CORE_END();
}

/*
 * Zeroed, page-aligned shared memory for directory entries and hazard slots;
 * never given back.  NULL when the area is full.
 *
 * Epoch: enters and leaves.
 * Locks: the chunk lock is held, exclusive.
 */
void *
art_system_alloc(size_t bytes)
{
	ax_ctx	   *cx = art_ctx();
	void	   *p;

	ART_CORE_BEGIN();
	p = ax_system_alloc(cx, bytes);
	ART_CORE_END();
	return p;
}

bool
art_in_area(const void *p, size_t bytes)
{
	const char *from = (const char *) art_shared->area;
	const char *at = p;

	return at >= from && at <= from + art_area_bytes() - bytes;
}

/*
 * Free what is retired or dropped and can be freed now: in bounded parts, with a look
 * at interrupts between them.  True: nothing is left that waits for others.
 *
 * Epoch: enters and leaves, once a part.
 */
bool
art_poll(void)
{
	ax_ctx	   *cx = art_ctx();
	ax_pending	left;

	do
	{
		CHECK_FOR_INTERRUPTS();
		ART_CORE_BEGIN();
		left = ax_poll(cx);
		ART_CORE_END();
	} while (left == AX_PENDING_MORE);
	return left == AX_PENDING_NOTHING;
}

/*
 * A core call said AX_BUSY: nothing is held, so look at interrupts.
 */
void
art_busy(void)
{
	CHECK_FOR_INTERRUPTS();
}
