/*
 * ax_news.c
 *	  The updater's bell: somebody logged what a search layer does not have yet.
 *
 * A process that logs something raises "news", and then looks whether the updater sleeps.  The
 * updater says that it sleeps, and then looks for news.  All of it is sequentially consistent, so one
 * of the two sees the other.
 *
 * src/core/hydra/README.md: HydraList
 */
#include "ax_area.h"

/*
 * Cheap when the updater knows and is awake.
 *
 * Epoch: either.
 * Latches: none, for it may wake a process.
 */
void
ax_tell_updater(ax_ctx *cx)
{
	ax_area    *a = ax_area_of(cx);
	const ax_port *port = ax_body(cx)->port;

	atomic_store(&a->news, 1);
	if (atomic_load(&a->updater_sleeps) && atomic_exchange(&a->updater_sleeps, 0) &&
		port->wake_updater)
		port->wake_updater();
}

bool
ax_updater_wanted(ax_ctx *cx)
{
	return atomic_load(&ax_area_of(cx)->news) != 0;
}

void
ax_updater_begin(ax_ctx *cx)
{
	(void) atomic_exchange(&ax_area_of(cx)->news, 0);
}

bool
ax_updater_sleep(ax_ctx *cx)
{
	ax_area    *a = ax_area_of(cx);

	atomic_store(&a->updater_sleeps, 1);
	if (!atomic_load(&a->news))
		return true;
	atomic_store(&a->updater_sleeps, 0);
	return false;
}
