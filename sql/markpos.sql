--
-- Mark and restore: an art index as the inner side of a merge join, as btree.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA markpos;
SET search_path = markpos, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
SET enable_material = off;
SET max_parallel_workers_per_gather = 0;

-- the outer side has each value several times, the inner side up to 1,500 times
SELECT twins('CREATE TABLE {}_o (k int, v int, c text, n numeric)');
SELECT twins('CREATE TABLE {}_i (k int, v int, c text, n numeric)');
SELECT twins($$INSERT INTO {}_o SELECT nullif(i % 60, 13), i, 'c' || i % 9, (i % 50)::numeric / 4
	FROM generate_series(1, 240) i$$);
SELECT twins($$INSERT INTO {}_i SELECT
	CASE WHEN i % 3 = 0 THEN 7 WHEN i % 7 = 0 THEN NULL ELSE i % 90 END, i, 'c' || i % 11,
	((i % 60)::numeric / 4)::numeric(8, 2)
	FROM generate_series(1, 4500) i$$);
SELECT format('CREATE INDEX %1$s_%2$s_%3$s ON %1$s_%2$s USING %4$s (%5$s) %6$s', side, tab, name, am, cols, opt)
	FROM (VALUES ('bt', 'btree', 'WITH (deduplicate_items = off)'), ('art', 'art', '')) s (side, am, opt),
	(VALUES ('o', 'k', 'k'), ('i', 'k', 'k, v'), ('o', 'd', 'k DESC NULLS LAST, v'), ('i', 'd', 'k DESC NULLS LAST'),
		('o', 'n', 'n'), ('i', 'n', 'n, k'), ('o', 'c', 'c'), ('i', 'c', 'c')) i (tab, name, cols) \gexec
VACUUM ANALYZE bt_o, bt_i, art_o, art_i;

EXPLAIN (COSTS OFF) SELECT o.v, i.v FROM art_o o JOIN art_i i ON o.k = i.k;
SELECT same('SELECT o.v, i.v FROM {}_o o JOIN {}_i i ON o.k = i.k');
SELECT same('SELECT o.k, i.k FROM {}_o o JOIN {}_i i ON o.k = i.k');
SELECT same('SELECT o.k, o.v, i.v FROM {}_o o JOIN {}_i i ON o.k = i.k ORDER BY o.k DESC NULLS LAST, o.v');
SELECT same('SELECT o.v, i.v FROM {}_o o JOIN {}_i i ON o.n = i.n');
SELECT same('SELECT o.c, i.c FROM {}_o o JOIN {}_i i ON o.c = i.c WHERE o.v < 40');
SELECT same('SELECT o.v, i.v, i.n FROM {}_o o LEFT JOIN {}_i i ON o.k = i.k AND i.v % 5 = 1 ORDER BY o.k');
-- with quals on the inner index: a range, residual ones, arrays
SELECT same('SELECT o.v, i.v FROM {}_o o JOIN {}_i i ON o.k = i.k WHERE i.k > 5 AND i.v < 2000');
SELECT same('SELECT o.v, i.v FROM {}_o o JOIN {}_i i ON o.k = i.k WHERE i.k > 5 AND i.k < 40 AND o.k > 5 AND o.k < 40');
SELECT same('SELECT o.v, i.v FROM {}_o o JOIN {}_i i ON o.k = i.k WHERE i.k = ANY (''{3,7,9,59,80}'')');
SELECT same('SELECT o.k, i.k FROM {}_o o JOIN {}_i i ON o.k = i.k WHERE i.k = ANY (''{3,7,9,59,80}'') AND i.v = ANY (ARRAY(SELECT generate_series(1, 4000, 7)))');
SELECT same('SELECT o.k, i.k, i.v FROM {}_o o JOIN {}_i i ON o.k = i.k WHERE i.k = ANY (''{3,7,9,59,80}'') ORDER BY o.k DESC NULLS LAST, o.v');

-- rows that are dead when they are met again
SELECT twins('DELETE FROM {}_i WHERE v % 4 = 0');
SELECT same('SELECT o.v, i.v FROM {}_o o JOIN {}_i i ON o.k = i.k');
SELECT same('SELECT o.k, i.k FROM {}_o o JOIN {}_i i ON o.k = i.k');
SELECT same('SELECT o.v, i.v FROM {}_o o JOIN {}_i i ON o.k = i.k');
SELECT clean('art_i_k');

-- between two fetches of a join: rows of other statements, the structure goes, comes back, goes for good
CREATE FUNCTION beside(side text, q text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	seen text[] := '{}';
	x text;
	n int := 0;
	c refcursor := 'c';
BEGIN
	OPEN c FOR EXECUTE replace(q, '{}', side);
	LOOP
		FETCH c INTO x;
		EXIT WHEN NOT FOUND;
		n := n + 1;
		seen := seen || x;
		IF n % 100 = 5 THEN
			EXECUTE format('INSERT INTO %s_i SELECT 7, -%s, ''x'', 1 FROM generate_series(1, 20)', side, n);
			EXECUTE format('DELETE FROM %s_i WHERE k = 7 AND v %% 40 = %s', side, n % 40);
		END IF;
		IF side = 'art' AND n IN (300, 2000) THEN
			PERFORM artidx_unload('art_i_k');
			IF n = 300 THEN
				PERFORM artidx_build('art_i_k');
			END IF;
		END IF;
	END LOOP;
	CLOSE c;
	RETURN seen;
END $$;
SELECT cardinality(b), b = a FROM
	beside('bt', 'SELECT (o.v, i.v)::text FROM {}_o o JOIN {}_i i ON o.k = i.k WHERE o.k < 9') b,
	beside('art', 'SELECT (o.v, i.v)::text FROM {}_o o JOIN {}_i i ON o.k = i.k WHERE o.k < 9') a;
SELECT state FROM artidx_indexes WHERE indexrelname = 'art_i_k';
SELECT artidx_build('art_i_k');
SELECT cardinality(b), b = a FROM
	beside('bt', 'SELECT (o.k, i.k)::text FROM {}_o o JOIN {}_i i ON o.k = i.k WHERE o.k < 9') b,
	beside('art', 'SELECT (o.k, i.k)::text FROM {}_o o JOIN {}_i i ON o.k = i.k WHERE o.k < 9') a;

SET client_min_messages = warning;
DROP SCHEMA markpos CASCADE;
