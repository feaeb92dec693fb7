--
-- What the planner makes of art indexes is what it makes of btree's: each query
-- on twin tables, and whether the plans are the same.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin

-- the plan, once if both sides have the same, and that the answers agree
CREATE OR REPLACE FUNCTION twin.plans(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	b text[] := twin.plan('bt', q);
	a text[] := twin.plan('art', q);
	x text[];
	y text[];
BEGIN
	IF a = b THEN
		RETURN QUERY SELECT unnest(a);
	ELSE
		RETURN QUERY SELECT 'DIFFERENT';
		RETURN QUERY SELECT 'btree: ' || l FROM unnest(b) l;
		RETURN QUERY SELECT 'art:   ' || l FROM unnest(a) l;
	END IF;
	EXECUTE replace('SELECT array_agg(x::text ORDER BY x::text) FROM (' || q || ') x', '{}', 'bt') INTO x;
	EXECUTE replace('SELECT array_agg(x::text ORDER BY x::text) FROM (' || q || ') x', '{}', 'art') INTO y;
	IF x IS DISTINCT FROM y THEN
		RETURN QUERY SELECT 'DIFFERENT ROWS';
	END IF;
END $$;
\set ECHO all
\pset tuples_only on
\pset format unaligned

CREATE SCHEMA plan;
SET search_path = plan, public;
SET max_parallel_workers_per_gather = 0;
SELECT twins('CREATE TABLE {}_t (k int NOT NULL, g int, s text COLLATE "C", p text, f bool, i inet, n numeric, d date, b bpchar(20))');
SELECT twins('INSERT INTO {}_t SELECT i, i % 100, ''s'' || (i * 7919 % 10000), ''p'' || i, i % 50 = 0, (''10.0.'' || i / 250 || ''.'' || i % 250)::inet, i, ''2000-01-01''::date + i % 1000, ''b'' || i FROM generate_series(1, 10000) i');
SELECT twins('CREATE TABLE {}_u (k int NOT NULL, v int)');
SELECT twins('INSERT INTO {}_u SELECT i * 3, i FROM generate_series(1, 5000) i');
CREATE FUNCTION twin_index(q text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE replace(replace(q, '{}', 'bt'), 'METHOD', 'btree');
	EXECUTE replace(replace(q, '{}', 'art'), 'METHOD', 'art');
END $$;
SELECT twin_index('CREATE UNIQUE INDEX {}_t_k ON {}_t USING METHOD (k)');
SELECT twin_index('CREATE INDEX {}_t_g ON {}_t USING METHOD (g, k)');
SELECT twin_index('CREATE INDEX {}_t_s ON {}_t USING METHOD (s)');
SELECT twin_index('CREATE INDEX {}_t_p ON {}_t USING METHOD (p text_pattern_ops)');
SELECT twin_index('CREATE INDEX {}_t_f ON {}_t USING METHOD (f, k)');
SELECT twin_index('CREATE INDEX {}_t_i ON {}_t USING METHOD (i)');
SELECT twin_index('CREATE INDEX {}_t_part ON {}_t USING METHOD (d) WHERE g < 5');
SELECT twin_index('CREATE INDEX {}_t_expr ON {}_t USING METHOD ((n * 2))');
SELECT twin_index('CREATE INDEX {}_t_desc ON {}_t USING METHOD (d DESC NULLS LAST, k)');
SELECT twin_index('CREATE INDEX {}_t_b ON {}_t USING METHOD (b bpchar_pattern_ops)');
SELECT twin_index('CREATE UNIQUE INDEX {}_u_k ON {}_u USING METHOD (k)');
SELECT twin_index('CREATE INDEX {}_u_v ON {}_u USING METHOD (v)');
VACUUM ANALYZE bt_t, art_t, bt_u, art_u;
-- art's costs are lower, so what they alone decide is decided here
SET enable_seqscan = off;

-- equality, ranges, both ends of an index, MIN and MAX
SELECT twin.plans('SELECT * FROM {}_t WHERE k = 77');
SELECT twin.plans('SELECT k FROM {}_t WHERE k = 77::bigint');
SELECT twin.plans('SELECT * FROM {}_t WHERE k < 50');
SELECT twin.plans('SELECT * FROM {}_t WHERE k BETWEEN 100 AND 8000');
SELECT twin.plans('SELECT * FROM {}_t WHERE 50 > k AND k <> 3');
SELECT twin.plans('SELECT min(k), max(k) FROM {}_t');
SELECT twin.plans('SELECT max(k) FROM {}_t WHERE g = 7');
SELECT twin.plans('SELECT g, (SELECT min(k) FROM {}_t x WHERE x.g = t.g) FROM {}_t t WHERE k < 4');
SELECT twin.plans('SELECT max(d) FROM {}_t');
SELECT twin.plans('SELECT g FROM {}_t WHERE g IS NULL');
SELECT twin.plans('SELECT g FROM {}_t WHERE g IS NOT NULL AND g = 3');
SELECT twin.plans('SELECT * FROM {}_t WHERE k > 20000');

-- order, backwards, incremental, DISTINCT, grouping, windows
SELECT twin.plans('SELECT * FROM {}_t ORDER BY k LIMIT 5');
SELECT twin.plans('SELECT * FROM {}_t ORDER BY k DESC LIMIT 5');
SELECT twin.plans('SELECT g, k FROM {}_t ORDER BY g, k LIMIT 5');
SELECT twin.plans('SELECT g, k FROM {}_t ORDER BY g DESC, k DESC LIMIT 5');
SELECT twin.plans('SELECT g, p FROM {}_t ORDER BY g, p LIMIT 5');
SELECT twin.plans('SELECT d, k FROM {}_t ORDER BY d DESC NULLS LAST, k LIMIT 5');
SELECT twin.plans('SELECT d, k FROM {}_t ORDER BY d DESC, k LIMIT 5');
SELECT twin.plans('SELECT d, k FROM {}_t ORDER BY d NULLS FIRST, k DESC LIMIT 5');
SELECT twin.plans('SELECT DISTINCT g FROM {}_t WHERE k < 100');
SELECT twin.plans('SELECT DISTINCT ON (g) g, k FROM {}_t ORDER BY g, k LIMIT 3');
SELECT twin.plans('SELECT count(DISTINCT s) FROM {}_t');
SELECT twin.plans('SELECT g, stddev(g) FROM {}_t GROUP BY g ORDER BY g LIMIT 2');
SELECT twin.plans('SELECT k, row_number() OVER (ORDER BY k) FROM {}_t LIMIT 3');
SELECT twin.plans('SELECT k FROM {}_t UNION ALL SELECT k FROM {}_u ORDER BY k LIMIT 4');

-- booleans, patterns, networks, expressions, partial indexes
SELECT twin.plans('SELECT k FROM {}_t WHERE f');
SELECT twin.plans('SELECT k FROM {}_t WHERE f AND k < 1000');
SELECT twin.plans('SELECT k FROM {}_t WHERE NOT f AND k < 100');
SELECT twin.plans('SELECT k FROM {}_t WHERE f IS TRUE AND k < 1000');
SELECT twin.plans('SELECT k FROM {}_t WHERE f = true ORDER BY k LIMIT 2');
SELECT twin.plans('SELECT k FROM {}_t WHERE f ORDER BY k LIMIT 2');
SELECT twin.plans('SELECT k FROM {}_t WHERE s LIKE ''s123%''');
SELECT twin.plans('SELECT k FROM {}_t WHERE s ~ ''^s123''');
SELECT twin.plans('SELECT k FROM {}_t WHERE starts_with(s, ''s123'')');
SELECT twin.plans('SELECT k FROM {}_t WHERE p LIKE ''p123%''');
SELECT twin.plans('SELECT k FROM {}_t WHERE p LIKE ''p1234''');
SELECT twin.plans('SELECT k FROM {}_t WHERE p ~ ''^p12[34]''');
SELECT twin.plans('SELECT k FROM {}_t WHERE p ~~* ''P12%''');
SELECT twin.plans('SELECT k FROM {}_t WHERE p = ''p77''');
SELECT twin.plans('SELECT k FROM {}_t WHERE p ^@ ''p777''');
SELECT twin.plans('SELECT k FROM {}_t WHERE b LIKE ''b77%''');
SELECT twin.plans('SELECT k FROM {}_t WHERE i << ''10.0.3.0/24''');
SELECT twin.plans('SELECT k FROM {}_t WHERE i <<= ''10.0.3.7/32''');
SELECT twin.plans('SELECT k FROM {}_t WHERE ''10.0.3.0/24'' >> i');
SELECT twin.plans('SELECT k FROM {}_t WHERE n * 2 = 84');
SELECT twin.plans('SELECT d FROM {}_t WHERE g < 5 AND d < ''2000-02-01''');
SELECT twin.plans('SELECT d FROM {}_t WHERE g < 4 AND d < ''2000-02-01''');
SELECT twin.plans('SELECT d FROM {}_t WHERE g < 5 ORDER BY d LIMIT 3');
SELECT twin.plans('SELECT d FROM {}_t WHERE g < 6 AND d < ''2000-01-03''');
SELECT twin.plans('SELECT * FROM {}_t WHERE g = 5 OR k = 9');
SELECT twin.plans('SELECT * FROM {}_t WHERE g = 5 AND s < ''s2''');

-- rows compared
SELECT twin.plans('SELECT * FROM {}_t WHERE (g, k) > (98, 9000)');
SELECT twin.plans('SELECT g, k FROM {}_t WHERE (g, k) > (98, 9000) ORDER BY g, k LIMIT 3');
SELECT twin.plans('SELECT g, k FROM {}_t WHERE (98, 9000) >= (g, k) ORDER BY g DESC, k DESC LIMIT 3');
SELECT twin.plans('SELECT g, k FROM {}_t WHERE (g, n, k) < (2, 5, 1) AND k > 50 ORDER BY g, k LIMIT 3');
SELECT twin.plans('SELECT g FROM {}_t WHERE g = 7 OR (g, k) < (1, 300)');
SELECT twin.plans('SELECT u.k, t.k FROM {}_u u, LATERAL (SELECT * FROM {}_t t WHERE (t.g, t.k) > (u.v, u.k) ORDER BY t.g, t.k LIMIT 1) t WHERE u.v < 5');
SELECT twin.plans('SELECT min(k + 0) FROM {}_t WHERE (g, k) >= (98, 9000)');

-- joins: merged from both sides, inner ones known to be unique, removed ones
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT twin.plans('SELECT t.k, v FROM {}_t t JOIN {}_u u ON t.k = u.k');
SELECT twin.plans('SELECT t.k, v FROM {}_t t LEFT JOIN {}_u u ON t.k = u.k ORDER BY t.k');
SELECT twin.plans('SELECT t.k, v FROM {}_t t FULL JOIN {}_u u ON t.k = u.k');
SELECT twin.plans('SELECT a.k FROM {}_t a JOIN {}_t b ON a.g = b.g AND a.k = b.k');
RESET enable_hashjoin;
RESET enable_nestloop;
SELECT twin.plans('SELECT t.g, t.k FROM {}_t t LEFT JOIN {}_u u ON t.g = u.k');
SELECT twin.plans('SELECT t.k FROM {}_t t LEFT JOIN (SELECT DISTINCT k FROM {}_u) u ON t.k = u.k WHERE t.k < 9');
SELECT twin.plans('SELECT * FROM {}_u u WHERE EXISTS (SELECT FROM {}_t t WHERE t.k = u.k) AND v < 10');
SELECT twin.plans('SELECT * FROM {}_u u WHERE NOT EXISTS (SELECT FROM {}_t t WHERE t.k = u.k) AND v < 10');
SELECT twin.plans('SELECT * FROM {}_u u, LATERAL (SELECT * FROM {}_t t WHERE t.k > u.k ORDER BY k LIMIT 1) x WHERE v < 4');
-- proofs, as EXPLAIN VERBOSE tells them
CREATE FUNCTION proved(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n text := '';
BEGIN
	FOREACH line IN ARRAY ARRAY['bt', 'art'] LOOP
		EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) ' || replace(q, '{}', line) INTO line;
		n := n || ' ' || coalesce(substring(line FROM '"Inner Unique": (\w+)'), 'none');
	END LOOP;
	RETURN n;
END $$;
SELECT proved('SELECT t.k, u.v FROM {}_t t JOIN {}_u u ON t.k = u.k WHERE t.g = 3');
-- GROUP BY a key: columns that depend on it
SET client_min_messages = warning;
ALTER TABLE bt_u ADD PRIMARY KEY USING INDEX bt_u_k;
ALTER TABLE art_u ADD PRIMARY KEY USING INDEX art_u_k;
RESET client_min_messages;
SELECT twin.plans('SELECT k, v, count(*) FROM {}_u GROUP BY k, v ORDER BY k LIMIT 2');
SELECT twin.plans('SELECT k, v, count(*) FROM {}_u GROUP BY k ORDER BY k LIMIT 2');

-- sizes: rows estimated, pages and height as costs show them, tuples of partial indexes
CREATE FUNCTION estimates(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	p json;
	side text;
	n numeric[];
BEGIN
	FOREACH side IN ARRAY ARRAY['bt', 'art'] LOOP
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || replace(q, '{}', side) INTO p;
		n := n || (p->0->'Plan'->>'Plan Rows')::numeric || (p->0->'Plan'->>'Total Cost')::numeric;
	END LOOP;
	RETURN format('%s rows%s, cost %s', n[1], CASE WHEN n[1] <> n[3] THEN ' (art: ' || n[3] || ')' END,
		CASE WHEN n[4] / n[2] < 1.2 THEN 'not above' ELSE n[2] || ', art ' || n[4] END);
END $$;
SELECT estimates('SELECT * FROM {}_t WHERE k = 5');
SELECT estimates('SELECT * FROM {}_t WHERE k < 500');
SELECT estimates('SELECT k FROM {}_t WHERE k < 5000');
SELECT estimates('SELECT d FROM {}_t WHERE g < 5 AND d < ''2000-02-01''');
SELECT estimates('SELECT d FROM {}_t WHERE g < 5 ORDER BY d');
SELECT estimates('SELECT * FROM {}_t WHERE k > 9990');
SELECT estimates('SELECT * FROM {}_t WHERE k > 1000000');
-- rows beyond the histogram: the ends of the index are asked
RESET enable_seqscan;
SELECT twins('INSERT INTO {}_t (k, g) SELECT i, 1 FROM generate_series(10001, 15000) i');
SELECT estimates('SELECT * FROM {}_t WHERE k > 12000');
SELECT estimates('SELECT t.k FROM {}_t t JOIN {}_u u ON t.k = u.k');
\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP SCHEMA plan CASCADE;
DROP FUNCTION twin.plans;
RESET client_min_messages;
