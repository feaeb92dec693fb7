/*
 * wal_reader.c
 *	  The follower reads WAL that was replayed, and notes what it says of the
 *	  tables whose indexes it keeps.
 *
 * Only records that were replayed are read, so what they did is in the pages.  A
 * record tells where to look, and its rows are read from the pages
 * (catch_up.c), which may be newer.
 *
 * A record of VACUUM or of a prune names the line pointers that it makes dead or
 * unused.  When it has an image of the page instead, the image tells: what is
 * neither a row nor a redirection is dead or unused there.
 *
 * src/follow/README.md: On a standby
 */
#include "postgres.h"

#include <unistd.h>

#include "access/heapam_xlog.h"
#include "access/rmgr.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "catalog/pg_control.h"
#include "catalog/storage_xlog.h"
#include "miscadmin.h"
#include "storage/bufpage.h"
#include "storage/sinval.h"
#include "utils/memutils.h"

#include "art_compat.h"
#include "follow/follow.h"

#define ART_BATCH_BYTES	(4 * 1024 * 1024)	/* of WAL, in one batch */

/*
 * Replay puts the archive's copy of a segment in the place of one that was streamed.  The
 * segment is missing for a moment, and a process that has it open reads the old file.
 */
#define ART_REOPEN_TRIES	50
#define ART_REOPEN_US		100000

static MemoryContext reader_cxt = NULL; /* the reader allocates when it reads, too */
static XLogReaderState *reader = NULL;
static ReadLocalXLogPageNoWaitPrivate private_data;

/* ---- which indexes a file has ---- */

typedef struct HeapFile
{
	ArtRelFile	file;			/* key */
	ArtFollowed *first;
} HeapFile;

static HTAB *files = NULL;

void
art_wal_index(ArtFollowed *list)
{
	HASHCTL		ctl = {0};

	if (files != NULL)
		hash_destroy(files);
	ctl.keysize = sizeof(ArtRelFile);
	ctl.entrysize = sizeof(HeapFile);
	ctl.hcxt = TopMemoryContext;
	files = hash_create("artidx followed files", 64, &ctl,
						HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (ArtFollowed *x = list; x != NULL; x = x->next)
	{
		ArtRelFile	file;
		HeapFile   *h;
		bool		found;

		ART_RELFILE_SET(file, x->heap.spc, x->heap.db, x->heap.rel);
		h = hash_search(files, &file, HASH_ENTER, &found);
		x->next_of_heap = found ? h->first : NULL;
		h->first = x;
	}
}

static ArtFollowed *
of_file(const ArtRelFile *file)
{
	HeapFile   *h = files == NULL ? NULL : hash_search(files, file, HASH_FIND, NULL);

	return h == NULL ? NULL : h->first;
}

/* ---- records ---- */

/* The first index of the table whose main fork block 0 of the record is of. */
static ArtFollowed *
touched_table(BlockNumber *block)
{
	ArtRelFile	file;
	ForkNumber	fork;

	if (!XLogRecHasBlockRef(reader, 0))
		return NULL;
	XLogRecGetBlockTag(reader, 0, &file, &fork, block);
	return fork == MAIN_FORKNUM ? of_file(&file) : NULL;
}

/*
 * Will a build read this block later?  It then finds all that was replayed, this record, too.  Not
 * where the table was cut off: the sweep takes out what the build finds there, but for rows that are noted.
 */
static inline bool
comes_to_it(const ArtFollowed *x, BlockNumber block)
{
	return x->building && block > x->last_read && block < x->nblocks && block < x->touched.cut;
}

/* The block of a record, and the first index of its table. */
typedef struct Touched
{
	ArtFollowed *first;
	BlockNumber block;
} Touched;

/* Note what a record says of a line pointer, for every index of the table. */
static void
note_row(void *arg, ArtRowNews news, OffsetNumber off)
{
	const Touched *t = arg;

	for (ArtFollowed *x = t->first; x != NULL; x = x->next_of_heap)
	{
		if (comes_to_it(x, t->block))
			continue;
		switch (news)
		{
			case ART_ROW_CAME:
				art_touched_row(&x->touched, t->block, off);
				break;
			case ART_ROW_DEAD:
				art_touched_dead(&x->touched, t->block, off);
				break;
			case ART_ROW_FREED:
				art_touched_freed(&x->touched, t->block, off);
				break;
		}
	}
}

/* ERROR: the record has a number that leads out of it, or out of a page. */
static void
makes_no_sense(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("the WAL record at %X/%X makes no sense", LSN_FORMAT_ARGS(reader->ReadRecPtr))));
}

/*
 * The record has an image of the page in the place of what it did there.  The line
 * pointers that it made unused are among the unused ones of the image.
 */
static void
from_image(Touched *t)
{
	PGAlignedBlock image;
	Page		page = (Page) image.data;
	OffsetNumber maxoff;

	if (!RestoreBlockImage(reader, 0, image.data))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not restore the image of block %u in the WAL record at %X/%X",
						t->block, LSN_FORMAT_ARGS(reader->ReadRecPtr))));
	maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
	for (OffsetNumber off = FirstOffsetNumber; off <= MaxHeapTuplesPerPage; off++)
	{
		if (off > maxoff || !ItemIdIsUsed(PageGetItemId(page, off)))
			note_row(t, ART_ROW_FREED, off);
		else if (ItemIdIsDead(PageGetItemId(page, off)))
			note_row(t, ART_ROW_DEAD, off);
	}
}

/* A record of the heap. */
static void
heap_record(void)
{
	ArtRecordKind kind = art_record_kind(reader->record);
	Touched		t;

	if (kind == ART_RECORD_OTHER)
		return;
	t.first = touched_table(&t.block);
	if (t.first == NULL)
		return;
	/* where a prune has both, what it did is the better answer */
	if (kind == ART_RECORD_PRUNE && !reader->record->blocks[0].has_data)
	{
		if (XLogRecHasBlockImage(reader, 0))
			from_image(&t);
	}
	else if (!art_record_rows(reader->record, kind, note_row, &t))
		makes_no_sense();
}

/*
 * A page of the table came as an image only, and not for the sake of a hint bit.  An
 * empty one says nothing.  Others are rare: whatever did that, build anew.
 */
static void
page_came(void)
{
	for (int id = 0; id <= XLogRecMaxBlockId(reader); id++)
	{
		PGAlignedBlock image;
		ArtRelFile	file;
		ForkNumber	fork;
		BlockNumber block;
		ArtFollowed *x;

		if (!XLogRecHasBlockRef(reader, id))
			continue;
		XLogRecGetBlockTag(reader, id, &file, &fork, &block);
		x = fork == MAIN_FORKNUM ? of_file(&file) : NULL;
		if (x == NULL)
			continue;
		if (RestoreBlockImage(reader, id, image.data) &&
			(PageIsNew((Page) image.data) ||
			 PageGetMaxOffsetNumber((Page) image.data) == 0))
			continue;
		for (; x != NULL; x = x->next_of_heap)
			art_kept_close(x, ART_WHY_RESTART, NULL);
	}
}

/*
 * The file was cut off.  VACUUM does it behind the last row; to nothing it may be
 * TRUNCATE, of a table that its transaction made.
 */
static void
truncated(void)
{
	xl_smgr_truncate *rec = (xl_smgr_truncate *) XLogRecGetData(reader);

	if (XLogRecGetDataLen(reader) < sizeof(*rec))
		makes_no_sense();
	if ((rec->flags & SMGR_TRUNCATE_HEAP) == 0)
		return;
	for (ArtFollowed *x = of_file(&rec->ART_TRUNCATE_FILE); x != NULL; x = x->next_of_heap)
	{
		if (rec->blkno == 0)
			art_kept_close(x, ART_WHY_RESTART, NULL);
		else
			art_touched_cut(&x->touched, rec->blkno);
	}
}

/* Was a relation changed, made or dropped in our database? */
static bool
changes_relations(uint8 info)
{
	xl_xact_parsed_commit parsed;

	ParseCommitRecord(info, (xl_xact_commit *) XLogRecGetData(reader), &parsed);
	if ((parsed.xinfo & XACT_XINFO_HAS_INVALS) == 0 || parsed.dbId != MyDatabaseId)
		return false;
	for (int i = 0; i < parsed.nmsgs; i++)
		if (parsed.msgs[i].id == SHAREDINVALRELCACHE_ID)
			return true;
	return false;
}

/* One record, in the reader.  *look: the catalog may have other indexes by now. */
static void
take_record(bool *look)
{
	uint8		info = XLogRecGetInfo(reader) & ~XLR_INFO_MASK;

	switch (XLogRecGetRmid(reader))
	{
		case RM_HEAP_ID:
		case RM_HEAP2_ID:
			heap_record();
			break;
		case RM_XLOG_ID:
			if (info == XLOG_FPI)
				page_came();
			break;
		case RM_SMGR_ID:
			if (info == XLOG_SMGR_TRUNCATE)
				truncated();
			break;
		case RM_XACT_ID:
			if ((info & XLOG_XACT_OPMASK) == XLOG_XACT_COMMIT ||
				(info & XLOG_XACT_OPMASK) == XLOG_XACT_COMMIT_PREPARED)
				*look |= changes_relations(XLogRecGetInfo(reader));
			break;
		default:
			break;
	}
}

/* ---- reading ---- */

/*
 * Where the record begins whose predecessor ends there: at the start of a page, behind its
 * header.  15 wants to be told so.
 */
static XLogRecPtr
record_after(XLogRecPtr end)
{
	if (end % XLOG_BLCKSZ != 0)
		return end;
	return end + (XLogSegmentOffset(end, wal_segment_size) == 0 ? SizeOfXLogLongPHD : SizeOfXLogShortPHD);
}

/*
 * As wal_segment_open().
 */
static void
open_segment(XLogReaderState *state, XLogSegNo segno, TimeLineID *tli)
{
	char		path[MAXPGPATH];

	XLogFilePath(path, *tli, segno, state->segcxt.ws_segsize);
	for (int i = 0; i < ART_REOPEN_TRIES && access(path, F_OK) != 0; i++)
		pg_usleep(ART_REOPEN_US);	/* no art_doze: interrupts are held */
	wal_segment_open(state, segno, tli);
}

XLogRecPtr
art_wal_begin(void)
{
	XLogRecPtr	at = GetXLogReplayRecPtr(NULL);
	MemoryContext old;

	reader_cxt = AllocSetContextCreate(TopMemoryContext, "artidx WAL reader",
									   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(reader_cxt);
	reader = XLogReaderAllocate(wal_segment_size, NULL,
								XL_ROUTINE(.page_read = &read_local_xlog_page_no_wait,
										   .segment_open = &open_segment,
										   .segment_close = &wal_segment_close),
								&private_data);
	if (reader == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed while allocating a WAL reading processor.")));
	XLogBeginRead(reader, record_after(at));
	MemoryContextSwitchTo(old);
	return at;
}

/*
 * The next record, which was replayed.  After a failure it is read again, from the file
 * that has the segment's name by then.
 */
static void
read_record(void)
{
	char	   *error = NULL;

	for (int i = 0;; i++)
	{
		XLogRecPtr	at = reader->EndRecPtr;

		private_data.end_of_wal = false;
		if (XLogReadRecord(reader, &error) != NULL)
			return;
		if (i == ART_REOPEN_TRIES)
			break;
		if (i == 0)
			ereport(DEBUG1,
					(errmsg_internal("WAL at %X/%X is read again: %s", LSN_FORMAT_ARGS(at),
									 error ? error : "it ends")));
		pg_usleep(i == 0 ? 0 : ART_REOPEN_US);
		XLogBeginRead(reader, record_after(at));
	}
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not read WAL from %X/%X: %s",
					LSN_FORMAT_ARGS(reader->EndRecPtr),
					error ? error : "it ends before the last record that was replayed")));
}

XLogRecPtr
art_wal_read(XLogRecPtr until, bool *look)
{
	XLogRecPtr	begin = reader->EndRecPtr;
	MemoryContext old = MemoryContextSwitchTo(reader_cxt);

	HOLD_INTERRUPTS();
	while (reader->EndRecPtr < until && reader->EndRecPtr - begin < ART_BATCH_BYTES)
	{
		read_record();
		take_record(look);
	}
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(old);
	return reader->EndRecPtr;
}
