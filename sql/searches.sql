--
-- Searches: what the statistics count and what EXPLAIN ANALYZE shows from 18 on, as for btree.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;
CREATE SCHEMA searches;
SET search_path = searches, public;
CREATE TABLE art_t (k int, v int, w text);
INSERT INTO art_t SELECT i, i % 100, 'w' || i FROM generate_series(1, 20000) i;
CREATE TABLE bt_t AS SELECT * FROM art_t;
CREATE TABLE o (k int);
INSERT INTO o SELECT i * 1000 FROM generate_series(1, 10) i;
CREATE INDEX art_t_k ON art_t USING art (k);
CREATE INDEX art_t_v ON art_t USING art (v, k);
CREATE INDEX bt_t_k ON bt_t USING btree (k);
CREATE INDEX bt_t_v ON bt_t USING btree (v, k);
VACUUM ANALYZE art_t, bt_t, o;
SET enable_seqscan = off;
SET enable_sort = off;
SET artidx.batched_joins = off;

-- the searches of a plan's nodes, in sum; NULL: it does not say
CREATE FUNCTION shown(plan jsonb) RETURNS bigint LANGUAGE sql AS $$
	SELECT sum(n::bigint) FROM jsonb_path_query(plan, 'strict $.**."Index Searches"') n
$$;
CREATE FUNCTION searches(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	side text;
	before bigint;
	n bigint;
	plan jsonb;
	said text;
	nodes text;
	answer text[] := '{}';
BEGIN
	FOREACH side IN ARRAY ARRAY['art', 'bt'] LOOP
		SELECT sum(pg_stat_get_xact_numscans(c.oid)) INTO before FROM pg_class c WHERE relname ~ ('^' || side || '_t_');
		EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || replace(q, '{}', side) INTO plan;
		SELECT sum(pg_stat_get_xact_numscans(c.oid)) - before INTO n FROM pg_class c WHERE relname ~ ('^' || side || '_t_');
		SELECT string_agg(DISTINCT x #>> '{}', ', ' ORDER BY x #>> '{}') INTO nodes
			FROM jsonb_path_query(plan, 'strict $.**."Node Type"') x WHERE x #>> '{}' ~ 'Index';
		said := CASE
			WHEN plan::text ~ '"Index Searches"' <> (current_setting('server_version_num')::int >= 180000) THEN 'EXPLAIN says: '
			WHEN shown(plan) <> n THEN 'EXPLAIN says ' || shown(plan) || ': ' ELSE '' END;
		answer := answer || (said || n || CASE side WHEN 'art' THEN ' (' || nodes || ')' ELSE '' END);
	END LOOP;
	RETURN array_to_string(answer, ', btree ');
END $$;

-- one
SELECT searches('SELECT w FROM {}_t WHERE k = 77');
SELECT searches('SELECT k FROM {}_t WHERE k BETWEEN 5000 AND 9000');
SELECT searches('SELECT k FROM {}_t WHERE k < 9000 ORDER BY k DESC');
SELECT searches('SELECT k FROM {}_t ORDER BY k LIMIT 3');
SELECT searches('SELECT max(k) FROM {}_t');
SELECT searches('SELECT w FROM {}_t WHERE k = -5');
SELECT searches('SELECT w FROM {}_t WHERE v = 7 AND k > 300 ORDER BY v, k');
-- as many as look-ups
SELECT searches('SELECT t.w FROM o JOIN {}_t t USING (k)');
SELECT searches('SELECT (SELECT t.w FROM {}_t t WHERE t.k = o.k) FROM o');
-- an array: each value that is far from the others
SELECT searches('SELECT w FROM {}_t WHERE k = ANY (''{1000, 15000, 8000}'')');
SELECT searches('SELECT w FROM {}_t WHERE k IN (1000, 15000, 8000, 1000, 1000)');
SELECT split_part(searches('SELECT k FROM {}_t WHERE v = ANY (''{3, 60}'') AND k = ANY (''{103, 15060}'')'), ',', 1);
-- none at all where the conditions contradict each other; before 17 btree counts some of these
SELECT CASE WHEN s = '0 (Index Scan), btree ' || CASE WHEN current_setting('server_version_num')::int < 170000 THEN right(s, 1) ELSE '0' END THEN 'none' ELSE s END FROM unnest(ARRAY[
	searches('SELECT w FROM {}_t WHERE k = (SELECT 1) AND k > (SELECT 1)'),
	searches('SELECT w FROM {}_t WHERE k = (SELECT NULL::int)'),
	searches('SELECT w FROM {}_t WHERE k = ANY ((SELECT array_remove(ARRAY[1], 1))::int[])')]) s;
-- bitmaps
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT searches('SELECT w FROM {}_t WHERE v = 7');
SELECT searches('SELECT w FROM {}_t WHERE k = ANY (''{1000, 15000, 8000}'')');
SELECT searches('SELECT w FROM {}_t WHERE k = 1000 OR v = 15');
RESET enable_indexscan;
RESET enable_indexonlyscan;
-- a parallel scan: its range is one, and each value of an array
SET enable_bitmapscan = off;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;
ALTER TABLE art_t SET (parallel_workers = 2);
CREATE FUNCTION shown_parallel(q text, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || q INTO plan;
	RETURN concat_ws(', ', CASE WHEN plan::text ~ '"Gather' THEN 'parallel' END,
		CASE WHEN current_setting('server_version_num')::int < 180000 OR shown(plan) = n THEN 'as many' ELSE shown(plan)::text END);
END $$;
SELECT shown_parallel('SELECT stddev(k) FROM art_t WHERE k BETWEEN 50 AND 19000', 1);
DROP INDEX art_t_k;
SELECT shown_parallel('SELECT count(w) FROM art_t WHERE v = ANY (ARRAY(SELECT generate_series(1, 60))) AND k > 5', 60);
CREATE INDEX art_t_k ON art_t USING art (k);
DROP INDEX art_t_v;
SELECT shown_parallel('SELECT count(w) FROM art_t WHERE k = ANY (ARRAY(SELECT i * 37 FROM generate_series(1, 500) i))', 500);
SET client_min_messages = warning;
DROP SCHEMA searches CASCADE;
