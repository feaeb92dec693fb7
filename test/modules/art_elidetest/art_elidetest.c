/*
 * art_elidetest.c
 *	  Providers of elision, in place of the processor's transactions, for tests of
 *	  artidx in a server.
 *
 * art_elidetest.provider says which, art_elidetest.script what becomes of the
 * attempts (ax_elide_script.c).  Loaded with shared_preload_libraries or LOAD.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"

#include "core/base/ax_area.h"
#include "core/base/ax_coarse.h"
#include "ax_elide_test.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

enum
{
	RTM, INJECT, SOFTWARE
};

static const struct config_enum_entry providers[] = {
	{"rtm", RTM, false},
	{"inject", INJECT, false},
	{"software", SOFTWARE, false},
	{NULL, 0, false}
};

static int	provider = RTM;
static char *script = NULL;

/* ---- artidx's side ---- */

static const ax_elide_host *(*provide) (const ax_provider *by, const char *words);
static const ax_elide_host *host;

/* What the providers call of the core. */
void
ax_word_wake(ax_ctx *cx, ax_word *w)
{
	host->wake(cx, w);
}

void
ax_coarse_unlock(ax_ctx *cx, ax_store *s, bool write)
{
	host->coarse_unlock(cx, s, write);
}

const char *
ax_site_name(ax_site site)
{
	return host->site_name(site);
}

static void
tell(int who, const char *words)
{
	(void) provide(who == INJECT ? &ax_inject : who == SOFTWARE ? &ax_software : NULL, words);
}

/* ---- settings ---- */

/* A reload sets again what is unchanged; a script must not begin anew for it. */
static void
assign_provider(int newval, void *extra)
{
	if (newval != provider)
		tell(newval, script);
}

static bool
check_script(char **newval, void **extra, GucSource source)
{
	if (ax_elide_script_ok(*newval))
		return true;
	GUC_check_errdetail("A script is a list of outcomes, for example \"leaf_insert: conflict*2 commit loop; capacity+retry zero\". The outcomes are \"commit\", \"conflict\", \"capacity\", \"explicit\", \"busy\", \"nested\", \"zero\", \"other\" and status words like \"0x0000000c\".");
	return false;
}

/* Set in the session, also to what it was, it begins anew. */
static void
assign_script(const char *newval, void *extra)
{
	tell(provider, newval);
}

void
_PG_init(void)
{
	provide = (const ax_elide_host *(*) (const ax_provider *, const char *))
		load_external_function("artidx", "artidx_elision_provide", true, NULL);
	host = provide(NULL, NULL);
	if (host->ctx_bytes != sizeof(ax_ctx_body))
		elog(ERROR, "art_elidetest and artidx were not compiled alike");

	DefineCustomEnumVariable("art_elidetest.provider",
							 "What runs the transactions of elision.",
							 NULL,
							 &provider,
							 RTM,
							 providers,
							 PGC_SUSET,
							 0,
							 NULL, assign_provider, NULL);

	DefineCustomStringVariable("art_elidetest.script",
							   "The outcomes of transactions, in turn.",
							   NULL,
							   &script,
							   "",
							   PGC_SUSET,
							   0,
							   check_script, assign_script, NULL);

	MarkGUCPrefixReserved("art_elidetest");
}
