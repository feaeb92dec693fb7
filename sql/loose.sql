--
-- Loose scans: of each group of equal columns the first row, or the last, by a search each
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set rows :abs_srcdir '/test/rows.sql'
\i :rows
\set loose :abs_srcdir '/test/loose.sql'
\i :loose
\set ECHO all
\pset tuples_only on
\pset format unaligned
SET search_path = loose, public;
SET max_parallel_workers_per_gather = 0;

-- random ones, and without; most are loose scans
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT queries, by_loose > 0.7 * queries, answers > 50 * queries, different FROM loose.run(400, 0.5);
COMMIT;

-- ---- the plans ----

CREATE TABLE g (a int, b bigint, c int, t text COLLATE "C", n int NOT NULL);
INSERT INTO g SELECT nullif(i % 20, 19), nullif(i % 977, 976), i % 7, 't' || i % 13, i % 50 FROM generate_series(1, 20000) i;
CREATE INDEX g_ab ON g USING art (a, b);
CREATE INDEX g_tcb ON g USING art (t DESC, c NULLS FIRST, b);
CREATE INDEX g_n ON g USING art (n) INCLUDE (c);
CREATE INDEX g_expr ON g USING art ((b / 100), a);
CREATE INDEX g_part ON g USING art (c, t) WHERE n < 30;
CREATE STATISTICS g_pairs (ndistinct) ON a, b FROM g;
VACUUM ANALYZE g;

-- the nodes of a plan, from the top
CREATE FUNCTION plan(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	nodes text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
		CONTINUE WHEN line ~ '^ *(Sort Key|Presorted Key|Filter|Planned Partitions|Merge Key)';
		nodes := nodes || CASE WHEN line ~ 'Rows of' THEN regexp_replace(line, '.*:', ';')
			WHEN line ~ 'Group Key' THEN CASE WHEN nodes ~ 'Loose Scan\)$' THEN regexp_replace(line, '.*:', '') ELSE '' END
			WHEN line ~ 'Cond' THEN ' ' || regexp_replace(line, '^.*Cond: ', '')
			ELSE CASE WHEN nodes = '' THEN '' ELSE ' / ' END || regexp_replace(line, '^ *(-> *)?', '') END;
	END LOOP;
	RETURN nodes;
END $$;
-- DISTINCT, in either direction, of more columns, with conditions
SELECT plan('SELECT DISTINCT a FROM g');
SELECT plan('SELECT DISTINCT a FROM g ORDER BY a DESC');
SELECT plan('SELECT DISTINCT a FROM g WHERE a > 5');
SELECT plan('SELECT DISTINCT t, c FROM g ORDER BY t DESC, c NULLS FIRST');
SELECT plan('SELECT DISTINCT c FROM g WHERE t = ''t5''');
SELECT plan('SELECT DISTINCT a FROM g WHERE c = 3');
SELECT plan('SELECT DISTINCT b / 100 FROM g');
SELECT plan('SELECT DISTINCT ON (c) c, t FROM g WHERE n < 30 ORDER BY c, t DESC');
SELECT plan('SELECT DISTINCT a FROM g WHERE a IN (1, 5, 9)');
SELECT plan('SELECT count(*) FROM (SELECT DISTINCT a FROM g) s');
-- DISTINCT ON: the first of each, the last of each, with other columns
SELECT plan('SELECT DISTINCT ON (a) a, b FROM g ORDER BY a, b');
SELECT plan('SELECT DISTINCT ON (a) a, b FROM g ORDER BY a, b DESC');
SELECT plan('SELECT DISTINCT ON (a) a, b, c + 1 FROM g ORDER BY a DESC, b DESC');
SELECT plan('SELECT DISTINCT ON (a) * FROM g ORDER BY a DESC, b');
SELECT plan('SELECT DISTINCT ON (t) t, c, b FROM g ORDER BY t, c, b DESC');
SELECT plan('SELECT DISTINCT ON (t) t, c, b FROM g ORDER BY t DESC, c DESC NULLS LAST, b DESC');
-- groups, with and without min and max of the next column
SELECT plan('SELECT a FROM g GROUP BY a HAVING a > 3');
SELECT plan('SELECT a, min(b) FROM g GROUP BY a');
SELECT plan('SELECT a, max(b) FROM g GROUP BY a ORDER BY a');
SELECT plan('SELECT a, min(b), max(b), max(b) - min(b) FROM g GROUP BY a');
SELECT plan('SELECT t, max(c) FROM g GROUP BY t HAVING min(c) < 3');
SELECT plan('SELECT t, count(DISTINCT c) FROM g GROUP BY t');
SELECT plan('SELECT a, max(b) FROM g WHERE a IN (1, 2) GROUP BY a');
SELECT plan('SELECT a, min(a) FROM g GROUP BY a');
-- a match is looked for, once for each group: IN, EXISTS and NOT EXISTS, by any kind of join
CREATE TABLE o (x int, y bigint, z numeric, w text COLLATE "C");
INSERT INTO o SELECT i % 30, i, i / 4.0, 't' || i % 20 FROM generate_series(1, 3000) i;
CREATE INDEX o_x ON o USING art (x);
ANALYZE o;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT plan('SELECT * FROM o WHERE x IN (SELECT a FROM g)');
SELECT plan('SELECT * FROM o WHERE EXISTS (SELECT FROM g WHERE a = x AND b > 100)');
SELECT plan('SELECT * FROM o WHERE NOT EXISTS (SELECT FROM g WHERE a = x)');
SELECT plan('SELECT * FROM o WHERE (w, x) IN (SELECT t, c FROM g)');
SELECT plan('SELECT o.* FROM o LEFT JOIN g ON a = x WHERE a IS NULL');
SELECT plan('UPDATE o SET y = 0 WHERE x IN (SELECT a FROM g)');
RESET enable_mergejoin;
SET enable_hashjoin = off;
SELECT plan('SELECT * FROM o WHERE EXISTS (SELECT FROM g WHERE a = x) ORDER BY x');
SET enable_mergejoin = off;
RESET enable_nestloop;
SELECT plan('SELECT * FROM o WHERE EXISTS (SELECT FROM g WHERE a > x)');
RESET enable_mergejoin;
RESET enable_hashjoin;
SELECT count(*), sum(y) FROM o WHERE x IN (SELECT a FROM g);
SELECT count(*), sum(y) FROM o WHERE NOT EXISTS (SELECT FROM g WHERE a = x AND b > 970);
SELECT count(*), sum(y) FROM o WHERE EXISTS (SELECT FROM g WHERE a > x AND c = 3);
SELECT count(*), sum(y) FROM o WHERE (w, x) IN (SELECT t, c FROM g);
-- not taken: joins want more than an index has, or rows are joined, or are those of more tables
SELECT plan('SELECT * FROM o WHERE EXISTS (SELECT FROM g WHERE a = x AND c < y)');
SELECT plan('SELECT * FROM o JOIN g ON a = x');
SELECT plan('SELECT * FROM o WHERE x IN (SELECT a FROM g JOIN o o2 ON a = o2.x)');
SELECT plan('SELECT * FROM o WHERE EXISTS (SELECT FROM g WHERE a = x AND g.ctid > ''(1,1)'' AND g.ctid <> o.ctid)');
SELECT plan('SELECT * FROM o WHERE x IN (SELECT a FROM g TABLESAMPLE SYSTEM (50))');
-- values that are equal and differ: only where nothing but their order is asked
CREATE TABLE scales (n numeric);
INSERT INTO scales SELECT CASE i % 2 WHEN 0 THEN 1.0 ELSE 1.00 END FROM generate_series(1, 1000) i;
CREATE INDEX scales_n ON scales USING art (n);
VACUUM ANALYZE scales;
SELECT plan('SELECT * FROM o WHERE z IN (SELECT n FROM scales)');
SELECT plan('SELECT * FROM o WHERE EXISTS (SELECT FROM scales WHERE n::text = w)');
SELECT * FROM (VALUES ('1.0'), ('1.00'), ('1')) v (w) WHERE EXISTS (SELECT FROM scales WHERE n::text = w) ORDER BY w;
SELECT * FROM (VALUES ('1.0', 1), ('1.00', 2), ('1', 1)) v (w, x) WHERE EXISTS (SELECT FROM scales WHERE n::text = w AND n = x);
-- the first rows of each group
SELECT plan('SELECT s.a, l.* FROM (SELECT DISTINCT a FROM g) s, LATERAL (SELECT b, c FROM g WHERE g.a = s.a ORDER BY b LIMIT 2) l');
SELECT s.a, l.* FROM (SELECT DISTINCT a FROM g WHERE a < 3) s, LATERAL (SELECT b, c FROM g WHERE g.a = s.a ORDER BY b LIMIT 2) l ORDER BY 1, 2, 3;
-- partitions: each gives its groups
CREATE TABLE p (k int, v bigint, w int) PARTITION BY RANGE (v);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (5000);
CREATE TABLE p2 (w int, v bigint, k int);
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (5000) TO (20000);
INSERT INTO p SELECT nullif(i % 10, 7), i, i % 4 FROM generate_series(1, 10000) i;
CREATE INDEX p_kv ON p USING art (k, v DESC);
VACUUM ANALYZE p;
SELECT plan('SELECT DISTINCT k FROM p ORDER BY k');
SELECT plan('SELECT DISTINCT ON (k) k, v, w FROM p ORDER BY k, v');
SELECT plan('SELECT k, min(v), max(v) FROM p GROUP BY k ORDER BY k');
SELECT plan('SELECT count(DISTINCT k) FROM p WHERE v > 6000');
SELECT plan('SELECT x FROM o WHERE NOT EXISTS (SELECT FROM p WHERE k = x)');
SELECT plan('SELECT k, min(v), sum(v) FROM p GROUP BY k');
SET enable_partitionwise_aggregate = on;
SELECT plan('SELECT k, max(v) FROM p GROUP BY k ORDER BY k');
RESET enable_partitionwise_aggregate;
SELECT DISTINCT k FROM p ORDER BY k;
SELECT DISTINCT ON (k) k, v, w FROM p ORDER BY k, v;
SELECT k, min(v), max(v) FROM p GROUP BY k ORDER BY k DESC;
SELECT count(DISTINCT k) FROM p WHERE v > 6000;
SELECT plan('SELECT DISTINCT a FROM (SELECT a FROM g UNION ALL SELECT k FROM p) u ORDER BY a');
SELECT count(*) FROM (SELECT a FROM g UNION SELECT k FROM p) u;
-- an aggregate without groups
SELECT plan('SELECT count(DISTINCT a) FROM g');
SELECT count(DISTINCT a), count(DISTINCT b) FROM g;
-- in a worker each process has the groups
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE o SET (parallel_workers = 2);
SET enable_mergejoin = off;
SELECT plan('SELECT count(*) FROM o WHERE x IN (SELECT a FROM g)');
SELECT count(*), sum(y) FROM o WHERE x IN (SELECT a FROM g);
RESET enable_mergejoin;
SET max_parallel_workers_per_gather = 0;
-- not taken: all rows are needed, in whole or in part
SELECT plan('SELECT a, count(*) FROM g GROUP BY a');
SELECT plan('SELECT a, min(b), sum(b) FROM g GROUP BY a');
SELECT plan('SELECT a, min(c) FROM g GROUP BY a');
SELECT plan('SELECT a, min(b) FILTER (WHERE c > 3) FROM g GROUP BY a');
SELECT plan('SELECT a, max(b) FROM g WHERE b IN (1, 2, 3) GROUP BY a');
SELECT plan('SELECT a, max(b) FROM g GROUP BY ROLLUP (a)');
SELECT plan('SELECT DISTINCT ON (a) a, b, c FROM g ORDER BY a, b DESC, c');
-- not taken: groups are small; columns are not those that an index begins with
SELECT plan('SELECT DISTINCT a, b FROM g');
SELECT plan('SELECT DISTINCT c FROM g');
-- not taken: somebody sees how often a function is called, or asks for btree's plans
SELECT plan('SELECT DISTINCT ON (a) a, random() FROM g');
SELECT plan('SELECT DISTINCT a FROM g WHERE b > random()');
SET artidx.plan_costs = btree;
SELECT plan('SELECT DISTINCT a FROM g');
RESET artidx.plan_costs;
SET enable_indexonlyscan = off;
SET enable_indexscan = off;
SELECT plan('SELECT DISTINCT a FROM g');
RESET enable_indexonlyscan;
RESET enable_indexscan;

-- ---- the rows ----

-- the rows of a group in several ranges of its index, of which the first row says nothing of the last
CREATE TABLE many AS SELECT i % 3 AS a, i % 4 AS b, i AS c FROM generate_series(1, 20000) i;
CREATE INDEX many_ab ON many USING art (a, b);
VACUUM ANALYZE many;
SELECT a, max(b) FROM many WHERE a IN (0, 1, 2) AND b IN (0, 1, 3) GROUP BY a ORDER BY a;
-- a search that begins again where the last row of a group was still to come
SELECT plan('SELECT x, l.* FROM generate_series(0, 2) x, LATERAL (SELECT a, min(b), max(b) FROM many WHERE a >= x GROUP BY a LIMIT 1) l');
SELECT x, l.* FROM generate_series(0, 2) x, LATERAL (SELECT a, min(b), max(b) FROM many WHERE a >= x GROUP BY a LIMIT 1) l;

-- NULLs: a group of them, and among what min and max want
SELECT string_agg(coalesce(a::text, '-'), ' ') FROM (SELECT DISTINCT a FROM g ORDER BY a NULLS LAST) s;
SELECT string_agg(coalesce(a::text, '-'), ' ') FROM (SELECT DISTINCT a FROM g ORDER BY a DESC) s;
CREATE TABLE nulls (a int, b int, c int);
INSERT INTO nulls SELECT i % 5, CASE WHEN i % 5 IN (1, 4) OR i % 7 = 0 THEN NULL ELSE i END, i FROM generate_series(1, 2000) i;
CREATE INDEX nulls_last ON nulls USING art (a, b);
ANALYZE nulls;
SELECT DISTINCT ON (a) a, b FROM nulls ORDER BY a, b DESC NULLS LAST;
SELECT plan('SELECT a, min(b), max(b) FROM nulls GROUP BY a');
SELECT a, min(b), max(b) FROM nulls GROUP BY a ORDER BY a;
SELECT a, max(b) FROM nulls WHERE c < 1500 GROUP BY a ORDER BY a DESC;
DROP INDEX nulls_last;
CREATE INDEX nulls_first ON nulls USING art (a, b NULLS FIRST);
SELECT plan('SELECT a, min(b), max(b) FROM nulls GROUP BY a');
SELECT a, min(b), max(b) FROM nulls GROUP BY a ORDER BY a;
SELECT a, min(b) FROM nulls WHERE c > 500 GROUP BY a ORDER BY a DESC;

-- a group whose rows are dead, or not yet visible, or made in this transaction
BEGIN;
DELETE FROM g WHERE a IN (0, 7, 18);
INSERT INTO g SELECT 100 + i, 1, 1, '', 0 FROM generate_series(1, 3) i;
SELECT plan('SELECT DISTINCT a FROM g');
SELECT string_agg(a::text, ' ') FROM (SELECT DISTINCT a FROM g ORDER BY a) s;
SELECT a, max(b) FROM g WHERE a > 17 GROUP BY a ORDER BY a;
ROLLBACK;

-- a cursor, to and fro; a plan that is kept, with a parameter; a join that asks again and again
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT DISTINCT a FROM g ORDER BY a;
FETCH 3 FROM s;
FETCH BACKWARD 2 FROM s;
FETCH LAST FROM s;
FETCH ABSOLUTE 5 FROM s;
DECLARE f NO SCROLL CURSOR FOR SELECT DISTINCT ON (a) a, b FROM g ORDER BY a, b DESC;
FETCH 2 FROM f;
FETCH BACKWARD 1 FROM f;
ROLLBACK;
PREPARE p(int) AS SELECT DISTINCT ON (a) a, b FROM g WHERE a > $1 ORDER BY a, b DESC LIMIT 2;
SET plan_cache_mode = force_generic_plan;
SELECT plan('EXECUTE p(3)');
EXECUTE p(3);
EXECUTE p(15);
DROP INDEX g_ab;
SELECT plan('EXECUTE p(3)');
EXECUTE p(3);
CREATE INDEX g_ab ON g USING art (a, b);
SELECT plan('EXECUTE p(3)');
SELECT plan('SELECT x, y.* FROM generate_series(2, 4) x, LATERAL (SELECT DISTINCT ON (a) a, b FROM g WHERE a >= x AND a < x + 2 ORDER BY a, b DESC) y');
SELECT x, y.* FROM generate_series(2, 4) x, LATERAL (SELECT DISTINCT ON (a) a, b FROM g WHERE a >= x AND a < x + 2 ORDER BY a, b DESC) y;

-- the rows that a policy shows, and no function before it that could tell of others
CREATE ROLE loose_user;
CREATE POLICY twos ON g USING (n < 40);
ALTER TABLE g ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON g TO loose_user;
GRANT USAGE ON SCHEMA loose TO loose_user;
SET ROLE loose_user;
SELECT plan('SELECT a, max(b) FROM g GROUP BY a');
SELECT sum(a), sum(max) FROM (SELECT a, max(b) FROM g GROUP BY a) s;
RESET ROLE;
SELECT sum(a), sum(max) FROM (SELECT a, max(b) FROM g WHERE n < 40 GROUP BY a) s;
DROP POLICY twos ON g;
REVOKE ALL ON g FROM loose_user;
REVOKE ALL ON SCHEMA loose FROM loose_user;
DROP ROLE loose_user;

-- what EXPLAIN shows, and what is counted
EXPLAIN (COSTS OFF, VERBOSE) SELECT DISTINCT t, c FROM g ORDER BY t DESC, c NULLS FIRST;
EXPLAIN (COSTS OFF, FORMAT YAML) SELECT a, max(b) FROM g GROUP BY a;
EXPLAIN (COSTS OFF) SELECT DISTINCT b / 100 FROM g WHERE a > 3;
SELECT pg_stat_force_next_flush();
SELECT idx_scan AS before FROM pg_stat_user_indexes WHERE indexrelname = 'g_n' \gset
SELECT count(*) FROM (SELECT DISTINCT n FROM g) s;
SELECT pg_stat_force_next_flush();
SELECT idx_scan - :before FROM pg_stat_user_indexes WHERE indexrelname = 'g_n';

-- without a structure the scan reads the table, once
PREPARE all_of AS SELECT count(*), sum(a), sum(max) FROM (SELECT a, max(b) FROM g GROUP BY a) s;
EXECUTE all_of;
BEGIN;
DECLARE c CURSOR FOR SELECT DISTINCT ON (a) a, b FROM g ORDER BY a, b DESC;
FETCH 3 FROM c;
SELECT artidx_unload('g_ab');
FETCH 3 FROM c;
MOVE 10 FROM c;
FETCH ALL FROM c;
COMMIT;

SET client_min_messages = error;
DROP SCHEMA rows CASCADE;
