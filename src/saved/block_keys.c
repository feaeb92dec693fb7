/*
 * block_keys.c
 *	  The keys of a block of the saved file: written, checked and read.
 *
 * A key is written as how many bytes it shares with the one before, its length if that is another
 * one, and the bytes that it does not share (file_format.h).  Nothing here opens a file, allocates
 * or raises an error.
 *
 * src/saved/README.md: Saved files
 */
#include "postgres.h"

#include "saved/file_format.h"

/*
 * Write a number, seven bits a byte, the lowest first.  Returns the end.
 */
static inline uint8 *
put_varint(uint8 *p, uint32 v)
{
	while (v >= 0x80)
	{
		*p++ = (uint8) (v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8) v;
	return p;
}

/*
 * Read a number that put_varint() wrote.  False if it does not end before
 * "end".
 */
static inline bool
get_varint(const uint8 **p, const uint8 *end, uint32 *v)
{
	uint32		r = 0;

	for (int shift = 0; shift < 32 && *p < end; shift += 7)
	{
		uint8		c = *(*p)++;

		r |= (uint32) (c & 0x7F) << shift;
		if (c < 0x80)
		{
			*v = r;
			return true;
		}
	}
	return false;
}

void
art_saved_put_key(ArtSavedBlock *b, const uint8 *prev, uint32 prev_len,
				  const uint8 *key, uint32 len)
{
	uint8	   *base = (uint8 *) (b + 1);
	uint8	   *p = base + b->bytes;
	uint32		shared = 0;

	if (b->nkeys > 0)
	{
		uint32		most = Min(len, prev_len);

		while (shared < most && key[shared] == prev[shared])
			shared++;
	}
	if (b->nkeys > 0 && len == prev_len)
		p = put_varint(p, shared << 1);
	else
	{
		p = put_varint(p, shared << 1 | 1);
		p = put_varint(p, len);
	}
	memcpy(p, key + shared, len - shared);
	b->bytes = (uint32) (p + len - shared - base);
	b->raw += len;
	b->nkeys++;
}

bool
art_saved_get_keys(const ArtSavedBlock *b, const uint8 *prev, uint32 prev_len,
				   uint8 *out, const uint8 **keys, uint32 *lens)
{
	const uint8 *p = (const uint8 *) (b + 1);
	const uint8 *end = p + b->bytes;
	uint8	   *out_end = out + b->raw;
	uint32		len = 0;

	for (uint32 i = 0; i < b->nkeys; i++)
	{
		uint32		shared;

		if (!get_varint(&p, end, &shared))
			return false;
		if ((shared & 1) && !get_varint(&p, end, &len))
			return false;
		shared >>= 1;
		if (len <= AX_TID_BYTES || len > AX_KEY_MAX || shared >= len ||
			len > (Size) (out_end - out) || len - shared > (Size) (end - p))
			return false;
		if (i == 0)
		{
			/* written whole */
			if (shared != 0)
				return false;
			memcpy(out, p, len);
			if (prev != NULL && memcmp(prev, out, Min(prev_len, len)) >= 0)
				return false;
		}
		else
		{
			if (shared >= prev_len || *p <= prev[shared])
				return false;
			memcpy(out, prev, shared);
			memcpy(out + shared, p, len - shared);
		}
		p += len - shared;
		keys[i] = out;
		lens[i] = len;
		prev = out;
		prev_len = len;
		out += len;
	}
	return p == end && out == out_end;
}
