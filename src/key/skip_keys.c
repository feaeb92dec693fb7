/*
 * skip_keys.c
 *	  Where an entry that does not match says that the next ones can.
 *
 * A scan plan has one range, and the columns behind its first gap are only
 * tested on the entries.  An entry that fails there tells more than that it
 * fails.  With (a, b) and "b = 5", no entry of this a matches before (a, 5) if
 * b is less; and none any more if it is greater.  Then the next one can match
 * behind all entries of this a, where the next value of a begins.  Which one
 * that is, only the structure knows.
 *
 * So the values of the columns that the query leaves open are never listed,
 * as those of an array are.  They are read off the entries.  A position made
 * of an entry is a value, whatever comes to the structure since.
 *
 * All is done on encoded bytes, or by the comparison function, as in
 * scan_keys.c: NULL is a value of a skipped column, and DESC is no case.
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include "core/ax.h"
#include "key/key.h"
#include "key/scan_plan.h"

/* Where a column's value is, seen in the scan's direction. */
typedef enum Place
{
	PLACE_BEFORE,				/* before all that match: they are still to come */
	PLACE_WITHIN,
	PLACE_BEHIND
} Place;

/*
 * Is the column's value, as a position before or after itself, at or beyond the end of the
 * column's range that lies that way?
 */
static bool
past_end(const ArtScanPlan *plan, int col, const uint8 *p, uint32 len, bool after, bool low)
{
	const ArtColRange *r = &plan->ranges[col];
	const uint8 *s = plan->scratch.data;
	const ax_bound at = {p, len, after};

	if (low)
		return r->lo_set &&
			art_pos_cmp(plan->kd, col, &at, &(ax_bound) {s + r->lo_off, r->lo_len, r->lo_after}) <= 0;
	return r->hi_set &&
		art_pos_cmp(plan->kd, col, &at, &(ax_bound) {s + r->hi_off, r->hi_len, r->hi_after}) >= 0;
}

/* The place of a value of a column that only filters. */
static Place
place_of(const ArtScanPlan *plan, int col, const uint8 *p, uint32 len, bool backward)
{
	ArtElement	elem;

	if (art_array_has(plan, col))
		return !art_array_beside(plan, col, p, len, backward, false, &elem) ?
			PLACE_BEHIND : elem.same ? PLACE_WITHIN : PLACE_BEFORE;
	if (past_end(plan, col, p, len, !backward, !backward))
		return PLACE_BEFORE;
	return past_end(plan, col, p, len, backward, backward) ? PLACE_BEHIND : PLACE_WITHIN;
}

/*
 * Append where the values of a column begin that match, that way: that is the element of
 * its list, or the end of its range.  As long as that is a single value, the same of the
 * next column.
 */
static void
append_near(const ArtScanPlan *plan, int col, const ArtElement *elem,
			bool backward, ArtBuf *to, bool *after)
{
	ArtElement	first;

	*after = backward;
	for (; col < plan->kd->natts; col++, elem = NULL)
	{
		const ArtColRange *r = &plan->ranges[col];

		if (art_array_has(plan, col))
		{
			if (elem == NULL && art_array_beside(plan, col, NULL, 0, backward, false, &first))
				elem = &first;
			if (elem != NULL)
				art_plan_append(to, elem->bytes, elem->len);
			continue;
		}
		if (backward ? !r->hi_set : !r->lo_set)
			return;
		if (backward)
			art_plan_append(to, plan->scratch.data + r->hi_off, r->hi_len);
		else
			art_plan_append(to, plan->scratch.data + r->lo_off, r->lo_len);
		*after = backward ? r->hi_after : r->lo_after;
		if (!art_range_is_equal(plan, r))
			return;
	}
}

/*
 * Nothing matches any more as long as the columns before "col" stay as they are: on to the
 * next value of the last of them that can have another one.
 */
static ArtSkip
next_value(const ArtScanPlan *plan, const uint8 *const *at, int col, bool backward,
		   ArtBuf *to, bool *after)
{
	while (--col > plan->nprefix)
	{
		uint32		len = (uint32) (at[col + 1] - at[col]);
		ArtElement	elem;

		if (!art_array_has(plan, col))
		{
			if (past_end(plan, col, at[col], len, !backward, backward))
				continue;
			break;
		}
		if (art_array_beside(plan, col, at[col], len, backward, true, &elem))
		{
			art_plan_append(to, at[0], (uint32) (at[col] - at[0]));
			append_near(plan, col, &elem, backward, to, after);
			return ART_SKIP_TO;
		}
	}
	art_plan_append(to, at[0], (uint32) (at[col + 1] - at[0]));
	*after = !backward;
	return ART_SKIP_BEHIND;
}

ArtSkip
art_skip_target(const ArtScanPlan *plan, const uint8 *key, uint32 len,
				bool backward, ArtBuf *to, bool *after)
{
	const uint8 *at[INDEX_MAX_KEYS + 1];
	int			last = plan->range_col[plan->nranges - 1];
	ArtSkip		skip = ART_SKIP_NONE;

	to->len = 0;
	at[0] = key;
	for (int col = 0; col <= last && skip == ART_SKIP_NONE; col++)
	{
		ArtElement	elem;
		bool		listed = false;
		uint32		clen;

		at[col + 1] = art_skip_col_within(&plan->kd->cols[col], at[col], key + len);
		if (at[col + 1] == NULL)
			break;				/* the key was cut off */
		if (col <= plan->nprefix)
			continue;
		clen = (uint32) (at[col + 1] - at[col]);
		switch (place_of(plan, col, at[col], clen, backward))
		{
			case PLACE_WITHIN:
				break;
			case PLACE_BEHIND:
				skip = next_value(plan, at, col, backward, to, after);
				break;
			case PLACE_BEFORE:
				if (art_array_has(plan, col))
					listed = art_array_beside(plan, col, at[col], clen, backward, false, &elem);
				art_plan_append(to, key, (uint32) (at[col] - key));
				append_near(plan, col, listed ? &elem : NULL, backward, to, after);
				skip = ART_SKIP_TO;
				break;
		}
	}
	/* no entry is longer: the same position (scan_keys.c) */
	if (!plan->kd->compared)
		to->len = Min(to->len, AX_KEY_MAX);
	return skip;
}
