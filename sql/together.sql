--
-- Many point look-ups as one batch: = ANY of whole keys, over the ends of batches,
-- as btree.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA together;
SET search_path = together, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;

SELECT twins('CREATE TABLE {}_t (v bigint, g int, a int, b text, u uuid)');
-- g: from one to fifty rows each, and one value of 3,000
SELECT twins($$INSERT INTO {}_t SELECT i * 3, CASE WHEN i % 5 = 0 THEN 77 ELSE (sqrt(i) * 4)::int END,
	i % 40, 'b' || i / 40 % 30, md5((i / 2)::text)::uuid FROM generate_series(1, 15000) i$$);
SELECT format('CREATE INDEX %1$s_%2$s ON %1$s_t USING %3$s (%4$s) %5$s', side, name, am, cols, opt)
	FROM (VALUES ('bt', 'btree', 'WITH (deduplicate_items = off)'), ('art', 'art', '')) s (side, am, opt),
	(VALUES ('v', 'v'), ('g', 'g'), ('ab', 'a DESC, b'), ('u', 'u')) i (name, cols) \gexec
ALTER INDEX art_g SET (structure = btree);
REINDEX INDEX art_g;
VACUUM ANALYZE bt_t, art_t;

CREATE FUNCTION nums(n int, step int, first int = 1) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS
	$$SELECT array_agg(i::bigint * step ORDER BY i * 7919 % 10007) FROM generate_series(first, first + n - 1) i$$;

-- one batch, several, none; in either direction
SELECT n, same(format('SELECT v FROM {}_t WHERE v = ANY (nums(%s, 3)) ORDER BY v', n)) FROM unnest('{2,16,17,79,81,400,2500}'::int[]) n;
SELECT n, same(format('SELECT v FROM {}_t WHERE v = ANY (nums(%s, 3)) ORDER BY v DESC', n)) FROM unnest('{2,16,17,79,81,400,2500}'::int[]) n;
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(2000, 2)) ORDER BY v');
SELECT same('SELECT v, b FROM {}_t WHERE v = ANY (nums(2000, 2)) ORDER BY v DESC');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(2000, 1, 100000)) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(3000, 5)) AND a >= 20 ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(3000, 5)::int[]) AND v BETWEEN 200 AND 9000 ORDER BY v DESC');
-- negative numbers, bytes that differ at both ends, repetitions
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(700, -5) || nums(700, 6) || nums(600, 3) || nums(700, 2147483646)) ORDER BY v');
SELECT same('SELECT u, v FROM {}_t WHERE u = ANY (ARRAY(SELECT md5(i::text)::uuid FROM generate_series(1, 900) i)) ORDER BY u');
-- several entries a key: batches that are full before their keys are all done
SELECT same('SELECT g, v FROM {}_t WHERE g = ANY (nums(490, 1)::int[]) ORDER BY g');
SELECT same('SELECT g, v FROM {}_t WHERE g = ANY (nums(490, 1)::int[]) ORDER BY g DESC');
SELECT same('SELECT g FROM {}_t WHERE g = ANY (nums(600, 1)) ORDER BY g');
SELECT same('SELECT g, v FROM {}_t WHERE g = ANY (''{76,77,78}'') ORDER BY g');
SELECT same('SELECT g, v FROM {}_t WHERE g = ANY (''{76,77,78}'') ORDER BY g DESC');
-- two columns
SELECT same('SELECT a, b, v FROM {}_t WHERE a = ANY (nums(50, 1)::int[]) AND b = ANY (ARRAY(SELECT ''b'' || i FROM generate_series(-3, 25) i)) ORDER BY a DESC, b');
SELECT same('SELECT a, b, v FROM {}_t WHERE a = ANY (nums(50, 1)::int[]) AND b = ANY (ARRAY(SELECT ''b'' || i FROM generate_series(-3, 25) i)) ORDER BY a, b DESC');
SELECT same('SELECT a, b FROM {}_t WHERE a = 7 AND b = ANY (ARRAY(SELECT ''b'' || i FROM generate_series(-3, 25) i)) ORDER BY a DESC, b');
-- a few rows of many
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(2500, 3)) ORDER BY v LIMIT 1');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(2500, 3)) ORDER BY v DESC OFFSET 100 LIMIT 3');

-- cursors that turn round, in and over the ends of batches
CREATE FUNCTION walk(side text, q text, steps text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
	c refcursor := 'walker';
	step text;
	r record;
	seen text[] := '{}';
BEGIN
	OPEN c SCROLL FOR EXECUTE replace(q, '{}', side);
	FOREACH step IN ARRAY steps LOOP
		FOR i IN 1 .. split_part(step, ' ', 1)::int LOOP
			EXECUTE format('FETCH %s FROM walker', split_part(step, ' ', 2)) INTO r;
			EXIT WHEN r IS NULL;
			seen := seen || r::text;
		END LOOP;
		seen := seen || ('|' || step);
	END LOOP;
	CLOSE c;
	RETURN seen;
END $$;
CREATE FUNCTION same_walk(q text, VARIADIC steps text[]) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	b text[] := walk('bt', q, steps);
	a text[] := walk('art', q, steps);
BEGIN
	IF a = b THEN
		RETURN format('%s rows', cardinality(a) - cardinality(steps));
	END IF;
	RETURN format(E'DIFFERENT\nbtree: %s\nart:   %s', b, a);
END $$;
SELECT same_walk('SELECT v FROM {}_t WHERE v = ANY (nums(900, 2)) ORDER BY v',
	'3 NEXT', '2 PRIOR', '20 NEXT', '19 PRIOR', '60 NEXT', '75 PRIOR', '400 NEXT', '7 PRIOR', '400 PRIOR', '1 NEXT', '1 LAST', '80 PRIOR', '1 FIRST', '1 PRIOR', '30 NEXT');
SELECT same_walk('SELECT v, b FROM {}_t WHERE v = ANY (nums(900, 2)) ORDER BY v DESC',
	'3 NEXT', '2 PRIOR', '20 NEXT', '19 PRIOR', '60 NEXT', '75 PRIOR', '400 NEXT', '7 PRIOR', '400 PRIOR', '1 NEXT', '1 LAST', '80 PRIOR', '1 FIRST', '1 PRIOR', '30 NEXT');
SELECT same_walk('SELECT g, v FROM {}_t WHERE g = ANY (nums(490, 1)::int[]) ORDER BY g',
	'10 NEXT', '9 PRIOR', '200 NEXT', '150 PRIOR', '900 NEXT', '300 PRIOR', '2500 NEXT', '2600 PRIOR', '1 LAST', '600 PRIOR', '20 NEXT');
SELECT same_walk('SELECT a, b, v FROM {}_t WHERE a = ANY (nums(50, 1)::int[]) AND b = ANY (ARRAY(SELECT ''b'' || i FROM generate_series(-3, 25) i)) ORDER BY a, b DESC',
	'40 NEXT', '39 PRIOR', '700 NEXT', '300 PRIOR', '5000 NEXT', '5500 PRIOR', '100 NEXT');

-- marks: the inner side of a merge join, whose rows come again
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT same('SELECT o.g, i.v FROM (SELECT g FROM {}_t WHERE g BETWEEN 20 AND 60 ORDER BY g) o JOIN (SELECT * FROM {}_t WHERE v = ANY (nums(400, 2)) ORDER BY v) i ON i.v = o.g ORDER BY o.g');
SELECT same('SELECT count(*), sum(i.v), sum(o.v) FROM (SELECT * FROM {}_t WHERE g < 300 ORDER BY g) o JOIN (SELECT * FROM {}_t WHERE g = ANY (nums(290, 1)::int[]) ORDER BY g) i ON i.g = o.g');
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;

-- a search for each element is counted, as by btree
BEGIN;
CREATE FUNCTION searches(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n bigint[];
	k bigint;
BEGIN
	FOR i IN 1 .. 2 LOOP
		k := pg_stat_get_xact_numscans((CASE i WHEN 1 THEN 'art_v' ELSE 'art_g' END)::regclass);
		n[i] := k;
	END LOOP;
	EXECUTE q;
	RETURN format('%s, %s', pg_stat_get_xact_numscans('art_v'::regclass) - n[1],
				  pg_stat_get_xact_numscans('art_g'::regclass) - n[2]);
END $$;
SELECT searches('SELECT v FROM art_t WHERE v = ANY (nums(300, 3)) ORDER BY v');
SELECT searches('SELECT g, v FROM art_t WHERE g = ANY (nums(100, 1)::int[]) ORDER BY g DESC');
COMMIT;

-- bitmaps
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
SET enable_sort = on;
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(3000, 2)) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE g = ANY (nums(490, 1)::int[]) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(900, 4)) OR g = ANY (nums(50, 3)::int[]) ORDER BY v');
SET enable_indexscan = on;
SET enable_indexonlyscan = on;
SET enable_bitmapscan = off;
SET enable_sort = off;

-- under SERIALIZABLE one at a time
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(900, 2)) ORDER BY v');
COMMIT;

-- dead entries are removed as they are met
SELECT twins('DELETE FROM {}_t WHERE v % 2 = 0');
SELECT same('SELECT v, b FROM {}_t WHERE v = ANY (nums(3000, 3)) ORDER BY v');
SELECT same('SELECT g, v FROM {}_t WHERE g = ANY (nums(490, 1)::int[]) ORDER BY g DESC');
SELECT same('SELECT g, v FROM {}_t WHERE g = ANY (nums(490, 1)::int[]) ORDER BY g DESC');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(3000, 3)) ORDER BY v DESC');
SELECT indexrelname, entries <= 13500 AS fewer FROM artidx_indexes WHERE indexrelname IN ('art_v', 'art_g') ORDER BY 1;
VACUUM bt_t, art_t;
SELECT same('SELECT v FROM {}_t WHERE v = ANY (nums(3000, 3)) ORDER BY v');

-- it loses its structure in the middle of a batch, and at the end of one
CREATE FUNCTION private(q text, ind text, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	b text[];
	a text[] := '{}';
	c refcursor := 'c';
	x text;
BEGIN
	EXECUTE replace('SELECT array_agg(x::text) FROM (' || q || ') x', '{}', 'bt') INTO b;
	OPEN c SCROLL FOR EXECUTE replace('SELECT x::text FROM (' || q || ') x', '{}', 'art');
	FOR i IN 1 .. n LOOP
		FETCH c INTO x;
		a := a || x;
	END LOOP;
	PERFORM artidx_unload(ind::regclass);
	-- back to the beginning
	FOR i IN 1 .. n - 1 LOOP
		FETCH PRIOR FROM c INTO x;
		IF x IS DISTINCT FROM a[n - i] THEN
			RETURN format('DIFFERENT at %s: %s', n - i, x);
		END IF;
	END LOOP;
	FOR i IN 2 .. n LOOP
		FETCH c INTO x;
	END LOOP;
	LOOP
		FETCH c INTO x;
		EXIT WHEN NOT FOUND;
		a := a || x;
	END LOOP;
	CLOSE c;
	PERFORM artidx_build(ind::regclass);
	RETURN format('%s rows, %s', cardinality(a), CASE WHEN a = b THEN 'the same' ELSE 'DIFFERENT' END);
END $$;
SELECT n, private('SELECT v FROM {}_t WHERE v = ANY (nums(600, 3)) ORDER BY v', 'art_v', n) FROM unnest('{1,8,9,30,100,240}'::int[]) n;
SELECT n, private('SELECT g, v FROM {}_t WHERE g = ANY (nums(300, 1)::int[]) ORDER BY g DESC', 'art_g', n) FROM unnest('{1,40,300,700}'::int[]) n;

SELECT twins('DROP TABLE {}_t');
SET client_min_messages = warning;
DROP SCHEMA together CASCADE;
