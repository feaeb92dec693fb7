/*
 * record_rows.c
 *	  What a WAL record of the heap says of line pointers.
 *
 * The record was replayed, and its checksum was right.  All the same no number in it is
 * believed before it is within the record, and within a page.  Nothing here needs a server
 * around it.
 *
 * src/follow/README.md: On a standby
 */
#include "postgres.h"

#include "access/heapam_xlog.h"
#include "access/rmgr.h"

#include "art_compat.h"
#include "follow/follow.h"

ArtRecordKind
art_record_kind(const DecodedXLogRecord *rec)
{
	uint8		op = rec->header.xl_info & XLOG_HEAP_OPMASK;

	if (rec->header.xl_rmid == RM_HEAP_ID)
		return op == XLOG_HEAP_INSERT ? ART_RECORD_INSERT :
			op == XLOG_HEAP_UPDATE ? ART_RECORD_UPDATE : ART_RECORD_OTHER;
	if (rec->header.xl_rmid == RM_HEAP2_ID)
		return op == XLOG_HEAP2_MULTI_INSERT ? ART_RECORD_INSERTS :
			ART_IS_PRUNE(op) ? ART_RECORD_PRUNE : ART_RECORD_OTHER;
	return ART_RECORD_OTHER;
}

/* Tell of one line pointer.  False: no page has it. */
static bool
tell_one(void (*tell) (void *arg, ArtRowNews news, OffsetNumber off), void *arg,
		 ArtRowNews news, uint32 off)
{
	if (off < FirstOffsetNumber || off > MaxHeapTuplesPerPage)
		return false;
	tell(arg, news, (OffsetNumber) off);
	return true;
}

bool
art_record_rows(const DecodedXLogRecord *rec, ArtRecordKind kind,
				void (*tell) (void *arg, ArtRowNews news, OffsetNumber off), void *arg)
{
	const char *data = rec->main_data;
	uint32		len = rec->main_data_len;
	ArtPruned	p;

	switch (kind)
	{
		case ART_RECORD_INSERT:
			return len >= SizeOfHeapInsert &&
				tell_one(tell, arg, ART_ROW_CAME, ((const xl_heap_insert *) data)->offnum);
		case ART_RECORD_UPDATE:
			return len >= SizeOfHeapUpdate &&
				tell_one(tell, arg, ART_ROW_CAME, ((const xl_heap_update *) data)->new_offnum);
		case ART_RECORD_INSERTS:
			{
				const xl_heap_multi_insert *m = (const xl_heap_multi_insert *) data;
				bool		init = (rec->header.xl_info & XLOG_HEAP_INIT_PAGE) != 0;

				if (len < SizeOfHeapMultiInsert ||
					(!init && (len - SizeOfHeapMultiInsert) / sizeof(OffsetNumber) < m->ntuples))
					return false;
				for (uint32 i = 0; i < m->ntuples; i++)
				{
					if (!tell_one(tell, arg, ART_ROW_CAME,
								  init ? FirstOffsetNumber + i : m->offsets[i]))
						return false;
				}
				return true;
			}
		case ART_RECORD_PRUNE:
			if (!rec->blocks[0].in_use || !rec->blocks[0].has_data || !art_pruned(rec, &p))
				return false;
			for (int i = 0; i < p.ndead; i++)
			{
				if (!tell_one(tell, arg, ART_ROW_DEAD, p.dead[i]))
					return false;
			}
			for (int i = 0; i < p.nunused; i++)
			{
				if (!tell_one(tell, arg, ART_ROW_FREED, p.unused[i]))
					return false;
			}
			return true;
		case ART_RECORD_OTHER:
			break;
	}
	return true;
}
