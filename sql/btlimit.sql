--
-- A constraint's index takes no key that btree could not take, and all that
-- it could; other indexes take longer ones.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;
\set VERBOSITY terse
SET artidx.replace_btree = constraints;

-- the same rows into art and btree: random letters, which do not compress, and
-- spaces, which do, of every storage
CREATE FUNCTION letters(n int, storage "char") RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN storage = 'c' THEN repeat('x', n) ELSE
		left((SELECT string_agg(md5(i::text || n), '' ORDER BY i) FROM generate_series(1, 1 + n / 32) i), n) END $$;
CREATE TABLE bla (v text UNIQUE, w bytea, i int, UNIQUE (i, w) INCLUDE (v));
SET artidx.replace_btree = off;
CREATE TABLE blb (v text UNIQUE, w bytea, i int, UNIQUE (i, w) INCLUDE (v));
SET artidx.replace_btree = constraints;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname ~ '^bl[ab]_' ORDER BY 1;
-- does the table take it, with which SQLSTATE if not
CREATE FUNCTION takes(tab text, val text, byt text, i int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO %I VALUES ($1, $2::bytea, $3)', tab) USING val, byt, i;
	RETURN 'ok';
EXCEPTION WHEN program_limit_exceeded THEN
	RETURN SQLSTATE || regexp_replace(SQLERRM, 'bl[ab]', 'bl');
END $$;
CREATE FUNCTION differ(storage text) RETURNS TABLE (n int, kind "char", a text, b text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('ALTER TABLE bla ALTER v SET STORAGE %1$s, ALTER w SET STORAGE %1$s', storage);
	EXECUTE format('ALTER TABLE blb ALTER v SET STORAGE %1$s, ALTER w SET STORAGE %1$s', storage);
	RETURN QUERY
		SELECT s.n, k, takes('bla', letters(s.n, k), letters(s.n / 3, k), s.n), takes('blb', letters(s.n, k), letters(s.n / 3, k), s.n)
		FROM unnest(ARRAY[10, 500, 1500, 1990, 2000, 2010, 2020, 2030, 2640, 2650, 2676, 2680, 2684, 2685, 2686, 2687, 2688,
			2689, 2692, 2693, 2696, 2697, 2700, 2704, 2712, 3000, 4000, 8100, 8200, 10000, 100000]) AS s (n),
			unnest('{c,r}'::"char"[]) AS k;
	EXECUTE 'TRUNCATE bla, blb';
END $$;
SELECT storage, count(*), count(*) FILTER (WHERE a = 'ok') AS taken, count(*) FILTER (WHERE a <> b) AS differ,
	count(DISTINCT left(a, 5)) - 1 AS errors
	FROM unnest('{EXTENDED,MAIN,EXTERNAL,PLAIN}'::text[]) storage, differ(storage) GROUP BY 1 ORDER BY 1;

-- the words
\set VERBOSITY default
INSERT INTO bla VALUES (letters(5000, 'r'));
INSERT INTO bla VALUES ('ok', letters(3000, 'r')::bytea, 1);
\set VERBOSITY terse
INSERT INTO bla VALUES ('short', 'w', 1);
UPDATE bla SET v = letters(3000, 'r');
INSERT INTO bla VALUES (letters(3000, 'r')) ON CONFLICT (v) DO NOTHING;
SELECT length(v) FROM bla;

-- an index that is not a constraint's takes more, and does not become one's with it
CREATE TABLE blc (k text NOT NULL, n int);
CREATE UNIQUE INDEX blc_k ON blc USING art (k) INCLUDE (n);
INSERT INTO blc VALUES (letters(100000, 'r'), 1), ('short', 2);
ALTER TABLE blc ADD UNIQUE USING INDEX blc_k;
ALTER TABLE blc ADD PRIMARY KEY USING INDEX blc_k;
ALTER TABLE blc ADD UNIQUE (k);
ALTER TABLE blc ADD EXCLUDE USING art (k WITH =);
DELETE FROM blc WHERE k <> 'short';
ALTER TABLE blc ADD PRIMARY KEY USING INDEX blc_k;
INSERT INTO blc VALUES (letters(100000, 'r'), 1);
CALL artidx_to_btree('blc_k');
-- a parallel build of a constraint's index
SET artidx.replace_btree = constraints;
CREATE TABLE bld (k text);
INSERT INTO bld SELECT i FROM generate_series(1, 1000) i;
INSERT INTO bld VALUES (letters(5000, 'r'));
SET min_parallel_table_scan_size = 0;
ALTER TABLE bld SET (parallel_workers = 2);
ALTER TABLE bld ADD UNIQUE (k);
DELETE FROM bld WHERE length(k) > 1000;
ALTER TABLE bld ADD UNIQUE (k);
CREATE UNIQUE INDEX bld_u ON bld USING art (k);
DROP TABLE bla, blb, blc, bld;
DROP FUNCTION takes, differ, letters;
