--
-- INCLUDE columns, beside btree's.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA inc;
SET search_path = inc, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

SELECT twins('CREATE TABLE {}_t (id int, k int, t text, n numeric, j json, p point, c text, w text)');
SELECT twins($$INSERT INTO {}_t SELECT i, i % 500, CASE WHEN i % 7 > 0 THEN md5(i::text) END, (i % 20) + 0.00,
	CASE WHEN i % 11 > 0 THEN json_build_object('i', i) END, CASE WHEN i % 5 > 0 THEN point(i, -i) END,
	chr(65 + i % 50), repeat(md5(i::text), i % 30) FROM generate_series(1, 3000) i$$);
-- no operator class is needed, and the same column may come twice
CREATE UNIQUE INDEX bt_id ON bt_t USING btree (id) INCLUDE (t, j, p);
CREATE UNIQUE INDEX art_id ON art_t USING art (id) INCLUDE (t, j, p);
CREATE INDEX bt_k ON bt_t USING btree (k DESC, n) INCLUDE (n, k, w);
CREATE INDEX art_k ON art_t USING art (k DESC, n) INCLUDE (n, k, w);
-- compared keys
CREATE INDEX bt_c ON bt_t USING btree (c COLLATE "und-x-icu", id) INCLUDE (n, j);
CREATE INDEX art_c ON art_t USING art (c COLLATE "und-x-icu", id) INCLUDE (n, j);
SELECT twins('CREATE INDEX {}_bad ON {}_t (k) INCLUDE ((id + 1))');
SELECT pg_get_indexdef('art_id'::regclass);
SELECT attnum, pg_index_column_has_property('art_id', attnum, 'returnable') AS returnable,
	pg_index_column_has_property('art_id', attnum, 'orderable') AS orderable
	FROM pg_attribute WHERE attrelid = 'art_id'::regclass ORDER BY attnum;
VACUUM ANALYZE bt_t;
VACUUM ANALYZE art_t;

-- both by the index alone; equal keys come in any order
SELECT same('SELECT id, t, j, p FROM {}_t ORDER BY id');
SELECT same('SELECT t, j::text, p::text FROM {}_t WHERE id = 1234');
SELECT same('SELECT t, p::text FROM {}_t WHERE id BETWEEN 5 AND 25 ORDER BY id DESC');
SELECT same('SELECT k, n, w FROM {}_t WHERE k = 77 ORDER BY k DESC, n, w');
SELECT same('SELECT k, n, length(w) FROM {}_t WHERE k < 300 AND k > 290 AND n > 3 ORDER BY k DESC, n, length(w)');
SELECT same('SELECT c, id, n, j::text FROM {}_t ORDER BY c COLLATE "und-x-icu", id');
-- a condition on an INCLUDE column is a filter
SELECT same('SELECT id FROM {}_t WHERE id < 500 AND t IS NULL ORDER BY id');
SELECT same('SELECT id, t FROM {}_t WHERE id > 100 AND t LIKE ''ab%'' ORDER BY id');
SELECT same('SELECT min(id), max(id) FROM {}_t WHERE t IS NOT NULL');

-- the key alone makes a duplicate
SELECT twins('INSERT INTO {}_t (id, t) VALUES (7, ''another'')');
SELECT twins('UPDATE {}_t SET id = 8 WHERE id = 9');
SELECT twins('INSERT INTO {}_t (id, t) VALUES (NULL, ''x''), (NULL, ''y'')');
SELECT twins($$INSERT INTO {}_t (id, t, n) VALUES (7, 'new', 5), (70000, 'other', 6) ON CONFLICT (id) DO UPDATE SET t = excluded.t, n = excluded.n + 0.500$$);
SELECT twins($$INSERT INTO {}_t (id, t) VALUES (7, 'again'), (70001, 'z') ON CONFLICT DO NOTHING$$);
SELECT same('SELECT id, t, j::text FROM {}_t WHERE id IN (7, 70000, 70001) ORDER BY id');
CREATE UNIQUE INDEX art_dup ON art_t USING art (k) INCLUDE (id);

-- changes of INCLUDE columns alone; long chains of versions of one key
SELECT twins('UPDATE {}_t SET t = upper(t), j = NULL WHERE id % 3 = 0');
SELECT twins('UPDATE {}_t SET p = point(1, 1) WHERE id % 10 = 1');
DO $$
BEGIN
	FOR g IN 1 .. 100 LOOP
		UPDATE bt_t SET t = 'version ' || g, w = repeat('v', g) WHERE id = 55;
		UPDATE art_t SET t = 'version ' || g, w = repeat('v', g) WHERE id = 55;
	END LOOP;
END $$;
SELECT twins('INSERT INTO {}_t (id, t) VALUES (55, ''no'')');
BEGIN;
DELETE FROM art_t WHERE id = 55;
INSERT INTO art_t (id, t) VALUES (55, 'yes');
ROLLBACK;
SELECT same('SELECT id, t, p::text FROM {}_t ORDER BY id');
SELECT same('SELECT id, t, p::text FROM {}_t WHERE id = 55');
SELECT twins('DELETE FROM {}_t WHERE id % 4 = 2');
VACUUM bt_t;
VACUUM art_t;
SELECT same('SELECT id, t, j, p FROM {}_t ORDER BY id');
SELECT same('SELECT k, n, w FROM {}_t ORDER BY k DESC, n, w');
SELECT clean('art_id'), clean('art_k'), clean('art_c');

-- every structure and synchronization has them
CREATE FUNCTION engines() RETURNS TABLE (structure text, sync text, outcome text) LANGUAGE plpgsql AS $$
BEGIN
	FOR structure, sync IN SELECT s, y FROM unnest(ARRAY['art', 'btree']) s, unnest(ARRAY['olc', 'rowex', 'optiql', 'coarse']) y
			WHERE s <> 'btree' OR y <> 'rowex' LOOP
		EXECUTE format('ALTER INDEX art_id SET (structure = %s, sync = %s)', structure, sync);
		EXECUTE format('ALTER INDEX art_k SET (structure = %s, sync = %s)', structure, sync);
		outcome := same('SELECT id, t, j, p FROM {}_t ORDER BY id') || '; ' ||
			same('SELECT k, n, w FROM {}_t WHERE k = 77 ORDER BY k DESC, n, w') || '; ' ||
			twins('INSERT INTO {}_t (id, t) VALUES (7, ''another'')') || '; ' ||
			clean('art_id') || ' ' || clean('art_k');
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM engines();

-- constraints
CREATE TABLE art_w (a int, b text, EXCLUDE USING art (a WITH =) INCLUDE (b));
INSERT INTO art_w VALUES (1, 'one'), (2, 'two');
INSERT INTO art_w VALUES (1, 'another one');
INSERT INTO art_w VALUES (1, 'another one') ON CONFLICT DO NOTHING;
SELECT * FROM art_w;
-- wide ones, toasted: as they are
CREATE TABLE art_l (a int, b text);
CREATE INDEX art_l_a ON art_l USING art (a) INCLUDE (b);
INSERT INTO art_l SELECT i, (SELECT string_agg(md5(g::text), '') FROM generate_series(1, i * 300) g) FROM generate_series(0, 5) i;
INSERT INTO art_l VALUES (9, repeat('z', 100000));
VACUUM art_l;
EXPLAIN (COSTS OFF) SELECT a, length(b), md5(b) FROM art_l ORDER BY a;
SELECT a, length(b), md5(b) = (SELECT md5(string_agg(md5(g::text), '')) FROM generate_series(1, a * 300) g) AS same FROM art_l ORDER BY a;
INSERT INTO art_l VALUES (10, repeat('z', 5 * 1024 * 1024));
SELECT clean('art_l_a');
-- SET STORAGE changes nothing of what is there
ALTER TABLE art_l ALTER b SET STORAGE PLAIN;
INSERT INTO art_l VALUES (11, 'short');
VACUUM art_l;
SELECT a, length(b) FROM art_l ORDER BY a DESC;
SELECT clean('art_l_a');
DROP SCHEMA inc CASCADE;
