/*
 * ax_elide.h
 *	  Elision: what its files share, and what structures ask of it.
 *
 * A section is what runs between the first latch that a write takes and the release
 * of the last one.  Under a coarse latch it is a whole call.  Where elision is on,
 * a section is first tried as a transaction.  ax_elide.c has the policy and the
 * counters, ax_elide_rtm.c the processor's transactions.  Tests bring providers of
 * their own (test/modules/art_elidetest).
 *
 * src/core/elide/README.md: Elision
 */
#ifndef AX_ELIDE_H
#define AX_ELIDE_H

#include "core/base/ax_internal.h"

struct ax_guard;

/* The processor's status of a transaction that was begun, or why it ended. */
#define AX_TX_STARTED	UINT32_MAX
#define AX_TX_EXPLICIT	1u		/* code in the highest byte */
#define AX_TX_RETRY		2u
#define AX_TX_CONFLICT	4u
#define AX_TX_CAPACITY	8u
#define AX_TX_DEBUG		16u
#define AX_TX_NESTED	32u
#define AX_TX_CODE(s)	((s) >> 24)

/* Codes of our own aborts. */
#define AX_TX_BUSY		0xFFu	/* the latch is taken */
#define AX_TX_STALE		0xFEu	/* another latch of the section is, or its sample is old */
#define AX_TX_REFUSED	0x01u	/* wants to wait, or more memory: not in a transaction */

/* Policy: attempts of a section; of them, ended by capacity. */
#define AX_ELIDE_BUDGET		6
#define AX_ELIDE_CAPACITY	3
/* Of so many sections 1/4 were aborted: off for a while. */
#define AX_ELIDE_WINDOW		64
/* How long that is, in sections of one shard; doubled each time, up to so often. */
#define AX_ELIDE_SKIP		1024
#define AX_ELIDE_DOUBLE		6

/*
 * For software transactions, in a function that calls an engine to change a
 * tree, inside the epoch.  The stack deeper than this local variable is the
 * call's own, and put back with it.  Forgotten when the call leaves the epoch.
 */
#define AX_ELIDE_FRAME(cx, local) \
	do { \
		if (ax_unlikely(ax_body(cx)->elide.on)) \
			ax_elide_frame((cx), &(local)); \
	} while (0)

/*
 * A call that may change a tree begins, inside the epoch: "frame" is the address of a
 * variable of its own.  Forgotten when the call leaves the epoch.
 */
extern void ax_elide_frame(ax_ctx *cx, const void *frame);

/*
 * ax_guard_lock_at() where elision is on.  Begins a section, if nothing is latched
 * yet, or joins the one that is open.  May come back a second time, undone, with
 * memory as it was.
 *
 * Latches: the guard's word on true, in a transaction or without one; on false the
 * operation starts over.
 */
extern bool ax_elide_lock(ax_ctx *cx, struct ax_guard *g, ax_site site);

/*
 * Let go of a guard that was locked in a section.  The last one ends the section:
 * commits it, counts, and retires what was put off.  kill: the object is obsolete from
 * now on.
 *
 * Latches: gives the guard's back.
 */
extern void ax_elide_close(ax_ctx *cx, struct ax_guard *g, bool changed, bool kill);

/*
 * Should a leaf that is to be written be latched by a section, and not in its queue?
 * Not by a process that was refused once, nor with a latch held.
 */
extern bool ax_elide_instead(ax_ctx *cx, ax_store *s);

/*
 * A whole call under a coarse latch.  key: some key on its way, whose lines are
 * touched after an abort of status 0, or NULL.  frame: the caller's.
 *
 * Epoch: inside.
 * Latches: none on entry.
 * Returns: true, it runs as a section, which ax_elide_coarse_end() ends; else the
 * caller takes the latch.
 */
extern bool ax_elide_coarse(ax_ctx *cx, ax_store *s, bool write, const void *frame,
							const uint8_t *key, uint32_t len);

/*
 * Commit the section of a whole call, count it, and retire what was put off.
 *
 * Latches: gives the coarse latch back, unless a transaction only read that it was
 * open.
 */
extern void ax_elide_coarse_end(ax_ctx *cx, ax_store *s);

/*
 * Are latched sections of the store tried as transactions, by this process, its
 * setting and the store's option?
 */
extern bool ax_elide_active(ax_ctx *cx, ax_store *s);

/* ax_elide_rtm.c */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(AX_MAP_RWLOCKS)
#define AX_RTM 1
#endif

/*
 * XBEGIN.  May come back once more, with registers and memory as they were, after its
 * caller has returned.
 *
 * Returns: AX_TX_STARTED, or the status of the abort.  Without RTM in the build: 0.
 */
extern uint32_t ax_rtm_begin(void);

/* XEND: commit.  Only in a transaction. */
extern void ax_rtm_end(void);

/*
 * XABORT with AX_TX_BUSY, AX_TX_STALE or, for any other code, AX_TX_REFUSED.  Does not
 * return from a transaction.
 */
extern void ax_rtm_abort(uint32_t code);

/* ---- a provider, in place of the processor ---- */

/*
 * "undoes": a section can be undone, as a transaction is; the last six functions are
 * for that.  Else it only runs latched, as if it had committed.
 */
struct ax_provider
{
	const char *name;
	bool		undoes;
	ax_section_calls section;

	/*
	 * The process is to elide so, or (on is false) has that for later.  how: words
	 * that the caller knows to be good.  False: it cannot be done here.  Ended by
	 * section.detached.
	 */
	bool		(*setup) (ax_ctx *cx, bool on, const char *how);
	/* AX_TX_STARTED, or the status of the abort; may come back a second time */
	uint32_t	(*begin) (ax_ctx *cx, ax_site site);

	void		(*coarse) (ax_ctx *cx, bool write); /* the section holds the coarse latch */
	void		(*locked) (ax_ctx *cx, struct ax_guard *g); /* and a guard's */
	void		(*unlock) (ax_ctx *cx, struct ax_guard *g, bool changed, bool kill);
	void		(*commit) (ax_ctx *cx);
	void		(*abort) (ax_ctx *cx, uint32_t status); /* does not return */
	/* what was allocated before is published without a section, or gone */
	void		(*pass) (ax_ctx *cx);
};

/*
 * The allocations made so far are about to be published without a section.  Tells a
 * provider that undoes sections that they are not to be undone.
 */
extern void ax_elide_pass(ax_ctx *cx);

/* The core's functions, for a provider that is in another library. */
typedef struct ax_elide_host
{
	size_t		ctx_bytes;		/* of ax_ctx_body: compiled alike? */
	void		(*wake) (ax_ctx *cx, ax_word *w);
	void		(*coarse_unlock) (ax_ctx *cx, ax_store *s, bool write);
	const char *(*site_name) (ax_site site);
} ax_elide_host;

/* The core's functions, for a provider that is in another library. */
extern const ax_elide_host ax_elide_offers;

#endif							/* AX_ELIDE_H */
