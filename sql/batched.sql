--
-- Batched joins: when the planner takes one, and that rows and their order are
-- those of a nested loop.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
CREATE SCHEMA batched;
SET search_path = batched, public;
SET max_parallel_workers_per_gather = 0;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;

-- a plan, whose subplans 19 names after their kind, too
CREATE FUNCTION plan(q text, options text, OUT plan text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	FOR plan IN EXECUTE format('EXPLAIN (%s) %s', options, q) LOOP
		plan := regexp_replace(plan, 'SubPlan [a-z]+_', 'SubPlan ', 'g');
		RETURN NEXT;
	END LOOP;
END $$;

-- keys once, never, several times, and NULL
CREATE TABLE o (id int, k int, t text, d date, x int, g int);
INSERT INTO o SELECT i, CASE WHEN i % 11 = 0 THEN NULL ELSE i * 7919 % 2500 END, 't' || i % 700,
	CASE WHEN i % 13 > 0 THEN date '2026-01-01' + i % 200 END, i % 50, i % 5 FROM generate_series(1, 3000) i;
CREATE TABLE n (id int, k bigint, t text, d timestamp, x int, y int);
INSERT INTO n SELECT i, CASE WHEN i % 17 = 0 THEN NULL ELSE i * 3 % 2200 END, 't' || i % 1000,
	timestamp '2026-01-01' + i % 300 * interval '12 hours', i % 60, i % 40 FROM generate_series(1, 5000) i;
INSERT INTO n SELECT 10000 + i, 77, 'many', NULL, 3, i FROM generate_series(1, 700) i;
CREATE INDEX n_k ON n USING art (k);
CREATE INDEX n_t ON n USING art (t);
CREATE INDEX n_xy ON n USING art (x, y DESC);
CREATE INDEX n_d ON n USING art (d);
CREATE INDEX o_id ON o USING art (id);
CREATE UNIQUE INDEX n_id ON n USING art (id);
VACUUM ANALYZE o, n;

-- The rows of a query, in the order in which they come, batched and not.
CREATE FUNCTION same(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	rows_on text[];
	rows_off text[];
BEGIN
	SET LOCAL artidx.batched_joins = on;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
		plan := plan || line;
	END LOOP;
	EXECUTE 'SELECT array_agg(r::text) FROM (' || q || ') r' INTO rows_on;
	SET LOCAL artidx.batched_joins = off;
	EXECUTE 'SELECT array_agg(r::text) FROM (' || q || ') r' INTO rows_off;
	RETURN CASE WHEN plan ~ 'Batched' THEN 'batched, ' ELSE 'nested, ' END || coalesce(cardinality(rows_on), 0) ||
		CASE WHEN rows_on IS NOT DISTINCT FROM rows_off THEN ' rows, the same' ELSE ' rows, NOT the same' END;
END
$$;

-- unless somebody asks for none
SHOW artidx.batched_joins;
SET artidx.batched_joins = off;
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.k = o.k;
SET artidx.batched_joins = on;

-- ---- taken -------------------------------------------------------------------

-- many outer rows, each with a whole key of the index; rows from the table
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.k = o.k;
-- columns that the index has: from the index only
EXPLAIN (COSTS OFF) SELECT o.id, n.k FROM o JOIN n ON n.k = o.k;
-- outer joins, whose other conditions belong to the join, or to its result
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o LEFT JOIN n ON n.k = o.k AND n.y < o.x;
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o LEFT JOIN n ON n.k = o.k WHERE n.y IS NULL OR n.y > 3;
-- semi joins, of EXISTS and of IN, and anti joins: one row of a key will do
EXPLAIN (COSTS OFF) SELECT id FROM o WHERE EXISTS (SELECT FROM n WHERE n.k = o.k);
EXPLAIN (COSTS OFF) SELECT id FROM o WHERE k IN (SELECT k FROM n WHERE y > 20);
EXPLAIN (COSTS OFF) SELECT id FROM o WHERE NOT EXISTS (SELECT FROM n WHERE n.k = o.k);
-- several columns, of which some are constants
EXPLAIN (COSTS OFF) SELECT o.id, n.t FROM o JOIN n ON n.x = o.x AND n.y = o.g;
EXPLAIN (COSTS OFF) SELECT o.id, n.t FROM o JOIN n ON n.x = o.x AND n.y = 7;
-- keys that an expression makes
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.t = upper(lower(o.t));
-- one upon the other, below a LIMIT that wants many rows, below an aggregate
EXPLAIN (COSTS OFF) SELECT o.id, n.y, m.t FROM o JOIN n ON n.k = o.k JOIN n m ON m.id = n.y;
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.id = o.id ORDER BY o.id LIMIT 2000;
EXPLAIN (COSTS OFF) SELECT g, count(*), sum(n.y) FROM o JOIN n ON n.id = o.k GROUP BY g;
-- the columns of a partial index, an expression's value
CREATE INDEX n_part ON n USING art (y) WHERE x < 10;
CREATE INDEX n_expr ON n USING art ((x + y));
ANALYZE n;
EXPLAIN (COSTS OFF) SELECT o.id, n.t FROM o JOIN n ON n.y = o.k AND n.x < 10;
EXPLAIN (COSTS OFF) SELECT o.id, n.t FROM o JOIN n ON n.x + n.y = o.k;
-- in each worker, of the rows that it has
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.k = o.k;
SELECT same('SELECT count(*), sum(o.id), sum(n.y) FROM o JOIN n ON n.k = o.k');
SELECT same('SELECT count(*), sum(o.id) FROM o LEFT JOIN n ON n.k = o.k AND n.y > 5 WHERE n.k IS NULL');
ROLLBACK;

-- ---- not taken ---------------------------------------------------------------

-- few rows, or few of the result
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM (SELECT * FROM o LIMIT 20) o JOIN n ON n.k = o.k;
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.id = o.k LIMIT 10;
SELECT plan($$SELECT s, EXISTS (SELECT FROM o JOIN n ON n.k = o.k + s WHERE n.y = 39 AND o.g = s) AS e FROM generate_series(1, 9) s$$, 'COSTS OFF');
-- rows that are locked or changed
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.k = o.k FOR UPDATE OF o;
EXPLAIN (COSTS OFF) UPDATE o SET g = n.y FROM n WHERE n.k = o.k;
-- not whole keys, or such as are more than their bytes
EXPLAIN (COSTS OFF) SELECT o.id, n.t FROM o JOIN n ON n.x = o.k;
EXPLAIN (COSTS OFF) SELECT o.id, n.t FROM o JOIN n ON n.k > o.k AND n.k < o.k + 2;
CREATE TABLE v (a int, b int, c numeric);
INSERT INTO v SELECT i, i, i FROM generate_series(1, 5000) i;
CREATE INDEX v_a ON v USING art (a) INCLUDE (b);
CREATE INDEX v_b ON v USING btree (b);
CREATE INDEX v_c ON v USING art (c);
VACUUM ANALYZE v;
EXPLAIN (COSTS OFF) SELECT o.id, v.c FROM o JOIN v ON v.a = o.k;
EXPLAIN (COSTS OFF) SELECT o.id, v.c FROM o JOIN v ON v.b = o.k;
EXPLAIN (COSTS OFF) SELECT o.id, v.a FROM o JOIN v ON v.c = o.k::numeric;
-- whole rows, system columns
EXPLAIN (COSTS OFF) SELECT o.id, n FROM o JOIN n ON n.k = o.k;
EXPLAIN (COSTS OFF) SELECT o.id, n.ctid FROM o JOIN n ON n.k = o.k;
-- partitions
CREATE TABLE p (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (2000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (2000) TO (9000);
INSERT INTO p SELECT i, i FROM generate_series(0, 5000) i;
CREATE INDEX p_k ON p USING art (k);
VACUUM ANALYZE p;
EXPLAIN (COSTS OFF) SELECT o.id, p.v FROM o JOIN p ON p.k = o.k;
-- policies: a condition that could tell of a row is not to come before one that hides it
CREATE TABLE secret AS SELECT i AS k, i % 50 AS v FROM generate_series(1, 5000) i;
CREATE INDEX secret_k ON secret USING art (k);
VACUUM ANALYZE secret;
EXPLAIN (COSTS OFF) SELECT o.id, s.v FROM o JOIN secret s ON s.k = o.k;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY over_three ON secret USING (v > 3);
CREATE FUNCTION tells(i int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$
BEGIN
	IF i <= 3 THEN
		RAISE NOTICE 'there is a row with %', i;
	END IF;
	RETURN true;
END $$;
CREATE ROLE regress_batched;
GRANT USAGE ON SCHEMA batched TO regress_batched;
GRANT SELECT ON o, secret TO regress_batched;
SET ROLE regress_batched;
EXPLAIN (COSTS OFF) SELECT o.id, s.v FROM o JOIN secret s ON s.k = o.k;
EXPLAIN (COSTS OFF) SELECT o.id, s.v FROM o LEFT JOIN secret s ON s.k = o.k AND s.v < 10 AND s.v <> o.g;
EXPLAIN (COSTS OFF) SELECT o.id, s.v FROM o JOIN secret s ON s.k = o.k WHERE tells(s.v);
EXPLAIN (COSTS OFF) SELECT o.id, s.v FROM o JOIN secret s ON s.k = o.k AND tells(s.v + o.g);
SELECT same('SELECT o.id, s.v FROM o JOIN secret s ON s.k = o.k');
SELECT same('SELECT o.id, s.v FROM o LEFT JOIN secret s ON s.k = o.k AND s.v < 10 AND s.v <> o.g');
SELECT same('SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM secret s WHERE s.k = o.k)');
SELECT same('SELECT o.id, s.v FROM o JOIN secret s ON s.k = o.k WHERE tells(s.v)');
RESET ROLE;
DROP TABLE secret;
DROP FUNCTION tells;
REVOKE ALL ON o FROM regress_batched;
REVOKE ALL ON SCHEMA batched FROM regress_batched;
DROP ROLE regress_batched;
-- something else is cheaper, or nested loops are not wanted
SET enable_hashjoin = on;
EXPLAIN (COSTS OFF) SELECT o.id, v.c FROM o JOIN v ON v.a = o.k;
EXPLAIN (COSTS OFF) SELECT count(*) FROM n JOIN n m ON m.k = n.k;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.id = o.k WHERE o.g = 1;
RESET enable_nestloop;
SET enable_memoize = on;
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.id = o.g + 1;
SET enable_memoize = off;
SET enable_hashjoin = off;
-- the plans that btree would have
SET artidx.plan_costs = btree;
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.k = o.k;
RESET artidx.plan_costs;

-- ---- the same rows -------------------------------------------------------------

SELECT same(q) AS result, q FROM unnest(ARRAY[
	'SELECT o.id, n.id AS nid FROM o JOIN n ON n.k = o.k',
	'SELECT o.id, n.k FROM o JOIN n ON n.k = o.k',
	'SELECT o.id, n.id AS nid, n.t FROM o LEFT JOIN n ON n.k = o.k',
	'SELECT o.id, n.id AS nid FROM o LEFT JOIN n ON n.k = o.k AND n.y < o.x',
	'SELECT o.id, n.id AS nid FROM o LEFT JOIN n ON n.k = o.k AND o.g > 2',
	'SELECT o.id, n.k FROM o LEFT JOIN n ON n.k = o.k WHERE n.k IS NULL OR o.g = 3',
	'SELECT o.id, n.id AS nid, n.x + o.x AS s FROM o LEFT JOIN n ON n.k = o.k AND n.y < 20 WHERE n.x IS NULL OR n.x > o.x',
	'SELECT o.id, n.y FROM o LEFT JOIN n ON n.id = o.k',
	'SELECT id, t FROM o WHERE EXISTS (SELECT FROM n WHERE n.k = o.k)',
	'SELECT id FROM o WHERE EXISTS (SELECT FROM n WHERE n.k = o.k AND n.y > o.x AND n.id % 3 = 0)',
	'SELECT id FROM o WHERE k IN (SELECT k FROM n WHERE y > 20)',
	'SELECT id, k FROM o WHERE NOT EXISTS (SELECT FROM n WHERE n.k = o.k)',
	'SELECT id, k FROM o WHERE NOT EXISTS (SELECT FROM n WHERE n.k = o.k AND n.y > o.x)',
	'SELECT o.id, n.id AS nid FROM o JOIN n ON n.x = o.x AND n.y = o.g',
	'SELECT o.id, n.x, n.y FROM o JOIN n ON n.x = o.x AND n.y = o.g WHERE o.id < 400',
	'SELECT o.id, n.id AS nid FROM o JOIN n ON n.x = o.x AND n.y = 7',
	'SELECT o.id, n.id AS nid, n.t FROM o JOIN n ON n.t = o.t',
	'SELECT o.id, o.t, n.t AS nt FROM o JOIN n ON n.t = o.t',
	'SELECT o.id, n.id AS nid FROM o JOIN n ON n.d = o.d',
	'SELECT o.id, n.id AS nid FROM o JOIN n ON n.y = o.k AND n.x < 10',
	'SELECT o.id, n.id AS nid FROM o JOIN n ON n.x + n.y = o.k',
	'SELECT o.id, n.y, m.t FROM o JOIN n ON n.k = o.k JOIN n m ON m.id = n.y',
	'SELECT o.id, n.y, m.t FROM o LEFT JOIN n ON n.k = o.k LEFT JOIN n m ON m.id = n.y AND m.x > o.x',
	'SELECT o.id, n.id AS nid FROM o LEFT JOIN n ON n.k = o.k AND n.k = o.id',
	'SELECT o.id, n.y FROM o JOIN n ON n.k = o.k ORDER BY o.id LIMIT 1000',
	'SELECT o.id, n.y FROM o JOIN n ON n.k = o.k LIMIT 300 OFFSET 1000',
	'SELECT o AS whole, n.y FROM o JOIN n ON n.k = o.k',
	'SELECT o.ctid, n.y FROM o JOIN n ON n.k = o.k',
	'SELECT w.id, (SELECT count(*) || ''/'' || coalesce(sum(n.y), 0) FROM o JOIN n ON n.k = o.k WHERE o.g = w.g) AS c FROM o w WHERE w.id < 20',
	'SELECT o.id, (SELECT max(m.y) FROM n m WHERE m.id = n.id + o.g) AS y FROM o JOIN n ON n.id = o.k WHERE (SELECT m.x FROM n m WHERE m.id = n.id) > 5'
	]) WITH ORDINALITY u (q, nr) ORDER BY nr;

-- rows too wide for work_mem, and an outer side that is
SET work_mem = '64kB';
-- (the planner does not know how wide they are)
CREATE TABLE wide (k int, w text);
ALTER TABLE wide ALTER w SET STATISTICS 0;
INSERT INTO wide SELECT i, repeat(md5(i::text), 60) FROM generate_series(1, 2000) i;
CREATE INDEX wide_k ON wide USING art (k);
VACUUM ANALYZE wide;
SELECT same('SELECT o.id, md5(w) FROM o JOIN wide ON wide.k = o.k');
SELECT same('SELECT a.k, n.y FROM (SELECT k, repeat(w, 50) AS w FROM wide OFFSET 0) a JOIN n ON n.k = a.k WHERE octet_length(a.w) > n.y');
RESET work_mem;

-- ---- what EXPLAIN ANALYZE counts -------------------------------------------------

CREATE FUNCTION counts(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || q LOOP
		RETURN NEXT regexp_replace(line, 'rows=(\d+)\.00', 'rows=\1');
	END LOOP;
END
$$;
SELECT counts('SELECT o.id, n.y FROM o JOIN n ON n.k = o.k AND n.y > o.x');
SELECT counts('SELECT id FROM o WHERE NOT EXISTS (SELECT FROM n WHERE n.k = o.k)');
SELECT counts('SELECT o.id, n.y FROM o LEFT JOIN n ON n.id = o.k WHERE n.y IS NULL');
-- a LIMIT bounds the batches
SELECT counts('SELECT o.id, n.y FROM o JOIN n ON n.id = o.id LIMIT 1500');
-- 18 adds whether a node is disabled
CREATE FUNCTION as_json(q text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || q INTO plan;
	RETURN plan -> 0 -> 'Plan';
END
$$;
SELECT key, value FROM jsonb_each(as_json('SELECT o.id, m.k FROM o JOIN n m ON m.k = o.k')) WHERE key NOT IN ('Plans', 'Disabled');
-- not planned under SERIALIZABLE
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXPLAIN (COSTS OFF) SELECT o.id, n.y FROM o JOIN n ON n.id = o.id;
COMMIT;
-- keys that are no single value: a date, without a time zone, against a timestamptz
SET timezone = 'Europe/Berlin';
CREATE TABLE z AS SELECT date '2026-01-01' + i % 500 AS d, i FROM generate_series(1, 4000) i;
CREATE INDEX z_d ON z USING art (d);
CREATE TABLE zo AS SELECT timestamptz '2026-01-01' + i * interval '8 hours' AS at FROM generate_series(1, 1000) i;
VACUUM ANALYZE z, zo;
SELECT counts('SELECT z.i FROM zo JOIN z ON z.d = zo.at');
SELECT same('SELECT zo.at, z.i FROM zo JOIN z ON z.d = zo.at');

-- ---- rows that change ------------------------------------------------------------

-- an open cursor sees what it saw when it was opened, whatever the index becomes
EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR SELECT o.id, n.y FROM o JOIN n ON n.id = o.id ORDER BY o.id;
BEGIN;
DECLARE c CURSOR FOR SELECT o.id, n.y FROM o JOIN n ON n.id = o.id ORDER BY o.id;
FETCH 3 FROM c;
UPDATE n SET id = -id, y = y + 1000 WHERE id < 100;
DELETE FROM n WHERE id BETWEEN 100 AND 2000;
INSERT INTO n SELECT i, 0, 'new', NULL, 0, 5555 FROM generate_series(1, 2000) i;
MOVE 96 FROM c;
FETCH 3 FROM c;
MOVE ALL FROM c;
SELECT same('SELECT o.id, n.y FROM o JOIN n ON n.id = o.id');
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT o.id, n.y FROM o JOIN n ON n.id = o.id ORDER BY o.id;
FETCH 2 FROM c;
SELECT artidx_unload('n_id');
MOVE 2000 FROM c;
FETCH 2 FROM c;
COMMIT;
-- without its structure the planner has better than this index
SELECT artidx_build('n_id');
-- dead entries are removed as a scan removes them
CREATE TABLE dead (k int, v int) WITH (autovacuum_enabled = off);
CREATE INDEX dead_k ON dead USING art (k);
INSERT INTO dead SELECT i % 501 + 1, i FROM generate_series(1, 5000) i;
ANALYZE dead;
DELETE FROM dead WHERE v % 2 = 0;
EXPLAIN (COSTS OFF) SELECT dead.v FROM o LEFT JOIN dead ON dead.k = o.id;
DO $$
BEGIN
	-- as soon as nobody's snapshot is older than the DELETE
	FOR i IN 1 .. 300 LOOP
		PERFORM dead.v FROM o LEFT JOIN dead ON dead.k = o.id;
		EXIT WHEN (SELECT entries = 2500 FROM artidx_indexes WHERE relname = 'dead');
		PERFORM pg_sleep(0.05);
	END LOOP;
END $$;
SELECT entries FROM artidx_indexes WHERE relname = 'dead';
SELECT same('SELECT o.id, dead.v FROM o LEFT JOIN dead ON dead.k = o.id');
SELECT entries = heap_tuples AS clean FROM artidx_check('dead_k', true);

-- ---- conditions of every kind ----------------------------------------------------

-- subplans are shown, with the columns of both sides in their arguments
SELECT plan($$SELECT o.id, n.y FROM o LEFT JOIN n ON n.k = o.k AND n.y > (SELECT max(z.x) FROM o z WHERE z.id = o.id)$$, 'COSTS OFF');
SELECT plan($$SELECT o.id, n.y FROM o JOIN n ON n.k = (SELECT max(z.k) FROM o z WHERE z.id = o.id) + o.g$$, 'COSTS OFF');
SELECT plan($$SELECT (SELECT max(z.x) FROM o z WHERE z.id = n.id) AS m FROM o JOIN n ON n.k = o.k
	WHERE (SELECT max(z.x) FROM o z WHERE z.id = n.id - 1) > 5$$, 'VERBOSE, COSTS OFF');
-- few entries of a key, of which one is wanted; placeholders
EXPLAIN (COSTS OFF) SELECT id FROM o WHERE EXISTS (SELECT FROM n WHERE n.k = o.k AND n.t <> o.t);
EXPLAIN (COSTS OFF) SELECT o.id, s.c FROM o LEFT JOIN (SELECT k, coalesce(y, 1) AS c FROM n) s ON s.k = o.k;

-- columns that came and went, types of other lengths, domains, collations
CREATE DOMAIN small AS int CHECK (VALUE < 100000);
CREATE TABLE c (gone int, i2 smallint, dom small, nm name, ct text COLLATE "C", u uuid, b bool, also_gone text);
INSERT INTO c SELECT i, i, i, 'n' || i, 't' || i, md5(i::text)::uuid, i % 9 = 0, 'x' FROM generate_series(1, 3000) i;
ALTER TABLE c DROP COLUMN gone, DROP COLUMN also_gone;
ALTER TABLE c ADD COLUMN later int DEFAULT 42;
INSERT INTO c SELECT i, i, 'n' || i, 't' || i, md5(i::text)::uuid, i % 9 = 0, i FROM generate_series(2000, 2100) i;
CREATE INDEX c_i2 ON c USING art (i2);
CREATE INDEX c_dom ON c USING art (dom);
CREATE INDEX c_nm ON c USING art (nm);
CREATE INDEX c_ct ON c USING art (ct);
CREATE INDEX c_u_b ON c USING art (u, b);
CREATE TABLE parent AS SELECT i AS k, i AS v FROM generate_series(1, 3000) i;
CREATE INDEX parent_k ON parent USING art (k);
CREATE TABLE heir () INHERITS (parent);
CREATE INDEX heir_k ON heir USING art (k);
INSERT INTO heir SELECT i, i FROM generate_series(1, 50) i;
CREATE TEMP TABLE passing AS SELECT i AS k, 'v' || i AS v FROM generate_series(1, 3000) i;
CREATE INDEX ON passing USING art (k);
CREATE TABLE both_kinds AS SELECT i % 1500 AS k, i AS v FROM generate_series(1, 3000) i;
CREATE INDEX ON both_kinds USING art (k);
CREATE INDEX ON both_kinds USING btree (k);
CREATE TABLE far (k int, w text);
ALTER TABLE far ALTER w SET STORAGE EXTERNAL;
INSERT INTO far SELECT i, repeat(md5(i::text), 100) FROM generate_series(1, 200) i;
VACUUM ANALYZE c, parent, heir, passing, both_kinds, far, p;

SELECT same(q) AS result, q FROM unnest(ARRAY[
	'SELECT o.id, n.y FROM o JOIN n ON n.k = o.k WHERE n.ctid <> ''(0,1)''',
	'SELECT o.id, n.y FROM o JOIN n ON n.k = o.k WHERE n.tableoid = ''n''::regclass',
	'SELECT o.id FROM o WHERE EXISTS (SELECT FROM n WHERE n.k = o.k AND n.xmin::text <> ''1'')',
	'SELECT o.id, n.y FROM o JOIN n ON n.k = o.k WHERE n IS NOT NULL',
	'SELECT o.id, n.y, n.tableoid::regclass AS r FROM o JOIN n ON n.k = o.k',
	'SELECT o.id, n.y FROM o LEFT JOIN n ON n.k = o.k AND n.y > (SELECT max(z.x) FROM o z WHERE z.id = o.id)',
	'SELECT o.id, n.y FROM o JOIN n ON n.k = (SELECT max(z.k) FROM o z WHERE z.id = o.id) + o.g',
	'SELECT o.id, n.y FROM o JOIN n ON n.k = o.k WHERE n.y NOT IN (SELECT z.g + 3 FROM o z)',
	'SELECT o.id, n.y FROM o LEFT JOIN n ON n.k = o.k AND current_user = ''nobody''',
	'SELECT o.id, c.later FROM o JOIN c ON c.i2 = o.k',
	'SELECT f.k, c.i2 FROM (SELECT id * 40000::bigint AS k FROM o) f LEFT JOIN c ON c.i2 = f.k',
	'SELECT o.id, c.dom, c.later FROM o JOIN c ON c.dom = o.k',
	'SELECT o.id, c.dom FROM o JOIN c ON c.dom = o.k',
	'SELECT o.id, c.nm FROM o JOIN c ON c.nm = ''n'' || o.k',
	'SELECT o.id, c.nm, c.later FROM o JOIN c ON c.nm = (''n'' || o.k)::name',
	'SELECT o.id, c.ct FROM o JOIN c ON c.ct = o.t',
	'SELECT o.id, c.later FROM o JOIN c ON c.ct = o.t COLLATE "C"',
	'SELECT o.id, c.u, c.b FROM o JOIN c ON c.u = md5(o.k::text)::uuid AND c.b',
	'SELECT o.id, parent.v FROM o JOIN parent ON parent.k = o.k',
	'SELECT o.id, x.v FROM o JOIN ONLY parent x ON x.k = o.k',
	'SELECT o.id, passing.v FROM o JOIN passing ON passing.k = o.k',
	'SELECT o.id, both_kinds.v FROM o JOIN both_kinds ON both_kinds.k = o.k',
	'SELECT far.k, md5(far.w) AS m, n.y FROM far JOIN n ON n.k = far.k',
	'SELECT p.k, p.v, n.y FROM p JOIN n ON n.k = p.v',
	'SELECT o.id, n.y FROM o FULL JOIN n ON n.k = o.k',
	'SELECT o.id, n.y FROM n RIGHT JOIN o ON n.k = o.k',
	'SELECT o.id, s.y FROM o, LATERAL (SELECT n.y FROM n WHERE n.k = o.k) s',
	'SELECT o.id, s.z FROM o, LATERAL (SELECT n.y + o.x AS z FROM n WHERE n.k = o.k OFFSET 0) s',
	'SELECT o.id, s.c FROM o LEFT JOIN (SELECT k, coalesce(y, 1) AS c FROM n) s ON s.k = o.k',
	'SELECT o.id, n.y, m.y AS my, c.later FROM o LEFT JOIN n ON n.k = o.k LEFT JOIN n m ON m.id = n.y LEFT JOIN c ON c.dom = m.x',
	'SELECT o.id, n.y + 1 AS y1, m.y AS my FROM o LEFT JOIN (n LEFT JOIN n m ON m.id = n.y) ON n.k = o.k WHERE m.y IS NULL OR m.y > 3',
	'SELECT o.id FROM o LEFT JOIN n ON n.k = o.k WHERE NOT EXISTS (SELECT FROM c WHERE c.dom = n.y AND c.later = n.x)'
	]) WITH ORDINALITY u (q, nr) ORDER BY nr;
SET jit = on;
SET jit_above_cost = 0;
SELECT same('SELECT o.id, n.y, n.t || o.t AS tt FROM o LEFT JOIN n ON n.k = o.k AND n.y < o.x');
RESET jit;
RESET jit_above_cost;

-- ---- run again --------------------------------------------------------------------

-- the inner side of a nested loop, with the same parameters and with others
SELECT counts('SELECT * FROM generate_series(1, 3) s LEFT JOIN (SELECT o.id, n.y FROM o JOIN n ON n.k = o.k AND n.y > o.x OFFSET 0) q ON true');
SELECT same('SELECT s, q.* FROM generate_series(1, 3) s, LATERAL (SELECT o.id, n.y FROM o JOIN n ON n.k = o.k + s AND n.y > o.x * s OFFSET 0) q');
SELECT same('SELECT s, (SELECT count(*) || ''/'' || sum(n.y) FROM o JOIN n ON n.k = o.k + s WHERE n.y > s AND o.g <> s) AS c FROM generate_series(1, 4) s');
-- a hashed subplan of a condition, which depends on the outer parameter
SELECT same('SELECT s, q.* FROM generate_series(1, 3) s, LATERAL (SELECT o.id, n.y FROM o JOIN n ON n.k = o.k
	AND n.y NOT IN (SELECT z.x + s * 2 FROM o z WHERE z.id < 15) OFFSET 0) q');
-- again, from the middle of a batch
SELECT same('SELECT s, q.* FROM generate_series(1, 4) s, LATERAL (SELECT o.id, n.y FROM o JOIN n ON n.k = o.k + s * 2 LIMIT 700) q');
-- plans that are kept, with parameters; an index that is dropped
SET plan_cache_mode = force_generic_plan;
PREPARE generic(int, int) AS SELECT count(*), sum(n.y), min(o.id) FROM o JOIN n ON n.k = o.k + $1 WHERE n.y > $2;
EXPLAIN (COSTS OFF) EXECUTE generic(1, 20);
EXECUTE generic(1, 20);
EXECUTE generic(NULL, 20);
EXECUTE generic(4, 4);
BEGIN;
SET LOCAL enable_hashjoin = on;
DROP INDEX n_k;
EXPLAIN (COSTS OFF) EXECUTE generic(4, 4);
EXECUTE generic(4, 4);
ROLLBACK;
EXPLAIN (COSTS OFF) EXECUTE generic(4, 4);
DEALLOCATE generic;
-- such a plan under SERIALIZABLE searches for each key alone, with the locks of a nested loop
CREATE FUNCTION locked() RETURNS text LANGUAGE sql AS $$
	SELECT count(*) || ' locks ' || md5(string_agg(concat_ws(' ', relation::regclass, locktype, page, tuple), ','
		ORDER BY relation::regclass::text, locktype, page, tuple))
	FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid()
$$;
PREPARE on_heap(int) AS SELECT count(*), sum(n.y) FROM o JOIN n ON n.id = o.k WHERE o.g = $1 AND o.id < 1500;
PREPARE on_index(int) AS SELECT count(*), sum(n.id) FROM o JOIN n ON n.id = o.k WHERE o.g = $1 AND o.id < 1500;
SET artidx.batched_joins = off;
PREPARE off_heap(int) AS SELECT count(*), sum(n.y) FROM o JOIN n ON n.id = o.k WHERE o.g = $1 AND o.id < 1500;
PREPARE off_index(int) AS SELECT count(*), sum(n.id) FROM o JOIN n ON n.id = o.k WHERE o.g = $1 AND o.id < 1500;
EXPLAIN (COSTS OFF) EXECUTE off_heap(3);
EXPLAIN (COSTS OFF) EXECUTE off_index(3);
SET artidx.batched_joins = on;
EXPLAIN (COSTS OFF) EXECUTE on_heap(3);
EXPLAIN (COSTS OFF) EXECUTE on_index(3);
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXECUTE off_heap(3);
SELECT locked() AS off \gset
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXECUTE on_heap(3);
SELECT locked() AS on, locked() = :'off' AS same, locked() LIKE '0 %' AS none \gset
COMMIT;
\echo :same :none
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXECUTE off_index(3);
SELECT locked() AS off \gset
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXECUTE on_index(3);
SELECT locked() AS on, locked() = :'off' AS same, locked() LIKE '0 %' AS none \gset
COMMIT;
\echo :same :none
DEALLOCATE ALL;
RESET plan_cache_mode;
-- cursors: to and fro, and after the transaction
EXPLAIN (COSTS OFF) DECLARE c SCROLL CURSOR FOR SELECT o.id, n.y FROM o JOIN n ON n.id = o.id;
EXPLAIN (COSTS OFF) DECLARE c CURSOR WITH HOLD FOR SELECT o.id, n.y FROM o JOIN n ON n.id = o.id;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT o.id, n.y FROM o JOIN n ON n.id = o.id;
MOVE 1000 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE 7 FROM c;
CLOSE c;
DECLARE c CURSOR WITH HOLD FOR SELECT o.id, n.y FROM o JOIN n ON n.id = o.id;
FETCH 1 FROM c;
COMMIT;
UPDATE n SET y = y WHERE id < 100;
MOVE 90 FROM c;
FETCH 2 FROM c;
CLOSE c;
DECLARE c CURSOR WITH HOLD FOR SELECT o.id, 1 / (n.y - 11) AS q FROM o JOIN n ON n.id = o.id;
SELECT same('SELECT o.id, n.y FROM o JOIN n ON n.id = o.id');

-- ---- what functions see and do -----------------------------------------------------

-- volatile ones in conditions
CREATE TABLE calls (nr serial, id int, nid int);
CREATE FUNCTION noted(id int, nid int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO calls (id, nid) VALUES (id, nid);
	RETURN (id + nid) % 3 = 0;
END $$;
-- one that changes the row which the join has just given
CREATE FUNCTION bumped(nid int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	UPDATE n SET y = y + 1000 WHERE n.id = nid;
	RETURN (SELECT n.y FROM n WHERE n.id = nid);
END $$;
BEGIN;
EXPLAIN (COSTS OFF) SELECT o.id, n.id AS nid FROM o JOIN n ON n.k = o.k AND noted(o.id, n.id) WHERE o.id < 500;
SELECT count(*) FROM o JOIN n ON n.k = o.k AND noted(o.id, n.id) WHERE o.id < 500;
SELECT md5(string_agg(id || '/' || nid, ',' ORDER BY nr)) AS on FROM calls \gset
ROLLBACK;
BEGIN;
SET LOCAL artidx.batched_joins = off;
SELECT count(*) FROM o JOIN n ON n.k = o.k AND noted(o.id, n.id) WHERE o.id < 500;
SELECT md5(string_agg(id || '/' || nid, ',' ORDER BY nr)) AS off FROM calls \gset
ROLLBACK;
SELECT :'on' = :'off' AS same;
EXPLAIN (COSTS OFF) SELECT o.id, n.y, bumped(n.id) AS b FROM o JOIN n ON n.k = o.k WHERE o.id < 300 OFFSET 0;
BEGIN;
SELECT md5(string_agg(r::text, ',')) AS on FROM (SELECT o.id, n.y, bumped(n.id) AS b FROM o JOIN n ON n.k = o.k WHERE o.id < 300 OFFSET 0) r \gset
ROLLBACK;
BEGIN;
SET LOCAL artidx.batched_joins = off;
SELECT md5(string_agg(r::text, ',')) AS off FROM (SELECT o.id, n.y, bumped(n.id) AS b FROM o JOIN n ON n.k = o.k WHERE o.id < 300 OFFSET 0) r \gset
ROLLBACK;
SELECT :'on' = :'off' AS same;

-- ---- batches and searches -----------------------------------------------------------

-- a LIMIT that few rows come up to does not keep the batches small
SELECT counts('SELECT o.id, n.y FROM o JOIN n ON n.id = o.id WHERE n.y + o.x < -5 ORDER BY o.t LIMIT 5');
-- many entries of one key: searched for alone, and from the index only if that will do
CREATE TABLE hot AS SELECT CASE WHEN i <= 3000 THEN 1 ELSE i END AS k, i AS v FROM generate_series(1, 100000) i;
CREATE INDEX hot_k ON hot USING art (k);
CREATE TABLE asks AS SELECT CASE WHEN i % 100 = 0 THEN 1 ELSE i + 3000 END AS k FROM generate_series(1, 300) i;
VACUUM ANALYZE hot, asks;
SELECT counts('SELECT hot.k FROM asks JOIN hot ON hot.k = asks.k');
SELECT same('SELECT hot.k FROM asks JOIN hot ON hot.k = asks.k');
BEGIN;
SELECT idx_tup_fetch AS before FROM pg_stat_xact_user_tables WHERE relid = 'hot'::regclass \gset
SELECT count(hot.k) FROM asks JOIN hot ON hot.k = asks.k;
SELECT idx_tup_fetch - :before AS fetched FROM pg_stat_xact_user_tables WHERE relid = 'hot'::regclass;
COMMIT;
-- run again from the middle of such a search
EXPLAIN (COSTS OFF) SELECT s FROM generate_series(1, 6) s WHERE NOT EXISTS (SELECT FROM
	(SELECT hot.v FROM asks JOIN hot ON hot.k = asks.k OFFSET 0) q WHERE q.v = s * 7 + s % 2 * 100000);
SELECT same('SELECT s FROM generate_series(1, 6) s WHERE NOT EXISTS (SELECT FROM
	(SELECT hot.v FROM asks JOIN hot ON hot.k = asks.k OFFSET 0) q WHERE q.v = s * 7 + s % 2 * 100000)');
-- rows that only the heap can tell about
BEGIN;
DELETE FROM hot WHERE v % 3 = 0;
SELECT same('SELECT hot.k FROM asks JOIN hot ON hot.k = asks.k');
ROLLBACK;
-- where one of many is wanted a look-up, which finds all, is of no use
UPDATE asks SET k = 1;
ANALYZE asks;
SELECT counts('SELECT k FROM asks WHERE EXISTS (SELECT FROM hot WHERE hot.k = asks.k AND hot.v > asks.k)');
-- index-only, and the first entry of a key is not the one: the others ask the visibility map as well
CREATE TABLE few AS SELECT i % 1000 AS k, i AS v FROM generate_series(1, 10000) i;
CREATE INDEX few_k ON few USING art (k);
VACUUM ANALYZE few;
SELECT counts('SELECT id FROM o WHERE NOT EXISTS (SELECT FROM few WHERE few.k = o.id AND few.k::text > o.t)');
SELECT counts('SELECT id FROM o WHERE EXISTS (SELECT FROM few WHERE few.k = o.id AND few.k::text > o.t)');
SELECT same('SELECT id FROM o WHERE NOT EXISTS (SELECT FROM few WHERE few.k = o.id AND (few.k + o.id) % 3 > 0)');

-- outer rows that are locked, or that a volatile function sees, are not read before they are wanted
SET artidx.batched_joins = on;
EXPLAIN (COSTS OFF) SELECT n.y FROM (SELECT * FROM o OFFSET 0) s JOIN n ON n.k = s.id;
EXPLAIN (COSTS OFF) SELECT n.y FROM (SELECT * FROM o FOR UPDATE SKIP LOCKED) s JOIN n ON n.k = s.id;
EXPLAIN (COSTS OFF) SELECT n.y FROM (SELECT * FROM o WHERE pg_try_advisory_xact_lock(id) OFFSET 0) s JOIN n ON n.k = s.id;
EXPLAIN (COSTS OFF) SELECT n.y FROM o JOIN n ON n.k = o.id WHERE pg_try_advisory_xact_lock(o.id);
EXPLAIN (COSTS OFF) WITH c AS MATERIALIZED (SELECT id FROM o) SELECT n.y FROM c JOIN n ON n.k = c.id;
EXPLAIN (COSTS OFF) WITH c AS (SELECT id FROM o FOR UPDATE SKIP LOCKED) SELECT n.y FROM c JOIN n ON n.k = c.id;
EXPLAIN (COSTS OFF) SELECT n.y FROM (SELECT * FROM (SELECT id FROM o FOR UPDATE) i OFFSET 0) s JOIN n ON n.k = s.id;
-- nor of a function, of VALUES, of XMLTABLE, of TABLESAMPLE
CREATE FUNCTION v_of(id int) RETURNS SETOF int LANGUAGE plpgsql VOLATILE ROWS 1 AS $$ BEGIN RETURN NEXT id; END $$;
CREATE FUNCTION s_of(id int) RETURNS SETOF int LANGUAGE plpgsql STABLE ROWS 1 AS $$ BEGIN RETURN NEXT id; END $$;
CREATE FUNCTION v_one(id int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN id; END $$;
CREATE FUNCTION s_one(id int) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN id; END $$;
SET join_collapse_limit = 1;
SELECT item, as_json('SELECT n.y FROM o CROSS JOIN LATERAL ' || item || ' s (v) JOIN n ON n.id = s.v')::text ~ 'Batched' AS batched
FROM unnest(ARRAY['%s_of(o.id)', '(VALUES (%s_one(o.id)), (0))',
		'XMLTABLE(''.'' PASSING xmlelement(name r, %s_one(o.id)) COLUMNS v int PATH ''.'')',
		'(SELECT a FROM v TABLESAMPLE bernoulli (%s_one(o.id)))']) f,
	unnest(ARRAY['s', 'v']) w, format(f, w) item
ORDER BY w, item COLLATE "C";
RESET join_collapse_limit;

DROP SCHEMA batched CASCADE;
