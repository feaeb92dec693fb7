/*
 * whose_code.c
 *	  Whose code an index runs, and as whom this process may run it.  eval.h has the rule.
 *
 * src/eval/README.md: Evaluation
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/transam.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "art_compat.h"
#include "eval/eval.h"

/* this process is a background worker of ours: it has nobody's session */
static bool in_background = false;

/* in a background worker: the owner for whom code ran first, and for whom it runs now; or none */
static Oid	ran_for = InvalidOid;
static Oid	running_for = InvalidOid;

/* there, for whom each function has run */
typedef struct RanFunction
{
	Oid			funcid;			/* key */
	Oid			owner;
} RanFunction;

static HTAB *ran = NULL;
static object_access_hook_type prev_object_access = NULL;
static void note_function(ObjectAccessType access, Oid classid, Oid objectid, int subid, void *arg);

/*
 * A database's owner sets what he likes for the database.  Three of these settings
 * must not apply.  One says where names are looked up, one as whom the worker runs.
 * With exit_on_error the worker would end at each error of an expression, and begin
 * anew.
 *
 * All else may change what an expression means (DateStyle, TimeZone, standard_conforming_strings),
 * and is the database's: CREATE INDEX had it, too.  Only a superuser sets session_replication_role and
 * session_preload_libraries.  local_preload_libraries and statement_timeout have no effect here.
 */
void
art_eval_in_background(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(RanFunction)};

	in_background = true;
	ran = hash_create("artidx functions", 64, &ctl, HASH_ELEM | HASH_BLOBS);
	prev_object_access = object_access_hook;
	object_access_hook = note_function;
	SetConfigOption("search_path", "", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("role", "none", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("exit_on_error", "off", PGC_SUSET, PGC_S_OVERRIDE);
}

/* ---- whose code ---- */

/*
 * Is the function code that looks names up?  Those of pg_catalog do not, and only a superuser
 * makes one in C.
 */
static bool
is_code(Oid funcid, void *context)
{
	HeapTuple	tup;
	Oid			language;

	if (funcid < FirstUnpinnedObjectId)
		return false;
	tup = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tup))
		return true;
	language = ((Form_pg_proc) GETSTRUCT(tup))->prolang;
	ReleaseSysCache(tup);
	return language != INTERNALlanguageId && language != ClanguageId;
}

/*
 * Is there anything but columns, constants, and calls of such functions?  A domain's checks are
 * code, and no function is seen that is.  So only what is known is none.
 */
static bool
code_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_Var:
		case T_Const:
		case T_FuncExpr:
		case T_NamedArgExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_FieldSelect:
		case T_RelabelType:
		case T_CollateExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_ArrayExpr:
		case T_RowExpr:
		case T_CoalesceExpr:
		case T_NullTest:
		case T_BooleanTest:
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, is_code, context) ||
		expression_tree_walker(node, code_walker, context);
}

/* The same of a column of pg_index that holds expressions. */
static bool
column_runs_code(Relation index, AttrNumber attno)
{
	bool		isnull;
	Datum		d = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, attno, &isnull);
	char	   *tree;
	bool		runs;

	if (isnull)
		return false;
	tree = TextDatumGetCString(d);
	runs = code_walker(stringToNode(tree), NULL);
	pfree(tree);
	return runs;
}

bool
art_runs_code(Relation index)
{
	return column_runs_code(index, Anum_pg_index_indexprs) ||
		column_runs_code(index, Anum_pg_index_indpred);
}

/* ---- for whom, in a background worker ---- */

/*
 * ERROR if code of this function has run for another owner: what it has looked up was perhaps for
 * that one to choose.  A superuser has not chosen badly.
 */
static void
ran_by(Oid funcid, Oid owner)
{
	bool		found;
	RanFunction *f = hash_search(ran, &funcid, HASH_ENTER, &found);

	if (found && f->owner != owner && !superuser_arg(f->owner))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("function %s has run for another owner of tables in this process",
						format_procedure(funcid)),
				 errdetail("It may have kept what it looked up for that one.")));
	f->owner = owner;
}

/* Core is about to call a function. */
static void
note_function(ObjectAccessType access, Oid classid, Oid objectid, int subid, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, classid, objectid, subid, arg);
	if (access == OAT_FUNCTION_EXECUTE && OidIsValid(running_for) && is_code(objectid, NULL))
		ran_by(objectid, running_for);
}

/* ---- as whom ---- */

static bool
may_act(Oid role, Oid owner)
{
	return has_privs_of_role(role, owner) || ART_CAN_SET_ROLE(role, owner);
}

/* May this process be the owner of a table, or of an index's? */
static bool
may_be_owner(Relation rel)
{
	Oid			owner = rel->rd_rel->relowner;

	return in_background ||
		(may_act(GetUserId(), owner) && may_act(GetSessionUserId(), owner));
}

bool
art_may_evaluate(Relation index)
{
	return art_index_is_plain(index) || may_be_owner(index) || !art_runs_code(index);
}

bool
art_is_for_another(Relation index)
{
	return OidIsValid(ran_for) && ran_for != index->rd_rel->relowner && art_runs_code(index);
}

/*
 * A background worker begins with an index.  Core does not say when it calls a comparison, so
 * each is taken for called.
 */
static void
begin_in_background(Relation index)
{
	Oid			owner = index->rd_rel->relowner;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid			order = index_getprocid(index, i + 1, 1);

		if (is_code(order, NULL))
			ran_by(order, owner);
	}
	if (!OidIsValid(ran_for) && art_runs_code(index))
		ran_for = owner;
}

void
art_must_evaluate(Relation index, const char *doing)
{
	if (in_background)
		begin_in_background(index);
	if (art_may_evaluate(index))
		return;
	if (doing != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to %s index \"%s\"", doing, RelationGetRelationName(index)),
				 errdetail("Its expressions or its predicate run functions as the owner of the table, which only a session of the owner or of a superuser does."),
				 errhint("Call the function as the owner of the table.")));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("art index \"%s\" is not in memory", RelationGetRelationName(index)),
			 errdetail("Its expressions or its predicate run functions as the owner of the table, which only a session of the owner or of a superuser, or a background worker does."),
			 errhint("See \"reason\" in the view artidx_indexes. A query that is planned now does without the index.")));
}

void
art_as_owner_begin(Relation rel, ArtAsOwner *save)
{
	save->is = may_be_owner(rel);
	if (!save->is)
		return;
	save->running_for = running_for;
	running_for = in_background ? rel->rd_rel->relowner : InvalidOid;
	GetUserIdAndSecContext(&save->userid, &save->sec_context);
	SetUserIdAndSecContext(rel->rd_rel->relowner,
						   save->sec_context | SECURITY_RESTRICTED_OPERATION);
	save->nestlevel = NewGUCNestLevel();
	/* as RestrictSearchPath() of 17 */
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void
art_as_owner_end(const ArtAsOwner *save)
{
	if (!save->is)
		return;
	running_for = save->running_for;
	AtEOXact_GUC(false, save->nestlevel);
	SetUserIdAndSecContext(save->userid, save->sec_context);
}
