/*
 * art_scanmany.c
 *	  Many point look-ups as one batch: the ranges of "= ANY", each of which is a
 *	  single key.
 *
 * The entries of several ranges, one range behind the other in the scan's
 * direction, make a batch like any other; it remembers the key of each range, of
 * which range an entry is, and where the plan stood at the first range.  While it
 * is the current batch, the plan stands at its last range, so that what lies
 * behind the batch is found as ever; whoever goes the other way, or on from an
 * entry in the middle, sets the plan back first.
 *
 * The keys are looked up together (ax_lookup_many), which is what this is for.
 *
 * Not under SERIALIZABLE, where what is locked is what is reached.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "pgstat.h"

#include "art_scan.h"
#include "art_tree.h"

/* From the first range of a batch to the n-th behind it. */
static void
forth(ArtScan *so, uint32 n)
{
	art_scanplan_goto(&so->plan, so->cur.first_at);
	while (n-- > 0)
		(void) art_scanplan_next(&so->plan, so->cur.backward);
}

/* See art_scan.h. */
void
art_scan_goto_range(ArtScan *so, uint32 range)
{
	if (so->cur.nranges > 0)
		forth(so, range);
}

/* See art_scan.h. */
void
art_scan_keep_first(ArtScan *so, ArtBatch *b, const ArtBatch *from)
{
	b->nranges = from->nranges;
	if (b->nranges == 0)
		return;
	if (b->first_at == NULL)
		b->first_at = MemoryContextAlloc(so->cxt, INDEX_MAX_KEYS * sizeof(uint32));
	memcpy(b->first_at, from->first_at, INDEX_MAX_KEYS * sizeof(uint32));
}

/*
 * May the range that begins here be looked up together with those behind it?
 */
static inline bool
together(const ArtScan *so)
{
	return so->plan.many && so->priv == NULL && !so->claimed && !so->kd.compared &&
		!IsolationIsSerializable();
}

static inline void
reverse(uint64 *tids, uint32 n)
{
	for (uint32 i = 0, j = n - 1; i < j; i++, j--)
	{
		uint64		t = tids[i];

		tids[i] = tids[j];
		tids[j] = t;
	}
}

/* See art_scan.h. */
ax_status
art_scan_copy_many(IndexScanDesc scan, bool backward)
{
	ArtScan    *so = (ArtScan *) scan->opaque;
	ArtBatch   *b = &so->cur;
	const uint8 *keys[ART_BATCH_MAX];
	uint32		lens[ART_BATCH_MAX];
	uint32		counts[ART_BATCH_MAX];
	uint32		n = so->together;
	uint32		m = 0;
	uint32		done = 0;
	ax_status	s;

	if (so->par != NULL && !so->rest)
		n = Min(n, so->ahead + 1);	/* those that are ours */
	if (n < 2 || !together(so))
	{
		so->together = Min(so->together * 2, ART_BATCH_MAX);
		return AX_OK;
	}

	art_scan_buffers(so, ART_MANY_TIDS, false);
	if (b->first_at == NULL)
		b->first_at = MemoryContextAlloc(so->cxt, INDEX_MAX_KEYS * sizeof(uint32));
	if (b->range_of == NULL)
		b->range_of = MemoryContextAlloc(so->cxt, ART_MANY_TIDS * sizeof(uint16));
	if (b->key_off_cap < ART_BATCH_MAX + 1)
	{
		if (b->key_off != NULL)
			pfree(b->key_off);
		b->key_off_cap = ART_BATCH_MAX + 1;
		b->key_off = MemoryContextAlloc(so->cxt, b->key_off_cap * sizeof(uint32));
	}
	art_scan_room(so, &b->keys, 64);

	(void) art_scanplan_tell(&so->plan, b->first_at);
	b->keys.len = 0;
	do
	{
		uint32		len = so->plan.lo_len;

		b->key_off[m] = b->keys.len;
		lens[m++] = len;
		art_buf_reserve(&b->keys, len);
		memcpy(b->keys.data + b->keys.len, so->plan.lo.data, len);
		b->keys.len += len;
	} while (m < n && b->keys.len < ART_MANY_BYTES &&
			 art_scanplan_next(&so->plan, backward));
	b->key_off[m] = b->keys.len;
	for (uint32 i = 0; i < m; i++)
		keys[i] = b->keys.data + b->key_off[i];

	s = art_tree_lookup_many(so->cx, so->tree, so->gen, keys, lens, m, b->tids,
							 ART_MANY_TIDS, counts, &done);
	if (done < m)
	{
		/* the plan is to stand where we got to */
		forth(so, done > 0 ? done - 1 : 0);
		so->together = Max(done, 1);
		if (done == 0)
			return s;
	}
	else
		so->together = Min(so->together * 4, ART_BATCH_MAX);

	b->n = 0;
	for (uint32 r = 0; r < done; r++)
	{
		if (backward && counts[r] > 1)
			reverse(b->tids + b->n, counts[r]);
		for (uint32 i = 0; i < counts[r]; i++)
			b->range_of[b->n++] = (uint16) r;
	}
	b->nranges = done;
	b->have_keys = false;
	b->from_private = false;
	b->exhausted = true;
	if (so->par != NULL && !so->rest)
		so->ahead -= done - 1;

	/* the first one has been counted */
	for (uint32 r = 1; r < done; r++)
	{
		pgstat_count_index_scan(scan->indexRelation);
#if PG_VERSION_NUM >= 180000
		if (scan->instrument)
			scan->instrument->nsearches++;
#endif
	}
	return AX_OK;
}
