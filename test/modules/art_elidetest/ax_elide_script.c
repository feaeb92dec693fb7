/*
 * ax_elide_script.c
 *	  Scripts of transactions' status words: what becomes of each attempt.  And the
 *	  provider "inject", where a section that commits by the script runs latched.
 *
 *	script	= part { ";" part }
 *	part	= [ site ":" ] item { (" " | ",") item } [ "loop" ]
 *	item	= what [ "+retry" ] [ "*" count ]
 *	what	= "commit" | "conflict" | "capacity" | "explicit" | "busy" | "nested"
 *			| "zero" | "other" | a status word, as 0x0000000c
 *
 * A part with a site is for that site, the one without for all others, which share
 * it.  Each attempt takes the next item, in one process.  When there is none left
 * every attempt commits; after "loop" the part begins again.
 *
 * src/core/elide/README.md: Elision
 */
#include <stdlib.h>

#include "ax_elide_test.h"

static const struct
{
	const char *name;
	uint32_t	status;
}			words[] = {
	{"commit", AX_TX_STARTED},
	{"conflict", AX_TX_CONFLICT},
	{"capacity", AX_TX_CAPACITY},
	{"explicit", AX_TX_EXPLICIT | AX_TX_REFUSED << 24},
	{"busy", AX_TX_EXPLICIT | AX_TX_BUSY << 24},
	{"nested", AX_TX_NESTED},
	{"zero", 0},
	{"other", AX_TX_DEBUG}
};

static inline bool
letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static inline bool
blank(char c)
{
	return c == ' ' || c == ',' || c == '\t' || c == '\n';
}

/* A number of at most 32 bits, *p behind it; false: there is none. */
static bool
number(const char **p, unsigned base, uint32_t *out)
{
	uint64_t	x = 0;
	const char *from = *p;

	for (;; ++*p)
	{
		char		c = **p;
		unsigned	d = c >= '0' && c <= '9' ? (unsigned) (c - '0') :
			c >= 'a' && c <= 'f' ? (unsigned) (c - 'a') + 10 : 99;

		if (d >= base)
			break;
		x = x * base + d;
		if (x > UINT32_MAX)
			return false;
	}
	*out = (uint32_t) x;
	return *p > from;
}

/* Does the text at p, of n letters, say this? */
static inline bool
says(const char *p, size_t n, const char *word)
{
	return strlen(word) == n && strncmp(p, word, n) == 0;
}

/* False: not a script, and *out is undefined. */
bool
ax_elide_parse(const char *text, ax_elide_script *out)
{
	const char *p = text ? text : "";
	unsigned	items = 0;

	memset(out, 0, sizeof(*out));
	for (;;)
	{
		ax_elide_part *part = &out->part[AX_SITES];
		const char *q;
		bool		named = false;

		while (blank(*p))
			p++;
		for (q = p; letter(*q); q++)
			;
		if (*q == ':')
		{
			part = NULL;
			for (int i = 0; i < AX_SITES; i++)
				if (says(p, (size_t) (q - p), ax_site_name((ax_site) i)))
					part = &out->part[i];
			if (!part)
				return false;
			p = q + 1;
			named = true;
		}
		while (blank(*p))
			p++;
		/* nothing at all is a script, a site with nothing is none */
		if (named || (*p && *p != ';'))
		{
			if (part->n)
				return false;	/* twice the same */
			part->first = (uint8_t) items;
			while (*p && *p != ';')
			{
				ax_elide_item *it = &out->item[items];
				size_t		n;

				for (q = p; letter(*q); q++)
					;
				n = (size_t) (q - p);
				if (part->loop || n == 0)
					return false;	/* behind "loop" there is nothing */
				if (says(p, n, "loop"))
				{
					part->loop = true;
					p = q;
				}
				else
				{
					bool		known = false;

					if (items == AX_ELIDE_ITEMS)
						return false;
					it->count = 1;
					for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !known; i++)
						if (says(p, n, words[i].name))
						{
							it->status = words[i].status;
							known = true;
						}
					if (known)
						p = q;
					else
					{
						if (p[0] != '0' || p[1] != 'x')
							return false;
						p += 2;
						if (!number(&p, 16, &it->status))
							return false;
					}
					if (strncmp(p, "+retry", 6) == 0)
					{
						if (it->status == AX_TX_STARTED)
							return false;
						it->status |= AX_TX_RETRY;
						p += 6;
					}
					if (*p == '*')
					{
						p++;
						if (!number(&p, 10, &it->count) || it->count == 0)
							return false;
					}
					items++;
					part->n++;
				}
				if (*p && *p != ';' && !blank(*p))
					return false;
				while (blank(*p))
					p++;
			}
			if (part->n == 0)
				return false;
			out->any = true;
		}
		if (*p == '\0')
			return true;
		p++;
	}
}

/* The outcome of the next attempt. */
uint32_t
ax_elide_next(ax_elide_script *s, ax_site site)
{
	ax_elide_part *part = &s->part[s->part[site].n ? (int) site : AX_SITES];
	ax_elide_item *it;

	if (part->at >= part->n)
	{
		if (!part->loop || part->n == 0)
			return AX_TX_STARTED;
		part->at = 0;
	}
	it = &s->item[part->first + part->at];
	if (++part->used >= it->count)
	{
		part->used = 0;
		part->at++;
	}
	return it->status;
}

/* Is it a script?  NULL and "" are. */
bool
ax_elide_script_ok(const char *script)
{
	ax_elide_script s;

	return ax_elide_parse(script, &s);
}

/* ---- the provider ---- */

/* What the process keeps is the script. */
static bool
setup(ax_ctx *cx, bool on, const char *how)
{
	ax_elide_ctx *e = &ax_body(cx)->elide;

	if (!e->provided)
		e->provided = malloc(sizeof(ax_elide_script));
	return e->provided && ax_elide_parse(how, e->provided);
}

static void
detached(ax_ctx *cx)
{
	free(ax_body(cx)->elide.provided);
	ax_body(cx)->elide.provided = NULL;
}

static uint32_t
begin(ax_ctx *cx, ax_site site)
{
	return ax_elide_next(ax_body(cx)->elide.provided, site);
}

const ax_provider ax_inject = {
	.name = "inject",
	.section.detached = detached,
	.setup = setup,
	.begin = begin
};
