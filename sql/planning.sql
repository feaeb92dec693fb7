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

DROP SCHEMA planning CASCADE;
