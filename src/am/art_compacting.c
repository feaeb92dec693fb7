/*
 * art_compacting.c
 *	  Compaction of an index's structure: passes of the core's, interruptible
 *	  between its calls.
 */
#include "postgres.h"

#include "commands/vacuum.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "art_am.h"

#define ART_COMPACT_PASSES	4	/* the first chooses what is moved, the second ends it */

/*
 * Merge what is sparse in the structure, and move objects out of spans that
 * hardly have any, until that gives nothing more.  An error, as of a cancelled
 * query, leaves the structure sound and its index as it was.  False: the
 * generation is gone.
 */
bool
art_compact_index(Relation index, ax_tree *tree, uint64 gen)
{
	ax_ctx	   *cx = art_ctx();
	void	   *work = palloc(AX_COMPACT_WORK);
	ax_status	s = AX_OK;

	for (int pass = 0; pass < ART_COMPACT_PASSES && s == AX_OK; pass++)
	{
		ax_compaction c = {.work = work};
		ax_tree_info ti;

		while (!c.done && (s == AX_OK || s == AX_BUSY))
		{
			ART_CORE_BEGIN();
			s = ax_compact(cx, tree, gen, &c);
			ART_CORE_END();
			if (s == AX_BUSY)
				art_busy();
			art_vacuum_delay_point();
		}
		/* what was moved leaves its spans when no reader can be there */
		ART_CORE_BEGIN();
		ax_flush(cx);
		ART_CORE_END();
		art_poll();
		ART_CORE_BEGIN();
		ax_flush(cx);
		if (s == AX_OK)
			s = ax_info(cx, tree, gen, &ti);
		ART_CORE_END();
		if (s == AX_OK && (c.moved == 0 || !ax_compact_due(ti.bytes, ti.live_bytes)))
			break;
	}
	pfree(work);
	return s == AX_OK;
}
