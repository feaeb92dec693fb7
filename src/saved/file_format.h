/*
 * file_format.h
 *	  The file in which structures outlive a clean shutdown: its layout, and
 *	  what save_at_shutdown.c (which writes and claims it) and load_at_start.c (which reads
 *	  it) know of one another.
 *
 *	  header | section ... | table of the sections
 *
 * A section is one index: all its keys, TIDs included, in order, in blocks that
 * can be checked and decoded one by one.  Within a block each key is
 *
 *	  varint (bytes shared with the key before << 1 | length changes)
 *	  varint length, if it changes
 *	  the bytes that are not shared
 *
 * so that the prefixes of sorted keys, and those of duplicates above all, are
 * not written.  Everything is in the byte order and alignment of the machine:
 * the file never leaves it.
 *
 * A reader believes no byte before its checksum, and no offset or length that
 * leads out of the file, the block or a key.
 *
 * src/saved/README.md: Saved files
 */
#ifndef ART_SAVED_FILE_FORMAT_H
#define ART_SAVED_FILE_FORMAT_H

#include "catalog/pg_control.h"
#include "port/pg_crc32c.h"

#include "area/shared_state.h"

#define ART_SAVED_FILE		"pg_stat/artidx.saved"
#define ART_SAVED_TMP		"pg_stat/artidx.saved.tmp"

#define ART_SAVED_MAGIC		UINT64CONST(0x6172747361766564)
#define ART_SAVED_FORMAT	5

/* A block ends with the key that takes it over one of these. */
#define ART_BLOCK_BYTES		((uint32) 256 * 1024)	/* written */
#define ART_BLOCK_RAW		((uint32) 4 * 1024 * 1024)	/* decoded */
/* With AX_KEY_MAX no block is ever longer than this, either way. */
#define ART_BLOCK_MAX		((uint32) 16 * 1024 * 1024)

#define ART_SAVED_MAX_SECTIONS 1000000

typedef struct ArtSavedHeader
{
	uint64		magic;
	uint32		format;
	uint32		key_format;
	uint32		pg_major;
	uint32		control_crc;	/* of the whole of pg_control ... */
	uint64		system_identifier;	/* ... and what of it matters most */
	uint64		checkpoint;
	uint64		redo;
	int64		time;
	uint32		timeline;
	uint32		nsections;
	uint64		ino;			/* of this very file: a copy has another.  Not the
								 * device, whose number can change with a boot */
	uint64		size;			/* of the file */
	uint64		table;			/* offset */
	uint32		table_crc;
	uint32		crc;			/* of all that is above */
} ArtSavedHeader;

typedef struct ArtSavedSection
{
	ArtLocator	loc;
	Oid			indexoid;
	Oid			heapoid;
	uint32		native;
	uint32		unique;
	int32		fill;
	uint32		uses;
	uint32		used_at;
	uint32		engine;
	uint32		page_size;
	Oid			owner;
	uint32		limited;		/* by artidx.role_limit */
	uint32		persistence;
	uint32		unchecked;		/* it outlived a crash */
	NameData	schema;
	NameData	name;
	uint64		max_bytes;		/* cap */
	uint64		bytes;			/* in memory, when it was saved */
	uint64		seals;
	uint64		builds;
	uint64		entries;
	uint64		off;			/* of its blocks in the file */
	uint64		len;
} ArtSavedSection;

typedef struct ArtSavedBlock
{
	uint32		crc;			/* of the rest of this, and of the keys */
	uint32		section;
	uint64		checkpoint;		/* of the file: no block of another */
	uint32		number;			/* in its section */
	uint32		nkeys;
	uint32		bytes;			/* of the keys as written, behind this */
	uint32		raw;			/* of the keys as decoded */
} ArtSavedBlock;

static inline pg_crc32c
art_saved_crc(const void *p, size_t len)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, p, len);
	FIN_CRC32C(crc);
	return crc;
}

/* CRC of a block whose keys lie behind its header. */
static inline pg_crc32c
art_saved_block_crc(const ArtSavedBlock *b)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, (const char *) b + sizeof(b->crc),
				sizeof(*b) - sizeof(b->crc) + b->bytes);
	FIN_CRC32C(crc);
	return crc;
}

/* ---- file_reader.c ---- */

/*
 * Open a file of ours and check its header and table. -1 when there is none
 * (then *why is NULL) or it is not to be trusted.  The table is malloc'd.
 */
extern int	art_saved_open(const char *path, ArtSavedHeader *h,
						   ArtSavedSection **table, const char **why);
/* pread() until all is read.  False: the file ends before, or an error. */
extern bool art_saved_pread(int fd, void *buf, uint64 len, uint64 off);

/*
 * Read the header of the block with that number in the section, at *off, which moves behind it.
 * False: it cannot be that block's.  Its checksum is not looked at.
 *
 * Arguments: a file, and a place in it.
 */
extern bool art_saved_read_head(int fd, const ArtSavedHeader *h, const ArtSavedSection *s,
								uint32 section, uint32 number, uint64 *off, ArtSavedBlock *b);

/*
 * Read the keys behind the header, into memory that has room for b->bytes there; *off moves
 * behind them.  False: the block is damaged.
 */
extern bool art_saved_read_keys(int fd, ArtSavedBlock *b, uint64 *off);

/* ---- block_keys.c ---- */

/* Bytes that a key may take in a block beyond its own. */
#define ART_SAVED_KEY_EXTRA	16

/*
 * Add a key to a block, which has room for its bytes and ART_SAVED_KEY_EXTRA behind those that
 * it has.  prev: the block's last key, if it has any.
 */
extern void art_saved_put_key(ArtSavedBlock *b, const uint8 *prev, uint32 prev_len,
							  const uint8 *key, uint32 len);

/*
 * Read the keys of a block that art_saved_read_keys() has read.  out has room for b->raw bytes, keys
 * and lens have room for b->nkeys; the keys point into out.  prev: the last key of the block
 * before, NULL if there is none.  False when the keys are not what the writer can have written:
 * rising, none a prefix of the next.  The core trusts that order.
 */
extern bool art_saved_get_keys(const ArtSavedBlock *b, const uint8 *prev, uint32 prev_len,
							   uint8 *out, const uint8 **keys, uint32 *lens);

#endif							/* ART_SAVED_FILE_FORMAT_H */
