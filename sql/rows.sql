--
-- Comparisons of rows: (a, b) > (x, y) as a condition of an art index
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set rows :abs_srcdir '/test/rows.sql'
\i :rows
\set ECHO all
\pset tuples_only on
\pset format unaligned
SET search_path = rows, public;
SET max_parallel_workers_per_gather = 0;

-- random ones, by an index and without; nearly all are conditions of the index
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT queries, by_rows > 0.95 * queries, answers > 50 * queries, different FROM rows.run(500, 0.5);
COMMIT;

-- the plans; of an index-only scan, too, which has other conditions before 18
CREATE FUNCTION plan(q text, opts text DEFAULT '') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF' || opts || ') ' || q LOOP
		IF line ~ 'Cond:|Filter:|Scan|Gather|Loop|Bitmap' THEN
			RETURN NEXT regexp_replace(line, ' \(actual.*', '');
		END IF;
	END LOOP;
END $$;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
SELECT plan('SELECT a, b FROM t1 WHERE (a, b) > (5, 10) ORDER BY a, b LIMIT 3');
SELECT a, b FROM t1 WHERE (a, b) > (5, 10) ORDER BY a, b LIMIT 3;
SELECT plan('SELECT a, b, id FROM t1 WHERE (5, 10) > (a, b) ORDER BY a DESC, b DESC LIMIT 3');
SELECT plan('SELECT * FROM t1 WHERE a = 5 AND (b, c) >= (7, 2) AND (b, c) < (9, 1)');
SELECT plan('SELECT * FROM t14 WHERE (a, b) > (5, 10)');
SELECT plan('SELECT a FROM t4 WHERE (a, b, c, e) > (5, 10, 1, ''a'')');
SELECT plan('SELECT id FROM t6 WHERE (d, b) <= (''2024-03-31 12:00''::timestamp, 3)');
SELECT plan('SELECT x.id, y.a, y.b FROM t3 x, LATERAL (SELECT a, b FROM t1 WHERE (t1.a, t1.b) > (x.a, x.b) ORDER BY a, b LIMIT 1) y WHERE x.a = 3');
SELECT plan('SELECT a FROM t1 WHERE (a, b) > (8, 10)', ', ANALYZE, TIMING OFF, SUMMARY OFF');
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
SELECT plan('SELECT a, b FROM t1 WHERE (a, b) > (8, 10) OR (a, b) < (0, 3)');
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- in parallel: the workers get what EXPLAIN prints
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
SET enable_bitmapscan = off;
SELECT plan('SELECT a FROM t1 WHERE (a, b) > (2, 10)');
SELECT plan('SELECT a FROM t1 WHERE (a, b) > (2, 10)', ', ANALYZE, TIMING OFF, SUMMARY OFF');
SELECT plan('SELECT stddev(a) FROM t1 WHERE (a, b) > (2, 10) AND (a, b) < (6, 1)', ', ANALYZE, TIMING OFF, SUMMARY OFF');
SELECT count(*) FROM t1 WHERE (a, b) > (2, 10) AND (a, b) < (6, 1);
SELECT count(id) FROM t1 WHERE (a, b) > (2, 10) AND (a, b) < (6, 1);
SET max_parallel_workers_per_gather = 0;
SELECT count(id) FROM made WHERE (a, b) > (2, 10) AND (a, b) < (6, 1);

-- the first member is equal to something, the next has a list
SET enable_bitmapscan = off;
SELECT plan('SELECT count(*), sum(b) FROM t1 WHERE a = 5 AND b = ANY (''{3,11,14,17}'') AND (a, b) > (5, 12)');
SELECT count(*), sum(b) FROM t1 WHERE a = 5 AND b = ANY ('{3,11,14,17}') AND (a, b) > (5, 12);
SELECT count(*), sum(b) FROM made WHERE a = 5 AND b = ANY ('{3,11,14,17}') AND (a, b) > (5, 12);
SELECT count(*), sum(b) FROM t1 WHERE a = 5 AND b = ANY ('{3,11,14,17}') AND (a, b, c) > (5, 14, 2);
SELECT count(*), sum(b) FROM made WHERE a = 5 AND b = ANY ('{3,11,14,17}') AND (a, b, c) > (5, 14, 2);

-- a plan that is kept, with NULLs among its parameters
SET plan_cache_mode = force_generic_plan;
PREPARE p(int, bigint, int) AS SELECT count(*), count(b), min(b) FROM t1 WHERE a = $3 AND (a, b) > ($1, $2);
PREPARE r(int, bigint) AS SELECT count(*) FROM t1 WHERE (a, b) <= ($1, $2);
EXPLAIN (COSTS OFF) EXECUTE r(1, 2);
EXECUTE p(5, 10, 5);
EXECUTE p(5, NULL, 5);
EXECUTE p(4, NULL, 5);
EXECUTE p(NULL, 10, 5);
EXECUTE p(6, 10, 5);
EXECUTE r(0, 3);
EXECUTE r(1, NULL);
EXECUTE r(NULL, 3);
EXECUTE r(0, 3);
RESET plan_cache_mode;

-- a cursor that turns
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b, c FROM t4 WHERE (a, b) >= (5, 10) AND a < 7 ORDER BY a, b DESC, c NULLS FIRST;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
MOVE LAST FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;

-- a scan that loses its structure goes on in the table, as does one that never had it
SELECT private('SELECT a, b, c FROM t1 WHERE (a, b) > (3, 5) ORDER BY a, b, c', 't1_i', 20);
SELECT artidx_build('t1_i');
SELECT private('SELECT a, b, c FROM t1 WHERE (a, b) <= (3, 5) ORDER BY a DESC, b DESC, c DESC', 't1_i', 1);
SELECT private('SELECT a, b, c FROM t4 WHERE (a, b) < (7, 5) ORDER BY a, b DESC, c NULLS FIRST', 't4_i', 700);
SELECT private('SELECT u, v, a FROM t10 WHERE (u, v, a) > (''yy'', ''{a}'', 3) ORDER BY u, v, a', 't10_i', 7);
SELECT artidx_build('t1_i'), artidx_build('t4_i'), artidx_build('t10_i');

-- long values: longer than any entry, and ends that are longer than one
CREATE TABLE long (a text COLLATE "C", b text COLLATE "C", c int);
INSERT INTO long SELECT repeat(chr(97 + i % 3), 900), nullif(repeat(chr(97 + i % 4), 900), repeat('d', 900)), i FROM generate_series(1, 60) i;
CREATE INDEX long_i ON long USING art (a, b, c);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION long_rows(cond text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	x bigint[];
	y bigint[];
BEGIN
	PERFORM scans('index');
	EXECUTE 'SELECT array_agg(c ORDER BY c) FROM long WHERE ' || cond INTO x;
	PERFORM scans('seq');
	EXECUTE 'SELECT array_agg(c ORDER BY c) FROM long WHERE ' || cond INTO y;
	RETURN coalesce(cardinality(y), 0) || CASE WHEN x IS NOT DISTINCT FROM y THEN ' rows' ELSE ' DIFFERENT' END;
END $$;
SELECT long_rows(format('(a, b, c) %s (repeat(''b'', %s), repeat(''b'', %s), 30)', op, n, m))
	FROM unnest('{>,>=,<,<=}'::text[]) op, unnest('{900,899,5000}'::int[]) n, unnest('{900,901,1800,9000}'::int[]) m;

SET client_min_messages = error;
DROP SCHEMA rows CASCADE;
