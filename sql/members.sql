--
-- Loose scans of UNION ALL's members, whose columns have another order than the query's, and
-- below joins whose conditions count how often they are tested
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all
\pset tuples_only on
\pset format unaligned
CREATE TABLE m1 (a int, b int);
CREATE TABLE m2 (gone int, b int, a int);
ALTER TABLE m2 DROP COLUMN gone;
INSERT INTO m1 SELECT i % 10, i % 7 FROM generate_series(1, 2000) i;
INSERT INTO m2 SELECT i % 7, i % 10 FROM generate_series(1, 2000) i;
CREATE INDEX ON m1 USING art (a, b);
CREATE INDEX ON m2 USING art (a, b);
VACUUM ANALYZE m1, m2;
CREATE VIEW swapped AS SELECT b AS x, a AS y FROM m1 UNION ALL SELECT b, a FROM m2;
CREATE VIEW twice AS SELECT a AS x, b AS y, a AS z FROM m1 UNION ALL SELECT 3, a, b FROM m2;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashagg = off;
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION by_loose(q text) RETURNS bool LANGUAGE sql
	AS $$ SELECT array_to_string(twin.plan('', q), ' ') ~ 'Loose Scan' $$;

SELECT by_loose('SELECT DISTINCT y FROM swapped');
SELECT DISTINCT y FROM swapped ORDER BY y DESC LIMIT 3;
SELECT count(DISTINCT x), count(DISTINCT y), min(x), max(x) FROM swapped;
SELECT DISTINCT x FROM swapped WHERE y = 5 ORDER BY x;
SELECT x, min(y), max(y) FROM swapped WHERE y = 5 GROUP BY x ORDER BY x;
SELECT count(DISTINCT x) FROM swapped WHERE y = 5;
SELECT y, min(x), max(x) FROM swapped WHERE y > 7 GROUP BY y ORDER BY y;
SELECT DISTINCT ON (y) y, x FROM swapped WHERE y < 3 ORDER BY y, x DESC;
SELECT count(DISTINCT x), count(DISTINCT y), count(DISTINCT z) FROM twice;
SELECT DISTINCT y, z FROM twice WHERE x = 3 AND y > 4 ORDER BY y, z;
SELECT z, max(y) FROM twice WHERE z > 5 GROUP BY z ORDER BY z;

-- a condition that counts
CREATE SEQUENCE tests;
SELECT by_loose('SELECT m2.b FROM m2 LEFT JOIN m1 ON m1.a = m2.b + 9 WHERE m1.a IS NULL');
SELECT by_loose($$SELECT m2.b FROM m2 LEFT JOIN m1 ON m1.a = m2.b + 9 AND nextval('tests') > m2.b WHERE m1.a IS NULL$$);
DROP VIEW swapped, twice;
DROP TABLE m1, m2;
DROP SEQUENCE tests;
DROP FUNCTION by_loose;
