--
-- artidx.plan_costs: the planner is told an art index's own costs or nbtree's.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
CREATE SCHEMA costs;
SET search_path = costs, public;

CREATE TABLE t (a int, b int, c text COLLATE "C", n numeric, f float8, d date, v int, g int);
INSERT INTO t SELECT i, i % 100, md5(i::text), i, i, '2000-01-01'::date + i, NULL, i % 3
	FROM generate_series(1, 10000) i;
INSERT INTO t (v) VALUES (1);
VACUUM ANALYZE t;

-- what a query costs with one index or the other in its place
CREATE FUNCTION cost(am text, columns text, query text) RETURNS float LANGUAGE plpgsql AS $$
DECLARE
	j json;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	SET LOCAL enable_sort = off;
	EXECUTE format('CREATE INDEX x ON costs.t USING %s (%s', am, columns);
	IF columns ~ '[(]' THEN
		ANALYZE costs.t;
	END IF;
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO j;
	DROP INDEX x;
	RETURN (j->0->'Plan'->>'Total Cost')::float;
END $$;
CREATE VIEW compared AS
	SELECT columns, query, art = btree AS same, art < btree AS less FROM (
		SELECT columns, query, cost('btree', columns, query) AS btree,
			cost('art', columns, query) AS art
		FROM (VALUES
			('a)', 'SELECT * FROM costs.t ORDER BY a'),
			('a)', 'SELECT a FROM costs.t ORDER BY a'),
			('a)', 'SELECT * FROM costs.t WHERE a = 7'),
			('a)', 'SELECT * FROM costs.t WHERE a BETWEEN 7 AND 700'),
			('b)', 'SELECT * FROM costs.t ORDER BY b'),
			('b)', 'SELECT * FROM costs.t WHERE b = 7'),
			('c)', 'SELECT * FROM costs.t ORDER BY c'),
			('n)', 'SELECT * FROM costs.t ORDER BY n'),
			('f)', 'SELECT * FROM costs.t ORDER BY f'),
			('d)', 'SELECT * FROM costs.t ORDER BY d'),
			('v)', 'SELECT * FROM costs.t WHERE v IS NOT NULL'),
			('b, a)', 'SELECT * FROM costs.t WHERE a = 7'),
			('b, a)', 'SELECT * FROM costs.t WHERE b = 7 ORDER BY a'),
			('g, a)', 'SELECT * FROM costs.t WHERE a = 7'),
			('g, a)', 'SELECT * FROM costs.t WHERE g = ANY (''{0,1}'') AND a = 7'),
			('(a + 1))', 'SELECT * FROM costs.t ORDER BY (a + 1)'),
			('a) WHERE a < 700', 'SELECT * FROM costs.t WHERE a < 700 ORDER BY a')
		) AS q (columns, query)
	) AS c;

SET artidx.plan_costs = btree;
SELECT columns, query, same, less FROM compared;
SET artidx.plan_costs = memory;
SELECT count(*) FROM compared WHERE less;

-- by default as btree where art takes btree's place
RESET artidx.plan_costs;
SHOW artidx.plan_costs;
SELECT count(*) FROM compared WHERE less;
-- (the setting would make the one art too)
CREATE TABLE before AS SELECT columns, query, cost('btree', columns, query) FROM compared;
SET artidx.replace_btree = indexes;
SELECT columns, query FROM before b WHERE b.cost <> cost('btree', columns, query);
CREATE INDEX x ON t (a);
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'x';
RESET artidx.replace_btree;
DROP INDEX x;

-- the pages that it is told: as many as btree has of NULLs, common values, posting
-- lists, INCLUDE and predicates, and of both options of btree
CREATE TABLE s (a int, h int, b int, m int, n text, g bigint, o bool);
INSERT INTO s SELECT i, CASE WHEN i % 2 = 0 THEN i END, i % 100, CASE WHEN i % 3 > 0 THEN 7 ELSE i END,
		CASE WHEN i % 10 = 0 THEN md5(i::text) END, CASE WHEN i % 3 = 0 THEN i END,
		CASE WHEN i % 5 > 0 THEN i % 2 = 0 END
	FROM generate_series(1, 20000) i;
VACUUM ANALYZE s;
CREATE FUNCTION pages(am text, kind text, columns text, options text) RETURNS float LANGUAGE plpgsql AS $$
DECLARE
	j json;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	SET LOCAL enable_sort = off;
	SET LOCAL cpu_tuple_cost = 0;
	SET LOCAL cpu_index_tuple_cost = 0;
	SET LOCAL cpu_operator_cost = 0;
	SET LOCAL random_page_cost = 1;
	EXECUTE format('CREATE %s INDEX x ON costs.s USING %s (%s) %s', kind, am, columns, options);
	EXECUTE format('EXPLAIN (FORMAT JSON) SELECT %1$s FROM costs.s %2$s ORDER BY %1$s',
		substring(columns from '^[^,]*'), substring(options from 'WHERE.*')) INTO j;
	ASSERT j->0->'Plan'->>'Node Type' = 'Index Only Scan' OR columns ~ '[(]';
	DROP INDEX x;
	RETURN (j->0->'Plan'->>'Total Cost')::float;
END $$;
SET artidx.plan_costs = btree;
SELECT c.* FROM (
	SELECT kind, columns, options, pages('btree', kind, columns, options) AS btree,
		pages('art', kind, columns, options) AS art
	FROM (VALUES
		('', 'h', ''), ('', 'n', ''), ('', 'g', ''), ('', 'm', ''), ('', 'b', ''), ('', 'o', ''),
		('', 'h', 'WITH (deduplicate_items = off)'), ('', 'b', 'WITH (deduplicate_items = off)'),
		('', 'h', 'WITH (fillfactor = 50)'), ('', 'm, a', 'WITH (fillfactor = 30)'),
		('', 'h, b', ''), ('', 'b, h', ''), ('', 'h, g', ''), ('', 'm, b', ''), ('', 'n, a', ''), ('', 'b, m', ''),
		('', 'o, m, b', ''), ('', 'g, h, n, o', ''),
		('UNIQUE', 'h', ''), ('UNIQUE', 'n, a', ''), ('UNIQUE', 'm, a', 'INCLUDE (n)'),
		('', 'b', 'INCLUDE (g)'), ('', 'h', 'INCLUDE (n)'), ('', 'n', 'INCLUDE (b, o)'),
		('', 'h', 'WHERE h IS NULL'), ('', 'h', 'WHERE h IS NOT NULL'), ('', 'h', 'WHERE h > 1000'),
		('', 'h', 'WHERE g IS NULL'), ('', 'h, g', 'WHERE g IS NOT NULL AND h > 0'),
		('', 'm', 'WHERE a < 3000'), ('', 'b', 'WHERE a < 3000'), ('', 'o', 'WHERE NOT o')
	) AS q (kind, columns, options)
) AS c WHERE abs(art - btree) > greatest(1, 0.05 * btree);
RESET artidx.plan_costs;

-- entries that cost nothing: a cost is a number all the same, and no larger one
CREATE TABLE priced AS SELECT columns, query, cost('art', columns, query) FROM compared;
SET cpu_index_tuple_cost = 0;
SELECT count(*) FROM priced p WHERE p.cost >= cost('art', columns, query);
SET cpu_operator_cost = 0;
SELECT count(*) FROM priced p WHERE p.cost >= cost('art', columns, query);
RESET cpu_index_tuple_cost;
RESET cpu_operator_cost;

DROP SCHEMA costs CASCADE;
