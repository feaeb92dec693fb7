/*
 * model.h
 *	  A tree and what it should hold: a sorted universe of keys, and for each
 *	  whether it is in.
 *
 * Every call of the core is made through mt_*, which compares what it returns
 * with the model and, at the first difference, says so and exits.
 */
#ifndef MODEL_H
#define MODEL_H

#include "core/ax.h"
#include "tap.h"

typedef enum keykind
{
	KK_DENSE,					/* marker, 8 bytes, TID */
	KK_RANDOM8,
	KK_STEP64K,					/* multiples of 65536 */
	KK_STEP997,
	KK_UUID,					/* 16 random bytes, TID */
	KK_SHARED,					/* texts behind shared prefixes of 0..80 bytes */
	KK_LENGTHS,					/* lengths around every boundary of the layouts */
	KK_MIDDLE,					/* 100..1200 bytes: leaves of several lengths */
	KK_DUPS,					/* few columns, TIDs in heap order */
	KK_DUPS_RANDOM,				/* the same, any TIDs */
	KK_TWO,						/* every string over two bytes: 00 and FF */
	KK_TINY,					/* columns of 1 and 2 bytes: NULLs, booleans */
	KK_NESTED,					/* each the prefix of the next, before encoding */
	KK_LONG,					/* 1,000 to 100,000 bytes */
	KK_PAIR,					/* an integer of few values and a text */
	KK_COUNT
} keykind;

extern const char *const keykind_name[KK_COUNT];

typedef struct mkey
{
	const uint8_t *p;
	uint32_t	len;			/* TID included */
} mkey;

typedef struct model
{
	ax_ctx	   *cx;
	ax_tree    *t;
	uint64_t	gen;
	uint64_t	seed;
	uint64_t	n;				/* the universe, sorted and distinct */
	mkey	   *key;
	bool	   *in;
	uint64_t	count;
	bool		tail;			/* there was a tail buffer */
	uint64_t	busy;			/* calls that had to be made again */
	uint32_t	longest;
	const char *name;
	/* buffers of the scans; never smaller than asked for */
	uint8_t    *keybuf,
			   *lastkey;
	uint32_t	keybuf_size,
				lastkey_size;
} model;

/* At most "want" keys of a kind (fewer where the kind has not so many). */
extern void mt_universe(model *m, keykind kind, uint64_t want, uint64_t seed);
/* Of these keys, which are the model's from now on; each is of malloc(), as "keys" is.  The caller sets the seed. */
extern void mt_universe_of(model *m, const char *name, mkey *keys, uint64_t n);
extern void mt_free(model *m);

/* Key number i of a kind, to be freed; rng for those that are random. */
extern mkey mt_make_key(keykind kind, uint64_t i, uint64_t want, uint64_t *rng);
/* As memcmp orders them. */
extern int	mt_cmp(const mkey *a, const mkey *b);

extern void mt_open(model *m, ax_ctx *cx, ax_tree *t);
extern void mt_close(model *m);
/* mt_open does this with tap_tail(). */
extern void mt_tail(model *m, ax_tail_option option);

/* Each compares status and result with the model. */
extern void mt_insert(model *m, uint64_t i);
extern void mt_remove(model *m, uint64_t i);
/* Of up to n keys from i on, p per cent, by ax_insert_sorted. */
extern void mt_insert_sorted(model *m, uint64_t i, uint64_t n, int p);
extern void mt_insert_many(model *m, uint64_t i, uint32_t n);
extern void mt_contains(model *m, uint64_t i);
extern void mt_lookup(model *m, uint64_t i);
/*
 * What ax_lookup says of key i, said by ax_lookup_many of it and up to 19 others of
 * the n keys (r chooses).  *more: it was not answered, or has more than max.
 */
extern ax_status mt_company(ax_ctx *cx, ax_tree *t, uint64_t gen, const mkey *key,
							uint64_t n, uint64_t i, uint64_t r, uint64_t *tids,
							uint32_t max, uint32_t *got, bool *more);
/* A scan between random positions; change: modify between the batches. */
extern void mt_scan(model *m, bool change);
/* The same from about key i - width to i + width, or the end. */
extern void mt_scan_near(model *m, uint64_t i, uint64_t width, bool change);
/* Both ways over everything, keys compared. */
extern void mt_compare_all(model *m);
/* ax_check, and its counts against the model and the counters. */
extern void mt_check(model *m, const char *when);
/* ax_load; what is too nested for it is merged, as builds do it. */
extern ax_status mt_load_sorted(ax_ctx *cx, ax_tree *t, uint64_t gen, const uint8_t *const *k,
								const uint32_t *lens, uint32_t len, uint64_t n, int fill);
/* Load a random subset, p per cent of the universe. */
extern void mt_load(model *m, int p, int fill);
extern void mt_load_shares(model *m, int p, int fill, uint64_t step, int parts);
/* n operations; of 100 changes "grow" are insertions. */
extern void mt_ops(model *m, uint64_t n, int grow);

/* Says what is wrong, with the model's name, and exits. */
extern void mt_die(model *m, const char *fmt,...)
__attribute__((format(printf, 2, 3), noreturn));

#endif							/* MODEL_H */
