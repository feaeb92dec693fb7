/*
 * private_store.c
 *	  Sorted entries of one process: the result of a private scan.
 *
 * A store is filled in any order and then read as a tree is: by position, in
 * both directions, batch by batch. art_store_scan has the meaning of ax_scan.
 * It says which stretch of the key space it covers; within that it has every
 * entry that it was given, outside of it none.
 *
 * Entries are kept in memory up to work_mem.  Beyond that there are two ways:
 *
 * - They are sorted by tuplesort and written to a temporary file, in blocks.
 *   A short separator of each block is kept in memory.  So a seek reads one
 *   block, and a walk its neighbours.
 * - When nothing may be spilled, the store keeps a work_mem-full of those
 *   entries that come first behind a position, in a direction.  It covers only
 *   this window.  The caller fills it again for what comes next.
 *
 * src/scan/README.md: The private scan
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "area/tree_calls.h"
#include "build/build.h"
#include "scan/scan.h"

#define STORE_CHUNK_MIN		((Size) 1024)
#define STORE_CHUNK_MAX		((Size) 256 * 1024)
#define STORE_BLOCK			((Size) 32 * 1024)
#define STORE_BLOCK_MOST	((Size) 4 * 1024 * 1024)	/* of long keys; or work_mem, if that is more */
#define STORE_SEPARATORS	32	/* a block is so many times as long as its separator */

/* An entry: its length and the bytes of its key, the TID's last. */
typedef struct StoreEntry
{
	uint32		len;
	uint8		key[FLEXIBLE_ARRAY_MEMBER];
} StoreEntry;

#define ENTRY_SIZE(len)		INTALIGN(offsetof(StoreEntry, key) + (Size) (len))

typedef struct StoreItem
{
	uint64		abbrev;			/* the first eight bytes of the key */
	StoreEntry *entry;
} StoreItem;

typedef struct StoreChunk
{
	struct StoreChunk *next;
	Size		used;
	Size		size;
	char		data[FLEXIBLE_ARRAY_MEMBER];
} StoreChunk;

/* A block of the temporary file. */
typedef struct StoreBlock
{
	uint8	   *sep;			/* not above its first key, above the one before */
	uint32		seplen;
	uint32		n;
	Size		bytes;
	int			fileno;
	off_t		offset;
} StoreBlock;

/* A position with its bytes. */
typedef struct StorePos
{
	ArtBuf		buf;
	bool		after;
} StorePos;

struct ArtStore
{
	const ArtKeyDesc *kd;
	MemoryContext cxt;			/* of this struct and the positions */
	MemoryContext data;			/* of entries, sort and file: reset when emptied */

	/* what is asked for */
	StorePos	lo,				/* entries outside are not kept */
				hi;
	StorePos	start;			/* where a window begins */
	bool		backward;		/* and the way it goes */
	bool		spill;
	Size		budget;

	/* while it is filled */
	bool		filling;
	bool		window;
	bool		limited;		/* limit is the window's far end */
	StorePos	limit;
	Tuplesortstate *sort;
	ArtSort    *csort;			/* in its place when keys are compared */
	bytea	   *scratch;
	Size		scratch_size;

	/* entries: all of them, or those of the block that is loaded */
	StoreItem  *items;
	Size		nitems;
	Size		items_cap;
	StoreChunk *chunks;
	Size		bytes;

	/* the file */
	BufFile    *file;
	StoreBlock *blocks;
	Size		nblocks;
	Size		blocks_cap;
	Size		loaded;			/* which block the items are of */
	char	   *block;
	Size		block_size;

	/* what it covers */
	StorePos	from,
				to;

	/* of a doubtful class: the last entry that was read, its block and place */
	StorePos	last;
	Size		last_blk;
	Size		last_at;
};

/* ---- positions and keys ---- */

/*
 * Does the key lie behind the position?  No key is a prefix of another, and no
 * bound is longer than a key that it begins with.
 */
static inline bool
key_behind(const ArtStore *s, const uint8 *key, uint32 len, const ax_bound *p)
{
	int			c;

	if (unlikely(s->kd->compared))
	{
		c = art_key_cmp(s->kd, key, len, p->key, p->len, p->after, true);
		return c > 0 || (c == 0 && !p->after);
	}
	c = memcmp(key, p->key, Min(len, p->len));
	if (c != 0)
		return c > 0;
	return !p->after && len >= p->len;
}

int
art_bound_cmp(const ArtKeyDesc *kd, const ax_bound *a, const ax_bound *b)
{
	uint32		both = Min(a->len, b->len);
	int			c;

	if (unlikely(kd->compared))
		return art_position_cmp(kd, a->key, a->len, a->after, b->key, b->len, b->after);
	c = both == 0 ? 0 : memcmp(a->key, b->key, both);
	if (c != 0)
		return c;
	if (a->len < b->len)
		return a->after ? 1 : -1;
	if (a->len > b->len)
		return b->after ? -1 : 1;
	return (int) a->after - (int) b->after;
}

/* memcmp wants an address even for no bytes */
static const uint8 nothing[1] = {0};

static inline ax_bound
pos_bound(const StorePos *p)
{
	ax_bound	b;

	b.key = p->buf.data;
	b.len = p->buf.len;
	b.after = p->after;
	return b;
}

static inline ax_bound
safe_bound(const ax_bound *b)
{
	ax_bound	r = *b;

	if (r.key == NULL)
		r.key = nothing;
	return r;
}

static void
pos_init(StorePos *p, MemoryContext cxt)
{
	art_buf_init(&p->buf, cxt, 32);
	p->after = false;
}

/* Keep a copy of the position. */
static void
pos_set(StorePos *p, const uint8 *key, uint32 len, bool after)
{
	p->buf.len = 0;
	if (p->buf.cap < len)
		art_buf_reserve(&p->buf, len);
	if (len > 0)
		memcpy(p->buf.data, key, len);
	p->buf.len = len;
	p->after = after;
}

static inline uint64
store_entry_tid(const StoreEntry *e)
{
	const uint8 *t = e->key + e->len - AX_TID_BYTES;
	uint64		tid = 0;

	for (int i = 0; i < AX_TID_BYTES; i++)
		tid = (tid << 8) | t[i];
	return tid;
}

static inline uint64
abbrev_of(const uint8 *key, uint32 len)
{
	uint64		a = 0;

	for (uint32 i = 0; i < 8; i++)
		a = (a << 8) | (i < len ? key[i] : 0);
	return a;
}

/* Order of two entries: by the eight bytes at hand, then by the rest. */
static inline int
item_compare(const StoreItem *a, const StoreItem *b, const ArtStore *s)
{
	uint32		len;
	int			c;

	if (unlikely(s->kd->compared))
		return art_key_cmp(s->kd, a->entry->key, a->entry->len,
						   b->entry->key, b->entry->len, false, true);
	if (a->abbrev != b->abbrev)
		return a->abbrev < b->abbrev ? -1 : 1;
	len = Min(a->entry->len, b->entry->len);
	c = memcmp(a->entry->key, b->entry->key, len);
	if (c != 0)
		return c;
	return a->entry->len < b->entry->len ? -1 : a->entry->len > b->entry->len;
}

#define ST_SORT store_sort_items
#define ST_ELEMENT_TYPE StoreItem
#define ST_COMPARE(a, b, s) item_compare(a, b, s)
#define ST_COMPARE_ARG_TYPE const ArtStore
#define ST_SCOPE static
#define ST_DECLARE
#define ST_DEFINE
#define ST_CHECK_FOR_INTERRUPTS
#include "lib/sort_template.h"

/* ---- begin and end ---- */

/*
 * An empty store that covers nothing.  Everything of it lives in a child of
 * cxt, until art_store_free.
 */
ArtStore *
art_store_create(const ArtKeyDesc *kd, MemoryContext cxt)
{
	MemoryContext own = AllocSetContextCreate(cxt, "art store",
											  ALLOCSET_SMALL_SIZES);
	ArtStore   *s = MemoryContextAllocZero(own, sizeof(ArtStore));

	s->kd = kd;
	s->cxt = own;
	s->data = AllocSetContextCreate(own, "art store entries",
									ALLOCSET_DEFAULT_SIZES);
	pos_init(&s->lo, own);
	pos_init(&s->hi, own);
	pos_init(&s->start, own);
	pos_init(&s->limit, own);
	pos_init(&s->from, own);
	pos_init(&s->to, own);
	pos_init(&s->last, own);
	art_store_empty(s);
	return s;
}

/*
 * Throw the entries away; it covers nothing then.
 */
void
art_store_empty(ArtStore *s)
{
	if (s->sort)
		tuplesort_end(s->sort);
	if (s->csort)
		art_sort_end(s->csort);
	if (s->file)
		BufFileClose(s->file);
	MemoryContextReset(s->data);
	s->sort = NULL;
	s->csort = NULL;
	s->file = NULL;
	s->scratch = NULL;
	s->scratch_size = 0;
	s->items = NULL;
	s->nitems = s->items_cap = 0;
	s->chunks = NULL;
	s->bytes = 0;
	s->blocks = NULL;
	s->nblocks = s->blocks_cap = 0;
	s->block = NULL;
	s->block_size = 0;
	s->filling = s->window = s->limited = false;

	pos_set(&s->last, NULL, 0, false);
	/* nothing lies between the end and the beginning */
	pos_set(&s->from, NULL, 0, true);
	pos_set(&s->to, NULL, 0, false);
}

/*
 * Free everything.
 */
void
art_store_free(ArtStore *s)
{
	art_store_empty(s);
	MemoryContextDelete(s->cxt);
}

/*
 * Begin to fill it anew, with entries between lo and hi.  If they are too many
 * and spill is false, it keeps those that come first behind "start" (before
 * it, when backward).
 */
void
art_store_fill(ArtStore *s, const ax_bound *lo, const ax_bound *hi,
			   const ax_bound *start, bool backward, bool spill)
{
	art_store_empty(s);
	pos_set(&s->lo, lo->key, lo->len, lo->after);
	pos_set(&s->hi, hi->key, hi->len, hi->after);
	pos_set(&s->start, start->key, start->len, start->after);
	s->backward = backward;
	s->spill = spill;
	s->budget = (Size) work_mem * 1024;
	s->filling = true;
}

/* ---- filling ---- */

/*
 * Room for an entry, in the last chunk or a new one.
 */
static StoreEntry *
chunk_room(ArtStore *s, uint32 len)
{
	Size		need = ENTRY_SIZE(len);
	StoreChunk *c = s->chunks;
	StoreEntry *e;

	if (c == NULL || c->size - c->used < need)
	{
		Size		size = c == NULL ? STORE_CHUNK_MIN : Min(c->size * 2, STORE_CHUNK_MAX);

		size = Max(size, need);
		c = MemoryContextAllocHuge(s->data, offsetof(StoreChunk, data) + size);
		c->size = size;
		c->used = 0;
		c->next = s->chunks;
		s->chunks = c;
	}
	e = (StoreEntry *) (c->data + c->used);
	c->used += need;
	e->len = len;
	return e;
}

/* Free a chain of chunks. */
static void
free_chunks(StoreChunk *c)
{
	while (c)
	{
		StoreChunk *next = c->next;

		pfree(c);
		c = next;
	}
}

/* One item more; the entry's key is there. */
static void
item_add(ArtStore *s, StoreEntry *e)
{
	if (s->nitems == s->items_cap)
	{
		Size		cap = s->items_cap == 0 ? 32 : s->items_cap * 2;

		if (s->items == NULL)
			s->items = MemoryContextAllocHuge(s->data, cap * sizeof(StoreItem));
		else
			s->items = repalloc_huge(s->items, cap * sizeof(StoreItem));
		s->items_cap = cap;
	}
	s->items[s->nitems].abbrev = abbrev_of(e->key, e->len);
	s->items[s->nitems].entry = e;
	s->nitems++;
	s->bytes += ENTRY_SIZE(e->len) + sizeof(StoreItem);
}

/*
 * Sort the items; the same one twice is one.
 */
static void
sort_items(ArtStore *s)
{
	Size		n = 0;

	store_sort_items(s->items, s->nitems, s);
	for (Size i = 0; i < s->nitems; i++)
	{
		if (n > 0 && item_compare(&s->items[n - 1], &s->items[i], s) == 0)
			s->bytes -= ENTRY_SIZE(s->items[i].entry->len) + sizeof(StoreItem);
		else
			s->items[n++] = s->items[i];
	}
	s->nitems = n;
}

/* Give an entry to the sort that spills. */
static void
sort_put(ArtStore *s, const uint8 *key, uint32 len)
{
	Size		need = VARHDRSZ + (Size) len;

	if (s->csort)
	{
		art_sort_add(s->csort, key, len);
		return;
	}
	if (s->scratch_size < need)
	{
		if (s->scratch)
			pfree(s->scratch);
		s->scratch_size = Max(need, 256);
		s->scratch = MemoryContextAlloc(s->data, s->scratch_size);
	}
	SET_VARSIZE(s->scratch, need);
	memcpy(VARDATA(s->scratch), key, len);
	tuplesort_putdatum(s->sort, PointerGetDatum(s->scratch), false);
}

/*
 * Too many for memory, and a file may be had: from here on they go to
 * tuplesort.
 */
static void
go_to_sort(ArtStore *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->data);

	if (s->kd->compared)
		s->csort = art_sort_begin(s->kd, true, s->budget, s->data);
	else
	{
		TypeCacheEntry *t = lookup_type_cache(BYTEAOID, TYPECACHE_LT_OPR);

		s->sort = tuplesort_begin_datum(BYTEAOID, t->lt_opr, InvalidOid, false,
										work_mem, NULL, TUPLESORT_NONE);
	}
	MemoryContextSwitchTo(old);
	pfree(s->items);
	s->items = NULL;
	s->nitems = s->items_cap = 0;
	while (s->chunks)
	{
		StoreChunk *c = s->chunks;

		CHECK_FOR_INTERRUPTS();
		for (Size at = 0; at < c->used;)
		{
			StoreEntry *e = (StoreEntry *) (c->data + at);

			sort_put(s, e->key, e->len);
			at += ENTRY_SIZE(e->len);
		}
		s->chunks = c->next;
		pfree(c);
	}
	s->bytes = 0;
}

/* Is the entry one of the window, as far as that is known? */
static bool
in_window(ArtStore *s, const uint8 *key, uint32 len)
{
	ax_bound	start = pos_bound(&s->start);
	ax_bound	limit;

	if (key_behind(s, key, len, &start) == s->backward)
		return false;
	if (!s->limited)
		return true;
	limit = pos_bound(&s->limit);
	return key_behind(s, key, len, &limit) == s->backward;
}

/*
 * Too many for memory, and no file.  Leave out the entries outside the window,
 * and if it still has too many, all but its first half.  At least one entry
 * stays.
 */
static void
shrink_window(ArtStore *s)
{
	StoreItem  *items;
	StoreChunk *chunks;
	Size		n = 0;
	Size		first;
	Size		bytes = 0;

	s->window = true;
	sort_items(s);
	for (Size i = 0; i < s->nitems; i++)
	{
		StoreItem  *item = &s->items[i];

		if (in_window(s, item->entry->key, item->entry->len))
		{
			s->items[n++] = *item;
			bytes += ENTRY_SIZE(item->entry->len) + sizeof(StoreItem);
		}
	}
	s->nitems = n;
	first = 0;
	if (bytes > s->budget / 2)
	{
		/* from the far end, until half is left */
		while (n - first > 1 && bytes > s->budget / 2)
		{
			StoreItem  *item = s->backward ? &s->items[first++] : &s->items[--n];

			bytes -= ENTRY_SIZE(item->entry->len) + sizeof(StoreItem);
		}
		if (n - first < s->nitems)
		{
			StoreEntry *last = s->items[s->backward ? first : n - 1].entry;

			pos_set(&s->limit, last->key, last->len, !s->backward);
			s->limited = true;
		}
	}

	/* copied, so that the rest can be freed */
	items = s->items;
	chunks = s->chunks;
	s->items = NULL;
	s->nitems = s->items_cap = 0;
	s->chunks = NULL;
	s->bytes = 0;
	for (Size i = first; i < n; i++)
	{
		StoreEntry *e = chunk_room(s, items[i].entry->len);

		memcpy(e->key, items[i].entry->key, items[i].entry->len);
		item_add(s, e);
	}
	pfree(items);
	free_chunks(chunks);
}

/*
 * Add an entry: a key without its TID, and the TID.  The same one may come
 * more than once.
 */
void
art_store_add(ArtStore *s, const uint8 *key, uint32 keylen, uint64 tid)
{
	uint32		len = keylen + AX_TID_BYTES;
	StoreEntry *e;
	ax_bound	b;

	/* a bound may be as long as a key with its TID, so these are asked whole */
	e = chunk_room(s, len);
	memcpy(e->key, key, keylen);
	ax_put_tid(e->key + keylen, tid);

	b = pos_bound(&s->lo);
	if (!key_behind(s, e->key, len, &b))
		goto skip;
	b = pos_bound(&s->hi);
	if (key_behind(s, e->key, len, &b))
		goto skip;
	if (s->window && !in_window(s, e->key, len))
		goto skip;
	if (s->sort || s->csort)
	{
		sort_put(s, e->key, len);
		goto skip;
	}

	item_add(s, e);
	if (s->bytes > s->budget && s->nitems > 1)
	{
		if (s->spill)
			go_to_sort(s);
		else
			shrink_window(s);
	}
	return;

skip:
	s->chunks->used -= ENTRY_SIZE(len);
}

/* ---- the file ---- */

/* Write the block that was collected in s->block. */
static void
write_store_block(ArtStore *s, StoreBlock *b)
{
	BufFileTell(s->file, &b->fileno, &b->offset);
	BufFileWrite(s->file, s->block, b->bytes);
}

/*
 * A new block that begins with this key; prev is the last one of the block
 * before.
 */
static StoreBlock *
new_block(ArtStore *s, const uint8 *key, uint32 len,
		  const uint8 *prev, uint32 prevlen)
{
	StoreBlock *b;

	if (s->nblocks == s->blocks_cap)
	{
		s->blocks_cap = s->blocks_cap == 0 ? 64 : s->blocks_cap * 2;
		if (s->blocks == NULL)
			s->blocks = MemoryContextAllocHuge(s->data, s->blocks_cap * sizeof(StoreBlock));
		else
			s->blocks = repalloc_huge(s->blocks, s->blocks_cap * sizeof(StoreBlock));
	}
	b = &s->blocks[s->nblocks++];
	b->n = 0;
	b->bytes = 0;
	b->seplen = 0;
	if (b != s->blocks && s->kd->compared)
		b->seplen = len;		/* no shorter one is known */
	else if (b != s->blocks)
	{
		uint32		common = 0;

		while (common < len && common < prevlen && key[common] == prev[common])
			common++;
		b->seplen = Min(common + 1, len);
	}
	b->sep = MemoryContextAlloc(s->data, Max(b->seplen, 1));
	memcpy(b->sep, key, b->seplen);
	return b;
}

/* The next of the sorted entries; *d is to be freed, if not NULL. */
static bool
sort_get(ArtStore *s, const uint8 **key, uint32 *len, void **d)
{
	Datum		datum;
	bool		isnull;

	*d = NULL;
	if (s->csort)
		return art_sort_next(s->csort, key, len);
	if (!art_tuplesort_getdatum(s->sort, &datum, &isnull))
		return false;
	*d = DatumGetPointer(datum);
	*key = (const uint8 *) VARDATA_ANY(*d);
	*len = VARSIZE_ANY_EXHDR(*d);
	return true;
}

/*
 * Read the sorted entries and write them to the file, block by block.
 */
static void
write_file(ArtStore *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->data);
	StoreBlock *b = NULL;
	Size		most = STORE_BLOCK; /* bytes of the block */
	ArtBuf		prev;
	const uint8 *key;
	uint32		len;
	void	   *d;

	if (s->csort)
		art_sort_perform(s->csort);
	else
		tuplesort_performsort(s->sort);
	s->file = BufFileCreateTemp(false);
	art_buf_init(&prev, s->data, 256);

	while (sort_get(s, &key, &len, &d))
	{
		Size		need = ENTRY_SIZE(len);

		CHECK_FOR_INTERRUPTS();
		if (s->nblocks == 0 || len != prev.len || memcmp(prev.data, key, len) != 0)
		{
			if (b == NULL || b->bytes + need > most)
			{
				if (b)
					write_store_block(s, b);
				b = new_block(s, key, len, prev.data, prev.len);
				most = Min((Size) STORE_SEPARATORS * b->seplen, Max(STORE_BLOCK_MOST, s->budget));
				most = Max(most, Max(STORE_BLOCK, need));
				if (s->block_size < most)
				{
					if (s->block)
						pfree(s->block);
					s->block = MemoryContextAllocHuge(s->data, most);
					s->block_size = most;
				}
			}
			memset(s->block + b->bytes + need - sizeof(uint32), 0, sizeof(uint32));
			((StoreEntry *) (s->block + b->bytes))->len = len;
			memcpy(((StoreEntry *) (s->block + b->bytes))->key, key, len);
			b->bytes += need;
			b->n++;
			prev.len = 0;
			if (prev.cap < len)
				art_buf_reserve(&prev, len);
			memcpy(prev.data, key, len);
			prev.len = len;
		}
		if (d)
			pfree(d);
	}
	if (b)
		write_store_block(s, b);
	if (s->csort)
		art_sort_end(s->csort);
	else
		tuplesort_end(s->sort);
	s->sort = NULL;
	s->csort = NULL;
	pfree(prev.data);
	s->loaded = s->nblocks;		/* none */
	MemoryContextSwitchTo(old);
}

/*
 * Make the items those of this block.
 */
static void
load_block(ArtStore *s, Size i)
{
	StoreBlock *b = &s->blocks[i];
	char	   *p;

	if (s->loaded == i)
		return;
	s->loaded = s->nblocks;		/* until it is there */
	if (s->block_size < b->bytes)
	{
		if (s->block)
			pfree(s->block);
		s->block = NULL;
		s->block_size = 0;
		s->block = MemoryContextAllocHuge(s->data, b->bytes);
		s->block_size = b->bytes;
	}
	if (BufFileSeek(s->file, b->fileno, b->offset, SEEK_SET) != 0 ||
		BufFileRead(s->file, s->block, b->bytes) != b->bytes)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from temporary file of a scan without its art index: %m")));

	s->nitems = 0;
	p = s->block;
	for (uint32 k = 0; k < b->n; k++)
	{
		StoreEntry *e = (StoreEntry *) p;

		item_add(s, e);
		p += ENTRY_SIZE(e->len);
	}
	s->loaded = i;
}

/*
 * All entries were added: now it can be read.
 */
void
art_store_finish(ArtStore *s)
{
	s->filling = false;
	if (s->sort || s->csort)
	{
		/* what was left of the chunks is not needed for anything */
		free_chunks(s->chunks);
		s->chunks = NULL;
		write_file(s);
	}
	else
		sort_items(s);

	pos_set(&s->from, s->lo.buf.data, s->lo.buf.len, s->lo.after);
	pos_set(&s->to, s->hi.buf.data, s->hi.buf.len, s->hi.after);
	if (s->window)
	{
		StorePos   *near = s->backward ? &s->to : &s->from;
		StorePos   *far = s->backward ? &s->from : &s->to;

		pos_set(near, s->start.buf.data, s->start.buf.len, s->start.after);
		if (s->limited)
			pos_set(far, s->limit.buf.data, s->limit.buf.len, s->limit.after);
	}
}

/* ---- reading ---- */

/* The first item of those at hand that lies behind the position. */
static Size
first_behind(ArtStore *s, const ax_bound *p)
{
	Size		l = 0;
	Size		h = s->nitems;

	while (l < h)
	{
		Size		m = l + (h - l) / 2;
		StoreEntry *e = s->items[m].entry;

		if (key_behind(s, e->key, e->len, p))
			h = m;
		else
			l = m + 1;
	}
	return l;
}

/*
 * The block in which the neighbours of a position are: the last one whose
 * separator is not behind it.
 */
static Size
block_before(ArtStore *s, const ax_bound *p)
{
	Size		l = 0;
	Size		h = s->nblocks;

	while (h - l > 1)
	{
		Size		m = l + (h - l) / 2;
		ax_bound	sep = {s->blocks[m].sep, s->blocks[m].seplen, false};

		if (art_bound_cmp(s->kd, &sep, p) <= 0)
			l = m;
		else
			h = m;
	}
	return l;
}

/*
 * Does the store have what lies between lo and hi, from the end where a scan
 * begins?  *whole: all of it.
 */
static bool
store_covers(ArtStore *s, const ax_bound *lo, const ax_bound *hi, bool backward, bool *whole)
{
	ax_bound	from = pos_bound(&s->from);
	ax_bound	to = pos_bound(&s->to);

	if (!backward)
	{
		*whole = art_bound_cmp(s->kd, hi, &to) <= 0;
		return art_bound_cmp(s->kd, &from, lo) <= 0 &&
			(*whole || art_bound_cmp(s->kd, lo, &to) < 0);
	}
	*whole = art_bound_cmp(s->kd, &from, lo) <= 0;
	return art_bound_cmp(s->kd, hi, &to) <= 0 &&
		(*whole || art_bound_cmp(s->kd, hi, &from) > 0);
}

/*
 * The entry at place *i of block *blk, and past it.  NULL: the store has no more,
 * or, *behind, what comes next lies behind hi.
 */
static inline StoreEntry *
next_entry(ArtStore *s, Size *blk, Size *i, const ax_bound *hi, bool *behind)
{
	Size		nblocks = s->file ? s->nblocks : 1;
	StoreEntry *e;

	while (*i == s->nitems && *blk + 1 < nblocks)
	{
		load_block(s, ++*blk);
		*i = 0;
	}
	if (*i == s->nitems)
		return NULL;
	e = s->items[*i].entry;
	*behind = key_behind(s, e->key, e->len, hi);
	if (*behind)
		return NULL;
	++*i;
	return e;
}

/*
 * The entry before place *i of block *blk, and past it.  NULL: the store has no
 * more, or, *before, what comes next does not lie behind lo.
 */
static inline StoreEntry *
previous_entry(ArtStore *s, Size *blk, Size *i, const ax_bound *lo, bool *before)
{
	StoreEntry *e;

	while (*i == 0 && *blk > 0)
	{
		load_block(s, --*blk);
		*i = s->nitems;
	}
	if (*i == 0)
		return NULL;
	e = s->items[*i - 1].entry;
	*before = !key_behind(s, e->key, e->len, lo);
	if (*before)
		return NULL;
	--*i;
	return e;
}

/* Is the item that entry? */
static inline bool
item_is(const ArtStore *s, Size i, const ax_bound *p)
{
	const StoreEntry *e = s->items[i].entry;

	return e->len == p->len && memcmp(e->key, p->key, p->len) == 0;
}

/*
 * Of a doubtful class: the entry from which a scan goes on, by its bytes.  It is where it
 * was, or somewhere.  False: nowhere; or it is no entry.
 */
static bool
find_again(ArtStore *s, const ax_bound *p, Size *blk, Size *at)
{
	if (!art_key_is_entry(s->kd, p->key, p->len))
		return false;
	if (s->last.buf.len > 0)
	{
		*blk = s->last_blk;
		*at = s->last_at;
		if (s->file)
			load_block(s, *blk);
		if (*at < s->nitems && item_is(s, *at, p))
			return true;
	}
	for (*blk = 0; *blk < (s->file ? s->nblocks : 1); ++*blk)
	{
		CHECK_FOR_INTERRUPTS();
		if (s->file)
			load_block(s, *blk);
		for (*at = 0; *at < s->nitems; ++*at)
		{
			if (item_is(s, *at, p))
				return true;
		}
	}
	return false;
}

/*
 * A batch: in and out as ax_scan's, from what the store has.  AX_OK;
 * AX_BUFFER; AX_STALE when the store does not cover the batch's beginning, and
 * must be filled again from there.
 */
ax_status
art_store_scan(ArtStore *s, ax_batch *b)
{
	ax_bound	lo = safe_bound(&b->lo);
	ax_bound	hi = safe_bound(&b->hi);
	bool		whole;
	Size		blk = 0;
	Size		i;
	uint32		keybytes = 0;

	Assert(!s->filling);

	if (!store_covers(s, &lo, &hi, b->backward, &whole))
		return AX_STALE;

	b->n = 0;
	b->lastlen = 0;
	b->exhausted = false;
	if (b->want_keys)
		b->key_off[0] = 0;

	if (unlikely(s->kd->doubtful) && find_again(s, b->backward ? &hi : &lo, &blk, &i))
		i += (b->backward ? hi.after : lo.after) ? 1 : 0;
	else
	{
		blk = 0;
		if (s->file)
		{
			blk = block_before(s, b->backward ? &hi : &lo);
			load_block(s, blk);
		}
		i = first_behind(s, b->backward ? &hi : &lo);
	}

	for (;;)
	{
		StoreEntry *e;

		if (b->n == b->max)
			break;
		e = b->backward ? previous_entry(s, &blk, &i, &lo, &b->exhausted) :
			next_entry(s, &blk, &i, &hi, &b->exhausted);
		if (e == NULL)
		{
			b->exhausted |= whole;
			break;
		}

		if (e->len > b->lastkey_size ||
			(b->want_keys && e->len > b->keybuf_size - keybytes))
		{
			if (b->n > 0)
				break;			/* the next batch begins with it */
			b->need_bytes = e->len;
			return AX_BUFFER;
		}
		if (b->want_keys)
		{
			memcpy(b->keybuf + keybytes, e->key, e->len);
			keybytes += e->len;
			b->key_off[b->n + 1] = keybytes;
		}

		/* another block may take this one's place before the end */
		memcpy(b->lastkey, e->key, e->len);
		b->lastlen = e->len;
		b->tids[b->n++] = store_entry_tid(e);
	}

	if (b->n == 0 && !b->exhausted)
		return AX_STALE;		/* what comes first lies beyond */
	if (unlikely(s->kd->doubtful) && b->n > 0)
	{
		pos_set(&s->last, b->lastkey, b->lastlen, false);
		s->last_blk = blk;
		s->last_at = b->backward ? i : i - 1;
	}
	return AX_OK;
}
