/*
 * tap.h
 *	  A tiny TAP producer and what every core test needs: an area, threads,
 *	  random numbers, pause points.
 */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/ax.h"

/* ok(condition, "name %d", n): one test line; returns the condition. */
#define ok(cond, ...) tap_ok((cond), __FILE__, __LINE__, #cond, __VA_ARGS__)

extern bool tap_ok(bool cond, const char *file, int line, const char *what,
				   const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
extern void tap_diag(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints the plan; the exit status of the program. */
extern int	tap_done(void);

/* A hang is a failure that says so: ends the program after so many seconds. */
extern void tap_deadline(unsigned seconds);

/* Shared, zero-filled, page-aligned memory, inherited by fork. */
extern void *tap_shared(size_t size);
extern ax_area *tap_area(size_t size, int nslots, size_t reserve);
extern void tap_unmap(void *p, size_t size);

/* fn(arg, i) in n threads at once; returns when all are done. */
extern void tap_threads(int n, void (*fn) (void *arg, int i), void *arg);

/* The same in n processes; false unless all end well. */
extern bool tap_forks(int n, void (*fn) (void *arg, int i), void *arg);

/* xorshift64*: *s must not be 0. */
extern uint64_t tap_rand(uint64_t *s);

/* How much work: TAP_SCALE per cent of n, less under a sanitizer. */
extern uint64_t tap_scaled(uint64_t n);

/* Is it less than the whole work? */
extern bool tap_shortened(void);

/* A shortened run under TSan: what needs one thread only is left out, for it has no race to show. */
extern bool tap_races_only(void);

/* Called at every AX_POINT when set. */
extern void (*volatile tap_point_hook) (const char *name);

/* Housekeeping until nothing is pending, for at most a few seconds. */
extern bool tap_quiesce(ax_ctx *cx);

/*
 * ax_check until it is done: what it counted, and whether all was well (else msg).
 * AX_OK, AX_STALE, or AX_BUSY a hundred times in a row.
 */
extern ax_status tap_check(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_tree_info *out,
						   bool *good, char *msg, size_t msglen);

extern ax_structure tap_structure(void);
extern uint32_t tap_page_size(void);

/*
 * Elision as AX_ELIDE says: nothing, rtm, rtm-auto, software, inject or inject:SCRIPT;
 * after each ax_attach().  And whether there were sections, where there must be some,
 * and only there; told, too.
 */
extern void tap_elide(ax_ctx *cx);
extern bool tap_elide_counts(ax_ctx *cx, ax_tree *t, uint64_t gen);

/* AX_TAIL of the environment: "on", "auto", else off. */
extern ax_tail_option tap_tail(void);

#endif							/* TAP_H */
