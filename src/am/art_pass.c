/*
 * art_pass.c
 *	  All entries of a structure with their keys, in key order, a batch at a
 *	  time: for VACUUM and artidx_check.
 *
 * src/README.md: VACUUM and readers
 * src/README.md: The check
 */
#include "postgres.h"

#include "am/am.h"
#include "area/area.h"
#include "area/art_tree.h"

/*
 * Buffers for batches of up to max entries, in the current memory context; for
 * keybuf bytes of keys to begin with.  A pass begins by art_pass_begin.
 */
void
art_pass_init(ArtPass *w, const ArtKeyDesc *kd, ax_ctx *cx, uint32 max, uint32 keybuf)
{
	w->kd = kd;
	w->cx = cx;
	w->max = max;
	w->tids = palloc(max * sizeof(uint64));
	w->key_off = palloc((max + 1) * sizeof(uint32));
	art_buf_init(&w->keys, CurrentMemoryContext, keybuf);
	art_buf_init(&w->last, CurrentMemoryContext, 256);
	art_buf_init(&w->from, CurrentMemoryContext, 256);
	art_pass_begin(w);
}

/*
 * From the first entry on.
 */
void
art_pass_begin(ArtPass *w)
{
	w->n = 0;
	w->done = false;
	w->from.len = w->last.len = 0;
}

/*
 * The next batch: n entries behind "from", the last one of the batch before, if
 * that has anything.  "done": there is nothing behind it.
 *
 * Epoch: enters and leaves, once a try; waits between two.
 * Returns: as ax_scan, but for AX_BUSY and AX_BUFFER; after AX_STALE it can go on
 * in another structure.
 */
ax_status
art_pass_next(ArtPass *w, ax_tree *tree, uint64 gen)
{
	if (w->last.len > 0)
	{
		ArtBuf		swap = w->from;

		w->from = w->last;
		w->last = swap;
	}
	w->n = 0;
	for (;;)
	{
		ax_batch	b = {0};
		ax_status	s;

		w->last.len = 0;
		b.lo.key = w->from.data;
		b.lo.len = w->from.len;
		b.lo.after = w->from.len > 0;
		b.hi.after = true;
		b.want_keys = true;
		b.max = w->max;
		b.tids = w->tids;
		b.key_off = w->key_off;
		b.keybuf = w->keys.data;
		b.keybuf_size = w->keys.cap;
		b.lastkey = w->last.data;
		b.lastkey_size = w->last.cap;
		s = art_tree_scan(w->kd, w->cx, tree, gen, &b);
		if (s == AX_BUSY)
			art_busy();
		else if (s == AX_BUFFER)
		{
			w->keys.len = 0;
			art_buf_reserve(&w->keys, b.need_bytes);
			art_buf_reserve(&w->last, b.need_bytes);
		}
		else
		{
			if (s == AX_OK)
			{
				w->n = b.n;
				w->done = b.exhausted;
				w->last.len = b.lastlen;
			}
			return s;
		}
	}
}

/*
 * Free the buffers.
 */
void
art_pass_end(ArtPass *w)
{
	pfree(w->tids);
	pfree(w->key_off);
	pfree(w->keys.data);
	pfree(w->last.data);
	pfree(w->from.data);
}
