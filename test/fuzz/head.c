/*
 * head.c
 *	  Fuzz target: the head of memory that outlived a crash, as the postmaster looks at it.
 *
 * Some words of it are damaged.  What is taken for intact is then made ready for the next processes: nothing
 * but its memory is read or written, and a word that it goes by is what it was.
 */
#include "fuzz.h"

#include "core/ax.h"
#include "core/base/ax_area.h"

#define SLOTS	3

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *fresh;
	static uint8_t *base;
	static size_t bytes;
	fuzz_in		in = {data, size};
	ax_area    *a;
	ax_area		was;
	int			slots = SLOTS;
	size_t		as;
	bool		changed = false;
	size_t		touched;

	if (base == NULL)
	{
		bytes = ax_area_min_size(SLOTS) + 16 * AX_PAGE;
		bytes -= bytes % AX_PAGE;
		if (posix_memalign((void **) &base, AX_PAGE, bytes) != 0)
			abort();
		memset(base, 0, bytes);
		if (ax_area_init(base, bytes, SLOTS, AX_PAGE) == NULL)
			abort();
		/* the memory of the core's free pages is poisoned; all of it is looked at here */
		fresh = malloc(bytes);
		memcpy(fresh, base, bytes);
	}
	memcpy(base, fresh, bytes);
	a = (ax_area *) base;
	was = *a;
	as = bytes;
	for (int i = (int) fuzz_below(&in, 8); i > 0; i--)
	{
		uint32_t	at = fuzz_below(&in, sizeof(ax_area));
		uint8_t		by = fuzz_byte(&in);

		base[at] ^= by;
	}
	if (fuzz_byte(&in) % 4 == 1)
		as = bytes / 2 + fuzz_below(&in, 4) * AX_PAGE;
	if (fuzz_byte(&in) % 4 == 1)
		slots = (int) fuzz_below(&in, 100);
	changed = memcmp(base, fresh, sizeof(ax_area)) != 0 || as != bytes || slots != SLOTS;

	touched = ax_area_touched(a, as, slots);
	FUZZ_CLAIM(touched <= as, "%zu bytes are touched of %zu", touched, as);
	if (!ax_area_intact(a, as, slots))
	{
		FUZZ_CLAIM(changed, "a head that nobody has changed is damaged");
		FUZZ_CLAIM(touched == as, "of a damaged head not all is touched");
		return 0;
	}
	FUZZ_CLAIM(as == bytes && slots == SLOTS, "intact as another area");
	FUZZ_CLAIM(a->slots == was.slots && a->map == was.map && a->nslots == was.nslots &&
			   a->npages == was.npages && a->base == was.base, "a word is another one, and it is intact");
	ax_area_survive(a);
	return 0;
}
