/*
 * crash_memory.c
 *	  The memory that outlives a crash cycle, and when it may.
 *
 * When a process dies badly the postmaster ends all others, makes PostgreSQL's shared
 * memory anew, and lets the server recover.  The postmaster itself lives on, and with it
 * a mapping that it made once, and that no exit callback of PostgreSQL takes away.  The
 * control block, the interlock, the rings and the area lie there.  Nothing in them points
 * into PostgreSQL's segment.
 *
 * Such memory is worth keeping only if nobody died in the middle of a change.  So each
 * process says in its slot, before it changes anything here, that it is inside, and
 * afterwards that it is out.  It is inside in every core call, also one that reads, and
 * while it holds a partition lock or the chunk lock exclusively.  A single store
 * elsewhere (a counter, a word) needs no mark.  A process that dies inside leaves its
 * mark, and the cycle gives up everything.
 *
 * A process that is told to die (SIGQUIT) inside goes on to the end of the section.  That
 * spares work, and nothing else depends on it: PostgreSQL sends SIGABRT if it is told to,
 * and SIGKILL after five seconds.
 *
 * The hook that PostgreSQL calls when it has made its segment anew runs in the
 * postmaster, when all children are gone.  An error there would end the server.  So it
 * looks at arrays of known length only, and at the area's header.  It follows no pointer
 * that differs from what the start had put there.  The rest is for the first process
 * after recovery (judge.c).
 *
 * src/survive/README.md: Memory that outlives a crash
 */
#include "postgres.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/parallel.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "replication/logicalworker.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "area/crash_memory.h"

bool		art_survive_crash = true;	/* the setting */
int			art_crash_pause = 300;

ArtShared  *art_shared = NULL;
ArtRing    *art_rings = NULL;

/* ---- SIGTERM in background workers ---- */

bool		art_hold_sigterm = false;
static sigset_t saved_sigmask;
static int	sigterm_depth = 0;

/*
 * A background worker's default handler for SIGTERM raises FATAL on the spot,
 * also in a critical section.  Which handler is installed can be seen only up
 * to 16; parallel and logical replication workers are known to use die().
 */
static bool
sigterm_dies_at_once(void)
{
	if (MyBgworkerEntry == NULL || IsParallelWorker() || IsLogicalWorker())
		return false;
#if ART_SIGNAL_HANDLER_VISIBLE
	{
		struct sigaction act;

		if (sigaction(SIGTERM, NULL, &act) == 0 && act.sa_handler == die)
			return false;
	}
#endif
	return true;
}

/*
 * Keep SIGTERM pending until art_sigterm_resume.
 */
void
art_sigterm_hold(void)
{
	sigset_t	set;

	if (sigterm_depth++ > 0)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &saved_sigmask);
}

/*
 * The other end; a pending SIGTERM is delivered here.
 */
void
art_sigterm_resume(void)
{
	if (sigterm_depth > 0 && --sigterm_depth == 0)
		sigprocmask(SIG_SETMASK, &saved_sigmask, NULL);
}

/* An error has left the sections.  An exit goes on with SIGTERM held. */
static void
sigterm_reset(void)
{
	if (sigterm_depth == 0 || proc_exit_inprogress)
		return;
	sigterm_depth = 0;
	sigprocmask(SIG_SETMASK, &saved_sigmask, NULL);
}

/* ---- inside, and out ---- */

static uint64 nobody = 0;		/* of a process without a slot, or without rings */
static int	my_pid = 0;			/* whose word art_inside is, and whose handler is set */
volatile uint64 *art_inside = &nobody;
volatile sig_atomic_t art_quit_pending = false;

static struct sigaction prev_quit;

/* Do as SIGQUIT would have done. */
static void
quit_at_signal(int signo, siginfo_t *info, void *context)
{
	if (prev_quit.sa_flags & SA_SIGINFO)
		prev_quit.sa_sigaction(signo, info, context);
	else if (prev_quit.sa_handler == SIG_DFL)
	{
		sigset_t	set;

		(void) sigaction(signo, &prev_quit, NULL);
		(void) raise(signo);
		sigemptyset(&set);
		sigaddset(&set, signo);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	else if (prev_quit.sa_handler != SIG_IGN)
		prev_quit.sa_handler(signo);
}

/*
 * SIGQUIT.  A process that waits for a lock inside does not go on to the end.  The lock
 * may be that of the process for which all this happens.  The mark stays then.
 *
 * Without MyProc the slot, and so the word, is another process's.  A child that a library
 * forked has the handler, too: it is never inside.
 */
static void
quit_handler(int signo, siginfo_t *info, void *context)
{
	if (MyProc != NULL && !MyProc->lwWaiting && my_pid == (int) getpid() &&
		*art_inside != 0)
		art_quit_pending = true;
	else
		quit_at_signal(signo, info, context);
}

void
art_quit_now(void)
{
	/* a child that a library forked has nothing of ours to end */
	if (my_pid != (int) getpid())
		return;
	art_quit_pending = false;
	(void) raise(SIGQUIT);
}

/*
 * PostgreSQL has set its own handler of SIGQUIT by now: that was done before
 * this process had a slot.
 */
void
art_keep_attach(void)
{
	struct sigaction act;

	if (my_pid == MyProcPid || MyProc == NULL)
		return;
	my_pid = MyProcPid;
	art_hold_sigterm = sigterm_dies_at_once();
	if (art_rings == NULL)
		return;
	art_quit_pending = false;
	art_inside = (volatile uint64 *) &art_rings[ART_MY_PROCNO()].word;

	if (sigaction(SIGQUIT, NULL, &prev_quit) != 0)
		return;
	act = prev_quit;
	act.sa_sigaction = quit_handler;
	act.sa_flags |= SA_SIGINFO;
	(void) sigaction(SIGQUIT, &act, NULL);
}

void
art_inside_reset(void)
{
	if (my_pid != MyProcPid || CritSectionCount > 0)
		return;
	*art_inside = 0;
	if (unlikely(art_quit_pending))
		art_quit_now();
	if (unlikely(art_hold_sigterm))
		sigterm_reset();
}

/* ---- locks ---- */

static void (*judge) (void) = NULL;

void
art_judge_by(void (*fn) (void))
{
	judge = fn;
}

/*
 * Every process comes to the directory through this function.  So one that has
 * only attached need not judge.
 *
 * Locks: takes the lock, and leaves it held.
 */
void
art_lock(LWLock *lock, LWLockMode mode)
{
	art_keep_attach();
	if (unlikely(art_unjudged()))
		judge();
	if (mode == LW_EXCLUSIVE && unlikely(art_hold_sigterm))
		art_sigterm_hold();
	LWLockAcquire(lock, mode);
	Assert(mode != LW_EXCLUSIVE || art_rings == NULL || !IsUnderPostmaster || art_inside != &nobody);
	if (mode == LW_EXCLUSIVE)
		ART_INSIDE_BEGIN();
}

/*
 * Locks: gives the lock back.
 */
void
art_unlock(LWLock *lock)
{
	bool		changed = LWLockHeldByMeInMode(lock, LW_EXCLUSIVE);

	LWLockRelease(lock);
	if (!changed)
		return;
	ART_INSIDE_END();
	if (unlikely(art_hold_sigterm))
		art_sigterm_resume();
}

/* ---- the crash cycle ---- */

static bool
file_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 || errno != ENOENT;
}

/*
 * Runs in the postmaster, which no error may leave.
 *
 * A recovery that ends elsewhere than at the end of the WAL would lose what was flushed:
 * hence the signal files and the backup's label.
 */
const char *
art_keep_refusal(int nslots)
{
	static TimestampTz last = 0;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz before = last;

	last = now;
	if (pg_atomic_read_u32(&art_shared->unjudged) != 0)
		return "what an earlier crash had left was not looked at yet";
	for (int i = 0; i < nslots; i++)
		if (art_rings[i].word != 0)
			return "a process died while it used them";
	if (before != 0 && now < before + art_crash_pause * USECS_PER_SEC)
		return "the server crashed a short time before";
	if (file_exists(RECOVERY_SIGNAL_FILE) || file_exists(STANDBY_SIGNAL_FILE))
		return "the server starts as a standby, or with a recovery from an archive";
	if (file_exists(BACKUP_LABEL_FILE))
		return "the server starts from a backup";
	return NULL;
}

/* ---- settings ---- */

/*
 * From art_shmem_init.
 */
void
art_keep_init(void)
{
	DefineCustomBoolVariable("artidx.survive_crash",
							 "Keeps art indexes in memory when the server recovers from a crash.",
							 "Their memory is then no part of PostgreSQL's own.",
							 &art_survive_crash,
							 true,
							 PGC_POSTMASTER,
							 0,
							 NULL, NULL, NULL);
}
