/*
 * bc_engine.c
 *	  The B+-tree whose order only the caller knows, as an engine: the table of what
 *	  needs no order.
 *
 * src/core/compared/README.md: Keys that are compared
 */
#include "bc_page.h"
#include "compared.h"
#include "core/base/ax_area.h"

/*
 * Calls that would compare are not for this tree: its callers go by ax_cmp.h.
 */
static ax_status
no_change(ax_ctx *cx, ax_store *s, const uint8_t *key, uint32_t len)
{
	ax_body(cx)->port->panic("a tree that is not compared", __FILE__, __LINE__);
	return AX_STALE;
}

static ax_status
no_lookup(ax_ctx *cx, ax_store *s, const uint8_t *prefix, uint32_t len, ax_found *f)
{
	return no_change(cx, s, prefix, len);
}

static ax_status
no_scan(ax_ctx *cx, ax_store *s, ax_batch *b)
{
	return no_change(cx, s, NULL, 0);
}

static ax_status
no_insert_sorted(ax_ctx *cx, ax_store *s, const ax_keys *keys, uint64_t *done,
				 uint64_t *added)
{
	return no_change(cx, s, NULL, 0);
}

const ax_engine ax_engine_btree_compared = {
	.compared = true,
	.structure = "btree",
	.sync = "olc",
	.kind = AX_SYNC_OLC,
	.insert = no_change,
	.remove = no_change,
	.contains = no_change,
	.lookup = no_lookup,
	.scan = no_scan,
	.load = bc_load,
	.insert_sorted = no_insert_sorted,
	.compact = bc_compact,
	.check = bc_check
};
