/*
 * tap.c
 *	  See tap.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "tap.h"
#include "ax_elide_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

static int	ntests;
static int	nfailed;
static pthread_mutex_t tap_lock = PTHREAD_MUTEX_INITIALIZER;

void		(*volatile tap_point_hook) (const char *name);

/* AX_STOP=NAME: a trap at the first call that passes this point, for a debugger. */
static const char *volatile tap_stop;

__attribute__((constructor)) static void
tap_find_stop(void)
{
	tap_stop = getenv("AX_STOP");
}

/* The core calls this in AX_POINTS builds. */
void		ax_point(const char *name);

void
ax_point(const char *name)
{
	void		(*hook) (const char *) = tap_point_hook;

	if (tap_stop && strcmp(name, tap_stop) == 0)
	{
		tap_stop = NULL;
		raise(SIGTRAP);
	}
	if (hook)
		hook(name);
}

bool
tap_ok(bool cond, const char *file, int line, const char *what, const char *fmt,...)
{
	va_list		ap;

	pthread_mutex_lock(&tap_lock);
	printf("%sok %d - ", cond ? "" : "not ", ++ntests);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	if (!cond)
	{
		nfailed++;
		printf("#   failed at %s:%d: %s\n", file, line, what);
	}
	fflush(stdout);
	pthread_mutex_unlock(&tap_lock);
	return cond;
}

void
tap_diag(const char *fmt,...)
{
	va_list		ap;

	pthread_mutex_lock(&tap_lock);
	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	pthread_mutex_unlock(&tap_lock);
}

int
tap_done(void)
{
	printf("1..%d\n", ntests);
	fflush(stdout);
	return nfailed || !ntests;
}

static char too_late[100];		/* written beforehand: a handler may not format */

static void
on_deadline(int sig)
{
	(void) !write(STDOUT_FILENO, too_late, strlen(too_late));
	_exit(3);
}

void
tap_deadline(unsigned seconds)
{
	snprintf(too_late, sizeof(too_late), "not ok - still running after %u s\n", seconds);
	signal(SIGALRM, on_deadline);
	alarm(seconds);
}

void *
tap_shared(size_t size)
{
	void	   *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
						 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
	{
		perror("mmap");
		exit(2);
	}
	return p;
}

ax_area *
tap_area(size_t size, int nslots, size_t reserve)
{
	ax_area    *a = ax_area_init(tap_shared(size), size, nslots, reserve);

	if (!a)
	{
		fprintf(stderr, "ax_area_init(%zu, %d) failed\n", size, nslots);
		exit(2);
	}
	return a;
}

void
tap_unmap(void *p, size_t size)
{
#ifdef __SANITIZE_ADDRESS__
	/* the core's poison would outlive the mapping */
	__asan_unpoison_memory_region(p, size);
#endif
	munmap(p, size);
}

typedef struct tap_job
{
	void		(*fn) (void *arg, int i);
	void	   *arg;
	int			i;
	pthread_barrier_t *start;
} tap_job;

static void *
run_job(void *p)
{
	tap_job    *j = p;

	pthread_barrier_wait(j->start);
	j->fn(j->arg, j->i);
	return NULL;
}

void
tap_threads(int n, void (*fn) (void *arg, int i), void *arg)
{
	pthread_t  *t = calloc((size_t) n, sizeof(*t));
	tap_job    *j = calloc((size_t) n, sizeof(*j));
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, (unsigned) n);
	for (int i = 0; i < n; i++)
	{
		j[i] = (tap_job) {fn, arg, i, &start};
		if (pthread_create(&t[i], NULL, run_job, &j[i]))
		{
			perror("pthread_create");
			exit(2);
		}
	}
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&start);
	free(t);
	free(j);
}

bool
tap_forks(int n, void (*fn) (void *arg, int i), void *arg)
{
	bool		good = true;

	fflush(stdout);
	for (int i = 0; i < n; i++)
	{
		pid_t		pid = fork();

		if (pid == 0)
		{
			fn(arg, i);
			_exit(0);
		}
		if (pid < 0)
		{
			perror("fork");
			exit(2);
		}
	}
	for (int i = 0; i < n; i++)
	{
		int			status;

		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
			good = false;
	}
	return good;
}

uint64_t
tap_rand(uint64_t *s)
{
	uint64_t	x = *s;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*s = x;
	return x * UINT64_C(0x2545F4914F6CDD1D);
}

static uint64_t
scale(void)
{
	const char *e = getenv("TAP_SCALE");

	return e ? strtoull(e, NULL, 10) : 100;
}

uint64_t
tap_scaled(uint64_t n)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	n /= 8;
#endif
	n = n * scale() / 100;
	return n ? n : 1;
}

bool
tap_shortened(void)
{
	return scale() < 100;
}

bool
tap_races_only(void)
{
#if defined(__SANITIZE_THREAD__)
	return tap_shortened();
#else
	return false;
#endif
}

bool
tap_quiesce(ax_ctx *cx)
{
	/* once it was in vain, the later ones of the same program need not wait as long */
	static _Atomic int patience = 5000;

	for (int i = 0; i < patience; i++)
	{
		struct timespec ts = {0, 1000000};

		if (!ax_poll(cx))
			return true;
		nanosleep(&ts, NULL);
	}
	patience = 1000;
	return false;
}

/*
 * The engine under test: AX_STRUCTURE=art-olc (default), btree-optiql and so
 * on.
 */
ax_status
tap_check(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tree_info *out, bool *good, char *msg,
		  size_t msglen)
{
	ax_checking c;
	ax_status	r = AX_OK;

	memset(&c, 0, sizeof(c));
	for (int busy = 0; r == AX_OK && !c.done;)
	{
		r = ax_check(cx, t, gen, &c);
		if (r == AX_BUFFER)
		{
			c.buf = realloc(c.buf, c.need_bytes);
			c.size = c.need_bytes;
			r = AX_OK;
		}
		else if (r == AX_BUSY && ++busy < 100)
			r = AX_OK;
		else if (r == AX_OK)
			busy = 0;
	}
	*out = c.info;
	*good = !c.bad;
	snprintf(msg, msglen, "%s", c.msg);
	free(c.buf);
	return r;
}

ax_structure
tap_structure(void)
{
	const char *s = getenv("AX_STRUCTURE");

	if (!s)
		return AX_ART_OLC;
	for (int i = 0; i < AX_STRUCTURES; i++)
	{
		char		name[64];

		snprintf(name, sizeof(name), "%s-%s", ax_structure_name((ax_structure) i),
				 ax_structure_sync((ax_structure) i));
		if (strcmp(s, name) == 0)
			return (ax_structure) i;
	}
	fprintf(stderr, "AX_STRUCTURE=%s: art-olc, art-rowex, btree-optiql and so on\n", s);
	abort();
}

/*
 * Its page size: AX_PAGE_BYTES, 0 (default): the default.
 */
uint32_t
tap_page_size(void)
{
	const char *s = getenv("AX_PAGE_BYTES");

	return s ? (uint32_t) atoi(s) : 0;
}

void
tap_elide(ax_ctx *cx)
{
	static ax_hardware hw;
	static bool probed;
	const char *e = getenv("AX_ELIDE");
	const ax_provider *p = NULL;
	const char *script = NULL;

	if (!e)
		return;
	if (strcmp(e, "software") == 0)
		p = &ax_software;
	else if (strncmp(e, "inject", 6) == 0)
	{
		p = &ax_inject;
		script = e[6] == ':' ? e + 7 : "conflict+retry commit zero commit capacity commit "
			"commit nested commit other commit busy explicit commit*5 loop";
	}
	else if (!probed)
	{
		/* before there are threads, or once more by each of them */
		ax_hardware_probe(&hw);
		probed = true;
	}
	if (!ax_elide_script_ok(script))
	{
		fprintf(stderr, "AX_ELIDE=%s: not a script\n", e);
		abort();
	}
	ax_elide_setup(cx, &hw, strcmp(e, "rtm-auto") == 0 ? AX_ELIDE_AUTO : AX_ELIDE_ON, p, script);
}

bool
tap_elide_counts(ax_ctx *cx, ax_tree *t, uint64_t gen)
{
	const char *e = getenv("AX_ELIDE");
	ax_site_info s[AX_SITES];
	uint64_t	sections = 0;

	if (ax_aborts(cx, t, gen, s) != AX_OK)
		return false;
	for (int i = 0; i < AX_SITES; i++)
	{
		sections += s[i].sections;
		if (s[i].attempts)
			tap_diag("%s: %llu sections, %llu attempts, %llu commits, %llu fallbacks; aborts: "
					 "%llu conflict %llu capacity %llu explicit %llu busy %llu nested %llu zero %llu other",
					 ax_site_name((ax_site) i), (unsigned long long) s[i].sections,
					 (unsigned long long) s[i].attempts, (unsigned long long) s[i].commits,
					 (unsigned long long) s[i].fallbacks, (unsigned long long) s[i].conflict,
					 (unsigned long long) s[i].capacity, (unsigned long long) s[i].explicit_,
					 (unsigned long long) s[i].lock_busy, (unsigned long long) s[i].nested,
					 (unsigned long long) s[i].zero, (unsigned long long) s[i].other);
	}
	if (!e || strcmp(ax_structure_name(tap_structure()), "hydra") == 0)
		return sections == 0;
	/* (real ones by auto, if processes met) */
	return sections > 0 || !ax_body(cx)->elide.usable || strcmp(e, "rtm-auto") == 0;
}

ax_tail_option
tap_tail(void)
{
	const char *v = getenv("AX_TAIL");

	return !v ? AX_TAIL_OFF : strcmp(v, "on") == 0 ? AX_TAIL_ON :
		strcmp(v, "auto") == 0 ? AX_TAIL_AUTO : AX_TAIL_OFF;
}
