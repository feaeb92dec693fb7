/*
 * compared.c
 *	  Fuzz target: strings of operations on the B+-tree whose order only the caller knows, against an
 *	  array of what is in.
 */
#include "fuzz.h"

#include "cmpkit.h"
#include "tap.h"

#define MOST_KEYS	1024

static worker w;

static void
check(const bool *in)
{
	char		why[300] = "";
	uint64_t	n = 0;
	long		there;

	for (uint32_t x = 0; x < MOST_KEYS; x++)
		n += in[x];
	FUZZ_CLAIM(ck_check(&w, n, why, sizeof(why)), "%s", why);
	for (int left = 0; left < 2; left++)
	{
		there = ck_walk(&w, left);
		FUZZ_CLAIM(there == (long) n, "a walk to the %s finds %ld entries of %llu", left ? "left" : "right",
				   there, (unsigned long long) n);
	}
}

static void
operate(bool *in, uint8_t op, uint32_t x, bool longs)
{
	static uint8_t key[KEYBUF];
	uint32_t	len = ck_key(key, x, longs);
	ax_status	r;

	switch (op % 4)
	{
		case 0:
		case 1:
			r = ck_insert(&w, key, len);
			FUZZ_CLAIM(r == (in[x] ? AX_EXISTS : AX_OK), "insert of key %u: status %d", x, (int) r);
			in[x] = true;
			break;
		case 2:
			r = ck_remove(&w, key, len);
			FUZZ_CLAIM(r == (in[x] ? AX_OK : AX_NOTFOUND), "remove of key %u: status %d", x, (int) r);
			in[x] = false;
			break;
		case 3:
			r = ck_contains(&w, key, len);
			FUZZ_CLAIM(r == (in[x] ? AX_OK : AX_NOTFOUND), "contains of key %u: status %d", x, (int) r);
			break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t pages[] = {256, 320, 512, 1024, 4096, 16384};
	fuzz_in		input = {data, size};
	bool		in[MOST_KEYS] = {0};
	bool		longs;
	uint8_t		how;

	if (ck_area == NULL)
	{
		ck_area = tap_area((size_t) 64 << 20, 2, 1 << 20);
		ck_attach(&w, 0);
	}
	how = fuzz_byte(&input);
	ck_reversed = how & 1;
	longs = how & 2;
	ck_long_every = how & 4 ? 7 : 61;
	ck_open(&w, pages[fuzz_below(&input, sizeof(pages) / sizeof(pages[0]))]);
	ck_buffers(&w);
	for (int n = 0; input.left > 0 && n < 300; n++)
	{
		uint8_t		op = fuzz_byte(&input);
		uint32_t	x = (uint32_t) fuzz_number(&input, 2) % MOST_KEYS;
		uint32_t	run = op & 16 ? fuzz_byte(&input) : 0;

		if (op % 32 == 15)
			check(in);
		for (uint32_t i = 0; i <= run; i++)
			operate(in, op, (x + i) % MOST_KEYS, longs);
	}
	check(in);
	FUZZ_CLAIM(tap_quiesce(&w.cx), "retired objects do not come back");
	return 0;
}
