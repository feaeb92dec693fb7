/*
 * join_rows.c
 *	  Rows that a batched join keeps: the columns that are read, as datums.
 *
 * Nothing is allocated for a row.  Values by reference lie behind one another in
 * one room.  A value that does not fit goes elsewhere, and the room is larger when it is
 * empty the next time.
 *
 * A join reads the kept rows where they lie, by a slot that points there
 * (art_rows_show, batched_join.h).
 *
 * src/plan/README.md: Batched joins
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "plan/batched_join.h"

#define ART_ROWS_ROOM	((Size) 8 * 1024)	/* at first */
#define ART_ROWS_MOST	((Size) 16 * 1024 * 1024)

void
art_rows_init(ArtRows *r, TupleDesc desc, const AttrNumber *from, uint32 max)
{
	Size		row = desc->natts * (sizeof(Datum) + sizeof(bool));

	memset(r, 0, sizeof(ArtRows));
	r->ncolumns = desc->natts;
	r->from = from;
	r->limit = Min((Size) work_mem * 1024 / 2, ART_ROWS_MOST);
	r->most = (uint32) Max(Min(r->limit / Max(row, 1), max), 1);
	r->cxt = CurrentMemoryContext;
	r->refs = palloc(Max(desc->natts, 1) * sizeof(int));
	r->lens = palloc(Max(desc->natts, 1) * sizeof(int16));
	for (int i = 0; i < desc->natts; i++)
	{
		r->lens[i] = TupleDescAttr(desc, i)->attlen;
		r->last_from = Max(r->last_from, from != NULL ? from[i] : i + 1);
		if (!TupleDescAttr(desc, i)->attbyval)
			r->refs[r->nrefs++] = i;
	}
}

void
art_rows_reset(ArtRows *r)
{
	if (r->values == NULL)
	{
		r->values = MemoryContextAlloc(r->cxt, ((Size) r->most + 1) * r->ncolumns * sizeof(Datum));
		r->isnull = MemoryContextAlloc(r->cxt, ((Size) r->most + 1) * r->ncolumns * sizeof(bool));
	}
	if (r->used > r->size || (r->room == NULL && r->nrefs > 0))
	{
		Size		size = Max(r->used, ART_ROWS_ROOM);

		if (r->room != NULL)
			pfree(r->room);
		r->size = Min(pg_nextpower2_size_t(size), Max(r->limit, ART_ROWS_ROOM));
		r->room = MemoryContextAlloc(r->cxt, r->size);
	}
	if (r->more != NULL)
		MemoryContextReset(r->more);
	r->nrows = 0;
	r->used = 0;
	r->full = false;
}

/* Room for a value, aligned as any may have to be. */
static inline char *
take_value_room(ArtRows *r, Size size)
{
	Size		at = r->used;

	r->used += MAXALIGN(size);
	if (likely(r->used <= r->size))
		return r->room + at;
	if (r->more == NULL)
		r->more = AllocSetContextCreate(r->cxt, "art batch, rows", ALLOCSET_DEFAULT_SIZES);
	return MemoryContextAlloc(r->more, size);
}

/* A copy of a value by reference; what is expanded becomes flat. */
static inline Datum
copy_value(ArtRows *r, Datum value, int16 len)
{
	char	   *from = DatumGetPointer(value);
	Size		size;
	char	   *to;

	if (len > 0)
		size = len;
	else if (len == -2)
		size = strlen(from) + 1;
	else if (unlikely(VARATT_IS_EXTERNAL_EXPANDED(from)))
	{
		ExpandedObjectHeader *eoh = DatumGetEOHP(value);

		size = EOH_get_flat_size(eoh);
		to = take_value_room(r, size);
		EOH_flatten_into(eoh, to, size);
		return PointerGetDatum(to);
	}
	else
		size = VARSIZE_ANY(from);
	to = take_value_room(r, size);
	memcpy(to, from, size);
	return PointerGetDatum(to);
}

bool
art_rows_keep(ArtRows *r, TupleTableSlot *slot, bool must)
{
	Datum	   *values = r->values + (Size) r->nrows * r->ncolumns;
	bool	   *isnull = r->isnull + (Size) r->nrows * r->ncolumns;

	if (r->full && !must)
		return false;
	art_rows_columns(r, slot, values, isnull);
	for (int i = 0; i < r->nrefs; i++)
	{
		int			c = r->refs[i];

		if (!isnull[c])
			values[c] = copy_value(r, values[c], r->lens[c]);
	}
	r->nrows++;
	r->full = r->nrows == r->most || r->used >= r->limit;
	return true;
}
