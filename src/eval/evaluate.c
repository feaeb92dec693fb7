/*
 * evaluate.c
 *	  Evaluates the expressions and the predicate of an index, and calls functions of its operator
 *	  classes.  eval.h has the rule.
 *
 * src/eval/README.md: Evaluation
 */
#include "postgres.h"

#include "catalog/index.h"
#include "nodes/makefuncs.h"
#include "nodes/primnodes.h"

#include "eval/eval.h"

/* The part that both kinds have in common. */
static ArtEval *
eval_make(IndexInfo *info)
{
	ArtEval    *eval = palloc0(sizeof(ArtEval));

	eval->info = info;
	eval->evaluates = info->ii_Expressions != NIL || info->ii_Predicate != NIL;
	eval->estate = CreateExecutorState();
	eval->econtext = GetPerTupleExprContext(eval->estate);
	eval->predicate = ExecPrepareQual(info->ii_Predicate, eval->estate);
	return eval;
}

/*
 * As the owner here already.  The relation cache evaluates constant parts of an
 * expression or a predicate when it makes them, and a background worker is a
 * superuser.
 */
ArtEval *
art_eval_begin(Relation index)
{
	ArtAsOwner	save;
	IndexInfo  *info;
	ArtEval    *eval;

	art_as_owner_begin(index, &save);
	info = BuildIndexInfo(index);
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;
	info->ii_Concurrent = false;
	eval = eval_make(info);
	art_as_owner_end(&save);
	return eval;
}

ArtEval *
art_eval_begin_own(Expr **exprs, int n)
{
	IndexInfo  *info = makeNode(IndexInfo);

	info->ii_NumIndexAttrs = info->ii_NumIndexKeyAttrs = n;
	for (int i = 0; i < n; i++)
	{
		/* a whole row is an expression */
		if (IsA(exprs[i], Var) && ((Var *) exprs[i])->varattno != 0)
			info->ii_IndexAttrNumbers[i] = ((Var *) exprs[i])->varattno;
		else
			info->ii_Expressions = lappend(info->ii_Expressions, exprs[i]);
	}
	return eval_make(info);
}

void
art_eval_end(ArtEval *eval)
{
	FreeExecutorState(eval->estate);
	pfree(eval);
}

bool
art_eval_has(ArtEval *eval, TupleTableSlot *slot)
{
	eval->econtext->ecxt_scantuple = slot;
	return eval->predicate == NULL || ExecQual(eval->predicate, eval->econtext);
}

void
art_eval_columns(ArtEval *eval, TupleTableSlot *slot, Datum *values, bool *isnull)
{
	eval->econtext->ecxt_scantuple = slot;
	FormIndexDatum(eval->info, slot, eval->estate, values, isnull);
}

bool
art_opclass_equalimage(RegProcedure proc, Oid collation, Oid type)
{
	return DatumGetBool(OidFunctionCall1Coll(proc, collation, ObjectIdGetDatum(type)));
}

void
art_opclass_sortsupport(RegProcedure proc, SortSupport ssup)
{
	(void) OidFunctionCall1(proc, PointerGetDatum(ssup));
}
