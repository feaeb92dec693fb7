--
-- What core does by the equality operator of any access method, from 18 on:
-- foreign keys, unique indexes of partitioned tables.  Beside btree twins.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all
SELECT current_setting('server_version_num')::int < 180000 AS before \gset
\if :before
\quit
\endif
CREATE SCHEMA equality;
SET search_path = equality, public;

-- what is referenced is an index of art
CREATE TABLE bt_k (a int, b text, v text);
CREATE TABLE art_k (a int, b text, v text);
CREATE UNIQUE INDEX bt_k_a ON bt_k (a);
CREATE UNIQUE INDEX art_k_a ON art_k USING art (a);
CREATE UNIQUE INDEX bt_k_ba ON bt_k (b, a);
CREATE UNIQUE INDEX art_k_ba ON art_k USING art (b, a);
SELECT twins($$INSERT INTO {}_k SELECT i, 'b' || i, 'v' FROM generate_series(1, 100) i$$);
SELECT twins('CREATE TABLE {}_f (id int, a int REFERENCES {}_k (a) ON UPDATE CASCADE ON DELETE CASCADE)');
SELECT twins('CREATE TABLE {}_f2 (y text, x bigint, FOREIGN KEY (y, x) REFERENCES {}_k (b, a) MATCH FULL ON DELETE SET NULL)');
SELECT twins('INSERT INTO {}_f SELECT i, i FROM generate_series(1, 100) i');
SELECT twins($$INSERT INTO {}_f2 SELECT 'b' || i, i FROM generate_series(51, 100) i$$);
SELECT twins('INSERT INTO {}_f VALUES (101, 101)');
SELECT twins($$INSERT INTO {}_f2 VALUES ('b1', 2)$$);
SELECT twins($$INSERT INTO {}_f2 VALUES ('b1', NULL)$$);
SELECT twins('UPDATE {}_k SET a = a + 1000 WHERE a < 11');
SELECT twins('UPDATE {}_k SET a = a + 1000 WHERE a > 90');
SELECT twins('DELETE FROM {}_k WHERE a BETWEEN 41 AND 60');
SELECT same('SELECT * FROM {}_f ORDER BY id') !~ 'DIFFERENT' AS same, count(*), min(a), max(a) FROM art_f;
SELECT same('SELECT * FROM {}_f2 ORDER BY x, y') !~ 'DIFFERENT' AS same, count(*), min(x), max(x) FROM art_f2;

-- a key of a partitioned table
CREATE TABLE bt_p (a int, v text) PARTITION BY RANGE (a);
CREATE TABLE art_p (a int, v text) PARTITION BY RANGE (a);
CREATE UNIQUE INDEX bt_p_a ON bt_p (a);
CREATE UNIQUE INDEX art_p_a ON art_p USING art (a);
SELECT twins('CREATE TABLE {}_p1 PARTITION OF {}_p FOR VALUES FROM (0) TO (100)');
SELECT twins('CREATE TABLE {}_p2 PARTITION OF {}_p FOR VALUES FROM (100) TO (200)');
SELECT twins($$INSERT INTO {}_p SELECT i, 'v' || i FROM generate_series(0, 199) i$$);
SELECT twins($$INSERT INTO {}_p VALUES (7, 'new'), (107, 'new') ON CONFLICT (a) DO UPDATE SET v = excluded.v$$);
SELECT twins($$INSERT INTO {}_p VALUES (8, 'no') ON CONFLICT DO NOTHING$$);
SELECT regexp_replace(twins($$INSERT INTO {}_p VALUES (108, 'no')$$), '\s+', ' ', 'g');
SELECT twins('CREATE TABLE {}_pf (a int REFERENCES {}_p (a))');
SELECT twins('INSERT INTO {}_pf SELECT i FROM generate_series(50, 149) i');
SELECT twins('INSERT INTO {}_pf VALUES (200)');
SELECT twins('DELETE FROM {}_p WHERE a = 60');
SELECT twins('UPDATE {}_p SET a = 0 WHERE a = 160');
SELECT twins('DELETE FROM {}_p WHERE a = 0');
SELECT twins('UPDATE {}_p SET a = 0 WHERE a = 160');
SELECT same('SELECT * FROM {}_p ORDER BY a') !~ 'DIFFERENT' AS same, count(*), max(v) FROM art_p;
SELECT indexrelid::regclass, clean(indexrelid) FROM artidx_indexes JOIN pg_class ON oid = indexrelid WHERE relnamespace = 'equality'::regnamespace ORDER BY indexrelid::regclass::text;

-- a key with WITHOUT OVERLAPS is core's, of GiST, whatever the settings say
SET artidx.replace_btree = constraints;
CREATE TABLE o (id int4range, d tstzrange, PRIMARY KEY (id, d WITHOUT OVERLAPS));
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'o_pkey';
RESET artidx.replace_btree;

SET client_min_messages = warning;
DROP SCHEMA equality CASCADE;
