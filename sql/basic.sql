--
-- What an index is for: the same rows in the same order as with btree, after
-- inserts, updates, deletes and VACUUM, whatever the order of the columns.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA basic;
SET search_path = basic, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- an index on a table with rows, and one on an empty table that is filled
SELECT twins('CREATE TABLE {}_t (k int, v int, txt text COLLATE "C")');
SELECT twins('INSERT INTO {}_t SELECT (i * 7919) % 5003, i, md5(i::text)
	FROM generate_series(1, 4000) i');
CREATE INDEX bt_t_k ON bt_t USING btree (k);
CREATE INDEX art_t_k ON art_t USING art (k);
CREATE INDEX bt_t_vk ON bt_t USING btree (v, k);
CREATE INDEX art_t_vk ON art_t USING art (v, k);
CREATE INDEX bt_t_txt ON bt_t USING btree (txt);
CREATE INDEX art_t_txt ON art_t USING art (txt);

SELECT twins('CREATE TABLE {}_e (k int, v int)');
-- (btree returns deduplicated rows in another order backward)
CREATE INDEX bt_e_k ON bt_e USING btree (k) WITH (deduplicate_items = off);
CREATE INDEX art_e_k ON art_e USING art (k);
SELECT same('SELECT * FROM {}_e ORDER BY k');
SELECT same('SELECT * FROM {}_e WHERE k = 1');
SELECT twins('INSERT INTO {}_e VALUES (3, 1)');
SELECT same('SELECT * FROM {}_e ORDER BY k');
SELECT twins('INSERT INTO {}_e SELECT (i * 31) % 101, i FROM generate_series(1, 1000) i');
SELECT same('SELECT * FROM {}_e ORDER BY k');
SELECT same('SELECT * FROM {}_e ORDER BY k DESC');
VACUUM ANALYZE bt_t, art_t, bt_e, art_e;

-- one column: every operator, both directions, bounds in and out of range
SELECT same('SELECT * FROM {}_t WHERE k = 77');
SELECT same('SELECT * FROM {}_t WHERE k = -77');
SELECT same('SELECT * FROM {}_t WHERE k < 50 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE k <= 50 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE k > 4950 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE k >= 4950 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE k > 4950 ORDER BY k DESC');
SELECT same('SELECT * FROM {}_t WHERE k BETWEEN 100 AND 300 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE k BETWEEN 100 AND 300 ORDER BY k DESC');
SELECT same('SELECT * FROM {}_t WHERE k BETWEEN 300 AND 100 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE k > 100 AND k > 200 AND k < 400 AND k <= 390 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE k = 300 AND k = ANY (''{100,200}'')');
SELECT same('SELECT * FROM {}_t WHERE k > 2147483646 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE k = 3000000000');
SELECT same('SELECT * FROM {}_t WHERE k < 3000000000 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE k > (-3000000000)::bigint AND k < 10::smallint ORDER BY k');
SELECT same('SELECT k FROM {}_t ORDER BY k LIMIT 7');
SELECT same('SELECT k FROM {}_t ORDER BY k DESC LIMIT 7 OFFSET 3');
SELECT same('SELECT min(k), max(k) FROM {}_t');
SELECT same('SELECT min(k) FROM {}_t WHERE k > 1234');
SELECT same('SELECT k FROM {}_t WHERE k = NULL');

-- several columns: prefixes, a range behind equalities, filters, no prefix
SELECT same('SELECT * FROM {}_t WHERE v = 17 ORDER BY k');
SELECT same('SELECT * FROM {}_t WHERE v = 17 AND k > 0 ORDER BY v, k');
SELECT same('SELECT * FROM {}_t WHERE v = 17 AND k = 4545 ORDER BY v, k');
SELECT same('SELECT v, k FROM {}_t WHERE v > 3900 AND k < 1000 ORDER BY v, k');
SELECT same('SELECT v, k FROM {}_t WHERE v > 3900 AND k < 1000 ORDER BY v DESC, k DESC');
SELECT same('SELECT v, k FROM {}_t WHERE v BETWEEN 10 AND 20 AND k >= 2000 ORDER BY v, k');
SELECT same('SELECT * FROM {}_t WHERE v IS NOT NULL AND v < 1000 AND k < 400 ORDER BY v, k');

-- text
SELECT same('SELECT txt FROM {}_t WHERE txt >= ''a'' AND txt < ''b'' ORDER BY txt');
SELECT same('SELECT txt FROM {}_t WHERE txt >= ''a'' AND txt < ''b'' ORDER BY txt DESC');
SELECT same('SELECT txt FROM {}_t WHERE txt LIKE ''ab%'' ORDER BY txt');
SELECT same('SELECT v FROM {}_t WHERE txt = md5(''12'')');
SELECT same('SELECT max(txt), min(txt) FROM {}_t');

-- NULLs, the four ways an index can place and turn them
SELECT twins('CREATE TABLE {}_n (a int, b int)');
SELECT twins('INSERT INTO {}_n SELECT nullif(i % 7, 3), nullif(i % 11, 5)
	FROM generate_series(1, 500) i');
CREATE INDEX bt_n_1 ON bt_n USING btree (a, b);
CREATE INDEX art_n_1 ON art_n USING art (a, b);
CREATE INDEX bt_n_2 ON bt_n USING btree (a DESC, b);
CREATE INDEX art_n_2 ON art_n USING art (a DESC, b);
CREATE INDEX bt_n_3 ON bt_n USING btree (a NULLS FIRST, b DESC NULLS LAST);
CREATE INDEX art_n_3 ON art_n USING art (a NULLS FIRST, b DESC NULLS LAST);
CREATE INDEX bt_n_4 ON bt_n USING btree (a DESC NULLS LAST, b NULLS FIRST);
CREATE INDEX art_n_4 ON art_n USING art (a DESC NULLS LAST, b NULLS FIRST);
VACUUM ANALYZE bt_n, art_n;
SELECT same('SELECT a, b FROM {}_n ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_n ORDER BY a DESC, b DESC');
SELECT same('SELECT a, b FROM {}_n ORDER BY a DESC, b');
SELECT same('SELECT a, b FROM {}_n ORDER BY a, b DESC');
SELECT same('SELECT a, b FROM {}_n ORDER BY a NULLS FIRST, b DESC NULLS LAST');
SELECT same('SELECT a, b FROM {}_n ORDER BY a DESC NULLS LAST, b NULLS FIRST');
SELECT same('SELECT a, b FROM {}_n WHERE a IS NULL ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_n WHERE a IS NULL AND b IS NULL');
SELECT same('SELECT a, b FROM {}_n WHERE a IS NOT NULL ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_n WHERE a = 2 AND b IS NULL');
SELECT same('SELECT a, b FROM {}_n WHERE a = 2 AND b IS NOT NULL ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_n WHERE a IS NULL AND b > 4 ORDER BY a, b');
SELECT same('SELECT a, b FROM {}_n WHERE a > 4 ORDER BY a DESC NULLS LAST, b NULLS FIRST');
SELECT same('SELECT a, b FROM {}_n WHERE a < 2 ORDER BY a DESC, b');
SELECT same('SELECT min(a), max(a) FROM {}_n');
SELECT same('SELECT max(b) FROM {}_n WHERE a = 2');

-- a search by each of the four alone
SELECT clean('art_n_1'), clean('art_n_2'), clean('art_n_3'), clean('art_n_4');
DROP INDEX bt_n_1, art_n_1;
SELECT same('SELECT a, b FROM {}_n WHERE a >= 3 AND b = 2 ORDER BY a DESC, b');
SELECT same('SELECT a, b FROM {}_n WHERE a = 5 AND b <= 2 ORDER BY a DESC, b');
DROP INDEX bt_n_2, art_n_2;
SELECT same('SELECT a, b FROM {}_n WHERE a >= 3 AND b = 2 ORDER BY a NULLS FIRST');
SELECT same('SELECT a, b FROM {}_n WHERE a = 5 AND b <= 2 ORDER BY a NULLS FIRST, b DESC NULLS LAST');
SELECT same('SELECT a, b FROM {}_n WHERE a IS NULL AND b <= 2 ORDER BY a NULLS FIRST, b DESC NULLS LAST');
DROP INDEX bt_n_3, art_n_3;
SELECT same('SELECT a, b FROM {}_n WHERE a >= 3 AND b = 2 ORDER BY a DESC NULLS LAST');
SELECT same('SELECT a, b FROM {}_n WHERE a = 5 AND b <= 2 ORDER BY a DESC NULLS LAST, b NULLS FIRST');
SELECT same('SELECT a, b FROM {}_n WHERE a = 5 AND b IS NULL');

-- updates, HOT and not, deletes, and what VACUUM leaves
SELECT twins('UPDATE {}_t SET v = -v WHERE k < 500');
SELECT twins('UPDATE {}_t SET k = k + 10000 WHERE k BETWEEN 1000 AND 1500');
SELECT twins('UPDATE {}_t SET txt = upper(txt) WHERE k > 4500');
SELECT twins('DELETE FROM {}_t WHERE k BETWEEN 2000 AND 2999');
SELECT same('SELECT k, v FROM {}_t ORDER BY k');
SELECT same('SELECT k, v FROM {}_t WHERE v < 0 ORDER BY v, k');
SELECT same('SELECT txt FROM {}_t ORDER BY txt DESC');
VACUUM bt_t, art_t;
SELECT same('SELECT * FROM {}_t ORDER BY k');
SELECT same('SELECT k FROM {}_t WHERE k BETWEEN 1999 AND 3001 ORDER BY k');
SELECT twins('INSERT INTO {}_t SELECT 2000 + i, i, ''again'' FROM generate_series(0, 999) i');
SELECT same('SELECT * FROM {}_t ORDER BY k');
SELECT same('SELECT k, txt FROM {}_t WHERE txt = ''again'' ORDER BY txt, k');
SELECT clean('art_t_k'), clean('art_t_vk'), clean('art_t_txt');

-- many equal keys
SELECT twins('CREATE TABLE {}_d (k int, v int)');
CREATE INDEX bt_d_k ON bt_d USING btree (k);
CREATE INDEX art_d_k ON art_d USING art (k);
SELECT twins('INSERT INTO {}_d SELECT 42, i FROM generate_series(1, 5000) i');
SELECT twins('INSERT INTO {}_d SELECT 43, i FROM generate_series(1, 10) i');
SELECT same('SELECT k, v FROM {}_d WHERE k = 42');
SELECT same('SELECT k, v FROM {}_d WHERE k > 42 ORDER BY k');
SELECT twins('DELETE FROM {}_d WHERE v % 3 = 0');
VACUUM bt_d, art_d;
SELECT same('SELECT k, v FROM {}_d WHERE k = 42');
SELECT same('SELECT count(*) FROM {}_d WHERE k <= 42');
SELECT clean('art_d_k');

-- expressions, predicates
CREATE INDEX bt_t_x ON bt_t USING btree ((k % 10), (v + 1)) WHERE v > 0;
CREATE INDEX art_t_x ON art_t USING art ((k % 10), (v + 1)) WHERE v > 0;
VACUUM ANALYZE bt_t, art_t;
SELECT same('SELECT k, v FROM {}_t WHERE k % 10 = 7 AND v > 0 ORDER BY v + 1, k');
SELECT twins('UPDATE {}_t SET v = -v WHERE k % 10 = 7 AND v % 2 = 0');
SELECT same('SELECT k, v FROM {}_t WHERE k % 10 = 7 AND v > 0 ORDER BY v + 1, k');
SELECT clean('art_t_x');

-- what the catalogs say
SELECT pg_get_indexdef('art_n_4'::regclass);
SELECT p, pg_indexam_has_property(am.oid, p) AS am,
	pg_index_has_property('art_t_k', p) AS index
	FROM pg_am am, unnest(ARRAY['can_order', 'can_unique', 'can_multi_col',
	'can_exclude', 'can_include', 'clusterable', 'index_scan', 'bitmap_scan',
	'backward_scan']) p WHERE amname = 'art';
SELECT p, pg_index_column_has_property('art_n_4', 1, p) AS a,
	pg_index_column_has_property('art_n_4', 2, p) AS b
	FROM unnest(ARRAY['asc', 'desc', 'nulls_first', 'nulls_last', 'orderable',
	'distance_orderable', 'returnable', 'search_array', 'search_nulls']) p;
SELECT count(*) > 0 AS classes, bool_and(amvalidate(c.oid)) AS valid
	FROM pg_opclass c JOIN pg_am am ON am.oid = opcmethod WHERE amname = 'art';

-- set operations, which have no input that the planner's hooks could look at
SELECT count(*) FROM (SELECT a FROM art_n EXCEPT SELECT a FROM bt_n) s;
SELECT count(*) FROM (SELECT 1 UNION SELECT 2 INTERSECT SELECT 2) s;
WITH RECURSIVE r AS (SELECT 1 AS i UNION SELECT i + 1 FROM r WHERE i < 5) SELECT count(*) FROM r;

SET client_min_messages = warning;
DROP SCHEMA basic CASCADE;
