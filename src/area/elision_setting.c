/*
 * elision_setting.c
 *	  The setting of elision, and what the processor has.
 *
 * src/core/elide/README.md: Elision
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/guc.h"

#include "area/shared_state.h"
#include "core/elide/ax_elide.h"

extern PGDLLEXPORT const ax_elide_host *artidx_elision_provide(const ax_provider *by,
															   const char *words);

/* ---- the setting ---- */

static const struct config_enum_entry elision_values[] = {
	{"auto", AX_ELIDE_AUTO, false},
	{"on", AX_ELIDE_ON, false},
	{"off", AX_ELIDE_OFF, false},
	{NULL, 0, false}
};

int			art_elision = AX_ELIDE_AUTO;

/* A test may put this in the processor's place, with its words; NULL: none. */
static const ax_provider *provider = NULL;
static const char *how = NULL;

/* The result of the probe: the postmaster's, inherited. */
static ax_hardware hardware;
static bool probed = false;

/*
 * Tell the core.  Never inside a core call, since no setting changes there.
 */
static void
apply_setting(int setting)
{
	if (art_attached())
		ax_elide_setup(art_ctx(), &hardware, (ax_elide_option) setting, provider, how);
}

/* A reload sets again what is unchanged; a provider must not begin anew for it. */
static void
assign_elision(int newval, void *extra)
{
	if (newval != art_elision)
		apply_setting(newval);
}

/*
 * For test/modules/art_elidetest, which finds it by this name: a provider that
 * runs the sections of this process, or NULL for the processor.  The words are
 * the caller's, who keeps them.
 */
const ax_elide_host *
artidx_elision_provide(const ax_provider *by, const char *words)
{
	provider = by;
	how = words;
	apply_setting(art_elision);
	return &ax_elide_offers;
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
							 "\"auto\": calls under a contended coarse latch; without effect where the "
							 "processor has none that work.",
							 &art_elision,
							 AX_ELIDE_AUTO,
							 elision_values,
							 PGC_SIGHUP,
							 0,
							 NULL, assign_elision, NULL);
}

void
art_elision_attached(ax_ctx *cx)
{
	ax_elide_setup(cx, &hardware, (ax_elide_option) art_elision, provider, how);
}

const char *
art_elision_why_not(void)
{
	if (!art_preloaded())
		return "not preloaded";
	if (art_elision == AX_ELIDE_OFF)
		return "artidx.elision is off";
	if (provider == NULL && !hardware.rtm_usable)
	{
		if (!hardware.rtm_cpuid)
			return "the processor has no RTM";
		if (hardware.rtm_always_abort)
			return "the processor aborts every transaction";
		return "no transaction that was tried committed";
	}
	return NULL;
}

const char *
art_elision_by(void)
{
	return provider == NULL ? NULL : provider->name;
}

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
