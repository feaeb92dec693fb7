/*
 * test_check.c
 *	  The check of a structure: it does some leaves a call and holds nothing in between,
 *	  finds what is broken, says nothing of what others change under it, and walks as
 *	  deep as a tree is.
 *
 * AX_STRUCTURE says which structure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/radix/rt_olc.h"
#include "core/base/ax_area.h"
#include "core/btree/bt_tree.h"
#include "core/hydra/hm_version.h"
#include "keyset.h"
#include "tap.h"

static ax_ctx cx;				/* checks */
static ax_ctx other;			/* changes */
static ax_tree *tree;
static uint64_t gen;
static bool btree,
			hydra;
static uint64_t seed = 4711;

/* ---- keys ---- */

/*
 * Entry i: a number, and behind an odd one some more bytes.  scatter: any number.
 */
static uint32_t
make(uint8_t *k, uint64_t i, bool scatter)
{
	uint32_t	n = 8;

	ks_put8(k, scatter ? i * UINT64_C(0x9E3779B97F4A7C15) : i);
	if (i & 1)
	{
		memset(k + n, 'x', i % 40);
		n += (uint32_t) (i % 40);
	}
	ks_put_tid(k + n, ks_tid(i));
	return n + AX_TID_BYTES;
}

static void
insert(ax_ctx *by, uint64_t i, bool scatter)
{
	uint8_t		k[64];
	uint32_t	n = make(k, i, scatter);
	ax_status	x;

	while ((x = ax_insert(by, tree, gen, k, n)) == AX_BUSY)
		;
	if (x != AX_OK && x != AX_EXISTS)
		abort();
}

static void
delete(ax_ctx *by, uint64_t i, bool scatter)
{
	uint8_t		k[64];
	uint32_t	n = make(k, i, scatter);

	while (ax_remove(by, tree, gen, k, n) == AX_BUSY)
		;
}

static void
open_tree(void)
{
	tree = ax_tree_alloc(&cx);
	if (ax_tree_open(&cx, tree, tap_structure(), 0, tap_page_size(), &gen) != AX_OK)
		abort();
}

static void
close_tree(void)
{
	ax_tree_close(&cx, tree);
	ax_tree_release(&cx, tree);
	(void) tap_quiesce(&cx);
}

/* The whole; what is wrong is in msg. */
static char msg[256];

static bool
good(ax_tree_info *out)
{
	bool		fine = false;

	if (tap_check(&cx, tree, gen, out, &fine, msg, sizeof(msg)) != AX_OK)
		snprintf(msg, sizeof(msg), "not done");
	return fine;
}

/* ---- a bounded call ---- */

static bool
outside(ax_ctx *of, int slot)
{
	ax_epoch_info e;

	ax_epochs(of, slot, &e);
	return e.pinned_epoch == 0;
}

static void
test_steps(void)
{
	const uint64_t n = 40000;
	ax_checking c;
	ax_tree_info is;
	ax_epoch_info e0,
				e1;
	uint8_t		buf[256];
	uint64_t	most = 0,
				before = 0,
				seen;
	int			calls = 0;
	bool		out = true;

	open_tree();
	for (uint64_t i = 0; i < n; i++)
		insert(&cx, i, true);
	memset(&c, 0, sizeof(c));
	c.buf = buf;
	c.size = sizeof(buf);
	ax_epochs(&cx, 0, &e0);
	while (!c.done)
	{
		ax_status	x = ax_check(&cx, tree, gen, &c);

		if (x != AX_OK)
			break;
		calls++;
		seen = c.info.leaves + c.info.n4 + c.info.n16 + c.info.n48 + c.info.n256;
		most = seen - before > most ? seen - before : most;
		before = seen;
		out = out && outside(&cx, 0);
		/* somebody else has garbage, and moves the epoch */
		(void) ax_poll(&other);
		delete(&other, n + 1, true);
		insert(&other, n + 1, true);
		delete(&other, n + 1, true);
	}
	ax_epochs(&cx, 0, &e1);
	ok(c.done && !c.bad, "%s is sound: %s", ax_structure_name(tap_structure()), c.msg);
	/* the leaves of a node, or a leaf of a B+-tree and what it is the first below */
	ok(most <= AX_CHECK_WORK + 256, "a call looks at %llu at most", (unsigned long long) most);
	ok(calls > 5 && (uint64_t) calls >= before / (AX_CHECK_WORK + 256), "so there were %d calls", calls);
	ok(out, "between two calls it is in no epoch");
	ok(e1.global_epoch > e0.global_epoch, "others move the epoch meanwhile, by %llu",
	   (unsigned long long) (e1.global_epoch - e0.global_epoch));
	(void) ax_info(&cx, tree, gen, &is);
	ok(c.info.entries == n && c.info.leaves == is.leaves && c.info.n4 == is.n4 &&
	   c.info.n16 == is.n16 && c.info.n48 == is.n48 && c.info.n256 == is.n256 &&
	   c.info.embedded == is.embedded, "it counted everything once");
	close_tree();
}

/* ---- deep trees, long keys ---- */

static void
test_deep(void)
{
#ifdef AX_TSAN
	const uint32_t depth = 1000;	/* each insert walks through all of them */
#else
	const uint32_t depth = 10500;
#endif
	uint8_t    *k = malloc(depth + 64);
	ax_tree_info is;
	bool		fine;

	open_tree();
	memset(k, 2, depth);
	for (uint32_t i = 0; i < depth; i++)
	{
		k[i] = 1;
		for (uint64_t row = 0; row < 2; row++)
		{
			ks_put_tid(k + i + 1, ks_tid(2 * i + row));
			if (ax_insert(&cx, tree, gen, k, i + 1 + AX_TID_BYTES) != AX_OK)
				abort();
		}
		memset(k + i, 2, 1 + AX_TID_BYTES);
	}
	fine = good(&is);
	ok(fine && is.entries == 2 * depth, "keys nested %u deep: %llu entries, %d high: %s",
	   depth, (unsigned long long) is.entries, is.height, msg);
	if (!btree && !hydra)
		ok(is.height > (int) (depth - 100), "one node below the other");
	close_tree();
	free(k);
}

/* ---- what is broken is found ---- */

/* The node or leaf with this property that comes first. */
typedef bool (*wanted) (rt_ref r, void *arg);

static rt_ref
find(rt_ref r, wanted want, void *arg)
{
	rt_slot	slot[256];
	int			n;

	if (want(r, arg))
		return r;
	if (!RT_IS_NODE(r))
		return 0;
	n = rt_node_slots_get(RT_PTR(r), slot);
	for (int i = 0; i < n; i++)
	{
		rt_ref		x = RT_TAG(slot[i].r) == RT_EMBED ? 0 : find(slot[i].r, want, arg);

		if (x)
			return x;
	}
	return 0;
}

static bool
a_leaf(rt_ref r, void *arg)
{
	return RT_TAG(r) == RT_LEAF && ((rt_leaf *) RT_PTR(r))->cap < RT_LEAF_MAX &&
		__builtin_popcount(((rt_leaf *) RT_PTR(r))->live) > 3;
}

static bool
a_kind(rt_ref r, void *arg)
{
	return RT_TAG(r) == *(unsigned *) arg;
}

static uint8_t was[BT_MAX_SIZE];

/* The object, n bytes of it, was changed: says the check so?  Then it is put back. */
static void
found(const char *what, void *object, size_t n, const char *like)
{
	ax_tree_info is;
	bool		fine = good(&is);

	ok(!fine && strstr(msg, like), "%s: \"%s\"", what, msg);
	memcpy(object, was, n);
	ok(good(&is), "and put back: %s", msg);
}

#define DAMAGE(object, n, what, like, ...) \
	do { \
		memcpy(was, (object), (n)); \
		__VA_ARGS__; \
		found((what), (object), (n), (like)); \
	} while (0)

/* What readers who look at no version trust. */
static void
damage_rowex_node(rt_hdr *h)
{
	rt_n48    *p = (rt_n48 *) (void *) h;
	size_t		size = rt_object_bytes(&h->word);
	int			given = 0,
				unused = 0;

	if (h->kind <= RT_N16)
	{
		DAMAGE(h, size, "a node with more separators", "more separators than slots",
			   h->count = (uint16_t) (rt_node_slots(h->kind) + 1));
		return;
	}
	if (h->kind != RT_N48)
		return;
	while (given < 48 && ldref(&p->child[given]) != 0)
		given++;
	while (unused < 255 && p->index[unused] != 0)
		unused++;
	if (given < 47)
		DAMAGE(h, size, "a slot that is free", "before the one below it", p->child[given + 1] = ldref(&p->child[0]));
	if (given < 48)
		DAMAGE(h, size, "an index of a free slot", "an index without a child", p->index[unused] = (uint8_t) (given + 1));
}

static void
damage_rowex_leaf(rt_leaf *l)
{
	size_t		size = rt_object_bytes(&l->word);

	DAMAGE(l, size, "a leaf with more slots", "more slots used than there are", l->used = (uint8_t) (l->cap + 1));
	if (l->flags & RT_F_VAR)
	{
		DAMAGE(l, size, "an entry that begins elsewhere", "out of place", rt_var_slot(l, 1)->off++);
		DAMAGE(l, size, "entries that end elsewhere", "a wrong end", ++*rt_leaf_u32(l, 1));
	}
}

static void
damage_art(ax_store *s)
{
	rt_ref		root = ldref(&s->root),
				r = find(root, a_leaf, NULL);
	rt_leaf   *l = RT_PTR(r);
	unsigned	kinds[] = {RT_N4, RT_N16, RT_N48, RT_N256};
	uint32_t	len;
	uint8_t    *e0,
			   *e1;
	int			i0 = __builtin_ctz(l->live),
				i1 = __builtin_ctz(l->live & (l->live - 1));
	size_t		size = rt_object_bytes(&l->word);

	DAMAGE(l, size, "a leaf without entries", "empty leaf", l->live = 0);
	DAMAGE(l, size, "a bit above the capacity", rt_rowex(s) ? "an entry above" : "beyond capacity",
		   l->live |= 1u << l->cap);
	if (rt_rowex(s))
		damage_rowex_leaf(l);
	e0 = (uint8_t *) (uintptr_t) rt_leaf_entry(l, i0, &len);
	DAMAGE(l, size, "an entry's first byte", "", e0[0] ^= 0x80);
	DAMAGE(l, size, "an entry's later byte", rt_leaf_has_fp(l) ? "wrong hash" : "",
		   e0[len - AX_TID_BYTES - 1] ^= 1);
	e1 = (uint8_t *) (uintptr_t) rt_leaf_entry(l, i1, &len);
	if (!(l->flags & RT_F_VAR))
		DAMAGE(l, size, "an entry twice", "the same as", memcpy(e1, e0, len);
			   if (rt_leaf_has_fp(l)) rt_leaf_fp(l)[i1] = rt_leaf_fp(l)[i0]);
	for (int k = 0; k < 4; k++)
	{
		rt_hdr    *h;

		if ((r = find(root, a_kind, &kinds[k])) == 0)
			continue;
		h = RT_PTR(r);
		if (h->count < rt_node_slots(h->kind))
			DAMAGE(h, rt_object_bytes(&h->word), "a node's count", "", h->count++);
		DAMAGE(h, sizeof(rt_hdr), "an obsolete node", "is obsolete", h->word |= AX_OBSOLETE);
		DAMAGE(h, sizeof(rt_hdr), "a node's prefix", "differ", h->plen ^= 1);
		if (rt_rowex(s))
			damage_rowex_node(h);
		if (kinds[k] == RT_N4 && h->count > 1)
			DAMAGE(h, sizeof(rt_n4), "separators in disorder", "",
				   ((rt_n4 *) (void *) h)->sep = __builtin_bswap32(((rt_n4 *) (void *) h)->sep) >>
				   (32 - 8 * h->count));
	}
}

/* The first page of a level, leftmost or not. */
static bt_page *
page_of(ax_store *s, int level)
{
	bt_page    *p = bt_ref(&s->root);

	while (p->level > level)
		p = bt_ref(&bt_children(p)[bt_count(p) / 2]);
	return p;
}

static void
damage_btree(ax_store *s)
{
	for (int level = 0; level < 2; level++)
	{
		bt_page    *p = page_of(s, level);
		size_t		n = p->size;
		uint64_t	h;

		DAMAGE(p, n, "two heads in disorder", "",
			   h = bt_heads(p)[1]; bt_heads(p)[1] = bt_heads(p)[2]; bt_heads(p)[2] = h);
		if (level == 0)
			DAMAGE(p, n, "a key below the range", "below the page's range", bt_heads(p)[0] = 0);
		DAMAGE(p, n, "a key beyond the range", "", bt_heads(p)[bt_count(p) - 1] = UINT64_MAX);
		DAMAGE(p, n, "too many keys", "too many keys", p->n = p->cap + 1);
		/* (a descent trusts a page in these) */
		if (level)
			DAMAGE(p, n, "a page of another level", "a wrong level", p->level += 1);
		else
			DAMAGE(p, n, "an impossible layout", "impossible layout", p->cap = 60000);
		if (p->tail == BT_VAR)
		{
			DAMAGE(p, n, "a heap that is larger", "", p->heap -= 8);
			DAMAGE(p, n, "a key outside of the heap", "", bt_slots(p)[0] = (uint32_t) n | 12u << 16);
		}
	}
}

/* The fingerprint that the key in slot i should have. */
static uint8_t
fp_of(const hy_body *b, int i)
{
	uint8_t		columns[64];
	bt_view		v;
	uint32_t	n;

	hy_get(b, (uint8_t) i, &v);
	n = bt_len(&v) - AX_TID_BYTES;
	bt_view_bytes(&v, 0, n, columns);
	return hy_fp(columns, n);
}

/* The keys of the first node that has some, and an anchor; all of one length (fixed), or not. */
static void
damage_hydra_keys(ax_store *s, bool fixed)
{
	bool		versions = s->sync == AX_SYNC_MVRLU;
	hy_node    *n = hy_list_of(s)->head;
	hy_body    *b = NULL;
	uint64_t	live = 0;
	int			i,
				j;

	for (; n; n = versions ? hm_newest(n)->is.end.next : hy_next(n))
	{
		live = versions ? hm_newest(n)->is.live : n->body->used;
		b = versions ? hm_newest(n)->is.body : n->body;
		if (n->alen > 0 && __builtin_popcountll(live) >= 3)
			break;
	}
	ok(n && (b->rest != HY_VAR) == fixed, "keys of %s", fixed ? "one length" : "several lengths");
	if (!n)
		return;
	i = __builtin_ctzll(live);
	j = __builtin_ctzll(live & (live - 1));
	if (fixed)
	{
		DAMAGE(b, b->size, "a key below the range", "below the node's range",
			   memset(hy_data(b) + i * b->rest, 0, b->rest); b->fp[i] = fp_of(b, i));
		DAMAGE(b, b->size, "a key beyond the range", "beyond the node's range",
			   memset(hy_data(b) + i * b->rest, 255, b->rest); b->fp[i] = fp_of(b, i));
		DAMAGE(b, b->size, "a key twice", "a key twice",
			   memcpy(hy_data(b) + j * b->rest, hy_data(b) + i * b->rest, b->rest); b->fp[j] = b->fp[i]);
		DAMAGE(b, b->size, "keys that take more room than there is", "impossible layout", b->rest = (uint16_t) (b->size - 1));
	}
	else
	{
		DAMAGE(b, b->size, "a key twice", "", hy_slots(b)[j] = hy_slots(b)[i]; b->fp[j] = b->fp[i]);
		DAMAGE(b, b->size, "a key behind the heap", "outside of the heap", hy_slots(b)[i] = (uint16_t) b->size | 8u << 16);
		DAMAGE(b, b->size, "more that nothing refers to than there is", "does not add up", b->dead = (uint16_t) b->size);
		DAMAGE(b, b->size, "a heap in the slots", "impossible layout", b->heap = 1);
	}
}

static void
damage_hydra(ax_store *s)
{
	hy_node    *n = hy_list_of(s)->head;
	hy_body    *b;
	int			i;
	bool		versions = s->sync == AX_SYNC_MVRLU;

	for (int k = 0; k < 10; k++)
		n = versions ? hm_newest(n)->is.end.next : hy_next(n);
	b = versions ? hm_newest(n)->is.body : n->body;
	i = __builtin_ctzll(b->used);
	if (versions)
	{
		hm_ver	   *v = hm_newest(n);

		i = __builtin_ctzll(v->is.live);
		DAMAGE(v, sizeof(*v), "a slot that was not given", "not given", v->is.live |= UINT64_C(1) << 63);
		DAMAGE(v, sizeof(*v), "a range that ends elsewhere", "a wrong end", v->is.end.bound ^= 1);
	}
	else
		DAMAGE(n, hy_node_size(n->alen), "a range that ends elsewhere", "a wrong end", n->bound ^= 1);
	DAMAGE(b, b->size, "another fingerprint", "a wrong fingerprint", b->fp[i] ^= 1);
	DAMAGE(b, b->size, "a longer prefix", "", b->plen = HY_MAX_PLEN);
	DAMAGE(b, b->size, "more slots than there are", "", b->cap = HY_SLOTS + 1);
	DAMAGE(n, hy_node_size(n->alen), "a link back to the last but one", "leads elsewhere",
		   n->prev = ((hy_node *) n->prev)->prev);
	DAMAGE(n, hy_node_size(n->alen), "an anchor beyond the next", "", memset(n->anchor, 255, n->alen));
	DAMAGE(n, hy_node_size(n->alen), "an anchor before the last", "out of order", memset(n->anchor, 0, n->alen));
}

/* Of keys that are objects of their own: their page has what they begin with. */
static void
damage_long_btree(ax_store *s)
{
	bt_page    *p = page_of(s, 0);
	bt_blob    *b;
	bt_view		v;
	int			i;

	for (i = bt_count(p) - 1; i > 0; i--)
	{
		bt_get(p, i, &v);
		if (v.blob)
			break;
	}
	b = (bt_blob *) (uintptr_t) v.blob;
	if (!b || p->plen == 0)
		abort();
	DAMAGE(b, 16, "a long key that begins otherwise", "without the prefix", b->bytes[0] ^= 1);
	DAMAGE(b, 4, "a long key that ends soon", "without a TID", b->len = AX_TID_BYTES - 1);
	DAMAGE(p, p->size, "the head of a long key", "a wrong head", bt_heads(p)[i] ^= 1);
}

static void
damage_long_hydra(ax_store *s)
{
	hy_node    *n = hy_list_of(s)->head;
	bool		versions = s->sync == AX_SYNC_MVRLU;
	hy_body    *body;
	bt_blob    *b;
	bt_view		v;
	int			i;

	n = versions ? hm_newest(n)->is.end.next : hy_next(n);
	body = versions ? hm_newest(n)->is.body : n->body;
	i = __builtin_ctzll(versions ? hm_newest(n)->is.live : body->used);
	hy_get(body, (uint8_t) i, &v);
	b = (bt_blob *) (uintptr_t) v.blob;
	if (!b)
		abort();
	if (body->plen > 0)
		DAMAGE(b, 16, "a long key that begins otherwise", "", b->bytes[0] ^= 1);
	DAMAGE(b, 4, "a long key that ends soon", "without a TID", b->len = AX_TID_BYTES - 1);
	DAMAGE(body, body->size, "the fingerprint of a long key", "a wrong fingerprint", body->fp[i] ^= 1);
}

static void
test_long(void)
{
	const uint32_t len = 100000;
	uint8_t    *k = malloc(len + 64);
	ax_tree_info is;
	bool		fine;
	int			n = 0;

	/* separators and paths that are longer than any first buffer */
	open_tree();
	memset(k, 7, len);
	for (; n < 300; n++)
	{
		ks_put8(k + len - 8, (uint64_t) n);
		ks_put_tid(k + len, ks_tid((uint64_t) n));
		if (ax_insert(&cx, tree, gen, k, len + AX_TID_BYTES) != AX_OK)
			break;
	}
	fine = good(&is);
	ok(n > 100 && fine && is.entries == (uint64_t) n, "%d keys of %u bytes: %s", n, len, msg);
	if (!btree && !hydra)
	{
		_Atomic rt_ref *root = &atomic_load(&tree->store)->root;
		rt_n4	   *top = RT_PTR(ldref(root));
		rt_ref		child = top->child[0];

		top->child[0] = ldref(root);
		fine = good(&is);
		ok(!fine && strstr(msg, "deeper"), "the root below itself: \"%s\"", msg);
		top->child[0] = child;
	}
	else if (hydra)
		damage_long_hydra(atomic_load(&tree->store));
	close_tree();
	if (btree)
	{
		/* among short ones, whose leaves have a prefix */
		open_tree();
		memset(k, 7, len);
		for (n = 0; n < 4000; n++)
		{
			uint64_t	i = (uint64_t) n * 1237 % 4000;
			uint32_t	columns = i % 8 ? 40 : 20000;

			ks_put8(k + 20, i);
			ks_put_tid(k + columns, ks_tid(i));
			if (ax_insert(&cx, tree, gen, k, columns + AX_TID_BYTES) != AX_OK)
				abort();
			memset(k + columns, 7, AX_TID_BYTES);
		}
		damage_long_btree(atomic_load(&tree->store));
		close_tree();
	}
	free(k);
}

static void
test_damage(void)
{
	ax_store   *s;

	open_tree();
	for (uint64_t i = 0; i < 20000; i++)
		insert(&cx, i, true);
	for (uint64_t i = 0; i < 3000; i++)
		insert(&cx, i, false);
	s = atomic_load(&tree->store);
	if (btree)
		damage_btree(s);
	else if (hydra)
	{
		damage_hydra(s);
		damage_hydra_keys(s, false);
		close_tree();
		open_tree();
		for (uint64_t i = 0; i < 20000; i += 2)
			insert(&cx, i, true);
		damage_hydra_keys(atomic_load(&tree->store), true);
	}
	else
		damage_art(s);
	close_tree();
}

/* ---- what others change under it ---- */

static const char *here;
static uint64_t range;
static int	met;

/* Others at work in a window of the check: all about one place, in and out. */
static void
busy(const char *name)
{
	uint64_t	at;

	/* having lost often, it latches */
	if (strcmp(name, here) != 0 || ax_latches_held(&cx))
		return;
	tap_point_hook = NULL;
	met++;
	at = tap_rand(&seed) % range;
	switch (tap_rand(&seed) % 4)
	{
		case 0:
			for (uint64_t i = at; i < at + 200 && i < range; i++)
				delete(&other, i, false);
			break;
		case 1:
			for (uint64_t i = at; i < at + 200 && i < range; i++)
				insert(&other, i, false);
			break;
		case 2:
			for (int i = 0; i < 50; i++)
				insert(&other, tap_rand(&seed) % range, false);
			break;
		default:
			for (int i = 0; i < 50; i++)
				delete(&other, tap_rand(&seed) % range, false);
	}
	tap_point_hook = busy;
}

static void
test_windows(void)
{
	static const char *const of_art[] = {"art.check.child", "art.check.node", "art.check.leaf", NULL};
	static const char *const of_btree[] = {"bt.child_version", "bt.slot_read", "bt.check.range", "bt.check.page", "bt.check.half", NULL};

	static const char *const of_hydra[] = {"hydra.node_read", "hydra.node_version", "hydra.copied", NULL};
	static const char *const of_versions[] = {"mvrlu.node_read", NULL};

	for (const char *const *p = btree ? of_btree : tap_structure() == AX_HYDRA_MVRLU ? of_versions : hydra ? of_hydra : of_art; *p; p++)
	{
		int			wrong = 0;

		here = *p;
		range = 1000;
		met = 0;
		open_tree();
		for (uint64_t round = 0; round < tap_scaled(200); round++)
		{
			ax_checking c;
			uint8_t		buf[256];

			/* so that there is something to walk through */
			for (uint64_t i = round % 3; i < range; i += 3)
				insert(&other, i, false);
			memset(&c, 0, sizeof(c));
			c.buf = buf;
			c.size = sizeof(buf);
			tap_point_hook = busy;
			for (int calls = 0; !c.done && calls < 200; calls++)
				if (ax_check(&cx, tree, gen, &c) != AX_OK)
					break;
			tap_point_hook = NULL;
			if (c.bad && wrong++ == 0)
				tap_diag("%s: %s", here, c.msg);
			(void) ax_poll(&other);
		}
		ok(met > 0 && wrong == 0, "%s: %d changes, nothing wrong", here, met);
		close_tree();
	}
}

int
main(void)
{
	ax_area    *area = tap_area((size_t) 256 << 20, 4, 1 << 20);

	btree = ax_structure_is_btree(tap_structure());
	hydra = strcmp(ax_structure_name(tap_structure()), "hydra") == 0;
	ax_attach(&cx, area, 0, 1, &ax_port_default);
	ax_attach(&other, area, 1, 2, &ax_port_default);
	test_steps();
	test_damage();
	/* under a coarse latch nobody writes beside it (test_check_coarse) */
	if (strcmp(ax_structure_sync(tap_structure()), "coarse") != 0)
		test_windows();
	test_long();
	test_deep();
	ax_detach(&other);
	ax_detach(&cx);
	return tap_done();
}
