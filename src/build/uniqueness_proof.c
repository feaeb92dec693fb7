/*
 * uniqueness_proof.c
 *	  The proof of uniqueness of an ambuild that got no memory for a structure.
 *
 * CREATE INDEX, REINDEX, VACUUM FULL and ALTER TABLE must not fail because the
 * shared memory is full, and must not let a duplicate pass either.  So
 * PostgreSQL's own sort orders the encoded keys of the live rows, within
 * maintenance_work_mem and beyond it in temporary files.  Equal neighbours are
 * the duplicates that the build would have found.
 *
 * src/limits/README.md: Memory full
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "area/tree_calls.h"
#include "build/build.h"

struct ArtProof
{
	Relation	heap;
	Relation	index;
	const ArtKeyDesc *kd;
	bool		nulls_equal;
	ArtSort    *compared;		/* not NULL: in place of what follows */
	Tuplesortstate *sort;
	ArtBuf		buf;			/* a key as a bytea; compared: the last one */
};

/*
 * Begin; allocated in the current memory context, which must outlive it.
 */
ArtProof *
art_proof_begin(Relation heap, Relation index, const ArtKeyDesc *kd)
{
	ArtProof   *proof = palloc0(sizeof(ArtProof));
	TypeCacheEntry *type;

	proof->heap = heap;
	proof->index = index;
	proof->kd = kd;
	proof->nulls_equal = index->rd_index->indnullsnotdistinct;
	art_buf_init(&proof->buf, CurrentMemoryContext, 256);
	if (kd->compared)
	{
		proof->compared = art_sort_begin(kd, false, (Size) maintenance_work_mem * 1024,
										 CurrentMemoryContext);
		return proof;
	}
	type = lookup_type_cache(BYTEAOID, TYPECACHE_LT_OPR);
	proof->sort = tuplesort_begin_datum(BYTEAOID, type->lt_opr, InvalidOid,
										false, maintenance_work_mem, NULL,
										TUPLESORT_NONE);
	return proof;
}

/*
 * The key, without TID, of a live row.  One with a NULL in it is equal to none,
 * as a rule.
 */
void
art_proof_add(ArtProof *proof, const uint8 *key, uint32 keylen, bool hasnull)
{
	if (hasnull && !proof->nulls_equal)
		return;
	if (proof->compared != NULL)
	{
		art_sort_add(proof->compared, key, keylen);
		return;
	}
	proof->buf.len = 0;
	art_buf_reserve(&proof->buf, VARHDRSZ + keylen);
	SET_VARSIZE(proof->buf.data, VARHDRSZ + keylen);
	memcpy(VARDATA(proof->buf.data), key, keylen);
	tuplesort_putdatum(proof->sort, PointerGetDatum(proof->buf.data), false);
}

/* The same for keys that are compared. */
static void
art_proof_compare(ArtProof *proof)
{
	const uint8 *key;
	uint32		len;
	bool		any = false;

	art_sort_perform(proof->compared);
	while (art_sort_next(proof->compared, &key, &len))
	{
		CHECK_FOR_INTERRUPTS();
		if (any && art_key_order(proof->kd, proof->buf.data, proof->buf.len, key, len) == 0)
			art_build_duplicate(proof->heap, proof->index, proof->kd, key, len);
		proof->buf.len = 0;
		art_buf_reserve(&proof->buf, len);
		memcpy(proof->buf.data, key, len);
		proof->buf.len = len;
		any = true;
	}
	art_sort_end(proof->compared);
	pfree(proof->buf.data);
	pfree(proof);
}

/*
 * Sort, compare neighbours, free.  ERROR 23505 for the first two equal keys.
 */
void
art_proof_end(ArtProof *proof)
{
	bytea	   *last = NULL;
	Datum		datum;
	bool		isnull;

	if (proof->compared != NULL)
	{
		art_proof_compare(proof);
		return;
	}
	tuplesort_performsort(proof->sort);
	while (art_tuplesort_getdatum(proof->sort, &datum, &isnull))
	{
		bytea	   *key = (bytea *) DatumGetPointer(datum);

		CHECK_FOR_INTERRUPTS();
		if (last != NULL)
		{
			uint32		cols = art_cols_len(proof->kd, (uint8 *) VARDATA(key),
											VARSIZE(key) - VARHDRSZ);

			/* the columns are, payload or not, and are no other's beginning */
			if (VARSIZE(last) - VARHDRSZ >= cols &&
				memcmp(VARDATA(last), VARDATA(key), cols) == 0)
				art_build_duplicate(proof->heap, proof->index, proof->kd,
									(uint8 *) VARDATA(key),
									VARSIZE(key) - VARHDRSZ);
			pfree(last);
		}
		last = key;
	}
	if (last != NULL)
		pfree(last);
	tuplesort_end(proof->sort);
	pfree(proof->buf.data);
	pfree(proof);
}
