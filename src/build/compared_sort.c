/*
 * compared_sort.c
 *	  Sorting keys by comparison, in memory or on disk.
 *
 * Keys are collected up to a memory budget, sorted, and written to a temporary
 * file as a run, which is of level 0.  There are at most MAX_RUNS runs.  Before there
 * is one more, those of the lowest level are merged into one of the next level.  A
 * key is rewritten at most as often as its run's level says.  That is once up to 2080
 * times the budget, and twice up to 45760 times.
 *
 * src/area/README.md: Keys that are compared
 * src/build/README.md: Builds
 */
#include "postgres.h"

#include "lib/binaryheap.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"

#include "area/tree_calls.h"
#include "build/sorted_run.h"
#include "build/build.h"
#include "key/key.h"

#define MAX_RUNS		64
#define SORT_CHUNK		((Size) 256 * 1024)

typedef struct SortRun
{
	BufFile    *file;
	int			level;			/* no higher than that of the run before it */
	uint64		left;			/* keys to read */
	ArtBuf		key;			/* the one at the front */
} SortRun;

struct ArtSort
{
	const ArtKeyDesc *kd;
	bool		tids;			/* keys have their TIDs */
	Size		budget;
	MemoryContext cxt;			/* of this struct and the runs */
	MemoryContext data;			/* of what is collected */

	const uint8 **items;		/* each with its length before it */
	uint64		n;
	uint64		cap;
	uint8	   *chunk;
	Size		chunk_left;
	Size		bytes;

	int			nruns;
	SortRun		run[MAX_RUNS];
	binaryheap *heap;			/* of run numbers, while merging */
	int			front;			/* run that the last key came from; -1: none */
	uint64		next;			/* item, when there is no run */
};

static inline uint32
item_len(const uint8 *key)
{
	uint32		len;

	memcpy(&len, key - sizeof(len), sizeof(len));
	return len;
}

static inline int
order_keys(const ArtKeyDesc *kd, bool tids, const uint8 *a, uint32 alen,
		   const uint8 *b, uint32 blen)
{
	if (tids)
		return art_key_cmp(kd, a, alen, b, blen, false, true);
	return art_key_order(kd, a, alen, b, blen);
}

typedef struct SortArg
{
	const ArtKeyDesc *kd;
	bool		tids;
} SortArg;

static inline int
item_order(const uint8 *a, const uint8 *b, const SortArg *arg)
{
	return order_keys(arg->kd, arg->tids, a, item_len(a), b, item_len(b));
}

typedef const uint8 *SortKey;

#define ST_SORT sort_pointers
#define ST_ELEMENT_TYPE SortKey
#define ST_COMPARE(a, b, arg) item_order(*(a), *(b), arg)
#define ST_COMPARE_ARG_TYPE const SortArg
#define ST_SCOPE static
#define ST_DECLARE
#define ST_DEFINE
#define ST_CHECK_FOR_INTERRUPTS
#include "lib/sort_template.h"

/* ---- in memory, by the operator class's sort support ---- */

typedef struct SortFirst
{
	const ArtKeyDesc *kd;
	bool		use;			/* what follows */
	SortSupportData ssup;
} SortFirst;

/*
 * Compare by the first column, abbreviated, and only where that ties by
 * everything.
 */
static inline int
first_order(const ArtSortItem *a, const ArtSortItem *b, SortFirst *arg)
{
	if (arg->use)
	{
		int			c = arg->ssup.comparator(a->first, b->first, &arg->ssup);

		if (c != 0)
		{
			if (arg->ssup.ssup_reverse)
				INVERT_COMPARE_RESULT(c);
			return c;
		}
	}
	return order_keys(arg->kd, true, a->key, item_len(a->key), b->key, item_len(b->key));
}

#define ST_SORT sort_by_first
#define ST_ELEMENT_TYPE ArtSortItem
#define ST_COMPARE(a, b, arg) first_order(a, b, arg)
#define ST_COMPARE_ARG_TYPE SortFirst
#define ST_SCOPE static
#define ST_DECLARE
#define ST_DEFINE
#define ST_CHECK_FOR_INTERRUPTS
#include "lib/sort_template.h"

/*
 * Fill in the first column of n items, none of which is NULL there.  As
 * tuplesort does, abbreviate it if the type can be, as long as that pays.
 */
static void
fill_first(SortFirst *arg, ArtSortItem *items, uint64 n, bool abbreviate)
{
	const ArtKeyCol *col = &arg->kd->cols[0];
	SortSupport ssup = &arg->ssup;
	uint64		look = 10;

	memset(ssup, 0, sizeof(*ssup));
	ssup->ssup_cxt = CurrentMemoryContext;
	ssup->ssup_collation = col->collation;
	ssup->ssup_reverse = col->desc;
	ssup->ssup_attno = 1;
	ssup->abbreviate = abbreviate;
	art_opclass_sortsupport(col->sort, ssup);
	arg->use = ssup->comparator != NULL;
	for (uint64 i = 0; i < n && arg->use; i++)
	{
		const uint8 *key = items[i].key;
		const uint8 *end = art_skip_col(arg->kd, col, key, key + item_len(key));

		Datum		d = art_col_datum(col, key + 1, end);

		if (i % ART_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		items[i].first = d;
		if (ssup->abbrev_converter != NULL)
		{
			items[i].first = ssup->abbrev_converter(d, ssup);
			if (!col->byval && DatumGetPointer(d) != (const char *) key + 1)
				pfree(DatumGetPointer(d));
		}
		if (i == look)
		{
			look *= 2;
			if (ssup->abbrev_converter != NULL && ssup->abbrev_abort((int) Min(i, PG_INT32_MAX), ssup))
			{
				fill_first(arg, items, n, false);
				return;
			}
		}
	}
}

void
art_sort_items(const ArtKeyDesc *kd, ArtSortItem *items, uint64 n)
{
	SortFirst	arg = {.kd = kd};
	uint64		from = 0;
	uint64		to = n;

	if (kd->cols[0].enc == ART_ENC_DATUM && OidIsValid(kd->cols[0].sort))
	{
		MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "art sort support",
												  ALLOCSET_DEFAULT_SIZES);
		MemoryContext old = MemoryContextSwitchTo(cxt);
		uint64		at = 0;

		/* NULLs, of which sort support knows nothing, go to one end */
		for (uint64 i = 0; i < n; i++)
		{
			if (items[i].key[0] != ART_MARK_VALUE)
			{
				ArtSortItem it = items[i];

				items[i] = items[at];
				items[at++] = it;
			}
		}
		from = at;
		if (at > 0)
		{
			sort_by_first(items, at, &arg);
			if (!kd->cols[0].nulls_first && at < n)
			{
				/* the others before them: by three reversals */
				for (uint64 i = 0, j = at - 1; i < j; i++, j--)
				{
					ArtSortItem it = items[i];

					items[i] = items[j];
					items[j] = it;
				}
				for (uint64 i = 0, j = n - 1; i < j; i++, j--)
				{
					ArtSortItem it = items[i];

					items[i] = items[j];
					items[j] = it;
				}
				from = 0;
				to = n - at;
			}
		}
		fill_first(&arg, items + from, to - from, true);
		sort_by_first(items + from, to - from, &arg);
		MemoryContextSwitchTo(old);
		MemoryContextDelete(cxt);
	}
	else
		sort_by_first(items, n, &arg);
}

ArtSort *
art_sort_begin(const ArtKeyDesc *kd, bool tids, Size budget, MemoryContext cxt)
{
	MemoryContext own = AllocSetContextCreate(cxt, "art sort", ALLOCSET_SMALL_SIZES);
	ArtSort    *s = MemoryContextAllocZero(own, sizeof(ArtSort));

	s->kd = kd;
	s->tids = tids;
	s->budget = budget;
	s->cxt = own;
	s->data = AllocSetContextCreate(own, "art sort keys", ALLOCSET_DEFAULT_SIZES);
	s->front = -1;
	return s;
}

/* Forget what was collected. */
static void
drop_items(ArtSort *s)
{
	MemoryContextReset(s->data);
	s->items = NULL;
	s->n = s->cap = 0;
	s->chunk = NULL;
	s->chunk_left = s->bytes = 0;
}

/* ---- runs ---- */

static void
run_write(BufFile *f, const uint8 *key, uint32 len)
{
	BufFileWrite(f, &len, sizeof(len));
	BufFileWrite(f, unconstify(uint8 *, key), len);
}

/*
 * The next key of a run to its front.  False: there is none.
 */
static bool
run_next(SortRun *r)
{
	uint32		len;

	if (r->left == 0)
		return false;
	r->left--;
	if (BufFileRead(r->file, &len, sizeof(len)) == sizeof(len))
	{
		r->key.len = 0;
		art_buf_reserve(&r->key, len);
		r->key.len = len;
		if (BufFileRead(r->file, r->key.data, len) == len)
			return true;
	}
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not read from temporary file of a sort of index keys: %m")));
	return false;
}

static BufFile *
run_create(ArtSort *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->cxt);
	BufFile    *f = BufFileCreateTemp(false);

	MemoryContextSwitchTo(old);
	return f;
}

/* The smallest first: binaryheap's is a heap of the largest. */
static int
heap_order(Datum a, Datum b, void *arg)
{
	ArtSort    *s = (ArtSort *) arg;
	SortRun    *x = &s->run[DatumGetInt32(a)];
	SortRun    *y = &s->run[DatumGetInt32(b)];

	int			c = order_keys(s->kd, s->tids, x->key.data, x->key.len, y->key.data, y->key.len);

	INVERT_COMPARE_RESULT(c);	/* a class may say INT_MIN */
	return c;
}

/* Rewind the runs from this one on and put the first key of each into a heap. */
static void
merge_begin(ArtSort *s, int from)
{
	MemoryContext old = MemoryContextSwitchTo(s->cxt);

	s->heap = binaryheap_allocate(MAX_RUNS, heap_order, s);
	MemoryContextSwitchTo(old);
	for (int i = from; i < s->nruns; i++)
	{
		if (BufFileSeek(s->run[i].file, 0, 0, SEEK_SET) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not rewind temporary file of a sort of index keys")));
		if (run_next(&s->run[i]))
			binaryheap_add_unordered(s->heap, Int32GetDatum(i));
	}
	binaryheap_build(s->heap);
	s->front = -1;
}

/*
 * The next key in order.  It is good until the next call; false at the end.
 */
static bool
merge_next(ArtSort *s, const uint8 **key, uint32 *len)
{
	if (s->front >= 0)
	{
		if (run_next(&s->run[s->front]))
			binaryheap_replace_first(s->heap, Int32GetDatum(s->front));
		else
			(void) binaryheap_remove_first(s->heap);
	}
	if (binaryheap_empty(s->heap))
		return false;
	s->front = DatumGetInt32(binaryheap_first(s->heap));
	*key = s->run[s->front].key.data;
	*len = s->run[s->front].key.len;
	return true;
}

/* Close the runs from this one on and free the heap. */
static void
merge_end(ArtSort *s, int from)
{
	for (int i = from; i < s->nruns; i++)
	{
		BufFileClose(s->run[i].file);
		pfree(s->run[i].key.data);
	}
	s->nruns = from;
	binaryheap_free(s->heap);
	s->heap = NULL;
}

static void
add_sort_run(ArtSort *s, BufFile *f, uint64 n, int level)
{
	SortRun    *r = &s->run[s->nruns++];

	r->file = f;
	r->level = level;
	r->left = n;
	art_buf_init(&r->key, s->cxt, 256);
}

/*
 * Merge the last runs into one: those of the lowest level, and if that is one run, also
 * those of the level above it.
 */
static void
merge_last(ArtSort *s)
{
	int			level = s->run[s->nruns - 2].level;
	int			from = s->nruns - 2;
	BufFile    *f = run_create(s);
	const uint8 *key;
	uint32		len;
	uint64		n = 0;

	while (from > 0 && s->run[from - 1].level == level)
		from--;
	merge_begin(s, from);
	while (merge_next(s, &key, &len))
	{
		CHECK_FOR_INTERRUPTS();
		run_write(f, key, len);
		n++;
	}
	merge_end(s, from);
	add_sort_run(s, f, n, level + 1);
}

/* Make a run of the keys that were collected. */
static void
spill_run(ArtSort *s)
{
	SortArg		arg = {s->kd, s->tids};
	BufFile    *f;

	if (s->nruns == MAX_RUNS)
		merge_last(s);
	sort_pointers(s->items, s->n, &arg);
	f = run_create(s);
	for (uint64 i = 0; i < s->n; i++)
		run_write(f, s->items[i], item_len(s->items[i]));
	add_sort_run(s, f, s->n, 0);
	drop_items(s);
}

/* ---- the rest ---- */

void
art_sort_add(ArtSort *s, const uint8 *key, uint32 len)
{
	Size		need = MAXALIGN(sizeof(uint32) + len);

	if (s->chunk_left < need)
	{
		Size		size = Max(SORT_CHUNK, need);

		s->chunk = MemoryContextAllocHuge(s->data, size);
		s->chunk_left = size;
	}
	if (s->n == s->cap)
	{
		s->cap = s->cap == 0 ? 1024 : s->cap * 2;
		s->items = s->items == NULL ?
			MemoryContextAllocHuge(s->data, s->cap * sizeof(uint8 *)) :
			repalloc_huge(s->items, s->cap * sizeof(uint8 *));
	}
	memcpy(s->chunk, &len, sizeof(len));
	memcpy(s->chunk + sizeof(len), key, len);
	s->items[s->n++] = s->chunk + sizeof(len);
	s->chunk += need;
	s->chunk_left -= need;
	s->bytes += need + sizeof(uint8 *);
	if (s->bytes >= s->budget)
		spill_run(s);
}

void
art_sort_perform(ArtSort *s)
{
	SortArg		arg = {s->kd, s->tids};

	if (s->nruns > 0)
	{
		if (s->n > 0)
			spill_run(s);
		merge_begin(s, 0);
	}
	else
		sort_pointers(s->items, s->n, &arg);
	s->next = 0;
}

bool
art_sort_next(ArtSort *s, const uint8 **key, uint32 *len)
{
	if (s->heap != NULL)
		return merge_next(s, key, len);
	if (s->next == s->n)
		return false;
	*key = s->items[s->next++];
	*len = item_len(*key);
	return true;
}

void
art_sort_end(ArtSort *s)
{
	if (s->heap != NULL)
		merge_end(s, 0);
	else
	{
		for (int i = 0; i < s->nruns; i++)
			BufFileClose(s->run[i].file);
	}
	MemoryContextDelete(s->cxt);
}
