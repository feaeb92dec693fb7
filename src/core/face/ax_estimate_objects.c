/*
 * ax_estimate_objects.c
 *	  Objects that are counted and not made, for the estimate: sizes of leaves and
 *	  nodes, and the bytes of the spans that they would lie in.
 *
 * src/core/face/README.md: Estimates
 */
#include "ax_estimate.h"

/* Count an object of a size; the first ones go to the store's page. */
static void
est_object(est *E, uint32_t size, double weight)
{
	int			cls = ax_class_of(size);

	if (cls == AX_BIG)
		E->big += weight * (ax_alloc_size(size) + sizeof(ax_span));
	else if (weight == 1 && E->objs[cls] == 0 &&
			 E->bump_end - E->bump >= ax_class_size(cls))
		E->bump += ax_class_size(cls);
	else
		E->objs[cls] += weight;
}

/* Bytes of the spans that so many objects of a class get: pages as in span_new. */
static double
est_spans(int cls, double left)
{
	double		bytes = 0;
	const uint32_t few = ax_span_objs(ax_span_pages(cls, 1), cls);

	for (uint32_t had = 0; left > 0;)
	{
		uint32_t	pages = ax_span_pages(cls, had == 0 ? 0 : had / few + 1);
		uint32_t	objs = ax_span_objs(pages, cls);
		double		spans = pages < ax_span_pages(cls, UINT32_MAX) ? 1 : ceil(left / objs);

		bytes += spans * ((double) pages * AX_PAGE);
		left -= spans * objs;
		had += objs;
	}
	return bytes;
}

/*
 * Bytes of spans of leaves of which some stay, each anywhere.  A span goes back
 * when the last of them is gone, so that few hold many.
 */
static double
est_held(int cls, double were, double stay)
{
	uint32_t	objs = ax_span_objs(ax_span_pages(cls, UINT32_MAX), cls);

	if (stay >= were)
		return est_spans(cls, were);
	return est_spans(cls, were) * (1 - pow(1 - stay / were, objs));
}

/*
 * And of all classes.  Objects that a later run replaces leave holes.  New
 * leaves take them and hold spans too, but not each anywhere: a third of the
 * difference is what measurements show.
 */
double
est_bytes(const est *E, double store)
{
	double		bytes = store + E->big;

	for (int cls = 0; cls < AX_NCLASSES; cls++)
	{
		double		most = est_spans(cls, E->objs[cls]);

		for (int k = 0; k < E->runs - 1; k++)
		{
			double		were = E->were[k][cls];
			double		stay = E->stay[k][cls];
			double		held;

			if (were <= 0)
				continue;
			for (int j = k + 1; j < E->runs - 1; j++)
				if (E->were[j][cls] > 0)
					stay *= E->stay[j][cls] / E->were[j][cls];
			held = est_held(cls, were, stay);
			if (E->objs[cls] > stay)
				held += (est_held(cls, were, E->objs[cls]) - held) / 3;
			most = held > most ? held : most;
		}
		bytes += most;
	}
	return bytes;
}

void
est_inner(est *E, int children, uint32_t plen, double weight)
{
	unsigned	kind = children <= 4 ? RT_N4 : children <= 16 ? RT_N16 :
		children <= 48 ? RT_N48 : RT_N256;

	est_object(E, rt_node_size(kind, plen), weight);
}

static bool
lump_fixed(const est_lump *l)
{
	return l->same && l->bytes <= 255.0 * l->n;
}

bool
est_fits(const est_lump *l)
{
	if (l->n == 1)
		return true;
	if (l->n > RT_LEAF_MAX)
		return false;
	if (lump_fixed(l))
		return rt_fix_size(l->n, (int) (l->bytes / l->n)) <= RT_FIX_BYTES;
	return rt_var_slots_off(l->n) + 4.0 * l->n + l->bytes <= RT_VAR_BYTES;
}

uint32_t
est_leaf_size(const est_lump *l, int cap)
{
	double		each = l->bytes / l->n;
	uint32_t	size;

	if (cap < l->n)
		cap = l->n;
	if (lump_fixed(l))
	{
		while (cap > l->n && rt_fix_size(cap, (int) each) > RT_FIX_BYTES)
			cap--;
		size = rt_fix_size(cap, (int) each);
	}
	else if (l->n == 1 && rt_var_slots_off(4) + 16 + each > RT_VAR_BYTES / 4)
		size = 24 + (uint32_t) l->bytes;
	else
		while ((size = rt_var_slots_off(cap) + 4 * (uint32_t) cap +
				(uint32_t) (each * cap)) > RT_VAR_BYTES && cap > l->n)
			cap--;
	return size;
}

void
est_leaf(est *E, const est_lump *l, int cap, double weight)
{
	est_object(E, est_leaf_size(l, cap), weight);
}

uint64_t
est_group_end(const est *E, uint64_t i, uint64_t n, uint32_t off)
{
	uint8_t		c = E->keys.p[i][off];
	uint64_t	step = 1,
				lo = i,
				hi;

	while (lo + step < n && E->keys.p[lo + step][off] == c)
	{
		lo += step;
		step *= 2;
	}
	hi = lo + step < n ? lo + step : n;
	while (lo + 1 < hi)
	{
		uint64_t	mid = lo + (hi - lo) / 2;

		if (E->keys.p[mid][off] == c)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

uint32_t
est_common(const est *E, const est_range *r, uint32_t off)
{
	const uint8_t *a = E->keys.p[r->first],
			   *z = E->keys.p[r->first + r->n - 1];
	uint32_t	alen = est_len(E, r->first),
				zlen = est_len(E, r->first + r->n - 1);
	uint32_t	max = alen < zlen ? alen : zlen;

	while (off < max && a[off] == z[off])
		off++;
	return off;
}

void
est_deep(est *E, double n, double rest, double weight)
{
	est_lump	l = {.n = 1,.bytes = rest,.same = false};

	while (l.n < RT_LEAF_MAX / 2)
	{
		l.n++;
		l.bytes += rest;
		if (!est_fits(&l))
		{
			l.n--;
			l.bytes -= rest;
			break;
		}
	}
	est_leaf(E, &l, 0, weight * n / l.n);
}
