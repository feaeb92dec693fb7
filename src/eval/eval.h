/*
 * eval.h
 *	  Whatever runs code that somebody made: expressions and predicates of indexes, and the
 *	  functions of operator classes.
 *
 * The rule: no function, operator, cast or table is ever run or read with more rights than its
 * maker has.  The owner of the table, a superuser and pg_catalog are the makers of which that is not
 * asked.  Nothing outside this room evaluates anything; test/checks.sh says so, and names the
 * exceptions.
 *
 * Expressions and predicates run as the owner of the table, in a security-restricted operation,
 * with the search_path "pg_catalog, pg_temp", on every version.  amcheck does so since 15.20, and
 * 17's REINDEX.  No caller keeps a search_path of his own.  An index would else be another one,
 * depending on who comes first.
 *
 * A process becomes the owner in two cases only:
 *
 * - It is a background worker of ours.  It has no session, and no temporary objects.  A builder, or
 *   a check, ends before it would run code for a second owner, and the next one goes on.  A follower
 *   does not end.  A function that it has run for one owner is an error when it comes to run
 *   for another, unless the first is a superuser.
 * - Its current user and its session user may both act as the owner.  So they could run as the
 *   owner what they have made, in this session, too.
 *
 * In any other session the search_path does not help.  pg_temp is last in it, but a table that is
 * found nowhere else is found there.  A function may set a search_path without it, and then
 * pg_temp is first.  And PL/pgSQL keeps what it once looked up, for instance a type, for as long
 * as the session lives.  The user of the session has filled that cache under a path of his own.
 *
 * Nor are they evaluated there as the user of the session, as core does for rows that he inserts.
 * He may read a table whose index he does not know of.  With a superuser its owner would
 * have gained everything.  And the rows are all those of the table, also those that he may not see.
 *
 * So in such a session an index that runs code is built by a background worker, or not at all.
 * A scan that finds no structure then is an error.  Code is not: pg_catalog's own functions, those
 * that initdb pins, and functions in C, which only a superuser makes.  So an index on lower(name), or
 * with the predicate "deleted IS NULL", is evaluated in every session, as its current user.
 *
 * Only a superuser makes an operator class.  So its functions run as nbtree would run them: as the
 * current user of a session.  A background worker runs them as the owner, too.
 *
 * CREATE INDEX, REINDEX and what rewrites a table are core's, which decides as whom and with which
 * search_path they run (am/ambuild.c).  So are rows that are inserted.
 *
 * src/eval/README.md: Evaluation
 */
#ifndef ART_EVAL_H
#define ART_EVAL_H

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"

/* ---- whose_code.c ---- */

/*
 * Settings of a background worker of ours, before it is connected to a database.  From here on
 * it may act as any owner.
 */
extern void art_eval_in_background(void);

/* Do its expressions or its predicate run code? */
extern bool art_runs_code(Relation index);

/* May this process evaluate the index's expressions and its predicate? */
extern bool art_may_evaluate(Relation index);

/* In a background worker: has it run code for an owner who is not this index's? */
extern bool art_is_for_another(Relation index);

/*
 * ERROR unless it may.  For a function that was called to do that ("estimate") it is 42501.  For a
 * scan or a build ("doing" NULL) it is 55000.
 */
extern void art_must_evaluate(Relation index, const char *doing);

typedef struct ArtAsOwner
{
	bool		is;
	Oid			userid;
	int			sec_context;
	int			nestlevel;
	Oid			running_for;
} ArtAsOwner;

/*
 * Become the owner of a table, or of an index's, if this process may, and be who one was
 * again.  An error ends it with the (sub)transaction.
 */
extern void art_as_owner_begin(Relation rel, ArtAsOwner *save);
extern void art_as_owner_end(const ArtAsOwner *save);

/*
 * Has the index neither expressions nor a predicate?  By its catalog row, since
 * RelationGetIndexPredicate() evaluates what is constant there: it would run
 * functions of the table's owner as the user of the statement.
 */
static inline bool
art_index_is_plain(Relation index)
{
	return heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, NULL) &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);
}

/* ---- evaluate.c ---- */

/*
 * The columns of an index, of one row after the other.  All but art_eval_begin() is called as the
 * owner, if this process may be: the caller becomes the owner for many rows at a time.
 */
typedef struct ArtEval
{
	IndexInfo  *info;
	EState	   *estate;
	ExprContext *econtext;
	ExprState  *predicate;
	bool		evaluates;		/* there are expressions, or a predicate */
} ArtEval;

/*
 * Begin with an index, which is open.  Becomes the owner by itself.  In the current memory
 * context.  May raise what a constant part of an expression raises.
 */
extern ArtEval *art_eval_begin(Relation index);

/*
 * The same of expressions that there is no index for.  They are those of the current user, and
 * run as he.
 */
extern ArtEval *art_eval_begin_own(Expr **exprs, int n);
extern void art_eval_end(ArtEval *eval);

/* Does the index have the row? */
extern bool art_eval_has(ArtEval *eval, TupleTableSlot *slot);

/* Its columns, in memory that art_eval_next() frees, and which is the caller's, too. */
extern void art_eval_columns(ArtEval *eval, TupleTableSlot *slot, Datum *values, bool *isnull);

/* Between two rows. */
static inline void
art_eval_next(ArtEval *eval)
{
	ResetExprContext(eval->econtext);
}

static inline MemoryContext
art_eval_memory(const ArtEval *eval)
{
	return eval->econtext->ecxt_per_tuple_memory;
}

/* ---- evaluate.c: functions of operator classes ---- */

/* The comparison of two values, or an operator of a scan: as nbtree, as the current user. */
static inline Datum
art_opclass_call(FmgrInfo *fn, Oid collation, Datum a, Datum b)
{
	return FunctionCall2Coll(fn, collation, a, b);
}

/* Support function 4: are equal values of the type equal bytes? */
extern bool art_opclass_equalimage(RegProcedure proc, Oid collation, Oid type);

/* Support function 2. */
extern void art_opclass_sortsupport(RegProcedure proc, SortSupport ssup);

#endif							/* ART_EVAL_H */
