/*
 * art_elision.c
 *	  Elision as one sees it from SQL: the settings, what the processor has, and
 *	  the counters behind artidx_aborts.
 *
 * The core counts by generation and site.  Here the counters become the
 * index's as those of art_contention.c do, under the same lock and at the same
 * moments.  While others use a structure its counters are read one at a time.
 * Two sums must always hold (attempts, sections), so they are made of their
 * parts here.  Otherwise they would be off for ever by what happened between
 * two reads.
 */
#include "artidx.h"

#include <unistd.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/fd.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "pg/art_pg.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_abort_stats);
PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_hardware);

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

static int	elision = AX_ELIDE_AUTO;
static int	provider = AX_ELIDE_RTM;
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
	if (newval != elision)
		apply(newval, provider, script);
}

static void
assign_provider(int newval, void *extra)
{
	if (newval != provider)
		apply(elision, newval, script);
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
	apply(elision, provider, newval);
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
							 &elision,
							 AX_ELIDE_AUTO,
							 elision_values,
							 PGC_SIGHUP,
							 0,
							 NULL, assign_elision, NULL);

	DefineCustomEnumVariable("artidx.elision_provider",
							 "Developer setting: what runs the transactions.",
							 "\"inject\" and \"software\" are for tests, on any processor.",
							 &provider,
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
	(void) ax_elide_setup(cx, &hardware, (ax_elide_option) elision,
						  (ax_elide_provider) provider, script);
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
	if (elision == AX_ELIDE_OFF)
		return "artidx.elision is off";
	if (provider == AX_ELIDE_RTM && !hardware.rtm_usable)
	{
		if (!hardware.rtm_cpuid)
			return "the processor has no RTM";
		if (hardware.rtm_always_abort)
			return "the processor aborts every transaction";
		return "no transaction that was tried committed";
	}
	return NULL;
}

/* ---- counters ---- */

/* In the order of the view's columns. */
enum
{
	SECTIONS,
	ATTEMPTS,
	COMMITS,
	CONFLICT,
	CAPACITY,
	EXPLICIT,
	LOCK_BUSY,
	NESTED,
	ZERO,
	OTHER,
	RETRY_HINT,
	FALLBACKS,
	SWITCH_OFFS,
	SWITCH_ONS
};

StaticAssertDecl(SWITCH_ONS + 1 == ART_NABORTS, "one place a counter");

#define ABORTS_COLS (2 + ART_NABORTS + 1)

typedef uint64 SiteCounts[AX_SITES][ART_NABORTS];

/* Of several structures, the mode that says most of what is tried. */
static const char *const modes[] = {"on", "adaptive-off", "off", "no-rtm"};

/* Of two modes (NULL: none) the one that stands first in modes[]. */
static const char *
more_telling(const char *a, const char *b)
{
	for (int i = 0; i < (int) lengthof(modes); i++)
	{
		if (a != NULL && strcmp(a, modes[i]) == 0)
			return a;
		if (b != NULL && strcmp(b, modes[i]) == 0)
			return b;
	}
	return a;
}

/*
 * The counts of the generation; false, and zeros, when it is gone. mode (may
 * be NULL) takes how its sites run in this process, joined with what is there.
 *
 * Epoch: enters and leaves.
 * Locks: partition lock held, in any mode.
 */
static bool
present_aborts(ArtEntry *e, uint64 gen, SiteCounts counts, const char **mode)
{
	ax_ctx	   *cx = art_ctx();
	ax_site_info info[AX_SITES];
	ax_status	st;

	ART_CORE_BEGIN();
	st = ax_aborts(cx, e->tree, gen, info);
	ART_CORE_END();
	memset(counts, 0, sizeof(SiteCounts));
	if (st != AX_OK)
		return false;
	for (int s = 0; s < AX_SITES; s++)
	{
		uint64	   *c = counts[s];

		c[SECTIONS] = info[s].sections;
		c[ATTEMPTS] = info[s].attempts;
		c[COMMITS] = info[s].commits;
		c[CONFLICT] = info[s].conflict;
		c[CAPACITY] = info[s].capacity;
		c[EXPLICIT] = info[s].explicit_;
		c[LOCK_BUSY] = info[s].lock_busy;
		c[NESTED] = info[s].nested;
		c[ZERO] = info[s].zero;
		c[OTHER] = info[s].other;
		c[RETRY_HINT] = info[s].retry_hint;
		c[FALLBACKS] = info[s].fallbacks;
		c[SWITCH_OFFS] = info[s].switch_offs;
		c[SWITCH_ONS] = info[s].switch_ons;
		if (mode != NULL)
			mode[s] = more_telling(mode[s], info[s].mode);
	}
	return true;
}

/* The two sums of their parts: see the head of this file. */
static void
make_sums(SiteCounts counts)
{
	for (int s = 0; s < AX_SITES; s++)
	{
		uint64	   *c = counts[s];

		c[SECTIONS] = c[COMMITS] + c[FALLBACKS];
		c[ATTEMPTS] = c[COMMITS];
		for (int i = CONFLICT; i <= OTHER; i++)
			c[ATTEMPTS] += c[i];
	}
}

/*
 * Most structures count nothing, for most processors cannot elide: so the memory
 * is taken when there is something to be kept.  False when there is not, or no
 * memory, and then it is lost.  Partition lock held, exclusive.
 *
 * Locks: takes the chunk lock, exclusive, inside the partition lock.
 */
static bool
aborts_wanted(ArtEntry *e, SiteCounts counts)
{
	static const SiteCounts none;
	ArtAborts  *a;

	if (e->aborts != NULL)
		return true;
	if (memcmp(counts, none, sizeof(none)) == 0)
		return false;
	LWLockAcquire(art_chunk_lock, LW_EXCLUSIVE);
	if (art_shared->free_aborts == NULL)
	{
		ArtAborts  *chunk = art_system_alloc(AX_PAGE);

		for (size_t i = 0; chunk != NULL && i < AX_PAGE / sizeof(ArtAborts); i++)
		{
			chunk[i].next = art_shared->free_aborts;
			art_shared->free_aborts = &chunk[i];
		}
	}
	a = art_shared->free_aborts;
	if (a != NULL)
		art_shared->free_aborts = a->next;
	LWLockRelease(art_chunk_lock);
	if (a != NULL)
		memset(a, 0, sizeof(*a));
	e->aborts = a;
	return a != NULL;
}

/*
 * See art_pg.h.
 *
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 */
void
art_aborts_forget(ArtEntry *e)
{
	if (e->aborts == NULL)
		return;
	LWLockAcquire(art_chunk_lock, LW_EXCLUSIVE);
	e->aborts->next = art_shared->free_aborts;
	art_shared->free_aborts = e->aborts;
	LWLockRelease(art_chunk_lock);
	e->aborts = NULL;
}

/*
 * See art_pg.h.
 */
void
art_aborts_keep(ArtEntry *e, uint64 gen)
{
	SiteCounts	counts;

	if (!present_aborts(e, gen, counts, NULL) || !aborts_wanted(e, counts))
		return;
	make_sums(counts);
	for (int s = 0; s < AX_SITES; s++)
		for (int i = 0; i < ART_NABORTS; i++)
			e->aborts->counts[s][i] += counts[s][i];
}

/*
 * See art_pg.h.
 */
void
art_aborts_inherit(ArtEntry *heir, const ArtEntry *e)
{
	if (e->aborts == NULL || !aborts_wanted(heir, e->aborts->counts))
		return;
	for (int s = 0; s < AX_SITES; s++)
		for (int i = 0; i < ART_NABORTS; i++)
			heir->aborts->counts[s][i] += e->aborts->counts[s][i];
}

/*
 * See art_pg.h.
 */
void
art_aborts_reset(ArtEntry *e)
{
	uint64		w = pg_atomic_read_u64(&e->word);
	SiteCounts	counts = {{0}};

	if (ART_WORD_STATE(w) != ART_ABSENT)
		(void) present_aborts(e, ART_WORD_GEN(w), counts, NULL);
	if (!aborts_wanted(e, counts))
		return;
	make_sums(counts);
	for (int s = 0; s < AX_SITES; s++)
		for (int i = 0; i < ART_NABORTS; i++)
			e->aborts->counts[s][i] = UINT64CONST(0) - counts[s][i];
}

typedef struct Aborts
{
	SiteCounts	counts;
	const char *mode[AX_SITES];
	TimestampTz stats_reset;
} Aborts;

/* Lock held. */
static void
add_entry(Aborts *sum, ArtEntry *e)
{
	uint64		w = pg_atomic_read_u64(&e->word);
	SiteCounts	present = {{0}};

	if (ART_WORD_STATE(w) != ART_ABSENT)
		(void) present_aborts(e, ART_WORD_GEN(w), present, sum->mode);
	for (int s = 0; s < AX_SITES; s++)
		for (int i = 0; i < ART_NABORTS; i++)
			sum->counts[s][i] += present[s][i] + (e->aborts ? e->aborts->counts[s][i] : 0);
	sum->stats_reset = Max(sum->stats_reset, e->stats_reset);
}

/*
 * Add the counts of one index of this database.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, shared.
 */
static void
add_index(Aborts *sum, Oid indexoid)
{
	LWLock	   *lock = art_partition(MyDatabaseId, indexoid);

	LWLockAcquire(lock, LW_SHARED);
	for (ArtEntry *e = art_chain(MyDatabaseId, indexoid); e; e = e->next)
		if (e->indexoid == indexoid && e->loc.db == MyDatabaseId)
			add_entry(sum, e);
	LWLockRelease(lock);
}

/*
 * Add the counts of all indexes of this database.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition locks, shared, one after the other.
 */
static void
add_all(Aborts *sum)
{
	for (int p = 0; p < ART_NPARTITIONS; p++)
	{
		LWLock	   *lock = &art_dir_locks[p].lock;

		LWLockAcquire(lock, LW_SHARED);
		for (int b = p; b < ART_NBUCKETS; b += ART_NPARTITIONS)
			for (ArtEntry *e = art_shared->buckets[b]; e; e = e->next)
				if (e->loc.db == MyDatabaseId)
					add_entry(sum, e);
		LWLockRelease(lock);
	}
}

/* Is it an index of ours, or gone (false)?  ERROR 42809 for anything else. */
static bool
check_index(Oid indexoid)
{
	HeapTuple	tup = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	Form_pg_class form;

	if (!HeapTupleIsValid(tup))
		return false;
	form = (Form_pg_class) GETSTRUCT(tup);
	if (form->relkind != RELKIND_INDEX || form->relam != get_am_oid(ART_AM_NAME, true))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index of access method \"%s\"",
						NameStr(form->relname), ART_AM_NAME)));
	ReleaseSysCache(tup);
	return true;
}

/*
 * artidx_abort_stats(regclass): one row a site, of one index or, with NULL, of
 * all of this database together.  Takes no lock on the index.
 */
Datum
artidx_abort_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const char *why_not = art_elision_why_not();
	Aborts	   *sum = palloc0(sizeof(Aborts));

	InitMaterializedSRF(fcinfo, 0);
	if (!PG_ARGISNULL(0) && !check_index(PG_GETARG_OID(0)))
		return (Datum) 0;
	if (art_preloaded())
	{
		(void) art_ctx();
		if (PG_ARGISNULL(0))
			add_all(sum);
		else
			add_index(sum, PG_GETARG_OID(0));
	}

	for (int s = 0; s < AX_SITES; s++)
	{
		Datum		values[ABORTS_COLS];
		bool		nulls[ABORTS_COLS] = {0};
		int			c = 0;

		/* there is no structure that could tell */
		if (sum->mode[s] == NULL)
			sum->mode[s] = why_not == NULL ? "on" :
				elision == AX_ELIDE_OFF ? "off" : "no-rtm";
		values[c++] = CStringGetTextDatum(ax_site_name((ax_site) s));
		values[c++] = CStringGetTextDatum(sum->mode[s]);
		for (int i = 0; i < ART_NABORTS; i++)
			values[c++] = Int64GetDatum((int64) sum->counts[s][i]);
		nulls[c] = sum->stats_reset == 0;
		values[c++] = TimestampTzGetDatum(sum->stats_reset);
		Assert(c == ABORTS_COLS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* ---- hardware ---- */

/*
 * Is the main shared memory segment in huge pages?  The setting does not say
 * ("try"), and before 17 nothing else does; the kernel names such a mapping.
 */
static const char *
huge_pages(void)
{
	const char *answer = "unknown";
#ifdef __linux__
	FILE	   *f = AllocateFile("/proc/self/maps", "r");
	char		line[1024];

	if (f == NULL)
		return answer;
	while (fgets(line, sizeof(line), f))
	{
		unsigned long from;
		unsigned long to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2 &&
			(uintptr_t) MyProc >= from && (uintptr_t) MyProc < to)
		{
			answer = strstr(line, "hugepage") || strstr(line, "/hugetlb") ? "on" : "off";
			break;
		}
	}
	FreeFile(f);
#endif
	return answer;
}

/*
 * artidx_hardware(): one row, what elision and the structures have to work with
 * here.
 */
Datum
artidx_hardware(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	const char *why_not;
	Datum		values[10];
	bool		nulls[10] = {0};
	int			c = 0;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	tupdesc = BlessTupleDesc(tupdesc);

	if (!probed)
	{
		ax_hardware_probe(&hardware);
		probed = true;
	}
	why_not = art_elision_why_not();
	if (why_not == NULL && provider != AX_ELIDE_RTM)
		why_not = provider == AX_ELIDE_INJECT ?
			"artidx.elision_provider is inject" : "artidx.elision_provider is software";

	values[c++] = BoolGetDatum(hardware.rtm_cpuid);
	values[c++] = BoolGetDatum(hardware.rtm_always_abort);
	values[c++] = BoolGetDatum(hardware.rtm_usable);
	values[c++] = Int32GetDatum(hardware.probe_attempts);
	values[c++] = Int32GetDatum(hardware.probe_commits);
	values[c++] = CStringGetTextDatum(art_elision_why_not() != NULL ? "off" :
									  elision == AX_ELIDE_ON ? "on" : "auto");
	if (why_not != NULL)
		values[c++] = CStringGetTextDatum(why_not);
	else
		nulls[c++] = true;
	values[c++] = Int32GetDatum((int32) sysconf(_SC_NPROCESSORS_ONLN));
#if defined(__SSE2__) && !defined(AX_NO_SIMD)	/* as core/art_node.h */
	values[c++] = CStringGetTextDatum("sse2");
#else
	values[c++] = CStringGetTextDatum("none");
#endif
	values[c++] = CStringGetTextDatum(huge_pages());
	Assert(c == lengthof(values));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
