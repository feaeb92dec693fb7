--
-- Parallel scans: the rows of a serial one, each once, in fair shares.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA par;
SET search_path = par, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;
SET artidx.batched_joins = off;

SELECT twins('CREATE TABLE {}_t (k int, v int, g int, w text, n numeric) WITH (parallel_workers = 2)');
SELECT twins($$INSERT INTO {}_t SELECT CASE WHEN i % 10 < 3 THEN 5 ELSE i % 3000 END, i, i % 1000, md5(i::text), (i % 700)::numeric / 3
	FROM generate_series(1, 30000) i$$);
SELECT format('CREATE INDEX %1$s_%2$s ON %1$s_t USING %3$s (%4$s) %5$s', side, name, am, cols, opt)
	FROM (VALUES ('bt', 'btree', 'WITH (deduplicate_items = off)'), ('art', 'art', '')) s (side, am, opt),
	(VALUES ('k', 'k'), ('v', 'v'), ('gw', 'g DESC, w'), ('w', 'w'), ('n', 'n, v')) i (name, cols) \gexec
VACUUM ANALYZE bt_t, art_t;

-- the same workers as btree
EXPLAIN (COSTS OFF) SELECT count(*), sum(v), stddev(v) FROM bt_t WHERE v BETWEEN 1000 AND 27000;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v), stddev(v) FROM art_t WHERE v BETWEEN 1000 AND 27000;

-- the plan and the answer of both sides, and what it would be in series
CREATE FUNCTION same_parallel(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a text;
	b text;
	s text;
	p text[];
	-- an aggregate right above would have Gather Merge sort for it, from 16 on
	wrapped text := 'SELECT format(''%s rows, %s'', count(*), md5(string_agg(y, '','' ORDER BY y COLLATE "C"))) FROM unnest(ARRAY(SELECT x::text FROM (' || q || ') x)) y';
	short text;
BEGIN
	EXECUTE replace(wrapped, '{}', 'art') INTO a;
	EXECUTE replace(wrapped, '{}', 'bt') INTO b;
	p := twin.plan('art', wrapped);
	SELECT string_agg(trim(l, ' >-'), ', ') FROM unnest(p) l WHERE l ~ 'Parallel|Gather|Join|Loop' INTO short;
	SET max_parallel_workers_per_gather = 0;
	EXECUTE replace(wrapped, '{}', 'art') INTO s;
	SET max_parallel_workers_per_gather = 2;
	IF a <> b OR a <> s THEN
		RETURN format(E'DIFFERENT\nbtree:  %s\nart:    %s\nserial: %s\n%s', b, a, s, short);
	END IF;
	RETURN concat_ws(', ', split_part(a, ',', 1), short);
END $$;
SELECT same_parallel('SELECT v, w FROM {}_t WHERE v BETWEEN 1000 AND 27000');
SELECT same_parallel('SELECT v FROM {}_t WHERE v BETWEEN 1000 AND 27000');
SELECT same_parallel('SELECT v FROM {}_t WHERE v > 29990');
SELECT same_parallel('SELECT v FROM {}_t WHERE v > 30000');
SELECT same_parallel('SELECT k, v FROM {}_t WHERE k = 5');
SELECT same_parallel('SELECT k FROM {}_t WHERE k = 5');
SELECT same_parallel('SELECT g, w FROM {}_t WHERE g > 100 AND w > ''8''');
SELECT same_parallel('SELECT v, n FROM {}_t WHERE n > 20 AND v > 100');
SELECT same_parallel('SELECT v, w FROM {}_t WHERE w > ''4''');
-- arrays: many points, few long ones, ranges, residual
SELECT same_parallel('SELECT v, k FROM {}_t WHERE v = ANY (''{' || (SELECT string_agg(i::text, ',') FROM generate_series(-50, 35000, 7) i) || '}'')');
SELECT same_parallel('SELECT v FROM {}_t WHERE v = ANY (''{' || (SELECT string_agg(i::text, ',') FROM generate_series(-50, 35000, 7) i) || '}'')');
SELECT same_parallel('SELECT k, v FROM {}_t WHERE k = ANY (''{4,5,6}'')');
SELECT same_parallel('SELECT k, v FROM {}_t WHERE k = ANY (''{' || (SELECT string_agg(i::text, ',') FROM generate_series(-50, 3100) i) || '}'')');
SELECT same_parallel('SELECT g, w, v FROM {}_t WHERE g = ANY (''{1,7,8,500,1001}'')');
SELECT same_parallel('SELECT g, w FROM {}_t WHERE g = ANY (''{1,7,8,500,1001}'') AND w > ''a''');
SELECT same_parallel('SELECT n, v FROM {}_t WHERE n = ANY (''{1,7,8.0,500,1001}'')');

-- in order: Gather Merge, both ways
CREATE FUNCTION dear(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000 AS 'BEGIN RETURN true; END';
CREATE FUNCTION same_order(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a text[];
	b text[];
BEGIN
	EXECUTE format('SELECT array_agg(x::text) FROM (%s) x', replace(q, '{}', 'art')) INTO a;
	EXECUTE format('SELECT array_agg(x::text) FROM (%s) x', replace(q, '{}', 'bt')) INTO b;
	RETURN format('%s rows, %s, %s', cardinality(a), a = b,
		(SELECT string_agg(trim(l, ' >-'), ', ') FROM unnest(twin.plan('art', q)) l WHERE l ~ 'Scan|Gather|Sort'));
END $$;
SELECT same_order('SELECT v, w FROM {}_t WHERE v BETWEEN 1000 AND 20000 AND dear(v) ORDER BY v LIMIT 15000');
SELECT same_order('SELECT v FROM {}_t WHERE v BETWEEN 1000 AND 20000 AND dear(v) ORDER BY v DESC');
SELECT same_order('SELECT g, w FROM {}_t WHERE g BETWEEN 100 AND 400 AND dear(g) ORDER BY g DESC, w');
SELECT same_order('SELECT g, w FROM {}_t WHERE g BETWEEN 100 AND 400 AND dear(g) ORDER BY g, w DESC');
SELECT same_order('SELECT g, w FROM {}_t WHERE g = ANY (''{1,500,700,900,910,3000}'') AND dear(g) ORDER BY g, w DESC');
SELECT same_order('SELECT v FROM {}_t WHERE v = ANY (''{' || (SELECT string_agg(i::text, ',') FROM generate_series(-50, 35000, 7) i) || '}'') AND dear(v) ORDER BY v');
SELECT same_order('SELECT v FROM {}_t WHERE v = ANY (''{' || (SELECT string_agg(i::text, ',') FROM generate_series(-50, 35000, 7) i) || '}'') AND dear(v) ORDER BY v DESC');

-- joins: merge joins whose outer side is parallel, nested loops; rescans of a Gather
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT same_parallel('SELECT o.v, i.k FROM {}_t o JOIN {}_t i ON o.v = i.v WHERE o.v < 20000');
SET enable_mergejoin = off;
SET enable_nestloop = on;
SELECT same_parallel('SELECT o.v, i.k FROM {}_t o JOIN {}_t i ON i.v = o.v + 1 WHERE o.v < 20000');
SELECT same_parallel('SELECT o.v, i.k FROM {}_t o JOIN {}_t i ON i.v = ANY (ARRAY[o.v + 1, o.v - 1]) WHERE o.v < 5000');
SET enable_material = off;
SELECT same_parallel('SELECT x, (SELECT count(*) FROM {}_t WHERE v > x * 1000 AND v < 40000 + x) FROM generate_series(1, 5) x');
RESET enable_material;
RESET enable_mergejoin;
RESET enable_hashjoin;

-- bitmaps
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
SELECT same_parallel('SELECT v, k FROM {}_t WHERE v BETWEEN 1000 AND 27000');
SELECT same_parallel('SELECT v, k FROM {}_t WHERE v BETWEEN 1000 AND 20000 AND g = ANY (''{1,7,8,500,1001,20,30,40,50,60,70}'')');
SET enable_indexscan = on;
SET enable_indexonlyscan = on;
SET enable_bitmapscan = off;

-- dead rows, and rows that come and go meanwhile
SELECT twins('DELETE FROM {}_t WHERE v % 5 = 0');
SELECT same_parallel('SELECT v, w FROM {}_t WHERE v BETWEEN 1000 AND 27000');
SELECT same_parallel('SELECT v FROM {}_t WHERE v BETWEEN 1000 AND 27000');
SELECT same_parallel('SELECT k, v FROM {}_t WHERE k = 5');
SELECT clean('art_v');

-- keys longer than the shared position has room for: encoded and compared ones,
-- and many that begin alike
SELECT twins('CREATE TABLE {}_l (w text, u text COLLATE "en-x-icu", v int) WITH (parallel_workers = 2)');
SELECT twins($$INSERT INTO {}_l SELECT repeat(chr(97 + i % 3), CASE WHEN i % 4 = 0 THEN 6000 ELSE 20 END) || i,
	CASE WHEN i % 50 = 7 THEN 'q' || repeat(md5(i::text), 200) ELSE 'q' || i END, i FROM generate_series(1, 3000) i$$);
CREATE INDEX art_l_w ON art_l USING art (w);
CREATE INDEX art_l_vu ON art_l USING art (v, u);
CREATE INDEX art_l_u ON art_l USING art (u);
VACUUM ANALYZE bt_l, art_l;
SELECT same_parallel('SELECT w FROM {}_l WHERE w > ''a''');
SELECT same_parallel('SELECT md5(w) FROM {}_l WHERE w BETWEEN ''aaaaaaaaaaaaaaaaaaaaaaaaaaaa'' AND ''b''');
SELECT same_parallel('SELECT v, u FROM {}_l WHERE v > 10');
SELECT same_parallel('SELECT u FROM {}_l WHERE u > ''q'' COLLATE "en-x-icu"');

-- keys that are longer than what participants tell each other, and ranges that end within the part told
CREATE TABLE art_far (t text COLLATE "C", k int) WITH (parallel_workers = 2);
INSERT INTO art_far SELECT repeat('x', 5000) || lpad(i::text, 6, '0'), i FROM generate_series(1, 1000) i;
INSERT INTO art_far SELECT repeat('x', 5000) || '000500', i FROM generate_series(1, 200) i;
INSERT INTO art_far SELECT 'y', i FROM generate_series(1, 1000) i;
CREATE INDEX art_far_t ON art_far USING art (t);
CREATE INDEX art_far_icu ON art_far USING art (t COLLATE "en-x-icu", k);
VACUUM ANALYZE art_far;
SET cpu_tuple_cost = 10;
SET random_page_cost = 0;
CREATE FUNCTION long_parallel(cond text) RETURNS TABLE (parallel bool, answers text) LANGUAGE plpgsql AS $$
DECLARE
	q text;
	line text;
BEGIN
	cond := 'FROM art_far WHERE ' || replace(cond, '$x', quote_literal(repeat('x', 5000)));
	FOREACH q IN ARRAY ARRAY['SELECT count(*) || '' '' || sum(k) ' || cond,
			'SELECT count(*) || '' falling'' FROM (SELECT k ' || cond || ' ORDER BY t DESC OFFSET 0) s'] LOOP
		parallel := false;
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
			parallel := parallel OR line LIKE '%Parallel Index%';
		END LOOP;
		EXECUTE q INTO answers;
		SET LOCAL max_parallel_workers_per_gather = 0;
		SET LOCAL enable_indexscan = off;
		SET LOCAL enable_indexonlyscan = off;
		SET LOCAL enable_seqscan = on;
		EXECUTE q INTO line;
		answers := answers || ', the table: ' || line;
		SET LOCAL max_parallel_workers_per_gather = 2;
		SET LOCAL enable_indexscan = on;
		SET LOCAL enable_indexonlyscan = on;
		SET LOCAL enable_seqscan = off;
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM long_parallel('t >= $x || ''000001'' AND t < $x || ''000101''');
SELECT * FROM long_parallel('t > $x || ''000900''');
SELECT * FROM long_parallel('t = $x || ''000500''');
SELECT * FROM long_parallel('t = ANY (ARRAY[$x || ''000500'', $x || ''000501'', ''y''])');
SELECT * FROM long_parallel('t COLLATE "en-x-icu" = $x || ''000500'' AND k BETWEEN 10 AND 20');
SELECT * FROM long_parallel('t COLLATE "en-x-icu" = $x || ''000500'' AND k > 150');
RESET cpu_tuple_cost;
RESET random_page_cost;

-- each of two workers returns a quarter of the rows, at least, if a row is some
-- work (a few tries: who
-- is late gets less)
SET parallel_leader_participation = off;
CREATE FUNCTION fair(q text, ratio float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	j json;
	n json;
	w json;
	got float8 := 0;
BEGIN
	FOR try IN 1 .. 20 LOOP
		EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, TIMING OFF, FORMAT JSON) ' || q INTO j;
		n := jsonb_path_query_first(j::jsonb, '$.** ? (@."Node Type" like_regex "^Index")');
		w := n -> 'Workers';
		IF json_array_length(w) = 2 THEN
			got := least((w -> 0 ->> 'Actual Rows')::float8, (w -> 1 ->> 'Actual Rows')::float8)
				/ ((w -> 0 ->> 'Actual Rows')::float8 + (w -> 1 ->> 'Actual Rows')::float8);
		END IF;
		IF got >= ratio THEN
			RETURN format('%s%s: fair', CASE WHEN (n ->> 'Parallel Aware')::bool THEN 'Parallel ' END, n ->> 'Node Type');
		END IF;
	END LOOP;
	RETURN format('%s: NOT FAIR: %s', n ->> 'Node Type', got);
END $$;
SELECT fair('SELECT count(md5(repeat(w, 300))) FROM art_t WHERE v BETWEEN 1000 AND 27000', 0.25);
SELECT fair('SELECT count(md5(repeat(v::text, 300))) FROM art_t WHERE v BETWEEN 1000 AND 27000', 0.25);
SELECT fair('SELECT count(md5(repeat(v::text, 300))) FROM art_t WHERE k = 5', 0.25);
SELECT fair('SELECT count(md5(repeat(w, 300))) FROM art_t WHERE v = ANY (''{' || (SELECT string_agg(i::text, ',') FROM generate_series(-50, 35000) i) || '}'')', 0.25);

SET client_min_messages = warning;
DROP SCHEMA par CASCADE;
