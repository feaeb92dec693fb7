/*
 * options.c
 *	  The storage parameters of an art index.
 *
 * Every wrong value is SQLSTATE 22023 and lists the right ones, the name of a
 * parameter included.  The relation cache parses with validate off, and then
 * nothing here may raise.  A value that a later version of the library no
 * longer takes falls back to the default.  Core sees to that for words; a
 * number comes out of the catalog whatever its bounds are now.
 *
 * src/live/README.md: Switching
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "area/area.h"

#define ART_MIN_FILLFACTOR		10

/* The cap of one index: below the minimum not even one span would fit. */
#define ART_MIN_MAX_MEMORY	((double) 64 * 1024)
#define ART_MAX_MAX_MEMORY	((double) 16 * 1024 * 1024 * 1024 * 1024)

/* values of ArtOptions.structure and .sync */
typedef enum ArtStructureOption
{
	ART_STRUCTURE_ART = 0,
	ART_STRUCTURE_BTREE,
	ART_STRUCTURE_HYDRA
} ArtStructureOption;

typedef enum ArtSyncOption
{
	ART_SYNC_AUTO = 0,
	ART_SYNC_OLC,
	ART_SYNC_ROWEX,
	ART_SYNC_OPTIQL,
	ART_SYNC_COARSE,
	ART_SYNC_MVRLU
} ArtSyncOption;

/* and of .tail_buffer and .elision */
typedef enum ArtSwitchOption
{
	ART_SWITCH_AUTO = 0,
	ART_SWITCH_ON,
	ART_SWITCH_OFF
} ArtSwitchOption;

/*
 * The meaning of tail_buffer = auto; a build for tests may say AX_TAIL_ON.
 */
#ifndef ART_TAIL_AUTO
#define ART_TAIL_AUTO	AX_TAIL_AUTO
#endif

/*
 * The structure of an index that does not say; a build for tests may say another.
 */
#ifndef ART_STRUCTURE_DEFAULT
#define ART_STRUCTURE_DEFAULT	ART_STRUCTURE_ART
#endif

#define ART_NSTRUCTURES	3
#define ART_NSYNCS		6

/*
 * Which engine goes with which pair, and what "auto" means: the protocol that
 * does best with the structure when nothing is known of the load.
 */
#define ART_NO_ENGINE	(-1)
static const int engines[ART_NSTRUCTURES][ART_NSYNCS] = {
	[ART_STRUCTURE_ART] = {
		[ART_SYNC_AUTO] = AX_ART_OLC,
		[ART_SYNC_OLC] = AX_ART_OLC,
		[ART_SYNC_ROWEX] = AX_ART_ROWEX,
		[ART_SYNC_OPTIQL] = AX_ART_OPTIQL,
		[ART_SYNC_COARSE] = AX_ART_COARSE,
		[ART_SYNC_MVRLU] = ART_NO_ENGINE
	},
	[ART_STRUCTURE_BTREE] = {
		[ART_SYNC_AUTO] = AX_BTREE_OPTIQL,
		[ART_SYNC_OLC] = AX_BTREE_OLC,
		[ART_SYNC_ROWEX] = ART_NO_ENGINE,
		[ART_SYNC_OPTIQL] = AX_BTREE_OPTIQL,
		[ART_SYNC_COARSE] = AX_BTREE_COARSE,
		[ART_SYNC_MVRLU] = ART_NO_ENGINE
	},
	[ART_STRUCTURE_HYDRA] = {
		[ART_SYNC_AUTO] = AX_HYDRA_OLC,
		[ART_SYNC_OLC] = AX_HYDRA_OLC,
		[ART_SYNC_ROWEX] = ART_NO_ENGINE,
		[ART_SYNC_OPTIQL] = AX_HYDRA_OPTIQL,
		[ART_SYNC_COARSE] = AX_HYDRA_COARSE,
		[ART_SYNC_MVRLU] = AX_HYDRA_MVRLU
	}
};

static relopt_enum_elt_def structure_values[] = {
	{"art", ART_STRUCTURE_ART},
	{"btree", ART_STRUCTURE_BTREE},
	{"hydra", ART_STRUCTURE_HYDRA},
	{(const char *) NULL}		/* list terminator */
};

static relopt_enum_elt_def sync_values[] = {
	{"auto", ART_SYNC_AUTO},
	{"olc", ART_SYNC_OLC},
	{"rowex", ART_SYNC_ROWEX},
	{"optiql", ART_SYNC_OPTIQL},
	{"coarse", ART_SYNC_COARSE},
	{"mvrlu", ART_SYNC_MVRLU},
	{(const char *) NULL}		/* list terminator */
};

static relopt_enum_elt_def switch_values[] = {
	{"auto", ART_SWITCH_AUTO},
	{"on", ART_SWITCH_ON},
	{"off", ART_SWITCH_OFF},
	{(const char *) NULL}		/* list terminator */
};

static const relopt_parse_elt option_table[] = {
	{.optname = "structure", .opttype = RELOPT_TYPE_ENUM, .offset = offsetof(ArtOptions, structure)},
	{.optname = "sync", .opttype = RELOPT_TYPE_ENUM, .offset = offsetof(ArtOptions, sync)},
	{.optname = "page_size", .opttype = RELOPT_TYPE_INT, .offset = offsetof(ArtOptions, page_size)},
	{.optname = "tail_buffer", .opttype = RELOPT_TYPE_ENUM, .offset = offsetof(ArtOptions, tail_buffer)},
	{.optname = "elision", .opttype = RELOPT_TYPE_ENUM, .offset = offsetof(ArtOptions, elision)},
	{.optname = "fillfactor", .opttype = RELOPT_TYPE_INT, .offset = offsetof(ArtOptions, fillfactor)},
	{.optname = "deduplicate_items", .opttype = RELOPT_TYPE_BOOL, .offset = offsetof(ArtOptions, deduplicate_items)},
	{.optname = "max_memory", .opttype = RELOPT_TYPE_STRING, .offset = offsetof(ArtOptions, max_memory_off)}
};

/*
 * Bytes of a max_memory text: a number and one of PostgreSQL's units, which
 * must be there.  False when it is no such text or out of bounds.
 */
static bool
parse_max_memory(const char *value, double *bytes)
{
	const char *end = value + strlen(value);

	while (end > value && isspace((unsigned char) end[-1]))
		end--;
	if (end == value || !isalpha((unsigned char) end[-1]))
		return false;			/* no unit: kB, MB and B are all plausible */
	if (!parse_real(value, bytes, GUC_UNIT_BYTE, NULL))
		return false;
	return *bytes >= ART_MIN_MAX_MEMORY && *bytes <= ART_MAX_MAX_MEMORY;
}

/*
 * Validator of the storage parameter: ERROR unless it is a size in the range.
 */
static void
validate_max_memory(const char *value)
{
	double		bytes;

	if (value != NULL && !parse_max_memory(value, &bytes))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"max_memory\": %s", value),
				 errdetail("Valid values are between \"64kB\" and \"16TB\", with one of the units \"B\", \"kB\", \"MB\", \"GB\" and \"TB\".")));
}

/* what our parameters are registered under */
static relopt_kind our_kind;

void
art_options_init(void)
{
	our_kind = add_reloption_kind();
	add_enum_reloption(our_kind, "structure",
					   "Data structure of the index",
					   structure_values, ART_STRUCTURE_DEFAULT,
					   "Valid values are \"art\", \"btree\" and \"hydra\".",
					   AccessExclusiveLock);
	add_enum_reloption(our_kind, "sync",
					   "Synchronization protocol of the structure",
					   sync_values, ART_SYNC_AUTO,
					   "Valid values are \"auto\", \"olc\", \"rowex\", \"optiql\", \"coarse\" and \"mvrlu\".",
					   AccessExclusiveLock);
	add_int_reloption(our_kind, "page_size",
					  "Bytes of a page of structure \"btree\"",
					  AX_PAGE_SIZE_DEFAULT, AX_PAGE_SIZE_MIN, AX_PAGE_SIZE_MAX,
					  AccessExclusiveLock);

	/*
	 * The commit of the command tells these two to the structure as it is
	 * (switch_options.c), so nobody has to be kept out of the index.
	 */
	add_enum_reloption(our_kind, "tail_buffer",
					   "Whether rising keys are inserted by way of a buffer",
					   switch_values, ART_SWITCH_AUTO,
					   "Valid values are \"auto\", \"on\" and \"off\".",
					   ShareUpdateExclusiveLock);
	add_enum_reloption(our_kind, "elision",
					   "Whether latches are elided by transactions of the processor",
					   switch_values, ART_SWITCH_AUTO,
					   "Valid values are \"auto\", \"on\" and \"off\".",
					   ShareUpdateExclusiveLock);
	add_int_reloption(our_kind, "fillfactor",
					  "Fills leaves only to this percentage when the index is built",
					  ART_DEFAULT_FILLFACTOR, ART_MIN_FILLFACTOR, 100,
					  ShareUpdateExclusiveLock);
	add_bool_reloption(our_kind, "deduplicate_items",
					   "Accepted for btree's sake, affects only what artidx.plan_costs = btree assumes",
					   true, ShareUpdateExclusiveLock);
	add_string_reloption(our_kind, "max_memory",
						 "Most memory the index may take",
						 NULL, validate_max_memory,
						 AccessExclusiveLock);
}

bool
art_option_known(const char *name)
{
	for (int i = 0; i < (int) lengthof(option_table); i++)
	{
		if (strcmp(name, option_table[i].optname) == 0)
			return true;
	}
	return false;
}

/*
 * Core says which name it does not know, but not which ones there are; so
 * look first.  reloptions is a text array of name=value.
 */
static void
check_option_names(Datum reloptions)
{
	Datum	   *elems;
	int			nelems;
	int			i;

	if (DatumGetPointer(reloptions) == NULL)
		return;

	deconstruct_array(DatumGetArrayTypeP(reloptions), TEXTOID, -1, false,
					  TYPALIGN_INT, &elems, NULL, &nelems);
	for (i = 0; i < nelems; i++)
	{
		char	   *name = TextDatumGetCString(elems[i]);
		char	   *eq = strchr(name, '=');

		if (eq != NULL)
			*eq = '\0';
		if (!art_option_known(name))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("unrecognized parameter \"%s\"", name),
					 errhint("The parameters of access method \"%s\" are \"structure\", \"sync\", \"page_size\", \"tail_buffer\", \"elision\", \"fillfactor\", \"deduplicate_items\" and \"max_memory\".",
							 ART_AM_NAME)));
	}
}

/* Is the option of this name among those given? */
static bool
option_given(Datum reloptions, const char *name)
{
	Datum	   *elems;
	int			nelems;
	size_t		len = strlen(name);

	if (DatumGetPointer(reloptions) == NULL)
		return false;
	deconstruct_array(DatumGetArrayTypeP(reloptions), TEXTOID, -1, false,
					  TYPALIGN_INT, &elems, NULL, &nelems);
	for (int i = 0; i < nelems; i++)
	{
		char	   *e = TextDatumGetCString(elems[i]);

		if (strncmp(e, name, len) == 0 && e[len] == '=')
			return true;
	}
	return false;
}

/* The protocols of a structure, for a message. */
static char *
syncs_of(int structure)
{
	StringInfoData buf;
	int			left = 0;

	for (int i = 0; i < ART_NSYNCS; i++)
		left += engines[structure][i] != ART_NO_ENGINE;
	initStringInfo(&buf);
	for (int i = 0; sync_values[i].string_val != NULL; i++)
	{
		if (engines[structure][sync_values[i].symbol_val] == ART_NO_ENGINE)
			continue;
		left--;
		appendStringInfo(&buf, "\"%s\"%s", sync_values[i].string_val,
						 left > 1 ? ", " : left == 1 ? " and " : "");
	}
	return buf.data;
}

/*
 * Rules about several options at once.
 */
static void
check_together(Datum reloptions, const ArtOptions *opts)
{
	if (opts == NULL)
		return;
	if (engines[opts->structure][opts->sync] == ART_NO_ENGINE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"sync\" with structure \"%s\": %s",
						structure_values[opts->structure].string_val,
						sync_values[opts->sync].string_val),
				 errdetail("Valid values are %s.", syncs_of(opts->structure))));
	if (!option_given(reloptions, "page_size"))
		return;
	if (opts->structure != ART_STRUCTURE_BTREE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"page_size\" is only for structure \"btree\""),
				 errhint("Leave it out, RESET it, or say structure = btree.")));
	if (opts->page_size % 64 != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"page_size\": %d", opts->page_size),
				 errdetail("Valid values are multiples of 64 between %d and %d.",
						   AX_PAGE_SIZE_MIN, AX_PAGE_SIZE_MAX)));
}

bytea *
artoptions(Datum reloptions, bool validate)
{
	bytea	   *opts;

	if (validate)
		check_option_names(reloptions);
	opts = (bytea *) build_reloptions(reloptions, validate, our_kind,
									  sizeof(ArtOptions),
									  option_table, lengthof(option_table));
	if (validate)
		check_together(reloptions, (ArtOptions *) opts);
	return opts;
}

ax_structure
art_engine(const ArtOptions *opts, uint32 *page_size)
{
	int			structure = opts != NULL ? opts->structure : ART_STRUCTURE_DEFAULT;
	int			engine = engines[structure][opts != NULL ? opts->sync : ART_SYNC_AUTO];

	if (engine == ART_NO_ENGINE)
		engine = engines[structure][ART_SYNC_AUTO]; /* another version took it */
	*page_size = 0;
	if (opts != NULL && structure == ART_STRUCTURE_BTREE)
		*page_size = opts->page_size % 64 == 0 &&
			opts->page_size >= AX_PAGE_SIZE_MIN && opts->page_size <= AX_PAGE_SIZE_MAX ?
			(uint32) opts->page_size : AX_PAGE_SIZE_DEFAULT;
	return (ax_structure) engine;
}

ax_tail_option
art_tail_option(const ArtOptions *opts)
{
	switch (opts != NULL ? opts->tail_buffer : ART_SWITCH_AUTO)
	{
		case ART_SWITCH_ON:
			return AX_TAIL_ON;
		case ART_SWITCH_OFF:
			return AX_TAIL_OFF;
		default:
			return ART_TAIL_AUTO;
	}
}

ax_elide_option
art_elide_option(const ArtOptions *opts)
{
	switch (opts != NULL ? opts->elision : ART_SWITCH_AUTO)
	{
		case ART_SWITCH_ON:
			return AX_ELIDE_ON;
		case ART_SWITCH_OFF:
			return AX_ELIDE_OFF;
		default:
			return AX_ELIDE_AUTO;
	}
}

const char *
art_tail_name(ax_tail_option option)
{
	return option == AX_TAIL_ON ? "on" : option == AX_TAIL_OFF ? "off" : "auto";
}

const char *
art_elide_name(ax_elide_option option)
{
	return option == AX_ELIDE_ON ? "on" : option == AX_ELIDE_OFF ? "off" : "auto";
}

/* The cap of this index in bytes, 0 for none. */
uint64
art_max_memory(Relation index)
{
	ArtOptions *opts = (ArtOptions *) index->rd_options;
	double		bytes;

	if (opts == NULL || opts->max_memory_off == 0)
		return 0;
	if (!parse_max_memory((char *) opts + opts->max_memory_off, &bytes))
		return 0;				/* stored by another version of the library */
	return (uint64) bytes;
}

int
art_fillfactor(Relation index)
{
	ArtOptions *opts = (ArtOptions *) index->rd_options;

	if (opts == NULL || opts->fillfactor < ART_MIN_FILLFACTOR || opts->fillfactor > 100)
		return ART_DEFAULT_FILLFACTOR;
	return opts->fillfactor;
}

bool
art_deduplicate_items(Relation index)
{
	ArtOptions *opts = (ArtOptions *) index->rd_options;

	return opts == NULL || opts->deduplicate_items;
}

void
art_engine_of(const ArtOptions *opts, ArtEngine *want)
{
	want->structure = art_engine(opts, &want->page_size);
	want->tail = art_tail_option(opts);
	want->elide = art_elide_option(opts);
}
