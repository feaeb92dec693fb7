/*
 * sample_keys.c
 *	  The keys that a trial looks for: those of rows that the table has.
 *
 * src/trial/README.md: The sample
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "build/build.h"
#include "eval/eval.h"
#include "trial/trial.h"

#define SAMPLE_KEYS		20000
#define SAMPLE_BLOCKS	1000
#define SAMPLE_BYTES	(16 * 1024 * 1024)

typedef struct Sampling
{
	ArtTrial   *t;
	ArtEval    *eval;
	pg_prng_state prng;
	uint64		seen;			/* rows that could be kept */
	int			lens[INDEX_MAX_KEYS];
	bool		byval[INDEX_MAX_KEYS];
	Size		bytes;
	MemoryContext cxt;			/* of the keys */
} Sampling;

/*
 * A value that stays when its row goes: nothing of it is in a TOAST table.
 */
static Datum
copy_value(Sampling *s, int i, Datum value)
{
	Datum		kept;

	if (!s->byval[i] && s->lens[i] == -1)
	{
		kept = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
		s->bytes += VARSIZE_ANY(DatumGetPointer(kept));
	}
	else
	{
		kept = datumCopy(value, s->byval[i], s->lens[i]);
		s->bytes += sizeof(Datum);
	}
	return kept;
}

/*
 * A row of the sample's blocks.  Each row has the same chance to be among those that are kept.
 */
static void
sample_row(TupleTableSlot *slot, void *arg)
{
	Sampling   *s = (Sampling *) arg;
	ArtTrialKeys *keys = &s->t->keys;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext old;
	uint64		at;

	art_eval_next(s->eval);
	if (!art_eval_has(s->eval, slot))
		return;
	old = MemoryContextSwitchTo(art_eval_memory(s->eval));
	art_eval_columns(s->eval, slot, values, isnull);
	MemoryContextSwitchTo(old);
	for (int i = 0; i < keys->ncols; i++)
	{
		if (isnull[i])
			return;
	}
	at = s->seen++;
	if (keys->n == SAMPLE_KEYS || s->bytes > SAMPLE_BYTES)
		at = pg_prng_uint64_range(&s->prng, 0, at);
	if (at < (uint64) keys->n || (keys->n < SAMPLE_KEYS && s->bytes <= SAMPLE_BYTES))
	{
		old = MemoryContextSwitchTo(s->cxt);
		at = Min(at, (uint64) keys->n);
		for (int i = 0; i < keys->ncols; i++)
			keys->values[at * keys->ncols + i] = copy_value(s, i, values[i]);
		keys->n += at == (uint64) keys->n;
		MemoryContextSwitchTo(old);
	}
}

/*
 * In an order that has nothing to do with that of the table.
 */
static void
shuffle(ArtTrialKeys *keys, pg_prng_state *prng)
{
	for (int i = keys->n - 1; i > 0; i--)
	{
		int			k = (int) pg_prng_uint64_range(prng, 0, i);

		for (int c = 0; c < keys->ncols; c++)
		{
			Datum		swap = keys->values[i * keys->ncols + c];

			keys->values[i * keys->ncols + c] = keys->values[k * keys->ncols + c];
			keys->values[k * keys->ncols + c] = swap;
		}
	}
}

/*
 * The types are those of the columns and expressions.  An index may keep another one (of name it
 * keeps cstring).
 */
static void
set_types(Sampling *s, Relation heap, Relation index)
{
	ArtTrialKeys *keys = &s->t->keys;

	keys->ncols = IndexRelationGetNumberOfKeyAttributes(index);
	for (int i = 0; i < keys->ncols; i++)
	{
		AttrNumber	attno = index->rd_index->indkey.values[i];
		Oid			type = attno != 0 ? TupleDescAttr(RelationGetDescr(heap), attno - 1)->atttypid :
			TupleDescAttr(RelationGetDescr(index), i)->atttypid;
		int16		len;

		keys->types[i] = type == CSTRINGOID ? NAMEOID : type;
		get_typlenbyval(keys->types[i], &len, &s->byval[i]);
		s->lens[i] = len;
	}
}

void
art_trial_sample(ArtTrial *t)
{
	Relation	heap;
	Relation	index;
	Sampling	s = {.t = t};
	ArtAsOwner	save;

	art_trial_try(t, &heap, &index);
	set_types(&s, heap, index);
	s.cxt = t->cxt;
	pg_prng_seed(&s.prng, 44);
	t->keys.values = MemoryContextAlloc(t->cxt, SAMPLE_KEYS * t->keys.ncols * sizeof(Datum));
	s.eval = art_eval_begin(index);
	art_as_owner_begin(heap, &save);
	(void) art_sample_blocks(heap, RelationGetNumberOfBlocks(heap), SAMPLE_BLOCKS,
							 (uint32) t->started, sample_row, &s);
	art_as_owner_end(&save);
	art_eval_end(s.eval);
	shuffle(&t->keys, &s.prng);
	art_trial_undo(t, heap, index);
}
