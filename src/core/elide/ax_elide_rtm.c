/*
 * ax_elide_rtm.c
 *	  Transactions of the processor (Intel RTM), and whether it has any.
 *
 * The instructions are compiled on every x86-64 and executed only where CPUID
 * says that they are there, or where a caller insists.  XTEST is not used: who is
 * in a transaction knows it.
 *
 * src/core/elide/README.md: Elision
 */
#include "core/base/ax_area.h"
#include "ax_elide.h"

#define PROBES		200
#define PROBES_GOOD 100

#ifdef AX_RTM
#include <cpuid.h>

/*
 * By bytes, so that neither the compiler's target nor the assembler's matters.
 * XBEGIN with the next instruction as its fallback: whether it began or was
 * aborted is told by eax alone.  It comes back once more when the transaction is
 * aborted, with all of memory and the registers as they were.  So its caller may
 * have returned meanwhile.
 */
__attribute__((noinline)) uint32_t
ax_rtm_begin(void)
{
	uint32_t	status = AX_TX_STARTED;

	__asm__ volatile(".byte 0xc7,0xf8,0,0,0,0" : "+a"(status) : : "memory");
	return status;
}

void
ax_rtm_end(void)
{
	__asm__ volatile(".byte 0x0f,0x01,0xd5" : : : "memory");
}

void
ax_rtm_abort(uint32_t code)
{
	switch (code)
	{
		case AX_TX_BUSY:
			__asm__ volatile(".byte 0xc6,0xf8,0xff" : : : "memory");
			break;
		case AX_TX_STALE:
			__asm__ volatile(".byte 0xc6,0xf8,0xfe" : : : "memory");
			break;
		default:
			__asm__ volatile(".byte 0xc6,0xf8,0x01" : : : "memory");
			break;
	}
}

/* Commit what writes a line, as a section would. */
static void
try_transactions(ax_hardware *out)
{
	static _Alignas(64) volatile uint64_t line[8];

	for (int i = 0; i < PROBES && out->probe_commits < PROBES_GOOD; i++)
	{
		line[0]++;				/* touched, or it aborts for that */
		out->probe_attempts++;
		if (ax_rtm_begin() == AX_TX_STARTED)
		{
			line[1]++;
			ax_rtm_end();
			out->probe_commits++;
		}
	}
}

#else

uint32_t
ax_rtm_begin(void)
{
	return 0;
}

void
ax_rtm_end(void)
{
}

void
ax_rtm_abort(uint32_t code)
{
}

#endif							/* AX_RTM */

void
ax_hardware_probe(ax_hardware *out)
{
	memset(out, 0, sizeof(*out));
#ifdef AX_RTM
	{
		unsigned	a,
					b,
					c,
					d;

		if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
		{
			out->rtm_cpuid = (b & (1u << 11)) != 0;
			out->rtm_always_abort = (d & (1u << 11)) != 0;
		}
	}
	if (out->rtm_cpuid && !out->rtm_always_abort)
		try_transactions(out);
	out->rtm_usable = out->probe_commits == PROBES_GOOD;
#endif
}
