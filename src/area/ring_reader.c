/*
 * ring_reader.c
 *	  Reading what a process wrote down that is gone (insert_ring.c).
 *
 * The process may have written anything there.  So no length is believed before it is within
 * the record and the ring.  Nothing here needs a server around it.
 *
 * src/survive/README.md: WAL that is lost
 */
#include "postgres.h"

#include "area/crash_memory.h"

/* Call fn for each key of a record, as art_ring_each() does. */
static bool
each_key(const ArtRingRecord *rec, void (*fn) (const ArtRingRecord *rec, const uint8 *key,
											   uint32 len, void *arg), void *arg)
{
	const uint8 *at = rec->keys;
	const uint8 *end = (const uint8 *) rec + rec->size;
	uint16		len = rec->len;

	for (uint32 i = 0; i < rec->n; i++)
	{
		if (i > 0)
		{
			if (end - at < (ptrdiff_t) sizeof(len))
				return false;
			memcpy(&len, at, sizeof(len));
			at += sizeof(len);
		}
		if (end - at < len || len <= AX_TID_BYTES)
			return false;
		fn(rec, at, len, arg);
		at += len;
	}
	return rec->size == MAXALIGN(at - (const uint8 *) rec);
}

bool
art_ring_each(const ArtRing *r, void (*fn) (const ArtRingRecord *rec, const uint8 *key,
											uint32 len, void *arg), void *arg)
{
	uint64		at = r->tail;

	if (at > r->head || r->head - at > ART_RING_DATA || at % MAXIMUM_ALIGNOF != 0)
		return false;
	while (at != r->head)
	{
		const ArtRingRecord *rec = art_ring_record(r, at);
		uint32		to_end = ART_RING_DATA - (uint32) (at % ART_RING_DATA);

		if (rec->size == 0 || rec->size % MAXIMUM_ALIGNOF != 0 ||
			rec->size > to_end || rec->size > r->head - at)
			return false;
		if (rec->n == 0 ? rec->size != to_end : !each_key(rec, fn, arg))
			return false;
		at += rec->size;
	}
	return true;
}
