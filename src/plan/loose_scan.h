/*
 * loose_scan.h
 *	  Loose scans: what their planner and their executor share.
 *
 * src/plan/README.md: Loose scans
 */
#ifndef ART_PLAN_LOOSE_SCAN_H
#define ART_PLAN_LOOSE_SCAN_H

#include "nodes/extensible.h"

#define ART_LOOSE_NAME		"Loose Scan"

/* Which rows of a group are given, of those that pass the conditions of the scan below. */
typedef enum ArtLooseRows
{
	ART_LOOSE_FIRST,
	ART_LOOSE_LAST,
	ART_LOOSE_BOTH				/* the first, then the last, which may be the same one */
} ArtLooseRows;

/* custom_private is a list of these numbers, then a list of the index's OID. */
typedef enum ArtLooseNumber
{
	ART_LOOSE_COLUMNS,			/* of the index, which make a group */
	ART_LOOSE_ROWS,				/* ArtLooseRows */
	ART_LOOSE_NULLS				/* a NULL in the next column makes a group of its own */
} ArtLooseNumber;

/* The custom scan, as core knows it by its name. */
extern const CustomScanMethods art_loose_scan_methods;

#endif							/* ART_PLAN_LOOSE_SCAN_H */
