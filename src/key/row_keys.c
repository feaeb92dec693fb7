/*
 * row_keys.c
 *	  Comparisons of rows as scan keys: "(a, b) > (x, y)".
 *
 * Such a comparison is decided by its first member whose column differs from
 * its value.  A NULL there, on either side, decides that it is not true.  So a
 * NULL value ends the row: what is before must differ.  So does a value that
 * nothing in its column can equal.
 *
 * The first member, as >= or <=, restricts its column like any key.  If
 * the column turns out to be equal to one value, that member has nothing left
 * to say, and the next one is the first.  Where the first member's value is an
 * end of the scan's range, the next ones lengthen that end.  They do as long as
 * their columns are the next ones, and lie in the same direction.
 *
 * The scan tests on the entries what its range does not say: the members which
 * do not lengthen an end.  And a NULL may lie within it, behind
 * the values of the members before: there the entry's bytes are the end's.
 *
 * The columns' ranges and the rows narrow one another.
 * One thought with: scan_keys.c, array_keys.c
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/skey.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "art_compat.h"
#include "eval/eval.h"
#include "key/scan_plan.h"
#include "key/key.h"

typedef struct Member
{
	int			col;
	ScanKeyData key;
	bool		exact;			/* the position says it; else cmp does */
	bool		decides;		/* nothing equals the value */

	/* the position before what equals the value, in the plan's scratch buffer */
	bool		after;
	uint32		off;
	uint32		len;
	uint32		at;				/* where the end that it lengthens has it */
	FmgrInfo	cmp;			/* stays from one set of keys to the next */
} Member;

typedef struct Row
{
	bool		greater;		/* > or >= */
	bool		strict;			/* > or < */
	bool		done;			/* the scan's range says it all ... */
	bool		nulls;			/* ... but for NULLs in it */
	int			first;			/* members that have something left to say */
	int			end;
	int			upto;			/* those that lengthen an end of the range */
} Row;

struct ArtRowKeys
{
	int			n;
	int			cap;
	Row		   *rows;
	int			nmembers;
	int			members_cap;
	Member	   *members;
	int			low;			/* the row that lengthens the lower end, or -1 */
	int			high;			/* the upper */
};

/* ---- taking keys apart ---- */

/* One more row, which has no members yet. */
static Row *
new_row(ArtScanPlan *plan)
{
	ArtRowKeys    *rows = plan->rows;
	Row		   *row;

	if (rows == NULL)
	{
		rows = plan->rows = MemoryContextAllocZero(plan->cxt, sizeof(ArtRowKeys));
		rows->cap = 2;
		rows->rows = MemoryContextAlloc(plan->cxt, rows->cap * sizeof(Row));
		rows->members_cap = 4;
		rows->members = MemoryContextAllocZero(plan->cxt, rows->members_cap * sizeof(Member));
	}
	if (rows->n == rows->cap)
	{
		rows->cap *= 2;
		rows->rows = repalloc(rows->rows, rows->cap * sizeof(Row));
	}
	row = &rows->rows[rows->n++];
	row->done = row->nulls = false;
	row->first = row->end = row->upto = rows->nmembers;
	return row;
}

/* One more member; what was found for another at its place is still there. */
static Member *
new_member(ArtRowKeys *rows)
{
	if (rows->nmembers == rows->members_cap)
	{
		Size		was = rows->members_cap * sizeof(Member);

		rows->members = repalloc(rows->members, 2 * was);
		memset((char *) rows->members + was, 0, was);
		rows->members_cap *= 2;
	}
	return &rows->members[rows->nmembers++];
}

/* The comparison function of the column's type and the value's. */
static void
find_comparison(const ArtScanPlan *plan, Relation index, Member *m)
{
	Oid			family = index->rd_opfamily[m->col];
	Oid			left = index->rd_opcintype[m->col];
	Oid			right = OidIsValid(m->key.sk_subtype) ? m->key.sk_subtype : left;
	Oid			proc = get_opfamily_proc(family, left, right, BTORDER_PROC);

	if (!OidIsValid(proc))
		elog(ERROR, "missing support function %d(%u,%u) in operator family %u of index \"%s\"",
			 BTORDER_PROC, left, right, family, RelationGetRelationName(index));
	if (m->cmp.fn_oid != proc)
		fmgr_info_cxt(proc, &m->cmp, plan->cxt);
}

/* Find the position of a member's value. */
static void
find_position(ArtScanPlan *plan, Relation index, Member *m)
{
	const ArtKeyDesc *kd = plan->kd;
	const ArtKeyCol *kc = &kd->cols[m->col];
	ArtColRange *r = &plan->ranges[m->col];
	ArtColRange mine = *r;		/* what other keys leave */
	ScanKeyData k = m->key;
	bool		below_residual,
				above_residual;

	/* the end of what comes before the value in the index ... */
	k.sk_strategy = kc->desc ? BTGreaterStrategyNumber : BTLessStrategyNumber;
	r->lo_set = r->hi_set = false;
	(void) art_restrict_range(plan, kc, &k, r, &below_residual);
	m->off = r->hi_off;
	m->len = r->hi_len;
	m->after = r->hi_after;

	/* ... and the beginning of what comes behind it */
	k.sk_strategy = kc->desc ? BTLessStrategyNumber : BTGreaterStrategyNumber;
	r->lo_set = r->hi_set = false;
	(void) art_restrict_range(plan, kc, &k, r, &above_residual);

	m->exact = !below_residual && !above_residual &&
		!(kd->doubtful && kc->enc == ART_ENC_DATUM);
	m->decides = m->exact &&
		(r->lo_after == m->after || (m->len > ART_KEY_LIMIT && kc->enc != ART_ENC_DATUM));
	*r = mine;
	if (!m->exact)
		find_comparison(plan, index, m);
}

/*
 * Restrict the column of the row's first member by what follows for it.
 * False: nothing is left.
 */
static bool
restrict_first(ArtScanPlan *plan, Row *row)
{
	const Member *m = &plan->rows->members[row->first];
	ArtColRange *r = &plan->ranges[m->col];
	ScanKeyData k = m->key;
	bool		only = m->exact && row->first + 1 == row->end;
	bool		residual;

	if (only && row->strict)
		k.sk_strategy = row->greater ? BTGreaterStrategyNumber : BTLessStrategyNumber;
	else
		k.sk_strategy = row->greater ? BTGreaterEqualStrategyNumber : BTLessEqualStrategyNumber;
	if (!art_restrict_range(plan, &plan->kd->cols[m->col], &k, r, &residual))
		return false;
	row->done = only;
	return !art_range_empty(plan, r);
}

bool
art_row_key(ArtScanPlan *plan, Relation index, ScanKey members, int n)
{
	Row		   *row = new_row(plan);
	StrategyNumber strategy = members[0].sk_strategy;

	row->greater = strategy >= BTGreaterEqualStrategyNumber;
	row->strict = strategy == BTGreaterStrategyNumber || strategy == BTLessStrategyNumber;
	for (int i = 0; i < n; i++)
	{
		ScanKey		k = &members[i];
		Member	   *m;

		if (k->sk_attno < 1 || k->sk_attno > plan->kd->natts ||
			k->sk_strategy != strategy || strategy == BTEqualStrategyNumber)
			elog(ERROR, "member %d of a row for index \"%s\" names column %d of %d with strategy %d",
				 i + 1, RelationGetRelationName(index), k->sk_attno, plan->kd->natts,
				 k->sk_strategy);
		if (k->sk_flags & SK_ISNULL)
		{
			row->strict = true;
			break;
		}
		m = new_member(plan->rows);
		m->col = k->sk_attno - 1;
		m->key = *k;
		m->key.sk_flags = 0;
		find_position(plan, index, m);
		row->end = plan->rows->nmembers;
		if (m->decides)
		{
			row->strict = true;
			break;
		}
	}
	return row->first < row->end && restrict_first(plan, row);
}

void
art_rowkeys_reset(ArtScanPlan *plan)
{
	plan->rows->n = plan->rows->nmembers = 0;
}

void
art_rowkeys_free(ArtScanPlan *plan)
{
	if (plan->rows == NULL)
		return;
	pfree(plan->rows->rows);
	pfree(plan->rows->members);
	pfree(plan->rows);
	plan->rows = NULL;
}

/* ---- what the range says ---- */

/* A value of the column, marker and body, against the member's: in the type's order. */
static int
compare_member(const ArtScanPlan *plan, Member *m, const uint8 *p, uint32 len)
{
	const ArtKeyCol *kc = &plan->kd->cols[m->col];
	int			c;

	if (unlikely(!m->exact))
		return DatumGetInt32(art_opclass_call(&m->cmp, m->key.sk_collation,
											  kc->enc == ART_ENC_DATUM ?
											  art_col_datum(kc, p + 1, p + len) :
											  art_decode_col(kc, p + 1, p + len),
											  m->key.sk_argument));
	/* of what decides, the position lies on one side of the same bytes */
	c = art_col_position_cmp(plan->kd, m->col, &(ax_bound) {p, len, m->decides && !m->after},
							 &(ax_bound) {plan->scratch.data + m->off, m->len, m->after});
	return kc->desc ? (c < 0) - (c > 0) : c;
}

/*
 * The row's first member as long as its column is one value: then that decides,
 * or the next member is the first.  *moved: the next one's column was restricted.  False:
 * nothing is left.
 */
static bool
settle_row(ArtScanPlan *plan, Row *row, bool *moved)
{
	while (!row->done)
	{
		Member	   *m = &plan->rows->members[row->first];
		const ArtColRange *r = &plan->ranges[m->col];
		int			c;

		if (!m->exact || art_array_has(plan, m->col) || !art_range_is_equal(plan, r))
			return true;
		c = compare_member(plan, m, plan->scratch.data + r->lo_off, r->lo_len);
		if (c != 0)
		{
			row->done = true;
			return (c > 0) == row->greater;
		}
		/* not the last one: of that, if exact, the range says all (restrict_first) */
		row->first++;
		Assert(row->first < row->end);
		if (art_array_has(plan, plan->rows->members[row->first].col))
			return true;		/* the list was cut already */
		*moved = true;
		if (!restrict_first(plan, row))
			return false;
	}
	return true;
}

bool
art_rowkeys_settle(ArtScanPlan *plan)
{
	ArtRowKeys    *rows = plan->rows;
	bool		moved;

	rows->low = rows->high = -1;
	do
	{
		moved = false;
		for (int i = 0; i < rows->n; i++)
		{
			if (!settle_row(plan, &rows->rows[i], &moved))
				return false;
		}
	} while (moved);
	return true;
}

/* Does the member's row restrict the lower end of its column in the index? */
static inline bool
is_low(const ArtScanPlan *plan, const Row *row, const Member *m)
{
	return row->greater != plan->kd->cols[m->col].desc;
}

/*
 * Does the row lengthen that end of the range of the scan's first column that
 * is not equal to something?  Then up to which member, and whether it is done.
 */
static bool
lengthens(const ArtScanPlan *plan, Row *row, bool low)
{
	const ArtKeyDesc *kd = plan->kd;
	const Member *m = &plan->rows->members[row->first];
	const ArtColRange *r = &plan->ranges[m->col];
	const uint8 *s = plan->scratch.data;
	const ax_bound end = low ? (ax_bound) {s + r->lo_off, r->lo_len, r->lo_after} :
		(ax_bound) {s + r->hi_off, r->hi_len, !r->hi_after};
	bool		nulls = false;
	int			i;

	if (row->done || !m->exact || m->col != plan->nprefix || is_low(plan, row, m) != low ||
		art_col_position_cmp(kd, m->col, &(ax_bound) {s + m->off, m->len, false}, &end) != 0)
		return false;
	for (i = row->first + 1; i < row->end; i++)
	{
		const Member *next = &plan->rows->members[i];

		if (next->col != next[-1].col + 1 || !next->exact || is_low(plan, row, next) != low)
			break;
		nulls |= kd->cols[next->col].nulls_first != low;
	}
	row->upto = i;
	row->done = i == row->end && !(nulls && kd->compared);
	row->nulls = row->done && nulls;
	return true;
}

void
art_rowkeys_begin(ArtScanPlan *plan)
{
	ArtRowKeys    *rows = plan->rows;

	if (plan->kd->doubtful || plan->nprefix == plan->kd->natts)
		return;
	for (int i = 0; i < rows->n; i++)
	{
		if (rows->low < 0 && lengthens(plan, &rows->rows[i], true))
			rows->low = i;
		if (rows->high < 0 && lengthens(plan, &rows->rows[i], false))
			rows->high = i;
	}
}

bool
art_rowkeys_lengthen(const ArtScanPlan *plan, ArtBuf *buf, bool low, bool after)
{
	const ArtRowKeys *rows = plan->rows;
	const int	which = low ? rows->low : rows->high;
	const Row  *row;
	const Member *last;

	if (which < 0)
		return after;
	row = &rows->rows[which];
	for (int i = row->first + 1; i < row->upto; i++)
	{
		Member	   *m = &rows->members[i];

		m->at = buf->len;
		art_plan_append(buf, plan->scratch.data + m->off, m->len);
	}
	if (row->upto < row->end)
		return after;
	last = &rows->members[row->end - 1];
	return last->decides ? last->after : row->strict == low;
}

/* ---- what it does not say ---- */

int
art_rowkeys_left(ArtScanPlan *plan)
{
	const ArtRowKeys *rows = plan->rows;
	int			n = 0;

	for (int i = 0; i < rows->n; i++)
	{
		const Row  *row = &rows->rows[i];

		plan->nnulls += row->nulls;
		if (row->done)
			continue;
		n++;
		for (int j = row->first; j < row->end; j++)
			plan->residual_upto = Max(plan->residual_upto, rows->members[j].col + 1);
	}
	return n;
}

bool
art_scan_null(const ArtScanPlan *plan, const uint8 *key, uint32 len)
{
	const ArtRowKeys *rows = plan->rows;

	for (int end = 0; end < 2; end++)
	{
		const int	which = end == 0 ? rows->low : rows->high;
		const uint8 *bound = end == 0 ? plan->lo.data : plan->hi.data;
		const uint32 blen = end == 0 ? plan->lo_len : plan->hi_len;
		const Row  *row = which < 0 ? NULL : &rows->rows[which];
		uint32		same = 0;

		if (row == NULL || !row->nulls)
			continue;
		for (int i = row->first + 1; i < row->end; i++)
		{
			const uint32 at = rows->members[i].at;

			if (at >= len || at > blen || memcmp(key + same, bound + same, at - same) != 0)
				break;
			if (key[at] != ART_MARK_VALUE)
				return true;
			same = at;
		}
	}
	return false;
}

bool
art_rowkeys_pass(const ArtScanPlan *plan, const uint8 *const *at)
{
	const ArtRowKeys *rows = plan->rows;

	for (int i = 0; i < rows->n; i++)
	{
		const Row  *row = &rows->rows[i];
		int			c = 0;

		if (row->done)
			continue;
		for (int j = row->first; j < row->end && c == 0; j++)
		{
			Member	   *m = &rows->members[j];
			const uint8 *p = at[m->col];

			if (*p != ART_MARK_VALUE)
				return false;
			c = compare_member(plan, m, p, (uint32) (at[m->col + 1] - p));
		}
		if (c == 0 ? row->strict : (c > 0) != row->greater)
			return false;
	}
	return true;
}
