/*
 * keyset.h
 *	  Sets of keys to measure with: in the order of insertion, each with the
 *	  TID of its row in a heap of 200 rows a page.
 */
#ifndef KEYSET_H
#define KEYSET_H

#include <stdint.h>
#include <string.h>

typedef struct keyset
{
	const char *name;
	uint32_t	len;			/* TID included */
	uint64_t	n;
	uint8_t    *keys;			/* in the order of insertion, back to back */
	const uint8_t **sorted;		/* after ks_sort */
} keyset;

/*
 * Kinds: dense (8 bytes, in order), random (8 bytes), uuid (16 bytes), text
 * (25 bytes behind few words), dups (1,000 values).  Exits if there is no such
 * kind.
 */
extern void ks_make(keyset *ks, const char *kind, uint64_t n, uint64_t *seed);
extern void ks_sort(keyset *ks);
extern void ks_free(keyset *ks);

static inline const uint8_t *
ks_key(const keyset *ks, uint64_t i)
{
	return ks->keys + i * ks->len;
}

/* 8 bytes, big-endian. */
static inline void
ks_put8(uint8_t *p, uint64_t x)
{
	x = __builtin_bswap64(x);
	memcpy(p, &x, 8);
}

/* The TID of row i, and back: block << 16 | offset. */
static inline uint64_t
ks_tid(uint64_t i)
{
	return (i / 200) << 16 | (i % 200 + 1);
}

static inline uint64_t
ks_row(uint64_t tid)
{
	return (tid >> 16) * 200 + (tid & 0xFFFF) - 1;
}

/* The last six bytes of a key. */
static inline void
ks_put_tid(uint8_t *p, uint64_t tid)
{
	for (int k = 0; k < 6; k++)
		p[k] = (uint8_t) (tid >> (40 - 8 * k));
}

#endif							/* KEYSET_H */
