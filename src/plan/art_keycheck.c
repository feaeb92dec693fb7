/*
 * art_keycheck.c
 *	  The check of a foreign key, by a look-up in the art index that it references.
 *
 * For each row that references, core runs a query that it has planned.  19 has a
 * quicker way, but for btree only.  Ours is taken for the triggers of a statement:
 * they are found in its executor state, and what they call is this file's function.
 * That looks the key up, locks the row, and is done.  Whatever is not so plain is
 * left to core's function, which begins anew: no such row, a row that somebody
 * changes, a structure that is not in memory, a null.  So core alone waits, follows
 * updates and raises errors.
 *
 * What a check needs is opened once and kept to the end of the client's statement.
 *
 * src/README.md: Checks of foreign keys
 */
#include "postgres.h"

#include "plan/plan.h"

#if PG_VERSION_NUM >= 180000

#include "access/genam.h"
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
#include "storage/lmgr.h"
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

/* A foreign key as this process knows it. */
typedef struct KeyCheck
{
	Oid			constraint;		/* the hash key */
	bool		valid;			/* the catalogs have not changed since */
	bool		usable;			/* there is a key to be looked up here */
	Oid			table;			/* that references */
	Oid			heap;			/* that is referenced, */
	Oid			index;			/* by this index, */
	Oid			owner;			/* and as this user */

	/* in the order of the index's columns */
	int			n;
	AttrNumber	from[INDEX_MAX_KEYS];	/* the referencing columns */
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

/* ---- changes of catalogs ---- */

/* syscache callback: it may be about any of them */
static void
catalog_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	HASH_SEQ_STATUS all;
	KeyCheck   *c;

	hash_seq_init(&all, checks);
	while ((c = hash_seq_search(&all)) != NULL)
		c->valid = false;
}

/* relcache callback */
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
		RelationGetIndexPredicate(index) == NIL && RelationGetIndexExpressions(index) == NIL &&
		!art_index_compared(index);
}

/*
 * The scan key of one column of the index, for the operator of the foreign key.  False:
 * core would have to cast the value, or the index is of another order than the column.
 */
static bool
make_key(KeyCheck *c, int column, Relation heap, Relation index, Relation table, Oid op)
{
	AttrNumber	attno = index->rd_index->indkey.values[column];
	Oid			collation = index->rd_indcollation[column];
	Oid			type = TupleDescAttr(RelationGetDescr(table), c->from[column] - 1)->atttypid;
	Oid			family = index->rd_opfamily[column];
	int			strategy;
	Oid			left;
	Oid			right;
	Oid			function = get_opcode(op);

	if (get_op_opfamily_strategy(op, family) != BTEqualStrategyNumber ||
		TupleDescAttr(RelationGetDescr(heap), attno - 1)->attcollation != collation ||
		object_aclcheck(ProcedureRelationId, function, c->owner, ACL_EXECUTE) != ACLCHECK_OK)
		return false;
	get_op_opfamily_properties(op, family, false, &strategy, &left, &right);
	if (left != index->rd_opcintype[column] || !IsBinaryCoercible(type, right))
		return false;
	c->toasted[column] = get_typlen(right) == -1;
	ScanKeyEntryInitialize(&c->keys[column], 0, column + 1, BTEqualStrategyNumber, right,
						   collation, function, (Datum) 0);
	return true;
}

/*
 * Fill in what the open relations say, but for "valid".
 *
 * Arguments: the relations, and the constraint's columns and operators.
 */
static bool
read_relations(KeyCheck *c, Relation heap, Relation index, Relation table, int nkeys,
			   const AttrNumber *from, const AttrNumber *to, const Oid *ops)
{
	MemoryContext old;
	bool		made = true;

	if (heap->rd_rel->relkind != RELKIND_RELATION || !index_fits(heap, index, nkeys) ||
		!owner_may(heap))
		return false;
	c->owner = heap->rd_rel->relowner;
	c->n = nkeys;
	if (c->cxt == NULL)
		c->cxt = AllocSetContextCreate(TopMemoryContext, "art foreign key", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(c->cxt);
	old = MemoryContextSwitchTo(c->cxt);
	c->keys = palloc(nkeys * sizeof(ScanKeyData));
	for (int i = 0; i < nkeys && made; i++)
	{
		int			k = 0;

		while (k < nkeys && to[k] != index->rd_index->indkey.values[i])
			k++;
		if (k == nkeys)
			made = false;
		else
		{
			c->from[i] = from[k];
			made = make_key(c, i, heap, index, table, ops[k]);
		}
	}
	MemoryContextSwitchTo(old);
	return made;
}

/*
 * Read what the catalogs say.  A change that is heard of meanwhile leaves it not valid.
 *
 * Locks: those of core's check, to the end of the transaction: RowShareLock on the
 * table that is referenced, and AccessShareLock on its index.
 */
static void
read_catalogs(KeyCheck *c, Relation table)
{
	HeapTuple	tup;
	Form_pg_constraint con;
	int			nkeys;
	AttrNumber	from[INDEX_MAX_KEYS];
	AttrNumber	to[INDEX_MAX_KEYS];
	Oid			ops[INDEX_MAX_KEYS];
	Relation	heap;
	Relation	index;

	c->usable = false;
	c->valid = true;
	tup = SearchSysCache1(CONSTROID, ObjectIdGetDatum(c->constraint));
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
	DeconstructFkConstraintRow(tup, &nkeys, from, to, ops, NULL, NULL, NULL, NULL);
	ReleaseSysCache(tup);

	heap = table_open(c->heap, RowShareLock);
	if (heap->rd_rel->relkind == RELKIND_RELATION)
	{
		index = index_open(c->index, AccessShareLock);
		c->usable = read_relations(c, heap, index, table, nkeys, from, to, ops);
		index_close(index, NoLock);
	}
	table_close(heap, NoLock);
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

/* See plan.h. */
void
art_keychecks_close(void)
{
	close_all(false);
}

/* The transaction ends.  The checks of deferred constraints come before that. */
static void
at_xact(XactEvent event, void *arg)
{
	close_all(event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE);
}

/* The locks under an open check may be those of the subtransaction. */
static void
at_subxact(SubXactEvent event, SubTransactionId mySubid, SubTransactionId parentSubid,
		   void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		close_all(true);
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
 * to check_owner from then on.  What beginning a scan may take else does not.
 *
 * Locks: as read_catalogs().
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
		IndexScanDesc scan = art_index_beginscan(heap, index, GetActiveSnapshot(), c->n);

		if (check_owner == NULL)
			check_owner = ResourceOwnerCreate(NULL, "art open foreign keys");
		CurrentResourceOwner = check_owner;
		RelationIncrementReferenceCount(index);
		RelationIncrementReferenceCount(heap);
		c->slot = table_slot_create(heap, NULL);
		CurrentResourceOwner = owner;
		RelationDecrementReferenceCount(index);
		MemoryContextSwitchTo(old);
		c->scan = scan;
		nopen++;
		for (int i = 0; i < c->n; i++)
			InvokeFunctionExecuteHook(c->keys[i].sk_func.fn_oid);
		elog(DEBUG1, "art index \"%s\" is looked up for foreign key %u",
			 RelationGetRelationName(index), c->constraint);
	}
	index_close(index, NoLock);
	table_close(heap, NoLock);
	return c->scan != NULL;
}

/*
 * A foreign key whose rows can be checked here, or NULL.  The catalogs may have
 * changed since its last row.
 */
static KeyCheck *
usable_check(TriggerData *trigger)
{
	KeyCheck   *c = hash_search(checks, &trigger->tg_trigger->tgconstraint, HASH_FIND, NULL);

	if (c == NULL)
		return NULL;
	if (unlikely(!c->valid))
	{
		close_all(false);
		read_catalogs(c, trigger->tg_relation);
	}
	return c->valid && c->usable ? c : NULL;
}

/* ---- a check ---- */

/*
 * Is the row with these keys there, and is it locked now?  No: perhaps it is.
 */
static bool
lock_row(KeyCheck *c, const Datum *values, Snapshot snapshot)
{
	IndexScanDesc scan = c->scan;
	bool		locked = false;

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
	table_index_fetch_reset(scan->xs_heapfetch);
	return locked;
}

/*
 * The check in the way of core's query: what a command before has done is seen, and
 * what others have committed by now, unless the transaction has its snapshot.
 */
static bool
look_up(KeyCheck *c, const Datum *values)
{
	Oid			user;
	int			context;
	bool		found;

	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	found = c->valid && (c->scan != NULL || open_check(c));
	if (found)
	{
		GetUserIdAndSecContext(&user, &context);
		SetUserIdAndSecContext(c->owner, context | SECURITY_LOCAL_USERID_CHANGE |
							   SECURITY_NOFORCE_RLS);
		found = lock_row(c, values, GetActiveSnapshot());
		SetUserIdAndSecContext(user, context);
		/* it reads the table from now on */
		if (unlikely(art_scan_is_private(c->scan)))
			close_all(false);
	}
	PopActiveSnapshot();
	return found;
}

/*
 * Is the row's foreign key fulfilled, as far as can be told here?
 */
static bool
fulfilled(TriggerData *trigger)
{
	TupleTableSlot *slot = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newslot : trigger->tg_trigslot;
	Datum		values[INDEX_MAX_KEYS];
	KeyCheck   *c;

	/* other extensions want to hear of the query's rights; core has an error for the rest */
	if (ExecutorCheckPerms_hook != NULL || XactReadOnly || IsInParallelMode())
		return false;
	c = usable_check(trigger);
	if (c == NULL)
		return false;

	/* a row that is gone, or changed since, needs none */
	if (!table_tuple_satisfies_snapshot(trigger->tg_relation, slot, SnapshotSelf))
		return true;
	for (int i = 0; i < c->n; i++)
	{
		bool		isnull;

		values[i] = slot_getattr(slot, c->from[i], &isnull);
		if (isnull)
			return false;
		if (c->toasted[i])
			values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));
	}
	return look_up(c, values);
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
	bool		found;
	KeyCheck   *c = hash_search(checks, &trigger->tgconstraint, HASH_ENTER, &found);

	if (!found)
		memset((char *) c + sizeof(Oid), 0, sizeof(KeyCheck) - sizeof(Oid));
	if (likely(c->valid))
		return c->usable;
	if (c->scan != NULL)
		close_all(false);
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

/* See plan.h. */
void
art_keychecks_take(QueryDesc *queryDesc)
{
	EState	   *estate = queryDesc->estate;
	ListCell   *lc;

	if (estate->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS)
		return;
	foreach(lc, estate->es_opened_result_relations)
		take_triggers(estate, lfirst(lc));
	foreach(lc, estate->es_tuple_routing_result_relations)
		take_triggers(estate, lfirst(lc));
}

/* See plan.h. */
void
art_keychecks_rest(QueryDesc *queryDesc)
{
	if (nopen > 0 &&
		(ActivePortal == NULL || list_member_ptr(ActivePortal->stmts, queryDesc->plannedstmt)))
		close_all(false);
}

/* See plan.h. */
void
art_keychecks_install(void)
{
	const HASHCTL ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(KeyCheck)};
	const int	caches[] = {CONSTROID, AMOPOPID, PROCOID, NAMESPACEOID, AUTHOID, AUTHMEMMEMROLE};

	checks = hash_create("art foreign keys", 16, &ctl, HASH_ELEM | HASH_BLOBS);
	check_cxt = AllocSetContextCreate(TopMemoryContext, "art open foreign keys",
									  ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < (int) lengthof(caches); i++)
		CacheRegisterSyscacheCallback(caches[i], catalog_changed, (Datum) 0);
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	RegisterXactCallback(at_xact, NULL);
	RegisterSubXactCallback(at_subxact, NULL);
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
