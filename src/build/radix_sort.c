/*
 * radix_sort.c
 *	  Sorting a run of encoded keys: radix sort by the most significant digit.
 *
 * Keys that are compared are sorted by compared_sort.c.
 *
 * src/build/README.md: Builds
 */
#include "postgres.h"

#include "miscadmin.h"

#include "build/sorted_run.h"
#include "build/build.h"

#define ART_RADIX_MIN		48	/* below: insertion sort */

/*
 * Order of two items whose prefixes are equal.
 */
static inline int
art_item_rest_cmp(const ArtRun *run, const ArtItem *a, const ArtItem *b)
{
	if (run->brief)
		return a->rest < b->rest ? -1 : a->rest > b->rest;
	else
	{
		uint32		skip = run->common + sizeof(uint64);
		uint32		la = art_long_len(a->rest);
		uint32		lb = art_long_len(b->rest);
		int			c;

		/* no key is a prefix of another: if one ends here, both do */
		if (la <= skip || lb <= skip)
			return 0;
		c = memcmp((uint8 *) (uintptr_t) a->rest + skip,
				   (uint8 *) (uintptr_t) b->rest + skip,
				   Min(la, lb) - skip);
		return c;
	}
}

static inline int
art_item_cmp(const ArtRun *run, const ArtItem *a, const ArtItem *b)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return art_item_rest_cmp(run, a, b);
}

static int
art_item_qsort_cmp(const void *a, const void *b, void *arg)
{
	return art_item_cmp((const ArtRun *) arg, (const ArtItem *) a,
						(const ArtItem *) b);
}

/*
 * The digit at a depth: 8 of the prefix, then (short layout) 6 of the TID.
 */
static inline uint8
art_item_digit(const ArtItem *it, int depth)
{
	if (depth < 8)
		return (uint8) (it->prefix >> (56 - 8 * depth));
	return (uint8) (it->rest >> (40 - 8 * (depth - 8)));
}

/* Sort by insertion, which is the quickest way for a few items. */
static void
insertion_sort(ArtRun *run, ArtItem *items, uint64 n)
{
	for (uint64 i = 1; i < n; i++)
	{
		ArtItem		it = items[i];
		uint64		j = i;

		while (j > 0 && art_item_cmp(run, &it, &items[j - 1]) < 0)
		{
			items[j] = items[j - 1];
			j--;
		}
		items[j] = it;
	}
}

/* Move each item to its digit's place, of the size that "count" says. */
static void
swap_to_places(ArtItem *items, const uint64 *count, int depth)
{
	uint64		next[256];
	uint64		end[256];
	uint8		open[256];		/* digits whose place is not full yet */
	int			nopen = 0;
	uint64		at = 0;

	for (int d = 0; d < 256; d++)
	{
		next[d] = at;
		at += count[d];
		end[d] = at;
		if (count[d] > 0)
			open[nopen++] = (uint8) d;
	}

	/*
	 * Swap each item that is not in its place yet to the next one there.  To
	 * follow one item through its places would take as many steps.  But each
	 * would wait for the memory of the one before.
	 */
	while (nopen > 0)
	{
		int			left = 0;

		for (int k = 0; k < nopen; k++)
		{
			uint8		d = open[k];

			for (uint64 i = next[d]; i < end[d]; i++)
			{
				ArtItem		it = items[i];
				uint64		to = next[art_item_digit(&it, depth)]++;

				items[i] = items[to];
				items[to] = it;
			}
			if (next[d] < end[d])
				open[left++] = d;
		}
		nopen = left;
	}
}

/*
 * In-place radix sort by the most significant digit ("American flag"), with
 * the swaps of Skarupke's ska_sort.
 */
static void
art_items_sort(ArtRun *run, ArtItem *items, uint64 n, int depth)
{
	int			last = run->brief ? 8 + AX_TID_BYTES : 8;
	uint64		count[256];

	for (;; depth++)
	{
		if (n < ART_RADIX_MIN)
		{
			insertion_sort(run, items, n);
			return;
		}
		if (depth >= last)
		{
			/* equal so far; short: equal altogether */
			if (!run->brief)
			{
				CHECK_FOR_INTERRUPTS();
				qsort_arg(items, n, sizeof(ArtItem), art_item_qsort_cmp, run);
			}
			return;
		}

		memset(count, 0, sizeof(count));
		for (uint64 i = 0; i < n; i++)
			count[art_item_digit(&items[i], depth)]++;
		if (count[art_item_digit(&items[0], depth)] < n)
			break;
		/* nothing to tell apart here */
	}
	swap_to_places(items, count, depth);

	if (n > 65536)
		CHECK_FOR_INTERRUPTS();
	for (int d = 0; d < 256; d++)
	{
		if (count[d] > 1)
			art_items_sort(run, items, count[d], depth + 1);
		items += count[d];
	}
}

static int
art_u64_cmp(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/*
 * Sort what is collected.
 */
void
art_run_sort(ArtRun *run)
{
	bool		sorted = true;

	if (run->nnulls > 1)
		qsort(run->nulls, run->nnulls, sizeof(uint64), art_u64_cmp);
	if (run->n < 2)
		return;
	if (run->kd->compared)
		return;					/* the pointers are, before they are loaded */
	if (!run->brief)
	{
		/* made when more bytes were thought to be common */
		for (uint64 i = 0; i < run->stale_heads; i++)
		{
			ArtItem    *it = &run->items[i];

			if (i % ART_INTERRUPT_EVERY == 0)
				CHECK_FOR_INTERRUPTS();
			it->prefix = art_key_head((uint8 *) (uintptr_t) it->rest,
									  art_long_len(it->rest), run->common);
		}
	}

	for (uint64 i = 1; i < run->n; i++)
	{
		if (art_item_cmp(run, &run->items[i - 1], &run->items[i]) > 0)
		{
			sorted = false;
			break;
		}
	}
	if (!sorted)
		art_items_sort(run, run->items, run->n, 0);
}
