/*
 * wal_flush.c
 *	  Nothing is taken out of a structure on the strength of WAL that may be lost.
 *
 * A structure outlives a crash (crash_memory.h), and a commit without its WAL does
 * not.  An entry must not be gone when its row is there again.  So whoever
 * takes entries out, or leaves rows out of a build, has the WAL flushed that made the
 * rows dead.
 *
 * When the heap says that a row is dead to everybody, that commit is flushed, or the
 * page's LSN is no less than the commit's.  SetHintBits() sees to it for hint
 * bits, and a line pointer is marked dead by a change of the page that comes after
 * the commit.  So the page's LSN, read after the heap was asked, tells.  It may be that of
 * a later change: then the removal comes later, too.
 *
 * src/survive/README.md: WAL that is lost
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/xlog.h"
#include "storage/bufmgr.h"

#include "area/area.h"
#include "area/crash_memory.h"

bool
art_outlives(Relation index)
{
	return art_rings != NULL &&
		index->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT;
}

XLogRecPtr
art_flush_all(void)
{
	XLogRecPtr	pos;

	if (RecoveryInProgress())
		return InvalidXLogRecPtr;
	pos = art_insert_position();
	XLogFlush(pos);
	art_rely(pos);
	return pos;
}

bool
art_flushed(XLogRecPtr lsn)
{
	if (XLogNeedsFlush(lsn))
		return false;
	art_rely(lsn);
	return true;
}

/*
 * As a rule the page is the one that the last fetch left pinned.
 *
 * Locks: takes the buffer's content lock, shared, and gives it back.  Without it the two
 * halves of the LSN could be of two, as BufferGetLSNAtomic() permits.
 */
XLogRecPtr
art_row_lsn(Relation heap, IndexFetchTableData *fetch, ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	Buffer		buf = fetch ? ((IndexFetchHeapData *) fetch)->xs_cbuf : InvalidBuffer;
	bool		pinned = BufferIsValid(buf) && BufferGetBlockNumber(buf) == block;
	XLogRecPtr	lsn;

	/* a new file of this transaction at wal_level = minimal: its pages have no LSN */
	if (!RelationNeedsWAL(heap))
		return art_insert_position();
	if (!pinned)
		buf = ReadBuffer(heap, block);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	lsn = PageGetLSN(BufferGetPage(buf));
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
	if (!pinned)
		ReleaseBuffer(buf);
	return lsn;
}
