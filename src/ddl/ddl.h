/*
 * ddl.h
 *	  Statements changed for art, or by it: art in the place of btree and back,
 *	  constraints, operator classes; what is refused, and with which hint.
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#ifndef ART_DDL_H
#define ART_DDL_H

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "utils/rel.h"

#include "build/build.h"

/* ---- replace_btree.c ---- */

/* Does CREATE INDEX without USING make art indexes in this session? */
extern bool art_replacing_btree(void);

extern void art_replace_init(void); /* from _PG_init, preloading */

/* Could the setting, or a constraint's parameters, want art in the statement? */
extern bool art_replace_applies(Node *stmt);

/* Change the statement, a copy of which is the caller's, as the setting says. */
extern void art_replace(Node *stmt, const char *queryString, bool toplevel);

/*
 * Why the index, of btree, cannot be one of art: a sentence, or NULL.  "lockmode" is what
 * partitions are locked with, perhaps NoLock.  And the ERROR for it.
 */
extern const char *art_why_not(Relation heap, Relation index, LOCKMODE lockmode);
extern void art_check_replaceable(Relation heap, Relation index);

/* A table that is being created, by its name where such keys of it are to stay btree, or else NULL. */
typedef struct ArtNewTable
{
	const char *keys;			/* all of them */
	const char *exclusions;		/* its exclusion constraints */
} ArtNewTable;

/* The table that this process's CREATE TABLE is making, if any. */
extern ArtNewTable art_new_table;

/*
 * Type and collation of a column of CREATE INDEX, the i-th.  *analyzed is the statement's
 * analysis, made when the first expression wants it.  InvalidOid where core will find none.
 */
extern Oid	art_index_column_type(IndexStmt *stmt, int i, Oid relid, const char *queryString,
								  IndexStmt **analyzed, Oid *collation);

/* The type that a column will have when the constraints of the statement are made. */
extern Oid	art_column_type_after(AlterTableStmt *stmt, Oid relid, const char *column);

/* ---- using_clause.c ---- */

/* Is the access method written out in the statement's text? */
extern bool art_index_says_using(const IndexStmt *stmt, const char *query);
extern bool art_exclusion_says_using(const Constraint *con, const char *query);
extern bool art_exclusions_say_using(const CreateStmt *stmt, const char *query);

/* ---- utility_hook.c ---- */

/* Put in the hook of utility statements.  Called once, when the library is preloaded. */
extern void art_utility_install(void);

/* ---- error_hints.c ---- */

/*
 * From 18 on core asks an access method for its equality operator; before, it
 * knows btree's only.  That concerns unique indexes of partitioned tables,
 * foreign keys, and REFRESH MATERIALIZED VIEW CONCURRENTLY.
 */
#define CORE_KNOWS_EQUALITY (PG_VERSION_NUM >= 180000)

/*
 * 17 asks for the number of an operator by the access method's name, and knows
 * btree's and hash's only.  So a subscriber does not find rows by another one.
 */
#define SUBSCRIBER_WANTS_BTREE (PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 180000)

/*
 * ERROR or WARNING for a statement, before core has it, where the access
 * method is in the way.  The rest is core's to say.  True: if core refuses it
 * after all, art_explain is to be called.
 */
extern bool art_check_statement(Node *stmt);

/*
 * The statement is done.  WARNING where a subscription writes a table and does
 * not find its rows, since their index is of art.
 */
extern void art_check_subscriber(Node *stmt);
extern bool art_table_subscribed(Oid relid);

/*
 * In a PG_CATCH block: throw core's error again with a HINT, if we have a
 * better one for it.  Else return with the error as it was.
 */
extern void art_explain(MemoryContext context, Node *stmt);

/* ---- convert_calls.c ---- */

/* Can the index be made again while its table is written? */
extern bool art_converts_beside_writers(Relation index);

/*
 * Drop an index that is not valid, in transactions of its own.
 *
 * Locks: the caller is outside of any transaction.  It has ShareUpdateExclusiveLock on the
 * table for the session, which keeps others from dropping the index.  Waits for whoever has
 * the table locked.
 */
extern void art_drop_beside_writers(Oid heapoid, Oid indexoid);

/* Was the procedure called in such a way that it may end the transaction? */
extern bool art_call_commits(FunctionCallInfo fcinfo);

/* ---- remake_as_btree.c ---- */

/* The operator classes of the open index's key columns. */
extern oidvector *art_index_classes(Relation index);

/* Does art, or btree, have such a storage parameter, and mean the same by it? */
extern bool art_option_fits(const char *name, Oid am);

/* The storage parameters of an index that fit so, 0 if there is none. */
extern Datum art_fitting_options(Datum reloptions, Oid am);

/*
 * The statement that makes the index as one of another access method, without
 * its constraint.  It is in the current memory context.  NULL where that has
 * no such operator class.
 */
extern IndexStmt *art_remaking_statement(Relation heap, Relation index, Oid am);

/*
 * The new index has taken over all that the index depended on
 * (index_concurrently_swap), so its operator classes too: let those be its
 * own.  Facts of the columns that the swap leaves behind are copied.
 */
extern void art_remade(Relation index, Oid newoid, Oid am);

/*
 * Make the index one of the other access method, in this transaction.  Its
 * table is locked against everybody.  "tell": a NOTICE, unless the table is
 * empty.  False where there is no such operator class.
 */
extern bool art_remake_index(Relation heap, Oid indexoid, Oid am, bool tell);

/*
 * A new index was built beside this one, so functions of this one's expressions and
 * predicate have run, in this session.  Is it still there, the table's, and of the
 * access method?  And the ERROR where it is not.
 */
extern bool art_index_is_still(Oid indexoid, Oid heapoid, Oid am, bool ispart);
extern void art_refuse_changed(const char *name) __attribute__((noreturn));
extern bool art_references_itself(AlterTableStmt *stmt);
extern const char *art_self_referenced(CreateStmt *stmt);
extern bool art_remake(AlterTableStmt *stmt);
extern void art_remake_for_index(IndexStmt *stmt);

/* ---- add_constraint.c ---- */

/*
 * Does the statement make a constraint of an index that is there (ADD CONSTRAINT ...
 * USING INDEX)?
 */
extern bool art_attach_applies(Node *stmt);

/*
 * Replace such commands for art indexes in the statement, a copy of which is the caller's.
 * Keeps the table's lock at the level of the ALTER.  A statement that alters a type loses
 * them instead, and what is returned has them.  The caller calls this for that one when
 * the first is done.  Else NULL.
 */
extern AlterTableStmt *art_attach(AlterTableStmt *stmt, const char *queryString);

/* ---- opfamily_copies.c ---- */

/* A member of an operator family: an operator for searching, or a function. */
typedef struct ArtMember
{
	bool		isfunc;
	int			number;
	Oid			left,
				right;
	Oid			object;
} ArtMember;

/* All of a family; and the object that a family has in the place of one, or InvalidOid. */
extern List *art_family_members(Oid family);
extern Oid	art_member_of(Oid family, const ArtMember *m);

/*
 * A member as ALTER OPERATOR FAMILY wants it; and that, for a family of art: it adds
 * the items, or drops them.  It does nothing if the family is gone.
 */
extern CreateOpClassItem *art_member_item(const ArtMember *m, bool drop);
extern void art_alter_family(Oid family, List *items, bool drop);

typedef struct ArtFamilyChange ArtFamilyChange;

/*
 * Before a statement that may change an operator family of btree: what it may change, for
 * art_family_after().  NULL: nothing that has a copy.
 */
extern ArtFamilyChange *art_family_before(Node *stmt);

/*
 * After that statement: change the family's copies in the same way.  Event triggers are
 * not told, since they know of the user's command.
 */
extern void art_family_after(ArtFamilyChange *change);

/* ---- mirror_opclasses.c ---- */

/*
 * The operator class of the access method that is the same to a column as this
 * one of btree or of art.  It has the same name, input type, comparison and
 * operators.  InvalidOid if there is none.
 */
extern Oid	art_same_opclass(Oid opclass, Oid amoid);

/*
 * The operator class of art that is the same as this one of btree.  It is made
 * where there is none, whoever the user is.  It is in the schema of its original,
 * or in art's own if that is pg_catalog.  Where something else has its name it is
 * InvalidOid (missing_ok), or an ERROR.
 *
 * Locks: on the class of btree, to the end of the transaction, if one is made.
 */
extern Oid	art_mirror(Oid opclass, Oid amoid, bool missing_ok);

/* Is it there, or could it be made?  Makes nothing. */
extern bool art_could_mirror(Oid opclass, Oid amoid);

/*
 * A statement makes an operator class of art, perhaps one that a dump has.  Before
 * it: what was copied into its family, and the statement would add once more, is
 * dropped.  After it: if it is a copy of one of btree, it goes with that.
 */
extern void art_class_before(CreateOpClassStmt *stmt);
extern void art_class_after(CreateOpClassStmt *stmt);

/*
 * Is it DROP OPERATOR CLASS (or FAMILY) IF EXISTS of an access method that this
 * database does not have?  Core knows no IF EXISTS of that.  Then with a NOTICE.
 */
extern bool art_drops_nothing(Node *stmt);

/* ---- default_opclass.c ---- */

/*
 * A statement may make indexes of art: the operator classes that are btree's
 * defaults for their columns are made first.
 */
extern void art_provide_classes(Node *stmt, const char *queryString, bool toplevel);

#endif							/* ART_DDL_H */
