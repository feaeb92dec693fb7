--
-- artidx.replace_btree: what becomes art, what stays
-- btree.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;
CREATE SCHEMA repl;
SET search_path = repl, public;

CREATE VIEW made AS
	SELECT c.relname, a.amname, i.indisunique AS uniq, i.indisprimary AS pkey
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		JOIN pg_am a ON a.oid = c.relam
	WHERE c.relnamespace = 'repl'::regnamespace ORDER BY c.relname;

SHOW artidx.replace_btree;
SET artidx.replace_btree = 'some';
CREATE TABLE t (a int, b text, c numeric, p point, n name, e int[]);
INSERT INTO t SELECT i, 'b' || i, i, NULL, 'n' || i, ARRAY[i] FROM generate_series(1, 100) i;
CREATE INDEX off ON t (a);

SET artidx.replace_btree = indexes;
CREATE INDEX ON t (a);
CREATE INDEX ON t USING btree (b);
CREATE UNIQUE INDEX ON t (a, c DESC NULLS LAST);
CREATE INDEX exprs ON t ((a + 1), (b || 'x'), lower(b)) WHERE a > 10;
CREATE INDEX opclasses ON t (b text_pattern_ops, a int4_ops, n pg_catalog.name_ops);
CREATE INDEX opts ON t (a) WITH (fillfactor = 70, deduplicate_items = off);
CREATE INDEX theirs ON t (a) WITH (vacuum_cleanup_index_scale_factor = 0.1);
CREATE INDEX arr ON t (e);
CREATE INDEX hashed ON t USING hash (a);
CREATE INDEX explicit ON t USING art (a);
CREATE INDEX IF NOT EXISTS explicit ON t (a);
CREATE INDEX CONCURRENTLY conc ON t (a);
BEGIN;
CREATE INDEX CONCURRENTLY conc2 ON t (a);
ROLLBACK;
SELECT * FROM made;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1;

-- errors are those of btree
CREATE INDEX ON t (p);
-- (19 shows the place)
\set VERBOSITY sqlstate
CREATE INDEX ON t (zzz);
\set VERBOSITY default
CREATE INDEX ON t (ctid);
CREATE INDEX ON t (a text_ops);
CREATE INDEX ON t (a no_such_ops);
CREATE INDEX ON t (a) WITH (no_such_option = 1);
CREATE INDEX ON t ((zzz + 1));
CREATE INDEX ON no_such_table (a);
CREATE INDEX ON made (relname);
BEGIN READ ONLY;
CREATE INDEX ON t (a);
ROLLBACK;
CREATE ROLE repl_nobody;
SET ROLE repl_nobody;
SET artidx.replace_btree = indexes;
CREATE INDEX ON repl.t (a);
RESET ROLE;
GRANT USAGE ON SCHEMA repl TO repl_nobody;
SET ROLE repl_nobody;
CREATE INDEX ON repl.t (a);
RESET ROLE;
REVOKE USAGE ON SCHEMA repl FROM repl_nobody;
DROP ROLE repl_nobody;
DROP TABLE t;

-- the operator classes are found although their schema is not in the path
CREATE TABLE t (a int, b text, n name);
SET search_path = repl;
CREATE INDEX t_a ON t (a, b, n);
CREATE INDEX t_p ON t (b text_pattern_ops);
SET search_path = repl, public;

-- in functions, in blocks, in CREATE SCHEMA, again and again from one plan
CREATE FUNCTION make(off bool) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF off THEN SET LOCAL artidx.replace_btree = off; END IF;
	DROP INDEX IF EXISTS t_f;
	CREATE INDEX t_f ON repl.t (a);
END $$;
SELECT make(false);
SELECT * FROM made;
SELECT make(true);
SELECT amname FROM made WHERE relname = 't_f';
SELECT make(false);
SELECT amname FROM made WHERE relname = 't_f';
DO $$ BEGIN EXECUTE 'CREATE INDEX t_d ON repl.t (a)'; END $$;
SELECT amname FROM made WHERE relname = 't_d';
CREATE SCHEMA repl2 CREATE TABLE s (a int PRIMARY KEY) CREATE INDEX s_a ON s (a);
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam
	WHERE relnamespace = 'repl2'::regnamespace AND relkind = 'i' ORDER BY 1;
DROP SCHEMA repl2 CASCADE;
DROP TABLE t;

-- USING btree written out is obeyed: tools that say it exchange the files of such indexes.
-- Names below begin with the access method that is expected.
CREATE TABLE t (a int, b text);
CREATE TABLE "using" (a int);
CREATE TABLE "T""USING (a)" (a int);
CREATE INDEX art_1 ON t (a)\; CREATE INDEX btree_2 ON t USING btree (a)\; CREATE INDEX art_3 ON t (a);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS btree_4 ON ONLY t USING "btree" (a);
CREATE INDEX btree_5 ON ONLY(repl . t)USING btree(a);
CREATE INDEX art_6 ON ONLY ( repl . t ) (a);
CREATE INDEX art_7 ON t * (a);
CREATE INDEX btree_8 ON T*using BTREE (a);
CREATE INDEX art_9 ON "using" (a);
CREATE INDEX btree_10 ON "using" USING btree (a);
CREATE INDEX art_11 ON "T""USING (a)" (a);
CREATE INDEX btree_12 ON repl."T""USING (a)" USING btree (a);
CREATE INDEX art_13 ON /* USING btree /* ( */ */ t -- USING btree
	(a) WHERE b = 'USING btree';
CREATE INDEX btree_14 ON t/* ( */USING-- (a)
	btree (a);
CREATE INDEX art_15 ON U&"\0074" (a);
CREATE INDEX btree_16 ON U&"\0074" USING btree (a);
CREATE INDEX btree_17 ON U&"!0074" UESCAPE '!' (a); -- (in doubt it stays btree)
DO $$ BEGIN
	CREATE INDEX art_18 ON t (a);
	CREATE INDEX btree_19 ON t USING btree (a);
	EXECUTE 'CREATE INDEX btree_20 ON t USING btree (a); CREATE INDEX art_21 ON t (a)';
	EXECUTE replace(pg_get_indexdef('btree_20'::regclass), 'btree_20', 'btree_22');
END $$;
CREATE FUNCTION make2() RETURNS void LANGUAGE sql AS
	'CREATE INDEX art_23 ON repl.t (a); CREATE INDEX btree_24 ON repl.t USING btree (a)';
SELECT make2();
CREATE SCHEMA repl2
	CREATE TABLE s (a int, EXCLUDE USING btree (a WITH =))
	CREATE INDEX btree_25 ON s USING btree (a)
	CREATE INDEX art_26 ON s (a)
	CREATE INDEX btree_27 ON s USING btree (a);
SELECT c.relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	WHERE c.relname ~ '^(art|btree)_' AND amname <> split_part(c.relname, '_', 1);
SELECT count(*) FROM pg_class WHERE relname ~ '^(art|btree)_\d+$';
DROP SCHEMA repl2 CASCADE;

-- so is a copy of an index, of either kind
CREATE TABLE l (LIKE t INCLUDING INDEXES);
SELECT amname, count(*) FILTER (WHERE indrelid = 't'::regclass) = count(*) FILTER (WHERE indrelid = 'l'::regclass) AS as_many
	FROM made JOIN pg_index ON indexrelid = relname::regclass WHERE indrelid IN ('t'::regclass, 'l'::regclass)
	GROUP BY 1 ORDER BY 1;
DROP TABLE t, l, "using", "T""USING (a)";

-- constraints stay btree with "indexes"; LIKE copies either
CREATE TABLE t (id serial PRIMARY KEY, a int UNIQUE, b text, EXCLUDE (b WITH =));
CREATE INDEX t_b ON t (b);
CREATE TABLE l (LIKE t INCLUDING ALL);
SELECT * FROM made;
DROP TABLE t, l;

-- "all"
SET artidx.replace_btree = 'all';
CREATE TABLE t (id serial PRIMARY KEY, a int UNIQUE, b text, c int, EXCLUDE (b WITH =),
	CONSTRAINT t_ab UNIQUE (a, b) WITH (fillfactor = 50) DEFERRABLE);
ALTER TABLE t ADD CONSTRAINT t_c UNIQUE NULLS NOT DISTINCT (c);
ALTER TABLE t ADD COLUMN d bigserial UNIQUE, ADD COLUMN e int, ADD CONSTRAINT t_e UNIQUE (e, d);
-- (the one that was on c is made again by core, as btree)
ALTER TABLE t ALTER c TYPE numeric, ADD CONSTRAINT t_c2 EXCLUDE (c WITH =, a WITH =) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE t ADD UNIQUE (nope);
ALTER TABLE nope ADD UNIQUE (nope);
ALTER TABLE IF EXISTS nope ADD UNIQUE (nope);
CREATE TABLE l (LIKE t INCLUDING ALL);
SELECT * FROM made;
INSERT INTO t VALUES (1, 1, 'x', 1, 1, 1), (2, 2, 'y', 2, 2, 2);
INSERT INTO t VALUES (1, 3, 'z', 3, 3, 3);
INSERT INTO t VALUES (3, 1, 'z', 3, 3, 3);
INSERT INTO t VALUES (3, 3, 'x', 3, 3, 3);
INSERT INTO t VALUES (3, 3, 'z', 2, 3, 3);
INSERT INTO t VALUES (3, 3, 'z', 3, 3, 3) ON CONFLICT (id) DO NOTHING;
INSERT INTO t VALUES (3, 3, 'z', 3, 3, 3) ON CONFLICT (id) DO UPDATE SET b = 'zz';
SELECT id, a, b, c, d, e FROM t ORDER BY id;
DROP TABLE t, l;

-- exclusion constraints have an access method to write
CREATE TABLE t (a int, b int, CONSTRAINT x_art EXCLUDE (a WITH =), CONSTRAINT "exclude" EXCLUDE (b WITH =));
ALTER TABLE t ADD CONSTRAINT x_btree EXCLUDE USING btree (a WITH =, b WITH =),
	ADD CONSTRAINT "EXCLUDE USING btree (" EXCLUDE /* USING */ (b WITH =, a WITH =);
ALTER TABLE t ADD EXCLUDE USING btree (b WITH =), ADD EXCLUDE (b WITH =);
SELECT * FROM made;
DROP TABLE t;
-- (those of CREATE TABLE, which come by without their text, are taken together)
CREATE TABLE t (a int PRIMARY KEY, b int, EXCLUDE (a WITH =), CONSTRAINT x EXCLUDE USING btree (b WITH =));
SELECT * FROM made;
-- what pg_dump writes makes them what they were
DO $$ DECLARE def text = pg_get_constraintdef((SELECT oid FROM pg_constraint WHERE conname = 'x'));
BEGIN
	ALTER TABLE t DROP CONSTRAINT x;
	EXECUTE 'ALTER TABLE ONLY repl.t ADD CONSTRAINT x ' || def;
END $$;
SELECT * FROM made WHERE relname = 'x';
DROP TABLE t;

-- temporary and unlogged tables, INCLUDE
CREATE TEMP TABLE tt (id int PRIMARY KEY, a int, UNIQUE (a) INCLUDE (id)) ON COMMIT DELETE ROWS;
CREATE INDEX tt_a ON tt (a) INCLUDE (id);
CREATE UNLOGGED TABLE ut (id int PRIMARY KEY, a int, UNIQUE (a) INCLUDE (id));
CREATE INDEX ut_a ON ut (a) INCLUDE (id);
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam
	WHERE relkind = 'i' AND relname ~ '^(tt|ut)_' ORDER BY 1;
DROP TABLE tt, ut;

-- what core or art does not allow
CREATE TABLE p (a int, b int, PRIMARY KEY (a)) PARTITION BY RANGE (a);
CREATE INDEX p_b ON p (b);
CREATE UNIQUE INDEX p_ab ON p (a, b);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 (a int NOT NULL, b int);
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20);
CREATE UNIQUE INDEX p1_own ON p1 (b);
ALTER TABLE p2 ADD CONSTRAINT p2_own UNIQUE (b);
SET artidx.replace_btree = off;
CREATE INDEX p_off ON ONLY p (b, a);
SET artidx.replace_btree = 'all';
CREATE INDEX p1_off ON p1 (b, a);
CREATE INDEX p2_off ON p2 (b, a);
ALTER INDEX p_off ATTACH PARTITION p1_off;
ALTER INDEX p_off ATTACH PARTITION p2_off;
CREATE INDEX p_on ON ONLY p (b, a);
CREATE INDEX p1_on ON p1 (b, a);
CREATE INDEX p2_on ON p2 (b, a);
ALTER INDEX p_on ATTACH PARTITION p1_on;
ALTER INDEX p_on ATTACH PARTITION p2_on;
SELECT * FROM made;
DROP TABLE p;
CREATE MATERIALIZED VIEW m AS SELECT 1 AS a;
CREATE UNIQUE INDEX m_u ON m (a);
CREATE INDEX m_a ON m (a);
REFRESH MATERIALIZED VIEW CONCURRENTLY m;
SELECT * FROM made;
DROP MATERIALIZED VIEW m;
CREATE TYPE color AS ENUM ('red', 'green');
CREATE DOMAIN shade AS color;
CREATE TYPE pair AS (x int, y int);
CREATE TABLE t (c color, s shade, r pair, ra int4range, tv tsvector);
CREATE INDEX t_c ON t (c);
CREATE INDEX t_s ON t (s);
CREATE INDEX t_r ON t (r);
CREATE INDEX t_ra ON t (ra);
CREATE INDEX t_tv ON t (tv);
SELECT * FROM made;

-- a type with an operator class of its own, which art gets with the index, if all may use its schema
CREATE FUNCTION pair_cmp(pair, pair) RETURNS int IMMUTABLE STRICT LANGUAGE sql
	AS 'SELECT pg_catalog.btint4cmp($2.x, $1.x)';
CREATE OPERATOR CLASS pair_back_ops FOR TYPE pair USING btree AS
	OPERATOR 1 > (record, record), FUNCTION 1 pair_cmp(pair, pair);
CREATE INDEX t_back ON t (r pair_back_ops);
SELECT * FROM made WHERE relname = 't_back';
GRANT USAGE ON SCHEMA repl TO PUBLIC;
DROP INDEX t_back;
CREATE INDEX t_back ON t (r pair_back_ops);
SELECT * FROM made WHERE relname = 't_back';
REVOKE USAGE ON SCHEMA repl FROM PUBLIC;
DROP TABLE t;
DROP OPERATOR FAMILY pair_back_ops USING btree;
DROP FUNCTION pair_cmp;

-- constraints only
SET artidx.replace_btree = constraints;
\set VERBOSITY terse
CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE, b text, EXCLUDE (b WITH =));
CREATE INDEX t_b ON t (b);
ALTER TABLE t ADD CONSTRAINT t_ab UNIQUE (a, b);
CREATE TABLE p (a int PRIMARY KEY) PARTITION BY RANGE (a);
SELECT * FROM made;
CREATE TABLE f (id int REFERENCES t (id));
DROP TABLE f, t, p;

-- keys that cannot stay art: referenced, or parts of a partitioned table's
SET artidx.replace_btree = 'all';
CREATE TABLE self (a int PRIMARY KEY, b int REFERENCES self);
CREATE TABLE self2 (a int, b int REFERENCES self2 (a), UNIQUE (a));
CREATE TABLE self3 (a int);
ALTER TABLE self3 ADD PRIMARY KEY (a), ADD COLUMN b int REFERENCES self3;
CREATE TABLE pk (id int, n name, UNIQUE (id, n) WITH (fillfactor = 60));
COMMENT ON INDEX pk_id_n_key IS 'kept';
ALTER TABLE pk ALTER id SET NOT NULL, ALTER n SET NOT NULL, REPLICA IDENTITY USING INDEX pk_id_n_key;
INSERT INTO pk SELECT i, 'n' || i FROM generate_series(1, 100) i;
SELECT amname FROM made WHERE relname = 'pk_id_n_key';
CREATE TABLE fk (x name, y int, FOREIGN KEY (x, y) REFERENCES pk (n, id));
INSERT INTO fk VALUES ('n5', 5);
INSERT INTO fk VALUES ('n5', 6);
SELECT amname, indisreplident, indisvalid, reloptions, obj_description(indexrelid) IS NOT NULL AS comment,
	(SELECT conname FROM pg_constraint WHERE conindid = indexrelid AND contype = 'u') AS con
	FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
	WHERE indrelid = 'pk'::regclass;
SELECT count(*) FROM pg_depend d JOIN pg_extension e ON e.extname = 'artidx'
	JOIN pg_depend m ON m.refobjid = e.oid AND m.deptype = 'e' AND m.objid = d.refobjid
	WHERE d.objid = 'pk_id_n_key'::regclass;

CREATE TABLE p (a int PRIMARY KEY, b int) PARTITION BY RANGE (a);
CREATE TABLE p1 (b int, a int PRIMARY KEY, d int UNIQUE DEFERRABLE);
INSERT INTO p1 (a) SELECT generate_series(0, 9);
CREATE TABLE p2 (a int NOT NULL, b int) PARTITION BY RANGE (a);
CREATE TABLE p21 (a int PRIMARY KEY, b int);
ALTER TABLE p2 ATTACH PARTITION p21 FOR VALUES FROM (10) TO (15);
ALTER TABLE p1 DROP COLUMN d, ADD COLUMN e int;
ALTER TABLE p1 DROP COLUMN e;
BEGIN;
ALTER TABLE p2 ADD PRIMARY KEY (a);
SELECT relname, amname FROM made WHERE relname ~ '^p2';
ROLLBACK;
SELECT relname, amname FROM made WHERE relname ~ '^p[12]';
ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (10);
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20);
SELECT relname, amname, inhparent::regclass FROM made LEFT JOIN pg_inherits ON inhrelid = relname::regclass
	WHERE relname ~ '^p[12]?1?_pkey' ORDER BY 1;
INSERT INTO p VALUES (5, 5);
SET enable_seqscan = off;
EXPLAIN (costs off) SELECT * FROM p WHERE a = 5;
SELECT * FROM p WHERE a IN (5, 11);
RESET enable_seqscan;
CREATE TABLE q (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE q1 (a int PRIMARY KEY, b int);
ALTER TABLE q ATTACH PARTITION q1 FOR VALUES FROM (0) TO (10);
ALTER TABLE ONLY q ADD PRIMARY KEY (a);
ALTER INDEX q_pkey ATTACH PARTITION q1_pkey;
SELECT relname, amname FROM made WHERE relname ~ '^q';

-- of two keys that would do, the one that core takes
CREATE TABLE pk1 (id int PRIMARY KEY);
CREATE UNIQUE INDEX pk1_x ON pk1 USING art (id);
CREATE TABLE fk1 (id int REFERENCES pk1 (id));
CREATE TABLE pk2 (a int, b int, CONSTRAINT pk2_later UNIQUE (a, b) DEFERRABLE);
CREATE UNIQUE INDEX pk2_x ON pk2 USING art (b, a);
CREATE TABLE fk2 (a int, b int, FOREIGN KEY (a, b) REFERENCES pk2 (a, b));
SELECT conrelid::regclass, indrelid::regclass, indisvalid FROM pg_constraint JOIN pg_index ON indexrelid = conindid
	WHERE contype = 'f' AND conrelid::regclass::text ~ '^fk[12]' ORDER BY 1;
INSERT INTO fk2 VALUES (1, 1);
-- none where it takes one of btree's
SET artidx.replace_btree = off;
CREATE TABLE pk3 (id int PRIMARY KEY);
CREATE UNIQUE INDEX pk3_x ON pk3 USING art (id);
CREATE TABLE fk3 (id int REFERENCES pk3 (id));
CREATE TABLE s (a int PRIMARY KEY) PARTITION BY RANGE (a);
CREATE TABLE s1 (a int NOT NULL);
CREATE UNIQUE INDEX s1_x ON s1 USING art (a);
ALTER TABLE s1 ADD PRIMARY KEY (a);
ALTER TABLE s ATTACH PARTITION s1 FOR VALUES FROM (0) TO (10);
CREATE TABLE s2 (a int NOT NULL);
CREATE UNIQUE INDEX s2_x ON s2 USING art (a);
SET artidx.replace_btree = constraints;
ALTER TABLE s2 ADD PRIMARY KEY (a);
ALTER TABLE s ATTACH PARTITION s2 FOR VALUES FROM (10) TO (20);
CREATE UNIQUE INDEX IF NOT EXISTS s_pkey ON s (a);
SELECT relname, amname FROM made WHERE relname ~ '^(pk3|s|s[12])_(x|pkey)' ORDER BY 1;
SET artidx.replace_btree = 'all';

-- somebody else's key stays what it is
CREATE TABLE own (id int PRIMARY KEY);
CREATE ROLE repl_fk;
GRANT USAGE, CREATE ON SCHEMA repl TO repl_fk;
GRANT REFERENCES ON own TO repl_fk;
SET ROLE repl_fk;
\set VERBOSITY default
CREATE TABLE repl.others (id int REFERENCES repl.own);
ALTER TABLE repl.p ATTACH PARTITION repl.own FOR VALUES FROM (50) TO (60);
RESET ROLE;
SELECT amname FROM made WHERE relname = 'own_pkey';
DROP OWNED BY repl_fk;
DROP ROLE repl_fk;
RESET artidx.replace_btree;
SET client_min_messages = warning;
DROP SCHEMA repl CASCADE;
