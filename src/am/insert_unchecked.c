/*
 * insert_unchecked.c
 *	  The insert that checks nothing.
 *
 * aminsert ends here where nothing is to be unique (insert.c).  So does the
 * unique check of an index that was never valid (unique.c).
 *
 * src/live/README.md: Residency
 */
#include "postgres.h"

#include "am/am.h"
#include "area/area.h"
#include "area/crash_memory.h"
#include "area/tree_calls.h"
#include "build/build.h"
#include "limits/limits.h"

void
art_insert_retry(Relation index, ArtEntry *e, uint64 gen, ax_status s)
{
	switch (s)
	{
		case AX_BUSY:
			art_busy();
			break;
		case AX_STALE:
			break;				/* the state has changed: read it again */
		case AX_NOMEM:

			/*
			 * Others give way to a constraint.  When nobody does, an insert
			 * beats an index: it is sealed, and the state read again.  Not a
			 * unique one, of which this is a row with a NULL: the next insert
			 * would need it.
			 */
			if (art_make_room(index, e, gen,
							  index->rd_index->indisunique ||
							  index->rd_index->indisexclusion ?
							  ART_ROOM_UNIQUE : ART_ROOM_INSERT))
				break;
			if (index->rd_index->indisunique && !art_never_valid(index, e))
				art_report_nomem(index);
			art_seal(index, e, gen);
			break;
		default:
			art_unexpected(index, s, "an insert");
	}
}

void
art_insert_plain(Relation index, ArtInsertState *st)
{
	ax_ctx	   *cx;
	ax_tree    *tree;
	const uint8 *key = st->key.data;
	uint32		len = st->keylen + AX_TID_BYTES;

	if (st->entry == NULL)
	{
		st->entry = art_relcache_entry(index);
		if (st->entry == NULL)
			return;
	}
	cx = art_ctx();
	tree = art_entry_tree(st->entry);

	for (;;)
	{
		uint64		gen;
		ax_status	s;

		switch (art_entry_state(st->entry, &gen))
		{
			case ART_ABSENT:

				/*
				 * The state goes first, and the structure is closed after it, under
				 * the partition lock.  A scan that reads it still must have locked
				 * its pages before art_ssi_inserted() looks at them.
				 */
				if (IsolationIsSerializable())
					(void) art_entry_if_exists(index);
				return;
			case ART_FOLLOWED:

				/* a late sweep would take out what we put in at a place used again */
				art_followed_settle(st->entry);
				continue;
			case ART_BUILDING:
			case ART_READY:
				break;
		}

		if (st->ring)
			art_ring_put(index, st->entry, gen, &key, &len, 1);
		s = art_tree_insert(&st->kd, cx, tree, gen, key, len);

		if (s == AX_OK || s == AX_EXISTS)
			return;
		art_insert_retry(index, st->entry, gen, s);
	}
}
