/*
 * fuzz.h
 *	  What a fuzz target is made of: an input that is taken apart, and claims.
 *
 * A target is one file with the function LLVMFuzzerTestOneInput.  libFuzzer calls it, or replay.c.
 * It does the same for the same input, whatever came before, and gives back what it takes.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is left of an input.  At its end there are zeros. */
typedef struct fuzz_in
{
	const uint8_t *p;
	size_t		left;
} fuzz_in;

static inline uint8_t
fuzz_byte(fuzz_in *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->p++;
}

/* A number of so many bytes, the lowest first. */
static inline uint64_t
fuzz_number(fuzz_in *in, int bytes)
{
	uint64_t	v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint64_t) fuzz_byte(in) << (8 * i);
	return v;
}

/* A number below n, which is not 0. */
static inline uint32_t
fuzz_below(fuzz_in *in, uint32_t n)
{
	return (uint32_t) fuzz_number(in, n <= 256 ? 1 : n <= 65536 ? 2 : 4) % n;
}

/* Some bytes to "to", zeros at the input's end. */
static inline void
fuzz_fill(fuzz_in *in, void *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *) to)[i] = fuzz_byte(in);
}

/*
 * The first n bytes as an input of their own: of what is to be damaged once the rest is used up.
 */
static inline fuzz_in
fuzz_part(fuzz_in *in, size_t n)
{
	fuzz_in		part = {in->p, n < in->left ? n : in->left};

	in->p += part.left;
	in->left -= part.left;
	return part;
}

/* Memory of exactly n bytes, zeroed, so that the address sanitizer sees the first byte behind it. */
static inline void *
fuzz_alloc(size_t n)
{
	void	   *p = calloc(1, n ? n : 1);

	if (p == NULL)
		abort();
	return p;
}

/* Says what does not hold, and ends the program: a finding. */
#define FUZZ_CLAIM(cond, ...) \
	do { \
		if (!(cond)) \
		{ \
			fprintf(stderr, "%s:%d: does not hold: %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			abort(); \
		} \
	} while (0)

#endif							/* FUZZ_H */
