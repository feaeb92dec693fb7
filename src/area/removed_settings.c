/*
 * removed_settings.c
 *	  Settings that an earlier version had: what PostgreSQL says of them gets a hint.
 *
 * A file, a database or a role may still have them.  PostgreSQL leaves out what it does not
 * know, with a WARNING, and refuses SET.  It says of each that the name is invalid.  All of
 * that comes by here on its way to the log and to the client.
 *
 * src/area/README.md: Settings that are gone
 */
#include "postgres.h"

#include "utils/elog.h"

#include "area/shared_state.h"

static const struct
{
	const char *name;
	const char *hint;
}			removed[] = {
	{"artidx.autobuild", "\"artidx.build_workers\" at 0 keeps background workers from building art indexes."},
	{"artidx.constraint_am", "\"artidx.replace_btree\" at \"constraints\" makes PRIMARY KEY and UNIQUE constraints of access method \"art\"."},
	{"artidx.huge_pages", "The configuration parameter \"huge_pages\" holds for the memory of art indexes, too."},
	{"artidx.huge_pages_status", "The function artidx_hardware() of extension \"artidx_debug\" tells it."},
	{"artidx.standby", "\"artidx.build_workers\" at 0 keeps art indexes out of the memory of a standby."},
	{"artidx.survive_crash_check", "The check after a crash works for a quarter of the time that \"artidx.build_priority\" allows."},
	{"artidx.survive_crash_pause", "At a second crash within five minutes art indexes are always given up."},
};

static emit_log_hook_type prev_emit_log_hook = NULL;

/*
 * Which of them does the message name?  The message may be translated, but the name stands
 * in it in double quotes.
 */
static const char *
hint_for(const char *message)
{
	for (int i = 0; i < (int) lengthof(removed); i++)
	{
		size_t		len = strlen(removed[i].name);
		const char *at = strstr(message, removed[i].name);

		if (at != NULL && at > message && at[-1] == '"' && at[len] == '"')
			return removed[i].hint;
	}
	return NULL;
}

/* The hook: a message on its way to the log and to the client. */
static void
add_hint(ErrorData *edata)
{
	if (prev_emit_log_hook)
		prev_emit_log_hook(edata);
	/* 42704: RESET and SHOW of a name that has no reserved prefix */
	if ((edata->sqlerrcode == ERRCODE_INVALID_NAME || edata->sqlerrcode == ERRCODE_UNDEFINED_OBJECT) &&
		edata->message != NULL && edata->hint == NULL)
	{
		const char *hint = hint_for(edata->message);

		/* the context is that of the error's own strings */
		if (hint != NULL)
			edata->hint = pstrdup(hint);
	}
}

void
art_removed_settings_init(void)
{
	prev_emit_log_hook = emit_log_hook;
	emit_log_hook = add_hint;
}
