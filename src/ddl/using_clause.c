/*
 * using_clause.c
 *	  Is the access method of an index written out, or is btree the default?
 *
 * Core's grammar makes "btree" of both.  The difference is in the text of the
 * statement alone.  A node of the statement says at which byte its name begins.
 * From there to USING or to the columns come names, blanks and comments only.
 *
 * A tool has reasons to write USING btree.  pg_repack makes an index on a copy of
 * a table, and then exchanges the two files in pg_class.  Were that index not what
 * it asked for, a btree index would be left with no pages.  So all that is not
 * plainly the default counts as written.  That is a text which is not the node's,
 * or a name with UESCAPE.
 *
 * src/ddl/README.md: DDL in place of btree's
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"
#include "parser/scansup.h"

#include "ddl/ddl.h"

/* As scan.l has it. */
static bool
begins_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || IS_HIGHBIT_SET(c);
}

static bool
continues_word(char c)
{
	return begins_word(c) || (c >= '0' && c <= '9') || c == '$';
}

/*
 * Past blanks and comments.  Those of the second kind may be nested.
 */
static const char *
skip_blanks(const char *p)
{
	int			depth = 0;

	while (*p != '\0')
	{
		if (depth == 0 && p[0] == '-' && p[1] == '-')
			p += strcspn(p, "\n\r");
		else if (p[0] == '/' && p[1] == '*')
		{
			depth++;
			p += 2;
		}
		else if (depth > 0 && p[0] == '*' && p[1] == '/')
		{
			depth--;
			p += 2;
		}
		else if (depth > 0 || strchr(" \t\n\r\f\v", *p) != NULL)
			p++;
		else
			break;
	}
	return p;
}

/* Past a keyword and what blanks follow it, or NULL if it is not there. */
static const char *
skip_keyword(const char *p, const char *keyword)
{
	size_t		len = strlen(keyword);

	if (pg_strncasecmp(p, keyword, len) != 0 || continues_word(p[len]))
		return NULL;
	return skip_blanks(p + len);
}

/*
 * Past a name and what blanks follow it, or NULL if none is there.  *name is what
 * it stands for, or NULL for one in Unicode escapes.
 */
static const char *
skip_name(const char *p, char **name)
{
	const char *begin = p;
	bool		escapes = (p[0] == 'u' || p[0] == 'U') && p[1] == '&' && p[2] == '"';

	*name = NULL;
	if (escapes)
		p += 2;
	if (*p == '"')
	{
		StringInfoData text;

		initStringInfo(&text);
		for (p++; *p != '"' || p[1] == '"'; p++)
		{
			if (*p == '\0')
				return NULL;
			if (*p == '"')
				p++;
			appendStringInfoChar(&text, *p);
		}
		p++;
		truncate_identifier(text.data, text.len, false);
		if (!escapes)
			*name = text.data;
	}
	else if (begins_word(*p))
	{
		while (continues_word(*p))
			p++;
		*name = downcase_truncate_identifier(begin, (int) (p - begin), false);
	}
	else
		return NULL;
	return skip_blanks(p);
}

/* The text from a location on, or NULL if it has none. */
static const char *
text_at(const char *query, int location)
{
	return query != NULL && location >= 0 && strlen(query) > (size_t) location ?
		query + location : NULL;
}

/*
 * Has CREATE INDEX an access method, in this text of it?  A table that the text does
 * not name says that it is of another statement.
 */
bool
art_index_says_using(const IndexStmt *stmt, const char *query)
{
	const char *p = text_at(query, stmt->relation->location);
	char	   *name = NULL;

	while (p != NULL)
	{
		p = skip_name(p, &name);
		if (p == NULL || *p != '.')
			break;
		p = skip_blanks(p + 1);
	}
	if (p == NULL || (name != NULL && strcmp(name, stmt->relation->relname) != 0))
		return true;
	if (*p == ')')				/* ONLY (table) */
		p = skip_blanks(p + 1);
	if (*p == '*')
		p = skip_blanks(p + 1);
	return *p != '(';
}

/*
 * Has an exclusion constraint one?
 */
bool
art_exclusion_says_using(const Constraint *con, const char *query)
{
	const char *p = text_at(query, con->location);
	const char *named = p != NULL ? skip_keyword(p, "constraint") : NULL;
	char	   *name;

	if (named != NULL)
		p = skip_name(named, &name);
	if (p != NULL)
		p = skip_keyword(p, "exclude");
	return p == NULL || *p != '(';
}

/*
 * Have those of a table that is being created?  Later they come by without their
 * places in the text, so they are taken together.
 */
bool
art_exclusions_say_using(const CreateStmt *stmt, const char *query)
{
	ListCell   *lc;

	foreach(lc, stmt->tableElts)
	{
		const Constraint *con = (const Constraint *) lfirst(lc);

		if (IsA(con, Constraint) && con->contype == CONSTR_EXCLUSION &&
			con->access_method != NULL && strcmp(con->access_method, "btree") == 0 &&
			art_exclusion_says_using(con, query))
			return true;
	}
	return false;
}
