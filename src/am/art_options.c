/*
 * art_options.c
 *	  The storage parameters of an art index.
 *
 * Every wrong value is SQLSTATE 22023 and lists the right ones, the name of a
 * parameter included.  The relation cache parses with validate off, and then
 * nothing here may raise: a value that a later version of the library no
 * longer takes falls back to the default.
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "artidx.h"

#define ART_MIN_FILLFACTOR		10

/* The cap of one index: below the minimum not even one span would fit. */
#define ART_MIN_MAX_MEMORY	((double) 64 * 1024)
#define ART_MAX_MAX_MEMORY	((double) 16 * 1024 * 1024 * 1024 * 1024)

/* values of ArtOptions.structure and .sync */
typedef enum ArtStructureOption
{
	ART_STRUCTURE_ART = 0,
	ART_STRUCTURE_BTREE
} ArtStructureOption;

typedef enum ArtSyncOption
{
	ART_SYNC_AUTO = 0,
	ART_SYNC_OLC
} ArtSyncOption;

static relopt_enum_elt_def structure_values[] = {
	{"art", ART_STRUCTURE_ART},
	{"btree", ART_STRUCTURE_BTREE},
	{(const char *) NULL}		/* list terminator */
};

static relopt_enum_elt_def sync_values[] = {
	{"auto", ART_SYNC_AUTO},
	{"olc", ART_SYNC_OLC},
	{(const char *) NULL}		/* list terminator */
};

static const relopt_parse_elt option_table[] = {
	{.optname = "structure", .opttype = RELOPT_TYPE_ENUM, .offset = offsetof(ArtOptions, structure)},
	{.optname = "sync", .opttype = RELOPT_TYPE_ENUM, .offset = offsetof(ArtOptions, sync)},
	{.optname = "page_size", .opttype = RELOPT_TYPE_INT, .offset = offsetof(ArtOptions, page_size)},
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

/*
 * The kind that our parameters are registered under, registered on first use
 * in this process.
 */
static relopt_kind
art_relopt_kind(void)
{
	static bool registered = false;
	static relopt_kind kind;

	if (!registered)
	{
		kind = add_reloption_kind();
		add_enum_reloption(kind, "structure",
						   "Data structure of the index",
						   structure_values, ART_STRUCTURE_ART,
						   "Valid values are \"art\" and \"btree\".",
						   AccessExclusiveLock);
		add_enum_reloption(kind, "sync",
						   "Synchronization protocol of the structure",
						   sync_values, ART_SYNC_AUTO,
						   "Valid values are \"auto\" and \"olc\".",
						   AccessExclusiveLock);
		add_int_reloption(kind, "page_size",
						  "Bytes of a page of structure \"btree\"",
						  AX_PAGE_SIZE_DEFAULT, AX_PAGE_SIZE_MIN, AX_PAGE_SIZE_MAX,
						  AccessExclusiveLock);
		add_int_reloption(kind, "fillfactor",
						  "Fills leaves only to this percentage when the index is built",
						  ART_DEFAULT_FILLFACTOR, ART_MIN_FILLFACTOR, 100,
						  ShareUpdateExclusiveLock);
		add_bool_reloption(kind, "deduplicate_items",
						   "Accepted for btree's sake, without effect",
						   true, ShareUpdateExclusiveLock);
		add_string_reloption(kind, "max_memory",
							 "Most memory the index may take",
							 NULL, validate_max_memory,
							 AccessExclusiveLock);
		registered = true;
	}
	return kind;
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
		bool		known = false;
		int			j;

		if (eq != NULL)
			*eq = '\0';
		for (j = 0; j < (int) lengthof(option_table) && !known; j++)
			known = strcmp(name, option_table[j].optname) == 0;
		if (!known)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("unrecognized parameter \"%s\"", name),
					 errhint("The parameters of access method \"%s\" are \"structure\", \"sync\", \"page_size\", \"fillfactor\", \"deduplicate_items\" and \"max_memory\".",
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

/*
 * What no option can say of itself.
 */
static void
check_together(Datum reloptions, const ArtOptions *opts)
{
	if (opts == NULL || !option_given(reloptions, "page_size"))
		return;
	if (opts->structure != ART_STRUCTURE_BTREE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"page_size\" is only for structure \"btree\""),
				 errhint("Leave it out, or say WITH (structure = btree).")));
	if (opts->page_size % 64 != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"page_size\": %d", opts->page_size),
				 errdetail("Valid values are multiples of 64 between %d and %d.",
						   AX_PAGE_SIZE_MIN, AX_PAGE_SIZE_MAX)));
}

/* amoptions: the ArtOptions of a reloptions array. */
bytea *
artoptions(Datum reloptions, bool validate)
{
	bytea	   *opts;

	if (validate)
		check_option_names(reloptions);
	opts = (bytea *) build_reloptions(reloptions, validate, art_relopt_kind(),
									  sizeof(ArtOptions),
									  option_table, lengthof(option_table));
	if (validate)
		check_together(reloptions, (ArtOptions *) opts);
	return opts;
}

/*
 * See artidx.h.
 */
ax_structure
art_engine(const ArtOptions *opts, uint32 *page_size)
{
	*page_size = 0;
	if (opts == NULL || opts->structure != ART_STRUCTURE_BTREE)
		return AX_ART_OLC;
	*page_size = opts->page_size % 64 == 0 ? (uint32) opts->page_size : AX_PAGE_SIZE_DEFAULT;
	return AX_BTREE_OLC;
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

/* How full, in per cent, a build leaves the leaves. */
int
art_fillfactor(Relation index)
{
	ArtOptions *opts = (ArtOptions *) index->rd_options;

	return opts != NULL ? opts->fillfactor : ART_DEFAULT_FILLFACTOR;
}
