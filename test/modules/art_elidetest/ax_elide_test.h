/*
 * ax_elide_test.h
 *	  Providers of elision for tests, on any processor: of the module art_elidetest
 *	  and of the programs of test/core.
 */
#ifndef AX_ELIDE_TEST_H
#define AX_ELIDE_TEST_H

#include "core/elide/ax_elide.h"

/* An item of a script: a status, so many times. */
#define AX_ELIDE_ITEMS 48
typedef struct ax_elide_item
{
	uint32_t	status;
	uint32_t	count;
} ax_elide_item;

/* One site's part of a script; that of all others is the last one. */
typedef struct ax_elide_part
{
	uint8_t		first;
	uint8_t		n;				/* 0: none */
	uint8_t		at;				/* next item, from first */
	bool		loop;
	uint32_t	used;			/* of that item */
} ax_elide_part;

typedef struct ax_elide_script
{
	bool		any;
	ax_elide_part part[AX_SITES + 1];
	ax_elide_item item[AX_ELIDE_ITEMS];
} ax_elide_script;

/* False: not a script.  The next status for a site. */
extern bool ax_elide_parse(const char *text, ax_elide_script *out);
extern uint32_t ax_elide_next(ax_elide_script *s, ax_site site);
extern bool ax_elide_script_ok(const char *script);

/* Both take a script for their words. */
extern const ax_provider ax_inject;
extern const ax_provider ax_software;

#endif							/* AX_ELIDE_TEST_H */
