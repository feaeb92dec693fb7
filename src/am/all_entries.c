/*
 * all_entries.c
 *	  All entries of a structure with their keys, in key order, a batch at a
 *	  time: for VACUUM and artidx_check.
 *
 * Of a doubtful class the next batch goes on from an entry that is found by its bytes.
 * VACUUM may remove each that it got.  So the last one of a batch is handed out as the
 * first of the next.
 *
 * src/area/README.md: VACUUM and readers
 * src/views/README.md: The check
 */
#include "postgres.h"

#include "am/am.h"
#include "area/area.h"
#include "area/tree_calls.h"

#define ART_PASS_PIECE	32768	/* entries copied in one epoch */

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

void
art_pass_begin(ArtPass *w)
{
	w->n = 0;
	w->done = false;
	w->from.len = w->last.len = 0;
	w->at_from = w->at_last = false;
}

/*
 * Up to ART_PASS_PIECE entries more, behind "from", if there is room for them.
 *
 * Epoch: enters and leaves, once a try; waits between two.
 */
static ax_status
next_piece(ArtPass *w, ax_tree *tree, uint64 gen)
{
	const uint32 n0 = w->n;
	const uint32 used = n0 > 0 ? w->key_off[n0] : 0;

	if (w->last.len > 0)
	{
		ArtBuf		swap = w->from;

		w->from = w->last;
		w->last = swap;
		w->at_from = w->at_last;
	}
	for (;;)
	{
		ax_batch	b = {0};
		ax_status	s;

		w->last.len = 0;
		b.lo.key = w->from.data;
		b.lo.len = w->from.len;
		b.lo.after = w->from.len > 0 && !w->at_from;
		b.hi.after = true;
		b.want_keys = true;
		b.max = Min(w->max - n0, ART_PASS_PIECE);
		b.tids = w->tids + n0;
		b.key_off = w->key_off + n0;
		b.keybuf = w->keys.data + used;
		b.keybuf_size = w->keys.cap - used;
		b.lastkey = w->last.data;
		b.lastkey_size = w->last.cap;
		s = art_tree_scan(w->kd, w->cx, tree, gen, &b);
		if (s == AX_BUSY)
			art_busy();
		else if (s == AX_BUFFER && n0 == 0)
		{
			w->keys.len = 0;
			art_buf_reserve(&w->keys, b.need_bytes);
			art_buf_reserve(&w->last, b.need_bytes);
		}
		else if (s == AX_BUFFER || (s == AX_OK && b.n == 0))
		{
			/* what is there is a batch; the next one goes on from here */
			if (n0 > 0)
				w->key_off[n0] = used;
			w->done = b.exhausted && s == AX_OK;
			return AX_OK;
		}
		else
		{
			if (s == AX_OK)
			{
				for (uint32 i = 0; used > 0 && i <= b.n; i++)
					b.key_off[i] += used;
				w->done = b.exhausted;
				w->last.len = b.lastlen;
				w->at_last = w->kd->doubtful && !w->done && b.n > 1;
				w->n += w->at_last ? b.n - 1 : b.n;
			}
			return s;
		}
	}
}

/*
 * A large batch is copied in pieces, lest an epoch, or a coarse latch, be held for long.
 *
 * Epoch: enters and leaves, once a try of each piece; waits between two.
 * Returns: as ax_scan, but for AX_BUSY and AX_BUFFER; after AX_STALE it can go on
 * in another structure.
 */
ax_status
art_pass_next(ArtPass *w, ax_tree *tree, uint64 gen)
{
	uint32		before;
	ax_status	s;

	w->n = 0;
	do
	{
		before = w->n;
		s = next_piece(w, tree, gen);
	} while (s == AX_OK && !w->done && w->n - before == ART_PASS_PIECE && w->n < w->max);
	return s;
}

void
art_pass_end(ArtPass *w)
{
	pfree(w->tids);
	pfree(w->key_off);
	pfree(w->keys.data);
	pfree(w->last.data);
	pfree(w->from.data);
}
