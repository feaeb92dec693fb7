/*
 * quotas.c
 *	  Limits on the memory that temporary indexes, the indexes of one database and
 *	  those of one role may take together, and what they take.
 *
 * The core charges every page to the groups of its tree (ax_group), and
 * refuses pages beyond a group's limit.  This file says what the groups are.
 * There is one of all temporary indexes, one of each database, and one of each
 * role that owns indexes and is no superuser.  A structure's groups are those
 * that its index had when the structure was opened.  So ALTER ... OWNER TO
 * moves the charge at the next build.
 *
 * A group is a record in shared memory, found by hash.  The directory's
 * entries that name it are counted under the chunk lock.  When no entry names
 * a record and nothing is charged to it, the next group of its hash chain
 * takes it over.  So there are about as many records as groups were ever
 * needed at one time.
 *
 * The limits lie in shared memory, too.  The postmaster writes them when it
 * starts and when it reloads its configuration.  A lower limit takes nothing
 * away; it only stops growth.
 *
 * src/limits/README.md: Memory full
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>

#include "catalog/pg_class.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"

#include "area/shared_state.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(artidx_usage_stats);

#define ART_USAGE_COLS 9

/*
 * Under the chunk lock, but for what is charged: the core adds to that and takes
 * from it by atomic operations.  A process reads kind and oid without the lock
 * as long as an entry that it has locked names the group.
 */
struct ArtGroup
{
	ax_group	charged;
	ArtGroup   *next;			/* in the hash chain, or in the free list */
	Oid			oid;			/* of the database or role; 0: temporary indexes */
	ArtFull		kind;			/* whose limit is full when this is */
	int			refs;			/* entries that name it */
};

StaticAssertDecl(AX_GROUPS == ART_FULL_ROLE - ART_FULL_TEMP + 1, "one group a limit");

static const char *const setting_names[AX_GROUPS] = {
	"artidx.temp_limit", "artidx.database_limit", "artidx.role_limit"
};

static char *settings[AX_GROUPS];

/* ---- settings ---- */

/*
 * "25%" or "500MB".  A size is returned in bytes, a percentage (*percent) as it
 * is.  False for anything else.
 */
static bool
parse_limit(const char *value, double *amount, bool *percent)
{
	const char *end = value + strlen(value);

	while (end > value && isspace((unsigned char) end[-1]))
		end--;
	if (end == value)
		return false;
	*percent = end[-1] == '%';
	if (*percent)
	{
		char	   *rest;

		errno = 0;
		*amount = strtod(value, &rest);
		while (isspace((unsigned char) *rest))
			rest++;
		return errno == 0 && rest == end - 1 && rest > value &&
			*amount >= 0 && *amount <= 100;
	}
	/* no unit: kB, MB, B and per cent are all plausible */
	return isalpha((unsigned char) end[-1]) &&
		parse_real(value, amount, GUC_UNIT_BYTE, NULL) && *amount >= 0;
}

/* GUC check hook: the value is a percentage or a size. */
static bool
check_limit(char **newval, void **extra, GucSource source)
{
	double		amount;
	bool		percent;

	if (parse_limit(*newval, &amount, &percent))
		return true;
	GUC_check_errdetail("Valid values are a percentage of \"artidx.memory\", such as \"25%%\", and a size with one of the units \"B\", \"kB\", \"MB\", \"GB\" and \"TB\".");
	return false;
}

/* Write it where all processes see it.  The text was checked. */
static void
store_limit(int i, const char *value)
{
	double		amount;
	bool		percent;
	double		all = (double) art_area_bytes();

	if (!parse_limit(value, &amount, &percent))
		return;
	if (percent)
		amount = all * amount / 100;
	art_shared->limits[i] = amount >= all ? UINT64_MAX : (uint64) amount;
}

static void
assign_limit(int i, const char *newval)
{
	if (!IsUnderPostmaster && art_shared != NULL)
		store_limit(i, newval);
}

static void
assign_temp_limit(const char *newval, void *extra)
{
	assign_limit(0, newval);
}

static void
assign_database_limit(const char *newval, void *extra)
{
	assign_limit(1, newval);
}

static void
assign_role_limit(const char *newval, void *extra)
{
	assign_limit(2, newval);
}

/*
 * From _PG_init, preloading.
 */
void
art_groups_init(void)
{
	DefineCustomStringVariable(setting_names[0],
							   "Limits the memory of all temporary art indexes together.",
							   "A percentage of artidx.memory, or a size.",
							   &settings[0], "25%",
							   PGC_SIGHUP, 0,
							   check_limit, assign_temp_limit, NULL);
	DefineCustomStringVariable(setting_names[1],
							   "Limits the memory of the art indexes of any one database.",
							   "A percentage of artidx.memory, or a size.",
							   &settings[1], "100%",
							   PGC_SIGHUP, 0,
							   check_limit, assign_database_limit, NULL);
	DefineCustomStringVariable(setting_names[2],
							   "Limits the memory of the art indexes that any one role owns.",
							   "A percentage of artidx.memory, or a size. Superusers have no limit.",
							   &settings[2], "100%",
							   PGC_SIGHUP, 0,
							   check_limit, assign_role_limit, NULL);
}

/*
 * Shared memory was made.
 */
void
art_groups_startup(void)
{
	for (int i = 0; i < AX_GROUPS; i++)
		store_limit(i, settings[i]);
}

/* ---- groups ---- */

/*
 * Find or make a group, and count one entry more; NULL when the area is full.
 *
 * Locks: chunk lock held, exclusive.
 */
static ArtGroup *
group_get(ArtFull kind, Oid oid)
{
	ArtGroup  **chain = &art_shared->groups[(oid * 3 + (Oid) kind) % ART_NGROUPS];
	ArtGroup   *unused = NULL;
	ArtGroup   *g;

	for (g = *chain; g; g = g->next)
	{
		if (g->kind == kind && g->oid == oid)
			break;
		if (g->refs == 0 && g->charged.bytes == 0)
			unused = g;
	}
	if (g == NULL)
	{
		g = unused;
		if (g == NULL)
		{
			if (art_shared->free_groups == NULL)
			{
				ArtGroup   *chunk = art_system_alloc(AX_PAGE);

				if (chunk == NULL)
					return NULL;
				for (size_t i = 0; i < AX_PAGE / sizeof(ArtGroup); i++)
				{
					chunk[i].next = art_shared->free_groups;
					art_shared->free_groups = &chunk[i];
				}
			}
			g = art_shared->free_groups;
			art_shared->free_groups = g->next;
			g->next = *chain;
			*chain = g;
		}
		g->kind = kind;
		g->oid = oid;
		g->charged.limit = &art_shared->limits[kind - ART_FULL_TEMP];
	}
	g->refs++;
	return g;
}

/*
 * The entry names these groups from now on.
 *
 * Locks: partition and chunk lock held, exclusive.
 */
static void
set_groups(ArtEntry *e, ArtGroup *const *groups)
{
	ax_group   *charged[AX_GROUPS];

	for (int i = 0; i < AX_GROUPS; i++)
	{
		if (e->groups[i] != NULL)
			e->groups[i]->refs--;
		e->groups[i] = groups[i];
		charged[i] = groups[i] ? &groups[i]->charged : NULL;
	}
	ax_tree_set_groups(e->tree, charged);
}

/*
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 * Returns: false if a group could not be made; then the entry is in the groups
 * that it was in.
 */
bool
art_groups_join(ArtEntry *e, Oid owner, bool limited)
{
	ArtGroup   *groups[AX_GROUPS] = {NULL};
	bool		ok = true;

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	if (e->loc.backend != -1)
		ok = (groups[0] = group_get(ART_FULL_TEMP, InvalidOid)) != NULL;
	if (ok)
		ok = (groups[1] = group_get(ART_FULL_DATABASE, e->loc.db)) != NULL;
	if (ok && limited)
		ok = (groups[2] = group_get(ART_FULL_ROLE, owner)) != NULL;
	if (ok)
		set_groups(e, groups);
	else
	{
		for (int i = 0; i < AX_GROUPS; i++)
			if (groups[i] != NULL)
				groups[i]->refs--;
	}
	art_unlock(art_chunk_lock);
	return ok;
}

/*
 * Locks: partition lock held, exclusive; takes the chunk lock, exclusive.
 */
void
art_groups_leave(ArtEntry *e)
{
	ArtGroup   *groups[AX_GROUPS] = {NULL};

	art_lock(art_chunk_lock, LW_EXCLUSIVE);
	set_groups(e, groups);
	art_unlock(art_chunk_lock);
}

ArtFull
art_what_is_full(ArtGroup **group)
{
	ax_ctx	   *cx = art_ctx();
	ArtGroup   *g = (ArtGroup *) ax_nomem_group(cx);

	if (group)
		*group = g;
	if (ax_nomem_was_cap(cx))
		return ART_FULL_CAP;
	return g ? g->kind : ART_FULL_AREA;
}

void
art_group_use(const ArtGroup *g, uint64 *bytes, uint64 *limit)
{
	*bytes = g->charged.bytes;
	*limit = *g->charged.limit;
}

/*
 * For a loop over the groups that the entry names.  Tells how much is in the
 * next one behind *i, which begins at -1, and its limit.  False: there is
 * none.
 */
static bool
next_quota(const ArtEntry *e, int *i, uint64 *bytes, uint64 *limit)
{
	while (++*i < AX_GROUPS)
	{
		if (e->groups[*i] == NULL)
			continue;
		art_group_use(e->groups[*i], bytes, limit);
		return true;
	}
	return false;
}

uint64
art_groups_left(const ArtEntry *e, uint64 left)
{
	uint64		bytes;
	uint64		limit;

	for (int i = -1; next_quota(e, &i, &bytes, &limit);)
		left = Min(left, limit > bytes ? limit - bytes : 0);
	return left;
}

bool
art_in_group(const ArtEntry *e, const ArtGroup *g)
{
	return e->groups[g->kind - ART_FULL_TEMP] == g;
}

/*
 * Bytes free in the area, after what is retired and can be freed was freed.
 *
 * Epoch: enters and leaves.
 */
static uint64
free_memory(void)
{
	ax_ctx	   *cx = art_ctx();
	ax_memory_info mem;

	ART_CORE_BEGIN();
	(void) ax_poll(cx);
	ax_memory(cx, &mem);
	ART_CORE_END();
	return mem.free_bytes;
}

uint64
art_left_to(const ArtGroup *group)
{
	uint64		left = free_memory();
	uint64		bytes;
	uint64		limit;

	if (group == NULL)
		return left;
	art_group_use(group, &bytes, &limit);
	return limit > bytes ? Min(left, limit - bytes) : 0;
}

/*
 * Epoch: enters and leaves.
 */
uint64
art_structure_bytes(ArtEntry *e, uint64 gen)
{
	ax_ctx	   *cx = art_ctx();
	ax_tree_info info;
	ax_status	st;

	ART_CORE_BEGIN();
	st = ax_info_about(cx, e->tree, gen, &info);
	ART_CORE_END();
	return st == AX_OK ? info.bytes : 0;
}

const char *
art_full_name(ArtFull full)
{
	switch (full)
	{
		case ART_FULL_AREA:
			return "memory full";
		case ART_FULL_CAP:
			return "max_memory";
		case ART_FULL_TEMP:
		case ART_FULL_DATABASE:
		case ART_FULL_ROLE:
			return setting_names[full - ART_FULL_TEMP];
	}
	return NULL;
}

/* ---- artidx_usage ---- */

typedef struct UsageKey
{
	Oid			db;
	Oid			owner;
	char		persistence;
	char		pad[3];
} UsageKey;

typedef struct Usage
{
	UsageKey	key;
	int			indexes;
	int			sealed;
	uint64		bytes;
	ArtFull		full;			/* the limit that leaves least; AREA: none does */
	uint64		limit;
	uint64		used;			/* by all that it limits */
} Usage;

/*
 * Add an entry to its row.
 *
 * Epoch: enters and leaves.
 * Locks: partition lock held, in any mode.
 */
static void
add_usage(HTAB *rows, ArtEntry *e)
{
	uint64		w = pg_atomic_read_u64(&e->word);
	bool		absent = ART_WORD_STATE(w) == ART_ABSENT;
	UsageKey	key;
	Usage	   *u;
	uint64		bytes;
	uint64		limit;
	bool		found;

	if (absent && e->reason != ART_WHY_MEMORY)
		return;
	memset(&key, 0, sizeof(key));
	key.db = e->loc.db;
	key.owner = e->owner;
	key.persistence = e->persistence;
	u = hash_search(rows, &key, HASH_ENTER, &found);
	if (!found)
		memset((char *) u + sizeof(key), 0, sizeof(*u) - sizeof(key));
	if (absent)
		u->sealed++;
	else
	{
		u->indexes++;
		u->bytes += art_structure_bytes(e, ART_WORD_GEN(w));
	}
	for (int i = -1; next_quota(e, &i, &bytes, &limit);)
	{
		if (limit == UINT64_MAX ||
			(u->full != ART_FULL_AREA &&
			 (int64) (limit - bytes) >= (int64) (u->limit - u->used)))
			continue;
		u->full = e->groups[i]->kind;
		u->limit = limit;
		u->used = bytes;
	}
}

/*
 * artidx_usage_stats(): the rows of artidx_usage, of all databases.
 *
 * Epoch: enters and leaves, under the lock (add_usage).
 * Locks: takes the partition locks, shared, one after the other.
 */
Datum
artidx_usage_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo;
	HASHCTL		ctl;
	ArtWalk		w;
	HTAB	   *rows;
	HASH_SEQ_STATUS seq;
	Usage	   *u;

	art_require_preload(NULL);
	rsinfo = art_result_rows(fcinfo, ART_USAGE_COLS);
	(void) art_ctx();

	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(UsageKey);
	ctl.entrysize = sizeof(Usage);
	ctl.hcxt = CurrentMemoryContext;
	rows = hash_create("artidx usage", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	w = art_walk(LW_SHARED, InvalidOid, InvalidOid);
	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
		add_usage(rows, e);

	hash_seq_init(&seq, rows);
	while ((u = hash_seq_search(&seq)) != NULL)
	{
		Datum		values[ART_USAGE_COLS];
		bool		nulls[ART_USAGE_COLS] = {0};
		char	   *db = get_database_name(u->key.db);
		char	   *owner = GetUserNameFromId(u->key.owner, true);
		int			c = 0;

		nulls[c] = db == NULL;	/* dropped a moment ago */
		values[c++] = db ? DirectFunctionCall1(namein, CStringGetDatum(db)) : 0;
		nulls[c] = owner == NULL;
		values[c++] = owner ? DirectFunctionCall1(namein, CStringGetDatum(owner)) : 0;
		values[c++] = CStringGetTextDatum(u->key.persistence == RELPERSISTENCE_TEMP ? "temporary" :
										  u->key.persistence == RELPERSISTENCE_UNLOGGED ?
										  "unlogged" : "permanent");
		values[c++] = Int32GetDatum(u->indexes);
		values[c++] = Int32GetDatum(u->sealed);
		values[c++] = Int64GetDatum((int64) u->bytes);
		if (u->full == ART_FULL_AREA)
			nulls[c] = nulls[c + 1] = nulls[c + 2] = true;
		else
		{
			values[c] = CStringGetTextDatum(art_full_name(u->full));
			values[c + 1] = Int64GetDatum((int64) u->limit);
			values[c + 2] = Int64GetDatum((int64) u->used);
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
