/*
 * hm_version.c
 *	  Versions of HydraList's data nodes: the clock, commits, and finding a node as of a
 *	  moment.
 *
 * A commit has three steps.  All its versions are put in their headers, with stamps that are
 * pending.  Then the stamp that counts is marked.  Only then it is drawn.  A reader that
 * meets the mark cannot know whether the number that was drawn is before its own moment.  So
 * it draws one itself, which is not, and puts that there.  Nobody waits for a process that was
 * stopped in between.
 *
 * A version is retired when a newer one is committed.  The epochs keep it for all who came
 * before that: they announced themselves before they read the clock.
 *
 * src/core/hydra/README.md: Versions
 */
#include "hm_version.h"

/* ---- versions ---- */

hm_ver *
hm_make_ver(const hy_call *h, bool may_reserve)
{
	return ax_alloc(h->cx, h->s, sizeof(hm_ver), may_reserve);
}

void
hm_drop_ver(const hy_call *h, hm_ver *v)
{
	ax_unalloc(h->cx, h->s, v, sizeof(hm_ver));
}

/*
 * Latches: the caller has that of the node, or nobody else knows of it.
 */
void
hm_publish(hy_node *n, hm_ver *v, hm_ver *lead)
{
	atomic_store_explicit(&v->stamp, HM_PENDING, memory_order_relaxed);
	v->lead = lead;
	v->older = bt_ld(&n->ver);
	if (bt_ld(&n->soon) != v->is.body)
		atomic_store_explicit(&n->soon, v->is.body, memory_order_relaxed);
	atomic_store_explicit(&n->ver, v, memory_order_release);
}

/*
 * Draw the next stamp, for a version that is marked; the first to put one there is right.
 * All who read a clock that is not less see the versions that were published before.
 */
static void
stamp(hy_list *t, hm_ver *v)
{
	uint64_t	mark = HM_COMMITTING;
	uint64_t	drawn = atomic_fetch_add_explicit(&t->clock, 1, memory_order_seq_cst) + 1;

	AX_POINT("mvrlu.drawn");
	(void) atomic_compare_exchange_strong_explicit(&v->stamp, &mark, drawn, memory_order_acq_rel,
												   memory_order_acquire);
}

/*
 * Latches: the caller has those of all nodes of the change.
 */
void
hm_commit(hy_list *t, hm_ver *lead)
{
	AX_POINT("mvrlu.published");
	atomic_store_explicit(&lead->stamp, HM_COMMITTING, memory_order_release);
	AX_POINT("mvrlu.marked");
	stamp(t, lead);
	AX_POINT("mvrlu.committed");
}

/*
 * Latches: the caller has that of the leader's node.
 */
void
hm_led(hm_ver *v)
{
	atomic_store_explicit(&v->stamp, hy_ld(&v->lead->stamp), memory_order_release);
}

/* A version's stamp; what is pending is later than all. */
static inline uint64_t
stamp_of(hy_list *t, hm_ver *v)
{
	uint64_t	s = hy_ld(&v->stamp);

	if (ax_likely(s < HM_COMMITTING))
		return s;
	AX_POINT("mvrlu.unstamped");
	/* the leader cannot have been retired before ours had its stamp */
	if (v->lead)
		v = v->lead;
	s = hy_ld(&v->stamp);
	if (s == HM_COMMITTING)
	{
		AX_POINT("mvrlu.help");
		stamp(t, v);
		atomic_fetch_add_explicit(&t->helped, 1, memory_order_relaxed);
		s = hy_ld(&v->stamp);
	}
	return s;
}

hm_ver *
hm_version(const hy_call *h, const hy_node *n)
{
	hm_ver	   *v = hm_newest(n);

	AX_POINT("mvrlu.node_read");
	while (ax_unlikely(v && stamp_of(h->t, v) > h->clock))
	{
		v = v->older;
		atomic_fetch_add_explicit(&h->t->passed, 1, memory_order_relaxed);
	}
	return v;
}

/* ---- finding a node ---- */

/*
 * The links of a version lead to nodes that were there at its moment, and the epoch keeps
 * these.  The link back is of now, or of when the node went.  It leads to the left, and from
 * there the links of the moment lead here.
 */
void
hm_reach(const hy_call *h, hy_node *near, const ax_bound *pos, hy_side side, hy_at *at)
{
	uint32_t	steps = 0;
	hy_node    *n = near,
			   *told;
	hm_ver	   *v;

	if (!n)
	{
		(void) hy_jump(h, pos, side, &told);
		n = told;
	}
	for (;; steps++)
	{
		hy_body    *soon = hm_ask_for(n);

		v = hm_version(h, n);
		if (ax_unlikely(!v))
			n = n->origin;
		else if (ax_unlikely(!v->is.body))
			n = v->is.end.next;
		else
		{
			int			dir;

			if (ax_unlikely(v->is.body != soon))
				hy_ahead(v->is.body);
			dir = hy_where(n, &v->is.end, pos->key, pos->len, side);
			if (ax_likely(dir == 0))
				break;
			n = dir < 0 ? hy_ld(&n->prev) : v->is.end.next;
		}
		AX_POINT("mvrlu.walk");
	}
	if (ax_unlikely(steps > 0) && !near)
		hy_walked(h, steps);
	at->n = n;
	at->is = &v->is;
}

/* ---- a load ---- */

bool
hm_dress(const hy_call *h, hy_node *first)
{
	for (hy_node *n = first; n; n = hy_next(n))
	{
		hm_ver	   *v = hm_make_ver(h, false);

		if (!v)
		{
			hm_undress(h, first, n);
			return false;
		}
		*v = (hm_ver) {.is = {.end = hy_end_of(n), .body = hy_ld(&n->body)}};
		v->is.live = hy_used(v->is.body);
		atomic_store_explicit(&n->soon, v->is.body, memory_order_relaxed);
		atomic_store_explicit(&n->ver, v, memory_order_relaxed);
	}
	return true;
}

void
hm_undress(const hy_call *h, hy_node *first, const hy_node *end)
{
	for (hy_node *n = first; n != end; n = hy_next(n))
	{
		hm_ver	   *v = hm_newest(n);

		atomic_store_explicit(&n->body, v->is.body, memory_order_relaxed);
		hm_drop_ver(h, v);
	}
}
