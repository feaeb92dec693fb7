/*
 * parallel_tasks.c
 *	  The temporary files of a parallel build, and the tasks into which its leader
 *	  divides the runs in them.
 *
 * src/build/README.md: Parallel builds
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "area/area.h"
#include "build/parallel_create.h"
#include "build/sorted_run.h"
#include "build/build.h"

#define TASK_LEAST		((Size) 1024 * 1024)	/* memory of a task's keys */
#define TASKS_EACH		8		/* so many a participant, if they can be so small */

/* ---- files ---- */

static void
file_name(char *name, const char *what, int number)
{
	snprintf(name, MAXPGPATH, "%s.%d", what, number);
}

BufFile *
art_pfile_create(Part *p, const char *what, int number)
{
	char		name[MAXPGPATH];
	MemoryContext old = MemoryContextSwitchTo(p->cxt);
	BufFile    *f;

	file_name(name, what, number);
	f = BufFileCreateFileSet(&p->sh->files.fs, name);
	MemoryContextSwitchTo(old);
	return f;
}

/* NULL: there is none, since its participant had nothing to write. */
BufFile *
art_pfile_open(Part *p, const char *what, int number)
{
	char		name[MAXPGPATH];
	MemoryContext old = MemoryContextSwitchTo(p->cxt);
	BufFile    *f;

	file_name(name, what, number);
	f = BufFileOpenFileSet(&p->sh->files.fs, name, O_RDONLY, true);
	MemoryContextSwitchTo(old);
	return f;
}

void
art_pfile_read(Part *p, BufFile *f, void *to, Size n)
{
	size_t		got = BufFileRead(f, to, n);

	if (got != n)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read temporary file of the build of index \"%s\": read only %zu of %zu bytes",
						RelationGetRelationName(p->index), got, n)));
}

void
art_pfile_seek(Part *p, BufFile *f, uint64 off)
{
	/* an offset of any size counts from the first file: buffile.c finds the segment */
	if (BufFileSeek(f, 0, (off_t) off, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file of the build of index \"%s\"",
						RelationGetRelationName(p->index))));
}

static uint32
shared_bytes(const uint8 *a, uint32 alen, const uint8 *b, uint32 blen)
{
	uint32		most = Min(alen, blen);
	uint32		k = 0;

	while (k < most && a[k] == b[k])
		k++;
	return k;
}

/* ---- tasks, which the leader makes ---- */

typedef struct TaskPlan
{
	Part	   *p;
	Merge		merge;
	int			nruns;
	int			runs_cap;
	struct TaskRun
	{
		uint32		file;
		uint32		nmarks;		/* the one at its end not counted */
		uint32		pos;		/* marks that have been merged */
		uint32		seam;		/* of them, before the last seam */
		uint32		cap;
		Mark	   *mark;
		const uint8 **key;
	}		   *run;
	const uint8 *first;			/* of all keys */
	const uint8 *last;
	uint32		first_len;
	uint32		last_len;
	uint64		nmarks;			/* of all runs */
	uint64		cost;			/* of all keys */
	uint64		steps;			/* of those between two marks, one such step of each run */
	const uint8 **keys;			/* of the marks that have all of theirs, merged */
	uint32	   *lens;
	uint64		nkeys;

	/* the task that grows */
	const uint8 *lo;
	uint32		lo_len;
	Piece	   *piece;
	uint64	   *places;
	uint32		ntasks;
	uint32		cap;
} TaskPlan;

/* Memory that the keys from one mark of a run to another take in a task. */
static inline uint64
marks_cost(const struct TaskRun *r, uint32 from, uint32 to)
{
	return r->mark[to].off - r->mark[from].off +
		(r->mark[to].nth - r->mark[from].nth) * ART_TASK_KEY;
}

/* Memory that a mark takes: in the plan, the tasks' sample and the allocator. */
static inline Size
mark_size(const Mark *m)
{
	return sizeof(Mark) + m->len + 2 * sizeof(uint8 *) + sizeof(uint32) + 2 * MAXIMUM_ALIGNOF;
}

/*
 * Drop every second mark of each run, but for its first and its end.  Returns
 * how much memory that frees.
 */
static Size
plan_thin(TaskPlan *pl)
{
	Size		freed = 0;

	for (int i = 0; i < pl->nruns; i++)
	{
		struct TaskRun *r = &pl->run[i];
		uint32		kept = 0;

		for (uint32 k = 0; k < r->nmarks; k++)
		{
			if (k % 2 == 0)
			{
				r->mark[kept] = r->mark[k];
				r->key[kept++] = r->key[k];
				continue;
			}
			freed += mark_size(&r->mark[k]);
			pfree(unconstify(uint8 *, r->key[k]));
		}
		r->mark[kept] = r->mark[r->nmarks];
		r->key[kept] = r->key[r->nmarks];
		r->nmarks = kept;
	}
	return freed;
}

/* A new run, whose marks follow. */
static struct TaskRun *
plan_run(TaskPlan *pl, uint32 file)
{
	struct TaskRun *r;

	if (pl->nruns == pl->runs_cap)
	{
		pl->runs_cap = pl->runs_cap == 0 ? 16 : pl->runs_cap * 2;
		pl->run = pl->run == NULL ? palloc(pl->runs_cap * sizeof(*pl->run)) :
			repalloc_huge(pl->run, pl->runs_cap * sizeof(*pl->run));
	}
	r = &pl->run[pl->nruns++];
	memset(r, 0, sizeof(*r));
	r->file = file;
	return r;
}

/* One mark more of a run. */
static void
plan_mark(struct TaskRun *r, const Mark *m, const uint8 *key)
{
	if (r->cap == 0)
	{
		r->cap = 8;
		r->mark = palloc(r->cap * sizeof(Mark));
		r->key = palloc(r->cap * sizeof(uint8 *));
	}
	else if (r->nmarks == r->cap)
	{
		r->cap *= 2;
		r->mark = repalloc_huge(r->mark, r->cap * sizeof(Mark));
		r->key = repalloc_huge(r->key, r->cap * sizeof(uint8 *));
	}
	r->mark[r->nmarks] = *m;
	r->key[r->nmarks] = key;
	r->nmarks += !m->end;
}

/*
 * Read everybody's sample, or as many marks as fit into maintenance_work_mem, of which
 * nobody else holds any now.  A mark is a place for a seam, and another does as well.
 */
static void
plan_read(TaskPlan *pl, int participants)
{
	Part	   *p = pl->p;
	uint64		every = 1;		/* so manieth mark of a run is kept */
	Size		held = 0;
	Size		most = 0;

	for (int i = 0; i < participants; i++)
	{
		BufFile    *f = art_pfile_open(p, "sample", i);
		struct TaskRun *r = NULL;
		uint64		nth = 0;	/* mark of the run */
		Mark		m;
		size_t		got;

		if (f == NULL)
			continue;
		while ((got = BufFileRead(f, &m, sizeof(m))) == sizeof(m))
		{
			uint8	   *key = palloc(m.len);
			Size		freed;

			CHECK_FOR_INTERRUPTS();
			art_pfile_read(p, f, key, m.len);
			if (r == NULL)
			{
				r = plan_run(pl, i);
				nth = 0;
			}
			if (nth++ % every != 0 && !m.end)
			{
				pfree(key);
				continue;
			}
			plan_mark(r, &m, key);
			held += mark_size(&m);
			most = Max(most, held);
			if (!m.end)
				continue;
			r = NULL;
			while (held > (Size) maintenance_work_mem * 1024 && (freed = plan_thin(pl)) > 0)
			{
				held -= freed;
				every *= 2;
			}
		}
		if (got != 0 || r != NULL)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read temporary file of the build of index \"%s\": read only %zu of %zu bytes",
							RelationGetRelationName(p->index), got, sizeof(m))));
		BufFileClose(f);
	}
	elog(DEBUG1, "artidx: the marks of the build take %zu bytes", most);
}

/*
 * Merge the samples of all runs.
 */
static void
plan_merge(TaskPlan *pl)
{
	Merge	   *m = &pl->merge;

	m->head = palloc(Max(pl->nruns, 1) * sizeof(MergeHead));
	for (int i = 0; i < pl->nruns; i++)
	{
		struct TaskRun *r = &pl->run[i];

		pl->nmarks += r->nmarks;
		pl->cost += marks_cost(r, 0, r->nmarks);
		pl->steps += marks_cost(r, 0, r->nmarks) / r->nmarks;
		merge_add(m, r->key[0], r->mark[0].len, i);
		if (pl->last == NULL ||
			memcmp(pl->last, r->key[r->nmarks],
				   Min(pl->last_len, r->mark[r->nmarks].len)) < 0)
		{
			pl->last = r->key[r->nmarks];
			pl->last_len = r->mark[r->nmarks].len;
		}
	}
	if (pl->nruns == 0)
		return;
	pl->first = m->head[0].key;
	pl->first_len = m->head[0].len;
	pl->keys = MemoryContextAllocHuge(CurrentMemoryContext, pl->nmarks * sizeof(uint8 *));
	pl->lens = MemoryContextAllocHuge(CurrentMemoryContext, pl->nmarks * sizeof(uint32));
}

/*
 * A seam, or the end (hi NULL): write the task that ends here.
 */
static void
plan_task(TaskPlan *pl, BufFile *f, uint64 *off, const uint8 *hi, uint32 hi_len)
{
	TaskHead	h = {.lo_len = pl->lo_len, .hi_len = hi_len};

	for (int i = 0; i < pl->nruns; i++)
	{
		struct TaskRun *r = &pl->run[i];
		Piece	   *c = &pl->piece[h.npieces];

		/*
		 * From a mark before lo.  One that is equal so far may be of a key
		 * behind lo, since marks need not have all of their keys.
		 */
		c->file = r->file;
		while (r->seam > 0 &&
			   memcmp(r->key[r->seam - 1], pl->lo,
					  Min(r->mark[r->seam - 1].len, pl->lo_len)) >= 0)
			r->seam--;
		c->begin = r->mark[r->seam > 0 ? r->seam - 1 : 0].off;

		/* to hi, or one key behind it, to which the last one is compared */
		c->end = r->mark[r->pos].off;
		if (r->pos < r->nmarks && pl->p->sh->unique)
			c->end += record_size(r->mark[r->pos].full);
		r->seam = r->pos;
		if (c->end > c->begin)
			h.npieces++;
	}
	h.skip = shared_bytes(pl->lo ? pl->lo : pl->first, pl->lo ? pl->lo_len : pl->first_len,
						  hi ? hi : pl->last, hi ? hi_len : pl->last_len);

	if (pl->ntasks == pl->cap)
	{
		pl->cap = pl->cap == 0 ? 64 : pl->cap * 2;
		pl->places = pl->places == NULL ? palloc(pl->cap * sizeof(uint64)) :
			repalloc_huge(pl->places, pl->cap * sizeof(uint64));
	}
	pl->places[pl->ntasks++] = *off;
	BufFileWrite(f, &h, sizeof(h));
	BufFileWrite(f, pl->piece, h.npieces * sizeof(Piece));
	if (pl->lo_len)
		BufFileWrite(f, unconstify(uint8 *, pl->lo), pl->lo_len);
	if (hi_len)
		BufFileWrite(f, unconstify(uint8 *, hi), hi_len);
	*off += sizeof(h) + h.npieces * sizeof(Piece) + pl->lo_len + hi_len;
	pl->lo = hi;
	pl->lo_len = hi_len;
}

/*
 * Load the sample, so that every participant finds its places.
 *
 * Epoch: enters and leaves, once a try; checks for interrupts between two.
 */
static void
plan_load_sample(TaskPlan *pl)
{
	Part	   *p = pl->p;
	ArtRun	   *run = p->run;
	ax_keys		keys = {pl->keys, pl->lens, 0, pl->nkeys};
	ax_status	s;

	do
	{
		CHECK_FOR_INTERRUPTS();
		ART_CORE_BEGIN();
		s = ax_load(run->cx, run->tree, run->gen, &keys, 0);
		ART_CORE_END();
		if (s == AX_BUSY)
			art_busy();
	} while (s == AX_BUSY || (s == AX_NOMEM && art_run_find_room(run)));
	switch (s)
	{
		case AX_OK:
		case AX_NOMEM:			/* the run knows */
		case AX_EXISTS:			/* too nested: shares go in beside whatever is
								 * there */
			break;
		case AX_STALE:
			run->stale = true;
			break;
		default:
			art_unexpected(p->index, s, "a load");
	}
}

/*
 * From runs to tasks.
 */
void
art_pbuild_tasks(Part *p, int participants)
{
	Shared	   *sh = p->sh;
	MemoryContext cxt = AllocSetContextCreate(p->cxt, "art build tasks",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	TaskPlan		pl = {.p = p};
	uint64		size;
	uint64		off = 0;
	uint64		grown = 0;
	BufFile    *f;

	plan_read(&pl, participants);
	plan_merge(&pl);
	f = art_pfile_create(p, "tasks", 0);

	/*
	 * Alone, the fewer the better, for only the first is a load.  Together, so
	 * many that all are busy to the end.  But each reads half a step of every
	 * run in vain, on average, and that is to be a quarter of its own at most.
	 */
	size = Max(pl.cost / ((uint64) participants * TASKS_EACH), TASK_LEAST);
	size = Max(size, 2 * pl.steps);
	if (pl.cost <= TASK_LEAST)
		sh->leader_loads = true;
	if (sh->leader_loads)
		size = PG_UINT64_MAX;

	if (pl.nruns > 0)
	{
		pl.piece = palloc0(pl.nruns * sizeof(Piece));
		while (pl.merge.n > 0)
		{
			MergeHead	h = pl.merge.head[0];
			struct TaskRun *r = &pl.run[h.from];
			uint64		k = pl.nkeys;

			/* marks of very long keys can be equal: such a seam parts nothing */
			if (grown >= size &&
				(pl.lo == NULL || memcmp(pl.lo, h.key, Min(pl.lo_len, h.len)) != 0))
			{
				plan_task(&pl, f, &off, h.key, h.len);
				grown = 0;
			}
			grown += marks_cost(r, r->pos, r->pos + 1);
			if (r->mark[r->pos++].full == h.len &&
				(k == 0 || pl.lens[k - 1] != h.len ||
				 memcmp(pl.keys[k - 1], h.key, h.len) != 0))
			{
				pl.keys[k] = h.key;
				pl.lens[k] = h.len;
				pl.nkeys++;
			}
			merge_next(&pl.merge, r->pos < r->nmarks ? r->key[r->pos] : NULL,
					   r->mark[r->pos].len);
		}
		plan_task(&pl, f, &off, NULL, 0);
		BufFileWrite(f, pl.places, pl.ntasks * sizeof(uint64));
		if (!sh->leader_loads && pl.nkeys > 0)
			plan_load_sample(&pl);
	}
	BufFileExportFileSet(f);
	BufFileClose(f);
	sh->ntasks = pl.ntasks;
	sh->directory = off;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}
