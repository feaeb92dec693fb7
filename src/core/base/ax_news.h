/*
 * ax_news.h
 *	  The updater's bell, for those who log what a search layer does not have yet.
 *
 * src/README.md: HydraList
 */
#ifndef AX_NEWS_H
#define AX_NEWS_H

#include "core/ax.h"

extern void ax_tell_updater(ax_ctx *cx);

#endif							/* AX_NEWS_H */
