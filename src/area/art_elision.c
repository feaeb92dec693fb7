/*
 * art_elision.c
 *	  The settings of elision, and what the processor has.
 *
 * src/README.md: Elision
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/guc.h"

#include "area/art_shared.h"

/* ---- settings ---- */

static const struct config_enum_entry elision_values[] = {
	{"auto", AX_ELIDE_AUTO, false},
	{"on", AX_ELIDE_ON, false},
	{"off", AX_ELIDE_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry provider_values[] = {
	{"rtm", AX_ELIDE_RTM, false},
	{"inject", AX_ELIDE_INJECT, false},
	{"software", AX_ELIDE_SOFTWARE, false},
	{NULL, 0, false}
};

int			art_elision = AX_ELIDE_AUTO;
int			art_elision_provider = AX_ELIDE_RTM;
static char *script = NULL;

/* The result of the probe: the postmaster's, inherited. */
static ax_hardware hardware;
static bool probed = false;

/*
 * Tell the core.  Never inside a core call, since no setting changes there.
 */
static void
apply(int setting, int who, const char *what)
{
	if (art_attached())
		(void) ax_elide_setup(art_ctx(), &hardware, (ax_elide_option) setting,
							  (ax_elide_provider) who, what);
}

/* A reload sets again what is unchanged; a script must not begin anew for it. */
static void
assign_elision(int newval, void *extra)
{
	if (newval != art_elision)
		apply(newval, art_elision_provider, script);
}

static void
assign_provider(int newval, void *extra)
{
	if (newval != art_elision_provider)
		apply(art_elision, newval, script);
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
	apply(art_elision, art_elision_provider, newval);
}

/*
 * From _PG_init.  The probe runs once, in the postmaster; a library that was
 * loaded late has no index to elide for, and probes when somebody asks.
 */
void
art_elision_init(void)
{
	if (process_shared_preload_libraries_in_progress)
	{
		ax_hardware_probe(&hardware);
		probed = true;
	}

	DefineCustomEnumVariable("artidx.elision",
							 "Runs the latched sections of art indexes as hardware transactions.",
							 "\"auto\": where they commit often enough; without effect where the "
							 "processor has none that work.",
							 &art_elision,
							 AX_ELIDE_AUTO,
							 elision_values,
							 PGC_SIGHUP,
							 0,
							 NULL, assign_elision, NULL);

	DefineCustomEnumVariable("artidx.elision_provider",
							 "Developer setting: what runs the transactions.",
							 "\"inject\" and \"software\" are for tests, on any processor.",
							 &art_elision_provider,
							 AX_ELIDE_RTM,
							 provider_values,
							 PGC_SUSET,
							 GUC_NOT_IN_SAMPLE,
							 NULL, assign_provider, NULL);

	DefineCustomStringVariable("artidx.elision_script",
							   "Developer setting: the outcomes of transactions, in turn.",
							   "For artidx.elision_provider \"inject\" and \"software\".",
							   &script,
							   "",
							   PGC_SUSET,
							   GUC_NOT_IN_SAMPLE,
							   check_script, assign_script, NULL);
}

/*
 * This process was just attached.
 */
void
art_elision_attached(ax_ctx *cx)
{
	(void) ax_elide_setup(cx, &hardware, (ax_elide_option) art_elision,
						  (ax_elide_provider) art_elision_provider, script);
}

/*
 * Why this process elides nothing, whatever an index's option says; NULL when
 * it does.
 */
const char *
art_elision_why_not(void)
{
	if (!art_preloaded())
		return "not preloaded";
	if (art_elision == AX_ELIDE_OFF)
		return "artidx.elision is off";
	if (art_elision_provider == AX_ELIDE_RTM && !hardware.rtm_usable)
	{
		if (!hardware.rtm_cpuid)
			return "the processor has no RTM";
		if (hardware.rtm_always_abort)
			return "the processor aborts every transaction";
		return "no transaction that was tried committed";
	}
	return NULL;
}

/*
 * See art_shared.h.
 */
const ax_hardware *
art_hardware(void)
{
	if (!probed)
	{
		ax_hardware_probe(&hardware);
		probed = true;
	}
	return &hardware;
}
