/*
 * art_compat.h
 *	  Every difference between PostgreSQL 15 to 19 that artidx meets.
 *
 * src/README.md: Rooms
 */
#ifndef ART_COMPAT_H
#define ART_COMPAT_H

#include "postgres.h"

#include "access/heapam.h"
#include "access/heapam_xlog.h"
#include "access/htup_details.h"
#include "access/skey.h"
#include "access/xlogreader.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "commands/defrem.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/sinvaladt.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#include "varatt.h"
#endif

#if PG_VERSION_NUM < 150000
#error "artidx needs PostgreSQL 15 or later"
#endif

/*
 * ---- One build is for every minor release of its major version.  15.20 and 17.12 made
 * functions of what were macros, so that a composite value is looked at before its fields
 * are read (CVE-2026-6460).  Their headers make a library that no server before them loads.
 * So nothing here uses heap_getattr(), and this asks the server for its look, if it has
 * one.  test/symbols.sh finds what else needs more than the first minor release has. ----
 */
extern HeapTupleHeader art_core_row_header(Datum value) __asm__("DatumGetHeapTupleHeader")
			__attribute__((weak));

static inline HeapTupleHeader
art_row_header(Datum value)
{
	return art_core_row_header != NULL ? art_core_row_header(value) :
		(HeapTupleHeader) PG_DETOAST_DATUM(value);
}

/*
 * ---- comparisons of rows as scan keys.  From 18 on the executor makes them for every access
 * method that orders.  Before, it does for btree only.  There plan/row_compare.c takes a
 * comparison apart into its members, and these functions mark them: no operator has them,
 * for they return numbers. ----
 */
#if PG_VERSION_NUM < 180000
#define ART_MARKS_ROWS
#define ART_ROW_FIRST	F_BTRECORDCMP
#define ART_ROW_NEXT	F_BTRECORDIMAGECMP
#define ART_ROW_KEYS(n) Max((n), 1)
#else
#define ART_ROW_KEYS(n) 1
#endif

/*
 * How many members has the comparison of rows that begins with this key, the first of nkeys?
 * 0: it is an ordinary key.  ART_ROW_KEYS() tells how many keys that was.
 */
static inline int
art_row_members(ScanKey key, int nkeys, ScanKey *members)
{
	int			n = 1;

#ifdef ART_MARKS_ROWS
	if (likely(key->sk_func.fn_oid != ART_ROW_FIRST))
		return 0;
	*members = key;
	while (n < nkeys && key[n].sk_func.fn_oid == ART_ROW_NEXT)
		n++;
#else
	if (likely((key->sk_flags & SK_ROW_HEADER) == 0))
		return 0;
	*members = (ScanKey) DatumGetPointer(key->sk_argument);
	while (((*members)[n - 1].sk_flags & SK_ROW_END) == 0)
		n++;
#endif
	return n;
}

/* ---- a function that returns a set at once: 15.0 has the name that 15.1 replaced ---- */
#if PG_VERSION_NUM >= 160000
#define art_begin_rows(fcinfo)	InitMaterializedSRF((fcinfo), 0)
#else
#define art_begin_rows(fcinfo)	SetSingleFuncCall((fcinfo), 0)
#endif

/* ---- physical identity: RelFileNode became RelFileLocator in 16 ---- */
#if PG_VERSION_NUM >= 160000
#define ART_REL_LOCATOR(rel)	((rel)->rd_locator)
#define ART_REL_SPC(rel)		((rel)->rd_locator.spcOid)
#define ART_REL_DB(rel)			((rel)->rd_locator.dbOid)
#define ART_REL_NUMBER(rel)		((rel)->rd_locator.relNumber)
#define ART_REL_NEW_SUBID(rel)	((rel)->rd_newRelfilelocatorSubid != InvalidSubTransactionId ? \
								 (rel)->rd_newRelfilelocatorSubid : (rel)->rd_firstRelfilelocatorSubid)
#else
#define ART_REL_LOCATOR(rel)	((rel)->rd_node)
#define ART_REL_SPC(rel)		((rel)->rd_node.spcNode)
#define ART_REL_DB(rel)			((rel)->rd_node.dbNode)
#define ART_REL_NUMBER(rel)		((rel)->rd_node.relNode)
#define RelationSetNewRelfilenumber RelationSetNewRelfilenode
#define ART_REL_NEW_SUBID(rel)	((rel)->rd_newRelfilenodeSubid != InvalidSubTransactionId ? \
								 (rel)->rd_newRelfilenodeSubid : (rel)->rd_firstRelfilenodeSubid)
#endif

/*
 * The owner of a temporary relation: a backend id up to 16, a process number
 * from 17 on; -1 is "not temporary" in both.
 */
#define ART_REL_BACKEND(rel)	((int) (rel)->rd_backend)

/* ---- this process's number, 0..MaxBackends + NUM_AUXILIARY_PROCS - 1 ---- */
#if PG_VERSION_NUM >= 170000
#define ART_MY_PROCNO()			((int) MyProcNumber)
#else
#define ART_MY_PROCNO()			(MyProc->pgprocno)
#endif

/* ---- this process's local transaction id ---- */
#if PG_VERSION_NUM >= 170000
#define ART_MY_LXID()			(MyProc->vxid.lxid)
#else
#define ART_MY_LXID()			(MyProc->lxid)
#endif

/* ---- the process of a virtual transaction, or NULL ---- */
#if PG_VERSION_NUM >= 170000
#define ART_VXID_PROC(v)		ProcNumberGetProc((v).procNumber)
#else
#define ART_VXID_PROC(v)		BackendIdGetProc((v).backendId)
#endif

/* ---- wait events: named ones from 17 on ---- */
#if PG_VERSION_NUM >= 170000
#define ART_WAIT_EVENT(var, name) \
	((var) != 0 ? (var) : ((var) = WaitEventExtensionNew(name)))
#else
#define ART_WAIT_EVENT(var, name) ((void) (var), PG_WAIT_EXTENSION)
#endif

/* ---- old_snapshot_threshold: gone in 17 ---- */
#if PG_VERSION_NUM >= 170000
#define ART_OLD_SNAPSHOT_IN_USE() false
#else
#define ART_OLD_SNAPSHOT_IN_USE() (old_snapshot_threshold >= 0)
#endif

/* ---- may a role become another by SET ROLE?  A grant need not allow it from 16 on ---- */
#if PG_VERSION_NUM >= 160000
#define ART_CAN_SET_ROLE(member, role) member_can_set_role((member), (role))
#else
#define ART_CAN_SET_ROLE(member, role) is_member_of_role((member), (role))
#endif

/* ---- is this very lock held by this transaction? ---- */
#if PG_VERSION_NUM >= 170000
#define ART_LOCK_HELD(tag, mode) LockHeldByMe((tag), (mode), false)
#else
#define ART_LOCK_HELD(tag, mode) LockHeldByMe((tag), (mode))
#endif

/* ---- a tuple lock without waiting: 18 can log that it was not to be had ---- */
#if PG_VERSION_NUM >= 180000
#define art_conditional_lock_tuple(rel, tid, mode) \
	ConditionalLockTuple((rel), (tid), (mode), false)
#else
#define art_conditional_lock_tuple(rel, tid, mode) \
	ConditionalLockTuple((rel), (tid), (mode))
#endif

/* ---- a time limit of whole transactions: from 17 on ---- */
#if PG_VERSION_NUM >= 170000
#define ART_HAS_TRANSACTION_TIMEOUT 1
#define ART_CANCEL_PENDING()	(QueryCancelPending || TransactionTimeoutPending)
#else
#define ART_HAS_TRANSACTION_TIMEOUT 0
#define ART_CANCEL_PENDING()	QueryCancelPending
#endif

/*
 * Signal handlers are reached through a wrapper from 17 on, so that which one
 * is installed cannot be seen.
 */
#if PG_VERSION_NUM >= 170000
#define ART_SIGNAL_HANDLER_VISIBLE 0
#else
#define ART_SIGNAL_HANDLER_VISIBLE 1
#endif

/* ---- ownership and rights: one function for all objects from 16 on ---- */
#if PG_VERSION_NUM >= 160000
#define ART_DATABASE_OWNERCHECK(db, role) \
	object_ownercheck(DatabaseRelationId, (db), (role))
#define ART_NAMESPACE_ACLCHECK(nsp, role, mode) \
	object_aclcheck(NamespaceRelationId, (nsp), (role), (mode))
#else
#define ART_DATABASE_OWNERCHECK(db, role) pg_database_ownercheck((db), (role))
#define ART_NAMESPACE_ACLCHECK(nsp, role, mode) pg_namespace_aclcheck((nsp), (role), (mode))
#endif

/* ---- the index of the primary key: 18 asks whether a deferrable one is meant, too ---- */
#if PG_VERSION_NUM >= 180000
#define ART_PRIMARY_KEY_INDEX(rel) RelationGetPrimaryKeyIndex((rel), false)
#else
#define ART_PRIMARY_KEY_INDEX(rel) RelationGetPrimaryKeyIndex(rel)
#endif

/* ---- make_new_heap()'s header ---- */
#if PG_VERSION_NUM >= 190000
#include "commands/repack.h"
#else
#include "commands/cluster.h"
#endif

/* ---- index_concurrently_swap() copies the columns' statistics targets up to 16 ---- */
#define ART_SWAP_LEAVES_TARGETS (PG_VERSION_NUM >= 170000)

/* ---- ownership of a relation: the same ---- */
#if PG_VERSION_NUM >= 160000
#define ART_OWNS_TABLE(relid) \
	object_ownercheck(RelationRelationId, (relid), GetUserId())
#else
#define ART_OWNS_TABLE(relid) pg_class_ownercheck((relid), GetUserId())
#endif

/*
 * ---- make an index, without a question of rights or a NOTICE.  not_in_use: the table's
 * other users are looked for.  16 counts a parent's partitions; 19 can point at the text of
 * the statement. ----
 */
#if PG_VERSION_NUM >= 190000
#define art_define_index(relid, stmt, not_in_use) \
	DefineIndex(NULL, (relid), (stmt), InvalidOid, InvalidOid, InvalidOid, -1, \
				false, false, (not_in_use), false, true)
#elif PG_VERSION_NUM >= 160000
#define art_define_index(relid, stmt, not_in_use) \
	DefineIndex((relid), (stmt), InvalidOid, InvalidOid, InvalidOid, -1, \
				false, false, (not_in_use), false, true)
#else
#define art_define_index(relid, stmt, not_in_use) \
	DefineIndex((relid), (stmt), InvalidOid, InvalidOid, InvalidOid, \
				false, false, (not_in_use), false, true)
#endif

/*
 * ---- an access method's routine: up to 18 core keeps, and may free, what the handler
 * returns; from 19 on it points at it for ever ----
 */
#if PG_VERSION_NUM >= 190000
#define ART_RETURN_ROUTINE(routine) PG_RETURN_POINTER(&(routine))
#else
#define ART_RETURN_ROUTINE(routine) \
	PG_RETURN_POINTER(memcpy(makeNode(IndexAmRoutine), &(routine), sizeof(routine)))
#endif

/* ---- is a static background worker of this type registered?  Postmaster only ---- */
#if PG_VERSION_NUM >= 180000
#define ART_BGWORKER_FOREACH(iter) dlist_foreach(iter, &BackgroundWorkerList)
#define ART_BGWORKER(iter) dlist_container(RegisteredBgWorker, rw_lnode, (iter).cur)
typedef dlist_iter ArtBgworkerIter;
#else
#define ART_BGWORKER_FOREACH(iter) slist_foreach(iter, &BackgroundWorkerList)
#define ART_BGWORKER(iter) slist_container(RegisteredBgWorker, rw_lnode, (iter).cur)
typedef slist_iter ArtBgworkerIter;
#endif

/* ---- a worker that DROP DATABASE and the like may end: from 19 on ---- */
#if PG_VERSION_NUM >= 190000
#define ART_WORKER_INTERRUPTIBLE BGWORKER_INTERRUPTIBLE
#else
#define ART_WORKER_INTERRUPTIBLE 0
#endif

/* ---- has an extension said how these two are to be joined?  Such advice is of 19 ---- */
#if PG_VERSION_NUM >= 190000
#define ART_JOIN_IS_ADVISED(root, extra) \
	((((extra)->pgs_mask ^ (root)->glob->default_pgs_mask) & PGS_JOIN_ANY) != 0)
#else
#define ART_JOIN_IS_ADVISED(root, extra) false
#endif

/*
 * ---- the clauses of DISTINCT and GROUP BY, from 16 on without what is redundant; the order
 * of groups, without that of aggregates; the path that drops equal neighbours ----
 */
#if PG_VERSION_NUM >= 160000
#define ART_DISTINCT_CLAUSE(root) ((root)->processed_distinctClause)
#define ART_GROUP_CLAUSE(root) ((root)->processed_groupClause)
#define ART_GROUP_PATHKEYS(root) list_copy_head((root)->group_pathkeys, (root)->num_groupby_pathkeys)
#else
#define ART_DISTINCT_CLAUSE(root) ((root)->parse->distinctClause)
#define ART_GROUP_CLAUSE(root) ((root)->parse->groupClause)
#define ART_GROUP_PATHKEYS(root) ((root)->group_pathkeys)
#endif
#if PG_VERSION_NUM >= 190000
#define art_unique_path(root, rel, path, columns, groups) \
	create_unique_path((root), (rel), (path), (columns), (groups))
#else
#define art_unique_path(root, rel, path, columns, groups) \
	create_upper_unique_path((root), (rel), (path), (columns), (groups))
#endif

/* ---- the path that core has made of an inner side without its duplicates: up to 18 ---- */
#if PG_VERSION_NUM >= 190000
#define ART_UNIQUE_INNER(rel) ((Path *) NULL)
#else
#define ART_UNIQUE_INNER(rel) ((rel)->cheapest_unique_path)
#endif

/* ---- a path's order: does it go down? ---- */
#if PG_VERSION_NUM >= 180000
#define ART_PATHKEY_DESC(pathkey) ((pathkey)->pk_cmptype == COMPARE_GT)
#else
#define ART_PATHKEY_DESC(pathkey) ((pathkey)->pk_strategy == BTGreaterStrategyNumber)
#endif

/* ---- does core treat the collation's order as memcmp's? ---- */
#if PG_VERSION_NUM >= 180000
#define art_collate_is_c(collid) (pg_newlocale_from_collation(collid)->collate_is_c)
#else
#define art_collate_is_c(collid) lc_collate_is_c(collid)
#endif

/*
 * ---- the libc locale of a deterministic collation; false: it has none.  (locale_t) 0 is
 * the database's own, as 15 to 17 keep it.  19 does not keep the provider with the locale. ----
 */
static inline bool
art_libc_locale(Oid collation, locale_t *loc)
{
	pg_locale_t l = pg_newlocale_from_collation(collation);

#if PG_VERSION_NUM >= 190000
	char		provider;

	if (collation == DEFAULT_COLLATION_OID)
	{
		HeapTuple	tup = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));

		if (!HeapTupleIsValid(tup))
			elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
		provider = ((Form_pg_database) GETSTRUCT(tup))->datlocprovider;
		ReleaseSysCache(tup);
	}
	else
	{
		HeapTuple	tup = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));

		if (!HeapTupleIsValid(tup))
			elog(ERROR, "cache lookup failed for collation %u", collation);
		provider = ((Form_pg_collation) GETSTRUCT(tup))->collprovider;
		ReleaseSysCache(tup);
	}
	if (provider != COLLPROVIDER_LIBC || !l->deterministic)
		return false;
	*loc = l->lt;
#else
	if (l != NULL && (l->provider != COLLPROVIDER_LIBC || !l->deterministic))
		return false;
	*loc = l != NULL ? l->info.lt : (locale_t) 0;
#endif
	return true;
}

/* ---- a datum out of a sort, in the caller's memory ---- */
#if PG_VERSION_NUM >= 160000
#define art_tuplesort_getdatum(sort, val, isnull) \
	tuplesort_getdatum((sort), true, true, (val), (isnull), NULL)
#else
#define art_tuplesort_getdatum(sort, val, isnull) \
	tuplesort_getdatum((sort), true, (val), (isnull), NULL)
#endif

/* ---- a range of two bounds: from 16 on errors can go elsewhere ---- */
#if PG_VERSION_NUM >= 160000
#define art_range_serialize(typcache, lower, upper, empty) \
	range_serialize((typcache), (lower), (upper), (empty), NULL)
#else
#define art_range_serialize(typcache, lower, upper, empty) \
	range_serialize((typcache), (lower), (upper), (empty))
#endif

/* ---- a column that is computed when it is read: from 18 on ---- */
#if PG_VERSION_NUM < 180000
#define ATTRIBUTE_GENERATED_VIRTUAL 'v'
#endif

/* ---- has the page lost rows of a snapshot older than the threshold? ---- */
#if PG_VERSION_NUM >= 170000
#define ART_TEST_OLD_SNAPSHOT(snapshot, rel, page) ((void) 0)
#else
#define ART_TEST_OLD_SNAPSHOT(snapshot, rel, page) \
	TestForOldSnapshot((snapshot), (rel), (page))
#endif

/* ---- VACUUM's cost-based delay knows of ANALYZE from 18 on ---- */
#if PG_VERSION_NUM >= 180000
#define art_vacuum_delay_point() vacuum_delay_point(false)
#else
#define art_vacuum_delay_point() vacuum_delay_point()
#endif

/* ---- where in a parallel scan's memory the access method's part is ---- */
#if PG_VERSION_NUM >= 180000
#define ART_PS_OFFSET	ps_offset_am
#else
#define ART_PS_OFFSET	ps_offset
#endif

/*
 * ---- from this minor release on a bitmap scan visits every row of its
 * bitmap.  Before, it believed the visibility map, and so counted rows that
 * VACUUM had removed meanwhile. ----
 */
#if PG_VERSION_NUM >= 180000
#define ART_BITMAP_VISITS_HEAP_FROM	0
#elif PG_VERSION_NUM >= 170000
#define ART_BITMAP_VISITS_HEAP_FROM	5
#elif PG_VERSION_NUM >= 160000
#define ART_BITMAP_VISITS_HEAP_FROM	9
#else
#define ART_BITMAP_VISITS_HEAP_FROM	13
#endif

/*
 * ---- the WAL writer's latch; NULL: there is no WAL writer.  It may start or end
 * any time, so the place is read once. ----
 */
#if PG_VERSION_NUM >= 180000
static inline Latch *
art_wal_writer_latch(ProcNumber n)
{
	return n == INVALID_PROC_NUMBER ? NULL : &GetPGProcByNumber(n)->procLatch;
}
#define ART_WAL_WRITER_LATCH() \
	art_wal_writer_latch(*(volatile ProcNumber *) &ProcGlobal->walwriterProc)
#else
#define ART_WAL_WRITER_LATCH()	(*(Latch *volatile *) &ProcGlobal->walwriterLatch)
#endif

/* ---- a portal's executor is told whether it is run once only: up to 17 ---- */
#if PG_VERSION_NUM >= 180000
#define ART_RUN_PARAMETERS	QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define ART_RUN_ARGUMENTS	queryDesc, direction, count
#else
#define ART_RUN_PARAMETERS	QueryDesc *queryDesc, ScanDirection direction, uint64 count, \
	bool execute_once
#define ART_RUN_ARGUMENTS	queryDesc, direction, count, execute_once
#endif

/* ---- GROUP BY as it is planned: a copy of the query's from 16 on ---- */
#if PG_VERSION_NUM >= 160000
#define ART_GROUP_CLAUSE(root)	((root)->processed_groupClause)
#else
#define ART_GROUP_CLAUSE(root)	((root)->parse->groupClause)
#endif

/* ---- one search of an index, for pg_stat_user_indexes and, from 18 on, EXPLAIN ---- */
#if PG_VERSION_NUM >= 180000
#define ART_COUNT_SEARCH(scan) \
	do { \
		pgstat_count_index_scan((scan)->indexRelation); \
		if ((scan)->instrument) \
			(scan)->instrument->nsearches++; \
	} while (0)
#else
#define ART_COUNT_SEARCH(scan)	pgstat_count_index_scan((scan)->indexRelation)
#endif

/* ---- where they are counted for EXPLAIN ---- */
#if PG_VERSION_NUM >= 180000
#define ART_SHOWS_SEARCHES true
#define art_count_searches(scan, where) ((scan)->instrument = (where))
#else
#define ART_SHOWS_SEARCHES false
#define art_count_searches(scan, where) ((void) (where))
typedef struct IndexScanInstrumentation
{
	uint64		nsearches;
} IndexScanInstrumentation;
#endif

/* ---- elements of an array, about ---- */
#if PG_VERSION_NUM >= 170000
#define art_estimate_array_length(root, expr) estimate_array_length((root), (expr))
#else
#define art_estimate_array_length(root, expr) ((double) estimate_array_length(expr))
#endif

/* ---- which outer joins can make a column NULL: kept with it from 16 on ---- */
#if PG_VERSION_NUM >= 160000
#define ART_COPY_NULLINGRELS(to, from) \
	((to)->varnullingrels = bms_copy((from)->varnullingrels))
#else
#define ART_COPY_NULLINGRELS(to, from) ((void) (to), (void) (from))
#endif

/* ---- a table of the statement: 18 asks whether rows of it are changed ---- */
#if PG_VERSION_NUM >= 180000
#define art_range_table_relation(estate, rti) ExecGetRangeTableRelation((estate), (rti), false)
#else
#define art_range_table_relation(estate, rti) ExecGetRangeTableRelation((estate), (rti))
#endif

/* ---- EXPLAIN's properties have a header of their own from 18 on ---- */
#if PG_VERSION_NUM >= 180000
#define ART_EXPLAIN_HEADER "commands/explain_format.h"
#else
#define ART_EXPLAIN_HEADER "commands/explain.h"
#endif

/*
 * ---- begin scans: 18 counts searches of an index on behalf of EXPLAIN; 19 takes flags.
 * A statement's scan says whether the statement only reads the table.  If so, a fetch
 * may set bits of the visibility map. ----
 */
#if PG_VERSION_NUM >= 190000
#define art_table_beginscan(rel, snapshot) table_beginscan((rel), (snapshot), 0, NULL, SO_NONE)
#define art_table_beginscan_parallel(rel, shared) \
	table_beginscan_parallel((rel), (shared), SO_NONE)
#define art_table_index_fetch_begin(rel) table_index_fetch_begin((rel), SO_NONE)
#define art_parallelscan_startblock(rel, worker, shared) \
	table_block_parallelscan_startblock_init((rel), (worker), (shared), \
											 InvalidBlockNumber, InvalidBlockNumber)
#else
#define art_table_beginscan(rel, snapshot) table_beginscan((rel), (snapshot), 0, NULL)
#define art_table_beginscan_parallel(rel, shared) table_beginscan_parallel((rel), (shared))
#define art_table_index_fetch_begin(rel) table_index_fetch_begin(rel)
#define art_parallelscan_startblock(rel, worker, shared) \
	table_block_parallelscan_startblock_init((rel), (worker), (shared))
#endif
#if PG_VERSION_NUM >= 190000
static inline uint32
art_scan_flags(const EState *estate, Index rti)
{
	const PlannedStmt *stmt = estate->es_plannedstmt;

	return bms_is_member(rti, stmt->resultRelationRelids) ||
		bms_is_member(rti, stmt->rowMarkRelids) ? SO_NONE : SO_HINT_REL_READ_ONLY;
}
#define art_index_beginscan(heap, index, snapshot, nkeys, flags) \
	index_beginscan((heap), (index), (snapshot), NULL, (nkeys), 0, (flags))
#else
#define art_scan_flags(estate, rti) 0
#if PG_VERSION_NUM >= 180000
#define art_index_beginscan(heap, index, snapshot, nkeys, flags) \
	index_beginscan((heap), (index), (snapshot), NULL, (nkeys), 0)
#else
#define art_index_beginscan(heap, index, snapshot, nkeys, flags) \
	index_beginscan((heap), (index), (snapshot), (nkeys), 0)
#endif
#endif

/*
 * ---- the page that a fetch by an index has pinned.  19 keeps its number, too.  When 19
 * prunes, it wants to set bits of the visibility map. ----
 */
#if PG_VERSION_NUM >= 190000
#define art_fetch_set_page(fetch, buffer, block) \
	((fetch)->xs_cbuf = (buffer), (fetch)->xs_blk = (block))
#define art_page_prune_opt(rel, fetch) \
	heap_page_prune_opt((rel), (fetch)->xs_cbuf, &(fetch)->xs_vmbuffer, \
						((fetch)->xs_base.flags & SO_HINT_REL_READ_ONLY) != 0)
#else
#define art_fetch_set_page(fetch, buffer, block) \
	((void) (block), (fetch)->xs_cbuf = (buffer))
#define art_page_prune_opt(rel, fetch) heap_page_prune_opt((rel), (fetch)->xs_cbuf)
#endif

/* ---- what EXPLAIN counts of a plan's node ---- */
#if PG_VERSION_NUM < 190000
typedef Instrumentation NodeInstrumentation;
#endif

/*
 * ---- planner hooks: 19 tells the planner's about EXPLAIN, and has in place of
 * get_relation_info_hook one that comes a moment later ----
 */
#if PG_VERSION_NUM >= 190000
#define ART_PLAN_PARAMETERS	const char *query_string, int cursorOptions, \
	ParamListInfo boundParams, ExplainState *es
#define ART_PLAN_ARGUMENTS	query_string, cursorOptions, boundParams, es
typedef build_simple_rel_hook_type ArtRelInfoHook;
#define art_rel_info_hook	build_simple_rel_hook
#define ART_REL_INFO_PARAMETERS	PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define ART_REL_INFO_ARGUMENTS	root, rel, rte
#else
#define ART_PLAN_PARAMETERS	const char *query_string, int cursorOptions, ParamListInfo boundParams
#define ART_PLAN_ARGUMENTS	query_string, cursorOptions, boundParams
typedef get_relation_info_hook_type ArtRelInfoHook;
#define art_rel_info_hook	get_relation_info_hook
#define ART_REL_INFO_PARAMETERS	PlannerInfo *root, Oid relationObjectId, bool inhparent, \
	RelOptInfo *rel
#define ART_REL_INFO_ARGUMENTS	root, relationObjectId, inhparent, rel
#endif

/*
 * ---- a moment as another type; *overflow as btree's comparisons across types have it:
 * 1 above all of them, -1 below.  19 tells by a soft error. ----
 */
#if PG_VERSION_NUM >= 190000
#define ART_MOMENT(name, function, input) \
static inline int64 \
name(input moment, int *overflow) \
{ \
	ErrorSaveContext soft = {.type = T_ErrorSaveContext}; \
	int64		result = function(moment, (Node *) &soft); \
 \
	*overflow = !soft.error_occurred ? 0 : moment > 0 ? 1 : -1; \
	return result; \
}
ART_MOMENT(art_date2timestamp, date2timestamp_safe, DateADT)
ART_MOMENT(art_date2timestamptz, date2timestamptz_safe, DateADT)
ART_MOMENT(art_timestamp2timestamptz, timestamp2timestamptz_safe, Timestamp)
#undef ART_MOMENT
#else
#define art_date2timestamp	date2timestamp_opt_overflow
#define art_date2timestamptz date2timestamptz_opt_overflow
#define art_timestamp2timestamptz timestamp2timestamptz_opt_overflow
#endif

/* ---- a relation's file, as WAL records name it ---- */
#if PG_VERSION_NUM >= 160000
typedef RelFileLocator ArtRelFile;
#define ART_RELFILE_SET(f, s, d, r) \
	((f).spcOid = (s), (f).dbOid = (d), (f).relNumber = (r))
#define ART_TRUNCATE_FILE	rlocator
#else
typedef RelFileNode ArtRelFile;
#define ART_RELFILE_SET(f, s, d, r) \
	((f).spcNode = (s), (f).dbNode = (d), (f).relNode = (r))
#define ART_TRUNCATE_FILE	rnode
#endif

/*
 * ---- does a bitmap heap scan of this server trust the visibility map?  Then it counts
 * rows that it did not fetch.  Minor releases ended that. ----
 */
static inline bool
art_bitmaps_skip_fetch(void)
{
	static int	version = 0;

	if (version == 0)
		version = atoi(GetConfigOption("server_version_num", false, false));
	return version < 150013 || (version >= 160000 && version < 160009) ||
		(version >= 170000 && version < 170005);
}

/*
 * ---- from 17 on SET EXPRESSION makes a column's indexes anew, as ALTER TYPE does ----
 */
#if PG_VERSION_NUM >= 170000
#define ART_REMAKES_INDEXES(subtype) ((subtype) == AT_AlterColumnType || (subtype) == AT_SetExpression)
#else
#define ART_REMAKES_INDEXES(subtype) ((subtype) == AT_AlterColumnType)
#endif

/*
 * ---- line pointers that a prune, or VACUUM, made dead or unused: from 17 on three kinds
 * of record with one layout.  The record's block 0 has data. ----
 */
typedef struct ArtPruned
{
	int			ndead;
	int			nunused;
	OffsetNumber *dead;
	OffsetNumber *unused;
} ArtPruned;

#if PG_VERSION_NUM >= 170000
#define ART_IS_PRUNE(op) \
	((op) == XLOG_HEAP2_PRUNE_ON_ACCESS || (op) == XLOG_HEAP2_PRUNE_VACUUM_SCAN || \
	 (op) == XLOG_HEAP2_PRUNE_VACUUM_CLEANUP)
#else
#define ART_IS_PRUNE(op) ((op) == XLOG_HEAP2_PRUNE || (op) == XLOG_HEAP2_VACUUM)
#endif

/*
 * The line pointers that a record of a prune names, in its block's data.  False: they are not
 * within these.  From 17 on the server's own function has walked the same bytes at replay.
 */
static inline bool
art_pruned(const DecodedXLogRecord *record, ArtPruned *p)
{
	char	   *data = record->blocks[0].data;
	char	   *end = data + record->blocks[0].data_len;
#if PG_VERSION_NUM >= 170000
	xl_heap_prune rec;
	int			nplans;
	int			nredirected;
	xlhp_freeze_plan *plans;
	OffsetNumber *frozen;
	OffsetNumber *redirected;

	if (record->main_data_len < SizeOfHeapPrune)
		return false;
	memcpy(&rec, record->main_data, SizeOfHeapPrune);
	heap_xlog_deserialize_prune_and_freeze(data, rec.flags, &nplans, &plans, &frozen,
										   &nredirected, &redirected,
										   &p->ndead, &p->dead, &p->nunused, &p->unused);
	return (p->ndead == 0 || (char *) (p->dead + p->ndead) <= end) &&
		(p->nunused == 0 || (char *) (p->unused + p->nunused) <= end);
#else
	uint32		n = (uint32) ((end - data) / sizeof(OffsetNumber));
	uint32		before = 0;

	p->ndead = 0;
	if ((record->header.xl_info & XLOG_HEAP_OPMASK) == XLOG_HEAP2_PRUNE)
	{
		const xl_heap_prune *rec = (const xl_heap_prune *) record->main_data;

		if (record->main_data_len < SizeOfHeapPrune)
			return false;
		p->ndead = rec->ndead;
		before = 2 * (uint32) rec->nredirected;
	}
	if (before + p->ndead > n)
		return false;
	p->dead = (OffsetNumber *) data + before;
	p->unused = p->dead + p->ndead;
	p->nunused = (int) (n - before) - p->ndead;
	return true;
#endif
}

/* 17 gave the counters of checkpoints other names. */
#if PG_VERSION_NUM >= 170000
#define ART_CHECKPOINTS_TIMED(stats)		((stats)->num_timed)
#define ART_CHECKPOINTS_REQUESTED(stats)	((stats)->num_requested)
#else
#define ART_CHECKPOINTS_TIMED(stats)		((stats)->timed_checkpoints)
#define ART_CHECKPOINTS_REQUESTED(stats)	((stats)->requested_checkpoints)
#endif

#endif							/* ART_COMPAT_H */
