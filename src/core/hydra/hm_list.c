/*
 * hm_list.c
 *	  Versions of HydraList's data nodes: the clock, commits, and finding a node now or
 *	  as of a moment.
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
#include "hm.h"

#define STEPS	(1 << 20)		/* of a writer's walk, before it starts over */

/* ---- versions ---- */

hm_ver *
hm_make_ver(ax_ctx *cx, ax_store *s, bool may_reserve)
{
	return ax_alloc(cx, s, sizeof(hm_ver), may_reserve);
}

void
hm_drop_ver(ax_ctx *cx, ax_store *s, hm_ver *v)
{
	if (v)
		ax_unalloc(cx, s, v, sizeof(hm_ver));
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
	if (bt_ld(&n->soon) != v->body)
		atomic_store_explicit(&n->soon, v->body, memory_order_relaxed);
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
hm_version(hy_list *t, const hy_node *n, uint64_t clock)
{
	hm_ver	   *v = hm_newest(n);

	AX_POINT("mvrlu.node_read");
	while (ax_unlikely(v && stamp_of(t, v) > clock))
	{
		v = v->older;
		atomic_fetch_add_explicit(&t->passed, 1, memory_order_relaxed);
	}
	return v;
}

/* ---- finding a node ---- */

/* A node near the position: the head, if there is no better. */
static hy_node *
jump(ax_ctx *cx, ax_store *s, hy_list *t, const ax_bound *pos, hy_side side)
{
	hy_node    *n;

	return hy_jump(cx, s, t, pos->key, pos->len, side, &n) == AX_OK ? n : t->head;
}

/*
 * The node in whose range the position was at the moment, and its version of then.  *n: a
 * node near it, or NULL.
 *
 * The links of a version lead to nodes that were there at its moment, and the epoch keeps
 * these.  The link back is of now, or of when the node went.  It leads to the left, and from
 * there the links of the moment lead here.
 *
 * Epoch: inside; the clock was read in it.
 * Latches: none.
 * Arguments: a position, a moment, and what is there.
 */
hm_ver *
hm_reach(ax_ctx *cx, ax_store *s, hy_list *t, hy_node **n, const ax_bound *pos, hy_side side,
		 uint64_t clock)
{
	bool		near = *n != NULL;
	uint32_t	steps = 0;
	hy_body    *soon;
	hm_ver	   *v;

	if (!near)
		*n = jump(cx, s, t, pos, side);
	for (;; steps++)
	{
		soon = hm_ask_for(*n);
		v = hm_version(t, *n, clock);
		if (ax_unlikely(!v))
			*n = (*n)->origin;
		else if (ax_unlikely(!v->body))
			*n = v->end.next;
		else
		{
			int			dir;

			if (ax_unlikely(v->body != soon))
				hy_ahead(v->body);
			dir = hy_where(*n, &v->end, pos->key, pos->len, side);
			if (ax_likely(dir == 0))
				break;
			*n = dir < 0 ? hy_ld(&(*n)->prev) : v->end.next;
		}
		AX_POINT("mvrlu.walk");
	}
	if (ax_unlikely(steps > 0) && !near)
		hy_walked(cx, s, t, steps);
	return v;
}

/*
 * Epoch: inside.
 * Latches: none on entry.  On AX_OK the guard of the node is open: with pess it has the latch.
 * Arguments: a position, and how to take what is there.
 */
ax_status
hm_find(ax_ctx *cx, ax_store *s, hy_list *t, hy_node *from, const ax_bound *pos, hy_side side,
		bool pess, hm_at *at)
{
	hy_node    *n = from ? from : jump(cx, s, t, pos, side);

	for (uint32_t steps = 0; steps < STEPS; steps++)
	{
		hy_node    *go = n;
		ax_status	x;

		AX_POINT("mvrlu.find.node_read");
		(void) hm_ask_for(n);
		x = ax_guard_open(cx, &at->g, &n->word, pess);
		if (x == AX_STALE)
		{
			/* its last version says where its keys went */
			n = hm_newest(n)->end.next;
			continue;
		}
		if (x != AX_OK)
			return x;
		AX_POINT("mvrlu.find.node_version");
		at->v = hm_newest(n);
		if (ax_unlikely(!at->v->body))
			;					/* just now; its latch is taken */
		else
		{
			int			dir = hy_where(n, &at->v->end, pos->key, pos->len, side);

			if (ax_likely(dir == 0))
			{
				at->n = n;
				if (ax_unlikely(steps > 0) && !from)
					hy_walked(cx, s, t, steps);
				return AX_OK;
			}
			go = dir < 0 ? hy_ld(&n->prev) : at->v->end.next;
		}
		/*
		 * A link of a node that is in the list leads to one that was there in this epoch.  The link
		 * of a version that is latched may lead to a node that is not committed.  A change there
		 * would have the earlier stamp, and who came between would not find it.
		 */
		if (ax_guard_valid(&at->g))
			n = go;
		ax_guard_close(cx, &at->g, false);
	}
	return AX_BUSY;
}

/* ---- what is in a version ---- */

int
hm_slot_of(const hm_ver *v, const uint8_t *key, uint32_t len)
{
	const hy_body *b = v->body;

	for (uint64_t m = hy_match(b, hy_fp(key, len - AX_TID_BYTES)) & hm_live(v); m; m &= m - 1)
	{
		int			i = __builtin_ctzll(m);
		const uint8_t *rest = NULL;
		uint32_t	n = 0;
		bt_blob    *blob;

		(void) hy_rest(b, NULL, i, &rest, &n, &blob);
		if (blob ? n == len && memcmp(rest, key, len) == 0 :
			n + b->plen == len && ax_equal(rest, key + b->plen, n))
			return i;
	}
	return -1;
}

int
hm_entries(const hm_ver *v, hy_entry *e)
{
	int			n = 0;

	for (uint64_t m = hm_live(v); m; m &= m - 1)
	{
		int			i = __builtin_ctzll(m);

		hy_get(v->body, i, &e[n].v);
		e[n++].fp = ax_load1(&v->body->fp[i]);
	}
	return n;
}

/* ---- a load ---- */

bool
hm_dress(ax_ctx *cx, ax_store *s, hy_node *first)
{
	for (hy_node *n = first; n; n = hy_next(n))
	{
		hm_ver	   *v = hm_make_ver(cx, s, false);

		if (!v)
		{
			/* those before this one */
			for (hy_node *k = first; k != n; k = hy_next(k))
			{
				hm_ver	   *has = hm_newest(k);

				atomic_store_explicit(&k->body, has->body, memory_order_relaxed);
				hm_drop_ver(cx, s, has);
			}
			return false;
		}
		*v = (hm_ver) {.end = hy_end_of(n), .body = hy_ld(&n->body)};
		v->live = hy_used(v->body);
		atomic_store_explicit(&n->soon, v->body, memory_order_relaxed);
		atomic_store_explicit(&n->ver, v, memory_order_relaxed);
	}
	return true;
}

void
hm_undress(ax_ctx *cx, ax_store *s, hy_node *first)
{
	for (hy_node *n = first; n; n = hy_next(n))
	{
		hm_ver	   *v = hm_newest(n);

		atomic_store_explicit(&n->body, v->body, memory_order_relaxed);
		hm_drop_ver(cx, s, v);
	}
}
