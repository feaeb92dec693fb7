/*
 * ax_elide.c
 *	  Lock elision: latched sections run as transactions.
 */
#include "ax_area.h"

static const char *const site_names[AX_SITES] = {
	"coarse_read", "coarse_write", "leaf_insert", "leaf_delete",
	"node_insert", "node_delete", "split", "tail_flush"
};

/* See ax.h. */
const char *
ax_site_name(ax_site site)
{
	return site_names[site];
}

/* See ax.h. */
void
ax_hardware_probe(ax_hardware *out)
{
	memset(out, 0, sizeof(*out));
}

/* See ax.h. */
bool
ax_elide_script_ok(const char *script)
{
	return true;
}

/* See ax.h. */
bool
ax_elide_setup(ax_ctx *cx, const ax_hardware *hw, ax_elide_option setting,
			   ax_elide_provider provider, const char *script)
{
	return true;
}

/* See ax.h. */
ax_status
ax_tree_set_elision(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_elide_option option)
{
	return AX_OK;
}

/* See ax.h. */
ax_status
ax_aborts(ax_ctx *cx, ax_tree *t, uint64_t gen, ax_site_info out[AX_SITES])
{
	memset(out, 0, AX_SITES * sizeof(*out));
	for (int i = 0; i < AX_SITES; i++)
		out[i].mode = "no-rtm";
	return AX_OK;
}
