--
-- structure = btree: the same answers as core's btree, in pages of every size.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA bt;
SET search_path = bt, public;

SELECT twins('CREATE TABLE {}_t (id int, k bigint, u uuid, w text, d date)');
SELECT twins($$INSERT INTO {}_t
	SELECT i, (i::bigint * 7919 % 20011) * 1000003, md5(i::text)::uuid,
		   CASE WHEN i % 50 = 0 THEN NULL
				WHEN i % 7 = 0 THEN repeat('x', i % 900) || i
				ELSE 'customer ' || md5((i * 3)::text) END,
		   date '2000-01-01' + i % 300
	FROM generate_series(1, 20000) i$$);

CREATE UNIQUE INDEX bt_id ON bt_t USING btree (id);
CREATE UNIQUE INDEX art_id ON art_t USING art (id) WITH (structure = btree);
CREATE INDEX bt_k ON bt_t USING btree (k);
CREATE INDEX art_k ON art_t USING art (k) WITH (structure = btree, page_size = 256);
CREATE INDEX bt_u ON bt_t USING btree (u);
CREATE INDEX art_u ON art_t USING art (u) WITH (structure = btree, page_size = 4096, sync = olc);
CREATE INDEX bt_w ON bt_t USING btree (w COLLATE "C");
CREATE INDEX art_w ON art_t USING art (w COLLATE "C") WITH (structure = btree, page_size = 512);
CREATE INDEX bt_dk ON bt_t USING btree (d DESC NULLS LAST, k);
CREATE INDEX art_dk ON art_t USING art (d DESC NULLS LAST, k) WITH (structure = btree, fillfactor = 50);
VACUUM ANALYZE bt_t, art_t;

SELECT indexrelname, structure, sync, state, entries, nodes -> 'page_size' AS page_size,
	   height BETWEEN 2 AND 6 AS height, inner_nodes > 0 AS inner_nodes, leaf_nodes > 50 AS leaves
FROM artidx_indexes WHERE schemaname = 'bt' ORDER BY 1;

-- the rows that a query returns, in its order, on both sides
CREATE FUNCTION same(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a text[];
	b text[];
BEGIN
	SET LOCAL enable_seqscan = off;
	EXECUTE replace('SELECT array_agg(x::text) FROM (' || q || ') x', '{}', 'bt') INTO b;
	EXECUTE replace('SELECT array_agg(x::text) FROM (' || q || ') x', '{}', 'art') INTO a;
	IF a IS NOT DISTINCT FROM b THEN
		RETURN coalesce(cardinality(a), 0) || ' rows';
	END IF;
	RETURN format('DIFFERENT: %s rows of btree, %s of art', cardinality(b), cardinality(a));
END $$;

CREATE FUNCTION all_of_it() RETURNS TABLE (what text, outcome text) LANGUAGE plpgsql AS $$
DECLARE
	q text;
BEGIN
	FOREACH q IN ARRAY ARRAY[
		'SELECT id FROM {}_t ORDER BY id',
		'SELECT id FROM {}_t ORDER BY id DESC',
		'SELECT id, k FROM {}_t WHERE k BETWEEN 1000000000 AND 9000000000 ORDER BY k',
		'SELECT id, k FROM {}_t WHERE k < 5000000000 ORDER BY k DESC',
		'SELECT k FROM {}_t ORDER BY k',
		'SELECT u FROM {}_t ORDER BY u DESC',
		'SELECT id FROM {}_t WHERE u = md5(''77'')::uuid',
		'SELECT id FROM {}_t WHERE u > md5(''5'')::uuid ORDER BY u LIMIT 100',
		'SELECT w FROM {}_t ORDER BY w COLLATE "C"',
		'SELECT w FROM {}_t WHERE w COLLATE "C" >= ''customer 8'' AND w COLLATE "C" < ''customer a'' ORDER BY w COLLATE "C" DESC',
		'SELECT id FROM {}_t WHERE w IS NULL ORDER BY id',
		'SELECT d, k FROM {}_t ORDER BY d DESC NULLS LAST, k',
		'SELECT d, k FROM {}_t WHERE d = ''2000-03-01'' ORDER BY k DESC',
		'SELECT count(*) FROM {}_t WHERE d IN (''2000-03-01'', ''2000-06-01'') AND k > 3000000000']
	LOOP
		what := q;
		outcome := same(q);
		RETURN NEXT;
	END LOOP;
END $$;
SELECT outcome FROM all_of_it();

-- duplicates are refused, and found through ON CONFLICT
SELECT twins('INSERT INTO {}_t (id) VALUES (17)');
SELECT twins('INSERT INTO {}_t (id, k) VALUES (17, 1), (30000, 2) ON CONFLICT (id) DO UPDATE SET k = -1');

-- most of it goes, the rest moves, and comes again
SELECT twins('DELETE FROM {}_t WHERE id % 10 <> 3');
SELECT twins('UPDATE {}_t SET k = -k, w = w || ''!'' WHERE id % 20 = 3');
VACUUM bt_t, art_t;
SELECT outcome FROM all_of_it();
SELECT twins($$INSERT INTO {}_t
	SELECT i, i % 10, md5(i::text)::uuid, NULL, NULL FROM generate_series(100000, 110000) i$$);
SELECT outcome FROM all_of_it();
SELECT i.indexrelname, (artidx_check(i.indexrelid, true)).heap_tuples
FROM artidx_indexes i WHERE schemaname = 'bt' ORDER BY 1;

-- everything goes: so does the memory
SELECT twins('DELETE FROM {}_t');
VACUUM bt_t, art_t;
SELECT indexrelname, entries, inner_nodes, leaf_nodes FROM artidx_indexes
WHERE schemaname = 'bt' ORDER BY 1;

-- built again, not from CREATE INDEX
SELECT twins($$INSERT INTO {}_t
	SELECT i, (i::bigint * 7919 % 20011) * 1000003, md5(i::text)::uuid, i::text, NULL
	FROM generate_series(1, 20000) i$$);
SELECT artidx_unload(indexrelid) FROM artidx_indexes WHERE schemaname = 'bt';
SELECT artidx_build(indexrelid) FROM artidx_indexes WHERE schemaname = 'bt';
SELECT indexrelname, structure, last_build_source, entries FROM artidx_indexes
WHERE schemaname = 'bt' ORDER BY 1;
SELECT outcome FROM all_of_it();

-- another structure, built by REINDEX
ALTER INDEX art_k RESET (page_size);
ALTER INDEX art_k SET (structure = art);
REINDEX INDEX art_k;
SELECT structure, nodes ? 'node4' AS radix FROM artidx_indexes WHERE indexrelname = 'art_k';
SELECT outcome FROM all_of_it();

-- what makes no sense
CREATE INDEX ON art_t USING art (k) WITH (page_size = 512);
CREATE INDEX ON art_t USING art (k) WITH (structure = btree, page_size = 100);
CREATE INDEX ON art_t USING art (k) WITH (structure = btree, page_size = 1000);
CREATE INDEX ON art_t USING art (k) WITH (structure = tree);

-- a long key among short ones of one length, which fill a page
CREATE TABLE art_len (s text COLLATE "C");
CREATE INDEX art_len_s ON art_len USING art (s) WITH (structure = btree);
INSERT INTO art_len SELECT 'a' FROM generate_series(1, 59);
INSERT INTO art_len SELECT 'c' FROM generate_series(1, 51);
INSERT INTO art_len VALUES ('b' || repeat('x', 247));
SELECT entries, heap_tuples FROM artidx_check('art_len_s', true);

-- in a small page the long ones may all come into one half
CREATE TABLE art_few (s text COLLATE "C");
CREATE INDEX art_few_s ON art_few USING art (s) WITH (structure = btree, page_size = 256);
INSERT INTO art_few VALUES (repeat('c', 19));
INSERT INTO art_few VALUES (repeat('h', 10));
INSERT INTO art_few VALUES ('a');
INSERT INTO art_few VALUES (repeat('b', 23));
INSERT INTO art_few VALUES (repeat('i', 6));
INSERT INTO art_few VALUES (repeat('e', 55));
INSERT INTO art_few VALUES (repeat('g', 7));
INSERT INTO art_few VALUES (repeat('f', 5));
INSERT INTO art_few VALUES (repeat('d', 55));
SELECT entries, heap_tuples FROM artidx_check('art_few_s', true);
-- the largest pages and keys, falling: the tree stays flat
CREATE TABLE art_high (t text COLLATE "C");
CREATE INDEX art_high_t ON art_high USING art (t) WITH (structure = btree, page_size = 16384);
INSERT INTO art_high SELECT repeat('x', 4070) || lpad((1000 - g)::text, 8, '0') FROM generate_series(1, 600) g;
SELECT entries, height < 8 AS flat FROM artidx_indexes WHERE indexrelname = 'art_high_t';
SELECT entries, heap_tuples FROM artidx_check('art_high_t', true);

DROP SCHEMA bt CASCADE;
