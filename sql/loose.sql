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
