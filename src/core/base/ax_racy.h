/*
 * ax_racy.h
 *	  Bytes that a writer may be storing while they are read.
 *
 * They are copied with plain loads and thrown away unless the latch word
 * validates; under ThreadSanitizer they are read and written byte by byte
 * atomically.
 *
 * src/core/base/README.md: Races
 */
#ifndef AX_RACY_H
#define AX_RACY_H

#include <string.h>

#include "ax_latch.h"

/* Read eight bytes that a writer may be changing. */
static inline uint64_t
ax_load8(const uint8_t *p)
{
	uint64_t	x;

#ifdef AX_TSAN
	x = 0;
	for (int i = 0; i < 8; i++)
		x |= (uint64_t) __atomic_load_n(p + i, __ATOMIC_RELAXED) << (8 * i);
#else
	memcpy(&x, p, 8);
#endif
	return x;
}

/* The same for four bytes. */
static inline uint32_t
ax_load4(const uint8_t *p)
{
	uint32_t	x;

#ifdef AX_TSAN
	x = 0;
	for (int i = 0; i < 4; i++)
		x |= (uint32_t) __atomic_load_n(p + i, __ATOMIC_RELAXED) << (8 * i);
#else
	memcpy(&x, p, 4);
#endif
	return x;
}

static inline uint8_t
ax_load1(const uint8_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* Copy out of a racing leaf. */
static inline void
ax_copy_out(uint8_t *dst, const uint8_t *src, uint32_t n)
{
#ifdef AX_TSAN
	for (uint32_t i = 0; i < n; i++)
		dst[i] = __atomic_load_n(src + i, __ATOMIC_RELAXED);
#else
	memcpy(dst, src, n);
#endif
}

/* The same for the few bytes of an entry, without a call. */
static inline void
ax_copy_few(uint8_t *dst, const uint8_t *src, uint32_t n)
{
#ifdef AX_TSAN
	ax_copy_out(dst, src, n);
#else
	if (n >= 8)
	{
		uint64_t	x;

		for (uint32_t i = 0; i + 8 < n; i += 8)
		{
			memcpy(&x, src + i, 8);
			memcpy(dst + i, &x, 8);
		}
		memcpy(&x, src + n - 8, 8);
		memcpy(dst + n - 8, &x, 8);
	}
	else if (n >= 4)
	{
		uint32_t	a,
					b;

		memcpy(&a, src, 4);
		memcpy(&b, src + n - 4, 4);
		memcpy(dst, &a, 4);
		memcpy(dst + n - 4, &b, 4);
	}
	else
		for (uint32_t i = 0; i < n; i++)
			dst[i] = src[i];
#endif
}

/* The same for 8 to 16 bytes. */
static inline void
ax_copy_mid(uint8_t *dst, const uint8_t *src, uint32_t n)
{
#ifdef AX_TSAN
	ax_copy_out(dst, src, n);
#else
	uint64_t	a,
				b;

	memcpy(&a, src, 8);
	memcpy(&b, src + n - 8, 8);
	memcpy(dst, &a, 8);
	memcpy(dst + n - 8, &b, 8);
#endif
}

/* Copy into a leaf that readers may be reading (latched), or a private one. */
static inline void
ax_copy_in(uint8_t *dst, const uint8_t *src, uint32_t n)
{
#ifdef AX_TSAN
	for (uint32_t i = 0; i < n; i++)
		__atomic_store_n(dst + i, src[i], __ATOMIC_RELAXED);
#else
	memcpy(dst, src, n);
#endif
}

/* Are n racing bytes at a equal to those at b?  Reads nothing beyond either. */
static inline bool
ax_equal(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	if (n >= 8)
	{
		uint32_t	i = 0;

		for (; i + 8 <= n; i += 8)
			if (ax_load8(a + i) != ax_load8(b + i))
				return false;
		AX_POINT("equal.half");
		return ax_load8(a + n - 8) == ax_load8(b + n - 8);
	}
	if (n >= 4)
		return ax_load4(a) == ax_load4(b) &&
			ax_load4(a + n - 4) == ax_load4(b + n - 4);
	for (uint32_t i = 0; i < n; i++)
		if (ax_load1(a + i) != ax_load1(b + i))
			return false;
	return true;
}

/* The first eight of n bytes as a big-endian number, zero-filled. */
static inline uint64_t
ax_be8(const uint8_t *p, uint32_t n)
{
	uint64_t	x;

	if (n >= 8)
		return __builtin_bswap64(ax_load8(p));
	x = 0;
	for (uint32_t i = 0; i < n; i++)
		x |= (uint64_t) ax_load1(p + i) << (56 - 8 * i);
	return x;
}

/* The TID: the last six bytes of a key that ends at end. */
static inline uint64_t
ax_tid_at(const uint8_t *end)
{
	return ((uint64_t) ax_load1(end - 6) << 40) | ((uint64_t) ax_load1(end - 5) << 32) |
		__builtin_bswap32(ax_load4(end - 4));
}

/* The same of a key whose last part has eight bytes at least. */
static inline uint64_t
ax_tid_of_8(const uint8_t *end)
{
	return __builtin_bswap64(ax_load8(end - 8)) & (((uint64_t) 1 << 48) - 1);
}

#endif							/* AX_RACY_H */
