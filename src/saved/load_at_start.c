/*
 * load_at_start.c
 *	  Loading the structures that were saved at the last, clean, shutdown: a
 *	  background worker that lives for this only.
 *
 * The postmaster claimed the file and made the entries, BUILDING and marked as
 * loading, before any other process ran. save_at_shutdown.c argues why they may be
 * believed.  The worker fills one after the other, in the file's order, and
 * publishes it.  If anything goes wrong with one (a checksum, memory) that one
 * becomes ABSENT, and is rebuilt as after a crash.  However the worker ends,
 * what it has not published is ABSENT then.
 *
 * It is connected to no database, takes no heavyweight lock and evaluates
 * nothing.  So it is never part of a deadlock, and those who wait for it can
 * simply poll.
 *
 * src/saved/README.md: Saved files
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"

#include "live/background.h"
#include "saved/file_format.h"
#include "saved/saved.h"

#define ART_LOAD_LATE_MS		60000	/* after the server's start, if nobody does */
#define ART_LOAD_LEAST			((Size) 64 * 1024 * 1024)
#define ART_LOAD_ARENA			((Size) 4 * 1024 * 1024)

extern PGDLLEXPORT void art_loader_main(Datum arg);

bool		art_load_registered = false;	/* the server has a place for it */

/*
 * Make ABSENT what is marked as loading; nobody needs the file any more.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition locks, exclusive, one after the other.
 */
static void
discard_loading(void)
{
	ArtWalk		w = art_walk(LW_EXCLUSIVE, InvalidOid, InvalidOid);

	(void) unlink(ART_LOADING_FILE);
	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
		if (e->loading)
			(void) art_entry_absent(e, ART_WHY_RESTART, NULL);
	pg_atomic_write_u32(&art_shared->load_state, ART_LOAD_NOTHING);
}

void
art_load_expire(void)
{
	uint32		pending = ART_LOAD_PENDING;
	uint32		state = pg_atomic_read_u32(&art_shared->load_state);

	if (state == ART_LOAD_PENDING &&
		TimestampDifferenceExceeds(PgStartTime, GetCurrentTimestamp(),
								   ART_LOAD_LATE_MS) &&
		pg_atomic_compare_exchange_u32(&art_shared->load_state, &pending,
									   ART_LOAD_DONE))
		state = ART_LOAD_DONE;
	if (state == ART_LOAD_DONE)
		discard_loading();
}

/*
 * In the postmaster, while libraries are preloaded: the worker, if there is
 * a file.
 */
void
art_load_register(void)
{
	BackgroundWorker worker;

	if (IsBinaryUpgrade || access(ART_SAVED_FILE, F_OK) != 0)
		return;
	/* it starts no later than at the end of recovery, and a standby keeps no place for it */
	art_define_worker(&worker, "loader", "art_loader_main");
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	art_load_registered = art_register_worker(&worker);
}

/* ---- in the worker ---- */

/* Keys of one section that are in order and go to the core together. */
typedef struct Batch
{
	MemoryContext cxt;			/* of all below; emptied with the batch */
	const uint8 **keys;
	uint32	   *lens;			/* NULL: all are len bytes */
	uint32		len;
	uint64		n;
	uint64		cap;
	Size		used;
	uint8	   *arena;
	Size		arena_left;
} Batch;

typedef struct Loader
{
	int			fd;
	const ArtSavedHeader *h;
	Size		limit;			/* bytes of a batch */
	MemoryContext cxt;			/* of one section */
	ArtSavedBlock *block;		/* buffer: header and keys */
	Size		block_size;
	uint32	   *lens;			/* of the keys of a block */
	Size		lens_size;
	Batch		batch;
	uint8	   *last;			/* the key before, of an earlier batch */
	uint32		last_len;

	/* of the section */
	ArtEntry   *e;
	uint64		gen;
	int			fill;
	uint64		done;			/* keys handed to the core */
	bool		begun;			/* some are in the tree */

	/* of all */
	int			nloaded;
	uint64		nentries;
} Loader;

/*
 * Read the next block of the section and check it: false when it is damaged.
 */
static bool
read_block(Loader *l, const ArtSavedSection *s, uint32 section, uint32 number,
		   uint64 *off)
{
	Size		size;

	if (!art_saved_read_head(l->fd, l->h, s, section, number, off, l->block))
		return false;
	size = sizeof(ArtSavedBlock) + l->block->bytes;
	if (size > l->block_size)
	{
		l->block_size = size;
		l->block = repalloc(l->block, size);
	}
	return art_saved_read_keys(l->fd, l->block, off);
}

/*
 * Room for n more pointers, and for raw more bytes; the latter's address.
 */
static uint8 *
batch_room(Batch *t, uint32 n, uint32 raw)
{
	uint8	   *p;

	if (t->cap - t->n < n)
	{
		uint64		cap = Max(t->cap * 2, t->n + n);

		cap = Max(cap, 65536);
		if (t->keys == NULL)
			t->keys = MemoryContextAllocHuge(t->cxt, cap * sizeof(*t->keys));
		else
			t->keys = repalloc_huge(t->keys, cap * sizeof(*t->keys));
		if (t->lens)
			t->lens = repalloc_huge(t->lens, cap * sizeof(*t->lens));
		t->cap = cap;
	}
	if (t->arena_left < raw)
	{
		t->arena_left = Max(raw, ART_LOAD_ARENA);
		t->arena = MemoryContextAllocHuge(t->cxt, t->arena_left);
	}
	p = t->arena;
	t->arena += raw;
	t->arena_left -= raw;
	t->used += raw + (Size) n * (sizeof(*t->keys) + (t->lens ? sizeof(*t->lens) : 0));
	return p;
}

/* The batch has n more keys, of these lengths: an array only once they differ. */
static void
batch_add(Batch *t, const uint32 *lens, uint32 n)
{
	if (t->n == 0)
		t->len = lens[0];
	for (uint32 i = 0; t->lens == NULL && i < n; i++)
	{
		if (lens[i] == t->len)
			continue;
		t->lens = MemoryContextAllocHuge(t->cxt, t->cap * sizeof(*t->lens));
		for (uint64 k = 0; k < t->n; k++)
			t->lens[k] = t->len;
		t->used += t->n * sizeof(*t->lens);
	}
	if (t->lens)
		memcpy(t->lens + t->n, lens, n * sizeof(*lens));
	t->n += n;
}

/* The length of the batch's last key. */
static inline uint32
last_len(const Batch *t)
{
	return t->lens ? t->lens[t->n - 1] : t->len;
}

/*
 * The keys of the block into the batch.  False when the block is damaged.
 */
static bool
decode_block(Loader *l)
{
	Batch	   *t = &l->batch;
	const ArtSavedBlock *b = l->block;
	uint8	   *out = batch_room(t, b->nkeys, b->raw);
	const uint8 *prev = t->n > 0 ? t->keys[t->n - 1] : l->last;
	uint32		prev_len = t->n > 0 ? last_len(t) : l->last_len;

	if (b->nkeys > l->lens_size)
	{
		l->lens_size = b->nkeys;
		l->lens = repalloc_huge(l->lens, l->lens_size * sizeof(*l->lens));
	}
	if (!art_saved_get_keys(b, prev, prev_len, out, t->keys + t->n, l->lens))
		return false;
	batch_add(t, l->lens, b->nkeys);
	return true;
}

/*
 * Hand the batch to the core and empty it: the first of a section as one load,
 * if nobody has inserted anything yet.
 *
 * Epoch: enters and leaves, once per call of the core; checks for interrupts
 * between two.
 * Returns: AX_NOMEM, or AX_STALE if the generation is gone; then part of the
 * batch may be in the structure.
 */
static ax_status
push_batch(Loader *l)
{
	Batch	   *t = &l->batch;
	ax_ctx	   *cx = art_ctx();
	ax_tree    *tree = art_entry_tree(l->e);
	ax_keys		keys = {t->keys, t->lens, t->len, t->n};
	ax_status	s = AX_EXISTS;

	if (t->n == 0)
		return AX_OK;
	if (!l->begun)
	{
		do
		{
			CHECK_FOR_INTERRUPTS();
			ART_CORE_BEGIN();
			s = ax_load(cx, tree, l->gen, &keys, l->fill);
			ART_CORE_END();
		} while (s == AX_BUSY);
		l->begun = true;
	}
	if (s == AX_EXISTS)
	{
		/* beside those who insert, or behind what is there */
		s = AX_OK;
		for (uint64 i = 0; i < t->n;)
		{
			ax_keys		rest = ax_keys_from(&keys, i, keys.n - i);
			uint64		done,
						added;

			CHECK_FOR_INTERRUPTS();
			ART_CORE_BEGIN();
			s = ax_insert_sorted(cx, tree, l->gen, &rest, &done, &added);
			ART_CORE_END();
			i += done;
			if (s == AX_BUSY)
				s = AX_OK;
			if (s != AX_OK)
				break;
			pg_atomic_write_u64(&l->e->blocks_done, l->done + i);
		}
	}
	if (s != AX_OK)
		return s;
	l->done += t->n;
	pg_atomic_write_u64(&l->e->blocks_done, l->done);

	/* the last key, to which the next one is compared */
	l->last_len = last_len(t);
	if (l->last)
		pfree(l->last);
	l->last = MemoryContextAlloc(l->cxt, l->last_len);
	memcpy(l->last, t->keys[t->n - 1], l->last_len);

	MemoryContextReset(t->cxt);
	*t = (Batch)
	{
		.cxt = t->cxt
	};
	return AX_OK;
}

/*
 * Fill the structure.  AX_NOTFOUND: the file is damaged.
 */
static ax_status
load_section_keys(Loader *l, const ArtSavedSection *s, uint32 section)
{
	uint64		off = s->off;
	ax_status	st;

	for (uint32 number = 0; off < s->off + s->len; number++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!read_block(l, s, section, number, &off) || !decode_block(l))
			return AX_NOTFOUND;
		if (l->batch.used >= l->limit)
		{
			st = push_batch(l);
			if (st != AX_OK)
				return st;
		}
	}
	if (l->done + l->batch.n != s->entries)
		return AX_NOTFOUND;
	return push_batch(l);
}

/*
 * Load one index from its section of the file.
 *
 * Locks: takes the partition lock, shared, to find the entry; none while it
 * loads.
 */
static void
load_section(Loader *l, const ArtSavedSection *s, uint32 section)
{
	LWLock	   *lock;
	instr_time	start;
	instr_time	duration;
	ax_status	st;

	INSTR_TIME_SET_CURRENT(start);
	l->e = art_find_locked(s->indexoid, &s->loc, LW_SHARED, &lock);
	if (l->e != NULL)
	{
		uint64		w = pg_atomic_read_u64(&l->e->word);

		l->gen = ART_WORD_GEN(w);
		if (!l->e->loading || ART_WORD_STATE(w) != ART_BUILDING)
			l->e = NULL;		/* dropped, or made anew */
	}
	art_unlock(lock);
	if (l->e == NULL)
		return;

	l->fill = s->fill;
	l->done = 0;
	l->begun = false;
	l->last = NULL;
	l->last_len = 0;
	l->batch = (Batch)
	{
		.cxt = AllocSetContextCreate(l->cxt, "artidx loader batch",
									 ALLOCSET_DEFAULT_SIZES)
	};
	st = load_section_keys(l, s, section);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);

	/*
	 * From here to the end as for any build: the entry may be another's by
	 * now, and only the generation tells.
	 */
	switch (st)
	{
		case AX_OK:
			if (art_entry_publish_ready(l->e, l->gen, ART_BUILD_LOAD,
										INSTR_TIME_GET_MILLISEC(duration), false))
			{
				l->nloaded++;
				l->nentries += l->done;
				if (s->unchecked)
					art_ask(s->loc.db, ART_JOB_CHECK, 0);
			}
			break;
		case AX_STALE:
			break;
		case AX_NOMEM:
			art_entry_fail(l->e, l->gen, ART_WHY_MEMORY, "out of memory");
			ereport(LOG,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("artidx: no memory to load index %u of database %u",
							s->indexoid, s->loc.db)));
			art_ask(s->loc.db, ART_JOB_SCOUT, 0);	/* who knows its name tells it */
			break;
		default:
			art_entry_fail(l->e, l->gen, ART_WHY_RESTART, NULL);
			ereport(LOG,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("artidx: saved index %u of database %u is damaged and will be rebuilt",
							s->indexoid, s->loc.db)));
	}
}

/*
 * before_shmem_exit: what was not published is not loaded by anybody.
 */
static void
loader_exit(int code, Datum arg)
{
	pg_atomic_write_u32(&art_shared->load_state, ART_LOAD_DONE);
	discard_loading();
}

/*
 * Main function of the worker.
 */
void
art_loader_main(Datum arg)
{
	uint32		pending = ART_LOAD_PENDING;
	ArtSavedHeader h;
	ArtSavedSection *table;
	const char *why;
	Loader		l = {.h = &h};
	MemoryContext cxt;
	instr_time	start;
	instr_time	now;

	INSTR_TIME_SET_CURRENT(start);
	art_worker_begin();
	art_shared->load_slot = ART_MY_PROCNO();
	art_shared->load_pid = MyProcPid;
	pg_write_barrier();
	if (!pg_atomic_compare_exchange_u32(&art_shared->load_state, &pending,
										ART_LOAD_RUNNING))
		proc_exit(0);			/* nothing was claimed, or we are late */
	before_shmem_exit(loader_exit, (Datum) 0);
	(void) art_ctx();

	/*
	 * A server that was cleanly shut down does not recover, unless told to by
	 * files that were not there when the structures were claimed.  It may have
	 * been promoted since; then the timeline is another (see below).
	 */
	if (RecoveryInProgress())
		proc_exit(0);

	cxt = AllocSetContextCreate(TopMemoryContext, "artidx loader",
								ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(cxt);
	l.fd = art_saved_open(ART_LOADING_FILE, &h, &table, &why);
	if (l.fd < 0 || h.crc != art_shared->load_crc ||
		GetWALInsertionTimeLine() != h.timeline)
	{
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("artidx: file \"%s\" cannot be read and is not used",
						ART_LOADING_FILE)));
		proc_exit(0);
	}
	l.limit = Max((Size) maintenance_work_mem * 1024, ART_LOAD_LEAST);
	l.block_size = sizeof(ArtSavedBlock) + ART_BLOCK_BYTES * 2;
	l.block = palloc(l.block_size);
	l.lens_size = ART_BLOCK_BYTES / 8;
	l.lens = palloc(l.lens_size * sizeof(*l.lens));
	l.cxt = AllocSetContextCreate(cxt, "artidx loader section",
								  ALLOCSET_DEFAULT_SIZES);

	for (uint32 i = 0; i < h.nsections; i++)
	{
		char		text[64];

		CHECK_FOR_INTERRUPTS();
		snprintf(text, sizeof(text), "loading index %u", table[i].indexoid);
		set_ps_display(text);
		load_section(&l, &table[i], i);
		MemoryContextReset(l.cxt);
	}
	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	ereport(LOG,
			(errmsg("artidx: loaded %d of %u indexes, " UINT64_FORMAT " entries, in %.0f ms",
					l.nloaded, h.nsections, l.nentries, INSTR_TIME_GET_MILLISEC(now))));
	proc_exit(0);
}
