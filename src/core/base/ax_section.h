/*
 * ax_section.h
 *	  What a process keeps of the section that it is in (ax_elide.h), and what may
 *	  happen in one that can be undone: for those below, which do not know how it is.
 *
 * Included by ax_internal.h.
 *
 * src/core/elide/README.md: Elision
 */
#ifndef AX_SECTION_H
#define AX_SECTION_H

#include "core/ax.h"

struct ax_elide_shared;

/*
 * How a section is undone, and what else those who can undo one want to hear of.
 * Set when elision is set up, before anything is apart.
 */
typedef struct ax_section_calls
{
	void		(*undo) (ax_ctx *cx);	/* of a section that can be: does not return */
	void		(*passed) (ax_ctx *cx); /* something was put off: a place to end it */
	void		(*alloced) (ax_ctx *cx, void *p, uint32_t bytes);
	void		(*given) (ax_ctx *cx, void *p);
	void		(*detached) (ax_ctx *cx);	/* the process will elide no more */
} ax_section_calls;

/* The outcome of one section, until it is counted. */
typedef struct ax_elide_tally
{
	uint32_t	attempts;
	uint32_t	commits;
	uint32_t	conflict;
	uint32_t	capacity;
	uint32_t	explicit_;
	uint32_t	lock_busy;
	uint32_t	nested;
	uint32_t	zero;
	uint32_t	other;
	uint32_t	retry_hint;
} ax_elide_tally;

/*
 * Calls in a row of which none met another process: then one finds out whether the
 * coarse latch is still contended.
 */
#define AX_ELIDE_LOOK 4096

#define AX_ELIDE_RETIRED 12
#define AX_ELIDE_DELTAS 24

#define AX_APART_TXN	1		/* in a section that can be undone */
#define AX_APART_SOFT	2		/* it is undone by hand: allocations are followed */

typedef struct ax_elide_ctx
{
	bool		on;				/* a latch may begin a section */
	uint8_t		apart;			/* not as usual: one or both of the bits below */
	uint8_t		open;			/* the section's site + 1; 0: none */
	bool		coarse;			/* it is a whole call */
	bool		write;			/* that call writes */
	bool		failed;			/* a latch of it was not to be had */
	bool		queue;			/* to the queue, next time (OptiQL) */
	bool		flushing;		/* the tail buffer's flusher */
	bool		undone;			/* by hand, and the version moved: nobody to wait for */
	uint8_t		guards;			/* of the section, not closed yet */
	uint8_t		nretired;
	uint8_t		setting;
	bool		usable;			/* can it be done at all? */
	uint16_t	tried;			/* calls that met nobody, since it found that out */
	uint32_t	deltas;			/* which of delta[] are set */
	const ax_section_calls *calls;	/* NULL: never set up, and nothing is apart */
	const void *frame;			/* all that is deeper is the call's own */
	ax_store   *store;			/* of the section */
	struct ax_elide_shared *shared; /* its counters */
	const ax_provider *by;		/* NULL: the processor */
	void	   *provided;		/* the provider's own */
	ax_elide_tally tally;
	/* put off until it is committed */
	int64_t		delta[AX_ELIDE_DELTAS];
	struct
	{
		void	   *p;
		uint32_t	size;
	}			retired[AX_ELIDE_RETIRED];
} ax_elide_ctx;

/*
 * The section cannot go on in a transaction: it wants to wait, or more memory.  If
 * this process is in one that can be undone, it is undone and runs latched, and this
 * does not return.  Else nothing.
 */
extern void ax_section_refuse(ax_ctx *cx) __attribute__((cold));

/*
 * Add d to the counter of this process's shard at "offset" of ax_shard.  In a section
 * that can be undone, when it is committed.
 */
extern void ax_section_count(ax_ctx *cx, ax_store *s, size_t offset, int64_t d) __attribute__((cold));

/*
 * Retire an object when the section is committed.  A section has room for
 * AX_ELIDE_RETIRED; with more it is refused.
 */
extern void ax_section_retire(ax_ctx *cx, void *p, uint32_t size) __attribute__((cold));

#endif							/* AX_SECTION_H */
