/*
 * survive.h
 *	  After a crash: which structures are kept.
 *
 * src/survive/README.md: Memory that outlives a crash
 */
#ifndef ART_SURVIVE_H
#define ART_SURVIVE_H

#include "area/shared_state.h"

/* ---- judge.c ---- */

/* For art_judge_by(), from _PG_init. */
extern void art_judge(void);

#endif							/* ART_SURVIVE_H */
