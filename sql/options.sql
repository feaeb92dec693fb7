--
-- Storage parameters: what is taken, and what a wrong one gets.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA opts;
SET search_path = opts, public;

CREATE TABLE art_t AS SELECT i AS k FROM generate_series(1, 1000) i;

-- every parameter, with each of its values
CREATE INDEX art_a ON art_t USING art (k) WITH (structure = art, sync = olc,
	fillfactor = 70, deduplicate_items = off, max_memory = '32MB');
CREATE INDEX art_b ON art_t USING art (k) WITH (sync = auto, fillfactor = 10, deduplicate_items);
CREATE INDEX art_c ON art_t USING art (k) WITH (fillfactor = 100, max_memory = '1.5 GB');
CREATE INDEX art_d ON art_t USING art (k) WITH (sync = rowex);
CREATE INDEX art_e ON art_t USING art (k) WITH (structure = art, sync = optiql);
CREATE INDEX art_f ON art_t USING art (k) WITH (sync = coarse);
CREATE INDEX art_g ON art_t USING art (k) WITH (structure = btree);
CREATE INDEX art_h ON art_t USING art (k) WITH (structure = btree, sync = olc, page_size = 256);
CREATE INDEX art_i ON art_t USING art (k) WITH (structure = btree, sync = optiql, page_size = 16384);
CREATE INDEX art_j ON art_t USING art (k) WITH (structure = btree, sync = coarse, page_size = 512);
CREATE INDEX art_k ON art_t USING art (k) WITH (tail_buffer = on, elision = on);
CREATE INDEX art_l ON art_t USING art (k) WITH (structure = btree, tail_buffer = off, elision = off);
CREATE INDEX art_n ON art_t USING art (k) WITH (tail_buffer = auto, elision = auto);
SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'art\__' AND relkind = 'i' ORDER BY 1;
SELECT indexrelname, structure, sync, tail_buffer, max_memory FROM artidx_indexes
	WHERE schemaname = 'opts' ORDER BY 1;
SELECT clean('art_a'), clean('art_b'), clean('art_c');

-- changed later
ALTER INDEX art_a SET (fillfactor = 50, max_memory = '64MB');
ALTER INDEX art_b RESET (fillfactor, sync, deduplicate_items);
ALTER INDEX art_c SET (max_memory = '20TB');
SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'art\__' AND relkind = 'i' ORDER BY 1;
REINDEX INDEX art_a;
INSERT INTO art_t SELECT generate_series(1001, 2000);
SELECT clean('art_a'), clean('art_b'), clean('art_c');

-- wrong values, wrong names
SELECT o, refused('CREATE INDEX ON {}_t USING art (k) WITH (' || o || ')') FROM unnest(ARRAY[
	'structure = heap', 'structure = ''''', 'structure = ART2',
	'sync = rlu', 'sync = mvrlu', 'structure = btree, sync = mvrlu', 'sync = on', 'structure = btree, sync = rowex', 'structure = hydra, sync = rowex',
	'fillfactor = 9', 'fillfactor = 101', 'fillfactor = many',
	'deduplicate_items = perhaps',
	'max_memory = 64', 'max_memory = ''64 megabytes''', 'max_memory = ''1kB''', 'max_memory = ''-1GB''',
	'max_memory = ''17TB''', 'max_memory = ''''', 'max_memory = ''MB''', 'max_memory',
	'tail_buffer = maybe', 'tail_buffer', 'tail_buffer = ''''', 'tail_buffer = 1', 'elision = never', 'elision = rtm', 'page_size = 4096', 'fastupdate = on', 'structures = art',
	'toast.fillfactor = 50']) o;
ALTER INDEX art_a SET (sync = none);
ALTER INDEX art_a SET (autosummarize = on);
SELECT relname, reloptions FROM pg_class WHERE relname = 'art_a';

-- together, also when each of them is right by itself and was there before
ALTER INDEX art_d SET (structure = btree);
ALTER INDEX art_h SET (sync = rowex);
ALTER INDEX art_h RESET (structure);
ALTER INDEX art_d SET (structure = btree, sync = coarse);
ALTER INDEX art_d SET (structure = btree, sync = coarse, page_size = 1000);
SELECT relname, reloptions FROM pg_class WHERE relname IN ('art_d', 'art_h') ORDER BY 1;

-- ALTER INDEX takes effect by itself: the structure is dropped and built again
CREATE VIEW what AS
	SELECT indexrelname, structure, sync, nodes -> 'page_size' AS page_size, builds, last_build_source
	FROM artidx_indexes WHERE schemaname = 'opts';
CREATE FUNCTION built(index regclass) RETURNS SETOF what LANGUAGE sql AS $$
	SELECT artidx_build(index);
	SELECT * FROM what WHERE indexrelname = index::text
$$;
SELECT indexrelname, structure, sync FROM what WHERE indexrelname IN ('art_d', 'art_i') ORDER BY 1;
SELECT * FROM built('art_d');
ALTER INDEX art_d SET (page_size = 4096);
SELECT * FROM built('art_d');
ALTER INDEX art_d RESET (structure, sync, page_size);
SELECT * FROM built('art_d');
-- nothing that the structure depends on has changed
ALTER INDEX art_d SET (fillfactor = 80, max_memory = '1GB');
ALTER INDEX art_d SET (sync = olc, structure = art);
SELECT * FROM what WHERE indexrelname = 'art_d';
SELECT clean('art_d');

-- not before the commit, and not when it is rolled back
BEGIN;
ALTER INDEX art_d SET (structure = btree);
SELECT * FROM what WHERE indexrelname = 'art_d';
INSERT INTO art_t VALUES (2001);
ROLLBACK;
SELECT * FROM what WHERE indexrelname = 'art_d';
BEGIN;
SAVEPOINT a;
ALTER INDEX art_d SET (structure = btree, sync = coarse);
ROLLBACK TO a;
SELECT clean('art_d');
COMMIT;
SELECT * FROM what WHERE indexrelname = 'art_d';
-- twice, and back again: nothing is left to do
BEGIN;
ALTER INDEX art_d SET (structure = btree, sync = coarse);
ALTER INDEX art_d SET (structure = art, sync = olc);
COMMIT;
SELECT * FROM what WHERE indexrelname = 'art_d';
-- twice, the second in a subtransaction: that of the first counts
BEGIN;
ALTER INDEX art_d SET (sync = coarse);
SAVEPOINT a;
ALTER INDEX art_d SET (sync = rowex);
ROLLBACK TO a;
SELECT clean('art_d');
COMMIT;
SELECT * FROM built('art_d');
BEGIN;
ALTER INDEX art_d SET (sync = coarse);
SAVEPOINT a;
ALTER INDEX art_d SET (sync = rowex);
RELEASE a;
COMMIT;
SELECT * FROM built('art_d');
-- what the transaction builds by options that are rolled back goes
BEGIN;
ALTER INDEX art_d SET (structure = btree, sync = optiql);
SELECT artidx_unload('art_d');
SELECT * FROM built('art_d');
ROLLBACK;
SELECT clean('art_d');
SELECT indexrelname, structure, sync FROM what WHERE indexrelname = 'art_d';
-- dropped, moved, made in the same transaction
BEGIN;
ALTER INDEX art_e SET (structure = btree);
DROP INDEX art_e;
COMMIT;
BEGIN;
CREATE INDEX art_e ON art_t USING art (k) WITH (sync = rowex);
ALTER INDEX art_e SET (sync = coarse);
COMMIT;
SELECT * FROM built('art_e');
BEGIN;
ALTER INDEX art_e SET (structure = btree);
REINDEX INDEX art_e;
COMMIT;
SELECT * FROM what WHERE indexrelname = 'art_e';
-- one that is out stays out
SELECT artidx_unload('art_f');
ALTER INDEX art_f SET (structure = btree);
SELECT structure, sync, state, reason FROM artidx_indexes WHERE indexrelname = 'art_f';
SELECT * FROM built('art_f');
SELECT clean('art_e'), clean('art_f');

-- tail_buffer and elision are told to the structure that is there; the command
-- does not stop who reads and writes
CREATE VIEW tail AS
	SELECT indexrelname, structure, tail_buffer, state, builds FROM artidx_indexes WHERE schemaname = 'opts';
BEGIN;
ALTER INDEX art_d SET (tail_buffer = on, elision = off);
SELECT mode FROM pg_locks WHERE relation = 'art_d'::regclass AND pid = pg_backend_pid();
SELECT * FROM tail WHERE indexrelname = 'art_d';
COMMIT;
SELECT * FROM tail WHERE indexrelname = 'art_d';
BEGIN;
ALTER INDEX art_d SET (tail_buffer = off);
INSERT INTO art_t SELECT generate_series(3001, 3100);
ROLLBACK;
SELECT * FROM tail WHERE indexrelname = 'art_d';
BEGIN;
ALTER INDEX art_d SET (tail_buffer = off);
SAVEPOINT a;
ALTER INDEX art_d RESET (tail_buffer);
ROLLBACK TO a;
COMMIT;
SELECT * FROM tail WHERE indexrelname = 'art_d';
INSERT INTO art_t SELECT generate_series(3001, 3100);
ALTER INDEX art_d RESET (tail_buffer, elision);
SELECT * FROM tail WHERE indexrelname = 'art_d';
-- what it was told last is what the next structure is told
ALTER INDEX art_d SET (tail_buffer = on);
SELECT artidx_unload('art_d');
ALTER INDEX art_d SET (tail_buffer = off);
SELECT tail_buffer, state FROM tail WHERE indexrelname = 'art_d';
SELECT artidx_build('art_d');
SELECT tail_buffer, state FROM tail WHERE indexrelname = 'art_d';
REINDEX INDEX art_d;
SELECT tail_buffer, state FROM tail WHERE indexrelname = 'art_d';
REINDEX INDEX CONCURRENTLY art_d;
SELECT tail_buffer, state FROM tail WHERE indexrelname = 'art_d';
-- with another engine at once, the other lock
BEGIN;
ALTER INDEX art_d SET (tail_buffer = on, sync = rowex);
SELECT mode FROM pg_locks WHERE relation = 'art_d'::regclass AND pid = pg_backend_pid();
COMMIT;
SELECT artidx_build('art_d');
SELECT tail_buffer, state FROM tail WHERE indexrelname = 'art_d';
-- built by a transaction that altered it, and rolled back
SELECT artidx_unload('art_n');
BEGIN;
ALTER INDEX art_n SET (tail_buffer = off);
SELECT artidx_build('art_n');
SELECT tail_buffer, state FROM tail WHERE indexrelname = 'art_n';
ROLLBACK;
INSERT INTO art_t VALUES (3101);
SELECT tail_buffer, state FROM tail WHERE indexrelname = 'art_n';
-- keys that are compared have none
CREATE TABLE art_q (k int[]);
CREATE INDEX art_q_k ON art_q USING art (k) WITH (tail_buffer = on, elision = on);
INSERT INTO art_q SELECT ARRAY[i, i] FROM generate_series(1, 1000) i;
SELECT tail_buffer, state FROM tail WHERE indexrelname = 'art_q_k';
SELECT clean('art_d'), clean('art_n'), clean('art_q_k');
DROP TABLE art_q;
ALTER INDEX art_d SET (tail_buffer = none);
ALTER INDEX art_d SET (elision = perhaps);
SELECT reloptions FROM pg_class WHERE relname = 'art_d';

-- plans: the prepared one does without it until it is there again
CREATE TABLE art_p AS SELECT i AS k, i % 7 AS v FROM generate_series(1, 3000) i;
CREATE UNIQUE INDEX art_p_k ON art_p USING art (k);
ANALYZE art_p;
SET plan_cache_mode = force_generic_plan;
PREPARE q AS SELECT v FROM art_p WHERE k = $1;
EXPLAIN (COSTS OFF) EXECUTE q (5);
EXECUTE q (5);
ALTER INDEX art_p_k SET (structure = btree, sync = olc);
EXECUTE q (6);
SELECT artidx_build('art_p_k');
EXPLAIN (COSTS OFF) EXECUTE q (5);
EXECUTE q (7);
-- a unique one checks every row, whatever it is made of by then
ALTER INDEX art_p_k SET (structure = art, sync = rowex);
SELECT refused('INSERT INTO {}_p VALUES (17)');
ALTER INDEX art_p_k SET (sync = coarse);
INSERT INTO art_p VALUES (17, 0) ON CONFLICT (k) DO UPDATE SET v = -1;
ALTER INDEX art_p_k SET (sync = optiql);
INSERT INTO art_p VALUES (3001, 3);
EXECUTE q (17);
EXECUTE q (3001);
SELECT clean('art_p_k');
DEALLOCATE q;
RESET plan_cache_mode;
DROP TABLE art_p;

-- what another version of the library stored, and this one does not take
SET allow_system_table_mods = on;
UPDATE pg_class SET reloptions = '{structure=btree,sync=rowex,page_size=131072,fillfactor=0,tail_buffer=stripes,elision=hle}'
	WHERE oid = 'art_f'::regclass;
UPDATE pg_class SET reloptions = '{structure=btree,sync=mvrlu,page_size=-64,fillfactor=1000}'
	WHERE oid = 'art_g'::regclass;
RESET allow_system_table_mods;
REINDEX INDEX art_f;
REINDEX INDEX art_g;
CREATE INDEX art_z ON art_t USING art (k) WITH (structure = btree);
SELECT i.indexrelname, i.structure, i.sync, i.tail_buffer, i.nodes = k.nodes AS as_by_default
	FROM artidx_indexes i, artidx_indexes k
	WHERE i.indexrelname IN ('art_f', 'art_g') AND k.indexrelid = 'art_z'::regclass
		AND i.schemaname = 'opts' ORDER BY 1;
DROP INDEX art_z;

-- the cap of one index is an error that names it, and loses nothing: a unique
-- index checks every row, so it has to refuse the ones it cannot take
CREATE TABLE art_m (k int, v text);
CREATE UNIQUE INDEX art_m_k ON art_m USING art (k) WITH (max_memory = '64kB');
INSERT INTO art_m SELECT i, md5(i::text) FROM generate_series(1, 100) i;
SELECT split_part(refused('INSERT INTO {}_m SELECT i, md5(i::text) FROM generate_series(1000, 101000) i'), E'\n', 1);
SELECT split_part(refused('CREATE INDEX ON {}_m USING art (k) WITH (max_memory = ''64kB''); INSERT INTO {}_m SELECT i * 7919 FROM generate_series(1, 100000) i'), E'\n', 1);
SELECT count(*), bool_and(k BETWEEN 1 AND 100) FROM art_m;
SELECT clean('art_m_k');
SELECT refused('INSERT INTO {}_m VALUES (7)');
DELETE FROM art_m WHERE k % 2 = 0;
VACUUM art_m;
INSERT INTO art_m VALUES (8);
SELECT count(*) FROM art_m;
SELECT clean('art_m_k');

SET client_min_messages = warning;
DROP SCHEMA opts CASCADE;
