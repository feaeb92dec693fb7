/*
 * batch.c
 *	  The current batch of a scan: its buffers, and the keys of its entries.
 *
 * src/scan/README.md: Scans
 */
#include "postgres.h"

#include "scan/open_scan.h"

#define ART_KEYBUF_MAX		((uint32) 64 * 1024)

void
art_scan_buffers(ArtScan *so, uint32 n, bool keys)
{
	if (so->cur.tids_cap < n)
	{
		if (so->cur.tids != NULL && so->cur.tids != so->first_tids)
			pfree(so->cur.tids);
		so->cur.tids = MemoryContextAlloc(so->cxt, n * sizeof(uint64));
		so->cur.tids_cap = n;
	}
	art_scan_room(so, &so->cur.last, 64);
	if (keys)
	{
		uint32		bytes;

		if (so->cur.key_off_cap < n + 1)
		{
			if (so->cur.key_off != NULL)
				pfree(so->cur.key_off);
			so->cur.key_off = MemoryContextAlloc(so->cxt, (n + 1) * sizeof(uint32));
			so->cur.key_off_cap = n + 1;
		}
		bytes = n * (so->kd.fixed ? so->kd.fixed_len + AX_TID_BYTES : 64);
		art_scan_room(so, &so->cur.keys, Min(bytes, ART_KEYBUF_MAX));
	}
}

bool
art_scan_goes_on(const ArtScan *so, const ax_bound *at, bool backward)
{
	ax_bound	far = backward ?
		(ax_bound) {so->plan.lo.data, so->plan.lo_len, so->plan.lo_after} :
		(ax_bound) {so->plan.hi.data, so->plan.hi_len, so->plan.hi_after};
	int			c = art_bound_cmp(&so->kd, at, &far);

	return backward ? c > 0 : c < 0;
}

const uint8 *
art_scan_key(ArtScan *so, uint32 i, uint32 *len)
{
	if (so->plan.point)
	{
		uint32		plen;
		const uint8 *p = art_scan_point(so, i, &plen);

		if (so->tmpkey.data == NULL || so->tmpkey.cap < plen + AX_TID_BYTES)
			art_scan_room(so, &so->tmpkey, plen + AX_TID_BYTES);
		memcpy(so->tmpkey.data, p, plen);
		ax_put_tid(so->tmpkey.data + plen, so->cur.tids[i]);
		*len = plen + AX_TID_BYTES;
		return so->tmpkey.data;
	}
	Assert(so->cur.have_keys);
	*len = so->cur.key_off[i + 1] - so->cur.key_off[i];
	return so->cur.keys.data + so->cur.key_off[i];
}
