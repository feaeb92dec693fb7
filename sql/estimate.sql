-- artidx_estimate against the index that is then created.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
DROP SCHEMA IF EXISTS estimate CASCADE;
DROP ROLE IF EXISTS regress_art_estimate;
RESET client_min_messages;
CREATE SCHEMA estimate;
SET search_path = estimate, public;

CREATE FUNCTION off(tab regclass, cols text[]) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	guess bigint := artidx_estimate(tab, cols);
	was bigint;
BEGIN
	EXECUTE format('CREATE INDEX estimated ON %s USING art (%s)', tab,
				   array_to_string(cols, ', '));
	was := artidx_index_size('estimated');
	DROP INDEX estimated;
	RETURN guess::float8 / was - 1;
END $$;

CREATE TABLE empty (a bigint);
SELECT artidx_estimate('empty', '{a}') AS empty, off('empty', '{a}');

-- small enough to be read whole: to the byte
CREATE TABLE small AS
	SELECT i AS serial, hashint8extended(i, 1) AS random, md5(i::text)::uuid AS id,
		   left(md5(i::text), 25) COLLATE "C" AS txt, i % 100 AS few,
		   '2024-01-01'::timestamptz + i * interval '1.37 s' AS at,
		   CASE WHEN i % 10 = 0 THEN i END AS mostly_null
	FROM generate_series(1, 20000) i;
SELECT c AS columns, off('small', c::text[]) = 0 AS exact
FROM (VALUES ('{serial}'), ('{random}'), ('{id}'), ('{txt}'), ('{few}'), ('{at}'),
			 ('{mostly_null}'), ('{few,txt}'), ('{(random / 7),few}'),
			 ('{(lower(txt))}')) v(c);

-- a sample
CREATE TABLE large AS
	SELECT i AS serial, hashint8extended(i, 1) AS random, md5(i::text)::uuid AS id,
		   left(md5(i::text), 25) COLLATE "C" AS txt,
		   abs(hashint8(i)) % 1000 AS thousand,
		   '2024-01-01'::timestamptz + i * interval '1.37 s' AS at,
		   CASE WHEN hashint8(i) % 10 = 0 THEN i END AS mostly_null
	FROM generate_series(1, 400000) i;
SET maintenance_work_mem = '256MB';
SELECT c AS columns, abs(off('large', c::text[])) < 0.2 AS near
FROM (VALUES ('{serial}'), ('{random}'), ('{id}'), ('{txt}'), ('{thousand}'), ('{at}'),
			 ('{mostly_null}'), ('{thousand,txt}')) v(c);
-- a build in several runs
SET maintenance_work_mem = '8MB';
SELECT c AS columns, abs(off('large', c::text[])) < 0.25 AS near
FROM (VALUES ('{serial}'), ('{random}'), ('{id}'), ('{txt}'), ('{thousand}'), ('{at}'),
			 ('{mostly_null}'), ('{thousand,txt}')) v(c);
RESET maintenance_work_mem;

-- the same answer every time
SELECT count(DISTINCT artidx_estimate('large', '{random}')) FROM generate_series(1, 2);

-- keys longer than all the memory for a sample
CREATE TABLE wide AS
	SELECT i, repeat(md5(i::text), 100) COLLATE "C" AS t FROM generate_series(1, 3000) i;
SET maintenance_work_mem = '1MB';
SELECT artidx_estimate('wide', '{t}') > 3000 * 3200 AS more_than_the_keys;
RESET maintenance_work_mem;

-- what cannot be
SELECT artidx_estimate('small', '{}');
SELECT artidx_estimate('small', '{NULL}');
SELECT artidx_estimate('small', '{{few},{txt}}');
SELECT artidx_estimate('small', '{no_such}');
SELECT artidx_estimate('small', '{serial + 1}');
SELECT artidx_estimate('small', '{(serial +)}');
SELECT artidx_estimate('small', '{(serial) FROM small}');
SELECT artidx_estimate('small', '{(serial) AS x}');
SELECT artidx_estimate('small', '{(no_such + 1)}');
SELECT artidx_estimate('small', '{(random())}');
SELECT artidx_estimate('small', '{(count(*))}');
SELECT artidx_estimate('small', '{"((SELECT 1))"}');
-- with a payload
SELECT off('small', '{(few::numeric)}') AS numeric, off('small', '{(serial / 10.0)}') AS numerics;
-- keys that are compared
SELECT artidx_estimate('small', '{(ARRAY[few])}') BETWEEN 700000 AND 1000000 AS arrays;
-- columns that are computed when they are read, from 18 on: as CREATE INDEX
DO $$
DECLARE
	col text;
BEGIN
	IF current_setting('server_version_num')::int < 180000 THEN RETURN; END IF;
	EXECUTE 'CREATE TABLE computed (a int, b int GENERATED ALWAYS AS (a + 1) VIRTUAL)';
	PERFORM artidx_estimate('computed', '{a}');
	FOREACH col IN ARRAY ARRAY['b', '(b + 1)', '(b IS NULL OR true)'] LOOP
		BEGIN
			PERFORM artidx_estimate('computed', ARRAY[col]);
			RAISE 'estimated: %', col;
		EXCEPTION WHEN feature_not_supported THEN NULL;
		END;
	END LOOP;
END $$;
CREATE VIEW seen AS SELECT * FROM small;
SELECT artidx_estimate('seen', '{few}');
CREATE TABLE parts (a int) PARTITION BY LIST (a);
SELECT artidx_estimate('parts', '{a}');

-- privileges: those of SELECT on the columns, and no policies
CREATE ROLE regress_art_estimate;
GRANT USAGE ON SCHEMA estimate TO regress_art_estimate;
SET ROLE regress_art_estimate;
SELECT artidx_estimate('small', '{few}');
SELECT artidx_estimate('small', '{(1)}');
RESET ROLE;
GRANT SELECT (few) ON small TO regress_art_estimate;
SET ROLE regress_art_estimate;
SELECT artidx_estimate('small', '{few}') > 0 AS permitted;
SELECT artidx_estimate('small', '{(few + 1)}') > 0 AS permitted;
SELECT artidx_estimate('small', '{few,serial}');
SELECT artidx_estimate('small', '{(few + serial)}');
SELECT artidx_estimate('small', '{(hash_record(small))}');
RESET ROLE;
ALTER TABLE small ENABLE ROW LEVEL SECURITY;
SET ROLE regress_art_estimate;
SELECT artidx_estimate('small', '{few}');
RESET ROLE;
SELECT artidx_estimate('small', '{few}') > 0 AS owner;

SET client_min_messages = warning;
DROP SCHEMA estimate CASCADE;
DROP ROLE regress_art_estimate;
