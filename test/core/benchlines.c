/*
 * benchlines.c
 *	  Which cache lines a section reads and writes: see footprint.sh.
 *
 *	  benchlines fill FILE SET KEYS	a tree of so many keys, and work to do on it
 *	  benchlines work FILE			does the work; run this under a tracer
 *	  benchlines lines NAME SET KEYS	reads the trace of that; one line of CSV a site
 *	  benchlines model				how likely so many lines overflow a cache
 *
 * A section is a transaction of elision.  The core runs the very code that it
 * runs where the processor has transactions; only that here beginning and ending
 * one are functions of this file (the linker puts them in place of the core's), which
 * store to places that the trace shows.  Every other access between the two counts,
 * the stack's and the attachment's too, as it would for the hardware.  Nobody else is
 * there, so no transaction would have been aborted but for its footprint.
 *
 * A large tree would take the tracer hours to fill, so it is filled at full
 * speed into a file, and only the work is traced, over a private mapping of the
 * file at the same address.  The tree holds pointers into this program (its
 * engine's table): it must be linked at a fixed address.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/elide/ax_elide.h"
#include "core/base/ax_internal.h"
#include "keyset.h"
#include "meter.h"
#include "tap.h"

static ax_ctx cx;

/* Stores to here mark, in the trace: the beginning, the end, and then the site. */
enum
{
	MARK_SITE,					/* + site */
	MARK_BEGIN = AX_SITES,
	MARK_END,
	MARK_REFUSED,
	MARKS = 64
};
static _Alignas(64) volatile uint8_t marks[MARKS];

uint32_t	__wrap_ax_rtm_begin(void);
void		__wrap_ax_rtm_end(void);
void		__wrap_ax_rtm_abort(uint32_t code);
void		__wrap_ax_section_refuse(ax_ctx *cx);

__attribute__((noinline)) uint32_t
__wrap_ax_rtm_begin(void)
{
	marks[MARK_BEGIN] = 1;
	return AX_TX_STARTED;
}

__attribute__((noinline)) void
__wrap_ax_rtm_end(void)
{
	marks[MARK_END] = 1;
	marks[ax_body(&cx)->elide.open - 1] = 1;
}

/*
 * What wants memory is aborted, and latched the next time.  Nothing here knows how
 * to undo it; so it goes on, as if it were latched, and is not counted.
 */
void
__wrap_ax_section_refuse(ax_ctx *c)
{
	if (!(ax_body(c)->elide.apart & AX_APART_TXN))
		return;
	marks[MARK_REFUSED] = 1;
	ax_body(c)->elide.apart = 0;
}

/* Any other reason is none here. */
void
__wrap_ax_rtm_abort(uint32_t code)
{
	fprintf(stderr, "benchlines: a transaction gives up with %u\n", code);
	abort();
}

/* ---- the tree and the work --------------------------------------------------- */

#define MAP_AT		((void *) UINT64_C(0x2000000000))
#define KEY_ROOM	40

enum
{
	INSERT, REMOVE, LOOKUP, CONTAINS, SCAN, TAIL
};

typedef struct job
{
	uint8_t		what;
	uint8_t		key[KEY_ROOM];
} job;

/* The file: this, the area, the jobs. */
typedef struct head
{
	void	   *self;			/* the program must be the very one */
	uint64_t	size;
	uint64_t	area_at, jobs_at;
	uint64_t	njobs;
	uint64_t	gen;
	ax_tree    *tree;
	uint32_t	len;
} head;

static void
must(bool it, const char *what)
{
	if (!it)
	{
		fprintf(stderr, "benchlines: %s\n", what);
		exit(1);
	}
}

static void
do_fill(const char *file, const char *set, uint64_t n)
{
	uint64_t	fresh = n < 4000 ? n / 2 : 2000;
	uint64_t	seed = 88172645463325252u;
	uint64_t	room = (uint64_t) 128 << 20;
	keyset		ks;
	head	   *h;
	job		   *j;
	int			fd;
	uint64_t	tids[2000];
	uint8_t		last[512];
	ax_batch	b = {.max = (uint32_t) fresh, .tids = tids, .lastkey = last, .lastkey_size = sizeof(last)};

	ks_make(&ks, set, n + 2 * fresh, &seed);
	must(ks.len <= KEY_ROOM, "a long key");
	room += n * (ks.len + 64);
	fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	must(fd >= 0 && ftruncate(fd, (off_t) room) == 0, "the file cannot be made");
	h = mmap(MAP_AT, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	must(h == MAP_AT, "the address is taken");
	h->self = (void *) (uintptr_t) marks;
	h->size = room;
	h->area_at = 4096;
	h->jobs_at = room - (16 << 20);
	h->len = ks.len;
	must(ax_area_init((char *) h + h->area_at, h->jobs_at - h->area_at, 4, 1 << 20) != NULL, "no area");
	ax_attach(&cx, (ax_area *) (void *) ((char *) h + h->area_at), 0, 1, &ax_port_default);
	h->tree = ax_tree_alloc(&cx);
	must(h->tree && ax_tree_open(&cx, h->tree, tap_structure(), 0, tap_page_size(), &h->gen) == AX_OK, "no tree");
	for (uint64_t i = 0; i < n; i++)
		must(ax_insert(&cx, h->tree, h->gen, ks_key(&ks, i), ks.len) == AX_OK, "insert");

	j = (job *) (void *) ((char *) h + h->jobs_at);
#define JOB(w, i) \
	do { j->what = (w); memcpy(j->key, ks_key(&ks, (i)), ks.len); j++; } while (0)
	for (uint64_t i = 0; i < fresh; i++)
		JOB(INSERT, n + i);
	for (uint64_t i = 0; i < fresh / 4; i++)
	{
		JOB(LOOKUP, tap_rand(&seed) % n);
		JOB(CONTAINS, tap_rand(&seed) % n);
		if (i % 10 == 0)
			JOB(SCAN, tap_rand(&seed) % n);
	}
	/* some here and there, which were inserted just now, and a whole stretch: the
	 * latter empties nodes */
	for (uint64_t i = 0; i < fresh; i++)
		JOB(REMOVE, n + i);
	b.lo = (ax_bound) {(const uint8_t *) "\001\100", 2, false};
	b.hi = (ax_bound) {NULL, 0, true};
	must(ax_scan(&cx, h->tree, h->gen, &b) == AX_OK && b.n > 0, "scan");
	for (uint32_t i = 0; i < b.n; i++)
		JOB(REMOVE, ks_row(tids[i]));
	JOB(TAIL, 0);
	for (uint64_t i = 0; i < fresh; i++)
		JOB(INSERT, n + fresh + i);
	h->njobs = (uint64_t) (j - (job *) (void *) ((char *) h + h->jobs_at));
	must(h->njobs * sizeof(job) <= room - h->jobs_at, "too many jobs");
	ax_detach(&cx);
	must(munmap(h, room) == 0 && close(fd) == 0, "the file");
}

static void
do_work(const char *file)
{
	int			fd = open(file, O_RDONLY);
	struct stat st;
	head	   *h;
	job		   *jobs;
	uint64_t	tids[100];
	ax_found	f = {.tids = tids, .max = 100};
	uint8_t		last[512];
	ax_hardware hw = {.rtm_usable = true};
	ax_batch	b = {.max = 100, .tids = tids, .lastkey = last, .lastkey_size = sizeof(last)};

	must(fd >= 0 && fstat(fd, &st) == 0, "no such file");
	h = mmap(MAP_AT, (size_t) st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	must(h == MAP_AT, "the address is taken");
	must(h->self == (void *) (uintptr_t) marks, "filled by another program, or not at a fixed address");
	jobs = (job *) (void *) ((char *) h + h->jobs_at);
	ax_attach(&cx, (ax_area *) (void *) ((char *) h + h->area_at), 1, 2, &ax_port_default);
	ax_elide_setup(&cx, &hw, AX_ELIDE_ON, NULL, NULL);
	for (uint64_t i = 0; i < h->njobs; i++)
	{
		const uint8_t *key = jobs[i].key;
		ax_status	r = AX_OK;

		switch (jobs[i].what)
		{
			case INSERT:
				r = ax_insert(&cx, h->tree, h->gen, key, h->len);
				break;
			case REMOVE:
				r = ax_remove(&cx, h->tree, h->gen, key, h->len);
				break;
			case LOOKUP:
				r = ax_lookup(&cx, h->tree, h->gen, key, h->len - AX_TID_BYTES, &f);
				break;
			case CONTAINS:
				r = ax_contains(&cx, h->tree, h->gen, key, h->len);
				break;
			case SCAN:
				b.lo = (ax_bound) {key, h->len, false};
				b.hi = (ax_bound) {NULL, 0, true};
				r = ax_scan(&cx, h->tree, h->gen, &b);
				break;
			case TAIL:
				r = ax_tree_set_tail(&cx, h->tree, h->gen, AX_TAIL_ON);
				break;
		}
		must(r == AX_OK, "a wrong result");
	}
	do
		must(ax_tail_flush(&cx, h->tree, h->gen, &f.more) == AX_OK, "flush");
	while (f.more);
	ax_detach(&cx);
}

/* ---- the cache ------------------------------------------------------------------ */

/*
 * 32 KiB: 64 sets of 8 lines, or 4 where another hardware thread has the other
 * half.  Lines as a hash would strew them, as section 5.1 of "Improving
 * In-Memory Database Index Performance with Intel Transactional Synchronization
 * Extensions" has it.
 */
#define SETS		64
#define WAYS		8
#define MOST		(SETS * WAYS + 1)

static double over[2][MOST + 1];	/* 8 ways, 4 ways: of n lines too many in a set */

/* Exactly: by the number of lines in the first s sets, in s sets all within. */
static void
exact(int ways, double *p)
{
	static double fits[MOST + 1],
				next[MOST + 1];

	for (int n = 0; n <= MOST; n++)
		fits[n] = n <= ways;
	for (int s = 2; s <= SETS; s++)
	{
		for (int n = 0; n <= MOST; n++)
		{
			/* k of n in the s-th set: binomial */
			double		term = exp(n * log1p(-1.0 / s));

			next[n] = 0;
			for (int k = 0; k <= ways && k <= n; k++)
			{
				next[n] += term * fits[n - k];
				term *= (double) (n - k) / (k + 1) / (s - 1);
			}
		}
		memcpy(fits, next, sizeof(fits));
	}
	for (int n = 0; n <= MOST; n++)
		p[n] = 1 - fits[n] < 1e-12 ? 0 : 1 - fits[n];
}

/* The same by throwing lines until a set has too many. */
static void
simulate(int ways, int trials, double *p)
{
	uint64_t	seed = 88172645463325252u;
	static int	at[MOST + 1];
	int			sum = 0;

	memset(at, 0, sizeof(at));
	for (int t = 0; t < trials; t++)
	{
		uint8_t		used[SETS] = {0};
		int			n = 1;

		while (++used[tap_rand(&seed) >> 58] <= ways)
			n++;
		at[n]++;
	}
	for (int n = 0; n <= MOST; n++)
		p[n] = (double) (sum += at[n]) / trials;
}

static void
do_model(void)
{
	static const double at[] = {1e-6, 1e-4, 1e-2, 0.1, 0.5};
	const int	trials = 1000000;
	double		thrown[MOST + 1];

	printf("ways");
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		printf(",%g", at[i]);
	printf("\n");
	for (int w = 0; w < 2; w++)
	{
		exact(WAYS >> w, over[w]);
		simulate(WAYS >> w, trials, thrown);
		for (int n = 0; n <= MOST; n++)
			must(fabs(thrown[n] - over[w][n]) <=
				 6 * sqrt(over[w][n] * (1 - over[w][n]) / trials) + 3.0 / trials,
				 "lines thrown do not agree with what was calculated");
		printf("%d", WAYS >> w);
		for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		{
			int			n = 0;

			while (over[w][n] < at[i])
				n++;
			printf(",%d", n);
		}
		printf("\n");
	}
}

/* ---- reading the trace ------------------------------------------------------------ */

typedef struct section
{
	uint32_t	lines;
	uint32_t	written;
	uint32_t	reads;			/* lines only read */
	bool		full[2];		/* these very lines overflow a set */
} section;

typedef struct sections
{
	section    *v;
	size_t		n, room;
	size_t		refused;
} sections;

static sections seen[AX_SITES];

#define TABLE 4096				/* lines of one section; a power of two */
static struct
{
	uint64_t	line;			/* + 1; 0: free */
	bool		written;
}			table[TABLE];
static uint32_t used[TABLE];
static uint32_t nused;

static void
touch(uint64_t line, bool write)
{
	uint32_t	i = (uint32_t) ((line * UINT64_C(0x9E3779B97F4A7C15)) >> 52);

	while (table[i].line && table[i].line != line + 1)
		i = (i + 1) % TABLE;
	if (!table[i].line)
	{
		must(nused < TABLE / 2, "a section of thousands of lines");
		table[i].line = line + 1;
		table[i].written = false;
		used[nused++] = i;
	}
	table[i].written |= write;
}

static void
end_section(int site, bool refused)
{
	sections   *s = &seen[site];
	section    *e;
	uint32_t	set[SETS] = {0};

	if (refused)
	{
		s->refused++;
		while (nused)
			table[used[--nused]].line = 0;
		return;
	}
	if (s->n == s->room)
	{
		s->room = s->room ? 2 * s->room : 1024;
		s->v = realloc(s->v, s->room * sizeof(*s->v));
		must(s->v != NULL, "no memory");
	}
	e = &s->v[s->n++];
	memset(e, 0, sizeof(*e));
	e->lines = nused;
	while (nused)
	{
		uint32_t	i = used[--nused];
		uint32_t	in = ++set[(table[i].line - 1) % SETS];

		if (table[i].written)
			e->written++;
		else
			e->reads++;
		e->full[0] |= in > WAYS;
		e->full[1] |= in > WAYS / 2;
		table[i].line = 0;
	}
}

static int
cmp_lines(const void *a, const void *b)
{
	return (int) ((const section *) a)->lines - (int) ((const section *) b)->lines;
}

static int
cmp_written(const void *a, const void *b)
{
	return (int) ((const section *) a)->written - (int) ((const section *) b)->written;
}

/* Lackey's lines are " L addr,size", " S ..", " M .." and "I  addr,size". */
static void
do_lines(const char *name, const char *set, const char *keys)
{
	const uint64_t at = (uint64_t) (uintptr_t) marks;
	static char buf[1 << 20];
	char		s[256];
	enum
	{
		OUTSIDE, INSIDE, ENDED
	}			where = OUTSIDE;
	bool		refused = false;

	setvbuf(stdin, buf, _IOFBF, sizeof(buf));
	while (fgets(s, sizeof(s), stdin))
	{
		uint64_t	addr,
					size;
		char	   *p;

		if (s[0] != ' ')
			continue;
		addr = strtoull(s + 3, &p, 16);
		must(*p == ',', "not a trace of lackey's");
		if (addr - at < MARKS)
		{
			addr -= at;
			if (addr == MARK_BEGIN)
			{
				must(where == OUTSIDE, "a section inside a section");
				where = INSIDE;
			}
			else if (addr == MARK_END)
			{
				must(where == INSIDE, "an end without a beginning");
				where = ENDED;
			}
			else if (addr == MARK_REFUSED)
				refused = true;
			else
			{
				must(where == ENDED && addr < AX_SITES, "a mark that there is not");
				end_section((int) addr, refused);
				where = OUTSIDE;
				refused = false;
			}
			continue;
		}
		if (where != INSIDE)
			continue;
		size = strtoull(p + 1, NULL, 10);
		for (uint64_t l = addr / 64; l <= (addr + size - 1) / 64; l++)
			touch(l, s[1] != 'L');
	}
	must(where == OUTSIDE, "the trace breaks off");

	exact(WAYS, over[0]);
	exact(WAYS / 2, over[1]);
	for (int site = 0; site < AX_SITES; site++)
	{
		sections   *q = &seen[site];
		double		sum = 0,
					p[2] = {0, 0};
		uint64_t	full[2] = {0, 0};

		if (!q->n)
		{
			if (q->refused)
				printf("%s,%s,%s,%s,0,0,0,0,0,0,0,0,0,0,0,0,%zu\n", name, set, keys,
					   ax_site_name((ax_site) site), q->refused);
			continue;
		}
		for (size_t i = 0; i < q->n; i++)
		{
			sum += q->v[i].lines;
			for (int w = 0; w < 2; w++)
			{
				p[w] += over[w][q->v[i].lines < MOST ? q->v[i].lines : MOST];
				full[w] += q->v[i].full[w];
			}
		}
		qsort(q->v, q->n, sizeof(*q->v), cmp_lines);
		printf("%s,%s,%s,%s,%zu,%.1f,%u,%u,%u", name, set, keys, ax_site_name((ax_site) site),
			   q->n, sum / (double) q->n, q->v[q->n / 2].lines, q->v[q->n * 99 / 100].lines,
			   q->v[q->n - 1].lines);
		qsort(q->v, q->n, sizeof(*q->v), cmp_written);
		printf(",%u,%u,%u,%.3g,%.3g,%.3g,%.3g,%zu\n", q->v[q->n / 2].written,
			   q->v[q->n * 99 / 100].written, q->v[q->n - 1].written, p[0] / (double) q->n,
			   p[1] / (double) q->n, (double) full[0] / (double) q->n,
			   (double) full[1] / (double) q->n, q->refused);
	}
}

int
main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "fill") == 0)
		do_fill(argv[2], argv[3], strtoull(argv[4], NULL, 10));
	else if (argc == 3 && strcmp(argv[1], "work") == 0)
		do_work(argv[2]);
	else if (argc == 5 && strcmp(argv[1], "lines") == 0)
		do_lines(argv[2], argv[3], argv[4]);
	else if (argc == 2 && strcmp(argv[1], "model") == 0)
		do_model();
	else
		must(false, "fill FILE SET KEYS | work FILE | lines NAME SET KEYS | model");
	return 0;
}
