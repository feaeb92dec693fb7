/*
 * keyset.c
 *	  See keyset.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "keyset.h"

#include <stdio.h>
#include <stdlib.h>

#include "meter.h"
#include "tap.h"

static int
cmp_keys(const void *a, const void *b, void *len)
{
	return memcmp(*(const uint8_t *const *) a, *(const uint8_t *const *) b,
				  *(uint32_t *) len);
}

void
ks_make(keyset *ks, const char *kind, uint64_t n, uint64_t *seed)
{
	static const char *const words[] = {"customer", "invoice", "north", "west", "alpha",
	"delta", "orange", "paper"};
	enum
	{
		DENSE, RANDOM, UUID, TEXT, DUPS, KINDS
	}			k;
	static const char *const names[KINDS] = {"dense", "random", "uuid", "text", "dups"};

	for (k = 0; k < KINDS && strcmp(kind, names[k]); k++)
		;
	if (k == KINDS)
		mr_die("no key set \"%s\": dense random uuid text dups", kind);
	ks->name = names[k];
	ks->n = n;
	ks->len = k == UUID ? 23 : k == TEXT ? 33 : 15;
	ks->keys = malloc(n * ks->len);
	ks->sorted = NULL;
	if (!ks->keys)
		mr_die("no memory for %llu keys", (unsigned long long) n);
	for (uint64_t i = 0; i < n; i++)
	{
		uint8_t    *p = ks->keys + i * ks->len;
		char		b[80];

		p[0] = 1;
		switch (k)
		{
			case DENSE:
				ks_put8(p + 1, i ^ UINT64_C(1) << 63);
				break;
			case RANDOM:
				ks_put8(p + 1, tap_rand(seed));
				break;
			case DUPS:
				ks_put8(p + 1, (tap_rand(seed) % 1000) ^ UINT64_C(1) << 63);
				break;
			case UUID:
				ks_put8(p + 1, tap_rand(seed));
				ks_put8(p + 9, tap_rand(seed));
				break;
			default:
				snprintf(b, sizeof(b), "%s-%s-%016llx", words[tap_rand(seed) % 8],
						 words[tap_rand(seed) % 8], (unsigned long long) tap_rand(seed));
				memcpy(p + 1, b, 25);
				p[26] = 0;
		}
		ks_put_tid(p + ks->len - 6, ks_tid(i));
	}
}

void
ks_sort(keyset *ks)
{
	ks->sorted = malloc(ks->n * sizeof(*ks->sorted));
	if (!ks->sorted)
		mr_die("no memory to sort %llu keys", (unsigned long long) ks->n);
	for (uint64_t i = 0; i < ks->n; i++)
		ks->sorted[i] = ks_key(ks, i);
	qsort_r(ks->sorted, ks->n, sizeof(*ks->sorted), cmp_keys, &ks->len);
}

void
ks_free(keyset *ks)
{
	free(ks->keys);
	free(ks->sorted);
}
