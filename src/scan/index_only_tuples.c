/*
 * index_only_tuples.c
 *	  The tuples of index-only scans.
 *
 * Where every column has a fixed width, all tuples of an index look alike.
 * Those of a batch are formed in one pass, when the first of them is wanted.
 * They lie in one buffer, with headers that were made with it.  A tuple is good
 * until the scan's next call, so the buffer is one batch's at a time.  The
 * number of the batch's copy says whose, for a mark may bring a batch back.
 *
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/tupmacs.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "scan/open_scan.h"

#define ART_ITUP_EASY		((Size) 500)	/* index_form_tuple leaves it alone */
#define ART_ITUP_MAX		((Size) 8000)

/*
 * Can tuples be filled in place?  When every column is of a fixed width (and
 * its bytes are at hand) the layout is always the same.  A single text column
 * is a header and the bytes of the key.
 */
static void
itup_prepare(IndexScanDesc scan)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	TupleDesc	desc = scan->xs_itupdesc;
	Size		hoff = MAXALIGN(sizeof(IndexTupleData));
	Size		off = hoff;

	so->itup_fast = -1;
	if (desc->natts != so->kd.natts)
		return;
	if (desc->natts == 1 && so->kd.cols[0].enc == ART_ENC_TEXT && !so->kd.cols[0].desc)
	{
		so->itups = MemoryContextAllocZero(art_scan_own(so), hoff + VARATT_SHORT_MAX + 1);
		so->itup_fast = 2;
		return;
	}
	if (!so->kd.fixed)
		return;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attlen <= 0 || (!att->attbyval && so->kd.cols[i].enc != ART_ENC_UUID))
			return;
		off = att_align_nominal(off, att->attalign);
		so->itup_off[i] = (uint16) off;
		off += att->attlen;
	}
	so->itup_size = (uint32) MAXALIGN(off);
	so->itup_fast = 1;
}

/*
 * Fill tuples for n keys without a NULL that lie one behind the other, "stride"
 * bytes apart, with their TIDs.
 */
static void
itup_fill(IndexScanDesc scan, const uint8 *keys, Size stride, const uint64 *tids,
		  uint32 n)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	Size		size = so->itup_size;
	char	   *to;

	if (so->itup_cap < n)
	{
		if (so->itups != NULL)
			pfree(so->itups);
		so->itups = NULL;
		so->itup_cap = 0;
		so->itups = MemoryContextAllocZero(art_scan_own(so), n * size);
		so->itup_cap = n;
		for (uint32 i = 0; i < n; i++)
			((IndexTuple) (so->itups + i * size))->t_info = (unsigned short) size;
	}

	to = so->itups;
	for (uint32 i = 0; i < n; i++, to += size)
		art_tid_unpack(tids[i], &((IndexTuple) to)->t_tid);
	for (int c = 0; c < so->kd.natts; c++)
	{
		const ArtKeyCol *col = &so->kd.cols[c];

		keys++;					/* its marker */
		to = so->itups + so->itup_off[c];
		if (!art_decode_run(col, keys, stride, n, to, size))
		{
			const uint8 *p = keys;

			for (uint32 i = 0; i < n; i++, p += stride, to += size)
				store_att_byval(to, art_decode_col(col, p, p + col->width),
								TupleDescAttr(scan->xs_itupdesc, c)->attlen);
		}
		keys += col->width;
	}
}

/*
 * The tuple of any entry, by core's own functions.  False: it would be too long, and the
 * scan wants no more than the ends of the index.
 */
static bool
form_any(IndexScanDesc scan, const uint8 *key, uint32 len)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	TupleDesc	desc = scan->xs_itupdesc;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext old;
	Size		size;
	bool		ends_only;

	if (so->itup_cxt == NULL)
		so->itup_cxt = AllocSetContextCreate(art_scan_own(so), "art index tuple",
											 ALLOCSET_SMALL_SIZES);
	MemoryContextReset(so->itup_cxt);
	old = MemoryContextSwitchTo(so->itup_cxt);
	art_decode(&so->kd, key, len, so->kd.nall, values, isnull);
	scan->xs_itup = NULL;
	scan->xs_hitup = NULL;
	size = heap_compute_data_size(desc, values, isnull);
	ends_only = scan->xs_snapshot->snapshot_type == SNAPSHOT_NON_VACUUMABLE;
	if (size <= ART_ITUP_EASY || (ends_only && size <= ART_ITUP_MAX))
	{
		scan->xs_itup = index_form_tuple(desc, values, isnull);
		scan->xs_itup->t_tid = scan->xs_heaptid;
	}
	else if (!ends_only)
	{
		scan->xs_hitup = heap_form_tuple(desc, values, isnull);
		scan->xs_hitup->t_self = scan->xs_heaptid;
	}
	MemoryContextSwitchTo(old);
	return scan->xs_itup != NULL || scan->xs_hitup != NULL;
}

/* In three ways, the fastest first. */
bool
art_scan_form_itup(IndexScanDesc scan, uint32 i)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	const uint8 *key;
	uint32		len;

	if (so->itup_fast == 0)
		itup_prepare(scan);

	if (so->itup_fast == 1 && !so->plan.point && art_scan_no_null(so))
	{
		itup_fill(scan, so->cur.keys.data + so->cur.key_off[0],
				  so->kd.fixed_len + AX_TID_BYTES, so->cur.tids, so->cur.n);
		so->itup_of = so->cur.serial;
		return art_scan_itup(scan, i);
	}

	if (so->plan.point)
		key = art_scan_point(so, i, &len);
	else
	{
		key = art_scan_key(so, i, &len);
		len -= AX_TID_BYTES;
	}

	if (so->itup_fast == 2 && len - 1 <= VARATT_SHORT_MAX && key[0] == ART_MARK_VALUE)
	{
		IndexTuple	itup = (IndexTuple) so->itups;
		char	   *d = so->itups + MAXALIGN(sizeof(IndexTupleData));
		uint32		n = len - 2;	/* marker, bytes, terminator */

		SET_VARSIZE_SHORT(d, n + VARHDRSZ_SHORT);
		memcpy(d + VARHDRSZ_SHORT, key + 1, n);
		itup->t_info = (unsigned short)
			(MAXALIGN(MAXALIGN(sizeof(IndexTupleData)) + n + VARHDRSZ_SHORT) |
			 INDEX_VAR_MASK);
		itup->t_tid = scan->xs_heaptid;
		scan->xs_itup = itup;
		scan->xs_hitup = NULL;
	}
	else if (so->itup_fast == 1 && len == so->kd.fixed_len)
	{
		so->itup_of = 0;
		itup_fill(scan, key, 0, &so->cur.tids[i], 1);
		scan->xs_itup = (IndexTuple) so->itups;
		scan->xs_hitup = NULL;
	}
	else
		return form_any(scan, key, len);
	return true;
}
