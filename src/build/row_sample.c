/*
 * row_sample.c
 *	  The rows of a sample of a table's blocks.
 *
 * src/views/README.md: Estimates
 * src/trial/README.md: The sample
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "utils/sampling.h"
#include "utils/snapmgr.h"

#include "build/build.h"

BlockNumber
art_sample_blocks(Relation rel, BlockNumber nblocks, BlockNumber most, uint32 seed,
				  void (*row) (TupleTableSlot *slot, void *arg), void *arg)
{
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	Snapshot	snapshot = RegisterSnapshot(GetActiveSnapshot());
	TableScanDesc scan = table_beginscan_strat(rel, snapshot, 0, NULL, true, false);
	bool		whole = nblocks <= most;
	BlockNumber read = 0;
	uint64		seen = 0;
	BlockSamplerData bs;

	if (!whole)
		(void) BlockSampler_Init(&bs, nblocks, most, seed);
	while (whole ? read == 0 : BlockSampler_HasMore(&bs))
	{
		if (!whole)
		{
			if (read > 0)
				table_rescan(scan, NULL);
			heap_setscanlimits(scan, BlockSampler_Next(&bs), 1);
		}
		read++;
		while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
		{
			if (++seen % 1024 == 0)
				CHECK_FOR_INTERRUPTS();
			row(slot, arg);
		}
		CHECK_FOR_INTERRUPTS();
	}

	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(slot);
	return whole ? nblocks : read;
}
