/*
 * foreign_key_check.c
 *	  The check of a foreign key, by a look-up in the art index that it references.
 *
 * For each row that references, core runs a query that it has planned.  19 has a
 * quicker way, but for btree only.  There are two places where ours begins.  The
 * triggers of a statement are found in its executor state, before they fire.  They then
 * call check_key() in place of core's function.  COPY, deferred constraints and
 * cascades have no such place, and there the executor is handed core's query.  It
 * is answered without a tree of nodes.
 *
 * Either looks the key up, locks the row, and is done.  In every other case core begins
 * anew: there is no such row, somebody changes it, or a value is null.  Or the structure
 * is not in memory.  So core alone waits, follows updates and raises errors.
 *
 * A check opens the relations and the scan once, and keeps them open to the end of the
 * client's statement.
 *
 * src/plan/README.md: Checks of foreign keys
 */
#include "postgres.h"

#include "plan/plan.h"

#if PG_VERSION_NUM >= 180000

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "executor/execdesc.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "parser/parse_coerce.h"
#include "parser/parsetree.h"
#include "tcop/pquery.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "area/area.h"
#include "art_compat.h"
#include "key/key.h"
#include "scan/scan.h"

/* A foreign key, or a query of core's for some, which do not differ for it. */
typedef struct KeyName
{
	Oid			constraint;		/* InvalidOid: a query, which has */
	Oid			index;			/* this index */
	Oid			op;				/* and first operator */
} KeyName;

/* One of its columns. */
typedef struct KeyColumn
{
	AttrNumber	to;				/* that is referenced */
	AttrNumber	from;			/* that references; of a query, the parameter */
	Oid			type;			/* of that */
	Oid			op;
} KeyColumn;

/* The facts about it that this process has read. */
typedef struct KeyCheck
{
	KeyName		name;			/* the hash key */
	bool		valid;			/* the catalogs have not changed since */
	bool		usable;			/* there is a key to be looked up here */
	Oid			table;			/* that references; InvalidOid of a query */
	Oid			heap;			/* that is referenced, */
	Oid			index;			/* by this index, */
	Oid			owner;			/* and as this user */

	/* in the order of the index's columns */
	int			n;
	KeyColumn	columns[INDEX_MAX_KEYS];
	bool		toasted[INDEX_MAX_KEYS];
	ScanKeyData *keys;			/* without their values */
	MemoryContext cxt;			/* of keys */

	/* while it is open */
	IndexScanDesc scan;			/* NULL: it is not */
	TupleTableSlot *slot;
} KeyCheck;

static HTAB *checks = NULL;

/* The owner of relations that open checks refer to, and the memory of their scans. */
static ResourceOwner check_owner = NULL;
static MemoryContext check_cxt = NULL;
static int	nopen = 0;

/* The query of core's that has been answered, until it ends. */
static QueryDesc *answered = NULL;

/* ---- changes of catalogs ---- */

/* syscache callback: it may be about any foreign key. */
static void
catalog_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	HASH_SEQ_STATUS all;
	KeyCheck   *c;

	hash_seq_init(&all, checks);
	while ((c = hash_seq_search(&all)) != NULL)
		c->valid = false;
}

/* relcache callback: it is about a relation, or about all. */
static void
relation_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS all;
	KeyCheck   *c;

	hash_seq_init(&all, checks);
	while ((c = hash_seq_search(&all)) != NULL)
	{
		if (relid == InvalidOid || relid == c->heap || relid == c->index || relid == c->table)
			c->valid = false;
	}
}

/* ---- what a foreign key asks for ---- */

/*
 * May the owner of the table do what core's query does?  If not, core's error says so.
 * A query reads the key columns and locks rows, which takes the right to update.
 */
static bool
owner_may(Relation heap)
{
	const AclMode mode = ACL_SELECT | ACL_UPDATE;
	Oid			owner = heap->rd_rel->relowner;

	return pg_class_aclmask(RelationGetRelid(heap), owner, mode, ACLMASK_ALL) == mode &&
		object_aclcheck(NamespaceRelationId, RelationGetNamespace(heap), owner,
						ACL_USAGE) == ACLCHECK_OK;
}

/* Is the index as the planner would have it for such a query, and its keys bytes? */
static bool
index_fits(Relation heap, Relation index, int nkeys)
{
	const Form_pg_index form = index->rd_index;

	return art_is_art_index(index) && form->indrelid == RelationGetRelid(heap) &&
		form->indisunique && form->indisvalid && form->indisready && form->indimmediate &&
		!form->indisexclusion && form->indnkeyatts == nkeys &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		!art_index_compared(index);
}

/*
 * The scan key of one column of the index.  False: core would have to cast the
 * value, or the index is of another order than the column.
 */
static bool
make_key(KeyCheck *c, int column, Relation heap, Relation index)
{
	const KeyColumn *asked = &c->columns[column];
	Oid			collation = index->rd_indcollation[column];
	Oid			family = index->rd_opfamily[column];
	int			strategy;
	Oid			left;
	Oid			right;
	Oid			function = get_opcode(asked->op);

	if (get_op_opfamily_strategy(asked->op, family) != BTEqualStrategyNumber ||
		TupleDescAttr(RelationGetDescr(heap), asked->to - 1)->attcollation != collation ||
		object_aclcheck(ProcedureRelationId, function, c->owner, ACL_EXECUTE) != ACLCHECK_OK)
		return false;
	get_op_opfamily_properties(asked->op, family, false, &strategy, &left, &right);
	if (left != index->rd_opcintype[column] || !IsBinaryCoercible(asked->type, right))
		return false;
	c->toasted[column] = get_typlen(right) == -1;
	ScanKeyEntryInitialize(&c->keys[column], 0, column + 1, BTEqualStrategyNumber, right,
						   collation, function, (Datum) 0);
	return true;
}

/*
 * Fill in what the open relations say of columns in any order, but for "valid".
 */
static bool
read_relations(KeyCheck *c, Relation heap, Relation index, const KeyColumn *columns)
{
	MemoryContext old;
	bool		made = true;

	if (!index_fits(heap, index, c->n) || !owner_may(heap))
		return false;
	c->owner = heap->rd_rel->relowner;
	if (c->cxt == NULL)
		c->cxt = AllocSetContextCreate(TopMemoryContext, "art foreign key", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(c->cxt);
	old = MemoryContextSwitchTo(c->cxt);
	c->keys = palloc(c->n * sizeof(ScanKeyData));
	for (int i = 0; i < c->n && made; i++)
	{
		int			k = 0;

		while (k < c->n && columns[k].to != index->rd_index->indkey.values[i])
			k++;
		made = k < c->n;
		if (made)
		{
			c->columns[i] = columns[k];
			made = make_key(c, i, heap, index);
		}
	}
	MemoryContextSwitchTo(old);
	return made;
}

/*
 * The same of relations that are to be opened.
 *
 * Locks: those of core's check, to the end of the transaction: RowShareLock on the
 * table that is referenced, and AccessShareLock on its index.
 */
static void
read_tables(KeyCheck *c, const KeyColumn *columns)
{
	Relation	heap = table_open(c->heap, RowShareLock);
	Relation	index;

	if (heap->rd_rel->relkind == RELKIND_RELATION)
	{
		index = index_open(c->index, AccessShareLock);
		c->usable = read_relations(c, heap, index, columns);
		index_close(index, NoLock);
	}
	table_close(heap, NoLock);
}

/*
 * Read what the catalogs say of a foreign key.  A change that is heard of meanwhile
 * leaves it not valid.
 *
 * Locks: as read_tables().
 */
static void
read_constraint(KeyCheck *c, Relation table)
{
	HeapTuple	tup;
	Form_pg_constraint con;
	AttrNumber	from[INDEX_MAX_KEYS];
	AttrNumber	to[INDEX_MAX_KEYS];
	Oid			ops[INDEX_MAX_KEYS];
	KeyColumn	columns[INDEX_MAX_KEYS];

	c->usable = false;
	c->valid = true;
	tup = SearchSysCache1(CONSTROID, ObjectIdGetDatum(c->name.constraint));
	if (!HeapTupleIsValid(tup))
		return;
	con = (Form_pg_constraint) GETSTRUCT(tup);
	if (con->contype != CONSTRAINT_FOREIGN || con->conperiod ||
		con->conrelid != RelationGetRelid(table))
	{
		ReleaseSysCache(tup);
		return;
	}
	c->table = con->conrelid;
	c->heap = con->confrelid;
	c->index = con->conindid;
	DeconstructFkConstraintRow(tup, &c->n, from, to, ops, NULL, NULL, NULL, NULL);
	ReleaseSysCache(tup);
	for (int i = 0; i < c->n; i++)
	{
		Oid			type = TupleDescAttr(RelationGetDescr(table), from[i] - 1)->atttypid;

		columns[i] = (KeyColumn) {to[i], from[i], type, ops[i]};
	}
	read_tables(c, columns);
}

/* ---- checks that are open ---- */

/* Close one, or forget it, if its transaction is aborted and the memory goes. */
static void
close_check(KeyCheck *c, bool aborted)
{
	IndexScanDesc scan = c->scan;
	TupleTableSlot *slot = c->slot;
	ResourceOwner owner = CurrentResourceOwner;

	c->scan = NULL;
	c->slot = NULL;
	nopen--;
	if (aborted)
		return;

	RelationIncrementReferenceCount(scan->indexRelation);
	CurrentResourceOwner = check_owner;
	ExecDropSingleTupleTableSlot(slot);
	RelationDecrementReferenceCount(scan->heapRelation);
	RelationDecrementReferenceCount(scan->indexRelation);
	CurrentResourceOwner = owner;
	index_endscan(scan);
}

/*
 * Close all.  After an ERROR what they hold is given back, as it is for all scans
 * of a statement that ends so.
 */
static void
close_all(bool aborted)
{
	HASH_SEQ_STATUS all;
	KeyCheck   *c;

	if (nopen == 0)
		return;
	hash_seq_init(&all, checks);
	while ((c = hash_seq_search(&all)) != NULL)
	{
		if (c->scan != NULL)
			close_check(c, aborted);
	}
	if (aborted)
	{
		ResourceOwnerRelease(check_owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, false);
		ResourceOwnerDelete(check_owner);
		check_owner = NULL;
	}
	MemoryContextReset(check_cxt);
}

void
art_keychecks_close(void)
{
	close_all(false);
}

/* The transaction ends.  The checks of deferred constraints come before that. */
static void
keychecks_at_xact(XactEvent event, void *arg)
{
	answered = NULL;
	close_all(event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE);
}

/* The locks under an open check may be those of the subtransaction. */
static void
keychecks_at_subxact(SubXactEvent event, SubTransactionId mySubid, SubTransactionId parentSubid,
					 void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		answered = NULL;
		close_all(true);
	}
}

/* May the active snapshot use the index (get_relation_info())? */
static bool
sees_all(Relation index)
{
	return !index->rd_index->indcheckxmin ||
		TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
							  TransactionXmin);
}

/*
 * Open a check, if its index is in memory.  Relations and the slot's description belong
 * to check_owner from then on.  Anything else that beginning a scan takes does not.
 *
 * Locks: as read_tables().
 */
static bool
open_check(KeyCheck *c)
{
	Relation	heap = table_open(c->heap, RowShareLock);
	Relation	index = index_open(c->index, AccessShareLock);
	ArtEntry   *e = art_relcache_entry(index);
	uint64		gen;

	if (c->valid && e != NULL && art_entry_state(e, &gen) == ART_READY && sees_all(index))
	{
		ResourceOwner owner = CurrentResourceOwner;
		MemoryContext old = MemoryContextSwitchTo(check_cxt);
		IndexScanDesc scan = art_index_beginscan(heap, index, GetActiveSnapshot(), c->n, 0);

		if (check_owner == NULL)
			check_owner = ResourceOwnerCreate(NULL, "art open foreign keys");
		CurrentResourceOwner = check_owner;
		RelationIncrementReferenceCount(index);
		RelationIncrementReferenceCount(heap);
		c->slot = table_slot_create(heap, NULL);
		CurrentResourceOwner = owner;
		RelationDecrementReferenceCount(index);
		MemoryContextSwitchTo(old);
		table_index_fetch_end(scan->xs_heapfetch);
		scan->xs_heapfetch = NULL;
		c->scan = scan;
		nopen++;
		for (int i = 0; i < c->n; i++)
			InvokeFunctionExecuteHook(c->keys[i].sk_func.fn_oid);
		ereport(DEBUG1,
				(errmsg_internal("foreign keys are looked up in art index \"%s\"%s",
								 RelationGetRelationName(index),
								 OidIsValid(c->name.constraint) ? "" : ", for a query")));
	}
	index_close(index, NoLock);
	table_close(heap, NoLock);
	return c->scan != NULL;
}

/* The entry of a foreign key or a query, made if there is none. */
static KeyCheck *
known_check(const KeyName *name)
{
	bool		found;
	KeyCheck   *c = hash_search(checks, name, HASH_ENTER, &found);

	if (!found)
		memset((char *) c + sizeof(KeyName), 0, sizeof(KeyCheck) - sizeof(KeyName));
	if (!c->valid && c->scan != NULL)
		close_all(false);
	return c;
}

/* ---- a check ---- */

/*
 * Is the row with these keys there, and is it locked now?  No: perhaps it is.  No page
 * stays pinned.
 */
static bool
lock_row(KeyCheck *c, const Datum *values, Snapshot snapshot)
{
	IndexScanDesc scan = c->scan;
	MemoryContext old = MemoryContextSwitchTo(check_cxt);
	bool		locked = false;

	scan->xs_heapfetch = art_table_index_fetch_begin(scan->heapRelation);
	MemoryContextSwitchTo(old);
	for (int i = 0; i < c->n; i++)
		c->keys[i].sk_argument = values[i];
	scan->xs_snapshot = snapshot;
	index_rescan(scan, c->keys, c->n, NULL, 0);
	if (index_getnext_slot(scan, ForwardScanDirection, c->slot) && !scan->xs_recheck)
	{
		ItemPointerData tid = c->slot->tts_tid;
		TM_FailureData failure;

		locked = table_tuple_lock(scan->heapRelation, &tid, snapshot, c->slot,
								  GetCurrentCommandId(false), LockTupleKeyShare, LockWaitSkip,
								  TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS, &failure) == TM_Ok;
	}
	ExecClearTuple(c->slot);
	table_index_fetch_end(scan->xs_heapfetch);
	scan->xs_heapfetch = NULL;
	return locked;
}

/* May rows be checked here at all?  Another extension may want to hear of the query's rights. */
static inline bool
may_check(void)
{
	return ExecutorCheckPerms_hook == NULL && !XactReadOnly && !IsInParallelMode();
}

/* Look a key up, under the active snapshot, as the current user. */
static bool
look_up_key(KeyCheck *c, Datum *values)
{
	bool		found;

	for (int i = 0; i < c->n; i++)
	{
		if (c->toasted[i])
			values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));
	}
	found = (c->scan != NULL || open_check(c)) && lock_row(c, values, GetActiveSnapshot());
	/* it reads the table from now on */
	if (c->scan != NULL && unlikely(art_scan_is_private(c->scan)))
		close_all(false);
	return found;
}

/*
 * Is the row's foreign key fulfilled, as far as can be told here?  The look-up sees what
 * core's query would see: all that commands before have done, and what others have
 * committed by now.  In REPEATABLE READ it has the transaction's snapshot.
 */
static bool
fulfilled(TriggerData *trigger)
{
	const KeyName name = {.constraint = trigger->tg_trigger->tgconstraint};
	TupleTableSlot *slot = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newslot : trigger->tg_trigslot;
	Datum		values[INDEX_MAX_KEYS];
	KeyCheck   *c;
	Oid			user;
	int			context;
	bool		found;

	if (!may_check())
		return false;
	c = known_check(&name);
	if (unlikely(!c->valid))
		read_constraint(c, trigger->tg_relation);
	if (!c->usable)
		return false;

	/* a row that is gone, or changed since, needs none */
	if (!table_tuple_satisfies_snapshot(trigger->tg_relation, slot, SnapshotSelf))
		return true;
	for (int i = 0; i < c->n; i++)
	{
		bool		isnull;

		values[i] = slot_getattr(slot, c->columns[i].from, &isnull);
		if (isnull)
			return false;
	}

	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(c->owner, context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_NOFORCE_RLS);
	found = c->valid && look_up_key(c, values);
	SetUserIdAndSecContext(user, context);
	PopActiveSnapshot();
	return found;
}

/*
 * In place of RI_FKey_check_ins() and RI_FKey_check_upd().
 */
static Datum
check_key(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (CALLED_AS_TRIGGER(fcinfo) && fulfilled(trigger))
		return PointerGetDatum(NULL);
	return fcinfo->flinfo->fn_oid == F_RI_FKEY_CHECK_INS ?
		RI_FKey_check_ins(fcinfo) : RI_FKey_check_upd(fcinfo);
}

/* ---- the triggers of a statement ---- */

/*
 * Does the foreign key reference a table by an art index?  Those that do not are
 * remembered, too.
 */
static bool
references_art(const Trigger *trigger, Relation table)
{
	const KeyName name = {.constraint = trigger->tgconstraint};
	KeyCheck   *c = known_check(&name);

	if (likely(c->valid))
		return c->usable;
	if (get_rel_relam(trigger->tgconstrindid) == get_am_oid(ART_AM_NAME, true))
		return true;
	c->table = RelationGetRelid(table);
	c->heap = trigger->tgconstrrelid;
	c->index = trigger->tgconstrindid;
	c->usable = false;
	c->valid = true;
	return false;
}

/* The triggers of a table whose rows a statement has changed. */
static void
take_triggers(EState *estate, ResultRelInfo *rri)
{
	const TriggerDesc *td = rri->ri_TrigDesc;

	if (td == NULL || !(td->trig_insert_after_row || td->trig_update_after_row))
		return;
	for (int i = 0; i < td->numtriggers; i++)
	{
		const Trigger *trigger = &td->triggers[i];
		FmgrInfo   *function = &rri->ri_TrigFunctions[i];

		if ((trigger->tgfoid != F_RI_FKEY_CHECK_INS && trigger->tgfoid != F_RI_FKEY_CHECK_UPD) ||
			OidIsValid(function->fn_oid) || !references_art(trigger, rri->ri_RelationDesc))
			continue;
		fmgr_info_cxt(trigger->tgfoid, function, estate->es_query_cxt);
		function->fn_addr = check_key;
	}
}

void
art_keychecks_take(QueryDesc *queryDesc)
{
	EState	   *estate = queryDesc->estate;
	ListCell   *lc;

	if (estate->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS)
		return;
	foreach(lc, estate->es_opened_result_relations)
		take_triggers(estate, lfirst(lc));
}

void
art_keychecks_rest(QueryDesc *queryDesc)
{
	if (nopen > 0 && ActivePortal != NULL &&
		list_member_ptr(ActivePortal->stmts, queryDesc->plannedstmt))
		close_all(false);
}

/* ---- core's query ---- */

static ExecutorStart_hook_type prev_executor_start = NULL;
static ExecutorRun_hook_type prev_executor_run = NULL;
static ExecutorFinish_hook_type prev_executor_finish = NULL;
static ExecutorEnd_hook_type prev_executor_end = NULL;

static void start_executor(QueryDesc *queryDesc, int eflags);
static void end_executor(QueryDesc *queryDesc);

static EState *answer_state = NULL; /* with the number of its rows */
static TupleTableSlot *answer = NULL;	/* its only row */

/* An operand without a change of its type's name. */
static Node *
bare(Node *operand)
{
	return IsA(operand, RelabelType) ? (Node *) ((RelabelType *) operand)->arg : operand;
}

/*
 * The columns that the query asks for by its parameters, one for each condition.  False:
 * it does so otherwise.
 */
static bool
query_columns(QueryDesc *queryDesc, List *quals, KeyColumn *columns)
{
	ParamListInfo params = queryDesc->params;
	int			i = 0;
	ListCell   *lc;

	if (params == NULL || params->paramFetch != NULL || list_length(quals) > INDEX_MAX_KEYS)
		return false;
	foreach(lc, quals)
	{
		OpExpr	   *qual = lfirst(lc);
		Node	   *var;
		Node	   *param;
		int			id;

		if (!IsA(qual, OpExpr) || list_length(qual->args) != 2)
			return false;
		var = bare(linitial(qual->args));
		param = bare(lsecond(qual->args));
		if (!IsA(var, Var) || !IsA(param, Param) || ((Param *) param)->paramkind != PARAM_EXTERN)
			return false;
		id = ((Param *) param)->paramid;
		if (id < 1 || id > params->numParams || params->params[id - 1].isnull)
			return false;
		columns[i++] = (KeyColumn) {((Var *) var)->varattno, id, params->params[id - 1].ptype,
			qual->opno};
	}
	return true;
}

/* The scan of an index by which a query looks for rows to be locked for their keys, or NULL. */
static IndexScan *
key_query(QueryDesc *queryDesc)
{
	const PlannedStmt *stmt = queryDesc->plannedstmt;
	LockRows   *locker = (LockRows *) stmt->planTree;
	const PlanRowMark *mark;
	IndexScan  *scan;

	if (queryDesc->operation != CMD_SELECT || !IsA(locker, LockRows) ||
		list_length(locker->rowMarks) != 1 || stmt->subplans != NIL)
		return NULL;
	mark = linitial_node(PlanRowMark, locker->rowMarks);
	scan = (IndexScan *) outerPlan(locker);
	if (mark->markType != ROW_MARK_KEYSHARE || mark->waitPolicy != LockWaitBlock ||
		!IsA(scan, IndexScan) || scan->scan.plan.qual != NIL || scan->indexorderby != NIL ||
		!IsA(linitial_node(TargetEntry, locker->plan.targetlist)->expr, Const))
		return NULL;
	return scan;
}

/*
 * Answer the query by a look-up.  False: the executor has to.  Only core's checks
 * leave triggers to the statement around them.  An extension with a hook around ours
 * would look for a tree of nodes.
 */
static bool
answer_query(QueryDesc *queryDesc, int eflags)
{
	IndexScan  *scan;
	KeyColumn	columns[INDEX_MAX_KEYS];
	Datum		values[INDEX_MAX_KEYS];
	KeyName		name = {InvalidOid};
	KeyCheck   *c;

	if (eflags != EXEC_FLAG_SKIP_TRIGGERS || queryDesc->dest->mydest != DestSPI ||
		queryDesc->instrument_options != 0 || queryDesc->crosscheck_snapshot != InvalidSnapshot ||
		queryDesc->snapshot != GetActiveSnapshot() || !may_check() ||
		ExecutorStart_hook != start_executor || ExecutorEnd_hook != end_executor)
		return false;
	scan = key_query(queryDesc);
	if (scan == NULL || !query_columns(queryDesc, scan->indexqualorig, columns))
		return false;

	name.index = scan->indexid;
	name.op = columns[0].op;
	c = known_check(&name);
	if (unlikely(!c->valid))
	{
		c->usable = false;
		c->valid = true;
		c->heap = rt_fetch(scan->scan.scanrelid, queryDesc->plannedstmt->rtable)->relid;
		c->index = scan->indexid;
		c->n = list_length(scan->indexqualorig);
		read_tables(c, columns);
	}
	if (!c->valid || !c->usable || c->owner != GetUserId() ||
		c->n != list_length(scan->indexqualorig) ||
		memcmp(c->columns, columns, c->n * sizeof(KeyColumn)) != 0)
		return false;
	for (int i = 0; i < c->n; i++)
		values[i] = queryDesc->params->params[columns[i].from - 1].value;
	return look_up_key(c, values);
}

/* Make the state and the row that tell an answer, once. */
static void
make_answer(QueryDesc *queryDesc)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	answer_state = makeNode(EState);
	answer = MakeSingleTupleTableSlot(ExecCleanTypeFromTL(queryDesc->plannedstmt->planTree->targetlist),
									  &TTSOpsVirtual);
	MemoryContextSwitchTo(old);
	answer->tts_values[0] = Int32GetDatum(1);
	answer->tts_isnull[0] = false;
	ExecStoreVirtualTuple(answer);
}

/* ExecutorStart_hook.  A query that we have answered never gets any further. */
static void
start_executor(QueryDesc *queryDesc, int eflags)
{
	if (answer_query(queryDesc, eflags))
	{
		if (answer == NULL)
			make_answer(queryDesc);
		answer_state->es_processed = 0;
		queryDesc->estate = answer_state;
		queryDesc->tupDesc = answer->tts_tupleDescriptor;
		answered = queryDesc;
	}
	else if (prev_executor_start)
		prev_executor_start(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
}

/*
 * ExecutorRun_hook.  Core wants one row of its check, and looks at nothing of it.
 *
 * Arguments: those of the hook.
 */
static void
keycheck_executor_run(ART_RUN_PARAMETERS)
{
	if (queryDesc == answered)
	{
		DestReceiver *dest = queryDesc->dest;

		dest->rStartup(dest, queryDesc->operation, queryDesc->tupDesc);
		dest->receiveSlot(answer, dest);
		dest->rShutdown(dest);
		answer_state->es_processed = 1;
	}
	else if (prev_executor_run)
		prev_executor_run(ART_RUN_ARGUMENTS);
	else
		standard_ExecutorRun(ART_RUN_ARGUMENTS);
}

/* ExecutorFinish_hook: there is nothing to finish. */
static void
finish_executor(QueryDesc *queryDesc)
{
	if (queryDesc == answered)
		return;
	if (prev_executor_finish)
		prev_executor_finish(queryDesc);
	else
		standard_ExecutorFinish(queryDesc);
}

/* ExecutorEnd_hook.  Core's FreeQueryDesc() wants to see no state. */
static void
end_executor(QueryDesc *queryDesc)
{
	if (queryDesc == answered)
	{
		answered = NULL;
		queryDesc->estate = NULL;
		queryDesc->tupDesc = NULL;
	}
	else if (prev_executor_end)
		prev_executor_end(queryDesc);
	else
		standard_ExecutorEnd(queryDesc);
}

void
art_keychecks_install(void)
{
	const HASHCTL ctl = {.keysize = sizeof(KeyName), .entrysize = sizeof(KeyCheck)};
	const int	caches[] = {CONSTROID, AMOPOPID, PROCOID, NAMESPACEOID, AUTHOID, AUTHMEMMEMROLE};

	checks = hash_create("art foreign keys", 16, &ctl, HASH_ELEM | HASH_BLOBS);
	check_cxt = AllocSetContextCreate(TopMemoryContext, "art open foreign keys",
									  ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < (int) lengthof(caches); i++)
		CacheRegisterSyscacheCallback(caches[i], catalog_changed, (Datum) 0);
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	RegisterXactCallback(keychecks_at_xact, NULL);
	RegisterSubXactCallback(keychecks_at_subxact, NULL);
	prev_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = start_executor;
	prev_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = keycheck_executor_run;
	prev_executor_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = finish_executor;
	prev_executor_end = ExecutorEnd_hook;
	ExecutorEnd_hook = end_executor;
}

#else

/* Before 18 a foreign key cannot reference a key of art. */
void
art_keychecks_take(QueryDesc *queryDesc)
{
}

void
art_keychecks_rest(QueryDesc *queryDesc)
{
}

void
art_keychecks_close(void)
{
}

void
art_keychecks_install(void)
{
}

#endif
