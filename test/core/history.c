/*
 * history.c
 *	  See history.h.
 */
#include "history.h"

#include <stdio.h>
#include <string.h>

#include "schedule.h"

#ifdef AX_SCHED

#define STATES	(1 << 14)		/* remembered of one search */

/* A step that an order is made of. */
typedef struct item
{
	uint32_t	begin;
	uint32_t	end;
	bool		optional;		/* it may not have been done */
	uint64_t	mask;			/* of what it asks for */
	uint64_t	want;
	uint64_t	on;				/* of what it changes */
	uint64_t	off;
} item;

uint64_t	h_unjudged;

static int	nkeys;
static uint64_t initial[H_WORDS];
static h_call calls[H_CALLS];
static int	ncalls;
static uint32_t event;

static item items[64];
static int	nitems;
static bool too_long;
static struct
{
	uint64_t	round;
	uint64_t	done;
	uint64_t	state;
}			seen[STATES];
static uint64_t round_no;
static int	nseen;

void
h_start(int keys, const uint64_t *present)
{
	nkeys = keys;
	memcpy(initial, present, sizeof(initial));
	ncalls = 0;
	event = 0;
}

h_call *
h_begin(h_kind kind, const char *name, int thread, int from, int to)
{
	h_call	   *c = &calls[ncalls];

	if (ncalls == H_CALLS)
		sched_fail(0, UINT64_MAX, "the test made more than %d calls", H_CALLS);
	ncalls++;
	*c = (h_call) {.kind = kind, .name = name, .thread = thread, .from = from, .to = to,
		.begin = event++, .end = UINT32_MAX, .began = sched_steps(), .ended = UINT64_MAX};
	return c;
}

void
h_end(h_call *c, ax_status status)
{
	c->status = status;
	c->end = event++;
	c->ended = sched_steps();
}

/* ---- the search for an order ---- */

static void
add_item(item i)
{
	if (nitems == 64)
		too_long = true;
	else
		items[nitems++] = i;
}

static bool
was_here(uint64_t done, uint64_t state)
{
	uint64_t	h = (done * UINT64_C(0x9E3779B97F4A7C15) ^ state) * UINT64_C(0xD6E8FEB86659FD93);

	for (uint32_t at = (uint32_t) (h >> 40) % STATES;; at = (at + 1) % STATES)
	{
		if (seen[at].round != round_no)
		{
			if (nseen++ > STATES / 2)
			{
				too_long = true;
				return true;
			}
			seen[at].round = round_no;
			seen[at].done = done;
			seen[at].state = state;
			return false;
		}
		if (seen[at].done == done && seen[at].state == state)
			return true;
	}
}

/* Can what is not done yet follow on this state? */
static bool
can_follow(uint64_t done, uint64_t state)
{
	uint32_t	soonest = UINT32_MAX;
	bool		all = true;

	for (int i = 0; i < nitems; i++)
		if (!(done >> i & 1))
		{
			all = all && items[i].optional;
			if (items[i].end < soonest)
				soonest = items[i].end;
		}
	if (all)
		return true;
	if (was_here(done, state))
		return false;
	for (int i = 0; i < nitems; i++)
	{
		item	   *t = &items[i];

		if (!(done >> i & 1) && t->begin < soonest && ((state ^ t->want) & t->mask) == 0 &&
			can_follow(done | UINT64_C(1) << i, (state | t->on) & ~t->off))
			return true;
	}
	return false;
}

static bool
has_order(uint64_t state)
{
	bool		good;

	round_no++;
	nseen = 0;
	good = !too_long && can_follow(0, state);
	return good || too_long;
}

/* ---- from calls to items ---- */

/* The part of a call that is about a key, whose bit is given. */
static void
about(const h_call *c, int key, uint64_t bit)
{
	const bool	pending = c->end == UINT32_MAX;
	item		t = {.begin = c->begin, .end = c->end, .optional = pending};

	if (c->kind == H_READ)
	{
		if (pending || c->status != AX_OK)
			return;
		t.mask = bit;
		t.want = h_in(c->found, key) ? bit : 0;
	}
	else
	{
		const bool	in = c->kind != H_REMOVE;

		if (!pending && c->kind != H_PUT)
		{
			const bool	done = c->status == AX_OK;

			if (!done && c->status != (in ? AX_EXISTS : AX_NOTFOUND))
				return;
			t.mask = bit;
			t.want = in == done ? 0 : bit;
		}
		t.on = in ? bit : 0;
		t.off = in ? 0 : bit;
	}
	add_item(t);
}

static bool
touches(const h_call *c, int key)
{
	return key < 0 || (c->from <= key && key < c->to);
}

/* May the read say either of the key?  See history.h. */
static bool
says_either(const h_call *c, int key)
{
	bool		beside = false;
	int			puts = h_in(initial, key);

	for (int i = 0; i < ncalls; i++)
		if (calls[i].kind != H_READ && touches(&calls[i], key))
		{
			puts += calls[i].kind != H_REMOVE;
			beside = beside || (calls[i].begin < c->end && c->begin < calls[i].end);
		}
	return beside && (c->loose || (c->buffered && puts > 1));
}

static bool
key_explained(int key)
{
	nitems = 0;
	too_long = false;
	for (int i = 0; i < ncalls; i++)
		if (touches(&calls[i], key) && !says_either(&calls[i], key))
			about(&calls[i], key, 1);
	return has_order(h_in(initial, key));
}

/* All together: each written key has a bit. */
static bool
all_explained(const uint64_t *written)
{
	uint64_t	state = 0;
	int			bit_of[H_KEYS],
				bits = 0;

	nitems = 0;
	too_long = false;
	for (int k = 0; k < nkeys; k++)
	{
		bit_of[k] = -1;
		if (!h_in(written, k))
			continue;
		if (bits == 64)
			return true;
		bit_of[k] = bits++;
		state |= (uint64_t) h_in(initial, k) << bit_of[k];
	}
	for (int i = 0; i < ncalls; i++)
	{
		const h_call *c = &calls[i];

		if (c->kind == H_READ && c->one_moment)
		{
			item		t = {.begin = c->begin, .end = c->end};

			for (int k = c->from; k < c->to; k++)
				if (bit_of[k] >= 0)
				{
					t.mask |= UINT64_C(1) << bit_of[k];
					t.want |= (uint64_t) h_in(c->found, k) << bit_of[k];
				}
			if (t.mask && c->end != UINT32_MAX && c->status == AX_OK)
				add_item(t);
		}
		else
			for (int k = c->from; k < c->to; k++)
				if (bit_of[k] >= 0)
					about(c, k, UINT64_C(1) << bit_of[k]);
	}
	if (!has_order(state))
		return false;
	h_unjudged += too_long;
	return true;
}

/* Keys that nobody changed are as they were. */
static int
changed_by_none(const uint64_t *written)
{
	for (int i = 0; i < ncalls; i++)
	{
		const h_call *c = &calls[i];

		if (c->kind != H_READ || c->end == UINT32_MAX || c->status != AX_OK)
			continue;
		for (int k = c->from; k < c->to; k++)
			if (h_in(c->found, k) != h_in(initial, k) && !h_in(written, k))
				return k;
	}
	return -1;
}

bool
h_explained(int *key, uint64_t *from, uint64_t *to)
{
	uint64_t	written[H_WORDS] = {0};
	bool		moments = false,
				good = true;

	for (int i = 0; i < ncalls; i++)
	{
		const h_call *c = &calls[i];

		moments = moments || c->one_moment;
		if (c->kind == H_PUT || (c->kind != H_READ && (c->end == UINT32_MAX || c->status == AX_OK)))
			for (int k = c->from; k < c->to; k++)
				h_add(written, k);
		else if (c->kind != H_READ && (c->status == AX_EXISTS) != h_in(initial, c->from) &&
				 (c->status == AX_EXISTS || c->status == AX_NOTFOUND))
			h_add(written, c->from);	/* if nobody did, it has no order */
	}
	*key = changed_by_none(written);
	if (*key >= 0)
		good = false;
	for (int k = 0; k < nkeys && good; k++)
		if (h_in(written, k) && !key_explained(k))
		{
			good = false;
			*key = k;
		}
	if (good && moments && !all_explained(written))
	{
		good = false;
		*key = -1;
	}
	*from = UINT64_MAX;
	*to = 0;
	for (int i = 0; i < ncalls && !good; i++)
		if (touches(&calls[i], *key) && calls[i].thread >= 0)
		{
			*from = calls[i].began < *from ? calls[i].began : *from;
			*to = calls[i].ended > *to ? calls[i].ended : *to;
		}
	return good;
}

void
h_print(int key)
{
	static const char *const status[] = {"OK", "EXISTS", "NOTFOUND", "BUSY", "NOMEM", "STALE", "BUFFER",
	"CHANGED"};

	for (int i = 0; i < ncalls; i++)
	{
		const h_call *c = &calls[i];

		if (!touches(c, key))
			continue;
		printf("#   %3u..%-3d thread %2d: %s", c->begin, (int) c->end, c->thread, c->name);
		if (c->to == c->from + 1)
			printf(" %d", c->from);
		else if (c->to > c->from)
			printf(" %d..%d", c->from, c->to - 1);
		if (c->end == UINT32_MAX)
			printf(" never ended");
		else if (c->kind == H_READ && c->status == AX_OK && key >= 0)
			printf(": key %d %s", key, h_in(c->found, key) ? "is there" : "is not there");
		else
			printf(": %s", status[c->status]);
		if (c->kind == H_READ && c->status == AX_OK && key < 0)
			for (int k = c->from; k < c->to; k++)
				if (h_in(c->found, k))
					printf(" %d", k);
		printf("\n");
	}
}

uint64_t
h_sum(void)
{
	uint64_t	x = 0;

	for (int i = 0; i < ncalls; i++)
	{
		const h_call *c = &calls[i];
		const uint64_t part[] = {(uint64_t) c->kind, (uint64_t) c->thread, (uint64_t) c->from,
			(uint64_t) c->to, (uint64_t) c->status, c->begin, c->end, c->found[0], c->found[1],
		c->found[2], c->ended - c->began};

		for (size_t j = 0; j < sizeof(part) / sizeof(part[0]); j++)
			x = (x ^ part[j]) * UINT64_C(0x9E3779B97F4A7C15) + (x >> 29);
	}
	return x;
}

int
h_calls(void)
{
	return ncalls;
}

#endif							/* AX_SCHED */
