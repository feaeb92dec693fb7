/*
 * saved.c
 *	  Fuzz target: the file of saved structures, written, damaged and read again.
 *
 * The input says what is in the file, how it is damaged, and which checksums are made right again
 * afterwards.  A file that is whole is read as it was written.  What a checksum covers is not believed
 * once it is damaged.  Where the checksum is right all the same, the keys that are read are in order,
 * and within their memory.
 */
#include "server.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "saved/file_format.h"

#define SECTIONS	3
#define MOST_KEYS	40
#define MOST_BLOCKS	6
#define LONGEST		600

typedef struct Section
{
	int			n;
	uint8	   *keys[MOST_KEYS];
	uint32		lens[MOST_KEYS];
} Section;

/* The image, and where its blocks are. */
typedef struct Image
{
	uint8	   *p;
	uint32		len;
	int			nsections;
	int			nblocks;
	uint32		blocks[SECTIONS * MOST_BLOCKS];
	Section		sections[SECTIONS];
} Image;

static ArtSavedHeader *
header(const Image *m)
{
	return (ArtSavedHeader *) m->p;
}

/* The next key of a section: it is greater than the one before, and does not begin with it. */
static void
add_key(fuzz_in *in, Section *s)
{
	const uint8 *prev = s->n ? s->keys[s->n - 1] : NULL;
	uint32		prev_len = s->n ? s->lens[s->n - 1] : 0;
	uint32		shared = 0;
	uint32		more = AX_TID_BYTES + 1 + fuzz_below(in, 12);
	uint8	   *k;

	if (fuzz_byte(in) == 7)
		more = LONGEST;
	if (prev != NULL)
	{
		shared = fuzz_below(in, prev_len);
		while (prev[shared] == 0xFF && shared > 0)
			shared--;
		if (prev[shared] == 0xFF)
			return;
	}
	k = palloc(shared + more);
	if (prev != NULL)
		memcpy(k, prev, shared);
	fuzz_fill(in, k + shared, Min(more, 20));
	memset(k + shared + Min(more, 20), 'x', more - Min(more, 20));
	if (prev != NULL)
		k[shared] = (uint8) (prev[shared] + 1 + k[shared] % (0xFF - prev[shared]));
	s->keys[s->n] = k;
	s->lens[s->n++] = shared + more;
}

static void
append(Image *m, const void *p, uint32 len)
{
	m->p = m->p == NULL ? palloc(len) : repalloc(m->p, m->len + len);
	memcpy(m->p + m->len, p, len);
	m->len += len;
}

/* A section's keys in some blocks.  Each is as long as the writer would make it at the least. */
static void
append_section(fuzz_in *in, Image *m, int number, ArtSavedSection *t)
{
	Section    *s = &m->sections[number];
	uint32		room = MOST_KEYS * (LONGEST * 2 + ART_SAVED_KEY_EXTRA);
	ArtSavedBlock *b = palloc0(sizeof(*b) + room);
	int			want = 1 + (int) fuzz_below(in, MOST_KEYS);
	int			blocks = 0;

	t->off = m->len;
	b->section = (uint32) number;
	b->checkpoint = header(m)->checkpoint;
	for (int i = 0; i < want; i++)
	{
		int			n = s->n;

		add_key(in, s);
		if (s->n == n || s->lens[n] > LONGEST * 2)
		{
			s->n = n;
			break;
		}
		art_saved_put_key(b, n ? s->keys[n - 1] : NULL, n ? s->lens[n - 1] : 0, s->keys[n], s->lens[n]);
		if (i + 1 == want || (blocks + 1 < MOST_BLOCKS && fuzz_byte(in) % 8 == 0))
		{
			m->blocks[m->nblocks++] = m->len;
			blocks++;
			b->crc = art_saved_block_crc(b);
			append(m, b, sizeof(*b) + b->bytes);
			b->number++;
			b->nkeys = b->bytes = b->raw = 0;
		}
	}
	if (b->nkeys > 0)
	{
		m->blocks[m->nblocks++] = m->len;
		b->crc = art_saved_block_crc(b);
		append(m, b, sizeof(*b) + b->bytes);
	}
	t->len = m->len - t->off;
	t->entries = (uint64) s->n;
	pfree(b);
}

static void
write_image(fuzz_in *in, Image *m, uint64 ino)
{
	ArtSavedHeader h = {.magic = ART_SAVED_MAGIC,.format = ART_SAVED_FORMAT,.checkpoint = 0x1234567,.ino = ino};
	ArtSavedSection table[SECTIONS] = {0};

	m->nsections = (int) fuzz_below(in, SECTIONS + 1);
	append(m, &h, sizeof(h));
	for (int i = 0; i < m->nsections; i++)
	{
		append_section(in, m, i, &table[i]);
		table[i].fill = 90;
		table[i].loc.backend = -1;
		table[i].engine = i == 0 ? AX_ART_OLC : AX_BTREE_OLC;
		table[i].page_size = i == 2 ? 1024 : 0;
	}
	h.nsections = (uint32) m->nsections;
	h.table = m->len;
	append(m, table, (uint32) (m->nsections * sizeof(*table)));
	h.size = m->len;
	memcpy(m->p, &h, sizeof(h));
}

/* The checksums of what is there: of the blocks as far as they lie in the file, the table, the header. */
static void
make_sums(Image *m, uint8 which)
{
	ArtSavedHeader *h = header(m);

	if (m->len < sizeof(*h))
		return;
	for (int i = 0; (which & 1) && i < m->nblocks; i++)
	{
		ArtSavedBlock b;

		if (m->blocks[i] + sizeof(b) > m->len)
			continue;
		memcpy(&b, m->p + m->blocks[i], sizeof(b));
		if (b.bytes > m->len - m->blocks[i] - sizeof(b))
			continue;
		/* at any address */
		b.crc = art_saved_crc(m->p + m->blocks[i] + sizeof(b.crc), sizeof(b) - sizeof(b.crc) + b.bytes);
		memcpy(m->p + m->blocks[i], &b.crc, sizeof(b.crc));
	}
	if ((which & 2) && h->table <= m->len)
		h->table_crc = art_saved_crc(m->p + h->table, Min((uint64) h->nsections * sizeof(ArtSavedSection),
														   m->len - h->table));
	if (which & 4)
		h->crc = art_saved_crc(h, offsetof(ArtSavedHeader, crc));
}

/* Change a byte: a number becomes a near one, or another. */
static void
change(Image *m, uint32 at, uint8 by)
{
	if (at >= m->len)
		return;
	if (by & 1)
		m->p[at] = (uint8) (m->p[at] + (by & 2 ? 1 + by / 4 % 8 : -1 - by / 4 % 8));
	else
		m->p[at] ^= by;
}

/* Damage some bytes of the header, the table, a block's header or its first keys; or cut the file off. */
static void
damage(fuzz_in *in, Image *m)
{
	const uint32 tables = (uint32) m->nsections * sizeof(ArtSavedSection);
	const uint32 table = m->len - tables;

	for (int i = (int) fuzz_below(in, 5); i > 0; i--)
	{
		uint8		where = fuzz_byte(in);
		uint32		at = (uint32) fuzz_number(in, 2);
		uint8		by = fuzz_byte(in);
		uint32		block = m->nblocks > 0 ? m->blocks[where / 8 % m->nblocks] : 0;

		switch (where % 8)
		{
			case 0:
				change(m, at % sizeof(ArtSavedHeader), by);
				break;
			case 1:
				if (tables > 0)
					change(m, table + at % tables, by);
				break;
			case 2:
				if (by < 32)
					m->len = Min(m->len, at);
				else
					change(m, at % m->len, by);
				break;
			case 3:
				/* the lowest byte of a number */
				change(m, block + at % (sizeof(ArtSavedBlock) / sizeof(uint32)) * (uint32) sizeof(uint32), by);
				break;
			case 4:
				change(m, block + at % sizeof(ArtSavedBlock), by);
				break;
			default:
				change(m, block + (uint32) sizeof(ArtSavedBlock) + at % 64, by);
		}
		if (m->len == 0)
			return;
	}
}

/* Read a section as load_at_start.c does.  False: it is damaged. */
static bool
read_section(int fd, const ArtSavedHeader *h, const ArtSavedSection *s, uint32 number,
			 const Section *as, bool believed)
{
	uint64		off = s->off;
	uint64		n = 0;
	uint8	   *last = NULL;
	uint32		last_len = 0;

	for (uint32 i = 0; off < s->off + s->len; i++)
	{
		ArtSavedBlock head;
		ArtSavedBlock *b;
		uint8	   *out;
		const uint8 **keys;
		uint32	   *lens;

		if (!art_saved_read_head(fd, h, s, number, i, &off, &head))
			return false;
		b = palloc(sizeof(*b) + head.bytes);
		*b = head;
		if (!art_saved_read_keys(fd, b, &off))
			return false;
		out = palloc(b->raw);
		keys = palloc(b->nkeys * sizeof(*keys));
		lens = palloc(b->nkeys * sizeof(*lens));
		if (!art_saved_get_keys(b, last, last_len, out, keys, lens))
			return false;
		for (uint32 k = 0; k < b->nkeys; k++)
		{
			uint32		common = Min(last_len, lens[k]);

			FUZZ_CLAIM(lens[k] > AX_TID_BYTES && lens[k] <= AX_KEY_MAX, "key %u has %u bytes", k, lens[k]);
			FUZZ_CLAIM(last == NULL || memcmp(last, keys[k], common) < 0, "key %u is not greater than the one before", k);
			if (believed)
			{
				FUZZ_CLAIM(n + k < (uint64) as->n, "key %u is one too many", k);
				FUZZ_CLAIM(lens[k] == as->lens[n + k] && memcmp(keys[k], as->keys[n + k], lens[k]) == 0,
						   "key %u is not what was written", k);
			}
			last = (uint8 *) keys[k];
			last_len = lens[k];
		}
		n += b->nkeys;
	}
	return n == s->entries;
}

/* The numbers of the table that the loader and the postmaster go by. */
static void
check_table(const ArtSavedHeader *h, const ArtSavedSection *t)
{
	for (uint32 i = 0; i < h->nsections; i++)
	{
		FUZZ_CLAIM(t[i].off >= sizeof(*h) && t[i].off + t[i].len >= t[i].off && t[i].off + t[i].len <= h->table,
				   "section %u does not lie in the file", i);
		FUZZ_CLAIM(t[i].engine < AX_STRUCTURES && t[i].engine != AX_BTREE_COMPARED, "section %u has engine %u", i, t[i].engine);
		FUZZ_CLAIM(t[i].page_size == 0 || (t[i].page_size >= AX_PAGE_SIZE_MIN && t[i].page_size <= AX_PAGE_SIZE_MAX),
				   "section %u has pages of %u bytes", i, t[i].page_size);
		FUZZ_CLAIM(t[i].fill >= 1 && t[i].fill <= 100, "section %u is filled to %d", i, t[i].fill);
		FUZZ_CLAIM(NameStr(t[i].name)[NAMEDATALEN - 1] == '\0' && NameStr(t[i].schema)[NAMEDATALEN - 1] == '\0',
				   "section %u has a name without an end", i);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[64];
	static int	fd = -1;
	fuzz_in		in = {data, size};
	fuzz_in		harm = fuzz_part(&in, 24);
	Image		m = {0};
	Image		was;
	ArtSavedHeader h;
	ArtSavedSection *table;
	const char *why;
	struct stat st;
	int			got;
	bool		whole;
	uint8		sums;

	fuzz_server_reset();
	if (fd < 0)
	{
		fd = memfd_create("saved", 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (fd < 0 || fstat(fd, &st) != 0)
		abort();
	write_image(&in, &m, (uint64) st.st_ino);
	make_sums(&m, 7);
	was = m;
	was.p = palloc(m.len);
	memcpy(was.p, m.p, m.len);
	sums = fuzz_byte(&harm);
	if (sums & 8)
		sums |= 7;
	damage(&harm, &m);
	whole = m.len == was.len && memcmp(m.p, was.p, m.len) == 0;
	make_sums(&m, sums & 7);
	if (ftruncate(fd, 0) != 0 || pwrite(fd, m.p, m.len, 0) != (ssize_t) m.len)
		abort();

	got = art_saved_open(path, &h, &table, &why);
	FUZZ_CLAIM((got >= 0) == (why == NULL), "a file that is used, and a reason not to");
	FUZZ_CLAIM(got >= 0 || !whole, "a whole file is refused: %s", why);
	if (got < 0)
		return 0;
	FUZZ_CLAIM(h.ino == (uint64) st.st_ino, "a copy is used");
	check_table(&h, table);
	for (uint32 i = 0; i < h.nsections; i++)
	{
		bool		good = read_section(got, &h, &table[i], i, &m.sections[i % SECTIONS], (sums & 7) == 0 || whole);

		FUZZ_CLAIM(good || !whole, "section %u of a whole file is refused", i);
	}
	free(table);
	close(got);
	return 0;
}
