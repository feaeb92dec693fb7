/*
 * art_whose.c
 *	  Whose code an index runs, and as whom this process may run it.  eval.h has the rule.
 *
 * src/README.md: Evaluation
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#include "art_compat.h"
#include "eval/eval.h"

/* this process is a background worker of ours: it has nobody's session */
static bool in_background = false;

/* the owner for whom code has run in this background worker; or none */
static Oid	ran_for = InvalidOid;

/*
 * See eval.h.  A database's owner sets what he likes for the database.  Three of these settings
 * must not apply.  One says where names are looked up, one as whom the worker runs.  With
 * exit_on_error the worker would end at each error of an expression, and begin anew.
 *
 * All else may change what an expression means (DateStyle, TimeZone, standard_conforming_strings),
 * and is the database's: CREATE INDEX had it, too.  Only a superuser sets session_replication_role and
 * session_preload_libraries.  local_preload_libraries and statement_timeout have no effect here.
 */
void
art_eval_in_background(void)
{
	in_background = true;
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

/* See eval.h. */
bool
art_runs_code(Relation index)
{
	return column_runs_code(index, Anum_pg_index_indexprs) ||
		column_runs_code(index, Anum_pg_index_indpred);
}

/* Is there a comparison that is code? */
static bool
orders_by_code(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (is_code(index_getprocid(index, i + 1, 1), NULL))
			return true;
	return false;
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

/* See eval.h. */
bool
art_may_evaluate(Relation index)
{
	if (!in_background)
		return art_index_is_plain(index) || may_be_owner(index) || !art_runs_code(index);
	return !OidIsValid(ran_for) || ran_for == index->rd_rel->relowner ||
		!(orders_by_code(index) || art_runs_code(index));
}

/* See eval.h. */
void
art_must_evaluate(Relation index, const char *doing)
{
	if (art_may_evaluate(index))
	{
		if (in_background && !OidIsValid(ran_for) && (orders_by_code(index) || art_runs_code(index)))
			ran_for = index->rd_rel->relowner;
		return;
	}
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

/*
 * See eval.h.
 */
void
art_as_owner_begin(Relation rel, ArtAsOwner *save)
{
	save->is = may_be_owner(rel);
	if (!save->is)
		return;
	GetUserIdAndSecContext(&save->userid, &save->sec_context);
	SetUserIdAndSecContext(rel->rd_rel->relowner,
						   save->sec_context | SECURITY_RESTRICTED_OPERATION);
	save->nestlevel = NewGUCNestLevel();
	/* as RestrictSearchPath() of 17 */
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/*
 * See eval.h.
 */
void
art_as_owner_end(const ArtAsOwner *save)
{
	if (!save->is)
		return;
	AtEOXact_GUC(false, save->nestlevel);
	SetUserIdAndSecContext(save->userid, save->sec_context);
}
