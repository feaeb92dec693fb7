/*
 * memory_full.c
 *	  When the memory is full: who gives way, sealing, and its end.
 *
 * A sealed index is ABSENT and out of plans: its table goes on taking writes,
 * which do not enter it, and its memory serves others.  The memory that a seal
 * frees is there after two epochs.  Several processes in want of memory must
 * not seal one index each in that time.  So a process that seals announces how
 * long the memory may take to come (sealing_until), and the others wait for
 * it.  A deadline needs nobody to take it back: a process that dies in between
 * delays the next seal by a tenth of a second.
 *
 * Victims.  Temporary indexes come first, then those of the owner and database
 * of the index that wants memory, then of the database, then of others.
 * Others give way only if nobody has used them for ten minutes.  Among equals
 * the largest is first.  A temporary index takes from temporary ones only.  A
 * unique one gives way only to another constraint, and only when it has not
 * been used for ten minutes.  Otherwise two of them would evict each other for
 * ever.  But a temporary index always gives way to one that is not temporary,
 * and never the other way round.  Where a limit is what is full (quotas.c),
 * only what it limits can give way.  An index whose ambuild's transaction still
 * runs is no victim.
 *
 * The session that wanted memory gets a WARNING; the server's log a line that
 * tells whose index was sealed, what it held, and for whom.
 *
 * src/limits/README.md: Memory full
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "area/shared_state.h"
#include "limits/limits.h"

#define ART_IDLE_S		60		/* not used for so long: idle */
#define ART_UNUSED_S	600		/* the same for a constraint's */
#define ART_ROOM_MS		100		/* a process waits so long for a seal's memory */
#define ART_PATIENCE_MS 500		/* others' seals, by a statement that must not fail */
#define ART_NAP_MS		2
#define ART_VICTIM_MIN	((uint64) 64 * 1024)	/* less is not worth a seal */
#define ART_PLENTY		((uint64) 1024 * 1024)
#define ART_BUFFER_STEPS 1000	/* of emptying one of them; and that meet others */
#define ART_BUFFER_TRIES 100
#define ART_BACKOFF_MAX 600

/* Database, owner and name of an index, copied from its entry. */
typedef struct Whose
{
	Oid			db;
	Oid			owner;
	NameData	schema;
	NameData	name;
} Whose;

typedef struct Victim
{
	Whose		whose;
	Oid			indexoid;
	ArtLocator	loc;
	uint64		gen;
	int			rank;			/* smaller goes first; 0: none found */
	uint64		bytes;
} Victim;

/* The index that wants memory. */
typedef struct Wants
{
	ArtEntry   *e;				/* NULL: it has none yet */
	ArtRoomFor	what;
	Oid			db;
	Oid			owner;
	bool		temp;
	uint32		used;			/* last use of its structure */
	ArtGroup   *group;			/* whose limit is full; NULL: the area is */
} Wants;

/*
 * The limit that was full when this process last asked for room: for the
 * report.
 */
static ArtFull refused = ART_FULL_AREA;

static uint32 wait_event_room = 0;

/* ---- looking ---- */

/*
 * Seconds since 2000 of the last use.  A structure counts as used when it was
 * made: somebody wanted it.
 */
static uint32
last_use(const ArtEntry *e)
{
	uint32		used = pg_atomic_read_u32(unconstify(pg_atomic_uint32 *, &e->used_at));
	uint32		made = (uint32) (e->last_build / USECS_PER_SEC);

	return Max(used, made);
}

/*
 * How willingly an entry is sealed: 0 never, else the smaller the sooner.
 *
 * A non-unique insert takes only from indexes that were used before its own
 * was last used.  Otherwise the load of a table that nobody queries would
 * drive out the indexes of tables that are queried now and then.
 */
static int
victim_rank(const ArtEntry *e, const Wants *w, uint32 now)
{
	uint32		used = last_use(e);
	uint32		idle = now > used ? now - used : 0;
	bool		temp = e->loc.backend != -1;
	bool		same_db = e->loc.db == w->db;
	bool		own = same_db && e->owner == w->owner;
	int			distance = temp && !w->temp ? 0 : own ? 1 : same_db ? 2 : 3;

	if (w->temp && !temp)
		return 0;
	/* a temporary one disturbs nobody else's that is in use */
	if (w->temp && !own && idle < ART_IDLE_S)
		return 0;

	switch (w->what)
	{
		case ART_ROOM_NONE:
			return 0;
		case ART_ROOM_INSERT:
			if (e->unique || idle < (distance == 3 ? ART_UNUSED_S : ART_IDLE_S) ||
				(distance > 0 && used >= w->used))
				return 0;
			return 1 + distance;
		case ART_ROOM_BUILD:
		case ART_ROOM_AMBUILD:
			return !e->unique && idle >= ART_UNUSED_S ? 1 + distance : 0;
		case ART_ROOM_UNIQUE:
			/* 1 to 4 are temporary, 5 to 9 back no constraint, 10 to 12 do */
			if (distance == 0)
				return (e->unique ? 3 : 1) + (idle < ART_IDLE_S);
			if (e->unique)
				return idle >= ART_UNUSED_S ? 9 + distance : 0;
			if (distance == 3)
				return idle >= ART_UNUSED_S ? 9 : 0;
			return 3 + 2 * distance + (idle < ART_IDLE_S);
	}
	return 0;
}

/*
 * Does the transaction that ran its ambuild still run?  Not when it is too old
 * to be compared: its number may be another's, or look like one of the future.
 */
static bool
still_made(const ArtEntry *e)
{
	uint64		by = U64FromFullTransactionId(e->made_by);

	return by != 0 &&
		U64FromFullTransactionId(ReadNextFullTransactionId()) - by < MaxTransactionId / 2 &&
		TransactionIdIsInProgress(XidFromFullTransactionId(e->made_by));
}

static void
look_whose(const ArtEntry *e, Whose *whose)
{
	whose->db = e->loc.db;
	whose->owner = e->owner;
	whose->schema = e->schema;
	whose->name = e->name;
}

/*
 * The best victim in all databases.  Whether the transaction of its ambuild
 * still runs is asked last, for it is dear.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition locks, shared, one after the other.
 * Returns: false if there is none.  The victim may be gone by the time it is
 * sealed, so seal_structure() asks for its generation again.
 */
static bool
find_victim(const Wants *wants, Victim *v)
{
	uint32		now = (uint32) (GetCurrentTimestamp() / USECS_PER_SEC);
	ArtWalk		walk = art_walk(LW_SHARED, InvalidOid, InvalidOid);

	memset(v, 0, sizeof(*v));
	for (ArtEntry *e; (e = art_walk_next(&walk)) != NULL;)
	{
		uint64		w = pg_atomic_read_u64(&e->word);
		uint64		bytes;
		int			rank;

		if (e == wants->e || ART_WORD_STATE(w) != ART_READY ||
			(wants->group != NULL && !art_in_group(e, wants->group)))
			continue;
		rank = victim_rank(e, wants, now);
		if (rank == 0 || (v->rank != 0 && rank > v->rank))
			continue;
		bytes = art_structure_bytes(e, ART_WORD_GEN(w));
		if (bytes < ART_VICTIM_MIN ||
			(rank == v->rank && bytes <= v->bytes))
			continue;
		if (still_made(e))
			continue;
		look_whose(e, &v->whose);
		v->indexoid = e->indexoid;
		v->loc = e->loc;
		v->gen = ART_WORD_GEN(w);
		v->rank = rank;
		v->bytes = bytes;
	}
	return v->rank != 0;
}

/* ---- waiting ---- */

/*
 * Is a deadline still ahead?  One that is much further ahead than they are ever
 * set is from before the clock was set back.
 */
static bool
pending_until(TimestampTz until, TimestampTz now)
{
	return until > now && until <= now + 10 * ART_ROOM_MS * 1000;
}

/*
 * Announce a seal, if none is under way: true, and others wait for us.
 */
static bool
claim_seal(TimestampTz now)
{
	uint64		until = pg_atomic_read_u64(&art_shared->sealing_until);

	return !pending_until((TimestampTz) until, now) &&
		pg_atomic_compare_exchange_u64(&art_shared->sealing_until, &until,
									   (uint64) now + ART_ROOM_MS * 1000);
}

static bool
seal_under_way(TimestampTz now)
{
	return pending_until((TimestampTz) pg_atomic_read_u64(&art_shared->sealing_until),
						 now);
}

static void
nap(void)
{
	(void) art_doze(ART_NAP_MS, ART_WAIT_EVENT(wait_event_room, "ArtidxMemory"));
}

/* The memory left to a group (NULL: to all) when a wait for more began. */
typedef struct Left
{
	const ArtGroup *group;
	uint64		before;
} Left;

static bool
more_is_left(void *arg)
{
	const Left *l = arg;

	return art_left_to(l->group) > l->before;
}

/*
 * Wait until there is more free memory than before, at most as long as a seal
 * may take.
 */
static bool
wait_for_memory(const ArtGroup *group, uint64 before)
{
	Left		l = {group, before};

	return art_wait_for(more_is_left, &l, GetCurrentTimestamp() + ART_ROOM_MS * 1000,
						ART_NAP_MS, NULL, ART_WAIT_EVENT(wait_event_room, "ArtidxMemory"));
}

/* ---- sealing ---- */

/*
 * Note in an entry that is ABSENT that it was sealed.  The back-off doubles
 * when it did not stay READY for long.
 *
 * Locks: partition lock held, exclusive.
 */
static void
mark_sealed(ArtEntry *e, uint64 bytes, ArtFull full)
{
	TimestampTz now = GetCurrentTimestamp();

	if (e->backoff_s > 0 &&
		!TimestampDifferenceExceeds(e->sealed_at, now, e->backoff_s * 10 * 1000))
		e->backoff_s = Min(e->backoff_s * 2, ART_BACKOFF_MAX);
	else
		e->backoff_s = 1;
	e->sealed = true;
	e->seals++;
	e->last_bytes = bytes;
	e->sealed_at = now;
	e->full = full;
	e->not_before = now + e->backoff_s * (int64) USECS_PER_SEC;
}

/*
 * Make a structure ABSENT and sealed, if it still has this generation: READY,
 * or BUILDING, whose builder then finds it gone.  Returns the bytes it had, 0
 * when there was nothing to do.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
static uint64
seal_structure(Oid indexoid, const ArtLocator *loc, uint64 gen, ArtFull full)
{
	LWLock	   *lock;
	ArtEntry   *e = art_find_locked(indexoid, loc, LW_EXCLUSIVE, &lock);
	uint64		bytes = 0;
	Oid			heapoid = InvalidOid;
	bool		was_ready = false;

	if (e != NULL)
	{
		uint64		w = pg_atomic_read_u64(&e->word);

		if (ART_WORD_STATE(w) != ART_ABSENT && ART_WORD_GEN(w) == gen)
		{
			bytes = Max(art_structure_bytes(e, gen), 1);
			heapoid = e->heapoid;
			was_ready = art_entry_absent(e, ART_WHY_MEMORY, NULL);
			mark_sealed(e, bytes, full);
		}
	}
	art_unlock_changed(lock, was_ready, loc->db, heapoid);
	return bytes;
}

/* ---- telling ---- */

char *
art_size(uint64 bytes)
{
	return TextDatumGetCString(DirectFunctionCall1(pg_size_pretty,
												   Int64GetDatum((int64) bytes)));
}

/* The limit that is full, as it was before something gave way. */
typedef struct Full
{
	ArtFull		what;
	ax_memory_info mem;			/* AREA */
	uint64		cap;			/* CAP */
	uint64		bytes;			/* a group's */
	uint64		limit;
	Oid			owner;
} Full;

/*
 * Collect what a message about full memory says. e may be NULL: no entry could
 * be made.
 *
 * Epoch: enters and leaves.
 */
static void
look_at_full(ArtFull what, const ArtEntry *e, Relation index, Full *f)
{
	ax_ctx	   *cx = art_ctx();
	const ArtGroup *group = e != NULL && what >= ART_FULL_TEMP ?
		e->groups[what - ART_FULL_TEMP] : NULL;

	memset(f, 0, sizeof(*f));
	f->what = what;
	f->cap = art_max_memory(index);
	f->owner = index->rd_rel->relowner;
	ART_CORE_BEGIN();
	ax_memory(cx, &f->mem);
	ART_CORE_END();
	if (group != NULL)
		art_group_use(group, &f->bytes, &f->limit);
}

/* A sentence that says what is full. */
static char *
full_text(const Full *f)
{
	char	   *what = NULL;
	char	   *role;

	switch (f->what)
	{
		case ART_FULL_CAP:
			return psprintf(_("The index's \"max_memory\" is %s."), art_size(f->cap));
		case ART_FULL_AREA:
			if (f->mem.free_bytes < ART_PLENTY)
				return psprintf(_("Art indexes take %s of shared memory, and %s are free for them."),
								art_size(f->mem.used_bytes), art_size(f->mem.free_bytes));
			return psprintf(_("Art indexes take %s of shared memory, and %s are free for them, at most %s in one piece."),
							art_size(f->mem.used_bytes), art_size(f->mem.free_bytes),
							art_size(f->mem.largest_free_bytes));
		case ART_FULL_TEMP:
			what = _("Temporary art indexes take");
			break;
		case ART_FULL_DATABASE:
			what = _("The art indexes of this database take");
			break;
		case ART_FULL_ROLE:
			role = GetUserNameFromId(f->owner, true);
			what = psprintf(_("The art indexes of role \"%s\" take"), role ? role : "?");
			break;
	}
	/* the limit may be another by now */
	if ((f->limit == 0 && f->bytes == 0) || f->limit == UINT64_MAX)
		return psprintf(_("\"%s\" is in the way."), art_full_name(f->what));
	return psprintf(_("%s %s, and \"%s\" lets them have %s."), what,
					art_size(f->bytes), art_full_name(f->what), art_size(f->limit));
}

/* The HINT of an error for full memory: which setting to raise. */
static int
hint_what_is_full(const Full *f, bool unique)
{
	switch (f->what)
	{
		case ART_FULL_CAP:
			return unique ?
				errhint("Increase the storage parameter \"max_memory\" of the index.") :
				errhint("Increase the storage parameter \"max_memory\" of the index, or make the table smaller and call artidx_build().");
		case ART_FULL_AREA:
			return errhint("Increase the configuration parameter \"artidx.memory\", or drop or unload other art indexes; REINDEX shrinks indexes from which many rows were deleted.");
		case ART_FULL_TEMP:
		case ART_FULL_DATABASE:
		case ART_FULL_ROLE:
			break;
	}
	return errhint("Increase the configuration parameter \"%s\", or drop other indexes that it limits.",
				   art_full_name(f->what));
}

/*
 * Detail of a WARNING.  takes: what the index did or would do with so many bytes,
 * which may be unknown (0).
 */
static int
say_what_is_full(const char *takes, uint64 bytes, const Full *f)
{
	const char *rest = "The table can be used as before; queries do without the index until it is built again.";

	if (bytes == 0)
		errdetail("%s  %s", full_text(f), rest);
	else
		errdetail("%s %s.  %s  %s", takes, art_size(bytes), full_text(f), rest);
	return hint_what_is_full(f, false);
}

/* For the log: index "database.schema.name" of role "owner". */
static char *
whose_text(const Whose *w)
{
	char	   *db = get_database_name(w->db);
	char	   *role = GetUserNameFromId(w->owner, true);

	return psprintf(_("index \"%s.%s.%s\" of role \"%s\""), db ? db : "?",
					NameStr(w->schema), NameStr(w->name), role ? role : "?");
}

/* Fill in, from the catalog, how the log names an index. */
static void
whose_index(Relation index, Whose *w)
{
	ArtOpening	o;

	art_opening(index, &o);
	w->db = MyDatabaseId;
	w->owner = o.owner;
	w->schema = o.schema;
	w->name = o.name;
}

/*
 * One line in the server's log, at any level: the role that lost the index
 * does not read the WARNING. index: for which it was, NULL for the sealed one
 * itself.
 */
static void
log_seal(const Whose *sealed, uint64 bytes, Relation index, const Full *f)
{
	Whose		wants;

	if (index != NULL)
		whose_index(index, &wants);
	ereport(LOG_SERVER_ONLY,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("artidx: sealed %s, which held %s, %s",
					whose_text(sealed), art_size(bytes),
					index == NULL ? "because it found no memory" :
					psprintf("for %s", whose_text(&wants))),
			 errdetail("%s", full_text(f)),
			 hint_what_is_full(f, false)));
}

/*
 * Tell of a victim; of one in another database its own people know the name.
 */
static void
report_victim(const Victim *v, uint64 bytes, Relation index, const Full *f)
{
	char	   *name = v->whose.db == MyDatabaseId ? get_rel_name(v->indexoid) : NULL;
	char	   *what;

	if (name != NULL)
		what = psprintf("index \"%s\"", name);
	else
	{
		char	   *dbname = get_database_name(v->whose.db);

		what = psprintf("index with OID %u of database \"%s\"", v->indexoid,
						dbname ? dbname : "?");
	}
	log_seal(&v->whose, bytes, index, f);
	ereport(WARNING_CLIENT_ONLY,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("art %s was sealed to make room for index \"%s\"", what,
					RelationGetRelationName(index)),
			 say_what_is_full("It took", bytes, f)));
}

void
art_seal_for(Relation index, ArtEntry *e, uint64 gen, ArtFull full)
{
	ArtLocator	loc;
	Full		f;
	Whose		whose;
	uint64		bytes;

	if (full == ART_FULL_AREA)
		(void) claim_seal(GetCurrentTimestamp());
	look_at_full(full, e, index, &f);
	art_locator(index, &loc);
	bytes = seal_structure(RelationGetRelid(index), &loc, gen, full);
	if (bytes == 0)
		return;
	whose_index(index, &whose);
	log_seal(&whose, bytes, NULL, &f);
	ereport(WARNING_CLIENT_ONLY,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("art index \"%s\" was sealed because its memory is full",
					RelationGetRelationName(index)),
			 say_what_is_full("It took", bytes, &f)));
}

void
art_seal(Relation index, ArtEntry *e, uint64 gen)
{
	art_seal_for(index, e, gen, refused);
}

void
art_report_nomem(Relation index)
{
	ArtEntry   *e = art_entry_if_exists(index);
	ArtFull		full = refused;
	uint64		gen;
	uint64		bytes = 0;
	Full		f;

	if (e != NULL && art_entry_state(e, &gen) == ART_ABSENT)
	{
		if (e->reason == ART_WHY_MEMORY)
			full = e->full;
		bytes = e->last_bytes;
	}
	else if (e != NULL)
		bytes = art_structure_bytes(e, gen);
	look_at_full(full, e, index, &f);
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory for art index \"%s\"",
					RelationGetRelationName(index)),
			 bytes == 0 ? errdetail("%s", full_text(&f)) :
			 errdetail("%s  %s %s.", full_text(&f),
					   art_entry_state(e, NULL) == ART_ABSENT ?
					   _("The index is absent; it needs about") : _("The index takes"),
					   art_size(bytes)),
			 hint_what_is_full(&f, true)));
}

ArtEntry *
art_entry(Relation index)
{
	ArtEntry   *e = art_entry_if_exists(index);

	if (likely(e != NULL))
		return e;
	e = art_entry_create(index, false);
	if (e == NULL)
		art_report_nomem(index);
	return e;
}

void
art_report_unbuilt(Relation index)
{
	Full		f;

	look_at_full(refused, art_entry_if_exists(index), index, &f);
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory for art index \"%s\"", RelationGetRelationName(index)),
			 errdetail("A unique index that is made concurrently must be in memory.  %s",
					   full_text(&f)),
			 errhint("The index is invalid, and nothing uses it.  Drop it with DROP INDEX, or call REINDEX when there is room.")));
}

/*
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive; the ERROR comes after it was
 * released.
 */
void
art_refuse_over_cap(Relation index, ArtEntry *e)
{
	LWLock	   *lock = art_partition(e->loc.db, e->indexoid);
	ax_ctx	   *cx = art_ctx();
	ax_tree_info info;
	uint64		w;
	bool		over;

	/* exclusive, against another who finds it over a cap set just now */
	art_lock(lock, LW_EXCLUSIVE);
	w = pg_atomic_read_u64(&e->word);
	ART_CORE_BEGIN();
	over = ART_WORD_STATE(w) == ART_READY &&
		ax_info_about(cx, e->tree, ART_WORD_GEN(w), &info) == AX_OK &&
		info.max_bytes != 0 && info.bytes > info.max_bytes;
	ART_CORE_END();
	e->over_cap = over;
	art_unlock(lock);
	if (!over)
		return;
	refused = ART_FULL_CAP;
	art_report_nomem(index);
}

ArtFull
art_refused(void)
{
	return refused;
}

/* ---- making room ---- */

/*
 * A rewritten index still has the structure of its old file, which goes when
 * the transaction commits.  Nobody else can use it, for the index is locked.
 * Should the transaction abort, it is built again when it is needed.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive; does nothing unless
 * AccessExclusiveLock on the index is held.
 */
static bool
drop_old(Relation index)
{
	ArtLocator	loc;
	ArtWalk		w;
	bool		dropped = false;
	bool		was_ready = false;

	if (!CheckRelationLockedByMe(index, AccessExclusiveLock, true))
		return false;
	art_locator(index, &loc);
	w = art_walk(LW_EXCLUSIVE, loc.db, RelationGetRelid(index));
	for (ArtEntry *o; (o = art_walk_next(&w)) != NULL;)
	{
		if (art_same_locator(&o->loc, &loc) ||
			ART_WORD_STATE(pg_atomic_read_u64(&o->word)) == ART_ABSENT)
			continue;
		was_ready |= art_entry_absent(o, ART_WHY_MEMORY, NULL);
		dropped = true;
	}
	if (was_ready)
		art_invalidate_heap(loc.db, index->rd_index->indrelid);
	return dropped;
}

/*
 * The memory of a tail buffer, for what an index has to have.  False: there was no
 * buffer, or nothing in it could be moved, so that a caller who comes back does
 * not do so for ever.
 *
 * Epoch: enters and leaves, once per call of the core; checks for interrupts
 * between two.
 */
static bool
give_up_buffer(ax_tree *tree, uint64 gen)
{
	ax_ctx	   *cx = art_ctx();
	bool		had;
	bool		moved = false;
	bool		more = true;
	int			busy = 0;
	ax_status	s;

	ART_CORE_BEGIN();
	s = ax_tail_close(cx, tree, gen, &had);
	ART_CORE_END();
	if (s != AX_OK || !had)
		return false;
	/* beside inserters there can be another one before this one is empty */
	for (int i = 0; more && i < ART_BUFFER_STEPS; i++)
	{
		if (s == AX_BUSY && busy++ < ART_BUFFER_TRIES)
			art_busy();
		else if (s != AX_OK)
			break;
		CHECK_FOR_INTERRUPTS();
		ART_CORE_BEGIN();
		s = ax_tail_flush(cx, tree, gen, &more);
		ART_CORE_END();
		moved |= s == AX_OK;
	}
	return moved;
}

/* Can the entry, of this group (NULL: of any), have a tail buffer? */
static bool
may_have_buffer(ArtEntry *e, const void *group)
{
	return ART_WORD_STATE(pg_atomic_read_u64(&e->word)) != ART_ABSENT &&
		e->tail != AX_TAIL_OFF && (group == NULL || art_in_group(e, group));
}

/*
 * Give up the buffers of all indexes, or those of a group.  The directory's locks are not
 * held meanwhile.
 *
 * Epoch: enters and leaves, outside of the locks.
 * Locks: takes the partition locks, shared, one after the other.
 */
static bool
give_up_buffers(const ArtGroup *group)
{
	ArtListed  *list;
	int			n = art_list_entries(InvalidOid, may_have_buffer, group, &list);
	bool		moved = false;

	for (int i = 0; i < n; i++)
		moved |= give_up_buffer(list[i].tree, list[i].gen);
	pfree(list);
	return moved;
}

/*
 * Has somebody's seal been quicker than we came here?  Not twice in a row.  The
 * free memory can be in pieces too small; or a load that has just failed had
 * taken it, however long that was at it.
 */
static bool
plenty_is_free(ArtEntry *e, uint64 gen, uint64 left, TimestampTz begun)
{
	static TimestampTz last_plenty = 0;
	static uint64 last_plenty_gen = 0;

	if (left < ART_PLENTY ||
		!(e != NULL && ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_BUILDING ?
		  last_plenty_gen != gen :
		  last_plenty > begun ||
		  TimestampDifferenceExceeds(last_plenty, begun, ART_ROOM_MS)))
		return false;
	last_plenty = begun;
	last_plenty_gen = gen;
	return true;
}

/*
 * Waits, not longer than "patience" from "begun", until nobody else seals, and
 * claims the next seal.  False: there is none to be had; or, *came, memory came
 * free meanwhile, more than there was before.
 */
static bool
await_seal(const ArtGroup *group, uint64 before, TimestampTz begun, int patience,
		   bool *came)
{
	*came = false;
	for (;;)
	{
		TimestampTz now = GetCurrentTimestamp();

		if (claim_seal(now))
			return true;
		while (seal_under_way(now))
		{
			nap();
			*came = art_left_to(group) > before;
			if (*came)
				return false;
			now = GetCurrentTimestamp();
		}
		if (TimestampDifferenceExceeds(begun, now, patience))
			return false;
	}
}

/*
 * Seals the index that can best be done without, as claim_seal() allows.  False:
 * there is none.
 */
static bool
seal_another(Relation index, const Wants *wants)
{
	Victim		v;

	while (find_victim(wants, &v))
	{
		uint64		before = art_left_to(wants->group);
		Full		f;
		uint64		bytes;

		look_at_full(refused, wants->e, index, &f);
		bytes = seal_structure(v.indexoid, &v.loc, v.gen, refused);
		if (bytes == 0)
			continue;			/* it went by itself, or changed: look again */
		report_victim(&v, bytes, index, &f);

		/* the core, too, waits for what is dying */
		(void) wait_for_memory(wants->group, before);
		return true;
	}
	return false;
}

/*
 * Each "true" follows a seal, a drop, or memory that came free.  So when a
 * caller finds the memory taken by others and comes back, somebody has got on.
 */
bool
art_make_room(Relation index, ArtEntry *e, uint64 gen, ArtRoomFor what)
{
	TimestampTz begun = GetCurrentTimestamp();
	int			patience = what == ART_ROOM_INSERT ? ART_ROOM_MS : ART_PATIENCE_MS;
	Wants		wants;
	ArtGroup   *group;
	uint64		before;
	bool		came;

	refused = art_what_is_full(&group);
	wants = (Wants)
	{
		.e = e, .what = what, .group = group,
		.db = MyDatabaseId, .owner = index->rd_rel->relowner,
		.temp = RelationUsesLocalBuffers(index),
		.used = e != NULL ? last_use(e) : 0
	};

	/* no index is sealed, and none refuses a row, as long as it has a tail buffer */
	if (e != NULL && gen != 0 && give_up_buffer(art_entry_tree(e), gen))
		return true;

	/* a build has no removals behind it; what a failed load left there is its own */
	if (refused == ART_FULL_CAP && e != NULL && gen != 0 &&
		ART_WORD_STATE(pg_atomic_read_u64(&e->word)) != ART_BUILDING &&
		art_compact_for_cap(art_entry_tree(e), gen, patience))
		return true;

	/* other indexes' memory is of no use to one that is at its own cap */
	if (what == ART_ROOM_NONE || refused == ART_FULL_CAP)
		return false;

	before = art_left_to(wants.group);
	if (what == ART_ROOM_AMBUILD && drop_old(index))
	{
		(void) wait_for_memory(wants.group, before);
		return true;
	}

	if (plenty_is_free(e, gen, before, begun))
		return true;

	/* nor as long as other indexes have tail buffers */
	if (give_up_buffers(wants.group))
	{
		(void) wait_for_memory(wants.group, before);
		return true;
	}

	/* nor as long as structures hold memory that they do not need */
	if (art_compact_for_room(wants.group, before, patience))
		return true;

	if (!await_seal(wants.group, before, begun, patience, &came))
		return came;
	if (seal_another(index, &wants))
	{
		pg_atomic_write_u64(&art_shared->sealing_until, 0);
		return true;
	}

	/* an insert's own index is sealed next, and others wait for that */
	if (what != ART_ROOM_INSERT)
		pg_atomic_write_u64(&art_shared->sealing_until, 0);
	return false;
}

/*
 * Locks: takes the partition lock, exclusive.
 */
void
art_ambuild_unbuilt(Relation index, ArtEntry *e, uint64 bytes)
{
	Full		f;

	if (e != NULL)
	{
		LWLock	   *lock = art_partition(e->loc.db, e->indexoid);

		art_lock(lock, LW_EXCLUSIVE);
		if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT)
		{
			e->reason = ART_WHY_MEMORY;
			mark_sealed(e, bytes, refused);
		}
		art_unlock(lock);
	}

	look_at_full(refused, e, index, &f);
	ereport(WARNING,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("art index \"%s\" is valid but sealed, because there is no memory to build it",
					RelationGetRelationName(index)),
			 say_what_is_full("It would take about", bytes, &f)));
}

/* ---- by hand, and the cap ---- */

uint64
art_room_wanted(uint64 bytes, uint64 all_bytes)
{
	uint64		more = bytes / 4;

	if (all_bytes > bytes)
		more = Min(more, (all_bytes - bytes) / 2);
	return bytes + more;
}

bool
art_room_again(const ArtEntry *e, uint64 free_bytes, uint64 all_bytes)
{
	if (!e->sealed)
		return true;
	if (GetCurrentTimestamp() < e->sealed_at + e->backoff_s * (int64) USECS_PER_SEC)
		return false;
	/* at its own cap it would be as full again: until that is altered */
	if (e->full == ART_FULL_CAP)
		return false;
	free_bytes = art_groups_left(e, free_bytes);
	/* it was tried, and took more than last time */
	if (e->failed_at > e->sealed_at &&
		(GetCurrentTimestamp() < e->failed_at + e->backoff_s * (int64) USECS_PER_SEC ||
		 free_bytes < art_room_wanted(e->failed_free, all_bytes)))
		return false;
	return art_room_wanted(e->last_bytes, all_bytes) <= free_bytes;
}

/*
 * Epoch: enters and leaves.
 */
bool
art_unseal_now(const ArtEntry *e)
{
	ax_ctx	   *cx = art_ctx();
	ax_memory_info mem;

	if (e->loc.backend == -1)
		return false;
	ART_CORE_BEGIN();
	ax_memory(cx, &mem);
	ART_CORE_END();
	return art_room_again(e, mem.free_bytes, mem.used_bytes + mem.free_bytes);
}

/*
 * Drop the structure and keep it out: until artidx_build(), a restart, or a
 * unique insert, which must have it.  Scans and inserts that are under way
 * find the generation gone.  ERROR 53200 when not even the note can be made.
 *
 * Epoch: enters and leaves, under the lock.
 * Locks: takes the partition lock, exclusive.
 */
void
art_unload(Relation index)
{
	ArtEntry   *e = art_entry(index);
	LWLock	   *lock = art_entry_lock(index, e);
	bool		was_ready;

	if (lock == NULL)
		return;
	was_ready = art_entry_absent(e, ART_WHY_UNLOADED, NULL);
	e->wanted = ART_WANT_NOTHING;
	art_unlock_changed(lock, was_ready, e->loc.db, e->heapoid);
}

/*
 * End whatever keeps the index out: unloaded, sealed, failed lately.
 *
 * Locks: takes the partition lock, exclusive.
 */
void
art_reload(Relation index)
{
	ArtEntry   *e = art_entry_if_exists(index);
	LWLock	   *lock;

	if (e == NULL)
		return;
	lock = art_entry_lock(index, e);
	if (lock == NULL)
		return;
	if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_ABSENT)
	{
		if (e->reason == ART_WHY_UNLOADED)
			e->reason = ART_WHY_RESTART;
		if (e->full == ART_FULL_CAP)
			e->full = ART_FULL_AREA;
		e->backoff_s = 0;
		art_entry_again(e);
	}
	art_unlock(lock);
}
