--
-- Kinds of index: temporary and unlogged ones, truncated, clustered by,
-- partitioned, moved, rewritten.  Everything is done to a twin with btree
-- indexes as well.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA kinds;
SET search_path = kinds, public;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;

-- what same() says, but how the index is read only if that is not as with btree
CREATE FUNCTION by_index(outcome text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN outcome ~ 'DIFFERENT|\(btree' THEN outcome
		ELSE regexp_replace(outcome, ', .*Index.*', ', by index') END $$;
-- the rows by several ways, and whether the structures are sound
CREATE FUNCTION agree(tab text) RETURNS TABLE (what text, outcome text)
LANGUAGE plpgsql AS $$
BEGIN
	what := 'in order';
	outcome := by_index(same(format('SELECT k, v FROM {}_%s ORDER BY k, v', tab)));
	RETURN NEXT;
	what := 'backwards';
	outcome := by_index(same(format('SELECT k FROM {}_%s ORDER BY k DESC', tab)));
	RETURN NEXT;
	what := 'a range';
	outcome := by_index(same(format('SELECT v FROM {}_%s WHERE k BETWEEN 10 AND 40 ORDER BY k, v', tab)));
	RETURN NEXT;
	what := 'check';
	SELECT string_agg(DISTINCT clean(indexrelid), ', ') INTO outcome
		FROM pg_index JOIN pg_class c ON c.oid = indexrelid
		WHERE indrelid = ('art_' || tab)::regclass
			AND relam = (SELECT oid FROM pg_am WHERE amname = 'art');
	RETURN NEXT;
END $$;

-- ---- temporary tables ----
CREATE TEMP TABLE bt_temp (k int, v text);
CREATE TEMP TABLE art_temp (k int, v text);
INSERT INTO bt_temp SELECT i % 50, 'v' || i FROM generate_series(1, 200) i;
INSERT INTO art_temp SELECT i % 50, 'v' || i FROM generate_series(1, 200) i;
CREATE INDEX bt_temp_kv ON bt_temp (k, v COLLATE "C");
CREATE INDEX art_temp_kv ON art_temp USING art (k, v COLLATE "C");
CREATE UNIQUE INDEX bt_temp_v ON bt_temp (v COLLATE "C");
CREATE UNIQUE INDEX art_temp_v ON art_temp USING art (v COLLATE "C");
SELECT * FROM agree('temp');
SELECT twins($$INSERT INTO {}_temp VALUES (1, 'v7')$$);
SELECT twins($$UPDATE {}_temp SET k = k + 100 WHERE k < 5$$);
SELECT twins($$DELETE FROM {}_temp WHERE v LIKE 'v1%'$$);
SELECT twins($$INSERT INTO {}_temp VALUES (1, 'v12') ON CONFLICT (v) DO NOTHING$$);
SELECT * FROM agree('temp');
VACUUM bt_temp, art_temp;
SELECT * FROM agree('temp');
SELECT twins('REINDEX TABLE {}_temp');
SELECT * FROM agree('temp');

-- what was rolled back is built again when a plan wants it
BEGIN;
TRUNCATE art_temp;
TRUNCATE bt_temp;
INSERT INTO art_temp VALUES (3, 'new');
INSERT INTO bt_temp VALUES (3, 'new');
SELECT * FROM agree('temp');
ROLLBACK;
SELECT * FROM agree('temp');
BEGIN;
SAVEPOINT a;
INSERT INTO art_temp VALUES (11, 'savepoint a');
INSERT INTO bt_temp VALUES (11, 'savepoint a');
SAVEPOINT b;
TRUNCATE art_temp, bt_temp;
ROLLBACK TO b;
INSERT INTO art_temp VALUES (12, 'savepoint b');
INSERT INTO bt_temp VALUES (12, 'savepoint b');
SELECT * FROM agree('temp');
ROLLBACK TO a;
INSERT INTO art_temp VALUES (13, 'after');
INSERT INTO bt_temp VALUES (13, 'after');
COMMIT;
SELECT * FROM agree('temp');

-- absent for another reason: unloaded, altered
SELECT artidx_unload('art_temp_kv');
SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'art_temp_kv';
SELECT by_index(same('SELECT k FROM {}_temp WHERE k = 30'));
SELECT artidx_build('art_temp_kv');
SELECT by_index(same('SELECT k FROM {}_temp WHERE k = 30'));
ALTER INDEX art_temp_kv SET (structure = btree);
SELECT by_index(same('SELECT k FROM {}_temp WHERE k = 30'));
SELECT structure, state, last_build_source FROM artidx_indexes WHERE indexrelname = 'art_temp_kv';
SELECT * FROM agree('temp');
-- memory full: sealed, and back when it may be
ALTER INDEX art_temp_kv SET (max_memory = '64kB');
SELECT twins($$INSERT INTO {}_temp SELECT i % 300, repeat('x', 100) || i FROM generate_series(1, 3000) i$$);
SELECT state FROM artidx_indexes WHERE indexrelname = 'art_temp_kv';
SELECT by_index(same('SELECT k FROM {}_temp WHERE k = 30'));
ALTER INDEX art_temp_kv RESET (max_memory);
SELECT by_index(same('SELECT k FROM {}_temp WHERE k = 30'));
SELECT state FROM artidx_indexes WHERE indexrelname = 'art_temp_kv';
SELECT * FROM agree('temp');

-- ON COMMIT DELETE ROWS: the index is made again at the commit
CREATE TEMP TABLE bt_gone (k int, v text, EXCLUDE USING btree (k WITH =)) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE art_gone (k int, v text, EXCLUDE USING art (k WITH =)) ON COMMIT DELETE ROWS;
CREATE INDEX bt_gone_e ON bt_gone ((k * 2), upper(v)) WHERE v IS NOT NULL;
CREATE INDEX art_gone_e ON art_gone USING art ((k * 2), upper(v)) WHERE v IS NOT NULL;
CREATE UNIQUE INDEX bt_gone_k ON bt_gone (k);
CREATE UNIQUE INDEX art_gone_k ON art_gone USING art (k);
BEGIN;
SELECT twins($$INSERT INTO {}_gone SELECT i, 'v' || i FROM generate_series(1, 60) i$$);
SELECT twins($$INSERT INTO {}_gone VALUES (7, 'twice')$$);
SELECT * FROM agree('gone');
SELECT by_index(same($$SELECT v FROM {}_gone WHERE k * 2 BETWEEN 20 AND 30 AND v IS NOT NULL ORDER BY k * 2$$));
COMMIT;
SELECT * FROM agree('gone');
BEGIN;
SELECT twins($$INSERT INTO {}_gone SELECT i, 'w' || i FROM generate_series(40, 50) i$$);
SELECT * FROM agree('gone');
SELECT by_index(same($$SELECT v FROM {}_gone WHERE k * 2 BETWEEN 20 AND 90 AND v IS NOT NULL ORDER BY k * 2$$));
ROLLBACK;
SELECT * FROM agree('gone');
SELECT entries, state FROM artidx_indexes WHERE relname = 'art_gone' ORDER BY indexrelname;
-- a commit in the middle of a procedure
CREATE PROCEDURE gone_by_half() LANGUAGE plpgsql AS $$
DECLARE
	n1 bigint;
	n2 bigint;
BEGIN
	FOR i IN 1..5 LOOP
		INSERT INTO art_gone VALUES (1, 'one'), (2, 'two');
		INSERT INTO bt_gone VALUES (1, 'one'), (2, 'two');
		SELECT count(*) INTO n1 FROM art_gone WHERE k > 0;
		COMMIT;
		SELECT count(*) INTO n2 FROM art_gone WHERE k > 0;
		RAISE NOTICE '% rows, then %', n1, n2;
	END LOOP;
END $$;
CALL gone_by_half();

-- ON COMMIT DROP
BEGIN;
CREATE TEMP TABLE bt_drop (k int, v text) ON COMMIT DROP;
CREATE TEMP TABLE art_drop (k int, v text) ON COMMIT DROP;
CREATE INDEX bt_drop_k ON bt_drop (k);
CREATE INDEX art_drop_k ON art_drop USING art (k);
SELECT twins($$INSERT INTO {}_drop SELECT i % 50, 'v' || i FROM generate_series(1, 200) i$$);
SELECT by_index(same('SELECT k FROM {}_drop WHERE k > 20 ORDER BY k'));
COMMIT;
SELECT count(*) FROM artidx_indexes WHERE relname = 'art_drop';
SELECT indexrelname, schemaname ~ '^pg_temp_\d+$' AS temp FROM artidx_indexes
	WHERE schemaname LIKE 'pg\_temp%' ORDER BY 1;
DISCARD TEMP;
SELECT count(*) FROM artidx_indexes WHERE schemaname LIKE 'pg\_temp%';
-- ---- unlogged tables; crash, standby and promotion are in t/028 ----
CREATE UNLOGGED TABLE bt_unl (k int, v text);
CREATE UNLOGGED TABLE art_unl (k int, v text);
CREATE INDEX bt_unl_kv ON bt_unl (k, v COLLATE "C");
CREATE INDEX art_unl_kv ON art_unl USING art (k, v COLLATE "C");
SELECT twins($$INSERT INTO {}_unl SELECT i % 50, 'v' || i FROM generate_series(1, 500) i$$);
SELECT * FROM agree('unl');
CREATE FUNCTION forks(rel regclass) RETURNS text LANGUAGE sql AS $$
	SELECT relpersistence::text || ', init fork of ' ||
		coalesce((pg_stat_file(pg_relation_filepath(rel) || '_init', true)).size::text, 'no')
		|| ' bytes' FROM pg_class WHERE oid = rel $$;
SELECT forks('art_unl_kv');
ALTER TABLE bt_unl SET LOGGED;
ALTER TABLE art_unl SET LOGGED;
SELECT forks('art_unl_kv');
SELECT * FROM agree('unl');
BEGIN;
ALTER TABLE art_unl SET UNLOGGED;
INSERT INTO art_unl VALUES (1, 'never');
SELECT count(*) FROM art_unl WHERE k = 1;
ROLLBACK;
SELECT forks('art_unl_kv');
SELECT * FROM agree('unl');
ALTER TABLE bt_unl SET UNLOGGED;
ALTER TABLE art_unl SET UNLOGGED;
SELECT forks('art_unl_kv');
SELECT twins('DELETE FROM {}_unl WHERE k % 3 = 0');
VACUUM bt_unl, art_unl;
SELECT * FROM agree('unl');
REINDEX TABLE CONCURRENTLY art_unl;
SELECT forks('art_unl_kv');
SELECT * FROM agree('unl');

-- ---- TRUNCATE, of a file that no other transaction has seen too ----
BEGIN;
CREATE TABLE bt_new (k int, v text);
CREATE TABLE art_new (k int, v text);
CREATE INDEX bt_new_k ON bt_new (k);
CREATE INDEX art_new_k ON art_new USING art (k);
CREATE UNIQUE INDEX bt_new_v ON bt_new (v COLLATE "C");
CREATE UNIQUE INDEX art_new_v ON art_new USING art (v COLLATE "C");
SELECT twins($$INSERT INTO {}_new SELECT i, 'first' || i FROM generate_series(1, 60) i$$);
SELECT pg_relation_filenode('art_new_k') AS file \gset
TRUNCATE bt_new, art_new;
SELECT pg_relation_filenode('art_new_k') = :file AS same_file;
SELECT * FROM agree('new');
SELECT twins($$INSERT INTO {}_new SELECT i, 'first' || i FROM generate_series(1, 60) i$$);
SELECT * FROM agree('new');
SAVEPOINT s;
TRUNCATE bt_new, art_new;
SELECT pg_relation_filenode('art_new_k') = :file AS same_file;
SELECT twins($$INSERT INTO {}_new SELECT i, 'second' || i FROM generate_series(1, 20) i$$);
TRUNCATE bt_new, art_new;
SELECT twins($$INSERT INTO {}_new SELECT i, 'third' || i FROM generate_series(1, 30) i$$);
SELECT * FROM agree('new');
ROLLBACK TO s;
SELECT * FROM agree('new');
SELECT twins($$INSERT INTO {}_new VALUES (5, 'first5')$$);
SAVEPOINT s2;
CREATE TABLE art_newer (k int);
CREATE INDEX art_newer_k ON art_newer USING art (k);
INSERT INTO art_newer VALUES (1);
TRUNCATE art_newer;
INSERT INTO art_newer VALUES (2);
SELECT k FROM art_newer WHERE k < 10;
ROLLBACK TO s2;
COMMIT;
SELECT * FROM agree('new');
TRUNCATE bt_new, art_new;
SELECT * FROM agree('new');
BEGIN;
TRUNCATE bt_new, art_new;
SELECT twins($$INSERT INTO {}_new SELECT i, 'fourth' || i FROM generate_series(1, 30) i$$);
COMMIT;
SELECT * FROM agree('new');

-- ---- CLUSTER ----
CREATE TABLE bt_cl (k int, v text, pad text);
CREATE TABLE art_cl (k int, v text, pad text);
CREATE INDEX bt_cl_k ON bt_cl (k DESC);
CREATE INDEX art_cl_k ON art_cl USING art (k DESC);
CREATE INDEX bt_cl_v ON bt_cl (lower(v) COLLATE "C", k);
CREATE INDEX art_cl_v ON art_cl USING art (lower(v) COLLATE "C", k);
SELECT twins($$INSERT INTO {}_cl SELECT i * 7919 % 400, 'V' || i % 37, repeat('p', i % 90) FROM generate_series(1, 2000) i$$);
SELECT twins($$INSERT INTO {}_cl SELECT NULL, 'null' || i FROM generate_series(1, 10) i$$);
SELECT twins('DELETE FROM {}_cl WHERE k % 9 = 0');
-- equal keys keep the table's order, and UPDATE may prune it at other moments
VACUUM bt_cl, art_cl;
SELECT twins($$UPDATE {}_cl SET pad = pad || 'hot' WHERE k % 5 = 0$$);
VACUUM bt_cl, art_cl;
SELECT twins($$UPDATE {}_cl SET k = k + 1000 WHERE k % 7 = 0$$);
-- the rows in the order of the table, whatever their places
CREATE FUNCTION heap_order(tab text) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = on SET enable_indexscan = off
SET enable_indexonlyscan = off SET enable_bitmapscan = off AS $$
DECLARE
	r text;
BEGIN
	EXECUTE format('SELECT count(*) || '' rows '' || md5(string_agg(concat_ws('','', k, v, pad), ''/'')) FROM (SELECT * FROM %s OFFSET 0) x', tab) INTO r;
	RETURN r;
END $$;
-- by the index on both sides: a sort leaves equal keys in any order
SET seq_page_cost = 10000;
CLUSTER bt_cl USING bt_cl_k;
CLUSTER art_cl USING art_cl_k;
SELECT heap_order('bt_cl') = heap_order('art_cl') AS same, split_part(heap_order('art_cl'), ' ', 1) AS rows;
SELECT * FROM agree('cl');
CLUSTER bt_cl USING bt_cl_v;
CLUSTER art_cl USING art_cl_v;
SELECT heap_order('bt_cl') = heap_order('art_cl') AS same, split_part(heap_order('art_cl'), ' ', 1) AS rows;
SELECT indisclustered, indexrelid::regclass FROM pg_index WHERE indrelid = 'art_cl'::regclass ORDER BY indexrelid::regclass::text;
SELECT * FROM agree('cl');
-- without a structure it reads the table, by the rules of a build
SELECT twins('UPDATE {}_cl SET k = k + 2 WHERE k % 2 = 0');
SELECT artidx_unload('art_cl_k');
CLUSTER bt_cl USING bt_cl_k;
CLUSTER art_cl USING art_cl_k;
SELECT heap_order('bt_cl') = heap_order('art_cl') AS same, split_part(heap_order('art_cl'), ' ', 1) AS rows;
SELECT * FROM agree('cl');
SET work_mem = '64kB';
SELECT artidx_unload('art_cl_v');
CLUSTER bt_cl USING bt_cl_v;
CLUSTER art_cl USING art_cl_v;
SELECT heap_order('bt_cl') = heap_order('art_cl') AS same, split_part(heap_order('art_cl'), ' ', 1) AS rows;
RESET work_mem;
-- in a transaction, with its own rows of all kinds, and rolled back
BEGIN;
SELECT twins('DELETE FROM {}_cl WHERE k % 11 = 0');
SELECT twins($$UPDATE {}_cl SET pad = 'hot again' WHERE k % 13 = 0$$);
SELECT twins($$INSERT INTO {}_cl SELECT i, 'own' || i FROM generate_series(1, 100) i$$);
SAVEPOINT s;
SELECT twins($$INSERT INTO {}_cl SELECT i, 'gone' || i FROM generate_series(1, 100) i$$);
SELECT twins($$UPDATE {}_cl SET pad = 'gone' WHERE k % 17 = 0$$);
ROLLBACK TO s;
-- read first: CLUSTER of 16 and later may lose rows whose last UPDATE was undone
SELECT twins('SELECT FROM {}_cl');
CLUSTER bt_cl USING bt_cl_k;
CLUSTER art_cl USING art_cl_k;
SELECT heap_order('bt_cl') = heap_order('art_cl') AS same, split_part(heap_order('art_cl'), ' ', 1) AS rows;
SELECT * FROM agree('cl');
CLUSTER bt_cl;
CLUSTER art_cl;
SELECT heap_order('bt_cl') = heap_order('art_cl') AS same;
ROLLBACK;
SELECT heap_order('bt_cl') = heap_order('art_cl') AS same, split_part(heap_order('art_cl'), ' ', 1) AS rows;
SELECT * FROM agree('cl');
ALTER TABLE bt_cl CLUSTER ON bt_cl_k;
ALTER TABLE art_cl CLUSTER ON art_cl_k;
SELECT twins('UPDATE {}_cl SET k = k - 3 WHERE k % 4 = 0');
CLUSTER bt_cl;
CLUSTER art_cl;
SELECT heap_order('bt_cl') = heap_order('art_cl') AS same;
ALTER TABLE art_cl SET WITHOUT CLUSTER;
RESET seq_page_cost;
-- an index made after the rows were changed, in the transaction that changed them
BEGIN;
CREATE TABLE bt_chain (k int, v text, pad text) WITH (fillfactor = 50);
CREATE TABLE art_chain (k int, v text, pad text) WITH (fillfactor = 50);
SELECT twins($$INSERT INTO {}_chain SELECT i, 'v' || i FROM generate_series(1, 300) i$$);
SELECT twins($$UPDATE {}_chain SET k = 1000 - k WHERE k % 2 = 0$$);
SELECT twins($$UPDATE {}_chain SET v = 'w' || k WHERE k % 3 = 0$$);
SELECT twins($$DELETE FROM {}_chain WHERE k % 50 = 0$$);
CREATE INDEX bt_chain_k ON bt_chain (k);
CREATE INDEX art_chain_k ON art_chain USING art (k);
SELECT artidx_unload('art_chain_k');
CLUSTER bt_chain USING bt_chain_k;
CLUSTER art_chain USING art_chain_k;
SELECT heap_order('bt_chain') = heap_order('art_chain') AS same, split_part(heap_order('art_chain'), ' ', 1) AS rows;
COMMIT;
SELECT * FROM agree('chain');
VACUUM FULL bt_chain;
VACUUM FULL art_chain;
SELECT * FROM agree('chain');
-- what is refused
CREATE INDEX bt_cl_part ON bt_cl (k) WHERE k > 5;
CREATE INDEX art_cl_part ON art_cl USING art (k) WHERE k > 5;
SELECT twins('CLUSTER {}_cl USING {}_cl_part');
-- temporary and unlogged tables
CLUSTER bt_unl USING bt_unl_kv;
CLUSTER art_unl USING art_unl_kv;
SELECT * FROM agree('unl');
CREATE TEMP TABLE bt_tcl AS SELECT k, v FROM bt_cl WHERE k < 300;
CREATE TEMP TABLE art_tcl AS SELECT k, v FROM art_cl WHERE k < 300;
CREATE INDEX bt_tcl_k ON bt_tcl (k, v);
CREATE INDEX art_tcl_k ON art_tcl USING art (k, v);
SELECT artidx_unload('art_tcl_k');
CLUSTER bt_tcl USING bt_tcl_k;
CLUSTER art_tcl USING art_tcl_k;
SELECT * FROM agree('tcl');

-- ---- partitioned tables ----
CREATE TABLE bt_p (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE art_p (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE bt_p1 PARTITION OF bt_p FOR VALUES FROM (0) TO (30);
CREATE TABLE art_p1 PARTITION OF art_p FOR VALUES FROM (0) TO (30);
CREATE INDEX bt_p_kv ON bt_p (k, v COLLATE "C");
CREATE INDEX art_p_kv ON art_p USING art (k, v COLLATE "C");
CREATE TABLE bt_p2 PARTITION OF bt_p FOR VALUES FROM (30) TO (60);
CREATE TABLE art_p2 PARTITION OF art_p FOR VALUES FROM (30) TO (60);
CREATE TABLE bt_p3 (v text, k int);
CREATE TABLE art_p3 (v text, k int);
CREATE INDEX bt_p3_own ON bt_p3 (k, v COLLATE "C");
CREATE INDEX art_p3_own ON art_p3 USING art (k, v COLLATE "C");
SELECT twins($$INSERT INTO {}_p SELECT i % 60, 'v' || i FROM generate_series(1, 300) i$$);
SELECT twins($$INSERT INTO {}_p3 SELECT 'v' || i, 60 + i FROM generate_series(1, 20) i$$);
SELECT twins('ALTER TABLE {}_p ATTACH PARTITION {}_p3 FOR VALUES FROM (60) TO (90)');
SELECT c.relname, p.relname AS parent, a.amname, i.indisvalid FROM pg_inherits
	JOIN pg_class c ON c.oid = inhrelid JOIN pg_class p ON p.oid = inhparent
	JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_am a ON a.oid = c.relam
	WHERE c.relnamespace = 'kinds'::regnamespace AND c.relname LIKE 'art%' ORDER BY 1;
SELECT by_index(same('SELECT k, v FROM {}_p WHERE k BETWEEN 20 AND 70 ORDER BY k, v COLLATE "C"'));
SELECT twins('ALTER TABLE {}_p DETACH PARTITION {}_p1');
SELECT by_index(same('SELECT k, v FROM {}_p1 WHERE k BETWEEN 20 AND 70 ORDER BY k, v COLLATE "C"'));
SELECT by_index(same('SELECT k, v FROM {}_p WHERE k BETWEEN 20 AND 70 ORDER BY k, v COLLATE "C"'));
-- an index on the parent alone, whose parts are attached one by one
CREATE INDEX bt_p_only ON ONLY bt_p (v COLLATE "C");
CREATE INDEX art_p_only ON ONLY art_p USING art (v COLLATE "C");
CREATE INDEX bt_p2_v ON bt_p2 (v COLLATE "C");
CREATE INDEX art_p2_v ON art_p2 USING art (v COLLATE "C");
CREATE INDEX bt_p3_v ON bt_p3 (v COLLATE "C");
CREATE INDEX art_p3_v ON art_p3 USING art (v COLLATE "C");
SELECT twins('ALTER INDEX {}_p_only ATTACH PARTITION {}_p2_v');
SELECT indisvalid FROM pg_index WHERE indexrelid = 'art_p_only'::regclass;
SELECT twins('ALTER INDEX {}_p_only ATTACH PARTITION {}_p3_v');
SELECT indisvalid FROM pg_index WHERE indexrelid = 'art_p_only'::regclass;
SELECT by_index(same($$SELECT v FROM {}_p WHERE v COLLATE "C" > 'v9' ORDER BY v COLLATE "C"$$));
REINDEX TABLE art_p;
REINDEX INDEX CONCURRENTLY art_p_only;
SELECT by_index(same($$SELECT v FROM {}_p WHERE v COLLATE "C" > 'v9' ORDER BY v COLLATE "C"$$));
SELECT by_index(same('SELECT k, v FROM {}_p WHERE k BETWEEN 20 AND 70 ORDER BY k, v COLLATE "C"'));
-- a row that moves to another partition
SELECT twins('UPDATE {}_p SET k = k + 30 WHERE k BETWEEN 35 AND 40');
SELECT by_index(same('SELECT k, v FROM {}_p WHERE k BETWEEN 20 AND 70 ORDER BY k, v COLLATE "C"'));
SELECT twins('DROP INDEX {}_p_only');

-- ---- ALTER TABLE and ALTER INDEX ----
CREATE TABLE bt_alt (k int, v varchar(20), n int);
CREATE TABLE art_alt (k int, v varchar(20), n int);
CREATE INDEX bt_alt_k ON bt_alt (k);
CREATE INDEX art_alt_k ON art_alt USING art (k);
CREATE UNIQUE INDEX bt_alt_v ON bt_alt (v COLLATE "C");
CREATE UNIQUE INDEX art_alt_v ON art_alt USING art (v COLLATE "C");
CREATE INDEX bt_alt_e ON bt_alt ((n + 1)) WHERE k > 10;
CREATE INDEX art_alt_e ON art_alt USING art ((n + 1)) WHERE k > 10;
SELECT twins($$INSERT INTO {}_alt SELECT i % 50, 'v' || i, i FROM generate_series(1, 300) i$$);
SELECT * FROM agree('alt');
-- without a rewrite the new index takes the old one's file over
SELECT pg_relation_filenode('art_alt_v') AS file, 'art_alt_v'::regclass::oid AS oid \gset
BEGIN;
ALTER TABLE bt_alt ALTER v TYPE varchar(40);
ALTER TABLE art_alt ALTER v TYPE varchar(40);
SELECT twins($$INSERT INTO {}_alt VALUES (1, 'v1')$$);
SELECT twins($$INSERT INTO {}_alt VALUES (1, 'u1')$$);
SELECT * FROM agree('alt');
COMMIT;
SELECT twins($$INSERT INTO {}_alt VALUES (1, 'v1')$$);
SELECT * FROM agree('alt');
BEGIN;
ALTER TABLE bt_alt ALTER v TYPE text;
ALTER TABLE art_alt ALTER v TYPE text;
INSERT INTO art_alt VALUES (1, 'never');
ROLLBACK;
SELECT twins($$INSERT INTO {}_alt VALUES (1, 'v1')$$);
SELECT * FROM agree('alt');
-- and its structure, which a rollback gives back
CREATE TABLE bt_keep (k varchar(20) COLLATE "C", n int, m numeric(8, 2));
CREATE TABLE art_keep (LIKE bt_keep);
SELECT twins($$INSERT INTO {}_keep SELECT 'v' || i, i, i / 100.0 FROM generate_series(1, 3000) i$$);
CREATE UNIQUE INDEX bt_keep_k ON bt_keep (k) INCLUDE (n, m);
CREATE INDEX bt_keep_m ON bt_keep (m) INCLUDE (k);
CREATE UNIQUE INDEX art_keep_k ON art_keep USING art (k) INCLUDE (n, m);
CREATE INDEX art_keep_m ON art_keep USING art (m) INCLUDE (k);
CREATE INDEX art_keep_cmp ON art_keep USING art (k COLLATE "C" DESC, m, n) WITH (structure = btree);
CREATE INDEX art_keep_expr ON art_keep USING art ((k || 'x'));
CREATE TABLE kept_old AS SELECT indexrelname, indexrelid, last_build FROM artidx_indexes WHERE relname = 'art_keep';
CREATE FUNCTION kept() RETURNS TABLE (index name, new bool, state text, built bool) LANGUAGE sql AS $$
	SELECT i.indexrelname, i.indexrelid <> o.indexrelid, i.state, i.last_build <> o.last_build
	FROM artidx_indexes i JOIN kept_old o USING (indexrelname) WHERE i.relname = 'art_keep' ORDER BY 1
$$;
BEGIN;
SELECT twins('ALTER TABLE {}_keep ALTER k TYPE varchar(40) COLLATE "C", ALTER n TYPE oid, ALTER m TYPE numeric(12, 2)');
SELECT * FROM kept();
SELECT by_index(same($$SELECT k, n, m FROM {}_keep WHERE k = 'v77'$$));
SELECT by_index(same('SELECT m, k FROM {}_keep WHERE m BETWEEN 5.01 AND 5.09 ORDER BY m'));
INSERT INTO art_keep VALUES ('w1', 1, 1), ('w2', 2, 2);
SAVEPOINT a;
INSERT INTO art_keep VALUES ('w1', 1, 1);
ROLLBACK TO a;
ALTER TABLE art_keep ALTER k TYPE text COLLATE "C";
INSERT INTO art_keep VALUES ('w3', 3, 3);
SELECT * FROM kept();
ROLLBACK TO a;
SELECT * FROM kept();
INSERT INTO art_keep VALUES ('w3', 3, 3);
ROLLBACK;
SELECT * FROM kept();
SELECT index, c.heap_tuples FROM kept(), artidx_check(index::regclass, true) c;
INSERT INTO art_keep VALUES ('w1', 1, 1);
-- it commits, and the indexes go on; one is altered and dropped, which is taken back
ALTER TABLE art_keep ALTER k TYPE text COLLATE "C", ALTER m TYPE numeric;
SELECT * FROM kept();
BEGIN;
ALTER TABLE art_keep ALTER k TYPE varchar COLLATE "C";
DROP INDEX art_keep_k;
ALTER TABLE art_keep ALTER n TYPE bigint;
ROLLBACK;
SELECT * FROM kept();
INSERT INTO art_keep VALUES ('w1', 1, 1);
SELECT index, c.heap_tuples FROM kept(), artidx_check(index::regclass, true) c;
DROP FUNCTION kept();
DROP TABLE bt_keep, art_keep, kept_old;
-- with one, and of a column that is in an expression
SELECT twins('ALTER TABLE {}_alt ALTER k TYPE bigint');
SELECT * FROM agree('alt');
SELECT twins('ALTER TABLE {}_alt ALTER n TYPE bigint USING n * 2');
SELECT by_index(same('SELECT n FROM {}_alt WHERE n + 1 BETWEEN 50 AND 90 AND k > 10 ORDER BY n + 1'));
SELECT twins('ALTER TABLE {}_alt ADD COLUMN d int DEFAULT 7');
SELECT twins($$UPDATE {}_alt SET d = 8, k = k + 1 WHERE k % 6 = 0$$);
SELECT * FROM agree('alt');
SELECT twins('ALTER TABLE {}_alt ADD COLUMN vol float8 DEFAULT random()');
SELECT * FROM agree('alt');
SELECT twins('ALTER TABLE {}_alt DROP COLUMN d');
SELECT * FROM agree('alt');
-- names and places
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE kinds_space LOCATION '';
SELECT twins('ALTER INDEX {}_alt_k RENAME TO {}_alt_k2');
SELECT twins('ALTER INDEX {}_alt_k2 SET TABLESPACE kinds_space');
SELECT artidx_build('art_alt_k2');
SELECT * FROM agree('alt');
BEGIN;
SELECT twins('ALTER INDEX {}_alt_v SET TABLESPACE kinds_space');
SELECT twins($$INSERT INTO {}_alt VALUES (2, 'v1')$$);
SELECT twins($$INSERT INTO {}_alt VALUES (2, 'moved')$$);
SELECT * FROM agree('alt');
COMMIT;
SELECT * FROM agree('alt');
SELECT twins('ALTER TABLE {}_alt SET TABLESPACE kinds_space');
SELECT * FROM agree('alt');
BEGIN;
ALTER INDEX art_alt_v SET TABLESPACE pg_default;
INSERT INTO art_alt VALUES (3, 'never');
SAVEPOINT s;
ALTER INDEX art_alt_v SET TABLESPACE kinds_space;
ALTER INDEX art_alt_k2 SET TABLESPACE pg_default;
ROLLBACK TO s;
REINDEX INDEX art_alt_v;
ROLLBACK;
SELECT * FROM agree('alt');
SELECT twins('ALTER TABLE {}_alt SET TABLESPACE pg_default');
SELECT twins('ALTER INDEX {}_alt_k2 SET TABLESPACE pg_default');
SELECT twins('ALTER INDEX {}_alt_v SET TABLESPACE pg_default');
SELECT artidx_build('art_alt_k2');
SELECT * FROM agree('alt');
-- the counters move with the index
CREATE TABLE art_counts (k int);
CREATE INDEX art_counts_k ON art_counts USING art (k);
SELECT artidx_reset_stats('art_counts_k');
SELECT stats_reset AS reset FROM artidx_contention WHERE indexrelname = 'art_counts_k' \gset
ALTER INDEX art_counts_k SET TABLESPACE kinds_space;
SELECT stats_reset = :'reset' AS kept FROM artidx_contention WHERE indexrelname = 'art_counts_k';
REINDEX INDEX art_counts_k;
SELECT stats_reset = :'reset' AS kept FROM artidx_contention WHERE indexrelname = 'art_counts_k';
BEGIN;
ALTER INDEX art_counts_k SET TABLESPACE pg_default;
REINDEX INDEX art_counts_k;
ALTER INDEX art_counts_k SET TABLESPACE kinds_space;
ALTER INDEX art_counts_k SET TABLESPACE pg_default;
COMMIT;
SELECT stats_reset = :'reset' AS kept FROM artidx_contention WHERE indexrelname = 'art_counts_k';
DROP TABLE art_counts;
DROP TABLESPACE kinds_space;
-- keys that are compared have one engine: options that mean nothing to them
-- leave their structure alone
CREATE TABLE art_cmp AS SELECT ARRAY[i] AS k FROM generate_series(1, 100) i;
CREATE INDEX art_cmp_k ON art_cmp USING art (k) WITH (sync = olc);
SELECT builds AS builds FROM artidx_indexes WHERE indexrelname = 'art_cmp_k' \gset
ALTER INDEX art_cmp_k SET (sync = optiql);
SELECT state, builds - :builds AS rebuilt FROM artidx_indexes WHERE indexrelname = 'art_cmp_k';

-- ---- LIKE, EXCLUDE, replica identity, inheritance, row security, views ----
CREATE TABLE art_like (LIKE art_alt INCLUDING INDEXES);
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'art_like'::regclass ORDER BY 1;
CREATE TABLE bt_ex (k int, v text, EXCLUDE USING btree (k WITH =) WHERE (k > 0) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE art_ex (k int, v text, EXCLUDE USING art (k WITH =) WHERE (k > 0) DEFERRABLE INITIALLY DEFERRED);
SELECT twins('SET CONSTRAINTS ALL DEFERRED; INSERT INTO {}_ex SELECT i, i::text FROM generate_series(-3, 20) i; SET CONSTRAINTS ALL IMMEDIATE');
SELECT twins('SET CONSTRAINTS ALL DEFERRED; INSERT INTO {}_ex VALUES (5); UPDATE {}_ex SET k = 50 WHERE v = $x$5$x$; SET CONSTRAINTS ALL IMMEDIATE');
SELECT twins('SET CONSTRAINTS ALL DEFERRED; INSERT INTO {}_ex VALUES (6); SET CONSTRAINTS ALL IMMEDIATE');
SELECT by_index(same('SELECT k FROM {}_ex WHERE k > 0 ORDER BY k'));
ALTER TABLE bt_alt ALTER v SET NOT NULL;
ALTER TABLE art_alt ALTER v SET NOT NULL;
SELECT twins('ALTER TABLE {}_alt REPLICA IDENTITY USING INDEX {}_alt_v');
SELECT relreplident FROM pg_class WHERE oid = 'art_alt'::regclass;
SELECT twins($$UPDATE {}_alt SET v = 'id' || v WHERE k = 7$$);
SELECT * FROM agree('alt');
CREATE TABLE bt_child () INHERITS (bt_alt);
CREATE TABLE art_child () INHERITS (art_alt);
CREATE INDEX bt_child_k ON bt_child (k);
CREATE INDEX art_child_k ON art_child USING art (k);
SELECT twins($$INSERT INTO {}_child (k, v, n) SELECT i, 'c' || i, i FROM generate_series(1, 30) i$$);
SELECT by_index(same('SELECT k, v FROM {}_alt WHERE k BETWEEN 5 AND 9 ORDER BY k, v'));
SELECT twins('ALTER TABLE {}_alt ALTER k TYPE int');
SELECT by_index(same('SELECT k, v FROM {}_alt WHERE k BETWEEN 5 AND 9 ORDER BY k, v'));
CREATE ROLE regress_artidx_rls;
GRANT USAGE ON SCHEMA kinds TO regress_artidx_rls;
GRANT SELECT ON bt_alt, art_alt TO regress_artidx_rls;
ALTER TABLE bt_alt ENABLE ROW LEVEL SECURITY;
ALTER TABLE art_alt ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON bt_alt USING (n % 3 = 0);
CREATE POLICY p ON art_alt USING (n % 3 = 0);
SET ROLE regress_artidx_rls;
SELECT count(*), sum(n) FROM bt_alt WHERE k BETWEEN 5 AND 30;
SELECT count(*), sum(n) FROM art_alt WHERE k BETWEEN 5 AND 30;
RESET ROLE;
CREATE MATERIALIZED VIEW bt_mv AS SELECT k, v FROM bt_new;
CREATE MATERIALIZED VIEW art_mv AS SELECT k, v FROM art_new;
CREATE UNIQUE INDEX bt_mv_k ON bt_mv (k);
CREATE UNIQUE INDEX art_mv_k ON art_mv USING art (k);
SELECT * FROM agree('mv');
SELECT twins($$INSERT INTO {}_new SELECT i, 'fifth' || i FROM generate_series(31, 60) i$$);
REFRESH MATERIALIZED VIEW bt_mv;
REFRESH MATERIALIZED VIEW art_mv;
SELECT * FROM agree('mv');
-- up to 17 core wants a btree for this
SELECT refused('REFRESH MATERIALIZED VIEW CONCURRENTLY {}_mv') ~ '^NOT REFUSED' = (current_setting('server_version_num')::int >= 180000) AS as_expected;
CREATE UNIQUE INDEX bt_mv_v ON art_mv (v);
SELECT twins('DELETE FROM {}_new WHERE k % 2 = 0');
REFRESH MATERIALIZED VIEW CONCURRENTLY bt_mv;
REFRESH MATERIALIZED VIEW CONCURRENTLY art_mv;
SELECT * FROM agree('mv');

DROP OWNED BY regress_artidx_rls;
DROP ROLE regress_artidx_rls;
\set VERBOSITY terse
SET client_min_messages = warning;
DROP SCHEMA kinds CASCADE;
