--
-- CALL artidx_to_btree, artidx_from_btree: what an index was it stays, but for
-- its access method.
--
\set outer :DBNAME
CREATE DATABASE art_convert;
\c art_convert
CREATE EXTENSION artidx;
CREATE SCHEMA conv;
SET search_path = conv, public;

-- all that can be said of the indexes of this schema
CREATE VIEW made AS
	SELECT c.relname, a.amname AS am, i.indisunique AS u, i.indisprimary AS p, i.indisexclusion AS x,
		i.indimmediate AS imm, i.indisvalid AS valid, i.indisreplident AS rep, i.indisclustered AS clus,
		c.reloptions AS options, obj_description(c.oid, 'pg_class') AS comment,
		(SELECT string_agg(attstattarget::text, ',' ORDER BY attnum) FROM pg_attribute
			WHERE attrelid = c.oid AND attstattarget > 0) AS stat,
		con.conname, con.condeferrable AS def
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		JOIN pg_am a ON a.oid = c.relam
		LEFT JOIN pg_constraint con ON con.conindid = c.oid AND con.contype IN ('p', 'u', 'x')
	WHERE c.relnamespace = 'conv'::regnamespace ORDER BY c.relname;
CREATE VIEW defs AS
	SELECT pg_get_indexdef(indexrelid) AS def FROM pg_index JOIN pg_class c ON c.oid = indexrelid
	WHERE c.relnamespace = 'conv'::regnamespace ORDER BY c.relname;
-- what still depends on the extension
CREATE VIEW depends AS
	SELECT d.objid::regclass AS index FROM pg_depend d JOIN pg_depend m
		ON m.classid = d.refclassid AND m.objid = d.refobjid AND m.deptype = 'e'
		JOIN pg_extension e ON e.oid = m.refobjid AND e.extname = 'artidx'
	WHERE d.classid = 'pg_class'::regclass
		AND d.objid IN (SELECT oid FROM pg_class WHERE relnamespace = 'conv'::regnamespace AND relkind IN ('i', 'I'))
	ORDER BY 1;

-- every kind of key and index, with everything that can be said of one
SET artidx.replace_btree = constraints;
SET client_min_messages = warning;
CREATE TABLE t (id bigint CONSTRAINT t_key PRIMARY KEY, a int, b text COLLATE "C", c text, d numeric,
	EXCLUDE USING art (d WITH =, a WITH =));
ALTER TABLE t ADD CONSTRAINT t_later UNIQUE (a) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE t ADD CONSTRAINT t_cov UNIQUE NULLS NOT DISTINCT (b, a) INCLUDE (c) WITH (fillfactor = 70);
RESET client_min_messages;
INSERT INTO t SELECT i, i, 'b' || i, 'c' || i, i FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX t_part ON t USING art (a DESC NULLS LAST, c text_pattern_ops) WHERE id % 2 = 0;
CREATE INDEX t_expr ON t USING art ((a + 1), lower(c) COLLATE "POSIX") WITH (structure = btree, fillfactor = 80);
ALTER INDEX t_expr ALTER COLUMN 1 SET STATISTICS 333;
CREATE INDEX t_plain ON t USING art (d) INCLUDE (id);
-- its type's collation, which is not the column's
CREATE INDEX t_type ON t USING art (b COLLATE "default", (b || c) COLLATE "default");
COMMENT ON INDEX t_key IS 'the key';
COMMENT ON INDEX t_plain IS 'plain';
ALTER TABLE t CLUSTER ON t_plain;
ALTER TABLE t REPLICA IDENTITY USING INDEX t_key;
CREATE VIEW uses_key AS SELECT id, a FROM t GROUP BY id;
CREATE MATERIALIZED VIEW m AS SELECT a FROM t;
CREATE UNIQUE INDEX m_a ON m USING art (a);
ANALYZE t;
SELECT count(*) FROM pg_stats WHERE tablename = 't_expr';
SELECT * FROM made;
SELECT * FROM defs;

-- beside writers, each by itself
CALL artidx_to_btree('t_key');
CALL artidx_to_btree('t_expr');
CALL artidx_to_btree('t_part', concurrently => true);
SELECT relname, am FROM made;
-- with a lock: asked for, and because nothing else can be
CALL artidx_to_btree('t_plain', false);
CALL artidx_to_btree('t_later');
-- and in a transaction block, undone and not
BEGIN;
CALL artidx_to_btree('m_a');
CALL artidx_to_btree('t_cov');
SELECT relname, am FROM made WHERE relname IN ('m_a', 't_cov');
ROLLBACK;
SELECT relname, am FROM made WHERE relname IN ('m_a', 't_cov');
DO $$ BEGIN CALL artidx_to_btree('m_a'); END $$;
-- the rest
CALL artidx_to_btree();
CALL artidx_to_btree();
SELECT * FROM made;
SELECT * FROM defs;
SELECT * FROM depends;
SELECT count(*) FROM pg_stats WHERE tablename = 't_expr';
REFRESH MATERIALIZED VIEW CONCURRENTLY m;

-- they do what they did
INSERT INTO t VALUES (1, 0, 'x', 'x', 0);
INSERT INTO t VALUES (0, 1, 'x', 'x', 0);
INSERT INTO t VALUES (0, 0, 'b1', 'x', 0), (-1, 0, 'b1', 'x', 1);
INSERT INTO t VALUES (0, 1001, 'y', 'x', 0), (-1, 1002, NULL, 'x', -1);
INSERT INTO t VALUES (-2, 1003, 'y', 'x', 5), (-3, 1003, 'z', 'x', 6);
ALTER TABLE t DROP CONSTRAINT t_d_a_excl, ADD EXCLUDE USING art (d WITH =);
CALL artidx_to_btree('t_d_excl');
INSERT INTO t VALUES (-2, 1003, 'y', 'x', 5);
UPDATE t SET a = 1001 - a;
INSERT INTO t VALUES (1, 0, 'x', 'x', 0) ON CONFLICT (id) DO NOTHING;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 7;
SELECT id, a FROM t WHERE id = 7;
RESET enable_seqscan;
DROP VIEW uses_key;

-- and back again
CALL artidx_from_btree('t_key');
CALL artidx_from_btree('t_later');
CALL artidx_from_btree('t_cov', false);
CALL artidx_from_btree('t_d_excl');
CALL artidx_from_btree('t_part');
CALL artidx_from_btree('t_expr');
BEGIN;
CALL artidx_from_btree('t_plain');
COMMIT;
SELECT relname, am, u, p, x, imm, valid, rep, clus, options, comment, stat, conname, def FROM made;
SELECT * FROM defs;
SELECT * FROM depends;
INSERT INTO t VALUES (1, 0, 'x', 'x', 0);
INSERT INTO t VALUES (-2, 1, 'x', 'x', -2);
INSERT INTO t VALUES (-2, 1003, 'y', 'x', 77);
INSERT INTO t VALUES (-2, 1003, 'b7', 'x', -2), (-3, 994, 'b7', 'x', -3);
-- (dead rows that were refused may still have entries)
SELECT entries >= (SELECT count(*) FROM t) AS all_rows FROM artidx_check('t_key', true);
SELECT entries FROM artidx_check('t_cov', true);

-- foreign keys are untouched
CALL artidx_to_btree('t_key');
CREATE TABLE f (id bigint REFERENCES t, n int);
INSERT INTO f VALUES (5), (6);
DO $$
BEGIN
	CALL artidx_from_btree('t_key');
	IF current_setting('server_version_num')::int < 180000 THEN RAISE 'taken'; END IF;
	CALL artidx_to_btree('t_key');
	RAISE NOTICE 'as expected';
EXCEPTION WHEN feature_not_supported THEN
	IF current_setting('server_version_num')::int >= 180000 THEN RAISE; END IF;
	RAISE NOTICE 'as expected';
END $$;
SELECT conname, conindid::regclass, convalidated FROM pg_constraint WHERE conrelid = 'f'::regclass;
DELETE FROM t WHERE id = 5;
CALL artidx_to_btree('t_cov');
DROP TABLE f;

-- what cannot be
CALL artidx_to_btree('t_key');
CALL artidx_to_btree('t');
CALL artidx_to_btree(NULL);
CALL artidx_to_btree('t_part', NULL);
CALL artidx_to_btree('no_such_index');
CALL artidx_from_btree('t_part');
CALL artidx_from_btree('pg_class_oid_index');
SELECT artidx_to_btree('t_part');
BEGIN READ ONLY;
CALL artidx_to_btree('t_part');
ROLLBACK;
CREATE INDEX t_hash ON t USING hash (a);
CALL artidx_from_btree('t_hash');
CREATE FUNCTION back_cmp(int, int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS 'SELECT pg_catalog.btint4cmp($2, $1)';
CREATE OPERATOR CLASS back_ops FOR TYPE int USING btree AS
	OPERATOR 1 > , OPERATOR 3 =, OPERATOR 5 <, FUNCTION 1 back_cmp(int, int);
CREATE INDEX t_back ON t (a back_ops);
CALL artidx_from_btree('t_back');
DROP INDEX t_hash, t_back;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t;
FETCH 1 FROM c \g /dev/null
CALL artidx_to_btree('t_part');
ROLLBACK;

-- a key that btree does not take, and what is left of the attempt
CREATE TABLE long (v text);
ALTER TABLE long ALTER v SET STORAGE EXTERNAL;
CREATE INDEX long_v ON long USING art (v);
INSERT INTO long VALUES (repeat('x', 3000));
CALL artidx_to_btree('long_v');
SELECT relname, am, valid FROM made WHERE relname ~ 'long';
DROP INDEX long_v_ccnew;
CALL artidx_to_btree('long_v', false);
SELECT relname, am, valid FROM made WHERE relname ~ 'long';
-- of many, one that cannot be does not keep the others from it
CREATE INDEX long_id ON long USING art ((length(v)));
INSERT INTO long VALUES ('y');
CREATE UNIQUE INDEX CONCURRENTLY "Dup" ON long USING art ((1));
CALL artidx_from_btree('t_key');
CALL artidx_to_btree();
DROP INDEX "Dup";
SELECT relname, am, valid FROM made;
BEGIN;
CALL artidx_to_btree();
ROLLBACK;
DROP TABLE long;

-- temporary and unlogged tables
CREATE TEMP TABLE tt (a int) ON COMMIT DELETE ROWS;
CREATE UNIQUE INDEX tt_a ON tt USING art (a);
CREATE UNLOGGED TABLE ut (a int);
CREATE UNIQUE INDEX ut_a ON ut USING art (a);
INSERT INTO ut VALUES (1);
CALL artidx_to_btree('tt_a');
CALL artidx_to_btree('ut_a');
SELECT relname, amname, relpersistence FROM pg_class c JOIN pg_am a ON a.oid = relam
	WHERE relname IN ('tt_a', 'ut_a') ORDER BY 1;
INSERT INTO ut VALUES (1);
DROP TABLE tt, ut;

-- partitioned indexes, with their parts
CREATE TABLE p (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (30) PARTITION BY RANGE (a);
CREATE TABLE p21 PARTITION OF p2 FOR VALUES FROM (10) TO (20);
CREATE INDEX p_b ON p USING art (b DESC) WITH (structure = art, fillfactor = 60);
INSERT INTO p SELECT i, 'b' || i FROM generate_series(0, 19) i;
SELECT artidx_unload('p_b');
SELECT indexrelname, state, reason FROM artidx_indexes WHERE indexrelname ~ '^p' ORDER BY 1;
SELECT artidx_build('p_b');
SELECT indexrelname, state, entries FROM artidx_indexes WHERE indexrelname ~ '^p' ORDER BY 1;
SELECT artidx_index_size('p_b');
CALL artidx_to_btree('p1_b_idx');
CALL artidx_to_btree('p_b');
SELECT relname, am, valid, options, inhparent::regclass FROM made LEFT JOIN pg_inherits ON inhrelid = relname::regclass
	WHERE relname ~ '^p' ORDER BY 1;
SELECT * FROM depends WHERE index::text ~ '^p';
SELECT artidx_build('p_b');
CREATE TABLE p22 PARTITION OF p2 FOR VALUES FROM (20) TO (30);
CREATE TABLE p3 (a int, b text);
CREATE INDEX p3_b ON p3 (b DESC);
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (30) TO (40);
SELECT * FROM defs WHERE def ~ 'p[0-9]*_b';
BEGIN;
CALL artidx_from_btree('p_b');
SELECT relname, am, valid, options, inhparent::regclass FROM made LEFT JOIN pg_inherits ON inhrelid = relname::regclass
	WHERE relname ~ '^p' ORDER BY 1;
CREATE TABLE p4 PARTITION OF p FOR VALUES FROM (40) TO (50);
SELECT am FROM made WHERE relname ~ '^p4';
ROLLBACK;
CALL artidx_from_btree('p_b', false);
CALL artidx_to_btree();
SELECT relname, am FROM made WHERE relname ~ '^p';
BEGIN;
CREATE INDEX p_a ON p USING art (a);
CALL artidx_to_btree('p_a');
ROLLBACK;
DROP TABLE p;

-- a predicate so long that it goes out of pg_index, where that has a TOAST table
CREATE TABLE far (a int, b text);
SELECT format('CREATE INDEX far_a ON far USING art (a) WHERE b <> %L', string_agg(md5(i::text), '')) AS make
	FROM generate_series(1, 60) i \gset
:make;
CALL artidx_to_btree('far_a');
SELECT relname, am, valid FROM made WHERE relname ~ '^far';
DROP TABLE far;

-- others' indexes
CALL artidx_from_btree('t_key', false);
CREATE ROLE conv_user;
GRANT USAGE, CREATE ON SCHEMA conv TO conv_user;
SET ROLE conv_user;
CREATE TABLE mine (a int);
CREATE INDEX mine_a ON mine USING art (a);
CALL artidx_to_btree('t_key');
CALL artidx_from_btree('t_cov');
CALL artidx_to_btree();
RESET ROLE;
SELECT relname, am FROM made;
DROP OWNED BY conv_user;
DROP ROLE conv_user;

-- art keys of partitions are made parts of a unique index of their parent
SET artidx.replace_btree = 'all';
CREATE TABLE q (a int, b int) PARTITION BY HASH (a, b);
CREATE TABLE q1 (a int, b int, PRIMARY KEY (a, b), UNIQUE (b, a));
ALTER TABLE q ATTACH PARTITION q1 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE UNIQUE INDEX q_ab ON q (a, b);
CREATE UNIQUE INDEX q_ba ON q (b, a);
ALTER INDEX q_ab ATTACH PARTITION q1_pkey;
ALTER INDEX q_ba ATTACH PARTITION q1_b_a_key;
SELECT inhrelid::regclass, inhparent::regclass FROM pg_inherits
	WHERE inhparent IN ('q_ab'::regclass, 'q_ba'::regclass) ORDER BY 1;
SELECT count(*) FROM pg_index WHERE indrelid = 'q1'::regclass;
INSERT INTO q VALUES (1, 1);
INSERT INTO q VALUES (1, 1);
DROP TABLE q;
SET artidx.replace_btree = constraints;

-- what the hint says can be run, whatever the index is called
CREATE TABLE r (a int) PARTITION BY LIST (a);
CREATE TABLE r1 (a int);
CREATE UNIQUE INDEX "r's key" ON r1 USING art (a);
INSERT INTO r1 VALUES (1);
CREATE UNIQUE INDEX r_a ON r USING btree (a);
ALTER TABLE r ATTACH PARTITION r1 FOR VALUES IN (1);
DROP TABLE r;

-- an OID is that of an index; no argument, and that only, means all of them
CREATE TABLE zero (a int PRIMARY KEY);
CREATE INDEX zero_a ON zero USING art (a);
CALL artidx_to_btree(0);
CALL artidx_from_btree('-', false);
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname IN ('zero_a', 'zero_pkey') ORDER BY relname;
DROP TABLE zero;

-- the extension goes when no index needs it, and says what keeps it
SET artidx.replace_btree = constraints;
CREATE TABLE last (id int PRIMARY KEY, a int UNIQUE);
INSERT INTO last VALUES (1, 1);
DROP MATERIALIZED VIEW m;
DROP TABLE t;
DROP EXTENSION artidx;
BEGIN;
DROP EXTENSION artidx CASCADE;
INSERT INTO last VALUES (1, 1);
ROLLBACK;
CALL artidx_to_btree();
DROP EXTENSION artidx;
INSERT INTO last VALUES (1, 1);
\c :outer
DROP DATABASE art_convert;
