--
-- Operator families and classes: nbtree's, and what is wrong with others.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA opclass;
SET search_path = opclass, public;

-- every member of nbtree's families of the same name is one of ours, and the
-- other way round
CREATE VIEW members AS
	SELECT m.amname, f.opfname, amoplefttype::regtype AS l, amoprighttype::regtype AS r,
		'operator' AS kind, amopstrategy AS number, amopopr::regoperator::text AS object,
		amoppurpose AS purpose
	FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily JOIN pg_am m ON m.oid = f.opfmethod
	UNION ALL
	SELECT m.amname, f.opfname, amproclefttype::regtype, amprocrighttype::regtype,
		'function', amprocnum, amproc::regprocedure::text, NULL
	FROM pg_amproc p JOIN pg_opfamily f ON f.oid = p.amprocfamily JOIN pg_am m ON m.oid = f.opfmethod;
SELECT b.opfname, b.l, b.r, b.kind, b.number, b.object
	FROM (SELECT opfname, l, r, kind, number, object, purpose FROM members WHERE amname = 'btree'
			AND opfname IN (SELECT opfname FROM members WHERE amname = 'art')
		EXCEPT ALL
		SELECT opfname, l, r, kind, number, object, purpose FROM members WHERE amname = 'art') b;
SELECT a.opfname, a.l, a.r, a.kind, a.number, a.object
	FROM (SELECT opfname, l, r, kind, number, object, purpose FROM members WHERE amname = 'art'
		EXCEPT ALL
		SELECT opfname, l, r, kind, number, object, purpose FROM members WHERE amname = 'btree') a;
SELECT opfname, count(DISTINCT l) AS types, count(*) FILTER (WHERE kind = 'operator') AS operators,
		count(*) FILTER (WHERE kind = 'function' AND number = 1) AS orders
	FROM members WHERE amname = 'art' AND opfname <> 'oid8_ops' GROUP BY opfname ORDER BY opfname;

-- so are the classes, with their defaults
CREATE VIEW classes AS
	SELECT m.amname, c.opcname, f.opfname, c.opcintype::regtype AS type, c.opcdefault,
		c.opckeytype::regtype AS storage, c.oid AS class
	FROM pg_opclass c JOIN pg_opfamily f ON f.oid = c.opcfamily JOIN pg_am m ON m.oid = c.opcmethod;
SELECT opcname, opfname, type, opcdefault FROM classes WHERE amname = 'art' AND opfname <> 'oid8_ops' ORDER BY opfname, opcname;
SELECT a.opcname FROM classes a LEFT JOIN classes b USING (opcname, opfname, type, opcdefault)
	WHERE a.amname = 'art' AND b.amname = 'btree' GROUP BY a.opcname HAVING count(b.opcname) <> 1;
SELECT b.opcname FROM classes b
	WHERE b.amname = 'btree' AND b.opfname IN (SELECT opfname FROM classes WHERE amname = 'art')
		AND NOT EXISTS (SELECT FROM classes a WHERE a.amname = 'art'
			AND (a.opcname, a.opfname, a.type, a.opcdefault) = (b.opcname, b.opfname, b.type, b.opcdefault));
SELECT opcname, storage FROM classes WHERE amname = 'art' AND storage <> 0;

-- all of them are valid
SELECT opcname FROM classes WHERE amname = 'art' AND amvalidate(class) IS NOT TRUE;

-- members of one type hang on their class, the others on the family (18 has
-- skip support and sorts ranges; 19 has oid8, and does not say any more that equal
-- values of two types are of equal bytes)
SELECT kind, l = r AS same_type, object_kind, deptype, count(*)
	FROM (SELECT 'operator' AS kind, amoplefttype AS l, amoprighttype AS r,
			d.refclassid::regclass AS object_kind, d.deptype
		FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily JOIN pg_am m ON m.oid = f.opfmethod
			JOIN pg_depend d ON d.classid = 'pg_amop'::regclass AND d.objid = o.oid
		WHERE m.amname = 'art' AND f.opfname <> 'oid8_ops'
			AND d.refclassid IN ('pg_opclass'::regclass, 'pg_opfamily'::regclass)
		UNION ALL
		SELECT CASE p.amprocnum WHEN 1 THEN 'order' ELSE 'optional' END, amproclefttype, amprocrighttype,
			d.refclassid::regclass, d.deptype
		FROM pg_amproc p JOIN pg_opfamily f ON f.oid = p.amprocfamily JOIN pg_am m ON m.oid = f.opfmethod
			JOIN pg_depend d ON d.classid = 'pg_amproc'::regclass AND d.objid = p.oid
		WHERE m.amname = 'art' AND p.amprocnum < 6 AND p.amproc::text <> 'range_sortsupport'
			AND f.opfname <> 'oid8_ops'
			AND NOT (p.amprocnum = 4 AND amproclefttype IN ('bpchar'::regtype, 'oidvector'::regtype))
			AND d.refclassid IN ('pg_opclass'::regclass, 'pg_opfamily'::regclass)) s
	GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4;

-- what is wrong with a class is told
CREATE OPERATOR CLASS bad_ops FOR TYPE int USING art AS
	OPERATOR 1 <, OPERATOR 3 =, OPERATOR 2 <= (int, bigint);
SELECT amvalidate(class) FROM classes WHERE opcname = 'bad_ops';
-- a class whose order is not known to have an encoding
CREATE FUNCTION other_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($1, $2)';
CREATE OPERATOR CLASS other_ops FOR TYPE int USING art AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 other_cmp(int, int);
SELECT amvalidate(class) FROM classes WHERE opcname = 'other_ops';
CREATE TABLE art_o (k int);
CREATE INDEX art_o_k ON art_o USING art (k other_ops) WITH (structure = art);
DROP OPERATOR FAMILY bad_ops USING art CASCADE;
DROP OPERATOR FAMILY other_ops USING art CASCADE;

-- operators that btree does not know: the planner has no order of that column
CREATE FUNCTION alone_cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN btint4cmp($1, $2); END';
CREATE OPERATOR <# (FUNCTION = int4lt, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR <=# (FUNCTION = int4le, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR =# (FUNCTION = int4eq, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR >=# (FUNCTION = int4ge, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR ># (FUNCTION = int4gt, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR CLASS alone_ops FOR TYPE int USING art AS
	OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#,
	FUNCTION 1 alone_cmp(int, int);
CREATE TABLE art_a AS SELECT i AS k, i % 10 AS l FROM generate_series(1, 1000) i;
CREATE INDEX art_a_k ON art_a USING art (k, l alone_ops);
CREATE INDEX art_a_l ON art_a USING art (l alone_ops);
ANALYZE art_a;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT l FROM art_a WHERE k = 5;
SELECT l FROM art_a WHERE k = 5;
SELECT count(*) FROM art_a WHERE k BETWEEN 5 AND 100 AND l ># 7;
SELECT count(*) FROM art_a WHERE l =# ANY (ARRAY[5, 5]);
SELECT count(*) FROM art_a WHERE l =# ANY (ARRAY[5, 7, 5]) AND l ># 5;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE art_a;
DROP OPERATOR FAMILY alone_ops USING art CASCADE;

-- types without an encoding, and collations: a radix tree takes none of them
CREATE TABLE art_x (n numeric[], f oidvector, j jsonb, c char(5), t text COLLATE "und-x-icu", v varchar(9));
CREATE INDEX art_x_n ON art_x USING art (n) WITH (structure = art);
CREATE INDEX art_x_f ON art_x USING art (f) WITH (structure = art);
CREATE INDEX art_x_j ON art_x USING art (j) WITH (structure = art);

CREATE COLLATION nondet (provider = icu, locale = 'und', deterministic = false);
CREATE INDEX art_x_t ON art_x USING art (t) WITH (structure = art);
CREATE INDEX art_x_v ON art_x USING art (v COLLATE "und-x-icu") WITH (structure = art);
CREATE INDEX art_x_w ON art_x USING art (v COLLATE nondet) WITH (structure = art);
CREATE INDEX art_x_u ON art_x USING art (v COLLATE nondet text_pattern_ops);
CREATE INDEX art_x_u ON art_x USING art (v COLLATE nondet varchar_pattern_ops);
CREATE INDEX art_x_m ON art_x USING art ((t::name) COLLATE "und-x-icu") WITH (structure = art);
SELECT indexrelname, structure FROM artidx_indexes WHERE indexrelname ~ '^art_[ox]_' ORDER BY 1;
DROP INDEX art_x_n, art_x_f, art_x_j, art_x_t, art_x_v, art_x_w, art_x_m;
CREATE INDEX art_x_1 ON art_x USING art (t COLLATE "C");
CREATE INDEX art_x_2 ON art_x USING art (t COLLATE "POSIX");
CREATE INDEX art_x_3 ON art_x USING art (t COLLATE ucs_basic);
CREATE INDEX art_x_4 ON art_x USING art (v varchar_ops);
CREATE INDEX art_x_5 ON art_x USING art (t text_pattern_ops, v varchar_pattern_ops);
INSERT INTO art_x (t, v) SELECT w, w FROM unnest(ARRAY['b', 'B', 'a', 'A', 'ab', 'é', 'z', '', NULL]) w;
SET enable_seqscan = off;
SET enable_sort = off;
SET jit = off;
SELECT t FROM art_x ORDER BY t COLLATE "C";
SELECT v FROM art_x ORDER BY v DESC;
SELECT t FROM art_x WHERE t = 'a';
SELECT t FROM art_x WHERE t LIKE 'a%' ORDER BY t USING ~<~;
EXPLAIN (COSTS OFF) SELECT t FROM art_x WHERE t LIKE 'a%' ORDER BY t USING ~<~;

DROP TABLE art_x, art_o;
DROP COLLATION nondet;
