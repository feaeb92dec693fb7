/*
 * vacuum.c
 *	  ambulkdelete and amvacuumcleanup.
 *
 * VACUUM may recycle a TID once ambulkdelete has returned.  So no entry with a
 * dead TID may be left in any structure that lives on.  And no reader may
 * still hold a copy of one: the interlock sees to that, in every state.  The
 * callback is asked about every entry: CREATE INDEX CONCURRENTLY depends on
 * it.  Batches come in key order; inside a batch the callback is asked in the
 * order of the TIDs (art_vacuum_order).
 *
 * src/area/README.md: VACUUM and readers
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "postmaster/autovacuum.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "area/area.h"
#include "area/tree_calls.h"
#include "build/build.h"
#include "limits/limits.h"
#include "live/live.h"

#define ART_VACUUM_BATCH	((uint32) 1048576)	/* entries */
#define ART_VACUUM_DOUBTFUL	((uint32) 1024) /* of a doubtful class: to be found again */
#define ART_VACUUM_PASSES	16		/* .. and how often it is tried */
#define ART_VACUUM_BYTES	64		/* of memory for each, about; longer keys make smaller batches */
#define ART_VACUUM_TURN		((uint32) 16384)	/* entries between two delay points */
#define ART_VACUUM_AHEAD	16		/* entries that memory is asked for ahead */
#define ART_VACUUM_DIGIT	13		/* bits that one pass of the sort goes by */
#define ART_VACUUM_BUCKETS	(1 << ART_VACUUM_DIGIT)

typedef struct ArtVacuum
{
	MemoryContext cxt;			/* of all that */
	Relation	index;
	ArtKeyDesc *kd;
	ax_ctx	   *cx;
	ax_tree    *tree;
	uint64		gen;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	bool		flush;			/* before the first removal: the WAL */
	double		left;			/* entries kept in this pass */
	double		removed;		/* over all passes */
	double		missed;			/* in this pass: dead, and not found to be removed */
	uint64	   *order;			/* what is sorted by, and each one's entry in 32 bits */
	uint64	   *spare;			/* .. of another pass of the sort */
	bool	   *dead;			/* by entry */
	uint32		bucket[ART_VACUUM_BUCKETS];
	ArtPass		pass;
} ArtVacuum;

/*
 * Remove one entry.  False: the generation is gone.
 */
static bool
art_vacuum_remove(ArtVacuum *v, const uint8 *key, uint32 len)
{
	for (;;)
	{
		ax_status	s;

		s = art_tree_remove(v->kd, v->cx, v->tree, v->gen, key, len);

		switch (s)
		{
			case AX_OK:
				v->removed += 1;
				return true;
			case AX_NOTFOUND:
				v->missed += 1;
				return true;	/* a scan met it first */
			case AX_STALE:
				return false;
			case AX_BUSY:
				art_busy();
				break;
			default:
				art_unexpected(v->index, s, "a removal");
		}
	}
}

/*
 * Sort the batch's entries by the digit that begins at a bit of their order: a pass of a
 * radix sort.
 */
static void
sort_by_digit(ArtVacuum *v, int from)
{
	uint64	   *swap = v->spare;
	uint32		at = 0;

	memset(v->bucket, 0, sizeof(v->bucket));
	for (uint32 i = 0; i < v->pass.n; i++)
		v->bucket[v->order[i] >> from & (ART_VACUUM_BUCKETS - 1)]++;
	for (int k = 0; k < ART_VACUUM_BUCKETS; k++)
	{
		uint32		c = v->bucket[k];

		v->bucket[k] = at;
		at += c;
	}
	for (uint32 i = 0; i < v->pass.n; i++)
		v->spare[v->bucket[v->order[i] >> from & (ART_VACUUM_BUCKETS - 1)]++] = v->order[i];
	v->spare = v->order;
	v->order = swap;
}

/*
 * Put the entries of a batch into the order of their TIDs, of which the leading 26 bits count.
 * Those of the offset are as many as some row of the batch needs.
 *
 * VACUUM's callback is a search in a large set.  Neighbours in the table take nearly the same
 * path through it, which the processor then foresees and has in its caches.  In the order of the
 * keys it does not.
 */
static void
art_vacuum_order(ArtVacuum *v)
{
	const ArtPass *w = &v->pass;
	uint64		blocks = 1,
				offsets = 1;
	int			bits,
				drop;

	for (uint32 i = 0; i < w->n; i++)
	{
		blocks |= w->tids[i] >> 16;
		offsets |= w->tids[i] & 0xFFFF;
	}
	bits = pg_leftmost_one_pos64(offsets) + 1;
	drop = Max(0, bits + pg_leftmost_one_pos64(blocks) + 1 - 2 * ART_VACUUM_DIGIT);
	for (uint32 i = 0; i < w->n; i++)
	{
		uint64		place = w->tids[i] >> 16 << bits | (w->tids[i] & 0xFFFF);

		v->order[i] = place >> drop << 32 | i;
	}
	sort_by_digit(v, 32);
	sort_by_digit(v, 32 + ART_VACUUM_DIGIT);
}

/* Now and then in a batch, which can be long. */
static inline void
art_vacuum_turn(uint32 i)
{
	if (i % ART_VACUUM_TURN == ART_VACUUM_TURN - 1)
		art_vacuum_delay_point();
}

/*
 * One pass over all entries in key order.  False: the generation is gone, and
 * what was done does not count.
 */
static bool
art_vacuum_pass(ArtVacuum *v)
{
	ArtPass    *w = &v->pass;

	v->left = v->missed = 0;
	art_pass_begin(w);

	while (!w->done)
	{
		ax_status	s = art_pass_next(w, v->tree, v->gen);

		if (s == AX_STALE)
			return false;
		if (s != AX_OK)
			art_unexpected(v->index, s, "a scan");

		art_vacuum_order(v);
		for (uint32 i = 0; i < w->n; i++)
		{
			const uint32 k = (uint32) v->order[i];
			ItemPointerData tid;

			if (i + ART_VACUUM_AHEAD < w->n)
				__builtin_prefetch(&w->tids[(uint32) v->order[i + ART_VACUUM_AHEAD]]);
			art_tid_unpack(w->tids[k], &tid);
			v->dead[k] = v->callback(&tid, v->callback_state);
			art_vacuum_turn(i);
		}
		for (uint32 i = 0; i < w->n; i++)
		{
			if (v->dead[i] && unlikely(v->flush))
			{
				/* of others' prunes, too, which made the rows' line pointers dead */
				(void) art_flush_all();
				v->flush = false;
			}
			if (!v->dead[i])
				v->left += 1;
			else if (!art_vacuum_remove(v, w->keys.data + w->key_off[i],
										w->key_off[i + 1] - w->key_off[i]))
				return false;
			art_vacuum_turn(i);
		}
		if (!w->done)
			art_vacuum_delay_point();
	}
	return true;
}

/*
 * The passes that it takes.  Of a doubtful class an entry may be there still that was not
 * found: none may be.  False: the generation is gone.
 */
static bool
art_vacuum_passes(ArtVacuum *v)
{
	for (int i = 0; i < ART_VACUUM_PASSES; i++)
	{
		if (!art_vacuum_pass(v))
			return false;
		if (!v->kd->doubtful || v->missed == 0)
			return true;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("could not remove entries of dead rows from index \"%s\"",
					RelationGetRelationName(v->index)),
			 errdetail("They are not found by the comparison function of its operator class, and others change the index."),
			 errhint("artidx_check(index, true) tells whether the operator class is an order.")));
}

/* Entries of a batch, for which there is memory by the settings for maintenance. */
static uint32
art_vacuum_batch(const ArtKeyDesc *kd)
{
	const int	kb = MyBackendType == B_AUTOVAC_WORKER && autovacuum_work_mem != -1 ?
		autovacuum_work_mem : maintenance_work_mem;

	if (kd->doubtful)
		return ART_VACUUM_DOUBTFUL;
	return (uint32) Min(ART_VACUUM_BATCH, (int64) kb * 1024 / ART_VACUUM_BYTES);
}

/*
 * The entries and the memory of the structure; 0 of each if the structure has gone.
 *
 * Epoch: enters and leaves.
 */
static ax_tree_info
tree_info(ArtVacuum *v)
{
	ax_tree_info ti;
	ax_status	s;

	ART_CORE_BEGIN();
	s = ax_info(v->cx, v->tree, v->gen, &ti);
	ART_CORE_END();
	return s == AX_OK ? ti : (ax_tree_info) {0};
}

/*
 * For passes over the entries of an index, whose callback is not set yet.
 *
 * Epoch: enters and leaves.
 */
static ArtVacuum *
art_vacuum_begin(Relation index, ArtEntry *entry, uint64 gen)
{
	/* of its own: a long VACUUM makes one each round */
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "art vacuum",
											  ALLOCSET_SMALL_SIZES);
	ArtVacuum  *v = MemoryContextAlloc(cxt, sizeof(ArtVacuum));
	uint64		entries;
	uint32		batch;

	v->cxt = cxt;
	v->index = index;
	v->kd = art_keydesc_build(index, cxt);
	art_apply_kind(index, entry, v->kd->compared);
	v->cx = art_ctx();
	v->tree = art_entry_tree(entry);
	v->gen = gen;
	/* a small index takes little; one that grows beyond that, several batches */
	entries = tree_info(v).entries;
	batch = (uint32) Min(art_vacuum_batch(v->kd), Max(entries, ART_VACUUM_DOUBTFUL));
	v->removed = 0;
	v->flush = art_outlives(index) && !v->kd->compared;
	v->order = MemoryContextAlloc(cxt, batch * sizeof(uint64));
	v->spare = MemoryContextAlloc(cxt, batch * sizeof(uint64));
	v->dead = MemoryContextAlloc(cxt, batch * sizeof(bool));
	art_pass_init(&v->pass, v->kd, v->cx, batch, batch * ART_VACUUM_BYTES / 2);
	/* what the sort and the callback go through in any order */
	art_ask_for_huge_pages(v->order, batch * sizeof(uint64));
	art_ask_for_huge_pages(v->spare, batch * sizeof(uint64));
	art_ask_for_huge_pages(v->pass.tids, batch * sizeof(uint64));
	return v;
}

/*
 * Must the callback see no entry?
 *
 * The second phase of CREATE UNIQUE INDEX CONCURRENTLY asks which TIDs the
 * index has, to leave out the unique check for those.  In a structure that was
 * built lazily no check has ever compared them: report nothing, so that every
 * row goes through it.  (VACUUM, too, can come upon an index that is not valid,
 * and it must be answered.  Only validation reports progress.)
 */
static bool
art_vacuum_hides(const IndexVacuumInfo *info, ArtEntry *entry)
{
	Form_pg_index form = info->index->rd_index;

	return info->report_progress && form->indisunique && !form->indisvalid &&
		!art_entry_native(entry);
}

/*
 * The result of the passes, of which the last was done, or not, and saw a
 * structure of so many bytes.  Frees what art_vacuum_begin() made.
 */
static IndexBulkDeleteResult *
art_vacuum_end(ArtVacuum *v, IndexBulkDeleteResult *stats, bool done, uint64 bytes)
{
	if (done)
	{
		if (stats == NULL)
			stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->estimated_count = false;
		stats->num_index_tuples = v->left;
		stats->num_pages = (BlockNumber) Min((bytes + BLCKSZ - 1) / BLCKSZ,
											 (uint64) MaxBlockNumber);
	}
	if (stats != NULL)
		stats->tuples_removed += v->removed;
	art_pass_end(&v->pass);
	MemoryContextDelete(v->cxt);
	return stats;
}

/*
 * ambulkdelete
 *
 * Epoch: enters and leaves, once a batch.
 * Locks: the caller's on the index.  Waits for a build that is under way
 * (art_wait_not_building) and for scans (art_interlock_vacuum).
 */
IndexBulkDeleteResult *
artbulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			  IndexBulkDeleteCallback callback, void *callback_state)
{
	Relation	index = info->index;
	ArtEntry   *entry;
	ArtVacuum  *v = NULL;
	bool		done = false;
	bool		ask;
	uint64		bytes = 0;

	check_stack_depth();		/* the core takes up to 400 kB */

	/* no shared memory: nothing to remove, but somebody may be scanning */
	if (!art_preloaded())
	{
		art_interlock_vacuum(index, callback, callback_state);
		return stats;
	}

	while ((entry = art_entry_if_exists(index)) != NULL)
	{
		uint64		gen;
		ArtState	state = art_entry_state(entry, &gen);

		if (state == ART_BUILDING)
		{
			/* it may have read our dead rows before they were dead */
			art_wait_not_building(index, entry);
			continue;
		}
		if (state == ART_FOLLOWED)
		{
			art_followed_settle(entry);
			continue;
		}
		if (state == ART_ABSENT)
		{
			/*
			 * The state goes first, and the structure is closed after it, under the
			 * partition lock.  A scan that reads it still would not meet our increment.
			 */
			(void) art_entry_if_exists(index);
			break;
		}

		if (v == NULL)
		{
			v = art_vacuum_begin(index, entry, gen);
			v->callback = callback;
			v->callback_state = callback_state;
		}
		v->tree = art_entry_tree(entry);
		v->gen = gen;

		ask = !art_vacuum_hides(info, entry);
		if (!ask || art_vacuum_passes(v))
		{
			bytes = tree_info(v).bytes;
			done = ask;
			break;
		}

		/*
		 * The structure went away.  A later structure read the heap after this
		 * VACUUM collected its dead line pointers; but see its state.
		 */
		CHECK_FOR_INTERRUPTS();
	}

	art_interlock_vacuum(index, callback, callback_state);

	/* absent: no counts */
	return v == NULL ? stats : art_vacuum_end(v, stats, done, bytes);
}

/*
 * amvacuumcleanup
 *
 * Epoch: enters and leaves.
 */
IndexBulkDeleteResult *
artvacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	Relation	index = info->index;
	ArtEntry   *entry;
	uint64		gen = 0;
	ax_tree_info ti;
	ax_status	s = AX_STALE;
	ax_ctx	   *cx;

	if (info->analyze_only || !art_preloaded())
		return stats;
	cx = art_ctx();

	/* a good moment for what removals and contention left behind */
	entry = art_entry_if_exists(index);
	if (entry != NULL && art_entry_state(entry, &gen) != ART_READY)
		entry = NULL;
	ART_CORE_BEGIN();
	if (entry != NULL)
		(void) ax_settle(cx, art_entry_tree(entry), gen, false);
	ax_flush_idle(cx);
	if (entry != NULL)
		s = ax_info(cx, art_entry_tree(entry), gen, &ti);
	ART_CORE_END();
	art_poll();
	if (s == AX_OK && ((stats != NULL && stats->tuples_removed > 0) ||
					   ax_compact_due(ti.bytes, ti.live_bytes)))
	{
		art_compact_index(art_entry_tree(entry), gen);
		ART_CORE_BEGIN();
		s = ax_info(cx, art_entry_tree(entry), gen, &ti);
		ART_CORE_END();
	}

	if (stats == NULL)
	{
		if (s != AX_OK)
			return NULL;
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->estimated_count = true;
		stats->num_index_tuples = (double) ti.entries;
	}
	if (s == AX_OK)
		stats->num_pages = (BlockNumber) Min((ti.bytes + BLCKSZ - 1) / BLCKSZ,
											 (uint64) MaxBlockNumber);

	/*
	 * Entries of dead rows and of rows inserted since the heap was counted
	 * make an exact count larger than the heap's; believe the heap's.
	 */
	if (!info->estimated_count &&
		stats->num_index_tuples > info->num_heap_tuples)
		stats->num_index_tuples = info->num_heap_tuples;
	return stats;
}
