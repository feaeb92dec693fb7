/*
 * parallel_create.c
 *	  CREATE INDEX and REINDEX by several processes.
 *
 * Each participant reads its share of the table.  It sorts and writes out one
 * run after the other (sorted_run.c): keys, and a sample of them with its places.
 * From the samples the leader makes tasks, ranges of keys of about the same
 * size.  A participant that takes a task merges the keys that all runs have of
 * its range, and loads them, a batch at a time.
 *
 * Before that the leader loads the sample itself.  Then a participant finds,
 * for every few thousand keys of its range, one leaf that holds nothing else.
 * In its place it puts the nodes that a load makes of them all
 * (ax_load_share), beside the others, which do the same elsewhere.  Structures
 * without such a load are loaded by the leader alone, in as few batches as the
 * memory allows.
 *
 * Equal keys meet in one batch or at the seam of two.  A batch begins with the last
 * key of the one before, and a task looks at the first key behind its range.  So the
 * unique check compares neighbours only.
 *
 * src/build/README.md: Parallel builds
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "tcop/tcopprot.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "area/area.h"
#include "build/parallel_create.h"
#include "build/sorted_run.h"
#include "build/build.h"

#define KEY_SHARED		UINT64CONST(0xA500000000000001)
#define KEY_QUERY		UINT64CONST(0xA500000000000002)
#define KEY_WAL			UINT64CONST(0xA500000000000003)
#define KEY_BUFFER		UINT64CONST(0xA500000000000004)

#define SAMPLE_KEYS		128		/* every so manieth key of a run is of the sample */
#define SAMPLE_PARTS	128		/* and one each time that this part of a share was written */
#define SAMPLE_BYTES	((Size) 8 * 1024)	/* or so much, if that is more */
#define SAMPLE_CUT		64		/* a mark has at most this part of them of its key */
#define WRITE_BUF		((Size) 64 * 1024)
#define WINDOW_LEAST	((Size) 1024)
#define WINDOW_READ		((Size) BLCKSZ) /* buffile.c reads no less */
#define WINDOW_MOST		((Size) 64 * 1024)
#define BATCH_MOST		((Size) 16 * 1024 * 1024)

/* ---- the first phase: the table to sorted runs ---- */

static void
write_flush(Part *p)
{
	if (p->fill > 0)
		BufFileWrite(p->data, p->buf, p->fill);
	p->fill = 0;
}

/* The key goes to the sample, or as much of it as "cut" says, with the place of its record. */
static void
write_mark(Part *p, const uint8 *key, uint32 len, uint64 nth, Size cut, bool end)
{
	Mark		m;

	memset(&m, 0, sizeof(m));	/* it is written with its padding */
	m.off = p->off;
	m.nth = nth;
	m.full = len;
	m.len = Min(len, cut);
	m.end = end;
	BufFileWrite(p->sample, &m, sizeof(m));
	BufFileWrite(p->sample, unconstify(uint8 *, key), m.len);
}

/*
 * ArtRun.write: a sorted run to the files.  Later runs are sampled less, so
 * that the sample grows with the number of runs by its logarithm only.  Of long
 * keys there are more samples, since a task reads from one of them on.  Those have
 * only the beginning of a very long one.
 */
static void
write_run(ArtRun *run, const ax_keys *keys)
{
	Part	   *p = run->write_arg;
	uint64		step = (uint64) SAMPLE_KEYS * (p->nruns + 1);
	Size		share = (Size) maintenance_work_mem * 1024 / p->sh->participants;
	Size		most = Max(SAMPLE_BYTES, share / SAMPLE_PARTS);
	Size		cut = Max(LONG_LEN, most / SAMPLE_CUT);
	uint64		marked = p->off;

	if (keys->n == 0)
		return;
	if (p->data == NULL)
	{
		p->data = art_pfile_create(p, "data", p->number);
		p->sample = art_pfile_create(p, "sample", p->number);
		p->buf = MemoryContextAlloc(p->cxt, WRITE_BUF);
	}
	for (uint64 i = 0; i < keys->n; i++)
	{
		const uint8 *key = keys->p[i];
		uint32		l = ax_key_len(keys, i);
		Size		size = record_size(l);
		uint8	   *to;

		if (i % ART_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (i % step == 0 || p->off - marked >= most)
		{
			write_mark(p, key, l, i, cut, false);
			marked = p->off;
		}
		if (WRITE_BUF - p->fill < size)
			write_flush(p);
		to = p->buf + p->fill;
		if (l < LONG_LEN)
			*to++ = (uint8) l;
		else
		{
			*to++ = LONG_LEN;
			if (size > WRITE_BUF)
			{
				BufFileWrite(p->data, p->buf, 1);
				BufFileWrite(p->data, &l, sizeof(l));
				BufFileWrite(p->data, unconstify(uint8 *, key), l);
				p->off += size;
				continue;
			}
			memcpy(to, &l, sizeof(l));
			to += sizeof(l);
		}
		memcpy(to, key, l);
		p->fill += size;
		p->off += size;
	}
	write_flush(p);
	write_mark(p, keys->p[keys->n - 1], ax_key_len(keys, keys->n - 1), keys->n, cut, true);
	p->nruns++;
}

/* ArtRun.dead_file */
static BufFile *
dead_file(ArtRun *run)
{
	Part	   *p = run->write_arg;

	return art_pfile_create(p, "dead", p->number);
}

typedef struct ShareScan
{
	Part	   *p;
	ArtBuf		key;
	MemoryContext tmp;
	ArtLimit	limit;
	uint64		rows;
	uint64		bytes;
} ShareScan;

/* One row of the table: encode it and give it to the run. */
static void
scan_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive,
		 void *arg)
{
	ShareScan  *s = arg;
	MemoryContext old = MemoryContextSwitchTo(s->tmp);

	if (alive)
		art_check_btree_limit(s->p->heap, index, &s->limit, values, isnull, tid);
	(void) art_encode(s->p->kd, values, isnull, &s->key);
	MemoryContextSwitchTo(old);
	MemoryContextReset(s->tmp);
	s->rows++;
	s->bytes += s->key.len;
	art_run_add(s->p->run, s->key.data, s->key.len, art_tid_pack(tid), alive);
}

/* The parallel scan lies behind the rest. */
static inline Size
shared_size(int participants)
{
	return BUFFERALIGN(offsetof(Shared, unfinished) +
					   participants * sizeof(((Shared *) NULL)->unfinished[0]));
}

static inline ParallelTableScanDesc
shared_scan(Shared *sh)
{
	return (ParallelTableScanDesc) ((char *) sh + shared_size(sh->participants));
}

/*
 * Scan this participant's share of the table, sort it, write it, and tell the
 * others.
 *
 * Locks: takes the spinlock for a moment.
 */
static void
scan_share(Part *p)
{
	Shared	   *sh = p->sh;
	ShareScan	s = {.p = p};
	IndexInfo  *info = BuildIndexInfo(p->index);
	TableScanDesc scan;
	double		heap_rows;

	info->ii_Concurrent = sh->concurrent;
	s.limit = p->kd->fixed ? ART_LIMIT_NONE : ART_LIMIT_UNKNOWN;
	s.tmp = AllocSetContextCreate(p->cxt, "art build row", ALLOCSET_DEFAULT_SIZES);
	art_buf_init(&s.key, p->cxt, 64);
	scan = art_table_beginscan_parallel(p->heap, shared_scan(sh));
	heap_rows = art_build_heap_scan(p->heap, p->index, info, p->leads, scan_row, &s, scan);
	art_run_flush(p->run);
	if (p->data != NULL)
	{
		/* for others to read, and for us, too */
		BufFileExportFileSet(p->data);
		BufFileClose(p->data);
		BufFileExportFileSet(p->sample);
		BufFileClose(p->sample);
		pfree(p->buf);
	}
	art_run_release(p->run);
	MemoryContextDelete(s.tmp);

	SpinLockAcquire(&sh->mutex);
	sh->scanned++;
	sh->heap_rows += heap_rows;
	sh->rows += s.rows;
	sh->bytes += s.bytes;
	sh->broken_hot |= info->ii_BrokenHotChain;
	SpinLockRelease(&sh->mutex);
	ConditionVariableBroadcast(&sh->cv);
}

/* ---- the second phase: tasks to the tree ---- */

/*
 * Where one piece is being read.  A window has the bytes that come next.  It is
 * part of Part.windows, or an allocation of its own for a record that is longer.
 */
typedef struct Cursor
{
	const uint8 *at;
	const uint8 *end;			/* of what was read */
	uint8	   *window;
	Size		size;
	bool		own;
	BufFile    *file;
	uint64		off;			/* of what follows in the file */
	uint64		stop;			/* of the piece's end */
} Cursor;

/* Where a task ends, and the first key found there. */
typedef struct TaskEnd
{
	const uint8 *hi;			/* NULL: nowhere */
	uint32		hi_len;
	uint32		skip;			/* bytes that hi shares with what is before it */
	uint64		prefix;
	uint8	   *behind;			/* the smallest of those behind; NULL: none yet */
	uint32		behind_len;
} TaskEnd;

/* A task while it is done. */
typedef struct Task
{
	Part	   *p;
	TaskHead	h;
	Piece	   *piece;			/* h.npieces of them */
	Cursor	   *cursor;			/* of each */
	uint8	   *lo;				/* where it begins, h.lo_len bytes */
	TaskEnd		end;
	Merge		merge;
	uint64		carried;		/* keys of the batch that are the one before's, 0 or 1 */
	Size		batch;			/* bytes that a batch may take */
	uint64		read;
	Size		own;			/* bytes of the cursors' own windows */
	Size		most_own;
} Task;

/*
 * Read on, so that the window has at least "need" bytes.  False: the piece is at its end.
 */
static pg_noinline bool
cursor_fill(Task *t, Cursor *c, Size need)
{
	Size		left = c->end - c->at;
	Size		more;

	CHECK_FOR_INTERRUPTS();
	if (need > c->size)
	{
		uint8	   *window = MemoryContextAllocHuge(CurrentMemoryContext, need);

		memcpy(window, c->at, left);
		if (c->own)
			pfree(c->window);
		t->own += need - (c->own ? c->size : 0);
		t->most_own = Max(t->most_own, t->own);
		c->window = window;
		c->size = need;
		c->own = true;
	}
	else
		memmove(c->window, c->at, left);
	more = Min(c->size - left, c->stop - c->off);
	if (more > 0)
	{
		art_pfile_seek(t->p, c->file, c->off);
		art_pfile_read(t->p, c->file, c->window + left, more);
	}
	c->off += more;
	t->read += more;
	c->at = c->window;
	c->end = c->at + left + more;
	return more > 0;
}

/* Nothing more is wanted of the piece. */
static void
cursor_end(Task *t, Cursor *c)
{
	if (c->own)
	{
		t->own -= c->size;
		pfree(c->window);
	}
	c->own = false;
	c->at = c->end = NULL;
	c->off = c->stop;
}

/* A key behind the task: keep it if it is the smallest so far. */
static void
keep_behind(TaskEnd *l, const uint8 *key, uint32 len)
{
	if (l->behind != NULL && memcmp(key, l->behind, Min(len, l->behind_len)) >= 0)
		return;
	if (l->behind != NULL)
		pfree(l->behind);
	l->behind = MemoryContextAllocHuge(CurrentMemoryContext, len);
	memcpy(l->behind, key, len);
	l->behind_len = len;
}

/*
 * The next key of a piece, which stays until the one after it is asked for;
 * NULL: none before the limit.
 */
static inline const uint8 *
cursor_next(Task *t, Cursor *c, uint32 *len)
{
	const TaskEnd *l = &t->end;
	const uint8 *key;

	for (;;)
	{
		Size		have = c->end - c->at;
		Size		need = 1;

		if (have > 0)
		{
			*len = *c->at;
			need += *len;
			if (*len == LONG_LEN)
			{
				need = 1 + sizeof(*len);
				if (have >= need)
				{
					memcpy(len, c->at + 1, sizeof(*len));
					need += *len;
				}
			}
			if (have >= need)
			{
				c->at += need;
				key = c->at - *len;
				break;
			}
		}
		if (!cursor_fill(t, c, need))
		{
			cursor_end(t, c);
			return NULL;
		}
	}

	/* what is behind the limit need not share the bytes that are skipped */
	if (l->hi != NULL &&
		(art_key_head(key, *len, l->skip) >= l->prefix ||
		 memcmp(key, l->hi, Min(l->skip, *len)) != 0) &&
		memcmp(key, l->hi, Min(*len, l->hi_len)) >= 0)
	{
		keep_behind(&t->end, key, *len);
		cursor_end(t, c);
		return NULL;
	}
	return key;
}

/*
 * Did somebody find that nothing can be loaded any more?
 *
 * Locks: takes the spinlock for a moment.
 */
static bool
given_up(Part *p)
{
	Shared	   *sh = p->sh;

	SpinLockAcquire(&sh->mutex);
	sh->stale |= p->run->stale;
	p->run->stale = sh->stale;
	if (p->leads)
		sh->nomem |= p->run->nomem;
	else
		p->run->nomem |= sh->nomem;
	SpinLockRelease(&sh->mutex);
	return p->run->stale || p->run->nomem;
}

/*
 * Load keys that only this task has, n of p->keys from "from" on.  False: no
 * memory, and that is for the leader to look after.
 *
 * Epoch: enters and leaves, once per call of the core; checks for interrupts
 * between two.
 */
static bool
load_task_keys(Part *p, uint32 len, uint64 from, uint64 n)
{
	ArtRun	   *run = p->run;
	ax_keys		keys = {p->keys + from, len > 0 ? NULL : p->lens + from, len, n};

	if (p->sh->leader_loads)
	{
		art_run_load_keys(run, &keys);
		return true;
	}
	while (keys.n > 0)
	{
		ax_status	s;
		uint64		done,
					added;

		CHECK_FOR_INTERRUPTS();
		ART_CORE_BEGIN();
		s = ax_load_share(run->cx, run->tree, run->gen, &keys, run->fill, &done, &added);
		ART_CORE_END();
		keys = ax_keys_from(&keys, done, keys.n - done);
		switch (s)
		{
			case AX_OK:
				break;
			case AX_STALE:
				run->stale = true;
				return true;
			case AX_BUSY:
				art_busy();
				break;
			case AX_NOMEM:
				if (!p->leads)
					return false;
				if (!art_run_find_room(run))
					return true;
				break;
			default:
				art_unexpected(p->index, s, "a load");
		}
	}
	return true;
}

/* Reads what the leader wrote of a task, into the current memory context. */
static void
read_task(Part *p, uint32 number, Task *t)
{
	TaskHead   *h = &t->h;
	uint64		place;
	uint8	   *hi;

	art_pfile_seek(p, p->tasks, p->sh->directory + number * sizeof(uint64));
	art_pfile_read(p, p->tasks, &place, sizeof(place));
	art_pfile_seek(p, p->tasks, place);
	art_pfile_read(p, p->tasks, h, sizeof(*h));
	t->piece = palloc(Max(h->npieces, 1) * sizeof(Piece));
	t->cursor = palloc0(Max(h->npieces, 1) * sizeof(Cursor));
	t->merge.head = palloc(Max(h->npieces, 1) * sizeof(MergeHead));
	t->merge.skip = h->skip;
	art_pfile_read(p, p->tasks, t->piece, h->npieces * sizeof(Piece));
	t->lo = palloc(h->lo_len + 1);
	hi = palloc(h->hi_len + 1);
	art_pfile_read(p, p->tasks, t->lo, h->lo_len);
	art_pfile_read(p, p->tasks, hi, h->hi_len);
	if (h->hi_len > 0)
	{
		t->end.hi = hi;
		t->end.hi_len = h->hi_len;
		t->end.skip = h->skip;
		t->end.prefix = art_key_head(hi, h->hi_len, h->skip);
	}
}

/* Makes a part's memory, whose contents nobody needs any more, as large as that. */
static void
part_room(Part *p, uint8 **at, Size *size, Size want)
{
	if (want <= *size)
		return;
	if (*at)
		pfree(*at);
	*at = NULL;
	*at = MemoryContextAllocHuge(p->cxt, want);
	*size = want;
}

/*
 * Divides this participant's memory, and begins the merge.  All windows together
 * take a sixteenth of it, or up to half of it where they would be smaller than what
 * is read at once.  Of so many runs that not even the smallest windows fit, they take
 * more.  So do records that are longer than a window: each run has one in memory.
 */
static void
begin_pieces(Part *p, Task *t)
{
	Size		share = p->sh->leader_loads ? (Size) maintenance_work_mem * 1024 : p->run->limit;
	Size		n = Max(t->h.npieces, 1);
	Size		size = share / 16 / n;
	uint64		bytes = 0;

	if (size < WINDOW_READ)
		size = Min(WINDOW_READ, Max(share / 2 / n, WINDOW_LEAST));
	else
		size = Min(size / WINDOW_READ * WINDOW_READ, WINDOW_MOST);
	t->batch = share - Min(n * size, share / 2);
	if (!p->sh->leader_loads)
		t->batch = Min(t->batch, BATCH_MOST);
	part_room(p, &p->windows, &p->windows_size, n * size);
	for (uint32 i = 0; i < t->h.npieces; i++)
		bytes += t->piece[i].end - t->piece[i].begin;
	part_room(p, &p->batch, &p->batch_size, Max(Min(t->batch, bytes), 1));
	for (uint32 i = 0; i < t->h.npieces; i++)
	{
		const Piece *piece = &t->piece[i];
		Cursor	   *c = &t->cursor[i];
		const uint8 *key;
		uint32		l;

		c->window = p->windows + i * size;
		c->size = size;
		c->at = c->end = c->window;
		c->file = p->files[piece->file];
		c->off = piece->begin;
		c->stop = piece->end;
		do
			key = cursor_next(t, c, &l);
		while (key != NULL && t->h.lo_len > 0 &&
			   memcmp(key, t->lo, Min(l, t->h.lo_len)) < 0);
		if (key != NULL)
			merge_add(&t->merge, key, l, i);
	}
}

/* Makes p->keys and p->lens larger. */
static void
more_keys(Part *p)
{
	p->cap = p->cap == 0 ? 1024 : p->cap * 2;
	if (p->keys == NULL)
	{
		p->keys = MemoryContextAllocHuge(p->cxt, p->cap * sizeof(*p->keys));
		p->lens = MemoryContextAllocHuge(p->cxt, p->cap * sizeof(*p->lens));
	}
	else
	{
		p->keys = repalloc_huge(p->keys, p->cap * sizeof(*p->keys));
		p->lens = repalloc_huge(p->lens, p->cap * sizeof(*p->lens));
	}
}

/*
 * Merges the pieces to p->keys and p->lens, as many keys as a batch may have.
 * The last key of the batch before comes first.  Returns how many keys there are;
 * *len is their length, 0 when they differ in it.
 */
static uint64
merge_batch(Part *p, Task *task, uint32 *len)
{
	Merge		m = task->merge;
	uint64		n = task->carried;
	Size		used = n > 0 ? p->lens[0] : 0;
	uint64		last_prefix = n > 0 ? art_key_head(p->keys[0], p->lens[0], m.skip) : 0;
	bool		uniform = true;

	while (m.n > 0)
	{
		MergeHead	t = m.head[0];
		const uint8 *key;
		uint32		l;

		if (n % ART_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		/* two members of one HOT chain can come under one root */
		if (n == 0 || t.prefix != last_prefix || p->lens[n - 1] != t.len ||
			memcmp(p->keys[n - 1], t.key, t.len) != 0)
		{
			if (used + t.len + (n + 1) * ART_TASK_KEY > task->batch && n > task->carried)
				break;
			if (n == p->cap)
				more_keys(p);
			if (used + t.len > p->batch_size)
			{
				/* one key that is longer than any batch */
				Assert(n == task->carried);
				p->batch_size = used + t.len;
				p->batch = repalloc_huge(p->batch, p->batch_size);
				p->keys[0] = p->batch;
			}
			uniform &= n == 0 || t.len == p->lens[n - 1];
			last_prefix = t.prefix;
			p->keys[n] = p->batch + used;
			p->lens[n++] = t.len;
			memcpy(p->batch + used, t.key, t.len);
			used += t.len;
		}
		key = cursor_next(task, &task->cursor[t.from], &l);
		merge_next(&m, key, key ? l : 0);
	}
	*len = n > 0 && uniform ? p->lens[0] : 0;
	task->merge = m;
	return n;
}

/* The last of n keys, to be compared with what follows, is the next batch's first. */
static void
carry_key(Part *p, Task *t, uint64 n)
{
	p->lens[0] = p->lens[n - 1];
	memmove(p->batch, p->keys[n - 1], p->lens[0]);
	p->keys[0] = p->batch;
	t->carried = 1;
}

/*
 * The last key of a task against the first behind it.
 */
static void
check_seam(Part *p, const Task *t, uint64 n)
{
	const uint8 *pair[2] = {p->keys[n - 1], t->end.behind};
	uint32		pair_len[2] = {p->lens[n - 1], t->end.behind_len};

	art_run_check_unique(p->run, &(ax_keys) {pair, pair_len, 0, 2});
}

/*
 * Merge what all runs have of the task's range, a batch at a time, check it, and load
 * it.  False: see load_keys; the leader does all of the task again.
 */
static bool
do_task(Part *p, uint32 number)
{
	Shared	   *sh = p->sh;
	MemoryContext cxt = AllocSetContextCreate(p->cxt, "art build task",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	Task		t = {.p = p};
	uint64		done = 0;
	bool		ok = true;

	read_task(p, number, &t);
	begin_pieces(p, &t);
	while (ok && t.merge.n > 0)
	{
		uint32		len;
		uint64		n = merge_batch(p, &t, &len);
		uint64		fresh = n - t.carried;
		bool		load = !given_up(p);

		/* what is not to be unique has nothing to be checked */
		if (!load && !sh->unique)
			break;
		if (p->run->check_unique)
		{
			art_run_check_unique(p->run, &(ax_keys) {p->keys, len > 0 ? NULL : p->lens, len, n});
			if (t.merge.n == 0 && t.end.behind != NULL)
				check_seam(p, &t, n);
		}
		if (load && fresh > 0)
			ok = load_task_keys(p, len, t.carried, fresh);
		done += fresh;
		pg_atomic_fetch_add_u64(&sh->done, fresh);
		if (p->leads)
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
										 pg_atomic_read_u64(&sh->done));
		carry_key(p, &t, n);
	}
	elog(DEBUG1, "artidx: a task of the build reads " UINT64_FORMAT " bytes and holds %zu",
		 t.read, p->windows_size + t.most_own + p->batch_size +
		 (Size) p->cap * (sizeof(*p->keys) + sizeof(*p->lens)));
	if (!ok)
		pg_atomic_fetch_sub_u64(&sh->done, done);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	(void) given_up(p);
	return ok;
}

/*
 * Take tasks until there are no more.
 *
 * Locks: takes the spinlock for a moment; tasks are given out by an atomic
 * counter.
 */
static void
do_tasks(Part *p)
{
	Shared	   *sh = p->sh;

	while (!sh->leader_loads || p->leads)
	{
		uint32		t = pg_atomic_fetch_add_u32(&sh->next_task, 1);

		if (t >= sh->ntasks)
			break;

		/* what is not to be unique has nothing to be checked */
		if (given_up(p) && !sh->unique)
			break;
		if (!do_task(p, t))
		{
			sh->unfinished[p->number].task = t;
			break;
		}
	}
	SpinLockAcquire(&sh->mutex);
	sh->loaded++;
	SpinLockRelease(&sh->mutex);
	ConditionVariableBroadcast(&sh->cv);
}

/* ---- participants ---- */

/* Begin this process's part: the leader's if "number" is 0. */
static void
part_begin(Part *p, Shared *sh, int number, Relation heap, Relation index)
{
	memset(p, 0, sizeof(*p));
	p->sh = sh;
	p->number = number;
	p->leads = number == 0;
	p->heap = heap;
	p->index = index;
	p->cxt = AllocSetContextCreate(CurrentMemoryContext, "art parallel build",
								   ALLOCSET_DEFAULT_SIZES);
	p->kd = art_keydesc_build(index, p->cxt);
	p->run = art_run_begin(index, p->kd, sh->gen, sh->entry, sh->unique, heap,
						   p->leads ? ART_ROOM_AMBUILD : ART_ROOM_NONE);
	p->run->limit = (Size) maintenance_work_mem * 1024 / sh->participants;
	p->run->at_once = true;
	p->run->write = write_run;
	p->run->write_arg = p;
	p->run->dead_file = dead_file;
}

/* The tasks are made: what they are read from. */
static void
part_open(Part *p)
{
	Shared	   *sh = p->sh;

	p->run->write = NULL;
	p->run->distinct = true;
	p->nfiles = sh->participants;
	p->files = MemoryContextAllocZero(p->cxt, p->nfiles * sizeof(BufFile *));
	if (sh->leader_loads && !p->leads)
		return;
	for (int i = 0; i < p->nfiles; i++)
		p->files[i] = art_pfile_open(p, "data", i);
	p->tasks = art_pfile_open(p, "tasks", 0);
}

/* Close the files that part_open() opened. */
static void
part_end(Part *p)
{
	for (int i = 0; i < p->nfiles; i++)
		if (p->files[i])
			BufFileClose(p->files[i]);
	if (p->tasks)
		BufFileClose(p->tasks);
	p->nfiles = 0;
	p->tasks = NULL;
}

/*
 * In the leader: until this many participants are through with a phase.  In a
 * worker: until the leader says so.
 *
 * Locks: takes the spinlock for a moment, before each sleep.
 */
static void
wait_for(Shared *sh, Phase phase, int want)
{
	ConditionVariablePrepareToSleep(&sh->cv);
	for (;;)
	{
		bool		there;

		SpinLockAcquire(&sh->mutex);
		if (want == 0)
			there = sh->phase >= phase;
		else
			there = (phase == PHASE_SCAN ? sh->scanned : sh->loaded) >= want;
		SpinLockRelease(&sh->mutex);
		if (there)
			break;
		ConditionVariableSleep(&sh->cv, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	}
	ConditionVariableCancelSleep();
}

/*
 * For the leader: let the workers go on to the next phase.
 *
 * Locks: takes the spinlock for a moment.
 */
static void
set_phase(Shared *sh, Phase phase)
{
	SpinLockAcquire(&sh->mutex);
	sh->phase = phase;
	SpinLockRelease(&sh->mutex);
	ConditionVariableBroadcast(&sh->cv);
}

/*
 * Locks: takes the leader's locks on table and index again, as a member of its
 * lock group, and gives them back.
 */
void
art_pbuild_main(dsm_segment *seg, shm_toc *toc)
{
	Shared	   *sh = shm_toc_lookup(toc, KEY_SHARED, false);
	LOCKMODE	heap_lock = sh->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = sh->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	Relation	heap,
				index;
	WalUsage   *wal;
	BufferUsage *buffer;
	Part		p;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	heap = table_open(sh->heapid, heap_lock);
	index = index_open(sh->indexid, index_lock);
	SharedFileSetAttach(&sh->files, seg);
	InstrStartParallelQuery();

	part_begin(&p, sh, ParallelWorkerNumber + 1, heap, index);
	scan_share(&p);
	wait_for(sh, PHASE_LOAD, 0);
	part_open(&p);
	do_tasks(&p);
	if (p.run->dead != NULL)
	{
		uint64		rows = p.run->ndead;

		/* a load is of an empty tree; and whatever the leader found out */
		wait_for(sh, PHASE_DEAD, 0);
		if (!given_up(&p))
		{
			art_run_flush_dead(p.run);
			/* the leader, which reads this when we have finished, may find room */
			if (p.run->nomem)
				sh->unfinished[p.number].dead = rows;
		}
		(void) given_up(&p);
	}
	part_end(&p);
	(void) art_run_end(p.run);

	wal = shm_toc_lookup(toc, KEY_WAL, false);
	buffer = shm_toc_lookup(toc, KEY_BUFFER, false);
	InstrEndParallelQuery(&buffer[ParallelWorkerNumber], &wal[ParallelWorkerNumber]);

	index_close(index, index_lock);
	table_close(heap, heap_lock);
}

/* ---- the leader ---- */

/*
 * How many workers to ask for.  Up to 16 the server plans them for nbtree
 * only, in index_build, and there only where it may.  Otherwise only the
 * re-initialisation of an index whose table is empty comes here.
 */
int
art_pbuild_workers(Relation heap, Relation index, const IndexInfo *info)
{
#if PG_VERSION_NUM >= 170000
	return info->ii_ParallelWorkers;
#else
	int			n = 0;

	if (IsNormalProcessingMode() && !IsInParallelMode() &&
		RelationGetNumberOfBlocks(heap) > 0)
		n = plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index));
	if (n > 0)
		ereport(DEBUG1,
				(errmsg_internal("building index \"%s\" on table \"%s\" with request for %d parallel workers",
								 RelationGetRelationName(index),
								 RelationGetRelationName(heap), n)));
	return n;
#endif
}

/* A parallel build, as the leader has it. */
typedef struct Team
{
	ParallelContext *pcxt;
	Snapshot	snapshot;
	int			workers;		/* asked for */
	Shared	   *sh;
	WalUsage   *wal;
	BufferUsage *buffer;
} Team;

/* Ends parallel mode; the workers are done, or there never were any. */
static void
team_end(Team *t)
{
	if (IsMVCCSnapshot(t->snapshot))
		UnregisterSnapshot(t->snapshot);
	DestroyParallelContext(t->pcxt);
	ExitParallelMode();
}

/*
 * Sets what the participants share, but for entry and generation.
 *
 * Locks: initializes the spinlock.
 */
static void
team_share(Team *t, Relation heap, Relation index, const IndexInfo *info, Size size)
{
	Shared	   *sh = shm_toc_allocate(t->pcxt->toc, size);
	uint32		page_size;

	memset(sh, 0, shared_size(t->workers + 1));
	sh->heapid = RelationGetRelid(heap);
	sh->indexid = RelationGetRelid(index);
	sh->concurrent = info->ii_Concurrent;
	sh->unique = info->ii_Unique;
	sh->participants = t->workers + 1;
	ConditionVariableInit(&sh->cv);
	SpinLockInit(&sh->mutex);
	pg_atomic_init_u32(&sh->next_task, 0);
	pg_atomic_init_u64(&sh->done, 0);
	for (int i = 0; i <= t->workers; i++)
		sh->unfinished[i].task = NO_TASK;
	sh->leader_loads =
		!ax_can_load_share(art_engine((const ArtOptions *) index->rd_options, &page_size));
	SharedFileSetInit(&sh->files, t->pcxt->seg);
	table_parallelscan_initialize(heap, shared_scan(sh), t->snapshot);
	shm_toc_insert(t->pcxt->toc, KEY_SHARED, sh);
	t->sh = sh;
}

/*
 * Enters parallel mode and prepares the segment for so many workers.  False:
 * there is no segment to be had, and parallel mode is left again.
 */
static bool
team_begin(Team *t, Relation heap, Relation index, const IndexInfo *info, int workers)
{
	Size		query_len = debug_query_string ? strlen(debug_query_string) + 1 : 0;
	ParallelContext *pcxt;
	Size		size;

	EnterParallelMode();
	pcxt = CreateParallelContext("artidx", "art_pbuild_main", workers);
	t->pcxt = pcxt;
	t->workers = workers;
	t->snapshot = SnapshotAny;
	if (info->ii_Concurrent)
		t->snapshot = RegisterSnapshot(GetTransactionSnapshot());

	size = shared_size(workers + 1) + table_parallelscan_estimate(heap, t->snapshot);
	shm_toc_estimate_chunk(&pcxt->estimator, size);
	shm_toc_estimate_chunk(&pcxt->estimator, mul_size(sizeof(WalUsage), pcxt->nworkers));
	shm_toc_estimate_chunk(&pcxt->estimator, mul_size(sizeof(BufferUsage), pcxt->nworkers));
	shm_toc_estimate_chunk(&pcxt->estimator, query_len);
	shm_toc_estimate_keys(&pcxt->estimator, 4);
	InitializeParallelDSM(pcxt);
	if (pcxt->seg == NULL)
	{
		team_end(t);
		return false;
	}

	team_share(t, heap, index, info, size);
	if (query_len > 0)
	{
		char	   *query = shm_toc_allocate(pcxt->toc, query_len);

		memcpy(query, debug_query_string, query_len);
		shm_toc_insert(pcxt->toc, KEY_QUERY, query);
	}
	t->wal = shm_toc_allocate(pcxt->toc, mul_size(sizeof(WalUsage), pcxt->nworkers));
	shm_toc_insert(pcxt->toc, KEY_WAL, t->wal);
	t->buffer = shm_toc_allocate(pcxt->toc, mul_size(sizeof(BufferUsage), pcxt->nworkers));
	shm_toc_insert(pcxt->toc, KEY_BUFFER, t->buffer);
	return true;
}

/*
 * The leader's part while the workers do theirs: its share of the table, the
 * tasks, and its share of them.  Then those for which a worker found no memory.
 */
static void
team_lead(Team *t, Part *p, Relation heap, Relation index)
{
	Shared	   *sh = t->sh;
	int			participants = t->pcxt->nworkers_launched + 1;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
								 ART_PHASE_HEAP_SCAN);
	part_begin(p, sh, 0, heap, index);
	p->run->limit = (Size) maintenance_work_mem * 1024 / participants;
	scan_share(p);

	/* one that could not start would be waited for in vain */
	WaitForParallelWorkersToAttach(t->pcxt);
	wait_for(sh, PHASE_SCAN, participants);
	{
		const int	what[] = {
			PROGRESS_CREATEIDX_SUBPHASE,
			PROGRESS_CREATEIDX_TUPLES_TOTAL,
			PROGRESS_SCAN_BLOCKS_TOTAL,
			PROGRESS_SCAN_BLOCKS_DONE
		};
		const int64 value[] = {ART_PHASE_LOAD, sh->rows, 0, 0};

		pgstat_progress_update_multi_param(lengthof(what), what, value);
	}

	art_pbuild_tasks(p, sh->participants);
	(void) given_up(p);
	set_phase(sh, PHASE_LOAD);
	part_open(p);
	do_tasks(p);
	wait_for(sh, PHASE_LOAD, participants);

	/* for want of memory, which only the leader can do something about */
	for (int i = 1; i <= t->workers; i++)
		if (sh->unfinished[i].task != NO_TASK)
			(void) do_task(p, sh->unfinished[i].task);
	set_phase(sh, PHASE_DEAD);
	if (!given_up(p))
		art_run_flush_dead(p->run);
	part_end(p);
}

/* The workers are done: what they could not do, and what came of it all. */
static void
team_result(Team *t, Part *p, IndexInfo *info, ArtPBuilt *out)
{
	Shared	   *sh = t->sh;

	/* dead rows for which a worker found no memory: all of its again */
	for (int i = 1; i <= t->workers; i++)
		if (sh->unfinished[i].dead > 0 && !given_up(p))
		{
			p->run->dead = art_pfile_open(p, "dead", i);
			p->run->ndead = sh->unfinished[i].dead;
			art_run_flush_dead(p->run);
		}
	(void) given_up(p);
	out->heap_rows = sh->heap_rows;
	out->rows = sh->rows;
	out->bytes = sh->bytes;
	out->stale = sh->stale;
	out->nomem = sh->nomem;
	info->ii_BrokenHotChain |= sh->broken_hot;
	p->run->stale = true;		/* nothing more to be loaded */
	(void) art_run_end(p->run);
	MemoryContextDelete(p->cxt);
}

/*
 * Locks: the caller has table and index locked.
 */
bool
art_pbuild(Relation heap, Relation index, IndexInfo *info, ArtEntry *e, uint64 gen,
		   int workers, ArtPBuilt *out)
{
	Team		t;
	Part		p;
	bool		any;

	if (!team_begin(&t, heap, index, info, workers))
		return false;
	t.sh->entry = e;
	t.sh->gen = gen;

	LaunchParallelWorkers(t.pcxt);
	any = t.pcxt->nworkers_launched > 0;
	if (any)
		team_lead(&t, &p, heap, index);
	WaitForParallelWorkersToFinish(t.pcxt);
	for (int i = 0; i < t.pcxt->nworkers_launched; i++)
		InstrAccumParallelQuery(&t.buffer[i], &t.wal[i]);
	if (any)
		team_result(&t, &p, info, out);
	team_end(&t);
	return any;
}
