/*
 * sorted_run.c
 *	  Runs of sorted keys, of which ambuild and the rebuild fill a structure.
 *
 * A run collects encoded keys until maintenance_work_mem is full, sorts them
 * by a radix sort and hands them to the core.  The first run of a build is one
 * sorted load into the empty tree.  Every later one is a sorted insert, which
 * merges all keys of a leaf into it at once.
 *
 * Two layouts.  "Short": the key is one column of at most 8 bytes, so that an
 * item of two words holds all of it.  The keys are written out, in order, when
 * they are sorted.  "Long": the keys lie in chunks as they came, and an item
 * holds a pointer and the first 8 bytes that tell them apart.  Keys that are
 * compared have the long layout and are sorted by compared_sort.c.
 *
 * src/build/README.md: Builds
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "miscadmin.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "utils/backend_progress.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "area/shared_state.h"
#include "area/tree_calls.h"
#include "build/sorted_run.h"
#include "build/build.h"
#include "limits/limits.h"

#define ART_CHUNK_BYTES		((Size) 8 * 1024 * 1024)
#define ART_FIRST_CHUNK		((Size) 64 * 1024)

/*
 * Of memory that is large, and was just taken.  Small pages would be asked for one at a
 * time, and whoever reads such memory in any order would wait for the translation of an
 * address each time.
 */
void
art_ask_for_huge_pages(void *p, Size size)
{
#ifdef MADV_HUGEPAGE
	const uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
	/* whole pages at both ends: memory in one piece of the kernel's can grow where it is */
	uint8	   *from = (uint8 *) TYPEALIGN_DOWN(page, p);

	if (size >= ART_CHUNK_BYTES)
		(void) madvise(from, (uint8 *) TYPEALIGN(page, (uint8 *) p + size) - from, MADV_HUGEPAGE);
#endif
}

/* ---- collecting ---- */

/*
 * Begin.  check_unique: two live entries with the same key are an error; the
 * tree must then be nobody else's to write.
 */
ArtRun *
art_run_begin(Relation index, const ArtKeyDesc *kd, uint64 gen, ArtEntry *e,
			  bool check_unique, Relation heap, ArtRoomFor room)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext,
											  "art build run",
											  ALLOCSET_DEFAULT_SIZES);
	ArtRun	   *run = MemoryContextAllocZero(cxt, sizeof(ArtRun));

	run->index = index;
	run->heap = heap;
	run->kd = kd;
	run->entry = e;
	run->cx = art_ctx();
	run->tree = art_entry_tree(e);
	run->gen = gen;
	run->check_unique = check_unique;
	run->room = room;
	run->fill = art_fillfactor(index);
	run->cxt = cxt;
	run->limit = (Size) art_build_kb() * 1024;
	run->min_len = PG_UINT32_MAX;

	if (kd->natts == 1 && kd->fixed && kd->fixed_len <= 1 + sizeof(uint64) &&
		!kd->compared)
	{
		run->brief = true;
		run->width = kd->fixed_len - 1;
		/* item, and the key written out; its pointer replaces the item */
		run->per_item = sizeof(ArtItem) + kd->fixed_len + AX_TID_BYTES;
	}
	else
		run->per_item = sizeof(ArtItem) + sizeof(uint32);
	return run;
}

/*
 * A new item's place.
 */
static inline ArtItem *
art_run_item(ArtRun *run)
{
	if (unlikely(run->n == run->cap))
	{
		uint64		most = run->limit / run->per_item + 1;
		uint64		cap = run->cap == 0 ? 1024 : run->cap * 2;

		if (cap > most && most > run->cap)
			cap = most;
		if (run->items == NULL)
			run->items = MemoryContextAllocHuge(run->cxt, cap * sizeof(ArtItem));
		else
			run->items = repalloc_huge(run->items, cap * sizeof(ArtItem));
		art_ask_for_huge_pages(run->items, cap * sizeof(ArtItem));
		run->cap = cap;
	}
	return &run->items[run->n++];
}

/*
 * Long layout: the newest item's prefix, and what it has in common with the
 * others.  So nobody reads all keys once more before the sort.
 */
static inline void
art_run_head(ArtRun *run, ArtItem *it, const uint8 *key, uint32 len)
{
	const uint8 *first = (const uint8 *) (uintptr_t) run->items[0].rest;

	if (run->n == 1)
	{
		run->common = len;
		run->stale_heads = 0;
	}
	else if (len < run->common || memcmp(key, first, run->common) != 0)
	{
		uint32		k = 0;

		/* no key is a prefix of another */
		while (k < len && k < run->common && key[k] == first[k])
			k++;
		run->common = k;
		run->stale_heads = run->n - 1;
	}
	it->prefix = art_key_head(key, len, run->common);
}

/*
 * Room for a key of len bytes and its length; the key's address.
 */
static uint8 *
art_run_room(ArtRun *run, uint32 len)
{
	Size		need = MAXALIGN(len + sizeof(uint32));
	uint8	   *p;

	if (run->chunk_size - run->chunk_used < need)
	{
		Size		size = run->chunk_size == 0 ? ART_FIRST_CHUNK :
			Min(run->chunk_size * 2, ART_CHUNK_BYTES);
		MemoryContext old = MemoryContextSwitchTo(run->cxt);

		if (size < need)
			size = need;
		run->chunk = MemoryContextAllocHuge(run->cxt, size);
		art_ask_for_huge_pages(run->chunk, size);
		run->chunks = lappend(run->chunks, run->chunk);
		run->chunk_size = size;
		run->chunk_used = 0;
		MemoryContextSwitchTo(old);
	}
	p = run->chunk + run->chunk_used;
	run->chunk_used += need;
	run->used += need;
	return p + sizeof(uint32);
}

/*
 * Set a dead row of a unique build aside.
 */
static void
art_run_add_dead(ArtRun *run, const uint8 *key, uint32 keylen, uint64 tid)
{
	uint8		t[AX_TID_BYTES];

	if (run->dead == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(run->cxt);

		run->dead = run->dead_file ? run->dead_file(run) : BufFileCreateTemp(false);
		MemoryContextSwitchTo(old);
	}
	ax_put_tid(t, tid);
	BufFileWrite(run->dead, &keylen, sizeof(keylen));
	BufFileWrite(run->dead, unconstify(uint8 *, key), keylen);
	BufFileWrite(run->dead, t, sizeof(t));
	run->ndead++;
}

static void art_run_load(ArtRun *run);

/*
 * Add one entry: the encoded key, without its TID, and the TID.
 */
void
art_run_add(ArtRun *run, const uint8 *key, uint32 keylen, uint64 tid, bool alive)
{
	Size		bytes;

	if (run->stale || run->nomem)
		return;
	if (!alive && run->check_unique)
	{
		art_run_add_dead(run, key, keylen, tid);
		return;
	}

	if (run->brief)
	{
		if (keylen == run->width + 1)
		{
			ArtItem    *it = art_run_item(run);
			uint64		v = 0;

			if (run->width == sizeof(uint64))
				v = art_be64(key + 1);
			else
			{
				for (uint32 i = 0; i < run->width; i++)
					v |= (uint64) key[1 + i] << (56 - 8 * i);
			}
			it->prefix = v;
			it->rest = tid;
		}
		else
		{
			/* the only other key of one column: a NULL's marker */
			Assert(keylen == 1);
			if (run->nnulls == run->nulls_cap)
			{
				run->nulls_cap = run->nulls_cap == 0 ? 1024 : run->nulls_cap * 2;
				run->nulls = run->nulls == NULL ?
					MemoryContextAllocHuge(run->cxt, run->nulls_cap * sizeof(uint64)) :
					repalloc_huge(run->nulls, run->nulls_cap * sizeof(uint64));
			}
			run->null_mark = key[0];
			run->nulls[run->nnulls++] = tid;
		}
		bytes = run->n * run->per_item +
			run->nnulls * (sizeof(uint64) * 2 + 1 + AX_TID_BYTES);
	}
	else
	{
		uint32		len = keylen + AX_TID_BYTES;
		uint8	   *p = art_run_room(run, len);
		ArtItem    *it = art_run_item(run);

		memcpy(p - sizeof(uint32), &len, sizeof(uint32));
		memcpy(p, key, keylen);
		ax_put_tid(p + keylen, tid);
		it->rest = (uint64) (uintptr_t) p;
		if (!run->kd->compared)
			art_run_head(run, it, p, len);
		if (len < run->min_len)
			run->min_len = len;
		if (len > run->max_len)
			run->max_len = len;
		bytes = run->used + run->n * run->per_item;
	}
	if (bytes >= run->limit)
		art_run_load(run);
}

/* ---- uniqueness ---- */

void
art_build_duplicate(Relation heap, Relation index, const ArtKeyDesc *kd,
					const uint8 *key, uint32 keylen)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		nulls_equal = index->rd_index->indnullsnotdistinct;
	char	   *key_desc;

	/* the common case of many NULLs in one column */
	if (!nulls_equal && kd->natts == 1 && key[0] != ART_MARK_VALUE)
		return;
	art_decode(kd, key, keylen, kd->natts, values, isnull);
	if (!nulls_equal)
	{
		for (int i = 0; i < kd->natts; i++)
		{
			if (isnull[i])
				return;
		}
	}
	key_desc = BuildIndexValueDescription(index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(index)),
			 key_desc ? errdetail("Key %s is duplicated.", key_desc) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(heap, RelationGetRelationName(index))));
}

/*
 * The sorted run against itself.
 */
void
art_run_check_unique(ArtRun *run, const ax_keys *keys)
{
	MemoryContext tmp = AllocSetContextCreate(CurrentMemoryContext,
											  "art unique check",
											  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(tmp);

	for (uint64 i = 1; i < keys->n; i++)
	{
		const uint8 *key = keys->p[i];
		const uint8 *last = keys->p[i - 1];
		uint32		l = ax_key_len(keys, i);
		uint32		before = ax_key_len(keys, i - 1);

		if (i % ART_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (unlikely(run->kd->compared))
		{
			if (art_key_order(run->kd, last, before - AX_TID_BYTES,
							  key, l - AX_TID_BYTES) != 0)
				continue;
		}
		else
		{
			uint32		cols = l - AX_TID_BYTES;

			/* no key's columns are the beginning of another's */
			if (run->kd->payload)
				cols = art_key_prefix_len(run->kd, key, cols, run->kd->natts);
			else if (before != l)
				continue;
			if (before < cols || memcmp(last, key, cols) != 0)
				continue;
		}
		/* equal keys need not be the same: name the earlier row's, as nbtree may */
		art_build_duplicate(run->heap, run->index, run->kd, last,
							before - AX_TID_BYTES);
		MemoryContextReset(tmp);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(tmp);
}

/*
 * One key against the tree, where earlier runs are.
 */
static void
art_run_check_tree(ArtRun *run, const uint8 *key, uint32 keylen)
{
	ArtEqual	q;
	ax_status	s;

	for (;;)
	{
		s = art_equal_first(&q, run->kd, run->tree, run->gen, key,
							art_cols_len(run->kd, key, keylen), 1);
		art_equal_end(&q);
		if (s != AX_BUSY)
			break;
		art_busy();
	}
	if (s == AX_OK && q.n > 0)
		art_build_duplicate(run->heap, run->index, run->kd, key, keylen);
}

/* ---- loading ---- */

/*
 * The core said that there is no memory.  True: try again.
 */
bool
art_run_find_room(ArtRun *run)
{
	if (!art_make_room(run->index, run->entry, run->gen, run->room))
		run->nomem = true;
	return !run->nomem;
}

/*
 * Insert one key, TID included.
 */
static void
art_run_insert(ArtRun *run, const uint8 *key, uint32 len)
{
	for (;;)
	{
		ax_status	s;

		s = art_tree_insert(run->kd, run->cx, run->tree, run->gen, key, len);

		switch (s)
		{
			case AX_OK:
				run->entries++;
				return;
			case AX_EXISTS:
				return;
			case AX_STALE:
				run->stale = true;
				return;
			case AX_BUSY:
				art_busy();
				break;
			case AX_NOMEM:
				if (art_run_find_room(run))
					break;
				return;
			default:
				art_unexpected(run->index, s, "an insert");
		}
	}
}

/*
 * Load the first keys into a structure that is empty.  False: it is not, and
 * they are to be merged into it.
 *
 * Epoch: enters and leaves, once a try.
 */
static bool
art_run_load_empty(ArtRun *run, const ax_keys *keys)
{
	ax_status	s;

	do
	{
		CHECK_FOR_INTERRUPTS();
		/* of other builds a cancel waits, or statements that are all cancelled would get none done */
		art_load_stop = !INTERRUPTS_CAN_BE_PROCESSED() ? ART_STOP_NEVER :
			run->at_once ? ART_STOP_CANCEL : ART_STOP_DIE;
		ART_CORE_BEGIN();
		s = ax_load(run->cx, run->tree, run->gen, keys, run->fill);
		if (s == AX_NOMEM && art_load_told())
			s = AX_BUSY;		/* memory is not full */
		art_load_stop = ART_STOP_NEVER;
		ART_CORE_END();
		if (s == AX_BUSY)
			art_busy();
	} while (s == AX_BUSY || (s == AX_NOMEM && art_run_find_room(run)));

	run->loaded = true;
	switch (s)
	{
		case AX_OK:
			run->entries += keys->n;
			if (run->progress)
				pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
											 run->entries);
			return true;
		case AX_STALE:
			run->stale = true;
			return true;
		case AX_EXISTS:
			break;				/* somebody inserts beside us, or the keys are nested
								 * too deeply for a load: merge */
		case AX_NOMEM:
			return true;
		default:
			art_unexpected(run->index, s, "a load");
	}
	return false;
}

/*
 * Hand sorted, distinct keys to the core.
 *
 * Epoch: enters and leaves, once per call of the core; checks for interrupts
 * between two.
 */
void
art_run_load_keys(ArtRun *run, const ax_keys *keys)
{
	check_stack_depth();		/* the core takes up to 400 kB */
	if (run->write != NULL)
	{
		run->write(run, keys);
		return;
	}
	if (run->progress)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
									 ART_PHASE_LOAD);
	if (run->check_unique)
		art_run_check_unique(run, keys);

	if (!run->loaded && art_run_load_empty(run, keys))
		return;

	if (run->check_unique && !run->distinct)
		for (uint64 i = 0; i < keys->n && !run->stale; i++)
		{
			if (i % ART_INTERRUPT_EVERY == 0)
				CHECK_FOR_INTERRUPTS();
			art_run_check_tree(run, keys->p[i], ax_key_len(keys, i) - AX_TID_BYTES);
		}

	for (uint64 i = 0; i < keys->n && !run->stale && !run->nomem;)
	{
		ax_keys		rest = ax_keys_from(keys, i, keys->n - i);
		ax_status	s;
		uint64		done,
					added;

		CHECK_FOR_INTERRUPTS();
		s = art_tree_insert_sorted(run->kd, run->cx, run->tree, run->gen, &rest, &done,
								   &added);
		i += done;
		run->entries += added;
		if (run->progress)
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
										 run->entries);
		switch (s)
		{
			case AX_OK:
				break;
			case AX_STALE:
				run->stale = true;
				break;
			case AX_BUSY:
				art_busy();
				break;
			case AX_NOMEM:
				(void) art_run_find_room(run);
				break;
			default:
				art_unexpected(run->index, s, "an insert");
		}
	}
}

/*
 * Short layout: write the keys of the NULLs to p, for keys and lens from m on.
 * Returns how many of those there are then.
 */
static uint64
art_run_brief_nulls(const ArtRun *run, uint8 *p, const uint8 **keys, uint32 *lens,
					uint64 m)
{
	for (uint64 i = 0; i < run->nnulls; i++)
	{
		if (i > 0 && run->nulls[i] == run->nulls[i - 1])
			continue;
		*p = run->null_mark;
		ax_put_tid(p + 1, run->nulls[i]);
		lens[m] = 1 + AX_TID_BYTES;
		keys[m++] = p;
		p += 1 + AX_TID_BYTES;
	}
	return m;
}

/*
 * Short layout: write the keys out in order.
 */
static void
art_run_load_brief(ArtRun *run)
{
	uint64		total = run->n + run->nnulls;
	uint32		klen = run->width + 1 + AX_TID_BYTES;
	uint32		nlen = 1 + AX_TID_BYTES;
	Size		size = run->n * klen + run->nnulls * nlen + 1;
	uint8	   *bytes = MemoryContextAllocHuge(run->cxt, size);
	uint8	   *p = bytes;
	const uint8 **keys;
	uint32	   *lens = NULL;
	uint64		m = 0;
	bool		nulls_first = run->null_mark == ART_MARK_NULL_FIRST;
	const uint8 **nkeys = NULL;

	art_ask_for_huge_pages(bytes, size);

	/*
	 * The pointers take the place of the items, from the front: item i is
	 * read before pointer i is written.  With NULLs the two sorts of keys are
	 * of different lengths, and an array of its own is simpler.
	 */
	if (run->nnulls > 0)
	{
		lens = MemoryContextAllocHuge(run->cxt, total * sizeof(uint32));
		nkeys = MemoryContextAllocHuge(run->cxt, total * sizeof(uint8 *));
		keys = nkeys;
		if (nulls_first)
			m = art_run_brief_nulls(run, p, keys, lens, 0);
		p += m * nlen;
	}
	else
		keys = (const uint8 **) run->items;

	{
		uint64		last_prefix = 0,
					last_rest = PG_UINT64_MAX;

		for (uint64 i = 0; i < run->n; i++)
		{
			ArtItem		it = run->items[i];

			/* two members of one HOT chain can come under one root */
			if (it.prefix == last_prefix && it.rest == last_rest)
				continue;
			last_prefix = it.prefix;
			last_rest = it.rest;
			p[0] = ART_MARK_VALUE;
			if (run->width == sizeof(uint64))
			{
				uint64		be = pg_hton64(it.prefix);

				memcpy(p + 1, &be, sizeof(be));
			}
			else
			{
				for (uint32 k = 0; k < run->width; k++)
					p[1 + k] = (uint8) (it.prefix >> (56 - 8 * k));
			}
			ax_put_tid(p + 1 + run->width, it.rest);
			if (lens)
				lens[m] = klen;
			keys[m++] = p;
			p += klen;
		}
	}

	if (run->nnulls > 0 && !nulls_first)
		m = art_run_brief_nulls(run, p, keys, lens, m);

	art_run_load_keys(run, &(ax_keys) {keys, lens, klen, m});

	pfree(bytes);
	if (lens)
		pfree(lens);
	if (nkeys)
		pfree(nkeys);
}

/*
 * Long layout: the pointers take the place of the items.
 */
static void
art_run_load_long(ArtRun *run)
{
	const uint8 **keys = (const uint8 **) run->items;
	uint32	   *lens = NULL;
	uint64		m = 0;
	uint64		last = 0;		/* prefix of the key before */
	ListCell   *lc;

	if (run->kd->compared)
		art_sort_items(run->kd, (ArtSortItem *) run->items, run->n);
	if (run->min_len != run->max_len)
		lens = MemoryContextAllocHuge(run->cxt, run->n * sizeof(uint32));
	for (uint64 i = 0; i < run->n; i++)
	{
		ArtItem		it = run->items[i];
		const uint8 *key = (const uint8 *) (uintptr_t) it.rest;
		uint32		l = run->max_len;

		if (i % ART_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (lens != NULL)
		{
#if defined(__GNUC__)
			if (i + 16 < run->n)
				__builtin_prefetch((uint8 *) (uintptr_t) run->items[i + 16].rest -
								   sizeof(uint32));
#endif
			l = art_long_len(it.rest);
		}
		/* two members of one HOT chain can come under one root */
		if (m > 0 && (run->kd->compared || it.prefix == last) &&
			(lens == NULL || lens[m - 1] == l) && memcmp(keys[m - 1], key, l) == 0)
			continue;
		last = it.prefix;
		keys[m] = key;
		if (lens != NULL)
			lens[m] = l;
		m++;
	}

	art_run_load_keys(run, &(ax_keys) {keys, lens, run->max_len, m});

	if (lens != NULL)
		pfree(lens);
	foreach(lc, run->chunks)
		pfree(lfirst(lc));
	list_free(run->chunks);
	run->chunks = NIL;
	run->chunk = NULL;
	run->chunk_used = run->chunk_size = run->used = 0;
	run->min_len = PG_UINT32_MAX;
	run->max_len = 0;
}

/*
 * Sort and load what is collected; the run is empty afterwards.
 */
static void
art_run_load(ArtRun *run)
{
	ArtAsOwner	save = {false};

	if (run->n == 0 && run->nnulls == 0)
		return;

	/* comparing may run code, and a worker is a superuser; ambuild is the owner already */
	if (unlikely(run->kd->compared) && !InSecurityRestrictedOperation())
		art_as_owner_begin(run->heap, &save);
	art_run_sort(run);
	if (run->brief)
		art_run_load_brief(run);
	else
		art_run_load_long(run);
	run->n = 0;
	run->nnulls = 0;
	art_as_owner_end(&save);
	if (run->progress)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
									 ART_PHASE_HEAP_SCAN);
}

/*
 * The dead rows of a unique build, whose keys may be anybody's.
 */
static void
art_run_load_dead(ArtRun *run)
{
	ArtBuf		buf;

	if (BufFileSeek(run->dead, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of the build of index \"%s\"",
						RelationGetRelationName(run->index))));
	art_buf_init(&buf, run->cxt, 64);
	for (uint64 i = 0; i < run->ndead && !run->stale && !run->nomem; i++)
	{
		uint32		keylen;
		size_t		got;

		if (i % ART_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		got = BufFileRead(run->dead, &keylen, sizeof(keylen));
		if (got == sizeof(keylen))
		{
			buf.len = 0;
			art_buf_reserve(&buf, keylen + AX_TID_BYTES);
			got = BufFileRead(run->dead, buf.data, keylen + AX_TID_BYTES);
			if (got == keylen + AX_TID_BYTES)
			{
				art_run_insert(run, buf.data, keylen + AX_TID_BYTES);
				continue;
			}
		}
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read temporary file of the build of index \"%s\": read only %zu bytes",
						RelationGetRelationName(run->index), got)));
	}
	BufFileClose(run->dead);
	run->dead = NULL;
	run->ndead = 0;
}

void
art_run_flush(ArtRun *run)
{
	if (!run->stale && !run->nomem)
		art_run_load(run);
}

/*
 * The same for what was set aside.
 */
void
art_run_flush_dead(ArtRun *run)
{
	if (run->dead != NULL && !run->stale && !run->nomem)
		art_run_load_dead(run);
}

/*
 * Nothing is added any more, and all is loaded or written: give the memory back.
 */
void
art_run_release(ArtRun *run)
{
	if (run->items != NULL)
		pfree(run->items);
	if (run->nulls != NULL)
		pfree(run->nulls);
	run->items = NULL;
	run->nulls = NULL;
	run->cap = run->nulls_cap = 0;
}

uint64
art_run_pending(const ArtRun *run)
{
	return run->n + run->nnulls;
}

bool
art_run_nomem(const ArtRun *run)
{
	return run->nomem;
}

/*
 * Load the rest and free the run.  Returns how many entries it put into the
 * tree.  When the generation went away meanwhile nothing was lost that
 * mattered: the caller finds out when it publishes.
 */
uint64
art_run_end(ArtRun *run)
{
	uint64		entries;

	art_run_flush(run);
	art_run_flush_dead(run);
	if (run->dead != NULL)
		BufFileClose(run->dead);
	entries = run->entries;
	MemoryContextDelete(run->cxt);
	return entries;
}
