/*
 * save_at_shutdown.c
 *	  Structures that outlive a clean shutdown: the file is written when the
 *	  postmaster exits and claimed when it starts again; load_at_start.c loads it.
 *
 * Writing.  In the postmaster's on_shmem_exit, as pg_stat_statements does:
 * every other process has exited then, so the structures are at rest.  It is a
 * clean shutdown of a primary exactly when pg_control says so (an immediate
 * one can come with exit code 0, too).  Nothing may raise an error there, so
 * this file uses system calls and malloc, and gives up on any failure.  A
 * structure that is not saved is rebuilt.  There is no fsync: a file that did
 * not get to disk whole fails its checksums.
 *
 * Why it may be believed.  The shutdown checkpoint is the last thing that is
 * written to the cluster.  Its position, time and all else in pg_control are
 * in the header.  The server that claims the file finds that very pg_control,
 * so not a row has changed in between.  At that moment READY structures had an
 * entry for every row that anybody may still see, those of prepared
 * transactions included.  They had no entry whose place in the heap had been
 * recycled.  The claim makes them BUILDING before any other process runs,
 * hence before the first write (t0).  From then on it is a build like any
 * other, whose heap was read at t0.  A process that inserts sees BUILDING and
 * inserts the entry itself; the same entry twice is one.  VACUUM waits for the
 * end, so no place that the file speaks of is recycled before its entry can be
 * removed.  Nobody scans a structure that is not READY, so nobody removes from
 * it either.  It becomes READY only if the generation is still that of the
 * claim.
 *
 * Used once.  The claim renames the file to another name, which no start ever
 * trusts.  The next start unlinks it, a start after a crash too.  Should a
 * power failure undo the rename, pg_control says since before the first write
 * (and fsynced) that the server was not shut down.
 *
 * Other events between shutdown and start, and why they do no harm:
 *
 *	a start without artidx, a crash, single-user mode, pg_resetwal,
 *	pg_checksums, a restored backup, PITR, pg_rewind	pg_control differs; so it
 *		does when a standby is shut down, or a primary becomes one later
 *	recovery.signal, standby.signal, backup_label	not claimed
 *	pg_upgrade		another system identifier; binary upgrade neither saves nor
 *		claims
 *	a copy of the directory		the file's inode differs.  (A snapshot of the file
 *		system keeps it, and is the same cluster at the same moment; so is a copy
 *		that was given the same inode by chance.  The device is not compared: its
 *		number can be another after a boot)
 *	a tablespace exchanged		corrupts the cluster, and a btree in the same way
 *	another artidx or PostgreSQL	number of the file's format, of the key
 *		encoding, and the major version are in the header
 *	other settings		the memory may be less: what finds no room is rebuilt, or
 *		not, as after a crash; old_snapshot_threshold: not claimed
 *	a damaged file		checksums, and every number that leads to memory is checked
 *
 * src/saved/README.md: Saved files
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "common/file_perm.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "saved/file_format.h"
#include "saved/saved.h"

#define ART_SAVE_SECONDS	20	/* what a shutdown may take longer for it */
#define ART_SAVE_KEYS		4096	/* a batch of the walk */
#define ART_SAVE_KEYBUF		((uint32) 256 * 1024)
#define ART_SAVE_BUSY		1000	/* tries: nobody else is there */

bool		art_save_at_shutdown = true;

static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* ---- files ---- */

/*
 * Read pg_control, without raising anything; false when it is not whole.
 */
static bool
read_control(ControlFileData *cf)
{
	int			fd = open(XLOG_CONTROL_FILE, O_RDONLY | PG_BINARY, 0);
	bool		ok;
	pg_crc32c	crc;

	if (fd < 0)
		return false;
	ok = read(fd, cf, sizeof(*cf)) == (ssize_t) sizeof(*cf);
	close(fd);
	if (!ok || cf->pg_control_version != PG_CONTROL_VERSION)
		return false;
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, cf, offsetof(ControlFileData, crc));
	FIN_CRC32C(crc);
	return EQ_CRC32C(crc, cf->crc);
}

/*
 * pwrite() until all is written.  False: errno says why.
 */
static bool
saved_pwrite(int fd, const void *buf, uint64 len, uint64 off)
{
	const char *p = buf;

	while (len > 0)
	{
		ssize_t		n = pwrite(fd, p, len, (off_t) off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
		{
			if (n == 0)
				errno = ENOSPC;
			return false;
		}
		p += n;
		len -= (uint64) n;
		off += (uint64) n;
	}
	return true;
}

/*
 * The part of the header that says which server it is of, and in what state
 * that was.
 */
static void
header_identity(ArtSavedHeader *h, const ControlFileData *cf)
{
	memset(h, 0, sizeof(*h));
	h->magic = ART_SAVED_MAGIC;
	h->format = ART_SAVED_FORMAT;
	h->key_format = ART_KEY_FORMAT;
	h->pg_major = PG_VERSION_NUM / 10000;
	h->control_crc = cf->crc;
	h->system_identifier = cf->system_identifier;
	h->checkpoint = cf->checkPoint;
	h->redo = cf->checkPointCopy.redo;
	h->time = (int64) cf->time;
	h->timeline = cf->checkPointCopy.ThisTimeLineID;
}

/* ---- the walk over a structure ---- */

typedef struct Writer
{
	int			fd;
	uint64		off;			/* of the next block */
	uint64		limit;			/* the file must not become longer */
	uint64		checkpoint;
	instr_time	start;
	ArtSavedBlock *block;
	uint32		block_size;		/* room behind the header */

	uint64	   *tids;
	uint32	   *key_off;
	uint8	   *keybuf;
	uint32		keybuf_size;
	uint8	   *last[2];		/* a batch starts at the one, ends in the other */
	uint32		last_size;
	uint8	   *prev;			/* the key before, in the block */
	uint32		prev_len;
	uint32		prev_size;

	const char *failed;			/* nothing more can be written */
} Writer;

/*
 * Enlarge *pp, of malloc(), to "need" bytes.  False: no memory, and *pp is as
 * before.
 */
static bool
grow(void *pp, uint32 *size, uint32 need)
{
	void	  **p = pp;
	void	   *q;

	if (*size >= need)
		return true;
	q = realloc(*p, need);
	if (q == NULL)
		return false;
	*p = q;
	*size = need;
	return true;
}

/*
 * Write the block that is full and begin the next one.  False: w->failed says
 * why.
 */
static bool
write_saved_block(Writer *w)
{
	ArtSavedBlock *b = w->block;
	uint64		len = sizeof(*b) + b->bytes;

	if (b->nkeys == 0)
		return true;
	b->crc = art_saved_block_crc(b);
	if (w->off + len > w->limit)
	{
		w->failed = "it would take too much of the disk";
		return false;
	}
	if (!saved_pwrite(w->fd, b, len, w->off))
	{
		w->failed = strerror(errno);
		return false;
	}
	w->off += len;
	b->number++;
	b->nkeys = b->bytes = b->raw = 0;
	return true;
}

/*
 * Add a key to the block: what it shares with the one before is left out.
 */
static bool
write_key(Writer *w, const uint8 *key, uint32 len)
{
	ArtSavedBlock *b = w->block;
	uint32		room = len + ART_SAVED_KEY_EXTRA;

	if (b->bytes >= ART_BLOCK_BYTES || b->raw + len > ART_BLOCK_RAW)
	{
		if (!write_saved_block(w))
			return false;
		b = w->block;
	}
	if (w->block_size < b->bytes + room)
	{
		uint32		size = (uint32) sizeof(*b) + w->block_size;

		if (!grow(&w->block, &size, sizeof(*b) + b->bytes + room))
		{
			w->failed = "out of memory";
			return false;
		}
		w->block_size = size - (uint32) sizeof(*b);
		b = w->block;
	}
	if (!grow(&w->prev, &w->prev_size, len))
	{
		w->failed = "out of memory";
		return false;
	}
	art_saved_put_key(b, w->prev, w->prev_len, key, len);
	memcpy(w->prev, key, len);
	w->prev_len = len;
	return true;
}

/*
 * All keys of a structure.  False when it cannot be saved; w->failed says if
 * nothing else can, either.
 *
 * Epoch: enters and leaves, once a batch.
 * Locks: none, for no other process runs any more.
 */
static bool
write_keys(Writer *w, ArtEntry *e, uint64 gen, uint32 section, uint64 *entries)
{
	ax_ctx	   *cx = art_ctx();
	ax_batch	b;
	int			busy = 0;
	int			side = 0;

	memset(w->block, 0, sizeof(*w->block));
	w->block->section = section;
	w->block->checkpoint = w->checkpoint;
	*entries = 0;
	memset(&b, 0, sizeof(b));
	b.hi.after = true;
	b.want_keys = true;
	b.max = ART_SAVE_KEYS;

	for (;;)
	{
		ax_status	s;
		instr_time	now;

		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, w->start);
		if (INSTR_TIME_GET_DOUBLE(now) > ART_SAVE_SECONDS)
		{
			w->failed = "it would take too long";
			return false;
		}

		b.tids = w->tids;
		b.key_off = w->key_off;
		b.keybuf = w->keybuf;
		b.keybuf_size = w->keybuf_size;
		b.lastkey = w->last[side];
		b.lastkey_size = w->last_size;
		ART_CORE_BEGIN();
		s = ax_scan(cx, e->tree, gen, &b);
		ART_CORE_END();
		if (s == AX_BUFFER)
		{
			uint32		a = w->last_size;
			uint32		c = w->last_size;

			/* the position may lie in the other one: realloc keeps it */
			if (b.need_bytes > 2 * AX_KEY_MAX + 1024 ||
				!grow(&w->keybuf, &w->keybuf_size, b.need_bytes) ||
				!grow(&w->last[0], &a, b.need_bytes) ||
				!grow(&w->last[1], &c, b.need_bytes))
			{
				w->failed = "out of memory";
				return false;
			}
			w->last_size = Min(a, c);
			if (b.lo.len > 0)
				b.lo.key = w->last[1 - side];
			continue;
		}
		if (s == AX_BUSY && busy++ < ART_SAVE_BUSY)
			continue;
		if (s != AX_OK)
			return false;
		for (uint32 i = 0; i < b.n; i++)
			if (!write_key(w, w->keybuf + w->key_off[i],
						   w->key_off[i + 1] - w->key_off[i]))
				return false;
		*entries += b.n;
		if (b.exhausted)
			return write_saved_block(w);
		b.lo.key = b.lastkey;
		b.lo.len = b.lastlen;
		b.lo.after = true;
		side = 1 - side;
	}
}

/* ---- all of them ---- */

typedef struct Candidate
{
	ArtEntry   *e;
	uint64		gen;
	ax_tree_info info;
} Candidate;

/*
 * Unique ones first, whose inserts wait for them, then those most in use, then
 * the small: they are loaded in this order.
 */
static int
candidate_cmp(const void *a, const void *b)
{
	const Candidate *x = a;
	const Candidate *y = b;
	uint32		ux = pg_atomic_read_u32(&x->e->uses);
	uint32		uy = pg_atomic_read_u32(&y->e->uses);

	if (x->e->unique != y->e->unique)
		return x->e->unique ? -1 : 1;
	if (ux != uy)
		return ux > uy ? -1 : 1;
	if (x->info.bytes != y->info.bytes)
		return x->info.bytes < y->info.bytes ? -1 : 1;
	return 0;
}

/*
 * The structures that can be saved: READY, not temporary, and not one whose
 * fate a prepared transaction decides.  No lock: no other process is there.
 * -1: out of memory.
 *
 * Epoch: enters and leaves.
 */
static int
find_candidates(Candidate **out)
{
	ax_ctx	   *cx = art_ctx();
	int			n = 0;
	int			cap = 0;

	*out = NULL;
	for (int b = 0; b < ART_NBUCKETS; b++)
		for (ArtEntry *e = art_shared->buckets[b]; e; e = e->next)
		{
			uint64		w = pg_atomic_read_u64(&e->word);
			ax_status	s;

			if (ART_WORD_STATE(w) != ART_READY || e->loc.backend != -1 || e->doubt ||
				e->compared)	/* a collation can change its mind over a restart */
				continue;
			if (n == ART_SAVED_MAX_SECTIONS)
				break;
			if (n == cap)
			{
				Candidate  *more;

				cap = cap == 0 ? 64 : cap * 2;
				more = realloc(*out, cap * sizeof(Candidate));
				if (more == NULL)
					return -1;
				*out = more;
			}
			(*out)[n].e = e;
			(*out)[n].gen = ART_WORD_GEN(w);
			ART_CORE_BEGIN();
			s = ax_info(cx, e->tree, ART_WORD_GEN(w), &(*out)[n].info);
			ART_CORE_END();
			if (s == AX_OK)
				n++;
		}
	qsort(*out, n, sizeof(Candidate), candidate_cmp);
	return n;
}

/*
 * Write the file.  Returns what went wrong; a file that is good all the same
 * has fewer sections.
 */
static const char *
write_sections(Writer *w, ArtSavedHeader *h, Candidate *cand, int n,
			   ArtSavedSection *table, uint64 *keys)
{
	w->off = sizeof(*h);
	for (int i = 0; i < n && w->failed == NULL; i++)
	{
		ArtEntry   *e = cand[i].e;
		ArtSavedSection *s = &table[h->nsections];
		uint64		off = w->off;

		memset(s, 0, sizeof(*s));
		s->off = off;
		if (!write_keys(w, e, cand[i].gen, h->nsections, &s->entries))
		{
			w->off = off;		/* as if it had not been */
			continue;
		}
		s->len = w->off - off;
		s->loc = e->loc;
		s->indexoid = e->indexoid;
		s->heapoid = e->heapoid;
		s->native = e->native;
		s->unique = e->unique;
		s->fill = e->fill < 1 || e->fill > 100 ? 90 : e->fill;
		s->uses = pg_atomic_read_u32(&e->uses);
		s->used_at = pg_atomic_read_u32(&e->used_at);
		s->engine = e->engine;
		s->page_size = e->page_size;
		s->owner = e->owner;
		s->limited = e->groups[AX_GROUPS - 1] != NULL;
		s->persistence = (uint32) e->persistence;
		s->unchecked = e->unchecked;
		s->schema = e->schema;
		s->name = e->name;
		s->max_bytes = cand[i].info.max_bytes;
		s->bytes = cand[i].info.bytes;
		s->seals = e->seals;
		s->builds = e->builds;
		*keys += s->entries;
		h->nsections++;
	}

	h->table = w->off;
	h->table_crc = art_saved_crc(table, h->nsections * sizeof(*table));
	h->size = h->table + h->nsections * sizeof(*table);
	h->crc = art_saved_crc(h, offsetof(ArtSavedHeader, crc));
	if (!saved_pwrite(w->fd, table, h->nsections * sizeof(*table), h->table) ||
		!saved_pwrite(w->fd, h, sizeof(*h), 0) ||
		ftruncate(w->fd, (off_t) h->size) != 0)
	{
		h->nsections = 0;
		return strerror(errno);
	}
	return w->failed;
}

/*
 * Everything that has a structure into the file.  LOG says how it went.
 */
static void
save_all(const ControlFileData *cf)
{
	Writer		w = {.fd = -1};
	ArtSavedHeader h;
	Candidate  *cand = NULL;
	ArtSavedSection *table = NULL;
	const char *failed = NULL;
	struct stat st;
	struct statvfs vfs;
	uint64		keys = 0;
	int			n;
	instr_time	now;

	INSTR_TIME_SET_CURRENT(w.start);
	header_identity(&h, cf);
	n = find_candidates(&cand);
	if (n == 0)
		return;

	w.checkpoint = cf->checkPoint;
	w.block_size = 2 * ART_BLOCK_BYTES;
	w.keybuf_size = ART_SAVE_KEYBUF;
	w.last_size = 4096;
	if (n < 0 ||
		(table = malloc(n * sizeof(*table))) == NULL ||
		(w.block = malloc(sizeof(*w.block) + w.block_size)) == NULL ||
		(w.tids = malloc(ART_SAVE_KEYS * sizeof(*w.tids))) == NULL ||
		(w.key_off = malloc((ART_SAVE_KEYS + 1) * sizeof(*w.key_off))) == NULL ||
		(w.keybuf = malloc(w.keybuf_size)) == NULL ||
		(w.last[0] = malloc(w.last_size)) == NULL ||
		(w.last[1] = malloc(w.last_size)) == NULL)
		failed = "out of memory";
	else if ((w.fd = open(ART_SAVED_TMP, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY,
						  pg_file_create_mode)) < 0 ||
			 fstat(w.fd, &st) != 0 || fstatvfs(w.fd, &vfs) != 0)
		failed = strerror(errno);
	else
	{
		/* a disk that we fill might keep the server from starting */
		w.limit = (uint64) vfs.f_bavail * vfs.f_frsize / 2;
		h.ino = (uint64) st.st_ino;
		failed = write_sections(&w, &h, cand, n, table, &keys);
	}
	if (w.fd >= 0 && close(w.fd) != 0 && failed == NULL)
		failed = strerror(errno);
	if (h.nsections > 0 && rename(ART_SAVED_TMP, ART_SAVED_FILE) != 0)
	{
		failed = strerror(errno);
		h.nsections = 0;
	}
	if (h.nsections == 0)
		(void) unlink(ART_SAVED_TMP);

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, w.start);
	if (h.nsections > 0)
		ereport(LOG,
				(errmsg("artidx: saved %u of %d indexes, " UINT64_FORMAT " entries, " UINT64_FORMAT " bytes, in %.0f ms",
						h.nsections, n, keys, h.size,
						INSTR_TIME_GET_MILLISEC(now))));
	if (failed)
		ereport(LOG,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("artidx: could not save all indexes to file \"%s\": %s",
						ART_SAVED_FILE, failed)));
	/* the process exits: what was allocated goes with it */
}

/*
 * on_shmem_exit of the postmaster.
 */
static void
saved_shutdown(int code, Datum arg)
{
	ControlFileData cf;

	if (code != 0 || IsUnderPostmaster || MyProcPid != PostmasterPid ||
		art_shared == NULL || !art_save_at_shutdown)
		return;
	if (!read_control(&cf) || cf.state != DB_SHUTDOWNED)
		return;
	if (art_unjudged())
		return;					/* nobody came after a crash: it may hold what is lost */
	art_postmaster_attach();
	save_all(&cf);
	art_postmaster_detach();
}

/* ---- claiming ---- */

/*
 * Is the file to be believed, by this server as it starts now?  The reason is
 * in *why if not, NULL when there is no file.
 */
static bool
file_claimable(ArtSavedHeader *h, ArtSavedSection **table, const char **why)
{
	ControlFileData cf;
	ArtSavedHeader want;
	struct stat st;
	int			fd = art_saved_open(ART_SAVED_FILE, h, table, why);

	if (fd < 0)
		return false;
	close(fd);

	*why = "the server was not cleanly shut down after it was written, or has run since";
	if (!read_control(&cf) || cf.state != DB_SHUTDOWNED)
		return false;
	header_identity(&want, &cf);
	if (h->control_crc != want.control_crc ||
		h->system_identifier != want.system_identifier ||
		h->checkpoint != want.checkpoint || h->redo != want.redo ||
		h->time != want.time || h->timeline != want.timeline)
		return false;
	*why = "another version wrote it";
	if (h->format != want.format || h->key_format != want.key_format ||
		h->pg_major != want.pg_major)
		return false;
	*why = "the server starts with recovery";
	if (stat(STANDBY_SIGNAL_FILE, &st) == 0 || stat(RECOVERY_SIGNAL_FILE, &st) == 0 ||
		stat(BACKUP_LABEL_FILE, &st) == 0)
		return false;
	*why = "\"old_snapshot_threshold\" is set";
	if (ART_OLD_SNAPSHOT_IN_USE())
		return false;
	*why = "no background worker can load it";
	if (!art_load_registered)
		return false;
	*why = NULL;
	return true;
}

/*
 * Rename the file and make the entries of what is in it.  False when it must
 * be unlinked.
 */
static bool
claim_file(void)
{
	ArtSavedHeader h;
	ArtSavedSection *table = NULL;
	const char *why;
	int			n = 0;

	if (!file_claimable(&h, &table, &why))
	{
		if (why)
			ereport(LOG,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("artidx: file \"%s\" is not used: %s",
							ART_SAVED_FILE, why)));
		free(table);
		return false;
	}
	if (rename(ART_SAVED_FILE, ART_LOADING_FILE) != 0)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not rename file \"%s\" to \"%s\": %m",
						ART_SAVED_FILE, ART_LOADING_FILE)));
		free(table);
		return false;
	}

	art_postmaster_attach();
	for (uint32 i = 0; i < h.nsections; i++)
	{
		const ArtSavedSection *s = &table[i];
		ArtOpening	opening = {
			.limited = s->limited != 0, .owner = s->owner,
			.persistence = (char) s->persistence,
			.schema = s->schema, .name = s->name
		};
		ArtEngine	engine = {.structure = (ax_structure) s->engine, .page_size = s->page_size};
		ArtEntry   *e = art_entry_claim(s->indexoid, &s->loc, &opening, &engine, s->max_bytes);

		if (e == NULL)
			continue;			/* no room: absent */
		e->heapoid = s->heapoid;
		e->native = s->native != 0;
		e->unique = s->unique != 0;
		e->unchecked = s->unchecked != 0;
		if (e->unchecked)
			art_shared->kept = true;
		e->fill = s->fill;
		e->seals = s->seals;
		e->builds = s->builds;
		e->last_bytes = s->bytes;
		e->size_hint = s->bytes;
		/*
		 * The options are in the catalog, which cannot be read here.  And
		 * "auto" may mean another thing than when the file was written.
		 */
		e->changed = ART_CHANGED_CAP | ART_CHANGED_ENGINE | ART_CHANGED_TAIL;
		pg_atomic_write_u32(&e->uses, s->uses);
		pg_atomic_write_u32(&e->used_at, s->used_at);
		pg_atomic_write_u64(&e->blocks_total, s->entries);
		n++;
	}
	art_postmaster_detach();
	free(table);
	if (n > 0)
	{
		art_shared->load_crc = h.crc;
		pg_atomic_write_u32(&art_shared->load_state, ART_LOAD_PENDING);
	}
	return true;
}

/*
 * Shared memory has been made.  Claim what was saved, if this is the first
 * time in the postmaster's life and not the cycle after a crash.  See to it
 * that no other file that lies there is ever used.
 */
static void
saved_startup(void)
{
	static bool first = true;
	bool		claimed = false;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	if (IsUnderPostmaster)
		return;
	(void) unlink(ART_LOADING_FILE);
	(void) unlink(ART_SAVED_TMP);
	if (first && IsPostmasterEnvironment && !IsBinaryUpgrade)
		claimed = claim_file();
	first = false;
	if (!claimed)
		(void) unlink(ART_SAVED_FILE);
	if (IsPostmasterEnvironment && !IsBinaryUpgrade)
		on_shmem_exit(saved_shutdown, (Datum) 0);
}

/*
 * While libraries are preloaded.
 */
void
art_saved_init(void)
{
	DefineCustomBoolVariable("artidx.save_at_shutdown",
							 "Saves art indexes at a clean shutdown, so that they need not be rebuilt.",
							 NULL,
							 &art_save_at_shutdown,
							 true,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);
	art_load_register();
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = saved_startup;
}
