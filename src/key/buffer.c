/*
 * buffer.c
 *	  A buffer that grows, and strings in it that may have zeros.
 *
 * src/key/README.md: Keys
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "key/encode.h"
#include "key/key.h"

#define ART_BUF_FIRST	128		/* where the first allocation was put off */

void
art_buf_init(ArtBuf *buf, MemoryContext cxt, uint32 cap)
{
	buf->cxt = cxt;
	buf->len = 0;
	buf->cap = cap;
	buf->data = MemoryContextAlloc(cxt, cap);
	buf->lent = false;
}

void
art_buf_grow(ArtBuf *buf, uint64 need)
{
	uint64		cap;
	uint8	   *data;

	if (need > PG_UINT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index key is too long")));
	cap = Max(need, Min((uint64) buf->cap * 2, PG_UINT32_MAX));
	if (buf->data == NULL || buf->lent)
	{
		cap = Max(cap, ART_BUF_FIRST);
		data = MemoryContextAllocHuge(buf->cxt, cap);
		if (buf->len > 0)
			memcpy(data, buf->data, buf->len);
		buf->data = data;
		buf->lent = false;
	}
	else
		buf->data = repalloc_huge(buf->data, cap);
	buf->cap = (uint32) cap;
}

/* ---- strings ---- */

void
art_put_escaped(ArtBuf *buf, const char *s, uint32 n, bool desc)
{
	const char *end = s + n;
	uint8		zero = desc ? 0xFF : 0x00;

	for (;;)
	{
		const char *z = memchr(s, 0, end - s);
		uint32		run = (uint32) ((z ? z : end) - s);

		art_buf_reserve(buf, run + 2);
		art_append(buf, s, run, desc);
		buf->data[buf->len++] = zero;
		buf->data[buf->len++] = z ? (uint8) ~zero : zero;
		if (z == NULL)
			return;
		s = z + 1;
	}
}

const uint8 *
art_skip_escaped(const uint8 *p, const uint8 *end, uint8 inv)
{
	for (;;)
	{
		p = memchr(p, inv, end - p);
		if (p == NULL || end - p < 2)
			return NULL;
		p += 2;
		if (p[-1] == inv)
			return p;
	}
}

uint32
art_get_escaped(const uint8 *p, const uint8 *end, uint8 inv, char *dst)
{
	char	   *start = dst;

	for (;;)
	{
		const uint8 *z = memchr(p, inv, end - p);

		art_copy_out(dst, p, (uint32) (z - p), inv != 0);
		dst += z - p;
		if (z[1] == inv)
			return (uint32) (dst - start);
		*dst++ = 0;
		p = z + 2;
	}
}
