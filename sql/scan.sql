--
-- The ways a plan can drive a scan: cursors that turn round, rescans, bitmaps,
-- index-only scans, joins.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA scan;
SET search_path = scan, public;
SET enable_seqscan = off;

SELECT twins('CREATE TABLE {}_t (k int, v int, w text)');
SELECT twins('INSERT INTO {}_t SELECT i % 500, i, ''w'' || i FROM generate_series(1, 3000) i');
-- (btree returns deduplicated rows in another order backward)
CREATE INDEX bt_t_k ON bt_t USING btree (k) WITH (deduplicate_items = off);
CREATE INDEX art_t_k ON art_t USING art (k);
CREATE INDEX bt_t_v ON bt_t USING btree (v);
CREATE INDEX art_t_v ON art_t USING art (v);
VACUUM ANALYZE bt_t, art_t;

-- scroll cursors: what each FETCH of a walk returns, on both sides
CREATE FUNCTION walk(side text, q text, steps text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
	c refcursor := 'walker';
	step text;
	r record;
	seen text[] := '{}';
	n int;
BEGIN
	OPEN c SCROLL FOR EXECUTE replace(q, '{}', side);
	FOREACH step IN ARRAY steps LOOP
		n := 0;
		-- a count in front: so many single steps
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

SET enable_bitmapscan = off;
SET enable_sort = off;
SELECT same_walk('SELECT k, v FROM {}_t ORDER BY k',
	'5 NEXT', '3 PRIOR', '4 NEXT', '20 PRIOR', '7 NEXT', '1 LAST', '3 PRIOR', '5 NEXT', '2 PRIOR');
SELECT same_walk('SELECT v FROM {}_t WHERE v BETWEEN 100 AND 140 ORDER BY v',
	'60 NEXT', '60 PRIOR', '60 NEXT', '1 PRIOR', '1 NEXT', '1 FIRST', '1 PRIOR', '2 NEXT');
SELECT same_walk('SELECT v FROM {}_t WHERE v BETWEEN 100 AND 140 ORDER BY v DESC',
	'60 NEXT', '60 PRIOR', '60 NEXT', '1 PRIOR', '1 NEXT', '1 FIRST', '1 PRIOR', '2 NEXT');
SELECT same_walk('SELECT k, v FROM {}_t WHERE k = 7',
	'3 NEXT', '2 PRIOR', '10 NEXT', '10 PRIOR', '6 NEXT');
SELECT same_walk('SELECT k, v FROM {}_t WHERE k > 250 AND k < 260 ORDER BY k DESC',
	'1 LAST', '5 PRIOR', '3 NEXT', '1 FIRST', '100 NEXT', '100 PRIOR');
SELECT same_walk('SELECT v FROM {}_t ORDER BY v',
	'2500 NEXT', '2000 PRIOR', '2400 NEXT', '3000 PRIOR', '3000 NEXT');
SELECT same_walk('SELECT v FROM {}_t ORDER BY v', '1 LAST', '1 FIRST', '1 LAST', '2999 PRIOR');
SELECT same_walk('SELECT v FROM {}_t WHERE v > 100000 ORDER BY v', '1 NEXT', '1 PRIOR', '1 LAST', '1 FIRST');

-- a plain cursor, turned at its ends, shown
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v FROM art_t WHERE v <= 5 ORDER BY v;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
FETCH ABSOLUTE 4 FROM c;
FETCH RELATIVE -2 FROM c;
MOVE LAST IN c;
FETCH PRIOR FROM c;
COMMIT;

-- a cursor stays right when what it stands on is deleted, vacuumed elsewhere,
-- and inserted again; and one that is held outlives its transaction
BEGIN;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT v FROM art_t WHERE v BETWEEN 10 AND 20 ORDER BY v;
FETCH 3 FROM c;
DELETE FROM art_t WHERE v BETWEEN 11 AND 14;
INSERT INTO art_t VALUES (12, 12, 'new'), (0, 13, 'new');
FETCH 3 FROM c;
FETCH BACKWARD 4 FROM c;
COMMIT;
FETCH ALL FROM c;
CLOSE c;
-- the other twin has to follow
DELETE FROM bt_t WHERE v BETWEEN 11 AND 14;
INSERT INTO bt_t VALUES (12, 12, 'new'), (0, 13, 'new');

-- updates and deletes through a cursor
BEGIN;
DECLARE c CURSOR FOR SELECT v FROM art_t WHERE v BETWEEN 21 AND 24 ORDER BY v FOR UPDATE;
FETCH 2 FROM c;
UPDATE art_t SET w = 'current' WHERE CURRENT OF c;
FETCH 1 FROM c;
DELETE FROM art_t WHERE CURRENT OF c;
COMMIT;
UPDATE bt_t SET w = 'current' WHERE v = 22;
DELETE FROM bt_t WHERE v = 23;
SELECT same('SELECT v, w FROM {}_t WHERE v BETWEEN 21 AND 24 ORDER BY v');
RESET enable_sort;

-- rescans: nested loops, correlated subqueries, lateral
VACUUM ANALYZE bt_t, art_t;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT same('SELECT a.v, b.v FROM {}_t a JOIN {}_t b ON b.k = a.v WHERE a.v < 30 ORDER BY a.v, b.v');
SELECT same('SELECT g, b.v FROM generate_series(-5, 5) g LEFT JOIN {}_t b ON b.v = g ORDER BY g');
SELECT same('SELECT g, (SELECT max(v) FROM {}_t WHERE k = g) FROM generate_series(0, 600, 50) g');
SELECT same('SELECT g, b.v FROM generate_series(1, 40, 13) g,
	LATERAL (SELECT v FROM {}_t WHERE v > g * 10 ORDER BY v LIMIT 3) b');
SELECT same('SELECT g, b.v FROM generate_series(1, 40, 13) g,
	LATERAL (SELECT v FROM {}_t WHERE v < g * 10 ORDER BY v DESC LIMIT 3) b');
SELECT same('SELECT g, b.v FROM (VALUES (1), (NULL), (2)) x (g) LEFT JOIN {}_t b ON b.v = g');
-- a different type on the outer side
SELECT same('SELECT g, b.v FROM generate_series(2147483640, 2147483650::bigint) g LEFT JOIN {}_t b ON b.v = g - 2147483640');
SELECT same('SELECT g, b.v FROM generate_series(1, 3::bigint) g LEFT JOIN {}_t b ON b.v = g * 1000000000000 OR b.v = g');
RESET enable_hashjoin;
RESET enable_material;
RESET enable_memoize;

-- merge joins: art is read in order; it has no mark yet, so an inner side that
-- would need one is materialized or sorted
SET enable_nestloop = off;
SET enable_hashjoin = off;
SET enable_mergejoin = on;
SELECT same('SELECT a.k, a.v, b.v FROM {}_t a JOIN {}_t b ON a.k = b.k WHERE a.v < 20 AND b.v < 1200 ORDER BY a.v, b.v');
SELECT same('SELECT count(*), sum(a.v + b.v) FROM {}_t a JOIN {}_t b USING (k)');
SELECT same('SELECT count(*) FROM {}_t a FULL JOIN {}_t b ON a.v = b.v + 1500');
RESET enable_nestloop;
RESET enable_hashjoin;

-- bitmap scans, AND, OR, with NULL and impossible keys
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
SELECT same('SELECT * FROM {}_t WHERE k = 7 ORDER BY v');
SELECT same('SELECT * FROM {}_t WHERE k < 3 ORDER BY v');
SELECT same('SELECT * FROM {}_t WHERE k = 7 OR v = 9 OR v > 2995 ORDER BY v');
SELECT same('SELECT * FROM {}_t WHERE k BETWEEN 5 AND 100 AND v BETWEEN 1000 AND 1200 ORDER BY v');
SELECT same('SELECT * FROM {}_t WHERE k IN (1, 3, 499, 900) ORDER BY v');
SELECT same('SELECT count(*) FROM {}_t WHERE k IS NULL');
SELECT same('SELECT count(*) FROM {}_t WHERE k > 10 AND k < 5');
SELECT same('SELECT count(*) FROM {}_t WHERE k IS NOT NULL');
SET work_mem = '64kB';
SELECT same('SELECT count(*), sum(v) FROM {}_t WHERE k < 400');
RESET work_mem;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SET enable_bitmapscan = off;

-- index-only scans: all-visible pages, pages that are not, deleted rows
VACUUM bt_t, art_t;
SELECT same('SELECT k FROM {}_t WHERE k BETWEEN 10 AND 20 ORDER BY k');
SELECT same('SELECT count(*) FROM {}_t');
SELECT twins('DELETE FROM {}_t WHERE v % 5 = 0');
SELECT same('SELECT count(*) FROM {}_t');
SELECT same('SELECT v FROM {}_t ORDER BY v DESC');
VACUUM bt_t, art_t;
SELECT same('SELECT v FROM {}_t ORDER BY v DESC');
SELECT twins('INSERT INTO {}_t SELECT 1, i, NULL FROM generate_series(1, 3000, 5) i');
SELECT same('SELECT v FROM {}_t ORDER BY v');
SELECT same('SELECT count(*), min(v), max(v), sum(v) FROM {}_t WHERE v > 100');
-- index-only scans give back exactly what was stored, of every type
SELECT twins('CREATE TABLE {}_y (i2 int2, i8 int8, o oid, b bool, d date,
	ts timestamp, tz timestamptz, u uuid, bin bytea, txt text COLLATE "C", vc varchar(20) COLLATE "C")');
SELECT twins('INSERT INTO {}_y SELECT i - 50, (i - 50)::int8 * 92233720368547758, i * 40000000::int8, i % 2 = 0,
	date ''2000-01-01'' + (i - 50) * 1000, timestamp ''2000-01-01'' + (i - 50) * interval ''1000 days 1.000001 s'',
	timestamptz ''2000-01-01 UTC'' - (i - 50) * interval ''1000 days 1.000001 s'', md5(i::text)::uuid,
	decode(repeat(''00ff01'', i % 4) || lpad(to_hex(i % 16), 2, ''0'') || repeat(''00'', i % 3), ''hex''),
	repeat(chr(33 + i), i % 5) || '' '', repeat(''x'', i % 20)
	FROM generate_series(1, 99) i');
SELECT twins('INSERT INTO {}_y VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(-32768, -9223372036854775808, 0, false, ''-infinity'', ''-infinity'', ''-infinity'', ''00000000-0000-0000-0000-000000000000'', '''', '''', ''''),
	(32767, 9223372036854775807, 4294967295, true, ''infinity'', ''infinity'', ''infinity'', ''ffffffff-ffff-ffff-ffff-ffffffffffff'', ''\xffffffff'', repeat(''long '', 200), ''v'')');
DO $$
DECLARE
	c text;
BEGIN
	FOREACH c IN ARRAY ARRAY['i2', 'i8', 'o', 'b', 'd', 'ts', 'tz', 'u', 'bin', 'txt', 'vc'] LOOP
		EXECUTE format('CREATE INDEX bt_y_%s ON bt_y USING btree (%1$s)', c);
		EXECUTE format('CREATE INDEX art_y_%s ON art_y USING art (%1$s)', c);
		EXECUTE format('CREATE INDEX bt_y_%s_desc ON bt_y USING btree (%1$s DESC NULLS LAST, i2)', c);
		EXECUTE format('CREATE INDEX art_y_%s_desc ON art_y USING art (%1$s DESC NULLS LAST, i2)', c);
	END LOOP;
END $$;
VACUUM ANALYZE bt_y, art_y;
CREATE TABLE pivot AS SELECT * FROM bt_y WHERE i2 = 3;
SELECT c, same(format('SELECT %s FROM {}_y ORDER BY %1$s', c))
	FROM unnest(ARRAY['i2', 'i8', 'o', 'b', 'd', 'ts', 'tz', 'u', 'bin', 'txt', 'vc']) c;
SELECT c, same(format('SELECT %s, i2 FROM {}_y ORDER BY %1$s DESC NULLS LAST, i2', c))
	FROM unnest(ARRAY['i2', 'i8', 'o', 'b', 'd', 'ts', 'tz', 'u', 'bin', 'txt', 'vc']) c;
SELECT c, same(format('SELECT %s FROM {}_y WHERE %1$s >= (SELECT %1$s FROM pivot) ORDER BY %1$s', c))
	FROM unnest(ARRAY['i2', 'i8', 'o', 'b', 'd', 'ts', 'tz', 'u', 'bin', 'txt', 'vc']) c;
SELECT c, same(format('SELECT %s FROM {}_y WHERE %1$s < (SELECT %1$s FROM pivot) ORDER BY %1$s', c))
	FROM unnest(ARRAY['i2', 'i8', 'o', 'b', 'd', 'ts', 'tz', 'u', 'bin', 'txt', 'vc']) c;

-- dates against timestamps: the bound depends on the time zone
SET timezone = 'America/New_York';
SELECT same('SELECT d FROM {}_y WHERE d < timestamptz ''2001-01-01 12:00 UTC'' ORDER BY d');
SELECT same('SELECT d FROM {}_y WHERE d >= timestamp ''2001-01-01 12:00'' ORDER BY d');
SELECT same('SELECT tz FROM {}_y WHERE tz < date ''2001-01-01'' ORDER BY tz');
SELECT same('SELECT tz FROM {}_y WHERE tz = timestamp ''1999-12-31 19:00'' ORDER BY tz');
SELECT same('SELECT ts FROM {}_y WHERE ts > timestamptz ''2001-01-01 12:00 UTC'' ORDER BY ts');
RESET timezone;

-- a scan that is ended half-way, by LIMIT and by error, leaves nothing behind
SELECT same('SELECT v FROM {}_t ORDER BY v LIMIT 1');
DO $$
DECLARE
	r record;
BEGIN
	FOR i IN 1 .. 200 LOOP
		BEGIN
			FOR r IN SELECT v FROM art_t WHERE v > 10 ORDER BY v LOOP
				RAISE EXCEPTION 'enough';
			END LOOP;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END $$;
SELECT clean('art_t_k'), clean('art_t_v');

-- a condition on the second column, in a bitmap scan
CREATE TABLE art_res (a int, b int);
INSERT INTO art_res SELECT i, i % 10 FROM generate_series(1, 1000) i;
CREATE INDEX art_res_ab ON art_res USING art (a, b);
SET enable_seqscan = off;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
EXPLAIN (COSTS OFF) SELECT count(*), min(b), max(b) FROM art_res WHERE a BETWEEN 100 AND 199 AND b = 3;
SELECT count(*), min(b), max(b) FROM art_res WHERE a BETWEEN 100 AND 199 AND b = 3;

SET client_min_messages = warning;
DROP SCHEMA scan CASCADE;

-- more entries of one key than a look-up copies at once
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE one_key AS SELECT 7 AS k, i AS v FROM generate_series(1, 1000) i;
CREATE INDEX one_key_k ON one_key USING art (k);
SELECT count(*), sum(v) FROM one_key WHERE k = 7;
SELECT count(*), sum(v) FROM one_key WHERE k = ANY ('{6,7,8}');
DROP TABLE one_key;
RESET enable_seqscan;
RESET enable_bitmapscan;
