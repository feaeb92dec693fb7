--
-- Aggregates from an index alone: when the planner takes one, and that the answers are those
-- of a sequential scan.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set aggregates :abs_srcdir '/test/aggregates.sql'
\i :aggregates
\set ECHO all
\pset tuples_only on
\pset format unaligned
SET search_path = aggs, public;
SET max_parallel_workers_per_gather = 0;

-- random ones, from the index and by a sequential scan
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT queries, taken > queries / 3, answers > 20 * queries, different FROM aggs.run(300, 0.5);
COMMIT;

-- Is it taken?  And is the answer that of a sequential scan?
CREATE FUNCTION aggs.how(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	x text[];
	y text[];
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
		plan := plan || line || E'\n';
	END LOOP;
	EXECUTE 'SELECT array_agg(r::text ORDER BY r::text) FROM (' || q || ') r' INTO x;
	SET LOCAL enable_indexonlyscan = off;
	EXECUTE 'SELECT array_agg(r::text ORDER BY r::text) FROM (' || q || ') r' INTO y;
	SET LOCAL enable_indexonlyscan = on;
	RETURN CASE WHEN plan ~ 'Index Aggregate' THEN 'taken, ' ELSE 'not taken, ' END || coalesce(cardinality(x), 0) ||
		CASE WHEN x IS NOT DISTINCT FROM y THEN ' rows, the same' ELSE ' rows, DIFFERENT: ' || coalesce(x::text, 'none') || ', ' || coalesce(y::text, 'none') END;
END $$;
CREATE TABLE m (id int, a int, b int, c bigint, d bool, e text COLLATE "C", s int2, n numeric, pad text);
INSERT INTO m SELECT i, i % 7, CASE WHEN i % 11 > 0 THEN i END, i * 1000000007::bigint, i % 3 = 0, 't' || i % 50, i % 9, i % 13 / 2.0,
	'pad' FROM generate_series(1, 20000) i;
CREATE INDEX m_abc ON m USING art (a, b DESC, c);
CREATE INDEX m_de ON m USING art (d, e);
CREATE INDEX m_ns ON m USING art (n, s);
CREATE INDEX m_part ON m USING art (a) WHERE b > 1000;
CREATE INDEX m_lower ON m USING art (lower(e), s);
VACUUM ANALYZE m;

-- taken
SELECT how('SELECT count(*) FROM m');
SELECT how('SELECT count(*), sum(a), avg(a), min(a), max(a), count(b), sum(b), avg(b), sum(c), avg(c) FROM m WHERE a BETWEEN 2 AND 5');
SELECT how('SELECT count(1), sum(c) / 2, max(c) FROM m WHERE a > 2');
SELECT how('SELECT a, count(*), sum(c), min(b), max(b) FROM m GROUP BY a');
SELECT how('SELECT a, b, count(*) FROM m WHERE a = 3 GROUP BY a, b');
SELECT how('SELECT b, count(*), sum(c) FROM m WHERE a = 3 GROUP BY b');
SELECT how('SELECT b, a, count(*) FROM m WHERE a IN (3, 5, 6) AND c > 30000 GROUP BY a, b HAVING count(*) = 1');
SELECT how('SELECT d, count(*), min(e), max(e), bool_or(d) FROM m GROUP BY d');
SELECT how('SELECT n, s, count(*) FROM m GROUP BY s, n');
SELECT how('SELECT count(*), sum(a) FROM m WHERE b > 1000');
-- the least and the greatest number have the digits of one that is there, which the key has not
SELECT how('SELECT count(*), min(n), max(n) FROM m WHERE n > 1');
SELECT how('SELECT a + 1, count(*) + sum(b) FROM m GROUP BY a HAVING a > (SELECT 3)');
SELECT how('SELECT (SELECT count(*) FROM m WHERE m.a = x.x), x FROM generate_series(-1, 8) x(x)');
SELECT how('SELECT x.x, l.* FROM generate_series(-1, 8) x(x), LATERAL (SELECT a, count(*), sum(b) FROM m WHERE m.a > x.x GROUP BY a) l');
SELECT how('SELECT count(*) FROM m WHERE a >= 2 AND b IS NULL');
SELECT how('SELECT count(*) FROM m WHERE NOT d');
SELECT how('SELECT count(*), sum(c) FROM m WHERE (a, b) > (3, 500)');
SELECT how('SELECT a, count(*) FROM m GROUP BY a ORDER BY count(*) DESC, a LIMIT 3');
SELECT how('SELECT a, count(*), sum(count(*)) OVER (ORDER BY a) FROM m GROUP BY a');
SELECT how('SELECT count(*) FROM m WHERE a > 2 HAVING count(*) > 500000');
SELECT how('SELECT max(c) FROM m WHERE a BETWEEN 1 AND 5');
-- no row, and no group
SELECT how('SELECT count(*), sum(b), avg(c), max(b) FROM m WHERE a > (SELECT 100)');
SELECT count(*), sum(b), avg(c), max(b) FROM m WHERE a > (SELECT 100);
SELECT how('SELECT a, count(*), sum(b) FROM m WHERE a > (SELECT 100) GROUP BY a');

-- not taken: rows are few
SELECT how('SELECT count(*), sum(b) FROM m WHERE a = 3 AND b = 10');
-- something that the index does not have, or does not decide
SELECT how('SELECT count(*) FROM m WHERE a > 2 AND pad = ''pad''');
SELECT how('SELECT a, count(pad) FROM m GROUP BY a');
SELECT how('SELECT count(*) FROM m WHERE a > 2 AND random() < 2');
SELECT how('SELECT count(*) FROM m WHERE a % 2 = 0');
SELECT how('SELECT count(m), count(ctid) FROM m');
SELECT how('SELECT count(*) FROM m WHERE e LIKE ''t1%'' AND d');
-- other groups than those of the index's first columns
SELECT how('SELECT b, count(*) FROM m GROUP BY b ORDER BY b LIMIT 3');
SELECT how('SELECT a + 1, count(*) FROM m GROUP BY a + 1');
SELECT how('SELECT lower(e), count(*) FROM m GROUP BY lower(e)');
SELECT how('SELECT a, count(*) FROM m GROUP BY ROLLUP (a)');
-- other aggregates; groups of which only the ends are wanted
SELECT how('SELECT count(DISTINCT a) FROM m');
SELECT how('SELECT count(*) FILTER (WHERE a > 2) FROM m');
SELECT how('SELECT sum(n), stddev(s) FROM m');
SELECT how('SELECT min(n) FROM m WHERE n > 1 AND s < 8');
SELECT how('SELECT array_agg(a ORDER BY a) FROM m WHERE a > 5');
SELECT how('SELECT a, max(b) FROM m GROUP BY a');
SELECT how('SELECT max(a) FROM m');
SELECT how('SELECT min(e COLLATE "en-x-icu") FROM m WHERE d');
-- two tables; a subquery that chooses
SELECT how('SELECT count(*) FROM m JOIN m m2 USING (id)');
SELECT how('SELECT count(*) FROM (SELECT a FROM m WHERE a > 2 LIMIT 500) x');
-- sampled, or with btree's prices
SELECT how('SELECT count(*) BETWEEN 1 AND 20000 FROM m TABLESAMPLE SYSTEM (50) REPEATABLE (1)');
SET artidx.plan_costs = btree;
SELECT how('SELECT count(*) FROM m');
RESET artidx.plan_costs;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM m WHERE a > 3;
RESET enable_indexonlyscan;

-- what EXPLAIN shows, but for what 18 adds and for names of subplans
CREATE FUNCTION shown(q text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	part text;
BEGIN
	FOR part IN EXECUTE format('EXPLAIN (%s) %s', options, q) LOOP
		IF part !~ 'InitPlan|^ *(Filter|One-Time)' OR options <> 'COSTS OFF' THEN
			RETURN NEXT regexp_replace(part, '[^\n]*Disabled[^\n]*\n', '', 'g');
		END IF;
	END LOOP;
END $$;
SELECT shown('SELECT count(*) FROM m');
SELECT shown('SELECT a, count(*) + 1, sum(c) FROM m x WHERE a IN (1, 2) AND b IS NOT NULL GROUP BY a HAVING avg(b) > 3 ORDER BY a DESC', 'COSTS OFF, VERBOSE');
SELECT shown('SELECT a, count(*) FROM m WHERE (a, b) >= (3, 5) GROUP BY a', 'COSTS OFF, FORMAT json');
SELECT shown('SELECT count(*) FROM m WHERE d', 'COSTS OFF, FORMAT xml');
SELECT shown('SELECT count(*) FROM m WHERE b > 1000', 'COSTS OFF, FORMAT yaml');
SELECT shown('SELECT * FROM m WHERE c > (SELECT avg(c) FROM m WHERE a = 3) AND id < 5');

-- the results' types and forms are those of the aggregates
SELECT count(*), sum(a), sum(b), sum(c), sum(s), avg(a), avg(b), avg(c), min(c), max(b), pg_typeof(sum(a)), pg_typeof(sum(c)), pg_typeof(avg(s))
	FROM (SELECT a, b, c, a::int2 s FROM m WHERE a BETWEEN 1 AND 3 OFFSET 0) x;
SELECT count(*), sum(a), sum(b), sum(c), avg(a), avg(b), avg(c), min(c), max(b), pg_typeof(sum(a)), pg_typeof(sum(c)), pg_typeof(avg(c))
	FROM m WHERE a BETWEEN 1 AND 3;
-- sums beyond int8
CREATE TABLE huge (k int, v bigint);
INSERT INTO huge SELECT i % 3, CASE i % 3 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775807 - 1 ELSE i END FROM generate_series(1, 6000) i;
CREATE INDEX huge_kv ON huge USING art (k, v);
VACUUM ANALYZE huge;
SELECT how('SELECT k, count(*), sum(v), avg(v), min(v), max(v) FROM huge GROUP BY k');
SELECT k, count(*), sum(v), avg(v) FROM huge GROUP BY k ORDER BY k;

-- bytes of keys that a function compares say nothing
CREATE TABLE arrays AS SELECT ARRAY[i % 300, i % 7] AS x FROM generate_series(1, 3000) i;
CREATE INDEX arrays_x ON arrays USING art (x);
VACUUM ANALYZE arrays;
SELECT how('SELECT count(*), min(x), max(x) FROM arrays');
SELECT how('SELECT x, count(*) FROM arrays GROUP BY x');

-- a constant of another type that several values equal: their groups are not neighbours
SET timezone = 'Europe/Berlin';
CREATE TABLE clock AS SELECT timestamp '2026-03-29 02:30' + i % 2 * interval '1 hour' AS at, i / 2 AS v FROM generate_series(1, 1000) i;
CREATE INDEX clock_at ON clock USING art (at, v);
VACUUM ANALYZE clock;
-- (PostgreSQL's own plan takes them for neighbours, by a btree index too)
EXPLAIN (COSTS OFF) SELECT v, count(*) FROM clock WHERE at = timestamptz '2026-03-29 03:30' GROUP BY v HAVING count(*) > 1;
SELECT how('SELECT v, count(*) FROM clock WHERE at = timestamp ''2026-03-29 03:30'' GROUP BY v');
SELECT how('SELECT generate_series(1, count(*) / 100) FROM clock');
RESET timezone;

-- groups that end with a batch of the scan
CREATE TABLE edges AS SELECT g AS k, i AS v FROM (VALUES (1, 16), (2, 64), (3, 256), (4, 200), (5, 56), (6, 256), (7, 1)) x(g, n), generate_series(1, n) i;
CREATE INDEX edges_kv ON edges USING art (k, v);
VACUUM ANALYZE edges;
SELECT how('SELECT k, count(*), sum(v) FROM edges GROUP BY k');
SELECT k, count(*), sum(v), max(v) FROM edges GROUP BY k ORDER BY k;

-- of a whole table, the smaller index
CREATE INDEX huge_v ON huge USING art (v) INCLUDE (k);
CREATE INDEX huge_k ON huge USING art (k);
EXPLAIN (COSTS OFF) SELECT count(*) FROM huge;

-- rows that not everybody sees: own changes, a savepoint that is undone, entries that wait
BEGIN;
DELETE FROM m WHERE id % 5 = 0;
UPDATE m SET b = -b WHERE id % 7 = 1;
SAVEPOINT s;
UPDATE m SET a = 6 WHERE id % 3 = 0;
SELECT how('SELECT a, count(*), count(b), sum(b), max(b) FROM m GROUP BY a');
ROLLBACK TO s;
INSERT INTO m SELECT 100000 + i, i % 9, i, i, true, 'new', 1, 1, '' FROM generate_series(1, 100) i;
SELECT how('SELECT a, count(*), count(b), sum(b), max(b) FROM m GROUP BY a');
SELECT how('SELECT count(*), sum(c) FROM m WHERE a > 1');
ROLLBACK;
CREATE FUNCTION rows_so_far() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM m WHERE a >= 0); END $$;
BEGIN;
WITH i AS (INSERT INTO m SELECT 200000 + i, 1, rows_so_far() FROM generate_series(1, 3) i RETURNING b) SELECT * FROM i;
SELECT how('SELECT a, count(*) FROM m GROUP BY a');
ROLLBACK;
VACUUM m;
CREATE FUNCTION fetches(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || q LOOP
		IF line ~ 'Custom Scan|Heap Fetches|Removed' THEN
			RETURN NEXT regexp_replace(line, 'rows=([0-9]+)(\.0+)?', 'rows=\1');
		END IF;
	END LOOP;
END $$;
SELECT fetches('SELECT a, count(*) FROM m WHERE a >= 3 GROUP BY a HAVING count(*) < 2858');
DELETE FROM m WHERE id <= 10;
SELECT fetches('SELECT count(*) FROM m WHERE a >= 0');
-- it is counted as scans of the index are
BEGIN;
SELECT pg_stat_get_xact_numscans('m_abc'::regclass) AS n, pg_stat_get_xact_tuples_returned('m_abc'::regclass) AS t \gset
SELECT count(*), min(b) FROM m WHERE a >= 3;
SELECT pg_stat_get_xact_numscans('m_abc'::regclass) - :n, pg_stat_get_xact_tuples_returned('m_abc'::regclass) - :t;
COMMIT;

-- kept plans: parameters, an index that is dropped, or out of memory
PREPARE p(int) AS SELECT a, count(*), sum(b) FROM m WHERE a >= $1 GROUP BY a ORDER BY a;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE p(4);
EXECUTE p(4);
EXECUTE p(NULL);
SELECT artidx_unload('m_abc');
EXECUTE p(4);
SELECT artidx_build('m_abc');
EXECUTE p(5);
DROP INDEX m_abc;
EXECUTE p(5);
EXPLAIN (COSTS OFF) EXECUTE p(5);
RESET plan_cache_mode;

-- parallel: partial aggregates, finished above Gather
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE par (k int, a int, b bigint) WITH (parallel_workers = 2);
INSERT INTO par SELECT i % 30, CASE WHEN i % 30 > 3 THEN i END, i FROM generate_series(1, 30000) i;
CREATE INDEX par_kab ON par USING art (k, a, b);
ANALYZE par;
EXPLAIN (COSTS OFF) SELECT count(*), sum(k), avg(a), max(b) FROM par WHERE k > 2;
SELECT how('SELECT count(*), sum(k), avg(a), max(b), count(a) FROM par WHERE k > 2');
EXPLAIN (COSTS OFF) SELECT k, count(*), avg(a) FROM par WHERE k < 25 GROUP BY k HAVING min(b) > 3;
SELECT how('SELECT k, count(*), sum(a), avg(a), min(b), max(b) FROM par WHERE k < 25 GROUP BY k HAVING min(b) > 3');
SELECT how('SELECT x, (SELECT count(*) FROM par WHERE k > x) FROM generate_series(1, 3) x');
-- the sums of bigint pass through Gather as core's states do
EXPLAIN (COSTS OFF) SELECT sum(b), avg(b) FROM par WHERE k > 2;
SELECT how('SELECT sum(b), avg(b) FROM par WHERE k > 2');
SELECT how('SELECT k, sum(b), avg(b), count(*) FROM par WHERE k < 25 GROUP BY k');
ALTER TABLE huge SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT k, sum(v), avg(v) FROM huge GROUP BY k;
SELECT how('SELECT k, sum(v), avg(v), count(*) FROM huge GROUP BY k');
SELECT how('SELECT sum(v), avg(v) FROM huge WHERE k < 2');
SELECT how('SELECT sum(v), avg(v) FROM huge WHERE v < 0');
ALTER TABLE huge RESET (parallel_workers);
-- random ones
SELECT queries, taken > queries / 3, different FROM aggs.run(150, 0.25);
RESET max_parallel_workers_per_gather;
RESET enable_seqscan;
RESET enable_bitmapscan;
SET max_parallel_workers_per_gather = 0;

-- policies of rows, security barriers, rows that are locked
CREATE ROLE aggs_reader;
GRANT USAGE ON SCHEMA aggs TO aggs_reader;
GRANT SELECT ON m, huge TO aggs_reader;
ALTER TABLE huge ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON huge USING (k < 2);
SET ROLE aggs_reader;
EXPLAIN (COSTS OFF) SELECT count(*) FROM huge WHERE k >= 0;
SELECT count(*) FROM huge WHERE k >= 0;
RESET ROLE;
ALTER TABLE huge DISABLE ROW LEVEL SECURITY;
CREATE VIEW barred WITH (security_barrier) AS SELECT * FROM huge WHERE k < 2;
EXPLAIN (COSTS OFF) SELECT count(*) FROM barred WHERE v > 0;
CREATE VIEW plain AS SELECT * FROM huge WHERE k < 2;
EXPLAIN (COSTS OFF) SELECT count(*) FROM plain WHERE k > 0;
SELECT count(*) FROM huge WHERE k > 0 FOR UPDATE;
SELECT shown('SELECT * FROM m WHERE id = (SELECT count(*) FROM huge WHERE k = 1) FOR UPDATE');

-- rights to columns are asked for as ever
REVOKE SELECT ON huge FROM aggs_reader;
GRANT SELECT (k) ON huge TO aggs_reader;
SET ROLE aggs_reader;
SELECT count(*) FROM huge WHERE k > 0;
SELECT sum(v) FROM huge WHERE k > 0;
RESET ROLE;

-- a cursor, and rows that change while it is open
BEGIN;
DECLARE cur SCROLL CURSOR FOR SELECT k, count(*) FROM huge GROUP BY k ORDER BY k;
FETCH 2 FROM cur;
DELETE FROM huge;
FETCH 2 FROM cur;
FETCH BACKWARD 2 FROM cur;
ROLLBACK;

-- partitions, where core aggregates each
CREATE TABLE part (k int, v bigint) PARTITION BY RANGE (k);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (5);
CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (5) TO (10);
INSERT INTO part SELECT i % 10, i FROM generate_series(1, 10000) i;
CREATE INDEX part_kv ON part USING art (k, v);
VACUUM ANALYZE part;
EXPLAIN (COSTS OFF) SELECT k, count(*), sum(v) FROM part GROUP BY k;
SET enable_partitionwise_aggregate = on;
EXPLAIN (COSTS OFF) SELECT k, count(*), sum(v) FROM part GROUP BY k ORDER BY k;
SELECT how('SELECT k, count(*), sum(v) FROM part GROUP BY k');
SELECT how('SELECT k, count(*), sum(v) FROM part WHERE v > 500 GROUP BY k HAVING min(v) > 507');
RESET enable_partitionwise_aggregate;

SET client_min_messages = warning;
DROP SCHEMA aggs CASCADE;
DROP ROLE aggs_reader;
