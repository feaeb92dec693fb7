/*
 * hot_list.c
 *	  Remembers across a restart which indexes were used, in a small file.
 *
 * The launcher writes the file.  It reads it, too, and so do the workers that
 * visit a database first.  The file decides in which order indexes are built,
 * and nothing else.  So a file that is missing, damaged or from another server
 * does no harm.
 *
 * src/workers/README.md: The launcher and its workers
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"

#include "saved/saved.h"

#define ART_HOT_FILE	PGSTAT_STAT_PERMANENT_DIRECTORY "/artidx.hot"
#define ART_HOT_TMP		ART_HOT_FILE ".tmp"
#define ART_HOT_MAGIC	0x41525448	/* "ARTH" */
#define ART_HOT_VERSION 1
#define ART_HOT_MAX		(1024 * 1024)	/* records; more than that is damage */

typedef struct ArtHotHeader
{
	uint32		magic;
	uint32		version;
	uint32		count;
	pg_crc32c	crc;			/* of the records */
} ArtHotHeader;

static pg_crc32c
records_crc(const ArtHot *hot, int n)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, hot, n * sizeof(ArtHot));
	FIN_CRC32C(crc);
	return crc;
}

int
art_hot_cmp(const void *a, const void *b)
{
	const ArtHot *x = a;
	const ArtHot *y = b;

	if (x->loc.db != y->loc.db)
		return x->loc.db < y->loc.db ? -1 : 1;
	if (x->indexoid != y->indexoid)
		return x->indexoid < y->indexoid ? -1 : 1;
	return 0;
}

int
art_hot_read(ArtHot **hot)
{
	FILE	   *file;
	ArtHotHeader head;
	struct stat st;
	ArtHot	   *records = NULL;
	const char *wrong = NULL;
	int			n = 0;

	*hot = NULL;
	file = AllocateFile(ART_HOT_FILE, PG_BINARY_R);
	if (file == NULL)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", ART_HOT_FILE)));
		return 0;
	}
	if (fread(&head, sizeof(head), 1, file) != 1)
		wrong = "it is too short";
	else if (head.magic != ART_HOT_MAGIC || head.version != ART_HOT_VERSION)
		wrong = "it is of another format";
	else if (head.count > ART_HOT_MAX || fstat(fileno(file), &st) != 0 ||
			 (uint64) st.st_size != sizeof(head) + (uint64) head.count * sizeof(ArtHot))
		wrong = "its size is wrong";
	else if (head.count > 0)
	{
		records = palloc(head.count * sizeof(ArtHot));
		if (fread(records, sizeof(ArtHot), head.count, file) != head.count)
			wrong = "it is too short";
		else if (!EQ_CRC32C(head.crc, records_crc(records, (int) head.count)))
			wrong = "its checksum is wrong";
	}
	FreeFile(file);

	if (wrong)
	{
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring file \"%s\": %s", ART_HOT_FILE, wrong),
				 errdetail("It tells which art indexes to build first.")));
		if (records)
			pfree(records);
		return 0;
	}
	n = (int) head.count;
	if (n > 0)
	{
		qsort(records, n, sizeof(ArtHot), art_hot_cmp);
		*hot = records;
	}
	return n;
}

bool
art_hot_write(const ArtHot *hot, int n, int elevel)
{
	FILE	   *file;
	ArtHotHeader head;
	bool		ok;

	memset(&head, 0, sizeof(head));
	head.magic = ART_HOT_MAGIC;
	head.version = ART_HOT_VERSION;
	head.count = (uint32) n;
	head.crc = records_crc(hot, n);

	file = AllocateFile(ART_HOT_TMP, PG_BINARY_W);
	ok = file != NULL;
	if (ok)
		ok = fwrite(&head, sizeof(head), 1, file) == 1 &&
			(n == 0 || fwrite(hot, sizeof(ArtHot), n, file) == (size_t) n);
	if (file != NULL && FreeFile(file) != 0)
		ok = false;
	if (!ok)
	{
		ereport(elevel,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", ART_HOT_TMP)));
		(void) unlink(ART_HOT_TMP);
		return false;
	}
	return durable_rename(ART_HOT_TMP, ART_HOT_FILE, elevel) == 0;
}

const ArtHot *
art_hot_find(const ArtHot *hot, int n, Oid indexoid, const ArtLocator *loc)
{
	ArtHot		key;

	if (n == 0)
		return NULL;
	memset(&key, 0, sizeof(key));
	key.indexoid = indexoid;
	key.loc = *loc;
	return bsearch(&key, hot, n, sizeof(ArtHot), art_hot_cmp);
}
