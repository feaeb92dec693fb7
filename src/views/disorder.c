/*
 * disorder.c
 *	  Is it the operator class?  Three values of an index that its comparison function
 *	  puts into no order.
 *
 * An entry that is not found by comparing is above one that stands before it, or below
 * one that stands behind it.  Let a be the first of the two.  Of the entries behind a
 * some are not below it, and some are.  So there are neighbours b and c, in this order,
 * of which b is not below a and c is.  With a they are no order, unless c is below b: then
 * the function has changed its mind, or the structure is damaged.
 *
 * src/views/README.md: The check
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "area/area.h"
#include "views/check.h"

#define ART_DISORDER_BATCH	256

/* Entries in the order of the structure, one after the other. */
typedef struct Walk
{
	ArtCheck   *c;
	ArtPass		pass;
	uint32		i;
} Walk;

static void
check_walk_begin(Walk *w, ArtCheck *c)
{
	w->c = c;
	art_pass_init(&w->pass, c->kd, c->cx, ART_DISORDER_BATCH, 16 * 1024);
	w->i = 0;
}

/* The next entry, in place until the one after it.  False: there is none. */
static bool
check_walk_next(Walk *w, const uint8 **key, uint32 *len)
{
	ArtPass    *p = &w->pass;

	while (w->i == p->n)
	{
		ax_status	s;

		CHECK_FOR_INTERRUPTS();
		if (p->done)
			return false;
		s = art_pass_next(p, w->c->tree, w->c->gen);
		if (s == AX_STALE)
			return false;		/* nothing is shown, then */
		if (s != AX_OK)
			art_unexpected(w->c->index, s, "a check");
		w->i = 0;
	}
	*key = p->keys.data + p->key_off[w->i];
	*len = p->key_off[w->i + 1] - p->key_off[w->i];
	w->i++;
	return true;
}

static void
keep_key(ArtBuf *buf, const uint8 *key, uint32 len)
{
	if (buf->data == NULL)
		art_buf_init(buf, CurrentMemoryContext, len);
	buf->len = 0;
	art_buf_reserve(buf, len);
	memcpy(buf->data, key, len);
	buf->len = len;
}

/* Is it above the other, as entries? */
static bool
above(const ArtCheck *c, const ArtBuf *a, const uint8 *key, uint32 len)
{
	return art_key_cmp(c->kd, a->data, a->len, key, len, false, true) > 0;
}

/*
 * The first of two entries that stand in another order than they compare, one of them
 * being the given one.  False: there are none.
 */
static bool
find_first(ArtCheck *c, const uint8 *key, uint32 len, ArtBuf *a)
{
	Walk		w;
	const uint8 *e;
	uint32		elen;
	bool		behind = false;
	bool		found = false;
	ArtBuf		given = {0};

	keep_key(&given, key, len);
	check_walk_begin(&w, c);
	while (!found && check_walk_next(&w, &e, &elen))
	{
		if (!behind && elen == len && memcmp(e, key, len) == 0)
			behind = true;
		else if (behind ? above(c, &given, e, elen) :
				 art_key_cmp(c->kd, e, elen, key, len, false, true) > 0)
		{
			found = true;
			if (behind)
				keep_key(a, key, len);
			else
				keep_key(a, e, elen);
		}
	}
	art_pass_end(&w.pass);
	return found;
}

/* The neighbours behind a of which the second is the first that is below it. */
static bool
find_neighbours(ArtCheck *c, const ArtBuf *a, ArtBuf *b, ArtBuf *y)
{
	Walk		w;
	const uint8 *e;
	uint32		elen;
	bool		behind = false;
	bool		found = false;

	check_walk_begin(&w, c);
	while (!found && check_walk_next(&w, &e, &elen))
	{
		if (!behind)
			behind = elen == a->len && memcmp(e, a->data, elen) == 0;
		else if (above(c, a, e, elen))
		{
			keep_key(y, e, elen);
			found = true;
		}
		if (behind && !found)
			keep_key(b, e, elen);
	}
	art_pass_end(&w.pass);
	return found;
}

/* How the function compares two keys' columns. */
static int
says(const ArtCheck *c, const ArtBuf *a, const ArtBuf *b)
{
	int			r = art_key_order(c->kd, a->data, a->len - AX_TID_BYTES, b->data, b->len - AX_TID_BYTES);

	return (r > 0) - (r < 0);
}

/* A key's columns, as errors show them. */
static const char *
shown(const ArtCheck *c, const ArtBuf *a)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	char	   *text;

	art_decode(c->kd, a->data, a->len, c->kd->nall, values, isnull);
	text = BuildIndexValueDescription(c->index, values, isnull);
	return text != NULL ? text : "a key";
}

/* The operator class of the first column that a function compares, a doubtful one if there is one. */
static const char *
checked_class_name(const ArtCheck *c)
{
	int			col = -1;
	oidvector  *classes;
	bool		isnull;
	HeapTuple	tup;
	const char *name;

	for (int i = 0; i < c->kd->natts; i++)
	{
		const ArtKeyCol *kc = &c->kd->cols[i];

		if (kc->enc == ART_ENC_DATUM &&
			(col < 0 || (c->kd->doubtful &&
						 art_cmp_doubtful(kc->cmp, TupleDescAttr(RelationGetDescr(c->index), i)->atttypid))))
			col = i;
	}
	classes = (oidvector *) DatumGetPointer(SysCacheGetAttr(INDEXRELID, c->index->rd_indextuple,
															Anum_pg_index_indclass, &isnull));
	tup = SearchSysCache1(CLAOID, ObjectIdGetDatum(classes->values[Max(col, 0)]));
	if (!HeapTupleIsValid(tup))
		return "?";				/* cannot be: the index depends on it */
	name = pstrdup(NameStr(((Form_pg_opclass) GETSTRUCT(tup))->opcname));
	ReleaseSysCache(tup);
	return name;
}

static const char *
sign(int r)
{
	return r < 0 ? "<" : r > 0 ? ">" : "=";
}

/* Not everybody may see the values: art_rethrow_hidden. */
static void
report_disorder(ArtCheck *c, const char *detail)
{
	c->of_rows = true;
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("operator class \"%s\" of index \"%s\" is not an order", checked_class_name(c),
					RelationGetRelationName(c->index)),
			 errdetail("Its comparison function says: %s.", detail),
			 errhint("Queries by the index can miss rows, and REINDEX does not help. Mend the function, or take away the values."),
			 errtable(c->heap)));
}

/* Two keys that the function compares one way now, and another way then. */
static void
try_pair(ArtCheck *c, const ArtBuf *a, const ArtBuf *b)
{
	int			r = says(c, a, b);
	int			back = says(c, b, a);
	int			again = says(c, a, b);

	if (back != -r)
		report_disorder(c, psprintf("%s %s %s, and %s %s %s", shown(c, a), sign(r), shown(c, b),
									shown(c, b), sign(back), shown(c, a)));
	if (again != r)
		report_disorder(c, psprintf("%s %s %s, and then %s %s %s", shown(c, a), sign(r), shown(c, b),
									shown(c, a), sign(again), shown(c, b)));
}

void
art_check_disorder(ArtCheck *c, const uint8 *key, uint32 len)
{
	ArtBuf		a = {0};
	ArtBuf		b = {0};
	ArtBuf		y = {0};
	int			ab,
				by,
				ay;

	if (!find_first(c, key, len, &a) || !find_neighbours(c, &a, &b, &y))
		return;
	try_pair(c, &a, &b);
	try_pair(c, &b, &y);
	try_pair(c, &a, &y);
	ab = says(c, &a, &b);
	by = says(c, &b, &y);
	ay = says(c, &a, &y);
	if (ab <= 0 && by <= 0 && (ay > 0 || (ay == 0 && ab + by < 0)))
		report_disorder(c, psprintf("%s %s %s %s %s, but %s %s %s", shown(c, &a), sign(ab), shown(c, &b),
									sign(by), shown(c, &y), shown(c, &a), sign(ay), shown(c, &y)));
}
