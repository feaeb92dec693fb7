/*
 * art_memory.c
 *	  When the memory is full: who gives way, sealing, and its end.
 */
#include "artidx.h"

#include "pg/art_pg.h"

/*
 * See artidx.h.
 */
bool
art_make_room(Relation index, ArtEntry *e, uint64 gen, ArtRoomFor what)
{
	return false;
}

/*
 * See artidx.h.
 */
void
art_seal(Relation index, ArtEntry *e, uint64 gen)
{
}
