/*
 * operations.c
 *	  Fuzz target: strings of operations on a tree of any engine, against the model of test/core.
 *
 * Every answer is compared (test/core/model.h).  In the end the tree is checked and read both ways, and its
 * memory comes back.
 */
#include "fuzz.h"

#include "model.h"

#define AREA		((size_t) 64 << 20)
#define MOST_KEYS	600
#define OWN			0xF0		/* the first byte of no key of the model's: none is a prefix of another */

/* AX_BTREE_COMPARED has calls of its own: compared.c. */
static const ax_structure engines[] = {
	AX_ART_OLC, AX_ART_ROWEX, AX_ART_OPTIQL, AX_ART_COARSE, AX_BTREE_OLC, AX_BTREE_OPTIQL, AX_BTREE_COARSE,
	AX_HYDRA_OLC, AX_HYDRA_OPTIQL, AX_HYDRA_COARSE, AX_HYDRA_MVRLU
};

static ax_ctx cx;
static ax_tree *tree;
static uint64_t used_before;	/* bytes, while no tree is open */
static void *work;

static uint64_t
used_bytes(void)
{
	ax_memory_info mi;

	ax_memory(&cx, &mi);
	return mi.used_bytes;
}

static void
set_up(void)
{
	if (tree != NULL)
		return;
	ax_attach(&cx, tap_area(AREA, 2, 1 << 20), 0, 1, &ax_port_default);
	tree = ax_tree_alloc(&cx);
	work = malloc(AX_COMPACT_WORK);
	used_before = used_bytes();
}

/*
 * A key of the input's own: some of the bytes of the one before, and some others, escaped as bytea, and a TID.
 */
static mkey
own_key(fuzz_in *in, uint8_t *raw, uint32_t *n)
{
	uint8_t		head = fuzz_byte(in);
	uint32_t	shared = head >> 4;
	uint32_t	more = head & 15;
	uint8_t    *k;
	uint32_t	len = 0;
	uint8_t		tid;

	/* F: all of it, and a run of one byte */
	shared = shared == 15 ? *n : shared < *n ? shared : *n;
	*n = shared;
	if (head >> 4 == 15 && *n + more * 24 <= 2000)
	{
		memset(raw + *n, fuzz_byte(in), more * 24);
		*n += more * 24;
	}
	else
		for (uint32_t i = 0; i < more; i++)
			raw[(*n)++] = fuzz_byte(in);
	k = malloc(1 + 2 * *n + 2 + AX_TID_BYTES);
	k[len++] = OWN;
	for (uint32_t i = 0; i < *n; i++)
	{
		k[len++] = raw[i];
		if (raw[i] == 0)
			k[len++] = 0xFF;
	}
	k[len++] = 0;
	k[len++] = 0;
	tid = fuzz_byte(in);
	ax_put_tid(k + len, (uint64_t) (tid >> 4) << 16 | (tid & 15));
	return (mkey) {k, len + AX_TID_BYTES};
}

/* The keys: some of a kind of the model's, and the input's own. */
static void
make_universe(fuzz_in *in, model *m)
{
	keykind		kind = (keykind) fuzz_below(in, KK_COUNT);
	uint32_t	most = kind == KK_LONG ? 12 : kind == KK_NESTED || kind == KK_MIDDLE ? 100 : MOST_KEYS;
	uint32_t	n = fuzz_below(in, most + 1);
	uint32_t	own = fuzz_byte(in) % 64;
	uint64_t	rng = fuzz_number(in, 2) * 2 + 1;
	mkey	   *keys = malloc((n + own + 1) * sizeof(*keys));
	uint8_t		raw[2048];
	uint32_t	rawlen = 0;

	/* any byte begins a uuid */
	if (kind == KK_UUID && n > 0)
		own = 0;
	for (uint32_t i = 0; i < n; i++)
		keys[i] = mt_make_key(kind, i, n, &rng);
	for (uint32_t i = 0; i < own || n + i == 0; i++)
		keys[n + i] = own_key(in, raw, &rawlen);
	mt_universe_of(m, keykind_name[kind], keys, n + own ? n + own : 1);
	m->seed = rng;
}

static void
open_tree(fuzz_in *in, model *m)
{
	static const uint32_t pages[] = {0, 256, 320, 512, 2048, 4096, 16384};
	ax_structure s = engines[fuzz_below(in, sizeof(engines) / sizeof(engines[0]))];
	uint32_t	page = pages[fuzz_below(in, sizeof(pages) / sizeof(pages[0]))];
	ax_status	r = ax_tree_open(&cx, tree, s, 0, ax_structure_is_btree(s) ? page : 0, &m->gen);

	FUZZ_CLAIM(r == AX_OK, "open: status %d", (int) r);
	m->cx = &cx;
	m->t = tree;
	m->count = 0;
	m->tail = false;
	memset(m->in, 0, m->n);
}

static void
compact(model *m)
{
	ax_compaction c = {.work = work};

	for (int i = 0; i < 1000 && !c.done; i++)
	{
		ax_status	r = ax_compact(&cx, tree, m->gen, &c);

		FUZZ_CLAIM(r == AX_OK || r == AX_BUSY, "compact: status %d", (int) r);
	}
	FUZZ_CLAIM(c.done, "a pass of compaction does not end");
}

/* The tail buffer: another option, a flush, or the end of the present one. */
static void
tail(model *m, uint8_t what)
{
	bool		flag;
	ax_status	r = AX_OK;

	switch (what % 5)
	{
		case 3:
			r = ax_tail_flush(&cx, tree, m->gen, &flag);
			break;
		case 4:
			r = ax_tail_close(&cx, tree, m->gen, &flag);
			break;
		default:
			mt_tail(m, (ax_tail_option) (what % 5));
	}
	FUZZ_CLAIM(r == AX_OK || r == AX_BUSY, "tail buffer: status %d", (int) r);
}

static void
operation(fuzz_in *in, model *m)
{
	uint8_t		op = fuzz_byte(in);
	uint64_t	i = fuzz_number(in, 2) % m->n;
	uint8_t		arg = op % 16 >= 5 ? fuzz_byte(in) : 0;

	switch (op % 16)
	{
		case 0:
		case 1:
			mt_insert(m, i);
			break;
		case 2:
			mt_remove(m, i);
			break;
		case 3:
			mt_contains(m, i);
			break;
		case 4:
			mt_lookup(m, i);
			break;
		case 5:
			mt_scan(m, arg & 1);
			break;
		case 6:
			mt_scan_near(m, i, arg, op & 16);
			break;
		case 7:
			mt_insert_sorted(m, i, (uint64_t) arg * 2 + 1, op & 16 ? 100 : 40);
			break;
		case 8:
			mt_insert_many(m, i, (uint32_t) arg + 1);
			break;
		case 9:
			for (uint64_t x = i; x < m->n && x <= i + arg; x++)
				mt_remove(m, x);
			break;
		case 10:
			mt_check(m, "in the middle");
			break;
		case 11:
			tail(m, arg);
			break;
		case 12:
			compact(m);
			break;
		case 13:
			FUZZ_CLAIM(ax_settle(&cx, tree, m->gen, arg & 1) != AX_STALE, "settle");
			FUZZ_CLAIM(ax_catch_up(&cx, tree, m->gen) != AX_STALE, "catch up");
			break;
		case 14:
			mt_close(m);
			open_tree(in, m);
			mt_load(m, arg % 101, 10 + op % 91);
			break;
		case 15:
			mt_ops(m, arg, op & 16 ? 75 : 30);
			break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_in		in = {data, size};
	model		m;

	set_up();
	make_universe(&in, &m);
	open_tree(&in, &m);
	for (int n = 0; in.left > 0 && n < 200; n++)
		operation(&in, &m);
	mt_check(&m, "in the end");
	mt_compare_all(&m);
	mt_close(&m);
	mt_free(&m);
	FUZZ_CLAIM(tap_quiesce(&cx), "retired objects do not come back");
	FUZZ_CLAIM(used_bytes() == used_before, "%llu bytes are used, %llu before",
			   (unsigned long long) used_bytes(), (unsigned long long) used_before);
	return 0;
}
