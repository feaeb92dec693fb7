/*
 * bench_mixes.c
 *	  The engines under many workers, without PostgreSQL.
 *
 *	  bench_mixes [goals|pages|ycsb|mixes ...]
 *
 * goals: tail inserts and skewed updates against the goals.  pages: adjustable
 * opportunistic reads over page sizes.  ycsb: its mixes A to E, of numbers and of
 * strings.  mixes: every engine, load and share of
 * reads on threads and on forked processes.
 *
 * Environment: N keys (10,000,000; QUICK=1: 300,000), MIX_SECONDS a cell
 * (0.15; half of it for one worker, twice for 16), GOAL_SECONDS (0.5), REPS of
 * the goals (3), YCSB_KEYS (1,000,000; at most N), YCSB_MIXES (CBADE), ENGINES, WAYS ("threads forks"), CSV.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mixes.h"
#include "tap.h"

#define COUNT(a) ((int) (sizeof(a) / sizeof((a)[0])))

static const int all_workers[] = {1, 2, 4, 16};
/* of MIX_SECONDS: many must each have their turns on few processors */
static const double stretch[] = {0.5, 0.75, 0.75, 2.0};
static const int all_reads[] = {100, 80, 50, 20, 0};
static const char *const ways[] = {"threads", "forks"};

#define MAX_REPS 9

static ax_structure engines[AX_STRUCTURES];
static int	nengines;
static uint64_t keys;
static double mix_seconds,
			goal_seconds;
static int	reps;
static int	met,
			missed;

static void
record(const char *bench, ax_structure s, const mx_cell *c, const char *suffix, const mx_result *r)
{
	const struct
	{
		const char *name;
		double		value;
		const char *unit;
	}			m[] = {
		{"throughput", r->mops, "Mops/s"}, {"p50", r->p50, "us"}, {"p99", r->p99, "us"},
		{"p99.9", r->p999, "us"}, {"max", r->max, "us"},
		{"slowest/mean", r->slowest_to_mean, ""}, {"slowest/fastest", r->slowest_to_fastest, ""}
	};

	for (int i = 0; i < COUNT(m); i++)
	{
		char		load[64];

		snprintf(load, sizeof(load), "%s%s", mx_load_name[c->load], suffix);
		mr_csv(bench, ways[c->forks], load, c->load == MX_TAIL ? 0 : c->reads, mr_engine(s),
			   c->workers, m[i].name, m[i].value, m[i].unit);
	}
}

static const char *
verdict(bool good)
{
	*(good ? &met : &missed) += 1;
	return good ? "met" : "missed";
}

/* ---- the goals ----------------------------------------------------------- */

/* Medians of each member. */
static mx_result
median(mx_result *r, int n)
{
	mx_result	m = r[0];
	double		v[MAX_REPS];

#define MEDIAN(member) \
	do { \
		for (int i_ = 0; i_ < n; i_++) \
			v[i_] = r[i_].member; \
		m.member = mr_median(v, n); \
	} while (0)
	MEDIAN(mops);
	MEDIAN(p50);
	MEDIAN(p99);
	MEDIAN(p999);
	MEDIAN(max);
	MEDIAN(slowest_to_mean);
	MEDIAN(slowest_to_fastest);
#undef MEDIAN
	return m;
}

/* Each worker count in turn, a fresh tree each. */
static void
tail_goals(bool forks)
{
	static const int workers[] = {1, 2, 16};
	mx_result	r[3][MAX_REPS],
				m[3];
	int			times = forks ? 1 : reps;	/* the goals are for threads */

	printf("\nTail inserts on %s, Mops/s, medians of %d run(s) of %g s; goals: B+-tree at least 1.0 of one worker at 2 and at 16, ART 0.5 and 0.4; slowest worker at least 1/4 of the mean\n"
		   "%-14s %7s %7s %7s  %6s %6s  %8s  %8s  %10s %s\n", ways[forks], times, goal_seconds,
		   "", "1", "2", "16", "2/1", "16/1", "slowest", "p99.9", "max of 16", "");
	for (int e = 0; e < nengines; e++)
	{
		ax_structure s = engines[e];
		bool		btree = ax_structure_is_btree(s),
					coarse = strcmp(ax_structure_sync(s), "coarse") == 0;
		double		two,
					many,
					slowest;
		char		goal[80] = "";

		fprintf(stderr, "# tail inserts on %s: %s\n", ways[forks], mr_engine(s));
		for (int i = 0; i < times; i++)
			for (int w = 0; w < 3; w++)
			{
				mx_cell		c = {MX_TAIL, 0, workers[w], forks, false, goal_seconds, 0};

				mx_open(s, tap_page_size(), MX_TAIL, 0, 0);
				r[w][i] = mx_run(&c);
				record("goal", s, &c, "", &r[w][i]);
				mx_close();
			}
		for (int w = 0; w < 3; w++)
			m[w] = median(r[w], times);
		two = m[1].mops / m[0].mops;
		many = m[2].mops / m[0].mops;
		slowest = m[2].slowest_to_mean < m[1].slowest_to_mean
			? m[2].slowest_to_mean : m[1].slowest_to_mean;
		if (!coarse)
			snprintf(goal, sizeof(goal), "2: %s, 16: %s, slowest: %s",
					 verdict(two >= (btree ? 1.0 : 0.5)), verdict(many >= (btree ? 1.0 : 0.4)),
					 verdict(slowest >= 0.25));
		printf("%-14s %7.2f %7.2f %7.2f  %6.2f %6.2f  %8.2f  %5.0f us  %7.2f ms %s\n", mr_engine(s),
			   m[0].mops, m[1].mops, m[2].mops, two, many, slowest, m[2].p999,
			   m[2].max / 1000, goal);
		fflush(stdout);
	}
}

static void
skew_goals(void)
{
	mx_result	r[3][MAX_REPS],
				m[3];

	printf("\nSkewed updates (self-similar 0.2, no reads; an update: one TID of the key inserted, and removed), %llu keys, threads, medians of %d run(s) of %g s; goals: 16 at least 0.9 of 2, the worst latency of 16 at most 1.5 times that of 16 on private trees\n"
		   "%-14s %7s %7s %7s  %6s  %10s %10s %6s  %8s %s\n", (unsigned long long) keys, reps,
		   goal_seconds, "", "2", "16", "private", "16/2", "max", "private", "ratio", "slowest", "");
	for (int e = 0; e < nengines; e++)
	{
		ax_structure s = engines[e];
		double		many,
					worst;
		char		goal[80] = "";

		fprintf(stderr, "# skewed updates: %s\n", mr_engine(s));
		/* the shared tree first, then the private ones */
		for (int own = 0; own < 2; own++)
		{
			mx_open(s, tap_page_size(), MX_SKEW, keys, own ? 16 : 0);
			for (int i = 0; i < reps; i++)
				for (int w = own ? 2 : 0; w < (own ? 3 : 2); w++)
				{
					mx_cell		c = {MX_SKEW, 0, w == 0 ? 2 : 16, false, own, goal_seconds, 0};

					r[w][i] = mx_run(&c);
					record("goal", s, &c, own ? ", private trees" : "", &r[w][i]);
				}
			mx_close();
		}
		for (int w = 0; w < 3; w++)
			m[w] = median(r[w], reps);
		many = m[1].mops / m[0].mops;
		worst = m[1].max / m[2].max;
		if (strcmp(ax_structure_sync(s), "coarse") != 0)
			snprintf(goal, sizeof(goal), "16/2: %s, worst: %s", verdict(many >= 0.9),
					 verdict(worst <= 1.5));
		printf("%-14s %7.2f %7.2f %7.2f  %6.2f  %7.2f ms %7.2f ms %6.2f  %8.2f %s\n", mr_engine(s),
			   m[0].mops, m[1].mops, m[2].mops, many, m[1].max / 1000, m[2].max / 1000,
			   worst, m[1].slowest_to_mean, goal);
		fflush(stdout);
	}
}

/* ---- page sizes ---------------------------------------------------------- */

static void
pages(void)
{
	static const ax_structure two[] = {AX_BTREE_OLC, AX_BTREE_OPTIQL};
	static const int workers[] = {2, 16};
	uint64_t	n = keys / 10;

	printf("\nPage sizes: tail inserts, and a hot range of 100 keys at 50 %% reads, Mops/s on threads; reads admitted beside a writer, and those of them that were right in the end\n"
		   "%-8s %-14s %8s %8s  %8s %8s  %12s %9s  %8s\n", "bytes", "", "tail 2", "tail 16",
		   "range 2", "range 16", "admitted", "right", "bytes/key");
	for (uint32_t p = AX_PAGE_SIZE_MIN; p <= AX_PAGE_SIZE_MAX; p *= 2)
		for (int e = 0; e < COUNT(two); e++)
		{
			double		tail[2],
						range[2],
						bytes;
			ax_tree_info ti;

			if (!mr_wanted(two[e]))
				continue;
			fprintf(stderr, "# %s, %u bytes\n", mr_engine(two[e]), p);
			for (int w = 0; w < 2; w++)
			{
				mx_cell		c = {MX_TAIL, 0, workers[w], false, false, mix_seconds * 1.5, 0};
				mx_result	r;
				char		suffix[32];

				snprintf(suffix, sizeof(suffix), ", %u bytes", p);
				mx_open(two[e], p, MX_TAIL, 0, 0);
				r = mx_run(&c);
				record("pages", two[e], &c, suffix, &r);
				tail[w] = r.mops;
				mx_close();
			}
			bytes = mx_open(two[e], p, MX_RANGE, n, 0);
			for (int w = 0; w < 2; w++)
			{
				mx_cell		c = {MX_RANGE, 50, workers[w], false, false, mix_seconds * 1.5, 0};
				mx_result	r = mx_run(&c);
				char		suffix[32];

				snprintf(suffix, sizeof(suffix), ", %u bytes", p);
				record("pages", two[e], &c, suffix, &r);
				range[w] = r.mops;
			}
			mx_info(&ti);
			mx_close();
			printf("%-8u %-14s %8.2f %8.2f  %8.2f %8.2f  %12llu ", p, mr_engine(two[e]),
				   tail[0], tail[1], range[0], range[1], (unsigned long long) ti.opportunistic_reads);
			if (ti.opportunistic_reads)
				printf("%7.1f %%", 100.0 * (double) (ti.opportunistic_reads - ti.opportunistic_failed)
					   / (double) ti.opportunistic_reads);
			else
				printf("%9s", "-");
			printf("  %8.1f\n", bytes);
			fflush(stdout);
		}
}

static bool
way_wanted(int way)
{
	const char *e = getenv("WAYS");

	return !e || !*e || strstr(e, ways[way]);
}

/* ---- YCSB ---------------------------------------------------------------- */

static const int ycsb_workers[] = {1, 2, 8, 16};
static const char *ycsb_mixes = "CBADE";	/* those that insert come last */

/* All of one engine: Mops/s by mix and workers. */
static void
ycsb_engine(ax_structure s, mx_load load, bool forks, double (*mops)[COUNT(ycsb_workers)],
			uint64_t n)
{
	fprintf(stderr, "# ycsb: %s, %s, %s\n", mx_load_name[load], ways[forks], mr_engine(s));
	mx_open(s, tap_page_size(), load, n, 0);
	for (int m = 0; ycsb_mixes[m]; m++)
		for (int w = 0; w < COUNT(ycsb_workers); w++)
		{
			mx_cell		c = {load, -1, ycsb_workers[w], forks, false,
				mix_seconds * (w == 0 ? 0.5 : w == 3 ? 1.5 : 0.75), ycsb_mixes[m]};
			mx_result	r = mx_run(&c);
			char		suffix[16];

			snprintf(suffix, sizeof(suffix), ", YCSB %c", c.mix);
			record("ycsb", s, &c, suffix, &r);
			mops[m][w] = r.mops;
		}
	mx_close();
}

static void
ycsb(void)
{
	static double mops[AX_STRUCTURES][5][COUNT(ycsb_workers)];
	uint64_t	n = (uint64_t) mr_env("YCSB_KEYS", 1e6);
	double		sum[AX_STRUCTURES][COUNT(ycsb_workers)] = {0};
	int			cells = 0;

	if (getenv("YCSB_MIXES"))
		ycsb_mixes = getenv("YCSB_MIXES");
	if (strlen(ycsb_mixes) > 5)
		mr_die("YCSB_MIXES: five at most");
	n = n < keys ? n : keys;
	for (int load = MX_ZIPF; load <= MX_ZIPF_TEXT; load++)
		for (int way = 0; way < 2; way++)
		{
			if (!way_wanted(way))
				continue;
			cells += (int) strlen(ycsb_mixes);
			printf("\nYCSB, %s, %llu keys, %s: Mops/s with 1, 2, 8, 16\n%-14s", mx_load_name[load],
				   (unsigned long long) n, ways[way], "");
			for (int m = 0; ycsb_mixes[m]; m++)
				printf(" |            %c            ", ycsb_mixes[m]);
			printf("\n");
			for (int e = 0; e < nengines; e++)
			{
				ax_structure s = engines[e];

				ycsb_engine(s, (mx_load) load, way, mops[s], n);
				printf("%-14s", mr_engine(s));
				for (int m = 0; ycsb_mixes[m]; m++)
				{
					printf(" |");
					for (int w = 0; w < COUNT(ycsb_workers); w++)
					{
						printf(" %5.2f", mops[s][m][w]);
						sum[s][w] += log(mops[s][m][w]);
					}
				}
				printf("\n");
				fflush(stdout);
			}
		}
	printf("\n%-14s", "geometric mean");
	for (int w = 0; w < COUNT(ycsb_workers); w++)
		printf(" %7d", ycsb_workers[w]);
	printf(" %7s\n", "all");
	for (int e = 0; e < nengines; e++)
	{
		double		all = 0;

		printf("%-14s", mr_engine(engines[e]));
		for (int w = 0; w < COUNT(ycsb_workers); w++)
		{
			printf(" %7.3f", exp(sum[engines[e]][w] / cells));
			all += sum[engines[e]][w] / COUNT(ycsb_workers);
		}
		printf(" %7.3f\n", exp(all / cells));
	}
}

/* ---- everything ---------------------------------------------------------- */

typedef struct row
{
	mx_result	r[COUNT(all_workers)];
} row;

static void
print_block(const char *title, int way, row (*rows)[2], const bool *worker_done)
{
	int			last = COUNT(all_workers) - 1;

	if (!way_wanted(way))
		return;
	printf("\n%s, %s\n%-14s", title, ways[way], "Mops/s with");
	for (int w = 0; w <= last; w++)
		if (worker_done[w])
			printf(" %7d", all_workers[w]);
	printf("  | %d: %8s %8s %9s %11s %8s %8s\n", all_workers[last], "p50 us", "p99 us", "p99.9 us",
		   "max us", "min/mean", "min/max");
	for (int e = 0; e < nengines; e++)
	{
		ax_structure s = engines[e];
		const mx_result *r = rows[s][way].r;

		printf("%-14s", mr_engine(s));
		for (int w = 0; w <= last; w++)
			if (worker_done[w])
				printf(" %7.2f", r[w].mops);
		r += last;
		printf("  |     %8.2f %8.2f %9.1f %11.0f %8.2f %8.2f\n", r->p50, r->p99, r->p999, r->max,
			   r->slowest_to_mean, r->slowest_to_fastest);
	}
	fflush(stdout);
}

static void
mixes(void)
{
	/* a quick run leaves some out, never the last */
	const bool	worker_done[] = {true, true, !mr_quick(), true};
	const bool	reads_done[] = {true, !mr_quick(), true, !mr_quick(), true};
	static row	rows[MX_LOADS][COUNT(all_reads)][AX_STRUCTURES][2];
	double		bytes[AX_STRUCTURES][3];

	for (int e = 0; e < nengines; e++)
	{
		ax_structure s = engines[e];
		ax_tree_info ti;

		fprintf(stderr, "# mixes: %s\n", mr_engine(s));
		bytes[s][0] = mx_open(s, tap_page_size(), MX_UNIFORM, keys, 0);
		for (int load = MX_UNIFORM; load < MX_TAIL; load++)
			for (int i = 0; i < COUNT(all_reads); i++)
				for (int way = 0; way < 2; way++)
					for (int w = 0; w < COUNT(all_workers); w++)
					{
						mx_cell		c = {(mx_load) load, all_reads[i], all_workers[w], way, false,
						mix_seconds * stretch[w], 0};

						if (!way_wanted(way) || !worker_done[w] || !reads_done[i])
							continue;
						rows[load][i][s][way].r[w] = mx_run(&c);
						record("mixes", s, &c, "", &rows[load][i][s][way].r[w]);
					}
		mx_info(&ti);
		bytes[s][1] = (double) ti.bytes / (double) ti.entries;
		mx_close();
		for (int way = 0; way < 2; way++)
			for (int w = 0; w < COUNT(all_workers); w++)
			{
				mx_cell		c = {MX_TAIL, 0, all_workers[w], way, false,
				mix_seconds * stretch[w], 0};

				if (!way_wanted(way) || !worker_done[w])
					continue;
				mx_open(s, tap_page_size(), MX_TAIL, 0, 0);
				rows[MX_TAIL][0][s][way].r[w] = mx_run(&c);
				record("mixes", s, &c, "", &rows[MX_TAIL][0][s][way].r[w]);
				mx_info(&ti);
				bytes[s][2] = (double) ti.bytes / (double) ti.entries;
				mx_close();
			}
		for (int i = 0; i < 3; i++)
		{
			static const char *const when[] = {"uniform", "all mixes", "tail inserts"};

			mr_csv("mixes", "", when[i], -1, mr_engine(s), 0, "bytes a key",
				   bytes[s][i], "bytes");
		}
	}
	printf("\nMixes, %llu sparse keys, about %g s a cell; an update is one TID of the key inserted, and removed\n",
		   (unsigned long long) keys, mix_seconds);
	for (int load = MX_UNIFORM; load <= MX_TAIL; load++)
		for (int i = 0; i < COUNT(all_reads); i++)
			for (int way = 0; way < 2; way++)
			{
				char		title[80];

				if (load == MX_TAIL ? i > 0 : !reads_done[i])
					continue;
				if (load == MX_TAIL)
					snprintf(title, sizeof(title), "%s", mx_load_name[load]);
				else
					snprintf(title, sizeof(title), "%s, %d %% reads", mx_load_name[load], all_reads[i]);
				print_block(title, way, rows[load][i], worker_done);
			}
	printf("\n%-14s %14s %14s %14s\n", "bytes a key", "random inserts", "after mixes", "tail inserts");
	for (int e = 0; e < nengines; e++)
	{
		const double *b = bytes[engines[e]];

		printf("%-14s %14.1f %14.1f %14.1f\n", mr_engine(engines[e]), b[0], b[1], b[2]);
	}
}

int
main(int argc, char **argv)
{
	static char *all[] = {"goals", "pages", "ycsb", "mixes"};
	char	  **what = argc > 1 ? argv + 1 : all;
	int			n = argc > 1 ? argc - 1 : COUNT(all);

	keys = (uint64_t) mr_env("N", mr_quick() ? 3e5 : 1e7);
	mix_seconds = mr_env("MIX_SECONDS", mr_quick() ? 0.05 : 0.15);
	goal_seconds = mr_env("GOAL_SECONDS", mr_quick() ? 0.2 : 0.5);
	reps = (int) mr_env("REPS", mr_quick() ? 1 : 3);
	if (keys < 1000 || reps < 1 || reps > MAX_REPS)
		mr_die("N: at least 1000; REPS: 1 to %d", MAX_REPS);
	nengines = mr_engines(engines);
	mx_setup(keys);
	printf("%ld processors\n", sysconf(_SC_NPROCESSORS_ONLN));
	for (int i = 0; i < n; i++)
		if (strcmp(what[i], "goals") == 0)
		{
			tail_goals(false);
			tail_goals(true);
			skew_goals();
			printf("%d met, %d missed\n", met, missed);
		}
		else if (strcmp(what[i], "pages") == 0)
			pages();
		else if (strcmp(what[i], "ycsb") == 0)
			ycsb();
		else if (strcmp(what[i], "mixes") == 0)
			mixes();
		else
			mr_die("no part \"%s\": goals, pages, ycsb, mixes", what[i]);
	return 0;
}
