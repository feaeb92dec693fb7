--
-- Operator families of btree that change, and art's copies of them.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;
CREATE SCHEMA opf;
SET search_path = opf, public;
-- as equivclass of PostgreSQL's own tests
SET client_min_messages = warning;
CREATE TYPE int8alias1;
CREATE FUNCTION int8alias1in(cstring) RETURNS int8alias1 STRICT IMMUTABLE LANGUAGE internal AS 'int8in';
CREATE FUNCTION int8alias1out(int8alias1) RETURNS cstring STRICT IMMUTABLE LANGUAGE internal AS 'int8out';
CREATE TYPE int8alias1 (input = int8alias1in, output = int8alias1out, like = int8);
RESET client_min_messages;
CREATE CAST (int8 AS int8alias1) WITHOUT FUNCTION;
CREATE CAST (int8alias1 AS int8) WITHOUT FUNCTION;
CREATE FUNCTION int8alias1eq(int8alias1, int8alias1) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int8eq';
CREATE OPERATOR = (procedure = int8alias1eq, leftarg = int8alias1, rightarg = int8alias1, commutator = =, restrict = eqsel, join = eqjoinsel, merges);
CREATE FUNCTION int8alias1lt(int8alias1, int8alias1) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int8lt';
CREATE OPERATOR < (procedure = int8alias1lt, leftarg = int8alias1, rightarg = int8alias1);
CREATE FUNCTION int8alias1cmp(int8alias1, int8alias1) RETURNS int STRICT IMMUTABLE LANGUAGE internal AS 'btint8cmp';
CREATE FUNCTION int8alias1eq(int8, int8alias1) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int8eq';
CREATE OPERATOR = (procedure = int8alias1eq, leftarg = int8, rightarg = int8alias1, restrict = eqsel, join = eqjoinsel, merges);

-- members of btree's families that are art's as well
CREATE FUNCTION beside(family text) RETURNS TABLE (what text, btree bool, art bool) LANGUAGE sql AS $$
	WITH m AS (
		SELECT opfmethod, format('%s %s', amopstrategy, amopopr::regoperator) AS what
			FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily WHERE opfname = family
				AND (amoplefttype::regtype || amoprighttype::regtype::text) ~ 'alias|pair'
		UNION ALL
		SELECT opfmethod, format('%s %s', amprocnum, amproc::regprocedure)
			FROM pg_amproc JOIN pg_opfamily f ON f.oid = amprocfamily WHERE opfname = family
				AND (amproclefttype::regtype || amprocrighttype::regtype::text) ~ 'alias|pair')
	SELECT what, bool_or(amname = 'btree'), bool_or(amname = 'art')
	FROM m JOIN pg_am a ON a.oid = opfmethod GROUP BY 1 ORDER BY 1 $$;

CREATE TABLE t (k int PRIMARY KEY, a int);
SET client_min_messages = warning;
SET artidx.replace_btree = constraints;
CREATE TABLE r (k int PRIMARY KEY, b text);
RESET artidx.replace_btree;
RESET client_min_messages;
-- parity of the planner, told by join removal
EXPLAIN (COSTS OFF) SELECT t.a FROM t LEFT JOIN r ON t.a = r.k;
ALTER OPERATOR FAMILY integer_ops USING btree ADD
	OPERATOR 3 = (int8alias1, int8alias1), OPERATOR 1 < (int8alias1, int8alias1),
	OPERATOR 3 = (int8, int8alias1), FUNCTION 1 int8alias1cmp(int8alias1, int8alias1),
	FUNCTION 1 (int8, int8alias1) btint8cmp(int8, int8);
SELECT * FROM beside('integer_ops');
EXPLAIN (COSTS OFF) SELECT t.a FROM t LEFT JOIN r ON t.a = r.k;
ALTER OPERATOR FAMILY integer_ops USING btree DROP OPERATOR 3 (int8, int8alias1), FUNCTION 1 (int8, int8alias1);
SELECT * FROM beside('integer_ops');
ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 3 = (int8, int8alias1);
ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 3 = (int8, int8alias1);
DO $$ BEGIN ALTER OPERATOR FAMILY integer_ops USING btree DROP OPERATOR 3 (int8, opf.int8alias1); END $$;
SELECT * FROM beside('integer_ops');
BEGIN;
ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 3 = (int8, int8alias1);
ROLLBACK;
SELECT * FROM beside('integer_ops');
-- nothing of ours is in the way
DROP OPERATOR = (int8, int8alias1);
DROP FUNCTION int8alias1cmp(int8alias1, int8alias1);
DROP OPERATOR < (int8alias1, int8alias1);
SELECT * FROM beside('integer_ops');
SET client_min_messages = warning;
DROP TYPE int8alias1 CASCADE;
RESET client_min_messages;
SELECT * FROM beside('integer_ops');

-- a class in a family of core's
CREATE TYPE pair AS (x int, y int);
CREATE FUNCTION pair_lt(pair, pair) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1.x < $2.x';
CREATE FUNCTION pair_le(pair, pair) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1.x <= $2.x';
CREATE FUNCTION pair_eq(pair, pair) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1.x = $2.x';
CREATE FUNCTION pair_ge(pair, pair) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1.x >= $2.x';
CREATE FUNCTION pair_gt(pair, pair) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1.x > $2.x';
CREATE FUNCTION pair_cmp(pair, pair) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS 'SELECT pg_catalog.btint4cmp($1.x, $2.x)';
CREATE OPERATOR <| (procedure = pair_lt, leftarg = pair, rightarg = pair, commutator = |>);
CREATE OPERATOR <=| (procedure = pair_le, leftarg = pair, rightarg = pair);
CREATE OPERATOR =|= (procedure = pair_eq, leftarg = pair, rightarg = pair, commutator = =|=);
CREATE OPERATOR |>= (procedure = pair_ge, leftarg = pair, rightarg = pair);
CREATE OPERATOR |> (procedure = pair_gt, leftarg = pair, rightarg = pair, commutator = <|);
CREATE OPERATOR CLASS pair_x_ops FOR TYPE pair USING btree FAMILY record_ops AS
	OPERATOR 1 <|, OPERATOR 2 <=|, OPERATOR 3 =|=, OPERATOR 4 |>=, OPERATOR 5 |>, FUNCTION 1 pair_cmp(pair, pair);
SELECT * FROM beside('record_ops');
DROP OPERATOR CLASS pair_x_ops USING btree;
SELECT * FROM beside('record_ops');
CREATE OPERATOR CLASS pair_x_ops FOR TYPE pair USING btree FAMILY record_ops AS
	OPERATOR 1 <|, OPERATOR 3 =|=, OPERATOR 5 |>, FUNCTION 1 pair_cmp(pair, pair);
ALTER OPERATOR FAMILY record_ops USING btree ADD OPERATOR 2 <=| (pair, pair);
SELECT * FROM beside('record_ops');
SET client_min_messages = warning;
DROP FUNCTION pair_cmp CASCADE;
RESET client_min_messages;
SELECT * FROM beside('record_ops');
CREATE FUNCTION pair_cmp(pair, pair) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS 'SELECT pg_catalog.btint4cmp($1.x, $2.x)';

-- a class and family of one's own, mirrored on demand
CREATE OPERATOR CLASS pair_x_ops DEFAULT FOR TYPE pair USING btree AS
	OPERATOR 1 <|, OPERATOR 2 <=|, OPERATOR 3 =|=, OPERATOR 4 |>=, OPERATOR 5 |>, FUNCTION 1 pair_cmp(pair, pair);
SELECT artidx_mirror_opclass('pair_x_ops') IS NOT NULL;
SELECT * FROM beside('pair_x_ops');
CREATE TABLE p (r pair);
CREATE INDEX p_r ON p USING art (r pair_x_ops);
INSERT INTO p SELECT row(i, i)::pair FROM generate_series(10, 1, -1) i;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE r <| row(3, 0)::pair ORDER BY r USING <|;
SELECT * FROM p WHERE r <| row(3, 0)::pair ORDER BY r USING <|;
-- dead entries that a query has met, when it ends, or its cursor at the commit
DELETE FROM p;
INSERT INTO p SELECT row(i, i)::pair FROM generate_series(1, 30) i;
SET enable_bitmapscan = off;
SET enable_sort = off;
DELETE FROM p WHERE (r).x <= 10;
SELECT r FROM p WHERE r |> row(0, 0)::pair ORDER BY r USING <| LIMIT 1;
BEGIN;
DECLARE c CURSOR FOR SELECT r FROM p WHERE r |> row(0, 0)::pair ORDER BY r USING <|;
FETCH 1 FROM c;
COMMIT;
RESET enable_bitmapscan;
RESET enable_sort;
RESET enable_seqscan;
DROP FUNCTION pair_cmp(pair, pair);
DROP OPERATOR CLASS pair_x_ops USING btree;
DROP INDEX p_r;
DROP OPERATOR CLASS pair_x_ops USING btree;
SELECT opcname, amname FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE opcname = 'pair_x_ops';
SELECT opfname, amname FROM pg_opfamily JOIN pg_am a ON a.oid = opfmethod WHERE opfname = 'pair_x_ops';
SELECT * FROM beside('pair_x_ops');
DROP OPERATOR FAMILY pair_x_ops USING btree;
SELECT opfname, amname FROM pg_opfamily JOIN pg_am a ON a.oid = opfmethod WHERE opfname = 'pair_x_ops';
CREATE OPERATOR CLASS pair_x_ops DEFAULT FOR TYPE pair USING btree AS
	OPERATOR 1 <|, OPERATOR 2 <=|, OPERATOR 3 =|=, OPERATOR 4 |>=, OPERATOR 5 |>, FUNCTION 1 pair_cmp(pair, pair);
SELECT artidx_mirror_opclass('pair_x_ops') IS NOT NULL;
CREATE INDEX p_r ON p USING art (r pair_x_ops);
DROP TABLE p;
DROP OPERATOR FAMILY pair_x_ops USING btree CASCADE;
SELECT opfname, amname FROM pg_opfamily JOIN pg_am a ON a.oid = opfmethod WHERE opfname = 'pair_x_ops';
CREATE OPERATOR CLASS pair_x_ops DEFAULT FOR TYPE pair USING btree AS
	OPERATOR 1 <|, OPERATOR 2 <=|, OPERATOR 3 =|=, OPERATOR 4 |>=, OPERATOR 5 |>, FUNCTION 1 pair_cmp(pair, pair);
SELECT artidx_mirror_opclass('pair_x_ops') IS NOT NULL;
DROP TYPE pair CASCADE;
SELECT opcname, amname FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE opcname = 'pair_x_ops';
-- two families of one name, of which one schema can have the mirror of one only
CREATE SCHEMA one;
CREATE SCHEMA other;
CREATE OPERATOR FAMILY one.ci USING btree;
CREATE OPERATOR FAMILY other.ci USING btree;
CREATE OPERATOR CLASS one.ci_ops FOR TYPE text USING btree FAMILY one.ci AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 bttextcmp(text, text);
CREATE OPERATOR CLASS other.ci2_ops FOR TYPE text USING btree FAMILY other.ci AS
	OPERATOR 1 ~<~, OPERATOR 2 ~<=~, OPERATOR 3 =, OPERATOR 4 ~>=~, OPERATOR 5 ~>~, FUNCTION 1 bttext_pattern_cmp(text, text);
SELECT artidx_mirror_opclass('one.ci_ops') IS NOT NULL;
SELECT artidx_mirror_opclass('other.ci2_ops');
SET client_min_messages = warning;
DROP SCHEMA one, other CASCADE;
RESET client_min_messages;
SET client_min_messages = warning;
DROP SCHEMA opf CASCADE;
RESET client_min_messages;
SELECT opfname, amname FROM pg_opfamily JOIN pg_am a ON a.oid = opfmethod WHERE opfname = 'pair_x_ops';
