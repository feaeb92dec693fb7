--
-- A column gets the operator class that btree would give it, and never one by coercion.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
CREATE EXTENSION citext;
RESET client_min_messages;
CREATE SCHEMA df;
SET search_path = df, public;
-- column by column: the class, and whether it is the one of btree's default for the type
CREATE FUNCTION classes(rel regclass) RETURNS TABLE (index text, col int, class text, default_of_btree bool) LANGUAGE sql AS $$
	SELECT indexrelid::regclass::text, n::int, o.opcname::text, b.opcname IS NOT NULL
	FROM pg_index i CROSS JOIN generate_series(0, indnkeyatts - 1) n
		JOIN pg_attribute a ON a.attrelid = indexrelid AND a.attnum = n + 1
		LEFT JOIN pg_type t ON t.oid = a.atttypid AND t.typtype = 'd'
		JOIN pg_opclass o ON o.oid = indclass[n] AND o.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'art')
		LEFT JOIN pg_opclass b ON b.opcmethod = 403 AND b.opcdefault AND b.opcname = o.opcname
			AND b.opcintype IN (a.atttypid, t.typbasetype) AND b.opcintype = o.opcintype
	WHERE indrelid = rel ORDER BY 1, 2 $$;

-- CREATE INDEX, in every structure: 'a' is 'A'
DO $$
DECLARE
	how text;
BEGIN
	FOREACH how IN ARRAY ARRAY['structure = art', 'structure = btree', 'structure = hydra', 'sync = coarse'] LOOP
		EXECUTE 'CREATE TABLE s (e public.citext, n int)';
		SET LOCAL client_min_messages = error;
		EXECUTE format('CREATE UNIQUE INDEX s_e ON s USING art (e) WITH (%s)', how);
		SET LOCAL client_min_messages = notice;
		EXECUTE $i$INSERT INTO s SELECT 'Key' || g, g FROM generate_series(1, 500) g$i$;
		BEGIN
			EXECUTE $i$INSERT INTO s VALUES ('kEY77')$i$;
			RAISE EXCEPTION 'not refused';
		EXCEPTION WHEN unique_violation THEN
		END;
		SET LOCAL enable_seqscan = off;
		EXECUTE $i$SELECT n FROM s WHERE e = 'KEY99'$i$ INTO STRICT how;
		RAISE NOTICE '%', how;
		EXECUTE 'DROP TABLE s';
	END LOOP;
END $$;
SELECT opcname, opcnamespace::regnamespace, opcdefault, opcowner::regrole::text = rolname AS bootstrap
FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod AND amname = 'art', pg_roles r
WHERE opcname = 'citext_ops' AND r.oid = 10;

-- whoever makes the index: neither may he make operator classes, nor create in the schema
CREATE ROLE regress_defaults;
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
GRANT ALL ON SCHEMA df TO regress_defaults;
CREATE TABLE foreign_to_him (e citext);
SET ROLE regress_defaults;
CREATE INDEX ON foreign_to_him USING art (e);
RESET ROLE;
SELECT count(*) FROM pg_opclass WHERE opcname = 'citext_ops';
SET ROLE regress_defaults;
CREATE TABLE his (e citext);
CREATE UNIQUE INDEX his_e ON his USING art (e);
INSERT INTO his VALUES ('a'), ('A');
SELECT * FROM classes('his');
DROP TABLE his;
RESET ROLE;

-- a class that is named is obeyed as by btree; there is a default beside it, so it is told
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
CREATE TABLE n (e citext);
CREATE UNIQUE INDEX n_e ON n USING art (e text_ops);
INSERT INTO n VALUES ('a'), ('A');
SELECT pg_get_indexdef('n_e'::regclass);
CREATE TABLE n2 (LIKE n INCLUDING ALL);
SELECT * FROM classes('n2');
-- nor has art this one yet
CREATE INDEX n_p ON n USING art (e citext_pattern_ops);
SELECT * FROM classes('n');
DROP INDEX n_p;
-- the same, said so that nobody doubts it
CREATE INDEX n_cast ON n USING art (CAST(e AS text));
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM n WHERE e::text = 'a';
DROP INDEX n_cast;
EXPLAIN (COSTS OFF) SELECT * FROM n WHERE e::text = 'a';
DROP TABLE n, n2;

-- constraints, LIKE, ALTER TYPE, domains, expressions, arrays, rows
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
CREATE TABLE c (e citext, EXCLUDE USING art (e WITH =));
INSERT INTO c VALUES ('a'), ('A');
SELECT * FROM classes('c');
DROP TABLE c;
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
CREATE TABLE c (k int);
ALTER TABLE c ADD COLUMN e citext, ADD CONSTRAINT c_x EXCLUDE USING art (e WITH =);
INSERT INTO c VALUES (1, 'a'), (2, 'A');
DROP TABLE c;
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
CREATE TABLE c (k int, e text);
CREATE UNIQUE INDEX c_e ON c USING art (e);
INSERT INTO c VALUES (1, 'a'), (2, 'A');
ALTER TABLE c ALTER e TYPE citext;
DELETE FROM c WHERE k = 2;
ALTER TABLE c ALTER e TYPE citext;
CREATE TABLE c2 (LIKE c INCLUDING ALL);
INSERT INTO c2 VALUES (1, 'a'), (2, 'A');
SELECT * FROM classes('c') UNION ALL SELECT * FROM classes('c2');
DROP TABLE c, c2;
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
CREATE DOMAIN address AS citext CHECK (VALUE ~ '@');
CREATE TYPE both_of AS (e citext, n int);
CREATE TABLE c (d address, a citext[], b both_of, e citext);
CREATE UNIQUE INDEX c_d ON c USING art (d);
CREATE UNIQUE INDEX c_a ON c USING art (a);
CREATE UNIQUE INDEX c_b ON c USING art (b);
CREATE UNIQUE INDEX CONCURRENTLY c_e ON c USING art ((CASE WHEN e <> '' THEN e END));
SELECT * FROM classes('c');
INSERT INTO c VALUES ('x@y', '{a}', ('a', 1), 'a');
INSERT INTO c (d) VALUES ('X@Y');
INSERT INTO c (a) VALUES ('{A}');
INSERT INTO c (b) VALUES (('A', 1));
INSERT INTO c (e) VALUES ('A');
DROP TABLE c;
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
CREATE TYPE of_it AS (k int, e text);
CREATE TABLE c OF of_it;
CREATE UNIQUE INDEX c_e ON c USING art (e);
ALTER TYPE of_it ALTER ATTRIBUTE e TYPE citext CASCADE;
SELECT * FROM classes('c');
DROP TABLE c;
-- the type of an expression is not known before a column is there
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
CREATE TABLE c (e citext);
ALTER TABLE c ADD EXCLUDE USING art ((CASE WHEN e <> '' THEN e END) WITH =);
SELECT * FROM classes('c');
ALTER TABLE c DROP CONSTRAINT c_case_excl;
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
-- (17 qualifies names)
CREATE FUNCTION fails(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	hint text;
BEGIN
	EXECUTE q;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
	RETURN regexp_replace(concat_ws(E'\n', message, nullif(hint, '')), 'public\.(=|citext\y)', '\1', 'g');
END $$;
\pset tuples_only on
\pset format unaligned
SELECT fails($$ALTER TABLE c ADD COLUMN f citext, ADD EXCLUDE USING art ((CASE WHEN f <> '' THEN e END) WITH =)$$);
SELECT fails($$ALTER TABLE c ADD COLUMN f citext, ADD EXCLUDE USING art ((CASE WHEN f <> '' THEN e END) WITH OPERATOR(pg_catalog.=))$$);
\pset tuples_only off
\pset format aligned
SELECT artidx_mirror_opclass('public.citext_ops') IS NOT NULL;
ALTER TABLE c ADD EXCLUDE USING art ((CASE WHEN e <> '' THEN e END) WITH =);
INSERT INTO c VALUES ('a'), ('A');
DROP TABLE c;
-- it was made in another schema
DROP OPERATOR FAMILY citext_ops USING art CASCADE;

-- art in the place of btree
SET artidx.replace_btree = 'all';
CREATE TABLE r (e citext PRIMARY KEY, f citext UNIQUE DEFERRABLE, g citext, CONSTRAINT r_x EXCLUDE (g WITH =));
CREATE INDEX r_g ON r (g);
INSERT INTO r VALUES ('a', 'a', 'a');
INSERT INTO r VALUES ('A', 'b', 'b');
INSERT INTO r VALUES ('b', 'A', 'b');
INSERT INTO r VALUES ('b', 'b', 'A');
SELECT * FROM classes('r');
RESET artidx.replace_btree;
CALL artidx_to_btree('r_pkey');
DROP TABLE r;
-- a btree index made art
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
CREATE TABLE r (e citext);
CREATE UNIQUE INDEX r_e ON r (e);
CALL artidx_from_btree('r_e');
SELECT * FROM classes('r');
INSERT INTO r VALUES ('a'), ('A');
DROP TABLE r;

-- partitions
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
CREATE TABLE p (k int, e citext) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE INDEX p_e ON p USING art (e);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
CREATE TABLE p3 (k int, e citext);
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES IN (3);
SELECT * FROM classes('p') UNION ALL SELECT * FROM classes('p1') UNION ALL SELECT * FROM classes('p2') UNION ALL SELECT * FROM classes('p3');
DROP TABLE p;

-- what 0.1.0 made: told of, and kept by all that does not make it anew
CREATE TABLE w (k int, e citext);
CREATE UNIQUE INDEX w_e ON w USING art (e text_ops);
INSERT INTO w VALUES (1, 'a'), (2, 'A');
CREATE TABLE wp (k int, e citext) PARTITION BY LIST (k);
CREATE INDEX wp_e ON wp USING art (e text_ops);
DROP OPERATOR FAMILY public.citext_ops USING art CASCADE;
SELECT pg_get_indexdef('w_e'::regclass);
\c
SET search_path = df, public;
INSERT INTO w VALUES (3, 'b');
INSERT INTO w VALUES (4, 'B');
SELECT entries FROM artidx_check('w_e');
REINDEX INDEX w_e;
REINDEX INDEX CONCURRENTLY w_e;
VACUUM FULL w;
ALTER TABLE w ALTER k TYPE bigint;
-- the index of a partition has the class of its parent
CREATE TABLE wp1 PARTITION OF wp FOR VALUES IN (1);
SELECT * FROM classes('w') UNION ALL SELECT * FROM classes('wp1');
ALTER TABLE w ADD CONSTRAINT w_e UNIQUE USING INDEX w_e;
DROP INDEX w_e;
CREATE UNIQUE INDEX w_e ON w USING art (e);
DELETE FROM w WHERE k IN (2, 4);
CREATE UNIQUE INDEX w_e ON w USING art (e);
SELECT * FROM classes('w');
ALTER TABLE w ADD CONSTRAINT w_e UNIQUE USING INDEX w_e;
DROP TABLE w, wp;

-- a type of one's own: a cast that changes nothing, and its own order
CREATE TYPE rev;
SET client_min_messages = warning;
CREATE FUNCTION rev_in(cstring) RETURNS rev STRICT IMMUTABLE LANGUAGE internal AS 'int4in';
CREATE FUNCTION rev_out(rev) RETURNS cstring STRICT IMMUTABLE LANGUAGE internal AS 'int4out';
RESET client_min_messages;
CREATE TYPE rev (input = rev_in, output = rev_out, like = int4);
CREATE CAST (rev AS int4) WITHOUT FUNCTION AS IMPLICIT;
-- btree has no default of its own, and takes int4's
CREATE TABLE t (r rev);
CREATE INDEX t_b ON t (r);
CREATE INDEX t_r ON t USING art (r);
SELECT * FROM classes('t');
DROP TABLE t;
CREATE FUNCTION rev_cmp(rev, rev) RETURNS int STRICT IMMUTABLE LANGUAGE sql AS 'SELECT pg_catalog.btint4cmp($2::int4, $1::int4)';
CREATE FUNCTION rev_lt(rev, rev) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int4gt';
CREATE FUNCTION rev_le(rev, rev) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int4ge';
CREATE FUNCTION rev_eq(rev, rev) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int4eq';
CREATE FUNCTION rev_ge(rev, rev) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int4le';
CREATE FUNCTION rev_gt(rev, rev) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int4lt';
CREATE OPERATOR < (function = rev_lt, leftarg = rev, rightarg = rev, commutator = >, negator = >=);
CREATE OPERATOR <= (function = rev_le, leftarg = rev, rightarg = rev, commutator = >=, negator = >);
CREATE OPERATOR = (function = rev_eq, leftarg = rev, rightarg = rev, commutator = =);
CREATE OPERATOR >= (function = rev_ge, leftarg = rev, rightarg = rev, commutator = <=, negator = <);
CREATE OPERATOR > (function = rev_gt, leftarg = rev, rightarg = rev, commutator = <, negator = <=);
CREATE OPERATOR CLASS rev_ops DEFAULT FOR TYPE rev USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 rev_cmp(rev, rev);
CREATE TABLE t (r rev);
INSERT INTO t SELECT g::text::rev FROM generate_series(1, 30) g;
CREATE INDEX t_r ON t USING art (r);
SELECT * FROM classes('t');
SET enable_sort = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT r FROM t WHERE r < '28' ORDER BY r;
SELECT r FROM t WHERE r < '28' ORDER BY r;
DROP TABLE t;
-- the name is taken
DROP OPERATOR FAMILY rev_ops USING art CASCADE;
CREATE OPERATOR CLASS rev_ops FOR TYPE int4 USING art AS FUNCTION 1 btint4cmp(int4, int4);
CREATE TABLE t (r rev);
CREATE INDEX t_r ON t USING art (r);
-- art in the place of btree stays btree then
SET artidx.replace_btree = 'indexes';
CREATE INDEX t_r ON t (r);
RESET artidx.replace_btree;
SELECT pg_get_indexdef('t_r'::regclass);
DROP TABLE t;
DROP OPERATOR FAMILY rev_ops USING art CASCADE;

-- an order of an enum's, and of a row's, in the place of the one for all of them
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE FUNCTION mood_cmp(mood, mood) RETURNS int STRICT IMMUTABLE LANGUAGE sql AS 'SELECT pg_catalog.enum_cmp($2, $1)';
CREATE OPERATOR CLASS mood_ops DEFAULT FOR TYPE mood USING btree AS
	OPERATOR 1 > (anyenum, anyenum), OPERATOR 3 = (anyenum, anyenum), OPERATOR 5 < (anyenum, anyenum), FUNCTION 1 mood_cmp(mood, mood);
CREATE TABLE t (m mood);
CREATE INDEX t_m ON t USING art (m);
SELECT * FROM classes('t');
DROP TABLE t;

-- types that have no class but btree's; what drops goes without a word
SET client_min_messages = warning;
CREATE EXTENSION isn SCHEMA df;
RESET client_min_messages;
CREATE TABLE b (i isbn, u upc, PRIMARY KEY (i));
CREATE INDEX b_iu ON b USING art (i, u);
SELECT * FROM classes('b');
SELECT artidx_mirror_opclass('ean13_ops') IS NOT NULL;
-- all members of the family
SELECT count(*) FILTER (WHERE amname = 'btree') = count(*) FILTER (WHERE amname = 'art') AS alike
FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = opfmethod WHERE opfname = 'isn_ops' AND amname <> 'hash';
DROP EXTENSION isn;
DROP TABLE b;
DROP EXTENSION isn;
SELECT count(*) FROM pg_opclass WHERE opcname ~ 'ean13_ops|isbn_ops|upc_ops';
-- a point has no order
CREATE TABLE b (p point);
CREATE INDEX ON b USING art (p);
DROP TABLE b;

-- IF EXISTS of an access method that is not there, as pg_restore --clean --if-exists says it
SET client_min_messages = error;
DROP SCHEMA df CASCADE;
DROP EXTENSION citext;
DROP EXTENSION artidx CASCADE;
RESET client_min_messages;
DROP OPERATOR CLASS IF EXISTS citext_ops USING art;
DROP OPERATOR FAMILY IF EXISTS public.citext_ops USING art;
DROP OPERATOR CLASS citext_ops USING art;
DROP OPERATOR CLASS IF EXISTS citext_ops USING nothing;
DROP OWNED BY regress_defaults;
DROP ROLE regress_defaults;
CREATE EXTENSION artidx;
