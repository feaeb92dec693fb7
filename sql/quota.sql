-- What an index may take, and what is said when that is full.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;

-- the account of artidx_memory: nothing is missing, nothing counted twice
SELECT area_bytes = used_bytes + free_bytes + reserve_bytes + overhead_bytes AS adds_up,
	   largest_free_bytes <= free_bytes AS a_piece_of_what_is_free,
	   retired_bytes <= used_bytes AS and_this_of_what_is_used
FROM artidx_memory;

-- a unique index at its own cap says so, in every command that finds it full
CREATE TABLE cap (k bigint, n int);
CREATE UNIQUE INDEX cap_k ON cap USING art (k) WITH (max_memory = '256kB');
INSERT INTO cap SELECT i * 7919, i FROM generate_series(1, 100000) i;
ALTER INDEX cap_k SET (max_memory = '64MB');
INSERT INTO cap SELECT i * 7919, i FROM generate_series(1, 100000) i;
ALTER INDEX cap_k SET (max_memory = '256kB');
CREATE FUNCTION said(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
	EXECUTE command;
	RETURN 'done';
EXCEPTION WHEN out_of_memory THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN SQLERRM || '; ' || regexp_replace(detail, '(takes|needs about) [0-9.]+ [kM]B', '\1 ...') || ' ' || hint;
END $$;
-- lowered below what it has: it takes no row, not one, until that is altered
SELECT said('INSERT INTO cap VALUES (1)');
SELECT said('INSERT INTO cap VALUES (NULL)');
SELECT said('UPDATE cap SET k = -k WHERE n = 1');
SELECT said('DELETE FROM cap WHERE n = 1');
SELECT said('UPDATE cap SET n = 0 WHERE n = 2');
-- (rows that were refused may still have entries)
SELECT state, reason, entries >= 100000 AS all_rows FROM artidx_indexes WHERE indexrelname = 'cap_k';
-- what is rolled back has no effect
BEGIN;
ALTER INDEX cap_k SET (max_memory = '64MB');
INSERT INTO cap VALUES (1);
ROLLBACK;
SELECT said('INSERT INTO cap VALUES (1)');
ALTER INDEX cap_k RESET (max_memory);
BEGIN;
ALTER INDEX cap_k SET (max_memory = '256kB');
SELECT said('INSERT INTO cap VALUES (1)');
ROLLBACK;
SELECT said('INSERT INTO cap VALUES (1)');
ALTER INDEX cap_k SET (max_memory = '256kB');
-- absent for it, after REINDEX, it says so, too
SET client_min_messages = error;
REINDEX INDEX cap_k;
RESET client_min_messages;
SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'cap_k';
SELECT said('INSERT INTO cap VALUES (2)');
SELECT said($$SELECT artidx_build('cap_k')$$);
SELECT sealed > 0 AS counted FROM artidx_memory;
ALTER INDEX cap_k SET (max_memory = '64MB');
SELECT said('INSERT INTO cap VALUES (2)');
SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'cap_k';
DROP TABLE cap;

-- an index that is not unique is sealed by the ALTER INDEX, which says so
CREATE TABLE low (k bigint);
INSERT INTO low SELECT i * 7919 FROM generate_series(1, 100000) i;
CREATE INDEX low_k ON low USING art (k);
SET client_min_messages = error;
BEGIN;
ALTER INDEX low_k SET (max_memory = '256kB');
INSERT INTO low VALUES (1);
SELECT state FROM artidx_indexes WHERE indexrelname = 'low_k';
ROLLBACK;
SELECT state, seals FROM artidx_indexes WHERE indexrelname = 'low_k';
RESET client_min_messages;
\set VERBOSITY terse
ALTER INDEX low_k SET (max_memory = '256kB');
\set VERBOSITY default
SELECT state <> 'ready' AS out, seals FROM artidx_indexes WHERE indexrelname = 'low_k';
DROP TABLE low;

-- the limits of groups: percentages and sizes
SHOW artidx.temp_limit;
SHOW artidx.database_limit;
SHOW artidx.role_limit;
SELECT name, context FROM pg_settings WHERE name LIKE 'artidx.%limit' ORDER BY name;
SET artidx.temp_limit = '100%';
ALTER SYSTEM SET artidx.temp_limit = '64';
ALTER SYSTEM SET artidx.temp_limit = '101%';
ALTER SYSTEM SET artidx.temp_limit = '-1%';
ALTER SYSTEM SET artidx.temp_limit = '%';
ALTER SYSTEM SET artidx.temp_limit = 'half%';
ALTER SYSTEM SET artidx.temp_limit = '10 furlongs';
ALTER SYSTEM SET artidx.temp_limit = '';
ALTER SYSTEM SET artidx.temp_limit = ' 12.5 % ';
ALTER SYSTEM SET artidx.database_limit = '1.5GB';
ALTER SYSTEM SET artidx.role_limit = '0%';
ALTER SYSTEM RESET artidx.temp_limit;
ALTER SYSTEM RESET artidx.database_limit;
ALTER SYSTEM RESET artidx.role_limit;

-- whose the memory is
CREATE ROLE regress_art_owner;
CREATE TABLE mine (k int);
ALTER TABLE mine OWNER TO regress_art_owner;
INSERT INTO mine SELECT generate_series(1, 1000);
CREATE INDEX mine_a ON mine USING art (k);
CREATE INDEX mine_b ON mine USING art (k) WHERE k < 10;
CREATE UNLOGGED TABLE fleeting (k int);
ALTER TABLE fleeting OWNER TO regress_art_owner;
CREATE INDEX fleeting_k ON fleeting USING art (k);
SET ROLE regress_art_owner;
CREATE TEMP TABLE gone_soon (k int);
CREATE INDEX ON gone_soon USING art (k);
SELECT * FROM artidx_usage;
RESET ROLE;
SELECT database = current_database() AS here, owner, kind, indexes, sealed, bytes > 0 AS some,
	   limited_by, limit_used_bytes >= bytes AS within, limit_bytes > limit_used_bytes AS more
FROM artidx_usage WHERE owner = 'regress_art_owner' ORDER BY kind;
SELECT sum(bytes) BETWEEN 1 AND (SELECT used_bytes FROM artidx_memory) AS all_of_it FROM artidx_usage;
DROP TABLE gone_soon, fleeting, mine;
SELECT count(*) FROM artidx_usage WHERE owner = 'regress_art_owner';
DROP ROLE regress_art_owner;
DROP FUNCTION said(text);

-- an index costs some 900 bytes beside its structure, and no more
CREATE TABLE many (k int);
SELECT overhead_bytes AS before FROM artidx_memory \gset
DO $$ BEGIN FOR i IN 1 .. 300 LOOP EXECUTE format('CREATE INDEX many_%s ON many USING art (k)', i); END LOOP; END $$;
SELECT (overhead_bytes - :before) / 300 < 1000 AS small FROM artidx_memory;
DROP TABLE many;

-- the size of a whole database
CREATE TABLE sized (a int, b text COLLATE "C", c int, d tsvector, e json);
INSERT INTO sized SELECT i, md5(i::text), i % 10, NULL, '[1]' FROM generate_series(1, 10000) i;
CREATE INDEX sized_a ON sized (a) INCLUDE (b);
CREATE INDEX sized_expr ON sized (lower(b), c DESC);
CREATE INDEX sized_part ON sized (b) WHERE c = 3;
CREATE INDEX sized_icu ON sized (b COLLATE "und-x-icu");
CREATE INDEX sized_json ON sized (c) INCLUDE (e);
CREATE INDEX sized_hash ON sized USING hash (a);
CREATE OPERATOR CLASS ours FOR TYPE tsvector USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 tsvector_cmp(tsvector, tsvector);
CREATE INDEX sized_not ON sized (d ours);
ANALYZE sized;
CREATE TABLE guesses AS SELECT * FROM artidx_estimate_database() WHERE indrelid = 'sized'::regclass;
-- beside what they take as art indexes
DO $$
DECLARE
	i regclass;
BEGIN
	FOR i IN SELECT indexrelid FROM guesses LOOP
		EXECUTE replace(replace(pg_get_indexdef(i), 'USING btree', 'USING art'), i::text, i || '_art');
	END LOOP;
END $$;
SELECT indexrelid, btree_bytes = pg_relation_size(indexrelid) AS btree,
	   round(art_bytes::numeric / artidx_index_size((indexrelid || '_art')::regclass), 1) AS as_art,
	   art_bytes = artidx_estimate((indexrelid || '_art')::regclass) AS same
FROM guesses ORDER BY indexrelid::text;
DROP TABLE guesses;
SELECT artidx_estimate('sized');
SELECT artidx_estimate('sized_hash');
SELECT artidx_estimate(0);
CREATE ROLE regress_art_reader;
SET ROLE regress_art_reader;
SELECT count(*) FROM artidx_estimate_database() WHERE indrelid::text = 'sized';
SELECT artidx_estimate('sized_part');
RESET ROLE;
DROP ROLE regress_art_reader;
DROP TABLE sized;
DROP OPERATOR CLASS ours USING btree;
