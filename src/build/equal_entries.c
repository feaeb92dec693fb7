/*
 * equal_entries.c
 *	  The entries whose key columns are equal to given ones.
 *
 * Uniqueness is asked of these: the columns decide, whatever payload (INCLUDE
 * columns, a numeric's scale) lies between them and the TID.
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "area/tree_calls.h"
#include "build/build.h"

/* Without a payload an entry is the columns and its TID. */
static void
put_entry(ArtEqual *q, ArtBuf *buf, uint64 tid)
{
	uint32		len = q->len + AX_TID_BYTES;

	if (buf->data == NULL)
		art_buf_init(buf, CurrentMemoryContext, len);
	buf->len = 0;
	art_buf_reserve(buf, len);
	memcpy(buf->data, q->cols, q->len);
	ax_put_tid(buf->data + q->len, tid);
	buf->len = len;
}

/* An entry is not only the columns and its TID, or may not be equal though it lies between the bounds. */
static inline bool
wants_keys(const ArtKeyDesc *kd)
{
	return kd->payload || kd->doubtful;
}

/* Leave out what is not equal. */
static void
keep_equal(ArtEqual *q)
{
	uint32		n = 0;
	uint32		at = 0;

	for (uint32 i = 0; i < q->n; i++)
	{
		const uint8 *key = q->keys.data + q->key_off[i];
		uint32		len = q->key_off[i + 1] - q->key_off[i];

		if (!art_key_begins(q->kd, key, len, q->cols, q->len))
			continue;
		memmove(q->keys.data + at, key, len);
		q->key_off[n] = at;
		q->tids[n++] = q->tids[i];
		at += len;
	}
	q->key_off[n] = at;
	q->n = n;
}

/* A batch by a scan, behind q->from if that has anything. */
static ax_status
scan_batch(ArtEqual *q)
{
	bool		want_keys = wants_keys(q->kd);

	if (q->last.data == NULL)
		art_buf_init(&q->last, CurrentMemoryContext, 2 * q->len + 256);
	if (want_keys && q->keys.data == NULL)
		art_buf_init(&q->keys, CurrentMemoryContext, 1024);
	for (;;)
	{
		ax_batch	b = {0};
		ax_status	s;

		b.lo.key = q->from.len > 0 ? q->from.data : q->cols;
		b.lo.len = q->from.len > 0 ? q->from.len : q->len;
		b.lo.after = q->from.len > 0;
		b.hi.key = q->cols;
		b.hi.len = q->len;
		b.hi.after = true;
		b.max = q->max;
		b.tids = q->tids;
		b.want_keys = want_keys;
		b.key_off = q->key_off;
		b.keybuf = q->keys.data;
		b.keybuf_size = q->keys.cap;
		b.lastkey = q->last.data;
		b.lastkey_size = q->last.cap;
		s = art_tree_scan(q->kd, q->cx, q->tree, q->gen, &b);
		if (s == AX_BUFFER)
		{
			q->last.len = q->keys.len = 0;
			art_buf_reserve(&q->last, b.need_bytes);
			if (want_keys)
				art_buf_reserve(&q->keys, b.need_bytes);
			continue;
		}
		q->n = s == AX_OK ? b.n : 0;
		q->more = s == AX_OK && !b.exhausted && b.n > 0;
		q->last.len = b.lastlen;
		if (unlikely(q->kd->doubtful))
			keep_equal(q);
		return s;
	}
}

ax_status
art_equal_first(ArtEqual *q, const ArtKeyDesc *kd, ax_tree *tree, uint64 gen,
				const uint8 *cols, uint32 len, uint32 max)
{
	ax_found	f = {.tids = q->tids, .max = max};
	ax_status	s;

	q->kd = kd;
	q->cx = art_ctx();
	q->tree = tree;
	q->gen = gen;
	q->cols = cols;
	q->len = len;
	q->max = max;
	q->n = 0;
	q->more = false;
	memset(&q->keys, 0, sizeof(ArtBuf));
	memset(&q->last, 0, sizeof(ArtBuf));
	memset(&q->from, 0, sizeof(ArtBuf));
	if (unlikely(wants_keys(kd)))
		return scan_batch(q);
	s = art_tree_lookup(kd, q->cx, tree, gen, cols, len, &f);
	q->n = f.n;
	q->more = f.more;
	return s;
}

ax_status
art_equal_next(ArtEqual *q)
{
	if (q->last.len > 0)
	{
		ArtBuf		swap = q->from;

		q->from = q->last;
		q->last = swap;
	}
	else if (q->n > 0)
		put_entry(q, &q->from, q->tids[q->n - 1]);
	return scan_batch(q);
}

ax_status
art_equal_remove(ArtEqual *q, uint32 i)
{
	ArtBuf		entry = {0};
	ax_status	s;

	if (wants_keys(q->kd))
		return art_tree_remove(q->kd, q->cx, q->tree, q->gen,
							   q->keys.data + q->key_off[i],
							   q->key_off[i + 1] - q->key_off[i]);
	put_entry(q, &entry, q->tids[i]);
	s = art_tree_remove(q->kd, q->cx, q->tree, q->gen, entry.data, entry.len);
	pfree(entry.data);
	return s;
}

void
art_equal_end(ArtEqual *q)
{
	if (q->keys.data != NULL)
		pfree(q->keys.data);
	if (q->last.data != NULL)
		pfree(q->last.data);
	if (q->from.data != NULL)
		pfree(q->from.data);
}
