/*
 * predicate_locks.c
 *	  Predicate locks of serializable transactions on virtual pages.
 *
 * The server's lock table takes any 32-bit number for a page.  Ours stand for
 * sets of keys, whatever structure has them, or none:
 *
 *	  column page	 all keys that begin with these columns; the whole key, too
 *	  interval page	 all entries that begin with these bits
 *	  run page		 all entries that begin with these bits, and of which the next
 *					 so many are not all zeros (or ones)
 *
 * and the number is a hash of kind, length and content: two sets with one
 * number cost a needless failure, never a missed one.  So nothing has to be
 * moved when leaves split, structures are dropped and built again, or switch.
 *
 * A reader locks pages that cover what it is about to read, then reads.  An
 * inserter publishes its entry, then looks at every page that its key belongs
 * to.  Both go through the lock table's partition of the page.  Either the
 * inserter finds the lock; or the reader, whose lock came later, reads later
 * still and meets the entry.  (The order of nbtree, which looks before it
 * inserts, needs the leaf's lock around both.)  An inserter that finds no
 * structure has stored its row in the heap before it looks.  The build that
 * serves the reader then has the row.
 *
 * An entry of n bits belongs to n intervals.  A reader that locks an interval
 * also locks a marker, which says that there are any as deep as that.  So an
 * inserter among readers of single keys looks at a handful of pages.  Run
 * pages have markers, too.  They are for ranges without end.  All that is
 * greater than 1,000,000 is some 50 intervals of 64-bit numbers, one for each
 * zero.  As runs it is only two, and the zeros behind the first one.  The lock
 * table replaces many page locks by one on the relation.  It puts that one
 * there before it takes the others away, therefore the relation is looked at
 * last.
 *
 * How far a search will go, with a LIMIT, is not known when it begins.  So it
 * reads a batch, locks what the batch spans, and reads it again; the second
 * answer counts.  If that goes further than the first, once more.
 *
 * src/am/README.md: Serializable transactions
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "storage/predicate_internals.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "am/predicate_locks.h"
#include "area/shared_state.h"

/* Intervals are at most that deep: what is longer is locked as a whole. */
#define SSI_DEPTH_BYTES	32
#define SSI_DEPTH		(SSI_DEPTH_BYTES * 8)
#define SSI_WORD		64		/* bits, of depths that share a marker */

/* Bits of precision that a search pays for with a lock each, on each side. */
#define SSI_SPLITS		2
#define SSI_SPLITS_OPEN	3		/* times that if the other end is open */
#define SSI_STEPS		2		/* after that many it grows by eighths */
#define SSI_STEPS_MAX	64		/* after that many it locks all */

/*
 * The server allows a transaction some 31 page locks of a relation before it
 * locks all of it.  From these counts on a search, and a search for a single
 * key, is content with less precision.
 */
#define SSI_FRUGAL		10
#define SSI_POOR		20

typedef enum SsiKind
{
	SSI_COLUMNS = 1,
	SSI_INTERVAL,
	SSI_MARKER,
	SSI_RUN,
	SSI_RUN_MARKER
} SsiKind;

/*
 * Where runs can begin: behind the first bit of a column's marker; behind the
 * first bit of the body (a sign); and one further.  There the ends of some
 * ranges part.
 */
static const uint8 ssi_anchors[] = {1, 9, 10};

#define SSI_RUN_MIN		3		/* shorter ones are not worth a page */
#define SSI_RUN_MAX		64

/* ---- numbers of pages --------------------------------------------------- */

#define SSI_HASH_SEED	UINT64CONST(0xcbf29ce484222325)

static inline uint64
ssi_hash(uint64 h, uint8 byte)
{
	return (h ^ byte) * UINT64CONST(0x100000001b3);
}

static uint64
ssi_hash_bytes(const uint8 *p, uint32 len)
{
	uint64		h = SSI_HASH_SEED;

	for (uint32 i = 0; i < len; i++)
		h = ssi_hash(h, p[i]);
	return h;
}

/*
 * The page: h is of the whole bytes, rest has what is left of "bits", at the
 * top.  The numbers are stored with prepared transactions.
 */
static BlockNumber
ssi_page(SsiKind kind, uint64 h, uint32 bits, uint8 rest)
{
	uint64		x = h ^ (((uint64) kind << 48 | (uint64) rest << 40 | bits) *
						 UINT64CONST(0x9e3779b97f4a7c15));
	uint32		page;

	x ^= x >> 33;
	x *= UINT64CONST(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64CONST(0xc4ceb9fe1a85ec53);
	x ^= x >> 33;
	page = (uint32) x;
	return page == 0 || page == InvalidBlockNumber ? 1 : page;
}

static BlockNumber
ssi_column_page(const uint8 *key, uint32 len)
{
	return ssi_page(SSI_COLUMNS, ssi_hash_bytes(key, len), len, 0);
}

static inline uint8
ssi_top_bits(uint8 byte, uint32 n)
{
	return n == 0 ? 0 : (uint8) (byte & (0xFF << (8 - n)));
}

static BlockNumber
ssi_marker(uint32 bits)
{
	return ssi_page(SSI_MARKER, 0, (bits - 1) / SSI_WORD, 0);
}

/* The run from bit "at" to "to"; p has the bits before it, and h their hash. */
static BlockNumber
ssi_run_page(const uint8 *p, uint64 h, uint32 at, uint32 to, bool ones)
{
	return ssi_page(SSI_RUN, h, at | to << 10 | (uint32) ones << 20,
					ssi_top_bits(p[at / 8], at % 8));
}

static BlockNumber
ssi_any_run_marker(void)
{
	return ssi_page(SSI_RUN_MARKER, 0, 0, 0);
}

static BlockNumber
ssi_run_marker(uint32 at, bool ones)
{
	return ssi_page(SSI_RUN_MARKER, 1, at << 1 | (uint32) ones, 0);
}

/* ---- locks -------------------------------------------------------------- */

/*
 * This transaction's locks of an index, as far as they are worth knowing.  To
 * forget one costs a look into the server's own table.
 */
typedef struct SsiMine
{
	Oid			relid;
	LocalTransactionId lxid;
	uint32		n;
	BlockNumber page[SSI_POOR * 2];
} SsiMine;

static SsiMine ssi_mine[8];

/*
 * And how many, of all indexes together.  Of a table with many partitions each
 * could have its 31.  The server's table has max_pred_locks_per_transaction
 * for each transaction, and is full for everybody when they take more.
 */
static LocalTransactionId ssi_total_lxid;
static int	ssi_total;

static bool
ssi_spent(void)
{
	return ssi_total_lxid == ART_MY_LXID() && ssi_total >= max_predicate_locks_per_xact;
}

/*
 * This transaction's locks of the index, as far as they are remembered.  One
 * that hashes alike takes the place over, and locks are taken again, which
 * does nothing.
 */
static SsiMine *
ssi_of(Relation index)
{
	Oid			relid = RelationGetRelid(index);
	SsiMine    *m = &ssi_mine[relid % lengthof(ssi_mine)];

	if (m->relid != relid || m->lxid != ART_MY_LXID())
	{
		m->relid = relid;
		m->lxid = ART_MY_LXID();
		m->n = 0;
	}
	return m;
}

static bool
ssi_has(const SsiMine *m, BlockNumber page)
{
	for (uint32 i = 0; i < m->n; i++)
		if (m->page[i] == page)
			return true;
	return false;
}

/*
 * How full is the server's table?  The locks of committed transactions stay in
 * it as long as a transaction runs that overlaps with them.  In nbtree they
 * share the leaves of the index; the ranges that searches lock here are all
 * different.  When the table is full, everybody who reads anything gets an
 * error; so long before that we lock less precisely, and then the relation.
 * All locks are counted whenever we have taken a part of what there is room
 * for.
 */
typedef enum SsiRoom
{
	SSI_ROOM_ENOUGH,
	SSI_ROOM_LITTLE,			/* no locks for precision */
	SSI_ROOM_NONE				/* the relation */
} SsiRoom;

#define SSI_COUNT_PART		8
#define SSI_RELATION_COUNTS	16	/* count again before long: it may be over */

/*
 * The server copies its whole table to be counted, and a search is not to fail
 * because this process has no memory for that.  It goes on with the last
 * count, as if all locks taken since were still held.
 */
static bool
ssi_can_count(uint64 most)
{
	void	   *tags = palloc_extended(most * sizeof(PREDICATELOCKTARGETTAG), MCXT_ALLOC_NO_OOM);
	void	   *xacts = palloc_extended(most * sizeof(SERIALIZABLEXACT), MCXT_ALLOC_NO_OOM);

	if (xacts != NULL)
		pfree(xacts);
	if (tags != NULL)
		pfree(tags);
	return tags != NULL && xacts != NULL;
}

/*
 * How much of the server's table of predicate locks is left.  It is counted
 * anew when an eighth of it has been taken since.
 */
static SsiRoom
ssi_room(void)
{
	uint64		room = (uint64) max_predicate_locks_per_xact *
		(uint64) (MaxBackends + max_prepared_xacts);
	uint32		taken = pg_atomic_read_u32(&art_shared->ssi_taken);
	uint64		used;

	/* so many that they could not even be counted */
	if (2 * room > MaxAllocSize / sizeof(SERIALIZABLEXACT))
		return SSI_ROOM_ENOUGH;

	if (taken >= room / SSI_COUNT_PART &&
		pg_atomic_compare_exchange_u32(&art_shared->ssi_taken, &taken, 0))
	{
		PredicateLockData *data;

		/* what is known if there is no counting, or it does not come to its end */
		pg_atomic_fetch_add_u32(&art_shared->ssi_held, taken);
		taken = 0;
		if (ssi_can_count(2 * room))
		{
			data = GetPredicateLockStatusData();
			pg_atomic_write_u32(&art_shared->ssi_held, (uint32) data->nelements);
			pfree(data->locktags);
			pfree(data->xacts);
			pfree(data);
		}
	}
	used = (uint64) pg_atomic_read_u32(&art_shared->ssi_held) + taken;
	return used < room / 4 ? SSI_ROOM_ENOUGH :
		used < room / 2 ? SSI_ROOM_LITTLE : SSI_ROOM_NONE;
}

static void
ssi_lock_relation(ArtSsi *s, IndexScanDesc scan)
{
	PredicateLockRelation(scan->indexRelation, scan->xs_snapshot);
	s->all = true;
}

/*
 * Take the predicate lock on a page, unless this transaction is known to have
 * it.
 */
static void
ssi_lock(IndexScanDesc scan, BlockNumber page)
{
	SsiMine    *m = ssi_of(scan->indexRelation);

	if (ssi_has(m, page))
		return;
	PredicateLockPage(scan->indexRelation, page, scan->xs_snapshot);
	if (m->n < lengthof(m->page))
		m->page[m->n++] = page;
	if (ssi_total_lxid != ART_MY_LXID())
	{
		ssi_total_lxid = ART_MY_LXID();
		ssi_total = 0;
	}
	ssi_total++;
	pg_atomic_fetch_add_u32(&art_shared->ssi_taken, 1);
}

/*
 * Lock the interval of the keys that begin with the first "bits" of p, at
 * least one; flip: with the last of them inverted.
 */
static void
ssi_lock_interval(IndexScanDesc scan, const uint8 *p, uint32 bits, bool flip)
{
	uint32		bytes = bits / 8;
	uint8		last = 0;
	uint64		h;

	/* the marker first: who finds none looks at no interval */
	ssi_lock(scan, ssi_marker(bits));
	if (flip && bits % 8 == 0)
	{
		h = ssi_hash(ssi_hash_bytes(p, bytes - 1), p[bytes - 1] ^ 1);
	}
	else
	{
		h = ssi_hash_bytes(p, bytes);
		if (bits % 8 != 0)
			last = ssi_top_bits(p[bytes], bits % 8);
		if (flip)
			last ^= (uint8) (0x80 >> (bits % 8 - 1));
	}
	ssi_lock(scan, ssi_page(SSI_INTERVAL, h, bits, last));
}

/* ---- covering ----------------------------------------------------------- */

/*
 * An end of a range: these bytes, and then nothing but zeros or ones.  In
 * SSI_DEPTH_BYTES + 1 bytes, filled up accordingly.
 */
typedef struct SsiEnd
{
	uint8		b[SSI_DEPTH_BYTES + 1];
	uint32		bits;			/* that are not filling */
	bool		ones;
	uint32		columns;		/* bit i: a column begins with byte i */
} SsiEnd;

/*
 * An end of a range as SSI sees it: the first bytes of a position, filled up
 * with zeros or ones.
 */
static void
ssi_end(SsiEnd *e, const ArtKeyDesc *kd, const uint8 *p, uint32 len, bool ones)
{
	uint32		n = Min(len, SSI_DEPTH_BYTES);
	const uint8 *c = p;

	e->columns = 0;
	for (int i = 0; i < kd->natts && c != NULL && c - p < n; i++)
	{
		e->columns |= (uint32) 1 << (c - p);
		c = art_skip_col_within(&kd->cols[i], c, p + len);
	}

	if (n > 0)
		memcpy(e->b, p, n);
	memset(e->b + n, ones ? 0xFF : 0, sizeof(e->b) - n);
	e->bits = n * 8;
	e->ones = ones;
	if (len > n)
		e->bits = SSI_DEPTH;
}

static inline bool
ssi_bit(const SsiEnd *e, uint32 i)
{
	return (e->b[i / 8] >> (7 - i % 8)) & 1;
}

/* From which bit on is all of it zeros, or ones? */
static uint32
ssi_filled_from(const SsiEnd *e, bool ones)
{
	uint32		i = SSI_DEPTH;

	if (e->ones != ones)
		return SSI_DEPTH;
	while (i > 0 && ssi_bit(e, i - 1) == ones)
		i--;
	return i;
}

/* First bit in which they differ, at most SSI_DEPTH. */
static uint32
ssi_common(const SsiEnd *a, const SsiEnd *b)
{
	uint32		i = 0;

	while (i < SSI_DEPTH_BYTES && a->b[i] == b->b[i])
		i++;
	if (i == SSI_DEPTH_BYTES)
		return SSI_DEPTH;
	i *= 8;
	while (ssi_bit(a, i) == ssi_bit(b, i))
		i++;
	return i;
}

static bool
ssi_is_anchor(const SsiEnd *e, uint32 at)
{
	for (uint32 i = 0; i < lengthof(ssi_anchors); i++)
		if (at >= ssi_anchors[i] && (at - ssi_anchors[i]) % 8 == 0 &&
			(at - ssi_anchors[i]) / 8 < SSI_DEPTH_BYTES &&
			(e->columns >> ((at - ssi_anchors[i]) / 8) & 1) != 0)
			return true;
	return false;
}

/* Remember the furthest interval. */
static void
ssi_reached(ArtSsi *s, const SsiEnd *e, uint32 bits)
{
	memcpy(s->cov.data, e->b, SSI_DEPTH_BYTES);
	s->bits = bits;
}

/*
 * One side of a cover: from below the common interval down along the end.
 * Half an interval is left out wherever the end is in the other half.  Where
 * it is not, the other half is locked by itself as long as there are splits.
 * Returns the depth at the end.
 */
static uint32
ssi_side(IndexScanDesc scan, const SsiEnd *e, bool low, uint32 at,
		 uint32 deepest, uint32 splits)
{
	uint32		exact = ssi_filled_from(e, !low);

	while (at < deepest && at < exact && at < e->bits)
	{
		if (ssi_bit(e, at) != low)
		{
			uint32		to = at + 1;

			while (to < deepest && to < exact && to < e->bits &&
				   to < at + SSI_RUN_MAX && ssi_bit(e, to) != low)
				to++;
			if (to - at >= SSI_RUN_MIN && ssi_is_anchor(e, at))
			{
				/* the other halves of all these in one */
				ssi_lock(scan, ssi_any_run_marker());
				ssi_lock(scan, ssi_run_marker(at, !low));
				ssi_lock(scan, ssi_run_page(e->b, ssi_hash_bytes(e->b, at / 8), at, to, !low));
				at = to;
				continue;
			}
			if (splits == 0)
				break;
			splits--;
			ssi_lock_interval(scan, e->b, at + 1, true);
		}
		at++;
	}
	ssi_lock_interval(scan, e->b, at, false);
	return at;
}

/*
 * Lock what lies between two ends.
 */
static void
ssi_cover(ArtSsi *s, IndexScanDesc scan, const SsiEnd *lo, const SsiEnd *hi,
		  uint32 deepest, uint32 splits)
{
	uint32		n = ssi_common(lo, hi);
	uint32		l,
				h;

	if (n < SSI_DEPTH && ssi_bit(lo, n))
		return;					/* nothing lies between them */
	if (n >= deepest || ssi_spent() ||
		(n >= ssi_filled_from(lo, false) && n >= ssi_filled_from(hi, true)))
	{
		n = Min(n, deepest);
		if (n == 0)
		{
			ssi_lock_relation(s, scan);
			return;
		}
		ssi_lock_interval(scan, lo->b, n, false);
		ssi_reached(s, lo, n);
		return;
	}

	/* a fraction of a range without end is no measure */
	l = ssi_side(scan, lo, true, n + 1, deepest,
				 ssi_filled_from(hi, true) <= n + 1 ? splits * SSI_SPLITS_OPEN : splits);
	h = ssi_side(scan, hi, false, n + 1, deepest,
				 ssi_filled_from(lo, false) <= n + 1 ? splits * SSI_SPLITS_OPEN : splits);
	if (s->backward)
		ssi_reached(s, lo, l);
	else
		ssi_reached(s, hi, h);
}

/* The search's own ends. */
static void
ssi_plan_ends(const ArtKeyDesc *kd, const ArtScanPlan *plan, SsiEnd *lo, SsiEnd *hi)
{
	ssi_end(lo, kd, plan->lo.data, plan->lo_len, plan->lo_after);
	ssi_end(hi, kd, plan->hi.data, plan->hi_len, plan->hi_after);
}

/*
 * Is the range all keys that begin with some whole columns?  Their length, or 0.
 */
static uint32
ssi_columns(const ArtKeyDesc *kd, const ArtScanPlan *plan)
{
	const uint8 *p = plan->lo.data;
	const uint8 *end = p + plan->lo_len;

	if (plan->lo_len == 0 || plan->lo_len != plan->hi_len ||
		plan->lo_after || !plan->hi_after ||
		memcmp(plan->lo.data, plan->hi.data, plan->lo_len) != 0)
		return 0;
	for (int i = 0; i < kd->natts && p != NULL && p < end; i++)
		p = art_skip_col_within(&kd->cols[i], p, end);
	return p == end ? plan->lo_len : 0;
}

static uint32
ssi_splits(IndexScanDesc scan)
{
	uint32		n = ssi_of(scan->indexRelation)->n;

	if (ssi_room() != SSI_ROOM_ENOUGH)
		return 0;
	return n < SSI_FRUGAL ? SSI_SPLITS : n < SSI_POOR ? SSI_SPLITS / 2 : 0;
}

/* Lock all of the search's range. */
static void
ssi_lock_plan(ArtSsi *s, IndexScanDesc scan, const ArtKeyDesc *kd,
			  const ArtScanPlan *plan)
{
	uint32		len = kd->compared && !kd->images ? 0 : ssi_columns(kd, plan);

	s->all = true;
	if (len > 0)
		ssi_lock(scan, ssi_column_page(plan->lo.data, len));
	else if (kd->compared)
		PredicateLockRelation(scan->indexRelation, scan->xs_snapshot);
	else
	{
		SsiEnd		lo,
					hi;

		ssi_plan_ends(kd, plan, &lo, &hi);
		ssi_cover(s, scan, &lo, &hi, SSI_DEPTH, ssi_splits(scan));
	}
}

/*
 * A single key, after many others.  Lock an interval around it, the larger the
 * more there were.  So a loop over neighbours does not end with a lock on the
 * relation, where nbtree has some leaves.  False: it has to be the key alone.
 */
static bool
ssi_lock_around(IndexScanDesc scan, const ArtKeyDesc *kd, const uint8 *key,
				uint32 len)
{
	SsiMine    *m = ssi_of(scan->indexRelation);
	uint32		first;
	uint32		bits = len * 8;

	if (m->n < SSI_POOR || kd->compared || len > SSI_DEPTH_BYTES)
		return false;
	/* within its last column, behind the marker */
	first = 8 + 8 * art_key_prefix_len(kd, key, len, kd->natts - 1);
	for (uint32 n = SSI_POOR;; n++)
	{
		uint32		drop = 8 + 2 * (n - SSI_POOR);

		if (bits < first + drop)
			return false;
		if (n >= m->n ||
			ssi_has(m, ssi_page(SSI_INTERVAL, ssi_hash_bytes(key, (bits - drop) / 8),
								bits - drop,
								ssi_top_bits(key[(bits - drop) / 8], (bits - drop) % 8))))
		{
			ssi_lock_interval(scan, key, bits - drop, false);
			return true;
		}
	}
}

/* Is this what is known of? */
static bool
ssi_same_range(const ArtSsi *s, const ArtScanPlan *plan)
{
	return s->known && s->lxid == ART_MY_LXID() &&
		s->lo_len == plan->lo_len && s->hi_len == plan->hi_len &&
		s->lo_after == plan->lo_after && s->hi_after == plan->hi_after &&
		(s->lo_len == 0 || memcmp(s->ends.data, plan->lo.data, s->lo_len) == 0) &&
		(s->hi_len == 0 || memcmp(s->ends.data + s->lo_len, plan->hi.data, s->hi_len) == 0);
}

/*
 * A range is about to be read.  It may be that of the batch before, or another
 * of an array's.  Or a mark or another participant of a parallel scan has led
 * to it.  Unless it is known to be locked from its beginning, it is locked
 * from there.
 */
void
art_ssi_range(ArtSsi *s, IndexScanDesc scan, const ArtScanPlan *plan, bool backward,
			  bool begin, bool whole, MemoryContext cxt)
{
	const ArtKeyDesc *kd = plan->kd;
	SsiRoom		room;

	/*
	 * Not what is temporary, nor a transaction that has a safe snapshot.
	 * (Whether it is read-only and deferrable does not tell: it can be made
	 * so after it has written.)
	 */
	s->on = CheckForSerializableConflictOutNeeded(scan->indexRelation, scan->xs_snapshot);
	if (!s->on)
		return;
	if (ssi_same_range(s, plan) && !(begin && backward != s->backward))
		return;

	s->known = false;
	s->all = false;
	s->backward = backward;
	s->steps = 0;
	s->bits = 0;

	room = ssi_room();
	if (plan->point)
	{
		if (room == SSI_ROOM_NONE)
		{
			pg_atomic_fetch_add_u32(&art_shared->ssi_taken, SSI_RELATION_COUNTS);
			ssi_lock_relation(s, scan);
		}
		else if (!ssi_lock_around(scan, kd, plan->lo.data, plan->lo_len))
			ssi_lock(scan, ssi_column_page(plan->lo.data, plan->lo_len));
		s->all = true;
		return;
	}

	if (s->cov.data == NULL)
	{
		art_buf_init(&s->cov, cxt, SSI_DEPTH_BYTES);
		art_buf_init(&s->ends, cxt, 64);
	}
	s->ends.len = 0;
	art_buf_reserve(&s->ends, plan->lo_len + plan->hi_len);
	s->lxid = ART_MY_LXID();
	s->lo_len = plan->lo_len;
	s->hi_len = plan->hi_len;
	s->lo_after = plan->lo_after;
	s->hi_after = plan->hi_after;
	if (s->lo_len > 0)
		memcpy(s->ends.data, plan->lo.data, s->lo_len);
	if (s->hi_len > 0)
		memcpy(s->ends.data + s->lo_len, plan->hi.data, s->hi_len);

	if (room == SSI_ROOM_NONE)
	{
		pg_atomic_fetch_add_u32(&art_shared->ssi_taken, SSI_RELATION_COUNTS);
		ssi_lock_relation(s, scan);
	}
	else if (whole || kd->compared)
		ssi_lock_plan(s, scan, kd, plan);
	s->known = true;
}

void
art_ssi_end(ArtSsi *s)
{
	if (s->cov.data == NULL)
		return;
	pfree(s->cov.data);
	pfree(s->ends.data);
}

/*
 * Is what was read, up to "end", within what is locked?
 */
static bool
ssi_reaches(const ArtSsi *s, const SsiEnd *end)
{
	uint32		bytes = s->bits / 8;
	int			c;

	if (s->bits == 0)
		return false;
	c = memcmp(end->b, s->cov.data, bytes);
	if (c == 0 && s->bits % 8 != 0)
		c = (int) ssi_top_bits(end->b[bytes], s->bits % 8) -
			(int) ssi_top_bits(s->cov.data[bytes], s->bits % 8);
	return s->backward ? c >= 0 : c <= 0;
}

/*
 * The neighbour of the furthest interval, as the beginning of what is not yet
 * locked.  False: there is none.
 */
static bool
ssi_beyond(const ArtSsi *s, SsiEnd *e)
{
	uint32		bytes = (s->bits + 7) / 8;
	uint32		unit = s->bits % 8 == 0 ? 1 : 1 << (8 - s->bits % 8);

	memcpy(e->b, s->cov.data, bytes);
	if (s->bits % 8 != 0)
		e->b[bytes - 1] = ssi_top_bits(e->b[bytes - 1], s->bits % 8);
	for (int i = (int) bytes - 1;; i--)
	{
		int			v;

		if (i < 0)
			return false;
		v = e->b[i] + (s->backward ? -(int) unit : (int) unit);
		e->b[i] = (uint8) v;
		if (v >= 0 && v <= 0xFF)
			break;
		unit = 1;
	}
	/* the bits behind the interval's, in the last byte, too */
	if (s->backward && s->bits % 8 != 0)
		e->b[bytes - 1] |= (uint8) (0xFF >> (s->bits % 8));
	memset(e->b + bytes, s->backward ? 0xFF : 0, sizeof(e->b) - bytes);
	e->bits = bytes * 8;
	e->ones = s->backward;
	e->columns = 0;
	return true;
}

bool
art_ssi_batch(ArtSsi *s, IndexScanDesc scan, const ArtScanPlan *plan, bool backward,
			  bool exhausted, const uint8 *endkey, uint32 endlen)
{
	const ArtKeyDesc *kd = plan->kd;
	SsiEnd		lo,
				hi,
				end,
				from;
	uint32		deepest = SSI_DEPTH;

	/* back the way it came: read before, so locked before */
	if (!s->on || s->all || backward != s->backward)
		return true;

	if (!exhausted)
	{
		ssi_end(&end, kd, endkey, endlen, !backward);
		if (ssi_reaches(s, &end))
			return true;
	}

	/* all of it at once, or entries go as fast as we lock */
	if ((exhausted && s->steps == 0) || s->steps >= SSI_STEPS_MAX)
	{
		ssi_lock_plan(s, scan, kd, plan);
		return false;
	}

	ssi_plan_ends(kd, plan, &lo, &hi);
	if (exhausted)
		end = backward ? lo : hi;
	if (s->steps >= SSI_STEPS)
		deepest = Min(SSI_DEPTH, ssi_common(backward ? &hi : &lo, &end) + 3);
	if (s->bits == 0)
		from = backward ? hi : lo;
	else if (!ssi_beyond(s, &from))
	{
		s->all = true;
		return true;
	}
	if (backward)
		ssi_cover(s, scan, &end, &from, deepest, s->steps == 0 ? ssi_splits(scan) : 0);
	else
		ssi_cover(s, scan, &from, &end, deepest, s->steps == 0 ? ssi_splits(scan) : 0);
	s->steps++;
	if (exhausted)
		s->all = true;
	return false;
}

/* ---- the inserter ------------------------------------------------------- */

/*
 * Whether a page is locked by anybody is a fraction of the price of the real
 * check, which looks at the relation as well.
 */
static inline void
ssi_look(Relation index, BlockNumber page)
{
	if (PageIsPredicateLocked(index, page))
		CheckForSerializableConflictIn(index, NULL, page);
}

/*
 * The run pages that begin in the column that starts with byte "start".  All
 * lengths, whatever the entry's: the reader's key may be longer.
 */
static void
ssi_look_runs(Relation index, const uint8 *p, uint32 len, uint32 start)
{
	for (uint32 i = 0; i < lengthof(ssi_anchors); i++)
	{
		uint32		at = start * 8 + ssi_anchors[i];
		uint32		end = Min(at + SSI_RUN_MAX, SSI_DEPTH);
		uint64		h;

		if (at >= Min(len * 8, SSI_DEPTH))
			break;
		h = ssi_hash_bytes(p, at / 8);
		for (int ones = 0; ones <= 1; ones++)
		{
			uint32		t = at;

			if (!PageIsPredicateLocked(index, ssi_run_marker(at, ones)))
				continue;
			while (t < end && t < len * 8 && ((p[t / 8] >> (7 - t % 8)) & 1) == ones)
				t++;
			for (uint32 to = t + 1; to <= end; to++)
				ssi_look(index, ssi_run_page(p, h, at, to, ones));
		}
	}
}

void
art_ssi_inserted(Relation index, const ArtKeyDesc *kd, const uint8 *key,
				 uint32 cols, uint32 len)
{
	const uint8 *p = key;
	uint64		h = SSI_HASH_SEED;
	bool		marked = false;
	bool		runs = !kd->compared && PageIsPredicateLocked(index, ssi_any_run_marker());

	for (int i = 0; i < kd->natts && (!kd->compared || kd->images); i++)
	{
		uint32		start = (uint32) (p - key);

		p = art_skip_col(kd, &kd->cols[i], p, key + cols);
		ssi_look(index, ssi_column_page(key, (uint32) (p - key)));
		if (runs && start < SSI_DEPTH_BYTES)
			ssi_look_runs(index, key, len, start);
	}

	for (uint32 bits = 1; bits <= Min(len * 8, SSI_DEPTH) && !kd->compared; bits++)
	{
		if (bits % SSI_WORD == 1)
			marked = PageIsPredicateLocked(index, ssi_marker(bits));
		if (bits % 8 == 0)
			h = ssi_hash(h, key[bits / 8 - 1]);
		if (marked)
			ssi_look(index, ssi_page(SSI_INTERVAL, h, bits,
									 ssi_top_bits(bits % 8 == 0 ? 0 : key[bits / 8], bits % 8)));
	}

	/* last: see above */
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
}
