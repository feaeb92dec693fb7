/*
 * file_reader.c
 *	  Reading the file of saved structures: its header and its table, checked, and
 *	  what lies anywhere in it.
 *
 * save_at_shutdown.c writes the file and claims it, load_at_start.c loads it.  The postmaster
 * reads here, too: nothing raises an error.
 *
 * src/saved/README.md: Saved files
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "saved/file_format.h"

bool
art_saved_pread(int fd, void *buf, uint64 len, uint64 off)
{
	char	   *p = buf;

	while (len > 0)
	{
		ssize_t		n = pread(fd, p, len, (off_t) off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (uint64) n;
		off += (uint64) n;
	}
	return true;
}

int
art_saved_open(const char *path, ArtSavedHeader *h, ArtSavedSection **table,
			   const char **why)
{
	int			fd = open(path, O_RDONLY | PG_BINARY, 0);
	struct stat st;
	uint64		bytes;

	*table = NULL;
	*why = NULL;
	if (fd < 0)
	{
		if (errno != ENOENT)
			*why = "it cannot be opened";
		return -1;
	}
	*why = "it is damaged";
	if (fstat(fd, &st) != 0 || !art_saved_pread(fd, h, sizeof(*h), 0) ||
		h->magic != ART_SAVED_MAGIC ||
		!EQ_CRC32C(h->crc, art_saved_crc(h, offsetof(ArtSavedHeader, crc))))
		goto no;
	if (h->ino != (uint64) st.st_ino)
	{
		*why = "it is a copy";
		goto no;
	}
	bytes = (uint64) h->nsections * sizeof(ArtSavedSection);
	if (h->format != ART_SAVED_FORMAT || h->size != (uint64) st.st_size ||
		h->nsections > ART_SAVED_MAX_SECTIONS || h->table < sizeof(*h) ||
		h->table > h->size || h->size - h->table != bytes)
		goto no;

	*table = malloc(bytes + 1);
	if (*table == NULL || !art_saved_pread(fd, *table, bytes, h->table) ||
		!EQ_CRC32C(h->table_crc, art_saved_crc(*table, bytes)))
		goto no;
	for (uint32 i = 0; i < h->nsections; i++)
	{
		const ArtSavedSection *s = &(*table)[i];

		if (s->off < sizeof(*h) || s->off > h->table || s->len > h->table - s->off ||
			s->fill < 1 || s->fill > 100 || s->loc.backend != -1 ||
			NameStr(s->schema)[NAMEDATALEN - 1] != '\0' || NameStr(s->name)[NAMEDATALEN - 1] != '\0' ||
			s->engine >= AX_STRUCTURES || s->engine == AX_BTREE_COMPARED || s->page_size > AX_PAGE_SIZE_MAX ||
			s->page_size % 64 != 0 ||
			(s->page_size != 0 && s->page_size < AX_PAGE_SIZE_MIN))
			goto no;
	}
	*why = NULL;
	return fd;

no:
	free(*table);
	*table = NULL;
	close(fd);
	return -1;
}

bool
art_saved_read_head(int fd, const ArtSavedHeader *h, const ArtSavedSection *s,
					uint32 section, uint32 number, uint64 *off, ArtSavedBlock *b)
{
	uint64		end = s->off + s->len;

	if (end - *off <= sizeof(*b) || !art_saved_pread(fd, b, sizeof(*b), *off))
		return false;
	*off += sizeof(*b);
	return b->section == section && b->number == number &&
		b->checkpoint == h->checkpoint && b->nkeys > 0 &&
		b->nkeys <= b->bytes && b->bytes <= ART_BLOCK_MAX && b->bytes <= end - *off &&
		b->raw <= ART_BLOCK_MAX && b->raw / AX_TID_BYTES >= b->nkeys;
}

bool
art_saved_read_keys(int fd, ArtSavedBlock *b, uint64 *off)
{
	if (!art_saved_pread(fd, b + 1, b->bytes, *off))
		return false;
	*off += b->bytes;
	return b->crc == art_saved_block_crc(b);
}
