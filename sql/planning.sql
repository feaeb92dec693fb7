--
-- What the planner keeps of operator families, and its choice of plans.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;
CREATE SCHEMA planning;
SET search_path = planning, public;

-- an art family that loses a member is no longer taken for btree's, at once; and
-- again when it has it back
CREATE TABLE f (k int);
INSERT INTO f SELECT generate_series(1, 10000);
CREATE INDEX f_k ON f USING art (k);
VACUUM ANALYZE f;
EXPLAIN (COSTS OFF) SELECT * FROM f WHERE k < 5::int8;
BEGIN;
ALTER OPERATOR FAMILY integer_ops USING art DROP OPERATOR 1 (int4, int8);
EXPLAIN (COSTS OFF) SELECT * FROM f WHERE k < 5::int8;
SELECT count(*) FROM f WHERE k < 5::int8;
ROLLBACK;
EXPLAIN (COSTS OFF) SELECT * FROM f WHERE k < 5::int8;
SELECT count(*) FROM f WHERE k < 5::int8;

-- reading a whole index of random keys takes longer than reading a table of narrow
-- rows, and less long than one of wide rows; a part of it less long than either
CREATE FUNCTION chosen(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Scan' THEN
			RETURN substring(line FROM '\w[\w ]*Scan.*');
		END IF;
	END LOOP;
END $$;
CREATE TABLE narrow AS SELECT md5(i::text)::uuid AS id, 'some text ' || i AS d
	FROM generate_series(1, 20000) i;
CREATE TABLE wide AS SELECT id, repeat(d, 20) AS d FROM narrow;
CREATE UNIQUE INDEX narrow_id ON narrow USING art (id);
CREATE UNIQUE INDEX wide_id ON wide USING art (id);
VACUUM ANALYZE narrow, wide;
SET artidx.plan_costs = memory;
SELECT q AS query, chosen(q) FROM (VALUES
	('SELECT array_agg(id) FROM narrow'),
	('SELECT array_agg(id) FROM wide'),
	('SELECT array_agg(id) FROM narrow WHERE id < ''20000000-0000-0000-0000-000000000000'''),
	('SELECT d FROM narrow WHERE id = ''c4ca4238-a0b9-2382-0dcc-509a6f75849b'''),
	('SELECT id FROM narrow ORDER BY id LIMIT 10'),
	('SELECT id FROM narrow ORDER BY id')) AS v (q);
-- where nbtree is charged next to nothing for a page, so is art
SET random_page_cost = 0.1;
SELECT chosen('SELECT array_agg(id) FROM narrow');
RESET random_page_cost;
RESET artidx.plan_costs;

\set VERBOSITY terse
DROP SCHEMA planning CASCADE;
