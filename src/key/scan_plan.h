/*
 * scan_plan.h
 *	  What scan_keys.c, array_keys.c and row_keys.c know of one another: how a
 *	  scan plan is made of scan keys.
 *
 * src/key/README.md: Keys
 */
#ifndef ART_KEY_SCAN_PLAN_H
#define ART_KEY_SCAN_PLAN_H

#include "key/key.h"

/* ---- scan_keys.c ---- */

/* <0, 0, >0: order of two positions within a column. */
static inline int
art_pos_cmp(const ArtKeyDesc *kd, int col, const ax_bound *a, const ax_bound *b)
{
	int			c;

	if (unlikely(kd->compared))
		return art_col_position_cmp(kd, col, a, b);
	c = memcmp(a->key, b->key, Min(a->len, b->len));
	if (c != 0)
		return c;
	if (a->len == b->len)
		return (int) a->after - (int) b->after;
	if (a->len < b->len)
		return a->after ? 1 : -1;
	return b->after ? -1 : 1;
}

/* Raise a column's lower end to a position in the scratch buffer, or cut the upper. */
extern void art_raise_lo(ArtScanPlan *plan, ArtColRange *r, uint32 off, uint32 len,
						 bool after);
extern void art_cut_hi(ArtScanPlan *plan, ArtColRange *r, uint32 off, uint32 len,
					   bool after);
extern bool art_range_is_equal(const ArtScanPlan *plan, const ArtColRange *r);
extern bool art_range_empty(const ArtScanPlan *plan, const ArtColRange *r);
extern void art_plan_append(ArtBuf *buf, const uint8 *src, uint32 n);
extern bool art_restrict_range(ArtScanPlan *plan, const ArtKeyCol *col, ScanKey key,
							   ArtColRange *r, bool *residual);
extern void art_add_residual_key(ArtScanPlan *plan, ScanKey key);

/*
 * The values of the column (its own type) that can be equal to an inexact
 * constant.  Returns how many; -1 when that is not known: then it is a range.
 */
#define ART_CANDIDATES	8
extern int	art_equal_candidates(const ArtKeyCol *col, Oid type, Datum arg, Datum *values);

/* lo and hi, for the elements that the arrays stand at; false: no entry is so long. */
extern bool art_plan_bounds(ArtScanPlan *plan);

/* ---- array_keys.c ---- */

/* A key whose argument is an array; false: nothing can match. */
extern bool art_array_key(ArtScanPlan *plan, const ArtKeyCol *col, ScanKey key);

/* All keys were seen: which arrays are left?  False: nothing can match. */
extern bool art_arrays_settle(ArtScanPlan *plan);

/* Before the first key of a set. */
extern void art_arrays_reset(ArtScanPlan *plan);
extern void art_arrays_free(ArtScanPlan *plan);

/* Is there an array of this column (0-based)? */
extern bool art_array_of(const ArtScanPlan *plan, int col);

static inline bool
art_array_has(const ArtScanPlan *plan, int col)
{
	return unlikely(plan->arrays != NULL) && art_array_of(plan, col);
}

/* The first "upto" columns' arrays are gone through, the others filter. */
extern bool art_arrays_begin(ArtScanPlan *plan, int upto);

/* Append the present element of the column's array, marker and body. */
extern void art_array_append(const ArtScanPlan *plan, int col, ArtBuf *buf);

/* An element of a column's array, marker and body, in the plan's memory. */
typedef struct ArtElement
{
	const uint8 *bytes;
	uint32		len;
	bool		same;			/* it is the value that it was looked for by */
} ArtElement;

/*
 * The element that is the column's value p, or follows it that way; with "beyond" it only
 * follows; p NULL: the first.  False: there is none.
 */
extern bool art_array_beside(const ArtScanPlan *plan, int col, const uint8 *p, uint32 len,
							 bool backward, bool beyond, ArtElement *elem);

/* Is a column's value, marker and body, an element of the column's array? */
extern bool art_array_member(const ArtScanPlan *plan, int col, const uint8 *p,
							 uint32 len);

/* Is it the present element of the column's array, by its bytes? */
extern bool art_array_stands(const ArtScanPlan *plan, int col, const uint8 *p,
							 uint32 len);

/* Does the value satisfy the key, of an array, with the present element of a leading column, or with its own? */
extern bool art_array_agrees(const ArtScanPlan *plan, ScanKey key, const uint8 *p,
							 uint32 len);

/* Of a residual key that has SK_SEARCHARRAY: does any element satisfy it? */
extern bool art_array_any(ScanKey key, Datum value);

/* ---- row_keys.c ---- */

/* A comparison of rows: restricts the first one's column.  False: nothing can match. */
extern bool art_row_key(ArtScanPlan *plan, Relation index, ScanKey members, int n);

/* All keys were seen: members whose column is one value are done with.  False: nothing can match. */
extern bool art_rowkeys_settle(ArtScanPlan *plan);

/* The leading equalities are known: which rows lengthen the ends of the range? */
extern void art_rowkeys_begin(ArtScanPlan *plan);

/* Append the further members to that end of the scan's range; returns its "after". */
extern bool art_rowkeys_lengthen(const ArtScanPlan *plan, ArtBuf *buf, bool low, bool after);

/* How many rows are to be tested on the entries, of which the range does not say all? */
extern int	art_rowkeys_left(ArtScanPlan *plan);

/* Does an entry pass them?  "at" has where its columns begin, and where the last ends. */
extern bool art_rowkeys_pass(const ArtScanPlan *plan, const uint8 *const *at);

/* Before the first key of a set. */
extern void art_rowkeys_reset(ArtScanPlan *plan);
extern void art_rowkeys_free(ArtScanPlan *plan);

#endif							/* ART_KEY_SCAN_PLAN_H */
