--
-- Skips: conditions on later columns of an art index, earlier ones left open
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set rows :abs_srcdir '/test/rows.sql'
\i :rows
\set skips :abs_srcdir '/test/skips.sql'
\i :skips
\set ECHO all
\pset tuples_only on
\pset format unaligned
SET search_path = rows, public;
SET max_parallel_workers_per_gather = 0;

-- random ones, by an index and without: of every structure, type and direction, forward, backward, index-only, bitmap
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT queries, by_rows > 0.8 * queries, answers > 50 * queries, different FROM rows.run(500, 0.5, 'Index Cond');
COMMIT;

-- many entries of each value: x, y and z each have 20 values of some 2,500 entries; u, s and p alike
CREATE TABLE wide AS SELECT i AS id, i % 20 AS x, i::bigint AS y, md5((i % 20)::text)::uuid AS u, 'k' || i % 20 AS s,
	nullif(i % 20, 3)::numeric(4, 1) AS p, '2026-01-01'::date + i % 20 AS d, i / 20 % 20 AS z FROM generate_series(1, 50000) i;
INSERT INTO wide SELECT 50000 + i, NULL, i * 7, NULL, NULL, NULL, NULL, i % 20 FROM generate_series(1, 2500) i;
CREATE INDEX wide_xy ON wide USING art (x, y);
CREATE INDEX wide_sy ON wide USING art (s COLLATE "C" DESC, y) WITH (structure = btree);
CREATE INDEX wide_py ON wide USING art (p NULLS FIRST, y DESC) INCLUDE (id) WITH (structure = hydra);
CREATE INDEX wide_uxy ON wide USING art (u, x, y DESC);
CREATE INDEX wide_dzy ON wide USING art (d DESC NULLS LAST, z, y);
CREATE TABLE halves AS SELECT x, y FROM wide;
CREATE INDEX halves_xy ON halves USING art ((x / 2), y);
VACUUM ANALYZE wide, halves;

-- the rows, the searches that were counted, and the kind of plan; before 17 an ordered scan has no array as its condition
CREATE FUNCTION skip(q text, how text DEFAULT 'only') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a text[];
	b text[];
	plan text := '';
	line text;
	t0 bigint;
	n bigint;
BEGIN
	PERFORM rows.scans('seq');
	EXECUTE 'SELECT array_agg(x::text) FROM (' || q || ') x' INTO b;
	PERFORM rows.scans(how);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
		plan := plan || coalesce(' ' || replace(substring(line, '(?:Index|Bitmap)[A-Za-z ]*Scan(?: Backward)?'), ' Only', ''), '');
	END LOOP;
	SELECT coalesce(sum(pg_stat_get_xact_numscans(indexrelid)), 0) INTO t0 FROM pg_index WHERE indrelid = ANY ('{wide,halves}'::regclass[]);
	EXECUTE 'SELECT array_agg(x::text) FROM (' || q || ') x' INTO a;
	SELECT sum(pg_stat_get_xact_numscans(indexrelid)) - t0 INTO n FROM pg_index WHERE indrelid = ANY ('{wide,halves}'::regclass[]);
	RETURN format('%s rows %s, %s searches:%s', coalesce(cardinality(a), 0),
				  CASE WHEN a IS NOT DISTINCT FROM b THEN 'the same' ELSE 'DIFFERENT' END,
				  CASE WHEN q ~ 'ANY.*ORDER' THEN 'counted' WHEN n < 2 THEN 'no more' WHEN n <= 100 THEN 'some' ELSE 'many' END, plan);
END $$;
SELECT skip('SELECT x, y FROM wide WHERE y = 31111');
SELECT skip('SELECT x, y FROM wide WHERE y BETWEEN 31111 AND 31150 ORDER BY x, y');
SELECT skip('SELECT x, y FROM wide WHERE y BETWEEN 31111 AND 31150 ORDER BY x DESC, y DESC');
SELECT skip('SELECT x, y FROM wide WHERE x BETWEEN 5 AND 12 AND y < 40 ORDER BY x, y');
SELECT skip('SELECT x, y FROM wide WHERE x > 5 AND y >= 49990 ORDER BY x DESC, y DESC');
SELECT skip('SELECT id FROM wide WHERE y = ANY (''{7,31111,31131,NULL,900000}'') ORDER BY x, y', 'index');
SELECT skip('SELECT id FROM wide WHERE y = ANY (''{7,31111,31131,NULL,900000}'') ORDER BY id', 'bitmap');
SELECT skip('SELECT x FROM wide WHERE y = 700 ORDER BY x');
SELECT skip('SELECT x FROM wide WHERE x IS NULL AND y = 700');
SELECT skip('SELECT x FROM wide WHERE x IS NOT NULL AND y = 700 ORDER BY x');
SELECT skip('SELECT s COLLATE "C", y FROM wide WHERE y = ANY (''{40000,7000}'') ORDER BY s COLLATE "C" DESC, y', 'index');
SELECT skip('SELECT s COLLATE "C", y FROM wide WHERE s > ''k12'' COLLATE "C" AND y < 60 ORDER BY s COLLATE "C", y DESC', 'index');
SELECT skip('SELECT p, y, id FROM wide WHERE y = 14000 ORDER BY p NULLS FIRST');
SELECT skip('SELECT p, y, id FROM wide WHERE y >= 49980 ORDER BY p DESC NULLS LAST, y');
SELECT skip('SELECT u, x, y FROM wide WHERE x = 7 AND y = 31107');
SELECT skip('SELECT u, x, y FROM wide WHERE y = 31107');
SELECT skip('SELECT u, x, y FROM wide WHERE y = ANY (''{31107,5,NULL}'') AND x = ANY (''{7,5}'')');
SELECT skip('SELECT d, z, y FROM wide WHERE d > ''2026-01-10'' AND z = 4 AND y < 5000 ORDER BY d DESC NULLS LAST, z, y');
SELECT skip('SELECT d, z, y FROM wide WHERE d = ANY (''{2026-01-10,2026-01-03}'') AND z > 4 AND y = 6262 ORDER BY d, z DESC, y DESC');
SELECT skip('SELECT x / 2, y FROM halves WHERE y = 31111', 'index');
-- nothing of it matches
SELECT skip('SELECT x, y FROM wide WHERE y = -5');
SELECT skip('SELECT x, y FROM wide WHERE y > 900000 ORDER BY x DESC');

-- what the planner takes, without being told
RESET enable_seqscan; RESET enable_indexscan; RESET enable_indexonlyscan; RESET enable_bitmapscan; RESET enable_sort;
CREATE FUNCTION takes(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
		RETURN NEXT line;
	END LOOP;
END $$;
SELECT takes('SELECT * FROM wide WHERE x > 12 AND y = 31111');
-- each value of the first column has one entry: nothing to skip
CREATE TABLE narrow AS SELECT i AS x, i % 1000 AS y, repeat('x', 5) AS t FROM generate_series(1, 50000) i;
CREATE INDEX narrow_xy ON narrow USING art (x, y);
VACUUM ANALYZE narrow;
SELECT takes('SELECT * FROM narrow WHERE y = 311');
-- how many values there are is not known
CREATE TABLE unknown AS SELECT * FROM wide;
CREATE INDEX unknown_xy ON unknown USING art (x, y);
SELECT takes('SELECT * FROM unknown WHERE y = 31111');
ANALYZE unknown;
SELECT takes('SELECT * FROM unknown WHERE y = 31111');

-- a cursor that turns round
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT x, y FROM wide WHERE y BETWEEN 31111 AND 31133 ORDER BY x, y;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FORWARD 3 FROM c;
MOVE LAST FROM c;
FETCH BACKWARD 3 FROM c;
FETCH FIRST FROM c;
MOVE FORWARD ALL FROM c;
FETCH BACKWARD 1 FROM c;
FETCH BACKWARD 25 FROM c;
COMMIT;

-- mark and restore: a merge join whose inner side skips
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT takes('SELECT count(*), sum(o.y), sum(i.y) FROM wide o JOIN wide i ON i.x = o.x WHERE o.y BETWEEN 100 AND 160 AND i.y BETWEEN 40000 AND 40100');
SELECT count(*), sum(o.y), sum(i.y) FROM wide o JOIN wide i ON i.x = o.x WHERE o.y BETWEEN 100 AND 160 AND i.y BETWEEN 40000 AND 40100;
SET enable_mergejoin = off;
RESET enable_hashjoin;
SELECT count(*), sum(o.y), sum(i.y) FROM wide o JOIN wide i ON i.x = o.x WHERE o.y BETWEEN 100 AND 160 AND i.y BETWEEN 40000 AND 40100;
RESET enable_mergejoin;
RESET enable_nestloop;
RESET enable_material;

-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
ALTER TABLE wide SET (parallel_workers = 2);
SELECT takes('SELECT count(id), sum(y) FROM wide WHERE x BETWEEN 3 AND 15 AND y % 3 >= 0 AND y BETWEEN 20000 AND 30000');
SELECT count(id), sum(y) FROM wide WHERE x BETWEEN 3 AND 15 AND y % 3 >= 0 AND y BETWEEN 20000 AND 30000;
SET max_parallel_workers_per_gather = 0;
SELECT count(id), sum(y) FROM wide WHERE x BETWEEN 3 AND 15 AND y % 3 >= 0 AND y BETWEEN 20000 AND 30000;

-- a scan that loses its structure
SELECT rows.private('SELECT x, y FROM wide WHERE y BETWEEN 31111 AND 31170 ORDER BY x, y', 'wide_xy', 7);
SELECT artidx_build('wide_xy');
SELECT rows.private('SELECT x, y FROM wide WHERE y BETWEEN 31111 AND 31170 ORDER BY x DESC, y DESC', 'wide_xy', 0);
SELECT rows.private('SELECT p, y FROM wide WHERE y BETWEEN 31111 AND 31170 ORDER BY p NULLS FIRST, y DESC', 'wide_py', 31);

-- rows that change while a cursor is open, and VACUUM: index-only
SELECT artidx_build('wide_xy');
BEGIN;
DECLARE c CURSOR FOR SELECT x, y FROM wide WHERE y BETWEEN 31101 AND 31110 ORDER BY x, y;
FETCH 2 FROM c;
UPDATE wide SET y = y + 3 WHERE y BETWEEN 31090 AND 31115;
DELETE FROM wide WHERE x = 9;
FETCH ALL FROM c;
SELECT x, y FROM wide WHERE y BETWEEN 31101 AND 31110 ORDER BY x, y;
ROLLBACK;

SET client_min_messages = error;
DROP SCHEMA rows CASCADE;
