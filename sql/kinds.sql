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

-- the rows by each of the two ways, and whether the structure is sound
CREATE FUNCTION agree(tab text) RETURNS TABLE (what text, outcome text)
LANGUAGE plpgsql AS $$
BEGIN
	what := 'in order';
	outcome := same(format('SELECT k, v FROM {}_%s ORDER BY k, v', tab));
	RETURN NEXT;
	what := 'backwards';
	outcome := same(format('SELECT k FROM {}_%s ORDER BY k DESC', tab));
	RETURN NEXT;
	what := 'a range';
	outcome := same(format('SELECT v FROM {}_%s WHERE k BETWEEN 10 AND 40 ORDER BY k, v', tab));
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
SELECT same('SELECT k FROM {}_temp WHERE k = 30');
SELECT artidx_build('art_temp_kv');
SELECT same('SELECT k FROM {}_temp WHERE k = 30');
ALTER INDEX art_temp_kv SET (structure = btree);
SELECT same('SELECT k FROM {}_temp WHERE k = 30');
SELECT structure, state, last_build_source FROM artidx_indexes WHERE indexrelname = 'art_temp_kv';
SELECT * FROM agree('temp');
-- memory full: sealed, and back when it may be
ALTER INDEX art_temp_kv SET (max_memory = '64kB');
SELECT twins($$INSERT INTO {}_temp SELECT i % 300, repeat('x', 100) || i FROM generate_series(1, 3000) i$$);
SELECT state FROM artidx_indexes WHERE indexrelname = 'art_temp_kv';
SELECT same('SELECT k FROM {}_temp WHERE k = 30');
ALTER INDEX art_temp_kv RESET (max_memory);
SELECT same('SELECT k FROM {}_temp WHERE k = 30');
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
SELECT same($$SELECT v FROM {}_gone WHERE k * 2 BETWEEN 20 AND 30 AND v IS NOT NULL ORDER BY k * 2$$);
COMMIT;
SELECT * FROM agree('gone');
BEGIN;
SELECT twins($$INSERT INTO {}_gone SELECT i, 'w' || i FROM generate_series(40, 50) i$$);
SELECT * FROM agree('gone');
SELECT same($$SELECT v FROM {}_gone WHERE k * 2 BETWEEN 20 AND 90 AND v IS NOT NULL ORDER BY k * 2$$);
ROLLBACK;
SELECT * FROM agree('gone');
SELECT entries, state FROM artidx_indexes WHERE relname = 'art_gone' ORDER BY indexrelname;
-- no transaction number is taken for it, or every commit would wait for the disk
BEGIN;
SELECT count(*) FROM art_gone;
COMMIT;
BEGIN;
SELECT count(*) FROM art_gone;
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
COMMIT;
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
SELECT same('SELECT k FROM {}_drop WHERE k > 20 ORDER BY k');
COMMIT;
SELECT count(*) FROM artidx_indexes WHERE relname = 'art_drop';
SELECT indexrelname, schemaname ~ '^pg_temp_\d+$' AS temp FROM artidx_indexes
	WHERE schemaname LIKE 'pg\_temp%' ORDER BY 1;
DISCARD TEMP;
SELECT count(*) FROM artidx_indexes WHERE schemaname LIKE 'pg\_temp%';
-- and the memory is back: of the database's structures none is without a name
SELECT (SELECT count(*) FROM artidx_indexes WHERE state <> 'absent') AS known,
	(SELECT indexes FROM artidx_memory) AS there;

-- ---- unlogged tables; crash, standby and promotion are in t/028 ----
CREATE UNLOGGED TABLE bt_unl (k int, v text);
CREATE UNLOGGED TABLE art_unl (k int, v text);
CREATE INDEX bt_unl_kv ON bt_unl (k, v COLLATE "C");
CREATE INDEX art_unl_kv ON art_unl USING art (k, v COLLATE "C");
SELECT twins($$INSERT INTO {}_unl SELECT i % 50, 'v' || i FROM generate_series(1, 500) i$$);
SELECT * FROM agree('unl');
CREATE FUNCTION forks(rel regclass) RETURNS text LANGUAGE sql AS $$
	SELECT relpersistence || ', init fork of ' ||
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
