/*
 * parallel_create.h
 *	  What the two files of a parallel build share (parallel_create.c says how it goes).
 *
 * src/build/README.md: Parallel builds
 */
#ifndef ART_BUILD_PARALLEL_CREATE_H
#define ART_BUILD_PARALLEL_CREATE_H

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"

#include "area/area.h"
#include "build/sorted_run.h"
#include "build/build.h"

#define LONG_LEN		255		/* in the one byte of a length: four follow */
#define NO_TASK			PG_UINT32_MAX
#define ART_TASK_KEY	16		/* memory for a key in a task beside its bytes */

typedef enum Phase
{
	PHASE_SCAN,					/* the table to runs */
	PHASE_LOAD,					/* runs to the tree */
	PHASE_DEAD					/* dead rows of a unique build */
} Phase;

/*
 * In the DSM segment of a parallel build.  Participants believe it: a row's
 * functions run in one process only, and all that is here counts the bytes made
 * of it.
 */
typedef struct Shared
{
	/* the leader sets them before the workers come */
	Oid			heapid;
	Oid			indexid;
	bool		concurrent;
	bool		unique;
	int			participants;	/* asked for, the leader included */
	ArtEntry   *entry;
	uint64		gen;

	SharedFileSet files;
	ConditionVariable cv;
	slock_t		mutex;			/* any participant, under it, down to "stale" */
	Phase		phase;
	int			scanned;		/* participants that are through with it */
	int			loaded;
	double		heap_rows;
	uint64		rows;
	uint64		bytes;			/* of their keys */
	bool		broken_hot;
	bool		nomem;
	bool		stale;

	/* the leader sets them before PHASE_LOAD, and all read them after it */
	bool		leader_loads;	/* alone */
	uint32		ntasks;
	uint64		directory;		/* where the file of tasks has their places */

	/* any participant, atomically */
	pg_atomic_uint32 next_task;
	pg_atomic_uint64 done;		/* keys loaded */

	/*
	 * By participant, which alone writes its own: what found no memory.  The
	 * leader reads it when that one is through, and does it again.
	 */
	struct
	{
		uint32		task;		/* NO_TASK: none */
		uint64		dead;		/* rows in its file */
	}			unfinished[FLEXIBLE_ARRAY_MEMBER];
} Shared;

/* One participant, 0 being the leader. */
typedef struct Part
{
	Shared	   *sh;
	int			number;
	bool		leads;
	Relation	heap;
	Relation	index;
	ArtKeyDesc *kd;
	ArtRun	   *run;
	MemoryContext cxt;

	/* writing */
	BufFile    *data;
	BufFile    *sample;
	uint64		off;			/* bytes in data */
	uint32		nruns;
	uint8	   *buf;
	Size		fill;

	/* loading */
	BufFile   **files;			/* everybody's data; NULL: has none */
	int			nfiles;
	BufFile    *tasks;
	/* of a task; kept for the next */
	uint8	   *windows;		/* on the runs */
	Size		windows_size;
	uint8	   *batch;			/* keys that are merged */
	Size		batch_size;
	const uint8 **keys;			/* there */
	uint32	   *lens;
	uint64		cap;
} Part;

/* A sampled key: in a file followed by its first bytes, or all. */
typedef struct Mark
{
	uint64		off;			/* of its record */
	uint64		nth;			/* key of its run */
	uint32		full;			/* the key's bytes */
	uint32		len;			/* those that are there */
	bool		end;			/* no record begins here: the last key of the run,
								 * and the run's end */
} Mark;

/* One task's part of one run. */
typedef struct Piece
{
	uint64		begin;
	uint64		end;
	uint32		file;
} Piece;

typedef struct TaskHead
{
	uint32		npieces;
	uint32		skip;			/* bytes that all keys share */
	uint32		lo_len;			/* 0: from the first key; at most: to the last */
	uint32		hi_len;
} TaskHead;

/* Bytes of a key in a file: its length, in one byte or in five, and the key. */
static inline Size
record_size(uint32 len)
{
	return len + (len < LONG_LEN ? 1 : 1 + sizeof(uint32));
}

/* ---- a merge of sorted keys ---- */

typedef struct MergeHead
{
	uint64		prefix;			/* 8 bytes behind what all share */
	const uint8 *key;
	uint32		len;
	int			from;
} MergeHead;

typedef struct Merge
{
	uint32		skip;
	int			n;
	MergeHead  *head;			/* a heap, the smallest first */
} Merge;

static inline bool
merge_less(const Merge *m, const MergeHead *a, const MergeHead *b)
{
	uint32		skip = m->skip + sizeof(uint64);
	uint32		len = Min(a->len, b->len);

	if (a->prefix != b->prefix)
		return a->prefix < b->prefix;
	return len > skip && memcmp(a->key + skip, b->key + skip, len - skip) < 0;
}

/* Put the heap's first element, which has a new key, where it belongs. */
static inline void
merge_down(Merge *m)
{
	MergeHead	h = m->head[0];
	int			i = 0;

	for (;;)
	{
		int			c = 2 * i + 1;

		if (c >= m->n)
			break;
		if (c + 1 < m->n && merge_less(m, &m->head[c + 1], &m->head[c]))
			c++;
		if (!merge_less(m, &m->head[c], &h))
			break;
		m->head[i] = m->head[c];
		i = c;
	}
	m->head[i] = h;
}

/* Add a key to the heap. */
static inline void
merge_add(Merge *m, const uint8 *key, uint32 len, int from)
{
	MergeHead	h = {art_key_head(key, len, m->skip), key, len, from};
	int			i = m->n++;

	while (i > 0 && merge_less(m, &h, &m->head[(i - 1) / 2]))
	{
		m->head[i] = m->head[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	m->head[i] = h;
}

/* The smallest goes; key NULL: nothing follows it where it came from. */
static inline void
merge_next(Merge *m, const uint8 *key, uint32 len)
{
	if (key == NULL)
		m->head[0] = m->head[--m->n];
	else
	{
		m->head[0].prefix = art_key_head(key, len, m->skip);
		m->head[0].key = key;
		m->head[0].len = len;
	}
	if (m->n > 1)
		merge_down(m);
}

/* parallel_tasks.c */
extern BufFile *art_pfile_create(Part *p, const char *what, int number);
extern BufFile *art_pfile_open(Part *p, const char *what, int number);
extern void art_pfile_read(Part *p, BufFile *f, void *to, Size n);
extern void art_pfile_seek(Part *p, BufFile *f, uint64 off);
extern void art_pbuild_tasks(Part *p, int participants);

#endif							/* ART_BUILD_PARALLEL_CREATE_H */
