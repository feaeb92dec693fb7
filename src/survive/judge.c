/*
 * judge.c
 *	  After a crash and its recovery: which structures are kept.
 *
 * The first process that comes to the directory judges all of it.  No other sees an
 * entry before that, or writes into a ring.  Rows may be inserted before, at positions in
 * the WAL that recovery did not reach; their entries wait for the judgement.  After that a
 * second one would take lost rows for recovered ones.  So what was not judged when the next crash comes is given up
 * (crash_memory.c).
 *
 * A structure is what it was when the server crashed; nobody was inside.  The table is
 * what the WAL says up to where recovery ended.  They agree if
 * - nothing was removed, or left out by a build, for a change that is lost: that was done
 *	 only when the WAL was flushed, up to "relied", or up to "born_lsn" by the build;
 * - nothing is in the structure for a row that is lost.  The rings have such entries:
 *	 they are removed, exactly.  Where there was no room in a ring, "spill_lsn" says so.
 *
 * src/survive/README.md: Memory that outlives a crash
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lwlock.h"

#include "area/crash_memory.h"
#include "survive/survive.h"

/* this process judges: it may see entries */
static bool judging = false;

/* Why a structure that was READY is not kept. */
typedef enum Loss
{
	LOSS_NONE,
	LOSS_COMPARED,
	LOSS_NOT_PERMANENT,
	LOSS_UNCOMMITTED,			/* also: an entry of a lost row could not be removed */
	LOSS_MAKING,
	LOSS_SPILLED,
	LOSS_ALL,
	LOSS_BROKEN,
	NLOSSES
} Loss;

static const char *const losses[NLOSSES] = {
	NULL,
	"with keys that are compared",
	"of tables that are not permanent",
	"of transactions that had not committed",
	"whose building is lost",
	"with rows that are lost and were not written down",
	"because recovery did not end where it should have",
	"because what a process wrote down makes no sense"
};

typedef struct Judgement
{
	XLogRecPtr	end;
	int			kept;
	int			gone;
	int			lost[NLOSSES];	/* gone is their sum */
	int			removed;
	bool		broken;			/* a record makes no sense */
	bool		hydra;			/* one was kept that has a search layer */
} Judgement;

/*
 * May the structure be kept?  All of it, records of rings apart.
 */
static Loss
loss_of(const ArtEntry *e, XLogRecPtr end)
{
	XLogRecPtr	spilled = pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &e->spill_lsn));

	if (e->compared)
		return LOSS_COMPARED;
	if (e->persistence != RELPERSISTENCE_PERMANENT || e->loc.backend != -1)
		return LOSS_NOT_PERMANENT;
	if (e->doubt || e->loading || e->born_lsn == InvalidXLogRecPtr)
		return LOSS_UNCOMMITTED;
	if (e->born_lsn > end)
		return LOSS_MAKING;
	if (spilled > end)
		return LOSS_SPILLED;
	return LOSS_NONE;
}

static bool
keepable(const ArtEntry *e, XLogRecPtr end)
{
	return ART_WORD_STATE(pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &e->word))) == ART_READY &&
		loss_of(e, end) == LOSS_NONE;
}

/*
 * An entry for a row that is lost: it goes.
 *
 * Epoch: enters and leaves.
 */
static void
remove_lost(const ArtRingRecord *rec, const uint8 *key, uint32 len, void *arg)
{
	Judgement  *j = arg;
	ArtEntry   *e = rec->entry;
	ax_ctx	   *cx = art_ctx();
	ax_status	s;

	if (rec->lsn <= j->end)
		return;
	if (!art_in_area(e, sizeof(ArtEntry)))
	{
		j->broken = true;
		return;
	}
	if (pg_atomic_read_u64(&e->word) != ART_WORD(rec->gen, ART_READY) || !keepable(e, j->end))
		return;

	/* nobody else is there: BUSY is a matter of retire lists */
	for (int tries = 0; tries < 1000; tries++)
	{
		ART_CORE_BEGIN();
		s = ax_remove(cx, e->tree, rec->gen, key, len);
		if (s == AX_BUSY)
			(void) ax_poll(cx);
		ART_CORE_END();
		if (s != AX_BUSY)
			break;
	}
	if (s == AX_OK)
		j->removed++;
	else if (s != AX_NOTFOUND)
		e->born_lsn = InvalidXLogRecPtr;	/* without it, all of the structure goes */
}

/*
 * Judge all.  The judge's lock is held.
 *
 * Epoch: the core is called in one critical section at a time.
 * Locks: takes the partition locks and the chunk lock, exclusive.
 */
static void
judge_all(Judgement *j)
{
	ArtWalk		w = art_walk(LW_EXCLUSIVE, InvalidOid, InvalidOid);
	TimeLineID	tli = 0;
	bool		all = !RecoveryInProgress();

	if (all)
	{
		j->end = GetXLogReplayRecPtr(NULL);
		tli = GetWALInsertionTimeLine();
	}
	all = all && j->end != InvalidXLogRecPtr && tli == art_shared->timeline;
	for (int i = 0; all && i < art_shared->nslots; i++)
		all = art_rings[i].relied <= j->end;

	for (int i = 0; all && !j->broken && i < art_shared->nslots; i++)
		j->broken |= !art_ring_each(&art_rings[i], remove_lost, j);
	all = all && !j->broken;
	art_hazards_survive();
	for (ArtEntry *e; (e = art_walk_next(&w)) != NULL;)
	{
		if (all && keepable(e, j->end))
		{
			art_entry_keep(e);
			j->kept++;
			j->hydra |= ax_structure_is_hydra(e->engine);
			continue;
		}
		if (ART_WORD_STATE(pg_atomic_read_u64(&e->word)) == ART_READY)
		{
			j->gone++;
			j->lost[all ? loss_of(e, j->end) : j->broken ? LOSS_BROKEN : LOSS_ALL]++;
		}
		art_entry_forget(e);
	}

	/* the updater may have died when it had taken the news, and not all of the log */
	if (j->hydra)
	{
		ax_ctx	   *cx = art_ctx();

		ART_CORE_BEGIN();
		ax_tell_updater(cx);
		ART_CORE_END();
	}

	/* last, so that another process could judge once more */
	for (int i = 0; i < art_shared->nslots; i++)
		art_ring_clear(&art_rings[i]);
}

/* The judgement in the server's log. */
static void
report_judgement(const Judgement *j)
{
	StringInfoData why;

	initStringInfo(&why);
	for (int i = 0; i < NLOSSES; i++)
		if (j->lost[i] > 0)
			appendStringInfo(&why, "%s%d %s", why.len > 0 ? ", " : " Given up: ",
							 j->lost[i], losses[i]);
	ereport(j->kept + j->gone > 0 ? LOG : DEBUG1,
			(errmsg("art indexes after the crash: %d kept, %d given up", j->kept, j->gone),
			 errdetail("Recovery ended at %X/%X; %d entries of rows that are lost were removed.%s%s",
					   LSN_FORMAT_ARGS(j->end), j->removed, why.data, why.len > 0 ? "." : "")));
	pfree(why.data);
}

/*
 * Locks: takes the judge's lock, exclusive; others wait for it here.
 */
void
art_judge(void)
{
	Judgement	j = {0};

	if (judging || !IsUnderPostmaster || MyProc == NULL)
		return;
	/* it may raise an ERROR, and tells whether SIGTERM must be held */
	(void) art_ctx();
	LWLockAcquire(art_judge_lock, LW_EXCLUSIVE);
	if (!art_unjudged())
	{
		LWLockRelease(art_judge_lock);
		return;
	}
	judging = true;
	if (art_hold_sigterm)
		art_sigterm_hold();
	PG_TRY();
	{
		judge_all(&j);
	}
	PG_FINALLY();
	{
		judging = false;
		if (art_hold_sigterm)
			art_sigterm_resume();
	}
	PG_END_TRY();
	art_shared->kept = j.kept > 0;
	pg_write_barrier();
	pg_atomic_write_u32(&art_shared->unjudged, 0);
	LWLockRelease(art_judge_lock);

	report_judgement(&j);
}
