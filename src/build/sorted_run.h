/*
 * sorted_run.h
 *	  A run of encoded keys, as the files that collect, sort and load it see it
 *	  (build.h has what everybody does).
 *
 * src/build/README.md: Builds
 */
#ifndef ART_BUILD_SORTED_RUN_H
#define ART_BUILD_SORTED_RUN_H

#include "access/parallel.h"
#include "port/pg_bswap.h"
#include "storage/buffile.h"

#include "area/area.h"
#include "area/tree_calls.h"
#include "build/build.h"

#define ART_INTERRUPT_EVERY 1024

typedef struct ArtItem
{
	uint64		prefix;			/* short: the column's body, left-aligned;
								 * long: 8 bytes behind the common prefix */
	uint64		rest;			/* short: TID; long: address of the key, whose
								 * length is in the 4 bytes before it */
} ArtItem;

StaticAssertDecl(sizeof(ArtItem) == sizeof(ArtSortItem) &&
				 offsetof(ArtItem, rest) == offsetof(ArtSortItem, key),
				 "an item is one of compared_sort.c's, too");

struct ArtRun
{
	Relation	index;
	Relation	heap;
	const ArtKeyDesc *kd;
	ArtEntry   *entry;
	ax_ctx	   *cx;
	ax_tree    *tree;
	uint64		gen;
	bool		check_unique;
	bool		progress;		/* this process reports CREATE INDEX */
	bool		at_once;		/* CREATE INDEX's: after an error nobody goes on with it */
	bool		loaded;			/* something is in the tree already */
	bool		stale;			/* the generation is gone: nothing matters */
	bool		nomem;			/* no memory is to be had: nothing goes in */
	ArtRoomFor	room;
	bool		brief;			/* the short layout */
	int			fill;
	MemoryContext cxt;
	Size		limit;			/* bytes */
	Size		used;			/* in chunks */
	Size		per_item;		/* an entry's share beside the chunks */

	ArtItem    *items;
	uint64		n;
	uint64		cap;

	/* short */
	uint32		width;			/* body bytes */
	uint64	   *nulls;			/* TIDs of rows whose key is NULL */
	uint64		nnulls;
	uint64		nulls_cap;
	uint8		null_mark;

	/* long */
	uint8	   *chunk;
	Size		chunk_used;
	Size		chunk_size;
	List	   *chunks;
	uint32		common;			/* bytes all keys share */
	uint64		stale_heads;	/* so many items' prefixes are those behind more */
	uint32		min_len;		/* TID included */
	uint32		max_len;

	/* dead rows of a unique build: loaded last, unchecked */
	BufFile    *dead;
	uint64		ndead;

	uint64		entries;		/* in the tree through us */

	/*
	 * A parallel build's, in its first phase: where a sorted run goes instead
	 * of the tree (parallel_create.c).
	 */
	void		(*write) (struct ArtRun *run, const ax_keys *keys);
	void	   *write_arg;
	BufFile    *(*dead_file) (struct ArtRun *run);	/* and its dead rows, for another
													 * to load if need be */
	bool		distinct;		/* in its second: keys handed over later are none
								 * of those in the tree */
};

static inline uint64
art_be64(const uint8 *p)
{
	uint64		v;

	memcpy(&v, p, sizeof(v));
	return pg_ntoh64(v);
}

/*
 * Eight bytes of a key as a number, behind the "skip" that all keys share;
 * zeros behind the key's end.
 */
static inline uint64
art_key_head(const uint8 *key, uint32 len, uint32 skip)
{
	uint64		v = 0;

	if (len >= skip + sizeof(uint64))
		return art_be64(key + skip);
	for (uint32 k = skip; k < len; k++)
		v |= (uint64) key[k] << (56 - 8 * (k - skip));
	return v;
}

/* Length of a long layout's key. */
static inline uint32
art_long_len(uint64 rest)
{
	uint32		len;

	memcpy(&len, (uint8 *) (uintptr_t) rest - sizeof(uint32), sizeof(len));
	return len;
}

/* radix_sort.c */
extern void art_run_sort(ArtRun *run);

/* sorted_run.c */
extern void art_run_check_unique(ArtRun *run, const ax_keys *keys);
extern void art_run_load_keys(ArtRun *run, const ax_keys *keys);
extern bool art_run_find_room(ArtRun *run);
extern void art_run_flush_dead(ArtRun *run);
extern void art_run_release(ArtRun *run);

/* parallel_create.c */
typedef struct ArtPBuilt
{
	double		heap_rows;
	uint64		rows;
	uint64		bytes;			/* of their keys */
	bool		stale;
	bool		nomem;			/* all is checked, but not all is in the tree */
} ArtPBuilt;

/* How many workers a parallel build should ask for.  0: the leader builds alone. */
extern int	art_pbuild_workers(Relation heap, Relation index, const IndexInfo *info);

/*
 * Build with so many workers.  The caller has table and index locked.  False: none can be
 * had, and nothing was done.  The caller's transaction drops the structure when this
 * raises.  Workers that still load then find its generation gone.
 */
extern bool art_pbuild(Relation heap, Relation index, IndexInfo *info, ArtEntry *e,
					   uint64 gen, int workers, ArtPBuilt *out);

/*
 * The main function of a worker, which core calls by its name.  Takes the leader's locks
 * on table and index again, as a member of its lock group.
 */
extern PGDLLEXPORT void art_pbuild_main(dsm_segment *seg, shm_toc *toc);

#endif							/* ART_BUILD_SORTED_RUN_H */
