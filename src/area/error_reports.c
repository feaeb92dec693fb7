/*
 * error_reports.c
 *	  What is told to whom: errors about other people's rows, a structure that is
 *	  not what it should be.
 *
 * src/live/README.md: Residency
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/rls.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"

/* ---- names ---- */

char *
art_sql_name(Oid relid)
{
	char	   *name = get_rel_name(relid);

	return name == NULL ? NULL :
		quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), name);
}

/* ---- errors about rows ---- */

/*
 * Is this an end of the statement rather than an error of a row?
 */
bool
art_ends_statement(int sqlstate)
{
	return ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_OPERATOR_INTERVENTION ||
		ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_TRANSACTION_ROLLBACK ||
		sqlstate == MAKE_SQLSTATE('2', '5', 'P', '0', '4') ||	/* transaction_timeout */
		sqlstate == ERRCODE_LOCK_NOT_AVAILABLE;
}

ErrorData *
art_error_of_part(MemoryContext cxt, ResourceOwner owner)
{
	ErrorData  *err;

	MemoryContextSwitchTo(cxt);
	err = CopyErrorData();
	FlushErrorState();
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(cxt);
	CurrentResourceOwner = owner;
	if (art_ends_statement(err->sqlerrcode))
		ReThrowError(err);
	return err;
}

/*
 * Row-level security decides, as core lets it for the key in a unique
 * violation.  An expression may say more than the row.  So the user must be
 * able to act as the table's owner, as whom it is evaluated.
 */
bool
art_may_see_rows(Relation index)
{
	Oid			user = GetUserId();

	return has_privs_of_role(user, index->rd_rel->relowner) &&
		check_enable_rls(index->rd_index->indrelid, user, true) != RLS_ENABLED;
}

void
art_rethrow_hidden(Relation index, bool may_see, MemoryContext cxt)
{
	ErrorData  *err;

	if (may_see || art_ends_statement(geterrcode()))
		PG_RE_THROW();

	MemoryContextSwitchTo(cxt);
	err = CopyErrorData();
	FlushErrorState();
	ereport(LOG_SERVER_ONLY,
			(errcode(err->sqlerrcode),
			 errmsg("could not evaluate the rows of art index \"%s\": %s",
					RelationGetRelationName(index), err->message),
			 err->detail ? errdetail_internal("%s", err->detail) : 0,
			 err->hint ? errhint("%s", err->hint) : 0,
			 err->context ? errcontext("%s", err->context) : 0));
	ereport(ERROR,
			(errcode(err->sqlerrcode),
			 errmsg("could not evaluate the rows of art index \"%s\"",
					RelationGetRelationName(index)),
			 errdetail("The error concerns a row that you may not be allowed to see; the server's log has its text.")));
}

/* ---- what cannot happen ---- */

/*
 * The structure is in doubt, and nothing else: it is derived from the table.  A
 * background build waits a minute, in case the next one is like it.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 * Returns: never; ERROR XX002.
 */
void
art_unexpected(Relation index, ax_status s, const char *doing)
{
	ArtLocator	loc;
	ArtEntry   *e;
	LWLock	   *lock;
	bool		was_ready = false;

	art_locator(index, &loc);
	e = art_find_locked(RelationGetRelid(index), &loc, LW_EXCLUSIVE, &lock);
	if (e != NULL)
	{
		was_ready = art_entry_absent(e, ART_WHY_ERROR, "its structure was damaged");
		e->failed_at = GetCurrentTimestamp();
	}
	art_unlock_changed(lock, was_ready, loc.db, index->rd_index->indrelid);
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("art index \"%s\" is damaged: %s ended with unexpected status %d",
					RelationGetRelationName(index), doing, (int) s),
			 errdetail("Its structure was dropped from memory, and is built again from the table."),
			 errhint("Try again, and report this as an error of artidx.")));
}
