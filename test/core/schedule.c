/*
 * schedule.c
 *	  See schedule.h.
 *
 * A thread that cannot go on (a pause, a yield, a sleep) gives way.  Under PCT it becomes
 * the last in rank, for else the first one would wait for ever for one that never runs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "schedule.h"

#ifdef AX_SCHED

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/base/ax_area.h"
#include "schedule_map.h"
#include "tap.h"

#define STACK_BYTES ((size_t) 512 << 10)
#define STEP_NS		20
#define MOST_STEPS	2000000		/* of one schedule: more is a hang */
#define PATIENCE	200000		/* then one that stopped is waited for, and goes on */
#define TRACE		4096

typedef enum fiber_state
{
	READY, ASLEEP, STOPPED, ENDED
} fiber_state;

typedef struct fiber
{
	jmp_buf		at;
	ucontext_t	start;
	char	   *stack;
	bool		alive;			/* it waits for its next schedule, or is in this one */
	fiber_state state;
	int64_t		rank;			/* the greatest runs */
	uint32_t   *word;			/* ASLEEP: on this */
	uint64_t	until;			/* and until then */
	_Atomic uint64_t *buffered; /* a store that others do not see yet; NULL: none */
	uint64_t	value;
} fiber;

typedef struct change
{
	uint64_t	step;
	int			from;
	int			to;
	const char *func;			/* where the one that was running is */
	int			line;
} change;

int64_t		sched_left = INT64_MAX;
uint8_t		sched_free[SCHED_BYTES >> 6];
uintptr_t	sched_lazy;
size_t		sched_lazy_bytes;
int			sched_buffered;
void		(*sched_on_failure) (void);
bool		sched_verbose;
bool		sched_alone;

static fiber fibers[SCHED_THREADS];
static jmp_buf home;			/* sched_run()'s caller */
static const sched_plan *plan;
static int	running = -1;
static uint64_t rng;
static uint64_t asked;			/* steps when the scheduler was last asked, */
static int64_t gap;				/* and what sched_left was then */
static uint64_t began;			/* steps at the schedule's begin */
static uint64_t clock_ns;		/* what the clock is ahead of the steps */
static int64_t lowest;			/* rank */
static uint64_t at_change[9];	/* steps or pause points, rising */
static int	next_change;
static uint64_t passed;			/* pause points */
static int	stopped;			/* the thread that did; -1: none */
static uint64_t stopped_at;
static uint64_t switches;
static uint64_t began_switches; /* at the schedule's begin */
static change trace[TRACE];

/* ---- steps, time ---- */

uint64_t
sched_steps(void)
{
	return asked + (uint64_t) (gap - sched_left);
}

uint64_t
sched_switches(void)
{
	return switches;
}

int
sched_thread(void)
{
	return running;
}

static uint64_t
now_ns(void)
{
	if (running < 0)
		clock_ns += 100;		/* no steps are counted */
	return 1000000 + clock_ns + sched_steps() * STEP_NS;
}

/* The steps so far are counted; ask again after so many. */
static void
ask_in(int64_t n)
{
	asked = sched_steps();
	gap = sched_left = n;
}

static uint64_t
draw(uint64_t n)
{
	return tap_rand(&rng) % n;
}

/* Steps until the plan wants something. */
static int64_t
next_gap(void)
{
	uint64_t	now = sched_steps() - began,
				n = 20000;		/* look who has slept long enough */

	if (plan->kind == SCHED_RANDOM)
	{
		uint64_t	m = plan->mean < 2 ? 0 : draw(2 * plan->mean - 1);

		n = m < n ? m : n;
	}
	else if (plan->kind == SCHED_PCT && next_change < plan->changes)
	{
		uint64_t	at = at_change[next_change];

		n = at <= now ? 0 : at - now - 1 < n ? at - now - 1 : n;
	}
	if (plan->stop_at > now && plan->stop_at - now - 1 < n)
		n = plan->stop_at - now - 1;
	return (int64_t) n;
}

/* ---- buffers of stores ---- */

static void
flush(fiber *f)
{
	if (!f->buffered)
		return;
	*(volatile uint64_t *) (void *) f->buffered = f->value;
	f->buffered = NULL;
	sched_buffered--;
}

void
sched_flush(void)
{
	if (running >= 0)
		flush(&fibers[running]);
}

void
sched_store(_Atomic uint64_t *at, uint64_t v)
{
	if (running < 0)
	{
		*(volatile uint64_t *) (void *) at = v;
		return;
	}
	fibers[running].buffered = at;
	fibers[running].value = v;
	sched_buffered++;
}

bool
sched_stored(const volatile void *at, uint64_t *v)
{
	if (running < 0 || fibers[running].buffered != at)
		return false;
	*v = fibers[running].value;
	return true;
}

long
sched_syscall(long number,...)
{
	if (running >= 0 && --sched_left < 0)
		sched_decide(__func__, __LINE__);
	for (int i = 0; i < SCHED_THREADS; i++)
		flush(&fibers[i]);
	return 0;
}

/* ---- who goes on ---- */

/* The caller's turn is over: the other one's jump comes back here when it has one again. */
__attribute__((noinline)) static void
jump(jmp_buf *from, int to)
{
	if (_setjmp(*from) == 0)
	{
		running = to;
		if (to < 0)
			_longjmp(home, 1);
		if (!fibers[to].alive)
		{
			fibers[to].alive = true;
			setcontext(&fibers[to].start);
		}
		_longjmp(fibers[to].at, 1);
	}
}

static void
go_to(int to, const char *func, int line)
{
	change	   *c = &trace[switches++ % TRACE];
	int			from = running;

	*c = (change) {sched_steps(), from, to, func, line};
	if (sched_verbose)
		printf("# step %llu: %d in %s:%d, then %d\n", (unsigned long long) (c->step - began), from,
			   func, line, to);
	/* a processor does not keep a store for ever */
	for (int i = 0; sched_buffered > 0 && i < plan->threads; i++)
		if (draw(4) == 0)
			flush(&fibers[i]);
	jump(&fibers[from].at, to);
}

/*
 * Those who sleep wake when their time has come; how many can go on, but for the caller?
 * Memory is given back however long that takes, so others may wait for one that stopped.
 */
static int
wake(void)
{
	int			n = 0;

	if (stopped >= 0 && fibers[stopped].state == STOPPED && sched_steps() - began > stopped_at + PATIENCE)
		fibers[stopped].state = READY;
	for (int i = 0; i < plan->threads; i++)
	{
		if (fibers[i].state == ASLEEP && fibers[i].until <= now_ns())
			fibers[i].state = READY;
		n += i != running && fibers[i].state == READY;
	}
	return n;
}

/* Another thread that can go on; -1: there is none. */
static int
other(void)
{
	int			n = wake(),
				best = -1;

	if (n == 0)
		return -1;
	if (plan->kind == SCHED_RANDOM)
	{
		n = (int) draw((uint64_t) n);
		for (int i = 0; i < plan->threads; i++)
			if (i != running && fibers[i].state == READY && n-- == 0)
				return i;
	}
	for (int i = 0; i < plan->threads; i++)
		if (i != running && fibers[i].state == READY &&
			(best < 0 || fibers[i].rank > fibers[best].rank))
			best = i;
	return best;
}

/* The thread has to wait: others first.  If there is nobody, time passes. */
static void
give_way(const char *func, int line)
{
	fiber	   *f = &fibers[running];
	int			to;

	if (sched_steps() - began > MOST_STEPS)
		sched_fail(began, UINT64_MAX, "no end after %d steps", MOST_STEPS);
	f->rank = lowest--;
	to = other();
	while (to < 0)
	{
		uint64_t	soonest = UINT64_MAX;

		if (f->state == READY)
		{
			clock_ns += 500;
			return;
		}
		for (int i = 0; i < plan->threads; i++)
			if (fibers[i].state == ASLEEP && fibers[i].until < soonest)
				soonest = fibers[i].until;
		if (soonest == UINT64_MAX)
		{
			/* all but those that stopped have ended */
			go_to(-1, func, line);
			return;
		}
		clock_ns += soonest > now_ns() ? soonest - now_ns() : 0;
		to = other();
		if (f->state == READY && (to < 0 || draw(2)))
			return;
	}
	ask_in(next_gap());
	go_to(to, func, line);
}

/* One stops, for ever or until all others have ended. */
static void
stop_here(const char *func, int line)
{
	fibers[running].state = STOPPED;
	flush(&fibers[running]);
	stopped = running;
	stopped_at = sched_steps() - began;
	give_way(func, line);
}

void
sched_decide(const char *func, int line)
{
	int			to = -1;
	uint64_t	now;

	sched_left++;				/* the step is not done yet */
	if (running < 0)
	{
		ask_in(INT64_MAX);
		return;
	}
	now = sched_steps() - began;
	if (now > MOST_STEPS)
		sched_fail(began, UINT64_MAX, "no end after %d steps", MOST_STEPS);
	if (plan->stop_at && now + 1 >= plan->stop_at && stopped < 0)
	{
		ask_in(1);
		stop_here(func, line);
		return;
	}
	if (plan->kind == SCHED_PCT && next_change < plan->changes && now + 1 >= at_change[next_change])
	{
		next_change++;
		fibers[running].rank = lowest--;
	}
	ask_in(next_gap() + 1);
	to = other();
	if (to >= 0 && plan->kind != SCHED_RANDOM && fibers[to].rank < fibers[running].rank)
		to = -1;
	if (to >= 0)
		go_to(to, func, line);
	sched_left--;				/* now it is */
}

/* A pause point. */
static void
mark(const char *name)
{
	int			to;

	if (running < 0 || plan->kind != SCHED_MARKED || next_change == plan->changes ||
		++passed < at_change[next_change])
		return;
	next_change++;
	fibers[running].rank = lowest--;
	to = other();
	if (to >= 0 && fibers[to].rank > fibers[running].rank)
		go_to(to, name, 0);
}

static void
sched_yielded(void)
{
	if (running < 0)
		clock_ns += 500;
	else
	{
		sched_left--;
		give_way("pause", 0);
	}
}

void
sched_pause(void)
{
	if (running < 0 || sched_alone)
		clock_ns += 500;
	else
		sched_yielded();
}

/* ---- the port ---- */

static void
sched_park(uint32_t *word, uint32_t expected, uint32_t timeout_us)
{
	if (running < 0)
	{
		clock_ns += (uint64_t) timeout_us * 1000;
		return;
	}
	sched_flush();
	if (*(volatile uint32_t *) word != expected)
		return;
	fibers[running].state = ASLEEP;
	fibers[running].word = word;
	fibers[running].until = now_ns() + (uint64_t) timeout_us * 1000;
	sched_left--;
	give_way("park", 0);
}

static void
sched_unpark(uint32_t *word)
{
	for (int i = 0; plan && i < plan->threads; i++)
		if (fibers[i].state == ASLEEP && fibers[i].word == word)
			fibers[i].state = READY;
}

static void
sched_discard(void *addr, size_t len)
{
}

AX_NORETURN static void
sched_panic(const char *what, const char *file, int line)
{
	sched_fail(began, UINT64_MAX, "the core panics at %s:%d: %s", file, line, what);
}

const ax_port sched_port = {
	.park = sched_park,
	.unpark_all = sched_unpark,
	.yield = sched_yielded,
	.now_ns = now_ns,
	.discard = sched_discard,
	.panic = sched_panic,
};

/* ---- what is free: the build takes this for AddressSanitizer ---- */

void
__asan_poison_memory_region(void const volatile *p, size_t n)
{
	size_t		off = (uintptr_t) p - (uintptr_t) SCHED_AREA;

	for (size_t l = off >> 6; l <= (off + n - 1) >> 6; l++)
		sched_free[l] = 1;
	memset((void *) (uintptr_t) p, 0xDB, n < 1024 ? n : 1024);
}

void
__asan_unpoison_memory_region(void const volatile *p, size_t n)
{
	size_t		off = (uintptr_t) p - (uintptr_t) SCHED_AREA;

	/* of a part of a line the rest may still be free */
	for (size_t l = (off + 63) >> 6; l < (off + n) >> 6; l++)
		sched_free[l] = 0;
}

void
__asan_handle_no_return(void)
{
}

void
sched_gone(const volatile void *at, const char *func, int line)
{
	sched_fail(began, UINT64_MAX, "%s:%d uses %p, which was given back", func, line,
			   (void *) (uintptr_t) at);
}

void
sched_area(size_t size, int nslots, size_t reserve, ax_area **area)
{
	static size_t touched;
	char	   *base = (char *) (uintptr_t) SCHED_AREA;

	if (*area)
	{
		touched = ax_area_touched(*area, size, nslots);
		memset(base, 0, touched);
		memset(sched_free, 0, (touched >> 6) + 1);
	}
	else if (mmap(base, SCHED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				  -1, 0) != base)
	{
		perror("mmap");
		exit(2);
	}
	clock_ns = 0;
	ask_in(INT64_MAX);
	asked = 0;
	*area = size <= SCHED_BYTES ? ax_area_init(base, size, nslots, reserve) : NULL;
	if (!*area)
	{
		fprintf(stderr, "ax_area_init(%zu, %d) failed\n", size, nslots);
		exit(2);
	}
	sched_lazy = (uintptr_t) (*area)->slots;
	sched_lazy_bytes = (size_t) nslots * sizeof(ax_slot);
}

/* ---- a schedule ---- */

static void
fiber_main(int i)
{
	for (;;)
	{
		int			to;

		plan->run(i);
		flush(&fibers[i]);
		fibers[i].state = ENDED;
		to = other();
		if (to >= 0)
		{
			ask_in(next_gap());
			go_to(to, "end", 0);
		}
		else
			give_way("end", 0);
	}
}

static void
prepare(int i)
{
	fiber	   *f = &fibers[i];

	if (!f->stack)
	{
		f->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (f->stack == MAP_FAILED)
		{
			perror("mmap");
			exit(2);
		}
	}
	f->state = READY;
	f->buffered = NULL;
	if (f->alive)
		return;
	getcontext(&f->start);
	f->start.uc_stack.ss_sp = f->stack;
	f->start.uc_stack.ss_size = STACK_BYTES;
	f->start.uc_link = NULL;
	makecontext(&f->start, (void (*) (void)) fiber_main, 1, i);
}

/* Until nobody can go on. */
__attribute__((noinline)) static void
run_all(int first)
{
	if (_setjmp(home) == 0)
	{
		running = first;
		if (fibers[first].alive)
			_longjmp(fibers[first].at, 1);
		fibers[first].alive = true;
		setcontext(&fibers[first].start);
	}
	running = -1;
}

static int
by_step(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a,
				y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

int
sched_run(const sched_plan *p)
{
	int			first;

	plan = p;
	rng = p->seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
	(void) draw(2);
	ask_in(INT64_MAX);
	began = sched_steps();
	began_switches = switches;
	sched_buffered = 0;
	passed = 0;
	next_change = 0;
	lowest = 0;
	stopped = -1;
	for (int i = 0; i < p->threads; i++)
	{
		prepare(i);
		fibers[i].rank = 1 + (int64_t) draw(1000);
	}
	for (int i = 0; i < p->changes; i++)
		at_change[i] = 1 + draw(p->length);
	qsort(at_change, (size_t) p->changes, sizeof(at_change[0]), by_step);
	tap_point_hook = p->kind == SCHED_MARKED ? mark : NULL;
	first = other();
	ask_in(next_gap());
	run_all(first);
	if (stopped >= 0 && p->goes_on)
	{
		fibers[stopped].state = READY;
		ask_in(next_gap());
		run_all(stopped);
	}
	tap_point_hook = NULL;
	ask_in(INT64_MAX);
	for (int i = 0; i < p->threads; i++)
		if (fibers[i].state == STOPPED)
			fibers[i].alive = false;	/* its stack is the next one's */
		else
			stopped = i == stopped ? -1 : stopped;
	return stopped;
}

void
sched_fail(uint64_t from, uint64_t to, const char *fmt,...)
{
	va_list		ap;
	uint64_t	first = switches - began_switches > TRACE ? switches - TRACE : began_switches;
	int			shown = 0;

	printf("not ok - ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n# step %llu of the schedule, thread %d\n", (unsigned long long) (sched_steps() - began), running);
	if (sched_on_failure)
		sched_on_failure();
	while (first < switches && trace[first % TRACE].step < from)
		first++;
	for (uint64_t i = switches; i-- > first && shown < 40;)
		if (trace[i % TRACE].step <= to && ++shown == 40)
			first = i;
	printf("# changes of threads:\n");
	for (uint64_t i = first; i < switches && trace[i % TRACE].step <= to; i++)
	{
		change	   *c = &trace[i % TRACE];

		printf("#   step %6llu: %2d -> %2d, left at %s:%d\n", (unsigned long long) (c->step - began),
			   c->from, c->to, c->func, c->line);
	}
	fflush(stdout);
	_exit(1);
}

#endif							/* AX_SCHED */
