/*
 * huge_pages.c
 *	  The memory that outlives a crash cycle: its mapping, in huge pages where they are
 *	  to be had.
 *
 * PostgreSQL's huge_pages and huge_page_size hold for this memory, too.  Where there are no huge pages the kernel is asked for
 * transparent ones.
 *
 * Where the whole is reserved at the start nothing is given back.  A hole in it gives its
 * reservation up, and another server may take the page.  A process that comes to the
 * hole afterwards dies by SIGBUS.
 *
 * src/survive/README.md: Memory that outlives a crash
 */
#include "postgres.h"

#include <sys/mman.h>

#include "miscadmin.h"
#include "storage/pg_shmem.h"
#include "utils/guc.h"

#include "area/shared_state.h"

typedef enum ArtHuge
{
	ART_HUGE_OFF,
	ART_HUGE_ON,
	ART_HUGE_TRANSPARENT,
	ART_HUGE_UNKNOWN
} ArtHuge;

static const char *const status_names[] = {
	[ART_HUGE_OFF] = "off",
	[ART_HUGE_ON] = "on",
	[ART_HUGE_TRANSPARENT] = "transparent",
	[ART_HUGE_UNKNOWN] = "unknown",
};

static ArtHuge huge_status = ART_HUGE_UNKNOWN;

/* ---- what it is in ---- */

const char *
art_huge_pages(void)
{
	return status_names[huge_status];
}

/*
 * Is this address in huge pages?  PostgreSQL's setting does not say ("try"), and before
 * 17 nothing else does; the kernel names such a mapping.
 */
static ArtHuge
huge_at(const void *p)
{
	ArtHuge		answer = ART_HUGE_UNKNOWN;
#ifdef __linux__
	FILE	   *f = fopen("/proc/self/maps", "r");
	char		line[1024];

	if (f == NULL)
		return answer;
	while (fgets(line, sizeof(line), f))
	{
		unsigned long from;
		unsigned long to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2 &&
			(uintptr_t) p >= from && (uintptr_t) p < to)
		{
			answer = strstr(line, "hugepage") || strstr(line, "/hugetlb") ?
				ART_HUGE_ON : ART_HUGE_OFF;
			break;
		}
	}
	fclose(f);
#endif
	return answer;
}

void
art_huge_look(const void *p)
{
	huge_status = huge_at(p);
}

bool
art_may_discard(void)
{
	return huge_status != ART_HUGE_ON;
}

/* ---- the mapping ---- */

/* MAP_FAILED, with errno. */
static void *
map_pages(Size size, int flags)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags, -1, 0);
}

/*
 * Ask for transparent huge pages.  True: the kernel gives such to those who ask.
 */
static bool
advise_huge(void *p, Size size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
	FILE	   *f;
	char		line[128];
	bool		given = false;

	if (madvise(p, size, MADV_HUGEPAGE) != 0)
		return false;
	f = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
	if (f != NULL)
	{
		given = fgets(line, sizeof(line), f) != NULL &&
			!strstr(line, "[never]") && !strstr(line, "[deny]");
		fclose(f);
	}
	return given;
#else
	return false;
#endif
}

void *
art_keep_map(Size size)
{
	void	   *p = MAP_FAILED;
	Size		mapped = size;
	ArtHuge		status = ART_HUGE_OFF;

	if (huge_pages != HUGE_PAGES_OFF)
	{
		Size		page;
		int			flags;
		Size		rounded;

		GetHugePageSize(&page, &flags);
		if (page == 0 && huge_pages == HUGE_PAGES_ON)
			ereport(FATAL,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("huge pages not supported on this platform"),
					 errhint("Set the configuration parameter \"huge_pages\" to \"try\" or \"off\".")));
		if (page != 0)
		{
			rounded = add_size(size, page - 1) / page * page;
			p = map_pages(rounded, flags);
			if (p != MAP_FAILED)
			{
				status = ART_HUGE_ON;
				mapped = rounded;
			}
			else if (huge_pages == HUGE_PAGES_ON)
				ereport(FATAL,
						(errcode(ERRCODE_OUT_OF_MEMORY),
						 errmsg("could not map %zu bytes of shared memory for art indexes in huge pages: %m",
								rounded),
						 errdetail("They are %zu huge pages of %zu kB, besides those of PostgreSQL's own memory.",
								   rounded / page, page / 1024),
						 errhint("Let the kernel have more huge pages, decrease the configuration parameter \"artidx.memory\", "
								 "or set \"huge_pages\" to \"try\" or \"off\".")));
			else
				elog(DEBUG1, "artidx: mmap(%zu) with MAP_HUGETLB failed, huge pages disabled: %m", rounded);
		}
	}
	if (p == MAP_FAILED)
	{
		p = map_pages(size, 0);
		if (p == MAP_FAILED)
			ereport(FATAL,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("could not map %zu bytes of shared memory for art indexes: %m", size),
					 errhint("Decrease the configuration parameter \"artidx.memory\".")));
		if (huge_pages != HUGE_PAGES_OFF && advise_huge(p, size))
			status = ART_HUGE_TRANSPARENT;
	}
#ifdef MADV_DONTDUMP
	(void) madvise(p, mapped, MADV_DONTDUMP);
#endif
	huge_status = status;
	return p;
}

void
art_keep_wipe(void *base, Size used, Size size)
{
#ifdef MADV_REMOVE
	if (art_may_discard() && madvise(base, size, MADV_REMOVE) == 0)
		return;
#endif
	memset(base, 0, used);
}
