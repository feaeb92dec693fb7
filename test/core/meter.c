/*
 * meter.c
 *	  See meter.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "meter.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tap.h"

void
mr_die(const char *fmt,...)
{
	va_list		ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void
mr_need(ax_status got, ax_status want, const char *what)
{
	if (got != want)
		mr_die("%s: status %d, not %d", what, (int) got, (int) want);
}

double
mr_tick_ns(void)
{
	static double ns;

	if (ns == 0)
	{
		uint64_t	t0 = mr_now(),
					c0 = mr_ticks(),
					t1,
					c1;

		do
		{
			t1 = mr_now();
			c1 = mr_ticks();
		} while (t1 - t0 < 50000000);
		ns = (double) (t1 - t0) / (double) (c1 - c0);
	}
	return ns;
}

/*
 * A permutation of the numbers below 2^bits that looks random: every step can
 * be undone.
 */
static uint64_t
scatter(uint64_t x, int bits)
{
	uint64_t	mask = (UINT64_C(1) << bits) - 1;

	for (int i = 0; i < 3; i++)
	{
		x = (x * UINT64_C(0x9E3779B97F4A7C15) + 12345) & mask;
		x ^= x >> (bits / 2);
	}
	return x;
}

/*
 * The lines form one cycle: line scatter(i) names line scatter(i + 1).  So
 * each is loaded once before any again, in an order no prefetcher guesses, and
 * each address comes out of the load before.
 */
double
mr_load_ns(size_t bytes)
{
	int			bits = 63 - __builtin_clzll(bytes / 64);
	uint64_t	lines = UINT64_C(1) << bits;
	uint64_t	loads = lines < 4000000 ? lines : 4000000;
	char	   *base = tap_shared(bytes);
	uint64_t	at = scatter(0, bits),
				t0;
	double		v[3];

	/* where the kernel gives huge pages to shared memory: not here */
	(void) madvise(base, bytes, MADV_NOHUGEPAGE);
	for (size_t p = 0; p < bytes; p += AX_PAGE)
		base[p] = 0;
	for (uint64_t i = 0; i < lines; i++)
		*(uint64_t *) (base + 64 * scatter(i, bits)) = scatter((i + 1) % lines, bits);
	for (int r = 0; r < 3; r++)
	{
		t0 = mr_now();
		for (uint64_t i = 0; i < loads; i++)
			at = *(volatile uint64_t *) (base + 64 * at);
		v[r] = (double) (mr_now() - t0) / (double) loads;
	}
	if (at != scatter(3 * loads % lines, bits))
		mr_die("the chain of loads went astray");
	tap_unmap(base, bytes);
	return mr_median(v, 3);
}

void
mr_hist_merge(mr_hist *to, const mr_hist *from)
{
	to->n += from->n;
	if (from->max > to->max)
		to->max = from->max;
	for (int i = 0; i < MR_BINS; i++)
		to->bin[i] += from->bin[i];
}

uint64_t
mr_hist_at(const mr_hist *h, double q)
{
	uint64_t	rank = (uint64_t) (q * (double) h->n),
				seen = 0;

	for (int i = 0; i < MR_BINS; i++)
	{
		seen += h->bin[i];
		if (seen > rank)
		{
			int			octave = i / MR_SUB - 1;
			uint64_t	end = i < MR_SUB ? (uint64_t) i
				: ((uint64_t) (MR_SUB + i % MR_SUB + 1) << octave) - 1;

			return end < h->max ? end : h->max;
		}
	}
	return h->max;
}

double
mr_env(const char *name, double otherwise)
{
	const char *e = getenv(name);
	char	   *end;
	double		v;

	if (!e || !*e)
		return otherwise;
	v = strtod(e, &end);
	if (*end || v < 0)
		mr_die("%s=%s: a number, not negative", name, e);
	return v;
}

bool
mr_quick(void)
{
	return mr_env("QUICK", 0) != 0;
}

const char *
mr_engine(ax_structure s)
{
	static char name[AX_STRUCTURES][32];

	snprintf(name[s], sizeof(name[s]), "%s-%s", ax_structure_name(s), ax_structure_sync(s));
	return name[s];
}

int
mr_engines(ax_structure out[AX_STRUCTURES])
{
	const char *e = getenv("ENGINES");
	int			n = 0;

	for (int btree = 0; btree < 2; btree++)
		for (int s = 0; s < AX_STRUCTURES; s++)
			/* no call of ax.h changes a tree that the caller's operators order */
			if (s != AX_BTREE_COMPARED && ax_structure_is_btree((ax_structure) s) == btree)
				out[n++] = (ax_structure) s;
	if (e && *e)
	{
		ax_structure all[AX_STRUCTURES];
		int			nall = n;

		memcpy(all, out, sizeof(all));
		n = 0;
		while ((e += strspn(e, " ,")), *e)
		{
			size_t		len = strcspn(e, " ,");
			int			i;

			for (i = 0; i < nall; i++)
				if (strlen(mr_engine(all[i])) == len && memcmp(e, mr_engine(all[i]), len) == 0)
					break;
			if (i == nall || n == nall)
				mr_die("ENGINES: no engine \"%.*s\", or too many", (int) len, e);
			out[n++] = all[i];
			e += len;
		}
	}
	return n;
}

bool
mr_wanted(ax_structure s)
{
	ax_structure list[AX_STRUCTURES];
	int			n = mr_engines(list);

	while (n > 0 && list[n - 1] != s)
		n--;
	return n > 0;
}

static int
cmp_double(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

double
mr_median(double *v, int n)
{
	qsort(v, (size_t) n, sizeof(*v), cmp_double);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* A field of its own, whatever it reads for people. */
static void
csv_word(FILE *f, const char *word)
{
	for (; *word; word++)
		if (*word != ',')
			fputc(*word, f);
	fputc(',', f);
}

void
mr_csv(const char *bench, const char *way, const char *load, int reads,
	   const char *engine, int workers, const char *measure, double value,
	   const char *unit)
{
	static FILE *f;
	const char *path = getenv("CSV");

	if (!path || !*path)
		return;
	if (!f)
	{
		f = fopen(path, "a");
		if (!f)
			mr_die("cannot write to %s", path);
		if (fseek(f, 0, SEEK_END) == 0 && ftell(f) == 0)
			fputs("bench,way,load,reads,engine,workers,measure,value,unit\n", f);
	}
	csv_word(f, bench);
	csv_word(f, way);
	csv_word(f, load);
	if (reads >= 0)
		fprintf(f, "%d", reads);
	fprintf(f, ",%s,%d,", engine, workers);
	csv_word(f, measure);
	fprintf(f, "%.6g,%s\n", value, unit);
	fflush(f);					/* nothing is written twice after a fork */
}
