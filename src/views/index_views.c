/*
 * index_views.c
 *	  The functions behind the views, artidx_index_size, artidx_build and
 *	  artidx_unload.
 *
 * src/views/README.md: Statistics
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "am/am.h"
#include "limits/limits.h"
#include "live/background.h"
#include "live/live.h"
#include "views/views.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_index_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_memory_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_memory_class_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_epoch_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_index_size);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_build);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_unload);

#define ART_INDEX_STATS_COLS 21

/*
 * ERROR 42809: the relation is not an index of art, or has no entries itself.
 */
static void
refuse_other_am(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not an index of access method \"%s\"",
					RelationGetRelationName(rel), ART_AM_NAME),
			 rel->rd_rel->relkind != RELKIND_PARTITIONED_INDEX ||
			 rel->rd_indam->ambuild != artbuild ? 0 :
			 errdetail("It is a partitioned index; its parts have the entries.")));
}

/*
 * Locks: takes AccessShareLock on table and index, and leaves both held.
 */
Relation
art_stat_open(Oid indexoid, Oid *heapoid)
{
	Relation	index;

	*heapoid = InvalidOid;
	if (get_rel_relkind(indexoid) == RELKIND_INDEX)
	{
		*heapoid = IndexGetRelation(indexoid, true);
		if (OidIsValid(*heapoid))
			LockRelationOid(*heapoid, AccessShareLock);
	}
	index = relation_open(indexoid, AccessShareLock);
	if (!art_is_art_index(index))
		refuse_other_am(index);
	return index;
}

/*
 * Close what art_stat_open() opened.
 *
 * Locks: gives back AccessShareLock on index and table.
 */
void
art_stat_close(Relation index, Oid heapoid)
{
	relation_close(index, AccessShareLock);
	if (OidIsValid(heapoid))
		UnlockRelationOid(heapoid, AccessShareLock);
}

/*
 * max_memory of a reloptions array, as art_max_memory() of an open index.
 */
static uint64
option_max_memory(Datum reloptions)
{
	ArtOptions *opts = (ArtOptions *) artoptions(reloptions, false);
	double		bytes;

	if (opts == NULL || opts->max_memory_off == 0)
		return 0;
	if (!parse_real((char *) opts + opts->max_memory_off, &bytes,
					GUC_UNIT_BYTE, NULL) || bytes < 0)
		return 0;
	return (uint64) bytes;
}

/* The text of artidx_indexes.last_build_source. */
static const char *
source_text(ArtBuildSource source)
{
	switch (source)
	{
		case ART_BUILD_CREATE:
			return "create";
		case ART_BUILD_REBUILD:
			return "rebuild";
		case ART_BUILD_ALTER:
			return "alter";
		case ART_BUILD_LOAD:
			return "load";
		case ART_BUILD_KEPT:
			return "kept";
	}
	return NULL;
}

/*
 * Why the index was not built yet: for this reason, or because there is no worker, or none is
 * free.  A worker that has the index in hand makes it BUILDING at once.
 */
static const char *
missing_worker(const ArtEntry *e, const char *reason)
{
	if (art_build_workers == 0)
		return reason;
	if (art_no_worker())
		return "no worker";
	return pg_atomic_read_u32(&art_shared->busy) != 0 && e->not_before <= GetCurrentTimestamp() ?
		"no free worker" : reason;
}

/*
 * artidx_indexes.next_try: when a worker tries again what has failed; 0: it may now, or never
 * will by itself.
 */
static TimestampTz
next_try(const ArtEntry *e, bool absent)
{
	TimestampTz at;

	if (!absent || art_build_workers == 0 || RecoveryInProgress() ||
		e->reason != ART_WHY_ERROR || e->failed_at == 0)
		return 0;
	at = Max(art_error_until(e), e->not_before);
	return at > GetCurrentTimestamp() ? at : 0;
}

/* artidx_indexes.reason; NULL where there is a structure. */
static const char *
reason_text(const ArtEntry *e, bool absent)
{
	if (!absent)
		return NULL;
	if (RecoveryInProgress())
		return e->reason == ART_WHY_ERROR ? psprintf("recovery: %s", e->error) :
			e->reason == ART_WHY_MEMORY ? art_full_name(e->full) :
			e->reason == ART_WHY_UNLOADED ? "unloaded" : "recovery";
	if (ART_OLD_SNAPSHOT_IN_USE())
		return "old_snapshot_threshold";
	switch (e->reason)
	{
		case ART_WHY_RESTART:
			return missing_worker(e, "restart");
		case ART_WHY_MEMORY:
			return art_full_name(e->full);
		case ART_WHY_UNLOADED:
			return "unloaded";
		case ART_WHY_ERROR:
			return psprintf("error: %s", e->error);
		case ART_WHY_DROPPED:
			return missing_worker(e, "dropped");
		case ART_WHY_ALTERED:
			return missing_worker(e, "altered");
	}
	return NULL;
}

/*
 * Are the keys of an index, of which nothing has been built yet, compared?  False
 * while somebody has it locked: the view waits for nobody.
 *
 * Locks: tries AccessShareLock on the index and gives it back.
 */
static bool
keys_are_compared(Oid indexoid)
{
	Relation	index;
	bool		compared = false;

	if (!ConditionalLockRelationOid(indexoid, AccessShareLock))
		return false;
	index = try_relation_open(indexoid, NoLock);
	if (index == NULL)
	{
		UnlockRelationOid(indexoid, AccessShareLock);
		return false;
	}
	if (art_is_art_index(index))
		compared = art_index_compared(index);
	relation_close(index, AccessShareLock);
	return compared;
}

/* One index, as the view shows it. */
typedef struct IndexStats
{
	ArtEntry	copy;			/* of its entry; zeroes when there is none */
	ArtState	state;
	const char *reason;
	TimestampTz next_try;		/* 0: NULL */
	bool		have_info;
	ax_tree_info info;
} IndexStats;

/*
 * Looks the entry of an index up, and the structure if there is one.
 *
 * Epoch: enters and leaves, outside of the lock: the handle is type-stable and
 * the generation is asked for.
 * Locks: takes the partition lock, shared.
 */
static void
look_at_index(IndexStats *is, Oid indexoid, uint32 relnumber)
{
	ArtWalk		w = art_walk(LW_SHARED, MyDatabaseId, indexoid);
	ax_ctx	   *cx = art_ctx();
	ArtEntry   *found;
	uint64		gen = 0;

	while ((found = art_walk_next(&w)) != NULL && found->loc.rel != relnumber)
		 /* go on */ ;
	if (found)
	{
		is->copy = *found;
		is->state = art_entry_state(found, &gen);
	}
	art_walk_end(&w);

	/* a handle is type-stable, and the generation tells whose it is */
	if (found && is->state != ART_ABSENT)
	{
		ax_status	st;

		ART_CORE_BEGIN();
		st = ax_info(cx, is->copy.tree, gen, &is->info);
		ART_CORE_END();
		is->have_info = st == AX_OK;
	}
	if (!found)
		is->copy.reason = ART_WHY_RESTART;
	is->reason = reason_text(&is->copy, is->state == ART_ABSENT);
	is->next_try = next_try(&is->copy, is->state == ART_ABSENT);
}

/* A row that is being filled, column by column. */
typedef struct StatsRow
{
	Datum		values[ART_INDEX_STATS_COLS];
	bool		nulls[ART_INDEX_STATS_COLS];
	int			c;
} StatsRow;

/* The next column. */
static void
put(StatsRow *row, Datum value)
{
	row->values[row->c++] = value;
}

/* The next n columns are NULL. */
static void
put_nulls(StatsRow *row, int n)
{
	while (n-- > 0)
		row->nulls[row->c++] = true;
}

/* The next column, of type text. */
static void
put_text(StatsRow *row, const char *text)
{
	if (text)
		put(row, CStringGetTextDatum(text));
	else
		put_nulls(row, 1);
}

/* State, reason, and how far a build has got. */
static void
put_state(StatsRow *row, IndexStats *is)
{
	put_text(row, is->state == ART_READY || is->state == ART_FOLLOWED ? "ready" :
			 is->state == ART_BUILDING ? "building" :
			 is->copy.sealed ? "sealed" : "absent");
	put_text(row, is->reason);
	if (is->state == ART_BUILDING)
	{
		uint64		total = pg_atomic_read_u64(&is->copy.blocks_total);
		uint64		done = pg_atomic_read_u64(&is->copy.blocks_done);

		put(row, Float8GetDatum(total == 0 ? 0.0 :
								Min(1.0, (double) done / (double) total)));
	}
	else
		put_nulls(row, 1);
}

/* Height, nodes and leaves, and the nodes of each kind. */
static void
put_shape(StatsRow *row, const IndexStats *is)
{
	const ax_tree_info *info = &is->info;
	char		nodes[256];

	if (!is->have_info)
	{
		put_nulls(row, 4);
		return;
	}
	put(row, Int32GetDatum(info->height));
	put(row, Int64GetDatum((int64) info->inner_nodes));
	put(row, Int64GetDatum((int64) info->leaves));
	if (info->page_size > 0)
		snprintf(nodes, sizeof(nodes),
				 "{\"inner\": %llu, \"leaf\": %llu, \"page_size\": %u}",
				 (unsigned long long) info->inner_nodes,
				 (unsigned long long) info->leaves, info->page_size);
	else
		snprintf(nodes, sizeof(nodes),
				 "{\"node4\": %llu, \"node16\": %llu, \"node48\": %llu, "
				 "\"node256\": %llu, \"leaf\": %llu, \"embedded\": %llu}",
				 (unsigned long long) info->n4, (unsigned long long) info->n16,
				 (unsigned long long) info->n48, (unsigned long long) info->n256,
				 (unsigned long long) info->leaves,
				 (unsigned long long) info->embedded);
	put(row, DirectFunctionCall1(jsonb_in, CStringGetDatum(nodes)));
}

/*
 * artidx_index_stats(oid): one row, NULL for an OID that is not there.  Takes
 * no lock on the index, so that the view never waits for a REINDEX.
 */
Datum
artidx_index_stats(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	TupleDesc	tupdesc;
	HeapTuple	classtup;
	Form_pg_class form;
	Datum		reloptions;
	ArtEngine	wanted;			/* when there is none */
	bool		isnull;
	uint32		relnumber;
	uint64		max_memory = 0;
	IndexStats	is = {.state = ART_ABSENT, .reason = "not preloaded"};
	StatsRow	row = {.c = 0};

	tupdesc = art_result_row(fcinfo, ART_INDEX_STATS_COLS);

	classtup = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	if (!HeapTupleIsValid(classtup))
		PG_RETURN_NULL();
	form = (Form_pg_class) GETSTRUCT(classtup);
	relnumber = form->relfilenode;
	reloptions = SysCacheGetAttr(RELOID, classtup, Anum_pg_class_reloptions, &isnull);
	if (!isnull)
		max_memory = option_max_memory(reloptions);
	art_engine_of(isnull ? NULL : (ArtOptions *) artoptions(reloptions, false), &wanted);
	ReleaseSysCache(classtup);

	if (art_preloaded())
	{
		look_at_index(&is, indexoid, relnumber);
		if (is.state != ART_ABSENT)
		{
			wanted.tail = is.copy.tail;
			wanted.elide = is.copy.elide;
		}
	}
	if (is.copy.compared || (!is.have_info && keys_are_compared(indexoid)))
	{
		wanted.structure = AX_BTREE_COMPARED;
		wanted.tail = AX_TAIL_OFF;
	}

	put_text(&row, is.have_info ? is.info.structure : ax_structure_name(wanted.structure));
	put_text(&row, is.have_info ? is.info.sync : ax_structure_sync(wanted.structure));
	put_text(&row, art_tail_name(wanted.tail));
	/* where the setting and the processor allow it, too */
	put_text(&row, is.have_info && is.info.elided ? art_elide_name(wanted.elide) : "off");
	put_state(&row, &is);
	put(&row, Int64GetDatum(is.have_info ? (int64) is.info.entries : 0));
	put(&row, Int64GetDatum(is.have_info ? (int64) is.info.bytes : 0));
	if (is.have_info && is.info.entries > 0)
		put(&row, Float8GetDatum((double) is.info.bytes / (double) is.info.entries));
	else
		put_nulls(&row, 1);
	if (max_memory != 0)
		put(&row, Int64GetDatum((int64) max_memory));
	else
		put_nulls(&row, 1);
	put_shape(&row, &is);
	put(&row, Int64GetDatum((int64) is.copy.builds));
	if (is.copy.builds > 0 && is.copy.last_build != 0)
	{
		put(&row, TimestampTzGetDatum(is.copy.last_build));
		put_text(&row, source_text(is.copy.source));
		put(&row, Float8GetDatum(is.copy.last_ms));
	}
	else
		put_nulls(&row, 3);
	put(&row, Int64GetDatum((int64) is.copy.seals));
	if (is.next_try != 0)
		put(&row, TimestampTzGetDatum(is.next_try));
	else
		put_nulls(&row, 1);

	Assert(row.c <= ART_INDEX_STATS_COLS);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, row.values, row.nulls)));
}

/*
 * artidx_memory_stats(): the row of artidx_memory.
 *
 * Epoch: enters and leaves.
 * Locks: takes the partition locks, shared, one after the other.
 */
Datum
artidx_memory_stats(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	ax_memory_info mem;
	ax_ctx	   *cx;
	Datum		values[10];
	bool		nulls[10] = {0};
	ArtWalk		w;
	int			indexes = 0;
	int			sealed = 0;

	art_require_preload(NULL);
	tupdesc = art_result_row(fcinfo, lengthof(values));

	cx = art_ctx();
	art_poll();
	ART_CORE_BEGIN();
	ax_memory(cx, &mem);
	ART_CORE_END();

	w = art_walk(LW_SHARED, InvalidOid, InvalidOid);
	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) != ART_ABSENT)
			indexes++;
		else if (e->sealed || e->reason == ART_WHY_MEMORY)
			sealed++;
	}

	values[0] = Int64GetDatum((int64) mem.area_bytes);
	values[1] = Int64GetDatum((int64) mem.used_bytes);
	values[2] = Int64GetDatum((int64) mem.free_bytes);
	values[3] = Int64GetDatum((int64) mem.largest_free_bytes);
	values[4] = Int64GetDatum((int64) mem.reserve_bytes);
	values[5] = Int64GetDatum((int64) mem.retired_bytes);
	values[6] = Int64GetDatum((int64) mem.overhead_bytes);
	values[7] = Int64GetDatum((int64) mem.touched_bytes);
	values[8] = Int32GetDatum(indexes);
	values[9] = Int32GetDatum(sealed);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/*
 * artidx_memory_class_stats(): the rows of artidx_memory_classes.
 *
 * Epoch: enters and leaves.
 */
Datum
artidx_memory_class_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo;
	ax_class_info classes[128];
	ax_ctx	   *cx;
	int			n;

	art_require_preload(NULL);
	rsinfo = art_result_rows(fcinfo, 5);

	cx = art_ctx();
	ART_CORE_BEGIN();
	n = ax_memory_classes(cx, classes, lengthof(classes));
	ART_CORE_END();

	for (int i = 0; i < n; i++)
	{
		Datum		values[5];
		bool		nulls[5] = {0};

		values[0] = Int32GetDatum((int32) classes[i].size_class);
		values[1] = Int64GetDatum((int64) classes[i].spans);
		values[2] = Int64GetDatum((int64) classes[i].bytes);
		values[3] = Int64GetDatum((int64) classes[i].live);
		values[4] = Int64GetDatum((int64) classes[i].free);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * artidx_epoch_stats(): the rows of artidx_epochs, without the backend type:
 * slots in use, and slots whose process went and left something.
 *
 * Epoch: enters and leaves, once a slot.
 */
Datum
artidx_epoch_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo;
	ax_ctx	   *cx;
	int			nslots;

	art_require_preload(NULL);
	rsinfo = art_result_rows(fcinfo, 8);

	cx = art_ctx();
	nslots = ax_nslots(art_shared->area);
	for (int i = 0; i < nslots; i++)
	{
		ax_epoch_info info;
		Datum		values[8];
		bool		nulls[8] = {0};

		ART_CORE_BEGIN();
		ax_epochs(cx, i, &info);
		ART_CORE_END();
		if (info.pid == 0 && info.retired_objects == 0)
			continue;

		values[0] = Int32GetDatum(i);
		if (info.pid != 0)
			values[1] = Int32GetDatum(info.pid);
		else
			nulls[1] = true;
		if (info.pinned_epoch != 0)
		{
			values[2] = Int64GetDatum((int64) info.pinned_epoch);
			values[3] = Int64GetDatum((int64) (info.global_epoch - info.pinned_epoch));
		}
		else
			nulls[2] = nulls[3] = true;
		values[4] = Int64GetDatum((int64) info.global_epoch);
		values[5] = Int64GetDatum((int64) info.retired_objects);
		values[6] = Int64GetDatum((int64) info.retired_bytes);
		values[7] = Int64GetDatum((int64) info.adopted_bytes);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * artidx_index_size(regclass): bytes taken from the area, 0 when absent.
 *
 * Epoch: enters and leaves.
 * Locks: takes AccessShareLock on table and index and gives them back.
 */
Datum
artidx_index_size(PG_FUNCTION_ARGS)
{
	Oid			heapoid;
	Relation	index = art_stat_open(PG_GETARG_OID(0), &heapoid);
	ArtEntry   *e;
	uint64		gen;
	int64		bytes = 0;

	art_require_preload(index);
	e = art_entry_if_exists(index);
	if (e && art_entry_state(e, &gen) != ART_ABSENT)
	{
		ax_ctx	   *cx = art_ctx();
		ax_tree_info info;
		ax_status	st;

		ART_CORE_BEGIN();
		st = ax_info(cx, art_entry_tree(e), gen, &info);
		ART_CORE_END();
		if (st == AX_OK)
			bytes = (int64) info.bytes;
	}
	art_stat_close(index, heapoid);
	PG_RETURN_INT64(bytes);
}

static void
build_now(Relation index)
{
	art_reload(index);
	(void) art_ensure_ready(index);
}

/*
 * Do something to one index, which must be preloaded and not another
 * session's.
 *
 * Locks: takes AccessShareLock on table and index and gives them back.
 */
static void
act_on(Oid indexoid, void (*act) (Relation index))
{
	Oid			heapoid;
	Relation	index = art_stat_open(indexoid, &heapoid);

	art_require_preload(index);
	art_refuse_other_temp(index);
	act(index);
	art_stat_close(index, heapoid);
}

/*
 * Do it to the index, or to all parts of a partitioned one.
 *
 * Locks: takes AccessShareLock on the whole and gives it back before the parts
 * are locked.
 */
static void
act_on_parts(Oid indexoid, void (*act) (Relation index))
{
	Relation	whole;
	ListCell   *lc;

	if (get_rel_relkind(indexoid) != RELKIND_PARTITIONED_INDEX)
	{
		act_on(indexoid, act);
		return;
	}
	whole = relation_open(indexoid, AccessShareLock);
	if (whole->rd_indam->ambuild != artbuild)
		refuse_other_am(whole);
	/* tables are locked before their indexes, and the parts in no order with the whole */
	relation_close(whole, AccessShareLock);
	foreach(lc, find_all_inheritors(indexoid, NoLock, NULL))
	{
		/* others may have gone meanwhile */
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_INDEX)
			act_on(lfirst_oid(lc), act);
	}
}

/*
 * artidx_build(regclass): make it READY now, whatever kept it out.
 */
Datum
artidx_build(PG_FUNCTION_ARGS)
{
	act_on_parts(PG_GETARG_OID(0), build_now);
	PG_RETURN_VOID();
}

/*
 * artidx_unload(regclass): drop the structure, and keep it out.
 */
Datum
artidx_unload(PG_FUNCTION_ARGS)
{
	act_on_parts(PG_GETARG_OID(0), art_unload);
	PG_RETURN_VOID();
}
