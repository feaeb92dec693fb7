/*
 * ax_estimate.c
 *	  The bytes that a bulk load would take, told from a sorted sample of its
 *	  keys; nothing is allocated and no area is needed.
 *
 * When the sample is the whole, the load of rt_bulk.c is repeated without
 * making anything.  There are the same groups, leaves and nodes, whose sizes
 * go through the same classes and spans, and the result is exact.
 *
 * When each key of the sample stands for several, ax_estimate_model.c tells what
 * lies between them.
 *
 * src/core/face/README.md: Estimates
 */
#include "ax_estimate.h"

/* Add keys i to j to a group that may become one leaf. */
static void
lump_add(const est *E, est_lump *l, uint64_t i, uint64_t j, uint32_t off)
{
	uint32_t	len = est_len(E, i);

	if (l->n == 0)
	{
		l->bytes = 0;
		l->same = true;
	}
	else if (l->same && l->bytes != (double) l->n * (len - off))
		l->same = false;
	for (; i < j; i++, l->n++)
	{
		l->bytes += est_len(E, i) - off;
		if (est_len(E, i) != len)
			l->same = false;
	}
}

/*
 * Count the node of some keys and all below it, as a load makes them:
 * rt_build_node without building.
 */
static void
exact_node(est *E, uint64_t first, uint64_t count, uint32_t off, int depth)
{
	est_range	r = {first, count};
	const uint64_t end = first + count;
	uint32_t	dd = est_common(E, &r, off);
	int			nc = 0;

	if (depth > EST_DEPTH)
	{
		est_deep(E, (double) count, est_len(E, first) - off, 1);
		return;
	}
	for (uint64_t i = first; i < end; nc++)
	{
		uint64_t	j = est_group_end(E, i, end, dd);
		est_lump	l = {.n = 0};

		if (j - i == 1 && est_len(E, i) - (dd + 1) == AX_TID_BYTES)
		{
			i = j;				/* embedded */
			continue;
		}
		if (j - i <= RT_LEAF_MAX)
		{
			lump_add(E, &l, i, j, dd);
			if (!est_fits(&l))
				l.n = 0;
			while (l.n && j < end && l.n < E->fill)
			{
				est_lump	more = l;
				uint64_t	k;

				if (est_len(E, j) - (dd + 1) == AX_TID_BYTES)
					break;
				k = est_group_end(E, j, end, dd);
				if (k - i > (uint64_t) E->fill)
					break;
				lump_add(E, &more, j, k, dd);
				if (!est_fits(&more))
					break;
				l = more;
				j = k;
			}
		}
		if (l.n)
			est_leaf(E, &l, 0, 1);
		else
			exact_node(E, i, j - i, dd + 1, depth + 1);
		i = j;
	}
	est_inner(E, nc, dd - off, 1);
}

uint64_t
ax_estimate(const ax_keys *sample, double total, int fill, double run, void *work)
{
	const uint64_t n = sample->n;
	uint32_t	pages = (uint32_t) ((sizeof(ax_store) + AX_PAGE - 1) >> AX_PAGE_SHIFT);
	double		store = (double) pages * AX_PAGE;
	est		   *E = &((est_work *) work)->e;

	if (n == 0)
		return (uint64_t) store;
	*E = (est) {.keys = *sample,.fill = rt_leaf_fill(fill),.work = work};
	E->rng = UINT64_C(0x9E3779B97F4A7C15);
	E->bump = (uint32_t) sizeof(ax_store);
	E->bump_end = pages * AX_PAGE;
	E->scale = total / (double) n;
	E->runs = 1;
	if (run > 0 && run < total)
	{
		uint64_t	blocks = 0;

		for (uint64_t i = 0; i < n; i++)
		{
			uint64_t	b = (ax_tid_at(sample->p[i] + est_len(E, i)) >> 16) + 1;

			blocks = b > blocks ? b : blocks;
		}
		E->runs = total / run > EST_RUNS ? EST_RUNS : (int) ceil(total / run);
		E->run_blocks = (double) blocks * (total / run > EST_RUNS ? 1.0 / EST_RUNS : run / total);
	}
	if (E->scale < 1.001 && E->runs == 1)
	{
		est_lump	l = {.n = 0};

		if (n <= RT_LEAF_MAX)
			lump_add(E, &l, 0, n, 0);
		if (l.n && est_fits(&l))
			est_leaf(E, &l, 0, 1);
		else
			exact_node(E, 0, n, 0, 0);
	}
	else
	{
		est_range	whole = {0, n};

		est_light(E, n);
		est_model(E, &whole, total);
	}
	return (uint64_t) est_bytes(E, store);
}
