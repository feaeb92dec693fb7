--
-- Arrays as scan keys: in the order of the index, without duplicates, as btree.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA arrays;
SET search_path = arrays, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;

CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT twins('CREATE TABLE {}_t (a int, b bigint, c text, d date, n numeric, w text, f float4, v int)');
SELECT twins($$INSERT INTO {}_t SELECT
	CASE WHEN i % 37 = 0 THEN NULL ELSE i * 7919 % 200 END,
	CASE WHEN i % 41 = 0 THEN NULL ELSE (i / 7 * 104729 + i) % 50 - 20 END,
	CASE WHEN i % 43 = 0 THEN NULL ELSE 'c' || i / 11 % 30 END,
	date '2020-01-01' + i % 90,
	CASE WHEN i % 47 = 0 THEN 'NaN' ELSE (i / 3 % 60 / 4.0)::numeric(10, 2)::text::numeric END,
	CASE WHEN i % 2 = 0 THEN upper('w' || i % 25) ELSE 'w' || i % 25 END,
	(i % 70) / 8.0, i
	FROM generate_series(1, 6000) i$$);
-- btree's rows of a key lie in another order, backward, when deduplicated
SELECT format('CREATE INDEX %1$s_%2$s ON %1$s_t USING %3$s (%4$s) %5$s', side, name, am, cols, opt)
	FROM (VALUES ('bt', 'btree', 'WITH (deduplicate_items = off)'), ('art', 'art', '')) s (side, am, opt),
	(VALUES ('v', 'v'), ('ab', 'a, b'), ('abd', 'a DESC, b NULLS FIRST, c DESC'),
		('c', 'c'), ('db', 'd, b DESC NULLS LAST, a'), ('nv', 'n, a'), ('w', 'w COLLATE "en-x-icu", v'),
		('wn', 'w COLLATE nocase'), ('f', 'f')) i (name, cols) \gexec
VACUUM ANALYZE bt_t, art_t;
EXPLAIN (COSTS OFF) SELECT a, b FROM art_t WHERE a = ANY ('{3,5}') ORDER BY a, b;

-- one column
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{5,1,3000,-7,5,NULL,6000,6001,1}'') ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{5,1,3000,-7,5,NULL,6000,6001,1}'') ORDER BY v DESC');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (ARRAY[]::int[]) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{NULL}'') ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (NULL::int[]) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{7}'') ORDER BY v');
SELECT same('SELECT v, c FROM {}_t WHERE v = ANY (ARRAY(SELECT (i * 31) % 6100 FROM generate_series(1, 2000) i)) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (ARRAY(SELECT (i * 31) % 6100 FROM generate_series(1, 2000) i)) ORDER BY v DESC');
SELECT same('SELECT v FROM {}_t WHERE v IN (SELECT unnest(ARRAY[[1,2],[3,4]])) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (ARRAY[[1,2],[4,3]]) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''[5:7]={9,8,7}''::int[]) ORDER BY v LIMIT 2');
-- elements of another type
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{5,1,30000000000,-7,6000}''::bigint[]) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{5,1,-7,6000}''::smallint[]) ORDER BY v DESC');
SELECT same('SELECT d, b, a, v FROM {}_t WHERE d = ANY (''{2020-01-05,2020-01-03 12:00,2020-01-03,infinity}''::timestamp[]) ORDER BY d, b DESC NULLS LAST, a');
SELECT same('SELECT d, b, a, v FROM {}_t WHERE d = ANY (''{2020-01-05,2020-01-03 00:00,2020-03-29 00:00,2020-03-30 00:00}''::timestamptz[]) ORDER BY d, b DESC NULLS LAST, a');
SELECT same('SELECT f, v FROM {}_t WHERE f = ANY (''{0.125,0.1,5.25,NaN,1e300}''::float8[]) ORDER BY f');
-- other operators
SELECT same('SELECT v FROM {}_t WHERE v < ANY (''{5,1,NULL,12}'') ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v <= ANY (''{5,1,NULL,12}'') ORDER BY v DESC');
SELECT same('SELECT v FROM {}_t WHERE v > ANY (''{5999,5990,NULL}'') ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v >= ANY (''{5999,5990,NULL}''::bigint[]) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v > ANY (''{NULL}'') ORDER BY v');
SELECT same('SELECT a, b, v FROM {}_t WHERE a < ANY (''{5,2}'') AND b > ANY (''{20,25}'') ORDER BY a, b');
SELECT same('SELECT d, v FROM {}_t WHERE d < ANY (''{2020-01-03 06:00,2020-01-02}''::timestamptz[]) ORDER BY d, b DESC NULLS LAST, a');
SELECT same('SELECT n, a, v FROM {}_t WHERE n > ANY (''{14.5,20,NaN}'') ORDER BY n, a');
-- redundant, contradictory
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{1,2,3,4}'') AND v = ANY (''{3,4,5}''::bigint[]) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{1,2,3,4}'') AND v = ANY (''{5}'') ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{1,2,3,4}'') AND v = ANY (''{3,9}'') ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{1,2,3,4,10,20}'') AND v > 2 AND v <= 10 ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{1,2,3,4,10,20}'') AND v = 10 ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{1,2,3,4,10,20}'') AND v = 11 ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{1,2}'') AND v IS NULL ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{1,2,NULL}'') AND v IS NOT NULL ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (''{1,20,30}'') AND v < ANY (''{4,25}'') ORDER BY v');

-- several columns: order, gaps, NULLs
SET enable_indexonlyscan = off;
SELECT same('SELECT a, b FROM {}_t WHERE a = ANY (''{7,3,150,3,999}'') ORDER BY a, b');
RESET enable_indexonlyscan;
SELECT same('SELECT a, b FROM {}_t WHERE a = ANY (''{7,3,150,3,999}'') ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_t WHERE a = ANY (''{7,3,150,3,999}'') ORDER BY a DESC, b DESC');
SELECT same('SELECT a, b, v FROM {}_t WHERE a = ANY (''{7,3,150}'') AND b = ANY (''{5,-3,0,12}'') ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_t WHERE a = ANY (''{7,3,150}'') AND b = ANY (''{5,-3,0,12}'') ORDER BY a DESC, b DESC');
SELECT same('SELECT a, b FROM {}_t WHERE a = ANY (''{7,3,150}'') AND b BETWEEN -5 AND 20 ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_t WHERE a BETWEEN 3 AND 40 AND b = ANY (''{5,-3,0,12}'') ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_t WHERE b = ANY (''{5,-3,0,12}'') ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_t WHERE a IS NULL AND b = ANY (''{5,-3,0,12}'') ORDER BY b');
SELECT same('SELECT a, b FROM {}_t WHERE a = ANY (''{5,-3,0,12}'') AND b IS NULL ORDER BY a');
SELECT same('SELECT a, b, c FROM {}_t WHERE a = ANY (''{5,30,0,12}'') AND c = ANY (''{c5,c7,zz}'') ORDER BY a DESC, b NULLS FIRST, c DESC');
SELECT same('SELECT a, b, c FROM {}_t WHERE a = ANY (''{5,30,0,12}'') AND b = ANY (''{5,7,9,10,15}'') AND c = ANY (ARRAY(SELECT ''c'' || i FROM generate_series(0, 20) i)) ORDER BY a DESC, b NULLS FIRST, c DESC');
SELECT same('SELECT a, b, c FROM {}_t WHERE a = ANY (''{5,30,0,12}'') AND b = ANY (''{5,7,9,10,15}'') AND c > ''c2'' ORDER BY a, b DESC NULLS LAST, c');
SELECT same('SELECT d, b, a FROM {}_t WHERE d = ANY (''{2020-02-01,2020-01-02}'') AND b = ANY (''{1,2,3,4,5,-8}'') AND a > 50 ORDER BY d, b DESC NULLS LAST, a');
-- the order is the index's without a sort, too, whichever column has the array (17 and later rely on it)
CREATE FUNCTION in_order(q text, cols text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r text;
BEGIN
	EXECUTE format('SELECT format(''%%s rows, %%s'', count(*), array_agg(x) = array_agg(x ORDER BY %s)
		AND count(*) = count(DISTINCT v)) FROM (%s) x', cols, q) INTO r;
	RETURN r || ', ' || (SELECT string_agg(regexp_replace(trim(l), '\(InitPlan\)\.col1|\$\d+', '$', 'g'), '; ')
		FROM unnest(twin.plan('art', q)) l WHERE l ~ 'Scan|Sort|Cond');
END $$;
SELECT in_order('SELECT a, b, c, v FROM art_t WHERE a = ANY (''{7,3,150,1,0,15}'') AND b = ANY (''{1,2,3,4,5,9}'')', 'a DESC, b, c DESC, v');
SELECT in_order('SELECT a, b, c, v FROM art_t WHERE a BETWEEN 1 AND 60 AND b = ANY (''{1,2,3,4,5,9}'')', 'a DESC, b, c DESC, v');
SELECT in_order('SELECT a, b, c, v FROM art_t WHERE a = ANY (''{5,30,0,12,7,9}'') AND b = ANY (ARRAY(SELECT generate_series(1, 25))) AND c = ANY (ARRAY(SELECT ''c'' || i FROM generate_series(0, 20) i))', 'a DESC, b NULLS FIRST, c DESC, v');
SELECT in_order('SELECT d, b, a, v FROM art_t WHERE d = ANY (''{2020-02-01,2020-01-02}'') AND a = ANY (ARRAY(SELECT generate_series(1, 100)))', 'd, b DESC NULLS LAST, a, v');
-- texts, and what is compared
SELECT same('SELECT c FROM {}_t WHERE c = ANY (''{c3,c29,"",zz,c3,NULL}'') ORDER BY c');
SELECT same('SELECT c, v FROM {}_t WHERE c = ANY (''{c3,c29}''::name[]) ORDER BY c');
SELECT same('SELECT c FROM {}_t WHERE c = ANY (ARRAY[''c7'', repeat(''x'', 100000), ''c1'']) ORDER BY c DESC');
SELECT same('SELECT n, a, v FROM {}_t WHERE n = ANY (''{1.50,1.5,NaN,7,0.25,NULL}'') ORDER BY n, a');
SELECT same('SELECT n, a, v FROM {}_t WHERE n = ANY (''{1.50,1.5,NaN,7}'') AND a = ANY (''{3,7,20,100}'') ORDER BY n DESC, a DESC');
SELECT same('SELECT n, a FROM {}_t WHERE n = ANY (''{1.50,2,3,NaN}'') AND n = ANY (''{1.5,3.000,4}'') ORDER BY n, a');
SELECT same('SELECT w, v FROM {}_t WHERE w = ANY (''{w3,W3,W4,zz}'' COLLATE "en-x-icu") ORDER BY w COLLATE "en-x-icu", v');
SELECT same('SELECT w, v FROM {}_t WHERE w = ANY (''{w4,W4,w3,zz}'' COLLATE "en-x-icu") AND v = ANY (ARRAY(SELECT generate_series(1, 3000))) ORDER BY w COLLATE "en-x-icu" DESC, v DESC');
SELECT same('SELECT count(*), min(v), max(v) FROM {}_t WHERE w = ANY (''{w3,W3,W4,zz}'' COLLATE nocase)');

-- cursors that turn round: over the ends of elements, at both ends
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
SELECT same_walk('SELECT v FROM {}_t WHERE v = ANY (''{1,5,7,20,21,22,50,6000,7000}'') ORDER BY v',
	'3 NEXT', '2 PRIOR', '4 NEXT', '4 PRIOR', '20 NEXT', '3 PRIOR', '20 NEXT', '20 PRIOR', '2 NEXT', '1 LAST', '2 PRIOR', '1 FIRST', '1 PRIOR', '1 NEXT');
SELECT same_walk('SELECT v FROM {}_t WHERE v = ANY (''{1,5,7,20,21,22,50,6000,7000}'') ORDER BY v DESC',
	'3 NEXT', '2 PRIOR', '4 NEXT', '4 PRIOR', '20 NEXT', '3 PRIOR', '20 NEXT', '20 PRIOR', '2 NEXT', '1 LAST', '2 PRIOR', '1 FIRST', '1 PRIOR', '1 NEXT');
SELECT same_walk('SELECT a, b, v FROM {}_t WHERE a = ANY (''{7,3,150,1,0,15}'') ORDER BY a, b',
	'33 NEXT', '32 PRIOR', '70 NEXT', '60 PRIOR', '130 NEXT', '200 PRIOR', '200 NEXT', '45 PRIOR', '1 FIRST', '31 NEXT', '2 PRIOR');
SELECT same_walk('SELECT a, b FROM {}_t WHERE a = ANY (''{7,3,150,1,0,15}'') AND b = ANY (''{1,2,3,4,5,9}'') ORDER BY a DESC, b DESC',
	'5 NEXT', '4 PRIOR', '9 NEXT', '3 PRIOR', '100 NEXT', '100 PRIOR', '7 NEXT', '1 LAST', '9 PRIOR');
SELECT same_walk('SELECT n, a, v FROM {}_t WHERE n = ANY (''{1.50,1.5,NaN,7}'') ORDER BY n, a',
	'90 NEXT', '50 PRIOR', '110 NEXT', '300 PRIOR', '300 NEXT', '140 PRIOR');
SELECT same_walk('SELECT a, b, c FROM {}_t WHERE a = ANY (''{5,30,0,12}'') AND c = ANY (''{c5,c7,zz}'') ORDER BY a DESC, b NULLS FIRST, c DESC',
	'3 NEXT', '2 PRIOR', '4 NEXT', '9 PRIOR', '9 NEXT');

-- the inner side of a nested loop, arrays that change with each outer row
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT same('SELECT o.v, i.v FROM {}_t o JOIN {}_t i ON i.v = ANY (ARRAY[o.v + 1, o.v - 1, o.v + 1, NULL]) WHERE o.v < 200 ORDER BY o.v');
SELECT same('SELECT o.v, i.v FROM {}_t o, LATERAL (SELECT * FROM {}_t i WHERE i.a = ANY (ARRAY[o.a, 3]) AND i.b = ANY (ARRAY[o.b, 4, 5]) ORDER BY i.a, i.b LIMIT 3) i WHERE o.v < 100 ORDER BY o.v');
RESET enable_hashjoin;
RESET enable_mergejoin;

-- bitmaps
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
SET enable_sort = on;
SELECT same('SELECT v FROM {}_t WHERE v = ANY (ARRAY(SELECT (i * 31) % 6100 FROM generate_series(1, 2000) i)) ORDER BY v');
SELECT same('SELECT a, b, v FROM {}_t WHERE a = ANY (''{7,3,150}'') AND b = ANY (''{5,-3,0,12}'') ORDER BY v');
-- btree's plan is another in 17
SELECT regexp_replace(same('SELECT v FROM {}_t WHERE a = ANY (''{7,3,150}'') AND c = ANY (''{c5,c7}'') ORDER BY v'), ' \(btree.*', '');
SELECT same('SELECT v FROM {}_t WHERE n = ANY (''{7,3,NaN}'') OR v = ANY (''{1,2}'') ORDER BY v');
SET enable_indexscan = on;
SET enable_indexonlyscan = on;
SET enable_bitmapscan = off;
SET enable_sort = off;

-- dead entries: met, removed, over the ends of elements and of the scan
SELECT twins('DELETE FROM {}_t WHERE v % 3 = 0 OR a = 7');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (ARRAY(SELECT generate_series(1, 300))) ORDER BY v');
SELECT same('SELECT v FROM {}_t WHERE v = ANY (ARRAY(SELECT generate_series(1, 300))) ORDER BY v DESC');
SELECT same('SELECT a, b, v FROM {}_t WHERE a = ANY (''{7,3,150}'') ORDER BY a, b');
SELECT same('SELECT a, b, v FROM {}_t WHERE a = ANY (''{7,3,150}'') ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_t WHERE a = ANY (''{7,3,150}'') AND b = ANY (''{5,-3,0,12}'') ORDER BY a, b');
SELECT twins('INSERT INTO {}_t (a, b, v) SELECT 7, i % 20, i FROM generate_series(10000, 10200) i');
SELECT same('SELECT a, b FROM {}_t WHERE a = ANY (''{7,3,150}'') AND b = ANY (''{5,-3,0,12}'') ORDER BY a, b');
SELECT clean('art_ab');
SELECT clean('art_nv');


-- a scan that loses its structure goes on in the table, over the ends of
-- elements; one that has none reads the table once for all elements
CREATE FUNCTION private(q text, ind text, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	b text[];
	a text[] := '{}';
	c refcursor := 'c';
	x text;
BEGIN
	EXECUTE replace('SELECT array_agg(x::text) FROM (' || q || ') x', '{}', 'bt') INTO b;
	OPEN c FOR EXECUTE replace('SELECT x::text FROM (' || q || ') x', '{}', 'art');
	FOR i IN 1 .. n LOOP
		FETCH c INTO x;
		a := a || x;
	END LOOP;
	PERFORM artidx_unload(ind::regclass);
	LOOP
		FETCH c INTO x;
		EXIT WHEN NOT FOUND;
		a := a || x;
	END LOOP;
	CLOSE c;
	RETURN format('%s rows, %s, %s', cardinality(a), (SELECT state FROM artidx_indexes WHERE indexrelname = ind),
				  CASE WHEN a = b THEN 'the same' ELSE 'DIFFERENT' END);
END $$;
SELECT private('SELECT a, b, v FROM {}_t WHERE a = ANY (''{3,150,1,0,15}'') ORDER BY a, b', 'art_ab', 20);
SELECT artidx_build('art_ab');
SELECT private('SELECT a, b FROM {}_t WHERE a = ANY (''{3,150,1,0,15}'') ORDER BY a, b', 'art_ab', 1);
SELECT private('SELECT v FROM {}_t WHERE v = ANY (ARRAY(SELECT generate_series(1, 300))) ORDER BY v DESC', 'art_v', 30);
SELECT private('SELECT n, a, v FROM {}_t WHERE n = ANY (''{1.50,1.5,NaN,7}'') ORDER BY n, a', 'art_nv', 130);
SELECT artidx_build('art_ab'), artidx_build('art_v'), artidx_build('art_nv');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v FROM art_t WHERE v = ANY ('{1,5,7,20,22,50,6000,7000}') ORDER BY v;
FETCH 3 FROM c;
SELECT artidx_unload('art_v');
FETCH 2 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
COMMIT;

-- instants against local times, where clocks are turned: the few values that may
-- be equal are looked up, and the rows are what the operator finds
CREATE TABLE clocks (ts timestamp, d date);
INSERT INTO clocks SELECT t, NULL FROM unnest('{2011-12-30,2017-10-15,2024-03-31,2024-11-03,1900-01-01}'::date[]) b,
	generate_series(b - 2.0 * interval '1 day', b + interval '2 days', '30 minutes') t;
INSERT INTO clocks SELECT NULL, b + i FROM unnest('{2011-12-30,2017-10-15,2024-03-31,2024-11-03,1900-01-01}'::date[]) b,
	generate_series(-3, 3) i;
CREATE INDEX clocks_ts ON clocks USING art (ts);
CREATE INDEX clocks_ts_desc ON clocks USING art (ts DESC, d);
VACUUM ANALYZE clocks;
CREATE INDEX clocks_d ON clocks USING art (d);
CREATE FUNCTION clocks(col text, idx bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n int;
	s text;
	all_of text := '';
BEGIN
	PERFORM set_config('enable_seqscan', (NOT idx)::text, true), set_config('enable_indexscan', idx::text, true),
		set_config('enable_indexonlyscan', idx::text, true), set_config('enable_bitmapscan', 'off', true);
	FOREACH s IN ARRAY '{America/New_York,Europe/Dublin,Pacific/Apia,America/Sao_Paulo,Asia/Beirut,Australia/Lord_Howe,UTC}'::text[] LOOP
		PERFORM set_config('timezone', s, true);
		EXECUTE format('SELECT count(%1$s) FROM clocks WHERE %1$s = ANY (ARRAY(SELECT t FROM
			unnest(''{2011-12-30,2017-10-15,2024-03-31,2024-11-03,1900-01-01}''::date[]) b,
			generate_series(b::timestamptz - interval ''1 day'', b::timestamptz + interval ''1 day'', ''15 minutes'') t))', col) INTO n;
		all_of := all_of || ' ' || n;
	END LOOP;
	RETURN all_of;
END $$;
SELECT col, clocks(col, true) = clocks(col, false) AS same, clocks(col, true) FROM unnest('{ts,d}'::text[]) col;
SET enable_seqscan = off;
SET timezone = 'America/New_York';
-- searches, not all that lies between the elements
BEGIN;
SELECT ts FROM clocks WHERE ts = ANY ('{2024-11-03 00:30,2024-03-31 12:00}'::timestamptz[]) ORDER BY ts;
SELECT pg_stat_get_xact_numscans('clocks_ts'::regclass) + pg_stat_get_xact_numscans('clocks_ts_desc'::regclass) > 1 AS searches;
COMMIT;
RESET timezone;
DROP TABLE clocks;
DROP FUNCTION clocks;

SET client_min_messages = warning;
DROP SCHEMA arrays CASCADE;
