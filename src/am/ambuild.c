/*
 * ambuild.c
 *	  ambuild: CREATE INDEX, REINDEX, and whatever rewrites a table.
 *
 * src/build/README.md: Builds
 * src/limits/README.md: Memory full
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bswap.h"
#include "portability/instr_time.h"
#include "storage/smgr.h"
#include "utils/backend_progress.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "area/area.h"
#include "build/sorted_run.h"
#include "build/build.h"
#include "key/key.h"
#include "limits/limits.h"
#include "live/live.h"

#define ART_ENTRY_EXTRA		12	/* bytes an entry takes beside its key, about */

typedef struct ArtBuildState
{
	const ArtKeyDesc *kd;
	ArtRun	   *run;			/* NULL: nothing to build, only to encode */
	ArtProof   *proof;			/* NULL: nothing to prove */
	ArtBuf		key;
	MemoryContext tmp;			/* detoasted values of one row */
	Relation	heap;
	ArtLimit	limit;
	uint64		rows;
	uint64		bytes;			/* of their keys */
	bool		checked;		/* several processes did; all is proven */
} ArtBuildState;

/*
 * One row of the table: encode it, and keep it for the load or for the proof
 * that it is unique.
 */
static void
art_build_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
				   bool tupleIsAlive, void *arg)
{
	ArtBuildState *bs = (ArtBuildState *) arg;
	MemoryContext old = MemoryContextSwitchTo(bs->tmp);
	bool		hasnull;

	if (tupleIsAlive)
		art_check_btree_limit(bs->heap, index, &bs->limit, values, isnull, tid);
	hasnull = art_encode(bs->kd, values, isnull, &bs->key);
	MemoryContextSwitchTo(old);
	MemoryContextReset(bs->tmp);
	bs->rows++;
	bs->bytes += bs->key.len;
	if (bs->run != NULL)
		art_run_add(bs->run, bs->key.data, bs->key.len, art_tid_pack(tid),
					tupleIsAlive);
	else if (bs->proof != NULL && tupleIsAlive)
		art_proof_add(bs->proof, bs->key.data, bs->key.len, hasnull);
}

/*
 * The scan of ambuild.  Without a run it evaluates and encodes every row all
 * the same, and proves that a unique index is one.
 */
static double
art_build_scan(ArtBuildState *bs, Relation heap, Relation index,
			   IndexInfo *indexInfo)
{
	double		rows;

	bs->rows = 0;
	bs->bytes = 0;
	bs->proof = bs->run == NULL && indexInfo->ii_Unique ?
		art_proof_begin(heap, index, bs->kd) : NULL;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
								 ART_PHASE_HEAP_SCAN);
	rows = art_build_heap_scan(heap, index, indexInfo, true, art_build_callback, bs, NULL);
	if (bs->proof != NULL)
		art_proof_end(bs->proof);
	bs->proof = NULL;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, bs->rows);
	return rows;
}

/*
 * Scans the table and loads its rows into the structure "gen", by several
 * processes if it can.  *rows as the scan counts them.  False: the structure
 * has not got all of them, as it went away, or, *nomem, for want of memory.
 */
static bool
art_build_load(ArtBuildState *bs, Relation index, IndexInfo *indexInfo, ArtEntry *entry,
			   uint64 gen, double *rows, bool *nomem)
{
	int			workers = 0;
	ArtPBuilt	pb;
	bool		stale;

	if (!bs->kd->compared)
		workers = art_pbuild_workers(bs->heap, index, indexInfo);
	if (workers > 0 &&
		art_pbuild(bs->heap, index, indexInfo, entry, gen, workers, &pb))
	{
		/* all was checked, even if it is not all in the structure */
		bs->checked = true;
		*rows = pb.heap_rows;
		bs->rows = pb.rows;
		bs->bytes = pb.bytes;
		*nomem = pb.nomem;
		return !pb.nomem && !pb.stale;
	}
	bs->run = art_run_begin(index, bs->kd, gen, entry, indexInfo->ii_Unique, bs->heap,
							ART_ROOM_AMBUILD);
	bs->run->progress = bs->run->at_once = true;
	*rows = art_build_scan(bs, bs->heap, index, indexInfo);
	art_run_flush(bs->run);
	art_run_flush_dead(bs->run);
	*nomem = bs->run->nomem;
	stale = bs->run->stale;
	(void) art_run_end(bs->run);
	bs->run = NULL;
	return !*nomem && !stale;
}

/*
 * ambuild: scan the heap, sort, load.  Also the re-initialisation of an index
 * whose table is truncated in place; whatever was there is reset.
 *
 * It never errs for want of memory: the index then ends valid, sealed, and
 * absent.  A unique index had some entries in its structure by then, but they
 * prove nothing of the rows that came later.  So the table is read a second
 * time, for the proof alone.  That scan is as good as the first: nobody else
 * writes the table, or this is CREATE INDEX CONCURRENTLY, whose index takes no
 * rows yet.  Then the scan has a newer snapshot and sees more.  The second
 * phase compares the rows that it does not see.  It asks an absent index for
 * nothing, and sends every row through the unique check.
 */
IndexBuildResult *
artbuild(Relation heap, Relation index, IndexInfo *indexInfo)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	ArtBuildState bs;
	ArtKeyDesc *kd;
	ArtEntry   *entry = NULL;
	volatile uint64 gen;
	double		rows = 0;
	bool		nomem;
	instr_time	start;
	instr_time	duration;

	art_check_supported(heap, index, indexInfo);

	/* a new one, but that of a partition has its parent's classes; CONCURRENTLY is seen before */
	if (index->rd_createSubid != InvalidSubTransactionId && !index->rd_rel->relispartition)
		art_refuse_default(index);

	INSTR_TIME_SET_CURRENT(start);
	memset(&bs, 0, sizeof(bs));

	gen = art_ambuild_begin(heap, index, &entry);
	if (entry != NULL && indexInfo->ii_Concurrent)
		art_making_begin(entry);
	nomem = gen == 0 && art_preloaded();
	PG_TRY();
	{
		kd = art_keydesc_build(index, CurrentMemoryContext);
		bs.kd = kd;
		bs.heap = heap;
		bs.limit = kd->fixed ? ART_LIMIT_NONE : ART_LIMIT_UNKNOWN;
		bs.tmp = AllocSetContextCreate(CurrentMemoryContext,
									   "art build row",
									   ALLOCSET_DEFAULT_SIZES);
		art_buf_init(&bs.key, CurrentMemoryContext, 64);
		if (gen == 0)
			rows = art_build_scan(&bs, heap, index, indexInfo);
		else if (!art_build_load(&bs, index, indexInfo, entry, gen, &rows, &nomem))
		{
			/* its memory may serve others meanwhile */
			art_ambuild_end(index, entry, gen, false, 0);
			gen = 0;
			if (!bs.checked && indexInfo->ii_Unique && !indexInfo->ii_Concurrent)
				rows = art_build_scan(&bs, heap, index, indexInfo);
		}
		MemoryContextDelete(bs.tmp);
	}
	PG_CATCH();
	{
		if (gen != 0)
			art_ambuild_end(index, entry, gen, false, 0);
		PG_RE_THROW();
	}
	PG_END_TRY();

	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	if (gen != 0)
		art_ambuild_end(index, entry, gen, true,
						INSTR_TIME_GET_MILLISEC(duration));
	else if (nomem && indexInfo->ii_Unique && indexInfo->ii_Concurrent)
		art_report_unbuilt(index);
	else if (nomem)
		art_ambuild_unbuilt(index, entry, bs.bytes + bs.rows * ART_ENTRY_EXTRA);

	pfree(bs.key.data);
	result->heap_tuples = rows;
	result->index_tuples = (double) bs.rows;
	return result;
}

/*
 * ambuildempty, for the init fork of an unlogged index, which core has made
 * and logged.  A file without a block is right, since nothing in the file of
 * an art index must survive a crash.  The file itself must last, for the reset
 * after a crash goes by it.  A checkpoint that begins meanwhile may let
 * recovery begin behind that record.  So it is synced here, as the heap's is.
 */
void
artbuildempty(Relation index)
{
	smgrimmedsync(RelationGetSmgr(index), INIT_FORKNUM);
}

char *
artbuildphasename(int64 phasenum)
{
	switch (phasenum)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case ART_PHASE_HEAP_SCAN:
			return "scanning table";
		case ART_PHASE_LOAD:
			return "loading sorted keys";
		default:
			return NULL;
	}
}
