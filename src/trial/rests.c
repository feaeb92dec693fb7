/*
 * rests.c
 *	  A trial rests after every tenth of a millisecond that it has worked, and its clock.
 *
 * Others share the processors with it.  A scheduler lets a process go on for a millisecond
 * or more, and a statement that wants the processor waits for as long.  So a short statement of
 * others would take twice its time.  Some of the trial's work is core's own (the second scan of
 * CREATE INDEX CONCURRENTLY, the planner), and no code of ours could rest in it.
 *
 * Therefore a timer interrupts the process, and the signal's handler sleeps.  It does not sleep
 * where the process holds an LWLock, has held interrupts off for another reason, or is in a
 * critical section, as each call into a structure is: core counts these.  A spinlock is not
 * counted: a process that waits for one meanwhile waits as for a holder that was preempted.
 *
 * In a rest others use the processor's caches.  So a piece that is measured has none: the handler
 * lets processes go first that wait for this processor just then, and the rest comes afterwards.
 *
 * When the process wakes, it leaves the processor to the process that has it.  The system calls that a batch.
 *
 * src/trial/README.md: A trial
 */
#include "postgres.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "miscadmin.h"

#include "trial/trial.h"

#define WORK_NS		100000		/* then the timer interrupts */
#define REST		9			/* times the work */
#define LONG_NS		20000000	/* of rest at a time */
#define IDLE_NS		2000000		/* the next look at a process that waits, each other one twice as late, */
#define LONG_IDLE_NS	64000000	/* but not later */

static timer_t timer;
static int	timer_signal = 0;	/* 0: there is no timer */
static volatile sig_atomic_t resting = false;
static volatile sig_atomic_t measuring = false;
static int64 worked_ns;			/* at the last interrupt */
static int64 owed_ns;			/* of rest */
static int64 woken_ns;			/* the clock after the last interrupt */
static long slept;				/* times that the process has, by then */
static int64 idle_ns;			/* 0: it worked, up to the last interrupt */
static bool batch = false;		/* the system was told that the process is one */

static int64
now_of(clockid_t clock)
{
	struct timespec now;

	(void) clock_gettime(clock, &now);
	return now.tv_sec * INT64CONST(1000000000) + now.tv_nsec;
}

static int64
now_worked(void)
{
	return now_of(CLOCK_PROCESS_CPUTIME_ID);
}

static long
times_slept(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nvcsw : 0;
}

static void
wind_up(int64 ns)
{
	const struct itimerspec once = {.it_value.tv_nsec = ns};

	(void) timer_settime(timer, 0, &once, NULL);
}

/*
 * The handler.  All that it calls may be called in one.
 *
 * A signal ends the naps in which core waits for a spinlock.  Core counts them, and the server crashes after
 * a thousand ("stuck spinlock").  So a process that mostly waits is interrupted less and less.
 */
static void
rest(int signo)
{
	const int	save = errno;
	const int64 worked = now_worked() - worked_ns;
	const int64 elapsed = now_of(CLOCK_MONOTONIC) - woken_ns;

	if (!resting)
		return;
	worked_ns += worked;
	owed_ns += worked * REST;
	if (times_slept() == slept || worked > elapsed * 3 / 4)
		idle_ns = 0;
	else
		idle_ns = worked < elapsed / (REST + 1) ? Min(Max(idle_ns * 2, IDLE_NS), LONG_IDLE_NS) : IDLE_NS;
	if (InterruptHoldoffCount == 0 && CritSectionCount == 0)
	{
		const struct timespec nap = {.tv_nsec = measuring ? 0 : Min(owed_ns, LONG_NS)};

		if (measuring)
			(void) sched_yield();
		else
			(void) nanosleep(&nap, NULL);
		owed_ns -= nap.tv_nsec;
	}
	woken_ns = now_of(CLOCK_MONOTONIC);
	slept = times_slept();
	wind_up(idle_ns == 0 ? WORK_NS : idle_ns);
	errno = save;
}

/*
 * A signal that nobody else in this process handles.  0: there is none.
 */
static int
free_signal(void)
{
	for (int signo = SIGRTMAX; signo >= SIGRTMIN; signo--)
	{
		struct sigaction old;

		if (sigaction(signo, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			return signo;
	}
	return 0;
}

double
art_trial_measure(bool yes)
{
	measuring = yes;
	return now_worked();
}

void
art_trial_rests(bool yes)
{
	struct sigaction act = {0};
	struct sigevent event = {0};
	const struct sched_param param = {0};

	if (yes && sched_getscheduler(0) == SCHED_OTHER && sched_setscheduler(0, SCHED_BATCH, &param) == 0)
		batch = true;
	else if (!yes && batch)
		batch = sched_setscheduler(0, SCHED_OTHER, &param) != 0;
	resting = measuring = false;
	if (timer_signal != 0)
	{
		/* a signal that is still under way finds that the trial has ended */
		(void) timer_delete(timer);
		act.sa_handler = SIG_IGN;
		(void) sigaction(timer_signal, &act, NULL);
		act.sa_handler = SIG_DFL;
		(void) sigaction(timer_signal, &act, NULL);
		timer_signal = 0;
	}
	if (!yes)
		return;
	timer_signal = free_signal();
	act.sa_handler = rest;
	act.sa_flags = SA_RESTART;
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = timer_signal;
	if (timer_signal != 0 &&
		(sigaction(timer_signal, &act, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0))
	{
		act.sa_handler = SIG_DFL;
		(void) sigaction(timer_signal, &act, NULL);
		timer_signal = 0;
	}
	if (timer_signal == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not create a timer for the rests of a trial: %m")));
	worked_ns = now_worked();
	owed_ns = idle_ns = 0;
	woken_ns = now_of(CLOCK_MONOTONIC);
	slept = times_slept();
	resting = true;
	wind_up(WORK_NS);
}
